// SPDX-License-Identifier: Apache-2.0
// Loops. A for without early exit stays a for; one with break or return becomes a while over a
// counter, with the trip count computed first. See build_internal.h.
#include "ir/build_internal.h"

static void level_begin(tk_bfn *f, tk_blevel *level) {
    const tk_type *t = tk_type_scalar(f->arena, TK_BOOL);
    level->skip = (tk_bslot){.type = t, .name = "skip"};
    level->stop = (tk_bslot){.type = t, .name = "stop"};
    level->up = f->level;
    f->level = level;
}

static void collect_body(tk_bfn *f, tk_bcarry *c, const tk_xblock *body) {
    tk_bseq s = tk_build_seq_of(body, NULL);
    f->marks++;
    tk_build_collect(f, c, &s);
}

// ---- for that stays for
static void plain_for(tk_bfn *f, const tk_xs *s, const tk_vid bound[3]) {
    tk_blevel level;
    level_begin(f, &level);
    tk_bcarry c = {0};
    collect_body(f, &c, s->body);
    tk_build_carry_begin(f, s->span, &c, true);
    uint32_t n = c.slot.n;
    tk_vid *opnd = TK_NEW_ARRAY(f->arena, tk_vid, n + 3);
    for (uint32_t i = 0; i < n + 3; i++) {
        opnd[i] = i < 3 ? bound[i] : c.old[i - 3];
    }
    tk_op *op =
        tk_build_emit(f, s->span, TK_OP_FOR, n + 3, opnd, n, tk_build_carry_types(f, &c), 1);
    op->at.pipeline = s->pipeline;
    op->at.unroll = s->unroll;
    tk_region *outer = f->at;
    f->at = op->reg[0];
    const tk_var *var = s->var[0];
    tk_bslot *index = tk_build_slot(f, var);
    index->bound = true;
    index->cur = tk_region_arg(f->at, var->type, var->name);
    tk_build_carry_args(&c, f->at);
    tk_build_seq(f, tk_build_seq_of(s->body, NULL));
    tk_build_carry_yield(f, s->span, &c);
    f->at = outer;
    f->level = level.up;
    tk_build_carry_results(f, &c, op);
}

// ---- Loops that may be left

// The while of
// either kind: counted (from, step, trip count) or on a condition.
typedef struct loop {
    const tk_xs *s;
    bool counted;
    tk_vid from, step, count;
    tk_bslot counter;
} loop;

static void yield_condition(tk_bfn *f, const loop *l, const tk_blevel *level) {
    tk_span at = l->s->span;
    tk_vid go = level->stop.bound ? tk_build_not(f, at, level->stop.cur) : 0;
    const tk_type *t = tk_type_scalar(f->arena, TK_BOOL);
    if (l->counted) {
        tk_vid more = TK_BUILD_OPS(f, at, TK_OP_LT, t, l->counter.cur, l->count);
        go = tk_build_bool(f, at, TK_OP_AND, go, more);
    } else if (!go || tk_build_is_cheap(l->s->value)) {
        go = tk_build_bool(f, at, TK_OP_AND, go, tk_build_x(f, l->s->value));
    } else { // the condition is not evaluated after a break
        tk_op *op = tk_build_emit(f, at, TK_OP_IF, 1, &go, 1, &t, 2);
        tk_region *outer = f->at;
        f->at = op->reg[0];
        tk_vid cond = tk_build_x(f, l->s->value);
        tk_build_yield(f, at, 1, &cond);
        f->at = op->reg[1];
        cond = tk_build_const(f, at, t, tk_const_bool(false));
        tk_build_yield(f, at, 1, &cond);
        f->at = outer;
        go = op->res[0];
    }
    tk_build_yield(f, at, 1, &go);
}

static void loop_body(tk_bfn *f, loop *l) {
    tk_span at = l->s->span;
    tk_vid n = l->counter.cur;
    if (l->counted) {
        const tk_var *var = l->s->var[0];
        tk_vid k = tk_build_cast(f, at, n, var->type->dtype);
        tk_vid offset = TK_BUILD_OPS(f, at, TK_OP_MUL, var->type, k, l->step);
        tk_build_assign(f, at, var, TK_BUILD_OPS(f, at, TK_OP_ADD, var->type, l->from, offset));
    }
    tk_build_seq(f, tk_build_seq_of(l->s->body, NULL));
    if (l->counted) {
        const tk_type *t = l->counter.type;
        tk_vid one = tk_build_const(f, at, t, tk_const_u64(t->dtype, 1));
        l->counter.cur = TK_BUILD_OPS(f, at, TK_OP_ADD, t, n, one);
    }
}

static void general_loop(tk_bfn *f, loop *l) {
    tk_blevel level;
    level_begin(f, &level);
    level.stop.bound = tk_build_block_ends(l->s->body) & (TK_BE_BREAK | TK_BE_RETURN);
    tk_bcarry c = {0};
    collect_body(f, &c, l->s->body);
    if (l->counted) {
        tk_vec_push(f->arena, &c.slot, &l->counter);
    }
    tk_build_carry_begin(f, l->s->span, &c, true);
    uint32_t n = c.slot.n;
    tk_op *op =
        tk_build_emit(f, l->s->span, TK_OP_WHILE, n, c.old, n, tk_build_carry_types(f, &c), 2);
    op->at.pipeline = l->s->pipeline; // kept for back ends: they obey it or refuse it
    op->at.unroll = l->s->unroll;
    tk_region *outer = f->at;
    f->at = op->reg[0];
    tk_build_carry_args(&c, f->at);
    yield_condition(f, l, &level);
    f->at = op->reg[1];
    tk_build_carry_args(&c, f->at);
    loop_body(f, l);
    tk_build_carry_yield(f, l->s->span, &c);
    f->at = outer;
    f->level = level.up;
    tk_build_carry_results(f, &c, op);
}

// ---- Trip count
static tk_dtype unsigned_of(tk_dtype t) { return tk_dtype_bits(t) == 64 ? TK_U64 : TK_U32; }

// How often the loop runs, as an unsigned number of the index's width: no difference of two bounds
// overflows it.
static tk_vid trip_count(tk_bfn *f, const tk_xs *s, tk_vid from, tk_vid to, tk_vid step) {
    tk_span at = s->span;
    const tk_type *t = tk_build_typeof(f, from);
    const tk_type *u = tk_type_scalar(f->arena, unsigned_of(t->dtype));
    const tk_type *b = tk_type_scalar(f->arena, TK_BOOL);
    bool constant = s->step->kind == TK_X_CONST;
    bool down = constant && tk_dtype_is_signed(t->dtype) && tk_const_as_i64(s->step->u.konst) < 0;
    bool up = !tk_dtype_is_signed(t->dtype) || (constant && !down);
    tk_vid zero = tk_build_const(f, at, t, tk_const_i64(t->dtype, 0));
    tk_vid none = tk_build_const(f, at, u, tk_const_u64(u->dtype, 0));
    tk_vid one = tk_build_const(f, at, u, tk_const_u64(u->dtype, 1));
    tk_vid a = tk_build_cast(f, at, from, u->dtype);
    tk_vid z = tk_build_cast(f, at, to, u->dtype);
    tk_vid size = tk_build_cast(f, at, step, u->dtype);
    tk_vid runs = 0;
    tk_vid span = 0;
    if (!down) {
        tk_vid positive = TK_BUILD_OPS(f, at, TK_OP_GT, b, step, zero);
        tk_vid before = TK_BUILD_OPS(f, at, TK_OP_LT, b, from, to);
        runs = TK_BUILD_OPS(f, at, TK_OP_AND, b, positive, before);
        span = TK_BUILD_OPS(f, at, TK_OP_SUB, u, z, a);
    }
    if (!up) {
        tk_vid negative = TK_BUILD_OPS(f, at, TK_OP_LT, b, step, zero);
        tk_vid after = TK_BUILD_OPS(f, at, TK_OP_GT, b, from, to);
        tk_vid falls = TK_BUILD_OPS(f, at, TK_OP_AND, b, negative, after);
        tk_vid back = TK_BUILD_OPS(f, at, TK_OP_SUB, u, a, z);
        tk_vid minus = TK_BUILD_OPS(f, at, TK_OP_SUB, u, none, size);
        runs = tk_build_bool(f, at, TK_OP_OR, runs, falls);
        span = span ? TK_BUILD_OPS(f, at, TK_OP_SELECT, u, negative, back, span) : back;
        size = down ? minus : TK_BUILD_OPS(f, at, TK_OP_SELECT, u, negative, minus, size);
    }
    tk_vid less = TK_BUILD_OPS(f, at, TK_OP_SUB, u, span, one);
    tk_vid whole = TK_BUILD_OPS(f, at, TK_OP_DIV, u, less, size);
    tk_vid count = TK_BUILD_OPS(f, at, TK_OP_ADD, u, whole, one);
    return TK_BUILD_OPS(f, at, TK_OP_SELECT, u, runs, count, none);
}

void tk_build_for(tk_bfn *f, const tk_xs *s) {
    tk_vid bound[3] = {tk_build_x(f, s->from), tk_build_x(f, s->to), tk_build_x(f, s->step)};
    if (!(tk_build_block_ends(s->body) & (TK_BE_BREAK | TK_BE_RETURN))) {
        plain_for(f, s, bound);
        return;
    }
    loop l = {.s = s, .counted = true, .from = bound[0], .step = bound[2]};
    l.count = trip_count(f, s, bound[0], bound[1], bound[2]);
    const tk_type *t = tk_build_typeof(f, l.count);
    l.counter = (tk_bslot){.type = t, .name = "n", .bound = true};
    general_loop(f, &l);
}

void tk_build_while(tk_bfn *f, const tk_xs *s) {
    loop l = {.s = s};
    general_loop(f, &l);
}
