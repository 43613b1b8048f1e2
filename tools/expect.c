// SPDX-License-Identifier: Apache-2.0
// --expect: |a - b| <= atol + rtol |b| for each element, as in numpy.allclose with equal_nan.
#include "expect.h"
#include "array.h"
#include "element.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tolerance {
    double rtol, atol;
} tolerance;

// About two units in the last place, and a little for results near 0.
static tolerance default_for(tkc_dtype t) {
    switch (t) {
    case TKC_BOOL:
    case TKC_I8:
    case TKC_I16:
    case TKC_I32:
    case TKC_I64:
    case TKC_U8:
    case TKC_U16:
    case TKC_U32:
    case TKC_U64:
        return (tolerance){0, 0};
    case TKC_F8E4M3:
        return (tolerance){0.25, 0.02};
    case TKC_F8E5M2:
        return (tolerance){0.5, 0.02};
    case TKC_F16:
        return (tolerance){2e-3, 1e-4};
    case TKC_BF16:
        return (tolerance){1.6e-2, 1e-3};
    case TKC_F32:
        return (tolerance){1e-5, 1e-6};
    case TKC_F64:
        return (tolerance){1e-9, 1e-12};
    }
    return (tolerance){0, 0};
}

bool expect_read(tool *t, expectation *e) {
    const char *colon = strrchr(e->path, ':');
    tkc_dtype named = TKC_F32;
    bool typed = colon && tkc_dtype_from_name(colon + 1, &named);
    const char *path = typed ? tool_strndup(t, e->path, (size_t)(colon - e->path)) : e->path;
    if (!npy_read(t, path, true, &e->file)) {
        return false;
    }
    bool f8 = named == TKC_F8E4M3 || named == TKC_F8E5M2;
    if (typed && !(e->file.some_f8 && f8) && named != e->file.tensor.dtype) {
        tool_error(t, CODE_USAGE, NULL, "--expect %s: '%s' holds %s, not %s", e->name, path,
                   e->file.some_f8 ? "f8" : tkc_dtype_name(e->file.tensor.dtype), colon + 1);
        return false;
    }
    if (typed && e->file.some_f8) {
        e->file.tensor.dtype = named;
        e->file.some_f8 = false;
    }
    return true;
}

typedef struct worst {
    wide error;
    bool found;
    wide got, expected;
    int64_t index[TKC_MAX_RANK];
} worst;

static void note(worst *w, wide error, wide got, wide expected, const cursor *c) {
    if (w->found && error <= w->error) {
        return;
    }
    *w = (worst){.error = error, .found = true, .got = got, .expected = expected};
    memcpy(w->index, c->index, sizeof w->index);
}

// 0 also for equal infinities and two NaN; infinite where only one is finite.
static wide error_of(wide a, wide b) {
    if ((isnan(a) && isnan(b)) || a == b) {
        return 0;
    }
    return isfinite(a) && isfinite(b) ? fabsl(a - b) : (wide)INFINITY;
}

static void put_worst(tool *t, const char *what, const worst *w, const tkc_tensor *x,
                      tkc_dtype expected) {
    printf("  greatest %s error %.3Lg", what, w->error);
    char got[VALUE_ROOM], wanted[VALUE_ROOM];
    if (w->error > 0) {
        printf(" at %s: %s, expected %s", index_text(t, x->rank, w->index),
               value_text(got, x->dtype, w->got), value_text(wanted, expected, w->expected));
    }
    putchar('\n');
}

static bool same_shape(const tkc_tensor *a, const tkc_tensor *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

// As the library's message would say it, for files whose f8 is not named.
static bool choose_f8(tool *t, expectation *e, const tkc_tensor *x) {
    if (!e->file.some_f8) {
        return true;
    }
    if (x->dtype != TKC_F8E4M3 && x->dtype != TKC_F8E5M2) {
        tool_error(t, CODE_USAGE, "write FILE:f8e4m3 or FILE:f8e5m2",
                   "--expect %s: '%s' holds f8 values of a form that the file does not name",
                   e->name, e->path);
        return false;
    }
    e->file.tensor.dtype = x->dtype;
    return true;
}

void expect_compare(tool *t, expectation *e, const tkc_tensor *x) {
    if (!choose_f8(t, e, x)) {
        return;
    }
    const tkc_tensor *y = &e->file.tensor;
    if (!same_shape(x, y)) {
        tool_error(t, CODE_REFUSED, NULL, "output '%s' is %s, '%s' holds %s", e->name,
                   shape_text(t, x), e->path, shape_text(t, y));
        return;
    }
    tolerance tol = default_for(x->dtype);
    tol.rtol = e->rtol < 0 ? tol.rtol : e->rtol;
    tol.atol = e->atol < 0 ? tol.atol : e->atol;
    worst absolute = {0}, relative = {0};
    size_t bad = 0;
    cursor a = cursor_make(x), b = cursor_make(y);
    for (; a.at < a.count; cursor_next(&a), cursor_next(&b)) {
        wide got = cursor_value(&a), expected = cursor_value(&b), error = error_of(got, expected);
        // An infinite tolerance accepts no infinite error.
        bool good =
            error == 0 || (isfinite(error) && error <= tol.atol + tol.rtol * fabsl(expected));
        bad += !good;
        note(&absolute, error, got, expected, &a);
        if (expected != 0 ||
            !isfinite(error)) { // of 0 every error is infinitely many times as great
            note(&relative, isfinite(error) && error != 0 ? error / fabsl(expected) : error, got,
                 expected, &a);
        }
    }
    printf("%s: %s against %s, rtol %g, atol %g: %zu of %zu elements out of tolerance\n", e->name,
           shape_text(t, x), e->path, tol.rtol, tol.atol, bad, a.count);
    put_worst(t, "absolute", &absolute, x, y->dtype);
    put_worst(t, "relative", &relative, x, y->dtype);
    if (bad) {
        tool_error(t, CODE_REFUSED, NULL, "output '%s' differs from '%s'", e->name, e->path);
    }
}
