// SPDX-License-Identifier: Apache-2.0
// tkc run FILE: one launch of a kernel on arrays from the command line.
#include "commands.h"
#include "element.h"
#include "expect.h"
#include "on_device.h"
#include "show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct run_settings {
    common_settings common;
    expect_settings x;
    kernel_settings k;
    const char *device;
    pair_list out;
    bool check, time, print;
    uint64_t schedule;
    int counters; // 0 none, 1 text, 2 json
} run_settings;

// Which of several ("cuda:1") the library judges.
static bool known_device(tool *t, const char *text) {
    const char *name = tool_strndup(t, text, strcspn(text, ":"));
    const char *names[16] = {"auto"};
    size_t n = 1;
    for (size_t i = 0; n < 16 && tkc_device_list(i); i++) {
        names[n++] = tkc_device_list(i);
    }
    const char *list = "this build has auto";
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
        if (strcmp(names[i], "auto") != 0) {
            list = tool_format(t, "%s, %s", list, names[i]);
        }
    }
    tool_error(t, CODE_USAGE, list, "there is no device '%s'%s", name,
               tool_nearest(t, name, names, n));
    return false;
}

// What only the simulator has is asked of nothing else.
static bool simulated(tool *t, const run_settings *s) {
    bool sim = s->device && strncmp(s->device, "sim", 3) == 0;
    if (!sim && (s->schedule || s->counters)) {
        tool_usage(t, "option %s needs --device sim", s->counters ? "--counters" : "--schedule");
        return false;
    }
    return true;
}

static bool check_outputs(tool *t, const run_settings *s, const arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < s->out.n; i++) {
        const pair *p = &s->out.at[i];
        ok = arguments_is_output(t, a, "--out", p->name) && ok;
        if (!*p->value) {
            tool_usage(t, "--out %s: a file is missing", p->name);
            ok = false;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(p->value, s->out.at[j].value) == 0) {
                tool_usage(t, "--out %s and --out %s write to the same file", s->out.at[j].name,
                           p->name);
                ok = false;
            }
        }
    }
    ok = expect_check(t, &s->x, a) && ok;
    return ok;
}

static const pair *find_pair(const pair_list *list, const char *name) {
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i].name, name) == 0) {
            return &list->at[i];
        }
    }
    return NULL;
}

static void deliver(tool *t, run_settings *s, const arguments *a) {
    for (size_t i = 0; i < a->n; i++) {
        const tkc_param_info *p = a->param[i];
        if (!p->is_tensor || p->access == TKC_IN || a->arg[i].kind != TKC_ARG_TENSOR) {
            continue;
        }
        const tkc_tensor *x = &a->arg[i].tensor;
        const pair *out = find_pair(&s->out, p->name);
        expectation *e = expect_find(&s->x, p->name);
        if (out) {
            npy_write(t, out->value, x);
        }
        if (s->print) {
            show_whole(t, p->name, x);
        } else if (s->out.n == 0 && !e) {
            show_summary(t, p->name, x);
        }
        if (e) {
            expect_compare(t, e, x);
        }
    }
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void show_counters(void *user, const char *plain, const char *json) {
    const run_settings *s = user;
    printf("%s", s->counters == 2 ? json : plain);
    if (s->counters == 2) {
        printf("\n");
    }
}

// True where the outputs are there.
static bool launch_once(tool *t, run_settings *s, session *lib, device_arguments *d,
                        double *seconds) {
    tkc_launch_options options = {.size = sizeof options, .check = s->check, .seed = s->schedule};
    if (s->counters) {
        options.counters = show_counters;
        options.counters_user = s;
    }
    tkc_report *report = NULL;
    double start = now();
    tkc_status status = tkc_launch(lib->kernel, d->device, d->arg, d->a->n, &options, &report);
    bool ok = tool_report(t, status, report) && device_arguments_finish(t, d);
    *seconds = now() - start;
    return ok;
}

// A second launch, of what is compiled and loaded now, until the device is done. Nobody looks at
// its outputs; those of the first are delivered.
static bool launch_warm(tool *t, session *lib, device_arguments *d, double *seconds) {
    tkc_launch_options options = {.size = sizeof options};
    tkc_report *report = NULL;
    double start = now();
    tkc_status status = tkc_launch(lib->kernel, d->device, d->arg, d->a->n, &options, &report);
    if (status == TKC_OK) {
        status = tkc_device_synchronize(d->device, &report);
    }
    *seconds = now() - start;
    return tool_report(t, status, report);
}

static void show_time(tool *t, session *lib, device_arguments *d, double first) {
    const char *device = tkc_device_name(d->device);
    double second;
    if (!d->copied) {
        fprintf(t->text,
                "time: %.3f ms for one launch on %s, compiling included (times on a busy machine "
                "are noise)\n",
                1e3 * first, device);
    } else if (launch_warm(t, lib, d, &second)) {
        fprintf(
            t->text,
            "time: %.3f ms for a second launch on %s until it is done, by the host's clock (the "
            "first, with compiling, loading and copying back: %.3f ms)\n",
            1e3 * second, device, 1e3 * first);
    }
}

static void launch(tool *t, run_settings *s, session *lib, const arguments *a) {
    tkc_device *device = NULL;
    tkc_report *report = NULL;
    const char *name = s->device ? s->device : s->check ? "cpu" : "auto";
    tkc_status status = tkc_device_open(lib->context, name, &device, &report);
    if (!tool_report(t, status, report)) {
        return;
    }
    device_arguments d;
    double seconds;
    if (device_arguments_make(t, device, a, &d) && launch_once(t, s, lib, &d, &seconds)) {
        if (s->out.n == 0 && s->x.n == 0 && !s->print) {
            fprintf(t->text, "%s on %s\n", tkc_kernel_name(lib->kernel), tkc_device_name(device));
        }
        deliver(t, s, a);
        if (s->time) {
            show_time(t, lib, &d, seconds);
        }
    }
    device_arguments_free(&d);
    tkc_device_close(device);
}

static void run(tool *t, void *settings) {
    run_settings *s = settings;
    if (s->common.files.n != 1) {
        tool_usage(t, s->common.files.n ? "run takes one FILE" : "no FILE is given");
        return;
    }
    if ((s->device && !known_device(t, s->device)) || !simulated(t, s)) {
        return;
    }
    if (s->k.threads > 4096) {
        tool_usage(t, "option --threads takes 0 (as many as the machine has processors) to 4096");
        return;
    }
    if (!s->x.n && (s->x.has_rtol || s->x.has_atol)) {
        tool_usage(t, "%s goes with --expect", s->x.has_rtol ? "--rtol" : "--atol");
        return;
    }
    // An optional output is there if the command line asks for it.
    s->k.wanted.at = TOOL_NEW(t, const char *, s->out.n + s->x.n + 1);
    for (size_t i = 0; i < s->out.n; i++) {
        s->k.wanted.at[s->k.wanted.n++] = s->out.at[i].name;
    }
    for (size_t i = 0; i < s->x.n; i++) {
        s->k.wanted.at[s->k.wanted.n++] = s->x.at[i].name;
    }
    t->text = s->counters == 2 ? stderr : stdout;
    session lib;
    arguments a;
    bool ok = session_open(t, &lib, &s->k) && session_load(t, &lib, s->common.files.at[0]) &&
              session_kernel(t, &lib, &s->k) && arguments_make(t, &lib, &s->k, true, &a) &&
              check_outputs(t, s, &a) && arguments_outputs(t, &lib, &a);
    ok = ok && expect_read(t, &s->x);
    if (ok) {
        launch(t, s, &lib, &a);
    }
    session_close(&lib);
}

static const option options[] = {
    KERNEL_OPTIONS(run_settings),
    {"--out", NULL, OPTION_PAIRS, "NAME=FILE.npy", offsetof(run_settings, out),
     "write an output; without any --out a summary of each is printed", NULL},
    EXPECT_OPTIONS,
    {"--device", NULL, OPTION_TEXT, "NAME", offsetof(run_settings, device),
     "auto (the default: cuda where there is one, else cpu; with --check cpu), cpu, cuda, or "
     "cuda:1, ... of several; sim: the GPU's code, simulated, of compute capability 9.0 as "
     "sim:90, or sim:80, sim:86, sim:89",
     NULL},
    {"--schedule", NULL, OPTION_COUNT, "S", offsetof(run_settings, schedule),
     "sim: the seed of the order in which warps run; 0 (the default): one after another", NULL},
    {"--counters", NULL, OPTION_MAYBE, "text|json", offsetof(run_settings, counters),
     "sim: print what each line of source did: instructions, memory, barriers", NULL},
    {"--seed", NULL, OPTION_COUNT, "S", offsetof(run_settings, k.seed), "of the random arrays; 0",
     NULL},
    {"--threads", NULL, OPTION_COUNT, "N", offsetof(run_settings, k.threads),
     "of the cpu device; 0 (the default): one a processor", NULL},
    {"--check", NULL, OPTION_FLAG, NULL, offsetof(run_settings, check),
     "fail where two programs touch one element, or nobody writes one of an output", NULL},
    {"--debug", NULL, OPTION_FLAG, NULL, offsetof(run_settings, k.debug),
     "keep asserts, on a GPU prints and assumes too", NULL},
    {"--print", NULL, OPTION_FLAG, NULL, offsetof(run_settings, print), "print the outputs whole",
     NULL},
    {"--time", NULL, OPTION_FLAG, NULL, offsetof(run_settings, time),
     "print how long the launch took; on a GPU, a second one that need not compile", NULL},
    {"--no-cache", NULL, OPTION_FLAG, NULL, offsetof(run_settings, k.no_cache),
     "neither read nor keep compiled GPU kernels on the disk", NULL},
    {"-Werror", NULL, OPTION_FLAG, NULL, offsetof(run_settings, k.werror), "warnings are errors",
     NULL},
    COMMON_OPTIONS(run_settings),
};

const command command_run = {
    .name = "run",
    .usage = "run FILE [--in NAME=ARRAY]... [--out NAME=FILE.npy]... [OPTION]...",
    .what = "Runs a kernel of FILE (\"-\" is standard input, \"std/NAME.tk\" the library's own) "
            "once on the arrays given. "
            "Outputs have the sizes that follow from the inputs, else from --dim, and start as NaN "
            "or the greatest "
            "integer.",
    .more = ARRAY_HELP,
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(run_settings),
    .run = run,
};
