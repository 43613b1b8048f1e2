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
    silent(384, ".maxntid 384 .minnctapersm 1", DEC(24) INC(168) DEC(160) INC(168));
    silent(256, ".maxnreg 128", "@%p0 bra P;\n" INC(216) "bra.uni END;\nP: " DEC(40) "END:");
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
