// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and cp.reduce.async.bulk between global and shared memory and between the blocks of
// a cluster, and the fence between the threads' accesses of shared memory and those of such copies.
#include "sim/exec.h"

// ---- What tensor copies use too

uint32_t tk_sim_bulk_place(const tk_sim_bulk *x, tk_sim_space space, uint64_t address,
                           uint32_t unit, tk_sim_access access) {
    uint32_t offset = 0, first = (uint32_t)address;
    for (uint32_t k = 0, n; k < x->bytes; k += n) {
        uint32_t at = tk_sim_bulk_piece(x, first, k, &n) - first;
        n = n < unit ? n : unit;
        x->warp->begins = (uint8_t)tk_sim_bulk_proxy(x);
        const unsigned char *p =
            tk_sim_at(x->warp, x->inst, x->lane, space, address + at, n, access, NULL);
        x->warp->begins = TK_SIM_BEGINS_NOTHING;
        if (!p) {
            return UINT32_MAX;
        }
        offset = (uint32_t)(p - x->warp->cluster->shared) - at;
    }
    return offset;
}

uint32_t tk_sim_bulk_source(const tk_sim_bulk *x, uint64_t address) {
    return tk_sim_bulk_place(x, TK_SIM_SHARED, address, 16, TK_SIM_READ);
}

bool tk_sim_bulk_barrier(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_space space,
                         uint64_t address, bool fenced, tk_sim_bulk *x) {
    x->barrier = tk_sim_mbarrier_offset(w, i, lane, space, address, TK_SIM_READ);
    const tk_sim_mbarrier *m =
        x->barrier == UINT32_MAX ? NULL : tk_sim_mbarrier_at(w, i, lane, x->barrier);
    if (!m) {
        return false;
    }
    if (fenced && !tk_sim_mbarrier_fenced(w, lane, m)) {
        tk_sim_fail(w, i, lane, "proxy",
                    "the mbarrier was initialised, and there is no fence.mbarrier_init between");
        return false;
    }
    return true;
}

// The mbarrier lies in the block whose memory is written.
static bool same_block(const tk_sim_bulk *x) {
    const tk_sim_cluster *c = x->warp->cluster;
    if (tk_sim_block_at(c, x->barrier) == tk_sim_block_at(c, x->offset)) {
        return true;
    }
    tk_sim_fail(x->warp, x->inst, x->lane, "async-operands",
                "the mbarrier is in another block than what is written");
    return false;
}

static bool load_to(tk_sim_bulk *x, tk_sim_space space, uint64_t to, uint64_t barrier) {
    tk_sim_warp *w = x->warp;
    if (!tk_sim_bulk_barrier(w, x->inst, x->lane, space, barrier, true, x)) {
        return false;
    }
    x->offset = tk_sim_bulk_place(x, space, to, 16, TK_SIM_WRITE);
    if (x->offset == UINT32_MAX || !same_block(x)) {
        return false;
    }
    tk_sim_bulk_issue(*x);
    return true;
}

bool tk_sim_bulk_load(tk_sim_bulk *x, uint64_t to, uint64_t barrier, bool multicast,
                      uint32_t mask) {
    bool cluster = tk_sim_has(x->inst, TK_SIM_MOD_SHARED_CLUSTER);
    if (!multicast) {
        return load_to(x, cluster ? TK_SIM_CLUSTER : TK_SIM_SHARED, to, barrier);
    }
    mask &= 0xffff;
    if (!mask) {
        tk_sim_fail(x->warp, x->inst, x->lane, "async-operands", "a multicast to no block");
        return false;
    }
    TK_SIM_EACH(rank, mask) {
        uint64_t of = (rank + UINT64_C(1)) * TK_SIM_CLUSTER_STEP;
        if (!load_to(x, TK_SIM_CLUSTER, of + to % TK_SIM_CLUSTER_STEP,
                     of + barrier % TK_SIM_CLUSTER_STEP)) {
            return false;
        }
    }
    return true;
}

// ---- Copies of a piece of memory

static bool size_fits(const tk_sim_bulk *x) {
    if (x->bytes == 0 || x->bytes % 16) {
        tk_sim_fail(x->warp, x->inst, x->lane, "async-operands", "a bulk copy of %u bytes: %s",
                    x->bytes, x->bytes ? "no multiple of 16" : "of nothing");
        return false;
    }
    return true;
}

// The piece of global memory; false after a fault.
static bool find_global(tk_sim_bulk *x, uint64_t address, tk_sim_access access) {
    if (address % 16) {
        tk_sim_fail(x->warp, x->inst, x->lane, "misaligned",
                    "copies 0x%llx, which is no multiple of 16 bytes", (unsigned long long)address);
        return false;
    }
    x->global = tk_sim_global_at(x->warp, x->inst, x->lane, address, x->bytes, access);
    const unsigned char *value = x->reduces ? NULL : x->warp->cluster->shared + x->offset;
    return x->global != NULL &&
           (access == TK_SIM_READ ||
            tk_sim_maps_stored(x->warp, x->inst, x->lane, address, x->bytes, value));
}

static tk_sim_bulk begin(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                         tk_sim_bulk_kind kind) {
    tk_sim_bulk x = {.inst = i, .warp = w, .lane = lane, .kind = kind};
    x.bytes = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[lane];
    x.reduces = tk_sim_has(i, TK_SIM_MOD_REDUCE);
    x.type = (tk_sim_type)i->type[0];
    return x;
}

static tk_sim_flow run_load(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0}, bar[TK_SIM_LANES] = {0};
    bool multicast = tk_sim_has(i, TK_SIM_MOD_MULTICAST);
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    tk_sim_addresses(w, tk_sim_operand(i, 3), mask, bar);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = begin(w, i, l, TK_SIM_BULK_LOAD);
        uint32_t blocks = multicast ? (uint32_t)tk_sim_get(w, tk_sim_operand(i, 4))[l] : 0;
        if (!size_fits(&x) || !find_global(&x, from[l], TK_SIM_READ) ||
            !tk_sim_bulk_load(&x, to[l], bar[l], multicast, blocks)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_load, run_load)

static tk_sim_flow run_store(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = begin(w, i, l, TK_SIM_BULK_STORE);
        if (!size_fits(&x)) {
            return TK_SIM_FAULT;
        }
        x.offset = tk_sim_bulk_source(&x, from[l]);
        if (x.offset == UINT32_MAX || !find_global(&x, to[l], TK_SIM_WRITE)) {
            return TK_SIM_FAULT;
        }
        tk_sim_bulk_issue(x);
    }
    return TK_SIM_NEXT;
}
// Half floats are added without flushing, and say so.
tk_sim_exec *tk_sim_bind_bulk_store(const tk_sim_inst *i) {
    bool reduces = tk_sim_has(i, TK_SIM_MOD_REDUCE);
    bool half = i->ntype && (i->type[0] == TK_SIM_F16 || i->type[0] == TK_SIM_BF16);
    bool says = (half && tk_sim_has(i, TK_SIM_MOD_ADD)) == tk_sim_has(i, TK_SIM_MOD_NOFTZ);
    bool fits = !reduces || (says && tk_sim_combines(i, (tk_sim_type)i->type[0], true));
    return fits ? run_store : NULL;
}

static tk_sim_flow run_move(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0}, bar[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    tk_sim_addresses(w, tk_sim_operand(i, 3), mask, bar);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = begin(w, i, l, TK_SIM_BULK_MOVE);
        if (!size_fits(&x)) {
            return TK_SIM_FAULT;
        }
        x.from = tk_sim_bulk_source(&x, from[l]);
        if (x.from == UINT32_MAX ||
            !tk_sim_bulk_barrier(w, i, l, TK_SIM_CLUSTER, bar[l], true, &x)) {
            return TK_SIM_FAULT;
        }
        x.offset = tk_sim_bulk_place(&x, TK_SIM_CLUSTER, to[l], 16,
                                     x.reduces ? TK_SIM_ATOMIC : TK_SIM_WRITE);
        if (x.offset == UINT32_MAX || !same_block(&x)) {
            return TK_SIM_FAULT;
        }
        tk_sim_bulk_issue(x);
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_bulk_move(const tk_sim_inst *i) {
    bool reduces = tk_sim_has(i, TK_SIM_MOD_REDUCE);
    return !reduces || tk_sim_combines(i, (tk_sim_type)i->type[0], false) ? run_move : NULL;
}

// Has no effect but must be possible.
static tk_sim_flow run_prefetch(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, from);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_LOAD};
        x.bytes = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l];
        if (!size_fits(&x) || !find_global(&x, from[l], TK_SIM_READ)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_prefetch, run_prefetch)

// Caches are not modelled: all policies are the same one.
static tk_sim_flow run_policy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) { d[l] = 0; }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(policy, run_policy)

// ---- Groups, the fence

static tk_sim_flow run_commit(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i;
    tk_sim_bulk_commit(w, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_commit, run_commit)

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const bool reads = tk_sim_has(i, TK_SIM_MOD_READ);
    uint32_t stay = 0;
    TK_SIM_EACH(l, mask) {
        const uint32_t most = (uint32_t)tk_sim_get(w, &i->arg[0])[l];
        if (!reads && tk_sim_bulk_lasts(w, l, most)) {
            stay |= 1u << l;
            w->wait[l] = TK_SIM_WAIT_ASYNC;
        } else if (!tk_sim_bulk_wait(w, l, most, reads)) {
            return TK_SIM_FAULT;
        }
        w->pc[l] = tk_sim_index(w, i) + !(stay >> l & 1);
    }
    w->waiting |= stay;
    return stay ? TK_SIM_WAIT : TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(bulk_wait, run_wait)

static tk_sim_flow run_fence(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    if (!tk_sim_has(i, TK_SIM_MOD_GLOBAL)) {
        tk_sim_shadow_proxy_fence(w, mask, tk_sim_has(i, TK_SIM_MOD_SHARED_CTA));
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(fence_proxy, run_fence)
