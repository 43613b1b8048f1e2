// SPDX-License-Identifier: Apache-2.0
// Reflection: a kernel as its user sees it.
#include "lang/check_core.h"

#include <string.h>

static bool is_none(const tk_expr *e) {
    return e && e->kind == TK_E_NAME && strcmp(e->u.name, "none") == 0;
}

// The default of a scalar parameter; where its type depends on a parameter, in i64, f64 or bool.
static void scalar_default(tk_checker *c, const tk_kernel_def *def, uint32_t i, tk_kparam *out) {
    const tk_param *p = def->param.at[i];
    if (!p->init || is_none(p->init) || out->is_tensor) {
        return;
    }
    c->scope = &c->table->file[def->param_file.at[i]].scope;
    tk_value v = tk_check_value(c, p->init);
    tk_dtype t;
    const char *name = p->type && p->type->name.name ? p->type->name.name : "";
    if (!tk_is_known_const(v)) {
        return;
    }
    out->has_default = true;
    out->def = v.untyped ? tk_number_const(v.num) : v.x->u.konst;
    if (tk_dtype_from_name(name, strlen(name), &t)) {
        out->def = tk_cast(out->def, t);
    }
}

static void reflect_param(tk_checker *c, const tk_kernel_def *def, uint32_t i, tk_kparam *out) {
    const tk_param *p = def->param.at[i];
    out->name = p->name.name;
    out->span = p->span;
    out->optional = p->init != NULL;
    if (!p->type) {
        out->dtype = "?";
        return;
    }
    out->dtype = p->type->name.name ? p->type->name.name : "?";
    out->is_tensor = p->type->access != 0;
    out->access = (tk_access)p->type->access;
    out->rank = out->is_tensor ? p->type->dims.n : 0;
    out->dim = TK_NEW_ARRAY(c->arena, const char *, out->rank);
    for (uint32_t d = 0; d < out->rank; d++) {
        out->dim[d] = tk_expr_text(c, p->type->dims.at[d]);
    }
    scalar_default(c, def, i, out);
}

static bool mentions(const tk_ast_type *t, const char *name) {
    if (!t || t->kind != TK_AT_NAME) {
        return false;
    }
    bool yes = tk_same_name(t->name.name, name);
    for (uint32_t d = 0; t->access && d < t->dims.n; d++) {
        const tk_expr *e = t->dims.at[d];
        yes = yes || (e->kind == TK_E_NAME && tk_same_name(e->u.name, name));
    }
    return yes;
}

static void reflect_cparam(tk_checker *c, const tk_kernel_def *def, uint32_t j, tk_kcparam *out) {
    const tk_cparam *p = &def->fn->cparams.at[j];
    out->name = p->name.name;
    out->kind = p->kind ? tk_ast_type_text(c, p->kind) : "?";
    const tk_expr *e = def->fixed[j].value ? def->fixed[j].value : p->init;
    const tk_expr *tuned = e ? NULL : tk_tune_first(def, p->name.name);
    e = e ? e : tuned;
    out->value = e ? tk_expr_text(c, e) : NULL;
    out->fixed = def->fixed[j].value != NULL;
    for (uint32_t i = 0; i < def->param.n; i++) {
        out->from_arguments = out->from_arguments || mentions(def->param.at[i]->type, out->name);
    }
}

static tk_kernel_info *reflect(tk_checker *c, const tk_entry *e) {
    tk_kernel_def *def = tk_kernel_define(c, e, false);
    if (!def) {
        return NULL;
    }
    tk_kernel_info *k = TK_NEW(c->arena, tk_kernel_info);
    k->name = def->name;
    k->item = def->item;
    k->fn = def->fn;
    k->def = def;
    k->nparam = def->param.n;
    k->param = TK_NEW_ARRAY(c->arena, tk_kparam, k->nparam);
    for (uint32_t i = 0; i < k->nparam; i++) {
        reflect_param(c, def, i, &k->param[i]);
    }
    k->ncparam = def->fn->cparams.n;
    k->cparam = TK_NEW_ARRAY(c->arena, tk_kcparam, k->ncparam);
    for (uint32_t j = 0; j < k->ncparam; j++) {
        reflect_cparam(c, def, j, &k->cparam[j]);
    }
    k->ndim = def->dim.n;
    k->dim = TK_NEW_ARRAY(c->arena, const char *, k->ndim);
    for (uint32_t i = 0; i < k->ndim; i++) {
        k->dim[i] = def->dim.at[i].name.name;
    }
    k->ngrid = def->fn->grid.n;
    k->grid = TK_NEW_ARRAY(c->arena, const char *, k->ngrid);
    k->grid_count = TK_NEW_ARRAY(c->arena, const char *, k->ngrid);
    for (uint32_t i = 0; i < k->ngrid; i++) {
        k->grid[i] = def->fn->grid.at[i].name.name;
        k->grid_count[i] = tk_expr_text(c, def->fn->grid.at[i].count);
    }
    return k;
}

static bool is_kernel(const tk_entry *e) {
    return e->item->kind == TK_ITEM_KERNEL || e->item->kind == TK_ITEM_ALIAS;
}

void tk_unit_kernels(tk_arena *arena, const tk_unit *unit, tk_kernel_info ***list, uint32_t *n) {
    tk_checker c;
    tk_diags unused;
    tk_diags_init(&unused, arena);
    tk_checker_init(&c, arena, unit, &unused, false);
    *n = 0;
    *list = NULL;
    if (!unit->items || !unit->items->n) {
        return;
    }
    const tk_file_table *f = &unit->items->file[0];
    *list = TK_NEW_ARRAY(arena, tk_kernel_info *, f->own.n);
    for (uint32_t i = 0; i < f->own.n; i++) {
        tk_kernel_info *k = is_kernel(f->own.at[i]) ? reflect(&c, f->own.at[i]) : NULL;
        if (k) {
            (*list)[(*n)++] = k;
        }
    }
}

tk_kernel_info *tk_unit_kernel(tk_arena *arena, const tk_unit *unit, const char *name) {
    tk_checker c;
    tk_diags unused;
    tk_diags_init(&unused, arena);
    tk_checker_init(&c, arena, unit, &unused, false);
    if (!unit->items || !unit->items->n) {
        return NULL;
    }
    const tk_entry *e = tk_find_entry(&c, 0, name);
    return e && is_kernel(e) ? reflect(&c, e) : NULL;
}
