// SPDX-License-Identifier: Apache-2.0
// How many programs a launch of a kernel compiled ahead has: its steps, each with the arithmetic of
// the language.
#include "runtime/rt.h"

static tk_const step_value(const rt_args *a, const tk_bundle_step *s, const tk_const *value) {
    tk_dtype t = (tk_dtype)s->dtype;
    tk_const operand[3];
    switch ((tk_step_code)s->code) {
    case TK_STEP_CONST:
        return (tk_const){t, s->bits};
    case TK_STEP_SIZE:
        return tk_const_i64(t, a->tensor[s->at[0]]->dim[s->at[1]]);
    case TK_STEP_SCALAR:
        return a->scalar[s->at[0]];
    case TK_STEP_CAST:
        return tk_cast(value[s->at[0]], t);
    case TK_STEP_NUM:
        for (unsigned k = 0; k < 3; k++) {
            operand[k] = value[s->at[k]];
        }
        return tk_num_eval((tk_numop)s->bits, (tk_dtype)s->of, operand);
    }
    return tk_const_i64(t, 0);
}

tkc_status rt_grid(rt_args *a, tkc_error *error) {
    const tk_bundle *b = a->bundle;
    const tk_bundle_step *step = tk_bundle_at(b, b->step);
    const uint32_t *count = tk_bundle_at(b, b->grid), *axis = tk_bundle_at(b, b->axis);
    tk_const value[TK_BUNDLE_STEPS];
    for (uint32_t i = 0; i < b->nstep; i++) {
        value[i] = step_value(a, &step[i], value);
    }
    int64_t total = 1;
    bool none = false;
    for (uint32_t k = 0; k < b->ngrid; k++) {
        a->count[k] = tk_const_as_i64(value[count[k]]);
        none = none || a->count[k] == 0;
        if (a->count[k] < 0) {
            return rt_fail(error, TKC_ERROR_LAUNCH, "grid-negative",
                           "grid axis '%s' has %lld programs",
                           (const char *)tk_bundle_at(b, axis[k]), (long long)a->count[k]);
        }
    }
    for (uint32_t k = 0; k < b->ngrid && !none; k++) {
        if (__builtin_mul_overflow(total, a->count[k], &total) || total > INT32_MAX) {
            return rt_fail(error, TKC_ERROR_LAUNCH, "grid-too-large",
                           "the grid has more than %d programs, which is what a GPU takes",
                           INT32_MAX);
        }
    }
    const int64_t n = b->cluster, first = b->ngrid ? a->count[0] : 1;
    if (n > 1 && first % n != 0) {
        return rt_fail(error, TKC_ERROR_LAUNCH, "grid-not-in-clusters",
                       "grid axis '%s' has %lld programs, which are not in clusters of %lld",
                       b->ngrid ? (const char *)tk_bundle_at(b, axis[0]) : "?", (long long)first,
                       (long long)n);
    }
    a->programs = none ? 0 : (uint32_t)total;
    return TKC_OK;
}
