// SPDX-License-Identifier: Apache-2.0
// The remainder of floats, C's fmod, exact: long division of integers.
//
// x = a 2^i and y = b 2^j with integers a and b; for i >= j the remainder is that of a 2^(i-j) by
// b, times 2^j. The power goes in so many bits at a time as keep the product within 64 bits, in a
// loop that ends with the element that needs most rounds: one round for i - j up to 40 in f32 and
// 11 in f64. For i < j y is the greater, and the remainder x.
#include "lower/math_ops.h"

#include "lang/type.h"

typedef struct whole_float {
    tk_vid mantissa, exponent; // u64; m->it: value = mantissa 2^(exponent - bias - man)
} whole_float;

static whole_float take_apart(tk_math *m, tk_vid size) {
    const tk_vid u = tk_math_bits(m, size, m->ut);
    const tk_vid zero = whole(m, m->ut, 0);
    const int64_t implied = (int64_t)1 << m->man;
    const tk_vid e = shr_c(m, u, m->man);
    const tk_vid fraction = and_c(m, u, implied - 1);
    const tk_vid normal = ne(m, e, zero);
    const tk_vid all = choose(m, normal, or (m, fraction, whole(m, m->ut, implied)), fraction);
    const tk_vid at = choose(m, normal, e, whole(m, m->ut, 1));
    return (whole_float){tk_math_cast(m, all, TK_U64), tk_math_bits(m, at, m->it)};
}

static tk_vid scalar_i32(tk_math *m, tk_vid v) { // the greatest
    if (m->shape->rank == 0) {
        return tk_math_cast(m, v, TK_I32);
    }
    const tk_type *type = tk_type_scalar(m->f->module->arena, TK_I32);
    const tk_vid x = tk_math_cast(m, v, TK_I32);
    tk_op *op = tk_op_new(m->f, TK_OP_REDUCE, m->loc, 1, &x, 1, &type, 0);
    op->at.kind = TK_K_MAX;
    op->at.axis = TK_AXIS_ALL;
    tk_op_insert_before(m->before, op);
    return op->res[0];
}

static tk_vid scalar_const(tk_math *m, int64_t x) {
    const tk_type *type = tk_type_scalar(m->f->module->arena, TK_I32);
    tk_op *op = tk_op_new(m->f, TK_OP_CONST, m->loc, 0, NULL, 1, &type, 0);
    op->at.value = tk_const_i64(TK_I32, x);
    tk_op_insert_before(m->before, op);
    return op->res[0];
}

// One round: r = r 2^k mod b, with k of what is left.
static void one_round(tk_math *m, tk_vid r, tk_vid b, tk_vid left, tk_vid most, tk_vid out[2]) {
    const tk_vid k = mmin(m, left, most);
    out[0] = rem(m, shl(m, r, tk_math_cast(m, k, TK_U64)), b);
    out[1] = sub(m, left, k);
}

// a 2^left mod b
static tk_vid long_division(tk_math *m, tk_vid a, tk_vid b, tk_vid left, int bits_a_round) {
    const tk_vid most = whole(m, m->it, bits_a_round);
    const tk_vid last = whole(m, m->it, bits_a_round - 1);
    const tk_vid rounds = mdiv(m, add(m, left, last), most);
    const tk_vid init[] = {rem(m, a, b), left};
    const tk_vid opnd[] = {scalar_const(m, 0), scalar_i32(m, rounds), scalar_const(m, 1), init[0],
                           init[1]};
    const tk_type *types[] = {tk_value_type(m->f, init[0]), tk_value_type(m->f, init[1])};
    tk_op *loop = tk_op_new(m->f, TK_OP_FOR, m->loc, 5, opnd, 2, types, 1);
    tk_op_insert_before(m->before, loop);
    tk_region *body = loop->reg[0] = tk_region_new(m->f, loop);
    (void)tk_region_arg(body, tk_value_type(m->f, opnd[0]), NULL);
    const tk_vid r = tk_region_arg(body, types[0], NULL), l = tk_region_arg(body, types[1], NULL);
    tk_math inner = *m;
    inner.before = NULL;
    inner.into = body;
    tk_vid next[2];
    one_round(&inner, r, b, l, most, next);
    tk_op_append(body, tk_op_new(m->f, TK_OP_YIELD, m->loc, 2, next, 0, NULL, 0));
    m->ops = inner.ops;
    return loop->res[0];
}

// r 2^(exponent - bias - man), exact; the power may be subnormal, so that it is two factors.
static tk_vid put_together(tk_math *m, tk_vid r, tk_vid exponent) {
    const tk_vid e = addi_c(m, exponent, -(int64_t)m->bias - (int64_t)m->man);
    return tk_math_scale(m, tk_math_cast(m, r, m->t), e);
}

tk_vid tk_math_rem(tk_math *m, tk_vid x, tk_vid y) {
    const tk_vid ax = mabs(m, x), ay = mabs(m, y), inf = num(m, INFINITY);
    const whole_float a = take_apart(m, ax), b = take_apart(m, ay);
    const tk_vid zero = whole(m, m->it, 0);
    const tk_vid apart = sub(m, a.exponent, b.exponent);
    const tk_vid good = and(m, lt(m, ax, inf), gt(m, ay, num(m, 0))); // else NaN, no rounds
    const tk_vid left = choose(m, and(m, good, lt(m, ay, inf)), mmax(m, apart, zero), zero);
    const tk_vid r = long_division(m, a.mantissa, b.mantissa, left, m->t == TK_F32 ? 40 : 11);
    tk_vid v = put_together(m, r, b.exponent);
    v = choose(m, lt(m, ax, ay), ax, v);
    v = choose(m, and(m, good, eq(m, ay, ay)), v, num(m, NAN));
    return tk_math_with_sign(m, v, x);
}
