// SPDX-License-Identifier: Apache-2.0
// The order that the simulator sees between accesses of shared memory, exactly: what one missing
// synchronisation leaves unordered is found, however many accesses lie around it, and what is
// ordered is not reported.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 40 };

// Under how many seeds there is a fault of this id; any other one is a failure.
static unsigned faults(uint32_t n, uint32_t threads, const char *shared, const char *text,
                       const char *id, const char *says) {
    sim_env *e = sim_open();
    unsigned found = 0;
    cr_assert(sim_read(e, sim_body(e, shared, text)), "%u: %s", e->error.at.ptx_line,
              e->error.text);
    sim_close(e);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        e = sim_open();
        e->launch.seed = seed;
        e->launch.cluster[0] = n;
        e->launch.cluster[1] = e->launch.cluster[2] = 1;
        sim_read(e, sim_body(e, shared, text));
        if (!sim_launch(e, n, threads)) {
            bool as_said = strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), says);
            cr_expect(as_said, "seed %u: %s: %s", (unsigned)seed, sim_fault(e), text);
            found++;
        }
        sim_close(e);
    }
    return found;
}

#define ALWAYS(n, threads, shared, text, id, says)                                                 \
    cr_expect_eq(faults(n, threads, shared, text, id, says), SEEDS, "%s", text)
#define NEVER(n, threads, shared, text)                                                            \
    cr_expect_eq(faults(n, threads, shared, text, "none", ""), 0, "%s", text)

// Thread 0 of warp k alone: %pk.
#define FIRSTS                                                                                     \
    "setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 32; setp.eq.u32 %p2, %t, 64;\n"                  \
    "setp.eq.u32 %p3, %t, 96; shr.u32 %r20, %t, 5;\n"
#define WORD ".shared .b32 s; .shared .b32 x;"

// ---- What a bulk store writes

// Where only its reads were waited for, the write may come later; what it read is kept for it.
Test(sim_order, bulk_store_lands_late) {
#define STORED(WAIT)                                                                               \
    "mov.u32 %r1, a; mad.lo.u32 %r2, %t, 4, %r1; setp.ne.u32 %p2, %t, 0;\n"                        \
    "mad.wide.u32 %d1, %t, 4, %base; st.global.b32 [%d1], 3; st.shared.b32 [%r2], 7;\n"            \
    "fence.proxy.async; bar.sync 0; @%p2 bra E;\n"                                                 \
    "cp.async.bulk.global.shared::cta.bulk_group [%base], [%r1], 128;\n"                           \
    "cp.async.bulk.commit_group;\n" WAIT "E: bar.sync 0; st.shared.b32 [%r2], 9;\n"
#define READ_BACK "ld.global.b32 %r5, [%d1]; setp.eq.u32 %p3, %r5, 7; @%p3 bra F; trap; F:"
    static const char place[] = ".shared .align 128 .b8 a[128];";
    NEVER(1, 32, place, STORED("cp.async.bulk.wait_group 0;\n") READ_BACK);
    NEVER(1, 32, place,
          STORED("cp.async.bulk.wait_group.read 0;\ncp.async.bulk.wait_group 0;\n") READ_BACK);
    NEVER(1, 32, place, STORED("cp.async.bulk.wait_group.read 0;\n"));
    cr_expect(faults(1, 32, place, STORED("cp.async.bulk.wait_group.read 0;\n") READ_BACK, "trap",
                     "") > SEEDS / 4);
}

// ---- The end of a block

// A copy that nobody of the block waits for may be done before it ends, and may not.
Test(sim_order, ends_without_a_wait) {
#define LOADED(WAIT)                                                                               \
    "mov.u32 %r1, a; setp.ne.u32 %p2, %t, 0; @%p2 bra E;\n"                                        \
    "mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"                      \
    "mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"                                          \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%base], 128, "      \
    "[m];\n" WAIT "E:"
    static const char place[] = ".shared .align 128 .b8 a[128]; .shared .align 8 .b64 m;";
    ALWAYS(1, 32, place, LOADED(""), "unfinished", "waited for");
    NEVER(1, 32, place, LOADED("W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0; @!%p1 bra W;"));
}

// ---- What an arrival says of itself

Test(sim_order, no_complete) {
#define ARRIVALS(COUNT)                                                                            \
    "setp.ne.u32 %p0, %t, 0; @%p0 bra E; mbarrier.init.shared.b64 [m], 2;\n"                       \
    "mbarrier.arrive.noComplete.shared.b64 %d1, [m], " COUNT "; E:"
    ALWAYS(1, 32, ".shared .align 8 .b64 m;", ARRIVALS("2"), "mbarrier", "noComplete");
    NEVER(1, 32, ".shared .align 8 .b64 m;", ARRIVALS("1"));
}

// A copy of another block that tells an mbarrier of this one is done where its phase is: who waits
// for that may end.
Test(sim_order, ends_behind_a_copy) {
#define SENT(WAIT)                                                                                 \
    "mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p5, %r3, 0;\n"    \
    "setp.ne.u32 %p0, %t, 0; mapa.shared::cluster.u32 %r6, %r1, 1;\n"                              \
    "mapa.shared::cluster.u32 %r7, %r2, 1; @%p0 bra E;\n"                                          \
    "mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"                      \
    "mbarrier.arrive.expect_tx.shared.b64 _, [m], 4;\n"                                            \
    "E: barrier.cluster.arrive; barrier.cluster.wait; @%p0 bra F; @!%p5 bra W;\n"                  \
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], 7, [%r7]; bra F;\n"          \
    "W:" WAIT " F:"
    static const char place[] = ".shared .align 16 .b32 s[32]; .shared .align 8 .b64 m;";
    NEVER(2, 32, place,
          SENT("mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [m], 0; @!%p1 bra W;"));
    // Who does not wait has ended before the copy begins, or before it is done, or does not know.
    unsigned found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        e->launch.cluster[0] = 2;
        e->launch.cluster[1] = e->launch.cluster[2] = 1;
        sim_read(e, sim_body(e, place, SENT("")));
        if (!sim_launch(e, 2, 32)) {
            found += strcmp(e->result.fault.id, "ended") == 0 ||
                     strcmp(e->result.fault.id, "unfinished") == 0;
        }
        sim_close(e);
    }
    cr_expect_eq(found, SEEDS);
}

// ---- All readers count

Test(sim_order, every_reader) {
#define READERS                                                                                    \
    FIRSTS "@%p0 st.shared.b32 [s], 9; bar.sync 0;\n"                                              \
           "@%p0 ld.shared.b32 %r1, [s]; @%p1 ld.shared.b32 %r1, [s]; @%p2 ld.shared.b32 %r1, "    \
           "[s];\n"
    // The writer comes after two of the three.
    ALWAYS(1, 128, WORD,
           READERS "setp.eq.u32 %p4, %r20, 1; @%p4 bra E; bar.sync 1, 96; @%p3 st.shared.b32 [s], "
                   "3; E:",
           "race", "shared memory at 0x400");
    NEVER(1, 128, WORD, READERS "bar.sync 1, 128; @%p3 st.shared.b32 [s], 3;");
    // Of 96 readers, one lane of a warp has not met the writer.
    ALWAYS(1, 128, WORD,
           FIRSTS "@%p0 st.shared.b32 [s], 9; @%p0 st.shared.b32 [x], 0; bar.sync 0; ld.shared.b32 "
                  "%r1, [s];\n"
                  "setp.eq.u32 %p4, %t, 77; @%p4 bra E; setp.ne.u32 %p5, %r20, 2; @%p5 bra M;\n"
                  "bar.warp.sync 0xffffdfff; @!%p2 bra E;\n"
                  "st.release.cta.shared.b32 [x], 1; bra E;\n"
                  "M: bar.sync 1, 96; @!%p3 bra E;\n"
                  "L: ld.acquire.cta.shared.b32 %r2, [x]; setp.ne.b32 %p6, %r2, 1; @%p6 bra L;\n"
                  "st.shared.b32 [s], 3; E:",
           "race", "thread 77");
}

// ---- Writes of the value that is there

Test(sim_order, same_values) {
    // A reader is not forgotten, and neither is the writer before.
    ALWAYS(1, 64, WORD,
           FIRSTS "@%p1 st.shared.b32 [s], 0; bar.sync 0; @%p0 ld.shared.b32 %r1, [s];\n"
                  "@%p1 st.shared.b32 [s], 0; @%p1 st.shared.b32 [s], 7;",
           "race", "shared memory at 0x400");
#define TWO_WRITE                                                                                  \
    FIRSTS "@%p0 st.shared.b32 [s], 9; bar.sync 0; @%p0 st.shared.b32 [s], 5; @%p1 st.shared.b32 " \
           "[s], 5;\n"
    ALWAYS(1, 96, WORD,
           TWO_WRITE "@%p0 bra E; setp.lt.u32 %p4, %t, 32; @%p4 bra E; bar.sync 1, 64;\n"
                     "@%p2 st.shared.b32 [s], 7; E:",
           "race", "shared memory at 0x400");
    NEVER(1, 96, WORD, TWO_WRITE "bar.sync 1, 96; @%p2 st.shared.b32 [s], 7;");
    NEVER(1, 96, WORD, TWO_WRITE "bar.sync 1, 96; ld.shared.b32 %r1, [s];");
    // One of the writers comes after whoever read the old value, the other one does not.
    ALWAYS(1, 96, WORD,
           FIRSTS "@%p0 st.shared.b32 [s], 9; bar.sync 0; @%p0 ld.shared.b32 %r1, [s];\n"
                  "setp.eq.u32 %p4, %r20, 2; @%p4 bra C; bar.sync 1, 64;\n"
                  "@%p1 st.shared.b32 [s], 5; bra E; C: @%p2 st.shared.b32 [s], 5; E:",
           "race", "shared memory at 0x400");
    NEVER(1, 96, WORD,
          FIRSTS "@%p0 st.shared.b32 [s], 9; bar.sync 0; @%p0 ld.shared.b32 %r1, [s];\n"
                 "bar.sync 1, 96; st.shared.b32 [s], 5; st.shared.b32 [s], 5;");
}

Test(sim_order, every_atomic_access) {
#define TWO_ADD                                                                                    \
    FIRSTS "@%p0 st.shared.b32 [s], 0; bar.sync 0; @%p0 atom.shared.add.u32 %r1, [s], 1;\n"        \
           "@%p1 atom.shared.add.u32 %r1, [s], 2; setp.lt.u32 %p4, %t, 32;\n"
    ALWAYS(1, 96, WORD,
           TWO_ADD "@%p4 bra E; bar.sync 1, 64; @%p2 ld.shared.b32 %r1, [s]; E:", "race",
           "shared memory at 0x400");
    ALWAYS(1, 96, WORD, TWO_ADD "@%p4 bra E; bar.sync 1, 64; @%p2 st.shared.b32 [s], 3; E:", "race",
           "shared memory at 0x400");
    NEVER(1, 96, WORD, TWO_ADD "bar.sync 1, 96; @%p2 ld.shared.b32 %r1, [s];");
    // What was written before the updates is before one of them only.
    ALWAYS(1, 96, WORD,
           FIRSTS "@%p0 st.shared.b32 [s], 9; bar.sync 0; @%p0 st.shared.b32 [s], 0;\n"
                  "setp.eq.u32 %p4, %r20, 2; @%p4 bra C; bar.sync 1, 64;\n"
                  "@%p1 red.shared.add.u32 [s], 1; bra E; C: @%p2 red.shared.add.u32 [s], 1; E:",
           "race", "shared memory at 0x400");
}

// ---- Flags

// Two threads say by flags of this type, side by side in a word, that they have written.
static const char *two_flags(sim_env *e, const char *type, unsigned bytes) {
    return tk_format(
        &e->arena,
        "%s@%%p0 st.shared.b32 [g], 0; mov.b16 %%h1, 1; bar.sync 0;\n"
        "@%%p0 st.shared.b32 [s], 7; @%%p1 st.shared.b32 [x], 7;\n"
        "@%%p0 st.release.cta.shared.%s [g], %%h1; @%%p1 st.release.cta.shared.%s [g+%u], "
        "%%h1;\n@!%%p2 bra E;\n"
        "L: ld.acquire.cta.shared.%s %%h2, [g]; setp.eq.u16 %%p4, %%h2, 0; @%%p4 bra L;\n"
        "M: ld.acquire.cta.shared.%s %%h2, [g+%u]; setp.eq.u16 %%p4, %%h2, 0; @%%p4 bra M;\n"
        "ld.shared.b32 %%r1, [s]; ld.shared.b32 %%r2, [x]; E:",
        FIRSTS, type, type, bytes, type, type, bytes);
}

#define FLAG ".shared .b32 s; .shared .b32 x; .shared .align 4 .b8 g[4];"

Test(sim_order, flags_of_any_width) {
    sim_env *e = sim_open();
    NEVER(1, 96, FLAG, two_flags(e, "u16", 2));
    NEVER(1, 96, FLAG, two_flags(e, "u8", 1));
    NEVER(1, 96, FLAG, two_flags(e, "u8", 3));
    sim_close(e);
    // Both at once.
    NEVER(1, 96, FLAG,
          FIRSTS "@%p0 st.shared.b32 [g], 0; mov.b16 %h1, 1; bar.sync 0;\n"
                 "@%p0 st.shared.b32 [s], 7; @%p1 st.shared.b32 [x], 7;\n"
                 "@%p0 st.release.cta.shared.u16 [g], %h1; @%p1 st.release.cta.shared.u16 [g+2], "
                 "%h1;\n@!%p2 bra E; L: ld.acquire.cta.shared.u32 %r1, [g];\n"
                 "setp.ne.u32 %p4, %r1, 0x10001; @%p4 bra L;\n"
                 "ld.shared.b32 %r1, [s]; ld.shared.b32 %r2, [x]; E:");
// A release of four bytes, of which another thread then overwrites the first one.
#define ONE_BYTE(AT)                                                                               \
    FIRSTS "@%p0 st.shared.b32 [g], 0; mov.b16 %h1, 2; bar.sync 0;\n"                              \
           "@%p0 st.shared.b32 [s], 7; @%p0 st.release.cta.shared.u32 [g], 0x1010101;\n"           \
           "@!%p1 bra A; B: ld.relaxed.cta.shared.u8 %h2, [g]; setp.ne.u16 %p4, %h2, 1;\n"         \
           "@%p4 bra B; st.relaxed.cta.shared.u8 [g], %h1; A: @!%p2 bra E;\n"                      \
           "L: ld.relaxed.cta.shared.u8 %h2, [g]; setp.ne.u16 %p4, %h2, 2; @%p4 bra L;\n"          \
           "ld.acquire.cta.shared.u8 %h2, [" AT "]; ld.shared.b32 %r1, [s]; E:"
    NEVER(1, 96, FLAG, ONE_BYTE("g+1"));
    ALWAYS(1, 96, FLAG, ONE_BYTE("g"), "race", "shared memory at 0x400");
}

// Words of global memory, too, order what threads do in shared memory.
Test(sim_order, flags_in_global_memory) {
#define HAND_OVER(GIVE, LOOK, TAKE)                                                                \
    FIRSTS "@!%p0 bra W; st.shared.b32 [s], 5;\n" GIVE "bra E; W: @!%p1 bra E;\n"                  \
           "L: " LOOK " %r1, [%base+128]; setp.ne.u32 %p4, %r1, 1; @%p4 bra L;" TAKE               \
           "ld.shared.b32 %r2, [s]; E:"
    NEVER(1, 64, WORD,
          HAND_OVER("st.release.gpu.global.u32 [%base+128], 1;", "ld.acquire.gpu.global.u32", ""));
    NEVER(1, 64, WORD,
          HAND_OVER("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%base+128], 1;",
                    "ld.volatile.global.u32", "fence.acq_rel.gpu;"));
    ALWAYS(1, 64, WORD,
           HAND_OVER("red.relaxed.gpu.global.add.u32 [%base+128], 1; fence.acq_rel.gpu;",
                     "ld.acquire.gpu.global.u32", ""),
           "race", "shared memory at 0x400");
    ALWAYS(1, 64, WORD,
           HAND_OVER("st.release.gpu.global.u32 [%base+128], 1;", "ld.relaxed.gpu.global.u32", ""),
           "race", "shared memory at 0x400");
    // The release lies at another word.
    ALWAYS(1, 64, WORD,
           HAND_OVER("st.release.gpu.global.u32 [%base+132], 1; st.relaxed.gpu.global.u32 "
                     "[%base+128], 1;",
                     "ld.acquire.gpu.global.u32", ""),
           "race", "shared memory at 0x400");
}

// ---- Long runs

Test(sim_order, many_releases) {
    ALWAYS(1, 64, WORD,
           FIRSTS "mov.b32 %r1, 0; @%p0 st.shared.b32 [x], 0; bar.sync 0; @!%p0 bra W;\n"
                  "st.shared.b32 [s], 5;\n"
                  "L: st.release.cta.shared.b32 [x], 1; add.u32 %r1, %r1, 1;\n"
                  "setp.lt.u32 %p4, %r1, 20000; @%p4 bra L; st.release.cta.shared.b32 [x], 2;\n"
                  "bra E; W: @!%p1 bra E;\n"
                  "V: ld.relaxed.cta.shared.b32 %r2, [x]; setp.ne.b32 %p4, %r2, 2; @%p4 bra V;\n"
                  "ld.shared.b32 %r3, [s]; E:",
           "race", "shared memory at 0x400");
}

// ---- Copies

#define BOX  ".shared .align 128 .b8 a[256]; .shared .align 128 .b8 b[256]; .shared .b32 x;"
#define BAR  BOX ".shared .align 8 .b64 m[64];"
#define INIT "@%p0 mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"
#define WAIT(at, label)                                                                            \
    label ": mbarrier.try_wait.parity.shared.b64 %p5, [" at "], 0; @!%p5 bra " label ";\n"
#define LOAD(to, at)                                                                               \
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [" at "], 256; mov.u32 %r1, " to ";\n"           \
    "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%base], "      \
    "256, [" at "];\n"

// An arrival that waits for copies hands over what its thread did before it, and the copies.
Test(sim_order, arrivals_of_copies) {
#define COPY(BEFORE, BEHIND)                                                                       \
    FIRSTS "@%p0 st.shared.b32 [x], 0; " INIT                                                      \
           "bar.sync 0; @%p1 bra X; @!%p0 bra E; mov.u32 %r1, a; " BEFORE                          \
           "cp.async.ca.shared.global [%r1], [%base], 16;\n"                                       \
           "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n" BEHIND                               \
           "bra E; X: " WAIT("m", "Y") "ld.shared.b32 %r7, [a]; ld.shared.b32 %r8, [x]; E:"
    ALWAYS(1, 64, BAR, COPY("", "st.shared.b32 [x], 5;"), "race", "shared memory at 0x600");
    NEVER(1, 64, BAR, COPY("st.shared.b32 [x], 5;", ""));
    // The thread itself may wait for the group instead; others may not rely on that it went on.
    NEVER(1, 64, BAR,
          COPY("", "cp.async.commit_group; cp.async.wait_group 0; ld.shared.b32 %r2, [a];"));
    ALWAYS(1, 64, BAR,
           FIRSTS INIT "bar.sync 0; @!%p0 bra W; mov.u32 %r1, a;\n"
                       "cp.async.ca.shared.global [%r1], [%base], 16;\n"
                       "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"
                       "W: bar.sync 0; @%p1 ld.shared.b32 %r2, [a];",
           "race", "shared memory at 0x400");
}

// Whoever waits for one mbarrier knows of the copies that told this one, and of no others.
Test(sim_order, copies_by_mbarrier) {
    sim_env *e = sim_open();
    const char *init = "";
    for (unsigned k = 0; k < 40; k++) {
        init = tk_format(&e->arena, "%s@%%p0 mbarrier.init.shared.b64 [m+%u], 1;\n", init, 8 * k);
    }
    const char *begin = tk_format(&e->arena, "%s%s%s", FIRSTS, init,
                                  "fence.mbarrier_init.release.cluster; bar.sync 0;" LOAD("a", "m")
                                      LOAD("b", "m+256"));
    const char *end = "mov.u32 %r5, a; mad.lo.u32 %r5, %t, 4, %r5; ld.shared.b32 %r7, [%r5];";
    ALWAYS(1, 64, BAR, tk_format(&e->arena, "%s%s%s", begin, WAIT("m+256", "X"), end), "race",
           "shared memory at");
    NEVER(1, 64, BAR,
          tk_format(&e->arena, "%s%s%s", begin, WAIT("m+256", "X") WAIT("m", "Y"), end));
    // A barrier of the block says nothing about copies.
    ALWAYS(1, 64, BAR, tk_format(&e->arena, "%sbar.sync 0; bar.sync 0;%s", begin, end), "race",
           "shared memory at");
    // One thread has waited, then the others wait for it.
    NEVER(1, 64, BAR,
          tk_format(&e->arena, "%s@!%%p0 bra Z;\n%sZ: bar.sync 0; bar.sync 0;%s", begin,
                    WAIT("m+256", "X") WAIT("m", "Y"), end));
    sim_close(e);
}

// ---- Proxies

#define MINE  "mov.u32 %r5, a; mad.lo.u32 %r5, %t, 4, %r5;\n"
#define FENCE "fence.proxy.async;"
// All threads write, a copy of the async proxy overwrites it.
#define WRITTEN FIRSTS INIT MINE "st.shared.b32 [%r5], %t;\n"
#define OVER    LOAD("a", "m") WAIT("m", "X") "ld.shared.b32 %r7, [%r5];"
// A copy of the async proxy reads it.
#define STORE                                                                                      \
    "@!%p0 bra E; mov.u32 %r1, a; cp.async.bulk.global.shared::cta.bulk_group [%base+4096], "      \
    "[%r1], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; E:"
#define BOTH_ALWAYS(text)                                                                          \
    ALWAYS(1, 64, BAR, WRITTEN text OVER, "proxy", "there is no fence.proxy.async between");       \
    ALWAYS(1, 64, BAR, WRITTEN text STORE, "proxy", "there is no fence.proxy.async between")
#define BOTH_NEVER(text)                                                                           \
    NEVER(1, 64, BAR, WRITTEN text OVER);                                                          \
    NEVER(1, 64, BAR, WRITTEN text STORE)

Test(sim_order, fences_between_proxies) {
    BOTH_ALWAYS("bar.sync 0;");
    BOTH_ALWAYS("bar.sync 0; bar.sync 0;");
    BOTH_NEVER(FENCE "bar.sync 0;");          // by those who wrote
    BOTH_NEVER("bar.sync 0; @%p0 " FENCE);    // by the one who begins the copy
    BOTH_ALWAYS("@%p0 " FENCE "bar.sync 0;"); // it says nothing about what others wrote
    BOTH_ALWAYS("@%p1 " FENCE "bar.sync 0;");
    // By a third one, on the way; and beside it.
    BOTH_NEVER("bar.sync 0; @%p1 " FENCE "bar.sync 0;");
    BOTH_NEVER("bar.sync 0; bar.sync 0; @%p1 " FENCE "bar.sync 0; bar.sync 0;");
    BOTH_ALWAYS("bar.sync 0; @%p1 " FENCE);
    // What was written behind the fence.
    BOTH_ALWAYS(FENCE "bar.sync 0; @%p1 st.shared.b32 [%r5], 99; bar.sync 0;");
    BOTH_ALWAYS("bar.sync 0;" FENCE "@%p1 st.shared.b32 [%r5], 99; bar.sync 0;");
    BOTH_NEVER("bar.sync 0;" FENCE "@%p1 st.shared.b32 [%r5], 99; @%p1 " FENCE "bar.sync 0;");
    // Without a barrier of all.
    BOTH_NEVER(FENCE "bar.sync 1, 64;");
    // Who has only read needs none.
    NEVER(1, 64, BAR, WRITTEN FENCE "bar.sync 0; ld.shared.b32 %r9, [%r5]; bar.sync 0;" OVER);
    // What cp.async wrote is a thread's.
    ALWAYS(1, 64, BAR,
           FIRSTS MINE "cp.async.ca.shared.global [%r5], [%base], 4; cp.async.wait_all; bar.sync "
                       "0;" STORE,
           "proxy", "there is no fence.proxy.async between");
    NEVER(1, 64, BAR,
          FIRSTS MINE "cp.async.ca.shared.global [%r5], [%base], 4; cp.async.wait_all;" FENCE
                      "bar.sync 0;" STORE);
    ALWAYS(1, 32, BAR,
           FIRSTS INIT "mov.u32 %r5, a; @%p0 cp.async.ca.shared.global [%r5], [%base], 16;\n"
                       "@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [m]; bar.sync 0;\n" WAIT(
                           "m", "X") "@!%p0 bra E; cp.async.bulk.global.shared::cta.bulk_group "
                                     "[%base+4096], [%r5], 16; cp.async.bulk.commit_group;\n"
                                     "cp.async.bulk.wait_group 0; E:",
           "proxy", "there is no fence.proxy.async between");
}

// A copy may tell an mbarrier whose init lies behind a fence.
Test(sim_order, fences_of_mbarriers) {
#define KNOWN FIRSTS "@%p0 mbarrier.init.shared.b64 [m], 1;"
#define TELL  "@!%p1 bra X; mov.u32 %r1, a;\n" TELL_ALONE
#define TELL_ALONE                                                                                 \
    "mbarrier.arrive.expect_tx.shared.b64 _, [m], 256; cp.async.bulk.shared::cluster.global"       \
    ".mbarrier::complete_tx::bytes [%r1], [%base], 256, [m];\n" WAIT("m", "X")
    NEVER(1, 64, BAR, KNOWN "fence.mbarrier_init.release.cluster; bar.sync 0;" TELL);
    NEVER(1, 64, BAR, KNOWN FENCE "bar.sync 0;" TELL);
    NEVER(1, 64, BAR, KNOWN "bar.sync 0;" FENCE TELL);
    ALWAYS(1, 64, BAR, KNOWN "bar.sync 0;" TELL, "proxy", "fence.mbarrier_init");
    ALWAYS(1, 64, BAR, KNOWN "bar.sync 0; @%p0 fence.mbarrier_init.release.cluster;" TELL, "proxy",
           "fence.mbarrier_init");
    ALWAYS(1, 64, BAR, KNOWN "bar.sync 0; @%p1 fence.mbarrier_init.release.cluster;" TELL, "proxy",
           "fence.mbarrier_init"); // it speaks of what its thread initialised
}

// ---- Clusters

#define TILE ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 m[1];"
#define OTHER                                                                                      \
    FIRSTS "mov.u32 %r1, tile; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1;\n"              \
           "mapa.shared::cluster.u32 %r4, %r1, %r3; mad.lo.u32 %r5, %t, 4, %r4;\n"
#define MEET    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define RELAXED "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
#define GIVE    "st.shared::cluster.b32 [%r5], %t;\n"

// Memory of a block may be used once it has started, and something says so.
Test(sim_order, start_of_blocks) {
    ALWAYS(2, 32, TILE, OTHER GIVE MEET, "not-started", "shared memory of block");
    ALWAYS(2, 32, TILE, OTHER "bar.sync 0;" GIVE MEET, "not-started", "shared memory of block");
    ALWAYS(2, 32, TILE,
           OTHER "mov.u32 %r6, m; mapa.shared::cluster.u32 %r6, %r6, %r3;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];" MEET,
           "not-started", "shared memory of block");
    NEVER(2, 32, TILE, OTHER RELAXED GIVE MEET);
    NEVER(2, 32, TILE, OTHER MEET GIVE MEET);
    // One warp has waited, and tells the others.
    NEVER(2, 64, TILE, OTHER MEET "bar.sync 0;" GIVE MEET);
}

// A block may end while another one's copy reads that one's memory.
Test(sim_order, ends_beside_a_copy) {
    NEVER(2, 32, BAR,
          FIRSTS MINE "mov.b32 %r3, 0; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p6, %r2, 0;\n"
                      "@%p6 bra E; st.shared.b32 [%r5], 1; " FENCE "bar.warp.sync -1;\n"
                      "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%base+4096], [a], 128;\n"
                      "@%p0 cp.async.bulk.commit_group;\n"
                      "L: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 300; @%p4 bra L;\n"
                      "@%p0 cp.async.bulk.wait_group 0; E:");
}

// A store or an update that goes by itself hands over itself, and nothing that its thread did
// since.
Test(sim_order, updates_by_themselves) {
#define SEND(op, BEHIND)                                                                           \
    OTHER "@%p0 mbarrier.init.shared.b64 [m], 1; @%p0 st.shared.b32 [tile], 0;\n"                  \
          "@%p0 st.shared.b32 [tile+512], 0; @%p0 st.shared.b32 [tile+256], 0; @%p0 "              \
          "mbarrier.arrive.expect_tx.shared.b64 _, [m], "                                          \
          "4;\n" MEET "mov.u32 %r6, m; mapa.shared::cluster.u32 %r6, %r6, %r3;\n"                  \
          "@%p0 " op                                                                               \
          "[%r4], 5, [%r6];\n" BEHIND WAIT("m", "X") "ld.shared.b32 %r7, [tile];\n"                \
                                                     "ld.shared.b32 %r8, [tile+512];" MEET
#define ST  "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
#define RED "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
    NEVER(2, 32, TILE, SEND(ST, ""));
    NEVER(2, 32, TILE, SEND(RED, ""));
    ALWAYS(2, 32, TILE, SEND(ST, "@%p0 st.shared::cluster.b32 [%r4+512], 3;\n"), "race",
           "of the cluster");
    ALWAYS(2, 32, TILE, SEND(RED, "@%p0 st.shared::cluster.b32 [%r4+512], 3;\n"), "race",
           "of the cluster");
    // Another access of the place while the update is on its way.
    ALWAYS(2, 32, TILE, SEND(RED, "@%p0 ld.shared::cluster.b32 %r9, [%r4];\n"), "race",
           "of the cluster");
    NEVER(2, 32, TILE, SEND(RED, "@%p0 red.shared::cluster.add.u32 [%r4+256], 0;\n"));
}

// Threads that synchronise in parts of a warp know the same: rows of all of a cluster's threads,
// one for each of them, would take more than a GiB.
Test(sim_order, parts_of_warps_in_a_large_cluster) {
    sim_env *e = sim_open();
    const char *text =
        "mov.u32 %r7, tile; mad.lo.u32 %r8, %t, 4, %r7; and.b32 %r1, %t, 16;\n"
        "setp.eq.u32 %p1, %r1, 0; st.shared.b32 [%r8], %t;\n"
        "@%p1 bra A; bar.warp.sync 0xffff0000; bra B;\nA: bar.warp.sync 0xffff;\n"
        "B: xor.b32 %r6, %t, 1; mad.lo.u32 %r8, %r6, 4, %r7; ld.shared.b32 %r2, [%r8];\n"
        "fence.proxy.async; @%p1 bra C; bar.warp.sync 0xffff0000; bra D;\n"
        "C: bar.warp.sync 0xffff;\nD: st.shared.b32 [%r8], %t;";
    cr_assert(sim_read(e, sim_body(e, ".shared .align 16 .b8 tile[4096];", text)), "%s",
              e->error.text);
    e->launch.cluster[0] = 16;
    e->launch.cluster[1] = e->launch.cluster[2] = 1;
    cr_expect(sim_launch(e, 16, 1024), "%s", sim_fault(e));
    cr_expect(e->arena.total < (size_t)300 << 20, "%zu bytes", e->arena.total);
    sim_close(e);
}
