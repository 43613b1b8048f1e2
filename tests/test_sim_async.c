// SPDX-License-Identifier: Apache-2.0
// The simulator's asynchronous copies, and matrices between registers and shared memory.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

#define TILE ".shared .align 16 .b8 tile[2048];"
#define MINE "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 16, %r1;\n"
#define FROM "mad.wide.u32 %d1, %t, 16, %base; mad.wide.u32 %at, %t, 16, %base;\n"
#define OUT                                                                                        \
    "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r1];\n"                                              \
    "st.global.v4.b32 [%at+4096], {%r2, %r3, %r4, %r5};"

static sim_env *filled(uint64_t seed) {
    sim_env *e = sim_open();
    e->launch.seed = seed;
    for (uint64_t k = 0; k < SIM_WORDS; k++) {
        e->word[k] = (k + 1) * UINT64_C(0x0101010101010101);
    }
    return e;
}

// What `copy` leaves of 16 bytes: the first `given` of the source, then zeros.
static void copies(const char *copy, unsigned given) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = filled(seed);
        const char *text =
            tk_format(&e->arena, "%s%s%s", MINE FROM, copy, "cp.async.wait_all;\n" OUT);
        cr_assert(sim_run_shared(e, 64, TILE, text), "%s: %s", copy, sim_fault(e));
        for (uint64_t k = 0; k < 64; k++) {
            unsigned char want[16] = {0};
            memcpy(want, &e->word[2 * k], given);
            cr_expect_arr_eq(&e->word[512 + 2 * k], want, 16, "%s: thread %u", copy, (unsigned)k);
        }
        sim_close(e);
    }
}

Test(sim_async, forms) {
    copies("cp.async.cg.shared.global [%r1], [%d1], 16;", 16);
    copies("cp.async.ca.shared::cta.global.L2::128B [%r1], [%d1], 16;", 16);
    copies("cp.async.ca.shared.global [%r1], [%d1], 8; "
           "cp.async.ca.shared.global [%r1+8], [%d1+8], 4;"
           "cp.async.ca.shared.global [%r1+12], [%d1+12], 4;",
           16);
    copies("cp.async.cg.shared.global [%r1], [%d1], 16, 0;", 0);
    copies("mov.b32 %r9, 5; cp.async.cg.shared.global [%r1], [%d1], 16, %r9;", 5);
    copies("setp.lt.u32 %p1, %t, 99; cp.async.cg.shared.global [%r1], [%d1], 16, %p1;", 0);
    copies("setp.lt.u32 %p1, %t, 99; cp.async.cg.shared.global [%r1], [%d1], 16, !%p1;", 16);
    copies("mov.b64 %d9, 0; cp.async.cg.shared.global.L2::cache_hint [%r1], [%d1], 16, %d9;", 16);
}

static void fault(const char *text, const char *id, const char *words) {
    sim_env *e = filled(0);
    cr_assert(!sim_run_shared(e, 64, TILE, text), "no fault, expected %s: %s", id, text);
    cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
              sim_fault(e));
    sim_close(e);
}

#define COPY "cp.async.cg.shared.global [%r1], [%d1], 16;\n"

Test(sim_async, faults) {
    fault(MINE FROM COPY OUT, "race", "nobody has waited for it");
    fault(MINE FROM COPY "st.shared.b32 [%r1], %t;", "race", "it is issued here");
    fault(MINE FROM COPY COPY, "race", "writes shared memory");
    fault(MINE FROM COPY "cp.async.commit_group; cp.async.wait_group 1;" OUT, "race", "reads");
    fault(MINE FROM COPY "cp.async.wait_group 0;" OUT, "race", "reads"); // of no group
    // Another thread reads what this one has waited for, without a barrier.
    fault(MINE FROM COPY "cp.async.wait_all; xor.b32 %r2, %t, 1; sub.s32 %r2, %r2, %t;\n"
                         "mad.lo.s32 %r2, %r2, 16, %r1; ld.shared.b32 %r3, [%r2];",
          "race", "reads");
    // A slot that another thread may still read is overwritten.
    fault(MINE FROM COPY "cp.async.wait_all; bar.sync 0; ld.shared.b32 %r3, [tile];\n" COPY, "race",
          "writes");
    fault(MINE FROM "add.s64 %d1, %d1, 8;" COPY, "misaligned", "copies 16 bytes");
    fault(MINE FROM "add.s64 %d1, %d1, 32768;" COPY, "out-of-bounds", "global memory");
    fault(MINE FROM "add.s32 %r1, %r1, 2048;" COPY, "out-of-bounds", "shared memory");
    fault(MINE FROM "mov.u32 %r9, 5; cp.async.ca.shared.global [%r1], [%d1], 4, %r9;",
          "async-operands", "5 of them");
}

// The source is read at some moment up to the wait: what is written to it in between may or may not
// be copied.
Test(sim_async, source_is_read_at_any_moment) {
    bool before = false, after = false;
    for (uint64_t seed = 0; seed < 20; seed++) {
        sim_env *e = filled(seed);
        cr_assert(sim_run_shared(
            e, 1, TILE, MINE FROM COPY "st.global.b64 [%d1], 77; cp.async.wait_all;\n" OUT));
        before = before || e->word[512] == UINT64_C(0x0101010101010101);
        after = after || e->word[512] == 77;
        cr_expect(seed || e->word[512] == 77, "seed 0: late");
        sim_close(e);
    }
    cr_expect(before && after);
}

Test(sim_async, groups) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = filled(seed);
        cr_assert(sim_run_shared(e, 32, TILE,
                                 MINE FROM COPY "cp.async.commit_group;\n"
                                                "cp.async.cg.shared.global [%r1+512], [%d1], 16;\n"
                                                "cp.async.commit_group; cp.async.commit_group;\n"
                                                "cp.async.wait_group 2;\n" OUT),
                  "%s", sim_fault(e));
        cr_expect_eq(e->result.count[e->result.ncount - 10].async_bytes, 512);
        sim_close(e);
    }
}

// ---- Matrices

// Row t has elements 8t to 8t + 7.
#define ROWS                                                                                       \
    MINE "mul.lo.u32 %r2, %t, 0x80008; add.u32 %r2, %r2, 0x10000; add.u32 %r3, %r2, 0x20002;\n"    \
         "add.u32 %r4, %r3, 0x20002; add.u32 %r5, %r4, 0x20002;\n"                                 \
         "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5}; bar.warp.sync -1;\n"
#define FOUR "mad.wide.u32 %d1, %t, 16, %base; st.global.v4.b32 [%d1], {%r6, %r7, %r8, %r9};"

static void matrices(const char *inst, unsigned n, bool trans) {
    sim_env *e = sim_open();
    const char *text = tk_format(
        &e->arena, "%s%s%s", ROWS "mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 %r8, 0; mov.b32 %r9, 0;",
        inst, FOUR);
    cr_assert(sim_run_shared(e, 32, TILE, text), "%s: %s", inst, sim_fault(e));
    const uint32_t *got = (const uint32_t *)(const void *)e->word;
    for (uint32_t l = 0; l < 32; l++) {
        for (uint32_t j = 0; j < n; j++) {
            uint32_t g = l / 4, q = l % 4 * 2, low = 8 * (8 * j + (trans ? q : g));
            low += trans ? g : q;
            uint32_t want = low | (low + (trans ? 8 : 1)) << 16;
            cr_expect_eq(got[4 * l + j], want, "%s: lane %u, register %u: 0x%x", inst, l, j,
                         got[4 * l + j]);
        }
    }
    sim_close(e);
}

Test(sim_async, ldmatrix) {
    matrices("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r1];", 4, false);
    matrices("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, [%r1];", 4,
             true);
    matrices("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%r6, %r7}, [%r1];", 2, false);
    matrices("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r1];", 1, true);
    matrices("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];"
             "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r10;",
             1, true);
}

Test(sim_async, stmatrix) {
    static const char *const form[] = {"", ".trans"};
    for (unsigned k = 0; k < 2; k++) {
        sim_env *e = sim_open();
        const char *text = tk_format(
            &e->arena, "%sldmatrix.sync.aligned.m8n8.x4%s%sstmatrix.sync.aligned.m8n8.x4%s%s", ROWS,
            form[k], ".shared.b16 {%r10, %r11, %r12, %r13}, [%r1];", form[k],
            ".shared.b16 [%r1+512], {%r10, %r11, %r12, %r13}; bar.warp.sync -1;"
            "ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r1+512];" FOUR);
        cr_assert(sim_run_shared(e, 32, TILE, text), "%s", sim_fault(e));
        const uint16_t *got = (const uint16_t *)(const void *)e->word;
        for (unsigned x = 0; x < 256; x++) {
            cr_expect_eq(got[x], x, "element %u: %u", x, got[x]);
        }
        sim_close(e);
    }
}

Test(sim_async, matrices_take_whole_warps) {
    fault(MINE "setp.lt.u32 %p1, %t, 40; @!%p1 exit;\n"
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [tile];",
          "uninitialised", "reads");
    fault(MINE "st.shared.v4.b32 [%r1], {%t, %t, %t, %t}; setp.lt.u32 %p1, %t, 8; @!%p1 exit;\n"
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
          "membership", "takes a whole warp");
    fault(MINE "add.s32 %r1, %r1, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
          "misaligned", "16 bytes");
    fault("mov.b64 %d1, %base; ldmatrix.sync.aligned.m8n8.x1.b16 {%r2}, [%d1];", "out-of-bounds",
          "outside shared memory");
}

// ---- Barriers in shared memory

#define BAR ".shared .align 8 .b8 tile[16];"
#define INIT(count)                                                                                \
    "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared::cta.b64 [tile], " count "; bar.sync 0;\n"

Test(sim_async, mbarrier_states) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        cr_assert(
            sim_run_shared(e, 1, BAR,
                           INIT("3") "mbarrier.arrive.shared.b64 %d1, [tile];\n"
                                     "mbarrier.pending_count.b64 %r1, %d1;\n"
                                     "mbarrier.test_wait.shared.b64 %p2, [tile], %d1;\n"
                                     "selp.b32 %r2, 10, 0, %p2; add.s32 %r1, %r1, %r2;\n"
                                     "mbarrier.arrive.noComplete.shared.b64 %d2, [tile], 1;\n"
                                     "mbarrier.arrive_drop.shared.b64 %d2, [tile];\n"
                                     "mbarrier.test_wait.shared.b64 %p2, [tile], %d1;\n"
                                     "selp.b32 %r2, 100, 0, %p2; add.s32 %r1, %r1, %r2;\n"
                                     "mbarrier.arrive.shared.b64 _, [tile], 2;\n" // two are left
                                     "mbarrier.test_wait.parity.shared.b64 %p2, [tile], 1;\n"
                                     "selp.b32 %r2, 1000, 0, %p2; add.s32 %r1, %r1, %r2;\n"
                                     "mbarrier.inval.shared.b64 [tile];\n"
                                     "cvt.u64.u32 %d3, %r1; st.global.b64 [%at], %d3;"),
            "%s", sim_fault(e));
        cr_expect_eq(e->word[0], 1103, "%u", (unsigned)e->word[0]);
        sim_close(e);
    }
}

static void barrier_fault(const char *text, const char *id, const char *words) {
    sim_env *e = sim_open();
    cr_assert(!sim_run_shared(e, 64, BAR, text), "no fault, expected %s: %s", id, text);
    cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
              sim_fault(e));
    sim_close(e);
}

#define WAIT(parity)                                                                               \
    "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [tile], " parity "; @!%p2 bra W;"

Test(sim_async, mbarrier_faults) {
    barrier_fault("mbarrier.arrive.shared.b64 _, [tile];", "uninitialised", "nobody has written");
    barrier_fault(INIT("64") "mbarrier.arrive.shared.b64 _, [tile+8];", "uninitialised", "reads");
    barrier_fault("st.shared.b64 [tile], 0; bar.sync 0; mbarrier.arrive.shared.b64 _, [tile];",
                  "mbarrier", "there is no mbarrier");
    barrier_fault(INIT("0"), "mbarrier", "for 0 arrivals");
    barrier_fault(INIT("64") "mbarrier.arrive.shared.b64 _, [tile], 65;", "mbarrier-overflow",
                  "65 arrive at an mbarrier for 64, of which 64 are left");
    barrier_fault(INIT("64") "mbarrier.arrive_drop.shared.b64 _, [tile];", "mbarrier-overflow",
                  "1 arrive for good at an mbarrier for 1; nobody would be left");
    barrier_fault(INIT("1") "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [tile], 2000000;",
                  "mbarrier-overflow", "2000000 bytes");
    barrier_fault(INIT("65") "mbarrier.arrive.shared.b64 _, [tile];" WAIT("0"), "deadlock",
                  "waits at an mbarrier");
    barrier_fault(INIT("64") "mbarrier.arrive.expect_tx.shared.b64 _, [tile], 16;" WAIT("0"),
                  "deadlock", "waits at an mbarrier");
    barrier_fault("setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [tile], 64;\n"
                  "mbarrier.arrive.shared.b64 _, [tile];",
                  "race", "reads shared memory");
    barrier_fault("mbarrier.init.b64 [%base], 64;", "mbarrier", "outside shared memory");
}

// ---- Bulk copies

#define BULK_SHARED ".shared .align 16 .b8 tile[64]; .shared .align 8 .b8 bar[8];"
#define BULK_BEGIN                                                                                 \
    "mov.u32 %r1, tile; mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
#define BULK_LOAD                                                                                  \
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%base], 64, [bar];\n"
#define BULK_STORE "cp.async.bulk.global.shared::cta.bulk_group [%base+64], [%r1], 64;\n"

static void bulk_fault(const char *text, const char *id, const char *words) {
    sim_env *e = filled(0);
    cr_assert(!sim_run_shared(e, 1, BULK_SHARED, text), "no fault, expected %s: %s", id, text);
    cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
              sim_fault(e));
    sim_close(e);
}

#define BULK_WAIT "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n"
#define EXPECT    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], "

Test(sim_async, bulk) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = filled(seed);
        cr_assert(sim_run_shared(e, 1, BULK_SHARED,
                                 BULK_BEGIN EXPECT "64;" BULK_LOAD BULK_WAIT BULK_STORE
                                                   "cp.async.bulk.commit_group;"
                                                   "cp.async.bulk.wait_group 0;"),
                  "%s", sim_fault(e));
        cr_expect_arr_eq(&e->word[0], &e->word[8], 64);
        sim_close(e);
    }
    bulk_fault(BULK_BEGIN EXPECT "64;" BULK_LOAD, "unfinished", "writes its shared memory");
    bulk_fault(BULK_BEGIN EXPECT "64;" BULK_LOAD "ld.shared.b32 %r2, [%r1];", "race", "reads");
    bulk_fault(BULK_BEGIN EXPECT "80;" BULK_LOAD BULK_WAIT, "deadlock", "waits at an mbarrier");
    bulk_fault("mov.u32 %r1, tile; mbarrier.init.shared.b64 [bar], 1;" BULK_LOAD, "proxy",
               "fence.mbarrier_init");
    bulk_fault(BULK_BEGIN "add.s32 %r1, %r1, 8;" BULK_LOAD, "misaligned", "16 bytes");
    bulk_fault(BULK_BEGIN "add.s32 %r1, %r1, 16;" BULK_LOAD, "out-of-bounds", "shared memory");
    bulk_fault("mov.u32 %r9, 24;\n"
               "cp.async.bulk.global.shared::cta.bulk_group [%base], [tile], %r9;",
               "async-operands", "24 bytes");
    bulk_fault("mov.u32 %r1, tile; st.shared.b64 [%r1], 1;"
               "cp.async.bulk.global.shared::cta.bulk_group [%base], [%r1], 16;",
               "uninitialised", "reads");
    bulk_fault("mov.u32 %r1, tile; st.shared.v2.b64 [%r1], {1, 2};"
               "cp.async.bulk.global.shared::cta.bulk_group [%base], [%r1], 16;",
               "proxy", "fence.proxy.async");
    bulk_fault("mov.u32 %r1, tile; st.shared.v2.b64 [%r1], {1, 2}; fence.proxy.async;"
               "cp.async.bulk.global.shared::cta.bulk_group [%base], [%r1], 16;"
               "st.shared.b64 [%r1], 3;",
               "race", "reads asynchronously");
}
