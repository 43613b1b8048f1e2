// SPDX-License-Identifier: Apache-2.0
// if, for and while. A carried tile is a phi for each of its registers.
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

#include <string.h>

static LLVMBasicBlockRef block(tk_emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->ctx, e->fn, name);
}

static void phis(tk_emit *e, tk_vid v) {
    if (tk_emit_is_kept(e, v)) { // in one place all the time
        return;
    }
    const tk_type *t = tk_value_type(e->f, v);
    LLVMValueRef *out = tk_emit_new(e, v);
    for (uint32_t r = 0; r < tk_emit_regs(e, v); r++) {
        out[r] = LLVMBuildPhi(e->b, tk_emit_type(e, t->dtype), "");
    }
}

static void incoming(tk_emit *e, tk_vid phi, tk_vid value, LLVMBasicBlockRef from) {
    if (tk_emit_is_kept(e, phi)) {
        return;
    }
    LLVMValueRef *to = tk_emit_get(e, phi), *x = tk_emit_get(e, value);
    for (uint32_t r = 0; r < tk_emit_regs(e, phi); r++) {
        LLVMAddIncoming(to[r], &x[r], &from, 1);
    }
}

static void rename_value(tk_emit *e, tk_vid to, tk_vid from) {
    if (tk_emit_is_kept(e, from)) {
        e->kept[to] = e->kept[from];
    } else {
        e->value[to] = tk_emit_get(e, from);
    }
}

// ---- if

static void branch(tk_emit *e, tk_op *op) {
    LLVMBasicBlockRef side[2] = {block(e, "if"), block(e, "else")}, join = block(e, "endif");
    LLVMBasicBlockRef from[2];
    for (uint32_t k = 0; k < op->nres; k++) {
        if (tk_emit_is_kept(e, op->res[k])) {
            tk_emit_kept_room(e, op->res[k]);
        }
    }
    LLVMBuildCondBr(e->b, tk_emit_get(e, op->opnd[0])[0], side[0], side[1]);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(e->b, side[i]);
        tk_emit_region(e, op->reg[i]);
        tk_emit_kept_yield(e, op->nres, op->reg[i]->last->opnd, op->res);
        from[i] = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, join);
    }
    LLVMPositionBuilderAtEnd(e->b, join);
    for (uint32_t k = 0; k < op->nres; k++) {
        phis(e, op->res[k]);
    }
    for (uint32_t k = 0; k < op->nres; k++) {
        incoming(e, op->res[k], op->reg[0]->last->opnd[k], from[0]);
        incoming(e, op->res[k], op->reg[1]->last->opnd[k], from[1]);
    }
}

// ---- for

// How often the loop runs, an unsigned number of the index's width: fixed on entry, free of
// overflow.
static LLVMValueRef trips(tk_emit *e, tk_dtype t, LLVMValueRef from, LLVMValueRef to,
                          LLVMValueRef step) {
    LLVMTypeRef type = LLVMTypeOf(from);
    LLVMValueRef zero = LLVMConstInt(type, 0, 0), one = LLVMConstInt(type, 1, 0);
    bool is_signed = tk_dtype_is_signed(t);
    LLVMValueRef rises = LLVMBuildICmp(e->b, is_signed ? LLVMIntSGT : LLVMIntUGT, step, zero, "");
    LLVMValueRef below = LLVMBuildICmp(e->b, is_signed ? LLVMIntSLT : LLVMIntULT, from, to, "");
    LLVMValueRef runs = LLVMBuildAnd(e->b, rises, below, "");
    LLVMValueRef distance = LLVMBuildSub(e->b, to, from, "");
    LLVMValueRef size = step;
    if (is_signed) {
        LLVMValueRef falls = LLVMBuildICmp(e->b, LLVMIntSLT, step, zero, "");
        LLVMValueRef above = LLVMBuildICmp(e->b, LLVMIntSGT, from, to, "");
        LLVMValueRef back = LLVMBuildAnd(e->b, falls, above, "");
        distance = LLVMBuildSelect(e->b, falls, LLVMBuildSub(e->b, from, to, ""), distance, "");
        size = LLVMBuildSelect(e->b, falls, LLVMBuildSub(e->b, zero, step, ""), step, "");
        runs = LLVMBuildOr(e->b, runs, back, "");
    }
    // Never divides by 0, whatever runs says.
    size = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, size, zero, ""), one, size, "");
    LLVMValueRef n = LLVMBuildUDiv(e->b, LLVMBuildSub(e->b, distance, one, ""), size, "");
    return LLVMBuildSelect(e->b, runs, LLVMBuildAdd(e->b, n, one, ""), zero, "");
}

// Whether the last stride of a tensor that the op stores to is 0, so that its elements share a
// place: NULL where it is known not to be.
static LLVMValueRef shares_places(tk_emit *e, const tk_op *op) {
    const tk_tensor_args *t = &e->tensor[tk_emit_param_of(e, op->opnd[0])];
    const uint32_t rank = tk_value_type(e->f, op->opnd[0])->rank;
    return t->facts & TK_FACT_UNIT ? NULL : tk_ll_is(e, t->stride[rank - 1], 0);
}

typedef struct order {
    tk_emit *e;
    LLVMValueRef stays; // where it holds the loop runs forwards; NULL: never
} order;

static void order_of(void *user, tk_op *op) {
    order *s = user;
    LLVMValueRef x = op->code == TK_OP_STORE ? shares_places(s->e, op) : NULL;
    s->stays = x && s->stays ? tk_ll_or(s->e, s->stays, x) : x ? x : s->stays;
}

// The first index and what follows on it, of n trips from the last to the first.
static void turn_round(tk_emit *e, tk_op *op, LLVMValueRef n, LLVMValueRef *from,
                       LLVMValueRef *step) {
    LLVMValueRef zero = LLVMConstInt(LLVMTypeOf(n), 0, 0);
    LLVMValueRef way =
        LLVMBuildMul(e->b, LLVMBuildSub(e->b, n, LLVMConstInt(LLVMTypeOf(n), 1, 0), ""), *step, "");
    LLVMValueRef last = LLVMBuildAdd(e->b, *from, way, ""),
                 back = LLVMBuildSub(e->b, zero, *step, "");
    order s = {e, NULL};
    tk_op_walk(op, order_of, &s);
    *from = s.stays ? tk_ll_sel(e, s.stays, *from, last) : last;
    *step = s.stays ? tk_ll_sel(e, s.stays, *step, back) : back;
}

static void loop(tk_emit *e, tk_op *op) {
    const tk_region *r = op->reg[0];
    tk_vid index = r->args.at[0];
    tk_dtype t = tk_value_type(e->f, index)->dtype;
    LLVMValueRef from = tk_emit_get(e, op->opnd[0])[0], to = tk_emit_get(e, op->opnd[1])[0];
    LLVMValueRef step = tk_emit_get(e, op->opnd[2])[0], n = trips(e, t, from, to, step);
    if (op->at.reverse) {
        turn_round(e, op, n, &from, &step);
    }
    LLVMTypeRef type = LLVMTypeOf(from);
    LLVMValueRef zero = LLVMConstInt(type, 0, 0), one = LLVMConstInt(type, 1, 0);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), head = block(e, "for"),
                      body = block(e, "do"), end = block(e, "endfor");
    for (uint32_t k = 0; k < op->nres; k++) {
        tk_emit_kept_enter(e, op, r->args.at[1 + k], op->opnd[3 + k]);
    }
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef count = LLVMBuildPhi(e->b, type, "trip");
    phis(e, index);
    for (uint32_t k = 0; k < op->nres; k++) {
        phis(e, r->args.at[1 + k]);
        incoming(e, r->args.at[1 + k], op->opnd[3 + k], before);
        rename_value(e, op->res[k], r->args.at[1 + k]);
    }
    LLVMAddIncoming(count, &zero, &before, 1);
    LLVMAddIncoming(tk_emit_get(e, index)[0], &from, &before, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntULT, count, n, ""), body, end);
    LLVMPositionBuilderAtEnd(e->b, body);
    tk_emit_region(e, r);
    tk_emit_kept_yield(e, op->nres, r->last->opnd, op->res);
    LLVMValueRef next = LLVMBuildAdd(e->b, tk_emit_get(e, index)[0], step, "");
    LLVMValueRef more = LLVMBuildAdd(e->b, count, one, "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, head);
    LLVMAddIncoming(count, &more, &last, 1);
    LLVMAddIncoming(tk_emit_get(e, index)[0], &next, &last, 1);
    for (uint32_t k = 0; k < op->nres; k++) {
        incoming(e, r->args.at[1 + k], r->last->opnd[k], last);
    }
    LLVMPositionBuilderAtEnd(e->b, end);
}

// ---- while

static void loop_while(tk_emit *e, tk_op *op) {
    const tk_region *cond = op->reg[0], *r = op->reg[1];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), head = block(e, "while"),
                      body = block(e, "do"), end = block(e, "endwhile");
    for (uint32_t k = 0; k < op->nres; k++) {
        tk_emit_kept_enter(e, op, cond->args.at[k], op->opnd[k]);
    }
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    for (uint32_t k = 0; k < op->nres; k++) {
        phis(e, cond->args.at[k]);
        incoming(e, cond->args.at[k], op->opnd[k], before);
        rename_value(e, r->args.at[k], cond->args.at[k]);
        rename_value(e, op->res[k], cond->args.at[k]);
    }
    tk_emit_debug_poll(e, op);
    tk_emit_region(e, cond);
    LLVMBuildCondBr(e->b, tk_emit_get(e, cond->last->opnd[0])[0], body, end);
    LLVMPositionBuilderAtEnd(e->b, body);
    tk_emit_region(e, r);
    tk_emit_kept_yield(e, op->nres, r->last->opnd, op->res);
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, head);
    for (uint32_t k = 0; k < op->nres; k++) {
        incoming(e, cond->args.at[k], r->last->opnd[k], last);
    }
    LLVMPositionBuilderAtEnd(e->b, end);
}

void tk_emit_control_op(tk_emit *e, tk_op *op) {
    switch ((int)op->code) { // those that llvm_kernel.c sends here
    case TK_OP_IF:
        branch(e, op);
        break;
    case TK_OP_FOR:
        loop(e, op);
        break;
    case TK_OP_WHILE:
        loop_while(e, op);
        break;
    }
}

void tk_emit_combine(tk_emit *e, const tk_region *r, const LLVMValueRef *arg, LLVMValueRef *out) {
    for (uint32_t i = 0; i < r->args.n; i++) {
        tk_emit_new(e, r->args.at[i])[0] = arg[i];
    }
    tk_emit_region(e, r);
    for (uint32_t i = 0; i < r->last->nopnd; i++) {
        out[i] = tk_emit_get(e, r->last->opnd[i])[0];
    }
}
