// SPDX-License-Identifier: Apache-2.0
// The parser: trees, messages, recovery, and texts that are wrong in every place.
#include "parsing.h"

#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Of this process' own work: the machine may be busy.
static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Test(parser, good_kernels_parse) {
    for (unsigned i = 0; i < GOOD_KERNELS; i++) {
        parsing p;
        parsing_begin(&p);
        size_t size;
        const char *text = read_kernel(&p, i, &size);
        tk_file *file = parse_bytes(&p, text, size);
        cr_assert_eq(p.diags.list.n, 0, "%s: %s", good_kernels[i],
                     p.diags.list.n ? p.diags.list.at[0]->text : "");
        cr_assert_gt(file->items.n, 0);
        parsing_end(&p);
    }
}

static void expect_tree(const char *text, const char *want) {
    parsing p;
    parsing_begin(&p);
    const char *tree = tree_of(&p, text);
    cr_assert_eq(p.diags.errors, 0, "%s: %s", text, p.diags.list.n ? p.diags.list.at[0]->text : "");
    cr_assert_str_eq(tree, want);
    parsing_end(&p);
}

Test(parser, tree_of_items) {
    expect_tree(
        "import \"std/a.tk\"; const N: i32 = 4;"
        "@warps(8) @tune(BM in {1, 2}; key M) @require(no_spills, max_shared(100KB))"
        "kernel k<T: type, N: int = 2>(x: in T[M, 4], y: out f32[M] = none) grid (i in M) { }"
        "kernel a(z: i32) = k(N = 1);",
        "import std/a.tk\n"
        "const N\n  type i32\n  int 4\n"
        "kernel k\n"
        "  attribute warps\n    arg -\n      int 8\n"
        "  attribute tune\n    set BM\n      int 1\n      int 2\n    key M\n"
        "  attribute require\n    arg no_spills\n    arg max_shared\n      int 100KB\n"
        "  cparam T\n    type type\n"
        "  cparam N\n    type int\n    default\n      int 2\n"
        "  param x\n    type in T\n      name M\n      int 4\n"
        "  param y\n    type out f32\n      name M\n    default\n      name none\n"
        "  grid i\n    name M\n  block\n"
        "alias a\n  param z\n    type i32\n  of k\n  arg N\n    int 1\n");
}

static const char *expr_tree(parsing *p, const char *text) {
    p->source = tk_sources_add(&p->sources, "-D", text, strlen(text));
    tk_expr *e = tk_parse_expr(&p->arena, &p->names, &p->sources, p->source, &p->diags);
    if (!e) {
        return NULL;
    }
    tk_item item = {.kind = TK_ITEM_CONST, .name = {"e", {0, 0, 0}}};
    item.u.konst.value = e;
    tk_file file = {.source = p->source};
    tk_vec_push(&p->arena, &file.items, &item);
    tk_buf out;
    tk_buf_init(&out, &p->arena);
    tk_ast_print(&out, &file);
    return tk_buf_text(&out);
}

// The second text says by parentheses how the first one is read.
static void expect_same_tree(const char *text, const char *meant) {
    parsing p;
    parsing_begin(&p);
    const char *a = expr_tree(&p, text), *b = expr_tree(&p, meant);
    cr_assert_not_null(a, "%s", text);
    cr_assert_not_null(b, "%s", meant);
    cr_assert_str_eq(a, b, "%s", text);
    parsing_end(&p);
}

Test(parser, precedence) {
    expect_same_tree("a || b && c | d ^ e & f == g < h << i + j * -k",
                     "a || (b && (c | (d ^ (e & (f == (g < (h << (i + (j * (-k))))))))))");
    expect_same_tree("a - b - c", "(a - b) - c");
    expect_same_tree("a / b * c % d", "((a / b) * c) % d");
    expect_same_tree("a << b >> c", "(a << b) >> c");
    expect_same_tree("-a[i] * b", "(-(a[i])) * b");
    expect_same_tree("!a && ~b & c", "(!a) && ((~b) & c)");
    expect_same_tree("x[i] else -y * z", "(x[i] else (-y)) * z");
    expect_same_tree("x[i] else y[j] else 0 + 1", "(x[i] else (y[j] else 0)) + 1");
    expect_same_tree("x[a | b +: c || d where e || f]", "x[(a | b) +: (c || d) where (e || f)]");
    expect_same_tree("a < b == c < d", "(a < b) == (c < d)");
    expect_same_tree("a & b == c", "a & (b == c)");
    expect_same_tree("f(1)(2)[3]", "((f(1))(2))[3]");
}

Test(parser, words_are_names_where_they_can_be) {
    static const char *const words[] = {"out",   "inout",    "step",   "grid",  "where",
                                        "key",   "pipeline", "unroll", "type",  "int",
                                        "float", "none",     "same",   "always"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        parsing p;
        parsing_begin(&p);
        const char *w = words[i];
        const char *text = tk_format(
            &p.arena,
            "const %s = 1; fn f(%s: f32) -> f32 { return %s; }\n"
            "kernel %s<%s: int = %s>(%s: out %s[%s], x: in %s[M] = %s) grid (%s in %s, b in B) {\n"
            "  let %s = %s(%s, %s = %s) + x[%s +: %s where %s, %s where %s];\n"
            "  for %s in %s .. %s step %s pipeline(%s) unroll(%s) { %s[%s] = %s; %s += 1; }\n"
            "  var (y) = 1;\n}",
            w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w,
            w, w, w, w);
        const char *y = strstr(text, "  var (y)");
        (void)parse_bytes(&p, text, (size_t)(y - text));
        cr_assert_eq(p.diags.errors, 1, "%s: %s", w, p.diags.list.at[p.diags.list.n > 1]->text);
        cr_assert_str_eq(first_id(&p), "missing-brace");
        parsing_end(&p);
    }
}

// ---- Literals ---------------------------------------------------------------------------------

static tk_expr *literal(parsing *p, const char *text) {
    p->source = tk_sources_add(&p->sources, "-D", text, strlen(text));
    return tk_parse_expr(&p->arena, &p->names, &p->sources, p->source, &p->diags);
}

Test(parser, integers) {
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"1_000", 1000},
                {"0x1F", 31},
                {"0XdeadBEEF", 0xdeadbeef},
                {"0b1_01", 5},
                {"18446744073709551615", UINT64_MAX},
                {"0xFFFF_FFFF_FFFF_FFFF", UINT64_MAX},
                {"007", 7}};
    parsing p;
    parsing_begin(&p);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tk_expr *e = literal(&p, good[i].text);
        cr_assert(e && e->kind == TK_E_INT && e->u.i.value == good[i].value, "%s", good[i].text);
    }
    parsing_end(&p);
}

Test(parser, floats) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1.0", 1.0},
                {"1e-5", 1e-5},
                {"2.5E+3", 2500.0},
                {"1_0.2_5", 10.25},
                {"0.1", 0.1},
                {"1e400_0", 0},
                {"1.7976931348623157e308", DBL_MAX},
                {"4.9e-324", 4.9e-324},
                {"1e-999", 0.0},
                {"inf", (double)INFINITY}};
    parsing p;
    parsing_begin(&p);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tk_expr *e = literal(&p, good[i].text);
        bool huge = strcmp(good[i].text, "1e400_0") == 0;
        cr_assert(huge ? !e : e && e->kind == TK_E_FLOAT && e->u.f == good[i].value, "%s",
                  good[i].text);
    }
    tk_expr *e = literal(&p, "nan");
    cr_assert(e && isnan(e->u.f));
    parsing_end(&p);
}

Test(parser, floats_in_any_locale) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i])) {
            parsing p;
            parsing_begin(&p);
            tk_expr *e = literal(&p, "1.5e0");
            cr_assert(e && e->u.f == 1.5);
            parsing_end(&p);
        }
    }
}

Test(parser, strings) {
    parsing p;
    parsing_begin(&p);
    tk_expr *e = literal(&p, "\"a\\n\\t\\\"\\\\\xC3\xBC\"");
    cr_assert(e && e->kind == TK_E_STRING && e->u.string.size == 7);
    cr_assert_eq(memcmp(e->u.string.text, "a\n\t\"\\\xC3\xBC", 7), 0);
    parsing_end(&p);
}

// ---- Messages ---------------------------------------------------------------------------------

typedef struct {
    const char *text; // the body of a kernel unless it starts with '!'
    const char *id;
    const char *says; // part of the message or its help
} fault;

static void expect_one(const fault *f) {
    parsing p;
    parsing_begin(&p);
    const char *text =
        f->text[0] == '!' ? f->text + 1 : tk_format(&p.arena, "kernel k() {\n    %s\n}\n", f->text);
    const char *messages = messages_of(&p, text);
    cr_assert_eq(p.diags.errors, 1, "%s\n%s", text, messages);
    cr_assert_str_eq(first_id(&p), f->id, "%s\n%s", text, messages);
    cr_assert(strstr(messages, f->says), "%s\n%s", text, messages);
    parsing_end(&p);
}

static const fault faults[] = {
    {"x = 12abc;", "bad-number", "'abc' cannot follow a number"},
    {"x = 1_;", "bad-number", "between two digits"},
    {"x = 1__0;", "bad-number", "between two digits"},
    {"x = 0x;", "bad-number", "has no digits"},
    {"x = 0b12;", "bad-number", "'2' is no binary digit"},
    {"x = 1.;", "bad-number", "write '1.0'"},
    {"x = .5;", "bad-number", "write '0.5'"},
    {"x = 1.0f;", "bad-number", "f32(1.0)"},
    {"x = 1e;", "bad-number", "no digits"},
    {"x = 1e999;", "number-too-large", "greater than f64"},
    {"x = 18446744073709551616;", "number-too-large", "64 bits"},
    {"x = 5KB;", "bad-number", "only in an attribute"},
    {"x = \"abc;", "unterminated-string", "not closed"},
    {"x = \"a\\qb\";", "bad-escape", "\\n \\t"},
    {"x = 1; /* abc", "unterminated-comment", "never closed"},
    {"x = \xE2\x82\xAC\xE2\x82\xAC;", "stray-byte", "is no token"},
    {"gr\xC3\xB6\xC3\x9F\x65 = 1;", "stray-byte", "cannot be part of a name"},
    {"x = 1 # comment", "stray-byte", "//"},
    {"x = 1 // \xFF\n;", "stray-byte", "0xFF"},
    {"let a = 1\n    let b = 2;", "missing-semicolon", "k.tk:2:14: error: a ';' is missing here"},
    {"return 1", "missing-semicolon", "';'"},
    {"break\n x = 1;", "missing-semicolon", "';'"},
    {"let b = ;", "syntax", "unexpected ';', expected an expression"},
    {"let c = a < b < c;", "chained-comparison", "a < b && b < c"},
    {"let c = a == b == c;", "chained-comparison", "a == b && b == c"},
    {"if x = 3 { }", "syntax", "'==' compares"},
    {"x = (y = 3);", "syntax", "'==' compares"},
    {"x = a ? 1 : 2;", "no-conditional", "where(a, 1, 2)"},
    {"i++;", "syntax", "x += 1"},
    {"x = --y;", "syntax", "-(-x)"},
    {"x = a and b;", "syntax", "&&"},
    {"y = x[1:3];", "syntax", "start +: length"},
    {"foo(a, b;", "syntax", "'(' opened here"},
    {"x = [a, b;", "syntax", "'[' opened here"},
    {";", "empty-statement", "remove"},
    {"a &&= b;", "unknown-operator", "x && y"},
    {"a ** b;", "unknown-operator", "pow"},
    {"f(x) = 3;", "bad-target", "cannot be assigned"},
    {"x[i] else 3 = 4;", "bad-target", "no 'else'"},
    {"else { }", "syntax", "follows no 'if'"},
    {"let in = 3;", "syntax", "keyword"},
    {"for i in 0 .. 4 step 1 step 2 { }", "written-twice", "the first is here"},
    {"x.y = 3;", "syntax", "only in numbers"},
    {"let f = fn(x f32) -> f32 { return x; };", "syntax", "expected ':'"},
    {"if a { x = ; } else if b { y = 1; }", "syntax", "an expression"},
    {"var x: = 1;", "syntax", "expected a type"},
    {"}", "syntax", "'}'"},
    {"!let z = 3;", "syntax", "'const'"},
    {"!const Y = 3\nconst Z = 4;", "missing-semicolon", "k.tk:1:12"},
    {"!kernel k();", "syntax", "unexpected ';'"},
    {"!kernel k { }", "syntax", "unexpected '{'"},
    {"int y = 3;", "syntax", "'let x = ...'"},
    {"x = g[a,\n    y = 2;", "syntax", "'[' opened here"},
    {"!kernel k(x: in f32[M N]) { let a = ; }", "syntax", "expected ']' or ','"},
    {"!kernel k<A: int = 1 > 2>() { }", "syntax", "stands in parentheses"},
    {"!kernel k = f(1);", "unnamed-argument", "by name"},
    {"!kernel k<A: int>() = f(B = 1);", "bad-specialisation", "compile-time"},
    {"!@warps(8) const X = 3;", "syntax", "'kernel'"},
    {"!@warps(8\nkernel z() { }", "syntax", "k.tk:1:7: note: '(' opened here"},
    {"!@require(max_shared(4KB)\nkernel z() { }", "syntax", "k.tk:1:9: note: '(' opened here"},
    {"!@tune(BM in {1, 2}\nkernel z() { }", "syntax", "k.tk:1:6: note: '(' opened here"},
    {"let a = (1\n    let b = 2;", "syntax", "'(' opened here"},
    {"x[a\n    y = 2;", "syntax", "'[' opened here"},
    {"!@tune(BM in {1, 2; key M)\nkernel z() { }", "syntax", "'}'"},
    {"!import std;", "syntax", "a string"},
    {"!import \"\";", "bad-import", "names a file"},
    {"!kernel k() { };", "empty-statement", "remove"},
    {"!}", "syntax", "'}'"},
    {"!kernel k() {\n    for i in 0 .. 4 {\n        x = 1;\n    y = 2;\n}\nkernel l() { }\n",
     "missing-brace", "k.tk:2:21: note: '{' opened here"},
    {"!kernel k() {\n    if a {\n        x = 1;\n    }\n", "missing-brace",
     "k.tk:1:12: note: '{' opened here"},
};

Test(parser, one_fault_is_one_error) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        expect_one(&faults[i]);
    }
}

Test(parser, several_errors_a_run) {
    parsing p;
    parsing_begin(&p);
    tk_file *file = parse_text(&p, "kernel a() {\n    x = ;\n    y = 1;\n    let = 2;\n}\n"
                                   "fn b(x f32) { }\n"
                                   "const C = ;\n"
                                   "const D = 1;\n"
                                   "kernel e() {\n    foo(;\n}\n");
    cr_assert_eq(p.diags.errors, 5);
    cr_assert_eq(file->items.n, 3);
    uint32_t last = 0;
    for (uint32_t i = 0; i < p.diags.list.n; i++) {
        cr_assert_geq(p.diags.list.at[i]->span.begin, last);
        last = p.diags.list.at[i]->span.begin;
    }
    parsing_end(&p);
}

Test(parser, zero_bytes) {
    parsing p;
    parsing_begin(&p);
    static const char text[] = "kernel k() {\n    x = 1\0\0 + 2;\n    // \0\n    y = \"\0\";\n}\n";
    (void)parse_bytes(&p, text, sizeof text - 1);
    cr_assert_eq(p.diags.errors, 3);
    parsing_end(&p);
}

Test(parser, crlf_and_byte_order_mark) {
    parsing p;
    parsing_begin(&p);
    (void)parse_text(&p, "\xEF\xBB\xBFkernel k() {\r\n    // a\r\n    x = 1;\r\n}\r\n");
    cr_assert_eq(p.diags.errors, 0);
    parsing_end(&p);
}

// ---- Extremes ---------------------------------------------------------------------------------

static void expect_too_deep(const char *before, const char *unit, int times, const char *after) {
    parsing p;
    parsing_begin(&p);
    tk_buf b;
    tk_buf_init(&b, &p.arena);
    tk_buf_str(&b, before);
    for (int i = 0; i < times; i++) {
        tk_buf_str(&b, unit);
    }
    tk_buf_str(&b, after);
    double from = seconds();
    (void)parse_bytes(&p, tk_buf_text(&b), b.n);
    cr_assert_eq(p.diags.errors, 1, "%s: %u, %s", unit, p.diags.errors,
                 p.diags.list.n ? p.diags.list.at[0]->text : "");
    cr_assert(strstr(p.diags.list.at[0]->text, "nested too deeply"), "%s: %s", unit,
              p.diags.list.at[0]->text);
    cr_assert_lt(seconds() - from, 5.0);
    parsing_end(&p);
}

Test(parser, nesting_is_limited) {
    expect_too_deep("kernel k() { x = ", "(", 10000, "");
    expect_too_deep("kernel k() { x = ", "[", 10000, "");
    expect_too_deep("kernel k() ", "{", 10000, "");
    expect_too_deep("kernel k() { x = ", "- ", 10000, "1; }");
    expect_too_deep("kernel k() { x = ", "!", 10000, "1; }");
    expect_too_deep("kernel k() { x = ", "~-(", 10000, "1; }");
    expect_too_deep("kernel k() { ", "if a {", 10000, "");
    expect_too_deep("kernel k() { if a { }", " else if a { }", 10000, " }");
    expect_too_deep("kernel k() { x = a", " + a", 10000, "; }");
    expect_too_deep("kernel k() { x = a", "[1]", 10000, "; }");
    expect_too_deep("kernel k() { x = a", "[1] else a", 10000, "; }");
    expect_too_deep("kernel k() { x = f", "(1)", 10000, "; }");
    expect_too_deep("kernel k() { x = ", "f(", 10000, "");
    expect_too_deep("kernel k() { x = ", "fn() { return ", 10000, "");
    expect_too_deep("kernel k<f: ", "fn(", 10000, "");
    expect_too_deep("kernel k<f: ", "fn() -> ", 10000, "i32>() { }");
}

Test(parser, nesting_up_to_the_limit) {
    parsing p;
    parsing_begin(&p);
    tk_buf b;
    tk_buf_init(&b, &p.arena);
    tk_buf_str(&b, "kernel k() { x = ");
    for (int i = 0; i < TK_MAX_NESTING - 1; i++) {
        tk_buf_str(&b, "(");
    }
    tk_buf_str(&b, "1");
    for (int i = 0; i < TK_MAX_NESTING - 1; i++) {
        tk_buf_str(&b, ")");
    }
    for (int i = 0; i < TK_MAX_HEIGHT - 10; i++) {
        tk_buf_str(&b, " + 1");
    }
    tk_buf_str(&b, ";");
    for (int i = 0; i < TK_MAX_NESTING - 1; i++) {
        tk_buf_str(&b, "{");
    }
    for (int i = 0; i < TK_MAX_NESTING - 1; i++) {
        tk_buf_str(&b, "}");
    }
    tk_buf_str(&b, " }");
    (void)tree_of(&p, tk_buf_text(&b));
    cr_assert_eq(p.diags.errors, 0, "%s", p.diags.list.n ? p.diags.list.at[0]->text : "");
    parsing_end(&p);
}

static void expect_fast(const char *before, const char *unit, size_t times, const char *after) {
    parsing p;
    parsing_begin(&p);
    tk_buf b, messages;
    tk_buf_init(&b, &p.arena);
    tk_buf_str(&b, before);
    for (size_t i = 0; i < times; i++) {
        tk_buf_str(&b, unit);
    }
    tk_buf_str(&b, after);
    double from = seconds();
    (void)parse_bytes(&p, tk_buf_text(&b), b.n);
    tk_buf_init(&messages, &p.arena);
    tk_diags_print(&messages, &p.sources, &p.diags, true);
    cr_assert_lt(messages.n, 100000);
    cr_assert_lt(seconds() - from, 20.0, "%s", unit);
    parsing_end(&p);
}

Test(parser, long_lines) {
    expect_fast("kernel k() { x = [", "1, ", 300000, "]; }");
    expect_fast("kernel k() { ", "x = 1; ", 140000, "}");
    expect_fast("kernel k() { ", "x = ; ", 140000, "}");
    expect_fast("kernel k() { x = \"", "abcdefgh", 125000, "\"; }");
    expect_fast("// ", "abcdefgh", 125000, "");
    expect_fast("", "x", 1000000, "");
    expect_fast("", "1", 1000000, "");
    expect_fast("", "}", 1000000, "");
    expect_fast("", " ", 1000000, "}");
    expect_fast("", "\xFF ", 500000, "");
    expect_fast("", "@a ", 300000, "");
    expect_fast("", "kernel ", 140000, "");
    expect_fast("", "kernel k() {", 80000, "");
}

// ---- Mutation ---------------------------------------------------------------------------------

// Whatever is changed, the parse ends, and where a tree is not complete something was said.
static uint32_t try_text(const char *text, size_t size) {
    parsing p;
    parsing_begin(&p);
    tk_buf out;
    tk_buf_init(&out, &p.arena);
    tk_file *file = parse_bytes(&p, text, size);
    tk_ast_print(&out, file);
    tk_diags_print(&out, &p.sources, &p.diags, false);
    uint32_t errors = p.diags.errors;
    if (errors == 0) {
        cr_assert_not_null(layout_of(&p, text, size, NULL));
    }
    parsing_end(&p);
    return errors;
}

typedef enum { DELETE, DUPLICATE, SWAP } mutation;

static size_t mutate(char *out, const char *text, size_t size, const token_range *t, uint32_t n,
                     uint32_t i, mutation m) {
    size_t at = t[i].begin;
    memcpy(out, text, at);
    uint32_t len = t[i].end - t[i].begin;
    if (m == DUPLICATE) {
        memcpy(out + at, text + t[i].begin, len);
        out[at + len] = ' ';
        memcpy(out + at + len + 1, text + t[i].begin, len);
        at += 2 * (size_t)len + 1;
    } else if (m == SWAP && i + 1 < n) {
        uint32_t next = t[i + 1].end - t[i + 1].begin;
        memcpy(out + at, text + t[i + 1].begin, next);
        out[at + next] = ' ';
        memcpy(out + at + next + 1, text + t[i].begin, len);
        at += (size_t)next + len + 1;
        i++;
    }
    memcpy(out + at, text + t[i].end, size - t[i].end);
    return at + (size - t[i].end);
}

static void mutate_kernel(unsigned k, mutation m) {
    parsing p;
    parsing_begin(&p);
    size_t size;
    const char *text = read_kernel(&p, k, &size);
    token_range *t;
    uint32_t n = token_ranges(&p, text, size, &t);
    char *out = tk_alloc(&p.arena, 2 * size + 16);
    uint32_t wrong = 0;
    double from = seconds();
    for (uint32_t i = 0; i < n; i++) {
        wrong += try_text(out, mutate(out, text, size, t, n, i, m)) > 0;
    }
    cr_assert_gt(wrong, n / 3, "%s", good_kernels[k]);
    cr_assert_lt(seconds() - from, 60.0);
    parsing_end(&p);
}

Test(parser, every_token_deleted) {
    for (unsigned k = 0; k < GOOD_KERNELS; k++) {
        mutate_kernel(k, DELETE);
    }
}

Test(parser, every_token_doubled) {
    for (unsigned k = 0; k < GOOD_KERNELS; k++) {
        mutate_kernel(k, DUPLICATE);
    }
}

Test(parser, every_token_swapped) {
    for (unsigned k = 0; k < GOOD_KERNELS; k++) {
        mutate_kernel(k, SWAP);
    }
}

Test(parser, cut_at_every_byte) {
    for (unsigned k = 0; k < GOOD_KERNELS; k++) {
        parsing p;
        parsing_begin(&p);
        size_t size;
        const char *text = read_kernel(&p, k, &size);
        for (size_t n = 0; n < size; n++) {
            cr_assert_leq(try_text(text, n), 2, "%s at %zu", good_kernels[k], n);
        }
        parsing_end(&p);
    }
}

// Each allocation of a parse fails once: the guard is reached and nothing leaks.
typedef struct {
    size_t left;
} scarce;

static void *scarce_alloc(void *user, size_t size) {
    scarce *s = user;
    return s->left-- == 0 ? NULL : malloc(size);
}

static void scarce_release(void *user, void *block) {
    (void)user;
    free(block);
}

Test(parser, memory_runs_out) {
    parsing good;
    parsing_begin(&good);
    size_t size;
    const char *text = read_kernel(&good, 2, &size);
    tk_fail last = TK_FAIL_MEMORY;
    for (size_t n = 0; last == TK_FAIL_MEMORY && n < 1000; n++) {
        scarce s = {n};
        tk_allocator from = {scarce_alloc, scarce_release, &s};
        static parsing p;
        memset(&p, 0, sizeof p);
        tk_arena_init(&p.arena, &from, &p.guard);
        if (setjmp(p.guard.jump) == 0) {
            tk_names_init(&p.names, &p.arena);
            tk_sources_init(&p.sources, &p.arena);
            tk_diags_init(&p.diags, &p.arena);
            (void)layout_of(&p, text, size, NULL);
        }
        last = p.guard.fail;
        tk_arena_release(&p.arena);
    }
    cr_assert_eq(last, TK_FAIL_NONE);
    parsing_end(&good);
}
