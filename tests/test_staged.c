// SPDX-License-Identifier: Apache-2.0
// The staged level: where ops have their shared memory, where barriers stand, that none can be left
// out, and what the verifier refuses.
#include "ir/scratch.h"
#include "ir_env.h"
#include "lower/lower.h"
#include "test_exec_run.h"

#include <criterion/criterion.h>
#include <string.h>

// ---- Programs -----------------------------------------------------------------------------------

// %x: in f32[?, ?], %y: inout f32[?, ?], %v: inout i32[?], %n: i32; 4 warps.
#define KERNEL(body)                                                                               \
    "module tile warps=4\n\nkernel @k(%x: in f32[?, ?], %y: inout f32[?, ?], %v: inout i32[?], "   \
    "%n: i32) {\n  %z = const 0 : i32\n  %one = const 1 : i32\n"                                   \
    "  %a = load %x[%z +: 16, %z +: 64] : f32[16, 64]\n" body "  return\n}\n"
#define STORE(value) "  store %y[%z +: 16, %z +: 64] = " value "\n"

static const char reductions[] =
    KERNEL("  %m = reduce max %a axis=0 : f32[1, 64]\n  %b = broadcast %m : f32[16, 64]\n"
           "  %d = sub %a, %b : f32[16, 64]\n  %s = reduce sum %d : f32\n"
           "  %t = broadcast %s : f32[16, 64]\n  %e = add %d, %t : f32[16, 64]\n"
           "  %i = arg_reduce max %e axis=0 : i32[1, 64]\n  %f = cast %i : f32[1, 64]\n"
           "  %g = broadcast %f : f32[16, 64]\n  %r = mul %e, %g : f32[16, 64]\n" STORE("%r"));
static const char loop_with_reduction[] =
    KERNEL("  %r = for %k = %z to %n step %one carry (%c = %a) : f32[16, 64] {\n"
           "    %s = reduce sum %c : f32\n    %t = broadcast %s : f32[16, 64]\n"
           "    %d = sub %c, %t : f32[16, 64]\n    yield %d\n  }\n" STORE("%r"));
static const char loop_with_two[] =
    KERNEL("  %r = for %k = %z to %n step %one carry (%c = %a) : f32[16, 64] {\n"
           "    %s = reduce sum %c : f32\n    %t = broadcast %s : f32[16, 64]\n"
           "    %d = sub %c, %t : f32[16, 64]\n    %m = reduce max %d : f32\n"
           "    %u = broadcast %m : f32[16, 64]\n    %e = mul %d, %u : f32[16, 64]\n"
           "    yield %e\n  }\n" STORE("%r"));
static const char store_then_load[] =
    KERNEL(STORE("%a") "  %b = load %y[%z +: 16, %one +: 64] : f32[16, 64]\n"
                       "  %c = add %a, %b : f32[16, 64]\n" STORE("%c"));
static const char store_before_loop[] =
    KERNEL(STORE("%a") "  %r = for %k = %z to %n step %one carry (%c = %a) : f32[16, 64] {\n"
                       "    %b = load %y[%k +: 16, %z +: 64] : f32[16, 64]\n"
                       "    %d = add %b, %c : f32[16, 64]\n    yield %d\n  }\n"
                       "  %m = reduce sum %r : f32\n  %o = cast %m : i32\n"
                       "  store %v[%z] = %o\n");
static const char store_in_loop[] =
    KERNEL("  for %k = %z to %n step %one {\n    %b = load %y[%k +: 16, %z +: 64] : f32[16, 64]\n"
           "    %c = add %a, %b : f32[16, 64]\n    store %y[%z +: 16, %k +: 64] = %c\n"
           "    yield\n  }\n");
static const char nested[] =
    KERNEL("  for %k = %z to %n step %one {\n    for %l = %z to %k step %one {\n"
           "      %b = load %y[%l +: 16, %k +: 64] : f32[16, 64]\n      %s = reduce sum %b : f32\n"
           "      %i = cast %s : i32\n      store %v[%l] = %i\n      yield\n    }\n"
           "    store %y[%z +: 16, %k +: 64] = %a\n    yield\n  }\n");
static const char branches[] =
    KERNEL("  %j = load %v[%n] : i32\n  %c = lt %j, %n : bool\n"
           "  %r = if %c : f32[16, 64] {\n    %t = permute %a perm=[1, 0] : f32[64, 16]\n"
           "    %s = reshape %t : f32[16, 64]\n    %u = add %s, %a : f32[16, 64]\n    yield %u\n"
           "  } else {\n    store %v[%z] = %n\n    yield %a\n  }\n"
           "  %g = load %v[%one] : i32\n  %h = cast %g : f32\n  %w = broadcast %h : f32[16, 64]\n"
           "  %e = mul %r, %w : f32[16, 64]\n" STORE("%e"));
static const char conversions[] = KERNEL(
    "  %t = permute %a perm=[1, 0] : f32[64, 16]\n  %u = reshape %t : f32[16, 64]\n"
    "  %b = add %a, %u : f32[16, 64]\n  %t2 = permute %b perm=[1, 0] : f32[64, 16]\n"
    "  %u2 = reshape %t2 : f32[16, 64]\n  %c = mul %b, %u2 : f32[16, 64]\n"
    "  %d = flip %c axis=1 : f32[16, 64]\n"
    "  %e, %f = scan_fn %d, %c axis=0 : f32[16, 64], f32[16, 64] (%p: f32, %q: f32, %r: f32, %s: "
    "f32) {\n    %v1 = add %p, %r : f32\n    %v2 = mul %q, %s : f32\n    yield %v1, %v2\n  }\n"
    "  %g = add %e, %f : f32[16, 64]\n" STORE("%g"));
static const char spinning[] = KERNEL(
    STORE("%a") "  %w = while carry (%t = %z) : i32 {\n"
                "    %o = atomic_cas %v[%z], %z, %one order=acquire : i32\n"
                "    %b = ne %o, %z : bool\n    yield %b\n  } do (%t2) {\n    yield %t2\n  }\n"
                "  %q = load %y[%z +: 16, %one +: 64] : f32[16, 64]\n" STORE(
                    "%q") "  %f = atomic_rmw xchg %v[%z], %z order=release : i32\n");
static const char products[] =
    KERNEL("  %t = permute %a perm=[1, 0] : f32[64, 16]\n  %none = const 0.0 : f32[16, 16]\n"
           "  %p = for %k = %z to %n step %one carry (%c = %none) : f32[16, 16] {\n"
           "    %d = dot %a, %t, %c : f32[16, 16]\n    yield %d\n  }\n"
           "  store %y[%z +: 16, %z +: 16] = %p\n");
static const char functions[] =
    KERNEL("  store %v[%z] = %n\n"
           "  %m = reduce_fn %a axis=1 : f32[16, 1] (%p: f32, %q: f32) {\n"
           "    %j = load %v[%z] : i32\n    %c = lt %j, %n : bool\n"
           "    %h = select %c, %p, %q : f32\n    yield %h\n  }\n"
           "  %b = broadcast %m : f32[16, 64]\n" STORE("%b"));

static const char *const programs[] = {reductions,
                                       loop_with_reduction,
                                       loop_with_two,
                                       store_then_load,
                                       store_before_loop,
                                       store_in_loop,
                                       nested,
                                       branches,
                                       conversions,
                                       spinning,
                                       products,
                                       functions};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static tk_module *lower(ir_env *e, const char *text, const char *after) {
    tk_module *m = ir_good(e, text);
    tk_guard guard = {.fail = TK_FAIL_NONE};
    e->arena.guard = &guard;
    if (setjmp(guard.jump) != 0) {
        cr_assert_fail("%s", guard.text);
    }
    bool good = tk_lower(m, tk_target_find("sm_80"), NULL, NULL, &e->diags, after, false);
    e->arena.guard = NULL;
    cr_assert(good, "%s\n%s", text, ir_diags(e));
    return m;
}

static unsigned lines(const char *text, const char *line) {
    unsigned n = 0;
    for (const char *at = strstr(text, line); at; at = strstr(at + 1, line)) {
        n++;
    }
    return n;
}

// ---- Barriers -----------------------------------------------------------------------------------

static void barriers(const char *program, unsigned want) {
    ir_env *e = ir_open();
    const char *text = ir_text(e, lower(e, program, NULL));
    cr_assert_eq(lines(text, " barrier\n"), want, "%u wanted:\n%s", want, text);
    ir_close(e);
}

Test(staged, barriers_are_as_few_as_can_be) {
    barriers(reductions, 0);          // apart, each waits inside for the one before
    barriers(loop_with_reduction, 1); // its bytes are written again in the next iteration
    barriers(loop_with_two, 0);       // they take turns
    barriers(store_then_load, 2);
    barriers(store_before_loop, 1); // before the loop
    barriers(store_in_loop, 2);
    barriers(conversions, 1); // the scan has no room beside what comes before it
    barriers(products, 1);
    barriers(functions, 1);
}

Test(staged, a_barrier_for_what_is_outside_a_loop_goes_before_it) {
    ir_env *e = ir_open();
    const char *text = ir_text(e, lower(e, store_before_loop, NULL));
    cr_assert(strstr(text, "  barrier\n  %r = for "), "%s", text);
    text = ir_text(e, lower(e, store_in_loop, NULL));
    cr_assert(strstr(text, "    barrier\n    %b = load "), "%s", text);
    cr_assert(strstr(text, "    barrier\n    store "), "%s", text);
    ir_close(e);
}

// The text without its k-th barrier; NULL: there are fewer.
static const char *without(ir_env *e, const char *text, unsigned k) {
    const char *at = strstr(text, " barrier\n");
    for (; at && k > 0; k--) {
        at = strstr(at + 1, " barrier\n");
    }
    if (!at) {
        return NULL;
    }
    const char *line = at;
    while (line[-1] != '\n') {
        line--;
    }
    return tk_format(&e->arena, "%.*s%s", (int)(line - text), text, strchr(at, '\n') + 1);
}

Test(staged, no_barrier_can_be_left_out) {
    ir_env *e = ir_open();
    unsigned checked = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        const char *text = ir_text(e, lower(e, programs[i], NULL)), *less;
        cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
        for (unsigned k = 0; (less = without(e, text, k)); k++, checked++) {
            tk_module *m = ir_parse(e, less);
            cr_assert(m != NULL);
            const char *why = ir_why(e, m);
            cr_assert(why && strstr(why, "no barrier between"), "without barrier %u:\n%s", k, text);
        }
    }
    cr_assert(checked > 10);
    ir_close(e);
}

// The same bits before and after each pass of the back end.
Test(staged, the_executor_gives_the_same_bits) {
    static const char *const after[] = {"layout", "share", NULL};
    enum { ROWS = 40, COLS = 128 };
    static float a[ROWS * COLS], want[ROWS * COLS], got[ROWS * COLS];
    const int64_t dim[] = {ROWS, COLS};
    for (int i = 0; i < ROWS * COLS; i++) {
        a[i] = (float)(i * 37 % 101 - 50) / 16;
    }
    ir_env *e = ir_open();
    for (int i = 0; i < PROGRAMS; i++) {
        for (int k = -1; k < 3; k++) {
            static xrun x;
            int32_t v[4] = {0, 1, 2, 3};
            float *y = k < 0 ? want : got;
            memcpy(y, a, sizeof a);
            const char *text = k < 0 ? programs[i] : ir_text(e, lower(e, programs[i], after[k]));
            cr_assert(xrun_open(&x, text));
            xrun_tensor(&x, 0, a, 2, dim, NULL);
            xrun_tensor(&x, 1, y, 2, dim, NULL);
            xrun_vector(&x, 2, v, 4);
            xrun_scalar(&x, 3, tk_const_i64(TK_I32, 3));
            cr_assert(xrun_go(&x) == TK_EXEC_OK);
            xrun_close(&x);
            cr_assert(k < 0 || memcmp(want, got, sizeof want) == 0, "program %d", i);
        }
    }
    ir_close(e);
}

// ---- Shared memory ------------------------------------------------------------------------------

typedef struct scratches {
    tk_func *f;
    int64_t most, n, last_from, last_to;
    unsigned together; // ops that lie on the one before
} scratches;

static void each_scratch(void *user, tk_op *op) {
    scratches *s = user;
    int64_t bytes = (int64_t)tk_scratch_bytes(s->f, op);
    cr_assert_eq(bytes > 0, op->at.shared >= 0);
    if (bytes > 0) {
        int64_t from = op->at.shared, to = from + bytes;
        s->together += s->n > 0 && from < s->last_to && s->last_from < to;
        s->most = to > s->most ? to : s->most;
        s->last_from = from;
        s->last_to = to;
        s->n++;
    }
}

Test(staged, places_are_reused_and_neighbours_apart) {
    ir_env *e = ir_open();
    for (int i = 0; i < PROGRAMS; i++) {
        tk_module *m = lower(e, programs[i], NULL);
        scratches s = {.f = m->funcs.at[0]};
        tk_func_walk(s.f, each_scratch, &s);
        cr_assert_eq(m->shared, s.most, "program %d", i);
        bool apart = programs[i] == reductions || programs[i] == loop_with_two;
        cr_assert(!apart || s.together == 0, "program %d:\n%s", i, ir_text(e, m));
    }
    cr_assert_eq(lower(e, conversions, NULL)->shared, 2 * 16 * 64 * 4);
    ir_close(e);
}

// Two of 64 KB cannot lie apart without a cost: they share their place, with a barrier.
Test(staged, large_ops_share_a_place) {
    ir_env *e = ir_open();
    tk_module *m = lower(e,
                         "module tile warps=8\n\nkernel @k(%x: in f32[?, ?], %y: out f32[?, ?]) {\n"
                         "  %z = const 0 : i32\n"
                         "  %a = load %x[%z +: 128, %z +: 128] : f32[128, 128]\n"
                         "  %b = flip %a axis=0 : f32[128, 128]\n"
                         "  %s = reduce sum %b : f32\n  %t = broadcast %s : f32[128, 128]\n"
                         "  %c = mul %b, %t : f32[128, 128]\n"
                         "  %d = flip %c axis=0 : f32[128, 128]\n"
                         "  %q = add %c, %d : f32[128, 128]\n"
                         "  %e = flip %q axis=0 : f32[128, 128]\n"
                         "  store %y[%z +: 128, %z +: 128] = %e\n  return\n}\n",
                         NULL);
    const char *text = ir_text(e, m);
    cr_assert_eq(lines(text, "shared=0 "), 3, "%s", text);
    cr_assert(m->shared > 65536 && m->shared < 65536 + 4096, "%s", text);
    cr_assert_eq(lines(text, " barrier\n"), 1, "%s", text);
    ir_close(e);
}

Test(staged, too_much_is_refused_with_both_numbers) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile warps=32\n\nkernel @k(%x: in f64[?], %y: out f64[?]) {\n"
                              "  %z = const 0 : i32\n  %a = load %x[%z +: 32768] : f64[32768]\n"
                              "  %b = flip %a axis=0 : f64[32768]\n"
                              "  store %y[%z +: 32768] = %b\n  return\n}\n");
    cr_assert(!tk_lower(m, tk_target_find("sm_80"), NULL, NULL, &e->diags, NULL, false));
    cr_assert(strstr(ir_diags(e), "'flip' cannot be compiled for sm_80: it needs 262144 bytes of "
                                  "shared memory, of which sm_80 has 166912 for a program"),
              "%s", ir_diags(e));
    ir_close(e);
}

// ---- What the verifier refuses ------------------------------------------------------------------

#define LAYOUTS                                                                                    \
    "layout #0 = [64] reg 1 lane 2 4 8 16 32 warp\n"                                               \
    "layout #1 = [64] reg 32 lane 1 2 4 8 16 warp\n"                                               \
    "layout #2 = [64] reg lane 1 2 4 8 16 warp 32\n"                                               \
    "layout #3 = [64] reg lane 32 1 2 4 8 warp 16\n"
#define STAGED(body)                                                                               \
    "module staged shared=512\n" LAYOUTS                                                           \
    "\nkernel @k(%x: f32[64] #2, %y: f32[64] #3, %t: inout f32[?], %z: i32) {\n" body              \
    "  return\n}\n"

static void verifies(const char *text) {
    ir_env *e = ir_open();
    (void)ir_good(e, text);
    ir_close(e);
}

Test(staged, shared_memory_must_be_given_and_right) {
    verifies(STAGED("  %2 = convert %x shared=0 : f32[64] #3\n"));
    verifies(STAGED("  %2 = convert %x shared=256 : f32[64] #3\n"));
    ir_refuses(STAGED("  %2 = convert %x : f32[64] #3\n"), "256 bytes of shared memory are needed");
    ir_refuses(STAGED("  %2 = convert %x shared=-2 : f32[64] #3\n"), "shared memory at -2");
    ir_refuses(STAGED("  %2 = convert %x shared=8 : f32[64] #3\n"), "shared memory at 8");
    ir_refuses(STAGED("  %2 = convert %x shared=272 : f32[64] #3\n"), "and the program has 512");
    ir_refuses(STAGED("  %2 = convert %x shared=9223372036854775792 : f32[64] #3\n"),
               "and the program has 512");
    ir_refuses(STAGED("  %2 = convert %x shared=0 : f32[64] #2\n"), "where none is needed");
    ir_refuses(STAGED("  %2 = load %t[%z] : f32\n"), "16 bytes of shared memory are needed");
    ir_refuses("module tile\nkernel @k(%x: f32[64]) {\n  %1 = flip %x axis=0 shared=0 : f32[64]\n"
               "  return\n}\n",
               "where none is needed");
    ir_refuses("module tile shared=16\nkernel @k() {\n  return\n}\n",
               "shared memory at level tile");
    ir_refuses("module laid shared=-1\nkernel @k() {\n  return\n}\n", "-1 bytes of shared memory");
}

#define A         "  %2 = convert %x shared=0 : f32[64] #3\n"
#define B         "  %3 = convert %y shared=0 : f32[64] #2\n"
#define APART     "  %3 = convert %y shared=256 : f32[64] #2\n"
#define ST        "  store %t[%z +: 64] = %x\n"
#define LD        "  %5 = load %t[%z +: 64] : f32[64] #2\n"
#define FOR(body) "  for %k = %z to %z step %z {\n" body "    yield\n  }\n"
#define BAR       "  barrier\n"
static const char none[] = "no barrier between";

Test(staged, conflicts_need_a_barrier) {
    ir_refuses(STAGED(A B), none);
    verifies(STAGED(A BAR B));
    verifies(STAGED(A APART));
    ir_refuses(STAGED(FOR(A)), none);
    verifies(STAGED(FOR(A BAR)));
    verifies(STAGED(FOR(BAR A)));
    verifies(STAGED(FOR(A APART)));
    ir_refuses(STAGED(ST LD), none);
    verifies(STAGED(ST BAR LD));
    verifies(STAGED(ST A LD)); // the convert waits inside
    ir_refuses(STAGED(ST A ST LD), none);
    verifies(STAGED(LD "  %6 = load %t[%z +: 64] : f32[64] #2\n"));
    ir_refuses(STAGED(LD ST), none);
    ir_refuses(STAGED(ST ST), none);
    ir_refuses(STAGED(FOR(ST)), none);
    ir_refuses(STAGED(ST FOR(LD)), none);
    verifies(STAGED(ST FOR(BAR LD)));
    ir_refuses(STAGED(ST FOR(BAR) LD), none); // it may run no time
    ir_refuses(STAGED(FOR(LD ST)), none);
}

#define IF(yes, no)                                                                                \
    "  %c = const true : bool\n  if %c {\n" yes "    yield\n  } else {\n" no "    yield\n  }\n"
#define WHILE(cond, body)                                                                          \
    "  while {\n" cond "    %c = const true : bool\n    yield %c\n  } do () {\n" body              \
    "    yield\n  }\n"

Test(staged, on_every_way) {
    verifies(STAGED(ST IF(BAR, BAR) LD));
    ir_refuses(STAGED(ST IF(BAR, "") LD), none);
    ir_refuses(STAGED(ST IF("", BAR) LD), none);
    ir_refuses(STAGED(IF(ST, "") LD), none);
    verifies(STAGED(IF(ST, LD)));
    ir_refuses(STAGED(FOR(IF(ST, LD))), none);
    verifies(STAGED(FOR(IF(ST, LD) BAR)));
    verifies(STAGED(ST WHILE(BAR, "") LD));
    ir_refuses(STAGED(ST WHILE("", BAR) LD), none);
    ir_refuses(STAGED(WHILE("", ST) LD), none);
    ir_refuses(STAGED(WHILE(LD, ST)), none);
    verifies(STAGED(WHILE(BAR LD BAR, ST)));
    ir_refuses(STAGED(WHILE(LD BAR, ST)), none);
}

// An atomic that asks for an order orders other tensors too.
#define K2(body)                                                                                   \
    "module staged shared=16\n" LAYOUTS                                                            \
    "\nkernel @k(%x: f32[64] #2, %t: inout f32[?], %u: inout i32[?], %z: i32) {\n" body            \
    "  return\n}\n"
#define RMW(order) "  %4 = atomic_rmw add %u[%z], %z shared=0" order " : i32\n"

Test(staged, ordered_atomics) {
    verifies(K2(ST RMW("")));
    ir_refuses(K2(ST RMW(" order=release")), none);
    verifies(K2(ST BAR RMW(" order=release")));
    ir_refuses(K2(LD RMW(" order=acq_rel")), none);
    verifies(K2(RMW(" order=acquire") LD)); // it waits inside
    ir_refuses(K2(RMW("") "  %5 = atomic_rmw add %u[%z], %z shared=0 : i32\n"), none);
}

// ---- Random control flow ------------------------------------------------------------------------

typedef struct maker {
    tk_buf text;
    uint64_t random;
    unsigned left, names;
} maker;

static unsigned pick(maker *g, unsigned n) {
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->random >> 33) % n;
}

static void make_ops(maker *g, unsigned depth);

static void make_op(maker *g, unsigned depth) {
    const unsigned id = g->names++;
    const char *tensor = pick(g, 2) ? "t" : "u";
    switch (pick(g, depth < 4 ? 9 : 5)) {
    case 0:
        tk_buf_fmt(&g->text, "  %%a%u = load %%%s[%%z +: 64] : f32[64] #2\n", id, tensor);
        return;
    case 1:
        tk_buf_fmt(&g->text, "  store %%%s[%%z +: 64] = %%x\n", tensor);
        return;
    case 2:
        tk_buf_fmt(&g->text, "  %%a%u = load %%%s[%%z] : f32\n", id, tensor);
        return;
    case 3:
        tk_buf_fmt(&g->text, "  %%a%u = convert %%x : f32[64] #3\n", id);
        return;
    case 4:
        tk_buf_fmt(&g->text, "  %%a%u = flip %%w axis=0 : f32[4096] #4\n", id);
        return;
    case 5:
    case 6:
        tk_buf_fmt(&g->text, "  for %%a%u = %%z to %%z step %%z {\n", id);
        make_ops(g, depth + 1);
        break;
    case 7:
        tk_buf_str(&g->text, "  if %c {\n");
        make_ops(g, depth + 1);
        tk_buf_str(&g->text, "  yield\n  } else {\n");
        make_ops(g, depth + 1);
        break;
    case 8:
        tk_buf_str(&g->text, "  while {\n");
        make_ops(g, depth + 1);
        tk_buf_str(&g->text, "  yield %c\n  } do () {\n");
        make_ops(g, depth + 1);
        break;
    }
    tk_buf_str(&g->text, "  yield\n  }\n");
}

static void make_ops(maker *g, unsigned depth) {
    for (unsigned n = pick(g, 5); n > 0 && g->left > 0; n--) {
        g->left--;
        make_op(g, depth);
    }
}

static const char *random_program(ir_env *e, uint64_t seed) {
    maker g = {.random = seed, .left = 24};
    tk_buf_init(&g.text, &e->arena);
    tk_buf_str(&g.text,
               "module laid warps=2\n" LAYOUTS
               "layout #4 = [4096] reg 1 2 4 8 16 32 lane 64 128 256 512 1024 warp 2048\n\n"
               "kernel @k(%x: f32[64] #2, %w: f32[4096] #4, %t: inout f32[?], %u: inout f32[?], "
               "%z: i32, %c: bool) {\n");
    while (g.left > 0) {
        make_ops(&g, 0);
    }
    tk_buf_str(&g.text, "  return\n}\n");
    return tk_buf_text(&g.text);
}

Test(staged, any_control_flow_gets_the_barriers_that_it_needs) {
    unsigned all = 0;
    for (uint64_t seed = 0; seed < 800; seed++) {
        ir_env *e = ir_open();
        const char *program = random_program(e, seed);
        tk_module *m = ir_good(e, program);
        tk_pass_ctx c = {m, &e->arena, &e->diags, false, tk_target_find("sm_80"), NULL};
        tk_pass_share(&c);
        tk_pass_barrier(&c);
        const char *text = ir_text(e, m), *less, *why = ir_why(e, m);
        cr_assert(!why, "program %u: %s\n%s", (unsigned)seed, why ? why : "", text);
        for (unsigned k = 0; (less = without(e, text, k)); k++, all++) {
            tk_module *x = ir_parse(e, less);
            cr_assert(x && ir_why(e, x), "program %u: needless barrier %u:\n%s", (unsigned)seed, k,
                      text);
        }
        ir_close(e);
    }
    cr_assert(all > 1000, "%u", all);
}
