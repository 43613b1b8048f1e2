// SPDX-License-Identifier: Apache-2.0
// Device "cuda": the NVIDIA driver (runtime/cuda_abi.h), devices, what is compiled and loaded.
//
// One cuda_driver belongs to a context. Nothing but opening a device initialises it. A process that
// was forked after that cannot use it: every entry point compares process ids first.
#ifndef TKC_RUNTIME_CUDA_DRIVER_H
#define TKC_RUNTIME_CUDA_DRIVER_H

#include "lower/target.h"
#include "runtime/cuda_abi.h"
#include "runtime/internal.h"

// A device that is open. What is loaded into it is a list, changed under the context's gpu_lock.
typedef struct cuda_device {
    const cuda_driver *driver;
    cu_device handle;
    cu_context context; // primary, retained
    const tk_target *target;
    unsigned major, minor;
    unsigned shared_default, shared_most; // bytes a block
    struct gpu_loaded *loaded;
    struct lt_state *blas;             // of matrix products; NULL before the first
    _Atomic(struct gpu_loaded *) last; // launched last: for messages about what is seen later
    char label[128];                   // "NVIDIA H200"
} cuda_device;

// The context's driver, made and initialised on first use. NULL and a text in why[room],
// which is empty where memory ran out.
const cuda_driver *cuda_driver_get(tkc_context *context, char *why, size_t room);
void cuda_driver_destroy(tkc_context *context);

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

// ---- Matrix products (cuda_matmul.c)
void cuda_matmul_close(tkc_device *device); // releases what was kept for them
void cuda_matmul_library_close(tkc_context *context);

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
    unsigned resident;          // blocks that the device holds at once; 0: it does not matter
    cu_address debug;           // what a debug image leaves behind (ptx/debug.h); 0: nothing
    pthread_mutex_t debug_lock; // held while a launch uses that
    tk_span span;               // the kernel's
    char name[64];              // the kernel's, perhaps cut, as the next
    char place[160];            // "k.tk:3", for messages of calls that have no kernel
} gpu_loaded;

const char *gpu_base_key(tk_work *w, const tk_target *t, const char *key);
// What holds of the arguments of a launch, per IR parameter, and is of use on a device that makes
// tensor maps or not.
tk_tensor_facts *gpu_facts(tk_work *w, const launch *l, bool maps);
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
// All parameters but the tensor maps. debug: the address of what a debug image leaves behind.
bool gpu_pack_variant(const launch *l, const gpu_variant *v, uint64_t debug, tk_arena *arena,
                      gpu_packed *out);
// What map slot k is for, and where; NULL: it is for something else.
const tk_map_spec *gpu_map_slot(const tk_image *i, uint32_t k, uint32_t *offset);
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
