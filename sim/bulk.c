// SPDX-License-Identifier: Apache-2.0
// Bulk copies between global and shared memory, which run by themselves: each at a random moment
// after its issue; seed 0: when no warp can go on.
//
// A copy to shared memory ends by telling an mbarrier that its bytes have come. One to global
// memory ends where its thread waits for its group; until then nobody may write what it reads. A
// block must not end before its copies. Copies see what threads have written to shared memory only
// through fence.proxy.async, by the writer or, after it, by the thread that issues the copy.
#include "sim/machine.h"

typedef struct copy {
    tk_sim_bulk at;
    bool done; // to global memory: only the wait is missing
} copy;

struct tk_sim_bulks {
    tk_arena *arena;
    TK_VEC(copy) copies;
    uint32_t threads;
    uint32_t *group; // [threads] groups that were committed
};

struct tk_sim_bulks *tk_sim_bulk_make(tk_arena *arena, uint32_t nwarp) {
    struct tk_sim_bulks *b = TK_NEW(arena, struct tk_sim_bulks);
    b->arena = arena;
    b->threads = nwarp * TK_SIM_LANES;
    b->group = TK_NEW_ARRAY(arena, uint32_t, b->threads);
    return b;
}

void tk_sim_bulk_begin(struct tk_sim_bulks *b) {
    b->copies.n = 0;
    memset(b->group, 0, b->threads * sizeof *b->group);
}

void tk_sim_bulk_issue(tk_sim_bulk x) {
    struct tk_sim_bulks *b = x.warp->cluster->bulk;
    x.group = b->group[tk_sim_member(x.warp, x.lane)];
    tk_sim_async_mark(x.warp->cluster, x.offset, x.bytes, x.inst, x.load);
    x.warp->grid->count[tk_sim_index(x.warp, x.inst)].async_bytes += x.bytes;
    copy c = {x, false};
    tk_vec_push(b->arena, &b->copies, c);
}

static void forget(struct tk_sim_bulks *b, uint32_t k) {
    memmove(&b->copies.at[k], &b->copies.at[k + 1], (b->copies.n - k - 1) * sizeof *b->copies.at);
    b->copies.n--;
}

// The bytes have come to shared memory. A fault is in the run's result.
static void arrive(const tk_sim_bulk *x) {
    tk_sim_warp *w = x->warp;
    tk_sim_async_mark(w->cluster, x->offset, x->bytes, NULL, true);
    memcpy(w->cluster->shared + x->offset, x->global, x->bytes);
    if (!tk_sim_shadow_access(w, x->inst, x->lane, x->offset, x->bytes, TK_SIM_WRITE, false)) {
        return;
    }
    tk_sim_mbarrier *m = tk_sim_mbarrier_at(w, x->inst, x->lane, x->barrier);
    if (m) {
        tk_sim_mbarrier_bytes(w, x->inst, x->lane, m, -(int64_t)x->bytes);
    }
}

bool tk_sim_bulk_step(tk_sim_cluster *c) {
    struct tk_sim_bulks *b = c->bulk;
    uint32_t n = b->copies.n, from = n ? (uint32_t)tk_sim_random(c->grid, n) : 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = (from + k) % n;
        copy *y = &b->copies.at[at];
        if (y->done) {
            continue;
        }
        tk_sim_bulk x = y->at;
        if (x.load) {
            forget(b, at);
            arrive(&x);
        } else {
            y->done = true;
            memcpy(x.global, c->shared + x.offset, x.bytes);
        }
        return true;
    }
    return false;
}

void tk_sim_bulk_commit(tk_sim_warp *w, uint32_t lanes) {
    TK_SIM_EACH(l, lanes) { w->cluster->bulk->group[tk_sim_member(w, l)]++; }
}

bool tk_sim_bulk_wait(tk_sim_warp *w, uint32_t lane, uint32_t most) {
    struct tk_sim_bulks *b = w->cluster->bulk;
    for (uint32_t k = 0; k < b->copies.n;) {
        copy c = b->copies.at[k];
        bool mine = c.at.warp == w && c.at.lane == lane && !c.at.load;
        if (!mine || (uint64_t)c.at.group + most >= b->group[tk_sim_member(w, lane)]) {
            k++;
            continue;
        }
        if (!c.done) {
            memcpy(c.at.global, w->cluster->shared + c.at.offset, c.at.bytes);
        }
        forget(b, k);
        tk_sim_async_mark(w->cluster, c.at.offset, c.at.bytes, NULL, false);
        if (!tk_sim_shadow_access(w, c.at.inst, lane, c.at.offset, c.at.bytes, TK_SIM_READ,
                                  false)) {
            return false;
        }
    }
    return true;
}

bool tk_sim_bulk_end(tk_sim_block *block) {
    const struct tk_sim_bulks *b = block->cluster->bulk;
    for (uint32_t k = 0; k < b->copies.n; k++) {
        const tk_sim_bulk *x = &b->copies.at[k].at;
        if (tk_sim_block_at(block->cluster, x->offset) == block) {
            tk_sim_fail(x->warp, x->inst, x->lane, "unfinished",
                        "the block ends while this copy %s its shared memory; nobody has waited "
                        "for it",
                        x->load ? "writes" : "reads");
            return false;
        }
    }
    return true;
}
