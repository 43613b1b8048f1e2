// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of the executor: nothing outside a tensor is touched, whatever the
// indices and strides are; races are found in check mode.
#include <criterion/criterion.h>
#include <math.h>

#include "test_exec_run.h"

enum { CANARY = 0x5a5a5a5a };

// A row of 16 with 16 guards on each side.
static int32_t room[48];
static int32_t *const tensor16 = room + 16;

static void fresh(void) {
    for (int i = 0; i < 48; i++) {
        room[i] = i >= 16 && i < 32 ? i - 16 : CANARY;
    }
}

static bool guards_hold(void) {
    for (int i = 0; i < 48; i++) {
        if ((i < 16 || i >= 32) && room[i] != CANARY) {
            return false;
        }
    }
    return true;
}

// y[0 +: 8] = x[s +: 8] else -7 and x[s +: 8] = 100 + iota, for start s of type t.
static void check_range(const char *type, tk_const s, __int128 start) {
    static xrun x;
    int32_t y[8] = {0};
    char *text = xrun_text(
        "module tile\n\nkernel @k(%%x: inout i32[?], %%s: %s, %%y: out i32[?]) {\n"
        "%%z = const 0 : i32\n%%o = const -7 : i32[8]\n%%a = load %%x[%%s +: 8] else %%o : i32[8]\n"
        "store %%y[%%z +: 8] = %%a\n%%i = iota : i32[8]\n%%h = const 100 : i32[8]\n"
        "%%v = add %%i, %%h : i32[8]\nstore %%x[%%s +: 8] = %%v\n"
        "%%one = load %%x[%%s] : i32\nstore %%x[%%s] = %%one\nreturn\n}\n",
        type);
    fresh();
    cr_assert(xrun_open(&x, text));
    xrun_vector(&x, 0, tensor16, 16);
    xrun_scalar(&x, 1, s);
    xrun_vector(&x, 2, y, 8);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int i = 0; i < 8; i++) {
        const bool in = start + i >= 0 && start + i < 16;
        cr_expect(y[i] == (in ? (int32_t)(start + i) : -7), "%s %lld: [%d] = %d", type,
                  (long long)start, i, y[i]);
    }
    for (int i = 0; i < 16; i++) {
        const bool written = i >= start && i < start + 8;
        cr_expect(tensor16[i] == (written ? 100 + (int32_t)(i - start) : i));
    }
    cr_expect(guards_hold(), "%s %lld", type, (long long)start);
    xrun_close(&x);
    free(text);
}

Test(exec_mem, ranges_at_every_edge) {
    static const int64_t starts[] = {0,
                                     1,
                                     -1,
                                     -7,
                                     -8,
                                     -9,
                                     7,
                                     8,
                                     9,
                                     15,
                                     16,
                                     17,
                                     40,
                                     99,
                                     1 << 20,
                                     INT32_MAX,
                                     INT32_MIN,
                                     INT64_MAX,
                                     INT64_MAX - 3,
                                     INT64_MIN,
                                     INT64_MIN + 3};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const int64_t s = starts[i];
        check_range("i64", tk_const_i64(TK_I64, s), s);
        check_range("u64", tk_const_i64(TK_U64, s), (__int128)(uint64_t)s);
        check_range("i32", tk_const_i64(TK_I32, s), (int32_t)s);
        check_range("u32", tk_const_i64(TK_U32, s), (uint32_t)s);
        check_range("i8", tk_const_i64(TK_I8, s), (int8_t)s);
        check_range("u16", tk_const_i64(TK_U16, s), (uint16_t)s);
    }
}

// A 5 x 7 tensor under many strides; a window of 4 x 8 at every place around it, masked, loaded
// with `else` and stored.
static void check_window(const int64_t *stride, int64_t origin, int64_t r0, int64_t c0) {
    static xrun x;
    static int32_t memory[200], before[200];
    static uint8_t mask[32];
    static int32_t got[32];
    const int64_t dim[2] = {5, 7}, wdim[2] = {4, 8};
    for (int i = 0; i < 200; i++) {
        memory[i] = before[i] = i;
    }
    for (int i = 0; i < 32; i++) {
        mask[i] = (uint8_t)(i % 3 == 0 ? 0 : i % 5 + 1); // any non-zero byte is true
    }
    cr_assert(xrun_open(&x,
                        "module tile\n\nkernel @k(%t: inout i32[?, ?], %r: i32, %c: i64, %m: in "
                        "bool[?, ?], %y: out i32[?, ?]) {\n%z = const 0 : i32\n"
                        "%o = const -7 : i32[4, 8]\n%k = load %m[%z +: 4, %z +: 8] : bool[4, 8]\n"
                        "%a = load %t[%r +: 4, %c +: 8] mask %k else %o : i32[4, 8]\n"
                        "store %y[%z +: 4, %z +: 8] = %a\n%h = const 1000 : i32[4, 8]\n"
                        "%v = add %a, %h : i32[4, 8]\nstore %t[%r +: 4, %c +: 8] = %v mask %k\n"
                        "return\n}\n"));
    xrun_tensor(&x, 0, memory + origin, 2, dim, stride);
    xrun_scalar(&x, 1, tk_const_i64(TK_I32, r0));
    xrun_scalar(&x, 2, tk_const_i64(TK_I64, c0));
    xrun_tensor(&x, 3, mask, 2, wdim, NULL);
    xrun_tensor(&x, 4, got, 2, wdim, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int e = 0; e < 32; e++) {
        const int64_t i = r0 + e / 8, j = c0 + e % 8;
        const bool in = i >= 0 && i < 5 && j >= 0 && j < 7 && mask[e];
        const int64_t at = origin + i * stride[0] + j * stride[1];
        cr_expect(got[e] == (in ? (int32_t)at : -7), "[%d]: %d", e, got[e]);
        if (in) {
            before[at] = (int32_t)at + 1000;
        }
    }
    cr_expect(memcmp(memory, before, sizeof memory) == 0);
    xrun_close(&x);
}

Test(exec_mem, windows_and_strides) {
    static const struct {
        int64_t stride[2], origin;
    } at[] = {{{7, 1}, 10},  {{1, 5}, 10}, {{-7, -1}, 60}, {{14, 2}, 3},
              {{-1, 9}, 20}, {{0, 1}, 50}, {{20, 0}, 50}};
    for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
        for (int64_t r = -5; r <= 6; r += k < 2 ? 1 : 3) {
            for (int64_t c = -9; c <= 8; c += k < 2 ? 1 : 4) {
                check_window(at[k].stride, at[k].origin, r, c);
            }
        }
    }
}

// Gathers and scatters: one tile index keeps its place, two broadcast and come first.
Test(exec_mem, tile_indices) {
    static xrun x;
    static int32_t t[3 * 4 * 5], one[3 * 4 * 2], two[2 * 3 * 4];
    static int64_t rows[4] = {2, -1, 0, 3};
    static uint64_t cols[3] = {4, UINT64_MAX, 1};
    static int32_t deep[2] = {2, 1};
    const int64_t dim[3] = {3, 4, 5}, d1[3] = {3, 4, 2}, d2[3] = {2, 3, 4};
    for (int i = 0; i < 60; i++) {
        t[i] = i;
    }
    cr_assert(xrun_open(
        &x,
        "module tile\n\nkernel @k(%t: inout i32[?, ?, ?], %r: in i64[?], %c: in u64[?], %d: in "
        "i32[?], %a: out i32[?, ?, ?], %b: out i32[?, ?, ?]) {\n%z = const 0 : i32\n"
        "%i = load %r[%z +: 4] : i64[4]\n%j = load %c[%z +: 3] : u64[3]\n"
        "%q = load %d[%z +: 2] : i32[2]\n%q1 = reshape %q : i32[2, 1]\n"
        "%u = load %t[%z +: 3, tile %i, %z +: 2] : i32[3, 4, 2]\n"
        "store %a[%z +: 3, %z +: 4, %z +: 2] = %u\n"
        "%v = load %t[tile %q1, %z +: 4, tile %j] : i32[2, 3, 4]\n"
        "store %b[%z +: 2, %z +: 3, %z +: 4] = %v\n"
        "%n = const -1 : i32[2, 3, 4]\nstore %t[tile %q1, %z +: 4, tile %j] = %n\nreturn\n}\n"));
    xrun_tensor(&x, 0, t, 3, dim, NULL);
    xrun_vector(&x, 1, rows, 4);
    xrun_vector(&x, 2, cols, 3);
    xrun_vector(&x, 3, deep, 2);
    xrun_tensor(&x, 4, one, 3, d1, NULL);
    xrun_tensor(&x, 5, two, 3, d2, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int64_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < 4; j++) {
            for (int64_t k = 0; k < 2; k++) {
                const bool in = rows[j] >= 0 && rows[j] < 4;
                cr_expect(one[(i * 4 + j) * 2 + k] == (in ? (i * 4 + rows[j]) * 5 + k : 0));
            }
        }
    }
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t j = 0; j < 3; j++) {
            for (int64_t k = 0; k < 4; k++) {
                const bool in = cols[j] < 5;
                const int64_t at = (deep[i] * 4 + k) * 5 + (int64_t)(in ? cols[j] : 0);
                cr_expect(two[(i * 3 + j) * 4 + k] == (in ? at : 0));
                cr_expect(!in || t[at] == -1);
            }
        }
    }
    xrun_close(&x);
}

// Two programs write what the other wrote, or read it.
static tk_exec_code race(const char *body, xrun *x) {
    static int32_t t[8];
    static uint64_t shadow[8];
    memset(shadow, 0, sizeof shadow);
    memset(t, 0, sizeof t);
    char *text =
        xrun_text("module tile\n\nkernel @k(%%t: inout i32[?]) {\ngrid {\n%%n = const 2 : "
                  "i32\nyield %%n\n}\n%%p = program_id axis=0 : i32\n%%z = const 0 : i32\n"
                  "%%four = const 4 : i32\n%%s = mul %%p, %%four : i32\n"
                  "%%three = const 3 : i32\n%%s3 = mul %%p, %%three : i32\n%s\nreturn\n}\n",
                  body);
    cr_assert(xrun_open(x, text));
    xrun_vector(x, 0, t, 8);
    x->tensor[0].shadow = shadow;
    const tk_exec_code code = xrun_go(x);
    xrun_close(x);
    free(text);
    return code;
}

Test(exec_mem, races) {
    static xrun x;
    const char *one = "%v = const 1 : i32[4]\n";
    char *text = xrun_text("%sstore %%t[%%s +: 4] = %%v\nstore %%t[%%s +: 4] = %%v", one);
    cr_expect(race(text, &x) == TK_EXEC_OK);
    free(text);
    text = xrun_text("%sstore %%t[%%s3 +: 4] = %%v", one);
    cr_expect(race(text, &x) == TK_EXEC_RACE);
    cr_expect(x.fault.param == 0 && x.fault.index[0] == 3 && x.fault.other == 0 &&
              x.fault.program[0] == 1);
    free(text);
    text = xrun_text("%s%%a = load %%t[%%z +: 4] : i32[4]\nstore %%t[%%s +: 4] = %%v", one);
    cr_expect(race(text, &x) == TK_EXEC_RACE);
    free(text);
    text = xrun_text("%s%%a = atomic_rmw add %%t[%%z +: 4], %%v : i32[4]\n"
                     "%%b = load %%t[%%z +: 4] : i32[4]",
                     one);
    cr_expect(race(text, &x) == TK_EXEC_OK);
    free(text);
    text = xrun_text(
        "%s%%a = atomic_rmw add %%t[%%z +: 4], %%v : i32[4]\nstore %%t[%%z +: 4] = %%v", one);
    cr_expect(race(text, &x) == TK_EXEC_RACE);
    free(text);
    text = xrun_text("%s%%c = const 4 : i32[4]\nstore %%t[%%s +: 4] = %%v\n"
                     "%%a = atomic_rmw add %%t[%%s3 +: 4], %%v : i32[4]",
                     one);
    cr_expect(race(text, &x) == TK_EXEC_RACE);
    free(text);
}

// Every atomic on every type that has it, once: the old value, the new one, and NaN.
Test(exec_mem, atomics) {
    static const struct {
        const char *kind, *type;
        tk_dtype t;
        double old, value, want;
    } at[] = {{"add", "i32", TK_I32, 5, -7, -2},        {"add", "u64", TK_U64, 5, 7, 12},
              {"add", "f32", TK_F32, 1.5, 2, 3.5},      {"add", "f64", TK_F64, 1.5, 2, 3.5},
              {"add", "f16", TK_F16, 1.5, 2, 3.5},      {"add", "bf16", TK_BF16, 1.5, 2, 3.5},
              {"max", "i64", TK_I64, -5, 7, 7},         {"min", "i64", TK_I64, -5, 7, -5},
              {"max", "u32", TK_U32, 9, 7, 9},          {"min", "f32", TK_F32, 1, -2, -2},
              {"max", "f16", TK_F16, 1, 2, 2},          {"min", "bf16", TK_BF16, 1, 2, 1},
              {"and", "i32", TK_I32, 12, 10, 8},        {"or", "u32", TK_U32, 12, 10, 14},
              {"xor", "i64", TK_I64, 12, 10, 6},        {"xchg", "f32", TK_F32, 1, 9, 9},
              {"xchg", "u64", TK_U64, 1, 9, 9},         {"max", "f32", TK_F32, 1, (double)NAN, 1},
              {"min", "f64", TK_F64, 1, (double)NAN, 1}};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        static xrun x;
        static _Alignas(8) unsigned char t[32], old[32];
        const char *ty = at[i].type;
        char *text =
            xrun_text("module tile\n\nkernel @k(%%t: inout %s[?], %%v: %s, %%y: out %s[?]) "
                      "{\n%%z = const 0 : i32\n%%b = broadcast %%v : %s[3]\n"
                      "%%o = atomic_rmw %s %%t[%%z +: 3], %%b order=acq_rel : %s[3]\n"
                      "store %%y[%%z +: 3] = %%o\nreturn\n}\n",
                      ty, ty, ty, ty, at[i].kind, ty);
        const size_t size = tk_dtype_size(at[i].t);
        for (size_t k = 0; k < 3; k++) {
            tk_const_store(tk_const_f64(at[i].t, at[i].old), t + k * size);
        }
        cr_assert(xrun_open(&x, text));
        xrun_vector(&x, 0, t, 2); // the third is outside: 0
        xrun_scalar(&x, 1, tk_const_f64(at[i].t, at[i].value));
        xrun_vector(&x, 2, old, 3);
        cr_assert(xrun_go(&x) == TK_EXEC_OK);
        for (size_t k = 0; k < 3; k++) {
            const double now = tk_const_as_f64(tk_const_load(at[i].t, t + k * size));
            const double was = tk_const_as_f64(tk_const_load(at[i].t, old + k * size));
            cr_expect(now == (k < 2 ? at[i].want : at[i].old), "%s %s: %g", at[i].kind, ty, now);
            cr_expect(was == (k < 2 ? at[i].old : 0), "%s %s: old %g", at[i].kind, ty, was);
        }
        xrun_close(&x);
        free(text);
    }
}

// An empty tensor has no element to read; bytes of a bool are normalised.
Test(exec_mem, empty_tensor_and_bools) {
    static xrun x;
    uint8_t b[4] = {0, 1, 2, 255}, y[4] = {9, 9, 9, 9}, e[4] = {9, 9, 9, 9};
    cr_assert(xrun_open(&x,
                        "module tile\n\nkernel @k(%b: in bool[?], %e: in u8[?], %y: out bool[?], "
                        "%f: out u8[?]) {\n%z = const 0 : i32\n%a = load %b[%z +: 4] : bool[4]\n"
                        "store %y[%z +: 4] = %a\n%c = load %e[%z +: 4] : u8[4]\n"
                        "store %f[%z +: 4] = %c\nreturn\n}\n"));
    xrun_vector(&x, 0, b, 4);
    xrun_vector(&x, 1, NULL, 0);
    xrun_vector(&x, 2, y, 4);
    xrun_vector(&x, 3, e, 4);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int i = 0; i < 4; i++) {
        cr_expect(y[i] == (i > 0) && e[i] == 0);
    }
    xrun_close(&x);
}
