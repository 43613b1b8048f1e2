// SPDX-License-Identifier: Apache-2.0
// tkc explain FILE: what the compiler made of a kernel, by line of source.
#include "commands.h"
#include "io.h"

#include <string.h>

typedef struct explain_settings {
    common_settings common;
    kernel_settings k;
    int format; // tkc_explain_format
    const char *arch, *gpu, *output;
    bool contiguous, whole_rows, near, unit_stride, mapped;
} explain_settings;

static bool known_gpu(tool *t, const char *gpu) {
    const char *names[32], *name;
    const char *list = "";
    size_t n = 0;
    for (; n < 32 && (name = tkc_explain_gpu(n)) != NULL; n++) {
        names[n] = name;
        list = tool_format(t, "%s%s%s", list, n ? ", " : "there are: ", name);
    }
    for (size_t i = 0; i < n; i++) {
        if (!gpu || strcmp(names[i], gpu) == 0) {
            return true;
        }
    }
    tool_error(t, CODE_USAGE, list, "option --gpu: there is no GPU '%s'%s", gpu,
               tool_nearest(t, gpu, names, n));
    return false;
}

// Demands that do not hold are errors, but the text is there.
static void explain(tool *t, session *lib, const explain_settings *s) {
    arguments a;
    if (!session_kernel(t, lib, &s->k) || !arguments_make(t, lib, &s->k, false, &a)) {
        return;
    }
    const tkc_explain_options o = {.size = sizeof o,
                                   .arch = s->arch || s->gpu ? s->arch : "sm_90a",
                                   .gpu = s->gpu,
                                   .format = (tkc_explain_format)s->format,
                                   .contiguous = s->contiguous,
                                   .whole_rows = s->whole_rows,
                                   .near = s->near,
                                   .unit_stride = s->unit_stride,
                                   .mapped = s->mapped};
    tkc_text text = {NULL, 0};
    tkc_report *report = NULL;
    tkc_status status =
        tkc_kernel_explain(lib->kernel, &o, a.arg, a.n, a.size, a.nsize, &text, &report);
    tool_report(t, status, report);
    if (text.at) {
        file_write(t, s->output, text.at, text.size);
    }
    tkc_text_free(&text);
}

static void run(tool *t, void *settings) {
    const explain_settings *s = settings;
    session lib;
    if (s->common.files.n != 1) {
        tool_usage(t, "%s", s->common.files.n ? "one FILE is wanted here" : "no FILE is given");
        return;
    }
    if (!target_known(t, s->arch) || !known_gpu(t, s->gpu)) {
        return;
    }
    if (session_open(t, &lib, &s->k) && session_load(t, &lib, s->common.files.at[0])) {
        explain(t, &lib, s);
    }
    session_close(&lib);
}

static const option options[] = {
    {"--format", NULL, OPTION_CHOICE, "text|json|sarif", offsetof(explain_settings, format),
     "for people, for programs, or SARIF 2.1.0 for editors and code review", NULL},
    {"--arch", NULL, OPTION_TEXT, "TARGET", offsetof(explain_settings, arch),
     "the target to compile for; that of --gpu, or sm_90a, where none is named. 'tkc info' lists "
     "them",
     NULL},
    {"--gpu", NULL, OPTION_TEXT, "NAME", offsetof(explain_settings, gpu),
     "whose bandwidth and arithmetic the least time is for, as H200; one of the target's where "
     "none "
     "is named",
     NULL},
    {"--contiguous", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, contiguous),
     "tensors of unknown size have a last stride of 1 and 16-byte alignment", NULL},
    {"--whole-rows", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, whole_rows),
     "and a last size that is a multiple of 16 bytes", NULL},
    {"--unit-stride", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, unit_stride),
     "tensors of unknown size have a last stride of 1, aligned or not", NULL},
    {"--mapped", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, mapped),
     "they are as with --contiguous, with at most 5 dimensions and strides above 0", NULL},
    {"--near", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, near),
     "and no elements 2^31 from the first", NULL},
    {"--output", "-o", OPTION_TEXT, "FILE", offsetof(explain_settings, output), "write there",
     NULL},
    KERNEL_OPTIONS(explain_settings),
    {"--given", NULL, OPTION_NAMES, "NAME", offsetof(explain_settings, k.given),
     "an optional parameter is there, whatever it is", NULL},
    {"--debug", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, k.debug),
     "keep asserts, prints and assumes", NULL},
    {"-Werror", NULL, OPTION_FLAG, NULL, offsetof(explain_settings, k.werror),
     "warnings are errors", NULL},
    COMMON_OPTIONS(explain_settings),
};

const command command_explain = {
    .name = "explain",
    .usage = "explain FILE [OPTION]...",
    .what =
        "Says what the compiler made of a kernel for a GPU, by line of source: layouts, widths "
        "of accesses, sectors, shared memory, bank conflicts, bounds that are tested, "
        "registers, blocks at once, and the time that memory and arithmetic take at least. "
        "Tensors whose sizes --in or --dim gives are compiled for as a launch would. Scalars that "
        "--scalar gives are counted with, and the code takes any.",
    .more = ARRAY_HELP,
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(explain_settings),
    .run = run,
};
