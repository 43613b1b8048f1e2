// SPDX-License-Identifier: Apache-2.0
// Logarithms and roots: log, log2, log1p, rsqrt.
//
// x = 2^e (1 + f). In f32 log(1 + f) = f - f^2/2 + f^3 P(f), without a division; in f64, where that
// polynomial would be long, with s = f / (2 + f): log(1 + f) = 2 s + s^3 Q(s^2) = f - s (f - s^2
// Q). The parts of the sum are added from the smallest.
#include "lower/math_ops.h"

// log(1 + f) - f
static tk_vid log1p_rest(tk_math *m, tk_vid f) {
    if (m->t == TK_F32) {
        const tk_vid p = mfma(m, f, tk_math_poly(m, TK_POLY_LOG, f), num(m, -0.5));
        return mul(m, mul(m, f, f), p);
    }
    const tk_vid s = mdiv(m, f, add_c(m, f, 2));
    const tk_vid z = mul(m, s, s);
    const tk_vid q = mul(m, z, tk_math_poly(m, TK_POLY_ATANH, z));
    return mul(m, s, sub(m, q, f));
}

// y for x above 0 and finite; the values elsewhere. x = +inf gives itself.
static tk_vid at_ends(tk_math *m, tk_vid x, tk_vid y) {
    const tk_vid zero = num(m, 0), inf = num(m, INFINITY);
    const tk_vid below = choose(m, eq(m, x, zero), num(m, -INFINITY), num(m, NAN));
    return choose(m, gt(m, x, zero), choose(m, eq(m, x, inf), inf, y), below);
}

// e log 2 + f + rest
static tk_vid with_exponent(tk_math *m, tk_math_mantissa p, tk_vid rest) {
    const tk_vid low = mfma(m, p.e, coeff(m, TK_POLY_LN2, 1), rest);
    return mfma(m, p.e, coeff(m, TK_POLY_LN2, 0), add(m, p.f, low));
}

tk_vid tk_math_log(tk_math *m, tk_vid x) {
    const tk_math_mantissa p = tk_math_split(m, x);
    return at_ends(m, x, with_exponent(m, p, log1p_rest(m, p.f)));
}

tk_vid tk_math_log2(tk_math *m, tk_vid x) {
    const tk_math_mantissa p = tk_math_split(m, x);
    const tk_vid y = add(m, p.f, log1p_rest(m, p.f));
    const tk_vid low = mfma(m, y, coeff(m, TK_POLY_LOG2E, 1), p.e);
    return at_ends(m, x, mfma(m, y, coeff(m, TK_POLY_LOG2E, 0), low));
}

// u = 1 + x loses c of the sum, exactly known. With c scaled like f: log(1 + f + c) is
// log(1 + f) + c (1 - f), as c^2 and c f^2 are too small to be seen.
tk_vid tk_math_log1p(tk_math *m, tk_vid x) {
    const tk_vid one = num(m, 1);
    const tk_vid u = add(m, x, one);
    const tk_vid below = lt(m, x, one);
    const tk_vid hi = choose(m, below, one, x), lo = choose(m, below, x, one);
    const tk_vid lost = sub(m, lo, sub(m, u, hi));
    const tk_math_mantissa p = tk_math_split(m, u);
    const tk_vid e = tk_math_cast(m, p.e, m->it); // where it is great, c is nothing
    const tk_vid down = mmax(m, sub(m, whole(m, m->it, 0), e), whole(m, m->it, 1 - m->bias));
    const tk_vid c = mul(m, lost, tk_math_pow2(m, down));
    const tk_vid rest = mfma(m, c, sub(m, one, p.f), log1p_rest(m, p.f));
    const tk_vid y = at_ends(m, u, with_exponent(m, p, rest));
    const tk_vid tiny = lt(m, mabs(m, x), num(m, by_type(m, 0x1p-26, 0x1p-55)));
    return choose(m, tiny, x, y);
}

tk_vid tk_math_rsqrt(tk_math *m, tk_vid x) {
    return m->t == TK_F32 ? tk_math_near_rsqrt(m, x) : rcp(m, msqrt(m, x));
}
