// SPDX-License-Identifier: Apache-2.0
// Circular functions: sin, cos, tan.
//
// |x| = q pi/2 + r with |r| <= pi/4. x is an integer M times a power of two, and of x 2/pi only the
// value modulo 4 is of interest: M times those bits of 2/pi that are not of multiples of 4, in
// integers (after Payne and Hanek). A window of 96 (f32) or 192 (f64) bits, from where the
// product's weight falls below 4, leaves more right bits than the nearest multiple of pi/2 cancels.
// It is exact enough for every finite argument, so that there is no second method for small ones: a
// select would not save its cost.
#include "lower/math_ops.h"

enum { MOST_WORDS = 19 };

typedef struct quadrant {
    tk_vid r, low; // r + low, at most pi/4
    tk_vid q;      // its number, as an unsigned integer; modulo 4
} quadrant;

// The four words of 2/pi from number `at` on, which is below 2^levels: halves what is left by one
// bit of `at` at a time.
static void four_words(tk_math *m, tk_vid at, unsigned levels, tk_vid out[4]) {
    size_t n;
    const uint64_t *bits = tk_two_over_pi(m->t, &n);
    tk_vid w[MOST_WORDS];
    const tk_vid zero = whole(m, m->ut, 0);
    size_t step = (size_t)1 << levels;
    TK_CHECK(m->scratch, n == step + 3 && n <= MOST_WORDS);
    for (size_t i = 0; i < n; i++) {
        w[i] = tk_math_const_of(m, (tk_const){m->ut, bits[i]});
    }
    while ((step /= 2) > 0) {
        const tk_vid bit = ne(m, and_c(m, at, (int64_t)step), zero);
        for (size_t i = 0; i < step + 3; i++) {
            w[i] = choose(m, bit, w[i + step], w[i]);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        out[i] = w[i];
    }
}

// The three words from bit `start` of 2/pi on. The greatest start is a word beyond the last four:
// there the shift is by the whole width.
static void window(tk_math *m, tk_vid start, tk_vid out[3]) {
    tk_vid w[4];
    const unsigned width_log2 = m->t == TK_F32 ? 5 : 6, levels = m->t == TK_F32 ? 2 : 4;
    const tk_vid last = whole(m, m->ut, ((int64_t)1 << levels) - 1);
    const tk_vid at = mmin(m, shr_c(m, start, width_log2), last);
    four_words(m, at, levels, w);
    const tk_vid left = sub(m, start, shl_c(m, at, width_log2));
    const tk_vid right = sub(m, whole(m, m->ut, m->bits), left);
    for (int i = 0; i < 3; i++) {
        out[i] = or (m, shl(m, w[i], left), shr(m, w[i + 1], right));
    }
}

// The upper 64 bits of the 96 of M w, as u64.
static tk_vid product_f32(tk_math *m, tk_vid mantissa, const tk_vid w[3]) {
    const tk_vid x = tk_math_cast(m, mantissa, TK_U64);
    const tk_vid p0 = shl_c(m, mul(m, x, tk_math_cast(m, w[0], TK_U64)), 32);
    const tk_vid p1 = mul(m, x, tk_math_cast(m, w[1], TK_U64));
    const tk_vid p2 = shr_c(m, mul(m, x, tk_math_cast(m, w[2], TK_U64)), 32);
    return add(m, p0, add(m, p1, p2));
}

// q and the distance from it, in quarters of a turn; the words as they come.
static void parts_f32(tk_math *m, tk_vid mantissa, const tk_vid w[3], tk_vid *q, tk_vid *part) {
    const tk_vid acc = product_f32(m, mantissa, w);
    const tk_vid up = addi_c(m, acc, (int64_t)1 << 61);
    *q = tk_math_cast(m, shr_c(m, up, 62), m->ut);
    const tk_vid rest = tk_math_bits(m, shl_c(m, acc, 2), TK_I64);
    *part = mul_c(m, tk_math_cast(m, rest, m->t), 0x1p-64);
}

static void parts_f64(tk_math *m, tk_vid x, const tk_vid w[3], tk_vid *q, tk_vid *part) {
    const tk_vid l1 = mul(m, x, w[1]), h2 = mulhi(m, x, w[2]);
    const tk_vid low = add(m, l1, h2);
    const tk_vid carry = tk_math_cast(m, lt(m, low, l1), m->ut);
    const tk_vid high = add(m, add(m, mul(m, x, w[0]), mulhi(m, x, w[1])), carry);
    *q = shr_c(m, addi_c(m, high, (int64_t)1 << 61), 62);
    const tk_vid rest = or (m, shl_c(m, high, 2), shr_c(m, low, 62));
    const tk_vid top = tk_math_cast(m, tk_math_bits(m, rest, m->it), m->t);
    const tk_vid bottom = tk_math_cast(m, shl_c(m, low, 2), m->t);
    *part = mfma(m, bottom, num(m, 0x1p-128), mul_c(m, top, 0x1p-64));
}

static quadrant reduce(tk_math *m, tk_vid size) {
    const tk_vid u = tk_math_bits(m, size, m->ut);
    const int64_t implied = (int64_t)1 << m->man;
    const tk_vid mantissa = or (m, and_c(m, u, implied - 1), whole(m, m->ut, implied));
    tk_vid w[3], q, part;
    // Bit 0 of the window is that of weight 2 in the product: the first where x is from 1/2 on.
    window(m, addi_c(m, shr_c(m, u, m->man), -(int64_t)(m->bias - 1)), w);
    if (m->t == TK_F32) {
        parts_f32(m, mantissa, w, &q, &part);
    } else {
        parts_f64(m, mantissa, w, &q, &part);
    }
    const tk_vid quarter = coeff(m, TK_POLY_PI_2, 0);
    const tk_vid r = mul(m, part, quarter);
    const tk_vid err = mfma(m, part, quarter, neg(m, r));
    const tk_vid low = mfma(m, part, coeff(m, TK_POLY_PI_2, 1), err);
    const tk_vid small = lt(m, size, num(m, 0.75)); // below pi/4
    return (quadrant){choose(m, small, size, r), choose(m, small, num(m, 0), low),
                      choose(m, small, whole(m, m->ut, 0), q)};
}

// sin(r + low) = sin r + low, cos(r + low) = cos r - r low, to the rounding
static tk_vid sin_poly(tk_math *m, quadrant p, tk_vid z) {
    const tk_vid rest = mfma(m, mul(m, p.r, z), tk_math_poly(m, TK_POLY_SIN, z), p.low);
    return add(m, p.r, rest);
}

static tk_vid cos_poly(tk_math *m, quadrant p, tk_vid z) {
    const tk_vid half = mfma(m, z, tk_math_poly(m, TK_POLY_COS, z), num(m, -0.5));
    const tk_vid rest = mfma(m, z, half, neg(m, mul(m, p.r, p.low)));
    return add_c(m, rest, 1);
}

// tan(r + low) = tan r + low (1 + tan(r)^2); of the last factor, a few bits will do
static tk_vid tan_poly(tk_math *m, quadrant p) {
    const tk_vid z = mul(m, p.r, p.r);
    const tk_vid low = mul(m, p.low, mfma(m, z, num(m, 1.375), num(m, 1)));
    const tk_vid rest = mfma(m, mul(m, p.r, z), tk_math_poly(m, TK_POLY_TAN, z), low);
    return add(m, p.r, rest);
}

// v with its sign changed where bit 1 of q is set
static tk_vid flip(tk_math *m, tk_vid v, tk_vid q) {
    const tk_vid sign = shl_c(m, shr_c(m, q, 1), (int64_t)m->bits - 1);
    return tk_math_bits(m, xor(m, tk_math_bits(m, v, m->ut), sign), m->t);
}

static tk_vid is_odd(tk_math *m, tk_vid q) { return ne(m, and_c(m, q, 1), whole(m, m->ut, 0)); }

// NaN for infinity and NaN
static tk_vid if_finite(tk_math *m, tk_vid size, tk_vid y) {
    return choose(m, lt(m, size, num(m, INFINITY)), y, num(m, NAN));
}

static tk_vid change_sign_as(tk_math *m, tk_vid v, tk_vid x) {
    const tk_vid top = tk_math_const_of(m, (tk_const){m->ut, (uint64_t)1 << (m->bits - 1)});
    const tk_vid sign = and(m, tk_math_bits(m, x, m->ut), top);
    return tk_math_bits(m, xor(m, tk_math_bits(m, v, m->ut), sign), m->t);
}

tk_vid tk_math_sin(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x);
    const quadrant p = reduce(m, size);
    const tk_vid z = mul(m, p.r, p.r);
    const tk_vid y = choose(m, is_odd(m, p.q), cos_poly(m, p, z), sin_poly(m, p, z));
    return if_finite(m, size, change_sign_as(m, flip(m, y, p.q), x));
}

tk_vid tk_math_cos(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x);
    const quadrant p = reduce(m, size);
    const tk_vid z = mul(m, p.r, p.r);
    const tk_vid y = choose(m, is_odd(m, p.q), sin_poly(m, p, z), cos_poly(m, p, z));
    return if_finite(m, size, flip(m, y, addi_c(m, p.q, 1)));
}

tk_vid tk_math_tan(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x);
    const quadrant p = reduce(m, size);
    const tk_vid t = tan_poly(m, p);
    const tk_vid y = choose(m, is_odd(m, p.q), neg(m, rcp(m, t)), t);
    return if_finite(m, size, change_sign_as(m, y, x));
}
