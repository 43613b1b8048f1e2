// SPDX-License-Identifier: Apache-2.0
// The loop over parts that an op becomes. See chunk.h.
#include "lower/chunk.h"

// What stands in front of a sink's loop, in it and behind it are three functions each, so that
// several sinks can share a loop: begin (fills in init), body (next, from arg), end (from last).
typedef void begin_fn(tk_chunker *s, tk_sink *k);
typedef void body_fn(tk_chunker *s, tk_sink *k, tk_vid number);
typedef void end_fn(tk_chunker *s, tk_sink *k);

static void carry(tk_sink *k, tk_vid init) { k->init[k->n++] = init; }

static tk_vid empty(tk_chunker *s, const tk_type *t) {
    return tk_chunk_op(s, TK_OP_EMPTY, 0, NULL, 1, &t)->res[0];
}

static void replace(tk_chunker *s, const tk_sink *k, tk_vid with) {
    tk_vmap_set(&s->map, k->op->res[0], with);
}

static const tk_type *as_type(const tk_chunker *s, const tk_type *t, tk_dtype d) {
    return tk_type_with_dtype(s->c->m->arena, t, d);
}

static tk_part part_of(const tk_chunker *s, const tk_sink *k, tk_vid tile, tk_vid number) {
    return tk_part_along(tk_chunk_type(s, tile), k->axis, k->count, number);
}

static tk_vid choose(tk_chunker *s, tk_vid cond, tk_vid x, tk_vid y) {
    const tk_type *t = tk_chunk_type(s, x);
    return tk_chunk_op(s, TK_OP_SELECT, 3, (tk_vid[]){cond, x, y}, 1, &t)->res[0];
}

// ---- Effects, and tiles that are kept -----------------------------------------------------------

static bool keeps_result(const tk_chunker *s, const tk_op *op) {
    return op->nres && (s->need[op->res[0]] & TK_NEED_KEPT);
}

static void effect_begin(tk_chunker *s, tk_sink *k) {
    if (keeps_result(s, k->op)) {
        carry(k, empty(s, tk_chunk_type(s, k->op->res[0])));
    }
}

static void effect_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    tk_part p = tk_part_along(tk_sink_type(s, k), k->axis, k->count, number);
    tk_part *in = TK_NEW_ARRAY(s->a, tk_part, op->nopnd + 1);
    tk_vid *opnd = TK_NEW_ARRAY(s->a, tk_vid, op->nopnd + 1);
    TK_CHECK(s->a, tk_part_operands(s, op, &p, in));
    for (uint32_t i = 0; i < op->nopnd; i++) {
        opnd[i] = tk_chunk_value(s, op->opnd[i], &in[i]);
    }
    const tk_op *made = tk_chunk_again(s, op, &p, opnd);
    if (k->n) {
        k->next[0] = tk_chunk_insert(s, k->arg[0], made->res[0], &p);
    }
}

static void effect_end(tk_chunker *s, tk_sink *k) {
    if (k->n) {
        s->kept[k->op->res[0]] = k->last[0];
        replace(s, k, k->last[0]); // in what nothing uses any more
    }
}

static void keep_begin(tk_chunker *s, tk_sink *k) { carry(k, empty(s, tk_chunk_type(s, k->v))); }

static void keep_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    tk_part p = part_of(s, k, k->v, number);
    k->next[0] = tk_chunk_insert(s, k->arg[0], tk_chunk_value(s, k->v, &p), &p);
}

static void keep_end(tk_chunker *s, tk_sink *k) { s->kept[k->v] = k->last[0]; }

static void keep_whole(tk_chunker *s, tk_sink *k) {
    const tk_type *t = tk_chunk_type(s, k->v);
    tk_part p = tk_part_whole(t);
    s->kept[k->v] = tk_chunk_insert(s, empty(s, t), k->v, &p);
}

// A part that is itself too large is put into the tile by parts.
static void insert_begin(tk_chunker *s, tk_sink *k) {
    (void)s;
    carry(k, k->op->opnd[0]);
}

static void insert_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    tk_part p = part_of(s, k, op->opnd[1], number), at = p;
    tk_vid x = tk_chunk_value(s, op->opnd[1], &p);
    for (unsigned i = 0; i < at.rank; i++) {
        at.number[i] = op->opnd[2 + i];
    }
    tk_vid high = tk_chunk_scaled(s, at.number[k->axis], k->count);
    at.number[k->axis] = tk_chunk_binary(s, TK_OP_ADD, high, number);
    k->next[0] = tk_chunk_insert(s, k->arg[0], x, &at);
}

static void last_is_result(tk_chunker *s, tk_sink *k) { replace(s, k, k->last[0]); }

// ---- Reductions ---------------------------------------------------------------------------------

static tk_opcode combine_of(tk_kindattr kind) {
    switch (kind) {
    case TK_K_SUM:
    case TK_K_ADD:
        return TK_OP_ADD;
    case TK_K_PROD:
        return TK_OP_MUL;
    case TK_K_MIN:
        return TK_OP_MIN;
    case TK_K_MAX:
        return TK_OP_MAX;
    case TK_K_ANY:
    case TK_K_OR:
        return TK_OP_OR;
    case TK_K_ALL:
    case TK_K_AND:
        return TK_OP_AND;
    case TK_K_XOR:
    case TK_K_XCHG:
        break;
    }
    return TK_OP_XOR;
}

static tk_vid combined(tk_chunker *s, const tk_op *op, tk_vid x, tk_vid y) {
    tk_vid r = tk_chunk_binary(s, combine_of(op->at.kind), x, y);
    tk_value_def(s->f, r)->fast = op->fast;
    return r;
}

static tk_vid reduced(tk_chunker *s, tk_opcode code, const tk_op *like, tk_kindattr kind, tk_vid x,
                      const tk_type *t) {
    tk_op *r = tk_chunk_op(s, code, 1, &x, 1, &t);
    r->at.axis = like->at.axis;
    r->at.kind = kind;
    r->fast = like->fast;
    return r->res[0];
}

// Parts that fit are combined element by element and reduced at the end; larger ones are reduced
// each, and the results combined.
static bool fits(const tk_chunker *s, const tk_sink *k) {
    return tk_chunk_elems(s, k->op->opnd[0]) / k->count <= s->most;
}

static void reduce_begin(tk_chunker *s, tk_sink *k) {
    const tk_op *op = k->op;
    tk_part p = part_of(s, k, op->opnd[0], 0);
    const tk_type *t = fits(s, k) ? tk_part_type(s, tk_chunk_type(s, op->opnd[0]), &p)
                                  : tk_chunk_type(s, op->res[0]);
    carry(k, tk_chunk_const(s, t, tk_kind_identity(op->at.kind, t->dtype)));
}

static void reduce_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    tk_part p = part_of(s, k, op->opnd[0], number);
    tk_vid x = tk_chunk_value(s, op->opnd[0], &p);
    if (!fits(s, k)) {
        x = reduced(s, TK_OP_REDUCE, op, op->at.kind, x, tk_chunk_type(s, op->res[0]));
    }
    k->next[0] = combined(s, op, k->arg[0], x);
}

static void reduce_end(tk_chunker *s, tk_sink *k) {
    const tk_op *op = k->op;
    tk_vid x = k->last[0];
    if (fits(s, k)) {
        x = reduced(s, TK_OP_REDUCE, op, op->at.kind, x, tk_chunk_type(s, op->res[0]));
    }
    replace(s, k, x);
}

static void histogram_begin(tk_chunker *s, tk_sink *k) {
    carry(k, tk_chunk_const(s, tk_chunk_type(s, k->op->res[0]), tk_const_i64(TK_I32, 0)));
}

static void histogram_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    tk_part p = part_of(s, k, op->opnd[0], number);
    tk_vid x = tk_chunk_value(s, op->opnd[0], &p);
    x = tk_chunk_unary(s, TK_OP_HISTOGRAM, x, tk_chunk_type(s, op->res[0]));
    k->next[0] = tk_chunk_binary(s, TK_OP_ADD, k->arg[0], x);
}

static void gather_begin(tk_chunker *s, tk_sink *k) {
    const tk_type *t = tk_chunk_type(s, k->op->res[0]);
    carry(k, tk_chunk_const(s, t, (tk_const){t->dtype, 0}));
}

// Of the elements that are in this part; outside of it gather gives 0.
static void gather_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    const tk_type *from = tk_chunk_type(s, op->opnd[0]), *t = tk_chunk_type(s, op->res[0]);
    const tk_type *wide = as_type(s, t, TK_I64);
    const int64_t n = from->dim[k->axis] / k->count;
    tk_part p = part_of(s, k, op->opnd[0], number);
    tk_vid first = tk_chunk_unary(s, TK_OP_CAST, tk_chunk_scaled(s, number, n),
                                  tk_type_scalar(s->c->m->arena, TK_I64));
    tk_vid opnd[2] = {tk_chunk_value(s, op->opnd[0], &p), op->opnd[1]};
    if (!tk_type_eq(tk_chunk_type(s, opnd[1]), wide)) {
        opnd[1] = tk_chunk_unary(s, TK_OP_CAST, opnd[1], wide);
    }
    opnd[1] = tk_chunk_binary(s, TK_OP_SUB, opnd[1], tk_chunk_spread(s, first, wide));
    tk_op *made = tk_chunk_op(s, TK_OP_GATHER, 2, opnd, 1, &t);
    made->at.axis = op->at.axis;
    tk_vid none = tk_chunk_const(s, wide, tk_const_i64(TK_I64, 0));
    tk_vid all = tk_chunk_const(s, wide, tk_const_i64(TK_I64, n));
    tk_vid in = tk_chunk_binary(s, TK_OP_AND, tk_chunk_binary(s, TK_OP_GE, opnd[1], none),
                                tk_chunk_binary(s, TK_OP_LT, opnd[1], all));
    k->next[0] = choose(s, in, made->res[0], k->arg[0]);
}

static void dot_begin(tk_chunker *s, tk_sink *k) {
    const tk_op *op = k->op;
    const tk_type *t = tk_chunk_type(s, op->res[0]);
    carry(k, op->nopnd == 3 ? op->opnd[2] : tk_chunk_const(s, t, tk_const_i64(t->dtype, 0)));
}

static void dot_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    const tk_type *t = tk_chunk_type(s, op->res[0]);
    tk_vid opnd[3] = {0, 0, k->arg[0]};
    for (uint32_t i = 0; i < 2; i++) { // the inner extent: the last axis of a, the one before of b
        const tk_type *x = tk_chunk_type(s, op->opnd[i]);
        tk_part p = tk_part_along(x, x->rank - 1u - i, k->count, number);
        opnd[i] = tk_chunk_value(s, op->opnd[i], &p);
    }
    tk_op *made = tk_chunk_op(s, TK_OP_DOT, 3, opnd, 1, &t);
    made->at.precision = op->at.precision;
    made->fast = op->fast;
    k->next[0] = made->res[0];
}

// ---- arg_reduce: the best so far and its number -------------------------------------------------

// Numbers of a part's elements along the axis (of all elements, without one).
static tk_vid numbers(tk_chunker *s, const tk_sink *k, const tk_type *part, tk_vid number) {
    tk_arena *a = s->c->m->arena;
    const int axis = k->op->at.axis;
    const tk_type *to = as_type(s, part, TK_I32);
    int64_t stride = 1;
    tk_vid sum = tk_chunk_spread(
        s, tk_chunk_scaled(s, number, axis >= 0 ? part->dim[axis] : tk_type_elems(part)), to);
    for (unsigned i = part->rank; i-- > 0;) {
        int64_t n = part->dim[i];
        if ((axis >= 0 && (int)i != axis) || n == 1) {
            continue;
        }
        int64_t line[TK_MAX_RANK] = {1, 1, 1, 1, 1};
        line[i] = n;
        const tk_type *flat = tk_type_tile(a, TK_I32, 1, &n);
        tk_vid x = tk_chunk_op(s, TK_OP_IOTA, 0, NULL, 1, &flat)->res[0];
        const tk_type *lying = tk_type_tile(a, TK_I32, part->rank, line);
        x = part->rank > 1 ? tk_chunk_unary(s, TK_OP_RESHAPE, x, lying) : x;
        x = tk_chunk_spread(s, x, to);
        tk_vid by = tk_chunk_const(s, to, tk_const_i64(TK_I32, stride));
        x = stride > 1 ? tk_chunk_binary(s, TK_OP_MUL, x, by) : x;
        sum = tk_chunk_binary(s, TK_OP_ADD, sum, x);
        stride *= n;
    }
    return sum;
}

static tk_vid is_nan(tk_chunker *s, tk_vid x) {
    return tk_chunk_unary(s, TK_OP_ISNAN, x, as_type(s, tk_chunk_type(s, x), TK_BOOL));
}

// Whether v of number i is better than the best: greater (less), a NaN, or equal and earlier.
static tk_vid better(tk_chunker *s, const tk_op *op, const tk_vid *x, const tk_vid *best) {
    tk_vid r = tk_chunk_binary(s, op->at.kind == TK_K_MAX ? TK_OP_GT : TK_OP_LT, x[0], best[0]);
    tk_vid tie = tk_chunk_binary(s, TK_OP_EQ, x[0], best[0]);
    tie = tk_chunk_binary(s, TK_OP_AND, tie, tk_chunk_binary(s, TK_OP_LT, x[1], best[1]));
    r = tk_chunk_binary(s, TK_OP_OR, r, tie);
    if (tk_dtype_is_float(tk_chunk_type(s, x[0])->dtype)) {
        tk_vid old = is_nan(s, best[0]);
        tk_vid fine = tk_chunk_unary(s, TK_OP_NOT, old, tk_chunk_type(s, old));
        r = tk_chunk_binary(s, TK_OP_OR, r, tk_chunk_binary(s, TK_OP_AND, is_nan(s, x[0]), fine));
    }
    return r;
}

// The least number among those whose value is the best of all.
static tk_vid least_of_best(tk_chunker *s, const tk_op *op, const tk_vid *best) {
    const tk_type *t = tk_chunk_type(s, best[0]), *index = tk_chunk_type(s, best[1]);
    const tk_type *result = tk_chunk_type(s, op->res[0]);
    tk_vid top = reduced(s, TK_OP_REDUCE, op, op->at.kind, best[0], as_type(s, result, t->dtype));
    top = tk_chunk_spread(s, top, t);
    tk_vid hit = tk_chunk_binary(s, TK_OP_EQ, best[0], top);
    if (tk_dtype_is_float(t->dtype)) {
        tk_vid both = tk_chunk_binary(s, TK_OP_AND, is_nan(s, best[0]), is_nan(s, top));
        hit = tk_chunk_binary(s, TK_OP_OR, hit, both);
    }
    tk_vid none = tk_chunk_const(s, index, tk_const_i64(TK_I32, INT32_MAX));
    return reduced(s, TK_OP_REDUCE, op, TK_K_MIN, choose(s, hit, best[1], none), result);
}

static const tk_type *arg_part(const tk_chunker *s, const tk_sink *k) {
    tk_part p = part_of(s, k, k->op->opnd[0], 0);
    return tk_part_type(s, tk_chunk_type(s, k->op->opnd[0]), &p);
}

static void arg_begin(tk_chunker *s, tk_sink *k) {
    const tk_op *op = k->op;
    const tk_dtype d = tk_chunk_type(s, op->opnd[0])->dtype;
    const tk_type *t = fits(s, k) ? arg_part(s, k) : as_type(s, tk_chunk_type(s, op->res[0]), d);
    tk_const worst = op->at.kind == TK_K_MAX ? tk_const_least(d) : tk_const_greatest(d);
    carry(k, tk_chunk_const(s, t, worst));
    carry(k, tk_chunk_const(s, as_type(s, t, TK_I32), tk_const_i64(TK_I32, INT32_MAX)));
}

static void arg_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    const tk_type *part = arg_part(s, k), *result = tk_chunk_type(s, op->res[0]);
    tk_part p = part_of(s, k, op->opnd[0], number);
    tk_vid x[2] = {tk_chunk_value(s, op->opnd[0], &p), 0};
    if (fits(s, k)) {
        x[1] = numbers(s, k, part, number);
    } else {
        int64_t step = op->at.axis >= 0 ? part->dim[op->at.axis] : tk_type_elems(part);
        tk_vid first = tk_chunk_spread(s, tk_chunk_scaled(s, number, step), result);
        x[1] = reduced(s, TK_OP_ARG_REDUCE, op, op->at.kind, x[0], result);
        x[1] = tk_chunk_binary(s, TK_OP_ADD, x[1], first);
        x[0] = reduced(s, TK_OP_REDUCE, op, op->at.kind, x[0], as_type(s, result, part->dtype));
    }
    tk_vid take = better(s, op, x, k->arg);
    k->next[0] = choose(s, take, x[0], k->arg[0]);
    k->next[1] = choose(s, take, x[1], k->arg[1]);
}

static void arg_end(tk_chunker *s, tk_sink *k) {
    replace(s, k, fits(s, k) ? least_of_best(s, k->op, k->last) : k->last[1]);
}

// ---- scan: parts in order, each behind what the earlier ones come to ----------------------------

// The scan of one part: `before` stands in front of it. Where the scan is exclusive the first
// element is `first` itself.
static tk_vid scanned(tk_chunker *s, const tk_op *op, tk_vid x, tk_vid before, tk_vid first) {
    const tk_type *t = tk_chunk_type(s, x);
    const int64_t n = t->dim[op->at.axis];
    tk_op *own = tk_chunk_op(s, TK_OP_SCAN, 1, &x, 1, &t);
    own->at = op->at;
    own->fast = op->fast;
    tk_vid r = combined(s, op, tk_chunk_spread(s, before, t), own->res[0]);
    if (!op->at.exclusive) {
        return r;
    }
    int64_t line[TK_MAX_RANK] = {1, 1, 1, 1, 1};
    line[op->at.axis] = n;
    tk_arena *a = s->c->m->arena;
    const tk_type *flat = tk_type_tile(a, TK_I32, 1, &n),
                  *lying = tk_type_tile(a, TK_I32, t->rank, line);
    tk_vid at = tk_chunk_op(s, TK_OP_IOTA, 0, NULL, 1, &flat)->res[0];
    at = t->rank > 1 ? tk_chunk_unary(s, TK_OP_RESHAPE, at, lying) : at;
    tk_const begin = tk_const_i64(TK_I32, op->at.reverse ? n - 1 : 0);
    tk_vid is_first =
        tk_chunk_binary(s, TK_OP_EQ, at, tk_chunk_const(s, tk_chunk_type(s, at), begin));
    is_first = tk_chunk_spread(s, is_first, as_type(s, t, TK_BOOL));
    return choose(s, is_first, tk_chunk_spread(s, first, t), r);
}

// One element a line.
static const tk_type *line_end(const tk_chunker *s, const tk_sink *k) {
    const tk_type *t = tk_chunk_type(s, k->v);
    tk_part p = tk_part_along(t, k->axis, t->dim[k->axis], 0);
    return tk_part_type(s, t, &p);
}

static void scan_begin(tk_chunker *s, tk_sink *k) {
    const tk_type *t = tk_chunk_type(s, k->v), *end = line_end(s, k);
    tk_const none = tk_kind_identity(k->op->at.kind, t->dtype);
    tk_const shown = k->op->at.kind == TK_K_SUM ? (tk_const){t->dtype, 0} : none;
    carry(k, empty(s, t));
    carry(k, tk_chunk_const(s, end, none));
    carry(k, tk_chunk_const(s, end, shown));
}

static void scan_body(tk_chunker *s, tk_sink *k, tk_vid number) {
    const tk_op *op = k->op;
    if (op->at.reverse) {
        number = tk_chunk_binary(s, TK_OP_SUB, tk_chunk_i32(s, k->count - 1), number);
    }
    tk_part p = part_of(s, k, k->v, number);
    tk_vid x = tk_chunk_value(s, op->opnd[0], &p);
    tk_vid r = scanned(s, op, x, k->arg[1], k->arg[2]);
    tk_vid total = reduced(s, TK_OP_REDUCE, op, op->at.kind, x, line_end(s, k));
    k->next[0] = tk_chunk_insert(s, k->arg[0], r, &p);
    k->next[1] = k->next[2] = combined(s, op, k->arg[1], total);
}

// ---- A loop -------------------------------------------------------------------------------------

static const struct {
    begin_fn *begin;
    body_fn *body;
    end_fn *end;
} how[] = {
    [TK_SINK_EFFECT] = {effect_begin, effect_body, effect_end},
    [TK_SINK_REDUCE] = {reduce_begin, reduce_body, reduce_end},
    [TK_SINK_ARG] = {arg_begin, arg_body, arg_end},
    [TK_SINK_HISTOGRAM] = {histogram_begin, histogram_body, last_is_result},
    [TK_SINK_GATHER] = {gather_begin, gather_body, last_is_result},
    [TK_SINK_DOT] = {dot_begin, dot_body, last_is_result},
    [TK_SINK_KEEP] = {keep_begin, keep_body, keep_end},
    [TK_SINK_SCAN] = {scan_begin, scan_body, keep_end},
    [TK_SINK_INSERT] = {insert_begin, insert_body, last_is_result},
};

// The loop, with what its sinks carry.
static tk_op *make_loop(tk_chunker *s, tk_sink_group *g) {
    TK_VEC(tk_vid) opnd = {0};
    TK_VEC(const tk_type *) type = {0};
    tk_vec_push(s->a, &opnd, tk_chunk_i32(s, 0));
    tk_vec_push(s->a, &opnd, tk_chunk_i32(s, g->sink.at[0]->count));
    tk_vec_push(s->a, &opnd, tk_chunk_i32(s, 1));
    for (uint32_t i = 0; i < g->sink.n; i++) {
        for (uint32_t c = 0; c < g->sink.at[i]->n; c++) {
            tk_vec_push(s->a, &opnd, g->sink.at[i]->init[c]);
            tk_vec_push(s->a, &type, tk_chunk_type(s, g->sink.at[i]->init[c]));
        }
    }
    tk_op *loop = tk_op_new(s->f, TK_OP_FOR, s->loc, opnd.n, opnd.at, type.n, type.at, 1);
    loop->reg[0] = tk_region_new(s->f, loop);
    tk_op_insert_before(s->before, loop);
    (void)tk_region_arg(loop->reg[0], tk_type_scalar(s->c->m->arena, TK_I32), "part");
    for (uint32_t i = 0, r = 0; i < g->sink.n; i++) {
        for (uint32_t c = 0; c < g->sink.at[i]->n; c++, r++) {
            g->sink.at[i]->arg[c] = tk_region_arg(loop->reg[0], type.at[r], NULL);
            g->sink.at[i]->last[c] = loop->res[r];
        }
    }
    return loop;
}

static void fill_loop(tk_chunker *s, tk_sink_group *g, tk_op *loop) {
    TK_VEC(tk_vid) next = {0};
    tk_op *before = s->before;
    s->in = loop->reg[0];
    s->before = NULL;
    s->epoch++;
    for (uint32_t i = 0; i < g->sink.n; i++) {
        tk_sink *k = g->sink.at[i];
        s->loc = k->op->loc;
        how[k->kind].body(s, k, loop->reg[0]->args.at[0]);
        for (uint32_t c = 0; c < k->n; c++) {
            tk_vec_push(s->a, &next, k->next[c]);
        }
    }
    (void)tk_chunk_op(s, TK_OP_YIELD, next.n, next.at, 0, NULL);
    s->before = before;
}

void tk_chunk_emit(tk_chunker *s, tk_sink_group *g) {
    tk_sink *first = g->sink.at[0];
    s->before = g->behind ? g->at->next : g->at;
    s->loc = first->op->loc;
    if (first->count == 1) {
        keep_whole(s, first);
        return;
    }
    for (uint32_t i = 0; i < g->sink.n; i++) {
        how[g->sink.at[i]->kind].begin(s, g->sink.at[i]);
    }
    fill_loop(s, g, make_loop(s, g));
    for (uint32_t i = 0; i < g->sink.n; i++) {
        tk_sink *k = g->sink.at[i];
        s->loc = k->op->loc;
        how[k->kind].end(s, k);
        if (k->kind != TK_SINK_KEEP && k->kind != TK_SINK_SCAN) {
            tk_vec_push(s->a, &s->done, k->op);
        }
    }
}
