// SPDX-License-Identifier: Apache-2.0
// Exponentials and what is made of them: exp, exp2, expm1, sinh, cosh, tanh, sigmoid. What is made
// of e^x itself is in f32 computed by the GPU's instruction (math_near.c). Here:
//
// x = n log 2 + r with |r| <= log(2)/2; a polynomial for the function of r; multiplication by
// powers of two. Arguments are clamped to where the result is infinite, zero or constant already,
// so that the exponents stay in range; a NaN passes through clamp and polynomial.
#include "lower/math_ops.h"

static tk_vid clamp(tk_math *m, tk_vid x, double lo, double hi) {
    return mmin(m, mmax(m, x, num(m, lo)), num(m, hi));
}

// e^r - 1
static tk_vid expm1_poly(tk_math *m, tk_vid r) {
    return mfma(m, mul(m, r, r), tk_math_poly(m, TK_POLY_EXP, r), r);
}

tk_vid tk_math_exp(tk_math *m, tk_vid x) {
    if (m->t == TK_F32) {
        return tk_math_near_exp(m, x);
    }
    x = clamp(m, x, -746, 710);
    const tk_math_exponent e = tk_math_exp_reduce(m, x);
    return tk_math_scale(m, add_c(m, expm1_poly(m, e.r), 1), e.n);
}

tk_vid tk_math_exp2(tk_math *m, tk_vid x) {
    if (m->t == TK_F32) {
        return tk_math_near_exp2(m, x);
    }
    x = clamp(m, x, -1076, 1024);
    const tk_vid k = mrint(m, x);
    const tk_vid r = sub(m, x, k);
    const tk_vid y = mfma(m, r, tk_math_poly(m, TK_POLY_EXP2, r), num(m, 1));
    return tk_math_scale(m, y, tk_math_cast(m, k, m->it));
}

// 2^n (e^r - 1) + (2^n - 1), halved in between so that 2^n never overflows. x is clamped.
static tk_vid expm1_inner(tk_math *m, tk_vid x) {
    const tk_math_exponent e = tk_math_exp_reduce(m, x);
    const tk_vid half = tk_math_pow2(m, addi_c(m, e.n, -1));
    const tk_vid sum = mfma(m, half, expm1_poly(m, e.r), add_c(m, half, -0.5));
    return add(m, sum, sum);
}

// Below this size f(x) = x + c x^2 or x + c x^3 is x to the rounding.
static tk_vid is_tiny(tk_math *m, tk_vid size) {
    return lt(m, size, num(m, by_type(m, 0x1p-26, 0x1p-55)));
}

tk_vid tk_math_expm1(tk_math *m, tk_vid x) {
    const tk_vid tiny = is_tiny(m, mabs(m, x));
    const tk_vid in = clamp(m, x, by_type(m, -18, -38), by_type(m, 89, 710));
    return choose(m, tiny, x, expm1_inner(m, in));
}

typedef struct hyper { // sinh and cosh of |x|, halved
    tk_vid sinh, cosh;
} hyper;

// With s = sinh r, d = cosh r - 1, a = (2^n + 2^-n)/2, b = (2^n - 2^-n)/2: sinh x = b + (a s + b d)
// and cosh x = a + (b s + a d). Nothing is lost where the sum is less than its parts: for n = 0 b
// is 0, else a and b are exact there.
static hyper sinh_cosh(tk_math *m, tk_vid size) {
    const tk_vid x = mmin(m, size, num(m, by_type(m, 89.5, 710.6)));
    const tk_math_exponent e = tk_math_exp_reduce(m, x);
    const tk_vid z = mul(m, e.r, e.r);
    const tk_vid s = mfma(m, mul(m, e.r, z), tk_math_poly(m, TK_POLY_SINH, z), e.r);
    const tk_vid d = mul(m, z, tk_math_poly(m, TK_POLY_COSH, z));
    const tk_vid down = sub(m, whole(m, m->it, -2), e.n); // -n - 2, not below the normal numbers
    const tk_vid p = tk_math_pow2(m, addi_c(m, e.n, -2));
    const tk_vid q = tk_math_pow2(m, mmax(m, down, whole(m, m->it, 1 - m->bias)));
    const tk_vid a = add(m, p, q), b = sub(m, p, q);
    return (hyper){add(m, b, mfma(m, a, s, mul(m, b, d))), add(m, a, mfma(m, b, s, mul(m, a, d)))};
}

tk_vid tk_math_sinh(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x);
    const tk_vid half = sinh_cosh(m, size).sinh;
    const tk_vid y = choose(m, is_tiny(m, size), size, add(m, half, half));
    return tk_math_with_sign(m, y, x);
}

tk_vid tk_math_cosh(tk_math *m, tk_vid x) {
    const tk_vid half = sinh_cosh(m, mabs(m, x)).cosh;
    return add(m, half, half);
}

// t / (t + 2) with t = e^(2|x|) - 1
tk_vid tk_math_tanh(tk_math *m, tk_vid x) {
    if (m->t == TK_F32) {
        return tk_math_near_tanh(m, x);
    }
    const tk_vid size = mabs(m, x), in = mmin(m, size, num(m, 20));
    const tk_vid t = expm1_inner(m, add(m, in, in));
    const tk_vid y = mdiv(m, t, add_c(m, t, 2));
    return tk_math_with_sign(m, choose(m, is_tiny(m, size), size, y), x);
}

// With e = e^-|x|: 1 / (1 + e) or e / (1 + e).
tk_vid tk_math_sigmoid(tk_math *m, tk_vid x) {
    if (m->t == TK_F32) {
        return tk_math_near_sigmoid(m, x);
    }
    const tk_vid e = tk_math_exp(m, neg(m, mabs(m, x)));
    const tk_vid one = num(m, 1);
    const tk_vid top = choose(m, lt(m, x, num(m, 0)), e, one);
    return mdiv(m, top, add(m, e, one));
}
