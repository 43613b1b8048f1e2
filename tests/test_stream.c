// SPDX-License-Identifier: Apache-2.0
// What a program reads of its own: which loads count.
#include "ir_env.h"
#include "lower/lower.h"

#include <criterion/criterion.h>

static uint64_t bytes(const char *body) {
    ir_env *e = ir_open();
    const char *text =
        tk_format(&e->arena,
                  "module tile\nkernel @k(%%x: in f32[?, ?], %%w: in f16[?], %%n: i32) {\ngrid {\n"
                  "%%g = dim %%x axis=0 : i32\nyield %%g\n}\n%%z = const 0 : i32\n"
                  "%%i = program_id axis=0 : i32\n%s\nreturn\n}\n",
                  body);
    const tk_module *m = ir_good(e, text);
    const uint64_t n = tk_streamed_bytes(&e->arena, m->funcs.at[0]);
    ir_close(e);
    return n;
}

Test(stream, own_and_shared) {
    cr_expect_eq(bytes(""), 0);
    cr_expect_eq(bytes("%a = load %x[%i, %z +: 1024] : f32[1024]"), 4096);
    cr_expect_eq(bytes("%a = load %x[%n, %z +: 1024] : f32[1024]"), 0, "a place of all programs");
    cr_expect_eq(bytes("%a = load %x[%i, %z +: 64] : f32[64]\n%b = load %w[%z +: 64] : f16[64]"),
                 256);
    cr_expect_eq(
        bytes("%j = mul %i, %n : i32\n%a = load %w[%j +: 64] : f16[64]\n%b = load %w[%j] : f16"),
        130, "what is computed of the number");
}

Test(stream, control) {
    cr_expect_eq(
        bytes("%s = const 64 : i32\nfor %k = %z to %n step %s {\n%a = load %x[%i, %k +: 64] : "
              "f32[64]\nyield\n}\n"
              "for %k2 = %z to %n step %s {\n%a2 = load %x[%i, %k2 +: 32] : f32[32]\nyield\n}\n"
              "%b = load %x[%i, %z +: 16] : f32[16]"),
        256 + 64, "the loop that reads most, and what is beside");
    cr_expect_eq(bytes("%one = const 1 : i32\n"
                       "%r = for %k = %z to %n step %one carry (%at = %z) : i32 {\n%a = load "
                       "%x[%at, %z +: 64] : f32[64]\n"
                       "%next = add %at, %i : i32\nyield %next\n}"),
                 256, "what a loop carries");
    cr_expect_eq(
        bytes("for %k = %i to %n step %i {\n%a = load %x[%k, %z +: 64] : f32[64]\nyield\n}"), 256,
        "where a loop begins");
}

Test(stream, products) {
    cr_expect_eq(
        bytes("%a = load %x[%i +: 16, %z +: 16] : f32[16, 16]\n%b = dot %a, %a : f32[16, 16]"), 0);
}
