// SPDX-License-Identifier: Apache-2.0
// Approximate functions: the unit for special functions (mufu.h) with what the assembler puts
// around it: what scales arguments that the unit would flush, and the multiplications of a
// quotient.
#include "sim/exec.h"
#include "sim/floats.h"
#include "sim/mufu.h"

#include <math.h>

#define TWO_P24 0x1p24f
#define TURN    0x1.45f306p-3f // 1 / (2 pi)

static bool flushes(const tk_sim_inst *i) { return tk_sim_has(i, TK_SIM_MOD_FTZ); }

static float f32(uint64_t bits) { return tk_f32_of_bits((uint32_t)bits); }

static uint32_t bits_of(float x) { return x != x ? 0x7fffffff : tk_f32_bits(x); }

// mul.rn, flushing or not.
static uint32_t times(uint64_t x, float y, bool flush) {
    if (!flush) {
        return bits_of(f32(x) * y);
    }
    double p = tk_sim_widen(TK_SIM_F32, x, true) * tk_sim_widen(TK_SIM_F32, tk_f32_bits(y), true);
    return (uint32_t)tk_sim_narrow_ftz(TK_SIM_F32, p, TK_SIM_ROUND_NEAREST, true);
}

static bool is_small(uint64_t x) { return fabsf(f32(x)) < 0x1p-126f; }
static bool is_great(uint64_t x) { return fabsf(f32(x)) > 0x1p126f; }

// f of x times `before`, times `after`.
static uint32_t scaled(tk_sim_mufu_function f, uint64_t x, float before, float after) {
    return times(tk_sim_mufu(f, times(x, before, false)), after, false);
}

static uint32_t rcp(const tk_sim_inst *i, uint64_t x) {
    float scale = is_great(x) ? 0.25f : is_small(x) ? TWO_P24 : 1;
    return flushes(i) || scale == 1 ? tk_sim_mufu(TK_SIM_MUFU_RCP, (uint32_t)x)
                                    : scaled(TK_SIM_MUFU_RCP, x, scale, scale);
}

static uint32_t rsqrt(const tk_sim_inst *i, uint64_t x) {
    return is_small(x) && !flushes(i) ? scaled(TK_SIM_MUFU_RSQ, x, TWO_P24, 0x1p12f)
                                      : tk_sim_mufu(TK_SIM_MUFU_RSQ, (uint32_t)x);
}

static uint32_t root(const tk_sim_inst *i, uint64_t x) {
    return is_small(x) && !flushes(i) ? scaled(TK_SIM_MUFU_SQRT, x, TWO_P24, 0x1p-12f)
                                      : tk_sim_mufu(TK_SIM_MUFU_SQRT, (uint32_t)x);
}

static uint32_t ex2(const tk_sim_inst *i, uint64_t x) {
    if (flushes(i) || !(f32(x) < -126)) {
        return tk_sim_mufu(TK_SIM_MUFU_EX2, (uint32_t)x);
    }
    uint32_t half = tk_sim_mufu(TK_SIM_MUFU_EX2, times(x, 0.5f, false));
    return times(half, f32(half), false);
}

static uint32_t lg2(const tk_sim_inst *i, uint64_t x) {
    if (flushes(i) || !is_small(x)) {
        return tk_sim_mufu(TK_SIM_MUFU_LG2, (uint32_t)x);
    }
    return bits_of(f32(tk_sim_mufu(TK_SIM_MUFU_LG2, times(x, TWO_P24, false))) - 24);
}

// The argument becomes turns, cut.
static uint32_t turned(tk_sim_mufu_function f, uint64_t x) {
    double turns = (double)f32(x) * (double)TURN;
    return tk_sim_mufu(f, (uint32_t)tk_sim_narrow(TK_SIM_F32, turns, TK_SIM_ROUND_ZERO, false));
}

#define SPECIAL(BIND, EXPR)                                                                        \
    TK_SIM_UNARY(run_##BIND, uint64_t, uint32_t, EXPR)                                             \
    TK_SIM_BIND_ONE(BIND, run_##BIND)
SPECIAL(sqrt_approx, root(i, x))
SPECIAL(sin_approx, turned(TK_SIM_MUFU_SIN, x))
SPECIAL(cos_approx, turned(TK_SIM_MUFU_COS, x))
SPECIAL(lg2_approx, lg2(i, x))
SPECIAL(ex2_approx, ex2(i, x))
SPECIAL(tanh_approx, tk_sim_mufu(TK_SIM_MUFU_TANH, (uint32_t)x))

// ---- Quotients

static uint32_t quotient(const tk_sim_inst *i, uint64_t x, uint64_t y) {
    bool flush = flushes(i), full = tk_sim_has(i, TK_SIM_MOD_FULL);
    float scale = full && is_great(y) ? 0.25f : is_small(y) && !flush ? TWO_P24 : 1;
    if (scale != 1) {
        x = times(x, scale, flush);
        y = times(y, scale, flush);
    }
    return times(x, f32(tk_sim_mufu(TK_SIM_MUFU_RCP, (uint32_t)y)), flush);
}
TK_SIM_BINARY(run_div, uint64_t, uint32_t, quotient(i, x, y))
TK_SIM_BIND_ONE(fdiv_approx, run_div)

// ---- f64

static uint64_t high(bool root_too, uint64_t x) {
    return (uint64_t)tk_sim_mufu_high(root_too, (uint32_t)(x >> 32)) << 32;
}

// A step of third order from the unit's result.
static double refined(double x) {
    double y = tk_f64_of_bits(high(true, tk_f64_bits(x)));
    double rest = fma(x, -(y * y), 1);
    return fma(fma(rest, 0.375, 0.5), y * rest, y);
}

static uint64_t rsqrt_f64(const tk_sim_inst *i, uint64_t x) {
    double v = tk_f64_of_bits(x);
    if (flushes(i)) {
        return high(true, x);
    }
    if (v == 0) {
        return (x & UINT64_C(1) << 63) | UINT64_C(0x7ff0000000000000);
    }
    if (v != v || v < 0) {
        return tk_sim_f64_nan(x, 0, 0);
    }
    return isinf(v)        ? 0
           : v < 0x1p-1022 ? tk_f64_bits(refined(v * 0x1p54) * 0x1p27)
                           : tk_f64_bits(refined(v));
}
TK_SIM_UNARY(run_rcp, uint64_t, uint32_t, rcp(i, x))
TK_SIM_UNARY(run_rcp_f64, uint64_t, uint64_t, high(false, x))
tk_sim_exec *tk_sim_bind_rcp_approx(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F64 ? run_rcp_f64 : run_rcp;
}
TK_SIM_UNARY(run_rsqrt, uint64_t, uint32_t, rsqrt(i, x))
TK_SIM_UNARY(run_rsqrt_f64, uint64_t, uint64_t, rsqrt_f64(i, x))
tk_sim_exec *tk_sim_bind_rsqrt_approx(const tk_sim_inst *i) {
    return i->type[0] == TK_SIM_F64 ? run_rsqrt_f64 : run_rsqrt;
}
