// SPDX-License-Identifier: Apache-2.0
// A launch: its checks, the memory of the resident clusters, and how a cluster begins.
#include "sim/wgmma.h"

enum {
    MAX_RESIDENT = 4, // clusters at the begin
    MAX_CLUSTER = 16,
    SHARED_ALIGN = 1024,
    SM_SHARED = 228 << 10,  // what a multiprocessor has for its blocks
    MOST_MEMORY = 512 << 20 // for registers, the threads' own memory and the shared memory
};

// ---- Clusters

static void make_block(tk_sim_cluster *c, tk_sim_block *b) {
    tk_sim_grid *g = c->grid;
    const tk_sim_launch *l = g->launch;
    const tk_sim_entry *e = g->entry;
    b->grid = g;
    b->cluster = c;
    b->rank = (uint32_t)(b - c->block);
    b->in[0] = b->rank % g->cluster[0];
    b->in[1] = b->rank / g->cluster[0] % g->cluster[1];
    b->in[2] = b->rank / g->cluster[0] / g->cluster[1];
    b->threads = l->block[0] * l->block[1] * l->block[2];
    b->nwarp = (b->threads + TK_SIM_LANES - 1) / TK_SIM_LANES;
    b->warp = TK_NEW_ARRAY(g->arena, tk_sim_warp, b->nwarp);
    b->shared = c->shared + b->rank * c->stride;
    b->local = tk_alloc(g->arena, (size_t)g->local_stride * b->nwarp * TK_SIM_LANES);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_warp *w = &b->warp[k];
        w->block = b;
        w->cluster = c;
        w->grid = g;
        w->code = g->program->code.at;
        w->index = k;
        w->number = b->rank * b->nwarp + k;
        w->reg = tk_alloc_array(g->arena, e->nreg + 1, sizeof *w->reg);
        w->pred = TK_NEW_ARRAY(g->arena, uint32_t, e->npred + 1);
        if (e->calls) {
            tk_sim_calls_make(w);
        }
    }
    if (g->program->warpgroups) {
        tk_sim_wgmma_make(b);
    }
}

static void make_cluster(tk_sim_grid *g, tk_sim_cluster *c) {
    const uint32_t *threads = g->launch->block;
    uint32_t nwarp = (threads[0] * threads[1] * threads[2] + TK_SIM_LANES - 1) / TK_SIM_LANES;
    c->grid = g;
    c->nblock = g->cluster[0] * g->cluster[1] * g->cluster[2];
    c->nwarp = nwarp * c->nblock;
    c->stride = (g->shared_bytes + SHARED_ALIGN) / SHARED_ALIGN * SHARED_ALIGN;
    if (g->program->reserved) {
        g->reserved = c->stride;
        c->stride += TK_SIM_SHARED_BASE;
    }
    uint32_t bytes = c->stride * c->nblock;
    c->shared = tk_alloc(g->arena, bytes);
    c->shadow = tk_sim_shadow_make(g->arena, bytes, c->nwarp, c->nblock, g->reserved);
    c->bulk = tk_sim_bulk_make(g->arena, c->nwarp);
    c->async = tk_sim_async_make(g->arena, bytes, c->nwarp);
    c->block = TK_NEW_ARRAY(g->arena, tk_sim_block, c->nblock);
    for (uint32_t k = 0; k < c->nblock; k++) {
        make_block(c, &c->block[k]);
    }
}

static void start_warp(tk_sim_warp *w, const tk_sim_entry *e, uint32_t lanes, int garbage) {
    memset(w->reg, garbage, e->nreg * sizeof *w->reg);
    memset(w->pred, garbage, e->npred * sizeof *w->pred);
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        w->pc[l] = e->first;
    }
    if (w->calls) {
        tk_sim_calls_begin(w);
    }
    memset(w->wait, 0, sizeof w->wait);
    memset(w->met_at, 0xff, sizeof w->met_at);
    w->alive = lanes >= TK_SIM_LANES ? ~0u : (1u << lanes) - 1;
    w->came = w->phase = 0;
    w->registers = tk_sim_registers_at_launch(w);
    w->resizes = 0;
    w->waiting = w->carry = w->turns = 0;
    w->meetings = w->parked = w->asleep = w->napping = w->spun_lanes = 0;
    memset(w->ran_at, 0, sizeof w->ran_at);
    w->steps = w->lost_patience = 0;
    w->yields = w->gives_up = false;
}

static void start_block(tk_sim_block *b, const uint32_t *first, int garbage) {
    tk_sim_grid *g = b->grid;
    for (unsigned k = 0; k < 3; k++) {
        b->at[k] = first[k] + b->in[k];
    }
    b->number = b->at[0] + g->extent[0] * (b->at[1] + (uint64_t)g->extent[1] * b->at[2]);
    b->live = b->nwarp;
    b->running = true;
    b->spare = 0;
    memset(b->barrier, 0, sizeof b->barrier);
    if (b->warpgroup) {
        tk_sim_wgmma_begin(b);
    }
    memset(b->local, garbage, (size_t)g->local_stride * b->nwarp * TK_SIM_LANES);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        start_warp(&b->warp[k], g->entry, b->threads - k * TK_SIM_LANES, garbage);
    }
    tk_sim_fill_registers(b);
}

// What a block finds in its registers and memory is of no use, and differs from seed to seed.
void tk_sim_start_cluster(tk_sim_grid *g, tk_sim_cluster *c) {
    uint64_t n = g->started++;
    g->changes++;
    int garbage = (int)tk_sim_random(g, 256);
    uint64_t across[2] = {g->extent[0] / g->cluster[0], g->extent[1] / g->cluster[1]};
    uint32_t first[3] = {(uint32_t)(n % across[0]) * g->cluster[0],
                         (uint32_t)(n / across[0] % across[1]) * g->cluster[1],
                         (uint32_t)(n / across[0] / across[1]) * g->cluster[2]};
    c->live = c->nblock;
    c->turn = c->phase = 0;
    c->missing = c->nblock * c->block->threads;
    c->running = true;
    c->mbarrier.n = 0;
    memset(c->shared, garbage, (size_t)c->stride * c->nblock);
    tk_sim_shadow_begin(c->shadow);
    tk_sim_async_begin(c->async);
    tk_sim_bulk_begin(c->bulk);
    for (uint32_t k = 0; k < c->nblock; k++) {
        start_block(&c->block[k], first, garbage);
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

// Finds the blocks of a cluster and of the grid; what is wrong with them, or NULL.
static const char *cluster_problem(tk_sim_grid *g) {
    const tk_sim_launch *l = g->launch;
    const tk_sim_entry *e = g->entry;
    bool asked = l->cluster[0] != 0, fixed = e->cluster[0] != 0;
    g->explicit_cluster = asked || fixed;
    for (unsigned k = 0; k < 3; k++) {
        if (asked && fixed && l->cluster[k] != e->cluster[k]) {
            return tk_format(g->arena, "the entry asks for clusters of %u x %u x %u blocks",
                             e->cluster[0], e->cluster[1], e->cluster[2]);
        }
        g->cluster[k] = fixed ? e->cluster[k] : asked ? l->cluster[k] : 1;
    }
    uint32_t most = e->maxclusterrank ? e->maxclusterrank : MAX_CLUSTER;
    if (!dims_ok(g->cluster, most)) {
        return tk_format(g->arena, "a cluster has 1 to %u blocks", most);
    }
    for (unsigned k = 0; k < 3; k++) {
        uint64_t n = (uint64_t)l->grid[k] * (e->blocks_are_clusters ? g->cluster[k] : 1);
        if (n % g->cluster[k] || n > UINT32_MAX) {
            return tk_format(g->arena,
                             "a grid of %u x %u x %u blocks is no multiple of clusters of "
                             "%u x %u x %u",
                             l->grid[0], l->grid[1], l->grid[2], g->cluster[0], g->cluster[1],
                             g->cluster[2]);
        }
        g->extent[k] = (uint32_t)n;
    }
    return dims_ok(g->extent, UINT64_C(1) << 48) ? NULL : "a grid of too many blocks";
}

// The static variables and, behind them, the launch's dynamic memory.
static uint64_t shared_size(const tk_sim_program *p, const tk_sim_launch *l) {
    uint64_t n = p->shared_bytes;
    for (uint32_t k = 0; k < p->variables.n; k++) {
        const tk_sim_variable *v = &p->variables.at[k];
        const uint64_t end = (uint64_t)v->offset + l->shared;
        n = v->dynamic && end > n ? end : n;
    }
    return n;
}

// Shared memory that a block may have, in KiB: by variables of fixed size alone, and in all.
typedef struct shared_limit {
    const char *target; // begins so
    uint32_t fixed, all;
} shared_limit;

static shared_limit limit_of(const tk_sim_program *p) {
    static const shared_limit limits[] = {
        {"sm_80", 48, 163},  {"sm_87", 48, 163},  {"sm_86", 48, 99}, {"sm_89", 48, 99},
        {"sm_90", 227, 227}, {"sm_10", 227, 227}, {"sm_12", 99, 99}, {"", 48, 96}};
    size_t k = 0;
    while (strncmp(p->target, limits[k].target, strlen(limits[k].target)) != 0) {
        k++;
    }
    return limits[k];
}

static void mark_variables(const tk_sim_fill *f, uint32_t n, bool *used) {
    for (uint32_t k = 0; k < n; k++) {
        if (f[k].kind == TK_SIM_FILL_VARIABLE) {
            used[f[k].index] = true;
        }
    }
}

// What an assembler counts: the variables that the entry, or a function, names.
static uint64_t fixed_size(tk_sim_grid *g) {
    const tk_sim_program *p = g->program;
    const tk_sim_entry *e = g->entry;
    bool *used = TK_NEW_ARRAY(g->arena, bool, p->variables.n + 1);
    uint64_t n = 0;
    mark_variables(e->fills.at, e->fills.n, used);
    if (e->calls) {
        mark_variables(p->fills.at, p->fills.n, used);
    }
    for (uint32_t k = 0; k < p->variables.n; k++) {
        const tk_sim_variable *v = &p->variables.at[k];
        n += used[k] && v->space == TK_SIM_SHARED && !v->dynamic ? v->bytes : 0;
    }
    return n;
}

static const char *shared_problem(tk_sim_grid *g) {
    const char *target = g->program->target;
    const shared_limit most = limit_of(g->program);
    const uint64_t fixed = fixed_size(g), all = fixed + g->launch->shared;
    if (fixed > most.fixed << 10) {
        return tk_format(g->arena,
                         "the entry's variables take %llu bytes of shared memory; %s has at most "
                         "%u for variables of fixed size",
                         (unsigned long long)fixed, target, most.fixed << 10);
    }
    if (all > most.all << 10) {
        return tk_format(g->arena,
                         "a block takes %llu bytes of shared memory, %u of them by the launch; %s "
                         "has at most %u",
                         (unsigned long long)all, g->launch->shared, target, most.all << 10);
    }
    return NULL;
}

// What is wrong with a launch, or NULL.
static const char *threads_problem(const tk_sim_grid *g) {
    const tk_sim_launch *l = g->launch;
    const tk_sim_entry *e = g->entry;
    bool fixed = e->reqntid[0] != 0;
    for (unsigned k = 0; k < 3; k++) {
        if (fixed && l->block[k] != e->reqntid[k]) {
            return tk_format(g->arena, "the entry asks for blocks of %u x %u x %u threads",
                             e->reqntid[0], e->reqntid[1], e->reqntid[2]);
        }
    }
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    uint64_t most = (uint64_t)e->maxntid[0] * e->maxntid[1] * e->maxntid[2];
    if (most && threads > most) {
        return tk_format(g->arena, "the entry is for at most %llu threads a block; there are %llu",
                         (unsigned long long)most, (unsigned long long)threads);
    }
    return NULL;
}

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
    const char *problem = shared_problem(g);
    problem = problem ? problem : cluster_problem(g);
    return problem ? problem : threads_problem(g);
}

// Of a thread: the entry's, and a call's behind another's.
static uint32_t local_size(const tk_sim_grid *g) {
    enum { MOST_OF_CALLS = 256 << 10 };
    const tk_sim_program *p = g->program;
    uint32_t n = g->entry->local_bytes;
    if (g->entry->calls) {
        uint64_t depth =
            p->recursive || p->functions.n > TK_SIM_CALL_DEPTH ? TK_SIM_CALL_DEPTH : p->functions.n;
        uint64_t bytes = depth * ((uint64_t)p->frame_bytes + TK_SIM_FRAME_ALIGN);
        n += TK_SIM_FRAME_ALIGN + (uint32_t)(bytes < MOST_OF_CALLS ? bytes : MOST_OF_CALLS);
    }
    return n;
}

// Bytes that a resident cluster takes, about: shared memory has records of who accessed it.
static uint64_t cluster_memory(const tk_sim_grid *g) {
    enum { RECORDS = 10 };
    const uint32_t *t = g->launch->block;
    const uint64_t threads =
        ((uint64_t)t[0] * t[1] * t[2] + TK_SIM_LANES - 1) / TK_SIM_LANES * TK_SIM_LANES;
    const uint64_t thread = (uint64_t)g->entry->nreg * 8 + g->entry->npred / 8 + g->local_stride;
    const uint64_t block = threads * thread + (uint64_t)g->shared_bytes * RECORDS;
    return block * g->cluster[0] * g->cluster[1] * g->cluster[2];
}

// How many clusters may be resident: those of a whole GPU, as far as there is memory for them. How
// many registers code uses is not known.
static uint32_t find_room(const tk_sim_grid *g) {
    const uint32_t *t = g->launch->block;
    const uint32_t threads = (t[0] * t[1] * t[2] + TK_SIM_LANES - 1) / TK_SIM_LANES * TK_SIM_LANES;
    const uint32_t size = g->cluster[0] * g->cluster[1] * g->cluster[2];
    uint32_t blocks = TK_SIM_SM_THREADS / threads,
             shared = SM_SHARED / (g->shared_bytes + SHARED_ALIGN);
    blocks = blocks < TK_SIM_SM_BLOCKS ? blocks : TK_SIM_SM_BLOCKS;
    blocks = blocks < shared ? blocks : shared ? shared : 1;
    uint64_t n = (uint64_t)blocks * TK_SIM_SMS / size, fits = MOST_MEMORY / (cluster_memory(g) + 1);
    n = n < fits ? n : fits;
    n = n < g->clusters ? n : g->clusters;
    return n ? (uint32_t)n : 1;
}

bool tk_sim_grow(tk_sim_grid *g) {
    const uint64_t left = g->clusters - g->started;
    uint64_t n = 2 * (uint64_t)g->nresident;
    n = n < g->nresident + left ? n : g->nresident + left;
    n = n < g->room ? n : g->room;
    if (n == g->nresident) {
        return false;
    }
    for (uint32_t k = g->nresident; k < n; k++) {
        make_cluster(g, &g->resident[k]);
    }
    g->nresident = (uint32_t)n;
    g->changes++;
    return true;
}

static void run_launch(tk_sim_grid *g) {
    tk_arena *arena = g->arena;
    const tk_sim_program *p = g->program;
    const tk_sim_launch *l = g->launch;
    tk_sim_result *result = g->result;
    const char *problem = launch_problem(g);
    if (problem) {
        result->fault.id = "launch";
        result->fault.text = problem;
        return;
    }
    result->ncount = p->code.n;
    result->count = g->count = TK_NEW_ARRAY(arena, tk_sim_count, result->ncount + 1);
    g->shared_bytes = (uint32_t)shared_size(p, l);
    g->local_bytes = local_size(g);
    g->local_stride = (g->local_bytes + 15) / 16 * 16;
    g->params = tk_alloc(arena, l->param_bytes + 16);
    if (l->param_bytes) {
        memcpy(g->params, l->params, l->param_bytes);
    }
    uint32_t size = g->cluster[0] * g->cluster[1] * g->cluster[2];
    g->clusters = (uint64_t)g->extent[0] * g->extent[1] * g->extent[2] / size;
    if (cluster_memory(g) > MOST_MEMORY) {
        result->fault.id = "launch";
        result->fault.text = tk_format(
            arena, "the registers and the memory of %s take %llu MiB; at most %d are there",
            size > 1 ? "a cluster" : "a block", (unsigned long long)(cluster_memory(g) >> 20),
            MOST_MEMORY >> 20);
        return;
    }
    g->room = find_room(g);
    uint32_t most = l->seed == 0 ? 1 : size > 1 ? MAX_RESIDENT / 2 : MAX_RESIDENT;
    g->nresident = g->room < most ? g->room : most;
    g->resident = TK_NEW_ARRAY(arena, tk_sim_cluster, g->room);
    tk_buf_init(&g->printed, arena);
    tk_sim_memory_begin(g);
    for (uint32_t k = 0; k < g->nresident; k++) {
        make_cluster(g, &g->resident[k]);
    }
    tk_sim_run_grid(g);
    result->printed = tk_buf_text(&g->printed);
    result->nprinted = g->printed.n;
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
    run_launch(g);
    if (result->fault.id && !result->fault.at.ptx_line) { // of no instruction: of the kernel
        result->fault.at = tk_sim_entry_place(p, g->entry);
    }
}
