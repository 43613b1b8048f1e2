// SPDX-License-Identifier: Apache-2.0
// Approximate functions: the exact function in f64, rounded once, which is within every published
// bound.
#include "sim/exec.h"
#include "sim/floats.h"

#include <math.h>

static uint64_t rounded(const tk_sim_inst *i, double x) {
    tk_sim_type t = (tk_sim_type)i->type[0];
    uint64_t r = tk_sim_narrow(t, x, TK_SIM_ROUND_NEAREST, false);
    return tk_sim_has(i, TK_SIM_MOD_FTZ) ? tk_sim_flush(t, r) : r;
}

static double argument(const tk_sim_inst *i, uint64_t bits) {
    return tk_sim_widen((tk_sim_type)i->type[0], bits, tk_sim_has(i, TK_SIM_MOD_FTZ));
}

#define SPECIAL(BIND, EXPR)                                                                        \
    static tk_sim_flow run_##BIND(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {           \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]);                                             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) {                                                                     \
            double x = argument(i, a[l]);                                                          \
            d[l] = rounded(i, EXPR);                                                               \
        }                                                                                          \
        return TK_SIM_NEXT;                                                                        \
    }                                                                                              \
    TK_SIM_BIND_ONE(BIND, run_##BIND)

SPECIAL(sqrt_approx, sqrt(x))
SPECIAL(sin_approx, sin(x))
SPECIAL(cos_approx, cos(x))
SPECIAL(lg2_approx, log2(x))
SPECIAL(ex2_approx, exp2(x))
SPECIAL(tanh_approx, tanh(x))
SPECIAL(rcp_approx, 1 / x)
SPECIAL(rsqrt_approx, x == 0 ? copysign(HUGE_VAL, x) : 1 / sqrt(x))

static tk_sim_flow run_div(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) {
        double x = argument(i, a[l]), y = argument(i, b[l]);
        d[l] = rounded(i, x / y);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(fdiv_approx, run_div)
