// SPDX-License-Identifier: Apache-2.0
// The checker's ground: its state, errors with the calls that led to them, texts for messages.
#include "lang/check_core.h"

#include <math.h>
#include <string.h>

void tk_checker_init(tk_checker *c, tk_arena *arena, const tk_unit *unit, tk_diags *diags,
                     bool general) {
    memset(c, 0, sizeof *c);
    c->arena = arena;
    c->diags = diags;
    c->unit = unit;
    c->table = unit->items;
    c->root.general = general;
    c->root.name = "";
    c->root.result = tk_type_void();
    c->root.block = TK_NEW(arena, tk_xblock);
    c->frame = &c->root;
    c->scope = unit->items && unit->items->n ? &unit->items->file[0].scope : NULL;
}

tk_arena *tk_checker_arena(tk_checker *c) { return c->arena; }

tk_diags *tk_checker_diags(tk_checker *c) { return c->diags; }

bool tk_checker_general(const tk_checker *c) { return c->frame->general; }

bool tk_checker_lifted(const tk_checker *c) { return c->frame->inst && c->frame->inst->lifted; }

int tk_checker_grid(const tk_checker *c) { return c->kernel ? (int)c->ngrid : -1; }

bool tk_checker_conditional(const tk_checker *c) {
    for (const tk_frame *f = c->frame; f; f = f->up) {
        if (f->conditional) {
            return true;
        }
    }
    return false;
}

// ---- Errors ---------------------------------------------------------------------------------
void tk_call_notes(tk_checker *c, tk_diag *d) {
    enum { SHOWN = 12 };
    unsigned n = 0;
    for (const tk_frame *f = c->frame; f; f = f->up) {
        if (f->call.file == 0) {
            continue;
        }
        if (n++ < SHOWN) {
            tk_note(c->diags, d, f->call, "'%s' is called from here", f->name);
        }
    }
    if (n > SHOWN) {
        tk_note(c->diags, d, (tk_span){0}, "and from %u more calls", n - SHOWN);
    }
}

tk_value tk_error_value(tk_span at) {
    return (tk_value){.kind = TK_V_ERROR, .span = at, .type = tk_type_error()};
}

tk_value tk_err(tk_checker *c, tk_span at, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(c->arena, fmt, args);
    va_end(args);
    c->failed = true;
    tk_call_notes(c, tk_error(c->diags, at, id, "%s", text));
    return tk_error_value(at);
}

tk_diag *tk_err_diag(tk_checker *c, tk_span at, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(c->arena, fmt, args);
    va_end(args);
    c->failed = true;
    tk_diag *d = tk_error(c->diags, at, id, "%s", text);
    tk_call_notes(c, d);
    return d;
}

tk_diag *tk_warn_diag(tk_checker *c, tk_span at, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(c->arena, fmt, args);
    va_end(args);
    tk_diag *d = tk_warning(c->diags, at, id, "%s", text);
    tk_call_notes(c, d);
    return d;
}

// True, after one error, where the nesting of the walk passes its limit.
bool tk_check_too_deep(tk_checker *c, tk_span at, const char *what) {
    if (!c->too_deep) {
        c->too_deep = true;
        tk_err(c, at, "too-deep", "%s", what);
    }
    return true;
}

bool tk_walk_enter(tk_checker *c, tk_span at) {
    if (c->walk >= TK_MAX_WALK) {
        tk_check_too_deep(c, at, "functions and expressions are nested too deep here");
        return false;
    }
    c->walk++;
    return true;
}

void tk_walk_leave(tk_checker *c) { c->walk--; }

// ---- Texts ----------------------------------------------------------------------------------
bool tk_same_name(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

uint32_t tk_hash(const char *s) {
    uint32_t h = 2166136261u; // FNV-1a
    for (; *s; s++) {
        h = (h ^ (unsigned char)*s) * 16777619u;
    }
    return h;
}

const char *tk_source_text(tk_checker *c, tk_span at) {
    enum { LONGEST = 60 };
    const tk_source *s = tk_source_of(c->unit->sources, at.file);
    if (!s || at.begin >= at.end || at.end > s->size || at.end - at.begin > LONGEST) {
        return NULL;
    }
    const char *text = s->text + at.begin;
    size_t n = at.end - at.begin;
    if (memchr(text, '\n', n) || memchr(text, '\0', n)) {
        return NULL;
    }
    return tk_strndup(c->arena, text, n);
}

tk_span tk_span_join(tk_span a, tk_span b) {
    if (a.file != b.file) {
        return a;
    }
    return (tk_span){a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

const char *tk_number_text(tk_checker *c, tk_number n) {
    if (n.is_bool) {
        return n.i ? "true" : "false";
    }
    if (n.is_float) {
        const char *s = isnan(n.f) ? "nan" : tk_format(c->arena, "%.9g", n.f);
        return s;
    }
    if (n.big) {
        return tk_format(c->arena, "%llu", (unsigned long long)(uint64_t)n.i);
    }
    return tk_format(c->arena, "%lld", (long long)n.i);
}

const char *tk_value_what(tk_checker *c, tk_value v) {
    switch (v.kind) {
    case TK_V_ERROR:
        return "an error";
    case TK_V_VALUE:
    case TK_V_VIEW:
        return tk_type_text(c->arena, v.type);
    case TK_V_TENSOR:
        return "a tensor";
    case TK_V_TYPE:
        return "a type";
    case TK_V_FN:
        return "a function";
    case TK_V_LIST:
        return "a list";
    case TK_V_TUPLE:
        return "several values";
    case TK_V_VOID:
        return "no value";
    case TK_V_NAME:
        return "an unknown name";
    }
    return "?";
}

// What stands between the brackets, from the source where it is short.
const char *tk_expr_text(tk_checker *c, const tk_expr *e) {
    if (e->kind == TK_E_NAME) {
        return e->u.name;
    }
    const char *s = tk_source_text(c, e->span);
    if (s) {
        return s;
    }
    return e->kind == TK_E_INT ? tk_format(c->arena, "%llu", (unsigned long long)e->u.i.value)
                               : "...";
}

static void type_text(tk_checker *c, tk_buf *b, const tk_ast_type *t, unsigned depth) {
    if (!t || depth > 8) {
        tk_buf_str(b, t ? "..." : "");
        return;
    }
    switch (t->kind) {
    case TK_AT_NAME:
        tk_buf_str(b, t->access == TK_IN      ? "in "
                      : t->access == TK_OUT   ? "out "
                      : t->access == TK_INOUT ? "inout "
                                              : "");
        tk_buf_str(b, t->name.name ? t->name.name : "?");
        for (uint32_t i = 0; i < t->dims.n; i++) {
            tk_buf_str(b, i ? ", " : "[");
            tk_buf_str(b, tk_expr_text(c, t->dims.at[i]));
        }
        tk_buf_str(b, t->dims.n ? "]" : "");
        return;
    case TK_AT_FN:
    case TK_AT_TUPLE:
        tk_buf_str(b, t->kind == TK_AT_FN ? "fn(" : "(");
        for (uint32_t i = 0; i < t->args.n; i++) {
            tk_buf_str(b, i ? ", " : "");
            type_text(c, b, t->args.at[i], depth + 1);
        }
        tk_buf_str(b, t->kind == TK_AT_FN && t->result ? ") -> " : ")");
        type_text(c, b, t->kind == TK_AT_FN ? t->result : NULL, depth + 1);
        return;
    }
}

const char *tk_ast_type_text(tk_checker *c, const tk_ast_type *t) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    type_text(c, &b, t, 0);
    return tk_buf_text(&b);
}

// The text of `whole` with `part` wrapped in a call of `type`; NULL where the source is not at
// hand.
const char *tk_cast_help(tk_checker *c, tk_span whole, tk_span part, const char *type) {
    const tk_source *s = tk_source_of(c->unit->sources, whole.file);
    const char *inner = tk_source_text(c, part);
    if (!inner) {
        return NULL;
    }
    if (!s || whole.file != part.file || part.begin < whole.begin || part.end > whole.end ||
        !tk_source_text(c, whole)) {
        return tk_format(c->arena, "%s(%s)", type, inner);
    }
    return tk_format(c->arena, "%.*s%s(%s)%.*s", (int)(part.begin - whole.begin),
                     s->text + whole.begin, type, inner, (int)(whole.end - part.end),
                     s->text + part.end);
}
