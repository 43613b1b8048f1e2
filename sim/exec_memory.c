// SPDX-License-Identifier: Apache-2.0
// Loads and stores.
#include "sim/exec.h"

tk_sim_space tk_sim_space_of(const tk_sim_inst *i, const tk_sim_arg *address) {
    bool shared = tk_sim_has(i, TK_SIM_MOD_SHARED) || tk_sim_has(i, TK_SIM_MOD_SHARED_CTA);
    bool cluster = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER);
    bool param = tk_sim_has(i, TK_SIM_MOD_PARAM) || tk_sim_has(i, TK_SIM_MOD_PARAM_ENTRY) ||
                 tk_sim_has(i, TK_SIM_MOD_PARAM_FUNC);
    tk_sim_space named = tk_sim_has(i, TK_SIM_MOD_GLOBAL)  ? TK_SIM_GLOBAL
                         : shared                          ? TK_SIM_SHARED
                         : cluster                         ? TK_SIM_CLUSTER
                         : tk_sim_has(i, TK_SIM_MOD_LOCAL) ? TK_SIM_LOCAL
                         : tk_sim_has(i, TK_SIM_MOD_CONST) ? TK_SIM_CONST
                         : param                           ? TK_SIM_PARAM
                                                           : TK_SIM_GENERIC;
    // The parameters of a call are a thread's own memory; a variable by name is of its space.
    bool by_name = address->space != TK_SIM_GENERIC;
    return by_name && (named == TK_SIM_PARAM || named == TK_SIM_GENERIC)
               ? (tk_sim_space)address->space
               : named;
}

void tk_sim_addresses(const tk_sim_warp *w, const tk_sim_arg *a, uint32_t mask, uint64_t *out) {
    TK_SIM_EACH(l, mask) { out[l] = tk_sim_address(w, a, l); }
}

// What a register gets of the bytes of an element.
static uint64_t loaded(const unsigned char *p, unsigned bytes, bool minus,
                       unsigned register_bytes) {
    uint64_t x = 0;
    if (bytes == 4) { // of one size, a copy is one instruction
        memcpy(&x, p, 4);
    } else {
        memcpy(&x, p, bytes);
    }
    unsigned up = 64 - 8 * bytes, keep = 64 - 8 * register_bytes;
    if (minus && up) {
        x = (uint64_t)((int64_t)(x << up) >> up);
    }
    return x << keep >> keep;
}

static tk_sim_flow run_ld(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned n = tk_sim_count_of(i, 0), bytes = tk_sim_types[i->type[0]].bits / 8u;
    bool minus = tk_sim_types[i->type[0]].kind == 's';
    const tk_sim_arg *at = tk_sim_operand(i, 1);
    tk_sim_space space = tk_sim_space_of(i, at);
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, at, mask, address);
    tk_sim_count_request(w, i, mask, space, address, n * bytes);
    TK_SIM_EACH(l, mask) {
        const unsigned char *p =
            tk_sim_at(w, i, l, space, address[l], n * bytes, TK_SIM_READ, NULL);
        if (!p) {
            return TK_SIM_FAULT;
        }
        if (i->strong) {
            tk_sim_shadow_flag(w, i, l, p, n * bytes, TK_SIM_READ);
        }
        for (unsigned k = 0; k < n; k++) {
            tk_sim_put(w, &i->arg[k])[l] = loaded(p + k * bytes, bytes, minus, i->arg[k].bytes);
        }
    }
    return TK_SIM_NEXT;
}

static tk_sim_flow run_st(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned n = tk_sim_count_of(i, 1), bytes = tk_sim_types[i->type[0]].bits / 8u;
    const tk_sim_arg *at = tk_sim_operand(i, 0), *from = tk_sim_operand(i, 1);
    tk_sim_space space = tk_sim_space_of(i, at);
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, at, mask, address);
    tk_sim_count_request(w, i, mask, space, address, n * bytes);
    TK_SIM_EACH(l, mask) {
        unsigned char value[64];
        for (unsigned k = 0; k < n; k++) {
            memcpy(value + k * bytes, &tk_sim_get(w, &from[k])[l], bytes);
        }
        unsigned char *p = tk_sim_at(w, i, l, space, address[l], n * bytes, TK_SIM_WRITE, value);
        if (!p) {
            return TK_SIM_FAULT;
        }
        if (i->strong) {
            tk_sim_shadow_flag(w, i, l, p, n * bytes, TK_SIM_WRITE);
        }
        w->grid->changes += memcmp(p, value, n * bytes) != 0;
        memcpy(p, value, n * bytes);
    }
    return TK_SIM_NEXT;
}

// Between accesses of global memory, which is consistent, it does nothing.
static tk_sim_flow run_fence(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool only_acquires = tk_sim_has(i, TK_SIM_MOD_ACQUIRE);
    bool only_releases = tk_sim_has(i, TK_SIM_MOD_RELEASE), part = strstr(i->name, "sync_restrict");
    if (w->grid->program->flags && !only_releases) {
        tk_sim_shadow_fence_acquire(w, mask, part);
    }
    if (w->grid->program->flags && !only_acquires) {
        tk_sim_shadow_fence_release(w, mask, part);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(fence, run_fence)

static bool vector_fits(const tk_sim_inst *i, unsigned n) {
    unsigned want = tk_sim_has(i, TK_SIM_MOD_V2)   ? 2
                    : tk_sim_has(i, TK_SIM_MOD_V4) ? 4
                    : tk_sim_has(i, TK_SIM_MOD_V8) ? 8
                                                   : 1;
    return n == want && n * tk_sim_types[i->type[0]].bits <= 256;
}
tk_sim_exec *tk_sim_bind_ld(const tk_sim_inst *i) {
    return vector_fits(i, tk_sim_count_of(i, 0)) ? run_ld : NULL;
}
tk_sim_exec *tk_sim_bind_st(const tk_sim_inst *i) {
    return vector_fits(i, tk_sim_count_of(i, 1)) ? run_st : NULL;
}
