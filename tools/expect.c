// SPDX-License-Identifier: Apache-2.0
// --expect: |a - b| <= atol + rtol |b| for each element, as in numpy.allclose with equal_nan.
#include "expect.h"
#include "array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Options

typedef struct with_expect {
    common_settings common;
    expect_settings x;
} with_expect;

bool expect_take(tool *t, void *settings, const char *value) {
    expect_settings *s = &((with_expect *)settings)->x;
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        tool_usage(t, "option --expect takes NAME=FILE.npy, not '%s'", value);
        return false;
    }
    if (s->n == EXPECT_MOST) {
        tool_usage(t, "more than %d times --expect", EXPECT_MOST);
        return false;
    }
    expectation *e = &s->at[s->n++];
    e->name = tool_strndup(t, value, (size_t)(equals - value));
    e->path = equals + 1;
    e->rtol = s->has_rtol ? s->rtol : -1;
    e->atol = s->has_atol ? s->atol : -1;
    return true;
}

static bool take_tolerance(tool *t, const char *flag, const char *value, double *out) {
    if (!real_parse(value, strlen(value), out) || !(*out >= 0) || isinf(*out)) {
        tool_usage(t, "option %s takes a number from 0, not '%s'", flag, value);
        return false;
    }
    return true;
}

bool expect_take_rtol(tool *t, void *settings, const char *value) {
    expect_settings *s = &((with_expect *)settings)->x;
    s->has_rtol = true;
    return take_tolerance(t, "--rtol", value, s->n ? &s->at[s->n - 1].rtol : &s->rtol);
}

bool expect_take_atol(tool *t, void *settings, const char *value) {
    expect_settings *s = &((with_expect *)settings)->x;
    s->has_atol = true;
    return take_tolerance(t, "--atol", value, s->n ? &s->at[s->n - 1].atol : &s->atol);
}

// ---- Files

static bool read_file(tool *t, expectation *e) {
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

bool expect_read(tool *t, expect_settings *s) {
    for (size_t i = 0; i < s->n; i++) {
        if (!read_file(t, &s->at[i])) {
            return false;
        }
    }
    return true;
}

expectation *expect_find(expect_settings *s, const char *name) {
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->at[i].name, name) == 0) {
            return &s->at[i];
        }
    }
    return NULL;
}

bool expect_check(tool *t, const expect_settings *s, const arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < s->n; i++) {
        ok = arguments_is_output(t, a, "--expect", s->at[i].name) && ok;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(s->at[i].name, s->at[j].name) == 0) {
                tool_usage(t, "--expect %s is given twice", s->at[i].name);
                ok = false;
            }
        }
    }
    return ok;
}

// ---- Comparing

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

static void note(worst_place *w, wide error, wide got, wide expected, const cursor *c) {
    if (w->found && error <= w->error) {
        return;
    }
    *w = (worst_place){.error = error, .found = true, .got = got, .expected = expected};
    memcpy(w->index, c->index, sizeof w->index);
}

// 0 also for equal infinities and two NaN; infinite where only one is finite.
static wide error_of(wide a, wide b) {
    if ((isnan(a) && isnan(b)) || a == b) {
        return 0;
    }
    return isfinite(a) && isfinite(b) ? fabsl(a - b) : (wide)INFINITY;
}

comparison tensor_compare(const tkc_tensor *x, const tkc_tensor *y, double rtol, double atol) {
    const tolerance usual = default_for(x->dtype);
    comparison r = {.rtol = rtol < 0 ? usual.rtol : rtol, .atol = atol < 0 ? usual.atol : atol};
    cursor a = cursor_make(x), b = cursor_make(y);
    for (; a.at < a.count; cursor_next(&a), cursor_next(&b)) {
        wide got = cursor_value(&a), expected = cursor_value(&b), error = error_of(got, expected);
        // An infinite tolerance accepts no infinite error.
        bool good = error == 0 || (isfinite(error) && error <= r.atol + r.rtol * fabsl(expected));
        r.bad += !good;
        r.nans += isnan(got) != 0;
        note(&r.absolute, error, got, expected, &a);
        if (expected != 0 ||
            !isfinite(error)) { // of 0 every error is infinitely many times as great
            note(&r.relative, isfinite(error) && error != 0 ? error / fabsl(expected) : error, got,
                 expected, &a);
        }
    }
    r.count = a.count;
    return r;
}

static void put_worst(tool *t, const char *what, const worst_place *w, const tkc_tensor *x,
                      tkc_dtype expected) {
    fprintf(t->text, "  greatest %s error %.3Lg", what, w->error);
    char got[VALUE_ROOM], wanted[VALUE_ROOM];
    if (w->error > 0) {
        fprintf(t->text, " at %s: %s, expected %s", index_text(t, x->rank, w->index),
                value_text(got, x->dtype, w->got), value_text(wanted, expected, w->expected));
    }
    putc('\n', t->text);
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

bool expect_fits(tool *t, expectation *e, const tkc_tensor *x) {
    if (!choose_f8(t, e, x)) {
        return false;
    }
    const tkc_tensor *y = &e->file.tensor;
    if (!same_shape(x, y)) {
        tool_error(t, CODE_REFUSED, NULL, "output '%s' is %s, '%s' holds %s", e->name,
                   shape_text(t, x), e->path, shape_text(t, y));
        return false;
    }
    return true;
}

void expect_compare(tool *t, expectation *e, const tkc_tensor *x) {
    if (!expect_fits(t, e, x)) {
        return;
    }
    const tkc_tensor *y = &e->file.tensor;
    comparison r = tensor_compare(x, y, e->rtol, e->atol);
    fprintf(t->text, "%s: %s against %s, rtol %g, atol %g: %zu of %zu elements out of tolerance\n",
            e->name, shape_text(t, x), e->path, r.rtol, r.atol, r.bad, r.count);
    put_worst(t, "absolute", &r.absolute, x, y->dtype);
    put_worst(t, "relative", &r.relative, x, y->dtype);
    if (r.bad) {
        tool_error(t, CODE_REFUSED, NULL, "output '%s' differs from '%s'", e->name, e->path);
    }
}
