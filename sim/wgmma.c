// SPDX-License-Identifier: Apache-2.0
// See wgmma.h.
#include "sim/wgmma.h"

enum { KEPT = 64 }; // steps of a warpgroup before those that all its warps took are forgotten

typedef struct step {
    const tk_sim_inst *inst;
    uint64_t operand[3];
} step;

struct tk_sim_warpgroup {
    TK_VEC(step) steps; // from number `first` on
    uint64_t first;
};

struct tk_sim_wgmma { // of a warp
    TK_VEC(tk_sim_flight) flights;
    uint32_t computed;  // the first ones of these
    uint32_t committed; // groups
    uint64_t steps;     // taken with its warpgroup
    bool fenced;        // wgmma.fence was executed
    uint16_t *adding;   // [slot] wgmmas in flight that have it as accumulator
    uint16_t *reading;  // [slot] as A
    bool *touched;      // [slot] since the last fence
};

void tk_sim_wgmma_make(tk_sim_block *b) {
    tk_arena *a = b->grid->arena;
    uint32_t n = b->grid->entry->nreg + 1;
    b->warpgroup = TK_NEW_ARRAY(a, struct tk_sim_warpgroup, TK_SIM_MAX_WARPS / TK_SIM_GROUP_WARPS);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        struct tk_sim_wgmma *s = b->warp[k].wgmma = TK_NEW(a, struct tk_sim_wgmma);
        s->adding = TK_NEW_ARRAY(a, uint16_t, n);
        s->reading = TK_NEW_ARRAY(a, uint16_t, n);
        s->touched = TK_NEW_ARRAY(a, bool, n);
    }
}

void tk_sim_wgmma_begin(tk_sim_block *b) {
    uint32_t n = b->grid->entry->nreg;
    for (uint32_t k = 0; k < TK_SIM_MAX_WARPS / TK_SIM_GROUP_WARPS; k++) {
        b->warpgroup[k].steps.n = 0;
        b->warpgroup[k].first = 0;
    }
    for (uint32_t k = 0; k < b->nwarp; k++) {
        struct tk_sim_wgmma *s = b->warp[k].wgmma;
        s->flights.n = s->computed = s->committed = 0;
        s->steps = 0;
        s->fenced = false;
        memset(s->adding, 0, n * sizeof *s->adding);
        memset(s->reading, 0, n * sizeof *s->reading);
        memset(s->touched, 0, n * sizeof *s->touched);
    }
}

// ---- The warpgroup

static void forget_steps(const tk_sim_warp *w, struct tk_sim_warpgroup *g) {
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < TK_SIM_GROUP_WARPS; k++) {
        uint32_t of = w->index / TK_SIM_GROUP_WARPS * TK_SIM_GROUP_WARPS + k;
        uint64_t steps = w->block->warp[of].wgmma->steps;
        least = steps < least ? steps : least;
    }
    uint32_t n = (uint32_t)(least - g->first);
    g->steps.n -= n;
    g->first = least;
    memmove(g->steps.at, g->steps.at + n, g->steps.n * sizeof *g->steps.at);
}

bool tk_sim_wgmma_together(tk_sim_warp *w, const tk_sim_inst *i, uint64_t x, uint64_t y,
                           uint64_t z) {
    tk_sim_block *b = w->block;
    uint32_t index = w->index / TK_SIM_GROUP_WARPS;
    struct tk_sim_warpgroup *g = &b->warpgroup[index];
    if ((index + 1) * TK_SIM_GROUP_WARPS * TK_SIM_LANES > b->threads) {
        tk_sim_fail(w, i, 0, "membership",
                    "'%s' takes a warpgroup, 128 threads; the block's last one has %u", i->name,
                    b->threads % (TK_SIM_GROUP_WARPS * TK_SIM_LANES));
        return false;
    }
    uint64_t n = w->wgmma->steps++ - g->first;
    if (n == g->steps.n) {
        if (n >= KEPT) {
            forget_steps(w, g);
        }
        step s = {i, {x, y, z}};
        tk_vec_push(w->grid->arena, &g->steps, s);
        return true;
    }
    const step *s = &g->steps.at[n];
    bool same = s->inst == i;
    if (same && s->operand[0] == x && s->operand[1] == y && s->operand[2] == z) {
        return true;
    }
    tk_sim_fail(w, i, 0, "membership",
                same ? "the warps of a warpgroup give '%s' different operands"
                     : "executes '%s' where another warp of its warpgroup executes something else",
                i->name);
    tk_sim_fail_note(w->grid, s->inst, "another warp executes '%s' here", s->inst->name);
    return false;
}

// ---- Registers

static bool names(const tk_sim_flight *f, uint32_t slot) {
    bool does = false;
    for (unsigned k = 0; k < 2; k++) {
        const tk_sim_arg *a = tk_sim_operand(f->inst, k);
        unsigned n = k == 0 || tk_sim_wgmma_in_registers(f->inst) ? tk_sim_count_of(f->inst, k) : 0;
        for (unsigned r = 0; r < n; r++) {
            does = does || a[r].slot == slot;
        }
    }
    return does;
}

static bool busy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t slot) {
    const struct tk_sim_wgmma *s = w->wgmma;
    const tk_sim_flight *f = NULL;
    for (uint32_t k = 0; k < s->flights.n; k++) {
        f = names(&s->flights.at[k], slot) ? &s->flights.at[k] : f;
    }
    if (f) {
        bool in_group = f->group < s->committed;
        tk_sim_fail(w, i, lane, "wgmma-registers", "'%s' uses a register of a wgmma in flight; %s",
                    i->name,
                    in_group ? "wgmma.wait_group has not waited for it"
                             : "it is in no group: wgmma.commit_group has not followed it");
        tk_sim_fail_note(w->grid, f->inst, "the wgmma is here");
    }
    return false;
}

bool tk_sim_wgmma_touch(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    struct tk_sim_wgmma *s = w->wgmma;
    for (uint32_t k = 0; k < i->narg; k++) {
        const tk_sim_arg *a = &i->arg[k];
        if (a->kind != TK_SIM_ARG_REG && a->kind != TK_SIM_ARG_ADDRESS) {
            continue;
        }
        if (s->adding[a->slot] || s->reading[a->slot]) {
            return busy(w, i, (uint32_t)__builtin_ctz(mask), a->slot);
        }
        s->touched[a->slot] = true;
    }
    return true;
}

void tk_sim_wgmma_fence(tk_sim_warp *w) {
    w->wgmma->fenced = true;
    memset(w->wgmma->touched, 0, w->grid->entry->nreg * sizeof *w->wgmma->touched);
}

// Whether the flights that have register r of i's accumulator in flight add to it just as i does.
static bool chains(const struct tk_sim_wgmma *s, const tk_sim_inst *i, unsigned r, uint32_t slot) {
    bool ok = s->reading[slot] == 0;
    for (uint32_t k = 0; ok && s->adding[slot] && k < s->flights.n; k++) {
        const tk_sim_inst *j = s->flights.at[k].inst;
        bool same = j->number == i->number && j->type[0] == i->type[0] &&
                    j->type[1] == i->type[1] && j->type[2] == i->type[2];
        ok = (same && tk_sim_operand(j, 0)[r].slot == slot) || !names(&s->flights.at[k], slot);
    }
    return ok;
}

// A is read while the accumulator is written, and nothing orders the two.
static bool apart(tk_sim_warp *w, const tk_sim_inst *i) {
    const tk_sim_arg *d = tk_sim_operand(i, 0), *a = tk_sim_operand(i, 1);
    const unsigned na = tk_sim_wgmma_in_registers(i) ? 4 : 0;
    for (unsigned k = 0; k < na * tk_sim_count_of(i, 0); k++) {
        if (a[k % 4].slot == d[k / 4].slot) {
            tk_sim_fail(w, i, 0, "wgmma-registers",
                        "a register of A is one of the accumulator, too: A is read while that is "
                        "written");
            return false;
        }
    }
    return true;
}

static bool take_registers(tk_sim_warp *w, const tk_sim_inst *i) {
    struct tk_sim_wgmma *s = w->wgmma;
    const tk_sim_arg *d = tk_sim_operand(i, 0), *a = tk_sim_operand(i, 1);
    unsigned nd = tk_sim_count_of(i, 0), na = tk_sim_wgmma_in_registers(i) ? 4 : 0;
    bool touched = !s->fenced;
    if (!apart(w, i)) {
        return false;
    }
    for (unsigned r = 0; r < nd + na; r++) {
        uint32_t slot = r < nd ? d[r].slot : a[r - nd].slot;
        if (r < nd ? !chains(s, i, r, slot) : s->adding[slot] != 0) {
            return busy(w, i, 0, slot);
        }
        touched = touched || s->touched[slot];
    }
    if (touched) {
        tk_sim_fail(w, i, 0, "wgmma-fence",
                    s->fenced ? "other instructions have used registers of this wgmma; there is no "
                                "wgmma.fence between"
                              : "there is no wgmma.fence before the first wgmma");
        return false;
    }
    for (unsigned r = 0; r < nd; r++) {
        s->adding[d[r].slot]++;
    }
    for (unsigned r = 0; r < na; r++) {
        s->reading[a[r].slot]++;
    }
    return true;
}

static void release_registers(struct tk_sim_wgmma *s, const tk_sim_inst *i) {
    for (unsigned r = 0; r < tk_sim_count_of(i, 0); r++) {
        s->adding[tk_sim_operand(i, 0)[r].slot]--;
    }
    for (unsigned r = 0; tk_sim_wgmma_in_registers(i) && r < 4; r++) {
        s->reading[tk_sim_operand(i, 1)[r].slot]--;
    }
}

// ---- Shared memory

typedef bool on_piece(tk_sim_warp *w, const tk_sim_flight *f, uint32_t address);

static bool each_of(tk_sim_warp *w, const tk_sim_flight *f, const tk_sim_tile *t, uint32_t from,
                    uint32_t rows, on_piece *fn) {
    enum { K_LINES = 16, K_PIECES = 2, ROWS_OF_PIECE = 8 };
    uint32_t first = t->by_k ? 0 : from, lines = t->by_k ? K_LINES : rows;
    uint32_t piece = t->by_k ? from / ROWS_OF_PIECE : 0;
    uint32_t pieces = t->by_k ? rows / ROWS_OF_PIECE : K_PIECES;
    for (uint32_t l = first; l < first + lines; l++) {
        for (uint32_t p = piece; p < piece + pieces; p++) {
            if (!fn(w, f, tk_sim_tile_piece(t, l, p))) {
                return false;
            }
        }
    }
    return true;
}

static bool each_piece(tk_sim_warp *w, const tk_sim_flight *f, on_piece *fn) {
    bool ok = tk_sim_wgmma_in_registers(f->inst) ||
              each_of(w, f, &f->a, w->index % TK_SIM_GROUP_WARPS * 16, 16, fn);
    return ok && each_of(w, f, &f->b, 0, f->inst->number, fn);
}

static uint32_t offset_of(const tk_sim_warp *w, uint32_t address) { // in the cluster's
    return w->block->rank * w->cluster->stride + (address - TK_SIM_SHARED_BASE);
}

static bool begin_piece(tk_sim_warp *w, const tk_sim_flight *f, uint32_t address) {
    enum { BYTES = 16 };
    uint32_t from = address - TK_SIM_SHARED_BASE, bytes = w->grid->shared_bytes;
    if (address < TK_SIM_SHARED_BASE || bytes < BYTES || from > bytes - BYTES) {
        tk_sim_fail(w, f->inst, f->lane, "out-of-bounds",
                    "reads 16 bytes of shared memory at 0x%x; there are %u bytes from 0x%x on",
                    address, bytes, TK_SIM_SHARED_BASE);
        return false;
    }
    uint32_t offset = offset_of(w, address);
    if (!tk_sim_async_access(w, f->inst, f->lane, offset, BYTES, TK_SIM_READ) ||
        !tk_sim_shadow_look(w, f->inst, f->lane, offset, BYTES)) {
        return false;
    }
    tk_sim_async_mark(w->cluster, offset, BYTES, f->inst, TK_SIM_FLIGHT_READS);
    return true;
}

// Whoever writes it later must come after the wait.
static bool end_piece(tk_sim_warp *w, const tk_sim_flight *f, uint32_t address) {
    uint32_t offset = offset_of(w, address);
    tk_sim_async_mark(w->cluster, offset, 16, NULL, TK_SIM_FLIGHT_READS);
    tk_sim_shadow_read_whole(w, f->inst, offset, 16);
    return true;
}

// ---- Issue, groups, waits

static void compute_until(tk_sim_warp *w, uint32_t n) {
    struct tk_sim_wgmma *s = w->wgmma;
    for (; s->computed < n; s->computed++) {
        tk_sim_wgmma_compute(w, &s->flights.at[s->computed]);
    }
}

bool tk_sim_wgmma_issue(tk_sim_warp *w, tk_sim_flight f) {
    struct tk_sim_wgmma *s = w->wgmma;
    f.group = s->committed;
    f.lane = (uint32_t)tk_sim_random(w->grid, TK_SIM_LANES);
    if (!take_registers(w, f.inst) || !each_piece(w, &f, begin_piece)) {
        return false;
    }
    tk_vec_push(w->grid->arena, &s->flights, f);
    if (!tk_sim_late(w->grid) && tk_sim_random(w->grid, 3) == 1) {
        compute_until(w, s->flights.n);
    }
    return true;
}

void tk_sim_wgmma_commit(tk_sim_warp *w) { w->wgmma->committed++; }

void tk_sim_wgmma_wait(tk_sim_warp *w, uint32_t most) {
    struct tk_sim_wgmma *s = w->wgmma;
    uint32_t n = 0;
    while (n < s->flights.n && (uint64_t)s->flights.at[n].group + most < s->committed) {
        n++;
    }
    compute_until(w, n);
    tk_sim_shadow_together(w);
    if (n == 0) {
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        release_registers(s, s->flights.at[k].inst);
        each_piece(w, &s->flights.at[k], end_piece);
    }
    s->computed -= n;
    s->flights.n -= n;
    memmove(s->flights.at, s->flights.at + n, s->flights.n * sizeof *s->flights.at);
}

bool tk_sim_wgmma_end(tk_sim_warp *w, const tk_sim_inst *i) {
    const struct tk_sim_wgmma *s = w->wgmma;
    if (s->flights.n) {
        tk_sim_fail(w, i, 0, "unfinished", "the warp ends while its wgmma is in flight");
        tk_sim_fail_note(w->grid, s->flights.at[0].inst, "the wgmma is here");
        return false;
    }
    uint32_t first = w->index / TK_SIM_GROUP_WARPS * TK_SIM_GROUP_WARPS;
    for (uint32_t k = first; k < first + TK_SIM_GROUP_WARPS && k < w->block->nwarp; k++) {
        const tk_sim_warp *x = &w->block->warp[k];
        uint64_t least = x->wgmma->steps < s->steps ? x->wgmma->steps : s->steps;
        if (x->wgmma->steps > least || (x->alive == 0 && s->steps > least)) {
            const struct tk_sim_warpgroup *g = &w->block->warpgroup[k / TK_SIM_GROUP_WARPS];
            const tk_sim_inst *next = g->steps.at[least - g->first].inst;
            tk_sim_fail(w, i, 0, "membership",
                        "a warp ends without '%s', which another one of its warpgroup executes",
                        next->name);
            tk_sim_fail_note(w->grid, next, "'%s' is here", next->name);
            return false;
        }
    }
    return true;
}
