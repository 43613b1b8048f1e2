// SPDX-License-Identifier: Apache-2.0
// Sums of products as tensor cores form them.
//
// Products are exact. A sum of floats is formed in steps of some products: in each, the products
// and the sum so far are cut, toward zero, to multiples of a unit that the greatest of them fixes,
// and added exactly; the result is cut to f32 again, or rounded to f16. This is how public
// measurements describe the hardware; the bits of a GPU may differ in the last places. Where all
// terms are integers below 2^24, as in any exact case, the result is exact.
#ifndef TK_SIM_MMA_H
#define TK_SIM_MMA_H

#include "sim/machine.h"

enum { TK_SIM_MMA_MOST = 32 }; // products of one sum

// sum + x[0] y[0] + ... of elements in floats of at most 32 bits; `sum` is f32 or f16 (by t), the
// result too. tf32: the operands are cut first.
uint32_t tk_sim_mma_dot(tk_sim_type t, uint32_t sum, const float *x, const float *y, unsigned n);
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
