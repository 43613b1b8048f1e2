// SPDX-License-Identifier: Apache-2.0
// Rings and partitions on the executor: a loop of loads and products gives the same bits as built
// and lowered, whatever its number of iterations and slots; and what the verifier says of wrong
// ones.
#include "ir_env.h"
#include "lang/num_convert.h"
#include "lower/lower.h"
#include "tests/test_exec_run.h"

#include <criterion/criterion.h>

enum { TILE = 64, MOST = 6 * TILE + 1, MAPPED = TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_MAP };

// c = a b, of one program.
static const char *product(ir_env *e, int slots) {
    return tk_format(
        &e->arena,
        "module tile warps=4\n\nkernel @k(%%a: in f16[?, ?], %%b: in f16[?, ?], %%c: out f32[?, "
        "?]) {\n  %%z = const 0 : i32\n  %%to = dim %%a axis=1 : i32\n  %%by = const 64 : i32\n"
        "  %%none = const 0.0 : f32[64, 64]\n"
        "  %%sum = for %%k = %%z to %%to step %%by carry (%%acc = %%none) pipeline=%d : f32[64, "
        "64] "
        "{\n    %%x = load %%a[%%z +: 64, %%k +: 64] : f16[64, 64]\n"
        "    %%y = load %%b[%%k +: 64, %%z +: 64] : f16[64, 64]\n"
        "    %%next = dot %%x, %%y, %%acc : f32[64, 64]\n    yield %%next\n  }\n"
        "  store %%c[%%z +: 64, %%z +: 64] = %%sum\n  return\n}\n",
        slots);
}

static const char *lowered(ir_env *e, const char *text, const char *target,
                           const tk_tensor_facts *facts, const char *after) {
    tk_module *m = ir_good(e, text);
    const bool good = tk_lower(m, tk_target_find(target), facts, NULL, &e->diags, after, false);
    cr_assert(good, "%s", ir_diags(e));
    return ir_text(e, m);
}

static uint16_t a[TILE * MOST], b[MOST * TILE];

static void matrix(xrun *x, uint32_t i, void *data, int64_t rows, int64_t columns) {
    const int64_t dim[2] = {rows, columns};
    xrun_tensor(x, i, data, 2, dim, NULL);
}

static void run(const char *text, int64_t k, float *c) {
    static xrun x;
    cr_assert(xrun_open(&x, text), "%s", text);
    matrix(&x, 0, a, TILE, k);
    matrix(&x, 1, b, k, TILE);
    matrix(&x, 2, c, TILE, TILE);
    const tk_exec_code code = xrun_go(&x);
    cr_assert(code == TK_EXEC_OK, "code %d\n%s", (int)code, text);
    xrun_close(&x);
}

// By way of the levels: as fetched, laid out, staged and taken apart.
static void same(const char *target, tk_tensor_facts facts, int slots, const char *holds) {
    static const char *const after[] = {"ring", "layout", "barrier", NULL};
    const tk_tensor_facts all[3] = {facts, facts, facts};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        ir_env *e = ir_open();
        const char *built = product(e, slots), *low = lowered(e, built, target, all, after[i]);
        cr_assert(strstr(low, after[i] ? "fetch" : holds), "%s", low);
        for (int trips = 0; trips <= slots + 1 && trips < 6; trips++) {
            for (int more = -1; more <= 1; more++) {
                static float want[TILE * TILE], got[TILE * TILE];
                const int64_t k = trips * TILE + more > 0 ? trips * TILE + more : 0;
                memset(got, 0xff, sizeof got);
                run(built, k, want);
                run(low, k, got);
                cr_assert(memcmp(want, got, sizeof got) == 0, "%s, %d slots, k %lld\n%s", target,
                          slots, (long long)k, low);
            }
        }
        ir_close(e);
    }
}

static void fill(void) {
    for (int i = 0; i < TILE * MOST; i++) {
        a[i] = tk_f32_to_f16((float)(i * 7 % 11 - 5));
        b[i] = tk_f32_to_f16((float)(i * 5 % 13 - 6));
    }
}

Test(ring, loads_ahead_change_no_bit) {
    fill();
    for (int slots = 2; slots <= 4; slots++) {
        same("sm_80", TK_FACT_UNIT | TK_FACT_ALIGNED, slots, "fetch");
        same("sm_90a", TK_FACT_UNIT | TK_FACT_ALIGNED, slots, "fetch");
        same("sm_90a", MAPPED, slots, "partition");
        same("sm_80", TK_FACT_UNIT, slots, "how=begin");
        same("sm_90a", TK_FACT_UNIT, slots, "producers=8");
        same("sm_90a", 0, slots, "producers=8");
    }
}

// ---- Wrong ones ---------------------------------------------------------------------------------

#define HEAD "module tile\n\nkernel @k(%x: in f32[?], %y: inout f32[?]) {\n  %z = const 0 : i32\n"
#define RING "  %r = ring slots=2 : f32[8]\n"
#define END  "  return\n}\n"

static void wrong(const char *text, const char *why) {
    ir_env *e = ir_open();
    tk_module *m = ir_parse(e, text);
    cr_assert(m, "%s%s", text, ir_diags(e));
    const char *said = ir_why(e, m);
    cr_expect(said && strstr(said, why), "%s  %s\n  %s", text, said ? said : "nothing", why);
    ir_close(e);
}

Test(ring, the_verifier_refuses_what_is_none) {
    wrong(HEAD "  %r = ring slots=0 : f32[8]\n" END, "0 slots");
    wrong(HEAD "  %r = ring slots=2 : f32\n" END, "scalars");
    wrong(HEAD "  %v = const 1.0 : f32[8]\n  %t = take %v : f32[8]\n" END, "no ring");
    wrong(HEAD RING "  fetch %y[%z +: 8], %r\n" END, "may be written");
    wrong(HEAD RING "  fetch %x[%z +: 4], %r\n" END, "the value");
    wrong(HEAD RING "  %i = iota : i32[8]\n  fetch %x[tile %i], %r\n" END, "is a tile");
    wrong(HEAD RING "  %n = neg %r : f32[8]\n" END, "is a ring");
    wrong(HEAD RING "  fetch %x[%z +: 8], %r how=begin\n" END, "no fetch through registers");
    wrong(HEAD RING "  %t = take %r : f32[8]\n  release %r\n  %n = neg %t : f32[8]\n" END,
          "after it is released");
    wrong(HEAD "  %o = const 1 : i32\n  for %i = %z to %o step %o {\n    %r = ring slots=2 : "
               "f32[8]\n    yield\n  }\n" END,
          "not in the kernel's body");
}

Test(ring, the_verifier_refuses_clusters_that_are_none) {
#define CLUSTER(n)                                                                                 \
    "module staged warps=4 shared=2048 cluster=" n "\nlayout #0 = [32] shared 1 2 4 8 16\n\n"      \
    "kernel @k(%x: in f32[?], %y: inout f32[?]) {\n  %z = const 0 : i32\n"                         \
    "  %r = ring slots=2 cluster=" n " shared=0 : f32[32] #0\n"
#define FETCH "fetch %x[%z +: 32], %r"
#define SIDES(fetch)                                                                               \
    "  partition producers=4 {\n    " fetch "\n    yield\n  } else {\n    yield\n  }\n"
    wrong(HEAD "  %r = ring slots=2 cluster=2 : f32[8]\n" END, "a cluster of 2");
    wrong(CLUSTER("3") SIDES(FETCH " how=tensor") END, "a cluster of 3");
    wrong(CLUSTER("-2") SIDES(FETCH " how=tensor") END, "a cluster of -2");
    wrong(CLUSTER("2") "  " FETCH " how=tensor\n" END, "no partition");
    wrong(CLUSTER("2") SIDES(FETCH) END, "by tensor copies alone");
    ir_env *e = ir_open();
    ir_good(e, CLUSTER("2") SIDES(FETCH " how=tensor") END);
    ir_close(e);
}

// More than there is room for, or that never comes, ends the program.
Test(ring, who_waits_for_ever_is_told) {
    static const char *const body[] = {
        "  %t = take %r : f32[8]\n",
        "  release %r\n",
        "  fetch %x[%z +: 8], %r\n  fetch %x[%z +: 8], %r\n  fetch %x[%z +: 8], %r\n",
    };
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        static xrun x;
        float one[8] = {0};
        char text[1024];
        (void)snprintf(text, sizeof text, "%s%s%s%s", HEAD, RING, body[i], END);
        cr_assert(xrun_open(&x, text));
        xrun_vector(&x, 0, one, 8);
        xrun_vector(&x, 1, one, 8);
        cr_expect(xrun_go(&x) == TK_EXEC_STUCK);
        xrun_close(&x);
    }
}
