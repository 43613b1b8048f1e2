// SPDX-License-Identifier: Apache-2.0
// Inverse circular functions and erf: asin, acos, atan, atan2, erf.
#include "lower/math_ops.h"

// a - b where a is k times pi/2 in two parts: the low part goes with b.
static tk_vid from_quarters(tk_math *m, double k, tk_vid b) {
    size_t n;
    const double *c = tk_poly(TK_POLY_PI_2, m->t, &n);
    return sub(m, num(m, k * c[0]), sub(m, b, num(m, k * c[1])));
}

typedef struct arc {
    tk_vid size, big; // |x|; whether it is above 1/2
    tk_vid w;         // asin |x|, or where big asin sqrt((1 - |x|) / 2)
} arc;

// |x| > 1 gives the root of a negative number: NaN.
static arc arc_sine(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x), half = num(m, 0.5);
    const tk_vid big = gt(m, size, half);
    const tk_vid z = choose(m, big, mul(m, sub(m, num(m, 1), size), half), mul(m, size, size));
    const tk_vid s = choose(m, big, msqrt(m, z), size);
    const tk_vid w = mfma(m, mul(m, s, z), tk_math_poly(m, TK_POLY_ASIN, z), s);
    return (arc){size, big, w};
}

tk_vid tk_math_asin(tk_math *m, tk_vid x) {
    const arc a = arc_sine(m, x);
    const tk_vid y = choose(m, a.big, from_quarters(m, 1, add(m, a.w, a.w)), a.w);
    return tk_math_with_sign(m, y, x);
}

tk_vid tk_math_acos(tk_math *m, tk_vid x) {
    const arc a = arc_sine(m, x);
    const tk_vid two = add(m, a.w, a.w);
    const tk_vid minus = lt(m, x, num(m, 0));
    const tk_vid outer = choose(m, minus, from_quarters(m, 2, two), two);
    const tk_vid inner = from_quarters(m, 1, tk_math_with_sign(m, a.w, x));
    return choose(m, a.big, outer, inner);
}

// of t within [0, 1]
static tk_vid atan_poly(tk_math *m, tk_vid t) {
    const tk_vid z = mul(m, t, t);
    return mfma(m, mul(m, t, z), tk_math_poly(m, TK_POLY_ATAN, z), t);
}

tk_vid tk_math_atan(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x);
    const tk_vid big = gt(m, size, num(m, 1));
    const tk_vid p = atan_poly(m, choose(m, big, rcp(m, size), size));
    return tk_math_with_sign(m, choose(m, big, from_quarters(m, 1, p), p), x);
}

static tk_vid is_negative(tk_math *m, tk_vid x) { // by its sign bit
    return lt(m, tk_math_bits(m, x, m->it), whole(m, m->it, 0));
}

tk_vid tk_math_atan2(tk_math *m, tk_vid y, tk_vid x) {
    const tk_vid ax = mabs(m, x), ay = mabs(m, y);
    const tk_vid lo = mmin(m, ax, ay), hi = mmax(m, ax, ay);
    tk_vid t = mdiv(m, lo, hi);
    t = choose(m, eq(m, hi, num(m, 0)), hi, t);
    t = choose(m, eq(m, lo, num(m, INFINITY)), num(m, 1), t);
    tk_vid p = atan_poly(m, t);
    p = choose(m, gt(m, ay, ax), from_quarters(m, 1, p), p);
    p = choose(m, is_negative(m, x), from_quarters(m, 2, p), p);
    return tk_math_with_sign(m, p, y);
}

// Intervals of 1 - erf in f64: the ends, and the middles from which the polynomials count.
static const struct {
    double from, middle;
    tk_poly_id id;
} pieces[] = {{1, 1.5, TK_POLY_ERFC_0},
              {2, 2.5, TK_POLY_ERFC_1},
              {3, 3.5, TK_POLY_ERFC_2},
              {4, 5, TK_POLY_ERFC_3}};
enum { PIECES = sizeof pieces / sizeof *pieces };

// The value that belongs to the piece in which x is.
static tk_vid by_piece(tk_math *m, const tk_vid *from, const tk_vid *value) {
    tk_vid v = value[0];
    for (size_t i = 1; i < PIECES; i++) {
        v = choose(m, from[i], value[i], v);
    }
    return v;
}

// erfc of x within [1, the end of the last piece]: one polynomial with chosen coefficients.
static tk_vid erfc_poly(tk_math *m, tk_vid x) {
    tk_vid from[PIECES] = {0}, value[PIECES];
    const double *c[PIECES];
    size_t terms = 0;
    for (size_t i = 0; i < PIECES; i++) {
        from[i] = i ? le(m, num(m, pieces[i].from), x) : 0;
        value[i] = num(m, pieces[i].middle);
        c[i] = tk_poly(pieces[i].id, m->t, &terms);
    }
    const tk_vid d = sub(m, x, by_piece(m, from, value));
    tk_vid p = 0;
    for (size_t k = terms; k-- > 0;) {
        for (size_t i = 0; i < PIECES; i++) {
            value[i] = num(m, c[i][k]);
        }
        const tk_vid a = by_piece(m, from, value);
        p = p ? mfma(m, p, d, a) : a;
    }
    return p;
}

tk_vid tk_math_erf(tk_math *m, tk_vid x) {
    if (m->t == TK_F32) {
        return tk_math_near_erf(m, x);
    }
    const tk_vid size = mmin(m, mabs(m, x), num(m, 6));
    const tk_vid inner = mfma(m, size, tk_math_poly(m, TK_POLY_ERF, mul(m, size, size)), size);
    const tk_vid outer = sub(m, num(m, 1), erfc_poly(m, size));
    const tk_vid y = choose(m, lt(m, size, num(m, 1)), inner, outer);
    return tk_math_with_sign(m, y, x);
}
