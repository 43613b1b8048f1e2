// SPDX-License-Identifier: Apache-2.0
// Walking a kernel: its grid and body; in general with its parameters unbound, then with those
// defaults that are known.
#include "lang/check_core.h"

#include <string.h>

typedef struct {
    tk_checker *c;
    bool ok;
} grid_nodes;

// A grid is computed by the host: sizes, scalar parameters, constants and arithmetic.
static void grid_node(void *user, tk_x *x) {
    grid_nodes *g = user;
    switch (x->kind) {
    case TK_X_CONST:
    case TK_X_VAR:
    case TK_X_DIM:
    case TK_X_ELEM:
    case TK_X_CAST:
    case TK_X_LOGIC:
        return;
    case TK_X_BUILTIN:
    case TK_X_CALL:
    case TK_X_LOAD:
    case TK_X_ATOMIC:
        break;
    }
    if (g->ok) {
        tk_err(g->c, x->span, "bad-grid",
               "the grid is computed from sizes, scalar parameters and constants only");
    }
    g->ok = false;
}

static tk_x *grid_count(tk_checker *c, const tk_grid_axis *a) {
    tk_value v = tk_check_value(c, a->count);
    if (v.kind != TK_V_VALUE) {
        return NULL;
    }
    grid_nodes g = {c, true};
    tk_x_walk(v.x, grid_node, &g);
    v = tk_fit(c, v, tk_scalar(c, TK_I32), tk_format(c->arena, "the grid's '%s'", a->name.name));
    if (v.kind != TK_V_VALUE) {
        return NULL;
    }
    if (tk_is_known_const(v) && v.num.i < 0) {
        tk_err(c, v.span, "bad-grid", "a grid has no negative number of programs");
    }
    return tk_materialize(c, v);
}

// What is taken of each that @tune has a set of.
static void tuned_values(tk_checker *c, const tk_kernel_def *def, const tk_kenv *env,
                         tk_kernel_attrs *at) {
    for (uint32_t i = 0; i < at->tuned.n; i++) {
        const char *name = at->tuned.at[i];
        int64_t n = strcmp(name, "warps") == 0 ? at->warps : at->stages;
        for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
            if (tk_same_name(def->fn->cparams.at[j].name.name, name)) {
                n = env->cval[j].num.i;
            }
        }
        tk_vec_push(c->arena, &at->tuned_value, n);
    }
}

void tk_kernel_walk(tk_checker *c, const tk_kernel_def *def, tk_kenv *env, tk_program *out) {
    const tk_fn *fn = def->fn;
    tk_kernel_attrs attrs = {0};
    tk_check_kernel_attrs(c, def, out ? &out->attrs : &attrs);
    if (fn->result) {
        tk_err(c, fn->result->span, "result-count", "a kernel gives no value");
    }
    uint32_t n = fn->grid.n;
    tk_x **count = TK_NEW_ARRAY(c->arena, tk_x *, n);
    tk_var **var = TK_NEW_ARRAY(c->arena, tk_var *, n);
    if (n > TK_MAX_GRID) {
        tk_err(c, fn->grid.at[TK_MAX_GRID].name.span, "bad-grid",
               "a grid has at most %d axes, not %u", TK_MAX_GRID, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        count[i] = grid_count(c, &fn->grid.at[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        var[i] = tk_var_new(c, TK_VAR_GRID, fn->grid.at[i].name, tk_scalar(c, TK_I32));
        var[i]->index = i;
        (void)tk_bind_name(c, c->scope, fn->grid.at[i].name,
                           tk_var_value(c, fn->grid.at[i].name.span, var[i]));
    }
    tk_walk_body(c, c->scope);
    env->inst->body = env->frame.block;
    if (out) {
        tuned_values(c, def, env, &out->attrs);
        out->ngrid = n;
        out->grid = count;
        out->grid_var = var;
    }
}

// ---- In general -------------------------------------------------------------------------------

// The values of a general walk: fixed ones as they are, defaults where asked for, else dependent.
static void general_values(tk_checker *c, const tk_kernel_def *def, bool defaults, tk_value *cval,
                           tk_bound_fn *fn) {
    for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
        const tk_cparam *p = &def->fn->cparams.at[j];
        const tk_expr *e = def->fixed[j].value;
        uint32_t k = e ? def->fixed[j].alias : def->alias.n;
        uint32_t file = e ? def->alias.at[k].file : def->file;
        e = e ? e : p->init;
        if (tk_cparam_kind(c, p, false) == TK_CK_FN) {
            bool use = e && (defaults || k < def->alias.n);
            fn[j] = (tk_bound_fn){use ? e : NULL, (int)k};
            cval[j] = tk_error_value(p->name.span);
            continue;
        }
        tk_value v = e ? tk_kernel_eval(c, def, j, e, file, cval, NULL) : tk_cparam_dep(c, p);
        bool use = v.kind != TK_V_ERROR &&
                   (k < def->alias.n || (defaults && v.kind != TK_V_TYPE && !v.dep));
        cval[j] = use ? v : tk_cparam_dep(c, p);
    }
}

static const char *values_text(tk_checker *c, const tk_kernel_def *def, const tk_value *cval) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
        if (def->fixed[j].value || cval[j].kind == TK_V_ERROR || tk_cval_dep(cval[j])) {
            continue;
        }
        tk_buf_fmt(&b, "%s%s = ", b.n ? ", " : "with ", def->fn->cparams.at[j].name.name);
        tk_cval_text(c, &b, cval[j]);
    }
    return b.n ? tk_buf_text(&b) : NULL;
}

static void general_walk(tk_checker *c, const tk_kernel_def *def, bool defaults) {
    uint32_t n = def->fn->cparams.n;
    tk_value *cval = TK_NEW_ARRAY(c->arena, tk_value, n);
    tk_bound_fn *fn = TK_NEW_ARRAY(c->arena, tk_bound_fn, n);
    general_values(c, def, defaults, cval, fn);
    const char *text = NULL;
    uint32_t before = c->diags->list.n;
    tk_kenv env;
    tk_kernel_env(c, def, cval, fn, NULL, &env);
    if (defaults) {
        text = values_text(c, def, cval);
    }
    c->root.conditional += defaults; // a static_assert may demand that a default be replaced
    tk_kernel_walk(c, def, &env, NULL);
    c->root.conditional -= defaults;
    tk_kernel_leave(c, &env);
    for (uint32_t i = before; text && i < c->diags->list.n; i++) {
        tk_note(c->diags, c->diags->list.at[i], (tk_span){0}, "%s", text);
    }
}

void tk_check_kernel_general(tk_checker *c, const tk_kernel_def *def) {
    general_walk(c, def, false);
    bool any = false;
    for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
        any = any || def->fn->cparams.at[j].init;
    }
    if (any && !c->too_deep) {
        general_walk(c, def, true);
    }
}
