// SPDX-License-Identifier: Apache-2.0
// For the tests of expanded mathematical functions: kernels of one function each, expanded; the
// C library in a wider type as reference; errors in units of the last place.
#ifndef TK_TESTS_MATH_REF_H
#define TK_TESTS_MATH_REF_H

#include <math.h>
#include <stdint.h>

#include "lower/lower.h"
#include "test_exec_run.h"

typedef struct math_fn {
    const char *name;
    int arity;
    double (*in_f64)(double), (*in_f64_2)(double, double);
    long double (*in_long)(long double), (*in_long_2)(long double, long double);
    // In ulp, as documented; f32 by a GPU's instruction: what the executor, which rounds it
    // exactly, makes of the sequence.
    double bound_f32, bound_f64;
} math_fn;

static inline double ref_rsqrt(double x) { return 1 / sqrt(x); }
static inline long double ref_rsqrtl(long double x) { return 1 / sqrtl(x); }
static inline double ref_sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static inline long double ref_sigmoidl(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

#define REF_1(NAME, F32, F64)                                                                      \
    { #NAME, 1, NAME, NULL, NAME##l, NULL, F32, F64 }
#define REF_2(NAME, F32, F64)                                                                      \
    { #NAME, 2, NULL, NAME, NULL, NAME##l, F32, F64 }
static const math_fn math_fns[] = {
    REF_1(exp, 1.5, 1.5),
    REF_1(exp2, 1, 1.5),
    REF_1(expm1, 2, 2.5),
    REF_1(log, 1.5, 1.5),
    REF_1(log2, 2, 2),
    REF_1(log1p, 1.5, 1.5),
    {"rsqrt", 1, ref_rsqrt, NULL, ref_rsqrtl, NULL, 0.5, 2},
    REF_1(sin, 2, 2.5),
    REF_1(cos, 2, 2.5),
    REF_1(tan, 3, 3),
    REF_1(asin, 2.5, 2.5),
    REF_1(acos, 1.5, 1.5),
    REF_1(atan, 1.5, 2),
    REF_2(atan2, 2, 2),
    REF_1(sinh, 1.5, 2.5),
    REF_1(cosh, 2.5, 2),
    REF_1(tanh, 2, 3),
    REF_1(erf, 1.5, 1.5),
    REF_2(pow, 1.5, 1.5),
    {"sigmoid", 1, ref_sigmoid, NULL, ref_sigmoidl, NULL, 3, 3},
};
enum { MATH_FNS = sizeof math_fns / sizeof math_fns[0] };

// After the module changed.
static inline bool math_plan_again(xrun *x) {
    x->plan = tk_plan_make(&x->arena, x->module, &x->diags, SIZE_MAX);
    if (!x->plan) {
        return false;
    }
    free(x->memory);
    const size_t size = (tk_plan_frame_size(x->plan) + 63) / 64 * 64;
    x->memory = aligned_alloc(64, size);
    memset(x->memory, 0xa5, size);
    x->frame = tk_frame_make(x->plan, x->memory);
    return true;
}

// A kernel y = NAME(x[, x2]) on tiles of n elements, expanded, ready to run on vectors.
static inline bool math_open(xrun *x, const char *name, int arity, const char *type, int n,
                             bool expand) {
    char *text = xrun_text(
        "module tile\n\nkernel @k(%%a: in %s[?], %%b: in %s[?], %%y: out %s[?]) {\n"
        "%%z = const 0 : i32\n%%x = load %%a[%%z +: %d] : %s[%d]\n"
        "%%w = load %%b[%%z +: %d] : %s[%d]\n%%r = %s %%x%s : %s[%d]\n"
        "store %%y[%%z +: %d] = %%r\nreturn\n}\n",
        type, type, type, n, type, n, n, type, n, name, arity > 1 ? ", %w" : "", type, n, n);
    bool good = xrun_open(x, text);
    free(text);
    if (!good || !expand) {
        return good;
    }
    tk_pass_ctx c = {x->module, &x->arena, &x->diags, false, NULL, NULL};
    tk_pass_expand(&c);
    const char *why = NULL;
    if (!tk_ir_verify(&x->arena, x->module, &why)) {
        (void)fprintf(stderr, "not valid after expand: %s\n", why);
        return false;
    }
    return math_plan_again(x);
}

static inline long double math_ref(const math_fn *f, bool wide, long double a, long double b) {
    // Some powl have -inf wrong.
    if (wide && isfinite(a) && (f->arity == 1 || isfinite(b))) {
        return f->arity > 1 ? f->in_long_2(a, b) : f->in_long(a);
    }
    return f->arity > 1 ? (long double)f->in_f64_2((double)a, (double)b)
                        : (long double)f->in_f64((double)a);
}

// The error of got in ulp of its type at ref (at least the least subnormal); huge where one is NaN,
// infinite, or zero of a sign and the other is not. Beyond the greatest finite number an infinity
// counts as the power of two that comes next.
static inline double math_ulps(bool wide, double got, long double ref) {
    const int digits = wide ? 53 : 24, least = wide ? -1074 : -149, top = wide ? 1024 : 128;
    if (isnan(got) || isnan(ref)) {
        return isnan(got) && isnan(ref) ? 0 : 1e30;
    }
    if (isinf(ref)) {
        return (long double)got == ref ? 0 : 1e30;
    }
    if (ref == 0) {
        return got == 0 && !signbit(got) == !signbit(ref) ? 0 : 1e30;
    }
    if (isinf(got) && fabsl(ref) >= ldexpl(1, top - 1)) {
        got = 0;
        ref = fabsl(ref) - ldexpl(1, top);
        return ref > 0 ? 0 : (double)ldexpl(-ref, digits - top);
    }
    int e;
    (void)frexpl(ref, &e);
    e = e - digits > least ? e - digits : least;
    if (e > top - digits) {
        e = top - digits;
    }
    return (double)ldexpl(fabsl((long double)got - ref), -e);
}

#endif
