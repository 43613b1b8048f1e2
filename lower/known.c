// SPDX-License-Identifier: Apache-2.0
// Masks that are known by register. See known.h.
#include "lower/known.h"

// The axis along which all of a tile counts up from v->lo, in layout l; -1: none.
static int counting_axis(const tk_axis_value *v, const tk_type *t, const tk_layout *l) {
    int found = -1;
    for (unsigned k = 0; k < t->rank; k++) {
        if (t->dim[k] == 1) {
            continue;
        }
        const bool counts = v->dim[k].contig >= l->log_dim[k] && v->hi - v->lo == t->dim[k] - 1;
        if (!counts && v->dim[k].same < l->log_dim[k]) {
            return -1;
        }
        found = counts ? (int)k : found;
    }
    return found;
}

tk_known tk_known_mask(const tk_axis *x, const tk_op *op, uint32_t r) {
    const tk_func *f = x->func;
    if (op->code != TK_OP_LT || tk_value_type(f, op->opnd[0])->rank == 0) {
        return TK_KNOWN_NOT;
    }
    const tk_axis_value *a = tk_axis_of(x, op->opnd[0]), *b = tk_axis_of(x, op->opnd[1]);
    const tk_layout *l = tk_value_layout(f, op->res[0]);
    if (!a || !b || !a->ranged || !b->ranged || !l || !tk_layout_apart(l)) {
        return TK_KNOWN_NOT;
    }
    const int k = counting_axis(a, tk_value_type(f, op->opnd[0]), l);
    if (k < 0) {
        return TK_KNOWN_NOT;
    }
    const unsigned shift = tk_layout_shift(l, (unsigned)k);
    const uint32_t all = (1U << l->log_dim[k]) - 1;
    const int64_t least = a->lo + (tk_layout_eval(l, r, 0, 0) >> shift & all);
    const int64_t most = least + (tk_layout_thread_bits(l) >> shift & all);
    return most < b->lo ? TK_KNOWN_TRUE : least >= b->hi ? TK_KNOWN_FALSE : TK_KNOWN_NOT;
}
