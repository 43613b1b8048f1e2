// SPDX-License-Identifier: Apache-2.0
// The simulator's meetings of threads, where they are not all at one place in the code: member
// masks, barriers that threads reach by different ways, threads that have ended, waits that give
// up, blocks that wait for each other.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

static void silent(uint32_t blocks, uint32_t threads, const char *shared, const char *text,
                   uint64_t (*want)(uint64_t k)) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, sim_body(e, shared, text)), "%s", e->error.text);
    for (uint64_t seed = 0; seed < 12; seed++) {
        e->launch.seed = seed;
        memset(e->word, 0, sizeof e->word);
        cr_assert(sim_launch(e, blocks, threads), "seed %u: %s", (unsigned)seed, sim_fault(e));
        for (uint64_t k = 0; want && k < threads; k++) {
            cr_assert_eq(e->word[k], want(k), "seed %u, thread %u: 0x%llx", (unsigned)seed,
                         (unsigned)k, (unsigned long long)e->word[k]);
        }
    }
    sim_close(e);
}

static void faulty(uint32_t threads, const char *shared, const char *text, const char *id,
                   const char *says) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        bool ok = sim_run_shared(e, threads, shared, text);
        cr_expect(!ok && strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), says),
                  "seed %u: %s, not [%s] %s: %s", (unsigned)seed, sim_fault(e), id, says, text);
        sim_close(e);
    }
}

// ---- Member masks

#define APART(X, Y)                                                                                \
    "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %t, 5;\n"                       \
    "@%p1 bra ODD;\n" X "bra.uni ON;\nODD: add.u32 %r9, %t, 100;\n" Y "\nON:\n"
#define GIVES(R) "cvt.u64.u32 %d1, " R "; st.global.b64 [%at], %d1;"

static uint64_t neighbours(uint64_t k) { return k ^ 1; }
static uint64_t from_even(uint64_t k) { return k % 2 ? k - 1 : k + 101; }
static uint64_t below_five(uint64_t k) { return (void)k, 31; }
static uint64_t like_me(uint64_t k) { return 15u << (k / 4 * 4); }
static uint64_t sum(uint64_t k) { return (void)k, 31 * 16; }
static uint64_t leader(uint64_t k) { return k == 0; }

// The same instruction in two branches is one meeting; each thread has its own operands.
Test(sim_sync, one_mask_at_two_places) {
    silent(1, 32, "",
           APART("shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;", "shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;")
               GIVES("%r2"),
           neighbours);
    silent(1, 32, "",
           APART("shfl.sync.bfly.b32 %r2|%p3, %t, 1, 31, -1;",
                 "mov.b32 %r3, 1; shfl.sync.bfly.b32 %r4, %r9, %r3, 31, -1; mov.b32 %r2, %r4;")
               GIVES("%r2"),
           from_even);
    silent(1, 32, "",
           APART("vote.sync.ballot.b32 %r2, %p2, -1;", "vote.sync.ballot.b32 %r2, %p2, -1;")
               GIVES("%r2"),
           below_five);
    silent(1, 32, "",
           "shr.u32 %r5, %t, 2;" APART("match.any.sync.b32 %r2, %r5, -1;",
                                       "mov.b32 %r6, %r5; match.any.sync.b32 %r2, %r6, -1;")
               GIVES("%r2"),
           like_me);
    silent(1, 32, "",
           APART("redux.sync.add.u32 %r2, %t, -1;", "redux.sync.add.u32 %r2, %t, -1;") GIVES("%r2"),
           sum);
    silent(1, 32, "",
           APART("elect.sync %r3|%p4, -1;",
                 "elect.sync _|%p4, -1;") "selp.b32 %r2, 1, 0, %p4;" GIVES("%r2"),
           leader);
}

// Another instruction, or other suffixes, is another meeting.
Test(sim_sync, other_suffixes) {
    faulty(32, "",
           APART("shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;", "shfl.sync.idx.b32 %r2, %t, 1, 31, -1;"),
           "deadlock", "threads of its warp");
    faulty(32, "", APART("redux.sync.add.u32 %r2, %t, -1;", "redux.sync.add.s32 %r2, %t, -1;"),
           "deadlock", "threads of its warp");
    faulty(32, "", APART("bar.warp.sync -1;", "vote.sync.any.pred %p3, %p2, -1;"),
           "divergent-barrier", "threads of its warp");
    faulty(32, "", APART("bar.warp.sync -1; bar.sync 0;", "bar.warp.sync 0xaaaaaaaa; bar.sync 0;"),
           "divergent-barrier", "threads of its warp");
}

#define TILE ".shared .align 16 .b8 tile[1024];"
#define CELL "mov.u32 %r7, tile; mad.lo.u32 %r8, %t, 4, %r7; st.shared.b32 [%r8], %t;\n"
#define READ "xor.b32 %r6, %t, 1; mad.lo.u32 %r8, %r6, 4, %r7; ld.shared.b32 %r2, [%r8];\n"

// It orders memory as one place does. The lanes of another group do not run again what they have.
Test(sim_sync, two_places_order_memory) {
    silent(1, 32, TILE, CELL APART("bar.warp.sync -1;", "bar.warp.sync -1;") READ GIVES("%r2"),
           neighbours);
    faulty(32, TILE,
           CELL APART("bar.warp.sync 0x55555555;", "bar.warp.sync 0xaaaaaaaa;") READ GIVES("%r2"),
           "race", "nothing orders");
    silent(1, 32, "",
           "atom.global.add.u64 %d2, [%base+2048], 1; and.b32 %r5, %t, 24; shl.b32 %r6, 255, %r5;\n"
           "shfl.sync.bfly.b32 %r2, %t, 1, 31, %r6; bar.warp.sync -1;\n"
           "ld.global.b32 %r3, [%base+2048]; add.u32 %r2, %r2, %r3; sub.u32 %r2, %r2, 32;" GIVES(
               "%r2"),
           neighbours);
}

// ---- Barriers

#define EVEN_ODD(X, Y)                                                                             \
    "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;\n" X "bra.uni ON;\nEVEN: " Y      \
    "ON:\n"
static uint64_t own(uint64_t k) { return k; }

// A barrier without .aligned: the ways may differ, also in a warp that the block does not fill.
Test(sim_sync, barriers_by_several_ways) {
    for (uint32_t threads = 8; threads <= 72; threads += 32) {
        silent(2, threads, TILE,
               CELL EVEN_ODD("barrier.sync 0;", "barrier.sync 0;") READ
               "xor.b32 %r2, %r2, 1;" GIVES("%r2"),
               own);
    }
    silent(1, 72, TILE,
           CELL EVEN_ODD("barrier.sync 1, 96;", "barrier.sync 1, 96;") READ
           "xor.b32 %r2, %r2, 1;" GIVES("%r2"),
           own);
    silent(1, 40, "",
           "setp.ne.u32 %p2, %t, 7;\n" EVEN_ODD(
               "barrier.red.popc.u32 %r2, 0, %p2;",
               "barrier.red.popc.u32 %r2, 0, %p2;") "sub.u32 %r2, %r2, 39; add.u32 %r2, %r2, "
                                                    "%t;" GIVES("%r2"),
           own);
    faulty(40, "", EVEN_ODD("bar.sync 0;", "bar.sync 0;"), "divergent-barrier",
           "threads of its warp");
    faulty(40, "", EVEN_ODD("barrier.sync 0;", "barrier.sync 1;"), "divergent-barrier",
           "waits at barrier 1 for the other threads of the warp");
}

// A warp arrives once, when all of it is there: halves of two warps are no warp.
Test(sim_sync, warps_arrive_whole) {
    faulty(64, "",
           "and.b32 %r1, %t, 31; setp.lt.u32 %p1, %r1, 16;\n"
           "@%p1 barrier.sync 1, 32; @!%p1 barrier.sync 2, 32;",
           "divergent-barrier", "for the other threads of the warp");
    faulty(32, "",
           "setp.lt.u32 %p1, %t, 16; @%p1 barrier.arrive 1, 32; barrier.sync 2, 32;\n"
           "@!%p1 barrier.arrive 1, 32;",
           "divergent-barrier", "for the other threads of the warp");
    // Some of it only arrive, some wait.
    silent(
        1, 64, TILE,
        "setp.ge.u32 %p2, %t, 32;" CELL "@%p2 bra USE;\n" EVEN_ODD(
            "barrier.sync 1, 64;", "barrier.arrive 1, 64;") "bra OUT;\n"
                                                            "USE: barrier.sync 1, 64; sub.u32 %r6, "
                                                            "%t, 32; mad.lo.u32 %r8, %r6, 4, %r7;\n"
                                                            "ld.shared.b32 %r2, [%r8];\nOUT:",
        NULL);
}

// Threads that have ended are not waited for.
Test(sim_sync, threads_that_ended) {
    static const char *const barrier[] = {"barrier.sync 0;", "bar.sync 0;",
                                          "barrier.sync.aligned 0;",
                                          "barrier.cluster.arrive; barrier.cluster.wait;"};
    for (size_t k = 0; k < sizeof barrier / sizeof *barrier; k++) {
        for (unsigned most = 1; most < 96; most += 31) { // 1, 32, 63, 94
            sim_env *e = sim_open();
            silent(
                1, 96, TILE,
                tk_format(&e->arena,
                          "st.global.b64 [%%at], 0; setp.lt.u32 %%p1, %%t, %u; @%%p1 exit;\n%s%s",
                          most, CELL, barrier[k]),
                NULL);
            sim_close(e);
        }
    }
    // They end later than the others come.
    silent(1, 64, TILE,
           CELL "setp.ge.u32 %p1, %t, 20; @%p1 bra MEET;\nmov.b32 %r1, 0;\n"
                "L: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 300; @%p2 bra L; exit;\n"
                "MEET: bar.sync 0;" READ,
           NULL);
    // What they did is ordered by nothing.
    faulty(64, TILE,
           CELL "setp.ge.u32 %p1, %t, 20; @%p1 bra MEET; exit; MEET: bar.sync 0;\n"
                "sub.u32 %r6, %t, 20; mad.lo.u32 %r8, %r6, 4, %r7; st.shared.b32 [%r8], 99;",
           "race", "nothing orders");
}

// ---- Addresses in registers of 32 bits

static uint64_t seven(uint64_t k) { return (void)k, 7; }

Test(sim_sync, addresses_wrap) {
    silent(1, 1, TILE,
           "st.shared.b32 [tile+4], 7; mov.u32 %r1, tile; sub.u32 %r2, %r1, 4096;\n"
           "ld.shared.b32 %r3, [%r2+4100];" GIVES("%r3"),
           seven);
    silent(1, 1, "",
           ".local .align 8 .b8 own[16]; st.local.b32 [own+8], 7; mov.b64 %d2, own;\n"
           "cvt.u32.u64 %r1, %d2; add.u32 %r1, %r1, 64; ld.local.b32 %r3, [%r1+-56];\n"
           "sub.u32 %r1, %r1, 4096; ld.local.b32 %r3, [%r1+4040];" GIVES("%r3"),
           seven);
    silent(1, 1, ".shared .align 8 .b64 bar;",
           "mov.u32 %r1, bar; sub.u32 %r1, %r1, 8192; mbarrier.init.shared.b64 [%r1+8192], 1;\n"
           "mbarrier.arrive.shared.b64 _, [%r1+8192];\n"
           "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r1+8192], 0; @!%p1 bra W;",
           NULL);
    faulty(1, TILE, "mov.b64 %d1, tile; sub.s64 %d1, %d1, 4096; ld.shared.b32 %r1, [%d1];",
           "out-of-bounds", "shared memory");
}

// ---- Waits that give up, and loops that nothing ends

#define BAR  ".shared .align 8 .b64 bar; .shared .align 4 .b8 count[4];"
#define INIT "mbarrier.init.shared.b64 [bar], 1; st.shared.b32 [count], 0; mov.u32 %r1, 0;\n"
#define TRY  "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n"
static uint64_t tried(uint64_t k) { return (void)k, 3000; }

// A loop that ends by itself is no deadlock, whatever it counts in.
Test(sim_sync, bounded_waits) {
    silent(1, 1, BAR,
           INIT "L: " TRY
                "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3000; @%p2 bra L;\n" GIVES("%r1"),
           tried);
    silent(1, 1, BAR,
           INIT
           "L: " TRY "ld.shared.b32 %r1, [count]; add.u32 %r1, %r1, 1;\n"
           "st.shared.b32 [count], %r1; setp.lt.u32 %p2, %r1, 3000; @%p2 bra L;\n" GIVES("%r1"),
           tried);
    silent(1, 1, BAR,
           INIT "mov.u64 %d3, %clock64; add.s64 %d3, %d3, 90000;\n"
                "L: " TRY "mov.u64 %d2, %clock64; setp.lt.u64 %p2, %d2, %d3; @%p2 bra L;",
           NULL);
    // Another warp waits for the one that gives up.
    silent(1, 64, BAR,
           "setp.ge.u32 %p3, %t, 32; @%p3 bra MEET; setp.eq.u32 %p3, %t, 0; @!%p3 bra MEET;\n" INIT
           "L: " TRY "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 500; @%p2 bra L;\n"
           "MEET: bar.sync 0;",
           NULL);
}

Test(sim_sync, loops_without_an_end) {
    faulty(1, BAR, INIT "L: " TRY "@!%p1 bra L;", "deadlock", "waits at an mbarrier");
    faulty(1, BAR, INIT "L: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra L;",
           "deadlock", "waits at an mbarrier");
    faulty(1, BAR, INIT "L: " TRY "@%p1 bra OUT; xor.b32 %r1, %r1, 1; bra L;\nOUT:", "deadlock",
           "waits at an mbarrier");
    faulty(64, "",
           "setp.ge.u32 %p3, %t, 32; @%p3 bra MEET;\n"
           "L: ld.volatile.global.b64 %d1, [%base+2048]; setp.eq.b64 %p2, %d1, 0; @%p2 bra L;\n"
           "MEET: bar.sync 0;",
           "deadlock", "runs on, and nothing changes");
    faulty(32, "",
           "L: add.u32 %r1, %r1, 1; and.b32 %r1, %r1, 63; nanosleep.u32 20;\n"
           "ld.volatile.global.b64 %d1, [%base+2048]; setp.eq.b64 %p2, %d1, 0; @%p2 bra L;",
           "deadlock", "runs on for ever: nothing changes any more");
}

// Threads that look again and again at what does not change do so a few times, and not while
// another one works: by instructions of all 8 warps.
Test(sim_sync, polling_loops_sleep) {
    static const char *const poll[] = {
        "W: ld.acquire.gpu.global.b32 %r2, [%base+2048]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;",
        ("W: ld.volatile.global.b32 %r2, [%base+2048]; setp.ne.u32 %p1, %r2, 0;\n"
         "@%p1 bra OUT; bra W;"),
        ("W: ld.volatile.global.b32 %r2, [%base+2048]; setp.eq.u32 %p1, %r2, 0;\n"
         "nanosleep.u32 40; @%p1 bra W;"),
        "W: atom.global.cas.b32 %r2, [%base+2048], 1, 2; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;",
        "W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;",
        "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;",
    };
    for (size_t k = 0; k < sizeof poll / sizeof *poll; k++) {
        sim_env *e = sim_open();
        const char *text = tk_format(
            &e->arena,
            "setp.eq.u32 %%p9, %%t, 0; @%%p9 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"
            "setp.ge.u32 %%p3, %%t, 32; @!%%p3 bra WORK;\n%s\nbra OUT;\nWORK: mov.u32 %%r1, 0;\n"
            "L: add.u32 %%r1, %%r1, 1; setp.lt.u32 %%p2, %%r1, 5000; @%%p2 bra L;\n"
            "@%%p9 st.release.gpu.global.b32 [%%base+2048], 1;\n"
            "@%%p9 mbarrier.arrive.shared.b64 _, [bar];\nOUT:",
            poll[k]);
        cr_assert(sim_read(e, sim_body(e, ".shared .align 8 .b64 bar;", text)), "%s",
                  e->error.text);
        for (uint64_t seed = 0; seed < 12; seed++) {
            e->launch.seed = seed;
            memset(e->word, 0, sizeof e->word);
            cr_assert(sim_launch(e, 1, 256), "%s, seed %u: %s", poll[k], (unsigned)seed,
                      sim_fault(e));
            uint64_t n = 0;
            for (uint32_t i = 0; i < e->result.ncount; i++) {
                n += e->result.count[i].warps;
            }
            cr_expect(n < 16000, "%s, seed %u: %u instructions", poll[k], (unsigned)seed,
                      (unsigned)n);
        }
        sim_close(e);
    }
}

// A loop that comes by other code, or counts, is none in which nothing changes.
Test(sim_sync, loops_that_poll_and_do_more) {
    silent(1, 32, "",
           "mov.u32 %r1, 0; bra W;\nMORE: add.u32 %r1, %r1, 1; bra ON;\n"
           "W: ld.volatile.global.b32 %r2, [%base+2048]; setp.lt.u32 %p1, %r1, 3000;\n"
           "@%p1 bra MORE;\nON: setp.lt.u32 %p1, %r1, 3000; @%p1 bra W;\n" GIVES("%r1"),
           tried);
    silent(1, 32, "",
           "mov.u32 %r1, 0; mov.u32 %r3, 0;\n"
           "OUTER: W: ld.volatile.global.b32 %r2, [%base+2048]; add.u32 %r3, %r3, 1;\n"
           "and.b32 %r3, %r3, 3; setp.ne.u32 %p1, %r3, 0; @%p1 bra W;\n"
           "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3000; @%p2 bra OUTER;\n" GIVES("%r1"),
           tried);
}

// Each of three ways of a warp runs, whichever of them spin.
Test(sim_sync, no_way_starves) {
    silent(1, 32, "",
           "and.b32 %r9, %t, 3; setp.eq.u32 %p3, %r9, 3; @%p3 bra C;\n"
           "setp.eq.u32 %p3, %r9, 2; @%p3 bra B;\n"
           "A: ld.volatile.global.b32 %r2, [%base+2048]; setp.eq.u32 %p1, %r2, 0; @%p1 bra A;\n"
           "bra END;\n"
           "B: ld.volatile.global.b32 %r2, [%base+2048]; setp.eq.u32 %p1, %r2, 0; @%p1 bra B;\n"
           "bra END;\nC: st.volatile.global.b32 [%base+2048], 1;\nEND:",
           NULL);
}

// ---- Blocks that wait for each other

#define GRID_BARRIER                                                                               \
    "bar.sync 0; setp.ne.u32 %p2, %t, 0; @%p2 bra MET;\n"                                          \
    "mov.u32 %r3, %nctaid.x; atom.acq_rel.gpu.global.add.u32 %r1, [%base+4096], 1;\n"              \
    "L: ld.acquire.gpu.global.u32 %r2, [%base+4096]; setp.lt.u32 %p1, %r2, %r3;\n"                 \
    "@%p1 bra L;\nMET: bar.sync 0;\n"

static void grid(uint32_t blocks, uint32_t cluster, uint32_t threads, const char *text) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, sim_body(e, "", text)), "%s", e->error.text);
    for (uint64_t seed = 0; seed < 6; seed++) {
        e->launch.seed = seed;
        e->launch.cluster[0] = cluster;
        e->launch.cluster[1] = e->launch.cluster[2] = cluster ? 1 : 0;
        memset(e->word, 0, sizeof e->word);
        cr_expect(sim_launch(e, blocks, threads), "%u blocks, seed %u: %s", blocks, (unsigned)seed,
                  sim_fault(e));
    }
    sim_close(e);
}

// As many blocks are there at once as a GPU has room for.
Test(sim_sync, barriers_of_the_grid) {
    grid(2, 0, 32, GRID_BARRIER);
    grid(8, 0, 64, GRID_BARRIER);
    grid(100, 0, 128, GRID_BARRIER);
    grid(12, 2, 64, GRID_BARRIER "barrier.cluster.arrive; barrier.cluster.wait;");
    // Each block waits for the one after it.
    grid(40, 0, 32,
         "mov.u32 %r1, %ctaid.x; add.u32 %r2, %r1, 1; mov.u32 %r3, %nctaid.x;\n"
         "setp.eq.u32 %p1, %r2, %r3; mad.wide.u32 %d1, %r1, 4, %base; @%p1 bra GIVE;\n"
         "L: ld.acquire.gpu.global.u32 %r4, [%d1+4]; nanosleep.u32 40; setp.eq.u32 %p2, %r4, 0;\n"
         "@%p2 bra L;\nGIVE: st.release.gpu.global.u32 [%d1], 1;");
}

Test(sim_sync, more_blocks_than_there_is_room) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, sim_body(e, "", GRID_BARRIER)), "%s", e->error.text);
    cr_expect(!sim_launch(e, 300, 1024));
    const char *said = sim_fault(e);
    cr_expect(strstr(said, "[deadlock]") && strstr(said, "runs on for ever") &&
                  strstr(said, "36 of the grid's blocks have not begun; 264 at most run at once"),
              "%s", said);
    sim_close(e);
}

// ---- Launches that a GPU refuses

static void launched(const char *bounds, uint32_t threads, const char *body, const char *refused) {
    sim_env *e = sim_open();
    const char *ptx = tk_format(&e->arena,
                                ".version 8.0\n.target sm_90a\n.address_size 64\n"
                                ".visible .entry k(.param .u64 p) %s {\n%s\nret; }\n",
                                bounds, body);
    cr_assert(sim_read(e, ptx), "%s", e->error.text);
    bool ok = sim_launch(e, 1, threads);
    cr_expect(ok ? refused == NULL : refused && strstr(sim_fault(e), refused), "%s: %s", bounds,
              sim_fault(e));
    sim_close(e);
}

Test(sim_sync, bounds_of_an_entry) {
    launched(".maxntid 64", 64, "", NULL);
    launched(".maxntid 32, 2, 1", 64, "", NULL);
    launched(".maxntid 64, 1, 1", 65, "", "at most 64 threads a block; there are 65");
    launched(".reqntid 64", 64, "", NULL);
    launched(".reqntid 64", 32, "", "asks for blocks of 64 x 1 x 1");
}

// What a block needs is bounded, and how many are there at once depends on it.
Test(sim_sync, memory_of_a_block) {
    static const char local[] = ".local .b8 own[524288]; st.local.b8 [own+524287], 1;";
    launched("", 64, local, NULL);
    launched("", 1024, local, "of a block take 512 MiB; at most 512 are there");
    launched("", 1024, ".local .b8 own[65536];", NULL);
}
