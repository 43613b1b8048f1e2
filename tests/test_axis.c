// SPDX-License-Identifier: Apache-2.0
// Axis analysis: worked examples. That no claim is wrong is test_axis_random.c's affair.
#include "ir_env.h"
#include "lower/axis.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static tk_vid named(const tk_func *f, const char *name) {
    for (tk_vid i = 1; i < f->value.n; i++) {
        if (f->value.at[i].name && strcmp(f->value.at[i].name, name) == 0) {
            return i;
        }
    }
    cr_assert_fail("no %%%s", name);
    return 0;
}

// What is known of %r in a kernel with the given grid and body.
static void claims(const char *grid, const char *body, const char *expected) {
    ir_env *e = ir_open();
    tk_buf text, got;
    tk_buf_init(&text, &e->arena);
    tk_buf_init(&got, &e->arena);
    tk_buf_fmt(&text,
               "module tile\n\nkernel @k(%%x: in f32[?, 4096], %%n: i32, %%u: u64) {\n%s"
               "  %%i = program_id axis=0 : i32\n%s\n  return\n}\n",
               grid, body);
    tk_module *m = ir_good(e, tk_buf_text(&text));
    const tk_func *f = m->funcs.at[0];
    const tk_axis_value *v = tk_axis_of(tk_axis_make(&e->arena, f, NULL), named(f, "r"));
    cr_assert(v != NULL);
    tk_axis_print(&got, v);
    cr_expect_str_eq(tk_buf_text(&got), expected, "%s\n  is  %s\n  not %s", body, tk_buf_text(&got),
                     expected);
    ir_close(e);
}

#define ROWS "  grid {\n    %g = dim %x axis=0 : i32\n    yield %g\n  }\n"
#define TILES                                                                                      \
    "  grid {\n    %d = dim %x axis=0 : i32\n    %b = const 64 : i32\n    %g = cdiv %d, %b : "     \
    "i32\n"                                                                                        \
    "    yield %g\n  }\n"
#define WHOLE_TILES                                                                                \
    "  grid {\n    %d = dim %x axis=0 : i32\n    %b = const 64 : i32\n    %g = div %d, %b : i32\n" \
    "    yield %g\n  }\n"

Test(axis, programs_are_below_the_size_that_the_grid_says) {
    claims(ROWS, "%r = program_id axis=0 : i32",
           "contig 1 same 1 div 1 [0, 2147483646], 1 * x + 1 <= size(0, 0)");
    claims(TILES, "%r = program_id axis=0 : i32",
           "contig 1 same 1 div 1 [0, 33554431], 64 * x + 1 <= size(0, 0)");
    claims(TILES, "%c = const 64 : i32\n%r = mul %i, %c : i32",
           "contig 1 same 1 div 64 [0, 2147483584], 1 * x + 1 <= size(0, 0)");
    claims(TILES, "%c = const 6 : i32\n%r = shl %i, %c : i32",
           "contig 1 same 1 div 64 [0, 2147483584]");
    claims(WHOLE_TILES, "%c = const 64 : i32\n%r = mul %i, %c : i32",
           "contig 1 same 1 div 64 [0, 2147483520], 1 * x + 64 <= size(0, 0)");
    claims("", "%r = num_programs axis=0 : i32", "contig 1 same 1 div 1 [1, 2147483647]");
}

Test(axis, elements_of_a_block) {
    claims(TILES,
           "%c = const 64 : i32\n%s = mul %i, %c : i32\n%w = broadcast %s : i32[64]\n"
           "%t = iota : i32[64]\n%r = add %w, %t : i32[64]",
           "contig 64 same 1 div 64 [0, 2147483647], 1 * x + -62 <= size(0, 0)");
    claims("", "%w = broadcast %n : i32[64]\n%t = iota : i32[64]\n%r = add %w, %t : i32[64]",
           "contig 1 same 1 div 1 [-2147483648, 2147483647]"); // it may wrap anywhere
    claims("",
           "%c = const 8 : i32\n%s = mul %n, %c : i32\n%w = broadcast %s : i32[64]\n"
           "%t = iota : i32[64]\n%r = add %w, %t : i32[64]",
           "contig 8 same 1 div 8 [-2147483648, 2147483647]");
}

Test(axis, division_of_what_may_be_negative) {
    const char *text =
        "%%t = iota : i32[16]\n%%c = const %d : i32[16]\n%%p = add %%t, %%c : i32[16]\n"
        "%%q = const %d : i32[16]\n%%r = %s %%p, %%q : i32[16]";
    static const struct {
        int from;
        const char *op, *expected;
    } row[] = {
        {16, "div", "contig 1 same 8 div 1 [2, 3]"},
        {16, "rem", "contig 8 same 1 div 8 [0, 7]"},
        {12, "rem", "contig 4 same 1 div 4 [0, 7]"},
        {-8, "div", "contig 1 same 1 div 1 [-1, 0]"}, // -8 / 8 is -1, -7 / 8 is 0
        {-8, "rem", "contig 1 same 1 div 1 [-7, 7]"},
        {-8, "lt", "contig 1 same 8 div 1 [0, 1]"},
        {-8, "le", "contig 1 same 1 div 1 [0, 1]"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char body[400];
        bool compares = row[i].op[0] == 'l';
        snprintf(body, sizeof body, text, row[i].from, compares ? 0 : 8, row[i].op);
        if (compares) {
            strcpy(strrchr(body, ':'), ": bool[16]");
        }
        claims("", body, row[i].expected);
    }
}

Test(axis, indices_of_loops) {
#define LOOP(FROM, TO, STEP)                                                                       \
    "%from = const " FROM " : i32\n%to = " TO " : i32\n%by = const " STEP                          \
    " : i32\nfor %r = %from to %to step %by {\nyield\n}"
    claims("", LOOP("0", "dim %x axis=1", "64"), "contig 1 same 1 div 64 [0, 4032]");
    claims("", LOOP("0", "dim %x axis=0", "64"),
           "contig 1 same 1 div 64 [0, 2147483646], 1 * x + 1 <= size(0, 0)");
    claims("", LOOP("100", "const -4", "-8"), "contig 1 same 1 div 4 [-3, 100]");
}

Test(axis, carried_values_settle) {
    claims("",
           "%z = const 0 : i32\n%to = const 100 : i32\n%by = const 1 : i32\n%s = const 16 : i32\n"
           "%e = for %k = %z to %to step %by carry (%r = %z) : i32 {\n%n2 = add %r, %s : i32\n"
           "%m = const 96 : i32\n%n3 = rem %n2, %m : i32\nyield %n3\n}",
           "contig 1 same 1 div 16 [-95, 95]");
}

Test(axis, questions) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\n\nkernel @k(%x: in f32[?, 4096]) {\n" TILES
                              "  %i = program_id axis=0 : i32\n  %c = const 64 : i32\n"
                              "  %s = mul %i, %c : i32\n  %t = iota : i32[64]\n"
                              "  %w = broadcast %s : i32[64]\n  %r = add %w, %t : i32[64]\n"
                              "  return\n}\n");
    const tk_func *f = m->funcs.at[0];
    const tk_axis *x = tk_axis_make(&e->arena, f, NULL);
    const tk_axis_value *s = tk_axis_of(x, named(f, "s")), *c = tk_axis_of(x, named(f, "c"));
    int64_t k;
    cr_expect(tk_axis_below(x, s, 0, 0, 1) && !tk_axis_below(x, s, 0, 0, 2));
    cr_expect(tk_axis_below(x, c, 0, 1, 4032) && !tk_axis_below(x, c, 0, 1, 4033));
    cr_expect(tk_axis_every(s) == 6 && tk_axis_constant(c, &k) && k == 64);
    cr_expect(!tk_axis_below(x, tk_axis_of(x, named(f, "r")), 0, 0, 1));
    cr_expect(tk_axis_of(x, f->params.at[0]) == NULL);
    ir_close(e);
}

Test(axis, sizes_that_are_the_same) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(
        e, "module tile\n\nkernel @k(%x: in f32[?, ?], %y: out f32[?, ?]) sizes(%x[1] = %x[0], "
           "%y[1] = %x[0]) {\n  grid {\n    %g = dim %y axis=1 : i32\n    yield %g\n  }\n"
           "  %i = program_id axis=0 : i32\n  return\n}\n");
    const tk_func *f = m->funcs.at[0];
    const tk_axis *x = tk_axis_make(&e->arena, f, NULL);
    const tk_axis_value *i = tk_axis_of(x, named(f, "i"));
    cr_expect(tk_axis_below(x, i, 0, 0, 1) && tk_axis_below(x, i, 0, 1, 1) &&
              tk_axis_below(x, i, 1, 1, 1));
    cr_expect(!tk_axis_below(x, i, 1, 0, 1) && !tk_axis_below(x, i, 0, 0, 2));
    ir_close(e);
}
