// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel compiled ahead: checked as tkc_launch checks them, with the same ids.
#include "runtime/rt.h"

#include <string.h>

static const char *text_of(const tk_bundle *b, uint32_t offset) { return tk_bundle_at(b, offset); }

// Where a size with a name was seen first.
typedef struct sizes {
    int64_t value[TK_BUNDLE_DIMS]; // below 0: not seen
    uint32_t from[TK_BUNDLE_DIMS];
} sizes;

static tkc_status check_size(const rt_args *a, uint32_t i, uint32_t axis, sizes *s,
                             tkc_error *error) {
    const tk_bundle *b = a->bundle;
    const char *name = text_of(b, a->param[i].name);
    int64_t size = a->tensor[i]->dim[axis], want = a->param[i].dim[axis];
    if (size < 0) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "negative-size", "dimension %u of '%s' is %lld",
                       axis, name, (long long)size);
    }
    if (size > INT32_MAX) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "argument-size",
                       "dimension %u of '%s' is %lld: a size is below 2^31", axis, name,
                       (long long)size);
    }
    if (want >= 0) {
        return size == want ? TKC_OK
                            : rt_fail(error, TKC_ERROR_LAUNCH, "dimension-mismatch",
                                      "dimension %u of '%s' is %lld where %lld is expected", axis,
                                      name, (long long)size, (long long)want);
    }
    uint32_t k = (uint32_t)(-1 - want);
    const tk_bundle_dim *d = (const tk_bundle_dim *)tk_bundle_at(b, b->dim) + k;
    if (s->value[k] < 0) {
        s->value[k] = size;
        s->from[k] = i;
    }
    if (s->value[k] != size) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "dimension-mismatch",
                       "dimension '%s' is %lld in '%s' but %lld in '%s'", text_of(b, d->name),
                       (long long)size, name, (long long)s->value[k],
                       text_of(b, a->param[s->from[k]].name));
    }
    if (d->value >= 0 && d->value != size) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "dimension-mismatch",
                       "dimension '%s' is %lld in '%s', but this code was built for %lld",
                       text_of(b, d->name), (long long)size, name, (long long)d->value);
    }
    return TKC_OK;
}

static tkc_status check_tensor(rt_args *a, uint32_t i, sizes *s, tkc_error *error) {
    const tk_bundle_param *p = &a->param[i];
    const tkc_tensor *t = a->tensor[i];
    const char *name = text_of(a->bundle, p->name);
    if ((uint32_t)t->dtype != p->dtype) {
        const char *given = tkc_dtype_name(t->dtype);
        return rt_fail(error, TKC_ERROR_LAUNCH, "argument-type",
                       "argument '%s' is %s where %s is expected", name,
                       given ? given : "of no known type", tkc_dtype_name((tkc_dtype)p->dtype));
    }
    if (t->rank != p->rank) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "argument-rank",
                       "argument '%s' has %u dimension%s where %u %s expected", name, t->rank,
                       t->rank == 1 ? "" : "s", p->rank, p->rank == 1 ? "is" : "are");
    }
    for (uint32_t axis = 0; axis < t->rank; axis++) {
        tkc_status r = check_size(a, i, axis, s, error);
        if (r != TKC_OK) {
            return r;
        }
    }
    char text[200];
    const char *id = tensor_fault(t, name, text, sizeof text);
    return id ? rt_fail(error, TKC_ERROR_LAUNCH, id, "%s", text) : TKC_OK;
}

// Floats of fewer than 32 bits come as float.
static tkc_status take_scalar(rt_args *a, uint32_t i, const void *at, tkc_error *error) {
    const tk_bundle_param *p = &a->param[i];
    tk_dtype t = (tk_dtype)p->dtype;
    bool narrow = tk_dtype_is_float(t) && tk_dtype_size(t) < 4;
    tk_const x = tk_const_load(narrow ? TK_F32 : t, at);
    a->scalar[i] = narrow ? tk_cast(x, t) : x;
    if (narrow && tk_const_is_inf(a->scalar[i]) && !tk_const_is_inf(x)) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "scalar-range",
                       "%g does not fit parameter '%s' of type %s", tk_const_as_f64(x),
                       text_of(a->bundle, p->name), tk_dtype_name(t));
    }
    return TKC_OK;
}

// The bytes from the lowest to the highest of each tensor, which were found to be fewer than 2^63.
typedef struct range {
    uint64_t low, high; // equal: none
} range;

static range range_of(const tkc_tensor *t) {
    uint64_t low = (uint64_t)(uintptr_t)t->data, high = low + tkc_dtype_size(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 0) {
            return (range){0, 0};
        }
        uint64_t reach = (uint64_t)((t->dim[i] - 1) * t->stride[i]) * tkc_dtype_size(t->dtype);
        *(t->stride[i] < 0 ? &low : &high) += reach;
    }
    return (range){low, high};
}

// False only where they share no byte; at the end of the address space also true.
static bool may_meet(const range *x, const range *y) {
    return x->low >= x->high || y->low >= y->high || (x->low < y->high && y->low < x->high);
}

static tkc_status check_overlaps(const rt_args *a, tkc_error *error) {
    range r[TK_BUNDLE_PARAMS];
    for (uint32_t i = 0; i < a->bundle->nparam; i++) {
        r[i] = a->param[i].is_tensor ? range_of(a->tensor[i]) : (range){0, 0};
    }
    const tk_bundle_param *p = a->param;
    for (uint32_t i = 0; i < a->bundle->nparam; i++) {
        for (uint32_t j = i + 1; p[i].is_tensor && j < a->bundle->nparam; j++) {
            if (p[j].is_tensor && (p[i].written || p[j].written) && may_meet(&r[i], &r[j]) &&
                tensors_overlap(a->tensor[i], a->tensor[j])) {
                uint32_t one = p[i].written ? i : j;
                return rt_fail(error, TKC_ERROR_LAUNCH, "overlap",
                               "'%s' is written and shares memory with '%s'",
                               text_of(a->bundle, p[one].name),
                               text_of(a->bundle, p[one == i ? j : i].name));
            }
        }
    }
    return TKC_OK;
}

tkc_status rt_check(const tk_bundle *b, const void *const *argument, rt_args *a, tkc_error *error) {
    sizes s;
    a->bundle = b;
    a->param = tk_bundle_at(b, b->param);
    for (uint32_t k = 0; k < b->ndim; k++) {
        s.value[k] = -1;
    }
    for (uint32_t i = 0; i < b->nparam; i++) {
        if (!argument[i]) {
            return rt_fail(error, TKC_ERROR_LAUNCH, "argument-missing",
                           "parameter '%s' is not given", text_of(b, a->param[i].name));
        }
        a->tensor[i] = a->param[i].is_tensor ? argument[i] : NULL;
        tkc_status r = a->param[i].is_tensor ? check_tensor(a, i, &s, error)
                                             : take_scalar(a, i, argument[i], error);
        if (r != TKC_OK) {
            return r;
        }
    }
    tkc_status r = check_overlaps(a, error);
    return r == TKC_OK ? rt_grid(a, error) : r;
}
