// SPDX-License-Identifier: Apache-2.0
// Bulk copies and mbarriers. See llvm_bulk.h.
#include "ptx/llvm_bulk.h"

#include "ptx/llvm_build.h"

#include <string.h>

enum { MOST_OPERANDS = 10 };

static LLVMValueRef inline_asm(tk_emit *e, LLVMTypeRef result, const char *text,
                               const char *constraints, unsigned n, LLVMValueRef *arg,
                               bool ordered) {
    LLVMTypeRef type[MOST_OPERANDS];
    TK_CHECK(e->arena, n <= MOST_OPERANDS);
    for (unsigned i = 0; i < n; i++) {
        type[i] = LLVMTypeOf(arg[i]);
    }
    LLVMTypeRef ft = LLVMFunctionType(result, type, n, 0);
    LLVMValueRef f = LLVMGetInlineAsm(ft, text, strlen(text), constraints, strlen(constraints),
                                      ordered, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(e->b, ft, f, arg, n, "");
}

LLVMValueRef tk_emit_asm(tk_emit *e, LLVMTypeRef result, const char *text, const char *constraints,
                         unsigned n, LLVMValueRef *arg) {
    return inline_asm(e, result, text, constraints, n, arg, true);
}

LLVMValueRef tk_emit_pure_asm(tk_emit *e, LLVMTypeRef result, const char *text,
                              const char *constraints, unsigned n, LLVMValueRef *arg) {
    return inline_asm(e, result, text, constraints, n, arg, false);
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
    act(e, "mbarrier.init.shared.b64 [$0], $1;", "r,r,~{memory}", 2, arg);
}

void tk_emit_mbarrier_expect(tk_emit *e, LLVMValueRef bar, LLVMValueRef bytes) {
    LLVMValueRef arg[2] = {bar, bytes};
    act(e, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}", 2, arg);
}

void tk_emit_mbarrier_arrive(tk_emit *e, LLVMValueRef bar) {
    act(e, "{\n\t.reg .b64 %state;\n\tmbarrier.arrive.shared.b64 %state, [$0];\n\t}", "r,~{memory}",
        1, &bar);
}

void tk_emit_mbarrier_arrive_by(tk_emit *e, LLVMValueRef who, LLVMValueRef bar) {
    LLVMValueRef arg[2] = {who, bar};
    act(e, "{\n\t.reg .b64 %state;\n\t@$0 mbarrier.arrive.shared.b64 %state, [$1];\n\t}",
        "b,r,~{memory}", 2, arg);
}

void tk_emit_mbarrier_arrive_expect_by(tk_emit *e, LLVMValueRef who, LLVMValueRef bar,
                                       uint64_t bytes) {
    LLVMValueRef arg[3] = {who, bar, tk_emit_i32(e, (int64_t)bytes)};
    act(e,
        "{\n\t.reg .b64 %state;\n\t"
        "@$0 mbarrier.arrive.expect_tx.shared.b64 %state, [$1], $2;\n\t}",
        "b,r,r,~{memory}", 3, arg);
}

// Who waits there only writes again what the threads have read: the order is that of this block.
void tk_emit_mbarrier_arrive_at(tk_emit *e, LLVMValueRef who, LLVMValueRef bar,
                                LLVMValueRef block) {
    LLVMValueRef arg[3] = {who, bar, block};
    act(e,
        "{\n\t.reg .b32 %there;\n\t"
        "mapa.shared::cluster.u32 %there, $1, $2;\n\t"
        "@$0 mbarrier.arrive.shared::cluster.b64 _, [%there];\n\t}",
        "b,r,r,~{memory}", 3, arg);
}

void tk_emit_mbarrier_wait(tk_emit *e, LLVMValueRef bar) {
    tk_emit_mbarrier_wait_parity(e, bar, tk_emit_i32(e, 0));
}

void tk_emit_mbarrier_wait_parity(tk_emit *e, LLVMValueRef bar, LLVMValueRef parity) {
    static const char try_text[] = "{\n\t.reg .pred %there;\n\t"
                                   "mbarrier.try_wait.parity.shared.b64 %there, [$1], $2;\n\t"
                                   "selp.b32 $0, 1, 0, %there;\n\t}";
    static const char test_text[] = "{\n\t.reg .pred %there;\n\t"
                                    "mbarrier.test_wait.parity.shared.b64 %there, [$1], $2;\n\t"
                                    "selp.b32 $0, 1, 0, %there;\n\t}";
    const char *text = e->target->cc >= 90 ? try_text : test_text;
    LLVMValueRef arg[2] = {bar, parity};
    LLVMBasicBlockRef wait = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "wait");
    LLVMBasicBlockRef there = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "there");
    LLVMBuildBr(e->b, wait);
    LLVMPositionBuilderAtEnd(e->b, wait);
    LLVMValueRef x = tk_emit_asm(e, tk_ll_int(e, 32), text, "=r,r,r,~{memory}", 2, arg);
    LLVMBuildCondBr(e->b, tk_ll_is(e, x, 0), wait, there);
    LLVMPositionBuilderAtEnd(e->b, there);
}

// ---- Copies by threads --------------------------------------------------------------------------

void tk_emit_async_copy(tk_emit *e, LLVMValueRef shared, LLVMValueRef global, unsigned bytes,
                        LLVMValueRef inside) {
    LLVMValueRef arg[3] = {shared, global, inside};
    const char *way = bytes == 16 ? "cg" : "ca"; // past the first cache where that can be
    const char *text = tk_format(e->arena, "cp.async.%s.shared.global [$0], [$1], %u%s;", way,
                                 bytes, inside ? ", $2" : "");
    act(e, text, inside ? "r,l,r,~{memory}" : "r,l,~{memory}", inside ? 3 : 2, arg);
}

void tk_emit_async_arrive(tk_emit *e, LLVMValueRef bar) {
    act(e, "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r,~{memory}", 1, &bar);
}

// ---- Copies -------------------------------------------------------------------------------------

void tk_emit_bulk_read(tk_emit *e, LLVMValueRef shared, LLVMValueRef global, LLVMValueRef bytes,
                       LLVMValueRef bar) {
    LLVMValueRef arg[4] = {shared, global, bytes, bar};
    act(e,
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        "r,l,r,r,~{memory}", 4, arg);
}

void tk_emit_map_prefetch(tk_emit *e, LLVMValueRef map) {
    (void)tk_emit_asm(e, LLVMVoidTypeInContext(e->ctx), "prefetch.tensormap [$0];", "l,~{memory}",
                      1, &map);
}

void tk_emit_tensor_read_by(tk_emit *e, LLVMValueRef who, LLVMValueRef shared, LLVMValueRef map,
                            uint32_t rank, const LLVMValueRef *at, LLVMValueRef bar,
                            uint32_t blocks) {
    static const char *const coordinates[] = {
        "", "$4", "$4, $5", "$4, $5, $6", "$4, $5, $6, $7", "$4, $5, $6, $7, $8"};
    static const char constraints[] = "b,r,l,r,r,r,r,r,r";
    LLVMValueRef arg[MOST_OPERANDS] = {who, shared, map, bar};
    uint32_t n = 4 + rank;
    TK_CHECK(e->arena, rank >= 1 && rank <= 5 && blocks <= 16);
    memcpy(arg + 4, at, rank * sizeof *at);
    const char *operands = tk_format(e->arena, "%.*s", (int)(2 * n - 1), constraints);
    if (blocks > 1) {
        arg[n] = LLVMConstInt(tk_ll_int(e, 16), (1U << blocks) - 1, false);
        operands = tk_format(e->arena, "%s,h", operands);
    }
    const char *text = tk_format(
        e->arena,
        "@$0 cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s "
        "[$1], [$2, {%s}], [$3]%s;",
        rank, blocks > 1 ? ".multicast::cluster" : "", coordinates[rank],
        blocks > 1 ? tk_format(e->arena, ", $%u", n) : "");
    act(e, text, tk_format(e->arena, "%s,~{memory}", operands), n + (blocks > 1), arg);
}

void tk_emit_tensor_write_by(tk_emit *e, LLVMValueRef who, LLVMValueRef shared, LLVMValueRef map,
                             uint32_t rank, const LLVMValueRef *at) {
    static const char *const coordinates[] = {
        "", "$3", "$3, $4", "$3, $4, $5", "$3, $4, $5, $6", "$3, $4, $5, $6, $7"};
    static const char constraints[] = "b,r,l,r,r,r,r,r";
    LLVMValueRef arg[MOST_OPERANDS] = {who, shared, map};
    TK_CHECK(e->arena, rank >= 1 && rank <= 5);
    memcpy(arg + 3, at, rank * sizeof *at);
    const char *text = tk_format(e->arena,
                                 "@$0 cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group "
                                 "[$2, {%s}], [$1];",
                                 rank, coordinates[rank]);
    act(e, text, tk_format(e->arena, "%.*s,~{memory}", (int)(2 * (3 + rank) - 1), constraints),
        3 + rank, arg);
}

LLVMValueRef tk_emit_elected(tk_emit *e) {
    static const char text[] = "{\n\t.reg .pred %one;\n\telect.sync _|%one, -1;\n\t"
                               "selp.b32 $0, 1, 0, %one;\n\t}";
    LLVMValueRef x = tk_emit_asm(e, tk_ll_int(e, 32), text, "=r,~{memory}", 0, NULL);
    return tk_ll_icmp(e, LLVMIntNE, x, tk_emit_i32(e, 0));
}

void tk_emit_bulk_write(tk_emit *e, LLVMValueRef global, LLVMValueRef shared, LLVMValueRef bytes) {
    LLVMValueRef arg[3] = {global, shared, bytes};
    act(e, "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r,~{memory}", 3,
        arg);
}

void tk_emit_bulk_wait(tk_emit *e) {
    act(e, "cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;", "~{memory}", 0, NULL);
}

void tk_emit_bulk_commit(tk_emit *e) {
    act(e, "cp.async.bulk.commit_group;", "~{memory}", 0, NULL);
}

void tk_emit_bulk_wait_read(tk_emit *e, unsigned most) {
    act(e, tk_format(e->arena, "cp.async.bulk.wait_group.read %u;", most), "~{memory}", 0, NULL);
}

void tk_emit_bulk_wait_all(tk_emit *e) {
    act(e, "cp.async.bulk.wait_group 0;", "~{memory}", 0, NULL);
}

void tk_emit_async_fence(tk_emit *e) {
    act(e, "fence.proxy.async.shared::cta;", "~{memory}", 0, NULL);
}
