// SPDX-License-Identifier: Apache-2.0
// A run: blocks become resident, the schedule picks a warp, the warp runs for a while.
//
// Seed 0 runs blocks one after another and each warp until it must wait. Another seed keeps several
// blocks resident, picks the next warp at random and gives it a random number of instructions;
// where the threads of a warp have gone different ways, it now and then picks another group than
// the one at the smallest pc.
#include "sim/machine.h"

enum {
    MAX_RESIDENT = 4,
    QUANTUM = 1 << 14, // of seed 0: a warp that spins gives way at last
    TIMEOUTS = 64,     // of waits, before a block counts as stuck
    STARVED = 4096,    // instructions of one group of threads while others of its warp could run
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

static bool pick_group(tk_sim_warp *w, group *g) {
    uint32_t can = w->alive & ~w->waiting;
    if (!can) {
        return false;
    }
    g->pc = smallest(w, can, 0);
    bool other = w->turns >= STARVED || tk_sim_random(w->grid, 8) == 1;
    uint32_t above = other ? smallest(w, can, g->pc + 1) : UINT32_MAX;
    g->pc = above != UINT32_MAX ? above : g->pc;
    w->turns = 0;
    g->lanes = 0;
    TK_SIM_EACH(l, can) { g->lanes |= (uint32_t)(w->pc[l] == g->pc) << l; }
    g->others = can & ~g->lanes;
    g->next = g->others ? smallest(w, g->others, g->pc) : UINT32_MAX;
    return true;
}

static void put_pc(tk_sim_warp *w, uint32_t lanes, uint32_t pc) {
    TK_SIM_EACH(l, lanes) { w->pc[l] = pc; }
}

// Threads that wait for others of their warp look again: somebody has ended.
static void look_again(tk_sim_warp *w) {
    TK_SIM_EACH(l, w->waiting) {
        if (w->wait[l] == TK_SIM_WAIT_WARP) {
            w->wait[l] = TK_SIM_WAIT_NONE;
            w->waiting &= ~(1u << l);
        }
    }
}

bool tk_sim_gather(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t members,
                   uint32_t *got) {
    uint32_t here = mask, pc = tk_sim_index(w, i);
    TK_SIM_EACH(l, w->waiting & members) {
        here |= (uint32_t)(w->wait[l] == TK_SIM_WAIT_WARP && w->pc[l] == pc) << l;
    }
    if ((members & w->alive & ~here) == 0) {
        *got = here & members;
        w->waiting &= ~*got;
        TK_SIM_EACH(l, *got) { w->wait[l] = TK_SIM_WAIT_NONE; }
        return true;
    }
    w->waiting |= mask;
    TK_SIM_EACH(l, mask) {
        w->wait[l] = TK_SIM_WAIT_WARP;
        w->pc[l] = pc;
    }
    return false;
}

void tk_sim_wake(tk_sim_block *b) {
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
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

// What the executor's answer means for the group; `mask`: the lanes that executed.
static step follow(tk_sim_warp *w, group *g, uint32_t mask, tk_sim_flow flow) {
    switch (flow) {
    case TK_SIM_NEXT:
        g->pc++;
        return STEP_ON;
    case TK_SIM_BRANCH:
        if (mask == g->lanes) {
            g->pc = w->target;
            return STEP_ON;
        }
        put_pc(w, mask, w->target);
        break;
    case TK_SIM_GO:
    case TK_SIM_WAIT:
        break;
    case TK_SIM_JOINED:
        put_pc(w, w->joined, g->pc + 1);
        break;
    case TK_SIM_EXIT:
        w->alive &= ~mask;
        if (w->alive == 0) {
            w->block->live--;
        }
        look_again(w);
        break;
    case TK_SIM_FAULT:
        return STEP_FAULT;
    }
    put_pc(w, g->lanes & ~mask, g->pc + 1);
    return STEP_REGROUP;
}

// Runs the group until it meets others, must wait, or has had its turn.
static step run_group(tk_sim_warp *w, group *g, uint64_t *left) {
    tk_sim_grid *grid = w->grid;
    step s = STEP_ON;
    while (s == STEP_ON && *left > 0) {
        if (g->pc >= grid->entry->code.n) {
            tk_sim_fail(w, NULL, (uint32_t)__builtin_ctz(g->lanes), "no-return",
                        "runs past the end of the kernel");
            return STEP_FAULT;
        }
        const tk_sim_inst *i = &w->code[g->pc];
        uint32_t mask = guarded(w, i, g->lanes);
        tk_sim_count *count = &grid->count[g->pc];
        count->warps++;
        count->threads += (unsigned)__builtin_popcount(mask);
        grid->clock++;
        --*left;
        if (i->clock) {
            tk_sim_fill_clocks(w);
        }
        s = mask ? follow(w, g, mask, i->exec(w, i, mask)) : follow(w, g, 0, TK_SIM_NEXT);
        if (s == STEP_ON && g->others) {
            w->turns++;
            s = g->pc >= g->next || w->turns >= STARVED || w->yields ? STEP_REGROUP : s;
            w->turns = w->yields ? STARVED : w->turns;
            if (s == STEP_REGROUP) {
                put_pc(w, g->lanes, g->pc);
            }
        }
        if (w->yields) {
            w->yields = false;
            *left = 0;
        }
    }
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

// ---- Blocks

static void make_block(tk_sim_grid *g, tk_sim_block *b) {
    const tk_sim_launch *l = g->launch;
    const tk_sim_entry *e = g->entry;
    b->grid = g;
    b->threads = l->block[0] * l->block[1] * l->block[2];
    b->nwarp = (b->threads + TK_SIM_LANES - 1) / TK_SIM_LANES;
    b->warp = TK_NEW_ARRAY(g->arena, tk_sim_warp, b->nwarp);
    b->shared = tk_alloc(g->arena, g->shared_bytes + 16);
    b->shadow = tk_sim_shadow_make(g->arena, g->shared_bytes, b->threads);
    b->bulk = tk_sim_bulk_make(g->arena, b->nwarp);
    b->async = tk_sim_async_make(g->arena, g->shared_bytes, b->nwarp);
    b->local = tk_alloc(g->arena, (size_t)g->local_stride * b->nwarp * TK_SIM_LANES);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        w->block = b;
        w->grid = g;
        w->code = e->code.at;
        w->index = k;
        w->reg = tk_alloc_array(g->arena, e->nreg + 1, sizeof *w->reg);
        w->pred = TK_NEW_ARRAY(g->arena, uint32_t, e->npred + 1);
    }
}

static void start_warp(tk_sim_warp *w, const tk_sim_entry *e, uint32_t lanes, int garbage) {
    memset(w->reg, garbage, e->nreg * sizeof *w->reg);
    memset(w->pred, garbage, e->npred * sizeof *w->pred);
    memset(w->pc, 0, sizeof w->pc);
    memset(w->wait, 0, sizeof w->wait);
    w->alive = lanes >= TK_SIM_LANES ? ~0u : (1u << lanes) - 1;
    w->waiting = w->carry = w->turns = 0;
    w->yields = w->gives_up = false;
}

// What a block finds in its registers and memory is of no use, and differs from seed to seed.
static void start_block(tk_sim_grid *g, tk_sim_block *b) {
    const tk_sim_launch *l = g->launch;
    uint64_t n = g->started++;
    int garbage = (int)tk_sim_random(g, 256);
    b->number = n;
    b->at[0] = (uint32_t)(n % l->grid[0]);
    b->at[1] = (uint32_t)(n / l->grid[0] % l->grid[1]);
    b->at[2] = (uint32_t)(n / l->grid[0] / l->grid[1]);
    b->live = b->nwarp;
    b->turn = 0;
    b->running = true;
    b->mbarrier.n = b->timeouts = 0;
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->shared, garbage, g->shared_bytes);
    memset(b->local, garbage, (size_t)g->local_stride * b->nwarp * TK_SIM_LANES);
    tk_sim_shadow_begin(b->shadow);
    tk_sim_async_begin(b->async);
    tk_sim_bulk_begin(b->bulk);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        start_warp(&b->warp[k], g->entry, b->threads - k * TK_SIM_LANES, garbage);
    }
    tk_sim_fill_registers(b);
}

static bool can_run(const tk_sim_warp *w) { return (w->alive & ~w->waiting) != 0; }

// A warp of the block that can run: from `from` on in order. NULL: none.
static tk_sim_warp *pick_warp(tk_sim_block *b, uint32_t from) {
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[(from + k) % b->nwarp];
        if (can_run(w)) {
            return w;
        }
    }
    return NULL;
}

// Where nobody can go on, waits with a time limit end. False: there are none, or this has been
// tried again and again and nothing came of it.
static bool time_out(tk_sim_block *b) {
    bool any = false;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        TK_SIM_EACH(l, w->waiting) { w->gives_up = w->gives_up || w->wait[l] == TK_SIM_WAIT_ASYNC; }
        any = any || w->gives_up;
    }
    if (!any || ++b->timeouts > TIMEOUTS) {
        return false;
    }
    tk_sim_wake(b);
    return true;
}

static tk_sim_block *pick_block(tk_sim_grid *g) {
    uint32_t from = (uint32_t)tk_sim_random(g, g->nresident);
    for (uint32_t k = 0; k < g->nresident; k++) {
        tk_sim_block *b = &g->resident[(from + k) % g->nresident];
        if (b->running) {
            return b;
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

static bool run_block(tk_sim_grid *g, tk_sim_block *b) {
    uint32_t from = g->launch->seed ? (uint32_t)tk_sim_random(g, b->nwarp) : b->turn;
    tk_sim_warp *w = pick_warp(b, from);
    if (!w) {
        if (tk_sim_bulk_step(b)) {
            return !g->result->fault.id;
        }
        if (time_out(b)) {
            return true;
        }
        tk_sim_report_stuck(b);
        return false;
    }
    b->turn = w->index;
    uint64_t n = g->launch->seed ? 1 + tk_sim_random(g, 4u << tk_sim_random(g, 8)) : QUANTUM;
    if (!run_warp(w, n)) {
        return false;
    }
    if (can_run(w)) { // it has had its turn
        b->turn = w->index + 1;
    }
    if (tk_sim_random(g, 4) == 1 && tk_sim_bulk_step(b) && g->result->fault.id) {
        return false;
    }
    if (b->live == 0) {
        if (!tk_sim_bulk_end(b)) {
            return false;
        }
        b->running = false;
    }
    if (g->launch->limit && g->clock > g->launch->limit) {
        tk_sim_fail(w, NULL, 0, "limit", "the run takes more than %llu instructions of warps",
                    (unsigned long long)g->launch->limit);
        return false;
    }
    return true;
}

static void run_grid(tk_sim_grid *g) {
    for (;;) {
        for (uint32_t k = 0; k < g->nresident; k++) {
            if (!g->resident[k].running && g->started < g->blocks) {
                start_block(g, &g->resident[k]);
            }
        }
        tk_sim_block *b = pick_block(g);
        if (!b) {
            g->result->ok = true;
            return;
        }
        if (!may_go_on(g) || !run_block(g, b)) {
            return;
        }
    }
}

// ---- The launch

static const tk_sim_entry *find_entry(const tk_sim_program *p, const char *name) {
    for (uint32_t k = 0; k < p->entries.n; k++) {
        if (strcmp(p->entries.at[k]->name, name) == 0) {
            return p->entries.at[k];
        }
    }
    return NULL;
}

static bool dims_ok(const uint32_t *d, uint64_t most) {
    uint64_t n = 1;
    for (unsigned k = 0; k < 3; k++) {
        n *= d[k];
        if (d[k] == 0 || n > most) {
            return false;
        }
    }
    return true;
}

// What is wrong with a launch, or NULL.
static const char *launch_problem(tk_sim_grid *g) {
    const tk_sim_launch *l = g->launch;
    const tk_sim_entry *e = g->entry;
    if (!e) {
        return tk_format(g->arena, "the module has no entry '%s'", l->entry);
    }
    if (!dims_ok(l->block, TK_SIM_MAX_THREADS) || !dims_ok(l->grid, UINT64_C(1) << 48)) {
        return "a block has 1 to 1024 threads, a grid at least one block";
    }
    if (l->param_bytes != e->param_bytes) {
        return tk_format(g->arena, "the entry has %u bytes of parameters; %zu are given",
                         e->param_bytes, l->param_bytes);
    }
    bool fixed = e->reqntid[0] != 0;
    for (unsigned k = 0; k < 3; k++) {
        if (fixed && l->block[k] != e->reqntid[k]) {
            return tk_format(g->arena, "the entry asks for blocks of %u x %u x %u threads",
                             e->reqntid[0], e->reqntid[1], e->reqntid[2]);
        }
    }
    return NULL;
}

static uint32_t shared_size(const tk_sim_program *p, const tk_sim_launch *l) {
    uint64_t n = p->shared_bytes;
    for (uint32_t k = 0; k < p->variables.n; k++) {
        const tk_sim_variable *v = &p->variables.at[k];
        n = v->dynamic && v->offset + l->shared > n ? v->offset + l->shared : n;
    }
    return (uint32_t)n;
}

void tk_sim_run(tk_arena *arena, const tk_sim_program *p, const tk_sim_launch *l,
                tk_sim_result *result) {
    tk_sim_grid *g = TK_NEW(arena, tk_sim_grid);
    memset(result, 0, sizeof *result);
    g->arena = arena;
    g->program = p;
    g->entry = find_entry(p, l->entry);
    g->launch = l;
    g->result = result;
    g->random = l->seed;
    const char *problem = launch_problem(g);
    if (problem) {
        result->fault.id = "launch";
        result->fault.text = problem;
        return;
    }
    result->ncount = g->entry->code.n;
    result->count = g->count = TK_NEW_ARRAY(arena, tk_sim_count, result->ncount + 1);
    g->shared_bytes = shared_size(p, l);
    g->local_stride = (g->entry->local_bytes + 15) / 16 * 16;
    g->params = tk_alloc(arena, l->param_bytes + 16);
    if (l->param_bytes) {
        memcpy(g->params, l->params, l->param_bytes);
    }
    g->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t most = l->seed ? MAX_RESIDENT : 1;
    g->nresident = (uint32_t)(g->blocks < most ? g->blocks : most);
    g->resident = TK_NEW_ARRAY(arena, tk_sim_block, g->nresident);
    tk_sim_memory_begin(g);
    for (uint32_t k = 0; k < g->nresident; k++) {
        make_block(g, &g->resident[k]);
    }
    run_grid(g);
}
