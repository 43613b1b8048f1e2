// SPDX-License-Identifier: Apache-2.0
// Threads of a warp that parted at a branch wait for each other where they meet again, as the code
// that a GPU's compiler makes lets them (read_reconverge.c says where).
//
// It is a matter of the schedule alone, and of that of seed 0, which counters are read from: who
// waits so is let go where those that are missing wait for their warp, where nothing else happens,
// and after a while in any case. So a thread may spin on what one that waits here holds. The while
// is half as long each time that it passed: a program whose threads need that is not held up for
// more than twice the first.
#include "sim/machine.h"

enum {
    PATIENCE = 1 << 16, // instructions of its warp that a thread waits
    LONG = 1 << 20,     // of the grid
    SHORT = 1 << 17,    // of the grid, where others of its warp sleep until something changes
    MOST_LOST = 10
};

void tk_sim_part(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint32_t gone) {
    uint32_t at = i->rejoins - 1;
    if (w->grid->launch->seed != 0 || !i->rejoins) {
        return;
    }
    if (i->rejoins == TK_SIM_REJOINS_CALLER) {
        lanes = tk_sim_calls_together(w, lanes & ~gone, &at);
        TK_SIM_EACH(l, lanes ? gone : 0) { lanes |= (uint32_t)(w->pc[l] == at) << l; }
    }
    for (uint32_t k = 0; k < w->meetings; k++) {
        if (w->meeting[k].at == at && (lanes & ~w->meeting[k].lanes) == 0) {
            return;
        }
    }
    if (lanes && w->meetings < TK_SIM_LANES) {
        w->meeting[w->meetings++] = (tk_sim_meeting){at, lanes};
    }
}

static uint32_t here(const tk_sim_warp *w, const tk_sim_meeting *m) {
    uint32_t lanes = 0;
    TK_SIM_EACH(l, m->lanes & w->alive & ~w->waiting) {
        lanes |= (uint32_t)(w->pc[l] == m->at) << l;
    }
    return lanes;
}

void tk_sim_rejoin(tk_sim_warp *w) {
    const uint32_t before = w->parked, n = w->meetings;
    w->parked = w->meetings = 0;
    for (uint32_t k = 0; k < n; k++) {
        const tk_sim_meeting m = w->meeting[k];
        const uint32_t lanes = here(w, &m);
        if (lanes != (m.lanes & w->alive)) {
            w->meeting[w->meetings++] = m;
            w->parked |= lanes;
        }
    }
    if (!before && w->parked) {
        w->parked_at = w->grid->clock;
        w->parked_for = 0;
    }
}

static bool is_impatient(const tk_sim_warp *w) {
    const uint64_t waited = w->grid->clock - w->parked_at;
    const unsigned n = w->lost_patience;
    return w->parked && (waited << n > LONG || w->parked_for << n > PATIENCE ||
                         (w->asleep && waited << n > SHORT));
}

void tk_sim_let_go(tk_sim_warp *w) {
    const uint32_t n = w->meetings;
    w->lost_patience += is_impatient(w) && w->lost_patience < MOST_LOST;
    w->parked = w->meetings = 0;
    for (uint32_t k = 0; k < n; k++) {
        const tk_sim_meeting m = w->meeting[k];
        if (here(w, &m) == 0) {
            w->meeting[w->meetings++] = m;
        }
    }
}

bool tk_sim_overdue(const tk_sim_warp *w) {
    const tk_sim_grid *g = w->grid;
    if (!w->parked) {
        return false;
    }
    if (is_impatient(w)) {
        return true;
    }
    if (w->alive & ~w->waiting & ~w->parked) {
        return false;
    }
    TK_SIM_EACH(l, w->waiting) {
        if (w->wait[l] != TK_SIM_WAIT_ASYNC) {
            return true;
        }
    }
    return tk_sim_suspect(g);
}
