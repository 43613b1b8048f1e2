// SPDX-License-Identifier: Apache-2.0
// Built-in functions: each becomes an op, or a few.
#include "ir/build_internal.h"

#include <string.h>

typedef struct call {
    tk_bfn *f;
    const tk_x *x;
    const tk_xattr *at;
    tk_vid *v; // operands
    uint32_t n;
    tk_vid *out;
} call;

static tk_op *emit(const call *c, tk_opcode code) {
    const tk_type **types = TK_NEW_ARRAY(c->f->arena, const tk_type *, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        types[i] = tk_build_part(c->f, c->x, i);
    }
    tk_op *op = tk_build_emit(c->f, c->x->span, code, c->x->n, c->v, c->n, types,
                              code == TK_OP_REDUCE_FN || code == TK_OP_SCAN_FN ? 1 : 0);
    for (uint32_t i = 0; i < c->n; i++) {
        c->out[i] = op->res[i];
    }
    return op;
}

static void with_axis(const call *c, tk_opcode code) { emit(c, code)->at.axis = c->at->axis; }

static void with_kind(const call *c, tk_opcode code, tk_kindattr kind) {
    tk_op *op = emit(c, code);
    op->at.axis = c->at->axis;
    op->at.kind = kind;
    op->at.reverse = c->at->reverse;
    op->at.exclusive = c->at->exclusive;
}

// ---- Making and reshaping

// Zeros, a constant, or what is given stretched.
static void build_fill(const call *c) {
    const tk_type *t = tk_build_part(c->f, c->x, 0);
    if (c->x->n == 0) {
        tk_const zero = {t->dtype, 0};
        c->out[0] = tk_build_const(c->f, c->x->span, t, zero);
    } else if (c->x->arg[0]->kind == TK_X_CONST) {
        c->out[0] = tk_build_const(c->f, c->x->span, t, c->x->arg[0]->u.konst);
    } else {
        c->out[0] = tk_build_stretch(c->f, c->x->span, c->v[0], t);
    }
}

static void build_permute(const call *c, bool transpose) {
    tk_op *op = emit(c, TK_OP_PERMUTE);
    unsigned rank = tk_build_typeof(c->f, c->v[0])->rank;
    if (!transpose) {
        memcpy(op->at.perm, c->at->perm, sizeof op->at.perm);
        return;
    }
    TK_CHECK(c->f->arena, rank >= 2);
    for (unsigned i = 0; i < rank; i++) {
        unsigned from = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
        op->at.perm[i] = (uint8_t)from;
    }
}

static void build_slice(const call *c, uint32_t part, int64_t start) {
    tk_op *op =
        tk_build_emit1(c->f, c->x->span, TK_OP_SLICE, 1, c->v, tk_build_part(c->f, c->x, part));
    op->at.axis = c->at->axis;
    op->at.start = start;
    c->out[part] = op->res[0];
}

static void build_split(const call *c) {
    int64_t extent = tk_build_typeof(c->f, c->v[0])->dim[c->at->axis];
    build_slice(c, 0, 0);
    build_slice(c, 1, extent / 2);
}

static void build_sort(const call *c) {
    tk_op *op = emit(c, TK_OP_SORT);
    op->at.axis = c->at->axis;
    op->at.descending = c->at->descending;
}

static void build_reshape(const call *c) {
    if (tk_type_eq(tk_build_typeof(c->f, c->v[0]), tk_build_part(c->f, c->x, 0))) {
        c->out[0] = c->v[0];
    } else {
        emit(c, TK_OP_RESHAPE);
    }
}

// ---- Reductions with a function
static void build_combined(const call *c, tk_opcode code) {
    tk_bfn *f = c->f;
    const tk_inst *fn = c->at->fn;
    tk_op *op = emit(c, code);
    op->at.axis = c->at->axis;
    op->at.reverse = c->at->reverse;
    op->at.exclusive = c->at->exclusive;
    uint32_t m = c->n;
    tk_vid *arg = TK_NEW_ARRAY(f->arena, tk_vid, 2 * m);
    tk_vid *res = TK_NEW_ARRAY(f->arena, tk_vid, m);
    for (uint32_t i = 0; i < 2 * m; i++) {
        tk_dtype t = tk_build_typeof(f, c->v[i % m])->dtype;
        arg[i] = tk_region_arg(op->reg[0], tk_type_scalar(f->arena, t), fn->params.at[i]->name);
    }
    tk_region *outer = f->at;
    f->at = op->reg[0];
    tk_build_call_values(f, c->x->span, fn, arg, m, res);
    tk_build_yield(f, c->x->span, m, res);
    f->at = outer;
}

// ---- Random numbers
static void build_philox(const call *c, const tk_type *word, tk_vid out[4]) {
    const tk_type *types[4] = {word, word, word, word};
    tk_op *op = tk_build_emit(c->f, c->x->span, TK_OP_PHILOX, 2, c->v, 4, types, 0);
    memcpy(out, op->res, 4 * sizeof *out);
}

static tk_vid scaled(const call *c, tk_vid x, double factor) {
    const tk_type *t = tk_build_typeof(c->f, x);
    tk_vid k = tk_build_const(c->f, c->x->span, t, tk_const_f64(TK_F32, factor));
    return TK_BUILD_OPS(c->f, c->x->span, TK_OP_MUL, t, x, k);
}

// rand = f32(w0 >> 8) 2^-24
// randn = sqrt(-2 log u1) cos(2 pi u2), u1 = (f32(w0) + 1) 2^-32, u2 = f32(w1) 2^-32, all in f32.
// u1 is in (0, 1].
static void build_random(const call *c, bool normal) {
    tk_bfn *f = c->f;
    tk_span at = c->x->span;
    const tk_type *t = tk_build_part(f, c->x, 0);
    const tk_type *word = tk_type_with_dtype(f->arena, t, TK_U32);
    tk_vid w[4];
    build_philox(c, word, w);
    if (!normal) {
        tk_vid eight = tk_build_const(f, at, word, tk_const_u64(TK_U32, 8));
        tk_vid high = TK_BUILD_OPS(f, at, TK_OP_SHR, word, w[0], eight);
        c->out[0] = scaled(c, tk_build_cast(f, at, high, TK_F32), 0x1p-24);
        return;
    }
    tk_vid one = tk_build_const(f, at, t, tk_const_f64(TK_F32, 1.0));
    tk_vid u1 = scaled(
        c, TK_BUILD_OPS(f, at, TK_OP_ADD, t, tk_build_cast(f, at, w[0], TK_F32), one), 0x1p-32);
    tk_vid u2 = scaled(c, tk_build_cast(f, at, w[1], TK_F32), 0x1p-32);
    tk_vid size =
        TK_BUILD_OPS(f, at, TK_OP_SQRT, t, scaled(c, TK_BUILD_OPS(f, at, TK_OP_LOG, t, u1), -2.0));
    tk_vid angle = TK_BUILD_OPS(f, at, TK_OP_COS, t, scaled(c, u2, 6.283185307179586));
    c->out[0] = TK_BUILD_OPS(f, at, TK_OP_MUL, t, size, angle);
}

// ---- Debugging
static void build_claim(const call *c, tk_opcode code) {
    tk_bfn *f = c->f;
    tk_span at = c->x->span;
    tk_vid cond = c->v[0];
    tk_vid active = tk_build_active(f, at);
    if (active) {
        const tk_type *mask = tk_build_typeof(f, active);
        const tk_type *t = tk_build_typeof(f, cond);
        if (t->rank > 0 && mask->rank > 0 && !tk_type_eq(t, mask)) { // a tile of another shape
            active = tk_build_any(f, at, active);
            mask = t;
        }
        const tk_type *to = t->rank > 0 ? t : mask;
        active = tk_build_stretch(f, at, tk_build_not(f, at, active), to);
        cond = TK_BUILD_OPS(f, at, TK_OP_OR, to, active, tk_build_stretch(f, at, cond, to));
    }
    tk_op *op = tk_build_emit(f, at, code, 1, &cond, 0, NULL, 0);
    op->at.text = c->at->text;
}

static void build_print(const call *c) {
    if (tk_build_active(c->f, c->x->span)) {
        TK_ICE(c->f->arena, "print under a condition that varies in '%s'", c->f->fn->name);
    }
    emit(c, TK_OP_PRINT)->at.text = c->at->text;
}

// ---- All

// clang-format off
static void build_one(const call *c) {
    switch (c->x->u.builtin.id) {
    case TK_BI_ZEROS:
    case TK_BI_FULL: build_fill(c); return;
    case TK_BI_IOTA: emit(c, TK_OP_IOTA); return;
    case TK_BI_RESHAPE: build_reshape(c); return;
    case TK_BI_PERMUTE: build_permute(c, false); return;
    case TK_BI_TRANSPOSE: build_permute(c, true); return;
    case TK_BI_BROADCAST: build_fill(c); return;
    case TK_BI_CONCAT: with_axis(c, TK_OP_CONCAT); return;
    case TK_BI_SPLIT: build_split(c); return;
    case TK_BI_INTERLEAVE: emit(c, TK_OP_INTERLEAVE); return;
    case TK_BI_DEINTERLEAVE: emit(c, TK_OP_DEINTERLEAVE); return;
    case TK_BI_FLIP: with_axis(c, TK_OP_FLIP); return;
    case TK_BI_SLICE: build_slice(c, 0, c->at->start); return;
    case TK_BI_GATHER: with_axis(c, TK_OP_GATHER); return;
    case TK_BI_BITCAST: emit(c, TK_OP_BITCAST); return;
    case TK_BI_MIN: with_kind(c, TK_OP_REDUCE, TK_K_MIN); return;
    case TK_BI_MAX: with_kind(c, TK_OP_REDUCE, TK_K_MAX); return;
    case TK_BI_SUM: with_kind(c, TK_OP_REDUCE, TK_K_SUM); return;
    case TK_BI_PROD: with_kind(c, TK_OP_REDUCE, TK_K_PROD); return;
    case TK_BI_ANY: with_kind(c, TK_OP_REDUCE, TK_K_ANY); return;
    case TK_BI_ALL: with_kind(c, TK_OP_REDUCE, TK_K_ALL); return;
    case TK_BI_XOR: with_kind(c, TK_OP_REDUCE, TK_K_XOR); return;
    case TK_BI_ARGMAX: with_kind(c, TK_OP_ARG_REDUCE, TK_K_MAX); return;
    case TK_BI_ARGMIN: with_kind(c, TK_OP_ARG_REDUCE, TK_K_MIN); return;
    case TK_BI_REDUCE: build_combined(c, TK_OP_REDUCE_FN); return;
    case TK_BI_SCAN: build_combined(c, TK_OP_SCAN_FN); return;
    case TK_BI_CUMSUM: with_kind(c, TK_OP_SCAN, TK_K_SUM); return;
    case TK_BI_CUMPROD: with_kind(c, TK_OP_SCAN, TK_K_PROD); return;
    case TK_BI_CUMMAX: with_kind(c, TK_OP_SCAN, TK_K_MAX); return;
    case TK_BI_CUMMIN: with_kind(c, TK_OP_SCAN, TK_K_MIN); return;
    case TK_BI_SORT: build_sort(c); return;
    case TK_BI_TOPK: with_axis(c, TK_OP_TOPK); return;
    case TK_BI_HISTOGRAM: emit(c, TK_OP_HISTOGRAM); return;
    case TK_BI_DOT: emit(c, TK_OP_DOT)->at.precision = c->at->precision; return;
    case TK_BI_DOT_SCALED: emit(c, TK_OP_DOT_SCALED); return;
    case TK_BI_PHILOX: build_philox(c, tk_build_part(c->f, c->x, 0), c->out); return;
    case TK_BI_RAND: build_random(c, false); return;
    case TK_BI_RANDN: build_random(c, true); return;
    case TK_BI_PROGRAM_ID: emit(c, TK_OP_PROGRAM_ID)->at.axis = (int)c->at->n; return;
    case TK_BI_NUM_PROGRAMS: emit(c, TK_OP_NUM_PROGRAMS)->at.axis = (int)c->at->n; return;
    case TK_BI_ASSERT: build_claim(c, TK_OP_ASSERT); return;
    case TK_BI_ASSUME: build_claim(c, TK_OP_ASSUME); return;
    case TK_BI_PRINT: build_print(c); return;
    // These are ELEM or ATOMIC, or decided by the checker.
    case TK_BI_WHERE: case TK_BI_FMIN: case TK_BI_FMAX: case TK_BI_CLAMP: case TK_BI_GIVEN:
    case TK_BI_BITWIDTH: case TK_BI_DOT_TYPE:
    case TK_BI_STATIC_ASSERT: case TK_BI_ATOMIC_ADD: case TK_BI_ATOMIC_MAX: case TK_BI_ATOMIC_MIN:
    case TK_BI_ATOMIC_AND: case TK_BI_ATOMIC_OR: case TK_BI_ATOMIC_XOR: case TK_BI_ATOMIC_XCHG:
    case TK_BI_ATOMIC_CAS: case TK_BI_COUNT: break;
    }
    TK_ICE(c->f->arena, "built-in %d is no value", (int)c->x->u.builtin.id);
}
// clang-format on

void tk_build_builtin(tk_bfn *f, const tk_x *x, uint32_t n, tk_vid *out) {
    if (x->u.builtin.id == TK_BI_ASSERT && !f->b->debug) {
        return; // with its condition
    }
    call c = {f, x, &x->u.builtin.attr, TK_NEW_ARRAY(f->arena, tk_vid, x->n), n, out};
    for (uint32_t i = 0; i < x->n; i++) {
        c.v[i] = tk_build_x(f, x->arg[i]);
    }
    build_one(&c);
}
