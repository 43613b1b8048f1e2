// SPDX-License-Identifier: Apache-2.0
// Kernels: chains of specialisations, and a kernel's scopes once its compile-time parameters have
// values.
#include "lang/check_core.h"

#include <string.h>

// ---- Definition -------------------------------------------------------------------------------
enum { MOST_SPECIALISATIONS = 64 }; // of one another: each looks at all before it

// Follows the chain to the kernel with the body. False after an error.
static bool chain(tk_checker *c, tk_kernel_def *def, const tk_entry *e, bool report) {
    while (e->item->kind == TK_ITEM_ALIAS) {
        for (uint32_t i = 0; i < def->alias.n; i++) {
            if (def->alias.at[i].item != e->item) {
                continue;
            }
            if (report) {
                tk_err(c, def->item->span, "kernel-cycle", "'%s' specialises itself", def->name);
            }
            return false;
        }
        if (def->alias.n == MOST_SPECIALISATIONS) {
            if (report) {
                tk_err(c, def->item->span, "too-deep",
                       "'%s' is the end of a chain of more than %d specialisations", def->name,
                       MOST_SPECIALISATIONS);
            }
            return false;
        }
        tk_vec_push(c->arena, &def->alias, ((tk_alias){e->item, e->file}));
        tk_ident other = e->item->u.alias.other;
        const tk_entry *next = other.name ? tk_find_entry(c, e->file, other.name) : NULL;
        bool kernel =
            next && (next->item->kind == TK_ITEM_ALIAS || next->item->kind == TK_ITEM_KERNEL);
        if (!kernel && report) {
            tk_scope *old = c->scope;
            c->scope = &c->table->file[e->file].scope;
            if (next) {
                tk_err(c, other.span, "not-a-kernel", "'%s' is not a kernel", other.name);
            } else if (other.name) {
                tk_unknown_name(c, other.span, other.name, "kernel");
            }
            c->scope = old;
        }
        if (!kernel) {
            return false;
        }
        e = next;
    }
    def->fn = e->item->u.fn;
    def->file = e->file;
    return true;
}

static void collect_params(tk_checker *c, tk_kernel_def *def) {
    for (uint32_t i = 0; i < def->fn->params.n; i++) {
        tk_vec_push(c->arena, &def->param, &def->fn->params.at[i]);
        tk_vec_push(c->arena, &def->param_file, def->file);
    }
    for (uint32_t k = def->alias.n; k-- > 0;) {
        const tk_item *item = def->alias.at[k].item;
        for (uint32_t i = 0; i < item->u.alias.params.n; i++) {
            tk_vec_push(c->arena, &def->param, &item->u.alias.params.at[i]);
            tk_vec_push(c->arena, &def->param_file, def->alias.at[k].file);
        }
    }
}

static uint32_t cparam_index(const tk_kernel_def *def, const char *name) {
    for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
        if (tk_same_name(def->fn->cparams.at[j].name.name, name)) {
            return j;
        }
    }
    return UINT32_MAX;
}

static void add_dim(tk_checker *c, tk_kernel_def *def, const tk_expr *e, uint32_t param,
                    uint32_t axis) {
    if (e->kind != TK_E_NAME || cparam_index(def, e->u.name) != UINT32_MAX ||
        tk_find_entry(c, def->param_file.at[param], e->u.name)) {
        return;
    }
    for (uint32_t i = 0; i < def->dim.n; i++) {
        if (tk_same_name(def->dim.at[i].name.name, e->u.name)) {
            return;
        }
    }
    tk_dim_use use = {{e->u.name, e->span}, param, axis};
    tk_vec_push(c->arena, &def->dim, use);
}

static void collect_dims(tk_checker *c, tk_kernel_def *def) {
    for (uint32_t i = 0; i < def->param.n; i++) {
        const tk_ast_type *t = def->param.at[i]->type;
        for (uint32_t d = 0; t && t->access && d < t->dims.n && d < TK_MAX_TENSOR_RANK; d++) {
            add_dim(c, def, t->dims.at[d], i, d);
        }
    }
}

static bool fix(tk_checker *c, tk_kernel_def *def, uint32_t k, const tk_arg *a, bool report) {
    uint32_t j = a->name.name ? cparam_index(def, a->name.name) : UINT32_MAX;
    if (j != UINT32_MAX && !def->fixed[j].value) {
        def->fixed[j] = (tk_fixed){a->value, k, a->name.span};
        return true;
    }
    if (!report) {
        return false;
    }
    if (j != UINT32_MAX) {
        tk_diag *d =
            tk_err_diag(c, a->name.span, "already-fixed", "'%s' is fixed already", a->name.name);
        tk_note(c->diags, d, def->fixed[j].span, "here");
        return false;
    }
    TK_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < def->fn->cparams.n; i++) {
        tk_vec_push(c->arena, &names, def->fn->cparams.at[i].name.name);
    }
    tk_span at = a->name.name ? a->name.span : a->value->span;
    const char *name = a->name.name ? a->name.name : "";
    tk_diag *d =
        a->name.name
            ? tk_err_diag(c, at, "unknown-parameter", "'%s' has no compile-time parameter '%s'",
                          def->alias.at[k].item->u.alias.other.name, name)
            : tk_err_diag(c, at, "unknown-parameter",
                          "a specialisation gives compile-time parameters by name");
    const char *near = tk_nearest(c->arena, name, names.at, names.n);
    if (near) {
        tk_help(c->diags, d, (tk_span){0}, "did you mean '%s'?", near);
    }
    return false;
}

tk_kernel_def *tk_kernel_define(tk_checker *c, const tk_entry *e, bool report) {
    tk_kernel_def *def = TK_NEW(c->arena, tk_kernel_def);
    def->name = e->name;
    def->item = e->item;
    if (!chain(c, def, e, report)) {
        return NULL;
    }
    collect_params(c, def);
    collect_dims(c, def);
    def->fixed = TK_NEW_ARRAY(c->arena, tk_fixed, def->fn->cparams.n);
    bool ok = true;
    for (uint32_t k = def->alias.n; k-- > 0;) {
        const tk_item *item = def->alias.at[k].item;
        for (uint32_t i = 0; i < item->u.alias.args.n; i++) {
            ok = fix(c, def, k, &item->u.alias.args.at[i], report) && ok;
        }
    }
    return ok ? def : NULL;
}

// ---- Evaluating one compile-time parameter ------------------------------------------------------

// The scope of a default: the parameters before it and the run-time dimensions as constants.
static tk_scope *default_scope(tk_checker *c, const tk_kernel_def *def, uint32_t j, uint32_t file,
                               const tk_value *cval, const int64_t *dim) {
    tk_scope *s = tk_scope_new(c, &c->table->file[file].scope);
    for (uint32_t i = 0; i < def->dim.n; i++) {
        tk_ident id = def->dim.at[i].name;
        tk_value v = !dim          ? tk_dep_const(c, id.span, TK_I32, false)
                     : dim[i] >= 0 ? tk_make_const(c, id.span, tk_const_i64(TK_I32, dim[i]))
                                   : tk_dep_const(c, id.span, TK_I32, false);
        tk_bind_quietly(c, s, id, v);
    }
    for (uint32_t i = 0; i < j; i++) {
        tk_bind_quietly(c, s, def->fn->cparams.at[i].name, cval[i]);
    }
    return s;
}

tk_value tk_kernel_eval(tk_checker *c, const tk_kernel_def *def, uint32_t j, const tk_expr *e,
                        uint32_t file, const tk_value *cval, const int64_t *dim) {
    const tk_cparam *p = &def->fn->cparams.at[j];
    tk_scope *old = c->scope;
    c->scope = default_scope(c, def, j, file, cval, dim);
    c->later = def->fn;
    c->later_from = j;
    tk_value v = tk_cparam_value(c, p, tk_check_known(c, e));
    c->later = NULL;
    c->scope = old;
    return v;
}

// ---- Scopes of a bound kernel -------------------------------------------------------------------
typedef struct {
    tk_checker *c;
    const tk_kernel_def *def;
    const bool *given;
    tk_kenv *out;
    bool general;
} builder;

static void declare(builder *b, tk_scope *s, tk_ident id, tk_value v) {
    if (b->general) {
        b->out->ok = tk_bind_name(b->c, s, id, v) && b->out->ok;
    } else {
        tk_bind_quietly(b->c, s, id, v);
    }
}

static bool is_none(const tk_expr *e) {
    return e && e->kind == TK_E_NAME && strcmp(e->u.name, "none") == 0;
}

static const tk_type *param_type(tk_checker *c, const tk_param *p, tk_var *var) {
    if (!p->type) {
        return NULL;
    }
    if (p->type->access) {
        return tk_resolve_tensor(c, p->type, var, NULL);
    }
    if (!p->type->has_dims) {
        return tk_resolve_type(c, p->type);
    }
    tk_diag *d =
        tk_err_diag(c, p->type->span, "bad-type", "a kernel's parameter is a tensor or a scalar");
    tk_help(c->diags, d, (tk_span){0}, "write 'in %s', 'out' or 'inout'",
            tk_ast_type_text(c, p->type));
    tk_ast_type tensor = *p->type; // so that its sizes and uses are no errors of their own
    tensor.access = TK_INOUT;
    return tk_resolve_tensor(c, &tensor, var, NULL);
}

static void check_default(tk_checker *c, const tk_param *p, const tk_type *t) {
    if (!p->init || is_none(p->init) || !t) {
        return;
    }
    if (t->kind == TK_T_TENSOR) {
        tk_err(c, p->init->span, "bad-default", "a tensor's only default is 'none'");
        return;
    }
    tk_value v = tk_fit(c, tk_check_value(c, p->init), t,
                        tk_format(c->arena, "default of '%s'", p->name.name));
    if (v.kind == TK_V_VALUE && !v.is_const) {
        tk_err(c, p->init->span, "not-constant", "a default must be known at compile time");
    }
}

// Parameters [from, to) in c->scope; those that are given name the dimensions first.
static void make_params(builder *b, uint32_t from, uint32_t to) {
    tk_checker *c = b->c;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = from; i < to; i++) {
            const tk_param *p = b->def->param.at[i];
            bool given = !b->given || b->given[i];
            if (given != (pass == 0)) {
                continue;
            }
            tk_var *var = b->out->inst->params.at[i];
            const tk_type *t = param_type(c, p, var);
            b->out->ok = b->out->ok && t;
            var->type = t ? t : tk_scalar(c, TK_I32);
            if (b->general) {
                check_default(c, p, t);
            }
            tk_value v = t ? tk_var_value(c, p->name.span, var) : tk_error_value(p->name.span);
            v.var = t ? var : NULL;
            declare(b, c->scope, p->name, v);
        }
    }
}

static void make_vars(builder *b) {
    tk_checker *c = b->c;
    for (uint32_t i = 0; i < b->def->param.n; i++) {
        const tk_param *p = b->def->param.at[i];
        tk_var *var = tk_var_new(c, TK_VAR_PARAM, p->name, tk_scalar(c, TK_I32));
        var->index = i;
        var->is_given = !b->given || b->given[i];
        if (!b->given && is_none(p->init)) {
            tk_vec_push(c->arena, &c->maybe, var);
        }
        tk_vec_push(c->arena, &b->out->inst->params, var);
    }
}

// The names of the kernel that is specialised stand in another place of the text: an anonymous
// function may use them, and may have parameters of these names.
static void copy_far(tk_checker *c, tk_scope *to, const tk_binding *list) {
    tk_binding **last = &to->list;
    for (; list; list = list->next) {
        tk_binding *b = TK_NEW(c->arena, tk_binding);
        *b = *list;
        b->far = true;
        b->next = NULL;
        *last = b;
        last = &b->next;
    }
}

// What the arguments of specialisations see: the kernel's parameters and those added so far.
static void make_alias_scopes(builder *b) {
    tk_checker *c = b->c;
    const tk_kernel_def *def = b->def;
    tk_scope *inner = b->out->scope;
    uint32_t from = def->fn->params.n;
    b->out->alias = TK_NEW_ARRAY(c->arena, tk_scope *, def->alias.n);
    for (uint32_t k = def->alias.n; k-- > 0;) {
        tk_scope *s = tk_scope_new(c, &c->table->file[def->alias.at[k].file].scope);
        copy_far(c, s, inner->list);
        b->out->alias[k] = s;
        c->scope = s;
        uint32_t to = from + def->alias.at[k].item->u.alias.params.n;
        make_params(b, from, to);
        from = to;
        inner = s;
    }
}

static void make_functions(builder *b, const tk_bound_fn *fn) {
    tk_checker *c = b->c;
    for (uint32_t j = 0; j < b->def->fn->cparams.n; j++) {
        const tk_cparam *p = &b->def->fn->cparams.at[j];
        if (tk_cparam_kind(c, p, false) != TK_CK_FN) {
            continue;
        }
        tk_value v = b->out->cval[j];
        c->scope = b->out->scope;
        if (!fn || !fn[j].expr) {
            v = tk_cparam_dep(c, p);
        } else {
            int w = fn[j].where;
            c->scope = w < 0                           ? &c->table->file[0].scope
                       : (uint32_t)w < b->def->alias.n ? b->out->alias[w]
                                                       : b->out->scope;
            v = tk_check_known(c, fn[j].expr);
            c->scope = b->out->scope;
            v = tk_cparam_value(c, p, v);
        }
        b->out->ok = b->out->ok && v.kind != TK_V_ERROR;
        b->out->cval[j] = v;
        declare(b, b->out->scope, p->name, v);
    }
}

void tk_kernel_env(tk_checker *c, const tk_kernel_def *def, tk_value *cval, const tk_bound_fn *fn,
                   const bool *given, tk_kenv *out) {
    memset(out, 0, sizeof *out);
    builder b = {.c = c, .def = def, .given = given, .out = out, .general = c->root.general};
    out->ok = true;
    out->cval = cval;
    out->inst = TK_NEW(c->arena, tk_inst);
    out->inst->name = def->name;
    out->inst->fn = def->fn;
    out->inst->is_kernel = true;
    out->inst->fast = tk_kernel_fast(c, def);
    out->frame = (tk_frame){.up = c->frame,
                            .fn = def->fn,
                            .name = def->name,
                            .inst = out->inst,
                            .general = c->root.general,
                            .result = tk_type_void()};
    out->frame.block = TK_NEW(c->arena, tk_xblock);
    c->frame = &out->frame;
    c->kernel = out->inst;
    c->ngrid = def->fn->grid.n;
    out->scope = tk_scope_new(c, &c->table->file[def->file].scope);
    c->scope = out->scope;
    for (uint32_t j = 0; j < def->fn->cparams.n; j++) {
        const tk_cparam *p = &def->fn->cparams.at[j];
        if (tk_cparam_kind(c, p, b.general) != TK_CK_FN) {
            declare(&b, out->scope, p->name, cval[j]);
        }
    }
    make_vars(&b);
    make_params(&b, 0, def->fn->params.n);
    make_alias_scopes(&b);
    make_functions(&b, fn);
    c->scope = out->scope;
}

void tk_kernel_leave(tk_checker *c, tk_kenv *env) {
    c->frame = env->frame.up;
    c->kernel = NULL;
    c->scope = &c->table->file[0].scope;
}
