// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: warpgroups hand registers to each other through what their block has to spare.
//
// A block begins with as many registers a thread as .maxnreg says or, without it, as its bounds on
// threads and blocks leave of a multiprocessor's 65536. What .dec gives back is the block's to
// spare; .inc waits until there is enough. Between two of them the warps of a warpgroup come
// together, by a barrier or what else orders threads. Threads that end give nothing back. How many
// registers code uses is the assembler's affair and is not looked at.
#include "sim/exec.h"
#include "sim/wgmma.h"

enum { MOST = 256, UNIT = 8, OF_SM = 65536 };

uint32_t tk_sim_registers_at_launch(const tk_sim_warp *w) {
    const tk_sim_entry *e = w->grid->entry;
    if (e->maxnreg) {
        const uint32_t n = e->maxnreg < MOST ? e->maxnreg : MOST;
        return (n + UNIT - 1) / UNIT * UNIT;
    }
    const uint32_t *bound = e->reqntid[0] ? e->reqntid : e->maxntid;
    uint64_t threads = (uint64_t)bound[0] * bound[1] * bound[2];
    if (threads == 0 || threads > TK_SIM_MAX_THREADS) {
        return 0;
    }
    uint64_t warps = (threads + TK_SIM_LANES - 1) / TK_SIM_LANES;
    bool fits = e->minnctapersm && e->minnctapersm <= TK_SIM_SM_BLOCKS &&
                warps * TK_SIM_LANES * e->minnctapersm <= TK_SIM_SM_THREADS; // else it is ignored
    uint64_t blocks = fits ? e->minnctapersm : 1;
    uint64_t n = OF_SM / (warps * TK_SIM_LANES * blocks) / UNIT * UNIT;
    return n < MOST ? (uint32_t)n : MOST;
}

static tk_sim_flow wait(tk_sim_warp *w, const tk_sim_inst *i) {
    w->waiting = ~0u;
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        w->wait[l] = TK_SIM_WAIT_REGISTERS;
        w->pc[l] = tk_sim_index(w, i);
    }
    return TK_SIM_WAIT;
}

static void wake(tk_sim_block *b) {
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        if (w->waiting && w->wait[__builtin_ctz(w->waiting)] == TK_SIM_WAIT_REGISTERS) {
            w->waiting = 0;
            memset(w->wait, TK_SIM_WAIT_NONE, sizeof w->wait);
        }
    }
}

static const char *problem(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t n) {
    bool more = tk_sim_has(i, TK_SIM_MOD_INC);
    return w->registers == 0           ? "the entry has neither .maxnreg nor a bound on its threads"
           : more && n < w->registers  ? "it has more already"
           : !more && n > w->registers ? "it has fewer already"
                                       : NULL;
}

// A warp may change its registers again when it comes after the last change of all warps of its
// warpgroup; the one that does not, or UINT32_MAX.
static uint32_t apart(const tk_sim_warp *w) {
    const uint32_t first = w->index / TK_SIM_GROUP_WARPS * TK_SIM_GROUP_WARPS;
    uint32_t found = UINT32_MAX;
    for (uint32_t k = first; w->resizes && k < first + TK_SIM_GROUP_WARPS && k < w->block->nwarp;
         k++) {
        const tk_sim_warp *x = &w->block->warp[k];
        const bool after = x == w || (x->resizes >= w->resizes &&
                                      tk_sim_shadow_warp_after(w, x->resized[w->resizes % 2]));
        found = after || found != UINT32_MAX ? found : k;
    }
    return found;
}

static tk_sim_flow run_setmaxnreg(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    tk_sim_block *b = w->block;
    uint32_t n = (uint32_t)tk_sim_get(w, &i->arg[0])[0];
    const char *why = problem(w, i, n);
    if (why && w->registers == 0) {
        return tk_sim_fail(w, i, 0, "registers", "'%s' %u: %s", i->name, n, why);
    }
    if (why) {
        return tk_sim_fail(w, i, 0, "registers", "'%s' %u where a thread has %u: %s", i->name, n,
                           w->registers, why);
    }
    const uint32_t other = apart(w);
    if (other != UINT32_MAX) {
        return tk_sim_fail(w, i, 0, "registers",
                           "'%s' %u is not the first; nothing says that warp %u, of the same "
                           "warpgroup, has executed the one before",
                           i->name, n, other);
    }
    if (n > w->registers && n - w->registers > b->spare) {
        return wait(w, i);
    }
    if (!tk_sim_wgmma_together(w, i, n, 0, 0)) {
        return TK_SIM_FAULT;
    }
    b->spare += w->registers - n; // the difference may be less than 0
    if (n < w->registers) {
        wake(b);
    }
    w->registers = n;
    w->resized[++w->resizes % 2] = tk_sim_shadow_warp_now(w);
    return flow;
}
tk_sim_exec *tk_sim_bind_setmaxnreg(const tk_sim_inst *i) {
    return i->arg[0].kind == TK_SIM_ARG_CONST ? run_setmaxnreg : NULL;
}
