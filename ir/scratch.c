// SPDX-License-Identifier: Apache-2.0
// How ops work across threads. See scratch.h.
#include "ir/scratch.h"
#include "ir/hold.h"
#include "ir/matrix.h"
#include "ir/move.h"
#include "ir/out.h"

#include <string.h>

typedef struct planner {
    tk_arena *a; // NULL: the parts are not asked for
    const tk_func *f;
    const tk_op *op;
    tk_scratch s;
} planner;

static const tk_type *opnd_type(const planner *p, uint32_t i) {
    return tk_value_type(p->f, p->op->opnd[i]);
}

// ---- Parts --------------------------------------------------------------------------------------

static void parts(planner *p, uint32_t n) {
    p->s.work = TK_WORK_SHARED;
    p->s.part = p->a ? TK_NEW_ARRAY(p->a, uint64_t, n) : NULL;
}

// A part of n elements, right behind what is there.
static void part(planner *p, int64_t n, tk_dtype t) {
    if (p->s.part) {
        p->s.part[p->s.nparts] = p->s.bytes;
    }
    p->s.nparts++;
    p->s.bytes += (uint64_t)n * tk_dtype_size(t);
}

static void align(planner *p) {
    const uint64_t mask = TK_SCRATCH_ALIGN - 1;
    p->s.bytes = (p->s.bytes + mask) & ~mask;
}

static void part_of(planner *p, int64_t n, tk_dtype t) {
    align(p);
    part(p, n, t);
}

static void one_tile(planner *p, const tk_type *t) {
    parts(p, 1);
    part(p, tk_type_elems(t), t->dtype);
}

// ---- Moves --------------------------------------------------------------------------------------

// False where the op is no linear map.
static bool move(planner *p) {
    tk_moving m;
    if (!tk_moving_of(p->f, p->op, &m)) {
        return false;
    }
    p->s.work = m.work;
    if (m.work == TK_WORK_SHARED) {
        parts(p, 1);
        part(p, (int64_t)1 << m.bits, m.dtype);
    }
    return true;
}

static void gather(planner *p) {
    parts(p, 2);
    part(p, tk_type_elems(opnd_type(p, 0)), opnd_type(p, 0)->dtype);
    if (!tk_value_same_layout(p->f, p->op->res[0], p->op->opnd[1])) {
        part_of(p, tk_type_elems(opnd_type(p, 1)), opnd_type(p, 1)->dtype);
    }
}

// ---- Reductions, scans, sorting -----------------------------------------------------------------

tk_reduction tk_reduction_of(const tk_func *f, const tk_op *op) {
    tk_layout l = *tk_value_layout(f, op->opnd[0]);
    if (op->at.axis == TK_AXIS_ALL) {
        const int64_t n = (int64_t)1 << tk_layout_bits(&l);
        l = tk_layout_reshape(&l, 1, &n);
    }
    const unsigned axis = op->at.axis == TK_AXIS_ALL ? 0 : (unsigned)op->at.axis;
    const uint32_t extent = 1U << l.log_dim[axis];
    tk_reduction r = {.out = tk_layout_slice(&l, axis)};
    r.plain = tk_layout_parts(&l, (extent - 1) << tk_layout_shift(&l, axis), &r.lanes, &r.warps);
    return r;
}

static void reduce(planner *p) {
    const tk_type *t = opnd_type(p, 0);
    const tk_reduction r = tk_reduction_of(p->f, p->op);
    if (!r.plain) {
        one_tile(p, t);
        return;
    }
    if (!r.warps) {
        p->s.work = r.lanes ? TK_WORK_LANES : TK_WORK_THREAD;
        return;
    }
    const int64_t n = ((int64_t)1 << tk_layout_bits(&r.out)) << __builtin_popcount(r.warps);
    parts(p, 2);
    part(p, n, t->dtype);
    if (p->op->code == TK_OP_ARG_REDUCE) {
        part_of(p, n, TK_I32);
    }
}

// Each operand `times` times.
static void operands(planner *p, int64_t times) {
    parts(p, p->op->nres);
    for (uint32_t i = 0; i < p->op->nres; i++) { // as many as operands that are tiles
        part_of(p, times * tk_type_elems(opnd_type(p, i)), opnd_type(p, i)->dtype);
    }
}

static bool one_layout(const tk_func *f, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!tk_value_same_layout(f, op->opnd[i], op->res[0]) ||
            !tk_value_same_layout(f, op->res[i], op->res[0])) {
            return false;
        }
    }
    return true;
}

// Enters the bits of one kind that move along the line. False where one does not fit.
static bool scan_bits(tk_scan *s, uint32_t *found, tk_scan_kind kind, const uint32_t *basis,
                      unsigned n, unsigned shift) {
    const uint32_t axis = ((1U << s->log) - 1) << shift;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t b = basis[i];
        if ((b & axis) == 0) {
            continue;
        }
        if ((b & (b - 1)) || (*found & b)) {
            return false;
        }
        *found |= b;
        s->bit[(unsigned)__builtin_ctz(b) - shift] = (tk_scan_bit){kind, (uint8_t)i};
    }
    return true;
}

// The registers' totals once all bits below the first of a warp are done. False where bits of warps
// are apart.
static bool scan_totals(tk_scan *s, unsigned regs) {
    unsigned below = 0, last = 0;
    for (unsigned k = 0; k < s->log; k++) {
        below += s->bit[k].kind == TK_SCAN_REG && !s->totals;
        if (s->bit[k].kind != TK_SCAN_WARP) {
            continue;
        }
        if (s->totals && last + 1 != k) {
            return false;
        }
        s->totals = 1U << (regs - below);
        last = k;
    }
    return true;
}

tk_scan tk_scan_of(const tk_func *f, const tk_op *op) {
    const tk_layout *l = tk_value_layout(f, op->res[0]);
    const unsigned axis = (unsigned)op->at.axis, shift = tk_layout_shift(l, axis);
    tk_scan s = {.log = l->log_dim[axis]};
    uint32_t found = 0;
    s.plain = one_layout(f, op) && scan_bits(&s, &found, TK_SCAN_REG, l->reg, l->regs, shift) &&
              scan_bits(&s, &found, TK_SCAN_LANE, l->lane, TK_LANE_BITS, shift) &&
              scan_bits(&s, &found, TK_SCAN_WARP, l->warp, l->warps, shift) &&
              found == ((1U << s.log) - 1) << shift && scan_totals(&s, l->regs);
    return s;
}

// What stands above the warps' bits; false where these are out of order or a lane's is.
static bool fold_warps(tk_fold *r, const tk_scan *s) {
    unsigned last = 0;
    r->values = 1;
    for (unsigned k = 0; k < s->log; k++) {
        const tk_scan_bit b = s->bit[k];
        if (b.kind == TK_SCAN_WARP) {
            if (r->warps && (last + 1 != k || r->warps >> b.i)) {
                return false;
            }
            r->warps |= 1U << b.i;
            last = k;
        } else if (r->warps && b.kind == TK_SCAN_LANE) {
            return false;
        } else if (r->warps) {
            r->values *= 2;
        }
    }
    return true;
}

tk_fold tk_fold_of(const tk_func *f, const tk_op *op) {
    enum { MOST_REG_BITS = 6 }; // the function is there for each pair of registers
    tk_layout l = *tk_value_layout(f, op->opnd[0]);
    bool same = true;
    for (uint32_t i = 1; i < op->nres; i++) {
        same = same && tk_value_same_layout(f, op->opnd[i], op->opnd[0]);
    }
    if (op->at.axis == TK_AXIS_ALL) {
        const int64_t n = (int64_t)1 << tk_layout_bits(&l);
        l = tk_layout_reshape(&l, 1, &n);
    }
    const unsigned axis = op->at.axis == TK_AXIS_ALL ? 0 : (unsigned)op->at.axis;
    const unsigned shift = tk_layout_shift(&l, axis);
    tk_fold r = {.log = l.log_dim[axis], .out = tk_layout_slice(&l, axis)};
    tk_scan s = {.log = r.log};
    uint32_t found = 0;
    r.plain = same && l.regs <= MOST_REG_BITS &&
              scan_bits(&s, &found, TK_SCAN_REG, l.reg, l.regs, shift) &&
              scan_bits(&s, &found, TK_SCAN_LANE, l.lane, TK_LANE_BITS, shift) &&
              scan_bits(&s, &found, TK_SCAN_WARP, l.warp, l.warps, shift) &&
              found == ((1U << s.log) - 1) << shift && fold_warps(&r, &s);
    memcpy(r.bit, s.bit, sizeof r.bit);
    return r;
}

static void fold(planner *p) {
    const tk_fold s = tk_fold_of(p->f, p->op);
    if (!s.plain) {
        operands(p, 1);
        return;
    }
    for (unsigned k = 0; k < s.log; k++) {
        p->s.work = s.bit[k].kind == TK_SCAN_LANE ? TK_WORK_LANES : p->s.work;
    }
    if (s.warps) {
        const int64_t n = (int64_t)s.values
                          << (tk_layout_bits(&s.out) + (unsigned)__builtin_popcount(s.warps));
        parts(p, p->op->nres);
        for (uint32_t i = 0; i < p->op->nres; i++) {
            part_of(p, n, opnd_type(p, i)->dtype);
        }
    }
}

static void scan(planner *p) {
    const tk_scan s = tk_scan_of(p->f, p->op);
    if (!s.plain) {
        operands(p, 2);
        return;
    }
    for (unsigned k = 0; k < s.log; k++) {
        p->s.work = s.bit[k].kind == TK_SCAN_LANE ? TK_WORK_LANES : p->s.work;
    }
    if (s.totals) {
        const int64_t n = (int64_t)s.totals
                          << (TK_LANE_BITS + tk_value_layout(p->f, p->op->opnd[0])->warps);
        parts(p, p->op->nres);
        for (uint32_t i = 0; i < p->op->nres; i++) {
            part_of(p, n, opnd_type(p, i)->dtype);
        }
    }
}

static void sort(planner *p) {
    const tk_type *t = opnd_type(p, 0);
    const int64_t n = tk_type_elems(t);
    parts(p, 3);
    part(p, n, t->dtype);
    part_of(p, n, tk_sort_key(t->dtype));
    part_of(p, n, TK_I32);
}

tk_dtype tk_sort_key(tk_dtype t) { return tk_dtype_bits(t) > 32 ? TK_U64 : TK_U32; }

// ---- Products -----------------------------------------------------------------------------------

tk_product tk_product_of(const tk_func *f, const tk_op *op) {
    const bool scaled = op->code == TK_OP_DOT_SCALED;
    const uint32_t third = scaled ? 4 : 2;
    const tk_type *t = tk_value_type(f, op->res[0]), *a = tk_value_type(f, op->opnd[0]);
    return (tk_product){.b = scaled ? 2 : 1,
                        .a_scale = scaled ? 1 : 0,
                        .b_scale = scaled ? 3 : 0,
                        .acc = op->nopnd > third ? third : 0,
                        .type = scaled ? TK_F64 : t->dtype,
                        .k = a->dim[a->rank - 1],
                        .batch = t->rank > 2 ? t->dim[0] : 1,
                        .rows = t->dim[t->rank - 2],
                        .columns = t->dim[t->rank - 1]};
}

// Each operand's block begins where a swizzle does.
static void matrix(planner *p) {
    const tk_matrix_plan x = tk_matrix_plan_of(p->f, p->op);
    const uint64_t a = tk_operand_bytes(&x.a), b = tk_operand_bytes(&x.b);
    p->s.block = x.block;
    p->s.work = TK_WORK_LANES;
    if (a + b == 0) {
        return;
    }
    parts(p, 2);
    part(p, (int64_t)a, TK_U8);
    p->s.bytes = (p->s.bytes + TK_PLACED_ALIGN - 1) / TK_PLACED_ALIGN * TK_PLACED_ALIGN;
    part(p, (int64_t)b, TK_U8);
}

static void dot(planner *p) {
    enum { BUDGET = 48 * 1024 }; // of the operands' blocks
    const tk_product d = tk_product_of(p->f, p->op);
    const int64_t of_k = d.batch * (d.rows + d.columns) * (int64_t)tk_dtype_size(d.type);
    int64_t block = d.k;
    while (block > 1 && of_k * block > BUDGET) {
        block /= 2;
    }
    p->s.block = (uint32_t)block;
    parts(p, 4);
    part(p, d.batch * block * d.rows, d.type);
    part_of(p, d.batch * block * d.columns, d.type);
    for (int i = 0; i < 2 && d.a_scale; i++) {
        const tk_type *t = opnd_type(p, i ? d.b_scale : d.a_scale);
        part_of(p, tk_type_elems(t), t->dtype);
    }
    if (d.acc && !tk_value_same_layout(p->f, p->op->opnd[d.acc], p->op->res[0])) {
        const tk_type *t = tk_value_type(p->f, p->op->res[0]);
        const uint64_t acc = (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
        p->s.bytes = acc > p->s.bytes ? acc : p->s.bytes;
    }
}

// ---- Memory -------------------------------------------------------------------------------------

bool tk_op_in_combine(const tk_op *op) {
    for (const tk_op *o = op->in ? op->in->owner : NULL; o; o = o->in ? o->in->owner : NULL) {
        if (o->code == TK_OP_REDUCE_FN || o->code == TK_OP_SCAN_FN) {
            return true;
        }
    }
    return false;
}

uint64_t tk_staged_bytes(const tk_type *t, int64_t rows) {
    return (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype) +
           (uint64_t)(rows + 1) * TK_SCRATCH_ALIGN;
}

static void staged(planner *p, const tk_type *t) {
    parts(p, 1);
    if (p->s.part) {
        p->s.part[0] = 0;
    }
    p->s.nparts = 1;
    p->s.bytes = tk_staged_bytes(t, p->op->at.staged);
}

// By tensor copies: as many pieces of the tile as are there at once.
static void store(planner *p) {
    const tk_attrs *at = &p->op->at;
    if (at->staged) {
        staged(p, opnd_type(p, p->op->nopnd - (at->masked ? 2 : 1)));
    } else if (tk_is_copied_out(p->op)) {
        const tk_type *t = opnd_type(p, p->op->nopnd - 1);
        parts(p, 1);
        part(p, tk_type_elems(t) / at->pieces * at->slots, t->dtype);
    }
}

// One thread reads a scalar that may be written, so that all see the same.
static void load(planner *p) {
    const tk_type *t = tk_value_type(p->f, p->op->res[0]);
    if (p->op->at.staged) {
        staged(p, t);
        return;
    }
    if (p->op->at.hold) {
        parts(p, 1);
        if (p->s.part) {
            p->s.part[0] = 0;
        }
        p->s.nparts = 1;
        p->s.bytes = (uint64_t)p->op->at.hold * tk_held_bytes(p->f, p->op);
        return;
    }
    if (t->rank == 0 && opnd_type(p, 0)->access != TK_IN) {
        one_tile(p, t);
    }
}

// One thread changes an element; where others hold copies of it, it passes on what was there.
static void atomic(planner *p) {
    const tk_layout *l = tk_value_layout(p->f, p->op->res[0]);
    uint32_t lanes = 0, warps = 0;
    if (l) {
        tk_layout_copies(l, &lanes, &warps);
    }
    if (!l || lanes || warps) {
        one_tile(p, tk_value_type(p->f, p->op->res[0]));
    }
}

// ---- Rings --------------------------------------------------------------------------------------

uint64_t tk_ring_slot_bytes(const tk_type *t) {
    const uint64_t bytes = (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
    return (bytes + TK_PLACED_ALIGN - 1) / TK_PLACED_ALIGN * TK_PLACED_ALIGN;
}

static void ring(planner *p) {
    parts(p, 1);
    if (p->s.part) {
        p->s.part[0] = 0;
    }
    p->s.nparts = 1;
    p->s.bytes = (uint64_t)p->op->at.slots * tk_ring_slot_bytes(tk_value_type(p->f, p->op->res[0]));
}

static bool uses_ring(const tk_op *op, tk_vid ring) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (op->opnd[i] == ring) {
            return true;
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            if (uses_ring(x, ring)) {
                return true;
            }
        }
    }
    return false;
}

const tk_op *tk_ring_last(const tk_op *ring) {
    const tk_op *last = ring;
    for (const tk_op *op = ring->next; op; op = op->next) {
        last = uses_ring(op, ring->res[0]) ? op : last;
    }
    return last;
}

// ---- The op -------------------------------------------------------------------------------------

static void plan(planner *p) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (p->op->code) {
#include "ir/ops.def"
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
    case TK_OP_PERMUTE:
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_PHILOX:
    case TK_OP_DIM:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
    case TK_OP_FETCH:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
    case TK_OP_WAIT:
    case TK_OP_BARRIER:
    case TK_OP_CALL:
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
    case TK_OP_COUNT:
        return;
    case TK_OP_PRINT: // one thread takes room for the record and tells all where
        parts(p, 1);
        part(p, 1, TK_U64);
        return;
    case TK_OP_RING:
        ring(p);
        return;
    case TK_OP_CONVERT:
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
        if (!move(p)) {
            one_tile(p, opnd_type(p, 0));
        }
        return;
    case TK_OP_GATHER:
        gather(p);
        return;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
        reduce(p);
        return;
    case TK_OP_REDUCE_FN:
        fold(p);
        return;
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
        scan(p);
        return;
    case TK_OP_SORT:
    case TK_OP_TOPK:
        sort(p);
        return;
    case TK_OP_HISTOGRAM:
        one_tile(p, tk_value_type(p->f, p->op->res[0]));
        return;
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        if (p->op->at.unit != TK_UNIT_FMA) {
            matrix(p);
        } else {
            dot(p);
        }
        return;
    case TK_OP_LOAD:
        load(p);
        return;
    case TK_OP_STORE:
        store(p);
        return;
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        atomic(p);
        return;
    }
}

static tk_scratch plan_of(tk_arena *a, const tk_func *f, const tk_op *op) {
    planner p = {.a = a, .f = f, .op = op, .s = {.align = tk_scratch_align(op)}};
    if (!tk_op_in_combine(op)) {
        plan(&p);
        align(&p);
    }
    return p.s;
}

uint32_t tk_scratch_align(const tk_op *op) {
    const bool placed = op->code == TK_OP_RING ||
                        (op->code == TK_OP_DOT && op->at.unit != TK_UNIT_FMA) ||
                        tk_is_copied_out(op);
    return placed ? (uint32_t)TK_PLACED_ALIGN : (uint32_t)TK_SCRATCH_ALIGN;
}

tk_scratch tk_scratch_of(tk_arena *a, const tk_func *f, const tk_op *op) {
    return plan_of(a, f, op);
}

uint64_t tk_scratch_bytes(const tk_func *f, const tk_op *op) { return plan_of(NULL, f, op).bytes; }
