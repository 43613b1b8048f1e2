// SPDX-License-Identifier: Apache-2.0
// The barrier of a cluster, and addresses of the shared memory of its blocks.
#include "sim/exec.h"

// ---- The barrier

static tk_sim_flow run_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got = mask;
    tk_sim_flow flow;
    if (!tk_sim_barrier_together(w, i, mask, &got, &flow)) {
        return flow;
    }
    flow = tk_sim_cluster_arrive(w, i, got, !tk_sim_has(i, TK_SIM_MOD_RELAXED));
    w->joined = got;
    return flow == TK_SIM_NEXT && got != mask ? TK_SIM_JOINED : flow;
}
TK_SIM_BIND_ONE(cluster_arrive, run_arrive)

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got = mask, passed;
    tk_sim_flow flow;
    if (!tk_sim_barrier_together(w, i, mask, &got, &flow)) {
        return flow;
    }
    if (!tk_sim_cluster_passed(w, i, got, &passed)) {
        return TK_SIM_FAULT;
    }
    if (passed == mask && got == mask) {
        return TK_SIM_NEXT;
    }
    uint32_t stay = got & ~passed;
    w->waiting |= stay;
    TK_SIM_EACH(l, stay) {
        w->wait[l] = TK_SIM_WAIT_CLUSTER;
        w->pc[l] = tk_sim_index(w, i);
    }
    w->grid->count[tk_sim_index(w, i)].barrier_waits++;
    w->joined = passed;
    return TK_SIM_JOINED;
}
TK_SIM_BIND_ONE(cluster_wait, run_wait)

// ---- Addresses

// The address in shared memory that the operand's bits are; false after a fault.
static bool shared_address(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t bits,
                           uint64_t *address) {
    bool named = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER);
    *address = bits;
    tk_sim_space s = tk_sim_resolve(named ? TK_SIM_CLUSTER : TK_SIM_GENERIC, address);
    if (s != TK_SIM_SHARED && s != TK_SIM_CLUSTER) {
        tk_sim_fail(w, i, lane, "out-of-bounds", "0x%llx is no address of shared memory",
                    (unsigned long long)bits);
        return false;
    }
    return true;
}

static tk_sim_flow run_mapa(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]), *rank = tk_sim_get(w, &i->arg[2]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    bool named = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER);
    TK_SIM_EACH(l, mask) {
        uint64_t address;
        if (!shared_address(w, i, l, a[l], &address)) {
            return TK_SIM_FAULT;
        }
        if (rank[l] >= w->cluster->nblock) {
            return tk_sim_fail(w, i, l, "out-of-bounds", "block %llu of a cluster of %u",
                               (unsigned long long)rank[l], w->cluster->nblock);
        }
        d[l] = (rank[l] + 1) * TK_SIM_CLUSTER_STEP + address % TK_SIM_CLUSTER_STEP +
               (named ? 0 : TK_SIM_WINDOW(TK_SIM_SHARED));
    }
    return TK_SIM_NEXT;
}
// A generic address has 64 bits.
tk_sim_exec *tk_sim_bind_mapa(const tk_sim_inst *i) {
    bool fits = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER) || i->type[0] == TK_SIM_U64;
    return fits ? run_mapa : NULL;
}

static tk_sim_flow run_rank(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) {
        uint64_t address;
        if (!shared_address(w, i, l, a[l], &address)) {
            return TK_SIM_FAULT;
        }
        d[l] = address < TK_SIM_CLUSTER_STEP ? w->block->rank
                                             : (uint32_t)(address / TK_SIM_CLUSTER_STEP - 1);
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_getctarank(const tk_sim_inst *i) {
    bool fits = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER) || i->type[0] == TK_SIM_U64;
    return fits ? run_rank : NULL;
}
