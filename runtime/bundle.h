// SPDX-License-Identifier: Apache-2.0
// A kernel compiled ahead of time, as bytes: what the compiler (runtime/ahead*.c) writes into an
// object file and the run time of such kernels (runtime/rt*.c) reads there.
//
// A bundle is one block of bytes, aligned to TK_BUNDLE_ALIGN, that starts with tk_bundle.
// Everything in it is found by its offset from the start, so that nothing has to be relocated;
// tables are aligned to 8 bytes, machine code to TK_BUNDLE_ALIGN, texts end in 0. Integers are in
// the byte order of the machine. Its parameters are those of the IR kernel: what is not given is
// not there.
//
// A variant promises something of each tensor (lower/facts.h); of those that hold for a launch the
// first is taken. There is an image for each variant and target.
#ifndef TKC_RUNTIME_BUNDLE_H
#define TKC_RUNTIME_BUNDLE_H

#include "lang/num.h"

#include <stdint.h>

#define TK_BUNDLE_MAGIC "tkc*k\r\n" /* 8 bytes with its 0 */

enum {
    TK_BUNDLE_ALIGN = 64,
    // Lists of the language that numbers in a bundle refer to are part of the version.
    TK_BUNDLE_VERSION = 4 << 16 | (int)TK_NUM_COUNT << 8 | (int)TK_DTYPE_COUNT,
    // What the run time has room for.
    TK_BUNDLE_PARAMS = 128,
    TK_BUNDLE_DIMS = 256,
    TK_BUNDLE_STEPS = 512,
    TK_BUNDLE_BLOCK = 4096, // bytes of parameters; the driver takes no more
};

typedef struct tk_bundle {
    char magic[8];
    uint32_t version;
    uint32_t size;           // of all of it
    uint32_t name;           // of the function in C
    uint32_t ndim, dim;      // tk_bundle_dim: sizes with a name
    uint32_t nparam, param;  // tk_bundle_param
    uint32_t nstep, step;    // tk_bundle_step: computes the grid
    uint32_t ngrid, grid;    // uint32_t: the steps that give the counts of the axes
    uint32_t naxis, axis;    // uint32_t: their names
    uint32_t nvariant, fact; // uint32_t [nvariant][nparam]: tk_tensor_facts
    uint32_t nimage, image;  // tk_bundle_image, by variant, then the best first
    uint32_t cluster;        // programs along grid axis 0 come in as many; 1: in any number
} tk_bundle;

typedef struct tk_bundle_dim {
    uint32_t name;
    uint32_t unused;
    int64_t value; // that it must have; below 0: any
} tk_bundle_dim;

typedef struct tk_bundle_param {
    uint32_t name;
    uint32_t is_tensor;
    uint32_t dtype; // tkc_dtype
    uint32_t rank;
    uint32_t written; // it is an out or inout tensor
    uint32_t unused;
    int64_t dim[8]; // its size; below 0: -1 less the number of the tk_bundle_dim
} tk_bundle_param;

typedef enum tk_step_code {
    TK_STEP_CONST,  // bits
    TK_STEP_SIZE,   // of parameter at[0] along axis at[1]
    TK_STEP_SCALAR, // parameter at[0]
    TK_STEP_CAST,   // of step at[0]
    TK_STEP_NUM,    // operation `bits` (tk_numop) on operands of type `of` from steps at[]
} tk_step_code;
typedef struct tk_bundle_step {
    uint32_t code;
    uint32_t dtype; // of its value
    uint32_t of;
    uint32_t at[3];
    uint64_t bits;
} tk_bundle_step;

typedef struct tk_bundle_slot { // as tk_param_slot
    uint32_t kind, param, axis, offset, size;
} tk_bundle_slot;

typedef struct tk_bundle_map { // as tk_map_spec
    uint32_t param, rank, dtype, box[5], span, tf32;
} tk_bundle_map;

typedef struct tk_bundle_image {
    uint32_t arch;   // its name
    uint32_t cc;     // 90
    uint32_t exact;  // only for this compute capability ("sm_90a")
    uint32_t kernel; // entry name
    uint32_t variant;
    uint32_t threads, shared, param_bytes;
    uint32_t packed;     // programs along grid axis 0 that a block runs
    uint32_t persistent; // a block runs several: as many blocks as run at once
    uint32_t cluster;    // blocks of a cluster; 0, 1: it is launched without
    uint32_t unused;
    uint32_t nslot, slot;       // tk_bundle_slot
    uint32_t nmap, map;         // tk_bundle_map
    uint32_t cubin, cubin_size; // 0: none
    uint32_t ptx, ptx_size;     // without the 0 at its end
} tk_bundle_image;

static inline const void *tk_bundle_at(const tk_bundle *b, uint32_t offset) {
    return (const char *)b + offset;
}

#endif
