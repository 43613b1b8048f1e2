// SPDX-License-Identifier: Apache-2.0
// Indices: views of tensors, inserted axes of tiles.
#include "lang/check_core.h"

static tk_value wrong_count(tk_checker *c, const tk_expr *e, const char *what, uint32_t got,
                            unsigned rank, const char *unit, const char *help) {
    tk_diag *d =
        tk_err_diag(c, e->span, "index-count", "%s has %u %s%s, but %u %s written", what, rank,
                    unit, rank == 1 ? "" : "s", got, got == 1 ? "entry is" : "entries are");
    tk_help(c->diags, d, (tk_span){0}, "%s", help);
    return tk_error_value(e->span);
}

// ---- Tiles ------------------------------------------------------------------------------------
static bool tile_entry(tk_checker *c, const tk_index *i, bool *axis) {
    bool is_new = i->kind == TK_I_EXPR && i->at && i->at->kind == TK_E_NEWAXIS;
    *axis = i->kind == TK_I_ALL;
    if (!is_new && !*axis) {
        tk_diag *d =
            tk_err_diag(c, i->span, "tile-index", "a tile is indexed only with ':' and 'newaxis'");
        tk_help(c->diags, d, (tk_span){0},
                "use 'slice(t, axis, start, n)' or 'gather(t, index, axis)'");
        return false;
    }
    if (i->where) {
        tk_err(c, i->where->span, "tile-index", "'where' stands only in the index of a tensor");
        return false;
    }
    return true;
}

static tk_value index_tile(tk_checker *c, const tk_expr *e, tk_value base) {
    if (e->u.index.other) {
        return tk_err(c, e->u.index.other->span, "tile-index",
                      "'else' stands only after the index of a tensor");
    }
    unsigned rank = 0, axes = 0;
    int64_t dim[TK_MAX_RANK];
    bool ok = true;
    for (uint32_t i = 0; i < e->u.index.entries.n; i++) {
        bool axis;
        if (!tile_entry(c, &e->u.index.entries.at[i], &axis)) {
            ok = false;
            continue;
        }
        if (rank < TK_MAX_RANK) {
            dim[rank] = axis && axes < base.type->rank ? base.type->dim[axes] : 1;
        }
        rank++;
        axes += axis;
    }
    if (!ok) {
        return tk_error_value(e->span);
    }
    if (axes != base.type->rank) {
        return wrong_count(c, e, "the tile", axes, base.type->rank, "axis given by ':'",
                           "write ':' for each axis of the tile, 'newaxis' for each that is added");
    }
    if (rank > TK_MAX_RANK) {
        return tk_err(c, e->span, "bad-rank", "a tile has at most %d axes, not %u",
                      (int)TK_MAX_RANK, rank);
    }
    if (rank == base.type->rank) {
        return base;
    }
    if (base.type->rank == 0) {
        tk_diag *d = tk_err_diag(c, e->span, "tile-index", "a scalar has no axes");
        tk_help(c->diags, d, (tk_span){0}, "write 'full([1], x)'");
        return tk_error_value(e->span);
    }
    tk_x *x =
        tk_x_new(c, TK_X_BUILTIN, e->span, tk_type_tile(c->arena, base.type->dtype, rank, dim), 1);
    x->arg[0] = tk_materialize(c, base);
    x->u.builtin.id = TK_BI_RESHAPE;
    x->u.builtin.attr.axis = TK_AXIS_ALL;
    return tk_make_value(c, x);
}

// ---- Tensors ----------------------------------------------------------------------------------

// An index: an integer scalar or tile; constants become i32, or i64 where they need it.
static tk_value index_value(tk_checker *c, const tk_expr *at) {
    tk_value v = tk_check_value(c, at);
    if (v.kind != TK_V_VALUE) {
        return v;
    }
    tk_dtype t = v.type->dtype;
    if (v.num.is_float || (t != TK_DTYPE_DEP && !tk_dtype_is_int(t))) {
        tk_diag *d = tk_err_diag(c, at->span, "type-mismatch", "an index is an integer, not %s",
                                 tk_type_text(c->arena, v.type));
        const char *s = tk_source_text(c, at->span);
        if (s && !v.untyped) {
            tk_help(c->diags, d, (tk_span){0}, "write 'i32(%s)'", s);
        }
        return tk_error_value(at->span);
    }
    if (tk_is_known_const(v) && !v.num.big && v.num.i < 0) {
        tk_diag *d = tk_warn_diag(c, at->span, "negative-index", "index %lld is outside the tensor",
                                  (long long)v.num.i);
        tk_note(c->diags, d, (tk_span){0}, "negative indices do not count from the end");
    }
    if (v.untyped) {
        bool wide = !v.dep && (v.num.i > INT32_MAX || v.num.i < INT32_MIN);
        v = tk_coerce(c, v, v.num.big ? TK_U64 : wide ? TK_I64 : TK_I32, "index");
    }
    return v;
}

static bool range_count(tk_checker *c, const tk_index *i, int64_t *count) {
    bool dep;
    if (!tk_const_int(c, tk_check_known(c, i->count), "the length of a range", count, &dep)) {
        return false;
    }
    if (dep) {
        *count = TK_DIM_DEP;
    } else if (*count < 1 || *count > TK_MAX_TILE_ELEMS) {
        tk_err(c, i->count->span, "bad-extent", "a range has 1 to %lld elements, not %lld",
               (long long)TK_MAX_TILE_ELEMS, (long long)*count);
        return false;
    }
    return true;
}

// The mask of an entry whose shape is `shape`.
static bool entry_mask(tk_checker *c, const tk_index *i, const tk_type *shape, tk_xindex *out) {
    if (!i->where) {
        return true;
    }
    tk_value m = tk_coerce(c, tk_check_value(c, i->where), TK_BOOL, "mask");
    if (m.kind != TK_V_VALUE) {
        return false;
    }
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    if (m.type->rank > shape->rank || !tk_broadcast(shape, m.type, &rank, dim) ||
        !tk_shape_fits(shape, tk_type_with_shape(c->arena, shape, rank, dim))) {
        tk_err(c, i->where->span, "shape-mismatch",
               "the mask's shape %s does not broadcast to the entry's %s",
               tk_shape_text(c->arena, m.type->rank, m.type->dim),
               tk_shape_text(c->arena, shape->rank, shape->dim));
        return false;
    }
    out->mask = tk_materialize(c, m);
    return true;
}

static bool mask_of_scalar(tk_checker *c, const tk_index *i) {
    if (i->where) {
        tk_err(c, i->where->span, "misplaced-where",
               "'where' stands after a range 'e +: n' or an index that is a tile");
        return false;
    }
    return true;
}

// One entry; *shape is its shape (rank 0 for a scalar index).
static bool tensor_entry(tk_checker *c, const tk_index *i, tk_xindex *out, const tk_type **shape) {
    if (i->kind == TK_I_ALL) {
        tk_diag *d =
            tk_err_diag(c, i->span, "tensor-index", "':' stands only in the index of a tile");
        tk_help(c->diags, d, (tk_span){0},
                "write a range whose length is known when it is compiled: '0 +: BN', where the "
                "kernel has '<BN: int = next_pow2(N)>'");
        return false;
    }
    if (i->at && i->at->kind == TK_E_NEWAXIS) {
        tk_diag *d =
            tk_err_diag(c, i->span, "tensor-index", "'newaxis' stands only in the index of a tile");
        tk_help(c->diags, d, (tk_span){0}, "read first: 'x[...][:, newaxis]'");
        return false;
    }
    tk_value v = index_value(c, i->at);
    *shape = v.type;
    bool ok = v.kind == TK_V_VALUE;
    if (i->kind == TK_I_RANGE) {
        out->kind = TK_XI_RANGE;
        ok = range_count(c, i, &out->count) && ok;
        if (ok && v.type->rank > 0) {
            tk_err(c, i->at->span, "tensor-index", "a range starts at a scalar, not at %s",
                   tk_type_text(c->arena, v.type));
            ok = false;
        }
        if (ok) {
            *shape = tk_type_tile(c->arena, TK_I32, 1, &out->count);
        }
    } else {
        out->kind = ok && v.type->rank > 0 ? TK_XI_TILE : TK_XI_SCALAR;
    }
    if (!ok) {
        return false;
    }
    out->at = tk_materialize(c, v);
    return out->kind == TK_XI_SCALAR ? mask_of_scalar(c, i) : entry_mask(c, i, *shape, out);
}

// The shape of the view from those of its entries.
static const tk_type *view_type(tk_checker *c, const tk_expr *e, tk_dtype d, uint32_t n,
                                const tk_xindex *entry, const tk_type **shape) {
    int64_t dim[TK_MAX_RANK * TK_MAX_TENSOR_RANK];
    unsigned rank = 0, tiles = 0;
    const tk_type *common = tk_scalar(c, TK_I32);
    for (uint32_t i = 0; i < n; i++) {
        unsigned r;
        int64_t both[TK_MAX_RANK];
        if (entry[i].kind != TK_XI_TILE) {
            continue;
        }
        if (!tk_broadcast(common, shape[i], &r, both)) {
            tk_err(c, e->span, "shape-mismatch", "index tiles of shapes %s and %s do not broadcast",
                   tk_shape_text(c->arena, common->rank, common->dim),
                   tk_shape_text(c->arena, shape[i]->rank, shape[i]->dim));
            return NULL;
        }
        common = tk_type_tile(c->arena, TK_I32, r, both);
        tiles++;
    }
    if (tiles > 1) {
        for (unsigned k = 0; k < common->rank; k++) {
            dim[rank++] = common->dim[k];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        bool placed = entry[i].kind == TK_XI_RANGE || (entry[i].kind == TK_XI_TILE && tiles == 1);
        for (unsigned k = 0; placed && k < shape[i]->rank; k++) {
            dim[rank++] = shape[i]->dim[k];
        }
    }
    if (rank > TK_MAX_RANK) {
        tk_err(c, e->span, "bad-rank", "this view has %u axes: a tile has at most %d", rank,
               (int)TK_MAX_RANK);
        return NULL;
    }
    if (rank == 0) {
        return tk_scalar(c, d);
    }
    return tk_shape_ok(c, e->span, rank, dim) ? tk_type_tile(c->arena, d, rank, dim) : NULL;
}

static bool lifted_ok(tk_checker *c, const tk_expr *e, tk_view *view) {
    bool tiles = false;
    for (uint32_t i = 0; i < view->n; i++) {
        view->varying |= view->entry[i].kind == TK_XI_SCALAR && view->entry[i].at->varying;
        tiles |= view->entry[i].kind != TK_XI_SCALAR;
    }
    if (!tiles || !tk_checker_lifted(c)) {
        return true;
    }
    tk_diag *d =
        tk_err_diag(c, e->span, "tile-in-lifted",
                    "'%s' is applied element by element here: it cannot index '%s' with a tile",
                    c->frame->name, view->tensor->name);
    tk_help(c->diags, d, (tk_span){0}, "index the tensor with scalars in it");
    return false;
}

static tk_value index_tensor(tk_checker *c, const tk_expr *e, tk_value base) {
    uint32_t n = e->u.index.entries.n;
    const tk_type *t = base.type;
    tk_view *view = TK_NEW(c->arena, tk_view);
    view->tensor = base.var;
    view->span = e->span;
    view->n = n;
    view->entry = TK_NEW_ARRAY(c->arena, tk_xindex, n);
    const tk_type **shape = TK_NEW_ARRAY(c->arena, const tk_type *, n);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        ok = tensor_entry(c, &e->u.index.entries.at[i], &view->entry[i], &shape[i]) && ok;
    }
    if (n != t->rank) {
        return wrong_count(c, e, tk_format(c->arena, "'%s'", base.var->name), n, t->rank,
                           "dimension",
                           "write an entry for each dimension: a number for one place along it, "
                           "'start +: length' for several");
    }
    if (!ok || !lifted_ok(c, e, view)) {
        return tk_error_value(e->span);
    }
    view->type = view_type(c, e, t->dtype, n, view->entry, shape);
    if (!view->type) {
        return tk_error_value(e->span);
    }
    tk_value v = {.kind = TK_V_VIEW, .span = e->span, .type = view->type, .view = view};
    v.varying = view->varying;
    v.other = e->u.index.other;
    return v;
}

tk_value tk_check_index(tk_checker *c, const tk_expr *e) {
    tk_value base = tk_check_known(c, e->u.index.base);
    if (base.kind == TK_V_ERROR) {
        return tk_error_value(e->span);
    }
    if (base.kind == TK_V_TENSOR) {
        return index_tensor(c, e, base);
    }
    base = tk_read(c, base);
    return base.kind == TK_V_ERROR ? tk_error_value(e->span) : index_tile(c, e, base);
}
