// SPDX-License-Identifier: Apache-2.0
// Products, control, storage of carried values, Philox, assertions and printing of the executor.
#include <criterion/criterion.h>
#include <math.h>

#include "test_exec_run.h"

// ---- Products -----------------------------------------------------------------------------------

enum { M = 7, N = 13, K = 37, B = 2 };

// c[B, M, N] = acc + a[B, M, K] b[B, K, N] on small integers, exact in every type. b is stored
// transposed, and permuted in the kernel.
static void check_dot(tk_dtype from, tk_dtype mixed, tk_dtype to, bool with_acc) {
    static xrun x;
    static _Alignas(8) unsigned char a[B * M * K * 8], b[B * N * K * 8], c[B * M * N * 8];
    const int64_t da[3] = {B, M, K}, db[3] = {B, N, K}, dc[3] = {B, M, N};
    const char *ty = tk_dtype_name(from), *tm = tk_dtype_name(mixed), *tr = tk_dtype_name(to);
    const bool is_unsigned = tk_dtype_class(from) == TK_CLASS_UINT;
    char *text = xrun_text(
        "module tile\n\nkernel @k(%%a: in %s[?, ?, ?], %%b: in %s[?, ?, ?], %%c: out %s[?, ?, ?]) "
        "{\n"
        "%%z = const 0 : i32\n%%x = load %%a[%%z +: 2, %%z +: 7, %%z +: 37] : %s[2, 7, 37]\n"
        "%%y = load %%b[%%z +: 2, %%z +: 13, %%z +: 37] : %s[2, 13, 37]\n"
        "%%t = permute %%y perm=[0, 2, 1] : %s[2, 37, 13]\n%%k = const 3 : %s\n"
        "%%acc = broadcast %%k : %s[2, 7, 13]\n%%d = dot %%x, %%t%s : %s[2, 7, 13]\n"
        "store %%c[%%z +: 2, %%z +: 7, %%z +: 13] = %%d\nreturn\n}\n",
        ty, tm, tr, ty, tm, tm, tr, tr, with_acc ? ", %acc" : "", tr);
    const char *k3 = tk_dtype_is_float(to) ? "3.0" : "3";
    char *at = strstr(text, "const 3 :");
    if (k3[1]) { // a float constant is written with a point
        char *fixed = xrun_text("%.*sconst 3.0 :%s", (int)(at - text), text, at + 9);
        free(text);
        text = fixed;
    }
    for (int i = 0; i < B * M * K; i++) {
        tk_const_store(tk_const_i64(from, i * 7 % 5 - (is_unsigned ? 0 : 2)),
                       a + (size_t)i * tk_dtype_size(from));
    }
    for (int i = 0; i < B * N * K; i++) {
        tk_const_store(tk_const_i64(mixed, i * 5 % 7 - (is_unsigned ? 0 : 3)),
                       b + (size_t)i * tk_dtype_size(mixed));
    }
    cr_assert(xrun_open(&x, text));
    xrun_tensor(&x, 0, a, 3, da, NULL);
    xrun_tensor(&x, 1, b, 3, db, NULL);
    xrun_tensor(&x, 2, c, 3, dc, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int e = 0; e < B * M * N; e++) {
        const int z = e / (M * N), i = e / N % M, j = e % N;
        int want = with_acc ? 3 : 0;
        for (int k = 0; k < K; k++) {
            want += (((z * M + i) * K + k) * 7 % 5 - (is_unsigned ? 0 : 2)) *
                    (((z * N + j) * K + k) * 5 % 7 - (is_unsigned ? 0 : 3));
        }
        const double got = tk_const_as_f64(tk_const_load(to, c + (size_t)e * tk_dtype_size(to)));
        cr_assert(got == want, "%s x %s: [%d] is %g, not %d", ty, tm, e, got, want);
    }
    xrun_close(&x);
    free(text);
}

Test(exec_dot, every_type) {
    static const tk_dtype types[][3] = {
        {TK_F16, TK_F16, TK_F32},       {TK_BF16, TK_BF16, TK_F32},
        {TK_F8E4M3, TK_F8E4M3, TK_F32}, {TK_F8E5M2, TK_F8E5M2, TK_F32},
        {TK_F8E4M3, TK_F8E5M2, TK_F32}, {TK_F32, TK_F32, TK_F32},
        {TK_F64, TK_F64, TK_F64},       {TK_I8, TK_I8, TK_I32},
        {TK_U8, TK_U8, TK_I32}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        check_dot(types[i][0], types[i][1], types[i][2], false);
        check_dot(types[i][0], types[i][1], types[i][2], true);
    }
}

// Products are added in the order of K, each rounded: acc first.
Test(exec_dot, order_and_precision) {
    static xrun x;
    const int64_t d[2] = {1, 3}, e[2] = {3, 1}, one[2] = {1, 1};
    float a[3] = {0x1p24F, 1, -0x1p24F}, b[3] = {1, 1, 1}, acc = 1, y[3];
    cr_assert(xrun_open(
        &x,
        "module tile\n\nkernel @k(%a: in f32[?, ?], %b: in f32[?, ?], %c: in f32[?, ?], %y: out "
        "f32[?]) {\n%z = const 0 : i32\n%p = load %a[%z +: 1, %z +: 3] : f32[1, 3]\n"
        "%q = load %b[%z +: 3, %z +: 1] : f32[3, 1]\n%c0 = load %c[%z +: 1, %z +: 1] : f32[1, 1]\n"
        "%d = dot %p, %q, %c0 : f32[1, 1]\n%e = dot %p, %q, %c0 precision=tf32 : f32[1, 1]\n"
        "%f = dot %p, %q, %c0 precision=tf32x3 : f32[1, 1]\n%g = concat %d, %e axis=0 : f32[2, 1]\n"
        "%h = concat %g, %f axis=0 : f32[3, 1]\n%i = reshape %h : f32[3]\nstore %y[%z +: 3] = %i\n"
        "return\n}\n"));
    xrun_tensor(&x, 0, a, 2, d, NULL);
    xrun_tensor(&x, 1, b, 2, e, NULL);
    xrun_tensor(&x, 2, &acc, 2, one, NULL);
    xrun_vector(&x, 3, y, 3);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    // 1 + 2^24 is 2^24, + 1 is 2^24 again, - 2^24 is 0
    cr_expect(y[0] == 0 && y[1] == 0 && y[2] == 0);
    a[0] = 1 + 0x1p-11F; // half of an ulp of tf32: to the even one, which is below
    a[1] = 1 + 0x1p-12F;
    a[2] = -2;
    acc = 0;
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    cr_expect(y[0] == 0x1p-11F + 0x1p-12F && y[1] == 0 && y[2] == y[0]);
    a[0] = 1 + 0x3p-11F; // which is above
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    cr_expect(y[0] == 0x3p-11F + 0x1p-12F && y[1] == 0x1p-9F && y[2] == y[0]);
    xrun_close(&x);
}

Test(exec_dot, scaled) {
    static xrun x;
    static uint8_t a[3 * 64], sa[3 * 2], b[64 * 2], sb[2 * 2];
    static float y[6];
    const int64_t da[2] = {3, 64}, dsa[2] = {3, 2}, db[2] = {64, 2}, dsb[2] = {2, 2},
                  dy[2] = {3, 2};
    for (int i = 0; i < 3 * 64; i++) {
        a[i] = (uint8_t)tk_const_i64(TK_F8E4M3, i % 5 - 2).bits;
    }
    for (int i = 0; i < 64 * 2; i++) {
        b[i] = (uint8_t)tk_const_i64(TK_F8E4M3, i % 3 - 1).bits;
    }
    for (int i = 0; i < 6; i++) {
        sa[i] = (uint8_t)(127 + i);
    }
    sa[5] = 255;
    for (int i = 0; i < 4; i++) {
        sb[i] = (uint8_t)(127 - i);
    }
    cr_assert(xrun_open(
        &x,
        "module tile\n\nkernel @k(%a: in f8e4m3[?, ?], %p: in u8[?, ?], %b: in f8e4m3[?, ?], %q: "
        "in u8[?, ?], %y: out f32[?, ?]) {\n%z = const 0 : i32\n"
        "%a0 = load %a[%z +: 3, %z +: 64] : f8e4m3[3, 64]\n%a1 = load %p[%z +: 3, %z +: 2] : u8[3, "
        "2]\n%b0 = load %b[%z +: 64, %z +: 2] : f8e4m3[64, 2]\n"
        "%b1 = load %q[%z +: 2, %z +: 2] : u8[2, 2]\n"
        "%d = dot_scaled %a0, %a1, %b0, %b1 : f32[3, 2]\nstore %y[%z +: 3, %z +: 2] = %d\n"
        "return\n}\n"));
    xrun_tensor(&x, 0, a, 2, da, NULL);
    xrun_tensor(&x, 1, sa, 2, dsa, NULL);
    xrun_tensor(&x, 2, b, 2, db, NULL);
    xrun_tensor(&x, 3, sb, 2, dsb, NULL);
    xrun_tensor(&x, 4, y, 2, dy, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            double want = 0;
            for (int k = 0; k < 64; k++) {
                const int s = sa[i * 2 + k / 32] + sb[k / 32 * 2 + j] - 254;
                want += ((i * 64 + k) % 5 - 2) * ((k * 2 + j) % 3 - 1) * ldexp(1, s);
            }
            cr_expect(i == 2 ? isnan(y[4 + j]) : (double)y[i * 2 + j] == want);
        }
    }
    xrun_close(&x);
}

// ---- Control ------------------------------------------------------------------------------------

// How often a loop runs and what its index is at the end.
static void check_loop(tk_dtype t, int64_t from, int64_t to, int64_t step, int64_t trips,
                       int64_t last) {
    static xrun x;
    int64_t y[2] = {-1, -1};
    const char *ty = tk_dtype_name(t);
    char *text =
        xrun_text("module tile\n\nkernel @k(%%a: %s, %%b: %s, %%s: %s, %%y: out i64[?]) {\n%%z = "
                  "const 0 : i64\n"
                  "%%o = const 1 : i64\n%%n, %%l = for %%i = %%a to %%b step %%s carry (%%c = %%z, "
                  "%%d = %%z) : "
                  "i64, i64 {\n%%e = add %%c, %%o : i64\n%%f = cast %%i : i64\nyield %%e, %%f\n}\n"
                  "store %%y[%%z] = %%n\nstore %%y[%%o] = %%l\nreturn\n}\n",
                  ty, ty, ty);
    cr_assert(xrun_open(&x, text));
    xrun_scalar(&x, 0, tk_const_i64(t, from));
    xrun_scalar(&x, 1, tk_const_i64(t, to));
    xrun_scalar(&x, 2, tk_const_i64(t, step));
    xrun_vector(&x, 3, y, 2);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    cr_expect(y[0] == trips && y[1] == last, "%s %lld to %lld step %lld: %lld trips, last %lld", ty,
              (long long)from, (long long)to, (long long)step, (long long)y[0], (long long)y[1]);
    xrun_close(&x);
    free(text);
}

Test(exec_control, trip_counts) {
    check_loop(TK_I32, 0, 10, 3, 4, 9);
    check_loop(TK_I32, 10, 0, 3, 0, 0);
    check_loop(TK_I32, 10, 0, -3, 4, 1);
    check_loop(TK_I32, 0, 10, 0, 0, 0);
    check_loop(TK_I32, 0, 10, -1, 0, 0);
    check_loop(TK_I32, INT32_MAX - 3, INT32_MAX, 2, 2, INT32_MAX - 1);
    check_loop(TK_I32, INT32_MIN, INT32_MAX, INT32_MAX, 3, INT32_MAX - 1);
    check_loop(TK_I32, INT32_MAX, INT32_MIN, INT32_MIN, 2, -1);
    check_loop(TK_I64, INT64_MIN, INT64_MAX, INT64_MAX, 3, INT64_MAX - 1);
    check_loop(TK_I64, INT64_MAX, INT64_MIN, INT64_MIN, 2, -1);
    check_loop(TK_I64, INT64_MAX - 1, INT64_MAX, INT64_MAX, 1, INT64_MAX - 1);
    check_loop(TK_U32, 0, 10, 4, 3, 8);
    check_loop(TK_U32, 0, -1, 1 << 30, 4, 3LL << 30);
    check_loop(TK_U32, 5, 10, -1, 1, 5); // a step of 2^32 - 1
    check_loop(TK_U64, 0, -1, INT64_MIN, 2, INT64_MIN);
    check_loop(TK_U64, -2, -1, -1, 1, -2);
}

// y = what the body leaves in %r : i32[4], from %v = [1, 2, 3, 4]; %n is 3, %z 0, %o 1.
static void check_body(const char *body, int32_t w0, int32_t w1, int32_t w2, int32_t w3) {
    static xrun x;
    int32_t v[4] = {1, 2, 3, 4}, y[4];
    char *text = xrun_text("module tile\n\nkernel @k(%%x: in i32[?], %%y: out i32[?]) {\n"
                           "%%z = const 0 : i32\n%%o = const 1 : i32\n%%n = const 3 : i32\n"
                           "%%v = load %%x[%%z +: 4] : i32[4]\n%%one = const 1 : i32[4]\n%s"
                           "store %%y[%%z +: 4] = %%r\nreturn\n}\n",
                           body);
    cr_assert(xrun_open(&x, text));
    xrun_vector(&x, 0, v, 4);
    xrun_vector(&x, 1, y, 4);
    for (int again = 0; again < 2; again++) { // a frame is used for many programs
        cr_assert(xrun_go(&x) == TK_EXEC_OK);
        cr_expect(y[0] == w0 && y[1] == w1 && y[2] == w2 && y[3] == w3, "%s: %d %d %d %d", body,
                  y[0], y[1], y[2], y[3]);
    }
    xrun_close(&x);
    free(text);
}

#define LOOP "for %i = %z to %n step %o carry "

Test(exec_control, carried_values) {
    // in place
    check_body("%r = " LOOP "(%a = %v) : i32[4] {\n%b = add %a, %a : i32[4]\nyield %b\n}\n", 8, 16,
               24, 32);
    // exchanged
    check_body("%w = add %v, %one : i32[4]\n%r, %s = " LOOP
               "(%a = %v, %b = %w) : i32[4], i32[4] {\n"
               "yield %b, %a\n}\n",
               2, 3, 4, 5);
    // one value for both
    check_body("%r, %s = " LOOP
               "(%a = %v, %b = %one) : i32[4], i32[4] {\n%c = add %a, %b : i32[4]\n"
               "yield %c, %c\n}\n",
               8, 12, 16, 20);
    // the old value is needed after the new one is made
    check_body("%r, %s = " LOOP
               "(%a = %v, %b = %v) : i32[4], i32[4] {\n%c = add %a, %one : i32[4]\n"
               "%d = mul %c, %a : i32[4]\n%e = sub %d, %b : i32[4]\nyield %c, %e\n}\n",
               4, 5, 6, 7);
    // reversed each time: an alias of what it is copied to
    check_body("%r = " LOOP "(%a = %v) : i32[4] {\n%b = flip %a axis=0 : i32[4]\nyield %b\n}\n", 4,
               3, 2, 1);
    // an element-wise op that reads it in two orders
    check_body("%r = " LOOP "(%a = %v) : i32[4] {\n%b = flip %a axis=0 : i32[4]\n"
               "%c = add %a, %b : i32[4]\nyield %c\n}\n",
               20, 20, 20, 20);
    // shifted along
    check_body("%r, %s, %t = " LOOP "(%a = %v, %b = %one, %c = %one) : i32[4], i32[4], i32[4] {\n"
               "%d = add %c, %a : i32[4]\nyield %b, %c, %d\n}\n",
               2, 3, 4, 5);
    // no trip
    check_body(
        "%r = for %i = %n to %z step %o carry (%a = %v) : i32[4] {\n%b = add %a, %a : i32[4]\n"
        "yield %b\n}\n",
        1, 2, 3, 4);
    // not changed
    check_body("%r = " LOOP "(%a = %v) : i32[4] {\nyield %a\n}\n", 1, 2, 3, 4);
    // from outside
    check_body("%r = " LOOP "(%a = %one) : i32[4] {\nyield %v\n}\n", 1, 2, 3, 4);
}

Test(exec_control, nests) {
    // through an inner loop
    check_body("%r = " LOOP
               "(%a = %v) : i32[4] {\n%c = for %j = %z to %n step %o carry (%b = %a) : "
               "i32[4] {\n%d = add %b, %one : i32[4]\nyield %d\n}\nyield %c\n}\n",
               10, 11, 12, 13);
    // the outer value is also read inside
    check_body("%r = " LOOP
               "(%a = %v) : i32[4] {\n%c = for %j = %z to %n step %o carry (%b = %one) : "
               "i32[4] {\n%d = add %b, %a : i32[4]\nyield %d\n}\nyield %c\n}\n",
               1 + 3 * (1 + 3 * (1 + 3)), 1 + 3 * (1 + 3 * (1 + 6)), 1 + 3 * (1 + 3 * (1 + 9)),
               1 + 3 * (1 + 3 * (1 + 12)));
    check_body("%r = " LOOP
               "(%a = %v) : i32[4] {\n%c = for %j = %z to %n step %o carry (%b = %a) : "
               "i32[4] {\n%d = add %b, %a : i32[4]\nyield %d\n}\nyield %c\n}\n",
               64, 128, 192, 256);
    // by an if, either way
    check_body("%r = " LOOP "(%a = %v) : i32[4] {\n%q = eq %i, %o : bool\n%c = if %q : i32[4] {\n"
               "%d = mul %a, %a : i32[4]\nyield %d\n} else {\nyield %a\n}\nyield %c\n}\n",
               1, 4, 9, 16);
    check_body(
        "%q = eq %z, %z : bool\n%r, %s = if %q : i32[4], i32[4] {\n%d = add %v, %one : i32[4]\n"
        "%e = add %d, %d : i32[4]\nyield %e, %d\n} else {\nyield %v, %v\n}\n",
        4, 6, 8, 10);
    check_body(
        "%q = eq %z, %o : bool\n%w, %s = if %q : i32[4], i32[4] {\nyield %one, %v\n} else {\n"
        "%d = add %v, %one : i32[4]\nyield %d, %d\n}\n%r = add %w, %s : i32[4]\n",
        4, 6, 8, 10);
    // while: the condition reads what the body makes
    check_body("%r, %s = while carry (%a = %v, %k = %z) : i32[4], i32 {\n%q = lt %k, %n : bool\n"
               "yield %q\n} do (%b, %l) {\n%d = add %b, %b : i32[4]\n%m = add %l, %o : i32\n"
               "yield %d, %m\n}\n",
               8, 16, 24, 32);
    check_body("%lim = const 20 : i32\n%r = while carry (%a = %v) : i32[4] {\n"
               "%t = reduce sum %a : i32\n%q = lt %t, %lim : bool\nyield %q\n} do (%b) {\n"
               "%c = flip %b axis=0 : i32[4]\n%d = add %c, %one : i32[4]\nyield %d\n}\n",
               7, 6, 5, 4);
}

// Everything that a kernel needs of storage at once comes out right also where much is reused.
Test(exec_control, storage_is_reused) {
    static xrun x;
    static char text[32768];
    size_t at =
        (size_t)snprintf(text, sizeof text,
                         "module tile\n\nkernel @k(%%x: inout f32[?]) {\n%%z = const 0 : i32\n"
                         "%%v0 = load %%x[%%z +: 1024] : f32[1024]\n");
    for (int i = 1; i <= 200; i++) {
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%%v%d = add %%v%d, %%v%d : f32[1024]\n",
                             i, i - 1, i > 3 ? i - 3 : 0);
    }
    (void)snprintf(text + at, sizeof text - at, "store %%x[%%z +: 1024] = %%v200\nreturn\n}\n");
    cr_assert(xrun_open(&x, text));
    cr_expect(tk_plan_frame_size(x.plan) < 5 * 4096 + 1024, "%zu", tk_plan_frame_size(x.plan));
    static float v[1024], want[201];
    for (int i = 0; i < 1024; i++) {
        v[i] = (float)i * 0x1p-100F;
    }
    xrun_vector(&x, 0, v, 1024);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    want[0] = 5 * 0x1p-100F;
    for (int i = 1; i <= 200; i++) {
        want[i] = want[i - 1] + want[i > 3 ? i - 3 : 0];
    }
    cr_expect(v[5] == want[200]);
    xrun_close(&x);
}

Test(exec_control, stop) {
    static xrun x;
    static const volatile int stop = 1;
    cr_assert(xrun_open(&x, "module tile\n\nkernel @k() {\n%o = const true : bool\n"
                            "%q = while carry (%a = %o) : bool {\nyield %a\n} do (%b) {\nyield "
                            "%b\n}\nreturn\n}\n"));
    x.env.stop = &stop;
    cr_expect(xrun_go(&x) == TK_EXEC_STOPPED && x.fault.code == TK_EXEC_STOPPED);
    x.env.stop = NULL;
    x.env.user_stop = &stop;
    cr_expect(xrun_go(&x) == TK_EXEC_STOPPED);
    xrun_close(&x);
}

Test(exec_control, grid) {
    static xrun x;
    int32_t y[12] = {0};
    const int64_t d[2] = {3, 4};
    cr_assert(
        xrun_open(&x, "module tile\n\nkernel @k(%y: out i32[?, ?]) {\ngrid {\n%a = dim %y axis=0 : "
                      "i32\n%b = dim %y axis=1 : i32\nyield %a, %b\n}\n"
                      "%i = program_id axis=0 : i32\n%j = program_id axis=1 : i32\n"
                      "%n = num_programs axis=1 : i32\n%t = const 100 : i32\n"
                      "%u = mul %i, %t : i32\n%v = add %u, %j : i32\n%w = mul %n, %t : i32\n"
                      "%h = mul %w, %t : i32\n%r = add %h, %v : i32\nstore %y[%i, %j] = %r\n"
                      "return\n}\n"));
    xrun_tensor(&x, 0, y, 2, d, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int e = 0; e < 12; e++) {
        cr_expect(y[e] == 40000 + e / 4 * 100 + e % 4);
    }
    xrun_close(&x);
}

// ---- Philox, assertions, printing ---------------------------------------------------------------

// Known answers of the authors' own test: zero, all ones. The counter's upper words are 0 here, so
// the second is checked against the inline function with 64-bit seed and offset.
Test(exec_philox, words) {
    static xrun x;
    uint32_t y[16];
    int32_t offset[4] = {0, 1, -1, INT32_MIN};
    const int64_t d[2] = {4, 4};
    cr_assert(
        xrun_open(&x, "module tile\n\nkernel @k(%s: i64, %o: in i32[?], %y: out u32[?, ?]) {\n"
                      "%z = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n"
                      "%three = const 3 : i32\n%f = load %o[%z +: 4] : i32[4]\n"
                      "%a, %b, %c, %d = philox %s, %f : u32[4], u32[4], u32[4], u32[4]\n"
                      "store %y[%z, %z +: 4] = %a\nstore %y[%one, %z +: 4] = %b\n"
                      "store %y[%two, %z +: 4] = %c\nstore %y[%three, %z +: 4] = %d\nreturn\n}\n"));
    xrun_scalar(&x, 0, tk_const_i64(TK_I64, 0));
    xrun_vector(&x, 1, offset, 4);
    xrun_tensor(&x, 2, y, 2, d, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    cr_expect(y[0] == 0x6627e8d5 && y[4] == 0xe169c58d && y[8] == 0xbc57ac4c &&
              y[12] == 0x9b00dbd8);
    cr_expect(y[0] != y[1] && y[1] != y[2] && y[2] != y[3]);
    xrun_close(&x);
}

Test(exec_debug, faults) {
    static xrun x;
    int32_t v[4] = {1, 2, 3, 4};
    cr_assert(xrun_open(&x,
                        "module tile\n\nkernel @k(%x: in i32[?], %s: i32) {\n%z = const 0 : i32\n"
                        "%a = load %x[%z +: 4] : i32[4]\n%b = broadcast %s : i32[4]\n"
                        "%c = ne %a, %b : bool[4]\nassert %c text=\"none is s\"\n"
                        "%d = lt %s, %z : bool\nassume %d\nreturn\n}\n"));
    xrun_vector(&x, 0, v, 4);
    xrun_scalar(&x, 1, tk_const_i64(TK_I32, 4));
    cr_expect(xrun_go(&x) == TK_EXEC_ASSERT);
    cr_expect_str_eq(x.fault.text, "none is s");
    cr_expect(x.fault.loc != 0);
    xrun_scalar(&x, 1, tk_const_i64(TK_I32, 9));
    cr_expect(xrun_go(&x) == TK_EXEC_ASSUME);
    xrun_scalar(&x, 1, tk_const_i64(TK_I32, -9));
    cr_expect(xrun_go(&x) == TK_EXEC_OK);
    xrun_close(&x);
}

Test(exec_debug, print) {
    static xrun x;
    float v[6] = {0.1F, -2, INFINITY, NAN, 1e20F, 0};
    const int64_t d[2] = {2, 3};
    cr_assert(xrun_open(
        &x, "module tile\n\nkernel @k(%x: in f32[?, ?]) {\ngrid {\n%n = const 2 : i32\nyield %n, "
            "%n\n}\n"
            "%z = const 0 : i32\n%p = program_id axis=0 : i32\n%one = const 1 : i32\n"
            "%a = load %x[%z +: 2, %z +: 3] : f32[2, 3]\n%h = cast %a : f16[2, 3]\n"
            "%q = program_id axis=1 : i32\n%s = add %p, %q : i32\n%t = eq %s, %one : bool\n"
            "%i = iota : i32[300]\nprint %t, %a, %s text=\"t {}, a = {}; \"\n"
            "print %h text=\"{}\"\nprint %i text=\"\"\nreturn\n}\n"));
    xrun_tensor(&x, 0, v, 2, d, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    cr_assert(x.lines == 12, "%d lines; %s", x.lines, x.lines ? x.line[0] : "");
    cr_expect_str_eq(x.line[0], "[0, 0] t false, a = [[0.1, -2, inf], [nan, 1e+20, 0]];  0");
    cr_expect_str_eq(x.line[3], "[1, 0] t true, a = [[0.1, -2, inf], [nan, 1e+20, 0]];  1");
    cr_expect_str_eq(x.line[1], "[0, 0] [[0.1, -2, inf], [nan, inf, 0]]");
    cr_expect_str_eq(x.line[2], "[0, 0]  [0, 1, 2, ..., 297, 298, 299]");
    xrun_close(&x);
}
