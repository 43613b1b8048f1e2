// SPDX-License-Identifier: Apache-2.0
// Conversions between types, and moves: between registers, between widths, between spaces.
#include "sim/exec.h"
#include "sim/floats.h"

#include <fenv.h>
#include <math.h>

// ---- Integers

static uint64_t low(uint64_t x, unsigned bits) {
    return bits < 64 ? x & ((UINT64_C(1) << bits) - 1) : x;
}

static int64_t sign_extended(uint64_t x, unsigned bits) {
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}

static bool is_signed(tk_sim_type t) { return tk_sim_types[t].kind == 's'; }

// An integer saturated to a type of this many bits: `minus` says how to read x.
static uint64_t clamped(tk_sim_type to, uint64_t x, bool minus) {
    unsigned bits = tk_sim_types[to].bits;
    uint64_t most = low(~UINT64_C(0), is_signed(to) ? bits - 1 : bits);
    if (minus) {
        uint64_t magnitude = 0 - x;
        uint64_t least = is_signed(to) ? UINT64_C(1) << (bits - 1) : 0;
        return magnitude > least ? 0 - least : x;
    }
    return x > most ? most : x;
}

static uint64_t int_to_int(const tk_sim_inst *i, tk_sim_type to, tk_sim_type from, uint64_t x) {
    unsigned bits = tk_sim_types[from].bits;
    x = is_signed(from) ? (uint64_t)sign_extended(x, bits) : low(x, bits);
    return tk_sim_has(i, TK_SIM_MOD_SAT) ? clamped(to, x, is_signed(from) && x >> 63) : x;
}

// ---- Between integers and floats

static uint64_t int_to_f64(uint64_t x, bool from_signed, tk_sim_round mode) {
    static const int of[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    volatile uint64_t v = x;
    fesetround(of[mode]);
    const uint64_t now = v;
    // Of unsigned ones by halves: compilers make sums of the conversion whose 0 is -0 downward.
    volatile double r =
        from_signed ? (double)(int64_t)now
                    : (double)(int64_t)(now >> 32) * 0x1p32 + (double)(int64_t)(now & UINT32_MAX);
    fesetround(FE_TONEAREST);
    double y = r;
    return tk_f64_bits(y);
}

static uint64_t int_to_float(const tk_sim_inst *i, tk_sim_type to, tk_sim_type from, uint64_t x) {
    tk_sim_round mode = tk_sim_round_of(i);
    unsigned bits = tk_sim_types[from].bits;
    x = is_signed(from) ? (uint64_t)sign_extended(x, bits) : low(x, bits);
    if (to == TK_SIM_F64) {
        return int_to_f64(x, is_signed(from), mode);
    }
    double odd = is_signed(from) ? tk_i64_to_f64_odd((int64_t)x) : tk_u64_to_f64_odd(x);
    return tk_sim_narrow(to, odd, mode, false);
}

static unsigned fraction_bits(tk_sim_type t) {
    return t == TK_SIM_F64 ? 52 : t == TK_SIM_F32 ? 23 : t == TK_SIM_F16 ? 10 : 7;
}

static double whole(double x, tk_sim_round mode) {
    switch (mode) {
    case TK_SIM_ROUND_ZERO:
        return trunc(x);
    case TK_SIM_ROUND_DOWN:
        return floor(x);
    case TK_SIM_ROUND_UP:
        return ceil(x);
    case TK_SIM_ROUND_NEAREST:
    case TK_SIM_ROUND_AWAY:
        break;
    }
    return rint(x);
}

// NaN gives 0, but the highest bit alone where 64 bits are on either side.
static uint64_t float_to_int(const tk_sim_inst *i, tk_sim_type to, tk_sim_type from, uint64_t x) {
    unsigned bits = tk_sim_types[to].bits;
    double v = tk_sim_widen(from, x, tk_sim_has(i, TK_SIM_MOD_FTZ));
    if (v != v) {
        return from == TK_SIM_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    }
    v = whole(v, tk_sim_round_of(i));
    if (v < 0) {
        uint64_t magnitude = v <= -0x1p63 ? UINT64_C(1) << 63 : (uint64_t)-v;
        return clamped(to, 0 - magnitude, magnitude != 0);
    }
    return clamped(to, v >= 0x1p64 ? UINT64_MAX : (uint64_t)v, false);
}

static bool to_whole(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_RNI) || tk_sim_has(i, TK_SIM_MOD_RZI) ||
           tk_sim_has(i, TK_SIM_MOD_RMI) || tk_sim_has(i, TK_SIM_MOD_RPI);
}

// From or to f64 a NaN keeps its sign and as much of its payload as there is room for, and becomes
// quiet; bf16 is the upper half of an f32; else it becomes canonical.
static uint64_t converted_nan(tk_sim_type to, tk_sim_type from, bool ftz, uint64_t x) {
    if (to == TK_SIM_F32 && from == TK_SIM_BF16) {
        return x << 16;
    }
    if (from != TK_SIM_F64 && to != TK_SIM_F64) {
        return tk_sim_nan(to);
    }
    x = ftz && from == TK_SIM_F32 ? tk_sim_nan(from) : x;
    unsigned bits = tk_sim_types[from].bits, to_bits = tk_sim_types[to].bits;
    unsigned man = fraction_bits(from), to_man = fraction_bits(to);
    uint64_t payload = (x & ((UINT64_C(1) << man) - 1)) << (64 - man) >> (64 - to_man);
    uint64_t ones = (UINT64_C(1) << (to_bits - 1 - to_man)) - 1;
    return (x >> (bits - 1) & 1) << (to_bits - 1) | ones << to_man | UINT64_C(1) << (to_man - 1) |
           payload;
}

static uint64_t float_to_float(const tk_sim_inst *i, tk_sim_type to, tk_sim_type from, uint64_t x) {
    tk_sim_round mode = tk_sim_round_of(i);
    bool ftz = tk_sim_has(i, TK_SIM_MOD_FTZ);
    double v = tk_sim_widen(from, x, ftz && from == TK_SIM_F32);
    uint64_t r = x;
    if (v != v && !tk_sim_has(i, TK_SIM_MOD_SAT)) {
        return converted_nan(to, from, ftz, x);
    }
    if (to_whole(i)) {
        r = tk_sim_narrow(to, whole(v, mode), TK_SIM_ROUND_NEAREST, false);
    } else if (to != from) {
        r = tk_sim_narrow(to, v, mode, false);
    }
    r = ftz && to == TK_SIM_F32 ? tk_sim_flush(to, r) : r;
    return tk_sim_has(i, TK_SIM_MOD_SAT) ? tk_sim_saturate(to, r) : r;
}

// ---- cvt

// A register wider than the type holds the value extended by the type's sign.
static uint64_t for_register(tk_sim_type t, uint64_t x, unsigned bytes) {
    unsigned bits = tk_sim_types[t].bits;
    return low(is_signed(t) ? (uint64_t)sign_extended(x, bits) : low(x, bits), 8 * bytes);
}

typedef uint64_t convert_fn(const tk_sim_inst *i, tk_sim_type to, tk_sim_type from, uint64_t x);

static tk_sim_flow convert(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, convert_fn *f) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    tk_sim_type to = (tk_sim_type)i->type[0], from = (tk_sim_type)i->type[1];
    unsigned bits = tk_sim_types[from].bits;
    TK_SIM_EACH(l, mask) {
        d[l] = for_register(to, f(i, to, from, low(a[l], bits)), i->arg[0].bytes);
    }
    return TK_SIM_NEXT;
}
static tk_sim_flow cvt_ii(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return convert(w, i, mask, int_to_int);
}
static tk_sim_flow cvt_if(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return convert(w, i, mask, int_to_float);
}
static tk_sim_flow cvt_fi(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return convert(w, i, mask, float_to_int);
}
static tk_sim_flow cvt_ff(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return convert(w, i, mask, float_to_float);
}
// Between u32 and u64, which is most of what addresses take.
static tk_sim_flow cvt_plain(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) { d[l] = (uint32_t)a[l]; }
    return TK_SIM_NEXT;
}

static bool rounds(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_RN) || tk_sim_has(i, TK_SIM_MOD_RZ) ||
           tk_sim_has(i, TK_SIM_MOD_RM) || tk_sim_has(i, TK_SIM_MOD_RP);
}

// PTX wants a rounding exactly where one can happen.
tk_sim_exec *tk_sim_bind_cvt(const tk_sim_inst *i) {
    tk_sim_type to = (tk_sim_type)i->type[0], from = (tk_sim_type)i->type[1];
    bool fto = tk_sim_types[to].kind == 'f', ffrom = tk_sim_types[from].kind == 'f';
    if (!fto && !ffrom) {
        bool plain = (to == TK_SIM_U64 && from == TK_SIM_U32 && i->arg[0].bytes == 8) ||
                     (to == TK_SIM_U32 && from == TK_SIM_U64 && i->arg[0].bytes == 4);
        return rounds(i) || to_whole(i)                  ? NULL
               : plain && !tk_sim_has(i, TK_SIM_MOD_SAT) ? cvt_plain
                                                         : cvt_ii;
    }
    if (!ffrom) {
        return rounds(i) ? cvt_if : NULL;
    }
    if (!fto) {
        return to_whole(i) ? cvt_fi : NULL;
    }
    bool narrows = tk_sim_types[to].bits < tk_sim_types[from].bits ||
                   (to != from && tk_sim_types[to].bits == 16 && tk_sim_types[from].bits == 16);
    return narrows == rounds(i) ? cvt_ff : NULL;
}

// ---- Narrow floats: with .relu and .satfinite, in pairs, f8, tf32

static uint64_t narrowed(const tk_sim_inst *i, tk_sim_type t, double x) {
    bool f8 = t == TK_SIM_E4M3 || t == TK_SIM_E5M2;
    bool finite = f8 || tk_sim_has(i, TK_SIM_MOD_SATFINITE);
    x = tk_sim_has(i, TK_SIM_MOD_RELU) && x <= 0 ? 0 : x;
    return tk_sim_narrow(t, x, tk_sim_round_of(i), finite);
}

static double f32_value(uint64_t bits) { return (double)tk_f32_of_bits((uint32_t)bits); }

TK_SIM_UNARY(relu_one, uint64_t, uint64_t, narrowed(i, (tk_sim_type)i->type[0], f32_value(x)))
TK_SIM_BIND_ONE(cvt_relu, relu_one)

// The first source becomes the upper half.
static uint64_t two(const tk_sim_inst *i, tk_sim_type t, double high, double low_part) {
    return narrowed(i, t, high) << tk_sim_types[t].bits | narrowed(i, t, low_part);
}
static tk_sim_type element(tk_sim_type pair) {
    return pair == TK_SIM_F16X2    ? TK_SIM_F16
           : pair == TK_SIM_BF16X2 ? TK_SIM_BF16
           : pair == TK_SIM_E4M3X2 ? TK_SIM_E4M3
                                   : TK_SIM_E5M2;
}
TK_SIM_BINARY(pair_f32, uint64_t, uint64_t,
              two(i, element((tk_sim_type)i->type[0]), f32_value(x), f32_value(y)))
TK_SIM_BIND_ONE(cvt_pair, pair_f32)
TK_SIM_BIND_ONE(cvt_to_f8, pair_f32)

static double half_at(uint64_t x, unsigned shift) {
    return tk_sim_widen(TK_SIM_F16, x >> shift & 0xffff, false);
}
TK_SIM_UNARY(half_to_f8, uint64_t, uint64_t,
             two(i, element((tk_sim_type)i->type[0]), half_at(x, 16), half_at(x, 0)))
TK_SIM_BIND_ONE(cvt_half_to_f8, half_to_f8)

static uint64_t from_f8(const tk_sim_inst *i, uint64_t x) {
    tk_sim_type t = element((tk_sim_type)i->type[1]);
    return two(i, TK_SIM_F16, tk_sim_widen(t, x >> 8 & 0xff, false),
               tk_sim_widen(t, x & 0xff, false));
}
TK_SIM_UNARY(f8_to_half, uint64_t, uint64_t, from_f8(i, x))
TK_SIM_BIND_ONE(cvt_from_f8, f8_to_half)

TK_SIM_UNARY(to_tf32, uint64_t, uint32_t, narrowed(i, TK_SIM_TF32, f32_value(x)))
// .rna adds half a unit to the bits and drops the rest, of infinity and NaN too; .satfinite goes
// back by a unit from there.
static uint32_t tf32_away(const tk_sim_inst *i, uint32_t x) {
    uint32_t r = (x + 0x1000) & ~UINT32_C(0x1fff);
    bool past = (r & 0x7f800000) == 0x7f800000;
    return past && tk_sim_has(i, TK_SIM_MOD_SATFINITE) ? r - 0x2000 : r;
}
TK_SIM_UNARY(to_tf32_away, uint32_t, uint32_t, tf32_away(i, x))
tk_sim_exec *tk_sim_bind_cvt_tf32(const tk_sim_inst *i) {
    return !tk_sim_has(i, TK_SIM_MOD_RNA)   ? to_tf32
           : tk_sim_has(i, TK_SIM_MOD_RELU) ? NULL
                                            : to_tf32_away;
}

// Two integers, saturated to a byte or a half word, with the first in the upper part.
static uint64_t packed(const tk_sim_inst *i, uint64_t high, uint64_t low_part) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    unsigned bits = tk_sim_types[t].bits;
    uint64_t h = clamped(t, (uint64_t)(int64_t)(int32_t)high, high >> 31 & 1);
    uint64_t l = clamped(t, (uint64_t)(int64_t)(int32_t)low_part, low_part >> 31 & 1);
    return low(h, bits) << bits | low(l, bits);
}
TK_SIM_BINARY(pack_16, uint64_t, uint64_t, packed(i, x, y))
TK_SIM_BIND_ONE(cvt_pack16, pack_16)
TK_SIM_TERNARY(pack_8, uint64_t, uint32_t, z << 16 | packed(i, x, y))
TK_SIM_BIND_ONE(cvt_pack8, pack_8)

// ---- Addresses

static tk_sim_space named_space(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_GLOBAL)  ? TK_SIM_GLOBAL
           : tk_sim_has(i, TK_SIM_MOD_LOCAL) ? TK_SIM_LOCAL
           : tk_sim_has(i, TK_SIM_MOD_CONST) ? TK_SIM_CONST
           : tk_sim_has(i, TK_SIM_MOD_PARAM) || tk_sim_has(i, TK_SIM_MOD_PARAM_ENTRY)
               ? TK_SIM_PARAM
               : TK_SIM_SHARED;
}

static tk_sim_flow cvta_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    tk_sim_space s = named_space(i);
    uint64_t window = s == TK_SIM_GLOBAL ? 0 : TK_SIM_WINDOW(s);
    bool to = tk_sim_has(i, TK_SIM_MOD_TO);
    TK_SIM_EACH(l, mask) { d[l] = to ? a[l] - window : a[l] + window; }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(cvta, cvta_any)

static tk_sim_flow isspacep_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint32_t bits = 0;
    TK_SIM_EACH(l, mask) {
        uint64_t address = a[l];
        tk_sim_space s = tk_sim_resolve(TK_SIM_GENERIC, &address);
        s = s == TK_SIM_CLUSTER && tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER) ? TK_SIM_SHARED : s;
        bits |= (uint32_t)(s == named_space(i)) << l;
    }
    tk_sim_put_pred(w, &i->arg[0], bits, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(isspacep, isspacep_any)

// ---- mov

static tk_sim_flow mov_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    unsigned bits = tk_sim_types[i->type[0]].bits;
    TK_SIM_EACH(l, mask) { d[l] = low(a[l], bits); }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mov, mov_any)

static unsigned parts(const tk_sim_inst *i, unsigned operand) {
    unsigned bits = tk_sim_types[i->type[0]].bits, n = tk_sim_count_of(i, operand);
    return (n == 1 || n == 2 || n == 4) && bits / n >= 8 ? bits / n : 0;
}

// {a, b}: a is the low part.
static tk_sim_flow pack_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned bits = parts(i, 1), n = tk_sim_count_of(i, 1);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) {
        uint64_t x = 0;
        for (unsigned k = 0; k < n; k++) {
            x |= low(tk_sim_get(w, &i->arg[1 + k])[l], bits) << (k * bits);
        }
        d[l] = x;
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_pack(const tk_sim_inst *i) { return parts(i, 1) ? pack_any : NULL; }

static tk_sim_flow unpack_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned bits = parts(i, 0), n = tk_sim_count_of(i, 0);
    const uint64_t *a = tk_sim_get(w, &i->arg[n]);
    uint64_t copy[TK_SIM_LANES];
    memcpy(copy, a, sizeof copy);
    for (unsigned k = 0; k < n; k++) {
        uint64_t *d = tk_sim_put(w, &i->arg[k]);
        TK_SIM_EACH(l, mask) { d[l] = low(copy[l] >> (k * bits), bits); }
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_unpack(const tk_sim_inst *i) { return parts(i, 0) ? unpack_any : NULL; }
