// SPDX-License-Identifier: Apache-2.0
// tkc_matmul: everything that can be wrong with the arguments is found here, the same on every
// device, before one sees them.
#include "runtime/matmul.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct matmul_call {
    tkc_device *device;
    double alpha, beta;
    const tkc_tensor *a, *b, *c, *d; // c may be NULL
    tkc_matmul_options options;
} matmul_call;

static void refuse(tk_work *w, const char *id, const char *text) {
    work_fail(w, TKC_ERROR_LAUNCH, id, "%s", text);
}

static const char *shape_text(tk_arena *a, const tkc_tensor *t) {
    tk_buf b;
    tk_buf_init(&b, a);
    for (uint32_t i = 0; i < t->rank; i++) {
        tk_buf_fmt(&b, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    }
    return tk_format(a, "[%s]", tk_buf_text(&b));
}

// ---- Types

typedef struct type_rule {
    tkc_dtype a, b, d;
} type_rule;

static const type_rule types[] = {
    {TKC_F64, TKC_F64, TKC_F64},
    {TKC_F32, TKC_F32, TKC_F32},
    {TKC_F16, TKC_F16, TKC_F16},
    {TKC_F16, TKC_F16, TKC_F32},
    {TKC_BF16, TKC_BF16, TKC_BF16},
    {TKC_BF16, TKC_BF16, TKC_F32},
    {TKC_I8, TKC_I8, TKC_I32},
    {TKC_F8E4M3, TKC_F8E4M3, TKC_BF16},
    {TKC_F8E4M3, TKC_F8E4M3, TKC_F16},
    {TKC_F8E4M3, TKC_F8E4M3, TKC_F32},
    {TKC_F8E4M3, TKC_F8E4M3, TKC_F8E4M3},
    {TKC_F8E4M3, TKC_F8E5M2, TKC_BF16},
    {TKC_F8E4M3, TKC_F8E5M2, TKC_F16},
    {TKC_F8E4M3, TKC_F8E5M2, TKC_F32},
    {TKC_F8E4M3, TKC_F8E5M2, TKC_F8E4M3},
    {TKC_F8E4M3, TKC_F8E5M2, TKC_F8E5M2},
    {TKC_F8E5M2, TKC_F8E4M3, TKC_BF16},
    {TKC_F8E5M2, TKC_F8E4M3, TKC_F16},
    {TKC_F8E5M2, TKC_F8E4M3, TKC_F32},
    {TKC_F8E5M2, TKC_F8E4M3, TKC_F8E4M3},
    {TKC_F8E5M2, TKC_F8E4M3, TKC_F8E5M2},
};

static bool is_f8(tkc_dtype t) { return t == TKC_F8E4M3 || t == TKC_F8E5M2; }

static bool half_of(tkc_dtype t) { return t == TKC_BF16 || t == TKC_F16; }

// Whether c and bias may be of these types (-1: not given) beside d's.
static bool added_types(const matmul_call *k, int c, int bias) {
    tkc_dtype d = k->d->dtype;
    if (is_f8(d)) {
        return (c < 0 || half_of((tkc_dtype)c)) && (bias < 0 || half_of((tkc_dtype)bias)) &&
               (c < 0 || bias < 0 || c == bias);
    }
    int wanted = is_f8(k->a->dtype) && d == TKC_F32 ? TKC_BF16 : (int)d;
    return (c < 0 || c == (int)d) && (bias < 0 || bias == wanted);
}

static void check_types(tk_work *w, const matmul_call *k) {
    const tkc_tensor *bias = k->options.bias;
    bool found = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        found = found || (types[i].a == k->a->dtype && types[i].b == k->b->dtype &&
                          types[i].d == k->d->dtype);
    }
    if (!found) {
        work_fail(w, TKC_ERROR_LAUNCH, "matmul-type",
                  "there is no product of %s and %s into %s (docs/matmul.md has those that are)",
                  tkc_dtype_name(k->a->dtype), tkc_dtype_name(k->b->dtype),
                  tkc_dtype_name(k->d->dtype));
        return;
    }
    if (!added_types(k, k->c ? (int)k->c->dtype : -1, bias ? (int)bias->dtype : -1)) {
        const bool c = k->c != NULL;
        work_fail(w, TKC_ERROR_LAUNCH, "matmul-type",
                  "a product of %s and %s into %s takes no %s%s%s%s", tkc_dtype_name(k->a->dtype),
                  tkc_dtype_name(k->b->dtype), tkc_dtype_name(k->d->dtype), c ? "'c' of " : "",
                  c ? tkc_dtype_name(k->c->dtype) : "",
                  !bias ? ""
                  : c   ? " with a bias of "
                        : "bias of ",
                  bias ? tkc_dtype_name(bias->dtype) : "");
    }
    const tkc_matmul_options *o = &k->options;
    if (k->a->dtype == TKC_I8 && (bias || o->activation != TKC_ACTIVATION_NONE)) {
        refuse(w, "matmul-type", "a product of i8 has neither bias nor activation");
    }
    if (o->tf32 && k->a->dtype != TKC_F32) {
        refuse(w, "matmul-type", "tf32 is for products of f32");
    }
    if (((o->scale_a || o->scale_b) && !is_f8(k->a->dtype)) ||
        (o->scale_d && !is_f8(k->d->dtype))) {
        refuse(w, "matmul-type", "scales are for tensors of f8e4m3 and f8e5m2");
    }
}

tk_dtype matmul_sum_type(const matmul *m) {
    return m->a.dtype == TK_F64 ? TK_F64 : m->a.dtype == TK_I8 ? TK_I32 : TK_F32;
}

static void check_scalar(tk_work *w, const matmul_call *k, double x, const char *name) {
    if (k->a->dtype == TKC_I8 && !(x >= INT32_MIN && x <= INT32_MAX && x == floor(x))) {
        work_fail(w, TKC_ERROR_LAUNCH, "scalar-range",
                  "%s is %g; that of a product of i8 is an integer of 32 bits", name, x);
    } else if (k->a->dtype != TKC_F64 && isfinite(x) && fabs(x) > 0x1.fffffefp127) {
        work_fail(w, TKC_ERROR_LAUNCH, "scalar-range", "%s, %g, does not fit f32", name, x);
    }
}

// ---- Shapes

static bool check_tensor(tk_work *w, const tkc_tensor *t, const char *name, uint32_t least) {
    if (t->rank < least || t->rank > TKC_MAX_RANK) {
        work_fail(w, TKC_ERROR_LAUNCH, "argument-rank",
                  "'%s' has %u dimensions; %u to %d are taken", name, t->rank, least, TKC_MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || t->dim[i] > INT32_MAX) {
            work_fail(w, TKC_ERROR_LAUNCH, t->dim[i] < 0 ? "negative-size" : "argument-size",
                      "dimension %u of '%s' is %lld", i, name, (long long)t->dim[i]);
            return false;
        }
    }
    char text[160];
    const char *id = tensor_fault(t, name, text, sizeof text);
    if (id) {
        refuse(w, id, text);
    }
    return !id;
}

// Whether the axes of batches are those of d, or absent.
static bool same_batch(const tkc_tensor *t, uint32_t own, const tkc_tensor *d) {
    if (t->rank == own) {
        return true;
    }
    if (t->rank - own != d->rank - 2) {
        return false;
    }
    return memcmp(t->dim, d->dim, (d->rank - 2) * sizeof *t->dim) == 0;
}

static void check_batch(tk_work *w, const matmul_call *k, const tkc_tensor *t, const char *name,
                        uint32_t own) {
    if (t && !same_batch(t, own, k->d)) {
        work_fail(w, TKC_ERROR_LAUNCH, "dimension-mismatch",
                  "'%s' is %s and 'd' %s: the axes before the last %s are not the same", name,
                  shape_text(&w->arena, t), shape_text(&w->arena, k->d), own == 2 ? "two" : "one");
    }
}

static int64_t end_dim(const tkc_tensor *t, uint32_t from_end) {
    return t->dim[t->rank - from_end];
}

static void check_shapes(tk_work *w, const matmul_call *k) {
    const tkc_tensor *a = k->a, *b = k->b, *c = k->c, *d = k->d, *bias = k->options.bias;
    if (end_dim(a, 1) != end_dim(b, 2)) {
        work_fail(w, TKC_ERROR_LAUNCH, "dimension-mismatch",
                  "'a' is %s and 'b' %s: K, the last of 'a' and the last but one of 'b', differs",
                  shape_text(&w->arena, a), shape_text(&w->arena, b));
    } else if (end_dim(d, 2) != end_dim(a, 2) || end_dim(d, 1) != end_dim(b, 1)) {
        work_fail(w, TKC_ERROR_LAUNCH, "dimension-mismatch",
                  "'d' is %s; the product of 'a' %s and 'b' %s is [%lld, %lld]",
                  shape_text(&w->arena, d), shape_text(&w->arena, a), shape_text(&w->arena, b),
                  (long long)end_dim(a, 2), (long long)end_dim(b, 1));
    } else if (c && (end_dim(c, 2) != end_dim(d, 2) || end_dim(c, 1) != end_dim(d, 1))) {
        work_fail(w, TKC_ERROR_LAUNCH, "dimension-mismatch", "'c' is %s and 'd' %s",
                  shape_text(&w->arena, c), shape_text(&w->arena, d));
    } else if (bias && end_dim(bias, 1) != end_dim(d, 1)) {
        work_fail(w, TKC_ERROR_LAUNCH, "dimension-mismatch",
                  "the bias is %s and the rows of 'd' have %lld elements",
                  shape_text(&w->arena, bias), (long long)end_dim(d, 1));
    }
    check_batch(w, k, a, "a", 2);
    check_batch(w, k, b, "b", 2);
    check_batch(w, k, c, "c", 2);
    check_batch(w, k, bias, "bias", 1);
    if (end_dim(a, 1) == 0 && !w->diags.errors) {
        refuse(w, "empty-sum", "K, the size that is summed over, is 0");
    }
}

// ---- Order in memory

// One stride for all axes of batches. False: they are not one step apart.
static bool one_step(const tkc_tensor *t, uint32_t own, int64_t *step) {
    int64_t count = 1, next;
    *step = 0;
    for (uint32_t i = t->rank - own; i-- > 0;) {
        if (t->dim[i] == 1) {
            continue;
        }
        if (count == 1) {
            *step = t->stride[i];
        } else if (__builtin_mul_overflow(*step, count, &next) || t->stride[i] != next) {
            return false;
        }
        count *= t->dim[i];
    }
    return *step >= 0;
}

// A matrix as cuBLASLt has them: one stride is 1, or there is one element along it, and the other
// steps over what lies along it.
static bool ordered(const tkc_tensor *t, bool by_rows, matmul_matrix *x) {
    uint32_t along = by_rows ? t->rank - 1 : t->rank - 2;
    uint32_t across = by_rows ? t->rank - 2 : t->rank - 1;
    int64_t n = t->dim[along];
    bool unit = n == 1 || t->stride[along] == 1;
    bool steps = t->dim[across] == 1 || t->stride[across] >= n;
    x->by_rows = by_rows;
    x->lead = t->dim[across] == 1 ? n : t->stride[across];
    x->row = by_rows ? x->lead : 1;
    x->column = by_rows ? 1 : x->lead;
    return unit && steps;
}

static bool take_matrix(tk_work *w, const tkc_tensor *t, const char *name, bool by_rows,
                        bool either, matmul_matrix *x) {
    x->data = t->data;
    x->dtype = (tk_dtype)t->dtype;
    if (!ordered(t, by_rows, x) && !(either && ordered(t, !by_rows, x))) {
        work_fail(w, TKC_ERROR_LAUNCH, "matmul-layout",
                  "the strides of '%s' are %lld and %lld: one must be 1 and the other at least the "
                  "size of that axis%s",
                  name, (long long)t->stride[t->rank - 2], (long long)t->stride[t->rank - 1],
                  either ? "" : ", in the order of 'd'");
        return false;
    }
    if (!one_step(t, 2, &x->batch)) {
        work_fail(w, TKC_ERROR_LAUNCH, "matmul-layout",
                  "the matrices of '%s' are not one step apart, from each to the next", name);
        return false;
    }
    return true;
}

static bool take_bias(tk_work *w, const tkc_tensor *t, matmul *m) {
    m->bias.data = t->data;
    m->bias.dtype = (tk_dtype)t->dtype;
    m->bias.by_rows = true;
    m->bias.column = 1;
    m->bias.lead = m->n;
    if (m->n > 1 && t->stride[t->rank - 1] != 1) {
        refuse(w, "matmul-layout", "the elements of the bias do not lie one after another");
        return false;
    }
    if (!one_step(t, 1, &m->bias.batch)) {
        refuse(w, "matmul-layout", "the rows of the bias are not one step apart");
        return false;
    }
    if (!m->d.by_rows) {
        refuse(w, "matmul-layout", "with a bias the last stride of 'd' must be 1");
        return false;
    }
    return true;
}

// Where d can be seen both ways, c and the bias decide.
static bool take_layouts(tk_work *w, const matmul_call *k, matmul *m) {
    matmul_matrix x = {.data = NULL};
    bool rows = ordered(k->d, true, &x) && (!k->c || ordered(k->c, true, &x));
    rows = rows || k->options.bias != NULL;
    return take_matrix(w, k->a, "a", true, true, &m->a) &&
           take_matrix(w, k->b, "b", true, true, &m->b) &&
           take_matrix(w, k->d, "d", rows, true, &m->d) &&
           (!k->c || take_matrix(w, k->c, "c", m->d.by_rows, false, &m->c)) &&
           (!k->options.bias || take_bias(w, k->options.bias, m));
}

// ---- Memory

// Sorted by stride, each axis must step over all that lies within.
static bool meets_itself(const tkc_tensor *t) {
    bool done[TKC_MAX_RANK] = {false};
    int64_t reach = 0; // of the axes that are done, checked to fit
    for (uint32_t round = 0; round < t->rank; round++) {
        uint32_t least = TKC_MAX_RANK;
        for (uint32_t i = 0; i < t->rank; i++) {
            if (!done[i] && (least == TKC_MAX_RANK || t->stride[i] < t->stride[least])) {
                least = i;
            }
        }
        done[least] = true;
        if (t->dim[least] > 1 && t->stride[least] <= reach) {
            return true;
        }
        reach += t->dim[least] > 1 ? (t->dim[least] - 1) * t->stride[least] : 0;
    }
    return false;
}

static bool same_tensor(const tkc_tensor *a, const tkc_tensor *b) {
    bool same = a->data == b->data && a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++) {
        same = a->dim[i] == b->dim[i] && (a->dim[i] == 1 || a->stride[i] == b->stride[i]);
    }
    return same;
}

static void check_overlap(tk_work *w, const tkc_tensor *t, const char *name, const tkc_tensor *d) {
    if (t && tensors_overlap(t, d)) {
        work_fail(w, TKC_ERROR_LAUNCH, "overlap", "'d' is written and shares memory with '%s'",
                  name);
    }
}

static void check_scale(tk_work *w, const float *scale, const char *name, const tkc_tensor *d) {
    tkc_tensor t = tkc_tensor_make((void *)(uintptr_t)scale, TKC_F32, 0, NULL);
    if (scale && (uintptr_t)scale % sizeof *scale) {
        work_fail(w, TKC_ERROR_LAUNCH, "misaligned", "%s is not aligned to 4 bytes", name);
    } else if (scale) {
        check_overlap(w, &t, name, d);
    }
}

static void check_memory(tk_work *w, const matmul_call *k) {
    const tkc_matmul_options *o = &k->options;
    check_overlap(w, k->a, "a", k->d);
    check_overlap(w, k->b, "b", k->d);
    check_overlap(w, k->c && same_tensor(k->c, k->d) ? NULL : k->c, "c", k->d);
    check_overlap(w, o->bias, "bias", k->d);
    check_scale(w, o->scale_a, "scale_a", k->d);
    check_scale(w, o->scale_b, "scale_b", k->d);
    check_scale(w, o->scale_d, "scale_d", k->d);
    if (meets_itself(k->d)) {
        refuse(w, "overlap", "elements of 'd' share memory with one another");
    }
}

// ---- The call

static bool collect(tk_work *w, const matmul_call *k, matmul *m) {
    const tkc_matmul_options *o = &k->options;
    int64_t elements;
    bool good = check_tensor(w, k->a, "a", 2) && check_tensor(w, k->b, "b", 2) &&
                check_tensor(w, k->d, "d", 2) && (!k->c || check_tensor(w, k->c, "c", 2)) &&
                (!o->bias || check_tensor(w, o->bias, "bias", 1));
    if (!good) {
        return false;
    }
    check_types(w, k);
    check_scalar(w, k, k->alpha, "alpha");
    check_scalar(w, k, k->beta, "beta");
    check_shapes(w, k);
    if (k->beta != 0 && !k->c) {
        refuse(w, "argument-missing", "beta is not 0, and there is no 'c'");
    }
    if (w->diags.errors || !tensor_elems(k->d, &elements) || elements == 0) {
        return false;
    }
    memset(m, 0, sizeof *m);
    m->m = end_dim(k->d, 2);
    m->n = end_dim(k->d, 1);
    m->k = end_dim(k->a, 1);
    m->batch = elements / (m->m * m->n);
    m->alpha = k->alpha;
    m->beta = k->beta;
    m->activation = o->activation;
    m->tf32 = o->tf32;
    m->scale_a = o->scale_a;
    m->scale_b = o->scale_b;
    m->scale_d = o->scale_d;
    m->stream = o->stream;
    if (m->batch > INT32_MAX) {
        refuse(w, "argument-size", "there are 2^31 products or more");
    }
    if (take_layouts(w, k, m)) {
        check_memory(w, k);
    }
    return !w->diags.errors;
}

static void run_matmul(tk_work *w, void *arg) {
    matmul_call *k = arg;
    matmul *m = TK_NEW(&w->arena, matmul);
    if (collect(w, k, m)) {
        k->device->table->matmul(w, k->device, m);
    }
}

static bool wrong_tensor(const tkc_tensor *t) { return !tkc_dtype_name(t->dtype); }

tkc_status tkc_matmul(tkc_device *device, double alpha, const tkc_tensor *a, const tkc_tensor *b,
                      double beta, const tkc_tensor *c, const tkc_tensor *d,
                      const tkc_matmul_options *options, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device || !a || !b || !d || (options && options->size < sizeof(size_t))) {
        return TKC_ERROR_ARGUMENT;
    }
    matmul_call k = {device, alpha, beta, a, b, c, d, {.size = 0}};
    if (options) {
        size_t n = options->size < sizeof k.options ? options->size : sizeof k.options;
        memcpy(&k.options, options, n);
    }
    if (wrong_tensor(a) || wrong_tensor(b) || wrong_tensor(d) || (c && wrong_tensor(c)) ||
        (k.options.bias && wrong_tensor(k.options.bias)) ||
        (unsigned)k.options.activation > TKC_ACTIVATION_GELU) {
        return TKC_ERROR_ARGUMENT;
    }
    tk_work w;
    work_init(&w, &device->context->config);
    return work_end(&w, work_run(&w, run_matmul, &k), report);
}
