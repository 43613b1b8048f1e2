// SPDX-License-Identifier: Apache-2.0
// Built-in calls that make tiles, and those that give the same elements another shape.
#include "lang/check_builtin.h"

tk_value tk_rule_zeros(tk_bcall *b) {
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    tk_dtype t;
    bool ok = tk_shape_arg(b->c, b->arg[0], &rank, dim);
    ok = tk_bi_type(b, 1, &t) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    return tk_bi_result(b, tk_bi_node(b, tk_bi_make_type(b, t, rank, dim), 0));
}

tk_value tk_rule_full(tk_bcall *b) {
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    tk_value v;
    bool ok = tk_shape_arg(b->c, b->arg[0], &rank, dim);
    ok = tk_bi_typed(b, 1, &v) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    if (v.type->rank > 0) {
        tk_diag *d = tk_err_diag(b->c, b->arg[1]->span, "not-a-scalar",
                                 "the value of 'full' must be a scalar; %s is %s",
                                 tk_bi_arg_text(b, 1), tk_bi_type_text(b, v));
        tk_bi_help(b, d, "write 'broadcast(%s, %s)'", tk_bi_arg_source(b, 1),
                   tk_shape_text(tk_checker_arena(b->c), rank, dim));
        return tk_bi_error(b);
    }
    return tk_bi_unary(b, tk_bi_make_type(b, v.type->dtype, rank, dim), v);
}

tk_value tk_rule_iota(tk_bcall *b) {
    int64_t n;
    bool dep;
    if (!tk_bi_int(b, 0, 1, TK_MAX_TILE_ELEMS, &n, &dep)) {
        return tk_bi_error(b);
    }
    int64_t dim[1] = {dep ? TK_DIM_DEP : n};
    tk_x *x = tk_bi_node(b, tk_bi_make_type(b, TK_I32, 1, dim), 0);
    x->u.builtin.attr.n = n;
    return tk_bi_result(b, x);
}

tk_value tk_rule_reshape(tk_bcall *b) {
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    tk_value v;
    bool ok = tk_bi_tile(b, 0, "reshapes", &v);
    ok = tk_shape_arg(b->c, b->arg[1], &rank, dim) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    const tk_type *to = tk_bi_make_type(b, v.type->dtype, rank, dim);
    int64_t have = tk_type_elems(v.type);
    int64_t want = tk_type_elems(to);
    if (have > 0 && want > 0 && have != want) {
        tk_arena *a = tk_checker_arena(b->c);
        return tk_err(b->c, b->call->span, "shape-mismatch",
                      "'reshape' keeps the number of elements: %s has %lld, %s has %lld",
                      tk_shape_text(a, v.type->rank, v.type->dim), (long long)have,
                      tk_shape_text(a, rank, dim), (long long)want);
    }
    return tk_bi_unary(b, to, v);
}

// The axes of permute; false after an error. *dep where one depends.
static bool permutation(tk_bcall *b, unsigned rank, uint8_t *perm, bool *dep) {
    const tk_expr *e = b->arg[1];
    *dep = false;
    if (e->kind != TK_E_LIST) {
        tk_err(b->c, e->span, "type-mismatch", "the axes of 'permute' are a list: '[1, 0]'");
        return false;
    }
    if (e->u.list.n != rank) {
        tk_err(b->c, e->span, "bad-axis", "'permute' needs each axis once: %u axes for rank %u",
               e->u.list.n, rank);
        return false;
    }
    int seen[TK_MAX_RANK] = {0}; // 1 + position in the list
    bool ok = true;
    for (unsigned i = 0; i < rank; i++) {
        int axis;
        bool d;
        if (!tk_bi_axis_of(b, e->u.list.at[i], rank, &axis, &d)) {
            ok = false;
            continue;
        }
        *dep |= d;
        perm[i] = (uint8_t)axis;
        if (!d && seen[axis]) {
            tk_diag *g = tk_err_diag(b->c, e->u.list.at[i]->span, "bad-axis",
                                     "axis %d stands twice in the axes of 'permute'", axis);
            tk_note(tk_checker_diags(b->c), g, e->u.list.at[seen[axis] - 1]->span,
                    "the first one is here");
            ok = false;
        }
        seen[axis] = d ? seen[axis] : (int)i + 1;
    }
    return ok;
}

tk_value tk_rule_permute(tk_bcall *b) {
    tk_value v;
    uint8_t perm[TK_MAX_RANK] = {0};
    bool dep;
    if (!tk_bi_tile(b, 0, "takes", &v) || !permutation(b, v.type->rank, perm, &dep)) {
        return tk_bi_error(b);
    }
    int64_t dim[TK_MAX_RANK];
    for (unsigned i = 0; i < v.type->rank; i++) {
        dim[i] = dep ? TK_DIM_DEP : v.type->dim[perm[i]];
    }
    tk_x *x = tk_bi_node(b, tk_bi_make_type(b, v.type->dtype, v.type->rank, dim), 1);
    tk_bi_operand(b, x, 0, v);
    memcpy(x->u.builtin.attr.perm, perm, sizeof perm);
    return tk_bi_result(b, x);
}

tk_value tk_rule_transpose(tk_bcall *b) {
    tk_value v;
    if (!tk_bi_tile(b, 0, "takes", &v)) {
        return tk_bi_error(b);
    }
    unsigned rank = v.type->rank;
    if (rank < 2) {
        tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "shape-mismatch",
                                 "'transpose' exchanges two axes; %s is %s, which has one",
                                 tk_bi_arg_text(b, 0), tk_bi_type_text(b, v));
        tk_bi_help(b, d, "'%s[:, newaxis]' makes a column", tk_bi_arg_source(b, 0));
        return tk_bi_error(b);
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, v.type->dim, sizeof dim);
    dim[rank - 1] = v.type->dim[rank - 2];
    dim[rank - 2] = v.type->dim[rank - 1];
    return tk_bi_unary(b, tk_bi_make_type(b, v.type->dtype, rank, dim), v);
}

tk_value tk_rule_broadcast(tk_bcall *b) {
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    tk_value v;
    bool ok = tk_bi_typed(b, 0, &v);
    ok = tk_shape_arg(b->c, b->arg[1], &rank, dim) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    bool fits = v.type->rank <= rank;
    for (unsigned i = 0; fits && i < v.type->rank; i++) { // from the right
        int64_t from = v.type->dim[v.type->rank - 1 - i];
        fits = from == 1 || tk_bi_dim_eq(from, dim[rank - 1 - i]);
    }
    if (!fits) {
        tk_arena *a = tk_checker_arena(b->c);
        tk_diag *d =
            tk_err_diag(b->c, b->call->span, "shape-mismatch", "shape %s does not broadcast to %s",
                        tk_shape_text(a, v.type->rank, v.type->dim), tk_shape_text(a, rank, dim));
        tk_bi_help(b, d, "aligned at the right, each extent is 1 or that of the result");
        return tk_bi_error(b);
    }
    return tk_bi_unary(b, tk_bi_make_type(b, v.type->dtype, rank, dim), v);
}
