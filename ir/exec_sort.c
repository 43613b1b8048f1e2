// SPDX-License-Identifier: Apache-2.0
//
// sort, topk and histogram.
//
// Elements become keys: unsigned integers in the order of the values, equal for values that
// compare equal (the two zeros) and the greatest for every NaN. A descending order is that of the
// keys' complements. Lines are sorted as pairs of key and place by a merge sort, which is stable.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

#include <string.h>

typedef struct pair {
    uint64_t key;
    int64_t at;
} pair;

typedef struct sort_step {
    tk_step h;
    void (*keys)(int64_t n, int64_t pitch, const void *x, pair *out);
    tk_split3 shape;
    bool descending;
    int64_t keep; // elements of the result along the axis
    uint32_t size;
    size_t in, out, index;
    bool has_index;
    size_t pairs; // two lines of them
} sort_step;

#define TOP              ((uint64_t)1 << 63)
#define KEY_BOOL(ID, X)  ((uint64_t)(X))
#define KEY_UINT(ID, X)  ((uint64_t)(X))
#define KEY_SINT(ID, X)  ((uint64_t)(int64_t)(X) ^ TOP)
#define KEY_FLOAT(ID, X) float_key(TK_CAST(ID, F64)(X))

static inline uint64_t float_key(double x) {
    const uint64_t u = tk_f64_bits(x == 0 ? 0.0 : x);
    return x != x ? UINT64_MAX : (u & TOP) != 0 ? ~u : u | TOP;
}

#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    static void keys_##ID(int64_t n, int64_t pitch, const void *in, pair *out) {                   \
        const CTYPE *x = in;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            out[i].key = KEY_##CLASS(ID, x[i * pitch]);                                            \
            out[i].at = i;                                                                         \
        }                                                                                          \
    }
#include "lang/dtypes.def"

static void insertion_sort(pair *x, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const pair v = x[i];
        int64_t j = i;
        for (; j > 0 && x[j - 1].key > v.key; j--) {
            x[j] = x[j - 1];
        }
        x[j] = v;
    }
}

static void merge(const pair *a, int64_t na, const pair *b, int64_t nb, pair *out) {
    while (na > 0 && nb > 0) {
        const bool left = a->key <= b->key;
        *out++ = left ? *a : *b;
        na -= left;
        a += left;
        nb -= !left;
        b += !left;
    }
    memcpy(out, a, (size_t)na * sizeof *a);
    memcpy(out + na, b, (size_t)nb * sizeof *b);
}

// Sorts x, using as much memory at tmp; the result is in one of the two.
static pair *merge_sort(pair *x, pair *tmp, int64_t n) {
    enum { SHORT = 8 };
    for (int64_t i = 0; i < n; i += SHORT) {
        insertion_sort(x + i, n - i < SHORT ? n - i : SHORT);
    }
    for (int64_t run = SHORT; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t na = n - i < run ? n - i : run;
            const int64_t rest = n - i - na;
            merge(x + i, na, x + i + na, rest < run ? rest : run, tmp + i);
        }
        pair *t = x;
        x = tmp;
        tmp = t;
    }
    return x;
}

static void sort_line(const sort_step *s, tk_run *r, size_t in, size_t out, size_t index) {
    const int64_t n = s->shape.len, pitch = s->shape.inner;
    pair *x = (pair *)(void *)(r->base + s->pairs);
    s->keys(n, pitch, r->base + in, x);
    for (int64_t i = 0; i < n && s->descending; i++) {
        x[i].key = ~x[i].key;
    }
    x = merge_sort(x, x + n, n);
    for (int64_t i = 0; i < s->keep; i++) {
        const size_t to = (size_t)(i * pitch);
        memcpy(r->base + out + to * s->size, r->base + in + (size_t)(x[i].at * pitch) * s->size,
               s->size);
        if (s->has_index) {
            const int32_t at = (int32_t)x[i].at;
            memcpy(r->base + index + to * sizeof at, &at, sizeof at);
        }
    }
}

static tk_exec_code run_sort(const tk_step *h, tk_run *r) {
    const sort_step *s = (const sort_step *)h;
    for (int64_t o = 0; o < s->shape.outer; o++) {
        for (int64_t j = 0; j < s->shape.inner; j++) {
            const size_t from = (size_t)(o * s->shape.len * s->shape.inner + j);
            const size_t to = (size_t)(o * s->keep * s->shape.inner + j);
            sort_line(s, r, s->in + from * s->size, s->out + to * s->size,
                      s->index + to * sizeof(int32_t));
        }
    }
    return TK_EXEC_OK;
}

static sort_step *emit(tk_planner *p) {
    static void (*const keys[])(int64_t, int64_t, const void *, pair *) = {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) keys_##ID,
#include "lang/dtypes.def"
    };
    const tk_op *op = p->op;
    const tk_place x = tk_plan_dense(p, tk_plan_place(p, op->opnd[0]));
    const tk_place out = tk_plan_place(p, op->res[0]);
    const size_t pairs = tk_plan_temp(p, 2 * (size_t)x.dim[op->at.axis] * sizeof(pair));
    sort_step *s = tk_plan_step(p, sizeof *s, run_sort);
    s->keys = keys[x.dtype];
    s->shape = tk_place_split(&x, op->at.axis);
    s->keep = out.dim[op->at.axis];
    s->size = x.size;
    s->in = x.off;
    s->out = out.off;
    s->pairs = pairs;
    return s;
}

void tk_exec_emit_sort(tk_planner *p) { emit(p)->descending = p->op->at.descending; }

void tk_exec_emit_topk(tk_planner *p) {
    sort_step *s = emit(p);
    s->descending = true;
    s->has_index = true;
    s->index = tk_plan_place(p, p->op->res[1]).off;
}

// ---- histogram ----------------------------------------------------------------------------------

typedef struct histogram_step {
    tk_step h;
    int64_t n, bins;
    tk_stream in;
    tk_kernel widen;
    size_t out;
} histogram_step;

// A u64 above 2^63 comes out of the cast negative: outside, as it should be.
static tk_exec_code run_histogram(const tk_step *h, tk_run *r) {
    const histogram_step *s = (const histogram_step *)h;
    _Alignas(64) unsigned char tmp[TK_BLOCK * sizeof(uint64_t)];
    int64_t x[TK_BLOCK];
    int32_t *count = (int32_t *)(void *)(r->base + s->out);
    memset(count, 0, (size_t)s->bins * sizeof *count);
    for (int64_t start = 0; start < s->n; start += TK_BLOCK) {
        const size_t m = s->n - start < TK_BLOCK ? (size_t)(s->n - start) : TK_BLOCK;
        s->widen(m, x, tk_stream_read(&s->in, r->base, start, m, tmp), NULL, NULL);
        for (size_t i = 0; i < m; i++) {
            if (x[i] >= 0 && x[i] < s->bins) {
                count[x[i]]++;
            }
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_histogram(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place x = tk_plan_place(p, op->opnd[0]);
    histogram_step *s = tk_plan_step(p, sizeof *s, run_histogram);
    s->n = tk_place_elems(&x);
    s->in = tk_stream_of(x);
    s->widen = tk_cast_kernel(x.dtype, TK_I64);
    s->bins = tk_plan_type(p, op->res[0])->dim[0];
    s->out = tk_plan_place(p, op->res[0]).off;
}
