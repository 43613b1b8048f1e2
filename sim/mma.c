// SPDX-License-Identifier: Apache-2.0
// See mma.h.
#include "sim/mma.h"

#include "sim/floats.h"

#include <math.h>

enum {
    STEP = 16, // products that are added at once
    GUARD = 2, // bits of the unit below those of an f32
    F32_BITS = 24,
    LEAST = -149 // exponent of the least f32
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

// e with 2^e <= |x| < 2^(e + 1); x is neither 0 nor subnormal in f64.
static int exponent_of(double x) { return (int)(tk_f64_bits(x) >> 52 & 0x7ff) - 1023; }

static double power(int e) { return tk_f64_of_bits((uint64_t)(e + 1023) << 52); }

// The sum of terms, cut to the unit; NaN and infinities as IEEE has them.
static double cut_sum(const double *term, unsigned n) {
    int most = LEAST;
    double special = 0;
    for (unsigned k = 0; k < n; k++) {
        if (!isfinite(term[k])) {
            special += term[k];
        } else if (term[k] != 0 && exponent_of(term[k]) > most) {
            most = exponent_of(term[k]);
        }
    }
    if (special != 0) { // an infinity or NaN
        return special;
    }
    int unit = most - (F32_BITS - 1) - GUARD;
    double scale = power(-unit), sum = 0;
    bool minus = true; // a sum of nothing but -0 is -0
    for (unsigned k = 0; k < n; k++) {
        minus = minus && signbit(term[k]);
        sum += (double)(int32_t)(term[k] * scale); // less than 2^26
    }
    return sum == 0 && minus ? -0.0 : sum * power(unit);
}

uint32_t tk_sim_mma_dot(tk_sim_type t, uint32_t sum, const float *x, const float *y, unsigned n) {
    bool half = t == TK_SIM_F16;
    double s = tk_sim_widen(t, sum, false);
    for (unsigned from = 0; from < n; from += STEP) {
        double term[STEP + 1] = {s};
        unsigned m = n - from < STEP ? n - from : STEP;
        for (unsigned k = 0; k < m; k++) {
            term[k + 1] = (double)x[from + k] * (double)y[from + k];
        }
        s = cut_sum(term, m + 1);
        // What is too great is infinite, though it is cut.
        bool nearest = half || !(fabs(s) < power(128));
        uint64_t bits =
            tk_sim_narrow(t, s, nearest ? TK_SIM_ROUND_NEAREST : TK_SIM_ROUND_ZERO, false);
        sum = (uint32_t)bits;
        s = tk_sim_widen(t, bits, false);
    }
    return sum;
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
