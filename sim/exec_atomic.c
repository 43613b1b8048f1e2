// SPDX-License-Identifier: Apache-2.0
// Atomic operations: the lanes one after another.
#include "sim/exec.h"
#include "sim/floats.h"

static int64_t as_signed(uint64_t x, unsigned bits) {
    return (int64_t)(x << (64 - bits)) >> (64 - bits);
}

static uint64_t int_result(const tk_sim_inst *i, tk_sim_type t, uint64_t old, uint64_t x) {
    unsigned bits = tk_sim_types[t].bits;
    bool minus = tk_sim_types[t].kind == 's';
    bool less = minus ? as_signed(x, bits) < as_signed(old, bits) : x < old;
    return tk_sim_has(i, TK_SIM_MOD_ADD)    ? old + x
           : tk_sim_has(i, TK_SIM_MOD_MIN)  ? (less ? x : old)
           : tk_sim_has(i, TK_SIM_MOD_MAX)  ? (less ? old : x)
           : tk_sim_has(i, TK_SIM_MOD_INC)  ? (old >= x ? 0 : old + 1)
           : tk_sim_has(i, TK_SIM_MOD_DEC)  ? (old == 0 || old > x ? x : old - 1)
           : tk_sim_has(i, TK_SIM_MOD_AND)  ? (old & x)
           : tk_sim_has(i, TK_SIM_MOD_OR)   ? (old | x)
           : tk_sim_has(i, TK_SIM_MOD_XOR)  ? (old ^ x)
           : tk_sim_has(i, TK_SIM_MOD_EXCH) ? x
                                            : old;
}

// An f32 addition by an atomic in global memory flushes subnormal operands and results, by sign; in
// shared memory and by copies it does not. A NaN of f64 that comes out of global memory's adder is
// as it went in.
static uint64_t float_result(const tk_sim_inst *i, tk_sim_type t, uint64_t old, uint64_t x,
                             tk_sim_adder by) {
    if (tk_sim_has(i, TK_SIM_MOD_ADD)) {
        bool flush = by == TK_SIM_ADDER_ATOM && t == TK_SIM_F32;
        if (t == TK_SIM_F64) {
            uint64_t nan = tk_sim_f64_nan(0, x, old);
            double sum = tk_f64_of_bits(old) + tk_f64_of_bits(x);
            bool raw = by != TK_SIM_ADDER_THREAD && (tk_sim_is_nan(t, old) || tk_sim_is_nan(t, x));
            return raw ? (tk_sim_is_nan(t, x) ? x : old) : sum != sum ? nan : tk_f64_bits(sum);
        }
        double a = tk_sim_widen(t, old, flush), b = tk_sim_widen(t, x, flush);
        uint64_t bits = tk_sim_narrow(t, tk_fma_to_odd(a, 1, b), TK_SIM_ROUND_NEAREST, false);
        return flush ? tk_sim_flush(t, bits) : bits;
    }
    bool nx = tk_sim_is_nan(t, x), no = tk_sim_is_nan(t, old);
    if (nx || no) {
        return nx && no ? tk_sim_nan(t) : nx ? old : x;
    }
    double a = tk_sim_widen(t, old, false), b = tk_sim_widen(t, x, false);
    return (tk_sim_has(i, TK_SIM_MOD_MIN) ? b < a : b > a) ? x : old;
}

uint64_t tk_sim_combine(const tk_sim_inst *i, tk_sim_type t, uint64_t old, uint64_t x,
                        tk_sim_adder by) {
    bool swaps = tk_sim_has(i, TK_SIM_MOD_EXCH);
    if (tk_sim_types[t].kind != 'f' || swaps) {
        return int_result(i, t, old, x);
    }
    if (t == TK_SIM_F16X2 || t == TK_SIM_BF16X2) {
        tk_sim_type half = t == TK_SIM_F16X2 ? TK_SIM_F16 : TK_SIM_BF16;
        return float_result(i, half, old & 0xffff, x & 0xffff, by) |
               float_result(i, half, old >> 16 & 0xffff, x >> 16 & 0xffff, by) << 16;
    }
    return float_result(i, t, old, x, by);
}

// One element of one lane.
static uint64_t update_one(tk_sim_grid *g, const tk_sim_inst *i, unsigned char *p, uint64_t x,
                           const uint64_t *other, tk_sim_adder by) {
    unsigned bytes = tk_sim_types[i->type[0]].bits / 8u;
    uint64_t old = 0, keep = ~UINT64_C(0) >> (64 - 8 * bytes);
    memcpy(&old, p, bytes);
    uint64_t now = other ? (old == (x & keep) ? *other : old)
                         : tk_sim_combine(i, (tk_sim_type)i->type[0], old, x & keep, by);
    g->changes += memcmp(p, &now, bytes) != 0;
    memcpy(p, &now, bytes);
    return old;
}

// n elements, one behind another. dest, other NULL: there is none.
static tk_sim_flow update(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask,
                          const tk_sim_arg *dest, const tk_sim_arg *at, const tk_sim_arg *x,
                          unsigned n, const tk_sim_arg *other) {
    unsigned bytes = tk_sim_types[i->type[0]].bits / 8u;
    tk_sim_space space = tk_sim_space_of(i, at);
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, at, mask, address);
    tk_sim_count_request(w, i, mask, space, address, n * bytes);
    TK_SIM_EACH(l, mask) {
        unsigned char *p = tk_sim_at(w, i, l, space, address[l], n * bytes, TK_SIM_ATOMIC, NULL);
        if (!p) {
            return TK_SIM_FAULT;
        }
        tk_sim_adder by = tk_sim_resolve(space, &address[l]) == TK_SIM_GLOBAL ? TK_SIM_ADDER_ATOM
                                                                              : TK_SIM_ADDER_THREAD;
        tk_sim_shadow_flag(w, i, l, p, n * bytes, TK_SIM_ATOMIC);
        for (unsigned k = 0; k < n; k++) {
            uint64_t old = update_one(w->grid, i, p + k * bytes, tk_sim_get(w, x + k)[l],
                                      other ? &tk_sim_get(w, other)[l] : NULL, by);
            if (dest) {
                tk_sim_put(w, dest + k)[l] = old;
            }
        }
    }
    return TK_SIM_NEXT;
}

// Which operations a type has.
static bool exists(const tk_sim_inst *i) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    char kind = tk_sim_types[t].kind;
    bool logic = tk_sim_has(i, TK_SIM_MOD_AND) || tk_sim_has(i, TK_SIM_MOD_OR) ||
                 tk_sim_has(i, TK_SIM_MOD_XOR);
    if (tk_sim_has(i, TK_SIM_MOD_EXCH) || logic) {
        return kind == 'b' && (tk_sim_types[t].bits > 16);
    }
    if (tk_sim_has(i, TK_SIM_MOD_INC) || tk_sim_has(i, TK_SIM_MOD_DEC)) {
        return t == TK_SIM_U32;
    }
    if (tk_sim_has(i, TK_SIM_MOD_ADD)) {
        return kind != 'b' && t != TK_SIM_S64;
    }
    return kind == 'u' || kind == 's';
}

bool tk_sim_combines(const tk_sim_inst *i, tk_sim_type t, bool global) {
    char kind = tk_sim_types[t].kind;
    bool wide = tk_sim_types[t].bits == 64, half = t == TK_SIM_F16 || t == TK_SIM_BF16;
    if (tk_sim_types[t].bits < 32 && !half) {
        return false;
    }
    if (!global && (kind == 'f' || (wide && (t != TK_SIM_U64 || !tk_sim_has(i, TK_SIM_MOD_ADD))))) {
        return false;
    }
    if (tk_sim_has(i, TK_SIM_MOD_AND) || tk_sim_has(i, TK_SIM_MOD_OR) ||
        tk_sim_has(i, TK_SIM_MOD_XOR)) {
        return kind == 'b';
    }
    if (tk_sim_has(i, TK_SIM_MOD_INC) || tk_sim_has(i, TK_SIM_MOD_DEC)) {
        return t == TK_SIM_U32;
    }
    if (tk_sim_has(i, TK_SIM_MOD_ADD)) {
        return kind != 'b' && t != TK_SIM_S64;
    }
    return kind == 'u' || kind == 's' || half;
}

static tk_sim_flow run_atom(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return update(w, i, mask, tk_sim_operand(i, 0), tk_sim_operand(i, 1), tk_sim_operand(i, 2),
                  tk_sim_count_of(i, 2), NULL);
}
tk_sim_exec *tk_sim_bind_atom(const tk_sim_inst *i) { return exists(i) ? run_atom : NULL; }

static tk_sim_flow run_red(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return update(w, i, mask, NULL, tk_sim_operand(i, 0), tk_sim_operand(i, 1),
                  tk_sim_count_of(i, 1), NULL);
}
tk_sim_exec *tk_sim_bind_red(const tk_sim_inst *i) { return exists(i) ? run_red : NULL; }

static tk_sim_flow run_cas(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return update(w, i, mask, &i->arg[0], &i->arg[1], &i->arg[2], 1, &i->arg[3]);
}
TK_SIM_BIND_ONE(cas, run_cas)

static bool vector_exists(const tk_sim_inst *i, unsigned n) {
    unsigned want = tk_sim_has(i, TK_SIM_MOD_V2) ? 2 : tk_sim_has(i, TK_SIM_MOD_V4) ? 4 : 8;
    bool f32 = i->type[0] == TK_SIM_F32;
    return n == want && n * tk_sim_types[i->type[0]].bits <= 128 &&
           tk_sim_has(i, TK_SIM_MOD_NOFTZ) == !f32 && (!f32 || tk_sim_has(i, TK_SIM_MOD_ADD));
}
tk_sim_exec *tk_sim_bind_atom_vector(const tk_sim_inst *i) {
    return vector_exists(i, tk_sim_count_of(i, 0)) && vector_exists(i, tk_sim_count_of(i, 2))
               ? run_atom
               : NULL;
}
tk_sim_exec *tk_sim_bind_red_vector(const tk_sim_inst *i) {
    return vector_exists(i, tk_sim_count_of(i, 1)) ? run_red : NULL;
}
