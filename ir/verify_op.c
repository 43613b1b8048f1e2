// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for ops that make, reshape and compute by element; and the switch to the
// others.
#include "ir/verify_internal.h"

#include <string.h>

static bool element_wise(tk_verifier *v) {
    const tk_opinfo *info = tk_op_info(v->op->code);
    const tk_type *last = tk_vopnd(v, v->op->nopnd - 1);
    bool is_select = info->num == TK_NUM_SELECT;
    if (!tk_vneed(v, tk_numop_takes(info->num, last->dtype), "does not take %s",
                  tk_dtype_name(last->dtype))) {
        return false;
    }
    for (uint32_t i = 0; i < v->op->nopnd; i++) {
        const tk_type *t = tk_vopnd(v, i);
        tk_dtype want = is_select && i == 0 ? TK_BOOL : last->dtype;
        if (!tk_vneed(v, t->dtype == want && tk_same_shape(t, last), "operand %u is %s beside %s",
                      i, tk_type_text(v->a, t), tk_type_text(v->a, last))) {
            return false;
        }
    }
    const tk_type *r = tk_vres(v, 0);
    return tk_vneed(v,
                    r->dtype == tk_numop_result(info->num, last->dtype) && tk_same_shape(r, last),
                    "the result is %s", tk_type_text(v->a, r));
}

static bool constant(tk_verifier *v) {
    tk_const c = v->op->at.value;
    const tk_type *r = tk_vres(v, 0);
    unsigned bits = tk_dtype_bits(r->dtype);
    return tk_vneed(v, c.dtype == r->dtype, "a constant of another type than the result's") &&
           tk_vneed(v, bits == 64 || c.bits >> bits == 0, "bits beyond the type") &&
           tk_vneed(v, c.dtype != TK_BOOL || c.bits <= 1, "a bool that is neither 0 nor 1");
}

static bool same_dtype(tk_verifier *v) {
    const tk_type *r = tk_vres(v, 0);
    for (uint32_t i = 0; i < v->op->nopnd; i++) {
        if (!tk_vneed(v, tk_vopnd(v, i)->dtype == r->dtype, "element types differ")) {
            return false;
        }
    }
    return true;
}

static bool broadcast(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    bool fits = x->rank <= r->rank;
    for (unsigned i = 0; fits && i < x->rank; i++) {
        int64_t from = x->dim[x->rank - 1 - i], to = r->dim[r->rank - 1 - i];
        fits = from == to || from == 1;
    }
    return same_dtype(v) && tk_vneed(v, fits, "%s does not stretch to %s", tk_type_text(v->a, x),
                                     tk_type_text(v->a, r));
}

static bool permute(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    unsigned seen = 0;
    if (!same_dtype(v) ||
        !tk_vneed(v, x->rank == r->rank && x->rank > 0, "ranks differ or are 0")) {
        return false;
    }
    for (unsigned i = 0; i < x->rank; i++) {
        unsigned from = v->op->at.perm[i];
        if (!tk_vneed(v, from < x->rank && !(seen >> from & 1), "no permutation of the axes") ||
            !tk_vneed(v, r->dim[i] == x->dim[from], "extent %u of the result", i)) {
            return false;
        }
        seen |= 1u << from;
    }
    return true;
}

static bool concat(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *y = tk_vopnd(v, 1), *r = tk_vres(v, 0);
    if (!same_dtype(v) || !tk_vaxis(v, x) || !tk_vneed(v, x->rank == y->rank, "ranks differ")) {
        return false;
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    for (unsigned i = 0; i < x->rank; i++) {
        if ((int)i == v->op->at.axis) {
            dim[i] += y->dim[i];
        } else if (!tk_vneed(v, x->dim[i] == y->dim[i], "extents differ at axis %u", i)) {
            return false;
        }
    }
    return tk_vshape(v, r, x->rank, dim);
}

static bool interleave(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    if (!same_dtype(v) || !tk_vneed(v, x->rank > 0, "a scalar") ||
        !tk_vsame(v, tk_vopnd(v, 1), x, "the second operand")) {
        return false;
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] *= 2;
    return tk_vshape(v, r, x->rank, dim);
}

static bool deinterleave(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0);
    if (!same_dtype(v) ||
        !tk_vneed(v, x->rank > 0 && x->dim[x->rank - 1] % 2 == 0, "the last extent is not even")) {
        return false;
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] /= 2;
    return tk_vshape(v, tk_vres(v, 0), x->rank, dim) &&
           tk_vsame(v, tk_vres(v, 1), tk_vres(v, 0), "the second result");
}

static bool slice(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    if (!same_dtype(v) || !tk_vaxis(v, x) || !tk_vneed(v, x->rank == r->rank, "ranks differ")) {
        return false;
    }
    int axis = v->op->at.axis;
    int64_t dim[TK_MAX_RANK], start = v->op->at.start;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = r->dim[axis];
    return tk_vneed(v, start >= 0 && start <= x->dim[axis] - r->dim[axis],
                    "a slice beyond the tile") &&
           tk_vshape(v, r, x->rank, dim);
}

// The tile's extents are multiples of the part's, and there is a number for each axis from operand
// `first` on.
static bool part(tk_verifier *v, const tk_type *tile, const tk_type *x, uint32_t first) {
    if (!tk_vneed(v, tile->rank > 0 && tile->rank == x->rank && tile->dtype == x->dtype,
                  "%s is no part of %s", tk_type_text(v->a, x), tk_type_text(v->a, tile)) ||
        !tk_vneed(v, v->op->nopnd == first + tile->rank, "takes a number for each axis")) {
        return false;
    }
    for (unsigned i = 0; i < tile->rank; i++) {
        const tk_type *n = tk_vopnd(v, first + i);
        if (!tk_vneed(v, tile->dim[i] % x->dim[i] == 0, "extent %u is no multiple of the part's",
                      i) ||
            !tk_vneed(v, n->rank == 0 && n->dtype == TK_I32, "number %u is no i32", i)) {
            return false;
        }
    }
    return true;
}

static bool insert(tk_verifier *v) {
    return tk_vneed(v, v->op->nopnd >= 2, "takes a tile, a part and numbers") &&
           tk_vsame(v, tk_vres(v, 0), tk_vopnd(v, 0), "the result") &&
           part(v, tk_vopnd(v, 0), tk_vopnd(v, 1), 2);
}

static bool extract(tk_verifier *v) {
    return tk_vneed(v, v->op->nopnd >= 1, "takes a tile and numbers") &&
           part(v, tk_vopnd(v, 0), tk_vres(v, 0), 1);
}

static bool gather(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *index = tk_vopnd(v, 1), *r = tk_vres(v, 0);
    if (!tk_vaxis(v, x) ||
        !tk_vneed(v, tk_dtype_is_int(index->dtype), "an index that is no integer") ||
        !tk_vneed(v, x->rank == index->rank && x->dtype == r->dtype, "ranks or types differ")) {
        return false;
    }
    for (unsigned i = 0; i < x->rank; i++) {
        if (!tk_vneed(v, (int)i == v->op->at.axis || x->dim[i] == index->dim[i],
                      "extents differ at axis %u", i)) {
            return false;
        }
    }
    return tk_vshape(v, r, index->rank, index->dim);
}

static bool cast(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    return tk_vshape(v, r, x->rank, x->dim);
}

static bool bitcast(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0), *r = tk_vres(v, 0);
    return tk_vshape(v, r, x->rank, x->dim) &&
           tk_vneed(v, tk_dtype_bits(x->dtype) == tk_dtype_bits(r->dtype), "widths differ") &&
           tk_vneed(v, x->dtype != TK_BOOL && r->dtype != TK_BOOL, "bool is no number");
}

static bool philox(tk_verifier *v) {
    const tk_type *seed = tk_vopnd(v, 0), *offset = tk_vopnd(v, 1);
    if (!tk_vneed(v, seed->rank == 0 && tk_dtype_is_int(seed->dtype),
                  "the seed is an integer scalar") ||
        !tk_vneed(v, tk_dtype_is_int(offset->dtype) && tk_dtype_bits(offset->dtype) >= 32,
                  "the offset is an integer of 32 or 64 bits")) {
        return false;
    }
    for (uint32_t i = 0; i < v->op->nres; i++) {
        const tk_type *r = tk_vres(v, i);
        if (!tk_vneed(v, r->dtype == TK_U32, "a result that is not u32") ||
            !tk_vshape(v, r, offset->rank, offset->dim)) {
            return false;
        }
    }
    return true;
}

// i32 scalar: places and sizes
static bool place(tk_verifier *v, int most) {
    const tk_type *r = tk_vres(v, 0);
    return tk_vneed(v, v->op->at.axis >= 0 && v->op->at.axis < most, "axis %d", v->op->at.axis) &&
           tk_vneed(v, r->rank == 0 && r->dtype == TK_I32, "the result is an i32");
}

static bool holds(tk_verifier *v) {
    return tk_vneed(v, tk_vopnd(v, 0)->dtype == TK_BOOL, "the operand is a bool");
}

// The extents shown, where there are any: one for each axis of each value, no more than there are.
static bool print(tk_verifier *v) {
    const tk_attrs *at = &v->op->at;
    uint32_t k = 0;
    for (uint32_t i = 0; i < v->op->nopnd && at->nshown; i++) {
        const tk_type *t = tk_vopnd(v, i);
        for (unsigned d = 0; d < t->rank; d++, k++) {
            if (!tk_vneed(v, k < at->nshown && at->shown[k] > 0 && at->shown[k] <= t->dim[d],
                          "extent %u that is shown", k)) {
                return false;
            }
        }
    }
    return tk_vneed(v, k == at->nshown, "%u extents are shown of %u", at->nshown, k);
}

bool tk_verify_op_types(tk_verifier *v) {
    const tk_type *r = v->op->nres ? tk_vres(v, 0) : NULL;
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (v->op->code) {
#include "ir/ops.def"
        return element_wise(v);
    case TK_OP_CONST:
        return constant(v);
    case TK_OP_IOTA:
        return tk_vneed(v, r->rank == 1 && r->dtype == TK_I32, "the result is i32[n]");
    case TK_OP_BROADCAST:
        return broadcast(v);
    case TK_OP_RESHAPE:
        return same_dtype(v) && tk_vneed(v, tk_type_elems(r) == tk_type_elems(tk_vopnd(v, 0)),
                                         "numbers of elements differ");
    case TK_OP_PERMUTE:
        return permute(v);
    case TK_OP_CONCAT:
        return concat(v);
    case TK_OP_INTERLEAVE:
        return interleave(v);
    case TK_OP_DEINTERLEAVE:
        return deinterleave(v);
    case TK_OP_FLIP:
        return tk_vaxis(v, r) && tk_vsame(v, r, tk_vopnd(v, 0), "the result");
    case TK_OP_SLICE:
        return slice(v);
    case TK_OP_EMPTY:
        return tk_vneed(v, r->rank > 0, "a scalar");
    case TK_OP_INSERT:
        return insert(v);
    case TK_OP_EXTRACT:
        return extract(v);
    case TK_OP_GATHER:
        return gather(v);
    case TK_OP_CAST:
        return cast(v);
    case TK_OP_BITCAST:
        return bitcast(v);
    case TK_OP_CONVERT:
        return tk_vneed(v, r->rank > 0, "a scalar") && tk_vsame(v, r, tk_vopnd(v, 0), "the result");
    case TK_OP_PHILOX:
        return philox(v);
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
        return place(v, TK_MAX_GRID);
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        return holds(v);
    case TK_OP_PRINT:
        return print(v);
    case TK_OP_WAIT:
        return tk_vneed(v, r->rank > 0, "a scalar") && tk_vsame(v, r, tk_vopnd(v, 0), "the result");
    case TK_OP_BARRIER:
        return true;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        return tk_verify_across(v);
    case TK_OP_DIM:
        return tk_vneed(v, tk_vopnd(v, 0)->kind == TK_T_TENSOR, "the operand is a tensor") &&
               place(v, tk_vopnd(v, 0)->rank);
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
    case TK_OP_FETCH:
    case TK_OP_CALL:
        return tk_verify_access(v);
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_RING:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
        return tk_verify_ring(v);
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
        return tk_verify_control(v);
    case TK_OP_COUNT:
        break;
    }
    return tk_vbad(v, "unknown");
}
