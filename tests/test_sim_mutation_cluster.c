// SPDX-License-Identifier: Apache-2.0
// Deletions from kernels with tensor copies and with clusters: see test_sim_mutation.c.
#include "tests/sim_mutation.h"

#include <criterion/criterion.h>
#include <string.h>

// Two maps at the begin of the buffer: of 24 rows of 32 words from word 2048 on, and of as many
// from word 512 on.
enum { FROM = 2048, TO = 512, ROWS = 24, FIRST = 32 };

static void make_map(sim_env *e, unsigned at, unsigned to, uint32_t rows) {
    tk_sim_map_spec s = {.type = TK_SIM_MAP_U32,
                         .rank = 2,
                         .address = (uint64_t)(uintptr_t)&e->word[to],
                         .dim = {32, ROWS},
                         .stride = {128},
                         .box = {32, rows},
                         .step = {1, 1},
                         .swizzle = TK_SIM_MAP_SWIZZLE_128B};
    const char *problem = tk_sim_tensor_map_encode(&e->arena, &e->word[at], &s);
    cr_assert(!problem, "%s", problem);
}

static void fill(sim_env *e) {
    for (uint64_t k = 0; k < ROWS * 16; k++) {
        e->word[FROM + k] = (2 * k + 1) << 32 | 2 * k;
    }
}

static void rows_of_four(sim_env *e) {
    fill(e);
    make_map(e, 0, FROM, 4);
    make_map(e, 16, TO, 4);
}

static void rows_of_two(sim_env *e) {
    fill(e);
    make_map(e, 0, FROM, 2);
}

// Where a word of a box lies: in lines of 128 bytes, of which the n-th has its pieces of 16 bytes
// swapped by n mod 8. Boxes begin at multiples of 1024 bytes.
#define SWAPPED(d, word)                                                                           \
    "shr.u32 %r60, " word ", 5; bfe.u32 %r61, " word ", 2, 3; xor.b32 %r61, %r61, %r60;\n"         \
    "shl.b32 " d ", %r60, 7; mad.lo.u32 " d ", %r61, 16, " d "; and.b32 %r61, " word ", 3;\n"      \
    "mad.lo.u32 " d ", %r61, 4, " d ";\n"

// Warp 0 loads six boxes through two slots; four warps change their words, through a third box in
// shared memory, and store it. One mbarrier of a slot says that it is full, one that it is empty.
static const char ring[] =
    ".shared .align 8 .b8 bars[32]; .shared .align 1024 .b8 slots[2048];\n"
    ".shared .align 1024 .b8 result[1024];\n"
    "mov.u32 %r2, bars; mov.u32 %r3, slots; mov.b32 %r10, 0; setp.eq.u32 %p1, %t, 0;\n"
    "add.s64 %d1, %base, 128;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2], 1; @%p1 mbarrier.init.shared.b64 [%r2+8], 1;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2+16], 4; @%p1 mbarrier.init.shared.b64 [%r2+24], 4;\n"
    "fence.mbarrier_init.release.cluster; // x\n"
    "bar.sync 0; // x\n"
    "setp.lt.u32 %p2, %t, 32; @!%p2 bra USE; @!%p1 bra END;\n"
    "LOAD: and.b32 %r4, %r10, 1; mad.lo.u32 %r20, %r4, 8, %r2; mad.lo.u32 %r21, %r4, 1024, %r3;\n"
    "bfe.u32 %r5, %r10, 1, 1; xor.b32 %r5, %r5, 1; shl.b32 %r6, %r10, 2;\n"
    "WE: mbarrier.try_wait.parity.shared.b64 %p3, [%r20+16], %r5; @!%p3 bra WE; // x\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 512; // x\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r21], "
    "[%base, {0, %r6}], [%r20];\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 6; @%p4 bra LOAD;\n"
    "bra.uni END;\n"
    "USE: sub.u32 %r1, %t, 32; xor.b32 %r7, %r1, 37; mov.u32 %r8, result;\n" SWAPPED("%r4", "%r1")
        SWAPPED(
            "%r5",
            "%r7") "add.u32 %r9, %r8, %r4; setp.eq.u32 %p5, %r1, 0;\n"
                   "and.b32 %r11, %t, 31; setp.eq.u32 %p6, %r11, 0;\n"
                   "AGAIN: and.b32 %r12, %r10, 1; mad.lo.u32 %r20, %r12, 8, %r2;\n"
                   "mad.lo.u32 %r21, %r12, 1024, %r3; bfe.u32 %r13, %r10, 1, 1; shl.b32 %r6, %r10, "
                   "2;\n"
                   "WF: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r13; @!%p3 bra WF; // x\n"
                   "add.u32 %r14, %r21, %r5; ld.shared.b32 %r15, [%r14]; mad.lo.u32 %r15, %r15, 3, "
                   "%r1;\n"
                   "bar.warp.sync -1; // x\n"
                   "@%p6 mbarrier.arrive.shared.b64 _, [%r20+16]; // x\n"
                   "cp.async.bulk.wait_group.read 0; // x\n"
                   "bar.sync 1, 128; // x\n"
                   "st.shared.b32 [%r9], %r15;\n"
                   "fence.proxy.async.shared::cta; // x\n"
                   "bar.sync 1, 128; // x\n"
                   "@%p5 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, "
                   "{0, %r6}], [%r8];\n"
                   "cp.async.bulk.commit_group; // x\n"
                   "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 6; @%p4 bra AGAIN;\n"
                   "cp.async.bulk.wait_group 0; // x\n"
                   "END:\n";

// Sums over the threads of four blocks, twice through the same shared memory: of each block by
// shuffles and one barrier, then over the blocks by reading each other's sums.
static const char cluster_sum[] =
    ".shared .align 4 .b8 parts[8]; .shared .align 4 .b8 sum[4];\n"
    "mov.b32 %r10, 0; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;\n"
    "mad.lo.u32 %r3, %r3, 64, %t; mad.wide.u32 %at, %r3, 8, %base; mov.u32 %r4, sum;\n"
    "shr.u32 %r5, %t, 5; mov.u32 %r6, parts; mad.lo.u32 %r5, %r5, 4, %r6;\n"
    "and.b32 %r6, %t, 31; setp.eq.u32 %p1, %r6, 0; setp.eq.u32 %p2, %t, 0;\n"
    "ROUND: add.u32 %r7, %r3, %r10;\n"
    "redux.sync.add.s32 %r7, %r7, -1; @%p1 st.shared.b32 [%r5], %r7;\n"
    "bar.sync 0; // x\n"
    "@!%p2 bra SHARE;\n"
    "ld.shared.v2.b32 {%r8, %r9}, [parts]; add.u32 %r8, %r8, %r9; st.shared.b32 [sum], %r8;\n"
    "SHARE: barrier.cluster.arrive.release.aligned; // x\n"
    "barrier.cluster.wait.acquire.aligned; // x\n"
    "mov.b32 %r11, 0; mov.b32 %r12, 0;\n"
    "ADD: mapa.shared::cluster.u32 %r13, %r4, %r12; ld.shared::cluster.b32 %r14, [%r13];\n"
    "add.u32 %r11, %r11, %r14; add.u32 %r12, %r12, 1; setp.lt.u32 %p3, %r12, 4; @%p3 bra ADD;\n"
    "barrier.cluster.arrive.release.aligned; // x\n"
    "cvt.u64.u32 %d1, %r11; mad.wide.u32 %d2, %r10, 8192, %at; st.global.b64 [%d2], %d1;\n"
    "barrier.cluster.wait.acquire.aligned; // x\n"
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 2; @%p4 bra ROUND;\n";

// Two blocks load four boxes of 4 rows through two slots, each block two rows of every box for
// both; a slot is empty when the warps of both blocks have said so to both loading threads.
static const char multicast[] =
    ".shared .align 8 .b8 bars[32]; .shared .align 1024 .b8 slots[2048];\n"
    "mov.u32 %r2, bars; mov.u32 %r3, slots; mov.b32 %r10, 0; setp.eq.u32 %p1, %t, 0;\n"
    "mov.u32 %r9, %cluster_ctarank; mov.u32 %r8, %ctaid.x; mov.b16 %h1, 3;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2], 1; @%p1 mbarrier.init.shared.b64 [%r2+8], 1;\n"
    "@%p1 mbarrier.init.shared.b64 [%r2+16], 8; @%p1 mbarrier.init.shared.b64 [%r2+24], 8;\n"
    "fence.mbarrier_init.release.cluster; // x\n"
    "barrier.cluster.arrive.aligned; // x\n"
    "barrier.cluster.wait.aligned; // x\n"
    "setp.lt.u32 %p2, %t, 32; @!%p2 bra USE; @!%p1 bra END;\n"
    "LOAD: and.b32 %r4, %r10, 1; mad.lo.u32 %r20, %r4, 8, %r2; mad.lo.u32 %r21, %r4, 1024, %r3;\n"
    "bfe.u32 %r5, %r10, 1, 1; xor.b32 %r5, %r5, 1; shl.b32 %r6, %r10, 2;\n"
    "mad.lo.u32 %r6, %r9, 2, %r6; mad.lo.u32 %r21, %r9, 256, %r21;\n"
    "WE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r20+16], %r5; @!%p3 bra "
    "WE; // x\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 512; // x\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    ".multicast::cluster [%r21], [%base, {0, %r6}], [%r20], %h1;\n"
    "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra LOAD;\n"
    "bra.uni END;\n"
    "USE: sub.u32 %r1, %t, 32; xor.b32 %r7, %r1, 37;\n" SWAPPED(
        "%r5",
        "%r7") "and.b32 %r11, %t, 31; setp.eq.u32 %p6, %r11, 0; mad.lo.u32 %r8, %r8, 512, %r1;\n"
               "add.u32 %r8, %r8, 1024; mad.wide.u32 %at, %r8, 4, %base; mov.b32 %r16, 1;\n"
               "AGAIN: and.b32 %r12, %r10, 1; mad.lo.u32 %r20, %r12, 8, %r2;\n"
               "mad.lo.u32 %r21, %r12, 1024, %r3; bfe.u32 %r13, %r10, 1, 1;\n"
               "WF: mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r13; @!%p3 bra WF; // x\n"
               "add.u32 %r14, %r21, %r5; ld.shared.b32 %r15, [%r14];\n"
               "mapa.shared::cluster.u32 %r17, %r20, 0; mapa.shared::cluster.u32 %r18, %r20, 1;\n"
               "bar.warp.sync -1; // x\n"
               "@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r17+16]; // x\n"
               "@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18+16]; // x\n"
               "mad.wide.u32 %d1, %r10, 512, %at; st.global.b32 [%d1], %r15;\n"
               "add.s32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4; @%p4 bra AGAIN;\n"
               "END: barrier.cluster.arrive; // x\n"
               "barrier.cluster.wait; // x\n";

// Block 0 stores a tile by a bulk copy and releases a flag; block 1 waits for the flag, one thread
// for all, and uses the tile. WAITED: what stands before the wait.
#define STORE_THEN_FLAG(WAITED)                                                                    \
    ".shared .align 128 .b8 s[512]; mov.u32 %r2, s; setp.eq.u32 %p1, %t, 0;\n"                     \
    "mov.u32 %r20, %ctaid.x; setp.ne.u32 %p2, %r20, 0; mad.wide.u32 %d4, %t, 4, %base;\n"          \
    "@%p2 bra USE;\n"                                                                              \
    "mad.lo.u32 %r12, %t, 4, %r2; add.u32 %r13, %t, 1; st.shared.b32 [%r12], %r13;\n"              \
    "fence.proxy.async; // x\n"                                                                    \
    "bar.sync 0; // x\n"                                                                           \
    "@!%p1 bra END;\n"                                                                             \
    "cp.async.bulk.global.shared::cta.bulk_group [%base+1024], [%r2], 512;\n"                      \
    "cp.async.bulk.commit_group;\n" WAITED "cp.async.bulk.wait_group 0; // x\n"                    \
    "fence.acq_rel.gpu; st.release.gpu.global.b32 [%base], 1;\n"                                   \
    "cp.async.bulk.wait_group 0; bra.uni END;\n"                                                   \
    "USE: @!%p1 bra SEEN;\n"                                                                       \
    "LOOK: ld.acquire.gpu.global.b32 %r5, [%base]; setp.eq.u32 %p3, %r5, 0; @%p3 bra LOOK;\n"      \
    "SEEN: bar.sync 0; // x\n"                                                                     \
    "ld.global.b32 %r6, [%d4+1024]; st.global.b32 [%d4+4096], %r6;\n"                              \
    "END:\n"

Test(sim_mutation, store_then_flag) {
    sim_check_mutations(&(sim_mutation){STORE_THEN_FLAG(""), 2, 0, 128, NULL, FIRST}, 4);
    sim_check_mutations(&(sim_mutation){STORE_THEN_FLAG("cp.async.bulk.wait_group.read 0;\n"), 2, 0,
                                        128, NULL, FIRST},
                        4);
}
// Loops in which something changes all the time do not keep a late copy for ever.
Test(sim_mutation, loops_that_count) {
    sim_check_mutations(
        &(sim_mutation){".shared .align 128 .b8 s[512]; .shared .align 8 .b8 bar[8];\n"
                        "mov.u32 %r2, s; mov.u32 %r3, bar; setp.eq.u32 %p1, %t, 0;\n"
                        "@!%p1 bra SEEN;\n"
                        "mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;\n"
                        "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
                        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], "
                        "[%base+1024], 512, [%r3];\n"
                        "LOOK: red.global.add.u32 [%base], 1;\n"
                        "mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra LOOK;\n"
                        "SEEN: bar.sync 0; // x\n"
                        "mad.lo.u32 %r4, %t, 4, %r2; ld.shared.b32 %r5, [%r4];\n"
                        "mad.wide.u32 %d1, %t, 4, %base; st.global.b32 [%d1+4096], %r5;\n",
                        2, 0, 128, fill, FIRST},
        1);
}
Test(sim_mutation, tensor_ring) {
    sim_check_mutations(&(sim_mutation){ring, 1, 0, 160, rows_of_four, FIRST}, 13);
}
Test(sim_mutation, cluster_sum) {
    sim_check_mutations(&(sim_mutation){cluster_sum, 8, 4, 64, NULL, 0}, 5);
}
Test(sim_mutation, multicast) {
    sim_check_mutations(&(sim_mutation){multicast, 4, 2, 160, rows_of_two, FIRST}, 11);
}
