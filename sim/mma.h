// SPDX-License-Identifier: Apache-2.0
// Sums of products as tensor cores form them.
//
// This is what an H200 does, bit for bit, as far as tests/data shows. Products are exact. They and
// the sum so far are cut, toward zero, to multiples of a unit, and added exactly. The greatest of
// them fixes the unit: 2^-25 of its exponent, which of a product is the sum of its factors', which
// of a subnormal is that of the least normal number. All products of an instruction are added at
// once. The sum is cut to f32, or rounded to f16.
//
// f8 in wgmma: the unit is 2^-13 of the greatest, and the result has no more bits than that. f8 in
// mma.sync: products whose k % 4 is below 2 are added to 0 as if they were f16, the others to the
// sum of these, and to that the accumulator is added as by add.rn.
#ifndef TK_SIM_MMA_H
#define TK_SIM_MMA_H

#include "sim/machine.h"

enum { TK_SIM_MMA_MOST = 32 }; // products of one sum

typedef struct tk_sim_mma_types {
    tk_sim_type d, a, b; // of the sum: f32 or f16; of the factors
    bool group;          // wgmma
} tk_sim_mma_types;

// sum + x[0] y[0] + ...: the bits of the sum. tf32: the operands are cut first.
uint32_t tk_sim_mma_dot(tk_sim_mma_types t, uint32_t sum, const float *x, const float *y,
                        unsigned n);
// The same of integers; satfinite clamps.
uint32_t tk_sim_mma_dot_int(uint32_t sum, const int32_t *x, const int32_t *y, unsigned n,
                            bool satfinite);
// The bits of an operand's element as a float: exact.
float tk_sim_mma_float(tk_sim_type t, uint32_t bits);
// One register: elements of successive k, into rows of floats or, for integers, of integers.
void tk_sim_mma_spread(tk_sim_type t, uint32_t reg, float *f, int32_t *x);
// The 16 rows of A that lie in `n` registers of a warp.
void tk_sim_mma_rows(const tk_sim_warp *w, const tk_sim_arg *a, unsigned n, tk_sim_type t,
                     float (*f)[TK_SIM_MMA_MOST], int32_t (*x)[TK_SIM_MMA_MOST]);

#endif
