// SPDX-License-Identifier: Apache-2.0
// Built-in calls that change elements of a tensor atomically.
//
// Element types: atomic_add takes i32 u32 i64 u64 f16 bf16 f32 f64; atomic_max and atomic_min the
// same; and, or, xor take integers of 32 and 64 bits; xchg and cas any type of 32 or 64 bits.
#include "lang/check_builtin.h"

static bool takes(tk_builtin id, tk_dtype t) {
    if (t == TK_DTYPE_DEP) {
        return true;
    }
    bool wide = tk_dtype_bits(t) == 32 || tk_dtype_bits(t) == 64;
    if (id == TK_BI_ATOMIC_AND || id == TK_BI_ATOMIC_OR || id == TK_BI_ATOMIC_XOR) {
        return wide && tk_dtype_is_int(t);
    }
    if (id == TK_BI_ATOMIC_XCHG || id == TK_BI_ATOMIC_CAS) {
        return wide;
    }
    return wide || t == TK_F16 || t == TK_BF16;
}

static const char *taken(tk_builtin id) {
    if (id == TK_BI_ATOMIC_AND || id == TK_BI_ATOMIC_OR || id == TK_BI_ATOMIC_XOR) {
        return "i32, u32, i64 and u64";
    }
    if (id == TK_BI_ATOMIC_XCHG || id == TK_BI_ATOMIC_CAS) {
        return "i32, u32, i64, u64, f32 and f64";
    }
    return "i32, u32, i64, u64, f16, bf16, f32 and f64";
}

// Which tensor may be changed atomically; reported where it may not.
static bool tensor_fits(tk_bcall *b, tk_value v) {
    const tk_var *tensor = v.view->tensor;
    const char *access = tensor->type->access == TK_IN ? "in" : "out";
    if (tensor->type->access != TK_INOUT) {
        tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "access",
                                 "'%s' reads and writes, but '%s' is an '%s' tensor", b->name,
                                 tensor->name, access);
        tk_note(tk_checker_diags(b->c), d, tensor->span, "'%s' is declared here", tensor->name);
        tk_bi_help(b, d, "declare it 'inout': '%s: inout %s[..]'", tensor->name,
                   tk_dtype_name(tensor->type->dtype));
        return false;
    }
    if (!takes(b->id, v.type->dtype)) {
        tk_err(b->c, b->arg[0]->span, "type-mismatch", "'%s' takes %s; '%s' is %s", b->name,
               taken(b->id), tensor->name, tk_dtype_name(v.type->dtype));
        return false;
    }
    return true;
}

static bool read_view(tk_bcall *b, tk_value *out) {
    tk_value v = tk_check_expr(b->c, b->arg[0]);
    if (v.kind == TK_V_NAME) {
        v = tk_read(b->c, v); // unknown
    }
    *out = v;
    if (v.kind == TK_V_ERROR) {
        return false;
    }
    if (v.kind != TK_V_VIEW) {
        tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "not-a-view",
                                 "'%s' changes elements of a tensor: its first argument must be an "
                                 "indexed tensor",
                                 b->name);
        if (v.kind == TK_V_TENSOR) {
            tk_bi_help(b, d, "write '%s(%s[..], ..)'", b->name, tk_bi_arg_source(b, 0));
        }
        return false;
    }
    bool ok = tensor_fits(b, v);
    if (v.other) {
        tk_err(b->c, v.other->span, "else-not-allowed",
               "'else' has no meaning here: '%s' of an element outside gives 0", b->name);
        ok = false;
    }
    if (tk_checker_lifted(b->c) && !v.varying) {
        tk_err(b->c, b->arg[0]->span, "whole-tile-built-in",
               "'%s' in a function that is applied to each element of a tile needs an index that "
               "depends on the element",
               b->name);
        ok = false;
    }
    return ok;
}

// A value operand: of the element type, with a shape that broadcasts to the view's.
static bool read_operand(tk_bcall *b, uint32_t i, const tk_type *view, tk_value *out) {
    tk_value v;
    if (!tk_bi_value(b, i, &v)) {
        return false;
    }
    if (!view) {
        return false; // the view was reported already
    }
    const char *what = tk_format(tk_checker_arena(b->c), "argument '%s'", b->param[i].name);
    *out = tk_coerce(b->c, v, view->dtype, what);
    if (out->kind != TK_V_VALUE) {
        return false;
    }
    const tk_type *t = out->type;
    bool fits = t->rank <= view->rank;
    for (unsigned k = 0; fits && k < t->rank; k++) { // from the right
        int64_t from = t->dim[t->rank - 1 - k];
        fits = from == 1 || tk_bi_dim_eq(from, view->dim[view->rank - 1 - k]);
    }
    if (!fits) {
        tk_arena *a = tk_checker_arena(b->c);
        tk_err(b->c, b->arg[i]->span, "shape-mismatch",
               "shape %s does not broadcast to %s, the view's", tk_shape_text(a, t->rank, t->dim),
               tk_shape_text(a, view->rank, view->dim));
    }
    return fits;
}

static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
static const char *const scopes[] = {"device", "block", "system"};

// atomic_OP(view, value, order, scope); atomic_cas(view, expected, value, order, scope)
tk_value tk_rule_atomic(tk_bcall *b) {
    static const tk_order order_of[] = {TK_ORDER_RELAXED, TK_ORDER_ACQUIRE, TK_ORDER_RELEASE,
                                        TK_ORDER_ACQ_REL};
    static const tk_memscope scope_of[] = {TK_SCOPE_DEVICE, TK_SCOPE_BLOCK, TK_SCOPE_SYSTEM};
    uint32_t values = b->n - 3; // all parameters but view, order and scope
    tk_value view;
    tk_value v[TK_BI_MAX_PARAMS];
    uint32_t order;
    uint32_t scope;
    bool ok = read_view(b, &view);
    const tk_type *type = ok ? view.type : NULL;
    for (uint32_t i = 0; i < values; i++) {
        ok = read_operand(b, 1 + i, type, &v[i]) && ok;
    }
    ok = tk_bi_choice(b, 1 + values, 4, orders, &order) && ok;
    ok = tk_bi_choice(b, 2 + values, 3, scopes, &scope) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    tk_x *x = tk_x_new(b->c, TK_X_ATOMIC, b->call->span, type, values);
    for (uint32_t i = 0; i < values; i++) {
        tk_bi_operand(b, x, i, v[i]);
    }
    x->varying |= view.varying;
    x->u.atomic.id = b->id;
    x->u.atomic.view = view.view;
    x->u.atomic.order = order_of[order];
    x->u.atomic.scope = scope_of[scope];
    return tk_bi_result(b, x);
}
