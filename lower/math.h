// SPDX-License-Identifier: Apache-2.0
// Sequences of ops for mathematical functions, for one element type and shape at a time.
//
// A tk_math is a place in the IR, a float type (f32 or f64) and a shape. The functions at the end
// each add the ops of one mathematical function there and give its result. They are straight lines
// of element-wise ops: where the cases differ all are computed and one is selected. The bounds and
// methods are in docs/math.md.
//
// The helpers below make one op each and are named as in a formula. What a helper of two operands
// with suffix _c takes last is a constant.
#ifndef TK_LOWER_MATH_H
#define TK_LOWER_MATH_H

#include "ir/ir.h"

typedef struct tk_math_const {
    tk_const value;
    tk_vid v;
} tk_math_const;

typedef struct tk_math {
    tk_func *f;
    tk_arena *scratch;
    tk_region *into;      // ops go to its end; or
    tk_op *before;        // where this is not NULL, before it
    tk_loc loc;           // of the op that is replaced
    tk_dtype t, it, ut;   // the float type, and the integers of its width
    const tk_type *shape; // any type of the shape
    unsigned man, bits;   // stored bits of the fraction, of all
    int bias;             // of the exponent
    TK_VEC(tk_math_const) consts;
    unsigned ops; // made so far
} tk_math;

// ---- Making ops
void tk_math_open(tk_math *m, tk_func *f, tk_arena *scratch, tk_op *before, tk_dtype t);
tk_vid tk_math_op(tk_math *m, tk_opcode code, tk_dtype result, uint32_t n, const tk_vid *opnd);
tk_vid tk_math_const_of(tk_math *m, tk_const c);
tk_dtype tk_math_dtype(const tk_math *m, tk_vid v);
tk_vid tk_math_cast(tk_math *m, tk_vid v, tk_dtype to);
tk_vid tk_math_bits(tk_math *m, tk_vid v, tk_dtype to); // bitcast

typedef enum {
#define TK_MATH_POLYS                                                                              \
    TK_MATH_POLY(EXP)                                                                              \
    TK_MATH_POLY(EXP2)                                                                             \
    TK_MATH_POLY(LOG)                                                                              \
    TK_MATH_POLY(ATANH)                                                                            \
    TK_MATH_POLY(ATANH_TAIL)                                                                       \
    TK_MATH_POLY(SIN)                                                                              \
    TK_MATH_POLY(COS)                                                                              \
    TK_MATH_POLY(TAN)                                                                              \
    TK_MATH_POLY(ASIN)                                                                             \
    TK_MATH_POLY(ATAN)                                                                             \
    TK_MATH_POLY(SINH)                                                                             \
    TK_MATH_POLY(COSH)                                                                             \
    TK_MATH_POLY(TANH)                                                                             \
    TK_MATH_POLY(ERF)                                                                              \
    TK_MATH_POLY(ERFC_LOG)                                                                         \
    TK_MATH_POLY(ERFC_0)                                                                           \
    TK_MATH_POLY(ERFC_1)                                                                           \
    TK_MATH_POLY(ERFC_2)                                                                           \
    TK_MATH_POLY(ERFC_3)                                                                           \
    TK_MATH_POLY(LN2)                                                                              \
    TK_MATH_POLY(LOG2E)                                                                            \
    TK_MATH_POLY(TWO_LOG2E)                                                                        \
    TK_MATH_POLY(PI_2)                                                                             \
    TK_MATH_POLY(THIRD)
#define TK_MATH_POLY(NAME) TK_POLY_##NAME,
    TK_MATH_POLYS
#undef TK_MATH_POLY
        TK_POLY_COUNT
} tk_poly_id;

// Coefficients, that of the power 0 first, in the type t.
const double *tk_poly(tk_poly_id id, tk_dtype t, size_t *n);
const uint64_t *tk_two_over_pi(tk_dtype t, size_t *n); // words, from the most significant
tk_vid tk_math_poly(tk_math *m, tk_poly_id id, tk_vid x);

// ---- Parts that several functions share
tk_vid tk_math_pow2(tk_math *m, tk_vid n);            // 2^n for n of a normal number
tk_vid tk_math_scale(tk_math *m, tk_vid y, tk_vid n); // y 2^n, rounded once; n may be twice as wide
tk_vid tk_math_with_sign(tk_math *m, tk_vid v, tk_vid sign_of); // v has no sign

typedef struct tk_math_exponent { // x = n log 2 + r
    tk_vid n, r;
} tk_math_exponent;
tk_math_exponent tk_math_exp_reduce(tk_math *m, tk_vid x);

typedef struct tk_math_mantissa { // x = 2^e (1 + f), 1 + f within [sqrt(1/2), sqrt(2)), x > 0
    tk_vid e, f;                  // e as a float
} tk_math_mantissa;
tk_math_mantissa tk_math_split(tk_math *m, tk_vid x);

// ---- By the GPU's instructions, in f32 (math_near.c)

typedef struct tk_math_power { // 2^n of an x log2 b = n + r
    tk_vid sum;                // its pattern's lower bits are the exponent of 2^n
    tk_vid minus_n;
} tk_math_power;
tk_math_power tk_math_power_split(tk_math *m, tk_vid x, double log2_base);
tk_vid tk_math_power_times(tk_math *m, tk_math_power p, tk_vid r); // 2^n 2^r
tk_vid tk_math_near_rcp(tk_math *m, tk_vid x);                     // |x| within 2^-126 and 2^126
tk_vid tk_math_near_exp(tk_math *m, tk_vid x);
tk_vid tk_math_near_exp2(tk_math *m, tk_vid x);
tk_vid tk_math_near_sigmoid(tk_math *m, tk_vid x);
tk_vid tk_math_near_tanh(tk_math *m, tk_vid x);
tk_vid tk_math_near_erf(tk_math *m, tk_vid x);
tk_vid tk_math_near_rsqrt(tk_math *m, tk_vid x);

// ---- The functions
tk_vid tk_math_exp(tk_math *m, tk_vid x);
tk_vid tk_math_exp2(tk_math *m, tk_vid x);
tk_vid tk_math_expm1(tk_math *m, tk_vid x);
tk_vid tk_math_log(tk_math *m, tk_vid x);
tk_vid tk_math_log2(tk_math *m, tk_vid x);
tk_vid tk_math_log1p(tk_math *m, tk_vid x);
tk_vid tk_math_rsqrt(tk_math *m, tk_vid x);
tk_vid tk_math_sin(tk_math *m, tk_vid x);
tk_vid tk_math_cos(tk_math *m, tk_vid x);
tk_vid tk_math_tan(tk_math *m, tk_vid x);
tk_vid tk_math_asin(tk_math *m, tk_vid x);
tk_vid tk_math_acos(tk_math *m, tk_vid x);
tk_vid tk_math_atan(tk_math *m, tk_vid x);
tk_vid tk_math_atan2(tk_math *m, tk_vid y, tk_vid x);
tk_vid tk_math_sinh(tk_math *m, tk_vid x);
tk_vid tk_math_cosh(tk_math *m, tk_vid x);
tk_vid tk_math_tanh(tk_math *m, tk_vid x);
tk_vid tk_math_erf(tk_math *m, tk_vid x);
tk_vid tk_math_pow(tk_math *m, tk_vid x, tk_vid y);
tk_vid tk_math_sigmoid(tk_math *m, tk_vid x);
tk_vid tk_math_rem(tk_math *m, tk_vid x, tk_vid y); // exact; has a loop

#endif
