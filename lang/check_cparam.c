// SPDX-License-Identifier: Apache-2.0
// Compile-time parameters: kinds, values, and functions as their values.
#include "lang/check_core.h"

#include <string.h>

tk_ckind tk_cparam_kind(tk_checker *c, const tk_cparam *p, bool report) {
    static const struct {
        const char *name;
        tk_ckind kind;
    } table[] = {
        {"type", TK_CK_TYPE}, {"int", TK_CK_INT}, {"bool", TK_CK_BOOL}, {"float", TK_CK_FLOAT}};
    const tk_ast_type *t = p->kind;
    if (!t) {
        return TK_CK_BAD;
    }
    if (t->kind == TK_AT_FN) {
        return TK_CK_FN;
    }
    for (size_t i = 0; t->kind == TK_AT_NAME && !t->has_dims && !t->access && t->name.name &&
                       i < sizeof table / sizeof *table;
         i++) {
        if (strcmp(t->name.name, table[i].name) == 0) {
            return table[i].kind;
        }
    }
    if (report) {
        tk_dtype dt;
        const char *name = t->kind == TK_AT_NAME && t->name.name ? t->name.name : "";
        bool known = tk_dtype_from_name(name, strlen(name), &dt);
        tk_diag *d =
            tk_err_diag(c, t->span, "bad-kind",
                        "a compile-time parameter is a type, int, bool, float or function");
        if (known) {
            tk_help(c->diags, d, (tk_span){0}, "write '%s'",
                    tk_dtype_is_float(dt) ? "float" : "int");
        }
    }
    return TK_CK_BAD;
}

tk_value tk_cparam_dep(tk_checker *c, const tk_cparam *p) {
    tk_span at = p->name.span;
    switch (tk_cparam_kind(c, p, false)) {
    case TK_CK_TYPE:
        return tk_type_value(at, TK_DTYPE_DEP);
    case TK_CK_INT:
        return tk_dep_const(c, at, TK_I32, true);
    case TK_CK_BOOL:
        return tk_dep_const(c, at, TK_BOOL, false);
    case TK_CK_FLOAT:
        return tk_dep_const(c, at, TK_F32, true);
    case TK_CK_FN: {
        tk_fnval *fv = TK_NEW(c->arena, tk_fnval);
        fv->kind = TK_FV_DEP;
        fv->name = p->name.name;
        fv->sig = tk_resolve_sig(c, p->kind);
        return fv->sig ? tk_fn_value(at, fv) : tk_error_value(at);
    }
    case TK_CK_BAD:
        break;
    }
    return tk_error_value(at);
}

static tk_value number_value(tk_checker *c, const tk_cparam *p, tk_value v, bool want_float) {
    const char *what = tk_format(c->arena, "parameter '%s'", p->name.name);
    int64_t i;
    bool dep;
    if (!want_float) {
        return tk_const_int(c, v, what, &i, &dep)
                   ? tk_make_number(c, v.span, (tk_number){.i = i}, dep)
                   : tk_error_value(v.span);
    }
    v = tk_read(c, v);
    if (v.kind != TK_V_VALUE) {
        return tk_error_value(v.span);
    }
    if (!v.is_const) {
        return tk_err(c, v.span, "not-constant", "%s must be known at compile time", what);
    }
    if (v.num.is_bool) {
        return tk_err(c, v.span, "type-mismatch", "%s is a float, not a bool", what);
    }
    tk_number n = v.num;
    if (!n.is_float) {
        n = (tk_number){.is_float = true, .f = n.big ? (double)(uint64_t)n.i : (double)n.i};
    }
    return tk_make_number(c, v.span, n, v.dep);
}

static tk_value wrong_kind(tk_checker *c, const tk_cparam *p, tk_value v, const char *want) {
    if (v.kind == TK_V_NAME) {
        tk_unknown_name(c, v.span, v.name, "name");
    } else if (v.kind != TK_V_ERROR) {
        tk_diag *d = tk_err_diag(c, v.span, "type-mismatch", "parameter '%s' is %s, not %s",
                                 p->name.name, want, tk_value_what(c, v));
        tk_note(c->diags, d, p->span, "'%s' is declared here", p->name.name);
    }
    return tk_error_value(v.span);
}

tk_value tk_cparam_value(tk_checker *c, const tk_cparam *p, tk_value v) {
    bool b, dep;
    switch (tk_cparam_kind(c, p, false)) {
    case TK_CK_TYPE:
        return v.kind == TK_V_TYPE ? v : wrong_kind(c, p, v, "a type");
    case TK_CK_INT:
        return number_value(c, p, v, false);
    case TK_CK_FLOAT:
        return number_value(c, p, v, true);
    case TK_CK_BOOL:
        if (!tk_const_truth(c, v, tk_format(c->arena, "parameter '%s'", p->name.name), &b, &dep)) {
            return tk_error_value(v.span);
        }
        return dep ? tk_dep_const(c, v.span, TK_BOOL, false) : tk_make_bool(c, v.span, b);
    case TK_CK_FN: {
        if (v.kind != TK_V_FN) {
            return wrong_kind(c, p, v, "a function");
        }
        const tk_sig *sig = tk_resolve_sig(c, p->kind);
        const tk_fnval *fv = sig ? tk_fn_with_sig(c, v.span, v.fn, sig) : NULL;
        return fv ? tk_fn_value(v.span, fv) : tk_error_value(v.span);
    }
    case TK_CK_BAD:
        break;
    }
    return tk_error_value(v.span);
}

bool tk_cval_dep(tk_value v) { return v.dep || (v.kind == TK_V_FN && v.fn->kind == TK_FV_DEP); }

bool tk_cval_eq(tk_value a, tk_value b) {
    if (a.kind != b.kind) {
        return false;
    }
    if (a.kind == TK_V_TYPE) {
        return a.dtype == b.dtype;
    }
    if (a.kind == TK_V_FN) {
        return a.fn == b.fn || (a.fn->kind == b.fn->kind && a.fn->fn == b.fn->fn &&
                                a.fn->builtin == b.fn->builtin && a.fn->elem == b.fn->elem &&
                                a.fn->owner == b.fn->owner);
    }
    return tk_const_same(tk_number_const(a.num), tk_number_const(b.num));
}

// Text that tells values apart: in keys of instances and of programs, and for notes.
void tk_cval_text(tk_checker *c, tk_buf *b, tk_value v) {
    if (tk_cval_dep(v) || v.kind == TK_V_ERROR) {
        tk_buf_str(b, "?");
    } else if (v.kind == TK_V_TYPE) {
        tk_buf_str(b, tk_dtype_name(v.dtype));
    } else if (v.kind == TK_V_FN && v.fn->fn && !v.fn->fn->name.name) {
        const tk_source *s = tk_source_of(c->unit->sources, v.fn->fn->span.file);
        tk_buf_fmt(b, "fn@%s:%u", s ? s->name : "?", v.fn->fn->span.begin);
    } else if (v.kind == TK_V_FN) {
        tk_buf_str(b, v.fn->name);
    } else if (v.num.is_float) {
        tk_buf_fmt(b, "%.17g", v.num.f);
    } else {
        tk_buf_str(b, tk_number_text(c, v.num));
    }
}

// ---- Functions as values ----------------------------------------------------------------------
static const char *sig_text(tk_checker *c, const tk_sig *s) {
    tk_buf b;
    tk_buf_init(&b, c->arena);
    tk_buf_str(&b, "fn(");
    for (uint32_t i = 0; i < s->n; i++) {
        tk_buf_str(&b, i ? ", " : "");
        tk_type_print(&b, s->arg[i]);
    }
    tk_buf_str(&b, ")");
    if (s->result->kind != TK_T_VOID) {
        tk_buf_str(&b, " -> ");
        tk_type_print(&b, s->result);
    }
    return tk_buf_text(&b);
}

static const tk_fnval *sig_error(tk_checker *c, tk_span at, const tk_fnval *fv, const tk_sig *sig,
                                 const char *why) {
    tk_diag *d = tk_err_diag(c, at, "signature-mismatch", "'%s' is no %s: %s",
                             fv->name ? fv->name : "fn", sig_text(c, sig), why);
    if (fv->fn) {
        tk_note(c->diags, d, fv->fn->span, "it is declared here");
    }
    return NULL;
}

static bool type_fits(const tk_type *a, const tk_type *b) {
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == TK_T_TUPLE) {
        bool ok = a->n == b->n;
        for (uint32_t i = 0; ok && i < a->n; i++) {
            ok = type_fits(a->elem[i], b->elem[i]);
        }
        return ok;
    }
    return a->kind == TK_T_VOID || (tk_dtype_fits(a->dtype, b->dtype) && tk_shape_fits(a, b));
}

static const tk_fnval *with_sig(tk_checker *c, const tk_fnval *fv, const tk_sig *sig) {
    tk_fnval *y = TK_NEW(c->arena, tk_fnval);
    *y = *fv;
    y->sig = sig;
    return y;
}

static const char *differs(tk_checker *c, const char *what, const tk_type *is,
                           const tk_type *want) {
    return tk_format(c->arena, "%s is %s, not %s", what, tk_type_text(c->arena, is),
                     tk_type_text(c->arena, want));
}

static const tk_fnval *code_with_sig(tk_checker *c, tk_span at, const tk_fnval *fv,
                                     const tk_sig *sig) {
    const tk_fn *fn = fv->fn;
    if (fn->params.n != sig->n) {
        return sig_error(c, at, fv, sig,
                         tk_format(c->arena, "it takes %u argument%s, not %u", fn->params.n,
                                   fn->params.n == 1 ? "" : "s", sig->n));
    }
    tk_call k;
    tk_call_init(c, &k, fv, at);
    for (uint32_t i = 0; i < sig->n; i++) {
        if (fn->params.at[i].type && fn->params.at[i].type->access) {
            return sig_error(c, at, fv, sig, "it takes a tensor");
        }
        k.arg[i] = tk_make_dep(c, at, sig->arg[i]);
        k.has[i] = true;
    }
    if (!tk_call_infer(c, &k)) {
        return NULL;
    }
    tk_scope *old = c->scope;
    c->scope = tk_call_scope(c, &k);
    const tk_fnval *y = with_sig(c, fv, sig);
    for (uint32_t i = 0; y && i < sig->n; i++) {
        const tk_type *t = tk_resolve_type(c, fn->params.at[i].type);
        if (!t) {
            y = NULL;
        } else if (!type_fits(t, sig->arg[i])) {
            const char *what = tk_format(c->arena, "parameter '%s'", fn->params.at[i].name.name);
            y = sig_error(c, at, fv, sig, differs(c, what, t, sig->arg[i]));
        }
    }
    const tk_type *r = y ? tk_resolve_result(c, fn->result) : NULL;
    if (r && !type_fits(r, sig->result)) {
        y = sig_error(c, at, fv, sig, differs(c, "its result", r, sig->result));
    }
    c->scope = old;
    return r ? y : NULL;
}

static bool sig_dep(const tk_sig *s) {
    bool dep = tk_type_is_dep(s->result);
    for (uint32_t i = 0; i < s->n; i++) {
        dep = dep || tk_type_is_dep(s->arg[i]);
    }
    return dep;
}

const tk_fnval *tk_fn_with_sig(tk_checker *c, tk_span at, const tk_fnval *fv, const tk_sig *sig) {
    switch (fv->kind) {
    case TK_FV_CODE:
        return code_with_sig(c, at, fv, sig);
    case TK_FV_SAME:
        if (sig->n == 0 || !type_fits(sig->arg[0], sig->result)) {
            return sig_error(c, at, fv, sig, "'same' gives its first argument");
        }
        return with_sig(c, fv, sig);
    case TK_FV_ALWAYS:
        if (sig->result->kind != TK_T_VALUE || !tk_dtype_fits(TK_BOOL, sig->result->dtype)) {
            return sig_error(c, at, fv, sig, "'always' gives true");
        }
        return with_sig(c, fv, sig);
    case TK_FV_BUILTIN: {
        const tk_fnval *code = tk_fn_as_code(c, at, with_sig(c, fv, sig));
        return code->kind == TK_FV_CODE || sig_dep(sig)
                   ? code
                   : sig_error(c, at, fv, sig, "a built-in stands only for a function on scalars");
    }
    case TK_FV_DEP: {
        bool ok = fv->sig->n == sig->n && type_fits(fv->sig->result, sig->result);
        for (uint32_t i = 0; ok && i < sig->n; i++) {
            ok = type_fits(fv->sig->arg[i], sig->arg[i]);
        }
        return ok ? with_sig(c, fv, sig)
                  : sig_error(c, at, fv, sig,
                              tk_format(c->arena, "it is %s", sig_text(c, fv->sig)));
    }
    }
    return NULL;
}
