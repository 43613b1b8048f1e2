// SPDX-License-Identifier: Apache-2.0
// Ops that make or rename registers without moving anything between threads.
#include "lower/views.h"
#include "ptx/llvm_internal.h"

static void fill(tk_emit *e, tk_vid v, LLVMValueRef x) {
    LLVMValueRef *out = tk_emit_new(e, v);
    for (uint32_t r = 0; r < tk_emit_regs(e, v); r++) {
        out[r] = x;
    }
}

static void iota(tk_emit *e, const tk_op *op) {
    const tk_layout *l = tk_emit_layout(e, op->res[0]);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < tk_emit_regs(e, op->res[0]); r++) {
        out[r] = tk_emit_element(e, l, r);
    }
}

// The operand's layout is the projection of the result's, so each thread has what it needs.
static void broadcast(tk_emit *e, const tk_op *op) {
    const tk_layout *to = tk_emit_layout(e, op->res[0]), *from = tk_emit_layout(e, op->opnd[0]);
    LLVMValueRef *in = tk_emit_get(e, op->opnd[0]);
    if (!from) {
        fill(e, op->res[0], in[0]);
        return;
    }
    const tk_type *t = tk_value_type(e->f, op->opnd[0]);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < tk_emit_regs(e, op->res[0]); r++) {
        uint32_t at = tk_layout_project_element(to, t->rank, t->dim, tk_layout_eval(to, r, 0, 0));
        uint32_t q = tk_layout_register(from, at);
        TK_CHECK(e->arena, q != UINT32_MAX);
        out[r] = in[q];
    }
}

// The same registers in the order of the result's layout, whose bases are those of the operand's in
// new places.
static void rename(tk_emit *e, const tk_op *op) {
    uint32_t n = tk_emit_regs(e, op->res[0]);
    TK_CHECK(e->arena, n == tk_emit_regs(e, op->opnd[0]) || n == 1);
    LLVMValueRef *in = tk_emit_get(e, op->opnd[0]), *out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < n; r++) {
        out[r] = in[r];
    }
}

void tk_emit_simple_op(tk_emit *e, tk_op *op) {
    switch ((int)op->code) { // those that llvm_kernel.c sends here
    case TK_OP_CONST:
        fill(e, op->res[0], tk_emit_const(e, op->at.value));
        break;
    case TK_OP_IOTA:
        iota(e, op);
        break;
    case TK_OP_BROADCAST:
        broadcast(e, op);
        break;
    case TK_OP_RESHAPE:
    case TK_OP_PERMUTE:
        rename(e, op);
        break;
    case TK_OP_DIM:
        fill(e, op->res[0], e->tensor[tk_emit_param_of(e, op->opnd[0])].dim[op->at.axis]);
        break;
    case TK_OP_PROGRAM_ID:
        fill(e, op->res[0], e->program[op->at.axis]);
        break;
    case TK_OP_NUM_PROGRAMS:
        fill(e, op->res[0], e->grid[op->at.axis]);
        break;
    }
}
