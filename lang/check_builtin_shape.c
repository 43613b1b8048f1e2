// SPDX-License-Identifier: Apache-2.0
// Built-in calls that join, cut and reorder tiles along an axis.
#include "lang/check_builtin.h"

// The shape of `t` with another extent on one axis; everything depends where the axis does.
static void with_extent(const tk_type *t, int axis, bool dep, int64_t extent, int64_t *dim) {
    memcpy(dim, t->dim, TK_MAX_RANK * sizeof dim[0]);
    if (dep) {
        tk_bi_dims_dep(t->rank, dim);
    } else {
        dim[axis] = extent;
    }
}

// Two tiles of one element type and rank; false after an error.
static bool two_tiles(tk_bcall *b, tk_value v[2]) {
    bool ok = tk_bi_tile(b, 0, "takes", &v[0]);
    ok = tk_bi_tile(b, 1, "takes", &v[1]) && ok;
    return ok && tk_unify(b->c, b->call->span, b->name, 2, v);
}

static tk_value shapes_differ(tk_bcall *b, const char *rule, const tk_value v[2]) {
    tk_arena *a = tk_checker_arena(b->c);
    return tk_err(b->c, b->call->span, "shape-mismatch", "'%s' %s: %s and %s", b->name, rule,
                  tk_shape_text(a, v[0].type->rank, v[0].type->dim),
                  tk_shape_text(a, v[1].type->rank, v[1].type->dim));
}

static int64_t double_or_dep(int64_t x) { return x == TK_DIM_DEP ? x : 2 * x; }

tk_value tk_rule_concat(tk_bcall *b) {
    tk_value v[2];
    if (!two_tiles(b, v)) {
        return tk_bi_error(b);
    }
    const tk_type *x = v[0].type;
    const tk_type *y = v[1].type;
    if (x->rank != y->rank) {
        return shapes_differ(b, "needs tiles of one rank", v);
    }
    int axis;
    bool dep;
    if (!tk_bi_axis(b, 2, x->rank, &axis, &dep)) {
        return tk_bi_error(b);
    }
    for (int i = 0; i < (int)x->rank && !dep; i++) {
        if (i != axis && !tk_bi_dim_eq(x->dim[i], y->dim[i])) {
            return shapes_differ(b, "needs equal extents but on its axis", v);
        }
    }
    bool known = x->dim[axis] != TK_DIM_DEP && y->dim[axis] != TK_DIM_DEP;
    int64_t dim[TK_MAX_RANK];
    with_extent(x, axis, dep, known ? x->dim[axis] + y->dim[axis] : TK_DIM_DEP, dim);
    if (!tk_bi_fits(b, x->rank, dim)) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_binary(b, tk_bi_make_type(b, x->dtype, x->rank, dim), v[0], v[1]);
    r.x->u.builtin.attr.axis = axis;
    return r;
}

// The pair of halves along an axis; the extent must be even.
static tk_value halves(tk_bcall *b, tk_value v, int axis, bool dep) {
    int64_t extent = v.type->dim[axis];
    if (!dep && extent != TK_DIM_DEP && extent % 2 != 0) {
        return tk_err(b->c, b->arg[0]->span, "shape-mismatch",
                      "'%s' needs an even extent; axis %d of %s has %lld", b->name, axis,
                      tk_shape_text(tk_checker_arena(b->c), v.type->rank, v.type->dim),
                      (long long)extent);
    }
    int64_t dim[TK_MAX_RANK];
    with_extent(v.type, axis, dep, extent == TK_DIM_DEP ? extent : extent / 2, dim);
    const tk_type *half = tk_bi_make_type(b, v.type->dtype, v.type->rank, dim);
    tk_value r = tk_bi_unary(b, tk_bi_pair(b, half, half), v);
    r.x->u.builtin.attr.axis = axis;
    return r;
}

tk_value tk_rule_split(tk_bcall *b) {
    tk_value v;
    int axis;
    bool dep;
    if (!tk_bi_tile(b, 0, "takes", &v) || !tk_bi_axis(b, 1, v.type->rank, &axis, &dep)) {
        return tk_bi_error(b);
    }
    return halves(b, v, axis, dep);
}

tk_value tk_rule_deinterleave(tk_bcall *b) {
    tk_value v;
    if (!tk_bi_tile(b, 0, "takes", &v)) {
        return tk_bi_error(b);
    }
    return halves(b, v, v.type->rank - 1, false);
}

tk_value tk_rule_interleave(tk_bcall *b) {
    tk_value v[2];
    if (!two_tiles(b, v)) {
        return tk_bi_error(b);
    }
    if (!tk_bi_shape_eq(v[0].type, v[1].type)) {
        return shapes_differ(b, "needs equal shapes", v);
    }
    const tk_type *x = v[0].type;
    int64_t dim[TK_MAX_RANK];
    with_extent(x, x->rank - 1, false, double_or_dep(x->dim[x->rank - 1]), dim);
    if (!tk_bi_fits(b, x->rank, dim)) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_binary(b, tk_bi_make_type(b, x->dtype, x->rank, dim), v[0], v[1]);
    r.x->u.builtin.attr.axis = x->rank - 1;
    return r;
}

tk_value tk_rule_flip(tk_bcall *b) {
    tk_value v;
    int axis;
    bool dep;
    if (!tk_bi_tile(b, 0, "takes", &v) || !tk_bi_axis(b, 1, v.type->rank, &axis, &dep)) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_unary(b, v.type, v);
    r.x->u.builtin.attr.axis = axis;
    return r;
}

tk_value tk_rule_slice(tk_bcall *b) {
    tk_value v;
    int axis = 0;
    int64_t start;
    int64_t n;
    bool dep = false;
    bool start_dep;
    bool n_dep;
    bool ok = tk_bi_tile(b, 0, "takes", &v);
    ok = ok && tk_bi_axis(b, 1, v.type->rank, &axis, &dep);
    ok = tk_bi_int(b, 2, 0, TK_MAX_TILE_ELEMS, &start, &start_dep) && ok;
    ok = tk_bi_int(b, 3, 1, TK_MAX_TILE_ELEMS, &n, &n_dep) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    int64_t extent = dep ? TK_DIM_DEP : v.type->dim[axis];
    // A start or count that depends is here the least that it can be.
    if (extent != TK_DIM_DEP && start + n > extent) {
        return tk_err(b->c, b->call->span, "out-of-range",
                      "'slice' of %lld elements from %lld leaves axis %d of %s, which has %lld",
                      (long long)n, (long long)start, axis,
                      tk_shape_text(tk_checker_arena(b->c), v.type->rank, v.type->dim),
                      (long long)extent);
    }
    int64_t dim[TK_MAX_RANK];
    with_extent(v.type, axis, dep, n_dep ? TK_DIM_DEP : n, dim);
    tk_value r = tk_bi_unary(b, tk_bi_make_type(b, v.type->dtype, v.type->rank, dim), v);
    r.x->u.builtin.attr.axis = axis;
    r.x->u.builtin.attr.start = start;
    r.x->u.builtin.attr.n = n;
    return r;
}

tk_value tk_rule_gather(tk_bcall *b) {
    tk_value v[2];
    bool ok = tk_bi_tile(b, 0, "takes", &v[0]);
    ok = tk_bi_tile(b, 1, "takes", &v[1]) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    const tk_type *x = v[0].type;
    const tk_type *index = v[1].type;
    if (!tk_dtype_is_int(index->dtype) && index->dtype != TK_DTYPE_DEP) {
        return tk_err(b->c, b->arg[1]->span, "type-mismatch",
                      "the index of 'gather' must be an integer tile; %s is %s",
                      tk_bi_arg_text(b, 1), tk_bi_type_text(b, v[1]));
    }
    int axis;
    bool dep;
    if (!tk_bi_axis(b, 2, x->rank, &axis, &dep)) {
        return tk_bi_error(b);
    }
    bool fits = x->rank == index->rank;
    for (int i = 0; fits && !dep && i < (int)x->rank; i++) {
        fits = i == axis || tk_bi_dim_eq(x->dim[i], index->dim[i]);
    }
    if (!fits) {
        return shapes_differ(b, "needs an index of the tile's shape but for the axis", v);
    }
    int64_t dim[TK_MAX_RANK];
    for (int i = 0; i < (int)x->rank; i++) { // of two equal extents, the one that is known
        bool own = !dep && i != axis && index->dim[i] == TK_DIM_DEP;
        dim[i] = own ? x->dim[i] : index->dim[i];
    }
    tk_value r = tk_bi_binary(b, tk_bi_make_type(b, x->dtype, x->rank, dim), v[0], v[1]);
    r.x->u.builtin.attr.axis = axis;
    return r;
}
