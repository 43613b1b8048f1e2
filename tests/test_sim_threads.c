// SPDX-License-Identifier: Apache-2.0
// The simulator's threads: divergence, what happens between threads, shared memory and its order,
// barriers, and each fault with its place.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

static void has(sim_env *e, bool ok, const char *const *words) {
    cr_assert(!ok, "no fault, expected '%s'", words[0]);
    const char *said = sim_fault(e);
    for (; *words; words++) {
        cr_expect(strstr(said, *words) != NULL, "no '%s' in: %s", *words, said);
    }
    sim_close(e);
}
#define FAULT(e, ok, ...) has(e, ok, (const char *const[]){__VA_ARGS__, NULL})

// Each word of `got` against an expression of k.
#define EACH(e, n, EXPR)                                                                           \
    for (uint64_t k = 0; k < (n); k++) {                                                           \
        cr_assert_eq((e)->word[k], (uint64_t)(EXPR), "thread %u: 0x%llx", (unsigned)k,             \
                     (unsigned long long)(e)->word[k]);                                            \
    }

static sim_env *good(uint32_t threads, const char *shared, const char *text) {
    sim_env *e = sim_open();
    for (uint64_t seed = 0; seed < 8; seed++) {
        e->launch.seed = seed;
        memset(e->word, 0, sizeof e->word);
        cr_assert(sim_run_shared(e, threads, shared, text), "seed %u: %s", (unsigned)seed,
                  sim_fault(e));
    }
    return e;
}

#define TILE ".shared .align 16 .b8 tile[1024];"
#define MINE "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 4, %r1;\n"

// Each half of a warp meets by itself; a thread then reads what another wrote.
#define HALVES(OTHER)                                                                              \
    "st.shared.b32 [%r1], %t; and.b32 %r5, %t, 16;\n"                                              \
    "shl.b32 %r6, 0xffff, %r5; bar.warp.sync %r6;\n"                                               \
    "xor.b32 %r2, %t, " OTHER "; mov.u32 %r3, tile;\n"                                             \
    "mad.lo.u32 %r3, %r2, 4, %r3; ld.shared.b32 %r4, [%r3];"

// ---- Control

Test(sim_threads, loop_and_divergence) {
    sim_env *e = good(40, "",
                      "mov.b64 %d1, 0; mov.b32 %r1, 0;\n"
                      "LOOP: setp.ge.u32 %p1, %r1, %t; @%p1 bra DONE;\n"
                      "and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 0;\n"
                      "@!%p2 bra ODD; add.s64 %d1, %d1, 10; bra.uni NEXT;\n"
                      "ODD: add.s64 %d1, %d1, 1;\n"
                      "NEXT: add.s32 %r1, %r1, 1; bra LOOP;\n"
                      "DONE: st.global.b64 [%at], %d1;");
    EACH(e, 40, 10 * ((k + 1) / 2) + k / 2)
    sim_close(e);
}

Test(sim_threads, branches_by_index) {
    static const char text[] = "mov.b64 %d1, 7; and.b32 %r1, %t, 3;\n"
                               "$L_brx_0: .branchtargets A, B, A;\n"
                               "setp.eq.u32 %p1, %r1, 3; @!%p1 brx.idx %r1, $L_brx_0;\n"
                               "bra OUT; A: mov.b64 %d1, 20; bra.uni OUT; B: mov.b64 %d1, 30;\n"
                               "OUT: st.global.b64 [%at], %d1;";
    sim_env *e = good(64, "", text);
    EACH(e, 64, k % 4 == 3 ? 7 : k % 4 == 1 ? 30 : 20)
    sim_close(e);
    e = sim_open();
    bool ok = sim_run(e, 32, "T: .branchtargets A;\nbrx.idx %t, T;\nA:");
    FAULT(e, ok, "12: [branch-index]", "thread 1 of", "label 1 of 1");
}

// A thread that spins at a smaller pc than the one it waits for does not starve it.
Test(sim_threads, spinning_gives_way) {
    sim_env *e = good(32, "",
                      "setp.eq.u32 %p1, %t, 5; @%p1 bra GIVE;\n"
                      "SPIN: ld.global.b64 %d1, [%base+2048]; setp.eq.b64 %p2, %d1, 0;\n"
                      "@%p2 bra SPIN; bra.uni OUT;\n"
                      "GIVE: st.global.b64 [%base+2048], 7;\n"
                      "OUT: st.global.b64 [%at], 3;");
    EACH(e, 32, 3)
    sim_close(e);
}

Test(sim_threads, scoped_registers_and_labels) {
    sim_env *e = good(32, "",
                      "mov.b32 %r1, 5;\n"
                      "{ .reg .b32 %r1; .reg .pred P; mov.b32 %r1, 9; bra AGAIN; AGAIN: }\n"
                      "{ bra AGAIN; add.s32 %r1, %r1, 100; AGAIN: }\n"
                      "cvt.u64.u32 %d1, %r1; st.global.b64 [%at], %d1;");
    EACH(e, 32, 5)
    sim_close(e);
}

// ---- Between the threads of a warp

Test(sim_threads, shuffles) {
    sim_env *e = good(64, "",
                      "and.b32 %r1, %t, 31;\n"
                      "shfl.sync.bfly.b32 %r2, %r1, 3, 31, -1;\n"
                      "shfl.sync.up.b32 %r3|%p1, %r1, 2, 0, -1;\n"
                      "shfl.sync.down.b32 %r4|%p2, %r1, 2, 0x1807, -1;\n" // in eights
                      "shfl.sync.idx.b32 %r5, %r1, 7, 31, -1;\n"
                      "selp.b32 %r6, 1, 0, %p1; selp.b32 %r7, 1, 0, %p2;\n"
                      "shl.b32 %r3, %r3, 8; shl.b32 %r4, %r4, 16; shl.b32 %r5, %r5, 24;\n"
                      "or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4; or.b32 %r2, %r2, %r5;\n"
                      "shl.b32 %r7, %r7, 1; or.b32 %r6, %r6, %r7;\n"
                      "mov.b64 %d1, {%r2, %r6}; st.global.b64 [%at], %d1;");
    for (uint64_t k = 0; k < 64; k++) {
        uint64_t l = k % 32, up = l >= 2 ? l - 2 : l, down = l % 8 < 6 ? l + 2 : l;
        uint64_t want = (l ^ 3) | up << 8 | down << 16 | 7ull << 24;
        want |= (uint64_t)((l >= 2) | (l % 8 < 6) << 1) << 32;
        cr_assert_eq(e->word[k], want, "lane %u: %llx, not %llx", (unsigned)l,
                     (unsigned long long)e->word[k], (unsigned long long)want);
    }
    sim_close(e);
}

Test(sim_threads, votes_and_matches) {
    sim_env *e = good(32, "",
                      "and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1;\n"
                      "vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.any.pred %p2, %p1, -1;\n"
                      "vote.sync.all.pred %p3, %p1, -1; match.any.sync.b32 %r3, %r1, -1;\n"
                      "match.all.sync.b32 %r4|%p4, %r1, -1;\n"
                      "redux.sync.add.s32 %r5, %r1, -1; redux.sync.max.u32 %r6, %t, -1;\n"
                      "elect.sync _|%p5, -1; selp.b32 %r7, 1, 0, %p5;\n"
                      "@%p2 add.s32 %r5, %r5, 1000; @%p3 add.s32 %r5, %r5, 5000;\n"
                      "add.s32 %r5, %r5, %r4; add.s32 %r5, %r5, %r6; xor.b32 %r2, %r2, %r3;\n"
                      "shl.b32 %r7, %r7, 16; add.s32 %r5, %r5, %r7;\n"
                      "mov.b64 %d1, {%r5, %r2}; st.global.b64 [%at], %d1;");
    for (uint64_t k = 0; k < 32; k++) {
        uint32_t ballot = 0x22222222, match = 0x11111111u << (k % 4);
        uint64_t want =
            (uint64_t)(ballot ^ match) << 32 | (uint64_t)(48 + 1000 + 31 + (k == 0) * 65536);
        cr_assert_eq(e->word[k], want, "lane %u: %llx", (unsigned)k,
                     (unsigned long long)e->word[k]);
    }
    sim_close(e);
}

// The members come to it at different times; others of the warp do not take part.
Test(sim_threads, partial_members) {
    sim_env *e = good(32, "",
                      "mov.b64 %d1, 99; setp.lt.u32 %p1, %t, 16; @!%p1 bra OUT;\n"
                      "setp.lt.u32 %p2, %t, 3; @%p2 bra LATE;\n"
                      "MEET: shfl.sync.idx.b32 %r1, %t, 2, 31, 0xffff; cvt.u64.u32 %d1, %r1;\n"
                      "bra.uni OUT; LATE: add.s32 %r2, %t, 1; bra MEET;\n"
                      "OUT: st.global.b64 [%at], %d1;");
    EACH(e, 32, k < 16 ? 2 : 99)
    sim_close(e);
}

Test(sim_threads, wrong_members) {
    sim_env *e = sim_open();
    bool ok = sim_run(e, 32, "shfl.sync.idx.b32 %r1, %t, 2, 31, 0xffff;");
    FAULT(e, ok, "11: [membership]", "thread 16 of block 0", "0xffff");
    e = sim_open();
    ok = sim_run(e, 32,
                 "setp.lt.u32 %p1, %t, 4;\n@%p1 bra OUT;\nshfl.sync.idx.b32 %r1, %t, 1, 31, "
                 "0xfffffff0;\nOUT:");
    FAULT(e, ok, "[shuffle-source]", "lane 4 reads lane 1");
    e = sim_open(); // some never come, and wait elsewhere
    ok = sim_run(e, 32,
                 "setp.lt.u32 %p1, %t, 4;\n@%p1 bra OUT;\nvote.sync.any.pred %p2, %p1, -1;\n"
                 "OUT: bar.sync 0;");
    FAULT(e, ok, "divergent-barrier", "28 threads of warp 0", "vote.sync");
}

// ---- Shared memory and its order

static const char neighbour[] = MINE "st.shared.b32 [%r1], %t;\n"
                                     "bar.sync 0;\n"
                                     "xor.b32 %r2, %t, 33; mov.u32 %r3, tile;\n"
                                     "mad.lo.u32 %r3, %r2, 4, %r3; ld.shared.b32 %r4, [%r3];\n"
                                     "cvt.u64.u32 %d1, %r4; st.global.b64 [%at], %d1;";

static const char *without(sim_env *e, const char *text, const char *line) {
    const char *at = strstr(text, line);
    cr_assert(at != NULL);
    return tk_format(&e->arena, "%.*s%s", (int)(at - text), text, at + strlen(line));
}

Test(sim_threads, barrier_orders) {
    sim_env *e = good(64, TILE, neighbour);
    EACH(e, 64, k ^ 33)
    sim_close(e);
    e = sim_open();
    bool ok = sim_run_shared(e, 64, TILE, without(e, neighbour, "bar.sync 0;\n"));
    FAULT(e, ok, "[uninitialised]", "reads shared memory at 0x");
    for (uint64_t seed = 1; seed < 8; seed++) {
        e = sim_open();
        e->launch.seed = seed;
        ok = sim_run_shared(e, 64, TILE, without(e, neighbour, "bar.sync 0;\n"));
        cr_expect(!ok, "seed %u", (unsigned)seed);
        sim_close(e);
    }
}

Test(sim_threads, races) {
    sim_env *e = sim_open(); // after a read, without a barrier
    bool ok = sim_run_shared(e, 64, TILE,
                             MINE "st.shared.b32 [%r1], %t;\nbar.sync 0;\n"
                                  "ld.shared.b32 %r2, [tile];\nst.shared.b32 [%r1], 5;");
    FAULT(e, ok, "15: [race]", "writes shared memory", "read", "; 14: thread ");
    e = sim_open(); // two writers of different values
    ok = sim_run_shared(e, 64, TILE, "st.shared.b32 [tile], %t;");
    FAULT(e, ok, "[race]", "wrote");
    e = sim_open(); // half a word each: no race
    ok = sim_run_shared(e, 64, TILE,
                        "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 2, %r1; mov.b16 %h1, 3;\n"
                        "st.shared.b16 [%r1], %h1;\nbar.sync 0;\nld.shared.b32 %r2, [tile];");
    cr_assert(ok, "%s", sim_fault(e));
    sim_close(e);
    e = sim_open(); // the same value: no race
    ok = sim_run_shared(e, 64, TILE, "st.shared.b32 [tile], 7;");
    cr_assert(ok, "%s", sim_fault(e));
    sim_close(e);
}

// Between the threads of a warp a shuffle orders nothing, bar.warp.sync does.
Test(sim_threads, within_a_warp) {
    static const char text[] = MINE "st.shared.b32 [%r1], %t;\nbar.warp.sync -1;\n"
                                    "xor.b32 %r2, %t, 1; mov.u32 %r3, tile;\n"
                                    "mad.lo.u32 %r3, %r2, 4, %r3; ld.shared.b32 %r4, [%r3];\n"
                                    "cvt.u64.u32 %d1, %r4; st.global.b64 [%at], %d1;";
    sim_env *e = good(64, TILE, text);
    EACH(e, 64, k ^ 1)
    sim_close(e);
    e = sim_open();
    bool ok = sim_run_shared(e, 64, TILE, without(e, text, "bar.warp.sync -1;\n"));
    FAULT(e, ok, "[race]");
    // Halves, each with its own members: what the other half wrote is not ordered, what one's own
    // did is.
    e = sim_open();
    ok = sim_run_shared(e, 32, TILE, MINE HALVES("16"));
    FAULT(e, ok, "[race]");
    e = good(32, TILE, MINE HALVES("8"));
    sim_close(e);
    e = sim_open(); // one half names both
    ok = sim_run_shared(e, 32, TILE,
                        "and.b32 %r5, %t, 16; shl.b32 %r6, 0xffff, %r5; setp.eq.u32 %p1, %r5, 0;\n"
                        "@%p1 mov.b32 %r6, -1; bar.warp.sync %r6;");
    FAULT(e, ok, "[membership]");
    e = sim_open();
    ok = sim_run_shared(e, 32, TILE,
                        MINE "st.shared.b32 [%r1], %t; setp.lt.u32 %p1, %t, 16;\n"
                             "@%p1 bra LOW; bar.warp.sync 0xffff0000; bra.uni ON;\n"
                             "LOW: bar.warp.sync 0x0000ffff;\n"
                             "ON: xor.b32 %r2, %t, 16; mov.u32 %r3, tile;\n"
                             "mad.lo.u32 %r3, %r2, 4, %r3; ld.shared.b32 %r4, [%r3];");
    FAULT(e, ok, "[race]", "which thread");
}

// Warp 0 makes, warp 1 uses: arrive on one barrier, sync on another; each orders what it should.
static const char hand_over[] =
    MINE "setp.ge.u32 %p1, %t, 32; @%p1 bra USE;\n"
         "st.shared.b32 [%r1], %t; bar.arrive 1, 64;\n"
         "bar.sync 2, 64;\nst.shared.b32 [%r1], 1; bra.uni OUT;\n"
         "USE: bar.sync 1, 64;\nld.shared.b32 %r2, [%r1+-128]; bar.arrive 2, 64;\n"
         "OUT: st.global.b64 [%at], 1;";

Test(sim_threads, numbered_barriers) {
    sim_env *e = good(64, TILE, hand_over);
    sim_close(e);
    static const char *const parts[] = {"bar.sync 2, 64;\n", "bar.sync 1, 64;\n"};
    for (unsigned k = 0; k < 2; k++) {
        bool caught = false;
        for (uint64_t seed = 0; seed < 20; seed++) {
            e = sim_open();
            e->launch.seed = seed;
            caught = !sim_run_shared(e, 64, TILE, without(e, hand_over, parts[k])) || caught;
            sim_close(e);
        }
        cr_expect(caught, "without %s", parts[k]);
    }
}

Test(sim_threads, barrier_reductions) {
    sim_env *e = good(64, "",
                      "setp.lt.u32 %p1, %t, 10; bar.red.popc.u32 %r1, 0, %p1;\n"
                      "bar.red.or.pred %p2, 0, %p1; bar.red.and.pred %p3, 1, 64, %p1;\n"
                      "@%p2 add.s32 %r1, %r1, 100; @%p3 add.s32 %r1, %r1, 1000;\n"
                      "cvt.u64.u32 %d1, %r1; st.global.b64 [%at], %d1;");
    EACH(e, 64, 110)
    sim_close(e);
}

Test(sim_threads, atomics) {
    sim_env *e = good(256, ".shared .align 8 .b8 sum[8];",
                      "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.b32 [sum], 0;\nbar.sync 0;\n"
                      "atom.shared.add.u32 %r1, [sum], 2; red.global.add.u64 [%base+4096], %d1;\n"
                      "bar.sync 0; ld.shared.b32 %r2, [sum]; cvt.u64.u32 %d2, %r2;\n"
                      "st.global.b64 [%at], %d2;");
    EACH(e, 256, 512)
    sim_close(e);
    e = sim_open();
    bool ok =
        sim_run_shared(e, 64, ".shared .align 8 .b8 sum[8];", "atom.shared.add.u32 %r1, [sum], 2;");
    FAULT(e, ok, "[uninitialised]");
}

Test(sim_threads, compare_and_swap_and_others) {
    sim_env *e = sim_open();
    e->word[0] = 5;
    e->word[1] = 0x3f800000;
    e->word[2] = 9;
    e->word[3] = 0x3c003c00;
    cr_assert(sim_run(e, 1,
                      "atom.global.cas.b32 %r1, [%base], 5, 8;\n"
                      "atom.global.add.f32 %r2, [%base+8], 0f40000000;\n"
                      "atom.global.inc.u32 %r3, [%base+16], 9;\n"
                      "atom.global.add.noftz.f16x2 %r4, [%base+24], %r2;\n"
                      "atom.global.min.s32 %r5, [%base], -4;\n"
                      "atom.global.exch.b64 %d1, [%base+32], 77;"),
              "%s", sim_fault(e));
    cr_expect_eq(e->word[0], 0xfffffffc);
    cr_expect_eq(e->word[1], 0x40400000);
    cr_expect_eq(e->word[2], 0);
    cr_expect_eq(e->word[4], 77);
    sim_close(e);
}

// Subnormals of f32 in global memory are zeros of their sign, in shared memory they are numbers.
Test(sim_threads, atomic_subnormals) {
    sim_env *e = sim_open();
    const uint32_t least = 0x00800000, third = 0x80800001, last = 0x80000003;
    e->word[0] = 1;
    e->word[1] = least;
    e->word[2] = third;
    e->word[3] = last;
    cr_assert(sim_run_shared(e, 1, ".shared .align 8 .b8 sum[8];",
                             "red.global.add.f32 [%base], 0f00000002;\n"
                             "red.global.add.f32 [%base+8], 0f80000005;\n"
                             "red.global.add.f32 [%base+16], 0f00800003;\n"
                             "atom.global.add.f32 %r1, [%base+24], 0f80000000;\n"
                             "st.shared.b32 [sum], 1; red.shared.add.f32 [sum], 0f00000002;\n"
                             "ld.shared.b32 %r2, [sum]; cvt.u64.u32 %d2, %r2;\n"
                             "st.global.b64 [%base+32], %d2;"),
              "%s", sim_fault(e));
    cr_expect_eq(e->word[0], 0);
    cr_expect_eq(e->word[1], least);
    cr_expect_eq(e->word[2], 0);
    cr_expect_eq(e->word[3], 0x80000000);
    cr_expect_eq(e->word[4], 3);
    sim_close(e);
}

// ---- Faults of addresses

Test(sim_threads, addresses) {
    sim_env *e = sim_open();
    bool ok = sim_run(e, 32, "ld.global.b32 %r1, [%base+32768];");
    FAULT(e, ok, "11: [out-of-bounds]", "thread 0", "reads 4 bytes of global memory",
          "byte 32768 of buffer, which has 32768");
    e = sim_open();
    ok = sim_run(e, 32, "st.global.b32 [%base+-4], %r1;");
    FAULT(e, ok, "[out-of-bounds]", "writes 4 bytes", "4 bytes before buffer");
    e = sim_open();
    ok = sim_run(e, 32, "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%base+4];");
    FAULT(e, ok, "[misaligned]", "16 bytes");
    e = sim_open();
    ok = sim_run_shared(e, 32, TILE, "st.shared.b32 [tile+1024], %t;");
    FAULT(e, ok, "[out-of-bounds]", "shared memory");
    e = sim_open();
    ok = sim_run_shared(e, 32, TILE, "mov.b32 %r1, 0; st.shared.b32 [%r1], %t;");
    FAULT(e, ok, "[out-of-bounds]", "shared memory at 0x0");
    e = sim_open();
    ok = sim_run(e, 32, "mov.u64 %d1, k_param_0; st.param.b32 [%d1], %t;");
    FAULT(e, ok, "[read-only]");
    e = sim_open();
    ok = sim_run(e, 32, ".local .align 4 .b8 own[16]; st.local.b32 [own+16], %t;");
    FAULT(e, ok, "[out-of-bounds]", "local memory");
}

Test(sim_threads, generic_addresses) {
    sim_env *e = good(64,
                      TILE ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
                           ".const .align 4 .u32 ten = 10;",
                      ".local .align 8 .b8 own[8]; mov.b64 %d1, own; cvta.local.u64 %d1, %d1;\n"
                      "st.b32 [%d1], %t; mov.b64 %d2, tile; cvta.shared.u64 %d2, %d2;\n"
                      "mad.wide.u32 %d2, %t, 4, %d2; ld.local.b32 %r1, [own];\n"
                      "st.b32 [%d2], %r1; ld.b32 %r2, [%d2]; ld.const.b32 %r3, [ten];\n"
                      "mov.b64 %d3, table; ld.global.b8 %h1, [%d3+2]; cvt.u32.u16 %r4, %h1;\n"
                      "isspacep.shared %p1, %d2; isspacep.global %p2, %d2;\n"
                      "@%p1 add.s32 %r2, %r2, %r3; @%p2 add.s32 %r2, %r2, 1000;\n"
                      "add.s32 %r2, %r2, %r4; cvt.u64.u32 %d4, %r2; st.global.b64 [%at], %d4;");
    EACH(e, 64, k + 10 + 3)
    sim_close(e);
}

// ---- Barriers that go wrong

Test(sim_threads, barriers_missed) {
    sim_env *e = sim_open(); // a part of a warp
    bool ok = sim_run(e, 64, "setp.lt.u32 %p1, %t, 8;\n@%p1 bar.sync 0;\nbar.sync 1;");
    FAULT(e, ok, "[divergent-barrier]", "12: ", "8 threads of warp 0, the first is 0,",
          "24 threads of warp 0, the first is 8,");
    e = sim_open(); // a warp
    ok = sim_run(e, 64, "setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;");
    FAULT(e, ok, "12: [deadlock]", "warp 0 waits at barrier 0, where 32 of 64 threads have arrived",
          "warp 1 waits at barrier 1");
    e = sim_open(); // different barriers
    ok = sim_run(e, 64,
                 "setp.lt.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA: bar.sync 2;\nB:");
    FAULT(e, ok, "[deadlock]", "warp 0 waits at barrier 2", "warp 1 waits at barrier 1");
    e = sim_open(); // one with a count waits for so many, also where others have ended
    ok = sim_run(e, 64, "setp.lt.u32 %p1, %t, 32;\n@%p1 exit;\nbar.sync 0, 64;");
    FAULT(e, ok, "13: [deadlock]", "where 32 of 64 threads have arrived", "32 threads have ended");
    e = sim_open();
    ok = sim_run(e, 64, "mov.u32 %r9, 48; bar.sync 1, %r9;");
    FAULT(e, ok, "[barrier-operands]");
    e = sim_open();
    ok = sim_run(e, 64, "trap;");
    FAULT(e, ok, "[trap]");
}

// A barrier without .aligned counts threads as they come.
Test(sim_threads, barrier_by_threads) {
    sim_env *e = good(64, "",
                      "setp.lt.u32 %p1, %t, 8; @%p1 bra A; barrier.sync 0; bra.uni B;\n"
                      "A: barrier.sync 0;\nB: st.global.b64 [%at], 2;");
    EACH(e, 64, 2)
    sim_close(e);
}

// ---- Schedule and counters

Test(sim_threads, a_seed_repeats) {
    static const char text[] =
        "atom.global.add.u64 %d1, [%base+8192], 1; st.global.b64 [%at], %d1;";
    uint64_t first[64];
    bool differs = false;
    for (unsigned k = 0; k < 6; k++) {
        sim_env *e = sim_open();
        e->launch.seed = 1 + k / 2;
        cr_assert(sim_run(e, 64, text));
        if (k % 2) {
            cr_expect_arr_eq(first, e->word, sizeof first);
        } else {
            differs = differs || (k && memcmp(first, e->word, sizeof first) != 0);
            memcpy(first, e->word, sizeof first);
        }
        sim_close(e);
    }
    cr_expect(differs, "three seeds give one order");
}

Test(sim_threads, counters) {
    sim_env *e = sim_open();
    cr_assert(sim_run_shared(
                  e, 32, TILE,
                  MINE "st.shared.b32 [%r1], %t;\nbar.sync 0;\n"
                       "mov.u32 %r2, tile; and.b32 %r3, %t, 7; mad.lo.u32 %r2, %r3, 128, %r2;\n"
                       "st.shared.b32 [%r2], 1;\n" // 8 words of one bank
                       "ld.global.b32 %r4, [%base];\n"
                       "st.global.b64 [%at], %d1;"),
              "%s", sim_fault(e));
    tk_sim_counters c;
    tk_sim_sum(&e->arena, e->program, "k", &e->result, &c);
    cr_expect_eq(c.total.shared_requests, 2);
    cr_expect_eq(c.total.shared_wavefronts, 9);
    cr_expect_eq(c.total.shared_conflicts, 7);
    cr_expect_eq(c.total.global_requests, 2);
    cr_expect_eq(c.total.global_sectors, 1 + 8);
    cr_expect_eq(c.total.barrier_waits, 1);
    cr_expect_eq(c.total.threads, 32 * c.total.warps);
    cr_expect_eq(c.by_class[TK_SIM_CLASS_BARRIER].warps, 1);
    sim_close(e);
}
