// SPDX-License-Identifier: Apache-2.0
// Statements: sequences with early exits, ifs, assignments. See build_internal.h.
#include "ir/build_internal.h"

// What follows early exits is nested in regions up to this many; then each piece gets an if of its
// own, so that depth does not grow with the length of a function.
enum { MAX_NEST = 64 };

tk_bseq tk_build_seq_of(const tk_xblock *block, const tk_bseq *next) {
    tk_bseq s = {NULL, 0, next};
    if (block) {
        s.at = block->list.at;
        s.n = block->list.n;
    }
    return s;
}

// Drops what is used up; false where nothing is left.
static bool settle(tk_bseq *s) {
    while (s->n == 0) {
        if (!s->next) {
            return false;
        }
        *s = *s->next;
    }
    return true;
}

// ---- Early exits
static void set_flag(tk_bfn *f, tk_span at, tk_bslot *flag) {
    if (flag->bound) {
        flag->cur = tk_build_const(f, at, flag->type, tk_const_bool(true));
    }
}

static void set_return_flags(tk_bfn *f, tk_span at) {
    for (tk_blevel *l = f->level; l; l = l->up) {
        set_flag(f, at, &l->skip);
        set_flag(f, at, &l->stop);
    }
}

static void build_return(tk_bfn *f, const tk_xs *s) {
    TK_CHECK(f->arena, s->nresult == f->inst->nresult);
    tk_vid *v = TK_NEW_ARRAY(f->arena, tk_vid, s->nresult);
    for (uint32_t i = 0; i < s->nresult; i++) {
        v[i] = tk_build_x(f, s->result[i]);
    }
    for (uint32_t i = 0; i < s->nresult; i++) {
        tk_bslot *r = &f->ret[i];
        v[i] = tk_build_stretch(f, s->span, v[i], r->type);
        if (r->cur && f->returned.bound &&
            f->returned.cur) { // elements that have returned keep theirs
            tk_vid done = tk_build_stretch(f, s->span, f->returned.cur, r->type);
            v[i] = TK_BUILD_OPS(f, s->span, TK_OP_SELECT, r->type, done, r->cur, v[i]);
        }
        r->cur = v[i];
    }
    if (f->varying_depth > 0) {
        f->returned.cur = tk_build_const(f, s->span, f->returned.type, tk_const_bool(true));
    } else {
        set_return_flags(f, s->span);
    }
}

// ---- If
void tk_build_if_regions(tk_bfn *f, tk_span at, tk_vid cond, tk_bseq then, tk_bseq other) {
    tk_bcarry c = {0};
    f->marks++;
    tk_build_collect(f, &c, &then);
    tk_build_collect(f, &c, &other);
    tk_build_carry_begin(f, at, &c, false);
    tk_op *op = tk_build_emit(f, at, TK_OP_IF, 1, &cond, c.slot.n, tk_build_carry_types(f, &c), 2);
    tk_region *outer = f->at;
    for (uint32_t i = 0; i < 2; i++) {
        f->at = op->reg[i];
        tk_build_seq(f, i == 0 ? then : other);
        tk_build_carry_yield(f, at, &c);
        tk_build_carry_restore(&c);
    }
    f->at = outer;
    tk_build_carry_results(f, &c, op);
}

// One slot after both sides of a varying if.
static tk_vid choose(tk_bfn *f, tk_span at, const tk_bslot *s, tk_vid cond, tk_vid then,
                     tk_vid other) {
    if (then == other || !then || !other) {
        return then ? then : other; // not set on one side: nobody reads it there
    }
    TK_CHECK(f->arena,
             s->type->rank >= tk_build_typeof(f, cond)->rank); // else the slot cannot vary
    tk_vid c = tk_build_stretch(f, at, cond, s->type);
    return TK_BUILD_OPS(f, at, TK_OP_SELECT, s->type, c, then, other);
}

// The elements that have returned after both sides; 0: none. `all`: that side ends in a return for
// every element.
static tk_vid merge_returned(tk_bfn *f, tk_span at, tk_vid cond, tk_vid then, bool then_all,
                             tk_vid other, bool other_all) {
    if (then_all && other_all) {
        return tk_build_const(f, at, f->returned.type, tk_const_bool(true));
    }
    if (then == other && !then_all && !other_all) {
        return then;
    }
    if (then_all) {
        return tk_build_bool(f, at, TK_OP_OR, cond, other);
    }
    if (!other_all && then && other) {
        return TK_BUILD_OPS(f, at, TK_OP_SELECT, f->returned.type, cond, then, other);
    }
    tk_vid unless = other || other_all ? tk_build_not(f, at, cond) : 0;
    if (other_all) {
        return tk_build_bool(f, at, TK_OP_OR, unless, then);
    }
    return then ? tk_build_bool(f, at, TK_OP_AND, cond, then)
                : tk_build_bool(f, at, TK_OP_AND, unless, other);
}

static void varying_side(tk_bfn *f, tk_vid cond, bool negated, const tk_xblock *block) {
    const tk_bmask *outer = f->mask;
    tk_bmask mask = {cond, negated, outer};
    f->mask = &mask;
    f->varying_depth++;
    tk_build_seq(f, tk_build_seq_of(block, NULL));
    f->varying_depth--;
    f->mask = outer;
}

static void build_varying_if(tk_bfn *f, const tk_xs *s) {
    TK_CHECK(f->arena, f->inst->lifted);
    tk_vid cond = tk_build_stretch(f, s->span, tk_build_x(f, s->value), f->returned.type);
    tk_bcarry c = {0};
    f->marks++;
    tk_bseq then = tk_build_seq_of(s->body, NULL);
    tk_bseq other = tk_build_seq_of(s->other, NULL);
    tk_build_collect(f, &c, &then);
    tk_build_collect(f, &c, &other);
    tk_build_carry_begin(f, s->span, &c, false);
    tk_vid returned = f->returned.cur;

    varying_side(f, cond, false, s->body);
    tk_vid *after = TK_NEW_ARRAY(f->arena, tk_vid, c.slot.n);
    for (uint32_t i = 0; i < c.slot.n; i++) {
        after[i] = c.slot.at[i]->cur;
    }
    tk_vid then_returned = f->returned.cur;
    tk_build_carry_restore(&c);
    f->returned.cur = returned;
    varying_side(f, cond, true, s->other);

    tk_vid other_returned = f->returned.cur;
    bool then_all = !(tk_build_block_ends(s->body) & TK_BE_FALLS);
    bool other_all = !(tk_build_block_ends(s->other) & TK_BE_FALLS);
    for (uint32_t i = 0; i < c.slot.n; i++) {
        tk_bslot *slot = c.slot.at[i];
        if (slot != &f->returned) {
            slot->cur = choose(f, s->span, slot, cond, after[i], slot->cur);
            tk_build_name(f, slot->cur, slot->name);
        }
    }
    f->returned.cur =
        merge_returned(f, s->span, cond, then_returned, then_all, other_returned, other_all);
    if (then_all && other_all && f->varying_depth == 0) {
        set_return_flags(f, s->span);
    }
}

static void build_if(tk_bfn *f, const tk_xs *s, const tk_bseq *after_then,
                     const tk_bseq *after_other) {
    tk_vid cond = tk_build_x(f, s->value);
    f->nest += after_then || after_other;
    tk_build_if_regions(f, s->span, cond, tk_build_seq_of(s->body, after_then),
                        tk_build_seq_of(s->other, after_other));
    f->nest -= after_then || after_other;
}

// ---- Simple statements
void tk_build_assign(tk_bfn *f, tk_span at, const tk_var *var, tk_vid v) {
    tk_bslot *s = tk_build_slot(f, var);
    v = tk_build_stretch(f, at, v, s->type);
    if (!tk_type_eq(tk_build_typeof(f, v), s->type)) {
        TK_ICE(f->arena, "'%s' gets a value of another type in '%s'", var->name, f->fn->name);
    }
    s->bound = true;
    s->cur = v;
    tk_build_name(f, v, var->name);
}

static void build_let(tk_bfn *f, const tk_xs *s) {
    tk_vid *v = TK_NEW_ARRAY(f->arena, tk_vid, s->nvar);
    tk_build_multi(f, s->value, s->nvar, v);
    for (uint32_t i = 0; i < s->nvar; i++) {
        tk_build_assign(f, s->span, s->var[i], v[i]);
    }
}

static void build_expr_statement(tk_bfn *f, const tk_xs *s) {
    uint32_t n = tk_build_count(s->value);
    tk_vid *v = TK_NEW_ARRAY(f->arena, tk_vid, n);
    tk_build_multi(f, s->value, n, v);
}

static void build_statement(tk_bfn *f, const tk_xs *s) {
    switch (s->kind) {
    case TK_XS_LET:
    case TK_XS_ASSIGN:
        build_let(f, s);
        return;
    case TK_XS_STORE:
        tk_build_store(f, s);
        return;
    case TK_XS_EXPR:
        build_expr_statement(f, s);
        return;
    case TK_XS_IF:
        if (tk_build_varying_if(s)) {
            build_varying_if(f, s);
        } else {
            build_if(f, s, NULL, NULL);
        }
        return;
    case TK_XS_FOR:
        tk_build_for(f, s);
        return;
    case TK_XS_WHILE:
        tk_build_while(f, s);
        return;
    case TK_XS_BREAK:
        set_flag(f, s->span, &f->level->skip);
        set_flag(f, s->span, &f->level->stop);
        return;
    case TK_XS_CONTINUE:
        set_flag(f, s->span, &f->level->skip);
        return;
    case TK_XS_RETURN:
        build_return(f, s);
        return;
    case TK_XS_BLOCK:
        tk_build_seq(f, tk_build_seq_of(s->body, NULL));
        return;
    }
}

// ---- Sequences

// Puts
// what follows `s` into the side of it that goes on. False where the structure does not allow it.
static bool build_with_rest(tk_bfn *f, const tk_xs *s, const tk_bseq *rest) {
    if (s->kind == TK_XS_BLOCK) {
        f->nest++;
        tk_build_seq(f, tk_build_seq_of(s->body, rest));
        f->nest--;
        return true;
    }
    if (s->kind != TK_XS_IF || tk_build_varying_if(s)) {
        return false;
    }
    if (!(tk_build_block_ends(s->body) & TK_BE_FALLS)) {
        build_if(f, s, NULL, rest);
        return true;
    }
    if (!(tk_build_block_ends(s->other) & TK_BE_FALLS)) {
        build_if(f, s, rest, NULL);
        return true;
    }
    return false;
}

// The next statements up to one that may leave. Their variables are declared ahead, since later
// pieces stand in other regions. False at the end of the sequence, and after what never goes on.
static bool take_piece(tk_bfn *f, tk_bseq *rest, tk_bseq *piece) {
    TK_VEC(tk_xs *) list = {0};
    unsigned ends = TK_BE_FALLS;
    while (ends == TK_BE_FALLS && settle(rest)) {
        tk_xs *s = rest->at[0];
        rest->at++;
        rest->n--;
        ends = tk_build_ends(s);
        tk_vec_push(f->arena, &list, s);
        for (uint32_t i = 0; s->kind == TK_XS_LET && i < s->nvar; i++) {
            tk_build_slot(f, s->var[i])->bound = true;
        }
    }
    piece->at = list.at;
    piece->n = list.n;
    piece->next = NULL;
    return (ends & TK_BE_FALLS) && settle(rest);
}

// A statement that may leave or go on, with more after it: guarded by a flag.
static void build_guarded(tk_bfn *f, const tk_xs *s, tk_bseq rest) {
    tk_bslot *skip = &f->level->skip;
    bool own = !skip->bound;
    if (own) {
        skip->bound = true;
        skip->cur = 0;
    }
    tk_bseq nothing = {0};
    build_statement(f, s);
    if (f->nest < MAX_NEST) {
        tk_vid go = tk_build_not(f, s->span, tk_build_read(f, s->span, skip));
        skip->bound = !own;
        f->nest++;
        tk_build_if_regions(f, s->span, go, rest, nothing);
        f->nest--;
        return;
    }
    for (bool more = true; more;) {
        tk_bseq piece;
        more = take_piece(f, &rest, &piece);
        tk_vid go = tk_build_not(f, s->span, tk_build_read(f, s->span, skip));
        tk_build_if_regions(f, s->span, go, piece, nothing);
    }
    skip->bound = !own;
}

void tk_build_seq(tk_bfn *f, tk_bseq s) {
    while (settle(&s)) {
        const tk_xs *x = s.at[0];
        s.at++;
        s.n--;
        unsigned ends = tk_build_ends(x);
        if (!(ends & TK_BE_FALLS)) {
            build_statement(f, x);
            return; // the rest is never reached
        }
        tk_bseq rest = s;
        if (ends == TK_BE_FALLS || !settle(&rest)) {
            build_statement(f, x);
            continue;
        }
        if (f->nest < MAX_NEST && build_with_rest(f, x, &rest)) {
            return;
        }
        if (f->varying_depth == 0) {
            build_guarded(f, x, rest);
            return;
        }
        build_statement(f, x); // here the mask keeps what follows from the elements that returned
    }
}
