// SPDX-License-Identifier: Apache-2.0
// dot and dot_scaled by multiplication and addition.
//
// K is gone through in blocks that fit into scratch. For each, the operands' elements are converted
// to the accumulator's type and written with K outermost, so that threads of a warp read
// neighbouring elements; then each thread goes along K and adds the products to its registers. A
// register's products are added in the order of K, multiplication and addition rounded apart, which
// is the executor's order: the results have the same bits.
//
// dot_scaled multiplies each operand by its scale, 2^(s - 127) or NaN for s = 255, and computes in
// f64, rounded to f32 once at the end. precision = tf32 rounds operands to 10 bits of fraction, to
// nearest, ties to even; tf32x3 is computed as ieee.
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"

#include "ir/move.h"

enum { GROUP = 32, MANY_REGS = 16 };

typedef struct operand {
    tk_vid v, scale; // scale 0: none
    const tk_type *t;
    const tk_layout *l;
    unsigned row_axis, k_axis;
    uint32_t rows;
    uint64_t base, scale_base; // in scratch
    // The distinct rows (for b: columns) that a thread's result registers need:
    uint32_t n, *rep;    // one of the registers that need it
    uint32_t *of;        // by result register: which of the n
    LLVMValueRef *first; // by row: the number of its element at k = 0 in scratch
    tk_run run;          // the registers whose rows stand side by side there
} operand;

typedef struct dot {
    tk_emit *e;
    const tk_op *op;
    const tk_layout *l; // of the result
    uint32_t regs;
    tk_dtype acc;
    uint32_t k, block; // elements along K, of a block
    uint32_t batches;
    operand a, b;
} dot;

static unsigned log_of(uint32_t n) { return (unsigned)__builtin_ctz(n); }

// ---- Operands -----------------------------------------------------------------------------------

static LLVMValueRef scale_of(const dot *s, const operand *x, LLVMValueRef row, LLVMValueRef k) {
    tk_emit *e = s->e;
    const tk_type *t = tk_value_type(e->f, x->scale);
    LLVMValueRef c[2];
    c[x->row_axis] = row;
    c[x->k_axis] = tk_ll_shr(e, k, log_of(GROUP));
    LLVMValueRef code = tk_emit_fetch(e, s->op, x->scale_base, t->dtype, tk_emit_flat(e, t, c));
    code = tk_ll_resize(e, code, 64, false);
    LLVMValueRef bits = tk_ll_shl(e, tk_ll_add(e, code, tk_ll_k(code, 1023 - 127)), 52);
    bits = tk_ll_sel(e, tk_ll_is(e, code, 0xff), tk_ll_k(code, 0x7ff8000000000000), bits);
    return tk_ll_bits(e, bits, LLVMDoubleTypeInContext(e->ctx));
}

static LLVMValueRef converted(const dot *s, const operand *x, LLVMValueRef v, LLVMValueRef row,
                              LLVMValueRef k) {
    tk_emit *e = s->e;
    v = tk_emit_cast_elem(e, x->t->dtype, s->acc, v);
    if (s->op->at.precision == TK_PREC_TF32 && x->t->dtype == TK_F32) {
        return tk_ll_bits(e, tk_emit_tf32(e, v), LLVMTypeOf(v));
    }
    return x->scale ? LLVMBuildFMul(e->b, v, scale_of(s, x, row, k), "") : v;
}

// This thread's elements of one block of K, as [batch][k][row].
static void write_block(const dot *s, const operand *x, LLVMValueRef block) {
    tk_emit *e = s->e;
    LLVMValueRef *v = tk_emit_get(e, x->v);
    const bool whole = s->block == s->k;
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, x->l));
    for (uint32_t r = 0; r < 1U << x->l->regs; r++) {
        LLVMValueRef row = tk_emit_coord(e, x->l, r, x->row_axis);
        LLVMValueRef k = tk_emit_coord(e, x->l, r, x->k_axis);
        LLVMValueRef its = tk_ll_shr(e, k, log_of(s->block));
        LLVMValueRef in = tk_ll_icmp(e, LLVMIntEQ, its, block);
        tk_emit_cond c = tk_emit_if(e, whole ? NULL : in);
        LLVMValueRef at = tk_ll_mask(e, k, s->block - 1);
        if (s->batches > 1) {
            LLVMValueRef z = tk_emit_coord(e, x->l, r, 0);
            at = tk_ll_or(e, at, tk_ll_shl(e, z, log_of(s->block)));
        }
        at = tk_ll_add(e, tk_ll_shl(e, at, log_of(x->rows)), row);
        tk_emit_put(e, s->op, x->base, s->acc, at, converted(s, x, v[r], row, k));
        tk_emit_end(e, &c);
    }
    tk_emit_end(e, &own);
}

// The rows alone of the result's layout, register by register.
static tk_layout rows_of(const tk_layout *l, unsigned axis) {
    tk_layout r = *l;
    const unsigned shift = tk_layout_shift(l, axis);
    const uint32_t mask = (1U << l->log_dim[axis]) - 1;
    for (unsigned i = 0; i < r.regs; i++) {
        r.reg[i] = r.reg[i] >> shift & mask;
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        r.lane[i] = r.lane[i] >> shift & mask;
    }
    for (unsigned i = 0; i < r.warps; i++) {
        r.warp[i] = r.warp[i] >> shift & mask;
    }
    return r;
}

// Which rows of the operand the result's registers need; `other` are the bits of an element's
// number that do not matter.
static void find_rows(const dot *s, operand *x, unsigned axis, uint32_t other) {
    tk_emit *e = s->e;
    const tk_layout rows = rows_of(s->l, axis);
    x->run = tk_run_of(&rows, s->acc);
    x->rep = TK_NEW_ARRAY(e->arena, uint32_t, s->regs);
    x->of = TK_NEW_ARRAY(e->arena, uint32_t, s->regs);
    x->first = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->regs);
    for (uint32_t r = 0; r < s->regs; r++) {
        const uint32_t key = tk_layout_eval(s->l, r, 0, 0) & ~other;
        uint32_t i = 0;
        while (i < x->n && (tk_layout_eval(s->l, x->rep[i], 0, 0) & ~other) != key) {
            i++;
        }
        x->of[r] = i;
        if (i < x->n) {
            continue;
        }
        x->rep[x->n++] = r;
        LLVMValueRef row = tk_emit_coord(e, s->l, r, axis);
        if (s->batches > 1) {
            LLVMValueRef z = tk_emit_coord(e, s->l, r, 0);
            row = tk_ll_or(e, row, tk_ll_shl(e, z, log_of(x->rows * s->block)));
        }
        x->first[i] = row;
    }
}

// ---- The product --------------------------------------------------------------------------------

static LLVMValueRef *fetch_rows(const dot *s, const operand *x, LLVMValueRef k) {
    tk_emit *e = s->e;
    LLVMValueRef *v = TK_NEW_ARRAY(e->arena, LLVMValueRef, x->n);
    LLVMValueRef from = tk_ll_shl(e, k, log_of(x->rows));
    const uint32_t n = 1U << x->run.n;
    const unsigned size = (unsigned)tk_dtype_size(s->acc);
    LLVMTypeRef one = tk_emit_mem_type(e, s->acc), type = n > 1 ? LLVMVectorType(one, n) : one;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->rep[i] & x->run.mask) { // with another
            continue;
        }
        LLVMValueRef at = tk_ll_add(e, x->first[i], from);
        at = tk_emit_shared_at(e, s->op, x->base, tk_ll_mul(e, at, tk_emit_i32(e, size)));
        LLVMValueRef all = LLVMBuildLoad2(e->b, type, at, "");
        LLVMSetAlignment(all, size * n);
        for (uint32_t j = 0; j < n; j++) {
            LLVMValueRef y =
                n > 1 ? LLVMBuildExtractElement(e->b, all, tk_emit_i32(e, j), "") : all;
            v[x->of[x->rep[i] | tk_run_registers(&x->run, j)]] = y;
        }
    }
    return v;
}

static void add_products(const dot *s, LLVMValueRef *acc) {
    tk_emit *e = s->e;
    tk_emit_carried c = tk_emit_carry_begin(e, s->block, s->regs, acc);
    LLVMValueRef *a = fetch_rows(s, &s->a, c.loop.i), *b = fetch_rows(s, &s->b, c.loop.i);
    const unsigned fast = s->op->fast;
    const bool fused = fast & TK_FAST_CONTRACT && tk_dtype_is_float(s->acc);
    for (uint32_t r = 0; r < s->regs; r++) {
        LLVMValueRef x[3] = {a[s->a.of[r]], b[s->b.of[r]], acc[r]};
        LLVMValueRef term[2] = {acc[r], NULL};
        if (fused) {
            acc[r] = tk_emit_elem(e, TK_NUM_FMA, s->acc, fast, x);
            continue;
        }
        term[1] = tk_emit_elem(e, TK_NUM_MUL, s->acc, fast, x);
        acc[r] = tk_emit_elem(e, TK_NUM_ADD, s->acc, fast, term);
    }
    tk_emit_carry_end(e, &c, acc, s->regs < MANY_REGS);
}

// A block is written when all have read the one before it.
static void all_blocks(const dot *s, LLVMValueRef *acc) {
    tk_emit *e = s->e;
    tk_emit_carried c = tk_emit_carry_begin(e, s->k / s->block, s->regs, acc);
    LLVMValueRef later = LLVMBuildNot(e->b, tk_ll_is(e, c.loop.i, 0), "");
    if (s->block < s->k) {
        tk_emit_cond again = tk_emit_if(e, later);
        tk_emit_barrier(e);
        tk_emit_end(e, &again);
    }
    write_block(s, &s->a, c.loop.i);
    write_block(s, &s->b, c.loop.i);
    tk_emit_barrier(e);
    add_products(s, acc);
    tk_emit_carry_end(e, &c, acc, false);
}

// The accumulator's elements as the result has them: through scratch where its layout is another.
static void start(const dot *s, tk_vid v, LLVMValueRef *acc) {
    tk_emit *e = s->e;
    const tk_type *t = tk_value_type(e->f, s->op->res[0]);
    const tk_layout *from = v ? tk_emit_layout(e, v) : NULL;
    const bool here = !v || tk_layout_eq(from, s->l);
    if (!here) {
        tk_emit_spill(e, s->op, 0, v);
        tk_emit_barrier(e);
    }
    LLVMValueRef *x = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->regs);
    if (!here) {
        tk_emit_fetch_values(e, s->op, 0, s->l, t->dtype, x);
        tk_emit_barrier(e);
    }
    for (uint32_t r = 0; r < s->regs; r++) {
        LLVMValueRef y = !v     ? LLVMConstNull(tk_emit_type(e, t->dtype))
                         : here ? tk_emit_get(e, v)[r]
                                : x[r];
        acc[r] = tk_emit_cast_elem(e, t->dtype, s->acc, y);
    }
}

// ---- Planning -----------------------------------------------------------------------------------

static operand operand_of(const tk_emit *e, tk_vid v, tk_vid scale, bool k_last) {
    operand x = {.v = v, .scale = scale, .t = tk_value_type(e->f, v), .l = tk_emit_layout(e, v)};
    const unsigned last = x.t->rank - 1U;
    x.k_axis = k_last ? last : last - 1;
    x.row_axis = k_last ? last - 1 : last;
    x.rows = (uint32_t)x.t->dim[x.row_axis];
    return x;
}

// The scales stay in scratch from before the first block on.
static void spill_scales(const dot *s) {
    if (s->a.scale) {
        tk_emit_spill(s->e, s->op, s->a.scale_base, s->a.scale);
        tk_emit_spill(s->e, s->op, s->b.scale_base, s->b.scale);
        tk_emit_barrier(s->e);
    }
}

static void place(dot *s) {
    const tk_scratch scratch = tk_emit_scratch(s->e, s->op);
    s->block = scratch.block;
    s->a.base = scratch.part[0];
    s->b.base = scratch.part[1];
    if (s->a.scale) {
        s->a.scale_base = scratch.part[2];
        s->b.scale_base = scratch.part[3];
    }
}

void tk_emit_dot_op(tk_emit *e, tk_op *op) {
    if (op->at.unit != TK_UNIT_FMA) {
        tk_emit_matrix_op(e, op);
        return;
    }
    const tk_product d = tk_product_of(e->f, op);
    dot s = {.e = e, .op = op, .l = tk_emit_layout(e, op->res[0]), .acc = d.type};
    const tk_type *t = tk_value_type(e->f, op->res[0]);
    s.regs = 1U << s.l->regs;
    s.a = operand_of(e, op->opnd[0], d.a_scale ? op->opnd[d.a_scale] : 0, true);
    s.b = operand_of(e, op->opnd[d.b], d.b_scale ? op->opnd[d.b_scale] : 0, false);
    s.k = (uint32_t)d.k;
    s.batches = (uint32_t)d.batch;
    LLVMValueRef *acc = TK_NEW_ARRAY(e->arena, LLVMValueRef, s.regs);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    place(&s);
    start(&s, d.acc ? op->opnd[d.acc] : 0, acc);
    const uint32_t columns = s.b.rows - 1, rows = (s.a.rows - 1) << log_of(s.b.rows);
    find_rows(&s, &s.a, s.a.t->rank - 2U, columns);
    find_rows(&s, &s.b, s.b.t->rank - 1U, rows);
    spill_scales(&s);
    all_blocks(&s, acc);
    for (uint32_t r = 0; r < s.regs; r++) {
        out[r] = tk_emit_cast_elem(e, s.acc, t->dtype, acc[r]);
    }
}
