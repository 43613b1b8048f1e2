// SPDX-License-Identifier: Apache-2.0
// Masks that are known by register: what is claimed holds for the elements of all threads, and
// where the bound is a constant nothing is claimed only where there are elements on both sides.
#include "ir_env.h"
#include "lower/known.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { MOST = 1024 };

// Of the last op of a body: the elements below `low` are known to be below, those from `high` on
// not to be.
static void check(const char *layout, const char *body, int64_t low, int64_t high) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(&b,
               "module laid warps=2\nlayout #0 = [1024] %s\n\n"
               "kernel @k(%%x: in f32[?], %%n: i32) {\n  grid {\n%%one = const 1 : i32\n"
               "yield %%one\n}\n%%i = iota : i32[1024] #0\n%%z = dim %%x axis=0 : i32\n"
               "%%k = const 768 : i32\n%s\nreturn\n}\n",
               layout, body);
    const tk_module *m = ir_good(e, tk_buf_text(&b));
    const tk_func *f = m->funcs.at[0];
    const tk_axis *x = tk_axis_make(&e->arena, f, NULL);
    const tk_op *op = f->body->last->prev;
    const tk_layout *l = tk_value_layout(f, op->res[0]);
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        bool below = true, above = true;
        for (uint32_t t = 0; t < 64; t++) {
            const int64_t at = tk_layout_eval(l, r, t & 31, t >> 5);
            below = below && at < low;
            above = above && at >= high;
        }
        cr_expect_eq(tk_known_mask(x, op, r),
                     below   ? TK_KNOWN_TRUE
                     : above ? TK_KNOWN_FALSE
                             : TK_KNOWN_NOT,
                     "%s\n%s: register %u", layout, body, r);
    }
    ir_close(e);
}

static const char *const layouts[] = {
    "reg 1 64 128 256 lane 2 4 8 16 32 warp 512",
    "reg 1 2 4 512 lane 8 16 32 64 128 warp 256",
    "reg 32 64 128 256 512 lane 1 2 4 8 16 warp 0",
    "reg 1 2 4 8 lane 16 32 64 128 256 warp 512",
};

static void in_all_layouts(const char *body, int64_t low, int64_t high) {
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        check(layouts[i], body, low, high);
    }
}

Test(known, constants) {
    const int bound[] = {0, 1, 2, 63, 64, 65, 512, 513, 575, 576, 832, 960, 1023, 1024};
    for (unsigned i = 0; i < sizeof bound / sizeof *bound; i++) {
        char body[160];
        snprintf(body, sizeof body,
                 "%%b = const %d : i32[1024] #0\n%%m = lt %%i, %%b : bool[1024] #0", bound[i]);
        in_all_layouts(body, bound[i], bound[i]);
        snprintf(body, sizeof body,
                 "%%o = const 3 : i32[1024] #0\n%%a = add %%i, %%o : i32[1024] #0\n"
                 "%%b = const %d : i32[1024] #0\n%%m = lt %%a, %%b : bool[1024] #0",
                 bound[i]);
        in_all_layouts(body, bound[i] - 3, bound[i] - 3);
    }
}

#define BELOW "%b = broadcast %y : i32[1024] #0\n%m = lt %i, %b : bool[1024] #0"

Test(known, ranges) {
    in_all_layouts("%y = max %z, %k : i32\n" BELOW, 768, MOST);
    in_all_layouts("%y = min %z, %k : i32\n" BELOW, 0, 768);
}

Test(known, nothing) {
    in_all_layouts("%y = add %n, %k : i32\n" BELOW, 0, MOST);
    in_all_layouts("%b = const 512 : i32[1024] #0\n%m = le %i, %b : bool[1024] #0", 0, MOST);
    in_all_layouts("%a = mul %i, %i : i32[1024] #0\n%b = const 512 : i32[1024] #0\n"
                   "%m = lt %a, %b : bool[1024] #0",
                   0, MOST);
    // Elements are no sum of a register's part and a thread's.
    check("reg 3 64 128 256 lane 1 4 8 16 32 warp 512",
          "%b = const 512 : i32[1024] #0\n%m = lt %i, %b : bool[1024] #0", 0, MOST);
}
