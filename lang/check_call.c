// SPDX-License-Identifier: Apache-2.0
// Calls as they are written: what is called, and which argument belongs to which parameter.
#include "lang/check_core.h"

#include <string.h>

static void check_args_anyway(tk_checker *c, const tk_expr *e) {
    for (uint32_t i = 0; i < e->u.call.args.n; i++) {
        const tk_expr *a = e->u.call.args.at[i].value;
        if (a->kind != TK_E_STRING) {
            (void)tk_check_expr(c, a);
        }
    }
}

static tk_value cast_call(tk_checker *c, const tk_expr *e, tk_dtype to) {
    if (e->u.call.args.n != 1 || e->u.call.args.at[0].name.name) {
        check_args_anyway(c, e);
        tk_diag *d = tk_err_diag(c, e->span, "argument-count", "a cast takes one value");
        tk_help(c->diags, d, (tk_span){0}, "write '%s(x)'", e->u.call.callee->u.name);
        return tk_error_value(e->span);
    }
    return tk_cast_value(c, e->span, to, tk_check_value(c, e->u.call.args.at[0].value));
}

// ---- Calls through a signature ------------------------------------------------------------------

// Arguments in order, converted to the signature; a tile may stand for a scalar.
static bool sig_args(tk_checker *c, const tk_expr *e, const tk_fnval *fv, tk_value *out) {
    const tk_sig *s = fv->sig;
    bool ok = true;
    for (uint32_t i = 0; i < e->u.call.args.n; i++) {
        const tk_arg *a = &e->u.call.args.at[i];
        tk_value v = tk_check_value(c, a->value);
        if (a->name.name) {
            tk_err(c, a->name.span, "unknown-argument",
                   "arguments of a function parameter are given by position");
            ok = false;
        }
        if (i >= s->n) {
            continue;
        }
        const char *what = tk_format(c->arena, "argument %u of '%s'", i + 1, fv->name);
        out[i] = s->arg[i]->rank == 0 ? tk_coerce(c, v, s->arg[i]->dtype, what)
                                      : tk_fit(c, v, s->arg[i], what);
        ok = out[i].kind == TK_V_VALUE && ok;
    }
    if (e->u.call.args.n != s->n) {
        tk_err(c, e->span, "argument-count", "'%s' takes %u argument%s, not %u", fv->name, s->n,
               s->n == 1 ? "" : "s", e->u.call.args.n);
        return false;
    }
    return ok;
}

static const tk_type *lifted_type(tk_checker *c, const tk_type *t, const tk_type *shape) {
    if (t->kind == TK_T_TUPLE) {
        const tk_type **elem = TK_NEW_ARRAY(c->arena, const tk_type *, t->n);
        for (uint32_t i = 0; i < t->n; i++) {
            elem[i] = lifted_type(c, t->elem[i], shape);
        }
        return tk_type_tuple(c->arena, t->n, elem);
    }
    if (t->kind != TK_T_VALUE || shape->rank == 0 || t->rank > 0) {
        return t;
    }
    return tk_type_tile(c->arena, t->dtype, shape->rank, shape->dim);
}

// The value stretched to the common shape of all arguments.
static tk_value stretch(tk_checker *c, tk_span at, tk_value v, uint32_t n, const tk_value *arg,
                        const char *name) {
    const tk_type *t = tk_common_shape(c, at, name, n, arg, v.type->dtype);
    if (!t) {
        return tk_error_value(at);
    }
    if (t->rank == v.type->rank && tk_shape_fits(t, v.type)) {
        v.span = at;
        v.var = NULL;
        return v;
    }
    tk_x *x = tk_x_new(c, TK_X_BUILTIN, at, t, 1);
    x->arg[0] = tk_materialize(c, v);
    x->u.builtin.id = v.type->rank ? TK_BI_BROADCAST : TK_BI_FULL;
    x->u.builtin.attr.axis = TK_AXIS_ALL;
    return tk_make_value(c, x);
}

static tk_value call_code(tk_checker *c, tk_call *k);

static tk_value call_sig(tk_checker *c, const tk_expr *e, const tk_fnval *fv) {
    const tk_sig *s = fv->sig;
    tk_value *arg = TK_NEW_ARRAY(c->arena, tk_value, s->n);
    if (!sig_args(c, e, fv, arg)) {
        return tk_error_value(e->span);
    }
    const tk_type *shape;
    switch (fv->kind) {
    case TK_FV_CODE: {
        tk_call k;
        tk_call_init(c, &k, fv, e->span);
        for (uint32_t i = 0; i < s->n; i++) {
            k.arg[i] = arg[i];
            k.has[i] = true;
        }
        return call_code(c, &k);
    }
    case TK_FV_SAME:
        return stretch(c, e->span, arg[0], s->n, arg, fv->name);
    case TK_FV_ALWAYS:
        return stretch(c, e->span, tk_make_bool(c, e->span, true), s->n, arg, fv->name);
    case TK_FV_BUILTIN:
    case TK_FV_DEP:
        shape = tk_common_shape(c, e->span, fv->name, s->n, arg, TK_DTYPE_DEP);
        return shape ? tk_make_dep(c, e->span, lifted_type(c, s->result, shape))
                     : tk_error_value(e->span);
    }
    return tk_error_value(e->span);
}

// ---- Arguments by place and name ----------------------------------------------------------------
static uint32_t find_param(const tk_fn *fn, const char *name) {
    for (uint32_t i = 0; i < fn->params.n; i++) {
        if (tk_same_name(fn->params.at[i].name.name, name)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static uint32_t find_cparam(const tk_fn *fn, const char *name) {
    for (uint32_t i = 0; i < fn->cparams.n; i++) {
        if (tk_same_name(fn->cparams.at[i].name.name, name)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void unknown_argument(tk_checker *c, const tk_fnval *fv, const tk_arg *a) {
    const tk_fn *fn = fv->fn;
    TK_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < fn->params.n; i++) {
        tk_vec_push(c->arena, &names, fn->params.at[i].name.name);
    }
    for (uint32_t i = 0; i < fn->cparams.n; i++) {
        tk_vec_push(c->arena, &names, fn->cparams.at[i].name.name);
    }
    tk_diag *d = tk_err_diag(c, a->name.span, "unknown-argument", "'%s' has no parameter '%s'",
                             fv->name, a->name.name);
    const char *near = tk_nearest(c->arena, a->name.name, names.at, names.n);
    if (near) {
        tk_help(c->diags, d, (tk_span){0}, "did you mean '%s'?", near);
    }
    tk_note(c->diags, d, fn->span, "'%s' is declared here", fv->name);
}

// An optional parameter that is not given, passed on: it is not given there either.
static bool is_absent(tk_checker *c, const tk_expr *e) {
    const tk_binding *b = e->kind == TK_E_NAME ? tk_scope_find(c->scope, e->u.name) : NULL;
    const tk_var *v = b ? b->value.var : NULL;
    return v && !v->is_given;
}

static bool is_none(const tk_expr *e) {
    return e && e->kind == TK_E_NAME && strcmp(e->u.name, "none") == 0;
}

static bool set_param(tk_checker *c, tk_call *k, uint32_t i, const tk_arg *a) {
    if (k->has[i]) {
        tk_diag *d = tk_err_diag(c, a->value->span, "repeated-argument",
                                 "argument '%s' of '%s' is given twice",
                                 k->fn->params.at[i].name.name, k->fv->name);
        tk_note(c->diags, d, k->arg[i].span, "the first one is here");
        return false;
    }
    if (is_none(k->fn->params.at[i].init) && (is_none(a->value) || is_absent(c, a->value))) {
        return true;
    }
    k->has[i] = true;
    k->arg[i] = tk_check_known(c, a->value);
    if (k->arg[i].kind != TK_V_TENSOR) {
        k->arg[i] = tk_read(c, k->arg[i]);
    }
    return k->arg[i].kind != TK_V_ERROR;
}

static bool set_cparam(tk_checker *c, tk_call *k, uint32_t i, const tk_arg *a) {
    if (k->chas[i]) {
        tk_err(c, a->name.span, "repeated-argument", "argument '%s' of '%s' is given twice",
               a->name.name, k->fv->name);
        return false;
    }
    k->chas[i] = true;
    k->cval[i] = tk_check_known(c, a->value);
    return k->cval[i].kind != TK_V_ERROR;
}

static bool match(tk_checker *c, tk_call *k, const tk_expr *e) {
    const tk_fn *fn = k->fn;
    uint32_t place = 0;
    bool ok = true, named = false;
    for (uint32_t i = 0; i < e->u.call.args.n; i++) {
        const tk_arg *a = &e->u.call.args.at[i];
        if (!a->name.name) {
            if (named) {
                tk_err(c, a->value->span, "argument-order",
                       "an argument by position stands before those by name");
                ok = false;
            } else if (place < fn->params.n) {
                ok = set_param(c, k, place, a) && ok;
            } else {
                (void)tk_check_expr(c, a->value);
            }
            place += !named;
            continue;
        }
        named = true;
        uint32_t p = find_param(fn, a->name.name), q = find_cparam(fn, a->name.name);
        if (p != UINT32_MAX) {
            ok = set_param(c, k, p, a) && ok;
        } else if (q != UINT32_MAX) {
            ok = set_cparam(c, k, q, a) && ok;
        } else {
            unknown_argument(c, k->fv, a);
            ok = false;
        }
    }
    if (place > fn->params.n) {
        tk_diag *d = tk_err_diag(c, e->span, "argument-count", "'%s' takes %u argument%s, not %u",
                                 k->fv->name, fn->params.n, fn->params.n == 1 ? "" : "s", place);
        tk_note(c->diags, d, fn->span, "'%s' is declared here", k->fv->name);
        ok = false;
    }
    return ok;
}

// Defaults, and what is missing.
static bool complete(tk_checker *c, tk_call *k, const tk_expr *e) {
    bool ok = true;
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        const tk_param *p = &k->fn->params.at[i];
        if (k->has[i] || is_none(p->init)) {
            continue;
        }
        if (p->init) {
            tk_scope *old = c->scope;
            c->scope = k->fv->env;
            k->arg[i] = tk_check_value(c, p->init);
            c->scope = old;
            k->has[i] = true;
            ok = k->arg[i].kind != TK_V_ERROR && ok;
            continue;
        }
        tk_diag *d = tk_err_diag(c, e->span, "missing-argument", "'%s' needs an argument '%s'",
                                 k->fv->name, p->name.name);
        tk_note(c->diags, d, p->span, "'%s' is declared here", p->name.name);
        ok = false;
    }
    return ok;
}

// ---- The call itself ----------------------------------------------------------------------------
static void fill_args(tk_checker *c, tk_call *k, const tk_inst *inst, tk_x *x) {
    uint32_t place = 0;
    x->u.call.tensor = TK_NEW_ARRAY(c->arena, tk_var *, inst->params.n);
    x->n = 0;
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        if (!k->has[i]) {
            continue;
        }
        if (k->arg[i].kind == TK_V_TENSOR) {
            x->u.call.tensor[place] = k->arg[i].var;
        } else {
            x->arg[x->n++] = tk_materialize(c, k->arg[i]);
        }
        place++;
    }
}

static tk_value call_code(tk_checker *c, tk_call *k) {
    if (!tk_call_infer(c, k) || !tk_call_convert(c, k)) {
        return tk_error_value(k->at);
    }
    bool inner = tk_checker_lifted(c); // varying scalars, not tiles
    const tk_type *shape = tk_scalar(c, TK_I32);
    if (k->lifted && !inner && k->lift_rank) {
        shape = tk_type_tile(c->arena, TK_I32, k->lift_rank, k->lift);
    }
    const tk_type *type = lifted_type(c, k->result, shape);
    if (k->dep) {
        if (tk_call_recurses(c, k)) {
            return tk_error_value(k->at);
        }
        tk_value v = tk_make_dep(c, k->at, type);
        v.varying = k->lifted && inner;
        return v;
    }
    tk_inst *inst = tk_call_instance(c, k);
    if (!inst) {
        return tk_error_value(k->at);
    }
    for (uint32_t i = 0; i < inst->captures.n; i++) {
        tk_add_capture(c, inst->captures.at[i]);
    }
    tk_x *x = tk_x_new(c, TK_X_CALL, k->at, type, k->fn->params.n);
    x->u.call.inst = inst;
    x->varying = k->lifted && inner;
    fill_args(c, k, inst, x);
    return tk_make_value(c, x);
}

// `same`, `always` and built-ins that are called by their own name.
static tk_value call_plain(tk_checker *c, const tk_expr *e, const tk_fnval *fv) {
    uint32_t n = e->u.call.args.n;
    tk_value *arg = TK_NEW_ARRAY(c->arena, tk_value, n);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        arg[i] = tk_check_value(c, e->u.call.args.at[i].value);
        ok = arg[i].kind == TK_V_VALUE && ok;
    }
    if (!ok) {
        return tk_error_value(e->span);
    }
    if (fv->kind == TK_FV_ALWAYS) {
        return stretch(c, e->span, tk_make_bool(c, e->span, true), n, arg, fv->name);
    }
    if (n == 0) {
        return tk_err(c, e->span, "argument-count", "'same' takes at least one argument");
    }
    if (arg[0].untyped && n == 1) {
        return arg[0];
    }
    return stretch(c, e->span, arg[0], n, arg, fv->name);
}

tk_value tk_call_written(tk_checker *c, const tk_expr *e, const tk_fnval *fv) {
    if (fv->sig) {
        return call_sig(c, e, fv);
    }
    if (fv->kind == TK_FV_BUILTIN) {
        return tk_check_builtin(c, e, fv->builtin, fv->elem);
    }
    if (fv->kind != TK_FV_CODE) {
        return call_plain(c, e, fv);
    }
    tk_call k;
    tk_call_init(c, &k, fv, e->span);
    bool ok = match(c, &k, e);
    if (!ok || !complete(c, &k, e)) {
        return tk_error_value(e->span);
    }
    return call_code(c, &k);
}

tk_value tk_check_call(tk_checker *c, const tk_expr *e) {
    const tk_expr *f = e->u.call.callee;
    if (f->kind != TK_E_NAME) {
        check_args_anyway(c, e);
        return tk_err(c, f->span, "not-callable", "only a name can be called");
    }
    tk_value v = tk_check_name(c, f->span, f->u.name);
    switch (v.kind) {
    case TK_V_FN:
        return tk_call_written(c, e, v.fn);
    case TK_V_TYPE:
        return cast_call(c, e, v.dtype);
    case TK_V_NAME:
        tk_unknown_name(c, f->span, f->u.name, "function");
        break;
    case TK_V_ERROR:
        break;
    case TK_V_VALUE:
    case TK_V_VIEW:
    case TK_V_TENSOR:
    case TK_V_LIST:
    case TK_V_TUPLE:
    case TK_V_VOID: {
        tk_diag *d = tk_err_diag(c, f->span, "not-callable", "'%s' is %s, not a function",
                                 f->u.name, tk_value_what(c, v));
        if (v.kind == TK_V_TENSOR) {
            tk_help(c->diags, d, (tk_span){0}, "a tensor is indexed with brackets: '%s[..]'",
                    f->u.name);
        }
        break;
    }
    }
    check_args_anyway(c, e);
    return tk_error_value(e->span);
}

tk_value tk_lambda_value(tk_checker *c, const tk_expr *e) {
    tk_fnval *fv = TK_NEW(c->arena, tk_fnval);
    fv->kind = TK_FV_CODE;
    fv->name = "fn";
    fv->fn = e->u.lambda;
    fv->env = tk_scope_snapshot(c, c->scope);
    fv->owner = c->frame->inst;
    if (c->frame->general) {
        tk_check_fn_general(c, fv);
    }
    return tk_fn_value(e->span, fv);
}

// given(x): whether an optional parameter is given.
tk_value tk_check_given(tk_checker *c, const tk_expr *e) {
    const tk_arg *a = e->u.call.args.n == 1 ? &e->u.call.args.at[0] : NULL;
    if (!a || a->name.name || a->value->kind != TK_E_NAME) {
        return tk_err(c, e->span, "argument-count", "'given' takes the name of one parameter");
    }
    const tk_binding *b = tk_scope_find(c->scope, a->value->u.name);
    if (!b) {
        tk_unknown_name(c, a->value->span, a->value->u.name, "parameter");
        return tk_error_value(e->span);
    }
    const tk_var *v = b->value.kind == TK_V_ERROR ? NULL : b->value.var;
    if (b->value.kind == TK_V_ERROR) {
        return tk_error_value(e->span);
    }
    if (!v || v->kind != TK_VAR_PARAM) {
        return tk_err(c, a->value->span, "not-optional", "'%s' is no parameter that may be absent",
                      a->value->u.name);
    }
    if (!v->is_given) {
        return tk_make_bool(c, e->span, false);
    }
    return tk_is_maybe_given(c, v) ? tk_dep_const(c, e->span, TK_BOOL, false)
                                   : tk_make_bool(c, e->span, true);
}
