// SPDX-License-Identifier: Apache-2.0
// Expressions: names, literals, operators. Calls are in check_call.c, indices in check_index.c.
#include "lang/check_core.h"

#include <string.h>

// ---- Names ----------------------------------------------------------------------------------
void tk_add_capture(tk_checker *c, tk_var *var) {
    tk_inst *inst = c->frame->inst;
    if (!inst || inst == c->kernel || var->owner == inst) {
        return;
    }
    for (uint32_t i = 0; i < inst->captures.n; i++) {
        if (inst->captures.at[i] == var) {
            return;
        }
    }
    tk_vec_push(c->arena, &inst->captures, var);
}

// The variable that a value reads at run time, or NULL.
static tk_var *variable_of(tk_value v) {
    if (v.kind == TK_V_TENSOR) {
        return v.var;
    }
    if (v.kind != TK_V_VALUE || v.is_const || !v.x) {
        return NULL;
    }
    return v.x->kind == TK_X_VAR ? v.x->u.var : v.x->kind == TK_X_DIM ? v.x->u.dim.tensor : NULL;
}

static bool may_use(tk_checker *c, tk_span at, const char *name, tk_var *var, bool is_dim) {
    tk_inst *inst = c->frame->inst;
    if (!var->is_given) {
        tk_diag *d =
            is_dim ? tk_err_diag(c, at, "not-given", "'%s' is a size of '%s', which is not given",
                                 name, var->name)
                   : tk_err_diag(c, at, "not-given", "'%s' is not given", name);
        tk_note(c->diags, d, var->span, "'%s' is optional", var->name);
        tk_help(c->diags, d, (tk_span){0}, "use it only where 'given(%s)' holds", var->name);
        return false;
    }
    if (!inst || var->owner == inst) {
        return true;
    }
    if (var->owner == c->kernel && var->kind == TK_VAR_PARAM) {
        tk_add_capture(c, var);
        return true;
    }
    tk_diag *d = tk_err_diag(
        c, at, "not-captured",
        "an anonymous function cannot use '%s', a variable of the function around it", name);
    tk_note(c->diags, d, var->span, "'%s' is declared here", name);
    tk_help(c->diags, d, (tk_span){0}, "pass it as an argument");
    return false;
}

static tk_value binding_value(tk_checker *c, tk_span at, const tk_binding *b) {
    tk_value v = b->value;
    v.span = at;
    tk_var *var = variable_of(v);
    if (!var) {
        if (tk_is_known_const(v) && v.x) {
            return tk_make_const(c, at, v.x->u.konst);
        }
        return v;
    }
    bool is_dim = v.kind == TK_V_VALUE && v.x->kind == TK_X_DIM;
    if (!may_use(c, at, b->name, var, is_dim)) {
        return tk_error_value(at);
    }
    return is_dim ? tk_dim_value(c, at, var, v.x->u.dim.axis) : tk_var_value(c, at, var);
}

static tk_value item_value(tk_checker *c, tk_span at, tk_entry *e) {
    switch (e->item->kind) {
    case TK_ITEM_CONST: {
        tk_value v = tk_entry_const(c, e, at);
        v.span = at;
        return tk_is_known_const(v) && v.x ? tk_make_const(c, at, v.x->u.konst) : v;
    }
    case TK_ITEM_FN: {
        tk_fnval *fv = TK_NEW(c->arena, tk_fnval);
        fv->kind = TK_FV_CODE;
        fv->name = e->name;
        fv->fn = e->item->u.fn;
        fv->env = &c->table->file[e->file].scope;
        return tk_fn_value(at, fv);
    }
    case TK_ITEM_KERNEL:
    case TK_ITEM_ALIAS: {
        tk_diag *d = tk_err_diag(c, at, "not-a-value",
                                 "'%s' is a kernel: it cannot be called or used here", e->name);
        tk_note(c->diags, d, e->item->name.span, "'%s' is declared here", e->name);
        tk_help(c->diags, d, (tk_span){0}, "put what they share into a function 'fn'");
        return tk_error_value(at);
    }
    case TK_ITEM_IMPORT:
        break;
    }
    return tk_error_value(at);
}

static tk_value builtin_value(tk_checker *c, tk_span at, const char *name) {
    tk_fnval *fv = TK_NEW(c->arena, tk_fnval);
    fv->name = name;
    fv->builtin = tk_find_builtin(name, &fv->elem);
    fv->env = &c->table->file[c->scope->file].scope;
    fv->kind = strcmp(name, "same") == 0     ? TK_FV_SAME
               : strcmp(name, "always") == 0 ? TK_FV_ALWAYS
                                             : TK_FV_BUILTIN;
    if (fv->kind == TK_FV_BUILTIN && fv->builtin == TK_BI_COUNT && fv->elem == TK_NUM_COUNT) {
        return (tk_value){.kind = TK_V_NAME, .span = at, .name = name, .type = tk_type_void()};
    }
    return tk_fn_value(at, fv);
}

tk_value tk_check_name(tk_checker *c, tk_span at, const char *name) {
    const tk_binding *b = tk_scope_find(c->scope, name);
    if (b) {
        return binding_value(c, at, b);
    }
    tk_entry *e = tk_find_entry(c, c->scope->file, name);
    if (e) {
        return item_value(c, at, e);
    }
    tk_dtype t;
    if (tk_dtype_from_name(name, strlen(name), &t)) {
        return tk_type_value(at, t);
    }
    return builtin_value(c, at, name);
}

tk_value tk_check_known(tk_checker *c, const tk_expr *e) {
    tk_value v = tk_check_expr(c, e);
    return v.kind == TK_V_NAME ? tk_read(c, v) : v;
}

tk_value tk_check_value(tk_checker *c, const tk_expr *e) { return tk_read(c, tk_check_expr(c, e)); }

// ---- Operators --------------------------------------------------------------------------------
static tk_numop numop_of(tk_binop op) {
    static const tk_numop table[] = {
        [TK_B_MUL] = TK_NUM_MUL, [TK_B_DIV] = TK_NUM_DIV,  [TK_B_REM] = TK_NUM_REM,
        [TK_B_ADD] = TK_NUM_ADD, [TK_B_SUB] = TK_NUM_SUB,  [TK_B_SHL] = TK_NUM_SHL,
        [TK_B_SHR] = TK_NUM_SHR, [TK_B_LT] = TK_NUM_LT,    [TK_B_LE] = TK_NUM_LE,
        [TK_B_GT] = TK_NUM_GT,   [TK_B_GE] = TK_NUM_GE,    [TK_B_EQ] = TK_NUM_EQ,
        [TK_B_NE] = TK_NUM_NE,   [TK_B_AND] = TK_NUM_AND,  [TK_B_XOR] = TK_NUM_XOR,
        [TK_B_OR] = TK_NUM_OR,   [TK_B_LAND] = TK_NUM_AND, [TK_B_LOR] = TK_NUM_OR,
    };
    return table[op];
}

tk_value tk_binary_value(tk_checker *c, tk_span at, tk_binop op, tk_value x, tk_value y) {
    tk_value const v[2] = {x, y};
    return tk_elem(c, at, numop_of(op), tk_binop_text(op), 2, v);
}

// Whether the expression is a tile of bool. Where it has errors it is none; nothing is reported,
// and the checker is left as it was.
static bool is_bool_tile(tk_checker *c, const tk_expr *e, const char *what) {
    tk_checker before = *c;
    tk_frame frame = *c->frame;
    uint32_t captures = frame.inst ? frame.inst->captures.n : 0;
    tk_diags silent;
    tk_diags_init(&silent, c->arena);
    c->diags = &silent;
    c->failed = false;
    c->slot = TK_NEW_ARRAY(c->arena, tk_inst_slot, c->slots);
    for (uint32_t i = 0; i < c->slots; i++) {
        c->slot[i] = before.slot[i];
    }
    tk_value v = tk_coerce(c, tk_check_value(c, e), TK_BOOL, what);
    bool tile = v.kind == TK_V_VALUE && v.type->rank > 0 && !c->failed;
    *c = before;
    *c->frame = frame;
    if (frame.inst) {
        frame.inst->captures.n = captures;
    }
    return tile;
}

// && and ||: constants on the left decide whether the right is checked at all, unless it is a tile,
// whose shape the result has.
static tk_value logic(tk_checker *c, const tk_expr *e, tk_value x) {
    bool is_or = e->u.binary.op == TK_B_LOR;
    const char *text = tk_binop_text(e->u.binary.op);
    const char *what = tk_format(c->arena, "operand of '%s'", text);
    x = tk_coerce(c, x, TK_BOOL, what);
    bool decided = tk_is_known_const(x) && (x.num.i != 0) == is_or;
    if (decided && !is_bool_tile(c, e->u.binary.y, what)) {
        x.span = e->span;
        return x;
    }
    bool dep = x.kind == TK_V_VALUE && x.is_const && x.dep;
    c->frame->conditional += dep;
    tk_value y = tk_coerce(c, tk_check_value(c, e->u.binary.y), TK_BOOL, what);
    c->frame->conditional -= dep;
    if (x.kind != TK_V_VALUE || y.kind != TK_V_VALUE) {
        return tk_error_value(e->span);
    }
    if (tk_is_known_const(x) && !decided) {
        y.span = e->span;
        return y;
    }
    bool scalars = x.type->rank == 0 && y.type->rank == 0 && !x.varying && !y.varying;
    if (!scalars || (x.is_const && y.is_const)) {
        return tk_binary_value(c, e->span, e->u.binary.op, x, y);
    }
    tk_x *n = tk_x_new(c, TK_X_LOGIC, e->span, tk_scalar(c, TK_BOOL), 2);
    n->arg[0] = tk_materialize(c, x);
    n->arg[1] = tk_materialize(c, y);
    n->u.is_or = is_or;
    return tk_make_value(c, n);
}

// Chains lean left and may be long: the left spine is walked without recursion.
static tk_value binary(tk_checker *c, const tk_expr *e) {
    TK_VEC(const tk_expr *) spine = {0};
    while (e->kind == TK_E_BINARY) {
        tk_vec_push(c->arena, &spine, e);
        e = e->u.binary.x;
    }
    tk_value v = tk_check_value(c, e);
    for (uint32_t i = spine.n; i-- > 0;) {
        const tk_expr *b = spine.at[i];
        if (b->u.binary.op == TK_B_LAND || b->u.binary.op == TK_B_LOR) {
            v = logic(c, b, v);
            continue;
        }
        tk_value y = tk_check_value(c, b->u.binary.y);
        v = tk_binary_value(c, b->span, b->u.binary.op, v, y);
    }
    return v;
}

static tk_value unary(tk_checker *c, const tk_expr *e) {
    static const tk_numop table[] = {
        [TK_U_NEG] = TK_NUM_NEG, [TK_U_NOT] = TK_NUM_NOT, [TK_U_BNOT] = TK_NUM_BNOT};
    tk_value x = tk_check_value(c, e->u.unary.x);
    return tk_elem(c, e->span, table[e->u.unary.op], tk_unop_text(e->u.unary.op), 1, &x);
}

static tk_value integer(tk_checker *c, const tk_expr *e) {
    if (e->u.i.shift) {
        return tk_err(c, e->span, "misplaced", "KB and MB stand only in attributes");
    }
    tk_number n = {.i = (int64_t)e->u.i.value, .big = e->u.i.value > INT64_MAX};
    return tk_make_number(c, e->span, n, false);
}

static tk_value list(tk_checker *c, const tk_expr *e) {
    tk_value v = {.kind = e->kind == TK_E_LIST ? TK_V_LIST : TK_V_TUPLE, .span = e->span};
    v.type = tk_type_void();
    v.n = e->u.list.n;
    v.item = TK_NEW_ARRAY(c->arena, tk_value, v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        v.item[i] = tk_check_known(c, e->u.list.at[i]);
        v.dep |= v.item[i].dep;
        if (v.item[i].kind == TK_V_ERROR) {
            v.kind = TK_V_ERROR;
        }
    }
    return v;
}

static tk_value check(tk_checker *c, const tk_expr *e) {
    switch (e->kind) {
    case TK_E_INT:
        return integer(c, e);
    case TK_E_FLOAT:
        return tk_make_number(c, e->span, (tk_number){.is_float = true, .f = e->u.f}, false);
    case TK_E_BOOL:
        return tk_make_bool(c, e->span, e->u.b);
    case TK_E_STRING:
        return tk_err(c, e->span, "misplaced",
                      "a text stands only in assert, static_assert and print");
    case TK_E_NEWAXIS:
        return tk_err(c, e->span, "misplaced", "'newaxis' stands only in the index of a tile");
    case TK_E_NAME:
        return tk_check_name(c, e->span, e->u.name);
    case TK_E_UNARY:
        return unary(c, e);
    case TK_E_BINARY:
        return binary(c, e);
    case TK_E_CALL:
        return tk_check_call(c, e);
    case TK_E_INDEX:
        return tk_check_index(c, e);
    case TK_E_LIST:
    case TK_E_TUPLE:
        return list(c, e);
    case TK_E_LAMBDA:
        return tk_lambda_value(c, e);
    }
    return tk_error_value(e->span);
}

tk_value tk_check_expr(tk_checker *c, const tk_expr *e) {
    if (!e || c->too_deep || !tk_walk_enter(c, e->span)) {
        return tk_error_value(e ? e->span : (tk_span){0});
    }
    tk_value v = check(c, e);
    tk_walk_leave(c);
    return v;
}
