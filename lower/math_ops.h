// SPDX-License-Identifier: Apache-2.0
// One op a call, named as in a formula. For lower/math_*.c.
#ifndef TK_LOWER_MATH_OPS_H
#define TK_LOWER_MATH_OPS_H

#include "lower/math.h"

#include <math.h>

#define TK_MATH_UNARY(NAME, CODE)                                                                  \
    static inline tk_vid NAME(tk_math *m, tk_vid a) {                                              \
        return tk_math_op(m, TK_OP_##CODE, tk_math_dtype(m, a), 1, &a);                            \
    }
#define TK_MATH_BINARY(NAME, CODE)                                                                 \
    static inline tk_vid NAME(tk_math *m, tk_vid a, tk_vid b) {                                    \
        const tk_vid x[] = {a, b};                                                                 \
        return tk_math_op(m, TK_OP_##CODE, tk_math_dtype(m, a), 2, x);                             \
    }
#define TK_MATH_COMPARE(NAME, CODE)                                                                \
    static inline tk_vid NAME(tk_math *m, tk_vid a, tk_vid b) {                                    \
        const tk_vid x[] = {a, b};                                                                 \
        return tk_math_op(m, TK_OP_##CODE, TK_BOOL, 2, x);                                         \
    }

TK_MATH_UNARY(neg, NEG)
TK_MATH_UNARY(mabs, ABS)
TK_MATH_UNARY(mrint, ROUND)
TK_MATH_UNARY(mtrunc, TRUNC)
TK_MATH_UNARY(msqrt, SQRT)
TK_MATH_UNARY(rcp, RCP)
TK_MATH_BINARY(add, ADD)
TK_MATH_BINARY(sub, SUB)
TK_MATH_BINARY(mul, MUL)
TK_MATH_BINARY(mdiv, DIV)
TK_MATH_BINARY(mmin, MIN)
TK_MATH_BINARY(mmax, MAX)
TK_MATH_BINARY(mfmin, FMIN)
TK_MATH_BINARY(mfmax, FMAX)
TK_MATH_BINARY(and, AND)
TK_MATH_BINARY(or, OR)
TK_MATH_BINARY(xor, XOR)
TK_MATH_BINARY(shl, SHL)
TK_MATH_BINARY(shr, SHR)
TK_MATH_BINARY(rem, REM)
TK_MATH_BINARY(mulhi, MULHI)
TK_MATH_COMPARE(eq, EQ)
TK_MATH_COMPARE(ne, NE)
TK_MATH_COMPARE(lt, LT)
TK_MATH_COMPARE(le, LE)
TK_MATH_COMPARE(gt, GT)

static inline tk_vid mfma(tk_math *m, tk_vid a, tk_vid b, tk_vid c) {
    const tk_vid x[] = {a, b, c};
    return tk_math_op(m, TK_OP_FMA, m->t, 3, x);
}
static inline tk_vid choose(tk_math *m, tk_vid c, tk_vid a, tk_vid b) {
    const tk_vid x[] = {c, a, b};
    return tk_math_op(m, TK_OP_SELECT, tk_math_dtype(m, a), 3, x);
}

// Constants: a float of the function's type; an integer of a type.
static inline tk_vid num(tk_math *m, double x) {
    return tk_math_const_of(m, tk_const_f64(m->t, x));
}
static inline tk_vid whole(tk_math *m, tk_dtype t, int64_t x) {
    return tk_math_const_of(m, tk_const_i64(t, x));
}
// The i-th of a polynomial's coefficients, or of a constant's parts.
static inline tk_vid coeff(tk_math *m, tk_poly_id id, size_t i) {
    size_t n;
    return num(m, tk_poly(id, m->t, &n)[i]);
}

static inline tk_vid add_c(tk_math *m, tk_vid a, double c) { return add(m, a, num(m, c)); }
static inline tk_vid mul_c(tk_math *m, tk_vid a, double c) { return mul(m, a, num(m, c)); }
static inline tk_vid addi_c(tk_math *m, tk_vid a, int64_t c) {
    return add(m, a, whole(m, tk_math_dtype(m, a), c));
}
static inline tk_vid shl_c(tk_math *m, tk_vid a, int64_t c) {
    return shl(m, a, whole(m, tk_math_dtype(m, a), c));
}
static inline tk_vid shr_c(tk_math *m, tk_vid a, int64_t c) {
    return shr(m, a, whole(m, tk_math_dtype(m, a), c));
}
static inline tk_vid and_c(tk_math *m, tk_vid a, int64_t c) {
    return and(m, a, whole(m, tk_math_dtype(m, a), c));
}

// a if the type is f32, else b
static inline double by_type(const tk_math *m, double a, double b) {
    return m->t == TK_F32 ? a : b;
}

#undef TK_MATH_UNARY
#undef TK_MATH_BINARY
#undef TK_MATH_COMPARE
#endif
