// SPDX-License-Identifier: Apache-2.0
// What accesses need when they run: which bounds are tested, how many elements move at once, and
// what the notes say of it.
#include "ir_env.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    ALIGNED = TK_FACT_UNIT | TK_FACT_ALIGNED,
    WHOLE = ALIGNED | TK_FACT_WHOLE,
};

static const tk_op *last_access(const tk_region *r) {
    const tk_op *found = NULL;
    for (const tk_op *op = r->first; op; op = op->next) {
        found = tk_op_is_access(op) ? op : found;
        for (uint32_t i = 0; i < op->nreg; i++) {
            const tk_op *inner = last_access(op->reg[i]);
            found = inner ? inner : found;
        }
    }
    return found;
}

// The note of the last access of a kernel of x: inout f16[?, N], t: in i32[?], n: i32, w: i64.
static void plan(const char *size, tk_tensor_facts facts, const char *body, const char *expected) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(&b,
               "module laid warps=1\n"
               "layout #0 = [256] reg 1 2 4 lane 8 16 32 64 128 warp\n"
               "layout #1 = [32] reg lane 1 2 4 8 16 warp\n"
               "layout #2 = [16, 16] reg 1 2 4 lane 8 16 32 64 128 warp\n\n"
               "kernel @k(%%x: inout f16[?, %s], %%t: in i32[?], %%n: i32, %%w: i64, %%z: inout "
               "i32[?]) {\n  grid {\n%%d = dim %%x axis=0 : i32\nyield %%d\n}\n"
               "%%i = program_id axis=0 : i32\n%%zero = const 0 : i32\n%s\nreturn\n}\n",
               size, body);
    tk_module *m = ir_good(e, tk_buf_text(&b));
    const tk_func *f = m->funcs.at[0];
    tk_tensor_facts all[5] = {facts, facts, 0, 0, facts};
    const tk_axis *x = tk_axis_make(&e->arena, f, all);
    const tk_op *op = last_access(f->body);
    tk_view_plan p = tk_view_plan_of(x, op, tk_value_layout(f, tk_view_value(f, op)));
    tk_view_note(&m->notes, x, op, &p);
    const tk_note_rec *note = ir_note(m, "access");
    cr_expect_str_eq(note->reason, expected, "%s\n  is  %s\n  not %s", body, note->reason,
                     expected);
    ir_close(e);
}

#define ROW "%r = load %x[%i, %zero +: 256] : f16[256] #0"

Test(view_plan, facts_make_vectors) {
    plan("?", 0, ROW,
         "'x' is read element by element, as the last stride is not known to be 1; tested: "
         "dimension 1, whose range may pass the size");
    plan("?", TK_FACT_UNIT, ROW,
         "'x' is read element by element, as the alignment of the row start is not known; tested: "
         "dimension 1, whose range may pass the size");
    plan("?", ALIGNED, ROW,
         "'x' is read 8 elements at once; tested: dimension 1, whose range may pass the size");
    plan("256", ALIGNED, ROW, "'x' is read 8 elements at once");
    plan("255", ALIGNED, ROW,
         "'x' is read 8 elements at once; tested: dimension 1, whose range may pass the size");
    plan("?", ALIGNED, "%r = load %x[%i, %zero +: 32] : f16[32] #1",
         "'x' is read element by element, as a thread has no more elements in a row; tested: "
         "dimension 1, whose range may pass the size");
}

Test(view_plan, starts) {
    plan(
        "?", ALIGNED, "%r = load %x[%n, %w +: 256] : f16[256] #0",
        "'x' is read 8 elements at once; tested: dimension 0, whose index may be outside, "
        "dimension 1, whose range may be outside, alignment, as the place in the row is not known");
    plan("?", ALIGNED,
         "%four = const 4 : i64\n%s = mul %w, %four : i64\n"
         "%r = load %x[%i, %s +: 256] : f16[256] #0",
         "'x' is read 4 elements at once, as the place in the row is not known to be a multiple of "
         "more; tested: dimension 1, whose range may be outside");
    plan("?", WHOLE,
         "%to = dim %x axis=1 : i32\n%by = const 256 : i32\nfor %j = %zero to %to step %by {\n"
         "%r = load %x[%i, %j +: 256] : f16[256] #0\nyield\n}",
         "'x' is read 8 elements at once; tested: dimension 1, whose range may pass the size");
    plan("4096", WHOLE,
         "%to = dim %x axis=1 : i32\n%by = const 256 : i32\nfor %j = %zero to %to step %by {\n"
         "%r = load %x[%i, %j +: 256] : f16[256] #0\nyield\n}",
         "'x' is read 8 elements at once");
    plan("4095", WHOLE, "%to = dim %x axis=1 : i32\n%r = load %x[%i, %to] : f16",
         "'x' is read as one element; tested: dimension 1, whose index may pass the size");
}

#define INDICES                                                                                    \
    "%k = iota : i32[256] #0\n%o = broadcast %base : i32[256] #0\n%at = add %k, %o : i32[256] "    \
    "#0\n"

Test(view_plan, indices_that_count_up) {
    plan("?", ALIGNED,
         "%base = const 16 : i32\n" INDICES "%r = load %x[%i, tile %at] : f16[256] #0",
         "'x' is read 8 elements at once; tested: dimension 1, whose index may pass the size");
    plan("?", ALIGNED,
         "%base = add %n, %zero : i32\n" INDICES "%r = load %x[%i, tile %at] : f16[256] #0",
         "'x' is read element by element, as the indices are not known to count up; tested: "
         "dimension 1, whose index may be outside"); // %n + 255 may wrap
    plan("?", ALIGNED,
         "%m = const 1023 : i32\n%base = and %n, %m : i32\n" INDICES
         "%r = load %x[%i, tile %at] : f16[256] #0",
         "'x' is read 8 elements at once; tested: dimension 1, whose index may pass the size, "
         "alignment, as the place in the row is not known");
    plan("?", ALIGNED,
         "%base = const 0 : i32\n" INDICES "%row = broadcast %i : i32[256] #0\n"
         "%r = load %x[tile %row, tile %at] : f16[256] #0",
         "'x' is read 8 elements at once; tested: dimension 1, whose index may pass the size");
    plan("?", ALIGNED,
         "%base = const 0 : i32\n" INDICES "%r = load %x[tile %k, tile %at] : f16[256] #0",
         "'x' is read element by element, as an index of another dimension may vary; tested: "
         "dimension 0, whose index may pass the size, dimension 1, whose index may pass the size");
}

Test(view_plan, masks) {
#define MASKED(LIMIT)                                                                              \
    "%k = iota : i32[256] #0\n%l = const " LIMIT " : i32[256] #0\n"                                \
    "%m = lt %k, %l : bool[256] #0\n%v = const 1.0 : f16[256] #0\n"                                \
    "store %x[%i, %zero +: 256] = %v mask %m"
    plan("256", ALIGNED, MASKED("48"), "'x' is written 8 elements at once");
    plan("256", ALIGNED, MASKED("50"),
         "'x' is written 8 elements at once; the mask may differ inside a vector");
}

Test(view_plan, other_accesses) {
    plan("?", ALIGNED, "%r = load %x[%i, %n] : f16",
         "'x' is read as one element; tested: dimension 1, whose index may be outside");
    plan("?", ALIGNED, "%r = load %x[%zero +: 16, %zero +: 16] : f16[16, 16] #2",
         "'x' is read 8 elements at once; tested: dimension 0, whose range may pass the size, "
         "dimension 1, whose range may pass the size");
    plan("?", ALIGNED,
         "%one = const 1 : i32[256] #0\n"
         "%r = atomic_rmw add %z[%zero +: 256], %one order=relaxed scope=device : i32[256] #0",
         "'z' is changed element by element, as atomics take one element; tested: dimension 0, "
         "whose range may pass the size");
}
