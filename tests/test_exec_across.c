// SPDX-License-Identifier: Apache-2.0
// Reductions, scans and sorts of the executor by brute force, on ranks 1 to 4 and every axis.
#include <criterion/criterion.h>
#include <math.h>

#include "test_exec_run.h"

enum { MOST = 40000 };

typedef struct {
    unsigned rank;
    int64_t dim[4];
} shape;

static const shape shapes[] = {
    {1, {1}},        {1, {7}},       {1, {16}},         {1, {1000}},       {1, {5001}},
    {2, {3, 5}},     {2, {1, 40}},   {2, {37, 1}},      {2, {70, 130}},    {3, {2, 3, 4}},
    {3, {5, 33, 2}}, {3, {4, 1, 9}}, {4, {2, 3, 2, 5}}, {4, {3, 2, 17, 3}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static char text_of_dims[128];

static const char *dims(unsigned rank, const int64_t *dim) {
    size_t at = 0;
    text_of_dims[0] = '\0';
    for (unsigned i = 0; i < rank; i++) {
        at += (size_t)snprintf(text_of_dims + at, sizeof text_of_dims - at, i ? ", %lld" : "%lld",
                               (long long)dim[i]);
    }
    return text_of_dims;
}

static int64_t count(const shape *s) {
    int64_t n = 1;
    for (unsigned i = 0; i < s->rank; i++) {
        n *= s->dim[i];
    }
    return n;
}

// %r of `out` elements of type `to` from %a, which has the shape and holds in[]. `op` has a %s for
// each of the result's dimensions and its operand type; it is formatted by the caller.
static void apply(const char *op, const char *type, const shape *s, void *in, const char *to,
                  int64_t out, void *result) {
    static xrun x;
    const int64_t n = count(s);
    char *text = xrun_text("module tile\n\nkernel @k(%%x: in %s[?], %%y: out %s[?]) {\n"
                           "%%z = const 0 : i32\n%%l = load %%x[%%z +: %lld] : %s[%lld]\n"
                           "%%a = reshape %%l : %s[%s]\n%s\n%%f = reshape %%r : %s[%lld]\n"
                           "store %%y[%%z +: %lld] = %%f\nreturn\n}\n",
                           type, to, (long long)n, type, (long long)n, type, dims(s->rank, s->dim),
                           op, to, (long long)out, (long long)out);
    cr_assert(xrun_open(&x, text));
    xrun_vector(&x, 0, in, n);
    xrun_vector(&x, 1, result, out);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    xrun_close(&x);
    free(text);
}

typedef struct {
    int64_t outer, len, inner;
} split;

static split split_at(const shape *s, unsigned axis) {
    split p = {1, s->dim[axis], 1};
    for (unsigned i = 0; i < s->rank; i++) {
        *(i < axis ? &p.outer : &p.inner) *= i == axis ? 1 : s->dim[i];
    }
    return p;
}

// The result's type after reducing an axis.
static const char *reduced(const shape *s, unsigned axis) {
    int64_t dim[4];
    memcpy(dim, s->dim, sizeof dim);
    dim[axis] = 1;
    return dims(s->rank, dim);
}

static int32_t xi[MOST], yi[MOST];
static float xf[MOST], yf[MOST];

static void fill(int64_t n, uint32_t seed) {
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        xi[i] = (int32_t)seed;
        xf[i] = (float)(int32_t)seed * 0x1p-31F;
    }
}

static int32_t combine_i(const char *kind, int32_t a, int32_t b) {
    const uint32_t ua = (uint32_t)a, ub = (uint32_t)b;
    return strcmp(kind, "sum") == 0    ? (int32_t)(ua + ub)
           : strcmp(kind, "prod") == 0 ? (int32_t)(ua * ub)
           : strcmp(kind, "min") == 0  ? (a < b ? a : b)
           : strcmp(kind, "max") == 0  ? (a > b ? a : b)
                                       : a ^ b;
}

Test(exec_across, reduce) {
    static const char *const kinds[] = {"sum", "prod", "min", "max", "xor"};
    for (int k = 0; k < SHAPES * 5; k++) {
        const shape *s = &shapes[k / 5];
        const char *kind = kinds[k % 5];
        fill(count(s), (uint32_t)k + 1);
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            char op[256];
            (void)snprintf(op, sizeof op, "%%r = reduce %s %%a axis=%u : i32[%s]", kind, axis,
                           reduced(s, axis));
            apply(op, "i32", s, xi, "i32", p.outer * p.inner, yi);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const int32_t *x = xi + e / p.inner * p.len * p.inner + e % p.inner;
                int32_t want = x[0];
                for (int64_t i = 1; i < p.len; i++) {
                    want = combine_i(kind, want, x[i * p.inner]);
                }
                cr_assert(yi[e] == want, "%s of [%s] axis %u", kind, dims(s->rank, s->dim), axis);
            }
        }
    }
}

Test(exec_across, reduce_floats) {
    for (int k = 0; k < SHAPES; k++) {
        const shape *s = &shapes[k];
        char op[256];
        fill(count(s), (uint32_t)k + 77);
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            (void)snprintf(op, sizeof op, "%%r = reduce sum %%a axis=%u : f32[%s]", axis,
                           reduced(s, axis));
            apply(op, "f32", s, xf, "f32", p.outer * p.inner, yf);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const float *x = xf + e / p.inner * p.len * p.inner + e % p.inner;
                double want = 0, size = 0;
                for (int64_t i = 0; i < p.len; i++) {
                    want += (double)x[i * p.inner];
                    size += fabs((double)x[i * p.inner]);
                }
                cr_assert(fabs((double)yf[e] - want) <= size * 0x1p-20);
            }
        }
        float all[2];
        apply("%m = reduce max %a : f32\n%r = broadcast %m : f32[1]", "f32", s, xf, "f32", 1, all);
        xf[count(s) / 2] = NAN;
        apply("%m = reduce max %a : f32\n%r = broadcast %m : f32[1]", "f32", s, xf, "f32", 1,
              all + 1);
        float want = -INFINITY;
        for (int64_t i = 0; i < count(s); i++) {
            want = xf[i] > want ? xf[i] : want;
        }
        cr_expect((all[0] >= want || count(s) == 1) && isnan(all[1]));
    }
}

// A long sum stays accurate: the error of adding in order would be far greater.
Test(exec_across, sums_are_pairwise) {
    const shape s = {1, {40000}};
    for (int i = 0; i < 40000; i++) {
        xf[i] = 0.1F;
    }
    float r;
    apply("%m = reduce sum %a : f32\n%r = broadcast %m : f32[1]", "f32", &s, xf, "f32", 1, &r);
    cr_expect(fabs((double)r - 40000 * (double)0.1F) <= 0.002, "%.9g", (double)r);
    const shape rows = {2, {10000, 4}};
    apply("%r = reduce sum %a axis=0 : f32[1, 4]", "f32", &rows, xf, "f32", 4, yf);
    cr_expect(fabs((double)yf[3] - 10000 * (double)0.1F) <= 0.0005, "%.9g", (double)yf[3]);
}

Test(exec_across, any_all_and_arg) {
    static uint8_t b[24], y[24];
    const shape s = {2, {4, 6}};
    for (int i = 0; i < 24; i++) {
        b[i] = i % 7 != 3;
    }
    apply("%r = reduce all %a axis=1 : bool[4, 1]", "bool", &s, b, "bool", 4, y);
    cr_expect(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 1);
    apply("%r = reduce any %a axis=0 : bool[1, 6]", "bool", &s, b, "bool", 6, y);
    cr_expect(y[0] == 1 && y[3] == 1);
    apply("%r = reduce xor %a axis=0 : bool[1, 6]", "bool", &s, b, "bool", 6, y);
    cr_expect(y[3] == (b[3] ^ b[9] ^ b[15] ^ b[21]));
    const float f[24] = {1, 5,     5, 2, -0.0F, 0, 3, NAN, 9, NAN, 1, 0,
                         0, -0.0F, 0, 0, 0,     0, 7, 7,   1, 1,   7, 2};
    memcpy(xf, f, sizeof f);
    apply("%r = arg_reduce max %a axis=1 : i32[4, 1]", "f32", &s, xf, "i32", 4, yi);
    cr_expect(yi[0] == 1 && yi[1] == 1 && yi[2] == 0 && yi[3] == 0);
    apply("%r = arg_reduce min %a axis=1 : i32[4, 1]", "f32", &s, xf, "i32", 4, yi);
    cr_expect(yi[0] == 4 && yi[1] == 1 && yi[2] == 0 && yi[3] == 2);
    apply("%r = arg_reduce max %a axis=0 : i32[1, 6]", "f32", &s, xf, "i32", 6, yi);
    cr_expect(yi[0] == 3 && yi[1] == 1 && yi[2] == 1 && yi[3] == 1 && yi[4] == 3);
    apply("%m = arg_reduce max %a : i32\n%r = broadcast %m : i32[1]", "f32", &s, xf, "i32", 1, yi);
    cr_expect(yi[0] == 7);
}

Test(exec_across, scan) {
    static const char *const kinds[] = {"sum", "prod", "min", "max"};
    static const int32_t identity[] = {0, 1, INT32_MAX, INT32_MIN};
    for (int k = 0; k < SHAPES * 16; k++) {
        const shape *s = &shapes[k / 16];
        const char *kind = kinds[k % 4];
        const bool rev = k / 4 % 2 == 1, excl = k / 8 % 2 == 1;
        fill(count(s), (uint32_t)k + 5);
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            char op[256];
            (void)snprintf(op, sizeof op, "%%r = scan %s %%a axis=%u%s%s : i32[%s]", kind, axis,
                           rev ? " reverse" : "", excl ? " exclusive" : "", dims(s->rank, s->dim));
            apply(op, "i32", s, xi, "i32", count(s), yi);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const int64_t from = e / p.inner * p.len * p.inner + e % p.inner;
                int32_t acc = identity[k % 4];
                for (int64_t i = 0; i < p.len; i++) {
                    const int64_t at = from + (rev ? p.len - 1 - i : i) * p.inner;
                    const int32_t next = combine_i(kind, acc, xi[at]);
                    cr_assert(yi[at] == (excl ? acc : next), "%s", op);
                    acc = next;
                }
            }
        }
    }
}

// Composition of x -> m x + c (modulo 2^32): associative, and its order matters.
#define COMPOSE                                                                                    \
    "(%m1: i32, %c1: i32, %m2: i32, %c2: i32) {\n%m3 = mul %m1, %m2 : i32\n"                       \
    "%t = mul %c1, %m2 : i32\n%c3 = add %t, %c2 : i32\nyield %m3, %c3\n}\n"

static uint32_t mul_of(int32_t x) { return (uint32_t)x | 1; }

static void compose(uint32_t *m, uint32_t *c, int32_t x, bool before) {
    const uint32_t xm = mul_of(x), xc = (uint32_t)x;
    const uint32_t c2 = before ? xc * *m + *c : *c * xm + xc;
    *m *= xm;
    *c = c2;
}

// The region also as one that does not run on lanes: it holds an `if`.
#define COMPOSE_SLOW                                                                               \
    "(%m1: i32, %c1: i32, %m2: i32, %c2: i32) {\n%yes = const true : bool\n"                       \
    "%m3, %c3 = if %yes : i32, i32 {\n%m4 = mul %m1, %m2 : i32\n%t = mul %c1, %m2 : i32\n"         \
    "%c4 = add %t, %c2 : i32\nyield %m4, %c4\n} else {\nyield %m1, %c1\n}\nyield %m3, %c3\n}\n"

#define OPERANDS "%%one = const 1 : i32[%s]\n%%m = or %%a, %%one : i32[%s]\n"

Test(exec_across, reduce_fn) {
    for (int k = 0; k < SHAPES * 2; k++) {
        const shape *s = &shapes[k / 2];
        fill(count(s), (uint32_t)k + 9);
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            char op[1024];
            char full[64];
            (void)snprintf(full, sizeof full, "%s", dims(s->rank, s->dim));
            (void)snprintf(op, sizeof op,
                           OPERANDS "%%rm, %%r = reduce_fn %%m, %%a axis=%u : "
                                    "i32[%s], i32[%s] %s",
                           full, full, axis, reduced(s, axis), reduced(s, axis),
                           k % 2 ? COMPOSE_SLOW : COMPOSE);
            apply(op, "i32", s, xi, "i32", p.outer * p.inner, yi);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const int32_t *x = xi + e / p.inner * p.len * p.inner + e % p.inner;
                uint32_t m = mul_of(x[0]), c = (uint32_t)x[0];
                for (int64_t i = 1; i < p.len; i++) {
                    compose(&m, &c, x[i * p.inner], false);
                }
                cr_assert((uint32_t)yi[e] == c, "[%s] axis %u element %lld", full, axis,
                          (long long)e);
            }
        }
        // all elements
        char op[1024];
        char full[64];
        (void)snprintf(full, sizeof full, "%s", dims(s->rank, s->dim));
        (void)snprintf(op, sizeof op,
                       OPERANDS "%%rm, %%rc = reduce_fn %%m, %%a : i32, i32 %s"
                                "%%r = broadcast %%rc : i32[1]",
                       full, full, k % 2 ? COMPOSE_SLOW : COMPOSE);
        apply(op, "i32", s, xi, "i32", 1, yi);
        uint32_t m = mul_of(xi[0]), c = (uint32_t)xi[0];
        for (int64_t i = 1; i < count(s); i++) {
            compose(&m, &c, xi[i], false);
        }
        cr_assert((uint32_t)yi[0] == c);
    }
}

Test(exec_across, scan_fn) {
    for (int k = 0; k < SHAPES * 8; k++) {
        const shape *s = &shapes[k / 8];
        const bool rev = k % 2 == 1, excl = k / 2 % 2 == 1, slow = k / 4 % 2 == 1;
        fill(count(s), (uint32_t)k + 11);
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            char op[1024];
            const char *full = dims(s->rank, s->dim);
            (void)snprintf(op, sizeof op,
                           OPERANDS
                           "%%im = const 3 : i32\n%%ic = const 5 : i32\n"
                           "%%rm, %%r = scan_fn %%m, %%a%s axis=%u%s%s : i32[%s], i32[%s] %s",
                           full, full, excl ? ", %im, %ic" : "", axis, rev ? " reverse" : "",
                           excl ? " exclusive" : "", full, full, slow ? COMPOSE_SLOW : COMPOSE);
            apply(op, "i32", s, xi, "i32", count(s), yi);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const int64_t from = e / p.inner * p.len * p.inner + e % p.inner;
                uint32_t m = excl ? 3 : 1, c = excl ? 5 : 0;
                for (int64_t i = 0; i < p.len; i++) {
                    const int64_t at = from + (rev ? p.len - 1 - i : i) * p.inner;
                    const uint32_t before = c;
                    compose(&m, &c, xi[at], rev);
                    cr_assert((uint32_t)yi[at] == (excl ? before : c), "%s [%lld]", op,
                              (long long)at);
                }
            }
        }
    }
}

// NaN greatest, the zeros equal, equals in order; along every axis, both ways.
static int compare(float a, float b) {
    return isnan(a) || isnan(b) ? !!isnan(a) - !!isnan(b) : (a > b) - (a < b);
}

Test(exec_across, sort_and_topk) {
    for (int k = 0; k < SHAPES * 2; k++) {
        const shape *s = &shapes[k / 2];
        const bool down = k % 2 == 1;
        fill(count(s), (uint32_t)k + 13);
        for (int64_t i = 0; i < count(s); i++) {
            xf[i] = i % 11 == 3 ? NAN : i % 7 == 2 ? -0.0F : i % 7 == 4 ? 0.0F : roundf(xf[i] * 9);
        }
        for (unsigned axis = 0; axis < s->rank; axis++) {
            const split p = split_at(s, axis);
            char op[512];
            (void)snprintf(op, sizeof op, "%%r = sort %%a axis=%u%s : f32[%s]", axis,
                           down ? " descending" : "", dims(s->rank, s->dim));
            apply(op, "f32", s, xf, "f32", count(s), yf);
            (void)snprintf(op, sizeof op, "%%v, %%r = topk %%a axis=%u : f32[%s], i32[%s]", axis,
                           dims(s->rank, s->dim), dims(s->rank, s->dim));
            apply(op, "f32", s, xf, "i32", count(s), yi);
            for (int64_t e = 0; e < p.outer * p.inner; e++) {
                const int64_t from = e / p.inner * p.len * p.inner + e % p.inner;
                for (int64_t i = 1; i < p.len; i++) {
                    const float a = yf[from + (i - 1) * p.inner], b = yf[from + i * p.inner];
                    cr_assert(down ? compare(a, b) >= 0 : compare(a, b) <= 0, "%s", op);
                    const int32_t ka = yi[from + (i - 1) * p.inner], kb = yi[from + i * p.inner];
                    const int c = compare(xf[from + ka * p.inner], xf[from + kb * p.inner]);
                    cr_assert(c > 0 || (c == 0 && ka < kb));
                }
                for (int64_t i = 0; i < p.len && down; i++) { // the same stable order
                    const float a = yf[from + i * p.inner];
                    const float b = xf[from + yi[from + i * p.inner] * p.inner];
                    cr_assert(memcmp(&a, &b, sizeof a) == 0);
                }
            }
        }
    }
}

Test(exec_across, sort_of_every_type) {
    const shape s = {1, {9}};
    for (int t = 1; t < TK_DTYPE_COUNT; t++) {
        static _Alignas(8) unsigned char in[72], out[72];
        const tk_dtype d = (tk_dtype)t;
        const size_t size = tk_dtype_size(d);
        const tk_const one = tk_const_i64(d, 1), two = tk_const_i64(d, 2);
        const tk_const v[9] = {two,
                               tk_const_greatest(d),
                               one,
                               tk_const_least(d),
                               two,
                               one,
                               tk_const_i64(d, 0),
                               tk_const_greatest(d),
                               tk_const_least(d)};
        for (size_t i = 0; i < 9; i++) {
            tk_const_store(v[i], in + i * size);
        }
        char op[64];
        (void)snprintf(op, sizeof op, "%%r = sort %%a axis=0 : %s[9]", tk_dtype_name(d));
        apply(op, tk_dtype_name(d), &s, in, tk_dtype_name(d), 9, out);
        for (size_t i = 1; i < 9; i++) {
            const tk_const a = tk_const_load(d, out + (i - 1) * size);
            const tk_const b = tk_const_load(d, out + i * size);
            cr_expect(tk_num_binary(TK_NUM_LE, d, a, b).bits == 1, "%s", tk_dtype_name(d));
        }
        cr_expect(tk_const_same(tk_const_load(d, out), tk_const_least(d)));
    }
}
