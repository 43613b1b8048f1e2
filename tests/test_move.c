// SPDX-License-Identifier: Apache-2.0
// Moves as linear maps, against coordinates: every element of every thread, for random layouts,
// within warps and through shared memory.
#include "ir/move.h"
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BITS = 10, MOST = 1 << (MOST_BITS + 1), LANES = 32, WARPS = 4 };

// ---- Random layouts -----------------------------------------------------------------------------

static uint64_t state = 1;

static unsigned pick(unsigned n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

// Registers take what lanes and warps leave; some bases are sums of others; some lanes and warps
// hold copies.
static tk_layout random_layout(unsigned rank, const int64_t *dim, unsigned warps, bool mixed) {
    const uint8_t order[] = {1, 0};
    tk_layout l = tk_layout_blocked(rank, dim, rank == 1 ? order + 1 : order, 0, warps), r = l;
    uint32_t bit[32];
    const unsigned bits = tk_layout_bits(&l);
    for (unsigned i = 0; i < bits; i++) {
        const unsigned k = pick(i + 1);
        bit[i] = bit[k];
        bit[k] = 1U << i;
    }
    for (unsigned i = 0; mixed && bits > 1 && i < 3; i++) {
        const unsigned a = pick(bits), b = pick(bits);
        bit[a] ^= a != b ? bit[b] : 0;
    }
    unsigned n = 0;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        r.lane[i] = n < bits && pick(8) ? bit[n++] : 0;
    }
    for (unsigned i = 0; i < warps; i++) {
        r.warp[i] = n < bits && pick(8) ? bit[n++] : 0;
    }
    r.regs = 0;
    memset(r.reg, 0, sizeof r.reg);
    while (n < bits) {
        r.reg[r.regs++] = bit[n++];
    }
    const char *why = "";
    cr_assert(tk_layout_ok(&r, &why), "%s", why);
    return r;
}

// A layout near l: some bits of registers and lanes change places.
static tk_layout near(tk_layout l) {
    for (unsigned i = 0; i < 1 + pick(3); i++) {
        uint32_t *a = pick(2) && l.regs ? &l.reg[pick(l.regs)] : &l.lane[pick(TK_LANE_BITS)];
        uint32_t *b = pick(2) && l.regs ? &l.reg[pick(l.regs)] : &l.lane[pick(TK_LANE_BITS)];
        if (*a && *b) { // copies stay with the lanes
            const uint32_t x = *a;
            *a = *b;
            *b = x;
        }
    }
    return l;
}

// ---- One op -------------------------------------------------------------------------------------

typedef struct trial {
    tk_func *f;
    tk_op *op;
    tk_moving m;
} trial;

static const tk_type *tile(tk_arena *a, tk_dtype t, unsigned rank, const int64_t *dim) {
    tk_type *x = TK_NEW(a, tk_type);
    *x = (tk_type){.kind = TK_T_VALUE, .dtype = t, .rank = (uint8_t)rank};
    memcpy(x->dim, dim, rank * sizeof *dim);
    return x;
}

static const int64_t *dims(const trial *t, tk_vid v) { return tk_value_type(t->f, v)->dim; }

// Which element of which operand belongs at `e` of result i: by coordinates; operand * MOST +
// element.
static uint32_t wanted(const trial *t, unsigned i, uint32_t e) {
    const tk_op *op = t->op;
    const int64_t *r = dims(t, op->res[i]), *x = dims(t, op->opnd[0]);
    const unsigned axis =
        op->code == TK_OP_FLIP || op->code == TK_OP_SLICE || op->code == TK_OP_CONCAT
            ? (unsigned)op->at.axis
            : 1;
    int64_t c[2] = {e / r[1], e % r[1]}, operand = 0;
    switch ((int)op->code) {
    case TK_OP_FLIP:
        c[axis] = x[axis] - 1 - c[axis];
        break;
    case TK_OP_SLICE:
        c[axis] += op->at.start;
        break;
    case TK_OP_DEINTERLEAVE:
        c[1] = 2 * c[1] + i;
        break;
    case TK_OP_INTERLEAVE:
        operand = c[1] % 2;
        c[1] /= 2;
        break;
    case TK_OP_CONCAT:
        operand = c[axis] >= x[axis];
        c[axis] -= operand ? x[axis] : 0;
        break;
    }
    return (uint32_t)(operand * MOST + c[0] * x[1] + c[1]);
}

// What register r of source `side` holds: operand * MOST + element. Of all sources as one the
// second's registers are behind those of the first.
static uint32_t held(const trial *t, unsigned side, uint32_t r, unsigned lane, unsigned warp) {
    const uint32_t regs = tk_value_layout(t->f, t->op->opnd[side])->regs;
    const uint32_t operand = t->m.joined ? r >> regs : side;
    const tk_layout *l = tk_value_layout(t->f, t->op->opnd[operand]);
    return operand * MOST + tk_layout_eval(l, r & ((1U << regs) - 1), lane, warp);
}

static void check_lanes(const trial *t, unsigned i, unsigned warps) {
    const tk_lane_move *m = &t->m.lanes[i];
    const tk_layout *l = tk_value_layout(t->f, t->op->res[i]);
    for (unsigned warp = 0; warp < 1U << warps; warp++) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            for (uint32_t r = 0; r < 1U << l->regs; r++) {
                const uint32_t q = r ^ tk_lane_move_sum(m->swap, TK_LANE_BITS, lane);
                const uint32_t from = tk_lane_move_sum(m->lane, TK_LANE_BITS, lane) ^
                                      tk_lane_move_sum(m->warp_lane, warps, warp) ^
                                      tk_lane_move_sum(m->reg_lane, l->regs, q) ^ m->at_lane;
                const uint32_t reg = tk_lane_move_sum(m->reg, l->regs, q) ^ m->at_reg ^
                                     tk_lane_move_sum(m->give, TK_LANE_BITS, from) ^
                                     tk_lane_move_sum(m->warp_give, warps, warp);
                const uint32_t want = wanted(t, i, tk_layout_eval(l, r, lane, warp));
                const uint32_t got = held(t, 0, reg, from, warp);
                cr_assert_eq(got, want, "%s: r%u lane %u warp %u: %x for %x",
                             tk_op_info(t->op->code)->name, r, lane, warp, got, want);
            }
        }
    }
    cr_assert(!m->own || tk_lane_move_sum(m->lane, TK_LANE_BITS, 21) == 21);
}

// ---- Shared memory ------------------------------------------------------------------------------

static uint32_t memory[MOST];

// Each register of each thread, with its place as the code generator finds it.
static void each_place(const trial *t, const tk_side *s, unsigned warps, bool writes,
                       unsigned side) {
    double cost;
    const tk_swizzle z = tk_swizzle_of(&t->m, &cost);
    const tk_run run = tk_run_of(&s->l, t->m.dtype);
    const uint32_t n = 1U << run.n, flip = s->at & (n - 1);
    for (unsigned thread = 0; thread < (unsigned)LANES << warps; thread++) {
        const uint32_t part = tk_layout_eval(&s->l, 0, thread % LANES, thread / LANES);
        for (uint32_t r = 0; r < 1U << s->l.regs; r++) {
            if (r & run.mask) {
                continue;
            }
            const uint32_t number = (tk_layout_eval(&s->l, r, 0, 0) ^ s->at) >> run.n << run.n;
            const uint32_t at = tk_swizzle_apply(z, part) ^ tk_swizzle_apply(z, number);
            cr_assert_eq(at % n, 0);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t q = r;
                for (unsigned j = 0; j < run.n; j++) {
                    q |= ((i ^ flip) >> j & 1) << run.bit[j];
                }
                if (writes) {
                    memory[at + i] = held(t, side, q, thread % LANES, thread / LANES);
                } else {
                    const tk_layout *l = tk_value_layout(t->f, t->op->res[side]);
                    const uint32_t e = tk_layout_eval(l, q, thread % LANES, thread / LANES);
                    cr_assert_eq(memory[at + i], wanted(t, side, e));
                }
            }
        }
    }
}

static void check_shared(const trial *t, unsigned warps) {
    memset(memory, 0xff, sizeof memory);
    if (t->m.joined) {
        each_place(t, &t->m.all, warps, true, 0);
    }
    for (unsigned i = 0; !t->m.joined && i < t->m.nsrc; i++) {
        each_place(t, &t->m.src[i], warps, true, i);
    }
    for (unsigned i = 0; i < t->m.ndst; i++) {
        each_place(t, &t->m.dst[i], warps, false, i);
    }
}

// ---- Trials -------------------------------------------------------------------------------------

static void type_and_layout(trial *t, tk_arena *a, tk_vid v, tk_layout l) {
    tk_value_lay(t->f, v, tk_layout_new(a, l));
}

static trial make(ir_env *e, tk_opcode code, unsigned warps) {
    tk_arena *a = &e->arena;
    tk_module *m = tk_module_new(a, &e->sources);
    trial t = {.f = tk_func_new(m, "k", true)};
    static const tk_dtype types[] = {TK_F32, TK_BF16, TK_BOOL, TK_F64};
    const tk_dtype dtype = types[pick(4)];
    int64_t x[2] = {(int64_t)1 << pick(5), (int64_t)2 << pick(5)}, r[2] = {x[0], x[1]};
    const unsigned axis = code == TK_OP_INTERLEAVE || code == TK_OP_DEINTERLEAVE ? 1 : pick(2);
    const bool two = code == TK_OP_INTERLEAVE || code == TK_OP_CONCAT;
    int64_t start = 0;
    if (code == TK_OP_SLICE) {
        r[axis] = (int64_t)1 << pick((unsigned)__builtin_ctzll((uint64_t)x[axis]) + 1);
        start = r[axis] * pick((unsigned)(x[axis] / r[axis]));
    }
    r[axis] = two ? 2 * x[axis] : code == TK_OP_DEINTERLEAVE ? x[1] / 2 : r[axis];
    const tk_type *of[2] = {tile(a, dtype, 2, x), tile(a, dtype, 2, r)}, *res[2] = {of[1], of[1]};
    tk_vid v[2] = {tk_func_param(t.f, of[0], "x"), tk_func_param(t.f, of[0], "y")};
    t.op = tk_op_new(t.f, code, 0, two ? 2 : 1, v, code == TK_OP_DEINTERLEAVE ? 2 : 1, res, 0);
    t.op->at.axis = (int)axis;
    t.op->at.start = start;
    tk_op_append(t.f->body, t.op);
    const tk_layout l = random_layout(2, x, warps, pick(2));
    type_and_layout(&t, a, v[0], l);
    type_and_layout(&t, a, v[1], pick(3) ? l : near(l));
    for (uint32_t i = 0; i < t.op->nres; i++) {
        const bool same = r[0] == x[0] && r[1] == x[1] && pick(4);
        type_and_layout(&t, a, t.op->res[i], same ? near(l) : random_layout(2, r, warps, pick(2)));
    }
    cr_assert(tk_moving_of(t.f, t.op, &t.m));
    return t;
}

static bool any(const uint32_t *v) { return v[0] | v[1] | v[2] | v[3] | v[4]; }

Test(move, by_coordinates) {
    static const tk_opcode code[] = {TK_OP_CONVERT,     TK_OP_CONVERT, TK_OP_FLIP,
                                     TK_OP_SLICE,       TK_OP_CONCAT,  TK_OP_INTERLEAVE,
                                     TK_OP_DEINTERLEAVE};
    unsigned count[3] = {0}, gave = 0, swapped = 0;
    for (unsigned n = 0; n < 6000; n++) {
        ir_env *e = ir_open();
        const unsigned warps = pick(3);
        const trial t = make(e, code[n % 7], warps);
        count[t.m.work]++;
        for (unsigned i = 0; i < t.m.ndst && (t.m.work != TK_WORK_SHARED || t.m.other > 0); i++) {
            check_lanes(&t, i, warps);
            gave += any(t.m.lanes[i].give);
            swapped += any(t.m.lanes[i].swap);
        }
        check_shared(&t, warps);
        ir_close(e);
    }
    cr_assert(count[TK_WORK_THREAD] > 100 && count[TK_WORK_LANES] > 200 &&
                  count[TK_WORK_SHARED] > 1000 && gave > 100 && swapped > 50,
              "%u %u %u, %u %u", count[0], count[1], count[2], gave, swapped);
}

// ---- Worked examples ----------------------------------------------------------------------------

// 32 x 32 in one warp, a row a register; a column a register: each lane exchanges with all others.
Test(move, a_transpose_within_a_warp) {
    const int64_t dim[] = {32, 32};
    const uint8_t rows[] = {1, 0}, columns[] = {0, 1};
    const tk_layout a = tk_layout_blocked(2, dim, rows, 0, 0),
                    b = tk_layout_blocked(2, dim, columns, 0, 0);
    const tk_moving m = tk_moving_between(&a, &b, TK_F32);
    cr_assert(m.other > 0 || m.work == TK_WORK_LANES);
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        cr_assert_eq(m.lanes[0].give[i], 1U << i);
        cr_assert_eq(m.lanes[0].swap[i], 1U << i);
    }
    cr_assert(m.lanes[0].own);
}

// Two registers against one bit of the lane: half of the registers stay.
Test(move, one_bit_changes_places) {
    const int64_t dim[] = {256};
    const uint8_t order[] = {0};
    const tk_layout a = tk_layout_blocked(1, dim, order, 2, 1);
    tk_layout b = a;
    b.reg[0] = a.lane[0];
    b.lane[0] = a.reg[0];
    const tk_moving m = tk_moving_between(&a, &b, TK_F32);
    cr_assert_eq(m.work, TK_WORK_LANES);
    cr_assert_float_eq(m.cost, 2 + 4 * 2 / 4.0, 1e-9); // two shuffles, eight selects
}

Test(move, copies_are_read_where_they_are) {
    const int64_t dim[] = {16};
    const uint8_t order[] = {0};
    const tk_layout a = tk_layout_blocked(1, dim, order, 0, 1); // 2 lanes have each element
    const tk_moving m = tk_moving_between(&a, &a, TK_F32);
    cr_assert_eq(m.work, TK_WORK_THREAD);
}

// Rows of 64 floats, 4 a thread: written as vectors, read as vectors, no bank twice.
Test(move, transposes_are_free_of_conflicts) {
    const int64_t dim[] = {64, 64};
    const uint8_t rows[] = {1, 0}, columns[] = {0, 1};
    const tk_layout a = tk_layout_blocked(2, dim, rows, 2, 2),
                    b = tk_layout_blocked(2, dim, columns, 2, 2);
    const tk_moving m = tk_moving_between(&a, &b, TK_F32);
    double cost;
    (void)tk_swizzle_of(&m, &cost);
    cr_assert_eq(m.work, TK_WORK_SHARED);
    cr_assert_eq(tk_run_of(&a, TK_F32).n, 2);
    cr_assert_eq(tk_run_of(&b, TK_F32).n, 0);
    cr_assert(cost <= 8 * 4 + 32 * 2, "%g", cost);
}
