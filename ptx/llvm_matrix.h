// SPDX-License-Identifier: Apache-2.0
// A dot by a matrix unit: what the files for the units share.
#ifndef TK_PTX_LLVM_MATRIX_H
#define TK_PTX_LLVM_MATRIX_H

#include "ir/matrix.h"
#include "ptx/llvm_build.h"

// An operand while the dot is emitted.
typedef struct tk_emit_operand {
    const tk_operand *x;
    LLVMValueRef base; // SHARED, STAGED: i32, where it begins in shared memory, in bytes
    LLVMValueRef *reg; // REGISTERS
} tk_emit_operand;

typedef struct tk_emit_matrix {
    tk_emit *e;
    const tk_op *op;
    tk_matrix_plan p;
    const tk_layout *l; // of the result
    uint32_t regs;
    LLVMValueRef *acc; // its registers: what is added to, then the sums
    bool zero;         // they are not read before they are written
    tk_emit_operand a, b;
} tk_emit_matrix;

// Adds the products of what lies there: of a block of K.
void tk_emit_mma(tk_emit_matrix *s);
void tk_emit_wgmma(tk_emit_matrix *s);

// Numbers of elements of A and B under element e of the result.
uint32_t tk_emit_in_a(const tk_emit_matrix *s, uint32_t e);
uint32_t tk_emit_in_b(const tk_emit_matrix *s, uint32_t e);
// `n` elements of A that are in registers, side by side in one: from number `first` on, step `by`.
LLVMValueRef tk_emit_packed(const tk_emit_matrix *s, uint32_t first, unsigned n);
// The exclusive or of the bases of the bits of `index` that are set; NULL: there are none.
LLVMValueRef tk_emit_bases(tk_emit *e, LLVMValueRef index, const uint32_t *base, unsigned n,
                           LLVMValueRef sum);

#endif
