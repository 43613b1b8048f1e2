// SPDX-License-Identifier: Apache-2.0
// The emitter's header with what needs a definition in it.
#ifndef TK_PTX_LLVM_INTERNAL_H
#define TK_PTX_LLVM_INTERNAL_H

#include "ptx/llvm_emit.h"

// A tensor parameter inside the kernel.
typedef struct tk_tensor_args {
    LLVMValueRef base;                       // ptr addrspace(1)
    LLVMValueRef dim[TK_MAX_TENSOR_RANK];    // i32
    LLVMValueRef stride[TK_MAX_TENSOR_RANK]; // i64, elements; the constant 1 where promised
    tk_tensor_facts facts;
    bool pending_read, pending_write; // accesses that other threads may not have seen yet
} tk_tensor_args;

// ---- Scratch (llvm_core.c)

// Around the emission of one op: its area, once it has one, may be read by other threads until the
// next barrier.
typedef struct tk_area_mark {
    const tk_op *op;
    uint32_t from, to;
} tk_area_mark;
tk_area_mark tk_emit_area_begin(tk_emit *e);
void tk_emit_area_end(tk_emit *e, tk_area_mark outer);
// Where control may come from elsewhere: any area may still be read.
void tk_emit_area_unknown(tk_emit *e);

// The parameter number of a tensor value.
static inline uint32_t tk_emit_param_of(const tk_emit *e, tk_vid v) {
    return e->f->value.at[v].index;
}

// ---- Conversions through shared memory (llvm_exchange.c)
// Moves a tile from layout a to layout b: x holds its registers, out receives the result's.
void tk_emit_exchange(tk_emit *e, const tk_op *op, const tk_layout *a, const tk_layout *b,
                      tk_dtype t, LLVMValueRef *x, LLVMValueRef *out);

// ---- Memory order inside a program (llvm_memory.c)
// Before an access to tensor parameter p: a barrier where an earlier access of another thread must
// be seen first.
void tk_emit_order(tk_emit *e, uint32_t p, bool writes);
// At the head of a loop or the end of a branch: what the region may have left pending.
void tk_emit_order_region(tk_emit *e, const tk_region *r);

// Computes for one element of a view its address and whether it is inside.
typedef struct tk_emit_view {
    const tk_op *op;
    const tk_layout *l; // of the view's tile; NULL: a scalar view
    uint32_t param;
    tk_dtype dtype;
    uint32_t rank;
    int axis[TK_MAX_TENSOR_RANK];           // RANGE: the axis of the result; TILE: see at
    LLVMValueRef start[TK_MAX_TENSOR_RANK]; // SCALAR, RANGE: i64
    tk_vid at[TK_MAX_TENSOR_RANK];          // TILE: the index value
    uint32_t
        *reg_of[TK_MAX_TENSOR_RANK]; // TILE: register of the index for each register of the view
} tk_emit_view;
tk_emit_view tk_emit_view_make(tk_emit *e, const tk_op *op, const tk_type *result,
                               const tk_layout *l);
LLVMValueRef tk_emit_view_inside(tk_emit *e, const tk_emit_view *v, uint32_t r,
                                 LLVMValueRef mask);                              // i1
LLVMValueRef tk_emit_view_address(tk_emit *e, const tk_emit_view *v, uint32_t r); // ptr
// i1 of the one thread that acts for a scalar, or the owner of the view's elements; NULL: every
// thread.
LLVMValueRef tk_emit_view_owner(tk_emit *e, const tk_emit_view *v);

#endif
