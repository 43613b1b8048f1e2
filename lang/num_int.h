// SPDX-License-Identifier: Apache-2.0
//
// Operations on bool and on the integers as inline functions. Part of num_inline.h, which explains
// the names. Arithmetic that wraps is done in an unsigned type W of at least 32 bits, so that
// neither C's promotions nor signed overflow come into it.
#ifndef TK_LANG_NUM_INT_H
#define TK_LANG_NUM_INT_H

#include <stdbool.h>
#include <stdint.h>

// --- bool ---

static inline uint8_t tk_and_b1(uint8_t a, uint8_t b) { return (uint8_t)(a & b); }
static inline uint8_t tk_or_b1(uint8_t a, uint8_t b) { return (uint8_t)(a | b); }
static inline uint8_t tk_xor_b1(uint8_t a, uint8_t b) { return (uint8_t)(a ^ b); }
static inline uint8_t tk_not_b1(uint8_t a) { return (uint8_t)(a ^ 1); }
static inline bool tk_eq_b1(uint8_t a, uint8_t b) { return a == b; }
static inline bool tk_ne_b1(uint8_t a, uint8_t b) { return a != b; }
static inline uint8_t tk_select_b1(bool c, uint8_t a, uint8_t b) { return c ? a : b; }
static inline uint8_t tk_get_b1(uint64_t bits) { return bits != 0; }
static inline uint64_t tk_put_b1(uint8_t x) { return x != 0; }

// --- upper half of a product ---

static inline uint64_t tk_mulhi_u64(uint64_t a, uint64_t b) {
    const uint64_t al = a & 0xffffffffU, ah = a >> 32;
    const uint64_t bl = b & 0xffffffffU, bh = b >> 32;
    const uint64_t mid = ah * bl + (al * bl >> 32);
    const uint64_t mid2 = al * bh + (mid & 0xffffffffU);
    return ah * bh + (mid >> 32) + (mid2 >> 32);
}

// A negative operand reads 2^64 too great as unsigned, which adds the other one to the upper half.
static inline int64_t tk_mulhi_i64(int64_t a, int64_t b) {
    uint64_t r = tk_mulhi_u64((uint64_t)a, (uint64_t)b);
    r -= a < 0 ? (uint64_t)b : 0;
    r -= b < 0 ? (uint64_t)a : 0;
    return (int64_t)r;
}

static inline int8_t tk_mulhi_i8(int8_t a, int8_t b) { return (int8_t)(a * b >> 8); }
static inline int16_t tk_mulhi_i16(int16_t a, int16_t b) { return (int16_t)(a * b >> 16); }
static inline int32_t tk_mulhi_i32(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
static inline uint8_t tk_mulhi_u8(uint8_t a, uint8_t b) { return (uint8_t)(a * b >> 8); }
static inline uint16_t tk_mulhi_u16(uint16_t a, uint16_t b) {
    return (uint16_t)((uint32_t)a * b >> 16);
}
static inline uint32_t tk_mulhi_u32(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

// --- what signed and unsigned have in common ---
// T suffix, C type, U unsigned type of the same width, W unsigned type to compute in, BITS width

#define TK_INT_OPS(T, C, U, W, BITS)                                                               \
    static inline C tk_add_##T(C a, C b) { return (C)((W)a + (W)b); }                              \
    static inline C tk_sub_##T(C a, C b) { return (C)((W)a - (W)b); }                              \
    static inline C tk_mul_##T(C a, C b) { return (C)((W)a * (W)b); }                              \
    static inline C tk_neg_##T(C a) { return (C)((W)0 - (W)a); }                                   \
    static inline C tk_bnot_##T(C a) { return (C) ~(W)a; }                                         \
    static inline C tk_and_##T(C a, C b) { return (C)((W)a & (W)b); }                              \
    static inline C tk_or_##T(C a, C b) { return (C)((W)a | (W)b); }                               \
    static inline C tk_xor_##T(C a, C b) { return (C)((W)a ^ (W)b); }                              \
    static inline C tk_min_##T(C a, C b) { return a < b ? a : b; }                                 \
    static inline C tk_max_##T(C a, C b) { return a > b ? a : b; }                                 \
    static inline C tk_fmin_##T(C a, C b) { return a < b ? a : b; }                                \
    static inline C tk_fmax_##T(C a, C b) { return a > b ? a : b; }                                \
    static inline C tk_clamp_##T(C x, C lo, C hi) { return tk_min_##T(tk_max_##T(x, lo), hi); }    \
    static inline C tk_select_##T(bool c, C a, C b) { return c ? a : b; }                          \
    static inline bool tk_eq_##T(C a, C b) { return a == b; }                                      \
    static inline bool tk_ne_##T(C a, C b) { return a != b; }                                      \
    static inline bool tk_lt_##T(C a, C b) { return a < b; }                                       \
    static inline bool tk_le_##T(C a, C b) { return a <= b; }                                      \
    static inline bool tk_gt_##T(C a, C b) { return a > b; }                                       \
    static inline bool tk_ge_##T(C a, C b) { return a >= b; }                                      \
    static inline C tk_get_##T(uint64_t bits) { return (C)bits; }                                  \
    static inline uint64_t tk_put_##T(C x) { return (U)x; }                                        \
    /* A negative count reads as a great one. */                                                   \
    static inline C tk_shl_##T(C a, C n) {                                                         \
        return (C)((U)n < BITS ? (W)a << ((U)n & (BITS - 1)) : 0);                                 \
    }                                                                                              \
    static inline int32_t tk_popcount_##T(C a) { return __builtin_popcountll((U)a); }              \
    static inline int32_t tk_clz_##T(C a) {                                                        \
        return (U)a == 0 ? BITS : __builtin_clzll((U)a) - (64 - BITS);                             \
    }                                                                                              \
    static inline C tk_next_pow2_##T(C a) {                                                        \
        if (a <= 1) {                                                                              \
            return 1;                                                                              \
        }                                                                                          \
        const int log = 64 - __builtin_clzll((unsigned long long)a - 1);                           \
        return (C)(log < BITS - ((C)-1 < (C)1 ? 1 : 0) ? (W)1 << log : 0);                         \
    }

#define TK_UINT_OPS(T, C, W, BITS)                                                                 \
    TK_INT_OPS(T, C, C, W, BITS)                                                                   \
    static inline C tk_div_##T(C a, C b) { return (C)(b == 0 ? 0 : a / b); }                       \
    static inline C tk_rem_##T(C a, C b) { return (C)(b == 0 ? a : a % b); }                       \
    static inline C tk_abs_##T(C a) { return a; }                                                  \
    static inline C tk_shr_##T(C a, C n) { return (C)(n < BITS ? (W)a >> (n & (BITS - 1)) : 0); }  \
    static inline C tk_cdiv_##T(C a, C b) {                                                        \
        return (C)(b == 0 ? 0 : (W)(a / b) + (a % b != 0 ? 1 : 0));                                \
    }

#define TK_SINT_OPS(T, C, U, W, BITS)                                                              \
    TK_INT_OPS(T, C, U, W, BITS)                                                                   \
    static inline C tk_div_##T(C a, C b) {                                                         \
        return (C)(b == 0 ? 0 : b == -1 ? tk_neg_##T(a) : a / b);                                  \
    }                                                                                              \
    static inline C tk_rem_##T(C a, C b) { return (C)(b == 0 ? a : b == -1 ? 0 : a % b); }         \
    static inline C tk_abs_##T(C a) { return a < 0 ? tk_neg_##T(a) : a; }                          \
    static inline C tk_shr_##T(C a, C n) { return (C)(a >> ((U)n < BITS ? (int)n : BITS - 1)); }   \
    /* The truncated quotient is one too small where the true one is positive and no integer. */   \
    static inline C tk_cdiv_##T(C a, C b) {                                                        \
        const C q = tk_div_##T(a, b);                                                              \
        const bool up = b != 0 && tk_rem_##T(a, b) != 0 && (a < 0) == (b < 0);                     \
        return (C)(q + (up ? 1 : 0));                                                              \
    }

TK_SINT_OPS(i8, int8_t, uint8_t, uint32_t, 8)
TK_SINT_OPS(i16, int16_t, uint16_t, uint32_t, 16)
TK_SINT_OPS(i32, int32_t, uint32_t, uint32_t, 32)
TK_SINT_OPS(i64, int64_t, uint64_t, uint64_t, 64)
TK_UINT_OPS(u8, uint8_t, uint32_t, 8)
TK_UINT_OPS(u16, uint16_t, uint32_t, 16)
TK_UINT_OPS(u32, uint32_t, uint32_t, 32)
TK_UINT_OPS(u64, uint64_t, uint64_t, 64)

#undef TK_SINT_OPS
#undef TK_UINT_OPS
#undef TK_INT_OPS

#endif
