// SPDX-License-Identifier: Apache-2.0
// The unit for special functions, as an H200 has it: each result's bits.
//
// A table is indexed by the leading bits of the argument's fraction (7 of a reciprocal, else 6; 0
// to 4 of tanh). With the next 17 bits as a fraction t, v = c0 + c1 t + c2 s, where s is the square
// of t without the partial products below 2^-15. v is cut to 24 bits. The tables are fitted
// (scripts/fit-mufu) to the results over whole ranges, all of which they give. Subnormal arguments
// and results are zero.
#ifndef TK_SIM_MUFU_H
#define TK_SIM_MUFU_H

#include "lang/base.h"

typedef enum tk_sim_mufu_function {
    TK_SIM_MUFU_RCP,
    TK_SIM_MUFU_RSQ,
    TK_SIM_MUFU_SQRT,
    TK_SIM_MUFU_EX2,
    TK_SIM_MUFU_LG2,
    TK_SIM_MUFU_SIN, // of turns
    TK_SIM_MUFU_COS,
    TK_SIM_MUFU_TANH
} tk_sim_mufu_function;

// Of an f32 and as an f32.
uint32_t tk_sim_mufu(tk_sim_mufu_function f, uint32_t x);
// The reciprocal, or that of the root, of an f64: from its upper word the result's, whose lower
// word is 0.
uint32_t tk_sim_mufu_high(bool root_too, uint32_t x);

#endif
