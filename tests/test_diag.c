// SPDX-License-Identifier: Apache-2.0
// Diagnostics: collecting, limits, and the exact text form.
#include "lang/diag.h"

#include <criterion/criterion.h>
#include <string.h>

static tk_guard guard;
static tk_arena arena;
static tk_sources sources;
static tk_diags diags;

static void begin(void) {
    tk_arena_init(&arena, NULL, &guard);
    if (setjmp(guard.jump) != 0) {
        cr_assert_fail("the arena failed: %s", guard.text);
    }
    tk_sources_init(&sources, &arena);
    tk_diags_init(&diags, &arena);
}

static void end(void) { tk_arena_release(&arena); }

static uint32_t source(const char *text) {
    return tk_sources_add(&sources, "k.tk", text, strlen(text));
}

static const char *text_of(const tk_diag *d, bool colour) {
    tk_buf out;
    tk_buf_init(&out, &arena);
    tk_diag_print(&out, &sources, d, colour);
    return tk_buf_text(&out);
}

Test(diag, lines_and_columns) {
    begin();
    uint32_t f = source("ab\n\ncd\n");
    const tk_source *s = tk_source_of(&sources, f);
    static const uint32_t want[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 1},
                                       {3, 1}, {3, 2}, {3, 3}, {4, 1}};
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t line, col;
        tk_line_col(s, i, &line, &col);
        cr_assert(line == want[i][0] && col == want[i][1], "%u: %u:%u", i, line, col);
    }
    uint32_t line, col;
    tk_line_col(s, 1000, &line, &col);
    cr_assert(line == 4 && col == 1);
    cr_assert_null(tk_source_of(&sources, 0));
    cr_assert_null(tk_source_of(&sources, f + 1));
    end();
}

Test(diag, text_form) {
    begin();
    uint32_t f = source("kernel k() {\n    let y = rwo + 1;\n}\n");
    tk_diag *d = tk_error(&diags, (tk_span){f, 25, 28}, "unknown-name", "there is no '%s'", "rwo");
    tk_note(&diags, d, (tk_span){f, 0, 6}, "in this kernel");
    tk_help(&diags, d, (tk_span){f, 25, 28}, "did you mean 'row'?");
    tk_help(&diags, d, (tk_span){0}, "or declare it");
    cr_assert_str_eq(text_of(d, false), "k.tk:2:13: error: there is no 'rwo' [unknown-name]\n"
                                        " 2 |     let y = rwo + 1;\n"
                                        "   |             ^~~\n"
                                        "k.tk:1:1: note: in this kernel\n"
                                        " 1 | kernel k() {\n"
                                        "   | ^~~~~~\n"
                                        "k.tk:2:13: help: did you mean 'row'?\n"
                                        " 2 |     let y = rwo + 1;\n"
                                        "   |             ^~~\n"
                                        "help: or declare it\n");
    const char *coloured = text_of(d, true);
    cr_assert(strstr(coloured, "\033[1;31m") && strstr(coloured, "\033[0m"));
    end();
}

Test(diag, places_at_the_edges) {
    begin();
    uint32_t f = source("\tab\r\n\xC3\xBC\x01\xFFz\nlast");
    static const struct {
        uint32_t begin, end;
        const char *want;
    } cases[] = {
        {1, 3, "k.tk:1:2: error: x [id]\n 1 | \tab\n   | \t^~\n"},
        {1, 9, "k.tk:1:2: error: x [id]\n 1 | \tab\n   | \t^~\n"},
        {3, 3, "k.tk:1:4: error: x [id]\n 1 | \tab\n   | \t  ^\n"},
        {9, 10, "k.tk:2:5: error: x [id]\n 2 | \xC3\xBC\\x01\\xFFz\n   |          ^\n"},
        {7, 9, "k.tk:2:3: error: x [id]\n 2 | \xC3\xBC\\x01\\xFFz\n   |  ^~~~~~~~\n"},
        {15, 15, "k.tk:3:5: error: x [id]\n 3 | last\n   |     ^\n"},
        {11, 99, "k.tk:3:1: error: x [id]\n 3 | last\n   | ^~~~\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tk_diag *d = tk_error(&diags, (tk_span){f, cases[i].begin, cases[i].end}, "id", "x");
        cr_assert_str_eq(text_of(d, false), cases[i].want, "case %zu: %s", i, text_of(d, false));
    }
    tk_diag *d = tk_warning(&diags, (tk_span){0}, "id", "no place\n\x1B[0m");
    cr_assert_str_eq(text_of(d, false), "warning: no place\\x0A\\x1B[0m [id]\n");
    end();
}

Test(diag, long_lines_are_cut) {
    begin();
    char *text = tk_alloc(&arena, 100001);
    memset(text, 'a', 100000);
    memcpy(text + 50000, "HERE", 4);
    uint32_t f = source(text);
    tk_diag *d = tk_error(&diags, (tk_span){f, 50000, 50004}, "id", "x");
    const char *shown = text_of(d, false);
    cr_assert_lt(strlen(shown), 400);
    const char *line = strchr(shown, '\n') + 1;
    const char *caret = strchr(line, '\n') + 1;
    cr_assert_eq(strstr(line, "HERE") - line, strchr(caret, '^') - caret, "%s", shown);
    cr_assert(strstr(caret, "^~~~\n"));
    tk_diag *whole = tk_error(&diags, (tk_span){f, 0, 100000}, "id", "x");
    cr_assert_lt(strlen(text_of(whole, false)), 400);
    end();
}

Test(diag, the_same_is_said_once) {
    begin();
    uint32_t f = source("abc");
    tk_span at = {f, 0, 1};
    tk_diag *a = tk_error(&diags, at, "id", "one");
    tk_diag *b = tk_error(&diags, at, "id", "one");
    tk_note(&diags, b, at, "kept nowhere");
    cr_assert_neq(a, b);
    cr_assert_eq(a->notes.n, 0);
    cr_assert_eq(diags.errors, 1);
    (void)tk_error(&diags, at, "id", "two");
    (void)tk_error(&diags, at, "other", "one");
    (void)tk_error(&diags, (tk_span){f, 1, 1}, "id", "one");
    cr_assert_eq(diags.errors, 4);
    end();
}

Test(diag, limit_and_werror) {
    begin();
    diags.limit = 3;
    for (uint32_t i = 0; i < 10; i++) {
        cr_assert_not_null(tk_error(&diags, (tk_span){0, i, i}, "id", "x"));
    }
    cr_assert(diags.errors == 10 && diags.list.n == 3);
    tk_buf out;
    tk_buf_init(&out, &arena);
    tk_diags_print(&out, &sources, &diags, false);
    cr_assert(strstr(tk_buf_text(&out), "7 more errors are not shown"));
    tk_diags_init(&diags, &arena);
    (void)tk_warning(&diags, (tk_span){0}, "id", "x");
    cr_assert(diags.errors == 0 && diags.warnings == 1);
    diags.werror = true;
    cr_assert_eq(tk_warning(&diags, (tk_span){0}, "id", "y")->severity, TK_ERROR);
    cr_assert(diags.errors == 1 && diags.warnings == 1);
    end();
}
