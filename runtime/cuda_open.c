// SPDX-License-Identifier: Apache-2.0
// Finds the NVIDIA driver, initialises it, says its errors in words, and loads code into it.
#include "runtime/cuda_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"

const char *cuda_result_text(const cuda_driver *d, cu_result r, const char **text) {
    const char *name = NULL;
    *text = NULL;
    if (d->error_name(r, &name) != 0 || !name) {
        name = "unknown CUDA error";
    }
    if (d->error_string(r, text) != 0 || !*text) {
        *text = "no description";
    }
    return name;
}

// ---- Loading

static bool load_symbols(cuda_driver *d, char *why, size_t room) {
#define F(member, symbol, parameters) {#symbol, offsetof(cuda_driver, member)},
    static const struct {
        const char *symbol;
        size_t at;
    } functions[] = {CUDA_FUNCTIONS(F)};
#undef F
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *p = dlsym(d->library, functions[i].symbol);
        if (!p) {
            snprintf(why, room, "the GPU driver is too old: it has no %s", functions[i].symbol);
            return false;
        }
        memcpy((char *)d + functions[i].at, &p, sizeof p);
    }
    void *load = dlsym(d->library, "cuFuncLoad");
    memcpy(&d->function_load, &load, sizeof load);
    void *clusters = dlsym(d->library, "cuOccupancyMaxActiveClusters");
    memcpy(&d->occupancy_clusters, &clusters, sizeof clusters);
    void *id = dlsym(d->library, "cuCtxGetId");
    memcpy(&d->context_id, &id, sizeof id);
    void *encode = dlsym(d->library, "cuTensorMapEncodeTiled");
    memcpy(&d->map_encode, &encode, sizeof encode);
    return true;
}

static bool initialise(cuda_driver *d, char *why, size_t room) {
    cu_result r = d->init(0);
    if (r == 0) {
        r = d->driver_version(&d->version);
    }
    if (r == 0) {
        r = d->device_count(&d->devices);
    }
    if (r != 0) {
        const char *text, *name = cuda_result_text(d, r, &text);
        snprintf(why, room, "the GPU driver does not start: %s (%s)%s", name, text,
                 r == CU_NOT_INITIALIZED ? "; a process that was forked after the driver was "
                                           "initialised cannot use it"
                                         : "");
        return false;
    }
    if (d->devices == 0) {
        snprintf(why, room, "the GPU driver sees no GPU");
        return false;
    }
    return true;
}

bool cuda_open_driver(const char *path, cuda_driver *d, char *why, size_t room) {
    path = path ? path : DRIVER;
    // The driver has threads and exit handlers of its own: it stays where it was once loaded.
    d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library) {
        snprintf(why, room, "this machine has no NVIDIA driver (%s is not found)", path);
        return false;
    }
    d->pid = getpid();
    if (load_symbols(d, why, room) && initialise(d, why, room)) {
        return true;
    }
    dlclose(d->library);
    return false;
}

bool cuda_forked(const cuda_driver *d) { return d->pid != getpid(); }

// ---- Errors

const char *cuda_advice(cu_result r) {
    if (r >= CU_CAPTURE_FIRST && r <= CU_CAPTURE_LAST) {
        return "a stream is being captured: what is launched inside must be made ready before "
               "(tkc_prepare, or one launch with such arguments)";
    }
    switch (r) {
    case CU_OUT_OF_MEMORY:
        return "the GPU has not enough free memory; other processes may hold some of it";
    case CU_NOT_INITIALIZED:
        return "a process that was forked after the driver was initialised cannot use it";
    case CU_UNSUPPORTED_PTX_VERSION:
        return "the driver is older than the code; install a newer driver";
    case CU_JIT_COMPILER_NOT_FOUND:
        return "the driver's own assembler (libnvidia-ptxjitcompiler) is missing";
    case CU_ILLEGAL_ADDRESS:
    case CU_MISALIGNED_ADDRESS:
        return "a kernel touched memory that is not its tensors'; are all data pointers of this "
               "device, and alive? The GPU takes no more work from this process";
    case CU_ILLEGAL_INSTRUCTION:
    case CU_LAUNCH_FAILED:
        return "a kernel ended early; device cpu may tell why. The GPU takes no more work from "
               "this process";
    case CU_LAUNCH_TIMEOUT:
        return "the kernel ran longer than a GPU with a display lets it";
    case CU_LAUNCH_OUT_OF_RESOURCES:
        return "the kernel needs more registers or shared memory than a block has: fewer @warps "
               "or smaller tiles";
    default:
        return NULL;
    }
}

// ---- Code

static cu_result load_image(const cuda_driver *f, const void *image, cuda_load_log *log,
                            cu_module *m) {
    int option[] = {CU_JIT_INFO_LOG, CU_JIT_INFO_LOG_SIZE, CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_SIZE,
                    CU_JIT_LINE_INFO};
    void *value[] = {log->info, (void *)(uintptr_t)(CUDA_INFO_LOG - 1), log->error,
                     (void *)(uintptr_t)(CUDA_ERROR_LOG - 1), (void *)(uintptr_t)1};
    memset(log, 0, sizeof *log);
    return f->module_load(m, image, 5, option, value);
}

cu_result cuda_load_module(const cuda_driver *f, const void *cubin, const char *ptx,
                           cuda_load_log *log, cu_module *m) {
    cu_result r = CU_NO_BINARY_FOR_GPU;
    if (cubin) {
        r = load_image(f, cubin, log, m);
    }
    if (ptx && (r == CU_NO_BINARY_FOR_GPU || r == CU_INVALID_IMAGE)) {
        r = load_image(f, ptx, log, m);
    }
    return r;
}

cu_result cuda_load_function(const cuda_driver *f, cu_module m, const char *name, unsigned shared,
                             unsigned cluster, unsigned usual, unsigned most, cu_function *function,
                             unsigned *need) {
    enum { CLUSTER_OF_ALL = 8 };
    int fixed = 0;
    cu_result r = f->module_function(function, m, name);
    if (r == 0 && f->function_load) {
        r = f->function_load(*function);
    }
    r = r ? r : f->function_attribute(&fixed, CU_FUNCTION_SHARED_STATIC, *function);
    *need = shared + (unsigned)fixed;
    if (r == 0 && *need > usual && *need <= most) {
        r = f->function_set(*function, CU_FUNCTION_SHARED_DYNAMIC_MAX, (int)shared);
    }
    if (r == 0 && cluster > CLUSTER_OF_ALL) {
        r = f->function_set(*function, CU_FUNCTION_LARGE_CLUSTERS, 1);
    }
    return r;
}

// A cluster's blocks are on multiprocessors of one part of the device, which may have no multiple.
static cu_result resident_clusters(const cuda_driver *f, cu_function function, unsigned threads,
                                   unsigned shared, unsigned cluster, unsigned *blocks) {
    cu_launch_attribute in = {.id = CU_LAUNCH_CLUSTER, .cluster = {cluster, 1, 1}};
    const cu_launch_config c = {.grid = {cluster, 1, 1},
                                .block = {threads, 1, 1},
                                .shared = shared,
                                .attribute = &in,
                                .attributes = 1};
    int n = 0;
    cu_result r = f->occupancy_clusters(&n, function, &c);
    *blocks = (n > 0 ? (unsigned)n : 1) * cluster;
    return r;
}

cu_result cuda_resident(const cuda_driver *f, cu_function function, unsigned threads,
                        unsigned shared, unsigned cluster, unsigned *blocks) {
    int multiprocessors = 0, each = 0;
    cu_device d = 0;
    if (cluster > 1 && f->occupancy_clusters) {
        return resident_clusters(f, function, threads, shared, cluster, blocks);
    }
    cu_result r = f->context_device(&d);
    r = r ? r : f->device_attribute(&multiprocessors, CU_DEVICE_MULTIPROCESSORS, d);
    r = r ? r : f->occupancy(&each, function, (int)threads, shared);
    *blocks = multiprocessors > 0 && each > 0 ? (unsigned)multiprocessors * (unsigned)each : 1;
    if (cluster > 1) {
        *blocks = *blocks < cluster ? cluster : *blocks / cluster * cluster;
    }
    return r;
}
