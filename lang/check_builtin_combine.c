// SPDX-License-Identifier: Apache-2.0
// reduce and scan with a function of the program's own, of one tile or of several together.
#include "lang/check_builtin.h"

typedef struct operands {
    uint32_t m;
    tk_value *v;
    tk_dtype *dtype;
} operands;

// The tiles of argument x: one, or a tuple of tiles of equal shapes. False after an error.
static bool read_operands(tk_bcall *b, const char *verb, operands *o) {
    tk_arena *a = tk_checker_arena(b->c);
    const tk_expr *e = b->arg[0];
    bool tuple = e->kind == TK_E_TUPLE;
    o->m = tuple ? e->u.list.n : 1;
    o->v = TK_NEW_ARRAY(a, tk_value, o->m);
    o->dtype = TK_NEW_ARRAY(a, tk_dtype, o->m);
    bool ok = true;
    for (uint32_t i = 0; i < o->m; i++) {
        const tk_expr *x = tuple ? e->u.list.at[i] : e;
        o->v[i] = tk_check_value(b->c, x);
        if (!tk_bi_tile_value(b, 0, x->span, verb, &o->v[i])) {
            ok = false;
            continue;
        }
        o->dtype[i] = o->v[i].type->dtype;
        if (ok && i > 0 && !tk_bi_shape_eq(o->v[0].type, o->v[i].type)) {
            tk_err(b->c, x->span, "shape-mismatch",
                   "'%s' of several tiles needs equal shapes: %s and %s", b->name,
                   tk_bi_type_text(b, o->v[0]), tk_bi_type_text(b, o->v[i]));
            ok = false;
        }
    }
    return ok;
}

// The instance of argument f for these operands; NULL where general checking cannot tell yet. False
// after an error.
static bool combine(tk_bcall *b, uint32_t param, const operands *o, struct tk_inst **out) {
    *out = NULL;
    tk_value f = tk_check_expr(b->c, b->arg[param]);
    if (f.kind == TK_V_NAME) {
        f = tk_read(b->c, f); // unknown
    }
    if (f.kind == TK_V_ERROR) {
        return false;
    }
    if (f.kind != TK_V_FN) {
        tk_diag *d =
            tk_err_diag(b->c, b->arg[param]->span, "type-mismatch",
                        "argument '%s' of '%s' must be a function", b->param[param].name, b->name);
        tk_bi_help_signature(b, d);
        return false;
    }
    *out = tk_combine_instance(b->c, b->arg[param]->span, f, o->m, o->dtype);
    return *out || tk_checker_general(b->c);
}

// One value, or the tuple of m.
static const tk_type *result_type(tk_bcall *b, const operands *o, unsigned rank,
                                  const int64_t *dim) {
    tk_arena *a = tk_checker_arena(b->c);
    const tk_type **t = TK_NEW_ARRAY(a, const tk_type *, o->m);
    for (uint32_t i = 0; i < o->m; i++) {
        t[i] = tk_bi_make_type(b, o->dtype[i], rank, dim);
    }
    return o->m == 1 ? t[0] : tk_type_tuple(a, o->m, t);
}

tk_value tk_rule_reduce_fn(tk_bcall *b) {
    operands o;
    int axis = TK_AXIS_ALL;
    unsigned rank = 0;
    int64_t dim[TK_MAX_RANK];
    struct tk_inst *fn = NULL;
    bool ok = read_operands(b, "reduces", &o);
    ok = ok && tk_bi_reduced(b, o.v[0].type, &axis, &rank, dim);
    if (!ok || !combine(b, 2, &o, &fn)) {
        return tk_bi_error(b);
    }
    tk_x *x = tk_bi_node(b, result_type(b, &o, rank, dim), o.m);
    for (uint32_t i = 0; i < o.m; i++) {
        tk_bi_operand(b, x, i, o.v[i]);
    }
    x->u.builtin.attr.axis = axis;
    x->u.builtin.attr.fn = fn;
    return tk_bi_result(b, x);
}

// The m scalars that an exclusive scan begins with, converted to the element types.
static bool read_init(tk_bcall *b, uint32_t param, const operands *o, tk_value *init) {
    const tk_expr *e = b->arg[param];
    bool tuple = e->kind == TK_E_TUPLE;
    if ((tuple ? e->u.list.n : 1) != o->m) {
        tk_err(b->c, e->span, "type-mismatch", "'init' of this 'scan' needs %u value%s", o->m,
               o->m == 1 ? "" : "s");
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < o->m; i++) {
        const tk_expr *x = tuple ? e->u.list.at[i] : e;
        init[i] = tk_check_value(b->c, x);
        if (init[i].kind == TK_V_VALUE && init[i].type->rank > 0) {
            init[i] = tk_err(b->c, x->span, "not-a-scalar", "'init' must be a scalar; this is %s",
                             tk_bi_type_text(b, init[i]));
        }
        if (init[i].kind == TK_V_VALUE) {
            init[i] = tk_coerce(b->c, init[i], o->dtype[i], "argument 'init'");
        }
        ok = ok && init[i].kind == TK_V_VALUE;
    }
    return ok;
}

// Whether `init` is there exactly where it is needed.
static bool init_fits(tk_bcall *b, bool exclusive) {
    if (exclusive && !b->arg[5]) {
        tk_diag *d = tk_err_diag(b->c, b->call->span, "missing-argument",
                                 "an exclusive 'scan' needs the value before the first element");
        tk_bi_help(b, d, "write 'init = ..'");
        return false;
    }
    if (!exclusive && b->arg[5]) {
        tk_diag *d = tk_err_diag(b->c, b->arg[5]->span, "surplus-argument",
                                 "'init' has no meaning without 'exclusive'");
        tk_bi_help(b, d, "write 'exclusive = true, init = ..'");
        return false;
    }
    return true;
}

// scan(x, axis, f, reverse, exclusive, init)
tk_value tk_rule_scan_fn(tk_bcall *b) {
    operands o;
    int axis = 0;
    bool reverse;
    bool exclusive;
    bool reverse_dep;
    bool exclusive_dep;
    struct tk_inst *fn = NULL;
    bool ok = read_operands(b, "scans", &o);
    bool tiles = ok;
    ok = ok && tk_bi_scan_axis(b, 1, o.v[0].type, &axis);
    ok = tk_bi_flag(b, 3, &reverse, &reverse_dep) && ok;
    bool flag = tk_bi_flag(b, 4, &exclusive, &exclusive_dep);
    ok = flag && (exclusive_dep || init_fits(b, exclusive)) && ok;
    if (!tiles) {
        return tk_bi_error(b);
    }
    tk_value *init = TK_NEW_ARRAY(tk_checker_arena(b->c), tk_value, o.m);
    ok = (!b->arg[5] || read_init(b, 5, &o, init)) && ok;
    ok = combine(b, 2, &o, &fn) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    uint32_t n = b->arg[5] ? 2 * o.m : o.m;
    const tk_type *t = o.v[0].type;
    tk_x *x = tk_bi_node(b, result_type(b, &o, t->rank, t->dim), n);
    for (uint32_t i = 0; i < n; i++) {
        tk_bi_operand(b, x, i, i < o.m ? o.v[i] : init[i - o.m]);
    }
    x->u.builtin.attr.axis = axis;
    x->u.builtin.attr.reverse = reverse;
    x->u.builtin.attr.exclusive = exclusive;
    x->u.builtin.attr.fn = fn;
    return tk_bi_result(b, x);
}
