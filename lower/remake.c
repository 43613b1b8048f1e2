// SPDX-License-Identifier: Apache-2.0
// Values made anew in another layout. See remake.h.
#include "lower/remake.h"

#include "lower/lower.h"
#include "lower/views.h"

// On tiles as large as what is made; of smaller ones, which cost little, as well.
enum { MOST_OPS = 12, MOST_SMALL = 48 };

typedef struct left {
    int64_t elements; // of what is made
    unsigned ops, small;
    bool reads; // of rings, whatever they are
} left;

static bool is_tile(const tk_func *f, tk_vid v) {
    const tk_type *t = tk_value_type(f, v);
    return t->kind == TK_T_VALUE && t->rank > 0;
}

bool tk_is_free(const tk_func *f, tk_vid v) {
    const tk_op *d = tk_value_def(f, v);
    if (!d) {
        return false;
    }
    return d->code == TK_OP_CONST || d->code == TK_OP_IOTA || d->code == TK_OP_EMPTY ||
           (d->code == TK_OP_BROADCAST && !is_tile(f, d->opnd[0]));
}

// Costs a few instructions an element.
static bool is_cheap(tk_opcode code) {
    switch ((int)code) { // of many
    case TK_OP_RESHAPE:
    case TK_OP_BROADCAST:
    case TK_OP_CAST:
    case TK_OP_BITCAST:
        return true;
    case TK_OP_DIV:
    case TK_OP_REM:
    case TK_OP_CDIV:
    case TK_OP_SQRT:
    case TK_OP_RCP:
        return false;
    }
    return tk_op_info(code)->elementwise && tk_op_info(code)->exact;
}

// A line of what all programs read, as weights: threads read it side by side in any layout.
static bool is_line(const tk_func *f, const tk_op *d) {
    return tk_is_common_load(f, d) && tk_value_type(f, d->res[0])->rank == 1;
}

// A load of which each thread needs an element or two: reading it again is less than moving it. No
// program writes what is read.
static bool is_small_load(const tk_func *f, const tk_op *d, const tk_layout *l) {
    return d->code == TK_OP_LOAD && !d->at.staged && l->regs <= 1 &&
           tk_value_type(f, d->opnd[0])->access == TK_IN;
}

// A tile of a ring, as it is or permuted, read from there.
static bool is_read(const tk_func *f, const tk_op *d) {
    return d->code == TK_OP_CONVERT && tk_value_layout(f, d->opnd[0])->shared;
}

// One that is read again wherever it would be loaded again.
static bool is_taken(const tk_func *f, const tk_op *d, const tk_layout *l) {
    const tk_op *take = d->code == TK_OP_CONVERT ? tk_value_def(f, d->opnd[0]) : NULL;
    if (!take || take->code != TK_OP_TAKE) {
        return false;
    }
    const tk_like like = tk_value_def(f, take->opnd[0])->at.like;
    return (like == TK_LIKE_COMMON && tk_value_type(f, d->res[0])->rank == 1) ||
           (like != TK_LIKE_STAGED && l->regs <= 1);
}

// The layout in which the op needs a tile operand for its result in layout l.
static tk_layout needed(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l) {
    const tk_type *t = tk_value_type(f, op->opnd[i]);
    switch ((int)op->code) { // the others are element-wise
    case TK_OP_RESHAPE:
        return tk_layout_reshape(l, t->rank, t->dim);
    case TK_OP_BROADCAST:
        return tk_layout_project(l, t->rank, t->dim);
    case TK_OP_LOAD:
        if (i <= tk_value_type(f, op->opnd[0])->rank) { // an index
            const tk_view_axes axes = tk_view_axes_of(f, op);
            return tk_view_index_layout(f, op, &axes, l, i - 1);
        }
    }
    return *l;
}

// Counts the ops that make v.
static bool can_remake(const tk_func *f, tk_vid v, const tk_layout *l, left *x) {
    const tk_op *d = tk_value_def(f, v);
    if (!is_tile(f, v)) {
        return true;
    }
    unsigned *n = tk_type_elems(tk_value_type(f, v)) < x->elements ? &x->small : &x->ops;
    if (!d || *n == 0) {
        return false;
    }
    --*n;
    if (tk_is_free(f, v) || is_taken(f, d, l) || (x->reads && is_read(f, d))) {
        return true;
    }
    if (!is_line(f, d) && !is_small_load(f, d, l) &&
        (!is_cheap(d->code) || (d->code == TK_OP_RESHAPE && !is_tile(f, d->opnd[0])))) {
        return false;
    }
    for (uint32_t i = 0; i < d->nopnd; i++) {
        const tk_layout need = is_tile(f, d->opnd[i]) ? needed(f, d, i, l) : *l;
        if (!can_remake(f, d->opnd[i], &need, x)) {
            return false;
        }
    }
    return true;
}

static tk_vid make(tk_func *f, tk_op *at, tk_vid v, const tk_layout *l) {
    if (!is_tile(f, v) || tk_layout_eq(tk_value_layout(f, v), l)) {
        return v;
    }
    const tk_op *d = tk_value_def(f, v);
    const tk_type *t = tk_value_type(f, v);
    tk_vid opnd[2 + TK_MAX_TENSOR_RANK] = {0}; // of a load with a mask
    for (uint32_t i = 0; i < d->nopnd; i++) {
        if (is_tile(f, d->opnd[i]) && d->code != TK_OP_CONVERT) {
            const tk_layout need = needed(f, d, i, l);
            opnd[i] = make(f, at, d->opnd[i], &need);
        } else {
            opnd[i] = d->opnd[i];
        }
    }
    tk_op *op = tk_op_new(f, d->code, d->loc, d->nopnd, opnd, 1, &t, 0);
    op->at = d->at;
    op->fast = d->fast;
    tk_value_lay(f, op->res[0], tk_layout_new(f->module->arena, *l));
    tk_op_insert_before(d->code == TK_OP_CONVERT ? d->next : at,
                        op); // its slot is not released yet
    return op->res[0];
}

bool tk_can_remake(const tk_func *f, tk_vid v, const tk_layout *l) {
    left x = {tk_type_elems(tk_value_type(f, v)), MOST_OPS, MOST_SMALL, false};
    return can_remake(f, v, l, &x);
}

tk_vid tk_remake(tk_func *f, tk_op *at, tk_vid v, const tk_layout *l) {
    left x = {tk_type_elems(tk_value_type(f, v)), MOST_OPS, MOST_SMALL, true};
    return can_remake(f, v, l, &x) ? make(f, at, v, l) : 0;
}
