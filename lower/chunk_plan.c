// SPDX-License-Identifier: Apache-2.0
// Which ops become loops over parts, and which tiles are kept. See chunk.h.
//
// The walk goes backwards: what is planned last knows all that is asked of it. An op with an effect
// on a tile that is too large is a sink; so is one that makes something small of such a tile where
// somebody asks for the whole of what it makes. A value that must be kept (it cannot be read again,
// or a loop carries it) is one where it is made.
#include "lower/chunk.h"
#include "lower/lower.h"

#include <string.h>

// ---- Memory -------------------------------------------------------------------------------------

static bool is_loop(const tk_op *op) { return op->code == TK_OP_FOR || op->code == TK_OP_WHILE; }

static bool is_inside(const tk_op *op, const tk_op *loop) {
    for (const tk_region *r = op->in; r; r = r->owner ? r->owner->in : NULL) {
        if (r->owner == loop) {
            return true;
        }
    }
    return false;
}

// Whether a part of the store's tile is stored where the same part of the load's was read.
static bool same_place(const tk_chunker *s, const tk_op *load, const tk_op *store) {
    bool same = store->code == TK_OP_STORE && load->opnd[0] == store->opnd[0];
    for (uint32_t d = 0; same && d < tk_chunk_type(s, load->opnd[0])->rank; d++) {
        same = load->at.index[d] >= 0 && load->at.index[d] == store->at.index[d] &&
               load->opnd[1 + d] == store->opnd[1 + d];
    }
    return same;
}

// Between the load and the site, `at` ops from the function's start, nothing has written what is
// loaded, and no other program can have: tensors that are `in` nobody writes, and a program that
// has not used an atomic has not waited for another.
static bool is_fresh(const tk_chunker *s, const tk_op *load, const tk_op *site, uint32_t at) {
    const tk_vid tensor = load->opnd[0];
    if (tk_chunk_type(s, tensor)->access == TK_IN) {
        return true;
    }
    for (uint32_t i = 0; i < s->writes.n; i++) {
        const tk_op *w = s->writes.at[i];
        if (tk_op_info(w->code)->effect == TK_FX_WRITE && w->opnd[0] != tensor) {
            continue; // an atomic or a call may be anything
        }
        uint32_t pos = s->write_pos.at[i];
        if ((w == site && !same_place(s, load, w)) || (s->pos[load->res[0]] < pos && pos < at)) {
            return false;
        }
        for (const tk_region *r = w->in; r; r = r->owner ? r->owner->in : NULL) {
            const tk_op *loop = r->owner;
            if (loop && is_loop(loop) && is_inside(site, loop) && !is_inside(load, loop)) {
                return false;
            }
        }
    }
    return true;
}

// ---- Kept tiles ---------------------------------------------------------------------------------

enum { LANES = 32, REGISTERS = 65536, LEAST = 64 }; // of a multiprocessor; elements

tk_handed_on tk_handed_on_by(int64_t warps) {
    int64_t threads = warps * LANES, share = REGISTERS / threads * 3 / 4;
    share = share > TK_THREAD_ELEMS ? TK_THREAD_ELEMS : share < LEAST ? LEAST : share;
    return (tk_handed_on){share * threads, TK_THREAD_ELEMS * threads};
}

static bool is_product(const tk_func *f, tk_vid v) {
    const tk_op *op = tk_value_def(f, v);
    return op && (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED);
}

bool tk_tile_kept(const tk_func *f, tk_vid v, const tk_handed_on *most) {
    for (;;) {
        const tk_irvalue *x = &f->value.at[v];
        const tk_op *op = x->def ? x->def : x->region ? x->region->owner : NULL;
        if (!op || !tk_type_is_tile(x->type)) {
            return false;
        }
        if (op->code == TK_OP_INSERT || op->code == TK_OP_EMPTY) {
            return true;
        }
        if (op->code != TK_OP_FOR && op->code != TK_OP_WHILE && op->code != TK_OP_IF) {
            return false;
        }
        uint32_t bounds = op->code == TK_OP_FOR ? 3 : 0, first = op->code == TK_OP_FOR ? 1 : 0;
        uint32_t which = x->index - (x->def ? 0 : first);
        tk_vid next = op->reg[op->nreg - 1]->last->opnd[which];
        tk_vid other = op->reg[0]->last->opnd[op->code == TK_OP_IF ? which : 0];
        bool product = is_product(f, next) || (op->code == TK_OP_IF && is_product(f, other));
        if (tk_type_elems(x->type) > (product ? most->product : most->tile)) {
            return true;
        }
        if (op->code == TK_OP_IF) {
            return tk_tile_kept(f, next, most) || tk_tile_kept(f, other, most);
        }
        v = op->opnd[bounds + which];
    }
}

bool tk_chunk_kept(const tk_chunker *s, tk_vid v) { return tk_tile_kept(s->f, v, &s->handed_on); }

bool tk_part_is_piece(const tk_chunker *s, const tk_type *t, const tk_part *p, bool once) {
    tk_part q = tk_part_whole(t);
    unsigned axis;
    int64_t count;
    const tk_type *piece = t;
    while (tk_chunk_cut(s, piece, TK_AXIS_ALL, &axis, &count)) {
        q.count[axis] *= count;
        if (memcmp(q.count, p->count, p->rank * sizeof *q.count) == 0) {
            return true;
        }
        if (once) {
            return false;
        }
        piece = tk_part_type(s, t, &q);
    }
    return false;
}

// ---- Whether a part can be made -----------------------------------------------------------------

typedef struct plan {
    tk_chunker *s;
    const tk_op *site;
    uint32_t at;
    const tk_op *root; // is made anew, not read from where it is kept
    tk_sink *sink;     // what its loop needs is noted there
    TK_VEC(tk_part_node *) stack;
} plan;

// A product, or what a loop carries, that stays in registers.
static bool stays(const tk_chunker *s, const tk_op *op) {
    return (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) &&
           tk_chunk_elems(s, op->res[0]) <= s->whole;
}

// What is made by an op that hands nothing on can be kept where it is made.
static bool can_keep(const tk_chunker *s, tk_vid v) {
    const tk_op *op = tk_value_def(s->f, v);
    return op && tk_op_info(op->code)->effect != TK_FX_CONTROL;
}

static bool leaf_kept(plan *p, tk_part_node *x) {
    tk_vec_push(p->s->a, &p->sink->keep, x->v);
    return tk_part_is_piece(p->s, tk_chunk_type(p->s, x->v), &x->part, true);
}

// Finds the parts of the operands; a node that needs none is done.
static bool expand(plan *p, tk_part_node *x) {
    tk_chunker *s = p->s;
    const tk_op *op = x->op;
    x->state = TK_PART_DONE;
    if (tk_chunk_kept(s, x->v)) {
        tk_vec_push(s->a, &p->sink->whole, x->v);
        return tk_part_is_piece(s, tk_chunk_type(s, x->v), &x->part, false);
    }
    if (!op) {
        return false;
    }
    if (op != p->root && (s->need[x->v] & TK_NEED_KEPT) && can_keep(s, x->v) &&
        tk_part_is_piece(s, tk_chunk_type(s, x->v), &x->part, true)) {
        return leaf_kept(p, x);
    }
    switch (tk_op_info(op->code)->effect) {
    case TK_FX_ATOMIC:
        return leaf_kept(p, x);
    case TK_FX_READ:
        if (!is_fresh(s, op, p->site, p->at)) {
            if (!leaf_kept(p, x)) {
                return false;
            }
        } else if (tk_chunk_type(s, op->opnd[0])->access != TK_IN) {
            tk_vec_push(s->a, &p->sink->reads, op->opnd[0]);
        }
        break;
    case TK_FX_PURE:
        break;
    case TK_FX_WRITE:
    case TK_FX_RING:
    case TK_FX_CONTROL:
    case TK_FX_DEBUG:
    case TK_FX_CALL:
        return false;
    }
    x->state = TK_PART_OPEN;
    x->in = TK_NEW_ARRAY(s->a, tk_part, op->nopnd + 1);
    if (op->code == TK_OP_SCAN && x->part.count[op->at.axis] > 1) { // needs what is before it
        x->in[0] = x->part;
        return leaf_kept(p, x);
    }
    return !stays(s, op) && tk_part_operands(s, op, &x->part, x->in);
}

static bool visit(plan *p, tk_part_node *x) {
    bool ready = true;
    for (uint32_t i = 0; i < x->op->nopnd; i++) {
        if (tk_part_is_whole(&x->in[i])) {
            tk_vec_push(p->s->a, &p->sink->whole, x->op->opnd[i]);
            continue;
        }
        tk_part_node *y = tk_part_node_of(p->s, x->op->opnd[i], &x->in[i]);
        if (y->state == TK_PART_NEW) {
            tk_vec_push(p->s->a, &p->stack, y);
            ready = false;
        }
    }
    x->state = ready ? TK_PART_DONE : TK_PART_OPEN;
    if (ready) {
        tk_vec_push(p->s->a, &p->sink->made, x->v);
    }
    return true;
}

static bool can(plan *p, tk_vid v, const tk_part *part) {
    if (tk_part_is_whole(part)) {
        tk_vec_push(p->s->a, &p->sink->whole, v);
        return true;
    }
    tk_part_node *root = tk_part_node_of(p->s, v, part);
    tk_vec_push(p->s->a, &p->stack, root);
    while (p->stack.n) {
        tk_part_node *x = p->stack.at[p->stack.n - 1];
        if (x->state == TK_PART_NEW && !expand(p, x)) {
            return false;
        }
        if (x->state == TK_PART_OPEN && !visit(p, x)) {
            return false;
        }
        if (x->state == TK_PART_DONE && p->stack.at[p->stack.n - 1] == x) {
            p->stack.n--;
        }
    }
    return true;
}

// ---- Sinks --------------------------------------------------------------------------------------

// The tile that is cut.
const tk_type *tk_sink_type(const tk_chunker *s, const tk_sink *k) {
    const tk_op *op = k->op;
    switch (k->kind) {
    case TK_SINK_EFFECT:
        if (tk_op_info(op->code)->effect == TK_FX_DEBUG) {
            return tk_chunk_type(s, op->opnd[0]);
        }
        return tk_chunk_type(s, op->nres ? op->res[0]
                                         : op->opnd[1 + tk_chunk_type(s, op->opnd[0])->rank]);
    case TK_SINK_REDUCE:
    case TK_SINK_ARG:
    case TK_SINK_HISTOGRAM:
    case TK_SINK_GATHER:
    case TK_SINK_DOT:
        return tk_chunk_type(s, op->opnd[0]);
    case TK_SINK_INSERT:
        return tk_chunk_type(s, op->opnd[1]);
    case TK_SINK_KEEP:
    case TK_SINK_SCAN:
        break;
    }
    return tk_chunk_type(s, k->v);
}

// Whether all operands' parts can be made.
static bool roots(plan *p, const tk_sink *k) {
    tk_chunker *s = p->s;
    const tk_op *op = k->op;
    tk_part part = tk_part_along(tk_sink_type(s, k), k->axis, k->count, 0);
    tk_part *in = TK_NEW_ARRAY(s->a, tk_part, op->nopnd + 1);
    switch (k->kind) {
    case TK_SINK_EFFECT:
        if (!tk_part_operands(s, op, &part, in)) {
            return false;
        }
        for (uint32_t i = 0; i < op->nopnd; i++) {
            if (!can(p, op->opnd[i], &in[i])) {
                return false;
            }
        }
        return true;
    case TK_SINK_DOT:
        for (uint32_t i = 0; i < op->nopnd; i++) {
            const tk_type *t = tk_chunk_type(s, op->opnd[i]);
            in[i] = i == 2 ? tk_part_whole(t) : tk_part_along(t, t->rank - 1u - i, k->count, 0);
            if (!can(p, op->opnd[i], &in[i])) {
                return false;
            }
        }
        return true;
    case TK_SINK_GATHER:
        tk_vec_push(s->a, &p->sink->whole, op->opnd[1]);
        return can(p, op->opnd[0], &part);
    case TK_SINK_REDUCE:
    case TK_SINK_ARG:
    case TK_SINK_HISTOGRAM:
    case TK_SINK_SCAN:
        return can(p, op->opnd[0], &part);
    case TK_SINK_INSERT:
        for (uint32_t i = 0; i < op->nopnd; i++) {
            if (i != 1) {
                tk_vec_push(s->a, &p->sink->whole, op->opnd[i]);
            }
        }
        return can(p, op->opnd[1], &part);
    case TK_SINK_KEEP:
        break;
    }
    p->root = op;
    return can(p, k->v, &part);
}

// Of a product, the inner extent: until neither operand's part is too large.
static bool cut_product(const tk_chunker *s, tk_sink *k) {
    const tk_type *a = tk_sink_type(s, k);
    int64_t na = tk_type_elems(a), nb = tk_chunk_elems(s, k->op->opnd[1]);
    k->axis = a->rank - 1u;
    k->count = 1;
    while (k->count < a->dim[k->axis] && (na > nb ? na : nb) / k->count > s->most) {
        k->count *= 2;
    }
    return k->count > 1;
}

static bool try_axis(tk_chunker *s, tk_sink *k, int axis, uint32_t at) {
    if (k->kind == TK_SINK_DOT ? !cut_product(s, k)
                               : !tk_chunk_cut(s, tk_sink_type(s, k), axis, &k->axis, &k->count)) {
        return false;
    }
    tk_sink *made = TK_NEW(s->a, tk_sink);
    *made = *k;
    made->pos = at;
    plan p = {.s = s, .site = k->op, .at = at, .sink = made};
    s->epoch++;
    if (!roots(&p, made)) {
        return false;
    }
    for (uint32_t i = 0; i < made->whole.n; i++) {
        s->need[made->whole.at[i]] |= TK_NEED_WHOLE;
    }
    for (uint32_t i = 0; i < made->keep.n; i++) {
        s->need[made->keep.at[i]] |= TK_NEED_KEPT;
    }
    tk_vec_push(s->a, &s->sinks, made);
    return true;
}

// The first axis if it will do, so that parts are rows where they can be; `only`: this one alone.
static bool sink(tk_chunker *s, tk_sink k, int only, uint32_t at) {
    if (only != TK_AXIS_ALL) {
        return try_axis(s, &k, only, at);
    }
    if (try_axis(s, &k, TK_AXIS_ALL, at)) {
        return true;
    }
    for (unsigned i = 0; i < tk_sink_type(s, &k)->rank; i++) {
        if (try_axis(s, &k, (int)i, at)) {
            return true;
        }
    }
    return false;
}

// ---- The walk -----------------------------------------------------------------------------------

static void need_operands(tk_chunker *s, const tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        s->need[op->opnd[i]] |= TK_NEED_WHOLE;
    }
}

static bool any_large(const tk_chunker *s, const tk_op *op, int64_t most) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (tk_chunk_elems(s, op->opnd[i]) > most) {
            return true;
        }
    }
    return op->nres && tk_chunk_elems(s, op->res[0]) > most;
}

// The kind of loop that a pure op becomes whose operand is too large and whose result is not.
static bool kind_of(const tk_op *op, tk_sink_kind *kind) {
    switch ((int)op->code) { // others are left whole
    case TK_OP_REDUCE:
        *kind = TK_SINK_REDUCE;
        return true;
    case TK_OP_ARG_REDUCE:
        *kind = TK_SINK_ARG;
        return true;
    case TK_OP_HISTOGRAM:
        *kind = TK_SINK_HISTOGRAM;
        return true;
    case TK_OP_GATHER:
        *kind = TK_SINK_GATHER;
        return true;
    case TK_OP_DOT:
        *kind = TK_SINK_DOT;
        return true;
    case TK_OP_INSERT:
        *kind = TK_SINK_INSERT;
        return true;
    }
    return false;
}

// A pure op whose result is asked for as a whole: whether it becomes a loop.
static bool plan_pure(tk_chunker *s, tk_op *op, uint32_t at) {
    tk_sink k = {.op = op, .v = op->res[0]};
    const int64_t most = op->code == TK_OP_DOT ? s->whole : s->most;
    if (!kind_of(op, &k.kind)) {
        return false;
    }
    if (k.kind == TK_SINK_INSERT) {
        // Cut as every tile of its shape that is kept.
        return tk_chunk_elems(s, op->opnd[1]) > most && try_axis(s, &k, TK_AXIS_ALL, at);
    }
    if (!any_large(s, op, most) || tk_chunk_elems(s, op->res[0]) > most) {
        return false;
    }
    if (k.kind == TK_SINK_ARG && op->at.axis == TK_AXIS_ALL) {
        return try_axis(s, &k, TK_AXIS_ALL, at); // parts are runs of row-major order
    }
    if (k.kind == TK_SINK_DOT) {
        return try_axis(s, &k, TK_AXIS_ALL, at);
    }
    return sink(s, k, k.kind == TK_SINK_HISTOGRAM ? TK_AXIS_ALL : op->at.axis, at);
}

static void keep_whole(tk_chunker *s, tk_sink k, uint32_t at) {
    tk_sink *made = TK_NEW(s->a, tk_sink);
    *made = k;
    made->kind = TK_SINK_KEEP;
    made->pos = at;
    made->count = 1;
    tk_vec_push(s->a, &s->sinks, made);
}

// A value that is to be kept: made by parts, or as a whole and then put away.
static void plan_kept(tk_chunker *s, tk_op *op, uint32_t r, uint32_t at) {
    tk_sink k = {.kind = TK_SINK_KEEP, .op = op, .v = op->res[r]};
    unsigned axis;
    int64_t count;
    bool cut = tk_chunk_cut(s, tk_chunk_type(s, k.v), TK_AXIS_ALL, &axis, &count);
    if (op->code == TK_OP_SCAN && (int)axis == op->at.axis) {
        k.kind = TK_SINK_SCAN;
    }
    if (cut && try_axis(s, &k, TK_AXIS_ALL, at)) {
        return;
    }
    s->need[k.v] |= TK_NEED_WHOLE;
    keep_whole(s, k, at);
}

static void plan_op(tk_chunker *s, tk_op *op, uint32_t at) {
    const tk_effect effect = tk_op_info(op->code)->effect;
    unsigned need = 0;
    for (uint32_t i = 0; i < op->nres; i++) {
        need |= s->need[op->res[i]];
    }
    if (effect == TK_FX_PURE || effect == TK_FX_READ) {
        for (uint32_t i = 0; (need & TK_NEED_KEPT) && i < op->nres; i++) {
            if (s->need[op->res[i]] & TK_NEED_KEPT) {
                plan_kept(s, op, i, at);
                need |= s->need[op->res[i]];
            }
        }
        if ((need & TK_NEED_WHOLE) && !plan_pure(s, op, at)) {
            need_operands(s, op);
        }
        return;
    }
    tk_sink k = {.kind = TK_SINK_EFFECT, .op = op, .v = op->nres ? op->res[0] : 0};
    bool cuts = effect == TK_FX_WRITE || effect == TK_FX_ATOMIC || op->code == TK_OP_ASSERT ||
                op->code == TK_OP_ASSUME;
    // The result of an atomic as a whole would have to be put together again.
    cuts = cuts && !(need & TK_NEED_WHOLE) && any_large(s, op, s->most);
    if (!cuts || !sink(s, k, TK_AXIS_ALL, at)) {
        need_operands(s, op);
        if (effect == TK_FX_ATOMIC && (need & TK_NEED_KEPT)) {
            keep_whole(s, k, at);
        }
    }
}

// What a control op hands on: a tile that is carried kept is to be kept where it is made.
static void hand_on(tk_chunker *s, tk_vid v, tk_vid as) {
    bool keep = tk_chunk_kept(s, as) && !tk_chunk_kept(s, v) && can_keep(s, v);
    s->need[v] |= keep ? TK_NEED_KEPT : TK_NEED_WHOLE;
}

static void hand_on_all(tk_chunker *s, const tk_op *op) {
    for (uint32_t r = 0; r < op->nreg; r++) {
        const tk_op *y = op->reg[r]->last;
        bool as_result =
            op->code == TK_OP_FOR || op->code == TK_OP_IF || (op->code == TK_OP_WHILE && r == 1);
        for (uint32_t i = 0; i < y->nopnd; i++) {
            hand_on(s, y->opnd[i], as_result ? op->res[i] : y->opnd[i]);
        }
    }
    const uint32_t bounds = op->code == TK_OP_FOR ? 3 : 0;
    for (uint32_t i = 0; is_loop(op) && i < op->nres; i++) {
        hand_on(s, op->opnd[bounds + i], op->res[i]);
    }
    for (uint32_t i = 0; i < (is_loop(op) ? bounds : op->nopnd); i++) {
        s->need[op->opnd[i]] |= TK_NEED_WHOLE;
    }
}

static void plan_region(tk_chunker *s, const tk_region *r, uint32_t *at) {
    for (tk_op *op = r->last; op; op = op->prev) {
        if (op->nreg) {
            hand_on_all(s, op);
        }
        for (uint32_t i = op->nreg; i-- > 0;) {
            plan_region(s, op->reg[i], at);
        }
        --*at;
        if (tk_op_info(op->code)->effect != TK_FX_CONTROL) {
            plan_op(s, op, *at);
        }
    }
}

// ---- The round's facts --------------------------------------------------------------------------

typedef struct count {
    tk_chunker *s;
    uint32_t n;
} count;

static void number(void *user, tk_op *op) {
    count *k = user;
    k->s->op[k->n] = op;
    for (uint32_t i = 0; i < op->nres; i++) {
        k->s->pos[op->res[i]] = k->n;
    }
    const tk_effect effect = tk_op_info(op->code)->effect;
    if (effect == TK_FX_WRITE || effect == TK_FX_ATOMIC || effect == TK_FX_CALL) {
        tk_vec_push(k->s->a, &k->s->writes, op);
        tk_vec_push(k->s->a, &k->s->write_pos, k->n);
    }
    k->n++;
}

static void count_op(void *user, tk_op *op) {
    uint32_t *n = user;
    (void)op;
    ++*n;
}

void tk_chunk_plan(tk_chunker *s) {
    count k = {s, 0};
    for (tk_op *op = s->f->body->first; op; op = op->next) {
        tk_op_walk(op, count_op, &k.n);
    }
    s->nop = k.n;
    s->op = TK_NEW_ARRAY(s->a, tk_op *, k.n + 1);
    s->writes.n = s->write_pos.n = s->sinks.n = 0;
    k.n = 0;
    for (tk_op *op = s->f->body->first; op; op = op->next) {
        tk_op_walk(op, number, &k);
    }
    need_operands(s, s->f->body->last);
    s->dry = true;
    plan_region(s, s->f->body, &k.n);
    s->dry = false;
}
