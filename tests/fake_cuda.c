// SPDX-License-Identifier: Apache-2.0
// A GPU driver that runs nothing: it records calls, keeps count of what is alive, checks what the
// real one checks about contexts, forks and captures, and fails where a test says so. Built as a
// shared library of its own.
#include "tests/fake_cuda.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct context {
    int device;
    long made; // times that it was retained while it was not there
} context;
typedef struct module {
    struct module *next;
    context *in;
    char name[64];
    void *code;
} module;

typedef struct memory {
    struct memory *next;
    context *in;
    void *at;
    size_t bytes;
} memory;

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, BAD_DEVICE = 101 };
enum { INVALID_CONTEXT = 201, CAPTURE = 900 };

static fake_cuda_state state = {
    .devices = 2, .major = {9, 9, 8, 7}, .minor = {0, 0, 0, 5}, .fail_code = 999};
static context primary[FAKE_DEVICES] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
static long retained[FAKE_DEVICES];
static module *modules;
static memory *memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner; // 0: not initialised

static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER; // one kernel at a time
static __thread context *stack[64];
static __thread int depth;

EXPORT fake_cuda_state *fake_cuda(void) { return &state; }

static int begin(const char *name) {
    int r = OK;
    pthread_mutex_lock(&lock);
    state.calls++;
    size_t n = strlen(name);
    if (state.log_size + n + 2 < FAKE_LOG) {
        memcpy(state.log + state.log_size, name, n);
        state.log_size += n;
        state.log[state.log_size++] = ' ';
        state.log[state.log_size] = 0;
    }
    if (state.fail_at > 0 && --state.fail_at == 0) {
        r = state.fail_code;
    } else if (state.fail_name && strcmp(state.fail_name, name) == 0) {
        r = state.fail_code;
    } else if (strcmp(name, "cuInit") != 0 && owner != getpid()) {
        r = NOT_INITIALIZED;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

#define BEGIN()                                                                                    \
    do {                                                                                           \
        int begin_result = begin(__func__);                                                        \
        if (begin_result != OK) {                                                                  \
            return begin_result;                                                                   \
        }                                                                                          \
    } while (0)
#define NOT_CAPTURING()                                                                            \
    if (state.capturing) {                                                                         \
        return CAPTURE;                                                                            \
    }

static context *current(void) { return depth ? stack[depth - 1] : NULL; }

static void count(long *what, long by) {
    pthread_mutex_lock(&lock);
    *what += by;
    pthread_mutex_unlock(&lock);
}

static int alive(void) {
    pthread_mutex_lock(&lock);
    int ok = current() && retained[current()->device] > 0;
    pthread_mutex_unlock(&lock);
    return ok;
}

#define NEEDS_CONTEXT()                                                                            \
    if (!alive()) {                                                                                \
        return INVALID_CONTEXT;                                                                    \
    }

#define API(name, ...)                                                                             \
    EXPORT int name(__VA_ARGS__);                                                                  \
    int name(__VA_ARGS__)

API(cuInit, unsigned flags) {
    BEGIN();
    if (owner && owner != getpid()) {
        return NOT_INITIALIZED;
    }
    owner = getpid();
    return flags == 0 ? OK : INVALID;
}

API(cuDriverGetVersion, int *version) {
    BEGIN();
    *version = 13000;
    return OK;
}

API(cuGetErrorName, int r, const char **name) {
    *name = r == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : r == 3   ? "CUDA_ERROR_NOT_INITIALIZED"
            : r == 218 ? "CUDA_ERROR_INVALID_PTX"
            : r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : r == 900 ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
            : r == 999 ? "CUDA_ERROR_UNKNOWN"
                       : NULL;
    return *name ? OK : INVALID;
}

API(cuGetErrorString, int r, const char **text) {
    *text = r == 700 ? "an illegal memory access was encountered" : "some words";
    return OK;
}

API(cuDeviceGetCount, int *n) {
    BEGIN();
    *n = state.devices;
    return OK;
}

API(cuDeviceGet, int *d, int ordinal) {
    BEGIN();
    *d = ordinal;
    return ordinal < state.devices ? OK : BAD_DEVICE;
}

API(cuDeviceGetName, char *name, int room, int d) {
    BEGIN();
    if (state.name) {
        snprintf(name, (size_t)room, "%s", state.name);
    } else {
        snprintf(name, (size_t)room, "Fake GPU %d", d);
    }
    return OK;
}

API(cuDeviceGetAttribute, int *value, int attribute, int d) {
    BEGIN();
    *value = attribute == 75   ? state.major[d]
             : attribute == 76 ? state.minor[d]
             : attribute == 8  ? 49152
             : attribute == 97 ? 232448
             : attribute == 38 ? 1 << 16
             : attribute == 16 ? 4
                               : 0;
    return OK;
}

API(cuDevicePrimaryCtxRetain, context **c, int d) {
    BEGIN();
    primary[d].made += retained[d] == 0;
    count(&retained[d], 1);
    count(&state.retains, 1);
    *c = &primary[d];
    return OK;
}

// With the lock.
static void drop_module(module **at) {
    module *m = *at;
    *at = m->next;
    if (m->code) {
        state.on_unload(m->code);
    }
    free(m);
    state.modules--;
}

// With the lock.
static void drop_memory(memory **at) {
    memory *m = *at;
    *at = m->next;
    free(m->at);
    free(m);
    state.memories--;
}

// As the others that end something: a failure is said, and it is done all the same. What a
// context holds goes with it.
API(cuDevicePrimaryCtxRelease_v2, int d) {
    int r = begin(__func__);
    pthread_mutex_lock(&lock);
    retained[d]--;
    state.retains--;
    for (module **at = &modules; *at && retained[d] == 0;) {
        if ((*at)->in == &primary[d]) {
            drop_module(at);
        } else {
            at = &(*at)->next;
        }
    }
    for (memory **at = &memories; *at && retained[d] == 0;) {
        if ((*at)->in == &primary[d]) {
            drop_memory(at);
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return r;
}

API(cuCtxGetCurrent, context **c) {
    BEGIN();
    *c = current();
    return OK;
}

API(cuCtxGetDevice, int *d) {
    BEGIN();
    NEEDS_CONTEXT();
    *d = current()->device;
    return OK;
}

// An address that is retained anew is another context.
API(cuCtxGetId, context *c, unsigned long long *id) {
    BEGIN();
    *id = (unsigned long long)c->device + (unsigned long long)c->made * FAKE_DEVICES;
    return OK;
}

API(cuCtxSetCurrent, context *c) {
    BEGIN();
    if (depth) {
        depth--;
        count(&state.pushed, -1);
    }
    if (c) {
        stack[depth++] = c;
        count(&state.pushed, 1);
    }
    return OK;
}

API(cuStreamGetCtx, void *stream, context **c) {
    BEGIN();
    *c = stream ? &primary[state.stream_device] : current();
    return *c ? OK : INVALID_CONTEXT;
}

API(cuCtxPushCurrent_v2, context *c) {
    BEGIN();
    stack[depth++] = c;
    count(&state.pushed, 1);
    return OK;
}

API(cuCtxPopCurrent_v2, context **c) {
    int r = begin(__func__);
    if (depth == 0) {
        return INVALID_CONTEXT;
    }
    *c = stack[--depth];
    count(&state.pushed, -1);
    return r;
}

API(cuCtxSynchronize, void) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    int r = state.pending;
    state.pending = 0;
    return r;
}

API(cuStreamSynchronize, void *stream) {
    BEGIN();
    (void)stream;
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    int r = state.pending;
    state.pending = 0;
    return r;
}

API(cuStreamIsCapturing, void *stream, int *status) {
    BEGIN();
    (void)stream;
    NEEDS_CONTEXT();
    *status = state.capturing;
    return OK;
}

// The name of the kernel is the word after "entry" in the text.
API(cuModuleLoadDataEx, module **m, const void *image, unsigned n, int *option, void **value) {
    for (unsigned i = 0; i < n; i++) {
        if (option[i] == 5 && state.jit_log) { // the error log, and its size comes next
            snprintf(value[i], (size_t)(uintptr_t)value[i + 1], "%s", state.jit_log);
        }
    }
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    int error = OK;
    void *code = state.on_load ? state.on_load(image, &error) : NULL;
    if (error != OK) {
        return error;
    }
    *m = calloc(1, sizeof **m);
    (*m)->in = current();
    (*m)->code = code;
    pthread_mutex_lock(&lock);
    snprintf(state.image, sizeof state.image, "%s", (const char *)image);
    (*m)->next = modules;
    modules = *m;
    state.modules++;
    pthread_mutex_unlock(&lock);
    return OK;
}

API(cuModuleUnload, module *m) {
    int r = begin(__func__);
    pthread_mutex_lock(&lock);
    module **at = &modules;
    while (*at && *at != m) {
        at = &(*at)->next;
    }
    if (*at) {
        drop_module(at);
    }
    pthread_mutex_unlock(&lock);
    return at ? r : INVALID;
}

API(cuModuleGetFunction, module **f, module *m, const char *name) {
    BEGIN();
    NEEDS_CONTEXT();
    snprintf(m->name, sizeof m->name, "%s", name);
    *f = m;
    return OK;
}

API(cuFuncLoad, module *f) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    return f->in == current() ? OK : INVALID;
}

API(cuFuncGetAttribute, int *value, int attribute, module *f) {
    BEGIN();
    (void)f;
    *value = attribute == 1 ? state.shared_static : attribute == 4 ? 32 : 0;
    return OK;
}

API(cuFuncSetAttribute, module *f, int attribute, int value) {
    BEGIN();
    (void)f;
    if (attribute == 8) {
        state.dynamic_max = value;
    }
    return OK;
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, module *f, int threads,
    size_t shared) {
    BEGIN();
    (void)shared;
    *blocks = threads > 512 ? 1 : 2;
    return f->in == current() ? OK : INVALID;
}

// Of a device with 4 multiprocessors; the attribute is that of the cluster.
API(cuOccupancyMaxActiveClusters, int *clusters, module *f, const unsigned *config) {
    BEGIN();
    const unsigned *attribute;
    memcpy(&attribute, config + 10, sizeof attribute);
    *clusters = attribute[0] == 4 ? (int)(4 / attribute[2]) : 0;
    return f->in == current() ? OK : INVALID;
}

API(cuLaunchKernel, module *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    BEGIN();
    NEEDS_CONTEXT();
    if (!params == !extra || f->in != current() ||
        (extra && (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]))) {
        return INVALID;
    }
    pthread_mutex_lock(&running);
    pthread_mutex_lock(&lock);
    state.launch.code = f->code;
    snprintf(state.launch.kernel, sizeof state.launch.kernel, "%s", f->name);
    state.launch.device = f->in->device;
    unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    memcpy(state.launch.grid, grid, sizeof grid);
    memcpy(state.launch.block, block, sizeof block);
    state.launch.shared = shared;
    state.launch.stream = stream;
    if (extra) {
        state.launch.params_size = *(size_t *)extra[3];
        memcpy(state.launch.params, extra[1], state.launch.params_size);
    } else if (state.on_params) {
        state.launch.params_size = state.on_params(f->code, f->name, params, state.launch.params);
    } else {
        unsigned n = 0;
        while (params[n + 1]) {
            n++;
        }
        state.launch.params_size = (size_t)((char *)params[n] - (char *)params[0]) + 4;
        memcpy(state.launch.params, params[0], state.launch.params_size);
    }
    state.launch.count++;
    double ms = state.launch_ms > 0 ? state.launch_ms : 0.01;
    state.clock += state.launch.count % 4 == 0 ? 1.25 * ms : ms;
    pthread_mutex_unlock(&lock);
    if (state.on_launch) {
        state.on_launch(&state);
    }
    pthread_mutex_unlock(&running);
    return OK;
}

// As the driver: a map is 64 bytes aligned. It refuses what the real one does of what we may get
// wrong; the rest is the simulator's, which knows more.
API(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
    const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave, int swizzle,
    int l2, int fill) {
    BEGIN();
    NEEDS_CONTEXT();
    if ((uintptr_t)map % 64 || rank < 1 || rank > 5 || (uintptr_t)address % 16) {
        return INVALID;
    }
    fake_map m;
    memset(&m, 0, sizeof m);
    m.type = type;
    m.rank = rank;
    m.address = address;
    m.interleave = interleave;
    m.swizzle = swizzle;
    m.l2 = l2;
    m.fill = fill;
    memcpy(m.dim, dim, rank * sizeof *dim);
    memcpy(m.stride, stride, (rank - 1) * sizeof *stride);
    memcpy(m.box, box, rank * sizeof *box);
    memcpy(m.step, step, rank * sizeof *step);
    for (uint32_t d = 0; d < rank; d++) {
        if (!dim[d] || !box[d] || box[d] > 256 ||
            (d && (!stride[d - 1] || stride[d - 1] % 16 || stride[d - 1] >> 40))) {
            return INVALID;
        }
    }
    pthread_mutex_lock(&lock);
    state.map[state.maps++ % FAKE_MAPS] = m;
    pthread_mutex_unlock(&lock);
    memset(map, 0, 128);
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t k = 0; k < sizeof m; k++) {
        sum = (sum ^ ((unsigned char *)&m)[k]) * UINT64_C(0x100000001b3);
    }
    memcpy(map, &sum, sizeof sum);
    return state.on_map ? state.on_map(&m, map) : OK;
}

// ---- Events: a clock that only what is launched and copied moves. Every fourth launch is slower.

typedef struct event {
    double at;
    int recorded;
} event;

static void work(double ms) {
    pthread_mutex_lock(&lock);
    state.clock += ms;
    pthread_mutex_unlock(&lock);
}

API(cuEventCreate, event **e, unsigned flags) {
    BEGIN();
    NEEDS_CONTEXT();
    *e = calloc(1, sizeof **e);
    count(&state.events, 1);
    return flags == 0 ? OK : INVALID;
}

API(cuEventRecord, event *e, void *stream) {
    BEGIN();
    (void)stream;
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    pthread_mutex_lock(&lock);
    e->at = state.clock;
    e->recorded = 1;
    pthread_mutex_unlock(&lock);
    return OK;
}

API(cuEventSynchronize, event *e) {
    BEGIN();
    NEEDS_CONTEXT();
    int r = state.pending;
    state.pending = 0;
    return r ? r : e->recorded ? OK : INVALID;
}

API(cuEventElapsedTime, float *ms, const event *from, const event *to) {
    BEGIN();
    NEEDS_CONTEXT();
    if (!from->recorded || !to->recorded) {
        return INVALID;
    }
    *ms = (float)(to->at - from->at);
    return OK;
}

API(cuEventDestroy_v2, event *e) {
    int r = begin(__func__);
    NEEDS_CONTEXT();
    free(e);
    count(&state.events, -1);
    return r;
}

API(cuMemAlloc_v2, void **p, size_t bytes) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    *p = bytes > (size_t)1 << 40 ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*p) {
        return NO_MEMORY;
    }
    memory *m = calloc(1, sizeof *m);
    m->in = current();
    m->at = *p;
    m->bytes = bytes;
    pthread_mutex_lock(&lock);
    m->next = memories;
    memories = m;
    state.memories++;
    pthread_mutex_unlock(&lock);
    return OK;
}

bool fake_cuda_memory(size_t i, void **at, size_t *bytes) {
    pthread_mutex_lock(&lock);
    const memory *m = memories;
    while (m && i-- > 0) {
        m = m->next;
    }
    if (m) {
        *at = m->at;
        *bytes = m->bytes;
    }
    pthread_mutex_unlock(&lock);
    return m != NULL;
}

API(cuMemFree_v2, void *p) { // as the others that end something
    int r = begin(__func__);
    NEEDS_CONTEXT();
    pthread_mutex_lock(&lock);
    memory **at = &memories;
    while (*at && (*at)->at != p) {
        at = &(*at)->next;
    }
    bool known = *at != NULL;
    if (known) {
        drop_memory(at);
    }
    pthread_mutex_unlock(&lock);
    return known ? r : INVALID;
}

API(cuMemsetD8_v2, void *p, unsigned char x, size_t bytes) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    memset(p, x, bytes);
    return OK;
}

API(cuMemcpyHtoD_v2, void *to, const void *from, size_t bytes) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    memcpy(to, from, bytes);
    return OK;
}

API(cuMemcpyDtoH_v2, void *to, const void *from, size_t bytes) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    memcpy(to, from, bytes);
    return OK;
}

API(cuMemcpyDtoD_v2, void *to, const void *from, size_t bytes) {
    BEGIN();
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    memmove(to, from, bytes);
    return OK;
}

// By the clock of events 2 TB/s, read and written, and 2 us.
API(cuMemcpyDtoDAsync_v2, void *to, const void *from, size_t bytes, void *stream) {
    BEGIN();
    (void)stream;
    NEEDS_CONTEXT();
    NOT_CAPTURING();
    memmove(to, from, bytes);
    work(2e-3 + 2.0 * (double)bytes / 2e9);
    return OK;
}

API(cuDeviceGetPCIBusId, char *bus, int room, int d) {
    BEGIN();
    snprintf(bus, (size_t)room, "0000:%02x:00.0", d + 1);
    return OK;
}
