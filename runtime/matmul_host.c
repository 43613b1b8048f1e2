// SPDX-License-Identifier: Apache-2.0
// A matrix product computed here, for the devices whose memory is the host's.
//
// Each element of d is summed over k = 0, 1, ..., each product and sum rounded separately (or
// wrapped) in the type of the sum, from 0 on; then, in that type, alpha x sum + beta x c + bias,
// the activation, the scale of d, and one rounding to d's type. scale_a and scale_b go with alpha.
// Blocks of d are spread over threads, which does not show in the result.
#include "runtime/matmul.h"

#include "lang/num.h"
#include "lang/num_inline.h"

#include <math.h>
#include <string.h>

enum { ROWS = 32, COLUMNS = 128, DEPTH = 128 };

// One of these for each thread: a block of b and the sums of a block of d.
typedef struct host_worker {
    struct host_run *run;
    union {
        float f32[DEPTH][COLUMNS];
        double f64[DEPTH][COLUMNS];
        uint32_t i32[DEPTH][COLUMNS];
    } b;
    union {
        float f32[ROWS][COLUMNS];
        double f64[ROWS][COLUMNS];
        uint32_t i32[ROWS][COLUMNS];
    } sum;
} host_worker;

typedef struct host_run {
    const matmul *m;
    tk_dtype type; // of sums
    double alpha;  // with the scales of a and b
    double scale_d;
    int64_t row_blocks, column_blocks, blocks;
    atomic_int_least64_t next;
} host_run;

// A block of d.
typedef struct host_block {
    int64_t batch, row, column;
    int64_t rows, columns;
} host_block;

static const char *element(const matmul_matrix *x, int64_t batch, int64_t row, int64_t column) {
    int64_t at = batch * x->batch + row * x->row + column * x->column;
    return x->data + at * (int64_t)tk_dtype_size(x->dtype);
}

static double read_f64(tk_dtype t, const void *p) { return tk_const_as_f64(tk_const_load(t, p)); }

static float read_f32(tk_dtype t, const void *p) {
    float x;
    uint16_t half;
    uint8_t byte;
    switch (t) {
    case TK_F32:
        memcpy(&x, p, sizeof x);
        return x;
    case TK_F16:
        memcpy(&half, p, sizeof half);
        return tk_f16_to_f32(half);
    case TK_BF16:
        memcpy(&half, p, sizeof half);
        return tk_bf16_to_f32(half);
    case TK_F8E4M3:
        memcpy(&byte, p, sizeof byte);
        return tk_f8e4m3_to_f32(byte);
    case TK_F8E5M2:
        memcpy(&byte, p, sizeof byte);
        return tk_f8e5m2_to_f32(byte);
    case TK_BOOL:
    case TK_I8:
    case TK_I16:
    case TK_I32:
    case TK_I64:
    case TK_U8:
    case TK_U16:
    case TK_U32:
    case TK_U64:
    case TK_F64:
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return (float)read_f64(t, p);
}

static uint32_t read_i32(tk_dtype t, const void *p) {
    (void)t; // i8
    int8_t x;
    memcpy(&x, p, sizeof x);
    return (uint32_t)(int32_t)x;
}

// sum_TYPE: the sums of a block, over all of k. Unsigned arithmetic wraps as signed does.
#define SUM(NAME, C)                                                                               \
    static void load_##NAME(host_worker *w, const host_block *o, int64_t k, int64_t depth) {       \
        const matmul_matrix *b = &w->run->m->b;                                                    \
        for (int64_t i = 0; i < depth; i++) {                                                      \
            for (int64_t j = 0; j < o->columns; j++) {                                             \
                w->b.NAME[i][j] =                                                                  \
                    read_##NAME(b->dtype, element(b, o->batch, k + i, o->column + j));             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void sum_##NAME(host_worker *w, const host_block *o) {                                  \
        const matmul *m = w->run->m;                                                               \
        memset(w->sum.NAME, 0, sizeof w->sum.NAME);                                                \
        for (int64_t k = 0; k < m->k; k += DEPTH) {                                                \
            int64_t depth = m->k - k < DEPTH ? m->k - k : DEPTH;                                   \
            load_##NAME(w, o, k, depth);                                                           \
            for (int64_t r = 0; r < o->rows; r++) {                                                \
                C *sum = w->sum.NAME[r];                                                           \
                for (int64_t i = 0; i < depth; i++) {                                              \
                    const C *b = w->b.NAME[i];                                                     \
                    C x = read_##NAME(m->a.dtype, element(&m->a, o->batch, o->row + r, k + i));    \
                    for (int64_t j = 0; j < o->columns; j++) {                                     \
                        sum[j] += x * b[j];                                                        \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
SUM(f32, float)
SUM(f64, double)
SUM(i32, uint32_t)
#undef SUM

// ---- What follows the sum

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double activate(tkc_activation f, double x) {
    switch (f) {
    case TKC_ACTIVATION_NONE:
        return x;
    case TKC_ACTIVATION_RELU:
        return x < 0 ? 0 : x; // a NaN stays
    case TKC_ACTIVATION_GELU:
        return gelu(x);
    }
    return x;
}

static void finish_f64(const host_run *r, const host_block *o, int64_t row, int64_t column,
                       double sum) {
    const matmul *m = r->m;
    double x = r->alpha * sum;
    if (m->beta != 0) {
        x += m->beta * read_f64(m->c.dtype, element(&m->c, o->batch, row, column));
    }
    if (m->bias.data) {
        x += read_f64(m->bias.dtype, element(&m->bias, o->batch, 0, column));
    }
    x = activate(m->activation, x);
    memcpy((char *)(uintptr_t)element(&m->d, o->batch, row, column), &x, sizeof x);
}

static void finish_f32(const host_run *r, const host_block *o, int64_t row, int64_t column,
                       float sum) {
    const matmul *m = r->m;
    float x = (float)r->alpha * sum;
    if (m->beta != 0) {
        x += (float)m->beta * read_f32(m->c.dtype, element(&m->c, o->batch, row, column));
    }
    if (m->bias.data) {
        x += read_f32(m->bias.dtype, element(&m->bias, o->batch, 0, column));
    }
    x = (float)activate(m->activation, x) * (float)r->scale_d;
    tk_const_store(tk_cast(tk_const_f64(TK_F32, x), m->d.dtype),
                   (char *)(uintptr_t)element(&m->d, o->batch, row, column));
}

static void finish_i32(const host_run *r, const host_block *o, int64_t row, int64_t column,
                       uint32_t sum) {
    const matmul *m = r->m;
    uint32_t x = (uint32_t)(int32_t)m->alpha * sum, c;
    if (m->beta != 0) {
        memcpy(&c, element(&m->c, o->batch, row, column), sizeof c);
        x += (uint32_t)(int32_t)m->beta * c;
    }
    memcpy((char *)(uintptr_t)element(&m->d, o->batch, row, column), &x, sizeof x);
}

static void finish(const host_worker *w, const host_block *o) {
    const host_run *r = w->run;
    for (int64_t i = 0; i < o->rows; i++) {
        for (int64_t j = 0; j < o->columns; j++) {
            if (r->type == TK_F32) {
                finish_f32(r, o, o->row + i, o->column + j, w->sum.f32[i][j]);
            } else if (r->type == TK_F64) {
                finish_f64(r, o, o->row + i, o->column + j, w->sum.f64[i][j]);
            } else {
                finish_i32(r, o, o->row + i, o->column + j, w->sum.i32[i][j]);
            }
        }
    }
}

// ---- Threads

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void *worker_main(void *arg) {
    host_worker *w = arg;
    host_run *r = w->run;
    for (;;) {
        int64_t n = atomic_fetch_add(&r->next, 1);
        if (n >= r->blocks) {
            return NULL;
        }
        host_block o = {.column = n % r->column_blocks * COLUMNS,
                        .row = n / r->column_blocks % r->row_blocks * ROWS,
                        .batch = n / r->column_blocks / r->row_blocks};
        o.rows = least(ROWS, r->m->m - o.row);
        o.columns = least(COLUMNS, r->m->n - o.column);
        if (r->type == TK_F32) {
            sum_f32(w, &o);
        } else if (r->type == TK_F64) {
            sum_f64(w, &o);
        } else {
            sum_i32(w, &o);
        }
        finish(w, &o);
    }
}

static float scale_of(const float *s) { return s ? *s : 1.0F; }

void matmul_host(tk_work *w, tkc_device *device, const matmul *m) {
    host_run *r = TK_NEW(&w->arena, host_run);
    r->m = m;
    r->type = matmul_sum_type(m);
    float scales = scale_of(m->scale_a) * scale_of(m->scale_b);
    r->alpha = r->type == TK_F32 ? (double)((float)m->alpha * scales) : m->alpha;
    r->scale_d = (double)scale_of(m->scale_d);
    r->row_blocks = (m->m + ROWS - 1) / ROWS;
    r->column_blocks = (m->n + COLUMNS - 1) / COLUMNS;
    r->blocks = r->row_blocks * r->column_blocks * m->batch;
    unsigned n = cpu_threads(&device->context->config, r->blocks);
    void **worker = TK_NEW_ARRAY(&w->arena, void *, n);
    for (unsigned i = 0; i < n; i++) {
        host_worker *one = TK_NEW(&w->arena, host_worker);
        one->run = r;
        worker[i] = one;
    }
    cpu_spread(w, n, worker_main, worker);
}
