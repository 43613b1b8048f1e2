// SPDX-License-Identifier: Apache-2.0
// How a scan goes along a line: which bits of registers, lanes and warps hold a place.
#include "ir/scratch.h"
#include "ir_env.h"

#include <criterion/criterion.h>

typedef struct found {
    tk_scan scan;
    tk_scratch scratch;
} found;

// `layouts`: #0 of the result, #1 of the operand if `other`.
static found find(const char *layouts, const char *type, int axis, bool other) {
    ir_env *e = ir_open();
    const char *text =
        tk_format(&e->arena,
                  "module laid warps=4\n%s\nkernel @k(%%n: i32) {\n%%a = const 1.0 : f32%s #%d\n"
                  "%%b = scan sum %%a axis=%d : f32%s #0\nreturn\n}\n",
                  layouts, type, other, axis, type);
    const tk_module *m = ir_good(e, text);
    const tk_func *f = m->funcs.at[0];
    const tk_op *op = f->body->first->next;
    found r = {tk_scan_of(f, op), tk_scratch_of(&e->arena, f, op)};
    r.scratch.part = NULL;
    ir_close(e);
    return r;
}

static void expect_bits(const found *r, const char *kinds) {
    cr_assert(r->scan.plain);
    cr_assert_eq(r->scan.log, strlen(kinds));
    for (unsigned k = 0; k < r->scan.log; k++) {
        static const char letter[] = {
            [TK_SCAN_REG] = 'r', [TK_SCAN_LANE] = 'l', [TK_SCAN_WARP] = 'w'};
        cr_expect_eq(letter[r->scan.bit[k].kind], kinds[k], "bit %u of %s", k, kinds);
    }
}

Test(scan, one_line) {
    found r =
        find("layout #0 = [1024] reg 1 2 512 lane 4 8 16 32 64 warp 128 256", "[1024]", 0, false);
    expect_bits(&r, "rrlllllwwr");
    cr_expect_eq(r.scan.bit[9].i, 2);
    cr_expect_eq(r.scan.totals, 2, "of the registers above the warps");
    cr_expect_eq(r.scratch.work, TK_WORK_SHARED);
    cr_expect_eq(r.scratch.bytes, 2 * 128 * 4);
}

Test(scan, lines_in_lanes_and_threads) {
    found r =
        find("layout #0 = [16, 32] reg 1 2 lane 4 8 16 32 64 warp 128 256", "[16, 32]", 1, false);
    expect_bits(&r, "rrlll");
    cr_expect_eq(r.scratch.work, TK_WORK_LANES);
    cr_expect_eq(r.scratch.bytes, 0);
    r = find("layout #0 = [16, 32] reg 1 2 lane 4 8 16 32 64 warp 128 256", "[16, 32]", 0, false);
    expect_bits(&r, "llww");
    cr_expect_eq(r.scan.totals, 4, "a column for each register");
    r = find("layout #0 = [16, 4] reg 4 8 16 32 lane 1 2 0 0 0 warp 0 0", "[16, 4]", 0, false);
    expect_bits(&r, "rrrr");
    cr_expect_eq(r.scratch.work, TK_WORK_THREAD);
}

// Lanes that hold copies scan like those that they copy.
Test(scan, copies) {
    found r = find("layout #0 = [32] reg lane 1 2 4 8 16 warp 0 0", "[32]", 0, false);
    expect_bits(&r, "lllll");
}

Test(scan, by_shared_memory) {
    const uint64_t twice = 2 * 1024 * 4;
    found r = find("layout #0 = [1024] reg 1 2 512 lane 4 8 16 32 64 warp 128 256\n"
                   "layout #1 = [1024] reg 1 512 2 lane 4 8 16 32 64 warp 128 256",
                   "[1024]", 0, true);
    cr_expect(!r.scan.plain && r.scratch.bytes == twice, "two layouts");
    r = find("layout #0 = [1024] reg 1 2 512 lane 4 8 16 32 96 warp 128 256", "[1024]", 0, false);
    cr_expect(!r.scan.plain && r.scratch.bytes == twice, "a lane that moves two bits");
    r = find("layout #0 = [1024] reg 1 2 256 lane 4 8 16 32 64 warp 128 512", "[1024]", 0, false);
    cr_expect(!r.scan.plain && r.scratch.bytes == twice, "warps apart");
}
