// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory: phases, arrivals that are left, bytes that are expected.
//
// A phase is complete when no arrival is left and no byte is expected; the next one begins at once.
// What came before an arrival is before what follows a wait for its phase: each barrier has two
// points of the shadow, one for the phases of each parity.
#include "sim/machine.h"

enum { MOST_COUNT = (1 << 20) - 1 };

static uint32_t point_of(const tk_sim_cluster *c, const tk_sim_mbarrier *m, uint32_t phase) {
    return tk_sim_point_of_mbarrier(c, (uint32_t)(m - c->mbarrier.at), phase);
}

static bool relaxed(const tk_sim_inst *i) {
    return i->klass == TK_SIM_CLASS_BARRIER && tk_sim_has(i, TK_SIM_MOD_RELAXED);
}

static void release(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const tk_sim_mbarrier *m) {
    (relaxed(i) ? tk_sim_shadow_release_relaxed
                : tk_sim_shadow_release)(w, 1u << lane, point_of(w->cluster, m, m->phase));
}

static tk_sim_mbarrier *find(tk_sim_cluster *c, uint32_t offset) {
    for (uint32_t k = 0; k < c->mbarrier.n; k++) {
        if (c->mbarrier.at[k].offset == offset) {
            return &c->mbarrier.at[k];
        }
    }
    return NULL;
}

bool tk_sim_mbarrier_init(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                          uint32_t count) {
    tk_sim_cluster *c = w->cluster;
    tk_sim_mbarrier *m = find(c, offset);
    if (count == 0 || count > MOST_COUNT) {
        tk_sim_fail(w, i, lane, "mbarrier", "an mbarrier for %u arrivals", count);
        return false;
    }
    if (m && m->valid) {
        tk_sim_fail(w, i, lane, "mbarrier", "an mbarrier is there already; mbarrier.inval ends it");
        return false;
    }
    if (!m) {
        tk_vec_push(w->grid->arena, &c->mbarrier, (tk_sim_mbarrier){0});
        m = &c->mbarrier.at[c->mbarrier.n - 1];
    }
    *m = (tk_sim_mbarrier){
        .offset = offset, .expected = count, .left = count, .inits = m->inits + 1, .valid = true};
    m->by = tk_sim_member(w, lane);
    tk_sim_async_barrier(c, offset, true);
    tk_sim_shadow_clear(c->shadow, point_of(c, m, 0));
    tk_sim_shadow_clear(c->shadow, point_of(c, m, 1));
    return true;
}

tk_sim_mbarrier *tk_sim_mbarrier_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                    uint32_t offset) {
    tk_sim_mbarrier *m = find(w->cluster, offset);
    if (!m || !m->valid) {
        tk_sim_fail(w, i, lane, "mbarrier", "there is no mbarrier in %s",
                    tk_sim_shared_text(w->cluster, offset));
        return NULL;
    }
    return m;
}

const tk_sim_mbarrier *tk_sim_mbarrier_of_wait(const tk_sim_warp *w, const tk_sim_inst *i,
                                               uint32_t lane) {
    const tk_sim_arg *a = tk_sim_operand(i, 1);
    uint64_t address = tk_sim_address(w, a, lane);
    tk_sim_resolve(tk_sim_space_of(i, a), &address);
    uint32_t begin = (uint32_t)(w->block->shared - w->cluster->shared);
    return find(w->cluster, begin + (uint32_t)(address - TK_SIM_SHARED_BASE));
}

void tk_sim_mbarrier_fence(tk_sim_warp *w, uint32_t lanes) {
    for (uint32_t k = 0; k < w->cluster->mbarrier.n; k++) {
        tk_sim_mbarrier *m = &w->cluster->mbarrier.at[k];
        uint32_t lane = m->by % TK_SIM_LANES;
        bool mine = m->by / TK_SIM_LANES == w->number && (lanes >> lane & 1);
        if (mine && m->valid && !m->fenced.epoch) {
            m->fenced = tk_sim_shadow_now(w, lane);
        }
        if (mine && m->valid && w->grid->program->flags) {
            tk_sim_shadow_fence_init(w, lane, k, m->inits);
        }
    }
}

static bool told(const tk_sim_warp *w, uint32_t lane, const tk_sim_mbarrier *m) {
    uint32_t index = (uint32_t)(m - w->cluster->mbarrier.at);
    return m->valid && tk_sim_shadow_knows_init(w, lane, index, m->inits);
}

bool tk_sim_mbarrier_told(const tk_sim_warp *w, uint32_t lane, uint32_t offset) {
    const tk_sim_mbarrier *m = find(w->cluster, offset);
    return m && told(w, lane, m);
}

bool tk_sim_mbarrier_fenced(const tk_sim_warp *w, uint32_t lane, const tk_sim_mbarrier *m) {
    uint32_t block = tk_sim_block_at(w->cluster, m->offset)->rank;
    return tk_sim_shadow_after(w, lane, m->fenced, block) || told(w, lane, m) ||
           tk_sim_shadow_behind_fence(w, lane, m->offset);
}

static void look(tk_sim_cluster *c, tk_sim_mbarrier *m) {
    if (m->left == 0 && m->bytes == 0) {
        m->phase++;
        m->left = m->expected;
        tk_sim_shadow_clear(c->shadow, point_of(c, m, m->phase));
        tk_sim_wake(c);
    }
}

static bool add_bytes(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                      int64_t more) {
    m->bytes += more;
    if (m->bytes > MOST_COUNT || m->bytes < -MOST_COUNT) {
        tk_sim_fail(w, i, lane, "mbarrier-overflow", "the mbarrier expects %lld bytes",
                    (long long)m->bytes);
        return false;
    }
    return true;
}

bool tk_sim_mbarrier_bytes(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                           int64_t more) {
    if (!add_bytes(w, i, lane, m, more)) {
        return false;
    }
    if (more < 0) { // they have come
        release(w, i, lane, m);
        look(w->cluster, m);
    }
    return true;
}

bool tk_sim_mbarrier_copied(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                            uint32_t bytes) {
    tk_sim_cluster *c = w->cluster;
    if (!add_bytes(w, i, lane, m, -(int64_t)bytes)) {
        return false;
    }
    tk_sim_shadow_told(w, lane, tk_sim_shadow_bulk(c, (uint32_t)(m - c->mbarrier.at)),
                       point_of(c, m, m->phase));
    look(c, m);
    return true;
}

// False after a fault.
static bool count_arrivals(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                           uint32_t count, bool drop) {
    if (drop && count != 0 && count <= m->left && m->expected <= count) {
        tk_sim_fail(w, i, lane, "mbarrier-overflow",
                    "%u arrive for good at an mbarrier for %u; nobody would be left to arrive in "
                    "the next phase",
                    count, m->expected);
        return false;
    }
    if (count == 0 || count > m->left) {
        tk_sim_fail(w, i, lane, "mbarrier-overflow",
                    "%u arrive at an mbarrier for %u, of which %u are left in this phase", count,
                    m->expected, m->left);
        return false;
    }
    m->left -= count;
    m->expected -= drop ? count : 0;
    return true;
}

bool tk_sim_mbarrier_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                            uint32_t count, bool drop) {
    if (!count_arrivals(w, i, lane, m, count, drop)) {
        return false;
    }
    if (tk_sim_has(i, TK_SIM_MOD_NO_COMPLETE) && m->left == 0 && m->bytes == 0) {
        tk_sim_fail(w, i, lane, "mbarrier",
                    "the arrival completes the phase, which '.noComplete' says it does not");
        return false;
    }
    release(w, i, lane, m);
    look(w->cluster, m);
    return true;
}

bool tk_sim_mbarrier_arrive_kept(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                 tk_sim_mbarrier *m, uint64_t serial, uint32_t kept) {
    tk_sim_cluster *c = w->cluster;
    if (!count_arrivals(w, i, lane, m, 1, false)) {
        return false;
    }
    uint32_t point = point_of(c, m, m->phase);
    tk_sim_shadow_told(w, lane, tk_sim_shadow_copies(w, lane, serial), point);
    tk_sim_shadow_release_kept(c, kept, point);
    look(c, m);
    return true;
}

bool tk_sim_mbarrier_more(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m) {
    if (m->left == MOST_COUNT) {
        tk_sim_fail(w, i, lane, "mbarrier-overflow", "the mbarrier expects %u arrivals", m->left);
        return false;
    }
    m->left++;
    return true;
}

void tk_sim_mbarrier_waited(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                            const tk_sim_mbarrier *m) {
    (relaxed(i) ? tk_sim_shadow_acquire_relaxed
                : tk_sim_shadow_acquire)(w, lanes, point_of(w->cluster, m, m->phase - 1));
}
