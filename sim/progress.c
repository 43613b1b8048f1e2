// SPDX-License-Identifier: Apache-2.0
// Whether a run still gets anywhere.
//
// What threads can learn of each other is counted as changes: a store of another value, an arrival,
// a copy, an end. While there are none, a warp does what its registers say: once it stands again
// where it stood, with the same in them, it is in a loop that only a change can end. Where that
// holds for all warps of the resident clusters that do not wait anyway, nothing will ever change:
// more clusters become resident, or the run ends with a deadlock. A loop that counts, or looks at a
// clock, is not of this kind; it ends by itself or runs on.
#include "sim/machine.h"

enum {
    SUSPECT = 1 << 15, // instructions without a change, from which on warps are looked at
    LONG = 1 << 22,    // the same, after which more clusters become resident in any case
    PATIENCE = 256, // instructions without a change, for each warp, after which late copies are due
    AT_LAST = 1024, // turns after which they are due though something changes, on average
    POLL = 256,     // instructions that a look at what others do counts as, for who waits meanwhile
    SELDOM = 8      // instructions for each register that a look at a warp's state reads
};

bool tk_sim_late(const tk_sim_grid *g) { return g->launch->seed & 1; }

bool tk_sim_due(tk_sim_grid *g) {
    const uint64_t warps = (uint64_t)g->nresident * g->resident->nwarp;
    return !tk_sim_late(g) || (g->seen == g->changes && g->idle >= PATIENCE * warps) ||
           tk_sim_random(g, AT_LAST) == 1;
}

bool tk_sim_step(tk_sim_cluster *c) {
    bool is = tk_sim_bulk_step(c);
    c->grid->changes += is;
    return is;
}

// ---- The state of a warp

static uint64_t mixed(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t state_of(const tk_sim_warp *w) {
    const tk_sim_entry *e = w->grid->entry;
    uint64_t h = mixed(w->alive, w->carry);
    TK_SIM_EACH(l, w->alive) { h = mixed(h, w->pc[l]); }
    for (uint32_t k = 0; k < e->npred; k++) {
        h = mixed(h, w->pred[k]);
    }
    for (uint32_t k = 0; k < e->nreg; k++) {
        for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
            h = mixed(h, w->reg[k][l]);
        }
    }
    return w->calls ? mixed(h, tk_sim_calls_state(w)) : h;
}

// Threads that may run, or whose wait ends by itself.
static uint32_t moving(const tk_sim_warp *w) {
    uint32_t lanes = w->alive & ~w->waiting;
    TK_SIM_EACH(l, w->waiting) { lanes |= (uint32_t)(w->wait[l] == TK_SIM_WAIT_ASYNC) << l; }
    return lanes;
}

static bool is_quiet(const tk_sim_warp *w) { return w->quiet && w->marked == w->grid->changes; }

// Compares its state with one before, which is a later and later one (a loop of any length is found
// so). All its threads that can must have run since.
static void look_at(tk_sim_warp *w) {
    tk_sim_grid *g = w->grid;
    if (is_quiet(w)) {
        return;
    }
    const uint64_t now = state_of(w);
    bool first = w->marked != g->changes;
    if (!first && now == w->mark && (moving(w) & ~w->ran & ~w->parked) == 0) {
        if (!w->parked) {
            w->quiet = true;
            g->quiet++;
            return;
        }
        tk_sim_let_go(w);
        first = true;
    }
    if (first || ++w->looks == w->most_looks) {
        w->most_looks = first ? 1 : 2 * w->most_looks;
        w->marked = g->changes;
        w->mark = now;
        w->looks = w->ran = w->polled = 0;
        w->quiet = false;
    }
}

// ---- Polling loops

// What the loop may change, of these threads: all that its instructions name.
static uint64_t loop_state(const tk_sim_warp *w, uint32_t to, uint32_t at, uint32_t lanes) {
    uint64_t h = w->carry & lanes;
    for (const tk_sim_inst *i = &w->code[to]; i < &w->code[at]; i++) {
        for (uint32_t a = 0; a < i->narg; a++) {
            const tk_sim_arg *x = &i->arg[a];
            if (x->kind == TK_SIM_ARG_PRED) {
                h = mixed(h, w->pred[x->slot] & lanes);
            } else if (x->kind == TK_SIM_ARG_REG) {
                TK_SIM_EACH(l, lanes) { h = mixed(h, w->reg[x->slot][l]); }
            }
        }
    }
    return h;
}

bool tk_sim_spins(tk_sim_warp *w, uint32_t at, uint32_t lanes) {
    const tk_sim_grid *g = w->grid;
    w->parked_for += POLL;
    if (w->spun_at != at || w->spun_lanes != lanes || w->spun_changes != g->changes) {
        w->spun_to = w->code[at].arg[0].slot;
        w->spun_at = at;
        w->spun_lanes = lanes;
        w->spun_changes = g->changes;
        w->spun_known = false;
        return false;
    }
    const uint64_t now = loop_state(w, w->spun_to, at, lanes);
    const bool same = w->spun_known && now == w->spun_state;
    w->spun_known = true;
    w->spun_state = now;
    if (!same || tk_sim_suspect(g)) {
        return false;
    }
    w->asleep = (w->asleep_changes == g->changes ? w->asleep : 0) | lanes;
    w->asleep_changes = g->changes;
    return true;
}

// Who sleeps stands where the loop begins.
void tk_sim_wake_up(tk_sim_warp *w) {
    const tk_sim_grid *g = w->grid;
    if (w->asleep && (w->asleep_changes != g->changes || tk_sim_suspect(g))) {
        w->spun_changes = w->spun_lanes == w->asleep ? g->changes : w->spun_changes;
        w->asleep = 0;
    }
}

// ---- The grid

// Whether no warp of a resident cluster will do anything new. *missing: how many might.
static bool all_quiet(tk_sim_grid *g, uint32_t *missing) {
    *missing = 0;
    for (uint32_t k = 0; k < g->nresident; k++) {
        tk_sim_cluster *c = &g->resident[k];
        if (c->running && tk_sim_step(c)) {
            return false;
        }
        for (uint32_t n = 0; c->running && n < c->nwarp; n++) {
            const tk_sim_warp *w = tk_sim_warp_of(c, n);
            *missing += moving(w) && !is_quiet(w);
        }
    }
    return *missing == 0;
}

// Looks at all again when half of those that were missing have become quiet, or after a while: some
// of them may wait.
static bool judge(tk_sim_cluster *c) {
    enum { WHILE = 1024 };
    tk_sim_grid *g = c->grid;
    uint32_t missing;
    if (g->quiet < g->judged && ++g->unjudged < WHILE) {
        return true;
    }
    g->unjudged = 0;
    if (!all_quiet(g, &missing)) {
        g->judged = g->quiet + missing / 2 + 1;
        return !g->result->fault.id;
    }
    if (tk_sim_grow(g)) {
        return true;
    }
    tk_sim_report_stuck(c);
    return false;
}

static void note_changes(tk_sim_grid *g) {
    if (g->seen != g->changes) {
        g->seen = g->changes;
        g->idle = 0;
        g->quiet = g->judged = 0;
    }
}

bool tk_sim_suspect(const tk_sim_grid *g) { return g->idle >= SUSPECT; }

bool tk_sim_progress(tk_sim_warp *w, uint64_t instructions) {
    tk_sim_grid *g = w->grid;
    note_changes(g);
    g->idle += instructions;
    if (g->idle < SUSPECT) {
        return true;
    }
    if (g->idle >= LONG && tk_sim_grow(g)) {
        g->idle = 0;
    }
    w->unseen += instructions;
    if (moving(w) && w->unseen >= SELDOM * (uint64_t)g->entry->nreg) {
        w->unseen = 0;
        look_at(w);
    }
    return !is_quiet(w) || judge(w->cluster);
}

bool tk_sim_time_out(tk_sim_cluster *c) {
    bool any = false;
    note_changes(c->grid);
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, k);
        const bool waits = moving(w) != 0; // for asynchronous work, or it sleeps in a loop
        w->gives_up = w->gives_up || (moving(w) & w->waiting);
        any = any || waits;
        if (waits) {
            look_at(w);
        }
    }
    if (!any) {
        tk_sim_report_stuck(c);
        return false;
    }
    if (!judge(c)) {
        return false;
    }
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp_of(c, k)->asleep = 0;
    }
    tk_sim_wake(c);
    return true;
}
