// SPDX-License-Identifier: Apache-2.0
// The emitter's header with what needs a definition in it.
#ifndef TK_PTX_LLVM_INTERNAL_H
#define TK_PTX_LLVM_INTERNAL_H

#include "lower/view_plan.h"
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
// Registers x of a side go to scratch memory from byte `base` on, by each thread that comes here.
struct tk_side;
void tk_emit_put_side(tk_emit *e, const tk_op *op, uint64_t base, const struct tk_side *side,
                      tk_dtype t, LLVMValueRef *x);
// Within warps (llvm_lanes.c): result i from all sources as one.
void tk_emit_lanes(tk_emit *e, const struct tk_moving *m, unsigned i, LLVMValueRef *x,
                   LLVMValueRef *out);

// ---- Products by matrix units (llvm_matrix.c)
void tk_emit_matrix_op(tk_emit *e, tk_op *op);

// ---- Views (llvm_view.c)
// Computes for the elements of a view where they are and whether they are inside.
typedef struct tk_emit_view {
    const tk_op *op;
    const tk_layout *l; // of the view's tile; NULL: a scalar view
    tk_view_plan plan;
    uint32_t param;
    tk_dtype dtype;
    uint32_t rank;
    int axis[TK_MAX_TENSOR_RANK];           // RANGE: the axis of the result, else -1
    LLVMValueRef start[TK_MAX_TENSOR_RANK]; // SCALAR, RANGE: i32, see llvm_view.c
    LLVMValueRef room[TK_MAX_TENSOR_RANK];  // RANGE that is tested above only: size - start, i32
    tk_vid at[TK_MAX_TENSOR_RANK];          // TILE: the index value
    uint32_t
        *reg_of[TK_MAX_TENSOR_RANK]; // TILE: register of the index for each register of the view
} tk_emit_view;
tk_emit_view tk_emit_view_make(tk_emit *e, const tk_op *op, const tk_type *result,
                               const tk_layout *l);
// i1: the n elements from register r on (one, or a vector of the access) are all inside and `mask`
// holds; NULL: always. A mask of NULL holds.
LLVMValueRef tk_emit_view_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t n,
                                 LLVMValueRef mask);
// i1: the row of the element at register r is inside in all dimensions but the last, of a view
// without tiles of indices; NULL: always.
LLVMValueRef tk_emit_view_row_inside(tk_emit *e, const tk_emit_view *v, uint32_t r);
// i1: those of registers from .. from + n - 1 are all inside, by tests that do not grow with n;
// NULL: there are none such.
LLVMValueRef tk_emit_view_all_inside(tk_emit *e, const tk_emit_view *v, uint32_t from, uint32_t n);
// i1: the first of them may be inside. False only where all are outside; NULL: not known.
LLVMValueRef tk_emit_view_begun(tk_emit *e, const tk_emit_view *v, uint32_t r);
// i1: the vector at register r is aligned; NULL: always.
LLVMValueRef tk_emit_view_aligned(tk_emit *e, const tk_emit_view *v, uint32_t r);
// Where register r's element is: in global memory, `bytes` behind a pointer. The pointer is shared
// by many registers, and the distance becomes a part of the instruction.
typedef struct tk_emit_place {
    LLVMValueRef at;
    int64_t bytes;
} tk_emit_place;
tk_emit_place tk_emit_view_place(tk_emit *e, const tk_emit_view *v, uint32_t r);
LLVMValueRef tk_emit_place_ptr(tk_emit *e, tk_emit_place p);
LLVMValueRef tk_emit_and(tk_emit *e, LLVMValueRef a, LLVMValueRef b); // of conditions; NULL: true
// Reads and writes of 1, 2, 4, 8 or 16 aligned bytes where `cond` holds (NULL: always), as one
// instruction with a predicate instead of a branch around it (llvm_guarded.c). A read gives `other`
// where it does not. The order of these among accesses of memory and barriers stays.
LLVMValueRef tk_emit_guarded_read(tk_emit *e, LLVMValueRef cond, tk_emit_place p, LLVMTypeRef type,
                                  unsigned bytes, LLVMValueRef other);
// `p.at` may be an address in shared memory as an i32; then there is a condition.
void tk_emit_guarded_write(tk_emit *e, LLVMValueRef cond, tk_emit_place p, LLVMValueRef x,
                           unsigned bytes);
// Row by row through shared memory (llvm_stage.c).
void tk_emit_staged_load(tk_emit *e, const tk_op *op);
void tk_emit_staged_store(tk_emit *e, const tk_op *op);
// By tensor copies (llvm_out.c); the end of the kernel, where some were begun.
void tk_emit_store_tensor(tk_emit *e, const tk_op *op);
void tk_emit_stores_end(tk_emit *e);
// Tiles that shared memory holds for another loop (llvm_hold.c): a load whose results are there
// leaves them; one takes them, or reads by `read` what nothing holds.
typedef void tk_emit_reader(tk_emit *e, const tk_op *op, LLVMValueRef *out);
void tk_emit_hold(tk_emit *e, const tk_op *op);
void tk_emit_held(tk_emit *e, const tk_op *op, tk_emit_reader *read);
// i1 of the one thread that acts for a scalar, or the owner of the view's elements; NULL: every
// thread.
LLVMValueRef tk_emit_view_owner(tk_emit *e, const tk_emit_view *v);

#endif
