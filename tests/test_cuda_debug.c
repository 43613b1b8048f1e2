// SPDX-License-Identifier: Apache-2.0
// Debug launches on the fake driver: what a kernel leaves behind is printed and reported.
#include "ptx/debug.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "fn small(v: f32[4]) {\n"
    "    assert(v < 9.0, \"below nine\");\n"
    "}\n"
    "kernel k(x: in f32[N], y: out f32[N], n: i64) grid (i in cdiv(N, 4), j in 2) {\n"
    "    let t = x[i * 4 +: 4];\n"
    "    print(\"n {} t {}\", n, t);\n"
    "    small(t);\n"
    "    assume(n > 0);\n"
    "    print(\"end\");\n"
    "    y[i * 4 +: 4] = t;\n"
    "}\n";
enum { PRINT_T, CLAIM_T, CLAIM_N, PRINT_END };

// ---- What the kernel does, and what is printed

typedef struct script {
    int64_t steps; // of the below, in order
    struct {
        uint32_t site, program;
        float first; // of the tile
    } step[16];
    uint64_t fault;
} script;
static script kernel;
static char printed[4096];

static void take_line(void *user, const char *line) {
    (void)user;
    strncat(printed, line, sizeof printed - strlen(printed) - 1);
    strncat(printed, "\n", sizeof printed - strlen(printed) - 1);
}

// As a kernel does: takes bytes, then writes.
static void act(fake_cuda_state *f) {
    unsigned char *memory;
    tk_debug_head head;
    memcpy(&memory, f->launch.params + f->launch.params_size - 8, sizeof memory);
    memcpy(&head, memory, sizeof head);
    for (int64_t i = 0; i < kernel.steps; i++) {
        const bool tile = kernel.step[i].site == PRINT_T;
        const uint64_t bytes = tile ? 32 : 8, at = head.used;
        tk_debug_record r = {kernel.step[i].site, kernel.step[i].program};
        int64_t n = 7;
        head.used += bytes;
        if (at + bytes > head.room) {
            head.end = at < head.end ? at : head.end;
            head.lost++;
            continue;
        }
        memcpy(memory + sizeof head + at, &r, sizeof r);
        if (tile) {
            float v[4] = {kernel.step[i].first, 2, 3, 448};
            memcpy(memory + sizeof head + at + 8, &n, sizeof n);
            memcpy(memory + sizeof head + at + 16, v, sizeof v);
        }
    }
    head.fault = kernel.fault < head.fault ? kernel.fault : head.fault;
    memcpy(memory, &head, sizeof head);
}

static uint64_t fault_word(uint64_t program, uint64_t site, uint64_t element) {
    return (program << TK_DEBUG_SITE_BITS | site) << TK_DEBUG_ELEMENT_BITS | element;
}

static void reset(void) {
    memset(&kernel, 0, sizeof kernel);
    kernel.fault = TK_DEBUG_NO_FAULT;
    printed[0] = 0;
}

static void prints(uint32_t site, uint32_t program, float first) {
    kernel.step[kernel.steps].site = site;
    kernel.step[kernel.steps].program = program;
    kernel.step[kernel.steps++].first = first;
}

static gpu_env open_debug(size_t room) {
    gpu_env e = gpu_config(FAKE_CUDA);
    tkc_config_debug(e.config, true);
    tkc_config_debug_room(e.config, room);
    tkc_config_print(e.config, take_line, NULL);
    gpu_program(&e, text);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    e.fake->on_launch = act;
    reset();
    return e;
}

static void close_debug(gpu_env *e) {
    e->fake->on_launch = NULL;
    gpu_close(e);
}

static tkc_arg *arguments(void) {
    static _Alignas(64) float memory[64];
    static _Thread_local tkc_arg a[3];
    int64_t n = 8;
    a[0] = gpu_tensor(memory, TKC_F32, 1, &n);
    a[1] = gpu_tensor(memory + 32, TKC_F32, 1, &n);
    a[2] = (tkc_arg){.kind = TKC_ARG_INT, .i = 7};
    return a;
}

// ---- Lines

Test(cuda_debug, lines_in_order) {
    gpu_env e = open_debug(0);
    prints(PRINT_T, 3, 0.5F);
    prints(PRINT_T, 0, 1);
    prints(PRINT_END, 3, 0);
    prints(PRINT_END, 0, 0);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(printed, "[0, 0] n 7 t [1, 2, 3, 448]\n[0, 0] end\n"
                              "[1, 1] n 7 t [0.5, 2, 3, 448]\n[1, 1] end\n");
    printed[0] = 0; // each launch has its own
    kernel.steps = 0;
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(printed, "");
    cr_expect_eq(e.fake->memories, 1);
    close_debug(&e);
}

Test(cuda_debug, what_does_not_fit) {
    gpu_env e = open_debug(50); // 48: one of 32, and two of 8
    prints(PRINT_T, 0, 1);
    prints(PRINT_END, 0, 0);
    prints(PRINT_T, 1, 1);
    prints(PRINT_END, 1, 0);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(printed, "[0, 0] n 7 t [1, 2, 3, 448]\n[0, 0] end\n");
    cr_expect(strstr(gpu_said(&e), "warning: 2 printed lines did not fit the 48 bytes"), "%s",
              gpu_said(&e));
    close_debug(&e);
}

Test(cuda_debug, nonsense_ends_the_list) {
    gpu_env e = open_debug(0);
    prints(PRINT_END, 1, 0);
    prints(PRINT_END, 99, 0); // no such program
    prints(PRINT_END, 2, 0);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(printed, "[1, 0] end\n");
    reset();
    prints(CLAIM_T, 0, 0); // no print
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    reset();
    prints(1000, 0, 0);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(printed, "");
    close_debug(&e);
}

// ---- Claims

Test(cuda_debug, failed_claims) {
    gpu_env e = open_debug(0);
    prints(PRINT_T, 2, 9);
    kernel.fault = fault_word(2, CLAIM_T, 3);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_ERROR_CHECK);
    cr_expect_str_eq(printed, "[0, 1] n 7 t [9, 2, 3, 448]\n");
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:2:5: error: assert does not hold in program (i = 0, j = 1) "
                     "at element [3]: below nine [assert-failed]"),
              "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "k.tk:7:5: note: called from here"), "%s", gpu_said(&e));
    kernel.fault = fault_word(1, CLAIM_N, 0);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_ERROR_CHECK);
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:8:5: error: assume does not hold in program (i = 1, j = 0) "
                     "[assume-failed]"),
              "%s", gpu_said(&e));
    kernel.fault = TK_DEBUG_NO_FAULT; // all goes on
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK, "%s", gpu_said(&e));
    close_debug(&e);
}

Test(cuda_debug, prepared) {
    gpu_env e = open_debug(0);
    tkc_prepared *p = NULL;
    cr_assert_eq(tkc_prepared_create(e.kernel, e.device, arguments(), 3, &p, &e.report), TKC_OK);
    prints(PRINT_END, 1, 0);
    kernel.fault = fault_word(3, CLAIM_T, 0);
    cr_expect_eq(tkc_prepared_launch(p, NULL, &e.report), TKC_ERROR_CHECK);
    cr_expect_str_eq(printed, "[1, 0] end\n");
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:2:5: error: assert does not hold in program (i = 1, j = 1) "
                     "at element [0]: below nine"),
              "%s", gpu_said(&e));
    kernel.fault = TK_DEBUG_NO_FAULT;
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    tkc_prepared_destroy(p);
    close_debug(&e);
}

// ---- The driver

#define BEGIN "cuCtxGetCurrent cuCtxPushCurrent_v2 cuStreamIsCapturing "

Test(cuda_debug, calls) {
    gpu_env e = open_debug(0);
    cr_assert_eq(tkc_prepare(e.kernel, e.device, arguments(), 3, NULL), TKC_OK);
    cr_expect_eq(e.fake->memories, 1); // made where the kernel is loaded
    gpu_clear_log(e.fake);
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_OK);
    cr_expect_str_eq(e.fake->log, BEGIN "cuMemcpyHtoD_v2 cuCtxGetCurrent cuLaunchKernel "
                                        "cuStreamSynchronize cuMemcpyDtoH_v2 cuCtxPopCurrent_v2 ");
    gpu_clear_log(e.fake);
    e.fake->capturing = true;
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "cannot be captured"), "%s", gpu_said(&e));
    cr_expect_str_eq(e.fake->log, BEGIN "cuCtxPopCurrent_v2 "); // the capture goes on
    e.fake->capturing = false;
    e.fake->pending = 700;
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "k.tk:4:1: error: kernel 'k' failed on Fake GPU 0: "
                                   "CUDA_ERROR_ILLEGAL_ADDRESS"),
              "%s", gpu_said(&e));
    close_debug(&e);
}

// A kernel without debug ops is launched as ever.
Test(cuda_debug, nothing_to_leave) {
    gpu_env e = gpu_config(FAKE_CUDA);
    tkc_config_debug(e.config, true);
    gpu_program(&e, "kernel k(y: out f32[N]) { y[0] = 1.0; }");
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    float y[4];
    tkc_arg a = gpu_tensor(y, TKC_F32, 1, &(int64_t){4});
    cr_expect_eq(gpu_launch(&e, &a, 1, NULL), TKC_OK, "%s", gpu_said(&e));
    cr_expect(!strstr(e.fake->log, "cuMemAlloc") && !strstr(e.fake->log, "cuStreamSync"));
    gpu_close(&e);
}

// ---- Threads: launches of one kernel take turns at what it leaves behind

enum { THREADS = 6, ROUNDS = 30 };

static void *launcher(void *arg) {
    gpu_env *e = arg;
    size_t bad = 0;
    for (int i = 0; i < ROUNDS; i++) {
        bad += tkc_launch(e->kernel, e->device, arguments(), 3, NULL, NULL) != TKC_OK;
    }
    return (void *)bad;
}

static atomic_int lines;
static void count_line(void *user, const char *line) {
    (void)user;
    lines += strcmp(line, "[0, 0] n 7 t [1, 2, 3, 448]") == 0;
}

Test(cuda_debug, threads) {
    gpu_env e = gpu_config(FAKE_CUDA);
    tkc_config_debug(e.config, true);
    tkc_config_print(e.config, count_line, NULL);
    gpu_program(&e, text);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    reset();
    prints(PRINT_T, 0, 1);
    e.fake->on_launch = act;
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, launcher, &e), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        cr_expect_null(bad);
    }
    cr_expect_eq(lines, THREADS * ROUNDS);
    close_debug(&e);
}

// ---- From the cache

static int cached_run(const char *folder) {
    gpu_env e = gpu_config(FAKE_CUDA);
    tkc_config_debug(e.config, true);
    tkc_config_print(e.config, take_line, NULL);
    tkc_config_cache(e.config, folder, 1 << 20);
    gpu_program(&e, text);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    e.fake->on_launch = act;
    int before = the_backend.compiled;
    printed[0] = 0;
    cr_expect_eq(gpu_launch(&e, arguments(), 3, NULL), TKC_ERROR_CHECK);
    cr_expect_str_eq(printed, "[0, 0] n 7 t [1, 2, 3, 448]\n");
    cr_expect(strstr(gpu_said(&e),
                     "k.tk:2:5: error: assert does not hold in program (i = 0, j = 1) "
                     "at element [3]: below nine [assert-failed]"),
              "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "k.tk:7:5: note: called from here"), "%s", gpu_said(&e));
    close_debug(&e);
    return the_backend.compiled - before;
}

Test(cuda_debug, from_the_cache) {
    char folder[] = "/tmp/tkc-test-XXXXXX";
    cr_assert(mkdtemp(folder));
    reset();
    prints(PRINT_T, 0, 1);
    kernel.fault = fault_word(2, CLAIM_T, 3);
    cr_expect_eq(cached_run(folder), 1);
    cr_expect_eq(cached_run(folder), 0);
    tkc_cache_clear(folder, NULL);
    rmdir(folder);
}
