// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver as this library uses it: the few functions, types and numbers of its binary
// interface, which are fixed since CUDA 4 (the _v2 names) and the same in every driver since. They
// are declared here, so that nothing of NVIDIA's is needed to build; the functions come from
// libcuda.so.1 when the first device is opened.
//
// One cuda_driver belongs to a context. Nothing but opening a device initialises it. A process that
// was forked after that cannot use it: every entry point compares process ids first.
#ifndef TKC_RUNTIME_CUDA_DRIVER_H
#define TKC_RUNTIME_CUDA_DRIVER_H

#include "lower/target.h"
#include "runtime/internal.h"

#include <sys/types.h>

typedef int cu_result; // 0: success
typedef int cu_device;
typedef struct cu_context_opaque *cu_context;
typedef struct cu_module_opaque *cu_module;
typedef struct cu_function_opaque *cu_function;
typedef struct cu_stream_opaque *cu_stream;
typedef unsigned long long cu_address;

enum { // results that are told apart
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_NO_DEVICE = 100,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_JIT_COMPILER_NOT_FOUND = 221,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_LAUNCH_FAILED = 719,
    CU_CAPTURE_FIRST = 900, // of the errors about streams that are being captured
    CU_CAPTURE_LAST = 907,
    CU_UNKNOWN = 999,
};

enum { // device attributes
    CU_DEVICE_SHARED_DEFAULT = 8,
    CU_DEVICE_MAJOR = 75,
    CU_DEVICE_MINOR = 76,
    CU_DEVICE_SHARED_OPTIN = 97,
};

enum { // function attributes
    CU_FUNCTION_SHARED_STATIC = 1,
    CU_FUNCTION_LOCAL = 3,
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_SHARED_DYNAMIC_MAX = 8,
};

enum { // options of cuModuleLoadDataEx
    CU_JIT_INFO_LOG = 3,
    CU_JIT_INFO_LOG_SIZE = 4,
    CU_JIT_ERROR_LOG = 5,
    CU_JIT_ERROR_LOG_SIZE = 6,
    CU_JIT_LINE_INFO = 13,
};

// Keys of cuLaunchKernel's `extra`, as pointers: the parameters as one block of bytes.
enum { CU_EXTRA_END = 0, CU_EXTRA_BUFFER = 1, CU_EXTRA_SIZE = 2 };

// F(member, symbol, parameters)
#define CUDA_FUNCTIONS(F)                                                                          \
    F(init, cuInit, (unsigned flags))                                                              \
    F(driver_version, cuDriverGetVersion, (int *version))                                          \
    F(error_name, cuGetErrorName, (cu_result r, const char **name))                                \
    F(error_string, cuGetErrorString, (cu_result r, const char **text))                            \
    F(device_count, cuDeviceGetCount, (int *n))                                                    \
    F(device_get, cuDeviceGet, (cu_device * d, int ordinal))                                       \
    F(device_name, cuDeviceGetName, (char *name, int room, cu_device d))                           \
    F(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, cu_device d))            \
    F(primary_retain, cuDevicePrimaryCtxRetain, (cu_context * c, cu_device d))                     \
    F(primary_release, cuDevicePrimaryCtxRelease_v2, (cu_device d))                                \
    F(context_current, cuCtxGetCurrent, (cu_context * c))                                          \
    F(context_push, cuCtxPushCurrent_v2, (cu_context c))                                           \
    F(context_pop, cuCtxPopCurrent_v2, (cu_context * c))                                           \
    F(context_synchronize, cuCtxSynchronize, (void))                                               \
    F(stream_synchronize, cuStreamSynchronize, (cu_stream s))                                      \
    F(stream_capturing, cuStreamIsCapturing, (cu_stream s, int *status))                           \
    F(module_load, cuModuleLoadDataEx,                                                             \
      (cu_module * m, const void *image, unsigned n, int *options, void **values))                 \
    F(module_unload, cuModuleUnload, (cu_module m))                                                \
    F(module_function, cuModuleGetFunction, (cu_function * f, cu_module m, const char *name))      \
    F(function_attribute, cuFuncGetAttribute, (int *value, int attribute, cu_function f))          \
    F(function_set, cuFuncSetAttribute, (cu_function f, int attribute, int value))                 \
    F(launch, cuLaunchKernel,                                                                      \
      (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
       unsigned bz, unsigned shared, cu_stream s, void **params, void **extra))                    \
    F(memory_alloc, cuMemAlloc_v2, (cu_address * p, size_t bytes))                                 \
    F(memory_free, cuMemFree_v2, (cu_address p))                                                   \
    F(memory_set, cuMemsetD8_v2, (cu_address p, unsigned char x, size_t bytes))                    \
    F(copy_in, cuMemcpyHtoD_v2, (cu_address to, const void *from, size_t bytes))                   \
    F(copy_out, cuMemcpyDtoH_v2, (void *to, cu_address from, size_t bytes))                        \
    F(copy_within, cuMemcpyDtoD_v2, (cu_address to, cu_address from, size_t bytes))

typedef struct cuda_driver {
    void *library;
    pid_t pid; // of the process that initialised it
    int version, devices;
#define F(member, symbol, parameters) cu_result(*member) parameters;
    CUDA_FUNCTIONS(F)
#undef F
    // Of drivers from CUDA 12.4 on, else NULL: loads what a driver may leave until the first
    // launch.
    cu_result (*function_load)(cu_function f);
} cuda_driver;

// A device that is open. What is loaded into it is a list, changed under the context's gpu_lock.
typedef struct cuda_device {
    const cuda_driver *driver;
    cu_device handle;
    cu_context context; // primary, retained
    const tk_target *target;
    unsigned major, minor;
    unsigned shared_default, shared_most; // bytes a block
    struct gpu_loaded *loaded;
    _Atomic(struct gpu_loaded *) last; // launched last: for messages about what is seen later
    char label[128];                   // "NVIDIA H200"
} cuda_device;

// The context's driver, made and initialised on first use. NULL and a text in why[room],
// which is empty where memory ran out.
const cuda_driver *cuda_driver_get(tkc_context *context, char *why, size_t room);
void cuda_driver_destroy(tkc_context *context);
bool cuda_forked(const cuda_driver *d); // initialised by another process

// Makes the device's context the thread's current one, where it is not; cuda_leave takes that
// back. No arena allocation in between: its failure would jump past cuda_leave.
typedef struct cuda_scope {
    bool pushed;
} cuda_scope;
cu_result cuda_enter(const cuda_device *d, cuda_scope *s);
void cuda_leave(const cuda_device *d, cuda_scope *s);

// An error of the driver as a diagnostic: "what: CUDA_ERROR_... (its words)", with help where the
// cause is known. The place may be none.
tk_diag *cuda_fail(tk_work *w, const cuda_driver *d, cu_result r, tk_span at, const char *fmt, ...)
    TK_PRINTF(5, 6);
void cuda_fail_forked(tk_work *w);

// ---- Compiled and loaded kernels (cuda_variant.c)

// A kernel compiled for one set of compile-time parameters, promises about its tensors, and target.
// Const once it is in the kernel's list.
typedef struct gpu_variant {
    struct gpu_variant *next;
    tk_arena arena;
    const char *base; // compile-time parameters, target, mode
    uint32_t nfact;
    tk_tensor_facts *fact; // per IR parameter
    const tk_image *image;
    const char *notes; // of its compile, as text
    tk_module *module; // only the grid region
    tk_plan *grid;
    const tk_sim_program *simulated; // decoded, where it is the simulator's; else NULL
    struct gpu_loaded *loaded;       // under gpu_lock
} gpu_variant;

// A variant in a device. Owned by both: goes with whichever goes first.
typedef struct gpu_loaded {
    struct gpu_loaded *next_of_variant, *next_of_device;
    gpu_variant *variant;
    cuda_device *device;
    cu_module module;
    cu_function function;
    unsigned registers, local_bytes;
    cu_address debug;           // what a debug image leaves behind (ptx/debug.h); 0: nothing
    pthread_mutex_t debug_lock; // held while a launch uses that
    tk_span span;               // the kernel's
    char name[64];              // the kernel's, perhaps cut, as the next
    char place[160];            // "k.tk:3", for messages of calls that have no kernel
} gpu_loaded;

const char *gpu_base_key(tk_work *w, const tk_target *t, const char *key);
// What holds of the arguments of a launch, per IR parameter.
tk_tensor_facts *gpu_facts(tk_work *w, const launch *l);
// Whether a variant may be launched with arguments of which `now` holds.
bool gpu_facts_hold(const gpu_variant *v, const tk_tensor_facts *now);
// Finds or makes the variant for a launch and loads it. NULL after w's diagnostics.
gpu_loaded *gpu_ready(tk_work *w, cuda_device *d, const launch *l);
// The same for the simulator, which loads nothing.
const gpu_variant *gpu_simulated(tk_work *w, const tk_target *t, const launch *l);
void gpu_unload(const tkc_config *c, gpu_loaded *x); // with the context's gpu_lock
// The module (of a kernel with `n` IR parameters) as an image in `arena`, from the disk cache where
// it has it, and the compiler's notes, the same from there (cuda_image.c). NULL after w's
// diagnostics.
const tk_image *gpu_compile(tk_work *w, tk_arena *arena, tk_module *m, uint32_t n,
                            const tk_ptx_opts *o, const char **notes);

// ---- Launches (cuda_launch.c)
bool gpu_pack(tkc_device *device, const launch *l, tk_arena *arena, gpu_packed *out);
// debug: the address of what a debug image leaves behind.
bool gpu_pack_variant(const launch *l, const gpu_variant *v, uint64_t debug, tk_arena *arena,
                      gpu_packed *out);
cu_result gpu_run(const cuda_device *d, const gpu_packed *p, void *stream);
void gpu_run_failed(tk_work *w, const cuda_device *d, const gpu_packed *p, cu_result r);
// A launch of a debug image: waits for its end, hands over what it printed, and reports the assert
// or assume that failed (cuda_debug.c). False after w's diagnostics.
bool gpu_run_debug(tk_work *w, tkc_device *device, const tkc_kernel *k, const gpu_packed *p,
                   void *stream);
size_t gpu_debug_bytes(const tkc_config *c, const tk_image *i); // of memory on the device; 0: none
// The same memory on the host, before a run and after it: false after w's errors.
void gpu_debug_begin(const tkc_config *c, void *buffer);
bool gpu_debug_end(tk_work *w, tkc_context *c, const tkc_kernel *k, const tk_image *i,
                   const gpu_packed *p, void *buffer);

#endif
