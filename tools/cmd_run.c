// SPDX-License-Identifier: Apache-2.0
// tkc run FILE: one launch of a kernel on arrays from the command line.
#include "commands.h"
#include "element.h"
#include "expect.h"
#include "on_device.h"
#include "show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_EXPECT = 64 };

typedef struct run_settings {
    common_settings common;
    kernel_settings k;
    const char *device;
    pair_list out;
    expectation expect[MAX_EXPECT];
    size_t nexpect;
    bool has_rtol, has_atol; // before any --expect
    double rtol, atol;
    bool check, time, print;
    uint64_t schedule;
    int counters; // 0 none, 1 text, 2 json
} run_settings;

static bool take_expect(tool *t, void *settings, const char *value) {
    run_settings *s = settings;
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        tool_usage(t, "option --expect takes NAME=FILE.npy, not '%s'", value);
        return false;
    }
    if (s->nexpect == MAX_EXPECT) {
        tool_usage(t, "more than %d times --expect", MAX_EXPECT);
        return false;
    }
    expectation *e = &s->expect[s->nexpect++];
    e->name = tool_strndup(t, value, (size_t)(equals - value));
    e->path = equals + 1;
    e->rtol = s->has_rtol ? s->rtol : -1;
    e->atol = s->has_atol ? s->atol : -1;
    return true;
}

static bool take_tolerance(tool *t, const char *flag, const char *value, double *out) {
    if (!real_parse(value, strlen(value), out) || !(*out >= 0) || isinf(*out)) {
        tool_usage(t, "option %s takes a number from 0, not '%s'", flag, value);
        return false;
    }
    return true;
}

static bool take_rtol(tool *t, void *settings, const char *value) {
    run_settings *s = settings;
    s->has_rtol = true;
    return take_tolerance(t, "--rtol", value,
                          s->nexpect ? &s->expect[s->nexpect - 1].rtol : &s->rtol);
}

static bool take_atol(tool *t, void *settings, const char *value) {
    run_settings *s = settings;
    s->has_atol = true;
    return take_tolerance(t, "--atol", value,
                          s->nexpect ? &s->expect[s->nexpect - 1].atol : &s->atol);
}

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

static bool is_output(tool *t, const arguments *a, const char *flag, const char *name) {
    size_t i = arguments_find(t, a, flag, name);
    if (i == a->n) {
        return false;
    }
    const tkc_param_info *p = a->param[i];
    if (!p->is_tensor || p->access == TKC_IN) {
        tool_usage(t, "%s %s: this parameter is %s, not an output", flag, name,
                   p->is_tensor ? "an input" : "a scalar");
        return false;
    }
    return true;
}

static bool check_outputs(tool *t, const run_settings *s, const arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < s->out.n; i++) {
        const pair *p = &s->out.at[i];
        ok = is_output(t, a, "--out", p->name) && ok;
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
    for (size_t i = 0; i < s->nexpect; i++) {
        ok = is_output(t, a, "--expect", s->expect[i].name) && ok;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(s->expect[i].name, s->expect[j].name) == 0) {
                tool_usage(t, "--expect %s is given twice", s->expect[i].name);
                ok = false;
            }
        }
    }
    return ok;
}

// NaN, true, or the greatest integer in each element, so that what nobody writes can be seen.
static void fill_unwritten(tkc_tensor *x, size_t count) {
    enum { CHUNK = 1024 };
    size_t elem = tkc_dtype_size(x->dtype);
    double nan[CHUNK];
    int64_t one[CHUNK];
    for (size_t i = 0; i < CHUNK; i++) {
        nan[i] = NAN;
        one[i] = 1;
    }
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t n = count - i < CHUNK ? count - i : CHUNK;
        char *at = (char *)x->data + i * elem;
        if (dtype_is_float(x->dtype)) {
            tkc_convert(x->dtype, at, TKC_F64, nan, n);
        } else if (x->dtype == TKC_BOOL) {
            tkc_convert(x->dtype, at, TKC_I64, one, n);
        } else {
            memset(at, 0xff, n * elem);
        }
    }
    bool is_signed =
        x->dtype == TKC_I8 || x->dtype == TKC_I16 || x->dtype == TKC_I32 || x->dtype == TKC_I64;
    for (size_t i = 0; i < count && is_signed; i++) {
        ((unsigned char *)x->data)[(i + 1) * elem - 1] = 0x7f; // little endian
    }
}

static bool allocate_outputs(tool *t, const session *lib, arguments *a) {
    tkc_arg *resolved = TOOL_NEW(t, tkc_arg, a->n + 1);
    tkc_report *report = NULL;
    tkc_status status =
        tkc_resolve(lib->kernel, a->arg, a->n, a->size, a->nsize, resolved, &report);
    if (!tool_report(t, status, report)) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->arg[i].kind != TKC_ARG_UNKNOWN) {
            continue;
        }
        tkc_tensor *x = &resolved[i].tensor;
        size_t count, bytes;
        const char *what = tool_format(t, "output '%s', %s,", a->param[i]->name, shape_text(t, x));
        if (!tensor_size(x->rank, x->dim, tkc_dtype_size(x->dtype), &count, &bytes)) {
            tool_error(t, CODE_ENVIRONMENT, NULL, "out of memory: %s is too large", what);
            return false;
        }
        x->data = tool_array(t, bytes, what);
        if (!x->data) {
            return false;
        }
        fill_unwritten(x, count);
        a->arg[i] = resolved[i];
    }
    return true;
}

static const pair *find_pair(const pair_list *list, const char *name) {
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i].name, name) == 0) {
            return &list->at[i];
        }
    }
    return NULL;
}

static expectation *find_expect(run_settings *s, const char *name) {
    for (size_t i = 0; i < s->nexpect; i++) {
        if (strcmp(s->expect[i].name, name) == 0) {
            return &s->expect[i];
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
        expectation *e = find_expect(s, p->name);
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
        printf("time: %.3f ms for one launch on %s, compiling included (times on a busy machine "
               "are noise)\n",
               1e3 * first, device);
    } else if (launch_warm(t, lib, d, &second)) {
        printf("time: %.3f ms for a second launch on %s until it is done, by the host's clock (the "
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
        if (s->out.n == 0 && s->nexpect == 0 && !s->print) {
            printf("%s on %s\n", tkc_kernel_name(lib->kernel), tkc_device_name(device));
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
    // An optional output is there if the command line asks for it.
    s->k.wanted.at = TOOL_NEW(t, const char *, s->out.n + s->nexpect + 1);
    for (size_t i = 0; i < s->out.n; i++) {
        s->k.wanted.at[s->k.wanted.n++] = s->out.at[i].name;
    }
    for (size_t i = 0; i < s->nexpect; i++) {
        s->k.wanted.at[s->k.wanted.n++] = s->expect[i].name;
    }
    session lib;
    arguments a;
    bool ok = session_open(t, &lib, &s->k) && session_load(t, &lib, s->common.files.at[0]) &&
              session_kernel(t, &lib, &s->k) && arguments_make(t, &lib, &s->k, true, &a) &&
              check_outputs(t, s, &a) && allocate_outputs(t, &lib, &a);
    for (size_t i = 0; i < s->nexpect && ok; i++) {
        ok = expect_read(t, &s->expect[i]);
    }
    if (ok) {
        launch(t, s, &lib, &a);
    }
    session_close(&lib);
}

static const option options[] = {
    KERNEL_OPTIONS(run_settings),
    {"--out", NULL, OPTION_PAIRS, "NAME=FILE.npy", offsetof(run_settings, out),
     "write an output; without any --out a summary of each is printed", NULL},
    {"--expect", NULL, OPTION_CALL, "NAME=FILE.npy", 0,
     "compare an output: print the greatest errors, fail where they are too great", take_expect},
    {"--rtol", NULL, OPTION_CALL, "R", 0,
     "relative tolerance of the --expect before it, or else of all", take_rtol},
    {"--atol", NULL, OPTION_CALL, "A", 0, "absolute tolerance, likewise; |x - e| <= A + R |e|",
     take_atol},
    {"--device", NULL, OPTION_TEXT, "NAME", offsetof(run_settings, device),
     "auto (the default: cuda where there is one, else cpu; with --check cpu), cpu, cuda, or "
     "cuda:1, ... of several; sim: the GPU's code, simulated",
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
