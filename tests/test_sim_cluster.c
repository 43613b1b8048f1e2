// SPDX-License-Identifier: Apache-2.0
// The simulator's clusters: blocks that run together, their barrier, and their shared memory, which
// the others reach.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 12 };

// Runs under some seeds as clusters of `n` blocks; the last run stays.
static sim_env *good(uint32_t blocks, uint32_t n, uint32_t threads, const char *shared,
                     const char *text) {
    sim_env *e = sim_open();
    e->launch.cluster[0] = n;
    e->launch.cluster[1] = e->launch.cluster[2] = 1;
    cr_assert(sim_read(e, sim_body(e, shared, text)), "%u: %s", e->error.at.ptx_line,
              e->error.text);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        e->launch.seed = seed;
        memset(e->word, 0, sizeof e->word);
        cr_assert(sim_launch(e, blocks, threads), "seed %u: %s", (unsigned)seed, sim_fault(e));
    }
    return e;
}

// A fault of this id, with these words, under each seed.
static void fault(uint32_t n, uint32_t threads, const char *text, const char *id,
                  const char *words) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_env *e = sim_open();
        e->launch.cluster[0] = n;
        e->launch.cluster[1] = e->launch.cluster[2] = 1;
        e->launch.seed = seed;
        const char *ptx =
            sim_body(e, ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b8 bar[8];", text);
        cr_assert(sim_read(e, ptx), "%u: %s", e->error.at.ptx_line, e->error.text);
        cr_assert(!sim_launch(e, n, threads), "seed %u: no fault, expected %s: %s", (unsigned)seed,
                  id, text);
        cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
                  sim_fault(e));
        sim_close(e);
    }
}

// Blocks are counted over the whole grid: word b is block b's.
#define AT                                                                                         \
    "mov.u32 %r60, %ctaid.x; mov.u32 %r61, %ctaid.y; mov.u32 %r62, %nctaid.x;\n"                   \
    "mad.lo.u32 %r60, %r61, %r62, %r60; mov.u32 %r61, %ntid.x;\n"                                  \
    "mad.lo.u32 %r60, %r60, %r61, %t; mad.wide.u32 %at, %r60, 8, %base;\n"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

Test(sim_cluster, numbers) {
    sim_env *e = sim_open();
    e->launch.grid[1] = 2;
    memcpy(e->launch.cluster, (uint32_t[]){2, 2, 1}, sizeof e->launch.cluster);
    static const char text[] = AT
        "mov.u32 %r1, %cluster_ctaid.x; mov.u32 %r2, %cluster_ctaid.y; mov.u32 %r3, %clusterid.x;\n"
        "mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %cluster_nctarank;\n"
        "mov.u32 %r6, %cluster_nctaid.y; mov.u32 %r7, %nclusterid.x; mov.pred %p1, "
        "%is_explicit_cluster;\n"
        "mad.lo.u32 %r1, %r1, 10, %r2; mad.lo.u32 %r1, %r1, 10, %r3; mad.lo.u32 %r1, %r1, 10, "
        "%r4;\n"
        "mad.lo.u32 %r1, %r1, 10, %r5; mad.lo.u32 %r1, %r1, 10, %r6; mad.lo.u32 %r1, %r1, 10, "
        "%r7;\n"
        "selp.b32 %r2, 1, 0, %p1; mad.lo.u32 %r1, %r1, 10, %r2; cvt.u64.u32 %d1, %r1;\n"
        "st.global.b64 [%at], %d1;";
    cr_assert(sim_read(e, sim_body(e, "", text)), "%s", e->error.text);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        e->launch.seed = seed;
        cr_assert(sim_launch(e, 6, 1), "%s", sim_fault(e));
        for (uint64_t k = 0; k < 12; k++) {
            uint64_t x = k % 6, y = k / 6, want = x % 2;
            want = want * 10 + y;
            want = want * 10 + x / 2;
            want = want * 10 + x % 2 + 2 * y;
            want = want * 10000 + 4231;
            cr_expect_eq(e->word[k], want, "block %u: %u", (unsigned)k, (unsigned)e->word[k]);
        }
    }
    sim_close(e);
}

Test(sim_cluster, what_a_launch_says) {
    static const char *const bounds[] = {
        ".reqnctapercluster 2", ".explicitcluster .reqnctapercluster 2, 1, 1", ".explicitcluster",
        ".blocksareclusters .reqntid 1 .reqnctapercluster 2"};
    for (unsigned k = 0; k < 4; k++) {
        sim_env *e = sim_open();
        const char *ptx = tk_format(
            &e->arena,
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) %s\n"
            "{ .reg .b64 %%d<3>; .reg .b32 %%r<3>; ld.param.b64 %%d1, [p];\n"
            "mov.u32 %%r1, %%nctaid.x; mov.u32 %%r2, %%cluster_nctarank;\n"
            "mov.b64 %%d2, {%%r1, %%r2}; st.global.b64 [%%d1], %%d2; ret; }",
            bounds[k]);
        cr_assert(sim_read(e, ptx), "%s", e->error.text);
        memcpy(e->launch.cluster, (uint32_t[]){k == 2 ? 2 : 0, 1, 1}, sizeof e->launch.cluster);
        cr_assert(sim_launch(e, 4, 1), "%s", sim_fault(e));
        cr_expect_eq(e->word[0], (k == 3 ? 8u : 4u) | UINT64_C(2) << 32);
        sim_close(e);
    }
}

Test(sim_cluster, launches_that_do_not_fit) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, sim_body(e, "", "")));
    memcpy(e->launch.cluster, (uint32_t[]){2, 1, 1}, sizeof e->launch.cluster);
    cr_assert(!sim_launch(e, 3, 32));
    cr_expect(strstr(sim_fault(e), "a grid of 3 x 1 x 1 blocks is no multiple"), "%s",
              sim_fault(e));
    memcpy(e->launch.cluster, (uint32_t[]){17, 1, 1}, sizeof e->launch.cluster);
    cr_assert(!sim_launch(e, 17, 32));
    cr_expect(strstr(sim_fault(e), "a cluster has 1 to 16 blocks"), "%s", sim_fault(e));
    cr_assert(sim_read(e, ".version 8.0\n.target sm_90a\n.address_size 64\n"
                          ".entry k(.param .u64 p) .maxclusterrank 4 { ret; }"));
    memcpy(e->launch.cluster, (uint32_t[]){8, 1, 1}, sizeof e->launch.cluster);
    cr_assert(!sim_launch(e, 8, 32));
    cr_expect(strstr(sim_fault(e), "a cluster has 1 to 4 blocks"), "%s", sim_fault(e));
    sim_close(e);
}

// Each architecture has its own shared memory, and what of it variables may take.
Test(sim_cluster, shared_memory_that_does_not_fit) {
    static const struct {
        const char *target;
        uint32_t fixed, all;
    } known[] = {{"sm_80", 49152, 166912},
                 {"sm_86", 49152, 101376},
                 {"sm_89", 49152, 101376},
                 {"sm_90", 232448, 232448},
                 {"sm_90a", 232448, 232448}};
    static const char form[] =
        ".version 8.0\n.target %s\n.address_size 64\n.extern .shared .b8 dyn[];\n"
        ".shared .b8 other[16000];\n.shared .align 16 .b8 s[%u];\n"
        ".func f() { .reg .b32 r; mov.u32 r, s; ret; }\n"
        ".entry k(.param .u64 p) { .reg .b32 r; mov.u32 r, dyn; %s ret; }";
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        for (unsigned way = 0; way < 3; way++) { // by the entry, by a function, by nobody
            const char *use = way == 0 ? "mov.u32 r, s;" : way == 1 ? "call f;" : "";
            for (unsigned more = 0; more < 2; more++) {
                sim_env *e = sim_open();
                const uint32_t fixed = known[k].fixed + more;
                cr_assert(sim_read(e, tk_format(&e->arena, form, known[k].target, fixed, use)));
                e->launch.shared = known[k].all - known[k].fixed;
                const bool ok = sim_launch(e, 1, 32);
                cr_expect(ok == (!more || way == 2), "%s, %u: %s", known[k].target, way,
                          sim_fault(e));
                cr_expect(ok || strstr(sim_fault(e), "for variables of fixed size"), "%s",
                          sim_fault(e));
                sim_close(e);
                e = sim_open();
                cr_assert(sim_read(e, tk_format(&e->arena, form, known[k].target, 1024u, "")));
                e->launch.shared = known[k].all + more;
                cr_expect(sim_launch(e, 1, 32) == !more, "%s: %s", known[k].target, sim_fault(e));
                cr_expect(!more || strstr(sim_fault(e), "has at most"), "%s", sim_fault(e));
                sim_close(e);
            }
        }
    }
}

#define MINE "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1; mov.u32 %r2, %cluster_ctarank;\n"
#define NEXT                                                                                       \
    "mov.u32 %r4, %cluster_nctarank; add.u32 %r3, %r2, 1; rem.u32 %r3, %r3, %r4;\n"                \
    "mapa.shared::cluster.u32 %r5, %r1, %r3;\n"
#define PUT  "mad.lo.u32 %r6, %r2, 1000, %t; st.shared.b32 [%r1], %r6;\n"
#define TILE ".shared .align 16 .b8 tile[1024];"

// What each thread finds in the next block's memory, by every way to get there.
Test(sim_cluster, loads) {
    static const char *const load[] = {
        "ld.shared::cluster.b32 %r7, [%r5];",
        "cvt.u64.u32 %d1, %r5; cvta.shared::cluster.u64 %d1, %d1; ld.b32 %r7, [%d1];",
        "cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mapa.u64 %d1, %d1, %r3; ld.b32 %r7, "
        "[%d1];",
        "mapa.shared::cluster.u32 %r8, tile, %r3; mad.lo.u32 %r8, %t, 4, %r8;"
        "ld.shared::cluster.b32 %r7, [%r8];",
        "atom.shared::cluster.add.u32 %r7, [%r5], 0;",
        "getctarank.shared::cluster.u32 %r8, %r5; mapa.shared::cluster.u32 %r8, %r1, %r8;"
        "ld.relaxed.cluster.shared::cluster.b32 %r7, [%r8];"};
    for (unsigned k = 0; k < sizeof load / sizeof *load; k++) {
        sim_env *e = sim_open();
        const char *text = tk_format(&e->arena, "%s%s%s", AT MINE NEXT PUT MEET, load[k],
                                     MEET "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;");
        sim_env *f = good(8, 4, 64, TILE, text);
        for (uint64_t b = 0; b < 8; b++) {
            for (uint64_t t = 0; t < 64; t++) {
                uint64_t got = f->word[64 * b + t], want = (b + 1) % 4 * 1000 + t;
                cr_assert_eq(got, want, "%s: block %u thread %u: %u", load[k], (unsigned)b,
                             (unsigned)t, (unsigned)got);
            }
        }
        sim_close(f);
        sim_close(e);
    }
}

Test(sim_cluster, stores_and_updates) {
    static const char text[] = AT MINE NEXT
        "mov.b32 %r6, 0; st.shared.b32 [%r1], %r6; add.u32 %r9, %r1, 512; st.shared.b32 [%r9], "
        "%r6;\n" MEET "mad.lo.u32 %r6, %r2, 1000, %t; st.shared::cluster.b32 [%r5+512], %r6;\n"
        "mov.u32 %r8, tile; mapa.shared::cluster.u32 %r8, %r8, 0;\n"
        "red.shared::cluster.add.u32 [%r8], 1;\n"
        "red.relaxed.cluster.shared::cluster.add.u32 [%r8+4], %t;\n" MEET
        "ld.shared.b32 %r7, [%r9]; ld.shared.b32 %r10, [tile]; mad.lo.u32 %r7, %r10, 10000, %r7;\n"
        "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;";
    sim_env *e = good(6, 3, 64, TILE, text);
    for (uint64_t b = 0; b < 6; b++) {
        for (uint64_t t = 0; t < 64; t++) {
            uint64_t want = (b + 2) % 3 * 1000 + t + (b % 3 == 0 ? 1920000 : 0);
            cr_assert_eq(e->word[64 * b + t], want, "block %u thread %u: %u", (unsigned)b,
                         (unsigned)t, (unsigned)e->word[64 * b + t]);
        }
    }
    sim_close(e);
}

Test(sim_cluster, isspacep) {
    static const char text[] = AT MINE NEXT
        "cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mapa.u64 %d2, %d1, %r3;\n"
        "isspacep.shared %p1, %d1; isspacep.shared::cluster %p2, %d1; isspacep.shared %p3, %d2;\n"
        "isspacep.shared::cluster %p4, %d2; isspacep.global %p5, %d2;\n"
        "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 10, 0, %p2; selp.b32 %r3, 100, 0, %p3;\n"
        "selp.b32 %r4, 1000, 0, %p4; selp.b32 %r5, 10000, 0, %p5; add.u32 %r1, %r1, %r2;\n"
        "add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5;\n"
        "cvt.u64.u32 %d3, %r1; st.global.b64 [%at], %d3;";
    sim_env *e = good(2, 2, 1, TILE, text);
    cr_expect_eq(e->word[1], 1011, "%u", (unsigned)e->word[1]);
    sim_close(e);
}

// Threads of a warp arrive one by one; a block whose threads have ended counts as arrived.
Test(sim_cluster, barrier) {
    sim_env *e =
        good(4, 2, 40, TILE,
             AT MINE NEXT PUT "setp.lt.u32 %p1, %t, 7; @%p1 bra LATE;\n"
                              "ON: barrier.cluster.arrive; barrier.cluster.wait.acquire;\n"
                              "ld.shared::cluster.b32 %r7, [%r5]; bra.uni OUT;\n"
                              "LATE: add.s32 %r8, %r8, 1; bra ON;\n"
                              "OUT: barrier.cluster.arrive.release; barrier.cluster.wait;\n"
                              "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;");
    for (uint64_t k = 0; k < 160; k++) {
        cr_assert_eq(e->word[k], (k / 40 + 1) % 2 * 1000 + k % 40);
    }
    sim_close(e);
    sim_close(good(2, 2, 64, TILE,
                   "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; @%p1 exit;" MEET MEET));
    sim_close(good(2, 2, 64, TILE, MEET "barrier.cluster.arrive.aligned;"));
}

Test(sim_cluster, faults) {
    fault(2, 32, MINE NEXT MEET "ld.shared::cluster.b32 %r7, [%r5];" MEET, "uninitialised",
          "of the cluster, which nobody has written");
    fault(2, 32,
          MINE NEXT PUT "barrier.cluster.arrive.relaxed.aligned; "
                        "barrier.cluster.wait.aligned;\n"
                        "ld.shared::cluster.b32 %r7, [%r5];" MEET,
          "race", "of the cluster");
    // The block ends before the others are done with its memory.
    fault(2, 32, MINE NEXT PUT MEET "ld.shared::cluster.b32 %r7, [%r5];", "ended", "block");
    fault(2, 32, MINE NEXT PUT MEET "st.shared::cluster.b32 [%r5], 1;", "ended", "block");
    fault(2, 32,
          MINE NEXT PUT MEET
          "st.shared::cluster.b32 [%r5], 1;\n"
          "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
          "ended", "block");
    fault(2, 32, MINE "mapa.shared::cluster.u32 %r5, %r1, 2;", "out-of-bounds",
          "block 2 of a cluster of 2");
    fault(2, 32, MINE "add.u32 %r5, %r1, 0x3000000; ld.shared::cluster.b32 %r7, [%r5];",
          "out-of-bounds", "block 2 of a cluster of 2");
    fault(2, 32, MINE NEXT "ld.shared::cluster.b32 %r7, [%r5+8000];" MEET, "out-of-bounds",
          "4 bytes of shared memory");
    fault(2, 32, MINE NEXT "ld.shared.b32 %r7, [%r5];" MEET, "out-of-bounds", "shared memory");
    fault(2, 32, "mapa.u64 %d1, %base, 1;", "out-of-bounds", "is no address of shared memory");
    fault(2, 32, "barrier.cluster.wait.aligned;", "barrier-operands", "without having arrived");
    fault(2, 32, "barrier.cluster.arrive; barrier.cluster.arrive;" MEET, "barrier-operands",
          "again, without a wait");
    fault(2, 32,
          "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 1;\n"
          "@%p1 bar.sync 1, 64; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
          "barrier-operands", "a barrier for 64 threads");
    fault(2, 64,
          "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 1; setp.lt.u32 %p2, %t, 32;\n"
          "and.pred %p1, %p1, %p2; @%p1 bar.sync 1, 64;" MEET,
          "deadlock", "of the cluster waits at the barrier of the cluster, where 32 threads");
    fault(1, 32, "setp.lt.u32 %p1, %t, 5; @%p1 bra OUT;" MEET "OUT: bar.sync 0;",
          "divergent-barrier", "threads of its warp");
}

// ---- Barriers in another block's memory

#define INIT(count)                                                                                \
    "setp.eq.u32 %p1, %t, 0; mov.u32 %r20, bar; @%p1 mbarrier.init.shared.b64 [%r20], " count ";"  \
    "\n"
#define WAIT(parity)                                                                               \
    "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], " parity              \
    "; @!%p2 bra W;\n"

Test(sim_cluster, remote_arrivals) {
    static const char *const arrive[] = {
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];",
        "@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r21], 31;"
        "setp.eq.u32 %p3, %t, 5; @%p3 mbarrier.arrive.shared::cluster.b64 _, [%r21];",
        "@%p1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r21], 64;"
        "@!%p1 mbarrier.arrive.shared::cluster.b64 _, [%r21];"
        "@%p1 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r21], 64;"};
    for (unsigned k = 0; k < 3; k++) {
        sim_env *e = sim_open();
        const char *text =
            tk_format(&e->arena, "%s%s%s",
                      AT MINE NEXT INIT("32") MEET
                      "mad.lo.u32 %r6, %r2, 1000, %t; st.shared::cluster.b32 [%r5], %r6;\n"
                      "mapa.shared::cluster.u32 %r21, %r20, %r3; bar.warp.sync -1;\n",
                      arrive[k],
                      WAIT("0") "ld.shared.b32 %r7, [%r1];\n" MEET
                                "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;");
        sim_env *f = good(6, 3, 32, TILE ".shared .align 8 .b8 bar[8];", text);
        for (uint64_t b = 0; b < 6; b++) {
            cr_expect_eq(f->word[32 * b + 9], (b + 2) % 3 * 1000 + 9);
        }
        sim_close(f);
        sim_close(e);
    }
}

Test(sim_cluster, faults_of_barriers) {
    // The other block has not initialised it.
    fault(2, 32,
          MINE NEXT MEET "mov.u32 %r20, bar; mapa.shared::cluster.u32 %r21, %r20, %r3;\n"
                         "mbarrier.arrive.shared::cluster.b64 _, [%r21];" MEET,
          "uninitialised", "of the cluster");
    fault(2, 32,
          MINE NEXT INIT("32") MEET "mapa.shared::cluster.u32 %r21, %r20, %r3;\n"
                                    "mbarrier.arrive.shared::cta.b64 _, [%r21];" MEET,
          "out-of-bounds", "shared memory");
    fault(2, 32,
          MINE NEXT INIT("32") MEET "cvt.u64.u32 %d1, %r20; cvta.shared.u64 %d1, %d1;\n"
                                    "mapa.u64 %d1, %d1, %r3; mbarrier.arrive.b64 _, [%d1];" MEET,
          "mbarrier", "outside shared memory of the block");
    fault(
        2, 32, MINE NEXT INIT("33") MEET WAIT("0"), "deadlock",
        "warp 0 of block 1 of the cluster waits at an mbarrier (shared memory at 0x800 of block 1 "
        "of the cluster): phase 0 lacks 33 of 33 arrivals and 0 bytes");
    fault(1, 32, INIT("32") "@%p1 mbarrier.init.shared.b64 [%r20], 32;", "mbarrier",
          "an mbarrier is there already");
    fault(1, 32, INIT("32") "@%p1 st.shared.b32 [bar+4], 1;", "mbarrier",
          "'st.shared.b32' at shared memory at 0x804, where an mbarrier is");
    fault(1, 32,
          INIT("1") "@%p1 mbarrier.arrive.shared.b64 %d1, [bar];\n"
                    "@%p1 mbarrier.arrive.shared.b64 %d2, [bar];\n"
                    "@%p1 mbarrier.test_wait.shared.b64 %p2, [bar], %d1;",
          "mbarrier", "of phase 0 of the mbarrier, which is in phase 2");
    fault(1, 32,
          INIT("1") "mov.u32 %r9, 2;\n@%p1 mbarrier.test_wait.parity.shared.b64 %p2, [bar], %r9;",
          "mbarrier", "a parity of 2");
}

// A barrier's memory is free again after mbarrier.inval.
Test(sim_cluster, memory_of_barriers) {
    sim_close(good(1, 1, 32, ".shared .align 8 .b8 bar[8];",
                   INIT("1") "@%p1 mbarrier.inval.shared.b64 [bar]; @%p1 st.shared.b64 [bar], 1;\n"
                             "@%p1 mbarrier.init.shared.b64 [bar], 1;"));
}

Test(sim_cluster, architectures) {
    static const char *const text[] = {"barrier.cluster.wait;",
                                       "ld.shared::cluster.b32 %r1, [%r2];",
                                       "mapa.shared::cluster.u32 %r1, %r2, 0;",
                                       "cp.async.bulk.commit_group;",
                                       "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4;",
                                       "mbarrier.arrive.shared.b64 %d1, [%r1];"};
    for (unsigned k = 0; k < 6; k++) {
        sim_env *e = sim_open();
        const char *ptx = tk_format(&e->arena,
                                    ".version 7.0\n.target sm_80\n.address_size 64\n.entry k()\n"
                                    "{ .reg .b32 %%r<9>; .reg .b64 %%d<9>;\n%s ret; }",
                                    text[k]);
        bool ok = sim_read(e, ptx);
        cr_expect(ok == (k == 5), "%s", text[k]);
        cr_expect(ok || strstr(e->error.text, "needs .target sm_90"), "%s", e->error.text);
        sim_close(e);
    }
}

// ---- Copies between blocks

#define SHARED_TILES                                                                               \
    ".shared .align 128 .b8 tile[1024]; .shared .align 128 .b8 box[1024];"                         \
    ".shared .align 8 .b8 bar[8];"
// A barrier for `count` arrivals, of which one expects `bytes`; all blocks know it.
#define READY(count, bytes)                                                                        \
    "mov.u32 %r30, box; mad.lo.u32 %r31, %t, 4, %r30; st.shared.b32 [%r31], 0;\n" INIT(            \
        count) "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; bar.sync 0;\n" \
               "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r20], " bytes ";\n" MEET
#define REMOTE                                                                                     \
    "mapa.shared::cluster.u32 %r21, %r20, %r3; mapa.shared::cluster.u32 %r32, %r30, %r3;\n"
#define SHOW "ld.shared.b32 %r7, [%r31];\n" MEET "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;"

// Word t of the box in block b, in clusters of n blocks.
#define EACH_WORD(e, blocks, n, words, EXPR)                                                       \
    for (uint64_t block = 0; block < (blocks); block++) {                                          \
        for (uint64_t t = 0; t < (words); t++) {                                                   \
            uint64_t b = block % (n), got = (e)->word[64 * block + t];                             \
            cr_assert_eq(got, (uint64_t)(EXPR), "block %u word %u: %u", (unsigned)block,           \
                         (unsigned)t, (unsigned)got);                                              \
        }                                                                                          \
    }

Test(sim_cluster, copies) {
    sim_env *e =
        good(6, 3, 64, SHARED_TILES,
             AT MINE NEXT PUT "fence.proxy.async.shared::cta;\n" READY("1", "256") REMOTE
             "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r32], "
             "[%r1], 256, [%r21];\n" WAIT("0") SHOW);
    EACH_WORD(e, 6, 3, 64, (b + 2) % 3 * 1000 + t)
    sim_close(e);
}

Test(sim_cluster, reductions) {
    sim_env *e = good(6, 3, 64, SHARED_TILES,
                      AT MINE NEXT PUT "fence.proxy.async.shared::cta;\n" READY(
                          "1", "768") "mov.b32 %r3, 0;" REMOTE
                                      "setp.ne.u32 %p5, %r2, 0; setp.eq.u32 %p4, %t, 0;\n"
                                      "@%p4 "
                                      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::"
                                      "complete_tx::bytes.add.u32"
                                      " [%r32], [%r1], 256, [%r21];\n"
                                      "@%p5 bra DONE;" WAIT(
                                          "0") "ld.shared.b32 %r7, [%r31];\n"
                                               "cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;\n"
                                               "DONE:" MEET);
    EACH_WORD(e, 6, 3, 64, b == 0 ? 3000 + 3 * t : 0)
    sim_close(e);
}

Test(sim_cluster, stores_by_themselves) {
    static const char *const send[] = {
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r33], %r6, [%r21];",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r33], %r6, [%r21];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r33], "
        "%r6, [%r21];",
        "and.b32 %r8, %t, 3; setp.eq.u32 %p6, %r8, 0; add.u32 %r9, %r6, 1; add.u32 %r10, %r6, 2;\n"
        "add.u32 %r11, %r6, 3; @%p6 "
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%r33], {%r6, %r9, %r10, %r11}, [%r21];",
        "and.b32 %r8, %t, 1; setp.eq.u32 %p6, %r8, 0; add.u32 %r9, %r6, 1; mov.b64 %d5, {%r6, "
        "%r9};\ncvt.u64.u32 %d6, %r33; cvta.shared::cluster.u64 %d6, %d6; cvt.u64.u32 %d7, %r21;\n"
        "cvta.shared::cluster.u64 %d7, %d7;\n"
        "@%p6 st.async.mbarrier::complete_tx::bytes.b64 [%d6], %d5, [%d7];"};
    for (unsigned k = 0; k < sizeof send / sizeof *send; k++) {
        sim_env *f = sim_open();
        const char *text =
            tk_format(&f->arena, "%s%s%s",
                      AT MINE NEXT READY("1", "256") REMOTE
                      "mad.lo.u32 %r33, %t, 4, %r32; mad.lo.u32 %r6, %r2, 1000, %t;\n",
                      send[k], WAIT("0") SHOW);
        sim_env *e = good(6, 3, 64, SHARED_TILES, text);
        EACH_WORD(e, 6, 3, 64, (b + 2) % 3 * 1000 + t)
        sim_close(e);
        sim_close(f);
    }
}

// Block 0 of each cluster loads for all of them; others for some.
Test(sim_cluster, multicast) {
    static const char *const load[] = {
        "setp.eq.and.u32 %p4, %r2, 0, %p1; @%p4 cp.async.bulk.shared::cluster.global"
        ".mbarrier::complete_tx::bytes.multicast::cluster [%r30], [%d8], 256, [%r20], 7;",
        "mov.b16 %h1, 5; setp.eq.and.u32 %p4, %r2, 1, %p1; @%p4 cp.async.bulk.shared::cluster"
        ".global.mbarrier::complete_tx::bytes.multicast::cluster [%r30], [%d8], 256, [%r20], %h1;\n"
        "setp.eq.and.u32 %p4, %r2, 2, %p1; mov.b64 %d20, 0; mov.b32 %r34, 1;\n"
        "mapa.shared::cluster.u32 %r35, %r30, %r34; mapa.shared::cluster.u32 %r36, %r20, %r34;\n"
        "@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%r35], [%d8], 256, [%r36], %d20;"};
    for (unsigned k = 0; k < 2; k++) {
        sim_env *f = sim_open();
        const char *text = tk_format(
            &f->arena, "%s%s%s",
            AT MINE "add.s64 %d8, %base, 16384; mad.wide.u32 %d9, %t, 4, "
                    "%d8; add.u32 %r40, %t, 7; st.global.b32 [%d9], %r40;\n" READY("1", "256"),
            load[k], WAIT("0") SHOW);
        sim_env *e = good(6, 3, 64, SHARED_TILES, text);
        EACH_WORD(e, 6, 3, 64, t + 7 + 0 * b)
        sim_close(e);
        sim_close(f);
    }
}

// A block spins until the other one has got its bytes and says so.
Test(sim_cluster, spinning) {
    sim_close(good(
        2, 2, 32, SHARED_TILES,
        AT MINE NEXT READY("1", "64") REMOTE
        "setp.eq.u32 %p5, %r2, 0; @%p5 bra SPIN; @!%p1 bra OUT;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [tile], [%base], 64, [%r20], %d9;\n" WAIT(
            "0") "red.shared::cluster.add.u32 [%r32], 1; bra.uni OUT;\n"
                 "SPIN: atom.shared.add.u32 %r7, [box], 0; setp.eq.u32 %p6, %r7, 0;\n"
                 "@%p6 bra SPIN;\n"
                 "OUT: createpolicy.fractional.L2::evict_first.b64 %d9, 1.0;\n"
                 "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d9, 0f3F000000;\n"
                 "barrier.cluster.arrive; barrier.cluster.wait;"));
}

#define COPY_FAULT(text, id, words)                                                                \
    fault(2, 32, MINE NEXT PUT "fence.proxy.async.shared::cta; mov.u32 %r30, tile;\n" text, id,    \
          words)
#define SEND                                                                                       \
    "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r32+512], "     \
    "[tile], 128, [%r21];\n"
#define KNOWN "fence.mbarrier_init.release.cluster;" MEET REMOTE

Test(sim_cluster, faults_of_copies) {
    COPY_FAULT(INIT("1") KNOWN "mov.u32 %r21, %r20;" SEND MEET, "async-operands",
               "the mbarrier is in another block");
    COPY_FAULT(INIT("1") MEET REMOTE SEND MEET, "proxy", "fence.mbarrier_init");
    COPY_FAULT(INIT("1") KNOWN SEND "st.shared.b32 [tile], 77;" MEET, "race",
               "reads asynchronously");
    COPY_FAULT(INIT("1") KNOWN SEND
               "mov.b32 %r10, 0; Q: nanosleep.u32 9; add.u32 %r10, %r10, 1;\n"
               "setp.lt.u32 %p4, %r10, 300; @%p4 bra Q; @%p1 st.shared.b32 [tile], 77;" MEET,
               "race", "asynchronous");
    COPY_FAULT(INIT("1") KNOWN SEND "ld.shared.b32 %r9, [%r1+512];" MEET, "uninitialised",
               "nobody has written");
    COPY_FAULT(INIT("1") KNOWN "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                               "[%r5+512], %t, [%r20];" MEET,
               "async-operands", "the mbarrier is in another block");
    COPY_FAULT(INIT("1") KNOWN
               "st.async.mbarrier::complete_tx::bytes.b32 [%base], %t, [%base];" MEET,
               "out-of-bounds", "outside shared memory");
    COPY_FAULT(INIT("1") KNOWN
               "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [tile], [%base], 128, [%r20], 6;" MEET,
               "out-of-bounds", "block 2 of a cluster of 2");
    // Two blocks reduce into what a third one has not initialised.
    COPY_FAULT(INIT("1") KNOWN "red.async.relaxed.cluster.shared::cluster"
                               ".mbarrier::complete_tx::bytes.add.u32 [%r5+512], %t, [%r21];" MEET,
               "uninitialised", "nobody has written");
    // It is read before it has come.
    COPY_FAULT(
        "st.shared.b32 [%r1+512], 0;" INIT("32") KNOWN
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r5+512], %t, [%r21];\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r20], 4; ld.shared.b32 %r9, [%r1+512];\n" WAIT(
            "0") MEET,
        "race", "of the cluster");
}

// ---- Arrivals that wait for cp.async

Test(sim_cluster, arrivals_of_copies) {
    static const char *const arrive[] = {
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20];",
        "cp.async.mbarrier.arrive.shared.b64 [%r20]; mbarrier.arrive.shared.b64 _, [%r20];"};
    for (unsigned k = 0; k < 2; k++) {
        sim_env *f = sim_open();
        const char *text = tk_format(
            &f->arena, "%s%s%s",
            AT "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 16, %r1;\n"
               "add.s64 %d8, %base, 16384; mad.wide.u32 %d9, %t, 16, %d8; add.u32 %r40, %t, 7;\n"
               "st.global.v4.b32 [%d9], {%r40, %t, %t, %t};\n" INIT(
                   "64") "bar.sync 0;\n"
                         "cp.async.cg.shared.global [%r1], [%d9], 16;\n",
            arrive[k],
            WAIT("0") "xor.b32 %r9, %t, 37; mov.u32 %r10, tile; mad.lo.u32 %r10, %r9, 16, %r10;\n"
                      "ld.shared.b32 %r7, [%r10]; cvt.u64.u32 %d2, %r7; st.global.b64 [%at], %d2;");
        sim_env *e = good(1, 1, 64, TILE ".shared .align 8 .b8 bar[8];", text);
        for (uint64_t t = 0; t < 64; t++) {
            cr_assert_eq(e->word[t], (t ^ 37) + 7);
        }
        sim_close(e);
        sim_close(f);
    }
    fault(1, 64,
          INIT("64") "bar.sync 0; mad.lo.u32 %r1, %t, 16, %r1; mov.u32 %r1, tile;\n"
                     "mad.lo.u32 %r1, %t, 16, %r1; mad.wide.u32 %d9, %t, 16, %base;\n"
                     "cp.async.cg.shared.global [%r1], [%d9], 16; mbarrier.arrive.shared.b64 _, "
                     "[%r20];\n" WAIT("0") "ld.shared.b32 %r7, [tile];",
          "race", "asynchronously");
}

// ---- Order by flags and fences

#define FLAG ".shared .align 16 .b8 tile[1024]; .shared .align 4 .b8 flag[4];"
// Thread 0 hands a word over to the other block's thread 0: `give` and `take` are how.
static const char *hand_over(sim_env *e, const char *give, const char *take) {
    return tk_format(&e->arena,
                     "%sst.shared.b32 [flag], 0; mov.u32 %%r8, flag;\n%s"
                     "mapa.shared::cluster.u32 %%r9, %%r8, %%r3; setp.eq.u32 %%p1, %%r2, 0;\n"
                     "@%%p1 bra TAKE; st.shared::cluster.b32 [%%r5], 7; %s\nbra.uni END;\n"
                     "TAKE: %s setp.eq.u32 %%p2, %%r7, 0; @%%p2 bra TAKE;\n"
                     "ld.shared.b32 %%r6, [%%r1];\nEND: %s",
                     MINE NEXT, MEET, give, take, MEET);
}

Test(sim_cluster, flags) {
    static const char *const give[] = {
        "st.release.cluster.shared::cluster.b32 [%r9], 1;",
        "red.release.cluster.shared::cluster.add.u32 [%r9], 1;",
        "fence.acq_rel.cluster; st.relaxed.cluster.shared::cluster.b32 [%r9], 1;",
        "fence.sc.cluster; atom.shared::cluster.add.u32 %r10, [%r9], 1;"};
    static const char *const take[] = {
        "ld.acquire.cluster.shared::cta.b32 %r7, [%r8];",
        "atom.acq_rel.cluster.shared.add.u32 %r7, [%r8], 0;",
        "ld.relaxed.cluster.shared.b32 %r7, [%r8]; fence.acq_rel.cluster;",
        "ld.volatile.shared.b32 %r7, [%r8]; membar.gl;"};
    for (unsigned k = 0; k < 16; k++) {
        sim_env *e = sim_open();
        sim_close(good(2, 2, 1, FLAG, hand_over(e, give[k / 4], take[k % 4])));
        sim_close(e);
    }
}

// What is missing: an order on one side or the other, or the word is given before the value.
Test(sim_cluster, flags_that_order_nothing) {
    static const char *const give[] = {
        "st.release.cluster.shared::cluster.b32 [%r9], 1;",
        "st.relaxed.cluster.shared::cluster.b32 [%r9], 1; fence.acq_rel.cluster;",
        ("st.release.cluster.shared::cluster.b32 [%r9], 1; "
         "st.relaxed.cluster.shared::cluster.b32 [%r9], 2;")};
    static const char *const take[] = {"ld.relaxed.cluster.shared::cta.b32 %r7, [%r8];",
                                       "ld.acquire.cluster.shared::cta.b32 %r7, [%r8];",
                                       ("ld.acquire.cluster.shared::cta.b32 %r7, [%r8]; "
                                        "setp.eq.u32 %p2, %r7, 1; @%p2 bra TAKE;")};
    for (unsigned k = 0; k < 3; k++) {
        bool caught = false;
        for (uint64_t seed = 0; seed < 20 && !caught; seed++) {
            sim_env *e = sim_open();
            memcpy(e->launch.cluster, (uint32_t[]){2, 1, 1}, sizeof e->launch.cluster);
            e->launch.seed = seed;
            cr_assert(sim_read(e, sim_body(e, FLAG, hand_over(e, give[k], take[k]))));
            caught = !sim_launch(e, 2, 1);
            cr_expect(!caught || strcmp(e->result.fault.id, "uninitialised") == 0 ||
                          strcmp(e->result.fault.id, "race") == 0,
                      "%s", sim_fault(e));
            sim_close(e);
        }
        cr_expect(caught, "form %u", k);
    }
}

// A relaxed arrival is enough for barriers that fence.mbarrier_init has told of, and for what is
// before another fence; not for what is behind it. Relaxed arrivals at an mbarrier are alike.
Test(sim_cluster, relaxed_arrivals) {
#define RELAXED "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
    sim_close(
        good(2, 2, 32, TILE ".shared .align 8 .b8 bar[8];",
             MINE NEXT INIT("32") "fence.mbarrier_init.release.cluster;\n" RELAXED
                                  "mapa.shared::cluster.u32 %r21, %r20, %r3;\n"
                                  "mbarrier.arrive.shared::cluster.b64 _, [%r21];\n" WAIT("0")));
    sim_close(good(2, 2, 32, TILE,
                   MINE NEXT PUT "fence.acq_rel.cluster;\n" RELAXED
                                 "ld.shared::cluster.b32 %r7, [%r5];" MEET));
    fault(2, 32,
          MINE NEXT "fence.acq_rel.cluster;\n" PUT RELAXED
                    "ld.shared::cluster.b32 %r7, [%r5];" MEET,
          "race", "of the cluster");
#define GIVE(arrive, take)                                                                         \
    MINE NEXT INIT("32") "bar.sync 0; xor.b32 %r8, %t, 1; mov.u32 %r9, tile;\n" PUT arrive         \
                         "W: mbarrier.try_wait.parity." take                                       \
                         ".shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;\n"
#define TAKE "mad.lo.u32 %r8, %r8, 4, %r9; ld.shared.b32 %r7, [%r8];"
    fault(1, 32, GIVE("", "acquire.cta") TAKE, "deadlock", "waits at an mbarrier");
    fault(1, 32,
          GIVE("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n", "acquire.cta") TAKE,
          "race", "reads shared memory");
    fault(1, 32,
          GIVE("mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];\n", "relaxed.cta") TAKE,
          "race", "reads shared memory");
    sim_close(
        good(1, 1, 32, TILE ".shared .align 8 .b8 bar[8];",
             GIVE("fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n",
                  "relaxed.cta") "fence.acq_rel.cta;\n" TAKE));
}
