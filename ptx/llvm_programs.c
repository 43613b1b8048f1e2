// SPDX-License-Identifier: Apache-2.0
// Which program a block runs: the next in order, or several, one after the other.
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

static LLVMValueRef quotient(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildUDiv(e->b, a, b, "");
}

static LLVMValueRef remainder_of(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildURem(e->b, a, b, "");
}

static LLVMValueRef least(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return tk_ll_sel(e, tk_ll_icmp(e, LLVMIntULT, a, b), a, b);
}

// Number `at` of those along axes 0 and 1, in groups (tk_module.group). The last group may have
// fewer along axis 0.
static void in_groups(tk_emit *e, LLVMValueRef at) {
    LLVMValueRef n = e->grid[0];
    LLVMValueRef group = least(e, tk_emit_i32(e, (int32_t)e->m->group), n);
    LLVMValueRef all = tk_ll_mul(e, group, e->grid[1]); // of a group
    LLVMValueRef first = tk_ll_mul(e, quotient(e, at, all), group);
    LLVMValueRef wide = least(e, group, tk_ll_sub(e, n, first)), in = remainder_of(e, at, all);
    e->program[0] = tk_ll_add(e, first, remainder_of(e, in, wide));
    e->program[1] = quotient(e, in, wide);
}

// Axis 0 is fastest in the number of a program, but for the order of groups.
void tk_emit_program(tk_emit *e, LLVMValueRef at) {
    LLVMValueRef rest = e->number = at;
    uint32_t a = 0;
    if (e->m->group > 0 && e->ngrid >= 2) {
        LLVMValueRef plane = tk_ll_mul(e, e->grid[0], e->grid[1]);
        LLVMValueRef in = e->ngrid > 2 ? remainder_of(e, at, plane) : at;
        rest = e->ngrid > 2 ? quotient(e, at, plane) : at;
        in_groups(e, in);
        e->number = tk_ll_add(e, e->program[0], tk_ll_mul(e, e->program[1], e->grid[0]));
        e->number = tk_ll_add(e, e->number, tk_ll_sub(e, at, in));
        a = 2;
    }
    for (; a < e->ngrid; a++) {
        const bool last = a + 1 == e->ngrid;
        e->program[a] = last ? rest : remainder_of(e, rest, e->grid[a]);
        rest = last ? rest : quotient(e, rest, e->grid[a]);
    }
}

// The block's own number, then further ones as many blocks as there are apart.
void tk_emit_programs_op(tk_emit *e, tk_op *op) {
    LLVMTypeRef i32 = tk_ll_int(e, 32);
    LLVMValueRef all = tk_emit_i32(e, 1);
    for (uint32_t a = 0; a < e->ngrid; a++) {
        all = tk_ll_mul(e, all, e->grid[a]);
    }
    LLVMValueRef first = tk_emit_intrinsic(e, "llvm.nvvm.read.ptx.sreg.ctaid.x", i32, 0, NULL);
    LLVMValueRef blocks = tk_emit_intrinsic(e, "llvm.nvvm.read.ptx.sreg.nctaid.x", i32, 0, NULL);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "program");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "do");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "endprogram");
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef at = LLVMBuildPhi(e->b, i32, "program");
    LLVMAddIncoming(at, &first, &before, 1);
    LLVMBuildCondBr(e->b, tk_ll_icmp(e, LLVMIntULT, at, all), body, end);
    LLVMPositionBuilderAtEnd(e->b, body);
    tk_emit_program(e, at);
    tk_emit_region(e, op->reg[0]);
    LLVMValueRef next = tk_ll_add(e, at, blocks);
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, head);
    LLVMAddIncoming(at, &next, &last, 1);
    LLVMPositionBuilderAtEnd(e->b, end);
}
