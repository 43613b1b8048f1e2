// SPDX-License-Identifier: Apache-2.0
// Device "cuda" on a fake driver: opening, launches, what they pass to the driver and what they do
// not ask of it, prepared launches, memory.
#include "runtime/cuda_abi.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAUNCH "cuCtxGetCurrent cuCtxPushCurrent_v2 cuLaunchKernel cuCtxPopCurrent_v2 "

static const char axpy[] =
    "kernel axpy<T: type, BN: int = 64>(x: in T[N], y: inout T[N], a: f32 = 2.0)\n"
    "    grid (i in cdiv(N, BN))\n"
    "{\n"
    "    let at = i * BN;\n"
    "    y[at +: BN] = T(a * f32(x[at +: BN]) + f32(y[at +: BN]));\n"
    "}\n";

static float *room(void) { // 64-byte aligned
    static _Alignas(64) float memory[4096];
    return memory;
}

static tkc_arg vector(float *p, int64_t n) { return gpu_tensor(p, TKC_F32, 1, &n); }

// ---- Opening

static void expect_device(gpu_env *e, const char *name, const char *is) {
    tkc_device *d = NULL;
    tkc_report *r = NULL;
    tkc_status s = tkc_device_open(e->context, name, &d, &r);
    cr_expect_eq(s, TKC_OK, "%s: %s", name, r ? tkc_report_text(r, false) : "");
    cr_expect_str_eq(tkc_device_name(d) ? tkc_device_name(d) : "", is);
    tkc_report_destroy(r);
    tkc_device_close(d);
}

static void expect_no_device(gpu_env *e, const char *name, const char *why) {
    tkc_device *d = NULL;
    tkc_report *r = NULL;
    cr_expect_eq(tkc_device_open(e->context, name, &d, &r), TKC_ERROR_DEVICE, "%s", name);
    cr_expect_null(d);
    cr_expect(r && strstr(tkc_report_text(r, false), why), "%s: wanted '%s' in: %s", name, why,
              r ? tkc_report_text(r, false) : "");
    tkc_report_destroy(r);
}

Test(cuda, opening) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, axpy);
    cr_expect_eq(e.fake->calls, 0); // compiling alone never touches the driver
    expect_device(&e, "cpu", "cpu");
    cr_expect_eq(e.fake->calls, 0);
    expect_device(&e, "cuda", "cuda");
    expect_device(&e, "cuda:0", "cuda");
    expect_device(&e, "cuda:1", "cuda:1");
    expect_device(&e, "auto", "cuda");
    expect_no_device(&e, "cuda:2", "this machine has 2 GPUs");
    expect_no_device(&e, "cuda:9999", "this machine has 2 GPUs");
    expect_no_device(&e, "cuda:", "no device 'cuda:'");
    expect_no_device(&e, "cuda:x", "no device 'cuda:x'");
    expect_no_device(&e, "cuda:1x", "no device 'cuda:1x'");
    expect_no_device(&e, "cpu:0", "no device 'cpu:0'");
    expect_no_device(&e, "rocm", "auto, cuda, cpu");
    e.fake->major[0] = 7;
    expect_no_device(&e, "cuda", "compute capability 7.0; 8.0 or newer");
    expect_device(&e, "auto", "cpu");
    gpu_close(&e);
}

Test(cuda, no_driver) {
    gpu_env e = gpu_config(FAKE_CUDA);
    e.config->gpu_driver = "/nonexistent/libcuda.so.1";
    gpu_program(&e, axpy);
    expect_no_device(&e, "cuda", "this machine has no NVIDIA driver");
    expect_device(&e, "auto", "cpu");
    gpu_close(&e);
}

Test(cuda, no_gpu) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, axpy);
    e.fake->devices = 0;
    expect_no_device(&e, "cuda", "the GPU driver sees no GPU");
    e.fake->devices = 1;
    e.fake->fail_name = "cuInit";
    expect_no_device(&e, "cuda", "does not start: CUDA_ERROR_UNKNOWN");
    e.fake->fail_name = NULL;
    expect_device(&e, "cuda", "cuda"); // a failure is not remembered
    expect_no_device(&e, "cuda:1", "this machine has 1 GPU");
    gpu_close(&e);
}

Test(cuda, no_backend) {
    gpu_env e = gpu_config(FAKE_CUDA);
    e.config->gpu_compile = NULL;
    if (!gpu_backend(e.config)) {
        gpu_program(&e, axpy);
        expect_no_device(&e, "cuda", "this build has no GPU code generator");
        expect_device(&e, "auto", "cpu");
        cr_expect_eq(e.fake->calls, 0);
    }
    gpu_close(&e);
}

// ---- Launches

Test(cuda, launches_do_nothing_else) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_arg a[2] = {vector(m, 1000), vector(m + 1024, 1000)};
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(the_backend.compiled, 1);
    cr_expect_str_eq(the_backend.arch, "sm_90a");
    cr_expect_str_eq(e.fake->image, "// entry axpy for sm_90a");
    cr_expect_eq(e.fake->modules, 1);
    cr_expect(strstr(e.fake->log, "cuModuleGetFunction cuFuncLoad "), "%s", e.fake->log);
    gpu_clear_log(e.fake);
    e.fake->capturing = true;
    int stream;
    a[0] = vector(m, 500);
    a[1] = vector(m + 2048, 500);
    cr_assert_eq(gpu_launch(&e, a, 2, &stream), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(e.fake->log, LAUNCH);
    cr_expect_eq(e.fake->launch.stream, &stream);
    cr_expect_str_eq(e.fake->launch.kernel, "axpy");
    cr_expect_eq(e.fake->launch.grid[0], 8);
    cr_expect_eq(e.fake->launch.grid[1], 1);
    cr_expect_eq(e.fake->launch.block[0], 128);
    // What would have to be loaded within a capture is refused in words.
    a[0] = vector(m + 1, 500);
    cr_expect_eq(gpu_launch(&e, a, 2, &stream), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "tkc_prepare"), "%s", gpu_said(&e));
    e.fake->capturing = false;
    tkc_report_destroy(e.report);
    cr_assert_eq(tkc_prepare(e.kernel, e.device, a, 2, &e.report), TKC_OK);
    cr_expect_eq(e.fake->launch.count, 2);
    e.fake->capturing = true;
    cr_expect_eq(gpu_launch(&e, a, 2, &stream), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(tkc_kernel_variant_count(e.kernel), 2);
    gpu_close(&e);
}

typedef struct axpy_block {
    uint64_t x;
    int32_t nx;
    int64_t sx;
    uint64_t y;
    int32_t ny;
    int64_t sy;
    float a;
    int32_t grid;
} axpy_block;

Test(cuda, parameters) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_arg a[3] = {vector(m + 999, 100), vector(m + 1024, 100), {.kind = TKC_ARG_FLOAT, .f = 3}};
    a[0].tensor.stride[0] = -3;
    cr_assert_eq(gpu_launch(&e, a, 3, NULL), TKC_OK, "%s", gpu_said(&e));
    axpy_block b;
    memcpy(&b, e.fake->launch.params, sizeof b);
    cr_expect_eq(e.fake->launch.params_size, offsetof(axpy_block, grid) + 4);
    cr_expect_eq(b.x, (uint64_t)(uintptr_t)(m + 999));
    cr_expect_eq(b.nx, 100);
    cr_expect_eq(b.sx, -3);
    cr_expect_eq(b.y, (uint64_t)(uintptr_t)(m + 1024));
    cr_expect_eq(b.ny, 100);
    cr_expect_eq(b.sy, 1);
    cr_expect_eq(b.a, 3);
    cr_expect_eq(b.grid, 2);
    const tk_tensor_facts all =
        TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_WHOLE | TK_FACT_NEAR | TK_FACT_MAP;
    cr_expect_eq(the_backend.facts[0], TK_FACT_NEAR);
    cr_expect_eq(the_backend.facts[1], all);
    gpu_close(&e);
}

static const char mixed[] = "@warps(4) kernel k<BM: int = 16, BN: int = 16>(flag: bool, x: in "
                            "f16[M, N], n: i64, y: out f16[M, N],\n"
                            "                       h: f16, bias: in f16[N] = none, c: i8 = 3)\n"
                            "    grid (i in cdiv(M, BM), j in cdiv(N, BN))\n"
                            "{\n"
                            "    var t = x[i * BM +: BM, j * BN +: BN];\n"
                            "    if given(bias) { t = t + bias[j * BN +: BN]; }\n"
                            "    if flag { t = t * h + f16(n + i64(c)); }\n"
                            "    y[i * BM +: BM, j * BN +: BN] = t;\n"
                            "}\n";

static const unsigned char *param_at(const gpu_env *e, size_t at) {
    return e->fake->launch.params + at;
}

static int32_t i32_at(const gpu_env *e, size_t at) {
    int32_t x;
    memcpy(&x, param_at(e, at), sizeof x);
    return x;
}

static int64_t i64_at(const gpu_env *e, size_t at) {
    int64_t x;
    memcpy(&x, param_at(e, at), sizeof x);
    return x;
}

static void check_mixed(gpu_env e) {
    char *m = (char *)room();
    int64_t dim[2] = {40, 24};
    tkc_arg a[5] = {{.kind = TKC_ARG_INT, .i = 1},
                    gpu_tensor(m, TKC_F16, 2, dim),
                    {.kind = TKC_ARG_INT, .i = -5},
                    gpu_tensor(m + 4096, TKC_F16, 2, dim),
                    {.kind = TKC_ARG_FLOAT, .f = 1.5}};
    a[3].tensor.stride[0] = 25;
    cr_assert_eq(gpu_launch(&e, a, 5, NULL), TKC_OK, "%s", gpu_said(&e));
    // bool 0 | x 8, 16, 20, 24, 32 | i64 40 | y 48, 56, 60, 64, 72 | f16 80 | i8 82 | grid 84, 88
    cr_expect_eq(param_at(&e, 0)[0], 1);
    cr_expect_eq(i64_at(&e, 8), (int64_t)(intptr_t)m);
    cr_expect_eq(i32_at(&e, 16), 40);
    cr_expect_eq(i32_at(&e, 20), 24);
    cr_expect_eq(i64_at(&e, 24), 24);
    cr_expect_eq(i64_at(&e, 32), 1);
    cr_expect_eq(i64_at(&e, 40), -5);
    cr_expect_eq(i64_at(&e, 64), 25);
    cr_expect_eq(param_at(&e, 80)[0], 0x00);
    cr_expect_eq(param_at(&e, 81)[0], 0x3e);
    cr_expect_eq(param_at(&e, 82)[0], 3);
    cr_expect_eq(i32_at(&e, 84), 3);
    cr_expect_eq(i32_at(&e, 88), 2);
    cr_expect_eq(e.fake->launch.params_size, 92);
    cr_expect_eq(e.fake->launch.grid[0], 6);
}

Test(cuda, parameters_of_all_kinds) {
    gpu_env e = gpu_open(FAKE_CUDA, mixed);
    check_mixed(e);
    cr_expect(the_backend.facts[1] & TK_FACT_WHOLE);
    cr_expect_eq(the_backend.facts[3], TK_FACT_UNIT | TK_FACT_NEAR); // 50 bytes from row to row
    gpu_close(&e);
}

// The build's own back end agrees on where the parameters are.
Test(cuda, parameters_of_the_build) {
    gpu_env e = gpu_config(FAKE_CUDA);
    e.config->gpu_compile = NULL;
    if (gpu_backend(e.config)) {
        gpu_program(&e, mixed);
        cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, &e.report), TKC_OK);
        check_mixed(e);
    }
    gpu_close(&e);
}

static const char over[] = "kernel k(n: i32, x: in f32[N], y: out f32[N]) grid (a in n, b in n) {\n"
                           "    y[0] = x[0];\n"
                           "}\n";

Test(cuda, grids) {
    gpu_env e = gpu_open(FAKE_CUDA, over);
    float *m = room();
    tkc_arg a[3] = {{.kind = TKC_ARG_INT, .i = 0}, vector(m, 4), vector(m + 64, 4)};
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->launch.count, 0);
    a[0].i = 46340; // its square is below 2^31
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->launch.grid[0], 46340u * 46340u);
    a[0].i = 46341;
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "2147488281 programs (a = 46341, b = 46341)"), "%s",
              gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "at most 2147483647"), "%s", gpu_said(&e));
    a[0].i = -1;
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "grid-negative"), "%s", gpu_said(&e));
    gpu_close(&e);
}

// Tensors without elements need no memory; a grid without programs launches nothing.
Test(cuda, nothing_there) {
    gpu_env e = gpu_open(FAKE_CUDA, over);
    tkc_arg a[3] = {{.kind = TKC_ARG_INT, .i = 2}, vector(NULL, 0), vector(NULL, 0)};
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->launch.count, 1);
    tkc_prepared *p = NULL;
    a[0].i = 0;
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 3, &p, NULL), TKC_OK);
    gpu_clear_log(e.fake);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_str_eq(e.fake->log, "");
    tkc_prepared_destroy(p);
    a[1] = vector(room(), 4);
    a[2] = vector(NULL, 4);
    cr_expect_eq(gpu_launch(&e, a, 3, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "no memory"), "%s", gpu_said(&e));
    gpu_close(&e);
}

static const char three[] = "kernel k(x: in f32[N], y: in f32[N], z: out f32[N]) {\n"
                            "    z[0] = x[0] + y[0];\n"
                            "}\n";

Test(cuda, specialisation_is_bounded) {
    gpu_env e = gpu_open(FAKE_CUDA, three);
    float *m = room();
    for (int i = 0; i < 64; i++) {
        tkc_arg a[3];
        for (int t = 0; t < 3; t++) {
            int bits = i >> 2 * t & 3;
            a[t] = vector(m + 1024 * t + (bits & 1), 100);
            a[t].tensor.stride[0] = 1 + (bits >> 1);
        }
        cr_assert_eq(gpu_launch(&e, a, 3, NULL), TKC_OK, "%d: %s", i, gpu_said(&e));
    }
    tkc_text t;
    cr_expect_eq(tkc_kernel_variant_text(e.kernel, 16, &t), TKC_OK); // the first
#define ALL                                                                                        \
    "last stride 1, aligned to 16 bytes, rows of whole 16 bytes, offsets of 32 bits, "             \
    "strides for tensor maps"
    cr_expect_str_eq(t.at, "cuda sm_90a: ; x: " ALL "; y: " ALL "; z: " ALL);
    tkc_text_free(&t);
    cr_expect_eq(tkc_kernel_variant_text(e.kernel, 0, &t), TKC_OK); // the last
    cr_expect_str_eq(t.at, "cuda sm_90a: ; x: any; y: any; z: any");
    tkc_text_free(&t);
    cr_expect_eq(tkc_kernel_variant_text(e.kernel, 17, &t), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_kernel_variant_count(e.kernel), 17); // 16 and the one without promises
    cr_expect_eq(the_backend.compiled, 17);
    cr_expect_eq(e.fake->launch.count, 64);
    gpu_close(&e);
}

Test(cuda, refusals) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_arg a[2] = {vector(m, 100), vector(m + 1024, 100)};
    tkc_launch_options o = {.size = sizeof o, .check = true};
    cr_expect_eq(tkc_launch(e.kernel, e.device, a, 2, &o, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "check mode"), "%s", gpu_said(&e));
    tkc_report_destroy(e.report);
    volatile int stop = 0;
    o = (tkc_launch_options){.size = sizeof o, .stop = &stop};
    cr_expect_eq(tkc_launch(e.kernel, e.device, a, 2, &o, &e.report), TKC_ERROR_LAUNCH);
    a[1] = vector(m + 50, 100);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "overlap"), "%s", gpu_said(&e));
    a[1] = vector((float *)((char *)m + 8193), 100);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "misaligned"), "%s", gpu_said(&e));
    the_backend.refuse = true;
    a[1] = vector(m + 1024, 100);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_ERROR_SOURCE);
    cr_expect(strstr(gpu_said(&e), "k.tk:1:"), "%s", gpu_said(&e));
    the_backend.refuse = false;
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    gpu_close(&e);
}

Test(cuda, shared_memory) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_arg a[2] = {vector(m, 100), vector(m + 1024, 100)};
    the_backend.shared = 49152;
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->dynamic_max, 0);
    cr_expect_eq(e.fake->launch.shared, 49152);
    e.fake->shared_static = 16; // counts with the rest
    a[0] = vector(m + 1, 100);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->dynamic_max, 49152);
    the_backend.shared = 232448;
    a[1] = vector(m + 1025, 100);
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "needs 232464 bytes of shared memory"), "%s", gpu_said(&e));
    gpu_close(&e);
}

Test(cuda, cubin_then_ptx) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_arg a[2] = {vector(m, 100), vector(m + 1024, 100)};
    the_backend.cubin = true;
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(e.fake->image, "cubin");
    a[0] = vector(m + 1, 100);
    gpu_clear_log(e.fake);
    e.fake->fail_code = 209; // no binary for this GPU
    e.fake->fail_at = 3;     // after two calls for the context
    cr_expect_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(e.fake->image, "// entry axpy for sm_90a");
    gpu_close(&e);
}

// ---- Prepared launches

Test(cuda, prepared) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    float *m = room();
    tkc_prepared *p = NULL;
    tkc_arg a[3] = {vector(m, 100), vector(m + 1024, 100), {.kind = TKC_ARG_FLOAT, .f = 3}};
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 3, &p, &e.report), TKC_OK);
    gpu_clear_log(e.fake);
    e.fake->capturing = true;
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_str_eq(e.fake->log, LAUNCH LAUNCH);
    tkc_arg x = vector(m + 64, 100), scalar = {.kind = TKC_ARG_INT, .i = 7};
    gpu_clear_log(e.fake);
    cr_expect_eq(tkc_prepared_set(p, 0, &x, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_set(p, 2, &scalar, NULL), TKC_OK);
    cr_expect_str_eq(e.fake->log, "");
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    axpy_block b;
    memcpy(&b, e.fake->launch.params, sizeof b);
    cr_expect_eq(b.x, (uint64_t)(uintptr_t)(m + 64));
    cr_expect_eq(b.a, 7);
    // Refused: unaligned, another stride, another type, another length; all is left as it was.
    double d[100];
    tkc_arg bad[4] = {vector(m + 1, 100), x, gpu_tensor(d, TKC_F64, 1, &(int64_t){100}),
                      vector(m, 99)};
    bad[1].tensor.stride[0] = 2;
    for (int i = 0; i < 4; i++) {
        tkc_report *r = NULL;
        cr_expect_eq(tkc_prepared_set(p, 0, &bad[i], &r), TKC_ERROR_LAUNCH, "%d", i);
        cr_expect(r && (i > 1 || strstr(tkc_report_text(r, false), "prepared-layout")), "%d: %s", i,
                  r ? tkc_report_text(r, false) : "");
        tkc_report_destroy(r);
    }
    cr_expect_eq(tkc_prepared_set(p, 3, &x, NULL), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(memcmp(&b, e.fake->launch.params, offsetof(axpy_block, grid) + 4), 0);
    e.fake->fail_name = "cuLaunchKernel";
    cr_expect_eq(tkc_prepared_launch(p, NULL, &e.report), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:1:1: error: kernel 'axpy' cannot be launched on Fake GPU 0: CUDA_ERROR"),
              "%s", gpu_said(&e));
    tkc_prepared_destroy(p);
    gpu_close(&e);
}

Test(cuda, prepared_on_cpu) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, axpy);
    cr_assert_eq(tkc_device_open(e.context, "cpu", &e.device, NULL), TKC_OK);
    float x[10], y[10];
    for (int i = 0; i < 10; i++) {
        x[i] = y[i] = 1;
    }
    tkc_prepared *p = NULL;
    tkc_arg a[2] = {vector(x, 10), vector(y, 10)}, scalar = {.kind = TKC_ARG_INT, .i = 5};
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 2, &p, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(y[9], 3);
    cr_expect_eq(tkc_prepared_set(p, 2, &scalar, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(y[9], 8);
    tkc_arg wide = gpu_tensor(x, TKC_F64, 1, &(int64_t){5});
    cr_expect_eq(tkc_prepared_set(p, 0, &wide, NULL), TKC_ERROR_LAUNCH);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    tkc_prepared_destroy(p);
    gpu_close(&e);
}

// ---- Tensor maps

static const char window[] =
    "kernel window<B: int = 32>(x: in f16[K, M, N], y: out f16[M, N]) grid (i in cdiv(M, B)) {\n"
    "    y[i * B +: B, 0 +: B] = x[0, i * B +: B, 0 +: B];\n"
    "}\n";

static void window_args(tkc_arg a[2]) {
    char *m = (char *)room();
    a[0] = gpu_tensor(m, TKC_F16, 3, (int64_t[]){2, 9, 40});
    a[1] = gpu_tensor(m + 8192, TKC_F16, 2, (int64_t[]){9, 40});
    a[0].tensor.stride[1] = 48;
}

static const fake_map *last_map(const gpu_env *e) {
    return &e->fake->map[(e->fake->maps - 1) % FAKE_MAPS];
}

Test(cuda, maps) {
    the_backend.maps = 2;
    gpu_env e = gpu_open(FAKE_CUDA, window);
    tkc_arg a[2];
    window_args(a);
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_assert_eq(e.fake->maps, 2);
    const fake_map *x = &e.fake->map[0], *y = &e.fake->map[1];
    cr_expect_eq(x->type, 6);
    cr_expect_eq(x->rank, 3);
    cr_expect_eq(x->address, a[0].tensor.data);
    cr_expect(x->dim[0] == 40 && x->dim[1] == 9 && x->dim[2] == 2);
    cr_expect(x->stride[0] == 96 && x->stride[1] == 720);
    cr_expect(x->box[0] == 32 && x->box[1] == 8 && x->box[2] == 9);
    cr_expect(x->step[0] == 1 && x->step[1] == 1 && x->step[2] == 1);
    cr_expect(x->interleave == 0 && x->swizzle == 3 && x->l2 == 2 && x->fill == 0);
    cr_expect_eq(y->rank, 2);
    cr_expect_eq(y->address, a[1].tensor.data);
    // x's map 0, y's 128, then x 256: 8, 3 times 4, 3 times 8; y 304
    cr_expect_eq(i64_at(&e, 256), (int64_t)(intptr_t)a[0].tensor.data);
    cr_expect_eq(i64_at(&e, 304), (int64_t)(intptr_t)a[1].tensor.data);
    cr_expect(i64_at(&e, 0) != 0 && i64_at(&e, 128) != 0 && i64_at(&e, 0) != i64_at(&e, 128));
    gpu_close(&e);
}

// Where a map cannot be made of a tensor, or not on this GPU or by this driver, the code has none.
Test(cuda, maps_that_cannot_be) {
    the_backend.maps = 2;
    gpu_env e = gpu_open(FAKE_CUDA, window);
    tkc_arg a[2];
    window_args(a);
    a[0].tensor.stride[0] = 0; // all planes are one
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->maps, 1);
    cr_expect_eq(e.fake->map[0].rank, 2);
    cr_expect_eq(the_backend.facts[0],
                 TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_WHOLE | TK_FACT_NEAR);
    e.context->gpu_driver->map_encode = NULL; // as before CUDA 12.0
    window_args(a);
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->maps, 1);
    cr_expect_eq(the_backend.compiled, 2);
    gpu_close(&e);
    e = gpu_config(FAKE_CUDA);
    e.fake->major[0] = 8;
    gpu_program(&e, window);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(e.fake->maps, 1);
    gpu_close(&e);
}

// Maps are made when arguments are set, not at each launch; a refused argument leaves them.
Test(cuda, maps_of_prepared_launches) {
    the_backend.maps = 1;
    gpu_env e = gpu_open(FAKE_CUDA, window);
    tkc_arg a[2];
    window_args(a);
    tkc_prepared *p = NULL;
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, a, 2, &p, &e.report), TKC_OK);
    cr_expect_eq(e.fake->maps, 1);
    gpu_clear_log(e.fake);
    e.fake->capturing = true;
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_str_eq(e.fake->log, LAUNCH LAUNCH);
    e.fake->capturing = false;
    const int64_t first = i64_at(&e, 0);
    tkc_arg x = a[0];
    x.tensor.data = (char *)x.tensor.data + 4096;
    cr_expect_eq(tkc_prepared_set(p, 0, &x, NULL), TKC_OK);
    cr_expect_eq(last_map(&e)->address, x.tensor.data);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    const int64_t second = i64_at(&e, 0);
    cr_expect_neq(first, second);
    tkc_arg bad = a[0];
    bad.tensor.stride[0] = 0;
    cr_expect_eq(tkc_prepared_set(p, 0, &bad, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "strides for tensor maps"), "%s", gpu_said(&e));
    tkc_report_destroy(e.report);
    e.report = NULL;
    e.fake->fail_name = "cuTensorMapEncodeTiled";
    cr_expect_eq(tkc_prepared_set(p, 0, &a[0], &e.report), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "k.tk:1:1: error: kernel 'window' needs a tensor map of 'x': "
                                   "CUDA_ERROR_UNKNOWN"),
              "%s", gpu_said(&e));
    e.fake->fail_name = NULL;
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(i64_at(&e, 0), second);
    tkc_prepared_destroy(p);
    gpu_close(&e);
}

// ---- Events

Test(cuda, events) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    const char *names[] = {"cuda", "cpu", "sim"};
    for (int i = 0; i < 3; i++) {
        tkc_device *d = NULL;
        tkc_event *from = NULL, *to = NULL;
        void *p = NULL;
        double ms = -1;
        cr_assert_eq(tkc_device_open(e.context, names[i], &d, NULL), TKC_OK);
        cr_assert_eq(tkc_device_alloc(d, 2000000, &p, NULL), TKC_OK);
        cr_assert_eq(tkc_event_create(d, &from, NULL), TKC_OK);
        cr_assert_eq(tkc_event_create(d, &to, NULL), TKC_OK);
        cr_expect_eq(tkc_event_record(from, NULL, NULL), TKC_OK);
        cr_expect_eq(tkc_event_elapsed(from, to, &ms, NULL), TKC_ERROR_ARGUMENT);
        cr_expect_eq(ms, -1);
        cr_expect_eq(tkc_device_copy_async(d, (char *)p + 1000000, p, 1000000, NULL, NULL), TKC_OK);
        cr_expect_eq(tkc_event_record(to, NULL, NULL), TKC_OK);
        cr_expect_eq(tkc_event_elapsed(from, to, &ms, NULL), TKC_OK);
        cr_expect(i == 0 ? ms > 0.0029 && ms < 0.0031 : ms >= 0 && ms < 60000, "%s: %g", names[i],
                  ms);
        cr_expect_eq(tkc_device_copy_async(d, NULL, p, 4, NULL, NULL), TKC_ERROR_ARGUMENT);
        cr_expect_eq(tkc_device_copy_async(d, NULL, NULL, 0, NULL, NULL), TKC_OK);
        tkc_event_destroy(from);
        tkc_event_destroy(to);
        tkc_device_free(d, p);
        tkc_device_close(d);
    }
    tkc_event_destroy(NULL);
    cr_expect_eq(tkc_event_create(NULL, &(tkc_event *){NULL}, NULL), TKC_ERROR_ARGUMENT);
    cr_expect_eq(e.fake->events, 0);
    tkc_gpu gpu = {.size = sizeof gpu};
    cr_expect_eq(tkc_gpu_info(e.context, 1, &gpu), TKC_OK);
    cr_expect_eq(gpu.cache, 65536);
    cr_expect_str_eq(gpu.bus, "0000:02:00.0");
    gpu_close(&e);
}

// ---- Memory

Test(cuda, memory) {
    gpu_env e = gpu_open(FAKE_CUDA, axpy);
    const char *names[] = {"cuda", "cpu"};
    for (int i = 0; i < 2; i++) {
        tkc_device *d = NULL;
        void *p = NULL, *q = NULL, *none = &p;
        char from[100] = "abc", to[100] = "";
        cr_assert_eq(tkc_device_open(e.context, names[i], &d, NULL), TKC_OK);
        cr_assert_eq(tkc_device_alloc(d, 100, &p, NULL), TKC_OK);
        cr_assert_eq(tkc_device_alloc(d, 100, &q, NULL), TKC_OK);
        cr_assert_eq(tkc_device_alloc(d, 0, &none, NULL), TKC_OK);
        cr_expect_null(none);
        cr_expect_eq(tkc_device_copy(d, p, from, 100, TKC_TO_DEVICE, NULL), TKC_OK);
        cr_expect_eq(tkc_device_copy(d, q, p, 100, TKC_WITHIN_DEVICE, NULL), TKC_OK);
        cr_expect_eq(tkc_device_copy(d, to, q, 100, TKC_FROM_DEVICE, NULL), TKC_OK);
        cr_expect_str_eq(to, "abc");
        cr_expect_eq(tkc_device_synchronize(d, NULL), TKC_OK);
        cr_expect_eq(tkc_device_free(d, p), TKC_OK);
        cr_expect_eq(tkc_device_free(d, q), TKC_OK);
        cr_expect_eq(tkc_device_free(d, NULL), TKC_OK);
        tkc_device_close(d);
    }
    void *p = &e;
    cr_expect_neq(tkc_device_alloc(e.device, (size_t)1 << 50, &p, &e.report), TKC_OK);
    cr_expect_null(p);
    cr_expect(strstr(gpu_said(&e), "allocating 1125899906842624 bytes on device 'cuda' failed: "
                                   "CUDA_ERROR_OUT_OF_MEMORY"),
              "%s", gpu_said(&e));
    gpu_close(&e);
}
