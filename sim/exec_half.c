// SPDX-License-Identifier: Apache-2.0
// f16 and bf16, single and in pairs: one rounding an operation, from f64 rounded to odd where the
// exact result does not fit.
#include "sim/exec.h"
#include "sim/floats.h"
#include "sim/mufu.h"

#include <math.h>

// From ARITH on: a tk_sim_arith more.
enum { NEG, ABS, MIN, MAX, EX2, TANH, ARITH };

static tk_sim_type element(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F16 || i->type[0] == TK_SIM_F16X2 ? TK_SIM_F16 : TK_SIM_BF16;
}

// The f32 result, cut.
static uint64_t special(int op, tk_sim_type t, uint64_t a) {
    uint32_t x = tk_f32_bits((float)tk_sim_widen(t, a, false));
    uint32_t y = tk_sim_mufu(op == EX2 ? TK_SIM_MUFU_EX2 : TK_SIM_MUFU_TANH, x);
    double v = tk_sim_widen(TK_SIM_F32, y, false);
    bool great = t == TK_SIM_F16 && v >= 0x1p16; // becomes infinite
    return tk_sim_narrow(t, v, great ? TK_SIM_ROUND_NEAREST : TK_SIM_ROUND_ZERO, false);
}

static uint64_t one(const tk_sim_inst *i, int op, uint64_t a, uint64_t b, uint64_t c) {
    tk_sim_type t = element(i);
    if (tk_sim_has(i, TK_SIM_MOD_FTZ)) {
        a = tk_sim_flush(t, a);
        b = tk_sim_flush(t, b);
        c = tk_sim_flush(t, c);
    }
    if (op == NEG || op == ABS) {
        return tk_sim_is_nan(t, a) ? tk_sim_nan(t) : op == NEG ? a ^ 0x8000 : a & 0x7fff;
    }
    if (op == MIN || op == MAX) {
        return tk_sim_pick(i, t, a, b, op == MAX);
    }
    if (op == EX2 || op == TANH) {
        return special(op, t, a);
    }
    double x = tk_sim_arith_odd((tk_sim_arith)(op - ARITH), tk_sim_widen(t, a, false),
                                tk_sim_widen(t, b, false), tk_sim_widen(t, c, false));
    uint64_t r = tk_sim_narrow_ftz(t, x, TK_SIM_ROUND_NEAREST, tk_sim_has(i, TK_SIM_MOD_FTZ));
    r = tk_sim_has(i, TK_SIM_MOD_SAT) ? tk_sim_saturate(t, r) : r;
    return tk_sim_has(i, TK_SIM_MOD_RELU) && (r & 0x8000) ? 0 : r;
}

static tk_sim_flow run(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, int op) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    const uint64_t *b = i->narg > 2 ? tk_sim_get(w, &i->arg[2]) : a;
    const uint64_t *c = i->narg > 3 ? tk_sim_get(w, &i->arg[3]) : a;
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    bool pair = tk_sim_types[i->type[0]].bits == 32;
    TK_SIM_EACH(l, mask) {
        uint64_t x = a[l], y = b[l], z = c[l];
        uint64_t r = one(i, op, x & 0xffff, y & 0xffff, z & 0xffff);
        if (pair) {
            r |= one(i, op, x >> 16 & 0xffff, y >> 16 & 0xffff, z >> 16 & 0xffff) << 16;
        }
        d[l] = r;
    }
    return TK_SIM_NEXT;
}

#define HALF(BIND, OP)                                                                             \
    static tk_sim_flow run_##BIND(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {           \
        return run(w, i, mask, OP);                                                                \
    }                                                                                              \
    tk_sim_exec *tk_sim_bind_##BIND(const tk_sim_inst *i) {                                        \
        return tk_sim_has(i, TK_SIM_MOD_XORSIGN) == tk_sim_has(i, TK_SIM_MOD_ABS) ? run_##BIND     \
                                                                                  : NULL;          \
    }
HALF(hadd, ARITH + TK_SIM_ARITH_ADD)
HALF(hsub, ARITH + TK_SIM_ARITH_SUB)
HALF(hmul, ARITH + TK_SIM_ARITH_MUL)
HALF(hfma, ARITH + TK_SIM_ARITH_FMA)
HALF(hneg, NEG)
HALF(habs, ABS)
HALF(hmin, MIN)
HALF(hmax, MAX)
HALF(hex2, EX2)
HALF(htanh, TANH)
