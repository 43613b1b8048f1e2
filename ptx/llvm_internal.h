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
} tk_tensor_args;

// The parameter number of a tensor value.
static inline uint32_t tk_emit_param_of(const tk_emit *e, tk_vid v) {
    return e->f->value.at[v].index;
}

// ---- Moves (ir/move.h)
struct tk_moving;
// Through shared memory (llvm_exchange.c): x are the registers of each source, or of all as one;
// out those of each result.
void tk_emit_exchange(tk_emit *e, const tk_op *op, const struct tk_moving *m,
                      LLVMValueRef *const *x, LLVMValueRef *const *out);
// Within warps (llvm_lanes.c): result i from all sources as one.
void tk_emit_lanes(tk_emit *e, const struct tk_moving *m, unsigned i, LLVMValueRef *x,
                   LLVMValueRef *out);

// ---- Views (llvm_memory.c)
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
