// SPDX-License-Identifier: Apache-2.0
// st.async and red.async: a thread's values, on their way to the shared memory of a block of the
// cluster. They take effect by themselves and then tell an mbarrier of that block.
#include "sim/exec.h"

static tk_sim_flow send(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, bool reduces) {
    unsigned n = tk_sim_count_of(i, 1), bytes = tk_sim_types[i->type[0]].bits / 8u;
    tk_sim_space space = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER) ? TK_SIM_CLUSTER : TK_SIM_GENERIC;
    uint64_t to[TK_SIM_LANES] = {0}, bar[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 2), mask, bar);
    tk_sim_count_request(w, i, mask, space, to, n * bytes);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_VALUE};
        x.bytes = n * bytes;
        x.reduces = reduces;
        x.type = (tk_sim_type)i->type[0];
        for (unsigned k = 0; k < n; k++) {
            memcpy(x.value + k * bytes, &tk_sim_get(w, tk_sim_operand(i, 1) + k)[l], bytes);
        }
        // A generic address is one of the cluster's shared memory.
        tk_sim_space s = tk_sim_resolve(space, &to[l]), t = tk_sim_resolve(space, &bar[l]);
        if ((s != TK_SIM_SHARED && s != TK_SIM_CLUSTER) ||
            (t != TK_SIM_SHARED && t != TK_SIM_CLUSTER)) {
            return tk_sim_fail(w, i, l, "out-of-bounds", "'%s' at an address outside shared memory",
                               i->name);
        }
        x.offset = tk_sim_bulk_place(&x, s, to[l], x.bytes, reduces ? TK_SIM_ATOMIC : TK_SIM_WRITE);
        if (x.offset == UINT32_MAX || !tk_sim_bulk_barrier(w, i, l, t, bar[l], false, &x)) {
            return TK_SIM_FAULT;
        }
        const tk_sim_cluster *c = w->cluster;
        if (tk_sim_block_at(c, x.offset) != tk_sim_block_at(c, x.barrier)) {
            return tk_sim_fail(w, i, l, "async-operands",
                               "the mbarrier is in another block than what is written");
        }
        tk_sim_bulk_issue(x);
    }
    return TK_SIM_NEXT;
}

static tk_sim_flow run_st(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return send(w, i, mask, false);
}
tk_sim_exec *tk_sim_bind_st_async(const tk_sim_inst *i) {
    unsigned want = tk_sim_has(i, TK_SIM_MOD_V2) ? 2 : tk_sim_has(i, TK_SIM_MOD_V4) ? 4 : 1;
    bool fits = tk_sim_count_of(i, 1) == want && want * tk_sim_types[i->type[0]].bits <= 128;
    return fits ? run_st : NULL;
}

static tk_sim_flow run_red(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return send(w, i, mask, true);
}
tk_sim_exec *tk_sim_bind_red_async(const tk_sim_inst *i) {
    return tk_sim_combines(i, (tk_sim_type)i->type[0], false) ? run_red : NULL;
}
