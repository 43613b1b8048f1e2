// SPDX-License-Identifier: Apache-2.0
// Deletions from what the compiler makes of products (sim_emitted.h): by mma.sync of sm_80, whose
// tiles come by cp.async; by wgmma of sm_90a, where warps of their own fetch them by tensor copies.
//
// Those by wgmma have more programs than the simulator runs blocks, so that blocks go on to a
// second one: what they store has to be read before it is written over.
//
// What is idle in each: by mma.sync, the waits for empty slots in front of the loop, which are over
// at once. Of the two tiles of a step, one is waited for behind the other, and released or fetched
// before it by the same threads: the wait for the slot of one (and, where threads copy, for its
// tile) says all of the other, and so does the first of two bar.warp.sync of the second, until both
// are gone. Nobody but wgmma reads what a warp releases after its wait, so they order nothing
// there. Fences in front of the initialisation of mbarriers are for what was in their memory, which
// is nothing.
#include "tests/sim_emitted.h"

#include <criterion/criterion.h>

static const sim_emitted by_mma = {
    .file = "matmul.tk",
    .kernel = "matmul",
    .device = "sim:80",
    .define = {{"T", "f16"}, {"O", "f32"}, {"BM", "16"}, {"BN", "32"}, {"BK", "16"}},
    .x = {16, 96},
    .w = {96, 32},
    .y = {16, 32},
    .has = {"mma.sync", "ldmatrix", "cp.async.cg", "cp.async.mbarrier.arrive",
            "mbarrier.test_wait"},
    .warps = 2,
    .silent = 200,
    .idle = 6,
    .together = "bar.warp.sync",
    .halves = true,
};
static const sim_emitted by_wgmma = {
    .file = "matmul.tk",
    .kernel = "matmul",
    .define = {{"T", "f16"}, {"O", "f32"}, {"BM", "64"}, {"BN", "16"}, {"BK", "16"}},
    .x = {192, 96},
    .w = {96, 16},
    .y = {192, 16},
    .has = {"wgmma.mma_async", "wgmma.commit_group", "cp.async.bulk.tensor", "mbarrier.try_wait",
            "cp.async.bulk.tensor.2d.global", "cp.async.bulk.wait_group"},
    .warps = 4,
    .silent = 200,
    .idle = 8,
    .together = "fence.proxy.async",
    .halves = true,
};
// The warps that multiply have a barrier of their own, for the greatest of a column.
static const sim_emitted partitioned = {
    .file = "kernel partitioned(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N])\n"
            "grid (i in cdiv(M, 128)) {\n"
            "    var acc = zeros([128, 16], f32);\n"
            "    var top = full([1, 16], f32(0));\n"
            "    for k in 0 .. K step 16 {\n"
            "        acc = dot(a[i * 128 +: 128, k +: 16], b[k +: 16, 0 +: 16], acc);\n"
            "        top = max(top, max(acc, axis = 0));\n"
            "    }\n"
            "    c[i * 128 +: 128, 0 +: 16] = acc + top;\n"
            "}\n",
    .kernel = "partitioned",
    .x = {384, 80},
    .w = {80, 16},
    .y = {384, 16},
    .has = {"wgmma.mma_async", "cp.async.bulk.tensor", "setmaxnreg.dec", "setmaxnreg.inc",
            "bar.sync \t1, 256"},
    .warps = 8,
    .silent = 200,
    .idle = 8,
    .together = "fence.proxy.async",
    .halves = true,
};
// A of the second product is in registers, that of the first in a slot of its own; one tile is B of
// both, transposed of one. When the one slot is released the program has used all others: the waits
// for those that the next program's first fetches fill are idle.
static const sim_emitted of_registers = {
    .file = "kernel chain(a: in f16[M, D], b: in f16[N, D], c: out f32[M, D])\n"
            "grid (i in cdiv(M, 64)) {\n"
            "    let q = a[i * 64 +: 64, 0 +: 16];\n"
            "    var acc = zeros([64, 16], f32);\n"
            "    var total = zeros([64, 1], f32);\n"
            "    for n in 0 .. N step 16 {\n"
            "        let t = b[n +: 16, 0 +: 16];\n"
            "        let s = exp(dot(q, transpose(t)) * 0.125);\n"
            "        total = total + sum(s, axis = 1);\n"
            "        acc = dot(f16(s), t, acc);\n"
            "    }\n"
            "    c[i * 64 +: 64, 0 +: 16] = acc / total;\n"
            "}\n",
    .kernel = "chain",
    .x = {192, 16},
    .w = {96, 16},
    .y = {192, 16},
    .has = {"wgmma.fence", "wgmma.mma_async", "cp.async.bulk.tensor"},
    .warps = 4,
    .silent = 200,
    .idle = 7,
    .together = "fence.proxy.async",
    .halves = true,
};
// Two programs a cluster, of which each brings a part of the tiles of 'b' to both; each block runs
// several. Idle are bar.warp.sync as above, and each of the fences behind the initialisation of
// mbarriers while the others are there.
static const sim_emitted clustered = {
    .file = "@cluster(2) @persistent kernel clustered(a: in f16[M, K], b: in f16[K, N], c: out "
            "f32[M, N])\n"
            "grid (i in cdiv(M, 64)) {\n"
            "    var acc = zeros([64, 16], f32);\n"
            "    for k in 0 .. K step 16 {\n"
            "        acc = dot(a[i * 64 +: 64, k +: 16], b[k +: 16, 0 +: 16], acc);\n"
            "    }\n"
            "    c[i * 64 +: 64, 0 +: 16] = acc;\n"
            "}\n",
    .kernel = "clustered",
    .x = {256, 80},
    .w = {80, 16},
    .y = {256, 16},
    .has = {"wgmma.mma_async", "multicast::cluster", "barrier.cluster.arrive",
            "mbarrier.arrive.shared::cluster", "fence.mbarrier_init"},
    .warps = 4,
    .silent = 200,
    .idle = 5,
    .together = "fence.",
    .halves = true,
};

Test(sim_mutation_dots, clustered) { sim_check_emitted(&clustered); }
Test(sim_mutation_dots, by_mma) { sim_check_emitted(&by_mma); }
Test(sim_mutation_dots, by_wgmma) { sim_check_emitted(&by_wgmma); }
Test(sim_mutation_dots, partitioned) { sim_check_emitted(&partitioned); }
Test(sim_mutation_dots, of_registers) { sim_check_emitted(&of_registers); }
