// SPDX-License-Identifier: Apache-2.0
//
// Conversions between element types as inline functions. Part of num_inline.h, which explains the
// names. Floats of fewer than 32 bits are their codes (uint8_t, uint16_t). The functions have
// selections rather than branches so that loops over arrays can be vectorised.
#ifndef TK_LANG_NUM_CONVERT_H
#define TK_LANG_NUM_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// --- bit patterns of f32 and f64 ---

static inline uint32_t tk_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float tk_f32_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t tk_f64_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double tk_f64_of_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

// --- f32 and f64 to a narrower float ---
// A code is `width` bits: sign, exponent with this bias, `man` bits of fraction. A magnitude that
// is normal in the target is rounded in integers: half an ulp less one, plus the bit that becomes
// the last, are added before the low bits go. A smaller one is added to the power of two whose ulp
// is the target's least step, so that the adder rounds it. Both are computed always and one is
// chosen. What comes out above `limit` (infinity, or the greatest finite code where the type
// saturates) becomes `limit`. NaNs are not treated here.

static inline uint32_t tk_narrow_f32(float x, unsigned width, unsigned man, unsigned bias,
                                     int32_t limit) {
    const unsigned drop = 23 - man;
    const uint32_t magic = (151 - bias - man) << 23;
    const uint32_t u = tk_f32_bits(x);
    const uint32_t a = u & 0x7fffffffU;
    const uint32_t half = (1U << (drop - 1)) - 1 + ((a >> drop) & 1);
    const uint32_t normal = (a + half - ((127 - bias) << 23)) >> drop;
    const uint32_t subnormal = tk_f32_bits(tk_f32_of_bits(a) + tk_f32_of_bits(magic)) - magic;
    int32_t r = (int32_t)((int32_t)a < (int32_t)((128 - bias) << 23) ? subnormal : normal);
    r = r > limit ? limit : r;
    return (uint32_t)r | (u >> 31) << (width - 1);
}

static inline uint32_t tk_narrow_f64(double x, unsigned width, unsigned man, unsigned bias,
                                     int64_t limit) {
    const unsigned drop = 52 - man;
    const uint64_t magic = (uint64_t)(1076 - bias - man) << 52;
    const uint64_t u = tk_f64_bits(x);
    const uint64_t a = u & 0x7fffffffffffffffU;
    const uint64_t half = (1ULL << (drop - 1)) - 1 + ((a >> drop) & 1);
    const uint64_t normal = (a + half - ((uint64_t)(1023 - bias) << 52)) >> drop;
    const uint64_t subnormal = tk_f64_bits(tk_f64_of_bits(a) + tk_f64_of_bits(magic)) - magic;
    int64_t r = (int64_t)(a < (uint64_t)(1024 - bias) << 52 ? subnormal : normal);
    r = r > limit ? limit : r;
    return (uint32_t)((uint64_t)r | (u >> 63) << (width - 1));
}

static inline bool tk_f32_is_nan_bits(uint32_t u) { return (u & 0x7fffffffU) > 0x7f800000U; }

static inline bool tk_f64_is_nan_bits(uint64_t u) {
    return (u & 0x7fffffffffffffffU) > 0x7ff0000000000000U;
}

static inline uint16_t tk_f32_to_f16(float x) {
    const uint32_t u = tk_f32_bits(x);
    const uint32_t r = tk_narrow_f32(x, 16, 10, 15, 0x7c00);
    const uint32_t nan = (u >> 16 & 0x8000U) | 0x7e00U | (u >> 13 & 0x1ffU);
    return (uint16_t)(tk_f32_is_nan_bits(u) ? nan : r);
}

static inline uint16_t tk_f64_to_f16(double x) {
    const uint64_t u = tk_f64_bits(x);
    const uint32_t r = tk_narrow_f64(x, 16, 10, 15, 0x7c00);
    const uint32_t nan = (uint32_t)((u >> 48 & 0x8000U) | 0x7e00U | (u >> 42 & 0x1ffU));
    return (uint16_t)(tk_f64_is_nan_bits(u) ? nan : r);
}

// bf16 is the upper half of f32, subnormals and infinity included: no case to tell apart.
static inline uint16_t tk_f32_to_bf16(float x) {
    const uint32_t u = tk_f32_bits(x);
    const uint32_t r = (u + 0x7fffU + (u >> 16 & 1U)) >> 16;
    const uint32_t nan = u >> 16 | 0x40U;
    return (uint16_t)(tk_f32_is_nan_bits(u) ? nan : r);
}

static inline uint16_t tk_f64_to_bf16(double x) {
    const uint64_t u = tk_f64_bits(x);
    const uint32_t r = tk_narrow_f64(x, 16, 7, 127, 0x7f80);
    const uint32_t nan = (uint32_t)((u >> 48 & 0x8000U) | 0x7fc0U | (u >> 45 & 0x3fU));
    return (uint16_t)(tk_f64_is_nan_bits(u) ? nan : r);
}

static inline uint8_t tk_f32_to_f8e4m3(float x) {
    const uint32_t r = tk_narrow_f32(x, 8, 3, 7, 0x7e);
    return (uint8_t)(tk_f32_is_nan_bits(tk_f32_bits(x)) ? 0x7fU : r);
}

static inline uint8_t tk_f64_to_f8e4m3(double x) {
    const uint32_t r = tk_narrow_f64(x, 8, 3, 7, 0x7e);
    return (uint8_t)(tk_f64_is_nan_bits(tk_f64_bits(x)) ? 0x7fU : r);
}

static inline uint8_t tk_f32_to_f8e5m2(float x) {
    const uint32_t r = tk_narrow_f32(x, 8, 2, 15, 0x7b);
    return (uint8_t)(tk_f32_is_nan_bits(tk_f32_bits(x)) ? 0x7fU : r);
}

static inline uint8_t tk_f64_to_f8e5m2(double x) {
    const uint32_t r = tk_narrow_f64(x, 8, 2, 15, 0x7b);
    return (uint8_t)(tk_f64_is_nan_bits(tk_f64_bits(x)) ? 0x7fU : r);
}

static inline float tk_f64_to_f32(double x) { return (float)x; }
static inline float tk_f32_to_f32(float x) { return x; }
static inline double tk_f32_to_f64(float x) { return (double)x; }
static inline double tk_f64_to_f64(double x) { return x; }

// --- a narrower float to f32 and f64: exact ---
// The code is moved to the place of f32's exponent and fraction and rebiased. A subnormal gets the
// hidden bit that it must not have, which the subtraction takes away again and normalises.

static inline uint32_t tk_widen_code(uint32_t magnitude, unsigned man, unsigned bias) {
    const uint32_t moved = magnitude << (23 - man);
    const uint32_t least = (128 - bias) << 23; // the least normal
    const uint32_t normal = moved + ((127 - bias) << 23);
    const uint32_t subnormal = tk_f32_bits(tk_f32_of_bits(moved + least) - tk_f32_of_bits(least));
    return magnitude < 1U << man ? subnormal : normal;
}

static inline float tk_f16_to_f32(uint16_t code) {
    const uint32_t m = code & 0x7fffU;
    const uint32_t r = tk_widen_code(m, 10, 15);
    const uint32_t special = 0x7f800000U | m << 13; // infinity and NaN
    return tk_f32_of_bits((m >= 0x7c00U ? special : r) | (code & 0x8000U) << 16);
}

static inline float tk_bf16_to_f32(uint16_t code) { return tk_f32_of_bits((uint32_t)code << 16); }

static inline float tk_f8e4m3_to_f32(uint8_t code) {
    const uint32_t m = code & 0x7fU;
    const uint32_t r = tk_widen_code(m, 3, 7);
    return tk_f32_of_bits((m == 0x7fU ? 0x7fc00000U : r) | (code & 0x80U) << 24);
}

// The upper half of an f16.
static inline float tk_f8e5m2_to_f32(uint8_t code) {
    return tk_f16_to_f32((uint16_t)((uint32_t)code << 8));
}

static inline double tk_f16_to_f64(uint16_t code) { return (double)tk_f16_to_f32(code); }
static inline double tk_bf16_to_f64(uint16_t code) { return (double)tk_bf16_to_f32(code); }
static inline double tk_f8e4m3_to_f64(uint8_t code) { return (double)tk_f8e4m3_to_f32(code); }
static inline double tk_f8e5m2_to_f64(uint8_t code) { return (double)tk_f8e5m2_to_f32(code); }

// --- float to integer: truncates, saturates, NaN is 0 ---
// From f32 and narrower through f64, which is exact.

static inline double tk_clamp_to_range(double x, double least, double greatest) {
    double r = x == x ? x : 0.0;
    r = r < least ? least : r;
    return r > greatest ? greatest : r;
}

static inline int32_t tk_f64_to_i32(double x) {
    return (int32_t)tk_clamp_to_range(x, -2147483648.0, 2147483647.0);
}
static inline int16_t tk_f64_to_i16(double x) {
    return (int16_t)(int32_t)tk_clamp_to_range(x, -32768.0, 32767.0);
}
static inline int8_t tk_f64_to_i8(double x) {
    return (int8_t)(int32_t)tk_clamp_to_range(x, -128.0, 127.0);
}
static inline uint32_t tk_f64_to_u32(double x) {
    return (uint32_t)(int64_t)tk_clamp_to_range(x, 0.0, 4294967295.0);
}
static inline uint16_t tk_f64_to_u16(double x) {
    return (uint16_t)(int32_t)tk_clamp_to_range(x, 0.0, 65535.0);
}
static inline uint8_t tk_f64_to_u8(double x) {
    return (uint8_t)(int32_t)tk_clamp_to_range(x, 0.0, 255.0);
}

// The greatest i64 and u64 are no f64; the power of two above them is.
static inline int64_t tk_f64_to_i64(double x) {
    if (!(x < 0x1p63)) {
        return x == x ? INT64_MAX : 0;
    }
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static inline uint64_t tk_f64_to_u64(double x) {
    if (!(x < 0x1p64)) {
        return x == x ? UINT64_MAX : 0;
    }
    return x < 1.0 ? 0 : (uint64_t)x;
}

// --- integer to float: one rounding ---
// A 64-bit integer goes to a narrow float through an f64 that is rounded to odd: the bits that f64
// cannot hold are gathered into its last one, so that the second rounding sees a tie only where
// there is one.

static inline double tk_u64_to_f64_odd(uint64_t x) {
    const uint64_t sticky = (x & 0x7ffU) != 0 ? 0x800U : 0;
    return (double)(x >> 53 != 0 ? (x & ~(uint64_t)0x7ffU) | sticky : x);
}

static inline double tk_i64_to_f64_odd(int64_t x) {
    const double m = tk_u64_to_f64_odd(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -m : m;
}

#define TK_INT_TO_FLOAT(S, C, TO_ODD)                                                              \
    static inline double tk_##S##_to_f64(C x) { return (double)x; }                                \
    static inline float tk_##S##_to_f32(C x) { return (float)x; }                                  \
    static inline uint16_t tk_##S##_to_f16(C x) { return tk_f64_to_f16(TO_ODD(x)); }               \
    static inline uint16_t tk_##S##_to_bf16(C x) { return tk_f64_to_bf16(TO_ODD(x)); }             \
    static inline uint8_t tk_##S##_to_f8e4m3(C x) { return tk_f64_to_f8e4m3(TO_ODD(x)); }          \
    static inline uint8_t tk_##S##_to_f8e5m2(C x) { return tk_f64_to_f8e5m2(TO_ODD(x)); }

TK_INT_TO_FLOAT(i32, int32_t, (double))
TK_INT_TO_FLOAT(u32, uint32_t, (double))
TK_INT_TO_FLOAT(i64, int64_t, tk_i64_to_f64_odd)
TK_INT_TO_FLOAT(u64, uint64_t, tk_u64_to_f64_odd)
#undef TK_INT_TO_FLOAT

#endif
