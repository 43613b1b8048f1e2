// SPDX-License-Identifier: Apache-2.0
// What a fence makes of relaxed accesses: which direction it orders, of whose accesses, and in
// which memory. Each table is of programs that differ in one fence.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 5 };

// Runs blocks of 64 threads, all in one cluster, under each seed: silent under all, or a fault of
// this id under all.
static void check(uint32_t blocks, const char *shared, const char *text, const char *id) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_env *e = sim_open();
        e->launch.cluster[0] = blocks;
        e->launch.cluster[1] = e->launch.cluster[2] = 1;
        e->launch.seed = seed;
        cr_assert(sim_read(e, sim_body(e, shared, text)), "%u: %s", e->error.at.ptx_line,
                  e->error.text);
        bool ok = sim_launch(e, blocks, 64);
        cr_expect(id ? !ok && strcmp(e->result.fault.id, id) == 0 : ok,
                  "seed %u: %s, expected %s:\n%s", (unsigned)seed, sim_fault(e), id ? id : "none",
                  text);
        sim_close(e);
    }
}

// ---- Directions

#define MAP_ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%base], 128;\n"
#define MAP_RELEASE "fence.proxy.tensormap::generic.release.gpu;\n"

static const struct {
    const char *text;
    bool releases, acquires;
} fences[] = {
    {"", false, false},
    {"fence.acq_rel.cta;\n", true, true},
    {"fence.sc.cta;\n", true, true},
    {"fence.cta;\n", true, true},
    {"membar.cta;\n", true, true},
    {"fence.release.cta;\n", true, false},
    {"fence.acquire.cta;\n", false, true},
    {"fence.release.sync_restrict::shared::cta.cluster;\n", true, false},
    {"fence.acquire.sync_restrict::shared::cluster.cluster;\n", false, true},
    {"fence.mbarrier_init.release.cluster;\n", false, false},
    {MAP_RELEASE, true, false},
    {MAP_ACQUIRE, false, true},
    {"fence.proxy.async;\n", false, false},
    {"fence.proxy.alias;\n", false, false},
};
enum { FENCES = sizeof fences / sizeof *fences };

#define DATA                                                                                       \
    ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b8 bar[8]; .shared .align 8 .b8 "        \
    "flag[8];"
#define BEGIN                                                                                      \
    "mov.u32 %r1, tile; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, bar; mov.u32 %r4, flag;\n"     \
    "setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %t, 32; setp.eq.u32 %p4, %t, 1;\n"                   \
    "mad.lo.u32 %r5, %t, 4, %r1; setp.eq.u32 %p5, %r2, 0;\n"                                       \
    "@%p1 st.shared.b32 [%r4], 0; bar.sync 0;\n"
// The same places in the other of two blocks.
#define OTHER                                                                                      \
    "xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r5, %r6;\n"                               \
    "mapa.shared::cluster.u32 %r8, %r3, %r6; mapa.shared::cluster.u32 %r9, %r1, %r6;\n"            \
    "mapa.shared::cluster.u32 %r11, %r4, %r6;\n"

// Thread 0 writes and raises a flag, thread 32 sees it and reads; a fence before the one, a fence
// behind the other.
Test(sim_fences, directions) {
    for (unsigned k = 0; k < FENCES * FENCES; k++) {
        unsigned give = k / FENCES, take = k % FENCES;
        sim_env *f = sim_open();
        const char *text = tk_format(
            &f->arena, "%s@%%p2 bra TAKE;\n@!%%p1 bra END;\nst.shared.b32 [%%r1], 77;\n%s%s%s%s",
            BEGIN, fences[give].text,
            "st.relaxed.cta.shared.b32 [%r4], 1; bra END;\n"
            "TAKE: ld.relaxed.cta.shared.b32 %r9, [%r4]; setp.eq.u32 %p3, %r9, 0; @%p3 bra TAKE;\n",
            fences[take].text, "ld.shared.b32 %r10, [%r1];\nEND:\n");
        check(1, DATA, text, fences[give].releases && fences[take].acquires ? NULL : "race");
        sim_close(f);
    }
}

// The same by the relaxed arrival of a cluster's barrier, whose wait acquires.
#define RELAXED "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
#define MEET    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

Test(sim_fences, relaxed_arrivals) {
    for (unsigned k = 0; k < FENCES; k++) {
        sim_env *f = sim_open();
        const char *text =
            tk_format(&f->arena, "%s%s%s", BEGIN OTHER "st.shared.b32 [%r5], %t;\n", fences[k].text,
                      RELAXED "ld.shared::cluster.b32 %r10, [%r7];\n" MEET);
        check(2, DATA, text, fences[k].releases ? NULL : "race");
        sim_close(f);
    }
}

// ---- fence.mbarrier_init

#define INIT "@%p1 mbarrier.init.shared.b64 [%r3], 64;\n"
#define TELL "fence.mbarrier_init.release.cluster;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra W;\n"
#define REMOTE                                                                                     \
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\n" WAIT MEET "bar.sync 0;\n"
#define LOCAL                                                                                      \
    "mbarrier.arrive.shared.b64 _, [%r3];\n"                                                       \
    "L: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra L;\n" MEET
#define AGAIN                                                                                      \
    LOCAL "@%p1 mbarrier.inval.shared.b64 [%r3];\n@%p1 mbarrier.init.shared.b64 [%r3], 64;\n"
// By a flag of the other block.
#define FLAG                                                                                       \
    MEET INIT                                                                                      \
        "@%p1 " TELL "bar.sync 0;\n"                                                               \
        "@%p1 st.relaxed.cluster.shared::cluster.b32 [%r11], 1;\n"                                 \
        "F: ld.relaxed.cluster.shared.b32 %r12, [%r4]; setp.eq.u32 %p6, %r12, 0; @%p6 bra F;\n"

Test(sim_fences, inits) {
    static const struct {
        const char *text, *id;
    } rows[] = {
        {INIT TELL RELAXED REMOTE, NULL},
        {INIT "@%p1 " TELL RELAXED REMOTE, NULL},
        {INIT "bar.sync 0; @%p1 " TELL RELAXED REMOTE, NULL},
        {INIT TELL RELAXED LOCAL, NULL},
        {INIT MEET REMOTE, NULL},
        {INIT "fence.acq_rel.cluster;\n" RELAXED REMOTE, NULL},
        {INIT "bar.sync 0; @%p4 fence.acq_rel.cluster;\n" RELAXED REMOTE, NULL},
        {INIT RELAXED REMOTE, "race"},
        {INIT RELAXED LOCAL, "race"},
        {TELL INIT RELAXED REMOTE, "race"},
        // Another thread's fence is not of this init, also where it comes behind it.
        {INIT "bar.sync 0; @%p4 " TELL RELAXED REMOTE, "race"},
        {INIT "bar.sync 0; @%p2 " TELL RELAXED REMOTE, "race"},
        // Nor is a fence of the init before.
        {INIT TELL RELAXED AGAIN RELAXED REMOTE, "race"},
        {INIT TELL RELAXED AGAIN TELL RELAXED REMOTE, NULL},
        {FLAG "fence.acquire.cluster;\n" REMOTE, NULL},
        {FLAG "@%p1 fence.acquire.cluster; bar.sync 0;\n" REMOTE, NULL},
        {FLAG "fence.release.cluster;\n" REMOTE, "race"},
        {FLAG TELL REMOTE, "race"},
        {FLAG REMOTE, "race"},
        // It is of nothing else: a word beside the mbarrier, before it and after it.
        {"@%p1 st.shared.b32 [%r1], 7;\n" INIT TELL RELAXED
         "ld.shared::cluster.b32 %r10, [%r9];\n" MEET,
         "race"},
        {INIT "@%p1 st.shared.b32 [%r1], 7;\n" TELL RELAXED "ld.shared.b32 %r10, [%r1];\n" MEET,
         "race"},
        {INIT TELL "@%p1 st.shared.b32 [%r1], 7;\n" RELAXED "ld.shared.b32 %r10, [%r1];\n" MEET,
         "race"},
        {"@%p1 st.shared.b32 [%r1], 7;\n@%p1 fence.acq_rel.cluster;\n" INIT TELL RELAXED
         "ld.shared.b32 %r10, [%r1];\n" REMOTE,
         NULL}, // the other fence's
        {INIT TELL
         "@%p1 mbarrier.inval.shared.b64 [%r3]; @%p1 st.shared.b64 [%r3], %base;\n" TELL RELAXED
         "ld.shared.b64 %d1, [%r3];\n" MEET,
         "race"},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        sim_env *f = sim_open();
        check(2, DATA, tk_format(&f->arena, "%s%s", BEGIN OTHER, rows[k].text), rows[k].id);
        sim_close(f);
    }
}

// Copies that tell an mbarrier of the other block.
#define INIT_1 "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n"
#define LOAD                                                                                       \
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "                      \
    "[%r9], [%base], 128, [%r8];\n"                                                                \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n" WAIT MEET

Test(sim_fences, inits_for_copies) {
    static const struct {
        const char *text, *id;
    } rows[] = {{"@%p1 " TELL RELAXED, NULL},
                {"@%p1 " TELL MEET, NULL},
                {RELAXED, "race"},
                {MEET, "proxy"},
                {"bar.sync 0; @%p4 " TELL RELAXED, "race"},
                {"@%p1 fence.acq_rel.cluster;\n" RELAXED, "proxy"}};
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        sim_env *f = sim_open();
        const char *text = tk_format(&f->arena, "%s%s%s", BEGIN OTHER INIT_1, rows[k].text, LOAD);
        check(2, DATA, text, rows[k].id);
        sim_close(f);
    }
}

// ---- .sync_restrict

#define OWN      "fence.release.sync_restrict::shared::cta.cluster;\n"
#define ALL      "fence.acq_rel.cluster;\n"
#define NOTHING  "fence.proxy.alias;\n"
#define PUT      "st.shared.b32 [%r5], %t;\n" // to the own block's memory
#define GET      "ld.shared.b32 %r10, [%r5];\n"
#define OVER     "st.shared.b32 [%r5], 5;\n"
#define PUT_FAR  "st.shared::cluster.b32 [%r7], %t;\n" // to the other's
#define GET_FAR  "ld.shared::cluster.b32 %r10, [%r7];\n"
#define OVER_FAR "st.shared::cluster.b32 [%r7], 5;\n"
// Thread 0 of block 1 writes to block 0's memory and tells that to thread 0 there.
#define THERE                                                                                      \
    MEET "@!%p1 bra J; @%p5 bra G;\n"                                                              \
         "st.shared::cluster.b32 [%r9], 1; st.release.cluster.shared::cluster.b32 [%r11], 1;\n"    \
         "bra J;\nG: ld.acquire.cluster.shared.b32 %r12, [%r4]; setp.eq.u32 %p6, %r12, 0;\n"       \
         "@%p6 bra G;\n"

// What a release of the own block's memory hands over, beside the one of all and none.
Test(sim_fences, own_memory) {
    static const struct {
        const char *before, *after;
        const char *own, *all, *none; // the faults
    } rows[] = {
        {PUT, RELAXED GET_FAR, NULL, NULL, "race"},
        {MEET PUT_FAR, RELAXED GET, "race", NULL, "race"},
        {PUT MEET GET, RELAXED OVER_FAR, NULL, NULL, "race"},
        {PUT MEET GET_FAR, RELAXED OVER, "race", NULL, "race"},
        // A fence before it is as good as it was, and what comes to lie behind this one is no less.
        {MEET PUT_FAR ALL, RELAXED GET, NULL, NULL, NULL},
        {MEET PUT_FAR ALL "st.shared.b32 [%r5+512], 1;\n",
         RELAXED GET "ld.shared::cluster.b32 %r10, [%r7+512];\n", NULL, NULL, "race"},
        // What other threads have done, known by a barrier of the block; and threads of the other.
        {PUT "bar.sync 0;\n@%p1 ", RELAXED GET_FAR, NULL, NULL, "race"},
        {MEET PUT_FAR "bar.sync 0;\n@%p1 ", RELAXED GET, "race", NULL, "race"},
        {THERE, "J: " RELAXED "@%p5 bra K; @%p2 ld.shared::cluster.b32 %r10, [%r9]; K:", NULL, NULL,
         "race"},
        {THERE, "J: " RELAXED "@!%p5 bra K; @%p2 ld.shared.b32 %r10, [%r1]; K:", NULL, NULL,
         "race"},
        // Proxies, copies, mbarriers.
        {PUT "fence.proxy.async;\n" INIT_1 TELL, RELAXED LOAD, NULL, NULL, "race"},
        {PUT INIT_1 TELL, RELAXED LOAD, "proxy", "proxy", "race"},
        {PUT "bar.sync 0; @%p1 fence.proxy.async;\n" INIT_1 TELL "@%p1 ", RELAXED LOAD, NULL, NULL,
         "race"},
        {"cp.async.ca.shared.global [%r5], [%base], 4; cp.async.wait_all;\n", RELAXED GET_FAR, NULL,
         NULL, "race"},
        {INIT, RELAXED REMOTE, NULL, NULL, "race"},
    };
    static const char *const fence[] = {OWN, ALL, NOTHING};
    for (unsigned k = 0; k < 3 * (sizeof rows / sizeof *rows); k++) {
        sim_env *f = sim_open();
        const char *const id[] = {rows[k / 3].own, rows[k / 3].all, rows[k / 3].none};
        const char *text = tk_format(&f->arena, "%s%s%s%s%s", BEGIN OTHER, rows[k / 3].before,
                                     fence[k % 3], rows[k / 3].after, MEET);
        check(2, DATA, text, id[k % 3]);
        sim_close(f);
    }
}
