// SPDX-License-Identifier: Apache-2.0
// Comparisons, ordered and unordered, with their boolean combination; selections.
#include "sim/exec.h"
#include "sim/floats.h"

#include <math.h>

// What a comparison of two operands can find, a bit each.
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

// Which of these make the comparison true.
static unsigned wanted(const tk_sim_inst *i) {
    static const struct {
        tk_sim_mod mod;
        unsigned set;
    } of[] = {
        {TK_SIM_MOD_EQ, EQUAL},
        {TK_SIM_MOD_NE, LESS | GREATER},
        {TK_SIM_MOD_LT, LESS},
        {TK_SIM_MOD_LE, LESS | EQUAL},
        {TK_SIM_MOD_GT, GREATER},
        {TK_SIM_MOD_GE, GREATER | EQUAL},
        {TK_SIM_MOD_LO, LESS},
        {TK_SIM_MOD_LS, LESS | EQUAL},
        {TK_SIM_MOD_HI, GREATER},
        {TK_SIM_MOD_HS, GREATER | EQUAL},
        {TK_SIM_MOD_EQU, EQUAL | UNORDERED},
        {TK_SIM_MOD_NEU, LESS | GREATER | UNORDERED},
        {TK_SIM_MOD_LTU, LESS | UNORDERED},
        {TK_SIM_MOD_LEU, LESS | EQUAL | UNORDERED},
        {TK_SIM_MOD_GTU, GREATER | UNORDERED},
        {TK_SIM_MOD_GEU, GREATER | EQUAL | UNORDERED},
        {TK_SIM_MOD_NUM, LESS | EQUAL | GREATER},
        {TK_SIM_MOD_NAN, UNORDERED},
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        if (tk_sim_has(i, of[k].mod)) {
            return of[k].set;
        }
    }
    return 0;
}

static unsigned order_s(int64_t x, int64_t y) { return x < y ? LESS : x > y ? GREATER : EQUAL; }
static unsigned order_u(uint64_t x, uint64_t y) { return x < y ? LESS : x > y ? GREATER : EQUAL; }
static unsigned order_f(double x, double y) {
    return x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : UNORDERED;
}

// How two elements of a type stand to each other.
static unsigned order(tk_sim_type t, uint64_t a, uint64_t b, bool ftz) {
    unsigned up = 64u - tk_sim_types[t].bits;
    return tk_sim_types[t].kind == 's'   ? order_s((int64_t)(a << up), (int64_t)(b << up))
           : tk_sim_types[t].kind == 'f' ? order_f(tk_sim_widen(t, a, ftz), tk_sim_widen(t, b, ftz))
                                         : order_u(a, b);
}

// A bit for each lane of the mask where the comparison holds.
static uint32_t compare(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, tk_sim_type t,
                        unsigned shift) {
    const uint64_t *a = tk_sim_get(w, tk_sim_operand(i, 1)),
                   *b = tk_sim_get(w, tk_sim_operand(i, 2));
    unsigned want = wanted(i);
    bool ftz = tk_sim_has(i, TK_SIM_MOD_FTZ);
    uint64_t keep = ~UINT64_C(0) >> (64 - tk_sim_types[t].bits);
    uint32_t bits = 0;
    TK_SIM_EACH(l, mask) {
        bits |= (uint32_t)((order(t, a[l] >> shift & keep, b[l] >> shift & keep, ftz) & want) != 0)
                << l;
    }
    return bits;
}

static uint32_t combine(const tk_sim_inst *i, uint32_t bits, uint32_t c) {
    return tk_sim_has(i, TK_SIM_MOD_AND)   ? bits & c
           : tk_sim_has(i, TK_SIM_MOD_OR)  ? bits | c
           : tk_sim_has(i, TK_SIM_MOD_XOR) ? bits ^ c
                                           : bits;
}

static bool ordered_only(const tk_sim_inst *i) {
    return (wanted(i) & UNORDERED) || tk_sim_has(i, TK_SIM_MOD_NUM);
}

// Integers have no unordered comparisons; a boolean operation needs its operand.
static bool compares(const tk_sim_inst *i, tk_sim_type t) {
    bool combines = tk_sim_has(i, TK_SIM_MOD_AND) || tk_sim_has(i, TK_SIM_MOD_OR) ||
                    tk_sim_has(i, TK_SIM_MOD_XOR);
    bool is_float = tk_sim_types[t].kind == 'f';
    return combines == (tk_sim_count_of(i, 3) == 1) && (is_float || !ordered_only(i)) &&
           (is_float || !tk_sim_has(i, TK_SIM_MOD_FTZ));
}

static tk_sim_type half_of(tk_sim_type t) {
    return t == TK_SIM_F16X2 ? TK_SIM_F16 : t == TK_SIM_BF16X2 ? TK_SIM_BF16 : t;
}

// setp p|q: of a pair type p is of the low half and q of the high one; else q is the opposite.
static tk_sim_flow setp_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_type t = (tk_sim_type)i->type[0], half = half_of(t);
    uint32_t c = tk_sim_count_of(i, 3) ? tk_sim_get_pred(w, tk_sim_operand(i, 3)) : 0;
    uint32_t low = compare(w, i, mask, half, 0);
    uint32_t other = half != t ? compare(w, i, mask, half, 16) : ~low;
    tk_sim_put_pred(w, &i->arg[0], combine(i, low, c), mask);
    if (tk_sim_count_of(i, 0) == 2) {
        tk_sim_put_pred(w, &i->arg[1], combine(i, other, c), mask);
    }
    return TK_SIM_NEXT;
}

tk_sim_exec *tk_sim_bind_setp(const tk_sim_inst *i) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    bool pair = half_of(t) != t, two = tk_sim_count_of(i, 0) == 2;
    two = two && (pair || i->arg[1].kind != TK_SIM_ARG_SINK);
    return compares(i, t) &&
                   (pair ? two : !two || tk_sim_types[t].bits > 16 || tk_sim_types[t].kind != 'f')
               ? setp_any
               : NULL;
}

// True as the destination's type has it; of a pair, in each half.
static uint64_t truth(tk_sim_type t, bool pair) {
    return tk_sim_types[t].kind == 'f' ? tk_sim_narrow(half_of(t), 1, TK_SIM_ROUND_NEAREST, false)
           : pair || tk_sim_types[t].bits == 16 ? 0xffff
                                                : 0xffffffff;
}

static tk_sim_flow set_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_type to = (tk_sim_type)i->type[0], t = (tk_sim_type)i->type[1], half = half_of(t);
    uint32_t c = tk_sim_count_of(i, 3) ? tk_sim_get_pred(w, tk_sim_operand(i, 3)) : 0;
    uint32_t low = combine(i, compare(w, i, mask, half, 0), c);
    uint32_t high = half != t ? combine(i, compare(w, i, mask, half, 16), c) : 0;
    uint64_t *d = tk_sim_put(w, &i->arg[0]), one = truth(to, half != t);
    TK_SIM_EACH(l, mask) { d[l] = (low >> l & 1 ? one : 0) | (high >> l & 1 ? one << 16 : 0); }
    return TK_SIM_NEXT;
}

tk_sim_exec *tk_sim_bind_set(const tk_sim_inst *i) {
    tk_sim_type to = (tk_sim_type)i->type[0], t = (tk_sim_type)i->type[1];
    bool pair_to = half_of(to) != to, pair = half_of(t) != t;
    return compares(i, t) && (!pair_to || pair) ? set_any : NULL;
}

static tk_sim_flow selp_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);
    uint32_t p = tk_sim_get_pred(w, &i->arg[3]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) { d[l] = p >> l & 1 ? a[l] : b[l]; }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(selp, selp_any)

static tk_sim_flow slct_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),
                   *c = tk_sim_get(w, &i->arg[3]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    bool is_float = i->type[1] == TK_SIM_F32, ftz = tk_sim_has(i, TK_SIM_MOD_FTZ);
    TK_SIM_EACH(l, mask) {
        bool first =
            is_float ? tk_sim_widen(TK_SIM_F32, c[l], ftz) >= 0 : (int32_t)(uint32_t)c[l] >= 0;
        d[l] = first ? a[l] : b[l];
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_slct(const tk_sim_inst *i) { return i->ntype == 2 ? slct_any : NULL; }

static tk_sim_flow testp_any(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    bool narrow = i->type[0] == TK_SIM_F32;
    uint64_t exponent = narrow ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
    uint64_t fraction = narrow ? 0x7fffff : UINT64_C(0xfffffffffffff);
    uint32_t bits = 0;
    TK_SIM_EACH(l, mask) {
        uint64_t e = a[l] & exponent, f = a[l] & fraction;
        bool nan = e == exponent && f, inf = e == exponent && !f;
        bool is = tk_sim_has(i, TK_SIM_MOD_FINITE)       ? e != exponent
                  : tk_sim_has(i, TK_SIM_MOD_INFINITE)   ? inf
                  : tk_sim_has(i, TK_SIM_MOD_NUMBER)     ? !nan
                  : tk_sim_has(i, TK_SIM_MOD_NOTANUMBER) ? nan
                  : tk_sim_has(i, TK_SIM_MOD_NORMAL)     ? e != exponent && (e != 0 || f == 0)
                                                         : e == 0 && f != 0;
        bits |= (uint32_t)is << l;
    }
    tk_sim_put_pred(w, &i->arg[0], bits, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(testp, testp_any)
