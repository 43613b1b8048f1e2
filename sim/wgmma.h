// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async in flight. Each warp of a warpgroup does its 16 of the 64 rows by itself.
//
// Shared memory that a wgmma reads is marked from its issue to the wait for its group: writing it
// in between is a fault. So the moment at which it is read makes no difference to a correct
// program: at the issue, with all that were issued before, at random, or at the wait.
//
// Registers. Those of an accumulator and of A belong to the wgmma from its issue to the wait:
// naming one in another instruction is a fault, but for wgmmas of the same shape that add to the
// same accumulator. What other instructions name in between counts as touched until wgmma.fence;
// a wgmma must not use it before. So that this costs nothing elsewhere, only instructions that name
// such a register are looked at: the reader sets `tracked` on them.
//
// The warps of a warpgroup execute the same sequence of wgmma instructions, with the same operands.
#ifndef TK_SIM_WGMMA_H
#define TK_SIM_WGMMA_H

#include "sim/descriptor.h"
#include "sim/machine.h"

enum { TK_SIM_GROUP_WARPS = 4 }; // of a warpgroup

typedef struct tk_sim_flight {
    const tk_sim_inst *inst;
    tk_sim_tile a, b; // a: where A is not in registers
    uint32_t lane;    // the thread whose order of accesses counts
    uint32_t group;   // of its warp
    bool adds;        // to what the accumulator holds
    bool minus_a, minus_b;
} tk_sim_flight;

// Of a module with such instructions; for a block.
void tk_sim_wgmma_make(tk_sim_block *b);
void tk_sim_wgmma_begin(tk_sim_block *b);

// Whether the warpgroup's other warps executed the same with the same operands, as far as they
// have come; false after a fault.
bool tk_sim_wgmma_together(tk_sim_warp *w, const tk_sim_inst *i, uint64_t x, uint64_t y,
                           uint64_t z);
bool tk_sim_wgmma_issue(tk_sim_warp *w, tk_sim_flight f); // false after a fault
void tk_sim_wgmma_commit(tk_sim_warp *w);
void tk_sim_wgmma_wait(tk_sim_warp *w, uint32_t most);
void tk_sim_wgmma_fence(tk_sim_warp *w);
// A tracked instruction; false after a fault.
bool tk_sim_wgmma_touch(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask);
bool tk_sim_wgmma_end(tk_sim_warp *w, const tk_sim_inst *i); // of the warp; false after a fault

// ---- exec_registers.c
// That a thread of the launch has; 0: the entry has no bound from which that follows.
uint32_t tk_sim_registers_at_launch(const tk_sim_warp *w);

// ---- exec_wgmma.c
static inline bool tk_sim_wgmma_in_registers(const tk_sim_inst *i) { // A
    return tk_sim_count_of(i, 1) == 4;
}
// Reads the operands, writes the accumulator.
void tk_sim_wgmma_compute(tk_sim_warp *w, const tk_sim_flight *f);

#endif
