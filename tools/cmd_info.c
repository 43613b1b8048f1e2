// SPDX-License-Identifier: Apache-2.0
// tkc info: what this build and this machine have.
#include "cache.h"
#include "commands.h"

#include <stdio.h>
#include <unistd.h>

typedef struct info_settings {
    common_settings common;
} info_settings;

static void show_gpu(tkc_context *c, size_t i) {
    tkc_gpu g = {.size = sizeof g};
    if (tkc_gpu_info(c, i, &g) != TKC_OK) {
        printf("cuda:%zu          the driver does not say what it is\n", i);
        return;
    }
    printf("cuda:%-12zu %s, compute capability %u.%u", i, g.name, g.major, g.minor);
    if (g.memory) {
        printf(", %.1f GiB", (double)g.memory / (1 << 30));
    }
    printf(g.target ? "; compiled for as %s\n" : "; too old: 8.0 or newer is needed\n", g.target);
}

// Where the system says it.
static void show_cpu(void) {
    const long threads = sysconf(_SC_NPROCESSORS_ONLN);
    printf("cpu               here");
    if (threads > 0) {
        printf(": %ld thread%s", threads, threads == 1 ? "" : "s");
    }
#ifdef _SC_PHYS_PAGES
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (threads > 0 && pages > 0 && size > 0) {
        printf(", %.1f GiB", (double)pages * (double)size / (1 << 30));
    }
#endif
    puts("");
}

static void show(tool *t, tkc_context *c) {
    tkc_build b = {.size = sizeof b};
    tkc_target target;
    if (!tool_report(t, tkc_build_info(c, &b), NULL)) {
        return;
    }
    printf("tkc               %s\n", tkc_version());
    if (b.llvm) {
        printf("code for GPUs     LLVM %s\n", b.llvm);
    } else {
        puts("code for GPUs     none: built without LLVM");
    }
    printf("targets          ");
    for (size_t i = 0; tkc_target_info(i, &target); i++) {
        printf(" %s", target.name);
    }
    printf("\nassembler         %s\n", b.assembler[0] ? b.assembler : "none; the driver assembles");
    if (b.driver) {
        printf("GPU driver        CUDA %u.%u\n", b.driver / 1000, b.driver % 1000 / 10);
    } else {
        printf("GPU driver        none: %s\n", b.why);
    }
    const char *folder = cache_folder(t);
    printf("compiled kernels  %s\n", folder ? folder : "not kept");
    show_cpu();
    puts(b.llvm ? "sim               here: runs the code for a GPU on the CPU"
                : "sim               none: built without LLVM");
    for (size_t i = 0; i < b.gpus; i++) {
        show_gpu(c, i);
    }
}

static void run(tool *t, void *settings) {
    const info_settings *s = settings;
    session lib;
    if (s->common.files.n) {
        tool_usage(t, "info takes no FILE");
    } else if (session_open(t, &lib, NULL)) {
        show(t, lib.context);
        session_close(&lib);
    }
}

static const option options[] = {COMMON_OPTIONS(info_settings)};

const command command_info = {
    .name = "info",
    .usage = "info",
    .what = "Shows what this build can, and what the machine has: the assembler, the GPU driver, "
            "and the devices that 'tkc run --device' takes.",
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(info_settings),
    .run = run,
};
