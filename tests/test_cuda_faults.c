// SPDX-License-Identifier: Apache-2.0
// Device "cuda" where things go wrong: each call of the driver fails once, each allocation fails
// once, forks, threads, contexts of others, devices and kernels destroyed in any order.
#include "tests/budget.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "kernel twice<BN: int = 64>(x: in f32[N], y: out f32[N])\n"
                           "    grid (i in cdiv(N, BN))\n"
                           "{\n"
                           "    assert(N > 0);\n"
                           "    print(\"{}\", i);\n"
                           "    y[i * BN +: BN] = x[i * BN +: BN] * 2.0;\n"
                           "}\n";

static float *room(void) {
    static _Alignas(64) float memory[4096];
    return memory;
}

static void vectors(tkc_arg a[2], int64_t n) {
    a[0] = gpu_tensor(room(), TKC_F32, 1, &n);
    a[1] = gpu_tensor(room() + 2048, TKC_F32, 1, &n);
}

// ---- Every call fails once

static tkc_status use(gpu_env *e, tkc_report **r) {
    tkc_arg a[2];
    tkc_prepared *p = NULL;
    tkc_event *from = NULL, *to = NULL;
    double ms = 0;
    void *memory = NULL;
    char bytes[16] = "";
    vectors(a, 100);
    tkc_status s = tkc_device_open(e->context, "cuda:1", &e->device, r);
    s = s ? s : tkc_launch(e->kernel, e->device, a, 2, NULL, r);
    s = s ? s : tkc_launch(e->kernel, e->device, a, 2, NULL, r);
    s = s ? s : tkc_prepared_create(e->kernel, e->device, a, 2, &p, r);
    s = s ? s : tkc_prepared_set(p, 1, &a[1], r);
    s = s ? s : tkc_prepared_launch(p, NULL, r);
    a[0].tensor.data = room() + 1;
    the_backend.shared = 100000; // must be asked for
    s = s ? s : tkc_prepare(e->kernel, e->device, a, 2, r);
    the_backend.shared = 0;
    s = s ? s : tkc_launch(e->kernel, e->device, a, 2, NULL, r);
    s = s ? s : tkc_device_alloc(e->device, 16, &memory, r);
    s = s ? s : tkc_device_copy(e->device, memory, bytes, 16, TKC_TO_DEVICE, r);
    s = s ? s : tkc_device_copy(e->device, memory, memory, 16, TKC_WITHIN_DEVICE, r);
    s = s ? s : tkc_device_copy(e->device, bytes, memory, 16, TKC_FROM_DEVICE, r);
    s = s ? s : tkc_event_create(e->device, &from, r);
    s = s ? s : tkc_event_create(e->device, &to, r);
    s = s ? s : tkc_event_record(from, NULL, r);
    s = s ? s : tkc_device_copy_async(e->device, memory, memory, 16, NULL, r);
    s = s ? s : tkc_event_record(to, NULL, r);
    s = s ? s : tkc_event_elapsed(from, to, &ms, r);
    s = s ? s : tkc_device_synchronize(e->device, r);
    tkc_event_destroy(from);
    tkc_event_destroy(to);
    tkc_prepared_destroy(p);
    if (memory) {
        tkc_status f = tkc_device_free(e->device, memory);
        s = s ? s : f;
    }
    tkc_device_close(e->device);
    e->device = NULL;
    return s;
}

static gpu_env closed(bool debug) {
    gpu_env e = gpu_config(FAKE_CUDA);
    the_backend.maps = 2;
    tkc_config_debug(e.config, debug);
    gpu_program(&e, text);
    return e;
}

static void sweep_calls(bool debug) {
    gpu_env e = closed(debug);
    e.fake->calls = 0;
    cr_assert_eq(use(&e, &e.report), TKC_OK, "%s", gpu_said(&e));
    long total = e.fake->calls;
    cr_assert_gt(total, 30);
    for (long n = 1; n <= total; n++) {
        gpu_close(&e);
        e = closed(debug);
        e.fake->fail_at = n;
        tkc_status s = use(&e, &e.report);
        e.fake->fail_at = 0;
        if (s != TKC_OK && e.report) { // a free has no report
            cr_expect_eq(s, TKC_ERROR_DEVICE, "call %ld", n);
            cr_expect(strstr(gpu_said(&e), "CUDA_ERROR_UNKNOWN (some words)"), "call %ld: %s", n,
                      gpu_said(&e));
        }
        gpu_no_leaks(e.fake);
        tkc_report_destroy(e.report);
        e.report = NULL;
        cr_expect_eq(use(&e, &e.report), TKC_OK, "after call %ld: %s", n, gpu_said(&e));
    }
    gpu_close(&e);
}

Test(cuda_faults, every_driver_call_fails_once) {
    sweep_calls(false);
    sweep_calls(true);
}

// ---- Every allocation fails once

static tkc_status whole_life(budget *b, const char *fail, const char *cache, bool debug) {
    gpu_env e = gpu_config(FAKE_CUDA);
    the_backend.maps = 2;
    tkc_config_debug(e.config, debug);
    tkc_config_allocator(e.config, budget_take, budget_give, b);
    tkc_config_cache(e.config, cache, 1 << 20);
    e.fake->fail_name = fail;
    tkc_status s = tkc_context_create(e.config, &e.context);
    s = s ? s
          : tkc_program_from_string(e.context, "k.tk", text, sizeof text - 1, &e.program,
                                    &e.report);
    s = s ? s : tkc_kernel_create(e.program, NULL, NULL, 0, &e.kernel, &e.report);
    s = s ? s : use(&e, &e.report);
    e.fake->fail_name = NULL;
    gpu_close(&e);
    return s;
}

static void sweep(const char *fail, const char *cache, bool debug, tkc_status want) {
    budget b = {-1, 0, 0};
    cr_assert_eq(whole_life(&b, fail, cache, debug), want);
    cr_assert_eq(b.live, 0);
    long total = b.made;
    for (long n = 0; n < total; n++) {
        b = (budget){n, 0, 0};
        tkc_status s = whole_life(&b, fail, cache, debug);
        cr_assert(s == TKC_ERROR_MEMORY || s == want, "allocation %ld: %s", n, tkc_status_text(s));
        cr_assert_eq(b.live, 0, "allocation %ld leaks %ld", n, b.live);
    }
}

Test(cuda_faults, every_allocation_fails_once) {
    char folder[] = "/tmp/tkc-test-XXXXXX";
    cr_assert(mkdtemp(folder));
    for (int debug = 0; debug < 2; debug++) {
        sweep(NULL, NULL, debug, TKC_OK);
        sweep(NULL, folder, debug, TKC_OK);
        sweep("cuModuleGetFunction", NULL, debug, TKC_ERROR_DEVICE);
        sweep("cuLaunchKernel", NULL, debug, TKC_ERROR_DEVICE);
    }
    sweep("cuMemAlloc_v2", NULL, true, TKC_ERROR_DEVICE);
    sweep("cuStreamSynchronize", NULL, true, TKC_ERROR_DEVICE);
    sweep("cuDevicePrimaryCtxRetain", NULL, false, TKC_ERROR_DEVICE);
    tkc_cache_clear(folder, NULL);
    rmdir(folder);
}

// ---- Words

Test(cuda_faults, what_the_assembler_says) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_arg a[2];
    vectors(a, 100);
    e.fake->fail_name = "cuModuleLoadDataEx";
    e.fake->fail_code = 218;
    e.fake->jit_log = "ptxas line 3; error: no such thing\nptxas fatal: aborted";
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:1:1: error: kernel 'twice' (sm_90a) cannot be loaded on Fake GPU 0: "
                     "CUDA_ERROR_INVALID_PTX (some words)"),
              "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "ptxas line 3; error: no such thing"), "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "ptxas fatal: aborted"), "%s", gpu_said(&e));
    e.fake->fail_name = NULL;
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(the_backend.compiled, 1);
    gpu_close(&e);
}

Test(cuda_faults, what_shows_later) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_arg a[2];
    vectors(a, 100);
    e.fake->pending = 700;
    cr_expect_eq(tkc_device_synchronize(e.device, &e.report), TKC_ERROR_DEVICE);
    cr_expect(!strstr(gpu_said(&e), "twice"), "%s", gpu_said(&e));
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    e.fake->pending = 700;
    cr_expect_eq(tkc_device_synchronize(e.device, &e.report), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "work on device 'cuda' failed: CUDA_ERROR_ILLEGAL_ADDRESS (an "
                                   "illegal memory access was encountered)"),
              "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "the kernel launched last is 'twice' (k.tk:1)"), "%s",
              gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "help: "), "%s", gpu_said(&e));
    tkc_report_destroy(e.report);
    e.report = NULL;
    e.fake->pending = 700; // a kernel that is gone is not named
    tkc_kernel_destroy(e.kernel);
    e.kernel = NULL;
    cr_expect_eq(tkc_device_synchronize(e.device, &e.report), TKC_ERROR_DEVICE);
    cr_expect(!strstr(gpu_said(&e), "twice"), "%s", gpu_said(&e));
    gpu_close(&e);
}

// What the machine has is asked for without a report.
Test(cuda_faults, machine) {
    gpu_env e = closed(false);
    tkc_build b = {.size = sizeof b};
    tkc_gpu g = {.size = sizeof g};
    for (long n = 1; n < 12; n++) {
        e.fake->fail_at = n;
        tkc_status s = tkc_build_info(e.context, &b);
        s = s || !b.gpus ? s : tkc_gpu_info(e.context, 1, &g);
        cr_expect(s == TKC_OK || s == TKC_ERROR_DEVICE, "call %ld", n);
        cr_expect(s != TKC_OK || b.gpus || strstr(b.why, "CUDA_ERROR_UNKNOWN"), "%s", b.why);
        e.fake->fail_at = 0;
        cr_expect_eq(tkc_build_info(e.context, &b), TKC_OK);
        cr_expect_eq(tkc_gpu_info(e.context, 1, &g), TKC_OK);
    }
    gpu_close(&e);
}

// ---- Others' contexts, devices, orders

typedef int (*push_fn)(void *context);
typedef int (*get_fn)(void **context);
typedef int (*retain_fn)(void **context, int device);

static void *driver_function(const char *name) {
    void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

Test(cuda_faults, the_current_context_stays) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    void *f[3] = {driver_function("cuDevicePrimaryCtxRetain"),
                  driver_function("cuCtxPushCurrent_v2"), driver_function("cuCtxGetCurrent")};
    retain_fn retain;
    push_fn push;
    get_fn get;
    memcpy(&retain, &f[0], sizeof retain);
    memcpy(&push, &f[1], sizeof push);
    memcpy(&get, &f[2], sizeof get);
    void *other = NULL, *own = NULL, *now = NULL;
    tkc_arg a[2];
    vectors(a, 100);
    cr_assert_eq(retain(&other, 1), 0);
    cr_assert_eq(retain(&own, 0), 0);
    push(other);
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    get(&now);
    cr_expect_eq(now, other);
    cr_expect_eq(e.fake->launch.device, 0);
    // Where the right one is current already, the launch is all there is.
    push(own);
    gpu_clear_log(e.fake);
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(e.fake->log, "cuCtxGetCurrent cuLaunchKernel ");
    get(&now);
    cr_expect_eq(now, own);
    e.fake->retains -= 2;
    e.fake->pushed -= 2;
    gpu_close(&e);
}

Test(cuda_faults, two_devices) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_device *d = NULL;
    tkc_arg a[2];
    vectors(a, 100);
    cr_assert_eq(tkc_device_open(e.context, "cuda:1", &d, NULL), TKC_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tkc_launch(e.kernel, e.device, a, 2, NULL, NULL), TKC_OK);
        cr_expect_eq(e.fake->launch.device, 0);
        cr_assert_eq(tkc_launch(e.kernel, d, a, 2, NULL, NULL), TKC_OK);
        cr_expect_eq(e.fake->launch.device, 1);
    }
    cr_expect_eq(the_backend.compiled, 1); // one variant, loaded twice
    cr_expect_eq(e.fake->modules, 2);
    tkc_device_close(e.device); // before the kernel
    cr_expect_eq(e.fake->modules, 1);
    cr_assert_eq(tkc_launch(e.kernel, d, a, 2, NULL, NULL), TKC_OK);
    e.device = NULL;
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    cr_assert_eq(tkc_launch(e.kernel, e.device, a, 2, NULL, NULL), TKC_OK);
    cr_expect_eq(e.fake->modules, 2);
    tkc_kernel_destroy(e.kernel); // before the devices
    e.kernel = NULL;
    cr_expect_eq(e.fake->modules, 0);
    tkc_device_close(d);
    gpu_close(&e);
}

Test(cuda_faults, other_capabilities) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, text);
    static const struct {
        int major, minor;
        const char *arch;
    } rows[] = {{8, 0, "sm_80"},  {8, 6, "sm_86"},   {8, 7, "sm_86"},   {8, 9, "sm_89"},
                {9, 0, "sm_90a"}, {10, 0, "sm_100"}, {10, 3, "sm_100"}, {12, 1, "sm_120"}};
    tkc_arg a[2];
    vectors(a, 100);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        e.fake->major[0] = rows[i].major;
        e.fake->minor[0] = rows[i].minor;
        cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
        cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
        cr_expect(strstr(e.fake->image, rows[i].arch), "%s: %s", rows[i].arch, e.fake->image);
        tkc_device_close(e.device);
        e.device = NULL;
    }
    gpu_close(&e);
}

// ---- Forks

static int child_status(void) {
    int status = 0;
    cr_assert_gt(wait(&status), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

Test(cuda_faults, forks) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_prepared *p = NULL;
    tkc_arg a[2];
    vectors(a, 100);
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 2, &p, NULL), TKC_OK);
    if (fork() == 0) {
        int bad = 0;
        void *memory;
        tkc_report *r = NULL;
        bad |= tkc_launch(e.kernel, e.device, a, 2, NULL, &r) != TKC_ERROR_DEVICE;
        bad |= !r || !strstr(tkc_report_text(r, false), "forked after the GPU driver");
        bad |= (tkc_prepared_launch(p, NULL, &r) != TKC_ERROR_DEVICE) << 1;
        bad |= (!r || !strstr(tkc_report_text(r, false), "forked after the GPU driver")) << 1;
        bad |= (tkc_device_alloc(e.device, 4, &memory, NULL) != TKC_ERROR_DEVICE) << 2;
        bad |= (tkc_device_synchronize(e.device, NULL) != TKC_ERROR_DEVICE) << 2;
        tkc_device *d = NULL;
        bad |= (tkc_device_open(e.context, "cuda", &d, NULL) != TKC_ERROR_DEVICE) << 3;
        long calls = e.fake->calls;
        tkc_prepared_destroy(p);
        tkc_kernel_destroy(e.kernel);
        tkc_device_close(e.device);
        bad |= (e.fake->calls != calls) << 4; // what is another process's is left alone
        tkc_context *own = NULL;
        bad |= (tkc_context_create(e.config, &own) != TKC_OK) << 5;
        bad |= (tkc_device_open(own, "cuda", &d, &r) != TKC_ERROR_DEVICE) << 5;
        bad |= (!r || !strstr(tkc_report_text(r, false), "forked")) << 5;
        _exit(bad);
    }
    cr_expect_eq(child_status(), 0);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    tkc_prepared_destroy(p);
    gpu_close(&e);
}

Test(cuda_faults, a_fork_before_is_fine) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, text);
    tkc_arg a[2];
    vectors(a, 100);
    if (fork() == 0) {
        bool ok = tkc_device_open(e.context, "cuda", &e.device, NULL) == TKC_OK &&
                  gpu_launch(&e, a, 2, NULL) == TKC_OK;
        _exit(ok ? 0 : 1);
    }
    cr_expect_eq(child_status(), 0);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK);
    gpu_close(&e);
}

// ---- Threads

enum { THREADS = 8, ROUNDS = 40 };

typedef struct shared {
    gpu_env *e;
    tkc_prepared *p;
    atomic_int bad;
} shared;

static void *launcher(void *arg) {
    shared *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        tkc_arg a[2];
        vectors(a, 100);
        a[0].tensor.data = room() + i % 3; // two variants
        bool ok = tkc_launch(s->e->kernel, s->e->device, a, 2, NULL, NULL) == TKC_OK &&
                  tkc_prepared_launch(s->p, NULL, NULL) == TKC_OK;
        tkc_kernel *own = NULL;
        tkc_device *device = NULL;
        ok = ok && tkc_kernel_create(s->e->program, NULL, NULL, 0, &own, NULL) == TKC_OK &&
             tkc_device_open(s->e->context, "cuda:1", &device, NULL) == TKC_OK &&
             tkc_launch(own, device, a, 2, NULL, NULL) == TKC_OK &&
             tkc_launch(own, s->e->device, a, 2, NULL, NULL) == TKC_OK;
        if (i % 2) {
            tkc_device_close(device);
            tkc_kernel_destroy(own);
        } else {
            tkc_kernel_destroy(own);
            tkc_device_close(device);
        }
        atomic_fetch_add(&s->bad, !ok);
    }
    return NULL;
}

Test(cuda_faults, many_threads) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    shared s = {.e = &e};
    tkc_arg a[2];
    vectors(a, 100);
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 2, &s.p, NULL), TKC_OK);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, launcher, &s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    cr_expect_eq(s.bad, 0);
    cr_expect_eq(tkc_kernel_variant_count(e.kernel), 2);
    tkc_prepared_destroy(s.p);
    gpu_close(&e);
}
