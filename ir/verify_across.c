// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for reductions, scans, sorting and products.
#include "ir/matrix.h"
#include "ir/verify_internal.h"

#include <string.h>

// The shape left by reducing t along the axis, or all of it.
static bool reduced(tk_verifier *v, const tk_type *t, unsigned *rank, int64_t *dim) {
    if (!tk_vneed(v, t->rank > 0, "reduces a scalar")) {
        return false;
    }
    *rank = 0;
    if (v->op->at.axis == TK_AXIS_ALL) {
        return true;
    }
    if (!tk_vaxis(v, t)) {
        return false;
    }
    *rank = t->rank;
    memcpy(dim, t->dim, t->rank * sizeof *dim);
    dim[v->op->at.axis] = 1;
    return true;
}

static bool kind_is(tk_verifier *v, unsigned kinds, tk_dtype t) {
    tk_kindattr k = v->op->at.kind;
    if (!tk_vneed(v, (unsigned)k < 32 && (kinds >> k & 1), "a kind that it does not have")) {
        return false;
    }
    bool fits = false;
    switch (k) {
    case TK_K_SUM:
    case TK_K_PROD:
        fits = tk_numop_takes(TK_NUM_ADD, t) && tk_dtype_bits(t) >= 32;
        break;
    case TK_K_MIN:
    case TK_K_MAX:
        fits = tk_numop_takes(TK_NUM_MIN, t);
        break;
    case TK_K_ANY:
    case TK_K_ALL:
        fits = t == TK_BOOL;
        break;
    case TK_K_XOR:
        fits = tk_numop_takes(TK_NUM_XOR, t);
        break;
    case TK_K_ADD:
    case TK_K_AND:
    case TK_K_OR:
    case TK_K_XCHG:
        break;
    }
    return tk_vneed(v, fits, "this kind does not take %s", tk_dtype_name(t));
}

static bool reduce(tk_verifier *v) {
    enum {
        KINDS = 1 << TK_K_SUM | 1 << TK_K_PROD | 1 << TK_K_MIN | 1 << TK_K_MAX | 1 << TK_K_ANY |
                1 << TK_K_ALL | 1 << TK_K_XOR
    };
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    return kind_is(v, KINDS, x->dtype) && reduced(v, x, &rank, dim) && tk_vshape(v, r, rank, dim) &&
           tk_vneed(v, r->dtype == x->dtype, "the result has another element type");
}

static bool arg_reduce(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    return kind_is(v, 1 << TK_K_MIN | 1 << TK_K_MAX, x->dtype) && reduced(v, x, &rank, dim) &&
           tk_vshape(v, r, rank, dim) && tk_vneed(v, r->dtype == TK_I32, "the result is i32");
}

static bool scan(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0);
    return kind_is(v, 1 << TK_K_SUM | 1 << TK_K_PROD | 1 << TK_K_MIN | 1 << TK_K_MAX, x->dtype) &&
           tk_vaxis(v, x) && tk_vsame(v, tk_vres(v, 0), x, "the result");
}

// m tiles of one shape
static bool tiles(tk_verifier *v, uint32_t m) {
    for (uint32_t i = 0; i < m; i++) {
        const tk_type *x = tk_vopnd(v, i), *first = tk_vopnd(v, 0);
        if (!tk_vneed(v, x->rank > 0 && tk_same_shape(x, first), "operand %u has another shape",
                      i)) {
            return false;
        }
    }
    return true;
}

static bool reduce_fn(tk_verifier *v) {
    uint32_t m = v->op->nres;
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    if (!tk_vneed(v, m > 0 && v->op->nopnd == m, "as many operands as results, one at least") ||
        !tiles(v, m) || !reduced(v, tk_vopnd(v, 0), &rank, dim)) {
        return false;
    }
    for (uint32_t i = 0; i < m; i++) {
        if (!tk_vshape(v, tk_vres(v, i), rank, dim) ||
            !tk_vneed(v, tk_vres(v, i)->dtype == tk_vopnd(v, i)->dtype,
                      "result %u has another element type", i)) {
            return false;
        }
    }
    return tk_verify_combine(v);
}

static bool scan_fn(tk_verifier *v) {
    uint32_t m = v->op->nres;
    uint32_t want = v->op->at.exclusive ? 2 * m : m;
    if (!tk_vneed(v, m > 0 && v->op->nopnd == want, "%u operands for %u results", v->op->nopnd,
                  m) ||
        !tiles(v, m) || !tk_vaxis(v, tk_vopnd(v, 0))) {
        return false;
    }
    for (uint32_t i = 0; i < m; i++) {
        const tk_type *x = tk_vopnd(v, i);
        if (!tk_vsame(v, tk_vres(v, i), x, "a result")) {
            return false;
        }
        const tk_type *init = want > m ? tk_vopnd(v, m + i) : NULL;
        if (init && !tk_vneed(v, init->rank == 0 && init->dtype == x->dtype,
                              "initial value %u is a scalar of the tile's element type", i)) {
            return false;
        }
    }
    return tk_verify_combine(v);
}

static bool sort(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0);
    return tk_vneed(v, tk_numop_takes(TK_NUM_LT, x->dtype), "does not take %s",
                    tk_dtype_name(x->dtype)) &&
           tk_vaxis(v, x) && tk_vsame(v, tk_vres(v, 0), x, "the result");
}

static bool topk(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0), *index = tk_vres(v, 1);
    if (!tk_vneed(v, tk_numop_takes(TK_NUM_LT, x->dtype), "does not take %s",
                  tk_dtype_name(x->dtype)) ||
        !tk_vaxis(v, x) ||
        !tk_vneed(v, r->rank == x->rank && r->dtype == x->dtype, "the values' type")) {
        return false;
    }
    int axis = v->op->at.axis;
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = r->dim[axis];
    return tk_vneed(v, r->dim[axis] <= x->dim[axis], "more values than there are") &&
           tk_vshape(v, r, x->rank, dim) &&
           tk_vneed(v, index->dtype == TK_I32, "indices are i32") &&
           tk_vshape(v, index, x->rank, dim);
}

static bool histogram(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    return tk_vneed(v, tk_dtype_is_int(x->dtype) && x->rank > 0, "takes a tile of integers") &&
           tk_vneed(v, r->rank == 1 && r->dtype == TK_I32, "the result is i32[bins]");
}

// ---- Products -----------------------------------------------------------------------------------

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

static tk_dtype product_dtype(tk_dtype t) {
    if (tk_dtype_is_float(t)) {
        return t == TK_F64 ? TK_F64 : TK_F32;
    }
    return t == TK_I8 || t == TK_U8 ? TK_I32 : TK_DTYPE_COUNT;
}

// a [.., M, K], b [.., K, N], acc and result [.., M, N] of type t
static bool product(tk_verifier *v, const tk_type *a, const tk_type *b, tk_dtype t, uint32_t acc) {
    const tk_type *r = tk_vres(v, 0);
    unsigned n = a->rank;
    if (!tk_vneed(v, n == b->rank && (n == 2 || n == 3),
                  "operands of rank 2, or 3 with a batch axis") ||
        !tk_vneed(v, a->dim[n - 1] == b->dim[n - 2], "inner extents differ") ||
        !tk_vneed(v, n == 2 || a->dim[0] == b->dim[0], "batch extents differ")) {
        return false;
    }
    int64_t dim[3] = {a->dim[0], a->dim[1], 0};
    dim[n - 1] = b->dim[n - 1];
    return tk_vshape(v, r, n, dim) &&
           tk_vneed(v, r->dtype == t, "the result is of %s", tk_dtype_name(t)) &&
           (v->op->nopnd == acc || tk_vsame(v, tk_vopnd(v, acc), r, "acc"));
}

// The unit multiplies these types and extents: powers of two.
static bool unit(tk_verifier *v) {
    tk_matrix m;
    const char *why = "";
    const tk_dot_unit unit = v->op->at.unit;
    unsigned axis;
    return tk_vneed(v, (unsigned)unit <= TK_UNIT_WGMMA, "no unit") &&
           (unit == TK_UNIT_FMA ||
            (tk_vneed(
                 v, tk_layout_fits(tk_vopnd(v, 0), &axis) && tk_layout_fits(tk_vopnd(v, 1), &axis),
                 "a unit for extents that are no powers of two") &&
             tk_vneed(v, tk_matrix_of(v->f, v->op, unit, &m, &why), "not by this unit: %s", why)));
}

static bool dot(tk_verifier *v) {
    if (!tk_vneed(v, v->op->nopnd == 2 || v->op->nopnd == 3, "%u operands", v->op->nopnd)) {
        return false;
    }
    const tk_type *a = tk_vopnd(v, 0), *b = tk_vopnd(v, 1);
    tk_dtype t = product_dtype(a->dtype);
    return tk_vneed(v, t != TK_DTYPE_COUNT, "does not take %s", tk_dtype_name(a->dtype)) &&
           tk_vneed(v, a->dtype == b->dtype || (is_f8(a->dtype) && is_f8(b->dtype)),
                    "operands of different types") &&
           tk_vneed(v, (unsigned)v->op->at.precision <= TK_PREC_TF32X3, "no precision") &&
           tk_vneed(v, v->op->at.precision == TK_PREC_IEEE || a->dtype == TK_F32,
                    "this precision is for f32") &&
           product(v, a, b, t, 2) && unit(v);
}

static bool scales(tk_verifier *v, const tk_type *s, const tk_type *x, unsigned k) {
    enum { BLOCK = 32 };
    int64_t dim[2] = {x->dim[0], x->dim[1]};
    dim[k] /= BLOCK;
    return tk_vneed(v, x->dim[k] % BLOCK == 0, "the inner extent is no multiple of 32") &&
           tk_vneed(v, s->dtype == TK_U8, "scales are u8") && tk_vshape(v, s, 2, dim);
}

static bool dot_scaled(tk_verifier *v) {
    if (!tk_vneed(v, v->op->nopnd == 4 || v->op->nopnd == 5, "%u operands", v->op->nopnd)) {
        return false;
    }
    const tk_type *a = tk_vopnd(v, 0), *b = tk_vopnd(v, 2);
    return tk_vneed(v, a->rank == 2 && b->rank == 2, "operands of rank 2") &&
           tk_vneed(v, tk_dtype_is_narrow_float(a->dtype) && tk_dtype_is_narrow_float(b->dtype),
                    "multiplies f8e4m3, f8e5m2, f16 or bf16") &&
           scales(v, tk_vopnd(v, 1), a, 1) && scales(v, tk_vopnd(v, 3), b, 0) &&
           product(v, a, b, TK_F32, 4);
}

// ---- Dots that are waited for elsewhere

typedef struct open_uses {
    tk_func *f;     // changes nothing of it
    tk_vid v, from; // a value that is not there yet; that which the loop handed on as it; 0: none
    bool fits;
} open_uses;

// Waits alone use it, and those of what a loop hands it on as.
static void find_open_use(void *user, tk_op *op) {
    open_uses *s = user;
    for (uint32_t i = 0; i < op->nopnd && s->fits; i++) {
        const tk_op *loop = op->in->owner;
        if (op->opnd[i] != s->v || op->code == TK_OP_WAIT) {
            continue;
        }
        s->fits = op->code == TK_OP_YIELD && loop && loop->code == TK_OP_FOR && !s->from;
        for (uint32_t k = 0; k < 2 && s->fits; k++) {
            open_uses on = {s->f, k ? loop->res[i] : loop->reg[0]->args.at[1 + i], s->v, true};
            tk_func_walk(s->f, find_open_use, &on);
            s->fits = on.fits;
        }
    }
}

static bool dot_open(tk_verifier *v) {
    const tk_op *op = v->op;
    open_uses s = {(tk_func *)(uintptr_t)v->f, op->res[0], 0, true};
    if (!op->at.open) {
        return true;
    }
    tk_func_walk(s.f, find_open_use, &s);
    return tk_vneed(v, op->at.unit == TK_UNIT_WGMMA && v->m->level == TK_LEVEL_STAGED,
                    "'open' is wgmma's, at the staged level") &&
           tk_vneed(v, s.fits, "it is open, and something else than 'wait' uses it");
}

bool tk_verify_across(tk_verifier *v) {
    switch ((int)v->op->code) { // those that verify_op.c sends here
    case TK_OP_REDUCE:
        return reduce(v);
    case TK_OP_ARG_REDUCE:
        return arg_reduce(v);
    case TK_OP_REDUCE_FN:
        return reduce_fn(v);
    case TK_OP_SCAN:
        return scan(v);
    case TK_OP_SCAN_FN:
        return scan_fn(v);
    case TK_OP_SORT:
        return sort(v);
    case TK_OP_TOPK:
        return topk(v);
    case TK_OP_HISTOGRAM:
        return histogram(v);
    case TK_OP_DOT:
        return dot(v) && dot_open(v);
    case TK_OP_DOT_SCALED:
        return dot_scaled(v);
    }
    return tk_vbad(v, "unknown");
}
