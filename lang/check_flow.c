// SPDX-License-Identifier: Apache-2.0
// Control flow: blocks, ifs, loops; where control can go; element-dependent conditions.
#include "lang/check_core.h"

#include <string.h>

static bool check_stmt(tk_checker *c, const tk_stmt *s);

// Checks into a block of its own.
static bool into(tk_checker *c, tk_xblock **out, const tk_block *b, const tk_stmt *s) {
    tk_xblock *old = c->frame->block;
    *out = TK_NEW(c->arena, tk_xblock);
    c->frame->block = *out;
    bool falls = b ? tk_check_block(c, b, true) : check_stmt(c, s);
    c->frame->block = old;
    return falls;
}

// ---- if -----------------------------------------------------------------------------------------

// A condition of if or while: a bool scalar.
static tk_value condition(tk_checker *c, const tk_expr *e, const char *what) {
    tk_value v = tk_check_value(c, e);
    if (v.kind == TK_V_VALUE && v.type->rank > 0) {
        tk_diag *d =
            tk_err_diag(c, e->span, "tile-condition", "the condition of '%s' is a scalar, not %s",
                        what, tk_type_text(c->arena, v.type));
        tk_help(c->diags, d, (tk_span){0},
                "choose by element with 'where(c, a, b)', or reduce it with 'any' or 'all'");
        return tk_error_value(e->span);
    }
    return tk_coerce(c, v, TK_BOOL, tk_format(c->arena, "the condition of '%s'", what));
}

// Only the branch taken exists.
static bool if_constant(tk_checker *c, const tk_stmt *s, bool truth) {
    if (!truth && !s->u.cond.other) {
        return true;
    }
    tk_xblock *body;
    bool falls =
        truth ? into(c, &body, s->u.cond.then, NULL) : into(c, &body, NULL, s->u.cond.other);
    tk_emit(c, TK_XS_BLOCK, s->span)->body = body;
    c->frame->ends_by_constant = !falls;
    return falls;
}

static bool check_if(tk_checker *c, const tk_stmt *s) {
    tk_value v = condition(c, s->u.cond.cond, "if");
    if (tk_is_known_const(v)) {
        return if_constant(c, s, v.num.i != 0);
    }
    bool dep = v.kind == TK_V_ERROR || v.is_const;
    tk_frame *f = c->frame;
    f->conditional += dep;
    f->varying_ifs += v.varying;
    tk_xblock *then, *other = NULL;
    bool falls = into(c, &then, s->u.cond.then, NULL);
    bool other_falls = s->u.cond.other ? into(c, &other, NULL, s->u.cond.other) : true;
    f->conditional -= dep;
    if (dep && !(falls && other_falls)) {
        f->conditional++; // so is all that follows
    }
    falls = falls || other_falls;
    f->varying_ifs -= v.varying;
    tk_xs *out = tk_emit(c, TK_XS_IF, s->span);
    out->value = tk_materialize(c, v);
    out->body = then;
    out->other = other;
    return falls;
}

// ---- Loops ----------------------------------------------------------------------------------
static void no_varying_loop(tk_checker *c, tk_span at, const char *what) {
    tk_diag *d =
        tk_err_diag(c, at, "varying-loop", "%s, and '%s' is applied element by element here", what,
                    c->frame->name);
    tk_note(c->diags, d, c->frame->fn ? c->frame->fn->span : at,
            "only an 'if' may depend on the element");
    tk_help(c->diags, d, (tk_span){0},
            "loop over whole tiles outside of it, or a fixed number of times");
}

static void loop_place(tk_checker *c, tk_span at) {
    if (c->frame->varying_ifs) {
        no_varying_loop(c, at, "this loop stands in an 'if' that depends on an element");
    }
}

static bool body_of(tk_checker *c, const tk_block *b, tk_xblock **out, bool *breaks) {
    tk_frame *f = c->frame;
    bool before = f->breaks;
    f->breaks = false;
    f->loops++;
    bool falls = into(c, out, b, NULL);
    f->loops--;
    *breaks = f->breaks;
    f->breaks = before;
    return falls;
}

static int64_t loop_hint(tk_checker *c, const tk_expr *e, const char *what, int64_t most) {
    int64_t n;
    bool dep;
    if (!e || !tk_const_int(c, tk_check_known(c, e), what, &n, &dep) || dep) {
        return 0;
    }
    if (n < 1 || n > most) {
        tk_err(c, e->span, "attribute-range", "%s is from 1 to %lld, not %lld", what,
               (long long)most, (long long)n);
        return 0;
    }
    return n;
}

static int64_t pipeline_hint(tk_checker *c, const tk_expr *e) {
    return loop_hint(c, e, "the number of tiles in flight", 8);
}

static int64_t unroll_hint(tk_checker *c, const tk_expr *e) {
    return loop_hint(c, e, "the number of copies", 1024);
}

static bool check_while(tk_checker *c, const tk_stmt *s) {
    loop_place(c, s->span);
    tk_value v = condition(c, s->u.loop_while.cond, "while");
    if (v.varying) {
        no_varying_loop(c, s->u.loop_while.cond->span, "this loop depends on an element");
    }
    int64_t pipeline = pipeline_hint(c, s->u.loop_while.pipeline);
    int64_t unroll = unroll_hint(c, s->u.loop_while.unroll);
    bool breaks, forever = tk_is_known_const(v) && v.num.i != 0;
    tk_xblock *body;
    (void)body_of(c, s->u.loop_while.body, &body, &breaks);
    tk_xs *out = tk_emit(c, TK_XS_WHILE, s->span);
    out->value = tk_materialize(c, v);
    out->pipeline = pipeline;
    out->unroll = unroll;
    out->body = body;
    return !forever || breaks;
}

static bool narrow_int(const tk_value *v) {
    tk_dtype t = v->type->dtype;
    return !v->untyped && tk_dtype_is_int(t) && tk_dtype_bits(t) < 32;
}

// The bounds in one type, at least 32 bits wide.
static bool loop_bounds(tk_checker *c, const tk_stmt *s, tk_value *v) {
    const tk_expr *const e[3] = {s->u.loop.from, s->u.loop.to, s->u.loop.step};
    static const char *const what[3] = {"the start of the loop", "the end of the loop",
                                        "the step of the loop"};
    bool ok = true;
    for (int i = 0; i < 3; i++) {
        v[i] = e[i] ? tk_check_value(c, e[i]) : tk_make_int(c, s->span, 1);
        if (v[i].kind != TK_V_VALUE) {
            ok = false;
            continue;
        }
        tk_dtype t = v[i].type->dtype;
        if (v[i].type->rank > 0 || v[i].num.is_float ||
            (t != TK_DTYPE_DEP && !tk_dtype_is_int(t))) {
            tk_err(c, v[i].span, "type-mismatch", "%s is an integer, not %s", what[i],
                   tk_type_text(c->arena, v[i].type));
            ok = false;
        } else if (v[i].varying) {
            no_varying_loop(c, v[i].span, "this loop depends on an element");
        } else if (narrow_int(&v[i])) {
            v[i] = tk_coerce(c, v[i], TK_I32, what[i]);
        }
    }
    ok = ok && tk_unify(c, s->span, "for", 3, v);
    for (int i = 0; ok && i < 3; i++) {
        v[i] = v[i].untyped ? tk_coerce(c, v[i], TK_I32, what[i]) : v[i];
        ok = v[i].kind == TK_V_VALUE;
    }
    if (ok && tk_is_known_const(v[2]) && v[2].num.i == 0) {
        tk_err(c, v[2].span, "zero-step", "the step of a loop is not 0");
    }
    return ok;
}

static bool check_for(tk_checker *c, const tk_stmt *s) {
    tk_value v[3];
    loop_place(c, s->span);
    bool ok = loop_bounds(c, s, v), breaks;
    int64_t pipeline = pipeline_hint(c, s->u.loop.pipeline);
    int64_t unroll = unroll_hint(c, s->u.loop.unroll);
    tk_scope *old = c->scope;
    tk_scope_push(c);
    tk_ident id = s->u.loop.var;
    tk_var *var = tk_var_new(c, TK_VAR_LOOP, id, ok ? v[0].type : tk_scalar(c, TK_I32));
    tk_value name = ok ? tk_var_value(c, id.span, var) : tk_error_value(id.span);
    (void)tk_bind_name(c, c->scope, id, name);
    tk_xblock *body;
    (void)body_of(c, s->u.loop.body, &body, &breaks);
    c->scope = old;
    if (ok) {
        tk_xs *out = tk_emit(c, TK_XS_FOR, s->span);
        out->nvar = 1;
        out->var = TK_NEW_ARRAY(c->arena, tk_var *, 1);
        out->var[0] = var;
        out->from = tk_materialize(c, v[0]);
        out->to = tk_materialize(c, v[1]);
        out->step = tk_materialize(c, v[2]);
        out->pipeline = pipeline;
        out->unroll = unroll;
        out->body = body;
    }
    return true;
}

static void check_jump(tk_checker *c, const tk_stmt *s) {
    const char *word = s->kind == TK_S_BREAK ? "break" : "continue";
    tk_frame *f = c->frame;
    if (!f->loops) {
        tk_err(c, s->span, "misplaced", "'%s' stands only in a loop", word);
        return;
    }
    if (f->varying_ifs) {
        no_varying_loop(c, s->span, tk_format(c->arena, "this '%s' depends on an element", word));
        return;
    }
    f->breaks |= s->kind == TK_S_BREAK;
    tk_emit(c, s->kind == TK_S_BREAK ? TK_XS_BREAK : TK_XS_CONTINUE, s->span);
}

// ---- Statements -----------------------------------------------------------------------------
static bool dispatch(tk_checker *c, const tk_stmt *s) {
    c->frame->ends_by_constant = false;
    switch (s->kind) {
    case TK_S_LET:
    case TK_S_VAR:
    case TK_S_ASSIGN:
    case TK_S_EXPR:
        tk_check_simple(c, s);
        return true;
    case TK_S_IF:
        return check_if(c, s);
    case TK_S_FOR:
        return check_for(c, s);
    case TK_S_WHILE:
        return check_while(c, s);
    case TK_S_BREAK:
    case TK_S_CONTINUE:
        check_jump(c, s);
        return false;
    case TK_S_RETURN:
        tk_check_return(c, s);
        return false;
    case TK_S_BLOCK: {
        tk_xblock *body;
        bool falls = into(c, &body, s->u.block, NULL);
        tk_emit(c, TK_XS_BLOCK, s->span)->body = body;
        return falls;
    }
    }
    return true;
}

static bool check_stmt(tk_checker *c, const tk_stmt *s) {
    if (c->too_deep || !tk_walk_enter(c, s->span)) {
        return true;
    }
    bool falls = dispatch(c, s);
    tk_walk_leave(c);
    return falls;
}

// What follows a statement that control does not leave is checked, but no part of the program.
static bool check_list(tk_checker *c, const tk_block *b) {
    tk_xblock *kept = c->frame->block;
    bool falls = true;
    for (uint32_t i = 0; i < b->list.n; i++) {
        const tk_stmt *s = b->list.at[i];
        if (!falls && c->frame->ends_by_constant) {
            break; // the branch taken leaves: the rest is the other branch
        }
        if (!falls && c->frame->block == kept) {
            tk_warn_diag(c, s->span, "unreachable", "this statement is never reached");
            c->frame->block = TK_NEW(c->arena, tk_xblock);
        }
        falls = check_stmt(c, s) && falls;
    }
    c->frame->block = kept;
    return falls;
}

bool tk_check_block(tk_checker *c, const tk_block *b, bool own_scope) {
    tk_scope *old = c->scope;
    if (own_scope) {
        tk_scope_push(c);
    }
    bool falls = check_list(c, b);
    c->scope = old;
    return falls;
}

void tk_walk_body(tk_checker *c, tk_scope *params) {
    tk_frame *f = c->frame;
    bool falls;
    uint32_t captures = f->inst ? f->inst->captures.n : 0;
    do {
        f->again = false;
        f->conditional = 0;
        f->block = TK_NEW(c->arena, tk_xblock);
        c->scope = params;
        if (f->inst) {
            f->inst->captures.n = captures;
        }
        falls = tk_check_block(c, f->fn->body, true);
    } while (f->again);
    bool wants = f->result->kind == TK_T_VALUE || f->result->kind == TK_T_TUPLE;
    if (falls && wants && !c->too_deep && !tk_in_gaps(c, f->fn->span)) {
        tk_err(c, f->fn->span, "missing-return", "'%s' can end without giving its result", f->name);
    }
}
