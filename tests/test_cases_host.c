// SPDX-License-Identifier: Apache-2.0
// Conformance: what the host does (rows B27, B48, B52, B54, B57 of tests/cases/README.md), and that
// programs give the same bits as built and after all passes (A001..A030, A025, A032, A044, A111,
// A113).
#include "runtime/tkc.h"
#include "tests/e2e.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- As built and after the passes
// -------------------------------------------------------------

enum { N = 32 };

static const float floats[N] = {
    0.0f,       -0.0f,       1.0f,   -1.0f,   0.5f,  1.5f,     2.5f,     -0.5f,
    3.0f,       1e-38f,      1e-42f, -1e-42f, 1e38f, -1e38f,   INFINITY, -INFINITY,
    NAN,        1.0f / 3,    0.1f,   -0.75f,  0.75f, 65504.0f, 448.0f,   57344.0f,
    8388609.0f, 16777217.0f, 2.0f,   4.0f,    -7.0f, 7.0f,     1e10f,    -1e10f};
static const int32_t whole_numbers[N] = {
    0,          1,      -1,     2,       -2,    3,          -3,
    7,          -7,     8,      31,      32,    33,         -32,
    64,         100,    127,    128,     255,   256,        -128,
    32767,      -32768, 65535,  1 << 16, 46341, 2147483647, -2147483647 - 1,
    2147483646, 12345,  -99999, 5};

static const char *const float_texts[] = {
    "a * 1.5 + 1.0",
    "(-0.25 / a) * a + 0.25",
    "a + 0.0",
    "a - 0.0",
    "0.0 - a",
    "a * 1.0",
    "a * 0.0",
    "a - a",
    "a / a",
    "-(-a)",
    "-(a - b)",
    "a + b - b",
    "(a + 1e8) - 1e8",
    "a * 2.0 / 2.0",
    "fma(a, b, a * b)",
    "max(a, b) + min(a, b)",
    "fmax(a, fmin(b, nan))",
    "clamp(a, -1.0, 1.0)",
    "where(a == a, a, 0.0)",
    "where(a < b, a, where(a < b, b, a))",
    "where(true, a, b) + where(false, a, b)",
    "f32(f16(a)) + f32(bf16(b))",
    "f32(f8e4m3(a)) + f32(f8e5m2(b))",
    "f32(i32(a)) + f32(u8(b))",
    "f32(i8(a) + i8(b))",
    "sqrt(abs(a)) * rcp(b)",
    "floor(a) + ceil(b) + round(a) + trunc(b)",
    "a % b",
    "f32(a > b && !(a < b) || isnan(a))",
    "bitcast(bitcast(a, u32) ^ 0x80000000, f32)",
    "f32(f64(a) * f64(b))",
    "f32(f16(a) * f16(b))",
    "sum(a[newaxis, :] * b[newaxis, :], axis = 0) + a",
};

static const char *const int_texts[] = {
    "a + b - a",
    "a * 0 + b * 1",
    "a / b * b + a % b",
    "a / 7 + a % 7 + a / -8 + a % 8 + a / 1",
    "a / 0 + a % 0",
    "(a << 3) >> 3",
    "a << b",
    "a >> b",
    "a >> 33",
    "a & -1 | b & 0",
    "a ^ a ^ b",
    "~(~a)",
    "-(-a)",
    "abs(a) + max(a, b) + min(a, b, 3)",
    "i32(i8(a)) + i32(u8(b)) + i32(i16(a))",
    "i32(u32(a) / u32(b))",
    "i32(i64(a) * i64(b) >> 16)",
    "mulhi(a, b) + cdiv(a, b) + popcount(a) + clz(b) + next_pow2(a)",
    "where(a > b, a, b) - where(a == b, 1, 0)",
    "i32(f32(a) * 0.5)",
    "(a + 1) * 2 + (a + 1) * 2",
    "transpose(transpose(a[newaxis, :]))[newaxis, :, :] * 1 + 0",
    "flip(flip(a, 0), 0) + reshape(b, [32])",
    "cumsum(a, axis = 0) + sum(b)",
};

static void run_text(const char *text, bool inline_only, const char *type, void *a, void *b,
                     void *y) {
    char source[1024];
    snprintf(source, sizeof source,
             "kernel k(pa: in %s[32], pb: in %s[32], y: out %s[32]) {\n"
             "    let a = pa[0 +: 32];\n    let b = pb[0 +: 32];\n    let r = %s;\n"
             "    y[0 +: 32] = reshape(r, [32]);\n}\n",
             type, type, type, text);
    tk_dtype t = strcmp(type, "f32") == 0 ? TK_F32 : TK_I32;
    e2e_arg arg[] = {e2e_tensor("pa", t, a, E2E_DIMS(N)), e2e_tensor("pb", t, b, E2E_DIMS(N)),
                     e2e_tensor("y", t, y, E2E_DIMS(N))};
    e2e_run r = {.source = source, .arg = arg, .narg = 3, .inline_only = inline_only};
    cr_assert(e2e(&r), "%s: %s", text, r.text);
}

static void same_bits(const char *text, const char *type, void *a, void *b) {
    uint32_t built[N], passed[N];
    run_text(text, true, type, a, b, built);
    run_text(text, false, type, a, b, passed);
    for (int i = 0; i < N; i++) {
        cr_expect_eq(built[i], passed[i], "%s, element %d: %08x as built, %08x after the passes",
                     text, i, built[i], passed[i]);
    }
}

Test(host, A014_A018_A025_floats_as_built_and_after_the_passes) {
    float a[N], b[N];
    memcpy(a, floats, sizeof a);
    for (int turn = 0; turn < N; turn += 5) {
        for (int i = 0; i < N; i++) {
            b[i] = floats[(i + turn) % N];
        }
        for (size_t k = 0; k < sizeof float_texts / sizeof *float_texts; k++) {
            same_bits(float_texts[k], "f32", a, b);
        }
    }
}

Test(host, A001_A003_A044_integers_as_built_and_after_the_passes) {
    int32_t a[N], b[N];
    memcpy(a, whole_numbers, sizeof a);
    for (int turn = 0; turn < N; turn += 5) {
        for (int i = 0; i < N; i++) {
            b[i] = whole_numbers[(i + turn) % N];
        }
        for (size_t k = 0; k < sizeof int_texts / sizeof *int_texts; k++) {
            same_bits(int_texts[k], "i32", a, b);
        }
    }
}

static const char *const bodies[] = {
    "var s = a; for i in 0 .. 5 { s = s + a * i; if i == 3 { s -= 1; } } y[0 +: 32] = s;",
    "var s = a; for i in 0 .. 0 { s = s + 1; } y[0 +: 32] = s;",
    "for i in 0 .. 32 { y[i] = pa[31 - i] + pb[i]; }",
    "y[0 +: 32] = a; for i in 0 .. 3 { y[0 +: 16] = slice(b, 0, 8, 16) * 0 + i; }",
    "var n = 10; var s = b; while n > 0 { n -= 1; s = s * 3 + n; } y[0 +: 32] = s;",
    "var n = 10; while n > 0 { n -= 1; if n == 7 { continue; } if n == 2 { break; } y[n] = n; }",
    "y[0 +: 32] = 0; y[a] = b; y[0 +: 32] = y2(a, b);",
    "let (p, q) = split(a, 0); y[0 +: 32] = concat(q, p, 0) + x3(b);",
    "if a2 > 0 { y[0 +: 32] = a; } else { y[0 +: 32] = b; }",
    "y[0 +: 32] = a; if a2 > 0 { return; } y[0 +: 32] = b;",
};

Test(host, A032_A111_A113_control_as_built_and_after_the_passes) {
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        char source[1400];
        snprintf(source, sizeof source,
                 "fn y2(a: i32, b: i32) -> i32 { if a > b { return a; } return b * 2; }\n"
                 "fn x3(a: i32) -> i32 { var s = 0; for i in 0 .. 3 { s += a; } return s; }\n"
                 "kernel k(pa: in i32[32], pb: in i32[32], y: out i32[32], a2: i32) {\n"
                 "    let a = pa[0 +: 32];\n    let b = pb[0 +: 32];\n    %s\n}\n",
                 bodies[k]);
        int32_t a[N], b[N], y[2][N];
        memcpy(a, whole_numbers, sizeof a);
        memcpy(b, whole_numbers, sizeof b);
        memset(y, 0, sizeof y);
        for (int only = 0; only < 2; only++) {
            e2e_arg arg[] = {e2e_i32("pa", a, N), e2e_i32("pb", b, N), e2e_i32("y", y[only], N),
                             e2e_int("a2", 1)};
            e2e_run r = {.source = source, .arg = arg, .narg = 4, .inline_only = only};
            cr_assert(e2e(&r), "%s: %s", bodies[k], r.text);
        }
        cr_expect(memcmp(y[0], y[1], sizeof y[0]) == 0, "%s", bodies[k]);
    }
}

// ---- The library
// --------------------------------------------------------------------------------

typedef struct host {
    tkc_context *context;
    tkc_device *device;
    tkc_program *program;
    tkc_kernel *kernel;
} host;

static void host_load(host *h, const char *text, const tkc_define *d, size_t nd) {
    tkc_report *r = NULL;
    tkc_status s = tkc_program_from_string(h->context, "h.tk", text, strlen(text), &h->program, &r);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(r, false));
    tkc_report_destroy(r);
    s = tkc_kernel_create(h->program, NULL, d, nd, &h->kernel, &r);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(r, false));
    tkc_report_destroy(r);
}

static void host_drop(host *h) {
    tkc_kernel_destroy(h->kernel);
    tkc_program_destroy(h->program);
}

static host host_open(const tkc_config *c) {
    host h = {NULL, NULL, NULL, NULL};
    cr_assert_eq(tkc_context_create(c, &h.context), TKC_OK);
    cr_assert_eq(tkc_device_open(h.context, "cpu", &h.device, NULL), TKC_OK);
    return h;
}

static void host_close(host *h) {
    tkc_device_close(h->device);
    tkc_context_destroy(h->context);
}

static tkc_arg ints(int32_t *at, int64_t n) {
    tkc_arg a = {.kind = TKC_ARG_TENSOR};
    a.tensor = tkc_tensor_make(at, TKC_I32, 1, &n);
    return a;
}

static int32_t first_of(host *h, const char *text, const tkc_define *d, size_t nd) {
    int32_t y[4] = {-1, -1, -1, -1};
    host_load(h, text, d, nd);
    tkc_arg a = ints(y, 4);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tkc_launch(h->kernel, h->device, &a, 1, NULL, NULL), TKC_OK);
    }
    cr_assert_eq(tkc_kernel_variant_count(h->kernel), 1); // unchanged: compiled once
    host_drop(h);
    return y[0];
}

static const char *shared_text; // what the callback gives for "other.tk"

static bool import_shared(void *user, const char *path, tkc_import *i) {
    (void)user;
    (void)path;
    tkc_import_text(i, shared_text, strlen(shared_text));
    return true;
}

Test(host, B48_an_edit_is_seen) {
    tkc_config *c = tkc_config_create();
    tkc_config_import(c, import_shared, NULL);
    host h = host_open(c);
    tkc_config_destroy(c);
    for (int turn = 0; turn < 2; turn++) {
        cr_expect_eq(
            first_of(&h, "const A = 1; kernel k(y: out i32[4]) { y[0 +: 4] = A; }", NULL, 0), 1);
        cr_expect_eq(
            first_of(&h, "const A = 2; kernel k(y: out i32[4]) { y[0 +: 4] = A; }", NULL, 0), 2);
        cr_expect_eq(
            first_of(&h, "kernel k<A: int = 3>(y: out i32[4]) { y[0 +: 4] = A; }", NULL, 0), 3);
        cr_expect_eq(
            first_of(&h, "kernel k<A: int = 4>(y: out i32[4]) { y[0 +: 4] = A; }", NULL, 0), 4);
        tkc_define five = {"A", "5"};
        cr_expect_eq(
            first_of(&h, "kernel k<A: int = 4>(y: out i32[4]) { y[0 +: 4] = A; }", &five, 1), 5);
        cr_expect_eq(
            first_of(&h, "kernel k(y: out i32[4], s: i32 = 6) { y[0 +: 4] = s; }", NULL, 0), 6);
        cr_expect_eq(
            first_of(&h, "kernel k(y: out i32[4], s: i32 = 7) { y[0 +: 4] = s; }", NULL, 0), 7);
        for (int n = 8; n < 10; n++) {
            shared_text = n == 8 ? "const C = 8;" : "const C = 9;";
            cr_expect_eq(first_of(&h,
                                  "import \"other.tk\"; kernel k(y: out i32[4]) { y[0 +: 4] = C; }",
                                  NULL, 0),
                         n);
        }
    }
    host_close(&h);
}

Test(host, B27_sizes_of_64_bits) {
    int64_t dim[3] = {2, 49152, 65536};
    tkc_tensor t = tkc_tensor_make(NULL, TKC_U8, 3, dim);
    cr_expect_eq(t.stride[0], 3221225472);
    cr_expect_eq(t.stride[1], 65536);
    cr_expect_eq(t.stride[2], 1);
    host h = host_open(NULL);
    host_load(&h, "kernel k(x: inout i32[N]) grid (i in cdiv(N, 128)) { x[i] = 1; }", NULL, 0);
    static const int64_t refused[] = {(int64_t)1 << 31, ((int64_t)1 << 32) + 1, (int64_t)1 << 62,
                                      -1, INT64_MIN};
    int32_t x[1] = {0};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tkc_arg a = ints(x, 1);
        a.tensor.dim[0] = refused[i];
        tkc_report *r = NULL;
        cr_expect_eq(tkc_launch(h.kernel, h.device, &a, 1, NULL, &r), TKC_ERROR_LAUNCH);
        cr_expect(tkc_report_errors(r) > 0);
        tkc_report_destroy(r);
    }
    host_drop(&h);
    // Every count is computed exactly: cdiv of the greatest sizes, and products that pass 32 bits.
    host_load(
        &h,
        "kernel k(y: out i32[4], n: i32, w: i64, b: i32) { y[0] = cdiv(n, b); y[1] = cdiv(n, 1); "
        "y[2] = i32(w / 65536); y[3] = i32(i64(n) * b >> 31); }",
        NULL, 0);
    int32_t y[4];
    tkc_arg a[4] = {ints(y, 4),
                    {.kind = TKC_ARG_INT, .i = INT32_MAX},
                    {.kind = TKC_ARG_INT, .i = (int64_t)49152 * 65536},
                    {.kind = TKC_ARG_INT, .i = 128}};
    cr_assert_eq(tkc_launch(h.kernel, h.device, a, 4, NULL, NULL), TKC_OK);
    cr_expect_eq(y[0], 16777216);
    cr_expect_eq(y[1], INT32_MAX);
    cr_expect_eq(y[2], 49152);
    cr_expect_eq(y[3], 127);
    host_drop(&h);
    host_close(&h);
}

static const char doubled[] = "kernel k<BN: int = 16>(x: inout i32[N]) grid (i in cdiv(N, BN)) { "
                              "x[i * BN +: BN] = x[i * BN +: BN] * 2; }";

typedef struct job {
    host *h;
    int32_t x[100];
    bool fine;
} job;

static void *work(void *arg) {
    job *j = arg;
    j->fine = true;
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < 100; i++) {
            j->x[i] = i;
        }
        tkc_arg a = ints(j->x, 100);
        j->fine = j->fine && tkc_launch(j->h->kernel, j->h->device, &a, 1, NULL, NULL) == TKC_OK;
        for (int i = 0; i < 100; i++) {
            j->fine = j->fine && j->x[i] == 2 * i;
        }
    }
    return NULL;
}

Test(host, B52_launches_from_other_threads, .timeout = 60) {
    host h = host_open(NULL);
    for (int warm = 0; warm < 2; warm++) {
        host_load(&h, doubled, NULL, 0);
        static job jobs[8];
        pthread_t thread[8];
        if (warm) {
            jobs[0].h = &h;
            work(&jobs[0]);
        }
        for (int i = 0; i < 8; i++) {
            jobs[i].h = &h;
            cr_assert_eq(pthread_create(&thread[i], NULL, work, &jobs[i]), 0);
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(thread[i], NULL);
            cr_expect(jobs[i].fine);
        }
        cr_expect_eq(tkc_kernel_variant_count(h.kernel), 1);
        host_drop(&h);
    }
    host_close(&h);
}

static bool child(host *h) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        job j = {.h = h};
        work(&j);
        tkc_text t = {NULL, 0};
        tkc_arg a = {.kind = TKC_ARG_UNKNOWN};
        bool fine = j.fine &&
                    tkc_kernel_dump_ir(h->kernel, &a, 1, NULL, 0, NULL, false, &t, NULL) == TKC_OK;
        tkc_text_free(&t);
        _exit(fine ? 0 : 1);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

Test(host, B54_children, .timeout = 60) {
    tkc_config *c = tkc_config_create();
    tkc_config_threads(c, 4);
    host h = host_open(c);
    tkc_config_destroy(c);
    host_load(&h, doubled, NULL, 0);
    tkc_arg a = {.kind = TKC_ARG_UNKNOWN};
    tkc_text t = {NULL, 0};
    cr_assert_eq(tkc_kernel_dump_ir(h.kernel, &a, 1, NULL, 0, NULL, false, &t, NULL), TKC_OK);
    tkc_text_free(&t);
    for (int i = 0; i < 4; i++) { // of a parent that only compiled
        cr_expect(child(&h));
    }
    job j = {.h = &h};
    work(&j);
    cr_expect(j.fine);
    for (int i = 0; i < 4; i++) { // of one that launched
        cr_expect(child(&h));
    }
    work(&j);
    cr_expect(j.fine);
    host_drop(&h);
    host_close(&h);
}

Test(host, B57_too_large_and_then_fine) {
    host h = host_open(NULL);
    host_load(&h,
              "kernel k<B: int = 1>(x: inout i32[N]) { let t = zeros([B, B], i32) + x[0]; x[0] = "
              "sum(t); }",
              NULL, 0);
    int32_t x[1] = {3};
    tkc_arg a = ints(x, 1);
    host big = h;
    tkc_define d = {"B", "65536"};
    tkc_report *r = NULL;
    tkc_status s = tkc_kernel_create(h.program, NULL, &d, 1, &big.kernel, &r);
    if (s == TKC_OK) {
        s = tkc_launch(big.kernel, h.device, &a, 1, NULL, &r);
        tkc_kernel_destroy(big.kernel);
    }
    cr_expect_neq(s, TKC_OK);
    cr_expect_neq(s, TKC_ERROR_INTERNAL);
    cr_expect_eq(strncmp(tkc_report_text(r, false), "h.tk:1:", 7), 0, "%s",
                 tkc_report_text(r, false));
    tkc_report_destroy(r);
    cr_expect_eq(tkc_launch(h.kernel, h.device, &a, 1, NULL, NULL), TKC_OK);
    cr_expect_eq(x[0], 3);
    host_drop(&h);
    host_close(&h);
}
