// SPDX-License-Identifier: Apache-2.0
//
// dot and dot_scaled.
//
// Every element of the result starts from acc (or 0) and has its products added in the order of K,
// each multiplication and addition rounded separately in the accumulator's type: f32 for floats of
// up to 32 bits, f64 for f64, i32 (modulo 2^32) for i8 and u8. Operands are converted as they are
// packed into panels: of a, panels of MR rows with the rows' elements side by side for each k; of
// b, panels of two vectors. The inner kernel keeps MR x 2 vectors of the result in registers.
//
// precision = tf32 rounds f32 operands to 10 bits of fraction (to nearest, ties to even;
// infinities and NaNs stay) before they are multiplied. tf32x3 asks for nearly f32 accuracy and is
// computed as ieee.
//
// dot_scaled multiplies each operand by its scale, 2^(s - 127) or NaN for s = 255, and computes in
// f64, rounded to f32 once at the end.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

#include <string.h>

enum { MR = 4 };

typedef float vec_f32 __attribute__((vector_size(16)));
typedef uint32_t vec_i32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));

// c[MR][ld] += a[k][MR] * b[k][2 vectors]
#define DOT_KERNEL(NAME, T, V)                                                                     \
    enum { LANES_##NAME = (int)(sizeof(V) / sizeof(T)) };                                          \
    static void tile_##NAME(int64_t k, const T *a, const T *b, T *c, int64_t ld) {                 \
        V acc[MR][2];                                                                              \
        for (int i = 0; i < MR; i++) {                                                             \
            memcpy(&acc[i][0], c + i * ld, sizeof(V));                                             \
            memcpy(&acc[i][1], c + i * ld + LANES_##NAME, sizeof(V));                              \
        }                                                                                          \
        for (int64_t l = 0; l < k; l++) {                                                          \
            V b0, b1;                                                                              \
            memcpy(&b0, b, sizeof b0);                                                             \
            memcpy(&b1, b + LANES_##NAME, sizeof b1);                                              \
            for (int i = 0; i < MR; i++) {                                                         \
                acc[i][0] += a[i] * b0;                                                            \
                acc[i][1] += a[i] * b1;                                                            \
            }                                                                                      \
            a += MR;                                                                               \
            b += 2 * LANES_##NAME;                                                                 \
        }                                                                                          \
        for (int i = 0; i < MR; i++) {                                                             \
            memcpy(c + i * ld, &acc[i][0], sizeof(V));                                             \
            memcpy(c + i * ld + LANES_##NAME, &acc[i][1], sizeof(V));                              \
        }                                                                                          \
    }                                                                                              \
    /* The tile at c, of which rows x cols are wanted. */                                          \
    static void edge_##NAME(int64_t k, const T *a, const T *b, T *c, int64_t ld, int64_t rows,     \
                            int64_t cols) {                                                        \
        T part[MR][2 * LANES_##NAME] = {{0}};                                                      \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            memcpy(part[i], c + i * ld, (size_t)cols * sizeof(T));                                 \
        }                                                                                          \
        tile_##NAME(k, a, b, part[0], 2 * LANES_##NAME);                                           \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            memcpy(c + i * ld, part[i], (size_t)cols * sizeof(T));                                 \
        }                                                                                          \
    }                                                                                              \
    static void product_##NAME(int64_t m, int64_t n, int64_t k, const void *pa, const void *pb,    \
                               void *pc) {                                                         \
        const int64_t nr = 2 * LANES_##NAME;                                                       \
        for (int64_t j = 0; j < n; j += nr) {                                                      \
            const T *b = (const T *)pb + j * k;                                                    \
            for (int64_t i = 0; i < m; i += MR) {                                                  \
                const T *a = (const T *)pa + i * k;                                                \
                T *c = (T *)pc + i * n + j;                                                        \
                if (m - i >= MR && n - j >= nr) {                                                  \
                    tile_##NAME(k, a, b, c, n);                                                    \
                } else {                                                                           \
                    edge_##NAME(k, a, b, c, n, m - i < MR ? m - i : MR, n - j < nr ? n - j : nr);  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DOT_KERNEL(f32, float, vec_f32)
DOT_KERNEL(i32, uint32_t, vec_i32)
DOT_KERNEL(f64, double, vec_f64)

// One operand: how it is read and packed. `rows` are those of a, or the columns of b; element
// (row, k) of batch z is at off + z * batch + row * across + k * along.
typedef struct operand {
    tk_place at;
    int64_t rows, batch, across, along;
    int64_t panel; // rows of a panel
    tk_kernel convert;
    size_t packed;
    tk_place scale; // dot_scaled
    int64_t scale_across, scale_along;
} operand;

typedef struct dot_step {
    tk_step h;
    void (*product)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c);
    int64_t batches, m, n, k;
    uint32_t size; // of an element of the accumulator
    bool zero, tf32, scaled;
    operand a, b;
    size_t out;  // the accumulator's elements: the result, or for dot_scaled a temporary
    size_t last; // dot_scaled: the result, f32
} dot_step;

static void round_tf32(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = tk_f32_bits(x[i]);
        const bool finite = (u & 0x7f800000U) != 0x7f800000U;
        const uint32_t even = u + 0xfffU + (u >> 13 & 1U);
        x[i] = tk_f32_of_bits(finite ? even & ~0x1fffU : u);
    }
}

static void apply_scales(const operand *x, const unsigned char *base, double *v, size_t n,
                         int64_t row, int64_t k) {
    enum { GROUP = 32 };
    for (size_t i = 0; i < n; i++) {
        const int64_t group = (k + (int64_t)i) / GROUP;
        const unsigned s =
            base[(int64_t)x->scale.off + row * x->scale_across + group * x->scale_along];
        const uint64_t bits = s == 0xff ? 0x7ff8000000000000U : (uint64_t)(s + (1023 - 127)) << 52;
        v[i] *= tk_f64_of_bits(bits);
    }
}

// n elements along K of one row, converted, to every panel-th place of the panel.
static void pack_run(const dot_step *s, const operand *x, unsigned char *base, int64_t z,
                     int64_t row, int64_t k, size_t n, unsigned char *to) {
    _Alignas(64) unsigned char raw[TK_BLOCK * sizeof(uint64_t)];
    _Alignas(64) unsigned char wide[TK_BLOCK * sizeof(uint64_t)];
    const unsigned char *from =
        base + (int64_t)x->at.off + z * x->batch + row * x->across + k * x->along;
    tk_copy_run(raw, x->at.size, from, x->along, n, x->at.size);
    x->convert(n, wide, raw, NULL, NULL);
    if (s->tf32) {
        round_tf32((float *)(void *)wide, n);
    }
    if (s->scaled) {
        apply_scales(x, base, (double *)(void *)wide, n, row, k);
    }
    tk_copy_run(to, x->panel * s->size, wide, s->size, n, s->size);
}

// Rows beyond the last are 0.
static void pack(const dot_step *s, const operand *x, unsigned char *base, int64_t z) {
    unsigned char *packed = base + x->packed;
    const int64_t rows = (x->rows + x->panel - 1) / x->panel * x->panel;
    const unsigned char zero[sizeof(uint64_t)] = {0};
    for (int64_t row = 0; row < rows; row++) {
        unsigned char *to =
            packed + (row / x->panel * x->panel * s->k + row % x->panel) * (int64_t)s->size;
        if (row >= x->rows) {
            tk_copy_run(to, x->panel * s->size, zero, 0, (size_t)s->k, s->size);
            continue;
        }
        for (int64_t k = 0; k < s->k; k += TK_BLOCK) {
            const int64_t n = s->k - k < TK_BLOCK ? s->k - k : TK_BLOCK;
            pack_run(s, x, base, z, row, k, (size_t)n, to + k * x->panel * s->size);
        }
    }
}

static tk_exec_code run_dot(const tk_step *h, tk_run *r) {
    const dot_step *s = (const dot_step *)h;
    const size_t one = (size_t)(s->m * s->n) * s->size;
    if (s->zero) {
        memset(r->base + s->out, 0, (size_t)s->batches * one);
    }
    for (int64_t z = 0; z < s->batches; z++) {
        pack(s, &s->a, r->base, z);
        pack(s, &s->b, r->base, z);
        s->product(s->m, s->n, s->k, r->base + s->a.packed, r->base + s->b.packed,
                   r->base + s->out + (size_t)z * one);
    }
    if (s->scaled) {
        tk_cast_kernel(TK_F64, TK_F32)((size_t)(s->m * s->n), r->base + s->last, r->base + s->out,
                                       NULL, NULL);
    }
    return TK_EXEC_OK;
}

// ---- Planning -----------------------------------------------------------------------------------

// k_axis: which of the last two axes is K (0 or 1).
static operand plan_operand(tk_planner *p, tk_vid v, uint32_t k_axis, int64_t panel, tk_dtype acc) {
    operand x = {.at = tk_plan_place(p, v), .panel = panel};
    const uint32_t first = x.at.rank - 2;
    x.rows = x.at.dim[first + 1 - k_axis];
    x.across = x.at.stride[first + 1 - k_axis];
    x.along = x.at.stride[first + k_axis];
    x.batch = first > 0 ? x.at.stride[0] : 0;
    x.convert = tk_cast_kernel(x.at.dtype, acc);
    const int64_t rows = (x.rows + panel - 1) / panel * panel;
    x.packed = tk_plan_temp(p, (size_t)(rows * x.at.dim[first + k_axis]) * tk_dtype_size(acc));
    return x;
}

static dot_step plan_dot(tk_planner *p, tk_vid a, tk_vid b, tk_dtype acc) {
    const tk_type *t = tk_plan_type(p, a);
    const int64_t size = (int64_t)tk_dtype_size(acc);
    dot_step s = {.size = (uint32_t)size};
    s.a = plan_operand(p, a, 1, MR, acc);
    s.b = plan_operand(p, b, 0, 2 * (int64_t)sizeof(vec_f32) / size, acc);
    s.batches = t->rank > 2 ? t->dim[0] : 1;
    s.m = s.a.rows;
    s.n = s.b.rows;
    s.k = t->dim[t->rank - 1];
    s.product = acc == TK_F32 ? product_f32 : acc == TK_F64 ? product_f64 : product_i32;
    return s;
}

static void add_step(tk_planner *p, const dot_step *plan) {
    dot_step *s = tk_plan_step(p, sizeof *s, run_dot);
    const tk_step h = s->h;
    *s = *plan;
    s->h = h;
}

void tk_exec_emit_dot(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place out = tk_plan_place(p, op->res[0]);
    dot_step s = plan_dot(p, op->opnd[0], op->opnd[1], out.dtype);
    s.out = out.off;
    s.tf32 = op->at.precision == TK_PREC_TF32;
    s.zero = op->nopnd == 2;
    if (op->nopnd == 3) {
        const tk_place acc = tk_plan_place(p, op->opnd[2]);
        if (acc.off != out.off || !tk_place_is_dense(&acc)) {
            tk_plan_copy(p, out, acc);
        }
    }
    add_step(p, &s);
}

void tk_exec_emit_dot_scaled(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place out = tk_plan_place(p, op->res[0]);
    dot_step s = plan_dot(p, op->opnd[0], op->opnd[2], TK_F64);
    s.scaled = true;
    s.zero = op->nopnd == 4;
    s.a.scale = tk_plan_place(p, op->opnd[1]);
    s.a.scale_across = s.a.scale.stride[0];
    s.a.scale_along = s.a.scale.stride[1];
    s.b.scale = tk_plan_place(p, op->opnd[3]);
    s.b.scale_across = s.b.scale.stride[1];
    s.b.scale_along = s.b.scale.stride[0];
    s.last = out.off;
    s.out = tk_plan_temp(p, (size_t)(s.m * s.n) * sizeof(double));
    if (op->nopnd == 5) {
        const tk_place acc = tk_plan_place(p, op->opnd[4]);
        tk_place wide = tk_place_of(TK_F64, out.rank, out.dim);
        wide.off = s.out;
        tk_exec_emit_kernel(p, tk_cast_kernel(TK_F32, TK_F64), wide, 1, &acc, NULL);
    }
    add_step(p, &s);
}
