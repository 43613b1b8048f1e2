// SPDX-License-Identifier: Apache-2.0
// Types as written: element types, tiles, tensors with their dimension names, function types; and
// how values fit them.
#include "lang/check_core.h"

#include <string.h>

tk_dtype tk_resolve_dtype(tk_checker *c, tk_ident name) {
    if (!name.name) {
        return TK_DTYPE_COUNT;
    }
    const tk_binding *b = tk_scope_find(c->scope, name.name);
    if (b) {
        if (b->value.kind == TK_V_TYPE) {
            return b->value.dtype;
        }
        if (b->value.kind != TK_V_ERROR) {
            tk_diag *d = tk_err_diag(c, name.span, "not-a-type", "'%s' is not a type", name.name);
            tk_note(c->diags, d, b->span, "'%s' is declared here", name.name);
        }
        return TK_DTYPE_COUNT;
    }
    tk_dtype t;
    if (tk_dtype_from_name(name.name, strlen(name.name), &t)) {
        return t;
    }
    tk_entry *e = tk_find_entry(c, c->scope->file, name.name);
    if (e) {
        tk_diag *d = tk_err_diag(c, name.span, "not-a-type", "'%s' is not a type", name.name);
        tk_note(c->diags, d, e->item->name.span, "'%s' is declared here", name.name);
        return TK_DTYPE_COUNT;
    }
    tk_unknown_name(c, name.span, name.name, "type");
    return TK_DTYPE_COUNT;
}

const tk_type *tk_resolve_type(tk_checker *c, const tk_ast_type *t) {
    if (t->kind != TK_AT_NAME) {
        tk_err(c, t->span, "bad-type",
               t->kind == TK_AT_FN ? "a function type stands only in a compile-time parameter"
                                   : "several types stand only as a function's result");
        return NULL;
    }
    if (t->access) {
        tk_err(c, t->span, "bad-type", "a tensor type stands only in a parameter");
        return NULL;
    }
    tk_dtype d = tk_resolve_dtype(c, t->name);
    unsigned rank = 0;
    int64_t dim[TK_MAX_RANK];
    if (t->has_dims && !tk_shape_list(c, t->span, t->dims.n, t->dims.at, &rank, dim)) {
        return NULL;
    }
    if (d == TK_DTYPE_COUNT) {
        return NULL;
    }
    return rank ? tk_type_tile(c->arena, d, rank, dim) : tk_scalar(c, d);
}

const tk_type *tk_resolve_result(tk_checker *c, const tk_ast_type *t) {
    if (!t) {
        return tk_type_void();
    }
    if (t->kind != TK_AT_TUPLE) {
        return tk_resolve_type(c, t);
    }
    const tk_type **elem = TK_NEW_ARRAY(c->arena, const tk_type *, t->args.n);
    bool ok = true;
    for (uint32_t i = 0; i < t->args.n; i++) {
        elem[i] = tk_resolve_type(c, t->args.at[i]);
        ok = ok && elem[i];
    }
    if (!ok || t->args.n == 0) {
        return ok ? tk_type_void() : NULL;
    }
    return t->args.n == 1 ? elem[0] : tk_type_tuple(c->arena, t->args.n, elem);
}

const tk_sig *tk_resolve_sig(tk_checker *c, const tk_ast_type *t) {
    tk_sig *s = TK_NEW(c->arena, tk_sig);
    s->n = t->args.n;
    s->arg = TK_NEW_ARRAY(c->arena, const tk_type *, s->n);
    bool ok = true;
    for (uint32_t i = 0; i < s->n; i++) {
        s->arg[i] = tk_resolve_type(c, t->args.at[i]);
        ok = ok && s->arg[i];
    }
    s->result = tk_resolve_result(c, t->result);
    return ok && s->result ? s : NULL;
}

// ---- Tensor parameters ----------------------------------------------------------------------
static bool constant_dim(tk_checker *c, tk_span at, tk_value v, int64_t *dim) {
    bool dep;
    if (v.kind == TK_V_VALUE && !v.is_const) {
        tk_err(c, at, "bad-dimension",
               "a dimension is a name of its own, a compile-time integer or a constant");
        return false;
    }
    if (!tk_const_int(c, v, "a dimension", dim, &dep)) {
        return false;
    }
    if (!dep && (*dim < 0 || *dim > INT32_MAX)) {
        tk_err(c, at, "bad-dimension", "a dimension is from 0 to 2147483647, not %lld",
               (long long)*dim);
        return false;
    }
    *dim = dep ? TK_DIM_DEP : *dim;
    return true;
}

static bool tensor_dim(tk_checker *c, const tk_expr *e, tk_var *var, uint32_t axis, int64_t known,
                       int64_t *dim) {
    if (e->kind != TK_E_NAME) {
        return constant_dim(c, e->span, tk_check_known(c, e), dim);
    }
    const tk_binding *b = tk_scope_find(c->scope, e->u.name);
    const tk_entry *item = b ? NULL : tk_find_entry(c, c->scope->file, e->u.name);
    if (b && b->value.kind == TK_V_VALUE && b->value.x && b->value.x->kind == TK_X_DIM) {
        if (!var->size) {
            var->size = TK_NEW_ARRAY(c->arena, tk_var_size, TK_MAX_TENSOR_RANK);
        }
        var->size[axis] = (tk_var_size){b->value.x->u.dim.tensor, (uint32_t)b->value.x->u.dim.axis};
        *dim = known;
        return true;
    }
    if (b && b->value.kind == TK_V_ERROR) {
        *dim = known;
        return true;
    }
    if (b || (item && item->item->kind == TK_ITEM_CONST)) {
        return constant_dim(c, e->span, tk_check_known(c, e), dim);
    }
    tk_ident id = {e->u.name, e->span};
    *dim = known;
    return tk_bind_name(c, c->scope, id, tk_dim_value(c, e->span, var, axis));
}

const tk_type *tk_resolve_tensor(tk_checker *c, const tk_ast_type *t, tk_var *var,
                                 const tk_type *actual) {
    tk_dtype d = tk_resolve_dtype(c, t->name);
    int64_t dim[TK_MAX_TENSOR_RANK];
    bool ok = d != TK_DTYPE_COUNT;
    if (!t->dims.n || t->dims.n > TK_MAX_TENSOR_RANK) {
        tk_diag *e = tk_err_diag(c, t->span, "bad-rank", "a tensor has 1 to %d dimensions",
                                 (int)TK_MAX_TENSOR_RANK);
        if (!t->dims.n) {
            tk_help(c->diags, e, (tk_span){0}, "write '%s[N]'", tk_ast_type_text(c, t));
        }
        return NULL;
    }
    for (uint32_t i = 0; i < t->dims.n; i++) {
        int64_t known = actual && actual->rank == t->dims.n && actual->dim[i] >= 0 ? actual->dim[i]
                                                                                   : TK_DIM_DYN;
        ok = tensor_dim(c, t->dims.at[i], var, i, known, &dim[i]) && ok;
    }
    return ok ? tk_type_tensor(c->arena, d, (tk_access)t->access, t->dims.n, dim) : NULL;
}

// ---- Fitting --------------------------------------------------------------------------------
bool tk_dtype_fits(tk_dtype want, tk_dtype got) {
    return want == got || want == TK_DTYPE_DEP || got == TK_DTYPE_DEP;
}

bool tk_shape_fits(const tk_type *want, const tk_type *got) {
    if (want->rank != got->rank) {
        return false;
    }
    for (unsigned i = 0; i < want->rank; i++) {
        int64_t w = want->dim[i], g = got->dim[i];
        if (w != g && w != TK_DIM_DEP && g != TK_DIM_DEP && w != TK_DIM_DYN && g != TK_DIM_DYN) {
            return false;
        }
    }
    return true;
}

tk_value tk_fit(tk_checker *c, tk_value v, const tk_type *want, const char *what) {
    v = tk_read(c, v);
    if (v.kind != TK_V_VALUE || !want || want->kind != TK_T_VALUE) {
        return tk_error_value(v.span);
    }
    if (!tk_shape_fits(want, v.type)) {
        tk_diag *d;
        const char *shape = tk_shape_text(c->arena, want->rank, want->dim);
        if (v.type->rank == 0 || want->rank == 0) {
            d = tk_err_diag(c, v.span, "shape-mismatch", "%s is %s where %s is expected", what,
                            v.type->rank ? tk_type_text(c->arena, v.type) : "a scalar",
                            want->rank ? tk_type_text(c->arena, want) : "a scalar");
        } else {
            d = tk_err_diag(c, v.span, "shape-mismatch", "%s has shape %s where %s is expected",
                            what, tk_shape_text(c->arena, v.type->rank, v.type->dim), shape);
        }
        unsigned rank;
        int64_t dim[TK_MAX_RANK];
        const char *s = tk_source_text(c, v.span);
        if (s && want->rank && tk_broadcast(v.type, want, &rank, dim) && rank == want->rank) {
            tk_help(c->diags, d, (tk_span){0}, "write '%s(%s%s%s)'",
                    v.type->rank ? "broadcast" : "full", v.type->rank ? s : shape, ", ",
                    v.type->rank ? shape : s);
        }
        return tk_error_value(v.span);
    }
    return tk_coerce(c, v, want->dtype, what);
}
