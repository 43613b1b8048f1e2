// SPDX-License-Identifier: Apache-2.0
// Scopes: binding names, finding them, and what an unknown name may have meant.
#include "lang/check_core.h"

#include <string.h>

tk_scope *tk_scope_new(tk_checker *c, tk_scope *up) {
    tk_scope *s = TK_NEW(c->arena, tk_scope);
    s->up = up;
    s->file = up->file;
    return s;
}

tk_scope *tk_scope_push(tk_checker *c) {
    c->scope = tk_scope_new(c, c->scope);
    return c->scope;
}

// The names bound so far; what is bound later is not in it.
tk_scope *tk_scope_snapshot(tk_checker *c, const tk_scope *s) {
    tk_scope *first = NULL, **to = &first;
    for (; s; s = s->up) {
        if (!s->up) {
            *to = &c->table->file[s->file].scope;
            break;
        }
        *to = TK_NEW(c->arena, tk_scope);
        **to = *s;
        to = &(*to)->up;
    }
    return first;
}

tk_binding *tk_scope_find(const tk_scope *s, const char *name) {
    for (; s; s = s->up) {
        for (tk_binding *b = s->list; b; b = b->next) {
            if (tk_same_name(b->name, name)) {
                return b;
            }
        }
    }
    return NULL;
}

void tk_bind_quietly(tk_checker *c, tk_scope *s, tk_ident id, tk_value v) {
    tk_binding *b = TK_NEW(c->arena, tk_binding);
    b->name = id.name;
    b->span = id.span;
    b->value = v;
    b->next = s->list;
    s->list = b;
}

static bool is_reserved(const char *name) {
    static const char *const word[] = {"same", "always", "none"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        if (strcmp(word[i], name) == 0) {
            return true;
        }
    }
    tk_numop elem;
    return tk_find_builtin(name, &elem) != TK_BI_COUNT || elem != TK_NUM_COUNT;
}

// An error where the language itself has a meaning for the name.
static bool is_free_word(tk_checker *c, tk_ident id) {
    tk_dtype t;
    bool type = tk_dtype_from_name(id.name, strlen(id.name), &t);
    if (!type && !is_reserved(id.name)) {
        return true;
    }
    tk_diag *d = tk_err_diag(c, id.span, "reserved-name", "'%s' is a built-in %s", id.name,
                             type ? "type" : "function");
    tk_help(c->diags, d, (tk_span){0}, "choose another name: a name that is known is not hidden");
    return false;
}

bool tk_name_is_free(tk_checker *c, tk_ident id) { return is_free_word(c, id); }

static bool in_scope(const tk_scope *s, const tk_binding *b) {
    const tk_binding *x = s->list;
    while (x && x != b) {
        x = x->next;
    }
    return x != NULL;
}

bool tk_bind_name(tk_checker *c, tk_scope *s, tk_ident id, tk_value v) {
    if (!id.name) {
        return true;
    }
    const tk_binding *b = tk_scope_find(s, id.name);
    b = b && b->far && !in_scope(s, b) ? NULL : b;
    const tk_entry *e = b ? NULL : tk_find_entry(c, s->file, id.name);
    bool ok = is_free_word(c, id);
    if (b || e) {
        tk_diag *d = tk_err_diag(c, id.span, "name-bound-twice", "'%s' is bound already", id.name);
        tk_note(c->diags, d, b ? b->span : e->item->name.span, "here");
        tk_help(c->diags, d, (tk_span){0}, "choose another name: a name is not hidden");
        ok = false;
    }
    tk_bind_quietly(c, s, id, v);
    return ok;
}

// ---- Unknown names --------------------------------------------------------------------------
typedef struct {
    tk_checker *c;
    bool types; // only these
    TK_VEC(const char *) name;
} candidates;

static void gather_scope(candidates *k) {
    for (const tk_scope *s = k->c->scope; s; s = s->up) {
        for (const tk_binding *b = s->list; b; b = b->next) {
            if (b->name && (!k->types || b->value.kind == TK_V_TYPE)) {
                tk_vec_push(k->c->arena, &k->name, b->name);
            }
        }
    }
}

static void gather_rest(candidates *k) {
    tk_checker *c = k->c;
    for (int t = 0; t < TK_DTYPE_COUNT; t++) {
        tk_vec_push(c->arena, &k->name, tk_dtype_name((tk_dtype)t));
    }
    if (k->types) {
        return;
    }
    if (c->scope && c->table) {
        const tk_file_table *f = &c->table->file[c->scope->file];
        for (uint32_t i = 0; i < f->visible.n; i++) {
            tk_vec_push(c->arena, &k->name, f->visible.at[i]->name);
        }
    }
    size_t n;
    const char *const *names = tk_builtin_names(&n);
    for (size_t i = 0; i < n; i++) {
        tk_vec_push(c->arena, &k->name, names[i]);
    }
    static const char *const more[] = {"same", "always", "true", "false"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        tk_vec_push(c->arena, &k->name, more[i]);
    }
}

static void suggest(tk_checker *c, tk_diag *d, const char *name, bool types) {
    candidates k = {.c = c, .types = types};
    gather_scope(&k);
    const char *near = tk_nearest(c->arena, name, k.name.at, k.name.n);
    if (!near) {
        k.name.n = 0;
        gather_rest(&k);
        near = tk_nearest(c->arena, name, k.name.at, k.name.n);
    }
    if (near) {
        tk_help(c->diags, d, (tk_span){0}, "did you mean '%s'?", near);
    } else if (types && name[0] >= 'A' && name[0] <= 'Z') {
        tk_help(c->diags, d, (tk_span){0}, "a type that is a parameter is declared: '<%s: type>'",
                name);
    }
}

// What people from elsewhere write, and what it is here.
static const char *elsewhere(const char *name) {
    static const char *const pair[][2] = {
        {"tanhf", "tanh"},
        {"expf", "exp"},
        {"sqrtf", "sqrt"},
        {"arange", "iota"},
        {"maximum", "max"},
        {"minimum", "min"},
        {"matmul", "dot"},
        {"select", "where"},
        {"int", "i32"},
        {"float", "f32"},
        {"double", "f64"},
        {"half", "f16"},
        {"int32", "i32"},
        {"float32", "f32"},
        {"float16", "f16"},
        {"bfloat16", "bf16"},
        {"fabs", "abs"},
        {"float64", "f64"},
        {"int64", "i64"},
        {"uint32", "u32"},
        {"uint8", "u8"},
        {"int8", "i8"},
        {"trans", "transpose"},
        {"mod", "%"},
        {"broadcast_to", "broadcast"},
        {"cat", "concat"},
        {"num_pid", "num_programs"},
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        if (strcmp(pair[i][0], name) == 0) {
            return pair[i][1];
        }
    }
    return NULL;
}

// True where the name is a compile-time parameter that a default may not use yet.
static bool is_later(tk_checker *c, tk_span at, const char *name) {
    for (uint32_t i = c->later_from; c->later && i < c->later->cparams.n; i++) {
        const tk_cparam *p = &c->later->cparams.at[i];
        if (tk_same_name(p->name.name, name)) {
            tk_diag *d =
                tk_err_diag(c, at, "later-parameter",
                            "this value may use only the parameters before it, not '%s'", name);
            tk_note(c->diags, d, p->span, "'%s' is declared here", name);
            return true;
        }
    }
    return false;
}

static const tk_unit_file *file_of(const tk_checker *c, tk_span at) {
    for (uint32_t i = 0; i < c->unit->files.n; i++) {
        const tk_unit_file *f = &c->unit->files.at[i];
        if (f->ast && f->ast->source == at.file) {
            return f;
        }
    }
    return NULL;
}

bool tk_in_gaps(const tk_checker *c, tk_span at) {
    const tk_unit_file *f = file_of(c, at);
    for (uint32_t i = 0; f && i < f->ast->items.n; i++) {
        const tk_item *item = f->ast->items.at[i];
        if (item->gaps && item->span.begin <= at.begin && at.end <= item->span.end) {
            return true;
        }
    }
    return false;
}

static bool is_lost(const tk_file *f, const char *name) {
    for (uint32_t i = 0; f && i < f->lost.n; i++) {
        if (tk_same_name(f->lost.at[i], name)) {
            return true;
        }
    }
    return false;
}

// Whether the name may be declared where an error has been reported.
static bool may_follow(const tk_checker *c, tk_span at, const char *name, const char *what) {
    const tk_unit_file *f = file_of(c, at);
    bool may = f && (f->open || is_lost(f->ast, name));
    for (uint32_t i = 0; f && !may && i < f->imports.n; i++) {
        may = is_lost(c->unit->files.at[f->imports.at[i].file].ast, name);
    }
    return may || (strcmp(what, "name") == 0 && tk_in_gaps(c, at));
}

void tk_unknown_name(tk_checker *c, tk_span at, const char *name, const char *what) {
    if (is_later(c, at, name)) {
        return;
    }
    if (may_follow(c, at, name, what)) {
        c->failed = true;
        return;
    }
    tk_diag *d = tk_err_diag(c, at, "unknown-name", "unknown %s '%s'", what, name);
    const char *here = elsewhere(name);
    if (here) {
        tk_help(c->diags, d, (tk_span){0}, "tkc has '%s'", here);
    } else {
        suggest(c, d, name, strcmp(what, "type") == 0);
    }
}
