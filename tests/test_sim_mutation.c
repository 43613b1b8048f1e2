// SPDX-License-Identifier: Apache-2.0
// What the simulator is for: each synchronisation that is deleted from a kernel is caught, by a
// report or by a wrong value, within 20 seeds; the kernel as it is runs silently under 200.
#include "tests/sim_mutation.h"

#include <criterion/criterion.h>

enum { THREADS = 128, ROUNDS = 3 };

// Sums of 128 numbers, three times through the same shared memory: in each warp by shuffles, then
// over the warps' sums by the first warp. Lines that end in "// x" are deleted one at a time.
static const char reduction[] =
    ".shared .align 4 .b8 sums[16];\n"
    "mov.b32 %r10, 0;\n"
    "shr.u32 %r1, %t, 5; and.b32 %r2, %t, 31;\n"
    "mov.u32 %r3, sums; mad.lo.u32 %r4, %r1, 4, %r3; mad.lo.u32 %r5, %r2, 4, %r3;\n"
    "setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %t, 4; setp.eq.u32 %p3, %t, 0;\n"
    "setp.lt.u32 %p5, %t, 32;\n"
    "ROUND: add.s32 %r6, %t, %r10;\n"
    "shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1; add.s32 %r6, %r6, %r7;\n"
    "shfl.sync.bfly.b32 %r7, %r6, 8, 31, -1; add.s32 %r6, %r6, %r7;\n"
    "shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1; add.s32 %r6, %r6, %r7;\n"
    "shfl.sync.bfly.b32 %r7, %r6, 2, 31, -1; add.s32 %r6, %r6, %r7;\n"
    "shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1; add.s32 %r6, %r6, %r7;\n"
    "@%p1 st.shared.b32 [%r4], %r6;\n"
    "bar.sync 0; // x\n"
    "mov.b32 %r8, 0; @%p2 ld.shared.b32 %r8, [%r5];\n"
    "@!%p5 bra LATER;\n"
    "shfl.sync.bfly.b32 %r7, %r8, 2, 31, -1; add.s32 %r8, %r8, %r7;\n"
    "shfl.sync.bfly.b32 %r7, %r8, 1, 31, -1; add.s32 %r8, %r8, %r7;\n"
    "@%p3 st.shared.b32 [sums], %r8;\n"
    "LATER: bar.sync 0; // x\n"
    "ld.shared.b32 %r9, [sums];\n"
    "mad.wide.u32 %d1, %r10, 1024, %at; cvt.u64.u32 %d2, %r9; st.global.b64 [%d1], %d2;\n"
    "bar.sync 0; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra ROUND;\n";

// Half a block makes a buffer that the other half uses, over and over, through four barriers.
static const char hand_over[] =
    ".shared .align 4 .b8 buffer[256];\n"
    "mov.b32 %r10, 0; and.b32 %r1, %t, 63; mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 4, %r2;\n"
    "xor.b32 %r4, %r1, 37; mad.lo.u32 %r4, %r4, 4, %r2; setp.lt.u32 %p1, %t, 64;\n"
    "@!%p1 bra USE;\n"
    "MAKE: setp.eq.u32 %p2, %r10, 0; @%p2 bra FIRST;\n"
    "bar.sync 2, 128; // x\n"
    "FIRST: mad.lo.u32 %r5, %r10, 100, %t; st.shared.b32 [%r3], %r5;\n"
    "bar.arrive 1, 128; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra MAKE;\n"
    "bar.sync 2, 128; bra.uni END;\n"
    "USE: bar.sync 1, 128; // x\n"
    "ld.shared.b32 %r6, [%r4];\n"
    "mad.wide.u32 %d1, %r10, 1024, %at; cvt.u64.u32 %d2, %r6; st.global.b64 [%d1], %d2;\n"
    "bar.arrive 2, 128; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra USE;\n"
    "END:\n";

// Neighbours of a warp through shared memory.
static const char within_warps[] =
    ".shared .align 4 .b8 tile[512];\n"
    "mov.u32 %r2, tile; mad.lo.u32 %r3, %t, 4, %r2; xor.b32 %r4, %t, 9; mov.b32 %r10, 0;\n"
    "mad.lo.u32 %r4, %r4, 4, %r2;\n"
    "AGAIN: mad.lo.u32 %r5, %r10, 1000, %t; st.shared.b32 [%r3], %r5;\n"
    "bar.warp.sync -1; // x\n"
    "ld.shared.b32 %r6, [%r4];\n"
    "mad.wide.u32 %d1, %r10, 1024, %at; cvt.u64.u32 %d2, %r6; st.global.b64 [%d1], %d2;\n"
    "bar.warp.sync -1; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra AGAIN;\n";

// Six tiles through three slots, two copies ahead; each thread uses what another one has copied.
static const char pipelined_copy[] =
    ".shared .align 16 .b8 slots[6144];\n"
    "mad.wide.u32 %d1, %t, 16, %base; add.s64 %d1, %d1, 8192; mov.b64 %d2, %d1;\n"
    "mov.u32 %r1, slots; mad.lo.u32 %r2, %t, 16, %r1;\n"
    "xor.b32 %r3, %t, 37; mad.lo.u32 %r3, %r3, 16, %r1; mov.b32 %r10, 0;\n"
    "FILL: mad.lo.u32 %r4, %r10, 1000, %t; add.s32 %r5, %r4, 7000;\n"
    "st.global.v4.b32 [%d2], {%r4, %r5, %r4, %r5}; add.s64 %d2, %d2, 2048;\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 6; @%p1 bra FILL;\n"
    "cp.async.cg.shared.global [%r2], [%d1], 16;\n"
    "cp.async.commit_group; // x\n"
    "cp.async.cg.shared.global [%r2+2048], [%d1+2048], 16;\n"
    "cp.async.commit_group; // x\n"
    "mov.b32 %r10, 0;\n"
    "LOOP: cp.async.wait_group 1; // x\n"
    "bar.sync 0; // x\n"
    "add.s32 %r6, %r10, 2; rem.u32 %r7, %r6, 3; mad.lo.u32 %r7, %r7, 2048, %r2;\n"
    "mad.wide.u32 %d3, %r6, 2048, %d1; setp.lt.u32 %p2, %r6, 6;\n"
    "@%p2 cp.async.cg.shared.global [%r7], [%d3], 16;\n"
    "cp.async.commit_group; // x\n"
    "rem.u32 %r8, %r10, 3; mad.lo.u32 %r8, %r8, 2048, %r3;\n"
    "ld.shared.v2.b32 {%r11, %r12}, [%r8];\n"
    "mad.wide.u32 %d4, %r10, 1024, %at; st.global.v2.b32 [%d4], {%r11, %r12};\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 6; @%p1 bra LOOP;\n";

// Half a block fills two slots in turn, the other half uses them; an mbarrier says that a slot is
// full, another that it is empty.
static const char mbarrier_ring[] =
    ".shared .align 8 .b8 bars[32]; .shared .align 4 .b8 slots[512];\n"
    "mov.u32 %r2, bars; mov.u32 %r3, slots; and.b32 %r1, %t, 63; mov.b32 %r10, 0;\n"
    "setp.lt.u32 %p1, %t, 64; setp.eq.u32 %p5, %t, 0;\n"
    "@%p5 mbarrier.init.shared.b64 [%r2], 64; @%p5 mbarrier.init.shared.b64 [%r2+8], 64;\n"
    "@%p5 mbarrier.init.shared.b64 [%r2+16], 64; @%p5 mbarrier.init.shared.b64 [%r2+24], 64;\n"
    "bar.sync 0; // x\n"
    "AGAIN: and.b32 %r4, %r10, 1; mad.lo.u32 %r20, %r4, 8, %r2; mad.lo.u32 %r21, %r4, 256, %r3;\n"
    "bfe.u32 %r5, %r10, 1, 1; xor.b32 %r6, %r5, 1; @!%p1 bra WF;\n"
    "WE: mbarrier.try_wait.parity.shared.b64 %p3, [%r20+16], %r6; @!%p3 bra WE; // x\n"
    "mad.lo.u32 %r7, %r10, 100, %t; mad.lo.u32 %r8, %r1, 4, %r21; st.shared.b32 [%r8], %r7;\n"
    "mbarrier.arrive.shared.b64 _, [%r20]; // x\n"
    "bra.uni NEXT;\n"
    "WF: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r5; @!%p3 bra WF; // x\n"
    "xor.b32 %r8, %r1, 37; mad.lo.u32 %r8, %r8, 4, %r21; ld.shared.b32 %r9, [%r8];\n"
    "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r20+16]; // x\n"
    "mad.wide.u32 %d1, %r10, 1024, %at; cvt.u64.u32 %d2, %r9; st.global.b64 [%d1], %d2;\n"
    "NEXT: add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 6; @%p4 bra AGAIN;\n";

// Tiles come by bulk copies, one ahead, and leave by bulk copies, through one slot.
static const char bulk_ring[] =
    ".shared .align 16 .b8 bars[16]; .shared .align 16 .b8 slots[1024];\n"
    ".shared .align 16 .b8 result[512];\n"
    "setp.eq.u32 %p5, %t, 0; mov.u32 %r2, bars; mov.u32 %r3, slots; mov.b32 %r10, 0;\n"
    "mov.u32 %r1, result; mad.lo.u32 %r4, %t, 4, %r1; xor.b32 %r5, %t, 37; shl.b32 %r5, %r5, 2;\n"
    "add.s64 %d1, %base, 8192; mad.wide.u32 %d2, %t, 4, %d1; mov.b64 %d3, %base;\n"
    "st.global.b32 [%d2], %t; add.s32 %r6, %t, 1000; st.global.b32 [%d2+512], %r6;\n"
    "add.s32 %r6, %t, 2000; st.global.b32 [%d2+1024], %r6;\n"
    "add.s32 %r6, %t, 3000; st.global.b32 [%d2+1536], %r6; fence.proxy.async.global;\n"
    "@%p5 mbarrier.init.shared.b64 [%r2], 1; @%p5 mbarrier.init.shared.b64 [%r2+8], 1;\n"
    "fence.mbarrier_init.release.cluster; // x\n"
    "bar.sync 0; // x\n"
    "@%p5 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;\n"
    "@%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d1], 512, "
    "[%r2];\n"
    "AGAIN: and.b32 %r7, %r10, 1; mad.lo.u32 %r20, %r7, 8, %r2; mad.lo.u32 %r21, %r7, 512, %r3;\n"
    "xor.b32 %r8, %r7, 1; mad.lo.u32 %r22, %r8, 8, %r2; mad.lo.u32 %r23, %r8, 512, %r3;\n"
    "add.s64 %d1, %d1, 512; setp.lt.and.u32 %p1, %r10, 3, %p5; bfe.u32 %r9, %r10, 1, 1;\n"
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r22], 512;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r23], [%d1], 512, "
    "[%r22];\n"
    "WF: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r9; @!%p3 bra WF; // x\n"
    "add.s32 %r24, %r21, %r5; ld.shared.b32 %r25, [%r24];\n"
    "cp.async.bulk.wait_group.read 0; // x\n"
    "bar.sync 0; // x\n"
    "st.shared.b32 [%r4], %r25;\n"
    "fence.proxy.async.shared::cta; // x\n"
    "bar.sync 0; // x\n"
    "@%p5 cp.async.bulk.global.shared::cta.bulk_group [%d3], [%r1], 512;\n"
    "cp.async.bulk.commit_group; // x\n"
    "add.s64 %d3, %d3, 512;\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra AGAIN;\n"
    "cp.async.bulk.wait_group 0; // x\n";

// C = A B of f16, 64 x 64 times 64 x 8: each warp has 16 rows. B comes whole, A in steps of 16
// columns through two slots, by cp.async; fragments by ldmatrix.
static const char tensor_matmul[] =
    ".shared .align 16 .b8 b[1024]; .shared .align 16 .b8 a[4096];\n"
    "mov.u32 %r1, b; mov.u32 %r2, a; mov.b32 %r10, 0; setp.lt.u32 %p1, %t, 64;\n"
    "add.s64 %d1, %base, 16384; mad.wide.u32 %d2, %t, 16, %d1; mov.b64 %d3, %d2;\n"
    "FILL: mad.lo.u32 %r3, %r10, 7, %t; and.b32 %r3, %r3, 3; mul.lo.u32 %r3, %r3, 0x01000100;\n"
    "add.u32 %r4, %r3, 0x38003c00; add.u32 %r5, %r3, 0x3800b800; add.u32 %r6, %r3, 0xbc003400;\n"
    "st.global.v4.b32 [%d3], {%r4, %r5, %r6, %r4}; add.s64 %d3, %d3, 2048;\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 5; @%p4 bra FILL;\n"
    "mad.lo.u32 %r3, %t, 16, %r1; mad.lo.u32 %r4, %t, 16, %r2; add.s64 %d4, %d2, 8192;\n"
    "@%p1 cp.async.cg.shared.global [%r3], [%d4], 16;\n"
    "cp.async.cg.shared.global [%r4], [%d2], 16;\n"
    "cp.async.commit_group; // x\n"
    "mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; mov.b32 %r10, 0;\n"
    "and.b32 %r5, %t, 31; shr.u32 %r6, %t, 5; and.b32 %r7, %r5, 15; shr.u32 %r8, %r5, 4;\n"
    "shl.b32 %r9, %r6, 9; mad.lo.u32 %r9, %r7, 32, %r9; mad.lo.u32 %r9, %r8, 16, %r9;\n"
    "add.u32 %r9, %r9, %r2; mad.lo.u32 %r11, %r7, 16, %r1;\n"
    "STEP: and.b32 %r12, %r10, 1; shl.b32 %r12, %r12, 11; xor.b32 %r13, %r12, 2048;\n"
    "add.s64 %d2, %d2, 2048; setp.lt.u32 %p2, %r10, 3; add.u32 %r14, %r4, %r13;\n"
    "@%p2 cp.async.cg.shared.global [%r14], [%d2], 16;\n"
    "cp.async.commit_group; // x\n"
    "cp.async.wait_group 1; // x\n"
    "bar.sync 0; // x\n"
    "add.u32 %r15, %r9, %r12;\n"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r15];\n"
    "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r24, %r25}, [%r11];\n"
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, "
    "%r23}, {%r24, %r25}, {%f0, %f1, %f2, %f3};\n"
    "add.u32 %r11, %r11, 256;\n"
    "bar.sync 0; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra STEP;\n"
    "mad.wide.u32 %d5, %t, 16, %base; st.global.v4.b32 [%d5], {%f0, %f1, %f2, %f3};\n";

static void check(const char *text, unsigned marks) {
    sim_check_mutations(&(sim_mutation){.text = text, .blocks = 1, .threads = THREADS}, marks);
}

Test(sim_mutation, reduction) { check(reduction, 3); }
Test(sim_mutation, hand_over) { check(hand_over, 4); }
Test(sim_mutation, within_warps) { check(within_warps, 2); }
Test(sim_mutation, pipelined_copy) { check(pipelined_copy, 5); }
Test(sim_mutation, mbarrier_ring) { check(mbarrier_ring, 5); }
Test(sim_mutation, bulk_ring) { check(bulk_ring, 9); }
Test(sim_mutation, tensor_matmul) { check(tensor_matmul, 5); }
