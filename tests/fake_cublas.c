// SPDX-License-Identifier: Apache-2.0
// A cuBLASLt that computes on the CPU, slowly and in f64, what descriptors say. It checks what the
// documentation of the real one asks of them: sizes of attributes, shapes, leading dimensions,
// which types go together, alignments, and that an algorithm is used for what it was chosen for.
// Built as a shared library of its own.
#include "tests/fake_cublas.h"

#include "lang/num_inline.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define API(name, ...)                                                                             \
    EXPORT int name(__VA_ARGS__);                                                                  \
    int name(__VA_ARGS__)

enum { OK = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F64 = 1, F16 = 2, I8 = 3, I32 = 10, BF16 = 14, E4M3 = 28, E5M2 = 29 };
enum { ATTRIBUTES = 40 };

// Attributes by number: their values, of the sizes that the documentation gives.
typedef struct desc {
    int compute, scale;
    int64_t value[ATTRIBUTES];
} desc;

typedef struct layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
    int64_t value[ATTRIBUTES];
} layout;

typedef struct preference {
    int64_t value[ATTRIBUTES];
} preference;

typedef struct algorithm {
    uint64_t shape; // hash of what it was chosen for
    uint64_t alignment[5];
    uint64_t workspace, zero;
} algorithm;

typedef struct result {
    algorithm algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} result;

static fake_cublas_state state = {.fail_code = 14};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT fake_cublas_state *fake_cublas(void) { return &state; }

EXPORT const char *cublasLtGetStatusName(int s);
const char *cublasLtGetStatusName(int s) {
    return s == 14 ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_OTHER";
}

static int begin(const char *name) {
    pthread_mutex_lock(&lock);
    state.calls++;
    bool fail = state.fail_at > 0 && --state.fail_at == 0;
    pthread_mutex_unlock(&lock);
    if (state.on_call) {
        state.on_call(name);
    }
    return fail ? state.fail_code : OK;
}

#define BEGIN()                                                                                    \
    do {                                                                                           \
        int begin_result = begin(__func__);                                                        \
        if (begin_result != OK) {                                                                  \
            return begin_result;                                                                   \
        }                                                                                          \
    } while (0)

__attribute__((format(printf, 1, 2))) static int complain(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    pthread_mutex_lock(&lock);
    if (!state.complaint[0]) {
        vsnprintf(state.complaint, sizeof state.complaint, fmt, args);
    }
    pthread_mutex_unlock(&lock);
    va_end(args);
    return INVALID_VALUE;
}

static void *make(size_t size) {
    pthread_mutex_lock(&lock);
    state.live++;
    pthread_mutex_unlock(&lock);
    return calloc(1, size);
}

static int drop(void *p) {
    pthread_mutex_lock(&lock);
    state.live--;
    pthread_mutex_unlock(&lock);
    free(p);
    return OK;
}

// ---- Handles and descriptors

API(cublasLtCreate, void **h) {
    BEGIN();
    *h = make(1);
    return OK;
}

API(cublasLtDestroy, void *h) {
    begin(__func__);
    return drop(h);
}

API(cublasLtMatmulDescCreate, desc **d, int compute, int scale) {
    BEGIN();
    *d = make(sizeof **d);
    (*d)->compute = compute;
    (*d)->scale = scale;
    (*d)->value[7] = 1; // the epilogue
    (*d)->value[26] = -1;
    return OK;
}

API(cublasLtMatrixLayoutCreate, layout **l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    BEGIN();
    *l = make(sizeof **l);
    (*l)->type = type;
    (*l)->rows = rows;
    (*l)->cols = cols;
    (*l)->ld = ld;
    (*l)->value[5] = 1; // matrices
    return OK;
}

API(cublasLtMatmulPreferenceCreate, preference **p) {
    BEGIN();
    *p = make(sizeof **p);
    for (int i = 5; i < 9; i++) {
        (*p)->value[i] = 256;
    }
    return OK;
}

API(cublasLtMatmulDescDestroy, desc *d) {
    begin(__func__);
    return drop(d);
}

API(cublasLtMatrixLayoutDestroy, layout *l) {
    begin(__func__);
    return drop(l);
}

API(cublasLtMatmulPreferenceDestroy, preference *p) {
    begin(__func__);
    return drop(p);
}

// Sizes by attribute; 0: none such.
static const unsigned char desc_size[ATTRIBUTES] = {
    [0] = 4,  [1] = 4,  [2] = 4,  [3] = 4,  [4] = 4,  [5] = 4,  [6] = 4,  [7] = 4,  [8] = 8,
    [10] = 8, [11] = 8, [12] = 8, [13] = 8, [14] = 8, [15] = 4, [17] = 8, [18] = 8, [19] = 8,
    [20] = 8, [21] = 8, [22] = 4, [23] = 8, [24] = 8, [25] = 1, [26] = 4};
static const unsigned char layout_size[ATTRIBUTES] = {4, 4, 8, 8, 8, 4, 8, 8, 4};
static const unsigned char preference_size[ATTRIBUTES] = {
    [0] = 4, [1] = 8, [3] = 4, [5] = 4, [6] = 4, [7] = 4, [8] = 4, [9] = 4, [12] = 8};

static int set(int64_t *value, const unsigned char *sizes, int attribute, const void *p,
               size_t size) {
    if (attribute < 0 || attribute >= ATTRIBUTES || !sizes[attribute] || sizes[attribute] != size) {
        return complain("attribute %d with %zu bytes", attribute, size);
    }
    int32_t low;
    memcpy(&low, p, 4);
    value[attribute] = low;
    if (size == 8) {
        memcpy(&value[attribute], p, 8);
    }
    return OK;
}

API(cublasLtMatmulDescSetAttribute, desc *d, int attribute, const void *p, size_t size) {
    BEGIN();
    return set(d->value, desc_size, attribute, p, size);
}

API(cublasLtMatrixLayoutSetAttribute, layout *l, int attribute, const void *p, size_t size) {
    BEGIN();
    return attribute < 5 ? complain("layout attribute %d", attribute)
                         : set(l->value, layout_size, attribute, p, size);
}

API(cublasLtMatmulPreferenceSetAttribute, preference *l, int attribute, const void *p,
    size_t size) {
    BEGIN();
    return set(l->value, preference_size, attribute, p, size);
}

// ---- What is asked of descriptors

typedef struct product {
    const desc *o;
    const layout *a, *b, *c, *d;
} product;

static bool is_f8(int t) { return t == E4M3 || t == E5M2; }

// The documentation's tables: compute type, scale type, A, B, C, D and the bias (-1: none).
static bool types_go_together(const product *p, int bias) {
    int a = p->a->type, b = p->b->type, c = p->c->type, d = p->d->type;
    int compute = p->o->compute, scale = p->o->scale;
    if (is_f8(a) || is_f8(b)) {
        bool pair = is_f8(a) && is_f8(b) && !(a == E5M2 && b == E5M2);
        bool out = (c == BF16 && (d == BF16 || is_f8(d)) && (bias < 0 || bias == BF16)) ||
                   (c == F16 && (d == F16 || is_f8(d)) && (bias < 0 || bias == F16)) ||
                   (c == F32 && d == F32 && (bias < 0 || bias == BF16));
        return pair && out && !(d == E5M2 && a == E4M3 && b == E4M3) && compute == 68 &&
               scale == F32;
    }
    if (a != b || c != d) {
        return false;
    }
    if (a == I8) {
        return compute == 72 && scale == I32 && d == I32 && bias < 0 && p->o->value[7] == 1;
    }
    bool sum = a == F64   ? compute == 70 && scale == F64 && d == F64
               : a == F32 ? (compute == 68 || compute == 77) && scale == F32 && d == F32
                          : (a == F16 || a == BF16) && compute == 68 && scale == F32 &&
                                (d == a || d == F32);
    return sum && (bias < 0 || bias == d);
}

static int check_layout(const layout *l, const char *name, const product *p) {
    if (l->rows == 0 || l->cols == 0 || l->ld < (int64_t)l->rows) {
        return complain("%s is %llu x %llu with a leading dimension of %lld", name,
                        (unsigned long long)l->rows, (unsigned long long)l->cols, (long long)l->ld);
    }
    if (l->value[5] != p->d->value[5] || l->value[5] < 1) {
        return complain("%s has %lld matrices", name, (long long)l->value[5]);
    }
    return OK;
}

static int check_epilogue(const product *p) {
    const int64_t *v = p->o->value;
    int64_t e = v[7];
    bool bias = (e & 4) != 0;
    if (e != 1 && e != 2 && e != 4 && e != 6 && e != 32 && e != 36) {
        return complain("epilogue %lld", (long long)e);
    }
    if (bias != (v[8] != 0)) {
        return complain("epilogue %lld and a bias at %llx", (long long)e, (unsigned long long)v[8]);
    }
    int type = !bias ? -1 : v[26] >= 0 ? (int)v[26] : p->d->type;
    if (!types_go_together(p, type)) {
        return complain("types %d x %d + %d -> %d, bias %d, compute %d, scale %d", p->a->type,
                        p->b->type, p->c->type, p->d->type, type, p->o->compute, p->o->scale);
    }
    if (((v[17] || v[18]) && !is_f8(p->a->type)) || (v[20] && !is_f8(p->d->type))) {
        return complain("a scale of what is no f8");
    }
    return OK;
}

static int check(const product *p) {
    bool ta = p->o->value[3] != 0, tb = p->o->value[4] != 0;
    uint64_t m = ta ? p->a->cols : p->a->rows, ka = ta ? p->a->rows : p->a->cols;
    uint64_t kb = tb ? p->b->cols : p->b->rows, n = tb ? p->b->rows : p->b->cols;
    int r = check_layout(p->a, "A", p);
    r = r ? r : check_layout(p->b, "B", p);
    r = r ? r : check_layout(p->c, "C", p);
    r = r ? r : check_layout(p->d, "D", p);
    if (r == OK &&
        (ka != kb || p->d->rows != m || p->d->cols != n || p->c->rows != m || p->c->cols != n)) {
        r = complain("[%llu, %llu] x [%llu, %llu] -> [%llu, %llu]", (unsigned long long)m,
                     (unsigned long long)ka, (unsigned long long)kb, (unsigned long long)n,
                     (unsigned long long)p->d->rows, (unsigned long long)p->d->cols);
    }
    r = r ? r : check_epilogue(p);
    bool narrow = is_f8(p->a->type) || p->a->type == I8;
    return r != OK ? r : narrow && state.needs_tn && !(ta && !tb) ? NOT_SUPPORTED : OK;
}

static uint64_t mix(uint64_t h, const void *p, size_t n) {
    const unsigned char *at = p;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ at[i]) * 1099511628211U;
    }
    return h;
}

// Of all but addresses, of which only whether they are there counts.
static uint64_t hash_of(const product *p) {
    desc o = *p->o;
    static const int addresses[] = {8, 17, 18, 20};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        o.value[addresses[i]] = o.value[addresses[i]] != 0;
    }
    uint64_t h = mix(7, &o, sizeof o);
    const layout *l[] = {p->a, p->b, p->c, p->d};
    for (size_t i = 0; i < 4; i++) {
        h = mix(h, l[i], sizeof *l[i]);
    }
    return h;
}

static uint64_t alignment_of(uint64_t at) {
    uint64_t low = at & (~at + 1);
    return low == 0 || low > 256 ? 256 : low;
}

API(cublasLtMatmulAlgoGetHeuristic, void *h, const desc *o, const layout *a, const layout *b,
    const layout *c, const layout *d, const preference *p, int wanted, result *r, int *found) {
    BEGIN();
    product x = {o, a, b, c, d};
    int s = h && wanted == 1 ? check(&x) : complain("a choice of %d", wanted);
    *found = 0;
    if (s != OK) {
        return s;
    }
    pthread_mutex_lock(&lock);
    state.choices++;
    pthread_mutex_unlock(&lock);
    memset(r, 0, sizeof *r);
    if (state.workspace > (uint64_t)p->value[1]) {
        return NOT_SUPPORTED;
    }
    r->algo = (algorithm){.shape = hash_of(&x), .workspace = state.workspace};
    for (int i = 0; i < 4; i++) {
        r->algo.alignment[i] = (uint64_t)p->value[5 + i];
    }
    r->algo.alignment[4] = o->value[8] ? alignment_of((uint64_t)o->value[8]) : 1;
    r->workspace = state.workspace;
    *found = 1;
    return OK;
}

// ---- The product

static double value_at(int type, const void *base, int64_t i) {
    const unsigned char *p = base;
    float f;
    double d;
    int32_t n;
    uint16_t half;
    switch (type) {
    case F64:
        memcpy(&d, p + 8 * i, 8);
        return d;
    case F32:
        memcpy(&f, p + 4 * i, 4);
        return (double)f;
    case I32:
        memcpy(&n, p + 4 * i, 4);
        return n;
    case F16:
        memcpy(&half, p + 2 * i, 2);
        return tk_f16_to_f64(half);
    case BF16:
        memcpy(&half, p + 2 * i, 2);
        return tk_bf16_to_f64(half);
    case E4M3:
        return tk_f8e4m3_to_f64(p[i]);
    case E5M2:
        return tk_f8e5m2_to_f64(p[i]);
    default:
        return p[i] < 128 ? p[i] : p[i] - 256;
    }
}

static void put(int type, void *base, int64_t i, double x) {
    unsigned char *p = base;
    float f = (float)x;
    int32_t n = (int32_t)x;
    uint16_t half = type == F16 ? tk_f32_to_f16(f) : tk_f32_to_bf16(f);
    switch (type) {
    case F64:
        memcpy(p + 8 * i, &x, 8);
        return;
    case F32:
        memcpy(p + 4 * i, &f, 4);
        return;
    case I32:
        memcpy(p + 4 * i, &n, 4);
        return;
    case E4M3:
        p[i] = tk_f32_to_f8e4m3(f);
        return;
    case E5M2:
        p[i] = tk_f32_to_f8e5m2(f);
        return;
    default:
        memcpy(p + 2 * i, &half, 2);
        return;
    }
}

typedef struct operands {
    double alpha, beta;
    const void *a, *b, *c;
    void *d;
} operands;

static double scale_at(int64_t address) {
    return address ? value_at(F32, (const void *)(uintptr_t)address, 0) : 1;
}

static double one(const product *p, const operands *x, int64_t batch, int64_t i, int64_t j) {
    const int64_t *v = p->o->value;
    bool ta = v[3] != 0, tb = v[4] != 0;
    int64_t depth = (int64_t)(ta ? p->a->rows : p->a->cols);
    double sum = 0;
    for (int64_t k = 0; k < depth; k++) {
        sum += value_at(p->a->type, x->a,
                        batch * p->a->value[6] + (ta ? k + i * p->a->ld : i + k * p->a->ld)) *
               value_at(p->b->type, x->b,
                        batch * p->b->value[6] + (tb ? j + k * p->b->ld : k + j * p->b->ld));
    }
    sum *= x->alpha * scale_at(v[17]) * scale_at(v[18]);
    if (x->beta != 0) {
        sum += x->beta * value_at(p->c->type, x->c, batch * p->c->value[6] + i + j * p->c->ld);
    }
    if (v[8]) {
        int type = v[26] >= 0 ? (int)v[26] : p->d->type;
        sum += value_at(type, (const void *)(uintptr_t)v[8], batch * v[10] + i);
    }
    if (v[7] & 2) {
        sum = sum > 0 ? sum : 0;
    }
    if (v[7] & 32) {
        sum =
            sum / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (sum + 0.044715 * pow(sum, 3))));
    }
    return sum * scale_at(v[20]);
}

static int check_algorithm(const product *p, const operands *x, const algorithm *a,
                           const void *space, size_t size) {
    const uint64_t at[] = {(uint64_t)(uintptr_t)x->a, (uint64_t)(uintptr_t)x->b,
                           (uint64_t)(uintptr_t)x->c, (uint64_t)(uintptr_t)x->d,
                           (uint64_t)p->o->value[8]};
    if (a->shape != hash_of(p)) {
        return complain("an algorithm for another product");
    }
    for (int i = 0; i < 5; i++) {
        if (at[i] && alignment_of(at[i]) < a->alignment[i]) {
            return complain("operand %d at %llx, chosen for an alignment of %llu", i,
                            (unsigned long long)at[i], (unsigned long long)a->alignment[i]);
        }
    }
    if (size < a->workspace || (a->workspace && (!space || (uintptr_t)space % 256))) {
        return complain("%zu bytes to work in at %p", size, space);
    }
    return OK;
}

static double scalar(int type, const void *p) { return value_at(type, p, 0); }

API(cublasLtMatmul, void *h, const desc *o, const void *alpha, const void *a, const layout *la,
    const void *b, const layout *lb, const void *beta, const void *c, const layout *lc, void *d,
    const layout *ld, const algorithm *algo, void *space, size_t size, void *stream) {
    BEGIN();
    product p = {o, la, lb, lc, ld};
    operands x = {scalar(o->scale, alpha), scalar(o->scale, beta), a, b, c, d};
    int r = h ? check(&p) : complain("no handle");
    r = r ? r : check_algorithm(&p, &x, algo, space, size);
    if (r == OK && x.beta != 0 && !c) {
        r = complain("beta without C");
    }
    if (r != OK) {
        return r;
    }
    for (int64_t batch = 0; batch < ld->value[5]; batch++) {
        for (int64_t j = 0; j < (int64_t)ld->cols; j++) {
            for (int64_t i = 0; i < (int64_t)ld->rows; i++) {
                put(ld->type, d, batch * ld->value[6] + i + j * ld->ld, one(&p, &x, batch, i, j));
            }
        }
    }
    pthread_mutex_lock(&lock);
    state.products++;
    state.stream = stream;
    state.space = space;
    state.read_c = x.beta != 0;
    state.compute = o->compute;
    state.epilogue = (int)o->value[7];
    pthread_mutex_unlock(&lock);
    return OK;
}
