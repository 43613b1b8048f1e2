// SPDX-License-Identifier: Apache-2.0
// pow: 2^(y log2 |x|), with log2 |x| and the product as sums of two floats, then the sign and the
// special values of C11 Annex F.
#include "lower/math_ops.h"

typedef struct pair { // hi + lo, lo much the smaller
    tk_vid hi, lo;
} pair;

// The exact product of two floats.
static pair times(tk_math *m, tk_vid a, tk_vid b) {
    const tk_vid hi = mul(m, a, b);
    return (pair){hi, mfma(m, a, b, neg(m, hi))};
}

static pair times_pair(tk_math *m, pair a, pair b) {
    const pair p = times(m, a.hi, b.hi);
    const tk_vid cross = mfma(m, a.hi, b.lo, mul(m, a.lo, b.hi));
    return (pair){p.hi, add(m, p.lo, cross)};
}

// a + b + low for |a| >= |b| or a = 0
static pair sum(tk_math *m, tk_vid a, tk_vid b, tk_vid low) {
    const tk_vid hi = add(m, a, b);
    return (pair){hi, add(m, sub(m, b, sub(m, hi, a)), low)};
}

static pair constant(tk_math *m, tk_poly_id id) { return (pair){coeff(m, id, 0), coeff(m, id, 1)}; }

// f / (2 + f)
static pair quotient(tk_math *m, tk_vid f) {
    const tk_vid two = num(m, 2);
    const tk_vid d = add(m, f, two);
    const tk_vid lost = sub(m, f, sub(m, d, two));
    const tk_vid inverse = m->t == TK_F32 ? tk_math_near_rcp(m, d) : rcp(m, d);
    const tk_vid s = mul(m, f, inverse);
    const tk_vid rest = mfma(m, neg(m, s), d, f);
    return (pair){s, mul(m, mfma(m, neg(m, s), lost, rest), inverse)};
}

// log2(1 + f) = 2/log 2 (s + s (s^2/3 + s^4 T(s^2))); the first terms as pairs, the tail, which is
// 2^-12 of the whole at most, as one float.
static pair log2_pair(tk_math *m, tk_math_mantissa x) {
    const pair s = quotient(m, x.f);
    pair z = times(m, s.hi, s.hi);
    const tk_vid twice = add(m, s.hi, s.hi);
    z.lo = mfma(m, twice, s.lo, z.lo);
    const tk_vid tail = mul(m, mul(m, z.hi, z.hi), tk_math_poly(m, TK_POLY_ATANH_TAIL, z.hi));
    pair g = times_pair(m, z, constant(m, TK_POLY_THIRD));
    g.lo = add(m, g.lo, tail);
    const pair u = times_pair(m, s, constant(m, TK_POLY_TWO_LOG2E));
    const pair v = times_pair(m, u, g);
    const pair l = sum(m, u.hi, v.hi, add(m, u.lo, v.lo));
    const pair whole_log = sum(m, x.e, l.hi, l.lo);
    return sum(m, whole_log.hi, whole_log.lo, num(m, 0));
}

// 2^(p.hi + p.lo)
static tk_vid exp2_pair(tk_math *m, pair p) {
    const double lo = by_type(m, -160, -1100), hi = by_type(m, 130, 1030);
    const tk_vid in = lt(m, mabs(m, p.hi), num(m, -lo));
    const tk_vid low = choose(m, in, p.lo, num(m, 0)); // NaN where p.hi is infinite
    if (m->t == TK_F32) {
        const tk_math_power n = tk_math_power_split(m, p.hi, 1);
        return tk_math_power_times(m, n, add(m, add(m, p.hi, n.minus_n), low));
    }
    const tk_vid x = mmin(m, mmax(m, p.hi, num(m, lo)), num(m, hi));
    const tk_vid k = mrint(m, x);
    const tk_vid r = add(m, sub(m, x, k), low);
    const tk_vid y = mfma(m, r, tk_math_poly(m, TK_POLY_EXP2, r), num(m, 1));
    return tk_math_scale(m, y, tk_math_cast(m, k, m->it));
}

tk_vid tk_math_pow(tk_math *m, tk_vid x, tk_vid y) {
    const tk_vid zero = num(m, 0), one = num(m, 1), inf = num(m, INFINITY), nan = num(m, NAN);
    const tk_vid size = mabs(m, x);
    pair l = log2_pair(m, tk_math_split(m, size));
    l.hi = choose(m, eq(m, size, zero), num(m, -INFINITY), choose(m, eq(m, size, inf), inf, l.hi));
    pair p = times(m, y, l.hi);
    p.lo = mfma(m, y, l.lo, p.lo);
    tk_vid v = exp2_pair(m, p);
    v = choose(m, eq(m, size, one), one, v); // where y is infinite too

    const tk_vid is_whole = eq(m, mtrunc(m, y), y);
    const tk_vid half = mul_c(m, y, 0.5);
    const tk_vid odd = and(m, is_whole, ne(m, mtrunc(m, half), half));
    v = tk_math_with_sign(m, v, choose(m, odd, x, one));
    // A negative number, not -0 or -inf, to a power that is no integer.
    const tk_vid none = and(m, lt(m, x, zero), lt(m, size, inf));
    v = choose(m, and(m, none, ne(m, mtrunc(m, y), y)), nan, v);
    const tk_vid unordered = or (m, ne(m, x, x), ne(m, y, y));
    v = choose(m, unordered, nan, v);
    return choose(m, or (m, eq(m, y, zero), eq(m, x, one)), one, v);
}
