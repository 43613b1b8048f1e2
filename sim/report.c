// SPDX-License-Identifier: Apache-2.0
// Faults as texts with places, what a stuck block waits for, and the sums of the counters.
#include "sim/machine.h"

#include <stdlib.h>

tk_sim_place tk_sim_place_of(const tk_sim_program *p, const tk_sim_inst *i) {
    tk_sim_place at = {0};
    if (i) {
        const tk_sim_loc *l = &p->locs.at[i->loc];
        at.ptx_line = i->line;
        if (i->loc) {
            at.file = l->file < p->files.n ? p->files.at[l->file] : NULL;
            at.line = l->line;
            at.column = l->column;
        }
    }
    return at;
}

tk_sim_place tk_sim_entry_place(const tk_sim_program *p, const tk_sim_entry *e) {
    tk_sim_place at = {.ptx_line = 1};
    for (uint32_t k = 0; e && k < e->ninst && !at.file; k++) {
        at = tk_sim_place_of(p, &p->code.at[e->first + k]);
    }
    at.ptx_line = e ? e->line : at.ptx_line;
    return at;
}

// ---- Faults

static const char *index_text(tk_arena *a, const uint32_t *x, const uint32_t *extent) {
    return extent[1] == 1 && extent[2] == 1 ? tk_format(a, "%u", x[0])
                                            : tk_format(a, "(%u, %u, %u)", x[0], x[1], x[2]);
}

tk_sim_flow tk_sim_fail(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const char *id,
                        const char *fmt, ...) {
    tk_sim_grid *g = w->grid;
    tk_sim_fault *f = &g->result->fault;
    if (f->id) { // the first one counts
        return TK_SIM_FAULT;
    }
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(g->arena, fmt, args);
    va_end(args);
    f->id = id;
    f->text = tk_format(g->arena, "thread %u of block %s: %s", tk_sim_thread(w, lane),
                        index_text(g->arena, w->block->at, g->extent), text);
    f->at = tk_sim_place_of(g->program, i);
    return TK_SIM_FAULT;
}

const char *tk_sim_shared_text(const tk_sim_cluster *c, uint32_t offset) {
    const uint32_t at = offset % c->stride, reserved = c->grid->reserved;
    uint32_t address = reserved && at >= reserved ? at - reserved : TK_SIM_SHARED_BASE + at;
    return c->nblock == 1
               ? tk_format(c->grid->arena, "shared memory at 0x%x", address)
               : tk_format(c->grid->arena, "shared memory at 0x%x of block %u of the cluster",
                           address, offset / c->stride);
}

const char *tk_sim_member_text(const tk_sim_cluster *c, uint32_t member) {
    uint32_t each = c->block->nwarp * TK_SIM_LANES;
    return member >= each * c->nblock ? "an asynchronous copy"
           : c->nblock == 1           ? tk_format(c->grid->arena, "thread %u", member)
                            : tk_format(c->grid->arena, "thread %u of block %u of the cluster",
                                        member % each, member / each);
}

void tk_sim_fail_note(tk_sim_grid *g, const tk_sim_inst *i, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tk_sim_note n = {tk_vformat(g->arena, fmt, args), tk_sim_place_of(g->program, i)};
    va_end(args);
    tk_vec_push(g->arena, &g->result->fault.notes, n);
}

// ---- A cluster in which no warp can run

static const char *lanes_text(tk_arena *a, const tk_sim_warp *w, uint32_t lanes) {
    const tk_sim_grid *g = w->grid;
    uint32_t first = tk_sim_thread(w, (uint32_t)__builtin_ctz(lanes));
    unsigned n = (unsigned)__builtin_popcount(lanes);
    const char *of = w->cluster->nblock > 1
                         ? tk_format(a, " of block %u of the cluster", w->block->rank)
                     : w->cluster == g->stuck
                         ? ""
                         : tk_format(a, " of block %s", index_text(a, w->block->at, g->extent));
    return lanes == ~0u ? tk_format(a, "warp %u%s", w->index, of)
           : n == 1
               ? tk_format(a, "thread %u%s", first, of)
               : tk_format(a, "%u threads of warp %u%s, the first is %u,", n, w->index, of, first);
}

static void note_mbarrier(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                          const char *who) {
    const tk_sim_mbarrier *m = tk_sim_mbarrier_of_wait(w, i, lane);
    if (!m) {
        tk_sim_fail_note(w->grid, i, "%s waits at an mbarrier", who);
        return;
    }
    tk_sim_fail_note(
        w->grid, i, "%s waits at an mbarrier (%s): phase %u lacks %u of %u arrivals and %lld bytes",
        who, tk_sim_shared_text(w->cluster, m->offset), m->phase, m->left, m->expected,
        (long long)m->bytes);
}

static void note_waiting(const tk_sim_warp *w, uint32_t lanes) {
    tk_sim_grid *g = w->grid;
    uint32_t l = (uint32_t)__builtin_ctz(lanes);
    const tk_sim_inst *i = &w->code[w->pc[l]];
    const char *who = lanes_text(g->arena, w, lanes);
    switch ((tk_sim_wait)w->wait[l]) {
    case TK_SIM_WAIT_BARRIER: {
        const tk_sim_barrier *b = &w->block->barrier[w->wait_number[l]];
        if (b->came[w->index] & lanes) {
            tk_sim_fail_note(g, i, "%s waits at barrier %u for the other threads of the warp", who,
                             (unsigned)w->wait_number[l]);
            return;
        }
        tk_sim_fail_note(g, i, "%s waits at barrier %u, where %u of %u threads have arrived", who,
                         (unsigned)w->wait_number[l], b->arrived, b->expected);
        return;
    }
    case TK_SIM_WAIT_CLUSTER:
        tk_sim_fail_note(g, i,
                         "%s waits at the barrier of the cluster, where %u threads are missing",
                         who, w->cluster->missing);
        return;
    case TK_SIM_WAIT_ASYNC:
        note_mbarrier(w, i, l, who);
        return;
    case TK_SIM_WAIT_REGISTERS:
        tk_sim_fail_note(g, i, "%s waits for registers: each thread has %u, the block %u to spare",
                         who, w->registers, w->block->spare * TK_SIM_LANES);
        return;
    case TK_SIM_WAIT_NONE:
        if (w->polled) {
            note_mbarrier(w, &w->code[w->polled - 1], l, who);
            return;
        }
        tk_sim_fail_note(g, i, "%s runs on, and nothing changes", who);
        return;
    case TK_SIM_WAIT_WARP:
        break;
    }
    tk_sim_fail_note(g, i, "%s waits for other threads of the warp at '%s'", who, i->name);
}

static uint32_t alike(const tk_sim_warp *w, uint32_t lanes, uint32_t l) {
    uint32_t same = 0;
    TK_SIM_EACH(k, lanes) {
        same |= (uint32_t)(w->pc[k] == w->pc[l] && w->wait[k] == w->wait[l] &&
                           w->wait_number[k] == w->wait_number[l] &&
                           tk_sim_members(w, k) == tk_sim_members(w, l))
                << k;
    }
    return same;
}

enum { MOST_NOTES = 40 };

// Notes who waits for what in a block; `notes` counts them.
static void note_block(const tk_sim_block *b, unsigned *notes) {
    uint32_t ended = 0;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        const tk_sim_warp *w = &b->warp[k];
        ended += TK_SIM_LANES - (uint32_t)__builtin_popcount(w->alive);
        for (uint32_t left = w->alive; left && *notes < MOST_NOTES; ++*notes) {
            uint32_t same = alike(w, left, (uint32_t)__builtin_ctz(left));
            note_waiting(w, same);
            left &= ~same;
        }
    }
    ended -= b->nwarp * TK_SIM_LANES - b->threads;
    if (ended && b->cluster->nblock == 1) {
        tk_sim_fail_note(b->grid, NULL, "%u threads have ended", ended);
    } else if (ended) {
        tk_sim_fail_note(b->grid, NULL, "%u threads of block %u of the cluster have ended", ended,
                         b->rank);
    }
}

// A part of a warp waits for the rest of it.
static bool is_apart(const tk_sim_warp *w, uint32_t l) {
    return w->wait[l] == TK_SIM_WAIT_WARP ||
           (w->wait[l] == TK_SIM_WAIT_BARRIER &&
            (w->block->barrier[w->wait_number[l]].came[w->index] >> l & 1));
}

// Whether those who wait for each other by member masks give the same ones; false after a fault.
static bool masks_agree(tk_sim_warp *w) {
    TK_SIM_EACH(l, w->waiting) {
        TK_SIM_EACH(k, tk_sim_members(w, l) & w->alive) {
            if (!tk_sim_members_agree(w, l, k)) {
                return false;
            }
        }
    }
    return true;
}

// Threads that run on, or look again and again at what does not come.
static uint32_t spinning(const tk_sim_warp *w) {
    uint32_t lanes = w->alive & ~w->waiting;
    TK_SIM_EACH(l, w->waiting) { lanes |= (uint32_t)(w->wait[l] == TK_SIM_WAIT_ASYNC) << l; }
    return lanes;
}

// The thread of the cluster to name first: one that waits for its warp, none of which spins, else
// one that spins, else one that waits. False after a fault.
static bool find_stuck(const tk_sim_cluster *c, tk_sim_warp **first, uint32_t *lane) {
    unsigned best = 0;
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, k);
        if (!masks_agree(w)) {
            return false;
        }
        TK_SIM_EACH(l, w->alive) {
            bool spins = spinning(w) >> l & 1;
            unsigned rank = is_apart(w, l) && !spinning(w) ? 3 : spins ? 2 : 1;
            if (rank > best) {
                best = rank;
                *first = w;
                *lane = l;
            }
        }
    }
    return true;
}

static void note_clusters(const tk_sim_cluster *c) {
    tk_sim_grid *g = c->grid;
    unsigned notes = 0;
    for (uint32_t n = 0; n < c->nblock; n++) {
        note_block(&c->block[n], &notes);
    }
    for (uint32_t k = 0; k < g->nresident; k++) {
        const tk_sim_cluster *other = &g->resident[k];
        for (uint32_t n = 0; n < other->nblock && other != c; n++) {
            if (notes < MOST_NOTES && other->block[n].running) {
                note_block(&other->block[n], &notes);
            }
        }
    }
    if (g->started < g->clusters) {
        tk_sim_fail_note(
            g, NULL, "%llu of the grid's blocks have not begun; %u at most run at once",
            (unsigned long long)((g->clusters - g->started) * c->nblock), g->nresident * c->nblock);
    }
}

void tk_sim_report_stuck(tk_sim_cluster *c) {
    tk_sim_warp *w = NULL;
    uint32_t lane = 0;
    c->grid->stuck = c;
    if (find_stuck(c, &w, &lane) && w) {
        const bool apart = is_apart(w, lane), runs = !(w->waiting >> lane & 1);
        const bool polls = runs && w->polled;
        const tk_sim_inst *i = &w->code[polls ? w->polled - 1 : w->pc[lane]];
        const bool barrier = strncmp(i->name, "bar", 3) == 0;
        tk_sim_fail(w, i, lane, apart && barrier ? "divergent-barrier" : "deadlock",
                    apart            ? "waits for threads of its warp that never come"
                    : runs && !polls ? "runs on for ever: nothing changes any more"
                                     : "waits for threads that never come");
    }
    note_clusters(c);
}

// ---- Counters

static void add(tk_sim_count *to, const tk_sim_count *c) {
    to->warps += c->warps;
    to->threads += c->threads;
    to->global_requests += c->global_requests;
    to->global_sectors += c->global_sectors;
    to->shared_requests += c->shared_requests;
    to->shared_wavefronts += c->shared_wavefronts;
    to->shared_conflicts += c->shared_conflicts;
    to->async_bytes += c->async_bytes;
    to->barrier_waits += c->barrier_waits;
}

static int by_place(const void *a, const void *b) {
    const tk_sim_line *x = a, *y = b;
    int names =
        x->file && y->file ? strcmp(x->file, y->file) : (x->file != NULL) - (y->file != NULL);
    return names ? names : (x->line > y->line) - (x->line < y->line);
}

static void add_body(const tk_sim_program *p, const tk_sim_entry *e, const tk_sim_result *result,
                     tk_sim_counters *out) {
    for (uint32_t k = e->first; k < e->first + e->ninst; k++) {
        const tk_sim_inst *i = &p->code.at[k];
        tk_sim_place at = tk_sim_place_of(p, i);
        add(&out->total, &result->count[k]);
        add(&out->by_class[i->klass], &result->count[k]);
        out->line[out->nline++] = (tk_sim_line){at.file, at.line, result->count[k]};
    }
}

void tk_sim_sum(tk_arena *arena, const tk_sim_program *p, const char *entry,
                const tk_sim_result *result, tk_sim_counters *out) {
    memset(out, 0, sizeof *out);
    const tk_sim_entry *e = NULL;
    for (uint32_t k = 0; k < p->entries.n; k++) {
        e = strcmp(p->entries.at[k]->name, entry) == 0 ? p->entries.at[k] : e;
    }
    if (!e || p->code.n != result->ncount) {
        return;
    }
    out->line = TK_NEW_ARRAY(arena, tk_sim_line, p->code.n + 1);
    add_body(p, e, result, out);
    for (uint32_t k = 0; e->calls && k < p->functions.n; k++) {
        if (p->functions.at[k]->body) {
            add_body(p, p->functions.at[k]->body, result, out);
        }
    }
    qsort(out->line, out->nline, sizeof *out->line, by_place);
    uint32_t n = 0;
    for (uint32_t k = 0; k < out->nline; k++) {
        if (n > 0 && by_place(&out->line[n - 1], &out->line[k]) == 0) {
            add(&out->line[n - 1].count, &out->line[k].count);
        } else {
            out->line[n++] = out->line[k];
        }
    }
    out->nline = n;
}
