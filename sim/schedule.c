// SPDX-License-Identifier: Apache-2.0
// A run: clusters become resident, the schedule picks a warp, the warp runs for a while.
//
// Seed 0 runs clusters one after another and each warp until it must wait. Another seed keeps
// several clusters resident, picks the next warp at random and gives it a random number of
// instructions; where the threads of a warp have gone different ways, it now and then picks another
// group than the one at the smallest pc. On most of these seeds threads stop for a while behind an
// access by which they have told others something.
//
// Where the seed is odd, what is asynchronous is late: it takes effect where no warp of the
// resident clusters goes on without it. Another seed, but 0: after a quarter of the turns.
#include "sim/wgmma.h"

enum {
    QUANTUM = 1 << 14, // of seed 0: a warp that spins gives way at last
    SHARE = 1 << 11,   // the same where several clusters have turns
    SPINNING = 503,    // the same where nothing has changed for long: prime to loops' lengths
    STARVED = 4096,    // instructions of one group of threads while others of its warp could run
    OLDEST = 1024,     // of seed 0: of others, until those that ran longest ago have their turn
};

uint64_t tk_sim_random(tk_sim_grid *g, uint64_t below) {
    if (g->launch->seed == 0) {
        return 0;
    }
    uint64_t z = g->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % below;
}

// ---- One warp

// The group of threads that runs: they stand at `pc`. Others of the warp can run too where
// others != 0; those of them that come next stand at `next`.
typedef struct group {
    uint32_t lanes, pc, next, others;
} group;

static uint32_t smallest(const tk_sim_warp *w, uint32_t lanes, uint32_t from) {
    uint32_t pc = UINT32_MAX;
    TK_SIM_EACH(l, lanes) { pc = w->pc[l] >= from && w->pc[l] < pc ? w->pc[l] : pc; }
    return pc;
}

// The pc of another group than that at `pc`: one after another where one has starved the others,
// else one at random.
static uint32_t other_group(tk_sim_warp *w, uint32_t can, uint32_t pc) {
    if (w->turns >= STARVED) {
        return smallest(w, can, w->last + 1);
    }
    uint32_t n = 0, above[TK_SIM_LANES];
    for (uint32_t at = pc; (at = smallest(w, can, at + 1)) != UINT32_MAX;) {
        above[n++] = at;
    }
    return n == 0 ? UINT32_MAX : n == 1 ? above[0] : above[tk_sim_random(w->grid, n)];
}

static uint32_t can_run(const tk_sim_warp *w) {
    return w->alive & ~w->waiting & ~w->parked & ~w->asleep & ~w->napping;
}

// Of seed 0: the pc of threads that could have run for long and did not. UINT32_MAX: none.
static uint32_t longest_ago(tk_sim_warp *w, uint32_t can) {
    if (w->grid->launch->seed != 0) {
        return UINT32_MAX;
    }
    uint64_t least = w->steps;
    uint32_t pc = UINT32_MAX;
    TK_SIM_EACH(l, w->alive) {
        w->ran_at[l] = can >> l & 1 ? w->ran_at[l] : w->steps;
        if (w->ran_at[l] < least) {
            least = w->ran_at[l];
            pc = w->pc[l];
        }
    }
    return w->steps - least > OLDEST ? pc : UINT32_MAX;
}

static bool pick_group(tk_sim_warp *w, group *g) {
    if (w->meetings) {
        tk_sim_rejoin(w);
    }
    tk_sim_wake_up(w);
    if (tk_sim_overdue(w)) {
        tk_sim_let_go(w);
    }
    const uint32_t can = can_run(w);
    if (!can) {
        return false;
    }
    const uint32_t starved = longest_ago(w, can);
    g->pc = starved != UINT32_MAX ? starved : smallest(w, can, 0);
    bool other =
        starved != UINT32_MAX ? false : w->turns >= STARVED || tk_sim_random(w->grid, 8) == 1;
    uint32_t above = other ? other_group(w, can, g->pc) : UINT32_MAX;
    g->pc = above != UINT32_MAX ? above : g->pc;
    w->turns = other ? 0 : w->turns;
    g->lanes = 0;
    TK_SIM_EACH(l, can) { g->lanes |= (uint32_t)(w->pc[l] == g->pc) << l; }
    g->others = can & ~g->lanes;
    g->next = g->others ? smallest(w, g->others, g->pc) : UINT32_MAX;
    return true;
}

static void put_pc(tk_sim_warp *w, uint32_t lanes, uint32_t pc) {
    TK_SIM_EACH(l, lanes) { w->pc[l] = pc; }
}

// Threads that wait for others of their warp look again: some have ended. False after a fault.
static bool look_again(tk_sim_warp *w, uint32_t ended) {
    TK_SIM_EACH(l, w->waiting) {
        TK_SIM_EACH(k, tk_sim_members(w, l) & ended) {
            if (!tk_sim_members_agree(w, l, k)) {
                return false;
            }
        }
    }
    TK_SIM_EACH(l, w->waiting) {
        if (w->wait[l] == TK_SIM_WAIT_WARP) {
            w->wait[l] = TK_SIM_WAIT_NONE;
            w->waiting &= ~(1u << l);
        }
    }
    return true;
}

bool tk_sim_gather_with(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t others,
                        uint32_t members, uint32_t *got) {
    const uint32_t here = mask | others;
    if ((members & w->alive & ~here) == 0) {
        *got = here & members;
        w->waiting &= ~*got;
        TK_SIM_EACH(l, *got) { w->wait[l] = TK_SIM_WAIT_NONE; }
        return true;
    }
    w->waiting |= mask;
    TK_SIM_EACH(l, mask) {
        w->wait[l] = TK_SIM_WAIT_WARP;
        w->pc[l] = tk_sim_index(w, i);
    }
    return false;
}

bool tk_sim_gather(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t members,
                   uint32_t *got) {
    uint32_t others = 0;
    TK_SIM_EACH(l, w->waiting & members) {
        bool here = w->wait[l] == TK_SIM_WAIT_WARP && w->pc[l] == tk_sim_index(w, i);
        others |= (uint32_t)here << l;
    }
    return tk_sim_gather_with(w, i, mask, others, members, got);
}

void tk_sim_wake(tk_sim_cluster *c) {
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, k);
        TK_SIM_EACH(l, w->waiting) {
            if (w->wait[l] == TK_SIM_WAIT_ASYNC) {
                w->wait[l] = TK_SIM_WAIT_NONE;
                w->waiting &= ~(1u << l);
            }
        }
    }
}

static uint32_t guarded(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes) {
    return i->guard == 0
               ? lanes
               : lanes & (i->guard == 1 ? w->pred[i->guard_slot] : ~w->pred[i->guard_slot]);
}

typedef enum step { STEP_ON, STEP_REGROUP, STEP_FAULT } step;

// A branch that is not inside of the polling loop of last: what it changes is not known any more.
static void leave_loop(tk_sim_warp *w, uint32_t pc) {
    const uint32_t span = w->spun_at - w->spun_to;
    if (pc - w->spun_to > span || w->target - w->spun_to > span) {
        w->spun_lanes = 0;
    }
}

// What the executor's answer means for the group; `mask`: the lanes that executed.
static step follow(tk_sim_warp *w, group *g, uint32_t mask, tk_sim_flow flow) {
    switch (flow) {
    case TK_SIM_NEXT:
        g->pc++;
        return STEP_ON;
    case TK_SIM_BRANCH:
        leave_loop(w, g->pc);
        if (mask == g->lanes && !(w->code[g->pc].polls && tk_sim_spins(w, g->pc, mask))) {
            g->pc = w->target;
            return STEP_ON;
        }
        if (mask != g->lanes) {
            tk_sim_part(w, &w->code[g->pc], g->lanes, 0);
        }
        put_pc(w, mask, w->target);
        break;
    case TK_SIM_GO:
        w->spun_lanes = 0;
        tk_sim_part(w, &w->code[g->pc], g->lanes, mask);
        break;
    case TK_SIM_WAIT:
        break;
    case TK_SIM_JOINED: // some of them may have waited elsewhere
        put_pc(w, w->joined & mask, g->pc);
        TK_SIM_EACH(l, w->joined) { w->pc[l]++; }
        break;
    case TK_SIM_EXIT:
        w->grid->changes++;
        w->alive &= ~mask;
        if (w->alive == 0) {
            w->block->live--;
        }
        if (!look_again(w, mask) || !tk_sim_barriers_left(w)) {
            return STEP_FAULT;
        }
        tk_sim_cluster_left(w, mask);
        break;
    case TK_SIM_FAULT:
        return STEP_FAULT;
    }
    put_pc(w, g->lanes & ~mask, g->pc + 1);
    return STEP_REGROUP;
}

// Whether threads of the group are to wait for others at this place.
static bool meets(const tk_sim_warp *w, const group *g) {
    bool is = false;
    for (uint32_t k = 0; k < w->meetings; k++) {
        is = is || (w->meeting[k].at == g->pc && (w->meeting[k].lanes & g->lanes));
    }
    return is;
}

// Whether the group looks who runs next: others of the warp have come to its place, or have waited
// long; some wait for it at this place; it sleeps.
static bool regroups(tk_sim_warp *w, const group *g) {
    bool is = (w->napping & g->lanes) || (w->code[g->pc].joins && meets(w, g));
    if (g->others) {
        w->turns++;
        is = is || g->pc >= g->next || w->turns >= STARVED || w->yields;
        w->turns = w->yields ? STARVED : w->turns;
        w->last = is ? g->pc : w->last;
    }
    return is;
}

// Behind an atomic or strong access that has changed something, threads may sleep for a while: so
// others come to what these are on the way to, as to the second of two locks.
static void nap(tk_sim_warp *w, uint32_t lanes) {
    tk_sim_grid *g = w->grid;
    if (tk_sim_random(g, g->naps) == 0) {
        w->napping |= lanes;
        w->nap_end = g->clock + (UINT64_C(64) << tk_sim_random(g, 11));
    }
}

// Runs the group until it meets others, must wait, or has had its turn.
static step run_group(tk_sim_warp *w, group *g, uint64_t *left) {
    tk_sim_grid *grid = w->grid;
    const uint64_t begun = grid->clock;
    step s = STEP_ON;
    w->ran |= g->lanes;
    while (s == STEP_ON && *left > 0) {
        const tk_sim_inst *i = &w->code[g->pc];
        uint32_t mask = guarded(w, i, g->lanes);
        tk_sim_count *count = &grid->count[g->pc];
        const uint64_t changes = grid->changes;
        count->warps++;
        count->threads += (unsigned)__builtin_popcount(mask);
        grid->clock++;
        --*left;
        if (i->clock) {
            tk_sim_fill_clocks(w);
        }
        grid->changes += i->tells;
        if (i->tracked && mask && !tk_sim_wgmma_touch(w, i, mask)) {
            return STEP_FAULT;
        }
        s = mask ? follow(w, g, mask, i->exec(w, i, mask)) : follow(w, g, 0, TK_SIM_NEXT);
        if (i->strong && grid->naps && grid->changes != changes) {
            nap(w, mask);
        }
        if (s == STEP_ON && regroups(w, g)) {
            put_pc(w, g->lanes, g->pc);
            s = STEP_REGROUP;
        }
        if (w->yields) {
            w->yields = false;
            *left = 0;
        }
    }
    w->parked_for += grid->clock - begun;
    w->steps += grid->clock - begun;
    TK_SIM_EACH(l, g->lanes) { w->ran_at[l] = w->steps; }
    if (s == STEP_ON) {
        put_pc(w, g->lanes, g->pc);
    }
    return s;
}

// False after a fault.
static bool run_warp(tk_sim_warp *w, uint64_t instructions) {
    group g;
    while (instructions > 0 && pick_group(w, &g)) {
        if (run_group(w, &g, &instructions) == STEP_FAULT) {
            return false;
        }
    }
    return true;
}

// ---- Clusters

// Whether threads of the cluster sleep for a while.
static bool any_naps(const tk_sim_cluster *c) {
    bool any = false;
    for (uint32_t k = 0; k < c->nwarp && c->grid->naps; k++) {
        any = any || tk_sim_warp_of(c, k)->napping;
    }
    return any;
}

static void end_naps(tk_sim_cluster *c) {
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp_of(c, k)->napping = 0;
    }
}

// A warp of the cluster that can run: from `from` on in order. NULL: none.
static tk_sim_warp *pick_warp(const tk_sim_cluster *c, uint32_t from) {
    const tk_sim_grid *g = c->grid;
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, (from + k) % c->nwarp);
        tk_sim_wake_up(w);
        w->napping = g->clock < w->nap_end ? w->napping : 0;
        if (can_run(w) || tk_sim_overdue(w)) {
            return w;
        }
    }
    return NULL;
}

static tk_sim_cluster *pick_cluster(tk_sim_grid *g) {
    uint32_t from = g->launch->seed ? (uint32_t)tk_sim_random(g, g->nresident) : g->turn;
    for (uint32_t k = 0; k < g->nresident; k++) {
        tk_sim_cluster *c = &g->resident[(from + k) % g->nresident];
        if (c->running) {
            return c;
        }
    }
    return NULL;
}

static bool may_go_on(tk_sim_grid *g) {
    const tk_sim_launch *l = g->launch;
    if (l->stop && *l->stop) {
        g->result->fault.id = "stopped";
        g->result->fault.text = "the launch was stopped before its end";
        return false;
    }
    return true;
}

// All threads of the block have ended. False after a fault.
static bool end_block(tk_sim_block *b) {
    b->running = false;
    b->cluster->live--;
    b->cluster->running = b->cluster->live > 0;
    return tk_sim_bulk_end(b) && tk_sim_shadow_end(b);
}

// The next cluster has its turn, where they have turns.
static void next_turn(tk_sim_grid *g, const tk_sim_cluster *c) {
    g->turn = (uint32_t)(c - g->resident + 1) % g->nresident;
}

static bool another_can_run(tk_sim_grid *g) {
    for (uint32_t n = 0; n < g->nresident; n++) {
        const uint32_t k = (g->able + n) % g->nresident;
        if (g->resident[k].running && pick_warp(&g->resident[k], 0)) {
            g->able = k;
            return true;
        }
    }
    return false;
}

// Nothing else happens: whoever waits for others of its warp at a meeting goes on. False: nobody.
static bool let_all_go(tk_sim_cluster *c) {
    bool any = false;
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, k);
        any = any || w->parked;
        tk_sim_let_go(w);
    }
    return any;
}

// Whether a copy of the cluster that had a turn of so many instructions takes effect.
static bool steps_now(tk_sim_grid *g, uint64_t instructions, uint64_t quantum) {
    return g->launch->seed == 0 ? instructions >= quantum
           : tk_sim_late(g)     ? tk_sim_due(g)
                                : tk_sim_random(g, 4) == 1;
}

static bool run_cluster(tk_sim_grid *g, tk_sim_cluster *c) {
    uint32_t from = g->launch->seed ? (uint32_t)tk_sim_random(g, c->nwarp) : c->turn;
    tk_sim_warp *w = pick_warp(c, from);
    if (!w) {
        if ((!tk_sim_due(g) || any_naps(c)) && another_can_run(g)) {
            return true;
        }
        if (any_naps(c)) {
            end_naps(c);
            return true;
        }
        if (tk_sim_step(c)) {
            return !g->result->fault.id;
        }
        if (let_all_go(c)) {
            return true;
        }
        next_turn(g, c);
        return tk_sim_time_out(c);
    }
    c->turn = w->number;
    uint64_t quantum = tk_sim_suspect(g) ? SPINNING : g->nresident > 1 ? SHARE : QUANTUM;
    uint64_t before = g->clock, changes = g->changes,
             n = g->launch->seed ? 1 + tk_sim_random(g, 4u << tk_sim_random(g, 8)) : quantum;
    if (!run_warp(w, n)) {
        return false;
    }
    if (can_run(w)) { // it has had its turn
        c->turn = w->number + 1;
        if (g->changes == changes) {
            next_turn(g, c);
        }
    }
    // A warp that spins does not hold up what it waits for.
    if (steps_now(g, g->clock - before, quantum) && tk_sim_step(c) && g->result->fault.id) {
        return false;
    }
    if (w->block->live == 0 && !end_block(w->block)) {
        return false;
    }
    if (g->launch->limit && g->clock > g->launch->limit) {
        tk_sim_fail(w, NULL, 0, "limit", "the run takes more than %llu instructions of warps",
                    (unsigned long long)g->launch->limit);
        return false;
    }
    return tk_sim_progress(w, g->clock - before);
}

// Of eight seeds, five let all sleep behind what they tell others, one some of them.
static uint32_t pick_naps(tk_sim_grid *g) {
    const uint64_t k = g->launch->seed ? tk_sim_random(g, 8) : 0;
    return k < 2 ? 0 : k == 2 ? 4 : 1;
}

void tk_sim_run_grid(tk_sim_grid *g) {
    g->naps = pick_naps(g);
    for (;;) {
        for (uint32_t k = 0; k < g->nresident; k++) {
            if (!g->resident[k].running && g->started < g->clusters) {
                tk_sim_start_cluster(g, &g->resident[k]);
            }
        }
        tk_sim_cluster *c = pick_cluster(g);
        if (!c) {
            g->result->ok = true;
            return;
        }
        if (!may_go_on(g) || !run_cluster(g, c)) {
            return;
        }
    }
}
