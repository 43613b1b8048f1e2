// SPDX-License-Identifier: Apache-2.0
// Bulk copies and mbarriers. See llvm_bulk.h.
#include "ptx/llvm_bulk.h"

#include "ptx/llvm_build.h"

#include <string.h>

enum { MOST_OPERANDS = 8 };

LLVMValueRef tk_emit_asm(tk_emit *e, LLVMTypeRef result, const char *text, const char *constraints,
                         unsigned n, LLVMValueRef *arg) {
    LLVMTypeRef type[MOST_OPERANDS];
    TK_CHECK(e->arena, n <= MOST_OPERANDS);
    for (unsigned i = 0; i < n; i++) {
        type[i] = LLVMTypeOf(arg[i]);
    }
    LLVMTypeRef ft = LLVMFunctionType(result, type, n, 0);
    LLVMValueRef f = LLVMGetInlineAsm(ft, text, strlen(text), constraints, strlen(constraints), 1,
                                      0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(e->b, ft, f, arg, n, "");
}

static void act(tk_emit *e, const char *text, const char *constraints, unsigned n,
                LLVMValueRef *arg) {
    (void)tk_emit_asm(e, LLVMVoidTypeInContext(e->ctx), text, constraints, n, arg);
}

// ---- Barriers -----------------------------------------------------------------------------------

LLVMValueRef tk_emit_mbarrier_new(tk_emit *e) {
    enum { SHARED = 3, BYTES = 8 };
    LLVMTypeRef type = tk_ll_int(e, 64);
    LLVMValueRef g = LLVMAddGlobalInAddressSpace(e->mod, type, "tk_mbarrier", SHARED);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetInitializer(g, LLVMGetUndef(type));
    LLVMSetAlignment(g, BYTES);
    return LLVMBuildPtrToInt(e->b, g, tk_ll_int(e, 32), "");
}

void tk_emit_mbarrier_init(tk_emit *e, LLVMValueRef bar, unsigned arrivals) {
    LLVMValueRef arg[2] = {bar, tk_emit_i32(e, arrivals)};
    act(e, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", 2, arg);
}

void tk_emit_mbarrier_expect(tk_emit *e, LLVMValueRef bar, LLVMValueRef bytes) {
    LLVMValueRef arg[2] = {bar, bytes};
    act(e, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}", 2, arg);
}

void tk_emit_mbarrier_arrive(tk_emit *e, LLVMValueRef bar) {
    act(e, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", 1, &bar);
}

void tk_emit_mbarrier_wait(tk_emit *e, LLVMValueRef bar) {
    static const char text[] = "{\n\t.reg .pred %there;\n\t"
                               "mbarrier.try_wait.parity.shared::cta.b64 %there, [$1], 0;\n\t"
                               "selp.b32 $0, 1, 0, %there;\n\t}";
    LLVMBasicBlockRef wait = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "wait");
    LLVMBasicBlockRef there = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "there");
    LLVMBuildBr(e->b, wait);
    LLVMPositionBuilderAtEnd(e->b, wait);
    LLVMValueRef x = tk_emit_asm(e, tk_ll_int(e, 32), text, "=r,r,~{memory}", 1, &bar);
    LLVMBuildCondBr(e->b, tk_ll_is(e, x, 0), wait, there);
    LLVMPositionBuilderAtEnd(e->b, there);
}

// ---- Copies -------------------------------------------------------------------------------------

void tk_emit_bulk_read(tk_emit *e, LLVMValueRef shared, LLVMValueRef global, LLVMValueRef bytes,
                       LLVMValueRef bar) {
    LLVMValueRef arg[4] = {shared, global, bytes, bar};
    act(e,
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        "r,l,r,r,~{memory}", 4, arg);
}

void tk_emit_bulk_write(tk_emit *e, LLVMValueRef global, LLVMValueRef shared, LLVMValueRef bytes) {
    LLVMValueRef arg[3] = {global, shared, bytes};
    act(e, "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r,~{memory}", 3,
        arg);
}

void tk_emit_bulk_wait(tk_emit *e) {
    act(e, "cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;", "~{memory}", 0, NULL);
}

void tk_emit_async_fence(tk_emit *e) {
    act(e, "fence.proxy.async.shared::cta;", "~{memory}", 0, NULL);
}
