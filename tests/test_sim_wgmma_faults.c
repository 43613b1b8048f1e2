// SPDX-License-Identifier: Apache-2.0
// What the simulator says of wgmmas that are used wrongly; and that it is silent where they are
// right.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

#define SHARED ".shared .align 1024 .b8 tile[10240];"
// A: 64 rows of 128 bytes, B: 8 of them behind it; %d2 and %d3 their descriptors.
#define FILL                                                                                       \
    "mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1;\n"                                            \
    "st.shared.v2.b64 [%r2], {0, 0}; st.shared.v2.b64 [%r2+2048], {0, 0};\n"                       \
    "st.shared.v2.b64 [%r2+4096], {0, 0}; st.shared.v2.b64 [%r2+6144], {0, 0};\n"                  \
    "st.shared.v2.b64 [%r2+8192], {0, 0};\n"                                                       \
    "shr.u32 %r3, %r1, 4; cvt.u64.u32 %d2, %r3; or.b64 %d2, %d2, 0x4000004000000000;\n"            \
    "add.u64 %d3, %d2, 512;\n"
#define SEEN    "fence.proxy.async.shared::cta; bar.sync 0;\n"
#define FENCE   "wgmma.fence.sync.aligned;\n"
#define TAIL    "%d3, 0, 1, 1, 0, 0;\n"
#define TO(D)   "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {" D "}, "
#define FIRST   "%f0, %f1, %f2, %f3"
#define SECOND  "%f4, %f5, %f6, %f7"
#define A       "{%r4, %r5, %r6, %r7}"
#define COMMIT  "wgmma.commit_group.sync.aligned;\n"
#define WAIT(N) "wgmma.wait_group.sync.aligned " #N ";\n"
#define MMA     TO(FIRST) "%d2, " TAIL
#define MMA2    TO(SECOND) "%d2, " TAIL
#define MMA_A   TO(FIRST) A ", %d3, 0, 1, 1, 0;\n"
#define MMA_A2  TO(SECOND) A ", %d3, 0, 1, 1, 0;\n"
#define USE     "st.global.v4.b32 [%base], {%f0, %f1, %f2, %f3};\n"
#define MOVE_A  "mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;\n"

static void silent(const char *body) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        cr_expect(sim_run_shared(e, 128, SHARED, body), "%s: %s", body, sim_fault(e));
        sim_close(e);
    }
}

static void fault_of(unsigned threads, const char *body, const char *id, const char *words) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        cr_expect(!sim_run_shared(e, threads, SHARED, body), "no fault: %s", body);
        bool same = e->result.fault.id && strcmp(e->result.fault.id, id) == 0;
        cr_expect(seed || (same && strstr(sim_fault(e), words) != NULL), "%s, not %s, %s: %s",
                  sim_fault(e), id, words, body);
        sim_close(e);
    }
}

static void fault(const char *body, const char *id, const char *words) {
    fault_of(128, body, id, words);
}

Test(sim_wgmma_faults, right) {
    silent(FILL SEEN FENCE MMA COMMIT WAIT(0) USE);
    silent(FILL SEEN FENCE MMA MMA MMA2 COMMIT MMA MMA2 COMMIT WAIT(0) USE);
    silent(FILL SEEN FENCE MMA COMMIT MMA2 COMMIT WAIT(1) USE WAIT(0));
    silent(FILL MOVE_A SEEN FENCE MMA_A MMA_A2 COMMIT WAIT(0) MOVE_A USE);
    silent(FILL SEEN FENCE MMA COMMIT WAIT(0) MMA COMMIT WAIT(0) USE);
    silent(FILL SEEN FENCE MMA COMMIT WAIT(0) USE FENCE MMA COMMIT WAIT(0));
    // Shared memory that was waited for may be written, by others behind a barrier.
    silent(FILL SEEN FENCE MMA COMMIT WAIT(0) "bar.sync 0;\n" FILL SEEN MMA COMMIT WAIT(0) USE);
    silent(FILL SEEN FENCE MMA COMMIT MMA COMMIT WAIT(7) WAIT(0) "bar.sync 0;\n" FILL);
    // A descriptor's register is free at once.
    silent(FILL SEEN FENCE MMA "mov.b64 %d2, 0; mov.b64 %d3, 0;\n" COMMIT WAIT(0) USE);
}

Test(sim_wgmma_faults, registers) {
    fault(FILL SEEN FENCE MMA COMMIT USE WAIT(0), "wgmma-registers", "has not waited for it");
    fault(FILL SEEN FENCE MMA COMMIT "mov.b32 %f3, 0;" WAIT(0), "wgmma-registers", "'mov.b32'");
    fault(FILL SEEN FENCE MMA WAIT(0) USE, "wgmma-registers", "commit_group has not followed");
    fault(FILL SEEN FENCE MMA COMMIT MMA2 COMMIT WAIT(1) "mov.b32 %f4, 0;" WAIT(0),
          "wgmma-registers", "the wgmma is here");
    fault(FILL MOVE_A SEEN FENCE MMA_A COMMIT MOVE_A WAIT(0), "wgmma-registers", "'mov.b32'");
    // Another shape, and a register at another place.
    fault(FILL SEEN FENCE MMA COMMIT "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" FIRST
                                     "}, %d2, " TAIL COMMIT WAIT(0),
          "wgmma-registers", "bf16");
    fault(FILL SEEN FENCE MMA TO("%f1, %f0, %f2, %f3") "%d2, " TAIL COMMIT WAIT(0),
          "wgmma-registers", "in flight");
    // The sums as operand A.
    fault(FILL SEEN FENCE MMA TO(SECOND) "{" FIRST "}, %d3, 0, 1, 1, 0;\n" COMMIT WAIT(0),
          "wgmma-registers", "in flight");
    fault(FILL SEEN FENCE TO(FIRST) "{" FIRST "}, %d3, 0, 1, 1, 0;\n" COMMIT WAIT(0),
          "wgmma-registers", "one of the accumulator");
    fault(FILL SEEN FENCE TO(FIRST) "{%r4, %r5, %r6, %f2}, %d3, 0, 1, 1, 0;\n" COMMIT WAIT(0),
          "wgmma-registers", "one of the accumulator");
    fault(FILL MOVE_A SEEN FENCE MMA_A TO("%r4, %r5, %r6, %r7") "%d2, " TAIL COMMIT WAIT(0),
          "wgmma-registers", "in flight");
}

Test(sim_wgmma_faults, fences) {
    fault(FILL SEEN MMA COMMIT WAIT(0), "wgmma-fence", "before the first wgmma");
    fault(FILL SEEN FENCE "mov.b32 %f0, 0;\n" MMA COMMIT WAIT(0), "wgmma-fence",
          "no wgmma.fence between");
    fault(FILL SEEN FENCE MOVE_A MMA_A COMMIT WAIT(0), "wgmma-fence", "no wgmma.fence between");
    fault(FILL SEEN FENCE MMA COMMIT WAIT(0) USE MMA COMMIT WAIT(0), "wgmma-fence", "between");
}

Test(sim_wgmma_faults, shared_memory) {
    fault(FILL "bar.sync 0;\n" FENCE MMA COMMIT WAIT(0), "proxy", "fence.proxy.async");
    fault(FILL "fence.proxy.async;\n" FENCE MMA COMMIT WAIT(0), "race", "nothing orders the two");
    fault(FENCE
          "mov.u32 %r1, tile; shr.u32 %r3, %r1, 4; cvt.u64.u32 %d2, %r3; mov.b64 %d3, %d2;\n" MMA
              COMMIT WAIT(0),
          "uninitialised", "nobody has written");
    fault(FILL SEEN FENCE MMA COMMIT "st.shared.b32 [tile+8192], 0;\n" WAIT(0), "race",
          "reads asynchronously");
    fault(FILL SEEN FENCE MMA "st.shared.b32 [tile+8192], 0;\n" COMMIT WAIT(0), "race",
          "reads asynchronously");
    fault(FILL SEEN FENCE MMA COMMIT WAIT(
              0) "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.b32 [tile+8192], 7;\n",
          "race", "read it here");
    fault(FILL SEEN FENCE "mov.b64 %d2, 0x3fff;\n" MMA COMMIT WAIT(0), "out-of-bounds", "0x");
}

Test(sim_wgmma_faults, warpgroups) {
    fault_of(64, FENCE, "membership", "128 threads");
    fault("setp.lt.u32 %p1, %t, 32; @%p1 bra END;\n" FENCE "END:", "membership", "wgmma.fence");
    fault("setp.lt.u32 %p1, %t, 16; @%p1 bra END;\n" FENCE "END:", "membership", "a whole warp");
    fault(FILL SEEN FENCE "setp.lt.u32 %p1, %t, 32; @%p1 add.u64 %d3, %d3, 1;\n" MMA COMMIT WAIT(0),
          "membership", "different operands");
    fault(FILL SEEN FENCE "setp.lt.u32 %p1, %t, 7; @%p1 add.u64 %d3, %d3, 1;\n" MMA COMMIT WAIT(0),
          "membership", "different descriptors");
    fault(FILL SEEN FENCE
          "setp.lt.u32 %p1, %t, 7;\n" TO(FIRST) "%d2, %d3, %p1, 1, 1, 0, 0;\n" COMMIT WAIT(0),
          "membership", "scale-d");
    fault(FILL SEEN FENCE MMA COMMIT, "unfinished", "in flight");
    fault(FILL SEEN FENCE MMA WAIT(0), "unfinished", "in flight");
}

static void refused(const char *target, const char *statement, const char *words) {
    sim_env *e = sim_open();
    const char *text = tk_format(&e->arena,
                                 ".version 8.0\n.target %s\n.address_size 64\n.entry k() {\n"
                                 ".reg .b32 %%f<256>; .reg .b64 %%d<4>; .reg .pred %%p;\n%s\n}",
                                 target, statement);
    cr_assert(!sim_read(e, text), "read: %s", statement);
    cr_expect(e->error.at.ptx_line == 6 && strstr(e->error.text, words), "%s", e->error.text);
    sim_close(e);
}

Test(sim_wgmma_faults, refused) {
#define PLAIN "wgmma.mma_async.sync.aligned."
    refused("sm_90", "wgmma.fence.sync.aligned;", "needs .target sm_90a");

    refused("sm_90a", PLAIN "m64n12k16.f32.f16.f16 {%f0}, %d0, %d1, 1, 1, 1, 0, 0;",
            "not go together");
    refused("sm_90a", PLAIN "m64n264k16.f32.f16.f16 {%f0}, %d0, %d1, 1, 1, 1, 0, 0;",
            "not go together");
    refused("sm_90a", PLAIN "m64n8k16.f32.f16.f16 {%f0, %f1}, %d0, %d1, 1, 1, 1, 0, 0;",
            "not go together");
    refused("sm_90a", PLAIN "m64n8k16.f16.bf16.bf16 {%f0, %f1}, %d0, %d1, 1, 1, 1, 0, 0;",
            "unknown form");
    refused("sm_90a", PLAIN "m64n8k8.f32.f16.f16 {%f0}, %d0, %d1, 1, 1, 1, 0, 0;", "unknown form");
    refused("sm_90a", PLAIN "m64n40k32.s32.s8.s8 {%f0}, %d0, %d1, 1;", "not go together");
    refused("sm_90a",
            PLAIN
            "m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, {%f4, %f5, %f6, %f7}, %d1, 1, 1, 1, 0, 0;",
            "more operands");
    refused("sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0}, %d0, %d1;",
            "wgmma.mma_async.sp");
    refused("sm_90a", "wgmma.wait_group.sync.aligned %f0;", "a number is needed");
}
