// SPDX-License-Identifier: Apache-2.0
// Instances: one function walked for one set of compile-time arguments and argument types; shared
// by key. And the general check of a function, with nothing bound.
#include "lang/check_core.h"

#include <string.h>

// ---- The table --------------------------------------------------------------------------------
static tk_inst_slot *slot_of(tk_checker *c, const char *key) {
    uint32_t i = tk_hash(key) & (c->slots - 1);
    while (c->slot[i].key && strcmp(c->slot[i].key, key) != 0) {
        i = (i + 1) & (c->slots - 1);
    }
    return &c->slot[i];
}

static void grow(tk_checker *c) {
    tk_inst_slot *old = c->slot;
    uint32_t n = c->slots;
    if (n && c->insts < n / 2) {
        return;
    }
    c->slots = n ? 2 * n : 64;
    c->slot = TK_NEW_ARRAY(c->arena, tk_inst_slot, c->slots);
    for (uint32_t i = 0; i < n; i++) {
        if (old[i].key) {
            *slot_of(c, old[i].key) = old[i];
        }
    }
}

static const char *key_of(tk_checker *c, const tk_call *k, unsigned fast) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    tk_buf_fmt(&b, "%p.%p.%u", (const void *)k->fn, (const void *)k->fv->owner, fast);
    for (uint32_t j = 0; j < k->fn->cparams.n; j++) {
        const tk_value *v = &k->cval[j];
        tk_buf_str(&b, "|");
        tk_cval_text(c, &b, *v);
        if (v->kind == TK_V_FN) {
            tk_buf_fmt(&b, ":%p:%p", (const void *)v->fn->fn, (const void *)v->fn->owner);
        }
    }
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        tk_buf_str(&b, !k->has[i] ? ";-" : k->arg[i].varying ? ";v" : ";");
        if (!k->has[i]) {
            continue;
        }
        bool each = k->lifted && (k->arg[i].varying || k->arg[i].type->rank > 0) &&
                    k->arg[i].kind == TK_V_VALUE;
        tk_buf_str(&b, each ? "e" : "");
        tk_type_print(&b, k->type[i]);
    }
    tk_buf_fmt(&b, ">%d", k->lifted);
    if (k->lifted) {
        tk_buf_str(&b, tk_shape_text(c->arena, k->lift_rank, k->lift));
    }
    return tk_buf_text(&b);
}

// ---- Recursion and limits -----------------------------------------------------------------------
static bool takes_functions(tk_checker *c, const tk_fn *fn) {
    for (uint32_t j = 0; j < fn->cparams.n; j++) {
        if (tk_cparam_kind(c, &fn->cparams.at[j], false) == TK_CK_FN) {
            return true;
        }
    }
    return false;
}

static bool recursion(tk_checker *c, const tk_call *k) {
    tk_diag *d =
        tk_err_diag(c, k->at, "recursion",
                    "'%s' calls itself: recursion is not part of the language", k->fv->name);
    tk_note(c->diags, d, k->fn->span, "'%s' is declared here", k->fv->name);
    return true;
}

// A function that takes functions may stand in the chain with others than these.
static bool recurses(tk_checker *c, const tk_call *k, const char *key) {
    for (const tk_frame *f = c->frame; f; f = f->up) {
        bool same_key = f->key && strcmp(f->key, key) == 0;
        if (f->fn == k->fn && (same_key || !takes_functions(c, k->fn) || !f->key)) {
            return recursion(c, k);
        }
    }
    return false;
}

bool tk_call_recurses(tk_checker *c, const tk_call *k) {
    return c->frame->fn == k->fn && recursion(c, k);
}

static bool within_limits(tk_checker *c, const tk_call *k) {
    if (c->too_deep) {
        return false;
    }
    if (c->calls >= TK_MAX_CALLS) {
        return !tk_check_too_deep(
            c, k->at,
            tk_format(c->arena, "calls are nested more than %d deep here", (int)TK_MAX_CALLS));
    }
    if (c->insts >= TK_MAX_INSTANCES) {
        return !tk_check_too_deep(c, k->at,
                                  tk_format(c->arena,
                                            "the program has more than %d instances of functions",
                                            (int)TK_MAX_INSTANCES));
    }
    return true;
}

// ---- Walking an instance ------------------------------------------------------------------------
static tk_inst *make_inst(tk_checker *c, const tk_call *k, unsigned fast) {
    tk_inst *inst = TK_NEW(c->arena, tk_inst);
    inst->fn = k->fn;
    inst->name = k->fv->name; // made unique when the program is put together
    inst->lifted = k->lifted;
    inst->lift_rank = (uint8_t)k->lift_rank;
    memcpy(inst->lift, k->lift, sizeof inst->lift);
    inst->fast = fast;
    const tk_type *r = k->result;
    bool tuple = r->kind == TK_T_TUPLE;
    inst->nresult = tuple ? r->n : r->kind == TK_T_VOID ? 0 : 1;
    inst->result = TK_NEW_ARRAY(c->arena, const tk_type *, inst->nresult);
    for (uint32_t i = 0; i < inst->nresult; i++) {
        inst->result[i] = tuple ? r->elem[i] : r;
    }
    return inst;
}

static void bind_params(tk_checker *c, const tk_call *k, tk_inst *inst) {
    for (uint32_t i = 0; i < k->fn->params.n; i++) {
        const tk_param *p = &k->fn->params.at[i];
        const tk_type *t = k->has[i] ? k->type[i] : tk_scalar(c, TK_I32);
        tk_var *var = tk_var_new(c, TK_VAR_PARAM, p->name, t);
        var->is_given = k->has[i];
        if (k->has[i]) {
            var->index = inst->params.n;
            tk_vec_push(c->arena, &inst->params, var);
            var->varying = k->lifted && k->arg[i].kind == TK_V_VALUE &&
                           (k->arg[i].varying || k->arg[i].type->rank > 0);
            if (t->kind == TK_T_TENSOR) {
                (void)tk_resolve_tensor(c, p->type, var, t);
            }
        }
        tk_value v = tk_var_value(c, p->name.span, var);
        v.var = var;
        tk_bind_quietly(c, c->scope, p->name, v);
    }
}

static tk_inst *walk_instance(tk_checker *c, const tk_call *k, const char *key, unsigned fast) {
    tk_inst *inst = make_inst(c, k, fast);
    tk_frame f = {.up = c->frame, .call = k->at, .fn = k->fn, .name = k->fv->name, .key = key};
    f.inst = inst;
    f.general = c->frame->general;
    f.result = k->result;
    tk_scope *old = c->scope;
    c->scope = tk_call_scope(c, k);
    c->frame = &f;
    c->calls++;
    bind_params(c, k, inst);
    tk_walk_body(c, c->scope);
    inst->body = f.block;
    c->calls--;
    c->frame = f.up;
    c->scope = old;
    return inst;
}

tk_inst *tk_call_instance(tk_checker *c, tk_call *k) {
    // What @fastmath permits holds in the text that it stands before: not in what is called from
    // there.
    unsigned fast = tk_fn_fast(c, k->fn, k->fv->owner ? k->fv->owner->fast : 0);
    const char *key = key_of(c, k, fast);
    if (recurses(c, k, key) || !within_limits(c, k)) {
        return NULL;
    }
    grow(c);
    tk_inst_slot *s = slot_of(c, key);
    if (!s->key) {
        s->key = key;
        c->insts++;
        tk_inst *inst = walk_instance(c, k, key, fast);
        s = slot_of(c, key); // the table may have grown
        s->inst = inst;
    }
    return s->inst;
}

// ---- Combining functions ------------------------------------------------------------------------
static tk_ast_type *ast_scalar(tk_checker *c, tk_span at, tk_dtype t) {
    tk_ast_type *a = TK_NEW(c->arena, tk_ast_type);
    a->kind = TK_AT_NAME;
    a->span = at;
    a->name = (tk_ident){tk_dtype_name(t), at};
    return a;
}

static tk_expr *ast_name(tk_checker *c, tk_span at, const char *name) {
    tk_expr *e = TK_NEW(c->arena, tk_expr);
    e->kind = TK_E_NAME;
    e->span = at;
    e->u.name = name;
    return e;
}

// fn(a0: T0, ..) -> R { return NAME(a0, ..); }, so that a built-in is a function like any other.
static const tk_fnval *wrap_builtin(tk_checker *c, tk_span at, const tk_fnval *fv) {
    tk_fn *fn = TK_NEW(c->arena, tk_fn);
    fn->span = at;
    fn->result = ast_scalar(c, at, fv->sig->result->dtype);
    fn->body = TK_NEW(c->arena, tk_block);
    fn->body->span = at;
    tk_expr *call = TK_NEW(c->arena, tk_expr);
    call->kind = TK_E_CALL;
    call->span = at;
    call->u.call.callee = ast_name(c, at, fv->name);
    for (uint32_t i = 0; i < fv->sig->n; i++) {
        tk_param p = {.name = {tk_format(c->arena, "%s.%u", fv->name, i), at}, .span = at};
        p.type = ast_scalar(c, at, fv->sig->arg[i]->dtype);
        tk_vec_push(c->arena, &fn->params, p);
        tk_arg a = {.value = ast_name(c, at, p.name.name)};
        tk_vec_push(c->arena, &call->u.call.args, a);
    }
    tk_stmt *s = TK_NEW(c->arena, tk_stmt);
    s->kind = TK_S_RETURN;
    s->span = at;
    tk_vec_push(c->arena, &s->u.results, call);
    tk_vec_push(c->arena, &fn->body->list, s);
    tk_fnval *y = TK_NEW(c->arena, tk_fnval);
    *y = *fv;
    y->kind = TK_FV_CODE;
    y->fn = fn;
    return y;
}

const tk_fnval *tk_fn_as_code(tk_checker *c, tk_span at, const tk_fnval *fv) {
    const tk_sig *s = fv->sig;
    bool plain =
        s->result->kind == TK_T_VALUE && s->result->rank == 0 && !tk_type_is_dep(s->result);
    for (uint32_t i = 0; i < s->n; i++) {
        plain = plain && s->arg[i]->rank == 0 && !tk_type_is_dep(s->arg[i]);
    }
    if (fv->kind == TK_FV_CODE || fv->kind == TK_FV_DEP || !plain) {
        return fv;
    }
    return wrap_builtin(c, at, fv);
}

tk_inst *tk_combine_instance(tk_checker *c, tk_span at, tk_value f, uint32_t m,
                             const tk_dtype *types) {
    if (f.kind != TK_V_FN) {
        if (f.kind == TK_V_NAME) {
            tk_unknown_name(c, f.span, f.name, "function");
        } else if (f.kind != TK_V_ERROR) {
            tk_err(c, at, "type-mismatch", "a function is expected here, not %s",
                   tk_value_what(c, f));
        }
        return NULL;
    }
    tk_sig *s = TK_NEW(c->arena, tk_sig);
    s->n = 2 * m;
    s->arg = TK_NEW_ARRAY(c->arena, const tk_type *, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        s->arg[i] = tk_scalar(c, types[i % m]);
    }
    s->result = m == 1 ? s->arg[0] : tk_type_tuple(c->arena, m, s->arg);
    tk_fnval plain = *f.fn;
    const tk_fnval *fv = tk_fn_with_sig(c, at, &plain, s);
    fv = fv ? tk_fn_as_code(c, at, fv) : NULL;
    if (!fv || fv->kind != TK_FV_CODE) {
        return NULL;
    }
    tk_call k;
    tk_call_init(c, &k, fv, at);
    k.combine = true;
    for (uint32_t i = 0; i < s->n; i++) {
        k.arg[i] = tk_make_dep(c, at, s->arg[i]);
        k.arg[i].varying = true;
        k.has[i] = true;
    }
    if (!tk_call_infer(c, &k) || !tk_call_convert(c, &k) || k.dep) {
        return NULL;
    }
    tk_inst *inst = tk_call_instance(c, &k);
    for (uint32_t i = 0; inst && i < inst->captures.n; i++) {
        tk_add_capture(c, inst->captures.at[i]);
    }
    return inst;
}

// ---- General checking -----------------------------------------------------------------------
bool tk_is_maybe_given(const tk_checker *c, const tk_var *v) {
    for (uint32_t i = 0; i < c->maybe.n; i++) {
        if (c->maybe.at[i] == v) {
            return true;
        }
    }
    return false;
}

static void general_cparams(tk_checker *c, const tk_fn *fn) {
    for (uint32_t j = 0; j < fn->cparams.n; j++) {
        const tk_cparam *p = &fn->cparams.at[j];
        tk_ckind kind = tk_cparam_kind(c, p, true);
        if (p->init && kind != TK_CK_BAD) {
            c->later = fn;
            c->later_from = j;
            (void)tk_cparam_value(c, p, tk_check_known(c, p->init));
            c->later = NULL;
        }
        (void)tk_bind_name(c, c->scope, p->name, tk_cparam_dep(c, p));
    }
}

static void general_default(tk_checker *c, const tk_param *p, tk_var *var, const tk_type *t) {
    bool none = p->init->kind == TK_E_NAME && strcmp(p->init->u.name, "none") == 0;
    if (none) {
        tk_vec_push(c->arena, &c->maybe, var);
        return;
    }
    tk_value v = tk_check_value(c, p->init);
    if (t && t->kind == TK_T_TENSOR) {
        tk_err(c, p->init->span, "bad-default", "a tensor's only default is 'none'");
    } else if (t && v.kind == TK_V_VALUE) {
        v = tk_fit(c, v, t, tk_format(c->arena, "default of '%s'", p->name.name));
        if (v.kind == TK_V_VALUE && !v.is_const) {
            tk_err(c, p->init->span, "not-constant", "a default must be known at compile time");
        }
    }
}

static void general_params(tk_checker *c, const tk_fn *fn, tk_inst *inst) {
    for (uint32_t i = 0; i < fn->params.n; i++) {
        const tk_param *p = &fn->params.at[i];
        tk_var *var = tk_var_new(c, TK_VAR_PARAM, p->name, tk_scalar(c, TK_I32));
        const tk_type *t = !p->type          ? NULL
                           : p->type->access ? tk_resolve_tensor(c, p->type, var, NULL)
                                             : tk_resolve_type(c, p->type);
        tk_vec_push(c->arena, &inst->params, var);
        var->index = i;
        if (t) {
            var->type = t;
        }
        if (p->init) {
            general_default(c, p, var, t);
        }
        tk_value v = t ? tk_var_value(c, p->name.span, var) : tk_error_value(p->name.span);
        v.var = t ? var : NULL;
        (void)tk_bind_name(c, c->scope, p->name, v);
    }
}

void tk_check_fn_general(tk_checker *c, const tk_fnval *fv) {
    for (const tk_frame *f = c->frame; f; f = f->up) {
        if (f->fn == fv->fn) {
            return;
        }
    }
    tk_inst *inst = TK_NEW(c->arena, tk_inst);
    inst->fn = fv->fn;
    tk_frame f = {.up = c->frame, .fn = fv->fn, .name = fv->name, .inst = inst, .general = true};
    tk_scope *old = c->scope;
    c->scope = tk_scope_new(c, fv->env);
    c->frame = &f;
    general_cparams(c, fv->fn);
    general_params(c, fv->fn, inst);
    f.result = tk_resolve_result(c, fv->fn->result);
    if (!f.result) {
        f.result = tk_type_error();
    }
    tk_check_fn_attrs(c, fv->fn);
    tk_walk_body(c, c->scope);
    c->frame = f.up;
    c->scope = old;
}
