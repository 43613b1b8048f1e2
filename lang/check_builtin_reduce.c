// SPDX-License-Identifier: Apache-2.0
// Built-in calls that reduce, scan, sort and count, with the language's own operations.
#include "lang/check_builtin.h"

// What sum, prod and their scans compute in.
static tk_dtype sum_dtype(tk_dtype t) {
    if (tk_dtype_is_narrow_float(t)) {
        return TK_F32;
    }
    switch (tk_dtype_class(t)) {
    case TK_CLASS_BOOL:
        return TK_I32;
    case TK_CLASS_SINT:
        return tk_dtype_bits(t) < 32 ? TK_I32 : t;
    case TK_CLASS_UINT:
        return tk_dtype_bits(t) < 32 ? TK_U32 : t;
    case TK_CLASS_FLOAT:
    case TK_CLASS_NONE:
        break;
    }
    return t;
}

static bool is_sum(tk_builtin id) {
    return id == TK_BI_SUM || id == TK_BI_PROD || id == TK_BI_CUMSUM || id == TK_BI_CUMPROD;
}

// The element types that a built-in takes; false after an error.
static bool takes_dtype(tk_bcall *b, tk_value v) {
    tk_dtype t = v.type->dtype;
    if (t == TK_DTYPE_DEP || is_sum(b->id)) {
        return true;
    }
    const char *want;
    if (b->id == TK_BI_ANY || b->id == TK_BI_ALL) {
        if (t == TK_BOOL) {
            return true;
        }
        want = "bool";
    } else if (b->id == TK_BI_XOR) {
        if (t == TK_BOOL || tk_dtype_is_int(t)) {
            return true;
        }
        want = "integers and bool";
    } else {
        if (t != TK_BOOL) {
            return true;
        }
        want = "numbers";
    }
    const char *name = tk_bi_arg_source(b, 0);
    tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "type-mismatch", "'%s' takes %s; %s is %s",
                             b->name, want, tk_bi_arg_text(b, 0), tk_bi_type_text(b, v));
    if (b->id == TK_BI_ANY || b->id == TK_BI_ALL) {
        tk_bi_help(b, d, "write '%s(%s != 0)'", b->name, name);
    } else if (b->id == TK_BI_MIN || b->id == TK_BI_MAX) {
        tk_bi_help(b, d, "write '%s(%s)'", b->id == TK_BI_MIN ? "all" : "any", name);
    } else if (t == TK_BOOL) {
        tk_bi_help(b, d, "write 'i32(%s)'", name);
    }
    return false;
}

// The axis of a reduction: parameter 1. Gives the result's shape too.
bool tk_bi_reduced(tk_bcall *b, const tk_type *t, int *axis, unsigned *rank, int64_t *dim) {
    *axis = TK_AXIS_ALL;
    *rank = 0;
    if (!b->arg[1]) {
        return true;
    }
    bool dep;
    if (!tk_bi_axis(b, 1, t->rank, axis, &dep)) {
        return false;
    }
    *rank = t->rank;
    memcpy(dim, t->dim, t->rank * sizeof dim[0]);
    if (dep) {
        tk_bi_dims_dep(t->rank, dim);
    } else {
        dim[*axis] = 1;
    }
    return true;
}

// The tile that is reduced, along which axis, and the result's shape. False after an error.
static bool reduced_tile(tk_bcall *b, tk_value *v, int *axis, unsigned *rank, int64_t *dim) {
    if (!tk_bi_tile(b, 0, "reduces", v)) {
        return false;
    }
    bool ok = takes_dtype(b, *v);
    return tk_bi_reduced(b, v->type, axis, rank, dim) && ok;
}

tk_value tk_rule_reduce(tk_bcall *b) {
    tk_value v;
    int axis;
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    if (!reduced_tile(b, &v, &axis, &rank, dim)) {
        return tk_bi_error(b);
    }
    tk_dtype in = v.type->dtype;
    tk_dtype acc = is_sum(b->id) ? sum_dtype(in) : in;
    tk_x *x = tk_bi_node(b, tk_bi_make_type(b, acc, rank, dim), 1);
    tk_bi_operand(b, x, 0, v);
    x->arg[0] = tk_x_cast(b->c, b->call->span, acc, x->arg[0]);
    x->u.builtin.attr.axis = axis;
    return tk_bi_result(b,
                        tk_dtype_is_narrow_float(in) ? tk_x_cast(b->c, b->call->span, in, x) : x);
}

tk_value tk_rule_argreduce(tk_bcall *b) {
    tk_value v;
    int axis;
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    if (!reduced_tile(b, &v, &axis, &rank, dim)) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_unary(b, tk_bi_make_type(b, TK_I32, rank, dim), v);
    r.x->u.builtin.attr.axis = axis;
    return r;
}

bool tk_bi_scan_axis(tk_bcall *b, uint32_t i, const tk_type *t, int *axis) {
    bool dep;
    *axis = 0;
    if (b->arg[i]) {
        return tk_bi_axis(b, i, t->rank, axis, &dep);
    }
    if (t->rank == 1) {
        return true;
    }
    tk_diag *d = tk_err_diag(b->c, b->call->span, "missing-argument",
                             "'%s' of a tile of rank %u needs an axis", b->name, t->rank);
    tk_bi_help(b, d, "write 'axis = %d'", (int)t->rank - 1);
    return false;
}

// cumsum(x, axis, reverse, exclusive) and its like.
tk_value tk_rule_scan(tk_bcall *b) {
    tk_value v;
    int axis = 0;
    bool reverse;
    bool exclusive;
    bool dep;
    bool ok = tk_bi_tile(b, 0, "scans", &v);
    ok = ok && takes_dtype(b, v) && tk_bi_scan_axis(b, 1, v.type, &axis);
    ok = tk_bi_flag(b, 2, &reverse, &dep) && ok;
    ok = tk_bi_flag(b, 3, &exclusive, &dep) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    tk_dtype in = v.type->dtype;
    tk_dtype acc = is_sum(b->id) ? sum_dtype(in) : in;
    tk_x *x = tk_bi_node(b, tk_type_with_dtype(tk_checker_arena(b->c), v.type, acc), 1);
    tk_bi_operand(b, x, 0, v);
    x->arg[0] = tk_x_cast(b->c, b->call->span, acc, x->arg[0]);
    x->u.builtin.attr.axis = axis;
    x->u.builtin.attr.reverse = reverse;
    x->u.builtin.attr.exclusive = exclusive;
    return tk_bi_result(b,
                        tk_dtype_is_narrow_float(in) ? tk_x_cast(b->c, b->call->span, in, x) : x);
}

tk_value tk_rule_sort(tk_bcall *b) {
    tk_value v;
    int axis = 0;
    bool descending;
    bool dep;
    bool ok = tk_bi_tile(b, 0, "sorts", &v);
    ok = ok && takes_dtype(b, v) && tk_bi_axis(b, 1, v.type->rank, &axis, &dep);
    ok = tk_bi_flag(b, 2, &descending, &dep) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_unary(b, v.type, v);
    r.x->u.builtin.attr.axis = axis;
    r.x->u.builtin.attr.descending = descending;
    return r;
}

tk_value tk_rule_topk(tk_bcall *b) {
    tk_value v;
    int axis = 0;
    int64_t k;
    bool axis_dep = false;
    bool k_dep;
    bool ok = tk_bi_tile(b, 0, "takes", &v);
    ok = ok && takes_dtype(b, v) && tk_bi_axis(b, 2, v.type->rank, &axis, &axis_dep);
    int64_t extent = ok && !axis_dep ? v.type->dim[axis] : TK_DIM_DEP;
    ok = tk_bi_int(b, 1, 1, extent == TK_DIM_DEP ? TK_MAX_TILE_ELEMS : extent, &k, &k_dep) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, v.type->dim, sizeof dim);
    if (axis_dep) {
        tk_bi_dims_dep(v.type->rank, dim);
    } else {
        dim[axis] = k_dep ? TK_DIM_DEP : k;
    }
    const tk_type *values = tk_bi_make_type(b, v.type->dtype, v.type->rank, dim);
    const tk_type *places = tk_bi_make_type(b, TK_I32, v.type->rank, dim);
    tk_value r = tk_bi_unary(b, tk_bi_pair(b, values, places), v);
    r.x->u.builtin.attr.axis = axis;
    r.x->u.builtin.attr.n = k;
    return r;
}

tk_value tk_rule_histogram(tk_bcall *b) {
    tk_value v;
    int64_t bins;
    bool dep;
    bool ok = tk_bi_tile(b, 0, "counts", &v);
    if (ok && !tk_dtype_is_int(v.type->dtype) && v.type->dtype != TK_DTYPE_DEP) {
        tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "type-mismatch",
                                 "'histogram' counts integers; %s is %s", tk_bi_arg_text(b, 0),
                                 tk_bi_type_text(b, v));
        tk_bi_help(b, d, "write 'i32(%s)'", tk_bi_arg_source(b, 0));
        ok = false;
    }
    ok = tk_bi_int(b, 1, 1, TK_MAX_TILE_ELEMS, &bins, &dep) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    int64_t dim[1] = {dep ? TK_DIM_DEP : bins};
    tk_value r = tk_bi_unary(b, tk_bi_make_type(b, TK_I32, 1, dim), v);
    r.x->u.builtin.attr.n = bins;
    return r;
}
