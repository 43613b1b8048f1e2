// SPDX-License-Identifier: Apache-2.0
// Fences between proxies: for whose memory one counts, in clusters; and tensor maps that a kernel
// changes. Each row is a kernel with one thing replaced or left out.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 6 };

// Runs under each seed: silent under all, or a fault of this id under all.
static void check(const char *shared, const char *text, uint32_t blocks, void (*prepare)(sim_env *),
                  const char *id) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_env *e = sim_open();
        e->launch.cluster[0] = blocks;
        e->launch.cluster[1] = e->launch.cluster[2] = 1;
        e->launch.seed = seed;
        if (prepare) {
            prepare(e);
        }
        cr_assert(sim_read(e, sim_body(e, shared, text)), "%u: %s", e->error.at.ptx_line,
                  e->error.text);
        bool ok = sim_launch(e, blocks, 32);
        cr_expect(id ? !ok && strcmp(e->result.fault.id, id) == 0 : ok,
                  "seed %u: %s, expected %s:\n%s", (unsigned)seed, sim_fault(e), id ? id : "none",
                  text);
        sim_close(e);
    }
}

// ---- Shared memory of another block

#define SHARED                                                                                     \
    ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b8 bar[8]; .shared .align 8 .b8 "        \
    "flag[8];"
#define BEGIN                                                                                      \
    "mov.u32 %r1, tile; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, bar; mov.u32 %r4, flag;\n"     \
    "setp.eq.u32 %p1, %t, 0; mad.lo.u32 %r5, %t, 4, %r1;\n"                                        \
    "@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;\n"               \
    "@%p1 st.shared.b32 [%r4], 0; mul.wide.u32 %d1, %r2, 128; add.u64 %d1, %base, %d1;\n"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
// The memory of the block of this rank.
#define TO(rank) "mapa.shared::cluster.u32 %r6, %r5, " rank ";\n"
#define PUT      "st.shared::cluster.b32 [%r6], %t;\n"
#define STORE                                                                                      \
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 128;\n"                        \
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
// Block 0 loads into the memory of blocks 0 and 1.
#define LOAD                                                                                       \
    "setp.eq.u32 %p5, %r2, 0; and.pred %p5, %p5, %p1; mov.b16 %h1, 3; setp.lt.u32 %p6, %r2, 2;\n"  \
    "and.pred %p7, %p6, %p1; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n" MEET      \
    "@%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "   \
    "[%r1], [%base+1024], 128, [%r3], %h1;\n"                                                      \
    "@!%p6 bra DONE;\nW: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra W;\nDONE: "  \
    "ld.shared.b32 %r9, [%r1];\n"

// Those that are of a block's own memory, and of all.
static const struct {
    const char *text;
    bool own, all;
} fences[] = {{"", false, false},
              {"fence.proxy.async.global;\n", false, false},
              {"fence.proxy.async.shared::cta;\n", true, false},
              {"fence.proxy.async.shared::cluster;\n", true, true},
              {"fence.proxy.async;\n", true, true}};
enum { FENCES = sizeof fences / sizeof *fences };

// The same between threads that meet at the cluster's barrier, or of which one waits for the
// other's flag: there no epoch ends.
#define ORDERS 3
static const char *const orders[ORDERS] = {
    MEET, MEET "nanosleep.u32 1;\n" MEET,
    "mapa.shared::cluster.u32 %r10, %r4, %r11; bar.warp.sync -1;\n"
    "@%p1 st.release.cluster.shared::cluster.b32 [%r10], 1;\n"
    "F: ld.acquire.cluster.shared.b32 %r12, [%r4]; setp.eq.u32 %p4, %r12, 0; @%p4 bra F;\n"
    "bar.warp.sync -1;\n"};

// Each of two blocks writes to the other's memory, and that one's copy reads it.
Test(sim_proxies, writes_to_another_block) {
    for (unsigned k = 0; k < ORDERS * FENCES * FENCES; k++) {
        unsigned give = k % FENCES, take = k / FENCES % FENCES, order = k / FENCES / FENCES;
        sim_env *f = sim_open();
        const char *text =
            tk_format(&f->arena, "%s%s%s%s%s", BEGIN "xor.b32 %r11, %r2, 1;\n" MEET TO("%r11") PUT,
                      fences[give].text, orders[order], fences[take].text, STORE MEET);
        check(SHARED, text, 2, NULL, fences[give].all || fences[take].own ? NULL : "proxy");
        sim_close(f);
    }
}

// Blocks write to their own memory, and a copy of block 0 overwrites it, in both; the second fence
// is block 0's alone.
Test(sim_proxies, copies_to_another_block) {
    for (unsigned k = 0; k < FENCES * FENCES; k++) {
        unsigned give = k % FENCES, take = k / FENCES;
        sim_env *f = sim_open();
        const char *text =
            tk_format(&f->arena, "%s%s%ssetp.ne.u32 %%p8, %%r2, 0; @%%p8 bra S;\n%sS: %s",
                      BEGIN "st.shared.b32 [%r5], %t;\n", fences[give].text, MEET,
                      fences[take].text, LOAD MEET);
        check(SHARED, text, 2, NULL, fences[give].own || fences[take].all ? NULL : "proxy");
        sim_close(f);
    }
}

// Block 0 writes to block 1's memory, a thread of block `by` has a fence on the way, block 1 reads.
Test(sim_proxies, fences_of_a_third) {
    for (unsigned k = 0; k < FENCES * 3; k++) {
        unsigned kind = k % FENCES, by = k / FENCES;
        sim_env *f = sim_open();
        const char *text = tk_format(
            &f->arena,
            "%ssetp.eq.u32 %%p8, %%r2, 0; setp.eq.u32 %%p9, %%r2, %u;\n@!%%p8 bra A;\n%sA: %s"
            "@!%%p9 bra B;\n%sB: %ssetp.ne.u32 %%p8, %%r2, 1;\n@%%p8 bra C;\n%sC: %s",
            BEGIN MEET TO("1"), by, PUT, MEET, fences[kind].text, MEET, STORE, MEET);
        bool ok = fences[kind].all || (by == 1 && fences[kind].own);
        check(SHARED, text, 3, NULL, ok ? NULL : "proxy");
        sim_close(f);
    }
}

// st.async and cp.async write to memory of a block; the fence of who has waited is for it.
Test(sim_proxies, asynchronous_stores) {
    for (unsigned k = 0; k < 2 * FENCES; k++) {
        sim_env *f = sim_open();
        const char *write =
            k % 2 ? "xor.b32 %r11, %r2, 1; mapa.shared::cluster.u32 %r13, %r3, %r11;\n" TO(
                        "%r11") "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n"
                                "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r6], "
                                "%t, [%r13];\n"
                                "W: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, "
                                "[%r3], 0;\n"
                                "@!%p3 bra W;\n"
                  : "add.u64 %d2, %base, 1024; mad.wide.u32 %d2, %t, 4, %d2;\n"
                    "cp.async.ca.shared.global [%r5], [%d2], 4; cp.async.wait_all;\n";
        const char *text = tk_format(&f->arena, "%s%s%s%s", BEGIN MEET, write, fences[k / 2].text,
                                     "bar.warp.sync -1;\n" STORE MEET);
        check(SHARED, text, 2, NULL, fences[k / 2].own ? NULL : "proxy");
        sim_close(f);
    }
}

// ---- Tensor maps that are changed

// A map of 2 x 32 words of the buffer at its begin, and at byte 512 the same of its second half.
static void two_maps(sim_env *e) {
    for (unsigned k = 0; k < 2; k++) {
        tk_sim_map_spec s = {.type = TK_SIM_MAP_U32,
                             .rank = 2,
                             .address = (uint64_t)(uintptr_t)&e->word[1024 + 1024 * k],
                             .dim = {32, 8},
                             .stride = {128},
                             .box = {32, 2},
                             .step = {1, 1}};
        const char *problem = tk_sim_tensor_map_encode(&e->arena, &e->word[64 * k], &s);
        cr_assert(!problem, "%s", problem);
    }
}

#define CHANGE(map)  "@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [" map "], %d5;\n"
#define RELEASE      "fence.proxy.tensormap::generic.release.gpu;\n"
#define ACQUIRE(map) "fence.proxy.tensormap::generic.acquire.gpu [" map "], 128;\n"
#define USE(map)                                                                                   \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n"                                        \
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "                 \
    "[%r1], [" map ", {0, 0}], [%r3];\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra W;\n"
#define MAPS BEGIN "add.u64 %d4, %base, 512; add.u64 %d5, %base, 12288; setp.eq.u32 %p2, %t, 1;\n"

// Lane 0 uses a map that it has changed and released; who acquires it, and what is between.
Test(sim_proxies, maps_acquired_by_others) {
    static const struct {
        const char *acquire, *id;
    } rows[] = {
        {ACQUIRE("%base"), NULL},
        {"@%p1 " ACQUIRE("%base"), NULL},
        {"@%p2 " ACQUIRE("%base") "bar.warp.sync -1;\n", NULL},
        {"@%p2 " ACQUIRE("%base") "bar.sync 0;\n", NULL},
        {"@%p2 " ACQUIRE("%base") MEET, NULL},
        {"@%p2 " ACQUIRE("%base"), "proxy"},
        {"@%p2 " ACQUIRE("%d4") "bar.sync 0;\n", "proxy"},
        {"bar.sync 0; @%p2 " ACQUIRE("%base"), "proxy"},
        {"@%p2 " ACQUIRE("%base") "shfl.sync.idx.b32 %r9, %t, 1, 31, -1;\n", "proxy"},
        {"@%p2 " ACQUIRE("%base") "@%p2 st.release.cta.shared.b32 [%r4], 1;\n"
                                  "F: ld.acquire.cta.shared.b32 %r12, [%r4];\n"
                                  "setp.eq.u32 %p4, %r12, 0; @%p4 bra F;\n",
         NULL},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        sim_env *f = sim_open();
        const char *text =
            tk_format(&f->arena, "%s%s%s", MAPS CHANGE("%base") RELEASE "bar.warp.sync -1;\n",
                      rows[k].acquire, "@!%p1 bra END;\n" USE("%base") WAIT "END:");
        check(SHARED, text, 1, two_maps, rows[k].id);
        sim_close(f);
    }
}

// An acquire by a block is for its own threads: another block of the cluster needs one itself.
Test(sim_proxies, maps_acquired_by_another_block) {
    for (unsigned own = 0; own < 2; own++) {
        sim_env *f = sim_open();
        const char *text = tk_format(
            &f->arena, "%s@%%p9 %s%s%s%s",
            MAPS "setp.eq.u32 %p9, %r2, 0; and.pred %p1, %p1, %p9;\n" CHANGE("%base") RELEASE MEET,
            ACQUIRE("%base"), MEET, own ? ACQUIRE("%base") : "",
            "setp.eq.u32 %p1, %t, 0; @%p9 bra END; @!%p1 bra END;\n" USE("%base") WAIT
            "END: barrier.cluster.arrive; barrier.cluster.wait;");
        check(SHARED, text, 2, two_maps, own ? NULL : "proxy");
        sim_close(f);
    }
}
