// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver as we use it: the few functions, types and numbers of its binary interface,
// which are fixed since CUDA 4 (the _v2 names) and the same in every driver since. They are
// declared here, so that nothing of NVIDIA's is needed to build; the functions come from
// libcuda.so.1 when they are first needed. libtkc and libtkcrt share this.
#ifndef TKC_RUNTIME_CUDA_ABI_H
#define TKC_RUNTIME_CUDA_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int cu_result; // 0: success
typedef int cu_device;
typedef struct cu_context_opaque *cu_context;
typedef struct cu_module_opaque *cu_module;
typedef struct cu_function_opaque *cu_function;
typedef struct cu_stream_opaque *cu_stream;
typedef struct cu_event_opaque *cu_event;
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

// What a launch says beside its parameters, of which occupancy_clusters takes the cluster.
typedef struct cu_launch_attribute {
    int id; // CU_LAUNCH_CLUSTER
    char unused[4];
    unsigned cluster[3];
    char room[52];
} cu_launch_attribute;
typedef struct cu_launch_config {
    unsigned grid[3], block[3];
    unsigned shared;
    cu_stream stream;
    cu_launch_attribute *attribute;
    unsigned attributes;
} cu_launch_config;
enum { CU_LAUNCH_CLUSTER = 4 };

enum { // device attributes
    CU_DEVICE_SHARED_DEFAULT = 8,
    CU_DEVICE_MULTIPROCESSORS = 16,
    CU_DEVICE_CACHE = 38,
    CU_DEVICE_MAJOR = 75,
    CU_DEVICE_MINOR = 76,
    CU_DEVICE_SHARED_OPTIN = 97,
};

enum { // function attributes
    CU_FUNCTION_SHARED_STATIC = 1,
    CU_FUNCTION_LOCAL = 3,
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_SHARED_DYNAMIC_MAX = 8,
    CU_FUNCTION_LARGE_CLUSTERS = 14, // of more blocks than any device has: 8
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
    F(context_device, cuCtxGetDevice, (cu_device * d))                                             \
    F(context_set, cuCtxSetCurrent, (cu_context c))                                                \
    F(context_push, cuCtxPushCurrent_v2, (cu_context c))                                           \
    F(context_pop, cuCtxPopCurrent_v2, (cu_context * c))                                           \
    F(context_synchronize, cuCtxSynchronize, (void))                                               \
    F(stream_synchronize, cuStreamSynchronize, (cu_stream s))                                      \
    F(stream_context, cuStreamGetCtx, (cu_stream s, cu_context * c))                               \
    F(stream_capturing, cuStreamIsCapturing, (cu_stream s, int *status))                           \
    F(module_load, cuModuleLoadDataEx,                                                             \
      (cu_module * m, const void *image, unsigned n, int *options, void **values))                 \
    F(module_unload, cuModuleUnload, (cu_module m))                                                \
    F(module_function, cuModuleGetFunction, (cu_function * f, cu_module m, const char *name))      \
    F(function_attribute, cuFuncGetAttribute, (int *value, int attribute, cu_function f))          \
    F(function_set, cuFuncSetAttribute, (cu_function f, int attribute, int value))                 \
    F(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                      \
      (int *blocks, cu_function f, int threads, size_t shared))                                    \
    F(launch, cuLaunchKernel,                                                                      \
      (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
       unsigned bz, unsigned shared, cu_stream s, void **params, void **extra))                    \
    F(memory_alloc, cuMemAlloc_v2, (cu_address * p, size_t bytes))                                 \
    F(memory_free, cuMemFree_v2, (cu_address p))                                                   \
    F(memory_set, cuMemsetD8_v2, (cu_address p, unsigned char x, size_t bytes))                    \
    F(copy_in, cuMemcpyHtoD_v2, (cu_address to, const void *from, size_t bytes))                   \
    F(copy_out, cuMemcpyDtoH_v2, (void *to, cu_address from, size_t bytes))                        \
    F(copy_within, cuMemcpyDtoD_v2, (cu_address to, cu_address from, size_t bytes))                \
    F(copy_on_stream, cuMemcpyDtoDAsync_v2,                                                        \
      (cu_address to, cu_address from, size_t bytes, cu_stream s))                                 \
    F(event_create, cuEventCreate, (cu_event * e, unsigned flags))                                 \
    F(event_record, cuEventRecord, (cu_event e, cu_stream s))                                      \
    F(event_synchronize, cuEventSynchronize, (cu_event e))                                         \
    F(event_elapsed, cuEventElapsedTime, (float *milliseconds, cu_event from, cu_event to))        \
    F(event_destroy, cuEventDestroy_v2, (cu_event e))

// cuTensorMapEncodeTiled: a tensor and a box of it as `map` (runtime/tensor_map.h).
typedef cu_result cu_map_encode(void *map, int type, uint32_t rank, void *address,
                                const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                                const uint32_t *step, int interleave, int swizzle, int l2,
                                int fill);

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
    // From CUDA 11.8 on, else NULL.
    cu_result (*occupancy_clusters)(int *n, cu_function f, const cu_launch_config *c);
    cu_result (*context_id)(cu_context c, unsigned long long *id); // from CUDA 12.0 on, else NULL
    cu_map_encode *map_encode;                                     // as this
} cuda_driver;

// Opens the driver (path NULL: the system's) and initialises it. False and a text in why[room].
bool cuda_open_driver(const char *path, cuda_driver *d, char *why, size_t room);
bool cuda_forked(const cuda_driver *d); // initialised by another process
// The name of a result and, in *text, the driver's words for it.
const char *cuda_result_text(const cuda_driver *d, cu_result r, const char **text);
// What may help; or NULL.
const char *cuda_advice(cu_result r);

// What the driver's assembler says.
enum { CUDA_INFO_LOG = 4096, CUDA_ERROR_LOG = 8192 };
typedef struct cuda_load_log {
    char info[CUDA_INFO_LOG], error[CUDA_ERROR_LOG];
} cuda_load_log;

// With a context current. The cubin where there is one (NULL: none) and the device takes it, else
// the PTX (NULL: none) for the driver to assemble.
cu_result cuda_load_module(const cuda_driver *f, const void *cubin, const char *ptx,
                           cuda_load_log *log, cu_module *m);
// Finds the function and loads it. It will be launched with `shared` bytes of dynamic shared
// memory; *need is that with what it has statically. Where that is more than a block has by default
// it is asked for, unless it is more than it can have: then the caller refuses.
// Its blocks come in clusters of `cluster`, 0 or 1 where in none.
cu_result cuda_load_function(const cuda_driver *f, cu_module m, const char *name, unsigned shared,
                             unsigned cluster, unsigned usual, unsigned most, cu_function *function,
                             unsigned *need);
// Blocks that the device holds at once of a function that is launched with so many threads a block
// and bytes of dynamic shared memory: at least one cluster.
cu_result cuda_resident(const cuda_driver *f, cu_function function, unsigned threads,
                        unsigned shared, unsigned cluster, unsigned *blocks);

#endif
