// SPDX-License-Identifier: Apache-2.0
// See mma.h.
#include "sim/mma.h"

#include "sim/floats.h"

#include <math.h>

enum {
    BITS = 25,    // of the unit below the greatest term
    BITS_F8 = 13, // of f8 in wgmma
    NONE = -100000
};

float tk_sim_mma_float(tk_sim_type t, uint32_t bits) {
    bits = t == TK_SIM_TF32 ? bits & ~UINT32_C(0x1fff) : bits;
    return (float)tk_sim_widen(t, bits, false);
}

static int32_t integer(tk_sim_type t, uint32_t bits) {
    return t == TK_SIM_S8 ? (int8_t)(uint8_t)bits : (int32_t)(bits & 0xff);
}

void tk_sim_mma_spread(tk_sim_type t, uint32_t reg, float *f, int32_t *x) {
    unsigned bits = tk_sim_types[t].bits;
    for (unsigned b = 0; b < 32 / bits; b++) {
        uint32_t element = bits == 32 ? reg : reg >> b * bits & ((1u << bits) - 1);
        if (tk_sim_types[t].kind == 'f') {
            f[b] = tk_sim_mma_float(t, element);
        } else {
            x[b] = integer(t, element);
        }
    }
}

void tk_sim_mma_rows(const tk_sim_warp *w, const tk_sim_arg *a, unsigned n, tk_sim_type t,
                     float (*f)[TK_SIM_MMA_MOST], int32_t (*x)[TK_SIM_MMA_MOST]) {
    unsigned e = 32u / tk_sim_types[t].bits;
    for (unsigned r = 0; r < n; r++) {
        const uint64_t *reg = tk_sim_get(w, a + r);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            unsigned row = l / 4 + 8 * (r % 2), k = e * (l % 4) + 4 * e * (r / 2);
            tk_sim_mma_spread(t, (uint32_t)reg[l], &f[row][k], &x[row][k]);
        }
    }
}

static double power(int e) { return tk_f64_of_bits((uint64_t)(e + 1023) << 52); }

// The exponent of the least normal number.
static int least_exponent(tk_sim_type t) {
    return t == TK_SIM_F16 || t == TK_SIM_E5M2 ? -14 : t == TK_SIM_E4M3 ? -6 : -126;
}

static bool is_f8(tk_sim_type t) { return t == TK_SIM_E4M3 || t == TK_SIM_E5M2; }

// As the format stores it.
static int stored_exponent(float x, int least) {
    int e = (int)(tk_f32_bits(x) >> 23 & 0xff) - 127;
    return e > least ? e : least;
}

// Infinities and NaN as IEEE has them.
static float special_sum(float s, const float *x, const float *y, unsigned n) {
    double sum = isfinite(s) ? 0 : (double)s;
    for (unsigned k = 0; k < n; k++) {
        double p = (double)x[k] * (double)y[k];
        sum += isfinite(p) ? 0 : p;
    }
    return (float)sum;
}

// The greatest exponent of the products but zeros; NONE: there are only zeros. Without branches, as
// most of the time of a product goes here.
static int greatest_exponent(tk_sim_mma_types t, const float *x, const float *y, unsigned n) {
    const int lx = least_exponent(t.a), ly = least_exponent(t.b);
    int most = NONE;
    for (unsigned k = 0; k < n; k++) {
        int e = stored_exponent(x[k], lx) + stored_exponent(y[k], ly);
        e = x[k] != 0 && y[k] != 0 ? e : NONE;
        most = e > most ? e : most;
    }
    return most;
}

// Whether all factors are finite, as their products in f64 are then; *minus stays where all
// products have the sign bit.
static bool all_finite(const float *x, const float *y, unsigned n, bool *minus) {
    uint32_t special = 0, signs = UINT32_C(1) << 31;
    for (unsigned k = 0; k < n; k++) {
        uint32_t a = tk_f32_bits(x[k]), b = tk_f32_bits(y[k]);
        special |= (uint32_t)((a & 0x7f800000) == 0x7f800000) | ((b & 0x7f800000) == 0x7f800000);
        signs &= a ^ b;
    }
    *minus = *minus && signs;
    return !special;
}

// s + x[0] y[0] + ..., cut to the unit. False: there are infinities or NaN.
static bool cut_sum(tk_sim_mma_types t, float s, const float *x, const float *y, unsigned n,
                    unsigned bits, double *sum) {
    bool minus = signbit(s) != 0; // a sum of nothing but -0 is -0
    bool finite = all_finite(x, y, n, &minus) && isfinite(s);
    int most = greatest_exponent(t, x, y, n);
    int own = s != 0 ? stored_exponent(s, least_exponent(t.d)) : NONE;
    most = own > most ? own : most;
    if (!finite || most == NONE) {
        *sum = minus ? -0.0 : 0.0;
        return finite;
    }
    double scale = power((int)bits - most);
    int64_t units = (int64_t)((double)s * scale);
    for (unsigned k = 0; k < n; k++) { // each is below 2^(bits + 2)
        units += (int32_t)((double)x[k] * (double)y[k] * scale);
    }
    *sum = (double)units * power(most - (int)bits);
    return true;
}

// Without what is below so many bits after the first.
static double cut_bits(double x, unsigned bits) {
    return x == 0 ? x : tk_f64_of_bits(tk_f64_bits(x) & ~UINT64_C(0) << (52 - bits));
}

static uint32_t rounded(tk_sim_type t, double x) {
    // What is too great is infinite, though it is cut.
    bool nearest = t == TK_SIM_F16 || !(fabs(x) < power(128));
    return (uint32_t)tk_sim_narrow(t, x, nearest ? TK_SIM_ROUND_NEAREST : TK_SIM_ROUND_ZERO, false);
}

static uint32_t dot(tk_sim_mma_types t, uint32_t sum, const float *x, const float *y, unsigned n) {
    bool short_sum = t.group && is_f8(t.a);
    float s = (float)tk_sim_widen(t.d, sum, false);
    double r;
    if (!cut_sum(t, s, x, y, n, short_sum ? BITS_F8 : BITS, &r)) {
        return rounded(t.d, (double)special_sum(s, x, y, n));
    }
    return rounded(t.d, short_sum && t.d == TK_SIM_F32 ? cut_bits(r, BITS_F8) : r);
}

// f8 in mma.sync.
static uint32_t dot_f8(tk_sim_mma_types t, uint32_t sum, const float *x, const float *y,
                       unsigned n) {
    uint32_t s = 0;
    for (unsigned first = 0; first < 4; first += 2) {
        float px[TK_SIM_MMA_MOST], py[TK_SIM_MMA_MOST];
        for (unsigned k = 0; k < n / 2; k++) {
            unsigned from = k / 2 * 4 + first + k % 2;
            px[k] = x[from];
            py[k] = y[from];
        }
        tk_sim_mma_types halves = {t.d, TK_SIM_F16, TK_SIM_F16, false};
        s = dot(halves, s, px, py, n / 2);
    }
    double total = tk_sim_widen(t.d, s, false) + tk_sim_widen(t.d, sum, false);
    return (uint32_t)tk_sim_narrow(t.d, total, TK_SIM_ROUND_NEAREST, false);
}

uint32_t tk_sim_mma_dot(tk_sim_mma_types t, uint32_t sum, const float *x, const float *y,
                        unsigned n) {
    return is_f8(t.a) && !t.group ? dot_f8(t, sum, x, y, n) : dot(t, sum, x, y, n);
}

uint32_t tk_sim_mma_dot_int(uint32_t sum, const int32_t *x, const int32_t *y, unsigned n,
                            bool satfinite) {
    int64_t s = (int32_t)sum;
    for (unsigned k = 0; k < n; k++) {
        s += (int64_t)x[k] * y[k];
    }
    if (satfinite) {
        s = s < INT32_MIN ? INT32_MIN : s > INT32_MAX ? INT32_MAX : s;
    }
    return (uint32_t)(uint64_t)s;
}
