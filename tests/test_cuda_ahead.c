// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead and their run time on a fake driver: the same launches and the same code
// as tkc_launch makes, checks, several devices and threads, what is loaded when.
#include "runtime/ahead.h"
#include "runtime/rt.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel axpy<T: type, D: int, BN: int = 64>(x: in T[N, D], y: inout T[N, D], a: f32,\n"
    "        b: bool, bias: in T[D] = none, h: f16 = 2.0)\n"
    "    grid (i in cdiv(max(N, 100), BN), j in where(b && a > 1.0, D, D * 2))\n"
    "{\n"
    "    let s = T(a) + T(h);\n"
    "    for k in 0 .. D { y[i * BN +: BN, k] = x[i * BN +: BN, k] + s; }\n"
    "}\n";

typedef struct env {
    gpu_env g;
    tkc_ahead *ahead;
    tkc_report *report;
    tkc_rt_state state;
    const void *bundle;
    tkc_error error;
} env;

static const char *const both[] = {"sm_80", "sm_90a"};

static env env_config(void) {
    env e;
    memset(&e, 0, sizeof e);
    e.g = gpu_config(FAKE_CUDA);
    return e;
}

static tkc_status env_add(env *e, const char *name, const char *kernel, const tkc_define *d,
                          size_t nd, const tkc_arg *args, size_t n) {
    tkc_report_destroy(e->report);
    e->report = NULL;
    tkc_kernel_destroy(e->g.kernel);
    e->g.kernel = NULL;
    tkc_status s = tkc_kernel_create(e->g.program, kernel, d, nd, &e->g.kernel, &e->report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e->report, false));
    return tkc_ahead_add(e->ahead, name, e->g.kernel, args, n, NULL, 0, &e->report);
}

static void env_program(env *e, const char *text, const tkc_ahead_options *o) {
    tkc_ahead_options usual = {.size = sizeof usual, .arch = both, .narch = 2};
    cr_assert_eq(tkc_context_create(e->g.config, &e->g.context), TKC_OK);
    tkc_status s = tkc_program_from_string(e->g.context, "k.tk", text, strlen(text), &e->g.program,
                                           &e->report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e->report, false));
    s = tkc_ahead_create(e->g.context, o ? o : &usual, &e->ahead, &e->report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e->report, false));
}

// The kernel above with f32 and D = 8, everything given but bias.
static env env_open(const tkc_ahead_options *o) {
    static const tkc_define d[] = {{"T", "f32"}, {"D", "8"}};
    tkc_arg args[6] = {[0 ... 3] = {.kind = TKC_ARG_UNKNOWN}, [5] = {.kind = TKC_ARG_UNKNOWN}};
    env e = env_config();
    env_program(&e, source, o);
    tkc_status s = env_add(&e, NULL, "axpy", d, 2, args, 6);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e.report, false));
    e.bundle = e.ahead->first->bundle.at;
    cr_assert_eq(tkc_rt_use_device(0, &e.error), TKC_OK, "%s", e.error.text);
    gpu_clear_log(e.g.fake);
    return e;
}

static void env_close(env *e) {
    tkc_rt_unload(e->bundle, &e->state);
    tkc_ahead_destroy(e->ahead);
    tkc_report_destroy(e->report);
    tkc_device_close(e->g.device);
    tkc_kernel_destroy(e->g.kernel);
    tkc_program_destroy(e->g.program);
    tkc_context_destroy(e->g.context);
    tkc_config_destroy(e->g.config);
    cr_expect_eq(e->g.fake->modules, 0);
}

static int call(const char *name, void *argument) {
    static void *library;
    library = library ? library : dlopen(FAKE_CUDA, RTLD_NOW);
    void *symbol = dlsym(library, name);
    int (*f)(void *);
    memcpy(&f, &symbol, sizeof f);
    return f(argument);
}

static _Alignas(64) float memory[1 << 14];

typedef struct given {
    tkc_tensor x, y;
    float a;
    bool b;
    float h;
} given;

static given usual(void) {
    int64_t dim[] = {200, 8};
    return (given){tkc_tensor_make(memory, TKC_F32, 2, dim),
                   tkc_tensor_make(memory + 8192, TKC_F32, 2, dim), 1.5f, true, 3.0f};
}

static tkc_status run_it(env *e, const given *g) {
    const void *argument[] = {&g->x, &g->y, &g->a, &g->b, &g->h};
    memset(&e->error, 0, sizeof e->error);
    return tkc_rt_launch(e->bundle, &e->state, argument, NULL, &e->error);
}

// ---- The same as tkc_launch

static void same_launch(env *e, const given *g) {
    tkc_arg args[6] = {{.kind = TKC_ARG_TENSOR, .tensor = g->x},
                       {.kind = TKC_ARG_TENSOR, .tensor = g->y},
                       {.kind = TKC_ARG_FLOAT, .f = (double)g->a},
                       {.kind = TKC_ARG_INT, .i = g->b},
                       {.kind = TKC_ARG_NONE},
                       {.kind = TKC_ARG_FLOAT, .f = (double)g->h}};
    tkc_report *r = NULL;
    fake_cuda_state *f = e->g.fake;
    memset(&f->launch, 0, sizeof f->launch);
    tkc_status s = tkc_launch(e->g.kernel, e->g.device, args, 6, NULL, &r);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(r, false));
    unsigned char params[FAKE_PARAMS];
    size_t size = f->launch.params_size;
    unsigned grid = f->launch.grid[0], block = f->launch.block[0], shared = f->launch.shared;
    char image[256];
    memcpy(params, f->launch.params, sizeof params);
    memcpy(image, f->image, sizeof image);
    memset(&f->launch, 0, sizeof f->launch);
    cr_assert_eq(run_it(e, g), TKC_OK, "%s", e->error.text);
    cr_expect_eq(f->launch.grid[0], grid, "%u programs, not %u", f->launch.grid[0], grid);
    cr_expect_eq(f->launch.block[0], block);
    cr_expect_eq(f->launch.shared, shared);
    cr_expect_eq(f->launch.params_size, size);
    cr_expect_arr_eq(f->launch.params, params, size);
    cr_expect_str_eq(f->image, image);
}

static void same_launches(void) {
    env e = env_open(NULL);
    tkc_report *r = NULL;
    cr_assert_eq(tkc_device_open(e.g.context, "cuda", &e.g.device, &r), TKC_OK);
    given g = usual();
    same_launch(&e, &g);
    g.b = false;
    g.a = 0.25f;
    same_launch(&e, &g);
    g.a = 1.0f;
    g.b = true;
    g.h = 0.333f;
    same_launch(&e, &g);
    g.x.dim[0] = g.y.dim[0] = 7; // fewer than the grid makes of it
    same_launch(&e, &g);
    g.x.stride[0] = -8;
    g.x.data = memory + 4096;
    same_launch(&e, &g);
    g.x.dim[0] = g.y.dim[0] = 0;
    same_launch(&e, &g);
    env_close(&e);
}

Test(ahead, launches_as_tkc_launch) { same_launches(); }

Test(ahead, launches_packed_programs_as_tkc_launch) {
    the_backend.packed = 16;
    same_launches();
}

// Every variant and target: what the launch of such tensors would have compiled, byte for byte.
Test(ahead, code_is_the_same) {
    env e = env_config();
    e.g.config->gpu_compile = NULL;
    if (!gpu_backend(e.g.config)) {
        return;
    }
    static const tkc_define d[] = {{"T", "f32"}, {"D", "8"}};
    static const char *const one[] = {"sm_90a"};
    tkc_ahead_options o = {.size = sizeof o, .arch = one, .narch = 1};
    tkc_arg args[6] = {[0 ... 3] = {.kind = TKC_ARG_UNKNOWN}, [5] = {.kind = TKC_ARG_UNKNOWN}};
    env_program(&e, source, &o);
    cr_assert_eq(env_add(&e, NULL, "axpy", d, 2, args, 6), TKC_OK, "%s",
                 tkc_report_text(e.report, false));
    const tk_bundle *b = (const void *)e.ahead->first->bundle.at;
    e.bundle = b;
    const tk_bundle_image *image = tk_bundle_at(b, b->image);
    cr_assert_eq(tkc_device_open(e.g.context, "cuda", &e.g.device, NULL), TKC_OK);
    given g[3] = {usual(), usual(), usual()};
    for (unsigned i = 0; i < 2; i++) { // unit strides, not aligned; then a stride
        tkc_tensor *t = i == 0 ? &g[1].x : &g[2].x, *u = i == 0 ? &g[1].y : &g[2].y;
        t->data = memory + 1;
        u->data = memory + 8193;
        t->stride[1] = u->stride[1] = i == 0 ? 1 : 0x7fffffff;
    }
    g[2].x.data = g[2].y.data = (void *)(uintptr_t)4;
    g[2].y.data = (void *)((uintptr_t)1 << 40);
    static const uint32_t fact[] = {15, 9, 0};
    unsigned seen = 0;
    for (unsigned i = 0; i < 3; i++) {
        tkc_arg a[6] = {{.kind = TKC_ARG_TENSOR, .tensor = g[i].x},
                        {.kind = TKC_ARG_TENSOR, .tensor = g[i].y},
                        {.kind = TKC_ARG_FLOAT, .f = 1},
                        {.kind = TKC_ARG_INT, .i = 1},
                        {.kind = TKC_ARG_NONE},
                        {.kind = TKC_ARG_FLOAT, .f = 1}};
        tkc_report *r = NULL;
        cr_assert_eq(tkc_prepare(e.g.kernel, e.g.device, a, 6, &r), TKC_OK, "%s",
                     tkc_report_text(r, false));
        const gpu_variant *v = e.g.kernel->gpu_variants; // the newest
        // It needs no maps, so that the variant ahead does not count on them.
        cr_expect_eq(v->fact[0] & ~(unsigned)TK_FACT_MAP, fact[i], "%u", v->fact[0]);
        const uint32_t *facts = tk_bundle_at(b, b->fact);
        for (uint32_t k = 0; k < b->nimage; k++) {
            if (facts[image[k].variant * b->nparam] == fact[i]) {
                seen++;
                cr_expect_eq(image[k].ptx_size, v->image->ptx_size);
                cr_expect_str_eq((const char *)tk_bundle_at(b, image[k].ptx), v->image->ptx);
                cr_expect_eq(image[k].cubin_size, v->image->cubin_size);
                cr_expect(v->image->cubin_size == 0 ||
                          memcmp(tk_bundle_at(b, image[k].cubin), v->image->cubin,
                                 v->image->cubin_size) == 0);
            }
        }
    }
    cr_expect_eq(seen, 3);
    env_close(&e);
}

// ---- Tensor maps

static const uint32_t *facts_of(const tk_bundle *b, uint32_t which) {
    return (const uint32_t *)tk_bundle_at(b, b->fact) + (size_t)which * b->nparam;
}

static const tk_bundle_image *image_of(const tk_bundle *b, uint32_t which, uint32_t cc) {
    const tk_bundle_image *i = tk_bundle_at(b, b->image);
    for (uint32_t k = 0; k < b->nimage; k++) {
        if (i[k].variant == which && i[k].cc == cc) {
            return &i[k];
        }
    }
    return NULL;
}

// Where a kernel needs no maps nothing is promised for them, and there is no variant more.
Test(ahead, variants_without_maps) {
    env e = env_open(NULL);
    const tk_bundle *b = e.bundle;
    cr_expect_eq(b->nvariant, 4);
    cr_expect_eq(b->nimage, 8);
    for (uint32_t v = 0; v < b->nvariant; v++) {
        cr_expect_eq(facts_of(b, v)[0] & TK_FACT_MAP, 0);
    }
    cr_expect_eq(the_backend.compiled, 8);
    env_close(&e);
}

// One variant more, and a target without maps has no code more.
Test(ahead, variants_with_maps) {
    the_backend.maps = 1;
    env e = env_open(NULL);
    const tk_bundle *b = e.bundle;
    static const uint32_t x[] = {31, 27, 11, 9, 0}, y[] = {15, 11, 11, 9, 0};
    cr_assert_eq(b->nvariant, 5);
    cr_expect_eq(b->nimage, 10);
    cr_expect_eq(the_backend.compiled, 9);
    for (uint32_t v = 0; v < 5; v++) {
        cr_expect_eq(facts_of(b, v)[0], x[v], "variant %u", v);
        cr_expect_eq(facts_of(b, v)[1], y[v], "variant %u", v); // has none
        cr_expect_eq(image_of(b, v, 90)->nmap, v < 2);
        cr_expect_eq(image_of(b, v, 80)->nmap, 0);
    }
    cr_expect_eq(image_of(b, 1, 80)->ptx, image_of(b, 2, 80)->ptx);
    cr_expect_neq(image_of(b, 0, 80)->ptx, image_of(b, 1, 80)->ptx);
    env_close(&e);
}

Test(ahead, maps) {
    the_backend.maps = 2;
    env e = env_open(NULL);
    cr_assert_eq(tkc_device_open(e.g.context, "cuda", &e.g.device, NULL), TKC_OK);
    given g = usual();
    const fake_cuda_state *f = e.g.fake;
    same_launch(&e, &g); // maps and all
    cr_assert_eq(f->maps, 4);
    cr_expect_eq(f->map[2].address, g.x.data);
    cr_expect_eq(memcmp(&f->map[0], &f->map[2], 2 * sizeof f->map[0]), 0);
    g.x.data = memory + 64;
    same_launch(&e, &g);
    cr_expect_eq(f->maps, 8);
    g.x.stride[0] = 0; // none can be made of it
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(f->maps, 8);
    g = usual();
    rt_state *s = (rt_state *)(void *)&e.state;
    atomic_load(&s->driver)->map_encode = NULL; // as before CUDA 12.0
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(f->maps, 8);
    tkc_rt_unload(e.bundle, &e.state);
    e.g.fake->major[0] = 8;
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(f->maps, 8);
    env_close(&e);
}

Test(ahead, promised_maps) {
    the_backend.maps = 2;
    tkc_ahead_options o = {.size = sizeof o, .arch = both, .narch = 2, .mapped = true};
    env e = env_open(&o);
    cr_expect_eq(((const tk_bundle *)e.bundle)->nvariant, 1);
    given g = usual();
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(e.g.fake->maps, 2);
    g.x.stride[0] = 0;
    cr_expect_eq(run_it(&e, &g), TKC_ERROR_LAUNCH);
    cr_expect(strstr(e.error.text, "strides for tensor maps"), "%s", e.error.text);
    g = usual();
    rt_state *s = (rt_state *)(void *)&e.state;
    atomic_load(&s->driver)->map_encode = NULL;
    cr_expect_eq(run_it(&e, &g), TKC_ERROR_LAUNCH);
    cr_expect_eq(e.g.fake->launch.count, 1);
    cr_expect_eq(e.g.fake->pushed, 1); // the test's own
    env_close(&e);
}

// ---- Checks

static void expect_error(env *e, const given *g, tkc_status s, const char *id, const char *text) {
    long before = e->g.fake->launch.count;
    cr_expect_eq(run_it(e, g), s, "%s", id);
    cr_expect_eq(e->error.status, s);
    cr_expect_str_eq(e->error.id, id);
    cr_expect(strstr(e->error.text, text), "%s: wanted '%s' in: %s", id, text, e->error.text);
    cr_expect_eq(e->g.fake->launch.count, before);
    const void *argument[] = {&g->x, &g->y, &g->a, &g->b, &g->h};
    cr_expect_eq(tkc_rt_launch(e->bundle, &e->state, argument, NULL, NULL), s); // nobody listens
}

Test(ahead, arguments_are_checked) {
    env e = env_open(NULL);
    given g = usual();
    g.x.dtype = TKC_F16;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "argument-type", "'x' is f16 where f32");
    g.x.dtype = (tkc_dtype)99;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "argument-type", "of no known type");
    g = usual();
    g.y.rank = 1;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "argument-rank", "'y' has 1 dimension where 2 are");
    g = usual();
    g.y.dim[1] = 9;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "dimension-mismatch", "is 9 where 8 is expected");
    g = usual();
    g.y.dim[0] = 199;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "dimension-mismatch",
                 "'N' is 199 in 'y' but 200 in 'x'");
    g = usual();
    g.y.dim[0] = -1;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "negative-size", "dimension 0 of 'y' is -1");
    g.y.dim[0] = (int64_t)1 << 31;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "argument-size", "below 2^31");
    g = usual();
    g.x.data = NULL;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "null-data", "'x' has 1600 elements but no memory");
    g.x.data = (char *)memory + 1;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "misaligned", "'x' is not aligned");
    g = usual();
    g.x.stride[0] = INT64_MAX / 8;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "stride-overflow", "'x' reach beyond");
    g = usual();
    g.y.data = memory + 1599;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "overlap", "'y' is written and shares memory with 'x'");
    g = usual();
    g.h = 1e6f;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "scalar-range", "'h' of type f16");
    const void *argument[5] = {NULL};
    cr_expect_eq(tkc_rt_launch(e.bundle, &e.state, argument, NULL, &e.error), TKC_ERROR_LAUNCH);
    cr_expect_str_eq(e.error.id, "argument-missing");
    cr_expect_eq(tkc_rt_launch(NULL, &e.state, argument, NULL, &e.error), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_rt_launch(memory, &e.state, argument, NULL, &e.error), TKC_ERROR_ARGUMENT);
    cr_expect_str_eq(e.error.id, "no-kernel");
    tk_bundle other = *(const tk_bundle *)e.bundle;
    other.version++;
    other.name = 0;
    cr_expect_eq(tkc_rt_launch(&other, &e.state, argument, NULL, NULL), TKC_ERROR_ARGUMENT);
    env_close(&e);
}

// Only tensors that hold the promise.
Test(ahead, promised_layouts) {
    tkc_ahead_options o = {
        .size = sizeof o, .arch = both, .narch = 2, .contiguous = true, .near = true};
    env e = env_open(&o);
    cr_expect_eq(((const tk_bundle *)e.bundle)->nvariant, 1);
    given g = usual();
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    g.x.data = memory + 1;
    expect_error(&e, &g, TKC_ERROR_LAUNCH, "tensor-layout", "compiled only for tensors");
    env_close(&e);
}

// ---- What is loaded

Test(ahead, loads_once) {
    env e = env_open(NULL);
    given g = usual();
    cr_assert_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(e.g.fake->modules, 1);
    gpu_clear_log(e.g.fake);
    e.g.fake->capturing = true; // what loads or allocates would fail
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_str_eq(e.g.fake->log, "cuCtxGetCurrent cuCtxGetId cuLaunchKernel ");
    e.g.fake->capturing = false;
    g.x.data = memory + 1; // another variant
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(e.g.fake->modules, 2);
    cr_expect_eq(tkc_rt_load(e.bundle, &e.state, &e.error), TKC_OK, "%s", e.error.text);
    cr_expect_eq(e.g.fake->modules, 4);
    env_close(&e);
}

enum { THREADS = 8, TIMES = 50 };

static void *launch_often(void *arg) {
    env *shared = arg;
    given g = usual();
    const void *argument[] = {&g.x, &g.y, &g.a, &g.b, &g.h};
    static atomic_int next;
    unsigned device = (unsigned)atomic_fetch_add(&next, 1) % 2;
    tkc_error error;
    bool ok = tkc_rt_use_device(device, &error) == TKC_OK;
    for (int i = 0; i < TIMES && ok; i++) {
        ok = tkc_rt_launch(shared->bundle, &shared->state, argument, NULL, &error) == TKC_OK;
    }
    return ok ? NULL : arg;
}

Test(ahead, devices_and_threads) {
    env e = env_open(NULL);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, launch_often, &e), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(thread[i], &failed);
        cr_expect_null(failed);
    }
    cr_expect_eq(e.g.fake->launch.count, THREADS * TIMES);
    cr_expect_eq(e.g.fake->modules, 2);
    env_close(&e);
}

// A context that took the place of another is loaded into anew.
Test(ahead, contexts) {
    env e = env_open(NULL);
    given g = usual();
    cr_assert_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_assert_eq(call("cuDevicePrimaryCtxRelease_v2", (void *)0), 0);
    cr_expect_eq(e.g.fake->modules, 0);
    cr_assert_eq(tkc_rt_use_device(0, &e.error), TKC_OK);
    cr_expect_eq(run_it(&e, &g), TKC_OK, "%s", e.error.text);
    cr_expect_eq(e.g.fake->modules, 1);

    cr_assert_eq(call("cuCtxSetCurrent", NULL), 0);
    expect_error(&e, &g, TKC_ERROR_DEVICE, "no-context", "tkc_rt_use_device");
    const void *argument[] = {&g.x, &g.y, &g.a, &g.b, &g.h};
    int stream;
    cr_expect_eq(tkc_rt_launch(e.bundle, &e.state, argument, &stream, &e.error), TKC_OK, "%s",
                 e.error.text);
    cr_expect_eq(e.g.fake->launch.stream, &stream);
    cr_expect_eq(e.g.fake->pushed, 0);
    env_close(&e);
}

static void expect_image(env *e, int major, int minor, const char *image) {
    given g = usual();
    e->g.fake->major[0] = major;
    e->g.fake->minor[0] = minor;
    tkc_rt_unload(e->bundle, &e->state);
    cr_expect_eq(run_it(e, &g), TKC_OK, "%d.%d: %s", major, minor, e->error.text);
    cr_expect_str_eq(e->g.fake->image, image, "%d.%d: %s", major, minor, e->g.fake->image);
}

Test(ahead, code_for_the_gpu) {
    env e = env_open(NULL);
    expect_image(&e, 8, 0, "// entry axpy for sm_80");
    expect_image(&e, 8, 6, "// entry axpy for sm_80");
    expect_image(&e, 9, 0, "// entry axpy for sm_90a");
    expect_image(&e, 10, 0, "// entry axpy for sm_80");
    e.g.fake->major[0] = 7;
    tkc_rt_unload(e.bundle, &e.state);
    given g = usual();
    expect_error(
        &e, &g, TKC_ERROR_DEVICE, "no-code",
        "no code for Fake GPU 0 (compute capability 7.0): it was compiled for sm_90a, sm_80");
    env_close(&e);
    the_backend.cubin = true;
    e = env_open(NULL);
    expect_image(&e, 8, 6, "cubin");
    expect_image(&e, 9, 0, "cubin");
    expect_image(&e, 10, 0, "// entry axpy for sm_80");
    env_close(&e);
}

// Each call of the driver fails once: said, and nothing is left behind.
Test(ahead, driver_failures) {
    the_backend.maps = 2;
    env e = env_open(NULL);
    given g = usual();
    bool done = false;
    for (long n = 1; !done && n < 100; n++) {
        tkc_rt_unload(e.bundle, &e.state);
        cr_expect_eq(e.g.fake->modules, 0, "after call %ld failed", n - 1);
        e.g.fake->fail_at = n;
        tkc_status s = run_it(&e, &g);
        done = e.g.fake->fail_at > 0;
        e.g.fake->fail_at = 0;
        cr_expect_eq(s, done ? TKC_OK : TKC_ERROR_DEVICE, "call %ld: %s", n, e.error.text);
        cr_expect(done || strstr(e.error.text, "CUDA_ERROR_UNKNOWN"), "call %ld: %s", n,
                  e.error.text);
        cr_expect_eq(run_it(&e, &g), TKC_OK, "after call %ld: %s", n, e.error.text);
    }
    cr_expect(done);
    e.g.fake->shared_static = 1 << 20;
    tkc_rt_unload(e.bundle, &e.state);
    expect_error(&e, &g, TKC_ERROR_DEVICE, "shared-memory", "1048576 bytes of shared memory");
    cr_expect_eq(e.g.fake->modules, 0);
    env_close(&e);
}

// ---- What cannot be compiled ahead

static void expect_refused(env *e, const char *name, const char *kernel, const tkc_define *d,
                           size_t nd, const char *text) {
    tkc_status s = env_add(e, name, kernel, d, nd, NULL, 0);
    const char *said = e->report ? tkc_report_text(e->report, false) : "";
    cr_expect_eq(s, TKC_ERROR_SOURCE, "%s", said);
    cr_expect(strstr(said, text), "wanted '%s' in: %s", text, said);
}

Test(ahead, refusals) {
    env e = env_config();
    env_program(&e,
                "kernel a() {}\n"
                "kernel a_load() {}\n"
                "kernel switch() {}\n"
                "kernel __x() {}\n"
                "kernel p<class: int = 3>(int: i32 = 1) {}\n"
                "kernel inexact(x: f32 = 1.0) grid (i in i32(exp(x))) {}\n",
                NULL);
    cr_expect_eq(env_add(&e, NULL, "a", NULL, 0, NULL, 0), TKC_OK);
    expect_refused(&e, NULL, "a", NULL, 0, "k.tk:1:1: error: there is a function 'a' already");
    expect_refused(&e, NULL, "a_load", NULL, 0, "k.tk:2:1: error: 'a_load' clashes with 'a'");
    expect_refused(&e, NULL, "switch", NULL, 0, "k.tk:3:1: error: 'switch' cannot be the name");
    expect_refused(&e, NULL, "__x", NULL, 0, "k.tk:4:1: error: '__x' cannot be the name");
    expect_refused(&e, "b-c", "a", NULL, 0, "'b-c' is no identifier of C");
    expect_refused(&e, "3", "a", NULL, 0, "'3' is no identifier of C");
    expect_refused(&e, "main", "a", NULL, 0, "'main' cannot be the name");
    expect_refused(&e, NULL, "p", NULL, 0, "k.tk:5:26: error: 'int' cannot be the name of a param");
    expect_refused(&e, NULL, "inexact", NULL, 0, "in a grid");
    // What was refused is not there.
    tkc_text text;
    cr_assert_eq(tkc_ahead_write(e.ahead, TKC_AHEAD_HEADER, "x/my-k.h", &text, NULL), TKC_OK);
    cr_expect(strstr(text.at, "#ifndef TKC_AHEAD_MY_K_H\n"));
    cr_expect(strstr(text.at, "tkc_status a(void *stream, tkc_error *error)"));
    cr_expect(!strstr(text.at, "switch"));
    tkc_text_free(&text);
    e.bundle = e.ahead->first->bundle.at;
    env_close(&e);
}

Test(ahead, targets) {
    env e = env_config();
    cr_assert_eq(tkc_context_create(e.g.config, &e.g.context), TKC_OK);
    static const char *const twice[] = {"sm_80", "sm_80"}, *const unknown[] = {"sm_91"};
    tkc_ahead_options o = {.size = sizeof o, .arch = twice, .narch = 2};
    cr_expect_eq(tkc_ahead_create(e.g.context, &o, &e.ahead, &e.report), TKC_ERROR_ARGUMENT);
    cr_expect(strstr(tkc_report_text(e.report, false), "'sm_80' is named twice"));
    tkc_report_destroy(e.report);
    o = (tkc_ahead_options){.size = sizeof o, .arch = unknown, .narch = 1};
    cr_expect_eq(tkc_ahead_create(e.g.context, &o, &e.ahead, &e.report), TKC_ERROR_DEVICE);
    cr_expect(strstr(tkc_report_text(e.report, false), "did you mean 'sm_90'"));
    o.narch = 0;
    cr_expect_eq(tkc_ahead_create(e.g.context, &o, &e.ahead, NULL), TKC_ERROR_ARGUMENT);
    o.narch = TKC_AHEAD_MAX_ARCH + 1;
    cr_expect_eq(tkc_ahead_create(e.g.context, &o, &e.ahead, NULL), TKC_ERROR_ARGUMENT);
    cr_expect_null(e.ahead);
    tkc_report_destroy(e.report);
    tkc_context_destroy(e.g.context);
    tkc_config_destroy(e.g.config);
}

// ---- Want of memory

typedef struct budget {
    long left; // allocations until one fails; below 0: none does
    long live;
} budget;

static void *take(void *user, size_t size) {
    budget *b = user;
    if (b->left == 0) {
        return NULL;
    }
    b->left -= b->left > 0;
    b->live++;
    return malloc(size);
}

static void give(void *user, void *block) {
    budget *b = user;
    b->live--;
    free(block);
}

static tkc_status make_all(env *e, tkc_report **r) {
    static const tkc_ahead_options o = {.size = sizeof o, .arch = both, .narch = 2};
    tkc_arg args[6] = {[0 ... 3] = {.kind = TKC_ARG_UNKNOWN}, [5] = {.kind = TKC_ARG_UNKNOWN}};
    tkc_text text = {NULL, 0};
    tkc_status s = tkc_ahead_create(e->g.context, &o, &e->ahead, r);
    s = s ? s : tkc_ahead_add(e->ahead, NULL, e->g.kernel, args, 6, NULL, 0, r);
    for (int form = 0; form <= TKC_AHEAD_HEADER && s == TKC_OK; form++) {
        tkc_report_destroy(*r); // a warning: no assembler
        s = tkc_ahead_write(e->ahead, (tkc_ahead_form)form, "k.h", &text, r);
        tkc_text_free(&text);
    }
    tkc_ahead_destroy(e->ahead);
    e->ahead = NULL;
    return s;
}

// Each allocation fails once: said, nothing is left, and the next time all is well.
Test(ahead, want_of_memory) {
    static const tkc_define d[] = {{"T", "f32"}, {"D", "8"}};
    budget b = {-1, 0};
    env e = env_config();
    tkc_config_allocator(e.g.config, take, give, &b);
    env_program(&e, source, NULL);
    tkc_ahead_destroy(e.ahead);
    e.ahead = NULL;
    cr_assert_eq(tkc_kernel_create(e.g.program, "axpy", d, 2, &e.g.kernel, NULL), TKC_OK);
    bool done = false;
    for (long n = 0; !done && n < 5000; n++) {
        tkc_report *r = NULL;
        long live = b.live;
        b.left = n;
        tkc_status s = make_all(&e, &r);
        done = s == TKC_OK;
        cr_expect(done ? n > 50 : s == TKC_ERROR_MEMORY, "allocation %ld: %d", n, (int)s);
        b.left = -1;
        tkc_report_destroy(r);
        cr_expect_eq(b.live, live, "allocation %ld: %ld blocks are left", n, b.live - live);
    }
    cr_expect(done);
    tkc_kernel_destroy(e.g.kernel);
    tkc_program_destroy(e.g.program);
    tkc_context_destroy(e.g.context);
    tkc_config_destroy(e.g.config);
    cr_expect_eq(b.live, 0, "%ld", b.live);
}
