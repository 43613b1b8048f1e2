// SPDX-License-Identifier: Apache-2.0
// Locks that are taken in a different order by different threads: a deadlock only where each has
// taken its first one before any of them comes to its second. Seeds other than 0 look for such
// schedules. Locks that all take in one order are silent.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SEEDS = 40, FEW = 10 };

// %r1 who takes locks, of %r2 in all: first number %r1, then the next one, around. They lie in
// global memory from word 512 on.
#define TAKE(N, AT)                                                                                \
    "L" N ": atom.acquire.gpu.global.cas.b32 %r9, [" AT "], 0, 1; setp.ne.u32 %p9, %r9, 0;\n"      \
    "@%p9 bra L" N ";\n"
#define FREE(AT) "st.release.gpu.global.u32 [" AT "], 0;\n"
#define RING(SORT)                                                                                 \
    "add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, %r2; min.u32 %r4, %r1, %r3; max.u32 %r5, %r1, %r3;\n"  \
    "mov.u32 %r6, " SORT "; setp.eq.u32 %p8, %r6, 0; selp.u32 %r4, %r1, %r4, %p8;\n"               \
    "selp.u32 %r5, %r3, %r5, %p8; mad.wide.u32 %d4, %r4, 4, %base; mad.wide.u32 %d5, %r5, 4, "     \
    "%base;\n" TAKE("1", "%d4+4096") "add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r8;\n" TAKE(       \
        "2", "%d5+4096") FREE("%d5+4096") FREE("%d4+4096") "OUT:"

#define WARPS  "shr.u32 %r1, %t, 5; mov.u32 %r10, %ntid.x; shr.u32 %r2, %r10, 5;\n"
#define ONE    "and.b32 %r10, %t, 31; setp.ne.u32 %p1, %r10, 0; @%p1 bra OUT;\n"
#define BLOCKS "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;\n"

// How many of the seeds from 1 on find it, and the first that does.
static unsigned found(sim_env *e, uint32_t blocks, uint32_t threads, uint64_t *first) {
    unsigned n = 0;
    *first = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        e->launch.seed = seed;
        memset(e->word, 0, sizeof e->word);
        if (!sim_launch(e, blocks, threads)) {
            cr_assert_str_eq(e->result.fault.id, "deadlock", "seed %u: %s", (unsigned)seed,
                             sim_fault(e));
            *first = *first ? *first : seed;
            n++;
        }
    }
    return n;
}

static void crossed(uint32_t blocks, uint32_t threads, const char *named, const char *text,
                    const char *sorted) {
    sim_env *e = sim_open();
    uint64_t first;
    cr_assert(sim_read(e, sim_body(e, "", text)), "%s", e->error.text);
    const unsigned n = found(e, blocks, threads, &first);
    cr_expect(2 * n > SEEDS && first < FEW, "%s: %u of %d seeds, the first is %u", named, n, SEEDS,
              (unsigned)first);
    cr_assert(sim_read(e, sim_body(e, "", sorted)), "%s", e->error.text);
    cr_expect_eq(found(e, blocks, threads, &first), 0, "%s: seed %u: %s", named, (unsigned)first,
                 sim_fault(e));
    sim_close(e);
}

Test(sim_locks, of_warps) {
    for (uint32_t warps = 2; warps <= 4; warps++) {
        crossed(1, 32 * warps, "warps", WARPS ONE RING("0"), WARPS ONE RING("1"));
    }
}

Test(sim_locks, of_blocks) {
    for (uint32_t blocks = 2; blocks <= 4; blocks++) {
        crossed(blocks, 32, "blocks", BLOCKS ONE RING("0"), BLOCKS ONE RING("1"));
    }
}

// Two lanes that take different ways, so that they do not go step by step together.
#define LANES(A, B)                                                                                \
    "setp.gt.u32 %p1, %t, 1; @%p1 bra OUT; setp.eq.u32 %p2, %t, 1; @%p2 bra OTHER;\n" TAKE(        \
        "1", "%base+4096") "add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r8;\n" TAKE("2",             \
                                                                                  "%base+4100")    \
        FREE("%base+4100") FREE("%base+4096") "bra OUT;\nOTHER: " TAKE("3", "%base+" A)            \
            TAKE("4", "%base+" B) FREE("%base+4100") FREE("%base+4096") "OUT:"

Test(sim_locks, of_lanes) { crossed(1, 32, "lanes", LANES("4100", "4096"), LANES("4096", "4100")); }

// What is taken and given back by other means than compare and swap.
#define SWAP                                                                                       \
    "A: atom.exch.relaxed.gpu.global.b32 %r9, [%d4], 1; setp.ne.u32 %p9, %r9, 0; @%p9 bra A;\n"    \
    "fence.acq_rel.gpu; mov.u32 %r7, %r8;\n"                                                       \
    "B: atom.exch.relaxed.gpu.global.b32 %r9, [%d5], 1; setp.ne.u32 %p9, %r9, 0; @%p9 bra B;\n"    \
    "fence.acq_rel.gpu;\n" FREE("%d5") FREE("%d4") "OUT:"
Test(sim_locks, by_exchange) {
    crossed(1, 64, "exchange",
            WARPS ONE "mul.wide.u32 %d4, %r1, 4; add.s64 %d4, %d4, %base; xor.b32 %r3, %r1, 1;\n"
                      "mul.wide.u32 %d5, %r3, 4; add.s64 %d5, %d5, %base;\n" SWAP,
            WARPS ONE "mov.b64 %d4, %base; add.s64 %d5, %d4, 4;\n" SWAP);
}
