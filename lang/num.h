// SPDX-License-Identifier: Apache-2.0
//
// Scalar numerics: the exact meaning of every operation and cast of the language on one element.
// The checker's constant folder, the fold pass and the CPU executor all get their values here (the
// executor from num_inline.h, whose functions the ones below call), so they cannot disagree.
//
// A tk_const is one element: its type and its storage pattern, zero-extended to 64 bits (a bool is
// 0 or 1, i8 -1 is 0xff, f16 1.0 is 0x3c00). Every function accepts every pattern and gives a
// well-formed one back: nothing traps, and no result depends on errno. The floating-point
// environment is the C default (round to nearest even, subnormals kept).
//
// Rules
// - Integers wrap. Division truncates; x / 0 = 0, x % 0 = x, least / -1 = least, least % -1 = 0.
//   A shift count below 0 or of the width or more gives 0, or all sign bits for a signed >>.
// - cdiv is the ceiling of the true quotient, 0 for a divisor of 0. next_pow2(x) is 1 for x <= 1
//   and 0 where the power does not fit the type. clz(0) is the width.
// - Floats are IEEE, one rounding an operation, to nearest even. In floats of fewer than 32 bits an
//   operation is the f32 operation rounded once to the type; fma has one rounding in every type.
//   % is C's fmod. round goes to even on ties.
// - f16 and bf16 overflow to infinity. The f8 types saturate: what is rounded to one of them and is
//   too large or infinite becomes 448 (f8e4m3) or 57344 (f8e5m2) with its sign.
// - min, max, fmin, fmax, clamp, select, neg, abs and rounding to an integer never round, so an
//   f8e5m2 infinity passes through them. min and max give a NaN operand back; fmin and fmax give
//   the other one. -0 is less than +0 for these four. clamp(x, lo, hi) is min(max(x, lo), hi).
// - neg flips and abs clears the sign bit, of NaN too.
// - Float to integer truncates, saturates, and sends NaN to 0. Integer to float rounds once.
//   To bool is x != 0 (NaN true, -0.0 false).
// - A NaN narrowed to f16 or bf16 keeps its sign and the top of its payload and becomes quiet; to
//   an f8 type it becomes 0x7f. Which NaN an arithmetic operation gives is not fixed.
// - Functions with an error bound (BOUND in numops.def) are computed in f64 by the C library and
//   rounded once for f32. Special values are those of C11 Annex F (so pow(x, 0) = pow(1, y) = 1
//   also for NaN); rsqrt(+-0) = +-inf, rsqrt(inf) = 0, sigmoid(-inf) = 0, sigmoid(inf) = 1.
#ifndef TK_LANG_NUM_H
#define TK_LANG_NUM_H

#include "lang/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tk_const {
    tk_dtype dtype;
    uint64_t bits;
} tk_const;

typedef enum tk_numop {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE) TK_NUM_##ID,
#include "lang/numops.def"
    TK_NUM_COUNT
} tk_numop;

// --- the operations as data ---

const char *tk_numop_name(tk_numop op);
unsigned tk_numop_arity(tk_numop op);
bool tk_numop_is_exact(tk_numop op);               // may be folded
bool tk_numop_takes(tk_numop op, tk_dtype t);      // false for what is no element type
tk_dtype tk_numop_result(tk_numop op, tk_dtype t); // the result's type for operands of type t
bool tk_numop_from_name(const char *name, size_t n, tk_numop *out);

// --- evaluation ---
// The operands' patterns are read as type t (for select: the last two). An operation that does not
// take t gives the zero of its result type; ask tk_numop_takes first.

tk_const tk_num_unary(tk_numop op, tk_dtype t, tk_const a);
tk_const tk_num_binary(tk_numop op, tk_dtype t, tk_const a, tk_const b);
tk_const tk_num_ternary(tk_numop op, tk_dtype t, tk_const a, tk_const b, tk_const c);
// The same by array: reads tk_numop_arity(op) elements of args.
tk_const tk_num_eval(tk_numop op, tk_dtype t, const tk_const *args);
tk_const tk_num_select(bool cond, tk_const a, tk_const b);

// All pairs of element types; a cast to the same type changes nothing.
tk_const tk_cast(tk_const x, tk_dtype to);

// --- making and reading constants ---

tk_const tk_const_bool(bool x);
tk_const tk_const_i64(tk_dtype t, int64_t x);  // as cast from i64
tk_const tk_const_u64(tk_dtype t, uint64_t x); // as cast from u64
tk_const tk_const_f64(tk_dtype t, double x);   // as cast from f64
int64_t tk_const_as_i64(tk_const x);           // as cast to i64
double tk_const_as_f64(tk_const x);            // as cast to f64
bool tk_const_is_nan(tk_const x);
bool tk_const_is_inf(tk_const x);
bool tk_const_is_zero(tk_const x);          // either zero of a float
bool tk_const_same(tk_const a, tk_const b); // the same type and pattern

// The bounds of a type's order: the identity of max and of min. Infinities where the type has them.
tk_const tk_const_least(tk_dtype t);
tk_const tk_const_greatest(tk_dtype t);

// Whether type t holds the integer (negative ? -magnitude : magnitude) exactly. Not for bool.
bool tk_num_holds_int(tk_dtype t, bool negative, uint64_t magnitude);

// The element in memory (tk_dtype_size bytes, any alignment, the host's byte order). Any non-zero
// byte loads as true; a store of a bool writes 0 or 1.
tk_const tk_const_load(tk_dtype t, const void *p);
void tk_const_store(tk_const x, void *p);

#endif
