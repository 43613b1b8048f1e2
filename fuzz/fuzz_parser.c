// SPDX-License-Identifier: Apache-2.0
// Any bytes parse without a fault. What has a canonical layout keeps its tokens in it, and the
// layout of the layout is the same text.
#include "lang/base.h"
#include "parser/parse.h"
#include "parser/parse_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    tk_arena *arena;
    tk_names names;
    tk_sources sources;
    tk_diags diags;
} compile;

static uint32_t add(compile *c, const char *text, size_t size) {
    return tk_sources_add(&c->sources, "fuzz.tk", text, size);
}

static void fail(const char *what, const char *a, const char *b) {
    (void)fprintf(stderr, "%s\n--- first\n%s\n--- second\n%s\n", what, a, b);
    abort();
}

static tk_parser tokens_of(compile *c, uint32_t file) {
    tk_parser p = {.arena = c->arena,
                   .names = &c->names,
                   .source = tk_source_of(&c->sources, file),
                   .file = file,
                   .diags = &c->diags};
    tk_tokenize(&p);
    return p;
}

static void same_tokens(compile *c, uint32_t before, uint32_t after) {
    tk_parser a = tokens_of(c, before), b = tokens_of(c, after);
    bool same = a.tokens.n == b.tokens.n && a.comments.n == b.comments.n;
    for (uint32_t i = 0; same && i < a.tokens.n; i++) {
        const tk_token *x = &a.tokens.at[i], *y = &b.tokens.at[i];
        same = x->kind == y->kind && x->end - x->begin == y->end - y->begin &&
               memcmp(a.source->text + x->begin, b.source->text + y->begin, x->end - x->begin) == 0;
    }
    for (uint32_t i = 0; same && i < a.comments.n; i++) {
        same = a.comments.at[i].next == b.comments.at[i].next;
    }
    if (!same) {
        fail("the layout changes tokens", a.source->text, b.source->text);
    }
}

static void check(compile *c, const char *text, size_t size) {
    uint32_t source = add(c, text, size);
    tk_file *file = tk_parse(c->arena, &c->names, &c->sources, source, &c->diags);
    uint32_t errors = c->diags.errors;
    tk_buf out, again, tree, messages;
    tk_buf_init(&tree, c->arena);
    tk_ast_print(&tree, file);
    tk_buf_init(&messages, c->arena);
    tk_diags_print(&messages, &c->sources, &c->diags, true);
    (void)tk_parse_expr(c->arena, &c->names, &c->sources, source, &c->diags);
    tk_diags_init(&c->diags, c->arena);
    tk_buf_init(&out, c->arena);
    bool ok = tk_format_source(c->arena, &c->names, &c->sources, source, &c->diags, &out);
    if (ok != (errors == 0)) {
        fail("parse and format disagree", tk_buf_text(&messages), "");
    }
    if (!ok) {
        return;
    }
    uint32_t laid_out = add(c, tk_buf_text(&out), out.n);
    tk_buf_init(&again, c->arena);
    if (!tk_format_source(c->arena, &c->names, &c->sources, laid_out, &c->diags, &again)) {
        fail("the layout does not parse", text, tk_buf_text(&out));
    }
    if (strcmp(tk_buf_text(&out), tk_buf_text(&again)) != 0) {
        fail("the layout is not stable", tk_buf_text(&out), tk_buf_text(&again));
    }
    same_tokens(c, source, laid_out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_guard guard;
    tk_arena arena;
    compile c = {.arena = &arena};
    tk_arena_init(&arena, NULL, &guard);
    if (setjmp(guard.jump) == 0) {
        tk_names_init(&c.names, &arena);
        tk_sources_init(&c.sources, &arena);
        tk_diags_init(&c.diags, &arena);
        check(&c, (const char *)data, size);
    } else {
        fail("internal error or out of memory", guard.text, "");
    }
    tk_arena_release(&arena);
    return 0;
}
