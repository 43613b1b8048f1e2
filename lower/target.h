// SPDX-License-Identifier: Apache-2.0
// The GPUs that tkc compiles for: what each has. The only place that knows; LLVM is asked for
// nothing that is not here, as an unknown name would end the process or pass silently.
#ifndef TK_LOWER_TARGET_H
#define TK_LOWER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tk_target {
    const char *name;                         // "sm_90a"
    unsigned cc;                              // 90
    const char *ptx;                          // least PTX feature that has the target: "+ptx80"
    unsigned shared_max;                      // bytes of shared memory a block may have
    unsigned threads_max;                     // a block
    unsigned threads_at_once, blocks_at_once; // a multiprocessor
    bool bf16_arith;                          // native add/mul on bf16
    bool wgmma;                               // four warps multiply together
    bool bulk;                                // bulk copies, which count their bytes
    bool clusters;                            // of blocks that reach each other's shared memory
    unsigned matrix; // products of f16 with their sums in f32 that its tensor cores make in a cycle
    const char *unit; // of the GPU, that multiplies faster than mma.sync does; NULL: none
} tk_target;

const tk_target *tk_target_find(const char *name); // NULL
const char *tk_target_name(unsigned i);            // NULL past the end
// The best target for a device of compute capability major.minor; NULL below 8.0.
const tk_target *tk_target_for(unsigned major, unsigned minor);

// GPUs by name, with the ceilings of their data sheets: for a target's roofline.
typedef struct tk_gpu {
    const char *name; // "H200"
    unsigned cc;
    unsigned multiprocessors;
    double bandwidth;      // bytes a second
    double flops, flops64; // a second, f32 and f64, without tensor cores
    double matrix;         // a second, of f16 with sums in f32, on tensor cores
} tk_gpu;
const tk_gpu *tk_gpu_find(const char *name); // NULL; in either case of letters
const tk_gpu *tk_gpu_of(const tk_target *t); // of its compute capability
const char *tk_gpu_name(unsigned i);         // NULL past the end

// Blocks that a multiprocessor holds at once, by each of its limits.
typedef struct tk_occupancy {
    uint32_t by_registers; // UINT32_MAX where the registers are not known (0)
    uint32_t by_shared, by_threads, by_count;
    uint32_t blocks;
    const char *limit; // "registers", "shared memory", "threads", "blocks"
} tk_occupancy;
// A block of so many threads with so many registers each, and bytes of shared memory.
tk_occupancy tk_occupancy_of(const tk_target *t, uint32_t threads, uint32_t registers,
                             uint32_t shared);
// The most registers of each thread with which so many blocks fit: given in eights.
uint32_t tk_registers_for(uint32_t blocks, uint32_t threads);

#endif
