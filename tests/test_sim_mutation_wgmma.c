// SPDX-License-Identifier: Apache-2.0
// Deletions from matmuls with wgmma: see test_sim_mutation.c.
#include "tests/sim_mutation.h"

#include <criterion/criterion.h>
#include <string.h>

enum { FROM = 2048 }; // the word from which on the operands lie

// Small numbers of f16.
static void fill(sim_env *e) {
    static const uint16_t of[] = {0x0000, 0x3c00, 0xbc00, 0x3800, 0x4000, 0xb800, 0x4200, 0xc000};
    uint16_t *h = (uint16_t *)(void *)(e->word + FROM);
    for (unsigned k = 0; k < 4 * (SIM_WORDS - FROM); k++) {
        h[k] = of[k * 2654435761u >> 29];
    }
}

// C = A B^T, 64 x 64 times 16 x 64: a warpgroup multiplies, a thread of another warp loads steps
// of 16 columns, 2048 bytes of A and 512 of B, by bulk copies through two slots. An mbarrier of a
// slot says that it is full, one that it is empty; one wgmma may be in flight while the slot before
// is released.
static const char ring[] =
    ".shared .align 8 .b8 bars[32]; .shared .align 1024 .b8 slots[5120];\n"
    "mov.u32 %r2, bars; mov.u32 %r3, slots; mov.b32 %r10, 0; setp.eq.u32 %p1, %t, 128;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2], 1; @%p1 mbarrier.init.shared.b64 [%r2+8], 1;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2+16], 4; @%p1 mbarrier.init.shared.b64 [%r2+24], 4;\n"
    "fence.mbarrier_init.release.cluster; // x\n"
    "bar.sync 0; // x\n"
    "setp.lt.u32 %p2, %t, 128; @%p2 bra USE; @!%p1 bra END; add.s64 %d1, %base, 16384;\n"
    "LOAD: and.b32 %r4, %r10, 1; mad.lo.u32 %r20, %r4, 8, %r2; mad.lo.u32 %r21, %r4, 2560, %r3;\n"
    "bfe.u32 %r5, %r10, 1, 1; xor.b32 %r5, %r5, 1; add.u32 %r22, %r21, 2048;\n"
    "WE: mbarrier.try_wait.parity.shared.b64 %p3, [%r20+16], %r5; @!%p3 bra WE; // x\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 2560; // x\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21], [%d1], 2048, "
    "[%r20];\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r22], [%d1+2048], 512, "
    "[%r20];\n"
    "add.s64 %d1, %d1, 2560; add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra LOAD;\n"
    "bra.uni END;\n"
    "USE: and.b32 %r4, %r10, 1; mad.lo.u32 %r20, %r4, 8, %r2; mad.lo.u32 %r21, %r4, 2560, %r3;\n"
    "bfe.u32 %r5, %r10, 1, 1; shr.u32 %r6, %r21, 4; or.b32 %r6, %r6, 0x80000;\n"
    "cvt.u64.u32 %d2, %r6; or.b64 %d2, %d2, 0x1000000000; add.u64 %d3, %d2, 128;\n"
    "setp.ne.u32 %p5, %r10, 0; and.b32 %r7, %t, 31; setp.eq.and.u32 %p6, %r7, 0, %p5;\n"
    "setp.eq.u32 %p7, %r7, 0; xor.b32 %r8, %r4, 1; mad.lo.u32 %r23, %r8, 8, %r2;\n"
    "WF: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r5; @!%p3 bra WF; // x\n"
    "wgmma.fence.sync.aligned; // x\n"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "
    "%d2, %d3, %p5, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned; // x\n"
    "wgmma.wait_group.sync.aligned 1; // x\n"
    "@%p6 mbarrier.arrive.shared.b64 _, [%r23+16]; // x\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra USE;\n"
    "wgmma.wait_group.sync.aligned 0; // x\n"
    "mad.wide.u32 %d5, %t, 32, %base; st.global.v4.b32 [%d5], {%f0, %f1, %f2, %f3};\n"
    "st.global.v4.b32 [%d5+16], {%f4, %f5, %f6, %f7};\n"
    "END:\n";

// The same product where threads bring the operands: A and B through two slots of swizzled rows of
// 32 bytes, A of the first step from registers; sums are scaled between steps.
static const char stored[] =
    ".shared .align 1024 .b8 slots[6144];\n"
    "mov.u32 %r3, slots; mov.b32 %r10, 0; add.s64 %d1, %base, 16384; mad.wide.u32 %d1, %t, 16, "
    "%d1;\n"
    "setp.lt.u32 %p1, %t, 32; shr.u32 %r4, %t, 1; and.b32 %r5, %t, 1; bfe.u32 %r6, %r4, 2, 1;\n"
    "xor.b32 %r5, %r5, %r6; shl.b32 %r6, %r4, 5; mad.lo.u32 %r6, %r5, 16, %r6;\n"
    "mov.b32 %f8, 0x3f000000;\n"
    "NEXT: and.b32 %r7, %r10, 1; mad.lo.u32 %r7, %r7, 3072, %r3; add.u32 %r8, %r7, %r6;\n"
    "ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%d1];\n"
    "st.shared.v4.b32 [%r8], {%r20, %r21, %r22, %r23};\n"
    "@%p1 ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%d1+2048];\n"
    "@%p1 st.shared.v4.b32 [%r8+2048], {%r20, %r21, %r22, %r23};\n"
    "fence.proxy.async.shared::cta; // x\n"
    "bar.sync 1, 128; // x\n"
    "shr.u32 %r9, %r7, 4; cvt.u64.u32 %d2, %r9; or.b64 %d2, %d2, 0xc000001000000000;\n"
    "add.u64 %d3, %d2, 128; setp.ne.u32 %p5, %r10, 0; @!%p5 bra FIRST;\n"
    "mul.f32 %f0, %f0, %f8; mul.f32 %f1, %f1, %f8; mul.f32 %f2, %f2, %f8; mul.f32 %f3, %f3, %f8;\n"
    "wgmma.fence.sync.aligned; // x\n"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "
    "%d2, %d3, 1, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned; // x\n"
    "bra.uni WAIT;\n"
    "FIRST: ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%d1+128];\n"
    "wgmma.fence.sync.aligned; // x\n"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "
    "{%r24, %r25, %r26, %r27}, %d3, 0, 1, 1, 0;\n"
    "wgmma.commit_group.sync.aligned; // x\n"
    "WAIT: wgmma.wait_group.sync.aligned 0; // x\n"
    "add.s64 %d1, %d1, 2560; add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 5; @%p4 bra NEXT;\n"
    "mad.wide.u32 %d5, %t, 32, %base; st.global.v4.b32 [%d5], {%f0, %f1, %f2, %f3};\n"
    "st.global.v4.b32 [%d5+16], {%f4, %f5, %f6, %f7};\n";

Test(sim_mutation_wgmma, ring) {
    sim_mutation m = {.text = ring, .blocks = 1, .threads = 160, .prepare = fill};
    sim_check_mutations(&m, 10);
}

Test(sim_mutation_wgmma, stored) {
    sim_mutation m = {.text = stored, .blocks = 1, .threads = 128, .prepare = fill};
    sim_check_mutations(&m, 7);
}

static double half(uint16_t x) {
    static const double of[] = {0, 1, -1, 0.5, 2, -0.5, 3, -2};
    static const uint16_t bits[] = {0x0000, 0x3c00, 0xbc00, 0x3800, 0x4000, 0xb800, 0x4200, 0xc000};
    for (unsigned k = 0; k < 8; k++) {
        if (bits[k] == x) {
            return of[k];
        }
    }
    return 1e30;
}

// What `ring` computes is the product: groups of 8 rows by 8 columns lie together.
Test(sim_mutation_wgmma, product) {
    sim_env *e = sim_open();
    fill(e);
    cr_assert(sim_run(e, 160, ring), "%s", sim_fault(e));
    const uint16_t *h = (const uint16_t *)(const void *)(e->word + FROM);
    const float *c = (const float *)(const void *)e->word;
    for (unsigned row = 0; row < 64; row++) {
        for (unsigned col = 0; col < 16; col++) {
            double sum = 0;
            for (unsigned k = 0; k < 64; k++) {
                unsigned in = k / 16 * 1280 + k % 16 / 8 * 64 + k % 8;
                sum += half(h[in + row / 8 * 128 + row % 8 * 8]) *
                       half(h[in + 1024 + col / 8 * 128 + col % 8 * 8]);
            }
            unsigned thread = row / 16 * 32 + row % 8 * 4 + col % 8 / 2;
            float got = c[thread * 8 + col / 8 * 4 + row % 16 / 8 * 2 + col % 2];
            cr_expect_eq((double)got, sum, "%u, %u: %g, not %g", row, col, (double)got, sum);
        }
    }
    sim_close(e);
}
