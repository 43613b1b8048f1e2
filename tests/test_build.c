// SPDX-License-Identifier: Apache-2.0
// From text to results: what the builder makes of control flow, lifted functions, captures and
// views, against plain C. Each kernel runs with and without the optimising passes.
#include "tests/e2e.h"

#include <criterion/criterion.h>

enum { MAX = 256 };

// Runs `kernel k(x: in i32[N], y: inout i32[M])` of the source and compares y; y starts as zeros.
static void expect(const char *source, uint32_t n, const int32_t *x, uint32_t m,
                   const int32_t *want) {
    for (int pass = 0; pass < 2; pass++) {
        int32_t in[MAX];
        int32_t y[MAX] = {0};
        memcpy(in, x, n * sizeof *in);
        e2e_arg arg[] = {e2e_i32("x", in, n), e2e_i32("y", y, m)};
        e2e_run r = {
            .source = source, .arg = arg, .narg = 2, .inline_only = pass == 0, .debug = true};
        cr_assert(e2e(&r), "%s\n%s", source, r.text);
        for (uint32_t i = 0; i < m; i++) {
            cr_assert_eq(y[i], want[i], "y[%u] is %d, not %d (pass %d):\n%s", i, y[i], want[i],
                         pass, source);
        }
    }
}

#define INTS(...)                                                                                  \
    (uint32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]) { __VA_ARGS__ }
#define KERNEL "kernel k(x: in i32[N], y: inout i32[M]) {\n"

// ---- Loops
Test(build_loops, break_in_for) {
    expect(KERNEL "var s = 0; var c = 0;\n"
                  "for i in 0 .. N { if x[i] < 0 { break; } s += x[i]; c += 1; }\n"
                  "y[0] = s; y[1] = c; }",
           INTS(3, 4, -1, 5), INTS(7, 2));
}

Test(build_loops, break_last_and_first) {
    const char *k = KERNEL "var s = 0;\n"
                           "for i in 0 .. N { s += x[i]; if s > 5 { break; } }\n"
                           "y[0] = s; }";
    expect(k, INTS(9, 1), INTS(9));
    expect(k, INTS(1, 2, 3), INTS(6));
    expect(k, INTS(1, 2), INTS(3));
}

Test(build_loops, continue_in_for) {
    expect(KERNEL "var s = 0; var c = 0;\n"
                  "for i in 0 .. N { c += 1; if x[i] % 2 == 0 { continue; } s += x[i]; if x[i] > 5 "
                  "{ continue; } s "
                  "+= 100; }\n"
                  "y[0] = s; y[1] = c; }",
           INTS(3, 4, 7, 6, 5), INTS(215, 5));
}

Test(build_loops, break_and_continue_nested) {
    int32_t x[12];
    int32_t s = 0;
    int32_t outer = 0;
    for (int i = 0; i < 12; i++) {
        x[i] = (i * 7) % 11 - 2;
    }
    for (int i = 0; i < 12; i++) {
        if (x[i] == 3) {
            continue;
        }
        for (int j = 0; j < 12; j++) {
            if (x[j] == x[i]) {
                continue;
            }
            if (x[j] + x[i] > 12) {
                break;
            }
            s += x[j] * i;
        }
        if (s > 600) {
            break;
        }
        outer += 1;
    }
    int32_t want[] = {s, outer};
    expect(KERNEL "var s = 0; var outer = 0;\n"
                  "for i in 0 .. N {\n"
                  "  if x[i] == 3 { continue; }\n"
                  "  for j in 0 .. N {\n"
                  "    if x[j] == x[i] { continue; }\n"
                  "    if x[j] + x[i] > 12 { break; }\n"
                  "    s += x[j] * i;\n"
                  "  }\n"
                  "  if s > 600 { break; }\n"
                  "  outer += 1;\n"
                  "}\n"
                  "y[0] = s; y[1] = outer; }",
           12, x, 2, want);
}

Test(build_loops, partial_exits_in_ifs) {
    int32_t x[20];
    int32_t a = 0;
    int32_t b = 0;
    for (int i = 0; i < 20; i++) {
        x[i] = (i * 5) % 9;
    }
    for (int i = 0; i < 20; i++) {
        int v = x[i];
        if (v > 3) {
            if (v == 8) {
                continue;
            }
            a += 1;
            if (i > 15) {
                break;
            }
        } else {
            if (v == 0) {
                b += 100;
            } else {
                b += v;
                continue;
            }
            b += 1000;
        }
        a += 10 * v;
    }
    int32_t want[] = {a, b};
    expect(KERNEL "var a = 0; var b = 0;\n"
                  "for i in 0 .. N {\n"
                  "  let v = x[i];\n"
                  "  if v > 3 {\n"
                  "    if v == 8 { continue; }\n"
                  "    a += 1;\n"
                  "    if i > 15 { break; }\n"
                  "  } else {\n"
                  "    if v == 0 { b += 100; } else { b += v; continue; }\n"
                  "    b += 1000;\n"
                  "  }\n"
                  "  a += 10 * v;\n"
                  "}\n"
                  "y[0] = a; y[1] = b; }",
           20, x, 2, want);
}

Test(build_loops, while_loops) {
    expect(KERNEL "var i = 0; var s = 0;\n"
                  "while i < N { if x[i] == 5 { break; } i += 1; if x[i - 1] == 2 { continue; } s "
                  "+= x[i - 1]; }\n"
                  "y[0] = s; y[1] = i;\n"
                  "while true { s -= 1; if s < 0 { break; } }\n"
                  "y[2] = s;\n"
                  "while i > 100 { y[3] = 1; } }",
           INTS(1, 2, 3, 5, 7), INTS(4, 3, -1, 0));
}

Test(build_loops, condition_not_evaluated_after_break) {
    const char *k = "fn more(y: inout i32[M], i: i32) -> bool { y[0] = y[0] + 1; assert(i < 3, "
                    "\"i\"); return i < 3; }\n" KERNEL "var i = 0;\n"
                    "while more(y, i) { i += 1; if i == 3 { break; } }\n"
                    "y[1] = i; }";
    expect(k, INTS(0), INTS(3, 3));
}

Test(build_loops, bounds_fixed_on_entry) {
    expect(KERNEL "var n = 3; var c = 0;\n"
                  "for i in 0 .. n { n = 100; c += 1; if c > 50 { break; } }\n"
                  "y[0] = c; y[1] = n; }",
           INTS(0), INTS(3, 100));
}

// The trip count of loops with break: against C.
static int32_t trips(int64_t from, int64_t to, int64_t step, int64_t *last) {
    int32_t n = 0;
    for (int64_t i = from; step > 0 ? i < to : step < 0 && i > to; i += step) {
        *last = i;
        if (++n == 5) {
            break;
        }
    }
    return n;
}

Test(build_loops, trip_counts) {
    static const int32_t edge[] = {INT32_MIN, INT32_MIN + 1, -7,       -1, 0, 1,
                                   7,         INT32_MAX - 1, INT32_MAX};
    const char *run_time =
        KERNEL "var n = 0; var last = 99;\n"
               "for i in x[0] .. x[1] step x[2] { last = i; n += 1; if n == 5 { break; } }\n"
               "y[0] = n; y[1] = last; }";
    for (unsigned a = 0; a < 9; a += 2) {
        for (unsigned b = 0; b < 9; b += 2) {
            for (unsigned s = 0; s < 9; s++) {
                int64_t last = 99;
                int32_t n = trips(edge[a], edge[b], edge[s], &last);
                expect(run_time, INTS(edge[a], edge[b], edge[s]), INTS(n, (int32_t)last));
            }
        }
    }
}

Test(build_loops, constant_steps_and_index_types) {
    expect(KERNEL
           "var n = 0;\n"
           "for i in 2147483600 .. 2147483647 step 40 { n += 1; y[0] = i; if n > 9 { break; } }\n"
           "y[1] = n; n = 0;\n"
           "for i in 5 .. -6 step -5 { n += 1; y[2] = i; if n > 9 { break; } }\n"
           "y[3] = n; n = 0;\n"
           "for i in u32(1) .. u32(4000000000) step u32(1000000000) { n += 1; y[4] = i32(i >> "
           "u32(1)); if n > 9 { break; } }\n"
           "y[5] = n; n = 0;\n"
           "for i in i64(-4611686018427387904) .. i64(4611686018427387904) step "
           "i64(4611686018427387904) { n += 1; if n > 9 { break; } }\n"
           "y[6] = n; n = 0;\n"
           "for i in 0 .. 10 step 3 { n = n * 10 + i; }\n"
           "y[7] = n; }",
           INTS(0), INTS(2147483640, 2, -5, 3, 1500000000, 4, 2, 369));
}

// ---- Returns
Test(build_returns, from_nested_loops) {
    const char *k = "fn find(x: in i32[N], v: i32) -> (i32, i32) {\n"
                    "  var steps = 0;\n"
                    "  for i in 0 .. N {\n"
                    "    for j in 0 .. N {\n"
                    "      steps += 1;\n"
                    "      if x[i] + x[j] == v { return (i * 100 + j, steps); }\n"
                    "      if j > i { break; }\n"
                    "    }\n"
                    "    if x[i] == 99 { return (-99, steps); }\n"
                    "    steps += 1000;\n"
                    "  }\n"
                    "  return (-1, steps);\n"
                    "}\n" KERNEL "let (a, s) = find(x, x[0]); y[0] = a; y[1] = s; }";
    expect(k, INTS(5, 2, 3), INTS(102, 1005)); // x[1] + x[2]
    expect(k, INTS(5, 9, 99), INTS(-99, 2008));
    expect(k, INTS(5, 9, 7), INTS(-1, 3008));
    expect(k, INTS(0, 9, 7), INTS(0, 1));
}

Test(build_returns, in_ifs) {
    const char *k = "fn f(a: i32, b: i32) -> i32 {\n"
                    "  var r = 1;\n"
                    "  if a > 0 {\n"
                    "    if b > 0 { return 10; }\n"
                    "    r += 1;\n"
                    "    if b < -5 { r += 100; } else if b < -3 { return r; }\n"
                    "  } else if b == 7 { return 70; } else { r = 5; }\n"
                    "  { if a == 3 { return 33; } r += 1000; }\n"
                    "  return r + a;\n"
                    "}\n" KERNEL "for i in 0 .. M { y[i] = f(x[2 * i], x[2 * i + 1]); } }";
    expect(k, INTS(1, 1, 1, -4, 1, -6, 1, 0, 0, 7, 0, 0, 3, 0, 3, -4, -9, 7),
           INTS(10, 2, 1103, 1003, 70, 1005, 33, 2, 70));
}

Test(build_returns, from_the_kernel) {
    const char *k = KERNEL "y[0] = 1;\n"
                           "if x[0] == 0 { return; }\n"
                           "y[1] = 1;\n"
                           "for i in 0 .. N { if x[i] < 0 { return; } y[2] = i; }\n"
                           "y[3] = 1;\n"
                           "while true { if x[1] > 0 { return; } break; }\n"
                           "y[4] = 1; }";
    expect(k, INTS(0, 0), INTS(1, 0, 0, 0, 0));
    expect(k, INTS(1, 1, -1), INTS(1, 1, 1, 0, 0));
    expect(k, INTS(1, 1, 1), INTS(1, 1, 2, 1, 0));
    expect(k, INTS(1, 0), INTS(1, 1, 1, 1, 1));
}

Test(build_returns, unreachable_code_is_dropped) {
    expect("fn f(a: i32) -> i32 { if a > 0 { return 1; } else { return 2; } }\n" KERNEL
           "y[0] = f(x[0]); for i in 0 .. 3 { y[1] = i; break; } y[2] = f(-x[0]); }",
           INTS(4), INTS(1, 0, 2));
}

// More early exits in a row than the builder nests.
Test(build_returns, very_many) {
    char source[64 * 400];
    size_t n = 0;
    n += (size_t)snprintf(source + n, sizeof source - n, "fn f(a: i32) -> i32 {\nvar s = 0;\n");
    for (int i = 0; i < 300; i++) {
        n += (size_t)snprintf(source + n, sizeof source - n,
                              "let v%d = a + %d; if v%d == 500 { return s; } s += v%d;\n", i, i, i,
                              i / 2);
    }
    snprintf(source + n, sizeof source - n, "return -s; }\n%sfor i in 0 .. N { y[i] = f(x[i]); } }",
             KERNEL);
    int32_t x[4] = {500, 400, 201, 0};
    int32_t want[4];
    for (int k = 0; k < 4; k++) {
        int32_t s = 0;
        want[k] = 0;
        bool found = false;
        for (int i = 0; i < 300 && !found; i++) {
            if (x[k] + i == 500) {
                want[k] = s;
                found = true;
            }
            s += x[k] + i / 2;
        }
        want[k] = found ? want[k] : -s;
    }
    expect(source, 4, x, 4, want);
}

Test(build_returns, very_many_in_a_loop) {
    char source[64 * 400];
    size_t n = 0;
    n += (size_t)snprintf(source + n, sizeof source - n, KERNEL "var s = 0;\nfor i in 0 .. N {\n");
    for (int i = 0; i < 150; i++) {
        n += (size_t)snprintf(source + n, sizeof source - n, "if x[i] == %d { %s; } s += 1;\n", i,
                              i % 3 ? "continue" : "break");
    }
    snprintf(source + n, sizeof source - n, "s += 1000; }\ny[0] = s; }");
    expect(source, INTS(1000, 1, 100, 149, 147, 5), INTS(1150 + 1 + 100 + 149 + 147));
}

// ---- Logic
Test(build_logic, short_circuit) {
    const char *k =
        "fn seen(y: inout i32[M], at: i32, r: bool) -> bool { y[at] = y[at] + 1; return r; "
        "}\n" KERNEL "if x[0] > 0 && seen(y, 0, true) { y[4] = 1; }\n"
        "if x[0] > 0 || seen(y, 1, false) { y[5] = 1; }\n"
        "if x[1] > 0 && (x[0] > 5 || seen(y, 2, true)) && seen(y, 3, false) { y[6] = 1; } }";
    expect(k, INTS(1, 0), INTS(1, 0, 0, 0, 1, 1, 0));
    expect(k, INTS(0, 1), INTS(0, 1, 1, 1, 0, 0, 0));
    expect(k, INTS(9, 1), INTS(1, 0, 0, 1, 1, 1, 0));
}

// ---- Lifted functions
static const int32_t lanes[16] = {-9, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 1000};

// y = f(x) for each element: as a tile of 16, and of [4, 4] through two steps.
static void expect_lifted(const char *function, int32_t (*f)(int32_t x)) {
    char source[4096];
    int32_t want[16];
    for (int i = 0; i < 16; i++) {
        want[i] = f(lanes[i]);
    }
    snprintf(source, sizeof source, "%s\n%sy[0 +: 16] = f(x[0 +: 16]); }", function, KERNEL);
    expect(source, 16, lanes, 16, want);
    snprintf(source, sizeof source,
             "%s\n%sy[0 +: 16] = reshape(f(reshape(x[0 +: 16], [4, 4])), [16]); }", function,
             KERNEL);
    expect(source, 16, lanes, 16, want);
    snprintf(source, sizeof source, "%s\n%sfor i in 0 .. 16 { y[i] = f(x[i]); } }", function,
             KERNEL);
    expect(source, 16, lanes, 16, want);
}

static int32_t c_early(int32_t x) { return x < 0 ? -x : x == 4 ? 44 : x > 7 ? x * 2 : x + 1; }
Test(build_lifted, early_return) {
    expect_lifted("fn f(x: i32) -> i32 { if x < 0 { return -x; } if x == 4 { return 44; } else if "
                  "x > 7 { return x * 2; }\n"
                  "return x + 1; }",
                  c_early);
}

static int32_t c_nested(int32_t x) {
    int32_t a = 1;
    int32_t b = 7;
    if (x > 0) {
        a = x;
        if (x > 3) {
            b = a + x;
            if (x == 5) {
                return a * b;
            }
            a += 1;
        } else {
            a = 50;
        }
        b += a;
    } else {
        if (x == -2) {
            return b;
        }
        b = x;
    }
    return a * 1000 + b;
}
Test(build_lifted, nested) {
    expect_lifted(
        "fn f(x: i32) -> i32 {\n"
        "  var a = 1; var b = 7;\n"
        "  if x > 0 {\n"
        "    a = x;\n"
        "    if x > 3 { b = a + x; if x == 5 { return a * b; } a += 1; } else { a = 50; }\n"
        "    b += a;\n"
        "  } else { if x == -2 { return b; } b = x; }\n"
        "  return a * 1000 + b; }",
        c_nested);
}

static int32_t c_both(int32_t x) {
    if (x > 2) {
        if (x > 5) {
            return 1;
        } else {
            return x;
        }
    } else {
        return -x;
    }
}
Test(build_lifted, all_sides_return) {
    expect_lifted("fn f(x: i32) -> i32 { if x > 2 { if x > 5 { return 1; } else { return x; } } "
                  "else { return -x; } }",
                  c_both);
}

static int32_t c_uniform(int32_t x) {
    int32_t s = 0;
    for (int i = 0; i < 6; i++) {
        if (i == 1) {
            continue;
        }
        if (x == i) {
            return 1000 + s;
        }
        if (x > i) {
            s += i + x;
        } else {
            s -= 1;
        }
        if (i == 4) {
            break;
        }
    }
    return s;
}
Test(build_lifted, uniform_loop_around) {
    expect_lifted("fn f(x: i32) -> i32 {\n"
                  "  var s = 0;\n"
                  "  for i in 0 .. 6 {\n"
                  "    if i == 1 { continue; }\n"
                  "    if x == i { return 1000 + s; }\n"
                  "    if x > i { s += i + x; } else { s -= 1; }\n"
                  "    if i == 4 { break; }\n"
                  "  }\n"
                  "  return s; }",
                  c_uniform);
}

// Uniform conditions: `u` is the same for all elements.
static int32_t c_mixed(int32_t x, int32_t u) {
    int32_t r = x;
    if (u > 0) {
        if (x > 0) {
            return 5;
        }
        r = 3;
    }
    if (x < 3) {
        if (u == 2) {
            return 22;
        }
        r += 1;
        if (u < 0) {
            if (x < 0) {
                return -1;
            }
            r += 10;
        }
        r += 100;
    }
    for (int i = 0; i < 4; i++) {
        if (u == i) {
            return r * 7;
        }
        r += i;
    }
    return r;
}
Test(build_lifted, uniform_conditions) {
    for (int32_t u = -1; u < 5; u++) {
        int32_t x[17];
        int32_t want[16];
        for (int i = 0; i < 16; i++) {
            x[i] = lanes[i];
            want[i] = c_mixed(lanes[i], u);
        }
        x[16] = u;
        expect("fn f(x: i32, u: i32) -> i32 {\n"
               "  var r = x;\n"
               "  if u > 0 { if x > 0 { return 5; } r = 3; }\n"
               "  if x < 3 {\n"
               "    if u == 2 { return 22; }\n"
               "    r += 1;\n"
               "    if u < 0 { if x < 0 { return -1; } r += 10; }\n"
               "    r += 100;\n"
               "  }\n"
               "  for i in 0 .. 4 { if u == i { return r * 7; } r += i; }\n"
               "  return r; }\n" KERNEL "y[0 +: 16] = f(x[0 +: 16], x[16]); }",
               17, x, 16, want);
    }
}

static int32_t c_flags(int32_t x, int32_t u) {
    int32_t a = 1;
    if (u > 0) {
        for (int i = 0; i < 2; i++) {
            if (u == i) {
                return 7;
            }
        }
        if (x > 3) {
            if (u != 3) {
                return 4;
            }
            a = 2;
        }
        a += 1;
    }
    return a * 10 + x;
}
// The function's flag is in use while a return for some elements, which does not set it, is built.
Test(build_lifted, flags_and_masks) {
    for (int32_t u = 0; u < 4; u++) {
        int32_t x[17];
        int32_t want[16];
        for (int i = 0; i < 16; i++) {
            x[i] = lanes[i];
            want[i] = c_flags(lanes[i], u);
        }
        x[16] = u;
        expect("fn f(x: i32, u: i32) -> i32 {\n"
               "  var a = 1;\n"
               "  if u > 0 {\n"
               "    for i in 0 .. 2 { if u == i { return 7; } }\n"
               "    if x > 3 { if u != 3 { return 4; } a = 2; }\n"
               "    a += 1;\n"
               "  }\n"
               "  return a * 10 + x; }\n" KERNEL "y[0 +: 16] = f(x[0 +: 16], x[16]); }",
               17, x, 16, want);
    }
}

// Every element returns inside a loop: the loop stops.
Test(build_lifted, all_return_in_a_loop) {
    expect("fn f(y: inout i32[M], x: i32) -> i32 {\n"
           "  for i in 0 .. 5 { y[20 + i] = 1; if i == 2 { if x > 0 { return i; } else { return "
           "-i; } } }\n"
           "  return 99; }\n" KERNEL "y[0 +: 4] = f(y, x[0 +: 4]); }",
           4, (int32_t[]){1, -1, 5, 0}, 25, (int32_t[]){2, -2, 2, -2, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                        0, 0,  0, 0,  0, 0, 0, 1, 1, 1, 0, 0});
}

Test(build_lifted, calls_and_several_results) {
    expect("fn g(x: i32) -> (i32, i32) { if x < 0 { return (0, -x); } return (x, 1); }\n"
           "fn f(x: i32) -> i32 { let (a, b) = g(x); if a > 2 { let (c, d) = g(-a); return c + d; "
           "} return a * 10 + b; }\n" KERNEL "y[0 +: 8] = f(x[0 +: 8]); }",
           INTS(-4, -1, 0, 1, 2, 3, 4, 9), INTS(4, 1, 1, 11, 21, 3, 4, 9));
}

Test(build_lifted, broadcasting_arguments) {
    expect("fn f(a: i32, b: i32) -> i32 { if a > b { return a; } return b * 10; }\n" KERNEL
           "y[0 +: 9] = reshape(f((x[0 +: 3])[:, newaxis], (x[3 +: 3])[newaxis, :]), [9]); }",
           INTS(1, 2, 3, 0, 2, 3), INTS(1, 20, 30, 2, 20, 30, 3, 3, 30));
}

// ---- Effects in lifted functions
Test(build_effects, stores_under_conditions) {
    const char *k =
        "fn put(y: inout i32[M], i: i32, v: i32) {\n"
        "  if v < 0 { return; }\n"
        "  if v > 5 { y[i] = 500; if v == 7 { return; } y[i] = y[i] + v; } else { y[i] = v; }\n"
        "}\n" KERNEL "put(y, iota(8), x[0 +: 8]); }";
    expect(k, INTS(-1, 0, 1, 5, 6, 7, 8, -9), INTS(0, 0, 1, 5, 506, 500, 508, 0));
}

Test(build_effects, calls_under_conditions) {
    const char *k =
        "fn put(y: inout i32[M], i: i32, v: i32) { if v == 3 { return; } y[i] = y[i] + v; }\n"
        "fn twice(y: inout i32[M], i: i32, v: i32) {\n"
        "  put(y, i, v);\n"
        "  if v > 2 { put(y, i, v * 10); if v == 4 { return; } put(y, i, 100 * v); }\n"
        "  put(y, i, 1000);\n"
        "}\n" KERNEL "twice(y, iota(6), x[0 +: 6]); }";
    expect(k, INTS(1, 2, 3, 4, 5, -1), INTS(1001, 1002, 1330, 44, 1555, 999));
}

Test(build_effects, uniform_call_under_condition) {
    const char *k =
        "fn bump(y: inout i32[M]) { y[0] = y[0] + 1; }\n"
        "fn f(y: inout i32[M], v: i32) -> i32 { if v > 5 { bump(y); } return v; }\n" KERNEL
        "y[1 +: 4] = f(y, x[0 +: 4]); }";
    expect(k, INTS(1, 2, 3, 4), INTS(0, 1, 2, 3, 4));
    expect(k, INTS(1, 9, 9, 4), INTS(1, 1, 9, 9, 4));
}

Test(build_effects, atomics_under_conditions) {
    expect("fn count(y: inout i32[M], v: i32) -> i32 {\n"
           "  if v < 0 { return -1; }\n"
           "  if v >= 4 { atomic_max(y[v - 4], 50); return 0; }\n"
           "  atomic_add(y[v], 1); return 1; }\n" KERNEL "y[4] = sum(count(y, x[0 +: 8])); }",
           INTS(0, 1, 1, 3, -1, -2, 1, 6), INTS(1, 3, 50, 1, 3));
}

Test(build_effects, asserts_under_conditions) {
    const char *source = "fn f(v: i32) -> i32 { if v < 0 { return 0; } assert(v < 10, \"v too "
                         "great\"); return v; }\n" KERNEL "y[0 +: 4] = f(x[0 +: 4]); }";
    expect(source, INTS(1, -50, 9, 0), INTS(1, 0, 9, 0));
    int32_t x[4] = {1, -50, 10, 0};
    int32_t y[4] = {0};
    e2e_arg arg[] = {e2e_i32("x", x, 4), e2e_i32("y", y, 4)};
    e2e_run r = {.source = source, .arg = arg, .narg = 2, .debug = true};
    cr_assert_not(e2e(&r));
    cr_assert_eq(r.fault.code, TK_EXEC_ASSERT, "%s", r.text);
    cr_assert(strstr(r.text, "v too great"), "%s", r.text);
    r.debug = false;
    cr_assert(e2e(&r), "%s", r.text);
    cr_assert_eq(y[2], 10);
}

// ---- Reductions with functions
Test(build_combine, of_one) {
    expect("fn g(a: i32, b: i32) -> i32 { if a < b { return b; } return a; }\n" KERNEL
           "y[0] = reduce(x[0 +: 7], f = g); y[1 +: 1] = reduce(x[0 +: 7], axis = 0, f = g); }",
           INTS(4, 1, 9, 3, 2, 11, -5), INTS(11, 11));
}

Test(build_combine, of_a_pair) {
    expect("fn later(v1: i32, i1: i32, v2: i32, i2: i32) -> (i32, i32) {\n"
           "  var v = v1; var i = i1;\n"
           "  if v2 > v1 || (v2 == v1 && i2 > i1) { v = v2; i = i2; }\n"
           "  return (v, i); }\n" KERNEL
           "let (v, i) = reduce((x[0 +: 7], iota(7)), axis = 0, f = later);\n"
           "y[0 +: 1] = v; y[1 +: 1] = i; }",
           INTS(4, 1, 9, 3, 9, 1, -5), INTS(9, 4));
}

// Affine maps, one after the other: associative, but not commutative.
Test(build_combine, scan) {
    expect("fn then(a: i32, b: i32, c: i32, d: i32) -> (i32, i32) { return (a * c, b * c + d); "
           "}\n" KERNEL "let (a, b) = scan((x[0 +: 5], x[5 +: 5]), axis = 0, f = then);\n"
           "y[0 +: 5] = a; y[5 +: 5] = b; }",
           INTS(2, 3, -1, 1, 2, 1, 0, 5, 7, 1), INTS(2, 6, -6, -6, -12, 1, 3, 2, 9, 19));
}

// ---- Captures, optional parameters
Test(build_captures, of_the_kernel) {
    static const char source[] =
        "kernel base<f: fn(i32) -> i32 = same>(x: in i32[N], y: inout i32[M], k: i32 = 3) {\n"
        "  y[0 +: 4] = f(x[0 +: 4]);\n"
        "  y[4] = f(k); }\n"
        "kernel special(t: in i32[L], c: i32) = base(f = fn(v: i32) -> i32 {\n"
        "  if v < 0 { return c; } return t[v] + c; });\n";
    for (int pass = 0; pass < 2; pass++) {
        int32_t x[4] = {2, -1, 0, 9};
        int32_t y[5] = {0};
        int32_t t[3] = {10, 20, 30};
        e2e_arg arg[] = {e2e_i32("x", x, 4), e2e_i32("y", y, 5), e2e_int("k", 1),
                         e2e_i32("t", t, 3), e2e_int("c", 7)};
        e2e_run r = {
            .source = source, .kernel = "special", .arg = arg, .narg = 5, .inline_only = pass == 0};
        cr_assert(e2e(&r), "%s", r.text);
        int32_t want[5] = {37, 7, 17, 7, 27};
        cr_assert_arr_eq(y, want, sizeof y);
    }
}

Test(build_captures, optional) {
    static const char source[] = "fn plus<N: int>(v: i32[N], b: in i32[L] = none) -> i32[N] { if "
                                 "given(b) { return v + b[0 +: N]; } return v; }\n"
                                 "kernel k(x: in i32[N], b: in i32[N] = none, y: inout i32[M]) { "
                                 "y[0 +: 4] = plus(x[0 +: 4], b); }";
    for (uint32_t with = 0; with < 2; with++) {
        int32_t x[4] = {1, 2, 3, 4};
        int32_t b[4] = {10, 20, 30, 40};
        int32_t y[4] = {0};
        e2e_arg arg[] = {e2e_i32("x", x, 4), e2e_i32("y", y, 4), e2e_i32("b", b, 4)};
        e2e_run r = {.source = source, .arg = arg, .narg = 2 + with};
        cr_assert(e2e(&r), "%s", r.text);
        cr_assert_eq(y[2], with ? 33 : 3);
    }
}

// ---- Views
Test(build_views, masks_and_else) {
    enum { R = 5, C = 7 };
    static const char source[] =
        "kernel k(x: in i32[R, C], y: inout i32[R, C], z: inout i32[P, Q, S]) {\n"
        "  let r = iota(4); let c = iota(8);\n"
        // a range and a tile, both masked
        "  y[1 +: 4 where r < 3, c where c % 2 == 0] = x[0 +: 4, c where c != 4] else (c * 1000);\n"
        // two tiles around a range: the common shape first
        "  let i = iota(2)[:, newaxis]; let j = iota(3)[newaxis, :];\n"
        "  let t = z[i where i < 1, 0 +: 4 where r != 2, j where j > 0] else -1;\n"
        "  z[1, 0 +: 4, 3] = reshape(sum(sum(t, axis = 0), axis = 1), [4]);\n"
        "}";
    for (int pass = 0; pass < 2; pass++) {
        int32_t x[R][C];
        int32_t y[R][C];
        int32_t z[2][4][4];
        for (int a = 0; a < R * C; a++) {
            x[a / C][a % C] = a + 1;
            y[a / C][a % C] = -7;
        }
        for (int a = 0; a < 32; a++) {
            z[a / 16][a / 4 % 4][a % 4] = a * a;
        }
        int32_t want[R][C];
        memcpy(want, y, sizeof y);
        for (int r = 0; r < 3; r++) {
            for (int c = 0; c < C; c += 2) {
                want[1 + r][c] = c == 4 ? 4000 : x[r][c];
            }
        }
        e2e_arg arg[] = {e2e_i32("x", x, R, C), e2e_i32("y", y, R, C), e2e_i32("z", z, 2, 4, 4)};
        e2e_run r = {.source = source, .arg = arg, .narg = 3, .inline_only = pass == 0};
        // sum over i gives [1, 3, 4], over j [1, 1, 4]
        cr_assert(e2e(&r), "%s", r.text);
        cr_assert_arr_eq(y, want, sizeof y);
        for (int m = 0; m < 4; m++) {
            int32_t s = -1 * 3 - 1;
            for (int j = 1; j < 3; j++) {
                s += m == 2 ? -1 : (m * 4 + j) * (m * 4 + j);
            }
            cr_assert_eq(z[1][m][3], s, "%d: %d, not %d", m, z[1][m][3], s);
        }
    }
}

Test(build_views, gather_in_lifted_function) {
    expect("fn f(x: in i32[N], i: i32) -> i32 { if i < 0 { return x[0]; } return x[i] else -1; "
           "}\n" KERNEL "y[0 +: 4] = f(x, x[0 +: 4]); }",
           INTS(3, -1, 2, 9), INTS(9, 3, 2, -1));
}

// ---- Built-ins made of several ops
Test(build_random, words_and_normal) {
    static const char source[] = "kernel k(y: out f32[N], z: out f32[N], s: i64) { let o = "
                                 "iota(8); y[0 +: 8] = rand(s, o);\n"
                                 "z[0 +: 8] = randn(s, o); }";
    float y[8];
    float z[8];
    e2e_arg arg[] = {e2e_f32("y", y, 8), e2e_f32("z", z, 8), e2e_int("s", 1234567890123)};
    e2e_run r = {.source = source, .arg = arg, .narg = 3};
    cr_assert(e2e(&r), "%s", r.text);
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        cr_assert(y[i] >= 0 && y[i] < 1);
        cr_assert(z[i] > -6 && z[i] < 6);
        sum += y[i];
    }
    cr_assert(sum > 0.5 && sum < 7.5);
}

Test(build_shapes, split_transpose_full) {
    expect(
        KERNEL
        "let t = reshape(x[0 +: 8], [2, 4]);\n"
        "let (a, b) = split(t, 1);\n"
        "y[0 +: 4] = reshape(transpose(a) + full([2, 2], x[7]) + zeros([2, 2], i32), [4]);\n"
        "y[4] = sum(b); y[5] = max(t); y[6] = argmin(x[0 +: 8]); y[7] = min(x[0], x[1], x[2]); }",
        INTS(5, 2, 3, 4, 1, 6, 7, 8), INTS(13, 9, 10, 14, 22, 8, 4, 2));
}

// ---- Shape of what is built
static e2e_run build(const char *source) {
    static int32_t x[4];
    static int32_t y[4];
    static e2e_arg arg[2];
    arg[0] = e2e_i32("x", x, 4);
    arg[1] = e2e_i32("y", y, 4);
    e2e_run r = {.source = source, .arg = arg, .narg = 2, .check_only = true};
    cr_assert(e2e(&r), "%s", r.text);
    return r;
}

Test(build_form, no_flags_where_structure_suffices) {
    e2e_run r =
        build(KERNEL "if x[0] == 0 { return; } y[0] = 1; if x[1] == 0 { return; } y[1] = 1; }");
    cr_assert_eq(r.ifs, 2);
    r = build(KERNEL "for i in 0 .. N { if x[i] == 0 { continue; } y[0] = i; } }");
    cr_assert_eq(r.ifs, 1);
    cr_assert_eq(r.loops, 1);
}

Test(build_form, one_function_an_instance) {
    e2e_run r = build("fn f(a: i32) -> i32 { return a + 1; }\n" KERNEL
                      "y[0] = f(x[0]) + f(x[1]); y[0 +: 4] = f(x[0 +: 4]); }");
    cr_assert_eq(r.functions, 3);
    cr_assert_eq(r.calls, 3);
}
