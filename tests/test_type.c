// SPDX-License-Identifier: Apache-2.0
// Types: equality, broadcasting, text.
#include "lang/type.h"

#include <criterion/criterion.h>

static tk_guard guard;
static tk_arena arena;

static void begin(void) {
    tk_arena_init(&arena, NULL, &guard);
    if (setjmp(guard.jump) != 0) {
        cr_assert_fail("the arena failed: %s", guard.text);
    }
}

static void end(void) { tk_arena_release(&arena); }

Test(type, text) {
    begin();
    const int64_t dim[] = {64, TK_DIM_DYN, TK_DIM_DEP};
    const tk_type *s = tk_type_scalar(&arena, TK_F32);
    const tk_type *t = tk_type_tile(&arena, TK_I32, 1, dim);
    cr_assert_str_eq(tk_type_text(&arena, s), "f32");
    cr_assert_str_eq(tk_type_text(&arena, t), "i32[64]");
    cr_assert_str_eq(tk_type_text(&arena, tk_type_tensor(&arena, TK_F16, TK_IN, 2, dim)),
                     "in f16[64, ?]");
    cr_assert_str_eq(tk_type_text(&arena, tk_type_tensor(&arena, TK_F16, TK_INOUT, 3, dim)),
                     "inout f16[64, ?, ?]");
    const tk_type *pair[] = {s, t};
    cr_assert_str_eq(tk_type_text(&arena, tk_type_tuple(&arena, 2, pair)), "(f32, i32[64])");
    cr_assert_str_eq(tk_shape_text(&arena, 2, dim), "[64, ?]");
    cr_assert_str_eq(tk_shape_text(&arena, 0, dim), "[]");
    end();
}

Test(type, equality) {
    begin();
    const int64_t a[] = {4, 8}, b[] = {4, 9};
    const tk_type *t = tk_type_tile(&arena, TK_F32, 2, a);
    cr_assert(tk_type_eq(t, tk_type_tile(&arena, TK_F32, 2, a)));
    cr_assert_not(tk_type_eq(t, tk_type_tile(&arena, TK_F32, 2, b)));
    cr_assert_not(tk_type_eq(t, tk_type_tile(&arena, TK_F32, 1, a)));
    cr_assert_not(tk_type_eq(t, tk_type_tile(&arena, TK_F16, 2, a)));
    cr_assert_not(tk_type_eq(tk_type_tensor(&arena, TK_F32, TK_IN, 2, a),
                             tk_type_tensor(&arena, TK_F32, TK_OUT, 2, a)));
    cr_assert_not(tk_type_eq(t, tk_type_tensor(&arena, TK_F32, TK_IN, 2, a)));
    cr_assert(
        tk_type_eq(tk_type_with_dtype(&arena, t, TK_F16), tk_type_tile(&arena, TK_F16, 2, a)));
    cr_assert(tk_type_eq(tk_type_with_shape(&arena, t, 2, b), tk_type_tile(&arena, TK_F32, 2, b)));
    const tk_type *p[] = {t, t}, *q[] = {t, tk_type_void()};
    cr_assert(tk_type_eq(tk_type_tuple(&arena, 2, p), tk_type_tuple(&arena, 2, p)));
    cr_assert_not(tk_type_eq(tk_type_tuple(&arena, 2, p), tk_type_tuple(&arena, 2, q)));
    cr_assert_not(tk_type_eq(tk_type_tuple(&arena, 2, p), tk_type_tuple(&arena, 1, p)));
    cr_assert(tk_type_eq(tk_type_error(), tk_type_error()));
    end();
}

Test(type, questions) {
    begin();
    const int64_t a[] = {4, 8}, dep[] = {4, TK_DIM_DEP}, huge[] = {INT64_MAX, 2};
    const tk_type *s = tk_type_scalar(&arena, TK_F32), *t = tk_type_tile(&arena, TK_F32, 2, a);
    cr_assert(tk_type_is_scalar(s) && !tk_type_is_tile(s));
    cr_assert(tk_type_is_tile(t) && !tk_type_is_scalar(t));
    cr_assert_eq(tk_type_elems(s), 1);
    cr_assert_eq(tk_type_elems(t), 32);
    cr_assert_eq(tk_type_elems(tk_type_tile(&arena, TK_F32, 2, huge)), INT64_MAX);
    cr_assert_not(tk_type_is_dep(t));
    cr_assert(tk_type_is_dep(tk_type_tile(&arena, TK_F32, 2, dep)));
    cr_assert(tk_type_is_dep(tk_type_scalar(&arena, TK_DTYPE_DEP)));
    cr_assert_not(tk_type_is_dep(tk_type_void()));
    end();
}

static bool joins(unsigned na, const int64_t *a, unsigned nb, const int64_t *b, unsigned n,
                  const int64_t *want) {
    unsigned rank = 99;
    int64_t dim[TK_MAX_RANK] = {0};
    const tk_type *x = tk_type_tile(&arena, TK_F32, na, a),
                  *y = tk_type_tile(&arena, TK_F32, nb, b);
    if (!tk_broadcast(x, y, &rank, dim)) {
        return n == 99;
    }
    bool same = rank == n;
    for (unsigned i = 0; same && i < n; i++) {
        same = dim[i] == want[i];
    }
    return same && tk_broadcast(y, x, &rank, dim) && rank == n;
}

Test(type, broadcast) {
    begin();
    const int64_t d = TK_DIM_DEP;
    cr_assert(joins(0, NULL, 2, (int64_t[]){4, 8}, 2, (int64_t[]){4, 8}));
    cr_assert(joins(2, (int64_t[]){4, 1}, 2, (int64_t[]){1, 8}, 2, (int64_t[]){4, 8}));
    cr_assert(joins(1, (int64_t[]){8}, 3, (int64_t[]){2, 4, 8}, 3, (int64_t[]){2, 4, 8}));
    cr_assert(joins(1, (int64_t[]){4}, 2, (int64_t[]){4, 8}, 99, NULL));
    cr_assert(joins(1, (int64_t[]){d}, 1, (int64_t[]){8}, 1, (int64_t[]){8}));
    cr_assert(joins(1, (int64_t[]){d}, 1, (int64_t[]){1}, 1, (int64_t[]){d}));
    cr_assert(joins(1, (int64_t[]){d}, 1, (int64_t[]){d}, 1, (int64_t[]){d}));
    cr_assert(joins(0, NULL, 0, NULL, 0, NULL));
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    const tk_type *t = tk_type_tile(&arena, TK_F32, 1, (int64_t[]){8});
    cr_assert(tk_broadcast(tk_type_error(), t, &rank, dim) && rank == 1 && dim[0] == 8);
    cr_assert_not(tk_broadcast(tk_type_void(), t, &rank, dim));
    end();
}
