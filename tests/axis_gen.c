// SPDX-License-Identifier: Apache-2.0
// See axis_gen.h.
#include "axis_gen.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const axis_shape axis_shapes[] = {{0, {1, 1}},  {1, {16, 1}}, {2, {4, 16}}, {2, {16, 4}},
                                  {1, {64, 1}}, {1, {12, 1}}, {2, {16, 1}}, {2, {1, 16}},
                                  {2, {4, 1}},  {1, {32, 1}}, {1, {4, 1}},  {1, {8, 1}},
                                  {1, {1, 1}}};
enum { SCALAR, T16, T4_16, T16_4, T64, T12, T16_1, T1_16, T4_1, T32, T4, T8, T1 };
const tk_dtype axis_types[] = {TK_BOOL, TK_I8,  TK_I16, TK_I32, TK_I64,
                               TK_U8,   TK_U16, TK_U32, TK_U64};

uint64_t axis_next(axis_gen *g) {
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return g->seed * UINT64_C(0x2545f4914f6cdd1d);
}

int axis_pick(axis_gen *g, int n) { return (int)((axis_next(g) >> 33) % (unsigned)n); }

static void say(axis_gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(axis_gen *g, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    g->at += (size_t)vsnprintf(g->text + g->at, AXIS_TEXT - g->at, fmt, args);
    va_end(args);
    cr_assert(g->at < AXIS_TEXT - 1);
}

static const char *type(tk_dtype t, int s) {
    static char text[4][64];
    static int turn;
    char *out = text[turn++ % 4];
    if (axis_shapes[s].rank == 0) {
        snprintf(out, 64, "%s", tk_dtype_name(t));
    } else if (axis_shapes[s].rank == 1) {
        snprintf(out, 64, "%s[%d]", tk_dtype_name(t), (int)axis_shapes[s].dim[0]);
    } else {
        snprintf(out, 64, "%s[%d, %d]", tk_dtype_name(t), (int)axis_shapes[s].dim[0],
                 (int)axis_shapes[s].dim[1]);
    }
    return out;
}

// ---- Values

static tk_dtype any_int(axis_gen *g) {
    static const tk_dtype t[] = {TK_I8,  TK_I16, TK_I32, TK_I32, TK_I32,
                                 TK_I64, TK_U8,  TK_U16, TK_U32, TK_U64};
    return t[axis_pick(g, 10)];
}

static int made(axis_gen *g, tk_dtype t, int s) {
    g->v[g->n] = (axis_val){t, s, true};
    return g->n++;
}

// Every value is stored at the number of the run and of the rounds around it.
static void keep(axis_gen *g, int v) {
    int s = g->v[v].shape;
    say(g, "store %%out%d[%s", v, g->slot[g->depth]);
    for (unsigned d = 0; d < axis_shapes[s].rank; d++) {
        say(g, ", %%zero +: %d", (int)axis_shapes[s].dim[d]);
    }
    say(g, "] = %%v%d\n", v);
}

static void constant(axis_gen *g, tk_dtype t) {
    static const int64_t near[] = {0,  1,  2,  3,   4,  7,  8,  15, 16,  32,
                                   63, 64, 96, 100, -1, -2, -4, -8, -16, -7};
    unsigned bits = tk_dtype_bits(t);
    int64_t least = tk_dtype_is_signed(t) ? -(int64_t)(UINT64_MAX >> (65 - bits)) - 1 : 0;
    uint64_t most = tk_dtype_is_signed(t) ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits);
    if (t == TK_BOOL) {
        say(g, axis_pick(g, 2) ? "true" : "false");
    } else if (axis_pick(g, 8) == 0) {
        uint64_t off = (uint64_t)axis_pick(g, 3) * 8;
        if (axis_pick(g, 2)) {
            say(g, "%llu", (unsigned long long)(most - off));
        } else {
            say(g, "%lld", (long long)(least + (int64_t)off));
        }
    } else {
        int64_t x =
            axis_pick(g, 6) ? near[axis_pick(g, 20)] : (int64_t)1 << axis_pick(g, (int)bits - 1);
        x = x < least ? -x : x;
        x = x >= 0 && (uint64_t)x > most ? 1 : x;
        say(g, "%lld", (long long)x);
    }
}

static int new_constant(axis_gen *g, tk_dtype t, int s) {
    int v = made(g, t, s);
    say(g, "%%v%d = const ", v);
    constant(g, t);
    say(g, " : %s\n", type(t, s));
    return v;
}

static int find(axis_gen *g, int t, int s) { // t < 0: any integer; s < 0: any
    int found = -1, seen = 0;
    for (int i = 0; i < g->n; i++) {
        bool fits = g->v[i].visible &&
                    (t < 0 ? tk_dtype_is_int(g->v[i].t) : g->v[i].t == (tk_dtype)t) &&
                    (s < 0 || g->v[i].shape == s);
        int late = i > g->n - 8 ? 4 : 1; // the later ones more often
        if (fits) {
            seen += late;
            found = axis_pick(g, seen) < late ? i : found;
        }
    }
    return found;
}

static int load(axis_gen *g, tk_dtype t, int s) {
    int v = made(g, t, s);
    say(g, "%%v%d = load %%in_%s[", v, tk_dtype_name(t));
    if (axis_shapes[s].rank == 0) {
        say(g, "%%slot] : %s\n", type(t, s));
    } else {
        say(g, "%%zero +: %d] : %s\n", (int)axis_shapes[s].dim[0], type(t, s));
    }
    return v;
}

// A value of that type: one that is there, a constant, or one made from an iota.
static int need(axis_gen *g, tk_dtype t, int s) {
    int v = axis_pick(g, 3) ? find(g, (int)t, s) : -1;
    if (v >= 0) {
        return v;
    }
    int way = axis_pick(g, 4);
    if (way == 0 && axis_shapes[s].rank > 0 && t != TK_BOOL) { // the same scalar for all
        int a = need(g, t, SCALAR);
        v = made(g, t, s);
        say(g, "%%v%d = broadcast %%v%d : %s\n", v, a, type(t, s));
        return v;
    }
    if (way == 1 && axis_shapes[s].rank == 1 && t != TK_BOOL) {
        int a = made(g, TK_I32, s);
        say(g, "%%v%d = iota : %s\n", a, type(TK_I32, s));
        if (t == TK_I32) {
            return a;
        }
        v = made(g, t, s);
        say(g, "%%v%d = cast %%v%d : %s\n", v, a, type(t, s));
        return v;
    }
    if (way == 2 && axis_shapes[s].rank < 2) {
        return load(g, t, s);
    }
    return new_constant(g, t, s);
}

static int any_shape(axis_gen *g) {
    static const uint8_t often[] = {SCALAR, SCALAR, T16,   T16,  T16, T4_16, T16_4, T64,
                                    T12,    T16_1,  T1_16, T4_1, T32, T4,    T8};
    return often[axis_pick(g, 15)];
}

static int some(axis_gen *g) { // of any integer type and shape
    int v = axis_pick(g, 4) ? find(g, -1, -1) : -1;
    return v >= 0 ? v : need(g, any_int(g), any_shape(g));
}

// ---- Element-wise ops

static int binary(axis_gen *g, const char *name, int a, int b, tk_dtype t) {
    int v = made(g, t, g->v[a].shape);
    say(g, "%%v%d = %s %%v%d, %%v%d : %s\n", v, name, a, b, type(t, g->v[a].shape));
    return v;
}

static void arithmetic(axis_gen *g) {
    static const char *const name[] = {"add", "add", "add", "sub", "sub", "mul",  "mul",  "div",
                                       "div", "rem", "rem", "min", "max", "fmin", "fmax", "and",
                                       "and", "or",  "xor", "shl", "shr", "shr",  "cdiv", "mulhi"};
    int a = some(g), s = g->v[a].shape;
    tk_dtype t = g->v[a].t;
    int b = axis_pick(g, 2) ? new_constant(g, t, s) : need(g, t, s);
    bool swap = axis_pick(g, 3) == 0;
    binary(g, name[axis_pick(g, 24)], swap ? b : a, swap ? a : b, t);
}

static void comparison(axis_gen *g) {
    static const char *const name[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    int a = some(g), s = g->v[a].shape;
    tk_dtype t = g->v[a].t;
    int b = axis_pick(g, 2) ? new_constant(g, t, s) : need(g, t, s);
    bool swap = axis_pick(g, 3) == 0;
    binary(g, name[axis_pick(g, 6)], swap ? b : a, swap ? a : b, TK_BOOL);
}

static void unary(axis_gen *g) {
    static const char *const name[] = {"neg", "abs", "bnot", "popcount", "clz", "next_pow2"};
    int a = some(g), k = axis_pick(g, 6);
    tk_dtype t = k == 3 || k == 4 ? TK_I32 : g->v[a].t;
    int v = made(g, t, g->v[a].shape);
    say(g, "%%v%d = %s %%v%d : %s\n", v, name[k], a, type(t, g->v[a].shape));
}

// An iota plus a constant.
static int counting(axis_gen *g, int s) {
    int a = made(g, TK_I32, s);
    say(g, "%%v%d = iota : %s\n", a, type(TK_I32, s));
    int b = new_constant(g, TK_I32, s);
    return binary(g, "add", a, b, TK_I32);
}

static void ternary(axis_gen *g) {
    bool count = axis_pick(g, 4) == 0, clamp = !count && axis_pick(g, 3) == 0;
    int a = count ? counting(g, T16) : some(g), s = g->v[a].shape;
    tk_dtype t = g->v[a].t;
    int b = count ? counting(g, s) : need(g, t, s);
    int c = need(g, clamp ? t : TK_BOOL, s), v = made(g, t, s);
    if (clamp) {
        say(g, "%%v%d = clamp %%v%d, %%v%d, %%v%d : %s\n", v, a, b, c, type(t, s));
    } else {
        say(g, "%%v%d = select %%v%d, %%v%d, %%v%d : %s\n", v, c, a, b, type(t, s));
    }
}

static void truths(axis_gen *g) {
    static const char *const name[] = {"and", "or", "xor", "eq", "ne"};
    int s = any_shape(g), a = need(g, TK_BOOL, s);
    if (axis_pick(g, 4) == 0) {
        int v = made(g, TK_BOOL, s);
        say(g, "%%v%d = not %%v%d : %s\n", v, a, type(TK_BOOL, s));
    } else {
        int b = need(g, TK_BOOL, s);
        binary(g, name[axis_pick(g, 5)], a, b, TK_BOOL);
    }
}

static void cast(axis_gen *g) {
    int a = axis_pick(g, 5) ? some(g) : need(g, TK_BOOL, any_shape(g));
    tk_dtype t = axis_pick(g, 6) ? any_int(g) : TK_BOOL;
    bool bits = axis_pick(g, 3) == 0 && tk_dtype_size(t) == tk_dtype_size(g->v[a].t) &&
                t != TK_BOOL && g->v[a].t != TK_BOOL;
    if (t == g->v[a].t) {
        return;
    }
    int v = made(g, t, g->v[a].shape);
    say(g, "%%v%d = %s %%v%d : %s\n", v, bits ? "bitcast" : "cast", a, type(t, g->v[a].shape));
}

// ---- Ops on shapes

// From one shape to another by `name`; rest is what follows the operands.
static const struct move {
    const char *name;
    uint8_t from, to, operands;
    const char *rest;
} moves[] = {
    {"broadcast", T16, T4_16, 1, ""},
    {"broadcast", T16_1, T16_4, 1, ""},
    {"broadcast", T1_16, T4_16, 1, ""},
    {"broadcast", T4_1, T4_16, 1, ""},
    {"broadcast", T1, T16, 1, ""},
    {"reshape", T16, T16_1, 1, ""},
    {"reshape", T16, T1_16, 1, ""},
    {"reshape", T1_16, T16, 1, ""},
    {"reshape", T16_1, T1_16, 1, ""},
    {"reshape", T64, T4_16, 1, ""},
    {"reshape", T64, T16_4, 1, ""},
    {"reshape", T4_16, T64, 1, ""},
    {"reshape", T4_16, T16_4, 1, ""},
    {"reshape", T16_4, T64, 1, ""},
    {"reshape", T16_4, T4_16, 1, ""},
    {"reshape", T4_1, T4, 1, ""},
    {"reshape", SCALAR, T1, 1, ""},
    {"reshape", T1, SCALAR, 1, ""},
    {"permute", T4_16, T16_4, 1, " perm=[1, 0]"},
    {"permute", T16_4, T4_16, 1, " perm=[1, 0]"},
    {"flip", T16, T16, 1, " axis=0"},
    {"flip", T4_16, T4_16, 1, " axis=1"},
    {"flip", T4_16, T4_16, 1, " axis=0"},
    {"flip", T12, T12, 1, " axis=0"},
    {"slice", T64, T16, 1, " axis=0 start=16"},
    {"slice", T64, T16, 1, " axis=0 start=8"},
    {"slice", T64, T16, 1, " axis=0 start=5"},
    {"slice", T16, T12, 1, " axis=0 start=4"},
    {"slice", T16, T4, 1, " axis=0 start=2"},
    {"slice", T16_4, T16_1, 1, " axis=1 start=3"},
    {"concat", T16, T32, 2, " axis=0"},
    {"concat", T32, T64, 2, " axis=0"},
    {"concat", T4, T8, 2, " axis=0"},
    {"interleave", T16, T32, 2, ""},
    {"interleave", T4, T8, 2, ""},
    {"gather", T16, T16, 3, " axis=0"},
    {"sort", T16, T16, 1, " axis=0"},
    {"scan sum", T16, T16, 1, " axis=0"},
    {"scan max", T4_16, T4_16, 1, " axis=1"},
    {"reduce sum", T4_16, T4_1, 1, " axis=1"},
    {"reduce max", T4_16, T4_1, 1, " axis=1"},
    {"reduce min", T4_16, T1_16, 1, " axis=0"},
    {"reduce sum", T4_16, T1_16, 1, " axis=0"},
    {"reduce xor", T16_4, T16_1, 1, " axis=1"},
    {"reduce prod", T16, SCALAR, 1, ""},
    {"reduce min", T16, SCALAR, 1, ""},
    {"reduce sum", T64, SCALAR, 1, ""},
    {"reduce sum", T12, SCALAR, 1, ""},
    {"arg_reduce max", T4_16, T4_1, 4, " axis=1"},
    {"arg_reduce min", T16, SCALAR, 4, ""},
};

static void move(axis_gen *g) {
    const struct move *m = &moves[axis_pick(g, (int)(sizeof moves / sizeof *moves))];
    int v = find(g, -1, m->from);
    tk_dtype t = v >= 0 && axis_pick(g, 4) ? g->v[v].t : any_int(g);
    bool sums = strstr(m->name, "sum") || strstr(m->name, "prod"); // not of narrow types
    t = sums && tk_dtype_bits(t) < 32 ? TK_I32 : t;
    int a = need(g, t, m->from);
    int b = m->operands == 2   ? need(g, t, m->from)
            : m->operands == 3 ? need(g, TK_I32, m->from)
                               : 0;
    t = m->operands == 4 ? TK_I32 : t;
    v = made(g, t, m->to);
    say(g, "%%v%d = %s %%v%d", v, m->name, a);
    if (m->operands == 2 || m->operands == 3) {
        say(g, ", %%v%d", b);
    }
    say(g, "%s : %s\n", m->rest, type(t, m->to));
}

static void two_results(axis_gen *g) {
    tk_dtype t = any_int(g);
    bool halves = axis_pick(g, 2);
    int a = need(g, t, halves ? T32 : T16);
    int v = made(g, t, halves ? T16 : T4), w = made(g, halves ? t : TK_I32, halves ? T16 : T4);
    say(g, "%%v%d, %%v%d = %s %%v%d%s : %s, %s\n", v, w, halves ? "deinterleave" : "topk", a,
        halves ? "" : " axis=0", type(t, g->v[v].shape), type(g->v[w].t, g->v[w].shape));
}

static void special(axis_gen *g) {
    int k = axis_pick(g, 5), v;
    if (k == 0) {
        int a = need(g, TK_I32, T16);
        v = made(g, TK_I32, T12);
        say(g, "%%v%d = histogram %%v%d : i32[12]\n", v, a);
    } else {
        v = made(g, TK_I32, SCALAR);
        if (k == 1) {
            say(g, "%%v%d = dim %%t%d axis=0 : i32\n", v, axis_pick(g, AXIS_TENSORS));
        } else {
            say(g, "%%v%d = %s axis=%d : i32\n", v, k == 2 ? "num_programs" : "program_id",
                axis_pick(g, 2));
        }
    }
}

// What a kernel does with indices: blocks of an iota divided, masked and compared by powers of two.
static void block(axis_gen *g) {
    static const char *const name[] = {"div", "rem", "and", "or", "shr", "lt", "ge", "le", "gt"};
    static const int at[] = {0, 16, 32, -8, -16, -32, 8, 4};
    int s = axis_pick(g, 2) ? T16 : T64, op = axis_pick(g, 9);
    tk_dtype t = axis_pick(g, 2) ? TK_I32 : TK_I64;
    int a = need(g, t, s), b = made(g, t, s), c = made(g, t, s);
    if (axis_pick(g, 4)) {
        int i = made(g, TK_I32, s);
        say(g, "%%v%d = iota : %s\n", i, type(TK_I32, s));
        a = i;
        if (t != TK_I32) {
            a = made(g, t, s);
            say(g, "%%v%d = cast %%v%d : %s\n", a, i, type(t, s));
        }
    }
    say(g, "%%v%d = const %d : %s\n", b, at[axis_pick(g, 8)], type(t, s));
    say(g, "%%v%d = const %d : %s\n", c, op == 4 ? 1 + axis_pick(g, 4) : at[axis_pick(g, 8)],
        type(t, s));
    a = binary(g, "add", a, b, t);
    (void)binary(g, name[op], a, c, op < 5 ? t : TK_BOOL);
}

// What is below a size, and arithmetic on it in a type that may be too small.
static void sized(axis_gen *g) {
    static const char *const name[] = {"add", "sub", "mul", "div", "cdiv",
                                       "shr", "rem", "min", "max", "and"};
    static const int with[] = {1, 2, 3, 16, 64, 4, 100, 5};
    int a = made(g, TK_I32, SCALAR), way = axis_pick(g, 3);
    if (way == 0) {
        say(g, "%%v%d = dim %%t%d axis=0 : i32\n", a, axis_pick(g, AXIS_TENSORS));
    } else {
        say(g, "%%v%d = program_id axis=%d : i32\n", a, way - 1);
    }
    tk_dtype t = axis_pick(g, 2) ? TK_I32 : any_int(g);
    if (t != TK_I32) {
        int b = made(g, t, SCALAR);
        say(g, "%%v%d = cast %%v%d : %s\n", b, a, type(t, SCALAR));
        a = b;
    }
    int k = made(g, t, SCALAR);
    say(g, "%%v%d = const %d : %s\n", k, with[axis_pick(g, 8)], type(t, SCALAR));
    (void)binary(g, name[axis_pick(g, 10)], a, axis_pick(g, 4) ? k : need(g, t, SCALAR), t);
}

// ---- Regions

static void ops(axis_gen *g, int n);

static void hide(axis_gen *g, int from) {
    for (int i = from; i < g->n; i++) {
        g->v[i].visible = false;
    }
}

static void branch(axis_gen *g) {
    int c = need(g, TK_BOOL, SCALAR), a = some(g), mark = g->n;
    tk_dtype t = g->v[a].t;
    int s = g->v[a].shape, v = made(g, t, s);
    g->v[v].visible = false;
    say(g, "%%v%d = if %%v%d : %s {\n", v, c, type(t, s));
    ops(g, 2);
    say(g, "yield %%v%d\n", need(g, t, s));
    hide(g, mark);
    say(g, "} else {\n");
    ops(g, 2);
    say(g, "yield %%v%d\n}\n", need(g, t, s));
    hide(g, mark);
    g->v[v].visible = true;
}

typedef struct bounds {
    tk_dtype t;
    int from, to, step;
} bounds;

// At most AXIS_OUTER or AXIS_INNER rounds, whatever the values are.
static bounds loop_bounds(axis_gen *g) {
    int rounds = g->depth ? AXIS_INNER : AXIS_OUTER;
    bounds b = {TK_I32, 0, 0, 0};
    int way = axis_pick(g, 4);
    if (way == 0 && g->depth == 0) { // to a size, of at most 40
        static const int step[] = {5, 8, 16, 32};
        b.from = made(g, TK_I32, SCALAR);
        say(g, "%%v%d = const %d : i32\n", b.from, axis_pick(g, 2) ? 0 : 8);
        b.to = made(g, TK_I32, SCALAR);
        say(g, "%%v%d = dim %%t%d axis=0 : i32\n", b.to, axis_pick(g, AXIS_TENSORS));
        b.step = made(g, TK_I32, SCALAR);
        say(g, "%%v%d = const %d : i32\n", b.step, step[axis_pick(g, 4)]);
        return b;
    }
    static const tk_dtype index[] = {TK_I32, TK_I64, TK_U32, TK_U64};
    b.t = index[axis_pick(g, 4)];
    bool is_signed = tk_dtype_is_signed(b.t), down = is_signed && way == 1;
    bool either = is_signed && way == 2;
    b.from = either ? made(g, b.t, SCALAR) : need(g, b.t, SCALAR);
    if (either) {
        say(g, "%%v%d = const %d : %s\n", b.from, axis_pick(g, 9) - 4, type(b.t, SCALAR));
    }
    int by = made(g, b.t, SCALAR), stride = 1 + axis_pick(g, 4);
    say(g, "%%v%d = const %d : %s\n", by, (down ? -1 : 1) * rounds * stride, type(b.t, SCALAR));
    b.to = binary(g, "add", b.from, by, b.t); // where that wraps it is on the other side: no round
    int up = made(g, b.t, SCALAR);
    say(g, "%%v%d = const %d : %s\n", up, (down ? -1 : 1) * stride, type(b.t, SCALAR));
    b.step = up;
    if (either) {
        int c = need(g, TK_BOOL, SCALAR), minus = made(g, b.t, SCALAR);
        say(g, "%%v%d = const -1 : %s\n", minus, type(b.t, SCALAR));
        b.step = made(g, b.t, SCALAR);
        say(g, "%%v%d = select %%v%d, %%v%d, %%v%d : %s\n", b.step, c, up, minus,
            type(b.t, SCALAR));
    }
    return b;
}

// One level deeper: round number %m<id> is in a region of its own.
static void enter(axis_gen *g, int id) {
    int d = ++g->depth;
    snprintf(g->slot[d], sizeof g->slot[d], "%%slot%d", id);
    say(g, "%%p%d = mul %s, %%rounds%d : i32\n", id, g->slot[d - 1], d);
    say(g, "%s = add %%p%d, %%m%d : i32\n", g->slot[d], id, id);
}

static void for_loop(axis_gen *g) {
    bounds b = loop_bounds(g);
    bool halves = axis_pick(g, 6) == 0; // divisibility falls by one a round
    int init = halves ? need(g, TK_I64, SCALAR) : some(g), mark = g->n,
        result = made(g, g->v[init].t, g->v[init].shape);
    int index = made(g, b.t, SCALAR), arg = made(g, g->v[init].t, g->v[init].shape);
    const char *t = type(g->v[init].t, g->v[init].shape);
    g->v[result].visible = false;
    int id = (int)g->at;
    say(g,
        "%%v%d, %%n%d = for %%v%d = %%v%d to %%v%d step %%v%d carry (%%v%d = %%v%d, %%m%d = "
        "%%zero) : %s, i32 {\n",
        result, id, index, b.from, b.to, b.step, arg, init, id, t);
    enter(g, id);
    keep(g, index);
    keep(g, arg);
    ops(g, 4);
    int y = halves ? arg : need(g, g->v[init].t, g->v[init].shape);
    if (halves) {
        int two = made(g, TK_I64, SCALAR);
        say(g, "%%v%d = const 2 : i64\n", two);
        y = binary(g, "div", arg, two, TK_I64);
    }
    say(g, "%%q%d = add %%m%d, %%one : i32\nyield %%v%d, %%q%d\n}\n", id, id, y, id);
    g->depth--;
    hide(g, mark);
    g->v[result].visible = true;
}

static void while_loop(axis_gen *g) {
    int init = some(g), mark = g->n, result = made(g, g->v[init].t, g->v[init].shape);
    int arg = made(g, g->v[init].t, g->v[init].shape),
        body = made(g, g->v[init].t, g->v[init].shape);
    const char *t = type(g->v[init].t, g->v[init].shape);
    int id = (int)g->at;
    hide(g, mark);
    say(g, "%%v%d, %%n%d = while carry (%%v%d = %%v%d, %%r%d = %%zero) : %s, i32 {\n", result, id,
        arg, init, id, t);
    say(g, "%%b%d = lt %%r%d, %%three : bool\nyield %%b%d\n} do (%%v%d, %%m%d) {\n", id, id, id,
        body, id);
    g->v[body].visible = true;
    enter(g, id);
    keep(g, body);
    ops(g, 4);
    int y = need(g, g->v[init].t, g->v[init].shape);
    say(g, "%%q%d = add %%m%d, %%one : i32\nyield %%v%d, %%q%d\n}\n", id, id, y, id);
    g->depth--;
    hide(g, mark);
    g->v[result].visible = true;
}

static void ops(axis_gen *g, int n) {
    static void (*const way[])(axis_gen *) = {
        arithmetic, arithmetic, arithmetic,  arithmetic, arithmetic, comparison,
        unary,      ternary,    truths,      cast,       cast,       move,
        move,       move,       two_results, special,    block,      block,
        sized,      sized,      branch,      for_loop,   while_loop};
    for (int i = 0; i < n && g->n < AXIS_VALUES - 30; i++) {
        int k = axis_pick(g, 23), mark = g->n;
        bool deep = g->depth == 2 && k >= 21;
        way[deep ? 0 : k](g);
        for (int v = mark; v < g->n; v++) {
            if (g->v[v].visible) {
                keep(g, v);
            }
        }
    }
}

// ---- The kernel around them

static void grid(axis_gen *g, tk_buf *b) {
    static const char *const count[] = {
        "%g0 = dim %t0 axis=0 : i32",
        "%gd = dim %t1 axis=0 : i32\n%gk = const 16 : i32\n%g0 = cdiv %gd, %gk : i32",
        "%gd = dim %t2 axis=0 : i32\n%gk = const 4 : i32\n%g0 = div %gd, %gk : i32",
        "%g0 = const 5 : i32",
        "%gd = dim %t3 axis=0 : i32\n%gk = const 3 : i32\n%g0 = add %gd, %gk : i32"};
    tk_buf_fmt(b, "grid {\n%s\n%%g1 = dim %%t1 axis=0 : i32\nyield %%g0, %%g1\n}\n",
               count[axis_pick(g, 5)]);
}

static const char *whole(axis_gen *g, tk_arena *a) {
    tk_buf b;
    tk_buf_init(&b, a);
    tk_buf_str(&b, "module tile\n\nkernel @k(%slot: i32");
    for (int i = 0; i < AXIS_TENSORS; i++) {
        tk_buf_fmt(&b, ", %%t%d: in f32[%s]", i, i == 3 ? "24" : "?");
    }
    for (unsigned i = 0; i < AXIS_TYPES; i++) {
        tk_buf_fmt(&b, ", %%in_%s: in %s[?]", tk_dtype_name(axis_types[i]),
                   tk_dtype_name(axis_types[i]));
    }
    for (int i = 0; i < g->n; i++) {
        tk_buf_fmt(&b, ", %%out%d: out %s[?", i, tk_dtype_name(g->v[i].t));
        for (unsigned d = 0; d < axis_shapes[g->v[i].shape].rank; d++) {
            tk_buf_str(&b, ", ?");
        }
        tk_buf_str(&b, "]");
    }
    tk_buf_str(&b, ") {\n");
    grid(g, &b);
    tk_buf_fmt(&b,
               "%%zero = const 0 : i32\n%%one = const 1 : i32\n%%three = const 3 : i32\n%%rounds1 "
               "= const %d : i32\n%%rounds2 = const %d : i32\n",
               AXIS_OUTER, AXIS_INNER);
    tk_buf_add(&b, g->text, g->at);
    tk_buf_str(&b, "return\n}\n");
    return tk_buf_text(&b);
}

const char *axis_program(axis_gen *g, tk_arena *a, uint64_t seed, int n) {
    memset(g, 0, sizeof *g);
    g->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    strcpy(g->slot[0], "%slot");
    ops(g, n);
    return whole(g, a);
}
