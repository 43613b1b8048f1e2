// SPDX-License-Identifier: Apache-2.0
// Of which tensors maps can be made, and what is asked of the driver for one.
#include "runtime/tensor.h"
#include "runtime/tensor_map.h"
#include "sim/sim.h"

#include <criterion/criterion.h>
#include <string.h>

static _Alignas(64) char memory[1 << 16];

static tkc_tensor tensor(tkc_dtype t, uint32_t rank, const int64_t *dim) {
    return tkc_tensor_make(memory, t, rank, dim);
}

static const int64_t dims[8] = {3, 2, 4, 5, 6, 64, 7, 8};

Test(tensor_map, which_tensors_have_one) {
    for (uint32_t rank = 0; rank <= 8; rank++) {
        int64_t dim[8];
        for (uint32_t d = 0; d < rank; d++) {
            dim[d] = d + 1 < rank ? dims[d] : 64;
        }
        tkc_tensor t = tensor(TKC_BF16, rank, dim);
        cr_expect_eq(!!(tensor_facts(&t) & TK_FACT_MAP), rank >= 1 && rank <= 5, "rank %u", rank);
    }
}

static bool has(const tkc_tensor *t) { return tensor_facts(t) & TK_FACT_MAP; }

Test(tensor_map, strides_and_sizes) {
    const int64_t dim[3] = {4, 8, 64};
    tkc_tensor t = tensor(TKC_BF16, 3, dim);
    cr_expect(has(&t));
    t.stride[0] = 8; // smaller than what it steps over, but a multiple of 16 bytes: a window
    cr_expect(has(&t));
    t.stride[0] = 0;
    cr_expect(!has(&t));
    t.dim[0] = 1; // then it says nothing
    cr_expect(has(&t));
    t.dim[0] = 4;
    t.stride[0] = -512;
    cr_expect(!has(&t));
    t.stride[0] = (INT64_C(1) << 39) - 8; // of 2 bytes: below 2^40
    cr_expect(has(&t));
    t.stride[0] = INT64_C(1) << 39;
    cr_expect(!has(&t));
    t.stride[0] = 511;
    cr_expect(!has(&t)); // not aligned
    for (int d = 0; d < 3; d++) {
        t = tensor(TKC_BF16, 3, dim);
        t.dim[d] = 0;
        cr_expect(!has(&t), "dimension %d", d);
    }
    t = tensor(TKC_BF16, 3, dim);
    t.data = memory + 8;
    cr_expect(!has(&t));
    t = tensor(TKC_BF16, 3, dim);
    t.dim[2] = 1;
    t.stride[2] = 2;
    cr_expect(!has(&t));
    t = tensor(TKC_BF16, 1, (int64_t[]){7});
    cr_expect(has(&t)); // a row may have any length
}

Test(tensor_map, arguments) {
    const int64_t dim[4] = {3, 1, 5, 72};
    tkc_tensor t = tensor(TKC_BF16, 4, dim);
    t.stride[0] = 4096;
    t.stride[1] = 0;
    const tk_map_spec s = {
        .param = 0, .rank = 4, .dtype = TK_BF16, .box = {64, 32, 1, 2}, .span = 128};
    const tensor_map m = tensor_map_of(&t, &s);
    const uint64_t size[4] = {72, 5, 1, 3}, stride[3] = {144, 16, 8192};
    const uint32_t box[4] = {64, 32, 1, 2}, step[4] = {1, 1, 1, 1};
    cr_expect_eq(m.rank, 4);
    cr_expect_eq(m.address, (uint64_t)(uintptr_t)memory);
    cr_expect_arr_eq(m.dim, size, sizeof size);
    cr_expect_arr_eq(m.stride, stride, sizeof stride);
    cr_expect_arr_eq(m.box, box, sizeof box);
    cr_expect_arr_eq(m.step, step, sizeof step);
    cr_expect_eq(m.swizzle, 3);
}

// The driver's numbers of types and swizzles, which the simulator's are too.
Test(tensor_map, types_and_swizzles) {
    static const struct {
        tk_dtype t;
        tk_sim_map_type map;
    } types[] = {
        {TK_BOOL, TK_SIM_MAP_U8},   {TK_I8, TK_SIM_MAP_U8},     {TK_U8, TK_SIM_MAP_U8},
        {TK_F8E4M3, TK_SIM_MAP_U8}, {TK_F8E5M2, TK_SIM_MAP_U8}, {TK_I16, TK_SIM_MAP_U16},
        {TK_U16, TK_SIM_MAP_U16},   {TK_I32, TK_SIM_MAP_S32},   {TK_U32, TK_SIM_MAP_U32},
        {TK_I64, TK_SIM_MAP_S64},   {TK_U64, TK_SIM_MAP_U64},   {TK_F16, TK_SIM_MAP_F16},
        {TK_BF16, TK_SIM_MAP_BF16}, {TK_F32, TK_SIM_MAP_F32},   {TK_F64, TK_SIM_MAP_F64},
    };
    cr_assert_eq(sizeof types / sizeof *types, TK_DTYPE_COUNT);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const tkc_tensor t = tensor((tkc_dtype)types[k].t, 1, (int64_t[]){64});
        const tk_map_spec s = {.rank = 1, .dtype = types[k].t, .box = {16}};
        cr_expect_eq(tensor_map_of(&t, &s).type, (unsigned)types[k].map, "%s",
                     tk_dtype_name(types[k].t));
    }
    static const uint32_t span[] = {0, 32, 64, 128};
    for (unsigned k = 0; k < 4; k++) {
        const tkc_tensor t = tensor(TKC_F32, 1, (int64_t[]){64});
        const tk_map_spec s = {.rank = 1, .dtype = TK_F32, .box = {4}, .span = span[k]};
        cr_expect_eq(tensor_map_of(&t, &s).swizzle, k);
    }
    cr_expect_eq(TK_SIM_MAP_SWIZZLE_128B, 3);
    cr_expect_eq((int)TK_MAP_BYTES, (int)TK_SIM_MAP_BYTES);
    cr_expect_eq((int)TK_MAP_RANK, (int)TK_SIM_MAP_RANK);
}
