// SPDX-License-Identifier: Apache-2.0
//
// Places: where a value's elements are, and the copies between places.
#include "ir/exec_internal.h"

#include <string.h>

// Elements are moved as integers of their width, whatever their type.
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

int64_t tk_place_elems(const tk_place *x) {
    int64_t n = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        n *= x->dim[i];
    }
    return n;
}

bool tk_place_is_dense(const tk_place *x) {
    int64_t expect = x->size;
    for (uint32_t i = x->rank; i-- > 0;) {
        if (x->dim[i] != 1 && x->stride[i] != expect) {
            return false;
        }
        expect *= x->dim[i];
    }
    return true;
}

void tk_place_make_dense(tk_place *x) {
    int64_t stride = x->size;
    for (uint32_t i = x->rank; i-- > 0;) {
        x->stride[i] = stride;
        stride *= x->dim[i];
    }
}

tk_place tk_place_of(tk_dtype t, uint32_t rank, const int64_t *dim) {
    tk_place x = {.dtype = t, .size = (uint32_t)tk_dtype_size(t), .rank = rank};
    if (rank > 0) {
        memcpy(x.dim, dim, rank * sizeof *dim);
    }
    tk_place_make_dense(&x);
    return x;
}

tk_place tk_place_stretch(tk_place x, uint32_t rank, const int64_t *dim) {
    tk_place r = x;
    r.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        const bool new_axis = i + x.rank < rank;
        const uint32_t from = i + x.rank - rank;
        r.dim[i] = dim[i];
        r.stride[i] = new_axis || x.dim[from] == 1 ? 0 : x.stride[from];
    }
    return r;
}

static bool is_uniform(const tk_place *x) {
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[i] != 1 && x->stride[i] != 0) {
            return false;
        }
    }
    return true;
}

// Whether the shapes differ only by axes of extent 1; strides then move along.
static bool reshape_by_ones(tk_place *x, uint32_t rank, const int64_t *dim) {
    tk_place r = *x;
    uint32_t from = 0;
    r.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        r.dim[i] = dim[i];
        r.stride[i] = 0;
        if (dim[i] == 1) {
            continue;
        }
        while (from < x->rank && x->dim[from] == 1) {
            from++;
        }
        if (from == x->rank || x->dim[from] != dim[i]) {
            return false;
        }
        r.stride[i] = x->stride[from++];
    }
    *x = r;
    return true;
}

bool tk_place_reshape(tk_place *x, uint32_t rank, const int64_t *dim) {
    const bool dense = tk_place_is_dense(x);
    if (!dense && !is_uniform(x)) {
        return reshape_by_ones(x, rank, dim);
    }
    tk_place r = *x;
    r.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        r.dim[i] = dim[i];
        r.stride[i] = 0;
    }
    if (dense) {
        tk_place_make_dense(&r);
    }
    *x = r;
    return true;
}

// Whether axis i goes on where axis i + 1 ends, in all places.
static bool merges(tk_place *const *x, uint32_t n, uint32_t i) {
    for (uint32_t k = 0; k < n; k++) {
        if (x[k]->stride[i] != x[k]->stride[i + 1] * x[k]->dim[i + 1]) {
            return false;
        }
    }
    return true;
}

static void drop_axis(tk_place *x, uint32_t i) {
    for (uint32_t j = i; j + 1 < x->rank; j++) {
        x->dim[j] = x->dim[j + 1];
        x->stride[j] = x->stride[j + 1];
    }
    x->rank--;
}

void tk_place_collapse(tk_place *const *x, uint32_t n) {
    for (uint32_t i = x[0]->rank; i-- > 0;) {
        if (x[0]->dim[i] == 1) {
            for (uint32_t k = 0; k < n; k++) {
                drop_axis(x[k], i);
            }
        }
    }
    for (uint32_t i = x[0]->rank; i-- > 1;) {
        if (merges(x, n, i - 1)) {
            for (uint32_t k = 0; k < n; k++) {
                x[k]->dim[i] *= x[k]->dim[i - 1];
                drop_axis(x[k], i - 1);
            }
        }
    }
    if (x[0]->rank == 0) {
        for (uint32_t k = 0; k < n; k++) {
            x[k]->rank = 1;
            x[k]->dim[0] = 1;
            x[k]->stride[0] = x[k]->size;
        }
    }
}

tk_split3 tk_place_split(const tk_place *x, int axis) {
    tk_split3 s = {1, 1, 1};
    if (axis < 0) {
        s.len = tk_place_elems(x);
        return s;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i < (uint32_t)axis) {
            s.outer *= x->dim[i];
        } else if (i > (uint32_t)axis) {
            s.inner *= x->dim[i];
        }
    }
    s.len = x->dim[axis];
    return s;
}

// ---- Runs of elements ---------------------------------------------------------------------------

#define COPY_RUN(WORD)                                                                             \
    for (size_t i = 0; i < n; i++) {                                                               \
        *(WORD *)(void *)(dst + (int64_t)i * ds) =                                                 \
            *(const WORD *)(const void *)(src + (int64_t)i * ss);                                  \
    }

void tk_copy_run(unsigned char *dst, int64_t ds, const unsigned char *src, int64_t ss, size_t n,
                 uint32_t size) {
    if (ds == size && ss == size) {
        memcpy(dst, src, n * size);
    } else if (ds == size && ss == 0) {
        tk_splat(dst, src, n, size);
    } else if (size == 1) {
        COPY_RUN(unsigned char)
    } else if (size == 2) {
        COPY_RUN(word2)
    } else if (size == 4) {
        COPY_RUN(word4)
    } else {
        COPY_RUN(word8)
    }
}

#define SPLAT(WORD)                                                                                \
    {                                                                                              \
        WORD *d = dst;                                                                             \
        const WORD v = *(const WORD *)value;                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            d[i] = v;                                                                              \
        }                                                                                          \
    }

void tk_splat(void *dst, const void *value, size_t n, uint32_t size) {
    if (size == 1) {
        memset(dst, *(const unsigned char *)value, n);
    } else if (size == 2) {
        SPLAT(word2)
    } else if (size == 4) {
        SPLAT(word4)
    } else {
        SPLAT(word8)
    }
}

// ---- Streams ------------------------------------------------------------------------------------

tk_stream tk_stream_of(tk_place x) {
    tk_stream s = {.at = x};
    tk_place *const one[1] = {&s.at};
    tk_place_collapse(one, 1);
    const int64_t stride = s.at.stride[0];
    s.kind = s.at.rank > 1         ? TK_STREAM_STRIDED
             : stride == s.at.size ? TK_STREAM_LINEAR
             : stride == 0         ? TK_STREAM_UNIFORM
                                   : TK_STREAM_STRIDED;
    return s;
}

// The coordinates of element `start` and its address.
static const unsigned char *seek(const tk_place *x, const unsigned char *base, int64_t start,
                                 int64_t *at) {
    const unsigned char *q = base + x->off;
    for (uint32_t i = x->rank; i-- > 0;) {
        at[i] = start % x->dim[i];
        start /= x->dim[i];
        q += at[i] * x->stride[i];
    }
    return q;
}

// On to the beginning of the next run of the last axis.
static const unsigned char *next_run(const tk_place *x, const unsigned char *q, int64_t *at) {
    for (uint32_t i = x->rank - 1; i-- > 0;) {
        q += x->stride[i];
        if (++at[i] < x->dim[i]) {
            break;
        }
        q -= x->stride[i] * x->dim[i];
        at[i] = 0;
    }
    return q;
}

void tk_stream_fill(const tk_stream *s, const unsigned char *base, int64_t start, size_t n,
                    void *dst) {
    const tk_place *x = &s->at;
    const uint32_t last = x->rank - 1;
    int64_t at[TK_MAX_RANK] = {0};
    unsigned char *d = dst;
    const unsigned char *q = seek(x, base, start, at);
    while (n > 0) {
        const size_t left = (size_t)(x->dim[last] - at[last]);
        const size_t run = n < left ? n : left;
        tk_copy_run(d, x->size, q, x->stride[last], run, x->size);
        d += run * x->size;
        n -= run;
        q = next_run(x, q - at[last] * x->stride[last], at);
        at[last] = 0;
    }
}

const void *tk_stream_read(const tk_stream *s, const unsigned char *base, int64_t start, size_t n,
                           void *tmp) {
    const tk_place *x = &s->at;
    if (s->kind == TK_STREAM_LINEAR) {
        return base + x->off + start * x->size;
    }
    if (x->stride[x->rank - 1] == x->size) {
        int64_t at[TK_MAX_RANK];
        const unsigned char *q = seek(x, base, start, at);
        if ((int64_t)n <= x->dim[x->rank - 1] - at[x->rank - 1]) {
            return q;
        }
    }
    tk_stream_fill(s, base, start, n, tmp);
    return tmp;
}

// ---- The copy step ------------------------------------------------------------------------------

typedef struct copy_step {
    tk_step h;
    tk_place dst, src; // collapsed together
} copy_step;

static tk_exec_code run_copy(const tk_step *h, tk_run *r) {
    const copy_step *s = (const copy_step *)h;
    const uint32_t last = s->dst.rank - 1;
    const size_t n = (size_t)s->dst.dim[last];
    int64_t runs = 1;
    for (uint32_t i = 0; i < last; i++) {
        runs *= s->dst.dim[i];
    }
    int64_t at_d[TK_MAX_RANK] = {0}, at_s[TK_MAX_RANK] = {0};
    unsigned char *d = r->base + s->dst.off;
    const unsigned char *q = r->base + s->src.off;
    for (int64_t i = 0; i < runs; i++) {
        tk_copy_run(d, s->dst.stride[last], q, s->src.stride[last], n, s->dst.size);
        d = r->base + (next_run(&s->dst, d, at_d) - r->base);
        q = next_run(&s->src, q, at_s);
    }
    return TK_EXEC_OK;
}

void tk_plan_copy(tk_planner *p, tk_place dst, tk_place src) {
    tk_place *const both[2] = {&dst, &src};
    tk_place_collapse(both, 2);
    copy_step *s = tk_plan_step(p, sizeof *s, run_copy);
    s->dst = dst;
    s->src = src;
}
