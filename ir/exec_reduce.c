// SPDX-License-Identifier: Apache-2.0
//
// reduce and arg_reduce.
//
// The order of a float sum or product is fixed by the shape. Along a line of contiguous elements:
// blocks of LINE elements; in a block, partial sum j takes elements j, j + PARTS, j + 2 PARTS ..
// in order, and the partial sums are added in halves (j and j + PARTS/2, then j and j + PARTS/4
// ..); a block shorter than PARTS is added from the left. Across lines: blocks of ROWS lines, added
// in order, element by element. Blocks are combined in pairs, pairs of pairs and so on, the earlier
// on the left. So the error grows with the logarithm of the length, and both forms vectorise.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

enum { PARTS = 16, LINE = 512, ROWS = 16, WIDTH = 64, DEEP = 40 };

typedef struct reducer {
    void (*line)(int64_t n, const void *x, void *out);
    // width <= WIDTH lanes of n rows that are `pitch` elements apart
    void (*rows)(int64_t n, int64_t width, int64_t pitch, const void *x, void *out);
} reducer;

#define REDUCER(KIND, ID, T, OP)                                                                   \
    static T block_##KIND##_##ID(int64_t n, const T *x) {                                          \
        T acc[PARTS];                                                                              \
        if (n < PARTS) {                                                                           \
            T r = x[0];                                                                            \
            for (int64_t i = 1; i < n; i++) {                                                      \
                r = OP(r, x[i]);                                                                   \
            }                                                                                      \
            return r;                                                                              \
        }                                                                                          \
        for (int j = 0; j < PARTS; j++) {                                                          \
            acc[j] = x[j];                                                                         \
        }                                                                                          \
        int64_t i = PARTS;                                                                         \
        for (; i + PARTS <= n; i += PARTS) {                                                       \
            for (int j = 0; j < PARTS; j++) {                                                      \
                acc[j] = OP(acc[j], x[i + j]);                                                     \
            }                                                                                      \
        }                                                                                          \
        for (int j = 0; i + j < n; j++) {                                                          \
            acc[j] = OP(acc[j], x[i + j]);                                                         \
        }                                                                                          \
        for (int w = PARTS / 2; w > 0; w /= 2) {                                                   \
            for (int j = 0; j < w; j++) {                                                          \
                acc[j] = OP(acc[j], acc[j + w]);                                                   \
            }                                                                                      \
        }                                                                                          \
        return acc[0];                                                                             \
    }                                                                                              \
    static void line_##KIND##_##ID(int64_t n, const void *in, void *out) {                         \
        const T *x = in;                                                                           \
        T part[DEEP];                                                                              \
        int top = 0;                                                                               \
        for (int64_t i = 0; i < n; i += LINE) {                                                    \
            T v = block_##KIND##_##ID(n - i < LINE ? n - i : LINE, x + i);                         \
            for (int64_t c = i / LINE; c & 1; c >>= 1) {                                           \
                top--;                                                                             \
                v = OP(part[top], v);                                                              \
            }                                                                                      \
            part[top++] = v;                                                                       \
        }                                                                                          \
        T r = part[--top];                                                                         \
        while (top > 0) {                                                                          \
            top--;                                                                                 \
            r = OP(part[top], r);                                                                  \
        }                                                                                          \
        *(T *)out = r;                                                                             \
    }                                                                                              \
    static void into_##KIND##_##ID(int64_t width, const T *a, T *v) {                              \
        for (int64_t j = 0; j < width; j++) {                                                      \
            v[j] = OP(a[j], v[j]);                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void rows_##KIND##_##ID(int64_t n, int64_t width, int64_t pitch, const void *in,        \
                                   void *out) {                                                    \
        const T *x = in;                                                                           \
        T part[DEEP][WIDTH];                                                                       \
        int top = 0;                                                                               \
        for (int64_t i = 0; i < n; i += ROWS) {                                                    \
            const int64_t end = n - i < ROWS ? n : i + ROWS;                                       \
            T *v = part[top];                                                                      \
            for (int64_t j = 0; j < width; j++) {                                                  \
                v[j] = x[i * pitch + j];                                                           \
            }                                                                                      \
            for (int64_t a = i + 1; a < end; a++) {                                                \
                const T *y = x + a * pitch;                                                        \
                for (int64_t j = 0; j < width; j++) {                                              \
                    v[j] = OP(v[j], y[j]);                                                         \
                }                                                                                  \
            }                                                                                      \
            for (int64_t c = i / ROWS; c & 1; c >>= 1) {                                           \
                top--;                                                                             \
                into_##KIND##_##ID(width, part[top], v);                                           \
                for (int64_t j = 0; j < width; j++) {                                              \
                    part[top][j] = v[j];                                                           \
                }                                                                                  \
                v = part[top];                                                                     \
            }                                                                                      \
            top++;                                                                                 \
        }                                                                                          \
        for (int k = top - 1; k > 0; k--) {                                                        \
            into_##KIND##_##ID(width, part[k - 1], part[k]);                                       \
            for (int64_t j = 0; j < width; j++) {                                                  \
                part[k - 1][j] = part[k][j];                                                       \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = 0; j < width; j++) {                                                      \
            ((T *)out)[j] = part[0][j];                                                            \
        }                                                                                          \
    }

#define MAKE_BOOL(ID, T)                                                                           \
    REDUCER(any, ID, T, TK_FN(or, ID))                                                             \
    REDUCER(all, ID, T, TK_FN(and, ID))                                                            \
    REDUCER(xor, ID, T, TK_FN(xor, ID))
#define MAKE_FLOAT(ID, T)                                                                          \
    REDUCER(sum, ID, T, TK_FN(add, ID))                                                            \
    REDUCER(prod, ID, T, TK_FN(mul, ID))                                                           \
    REDUCER(min, ID, T, TK_FN(min, ID))                                                            \
    REDUCER(max, ID, T, TK_FN(max, ID))
#define MAKE_SINT(ID, T)                                                                           \
    MAKE_FLOAT(ID, T)                                                                              \
    REDUCER(xor, ID, T, TK_FN(xor, ID))
#define MAKE_UINT(ID, T) MAKE_SINT(ID, T)

#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) MAKE_##CLASS(ID, CTYPE)
#include "lang/dtypes.def"

#define ROW(ENUM, KIND, ID) [TK_K_##ENUM] = {line_##KIND##_##ID, rows_##KIND##_##ID},
#define ROWS_BOOL(ID)       ROW(ANY, any, ID) ROW(ALL, all, ID) ROW(XOR, xor, ID)
#define ROWS_FLOAT(ID)      ROW(SUM, sum, ID) ROW(PROD, prod, ID) ROW(MIN, min, ID) ROW(MAX, max, ID)
#define ROWS_SINT(ID)       ROWS_FLOAT(ID) ROW(XOR, xor, ID)
#define ROWS_UINT(ID)       ROWS_SINT(ID)

static const reducer reducers[TK_DTYPE_COUNT][TK_K_XCHG + 1] = {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_##ID] = {ROWS_##CLASS(ID)},
#include "lang/dtypes.def"
};

typedef struct reduce_step {
    tk_step h;
    reducer how;
    tk_split3 shape;
    uint32_t size;
    size_t in, out;
} reduce_step;

static tk_exec_code run_reduce(const tk_step *h, tk_run *r) {
    const reduce_step *s = (const reduce_step *)h;
    const int64_t inner = s->shape.inner, len = s->shape.len, size = s->size;
    for (int64_t o = 0; o < s->shape.outer; o++) {
        const unsigned char *x = r->base + s->in + o * len * inner * size;
        unsigned char *out = r->base + s->out + o * inner * size;
        if (inner == 1) {
            s->how.line(len, x, out);
            continue;
        }
        for (int64_t j = 0; j < inner; j += WIDTH) {
            const int64_t width = inner - j < WIDTH ? inner - j : WIDTH;
            s->how.rows(len, width, inner, x + j * size, out + j * size);
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_reduce(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place x = tk_plan_dense(p, tk_plan_place(p, op->opnd[0]));
    reduce_step *s = tk_plan_step(p, sizeof *s, run_reduce);
    s->how = reducers[x.dtype][op->at.kind];
    TK_CHECK(p->arena, s->how.line != NULL);
    s->shape = tk_place_split(&x, op->at.axis);
    s->size = x.size;
    s->in = x.off;
    s->out = tk_plan_place(p, op->res[0]).off;
}

// ---- arg_reduce ---------------------------------------------------------------------------------

// A NaN is best of all, for the least and for the greatest; among equals the first stays.

#define ARG_INT(ID, T, NAME, BETTER)                                                               \
    static int32_t arg_##NAME##_##ID(int64_t n, int64_t pitch, const void *in) {                   \
        const T *x = in;                                                                           \
        int64_t at = 0;                                                                            \
        for (int64_t i = 1; i < n; i++) {                                                          \
            at = BETTER(x[i * pitch], x[at * pitch]) ? i : at;                                     \
        }                                                                                          \
        return (int32_t)at;                                                                        \
    }
#define ARG_FLOAT(ID, T, NAME, BETTER)                                                             \
    static int32_t arg_##NAME##_##ID(int64_t n, int64_t pitch, const void *in) {                   \
        const T *x = in;                                                                           \
        int64_t at = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            if (TK_FN(isnan, ID)(x[i * pitch])) {                                                  \
                return (int32_t)i;                                                                 \
            }                                                                                      \
            at = BETTER(x[i * pitch], x[at * pitch]) ? i : at;                                     \
        }                                                                                          \
        return (int32_t)at;                                                                        \
    }
#define ARGS_BOOL(ID, T)
#define ARGS_SINT(ID, T)                                                                           \
    ARG_INT(ID, T, min, TK_FN(lt, ID))                                                             \
    ARG_INT(ID, T, max, TK_FN(gt, ID))
#define ARGS_UINT(ID, T) ARGS_SINT(ID, T)
#define ARGS_FLOAT(ID, T)                                                                          \
    ARG_FLOAT(ID, T, min, TK_FN(lt, ID))                                                           \
    ARG_FLOAT(ID, T, max, TK_FN(gt, ID))
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) ARGS_##CLASS(ID, CTYPE)
#include "lang/dtypes.def"

typedef int32_t (*arg_fn)(int64_t n, int64_t pitch, const void *x);

#define ARG_ROW_BOOL(ID)
#define ARG_ROW_SINT(ID)  [TK_##ID] = {arg_min_##ID, arg_max_##ID},
#define ARG_ROW_UINT(ID)  ARG_ROW_SINT(ID)
#define ARG_ROW_FLOAT(ID) ARG_ROW_SINT(ID)
static const arg_fn arg_fns[TK_DTYPE_COUNT][2] = {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) ARG_ROW_##CLASS(ID)
#include "lang/dtypes.def"
};

typedef struct arg_step {
    tk_step h;
    arg_fn find;
    tk_split3 shape;
    uint32_t size;
    size_t in, out;
} arg_step;

static tk_exec_code run_arg(const tk_step *h, tk_run *r) {
    const arg_step *s = (const arg_step *)h;
    const int64_t inner = s->shape.inner, len = s->shape.len, size = s->size;
    int32_t *out = (int32_t *)(void *)(r->base + s->out);
    for (int64_t o = 0; o < s->shape.outer; o++) {
        const unsigned char *x = r->base + s->in + o * len * inner * size;
        for (int64_t j = 0; j < inner; j++) {
            *out++ = s->find(len, inner, x + j * size);
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_arg_reduce(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place x = tk_plan_dense(p, tk_plan_place(p, op->opnd[0]));
    arg_step *s = tk_plan_step(p, sizeof *s, run_arg);
    s->find = arg_fns[x.dtype][op->at.kind == TK_K_MAX ? 1 : 0];
    TK_CHECK(p->arena, s->find != NULL);
    s->shape = tk_place_split(&x, op->at.axis);
    s->size = x.size;
    s->in = x.off;
    s->out = tk_plan_place(p, op->res[0]).off;
}
