// SPDX-License-Identifier: Apache-2.0
// The 16 barriers of a block.
//
// A warp arrives as a whole, for 32 threads: a thread that comes to a barrier first waits for the
// other threads of its warp that have not ended, at whichever instruction of that barrier; where
// the instruction says .aligned (bar does), at this one. A barrier with a count is complete when so
// many threads have arrived; one without when no other thread of the block is left: those that have
// ended are not waited for.
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

// Those that have arrived with their warp.
static uint32_t arrived_at(const tk_sim_warp *w, uint32_t number) {
    return waiting_at(w, number) & ~w->block->barrier[number].came[w->index];
}

// A bar.red among the lanes, and its operand: those whose predicate is true.
static uint32_t votes(const tk_sim_warp *w, uint32_t lanes, uint32_t *voters) {
    uint32_t yes = 0;
    *voters = 0;
    TK_SIM_EACH(l, lanes) {
        const tk_sim_inst *at = &w->code[w->pc[l]];
        if (tk_sim_has(at, TK_SIM_MOD_RED)) {
            *voters |= 1u << l;
            yes |= tk_sim_get_pred(w, &at->arg[at->narg - 1]) & (1u << l);
        }
    }
    return yes;
}

static void finish_reduction(tk_sim_block *b, uint32_t number) {
    uint32_t all = 0, count = 0, voters;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        const uint32_t yes = votes(&b->warp[k], arrived_at(&b->warp[k], number), &voters);
        count += (uint32_t)__builtin_popcount(yes);
        all += (uint32_t)__builtin_popcount(voters);
    }
    for (uint32_t k = 0; all && k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        votes(w, arrived_at(w, number), &voters);
        TK_SIM_EACH(l, voters) {
            const tk_sim_inst *at = &w->code[w->pc[l]];
            if (tk_sim_has(at, TK_SIM_MOD_POPC)) {
                tk_sim_put(w, &at->arg[0])[l] = count;
            } else {
                bool r = tk_sim_has(at, TK_SIM_MOD_AND) ? count == all : count != 0;
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
        tk_sim_shadow_release(&b->warp[k], arrived_at(&b->warp[k], number), point);
    }
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_shadow_acquire(&b->warp[k], arrived_at(&b->warp[k], number), point);
    }
    tk_sim_shadow_clear(s, point);
}

static void move_on(tk_sim_warp *w, uint32_t lanes) {
    w->waiting &= ~lanes;
    TK_SIM_EACH(l, lanes) {
        w->pc[l]++;
        w->wait[l] = TK_SIM_WAIT_NONE;
    }
}

// Whether all threads of the block that have not ended wait at the barrier.
static bool all_wait(const tk_sim_block *b, uint32_t number, bool *any_ended) {
    bool all = true;
    *any_ended = false;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        const tk_sim_warp *w = &b->warp[k];
        all = all && arrived_at(w, number) == w->alive;
        *any_ended = *any_ended || w->alive != lanes_of(w);
    }
    return all;
}

// Whoever waits goes on, if it is complete.
static void look(tk_sim_block *b, uint32_t number) {
    tk_sim_barrier *bar = &b->barrier[number];
    bool any_ended, all = all_wait(b, number, &any_ended);
    if (bar->arrived != bar->expected && (bar->counted || !all)) {
        return;
    }
    finish_reduction(b, number);
    order(b, number, all && !any_ended);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        move_on(&b->warp[k], arrived_at(&b->warp[k], number));
    }
    bar->arrived = 0; // a warp may be on its way to the next phase
    bool more = false;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        more = more || bar->came[k];
    }
    bar->expected = more ? bar->expected : 0;
    bar->counted = more && bar->counted;
}

// ---- Arrival

// Where all threads of the warp are there, it arrives; who does not wait goes on. False after a
// fault.
static bool arrive_warp(tk_sim_warp *w, const tk_sim_inst *i, uint32_t number) {
    tk_sim_barrier *bar = &w->block->barrier[number];
    if (w->alive & ~bar->came[w->index]) {
        return true;
    }
    bar->came[w->index] = 0;
    bar->arrived += TK_SIM_LANES;
    TK_SIM_EACH(l, waiting_at(w, number)) {
        if (tk_sim_has(&w->code[w->pc[l]], TK_SIM_MOD_ARRIVE)) {
            move_on(w, 1u << l);
        }
    }
    if (bar->arrived > bar->expected) {
        tk_sim_fail(w, i, 0, "barrier-overflow", "%u threads arrive at barrier %u, which is for %u",
                    bar->arrived, number, bar->expected);
        return false;
    }
    return true;
}

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
    bar->counted = bar->counted || expected;
    bar->came[w->index] |= lanes;
    if (!wait) { // of those that wait, order() does it
        tk_sim_shadow_release(w, lanes, tk_sim_point_of_barrier(b, number));
    }
    w->grid->count[tk_sim_index(w, i)].barrier_waits += wait;
    w->waiting |= lanes;
    TK_SIM_EACH(l, lanes) {
        w->wait[l] = TK_SIM_WAIT_BARRIER;
        w->wait_number[l] = (uint8_t)number;
        w->pc[l] = tk_sim_index(w, i);
    }
    if (!arrive_warp(w, i, number)) {
        return TK_SIM_FAULT;
    }
    look(b, number);
    w->joined = 0; // those that go on have been moved already
    return TK_SIM_JOINED;
}

bool tk_sim_barriers_left(tk_sim_warp *w) {
    for (uint32_t k = 0; k < TK_SIM_BARRIERS; k++) {
        tk_sim_barrier *bar = &w->block->barrier[k];
        if (!bar->expected) {
            continue;
        }
        const uint32_t here = bar->came[w->index];
        if (here && w->alive && !arrive_warp(w, &w->code[w->pc[__builtin_ctz(here)]], k)) {
            return false;
        }
        look(w->block, k);
    }
    return true;
}

bool tk_sim_barrier_together(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t *got,
                             tk_sim_flow *flow) {
    if (!aligned(i)) {
        *got = mask;
        return true;
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
    return tk_sim_barrier_arrive(w, i, got, which, expected, wait);
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
    return arrive(w, i, mask, &i->arg[1], i->narg > 3 ? &i->arg[2] : NULL, true);
}
TK_SIM_BIND_ONE(bar_red, run_red)
