// SPDX-License-Identifier: Apache-2.0
// The public library: programs, reflection, launches and what they refuse, imports, reports.
#include "runtime/tkc.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char axpy[] =
    "kernel axpy<T: type, BN: int = 64>(x: in T[N], y: inout T[N], a: f32 = 2.0)\n"
    "    grid (i in cdiv(N, BN))\n"
    "{\n"
    "    let at = i * BN;\n"
    "    y[at +: BN] = T(a * f32(x[at +: BN]) + f32(y[at +: BN]));\n"
    "}\n";

typedef struct fixture {
    tkc_context *context;
    tkc_program *program;
    tkc_kernel *kernel;
    tkc_device *device;
    tkc_report *report;
} fixture;

static fixture open_text(const tkc_config *config, const char *text) {
    fixture f;
    memset(&f, 0, sizeof f);
    cr_assert_eq(tkc_context_create(config, &f.context), TKC_OK);
    tkc_status s =
        tkc_program_from_string(f.context, "k.tk", text, strlen(text), &f.program, &f.report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(f.report, false));
    s = tkc_kernel_create(f.program, NULL, NULL, 0, &f.kernel, &f.report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(f.report, false));
    cr_assert_eq(tkc_device_open(f.context, "cpu", &f.device, NULL), TKC_OK);
    return f;
}

static void close_fixture(fixture *f) {
    tkc_report_destroy(f->report);
    tkc_device_close(f->device);
    tkc_kernel_destroy(f->kernel);
    tkc_program_destroy(f->program);
    tkc_context_destroy(f->context);
}

static tkc_arg tensor1(void *data, tkc_dtype t, int64_t n) {
    tkc_arg a = {.kind = TKC_ARG_TENSOR};
    a.tensor = tkc_tensor_make(data, t, 1, &n);
    return a;
}

static void expect_refused(fixture *f, const tkc_arg *args, size_t n, const char *id) {
    tkc_report *r = NULL;
    tkc_status s = tkc_launch(f->kernel, f->device, args, n, NULL, &r);
    cr_expect_eq(s, TKC_ERROR_LAUNCH, "%s: status %d", id, (int)s);
    cr_expect(strstr(tkc_report_text(r, false), id), "wanted %s in: %s", id,
              tkc_report_text(r, false));
    tkc_report_destroy(r);
}

Test(api, launch) {
    fixture f = open_text(NULL, axpy);
    float x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    tkc_arg args[3] = {
        tensor1(x, TKC_F32, 100), tensor1(y, TKC_F32, 100), {.kind = TKC_ARG_FLOAT, .f = 3}};
    cr_assert_eq(tkc_launch(f.kernel, f.device, args, 3, NULL, NULL), TKC_OK);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(y[i], 3 * (float)i + 1);
    }
    // The default of a scalar that is left out; the variant is the same.
    cr_assert_eq(tkc_launch(f.kernel, f.device, args, 2, NULL, NULL), TKC_OK);
    cr_assert_eq(y[7], 3 * 7 + 1 + 2 * 7, "%g", (double)y[7]);
    cr_assert_eq(tkc_kernel_variant_count(f.kernel), 1);
    double xd[3] = {1, 2, 3}, yd[3] = {0, 0, 0};
    tkc_arg wide[2] = {tensor1(xd, TKC_F64, 3), tensor1(yd, TKC_F64, 3)};
    cr_assert_eq(tkc_launch(f.kernel, f.device, wide, 2, NULL, NULL), TKC_OK);
    cr_assert_eq(yd[2], 6);
    cr_assert_eq(tkc_kernel_variant_count(f.kernel), 2);
    close_fixture(&f);
}

Test(api, strides_reach_nothing_else) {
    fixture f = open_text(NULL, axpy);
    float x[40], y[40];
    for (int i = 0; i < 40; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    tkc_arg args[2] = {tensor1(x + 39, TKC_F32, 10), tensor1(y + 2, TKC_F32, 10)};
    args[0].tensor.stride[0] = -4; // x reversed, every fourth
    args[1].tensor.stride[0] = 3;
    cr_assert_eq(tkc_launch(f.kernel, f.device, args, 2, NULL, NULL), TKC_OK);
    for (int i = 0; i < 40; i++) {
        bool ours = i >= 2 && (i - 2) % 3 == 0 && (i - 2) / 3 < 10;
        cr_assert_eq(y[i], ours ? 2 * (float)(39 - 4 * ((i - 2) / 3)) - 1 : -1, "element %d is %g",
                     i, (double)y[i]);
    }
    close_fixture(&f);
}

Test(api, refusals) {
    fixture f = open_text(NULL, axpy);
    float x[64], y[64];
    int32_t n[64];
    tkc_arg good[3] = {
        tensor1(x, TKC_F32, 64), tensor1(y, TKC_F32, 64), {.kind = TKC_ARG_FLOAT, .f = 1}};
    tkc_arg a[4];
#define WITH(index, ...)                                                                           \
    memcpy(a, good, sizeof good);                                                                  \
    a[3] = good[2];                                                                                \
    a[index] = (tkc_arg)__VA_ARGS__
    WITH(0, tensor1(x, TKC_F32, 63));
    expect_refused(&f, a, 3, "'N'");
    WITH(1, tensor1(n, TKC_I32, 64));
    expect_refused(&f, a, 3, "i32");
    WITH(0, tensor1(NULL, TKC_F32, 64));
    expect_refused(&f, a, 3, "null-data");
    WITH(0, tensor1((char *)x + 2, TKC_F32, 64));
    expect_refused(&f, a, 3, "misaligned");
    WITH(0, tensor1(y, TKC_F32, 64));
    expect_refused(&f, a, 3, "overlap");
    WITH(0, tensor1(x, TKC_F32, -1));
    expect_refused(&f, a, 3, "negative-size");
    WITH(0, tensor1(x, TKC_F32, (int64_t)1 << 31));
    expect_refused(&f, a, 3, "'N'");
    WITH(2, {.kind = TKC_ARG_FLOAT, .f = 1e300});
    expect_refused(&f, a, 3, "scalar-range");
    WITH(2, {.kind = TKC_ARG_INT, .i = 16777217});
    expect_refused(&f, a, 3, "scalar-range");
    WITH(2, tensor1(x, TKC_F32, 64));
    expect_refused(&f, a, 3, "argument-kind");
    WITH(0, {.kind = TKC_ARG_INT, .i = 1});
    expect_refused(&f, a, 3, "argument-kind");
    WITH(0, {.kind = TKC_ARG_NONE});
    expect_refused(&f, a, 3, "argument-missing");
    memcpy(a, good, sizeof good);
    a[3] = good[2];
    expect_refused(&f, a, 4, "argument-count");
    int64_t dim2[2] = {8, 8};
    a[0].tensor = tkc_tensor_make(x, TKC_F32, 2, dim2);
    expect_refused(&f, a, 3, "rank");
    // After all that a good launch still works.
    cr_assert_eq(tkc_launch(f.kernel, f.device, good, 3, NULL, NULL), TKC_OK);
    close_fixture(&f);
}

// Strided views may interleave; they overlap only where they share a byte.
Test(api, overlap_is_exact) {
    fixture f = open_text(NULL, axpy);
    float m[128];
    tkc_arg a[2] = {tensor1(m, TKC_F32, 64), tensor1(m + 1, TKC_F32, 64)};
    a[0].tensor.stride[0] = a[1].tensor.stride[0] = 2;
    memset(m, 0, sizeof m);
    cr_expect_eq(tkc_launch(f.kernel, f.device, a, 2, NULL, NULL), TKC_OK);
    a[1].tensor.data = m + 2;
    a[1].tensor.dim[0] = a[0].tensor.dim[0] = 60;
    expect_refused(&f, a, 2, "overlap");
    a[0].tensor.stride[0] = 0; // one element, repeated
    a[1].tensor.data = m + 1;
    cr_expect_eq(tkc_launch(f.kernel, f.device, a, 2, NULL, NULL), TKC_OK);
    a[1].tensor.data = m;
    expect_refused(&f, a, 2, "overlap");
    a[1].tensor.stride[0] = -2; // downwards from the end, meets m[0]
    a[1].tensor.data = m + 118;
    expect_refused(&f, a, 2, "overlap");
    a[1].tensor.data = m + 119;
    cr_expect_eq(tkc_launch(f.kernel, f.device, a, 2, NULL, NULL), TKC_OK);
    close_fixture(&f);
}

Test(api, empty_grid_is_a_success) {
    fixture f = open_text(NULL, axpy);
    tkc_arg a[2] = {tensor1(NULL, TKC_F32, 0), tensor1(NULL, TKC_F32, 0)};
    cr_expect_eq(tkc_launch(f.kernel, f.device, a, 2, NULL, NULL), TKC_OK);
    close_fixture(&f);
}

Test(api, reflection) {
    fixture f = open_text(NULL, axpy);
    cr_expect_str_eq(tkc_kernel_name(f.kernel), "axpy");
    cr_expect_eq(tkc_kernel_param_count(f.kernel), 3);
    const tkc_param_info *y = tkc_kernel_param(f.kernel, 1), *a = tkc_kernel_param(f.kernel, 2);
    cr_expect(y->is_tensor && y->access == TKC_INOUT && !y->optional && y->rank == 1);
    cr_expect_str_eq(y->dtype, "T");
    cr_expect_str_eq(y->dim[0], "N");
    cr_expect(!a->is_tensor && a->optional);
    cr_expect_null(tkc_kernel_param(f.kernel, 3));
    cr_expect_eq(tkc_kernel_cparam_count(f.kernel), 2);
    const tkc_cparam_info *t = tkc_kernel_cparam(f.kernel, 0), *bn = tkc_kernel_cparam(f.kernel, 1);
    cr_expect(t->deduced && !t->value && strcmp(t->kind, "type") == 0);
    cr_expect(!bn->deduced && !bn->fixed && strcmp(bn->value, "64") == 0 &&
              strcmp(bn->kind, "int") == 0);
    cr_expect_str_eq(tkc_kernel_dim(f.kernel, 0), "N");
    cr_expect_str_eq(tkc_kernel_grid_name(f.kernel, 0), "i");
    cr_expect_str_eq(tkc_kernel_grid_size(f.kernel, 0), "cdiv(N, BN)");
    tkc_define d = {"BN", "32"};
    tkc_kernel *k = NULL;
    cr_assert_eq(tkc_kernel_create(f.program, "axpy", &d, 1, &k, NULL), TKC_OK);
    cr_expect(tkc_kernel_cparam(k, 1)->fixed);
    cr_expect_str_eq(tkc_kernel_cparam(k, 1)->value, "32");
    tkc_kernel_destroy(k);
    close_fixture(&f);
}

Test(api, resolve) {
    static const char text[] =
        "kernel t<T: type, K: int>(x: in T[M, N], y: out T[N, M], z: out f16[K] = none)\n"
        "    grid (i in M)\n{\n    y[0 +: 4, i] = x[i, 0 +: 4];\n    if given(z) {\n        z[0] = "
        "1.0;\n    }\n}\n";
    fixture f = open_text(NULL, text);
    float x[6];
    int64_t dim[2] = {2, 3};
    tkc_arg a[3] = {{.kind = TKC_ARG_TENSOR}, {.kind = TKC_ARG_UNKNOWN}, {.kind = TKC_ARG_UNKNOWN}},
            r[3];
    a[0].tensor = tkc_tensor_make(x, TKC_F32, 2, dim);
    tkc_report *report = NULL;
    cr_expect_neq(tkc_resolve(f.kernel, a, 3, NULL, 0, r, &report), TKC_OK);
    cr_expect(strstr(tkc_report_text(report, false), "K"), "%s", tkc_report_text(report, false));
    tkc_report_destroy(report);
    tkc_size k = {"K", 7};
    tkc_define d = {"K", "7"};
    tkc_kernel *with = NULL;
    cr_assert_eq(tkc_kernel_create(f.program, NULL, &d, 1, &with, NULL), TKC_OK);
    cr_assert_eq(tkc_resolve(with, a, 3, NULL, 0, r, NULL), TKC_OK);
    cr_expect(r[1].tensor.dtype == TKC_F32 && r[1].tensor.rank == 2 && r[1].tensor.dim[0] == 3 &&
              r[1].tensor.dim[1] == 2);
    cr_expect(r[2].tensor.dtype == TKC_F16 && r[2].tensor.dim[0] == 7);
    (void)k;
    tkc_kernel_destroy(with);
    close_fixture(&f);
}

static bool give_file(void *user, const char *path, tkc_import *import) {
    int *calls = user;
    (*calls)++;
    if (strcmp(path, "lib/twice.tk") != 0) {
        return false;
    }
    static const char text[] = "fn twice(x: f32) -> f32 { return x + x; }\n";
    tkc_import_text(import, text, sizeof text - 1);
    return true;
}

Test(api, imports_by_callback) {
    int calls = 0;
    tkc_config *c = tkc_config_create();
    tkc_config_import(c, give_file, &calls);
    tkc_context *context = NULL;
    cr_assert_eq(tkc_context_create(c, &context), TKC_OK);
    tkc_config_destroy(c);
    tkc_program *p = NULL;
    tkc_report *r = NULL;
    static const char good[] = "import \"../lib/twice.tk\";\nkernel k(y: out f32[N]) { y[0 +: 4] = "
                               "twice(iota(4) * 1.0); }\n";
    static const char use[] = "import \"../lib/twice.tk\";\nkernel k(y: out f32[N]) { y[0 +: 4] = "
                              "twice(f32(iota(4))); }\n";
    cr_expect_eq(tkc_program_from_string(context, "app/k.tk", good, sizeof good - 1, &p, &r),
                 TKC_ERROR_SOURCE);
    tkc_report_destroy(r);
    cr_assert_eq(tkc_program_from_string(context, "app/k.tk", use, sizeof use - 1, &p, &r), TKC_OK);
    cr_expect_null(r);
    cr_expect_eq(calls, 2);
    tkc_program_destroy(p);
    static const char bad[] = "import \"nothing.tk\";\n";
    cr_expect_eq(tkc_program_from_string(context, "k.tk", bad, sizeof bad - 1, &p, &r),
                 TKC_ERROR_SOURCE);
    cr_expect(strstr(tkc_report_text(r, false), "k.tk:1:1: error: cannot import 'nothing.tk'"),
              "%s", tkc_report_text(r, false));
    tkc_report_destroy(r);
    tkc_context_destroy(context);
}

Test(api, reports_are_text_and_json) {
    tkc_context *context = NULL;
    cr_assert_eq(tkc_context_create(NULL, &context), TKC_OK);
    static const char text[] =
        "kernel k(x: in f32[N], y: out f32[N]) {\n    y[0] = xx[0];\n    let \xff\xfe;\n}\n";
    tkc_program *p = NULL;
    tkc_report *r = NULL;
    cr_assert_eq(tkc_program_from_string(context, "k.tk", text, sizeof text - 1, &p, &r),
                 TKC_ERROR_SOURCE);
    cr_expect_null(p);
    cr_expect_gt(tkc_report_errors(r), 0);
    json_t *list = json_loads(tkc_report_json(r), 0, NULL);
    cr_assert(json_is_array(list), "%s", tkc_report_json(r));
    cr_expect_eq(json_array_size(list), tkc_report_errors(r) + tkc_report_warnings(r));
    json_t *first = json_array_get(list, 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "severity")), "error");
    cr_expect_str_eq(json_string_value(json_object_get(first, "file")), "k.tk");
    cr_expect(json_is_integer(json_object_get(first, "line")));
    cr_expect(json_is_array(json_object_get(first, "notes")));
    json_decref(list);
    tkc_report_destroy(r);
    tkc_context_destroy(context);
}

Test(api, wrong_calls) {
    tkc_context *context = NULL;
    tkc_program *p = NULL;
    tkc_device *d = NULL;
    tkc_report *r = NULL;
    cr_expect_eq(tkc_context_create(NULL, NULL), TKC_ERROR_ARGUMENT);
    cr_assert_eq(tkc_context_create(NULL, &context), TKC_OK);
    cr_expect_eq(tkc_program_from_string(context, "k", NULL, 3, &p, NULL), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_program_from_string(context, NULL, "", 0, &p, NULL), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_device_open(context, "vpu", &d, &r), TKC_ERROR_DEVICE);
    cr_expect(strstr(tkc_report_text(r, false), "no device 'vpu'"), "%s",
              tkc_report_text(r, false));
    cr_expect_null(d);
    tkc_report_destroy(r);
    cr_expect_eq(tkc_program_from_file(context, "/nonexistent/k.tk", &p, &r), TKC_ERROR_IO);
    tkc_report_destroy(r);
    cr_expect_eq(tkc_program_from_string(context, "empty.tk", "", 0, &p, &r), TKC_OK);
    tkc_kernel *k = NULL;
    cr_expect_eq(tkc_kernel_create(p, NULL, NULL, 0, &k, &r), TKC_ERROR_SOURCE);
    tkc_report_destroy(r);
    tkc_program_destroy(p);
    cr_expect_null(tkc_dtype_name((tkc_dtype)99));
    cr_expect_eq(tkc_dtype_size((tkc_dtype)-1), 0);
    tkc_context_destroy(context);
}

static void keep_line(void *user, const char *line) {
    strncat(user, line, 200);
    strncat(user, "\n", 200);
}

Test(api, print_goes_to_the_callback) {
    char lines[1000] = "";
    tkc_config *c = tkc_config_create();
    tkc_config_print(c, keep_line, lines);
    tkc_config_threads(c, 1);
    fixture f =
        open_text(c, "kernel k(x: in i32[N]) grid (i in N) {\n    print(\"x is {}\", x[i]);\n}\n");
    tkc_config_destroy(c);
    int32_t x[2] = {41, 42};
    tkc_arg a = tensor1(x, TKC_I32, 2);
    cr_assert_eq(tkc_launch(f.kernel, f.device, &a, 1, NULL, NULL), TKC_OK);
    cr_expect(strstr(lines, "x is 41") && strstr(lines, "x is 42"), "%s", lines);
    close_fixture(&f);
}

static tkc_status checked(const char *text, int64_t n, bool debug, char *out) {
    tkc_config *c = tkc_config_create();
    tkc_config_debug(c, debug);
    fixture f = open_text(c, text);
    tkc_config_destroy(c);
    int32_t *x = calloc((size_t)n, 4);
    tkc_arg a = tensor1(x, TKC_I32, n);
    tkc_launch_options o = {.size = sizeof o, .check = true};
    tkc_report *r = NULL;
    tkc_status s = tkc_launch(f.kernel, f.device, &a, 1, &o, &r);
    strncpy(out, tkc_report_text(r, false), 999);
    tkc_report_destroy(r);
    free(x);
    close_fixture(&f);
    return s;
}

Test(api, check_mode) {
    char out[1000] = "";
    cr_expect_eq(checked("kernel k(x: out i32[N]) grid (i in N) { x[i] = i; }\n", 100, false, out),
                 TKC_OK, "%s", out);
    cr_expect_eq(
        checked("kernel k(x: out i32[N]) grid (i in N) { x[i / 2] = i; }\n", 100, false, out),
        TKC_ERROR_CHECK);
    cr_expect(strstr(out, "[race]") && strstr(out, "'x'"), "%s", out);
    cr_expect_eq(
        checked("kernel k(x: out i32[N]) grid (i in N - 1) { x[i] = i; }\n", 100, false, out),
        TKC_ERROR_CHECK);
    cr_expect(strstr(out, "1 of 100 elements of 'x' were not written, the first is [99]"), "%s",
              out);
    cr_expect_eq(
        checked("kernel k(x: inout i32[N]) grid (i in N) { let o = atomic_add(x[0], 1); }\n", 100,
                false, out),
        TKC_OK, "%s", out);
    cr_expect_eq(checked("kernel k(x: out i32[N]) grid (i in N) { assume(i < 7); x[i] = 1; }\n",
                         100, false, out),
                 TKC_ERROR_CHECK);
    cr_expect(strstr(out, "i = 7"), "%s", out);
    static const char asserting[] =
        "fn f(i: i32) -> i32 {\n    assert(i != 3, \"three\");\n    return i;\n}\nkernel k(x: out "
        "i32[N]) grid (i in N) { x[i] = f(i); }\n";
    cr_expect_eq(checked(asserting, 10, false, out), TKC_OK, "%s", out);
    cr_expect_eq(checked(asserting, 10, true, out), TKC_ERROR_CHECK);
    cr_expect(strstr(out, "three") && strstr(out, "k.tk:2:") && strstr(out, "called from here"),
              "%s", out);
}

Test(api, format_and_dumps) {
    tkc_context *context = NULL;
    cr_assert_eq(tkc_context_create(NULL, &context), TKC_OK);
    tkc_text t = {NULL, 0}, again = {NULL, 0};
    static const char ugly[] =
        "kernel k( x:in f32[N] ,y : out f32[N])grid(i in N){y[i]=x[i]*2.0;// twice\n}";
    cr_assert_eq(tkc_format(context, "k.tk", ugly, sizeof ugly - 1, &t, NULL), TKC_OK);
    cr_expect(strstr(t.at, "y[i] = x[i] * 2.0;") && strstr(t.at, "// twice"), "%s", t.at);
    cr_assert_eq(tkc_format(context, "k.tk", t.at, t.size, &again, NULL), TKC_OK);
    cr_expect_str_eq(t.at, again.at);
    tkc_program *p = NULL;
    tkc_kernel *k = NULL;
    cr_assert_eq(tkc_program_from_string(context, "k.tk", t.at, t.size, &p, NULL), TKC_OK);
    cr_assert_eq(tkc_kernel_create(p, NULL, NULL, 0, &k, NULL), TKC_OK);
    tkc_text_free(&t);
    tkc_text_free(&again);
    tkc_arg a[2] = {{.kind = TKC_ARG_UNKNOWN}, {.kind = TKC_ARG_UNKNOWN}};
    tkc_report *r = NULL;
    cr_assert_eq(tkc_kernel_dump_ir(k, a, 2, NULL, 0, NULL, false, &t, &r), TKC_OK, "%s",
                 tkc_report_text(r, false));
    tkc_report_destroy(r);
    cr_assert_eq(tkc_ir_run(context, "k.ir", t.at, t.size, "cse", false, &again, &r), TKC_OK, "%s",
                 tkc_report_text(r, false));
    tkc_text_free(&again);
    tkc_text_free(&t);
    cr_expect_eq(tkc_kernel_dump_ir(k, a, 2, NULL, 0, "sce", false, &t, &r), TKC_ERROR_SOURCE);
    cr_expect(strstr(tkc_report_text(r, false), "did you mean 'cse'"), "%s",
              tkc_report_text(r, false));
    tkc_report_destroy(r);
    cr_assert_eq(tkc_program_dump_ast(p, &t), TKC_OK);
    tkc_text_free(&t);
    cr_assert_eq(tkc_kernel_dump_notes(k, a, 2, NULL, 0, &t, NULL), TKC_OK);
    tkc_text_free(&t);
    tkc_kernel_destroy(k);
    tkc_program_destroy(p);
    tkc_context_destroy(context);
}

static void *stop_soon(void *arg) {
    struct timespec t = {0, 50 * 1000 * 1000};
    nanosleep(&t, NULL);
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELAXED);
    return NULL;
}

// A kernel that never ends is ended by the caller.
Test(api, stop, .timeout = 20) {
    fixture f =
        open_text(NULL, "kernel k(x: inout i32[N]) grid (i in 4) {\n    var n = i32(0);\n"
                        "    while n >= 0 {\n        n = n & 3;\n    }\n    x[0] = n;\n}\n");
    int32_t x[1] = {0};
    volatile int stop = 0;
    tkc_arg a = tensor1(x, TKC_I32, 1);
    tkc_launch_options o = {.size = sizeof o, .stop = &stop};
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, stop_soon, (void *)(uintptr_t)&stop), 0);
    tkc_report *r = NULL;
    cr_expect_eq(tkc_launch(f.kernel, f.device, &a, 1, &o, &r), TKC_ERROR_CHECK);
    cr_expect(strstr(tkc_report_text(r, false), "stopped"), "%s", tkc_report_text(r, false));
    tkc_report_destroy(r);
    pthread_join(t, NULL);
    close_fixture(&f);
}

// A warning is said when the program is made, not again at each launch.
Test(api, warnings_once) {
    tkc_context *context = NULL;
    tkc_program *p = NULL;
    tkc_kernel *k = NULL;
    tkc_device *d = NULL;
    tkc_report *r = NULL;
    static const char text[] = "kernel k(x: inout i32[N]) grid (i in N) { x[i] = x[i] / 0; }\n";
    cr_assert_eq(tkc_context_create(NULL, &context), TKC_OK);
    cr_assert_eq(tkc_program_from_string(context, "k.tk", text, sizeof text - 1, &p, &r), TKC_OK);
    cr_expect_eq(tkc_report_warnings(r), 1, "%s", tkc_report_text(r, false));
    tkc_report_destroy(r);
    cr_assert_eq(tkc_kernel_create(p, NULL, NULL, 0, &k, &r), TKC_OK);
    cr_expect_null(r);
    cr_assert_eq(tkc_device_open(context, "cpu", &d, NULL), TKC_OK);
    int32_t x[2] = {3, 4};
    tkc_arg a = tensor1(x, TKC_I32, 2);
    cr_expect_eq(tkc_launch(k, d, &a, 1, NULL, &r), TKC_OK);
    cr_expect_null(r, "%s", tkc_report_text(r, false));
    cr_expect_eq(x[0], 0);
    tkc_report_destroy(r);
    tkc_device_close(d);
    tkc_kernel_destroy(k);
    tkc_program_destroy(p);
    tkc_context_destroy(context);
}
