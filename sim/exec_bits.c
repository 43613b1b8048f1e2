// SPDX-License-Identifier: Apache-2.0
// Operations on bits.
#include "sim/exec.h"

// ---- Logic
#define LOGIC(KIND, NAME, EXPR)                                                                    \
    KIND(NAME##_16, uint64_t, uint16_t, EXPR)                                                      \
    KIND(NAME##_32, uint64_t, uint32_t, EXPR)                                                      \
    KIND(NAME##_64, uint64_t, uint64_t, EXPR)                                                      \
    TK_SIM_BIND_TYPES(                                                                             \
        NAME, [TK_SIM_B16] = NAME##_16, [TK_SIM_B32] = NAME##_32, [TK_SIM_B64] = NAME##_64)
LOGIC(TK_SIM_BINARY, and, x &y)
LOGIC(TK_SIM_BINARY, or, x | y)
LOGIC(TK_SIM_BINARY, xor, x ^ y)
LOGIC(TK_SIM_UNARY, not, ~x)
LOGIC(TK_SIM_UNARY, cnot, x == 0)

#define ON_PREDICATES(NAME, EXPR)                                                                  \
    static tk_sim_flow NAME(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {                 \
        uint32_t x = tk_sim_get_pred(w, &i->arg[1]);                                               \
        uint32_t y = i->narg > 2 ? tk_sim_get_pred(w, &i->arg[2]) : 0;                             \
        (void)y;                                                                                   \
        tk_sim_put_pred(w, &i->arg[0], EXPR, mask);                                                \
        return TK_SIM_NEXT;                                                                        \
    }                                                                                              \
    TK_SIM_BIND_ONE(NAME, NAME)
ON_PREDICATES(and_pred, x &y)
ON_PREDICATES(or_pred, x | y)
ON_PREDICATES(xor_pred, x ^ y)
ON_PREDICATES(not_pred, ~x)
ON_PREDICATES(mov_pred, x)

static uint32_t by_table(uint32_t x, uint32_t y, uint32_t z, uint64_t table) {
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; k++) {
        uint32_t at = (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
        r |= table >> k & 1 ? at : 0;
    }
    return r;
}

static tk_sim_flow lop3_32(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool with_pred = tk_sim_count_of(i, 5) != 0;
    const uint64_t *a = tk_sim_get(w, tk_sim_operand(i, 1)),
                   *b = tk_sim_get(w, tk_sim_operand(i, 2)),
                   *c = tk_sim_get(w, tk_sim_operand(i, 3)),
                   *t = tk_sim_get(w, tk_sim_operand(i, 4));
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    uint32_t any = 0;
    TK_SIM_EACH(l, mask) {
        d[l] = by_table((uint32_t)a[l], (uint32_t)b[l], (uint32_t)c[l], t[l]);
        any |= (uint32_t)(d[l] != 0) << l;
    }
    if (with_pred) {
        uint32_t q = tk_sim_get_pred(w, tk_sim_operand(i, 5));
        tk_sim_put_pred(w, &i->arg[1], tk_sim_has(i, TK_SIM_MOD_AND) ? any & q : any | q, mask);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(lop3, lop3_32)
tk_sim_exec *tk_sim_bind_lop3_pred(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 0) == 2 ? lop3_32 : NULL;
}

// ---- Shifts: amounts beyond the width shift everything out
#define SHIFTS(B, S, U)                                                                            \
    static U shl_##B(U x, uint32_t n) { return (U)(n < B ? (uint64_t)x << n : 0); }                \
    static U shr_##B(U x, uint32_t n) { return (U)(n < B ? (uint64_t)x >> n : 0); }                \
    static U sar_##B(U x, uint32_t n) { return (U)((int64_t)(S)x >> (n < B ? n : B - 1)); }        \
    static tk_sim_flow do_shl_##B(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {           \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) { d[l] = shl_##B((U)a[l], (uint32_t)b[l]); }                          \
        return TK_SIM_NEXT;                                                                        \
    }                                                                                              \
    static tk_sim_flow do_shr_##B(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {           \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) { d[l] = shr_##B((U)a[l], (uint32_t)b[l]); }                          \
        return TK_SIM_NEXT;                                                                        \
    }                                                                                              \
    static tk_sim_flow do_sar_##B(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {           \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) { d[l] = sar_##B((U)a[l], (uint32_t)b[l]); }                          \
        return TK_SIM_NEXT;                                                                        \
    }
SHIFTS(16, int16_t, uint16_t)
SHIFTS(32, int32_t, uint32_t)
SHIFTS(64, int64_t, uint64_t)
TK_SIM_BIND_TYPES(shl, [TK_SIM_B16] = do_shl_16, [TK_SIM_B32] = do_shl_32, [TK_SIM_B64] = do_shl_64)
TK_SIM_BIND_TYPES(shr, [TK_SIM_B16] = do_shr_16, [TK_SIM_U16] = do_shr_16, [TK_SIM_S16] = do_sar_16,
                  [TK_SIM_B32] = do_shr_32, [TK_SIM_U32] = do_shr_32, [TK_SIM_S32] = do_sar_32,
                  [TK_SIM_B64] = do_shr_64, [TK_SIM_U64] = do_shr_64, [TK_SIM_S64] = do_sar_64)

// Of the 64 bits y:x the upper half after a shift to the left, or the lower after one to the right.
static uint32_t funnel(const tk_sim_inst *i, uint32_t x, uint32_t y, uint32_t n) {
    n = tk_sim_has(i, TK_SIM_MOD_WRAP) ? n & 31 : n > 32 ? 32 : n;
    uint64_t both = (uint64_t)y << 32 | x;
    return (uint32_t)(tk_sim_has(i, TK_SIM_MOD_L) ? both << n >> 32 : both >> n);
}
TK_SIM_TERNARY(shf_32, uint32_t, uint32_t, funnel(i, x, y, z))
TK_SIM_BIND_ONE(shf, shf_32)

// ---- Counting and searching
static uint32_t leading_zeros(uint64_t x, unsigned bits) {
    return x ? (uint32_t)__builtin_clzll(x) - (64 - bits) : bits;
}
TK_SIM_UNARY(popc_any, uint64_t, uint32_t, __builtin_popcountll(x))
TK_SIM_BIND_ONE(popc, popc_any)
TK_SIM_UNARY(clz_any, uint64_t, uint32_t, leading_zeros(x, tk_sim_types[i->type[0]].bits))
TK_SIM_BIND_ONE(clz, clz_any)

// The highest bit that is no sign; -1 where there is none.
static uint32_t find_bit(const tk_sim_inst *i, uint64_t x) {
    unsigned bits = tk_sim_types[i->type[0]].bits;
    bool minus = tk_sim_types[i->type[0]].kind == 's' && (x >> (bits - 1) & 1);
    uint64_t y = minus ? ~x & (~UINT64_C(0) >> (64 - bits)) : x;
    uint32_t at = bits - 1 - leading_zeros(y, bits);
    return at != UINT32_MAX && tk_sim_has(i, TK_SIM_MOD_SHIFTAMT) ? bits - 1 - at : at;
}
TK_SIM_UNARY(bfind_any, uint64_t, uint32_t, find_bit(i, x))
TK_SIM_BIND_ONE(bfind, bfind_any)

static uint64_t reversed(uint64_t x, unsigned bits) {
    uint64_t r = 0;
    for (unsigned k = 0; k < bits; k++) {
        r |= (x >> k & 1) << (bits - 1 - k);
    }
    return r;
}
TK_SIM_UNARY(brev_any, uint64_t, uint64_t, reversed(x, tk_sim_types[i->type[0]].bits))
TK_SIM_BIND_ONE(brev, brev_any)

// The n-th set bit from a place on, upwards or downwards.
static uint32_t nth_set(uint32_t x, uint32_t base, int32_t n) {
    if (n == 0) {
        return base < 32 && (x >> base & 1) ? base : UINT32_MAX;
    }
    for (int64_t at = base; at >= 0 && at<32; at += n> 0 ? 1 : -1) {
        if (x >> at & 1) {
            n += n > 0 ? -1 : 1;
            if (n == 0) {
                return (uint32_t)at;
            }
        }
    }
    return UINT32_MAX;
}
TK_SIM_TERNARY(fns_32, uint32_t, uint32_t, nth_set(x, y, (int32_t)z))
TK_SIM_BIND_ONE(fns, fns_32)

// ---- Fields
static uint64_t low_bits(unsigned n) { return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

static uint64_t extract(const tk_sim_inst *i, uint64_t x, uint32_t at, uint32_t n) {
    unsigned bits = tk_sim_types[i->type[0]].bits;
    bool is_signed = tk_sim_types[i->type[0]].kind == 's';
    at &= 0xff;
    n &= 0xff;
    uint64_t field = at < bits ? x >> at & low_bits(n) : 0;
    unsigned top = at + n - 1 < bits ? at + n - 1 : bits - 1;
    bool minus = is_signed && n > 0 && (x >> top & 1);
    if (minus) {
        unsigned have = top + 1 > at ? top + 1 - at : 0;
        field |= ~low_bits(have < n ? have : n);
    }
    return field & low_bits(bits);
}
TK_SIM_TERNARY(bfe_any, uint64_t, uint64_t, extract(i, x, (uint32_t)y, (uint32_t)z))
TK_SIM_BIND_ONE(bfe, bfe_any)

static tk_sim_flow bfi_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),
                   *c = tk_sim_get(w, &i->arg[3]), *n = tk_sim_get(w, &i->arg[4]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    unsigned bits = tk_sim_types[i->type[0]].bits;
    TK_SIM_EACH(l, mask) {
        unsigned at = c[l] & 0xff;
        uint64_t field = at < bits ? low_bits(n[l] & 0xff) << at & low_bits(bits) : 0;
        d[l] = (b[l] & ~field) | (at < bits ? a[l] << at & field : 0);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bfi, bfi_any)

static uint32_t mask_of(const tk_sim_inst *i, uint32_t at, uint32_t n) {
    if (tk_sim_has(i, TK_SIM_MOD_WRAP)) {
        at &= 31;
        n &= 31;
    }
    return at < 32 ? (uint32_t)(low_bits(n < 32 ? n : 32) << at) : 0;
}
TK_SIM_BINARY(bmsk_32, uint32_t, uint32_t, mask_of(i, x, y))
TK_SIM_BIND_ONE(bmsk, bmsk_32)

static uint32_t extended(const tk_sim_inst *i, uint32_t x, uint32_t n) {
    n = tk_sim_has(i, TK_SIM_MOD_WRAP) ? n & 31 : n;
    if (n >= 32) {
        return x;
    }
    bool minus = i->type[0] == TK_SIM_S32 && n > 0 && (x >> (n - 1) & 1);
    return (uint32_t)((x & low_bits(n)) | (minus ? ~low_bits(n) : 0));
}
TK_SIM_BINARY(szext_32, uint32_t, uint32_t, extended(i, x, y))
TK_SIM_BIND_ONE(szext, szext_32)

// ---- Bytes
// The selectors of the named modes, by the control's two low bits: byte k of the result is byte
// (nibble k) of the eight.
static uint32_t selector(const tk_sim_inst *i, uint32_t control) {
    static const struct {
        tk_sim_mod mod;
        uint16_t of[4];
    } mode[] = {
        {TK_SIM_MOD_F4E, {0x3210, 0x4321, 0x5432, 0x6543}},
        {TK_SIM_MOD_B4E, {0x5670, 0x6701, 0x7012, 0x0123}},
        {TK_SIM_MOD_RC8, {0x0000, 0x1111, 0x2222, 0x3333}},
        {TK_SIM_MOD_ECL, {0x3210, 0x3211, 0x3222, 0x3333}},
        {TK_SIM_MOD_ECR, {0x0000, 0x1110, 0x2210, 0x3210}},
        {TK_SIM_MOD_RC16, {0x1010, 0x3232, 0x1010, 0x3232}},
    };
    for (size_t k = 0; k < sizeof mode / sizeof *mode; k++) {
        if (tk_sim_has(i, mode[k].mod)) {
            return mode[k].of[control & 3];
        }
    }
    return control;
}

static uint32_t permuted(const tk_sim_inst *i, uint32_t x, uint32_t y, uint32_t control) {
    uint64_t both = (uint64_t)y << 32 | x;
    uint32_t pick = selector(i, control), r = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint32_t nibble = pick >> (4 * k) & 15;
        uint32_t byte = (uint32_t)(both >> (8 * (nibble & 7))) & 0xff;
        byte = nibble & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
        r |= byte << (8 * k);
    }
    return r;
}
TK_SIM_TERNARY(prmt_32, uint32_t, uint32_t, permuted(i, x, y, z))
TK_SIM_BIND_ONE(prmt, prmt_32)
