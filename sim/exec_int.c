// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic at all widths. Signed arithmetic wraps, so it is computed unsigned.
#include "sim/exec.h"

typedef __int128 wide_s;
typedef unsigned __int128 wide_u;

// F(executor's suffix, value type, unsigned type of the width, the next wider type, type id)
#define SIGNED(F, NAME)                                                                            \
    F(NAME, s16, int16_t, uint16_t, int32_t)                                                       \
    F(NAME, s32, int32_t, uint32_t, int64_t)                                                       \
    F(NAME, s64, int64_t, uint64_t, wide_s)
#define UNSIGNED(F, NAME)                                                                          \
    F(NAME, u16, uint16_t, uint16_t, uint32_t)                                                     \
    F(NAME, u32, uint32_t, uint32_t, uint64_t)                                                     \
    F(NAME, u64, uint64_t, uint64_t, wide_u)

// ---- What is the same for both signs: in 64 bits, of which the width is kept
#define SAME(KIND, NAME, EXPR)                                                                     \
    KIND(NAME##_16, uint64_t, uint16_t, EXPR)                                                      \
    KIND(NAME##_32, uint64_t, uint32_t, EXPR)                                                      \
    KIND(NAME##_64, uint64_t, uint64_t, EXPR)                                                      \
    TK_SIM_BIND_TYPES(                                                                             \
        NAME, [TK_SIM_U16] = NAME##_16, [TK_SIM_S16] = NAME##_16, [TK_SIM_U32] = NAME##_32,        \
        [TK_SIM_S32] = NAME##_32, [TK_SIM_U64] = NAME##_64, [TK_SIM_S64] = NAME##_64)

SAME(TK_SIM_BINARY, add, x + y)
SAME(TK_SIM_BINARY, sub, x - y)
SAME(TK_SIM_BINARY, mul_lo, x *y)
SAME(TK_SIM_TERNARY, mad_lo, x *y + z)
SAME(TK_SIM_UNARY, neg, 0 - x)

// ---- What depends on the sign
#define TYPED(NAME)                                                                                \
    TK_SIM_BIND_TYPES(                                                                             \
        NAME, [TK_SIM_U16] = NAME##_u16, [TK_SIM_S16] = NAME##_s16, [TK_SIM_U32] = NAME##_u32,     \
        [TK_SIM_S32] = NAME##_s32, [TK_SIM_U64] = NAME##_u64, [TK_SIM_S64] = NAME##_s64)

#define HIGH(T, U, W, x, y)      ((W)((W)(x) * (W)(y)) >> (8 * sizeof(T)))
#define MUL_HI(NAME, S, T, U, W) TK_SIM_BINARY(NAME##_##S, T, U, HIGH(T, U, W, x, y))
SIGNED(MUL_HI, mul_hi)
UNSIGNED(MUL_HI, mul_hi)
TYPED(mul_hi)

#define MAD_HI(NAME, S, T, U, W) TK_SIM_TERNARY(NAME##_##S, T, U, (U)HIGH(T, U, W, x, y) + (U)z)
SIGNED(MAD_HI, mad_hi)
UNSIGNED(MAD_HI, mad_hi)
TYPED(mad_hi)

#define KEEP_WIDE(S, T, W, UW)                                                                     \
    TK_SIM_BINARY(mul_wide_##S, T, UW, (W)x *(W)y)                                                 \
    static tk_sim_flow mad_wide_##S(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {         \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),             \
                       *c = tk_sim_get(w, &i->arg[3]);                                             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) { d[l] = (UW)((UW)((W)(T)a[l] * (W)(T)b[l]) + (UW)c[l]); }            \
        return TK_SIM_NEXT;                                                                        \
    }
KEEP_WIDE(u16, uint16_t, uint32_t, uint32_t)
KEEP_WIDE(s16, int16_t, int32_t, uint32_t)
KEEP_WIDE(u32, uint32_t, uint64_t, uint64_t)
KEEP_WIDE(s32, int32_t, int64_t, uint64_t)
#define WIDE(NAME)                                                                                 \
    TK_SIM_BIND_TYPES(NAME, [TK_SIM_U16] = NAME##_u16, [TK_SIM_S16] = NAME##_s16,                  \
                      [TK_SIM_U32] = NAME##_u32, [TK_SIM_S32] = NAME##_s32)
WIDE(mul_wide)
WIDE(mad_wide)

// Division by 0 and of the least number by -1: what the hardware gives, all bits set and the
// dividend; remainders then are the dividend and 0.
#define DIV_S(NAME, S, T, U, W)                                                                    \
    TK_SIM_BINARY(NAME##_##S, T, U, y == 0 ? (T)-1 : y == -1 ? (T)(0 - (U)x) : (T)(x / y))
#define DIV_U(NAME, S, T, U, W) TK_SIM_BINARY(NAME##_##S, T, U, y == 0 ? (T)-1 : (T)(x / y))
SIGNED(DIV_S, div)
UNSIGNED(DIV_U, div)
TYPED(div)
#define REM_S(NAME, S, T, U, W)                                                                    \
    TK_SIM_BINARY(NAME##_##S, T, U, y == 0 ? (T)-1 : y == -1 ? (T)0 : (T)(x % y))
#define REM_U(NAME, S, T, U, W) TK_SIM_BINARY(NAME##_##S, T, U, y == 0 ? (T)-1 : (T)(x % y))
SIGNED(REM_S, rem)
UNSIGNED(REM_U, rem)
TYPED(rem)

#define MIN(NAME, S, T, U, W) TK_SIM_BINARY(NAME##_##S, T, U, x < y ? x : y)
#define MAX(NAME, S, T, U, W) TK_SIM_BINARY(NAME##_##S, T, U, x > y ? x : y)
SIGNED(MIN, min)
UNSIGNED(MIN, min)
TYPED(min)
SIGNED(MAX, max)
UNSIGNED(MAX, max)
TYPED(max)

#define SAD(NAME, S, T, U, W)                                                                      \
    TK_SIM_TERNARY(NAME##_##S, T, U, (U)z + (x < y ? (U)y - (U)x : (U)x - (U)y))
SIGNED(SAD, sad)
UNSIGNED(SAD, sad)
TYPED(sad)

#define ABS(NAME, S, T, U, W) TK_SIM_UNARY(NAME##_##S, T, U, x < 0 ? 0 - (U)x : (U)x)
SIGNED(ABS, abs)
TK_SIM_BIND_TYPES(abs, [TK_SIM_S16] = abs_s16, [TK_SIM_S32] = abs_s32, [TK_SIM_S64] = abs_s64)

// ---- Saturating, with .relu, and pairs of 16 bits
static int32_t saturated(int64_t x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
TK_SIM_BINARY(add_sat_s32, int32_t, uint32_t, saturated((int64_t)x + y))
TK_SIM_BIND_ONE(add_sat, add_sat_s32)
TK_SIM_BINARY(sub_sat_s32, int32_t, uint32_t, saturated((int64_t)x - y))
TK_SIM_BIND_ONE(sub_sat, sub_sat_s32)
TK_SIM_TERNARY(mad_hi_sat_s32, int32_t, uint32_t, saturated(((int64_t)x * y >> 32) + z))
TK_SIM_BIND_ONE(mad_hi_sat, mad_hi_sat_s32)
TK_SIM_BINARY(min_relu_s32, int32_t, uint32_t, x < 0 || y < 0 ? 0 : x < y ? x : y)
TK_SIM_BIND_ONE(min_relu, min_relu_s32)
TK_SIM_BINARY(max_relu_s32, int32_t, uint32_t, x < 0 && y < 0 ? 0 : x > y ? x : y)
TK_SIM_BIND_ONE(max_relu, max_relu_s32)

TK_SIM_BINARY(add_pair_16, uint32_t, uint32_t, ((x + y) & 0xffff) | ((x >> 16) + (y >> 16)) << 16)
TK_SIM_BIND_ONE(add_pair, add_pair_16)

static uint32_t pick_pair(uint32_t x, uint32_t y, bool is_signed, bool max, bool relu) {
    uint32_t r = 0;
    for (unsigned s = 0; s < 32; s += 16) {
        uint32_t a = x >> s & 0xffff, b = y >> s & 0xffff;
        uint32_t flip = is_signed ? 0x8000 : 0;
        uint32_t c = ((a ^ flip) < (b ^ flip)) != max ? a : b;
        c = relu && (c & 0x8000) && is_signed ? 0 : c;
        r |= c << s;
    }
    return r;
}
TK_SIM_BINARY(min_pair_16, uint32_t, uint32_t,
              pick_pair(x, y, i->type[0] == TK_SIM_S16X2, false, tk_sim_has(i, TK_SIM_MOD_RELU)))
TK_SIM_BIND_ONE(min_pair, min_pair_16)
TK_SIM_BINARY(max_pair_16, uint32_t, uint32_t,
              pick_pair(x, y, i->type[0] == TK_SIM_S16X2, true, tk_sim_has(i, TK_SIM_MOD_RELU)))
TK_SIM_BIND_ONE(max_pair, max_pair_16)

// ---- 24 bits
static int64_t low24(const tk_sim_inst *i, uint32_t x) {
    return i->type[0] == TK_SIM_S32 ? (int64_t)(int32_t)(x << 8) >> 8 : (int64_t)(x & 0xffffff);
}
static uint32_t product24(const tk_sim_inst *i, uint32_t x, uint32_t y) {
    int64_t p = low24(i, x) * low24(i, y);
    return (uint32_t)(tk_sim_has(i, TK_SIM_MOD_HI) ? (uint64_t)p >> 16 : (uint64_t)p);
}
TK_SIM_BINARY(mul24_32, uint32_t, uint32_t, product24(i, x, y))
TK_SIM_BIND_ONE(mul24, mul24_32)
TK_SIM_TERNARY(mad24_32, uint32_t, uint32_t, product24(i, x, y) + z)
TK_SIM_BIND_ONE(mad24, mad24_32)
TK_SIM_TERNARY(mad24_sat_s32, uint32_t, uint32_t,
               saturated((int64_t)(int32_t)product24(i, x, y) + (int32_t)z))
TK_SIM_BIND_ONE(mad24_sat, mad24_sat_s32)

// ---- With carry: a bit a lane, which the next instruction of the chain reads
static tk_sim_flow carried(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, bool subtract,
                           bool in, bool out) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    unsigned bits = tk_sim_types[i->type[0]].bits;
    TK_SIM_EACH(l, mask) {
        wide_u y = subtract ? (uint64_t)~b[l] : b[l], all = ((wide_u)1 << bits) - 1;
        wide_u carry = in ? w->carry >> l & 1 : subtract;
        wide_u sum = ((wide_u)a[l] & all) + (y & all) + carry;
        d[l] = (uint64_t)(sum & all);
        if (out) {
            w->carry = (w->carry & ~(1u << l)) | (uint32_t)(sum >> bits & 1) << l;
        }
    }
    return TK_SIM_NEXT;
}
static tk_sim_flow add_carry(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return carried(w, i, mask, false, false, true);
}
static tk_sim_flow addc(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return carried(w, i, mask, false, true, tk_sim_has(i, TK_SIM_MOD_CC));
}
static tk_sim_flow sub_carry(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return carried(w, i, mask, true, false, true);
}
static tk_sim_flow subc(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return carried(w, i, mask, true, true, tk_sim_has(i, TK_SIM_MOD_CC));
}
TK_SIM_BIND_ONE(add_carry, add_carry)
TK_SIM_BIND_ONE(addc, addc)
TK_SIM_BIND_ONE(sub_carry, sub_carry)
TK_SIM_BIND_ONE(subc, subc)

static tk_sim_flow mad_carried(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, bool in,
                               bool out) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),
                   *c = tk_sim_get(w, &i->arg[3]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    unsigned bits = tk_sim_types[i->type[0]].bits, up = 64 - bits;
    bool minus = tk_sim_types[i->type[0]].kind == 's', high = tk_sim_has(i, TK_SIM_MOD_HI);
    wide_u all = ((wide_u)1 << bits) - 1;
    TK_SIM_EACH(l, mask) {
        wide_u product = (wide_u)(a[l] & (uint64_t)all) * (b[l] & (uint64_t)all);
        if (minus) {
            product = (wide_u)((wide_s)((int64_t)(a[l] << up) >> up) *
                               (wide_s)((int64_t)(b[l] << up) >> up));
        }
        wide_u carry = in ? w->carry >> l & 1 : 0;
        wide_u sum = ((high ? product >> bits : product) & all) + (c[l] & all) + carry;
        d[l] = (uint64_t)(sum & all);
        if (out) {
            w->carry = (w->carry & ~(1u << l)) | (uint32_t)(sum >> bits & 1) << l;
        }
    }
    return TK_SIM_NEXT;
}
static tk_sim_flow mad_carry(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return mad_carried(w, i, mask, false, true);
}
static tk_sim_flow madc(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return mad_carried(w, i, mask, true, tk_sim_has(i, TK_SIM_MOD_CC));
}
TK_SIM_BIND_ONE(mad_carry, mad_carry)
TK_SIM_BIND_ONE(madc, madc)

// ---- Dot products of bytes
static int32_t part(tk_sim_type t, uint32_t x, unsigned at, unsigned bits) {
    uint32_t v = x >> at & ((1u << bits) - 1);
    uint32_t sign = t == TK_SIM_S32 ? 1u << (bits - 1) : 0;
    return (int32_t)(v ^ sign) - (int32_t)sign;
}
static uint32_t dot4(const tk_sim_inst *i, uint32_t x, uint32_t y, uint32_t z) {
    for (unsigned k = 0; k < 32; k += 8) {
        z += (uint32_t)(part((tk_sim_type)i->type[0], x, k, 8) *
                        part((tk_sim_type)i->type[1], y, k, 8));
    }
    return z;
}
TK_SIM_TERNARY(dp4a_32, uint32_t, uint32_t, dot4(i, x, y, z))
TK_SIM_BIND_ONE(dp4a, dp4a_32)
static uint32_t dot2(const tk_sim_inst *i, uint32_t x, uint32_t y, uint32_t z) {
    unsigned high = tk_sim_has(i, TK_SIM_MOD_HI) ? 16 : 0;
    for (unsigned k = 0; k < 2; k++) {
        z += (uint32_t)(part((tk_sim_type)i->type[0], x, 16 * k, 16) *
                        part((tk_sim_type)i->type[1], y, high + 8 * k, 8));
    }
    return z;
}
TK_SIM_TERNARY(dp2a_32, uint32_t, uint32_t, dot2(i, x, y, z))
TK_SIM_BIND_ONE(dp2a, dp2a_32)
