// SPDX-License-Identifier: Apache-2.0
// See parsing.h.
#include "parsing.h"

#include "parser/parse_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

const char *const good_kernels[GOOD_KERNELS] = {
    "softmax",    "matmul",     "attention",   "layernorm",  "functions",
    "contextual", "attributes", "expressions", "reductions", "dropout"};

void parsing_begin(parsing *p) {
    memset(p, 0, sizeof *p);
    tk_arena_init(&p->arena, NULL, &p->guard);
    if (setjmp(p->guard.jump) != 0) {
        cr_assert_fail("the arena failed: %s", p->guard.text);
    }
    tk_names_init(&p->names, &p->arena);
    tk_sources_init(&p->sources, &p->arena);
    tk_diags_init(&p->diags, &p->arena);
}

void parsing_end(parsing *p) { tk_arena_release(&p->arena); }

void parsing_clear(parsing *p) { tk_diags_init(&p->diags, &p->arena); }

tk_file *parse_bytes(parsing *p, const char *text, size_t size) {
    p->source = tk_sources_add(&p->sources, "k.tk", text, size);
    return tk_parse(&p->arena, &p->names, &p->sources, p->source, &p->diags);
}

tk_file *parse_text(parsing *p, const char *text) { return parse_bytes(p, text, strlen(text)); }

const char *tree_of(parsing *p, const char *text) {
    tk_buf out;
    tk_buf_init(&out, &p->arena);
    tk_ast_print(&out, parse_text(p, text));
    return tk_buf_text(&out);
}

const char *messages_of(parsing *p, const char *text) {
    tk_buf out;
    tk_buf_init(&out, &p->arena);
    parsing_clear(p);
    (void)parse_text(p, text);
    tk_diags_print(&out, &p->sources, &p->diags, false);
    return tk_buf_text(&out);
}

const char *first_id(const parsing *p) { return p->diags.list.n ? p->diags.list.at[0]->id : ""; }

const char *layout_of(parsing *p, const char *text, size_t size, size_t *out_size) {
    tk_buf out;
    tk_buf_init(&out, &p->arena);
    p->source = tk_sources_add(&p->sources, "k.tk", text, size);
    bool ok = tk_format_source(&p->arena, &p->names, &p->sources, p->source, &p->diags, &out);
    if (out_size) {
        *out_size = out.n;
    }
    return ok ? tk_buf_text(&out) : NULL;
}

const char *read_kernel(parsing *p, unsigned i, size_t *size) {
    char path[64];
    (void)snprintf(path, sizeof path, "tests/kernels/%s.tk", good_kernels[i]);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s cannot be opened", path);
    char *text = tk_alloc(&p->arena, 1 << 16);
    *size = fread(text, 1, (1 << 16) - 1, f);
    (void)fclose(f);
    return text;
}

static tk_parser tokens_of(parsing *p, const char *text, size_t size) {
    uint32_t file = tk_sources_add(&p->sources, "k.tk", text, size);
    tk_parser q = {.arena = &p->arena,
                   .names = &p->names,
                   .source = tk_source_of(&p->sources, file),
                   .file = file,
                   .diags = &p->diags};
    tk_tokenize(&q);
    return q;
}

uint32_t token_ranges(parsing *p, const char *text, size_t size, token_range **out) {
    tk_parser q = tokens_of(p, text, size);
    uint32_t n = q.tokens.n - 1;
    *out = TK_NEW_ARRAY(&p->arena, token_range, n);
    for (uint32_t i = 0; i < n; i++) {
        (*out)[i] = (token_range){q.tokens.at[i].begin, q.tokens.at[i].end};
    }
    return n;
}

bool same_tokens(parsing *p, const char *a, size_t na, const char *b, size_t nb) {
    tk_parser x = tokens_of(p, a, na), y = tokens_of(p, b, nb);
    if (x.tokens.n != y.tokens.n || x.comments.n != y.comments.n) {
        return false;
    }
    for (uint32_t i = 0; i < x.tokens.n; i++) {
        const tk_token *s = &x.tokens.at[i], *t = &y.tokens.at[i];
        if (s->kind != t->kind || s->end - s->begin != t->end - t->begin ||
            memcmp(a + s->begin, b + t->begin, s->end - s->begin) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < x.comments.n; i++) {
        if (x.comments.at[i].next != y.comments.at[i].next) {
            return false;
        }
    }
    return true;
}
