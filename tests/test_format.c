// SPDX-License-Identifier: Apache-2.0
// The canonical layout: as written for good kernels, stable and true to the tokens for any spacing.
#include "parsing.h"

#include <criterion/criterion.h>
#include <string.h>

Test(format, good_kernels_are_canonical) {
    for (unsigned i = 0; i < GOOD_KERNELS; i++) {
        parsing p;
        parsing_begin(&p);
        size_t size;
        const char *text = read_kernel(&p, i, &size);
        const char *layout = layout_of(&p, text, size, NULL);
        cr_assert_not_null(layout);
        cr_assert_str_eq(layout, text, "%s:\n%s", good_kernels[i], layout);
        parsing_end(&p);
    }
}

static void expect_layout(const char *text, const char *want) {
    parsing p;
    parsing_begin(&p);
    const char *got = layout_of(&p, text, strlen(text), NULL);
    cr_assert_not_null(got, "%s", text);
    cr_assert_str_eq(got, want, "%s\ngives\n%s", text, got);
    parsing_end(&p);
}

Test(format, spaces) {
    expect_layout("kernel k( ){x=a+-b*( c ) ;y [i,j+:BN]= f( a,b =1 ) ;}",
                  "kernel k() {\n    x = a + -b * (c);\n    y[i, j +: BN] = f(a, b = 1);\n}\n");
    expect_layout("fn f<N:int=2>(x:in f32[N],g:i32)->(f32,i32){return(x,1);}",
                  "fn f<N: int = 2>(x: in f32[N], g: i32) -> (f32, i32) { return (x, 1); }\n");
    expect_layout("kernel k(){for i in 0..N step 2 pipeline (3){t=u[ : ,newaxis];}}",
                  "kernel k() {\n    for i in 0 .. N step 2 pipeline(3) {\n"
                  "        t = u[:, newaxis];\n    }\n}\n");
    expect_layout("@a @b(c in{1,2},d(3);key e)kernel k(){}",
                  "@a\n@b(c in {1, 2}, d(3); key e)\nkernel k() { }\n");
}

Test(format, blank_lines_and_comments) {
    expect_layout(
        "\n\n// a\r\n\r\n\r\nconst A = 1; // b\r\nconst B = 2;\n/* c */ const C = 3;\n\n\n// d\n",
        "// a\n\nconst A = 1; // b\nconst B = 2;\n/* c */ const C = 3;\n\n// d\n");
    expect_layout("kernel k() { // head\n\n  // first\n  a;\n\n\n  b; /* x */ c;\n\n}\n",
                  "kernel k() { // head\n    // first\n    a;\n\n    b; /* x */\n    c;\n}\n");
    expect_layout("kernel k() { f(a, // one\n b); }",
                  "kernel k() {\n    f(\n        a, // one\n        b);\n}\n");
    expect_layout("", "");
    expect_layout(
        "kernel k() { if a { b; }\n// why\nelse { c; } }",
        "kernel k() {\n    if a {\n        b;\n    }\n    // why\n    else {\n        c;\n"
        "    }\n}\n");
}

Test(format, wrong_text_is_left_alone) {
    parsing p;
    parsing_begin(&p);
    cr_assert_null(layout_of(&p, "kernel k( {", 11, NULL));
    cr_assert_gt(p.diags.errors, 0);
    parsing_end(&p);
}

static uint32_t next_random(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

// The tokens of a text with other white space and comments between them.
static void respace(parsing *p, tk_buf *out, const char *text, size_t size, uint32_t *seed,
                    uint32_t comments) {
    static const char *const gaps[] = {" ", "  ", "\n", "\n\n\n", " \t ", "\r\n", " "};
    static const char *const notes[] = {" /* a */ ",     " // b\n",       "\n// c\n",
                                        " /* d\n e */ ", "\n\n/* f */\n", "/* g */"};
    token_range *t;
    uint32_t n = token_ranges(p, text, size, &t);
    for (uint32_t i = 0; i < n; i++) {
        if (comments && next_random(seed) % comments == 0) {
            tk_buf_str(out, notes[next_random(seed) % (sizeof notes / sizeof *notes)]);
        }
        tk_buf_add(out, text + t[i].begin, t[i].end - t[i].begin);
        uint32_t wild = comments ? 7 : 3;
        tk_buf_str(out, gaps[next_random(seed) % wild]);
    }
}

static void expect_stable(parsing *p, const char *text, size_t size) {
    size_t n = 0, again_n = 0;
    const char *once = layout_of(p, text, size, &n);
    cr_assert_not_null(once, "%s\n%s", p->diags.list.n ? p->diags.list.at[0]->text : "", text);
    const char *again = layout_of(p, once, n, &again_n);
    cr_assert_not_null(again, "%s", once);
    cr_assert_str_eq(once, again, "from\n%s\nfirst\n%s\nthen\n%s", text, once, again);
    cr_assert(same_tokens(p, text, size, once, n), "from\n%s\nto\n%s", text, once);
    for (const char *line = once; *line;) {
        size_t width = strcspn(line, "\n");
        cr_assert(width == 0 || (line[width - 1] != ' ' || memchr(line, '*', width)), "%s", once);
        line += width + (line[width] == '\n');
    }
}

Test(format, any_spacing_is_stable) {
    uint32_t seed = 1;
    for (unsigned i = 0; i < GOOD_KERNELS; i++) {
        for (uint32_t round = 0; round < 40; round++) {
            parsing p;
            parsing_begin(&p);
            size_t size;
            const char *text = read_kernel(&p, i, &size);
            tk_buf b;
            tk_buf_init(&b, &p.arena);
            static const uint32_t often[] = {0, 3, 10, 40};
            respace(&p, &b, text, size, &seed, often[round % 4]);
            expect_stable(&p, tk_buf_text(&b), b.n);
            parsing_end(&p);
        }
    }
}

// Names of every length, so that lines break at every place.
Test(format, any_width_is_stable) {
    for (unsigned i = 0; i < GOOD_KERNELS; i++) {
        for (uint32_t longer = 1; longer < 60; longer += 3) {
            parsing p;
            parsing_begin(&p);
            size_t size;
            const char *text = read_kernel(&p, i, &size);
            token_range *t;
            uint32_t n = token_ranges(&p, text, size, &t);
            tk_buf b;
            tk_buf_init(&b, &p.arena);
            uint32_t at = 0;
            for (uint32_t k = 0; k < n; k++) {
                tk_buf_add(&b, text + at, t[k].end - at);
                at = t[k].end;
                bool name = t[k].end - t[k].begin == 1 && strchr("abijkMNTvqm", text[t[k].begin]);
                for (uint32_t x = 0; name && x < longer; x++) {
                    tk_buf_str(&b, "z");
                }
            }
            tk_buf_str(&b, "\n");
            expect_stable(&p, tk_buf_text(&b), b.n);
            parsing_end(&p);
        }
    }
}
