// SPDX-License-Identifier: Apache-2.0
// Sectors and wavefronts of requests, the integers of the first program, layouts in words, blocks
// of a multiprocessor.
#include "ir_env.h"
#include "lower/count.h"
#include "lower/record.h"
#include "lower/target.h"

#include <criterion/criterion.h>
#include <string.h>

enum { LANES = 32 };

static void lanes(uint64_t *at, uint64_t from, uint64_t step) {
    for (unsigned i = 0; i < LANES; i++) {
        at[i] = from + i * step;
    }
}

static void expect(const tk_requests *r, uint64_t requests, uint64_t units, uint64_t least) {
    cr_expect(r->requests == requests && r->units == units && r->least == least,
              "%lu requests, %lu units, least %lu", (unsigned long)r->requests,
              (unsigned long)r->units, (unsigned long)r->least);
}

static void sectors(uint64_t from, uint64_t step, uint32_t bytes, uint32_t mask, uint64_t units,
                    uint64_t least) {
    uint64_t at[LANES];
    tk_requests r = {0, 0, 0};
    lanes(at, from, step);
    tk_count_sectors(&r, mask, at, bytes);
    expect(&r, mask != 0, units, least);
}

Test(count, sectors) {
    sectors(0, 4, 4, UINT32_MAX, 4, 4);
    sectors(16, 4, 4, UINT32_MAX, 5, 4);
    sectors(0, 16, 16, UINT32_MAX, 16, 16);
    sectors(0, 8, 4, UINT32_MAX, 8, 4);
    sectors(0, 128, 4, UINT32_MAX, 32, 4);
    sectors(0, 0, 4, UINT32_MAX, 1, 1);
    sectors(24, 0, 16, UINT32_MAX, 2, 1);
    sectors(0, 4, 4, 0xff, 1, 1);
    sectors(0, 4, 4, 0, 0, 0);
}

static void waves(uint64_t step, uint32_t bytes, uint32_t mask, uint64_t units, uint64_t least) {
    uint64_t at[LANES];
    tk_requests r = {0, 0, 0};
    lanes(at, 0, step);
    tk_count_wavefronts(&r, mask, at, bytes, false);
    expect(&r, mask != 0, units, least);
}

// What all lanes read from one place, and lanes in pairs.
static void reads(uint64_t step, unsigned apart, uint32_t bytes, uint64_t units, uint64_t least) {
    uint64_t at[LANES];
    tk_requests r = {0, 0, 0};
    for (unsigned i = 0; i < LANES; i++) {
        at[i] = (i & ~apart) * step;
    }
    tk_count_wavefronts(&r, UINT32_MAX, at, bytes, true);
    expect(&r, 1, units, least);
}

Test(count, wavefronts) {
    waves(4, 4, UINT32_MAX, 1, 1);
    waves(8, 4, UINT32_MAX, 2, 1);
    waves(64, 4, UINT32_MAX, 16, 1);
    waves(128, 4, UINT32_MAX, 32, 1);
    waves(132, 4, UINT32_MAX, 1, 1); // padding
    waves(0, 4, UINT32_MAX, 1, 1);
    waves(2, 2, UINT32_MAX, 1, 1);
    waves(64, 2, UINT32_MAX, 16, 1);
    waves(8, 8, UINT32_MAX, 2, 2);
    waves(16, 16, UINT32_MAX, 4, 4);
    waves(128, 16, UINT32_MAX, 32, 4);
    waves(128, 4, 1, 1, 1);
    waves(128, 4, 0, 0, 0);
    reads(16, 0, 16, 4, 4);
    reads(8, 1, 16, 2, 2);
    reads(16, 1, 16, 4, 2);
    reads(16, 2, 16, 4, 2);
    reads(0, 0, 16, 2, 2);
    reads(4, 1, 8, 1, 1);
    reads(8, 1, 8, 2, 1);
    reads(4, 1, 4, 1, 1);
}

// ---- The first program --------------------------------------------------------------------------

// %r of a kernel of x: in f32[?, ?] for these sizes; INT64_MIN: not known.
static int64_t value(const char *body, int64_t m, int64_t n, uint32_t element, bool last) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(&b,
               "module tile\n\nkernel @k(%%x: in f32[?, ?], %%s: i32, %%y: inout i32[?]) {\n"
               "grid {\n%%d = dim %%x axis=0 : i32\n%%e = dim %%x axis=1 : i32\nyield %%d, %%e\n}\n"
               "%s\nstore %%y[tile %%r] = %%r\nreturn\n}\n",
               body);
    const tk_module *module = ir_good(e, tk_buf_text(&b));
    const tk_func *f = module->funcs.at[0];
    int64_t size[3 * TK_MAX_TENSOR_RANK];
    memset(size, 0xff, sizeof size);
    size[0] = m;
    size[1] = n;
    tk_sample s = {.f = f, .size = size, .last = last};
    const tk_op *store = f->body->last->prev;
    int64_t out = INT64_MIN;
    if (!tk_sample_int(&s, store->opnd[1], element, &out)) {
        out = INT64_MIN;
    }
    cr_expect_eq(tk_sample_programs(&s), m < 0 || n < 0 ? -1 : m * n);
    ir_close(e);
    return out;
}

#define UNKNOWN INT64_MIN

Test(sample, values) {
    const char *twice = "%i = iota : i32[8]\n%two = const 2 : i32[8]\n%r = mul %i, %two : i32[8]";
    const char *row = "%p = program_id axis=1 : i32\n%n = dim %x axis=1 : i32\n"
                      "%q = add %p, %n : i32\n%b = broadcast %q : i32[8]\n%i = iota : i32[8]\n"
                      "%r = sub %b, %i : i32[8]";
    const char *turned =
        "%i = iota : i32[8]\n%t = reshape %i : i32[2, 4]\n%u = permute %t perm=[1, 0] : i32[4, 2]\n"
        "%r = reshape %u : i32[8]";
    const char *given = "%b = broadcast %s : i32[8]\n%i = iota : i32[8]\n%r = add %b, %i : i32[8]";
    const char *chosen =
        "%i = iota : i32[8]\n%three = const 3 : i32[8]\n%c = lt %i, %three : bool[8]\n"
        "%b = broadcast %s : i32[8]\n%r = select %c, %i, %b : i32[8]";
    cr_expect_eq(value(twice, 4, 5, 7, false), 14);
    cr_expect_eq(value(row, 4, 5, 2, false), 3);
    cr_expect_eq(value(row, 4, -1, 2, false), UNKNOWN);
    cr_expect_eq(value(turned, 4, 5, 1, false), 4);
    cr_expect_eq(value(given, 4, 5, 1, false), UNKNOWN);
    cr_expect_eq(value(chosen, 4, 5, 2, false), 2);
    cr_expect_eq(value(chosen, 4, 5, 3, false), UNKNOWN);
}

// ---- Words --------------------------------------------------------------------------------------

static void words(const int64_t *dim, unsigned rank, const uint8_t *order, unsigned vec,
                  unsigned warps, const char *expected) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    const tk_layout l = tk_layout_blocked(rank, dim, order, vec, warps);
    tk_layout_words(&b, &l);
    cr_expect_str_eq(tk_buf_text(&b), expected);
    ir_close(e);
}

Test(layout_words, blocked) {
    const uint8_t rows[] = {1, 0}, line[] = {0};
    words((int64_t[]){64, 64}, 2, rows, 3, 2,
          "elements a thread: 8 along axis 1 (8 in a row), 4 along axis 0; lanes: 8 along axis 1, "
          "4 along axis 0; warps: 4 along axis 0");
    words((int64_t[]){64}, 1, line, 2, 2,
          "elements a thread: 4 (4 in a row); lanes: 16, 2 with copies; warps: 4 with copies");
    words((int64_t[]){16}, 1, line, 0, 0, "elements a thread: 1; lanes: 16, 2 with copies");
}

// ---- Blocks -------------------------------------------------------------------------------------

Test(occupancy, limits) {
    const tk_target *t = tk_target_find("sm_90a");
    tk_occupancy o = tk_occupancy_of(t, 128, 72, 0);
    cr_expect(o.blocks == 7 && strcmp(o.limit, "registers") == 0, "%u %s", o.blocks, o.limit);
    o = tk_occupancy_of(t, 128, 33, 0); // given in eights
    cr_expect(o.by_registers == 12 && o.blocks == 12);
    o = tk_occupancy_of(t, 1024, 32, 0);
    cr_expect(o.blocks == 2 && strcmp(o.limit, "threads") == 0, "%u %s", o.blocks, o.limit);
    o = tk_occupancy_of(t, 32, 16, 0);
    cr_expect(o.blocks == 32 && strcmp(o.limit, "blocks") == 0, "%u %s", o.blocks, o.limit);
    o = tk_occupancy_of(t, 128, 0, 100 << 10);
    cr_expect(o.blocks == 2 && strcmp(o.limit, "shared memory") == 0, "%u %s", o.blocks, o.limit);
    cr_expect_eq(o.by_registers, UINT32_MAX);
    cr_expect_eq(tk_registers_for(7, 128), 72);
}

Test(gpus, names) {
    cr_expect_str_eq(tk_gpu_of(tk_target_find("sm_90a"))->name, "H200");
    cr_expect_str_eq(tk_gpu_find("h100")->name, "H100");
    cr_expect_null(tk_gpu_find("H20"));
    for (unsigned i = 0; tk_target_name(i); i++) {
        cr_expect(tk_gpu_of(tk_target_find(tk_target_name(i))), "%s", tk_target_name(i));
    }
    cr_expect_null(tk_gpu_name(100));
}
