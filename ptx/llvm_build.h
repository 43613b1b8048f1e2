// SPDX-License-Identifier: Apache-2.0
// Short forms of LLVM's builder for code that is mostly integer arithmetic. A constant takes the
// type of the value that it is used with.
#ifndef TK_PTX_LLVM_BUILD_H
#define TK_PTX_LLVM_BUILD_H

#include "ptx/llvm_emit.h"

static inline LLVMTypeRef tk_ll_int(const tk_emit *e, unsigned bits) {
    return LLVMIntTypeInContext(e->ctx, bits);
}
static inline LLVMValueRef tk_ll_k(LLVMValueRef like, uint64_t x) {
    return LLVMConstInt(LLVMTypeOf(like), x, 0);
}
static inline LLVMValueRef tk_ll_add(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildAdd(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_sub(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSub(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_mul(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildMul(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_and(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildAnd(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_or(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildOr(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_xor(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildXor(e->b, a, b, "");
}
static inline LLVMValueRef tk_ll_shl(tk_emit *e, LLVMValueRef a, unsigned n) {
    return n ? LLVMBuildShl(e->b, a, tk_ll_k(a, n), "") : a;
}
static inline LLVMValueRef tk_ll_shr(tk_emit *e, LLVMValueRef a, unsigned n) {
    return n ? LLVMBuildLShr(e->b, a, tk_ll_k(a, n), "") : a;
}
static inline LLVMValueRef tk_ll_mask(tk_emit *e, LLVMValueRef a, uint64_t bits) {
    return LLVMBuildAnd(e->b, a, tk_ll_k(a, bits), "");
}
static inline LLVMValueRef tk_ll_icmp(tk_emit *e, LLVMIntPredicate p, LLVMValueRef a,
                                      LLVMValueRef b) {
    return LLVMBuildICmp(e->b, p, a, b, "");
}
static inline LLVMValueRef tk_ll_is(tk_emit *e, LLVMValueRef a, uint64_t x) {
    return LLVMBuildICmp(e->b, LLVMIntEQ, a, tk_ll_k(a, x), "");
}
static inline LLVMValueRef tk_ll_sel(tk_emit *e, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(e->b, c, a, b, "");
}
static inline LLVMValueRef tk_ll_bits(tk_emit *e, LLVMValueRef x, LLVMTypeRef t) {
    return LLVMBuildBitCast(e->b, x, t, "");
}
// To an integer of `bits` bits: cut off, or with zeros or the sign in front.
static inline LLVMValueRef tk_ll_resize(tk_emit *e, LLVMValueRef x, unsigned bits, bool is_signed) {
    return LLVMBuildIntCast2(e->b, x, tk_ll_int(e, bits), is_signed, "");
}

#endif
