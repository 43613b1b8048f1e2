// SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel changes: who changes or uses one is held against all that was done with
// it before by order, not by what came first. Each test is a table of who does what, and of what is
// between; all rows are silent under every seed or a fault under every seed.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 4, THREADS = 64 };

// Two maps of 2 x 32 words of the buffer, at its begin and at byte 512.
static void prepare(sim_env *e) {
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

// id: of the fault, NULL for none.
static void check(const char *text, uint32_t blocks, const char *id) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_env *e = sim_open();
        e->launch.seed = seed;
        prepare(e);
        const char *ptx = sim_body(e,
                                   ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b8 "
                                   "bar[8]; .shared .align 8 .b8 flag[8];",
                                   text);
        cr_assert(sim_read(e, ptx), "%u: %s", e->error.at.ptx_line, e->error.text);
        bool ok = sim_launch(e, blocks, THREADS);
        cr_expect(id ? !ok && strcmp(e->result.fault.id, id) == 0 : ok,
                  "seed %u: %s, expected %s:\n%s", (unsigned)seed, sim_fault(e), id ? id : "none",
                  text);
        sim_close(e);
    }
}

// Thread 0 uses the map, %p1. Thread 32 changes it, %p2; its warp, %p4, has a copy of the map in
// shared memory, and bytes to copy there. Thread 33 is %p3.
#define BEGIN                                                                                      \
    "mov.u32 %r1, tile; mov.u32 %r3, bar; mov.u32 %r4, flag; mov.u32 %r2, %ctaid.x;\n"             \
    "setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %t, 32; setp.eq.u32 %p3, %t, 33;\n"                  \
    "setp.ge.u32 %p4, %t, 32; add.u64 %d5, %base, 12288; mov.b32 %r20, 0;\n"                       \
    "@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;\n"               \
    "@%p1 st.shared.b32 [%r4], 0; mad.lo.u32 %r5, %t, 8, %r1; st.shared.b64 [%r5], %d5;\n"         \
    "and.b32 %r6, %t, 31; mul.lo.u32 %r6, %r6, 4; cvt.u64.u32 %d6, %r6; add.u64 %d6, %d6, "        \
    "%base;\n@%p4 ld.global.b32 %r7, [%d6]; add.u32 %r6, %r6, %r1; bar.sync 0;\n"                  \
    "@%p4 st.shared.b32 [%r6+768], %r7; bar.warp.sync -1; fence.proxy.async; bar.sync 0;\n"
#define LOAD(p)                                                                                    \
    p "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n" p                                    \
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "               \
      "[%r1], [%base, {0, 0}], [%r3];\n"
#define LOADED                                                                                     \
    "@!%p1 bra V;\nW: mbarrier.try_wait.parity.shared.b64 %p8, [%r3], 0; @!%p8 bra W;\nV: "
#define STORE                                                                                      \
    "@%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%base, {0, 4}], [%r1]; "          \
    "cp.async.bulk.commit_group;\n"
#define RELEASE "fence.proxy.tensormap::generic.release.gpu;\n"
#define ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%base], 128;\n"
#define WAIT    "@%p2 cp.async.bulk.wait_group 0;\n"

// Uses by thread 0, with its waits, if any.
static const struct {
    const char *text;
    bool waits;
} uses[] = {
    {LOAD("@%p1 ") LOADED, true},
    {STORE "@%p1 cp.async.bulk.wait_group.read 0;\n", true},
    {STORE "@%p1 cp.async.bulk.wait_group 0;\n", true},
    {LOAD("@%p1 "), false},
    {STORE, false},
    {STORE STORE "@%p1 cp.async.bulk.wait_group.read 1;\n", false},
};
enum { USES = sizeof uses / sizeof *uses };

// Changes by thread 32 or its warp; bulk copies with their wait.
#define BULK(wait)                                                                                 \
    "@%p2 cp.async.bulk.global.shared::cta.bulk_group [%base], [%r1+768], 128;\n"                  \
    "@%p2 cp.async.bulk.commit_group;\n" wait
#define REPLACE "@%p2 tensormap.replace.tile.global_address.global.b1024.b64 [%base], %d5;\n"
#define RELAXED "cvta.global.u64 %d9, %base; @%p2 st.relaxed.gpu.b64 [%d9+8], %d5;\n"
#define PUBLISH                                                                                    \
    "@!%p4 bra C;\n"                                                                               \
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "      \
    "[%base], [%r1+768], 128;\nC: "
static const char *const changes[] = {
    REPLACE,
    "@%p2 st.global.b64 [%base+8], %d5;\n",
    "@%p2 atom.global.exch.b64 %d9, [%base+8], %d5;\n",
    "@%p2 st.global.v4.b32 [%base+112], {%r20, %r20, %r20, %r20};\n",
    RELAXED,
    BULK(WAIT),
    PUBLISH,
};
enum { CHANGES = sizeof changes / sizeof *changes };

// From one thread to all others of the block; %s: its predicate.
#define SET(how, before) before "@%s st." how ".cta.shared.b32 [%%r4], 1;\n"
#define SEEN(how, after)                                                                           \
    "F: ld." how ".cta.shared.b32 %%r12, [%%r4]; setp.eq.u32 %%p7, %%r12, 0; @%%p7 bra F;\n" after
static const struct {
    const char *text;
    bool orders, between_fences; // as it is; where fences are before and behind
} orders[] = {
    {"", false, false},
    {"bar.warp.sync -1;\n", false, false},
    {"shfl.sync.idx.b32 %%r9, %%t, 1, 31, -1;\n", false, false},
    {SET("relaxed", "") SEEN("relaxed", ""), false, true},
    {SET("release", "") SEEN("relaxed", ""), false, true},
    {"bar.sync 0;\n", true, true},
    {"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n", true, true},
    {SET("release", "") SEEN("acquire", ""), true, true},
    {SET("relaxed", "fence.acq_rel.cta;\n") SEEN("relaxed", "fence.acq_rel.cta;\n"), true, true},
};
enum { ORDERS = sizeof orders / sizeof *orders };

static const char *order(sim_env *f, unsigned k, const char *by) {
    return tk_format(&f->arena, orders[k].text, by);
}

Test(sim_maps, changes_after_uses) {
    for (unsigned k = 0; k < USES * CHANGES * ORDERS; k++) {
        unsigned use = k % USES, change = k / USES % CHANGES, o = k / USES / CHANGES;
        if (!uses[use].waits && o % 4 != 1) {
            continue; // some orders are enough
        }
        sim_env *f = sim_open();
        check(tk_format(&f->arena, "%s%s%s%s%s", BEGIN, uses[use].text, order(f, o, "%p1"),
                        changes[change],
                        uses[use].waits ? "" : LOADED "@%p1 cp.async.bulk.wait_group 0;\n"),
              1, uses[use].waits && orders[o].orders ? NULL : "race");
        sim_close(f);
    }
}

Test(sim_maps, uses_after_changes) {
    for (unsigned k = 0; k < CHANGES * ORDERS; k++) {
        unsigned change = k % CHANGES, o = k / CHANGES;
        sim_env *f = sim_open();
        check(tk_format(&f->arena, "%s%s%s%s%s%s", BEGIN, changes[change], "@%p2 " RELEASE,
                        order(f, o, "%p2"), ACQUIRE, LOAD("@%p1 ") LOADED),
              1, orders[o].between_fences ? NULL : "race");
        sim_close(f);
    }
    // Who copies to a map, and waits for nothing, or only until that has been read.
    check(BEGIN BULK("") "@%p2 " RELEASE "bar.sync 0;\n" ACQUIRE LOAD("@%p1 ") LOADED WAIT, 1,
          "race");
    check(BEGIN BULK("@%p2 cp.async.bulk.wait_group.read 0;\n") "@%p2 " RELEASE
                                                                "bar.sync 0;\n" ACQUIRE LOAD(
                                                                    "@%p1 ") LOADED WAIT,
          1, "race");
}

// Two threads change a map: plain stores write a part each, all else must be ordered.
Test(sim_maps, changes_after_changes) {
    for (unsigned k = 0; k < CHANGES * ORDERS * 2; k++) {
        unsigned change = k % CHANGES, o = k / CHANGES % ORDERS, whole = k / CHANGES / ORDERS;
        bool store = change >= 1 && change <= 5;
        sim_env *f = sim_open();
        check(tk_format(&f->arena, "%s%s%s%s", BEGIN,
                        whole ? "@%p1 tensormap.replace.tile.rank.global.b1024.b32 [%base], 1;\n"
                              : "@%p1 st.global.b32 [%base+64], 0;\n",
                        order(f, o, "%p1"), changes[change]),
              1, orders[o].orders || (store && !whole) ? NULL : "race");
        sim_close(f);
    }
}

// ---- The release

// Thread 32 changes the map, one of three has the fence, thread 0 acquires and uses; what is
// between: a barrier or nothing.
static const struct {
    const char *by;
    bool first, second; // it need not be ordered behind the change; before thread 0
} releases[] = {{"@%p2 ", true, false}, {"@%p3 ", false, false}, {"@%p1 ", false, true}};

// What thread 0 says of it.
static const char *expected(unsigned by, bool first, bool second) {
    bool ok = (first || releases[by].first) && (second || releases[by].second);
    return !first && !second ? "race" : ok ? NULL : "proxy";
}

Test(sim_maps, releases) {
    for (unsigned k = 0; k < 3 * 4; k++) {
        unsigned by = k % 3;
        bool first = k / 3 % 2, second = k / 6;
        sim_env *f = sim_open();
        check(tk_format(&f->arena, "%s%s%s%s%s%s%s%s", BEGIN, changes[0],
                        first ? "bar.sync 0;\n" : "", releases[by].by, RELEASE,
                        second ? "bar.sync 0;\n" : "", ACQUIRE, LOAD("@%p1 ") LOADED),
              1, expected(by, first, second));
        sim_close(f);
    }
}

// The same where another block uses the map, to which thread 0 tells by a flag in global memory.
#define USER  "setp.ne.u32 %p9, %r2, 0; @%p9 bra USER;\n"
#define FLAG  "[%base+2048]"
#define OTHER ACQUIRE LOAD("@%p1 ") LOADED "END: "
#define POLL(how, after)                                                                           \
    "bra END;\nUSER: ld." how ".gpu.global.b32 %r12, " FLAG                                        \
    "; setp.eq.u32 %p7, %r12, 0; @%p7 bra USER;\n" after
static const struct {
    const char *give, *take;
    bool orders, before_fence; // as it is; where a fence follows
} flags[] = {
    {"@%p1 st.release.gpu.global.b32 " FLAG ", 1;\n", POLL("acquire", ""), true, true},
    {"@%p1 red.release.gpu.global.add.u32 " FLAG ", 1;\n", POLL("acquire", ""), true, true},
    {"fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.b32 " FLAG ", 1;\n",
     POLL("relaxed", "fence.acq_rel.gpu;\n"), true, true},
    {"@%p1 st.relaxed.gpu.global.b32 " FLAG ", 1;\n", POLL("acquire", ""), false, false},
    {"fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.b32 " FLAG ", 1;\n", POLL("relaxed", ""), false,
     true},
};

Test(sim_maps, releases_to_another_block) {
    for (unsigned k = 0; k < 3 * 4 * 3; k++) {
        unsigned by = k % 3, flag = k / 12;
        bool first = k / 3 % 2, second = k / 6 % 2;
        sim_env *f = sim_open();
        check(tk_format(&f->arena, "%s%s%s%s%s%s%s%s%s", BEGIN USER, changes[0],
                        first ? "bar.sync 0;\n" : "", releases[by].by, RELEASE,
                        second ? "bar.sync 0;\n" : "", flags[flag].give, flags[flag].take, OTHER),
              2, expected(by, first, second));
        sim_close(f);
    }
}

// The fences for maps are themselves such that relaxed accesses hand over by.
Test(sim_maps, fences_of_the_maps_and_relaxed_flags) {
    check(BEGIN USER
          "@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%base], %d5;\n" RELEASE
          "@%p1 st.relaxed.gpu.global.b32 " FLAG ", 1;\n" POLL("relaxed", "") OTHER,
          2, NULL);
}

// Block 1 changes what block 0 has used, or uses what it changes.
Test(sim_maps, orders_between_blocks) {
    for (unsigned k = 0; k < 5 * CHANGES; k++) {
        unsigned flag = k % 5, change = k / 5;
        sim_env *f = sim_open();
        const char *id = flags[flag].orders ? NULL : "race";
        check(tk_format(&f->arena, "%s%s%s%s%sEND: ", BEGIN USER, uses[k % 3].text,
                        flags[flag].give, flags[flag].take, changes[change]),
              2, id);
        check(tk_format(&f->arena, "%s%s%s%s%s%s", BEGIN USER, changes[change],
                        "@%p2 " RELEASE "bar.sync 0;\n", flags[flag].give, flags[flag].take, OTHER),
              2, flags[flag].before_fence ? NULL : "race");
        sim_close(f);
    }
}

// Beside a map in use may be stored, and to another one.
Test(sim_maps, stores_beside_maps) {
    check(BEGIN STORE "@%p4 st.global.b32 [%d6+256], %r7; @%p2 st.global.b64 [%base+520], %d5;\n"
                      "@%p2 st.global.b64 [%base+128], %d5;\n@%p1 cp.async.bulk.wait_group 0;\n",
          1, NULL);
    check(BEGIN "@%p4 st.global.b32 [%d6+512], %r7;\n" STORE "@%p1 cp.async.bulk.wait_group 0;\n",
          1, NULL);
}
