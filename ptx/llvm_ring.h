// SPDX-License-Identifier: Apache-2.0
// Rings in the code of a kernel (lower/ring.h). A slot has two barriers in shared memory: `full`,
// at which those who bring its tile arrive, and `empty`, at which each warp does when it is done
// with it. Both go from phase to phase as the slot is used again and again. Where the next fetch,
// take and release are, and in which phase, each thread counts for itself.
#ifndef TK_PTX_LLVM_RING_H
#define TK_PTX_LLVM_RING_H

#include "ptx/llvm_emit.h"

// One of the three that go round: places in each thread's memory, which become registers.
typedef struct tk_ring_place {
    LLVMValueRef slot, phase; // i32
} tk_ring_place;

typedef struct tk_emit_ring {
    struct tk_emit_ring *next;
    tk_vid v;
    const tk_op *op;
    uint32_t number;          // from 0 on
    uint32_t slots, bytes;    // from slot to slot
    uint32_t cluster;         // blocks that fill it together; 1: this one alone
    LLVMValueRef rank;        // i32: of the block among them
    LLVMValueRef base;        // i32: where the first slot is in shared memory
    LLVMValueRef full, empty; // i32: the first barriers; those of the other slots follow
    tk_ring_place fetch, take, release;
    LLVMValueRef *begun; // places of what a `begin` has loaded; NULL: none has
} tk_emit_ring;

void tk_emit_ring_op(tk_emit *e, tk_op *op); // ring, fetch, take, release
// Of a fetch by tensor copies: waits for the slot and brings the tile there (llvm_ring_tensor.c).
void tk_emit_fetch_tensor(tk_emit *e, const tk_op *op, const tk_emit_ring *r);
// Of a fetch through registers: its first loads; what is left of it (llvm_ring_registers.c).
void tk_emit_fetch_begin(tk_emit *e, const tk_op *op, tk_emit_ring *r);
void tk_emit_fetch_registers(tk_emit *e, const tk_op *op, tk_emit_ring *r);
// All blocks of the cluster wait for each other where they share rings: none sends anything to one
// that has not begun, nor to one that has ended.
void tk_emit_cluster_barrier(tk_emit *e);
bool tk_emit_rings_shared(const tk_func *f);
tk_emit_ring *tk_emit_ring_of(const tk_emit *e, tk_vid v);

// The slot that comes next, as an address, and its barrier; then one on.
LLVMValueRef tk_emit_ring_slot(tk_emit *e, const tk_emit_ring *r, const tk_ring_place *at);
LLVMValueRef tk_emit_ring_barrier(tk_emit *e, LLVMValueRef first, const tk_ring_place *at);
void tk_emit_ring_advance(tk_emit *e, const tk_emit_ring *r, const tk_ring_place *at);
// Until the phase of this parity is over: `flip` 1 for the one before the next.
void tk_emit_ring_wait(tk_emit *e, LLVMValueRef barrier, const tk_ring_place *at, unsigned flip);

// A tile in shared memory: its value is the address (i32) where it begins.
void tk_emit_read_shared(tk_emit *e, const tk_op *op); // convert of what is there

#endif
