// SPDX-License-Identifier: Apache-2.0
// Indexed tensors: loads, stores and atomics, with their masks in the result's shape.
#include "ir/build_internal.h"

// A view as operands of an op.
typedef struct view {
    const tk_view *of;
    tk_vid tensor;
    tk_vid index[TK_MAX_TENSOR_RANK];
    int64_t kind[TK_MAX_TENSOR_RANK]; // attribute `index`
    const tk_type *type;              // what is read or written
    tk_vid mask;                      // of that shape; 0: none
} view;

static bool only_scalars(const tk_view *v) {
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->entry[i].kind != TK_XI_SCALAR) {
            return false;
        }
    }
    return v->n > 0;
}

// A mask of one entry, whose own shape `own` stands at axis `at_axis` of the result.
static tk_vid place_mask(tk_bfn *f, tk_span at, tk_vid mask, const tk_type *own, unsigned at_axis,
                         const tk_type *result) {
    if (tk_build_typeof(f, mask)->rank > 0) {
        mask = tk_build_stretch(f, at, mask, own);
        TK_CHECK(f->arena, at_axis + own->rank <= result->rank);
        unsigned after = result->rank - own->rank - at_axis;
        if (after > 0) {
            int64_t dim[TK_MAX_RANK];
            for (unsigned i = 0; i < own->rank + after; i++) {
                dim[i] = i < own->rank ? own->dim[i] : 1;
            }
            const tk_type *t = tk_type_tile(f->arena, TK_BOOL, own->rank + after, dim);
            mask = TK_BUILD_OPS(f, at, TK_OP_RESHAPE, t, mask);
        }
    }
    return tk_build_stretch(f, at, mask, result);
}

static void and_mask(tk_bfn *f, tk_span at, view *v, tk_vid mask) {
    v->mask = tk_build_bool(f, at, TK_OP_AND, v->mask, mask);
}

// ---- In a lifted function: one element of the tensor an element of the lift shape
static void lanes_view(tk_bfn *f, view *v) {
    const tk_view *of = v->of;
    tk_span at = of->span;
    TK_CHECK(f->arena, only_scalars(of));
    v->type = tk_build_lift(f, tk_type_scalar(f->arena, of->type->dtype), true);
    bool any = false;
    for (uint32_t i = 0; i < of->n; i++) {
        v->index[i] = tk_build_x(f, of->entry[i].at);
        v->kind[i] = of->entry[i].at->varying ? -1 : 0;
        any = any || v->kind[i] == -1;
        if (of->entry[i].mask) {
            tk_vid mask = tk_build_x(f, of->entry[i].mask);
            and_mask(f, at, v, tk_build_stretch(f, at, mask, v->type));
        }
    }
    if (!any) { // the same place for every element
        v->index[0] = tk_build_stretch(f, at, v->index[0], v->type);
        v->kind[0] = -1;
    }
}

// ---- Whole tiles

// The common
// shape of two or more tile indices; each index is stretched to it.
static const tk_type *common_shape(tk_bfn *f, view *v) {
    const tk_type *common = NULL;
    for (uint32_t i = 0; i < v->of->n; i++) {
        if (v->of->entry[i].kind == TK_XI_TILE) {
            const tk_type *t = tk_build_typeof(f, v->index[i]);
            unsigned rank;
            int64_t dim[TK_MAX_RANK];
            if (common) {
                TK_CHECK(f->arena, tk_broadcast(common, t, &rank, dim));
                t = tk_type_with_shape(f->arena, t, rank, dim);
            }
            common = t;
        }
    }
    return common;
}

static void tile_indices(tk_bfn *f, view *v, tk_vid *mask, const tk_type **own, uint32_t *tiles) {
    for (uint32_t i = 0; i < v->of->n; i++) {
        const tk_xindex *e = &v->of->entry[i];
        v->index[i] = tk_build_x(f, e->at);
        mask[i] = e->mask ? tk_build_x(f, e->mask) : 0;
        own[i] = tk_build_typeof(f, v->index[i]);
        switch (e->kind) {
        case TK_XI_SCALAR:
            v->kind[i] = 0;
            break;
        case TK_XI_RANGE:
            v->kind[i] = e->count;
            own[i] = tk_type_tile(f->arena, TK_BOOL, 1, &e->count);
            break;
        case TK_XI_TILE:
            v->kind[i] = -1;
            ++*tiles;
            break;
        }
    }
}

static void tile_view(tk_bfn *f, view *v) {
    tk_span at = v->of->span;
    tk_vid mask[TK_MAX_TENSOR_RANK];
    const tk_type *own[TK_MAX_TENSOR_RANK];
    uint32_t tiles = 0;
    v->type = v->of->type;
    tile_indices(f, v, mask, own, &tiles);
    const tk_type *common = tiles > 1 ? common_shape(f, v) : NULL;
    unsigned axis = common ? common->rank : 0;
    for (uint32_t i = 0; i < v->of->n; i++) {
        bool first = common && v->kind[i] == -1; // goes to the front
        if (mask[i] && first && tk_build_typeof(f, mask[i])->rank > 0) {
            mask[i] = tk_build_stretch(f, at, tk_build_stretch(f, at, mask[i], own[i]), common);
            own[i] = common;
        }
        if (mask[i]) {
            and_mask(f, at, v, place_mask(f, at, mask[i], own[i], first ? 0 : axis, v->type));
        }
        if (first) {
            v->index[i] = tk_build_stretch(f, at, v->index[i], common);
        } else if (v->kind[i] != 0) {
            axis += own[i]->rank;
        }
    }
    TK_CHECK(f->arena, axis == v->type->rank);
}

// `lanes`: what is read or written has one element an element of the lift shape.
static void build_view(tk_bfn *f, const tk_view *of, bool lanes, view *v) {
    *v = (view){.of = of, .tensor = tk_build_tensor(f, of->tensor)};
    TK_CHECK(f->arena, of->n <= TK_MAX_TENSOR_RANK);
    if (lanes) {
        lanes_view(f, v);
    } else {
        tile_view(f, v);
    }
}

static bool has_lanes(const tk_bfn *f) { return f->inst->lifted && f->inst->lift_rank > 0; }

// Leaves out the elements that do not get here.
static void mask_effect(tk_bfn *f, tk_span at, view *v, bool lanes) {
    tk_vid active = tk_build_active(f, at);
    if (active && !lanes) {
        active = tk_build_any(f, at, active);
    }
    if (active) {
        and_mask(f, at, v, tk_build_stretch(f, at, active, v->type));
    }
}

static tk_op *emit_access(tk_bfn *f, tk_span at, tk_opcode code, const view *v, uint32_t nvalue,
                          const tk_vid *value, tk_vid other) {
    tk_vid opnd[TK_MAX_TENSOR_RANK + 5];
    uint32_t n = 0;
    opnd[n++] = v->tensor;
    for (uint32_t i = 0; i < v->of->n; i++) {
        opnd[n++] = v->index[i];
    }
    for (uint32_t i = 0; i < nvalue; i++) {
        opnd[n++] = value[i];
    }
    if (v->mask) {
        opnd[n++] = v->mask;
    }
    if (other) {
        opnd[n++] = other;
    }
    const tk_type *type = v->type;
    tk_op *op = tk_build_emit(f, at, code, n, opnd, code == TK_OP_STORE ? 0 : 1, &type, 0);
    for (uint32_t i = 0; i < v->of->n; i++) {
        op->at.index[i] = v->kind[i];
    }
    op->at.masked = v->mask != 0;
    op->at.other = other != 0;
    return op;
}

// ---- Load, store, atomics
tk_vid tk_build_load(tk_bfn *f, const tk_x *x) {
    view v;
    build_view(f, x->u.load.view, has_lanes(f) && x->varying, &v);
    tk_vid other = 0;
    if (x->u.load.other) {
        other = tk_build_stretch(f, x->span, tk_build_x(f, x->u.load.other), v.type);
    }
    return emit_access(f, x->span, TK_OP_LOAD, &v, 0, NULL, other)->res[0];
}

void tk_build_store(tk_bfn *f, const tk_xs *s) {
    bool lanes = has_lanes(f) && (s->view->varying || s->value->varying);
    view v;
    build_view(f, s->view, lanes, &v);
    tk_vid value = tk_build_stretch(f, s->value->span, tk_build_x(f, s->value), v.type);
    mask_effect(f, s->span, &v, lanes);
    emit_access(f, s->span, TK_OP_STORE, &v, 1, &value, 0);
}

static tk_kindattr kind_of(tk_bfn *f, tk_builtin id) {
    static const tk_kindattr of[] = {
        [TK_BI_ATOMIC_ADD - TK_BI_ATOMIC_ADD] = TK_K_ADD,
        [TK_BI_ATOMIC_MAX - TK_BI_ATOMIC_ADD] = TK_K_MAX,
        [TK_BI_ATOMIC_MIN - TK_BI_ATOMIC_ADD] = TK_K_MIN,
        [TK_BI_ATOMIC_AND - TK_BI_ATOMIC_ADD] = TK_K_AND,
        [TK_BI_ATOMIC_OR - TK_BI_ATOMIC_ADD] = TK_K_OR,
        [TK_BI_ATOMIC_XOR - TK_BI_ATOMIC_ADD] = TK_K_XOR,
        [TK_BI_ATOMIC_XCHG - TK_BI_ATOMIC_ADD] = TK_K_XCHG,
    };
    TK_CHECK(f->arena, id >= TK_BI_ATOMIC_ADD && id <= TK_BI_ATOMIC_XCHG);
    return of[id - TK_BI_ATOMIC_ADD];
}

tk_vid tk_build_atomic(tk_bfn *f, const tk_x *x) {
    bool lanes = has_lanes(f) && x->varying;
    view v;
    build_view(f, x->u.atomic.view, lanes, &v);
    tk_vid value[2];
    TK_CHECK(f->arena, x->n >= 1 && x->n <= 2);
    for (uint32_t i = 0; i < x->n; i++) {
        value[i] = tk_build_stretch(f, x->span, tk_build_x(f, x->arg[i]), v.type);
    }
    mask_effect(f, x->span, &v, lanes);
    bool cas = x->u.atomic.id == TK_BI_ATOMIC_CAS;
    tk_op *op =
        emit_access(f, x->span, cas ? TK_OP_ATOMIC_CAS : TK_OP_ATOMIC_RMW, &v, x->n, value, 0);
    op->at.kind = cas ? (tk_kindattr)0 : kind_of(f, x->u.atomic.id);
    op->at.order = x->u.atomic.order;
    op->at.scope = x->u.atomic.scope;
    return op->res[0];
}
