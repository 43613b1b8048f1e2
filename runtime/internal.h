// SPDX-License-Identifier: Apache-2.0
// Inside the library: what stands behind the opaque types of tkc.h.
//
// Work that may fail in the middle runs under a tk_work: an arena, a guard and diagnostics for one
// call. The body runs inside work_run; whatever it leaves (out of memory, an internal error,
// diagnostics) becomes a status and a report. Long-lived objects (program, kernel, variant) own an
// arena each, filled once under such a guard and const afterwards. What calls on a finished object
// must still intern or add (names and the texts of defines) goes to copies in the call's own arena
// (unit_view).
#ifndef TKC_RUNTIME_INTERNAL_H
#define TKC_RUNTIME_INTERNAL_H

#include "ir/exec.h"
#include "ir/pass.h"
#include "lang/check.h"
#include "lower/target.h"
#include "parser/parse.h"
#include "ptx/image.h"
#include "runtime/stdlib_embed.h"
#include "runtime/tensor.h"
#include "runtime/tkc.h"
#include "sim/sim.h"

#include <pthread.h>
#include <stdatomic.h>

// The GPU back end; NULL where a build has none.
typedef tk_image *(*gpu_compile_fn)(tk_arena *arena, tk_module *m, const tk_ptx_opts *o,
                                    tk_diags *diags);

struct tkc_config {
    tk_allocator from;
    unsigned threads;
    bool werror, debug;
    size_t debug_room;
    tkc_import_fn import;
    void *import_user;
    void (*print)(void *user, const char *line);
    void *print_user;
    char *cache; // folder of compiled kernels; NULL: none
    uint64_t cache_max;
    // For tests: another driver than the system's, another back end than the build's; NULL: none.
    const char *gpu_driver;
    gpu_compile_fn gpu_compile;
};

struct tkc_context {
    tkc_config config;
    pthread_mutex_t print_lock;
    pthread_mutex_t gpu_lock; // held while what follows, or a list of loaded kernels, is changed
    struct cuda_driver *gpu_driver; // NULL before a GPU device is opened
    struct lt_library *cublas;      // NULL before the first matrix product on a GPU
};

struct tkc_report {
    tk_arena arena;
    size_t errors, warnings;
    const char *plain, *colour, *json;
};

struct tkc_program {
    tkc_context *context;
    tk_arena arena;
    tk_sources sources;
    tk_names names;
    tk_unit unit;
    uint32_t nkernel;
    tk_kernel_info **kernel;
    tk_diags said; // warnings reported when the program was made: not again at each launch
};

// One compiled form of a kernel. Const once it is in the list.
typedef struct variant {
    struct variant *next;
    tk_arena arena;
    const char *key;
    tk_module *module;
    tk_plan *plan;
} variant;

struct tkc_kernel {
    tkc_program *program;
    tk_arena arena;
    tk_sources sources; // the program's, then one per define
    tk_names names;     // the program's, then the defines'
    tk_kernel_info *info;
    uint32_t ncarg;
    tk_named_expr *carg;
    tkc_param_info *param;
    tkc_cparam_info *cparam;
    pthread_mutex_t compile_lock; // held while a variant is made
    pthread_mutex_t list_lock;    // held while a list is read or added to
    variant *variants;            // of device cpu
    struct gpu_variant *gpu_variants;
};

// ---- Memory with the config's allocator (work.c)
void *mem_alloc(const tkc_config *c, size_t size); // zeroed; NULL
void mem_free(const tkc_config *c, void *p);
bool text_copy(const tkc_config *c, const char *s, size_t n, tkc_text *out);

// ---- Work of one call (work.c)
typedef struct tk_work {
    const tkc_config *config;
    tk_guard guard;
    tk_arena arena;
    tk_sources *sources; // where spans of the diagnostics lie; may be NULL
    tk_diags diags;
    const tk_diags *said; // warnings that the caller has seen already; may be NULL
    tkc_status status;    // set by the body where an error is no source error
} tk_work;
void work_init(tk_work *w, const tkc_config *c);
// Runs body(w, arg). TKC_OK, or: the body's w->status, TKC_ERROR_SOURCE where there are errors
// without one, MEMORY, INTERNAL.
tkc_status work_run(tk_work *w, void (*body)(tk_work *w, void *arg), void *arg);
// The report of what was found (NULL where nothing was), then everything of the work is released.
tkc_status work_end(tk_work *w, tkc_status s, tkc_report **report);
// Runs body(w, arg) so that its failures come back instead of jumping: a caller that holds a lock
// releases it and then, if *failed, calls work_fail_again.
bool work_try(tk_work *w, bool (*body)(tk_work *w, void *arg), void *arg, bool *failed);
TK_NORETURN void work_fail_again(tk_work *w);
// Adopts an arena of a long-lived object: allocations in it fail through this work's guard.
void work_guard_arena(tk_work *w, tk_arena *a);
// An error without a place that gives the call this status.
void work_fail(tk_work *w, tkc_status s, const char *id, const char *fmt, ...) TK_PRINTF(4, 5);

// ---- Reports (report.c, report_json.c)
tkc_report *report_make(const tkc_config *c, const tk_sources *s, const tk_diags *d);
const char *diags_json(tk_arena *a, const tk_sources *s, const tk_diags *d); // NULL: out of memory

// ---- Loading (load.c)

// Parses the
// root's text and everything that it imports into program->unit. Diagnostics in w.
void load_unit(tk_work *w, tkc_program *p, const char *name, const char *text, size_t size);
// "std/NAME.tk", or NULL.
const struct tk_embedded *stdlib_find(const char *path);
void stdlib_suggest(tk_work *w, tk_diag *d, const char *path); // a help: the file that was meant
// Reads a whole file into `a`. NULL and *why.
char *read_file(tk_arena *a, const char *path, size_t *size, const char **why);

// ---- Binding and compiling (bind.c, variant.c)

// A copy of the program's unit for one
// call, with names and sources that may grow without touching the kernel's.
tk_unit *unit_view(tk_work *w, const tkc_kernel *k);
// Arguments as the checker sees them; NULL after w's diagnostics. `exact`: everything must be known
// (a launch).
tk_bound *bind_args(tk_work *w, tkc_kernel *k, const tk_unit *unit, const tkc_arg *args,
                    size_t nargs, const tkc_size *sizes, size_t nsizes, bool exact);
// Whether there is a target of this name; false after w's error (compile.c).
bool target_known(tk_work *w, const char *arch);
// The compiled variant for a binding: found, or made. NULL after w's diagnostics.
const variant *variant_get(tk_work *w, tkc_kernel *k, const tk_unit *unit, const tk_bound *b);
// The module after `pass` in the work's own arena (for dumps).
tk_module *compile_module(tk_work *w, tk_arena *arena, const tk_unit *unit, const tk_bound *b,
                          const char *pass);
void variants_destroy(tkc_kernel *k);

// ---- Devices (device.c; one file a device)
// What a device is given: everything is checked already.
typedef struct launch {
    tk_work *work;
    tkc_kernel *kernel;
    const tk_unit *unit;
    const tk_bound *bound;
    const variant *variant;              // set by the cpu device's ready
    struct gpu_loaded *loaded;           // set by the cuda device's ready
    const struct gpu_variant *simulated; // set by the sim device's ready
    uint32_t narg;                       // those given, in the order of the IR kernel's parameters
    uint32_t *param;                     // index of each in kernel->info->param
    tkc_tensor *tensor;                  // [narg]
    tk_const *scalar;                    // [narg]
    bool *is_tensor;                     // [narg]
    const tkc_launch_options *options;
} launch;

// A launch on a GPU with everything decided and its parameters packed.
typedef struct gpu_packed {
    struct gpu_loaded *loaded;
    uint32_t programs; // 0: there is nothing to run
    uint32_t bytes;
    unsigned char *block; // parameters
    bool debug;           // leaves something behind: runs by run_debug
    uint32_t ngrid;
    int64_t grid[TK_MAX_GRID];
} gpu_packed;

typedef struct matmul matmul; // runtime/matmul.h

// Faults of these go to the work.
typedef struct device_table {
    const char *name;
    bool numbered; // NAME:1 is the second
    bool by_name;  // never what "auto" finds
    bool (*open)(tk_work *w, tkc_device *d, unsigned ordinal);
    void (*close)(tkc_device *d);
    // Finds or makes the compiled form of the kernel for this launch, loaded where that applies.
    bool (*ready)(tkc_device *d, launch *l);
    void (*launch)(tkc_device *d, const launch *l); // after `ready`
    bool (*alloc)(tk_work *w, tkc_device *d, size_t bytes, void **p);
    bool (*release)(tk_work *w, tkc_device *d, void *p);
    bool (*copy)(tk_work *w, tkc_device *d, void *to, const void *from, size_t bytes,
                 tkc_direction direction);
    bool (*synchronize)(tk_work *w, tkc_device *d);
    void (*matmul)(tk_work *w, tkc_device *d, const matmul *m);
    // Of a device that works on while the host does; else NULL: `copy` and the host's clock do.
    bool (*copy_on_stream)(tk_work *w, tkc_device *d, void *to, const void *from, size_t bytes,
                           void *stream);
    bool (*event_create)(tk_work *w, tkc_device *d, void **state);
    bool (*event_record)(tk_work *w, tkc_device *d, void *state, void *stream);
    bool (*event_elapsed)(tk_work *w, tkc_device *d, void *from, void *to, double *milliseconds);
    void (*event_destroy)(tkc_device *d, void *state);
    // Prepared launches. pack: into `arena`. run: packed before, no work until it fails. NULL: a
    // plain launch is as good. fits: whether the compiled form that `p` is for suits the launch.
    bool (*pack)(tkc_device *d, const launch *l, tk_arena *arena, gpu_packed *p);
    bool (*fits)(const launch *l, const gpu_packed *p);
    int (*run)(tkc_device *d, const gpu_packed *p, void *stream); // 0, or an error for run_failed
    void (*run_failed)(tk_work *w, tkc_device *d, const gpu_packed *p, int error);
    bool (*run_debug)(tk_work *w, tkc_device *d, const tkc_kernel *k, const gpu_packed *p,
                      void *stream);
} device_table;

struct tkc_device {
    tkc_context *context;
    const device_table *table;
    char name[24];
    void *state; // the device's own
};

extern const device_table device_cpu, device_cuda, device_sim;

// Threads of the host (device_cpu.c): how many for so many items, at least 1 where there are any;
// and body(worker[i]) in each of n threads, of which the caller's is one.
unsigned cpu_threads(const tkc_config *c, int64_t items);
void cpu_spread(tk_work *w, unsigned n, void *(*body)(void *worker), void *const *worker);

// ---- What programs say while they run (fault.c)
const char *index_text(tk_arena *a, const int64_t *index, uint32_t rank); // "3, 0"
// The place in the grid of the program with this number: axis 0 is fastest.
void program_place(uint64_t number, uint32_t ngrid, const int64_t *grid, int64_t *program);
const char *program_text(tk_arena *a, const tk_kernel_info *info, const int64_t *program,
                         uint32_t ngrid); // "program (i = 3, j = 0)"
typedef struct failed_claim {             // an assert or assume
    bool is_assume;
    tk_span span;
    const char *text;
    const int64_t *program;
    uint32_t ngrid;
    uint32_t rank; // of its condition; 0: a scalar
    const int64_t *index;
} failed_claim;
// The file of a line of PTX as the sources have it: without the "./" before a path that is
// relative.
const char *source_name(const char *of_ptx);
tk_diag *claim_failed(tk_work *w, const tk_kernel_info *info, const failed_claim *c);
void print_line(void *context, const char *line); // to the caller's print

// A scalar that is given, or its default, in the parameter's type (launch.c). False after w's
// diagnostics.
bool launch_scalar(tk_work *w, const tk_kparam *p, tk_dtype t, const tkc_arg *arg, tk_const *out);
// What a launch needs of arguments (launch.c): binds and checks them. False after w's diagnostics.
bool launch_collect(tk_work *w, tkc_kernel *k, const tkc_arg *args, size_t nargs,
                    const tkc_launch_options *options, launch *l);
// The counts of the grid's axes into env->grid and env->ngrid, and their product (grid.c). False
// after w's diagnostics: a negative count, a product of 2^63 or more.
bool grid_counts(tk_work *w, const tk_kernel_info *info, const tk_module *m, const tk_plan *plan,
                 tk_exec_env *env, int64_t *total);
void *frame_alloc(tk_work *w, const tk_plan *plan); // in the work's arena

// Counters of a simulated launch (sim_counters.c).
const char *sim_counters_plain(tk_arena *a, const tk_sim_counters *c);
const char *sim_counters_json(tk_arena *a, const char *kernel, const tk_sim_counters *c);

// Explaining a kernel (explain.c): what the formats are made of.
typedef struct explained {
    const tk_sources *sources;
    const tk_kernel_info *info;
    tk_span kernel; // of the kernel's item
    const tk_target *target;
    const tk_gpu *gpu;
    const tk_func *f;
    const tk_image *image;
    const tk_tensor_facts *fact; // one an IR parameter
    uint32_t n;                  // notes: of the kernel as a whole, then those of its lines
    uint32_t nwhole;
    const tk_note_rec **note;
    // The least time of the launch; bytes -1: not known.
    double programs, bytes, least_bytes, flops, flops64, matrix, as_f16;
    double memory_seconds, compute_seconds;
} explained;
const char *explain_text(tk_arena *a, const explained *x); // explain_text.c
const char *explain_json(tk_arena *a, const explained *x); // explain_json.c; NULL: out of memory
const char *explain_sarif(tk_arena *a, const explained *x);
double explain_number(const tk_note_rec *r, const char *name); // 0: it has none

// What a launch finds of a tensor, in words; what of it a target has a use for (cuda_variant.c).
void describe_facts(tk_buf *b, tk_tensor_facts f);
tk_tensor_facts facts_of_use(const tk_target *t, tk_tensor_facts f);
// What the fields of tkc_compile_options, tkc_ahead_options or tkc_explain_options promise.
#define FACTS_PROMISED(o)                                                                          \
    (((o)->near ? TK_FACT_NEAR : 0U) | ((o)->unit_stride ? TK_FACT_UNIT : 0U) |                    \
     ((o)->contiguous || (o)->whole_rows || (o)->mapped ? TK_FACT_UNIT | TK_FACT_ALIGNED : 0U) |   \
     ((o)->whole_rows ? TK_FACT_WHOLE : 0U) | ((o)->mapped ? TK_FACT_MAP : 0U))

// The image of a module by the back end that is there. NULL after w's diagnostics (cuda_image.c).
tk_image *gpu_image(tk_work *w, tk_arena *arena, tk_module *m, const tk_ptx_opts *o);
// The build's GPU back end, or NULL; what kernels keep of it (device_cuda.c, cuda_variant.c).
gpu_compile_fn gpu_backend(const tkc_config *c);
void gpu_variants_destroy(tkc_kernel *k);
size_t gpu_variant_count(const tkc_kernel *k); // under list_lock, as the next two
const struct gpu_variant *gpu_variant_at(const tkc_kernel *k, size_t i); // NULL past the end
void gpu_describe(tk_buf *b, const struct gpu_variant *v);
const char *gpu_notes(const struct gpu_variant *v);
void gpu_context_destroy(tkc_context *context);

// ---- Disk cache (cache.c): never fails, only misses
typedef struct cache_key {
    char text[40]; // file name
} cache_key;
// Hash of everything that an image depends on. False: this build or context caches nothing.
bool cache_key_make(const tkc_config *c, const char *const *part, const size_t *size, size_t n,
                    cache_key *key);
bool cache_get(const tkc_config *c, const cache_key *key, tk_arena *arena, const void **data,
               size_t *size);
void cache_put(const tkc_config *c, const cache_key *key, const void *data, size_t size);

#endif
