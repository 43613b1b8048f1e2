// SPDX-License-Identifier: Apache-2.0
// Deletions from what the compiler makes of shipped kernels, and of loops whose tiles are loaded
// ahead (sim_emitted.h).
//
// Barriers that change nothing here are counted as well: in a loop that only stores, one keeps the
// stores of successive steps in order, for tensors whose elements lie on each other (a stride may
// be 0).
#include "tests/sim_emitted.h"

#include <criterion/criterion.h>

// By tensor copies; by copies of the threads, as a panel has only 4 rows; behind an op that has
// used the memory that the ring gets; on another GPU. The loops need no barriers but those of the
// rings. Idle: the waits for empty slots in front of the loop, for the first two tiles, are over at
// once; one warp has itself released what it fetches next; behind a sort, its barriers also have
// everybody see the ring's.
#define RING(ROWS, COLUMNS, FIRST)                                                                 \
    "kernel ring(x: in f32[M, N], y: out f32[C, M]) grid (i in cdiv(M, " ROWS ")) {\n"             \
    "    var s = " FIRST ";\n"                                                                     \
    "    for k in 0 .. N step " COLUMNS " pipeline(3) {\n"                                         \
    "        s = s + transpose(x[i * " ROWS " +: " ROWS ", k +: " COLUMNS "]);\n"                  \
    "    }\n"                                                                                      \
    "    y[0 +: " COLUMNS ", i * " ROWS " +: " ROWS "] = s;\n"                                     \
    "}\n"
#define HALVES(ROWS, COLUMNS)                                                                      \
    "kernel ring(x: in f16[M, N], y: out f32[C, M]) grid (i in cdiv(M, " ROWS ")) {\n"             \
    "    var s = full([" COLUMNS ", " ROWS "], f32(0));\n"                                         \
    "    for k in 0 .. N step " COLUMNS " pipeline(3) {\n"                                         \
    "        s = s + f32(transpose(x[i * " ROWS " +: " ROWS ", k +: " COLUMNS "]));\n"             \
    "    }\n"                                                                                      \
    "    y[0 +: " COLUMNS ", i * " ROWS " +: " ROWS "] = s;\n"                                     \
    "}\n"
// Products of rows with themselves, of 163 numbers each: by wgmma, with warps of their own that
// load them through registers; and by mma.sync, by all warps. One tile comes that way: of two that
// come together the one's waits cover the other's.
#define GRAM(ROWS)                                                                                 \
    "kernel gram(x: in f16[M, K], y: out f32[M, M]) grid (i in cdiv(M, " ROWS ")) {\n"             \
    "    var s = zeros([" ROWS ", " ROWS "], f32);\n"                                              \
    "    for k in 0 .. K step 32 {\n"                                                              \
    "        let t = x[i * " ROWS " +: " ROWS ", k +: 32];\n"                                      \
    "        s = dot(t, transpose(t), s);\n"                                                       \
    "    }\n"                                                                                      \
    "    y[i * " ROWS " +: " ROWS ", 0 +: " ROWS "] = s;\n"                                        \
    "}\n"
#define PLAIN  "full([32, 16], f32(0))"
#define SORTED "sort(x[0 +: 32, 0 +: 16], axis = 0)"

// clang-format off
static const sim_emitted of_rings[] = {
    {.file = RING("16", "32", PLAIN), .kernel = "ring", .warps = 4, .x = {20, 256}, .y = {32, 20}, .silent = 200, .idle = 2},
    {.file = RING("16", "32", PLAIN), .kernel = "ring", .warps = 1, .x = {20, 256}, .y = {32, 20}, .silent = 10, .idle = 3},
    {.file = RING("16", "32", SORTED), .kernel = "ring", .warps = 4, .x = {20, 256}, .y = {32, 20}, .silent = 10, .idle = 3},
    {.file = RING("4", "64", "full([64, 4], f32(0))"), .kernel = "ring", .warps = 2, .x = {7, 512}, .y = {64, 7}, .silent = 10, .idle = 2},
    {.file = RING("16", "32", PLAIN), .kernel = "ring", .warps = 2, .device = "sim:80", .x = {20, 256}, .y = {32, 20}, .silent = 200, .idle = 2},
};
// Through registers, as rows begin at no multiple of 4 bytes. Idle: the wait in front of the loop; what
// orders the lanes of one warp that is all there is; the lanes' meeting behind wgmma, which waits for
// all of them.
static const sim_emitted of_odd_rows[] = {
    {.file = HALVES("16", "32"), .kernel = "ring", .warps = 4, .x = {20, 255}, .y = {32, 20}, .silent = 10, .idle = 1, .halves = true},
    {.file = HALVES("16", "32"), .kernel = "ring", .warps = 1, .x = {20, 255}, .y = {32, 20}, .silent = 10, .idle = 5, .halves = true},
    {.file = GRAM("64"), .kernel = "gram", .warps = 4, .x = {64, 163}, .y = {64, 64}, .has = {"wgmma.mma_async", "setmaxnreg"}, .silent = 10, .idle = 2, .halves = true},
    {.file = GRAM("32"), .kernel = "gram", .warps = 4, .x = {31, 163}, .y = {31, 31}, .has = {"mma.sync"}, .silent = 10, .idle = 1, .halves = true},
};
static const sim_emitted of_softmax[] = {
    {.file = "softmax.tk", .kernel = "softmax", .warps = 4, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10},
    {.file = "softmax.tk", .kernel = "softmax", .warps = 8, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10},
    {.file = "softmax.tk", .kernel = "softmax", .warps = 4, .x = {3, 1000}, .y = {3, 1000}, .silent = 10},
    {.file = "softmax.tk", .kernel = "softmax", .warps = 8, .x = {3, 1000}, .y = {3, 1000}, .silent = 10},
    {.file = "softmax.tk", .kernel = "softmax", .warps = 4, .x = {3, 781}, .y = {3, 781}, .silent = 10},
    {.file = "softmax.tk", .kernel = "softmax", .warps = 4, .define = {{"BN", "512"}}, .x = {2, 1501}, .y = {2, 1501}, .silent = 10},
};
static const sim_emitted of_layernorm[] = {
    {.file = "norm.tk", .kernel = "layernorm", .warps = 4, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10, .huge = true},
    {.file = "norm.tk", .kernel = "layernorm", .warps = 8, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10, .huge = true},
    {.file = "norm.tk", .kernel = "layernorm", .warps = 4, .x = {3, 1000}, .y = {3, 1000}, .silent = 10},
    {.file = "norm.tk", .kernel = "layernorm", .warps = 8, .x = {3, 1000}, .y = {3, 1000}, .silent = 10},
    {.file = "norm.tk", .kernel = "layernorm", .warps = 4, .x = {3, 781}, .y = {3, 781}, .silent = 10},
};
static const sim_emitted of_scan[] = {
    {.file = "scan.tk", .kernel = "cumsum_rows", .warps = 4, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10},
    {.file = "scan.tk", .kernel = "cumsum_rows", .warps = 8, .define = {{"BN", "512"}}, .x = {2, 1500}, .y = {2, 1500}, .silent = 10},
};
static const sim_emitted of_transpose[] = {
    {.file = "transpose.tk", .kernel = "transpose_matrix", .warps = 4, .x = {70, 90}, .y = {90, 70}, .silent = 10},
    {.file = "transpose.tk", .kernel = "transpose_matrix", .warps = 8, .x = {70, 90}, .y = {90, 70}, .silent = 10},
};
// clang-format on

static void check_all(const sim_emitted *s, size_t n) {
    for (size_t k = 0; k < n; k++) {
        sim_check_emitted(&s[k]);
    }
}

Test(sim_mutation_stdlib, rings) { check_all(of_rings, 5); }
Test(sim_mutation_stdlib, odd_rows) { check_all(of_odd_rows, 4); }
Test(sim_mutation_stdlib, softmax) { check_all(of_softmax, 6); }
Test(sim_mutation_stdlib, layernorm) { check_all(of_layernorm, 5); }
Test(sim_mutation_stdlib, scan) { check_all(of_scan, 2); }
Test(sim_mutation_stdlib, transpose) { check_all(of_transpose, 2); }
