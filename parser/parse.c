// SPDX-License-Identifier: Apache-2.0
// The entry points: one parse from text to tree. See parse_internal.h for its steps.
#include "parser/parse_internal.h"

#include "parser/parse.tab.h"

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

tk_file *tk_parse(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                  tk_diags *diags) {
    tk_parser p = begin(arena, names, sources, source, diags, TOK_START_FILE);
    run(&p);
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
