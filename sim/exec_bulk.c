// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk between global and shared memory, and the fence between the threads' accesses of
// shared memory and those of such copies.
#include "sim/exec.h"

// Checks both places, 16 bytes at a time, and issues the copy of one lane.
static bool issue(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t shared,
                  uint64_t global, tk_sim_bulk *x) {
    if (x->bytes == 0 || x->bytes % 16) {
        tk_sim_fail(w, i, lane, "async-operands", "a bulk copy of %u bytes: no multiple of 16",
                    x->bytes);
        return false;
    }
    for (uint32_t k = 0; k < x->bytes; k += 16) {
        unsigned char *s = tk_sim_at(w, i, lane, TK_SIM_SHARED, shared + k, 16,
                                     x->load ? TK_SIM_WRITE : TK_SIM_READ, NULL);
        unsigned char *g = s ? tk_sim_at(w, i, lane, TK_SIM_GLOBAL, global + k, 16,
                                         x->load ? TK_SIM_READ : TK_SIM_WRITE, NULL)
                             : NULL;
        if (!g) {
            return false;
        }
        x->global = k ? x->global : g;
        x->offset = k ? x->offset : (uint32_t)(s - w->cluster->shared);
    }
    if (!x->load && !tk_sim_async_fenced(w, i, lane, x->offset, x->bytes)) {
        return false;
    }
    tk_sim_bulk_issue(*x);
    return true;
}

static tk_sim_flow run(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, bool load) {
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .load = load};
        x.bytes = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[l];
        if (load) {
            x.barrier =
                tk_sim_mbarrier_offset(w, i, l, tk_sim_operand(i, 3), TK_SIM_SHARED, TK_SIM_READ);
            const tk_sim_mbarrier *m =
                x.barrier == UINT32_MAX ? NULL : tk_sim_mbarrier_at(w, i, l, x.barrier);
            if (!m) {
                return TK_SIM_FAULT;
            }
            if (!m->fenced) {
                return tk_sim_fail(w, i, l, "proxy",
                                   "the mbarrier was initialised without fence.mbarrier_init");
            }
        }
        if (!issue(w, i, l, load ? to[l] : from[l], load ? from[l] : to[l], &x)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}

static tk_sim_flow run_load(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return run(w, i, mask, true);
}
TK_SIM_BIND_ONE(bulk_load, run_load)

static tk_sim_flow run_store(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return run(w, i, mask, false);
}
TK_SIM_BIND_ONE(bulk_store, run_store)

static tk_sim_flow run_commit(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i;
    tk_sim_bulk_commit(w, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_commit, run_commit)

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        if (!tk_sim_bulk_wait(w, l, (uint32_t)tk_sim_get(w, &i->arg[0])[l])) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_wait, run_wait)

static tk_sim_flow run_fence(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    if (!tk_sim_has(i, TK_SIM_MOD_GLOBAL)) {
        tk_sim_async_fence(w, mask);
        tk_sim_mbarrier_fence(w, mask);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(fence_proxy, run_fence)
