// SPDX-License-Identifier: Apache-2.0
// Layouts of operands from the layout of a result. See views.h.
#include "lower/views.h"

tk_layout tk_layout_project(const tk_layout *l, unsigned rank, const int64_t *dim) {
    tk_layout p = *l;
    unsigned lead = l->rank - rank;
    for (unsigned i = 0; i < l->rank; i++) {
        if (i < lead || (dim[i - lead] == 1 && l->log_dim[i] > 0)) {
            p = tk_layout_slice(&p, i);
        }
    }
    return tk_layout_reshape(&p, rank, dim);
}

uint32_t tk_layout_project_element(const tk_layout *l, unsigned rank, const int64_t *dim,
                                   uint32_t e) {
    unsigned lead = l->rank - rank, to = 0;
    uint32_t out = 0;
    for (unsigned k = rank; k-- > 0;) { // from the last axis, whose bits are lowest
        unsigned i = k + lead;
        if (dim[k] > 1) {
            out |= (e >> tk_layout_shift(l, i) & ((1U << l->log_dim[i]) - 1)) << to;
            to += l->log_dim[i];
        }
    }
    return out;
}

uint32_t tk_layout_register(const tk_layout *of, uint32_t e) {
    for (uint32_t r = 0; r < 1U << of->regs; r++) {
        if (tk_layout_eval(of, r, 0, 0) == e) {
            return r;
        }
    }
    return UINT32_MAX;
}

tk_vid tk_view_value(const tk_func *f, const tk_op *op) {
    // Of a store after the tensor and its indices.
    return op->code == TK_OP_STORE || op->code == TK_OP_FETCH
               ? op->opnd[1 + tk_value_type(f, op->opnd[0])->rank]
               : op->res[0];
}

const tk_type *tk_view_type(const tk_func *f, const tk_op *op) {
    return tk_value_type(f, tk_view_value(f, op));
}

tk_view_axes tk_view_axes_of(const tk_func *f, const tk_op *op) {
    tk_view_axes v = {.n = tk_value_type(f, op->opnd[0])->rank};
    uint32_t tiles = 0, common = 0;
    for (uint32_t d = 0; d < v.n; d++) {
        if (op->at.index[d] == -1) {
            uint32_t r = tk_value_type(f, op->opnd[1 + d])->rank;
            tiles++;
            common = r > common ? r : common;
        }
    }
    unsigned at = tiles >= 2 ? common : 0; // two or more: their common shape comes first
    for (uint32_t d = 0; d < v.n; d++) {
        int64_t kind = op->at.index[d];
        if (kind > 0) {
            v.first[d] = (uint8_t)at++;
            v.count[d] = 1;
        } else if (kind == -1) {
            v.first[d] = tiles >= 2 ? 0 : (uint8_t)at;
            v.count[d] = (uint8_t)common;
            at += tiles >= 2 ? 0 : common;
        }
    }
    v.rank = at;
    return v;
}

tk_layout tk_view_index_layout(const tk_func *f, const tk_op *op, const tk_view_axes *v,
                               const tk_layout *l, uint32_t d) {
    const tk_type *t = tk_value_type(f, op->opnd[1 + d]);
    tk_layout p = *l;
    int64_t dim[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < l->rank; i++) {
        bool ours = i >= v->first[d] && i < (unsigned)v->first[d] + v->count[d];
        if (ours) {
            dim[i - v->first[d]] = (int64_t)1 << l->log_dim[i];
        } else {
            p = tk_layout_slice(&p, i);
        }
    }
    p = tk_layout_reshape(&p, v->count[d], dim); // the common shape
    return tk_layout_project(&p, t->rank, t->dim);
}
