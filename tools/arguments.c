// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel from --in, --scalar and --dim.
#include "program.h"

#include <string.h>

size_t arguments_find(tool *t, const arguments *a, const char *flag, const char *name) {
    const char **names = TOOL_NEW(t, const char *, a->n + 1);
    for (size_t i = 0; i < a->n; i++) {
        names[i] = a->param[i]->name;
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    const char *list = a->n ? "the kernel's parameters: " : "the kernel has no parameters";
    for (size_t i = 0; i < a->n; i++) {
        list = tool_format(t, "%s%s%s", list, i ? ", " : "", names[i]);
    }
    tool_error(t, CODE_USAGE, list, "%s %s: the kernel has no such parameter%s", flag, name,
               tool_nearest(t, name, names, a->n));
    return a->n;
}

bool arguments_is_output(tool *t, const arguments *a, const char *flag, const char *name) {
    size_t i = arguments_find(t, a, flag, name);
    if (i == a->n) {
        return false;
    }
    const tkc_param_info *p = a->param[i];
    if (!p->is_tensor || p->access == TKC_IN) {
        tool_usage(t, "%s %s: this parameter is %s, not an output", flag, name,
                   p->is_tensor ? "an input" : "a scalar");
        return false;
    }
    return true;
}

static bool take_arrays(tool *t, const kernel_settings *k, bool whole, arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < k->in.n; i++) {
        const pair *p = &k->in.at[i];
        size_t at = arguments_find(t, a, "--in", p->name);
        if (at == a->n) {
            ok = false;
        } else if (!a->param[at]->is_tensor) {
            tool_usage(t, "--in %s: this parameter is a scalar; write --scalar %s=VALUE", p->name,
                       p->name);
            ok = false;
        } else if (a->param[at]->access == TKC_OUT && whole) {
            tool_usage(t,
                       "--in %s: this parameter is an output; its shape follows from the others, "
                       "or from --dim",
                       p->name);
            ok = false;
        } else {
            ok = array_parse(t, p->name, p->value, whole, &a->array[at]) && ok;
        }
    }
    return ok;
}

static bool scalar_value(tool *t, const pair *p, tkc_arg *arg) {
    size_t n = strlen(p->value);
    integer v;
    if (strcmp(p->value, "true") == 0 || strcmp(p->value, "false") == 0) {
        *arg = (tkc_arg){.kind = TKC_ARG_INT, .i = p->value[0] == 't'};
    } else if (integer_parse(p->value, n, &v)) {
        int64_t i;
        if (integer_i64(v, &i)) {
            *arg = (tkc_arg){.kind = TKC_ARG_INT, .i = i};
        } else {
            arg->kind = TKC_ARG_UINT;
            memcpy(&arg->i, &v.magnitude, sizeof arg->i);
        }
    } else if (real_parse(p->value, n, &arg->f)) {
        arg->kind = TKC_ARG_FLOAT;
    } else {
        tool_usage(t, "--scalar %s=%s: this is no number (nor true, false, inf, nan)", p->name,
                   p->value);
        return false;
    }
    return true;
}

static bool take_scalars(tool *t, const kernel_settings *k, arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < k->scalar.n; i++) {
        const pair *p = &k->scalar.at[i];
        size_t at = arguments_find(t, a, "--scalar", p->name);
        if (at == a->n) {
            ok = false;
        } else if (a->param[at]->is_tensor) {
            tool_usage(t, "--scalar %s: this parameter is a tensor; write --in %s=ARRAY", p->name,
                       p->name);
            ok = false;
        } else {
            ok = scalar_value(t, p, &a->arg[at]) && ok;
        }
    }
    return ok;
}

static bool take_sizes(tool *t, const session *s, const kernel_settings *k, arguments *a) {
    size_t ndim = tkc_kernel_dim_count(s->kernel), ncparam = tkc_kernel_cparam_count(s->kernel);
    const char **names = TOOL_NEW(t, const char *, ndim + ncparam + 1);
    for (size_t i = 0; i < ndim; i++) {
        names[i] = tkc_kernel_dim(s->kernel, i);
    }
    for (size_t i = 0; i < ncparam; i++) {
        names[ndim + i] = tkc_kernel_cparam(s->kernel, i)->name;
    }
    a->size = TOOL_NEW(t, tkc_size, k->dim.n + 1);
    for (size_t i = 0; i < k->dim.n; i++) {
        const pair *p = &k->dim.at[i];
        size_t at = 0;
        while (at < ndim + ncparam && strcmp(names[at], p->name) != 0) {
            at++;
        }
        integer v;
        if (!integer_parse(p->value, strlen(p->value), &v) || v.negative ||
            v.magnitude > INT32_MAX) {
            tool_usage(t, "--dim %s=%s: a size is a whole number from 0 to 2147483647", p->name,
                       p->value);
            return false;
        }
        if (at == ndim + ncparam) {
            tool_usage(t, "--dim %s: the kernel has no such dimension%s", p->name,
                       tool_nearest(t, p->name, names, ndim));
            return false;
        }
        if (at >= ndim) {
            tool_usage(t, "--dim %s: this is a compile-time parameter; write -D %s=%s", p->name,
                       p->name, p->value);
            return false;
        }
        a->size[a->nsize++] = (tkc_size){p->name, (int64_t)v.magnitude};
    }
    return true;
}

// ---- Element types of arrays that were written without one

static bool makes_integers(const array *a) {
    return a->kind == ARRAY_RANDINT || a->kind == ARRAY_IOTA;
}

// For a type as the kernel writes it: itself; what -D says; that of an array of the same type; the
// default, which may be another such name; f32, or i32.
static tkc_dtype type_for(const session *s, const arguments *a, const char *declared, int depth) {
    tkc_dtype dtype = TKC_F32;
    const char *value = NULL;
    bool fixed = false;
    if (tkc_dtype_from_name(declared, &dtype)) {
        return dtype;
    }
    for (size_t i = 0; i < tkc_kernel_cparam_count(s->kernel); i++) {
        const tkc_cparam_info *c = tkc_kernel_cparam(s->kernel, i);
        if (strcmp(c->name, declared) == 0) {
            value = c->value;
            fixed = c->fixed;
        }
    }
    bool some = false, integers = true;
    for (size_t i = 0; i < a->n && !(value && fixed); i++) {
        if (a->array[i].name && strcmp(a->param[i]->dtype, declared) == 0) {
            if (a->array[i].has_dtype) {
                return a->array[i].tensor.dtype;
            }
            some = true;
            integers = integers && makes_integers(&a->array[i]);
        }
    }
    if (value && depth < 8) {
        return type_for(s, a, value, depth + 1);
    }
    return some && integers ? TKC_I32 : TKC_F32;
}

static bool finish_arrays(tool *t, const session *s, const kernel_settings *k, bool whole,
                          arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < a->n; i++) {
        array *x = &a->array[i];
        if (!x->name) {
            continue;
        }
        ok = (x->has_dtype || array_set_dtype(t, x, type_for(s, a, a->param[i]->dtype, 0))) && ok;
        ok = ok && (!whole || array_make(t, x, k->seed));
        a->arg[i] = (tkc_arg){.kind = TKC_ARG_TENSOR, .tensor = x->tensor};
    }
    return ok;
}

static bool is_named(const text_list *list, const char *name) {
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// What is not given on the command line.
static bool fill_rest(tool *t, const kernel_settings *k, bool whole, arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < a->n; i++) {
        const tkc_param_info *p = a->param[i];
        if (a->arg[i].kind != TKC_ARG_NONE) {
            continue;
        }
        if (p->optional && !is_named(&k->given, p->name) && !is_named(&k->wanted, p->name)) {
            continue;
        }
        a->arg[i].kind = TKC_ARG_UNKNOWN;
        if (!whole || (p->is_tensor && p->access == TKC_OUT)) {
            continue;
        }
        ok = false;
        if (!p->is_tensor) {
            tool_error(t, CODE_REFUSED, tool_format(t, "write --scalar %s=VALUE", p->name),
                       "scalar '%s' (%s) is not given", p->name, p->dtype);
        } else {
            tool_error(t, CODE_REFUSED, tool_format(t, "write --in %s=ARRAY", p->name),
                       "%s '%s' is not given%s", p->access == TKC_IN ? "input" : "inout tensor",
                       p->name, p->access == TKC_IN ? "" : "; --in gives it its first value");
        }
    }
    return ok;
}

void arguments_open(tool *t, const session *s, arguments *a) {
    memset(a, 0, sizeof *a);
    a->n = tkc_kernel_param_count(s->kernel);
    a->param = TOOL_NEW(t, const tkc_param_info *, a->n + 1);
    a->array = TOOL_NEW(t, array, a->n + 1);
    a->arg = TOOL_NEW(t, tkc_arg, a->n + 1);
    for (size_t i = 0; i < a->n; i++) {
        a->param[i] = tkc_kernel_param(s->kernel, i);
    }
}

bool arguments_are_given(tool *t, const kernel_settings *k, const arguments *a) {
    bool ok = true;
    for (size_t i = 0; i < k->given.n; i++) {
        ok = arguments_find(t, a, "--given", k->given.at[i]) < a->n && ok;
    }
    return ok;
}

bool arguments_make(tool *t, const session *s, const kernel_settings *k, bool whole, arguments *a) {
    arguments_open(t, s, a);
    bool ok = take_arrays(t, k, whole, a);
    ok = take_scalars(t, k, a) && ok;
    ok = take_sizes(t, s, k, a) && ok;
    ok = arguments_are_given(t, k, a) && ok;
    return ok && finish_arrays(t, s, k, whole, a) && fill_rest(t, k, whole, a);
}
