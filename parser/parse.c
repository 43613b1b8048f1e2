// SPDX-License-Identifier: Apache-2.0
// The entry points: one parse from text to tree. See parse_internal.h for its steps.
#include "parser/parse_internal.h"

#include "parser/parse.tab.h"

#include <string.h>

static tk_parser begin(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                       tk_diags *diags, int start) {
    tk_parser p = {.arena = arena,
                   .names = names,
                   .source = tk_source_of(sources, source),
                   .file = source,
                   .diags = diags,
                   .start = start,
                   .synced = UINT32_MAX};
    TK_CHECK(arena, p.source != NULL);
    p.tree = TK_NEW(arena, tk_file);
    p.tree->source = source;
    return p;
}

// The lexer has been over the whole text before the grammar starts; the reader wants the order of
// the text.
static void sort_from(tk_diags *d, uint32_t first) {
    for (uint32_t i = first; i < d->list.n; i++) {
        tk_diag *x = d->list.at[i];
        uint32_t j = i;
        while (j > first && d->list.at[j - 1]->span.begin > x->span.begin) {
            d->list.at[j] = d->list.at[j - 1];
            j--;
        }
        d->list.at[j] = x;
    }
}

static void run(tk_parser *p) {
    uint32_t first = p->diags->list.n;
    tk_tokenize(p);
    (void)tkp_parse(p);
    sort_from(p->diags, first);
}

// ---- What errors leave of the items -------------------------------------------------------------

static void mark(tk_item *item, const char *id) {
    static const char *const whole[] = {"missing-brace", "no-conditional", "chained-comparison",
                                        "empty-statement", NULL};
    if (strcmp(id, "syntax") == 0 || strcmp(id, "missing-semicolon") == 0) {
        item->gaps = true;
        return;
    }
    for (const char *const *w = whole; *w; w++) {
        if (strcmp(id, *w) == 0) {
            return;
        }
    }
    item->broken = true;
}

// Both are in the order of the text.
static void mark_items(tk_parser *p, uint32_t first) {
    const tk_diags *d = p->diags;
    uint32_t k = 0;
    for (uint32_t i = first; i < d->list.n; i++) {
        const tk_diag *x = d->list.at[i];
        while (k < p->tree->items.n && p->tree->items.at[k]->span.end < x->span.begin) {
            k++;
        }
        if (k < p->tree->items.n && p->tree->items.at[k]->span.begin <= x->span.begin &&
            x->severity == TK_ERROR) {
            mark(p->tree->items.at[k], x->id);
        }
    }
}

static void collect_lost(tk_parser *p) {
    uint32_t k = 0;
    for (uint32_t i = 1; i < p->tokens.n; i++) {
        const tk_token *t = &p->tokens.at[i];
        int before = t[-1].kind;
        if (t->kind != TOK_NAME ||
            (before != TOK_FN && before != TOK_KERNEL && before != TOK_CONST)) {
            continue;
        }
        while (k < p->tree->items.n && p->tree->items.at[k]->name.span.begin < t->begin) {
            k++;
        }
        if (k == p->tree->items.n || p->tree->items.at[k]->name.span.begin != t->begin ||
            p->tree->items.at[k]->broken) {
            tk_vec_push(p->arena, &p->tree->lost, t->u.name);
        }
    }
}

tk_file *tk_parse(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                  tk_diags *diags) {
    uint32_t errors = diags->errors, first = diags->list.n;
    tk_parser p = begin(arena, names, sources, source, diags, TOK_START_FILE);
    run(&p);
    if (diags->errors != errors) {
        mark_items(&p, first);
        collect_lost(&p);
    }
    return p.tree;
}

tk_expr *tk_parse_expr(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                       tk_diags *diags) {
    uint32_t errors = diags->errors;
    tk_parser p = begin(arena, names, sources, source, diags, TOK_START_EXPR);
    run(&p);
    return diags->errors == errors ? p.expr : NULL;
}

bool tk_format_source(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                      tk_diags *diags, tk_buf *out) {
    uint32_t errors = diags->errors;
    tk_parser p = begin(arena, names, sources, source, diags, TOK_START_FILE);
    run(&p);
    if (diags->errors != errors) {
        return false;
    }
    tk_layout(&p, out);
    return true;
}
