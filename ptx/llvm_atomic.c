// SPDX-License-Identifier: Apache-2.0
// Atomics: one owner an element; copies get the old value through shared memory.
//
// atomicrmw keeps neither its order nor a wide scope on this target, so an order that is asked for
// is made by fences around a relaxed operation. Float minimum and maximum, and sums of bf16 where
// there is no instruction, are loops of compare-and-swap over the bits, with the executor's rule: a
// NaN on either side gives way.
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

#include <string.h>

static unsigned scope_of(tk_emit *e, tk_memscope s) {
    static const char *const name[] = {"device", "block", ""};
    return LLVMGetSyncScopeID(e->ctx, name[s], strlen(name[s]));
}

static void fence(tk_emit *e, const tk_op *op, bool before) {
    tk_order o = op->at.order;
    bool wanted = before ? o == TK_ORDER_RELEASE || o == TK_ORDER_ACQ_REL
                         : o == TK_ORDER_ACQUIRE || o == TK_ORDER_ACQ_REL;
    if (wanted) {
        LLVMBuildFenceSyncScope(e->b, LLVMAtomicOrderingAcquireRelease, scope_of(e, op->at.scope),
                                "");
    }
}

static LLVMTypeRef bits_type(tk_emit *e, tk_dtype t) {
    return LLVMIntTypeInContext(e->ctx, tk_dtype_bits(t));
}

// LLVM knows no exchange of 16 bits on this target and would take the 32 that they are in, of which
// half may be past the tensor's end.
static LLVMValueRef exchange_half(tk_emit *e, const tk_op *op, LLVMValueRef at,
                                  LLVMValueRef expected, LLVMValueRef value) {
    static const char *const scope[] = {"gpu", "cta", "sys"};
    const char *text = tk_format(e->arena, "atom.relaxed.%s.global.cas.b16 $0, [$1], $2, $3;",
                                 scope[op->at.scope]);
    static const char constraints[] = "=h,l,h,h,~{memory}";
    LLVMValueRef arg[3] = {at, expected, value};
    return tk_emit_asm(e, tk_ll_int(e, 16), text, constraints, 3, arg);
}

// What is there before; it has been exchanged where that is what was expected.
static LLVMValueRef exchange_if(tk_emit *e, const tk_op *op, LLVMValueRef at, LLVMValueRef expected,
                                LLVMValueRef value) {
    if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 16) {
        return exchange_half(e, op, at, expected, value);
    }
    LLVMValueRef pair =
        LLVMBuildAtomicCmpXchgSyncScope(e->b, at, expected, value, LLVMAtomicOrderingMonotonic,
                                        LLVMAtomicOrderingMonotonic, scope_of(e, op->at.scope));
    return LLVMBuildExtractValue(e->b, pair, 0, "");
}

// old = *at; do { next = f(old, x) } while (!cas(at, old, next)); the old value's bits.
static LLVMValueRef by_exchange(tk_emit *e, const tk_op *op, tk_dtype t, tk_numop f,
                                LLVMValueRef at, LLVMValueRef x) {
    LLVMTypeRef bits = bits_type(e, t), type = tk_emit_type(e, t);
    LLVMValueRef first = LLVMBuildLoad2(e->b, bits, at, "");
    LLVMSetAlignment(first, (unsigned)tk_dtype_size(t));
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "cas");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "swapped");
    LLVMBuildBr(e->b, loop);
    LLVMPositionBuilderAtEnd(e->b, loop);
    LLVMValueRef old = LLVMBuildPhi(e->b, bits, "");
    LLVMAddIncoming(old, &first, &before, 1);
    LLVMValueRef arg[2] = {LLVMBuildBitCast(e->b, old, type, ""), x};
    LLVMValueRef next = tk_emit_elem(e, f, t, 0, arg);
    LLVMValueRef seen = exchange_if(e, op, at, old, LLVMBuildBitCast(e->b, next, bits, ""));
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, seen, old, ""), done, loop);
    LLVMAddIncoming(old, &seen, &last, 1);
    LLVMPositionBuilderAtEnd(e->b, done);
    return LLVMBuildBitCast(e->b, old, type, "");
}

static LLVMAtomicRMWBinOp rmw_of(const tk_op *op, tk_dtype t) {
    bool is_signed = tk_dtype_is_signed(t);
    switch ((int)op->at.kind) { // the verifier lets no other kind through
    case TK_K_ADD:
        return tk_dtype_is_float(t) ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
    case TK_K_MIN:
        return is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case TK_K_MAX:
        return is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case TK_K_AND:
        return LLVMAtomicRMWBinOpAnd;
    case TK_K_OR:
        return LLVMAtomicRMWBinOpOr;
    case TK_K_XOR:
        return LLVMAtomicRMWBinOpXor;
    }
    return LLVMAtomicRMWBinOpXchg;
}

// One element: x holds the value, or expected and value. The old value.
static LLVMValueRef one(tk_emit *e, const tk_op *op, tk_dtype t, LLVMValueRef at, LLVMValueRef *x) {
    LLVMTypeRef bits = bits_type(e, t), type = tk_emit_type(e, t);
    if (op->code == TK_OP_ATOMIC_CAS) {
        LLVMValueRef seen = exchange_if(e, op, at, LLVMBuildBitCast(e->b, x[0], bits, ""),
                                        LLVMBuildBitCast(e->b, x[1], bits, ""));
        return LLVMBuildBitCast(e->b, seen, type, "");
    }
    if (tk_dtype_is_float(t) && (op->at.kind == TK_K_MIN || op->at.kind == TK_K_MAX)) {
        tk_numop f = op->at.kind == TK_K_MAX ? TK_NUM_FMAX : TK_NUM_FMIN;
        return by_exchange(e, op, t, f, at, x[0]);
    }
    if (t == TK_BF16 && op->at.kind == TK_K_ADD && e->target->cc < 90) { // no instruction
        return by_exchange(e, op, t, TK_NUM_ADD, at, x[0]);
    }
    bool by_bits = op->at.kind == TK_K_XCHG;
    LLVMValueRef v = by_bits ? LLVMBuildBitCast(e->b, x[0], bits, "") : x[0];
    LLVMValueRef old = LLVMBuildAtomicRMWSyncScope(
        e->b, rmw_of(op, t), at, v, LLVMAtomicOrderingMonotonic, scope_of(e, op->at.scope));
    return by_bits ? LLVMBuildBitCast(e->b, old, type, "") : old;
}

void tk_emit_atomic_op(tk_emit *e, tk_op *op) {
    const tk_type *t = tk_view_type(e->f, op);
    const tk_layout *l = tk_emit_layout(e, op->res[0]);
    uint32_t next = 1 + tk_value_type(e->f, op->opnd[0])->rank, n = l ? 1U << l->regs : 1;
    uint32_t values = op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
    const LLVMValueRef *mask = op->at.masked ? tk_emit_get(e, op->opnd[next + values]) : NULL;
    tk_emit_view v = tk_emit_view_make(e, op, t, l);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]), none = LLVMConstNull(tk_emit_type(e, t->dtype));
    LLVMValueRef own = tk_emit_view_owner(e, &v);
    TK_CHECK(e->arena, (own != NULL) == (tk_emit_scratch(e, op).work == TK_WORK_SHARED));
    fence(e, op, true);
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef in = tk_emit_view_inside(e, &v, r, 1, mask ? mask[r] : NULL);
        in = tk_emit_and(e, in, own);
        LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
        tk_emit_cond c = tk_emit_if(e, in);
        LLVMValueRef x[2] = {tk_emit_get(e, op->opnd[next])[r],
                             values == 2 ? tk_emit_get(e, op->opnd[next + 1])[r] : NULL};
        LLVMValueRef old =
            one(e, op, t->dtype, tk_emit_place_ptr(e, tk_emit_view_place(e, &v, r)), x);
        LLVMBasicBlockRef done = LLVMGetInsertBlock(e->b);
        tk_emit_end(e, &c);
        out[r] = old;
        if (in) {
            out[r] = LLVMBuildPhi(e->b, LLVMTypeOf(none), "");
            LLVMAddIncoming(out[r], &old, &done, 1);
            LLVMAddIncoming(out[r], &none, &before, 1);
        }
    }
    fence(e, op, false);
    if (!own) {
        return;
    }
    if (l) {
        tk_emit_spill_values(e, op, 0, l, t->dtype, out);
        tk_emit_barrier(e);
        tk_emit_fetch_values(e, op, 0, l, t->dtype, out);
        return;
    }
    tk_emit_cond c = tk_emit_if(e, own);
    LLVMBuildStore(e->b, out[0], tk_emit_shared_at(e, op, 0, NULL));
    tk_emit_end(e, &c);
    tk_emit_barrier(e);
    out[0] = tk_emit_fetch(e, op, 0, t->dtype, tk_emit_i32(e, 0));
}
