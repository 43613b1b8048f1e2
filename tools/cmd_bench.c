// SPDX-License-Identifier: Apache-2.0
// tkc bench FILE: how fast a kernel is on a GPU, over sizes, beside a copy and a read.
#include "bench.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

enum { USUAL_LAUNCHES = 50, LEAST_LAUNCHES = 4, MOST_LAUNCHES = 10000 };

// ---- The command line

static bool is_gpu(tool *t, const char *device) {
    if (strncmp(device, "cuda", 4) == 0 && (!device[4] || device[4] == ':')) {
        return true;
    }
    bool sim = strncmp(device, "sim", 3) == 0;
    tool_error(t, CODE_USAGE,
               sim ? "the simulator counts what a launch does: 'tkc run --device sim --counters'"
                   : "'tkc run --time' tells how long a launch took elsewhere",
               "bench times kernels on a GPU, --device cuda or cuda:N, not on '%s'", device);
    return false;
}

static bool check_settings(tool *t, bench_settings *s) {
    if (s->common.files.n != 1) {
        tool_usage(t, s->common.files.n ? "bench takes one FILE" : "no FILE is given");
        return false;
    }
    s->device = s->device ? s->device : "cuda";
    s->launches = s->launches ? s->launches : USUAL_LAUNCHES;
    if (s->launches < LEAST_LAUNCHES || s->launches > MOST_LAUNCHES) {
        tool_usage(t, "option --launches takes %d to %d", LEAST_LAUNCHES, MOST_LAUNCHES);
        return false;
    }
    // An optional output is there if it is compared, or named.
    s->k.wanted.at = TOOL_NEW(t, const char *, s->x.n + 1);
    for (size_t i = 0; i < s->x.n; i++) {
        s->k.wanted.at[s->k.wanted.n++] = s->x.at[i].name;
    }
    return is_gpu(t, s->device);
}

// Numbers of warps are powers of two up to 32, or 0: the compiler's choice.
static bool are_warps(const char *text) {
    for (;;) {
        size_t n = strspn(text, "0123456789");
        const char *known = n == 1 ? "0 1 2 4 8" : n == 2 ? "16 32" : "";
        char word[3] = {text[0], n == 2 ? text[1] : 0};
        if (!*known || !strstr(known, word) || (text[n] && text[n] != ',')) {
            return false;
        }
        if (!text[n]) {
            return true;
        }
        text += n + 1;
    }
}

static bool check_warps(tool *t, bench *b) {
    if (b->s->warps && !are_warps(b->s->warps)) {
        tool_usage(t,
                   "option --warps takes 0 (the compiler's choice), 1, 2, 4, 8, 16, 32, with "
                   "commas between them; not '%s'",
                   b->s->warps);
        return false;
    }
    b->sweeps_warps = b->s->warps != NULL;
    return sweep_add_first(t, &b->sizes, "warps", b->s->warps);
}

// Names of --sizes are the kernel's: of run-time sizes, or of those that are compile-time
// parameters and follow from the arguments.
static bool check_names(const bench *b) {
    size_t ndim = tkc_kernel_dim_count(b->lib.kernel), n = 0;
    size_t ncparam = tkc_kernel_cparam_count(b->lib.kernel);
    const char **names = TOOL_NEW(b->t, const char *, ndim + ncparam + 1);
    for (size_t i = 0; i < ndim; i++) {
        names[n++] = tkc_kernel_dim(b->lib.kernel, i);
    }
    for (size_t i = 0; i < ncparam; i++) {
        const tkc_cparam_info *c = tkc_kernel_cparam(b->lib.kernel, i);
        if (c->deduced && strcmp(c->kind, "int") == 0) {
            names[n++] = c->name;
        }
    }
    for (size_t i = b->sweeps_warps; i < b->sizes.naxis; i++) {
        const char *name = b->sizes.axis[i].name, *list = "the kernel has no sizes";
        size_t at = 0;
        while (at < n && strcmp(names[at], name) != 0) {
            at++;
        }
        for (size_t k = 0; k < n; k++) {
            list = tool_format(b->t, "%s%s%s", k ? list : "the kernel's sizes: ", k ? ", " : "",
                               names[k]);
        }
        if (at == n) {
            tool_error(b->t, CODE_USAGE, list, "--sizes %s: the kernel has no such size%s", name,
                       tool_nearest(b->t, name, names, n));
            return false;
        }
    }
    return true;
}

// Names of parameters, before anything is opened.
static bool check_parameters(const bench *b) {
    arguments a;
    arguments_open(b->t, &b->lib, &a);
    bool ok = arguments_are_given(b->t, &b->s->k, &a);
    for (size_t i = 0; i < b->s->k.in.n; i++) {
        ok = arguments_find(b->t, &a, "--in", b->s->k.in.at[i].name) < a.n && ok;
    }
    for (size_t i = 0; i < b->s->k.scalar.n; i++) {
        ok = arguments_find(b->t, &a, "--scalar", b->s->k.scalar.at[i].name) < a.n && ok;
    }
    return expect_check(b->t, &b->s->x, &a) && ok;
}

// ---- The run

static bool open_reader(bench *b) {
    tkc_report *report = NULL;
    tkc_status s =
        tkc_program_from_file(b->lib.context, "std/reduce.tk", &b->reader_program, &report);
    if (s == TKC_OK) {
        s = tkc_kernel_create(b->reader_program, "max_rows", NULL, 0, &b->reader, &report);
    }
    return tool_report(b->t, s, report);
}

static bool open_devices(bench *b) {
    tkc_report *report = NULL;
    tkc_status s = tkc_device_open(b->lib.context, b->s->device, &b->device, &report);
    if (s == TKC_OK) {
        s = tkc_device_open(b->lib.context, "cpu", &b->cpu, &report);
    }
    if (!tool_report(b->t, s, report)) {
        return false;
    }
    const char *colon = strchr(b->s->device, ':');
    size_t ordinal = 0;
    for (const char *p = colon ? colon + 1 : ""; *p; p++) {
        ordinal = ordinal * 10 + (size_t)(*p - '0');
    }
    tkc_build build = {.size = sizeof build};
    b->gpu.size = sizeof b->gpu;
    tkc_gpu_info(b->lib.context, ordinal, &b->gpu);
    tkc_build_info(b->lib.context, &build);
    b->driver = build.driver;
    gpu_monitor_open(&b->monitor, b->gpu.bus);
    return true;
}

static void run_points(bench *b) {
    b->point = TOOL_NEW(b->t, bench_point, b->sizes.npoint);
    bench_show_head(b);
    bool go_on = true;
    while (b->npoint < b->sizes.npoint && go_on) {
        bench_point *p = &b->point[b->npoint];
        go_on = bench_run_point(b, b->npoint, p);
        bench_show_point(b, p);
        b->npoint++;
    }
    bench_show_end(b);
    if (b->s->json) {
        bench_write_json(b, b->s->json);
    }
    if (b->s->plot) {
        bench_write_plot(b, b->s->plot);
    }
}

static void run(tool *t, void *settings) {
    bench_settings *s = settings;
    bench b = {.t = t, .s = s};
    if (!check_settings(t, s) || !sweep_parse(t, s->sizes, &b.sizes) || !check_warps(t, &b)) {
        return;
    }
    if (session_open(t, &b.lib, &s->k) && session_load(t, &b.lib, s->common.files.at[0]) &&
        session_kernel(t, &b.lib, &s->k) && check_names(&b) && check_parameters(&b) &&
        expect_read(t, &s->x) && open_reader(&b) && open_devices(&b) && bench_time_open(&b)) {
        run_points(&b);
    }
    bench_time_close(&b);
    gpu_monitor_close(&b.monitor);
    tkc_kernel_destroy(b.reader);
    tkc_program_destroy(b.reader_program);
    tkc_kernel_destroy(b.lib.kernel);
    b.lib.kernel = NULL;
    tkc_device_close(b.cpu);
    tkc_device_close(b.device);
    session_close(&b.lib);
}

static const option options[] = {
    {"--sizes", NULL, OPTION_TEXT, "M=N,...", offsetof(bench_settings, sizes),
     "sizes by name: M=64,N=1024:65536:x2 (each twice the one before), N=64:512:+64 (in steps), "
     "N=781,1024 (one by one); each combination is a point",
     NULL},
    {"--warps", NULL, OPTION_TEXT, "N,...", offsetof(bench_settings, warps),
     "each point with these numbers of warps a program; 0: the compiler's choice", NULL},
    KERNEL_OPTIONS(bench_settings),
    {"--given", NULL, OPTION_NAMES, "NAME", offsetof(bench_settings, k.given),
     "an optional parameter is there", NULL},
    EXPECT_OPTIONS,
    {"--no-check", NULL, OPTION_FLAG, NULL, offsetof(bench_settings, no_check),
     "do not compute on the CPU what outputs should be; NaN is refused all the same", NULL},
    {"--device", NULL, OPTION_TEXT, "NAME", offsetof(bench_settings, device),
     "cuda (the default), or cuda:1, ... of several", NULL},
    {"--launches", NULL, OPTION_COUNT, "N", offsetof(bench_settings, launches),
     "how many are timed; 50", NULL},
    {"--json", NULL, OPTION_TEXT, "FILE", offsetof(bench_settings, json),
     "write all figures there; - is standard output", NULL},
    {"--plot", NULL, OPTION_TEXT, "FILE.svg", offsetof(bench_settings, plot),
     "draw speed over the size that varies, beside the ceilings", NULL},
    {"--seed", NULL, OPTION_COUNT, "S", offsetof(bench_settings, k.seed), "of the random arrays; 0",
     NULL},
    {"--threads", NULL, OPTION_COUNT, "N", offsetof(bench_settings, k.threads),
     "of the CPU, which computes what outputs should be; 0 (the default): one a processor", NULL},
    {"--no-cache", NULL, OPTION_FLAG, NULL, offsetof(bench_settings, k.no_cache),
     "neither read nor keep compiled GPU kernels on the disk", NULL},
    {"-Werror", NULL, OPTION_FLAG, NULL, offsetof(bench_settings, k.werror), "warnings are errors",
     NULL},
    COMMON_OPTIONS(bench_settings),
};

const command command_bench = {
    .name = "bench",
    .usage = "bench FILE [--sizes M=N,...] [--in NAME=ARRAY]... [OPTION]...",
    .what = "Times a kernel of FILE on a GPU, beside a copy and a read of its largest tensor. "
            "Outputs are compared with what the CPU computes, or with files. Inputs that --in does "
            "not name are randn(...) of the sizes of --sizes, whose names ARRAY may hold, as in "
            "randint(0,N,M).",
    .more = ARRAY_HELP,
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(bench_settings),
    .run = run,
};
