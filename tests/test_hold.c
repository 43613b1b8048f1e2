// SPDX-License-Identifier: Apache-2.0
// Which tiles that are read again shared memory holds, and how many iterations; which it does not
// hold, and why; what the verifier says of wrong pairs and of what is put where something is held.
#include "ir/hold.h"
#include "ir_env.h"
#include "lower/lower.h"
#include "lower/target.h"

#include <criterion/criterion.h>
#include <string.h>

// ---- The pass -----------------------------------------------------------------------------------

// Kernel of x, z: in f32[?, ?], y: out f32[?, ?], v: inout f32[?, ?]. %i is the program, %k 0, %s
// 1024, %to x's columns, %f 0.0; a first loop adds up x's tiles of 1024 from column %j on.
#define HEAD(attrs)                                                                                \
    "module tile " attrs "\n\nkernel @k(%x: in f32[?, ?], %z: in f32[?, ?], %y: out f32[?, ?], "   \
    "%v: inout f32[?, ?]) {\n  grid {\n    %m = dim %y axis=0 : i32\n    yield %m\n  }\n"          \
    "  %i = program_id axis=0 : i32\n  %k = const 0 : i32\n  %s = const 1024 : i32\n"              \
    "  %to = dim %x axis=1 : i32\n  %f = const 0.0 : f32\n  %five = const 5 : i32\n"               \
    "  %less = sub %to, %five : i32\n  %o = const 7.0 : f32[1024]\n"                               \
    "  %e0 = iota : i32[1024]\n  %e1 = broadcast %less : i32[1024]\n"                              \
    "  %q = lt %e0, %e1 : bool[1024]\n"
#define ADD(load)                                                                                  \
    "  %sum = for %j = %k to %to step %s carry (%a = %f) : f32 {\n" load                           \
    "    %r = reduce sum %t : f32\n    %b = add %a, %r : f32\n    yield %b\n  }\n"
#define WARPS "warps=4"
#define FIRST ADD("    %t = load %x[%i, %j +: 1024] : f32[1024]\n")
#define COPY(from, to, step, load)                                                                 \
    "  for %h = " from " to " to " step " step " {\n" load                                         \
    "    %c = broadcast %sum : f32[1024]\n    %d = mul %u, %c : f32[1024]\n"                       \
    "    store %y[%i, %h +: 1024] = %d\n    yield\n  }\n"
#define AGAIN "    %u = load %x[%i, %h +: 1024] : f32[1024]\n"
#define TAIL  "  return\n}\n"

typedef struct found {
    int64_t hold, held; // the last of each
    unsigned holders, takers;
} found;

static void find(void *user, tk_op *op) {
    found *f = user;
    if (op->code == TK_OP_LOAD) {
        f->hold = op->at.hold ? op->at.hold : f->hold;
        f->held = op->at.held ? op->at.held : f->held;
        f->holders += op->at.hold > 0;
        f->takers += op->at.held > 0;
    }
}

static tk_module *held(ir_env *e, const char *text, const char *arch, found *f) {
    tk_module *m = ir_good(e, text);
    cr_assert(tk_lower(m, tk_target_find(arch), NULL, NULL, &e->diags, NULL, false), "%s",
              ir_diags(e));
    const char *why = ir_why(e, m);
    cr_assert(!why, "%s\n%s", why, ir_text(e, m));
    *f = (found){0, 0, 0, 0};
    tk_func_walk(m->funcs.at[0], find, f);
    return m;
}

static void expect(const char *text, const char *arch, int64_t hold, unsigned holders,
                   unsigned takers) {
    ir_env *e = ir_open();
    found f;
    const tk_module *m = held(e, text, arch, &f);
    cr_expect_eq(f.hold, hold, "%lld iterations, not %lld:\n%s", (long long)f.hold, (long long)hold,
                 ir_text(e, m));
    cr_expect_eq(f.holders, holders, "%s", ir_text(e, m));
    cr_expect_eq(f.takers, takers, "%s", ir_text(e, m));
    cr_expect_eq(f.held, takers ? holders : 0, "%s", ir_text(e, m));
    ir_close(e);
}

// Programs of 128 threads: eight together have 1024, and 28 KB each on sm_90a less what a reduction
// takes. A tile has 4 KB.
Test(hold, as_many_iterations_as_there_is_room_for) {
    const char *text = HEAD(WARPS) FIRST COPY("%k", "%to", "%s", AGAIN) TAIL;
    expect(text, "sm_90a", 6, 1, 1);
    expect(text, "sm_80", 4, 1, 1);
    expect(text, "sm_89", 2, 1, 1);
    expect(HEAD("warps=32") FIRST COPY("%k", "%to", "%s", AGAIN) TAIL, "sm_90a", 56, 1, 1);
    expect(HEAD("warps=1") FIRST COPY("%k", "%to", "%s", AGAIN) TAIL, "sm_90a", 1, 1, 1);
    expect(HEAD("warps=4 require=max_shared(9000)") FIRST COPY("%k", "%to", "%s", AGAIN) TAIL,
           "sm_90a", 2, 1, 1);
}

Test(hold, no_more_than_there_are) {
    expect(
        HEAD(WARPS) "  %end = const 3000 : i32\n"
                    "  %sum = for %j = %k to %end step %s carry (%a = %f) : f32 {\n"
                    "    %t = load %x[%i, %j +: 1024] : f32[1024]\n    %r = reduce sum %t : f32\n"
                    "    %b = add %a, %r : f32\n    yield %b\n  }\n" COPY("%k", "%end", "%s", AGAIN)
                        TAIL,
        "sm_90a", 3, 1, 1);
}

Test(hold, what_several_loops_read_is_held_once) {
    const char *twice = FIRST COPY(
        "%k", "%to", "%s",
        AGAIN) "  for %g = %k to %to step %s {\n    %w = load %x[%i, %g +: 1024] : f32[1024]\n"
               "    store %y[%i, %g +: 1024] = %w\n    yield\n  }\n";
    ir_env *e = ir_open();
    const char *text = tk_format(&e->arena, "%s%s%s", HEAD(WARPS), twice, TAIL);
    expect(text, "sm_90a", 6, 1, 2);
    // In a branch, too, and to where the loop behind runs on.
    expect(HEAD(WARPS) FIRST "  %p = gt %sum, %f : bool\n  if %p {\n" COPY(
               "%k", "%less", "%s", AGAIN) "    yield\n  } else {\n    yield\n  }\n" TAIL,
           "sm_90a", 6, 1, 1);
    ir_close(e);
}

Test(hold, several_tensors_share_the_room) {
    expect(HEAD(WARPS) ADD("    %t1 = load %x[%i, %j +: 1024] : f32[1024]\n"
                           "    %t2 = load %z[%i, %j +: 1024] : f32[1024]\n"
                           "    %t = add %t1, %t2 : f32[1024]\n")
               COPY("%k", "%to", "%s",
                    "    %u1 = load %x[%i, %h +: 1024] : f32[1024]\n"
                    "    %u2 = load %z[%i, %h +: 1024] : f32[1024]\n"
                    "    %u = mul %u1, %u2 : f32[1024]\n") TAIL,
           "sm_90a", 3, 2, 2);
}

// The loops' steps and beginnings, the tensor, the place, the shape, the values for what is
// outside, a mask; what may be written.
Test(hold, what_is_not_the_same_is_not_held) {
    const char *const second[] = {
        COPY("%s", "%to", "%s", AGAIN),
        COPY("%k", "%to", "%five", AGAIN),
        COPY("%less", "%to", "%s", AGAIN),
        COPY("%k", "%to", "%s", "    %u = load %z[%i, %h +: 1024] : f32[1024]\n"),
        COPY("%k", "%to", "%s", "    %u = load %x[%k, %h +: 1024] : f32[1024]\n"),
        COPY("%k", "%to", "%s",
             "    %n = add %h, %five : i32\n    %u = load %x[%i, %n +: 1024] : f32[1024]\n"),
        COPY("%k", "%to", "%s",
             "    %n = mul %h, %five : i32\n    %u = load %x[%i, %n +: 1024] : f32[1024]\n"),
        COPY("%k", "%to", "%s", "    %u = load %x[%i, %h +: 1024] else %o : f32[1024]\n"),
        COPY("%k", "%to", "%s", "    %u = load %x[%i, %h +: 1024] mask %q : f32[1024]\n"),
        COPY("%k", "%to", "%s",
             "    %w = load %x[%i, %h +: 512] : f32[512]\n"
             "    %u = concat %w, %w axis=0 : f32[1024]\n"),
    };
    ir_env *e = ir_open();
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        expect(tk_format(&e->arena, "%s%s%s%s", HEAD(WARPS), FIRST, second[i], TAIL), "sm_90a", 0,
               0, 0);
    }
    ir_close(e);
    expect(HEAD(WARPS) ADD("    %t = load %v[%i, %j +: 1024] : f32[1024]\n")
               COPY("%k", "%to", "%s", "    %u = load %v[%i, %h +: 1024] : f32[1024]\n") TAIL,
           "sm_90a", 0, 0, 0);
    // The second of two in one loop.
    expect(HEAD(WARPS) ADD("    %t = load %x[%i, %j +: 1024] : f32[1024]\n"
                           "    %e = load %x[%i, %j +: 1024] else %o : f32[1024]\n") TAIL,
           "sm_90a", 0, 0, 0);
}

Test(hold, places_that_are_the_same_by_other_ways) {
    expect(HEAD(WARPS)
               ADD("    %n = add %j, %five : i32\n    %t = load %x[%i, %n +: 1024] : f32[1024]\n")
                   COPY("%k", "%less", "%s",
                        "    %p = add %five, %h : i32\n"
                        "    %u = load %x[%i, %p +: 1024] : f32[1024]\n") TAIL,
           "sm_90a", 6, 1, 1);
}

Test(hold, notes_say_why_not) {
    ir_env *e = ir_open();
    found f;
    const tk_module *m =
        held(e, HEAD("warps=4 require=max_shared(64)") FIRST COPY("%k", "%to", "%s", AGAIN) TAIL,
             "sm_90a", &f);
    const tk_note_rec *note = ir_note(m, "held");
    cr_assert(note && note->verdict == TK_NOTE_MISSED && strstr(note->reason, "no room"));
    cr_assert_eq(f.holders + f.takers, 0);
    ir_close(e);
}

// ---- The verifier -------------------------------------------------------------------------------

#define LAYOUTS                                                                                    \
    "layout #0 = [64] reg lane 1 2 4 8 16 warp 32\n"                                               \
    "layout #1 = [64] reg lane 32 1 2 4 8 warp 16\n"
#define KERNEL(body)                                                                               \
    "module staged warps=2 shared=1024\n" LAYOUTS                                                  \
    "\nkernel @k(%x: in f32[?], %w: in f32[?], %y: out f32[?], %v: inout f32[?], %n: i32) {\n"     \
    "  %z = const 0 : i32\n  %s = const 64 : i32\n  %o = const true : bool[64] #0\n" body          \
    "  return\n}\n"
#define LOOP(i, from, step, load)                                                                  \
    "  for %" i " = " from " to %n step " step " {\n" load "    yield\n  }\n"
#define HOLD       LOOP("i", "%z", "%s", "    %a = load %x[%i +: 64] hold=2 shared=0 : f32[64] #0\n")
#define TAKE(load) LOOP("j", "%z", "%s", load)
#define HELD       "    %b = load %x[%j +: 64] held=1 : f32[64] #0\n"

Test(hold, the_verifier_knows_pairs) {
    ir_env *e = ir_open();
    const char *good = KERNEL(HOLD TAKE(HELD));
    cr_assert_str_eq(ir_text(e, ir_good(e, ir_text(e, ir_good(e, good)))),
                     ir_text(e, ir_good(e, good)));
    ir_close(e);
    ir_refuses(KERNEL(TAKE(HELD)), "no load holds what it takes");
    ir_refuses(KERNEL(TAKE(HELD) HOLD), "not left by a loop in front of its own");
    ir_refuses(KERNEL(HOLD TAKE("    %b = load %x[%j +: 64] held=2 : f32[64] #0\n")),
               "no load holds what it takes");
    ir_refuses(KERNEL(HOLD TAKE("    %b = load %w[%j +: 64] held=1 : f32[64] #0\n")),
               "what it takes is another tile");
    ir_refuses(KERNEL(HOLD TAKE("    %b = load %x[%j +: 64] held=1 : f32[64] #1\n")),
               "what it takes is in another layout");
    ir_refuses(KERNEL(HOLD LOOP("j", "%z", "%z", HELD)), "counts by other numbers");
    ir_refuses(KERNEL(HOLD LOOP("j", "%s", "%s", HELD)), "counts by other numbers");
}

Test(hold, the_verifier_knows_what_may_be_held) {
    ir_refuses(KERNEL("  %a = load %x[%z +: 64] hold=1 shared=0 : f32[64] #0\n"),
               "not read by a loop");
    ir_refuses(KERNEL(LOOP("i", "%z", "%s", "    %a = load %x[%i] hold=1 shared=0 : f32\n")),
               "only a tile without a mask");
    ir_refuses(KERNEL(LOOP("i", "%z", "%s",
                           "    %a = load %x[%i +: 64] mask %o hold=1 shared=0 : f32[64] #0\n")),
               "only a tile without a mask");
    ir_refuses(
        KERNEL(LOOP("i", "%z", "%s", "    %a = load %v[%i +: 64] hold=1 shared=0 : f32[64] #0\n")),
        "only a tile without a mask");
    ir_refuses(
        KERNEL(LOOP("i", "%z", "%s", "    %a = load %x[%i +: 64] hold=-1 shared=0 : f32[64] #0\n")),
        "-1 iterations are held");
    ir_refuses(KERNEL(LOOP("i", "%z", "%s",
                           "    %a = load %x[%i +: 64] hold=65537 shared=0 : f32[64] #0\n")),
               "65537 iterations are held");
    ir_refuses(
        KERNEL(LOOP("i", "%z", "%s", "    %a = load %x[%i +: 64] hold=9 shared=0 : f32[64] #0\n")),
        "2304 bytes of shared memory at 0, and the program has 1024");
    ir_refuses(
        KERNEL(HOLD TAKE("    %b = load %x[%j +: 64] hold=1 held=1 shared=512 : f32[64] #0\n")),
        "it holds what it takes");
    ir_refuses("module tile\n\nkernel @k(%x: in f32[?], %n: i32) {\n  for %i = %n to %n step %n {\n"
               "    %a = load %x[%i +: 64] hold=1 : f32[64]\n    yield\n  }\n  return\n}\n",
               "held at level tile");
}

// Neither another loop's tiles nor what an op works with.
Test(hold, the_verifier_knows_that_nothing_else_is_there) {
#define MOVE(at) "    %c = convert %a shared=" at " : f32[64] #1\n"
#define MOVED(at)                                                                                  \
    LOOP("i", "%z", "%s", "    %a = load %x[%i +: 64] hold=2 shared=0 : f32[64] #0\n" MOVE(at))
    ir_env *e = ir_open();
    (void)ir_good(e, KERNEL(LOOP("i", "%z", "%s",
                                 "    %a = load %x[%i +: 64] hold=2 shared=256 : f32[64] #0\n"
                                 "    barrier\n" MOVE("0"))));
    ir_close(e);
    ir_refuses(KERNEL(MOVED("256")), "something else is put where it holds tiles");
    ir_refuses(KERNEL(HOLD LOOP("j", "%z", "%s",
                                "    %b = load %w[%j +: 64] hold=1 shared=496 : f32[64] #0\n")),
               "something else is put where it holds tiles");
}
