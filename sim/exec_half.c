// SPDX-License-Identifier: Apache-2.0
// f16 and bf16, single and in pairs: one rounding an operation, from f64 rounded to odd where the
// exact result does not fit.
#include "sim/exec.h"
#include "sim/floats.h"

#include <math.h>

typedef enum operation { ADD, SUB, MUL, FMA, NEG, ABS, MIN, MAX, EX2, TANH } operation;

static tk_sim_type element(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F16 || i->type[0] == TK_SIM_F16X2 ? TK_SIM_F16 : TK_SIM_BF16;
}

static uint64_t pick(const tk_sim_inst *i, tk_sim_type t, uint64_t x, uint64_t y, bool max) {
    uint64_t sign = 0;
    if (tk_sim_has(i, TK_SIM_MOD_XORSIGN)) {
        sign = (x ^ y) & 0x8000;
        x &= 0x7fff;
        y &= 0x7fff;
    }
    bool nx = tk_sim_is_nan(t, x), ny = tk_sim_is_nan(t, y);
    if ((nx && ny) || ((nx || ny) && tk_sim_has(i, TK_SIM_MOD_NAN_))) {
        return tk_sim_nan(t);
    }
    if (nx || ny) {
        return (nx ? y : x) | sign;
    }
    double a = tk_sim_widen(t, x, false), b = tk_sim_widen(t, y, false);
    bool first = a == b ? ((x & 0x8000) != 0) != max : (a < b) != max;
    return (first ? x : y) | sign;
}

static double value(operation op, double x, double y, double z) {
    switch (op) {
    case ADD:
        return tk_fma_to_odd(x, 1, y);
    case SUB:
        return tk_fma_to_odd(x, 1, -y);
    case MUL:
        return x * y;
    case FMA:
        return tk_fma_to_odd(x, y, z);
    case EX2:
        return exp2(x);
    case TANH:
        return tanh(x);
    case NEG:
    case ABS:
    case MIN:
    case MAX:
        break;
    }
    return 0;
}

static uint64_t one(const tk_sim_inst *i, operation op, uint64_t a, uint64_t b, uint64_t c) {
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
        return pick(i, t, a, b, op == MAX);
    }
    double x =
        value(op, tk_sim_widen(t, a, false), tk_sim_widen(t, b, false), tk_sim_widen(t, c, false));
    // A result is flushed by what it was before it was rounded.
    bool flushes =
        tk_sim_has(i, TK_SIM_MOD_FTZ) && fabs(x) < (t == TK_SIM_F16 ? 0x1p-14 : 0x1p-126);
    uint64_t r = tk_sim_narrow(t, flushes ? copysign(0, x) : x, TK_SIM_ROUND_NEAREST, false);
    r = tk_sim_has(i, TK_SIM_MOD_SAT) ? tk_sim_saturate(t, r) : r;
    return tk_sim_has(i, TK_SIM_MOD_RELU) && (r & 0x8000) ? 0 : r;
}

static tk_sim_flow run(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, operation op) {
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
HALF(hadd, ADD)
HALF(hsub, SUB)
HALF(hmul, MUL)
HALF(hfma, FMA)
HALF(hneg, NEG)
HALF(habs, ABS)
HALF(hmin, MIN)
HALF(hmax, MAX)
HALF(hex2, EX2)
HALF(htanh, TANH)
