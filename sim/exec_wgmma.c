// SPDX-License-Identifier: Apache-2.0
// wgmma: D = A B + D of 64 x K and K x N matrices, by the four warps of a warpgroup, 16 rows each.
//
// K is 32 bytes of elements. B lies in shared memory, A there or in registers, D in registers.
// Fragments of a warp: of A as mma.sync has them; register r of a 32-bit D: row g + 8 (r / 2 % 2),
// column 8 (r / 4) + 2 q + r % 2, where g is lane / 4 and q lane % 4; two f16 of a row share a
// register. Sums are those of mma.sync.
#include "sim/exec.h"
#include "sim/mma.h"
#include "sim/wgmma.h"

enum { ROWS = 16, MOST_N = 256, PIECE = 16, MAX_K = TK_SIM_MMA_MOST };

typedef struct operands {
    float a[ROWS][MAX_K], b[MOST_N][MAX_K];
    int32_t ia[ROWS][MAX_K], ib[MOST_N][MAX_K];
} operands;

static unsigned depth(const tk_sim_inst *i) { return 256u / tk_sim_types[i->type[1]].bits; }

static const unsigned char *piece(const tk_sim_warp *w, const tk_sim_tile *t, uint32_t line,
                                  uint32_t k) {
    return w->block->shared + (tk_sim_tile_piece(t, line, k) - TK_SIM_SHARED_BASE);
}

static uint32_t word_at(const unsigned char *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

// Rows `from` on of an operand in shared memory.
static void fetch(const tk_sim_warp *w, const tk_sim_tile *t, tk_sim_type type, unsigned from,
                  unsigned rows, float (*f)[MAX_K], int32_t (*x)[MAX_K]) {
    unsigned e = 32u / tk_sim_types[type].bits;
    if (!t->by_k) {
        for (unsigned r = 0; r < rows; r++) {
            for (unsigned v = 0; v < 8; v++) {
                const unsigned char *p = piece(w, t, from + r, v / 4) + v % 4 * 4;
                tk_sim_mma_spread(type, word_at(p), &f[r][v * e], &x[r][v * e]);
            }
        }
        return;
    }
    for (unsigned k = 0; k < 16; k++) {
        for (unsigned r = 0; r < rows; r += 2) {
            float pair[2];
            int32_t none[2];
            const unsigned char *p = piece(w, t, k, (from + r) / 8) + r % 8 * 2;
            tk_sim_mma_spread(type, word_at(p), pair, none);
            f[r][k] = pair[0];
            f[r + 1][k] = pair[1];
        }
    }
}

static void negate(float (*f)[MAX_K], unsigned rows) {
    for (unsigned r = 0; r < rows; r++) {
        for (unsigned k = 0; k < MAX_K; k++) {
            f[r][k] = -f[r][k];
        }
    }
}

static void collect(const tk_sim_warp *w, const tk_sim_flight *f, operands *o) {
    const tk_sim_inst *i = f->inst;
    tk_sim_type ta = (tk_sim_type)i->type[1];
    memset(o->a, 0, sizeof o->a);
    memset(o->b, 0, sizeof o->b);
    if (tk_sim_wgmma_in_registers(i)) {
        tk_sim_mma_rows(w, tk_sim_operand(i, 1), 4, ta, o->a, o->ia);
    } else {
        fetch(w, &f->a, ta, w->index % TK_SIM_GROUP_WARPS * ROWS, ROWS, o->a, o->ia);
    }
    fetch(w, &f->b, (tk_sim_type)i->type[2], 0, i->number, o->b, o->ib);
    if (f->minus_a) {
        negate(o->a, ROWS);
    }
    if (f->minus_b) {
        negate(o->b, i->number);
    }
}

void tk_sim_wgmma_compute(tk_sim_warp *w, const tk_sim_flight *f) {
    const tk_sim_inst *i = f->inst;
    operands o;
    collect(w, f, &o);
    tk_sim_type t = (tk_sim_type)i->type[0];
    tk_sim_mma_types types = {t, (tk_sim_type)i->type[1], (tk_sim_type)i->type[2], true};
    unsigned half = t == TK_SIM_F16, k = depth(i);
    for (unsigned r = 0; r < tk_sim_count_of(i, 0); r++) {
        uint64_t *d = tk_sim_put(w, tk_sim_operand(i, 0) + r);
        unsigned two = half ? r : r / 2; // the pair of columns
        for (unsigned l = 0; l < TK_SIM_LANES; l++) {
            unsigned row = l / 4 + 8 * (two % 2), col = 8 * (two / 2) + l % 4 * 2;
            uint32_t x = f->adds ? (uint32_t)d[l] : 0;
            if (half) {
                uint32_t low = tk_sim_mma_dot(types, x & 0xffff, o.a[row], o.b[col], k);
                d[l] = tk_sim_mma_dot(types, x >> 16, o.a[row], o.b[col + 1], k) << 16 | low;
            } else if (t == TK_SIM_S32) {
                d[l] = tk_sim_mma_dot_int(x, o.ia[row], o.ib[col + r % 2], k,
                                          tk_sim_has(i, TK_SIM_MOD_SATFINITE));
            } else {
                d[l] = tk_sim_mma_dot(types, x, o.a[row], o.b[col + r % 2], k);
            }
        }
    }
}

// ---- The instructions

// A value that all lanes must give alike. False after a fault.
static bool uniform(tk_sim_warp *w, const tk_sim_inst *i, unsigned operand, uint64_t *out) {
    const uint64_t *x = tk_sim_get(w, tk_sim_operand(i, operand));
    *out = x[0];
    for (uint32_t l = 1; l < TK_SIM_LANES; l++) {
        if (x[l] != x[0]) {
            tk_sim_fail(w, i, l, "membership", "the threads of a warp give different descriptors");
            return false;
        }
    }
    return true;
}

// imm-scale-a and the like: 1 or -1.
static bool minus(const tk_sim_inst *i, unsigned operand) {
    return tk_sim_count_of(i, operand) && tk_sim_operand(i, operand)->offset < 0;
}

static bool transposed(const tk_sim_warp *w, const tk_sim_inst *i, unsigned operand) {
    return tk_sim_count_of(i, operand) && (uint32_t)tk_sim_get(w, tk_sim_operand(i, operand))[0];
}

static tk_sim_flow run_wgmma(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    tk_sim_flight f = {.inst = i};
    bool registers = tk_sim_wgmma_in_registers(i);
    uint64_t a = 0, b;
    if ((!registers && !uniform(w, i, 1, &a)) || !uniform(w, i, 2, &b)) {
        return TK_SIM_FAULT;
    }
    f.minus_a = minus(i, 4);
    f.minus_b = minus(i, 5);
    uint32_t adds = tk_sim_get_pred(w, tk_sim_operand(i, 3));
    if (adds != 0 && adds != ~0u) {
        return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(~adds), "membership",
                           "the threads of a warp give different predicates of scale-d");
    }
    f.adds = adds != 0;
    f.a = tk_sim_tile_of(a, !registers && transposed(w, i, 6));
    f.b = tk_sim_tile_of(b, transposed(w, i, registers ? 6 : 7));
    return tk_sim_wgmma_together(w, i, a, b, f.adds) && tk_sim_wgmma_issue(w, f) ? flow
                                                                                 : TK_SIM_FAULT;
}

static bool immediates(const tk_sim_inst *i) {
    bool ok = true;
    for (unsigned k = 4; k < TK_SIM_OPERANDS; k++) {
        ok = ok && (tk_sim_count_of(i, k) == 0 || tk_sim_operand(i, k)->kind == TK_SIM_ARG_CONST);
    }
    return ok;
}

static bool all_registers(const tk_sim_inst *i, unsigned operand) {
    bool ok = true;
    for (unsigned k = 0; k < tk_sim_count_of(i, operand); k++) {
        ok = ok && tk_sim_operand(i, operand)[k].kind == TK_SIM_ARG_REG;
    }
    return ok;
}

tk_sim_exec *tk_sim_bind_wgmma(const tk_sim_inst *i) {
    unsigned n = i->number, a = tk_sim_count_of(i, 1);
    bool whole = tk_sim_types[i->type[1]].kind != 'f';
    bool shape = n % 8 == 0 && n >= 8 && n <= 256 && (!whole || n % 16 == 0 || n <= 24);
    bool fits = tk_sim_count_of(i, 0) == (i->type[0] == TK_SIM_F16 ? n / 4 : n / 2) &&
                (a == 4 || a == 1) && all_registers(i, 0) && all_registers(i, 1);
    return shape && fits && immediates(i) ? run_wgmma : NULL;
}

static tk_sim_flow together(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint64_t x) {
    tk_sim_flow flow;
    return !tk_sim_whole_warp(w, i, mask, &flow) || tk_sim_wgmma_together(w, i, x, 0, 0)
               ? flow
               : TK_SIM_FAULT;
}

static tk_sim_flow run_fence(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow = together(w, i, mask, 0);
    if (flow == TK_SIM_JOINED) {
        tk_sim_wgmma_fence(w);
    }
    return flow;
}
TK_SIM_BIND_ONE(wgmma_fence, run_fence)

static tk_sim_flow run_commit(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow = together(w, i, mask, 0);
    if (flow == TK_SIM_JOINED) {
        tk_sim_wgmma_commit(w);
    }
    return flow;
}
TK_SIM_BIND_ONE(wgmma_commit, run_commit)

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t most = (uint32_t)tk_sim_get(w, &i->arg[0])[0];
    tk_sim_flow flow = together(w, i, mask, most);
    if (flow == TK_SIM_JOINED) {
        tk_sim_wgmma_wait(w, most);
    }
    return flow;
}
TK_SIM_BIND_ONE(wgmma_wait, run_wait)
