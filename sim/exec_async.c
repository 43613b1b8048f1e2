// SPDX-License-Identifier: Apache-2.0
// cp.async: copies from global to shared memory that a thread issues, commits and waits for.
#include "sim/exec.h"

// Checks the source and gives where it lies; NULL after a fault. Only `given` bytes are read.
static const unsigned char *source(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                   uint64_t address, uint32_t size, uint32_t given) {
    static const unsigned char nothing[1];
    if (address % size) {
        tk_sim_fail(w, i, lane, "misaligned", "copies %u bytes from 0x%llx, which is no multiple",
                    size, (unsigned long long)address);
        return NULL;
    }
    if (given == size) {
        return tk_sim_at(w, i, lane, TK_SIM_GLOBAL, address, size, TK_SIM_READ, NULL);
    }
    const unsigned char *first = nothing;
    for (uint32_t k = 0; k < given; k++) {
        const unsigned char *p =
            tk_sim_at(w, i, lane, TK_SIM_GLOBAL, address + k, 1, TK_SIM_READ, NULL);
        if (!p) {
            return NULL;
        }
        first = k ? first : p;
    }
    return first;
}

// How many bytes of the source the lane copies: all, as many as src-size says, or, with ignore-src,
// none. The rest are zeros.
static uint32_t given_bytes(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                            uint32_t size) {
    const tk_sim_arg *a = tk_sim_operand(i, 3);
    if (tk_sim_count_of(i, 3) == 0 || a->bytes == 8) { // a cache policy is no size
        return size;
    }
    if (a->kind == TK_SIM_ARG_PRED) {
        return tk_sim_get_pred(w, a) >> lane & 1 ? 0 : size;
    }
    return (uint32_t)tk_sim_get(w, a)[lane];
}

static tk_sim_flow run_copy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    uint32_t reading = 0;
    TK_SIM_EACH(l, mask) {
        uint32_t size = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[l];
        uint32_t given = given_bytes(w, i, l, size);
        if (given > size) {
            return tk_sim_fail(w, i, l, "async-operands", "a copy of %u bytes, %u of them given",
                               size, given);
        }
        const unsigned char *p = source(w, i, l, from[l], size, given);
        w->begins = TK_SIM_BEGINS_COPY;
        const unsigned char *s =
            p ? tk_sim_at(w, i, l, TK_SIM_SHARED, to[l], size, TK_SIM_WRITE, NULL) : NULL;
        w->begins = TK_SIM_BEGINS_NOTHING;
        if (!s) {
            return TK_SIM_FAULT;
        }
        tk_sim_async_copy(w, i, l, (uint32_t)(s - w->cluster->shared), size, p, given);
        reading |= (uint32_t)(given > 0) << l;
    }
    uint32_t bytes = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[__builtin_ctz(mask)];
    if (reading) {
        tk_sim_count_request(w, i, reading, TK_SIM_GLOBAL, from, bytes);
    }
    tk_sim_count_request(w, i, mask, TK_SIM_SHARED, to, bytes);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(cp_async, run_copy)

static tk_sim_flow run_commit(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i;
    tk_sim_async_commit(w, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(cp_async_commit, run_commit)

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool all = tk_sim_has(i, TK_SIM_MOD_WAIT_ALL);
    uint32_t most = all ? 0 : (uint32_t)tk_sim_get(w, &i->arg[0])[__builtin_ctz(mask)];
    return tk_sim_async_wait(w, mask, most, all) ? TK_SIM_NEXT : TK_SIM_FAULT;
}
TK_SIM_BIND_ONE(cp_async_wait, run_wait)
