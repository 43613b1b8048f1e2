// SPDX-License-Identifier: Apache-2.0
// The pass pad: reductions, scans, sorting and products. The padding along their axes gets what
// changes no bit of the result: an identity, or what sorts behind all elements. See pad.h.
#include "lower/pad.h"

#include <math.h>

static tk_dtype dtype_of(const tk_pad *p, tk_vid v) { return tk_value_type(p->f, v)->dtype; }

static void fill_operand(tk_pad *p, tk_op *op, uint32_t i, unsigned axes, tk_const c) {
    op->opnd[i] = tk_pad_fill(p, op->opnd[i], axes, c);
}

static tk_const zero(tk_dtype t) { return (tk_const){t, 0}; }

// -0 of a float, which added to anything leaves it as it is; +0 would make +0 of -0.
static tk_const nothing(tk_dtype t) {
    return tk_dtype_is_float(t) ? tk_const_f64(t, -0.0) : zero(t);
}

static void reduce(tk_pad *p, tk_op *op) {
    fill_operand(p, op, 0, tk_pad_axes(op),
                 tk_kind_identity(op->at.kind, dtype_of(p, op->opnd[0])));
}

// Of equal elements the first is chosen: a real one, since an element of the padding stands behind
// the first real one in row-major order. Where all is reduced the index is that of the padded tile.
static void arg_reduce(tk_pad *p, tk_op *op) {
    const tk_type *real = tk_pad_real(p, op->opnd[0]);
    const bool inner = tk_pad_is(p, op->opnd[0], TK_PAD_ALL & ~1U);
    reduce(p, op);
    if (op->at.axis == TK_AXIS_ALL && inner) {
        p->before = op->next;
        tk_pad_replace(p, op->res[0], tk_pad_to_real(p, op->res[0], real->rank, real->dim));
    }
}

// From the end the padding comes first. An exclusive sum begins with +0, which stands at the last
// element of the padding; from there to the last real one it has become -0.
static void scan(tk_pad *p, tk_op *op) {
    const tk_dtype t = dtype_of(p, op->opnd[0]);
    const int axis = op->at.axis;
    if (!op->at.reverse || !tk_pad_is(p, op->opnd[0], tk_pad_axes(op))) {
        return;
    }
    const int64_t n = tk_pad_real(p, op->opnd[0])->dim[axis];
    reduce(p, op);
    if (op->at.exclusive && op->at.kind == TK_K_SUM && tk_dtype_is_float(t)) {
        const tk_type *type = tk_value_type(p->f, op->res[0]);
        p->before = op->next;
        const tk_vid last = tk_pad_compare(p, TK_OP_EQ, tk_pad_iota(p, type->dim[axis]), n - 1);
        tk_pad_replace(p, op->res[0],
                       tk_pad_select(p, tk_pad_along(p, last, type, axis),
                                     tk_pad_const(p, type, zero(t)), op->res[0]));
    }
}

// Sorting is stable and the padding stands behind the real elements: equal ones stay in front.
static void sort(tk_pad *p, tk_op *op) {
    const tk_dtype t = dtype_of(p, op->opnd[0]);
    const tk_const last = tk_dtype_is_float(t) ? tk_const_f64(t, NAN) : tk_const_greatest(t);
    const bool falling = op->code == TK_OP_TOPK || op->at.descending;
    fill_operand(p, op, 0, tk_pad_axes(op), falling ? tk_const_least(t) : last);
}

// -1 is in no bin. Unsigned integers are widened for it; those of 64 bits that a signed one does
// not hold become negative, and are in no bin either.
static void histogram(tk_pad *p, tk_op *op) {
    const tk_type *t = tk_value_type(p->f, op->opnd[0]);
    if (!tk_pad_is(p, op->opnd[0], TK_PAD_ALL)) {
        return;
    }
    const tk_dtype wide = tk_dtype_is_signed(t->dtype)   ? t->dtype
                          : tk_dtype_bits(t->dtype) < 32 ? TK_I32
                                                         : TK_I64;
    const tk_vid valid = tk_pad_valid(p, tk_pad_real(p, op->opnd[0]), TK_PAD_ALL);
    const tk_type *type = tk_type_with_dtype(p->c->scratch, t, wide);
    const tk_vid x =
        wide == t->dtype ? op->opnd[0] : tk_pad_op(p, TK_OP_CAST, type, 1, &op->opnd[0]);
    op->opnd[0] = tk_pad_select(p, valid, x, tk_pad_const(p, type, tk_const_i64(wide, -1)));
}

// Along K the products are -0 times +0 = -0, which changes no sum; of integers 0. Rows of a and
// columns of b that are padding give padding.
static void dot(tk_pad *p, tk_op *op) {
    const uint32_t b = op->code == TK_OP_DOT ? 1 : 2;
    const unsigned rank = tk_value_type(p->f, op->opnd[0])->rank;
    const unsigned k_of_a = 1U << (rank - 1), k_of_b = 1U << (rank - 2);
    fill_operand(p, op, 0, k_of_a, nothing(dtype_of(p, op->opnd[0])));
    fill_operand(p, op, b, k_of_b, zero(dtype_of(p, op->opnd[b])));
    if (op->code == TK_OP_DOT_SCALED) { // 2^0
        fill_operand(p, op, 1, k_of_a, tk_const_i64(TK_U8, 127));
        fill_operand(p, op, 3, k_of_b, tk_const_i64(TK_U8, 127));
    }
}

void tk_pad_across(tk_pad *p, tk_op *op) {
    switch ((int)op->code) { // those that pass_pad.c sends here
    case TK_OP_REDUCE:
        reduce(p, op);
        break;
    case TK_OP_ARG_REDUCE:
        arg_reduce(p, op);
        break;
    case TK_OP_SCAN:
        scan(p, op);
        break;
    case TK_OP_SORT:
    case TK_OP_TOPK:
        sort(p, op);
        break;
    case TK_OP_HISTOGRAM:
        histogram(p, op);
        break;
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        dot(p, op);
        break;
    }
}
