// SPDX-License-Identifier: Apache-2.0
// Arenas, arrays, text, names, "did you mean", and what is well-formed UTF-8.
#include "lang/base.h"
#include "lang/utf8.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static tk_guard guard;
static tk_arena arena;

static void begin(void) {
    tk_arena_init(&arena, NULL, &guard);
    if (setjmp(guard.jump) != 0) {
        cr_assert_fail("the arena failed: %s", guard.text);
    }
}

static void end(void) { tk_arena_release(&arena); }

Test(base, blocks_are_zero_aligned_and_apart) {
    begin();
    char *last = NULL;
    for (size_t size = 0; size < 20000; size = size * 3 / 2 + 1) {
        char *p = tk_alloc(&arena, size);
        cr_assert_eq((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++) {
            cr_assert_eq(p[i], 0);
        }
        memset(p, 0x5A, size);
        cr_assert(!last || last[0] == 0x5A);
        last = size ? p : last;
    }
    cr_assert_neq(tk_alloc(&arena, 0), tk_alloc(&arena, 0));
    end();
}

Test(base, release_gives_all_back) {
    begin();
    for (int i = 0; i < 1000; i++) {
        (void)tk_alloc(&arena, 1000);
    }
    cr_assert_gt(arena.total, 1000000);
    cr_assert_lt(arena.total, 3000000);
    tk_arena_release(&arena);
    cr_assert_eq(arena.total, 0);
    cr_assert_not_null(tk_alloc(&arena, 10));
    end();
}

static tk_fail failure_of(size_t limit, size_t count, size_t size) {
    static tk_guard g;
    static tk_arena a;
    memset(&g, 0, sizeof g);
    tk_arena_init(&a, NULL, &g);
    a.limit = limit;
    if (setjmp(g.jump) == 0) {
        (void)tk_alloc_array(&a, count, size);
    }
    tk_arena_release(&a);
    return g.fail;
}

Test(base, memory_fails_by_the_guard) {
    cr_assert_eq(failure_of(0, 10, 10), TK_FAIL_NONE);
    cr_assert_eq(failure_of(0, SIZE_MAX / 2, 16), TK_FAIL_MEMORY);
    cr_assert_eq(failure_of(0, SIZE_MAX, SIZE_MAX), TK_FAIL_MEMORY);
    cr_assert_eq(failure_of(1000, 100, 10), TK_FAIL_MEMORY);
    cr_assert_eq(failure_of(2000, 100, 10), TK_FAIL_NONE);
}

static void *counted_alloc(void *user, size_t size) {
    int *live = user;
    (*live)++;
    return malloc(size);
}

static void counted_release(void *user, void *block) {
    int *live = user;
    (*live)--;
    free(block);
}

Test(base, allocator_of_the_owner) {
    int live = 0;
    tk_allocator from = {counted_alloc, counted_release, &live};
    tk_guard g = {.fail = TK_FAIL_NONE};
    tk_arena a;
    tk_arena_init(&a, &from, &g);
    if (setjmp(g.jump) == 0) {
        for (int i = 0; i < 100; i++) {
            (void)tk_alloc(&a, 5000);
        }
    }
    cr_assert_gt(live, 0);
    tk_arena_release(&a);
    cr_assert_eq(live, 0);
    cr_assert_eq(g.fail, TK_FAIL_NONE);
}

Test(base, internal_errors_name_their_place) {
    static tk_guard g;
    static tk_arena a;
    tk_arena_init(&a, NULL, &g);
    if (setjmp(g.jump) == 0) {
        TK_CHECK(&a, 1 + 1 == 3);
        cr_assert_fail();
    }
    cr_assert_eq(g.fail, TK_FAIL_INTERNAL);
    cr_assert(strstr(g.text, "test_base.c:") && strstr(g.text, "1 + 1 == 3"), "%s", g.text);
    if (setjmp(g.jump) == 0) {
        TK_ICE(&a, "%0300d", 1);
    }
    cr_assert_eq(strlen(g.text), sizeof g.text - 1);
    tk_arena_release(&a);
}

Test(base, arrays_grow) {
    begin();
    TK_VEC(int) v = {0};
    for (int i = 0; i < 10000; i++) {
        tk_vec_push(&arena, &v, i);
    }
    cr_assert_eq(v.n, 10000);
    for (int i = 0; i < 10000; i++) {
        cr_assert_eq(v.at[i], i);
    }
    end();
}

Test(base, text) {
    begin();
    cr_assert_str_eq(tk_format(&arena, "%s-%d", "a", 7), "a-7");
    cr_assert_str_eq(tk_strndup(&arena, "abcdef", 3), "abc");
    cr_assert_str_eq(tk_strdup(&arena, ""), "");
    tk_buf b;
    tk_buf_init(&b, &arena);
    cr_assert_str_eq(tk_buf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        tk_buf_fmt(&b, "%d,", i % 10);
        tk_buf_add(&b, "", 0);
    }
    tk_buf_fmt(&b, "%0500d", 1);
    cr_assert_eq(b.n, 2500);
    cr_assert_eq(strlen(tk_buf_text(&b)), b.n);
    cr_assert_eq(memcmp(tk_buf_text(&b), "0,1,2,", 6), 0);
    end();
}

Test(base, equal_names_are_equal_pointers) {
    begin();
    tk_names names;
    tk_names_init(&names, &arena);
    const char *first[2000];
    for (int i = 0; i < 2000; i++) {
        const char *s = tk_format(&arena, "name%d", i);
        first[i] = tk_intern(&names, s, strlen(s));
        cr_assert_str_eq(first[i], s);
    }
    for (int i = 0; i < 2000; i++) {
        const char *s = tk_format(&arena, "name%d tail", i);
        cr_assert_eq(tk_intern(&names, s, strcspn(s, " ")), first[i]);
    }
    cr_assert_eq(tk_intern(&names, "", 0), tk_intern(&names, "x", 0));
    cr_assert_neq(tk_intern(&names, "a", 1), tk_intern(&names, "ab", 2));
    end();
}

Test(base, nearest) {
    begin();
    static const char *const words[] = {"softmax", "sum", "max", "maximum", "transpose", "x"};
    static const struct {
        const char *name, *want;
    } cases[] = {{"sofmtax", "softmax"},
                 {"softmx", "softmax"},
                 {"softmaxx", "softmax"},
                 {"sun", "sum"},
                 {"mxa", "max"},
                 {"maximun", "maximum"},
                 {"transpoes", "transpose"},
                 {"y", NULL},
                 {"X", "x"},
                 {"xs", "x"},
                 {"frobnicate", NULL},
                 {"", NULL},
                 {"abc", NULL},
                 {"sotfamx", "softmax"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = tk_nearest(&arena, cases[i].name, words, sizeof words / sizeof *words);
        cr_assert(got == cases[i].want || (got && cases[i].want && !strcmp(got, cases[i].want)),
                  "%s gives %s", cases[i].name, got ? got : "nothing");
    }
    end();
}

Test(base, utf8) {
    static const struct {
        const char *text;
        unsigned size, printable;
        uint32_t c;
    } cases[] = {{"a", 1, 1, 'a'},
                 {"\t", 1, 0, '\t'},
                 {"\xC3\xB6", 2, 2, 0xF6},
                 {"\xE2\x82\xAC", 3, 3, 0x20AC},
                 {"\xF0\x9F\x98\x80", 4, 4, 0x1F600},
                 {"\xE2\x80\xAE", 3, 0, 0x202E},
                 {"\xC2\x85", 2, 0, 0x85},
                 {"\xC0\x80", 0, 0, 0},
                 {"\xC3", 0, 0, 0},
                 {"\xED\xA0\x80", 0, 0, 0},
                 {"\xE0\x80\x80", 0, 0, 0},
                 {"\xF4\x90\x80\x80", 0, 0, 0},
                 {"\xF8\x88\x80\x80", 0, 0, 0},
                 {"\x80", 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t c = 0;
        size_t n = strlen(cases[i].text);
        cr_assert_eq(tk_utf8_at(cases[i].text, n, &c), cases[i].size, "case %zu", i);
        cr_assert_eq(c, cases[i].c, "case %zu", i);
        cr_assert_eq(tk_utf8_printable(cases[i].text, n), cases[i].printable, "case %zu", i);
    }
    cr_assert_eq(tk_utf8_at("", 0, NULL), 0);
}
