// SPDX-License-Identifier: Apache-2.0
// Values of the walk: making them and their nodes, reading views, compile-time numbers.
#include "lang/check_core.h"

#include <math.h>
#include <string.h>

const tk_type *tk_scalar(tk_checker *c, tk_dtype t) { return tk_type_scalar(c->arena, t); }

// ---- Nodes ----------------------------------------------------------------------------------
tk_x *tk_x_new(tk_checker *c, tk_xkind kind, tk_span at, const tk_type *type, uint32_t narg) {
    tk_x *x = TK_NEW(c->arena, tk_x);
    x->kind = kind;
    x->span = at;
    x->type = type;
    x->n = narg;
    x->arg = TK_NEW_ARRAY(c->arena, tk_x *, narg);
    return x;
}

tk_x *tk_x_elem(tk_checker *c, tk_span at, tk_numop op, const tk_type *type, tk_x *a, tk_x *b,
                tk_x *d) {
    tk_x *const arg[3] = {a, b, d};
    uint32_t n = d ? 3 : b ? 2 : 1;
    tk_x *x = tk_x_new(c, TK_X_ELEM, at, type, n);
    x->u.elem = op;
    for (uint32_t i = 0; i < n; i++) {
        x->arg[i] = arg[i];
        x->varying |= arg[i]->varying;
    }
    return x;
}

tk_x *tk_x_cast(tk_checker *c, tk_span at, tk_dtype to, tk_x *x) {
    if (x->type->dtype == to) {
        return x;
    }
    if (x->kind == TK_X_CONST && to < TK_DTYPE_COUNT && x->type->dtype < TK_DTYPE_COUNT) {
        tk_x *k = tk_x_new(c, TK_X_CONST, at, tk_scalar(c, to), 0);
        k->u.konst = tk_cast(x->u.konst, to);
        return k;
    }
    tk_x *y = tk_x_new(c, TK_X_CAST, at, tk_type_with_dtype(c->arena, x->type, to), 1);
    y->arg[0] = x;
    y->varying = x->varying;
    return y;
}

tk_var *tk_var_new(tk_checker *c, tk_var_kind kind, tk_ident id, const tk_type *type) {
    tk_var *v = TK_NEW(c->arena, tk_var);
    v->kind = kind;
    v->name = id.name;
    v->span = id.span;
    v->type = type;
    v->is_given = true;
    v->owner = c->frame->inst;
    return v;
}

// ---- Numbers --------------------------------------------------------------------------------
tk_const tk_number_const(tk_number n) {
    if (n.is_bool) {
        return tk_const_bool(n.i != 0);
    }
    if (n.is_float) {
        return tk_const_f64(TK_F64, n.f);
    }
    return n.big ? tk_const_u64(TK_U64, (uint64_t)n.i) : tk_const_i64(TK_I64, n.i);
}

tk_number tk_const_number(tk_const k) {
    tk_number n = {0};
    if (tk_dtype_is_float(k.dtype)) {
        n.is_float = true;
        n.f = tk_const_as_f64(k);
    } else {
        n.is_bool = k.dtype == TK_BOOL;
        n.big = k.dtype == TK_U64 && (int64_t)k.bits < 0;
        n.i = n.big ? (int64_t)k.bits : tk_const_as_i64(k);
    }
    return n;
}

bool tk_is_known_const(tk_value v) { return v.kind == TK_V_VALUE && v.is_const && !v.dep; }

// ---- Values ---------------------------------------------------------------------------------
tk_value tk_make_value(tk_checker *c, tk_x *x) {
    tk_value v = {.kind = TK_V_VALUE, .span = x->span, .type = x->type, .x = x};
    v.varying = x->varying;
    switch (x->type->kind) {
    case TK_T_VOID:
        v.kind = TK_V_VOID;
        break;
    case TK_T_TUPLE:
        v.kind = TK_V_TUPLE;
        v.n = x->type->n;
        break;
    case TK_T_ERROR:
        return tk_error_value(x->span);
    case TK_T_VALUE:
    case TK_T_TENSOR:
        break;
    }
    if (x->kind == TK_X_CONST) {
        return tk_make_const(c, x->span, x->u.konst);
    }
    return v;
}

tk_value tk_make_number(tk_checker *c, tk_span at, tk_number n, bool dep) {
    tk_value v = {.kind = TK_V_VALUE, .span = at, .is_const = true, .untyped = !n.is_bool};
    v.num = n;
    v.dep = dep;
    v.type = tk_scalar(c, n.is_bool ? TK_BOOL : n.is_float ? TK_F32 : TK_I32);
    return v;
}

tk_value tk_make_int(tk_checker *c, tk_span at, int64_t i) {
    return tk_make_number(c, at, (tk_number){.i = i}, false);
}

tk_value tk_make_bits(tk_checker *c, tk_span at, tk_dtype t) {
    const bool dep = t == TK_DTYPE_DEP;
    return tk_make_number(c, at, (tk_number){.i = dep ? 0 : tk_dtype_bits(t)}, dep);
}

tk_value tk_make_const(tk_checker *c, tk_span at, tk_const k) {
    tk_x *x = tk_x_new(c, TK_X_CONST, at, tk_scalar(c, k.dtype), 0);
    x->u.konst = k;
    tk_value v = {.kind = TK_V_VALUE, .span = at, .type = x->type, .is_const = true, .x = x};
    v.num = tk_const_number(k);
    return v;
}

tk_value tk_make_bool(tk_checker *c, tk_span at, bool b) {
    return tk_make_const(c, at, tk_const_bool(b));
}

tk_value tk_dep_const(tk_checker *c, tk_span at, tk_dtype t, bool untyped) {
    tk_number n = {.is_float = tk_dtype_is_float(t), .is_bool = t == TK_BOOL};
    tk_value v = tk_make_number(c, at, n, true);
    v.type = tk_scalar(c, t);
    v.untyped = untyped && !n.is_bool;
    return v;
}

// A node that stands for what only general checking has.
static tk_x *dependent_node(tk_checker *c, tk_span at, const tk_type *type) {
    tk_x *x = tk_x_new(c, TK_X_VAR, at, type, 0);
    x->u.var = tk_var_new(c, TK_VAR_LOCAL, (tk_ident){"?", at}, type);
    return x;
}

tk_value tk_make_dep(tk_checker *c, tk_span at, const tk_type *type) {
    return tk_make_value(c, dependent_node(c, at, type));
}

tk_value tk_type_value(tk_span at, tk_dtype t) {
    tk_value v = {.kind = TK_V_TYPE, .span = at, .dtype = t, .dep = t == TK_DTYPE_DEP};
    v.type = tk_type_void();
    return v;
}

tk_value tk_fn_value(tk_span at, const tk_fnval *fv) {
    tk_value v = {.kind = TK_V_FN, .span = at, .fn = fv, .dep = fv->kind == TK_FV_DEP};
    v.type = tk_type_void();
    return v;
}

tk_value tk_var_value(tk_checker *c, tk_span at, tk_var *var) {
    tk_value v = {.kind = TK_V_TENSOR, .span = at, .type = var->type, .var = var};
    if (var->type->kind == TK_T_TENSOR) {
        return v;
    }
    tk_x *x = tk_x_new(c, TK_X_VAR, at, var->type, 0);
    x->u.var = var;
    x->varying = var->varying;
    v = tk_make_value(c, x);
    v.var = var;
    return v;
}

tk_value tk_dim_value(tk_checker *c, tk_span at, tk_var *tensor, uint32_t axis) {
    tk_x *x = tk_x_new(c, TK_X_DIM, at, tk_scalar(c, TK_I32), 0);
    x->u.dim.tensor = tensor;
    x->u.dim.axis = axis;
    return tk_make_value(c, x);
}

tk_x *tk_materialize(tk_checker *c, tk_value v) {
    if (v.kind != TK_V_VALUE) {
        TK_CHECK(c->arena, v.kind == TK_V_ERROR || v.x);
        return v.x ? v.x : dependent_node(c, v.span, tk_type_error());
    }
    if (v.untyped && !v.dep) {
        v = tk_coerce(c, v, v.type->dtype, "value");
    }
    if (v.kind != TK_V_VALUE || !v.x) {
        return dependent_node(c, v.span, v.type);
    }
    return v.x;
}

// ---- Reading --------------------------------------------------------------------------------
static bool read_else(tk_checker *c, tk_value v, tk_x *load) {
    if (!v.other) {
        return true;
    }
    tk_value o = tk_check_value(c, v.other);
    if (o.kind == TK_V_ERROR) {
        return false;
    }
    o = tk_coerce(c, o, v.type->dtype, "value of 'else'");
    if (o.kind == TK_V_ERROR) {
        return false;
    }
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    const tk_type *t = v.type;
    bool fits = o.type->rank <= t->rank && tk_broadcast(t, o.type, &rank, dim);
    fits = fits && tk_shape_fits(t, tk_type_with_shape(c->arena, t, rank, dim));
    if (!fits) {
        tk_err(c, o.span, "shape-mismatch", "'else' of shape %s does not broadcast to %s",
               tk_shape_text(c->arena, o.type->rank, o.type->dim),
               tk_shape_text(c->arena, t->rank, t->dim));
        return false;
    }
    load->u.load.other = tk_materialize(c, o);
    load->varying |= o.varying;
    return true;
}

static tk_value read_view(tk_checker *c, tk_value v) {
    const tk_var *t = v.view->tensor;
    if (t->type->access == TK_OUT) {
        tk_diag *d = tk_err_diag(c, v.span, "read-of-out",
                                 "'%s' is an 'out' tensor: it cannot be read", t->name);
        tk_note(c->diags, d, t->span, "'%s' is declared here", t->name);
        tk_help(c->diags, d, (tk_span){0}, "declare it 'inout' to read and write it");
        return tk_error_value(v.span);
    }
    tk_x *x = tk_x_new(c, TK_X_LOAD, v.span, v.type, 0);
    x->u.load.view = v.view;
    x->varying = v.varying;
    if (!read_else(c, v, x)) {
        return tk_error_value(v.span);
    }
    return tk_make_value(c, x);
}

static tk_value not_a_value(tk_checker *c, tk_value v, const char *what, const char *help) {
    const char *text = tk_source_text(c, v.span);
    tk_diag *d = text ? tk_err_diag(c, v.span, "not-a-value", "'%s' is %s", text, what)
                      : tk_err_diag(c, v.span, "not-a-value", "this is %s", what);
    if (help) {
        tk_help(c->diags, d, (tk_span){0}, "%s", help);
    }
    return tk_error_value(v.span);
}

static const char *index_help(tk_checker *c, const tk_var *t) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    tk_buf_fmt(&b, "index it: '%s[", t->name);
    for (unsigned i = 0; i < t->type->rank; i++) {
        tk_buf_str(&b, i + 1 < t->type->rank ? "i, " : "j +: N");
    }
    tk_buf_str(&b, "]'");
    return tk_buf_text(&b);
}

tk_value tk_read(tk_checker *c, tk_value v) {
    switch (v.kind) {
    case TK_V_ERROR:
    case TK_V_VALUE:
        return v;
    case TK_V_VIEW:
        return read_view(c, v);
    case TK_V_TENSOR:
        return not_a_value(c, v, "a tensor", index_help(c, v.var));
    case TK_V_TYPE:
        return not_a_value(c, v, "a type, not a value", "a cast is written 'T(x)'");
    case TK_V_FN:
        return not_a_value(c, v, "a function, not a value", "call it");
    case TK_V_LIST:
        return not_a_value(c, v, "a list, not a value", NULL);
    case TK_V_TUPLE:
        return not_a_value(c, v, tk_format(c->arena, "%u values where one is wanted", v.n),
                           "take them apart: 'let (a, b) = ...;'");
    case TK_V_VOID:
        return not_a_value(c, v, "a call that gives no value", NULL);
    case TK_V_NAME:
        tk_unknown_name(c, v.span, v.name, "name");
        return tk_error_value(v.span);
    }
    return v;
}

// ---- Compile-time values --------------------------------------------------------------------
static bool not_known(tk_checker *c, tk_value v, const char *what) {
    tk_diag *d = tk_err_diag(c, v.span, "not-constant", "%s must be known at compile time", what);
    const tk_x *x = v.x;
    if (x && x->kind == TK_X_DIM) {
        tk_help(
            c->diags, d, (tk_span){0},
            "this is a run-time size; a compile-time parameter can be it, 'kernel k<N: int>(..)', "
            "or cover it, 'kernel k<BN: int = next_pow2(N)>(..)'");
    } else if (x && x->kind == TK_X_VAR && x->u.var->name && x->u.var->span.file) {
        tk_note(c->diags, d, x->u.var->span, "'%s' is a run-time value, declared here",
                x->u.var->name);
    }
    return false;
}

bool tk_const_int(tk_checker *c, tk_value v, const char *what, int64_t *out, bool *dep) {
    *out = 0;
    *dep = false;
    v = tk_read(c, v);
    if (v.kind == TK_V_ERROR) {
        return false;
    }
    if (!v.is_const) {
        if (v.type->dtype == TK_DTYPE_DEP && v.type->rank == 0 && v.x && v.x->kind == TK_X_CONST) {
            *dep = true;
            return true;
        }
        return not_known(c, v, what);
    }
    if (v.num.is_float || v.num.is_bool) {
        tk_err(c, v.span, "type-mismatch", "%s must be an integer, not %s", what,
               v.num.is_bool ? "a bool" : "a float");
        return false;
    }
    *dep = v.dep;
    if (!v.dep && v.num.big) {
        tk_err(c, v.span, "constant-range", "%s is too large: %s", what, tk_number_text(c, v.num));
        return false;
    }
    *out = v.dep ? 0 : v.num.i;
    return true;
}

bool tk_const_truth(tk_checker *c, tk_value v, const char *what, bool *out, bool *dep) {
    *out = false;
    *dep = false;
    v = tk_read(c, v);
    if (v.kind == TK_V_ERROR) {
        return false;
    }
    if (!v.is_const) {
        return not_known(c, v, what);
    }
    if (v.type->dtype != TK_BOOL && v.type->dtype != TK_DTYPE_DEP) {
        tk_err(c, v.span, "type-mismatch", "%s must be a bool, not %s", what,
               tk_type_text(c->arena, v.type));
        return false;
    }
    *dep = v.dep;
    *out = !v.dep && v.num.i != 0;
    return true;
}

static bool extent(tk_checker *c, const tk_expr *e, int64_t *dim) {
    bool dep;
    if (!tk_const_int(c, tk_check_known(c, e), "an extent", dim, &dep)) {
        return false;
    }
    if (dep) {
        *dim = TK_DIM_DEP;
    } else if (*dim < 1) {
        tk_err(c, e->span, "bad-extent", "an extent must be at least 1, not %lld", (long long)*dim);
        return false;
    }
    return true;
}

bool tk_shape_ok(tk_checker *c, tk_span at, unsigned rank, const int64_t *dim) {
    int64_t n = 1;
    for (unsigned i = 0; i < rank; i++) {
        int64_t d = dim[i] == TK_DIM_DEP ? 1 : dim[i];
        if (n > TK_MAX_TILE_ELEMS / d) {
            tk_err(c, at, "tile-too-large", "a tile of shape %s has more than %lld elements",
                   tk_shape_text(c->arena, rank, dim), (long long)TK_MAX_TILE_ELEMS);
            return false;
        }
        n *= d;
    }
    return true;
}

bool tk_shape_list(tk_checker *c, tk_span at, uint32_t n, tk_expr *const *e, unsigned *rank,
                   int64_t *dim) {
    if (n < 1 || n > TK_MAX_RANK) {
        tk_err(c, at, "bad-rank", "a tile has 1 to %d axes, not %u", (int)TK_MAX_RANK, n);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        ok = extent(c, e[i], &dim[i]) && ok;
    }
    *rank = n;
    return ok && tk_shape_ok(c, at, n, dim);
}

bool tk_shape_arg(tk_checker *c, const tk_expr *e, unsigned *rank, int64_t *dim) {
    if (e->kind != TK_E_LIST) {
        const char *text = tk_source_text(c, e->span);
        tk_diag *d = tk_err_diag(c, e->span, "not-a-shape", "a shape is a list of extents");
        tk_help(c->diags, d, (tk_span){0}, "write '[%s]'", text ? text : "N");
        return false;
    }
    return tk_shape_list(c, e->span, e->u.list.n, e->u.list.at, rank, dim);
}
