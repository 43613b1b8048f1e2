// SPDX-License-Identifier: Apache-2.0
// From the caller's arguments to a binding of the kernel's compile-time parameters and dimensions;
// tkc_resolve.
#include "runtime/internal.h"

#include <string.h>

static bool known_tensor(tk_work *w, const tk_kparam *p, const tkc_tensor *t, tk_arg_known *known) {
    if (!p->is_tensor) {
        work_fail(w, TKC_ERROR_LAUNCH, "argument-kind",
                  "parameter '%s' is a scalar; a tensor was given", p->name);
        return false;
    }
    if ((unsigned)t->dtype >= TK_DTYPE_COUNT || t->rank > TKC_MAX_RANK) {
        work_fail(w, TKC_ERROR_ARGUMENT, "bad-tensor",
                  "argument '%s' has no valid element type or a rank above %d", p->name,
                  TKC_MAX_RANK);
        return false;
    }
    known->has_dtype = known->has_shape = true;
    known->dtype = (tk_dtype)t->dtype;
    known->rank = t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0) {
            work_fail(w, TKC_ERROR_LAUNCH, "negative-size", "dimension %u of '%s' is %lld", i,
                      p->name, (long long)t->dim[i]);
            return false;
        }
        known->dim[i] = t->dim[i];
    }
    return true;
}

static bool known_arg(tk_work *w, const tk_kparam *p, const tkc_arg *arg, bool exact,
                      tk_arg_known *known) {
    switch (arg->kind) {
    case TKC_ARG_NONE:
        if (!p->optional) {
            work_fail(w, TKC_ERROR_LAUNCH, "argument-missing", "parameter '%s' is not given",
                      p->name);
            return false;
        }
        known->given = p->has_default;
        return true;
    case TKC_ARG_TENSOR:
        known->given = true;
        return known_tensor(w, p, &arg->tensor, known);
    case TKC_ARG_INT:
    case TKC_ARG_UINT:
    case TKC_ARG_FLOAT:
        known->given = true;
        if (p->is_tensor) {
            work_fail(w, TKC_ERROR_LAUNCH, "argument-kind",
                      "parameter '%s' is a tensor; a scalar was given", p->name);
            return false;
        }
        return true;
    case TKC_ARG_UNKNOWN:
        known->given = true;
        if (exact) {
            work_fail(w, TKC_ERROR_ARGUMENT, "argument-kind",
                      "argument '%s' is unknown, which a launch does not take", p->name);
            return false;
        }
        return true;
    }
    work_fail(w, TKC_ERROR_ARGUMENT, "argument-kind", "argument '%s' has no valid kind", p->name);
    return false;
}

tk_bound *bind_args(tk_work *w, tkc_kernel *k, const tk_unit *unit, const tkc_arg *args,
                    size_t nargs, const tkc_size *sizes, size_t nsizes, bool exact) {
    const tk_kernel_info *info = k->info;
    bool nothing = nargs == SIZE_MAX; // every argument given and unknown
    static const tkc_arg none = {.kind = TKC_ARG_NONE}, unknown = {.kind = TKC_ARG_UNKNOWN};
    if (!nothing && nargs > info->nparam) {
        work_fail(w, TKC_ERROR_LAUNCH, "argument-count",
                  "kernel '%s' has %u parameters; %zu arguments were given", info->name,
                  info->nparam, nargs);
        return NULL;
    }
    tk_arg_known *known = TK_NEW_ARRAY(&w->arena, tk_arg_known, info->nparam + 1);
    bool ok = true;
    for (uint32_t i = 0; i < info->nparam; i++) {
        const tkc_arg *arg = nothing ? &unknown : i < nargs ? &args[i] : &none;
        ok = known_arg(w, &info->param[i], arg, exact, &known[i]) && ok;
    }
    tk_named_dim *dim = TK_NEW_ARRAY(&w->arena, tk_named_dim, nsizes + 1);
    for (size_t i = 0; i < nsizes; i++) {
        dim[i] = (tk_named_dim){sizes[i].name, sizes[i].value};
    }
    if (!ok) {
        return NULL;
    }
    tk_bind_in in = {known, k->ncarg, k->carg, (uint32_t)nsizes, dim, nothing, !exact};
    tk_bound *b = tk_bind(&w->arena, unit, info, &in, &w->diags);
    if (!b && w->status == TKC_OK && !nothing) {
        w->status = TKC_ERROR_LAUNCH;
    }
    return b;
}

// ---- tkc_resolve
typedef struct resolve_call {
    tkc_kernel *kernel;
    const tkc_arg *args;
    size_t nargs;
    const tkc_size *sizes;
    size_t nsizes;
    tkc_arg *out;
} resolve_call;

static void resolve_tensor(tk_work *w, const tk_kparam *p, const tk_type *t, const tkc_arg *given,
                           tkc_arg *out) {
    int64_t dim[TKC_MAX_RANK] = {0};
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0) {
            work_fail(w, TKC_ERROR_LAUNCH, "unknown-size",
                      "dimension '%s' of '%s' is not known: give an array, or its size by name",
                      p->dim[i], p->name);
            return;
        }
        dim[i] = t->dim[i];
    }
    if (given && given->kind == TKC_ARG_TENSOR) {
        *out = *given;
        return;
    }
    *out = (tkc_arg){.kind = TKC_ARG_TENSOR};
    out->tensor = tkc_tensor_make(NULL, (tkc_dtype)t->dtype, t->rank, dim);
}

static void resolve(tk_work *w, void *arg) {
    resolve_call *r = arg;
    const tk_kernel_info *info = r->kernel->info;
    tk_unit *unit = unit_view(w, r->kernel);
    tk_bound *b = bind_args(w, r->kernel, unit, r->args, r->nargs, r->sizes, r->nsizes, false);
    for (uint32_t i = 0; b && i < info->nparam; i++) {
        const tkc_arg *given = i < r->nargs ? &r->args[i] : NULL;
        const tk_type *t = b->param[i];
        r->out[i] = (tkc_arg){.kind = TKC_ARG_NONE};
        if (!t) {
            continue;
        }
        if (t->kind == TK_T_TENSOR) {
            resolve_tensor(w, &info->param[i], t, given, &r->out[i]);
            continue;
        }
        r->out[i] = given ? *given : (tkc_arg){.kind = TKC_ARG_NONE};
        r->out[i].tensor.dtype = (tkc_dtype)t->dtype;
    }
}

tkc_status tkc_resolve(tkc_kernel *kernel, const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                       size_t nsizes, tkc_arg *resolved, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!kernel || (!args && nargs) || (!sizes && nsizes) || !resolved || nargs == SIZE_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    tk_work w;
    work_init(&w, &kernel->program->context->config);
    w.said = &kernel->program->said;
    resolve_call r = {kernel, args, nargs, sizes, nsizes, resolved};
    return work_end(&w, work_run(&w, resolve, &r), report);
}
