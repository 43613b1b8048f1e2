// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic in all rounding modes.
//
// f32 in other modes than nearest is computed in f64, rounded to odd, and rounded again: f64 has
// more than twice f32's bits, so that gives the exact result's rounding. f64 in other modes uses
// the processor's, which is set back at once.
#include "sim/exec.h"
#include "sim/floats.h"

#include <fenv.h>
#include <math.h>

static double plain(tk_sim_arith op, double x, double y, double z) {
    switch (op) {
    case TK_SIM_ARITH_ADD:
        return x + y;
    case TK_SIM_ARITH_SUB:
        return x - y;
    case TK_SIM_ARITH_MUL:
        return x * y;
    case TK_SIM_ARITH_FMA:
        return fma(x, y, z);
    case TK_SIM_ARITH_DIV:
        return x / y;
    case TK_SIM_ARITH_SQRT:
        return sqrt(x);
    }
    return 0;
}

// Volatile, so that nothing is computed at another time than between the changes of the mode.
static double in_mode(tk_sim_arith op, double x, double y, double z, tk_sim_round mode) {
    static const int of[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    volatile double vx = x, vy = y, vz = z;
    fesetround(of[mode]);
    volatile double r = plain(op, vx, vy, vz);
    fesetround(FE_TONEAREST);
    return r;
}

static uint64_t compute(const tk_sim_inst *i, tk_sim_arith op, uint64_t a, uint64_t b, uint64_t c) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    tk_sim_round mode = tk_sim_round_of(i);
    bool ftz = tk_sim_has(i, TK_SIM_MOD_FTZ);
    double x = tk_sim_widen(t, a, ftz), y = tk_sim_widen(t, b, ftz), z = tk_sim_widen(t, c, ftz);
    uint64_t r;
    if (t == TK_SIM_F64) {
        double exact = mode ? in_mode(op, x, y, z, mode) : plain(op, x, y, z);
        bool first = op == TK_SIM_ARITH_DIV && tk_sim_is_nan(t, a);
        return exact == exact ? tk_f64_bits(exact)
                              : tk_sim_f64_nan(first ? 0 : a, first ? 0 : b, first ? a : c);
    } else {
        double exact = tk_sim_arith_odd(op, x, y, z);
        bool cancels = exact == 0 &&
                       (op == TK_SIM_ARITH_ADD || op == TK_SIM_ARITH_SUB || op == TK_SIM_ARITH_FMA);
        if (cancels && mode == TK_SIM_ROUND_DOWN) { // x - x is -0 downwards
            double sum = op == TK_SIM_ARITH_ADD   ? x
                         : op == TK_SIM_ARITH_SUB ? x
                                                  : x * y,
                   other = op == TK_SIM_ARITH_SUB   ? -y
                           : op == TK_SIM_ARITH_ADD ? y
                                                    : z;
            exact = signbit(sum) || signbit(other) ? -0.0 : 0.0;
        }
        r = tk_sim_narrow_ftz(t, exact, mode, ftz);
    }
    r = ftz ? tk_sim_flush(t, r) : r;
    return tk_sim_has(i, TK_SIM_MOD_SAT) ? tk_sim_saturate(t, r) : r;
}

// ---- What most code is made of: f32 to nearest, nothing else said
static uint32_t f32_result(float x) { return x != x ? 0x7fffffff : tk_f32_bits(x); }
#define F32(x) tk_f32_of_bits((uint32_t)(x))
#define QUICK2(NAME, EXPR)                                                                         \
    static tk_sim_flow NAME(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {                 \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) {                                                                     \
            float x = F32(a[l]), y = F32(b[l]);                                                    \
            d[l] = f32_result(EXPR);                                                               \
        }                                                                                          \
        return TK_SIM_NEXT;                                                                        \
    }
QUICK2(quick_add, x + y)
QUICK2(quick_sub, x - y)
QUICK2(quick_mul, x *y)
QUICK2(quick_div, x / y)
static tk_sim_flow quick_fma(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),
                   *c = tk_sim_get(w, &i->arg[3]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) { d[l] = f32_result(fmaf(F32(a[l]), F32(b[l]), F32(c[l]))); }
    return TK_SIM_NEXT;
}

static bool quick(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F32 && tk_sim_round_of(i) == TK_SIM_ROUND_NEAREST &&
           !tk_sim_has(i, TK_SIM_MOD_FTZ) && !tk_sim_has(i, TK_SIM_MOD_SAT);
}

// .ftz and .sat are f32's.
static bool exists(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F32 ||
           (!tk_sim_has(i, TK_SIM_MOD_FTZ) && !tk_sim_has(i, TK_SIM_MOD_SAT));
}

#define ARITHMETIC2(BIND, OP, QUICK)                                                               \
    TK_SIM_BINARY(any_##BIND, uint64_t, uint64_t, compute(i, OP, x, y, 0))                         \
    tk_sim_exec *tk_sim_bind_##BIND(const tk_sim_inst *i) {                                        \
        return !exists(i) ? NULL : quick(i) ? QUICK : any_##BIND;                                  \
    }
ARITHMETIC2(fadd, TK_SIM_ARITH_ADD, quick_add)
ARITHMETIC2(fsub, TK_SIM_ARITH_SUB, quick_sub)
ARITHMETIC2(fmul, TK_SIM_ARITH_MUL, quick_mul)
ARITHMETIC2(fdiv, TK_SIM_ARITH_DIV, quick_div)

TK_SIM_TERNARY(any_ffma, uint64_t, uint64_t, compute(i, TK_SIM_ARITH_FMA, x, y, z))
tk_sim_exec *tk_sim_bind_ffma(const tk_sim_inst *i) {
    return !exists(i) ? NULL : quick(i) ? quick_fma : any_ffma;
}

static uint64_t one(const tk_sim_inst *i) {
    return tk_sim_narrow((tk_sim_type)i->type[0], 1, TK_SIM_ROUND_NEAREST, false);
}
TK_SIM_UNARY(any_frcp, uint64_t, uint64_t, compute(i, TK_SIM_ARITH_DIV, one(i), x, 0))
tk_sim_exec *tk_sim_bind_frcp(const tk_sim_inst *i) { return exists(i) ? any_frcp : NULL; }
TK_SIM_UNARY(any_fsqrt, uint64_t, uint64_t, compute(i, TK_SIM_ARITH_SQRT, x, 0, 0))
tk_sim_exec *tk_sim_bind_fsqrt(const tk_sim_inst *i) { return exists(i) ? any_fsqrt : NULL; }

// ---- Signs
static uint64_t sign_of(const tk_sim_inst *i) {
    return UINT64_C(1) << (tk_sim_types[i->type[0]].bits - 1);
}
static uint64_t flushed(const tk_sim_inst *i, uint64_t x) {
    return tk_sim_has(i, TK_SIM_MOD_FTZ) ? tk_sim_flush((tk_sim_type)i->type[0], x) : x;
}
// neg and abs make NaN canonical, of f64 quiet with the sign that it has.
static uint64_t with_sign(const tk_sim_inst *i, uint64_t x, uint64_t flip, uint64_t clear) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    if (tk_sim_is_nan(t, x)) {
        return t == TK_SIM_F64 ? tk_sim_f64_nan(x, 0, 0) : tk_sim_nan(t);
    }
    return (flushed(i, x) ^ flip) & ~clear;
}
TK_SIM_UNARY(any_fneg, uint64_t, uint64_t, with_sign(i, x, sign_of(i), 0))
tk_sim_exec *tk_sim_bind_fneg(const tk_sim_inst *i) { return exists(i) ? any_fneg : NULL; }
TK_SIM_UNARY(any_fabs, uint64_t, uint64_t, with_sign(i, x, 0, sign_of(i)))
tk_sim_exec *tk_sim_bind_fabs(const tk_sim_inst *i) { return exists(i) ? any_fabs : NULL; }
TK_SIM_BINARY(any_copysign, uint64_t, uint64_t, (x & sign_of(i)) | (y & ~sign_of(i)))
TK_SIM_BIND_ONE(copysign, any_copysign)

// ---- min, max
static uint64_t pick(const tk_sim_inst *i, uint64_t x, uint64_t y, bool max) {
    return tk_sim_pick(i, (tk_sim_type)i->type[0], flushed(i, x), flushed(i, y), max);
}
TK_SIM_BINARY(any_fmin, uint64_t, uint64_t, pick(i, x, y, false))
TK_SIM_BINARY(any_fmax, uint64_t, uint64_t, pick(i, x, y, true))

static bool picks(const tk_sim_inst *i) {
    bool f32_only = tk_sim_has(i, TK_SIM_MOD_NAN_) || tk_sim_has(i, TK_SIM_MOD_XORSIGN);
    return exists(i) && (i->type[0] == TK_SIM_F32 || !f32_only) &&
           tk_sim_has(i, TK_SIM_MOD_XORSIGN) == tk_sim_has(i, TK_SIM_MOD_ABS);
}
tk_sim_exec *tk_sim_bind_fmin(const tk_sim_inst *i) { return picks(i) ? any_fmin : NULL; }
tk_sim_exec *tk_sim_bind_fmax(const tk_sim_inst *i) { return picks(i) ? any_fmax : NULL; }
