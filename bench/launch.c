// SPDX-License-Identifier: Apache-2.0
// What the host pays: for a launch with six arguments (prepared, compiled ahead, plain) beside the
// driver's own cuLaunchKernel, for compiling softmax from its source, and for loading it from the
// disk cache beside the driver's own load. All in one run; text, or JSON with --json FILE.
//
// Launches are timed in bursts on an idle GPU, short enough for its queue, so that the host's time
// is what is seen; the kinds take turns, and a figure is the median of the bursts. What is timed
// cold is timed in processes of its own, in each of which it is the first thing done; the driver,
// and a context in which a module was loaded before, are there already.
#include "launch.h"

#include "tkc.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 256, MAX_ROUNDS = 200, MAX_SAMPLES = 30 };

static _Noreturn void fail(const char *what, const char *why) {
    fprintf(stderr, "launch: %s: %s\n", what, why ? why : "failed");
    exit(1);
}

static void fine(tkc_status s, tkc_report *report, const char *what) {
    if (s != TKC_OK) {
        fail(what, report ? tkc_report_text(report, false) : tkc_status_text(s));
    }
    tkc_report_destroy(report);
}

static double now(void) { // microseconds
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

typedef struct figure {
    double median, least, most;
} figure;

static figure figure_of(double *sample, size_t n) {
    qsort(sample, n, sizeof *sample, ascending);
    return (figure){n % 2 ? sample[n / 2] : (sample[n / 2 - 1] + sample[n / 2]) / 2, sample[0],
                    sample[n - 1]};
}

// ---- The driver itself

typedef struct driver {
    int (*load)(void **module, const void *image, unsigned n, int *option, void **value);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **params, void **extra);
    int (*device_name)(char *name, int room, int device);
    int (*version)(int *version);
} driver;

static void driver_open(driver *d) {
    static const char *const name[] = {"cuModuleLoadDataEx", "cuModuleGetFunction",
                                       "cuLaunchKernel", "cuDeviceGetName", "cuDriverGetVersion"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fail("libcuda.so.1", dlerror());
    }
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        void *symbol = dlsym(library, name[i]);
        if (!symbol) {
            fail(name[i], "the driver does not have it");
        }
        memcpy((char *)d + i * sizeof(void (*)(void)), &symbol, sizeof symbol);
    }
}

static const char bare_ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry bare(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 o,\n"
    "    .param .f32 a, .param .s32 b)\n{\n\tret;\n}\n";

static void *bare_function(const driver *d) {
    void *module, *function;
    int r = d->load(&module, bare_ptx, 0, NULL, NULL);
    r = r ? r : d->function(&function, module, "bare");
    if (r) {
        fprintf(stderr, "launch: a kernel without anything in it: CUDA error %d\n", r);
        exit(1);
    }
    return function;
}

// ---- Launches

typedef struct bench {
    driver driver;
    tkc_context *context;
    tkc_device *device;
    tkc_kernel *kernel;
    tkc_prepared *prepared;
    void *bare;
    void *memory[4];
    tkc_tensor tensor[4];
    tkc_arg arg[6];
} bench;

typedef struct bare_block {
    void *data[4];
    float a;
    int32_t b;
} bare_block;

static int launch_bare(bench *b) {
    bare_block block = {{b->memory[0], b->memory[1], b->memory[2], b->memory[3]}, 2.0f, 3};
    size_t size = sizeof block;
    void *extra[] = {(void *)1, &block, (void *)2, &size, NULL};
    return b->driver.launch(b->bare, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra);
}

static int launch_array(bench *b) {
    float a = 2.0f;
    int32_t c = 3;
    void *params[] = {&b->memory[0], &b->memory[1], &b->memory[2], &b->memory[3], &a, &c};
    return b->driver.launch(b->bare, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

static int launch_prepared(bench *b) { return (int)tkc_prepared_launch(b->prepared, NULL, NULL); }

static int launch_ahead(bench *b) {
    return (int)six(&b->tensor[0], &b->tensor[1], &b->tensor[2], &b->tensor[3], 2.0f, 3, NULL,
                    NULL);
}

static int launch_plain(bench *b) {
    return (int)tkc_launch(b->kernel, b->device, b->arg, 6, NULL, NULL);
}

typedef struct kind {
    const char *name, *what;
    int (*launch)(bench *b);
    bool there;
    double sample[MAX_ROUNDS];
    figure figure;
} kind;

static kind kinds[] = {
    {.name = "driver", .what = "cuLaunchKernel, parameters as a block", .launch = launch_bare},
    {.name = "driver_array",
     .what = "cuLaunchKernel, parameters one by one",
     .launch = launch_array},
    {.name = "prepared", .what = "tkc_prepared_launch", .launch = launch_prepared},
    {.name = "ahead", .what = "function compiled ahead, all checks", .launch = launch_ahead},
    {.name = "plain", .what = "tkc_launch, all checks", .launch = launch_plain},
};
enum { NKIND = sizeof kinds / sizeof *kinds, BARE = 0, ARRAY = 1, PREPARED = 2, AHEAD = 3 };

static const char six_source[] =
    "kernel six<BN: int = 256>(x: in f32[N], y: in f32[N], z: in f32[N], o: out f32[N], a: f32,\n"
    "        b: i32)\n"
    "    grid (i in cdiv(N, BN))\n"
    "{\n"
    "    o[i * BN +: BN] = x[i * BN +: BN] * a + y[i * BN +: BN] + z[i * BN +: BN] * f32(b);\n"
    "}\n";

static tkc_kernel *kernel_of(tkc_context *c, const char *source, const char *name) {
    tkc_program *program;
    tkc_kernel *kernel;
    tkc_report *report = NULL;
    tkc_status s =
        source ? tkc_program_from_string(c, "launch.tk", source, strlen(source), &program, &report)
               : tkc_program_from_file(c, "std/softmax.tk", &program, &report);
    fine(s, report, "program");
    fine(tkc_kernel_create(program, name, NULL, 0, &kernel, &report), report, "kernel");
    return kernel;
}

static tkc_context *context_with(const char *cache) {
    tkc_config *config = tkc_config_create();
    tkc_context *context = NULL;
    tkc_status s = tkc_config_cache(config, cache, (uint64_t)1 << 30);
    fine(s ? s : tkc_context_create(config, &context), NULL, "context");
    tkc_config_destroy(config);
    return context;
}

static void use_gpu(void) {
    tkc_error e;
    if (tkc_rt_use_device(0, &e) != TKC_OK) {
        fprintf(stderr, "launch: no GPU: %s\n", e.text);
        exit(77);
    }
}

static void bench_open(bench *b) {
    tkc_report *report = NULL;
    const int64_t n = N;
    use_gpu();
    driver_open(&b->driver);
    b->context = context_with(NULL);
    fine(tkc_device_open(b->context, "cuda", &b->device, &report), report, "device");
    b->bare = bare_function(&b->driver);
    float x[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
    }
    for (int i = 0; i < 4; i++) {
        fine(tkc_device_alloc(b->device, sizeof x, &b->memory[i], &report), report, "memory");
        fine(tkc_device_copy(b->device, b->memory[i], x, sizeof x, TKC_TO_DEVICE, &report), report,
             "copy");
        b->tensor[i] = tkc_tensor_make(b->memory[i], TKC_F32, 1, &n);
        b->arg[i] = (tkc_arg){.kind = TKC_ARG_TENSOR, .tensor = b->tensor[i]};
    }
    b->arg[4] = (tkc_arg){.kind = TKC_ARG_FLOAT, .f = 2.0};
    b->arg[5] = (tkc_arg){.kind = TKC_ARG_INT, .i = 3};
    b->kernel = kernel_of(b->context, six_source, "six");
    fine(tkc_prepared_create(b->kernel, b->device, b->arg, 6, &b->prepared, &report), report,
         "prepared launch");
}

static void check_output(bench *b, const kind *k) {
    float o[N];
    memset(o, 0, sizeof o);
    tkc_report *report = NULL;
    fine(tkc_device_copy(b->device, o, b->memory[3], sizeof o, TKC_FROM_DEVICE, &report), report,
         k->what);
    for (int i = 0; i < N; i++) {
        if (o[i] != 6.0f * (float)i) {
            fail(k->what, "computes something else");
        }
    }
    memset(o, 0, sizeof o);
    fine(tkc_device_copy(b->device, b->memory[3], o, sizeof o, TKC_TO_DEVICE, &report), report,
         k->what);
}

static void synchronize(bench *b) {
    tkc_report *report = NULL;
    fine(tkc_device_synchronize(b->device, &report), report, "launches");
}

static void time_launches(bench *b, unsigned rounds, unsigned burst) {
    for (unsigned k = 0; k < NKIND; k++) {
        kinds[k].there = kinds[k].launch(b) == 0;
        if (!kinds[k].there && k != ARRAY) {
            fail(kinds[k].what, "cannot be launched");
        }
        if (k >= PREPARED) {
            check_output(b, &kinds[k]);
        }
    }
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned k = 0; k < NKIND; k++) {
            int failed = 0;
            synchronize(b);
            double start = now();
            for (unsigned i = 0; i < burst && kinds[k].there; i++) {
                failed |= kinds[k].launch(b);
            }
            kinds[k].sample[r] = (now() - start) / burst;
            if (failed) {
                fail(kinds[k].what, "a launch failed");
            }
        }
    }
    synchronize(b);
    for (unsigned k = 0; k < NKIND; k++) {
        kinds[k].figure = figure_of(kinds[k].sample, rounds);
    }
}

// ---- What is timed cold: the steps of a process

static void softmax_args(tkc_arg arg[2]) {
    const int64_t dim[2] = {64, 1024};
    arg[0] = (tkc_arg){.kind = TKC_ARG_TENSOR, .tensor = tkc_tensor_make(NULL, TKC_BF16, 2, dim)};
    arg[1] = arg[0];
}

static double step_ptx(const char *cache) {
    (void)cache;
    tkc_arg arg[2];
    tkc_text text = {NULL, 0};
    tkc_report *report = NULL;
    tkc_compile_options o = {
        .size = sizeof o, .arch = "sm_90a", .what = TKC_CODE_PTX, .whole_rows = true, .near = true};
    softmax_args(arg);
    double start = now();
    tkc_kernel *k = kernel_of(context_with(NULL), NULL, "softmax");
    fine(tkc_kernel_compile(k, &o, arg, 2, NULL, 0, &text, &report), report, "softmax");
    return now() - start;
}

static tkc_device *warm_device(tkc_context *c, tkc_arg arg[2]) {
    tkc_device *device;
    tkc_report *report = NULL;
    driver d;
    use_gpu();
    driver_open(&d);
    bare_function(&d);
    fine(tkc_device_open(c, "cuda", &device, &report), report, "device");
    softmax_args(arg);
    for (int i = 0; i < 2; i++) {
        fine(tkc_device_alloc(device, 64 * 1024 * 2, &arg[i].tensor.data, &report), report,
             "memory");
    }
    return device;
}

// From the source to a loaded kernel; what of it is in the cache is not compiled.
static double step_load(const char *cache) {
    tkc_arg arg[2];
    tkc_report *report = NULL;
    tkc_context *c = context_with(cache);
    tkc_device *device = warm_device(c, arg);
    double start = now();
    tkc_kernel *k = kernel_of(c, NULL, "softmax");
    fine(tkc_prepare(k, device, arg, 2, &report), report, "softmax");
    return now() - start;
}

// The last of it alone, with the kernel there.
static double step_cached(const char *cache) {
    tkc_arg arg[2];
    tkc_report *report = NULL;
    tkc_context *c = context_with(cache);
    tkc_device *device = warm_device(c, arg);
    tkc_kernel *k = kernel_of(c, NULL, "softmax");
    double start = now();
    fine(tkc_prepare(k, device, arg, 2, &report), report, "softmax");
    return now() - start;
}

// The driver's own load of what the cache holds: machine code, or PTX where there is no assembler.
static double step_driver(const char *cache) {
    tkc_arg arg[2];
    tkc_text text = {NULL, 0};
    tkc_gpu gpu = {.size = sizeof gpu};
    tkc_context *c = context_with(cache);
    warm_device(c, arg);
    fine(tkc_gpu_info(c, 0, &gpu), NULL, "GPU");
    tkc_kernel *k = kernel_of(c, NULL, "softmax");
    tkc_compile_options o = {.size = sizeof o,
                             .arch = gpu.target,
                             .what = TKC_CODE_CUBIN,
                             .whole_rows = true,
                             .near = true};
    driver d;
    void *module, *function;
    driver_open(&d);
    double took = 0;
    for (int i = 0; i < 2; i++) {
        tkc_report *report = NULL;
        tkc_status s = tkc_kernel_compile(k, &o, arg, 2, NULL, 0, &text, &report);
        double start = now();
        int r = s == TKC_OK ? d.load(&module, text.at, 0, NULL, NULL) : 1;
        r = r ? r : d.function(&function, module, "softmax");
        took = now() - start;
        if (r == 0) {
            return took;
        }
        tkc_report_destroy(report);
        o.what = TKC_CODE_PTX;
    }
    fail("softmax", "the driver does not load it");
}

typedef struct step {
    const char *name, *what;
    double (*run)(const char *cache);
    bool cached; // with what another process left in the cache
    double sample[MAX_SAMPLES];
    figure figure;
} step;

static step steps[] = {
    {.name = "source_to_ptx", .what = "softmax, source to PTX", .run = step_ptx},
    {.name = "source_to_loaded", .what = "softmax, source to loaded kernel", .run = step_load},
    {.name = "source_to_loaded_cached",
     .what = "the same from the disk cache",
     .run = step_load,
     .cached = true},
    {.name = "load_cached",
     .what = "loading from the disk cache alone",
     .run = step_cached,
     .cached = true},
    {.name = "load_driver", .what = "the driver's own load", .run = step_driver},
};
enum { NSTEP = sizeof steps / sizeof *steps, LOAD_CACHED = 3, LOAD_DRIVER = 4 };

extern char **environ;

// Runs this program for one step; microseconds.
static double in_process(const char *self, const step *s, const char *cache) {
    int end[2], status;
    pid_t child;
    char text[64] = "";
    char step_flag[] = "--step", cache_flag[] = "--cache";
    char *argv[] = {(char *)(uintptr_t)self,
                    step_flag,
                    (char *)(uintptr_t)s->name,
                    cache_flag,
                    (char *)(uintptr_t)(s->cached ? cache : ""),
                    NULL};
    posix_spawn_file_actions_t files;
    if (pipe(end) != 0 || posix_spawn_file_actions_init(&files) != 0) {
        fail("pipe", strerror(errno));
    }
    posix_spawn_file_actions_adddup2(&files, end[1], 1);
    posix_spawn_file_actions_addclose(&files, end[0]);
    posix_spawn_file_actions_addclose(&files, end[1]);
    if (posix_spawn(&child, self, &files, NULL, argv, environ) != 0) {
        fail(self, "cannot be started");
    }
    close(end[1]);
    ssize_t n = read(end[0], text, sizeof text - 1);
    close(end[0]);
    posix_spawn_file_actions_destroy(&files);
    if (waitpid(child, &status, 0) != child || status != 0 || n <= 0) {
        fail(s->what, "its process failed");
    }
    return strtod(text, NULL);
}

static void time_steps(const char *self, unsigned samples) {
    char cache[] = "/tmp/tkc-launch-XXXXXX";
    if (!mkdtemp(cache)) {
        fail("a folder for the cache", strerror(errno));
    }
    for (unsigned k = 0; k < NSTEP; k++) {
        if (steps[k].cached) {
            in_process(self, &steps[k], cache); // leaves its kernel there
        }
        for (unsigned i = 0; i < samples; i++) {
            steps[k].sample[i] = in_process(self, &steps[k], cache);
        }
        steps[k].figure = figure_of(steps[k].sample, samples);
    }
    tkc_cache_clear(cache, NULL);
    rmdir(cache);
}

static int run_step(const char *name, const char *cache) {
    for (unsigned k = 0; k < NSTEP; k++) {
        if (strcmp(steps[k].name, name) == 0) {
            printf("%.3f\n", steps[k].run(cache[0] ? cache : NULL));
            fflush(stdout);
            _Exit(0); // what it has open ends with it
        }
    }
    return 2;
}

// ---- Results

static double bare_median(void) {
    double one = kinds[BARE].figure.median, other = kinds[ARRAY].figure.median;
    return kinds[ARRAY].there && other < one ? other : one;
}

static void show_text(const char *gpu, int driver_version, const char *assembler) {
    printf("%s, driver %d.%d, assembler: %s\n\n", gpu, driver_version / 1000,
           driver_version % 1000 / 10, assembler[0] ? assembler : "none");
    printf("a launch with 6 arguments, microseconds    median   least    most   over the driver\n");
    for (unsigned k = 0; k < NKIND; k++) {
        const figure *f = &kinds[k].figure;
        if (kinds[k].there) {
            printf("%-40s %8.3f %7.3f %7.3f", kinds[k].what, f->median, f->least, f->most);
            printf(k >= PREPARED ? "   %+.3f\n" : "\n", f->median - bare_median());
        }
    }
    printf("\ncold, each in a process of its own, ms     median   least    most\n");
    for (unsigned k = 0; k < NSTEP; k++) {
        const figure *f = &steps[k].figure;
        printf("%-40s %8.2f %7.2f %7.2f\n", steps[k].what, f->median / 1e3, f->least / 1e3,
               f->most / 1e3);
    }
    printf("the disk cache over the driver's own load: %+.2f ms\n",
           (steps[LOAD_CACHED].figure.median - steps[LOAD_DRIVER].figure.median) / 1e3);
}

static void put_figure(FILE *f, const char *name, const figure *x, bool last) {
    fprintf(f, "    \"%s\": {\"median\": %.3f, \"least\": %.3f, \"most\": %.3f}%s\n", name,
            x->median, x->least, x->most, last ? "" : ",");
}

static void write_json(const char *path, const char *gpu, int driver_version,
                       const char *assembler) {
    FILE *f = fopen(path, "w");
    if (!f) {
        fail(path, strerror(errno));
    }
    fprintf(f,
            "{\n  \"gpu\": \"%s\", \"driver\": %d, \"assembler\": \"%s\",\n  \"unit\": "
            "\"microseconds\",\n  \"launch\": {\n",
            gpu, driver_version, assembler);
    for (unsigned k = 0; k < NKIND; k++) {
        if (kinds[k].there) {
            put_figure(f, kinds[k].name, &kinds[k].figure, k + 1 == NKIND);
        }
    }
    fprintf(f, "  },\n  \"cold\": {\n");
    for (unsigned k = 0; k < NSTEP; k++) {
        put_figure(f, steps[k].name, &steps[k].figure, k + 1 == NSTEP);
    }
    fprintf(f, "  }\n}\n");
    if (fclose(f) != 0) {
        fail(path, strerror(errno));
    }
}

static int usage(void) {
    fprintf(stderr, "usage: launch [--quick] [--json FILE]\n");
    return 2;
}

int main(int argc, char **argv) {
    static bench b;
    const char *json = NULL, *step_name = NULL, *cache = "";
    bool quick = false;
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--json") == 0    ? &json
                             : strcmp(argv[i], "--step") == 0  ? &step_name
                             : strcmp(argv[i], "--cache") == 0 ? &cache
                                                               : NULL;
        quick = quick || strcmp(argv[i], "--quick") == 0;
        if (value && i + 1 < argc) {
            *value = argv[++i];
        } else if (value || strcmp(argv[i], "--quick") != 0) {
            return usage();
        }
    }
    if (step_name) {
        return run_step(step_name, cache);
    }
    char gpu[128] = "";
    int version = 0;
    tkc_build build = {.size = sizeof build};
    bench_open(&b);
    b.driver.device_name(gpu, (int)sizeof gpu, 0);
    b.driver.version(&version);
    fine(tkc_build_info(b.context, &build), NULL, "build");
    time_launches(&b, quick ? 3 : MAX_ROUNDS, quick ? 4 : 200);
    time_steps("/proc/self/exe", quick ? 1 : 9);
    show_text(gpu, version, build.assembler);
    if (json) {
        write_json(json, gpu, version, build.assembler);
    }
    six_unload();
    return 0;
}
