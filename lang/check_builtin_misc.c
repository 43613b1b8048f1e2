// SPDX-License-Identifier: Apache-2.0
// Built-in calls of random numbers, of the program and its grid, and of debugging.
#include "lang/check_builtin.h"

// ---- Random numbers

// An integer of
// 32 or 64 bits; a literal is taken as one of 64 that holds it.
static bool read_word(tk_bcall *b, uint32_t i, tk_value *out) {
    if (!tk_bi_value(b, i, out)) {
        return false;
    }
    if (out->untyped && !out->num.is_float && !out->num.is_bool) {
        bool negative = !out->dep && !out->num.big && out->num.i < 0;
        *out = tk_coerce(b->c, *out, negative ? TK_I64 : TK_U64,
                         tk_format(tk_checker_arena(b->c), "argument '%s'", b->param[i].name));
        return out->kind == TK_V_VALUE;
    }
    tk_dtype t = out->type->dtype;
    if (t == TK_DTYPE_DEP || (tk_dtype_is_int(t) && tk_dtype_bits(t) >= 32)) {
        return true;
    }
    tk_diag *d =
        tk_err_diag(b->c, b->arg[i]->span, "type-mismatch",
                    "the %s of '%s' must be an integer of 32 or 64 bits; %s is %s",
                    b->param[i].name, b->name, tk_bi_arg_text(b, i), tk_bi_type_text(b, *out));
    tk_bi_help(b, d, "write 'u32(%s)'", tk_bi_arg_source(b, i));
    return false;
}

// seed, offset: the operands of all three. False after an error.
static bool read_words(tk_bcall *b, tk_value v[2]) {
    bool ok = read_word(b, 0, &v[0]);
    if (ok && (v[0].type->rank > 0 || v[0].varying)) {
        tk_diag *d = tk_err_diag(b->c, b->arg[0]->span, "not-a-scalar",
                                 "the seed of '%s' must be one scalar for all elements", b->name);
        tk_bi_help(b, d, "what differs by element goes into the offset");
        ok = false;
    }
    return read_word(b, 1, &v[1]) && ok;
}

tk_value tk_rule_philox(tk_bcall *b) {
    tk_value v[2];
    if (!read_words(b, v)) {
        return tk_bi_error(b);
    }
    const tk_type *word = tk_type_with_dtype(tk_checker_arena(b->c), v[1].type, TK_U32);
    const tk_type *elem[4] = {word, word, word, word};
    return tk_bi_binary(b, tk_type_tuple(tk_checker_arena(b->c), 4, elem), v[0], v[1]);
}

tk_value tk_rule_rand(tk_bcall *b) {
    tk_value v[2];
    if (!read_words(b, v)) {
        return tk_bi_error(b);
    }
    const tk_type *type = tk_type_with_dtype(tk_checker_arena(b->c), v[1].type, TK_F32);
    return tk_bi_binary(b, type, v[0], v[1]);
}

// ---- Types, the program and its grid

// Known at compile time: defaults of compile-time parameters may follow from it.
tk_value tk_rule_bitwidth(tk_bcall *b) {
    tk_dtype t;
    return tk_bi_type(b, 0, &t) ? tk_make_bits(b->c, b->call->span, t) : tk_bi_error(b);
}

tk_value tk_rule_given(tk_bcall *b) { return tk_check_given(b->c, b->call); }

tk_value tk_rule_program(tk_bcall *b) {
    int64_t axis;
    bool dep;
    int grid = tk_checker_grid(b->c);
    // A kernel without a grid is one program along axis 0.
    int64_t axes = grid < 0 ? INT32_MAX : grid == 0 ? 1 : grid;
    if (!tk_bi_int(b, 0, 0, axes - 1, &axis, &dep)) {
        return tk_bi_error(b);
    }
    tk_x *x = tk_bi_node(b, tk_type_scalar(tk_checker_arena(b->c), TK_I32), 0);
    x->u.builtin.attr.n = axis;
    return tk_bi_result(b, x);
}

// ---- Debugging

// assert(cond, "text") and assume(cond)
tk_value tk_rule_assert(tk_bcall *b) {
    tk_value cond;
    const char *text = NULL;
    bool ok = tk_bi_cond(b, 0, &cond);
    ok = (b->n < 2 || tk_bi_string(b, 1, &text)) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    tk_value r = tk_bi_unary(b, tk_type_void(), cond);
    r.x->u.builtin.attr.text = text;
    return r;
}

// Leaves no node: a call that holds is a value of kind VOID without one.
tk_value tk_rule_static_assert(tk_bcall *b) {
    tk_value cond;
    const char *text = NULL;
    bool holds = true;
    bool dep = false;
    bool ok = tk_bi_cond(b, 0, &cond);
    ok = ok && tk_const_truth(b->c, cond, "the condition of 'static_assert'", &holds, &dep);
    ok = tk_bi_string(b, 1, &text) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    if (!dep && !holds && !tk_checker_conditional(b->c)) {
        return tk_err(b->c, b->call->span, "static-assert", "static_assert failed%s%s",
                      text ? ": " : "", text ? text : "");
    }
    return (tk_value){.kind = TK_V_VOID, .span = b->call->span, .type = tk_type_void()};
}

static uint32_t places(const char *format) {
    uint32_t n = 0;
    for (const char *s = strstr(format, "{}"); s; s = strstr(s + 2, "{}")) {
        n++;
    }
    return n;
}

// The format of a print, or NULL after an error.
static const char *read_format(tk_bcall *b) {
    uint32_t n = b->call->u.call.args.n;
    const tk_arg *args = b->call->u.call.args.at;
    if (n == 0 || args[0].value->kind != TK_E_STRING) {
        tk_diag *d = tk_err_diag(b->c, n ? args[0].value->span : b->call->span, "type-mismatch",
                                 "the first argument of 'print' must be a string literal");
        tk_bi_help_signature(b, d);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (args[i].name.name) {
            tk_diag *d = tk_err_diag(b->c, args[i].name.span, "unknown-argument",
                                     "the arguments of 'print' have no names");
            tk_bi_help_signature(b, d);
            return NULL;
        }
    }
    const char *format = args[0].value->u.string.text;
    if (places(format) != n - 1) {
        tk_err(b->c, args[0].value->span, "argument-count",
               "the text of 'print' has %u '{}', but %u value%s given", places(format), n - 1,
               n == 2 ? " is" : "s are");
        return NULL;
    }
    return format;
}

tk_value tk_rule_print(tk_bcall *b) {
    const char *format = read_format(b);
    bool ok = format != NULL;
    uint32_t n = b->call->u.call.args.n;
    uint32_t values = n ? n - 1 : 0;
    tk_x *x = tk_bi_node(b, tk_type_void(), values);
    for (uint32_t i = 0; i < values; i++) {
        tk_value v = tk_check_value(b->c, b->call->u.call.args.at[1 + i].value);
        if (v.kind == TK_V_VALUE && v.untyped) {
            v = tk_coerce(b->c, v, v.type->dtype, "a value of 'print'");
        }
        ok = ok && v.kind == TK_V_VALUE;
        if (ok) {
            tk_bi_operand(b, x, i, v);
        }
    }
    x->u.builtin.attr.text = format;
    return ok ? tk_bi_result(b, x) : tk_bi_error(b);
}
