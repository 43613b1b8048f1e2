// SPDX-License-Identifier: Apache-2.0
// Binding a kernel to what is known of its arguments: dimensions and compile-time parameters, in
// the order arguments, -D and --dim, defaults.
#include "lang/check_core.h"

#include <string.h>

typedef struct {
    tk_checker *c;
    const tk_kernel_info *info;
    const tk_kernel_def *def;
    const tk_bind_in *in;
    tk_value *cval; // kind ERROR: open
    const char **from;
    tk_bound_fn *fn;
    int64_t *dim;
    const char **dim_from;
    bool ok;
} binder;

static tk_diag *fail(binder *b, tk_span at, const char *id, const char *text) {
    b->ok = false;
    return tk_err_diag(b->c, at, id, "%s", text);
}
#define FAIL(b, at, id, ...) fail((b), (at), (id), tk_format((b)->c->arena, __VA_ARGS__))

static uint32_t cparam_index(const binder *b, const char *name) {
    for (uint32_t j = 0; name && j < b->info->ncparam; j++) {
        if (tk_same_name(b->info->cparam[j].name, name)) {
            return j;
        }
    }
    return UINT32_MAX;
}

static bool is_set(const binder *b, uint32_t j) { return b->cval[j].kind != TK_V_ERROR; }

// ---- -D -----------------------------------------------------------------------------------------
static void unknown_define(binder *b, const tk_named_expr *d) {
    TK_VEC(const char *) names = {0};
    for (uint32_t j = 0; j < b->info->ncparam; j++) {
        if (!b->info->cparam[j].fixed) {
            tk_vec_push(b->c->arena, &names, b->info->cparam[j].name);
        }
    }
    tk_diag *e = FAIL(b, d->span, "unknown-parameter", "'%s' has no compile-time parameter '%s'",
                      b->info->name, d->name);
    const char *near = tk_nearest(b->c->arena, d->name, names.at, names.n);
    if (near) {
        tk_help(b->c->diags, e, (tk_span){0}, "did you mean '%s'?", near);
    }
    for (uint32_t i = 0; i < b->info->ndim && !near; i++) {
        if (tk_same_name(b->info->dim[i], d->name)) {
            tk_help(b->c->diags, e, (tk_span){0}, "'%s' is a run-time size: give it as a size",
                    d->name);
        }
    }
}

static void define(binder *b, const tk_named_expr *d) {
    uint32_t j = cparam_index(b, d->name);
    if (j == UINT32_MAX) {
        unknown_define(b, d);
        return;
    }
    const tk_cparam *p = &b->def->fn->cparams.at[j];
    if (b->def->fixed[j].value) {
        tk_diag *e = FAIL(b, d->span, "already-fixed", "'%s' of '%s' is fixed already", d->name,
                          b->info->name);
        tk_note(b->c->diags, e, b->def->fixed[j].span, "here");
        return;
    }
    if (is_set(b, j) || b->fn[j].expr) {
        FAIL(b, d->span, "repeated-argument", "'%s' is given twice", d->name);
        return;
    }
    b->from[j] = "-D";
    if (tk_cparam_kind(b->c, p, false) == TK_CK_FN) {
        b->fn[j] = (tk_bound_fn){d->value, -1};
        return;
    }
    tk_value v = tk_cparam_value(b->c, p, tk_check_known(b->c, d->value));
    b->ok = b->ok && v.kind != TK_V_ERROR;
    b->cval[j] = v;
}

// ---- Arguments --------------------------------------------------------------------------------
static const char *source_of(binder *b, uint32_t j) {
    return b->from[j] && strcmp(b->from[j], "-D") == 0
               ? "-D"
               : tk_format(b->c->arena, "'%s'", b->from[j] ? b->from[j] : "?");
}

// Parameter j is told to be v by argument i.
static void deduce(binder *b, uint32_t i, uint32_t j, tk_value v) {
    const tk_kparam *p = &b->info->param[i];
    if (!is_set(b, j)) {
        b->cval[j] = v;
        b->from[j] = p->name;
        return;
    }
    if (tk_cval_eq(b->cval[j], v)) {
        return;
    }
    tk_buf is, other;
    tk_buf_init(&is, b->c->arena);
    tk_buf_init(&other, b->c->arena);
    tk_cval_text(b->c, &is, b->cval[j]);
    tk_cval_text(b->c, &other, v);
    FAIL(b, p->span, "argument-conflict", "'%s' is %s from %s but %s in '%s'",
         b->info->cparam[j].name, tk_buf_text(&is), source_of(b, j), tk_buf_text(&other), p->name);
}

static void bind_dtype(binder *b, uint32_t i) {
    const tk_kparam *p = &b->info->param[i];
    const tk_arg_known *a = &b->in->arg[i];
    if (!a->has_dtype) {
        return;
    }
    uint32_t j = cparam_index(b, p->dtype);
    tk_dtype t;
    if (j != UINT32_MAX) {
        deduce(b, i, j, tk_type_value(p->span, a->dtype));
    } else if (tk_dtype_from_name(p->dtype, strlen(p->dtype), &t) && t != a->dtype) {
        FAIL(b, p->span, "argument-type", "argument '%s' is %s where %s is expected", p->name,
             tk_dtype_name(a->dtype), p->dtype);
    }
}

static uint32_t dim_index(const binder *b, const char *name) {
    for (uint32_t k = 0; k < b->info->ndim; k++) {
        if (tk_same_name(b->info->dim[k], name)) {
            return k;
        }
    }
    return UINT32_MAX;
}

static void bind_dim(binder *b, uint32_t i, uint32_t d) {
    const tk_kparam *p = &b->info->param[i];
    int64_t size = b->in->arg[i].dim[d];
    if (size < 0) {
        return;
    }
    if (size > INT32_MAX) {
        FAIL(b, p->span, "argument-size", "dimension '%s' of '%s' is %lld: a size is below 2^31",
             p->dim[d], p->name, (long long)size);
        return;
    }
    uint32_t k = dim_index(b, p->dim[d]), j = cparam_index(b, p->dim[d]);
    if (j != UINT32_MAX) {
        deduce(b, i, j, tk_make_int(b->c, p->span, size));
    } else if (k != UINT32_MAX && b->dim[k] >= 0 && b->dim[k] != size) {
        bool given = !b->dim_from[k];
        FAIL(b, p->span, "dimension-mismatch", "dimension '%s' is %lld in '%s' but %s%lld%s%s%s",
             p->dim[d], (long long)size, p->name, given ? "given as " : "", (long long)b->dim[k],
             given ? "" : " in '", given ? "" : b->dim_from[k], given ? "" : "'");
    } else if (k != UINT32_MAX && b->dim[k] < 0) {
        b->dim[k] = size;
        b->dim_from[k] = p->name;
    }
}

static void bind_argument(binder *b, uint32_t i) {
    const tk_kparam *p = &b->info->param[i];
    const tk_arg_known *a = &b->in->arg[i];
    if (!a->given) {
        if (!p->optional && !b->in->partial) {
            FAIL(b, p->span, "missing-argument", "argument '%s' is missing", p->name);
        }
        return;
    }
    bind_dtype(b, i);
    if (!p->is_tensor || !a->has_shape) {
        return;
    }
    if (a->rank != p->rank) {
        FAIL(b, p->span, "argument-rank", "argument '%s' has %u dimension%s where %u %s expected",
             p->name, a->rank, a->rank == 1 ? "" : "s", p->rank, p->rank == 1 ? "is" : "are");
        return;
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        bind_dim(b, i, d);
    }
}

static void bind_named_dim(binder *b, const tk_named_dim *n) {
    uint32_t k = dim_index(b, n->name), j = cparam_index(b, n->name);
    if (n->value < 0 || n->value > INT32_MAX) {
        FAIL(b, (tk_span){0}, "argument-size", "size '%s' is %lld: a size is from 0 to 2^31 - 1",
             n->name, (long long)n->value);
    } else if (k != UINT32_MAX && b->dim[k] >= 0 && b->dim[k] != n->value) {
        FAIL(b, (tk_span){0}, "dimension-mismatch",
             "dimension '%s' is given as %lld but is %lld in '%s'", n->name, (long long)n->value,
             (long long)b->dim[k], b->dim_from[k] ? b->dim_from[k] : "?");
    } else if (k != UINT32_MAX) {
        b->dim[k] = n->value;
    } else if (j != UINT32_MAX && b->info->cparam[j].from_arguments && !b->def->fixed[j].value) {
        if (!is_set(b, j)) {
            b->cval[j] = tk_make_int(b->c, (tk_span){0}, n->value);
            b->from[j] = "-D";
        }
    } else {
        tk_diag *d = FAIL(b, (tk_span){0}, "unknown-dimension", "'%s' has no dimension '%s'",
                          b->info->name, n->name);
        const char *near = tk_nearest(b->c->arena, n->name, b->info->dim, b->info->ndim);
        if (near) {
            tk_help(b->c->diags, d, (tk_span){0}, "did you mean '%s'?", near);
        }
    }
}

// ---- Defaults ---------------------------------------------------------------------------------
// The first tensor or scalar of which the name is the type or a dimension; NULL: none.
static const tk_kparam *teller(const tk_kernel_info *info, const char *name) {
    for (uint32_t i = 0; i < info->nparam; i++) {
        const tk_kparam *p = &info->param[i];
        bool tells = tk_same_name(p->dtype, name);
        for (uint32_t d = 0; d < p->rank; d++) {
            tells = tells || tk_same_name(p->dim[d], name);
        }
        if (tells) {
            return p;
        }
    }
    return NULL;
}

void tk_help_no_value(tk_checker *c, tk_diag *d, const tk_kernel_info *info, uint32_t j) {
    const tk_kcparam *p = &info->cparam[j];
    const tk_kparam *by = p->from_arguments ? teller(info, p->name) : NULL;
    if (by && by->is_tensor) {
        tk_help(c->diags, d, (tk_span){0}, "give it with -D %s=VALUE, or with --in %s=ARRAY",
                p->name, by->name);
    } else {
        tk_help(c->diags, d, (tk_span){0}, "give it with -D %s=VALUE", p->name);
    }
}

static void no_value(binder *b, uint32_t j) {
    const tk_cparam *p = &b->def->fn->cparams.at[j];
    b->cval[j] = tk_cparam_dep(b->c, p);
    if (b->in->partial) {
        return;
    }
    tk_diag *d = FAIL(b, p->span, "no-value", "compile-time parameter '%s' of '%s' has no value",
                      p->name.name, b->info->name);
    tk_help_no_value(b->c, d, b->info, j);
}

// What parameter j follows from where nobody gives it; NULL: nothing.
static const tk_expr *source(const binder *b, uint32_t j) {
    const tk_fixed *f = &b->def->fixed[j];
    const tk_cparam *p = &b->def->fn->cparams.at[j];
    const tk_expr *e = f->value ? f->value : p->init;
    return e ? e : tk_tune_first(b->def, p->name.name);
}

// Marks the sizes that are not known and that the expression, which stands at parameter j, names,
// or a parameter before it.
static void find_sizes(binder *b, uint32_t j, const tk_expr *e, bool *size) {
    switch (e->kind) {
    case TK_E_NAME: {
        const uint32_t k = dim_index(b, e->u.name), before = cparam_index(b, e->u.name);
        if (k != UINT32_MAX && b->dim[k] < 0) {
            size[k] = true;
        }
        if (before < j && (!is_set(b, before) || tk_cval_dep(b->cval[before])) &&
            source(b, before)) {
            find_sizes(b, before, source(b, before), size);
        }
        return;
    }
    case TK_E_UNARY:
        find_sizes(b, j, e->u.unary.x, size);
        return;
    case TK_E_BINARY:
        find_sizes(b, j, e->u.binary.x, size);
        find_sizes(b, j, e->u.binary.y, size);
        return;
    case TK_E_CALL:
        for (uint32_t i = 0; i < e->u.call.args.n; i++) {
            find_sizes(b, j, e->u.call.args.at[i].value, size);
        }
        return;
    case TK_E_INT:
    case TK_E_FLOAT:
    case TK_E_BOOL:
    case TK_E_STRING:
    case TK_E_NEWAXIS:
    case TK_E_INDEX:
    case TK_E_LIST:
    case TK_E_TUPLE:
    case TK_E_LAMBDA:
        return; // no sizes in a parameter's value
    }
}

// "'M' and 'N'", and "--dim M=VALUE --dim N=VALUE".
static const char *sizes_text(binder *b, const bool *size, bool options) {
    tk_buf t;
    tk_buf_init(&t, b->c->arena);
    uint32_t left = 0;
    for (uint32_t k = 0; k < b->info->ndim; k++) {
        left += size[k];
    }
    for (uint32_t k = 0; k < b->info->ndim; k++) {
        if (size[k] && options) {
            tk_buf_fmt(&t, "%s--dim %s=VALUE", t.n ? " " : "", b->info->dim[k]);
        } else if (size[k]) {
            tk_buf_fmt(&t, "%s'%s'", !t.n ? "" : left == 1 ? " and " : ", ", b->info->dim[k]);
        }
        left -= size[k];
    }
    return tk_buf_text(&t);
}

static void check_dependence(binder *b, uint32_t j, const tk_expr *e) {
    if (b->cval[j].kind == TK_V_ERROR || !tk_cval_dep(b->cval[j]) || b->in->partial || !b->ok) {
        return;
    }
    // Those of this parameter, and of all that have none yet.
    bool *own = TK_NEW_ARRAY(b->c->arena, bool, b->info->ndim + 1);
    bool *all = TK_NEW_ARRAY(b->c->arena, bool, b->info->ndim + 1);
    find_sizes(b, j, e, own);
    for (uint32_t i = 0; i < b->info->ncparam; i++) {
        if ((!is_set(b, i) || tk_cval_dep(b->cval[i])) && !b->fn[i].expr && source(b, i)) {
            find_sizes(b, i, source(b, i), all);
        }
    }
    const char *name = b->info->cparam[j].name, *sizes = sizes_text(b, own, false);
    tk_diag *d =
        FAIL(b, e->span, "no-value", "the value of '%s' follows from sizes that are not known%s%s",
             name, *sizes ? ": " : "", sizes);
    const tk_kparam *by = NULL;
    for (uint32_t k = 0; k < b->info->ndim && !by; k++) {
        by = own[k] ? teller(b->info, b->info->dim[k]) : NULL;
    }
    if (!by) {
        tk_help(b->c->diags, d, (tk_span){0}, "give it with -D %s=VALUE", name);
        return;
    }
    tk_help(b->c->diags, d, (tk_span){0},
            "give the sizes that are missing with %s, or those of a tensor with --in %s=ARRAY; or "
            "give '%s' itself with -D %s=VALUE",
            sizes_text(b, all, true), by->name, name, name);
}

static void complete(binder *b, uint32_t j) {
    const tk_kernel_def *def = b->def;
    const tk_cparam *p = &def->fn->cparams.at[j];
    const tk_fixed *f = &def->fixed[j];
    const tk_expr *e = source(b, j);
    uint32_t k = f->value ? f->alias : def->alias.n;
    uint32_t file = f->value ? def->alias.at[f->alias].file : def->file;
    if (tk_cparam_kind(b->c, p, false) == TK_CK_FN) {
        if (!b->fn[j].expr && !e) {
            no_value(b, j);
        } else if (!b->fn[j].expr) {
            b->fn[j] = (tk_bound_fn){e, (int)k};
        }
        return;
    }
    if (is_set(b, j) && !f->value) {
        return;
    }
    if (!e) {
        no_value(b, j);
        return;
    }
    tk_value v = tk_kernel_eval(b->c, def, j, e, file, b->cval, b->dim);
    b->ok = b->ok && v.kind != TK_V_ERROR;
    if (v.kind != TK_V_ERROR && is_set(b, j) && !tk_cval_dep(v) && !tk_cval_eq(v, b->cval[j])) {
        tk_buf is, other;
        tk_buf_init(&is, b->c->arena);
        tk_buf_init(&other, b->c->arena);
        tk_cval_text(b->c, &is, v);
        tk_cval_text(b->c, &other, b->cval[j]);
        FAIL(b, f->span, "argument-conflict", "'%s' is fixed as %s but is %s in '%s'", p->name.name,
             tk_buf_text(&is), tk_buf_text(&other), b->from[j]);
        return;
    }
    b->cval[j] = v;
    check_dependence(b, j, e);
}

static void check_known_dims(binder *b) {
    if (b->in->partial || b->in->free_dims) {
        return;
    }
    for (uint32_t k = 0; k < b->info->ndim; k++) {
        uint32_t i = b->def->dim.at[k].param;
        if (b->dim[k] < 0 && b->in->arg[i].given) {
            tk_diag *d = FAIL(b, b->def->dim.at[k].name.span, "no-value",
                              "the size '%s' is not known", b->info->dim[k]);
            tk_help(b->c->diags, d, (tk_span){0},
                    "no argument tells it: give it with --dim %s=VALUE", b->info->dim[k]);
        }
    }
}

// ---- The result -------------------------------------------------------------------------------
static const char *key_of(binder *b, const bool *given) {
    tk_buf t;
    tk_buf_init(&t, b->c->arena);
    for (uint32_t j = 0; j < b->info->ncparam; j++) {
        tk_buf_fmt(&t, "%s%s=", j ? "," : "", b->info->cparam[j].name);
        const tk_expr *e = b->fn[j].expr;
        if (!e) {
            tk_cval_text(b->c, &t, b->cval[j]);
        } else if (e->kind == TK_E_NAME) {
            tk_buf_str(&t, e->u.name);
        } else {
            const tk_source *s = tk_source_of(b->c->unit->sources, e->span.file);
            tk_buf_fmt(&t, "fn@%s:%u", s ? s->name : "?", e->span.begin);
        }
    }
    for (uint32_t i = 0; i < b->info->nparam; i++) {
        if (b->info->param[i].optional && !b->info->param[i].has_default) {
            tk_buf_fmt(&t, "%s%s%s", t.n ? "," : "", given[i] ? "" : "!", b->info->param[i].name);
        }
    }
    return tk_buf_text(&t);
}

// A dimension that is a constant must be what the argument has; sizes are filled in.
static const tk_type *filled(binder *b, uint32_t i, const tk_type *t) {
    const tk_arg_known *a = &b->in->arg[i];
    const tk_kparam *p = &b->info->param[i];
    if (t->kind != TK_T_TENSOR) {
        if (a->has_dtype && t->dtype != a->dtype && t->dtype != TK_DTYPE_DEP && b->ok) {
            FAIL(b, p->span, "argument-type", "argument '%s' is %s where %s is expected", p->name,
                 tk_dtype_name(a->dtype), tk_dtype_name(t->dtype));
        }
        return t;
    }
    int64_t dim[TK_MAX_TENSOR_RANK];
    for (unsigned d = 0; d < t->rank; d++) {
        uint32_t k = dim_index(b, p->dim[d]);
        int64_t size = a->given && a->has_shape && a->rank == t->rank ? a->dim[d] : TK_DIM_DYN;
        dim[d] = t->dim[d] >= 0 ? t->dim[d] : k != UINT32_MAX ? b->dim[k] : TK_DIM_DYN;
        if (dim[d] >= 0 && size >= 0 && size != dim[d] && t->dim[d] >= 0 && b->ok) {
            FAIL(b, p->span, "dimension-mismatch",
                 "dimension %u of '%s' is %lld where %lld is expected", d, p->name, (long long)size,
                 (long long)dim[d]);
        }
    }
    return tk_type_with_shape(b->c->arena, t, t->rank, dim);
}

static tk_bound *finish(binder *b) {
    tk_arena *a = b->c->arena;
    bool *given = TK_NEW_ARRAY(a, bool, b->info->nparam);
    tk_bound *out = TK_NEW(a, tk_bound);
    out->info = b->info;
    out->dim = b->dim;
    out->param = TK_NEW_ARRAY(a, const tk_type *, b->info->nparam);
    out->env = TK_NEW(a, struct tk_bind_env);
    for (uint32_t i = 0; i < b->info->nparam; i++) {
        const tk_kparam *p = &b->info->param[i];
        given[i] = b->in->arg[i].given || p->has_default || !p->optional;
    }
    *out->env = (struct tk_bind_env){b->def, b->cval, b->fn, given};
    out->key = key_of(b, given);
    // Once as a trial: types of parameters, and what is wrong with functions that are given.
    tk_value *cval = TK_NEW_ARRAY(a, tk_value, b->info->ncparam);
    memcpy(cval, b->cval, b->info->ncparam * sizeof *cval);
    tk_kenv env;
    tk_kernel_env(b->c, b->def, cval, b->fn, given, &env);
    b->ok = b->ok && env.ok;
    for (uint32_t i = 0; i < b->info->nparam; i++) {
        out->param[i] = given[i] ? filled(b, i, env.inst->params.at[i]->type) : NULL;
    }
    tk_kernel_leave(b->c, &env);
    return b->ok && !b->c->failed ? out : NULL;
}

tk_bound *tk_bind(tk_arena *arena, const tk_unit *unit, const tk_kernel_info *info,
                  const tk_bind_in *in, tk_diags *diags) {
    tk_checker c;
    uint32_t before = diags->errors;
    tk_checker_init(&c, arena, unit, diags, false);
    binder b = {.c = &c, .info = info, .def = info->def, .in = in, .ok = true};
    b.cval = TK_NEW_ARRAY(arena, tk_value, info->ncparam);
    b.from = TK_NEW_ARRAY(arena, const char *, info->ncparam);
    b.fn = TK_NEW_ARRAY(arena, tk_bound_fn, info->ncparam);
    b.dim = TK_NEW_ARRAY(arena, int64_t, info->ndim);
    b.dim_from = TK_NEW_ARRAY(arena, const char *, info->ndim);
    for (uint32_t j = 0; j < info->ncparam; j++) {
        b.cval[j] = tk_error_value((tk_span){0});
    }
    for (uint32_t k = 0; k < info->ndim; k++) {
        b.dim[k] = -1;
    }
    for (uint32_t i = 0; i < in->ncarg; i++) {
        define(&b, &in->carg[i]);
    }
    for (uint32_t i = 0; i < info->nparam; i++) {
        bind_argument(&b, i);
    }
    for (uint32_t i = 0; i < in->ndim; i++) {
        bind_named_dim(&b, &in->dim[i]);
    }
    for (uint32_t j = 0; j < info->ncparam && b.ok; j++) {
        complete(&b, j);
    }
    if (b.ok) {
        check_known_dims(&b);
    }
    return b.ok && !c.failed && diags->errors == before ? finish(&b) : NULL;
}
