// SPDX-License-Identifier: Apache-2.0
// Floats of any type as doubles, and doubles rounded to a type in any of PTX's modes.
#ifndef TK_SIM_FLOATS_H
#define TK_SIM_FLOATS_H

#include "lang/num_inline.h"
#include "sim/program.h"

typedef enum tk_sim_round {
    TK_SIM_ROUND_NEAREST, // ties to even
    TK_SIM_ROUND_ZERO,
    TK_SIM_ROUND_DOWN,
    TK_SIM_ROUND_UP,
    TK_SIM_ROUND_AWAY // to nearest, ties away from zero
} tk_sim_round;

// What an instruction says (.rn, .rzi, ...); nearest where it says nothing.
tk_sim_round tk_sim_round_of(const tk_sim_inst *i);

// The value of the bits of a float type, exactly. ftz: what is subnormal in f32 or f16 is zero.
double tk_sim_widen(tk_sim_type t, uint64_t bits, bool ftz);
// The value rounded to the type. f8 types overflow to their greatest number, the others as IEEE
// says or, with `finite`, to their greatest number too. NaN becomes the type's canonical NaN.
uint64_t tk_sim_narrow(tk_sim_type t, double x, tk_sim_round mode, bool finite);
// Subnormals of f32 and f16 to zero, by sign.
uint64_t tk_sim_flush(tk_sim_type t, uint64_t bits);
// To [+0, 1]; NaN to +0.
uint64_t tk_sim_saturate(tk_sim_type t, uint64_t bits);
bool tk_sim_is_nan(tk_sim_type t, uint64_t bits);
uint64_t tk_sim_nan(tk_sim_type t); // canonical
// The NaN that an f64 operation on these gives: the last NaN among them, made quiet, else the
// default one, which is negative.
uint64_t tk_sim_f64_nan(uint64_t a, uint64_t b, uint64_t c);

// Near a result s that was rounded to nearest, whose exact value minus s has the sign of `rest`:
// the exact value rounded to odd, which can be rounded again to a shorter format without harm.
double tk_sim_to_odd(double s, double rest);

typedef enum tk_sim_arith {
    TK_SIM_ARITH_ADD,
    TK_SIM_ARITH_SUB,
    TK_SIM_ARITH_MUL,
    TK_SIM_ARITH_FMA, // x y + z
    TK_SIM_ARITH_DIV,
    TK_SIM_ARITH_SQRT
} tk_sim_arith;
// The operation on values of f32 or less, rounded to odd: to be rounded to the type.
double tk_sim_arith_odd(tk_sim_arith op, double x, double y, double z);
// Such a value rounded to the type. ftz: what would be subnormal if it were rounded to as many bits
// as a normal number has becomes zero.
uint64_t tk_sim_narrow_ftz(tk_sim_type t, double x, tk_sim_round mode, bool ftz);
// min and max of the bits of two floats, as the instruction's .NaN and .xorsign.abs say.
uint64_t tk_sim_pick(const tk_sim_inst *i, tk_sim_type t, uint64_t x, uint64_t y, bool max);

#endif
