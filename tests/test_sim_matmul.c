// SPDX-License-Identifier: Apache-2.0
// Whole matmuls of f16, 256 x 256 x 256, by tensor cores, and what they cost the simulator: counted
// in instructions of warps, which do not depend on the machine.
#include "lang/num.h"
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256, TILE = 64, MAPS = 256 };

typedef struct memory { // what the kernels find behind their parameter
    _Alignas(128) unsigned char map[MAPS];
    uint16_t a[N][N], b[N][N]; // b: by columns
    float c[N][N];
} memory;

// What the kernels have in common: the block's tile, and the store of a warp's 16 rows of it, where
// registers %f hold them as an accumulator of m64n64.
static const char *module(sim_env *e, const char *shared, const char *body) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(
        &b,
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 q) {\n"
        ".reg .pred %%p<16>; .reg .b32 %%r<64>, %%f<32>, %%t; .reg .b64 %%d<16>, %%base;\n"
        "%s\nld.param.b64 %%base, [q]; mov.b32 %%t, %%tid.x;\n"
        "mov.b32 %%r1, %%ctaid.x; shl.b32 %%r1, %%r1, 6; mov.b32 %%r2, %%ctaid.y;\n"
        "shl.b32 %%r2, %%r2, 6; mov.b32 %%r10, 0;\n%s\n"
        "shr.u32 %%r40, %%t, 5; shl.b32 %%r40, %%r40, 4; bfe.u32 %%r41, %%t, 2, 3;\n"
        "add.u32 %%r40, %%r40, %%r41; add.u32 %%r40, %%r40, %%r2; and.b32 %%r41, %%t, 3;\n"
        "shl.b32 %%r41, %%r41, 1; add.u32 %%r41, %%r41, %%r1;\n"
        "mad.lo.u32 %%r41, %%r40, %d, %%r41; mad.wide.u32 %%d8, %%r41, 4, %%base;\n"
        "add.u64 %%d8, %%d8, %zu;\n",
        shared, body, N, offsetof(memory, c));
    for (unsigned k = 0; k < 32; k += 2) {
        tk_buf_fmt(&b, "st.global.v2.b32 [%%d8+%u], {%%f%u, %%f%u};\n",
                   k / 4 * 32 + k % 4 / 2 * 8 * N * 4, k, k + 1);
    }
    tk_buf_fmt(&b, "END: ret;\n}\n");
    return tk_buf_text(&b);
}

// One thread loads steps of 64 columns by tensor copies through two slots; a warpgroup multiplies.
static const char *with_wgmma(sim_env *e) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(
        &b,
        "mov.b32 %%r3, bars; mov.b32 %%r4, slots; setp.eq.u32 %%p1, %%t, 128; add.u64 %%d1, "
        "%%base, "
        "128;\n"
        "@%%p1 mbarrier.init.shared.b64 [%%r3], 1; @%%p1 mbarrier.init.shared.b64 [%%r3+8], 1;\n"
        "@%%p1 mbarrier.init.shared.b64 [%%r3+16], 4; @%%p1 mbarrier.init.shared.b64 [%%r3+24], "
        "4;\n"
        "fence.mbarrier_init.release.cluster; bar.sync 0; setp.lt.u32 %%p2, %%t, 128;\n"
        "@%%p2 bra USE; @!%%p1 bra END;\n"
        "LOAD: and.b32 %%r5, %%r10, 1; mad.lo.u32 %%r20, %%r5, 8, %%r3; bfe.u32 %%r6, %%r10, 1, "
        "1;\n"
        "mad.lo.u32 %%r21, %%r5, 16384, %%r4; xor.b32 %%r6, %%r6, 1; shl.b32 %%r7, %%r10, 6;\n"
        "WE: mbarrier.try_wait.parity.shared.b64 %%p3, [%%r20+16], %%r6; @!%%p3 bra WE;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%%r20], 16384; add.u32 %%r22, %%r21, 8192;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r21], "
        "[%%base, {%%r7, %%r2}], [%%r20];\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r22], "
        "[%%d1, {%%r7, %%r1}], [%%r20];\n"
        "add.u32 %%r10, %%r10, 1; setp.lt.u32 %%p4, %%r10, %d; @%%p4 bra LOAD; bra END;\n"
        "USE: and.b32 %%r5, %%r10, 1; mad.lo.u32 %%r20, %%r5, 8, %%r3; bfe.u32 %%r6, %%r10, 1, 1;\n"
        "mad.lo.u32 %%r21, %%r5, 16384, %%r4; shr.u32 %%r21, %%r21, 4; cvt.u64.u32 %%d2, %%r21;\n"
        "or.b64 %%d2, %%d2, 0x4000004000000000; and.b32 %%r8, %%t, 31; setp.eq.u32 %%p6, %%r8, 0;\n"
        "setp.ne.u32 %%p5, %%r10, 0;\n"
        "WF: mbarrier.try_wait.parity.shared.b64 %%p3, [%%r20], %%r6; @!%%p3 bra WF;\n"
        "wgmma.fence.sync.aligned;\n",
        N / TILE);
    for (unsigned k = 0; k < 4; k++) {
        tk_buf_fmt(&b,
                   "add.u64 %%d3, %%d2, %u; add.u64 %%d4, %%d2, %u;\n"
                   "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {",
                   2 * k, 512 + 2 * k);
        for (unsigned r = 0; r < 32; r++) {
            tk_buf_fmt(&b, "%s%%f%u", r ? ", " : "", r);
        }
        tk_buf_fmt(&b, "}, %%d3, %%d4, %s, 1, 1, 0, 0;\n", k ? "1" : "%p5");
    }
    tk_buf_fmt(&b,
               "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
               "@%%p6 mbarrier.arrive.shared.b64 _, [%%r20+16];\n"
               "add.u32 %%r10, %%r10, 1; setp.lt.u32 %%p4, %%r10, %d; @%%p4 bra USE;\n",
               N / TILE);
    return module(e, ".shared .align 8 .b8 bars[32]; .shared .align 1024 .b8 slots[32768];\n",
                  tk_buf_text(&b));
}

// Four warps copy steps of 32 columns, one ahead, in rows of 80 bytes, so that ldmatrix meets no
// bank conflict.
static const char *with_mma(sim_env *e) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    for (unsigned r = 0; r < 32; r++) {
        tk_buf_fmt(&b, "mov.b32 %%f%u, 0;\n", r);
    }
    tk_buf_fmt(
        &b,
        // Thread t copies 16 bytes, t % 4 of row t / 4 and of row t / 4 + 32, of both operands.
        "mov.b32 %%r3, slots; shr.u32 %%r4, %%t, 2; and.b32 %%r5, %%t, 3; shl.b32 %%r5, %%r5, 4;\n"
        "mad.lo.u32 %%r6, %%r4, 80, %%r5; add.u32 %%r6, %%r6, %%r3;\n"
        "add.u32 %%r7, %%r4, %%r2; mad.lo.u32 %%r7, %%r7, 512, %%r5; add.u32 %%r8, %%r4, %%r1;\n"
        "mad.lo.u32 %%r8, %%r8, 512, %%r5; cvt.u64.u32 %%d1, %%r7; add.u64 %%d1, %%d1, %%base;\n"
        "add.u64 %%d1, %%d1, %d; cvt.u64.u32 %%d2, %%r8; add.u64 %%d2, %%d2, %%base;\n"
        "add.u64 %%d2, %%d2, %d;\n"
        // Rows of fragments: of A of the warp, of B of any.
        "and.b32 %%r11, %%t, 15; bfe.u32 %%r12, %%t, 4, 1; shr.u32 %%r13, %%t, 5;\n"
        "mad.lo.u32 %%r11, %%r13, 16, %%r11; mul.lo.u32 %%r11, %%r11, 80;\n"
        "mad.lo.u32 %%r11, %%r12, 16, %%r11; add.u32 %%r11, %%r11, %%r3;\n"
        "and.b32 %%r14, %%t, 7; mad.lo.u32 %%r14, %%r12, 8, %%r14; mul.lo.u32 %%r14, %%r14, 80;\n"
        "bfe.u32 %%r15, %%t, 3, 1; mad.lo.u32 %%r14, %%r15, 16, %%r14; add.u32 %%r14, %%r14, "
        "%%r3;\n"
        "mov.b32 %%r16, 0;\n"
        "STEP: setp.ge.u32 %%p1, %%r10, %d; @%%p1 bra NONE; add.u32 %%r17, %%r6, %%r16;\n"
        "cp.async.cg.shared.global [%%r17], [%%d1], 16;\n"
        "cp.async.cg.shared.global [%%r17+2560], [%%d1+16384], 16;\n"
        "cp.async.cg.shared.global [%%r17+5120], [%%d2], 16;\n"
        "cp.async.cg.shared.global [%%r17+7680], [%%d2+16384], 16;\n"
        "NONE: cp.async.commit_group; add.u64 %%d1, %%d1, 64; add.u64 %%d2, %%d2, 64;\n"
        "xor.b32 %%r16, %%r16, 10240; setp.eq.u32 %%p2, %%r10, 0; @%%p2 bra FIRST;\n"
        "cp.async.wait_group 1; bar.sync 0; add.u32 %%r18, %%r11, %%r16; add.u32 %%r19, %%r14, "
        "%%r16;\n",
        (int)offsetof(memory, a), (int)offsetof(memory, b), N / 32);
    for (unsigned k = 0; k < 2; k++) {
        tk_buf_fmt(&b,
                   "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%r20, %%r21, %%r22, %%r23}, "
                   "[%%r18+%u];\n",
                   32 * k);
        for (unsigned j = 0; j < 4; j++) {
            tk_buf_fmt(&b,
                       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%r24, %%r25, %%r26, %%r27}, "
                       "[%%r19+%u];\n",
                       5120 + 32 * k + 16 * 80 * j);
            for (unsigned half = 0; half < 2; half++) {
                unsigned f = 8 * j + 4 * half;
                tk_buf_fmt(
                    &b,
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f%u, %%f%u, %%f%u, "
                    "%%f%u}, {%%r20, %%r21, %%r22, %%r23}, {%%r%u, %%r%u}, {%%f%u, %%f%u, "
                    "%%f%u, %%f%u};\n",
                    f, f + 1, f + 2, f + 3, 24 + 2 * half, 25 + 2 * half, f, f + 1, f + 2, f + 3);
            }
        }
    }
    tk_buf_fmt(&b,
               "bar.sync 0;\n"
               "FIRST: add.u32 %%r10, %%r10, 1; setp.le.u32 %%p3, %%r10, %d; @%%p3 bra STEP;\n",
               N / 32);
    return module(e, ".shared .align 16 .b8 slots[20480];\n", tk_buf_text(&b));
}

static void make_map(sim_env *e, memory *m, unsigned at, void *of) {
    tk_sim_map_spec s = {.type = TK_SIM_MAP_F16,
                         .rank = 2,
                         .address = (uint64_t)(uintptr_t)of,
                         .dim = {N, N},
                         .stride = {2 * N},
                         .box = {TILE, TILE},
                         .step = {1, 1},
                         .swizzle = TK_SIM_MAP_SWIZZLE_128B};
    const char *problem = tk_sim_tensor_map_encode(&e->arena, &m->map[at], &s);
    cr_assert(!problem, "%s", problem);
}

static int small(unsigned x) { return (int)(x * 2654435761u >> 29) - 4; }

// Gives how many instructions of warps it took.
static uint64_t multiply(const char *(*kernel)(sim_env *e), uint32_t threads, uint64_t seed) {
    sim_env *e = sim_open();
    memory *m = aligned_alloc(128, sizeof *m);
    cr_assert(m != NULL);
    memset(m, 0, sizeof *m);
    for (unsigned k = 0; k < N * N; k++) {
        m->a[k / N][k % N] = (uint16_t)tk_const_i64(TK_F16, small(k)).bits;
        m->b[k / N][k % N] = (uint16_t)tk_const_i64(TK_F16, small(k + 77777)).bits;
    }
    make_map(e, m, 0, m->a);
    make_map(e, m, 128, m->b);
    uint64_t address = (uint64_t)(uintptr_t)m;
    tk_sim_region region = {address, sizeof *m, false, "memory"};
    cr_assert(sim_read(e, kernel(e)), "line %u: %s", e->error.at.ptx_line, e->error.text);
    tk_sim_launch l = {.entry = "k",
                       .grid = {N / TILE, N / TILE, 1},
                       .block = {threads, 1, 1},
                       .params = &address,
                       .param_bytes = sizeof address,
                       .region = &region,
                       .nregion = 1,
                       .seed = seed};
    tk_sim_run(&e->arena, e->program, &l, &e->result);
    cr_assert(e->result.ok, "%s", sim_fault(e));
    for (unsigned row = 0; row < N; row++) {
        for (unsigned col = 0; col < N; col++) {
            int sum = 0;
            for (unsigned k = 0; k < N; k++) {
                sum += small(row * N + k) * small(col * N + k + 77777);
            }
            cr_assert_eq(m->c[row][col], (float)sum, "%u, %u: %g, not %d", row, col,
                         (double)m->c[row][col], sum);
        }
    }
    tk_sim_counters c;
    tk_sim_sum(&e->arena, e->program, "k", &e->result, &c);
    uint64_t n = c.total.warps;
    free(m);
    sim_close(e);
    return n;
}

Test(sim_matmul, wgmma) {
    uint64_t n = multiply(with_wgmma, 160, 0);
    cr_expect_lt(n, 20000, "%llu instructions", (unsigned long long)n);
    multiply(with_wgmma, 160, 5);
}

Test(sim_matmul, mma) {
    uint64_t n = multiply(with_mma, 128, 0);
    cr_expect_lt(n, 40000, "%llu instructions", (unsigned long long)n);
    multiply(with_mma, 128, 5);
}
