// SPDX-License-Identifier: Apache-2.0
// Branches, ends, traps, and what does nothing here.
#include "sim/exec.h"
#include "sim/wgmma.h"

static tk_sim_flow run_bra(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)mask;
    w->target = i->arg[0].slot;
    return TK_SIM_BRANCH;
}
TK_SIM_BIND_ONE(bra, run_bra)

static tk_sim_flow run_brx(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *index = tk_sim_get(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) {
        if (index[l] >= tk_sim_count_of(i, 1)) {
            return tk_sim_fail(w, i, l, "branch-index", "branches to label %u of %u",
                               (unsigned)index[l], tk_sim_count_of(i, 1));
        }
        w->pc[l] = tk_sim_operand(i, 1)[index[l]].slot;
    }
    return TK_SIM_GO;
}
TK_SIM_BIND_ONE(brx, run_brx)

tk_sim_flow tk_sim_exit(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool whole = w->alive == mask;
    return whole && w->wgmma && !tk_sim_wgmma_end(w, i) ? TK_SIM_FAULT : TK_SIM_EXIT;
}
TK_SIM_BIND_ONE(exit, tk_sim_exit)

tk_sim_flow tk_sim_exec_past(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(mask), "no-return",
                       "runs past the end of the code");
}

static tk_sim_flow run_trap(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(mask), "trap", "trap");
}
TK_SIM_BIND_ONE(trap, run_trap)

static tk_sim_flow run_nothing(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)w, (void)i, (void)mask;
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(nothing, run_nothing)

// Others may run first: what is polled for may have happened when the thread goes on.
static tk_sim_flow run_nanosleep(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i, (void)mask;
    w->yields = true;
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(nanosleep, run_nanosleep)
