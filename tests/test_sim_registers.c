// SPDX-License-Identifier: Apache-2.0
// The simulator's setmaxnreg: warpgroups that hand registers to each other.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

static bool run(sim_env *e, uint32_t threads, const char *bounds, const char *body) {
    const char *text =
        tk_format(&e->arena,
                  ".version 8.0\n.target sm_90a\n.address_size 64\n"
                  ".entry k(.param .u64 q) %s {\n.reg .b32 %%r<8>; .reg .b64 %%d<4>;\n"
                  ".reg .pred %%p<4>; ld.param.b64 %%d0, [q]; mov.b32 %%r0, %%tid.x;\n"
                  "shr.u32 %%r1, %%r0, 7; setp.eq.u32 %%p0, %%r1, 0; setp.eq.u32 %%p1, %%r1, 1;\n"
                  "%s\nret;\n}",
                  bounds, body);
    cr_assert(sim_read(e, text), "%s", e->error.text);
    return sim_launch(e, 1, threads);
}

#define DEC(N) "setmaxnreg.dec.sync.aligned.u32 " #N ";\n"
#define MEET   "bar.sync 0;\n"
#define INC(N) "setmaxnreg.inc.sync.aligned.u32 " #N ";\n"

static void silent(uint32_t threads, const char *bounds, const char *body) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        cr_expect(run(e, threads, bounds, body), "%s: %s", body, sim_fault(e));
        sim_close(e);
    }
}

static void fault(uint32_t threads, const char *bounds, const char *body, const char *id,
                  const char *words) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        cr_expect(!run(e, threads, bounds, body), "no fault: %s", body);
        cr_expect(e->result.fault.id && strcmp(e->result.fault.id, id) == 0 &&
                      strstr(sim_fault(e), words),
                  "%s, not %s, %s: %s", sim_fault(e), id, words, body);
        sim_close(e);
    }
}

Test(sim_registers, handed_over) {
    // 168 a thread: 24 + 2 * 240, and whoever comes first waits.
    silent(384, ".reqntid 384",
           "@%p0 bra PRODUCER;\n" INC(240) "bra.uni END;\nPRODUCER: " DEC(24) "END:");
    silent(384, ".maxntid 384 .minnctapersm 1", DEC(24) MEET INC(168) MEET DEC(160) MEET INC(168));
    silent(256, ".maxnreg 128", "@%p0 bra P;\n" INC(216) "bra.uni END;\nP: " DEC(40) "END:");
}

// Between two of them, what orders threads of the warps; and what does not.
Test(sim_registers, again) {
    static const struct {
        const char *between;
        bool apart;
    } rows[] = {
        {"", true},
        {"bar.warp.sync -1;", true},
        {"membar.cta;", true},
        {"vote.sync.ballot.b32 %r2, %p0, -1;", true},
        {MEET, false},
        {"bar.sync 1, 128;", false},
        {"barrier.cta.red.popc.u32 %r2, 0, %p0;", false},
        {"barrier.cluster.arrive; barrier.cluster.wait;", false},
        // Warps 0 and 1, and 2 and 3; also crosswise.
        {"shr.u32 %r2, %r0, 6; add.u32 %r2, %r2, 1; bar.sync %r2, 64;", true},
        {"shr.u32 %r2, %r0, 6; add.u32 %r2, %r2, 1; bar.sync %r2, 64;"
         "shr.u32 %r2, %r0, 5; and.b32 %r2, %r2, 1; add.u32 %r2, %r2, 3; bar.sync %r2, 64;",
         false},
        // One warp learns it of all, and nobody of it; and back.
        {"setp.lt.u32 %p2, %r0, 32; @%p2 bra A; bar.arrive 1, 128; bra B; A: bar.sync 1, 128; B:",
         true},
        {"setp.lt.u32 %p2, %r0, 32; @%p2 bra A; bar.arrive 1, 128; bar.sync 2, 128; bra B;"
         "A: bar.sync 1, 128; bar.arrive 2, 128; B:",
         false},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        sim_env *f = sim_open();
        const char *text = tk_format(&f->arena, "%s%s\n%s", DEC(64), rows[k].between, INC(128));
        if (rows[k].apart) {
            fault(128, ".maxnreg 128", text, "registers", "has executed the one before");
        } else {
            silent(128, ".maxnreg 128", text);
        }
        sim_close(f);
    }
    fault(128, ".maxnreg 128", DEC(64) DEC(40), "registers", "u32' 40 is not the first");
    fault(256, ".reqntid 256",
          "mov.b32 %r2, 0;\nL: " DEC(64) INC(256) "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3;\n"
                                                  "@%p2 bra L;",
          "registers", "warp");
    silent(
        256, ".reqntid 256",
        "mov.b32 %r2, 0; add.u32 %r3, %r1, 1;\nL: " DEC(64) "bar.sync %r3, 128;\n" INC(
            256) "bar.sync %r3, 128; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3;\n@%p2 bra L;");
    // By one thread of each warp.
    silent(128, ".maxnreg 128",
           ".shared .b64 bar; setp.eq.u32 %p2, %r0, 0; mov.b32 %r3, bar;\n"
           "@%p2 mbarrier.init.shared.b64 [%r3], 4;\n" MEET DEC(
               64) "and.b32 %r2, %r0, 31; setp.ne.u32 %p2, %r2, 5; @%p2 bra E;\n"
                   "mbarrier.arrive.shared.b64 _, [%r3];\n"
                   "W: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra W;\nE:\n" INC(
                       128));
    // What was before the first one says nothing of it.
    fault(128, ".maxnreg 128", MEET DEC(64) INC(128) MEET, "registers", "has executed");
}

Test(sim_registers, faults) {
    fault(384, ".reqntid 384",
          "@%p0 bra PRODUCER;\n" INC(248) "bra.uni END;\nPRODUCER: " DEC(24) "END:", "deadlock",
          "waits for registers: each thread has 168");
    fault(384, ".reqntid 384", INC(176), "deadlock", "the block 0 to spare");
    fault(384, ".reqntid 384", DEC(176), "registers", "it has fewer already");
    fault(384, ".reqntid 384", INC(160), "registers", "it has more already");
    fault(128, "", DEC(40), "registers", "u32' 40: the entry has neither .maxnreg nor");
    fault(96, ".maxnreg 128", DEC(40), "membership", "128 threads");
    fault(128, ".maxnreg 128",
          "setp.lt.u32 %p0, %r0, 32; @%p0 bra END;\n" DEC(40) "END:", "membership", "setmaxnreg");
    fault(128, ".maxnreg 128",
          "setp.lt.u32 %p0, %r0, 7; @%p0 bra END;\n" DEC(40) "END:", "membership", "a whole warp");
}

Test(sim_registers, refused) {
    static const char *const bad[] = {"setmaxnreg.dec.sync.aligned.u32 %r1;",
                                      "setmaxnreg.dec.aligned.u32 40;"};
    for (size_t k = 0; k < 2; k++) {
        sim_env *e = sim_open();
        cr_expect(!sim_read(e, sim_body(e, "", bad[k])));
        cr_expect(strstr(e->error.text, "setmaxnreg") != NULL, "%s", e->error.text);
        sim_close(e);
    }
}
