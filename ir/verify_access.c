// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for what touches tensors (load, store, atomics) and for calls.
#include "ir/hold.h"
#include "ir/verify_internal.h"

#include <string.h>

typedef struct shape {
    unsigned rank;
    int64_t dim[TK_MAX_TENSOR_RANK * TK_MAX_RANK];
} shape;

// One index operand against its kind (attribute `index`).
static bool index_operand(tk_verifier *v, unsigned d) {
    const tk_type *t = tk_vopnd(v, 1 + d);
    int64_t kind = v->op->at.index[d];
    return tk_vneed(v, tk_dtype_is_int(t->dtype), "index %u is no integer", d) &&
           tk_vneed(v, kind >= -1 && kind <= TK_MAX_TILE_ELEMS, "index %u has no kind", d) &&
           tk_vneed(v, (kind < 0) == (t->rank > 0), "index %u is %s", d,
                    kind < 0 ? "no tile" : "no scalar");
}

// The common shape of the tile indices, and how many there are.
static bool tile_indices(tk_verifier *v, unsigned rank, const tk_type **common, unsigned *n) {
    *n = 0;
    *common = NULL;
    for (unsigned d = 0; d < rank; d++) {
        if (!index_operand(v, d)) {
            return false;
        }
        if (v->op->at.index[d] >= 0) {
            continue;
        }
        const tk_type *t = tk_vopnd(v, 1 + d);
        unsigned r = t->rank;
        int64_t dim[TK_MAX_RANK];
        memcpy(dim, t->dim, sizeof dim);
        if (*common && !tk_vneed(v, tk_broadcast(*common, t, &r, dim),
                                 "indices of shapes that do not go together")) {
            return false;
        }
        *common = tk_type_tile(v->a, TK_I32, r, dim);
        ++*n;
    }
    return true;
}

static void put(shape *s, const tk_type *t) {
    for (unsigned i = 0; i < t->rank; i++) {
        s->dim[s->rank++] = t->dim[i];
    }
}

// The view's type: the rules are those of tk_view in lang/tree.h.
static bool view_type(tk_verifier *v, const tk_type *tensor, const tk_type **out) {
    const tk_type *tile;
    unsigned ntile;
    shape s = {0};
    if (!tile_indices(v, tensor->rank, &tile, &ntile)) {
        return false;
    }
    if (ntile > 1) {
        put(&s, tile); // several: their common shape comes first
    }
    for (unsigned d = 0; d < tensor->rank; d++) {
        int64_t kind = v->op->at.index[d];
        if (kind > 0) {
            s.dim[s.rank++] = kind;
        } else if (kind < 0 && ntile == 1) {
            put(&s, tile); // one: it keeps its place
        }
    }
    if (!tk_vneed(v, s.rank <= TK_MAX_RANK, "a view of rank %u", s.rank)) {
        return false;
    }
    *out = tk_type_tile(v->a, tensor->dtype, s.rank, s.dim);
    return tk_vneed(v, tk_type_elems(*out) <= TK_MAX_TILE_ELEMS, "a view of too many elements");
}

static bool atomic_kind(tk_verifier *v, tk_dtype t) {
    bool wide = tk_dtype_bits(t) >= 32;
    bool fits = false;
    switch (v->op->at.kind) {
    case TK_K_ADD:
    case TK_K_MIN:
    case TK_K_MAX:
        fits = wide || t == TK_F16 || t == TK_BF16;
        break;
    case TK_K_AND:
    case TK_K_OR:
    case TK_K_XOR:
        fits = wide && tk_dtype_is_int(t);
        break;
    case TK_K_XCHG:
        fits = wide;
        break;
    case TK_K_SUM:
    case TK_K_PROD:
    case TK_K_ANY:
    case TK_K_ALL:
        break;
    }
    return tk_vneed(v, fits, "this kind does not take %s", tk_dtype_name(t));
}

static bool atomic(tk_verifier *v, const tk_type *tensor) {
    const tk_attrs *at = &v->op->at;
    return tk_vneed(v, (unsigned)at->order <= TK_ORDER_ACQ_REL, "no order") &&
           tk_vneed(v, (unsigned)at->scope <= TK_SCOPE_SYSTEM, "no scope") &&
           tk_vneed(v, tensor->access == TK_INOUT, "the tensor is not inout") &&
           (v->op->code == TK_OP_ATOMIC_CAS
                ? tk_vneed(v, tk_dtype_bits(tensor->dtype) >= 32, "takes 32 or 64 bits")
                : atomic_kind(v, tensor->dtype));
}

static bool access_fits(tk_verifier *v, const tk_type *tensor) {
    if (v->op->code == TK_OP_LOAD) {
        return tk_vneed(v, tensor->access & TK_IN, "reads an out tensor");
    }
    if (v->op->code == TK_OP_FETCH) {
        return tk_vneed(v, tensor->access == TK_IN, "the tensor may be written");
    }
    if (v->op->code == TK_OP_STORE) {
        return tk_vneed(v, tensor->access & TK_OUT, "writes an in tensor");
    }
    return atomic(v, tensor);
}

static bool staged(tk_verifier *v, const tk_type *view) {
    const int64_t rows = v->op->at.staged, n = tk_type_elems(view);
    return rows == 0 ||
           (tk_vneed(v, view->rank > 0, "a staged scalar") &&
            tk_vneed(v, rows > 0 && rows <= n && n % rows == 0,
                     "%lld rows in a tile of %lld elements", (long long)rows, (long long)n));
}

typedef struct into {
    tk_vid ring;
    bool by_registers;
} into;

static void find_fetch(void *user, tk_op *op) {
    into *s = user;
    s->by_registers =
        s->by_registers || (op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS &&
                            op->opnd[op->nopnd - 1] == s->ring);
}

// A `begin` is one of a fetch through registers.
static bool begins(tk_verifier *v) {
    into s = {v->op->opnd[v->op->nopnd - 1], false};
    tk_func_walk((tk_func *)(uintptr_t)v->f, find_fetch, &s); // changes nothing
    return tk_vneed(v, s.by_registers, "no fetch through registers follows");
}

// The ring stands where the value of a store does.
static bool fetch(tk_verifier *v, const tk_type *tensor) {
    const tk_op *op = v->op, *ring = tk_value_def(v->f, op->opnd[op->nopnd - 1]);
    for (unsigned d = 0; d < tensor->rank; d++) {
        if (!tk_vneed(v, op->at.index[d] >= 0, "index %u is a tile", d)) {
            return false;
        }
    }
    return tk_vneed(v, ring && ring->code == TK_OP_RING, "the last operand is no ring") &&
           tk_vneed(v, !ring->at.cluster || op->at.how == TK_HOW_TENSOR,
                    "a cluster fills the ring, by tensor copies alone") &&
           (op->at.how != TK_HOW_BEGIN || begins(v));
}

// Above the tile level; the pairs, verify_hold.c.
static bool held(tk_verifier *v, const tk_type *tensor, const tk_type *view) {
    const tk_op *op = v->op, *loop = op->in->owner;
    if (!op->at.hold && !op->at.held) {
        return true;
    }
    return tk_vneed(v, v->m->level != TK_LEVEL_TILE, "a tile is held at level tile") &&
           tk_vneed(v, op->at.hold >= 0 && op->at.hold <= TK_MOST_HELD, "%lld iterations are held",
                    (long long)op->at.hold) &&
           tk_vneed(v, !op->at.hold || !op->at.held, "it holds what it takes") &&
           tk_vneed(v,
                    view->rank > 0 && tensor->access == TK_IN && !op->at.staged && !op->at.masked,
                    "only a tile without a mask of an in tensor is held") &&
           tk_vneed(v, loop && loop->code == TK_OP_FOR, "what is held is not read by a loop");
}

static bool access(tk_verifier *v) {
    const tk_op *op = v->op;
    bool masked = op->at.masked, other = op->code == TK_OP_LOAD && op->at.other;
    uint32_t values = op->code == TK_OP_LOAD ? 0 : op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
    if (!tk_vneed(v, op->nopnd > 0 && tk_vopnd(v, 0)->kind == TK_T_TENSOR,
                  "the first operand is a tensor")) {
        return false;
    }
    const tk_type *tensor = tk_vopnd(v, 0), *view;
    uint32_t k = 1u + tensor->rank;
    if (!tk_vneed(v, op->nopnd == k + values + masked + other, "%u operands", op->nopnd) ||
        !access_fits(v, tensor) || !view_type(v, tensor, &view) || !staged(v, view) ||
        !held(v, tensor, view) || !tk_verify_copied_out(v, view) ||
        (op->code == TK_OP_FETCH && !fetch(v, tensor))) {
        return false;
    }
    for (uint32_t i = 0; i < values; i++) {
        if (!tk_vsame(v, tk_vopnd(v, k++), view, "the value")) {
            return false;
        }
    }
    const tk_type *mask = tk_type_with_dtype(v->a, view, TK_BOOL);
    return (!masked || tk_vsame(v, tk_vopnd(v, k++), mask, "the mask")) &&
           (!other || tk_vsame(v, tk_vopnd(v, k), view, "the value of else")) &&
           (op->nres == 0 || tk_vsame(v, tk_vres(v, 0), view, "the result"));
}

// ---- Calls --------------------------------------------------------------------------------------

// Whether an argument may be given for a parameter.
static bool argument_fits(const tk_type *arg, const tk_type *param) {
    if (arg->kind != TK_T_TENSOR || param->kind != TK_T_TENSOR) {
        return tk_type_eq(arg, param);
    }
    bool fits = arg->dtype == param->dtype && arg->rank == param->rank &&
                (arg->access & param->access) == param->access;
    for (unsigned i = 0; fits && i < arg->rank; i++) {
        fits = arg->dim[i] == param->dim[i] || param->dim[i] == TK_DIM_DYN;
    }
    return fits;
}

static bool call(tk_verifier *v) {
    const tk_op *op = v->op;
    if (!tk_vneed(v, op->at.callee, "calls nothing")) {
        return false;
    }
    const tk_func *callee = NULL;
    for (uint32_t i = 0; i < v->func_index && !callee; i++) {
        const tk_func *f = v->m->funcs.at[i];
        callee = strcmp(f->name, op->at.callee) == 0 ? f : NULL;
    }
    if (!tk_vneed(v, callee, "'%s' is no function before this one", op->at.callee) ||
        !tk_vneed(v, !callee->is_kernel, "'%s' is a kernel", op->at.callee) ||
        !tk_vneed(v, op->nopnd == callee->params.n && op->nres == callee->results.n,
                  "'%s' has %u parameters and %u results", op->at.callee, callee->params.n,
                  callee->results.n)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_type *param = callee->value.at[callee->params.at[i]].type;
        if (!tk_vneed(v, argument_fits(tk_vopnd(v, i), param),
                      "argument %u is %s, the parameter %s", i, tk_type_text(v->a, tk_vopnd(v, i)),
                      tk_type_text(v->a, param))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!tk_vsame(v, tk_vres(v, i), callee->results.at[i], "a result")) {
            return false;
        }
    }
    return true;
}

bool tk_verify_access(tk_verifier *v) { return v->op->code == TK_OP_CALL ? call(v) : access(v); }
