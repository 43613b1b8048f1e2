// SPDX-License-Identifier: Apache-2.0
// A call on its way to an instance: compile-time parameters from arguments, conversion of
// arguments, element by element or whole.
#include "lang/check_core.h"

#include <string.h>

void tk_call_init(tk_checker *c, tk_call *k, const tk_fnval *fv, tk_span at) {
    memset(k, 0, sizeof *k);
    k->fv = fv;
    k->fn = fv->fn;
    k->at = at;
    k->arg = TK_NEW_ARRAY(c->arena, tk_value, k->fn->params.n);
    k->has = TK_NEW_ARRAY(c->arena, bool, k->fn->params.n);
    k->type = TK_NEW_ARRAY(c->arena, const tk_type *, k->fn->params.n);
    k->cval = TK_NEW_ARRAY(c->arena, tk_value, k->fn->cparams.n);
    k->chas = TK_NEW_ARRAY(c->arena, bool, k->fn->cparams.n);
    k->from = TK_NEW_ARRAY(c->arena, const char *, k->fn->cparams.n);
}

static uint32_t cparam_index(const tk_fn *fn, const char *name) {
    for (uint32_t i = 0; name && i < fn->cparams.n; i++) {
        if (tk_same_name(fn->cparams.at[i].name.name, name)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static bool conflict(tk_checker *c, tk_call *k, uint32_t j, uint32_t i, const char *is,
                     const char *other) {
    const char *name = k->fn->cparams.at[j].name.name, *param = k->fn->params.at[i].name.name;
    tk_diag *d;
    if (k->from[j]) {
        d = tk_err_diag(c, k->arg[i].span, "inference-conflict",
                        "'%s' of '%s' is %s from '%s' but %s from '%s'", name, k->fv->name, is,
                        k->from[j], other, param);
    } else {
        d = tk_err_diag(c, k->arg[i].span, "inference-conflict",
                        "'%s' of '%s' is given as %s but is %s from '%s'", name, k->fv->name, is,
                        other, param);
    }
    tk_note(c->diags, d, k->fn->span, "'%s' is declared here", k->fv->name);
    return false;
}

static bool infer_type(tk_checker *c, tk_call *k, uint32_t i, uint32_t j, bool untyped) {
    const tk_value *v = &k->arg[i];
    if (v->untyped != untyped || tk_cparam_kind(c, &k->fn->cparams.at[j], false) != TK_CK_TYPE) {
        return true;
    }
    tk_dtype t = v->type->dtype;
    if (!k->chas[j]) {
        k->chas[j] = true;
        k->cval[j] = tk_type_value(v->span, t);
        k->from[j] = k->fn->params.at[i].name.name;
        return true;
    }
    if (k->cval[j].kind != TK_V_TYPE || untyped) {
        return true; // checked in its turn; constants are converted
    }
    tk_dtype have = k->cval[j].dtype;
    if (have == TK_DTYPE_DEP && k->from[j]) {
        k->cval[j].dtype = t;
        k->cval[j].dep = t == TK_DTYPE_DEP;
        return true;
    }
    if (tk_dtype_fits(have, t) || (v->kind == TK_V_VALUE && tk_dtype_widens(t, have))) {
        return true;
    }
    return conflict(c, k, j, i, tk_dtype_name(have), tk_dtype_name(t));
}

static bool infer_dim(tk_checker *c, tk_call *k, uint32_t i, uint32_t j, int64_t dim) {
    const tk_cparam *p = &k->fn->cparams.at[j];
    if (tk_cparam_kind(c, p, false) != TK_CK_INT || dim == TK_DIM_DYN) {
        return true;
    }
    tk_value v = dim == TK_DIM_DEP ? tk_dep_const(c, k->arg[i].span, TK_I32, true)
                                   : tk_make_int(c, k->arg[i].span, dim);
    if (!k->chas[j] || (k->from[j] && k->cval[j].dep)) {
        k->chas[j] = true;
        k->cval[j] = v;
        k->from[j] = k->fn->params.at[i].name.name;
        return true;
    }
    if (!tk_is_known_const(k->cval[j]) || v.dep || k->cval[j].num.i == dim) {
        return true;
    }
    return conflict(c, k, j, i, tk_number_text(c, k->cval[j].num), tk_number_text(c, v.num));
}

// What one argument tells.
static bool infer_from(tk_checker *c, tk_call *k, uint32_t i, bool untyped) {
    const tk_ast_type *t = k->fn->params.at[i].type;
    const tk_value *v = &k->arg[i];
    if (!k->has[i] || !t || t->kind != TK_AT_NAME ||
        (v->kind != TK_V_VALUE && v->kind != TK_V_TENSOR)) {
        return true;
    }
    uint32_t j = cparam_index(k->fn, t->name.name);
    bool ok = j == UINT32_MAX || infer_type(c, k, i, j, untyped);
    for (uint32_t d = 0; !untyped && t->dims.n == v->type->rank && d < t->dims.n; d++) {
        const tk_expr *e = t->dims.at[d];
        j = e->kind == TK_E_NAME ? cparam_index(k->fn, e->u.name) : UINT32_MAX;
        ok = (j == UINT32_MAX || infer_dim(c, k, i, j, v->type->dim[d])) && ok;
    }
    return ok;
}

static tk_value no_value(tk_checker *c, tk_call *k, uint32_t j) {
    const tk_cparam *p = &k->fn->cparams.at[j];
    tk_diag *d =
        tk_err_diag(c, k->at, "not-inferred", "'%s' of '%s' does not follow from the arguments",
                    p->name.name, k->fv->name);
    tk_note(c->diags, d, p->span, "'%s' is declared here", p->name.name);
    tk_help(c->diags, d, (tk_span){0}, "give it by name: '%s(.., %s = ..)'", k->fv->name,
            p->name.name);
    return tk_error_value(k->at);
}

tk_scope *tk_call_scope(tk_checker *c, const tk_call *k) {
    tk_scope *s = tk_scope_new(c, k->fv->env);
    for (uint32_t j = 0; j < k->fn->cparams.n; j++) {
        if (k->chas[j]) {
            tk_bind_quietly(c, s, k->fn->cparams.at[j].name, k->cval[j]);
        }
    }
    return s;
}

bool tk_call_infer(tk_checker *c, tk_call *k) {
    const tk_fn *fn = k->fn;
    bool ok = true;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < fn->params.n; i++) {
            ok = infer_from(c, k, i, pass == 1) && ok;
        }
    }
    if (!ok) {
        return false;
    }
    tk_scope *old = c->scope, *s = tk_scope_new(c, k->fv->env);
    c->scope = s;
    for (uint32_t j = 0; j < fn->cparams.n; j++) {
        const tk_cparam *p = &fn->cparams.at[j];
        tk_value v = k->cval[j];
        if (!k->chas[j]) {
            const tk_fn *later = c->later;
            uint32_t from = c->later_from;
            c->later = fn;
            c->later_from = j;
            v = p->init ? tk_check_known(c, p->init) : no_value(c, k, j);
            c->later = later;
            c->later_from = from;
        }
        k->cval[j] = tk_cparam_value(c, p, v);
        k->chas[j] = true;
        ok = k->cval[j].kind != TK_V_ERROR && ok;
        tk_bind_quietly(c, s, p->name, k->cval[j]);
    }
    c->scope = old;
    return ok;
}

// ---- Conversion -----------------------------------------------------------------------------
static bool convert_tensor(tk_checker *c, tk_call *k, uint32_t i, const char *what) {
    const tk_ast_type *t = k->fn->params.at[i].type;
    const tk_value *v = &k->arg[i];
    if (v->kind != TK_V_TENSOR) {
        tk_err(c, v->span, "type-mismatch", "%s is %s where a tensor '%s' is expected", what,
               tk_value_what(c, *v), tk_ast_type_text(c, t));
        return false;
    }
    tk_var *var = tk_var_new(c, TK_VAR_PARAM, k->fn->params.at[i].name, v->type);
    const tk_type *want = tk_resolve_tensor(c, t, var, v->type);
    if (!want) {
        return false;
    }
    k->type[i] = want;
    if (want->rank != v->type->rank || !tk_dtype_fits(want->dtype, v->type->dtype) ||
        !tk_shape_fits(want, v->type)) {
        tk_diag *d =
            tk_err_diag(c, v->span, "type-mismatch", "%s is '%s' where '%s' is expected", what,
                        tk_type_text(c->arena, v->type), tk_type_text(c->arena, want));
        tk_note(c->diags, d, v->var->span, "'%s' is declared here", v->var->name);
        return false;
    }
    unsigned lacks = (unsigned)want->access & ~(unsigned)v->type->access;
    if (lacks) {
        tk_diag *d =
            tk_err_diag(c, v->span, "tensor-access", "%s may be %s, but '%s' is an '%s' tensor",
                        what, lacks & TK_OUT ? "written" : "read", v->var->name,
                        v->type->access == TK_IN ? "in" : "out");
        tk_note(c->diags, d, k->fn->params.at[i].span, "the parameter is declared here");
        return false;
    }
    return true;
}

static bool convert_value(tk_checker *c, tk_call *k, uint32_t i, const char *what) {
    const tk_type *want = tk_resolve_type(c, k->fn->params.at[i].type);
    tk_value v = tk_read(c, k->arg[i]);
    if (!want || v.kind != TK_V_VALUE) {
        return false;
    }
    k->type[i] = want;
    bool lifts = want->rank == 0 && (v.type->rank > 0 || v.varying || k->combine);
    k->arg[i] = lifts ? tk_coerce(c, v, want->dtype, what) : tk_fit(c, v, want, what);
    if (k->arg[i].kind == TK_V_ERROR) {
        return false;
    }
    k->arg[i].varying |= k->combine;
    k->lifted |= lifts;
    return true;
}

// Only a function on scalars is applied element by element.
static bool may_lift(tk_checker *c, tk_call *k) {
    const char *bad = NULL;
    for (uint32_t i = 0; i < k->fn->params.n && !bad; i++) {
        const tk_type *t = k->has[i] ? k->type[i] : NULL;
        if (t && t->kind == TK_T_VALUE && t->rank > 0) {
            bad = tk_format(c->arena, "parameter '%s' is a tile", k->fn->params.at[i].name.name);
        }
    }
    bool tuple = k->result->kind == TK_T_TUPLE;
    for (uint32_t i = 0; i < (tuple ? k->result->n : 1) && !bad; i++) {
        const tk_type *t = tuple ? k->result->elem[i] : k->result;
        bad = t->kind == TK_T_VALUE && t->rank > 0 ? "it gives a tile" : NULL;
    }
    for (uint32_t i = 0; i < k->fn->params.n && bad; i++) {
        if (k->has[i] && k->type[i] && k->type[i]->rank == 0 && k->arg[i].kind == TK_V_VALUE &&
            (k->arg[i].type->rank > 0 || k->arg[i].varying)) {
            tk_diag *d = tk_err_diag(c, k->arg[i].span, "shape-mismatch",
                                     "argument '%s' of '%s' is %s where a scalar is expected",
                                     k->fn->params.at[i].name.name, k->fv->name,
                                     k->arg[i].varying ? "different for each element"
                                                       : tk_type_text(c->arena, k->arg[i].type));
            tk_note(c->diags, d, k->fn->span, "'%s' is not applied element by element: %s",
                    k->fv->name, bad);
            return false;
        }
    }
    return !bad;
}

static bool lift_shape(tk_checker *c, tk_call *k) {
    const tk_inst *outer = c->frame->inst;
    if (k->combine || (outer && outer->lifted)) {
        k->lift_rank = k->combine ? 0 : outer->lift_rank;
        memcpy(k->lift, outer && !k->combine ? outer->lift : k->lift, sizeof k->lift);
        return true;
    }
    TK_VEC(tk_value) v = {0};
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        if (k->has[i] && k->arg[i].kind == TK_V_VALUE) {
            tk_vec_push(c->arena, &v, k->arg[i]);
        }
    }
    const tk_type *t = tk_common_shape(c, k->at, k->fv->name, v.n, v.at, TK_I32);
    if (!t) {
        return false;
    }
    k->lift_rank = t->rank;
    memcpy(k->lift, t->dim, t->rank * sizeof t->dim[0]);
    return true;
}

static bool any_dep(const tk_call *k) {
    for (uint32_t j = 0; j < k->fn->cparams.n; j++) {
        if (tk_cval_dep(k->cval[j])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        if (k->has[i] && (tk_type_is_dep(k->type[i]) || tk_type_is_dep(k->arg[i].type))) {
            return true;
        }
    }
    return tk_type_is_dep(k->result);
}

bool tk_call_convert(tk_checker *c, tk_call *k) {
    tk_scope *old = c->scope, *s = tk_call_scope(c, k);
    bool ok = true;
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        const tk_param *p = &k->fn->params.at[i];
        const char *what = tk_format(c->arena, "argument '%s' of '%s'", p->name.name, k->fv->name);
        if (!k->has[i]) {
            continue;
        }
        c->scope = s;
        bool tensor = p->type && p->type->access;
        ok = p->type && (tensor ? convert_tensor(c, k, i, what) : convert_value(c, k, i, what)) &&
             ok;
    }
    c->scope = s;
    k->result = tk_resolve_result(c, k->fn->result);
    c->scope = old;
    if (!ok || !k->result) {
        return false;
    }
    if (k->lifted && (!may_lift(c, k) || !lift_shape(c, k))) {
        return false;
    }
    k->dep = any_dep(k);
    return true;
}
