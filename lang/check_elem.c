// SPDX-License-Identifier: Apache-2.0
// Element-wise operations: classes, broadcasting, folding.
#include "lang/check_core.h"

#include <math.h>
#include <string.h>

// ---- Untyped constants ------------------------------------------------------------------------
static bool int_overflows(tk_numop op, int64_t a, int64_t b) {
    int64_t r;
    if (op == TK_NUM_ADD) {
        return __builtin_add_overflow(a, b, &r);
    }
    if (op == TK_NUM_SUB) {
        return __builtin_sub_overflow(a, b, &r);
    }
    if (op == TK_NUM_MUL) {
        return __builtin_mul_overflow(a, b, &r);
    }
    return (op == TK_NUM_NEG || op == TK_NUM_ABS) && a == INT64_MIN;
}

static tk_value fold_big(tk_checker *c, tk_span at, tk_numop op, const tk_value *v) {
    if (op == TK_NUM_NEG && (uint64_t)v[0].num.i == (uint64_t)1 << 63) {
        return tk_make_int(c, at, INT64_MIN);
    }
    tk_diag *d = tk_err_diag(c, at, "constant-range",
                             "a constant expression is computed in i64, which is too small here");
    tk_help(c->diags, d, (tk_span){0}, "write 'u64(..)' around the large literal");
    return tk_error_value(at);
}

// v are untyped, all integers or all floats (for SELECT the first is a bool).
tk_value tk_fold_untyped(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                         const tk_value *v) {
    tk_const k[3];
    bool dep = false;
    const tk_number *last = &v[n - 1].num;
    tk_dtype t = last->is_bool ? TK_BOOL : last->is_float ? TK_F64 : TK_I64;
    tk_dtype r = tk_numop_result(op, t);
    for (uint32_t i = 0; i < n; i++) {
        dep |= v[i].dep;
        k[i] = tk_number_const(v[i].num);
        if (!v[i].dep && v[i].num.big) {
            return fold_big(c, at, op, v);
        }
    }
    if (dep) {
        tk_number z = {.is_float = tk_dtype_is_float(r), .is_bool = r == TK_BOOL};
        return tk_make_number(c, at, z, true);
    }
    if (t == TK_I64 && int_overflows(op, v[0].num.i, v[n > 1 ? 1 : 0].num.i)) {
        return tk_err(c, at, "constant-range", "constant '%s' overflows i64", text);
    }
    tk_const y = tk_num_eval(op, t, k);
    bool finite = true;
    for (uint32_t i = 0; i < n && t == TK_F64; i++) {
        finite = finite && isfinite(v[i].num.f);
    }
    bool grows = op == TK_NUM_ADD || op == TK_NUM_SUB || op == TK_NUM_MUL;
    if (t == TK_F64 && finite && grows && tk_const_is_inf(y)) {
        return tk_err(c, at, "constant-range", "constant '%s' overflows f64", text);
    }
    if (r == TK_BOOL) {
        return tk_make_bool(c, at, y.bits != 0);
    }
    return tk_make_number(c, at, tk_const_number(y), false);
}

// ---- Classes ----------------------------------------------------------------------------------
static const char *taken(tk_checker *c, tk_numop op) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    bool i = tk_numop_takes(op, TK_I32), f = tk_numop_takes(op, TK_F32);
    tk_buf_str(&b, i ? "integers" : "");
    tk_buf_str(&b, f && i ? " and floats" : f ? "floats" : "");
    tk_buf_str(&b, tk_numop_takes(op, TK_BOOL) ? (i || f ? " and bool" : "bool") : "");
    return tk_buf_text(&b);
}

static bool class_error(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                        const tk_value *v, tk_dtype t) {
    const char *to = NULL;
    tk_diag *d;
    if (tk_dtype_is_narrow_float(t) && tk_numop_takes(op, TK_F32)) {
        d = tk_err_diag(c, at, "type-mismatch", "'%s' is not computed in %s", text,
                        tk_dtype_name(t));
        to = "f32";
    } else {
        d = tk_err_diag(c, at, "type-mismatch", "'%s' takes %s, not %s", text, taken(c, op),
                        tk_dtype_name(t));
        if (t == TK_BOOL) {
            to = tk_numop_takes(op, TK_I32) ? "i32" : "f32";
        } else if (tk_dtype_is_int(t) && tk_numop_takes(op, TK_F32)) {
            to = "f32";
        }
    }
    if (op == TK_NUM_NOT && t != TK_BOOL) {
        tk_help(c->diags, d, (tk_span){0},
                tk_dtype_is_int(t) ? "write '~' for the bits, '== 0' for the truth"
                                   : "compare with 0");
    } else if (op == TK_NUM_BNOT && t == TK_BOOL) {
        tk_help(c->diags, d, (tk_span){0}, "write '!' for the opposite of a bool");
    } else if (to && n == 1 && tk_source_text(c, v[0].span)) {
        tk_help(c->diags, d, (tk_span){0}, "write '%s'", tk_cast_help(c, at, v[0].span, to));
    } else if (to) {
        tk_help(c->diags, d, (tk_span){0}, "cast the operands: '%s(x)'", to);
    }
    return false;
}

static bool takes(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                  const tk_value *v, tk_dtype t) {
    return t == TK_DTYPE_DEP || tk_numop_takes(op, t) || class_error(c, at, op, text, n, v, t);
}

static void warn_zero(tk_checker *c, tk_span at, tk_numop op, const tk_value *v) {
    bool divides = op == TK_NUM_DIV || op == TK_NUM_REM;
    if (!divides || !tk_is_known_const(v[1]) || v[1].num.i != 0 || v[1].num.f != 0) {
        return;
    }
    tk_diag *d = tk_warn_diag(c, v[1].span, "division-by-zero", "the divisor is 0");
    tk_note(c->diags, d, at,
            v[1].num.is_float  ? "the result is infinite or NaN"
            : op == TK_NUM_DIV ? "the quotient is 0"
                               : "the remainder is the dividend");
}

static bool folds_untyped(tk_numop op) {
    // These depend on the width.
    return tk_numop_is_exact(op) && op != TK_NUM_CLZ && op != TK_NUM_POPCOUNT && op != TK_NUM_MULHI;
}

static void to_floats(tk_checker *c, uint32_t n, tk_value *v) {
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].untyped && !v[i].num.is_float) {
            double f = v[i].num.big ? (double)(uint64_t)v[i].num.i : (double)v[i].num.i;
            v[i].num = (tk_number){.is_float = true, .f = f};
            v[i].type = tk_scalar(c, TK_F32);
        }
    }
}

// The operation on operands of one type.
static tk_value build(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                      const tk_value *v, tk_dtype t) {
    tk_dtype r = tk_numop_result(op, t == TK_DTYPE_DEP ? TK_I64 : t);
    if (t == TK_DTYPE_DEP && r == TK_I64) {
        r = TK_DTYPE_DEP;
    }
    bool known = tk_numop_is_exact(op), constant = known, dep = false;
    for (uint32_t i = 0; i < n; i++) {
        constant = constant && v[i].is_const;
        dep |= v[i].dep;
    }
    if (constant && dep) {
        tk_value w = tk_dep_const(c, at, r == TK_DTYPE_DEP ? TK_I32 : r, false);
        w.type = tk_scalar(c, r);
        return w;
    }
    tk_x *x[3] = {NULL, NULL, NULL};
    tk_const k[3];
    for (uint32_t i = 0; i < n; i++) {
        x[i] = tk_materialize(c, v[i]);
        constant = constant && x[i]->kind == TK_X_CONST;
        if (constant) {
            k[i] = x[i]->u.konst;
        }
    }
    if (constant && t != TK_DTYPE_DEP) {
        return tk_make_const(c, at, tk_num_eval(op, t, k));
    }
    const tk_type *type = tk_common_shape(c, at, text, n, v, r);
    if (!type) {
        return tk_error_value(at);
    }
    return tk_make_value(c, tk_x_elem(c, at, op, type, x[0], x[1], x[2]));
}

tk_value tk_elem(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                 const tk_value *in) {
    tk_value v[3];
    uint32_t first = op == TK_NUM_SELECT ? 1 : 0;
    TK_CHECK(c->arena, n >= 1 && n <= 3);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = tk_read(c, in[i]);
        ok = v[i].kind == TK_V_VALUE && ok;
    }
    if (!ok) {
        return tk_error_value(at);
    }
    if (first) {
        v[0] = tk_coerce(c, v[0], TK_BOOL, "condition");
    }
    if (!tk_unify(c, at, text, n - first, v + first) || v[0].kind != TK_V_VALUE) {
        return tk_error_value(at);
    }
    bool untyped = true, constant = true;
    for (uint32_t i = first; i < n; i++) {
        untyped = untyped && v[i].untyped;
        constant = constant && v[i].is_const;
    }
    if (untyped) {
        if (!tk_numop_takes(op, TK_I32) && tk_numop_takes(op, TK_F32)) {
            to_floats(c, n, v);
        }
        if (!takes(c, at, op, text, n, v, v[first].type->dtype)) {
            return tk_error_value(at);
        }
        warn_zero(c, at, op, v);
        if (folds_untyped(op) && v[0].is_const) {
            return tk_fold_untyped(c, at, op, text, n, v);
        }
        for (uint32_t i = first; i < n; i++) {
            v[i] = tk_coerce(c, v[i], v[i].type->dtype, "operand");
            if (v[i].kind != TK_V_VALUE) {
                return tk_error_value(at);
            }
        }
    }
    if (!takes(c, at, op, text, n, v, v[first].type->dtype)) {
        return tk_error_value(at);
    }
    warn_zero(c, at, op, v);
    return build(c, at, op, text, n, v, v[first].type->dtype);
}
