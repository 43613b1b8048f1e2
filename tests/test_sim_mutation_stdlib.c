// SPDX-License-Identifier: Apache-2.0
// Deletions from what the compiler makes of shipped kernels, and of loops whose tiles are loaded
// ahead: without any one of its barriers, waits for asynchronous copies, arrivals, and fences in
// front of copies, the simulator catches it, by a report or by a wrong value, within 20 seeds.
// Needs the GPU back end.
//
// Barriers that change nothing here are counted as well: in a loop that only stores, one keeps the
// stores of successive steps in order, for tensors whose elements lie on each other (a stride may
// be 0).
#include "tests/gpu_env.h"

#include "runtime/cuda_driver.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 * 1024, SEEDS = 20, SILENT = 4 };

typedef struct shipped {
    const char *file, *kernel; // or the text
    unsigned warps;
    tkc_define define[2];
    int64_t x[2], y[2];
    unsigned idle; // of them, that only such tensors need
    bool huge;     // the first row's numbers are, and a sum of their squares overflows
} shipped;

static gpu_compile_fn real;
static unsigned deleted;  // the one that the back end leaves out, from 1 on; 0: none
static unsigned barriers; // that it made

// With its condition, if it has one. What would have waited goes on.
static void delete (char *text, char *at) {
    static const char go_on[] = "setp.eq.u32 %there, 0, 0";
    const bool waits = strncmp(at, "mbarrier.try", 12) == 0;
    while (at > text && at[-1] != '\n' && at[-1] != '\t') {
        at--;
    }
    memset(at, ' ', strcspn(at, ";"));
    if (waits) {
        memcpy(at, go_on, sizeof go_on - 1);
    }
}

static tk_image *compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags) {
    tk_image *i = real(arena, m, o, diags);
    barriers = 0;
    char *text = i ? tk_strdup(arena, i->ptx) : NULL;
    static const char *const words[] = {
        "bar.sync",        "bar.warp.sync",   "cp.async.wait_all",        "fence.proxy.async",
        "mbarrier.arrive", "fence.mbarrier_", "mbarrier.try_wait.parity."};
    for (unsigned k = 0; k < sizeof words / sizeof *words; k++) {
        for (char *at = text; at && (at = strstr(at, words[k])) != NULL; at += strlen(words[k])) {
            if (++barriers == deleted) {
                delete (text, at);
                i->ptx = text;
            }
        }
    }
    return i;
}

static char *source_of(const shipped *s) {
    static char raw[1 << 16], text[1 << 17];
    char path[128], mark[128];
    if (strncmp(s->file, "kernel", 6) == 0) {
        snprintf(text, sizeof text, "@warps(%u)\n%s", s->warps, s->file);
        return text;
    }
    snprintf(path, sizeof path, "stdlib/%s", s->file);
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s", path);
    raw[fread(raw, 1, sizeof raw - 1, f)] = 0;
    fclose(f);
    snprintf(mark, sizeof mark, "kernel %s<", s->kernel);
    const char *at = strstr(raw, mark);
    cr_assert(at != NULL, "%s", mark);
    snprintf(text, sizeof text, "%.*s@warps(%u)\n%s", (int)(at - raw), raw, s->warps, at);
    return text;
}

static void open_kernel(gpu_env *e, const shipped *s) {
    const char *text = source_of(s);
    unsigned n = 0;
    while (n < 2 && s->define[n].name) {
        n++;
    }
    memset(e, 0, sizeof *e);
    e->config = tkc_config_create();
    e->config->gpu_compile = compile;
    cr_assert_eq(tkc_context_create(e->config, &e->context), TKC_OK);
    tkc_status status =
        tkc_program_from_string(e->context, "k.tk", text, strlen(text), &e->program, &e->report);
    cr_assert_eq(status, TKC_OK, "%s", tkc_report_text(e->report, false));
    status = tkc_kernel_create(e->program, s->kernel, s->define, n, &e->kernel, &e->report);
    cr_assert_eq(status, TKC_OK, "%s", tkc_report_text(e->report, false));
    status = tkc_device_open(e->context, "sim", &e->device, &e->report);
    cr_assert_eq(status, TKC_OK, "%s", tkc_report_text(e->report, false));
}

static void close_kernel(gpu_env *e) {
    tkc_report_destroy(e->report);
    tkc_device_close(e->device);
    tkc_kernel_destroy(e->kernel);
    tkc_program_destroy(e->program);
    tkc_context_destroy(e->context);
    tkc_config_destroy(e->config);
}

static bool launch_kernel(gpu_env *e, const shipped *s, uint64_t seed, float *y) {
    static _Alignas(64) float x[MOST];
    for (unsigned k = 0; k < MOST; k++) {
        x[k] = (float)(int)(k * 2654435761u >> 26) / 8 - 4;
        x[k] *= s->huge && k < s->x[1] ? 0x1p90f : 1;
        y[k] = 0;
    }
    tkc_arg arg[8] = {gpu_tensor(x, TKC_F32, 2, s->x), gpu_tensor(y, TKC_F32, 2, s->y)};
    tkc_launch_options o = {.size = sizeof o, .seed = seed};
    return tkc_launch(e->kernel, e->device, arg, 2, &o, &e->report) == TKC_OK;
}

static void check(const shipped *s) {
    static float want[MOST], got[MOST];
    gpu_env e;
    tkc_config *probe = tkc_config_create();
    real = gpu_backend(probe);
    tkc_config_destroy(probe);
    if (!real) {
        cr_skip_test("this build has no GPU back end");
    }
    deleted = 0;
    open_kernel(&e, s);
    for (uint64_t seed = 0; seed < SILENT; seed++) {
        cr_assert(launch_kernel(&e, s, seed, seed ? got : want), "%s",
                  tkc_report_text(e.report, false));
        cr_assert(seed == 0 || memcmp(want, got, sizeof got) == 0, "seed %u", (unsigned)seed);
    }
    close_kernel(&e);
    unsigned n = barriers, missed = 0, last = 0;
    cr_expect_gt(n, s->idle, "%s, %u warps: no barrier", s->kernel, s->warps);
    for (deleted = 1; deleted <= n; deleted++) {
        bool caught = false;
        open_kernel(&e, s);
        for (uint64_t seed = 0; seed < SEEDS && !caught; seed++) {
            caught = !launch_kernel(&e, s, seed, got) || memcmp(want, got, sizeof got) != 0;
        }
        close_kernel(&e);
        missed += !caught;
        last = caught ? last : deleted;
    }
    cr_expect_eq(missed, s->idle, "%s, %u warps: %u of %u barriers are not missed, the last is %u",
                 s->kernel, s->warps, missed, n, last);
}

// By tensor copies; by copies of the threads, as a panel has only 4 rows; behind an op that has
// used the memory that the ring gets. The loops need no barriers but those of the rings. The waits
// for empty slots in front of the loop, for the first two tiles, are over at once; one warp has
// itself released what it fetches next.
#define RING(ROWS, COLUMNS, FIRST)                                                                 \
    "kernel ring(x: in f32[M, N], y: out f32[C, M]) grid (i in cdiv(M, " ROWS ")) {\n"             \
    "    var s = " FIRST ";\n"                                                                     \
    "    for k in 0 .. N step " COLUMNS " pipeline(3) {\n"                                         \
    "        s = s + transpose(x[i * " ROWS " +: " ROWS ", k +: " COLUMNS "]);\n"                  \
    "    }\n"                                                                                      \
    "    y[0 +: " COLUMNS ", i * " ROWS " +: " ROWS "] = s;\n"                                     \
    "}\n"
#define PLAIN  "full([32, 16], f32(0))"
#define SORTED "sort(x[0 +: 32, 0 +: 16], axis = 0)"

// clang-format off
static const shipped of_rings[] = {
    {RING("16", "32", PLAIN), "ring", 4, {{NULL, NULL}}, {20, 256}, {32, 20}, 2, false},
    {RING("16", "32", PLAIN), "ring", 1, {{NULL, NULL}}, {20, 256}, {32, 20}, 3, false},
    {RING("16", "32", SORTED), "ring", 4, {{NULL, NULL}}, {20, 256}, {32, 20}, 2, false},
    {RING("4", "64", "full([64, 4], f32(0))"), "ring", 2, {{NULL, NULL}}, {7, 512}, {64, 7}, 2, false},
};
static const shipped of_softmax[] = {
    {"softmax.tk", "softmax", 4, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, false},
    {"softmax.tk", "softmax", 8, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, false},
    {"softmax.tk", "softmax", 4, {{NULL, NULL}}, {3, 1000}, {3, 1000}, 0, false},
    {"softmax.tk", "softmax", 8, {{NULL, NULL}}, {3, 1000}, {3, 1000}, 0, false},
    {"softmax.tk", "softmax", 4, {{NULL, NULL}}, {3, 781}, {3, 781}, 0, false},
    {"softmax.tk", "softmax", 4, {{"BN", "512"}}, {2, 1501}, {2, 1501}, 0, false},
};
static const shipped of_layernorm[] = {
    {"norm.tk", "layernorm", 4, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, true},
    {"norm.tk", "layernorm", 8, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, true},
    {"norm.tk", "layernorm", 4, {{NULL, NULL}}, {3, 1000}, {3, 1000}, 0, false},
    {"norm.tk", "layernorm", 8, {{NULL, NULL}}, {3, 1000}, {3, 1000}, 0, false},
    {"norm.tk", "layernorm", 4, {{NULL, NULL}}, {3, 781}, {3, 781}, 0, false},
};
static const shipped of_scan[] = {
    {"scan.tk", "cumsum_rows", 4, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, false},
    {"scan.tk", "cumsum_rows", 8, {{"BN", "512"}}, {2, 1500}, {2, 1500}, 0, false},
};
static const shipped of_transpose[] = {
    {"transpose.tk", "transpose_matrix", 4, {{NULL, NULL}}, {70, 90}, {90, 70}, 0, false},
    {"transpose.tk", "transpose_matrix", 8, {{NULL, NULL}}, {70, 90}, {90, 70}, 0, false},
};
// clang-format on

static void check_all(const shipped *s, size_t n) {
    for (size_t k = 0; k < n; k++) {
        check(&s[k]);
    }
}

Test(sim_mutation_stdlib, rings) { check_all(of_rings, 4); }
Test(sim_mutation_stdlib, softmax) { check_all(of_softmax, 6); }
Test(sim_mutation_stdlib, layernorm) { check_all(of_layernorm, 5); }
Test(sim_mutation_stdlib, scan) { check_all(of_scan, 2); }
Test(sim_mutation_stdlib, transpose) { check_all(of_transpose, 2); }
