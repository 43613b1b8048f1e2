// SPDX-License-Identifier: Apache-2.0
// Launching: everything that can be wrong with the arguments is found here, before a device sees
// them.
#include "runtime/internal.h"

#include "lang/num.h"

#include <math.h>
#include <string.h>

typedef struct launch_call {
    tkc_kernel *kernel;
    tkc_device *device;
    const tkc_arg *args;
    size_t nargs;
    const tkc_launch_options *options; // NULL: only make ready
} launch_call;

static bool check_memory(tk_work *w, const tk_kparam *p, const tkc_tensor *t) {
    char text[160];
    const char *id = tensor_fault(t, p->name, text, sizeof text);
    if (id) {
        work_fail(w, TKC_ERROR_LAUNCH, id, "%s", text);
    }
    return !id;
}

static bool scalar_int(tk_const *out, tk_dtype t, const tkc_arg *arg) {
    bool negative = arg->kind == TKC_ARG_INT && arg->i < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)arg->i : (uint64_t)arg->i;
    if (t == TK_BOOL) {
        *out = tk_const_bool(magnitude != 0);
        return magnitude <= 1 && !negative;
    }
    if (!tk_num_holds_int(t, negative, magnitude)) {
        return false;
    }
    *out = negative ? tk_const_i64(t, arg->i) : tk_const_u64(t, magnitude);
    return true;
}

bool launch_scalar(tk_work *w, const tk_kparam *p, tk_dtype t, const tkc_arg *arg, tk_const *out) {
    if (arg->kind == TKC_ARG_NONE) {
        *out = tk_cast(p->def, t);
        return true;
    }
    if (arg->kind == TKC_ARG_FLOAT) {
        if (!tk_dtype_is_float(t)) {
            work_fail(w, TKC_ERROR_LAUNCH, "scalar-type",
                      "parameter '%s' is of type %s; a float was given", p->name, tk_dtype_name(t));
            return false;
        }
        *out = tk_const_f64(t, arg->f);
        if (tk_const_is_inf(*out) && !isinf(arg->f)) {
            work_fail(w, TKC_ERROR_LAUNCH, "scalar-range",
                      "%g does not fit parameter '%s' of type %s", arg->f, p->name,
                      tk_dtype_name(t));
            return false;
        }
        return true;
    }
    if (!scalar_int(out, t, arg)) {
        const char *text = arg->kind == TKC_ARG_UINT
                               ? tk_format(&w->arena, "%llu", (unsigned long long)arg->i)
                               : tk_format(&w->arena, "%lld", (long long)arg->i);
        work_fail(w, TKC_ERROR_LAUNCH, "scalar-range",
                  "%s does not fit parameter '%s' of type %s exactly", text, p->name,
                  tk_dtype_name(t));
        return false;
    }
    return true;
}

static void check_overlaps(tk_work *w, const tk_kernel_info *info, const launch *l) {
    for (uint32_t i = 0; i < l->narg; i++) {
        for (uint32_t j = i + 1; j < l->narg; j++) {
            const tk_kparam *p = &info->param[l->param[i]], *q = &info->param[l->param[j]];
            bool written =
                l->is_tensor[i] && l->is_tensor[j] && (p->access != TK_IN || q->access != TK_IN);
            if (written && tensors_overlap(&l->tensor[i], &l->tensor[j])) {
                const char *one = p->access != TK_IN ? p->name : q->name;
                const char *other = p->access != TK_IN ? q->name : p->name;
                work_fail(w, TKC_ERROR_LAUNCH, "overlap",
                          "'%s' is written and shares memory with '%s'", one, other);
            }
        }
    }
}

// Collects what is given, in the order of the IR kernel's parameters.
static void collect(tk_work *w, const tkc_arg *args, size_t nargs, launch *l) {
    static const tkc_arg none = {.kind = TKC_ARG_NONE};
    const tk_kernel_info *info = l->kernel->info;
    l->param = TK_NEW_ARRAY(&w->arena, uint32_t, info->nparam + 1);
    l->tensor = TK_NEW_ARRAY(&w->arena, tkc_tensor, info->nparam + 1);
    l->scalar = TK_NEW_ARRAY(&w->arena, tk_const, info->nparam + 1);
    l->is_tensor = TK_NEW_ARRAY(&w->arena, bool, info->nparam + 1);
    for (uint32_t i = 0; i < info->nparam; i++) {
        const tk_kparam *p = &info->param[i];
        const tkc_arg *arg = i < nargs ? &args[i] : &none;
        if (!l->bound->param[i]) {
            continue;
        }
        uint32_t n = l->narg++;
        l->param[n] = i;
        l->is_tensor[n] = p->is_tensor;
        if (p->is_tensor) {
            l->tensor[n] = arg->tensor;
            check_memory(w, p, &arg->tensor);
        } else {
            launch_scalar(w, p, l->bound->param[i]->dtype, arg, &l->scalar[n]);
        }
    }
    if (!w->diags.errors) {
        check_overlaps(w, info, l);
    }
}

bool launch_collect(tk_work *w, tkc_kernel *k, const tkc_arg *args, size_t nargs,
                    const tkc_launch_options *options, launch *l) {
    memset(l, 0, sizeof *l);
    l->work = w;
    l->kernel = k;
    l->options = options;
    l->unit = unit_view(w, k);
    l->bound = bind_args(w, k, l->unit, args, nargs, NULL, 0, true);
    if (l->bound) {
        collect(w, args, nargs, l);
    }
    return l->bound && !w->diags.errors;
}

static void run_launch(tk_work *w, void *arg) {
    launch_call *c = arg;
    launch l;
    const device_table *t = c->device->table;
    if (launch_collect(w, c->kernel, c->args, c->nargs, c->options, &l) &&
        t->ready(c->device, &l) && c->options) {
        t->launch(c->device, &l);
    }
}

static bool wrong_call(const tkc_kernel *kernel, const tkc_device *device, const tkc_arg *args,
                       size_t nargs) {
    return !kernel || !device || (!args && nargs) || nargs == SIZE_MAX ||
           kernel->program->context != device->context;
}

static tkc_status call(launch_call *c, tkc_report **report) {
    tk_work w;
    work_init(&w, &c->kernel->program->context->config);
    w.said = &c->kernel->program->said;
    return work_end(&w, work_run(&w, run_launch, c), report);
}

tkc_status tkc_launch(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args, size_t nargs,
                      const tkc_launch_options *options, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (wrong_call(kernel, device, args, nargs)) {
        return TKC_ERROR_ARGUMENT;
    }
    tkc_launch_options o;
    memset(&o, 0, sizeof o);
    if (options) {
        if (options->size < sizeof(size_t)) {
            return TKC_ERROR_ARGUMENT;
        }
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    }
    launch_call c = {kernel, device, args, nargs, &o};
    return call(&c, report);
}

tkc_status tkc_prepare(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args, size_t nargs,
                       tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (wrong_call(kernel, device, args, nargs)) {
        return TKC_ERROR_ARGUMENT;
    }
    launch_call c = {kernel, device, args, nargs, NULL};
    return call(&c, report);
}
