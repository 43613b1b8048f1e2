// SPDX-License-Identifier: Apache-2.0
// Conversions: untyped constants, implicit widening, casts, the common type of operands.
#include "lang/check_core.h"

#include <math.h>
#include <string.h>

static uint64_t magnitude(tk_number n) {
    return n.big ? (uint64_t)n.i : n.i < 0 ? 0 - (uint64_t)n.i : (uint64_t)n.i;
}

static bool fits_int(tk_number n, tk_dtype to) {
    return tk_num_holds_int(to, !n.big && n.i < 0, magnitude(n));
}

static tk_value out_of_range(tk_checker *c, tk_value v, tk_dtype to, const char *what) {
    tk_diag *d = tk_err_diag(c, v.span, "constant-range", "%s %s does not fit %s", what,
                             tk_number_text(c, v.num), tk_dtype_name(to));
    if (tk_dtype_is_int(to) && !v.num.is_float) {
        tk_const lo = tk_const_least(to), hi = tk_const_greatest(to);
        tk_help(c->diags, d, (tk_span){0}, "%s holds %s to %s", tk_dtype_name(to),
                tk_number_text(c, tk_const_number(lo)), tk_number_text(c, tk_const_number(hi)));
    }
    return tk_error_value(v.span);
}

static tk_value untyped_to_float(tk_checker *c, tk_value v, tk_dtype to, const char *what) {
    tk_const k;
    if (v.num.is_float) {
        k = tk_const_f64(to, v.num.f);
        double greatest = fabs(tk_const_as_f64(tk_const_greatest(to)));
        bool saturates = !tk_const_is_inf(tk_const_greatest(to)) && fabs(v.num.f) > greatest;
        if (isfinite(v.num.f) && (tk_const_is_inf(k) || saturates)) {
            return out_of_range(c, v, to, what);
        }
        return tk_make_const(c, v.span, k);
    }
    k = v.num.big ? tk_const_u64(to, (uint64_t)v.num.i) : tk_const_i64(to, v.num.i);
    double m = (double)magnitude(v.num);
    if (tk_const_is_inf(k) || (tk_dtype_size(to) == 1 && fabs(tk_const_as_f64(k)) < m * 0.75)) {
        return out_of_range(c, v, to, what);
    }
    if (!tk_num_holds_int(to, !v.num.big && v.num.i < 0, magnitude(v.num))) {
        tk_warn_diag(c, v.span, "inexact-literal", "%s cannot hold %s exactly: it becomes %s",
                     tk_dtype_name(to), tk_number_text(c, v.num),
                     tk_number_text(c, tk_const_number(k)));
    }
    return tk_make_const(c, v.span, k);
}

static tk_value untyped_to_int(tk_checker *c, tk_value v, tk_dtype to, const char *what) {
    if (v.num.is_float) {
        tk_diag *d = tk_err_diag(c, v.span, "type-mismatch",
                                 "%s is the float constant %s where %s is expected", what,
                                 v.dep ? "?" : tk_number_text(c, v.num), tk_dtype_name(to));
        if (!v.dep && v.num.f == floor(v.num.f) && fabs(v.num.f) < 1e15) {
            tk_help(c->diags, d, (tk_span){0}, "write '%.0f'", v.num.f);
        } else {
            const char *s = tk_source_text(c, v.span);
            tk_help(c->diags, d, (tk_span){0}, "write '%s(f32(%s))' to truncate it",
                    tk_dtype_name(to), s ? s : "x");
        }
        return tk_error_value(v.span);
    }
    if (v.dep) {
        return tk_dep_const(c, v.span, to, false);
    }
    if (!fits_int(v.num, to)) {
        return out_of_range(c, v, to, what);
    }
    return tk_make_const(
        c, v.span, v.num.big ? tk_const_u64(to, (uint64_t)v.num.i) : tk_const_i64(to, v.num.i));
}

static tk_value coerce_untyped(tk_checker *c, tk_value v, tk_dtype to, const char *what) {
    if (tk_dtype_is_float(to)) {
        return v.dep ? tk_dep_const(c, v.span, to, false) : untyped_to_float(c, v, to, what);
    }
    if (tk_dtype_is_int(to)) {
        return untyped_to_int(c, v, to, what);
    }
    tk_diag *d =
        tk_err_diag(c, v.span, "type-mismatch", "%s is a number where bool is expected", what);
    tk_help(c->diags, d, (tk_span){0}, "write 'true', 'false' or a comparison");
    return tk_error_value(v.span);
}

// What general checking makes of a value whose type, or whose place's type, depends.
static tk_value coerce_dep(tk_checker *c, tk_value v, tk_dtype to) {
    if (v.is_const) {
        v = tk_dep_const(c, v.span, to == TK_DTYPE_DEP ? v.type->dtype : to, false);
        v.type = tk_scalar(c, to);
        return v;
    }
    tk_value w = tk_make_dep(c, v.span, tk_type_with_dtype(c->arena, v.type, to));
    w.varying = v.varying;
    w.x->varying = v.varying;
    return w;
}

static tk_value convert(tk_checker *c, tk_value v, tk_dtype to) {
    if (v.is_const && !v.dep) {
        return tk_make_const(c, v.span, tk_cast(v.x->u.konst, to));
    }
    if (v.is_const) {
        return tk_dep_const(c, v.span, to, false);
    }
    tk_value w = tk_make_value(c, tk_x_cast(c, v.span, to, tk_materialize(c, v)));
    return w;
}

tk_value tk_coerce(tk_checker *c, tk_value v, tk_dtype to, const char *what) {
    v = tk_read(c, v);
    if (v.kind != TK_V_VALUE || to == TK_DTYPE_COUNT) {
        return tk_error_value(v.span);
    }
    tk_dtype from = v.type->dtype;
    if (!v.untyped && from == to) {
        return v;
    }
    if (to == TK_DTYPE_DEP || (from == TK_DTYPE_DEP && !v.untyped)) {
        return coerce_dep(c, v, to);
    }
    if (v.untyped) {
        return coerce_untyped(c, v, to, what);
    }
    if (tk_dtype_widens(from, to)) {
        return convert(c, v, to);
    }
    tk_diag *d = tk_err_diag(c, v.span, "type-mismatch", "%s is %s where %s is expected", what,
                             tk_dtype_name(from), tk_dtype_name(to));
    const char *help = tk_cast_help(c, v.span, v.span, tk_dtype_name(to));
    if (to == TK_BOOL) {
        const char *s = tk_source_text(c, v.span);
        help = s ? tk_format(c->arena, "%s != 0", s) : NULL;
    }
    if (help) {
        tk_help(c->diags, d, (tk_span){0}, "write '%s'", help);
    }
    return tk_error_value(v.span);
}

// ---- Casts ----------------------------------------------------------------------------------
tk_value tk_cast_value(tk_checker *c, tk_span at, tk_dtype to, tk_value v) {
    v = tk_read(c, v);
    if (v.kind != TK_V_VALUE || to == TK_DTYPE_COUNT) {
        return tk_error_value(at);
    }
    if (v.untyped && to == TK_BOOL) {
        bool truth = v.num.is_float ? v.num.f != 0 : v.num.i != 0;
        return v.dep ? tk_dep_const(c, at, TK_BOOL, false) : tk_make_bool(c, at, truth);
    }
    tk_value r;
    if (to == TK_DTYPE_DEP || v.type->dtype == TK_DTYPE_DEP) {
        r = coerce_dep(c, v, to);
    } else if (v.untyped) {
        r = coerce_untyped(c, v, to, tk_format(c->arena, "argument of '%s'", tk_dtype_name(to)));
    } else if (v.type->dtype == to) {
        r = v;
    } else {
        r = convert(c, v, to);
    }
    r.span = at;
    r.var = NULL;
    return r;
}

// ---- The common type of operands --------------------------------------------------------------

// The type in which a mismatch of a and b could be settled by casting one.
static tk_dtype wider(tk_dtype a, tk_dtype b) {
    bool fa = tk_dtype_is_float(a), fb = tk_dtype_is_float(b);
    if (fa != fb) {
        return fa ? a : b;
    }
    if (a == TK_BOOL || b == TK_BOOL) {
        return a == TK_BOOL ? b : a;
    }
    return tk_dtype_size(a) >= tk_dtype_size(b) ? a : b;
}

// What is assigned to by += keeps its type: it cannot be cast there, only declared otherwise.
static bool declared(tk_checker *c, tk_diag *d, const tk_value *to, const char *type) {
    const char *s = c->compound ? tk_source_text(c, to->span) : NULL;
    if (s) {
        tk_help(c->diags, d, (tk_span){0},
                "a variable keeps the type of its first value: 'var %s = %s(..)' makes it %s", s,
                type, type);
    }
    return c->compound;
}

static bool mismatch(tk_checker *c, tk_span at, const char *op, const tk_value *a,
                     const tk_value *b) {
    tk_dtype ta = a->type->dtype, tb = b->type->dtype;
    tk_diag *d = tk_err_diag(c, at, "type-mismatch", "'%s' of %s and %s: types are not mixed", op,
                             tk_dtype_name(ta), tk_dtype_name(tb));
    tk_note(c->diags, d, a->span, "this is %s", tk_type_text(c->arena, a->type));
    tk_note(c->diags, d, b->span, "this is %s", tk_type_text(c->arena, b->type));
    tk_dtype to = wider(ta, tb);
    const char *name = tk_dtype_name(to);
    if (tk_dtype_is_narrow_float(ta) && tk_dtype_is_narrow_float(tb)) {
        if (declared(c, d, a, "f32")) {
            return false;
        }
        const char *x = tk_source_text(c, a->span), *y = tk_source_text(c, b->span);
        if (x && y) {
            tk_help(c->diags, d, (tk_span){0}, "cast both: 'f32(%s)' and 'f32(%s)'", x, y);
        }
        return false;
    }
    if (to != ta && declared(c, d, a, name)) {
        return false;
    }
    const char *help = tk_cast_help(c, at, to == ta ? b->span : a->span, name);
    if (help) {
        tk_help(c->diags, d, (tk_span){0}, "write '%s'", help);
    }
    return false;
}

// A float constant with integers: the integers are what is cast.
static bool float_constant(tk_checker *c, tk_span at, const char *op, const tk_value *v) {
    tk_diag *d =
        tk_err_diag(c, at, "type-mismatch", "'%s' of %s and a float constant: types are not mixed",
                    op, tk_dtype_name(v->type->dtype));
    tk_note(c->diags, d, v->span, "this is %s", tk_type_text(c->arena, v->type));
    if (declared(c, d, v, "f32")) {
        return false;
    }
    const char *help = tk_cast_help(c, at, v->span, "f32");
    if (help) {
        tk_help(c->diags, d, (tk_span){0}, "write '%s'", help);
    }
    return false;
}

// TK_DTYPE_COUNT where all are untyped.
static bool common_dtype(tk_checker *c, tk_span at, const char *op, uint32_t n, const tk_value *v,
                         tk_dtype *out) {
    const tk_value *best = NULL;
    bool dep = false;
    for (uint32_t i = 0; i < n; i++) {
        tk_dtype t = v[i].type->dtype;
        if (v[i].untyped) {
            continue;
        }
        if (t == TK_DTYPE_DEP) {
            dep = true;
        } else if (!best || tk_dtype_widens(best->type->dtype, t)) {
            best = &v[i];
        }
    }
    for (uint32_t i = 0; i < n && best; i++) {
        tk_dtype t = v[i].type->dtype, b = best->type->dtype;
        if (!v[i].untyped && t != TK_DTYPE_DEP && t != b && !tk_dtype_widens(t, b)) {
            bool before = best < &v[i];
            return mismatch(c, at, op, before ? best : &v[i], before ? &v[i] : best);
        }
    }
    for (uint32_t i = 0; i < n && best && tk_dtype_is_int(best->type->dtype); i++) {
        if (v[i].untyped && v[i].num.is_float) {
            return float_constant(c, at, op, best);
        }
    }
    *out = best ? best->type->dtype : dep ? TK_DTYPE_DEP : TK_DTYPE_COUNT;
    if (dep && best && tk_dtype_is_int(*out) && *out != TK_I64 && *out != TK_U64) {
        *out = TK_DTYPE_DEP; // the other one may turn out wider
    }
    return true;
}

static void untyped_together(uint32_t n, tk_value *v) {
    bool any_float = false;
    for (uint32_t i = 0; i < n; i++) {
        any_float |= v[i].num.is_float;
    }
    for (uint32_t i = 0; i < n && any_float; i++) {
        tk_number *k = &v[i].num;
        if (!k->is_float && !k->is_bool) {
            k->f = k->big ? (double)(uint64_t)k->i : (double)k->i;
            k->is_float = true;
            k->big = false;
        }
    }
}

bool tk_unify(tk_checker *c, tk_span at, const char *op_text, uint32_t n, tk_value *v) {
    for (uint32_t i = 0; i < n; i++) {
        v[i] = tk_read(c, v[i]);
        if (v[i].kind != TK_V_VALUE) {
            return false;
        }
    }
    tk_dtype to;
    if (!common_dtype(c, at, op_text, n, v, &to)) {
        return false;
    }
    if (to == TK_DTYPE_COUNT) {
        untyped_together(n, v);
        for (uint32_t i = 0; i < n; i++) {
            if (v[i].num.is_float) {
                v[i].type = tk_scalar(c, TK_F32);
            }
        }
        return true;
    }
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = tk_coerce(c, v[i], to, tk_format(c->arena, "operand of '%s'", op_text));
        ok = v[i].kind == TK_V_VALUE && ok;
    }
    return ok;
}

const tk_type *tk_common_shape(tk_checker *c, tk_span at, const char *op_text, uint32_t n,
                               const tk_value *v, tk_dtype d) {
    const tk_type *t = tk_scalar(c, d);
    for (uint32_t i = 0; i < n; i++) {
        unsigned rank;
        int64_t dim[TK_MAX_RANK];
        if (v[i].kind != TK_V_VALUE) {
            return NULL;
        }
        if (!tk_broadcast(t, v[i].type, &rank, dim)) {
            tk_diag *e = tk_err_diag(c, at, "shape-mismatch",
                                     "'%s' of shapes %s and %s: they do not broadcast", op_text,
                                     tk_shape_text(c->arena, t->rank, t->dim),
                                     tk_shape_text(c->arena, v[i].type->rank, v[i].type->dim));
            for (uint32_t k = 0; k < n; k++) {
                tk_note(c->diags, e, v[k].span, "this is %s", tk_type_text(c->arena, v[k].type));
            }
            return NULL;
        }
        if (rank > 0) {
            t = tk_type_tile(c->arena, d, rank, dim);
        }
    }
    return t->rank == 0 || tk_shape_ok(c, at, t->rank, t->dim) ? t : NULL;
}
