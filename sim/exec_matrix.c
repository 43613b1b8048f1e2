// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix: 8 x 8 matrices of 16-bit elements between the registers of a warp
// and rows of 16 bytes. In registers a lane holds elements 2q and 2q + 1 of row g, where g is
// lane / 4 and q is lane % 4; with .trans, of column g.
#include "sim/exec.h"

typedef struct matrix {
    uint16_t at[8][8];
} matrix;

bool tk_sim_whole_warp(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, tk_sim_flow *flow) {
    uint32_t got;
    if (!tk_sim_gather(w, i, mask, ~0u, &got)) {
        *flow = TK_SIM_WAIT;
        return false;
    }
    if (got != ~0u) {
        *flow = tk_sim_fail(w, i, (uint32_t)__builtin_ctz(got), "membership",
                            "'%s' takes a whole warp; thread %u takes no part", i->name,
                            tk_sim_thread(w, (uint32_t)__builtin_ctz(~got)));
        return false;
    }
    w->joined = ~0u;
    *flow = TK_SIM_JOINED;
    return true;
}

static void to_registers(uint64_t *d, const matrix *m, bool trans) {
    for (unsigned l = 0; l < TK_SIM_LANES; l++) {
        unsigned g = l / 4, q = l % 4 * 2;
        uint32_t low = trans ? m->at[q][g] : m->at[g][q];
        uint32_t high = trans ? m->at[q + 1][g] : m->at[g][q + 1];
        d[l] = high << 16 | low;
    }
}

static void from_registers(matrix *m, const uint64_t *a, bool trans) {
    for (unsigned l = 0; l < TK_SIM_LANES; l++) {
        unsigned g = l / 4, q = l % 4 * 2;
        *(trans ? &m->at[q][g] : &m->at[g][q]) = (uint16_t)a[l];
        *(trans ? &m->at[q + 1][g] : &m->at[g][q + 1]) = (uint16_t)(a[l] >> 16);
    }
}

// Lanes 8k to 8k + 7 give the addresses of the rows of matrix k.
static tk_sim_space rows(tk_sim_warp *w, const tk_sim_inst *i, const tk_sim_arg *at, unsigned n,
                         uint64_t *address) {
    uint32_t lanes = n == 4 ? ~0u : (1u << n * 8) - 1;
    tk_sim_space space = tk_sim_space_of(i, at);
    tk_sim_addresses(w, at, lanes, address);
    tk_sim_count_request(w, i, lanes, space, address, 16);
    return space;
}

static unsigned char *row_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                             tk_sim_space space, uint64_t address, const void *value) {
    if (tk_sim_resolve(space, &address) != TK_SIM_SHARED) {
        tk_sim_fail(w, i, lane, "out-of-bounds", "'%s' at an address outside shared memory",
                    i->name);
        return NULL;
    }
    return tk_sim_at(w, i, lane, TK_SIM_SHARED, address, 16, value ? TK_SIM_WRITE : TK_SIM_READ,
                     value);
}

static tk_sim_flow run_load(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned n = tk_sim_count_of(i, 0);
    uint64_t address[TK_SIM_LANES] = {0};
    matrix m[4];
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    tk_sim_space space = rows(w, i, tk_sim_operand(i, 1), n, address);
    for (uint32_t l = 0; l < n * 8; l++) {
        const unsigned char *p = row_at(w, i, l, space, address[l], NULL);
        if (!p) {
            return TK_SIM_FAULT;
        }
        memcpy(m[l / 8].at[l % 8], p, 16);
    }
    for (unsigned k = 0; k < n; k++) {
        to_registers(tk_sim_put(w, &i->arg[k]), &m[k], tk_sim_has(i, TK_SIM_MOD_TRANS));
    }
    return flow;
}

static tk_sim_flow run_store(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    unsigned n = tk_sim_count_of(i, 1);
    uint64_t address[TK_SIM_LANES] = {0};
    matrix m[4];
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    for (unsigned k = 0; k < n; k++) {
        from_registers(&m[k], tk_sim_get(w, tk_sim_operand(i, 1) + k),
                       tk_sim_has(i, TK_SIM_MOD_TRANS));
    }
    tk_sim_space space = rows(w, i, tk_sim_operand(i, 0), n, address);
    for (uint32_t l = 0; l < n * 8; l++) {
        const uint16_t *row = m[l / 8].at[l % 8];
        unsigned char *p = row_at(w, i, l, space, address[l], row);
        if (!p) {
            return TK_SIM_FAULT;
        }
        memcpy(p, row, 16);
    }
    return flow;
}

static bool count_fits(const tk_sim_inst *i, unsigned n) {
    return n == (tk_sim_has(i, TK_SIM_MOD_X1) ? 1u : tk_sim_has(i, TK_SIM_MOD_X2) ? 2u : 4u);
}
tk_sim_exec *tk_sim_bind_ldmatrix(const tk_sim_inst *i) {
    return count_fits(i, tk_sim_count_of(i, 0)) ? run_load : NULL;
}
tk_sim_exec *tk_sim_bind_stmatrix(const tk_sim_inst *i) {
    return count_fits(i, tk_sim_count_of(i, 1)) ? run_store : NULL;
}

static tk_sim_flow run_move(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    matrix m;
    tk_sim_flow flow;
    if (tk_sim_whole_warp(w, i, mask, &flow)) {
        from_registers(&m, tk_sim_get(w, &i->arg[1]), false);
        to_registers(tk_sim_put(w, &i->arg[0]), &m, true);
    }
    return flow;
}
TK_SIM_BIND_ONE(movmatrix, run_move)
