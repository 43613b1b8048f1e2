// SPDX-License-Identifier: Apache-2.0
// The library under want of memory and under many threads: every allocation fails once, nothing
// leaks, nothing crashes; threads compile and launch one kernel at once.
#include "runtime/tkc.h"
#include "tests/budget.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "import \"std/softmax.tk\";\n"
                           "fn twice(x: f32) -> f32 { return x + x; }\n"
                           "kernel k<T: type, BN: int = next_pow2(N)>(x: in T[M, N], y: out T[M, "
                           "N], bias: in T[N] = none) grid (i in M) {\n"
                           "    var t = f32(x[i, 0 +: BN] else -inf);\n"
                           "    for j in 0 .. 2 { t = twice(t); }\n"
                           "    if given(bias) { t = t + f32(bias[0 +: BN]); }\n"
                           "    let e = exp(t - softmax_base(max(t)));\n"
                           "    y[i, 0 +: BN] = T(e / sum(e));\n"
                           "}\n";

static tkc_status all(budget *b, float *y) {
    tkc_config *c = tkc_config_create();
    tkc_config_allocator(c, budget_take, budget_give, b);
    tkc_config_threads(c, 1);
    tkc_context *context = NULL;
    tkc_program *p = NULL;
    tkc_kernel *k = NULL;
    tkc_device *d = NULL;
    tkc_report *r = NULL;
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t dim[2] = {2, 3};
    tkc_arg a[2] = {{.kind = TKC_ARG_TENSOR}, {.kind = TKC_ARG_TENSOR}};
    a[0].tensor = tkc_tensor_make(x, TKC_F32, 2, dim);
    a[1].tensor = tkc_tensor_make(y, TKC_F32, 2, dim);
    tkc_launch_options o = {.size = sizeof o, .check = true};
    tkc_define define = {"BN", "4"};
    tkc_status s = tkc_context_create(c, &context);
    s = s ? s : tkc_program_from_string(context, "k.tk", text, sizeof text - 1, &p, &r);
    tkc_report_destroy(r);
    r = NULL;
    s = s ? s : tkc_kernel_create(p, "k", &define, 1, &k, &r);
    tkc_report_destroy(r);
    r = NULL;
    s = s ? s : tkc_device_open(context, "cpu", &d, NULL);
    s = s ? s : tkc_launch(k, d, a, 2, &o, &r);
    tkc_report_destroy(r);
    tkc_device_close(d);
    tkc_kernel_destroy(k);
    tkc_program_destroy(p);
    tkc_context_destroy(context);
    tkc_config_destroy(c);
    return s;
}

Test(faults, every_allocation_fails_once) {
    float y[6];
    budget b = {-1, 0, 0};
    cr_assert_eq(all(&b, y), TKC_OK);
    cr_assert_eq(b.live, 0);
    long total = b.made;
    cr_assert_gt(total, 5);
    for (long n = 0; n < total; n++) {
        b = (budget){n, 0, 0};
        tkc_status s = all(&b, y);
        cr_assert(s == TKC_ERROR_MEMORY || s == TKC_OK, "allocation %ld: %s", n,
                  tkc_status_text(s));
        cr_assert_eq(b.live, 0, "allocation %ld leaks %ld", n, b.live);
    }
}

// The same with errors in the program: the report itself may fail to be made.
static tkc_status wrong(budget *b) {
    static const char bad[] = "kernel k(x: in f32[N], y: out f32[N]) { y[0] = z; let q = x; }\n";
    tkc_config *c = tkc_config_create();
    tkc_config_allocator(c, budget_take, budget_give, b);
    tkc_context *context = NULL;
    tkc_program *p = NULL;
    tkc_report *r = NULL;
    tkc_status s = tkc_context_create(c, &context);
    s = s ? s : tkc_program_from_string(context, "k.tk", bad, sizeof bad - 1, &p, &r);
    cr_assert_null(p);
    tkc_report_destroy(r);
    tkc_context_destroy(context);
    tkc_config_destroy(c);
    return s;
}

Test(faults, reports_under_want_of_memory) {
    budget b = {-1, 0, 0};
    cr_assert_eq(wrong(&b), TKC_ERROR_SOURCE);
    long total = b.made;
    for (long n = 0; n < total; n++) {
        b = (budget){n, 0, 0};
        tkc_status s = wrong(&b);
        cr_assert(s == TKC_ERROR_MEMORY || s == TKC_ERROR_SOURCE, "allocation %ld: %s", n,
                  tkc_status_text(s));
        cr_assert_eq(b.live, 0, "allocation %ld leaks %ld", n, b.live);
    }
}

// ---- Threads
enum { THREADS = 8, ROUNDS = 20 };

typedef struct shared {
    tkc_context *context;
    tkc_program *program;
    tkc_kernel *kernel;
    tkc_device *device;
    atomic_int bad;
} shared;

static void one_launch(shared *s, int64_t n) {
    float x[64], y[64];
    for (int i = 0; i < 64; i++) {
        x[i] = 0;
        y[i] = -1;
    }
    int64_t dim[2] = {2, n};
    tkc_arg a[2] = {{.kind = TKC_ARG_TENSOR}, {.kind = TKC_ARG_TENSOR}};
    a[0].tensor = tkc_tensor_make(x, TKC_F32, 2, dim);
    a[1].tensor = tkc_tensor_make(y, TKC_F32, 2, dim);
    if (tkc_launch(s->kernel, s->device, a, 2, NULL, NULL) != TKC_OK || y[0] != 1 / (float)n) {
        atomic_fetch_add(&s->bad, 1);
    }
}

static void *launcher(void *arg) {
    shared *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        one_launch(s, (int64_t)1 << (i % 5)); // five variants, made by whoever comes first
        tkc_define d = {"BN", "8"};
        tkc_kernel *own = NULL;
        if (tkc_kernel_create(s->program, "k", &d, 1, &own, NULL) != TKC_OK) {
            atomic_fetch_add(&s->bad, 1);
        }
        tkc_kernel_destroy(own);
    }
    return NULL;
}

Test(faults, many_threads) {
    shared s;
    memset(&s, 0, sizeof s);
    cr_assert_eq(tkc_context_create(NULL, &s.context), TKC_OK);
    cr_assert_eq(
        tkc_program_from_string(s.context, "k.tk", text, sizeof text - 1, &s.program, NULL),
        TKC_OK);
    cr_assert_eq(tkc_kernel_create(s.program, "k", NULL, 0, &s.kernel, NULL), TKC_OK);
    cr_assert_eq(tkc_device_open(s.context, "cpu", &s.device, NULL), TKC_OK);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, launcher, &s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    cr_expect_eq(s.bad, 0);
    cr_expect_eq(tkc_kernel_variant_count(s.kernel), 5);
    tkc_device_close(s.device);
    tkc_kernel_destroy(s.kernel);
    tkc_program_destroy(s.program);
    tkc_context_destroy(s.context);
}
