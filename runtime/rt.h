// SPDX-License-Identifier: Apache-2.0
// Inside libtkcrt, the run time of kernels compiled ahead of time. It shares with libtkc what needs
// no context: the driver's functions (cuda_abi.h), tensors (tensor.h), arithmetic (lang/num.h). It
// has no globals: what a kernel has loaded is in the state that its object file reserves.
#ifndef TKC_RUNTIME_RT_H
#define TKC_RUNTIME_RT_H

#include "runtime/bundle.h"
#include "runtime/cuda_abi.h"
#include "runtime/tensor.h"
#include "runtime/tkc_rt.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__GNUC__)
#define RT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define RT_PRINTF(f, a)
#endif

// One variant of a kernel in one context. `function` is set last.
typedef struct rt_code {
    cu_module module;
    const tk_bundle_image *image;
    unsigned resident;             // of a persistent kernel: blocks that run at once
    _Atomic(cu_function) function; // NULL: not loaded
} rt_code;

// What is loaded in one context.
typedef struct rt_loaded {
    struct rt_loaded *next;
    cu_context context;
    unsigned long long
        id;      // of the context, where the driver numbers them: an address may be reused
    unsigned cc; // compute capability: 90
    unsigned shared_default, shared_most;
    char label[64];
    rt_code code[]; // one a variant
} rt_loaded;

// A tkc_rt_state; all zeros at the start.
typedef struct rt_state {
    pthread_mutex_t lock; // held while something is loaded or unloaded
    _Atomic(cuda_driver *) driver;
    _Atomic(rt_loaded *) loaded; // grows at its head, so that it is read without the lock
} rt_state;

// Arguments of a launch, checked.
typedef struct rt_args {
    const tk_bundle *bundle;
    const tk_bundle_param *param;
    const tkc_tensor *tensor[TK_BUNDLE_PARAMS];
    tk_const scalar[TK_BUNDLE_PARAMS];
    int64_t count[8];  // of the grid's axes
    uint32_t programs; // their product
} rt_args;

// Fills `error` (may be NULL) and returns the status.
tkc_status rt_fail(tkc_error *error, tkc_status status, const char *id, const char *fmt, ...)
    RT_PRINTF(4, 5);
// The same for an error of the driver.
tkc_status rt_fail_driver(tkc_error *error, const cuda_driver *d, cu_result r, const char *fmt, ...)
    RT_PRINTF(4, 5);

// The kernel behind a pointer of a header; NULL after an error.
const tk_bundle *rt_bundle(const void *kernel, tkc_error *error);
// rt_check.c: arguments as tkc_launch checks them; then the grid.
tkc_status rt_check(const tk_bundle *b, const void *const *argument, rt_args *a, tkc_error *error);
// rt_grid.c
tkc_status rt_grid(rt_args *a, tkc_error *error);

// rt_load.c. The context that a call works in: the current one, or else the stream's, which is then
// current until rt_leave.
typedef struct rt_scope {
    const cuda_driver *driver;
    cu_context context;
    bool pushed;
} rt_scope;
tkc_status rt_enter(rt_state *s, void *stream, rt_scope *scope, tkc_error *error);
void rt_leave(rt_scope *scope);
// The code of a variant in the scope's context, loaded if need be. NULL after an error.
tkc_status rt_code_get(const tk_bundle *b, rt_state *s, const rt_scope *scope, uint32_t variant,
                       const rt_code **code, tkc_error *error);

#endif
