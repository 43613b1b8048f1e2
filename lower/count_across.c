// SPDX-License-Identifier: Apache-2.0
// What ops that work across threads do with shared memory: the accesses of ptx/llvm_exchange.c,
// llvm_reduce.c and llvm_scan_plain.c, warp by warp. See count.h.
//
// The code generator joins accesses of a thread to elements that stand side by side, up to 16
// bytes; so do the counts.
#include "lower/count.h"

#include "ir/matrix.h"
#include "ir/move.h"

enum { LANES = 32, MOST_BYTES = 16 };

typedef struct across {
    tk_arena *scratch;
    const tk_func *f;
    const tk_op *op;
    unsigned warps;
    uint64_t base; // of the op's bytes
    tk_across_count out;
} across;

// ---- A tile, from or to the threads of a layout -------------------------------------------------

typedef struct side {
    const tk_layout *l;
    uint32_t at; // constant of a move's side
    tk_swizzle swizzle;
    uint64_t base;
    uint32_t bytes; // of an element
    tk_run run;
    uint32_t from, to; // warps
} side;

// Which of the threads take part: all that read, one that holds a copy of those that write.
typedef struct owners {
    uint32_t lanes, warps; // bits that must be 0
} owners;

static uint64_t address(const side *s, uint32_t reg, uint32_t lane, uint32_t warp) {
    const uint32_t thread = tk_swizzle_apply(s->swizzle, tk_layout_eval(s->l, 0, lane, warp));
    const uint32_t number = (tk_layout_eval(s->l, reg, 0, 0) ^ s->at) >> s->run.n << s->run.n;
    return s->base + (uint64_t)(thread ^ tk_swizzle_apply(s->swizzle, number)) * s->bytes;
}

static void count_side(const side *s, owners o, bool load, tk_requests *to) {
    for (uint32_t w = s->from; w < s->to; w++) {
        for (uint32_t r = 0; r < 1U << s->l->regs && !(w & o.warps); r++) {
            uint64_t at[LANES];
            uint32_t mask = 0;
            for (uint32_t lane = 0; lane < LANES; lane++) {
                mask |= (uint32_t) !(lane & o.lanes) << lane;
                at[lane] = address(s, r, lane, w);
            }
            if (!(r & s->run.mask)) {
                tk_count_wavefronts(to, mask, at, s->bytes << s->run.n, load);
            }
        }
    }
}

static side side_of(const across *a, const tk_layout *l, tk_dtype t, uint64_t base) {
    return (side){.l = l,
                  .base = a->base + base,
                  .bytes = (uint32_t)tk_dtype_size(t),
                  .run = tk_run_of(l, t),
                  .to = a->warps};
}

static owners copies_of(const tk_layout *l) {
    owners o;
    tk_layout_copies(l, &o.lanes, &o.warps);
    return o;
}

static void spill(across *a, const tk_layout *l, tk_dtype t, uint64_t base) {
    const side s = side_of(a, l, t, base);
    count_side(&s, copies_of(l), false, &a->out.written);
}

static void fetch(across *a, const tk_layout *l, tk_dtype t, uint64_t base) {
    const side s = side_of(a, l, t, base);
    count_side(&s, (owners){0, 0}, true, &a->out.read);
}

// ---- Moves --------------------------------------------------------------------------------------

static void move(across *a, const tk_moving *m) {
    double cost;
    const tk_swizzle swizzle = tk_swizzle_of(m, &cost);
    const unsigned sources = m->joined ? 1 : m->nsrc;
    for (unsigned i = 0; i < sources + m->ndst; i++) {
        const tk_side *x = i >= sources ? &m->dst[i - sources] : m->joined ? &m->all : &m->src[i];
        side s = side_of(a, &x->l, m->dtype, 0);
        s.at = x->at;
        s.swizzle = swizzle;
        if (i < sources) {
            count_side(&s, copies_of(&x->l), false, &a->out.written);
        } else {
            count_side(&s, (owners){0, 0}, true, &a->out.read);
        }
    }
    a->out.barriers = 1;
}

// ---- Reductions ---------------------------------------------------------------------------------

// The bits of the mask in `warp`, moved together.
static uint32_t gathered(uint32_t warp, uint32_t mask) {
    uint32_t sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < TK_MAX_WARP_BITS; i++) {
        if (mask >> i & 1) {
            sum |= (warp >> i & 1) << n++;
        }
    }
    return sum;
}

// Where the warps' values of one element stand side by side they are read together.
static void read_parts(across *a, const side *s, uint32_t count, uint32_t n) {
    uint32_t together = 1;
    while (n == 1 && together < count && together * s->bytes < MOST_BYTES) {
        together *= 2;
    }
    side part = *s;
    for (uint32_t w = 0; w < count; w += together) {
        part.base = s->base + (uint64_t)w * n * s->bytes;
        part.bytes = s->bytes * together;
        count_side(&part, (owners){0, 0}, true, &a->out.read);
    }
}

static void warps_of_reduction(across *a, const tk_reduction *r, tk_dtype t, uint64_t base) {
    const uint32_t n = 1U << tk_layout_bits(&r->out), bits = r->warps;
    owners o = copies_of(&r->out);
    o.warps &= ~bits;
    side s = side_of(a, &r->out, t, base);
    read_parts(a, &s, 1U << __builtin_popcount(bits), n);
    const uint64_t start = s.base;
    for (uint32_t w = 0; w < a->warps; w++) {
        s.from = w;
        s.to = w + 1;
        s.base = start + (uint64_t)gathered(w, bits) * n * s.bytes;
        count_side(&s, o, false, &a->out.written);
    }
}

static void reduce(across *a, const tk_scratch *s) {
    const tk_reduction r = tk_reduction_of(a->f, a->op);
    const tk_dtype t = tk_value_type(a->f, a->op->opnd[0])->dtype;
    const bool arg = a->op->code == TK_OP_ARG_REDUCE;
    if (!r.plain) {
        a->out.known = false;
        return;
    }
    const uint32_t values = 1U << r.out.regs;
    const uint32_t words = (tk_dtype_bits(t) > 32 ? 2U : 1U) + (arg ? 1U : 0U);
    a->out.shuffles = (uint32_t)__builtin_popcount(r.lanes) * values * words;
    if (r.warps) {
        warps_of_reduction(a, &r, t, s->part[0]);
        if (arg) {
            warps_of_reduction(a, &r, TK_I32, s->part[1]);
        }
        a->out.barriers = 1;
    }
}

// ---- Scans --------------------------------------------------------------------------------------

// A warp's totals, side by side.
static void row(uint64_t base, tk_dtype t, tk_requests *to) {
    const uint32_t bytes = (uint32_t)tk_dtype_size(t);
    uint64_t at[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) {
        at[lane] = base + (uint64_t)lane * bytes;
    }
    tk_count_wavefronts(to, UINT32_MAX, at, bytes, false); // none reads what another does
}

// Whether a step behind bit k of the line uses the total of register r. What comes last in the line
// is the prefix of nothing.
static bool total_is_used(const across *a, const tk_scan *s, unsigned k, uint32_t r) {
    for (; k < s->log; k++) {
        const bool high = r >> s->bit[k].i & 1;
        if (s->bit[k].kind == TK_SCAN_LANE ||
            (s->bit[k].kind == TK_SCAN_REG && high == a->op->at.reverse)) {
            return true;
        }
    }
    return false;
}

// Before bit `from` the bits `done` of registers were; `n` warps of a line.
static void warps_of_scan(across *a, const tk_scan *s, const tk_scratch *x, unsigned from,
                          uint32_t done, uint32_t n) {
    const unsigned regs = tk_value_layout(a->f, a->op->res[0])->regs;
    for (uint32_t k = 0; k < a->op->nres; k++) {
        const tk_dtype t = tk_value_type(a->f, a->op->opnd[k])->dtype;
        for (uint32_t r = 0; r < 1U << regs; r++) {
            const uint32_t reads = n - (total_is_used(a, s, from, r) ? 0 : 1);
            for (uint32_t i = 0; i < a->warps && !(r & done); i++) {
                row(a->base + x->part[k], t, &a->out.written);
            }
            for (uint32_t i = 0; i < a->warps * reads && !(r & done); i++) {
                row(a->base + x->part[k], t, &a->out.read);
            }
        }
    }
    a->out.barriers++;
}

static void scan(across *a, const tk_scratch *x) {
    const tk_scan s = tk_scan_of(a->f, a->op);
    const unsigned regs = a->out.known ? tk_value_layout(a->f, a->op->res[0])->regs : 0;
    uint32_t done = 0, n = 1;
    if (!s.plain) {
        a->out.known = false;
        return;
    }
    for (unsigned k = 0; k < s.log; k++) {
        switch (s.bit[k].kind) {
        case TK_SCAN_REG:
            done |= 1U << s.bit[k].i;
            break;
        case TK_SCAN_LANE:
            a->out.shuffles += a->op->nres << (regs - (unsigned)__builtin_popcount(done));
            break;
        case TK_SCAN_WARP:
            n *= 2;
            if (k + 1 == s.log || s.bit[k + 1].kind != TK_SCAN_WARP) {
                warps_of_scan(a, &s, x, k + 1, done, n);
            }
            break;
        }
    }
}

// ---- Memory -------------------------------------------------------------------------------------

// What one thread reads or changes and hands to all.
static void handed_on(across *a, const tk_scratch *x) {
    const tk_type *t = tk_value_type(a->f, a->op->res[0]);
    const tk_layout *l = tk_value_layout(a->f, a->op->res[0]);
    if (x->work != TK_WORK_SHARED) {
        return;
    }
    a->out.barriers = 1;
    if (l) {
        spill(a, l, t->dtype, 0);
        fetch(a, l, t->dtype, 0);
        return;
    }
    const uint64_t at[LANES] = {a->base};
    uint64_t all[LANES];
    for (unsigned i = 0; i < LANES; i++) {
        all[i] = a->base;
    }
    tk_count_wavefronts(&a->out.written, 1, at, (uint32_t)tk_dtype_size(t->dtype), false);
    for (uint32_t w = 0; w < a->warps; w++) {
        tk_count_wavefronts(&a->out.read, UINT32_MAX, all, (uint32_t)tk_dtype_size(t->dtype), true);
    }
}

// Of a tile that lies in shared memory, from a multiple of the banks on.
static void read_there(across *a) {
    const tk_layout *l = tk_value_layout(a->f, a->op->res[0]);
    const tk_dtype t = tk_value_type(a->f, a->op->res[0])->dtype;
    const tk_layout places = tk_layout_places(l, tk_value_layout(a->f, a->op->opnd[0]));
    const tk_run run = tk_run_of(&places, t);
    const uint32_t size = (uint32_t)tk_dtype_size(t);
    for (uint32_t w = 0; w < a->warps; w++) {
        for (uint32_t r = 0; r < 1U << l->regs; r++) {
            uint64_t at[LANES];
            for (uint32_t lane = 0; lane < LANES; lane++) {
                at[lane] = (uint64_t)tk_layout_eval(&places, r, lane, w) * size;
            }
            if (!(r & run.mask)) {
                tk_count_wavefronts(&a->out.read, UINT32_MAX, at, size << run.n, true);
            }
        }
    }
}

// ---- Products by matrix units -------------------------------------------------------------------

// Each register goes to one block; what blocks it is among makes no difference.
static void stage(across *a, const tk_matrix_plan *p, const tk_operand *x, uint64_t base) {
    uint32_t among;
    const tk_layout t = tk_operand_targets(x, p->block, &among);
    side s = side_of(a, &t, x->type, base);
    tk_requests one = {0, 0, 0};
    count_side(&s, copies_of(x->l), false, &one);
    const uint32_t times = 1U << (x->l->regs - t.regs);
    a->out.written.requests += times * one.requests;
    a->out.written.units += times * one.units;
    a->out.written.least += times * one.least;
}

// Tiles of 8 columns or 8 or 16 rows that a warp has, by the registers of the result.
static uint32_t tiles_of(const tk_matrix_plan *p, const tk_layout *l, bool is_a) {
    const unsigned columns = l->log_dim[l->rank - 1U], rows = l->log_dim[l->rank - 2U];
    const uint32_t column_bits = (1U << columns) - 1, row_bits = ((1U << rows) - 1) << columns;
    uint32_t n = 1;
    for (unsigned i = p->m.sum == TK_F64 ? 1 : 2; i < l->regs; i++) {
        n *= l->reg[i] & (is_a ? column_bits : row_bits) ? 1 : 2;
    }
    return n;
}

// Fragments lie alike, so that one says what all take.
static void fragments(across *a, const tk_matrix_plan *p, const tk_operand *x, bool is_a) {
    const tk_fragment f = tk_fragment_of(&p->m, x, is_a, p->columns);
    const bool elements = f.how == TK_FRAGMENT_ELEMENTS;
    const unsigned lanes = elements ? LANES : 8U << f.bits;
    const uint32_t steps = (1U << p->m.log_k) >> p->m.k, pair = !is_a && p->columns > 3 ? 2 : 1;
    uint32_t loads = tiles_of(p, tk_value_layout(a->f, a->op->res[0]), is_a) * (steps ? steps : 1);
    uint64_t at[LANES] = {0};
    tk_requests one = {0, 0, 0};
    for (unsigned i = 0; i < lanes; i++) {
        uint32_t e = 0;
        for (unsigned k = 0; k < TK_LANE_BITS; k++) {
            e ^= i >> k & 1 ? f.lane[k] : 0;
        }
        at[i] = a->base + (uint64_t)tk_layout_place(&x->place, e) * x->bytes;
    }
    const uint32_t mask = lanes == LANES ? UINT32_MAX : (1U << lanes) - 1;
    tk_count_wavefronts(&one, mask, at, elements ? x->bytes : (uint32_t)MOST_BYTES, true);
    loads = p->m.sum == TK_F64 ? loads : loads / pair;
    loads *= elements ? 1U << (f.bits + p->m.pack) : 1;
    a->out.read.requests += (uint64_t)loads * a->warps * one.requests;
    a->out.read.units += (uint64_t)loads * a->warps * one.units;
    a->out.read.least += (uint64_t)loads * a->warps * one.least;
}

static void product(across *a, const tk_scratch *s) {
    const tk_matrix_plan p = tk_matrix_plan_of(a->f, a->op);
    const tk_operand *x[2] = {&p.a, &p.b};
    const uint32_t blocks = (1U << p.m.log_k) / p.block;
    for (unsigned i = 0; i < 2; i++) {
        if (x[i]->where == TK_OPERAND_STAGED) {
            stage(a, &p, x[i], s->part[i]);
        }
        if (x[i]->where != TK_OPERAND_REGISTERS && p.m.unit == TK_UNIT_MMA) {
            fragments(a, &p, x[i], i == 0);
        }
    }
    a->out.barriers = s->bytes ? 2 * blocks - 1 : 0;
}

tk_across_count tk_count_across(tk_arena *scratch, const tk_func *f, const tk_op *op,
                                unsigned warps) {
    const tk_scratch s = tk_scratch_of(scratch, f, op);
    across a = {.scratch = scratch, .f = f, .op = op, .warps = warps};
    tk_moving m;
    a.base = op->at.shared > 0 ? (uint64_t)op->at.shared : 0;
    a.out.known = true;
    if (op->code == TK_OP_CONVERT && tk_value_layout(f, op->opnd[0])->shared) {
        read_there(&a);
    } else if (tk_moving_of(f, op, &m)) {
        if (s.work == TK_WORK_SHARED) {
            move(&a, &m);
        }
    } else if (op->code == TK_OP_REDUCE || op->code == TK_OP_ARG_REDUCE) {
        reduce(&a, &s);
    } else if (op->code == TK_OP_SCAN || op->code == TK_OP_SCAN_FN) {
        scan(&a, &s);
    } else if (op->code == TK_OP_DOT && op->at.unit != TK_UNIT_FMA) {
        product(&a, &s);
    } else if (tk_op_is_access(op)) {
        handed_on(&a, &s);
    } else {
        a.out.known = s.work == TK_WORK_THREAD;
    }
    return a.out;
}
