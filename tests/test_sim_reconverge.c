// SPDX-License-Identifier: Apache-2.0
// Threads of a warp that part meet again at the branch's immediate post-dominator, as counters of
// seed 0 show: what stands behind the branches is one request of the warp. None of those who wait
// there holds up what others wait for.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

#define ODD "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1;\n"
#define END "cvt.u64.u32 %d1, %t; st.global.b64 [%at], %d1;\n"

static uint64_t requests(sim_env *e, uint32_t threads, const char *ptx, const char *named) {
    cr_assert(sim_read(e, ptx), "%s: line %u: %s", named, e->error.at.ptx_line, e->error.text);
    cr_assert(sim_launch(e, 1, threads), "%s: %s", named, sim_fault(e));
    uint64_t n = 0;
    for (uint32_t k = 0; k < e->result.ncount; k++) {
        n += e->result.count[k].global_requests;
    }
    return n;
}

static void together(const char *text, uint64_t want) {
    sim_env *e = sim_open();
    cr_expect_eq(requests(e, 32, sim_body(e, "", text), text), want, "%s", text);
    sim_close(e);
}

// Code that stands elsewhere than where it is branched to, so that the place that all come to is
// before the last of them.
Test(sim_reconverge, code_in_any_order) {
    together(ODD "@%p1 bra ELSE; bra THEN;\nMEET: " END "exit;\nTHEN: bra MEET;\nELSE: bra MEET;",
             1);
    together(ODD "@%p1 bra ELSE;\nMEET: " END "exit;\nELSE: add.u32 %r2, %t, 1; bra MEET;", 1);
    // In each other; a way that goes around the inner one.
    together(ODD "setp.lt.u32 %p2, %t, 20;\n@%p2 bra A; bra MEET;\nMEET: " END
                 "exit;\nA: @%p1 bra B;\nBACK: " END "bra MEET;\nB: bra BACK;",
             2);
    // By three ways, to none of which the branch falls through.
    together("and.b32 %r1, %t, 3;\nW: .branchtargets A, B, C, MEET;\nbrx.idx %r1, W;\n"
             "A: bra MEET;\nMEET: " END "exit;\nB: bra MEET;\nC: bra MEET;",
             1);
}

// Loops of a different number of iterations: all wait for the last; a loop behind the place.
Test(sim_reconverge, ragged_loops) {
    together("mov.u32 %r1, 0; bra TEST;\nMEET: " END "exit;\n"
             "L: add.u32 %r1, %r1, 1;\nTEST: setp.lt.u32 %p1, %r1, %t; @%p1 bra L; bra MEET;",
             1);
    together("mov.u32 %r1, 0;\nL: and.b32 %r2, %r1, 1; and.b32 %r3, %t, 1;\n"
             "setp.eq.u32 %p2, %r2, %r3; @%p2 bra SPECIAL;\n"
             "BACK: " END "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra L; exit;\n"
             "SPECIAL: add.u32 %r9, %r9, 1; bra BACK;",
             4);
    // A long one: the others have patience.
    together("mov.u32 %r1, 0; mul.lo.u32 %r3, %t, 200;\nL: setp.ge.u32 %p1, %r1, %r3;\n"
             "@%p1 bra MEET; add.u32 %r1, %r1, 1; bra L;\nMEET: " END,
             1);
}

// Nobody waits for threads that end, by a guarded exit or behind a branch.
Test(sim_reconverge, threads_that_end) {
    together(ODD "setp.eq.u32 %p2, %t, 3;\n@%p1 bra ELSE;\nMEET: " END
                 "exit;\nELSE: @%p2 exit; bra MEET;",
             1);
    together(ODD "setp.gt.u32 %p9, %t, 99;\n@%p1 bra ELSE;\nMEET: " END
                 "ret;\nELSE: @%p9 bra NEVER; bra MEET;\nNEVER: trap;",
             1);
}

// A function returns to its caller as one, whichever way its threads took; one that a part of the
// threads calls is waited for.
Test(sim_reconverge, calls) {
    static const char *const body[] = {
        "@%p1 ret; add.u32 %r1, %r1, 1; ret;",
        "@%p1 bra L; ret;\nL: add.u32 %r1, %r1, 1; ret;",
        "@%p1 bra L;\nM: ret;\nL: add.u32 %r1, %r1, 1; bra M;",
    };
    static const char *const call[] = {"call.uni f, (%r1);", "@%p1 call f, (%r1);",
                                       "@%p1 bra C;\nM: bra.uni D;\nC: call f, (%r1); bra M;\nD:"};
    for (size_t b = 0; b < sizeof body / sizeof *body; b++) {
        for (size_t c = 0; c < sizeof call / sizeof *call; c++) {
            sim_env *e = sim_open();
            const char *f = tk_format(&e->arena,
                                      "f(.reg .b32 %%a) { .reg .pred %%p1; .reg .b32 %%r1;\n"
                                      "setp.lt.u32 %%p1, %%a, 1; mov.u32 %%r1, %%tid.x;\n"
                                      "setp.lt.u32 %%p1, %%r1, 9; %s }\n",
                                      body[b]);
            const char *text = tk_format(&e->arena, "%s%s\n%s", ODD, call[c], END);
            const char *named = tk_format(&e->arena, ".func %s%s", f, text);
            const char *first = sim_body(e, tk_format(&e->arena, ".func %s", f), text);
            cr_expect_eq(requests(e, 32, first, named), 1, "%s", named);
            const char *declared = sim_body(e, ".func f(.reg .b32 %a);", text);
            const char *last = tk_format(&e->arena, "%s.func %s", declared, f);
            cr_expect_eq(requests(e, 32, last, named), 1, "behind it: %s", named);
            sim_close(e);
        }
    }
}

static void goes_on(uint32_t threads, const char *shared, const char *text) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        e->launch.limit = 2000000; // nobody waits for long again and again
        cr_expect(sim_run_shared(e, threads, shared, text), "seed %u: %s: %s", (unsigned)seed,
                  sim_fault(e), text);
        sim_close(e);
    }
}

#define LOCK "atom.acquire.cta.shared.cas.b32 %r5, [lock], 0, 1; setp.ne.u32 %p5, %r5, 0;\n"
#define WORK "ld.shared.u32 %r6, [lock+4]; add.u32 %r6, %r6, 1; st.shared.u32 [lock+4], %r6;\n"
#define FREE "st.release.cta.shared.u32 [lock], 0;\n"
#define INIT                                                                                       \
    "setp.eq.u32 %p9, %t, 0; @%p9 st.shared.u32 [lock], 0; @%p9 st.shared.u32 [lock+4], 0;\n"      \
    "bar.sync 0;\n"
#define CELLS ".shared .align 8 .b8 lock[16]; .shared .align 8 .b64 bar;"

// The one that holds a lock has left the loop in which the others spin.
Test(sim_reconverge, who_waits_may_hold_a_lock) {
    goes_on(64, CELLS, INIT "L: " LOCK "@%p5 bra L;\n" WORK FREE);
    goes_on(32, CELLS, INIT "L: " LOCK "@%p5 nanosleep.u32 100; @%p5 bra L;\n" WORK FREE);
    // Each of them counts how often it has tried.
    goes_on(32, CELLS, INIT "L: add.u32 %r7, %r7, 1; " LOCK "@%p5 bra L;\n" WORK FREE);
    // Only one looks at a word that another one of its warp writes behind the branch.
    goes_on(32, CELLS,
            INIT ODD "setp.eq.u32 %p2, %t, 3; @!%p2 bra MEET;\n"
                     "L: ld.acquire.cta.shared.u32 %r6, [lock]; setp.eq.u32 %p3, %r6, 0;\n"
                     "@%p3 bra L;\nMEET: setp.eq.u32 %p4, %t, 4;\n"
                     "@%p4 st.release.cta.shared.u32 [lock], 1;");
    // A thread of another warp spins in between, and changes something each time.
    goes_on(64, CELLS,
            INIT
            "setp.ge.u32 %p1, %t, 32; @%p1 bra OTHER;\nsetp.eq.u32 %p2, %t, 3; @!%p2 bra MEET;\n"
            "L: ld.acquire.cta.shared.u32 %r6, [lock]; setp.eq.u32 %p3, %r6, 0;\n"
            "@%p3 bra L;\nMEET: setp.eq.u32 %p4, %t, 4;\n"
            "@%p4 st.release.cta.shared.u32 [lock], 1; exit;\n"
            "OTHER: atom.relaxed.cta.shared.add.u32 %r6, [lock+4], 1;\n"
            "ld.acquire.cta.shared.u32 %r6, [lock]; setp.eq.u32 %p3, %r6, 0; @%p3 bra OTHER;");
}

// Tickets that threads of both branches hand on to each other, the odd ones two, in several orders;
// threads of one branch sleep between looks.
#define TICKET(R) "mad.lo.u32 " R ", " R ", %u, 7; rem.u32 " R ", " R ", 96;\n"
#define TURN(L, R)                                                                                 \
    L ": %s ld.acquire.cta.shared.u32 %%r9, [lock]; setp.ne.u32 %%p6, %%r9, " R ";\n@%%p6 bra " L  \
      ";\nadd.u32 %%r9, %%r9, 1; st.release.cta.shared.u32 [lock], %%r9;\n"
static const char tickets[] =
    "setp.eq.u32 %%p9, %%t, 0; @%%p9 st.shared.u32 [lock], 0; bar.sync 0;\n"
    "and.b32 %%r1, %%t, 1; setp.eq.u32 %%p1, %%r1, 1; shr.u32 %%r10, %%t, 1;\n"
    "mad.lo.u32 %%r11, %%r10, 2, 32; add.u32 %%r12, %%r11, 1;\n" TICKET("%%r10") TICKET("%%r11")
        TICKET("%%r12") "min.u32 %%r13, %%r11, %%r12; max.u32 %%r14, %%r11, %%r12;\n@!%%p1 bra "
                        "E;\n" TURN("A", "%%r13")
                            TURN("B", "%%r14") "bra D;\nE:\n" TURN("C", "%%r10") "D: bar.sync 0;";

Test(sim_reconverge, who_waits_may_have_to_hand_on) {
    const char *sleep = "nanosleep.u32 20;";
    for (unsigned order = 5; order < 96; order += 6) { // 6 n + 5 and 96 have no divisor in common
        sim_env *e = sim_open();
        for (unsigned who = 0; who < 4; who++) {
            const char *x = who & 1 ? sleep : "", *y = who & 2 ? sleep : "";
            goes_on(64, CELLS, tk_format(&e->arena, tickets, order, order, order, x, x, y));
        }
        sim_close(e);
    }
}

// Three groups: one beats, or sleeps between looks, and another one looks in a loop with a loop in
// it; the third is what they wait for.
Test(sim_reconverge, all_groups_have_turns) {
#define WAYS                                                                                       \
    "setp.eq.u32 %p9, %t, 0; @%p9 st.volatile.shared.u32 [lock], 0; bar.sync 0;\n"                 \
    "W: .branchtargets A, B, C;\nmin.u32 %r1, %t, 2; mov.u32 %r8, 0; brx.idx %r1, W;\n"
#define LAST "C: st.volatile.shared.u32 [lock], 1; bra MEET;\nMEET: bar.sync 0;"
#define LOOK(L)                                                                                    \
    "ld.volatile.shared.u32 %r9, [lock]; setp.ne.u32 %p6, %r9, 1; @%p6 bra " L "; bra MEET;\n"
#define BACK_OFF                                                                                   \
    "B: mov.u32 %r7, 0;\nI: add.u32 %r7, %r7, 1; setp.lt.u32 %p7, %r7, 3; @%p7 bra I;\n"
    goes_on(32, CELLS,
            WAYS "A: add.u32 %r8, %r8, 1; st.volatile.shared.u32 [lock+4], %r8;\n" LOOK(
                "A") "B: " LOOK("B") LAST);
    goes_on(32, CELLS,
            WAYS "A: add.u32 %r8, %r8, 1; st.volatile.shared.u32 [lock+4], %r8;\n" LOOK("A")
                BACK_OFF LOOK("B") LAST);
    goes_on(32, CELLS, WAYS "A: nanosleep.u32 20; " LOOK("A") BACK_OFF LOOK("B") LAST);
    goes_on(3, CELLS, WAYS "A: nanosleep.u32 20; " LOOK("A") BACK_OFF LOOK("B") LAST);
}

// Those that are missing wait for the others at a barrier, or for all of the warp.
Test(sim_reconverge, who_waits_may_be_waited_for) {
    goes_on(32, CELLS, ODD "@%p1 bra A; barrier.sync 0; bra MEET;\nA: barrier.sync 0;\nMEET:");
    goes_on(32, CELLS,
            ODD "@%p1 bra A;\nMEET: shfl.sync.bfly.b32 %r2, %t, 1, 31, -1; exit;\n"
                "A: shfl.sync.bfly.b32 %r2, %t, 1, 31, -1; bra OUT;\nOUT: exit;");
    goes_on(64, CELLS,
            ODD "@%p1 bra A;\nMEET: bar.warp.sync -1; barrier.sync 0; exit;\n"
                "A: bar.warp.sync -1; bra B;\nB: barrier.sync 0;");
    // An mbarrier that one of them waits for completes when all have come behind the branch.
    goes_on(32, CELLS,
            "setp.eq.u32 %p9, %t, 0; @%p9 mbarrier.init.shared.b64 [bar], 31; bar.sync 0;\n"
            "setp.ne.u32 %p2, %t, 3; @%p2 bra MEET;\n"
            "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;\n"
            "MEET: @%p2 mbarrier.arrive.shared.b64 _, [bar];");
}
