// SPDX-License-Identifier: Apache-2.0
// libtkcrt: the run time of kernels that were compiled ahead of time.
//
// The headers that `tkc FILE -o k.o --header k.h` writes call it. A program needs nothing else of
// tkc: no compiler, no sources, no libtkc. The NVIDIA driver (libcuda.so.1) is loaded when it is
// first needed.
//
// For each kernel NAME of k.o its header has
//     tkc_status NAME(its parameters, void *stream, tkc_error *error);
//     tkc_status NAME_load(tkc_error *error);
//     void NAME_unload(void);
// Parameters stand in the order of the kernel's: a tensor as `const tkc_tensor *`, a scalar by its
// C type (f16, bf16 and f8 as float, rounded to their type). What is not given in this build has no
// parameter.
//
// NAME checks all of its arguments (type, rank, sizes, memory, overlap) as tkc_launch does, and
// puts one launch on the stream (a CUstream or cudaStream_t; NULL: the default stream). Data are
// addresses of the device. It does not wait: what goes wrong while the kernel runs shows at a later
// call. It runs in the context that is current for the thread, or else in the stream's. The first
// launch in a context that needs a piece of code loads that; all others take no lock, allocate
// nothing and load nothing, so that they may be captured in a CUDA graph. NAME_load loads all that
// launches in the current context may need. Any number of threads may call these at once.
// NAME_unload releases what is loaded, of every context that is still there; nothing may be
// launched meanwhile or still run.
//
// Errors. Everything returns a tkc_status, as tkc.h has them:
//     TKC_OK              done
//     TKC_ERROR_LAUNCH    refused: something is wrong with the arguments
//     TKC_ERROR_DEVICE    no driver, no context, no code for this GPU, or an error of the driver
//     TKC_ERROR_MEMORY    out of memory on the host
//     TKC_ERROR_ARGUMENT  a call with NULL or with what is no kernel of this run time
// and, where `error` is not NULL, fills it on failure (on success it is left alone).
#ifndef TKC_RT_H
#define TKC_RT_H

#include "tkc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tkc_error {
    tkc_status status;
    int driver;  /* the driver's own number (CUresult) where one of its calls failed, else 0 */
    char id[28]; /* what it is, for programs: "dimension-mismatch"; docs/embedding.md lists them */
    char text[476]; /* the same in words, perhaps cut */
} tkc_error;

/* What of a kernel is loaded where. Made by the compiler, one a kernel; for headers only. */
typedef struct tkc_rt_state {
    void *opaque[16];
} tkc_rt_state;

/* For headers. `argument`: one a parameter: a tensor's tkc_tensor, the address of a scalar. */
TKC_API tkc_status tkc_rt_launch(const void *kernel, tkc_rt_state *state,
                                 const void *const *argument, void *stream, tkc_error *error);
TKC_API tkc_status tkc_rt_load(const void *kernel, tkc_rt_state *state, tkc_error *error);
TKC_API void tkc_rt_unload(const void *kernel, tkc_rt_state *state);

/* ---- For programs without the CUDA run time; each loads the driver, so keep them out of loops */

/* Makes the primary context of GPU `i` the thread's current one; it stays until the process ends.
   A program that uses the CUDA run time has cudaSetDevice for this. */
TKC_API tkc_status tkc_rt_use_device(unsigned i, tkc_error *error);
/* Memory in the current context. */
TKC_API tkc_status tkc_rt_alloc(size_t bytes, void **p, tkc_error *error); /* bytes 0: NULL */
TKC_API tkc_status tkc_rt_free(void *p, tkc_error *error);                 /* NULL is fine */
/* Waits for all that the context does, then copies, then returns. */
TKC_API tkc_status tkc_rt_copy(void *to, const void *from, size_t bytes, tkc_direction direction,
                               tkc_error *error);
/* Waits for all that the context does; reports what failed since. */
TKC_API tkc_status tkc_rt_synchronize(tkc_error *error);

#ifdef __cplusplus
}
#endif
#endif
