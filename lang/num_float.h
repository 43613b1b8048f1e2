// SPDX-License-Identifier: Apache-2.0
//
// Operations on floats as inline functions. Part of num_inline.h, which explains the names.
// Operations that only choose an operand or touch its sign work on the bit pattern, so that NaN
// payloads, signed zeros and the infinity of f8e5m2 pass through unchanged.
#ifndef TK_LANG_NUM_FLOAT_H
#define TK_LANG_NUM_FLOAT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// --- fma: one rounding in every type ---
// A product of two f32 or narrower values is exact in f64. The sum with c is rounded to odd: the
// error of the rounded sum (Knuth's two-sum, itself exact) tells on which side the true sum lies,
// and an even last bit is moved there. The rounding to the type then sees no false tie.

static inline double tk_fma_to_odd(double a, double b, double c) {
    const double p = a * b;
    const double s = p + c;
    const double v = s - p;
    const double err = (p - (s - v)) + (c - v);
    const uint64_t u = tk_f64_bits(s);
    const bool inexact = err < 0.0 || err > 0.0; // false where s is not finite: err is a NaN
    const uint64_t step = (err > 0.0) == (s > 0.0) ? 1 : UINT64_MAX;
    return tk_f64_of_bits(inexact && (u & 1) == 0 ? u + step : u);
}

static inline float tk_fma_f32(float a, float b, float c) {
    return (float)tk_fma_to_odd((double)a, (double)b, (double)c);
}
static inline double tk_fma_f64(double a, double b, double c) { return fma(a, b, c); }

// --- comparisons, selections and signs, for all floats ---
// T suffix, C the C type, U the type of the pattern, F float or double, TO_F widening, TO_U and
// OF_U between C and pattern, SIGN the pattern's sign bit. Where a == b their patterns are equal
// but for zeros: | gives the negative zero if there is one, & the positive.

#define TK_FLOAT_OPS(T, C, U, F, TO_F, TO_U, OF_U, SIGN)                                           \
    static inline bool tk_eq_##T(C a, C b) { return TO_F(a) == TO_F(b); }                          \
    static inline bool tk_ne_##T(C a, C b) { return TO_F(a) != TO_F(b); }                          \
    static inline bool tk_lt_##T(C a, C b) { return TO_F(a) < TO_F(b); }                           \
    static inline bool tk_le_##T(C a, C b) { return TO_F(a) <= TO_F(b); }                          \
    static inline bool tk_gt_##T(C a, C b) { return TO_F(a) > TO_F(b); }                           \
    static inline bool tk_ge_##T(C a, C b) { return TO_F(a) >= TO_F(b); }                          \
    static inline bool tk_isnan_##T(C a) { return TO_F(a) != TO_F(a); }                            \
    static inline bool tk_isinf_##T(C a) {                                                         \
        return TO_F(a) == (F)INFINITY || TO_F(a) == -(F)INFINITY;                                  \
    }                                                                                              \
    static inline C tk_neg_##T(C a) { return OF_U((U)(TO_U(a) ^ (SIGN))); }                        \
    static inline C tk_abs_##T(C a) { return OF_U((U)(TO_U(a) & (U) ~(SIGN))); }                   \
    static inline C tk_select_##T(bool c, C a, C b) { return c ? a : b; }                          \
    static inline uint64_t tk_put_##T(C a) { return TO_U(a); }                                     \
    static inline C tk_get_##T(uint64_t bits) { return OF_U((U)bits); }                            \
    static inline C tk_fmin_##T(C a, C b) {                                                        \
        const F x = TO_F(a), y = TO_F(b);                                                          \
        const U ua = TO_U(a), ub = TO_U(b);                                                        \
        U r = x < y ? ua : ub;                                                                     \
        r = x == y ? (U)(ua | ub) : r;                                                             \
        return OF_U(y != y ? ua : r);                                                              \
    }                                                                                              \
    static inline C tk_fmax_##T(C a, C b) {                                                        \
        const F x = TO_F(a), y = TO_F(b);                                                          \
        const U ua = TO_U(a), ub = TO_U(b);                                                        \
        U r = x > y ? ua : ub;                                                                     \
        r = x == y ? (U)(ua & ub) : r;                                                             \
        return OF_U(y != y ? ua : r);                                                              \
    }                                                                                              \
    static inline C tk_min_##T(C a, C b) {                                                         \
        const F x = TO_F(a), y = TO_F(b);                                                          \
        const U ua = TO_U(a), ub = TO_U(b);                                                        \
        U r = x < y ? ua : ub;                                                                     \
        r = x == y ? (U)(ua | ub) : r;                                                             \
        return OF_U(x != x ? ua : r);                                                              \
    }                                                                                              \
    static inline C tk_max_##T(C a, C b) {                                                         \
        const F x = TO_F(a), y = TO_F(b);                                                          \
        const U ua = TO_U(a), ub = TO_U(b);                                                        \
        U r = x > y ? ua : ub;                                                                     \
        r = x == y ? (U)(ua & ub) : r;                                                             \
        return OF_U(x != x ? ua : r);                                                              \
    }                                                                                              \
    static inline C tk_clamp_##T(C x, C lo, C hi) { return tk_min_##T(tk_max_##T(x, lo), hi); }

#define TK_AS_IS(x) (x)
TK_FLOAT_OPS(f8e4m3, uint8_t, uint8_t, float, tk_f8e4m3_to_f32, TK_AS_IS, TK_AS_IS, 0x80)
TK_FLOAT_OPS(f8e5m2, uint8_t, uint8_t, float, tk_f8e5m2_to_f32, TK_AS_IS, TK_AS_IS, 0x80)
TK_FLOAT_OPS(f16, uint16_t, uint16_t, float, tk_f16_to_f32, TK_AS_IS, TK_AS_IS, 0x8000)
TK_FLOAT_OPS(bf16, uint16_t, uint16_t, float, tk_bf16_to_f32, TK_AS_IS, TK_AS_IS, 0x8000)
TK_FLOAT_OPS(f32, float, uint32_t, float, TK_AS_IS, tk_f32_bits, tk_f32_of_bits, 0x80000000U)
TK_FLOAT_OPS(f64, double, uint64_t, double, TK_AS_IS, tk_f64_bits, tk_f64_of_bits,
             0x8000000000000000U)
#undef TK_AS_IS
#undef TK_FLOAT_OPS

// --- arithmetic of f32 and f64 ---
// S is the C library's suffix for the type.

#define TK_WIDE_OPS(T, C, S)                                                                       \
    static inline C tk_add_##T(C a, C b) { return a + b; }                                         \
    static inline C tk_sub_##T(C a, C b) { return a - b; }                                         \
    static inline C tk_mul_##T(C a, C b) { return a * b; }                                         \
    static inline C tk_div_##T(C a, C b) { return a / b; }                                         \
    static inline C tk_rem_##T(C a, C b) { return fmod##S(a, b); }                                 \
    static inline C tk_floor_##T(C a) { return floor##S(a); }                                      \
    static inline C tk_ceil_##T(C a) { return ceil##S(a); }                                        \
    static inline C tk_round_##T(C a) { return rint##S(a); }                                       \
    static inline C tk_trunc_##T(C a) { return trunc##S(a); }                                      \
    static inline C tk_sqrt_##T(C a) { return sqrt##S(a); }                                        \
    static inline C tk_rcp_##T(C a) { return 1 / a; }

TK_WIDE_OPS(f32, float, f)
TK_WIDE_OPS(f64, double, )
#undef TK_WIDE_OPS

// --- arithmetic of narrower floats: the f32 operation rounded once ---
// Rounding to an integer is exact in the type and leaves infinity and NaN alone.

#define TK_NARROW_OPS(T, C)                                                                        \
    static inline C tk_add_##T(C a, C b) {                                                         \
        return tk_f32_to_##T(tk_##T##_to_f32(a) + tk_##T##_to_f32(b));                             \
    }                                                                                              \
    static inline C tk_sub_##T(C a, C b) {                                                         \
        return tk_f32_to_##T(tk_##T##_to_f32(a) - tk_##T##_to_f32(b));                             \
    }                                                                                              \
    static inline C tk_mul_##T(C a, C b) {                                                         \
        return tk_f32_to_##T(tk_##T##_to_f32(a) * tk_##T##_to_f32(b));                             \
    }                                                                                              \
    static inline C tk_div_##T(C a, C b) {                                                         \
        return tk_f32_to_##T(tk_##T##_to_f32(a) / tk_##T##_to_f32(b));                             \
    }                                                                                              \
    static inline C tk_rem_##T(C a, C b) {                                                         \
        return tk_f32_to_##T(fmodf(tk_##T##_to_f32(a), tk_##T##_to_f32(b)));                       \
    }                                                                                              \
    static inline C tk_fma_##T(C a, C b, C c) {                                                    \
        return tk_f64_to_##T(                                                                      \
            tk_fma_to_odd(tk_##T##_to_f64(a), tk_##T##_to_f64(b), tk_##T##_to_f64(c)));            \
    }                                                                                              \
    static inline C tk_integral_##T(C a, float r) {                                                \
        const float x = tk_##T##_to_f32(a);                                                        \
        return x - x == 0.0F ? tk_f32_to_##T(r) : a;                                               \
    }                                                                                              \
    static inline C tk_floor_##T(C a) { return tk_integral_##T(a, floorf(tk_##T##_to_f32(a))); }   \
    static inline C tk_ceil_##T(C a) { return tk_integral_##T(a, ceilf(tk_##T##_to_f32(a))); }     \
    static inline C tk_round_##T(C a) { return tk_integral_##T(a, rintf(tk_##T##_to_f32(a))); }    \
    static inline C tk_trunc_##T(C a) { return tk_integral_##T(a, truncf(tk_##T##_to_f32(a))); }

TK_NARROW_OPS(f8e4m3, uint8_t)
TK_NARROW_OPS(f8e5m2, uint8_t)
TK_NARROW_OPS(f16, uint16_t)
TK_NARROW_OPS(bf16, uint16_t)
#undef TK_NARROW_OPS

// --- functions with an error bound: f64 by the C library, f32 from f64 ---

static inline double tk_rsqrt_f64(double x) { return 1.0 / sqrt(x); }

// Each side uses the exponential that cannot overflow.
static inline double tk_sigmoid_f64(double x) {
    const double e = exp(x < 0.0 ? x : -x);
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

#define TK_MATH_FROM_F64(OP)                                                                       \
    static inline float tk_##OP##_f32(float x) { return (float)tk_##OP##_f64((double)x); }
#define TK_MATH_1(OP)                                                                              \
    static inline double tk_##OP##_f64(double x) { return OP(x); }                                 \
    TK_MATH_FROM_F64(OP)
#define TK_MATH_2(OP)                                                                              \
    static inline double tk_##OP##_f64(double x, double y) { return OP(x, y); }                    \
    static inline float tk_##OP##_f32(float x, float y) {                                          \
        return (float)tk_##OP##_f64((double)x, (double)y);                                         \
    }

TK_MATH_1(exp)
TK_MATH_1(exp2)
TK_MATH_1(expm1)
TK_MATH_1(log)
TK_MATH_1(log2)
TK_MATH_1(log1p)
TK_MATH_1(sin)
TK_MATH_1(cos)
TK_MATH_1(tan)
TK_MATH_1(asin)
TK_MATH_1(acos)
TK_MATH_1(atan)
TK_MATH_1(sinh)
TK_MATH_1(cosh)
TK_MATH_1(tanh)
TK_MATH_1(erf)
TK_MATH_2(atan2)
TK_MATH_2(pow)
TK_MATH_FROM_F64(rsqrt)
TK_MATH_FROM_F64(sigmoid)

#undef TK_MATH_2
#undef TK_MATH_1
#undef TK_MATH_FROM_F64

#endif
