// SPDX-License-Identifier: Apache-2.0
// B59: malformed sources. Good kernels with each token deleted, doubled or exchanged with its
// neighbour, cut at every byte, and texts that are too long, too deep or no text at all go through
// the whole compiler: it ends with success or located errors, and soon. Sanitizer builds take a
// sample, so that they end soon too.
#include "tests/parsing.h"
#include "tests/whole.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOW 1
#endif
#endif
#ifdef SLOW
enum { TOKEN_STEP = 13, CUT_STEP = 19, DEPTH = 10000 };
#else
enum { TOKEN_STEP = 3, CUT_STEP = 3, DEPTH = 10000 };
#endif
enum { GOOD = 20, MOST = 64 };
static const double LIMIT = 5.0; // seconds for one text

typedef struct good {
    char name[128];
    char *text;
    size_t size;
} good;

static good *files;
static unsigned nfiles;

static void add_folder(const char *pattern) {
    glob_t g;
    cr_assert_eq(glob(pattern, 0, NULL, &g), 0, "no %s", pattern);
    for (size_t i = 0; i < g.gl_pathc && nfiles < MOST; i++) {
        FILE *f = fopen(g.gl_pathv[i], "rb");
        cr_assert(f);
        good *x = &files[nfiles++];
        snprintf(x->name, sizeof x->name, "%s", g.gl_pathv[i]);
        x->text = malloc(1 << 16);
        x->size = fread(x->text, 1, 1 << 16, f);
        fclose(f);
    }
    globfree(&g);
}

static whole w;

static void open_all(void) {
    files = calloc(MOST, sizeof *files);
    add_folder("stdlib/*.tk");
    add_folder("fuzz/corpus/compile/*.tk");
    add_folder("tests/golden/build/*.tk");
    cr_assert_geq(nfiles, GOOD - 2);
    cr_assert(whole_open(&w));
}

static void close_all(void) {
    for (unsigned i = 0; i < nfiles; i++) {
        free(files[i].text);
    }
    free(files);
    nfiles = 0;
    whole_close(&w);
}

TestSuite(B59, .init = open_all, .fini = close_all);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void try_text(const char *text, size_t size, const char *what, const char *name, size_t at) {
    double start = now();
    bool fine = whole_compile(&w, text, size);
    double took = now() - start;
    cr_expect(fine, "%s, %s at %zu: %s\n%.400s", what, name, at, w.fault, text);
    cr_expect_leq(took, LIMIT, "%s, %s at %zu: %.1f s", what, name, at, took);
    w.fault[0] = '\0';
}

// The files are good: all compile up to a launch, so that mutants of them get far.
Test(B59, B59_the_kernels_are_good) {
    for (unsigned i = 0; i < nfiles; i++) {
        unsigned before = w.refused;
        try_text(files[i].text, files[i].size, "good", files[i].name, 0);
        cr_expect_eq(before, w.refused, "%s has errors", files[i].name);
    }
    cr_expect_geq(w.compiled, GOOD, "%u kernels came to a launch", w.compiled);
}

typedef enum { DELETED, DOUBLED, SWAPPED } change;

static size_t mutate(const good *g, token_range t, token_range next, change c, char *out) {
    size_t n = 0;
#define COPY(from, to)                                                                             \
    (memcpy(out + n, g->text + (from), (size_t)((to) - (from))), n += (to) - (from))
    COPY(0, t.begin);
    if (c == SWAPPED) {
        COPY(next.begin, next.end);
        COPY(t.end, next.begin);
        COPY(t.begin, t.end);
        COPY(next.end, g->size);
    } else {
        if (c == DOUBLED) {
            COPY(t.begin, t.end);
            out[n++] = ' ';
            COPY(t.begin, t.end);
        }
        COPY(t.end, g->size);
    }
#undef COPY
    return n;
}

static void mutants(change c, const char *what) {
    parsing p;
    parsing_begin(&p);
    char *out = malloc(1 << 17);
    unsigned turn = 0;
    for (unsigned i = 0; i < nfiles; i++) {
        token_range *range;
        uint32_t n = token_ranges(&p, files[i].text, files[i].size, &range);
        for (uint32_t k = 0; k + 1 < n; k++) {
            if (turn++ % TOKEN_STEP == (unsigned)c) {
                size_t size = mutate(&files[i], range[k], range[k + 1], c, out);
                out[size] = '\0';
                try_text(out, size, what, files[i].name, range[k].begin);
            }
        }
    }
    free(out);
    parsing_end(&p);
}

Test(B59, B59_tokens_deleted) { mutants(DELETED, "deleted"); }
Test(B59, B59_tokens_doubled) { mutants(DOUBLED, "doubled"); }
Test(B59, B59_tokens_swapped) { mutants(SWAPPED, "swapped"); }

Test(B59, B59_cut_at_every_byte) {
    for (unsigned i = 0; i < nfiles; i++) {
        for (size_t k = i % CUT_STEP; k < files[i].size; k += CUT_STEP) {
            char *exact = malloc(k + 1); // a read past its end is seen
            memcpy(exact, files[i].text, k);
            exact[k] = '\0';
            try_text(exact, k, "cut", files[i].name, k);
            free(exact);
        }
    }
}

Test(B59, B59_bytes_changed) {
    static const char bytes[] = {'\0', '\r',   '\n',   '\t',   '"', '\'', '\\', '/', '*', '(',
                                 '}',  '\x80', '\xff', '\xc3', '0', '_',  '.',  '-', ';', ','};
    for (unsigned i = 0; i < nfiles; i++) {
        char *copy = malloc(files[i].size + 1);
        memcpy(copy, files[i].text, files[i].size);
        copy[files[i].size] = '\0';
        for (size_t k = i; k < files[i].size; k += 13 * CUT_STEP) {
            char was = copy[k];
            copy[k] = bytes[k % sizeof bytes];
            try_text(copy, files[i].size, "byte", files[i].name, k);
            copy[k] = was;
        }
        free(copy);
    }
}

Test(B59, B59_crlf) {
    for (unsigned i = 0; i < nfiles; i++) {
        char *out = malloc(2 * files[i].size + 1);
        size_t n = 0;
        for (size_t k = 0; k < files[i].size; k++) {
            if (files[i].text[k] == '\n') {
                out[n++] = '\r';
            }
            out[n++] = files[i].text[k];
        }
        out[n] = '\0';
        unsigned refused = w.refused;
        try_text(out, n, "CRLF", files[i].name, 0);
        cr_expect_eq(refused, w.refused, "%s with CRLF is refused", files[i].name);
        free(out);
    }
}

typedef struct deep {
    const char *before, *open, *middle, *close, *after;
} deep;

// before, n times open, middle, n times close, after.
static void nested(const deep *d, unsigned n) {
    size_t each = strlen(d->open) + strlen(d->close);
    char *out = malloc(strlen(d->before) + n * each + strlen(d->middle) + strlen(d->after) + 1);
    char *at = stpcpy(out, d->before);
    for (unsigned i = 0; i < n; i++) {
        at = stpcpy(at, d->open);
    }
    at = stpcpy(at, d->middle);
    for (unsigned i = 0; i < n; i++) {
        at = stpcpy(at, d->close);
    }
    at = stpcpy(at, d->after);
    try_text(out, (size_t)(at - out), "deep", d->open, n);
    free(out);
}

#define BODY "kernel k(x: inout f32[N], s: i32) { "
static const deep depths[] = {
    {BODY "let a = ", "(", "1", ")", "; }"},
    {BODY "let a = ", "-", "1", "", "; }"},
    {BODY "let a = ", "~", "s", "", "; }"},
    {BODY "let a = ", "!", "true", "", "; }"},
    {BODY "let a = ", "abs(", "s", ")", "; }"},
    {BODY "let a = ", "s + ", "s", "", "; }"},
    {BODY "let a = s", " + s", "", "", "; }"},
    {BODY "let a = s", " + (s", "", ")", "; }"},
    {BODY "let a = s", " == s", "", "", "; }"},
    {BODY "let a = true", " && true", "", "", "; }"},
    {BODY "let a = true", " || s > 0", "", "", "; }"},
    {BODY "let a = ", "1 + ", "1", "", "; }"},
    {BODY "let a = ", "i32(", "s", ")", "; }"},
    {BODY "let a = ", "where(true, ", "s", ", s)", "; }"},
    {BODY "let a = ", "max(s, ", "s", ")", "; }"},
    {BODY "let a = x", "[0 +: 1]", "", "", "; }"},
    {BODY "let a = iota(4)", "[:, newaxis]", "", "", "; }"},
    {BODY "let a = ", "x[", "0", "]", "; }"},
    {BODY "let a = ", "[", "1", "]", "; }"},
    {BODY "let a = x[0]", " else x[0]", "", "", "; }"},
    {BODY, "{", "", "}", "}"},
    {BODY, "if s > 0 {", "", "}", "}"},
    {BODY, "if true {", "", "}", "}"},
    {BODY "if s > 0 { }", " else if s > 1 { }", "", "", "}"},
    {BODY, "if s > 0 { } else {", "", "}", "}"},
    {BODY, "for i in 0 .. 2 {", "", "}", "}"},
    {BODY, "while s > 0 {", "", "}", "}"},
    {BODY, "s;", "", "", "}"},
    {BODY "var a = s;", "a = a + 1;", "", "", "}"},
    {BODY "var a = s;", "if a > 0 { a = 1; }", "", "", "}"},
    {BODY "let a = ", "fn(b: i32) -> i32 { return ", "b", "; }", "; }"},
    {"", "kernel k() {}\n", "", "", ""},
    {"", "@warps(4) ", "kernel k() {}", "", ""},
    {"kernel k<", "A: fn(", "i32", ") -> i32", ">() {}"},
    {"kernel k<A: fn(i32", ", i32", "", "", ") -> i32>() {}"},
    {"kernel k(", "x: in f32[N], ", "y: f32", "", ") {}"},
    {"kernel k(x: in f32[", "N, ", "N", "", "]) {}"},
    {"const A = ", "(", "1", ")", ";"},
    {"const A = 1", " * 1", "", "", ";"},
    {"", "/*", "", "*/", "kernel k() {}"},
    {"", "(", "", "", ""},
    {"", ")", "", "", ""},
    {"", "}", "", "", ""},
    {"", "\"", "", "", ""},
    {"", ";", "", "", ""},
    {"", "@", "", "", ""},
};

Test(B59, B59_deep_nesting) {
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        static const unsigned some[] = {3, 60, 255, 256, 257, 1000, DEPTH};
        for (size_t k = 0; k < sizeof some / sizeof some[0]; k++) {
            nested(&depths[i], some[k]);
        }
    }
}

// Chains of calls and of constants and of specialisations, each through the one before.
static void chain(const char *first, const char *format, const char *last, unsigned n) {
    char *out = malloc(strlen(first) + n * (strlen(format) + 24) + strlen(last) + 32);
    char *at = stpcpy(out, first);
    for (unsigned i = 1; i <= n; i++) {
        const char *hole = format;
        for (const char *c = hole; *c; c++) {
            if (*c == '#') {
                at += sprintf(at, "%u", i);
            } else if (*c == '~') {
                at += sprintf(at, "%u", i - 1);
            } else {
                *at++ = *c;
            }
        }
    }
    *at = '\0';
    at += sprintf(at, last, n);
    try_text(out, (size_t)(at - out), "chain", format, n);
    free(out);
}

Test(B59, B59_long_chains) {
    for (unsigned n = 10; n <= 1000; n *= 10) {
        chain("fn g0(x: i32) -> i32 { return x; }\n",
              "fn g#(x: i32) -> i32 { return g~(x) + 1; }\n",
              "kernel k(y: out i32[1]) { y[0] = g%u(1); }", n);
        chain("fn g0<N: int>(x: i32[N]) -> i32[N] { return x; }\n",
              "fn g#<N: int>(x: i32[N]) -> i32[N] { return x + g~(x); }\n",
              "kernel k(y: out i32[4]) { y[0 +: 4] = g%u(iota(4)); }", n);
        chain("const c0 = 1;\n", "const c# = c~ + 1;\n", "kernel k(y: out i32[1]) { y[0] = c%u; }",
              n);
        chain("kernel k0<A: int = 1>(x: inout f32[N]) { x[0] = f32(A); }\n",
              "kernel k#(z#: in f32[4]) = k~();\n", "// %u\n", n);
        chain("kernel k0<A: int = 1>(x: inout f32[N]) { x[0] = f32(A); }\n",
              "kernel k#() = k~();\n", "// %u\n", n);
    }
    // Each function calls the one before twice: 2^n instances where nothing bounds them.
    for (unsigned n = 4; n <= 24; n += 20) {
        chain("fn g0(x: i32) -> i32 { return x; }\n",
              "fn g#(x: i32) -> i32 { return g~(x) + g~(x + 1); }\n",
              "kernel k(y: out i32[1]) { y[0] = g%u(1); }", n);
    }
}

static void long_line(const char *before, char fill, const char *after) {
    enum { MB = 1 << 20 };
    size_t nb = strlen(before), na = strlen(after);
    char *out = malloc(nb + MB + na + 1);
    memcpy(out, before, nb);
    memset(out + nb, fill, MB);
    memcpy(out + nb + MB, after, na + 1);
    try_text(out, nb + MB + na, "1 MB", before, MB);
    free(out);
}

Test(B59, B59_line_of_a_megabyte) {
    static const char fills[] = {' ', 'a',  '0',  '9',  '_',    '/',    '*', '"', '\\', '-',
                                 '(', '\0', '\r', '\t', '\x80', '\xff', '{', ';', ',',  '.'};
    for (size_t i = 0; i < sizeof fills; i++) {
        long_line("", fills[i], "");
        long_line("kernel k(x: inout f32[N]) { x[0] = 1; ", fills[i], " y = ; }");
        long_line("kernel k(x: inout f32[N]) { print(\"", fills[i], "\"); }");
        long_line("kernel k(x: inout f32[N]) { x[0] = 1", fills[i], "; }");
    }
}

// A NUL is a character that no source may hold, wherever it stands.
Test(B59, B59_nul) {
    static const char text[] = "kernel k(x: inout f32[N]) { x[0] = 1; /* c */ } // c\n";
    char copy[sizeof text];
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(copy, text, sizeof text);
        copy[i] = '\0';
        unsigned refused = w.refused;
        try_text(copy, sizeof text - 1, "NUL", text, i);
        cr_expect_eq(w.refused, refused + 1, "NUL at %zu is accepted", i);
    }
}

Test(B59, B59_division_by_literal_zero) {
    // clang-format off
    static const char *const texts[] = {
        "kernel k(x: inout i32[N]) { x[0] = x[0] / 0; x[1] = x[1] % 0; }",
        "kernel k(x: inout i32[N]) { x[0] = 1 / 0; x[1] = 1 % 0; x[2] = -9223372036854775807 / -1; }",
        "kernel k(x: inout i32[N]) { x[0] = i32(-2147483648) / -1; x[1] = i32(-2147483648) % -1; }",
        "kernel k(x: inout f32[N]) { x[0] = 1.0 / 0.0; x[1] = 0.0 / 0; x[2] = 1.0 % 0.0; }",
        "const A = 1 / 0; const B = 7 % 0; kernel k(x: inout i32[N]) { x[0] = A + B; }",
        "kernel k<B: int = 4 / 0>(x: inout i32[N]) { x[0 +: B] = 1; }",
        "kernel k<B: int = N / 0>(x: inout i32[N]) { x[0 +: B] = 1; }",
        "kernel k(x: inout i32[N]) grid (i in cdiv(N, 0)) { x[i] = 1; }",
        "kernel k(x: inout i32[N]) grid (i in N / 0) { x[i] = 1; }",
        "kernel k(x: inout i32[N]) { for i in 0 .. 4 step 0 { x[i] = 1; } }",
        "kernel k(x: inout i32[N]) { x[0 +: 8 / 0] = 1; }",
        "kernel k(x: inout i32[N]) { static_assert(1 / 0 == 0, \"zero\"); }",
        "kernel k(x: inout i32[N]) { let a = iota(4) / 0 + mulhi(iota(4), 0) + cdiv(iota(4), 0); }",
        "kernel k(x: inout i32[N]) { x[0] = 1 << 64; x[1] = 1 << -1; x[2] = x[0] >> 200; }",
    };
    // clang-format on
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        try_text(texts[i], strlen(texts[i]), "zero", texts[i], i);
    }
}

// Sizes that are no sizes: refused by a message, never an allocation of their product.
Test(B59, B59_great_sizes) {
    // clang-format off
    static const char *const texts[] = {
        "kernel k(x: inout f32[N]) { x[0 +: 0] = 1; }",
        "kernel k(x: inout f32[N]) { x[0 +: -1] = 1; }",
        "kernel k(x: inout f32[N]) { x[0 +: 2147483647] = 1; }",
        "kernel k(x: inout f32[N]) { x[0 +: 4294967296] = 1; }",
        "kernel k(x: inout f32[N]) { x[0 +: 9223372036854775807] = 1; }",
        "kernel k(x: inout f32[N]) { let a = zeros([65536, 65536], f32); x[0] = sum(a); }",
        "kernel k(x: inout f32[N]) { let a = zeros([2147483647, 2147483647, 4], f32); x[0] = sum(a); }",
        "kernel k(x: inout f32[N]) { let a = iota(2147483647); x[0] = f32(sum(a)); }",
        "kernel k(x: inout f32[N]) { let a = iota(1 << 62); x[0] = f32(sum(a)); }",
        "kernel k(x: inout f32[N]) { let a = broadcast(x[0 +: 1], [1 << 20, 1 << 20]); x[0] = sum(a); }",
        "kernel k(x: inout f32[N]) { let a = histogram(iota(8), 1 << 40); x[0] = f32(sum(a)); }",
        "kernel k(x: inout f32[N]) { let (a, b) = topk(x[0 +: 8], 1 << 40, 0); x[0] = sum(a); }",
        "kernel k(x: inout f32[9223372036854775807]) { x[0] = 1; }",
        "kernel k(x: inout f32[-4]) { x[0] = 1; }",
        "kernel k(x: inout f32[0]) { x[0] = 1; }",
        "kernel k(x: inout f32[99999999999999999999]) { x[0] = 1; }",
        "kernel k(x: inout f32[N]) { let a = concat(iota(1 << 30), iota(1 << 30), 0); x[0] = 1; }",
        "kernel k(x: inout f32[N]) { let a = reshape(iota(8), [4, 1 << 63]); x[0] = 1; }",
        "kernel k(x: inout f32[N]) { let a = slice(iota(8), 0, 4, 1 << 33); x[0] = 1; }",
        "kernel k(x: inout f32[N]) { for i in 0 .. 9 unroll(1000000000) { x[0] = 1; } }",
        "kernel k(x: inout f32[N]) { for i in 0 .. 9 pipeline(1000000000) { x[0] = 1; } }",
        "@warps(99999999999) kernel k(x: inout f32[N]) { x[0] = 1; }",
        "kernel k(x: inout f32[N]) grid (i in 9223372036854775807) { x[0] = 1; }",
        "kernel k(x: inout f32[N]) grid (i in 2147483647, j in 2147483647, l in 2147483647) { x[0] = 1; }",
    };
    // clang-format on
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        try_text(texts[i], strlen(texts[i]), "size", texts[i], i);
    }
}
