// SPDX-License-Identifier: Apache-2.0
// tkc: tile kernels as a C library.
//
// The data model, from the outside in:
// - config   What a context is made with: allocator, threads, import and print callbacks. A plain
//            bag of settings.
// - context  Owns what is shared. Everything else is made from one and must be destroyed before it.
// - program  One source (a file or a string) with what it imports, parsed and checked. Immutable.
// - kernel   A kernel of a program, with some compile-time parameters set. Compiled when first
//            launched with arguments that need a new variant; variants are kept.
// - device   Where kernels run: "cpu", "cuda", "sim"; chosen by name.
// - tensor   The caller's memory with element type, sizes and strides; never owned, never freed
//            here.
// - report   What was found: errors, warnings with places, notes and helps, as text or JSON.
//
// Errors. Functions that can fail return a tkc_status. Those with a `report` argument put the
// messages there: if `report` is not NULL, *report receives a new report (also on success, when
// there are warnings, else NULL), to be released with tkc_report_destroy. On failure every other
// output is left NULL or untouched. Passing NULL where a pointer is required, or values outside an
// enum, gives TKC_ERROR_ARGUMENT.
//
// Threads. A context, program, kernel and device may be used by any number of threads at once;
// creating and destroying are the owner's business (nothing may be in use while it is destroyed).
// Config and report belong to one thread at a time. No function prints, exits, or keeps state
// outside what it is given. Calls block until they are done, launches on a GPU excepted.
#ifndef TKC_H
#define TKC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TKC_API __attribute__((visibility("default")))
#else
#define TKC_API
#endif

#define TKC_VERSION_MAJOR 0
#define TKC_VERSION_MINOR 1
#define TKC_VERSION_PATCH 0
#define TKC_MAX_RANK      8 /* of a tensor */

/* "0.1.0"; static. */
TKC_API const char *tkc_version(void);

typedef enum tkc_status {
    TKC_OK = 0,
    TKC_ERROR_SOURCE,   /* diagnostics: the program or a demand on it is wrong */
    TKC_ERROR_LAUNCH,   /* the launch was refused: arguments, shapes, sizes, limits */
    TKC_ERROR_CHECK,    /* a running program failed: assert, assume, a check of check mode */
    TKC_ERROR_ARGUMENT, /* this library was called wrongly */
    TKC_ERROR_MEMORY,   /* out of memory */
    TKC_ERROR_IO,       /* a file could not be read */
    TKC_ERROR_DEVICE,   /* no such device, or it failed */
    TKC_ERROR_INTERNAL, /* a fault of tkc; the report says where */
} tkc_status;
/* A short English phrase; static. */
TKC_API const char *tkc_status_text(tkc_status s);

typedef struct tkc_config tkc_config;
typedef struct tkc_context tkc_context;
typedef struct tkc_program tkc_program;
typedef struct tkc_kernel tkc_kernel;
typedef struct tkc_device tkc_device;
typedef struct tkc_report tkc_report;

/* ---- Texts given to the caller: 0-terminated, `size` without the terminator; release with
 * tkc_text_free. */
typedef struct tkc_text {
    char *at;
    size_t size;
} tkc_text;
TKC_API void tkc_text_free(tkc_text *t); /* t or t->at may be NULL */

/* ---- Reports */
TKC_API void tkc_report_destroy(tkc_report *r);        /* NULL is fine */
TKC_API size_t tkc_report_errors(const tkc_report *r); /* 0 for NULL, as the next */
TKC_API size_t tkc_report_warnings(const tkc_report *r);
/* As a compiler prints them: file:line:col: error: text, the line, a caret, notes, helps. Owned by
 * the report. */
TKC_API const char *tkc_report_text(tkc_report *r, bool colour);
/* A JSON array of objects {severity, id, file, line, column, end_line, end_column, text, notes,
 * helps}. Owned by the report. */
TKC_API const char *tkc_report_json(tkc_report *r);

/* ---- Config */
/* NULL only when out of memory. Settings are copied; user pointers must live as long as the
 * context. */
TKC_API tkc_config *tkc_config_create(void);
TKC_API void tkc_config_destroy(tkc_config *c);
/* Where all memory comes from; NULL functions mean malloc and free. Called from any thread. Blocks
 * must be aligned for any type. */
TKC_API void tkc_config_allocator(tkc_config *c, void *(*alloc)(void *user, size_t size),
                                  void (*release)(void *user, void *block), void *user);
/* Threads of the CPU device; 0 (the default): as many as the machine has processors. */
TKC_API void tkc_config_threads(tkc_config *c, unsigned n);
/* Warnings become errors. */
TKC_API void tkc_config_werror(tkc_config *c, bool on);
/* Keeps asserts, assumes and prints in compiled kernels. */
TKC_API void tkc_config_debug(tkc_config *c, bool on);
/* Memory of a GPU in which a kernel compiled with debug leaves the lines that one launch prints,
   for each kernel that is loaded; 0 (the default): 1 MiB. What does not fit is counted in a warning
   of the launch. */
TKC_API void tkc_config_debug_room(tkc_config *c, size_t bytes);
/* Called for each file that a program imports, except "std/..." which ship with the library. `path`
   is the import's path joined to the importing file's folder. The callback hands over the text with
   tkc_import_text and returns true, or returns false: no such file. Without a callback files are
   read from disk. May be called from any thread that makes a program. */
typedef struct tkc_import tkc_import;
typedef bool (*tkc_import_fn)(void *user, const char *path, tkc_import *import);
TKC_API void tkc_config_import(tkc_config *c, tkc_import_fn fn, void *user);
TKC_API void tkc_import_text(tkc_import *import, const char *text, size_t size); /* copies */
/* Receives the lines of print(...) statements, one at a time (calls do not overlap). Without it
 * they are dropped. On a GPU print is there in debug only, and the lines come when the launch is
 * done, in the order of the programs' numbers. */
TKC_API void tkc_config_print(tkc_config *c, void (*fn)(void *user, const char *line), void *user);
/* Keeps compiled GPU kernels in this folder (made where it is missing; NULL or "": no folder, the
   default), at most max_bytes of them: the least recently used go first. Any number of processes
   may share a folder. What cannot be read or written there is compiled again, never an error. */
TKC_API tkc_status tkc_config_cache(tkc_config *c, const char *folder, uint64_t max_bytes);

/* ---- Context */
TKC_API tkc_status tkc_context_create(const tkc_config *config,
                                      tkc_context **context); /* config NULL: defaults */
TKC_API void tkc_context_destroy(tkc_context *context);

/* ---- Programs */
/* Parses and checks. `name` is used in messages and as the place from which imports are resolved.
 * The text is copied. */
TKC_API tkc_status tkc_program_from_string(tkc_context *context, const char *name, const char *text,
                                           size_t size, tkc_program **program, tkc_report **report);
/* Reads a file; "std/NAME.tk" is the library's own. */
TKC_API tkc_status tkc_program_from_file(tkc_context *context, const char *path,
                                         tkc_program **program, tkc_report **report);
TKC_API void tkc_program_destroy(tkc_program *program);
/* Kernels of the program's own file, specialisations included, in order. */
TKC_API size_t tkc_program_kernel_count(const tkc_program *program);
TKC_API const char *tkc_program_kernel_name(const tkc_program *program,
                                            size_t i); /* NULL past the end */

/* Names of the files that it was read from, its own first, then what they import; without the
   library's own ("std/..."). NULL past the end. */
TKC_API const char *tkc_program_file(const tkc_program *program, size_t i);

/* ---- Kernels */
/* A compile-time parameter set by text: {"BM", "64"}, {"T", "f32"}, {"mask", "causal"}. */
typedef struct tkc_define {
    const char *name;
    const char *value;
} tkc_define;

/* name NULL: the program's only kernel. Fails for unknown kernels and for defines that are wrong
 * whatever the arguments. */
TKC_API tkc_status tkc_kernel_create(tkc_program *program, const char *name,
                                     const tkc_define *defines, size_t ndefines,
                                     tkc_kernel **kernel, tkc_report **report);
/* Compiles the kernel for this many warps a program, 1, 2, 4, ... 32, whatever its @warps says: to
   find out which number is best. 0: as it says, or as the compiler chooses. Only before the kernel
   is compiled for anything. Results do not change but for the order of sums. */
TKC_API tkc_status tkc_kernel_set_warps(tkc_kernel *kernel, unsigned warps);
/* What runs on a GPU must have ended first (tkc_device_synchronize), and no CUDA graph may be
   launched any more that holds the kernel. The same goes for closing a device. */
TKC_API void tkc_kernel_destroy(tkc_kernel *kernel);

typedef enum tkc_dtype {
    TKC_BOOL,
    TKC_I8,
    TKC_I16,
    TKC_I32,
    TKC_I64,
    TKC_U8,
    TKC_U16,
    TKC_U32,
    TKC_U64,
    TKC_F8E4M3,
    TKC_F8E5M2,
    TKC_F16,
    TKC_BF16,
    TKC_F32,
    TKC_F64,
} tkc_dtype;
TKC_API const char *tkc_dtype_name(tkc_dtype t); /* "f32"; NULL outside the enum */
TKC_API size_t tkc_dtype_size(tkc_dtype t);      /* bytes; 0 outside the enum */
TKC_API bool tkc_dtype_from_name(const char *name, tkc_dtype *out);
/* Converts n elements as the language's casts do. dst and src must not overlap. */
TKC_API tkc_status tkc_convert(tkc_dtype to, void *dst, tkc_dtype from, const void *src, size_t n);

typedef enum tkc_access { TKC_IN = 1, TKC_OUT = 2, TKC_INOUT = 3 } tkc_access;

/* Reflection: everything as written in the source. Pointers are owned by the kernel. */
typedef struct tkc_param_info {
    const char *name;
    bool is_tensor;
    bool optional;          /* may be left out */
    tkc_access access;      /* tensors */
    const char *dtype;      /* "T", "f32" */
    uint32_t rank;          /* tensors */
    const char *const *dim; /* "M", "64", "D" */
} tkc_param_info;
typedef struct tkc_cparam_info {
    const char *name;
    const char *kind;  /* "type", "int", "bool", "float", "fn(f32) -> f32" */
    const char *value; /* the default, or what a define or specialisation fixed; NULL: none */
    bool fixed;        /* may not be set (again) */
    bool deduced;      /* follows from the arguments */
} tkc_cparam_info;
TKC_API const char *tkc_kernel_name(const tkc_kernel *kernel);
TKC_API size_t tkc_kernel_param_count(const tkc_kernel *kernel);
TKC_API const tkc_param_info *tkc_kernel_param(const tkc_kernel *kernel,
                                               size_t i); /* NULL past the end */
TKC_API size_t tkc_kernel_cparam_count(const tkc_kernel *kernel);
TKC_API const tkc_cparam_info *tkc_kernel_cparam(const tkc_kernel *kernel, size_t i);
TKC_API size_t tkc_kernel_dim_count(const tkc_kernel *kernel); /* run-time dimension names */
TKC_API const char *tkc_kernel_dim(const tkc_kernel *kernel, size_t i);
TKC_API size_t tkc_kernel_grid_count(const tkc_kernel *kernel);
TKC_API const char *tkc_kernel_grid_name(const tkc_kernel *kernel, size_t i);
TKC_API const char *tkc_kernel_grid_size(const tkc_kernel *kernel,
                                         size_t i); /* as written: "cdiv(M, BM)" */
/* Variants compiled so far. */
TKC_API size_t tkc_kernel_variant_count(const tkc_kernel *kernel);
/* What variant i is for: "cpu: T=f32,BN=64", "cuda sm_90a: T=f32,BN=64; x: last stride 1, aligned
   to 16 bytes, rows of whole 16 bytes, offsets of 32 bits; y: any": what it takes of each tensor
   (see tkc_compile_options). TKC_ERROR_ARGUMENT past the end. A variant never computes anything
   else than another; on a GPU there are at most 17 for one set of compile-time parameters and
   target, of which one takes any tensors. */
TKC_API tkc_status tkc_kernel_variant_text(tkc_kernel *kernel, size_t i, tkc_text *out);
/* The compiler's notes for variant i, as tkc_kernel_dump_notes and TKC_CODE_NOTES give them: what
   each pass decided, on a GPU also the registers, spills and instructions where an assembler is at
   hand. The same whether it was compiled now or came from the disk cache. */
TKC_API tkc_status tkc_kernel_variant_notes(tkc_kernel *kernel, size_t i, tkc_text *out);

/* ---- Arguments */
typedef struct tkc_tensor {
    void *data; /* aligned to the element; may be NULL where there are no elements */
    tkc_dtype dtype;
    uint32_t rank;
    int64_t dim[TKC_MAX_RANK];
    int64_t stride[TKC_MAX_RANK]; /* in elements; negative and zero are fine */
} tkc_tensor;
/* Row-major strides. */
TKC_API tkc_tensor tkc_tensor_make(void *data, tkc_dtype dtype, uint32_t rank, const int64_t *dim);

typedef enum tkc_arg_kind {
    TKC_ARG_NONE = 0, /* not given: for optional parameters */
    TKC_ARG_TENSOR,
    TKC_ARG_INT,     /* a scalar from i: must be exactly representable in the parameter's type */
    TKC_ARG_FLOAT,   /* a scalar from f: rounded to the parameter's type, which must be a float */
    TKC_ARG_UNKNOWN, /* only for tkc_resolve and the dumps: given, but nothing is known of it */
    TKC_ARG_UINT,    /* a scalar from the bits of i as an unsigned integer */
} tkc_arg_kind;
typedef struct tkc_arg {
    tkc_arg_kind kind;
    tkc_tensor tensor;
    int64_t i;
    double f;
} tkc_arg;

/* A dimension's size given by name. */
typedef struct tkc_size {
    const char *name;
    int64_t value;
} tkc_size;

/* What a launch with these arguments would need: element types and sizes of every parameter,
   deduced from the arguments that are known and from `sizes`. Writes nparams entries of resolved[]
   (kernel's parameter count): kind TKC_ARG_TENSOR with dtype, rank, dim, row-major strides (data as
   given, else NULL); for scalars kind as given and tensor.dtype the type; TKC_ARG_NONE where not
   given. Fails with TKC_ERROR_LAUNCH where something stays unknown; the report says what to give.
 */
TKC_API tkc_status tkc_resolve(tkc_kernel *kernel, const tkc_arg *args, size_t nargs,
                               const tkc_size *sizes, size_t nsizes, tkc_arg *resolved,
                               tkc_report **report);

/* ---- Devices and launches */
/* "cpu"; "cuda" or "cuda:0", "cuda:1", ...: NVIDIA GPUs; "auto": "cuda" where this build, the
   driver and the GPU can, else "cpu"; "sim", "sim:80", "sim:86", "sim:89", "sim:90": a GPU of that
   compute capability (9.0 without a number), simulated: the code that a GPU would get runs on the
   CPU, in the host's memory, and what it does wrong is found. Names that are unknown or of no use
   here fail with TKC_ERROR_DEVICE and a report that says why. The GPU driver is loaded and
   initialised when the first GPU is opened; after that a forked child cannot use it. A GPU's
   primary context is kept while the device is open; whatever context is current for a thread stays
   so over every call. */
TKC_API tkc_status tkc_device_open(tkc_context *context, const char *name, tkc_device **device,
                                   tkc_report **report);
TKC_API void tkc_device_close(tkc_device *device);
TKC_API const char *tkc_device_name(const tkc_device *device); /* "cpu", "cuda", "cuda:1" */
/* Names of the devices that this build knows, and NULL past the end. */
TKC_API const char *tkc_device_list(size_t i);

/* Counters of a launch as a table and as JSON, which live until the call returns. */
typedef void (*tkc_counters_fn)(void *user, const char *plain, const char *json);

typedef struct tkc_launch_options {
    size_t size;        /* sizeof(tkc_launch_options): lets the struct grow */
    bool check;         /* cpu: races between programs, output elements that nobody wrote */
    volatile int *stop; /* cpu, sim: set to nonzero by another thread to end the launch early with
                           TKC_ERROR_CHECK; may be NULL */
    void *stream;       /* cuda: a CUstream of the device; NULL: its default stream. cpu: unused */
    uint64_t seed;      /* sim: of the order in which warps and blocks run; 0: one after another */
    tkc_counters_fn counters; /* sim: what the launch did, when it has ended; may be NULL */
    void *counters_user;
} tkc_launch_options;

/* Runs the kernel over its grid. One argument per parameter, in order; trailing optional ones may
   be left out. Checks before anything runs: types, ranks, dimensions, alignment, null data, overlap
   of an out or inout tensor with another, grid. options NULL: none.
   cpu, sim: waits for the end. On TKC_ERROR_CHECK outputs may be partly written.
   sim: refuses `check`; whatever it finds (docs/simulator.md) is TKC_ERROR_CHECK.
   cuda: data are addresses of the device (or of memory that it can reach); the launch is put on the
   stream, and what goes wrong while it runs shows at tkc_device_synchronize or another later call.
   The first launch that needs a new variant compiles and loads it; one whose variant is there
   allocates nothing on the device, loads nothing and waits for nothing, so it may be captured in a
   CUDA graph. Refuses `check` and `stop`.
   cuda with tkc_config_debug: a launch of a kernel that has an assert, an assume or a print waits
   until it is done, hands over the lines printed, and fails with TKC_ERROR_CHECK where a claim did
   not hold, as on cpu; the device goes on working. It may not be captured. Others are as above. */
TKC_API tkc_status tkc_launch(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args,
                              size_t nargs, const tkc_launch_options *options, tkc_report **report);
/* Compiles and loads what a launch with such arguments needs, and launches nothing. */
TKC_API tkc_status tkc_prepare(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args,
                               size_t nargs, tkc_report **report);

/* ---- Prepared launches: arguments checked and packed once, launched often. Nothing of the
   arguments is kept but what tkc_tensor says (memory must live when it is launched). To be
   destroyed before its kernel and device. Any number of threads may launch one at once, but not
   while it is set. */
typedef struct tkc_prepared tkc_prepared;
TKC_API tkc_status tkc_prepared_create(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args,
                                       size_t nargs, tkc_prepared **prepared, tkc_report **report);
/* Replaces argument i. Refused, with everything left as it was, where the compiled variant does not
   suit the new argument: other compile-time parameters, or, on cuda, a tensor that lacks what the
   variant takes (tkc_kernel_variant_text): a last stride of 1, 16-byte alignment, rows of whole 16
   bytes, elements that are near. */
TKC_API tkc_status tkc_prepared_set(tkc_prepared *prepared, size_t i, const tkc_arg *arg,
                                    tkc_report **report);
/* As tkc_launch; on cuda nothing but the driver's launch. */
TKC_API tkc_status tkc_prepared_launch(tkc_prepared *prepared, void *stream, tkc_report **report);
TKC_API void tkc_prepared_destroy(tkc_prepared *prepared);

/* ---- Memory of a device, for programs that have no other way to it. On cpu: plain memory. */
TKC_API tkc_status tkc_device_alloc(tkc_device *device, size_t bytes, void **p,
                                    tkc_report **report);        /* bytes 0: NULL */
TKC_API tkc_status tkc_device_free(tkc_device *device, void *p); /* NULL is fine */
typedef enum tkc_direction { TKC_TO_DEVICE, TKC_FROM_DEVICE, TKC_WITHIN_DEVICE } tkc_direction;
/* Waits for everything on the device, then copies, then returns. */
TKC_API tkc_status tkc_device_copy(tkc_device *device, void *to, const void *from, size_t bytes,
                                   tkc_direction direction, tkc_report **report);
/* Waits for everything on the device; reports what failed since. */
TKC_API tkc_status tkc_device_synchronize(tkc_device *device, tkc_report **report);
/* A copy within the device, put on the stream as a launch is. On cpu and sim: done on return. */
TKC_API tkc_status tkc_device_copy_async(tkc_device *device, void *to, const void *from,
                                         size_t bytes, void *stream, tkc_report **report);

/* ---- Time: events are points on a stream, between which the device's own clock tells the time. On
   cpu and sim, which are done when a launch returns, it is the host's. */
typedef struct tkc_event tkc_event;
TKC_API tkc_status tkc_event_create(tkc_device *device, tkc_event **event, tkc_report **report);
/* Behind what is on the stream now. An event may be recorded again, but is one thread's at a time.
 */
TKC_API tkc_status tkc_event_record(tkc_event *event, void *stream, tkc_report **report);
/* Waits for both, which must have been recorded, on one device. */
TKC_API tkc_status tkc_event_elapsed(tkc_event *from, tkc_event *to, double *milliseconds,
                                     tkc_report **report);
TKC_API void tkc_event_destroy(tkc_event *event); /* before its device; NULL is fine */

/* ---- Matrix products: docs/matmul.md.
   d = activation(alpha a b + beta c + bias), on a GPU by NVIDIA's cuBLASLt, which is loaded at the
   first call: libcublasLt.so.13 or .12, or the file that the environment's TKC_CUBLASLT names (set
   and empty: none), else TKC_ERROR_DEVICE. On cpu and sim: computed here.

   a is [.., M, K], b [.., K, N], c and d [.., M, N]; the axes in front are batches, the same for
   all. a, b and c without them are the same for each product. A transpose is a tensor with its
   strides: of the last two one is 1 and the other at least the size of that axis, neither
   negative, and c is ordered as d. Axes of batches must be one step apart, any one, also 0 but for
   d. bias is [N] or [.., N], and needs a d whose last stride is 1.

   Types, as a, b -> d (what the sum is kept in): f64 (f64); f32 (f32); f16 -> f16 or f32, bf16 ->
   bf16 or f32 (f32); i8 -> i32 (i32, wraps); f8e4m3 and f8e5m2, not both f8e5m2, -> bf16, f16, f32,
   f8e4m3 or, where one is f8e5m2, f8e5m2 (f32). c and bias are of d's type, but bf16 or f16 (the
   same) with an f8 d, and a bias is bf16 with f8 factors and an f32 d; i8 has neither bias nor
   activation. */
typedef enum tkc_activation {
    TKC_ACTIVATION_NONE,
    TKC_ACTIVATION_RELU, /* max(x, 0) */
    TKC_ACTIVATION_GELU, /* by tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
} tkc_activation;
typedef struct tkc_matmul_options {
    size_t size;            /* sizeof(tkc_matmul_options): lets the struct grow */
    const tkc_tensor *bias; /* NULL: none */
    tkc_activation activation;
    bool tf32; /* f32 on a GPU: factors are rounded to 10 bits, for speed; elsewhere unused */
    /* One f32 each in the device's memory; NULL: 1. f8 a, b: what their elements are multiplied by.
       f8 d: what the result is multiplied by before it is rounded. */
    const float *scale_a, *scale_b, *scale_d;
    void *stream; /* as in tkc_launch_options */
} tkc_matmul_options;
/* c may be NULL where beta is 0 and is not read then; it may be d itself. No other tensor may share
   memory with d. alpha and beta are rounded to the type that the sum is kept in, and whole for i32.
   options NULL: none. Sizes are below 2^31; a K of 0 is refused, an empty d is nothing to do.
   cuda: put on the stream as a launch is. Which of cuBLASLt's algorithms runs is asked once for
   each shape; memory that it works in (32 MiB where one needs any) is kept for each stream until
   the device is closed. A stream may be captured in a CUDA graph once it had such a call before;
   the graph may not run at the same time as other products of that stream. */
TKC_API tkc_status tkc_matmul(tkc_device *device, double alpha, const tkc_tensor *a,
                              const tkc_tensor *b, double beta, const tkc_tensor *c,
                              const tkc_tensor *d, const tkc_matmul_options *options,
                              tkc_report **report);

/* ---- Code for GPUs, made without one */
/* What code can be compiled for; all names are of the form "sm_90a". Oldest first; false past the
   end. What ends in `a` runs on that compute capability alone, the rest, as PTX, on all later ones
   too. */
typedef struct tkc_target {
    const char *name;
    uint32_t major, minor; /* compute capability */
    uint32_t shared;       /* bytes of shared memory that a program may use */
} tkc_target;
TKC_API bool tkc_target_info(size_t i, tkc_target *out);

typedef enum tkc_code {
    TKC_CODE_PTX,
    TKC_CODE_CUBIN,  /* machine code; needs an assembler, see below */
    TKC_CODE_LLVM,   /* LLVM IR, optimised */
    TKC_CODE_LAYOUT, /* the IR with a layout on each tile */
    TKC_CODE_NOTES,  /* what each pass decided, and, where there is an assembler, the registers,
                        spilled bytes, shared memory and instructions that the kernel came to */
    TKC_CODE_STAGED, /* the IR with shared memory given out and barriers */
} tkc_code;
typedef struct tkc_compile_options {
    size_t size;      /* sizeof(tkc_compile_options): lets the struct grow */
    const char *arch; /* "sm_90a" */
    tkc_code what;
    /* What holds of every tensor that the code will be run on; it is only right for such. The run
       time finds out at each launch; here it is what is said, and nothing else is counted on. */
    bool contiguous; /* the last stride is 1, the address and other strides (in bytes) are multiples
                        of 16 */
    bool whole_rows; /* contiguous, and the last size (in bytes) is a multiple of 16 */
    bool near;       /* no element is further than 2^31 - 2^25 elements from the first */
    bool unit_stride; /* the last stride is 1 */
    bool mapped;      /* contiguous, of 1 to 5 dimensions, none of size 0; the strides of those that
                         have several elements are above 0 and below 2^40 bytes */
} tkc_compile_options;
/* Compiles for a target, for arguments as in tkc_resolve (of tensors only type, rank and sizes
   count). out: text, or for TKC_CODE_CUBIN bytes. TKC_ERROR_DEVICE where this build has no GPU code
   generator, the target is unknown, or the assembler is missing. That is `ptxas` or the library
   nvJitLink, looked for when it is needed: the environment's TKC_PTXAS (a path, "nvJitLink", or
   empty for none), else PATH, CUDA_HOME/bin, /usr/local/cuda/bin. */
TKC_API tkc_status tkc_kernel_compile(tkc_kernel *kernel, const tkc_compile_options *options,
                                      const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                                      size_t nsizes, tkc_text *out, tkc_report **report);

/* ---- Kernels compiled ahead of time, into a C program: docs/embedding.md.
   Kernels are added, each with what is known of its arguments, and become functions of C; then an
   object file (or C source) with their code and a header that declares them are written. What is
   written depends on nothing but what is given here, the compiler and the assembler. The program
   needs libtkcrt (tkc_rt.h), not this library. */
#define TKC_AHEAD_MAX_ARCH 16
typedef struct tkc_ahead tkc_ahead;
typedef struct tkc_ahead_options {
    size_t size;             /* sizeof(tkc_ahead_options): lets the struct grow */
    const char *const *arch; /* targets, each once; PTX is made for each, and machine code where
                                there is an assembler (see tkc_kernel_compile) */
    size_t narch;            /* 1 to TKC_AHEAD_MAX_ARCH */
    /* What is compiled for: by default four variants of each kernel (five where it uses tensor
       maps), for tensors of less and less, of which a launch takes the best that holds; the last
       takes all. If any of these is set (see tkc_compile_options) there is only one variant, for
       such tensors, and others are refused. */
    bool contiguous, whole_rows, near, unit_stride, mapped;
} tkc_ahead_options;
/* TKC_ERROR_DEVICE for an unknown target, TKC_ERROR_ARGUMENT for one that is named twice. */
TKC_API tkc_status tkc_ahead_create(tkc_context *context, const tkc_ahead_options *options,
                                    tkc_ahead **ahead, tkc_report **report);
/* Compiles a kernel; `name`, an identifier that C leaves free (docs/embedding.md), is its
   function's (NULL: the kernel's name). Arguments as in tkc_resolve; every compile-time parameter
   must be known. A size that is given, by an argument or by name, is one that the function asks for
   at each launch. The report has a warning where no assembler is found: the driver then assembles
   at the first load. */
TKC_API tkc_status tkc_ahead_add(tkc_ahead *ahead, const char *name, tkc_kernel *kernel,
                                 const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                                 size_t nsizes, tkc_report **report);
typedef enum tkc_ahead_form {
    TKC_AHEAD_OBJECT, /* ELF, of this machine; TKC_ERROR_DEVICE where tkc does not know how */
    TKC_AHEAD_C,      /* the same as C11 source, for any compiler */
    TKC_AHEAD_HEADER, /* C99 and C++ */
} tkc_ahead_form;
/* At least one kernel has been added. name: of the header, for its guard; of others unused. */
TKC_API tkc_status tkc_ahead_write(const tkc_ahead *ahead, tkc_ahead_form form, const char *name,
                                   tkc_text *out, tkc_report **report);
TKC_API void tkc_ahead_destroy(tkc_ahead *ahead); /* NULL is fine */

/* ---- Explaining: what the compiler made of a kernel, by line of source: layouts, widths of
   accesses, sectors, shared memory, bank conflicts, bounds that are tested, registers, occupancy,
   the time that memory and arithmetic take at least (docs/explain.md has the formats). */
typedef enum tkc_explain_format {
    TKC_EXPLAIN_TEXT,
    TKC_EXPLAIN_JSON,
    TKC_EXPLAIN_SARIF, /* 2.1.0: what was missed is a warning, a @require that fails an error */
} tkc_explain_format;
typedef struct tkc_explain_options {
    size_t size;      /* sizeof(tkc_explain_options): lets the struct grow */
    const char *arch; /* as in tkc_compile_options; NULL: what is compiled for `gpu` */
    const char *gpu;  /* whose bandwidth and arithmetic count, as "H200"; NULL: one of the target's
                         compute capability */
    tkc_explain_format format;
    bool contiguous, whole_rows, near, unit_stride, mapped; /* as in tkc_compile_options, of tensors
                                          of unknown size. One whose size is known is compiled for
                                          as a launch would with row-major strides */
} tkc_explain_options;
/* Arguments and sizes as in tkc_kernel_compile. Counts and times need the sizes that they depend
   on. Where the only errors are demands (@require) that do not hold the status is
   TKC_ERROR_SOURCE, but the text is given all the same. */
TKC_API tkc_status tkc_kernel_explain(tkc_kernel *kernel, const tkc_explain_options *options,
                                      const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                                      size_t nsizes, tkc_text *out, tkc_report **report);
/* GPUs that tkc_explain_options names: NULL past the end. */
TKC_API const char *tkc_explain_gpu(size_t i);

/* What this build and this machine have. Starts the GPU driver, as opening a GPU does. Set `size`
   before the call. */
typedef struct tkc_build {
    size_t size;         /* sizeof(tkc_build) */
    const char *llvm;    /* version of the GPU code generator, "22.1.2"; NULL: none */
    char assembler[512]; /* path of ptxas, or "nvJitLink"; "": none */
    uint32_t driver;     /* CUDA version of the GPU driver, 13000 for 13.0; 0: none */
    char why[256];       /* where there is none: why */
    uint32_t gpus;
} tkc_build;
TKC_API tkc_status tkc_build_info(tkc_context *context, tkc_build *out);
typedef struct tkc_gpu {
    size_t size; /* sizeof(tkc_gpu) */
    char name[128];
    uint32_t major, minor; /* compute capability */
    uint64_t memory;       /* bytes; 0: unknown */
    uint32_t shared;       /* bytes of shared memory that a program may use */
    const char *target;    /* what is compiled for it; NULL: too old */
    uint64_t cache;        /* bytes of the second-level cache; 0: unknown */
    char bus[16];          /* its place, "0000:1b:00.0"; "": unknown */
} tkc_gpu;
/* GPU i of `gpus`, the one that device "cuda:i" is. */
TKC_API tkc_status tkc_gpu_info(tkc_context *context, size_t i, tkc_gpu *out);

/* ---- Looking inside */
/* The syntax tree of the program's own file. */
TKC_API tkc_status tkc_program_dump_ast(tkc_program *program, tkc_text *out);
/* The IR after `pass` (NULL: after all; "build": before the first), for arguments as in
 * tkc_resolve; locs adds source places. */
TKC_API tkc_status tkc_kernel_dump_ir(tkc_kernel *kernel, const tkc_arg *args, size_t nargs,
                                      const tkc_size *sizes, size_t nsizes, const char *pass,
                                      bool locs, tkc_text *out, tkc_report **report);
/* The compiler's notes for the same compile: what each pass decided and why. */
TKC_API tkc_status tkc_kernel_dump_notes(tkc_kernel *kernel, const tkc_arg *args, size_t nargs,
                                         const tkc_size *sizes, size_t nsizes, tkc_text *out,
                                         tkc_report **report);
/* Reads IR text, runs one pass (NULL: none), and prints it. */
TKC_API tkc_status tkc_ir_run(tkc_context *context, const char *name, const char *text, size_t size,
                              const char *pass, bool locs, tkc_text *out, tkc_report **report);
/* Passes in order, those of the tile IR and then those on the way to a GPU: name and one sentence;
 * false past the end. */
TKC_API bool tkc_pass_info(size_t i, const char **name, const char **what);
/* Source in its canonical layout: comments kept, idempotent. */
TKC_API tkc_status tkc_format(tkc_context *context, const char *name, const char *text, size_t size,
                              tkc_text *out, tkc_report **report);

/* ---- The folder of tkc_config_cache */
/* Entries and their bytes; zeros where there is no such folder. */
TKC_API tkc_status tkc_cache_size(const char *folder, uint64_t *entries, uint64_t *bytes);
/* Removes all entries; what is no entry stays. `entries`: how many; may be NULL. */
TKC_API tkc_status tkc_cache_clear(const char *folder, uint64_t *entries);

#ifdef __cplusplus
}
#endif
#endif
