// SPDX-License-Identifier: Apache-2.0
// Passes: what each makes of small modules, what it must leave alone, and the driver around them.
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "module tile\n"                                                                                \
    "kernel @k(%x: in f32[?, 64], %y: out f32[?, 64], %z: inout i32[?], %i: i32, %j: i32, %f: "    \
    "f32, "                                                                                        \
    "%c: bool, %v: f32[4, 8], %n: i32[8], %b: i8) {\n"
#define TAIL "\n  return\n}\n"

// `after` is text too, so that numbers of values do not matter.
static void becomes(const char *pass, const char *before, const char *after) {
    ir_env *e = ir_open();
    const char *got = ir_after(e, pass, tk_format(&e->arena, "%s%s%s", HEAD, before, TAIL));
    const char *want = ir_text(e, ir_good(e, tk_format(&e->arena, "%s%s%s", HEAD, after, TAIL)));
    cr_assert_str_eq(got, want, "%s: %s\ngave\n%s\nnot\n%s", pass, before, got, want);
    ir_close(e);
}

static void stays(const char *pass, const char *body) { becomes(pass, body, body); }

// ---- fold ---------------------------------------------------------------------------------------

// An expression of one result and what it becomes: shown by storing it.
static void folds(const char *expression, const char *result) {
    ir_env *e = ir_open();
    becomes("fold", tk_format(&e->arena, "%s\nprint %%r", expression),
            tk_format(&e->arena, "%s", result));
    ir_close(e);
}

Test(fold, constants) {
    folds("%1 = const 2 : i32\n%2 = const 3 : i32\n%r = mul %1, %2 : i32",
          "%1 = const 2 : i32\n%2 = const 3 : i32\n%r = const 6 : i32\nprint %r");
    folds("%1 = const 1.5 : f32[8]\n%r = add %1, %1 : f32[8]",
          "%1 = const 1.5 : f32[8]\n%r = const 3.0 : f32[8]\nprint %r");
    folds("%1 = const 300 : i32\n%r = cast %1 : u8",
          "%1 = const 300 : i32\n%r = const 44 : u8\nprint %r");
    folds("%1 = const 2 : i32\n%2 = broadcast %1 : i32[8]\n%r = reshape %2 : i32[2, 4]",
          "%1 = const 2 : i32\n%2 = const 2 : i32[8]\n%r = const 2 : i32[2, 4]\nprint %r");
    stays("fold", "%1 = const 1.0 : f32\n%r = exp %1 : f32\nprint %r"); // an error bound
}

Test(fold, integer_identities) {
#define ZERO "%0 = const 0 : i32\n"
#define ONE  "%0 = const 1 : i32\n"
#define ONES "%0 = const -1 : i32\n"
    static const char *const same[] = {
        ZERO "%r = add %i, %0 : i32", ZERO "%r = add %0, %i : i32", ZERO "%r = sub %i, %0 : i32",
        ZERO "%r = or %i, %0 : i32",  ZERO "%r = xor %0, %i : i32", ZERO "%r = shl %i, %0 : i32",
        ZERO "%r = shr %i, %0 : i32", ONE "%r = mul %i, %0 : i32",  ONE "%r = mul %0, %i : i32",
        ONE "%r = div %i, %0 : i32",  ONE "%r = cdiv %i, %0 : i32", ONES "%r = and %i, %0 : i32",
        ZERO "%r = rem %i, %0 : i32", // by 0 gives the dividend
    };
    static const char *const zero[] = {
        ZERO "%r = mul %i, %0 : i32", ZERO "%r = mul %0, %i : i32", ZERO "%r = and %i, %0 : i32",
        ZERO "%r = div %i, %0 : i32", ZERO "%r = rem %0, %i : i32", ZERO "%r = shl %0, %i : i32",
    };
    ir_env *e = ir_open();
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const char *stop = strchr(same[i], '\n');
        folds(same[i], tk_format(&e->arena, "%.*s\nprint %%i", (int)(stop - same[i]), same[i]));
    }
    for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++) {
        folds(zero[i], ZERO "%r = const 0 : i32\nprint %r");
    }
    ir_close(e);
    folds("%r = sub %i, %i : i32", "%r = const 0 : i32\nprint %r");
    folds("%r = xor %n, %n : i32[8]", "%r = const 0 : i32[8]\nprint %r");
    folds("%r = le %i, %i : bool", "%r = const true : bool\nprint %r");
    folds("%r = ne %i, %i : bool", "%r = const false : bool\nprint %r");
    folds("%r = max %i, %i : i32", "print %i");
    folds("%0 = const true : bool\n%r = and %c, %0 : bool", "%0 = const true : bool\nprint %c");
    folds("%0 = const true : bool\n%r = or %0, %c : bool",
          "%0 = const true : bool\n%r = const true : bool\nprint %r");
}

Test(fold, of_floats_only_what_keeps_every_bit) {
    stays("fold", "%0 = const 0.0 : f32\n%r = add %f, %0 : f32\nprint %r"); // -0 + 0 is 0
    stays("fold", "%0 = const 1.0 : f32\n%r = mul %f, %0 : f32\nprint %r"); // a signalling NaN
    stays("fold", "%0 = const 1.0 : f32\n%r = div %f, %0 : f32\nprint %r");
    stays("fold", "%0 = const 0.0 : f32\n%r = mul %f, %0 : f32\nprint %r");
    stays("fold", "%r = sub %f, %f : f32\nprint %r");
    stays("fold", "%r = eq %f, %f : bool\nprint %r");
    folds("%1 = neg %f : f32\n%r = neg %1 : f32", "%1 = neg %f : f32\nprint %f");
    folds("%1 = abs %f : f32\n%r = abs %1 : f32", "%1 = abs %f : f32\nprint %1");
}

Test(fold, choices) {
    folds("%1 = const true : bool\n%r = select %1, %f, %f : f32",
          "%1 = const true : bool\nprint %f");
    folds("%1 = const false : bool[8]\n%2 = const 1 : i32[8]\n%r = select %1, %2, %n : i32[8]",
          "%1 = const false : bool[8]\n%2 = const 1 : i32[8]\nprint %n");
    folds("%r = select %c, %f, %f : f32", "print %f");
    becomes("fold",
            "%1 = const false : bool\n%r = if %1 : i32 {\nstore %z[%i] = %i\nyield %i\n} else {\n"
            "%2 = add %i, %j : i32\nstore %z[%i] = %2\nyield %2\n}\nprint %r",
            "%1 = const false : bool\n%2 = add %i, %j : i32\nstore %z[%i] = %2\nprint %2");
    becomes("fold", // the branch itself folds, and what follows sees it
            "%1 = const true : bool\n%r = if %1 : bool {\n%2 = not %1 : bool\nyield %2\n} else "
            "{\nyield %c\n}\n"
            "if %r {\nprint %i\nyield\n} else {\nprint %j\nyield\n}",
            "%1 = const true : bool\n%2 = const false : bool\nprint %j");
}

Test(fold, loops) {
    becomes("fold",
            "%0 = const 5 : i32\n%1 = const 5 : i32\n%r = for %a = %0 to %1 step %i carry (%q = "
            "%f) : f32 {\n"
            "print %a\nyield %q\n}\nprint %r",
            "%0 = const 5 : i32\n%1 = const 5 : i32\nprint %f");
    becomes("fold", "%0 = const 0 : i32\nfor %a = %i to %j step %0 {\nprint %a\nyield\n}",
            "%0 = const 0 : i32");
    becomes(
        "fold",
        "%0 = const 0 : i32\n%1 = const 9 : i32\n%2 = const -1 : i32\nfor %a = %0 to %1 step %2 {\n"
        "print %a\nyield\n}",
        "%0 = const 0 : i32\n%1 = const 9 : i32\n%2 = const -1 : i32");
    stays("fold", "%0 = const 0 : i32\n%1 = const 9 : i32\n%2 = const -1 : i32\n"
                  "for %a = %1 to %0 step %2 {\nprint %a\nyield\n}");
    stays("fold", "%0 = const 4000000000 : u32\n%1 = const 4000000001 : u32\n%2 = const 1 : u32\n"
                  "for %a = %0 to %1 step %2 {\nprint %a\nyield\n}");
    becomes("fold",
            "%0 = const false : bool\n%r = while carry (%a = %i) : i32 {\nprint %a\nyield %0\n} do "
            "(%q) {\n"
            "yield %q\n}\nprint %r",
            "%0 = const false : bool\nprint %i\nprint %i");
    stays("fold", "%r = while carry (%a = %c) : bool {\nyield %a\n} do (%q) {\n%1 = not %q : "
                  "bool\nyield %1\n}\n"
                  "print %r");
}

Test(fold, a_dropped_loop_that_asked_for_a_pipeline_is_noted) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(
        e, HEAD "%0 = const 0 : i32\nfor %a = %i to %i step %j pipeline=3 {\nyield\n}" TAIL);
    cr_assert(ir_run(e, "fold", m));
    const tk_note_rec *r = ir_note(m, "loop-dropped");
    cr_assert(r && r->verdict == TK_NOTE_INFO && strstr(r->reason, "pipeline"));
    ir_close(e);
}

Test(fold, shapes) {
    folds("%1 = broadcast %f : f32[8]\n%r = broadcast %1 : f32[4, 8]",
          "%1 = broadcast %f : f32[8]\n%r = broadcast %f : f32[4, 8]\nprint %r");
    folds("%r = broadcast %v : f32[4, 8]", "print %v");
    folds("%1 = reshape %v : f32[32]\n%r = reshape %1 : f32[8, 4]",
          "%1 = reshape %v : f32[32]\n%r = reshape %v : f32[8, 4]\nprint %r");
    folds("%1 = reshape %v : f32[32]\n%r = reshape %1 : f32[4, 8]",
          "%1 = reshape %v : f32[32]\nprint %v");
    folds("%r = permute %v perm=[0, 1] : f32[4, 8]", "print %v");
    folds("%1 = permute %v perm=[1, 0] : f32[8, 4]\n%r = permute %1 perm=[1, 0] : f32[4, 8]",
          "%1 = permute %v perm=[1, 0] : f32[8, 4]\nprint %v");
    folds("%1 = flip %v axis=1 : f32[4, 8]\n%r = flip %1 axis=1 : f32[4, 8]",
          "%1 = flip %v axis=1 : f32[4, 8]\nprint %v");
    folds("%r = slice %v axis=1 : f32[4, 8]", "print %v");
    folds("%r = dim %x axis=1 : i32", "%r = const 64 : i32\nprint %r");
    stays("fold", "%r = dim %x axis=0 : i32\nprint %r");
    stays("fold", "%1 = flip %v axis=0 : f32[4, 8]\n%r = flip %1 axis=1 : f32[4, 8]\nprint %r");
}

Test(fold, casts) {
    folds("%r = cast %f : f32", "print %f");
    folds("%1 = cast %b : i32\n%r = cast %1 : i8", "%1 = cast %b : i32\nprint %b");
    folds("%1 = cast %b : i32\n%r = cast %1 : i64",
          "%1 = cast %b : i32\n%r = cast %b : i64\nprint %r");
    folds("%1 = cast %i : i16\n%r = cast %1 : i8",
          "%1 = cast %i : i16\n%r = cast %i : i8\nprint %r");
    folds("%1 = cast %c : u8\n%r = cast %1 : bool", "%1 = cast %c : u8\nprint %c");
    stays("fold", "%1 = cast %i : i8\n%r = cast %1 : i32\nprint %r");
    stays("fold", "%1 = cast %b : u16\n%r = cast %1 : u32\nprint %r"); // -1 gives 65535
    stays("fold", "%1 = cast %f : f64\n%r = cast %1 : f32\nprint %r"); // a signalling NaN
    folds("%1 = bitcast %f : u32\n%r = bitcast %1 : f32", "%1 = bitcast %f : u32\nprint %f");
}

Test(fold, masks_and_asserts) {
    becomes("fold",
            "%1 = const true : bool\n%0 = const 0.0 : f32\n%r = load %x[%i, %j] mask %1 else %0 : "
            "f32\nprint %r",
            "%1 = const true : bool\n%0 = const 0.0 : f32\n%r = load %x[%i, %j] : f32\nprint %r");
    becomes("fold", "%1 = const false : bool\n%r = load %x[%i, %j] mask %1 else %f : f32\nprint %r",
            "%1 = const false : bool\nprint %f");
    becomes("fold", "%1 = const false : bool\nstore %z[%i] = %i mask %1",
            "%1 = const false : bool");
    stays("fold",
          "%1 = const false : bool\n%r = atomic_rmw add %z[%i], %i mask %1 order=release : i32");
    stays("fold", "%0 = const -0.0 : f32\n%r = load %x[%i, %j] else %0 : f32\nprint %r");
    becomes("fold", "%1 = const true : bool\nassert %1 text=\"fine\"\nassume %1",
            "%1 = const true : bool");
    stays("fold", "%1 = const false : bool\nassert %1");
}

// ---- cse ----------------------------------------------------------------------------------------

Test(cse, equal_ops_become_one) {
    becomes("cse", "%1 = add %i, %j : i32\n%2 = add %i, %j : i32\n%3 = mul %1, %2 : i32\nprint %3",
            "%1 = add %i, %j : i32\n%3 = mul %1, %1 : i32\nprint %3");
    becomes("cse", "%1 = program_id axis=0 : i32\n%2 = program_id axis=0 : i32\nprint %1, %2",
            "%1 = program_id axis=0 : i32\nprint %1, %1");
    becomes("cse",
            "%1, %2 = topk %n axis=0 : i32[2], i32[2]\n%3, %4 = topk %n axis=0 : i32[2], "
            "i32[2]\nprint %3, %4",
            "%1, %2 = topk %n axis=0 : i32[2], i32[2]\nprint %1, %2");
    becomes("cse",
            "%1 = neg %i : i32\nif %c {\n%2 = neg %i : i32\nprint %2\nyield\n} else {\nyield\n}",
            "%1 = neg %i : i32\nif %c {\nprint %1\nyield\n} else {\nyield\n}");
}

Test(cse, what_differs_stays) {
    stays("cse", "%1 = add %f, %f : f32\n%2 = add %f, %f fast=contract : f32\nprint %1, %2");
    stays("cse", "%1 = const 0.0 : f32\n%2 = const -0.0 : f32\nprint %1, %2");
    stays("cse", "%1 = const 0 : i32\n%2 = const 0 : u32\nprint %1, %2");
    stays("cse", "%1 = const 0 : i32[4]\n%2 = const 0 : i32[8]\nprint %1, %2");
    stays("cse", "%1 = program_id axis=0 : i32\n%2 = program_id axis=1 : i32\nprint %1, %2");
    stays("cse", "%1 = reshape %v : f32[32]\n%2 = reshape %v : f32[8, 4]\nprint %1, %2");
    stays("cse",
          "%1 = sort %n axis=0 : i32[8]\n%2 = sort %n axis=0 descending : i32[8]\nprint %1, %2");
    stays("cse",
          "%1 = slice %n axis=0 : i32[2]\n%2 = slice %n axis=0 start=1 : i32[2]\nprint %1, %2");
    stays("cse", "%1 = flip %v axis=0 : f32[4, 8]\n%2 = flip %v axis=1 : f32[4, 8]\nprint %1, %2");
    stays("cse", "if %c {\n%1 = neg %i : i32\nprint %1\nyield\n} else {\n%2 = neg %i : i32\nprint "
                 "%2\nyield\n}\n"
                 "%3 = neg %i : i32\nprint %3"); // none is visible to the others
}

Test(cse, loads_only_where_nothing_may_have_written) {
    becomes("cse", "%1 = load %z[%i] : i32\n%2 = load %z[%i] : i32\nprint %1, %2",
            "%1 = load %z[%i] : i32\nprint %1, %1");
    stays("cse", "%1 = load %z[%i] : i32\nstore %z[%j] = %i\n%2 = load %z[%i] : i32\nprint %1, %2");
    stays("cse", "%1 = load %z[%i] : i32\n%3 = atomic_rmw add %z[%j], %i : i32\n%2 = load %z[%i] : "
                 "i32\nprint %1, %2");
    stays("cse", "%1 = load %z[%i] : i32\nif %c {\nstore %z[%j] = %i\nyield\n} else {\nyield\n}\n"
                 "%2 = load %z[%i] : i32\nprint %1, %2");
    stays("cse",
          "%1 = load %z[%i] : i32\nfor %a = %i to %j step %i {\n%2 = load %z[%i] : i32\nprint %2\n"
          "store %z[%a] = %a\nyield\n}\nprint %1");
    becomes("cse",
            "%1 = load %z[%i] : i32\nif %c {\nprint %i\nyield\n} else {\nyield\n}\n%2 = load "
            "%z[%i] : i32\nprint %1, %2",
            "%1 = load %z[%i] : i32\nif %c {\nprint %i\nyield\n} else {\nyield\n}\nprint %1, %1");
    stays("cse", "%1 = load %x[%i, %j] : f32\n%2 = load %x[%i, %j] else %f : f32\nprint %1, %2");
    stays("cse",
          "%1 = load %x[%i, %j +: 4] : f32[4]\n%2 = load %x[%i, %j +: 8] : f32[8]\nprint %1, %2");
}

// ---- dce ----------------------------------------------------------------------------------------

Test(dce, what_nothing_uses_goes) {
    becomes("dce", "%1 = add %i, %j : i32\n%2 = neg %1 : i32\n%3 = load %z[%2] : i32", "");
    becomes("dce", "%r = if %c : i32 {\n%1 = neg %i : i32\nyield %1\n} else {\nyield %i\n}", "");
    becomes("dce", "for %a = %i to %j step %i {\n%1 = neg %a : i32\nyield\n}", "");
    becomes("dce",
            "%1, %2 = reduce_fn %n, %n : i32, i32 (%a: i32, %q: i32, %d: i32, %g: i32) {\nyield "
            "%a, %q\n}",
            "");
}

Test(dce, effects_stay) {
    stays("dce", "store %z[%i] = %j");
    stays("dce", "%1 = atomic_rmw add %z[%i], %j : i32");
    stays("dce", "assert %c\nassume %c\nprint %i");
    stays("dce", "while {\nyield %c\n} do () {\nyield\n}"); // it may not end
    stays("dce", "if %c {\nprint %i\nyield\n} else {\nyield\n}");
    stays("dce", "for %a = %i to %j step %i {\n%1 = neg %a : i32\nstore %z[%1] = %1\nyield\n}");
}

Test(dce, carried_values_that_feed_only_themselves_go) {
    becomes("dce",
            "%r, %s, %t = for %a = %i to %j step %i carry (%p = %i, %q = %i, %u = %j) : i32, i32, "
            "i32 {\n"
            "%1 = add %p, %q : i32\n%2 = add %q, %a : i32\n%3 = add %u, %a : i32\nyield %1, %2, "
            "%3\n}\nprint %t",
            "%t = for %a = %i to %j step %i carry (%u = %j) : i32 {\n%3 = add %u, %a : i32\nyield "
            "%3\n}\nprint %t");
    becomes("dce",
            "%r, %s = while carry (%p = %i, %q = %c) : i32, bool {\nyield %q\n} do (%u, %w) {\n%1 "
            "= neg %u : i32\n"
            "%2 = not %w : bool\nyield %1, %2\n}",
            "%s = while carry (%q = %c) : bool {\nyield %q\n} do (%w) {\n%2 = not %w : bool\nyield "
            "%2\n}");
    becomes("dce",
            "%r, %s = if %c : i32, f32 {\n%1 = neg %i : i32\nyield %1, %f\n} else {\n%2 = neg %f : "
            "f32\nyield %i, %2\n}\nprint %r",
            "%r = if %c : i32 {\n%1 = neg %i : i32\nyield %1\n} else {\nyield %i\n}\nprint %r");
    stays("dce", "%r, %s = for %a = %i to %j step %i carry (%p = %i, %q = %i) : i32, i32 {\nyield "
                 "%q, %p\n}\nprint %r");
}

Test(dce, functions_that_are_not_reached_go) {
    ir_env *e = ir_open();
    const char *text =
        "module tile\nfunc @a() {\n  return\n}\nfunc @b() {\n  return\n}\n"
        "func @c() {\n  call @a()\n  return\n}\nkernel @k() {\n  call @c()\n  return\n}\n";
    const char *got = ir_after(e, "dce", text);
    cr_assert(strstr(got, "@a()") && strstr(got, "@c()") && !strstr(got, "@b()"), "%s", got);
    ir_close(e);
}

// ---- licm ---------------------------------------------------------------------------------------

#define FOR(body) "for %a = %i to %j step %i {\n" body "yield\n}"

Test(licm, what_does_not_change_moves_out) {
    becomes("licm", FOR("%1 = mul %i, %j : i32\nstore %z[%1] = %a\n"),
            "%1 = mul %i, %j : i32\n" FOR("store %z[%1] = %a\n"));
    becomes("licm",
            FOR("for %b2 = %i to %j step %i {\n%1 = mul %i, %j : i32\n%2 = mul %a, %1 : i32\nprint "
                "%2\nyield\n}\n"),
            "%1 = mul %i, %j : i32\n" FOR(
                "%2 = mul %a, %1 : i32\nfor %b2 = %i to %j step %i {\nprint %2\nyield\n}\n"));
    becomes("licm",
            "%r = while carry (%p = %i) : i32 {\n%1 = lt %i, %j : bool\nyield %1\n} do (%q) {\n%2 "
            "= dim %z axis=0 : i32\n"
            "%3 = add %q, %2 : i32\nyield %3\n}\nprint %r",
            "%1 = lt %i, %j : bool\n%2 = dim %z axis=0 : i32\n%r = while carry (%p = %i) : i32 "
            "{\nyield %1\n} do (%q) {\n"
            "%3 = add %q, %2 : i32\nyield %3\n}\nprint %r");
}

Test(licm, constants_are_copied_where_needed) {
    becomes("licm",
            FOR("%1 = const 2 : i32\n%2 = mul %j, %1 : i32\n%3 = mul %a, %1 : i32\nprint %2, %3\n"),
            "%1 = const 2 : i32\n%2 = mul %j, %1 : i32\n" FOR(
                "%4 = const 2 : i32\n%3 = mul %a, %4 : i32\nprint %2, %3\n"));
    stays("licm", FOR("%1 = const 2.0 : f32[64]\nstore %y[%a, %i +: 64] = %1\n"));
    stays("licm", FOR("%1 = iota : i32[8]\n%2 = broadcast %a : i32[8]\n%3 = add %1, %2 : "
                      "i32[8]\nprint %3\n"));
    stays("licm", FOR("%1 = broadcast %f : f32[64]\nstore %y[%a, %i +: 64] = %1\n"));
}

Test(licm, what_may_change_or_not_run_stays) {
    stays("licm", FOR("%1 = load %x[%i, %j] : f32\nprint %1\n"));
    stays("licm", FOR("if %c {\n%1 = mul %i, %j : i32\nprint %1\nyield\n} else {\nyield\n}\n"));
    stays("licm", FOR("%1 = mul %a, %j : i32\nprint %1\n"));
}

Test(licm, each_op_moved_is_noted) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, HEAD FOR("%1 = mul %n, %n : i32[8]\nprint %1, %a\n") TAIL);
    cr_assert(ir_run(e, "licm", m));
    const tk_note_rec *r = ir_note(m, "hoisted");
    cr_assert(r && r->verdict == TK_NOTE_DONE && r->numbers.at[0].value == 8);
    uint32_t line, col;
    tk_line_col(tk_source_of(&e->sources, r->span.file), r->span.begin, &line, &col);
    cr_assert_eq(line, 4);
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_notes_print(&b, &e->sources, &m->notes);
    cr_assert_str_eq(tk_buf_text(&b),
                     "test.ir:4:1: done: 'mul' does not change in the loop and is computed "
                     "before it (elements 8) [hoisted]\n");
    ir_close(e);
}

// ---- inline -------------------------------------------------------------------------------------

Test(inlining, bodies_stand_for_calls) {
    ir_env *e = ir_open();
    const char *got =
        ir_after(e, "inline",
                 "module tile\n"
                 "func @a(%x: i32, %t: in i32[?]) -> i32, i32 {\n  %1 = load %t[%x] : i32\n"
                 "  return %1, %x\n}\n"
                 "func @b(%x: i32, %t: in i32[?]) -> i32 {\n  %1, %2 = call @a(%x, %t) : i32, i32\n"
                 "  %3 = add %1, %2 : i32\n  return %3\n}\n"
                 "kernel @k(%p: inout i32[?], %i: i32, %c: bool) {\n"
                 "  if %c {\n    %1 = call @b(%i, %p) : i32\n    print %1\n    yield\n"
                 "  } else {\n    yield\n  }\n  return\n}\n");
    const char *want = ir_text(
        e, ir_good(e, "module tile\n"
                      "kernel @k(%p: inout i32[?], %i: i32, %c: bool) {\n"
                      "  if %c {\n    %1 = load %p[%i] : i32\n    %3 = add %1, %i : i32\n"
                      "    print %3\n    yield\n  } else {\n    yield\n  }\n  return\n}\n"));
    cr_assert_str_eq(got, want);
    ir_close(e);
}

Test(inlining, places_name_the_calls) {
    ir_env *e = ir_open();
    tk_module *m =
        ir_good(e, "module tile\n"
                   "func @a(%x: i32) @\"m\":0-1 {\n  print %x @\"m\":2-3\n  return @\"m\":4-5\n}\n"
                   "func @b(%x: i32) @\"m\":0-1 {\n  call @a(%x) @\"m\":6-7\n  return @?\n}\n"
                   "kernel @k(%i: i32) @\"m\":0-1 {\n  call @b(%i) @\"m\":8-9\n  return @?\n}\n");
    cr_assert(ir_run(e, "inline", m));
    cr_assert_str_eq(ir_text_locs(e, m),
                     "module tile\n\nkernel @k(%i: i32) @\"m\":0-1 {\n"
                     "  print %i @\"m\":2-3 from @\"m\":6-7 from @\"m\":8-9\n  return @?\n}\n");
    const tk_note_rec *r = ir_note(m, "inlined");
    cr_assert(r && strcmp(r->reason, "'a' into 'b'") == 0 && r->numbers.at[0].value == 1);
    cr_assert_eq(m->notes.list.n, 2);
    ir_close(e);
}

Test(inlining, growth_without_end_is_refused) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_str(&b,
               "module tile\nfunc @f0(%x: i32) -> i32 {\n  %1 = neg %x : i32\n  return %1\n}\n");
    for (int i = 1; i < 40; i++) {
        tk_buf_fmt(&b,
                   "func @f%d(%%x: i32) -> i32 {\n  %%1 = call @f%d(%%x) : i32\n  %%2 = call "
                   "@f%d(%%1) : i32\n"
                   "  return %%2\n}\n",
                   i, i - 1, i - 1);
    }
    tk_buf_str(&b, "kernel @k(%x: i32) {\n  %1 = call @f39(%x) : i32\n  return\n}\n");
    tk_module *m = ir_good(e, tk_buf_text(&b));
    cr_assert(!ir_run(e, "inline", m));
    const char *said = ir_diags(e);
    cr_assert(strstr(said, "is too large: with this call of") && strstr(said, "[too-large]"), "%s",
              said);
    ir_close(e);
}

Test(inlining, nesting_without_end_is_refused) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_str(&b, "module tile\nfunc @f0(%c: bool) {\n  return\n}\n");
    for (int i = 1; i <= 20; i++) {
        enum { NEST = TK_MAX_REGION_DEPTH / 10 };
        tk_buf_fmt(&b, "func @f%d(%%c: bool) {\n", i);
        for (int k = 0; k < NEST; k++) {
            tk_buf_str(&b, "if %c {\n");
        }
        tk_buf_fmt(&b, "call @f%d(%%c)\n", i - 1);
        for (int k = 0; k < NEST; k++) {
            tk_buf_str(&b, "yield\n} else {\nyield\n}\n");
        }
        tk_buf_str(&b, "return\n}\n");
    }
    tk_module *m = ir_good(e, tk_buf_text(&b));
    cr_assert(!ir_run(e, "inline", m));
    cr_assert(strstr(ir_diags(e), "blocks within each other"), "%s", ir_diags(e));
    ir_close(e);
}

// ---- The driver ---------------------------------------------------------------------------------

// A module on which each pass has something to do.
static const char *const busy =
    "module tile\n"
    "func @twice(%x: f32[64], %by: f32) -> f32[64] {\n  %t = broadcast %by : f32[64]\n"
    "  %y = mul %x, %t : f32[64]\n  return %y\n}\n"
    "kernel @k(%x: in f32[?, 64], %y: out f32[?, 64], %n: i32) {\n"
    "  grid {\n    %0 = dim %x axis=0 : i32\n    %1 = dim %x axis=0 : i32\n    yield %1\n  }\n"
    "  %i = program_id axis=0 : i32\n  %z = const 0 : i32\n  %one = const 1 : i32\n"
    "  %w = dim %x axis=1 : i32\n  %same = eq %w, %one : bool\n  %f = const 2.0 : f32\n"
    "  %a = load %x[%i, %z +: 64] : f32[64]\n  %init = const 0.0 : f32[64]\n"
    "  %r, %q = for %k = %z to %n step %one carry (%acc = %init, %dead = %init) pipeline=2 : "
    "f32[64], f32[64] {\n"
    "    %v = call @twice(%a, %f) : f32[64]\n    %b = load %x[%k, %z +: 64] : f32[64]\n"
    "    %s = add %acc, %v : f32[64]\n    %s2 = add %s, %b : f32[64]\n    %d = add %dead, %b : "
    "f32[64]\n"
    "    %p = if %same : f32[64] {\n      yield %s\n    } else {\n      yield %s2\n    }\n    "
    "yield %p, %d\n  }\n"
    "  store %y[%i, %z +: 64] = %r\n  return\n}\n";

Test(pipeline, all_passes_together) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, busy);
    cr_assert(ir_run(e, NULL, m));
    const char *want =
        "module tile\n"
        "kernel @k(%x: in f32[?, 64], %y: out f32[?, 64], %n: i32) {\n"
        "  grid {\n    %0 = dim %x axis=0 : i32\n    yield %0\n  }\n"
        "  %i = program_id axis=0 : i32\n  %z = const 0 : i32\n  %one = const 1 : i32\n"
        "  %a = load %x[%i, %z +: 64] : f32[64]\n  %init = const 0.0 : f32[64]\n"
        "  %t = const 2.0 : f32[64]\n  %v = mul %a, %t : f32[64]\n"
        "  %r = for %k = %z to %n step %one carry (%acc = %init) pipeline=2 : f32[64] {\n"
        "    %b = load %x[%k, %z +: 64] : f32[64]\n    %s = add %acc, %v : f32[64]\n"
        "    %s2 = add %s, %b : f32[64]\n    yield %s2\n  }\n"
        "  store %y[%i, %z +: 64] = %r\n  return\n}\n";
    cr_assert_str_eq(ir_text(e, m), ir_text(e, ir_good(e, want)));
    const char *first = ir_text(e, m);
    cr_assert(ir_run(e, NULL, m)); // nothing is left to do
    cr_assert_str_eq(ir_text(e, m), first);
    ir_close(e);
}

typedef struct trace {
    const char *name[32];
    uint32_t n;
} trace;

static void record(void *user, const tk_pass *p, const tk_module *m, double seconds) {
    trace *t = user;
    cr_assert(m != NULL && seconds >= 0);
    t->name[t->n++] = p->name;
}

Test(pipeline, stops_where_asked_and_reports_each_pass) {
    ir_env *e = ir_open();
    size_t n;
    const tk_pass *all = tk_passes(&n);
    cr_assert(n < 32);
    trace t = {.n = 0};
    tk_pipeline_opts o = {.done = record, .user = &t};
    cr_assert(tk_pipeline_run(ir_good(e, busy), NULL, &e->diags, &o));
    cr_assert_eq(t.n, n);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(t.name[i], all[i].name);
        cr_assert(all[i].what[0] && all[i].why[0] && tk_pass_find(all[i].name));
        t.n = 0;
        o.after = all[i].name;
        cr_assert(tk_pipeline_run(ir_good(e, busy), NULL, &e->diags, &o));
        cr_assert_str_eq(t.name[t.n - 1], all[i].name);
        t.n = 0;
        o.after = NULL;
        o.only = all[i].name;
        cr_assert(tk_pipeline_run(ir_good(e, busy), NULL, &e->diags, &o));
        cr_assert_eq(t.n, 1);
        o.only = NULL;
    }
    t.n = 0;
    o.after = "build";
    cr_assert(tk_pipeline_run(ir_good(e, busy), NULL, &e->diags, &o));
    cr_assert_eq(t.n, 0);
    cr_assert(tk_pass_find("nothing") == NULL);
    ir_close(e);
}

Test(pipeline, a_broken_module_is_an_internal_error) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, busy);
    m->funcs.at[0]->body->first->opnd[0] = 99;
    tk_guard guard = {.fail = TK_FAIL_NONE};
    e->arena.guard = &guard;
    if (setjmp(guard.jump) == 0) {
        tk_pipeline_opts o = {.after = "build"};
        (void)tk_pipeline_run(m, NULL, &e->diags, &o);
        cr_assert_fail("it was run");
    }
    cr_assert_eq(guard.fail, TK_FAIL_INTERNAL);
    cr_assert(strstr(guard.text, "after build: function 'twice'"), "%s", guard.text);
    cr_assert(e->arena.guard == &guard); // as it was
    ir_close(e);
}

// Modules with every op; they are also seeds of the fuzzer. Tests run in the root of the source
// tree.
static const char *seed(ir_env *e, const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return tk_strndup(&e->arena, text, size);
}

static void each_pass(ir_env *e, const char *text) {
    size_t n;
    const tk_pass *all = tk_passes(&n);
    for (size_t i = 0; i < n; i++) {
        tk_module *m = ir_good(e, text);
        cr_assert(ir_run(e, all[i].name, m));
        const char *once = ir_text(e, m);
        cr_assert(ir_run(e, all[i].name, m));
        cr_assert_str_eq(ir_text(e, m), once, "%s", all[i].name);
        cr_assert_str_eq(ir_text(e, ir_good(e, once)), once);
    }
}

Test(pipeline, each_pass_takes_every_op_and_is_done_after_one_run) {
    ir_env *e = ir_open();
    const char *tile = seed(e, "fuzz/corpus/ir/ops.ir");
    const char *staged = seed(e, "fuzz/corpus/ir/staged.ir");
    const char *programs = seed(e, "fuzz/corpus/ir/programs.ir"); // stands alone in a body
    for (int i = 0; i < TK_OP_COUNT; i++) {
        const char *text = i == TK_OP_PROGRAMS                        ? programs
                           : tk_op_legal((tk_opcode)i, TK_LEVEL_TILE) ? tile
                                                                      : staged;
        if (!tk_op_info((tk_opcode)i)->elementwise) {
            cr_assert(ir_count(ir_good(e, text), (tk_opcode)i) > 0, "no '%s' in it",
                      tk_op_info((tk_opcode)i)->name);
        }
    }
    each_pass(e, tile);
    ir_close(e);
}

// What changes ops would change what they need of shared memory, and which of them wait.
static void left_alone(ir_env *e, const char *file) {
    size_t n;
    const tk_pass *all = tk_passes(&n);
    for (size_t i = 0; i < n; i++) {
        tk_module *m = ir_good(e, seed(e, file));
        const char *before = ir_text(e, m);
        tk_diags_init(&e->diags, &e->arena);
        cr_assert(!ir_run(e, all[i].name, m));
        cr_assert(strstr(ir_diags(e), "whose shared memory is not given out"), "%s", ir_diags(e));
        cr_assert_str_eq(ir_text(e, m), before);
    }
}

Test(pipeline, the_tile_passes_leave_staged_modules_alone) {
    ir_env *e = ir_open();
    left_alone(e, "fuzz/corpus/ir/staged.ir");
    left_alone(e, "fuzz/corpus/ir/programs.ir");
    ir_close(e);
}

// ---- Memory that runs out -----------------------------------------------------------------------

typedef struct rationed {
    long left;
    long live;
} rationed;

static void *ration(void *user, size_t size) {
    rationed *r = user;
    if (r->left-- <= 0) {
        return NULL;
    }
    r->live++;
    return malloc(size);
}

static void give_back(void *user, void *block) {
    rationed *r = user;
    r->live--;
    free(block);
}

// Compiles with at most `n` allocations; whether that was enough. Nothing may be left.
static bool with_allocations(long n) {
    rationed r = {.left = n};
    tk_allocator from = {ration, give_back, &r};
    static tk_guard guard; // static: kept across the jump
    static tk_arena arena;
    static bool good;
    good = false;
    tk_arena_init(&arena, &from, &guard);
    if (setjmp(guard.jump) == 0) {
        tk_sources s;
        tk_diags d;
        tk_sources_init(&s, &arena);
        tk_diags_init(&d, &arena);
        tk_module *m = tk_ir_parse(&arena, &s, tk_sources_add(&s, "m", busy, strlen(busy)), &d);
        tk_pipeline_opts o = {.debug = false};
        good = tk_pipeline_run(m, &from, &d, &o);
    } else {
        cr_assert_eq(guard.fail, TK_FAIL_MEMORY);
    }
    tk_arena_release(&arena);
    cr_assert_eq(r.live, 0);
    return good;
}

Test(pipeline, any_allocation_may_fail) {
    long n = 0;
    while (!with_allocations(n)) {
        n++;
        cr_assert(n < 10000);
    }
    cr_assert(n > 5);
}
