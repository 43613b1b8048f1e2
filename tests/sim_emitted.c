// SPDX-License-Identifier: Apache-2.0
// See sim_emitted.h.
#include "tests/sim_emitted.h"

#include "runtime/cuda_driver.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 * 1024, SEEDS = 20, LINE = 120 };

static gpu_compile_fn real;
static const tk_image *kept; // of the kernel, while what it was made for is open
static unsigned deleted;     // the one that the back end leaves out, from 1 on; 0: none
static const char *all;      // what it leaves out besides; NULL: nothing
static unsigned found;       // of what may be deleted
static char said[LINE];      // what was deleted

// The statement at `at`, with its predicate. What would have waited in a loop goes on.
static void delete (char *text, char *at) {
    static const char go_on[] = "setp.eq.u32 %there, 0, 0;";
    const bool polls = strstr(at, "_wait.parity") == at + strcspn(at, "_;");
    while (at > text && !strchr("\n\t;{}", at[-1])) {
        at--;
    }
    size_t n = strcspn(at, ";") + 1;
    snprintf(said, sizeof said, "%.*s", (int)n, at);
    memset(at, ' ', n);
    if (polls) {
        cr_assert_geq(n, sizeof go_on - 1);
        memcpy(at, go_on, sizeof go_on - 1);
    }
}

static tk_image *compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags) {
    static const char *const words[] = {"bar.",
                                        "barrier.",
                                        "cp.async.wait_",
                                        "cp.async.commit_",
                                        "cp.async.bulk.wait_",
                                        "cp.async.bulk.commit_",
                                        "mbarrier.arrive",
                                        "mbarrier.expect_tx",
                                        "mbarrier.test_wait",
                                        "mbarrier.try_wait",
                                        "fence.",
                                        "wgmma.fence",
                                        "wgmma.commit_",
                                        "wgmma.wait_"};
    if (!kept) {
        kept = real(arena, m, o, diags);
    }
    if (!kept) {
        return NULL;
    }
    tk_image *i = TK_NEW(arena, tk_image);
    *i = *kept;
    char *text = tk_strdup(arena, kept->ptx);
    i->ptx = text;
    found = 0;
    for (unsigned k = 0; k < sizeof words / sizeof *words; k++) {
        for (char *at = text; (at = strstr(at, words[k])) != NULL; at++) {
            // Behind another word it is a part of one, but for cp.async.mbarrier.arrive.
            const bool whole = at == text || strchr(" \t\n;{", at[-1]) ||
                               (at - text > 9 && strncmp(at - 9, "cp.async.", 9) == 0);
            found += whole;
            if (whole && (found == deleted || (all && strncmp(at, all, strlen(all)) == 0))) {
                delete (text, at);
            }
        }
    }
    return i;
}

static char *source_of(const sim_emitted *s) {
    static char raw[1 << 16], text[1 << 17];
    char path[128], mark[128];
    if (strchr(s->file, '\n')) {
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

static void open_kernel(gpu_env *e, const sim_emitted *s) {
    const char *text = source_of(s);
    unsigned n = 0;
    while (n < SIM_EMITTED_DEFINES && s->define[n].name) {
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
    status = tkc_device_open(e->context, s->device ? s->device : "sim", &e->device, &e->report);
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

// Numbers of f16 are small, so that sums of their products are exact.
static bool launch_kernel(gpu_env *e, const sim_emitted *s, uint64_t seed, float *y) {
    static const uint16_t small[] = {0x0000, 0x3c00, 0xbc00, 0x3800,
                                     0x4000, 0xb800, 0x4200, 0xc000};
    static _Alignas(64) float x[MOST];
    static _Alignas(64) uint16_t h[MOST];
    for (unsigned k = 0; k < MOST; k++) {
        x[k] = (float)(int)(k * 2654435761u >> 26) / 8 - 4;
        x[k] *= s->huge && k < s->x[1] ? 0x1p90f : 1;
        h[k] = small[k * 2654435761u >> 29];
        y[k] = 0;
    }
    const tkc_dtype type = s->halves ? TKC_F16 : TKC_F32;
    tkc_arg arg[3];
    size_t n = 0;
    arg[n++] = gpu_tensor(s->halves ? (void *)h : (void *)x, type, 2, s->x);
    if (s->w[0]) {
        arg[n++] =
            gpu_tensor(s->halves ? (void *)(h + MOST / 2) : (void *)(x + MOST / 2), type, 2, s->w);
    }
    arg[n++] = gpu_tensor(y, TKC_F32, 2, s->y);
    tkc_launch_options o = {.size = sizeof o, .seed = seed};
    return tkc_launch(e->kernel, e->device, arg, n, &o, &e->report) == TKC_OK;
}

// By a fault while it ran, not because the text cannot be read.
static bool caught(const sim_emitted *s, const float *want) {
    static float got[MOST];
    gpu_env e;
    bool is = false;
    open_kernel(&e, s);
    for (uint64_t seed = 0; seed < SEEDS && !is; seed++) {
        const bool ran = launch_kernel(&e, s, seed, got);
        is = !ran || memcmp(want, got, sizeof got) != 0;
        cr_assert(ran || strstr(tkc_report_text(e.report, false), "block "), "without '%s': %s",
                  said, tkc_report_text(e.report, false));
    }
    close_kernel(&e);
    return is;
}

void sim_check_emitted(const sim_emitted *s) {
    static float want[MOST], got[MOST];
    gpu_env e;
    tkc_config *probe = tkc_config_create();
    real = gpu_backend(probe);
    tkc_config_destroy(probe);
    if (!real) {
        cr_skip_test("this build has no GPU back end");
    }
    deleted = 0;
    kept = NULL;
    open_kernel(&e, s);
    for (uint64_t seed = 0; seed < s->silent; seed++) {
        cr_assert(launch_kernel(&e, s, seed, seed ? got : want), "%s",
                  tkc_report_text(e.report, false));
        cr_assert(seed == 0 || memcmp(want, got, sizeof got) == 0, "seed %u", (unsigned)seed);
    }
    for (unsigned k = 0; k < SIM_EMITTED_WORDS && s->has[k]; k++) {
        cr_expect(strstr(kept->ptx, s->has[k]), "%s: no %s", s->kernel, s->has[k]);
    }
    const unsigned n = found;
    unsigned missed = 0;
    char last[LINE] = "";
    for (deleted = 1; deleted <= n; deleted++) {
        if (!caught(s, want)) {
            missed++;
            memcpy(last, said, sizeof last);
        }
    }
    all = s->together;
    cr_expect(!all || caught(s, want), "%s, %u warps: no %s", s->kernel, s->warps, all);
    all = NULL;
    close_kernel(&e);
    cr_expect_gt(n, s->idle, "%s, %u warps: nothing that is needed", s->kernel, s->warps);
    cr_expect_eq(missed, s->idle, "%s, %u warps: %u of %u are not missed, the last is %s",
                 s->kernel, s->warps, missed, n, last);
}
