// SPDX-License-Identifier: Apache-2.0
// mma.sync: D = A B + C of matrices that lie in the registers of a warp, m x k, k x n, m x n.
//
// Fragments. g is lane / 4, q is lane % 4; a register of A or B has e = 32 / bits elements of
// successive k. Register i, element b of A: row g + 8 (i % 2), k = e q + b + 4 e (i / 2); of B:
// column g, k = e q + b + 4 e i. C and D: row g + 8 (i / 2), column 2 q + i % 2; two f16 of a row
// share a register.
#include "sim/exec.h"
#include "sim/floats.h"
#include "sim/mma.h"

#include <math.h>

enum { M = 16, N = 8 };

typedef struct operands {
    float a[M][TK_SIM_MMA_MOST], b[N][TK_SIM_MMA_MOST];
    int32_t ia[M][TK_SIM_MMA_MOST], ib[N][TK_SIM_MMA_MOST];
} operands;

static unsigned depth(const tk_sim_inst *i) {
    if (tk_sim_has(i, TK_SIM_MOD_M8N8K4) || tk_sim_has(i, TK_SIM_MOD_M16N8K4)) {
        return 4;
    }
    if (tk_sim_has(i, TK_SIM_MOD_M8N8K16) || tk_sim_has(i, TK_SIM_MOD_M16N8K16)) {
        return 16;
    }
    return tk_sim_has(i, TK_SIM_MOD_M16N8K8) ? 8 : 32;
}

static unsigned rows(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_M8N8K4) || tk_sim_has(i, TK_SIM_MOD_M8N8K16) ? 8 : M;
}

static void collect(const tk_sim_warp *w, const tk_sim_inst *i, operands *o) {
    tk_sim_type ta = (tk_sim_type)i->type[1], tb = (tk_sim_type)i->type[2];
    unsigned e = 32u / tk_sim_types[ta].bits;
    tk_sim_mma_rows(w, tk_sim_operand(i, 1), tk_sim_count_of(i, 1), ta, o->a, o->ia);
    for (unsigned r = 0; r < tk_sim_count_of(i, 2); r++) {
        const uint64_t *b = tk_sim_get(w, tk_sim_operand(i, 2) + r);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            unsigned k = e * (l % 4) + 4 * e * r;
            tk_sim_mma_spread(tb, (uint32_t)b[l], &o->b[l / 4][k], &o->ib[l / 4][k]);
        }
    }
}

static uint32_t element(const tk_sim_inst *i, const operands *o, unsigned row, unsigned col,
                        uint32_t c) {
    unsigned k = depth(i);
    if (i->type[0] == TK_SIM_S32) {
        return tk_sim_mma_dot_int(c, o->ia[row], o->ib[col], k,
                                  tk_sim_has(i, TK_SIM_MOD_SATFINITE));
    }
    tk_sim_mma_types t = {(tk_sim_type)i->type[0], (tk_sim_type)i->type[1], (tk_sim_type)i->type[2],
                          false};
    return tk_sim_mma_dot(t, c, o->a[row], o->b[col], k);
}

static tk_sim_flow run_mma(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    operands o;
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    collect(w, i, &o);
    bool half = i->type[0] == TK_SIM_F16;
    const tk_sim_arg *d = tk_sim_operand(i, 0), *c = tk_sim_operand(i, 3);
    for (unsigned r = 0; r < tk_sim_count_of(i, 0); r++) {
        const uint64_t *from = tk_sim_get(w, &c[r]);
        uint64_t *to = tk_sim_put(w, &d[r]);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            unsigned row = l / 4 + 8 * (half ? r : r / 2), col = l % 4 * 2;
            uint32_t x = (uint32_t)from[l];
            if (half) {
                uint32_t high = element(i, &o, row, col + 1, x >> 16);
                to[l] = high << 16 | element(i, &o, row, col, x & 0xffff);
            } else {
                to[l] = element(i, &o, row, col + r % 2, x);
            }
        }
    }
    return flow;
}

// Registers of A, B, D for the shape; those of C are as those of D.
static bool counts_fit(const tk_sim_inst *i, unsigned a, unsigned b, unsigned d) {
    return tk_sim_count_of(i, 0) == d && tk_sim_count_of(i, 1) == a && tk_sim_count_of(i, 2) == b &&
           tk_sim_count_of(i, 3) == d && i->type[0] == i->type[3];
}

tk_sim_exec *tk_sim_bind_mma(const tk_sim_inst *i) {
    unsigned bits = tk_sim_types[i->type[1]].bits, b = depth(i) * bits / 128, halves = rows(i) / 8;
    bool same = i->type[1] == i->type[2] || bits == 8;
    return same && counts_fit(i, halves * b, b, (i->type[0] == TK_SIM_F16 ? 1 : 2) * halves)
               ? run_mma
               : NULL;
}

// ---- f64: fused, in the order of k. An element a register, else as above.

typedef struct doubles {
    double a[M][16], b[N][16];
} doubles;

static void collect_f64(const tk_sim_warp *w, const tk_sim_inst *i, doubles *o) {
    unsigned halves = rows(i) / 8;
    for (unsigned r = 0; r < tk_sim_count_of(i, 1); r++) {
        const uint64_t *a = tk_sim_get(w, tk_sim_operand(i, 1) + r);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            o->a[l / 4 + 8 * (r % halves)][l % 4 + 4 * (r / halves)] = tk_f64_of_bits(a[l]);
        }
    }
    for (unsigned r = 0; r < tk_sim_count_of(i, 2); r++) {
        const uint64_t *b = tk_sim_get(w, tk_sim_operand(i, 2) + r);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            o->b[l / 4][l % 4 + 4 * r] = tk_f64_of_bits(b[l]);
        }
    }
}

static tk_sim_flow run_mma_f64(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    doubles o;
    collect_f64(w, i, &o);
    for (unsigned r = 0; r < tk_sim_count_of(i, 0); r++) {
        const uint64_t *c = tk_sim_get(w, tk_sim_operand(i, 3) + r);
        uint64_t *d = tk_sim_put(w, tk_sim_operand(i, 0) + r);
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            const double *x = o.a[l / 4 + 8 * (r / 2)], *y = o.b[l % 4 * 2 + r % 2];
            double s = tk_f64_of_bits(c[l]);
            for (unsigned k = 0; k < depth(i); k++) {
                s = fma(x[k], y[k], s);
            }
            d[l] = tk_sim_narrow(TK_SIM_F64, s, TK_SIM_ROUND_NEAREST, false);
        }
    }
    return flow;
}
tk_sim_exec *tk_sim_bind_mma_f64(const tk_sim_inst *i) {
    unsigned halves = rows(i) / 8, b = depth(i) / 4;
    return counts_fit(i, halves * b, b, 2 * halves) ? run_mma_f64 : NULL;
}
