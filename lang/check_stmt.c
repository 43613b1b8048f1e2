// SPDX-License-Identifier: Apache-2.0
// Statements: bindings, assignments, results. Control flow is in check_flow.c.
#include "lang/check_core.h"

tk_xs *tk_emit(tk_checker *c, tk_xs_kind kind, tk_span at) {
    tk_xs *s = TK_NEW(c->arena, tk_xs);
    s->kind = kind;
    s->span = at;
    tk_vec_push(c->arena, &c->frame->block->list, s);
    return s;
}

// ---- Varying variables --------------------------------------------------------------------------
static bool known_varying(const tk_frame *f, tk_span at) {
    for (uint32_t i = 0; i < f->varying.n; i++) {
        if (f->varying.at[i].begin == at.begin && f->varying.at[i].file == at.file) {
            return true;
        }
    }
    return false;
}

// A variable that turns out to vary may have been used before: the body is walked once more with
// the variable varying from its declaration on.
static void make_varying(tk_checker *c, tk_var *var) {
    if (!var->varying) {
        var->varying = true;
        tk_vec_push(c->arena, &c->frame->varying, var->span);
        c->frame->again = true;
    }
}

// ---- let and var --------------------------------------------------------------------------------
static tk_var *declare(tk_checker *c, tk_ident id, const tk_type *type, bool is_mutable,
                       bool varying) {
    tk_var *v = tk_var_new(c, TK_VAR_LOCAL, id, type);
    v->is_mutable = is_mutable;
    v->varying = varying || known_varying(c->frame, id.span);
    (void)tk_bind_name(c, c->scope, id, tk_var_value(c, id.span, v));
    return v;
}

static void bind_failed(tk_checker *c, const tk_stmt *s) {
    for (uint32_t i = 0; i < s->u.bind.names.n; i++) {
        tk_ident id = s->u.bind.names.at[i];
        (void)tk_bind_name(c, c->scope, id, tk_error_value(id.span));
    }
}

// The value with its default type where it is an untyped constant.
static tk_value typed(tk_checker *c, tk_value v) {
    return v.kind == TK_V_VALUE && v.untyped ? tk_coerce(c, v, v.type->dtype, "constant") : v;
}

static void bind_one(tk_checker *c, const tk_stmt *s, tk_ident id, tk_value v) {
    bool is_var = s->kind == TK_S_VAR;
    v = typed(c, v);
    if (v.kind != TK_V_VALUE) {
        (void)tk_bind_name(c, c->scope, id, tk_error_value(id.span));
        return;
    }
    if (v.is_const && !is_var) {
        v.var = NULL;
        (void)tk_bind_name(c, c->scope, id, v);
        return;
    }
    tk_x *x = tk_materialize(c, v);
    tk_var *var = declare(c, id, v.type, is_var, v.varying);
    tk_xs *out = tk_emit(c, TK_XS_LET, s->span);
    out->nvar = 1;
    out->var = TK_NEW_ARRAY(c->arena, tk_var *, 1);
    out->var[0] = var;
    out->value = x;
}

static void bind_parts(tk_checker *c, const tk_stmt *s, tk_value v) {
    uint32_t n = s->u.bind.names.n;
    if (v.item) {
        for (uint32_t i = 0; i < n; i++) {
            bind_one(c, s, s->u.bind.names.at[i], tk_read(c, v.item[i]));
        }
        return;
    }
    tk_var **var = TK_NEW_ARRAY(c->arena, tk_var *, n);
    for (uint32_t i = 0; i < n; i++) {
        tk_ident id = s->u.bind.names.at[i];
        var[i] = declare(c, id, v.type->elem[i], s->kind == TK_S_VAR, v.x->varying);
    }
    tk_xs *out = tk_emit(c, TK_XS_LET, s->span);
    out->nvar = n;
    out->var = var;
    out->value = v.x;
}

static void bind(tk_checker *c, const tk_stmt *s) {
    uint32_t n = s->u.bind.names.n;
    tk_value v = tk_check_known(c, s->u.bind.value);
    const tk_type *want = s->u.bind.type ? tk_resolve_type(c, s->u.bind.type) : NULL;
    if (v.kind == TK_V_ERROR || (s->u.bind.type && !want)) {
        bind_failed(c, s);
        return;
    }
    if (n == 1) {
        v = want ? tk_fit(c, v, want,
                          tk_format(c->arena, "value of '%s'", s->u.bind.names.at[0].name))
                 : tk_read(c, v);
        bind_one(c, s, s->u.bind.names.at[0], v);
        return;
    }
    if (v.kind != TK_V_TUPLE || v.n != n || want) {
        if (want) {
            tk_err(c, s->u.bind.type->span, "bad-type", "a type is written for one name only");
        } else if (v.kind == TK_V_TUPLE) {
            tk_err(c, s->u.bind.value->span, "result-count", "%u names for %u values", n, v.n);
        } else {
            tk_err(c, s->u.bind.value->span, "result-count", "%u names for one value: %s", n,
                   tk_value_what(c, v));
        }
        bind_failed(c, s);
        return;
    }
    bind_parts(c, s, v);
}

// ---- Assignment -----------------------------------------------------------------------------
static const char *kind_text(const tk_binding *b) {
    const tk_value *v = &b->value;
    if (v->kind == TK_V_TENSOR) {
        return "a tensor";
    }
    if (v->kind == TK_V_TYPE || v->kind == TK_V_FN || (v->is_const && v->untyped)) {
        return "a compile-time parameter";
    }
    if (v->is_const) {
        return "a constant";
    }
    if (v->x && v->x->kind == TK_X_DIM) {
        return "a size";
    }
    switch (v->var ? v->var->kind : TK_VAR_LOCAL) {
    case TK_VAR_LOCAL:
        return "declared with 'let'";
    case TK_VAR_LOOP:
        return "the variable of a loop";
    case TK_VAR_PARAM:
        return "a parameter";
    case TK_VAR_GRID:
        return "a name of the grid";
    }
    return "";
}

static void not_mutable(tk_checker *c, const tk_expr *t, const tk_binding *b) {
    tk_diag *d = tk_err_diag(c, t->span, "not-mutable", "'%s' cannot be changed: it is %s",
                             t->u.name, kind_text(b));
    tk_note(c->diags, d, b->span, "'%s' is declared here", t->u.name);
    if (b->value.kind == TK_V_TENSOR) {
        tk_help(c->diags, d, (tk_span){0}, "write to its elements: '%s[..] = ..'", t->u.name);
    } else if ((b->value.var && b->value.var->kind != TK_VAR_LOCAL) || b->value.untyped ||
               b->value.kind != TK_V_VALUE || (b->value.x && b->value.x->kind == TK_X_DIM)) {
        tk_help(c->diags, d, (tk_span){0}, "copy it to a variable declared with 'var'");
    } else {
        tk_help(c->diags, d, (tk_span){0}, "declare it with 'var'");
    }
}

static void assign_name(tk_checker *c, const tk_stmt *s) {
    const tk_expr *t = s->u.assign.target;
    tk_value old = tk_check_known(c, t);
    tk_value v = tk_check_value(c, s->u.assign.value);
    const tk_binding *b = tk_scope_find(c->scope, t->u.name);
    if (old.kind == TK_V_ERROR) {
        return;
    }
    if (!b) {
        tk_err(c, t->span, "not-mutable", "'%s' cannot be changed", t->u.name);
        return;
    }
    tk_var *var = b->value.kind == TK_V_VALUE ? b->value.var : NULL;
    if (!var || !var->is_mutable) {
        not_mutable(c, t, b);
        return;
    }
    if (s->u.assign.compound && v.kind == TK_V_VALUE) {
        c->compound = true;
        v = tk_binary_value(c, s->span, s->u.assign.op, old, v);
        c->compound = false;
        v.span = s->u.assign.value->span;
    }
    v = tk_fit(c, v, var->type, tk_format(c->arena, "value of '%s'", var->name));
    if (v.kind != TK_V_VALUE) {
        return;
    }
    if (v.varying || c->frame->varying_ifs) {
        make_varying(c, var);
    }
    tk_xs *out = tk_emit(c, TK_XS_ASSIGN, s->span);
    out->nvar = 1;
    out->var = TK_NEW_ARRAY(c->arena, tk_var *, 1);
    out->var[0] = var;
    out->value = tk_materialize(c, v);
}

static bool may_write(tk_checker *c, const tk_stmt *s, const tk_value *view) {
    const tk_var *t = view->view->tensor;
    if (view->other) {
        tk_err(c, view->other->span, "misplaced-else",
               "'else' has a meaning only where a tensor is read");
        return false;
    }
    if (!(t->type->access & TK_OUT)) {
        tk_diag *d = tk_err_diag(c, view->span, "write-of-in",
                                 "'%s' is an 'in' tensor: it cannot be written", t->name);
        tk_note(c->diags, d, t->span, "'%s' is declared here", t->name);
        tk_help(c->diags, d, (tk_span){0}, "declare it 'out', or 'inout' to read it as well");
        return false;
    }
    if (s->u.assign.compound) {
        const char *text = tk_source_text(c, view->span);
        tk_diag *d =
            tk_err_diag(c, s->span, "compound-on-tensor",
                        "'%s=' on a tensor does not say whether programs may meet in an element",
                        tk_binop_text(s->u.assign.op));
        tk_help(c->diags, d, (tk_span){0}, "where several programs add to it: 'atomic_add(%s, v)'",
                text ? text : "y[..]");
        tk_help(c->diags, d, (tk_span){0}, "where only this one writes it: '%s = %s %s v'",
                text ? text : "y[..]", text ? text : "y[..]", tk_binop_text(s->u.assign.op));
        return false;
    }
    return true;
}

// Where the value has the view's elements, with axes of one element more.
static void help_with_shape(tk_checker *c, tk_diag *d, const tk_expr *value, const tk_type *from,
                            const tk_type *to) {
    const char *text = tk_source_text(c, value->span);
    unsigned k = 0;
    for (unsigned i = 0; i < from->rank; i++) {
        const bool same = k < to->rank && from->dim[i] == to->dim[k];
        if (!same && from->dim[i] != 1) {
            return;
        }
        k += same;
    }
    if (k == to->rank && to->rank > 0 && text) {
        tk_help(c->diags, d, (tk_span){0}, "write 'reshape(%s, %s)'", text,
                tk_shape_text(c->arena, to->rank, to->dim));
    } else if (to->rank == 0) {
        tk_help(c->diags, d, (tk_span){0},
                "a reduction without 'axis' is of all elements, and gives a scalar");
    }
}

static void store(tk_checker *c, const tk_stmt *s, tk_value view, tk_value v) {
    const tk_type *t = view.type;
    v = tk_coerce(c, v, t->dtype, tk_format(c->arena, "value for '%s'", view.view->tensor->name));
    if (v.kind != TK_V_VALUE) {
        return;
    }
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    if (v.type->rank > t->rank || !tk_broadcast(t, v.type, &rank, dim) ||
        !tk_shape_fits(t, tk_type_with_shape(c->arena, t, rank, dim))) {
        tk_diag *d = tk_err_diag(c, s->u.assign.value->span, "shape-mismatch",
                                 "a value of shape %s does not broadcast to the view of shape %s",
                                 tk_shape_text(c->arena, v.type->rank, v.type->dim),
                                 tk_shape_text(c->arena, t->rank, t->dim));
        help_with_shape(c, d, s->u.assign.value, v.type, t);
        return;
    }
    if (v.varying && !view.varying) {
        tk_err(c, s->span, "varying-store",
               "a value that differs from element to element is stored to one place of '%s'",
               view.view->tensor->name);
        return;
    }
    tk_xs *out = tk_emit(c, TK_XS_STORE, s->span);
    out->view = view.view;
    out->value = tk_materialize(c, v);
}

static void assign(tk_checker *c, const tk_stmt *s) {
    const tk_expr *t = s->u.assign.target;
    if (t->kind == TK_E_NAME) {
        assign_name(c, s);
        return;
    }
    tk_value view = tk_check_known(c, t);
    tk_value v = tk_check_value(c, s->u.assign.value);
    if (view.kind == TK_V_ERROR) {
        return;
    }
    if (view.kind != TK_V_VIEW) {
        tk_diag *d = tk_err_diag(c, t->span, "not-assignable",
                                 "only a variable or elements of a tensor are assigned to");
        if (t->kind == TK_E_INDEX) {
            tk_help(c->diags, d, (tk_span){0},
                    "a tile changes as a whole: 't = where(mask, value, t)'");
        }
        return;
    }
    if (may_write(c, s, &view) && v.kind == TK_V_VALUE) {
        store(c, s, view, v);
    }
}

// ---- return and calls -----------------------------------------------------------------------
static uint32_t result_count(const tk_type *t) {
    return t->kind == TK_T_TUPLE ? t->n : t->kind == TK_T_VALUE ? 1 : 0;
}

// "return f(x);" where f gives several values: they are bound first.
static bool return_tuple(tk_checker *c, const tk_stmt *s, tk_value v, tk_value *out) {
    tk_var **var = TK_NEW_ARRAY(c->arena, tk_var *, v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.item) {
            out[i] = v.item[i];
            continue;
        }
        tk_ident id = {tk_format(c->arena, "result.%u", i), s->span};
        var[i] = tk_var_new(c, TK_VAR_LOCAL, id, v.type->elem[i]);
        var[i]->varying = v.x->varying;
        out[i] = tk_var_value(c, s->span, var[i]);
    }
    if (!v.item) {
        tk_xs *let = tk_emit(c, TK_XS_LET, s->span);
        let->nvar = v.n;
        let->var = var;
        let->value = v.x;
    }
    return true;
}

static void return_count_error(tk_checker *c, const tk_stmt *s, uint32_t want, uint32_t got) {
    tk_diag *d;
    if (c->frame->fn && c->frame->fn->is_kernel) {
        d = tk_err_diag(c, s->span, "result-count", "a kernel gives no value");
        tk_help(c->diags, d, (tk_span){0}, "write 'return;' and store to an 'out' tensor");
        return;
    }
    d = tk_err_diag(c, s->span, "result-count", "'%s' gives %u value%s, but %u %s returned",
                    c->frame->name, want, want == 1 ? "" : "s", got, got == 1 ? "is" : "are");
    if (c->frame->fn) {
        tk_note(c->diags, d, c->frame->fn->span, "'%s' is declared here", c->frame->name);
    }
}

void tk_check_return(tk_checker *c, const tk_stmt *s) {
    const tk_type *r = c->frame->result;
    uint32_t n = s->u.results.n, want = result_count(r);
    tk_value *v = TK_NEW_ARRAY(c->arena, tk_value, n > want ? n : want);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = tk_check_known(c, s->u.results.at[i]);
        ok = v[i].kind != TK_V_ERROR && ok;
    }
    if (!ok || r->kind == TK_T_ERROR) {
        return;
    }
    if (n == 1 && v[0].kind == TK_V_TUPLE && v[0].n == want) {
        n = want;
        ok = return_tuple(c, s, v[0], v);
    }
    if (n != want) {
        return_count_error(c, s, want, n);
        return;
    }
    tk_x **result = TK_NEW_ARRAY(c->arena, tk_x *, n);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = tk_fit(c, v[i], r->kind == TK_T_TUPLE ? r->elem[i] : r, "the result");
        ok = v[i].kind == TK_V_VALUE && ok;
        result[i] = ok ? tk_materialize(c, v[i]) : NULL;
    }
    if (ok) {
        tk_xs *out = tk_emit(c, TK_XS_RETURN, s->span);
        out->nresult = n;
        out->result = result;
    }
}

static void expression(tk_checker *c, const tk_stmt *s) {
    tk_value v = tk_check_known(c, s->u.expr);
    if (v.kind == TK_V_ERROR) {
        return;
    }
    if (s->u.expr->kind != TK_E_CALL) {
        tk_diag *d = tk_err_diag(c, s->span, "no-effect",
                                 "this value is not used: only a call stands as a statement");
        tk_help(c->diags, d, (tk_span){0}, "bind it: 'let x = ..;'");
        return;
    }
    if (v.x && (v.x->kind == TK_X_CALL || v.x->kind == TK_X_BUILTIN || v.x->kind == TK_X_ATOMIC)) {
        tk_emit(c, TK_XS_EXPR, s->span)->value = v.x;
    }
}

void tk_check_simple(tk_checker *c, const tk_stmt *s) {
    if (s->kind == TK_S_ASSIGN) {
        assign(c, s);
    } else if (s->kind == TK_S_EXPR) {
        expression(c, s);
    } else {
        bind(c, s);
    }
}
