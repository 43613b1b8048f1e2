// SPDX-License-Identifier: Apache-2.0
// A unit: tables of items, what each file sees, constants, and the general check of everything.
#include "lang/check_core.h"

#include <string.h>

static tk_entry **slot_of(const tk_file_table *f, const char *name) {
    uint32_t i = tk_hash(name) & (f->slots - 1);
    while (f->slot[i] && !tk_same_name(f->slot[i]->name, name)) {
        i = (i + 1) & (f->slots - 1);
    }
    return &f->slot[i];
}

static tk_entry *visible(const tk_file_table *f, const char *name) {
    return f->slots ? *slot_of(f, name) : NULL;
}

static void make_visible(tk_checker *c, tk_file_table *f, tk_entry *e) {
    if (f->visible.n >= f->slots / 2) {
        f->slots = f->slots ? 2 * f->slots : 32;
        f->slot = TK_NEW_ARRAY(c->arena, tk_entry *, f->slots);
        for (uint32_t i = 0; i < f->visible.n; i++) {
            *slot_of(f, f->visible.at[i]->name) = f->visible.at[i];
        }
    }
    tk_vec_push(c->arena, &f->visible, e);
    *slot_of(f, e->name) = e;
}

tk_entry *tk_find_entry(const tk_checker *c, uint32_t file, const char *name) {
    return c->table ? visible(&c->table->file[file], name) : NULL;
}

// ---- Constants --------------------------------------------------------------------------------
static tk_value evaluate(tk_checker *c, tk_entry *e) {
    const tk_item *item = e->item;
    const tk_type *want = item->u.konst.type ? tk_resolve_type(c, item->u.konst.type) : NULL;
    tk_value v = tk_check_value(c, item->u.konst.value);
    if (v.kind != TK_V_VALUE || (item->u.konst.type && !want)) {
        return tk_error_value(item->span);
    }
    if (want) {
        v = tk_fit(c, v, want, tk_format(c->arena, "value of '%s'", e->name));
    }
    if (v.kind == TK_V_VALUE && !v.is_const) {
        tk_diag *d = tk_err_diag(c, item->u.konst.value->span, "not-constant",
                                 "the value of '%s' must be known at compile time", e->name);
        if (v.x && v.x->kind == TK_X_ELEM) {
            tk_help(c->diags, d, (tk_span){0},
                    "functions with an error bound, like 'exp', are not folded");
        }
        return tk_error_value(item->span);
    }
    v.var = NULL;
    return v;
}

tk_value tk_entry_const(tk_checker *c, tk_entry *e, tk_span at) {
    if (e->state == 2) {
        return e->value;
    }
    if (e->state == 1) {
        tk_diag *d =
            tk_err_diag(c, at, "constant-cycle", "the value of '%s' depends on itself", e->name);
        tk_note(c->diags, d, e->item->span, "'%s' is declared here", e->name);
        return tk_error_value(at);
    }
    e->state = 1;
    tk_scope *scope = c->scope;
    tk_frame *frame = c->frame;
    c->scope = &c->table->file[e->file].scope;
    c->frame = &c->root;
    e->value = evaluate(c, e);
    c->scope = scope;
    c->frame = frame;
    e->state = 2;
    return e->value;
}

// ---- Tables -----------------------------------------------------------------------------------
static void clash(tk_checker *c, tk_span at, const char *name, const tk_entry *other) {
    tk_diag *d = tk_err_diag(c, at, "name-bound-twice", "'%s' is declared twice", name);
    tk_note(c->diags, d, other->item->name.span, "the other one is here");
}

static void own_items(tk_checker *c, uint32_t file) {
    tk_file_table *f = &c->table->file[file];
    const tk_file *ast = c->unit->files.at[file].ast;
    f->scope.file = file;
    for (uint32_t i = 0; ast && i < ast->items.n; i++) {
        const tk_item *item = ast->items.at[i];
        if (item->kind == TK_ITEM_IMPORT || !item->name.name || item->broken) {
            continue;
        }
        const tk_entry *other = visible(f, item->name.name);
        if (other) {
            clash(c, item->name.span, item->name.name, other);
            continue;
        }
        (void)tk_name_is_free(c, item->name);
        tk_entry *e = TK_NEW(c->arena, tk_entry);
        e->name = item->name.name;
        e->item = item;
        e->file = file;
        tk_vec_push(c->arena, &f->own, e);
        make_visible(c, f, e);
    }
}

static void imported_items(tk_checker *c, uint32_t file) {
    tk_file_table *f = &c->table->file[file];
    const tk_unit_file *u = &c->unit->files.at[file];
    for (uint32_t i = 0; i < u->imports.n; i++) {
        const tk_import *im = &u->imports.at[i];
        if (im->file >= c->table->n || im->file == file) {
            continue;
        }
        const tk_file_table *from = &c->table->file[im->file];
        for (uint32_t k = 0; k < from->own.n; k++) {
            tk_entry *e = from->own.at[k];
            const tk_entry *other = visible(f, e->name);
            if (other == e) {
                continue; // a file imported twice counts once
            }
            if (other) {
                tk_diag *d = tk_err_diag(c, im->span, "name-bound-twice",
                                         "'%s' comes from here and is declared already", e->name);
                tk_note(c->diags, d, e->item->name.span, "the imported one is here");
                tk_note(c->diags, d, other->item->name.span, "the other one is here");
                continue;
            }
            make_visible(c, f, e);
        }
    }
}

static void build_tables(tk_checker *c, tk_unit *unit) {
    struct tk_scope_table *t = TK_NEW(c->arena, struct tk_scope_table);
    t->n = unit->files.n;
    t->file = TK_NEW_ARRAY(c->arena, tk_file_table, t->n);
    unit->items = t;
    c->table = t;
    for (uint32_t i = 0; i < t->n; i++) {
        c->scope = &t->file[i].scope;
        own_items(c, i);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        imported_items(c, i);
    }
}

// ---- Everything in general ----------------------------------------------------------------------
static void check_item(tk_checker *c, tk_entry *e) {
    switch (e->item->kind) {
    case TK_ITEM_CONST:
        (void)tk_entry_const(c, e, e->item->span);
        return;
    case TK_ITEM_FN: {
        tk_fnval fv = {.kind = TK_FV_CODE, .name = e->name, .fn = e->item->u.fn};
        fv.env = &c->table->file[e->file].scope;
        tk_check_fn_general(c, &fv);
        return;
    }
    case TK_ITEM_KERNEL:
    case TK_ITEM_ALIAS: {
        const tk_kernel_def *def = tk_kernel_define(c, e, true);
        if (def) {
            tk_check_kernel_general(c, def);
        }
        return;
    }
    case TK_ITEM_IMPORT:
        return;
    }
}

void tk_check_unit(tk_arena *arena, tk_unit *unit, tk_diags *diags) {
    tk_checker c;
    tk_checker_init(&c, arena, unit, diags, true);
    build_tables(&c, unit);
    for (int constants = 1; constants >= 0; constants--) {
        for (uint32_t i = 0; i < unit->items->n; i++) {
            tk_file_table *f = &unit->items->file[i];
            for (uint32_t k = 0; k < f->own.n; k++) {
                if ((f->own.at[k]->item->kind == TK_ITEM_CONST) != (constants == 1)) {
                    continue;
                }
                c.scope = &f->scope;
                c.too_deep = false;
                check_item(&c, f->own.at[k]);
            }
        }
    }
}
