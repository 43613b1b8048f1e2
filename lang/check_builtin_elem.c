// SPDX-License-Identifier: Apache-2.0
// Built-in calls that are element-wise: the rows TK_BUILTIN_ELEM, where, min and max and their
// like, clamp, bitcast. They become ELEM nodes, bitcast a BUILTIN node.
#include "lang/check_builtin.h"

tk_value tk_rule_elem(tk_bcall *b) {
    tk_value v[TK_BI_MAX_PARAMS];
    bool ok = true;
    for (uint32_t i = 0; i < b->n; i++) {
        ok = tk_bi_value(b, i, &v[i]) && ok;
    }
    return ok ? tk_elem(b->c, b->call->span, b->elem, b->name, b->n, v) : tk_bi_error(b);
}

tk_value tk_rule_where(tk_bcall *b) {
    tk_value v[3];
    bool ok = tk_bi_cond(b, 0, &v[0]);
    ok = tk_bi_value(b, 1, &v[1]) && ok;
    ok = tk_bi_value(b, 2, &v[2]) && ok;
    return ok ? tk_elem(b->c, b->call->span, TK_NUM_SELECT, b->name, 3, v) : tk_bi_error(b);
}

tk_value tk_rule_clamp(tk_bcall *b) {
    tk_value v[3];
    bool ok = true;
    for (uint32_t i = 0; i < 3; i++) {
        ok = tk_bi_value(b, i, &v[i]) && ok;
    }
    return ok ? tk_elem(b->c, b->call->span, TK_NUM_CLAMP, b->name, 3, v) : tk_bi_error(b);
}

static tk_numop fold_op(tk_builtin id) {
    return id == TK_BI_MIN    ? TK_NUM_MIN
           : id == TK_BI_MAX  ? TK_NUM_MAX
           : id == TK_BI_FMIN ? TK_NUM_FMIN
                              : TK_NUM_FMAX;
}

// f(a, b, c) is f(f(a, b), c).
tk_value tk_rule_fold(tk_bcall *b) {
    uint32_t n = b->call->u.call.args.n;
    tk_value acc = tk_bi_error(b);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        const tk_arg *a = &b->call->u.call.args.at[i];
        if (a->name.name) {
            tk_diag *d = tk_err_diag(b->c, a->name.span, "unknown-argument",
                                     "the operands of '%s' have no names", b->name);
            tk_bi_help_signature(b, d);
            return tk_bi_error(b);
        }
    }
    if (n < 2) {
        tk_diag *d = tk_err_diag(b->c, b->call->span, "missing-argument",
                                 "'%s' needs two operands or more", b->name);
        tk_bi_help_signature(b, d);
        return tk_bi_error(b);
    }
    for (uint32_t i = 0; i < n; i++) {
        tk_value v = tk_check_value(b->c, b->call->u.call.args.at[i].value);
        ok = ok && v.kind == TK_V_VALUE;
        if (i == 0 || !ok) {
            acc = v;
            continue;
        }
        tk_value both[2] = {acc, v};
        acc = tk_elem(b->c, b->call->span, fold_op(b->id), b->name, 2, both);
        ok = acc.kind == TK_V_VALUE;
    }
    return ok ? acc : tk_bi_error(b);
}

// A reduction with one operand, else a fold over the operands.
tk_value tk_rule_minmax(tk_bcall *b) {
    uint32_t by_place = 0;
    bool axis = false;
    for (uint32_t i = 0; i < b->call->u.call.args.n; i++) {
        const tk_arg *a = &b->call->u.call.args.at[i];
        by_place += a->name.name == NULL;
        axis |= a->name.name && strcmp(a->name.name, "axis") == 0;
    }
    if (by_place > 1 && axis) {
        tk_diag *d =
            tk_err_diag(b->c, b->call->span, "surplus-argument",
                        "'%s' of several operands is element-wise and takes no 'axis'", b->name);
        tk_bi_help_signature(b, d);
        return tk_bi_error(b);
    }
    if (by_place > 1) {
        return tk_rule_fold(b);
    }
    const char *second = strstr(b->signature, " or ");
    TK_CHECK(tk_checker_arena(b->c), second != NULL);
    return tk_bi_match(b, second) ? tk_rule_reduce(b) : tk_bi_error(b);
}

tk_value tk_rule_bitcast(tk_bcall *b) {
    tk_value v;
    tk_dtype to;
    bool ok = tk_bi_typed(b, 0, &v);
    ok = tk_bi_type(b, 1, &to) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    tk_dtype from = v.type->dtype;
    if (from == TK_BOOL || to == TK_BOOL) {
        tk_diag *d = tk_err_diag(b->c, b->call->span, "type-mismatch",
                                 "'bitcast' takes and gives numbers, not bool");
        tk_bi_help(b, d, "write '%s(%s)'", tk_dtype_name(to), tk_bi_arg_source(b, 0));
        return tk_bi_error(b);
    }
    bool known = from != TK_DTYPE_DEP && to != TK_DTYPE_DEP;
    if (known && tk_dtype_bits(from) != tk_dtype_bits(to)) {
        return tk_err(b->c, b->call->span, "type-mismatch",
                      "'bitcast' keeps the width: %s has %u bits, %s has %u", tk_dtype_name(from),
                      tk_dtype_bits(from), tk_dtype_name(to), tk_dtype_bits(to));
    }
    if (known && v.is_const && !v.dep && v.x && v.x->kind == TK_X_CONST) {
        return tk_make_const(b->c, b->call->span, (tk_const){to, v.x->u.konst.bits});
    }
    const tk_type *type = tk_type_with_dtype(tk_checker_arena(b->c), v.type, to);
    return tk_bi_unary(b, type, v);
}
