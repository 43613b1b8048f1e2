// SPDX-License-Identifier: Apache-2.0
// Bulk copies between global and shared memory, and the barriers in shared memory (mbarriers) that
// count their bytes: from sm_90 on, as inline PTX. Addresses in shared memory are i32.
//
// A bulk copy moves a multiple of 16 bytes between multiples of 16. It is asynchronous, and goes by
// another way than loads and stores do (the async proxy): what was read or written in shared memory
// before is in order with it by tk_emit_async_fence, in the thread that did or in the one that
// copies, and a barrier between these two.
#ifndef TK_PTX_LLVM_BULK_H
#define TK_PTX_LLVM_BULK_H

#include "ptx/llvm_emit.h"

// A new barrier of the program, for one phase: its address. One thread makes it ready for so many
// arrivals.
LLVMValueRef tk_emit_mbarrier_new(tk_emit *e);
void tk_emit_mbarrier_init(tk_emit *e, LLVMValueRef bar, unsigned arrivals);
// So many bytes more are to come in this phase; the thread has not arrived yet.
void tk_emit_mbarrier_expect(tk_emit *e, LLVMValueRef bar, LLVMValueRef bytes);
void tk_emit_mbarrier_arrive(tk_emit *e, LLVMValueRef bar);
// What follows is done by the threads for which `who` (i1) holds, without a branch around it.
void tk_emit_mbarrier_arrive_by(tk_emit *e, LLVMValueRef who, LLVMValueRef bar);
// Expects bytes and arrives.
void tk_emit_mbarrier_arrive_expect_by(tk_emit *e, LLVMValueRef who, LLVMValueRef bar,
                                       uint64_t bytes);
// At the barrier in the same place of another block of the cluster (its number there, i32).
void tk_emit_mbarrier_arrive_at(tk_emit *e, LLVMValueRef who, LLVMValueRef bar, LLVMValueRef block);
// Until all have arrived and all bytes are there.
void tk_emit_mbarrier_wait(tk_emit *e, LLVMValueRef bar);
// Until the phase of that parity (i32) is over. From sm_80 on, as what follows.
void tk_emit_mbarrier_wait_parity(tk_emit *e, LLVMValueRef bar, LLVMValueRef parity);

// A copy of 4, 8 or 16 bytes by one thread (cp.async), of which `inside` (i32; NULL: all) are read
// and the others become 0. The thread arrives at the barrier when those that it began are done.
void tk_emit_async_copy(tk_emit *e, LLVMValueRef shared, LLVMValueRef global, unsigned bytes,
                        LLVMValueRef inside);
void tk_emit_async_arrive(tk_emit *e, LLVMValueRef bar);

void tk_emit_bulk_read(tk_emit *e, LLVMValueRef shared, LLVMValueRef global, LLVMValueRef bytes,
                       LLVMValueRef bar);
// The first copy by a map waits until it is read: it is sent for early.
void tk_emit_map_prefetch(tk_emit *e, LLVMValueRef map);
// A box of the tensor that `map` (ptr) describes, from the coordinates at[rank] on, in elements and
// from the innermost dimension on; by the threads for which `who` holds. Where `blocks` is more
// than 1 it comes to the same place in the shared memory of that many blocks, which are the
// cluster.
void tk_emit_tensor_read_by(tk_emit *e, LLVMValueRef who, LLVMValueRef shared, LLVMValueRef map,
                            uint32_t rank, const LLVMValueRef *at, LLVMValueRef bar,
                            uint32_t blocks);
// Of a box in shared memory, to where it lies in the tensor: what is outside is not written.
void tk_emit_tensor_write_by(tk_emit *e, LLVMValueRef who, LLVMValueRef shared, LLVMValueRef map,
                             uint32_t rank, const LLVMValueRef *at);
// i1: one thread of those of the warp, which all come here; the same each time.
LLVMValueRef tk_emit_elected(tk_emit *e);
void tk_emit_bulk_write(tk_emit *e, LLVMValueRef global, LLVMValueRef shared, LLVMValueRef bytes);
// Until the thread's bulk writes have read shared memory.
void tk_emit_bulk_wait(tk_emit *e);
// What the thread has begun to write since, it may wait for: until all but the last `most` of these
// groups have read shared memory; until all are written.
void tk_emit_bulk_commit(tk_emit *e);
void tk_emit_bulk_wait_read(tk_emit *e, unsigned most);
void tk_emit_bulk_wait_all(tk_emit *e);
void tk_emit_async_fence(tk_emit *e);

// Inline PTX; it stays in order with memory and other inline PTX.
LLVMValueRef tk_emit_asm(tk_emit *e, LLVMTypeRef result, const char *text, const char *constraints,
                         unsigned n, LLVMValueRef *arg);
// Inline PTX that computes a value of its operands and no more.
LLVMValueRef tk_emit_pure_asm(tk_emit *e, LLVMTypeRef result, const char *text,
                              const char *constraints, unsigned n, LLVMValueRef *arg);

#endif
