// SPDX-License-Identifier: Apache-2.0
// The 16 barriers of a block.
//
// A barrier that says .aligned (bar does) is executed by a warp as a whole: its threads wait for
// each other first. One without is executed by whatever threads come to it. A barrier is complete
// when as many threads have arrived as it expects: those of the block, or the number given.
#include "sim/exec.h"

static bool aligned(const tk_sim_inst *i) {
    return strncmp(i->name, "bar.", 4) == 0 || tk_sim_has(i, TK_SIM_MOD_ALIGNED);
}

static uint32_t lanes_of(const tk_sim_warp *w) {
    uint32_t left = w->block->threads - w->index * TK_SIM_LANES;
    return left >= TK_SIM_LANES ? ~0u : (1u << left) - 1;
}

// Operands k and k + 1 of the first lane: barrier and count, which all lanes must give alike.
static bool same_in_all(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, const tk_sim_arg *a,
                        uint32_t *out) {
    const uint64_t *x = tk_sim_get(w, a);
    *out = (uint32_t)x[__builtin_ctz(mask)];
    TK_SIM_EACH(l, mask) {
        if ((uint32_t)x[l] != *out) {
            tk_sim_fail(w, i, l, "barrier-operands",
                        "the threads of a warp give different operands: %u and %u", *out,
                        (uint32_t)x[l]);
            return false;
        }
    }
    return true;
}

// ---- Completion

static uint32_t waiting_at(const tk_sim_warp *w, uint32_t number) {
    uint32_t lanes = 0;
    TK_SIM_EACH(l, w->waiting) {
        bool here = w->wait[l] == TK_SIM_WAIT_BARRIER && w->wait_number[l] == number;
        lanes |= (uint32_t)here << l;
    }
    return lanes;
}

static void finish_reduction(tk_sim_block *b, uint32_t number) {
    const tk_sim_barrier *bar = &b->barrier[number];
    bool all = bar->count == bar->voters, any = bar->count != 0;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        TK_SIM_EACH(l, waiting_at(w, number)) {
            const tk_sim_inst *at = &w->code[w->pc[l]];
            if (!tk_sim_has(at, TK_SIM_MOD_RED)) {
                continue;
            }
            if (tk_sim_has(at, TK_SIM_MOD_POPC)) {
                tk_sim_put(w, &at->arg[0])[l] = bar->count;
            } else {
                bool r = tk_sim_has(at, TK_SIM_MOD_AND) ? all : any;
                tk_sim_put_pred(w, &at->arg[0], r ? ~0u : 0, 1u << l);
            }
        }
    }
}

static void order(tk_sim_block *b, uint32_t number, bool everyone) {
    struct tk_sim_shadow *s = b->cluster->shadow;
    if (everyone && b->cluster->nblock == 1) {
        tk_sim_shadow_all(s);
        return;
    }
    uint32_t point = tk_sim_point_of_barrier(b, number);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_shadow_release(&b->warp[k], waiting_at(&b->warp[k], number), point);
    }
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_shadow_acquire(&b->warp[k], waiting_at(&b->warp[k], number), point);
    }
    tk_sim_shadow_clear(s, point);
}

static void complete(tk_sim_block *b, uint32_t number) {
    tk_sim_barrier *bar = &b->barrier[number];
    finish_reduction(b, number);
    order(b, number, bar->everyone && bar->arrived == bar->waits);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        uint32_t lanes = waiting_at(w, number);
        w->waiting &= ~lanes;
        TK_SIM_EACH(l, lanes) {
            w->pc[l]++;
            w->wait[l] = TK_SIM_WAIT_NONE;
        }
    }
    memset(bar, 0, sizeof *bar);
}

// ---- Arrival

tk_sim_flow tk_sim_barrier_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                                  uint32_t number, uint32_t expected, bool wait) {
    tk_sim_block *b = w->block;
    uint32_t lane = (uint32_t)__builtin_ctz(lanes);
    uint32_t whole = b->nwarp * TK_SIM_LANES;
    if (number >= TK_SIM_BARRIERS) {
        return tk_sim_fail(w, i, lane, "barrier-operands", "there is no barrier %u", number);
    }
    if (expected % TK_SIM_LANES || expected > whole) {
        return tk_sim_fail(w, i, lane, "barrier-operands",
                           "a barrier for %u threads in a block of %u", expected, b->threads);
    }
    tk_sim_barrier *bar = &b->barrier[number];
    uint32_t want = expected ? expected : whole;
    if (bar->expected && bar->expected != want) {
        return tk_sim_fail(w, i, lane, "barrier-operands",
                           "barrier %u is for %u threads here and for %u elsewhere", number, want,
                           bar->expected);
    }
    bar->expected = want;
    bar->everyone = want == whole;
    // A warp counts as a whole, also the last one of a block that does not fill it.
    uint32_t n = lanes == lanes_of(w) ? TK_SIM_LANES : (uint32_t)__builtin_popcount(lanes);
    bar->arrived += n;
    bar->waits += wait ? n : 0;
    if (bar->arrived > want) {
        return tk_sim_fail(w, i, lane, "barrier-overflow",
                           "%u threads arrive at barrier %u, which is for %u", bar->arrived, number,
                           want);
    }
    if (!wait) { // of those that wait, complete() does it
        tk_sim_shadow_release(w, lanes, tk_sim_point_of_barrier(b, number));
    }
    tk_sim_count *count = &w->grid->count[tk_sim_index(w, i)];
    count->barrier_waits += wait;
    if (wait) {
        w->waiting |= lanes;
        TK_SIM_EACH(l, lanes) {
            w->wait[l] = TK_SIM_WAIT_BARRIER;
            w->wait_number[l] = (uint8_t)number;
            w->pc[l] = tk_sim_index(w, i);
        }
    }
    if (bar->arrived == want) {
        complete(b, number);
        w->joined = 0; // all have been moved on already
        return wait ? TK_SIM_JOINED : TK_SIM_NEXT;
    }
    return wait ? TK_SIM_WAIT : TK_SIM_NEXT;
}

bool tk_sim_barrier_together(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t *got,
                             tk_sim_flow *flow) {
    if (!aligned(i)) {
        *got = mask;
        return true;
    }
    if (w->alive != lanes_of(w)) {
        uint32_t gone = lanes_of(w) & ~w->alive;
        *flow = tk_sim_fail(w, i, (uint32_t)__builtin_ctz(mask), "divergent-barrier",
                            "a part of warp %u is at a barrier of whole warps; thread %u has ended",
                            w->index, tk_sim_thread(w, (uint32_t)__builtin_ctz(gone)));
        return false;
    }
    if (!tk_sim_gather(w, i, mask, lanes_of(w), got)) {
        *flow = TK_SIM_WAIT;
        return false;
    }
    return true;
}

static tk_sim_flow arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask,
                          const tk_sim_arg *number, const tk_sim_arg *count, bool wait) {
    uint32_t got, which, expected = 0;
    tk_sim_flow flow;
    if (!tk_sim_barrier_together(w, i, mask, &got, &flow)) {
        return flow;
    }
    if (!same_in_all(w, i, got, number, &which) ||
        (count && !same_in_all(w, i, got, count, &expected))) {
        return TK_SIM_FAULT;
    }
    if (count && expected == 0) {
        return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(got), "barrier-operands",
                           "a barrier for 0 threads");
    }
    flow = tk_sim_barrier_arrive(w, i, got, which, expected, wait);
    if (flow == TK_SIM_NEXT && got != mask) { // arrive, and some have waited for the warp
        w->joined = got;
        return TK_SIM_JOINED;
    }
    return flow;
}

static tk_sim_flow run_sync(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return arrive(w, i, mask, &i->arg[0], i->narg > 1 ? &i->arg[1] : NULL, true);
}
TK_SIM_BIND_ONE(bar_sync, run_sync)

static tk_sim_flow run_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return arrive(w, i, mask, &i->arg[0], &i->arg[1], false);
}
TK_SIM_BIND_ONE(bar_arrive, run_arrive)

static tk_sim_flow run_red(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got, number;
    tk_sim_flow flow;
    if (!tk_sim_barrier_together(w, i, mask, &got, &flow)) {
        return flow;
    }
    if (!same_in_all(w, i, got, &i->arg[1], &number)) {
        return TK_SIM_FAULT;
    }
    if (number < TK_SIM_BARRIERS) {
        uint32_t yes = tk_sim_get_pred(w, &i->arg[i->narg - 1]) & got;
        w->block->barrier[number].count += (uint32_t)__builtin_popcount(yes);
        w->block->barrier[number].voters += (uint32_t)__builtin_popcount(got);
    }
    return arrive(w, i, mask, &i->arg[1], i->narg > 3 ? &i->arg[2] : NULL, true);
}
TK_SIM_BIND_ONE(bar_red, run_red)
