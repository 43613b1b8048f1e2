// SPDX-License-Identifier: Apache-2.0
// The executor, an op at a time: every op that is not element-wise has a row here, small enough to
// check by hand. (Element-wise ops: test_exec_elem.c, all of them by enumeration.)
#include <criterion/criterion.h>
#include <math.h>

#include "test_exec_run.h"

enum { N = 8, MOST = 16 };

// The body computes %r of f64[count] from %x: in f32[?], %i: in i32[?], %t: inout i32[?]; %z is 0.
typedef struct {
    tk_opcode op;
    const char *body;
    int count;
    double want[MOST];
} row;

static const float in_x[N] = {3, 1, 4, 1, 5, 9, 2, 6};
static const int32_t in_i[N] = {3, -1, 4, 1, -5, 9, 2, 6};

#define X8   "%a = load %x[%z +: 8] : f32[8]\n"
#define I8   "%b = load %i[%z +: 8] : i32[8]\n"
#define R(N) "%r = cast %q : f64[" #N "]\n"
#define R1   "%w = cast %q : f64\n%r = broadcast %w : f64[1]\n"

// Two slots, three tiles; the last is partly outside.
#define RING                                                                                       \
    "%k = ring slots=2 : i32[2]\n%o = const 2 : i32\n%p = const 7 : i32\n"                         \
    "fetch %i[%z +: 2], %k\nfetch %i[%o +: 2], %k\n"                                               \
    "%t0 = take %k : i32[2]\n%s0 = reduce sum %t0 : i32\nrelease %k\n"                             \
    "fetch %i[%p +: 2], %k\n"                                                                      \
    "%t1 = take %k : i32[2]\n%s1 = reduce sum %t1 : i32\nrelease %k\n"                             \
    "%t2 = take %k : i32[2]\n%s2 = reduce sum %t2 : i32\nrelease %k\n"                             \
    "%s3 = mul %s0, %s1 : i32\n%q = add %s3, %s2 : i32\n" R1
static const row rows[] = {
    {TK_OP_CONST, "%q = const 2.5 : f32[3]\n" R(3), 3, {2.5, 2.5, 2.5}},
    {TK_OP_IOTA, "%q = iota : i32[5]\n" R(5), 5, {0, 1, 2, 3, 4}},
    {TK_OP_BROADCAST,
     "%a = load %x[%z +: 2] : f32[2]\n%b = reshape %a : f32[2, 1]\n"
     "%c = broadcast %b : f32[2, 3]\n%q = reshape %c : f32[6]\n" R(6),
     6,
     {3, 3, 3, 1, 1, 1}},
    {TK_OP_RESHAPE,
     X8 "%m = reshape %a : f32[2, 4]\n%p = permute %m perm=[1, 0] : f32[4, 2]\n"
        "%q = reshape %p : f32[8]\n" R(8),
     8,
     {3, 5, 1, 9, 4, 2, 1, 6}},
    {TK_OP_PERMUTE,
     X8 "%m = reshape %a : f32[2, 2, 2]\n%p = permute %m perm=[2, 0, 1] : f32[2, 2, 2]\n"
        "%q = reshape %p : f32[8]\n" R(8),
     8,
     {3, 4, 5, 2, 1, 1, 9, 6}},
    {TK_OP_CONCAT,
     "%a = load %x[%z +: 2] : f32[2]\n%b = load %x[%z +: 3] : f32[3]\n"
     "%q = concat %a, %b axis=0 : f32[5]\n" R(5),
     5,
     {3, 1, 3, 1, 4}},
    {TK_OP_INTERLEAVE,
     X8 "%b = flip %a axis=0 : f32[8]\n%q = interleave %a, %b : f32[16]\n" R(16),
     16,
     {3, 6, 1, 2, 4, 9, 1, 5, 5, 1, 9, 4, 2, 1, 6, 3}},
    {TK_OP_DEINTERLEAVE,
     X8 "%e, %o = deinterleave %a : f32[4], f32[4]\n%q = concat %o, %e axis=0 : f32[8]\n" R(8),
     8,
     {1, 1, 9, 6, 3, 4, 5, 2}},
    {TK_OP_FLIP, X8 "%q = flip %a axis=0 : f32[8]\n" R(8), 8, {6, 2, 9, 5, 1, 4, 1, 3}},
    {TK_OP_SLICE, X8 "%q = slice %a axis=0 start=2 : f32[3]\n" R(3), 3, {4, 1, 5}},
    {TK_OP_EMPTY,
     X8 "%e = empty : f32[16]\n%k = const 1 : i32\n%f = insert %e, %a, %k : f32[16]\n"
        "%q = extract %f, %k : f32[8]\n" R(8),
     8,
     {3, 1, 4, 1, 5, 9, 2, 6}},
    {TK_OP_INSERT, // part [1, 0] of 2 x 2, numbers modulo the counts
     X8 "%m = reshape %a : f32[2, 4]\n%k = const 3 : i32\n%l = const -2 : i32\n"
        "%p = const 7.0 : f32[1, 2]\n%n = insert %m, %p, %k, %l : f32[2, 4]\n"
        "%q = reshape %n : f32[8]\n" R(8),
     8,
     {3, 1, 4, 1, 7, 7, 2, 6}},
    {TK_OP_EXTRACT,
     X8 "%m = reshape %a : f32[2, 4]\n%p = permute %m perm=[1, 0] : f32[4, 2]\n"
        "%k = const 1 : i32\n%n = extract %p, %k, %k : f32[2, 1]\n%q = reshape %n : f32[2]\n" R(2),
     2,
     {2, 6}},
    {TK_OP_GATHER, X8 I8 "%q = gather %a, %b axis=0 : f32[8]\n" R(8), 8, {1, 0, 5, 1, 0, 0, 4, 2}},
    {TK_OP_CAST,
     I8 "%u = cast %b : u8[8]\n%q = cast %u : i64[8]\n" R(8),
     8,
     {3, 255, 4, 1, 251, 9, 2, 6}},
    {TK_OP_BITCAST,
     X8 "%u = bitcast %a : u32[8]\n%q = slice %u axis=0 start=1 : u32[2]\n" R(2),
     2,
     {0x3f800000, 0x40800000}},
    {TK_OP_REDUCE, X8 "%q = reduce sum %a axis=0 : f32[1]\n" R(1), 1, {31}},
    {TK_OP_ARG_REDUCE, X8 "%q = arg_reduce max %a axis=0 : i32[1]\n" R(1), 1, {5}},
    {TK_OP_REDUCE_FN,
     X8
     "%k = iota : i32[8]\n%v, %q = reduce_fn %a, %k axis=0 : f32[1], i32[1] "
     "(%v1: f32, %k1: i32, %v2: f32, %k2: i32) {\n%g = gt %v2, %v1 : bool\n"
     "%v3 = select %g, %v2, %v1 : f32\n%k3 = select %g, %k2, %k1 : i32\nyield %v3, %k3\n}\n" R(1),
     1,
     {5}},
    {TK_OP_SCAN, X8 "%q = scan sum %a axis=0 : f32[8]\n" R(8), 8, {3, 4, 8, 9, 14, 23, 25, 31}},
    {TK_OP_SCAN_FN,
     X8 "%q = scan_fn %a axis=0 : f32[8] (%p: f32, %n: f32) {\n%s = add %p, %n : f32\nyield "
        "%s\n}\n" R(8),
     8,
     {3, 4, 8, 9, 14, 23, 25, 31}},
    {TK_OP_SORT, X8 "%q = sort %a axis=0 descending : f32[8]\n" R(8), 8, {9, 6, 5, 4, 3, 2, 1, 1}},
    {TK_OP_TOPK,
     X8 "%v, %k = topk %a axis=0 : f32[3], i32[3]\n%f = cast %k : f32[3]\n"
        "%q = concat %v, %f axis=0 : f32[6]\n" R(6),
     6,
     {9, 6, 5, 5, 7, 4}},
    {TK_OP_HISTOGRAM, I8 "%q = histogram %b : i32[5]\n" R(5), 5, {0, 1, 1, 1, 1}},
    {TK_OP_DOT,
     X8 "%m = reshape %a : f32[2, 4]\n%mt = permute %m perm=[1, 0] : f32[4, 2]\n"
        "%d = dot %m, %mt : f32[2, 2]\n%q = reshape %d : f32[4]\n" R(4),
     4,
     {27, 38, 38, 146}},
    {TK_OP_DOT_SCALED,
     "%c = const 1.5 : f8e4m3[1, 32]\n%e = const 2.0 : f8e4m3[32, 1]\n%s = const 128 : u8[1, 1]\n"
     "%k = const 4.0 : f32[1, 1]\n%d = dot_scaled %c, %s, %e, %s, %k : f32[1, 1]\n"
     "%q = reshape %d : f32[1]\n" R(1),
     1,
     {388}},
    {TK_OP_PHILOX,
     "%s = const 0 : i32\n%w0, %w1, %w2, %w3 = philox %s, %s : u32, u32, u32, u32\n"
     "%q = broadcast %w0 : u32[1]\n" R(1),
     1,
     {0x6627e8d5}},
    {TK_OP_DIM, "%q = dim %x axis=0 : i32\n" R1, 1, {8}},
    {TK_OP_LOAD, "%k = const -2 : i32\n%q = load %i[%k +: 4] : i32[4]\n" R(4), 4, {0, 0, 3, -1}},
    {TK_OP_STORE,
     I8 "%k = const 6 : i32\nstore %t[%k +: 8] = %b\n%q = load %t[%z +: 8] : i32[8]\n" R(8),
     8,
     {10, 11, 12, 13, 14, 15, 3, -1}},
    {TK_OP_ATOMIC_RMW,
     "%o = const 5 : i32[2]\n%q0 = atomic_rmw add %t[%z +: 2], %o : i32[2]\n"
     "%n = load %t[%z +: 2] : i32[2]\n%q = concat %q0, %n axis=0 : i32[4]\n" R(4),
     4,
     {10, 11, 15, 16}},
    {TK_OP_ATOMIC_CAS,
     "%e = const 11 : i32[2]\n%v = const 7 : i32[2]\n"
     "%q0 = atomic_cas %t[%z +: 2], %e, %v : i32[2]\n%n = load %t[%z +: 2] : i32[2]\n"
     "%q = concat %q0, %n axis=0 : i32[4]\n" R(4),
     4,
     {10, 11, 10, 7}},
    {TK_OP_PROGRAM_ID, "%q = program_id axis=0 : i32\n" R1, 1, {0}},
    {TK_OP_NUM_PROGRAMS, "%q = num_programs axis=0 : i32\n" R1, 1, {1}},
    {TK_OP_ASSERT,
     I8 "%h = eq %b, %b : bool[8]\nassert %h text=\"no\"\n%q = reduce max %b : i32\n" R1,
     1,
     {9}},
    {TK_OP_ASSUME,
     I8 "%h = eq %b, %b : bool[8]\nassume %h\n%q = reduce min %b : i32\n" R1,
     1,
     {-5}},
    {TK_OP_RING, RING, 1, {16}},
    {TK_OP_FETCH, RING, 1, {16}},
    {TK_OP_TAKE, RING, 1, {16}},
    {TK_OP_RELEASE, RING, 1, {16}},
    {TK_OP_PRINT, I8 "print %b text=\"b = {}\"\n%q = reduce xor %b : i32\n" R1, 1, {15}},
    {TK_OP_IF,
     "%c = const true : bool\n%a = const 1 : i32\n%q = if %c : i32 {\nyield %a\n} else {\nyield "
     "%z\n}\n" R1,
     1,
     {1}},
    {TK_OP_FOR,
     "%n = const 5 : i32\n%s = const 1 : i32\n%q = for %k = %z to %n step %s carry (%c = %z) : i32 "
     "{\n%d = add %c, %k : i32\nyield %d\n}\n" R1,
     1,
     {10}},
    {TK_OP_WHILE,
     "%n = const 100 : i32\n%o = const 1 : i32\n%q = while carry (%c = %o) : i32 {\n"
     "%g = lt %c, %n : bool\nyield %g\n} do (%e) {\n%d = add %e, %e : i32\nyield %d\n}\n" R1,
     1,
     {128}},
    {TK_OP_YIELD,
     "%c = const false : bool\n%a = const 1 : i32\n%q = if %c : i32 {\nyield %a\n} else {\nyield "
     "%z\n}\n" R1,
     1,
     {0}},
    {TK_OP_RETURN, "%q = const 7 : i32\n" R1, 1, {7}},
};

static void run_row(const row *w) {
    static xrun x;
    float a[N];
    int32_t b[N], t[N];
    double r[MOST] = {0};
    memcpy(a, in_x, sizeof a);
    memcpy(b, in_i, sizeof b);
    for (int i = 0; i < N; i++) {
        t[i] = 10 + i;
    }
    char *text = xrun_text("module tile\n\nkernel @k(%%x: in f32[?], %%i: in i32[?], %%t: inout "
                           "i32[?], %%y: out f64[?]) {\n%%z = const 0 : i32\n%sstore %%y[%%z +: "
                           "%d] = %%r\nreturn\n}\n",
                           w->body, w->count);
    cr_assert(xrun_open(&x, text), "%s", tk_op_info(w->op)->name);
    xrun_vector(&x, 0, a, N);
    xrun_vector(&x, 1, b, N);
    xrun_vector(&x, 2, t, N);
    xrun_vector(&x, 3, r, w->count);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    for (int i = 0; i < w->count; i++) {
        cr_expect(r[i] == w->want[i], "%s: [%d] is %g, not %g", tk_op_info(w->op)->name, i, r[i],
                  w->want[i]);
    }
    xrun_close(&x);
    free(text);
}

Test(exec_ops, every_op_has_a_value_test) {
    for (int op = 0; op < TK_OP_COUNT; op++) {
        bool found = tk_op_info((tk_opcode)op)->elementwise || op == TK_OP_CALL ||
                     !tk_op_legal((tk_opcode)op, TK_LEVEL_TILE); // those are in test_laid.c
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            found = found || rows[i].op == (tk_opcode)op;
        }
        cr_expect(found, "no row for '%s'", tk_op_info((tk_opcode)op)->name);
    }
}

Test(exec_ops, rows) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_row(&rows[i]);
    }
}

// A call must be gone when a plan is made.
Test(exec_ops, call_is_an_internal_error) {
    static xrun x;
    cr_expect(!xrun_open(&x,
                         "module tile\n\nfunc @f() -> i32 {\n%a = const 1 : i32\nreturn %a\n}\n\n"
                         "kernel @k() {\n%b = call @f() : i32\nreturn\n}\n"));
    cr_expect(x.guard.fail == TK_FAIL_INTERNAL);
    xrun_close(&x);
}

Test(exec_ops, frame_limit) {
    static xrun x;
    cr_expect(
        !xrun_open_limit(&x,
                         "module tile\n\nkernel @big(%x: inout f32[?]) {\n%z = const 0 : i32\n"
                         "%a = load %x[%z +: 65536] : f32[65536]\n%b = exp %a : f32[65536]\n"
                         "store %x[%z +: 65536] = %b\nreturn\n}\n",
                         100000));
    cr_assert(x.diags.errors == 1);
    const tk_diag *d = x.diags.list.at[0];
    cr_expect(strstr(d->text, "'load'") && strstr(d->text, "100000") && strstr(d->text, "262"),
              "%s", d->text);
    xrun_close(&x);
}
