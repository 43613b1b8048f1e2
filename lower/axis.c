// SPDX-License-Identifier: Apache-2.0
// Axis analysis: the walk over regions, loops to their fixed point, programs and sizes. See axis.h.
#include "lower/axis_internal.h"

#include <string.h>

enum {
    PATIENCE = 2, // rounds in which ranges may grow step by step
    SETTLED = 8,  // after as many a value that still changes gives up its claims
    ROUNDS = 40,  // after as many everything that is carried does
};

const tk_axis_value *tk_axis_of(const tk_axis *x, tk_vid v) { return x->at[v]; }

void tk_axis_set(tk_axis *x, tk_vid v, tk_axis_value value) {
    if (!x->at[v]) {
        x->at[v] = TK_NEW(x->arena, tk_axis_value);
    }
    *x->at[v] = value;
}

static const tk_type *type_of(const tk_axis *x, tk_vid v) { return tk_value_type(x->func, v); }

static bool follows(const tk_axis *x, tk_vid v) { return tk_axis_follows(type_of(x, v)); }

// ---- Sizes and programs

tk_axis_value tk_axis_size(const tk_axis *x, uint32_t param, uint32_t axis) {
    static const tk_type size = {.kind = TK_T_VALUE, .dtype = TK_I32};
    const tk_type *t = type_of(x, x->func->params.at[param]);
    if (t->dim[axis] >= 0) {
        return tk_axis_const(&size, tk_const_i64(TK_I32, t->dim[axis]));
    }
    tk_axis_value v = tk_axis_top(&size);
    v.lo = 0;
    const tk_size_ref first = tk_func_size(x->func, param, axis);
    tk_axis_add_bound(&v, (tk_axis_bound){first.param, first.axis, 1, 0});
    if (axis + 1 == t->rank && x->facts && (x->facts[param] & TK_FACT_WHOLE)) {
        v.dim[0].div = (uint8_t)tk_axis_trailing(16 / (int64_t)tk_dtype_size(t->dtype));
    }
    return v;
}

static void size_op(tk_axis *x, const tk_op *op) {
    uint32_t param = x->func->value.at[op->opnd[0]].index;
    tk_axis_set(x, op->res[0], tk_axis_size(x, param, (uint32_t)op->at.axis));
    tk_axis_fire(x, TK_AXIS_SIZE, true);
}

// The number of programs along an axis; where a program runs there is at least one.
static tk_axis_value programs(const tk_axis *x, const tk_op *op) {
    const tk_region *grid = x->func->grid;
    const tk_type *t = type_of(x, op->res[0]);
    tk_axis_value v = tk_axis_top(t);
    const tk_axis_value *n = NULL;
    if (grid && op->at.axis >= 0 && (uint32_t)op->at.axis < grid->last->nopnd) {
        n = tk_axis_of(x, grid->last->opnd[op->at.axis]);
    }
    v = n ? *n : v;
    v.lo = v.lo < 1 ? 1 : v.lo;
    v.hi = v.hi < v.lo ? v.lo : v.hi; // no program at all: any claim holds
    return v;
}

static void program_op(tk_axis *x, const tk_op *op) {
    tk_axis_value n = programs(x, op);
    if (op->code == TK_OP_NUM_PROGRAMS) {
        tk_axis_settle(x, &n, type_of(x, op->res[0]), false);
        tk_axis_set(x, op->res[0], n);
        tk_axis_fire(x, TK_AXIS_PROGRAMS, true);
        return;
    }
    tk_axis_value v = tk_axis_top(type_of(x, op->res[0]));
    v.lo = 0;
    v.hi = n.hi - 1;
    bool bounded = tk_axis_shift_bounds(&v, &n, 1, 1); // v + 1 <= n
    tk_axis_settle(x, &v, type_of(x, op->res[0]), false);
    tk_axis_set(x, op->res[0], v);
    tk_axis_fire(x, TK_AXIS_PROGRAM, true);
    tk_axis_fire(x, TK_AXIS_PROGRAM_BOUND, bounded);
}

// ---- Control

static void region(tk_axis *x, const tk_region *r);

// The range goes to the end of its type on a side that grew.
static void widen(tk_axis *x, tk_axis_value *v, const tk_axis_value *old, const tk_type *t) {
    tk_axis_range all = tk_axis_type_range(t->dtype);
    if (!v->ranged || !old->ranged) {
        return;
    }
    if (v->lo < old->lo || v->hi > old->hi) {
        tk_axis_fire(x, TK_AXIS_WIDENED, true);
        bool low = v->lo<old->lo, high = v->hi> old->hi;
        v->ranged = all.ranged;
        v->lo = !all.ranged ? 0 : low ? all.lo : v->lo;
        v->hi = !all.ranged ? 0 : high ? all.hi : v->hi;
    }
}

// What a loop's body sees: the initial value or what a round yields (NULL: not known yet).
static void carried(tk_axis *x, tk_vid arg, tk_vid init, tk_vid yielded) {
    if (!follows(x, arg)) {
        return;
    }
    const tk_axis_value *old = tk_axis_of(x, arg), *next = tk_axis_of(x, yielded);
    tk_axis_value v = *tk_axis_of(x, init);
    v = next ? tk_axis_join(&v, next) : v;
    if (x->narrowing) { // what was widened too far comes back; rounds follow that check it
        tk_axis_set(x, arg, v);
        return;
    }
    v = old ? tk_axis_join(&v, old) : v;
    if (old && !tk_axis_equal(&v, old)) {
        if (x->round >= SETTLED) {
            v = tk_axis_top(type_of(x, arg));
            tk_axis_fire(x, TK_AXIS_GIVEN_UP, true);
        } else if (x->round >= PATIENCE) {
            widen(x, &v, old, type_of(x, arg));
        }
    }
    v = x->round >= ROUNDS ? tk_axis_top(type_of(x, arg)) : v;
    x->changed = x->changed || !old || !tk_axis_equal(&v, old);
    tk_axis_fire(x, TK_AXIS_CARRIED, next != NULL);
    tk_axis_set(x, arg, v);
}

// The index goes from `from` towards `to`, which it does not reach.
static tk_axis_value index_of(tk_axis *x, const tk_op *op) {
    const tk_axis_value *from = tk_axis_of(x, op->opnd[0]), *to = tk_axis_of(x, op->opnd[1]),
                        *step = tk_axis_of(x, op->opnd[2]);
    const tk_type *t = type_of(x, op->opnd[0]);
    tk_axis_value v = tk_axis_top(t);
    unsigned every = tk_axis_min(tk_axis_every(from), tk_axis_every(step));
    v.dim[0].div = (uint8_t)every;
    bool up = !step->ranged || step->lo >= 0, down = !up && step->hi <= 0; // by 0: never
    if (!from->ranged || !to->ranged) {
        return v;
    }
    unsigned gap = tk_axis_min(tk_axis_min(every, tk_axis_every(to)), 40);
    int64_t short_of = up ? (int64_t)1 << gap : 1; // multiples of it end that far from `to`
    v.ranged = true;
    v.lo = up || to->lo >= from->lo ? from->lo : to->lo + (to->lo < INT64_MAX);
    v.hi = down || to->hi <= from->hi ? from->hi : to->hi - 1;
    if (up) {
        v.hi = to->hi > INT64_MIN + short_of ? to->hi - short_of : to->hi;
        tk_axis_fire(x, TK_AXIS_INDEX_BOUND, tk_axis_shift_bounds(&v, to, 1, short_of));
    } else if (down) {
        tk_axis_copy_bounds(&v, from);
    }
    tk_axis_fire(x, up ? TK_AXIS_INDEX_UP : down ? TK_AXIS_INDEX_DOWN : TK_AXIS_INDEX_EITHER, true);
    if (v.hi < v.lo) { // never runs: any claim holds
        v.hi = v.lo;
    }
    return v;
}

static void for_op(tk_axis *x, const tk_op *op) {
    const tk_region *body = op->reg[0];
    tk_axis_value index = index_of(x, op);
    tk_axis_settle(x, &index, type_of(x, body->args.at[0]), false);
    tk_axis_set(x, body->args.at[0], index);
    for (uint32_t i = 0; i < op->nres; i++) {
        carried(x, body->args.at[1 + i], op->opnd[3 + i], body->last->opnd[i]);
    }
    region(x, body);
    for (uint32_t i = 0; i < op->nres; i++) {
        if (follows(x, op->res[i])) {
            const tk_axis_value *end = tk_axis_of(x, body->last->opnd[i]);
            tk_axis_set(x, op->res[i], tk_axis_join(tk_axis_of(x, body->args.at[1 + i]), end));
        }
    }
}

static void while_op(tk_axis *x, const tk_op *op) {
    const tk_region *test = op->reg[0], *body = op->reg[1];
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_vid arg = test->args.at[i];
        carried(x, arg, op->opnd[i], body->last->opnd[i]);
        if (follows(x, arg)) {
            tk_axis_value v = *tk_axis_of(x, arg);
            tk_axis_set(x, body->args.at[i], v);
            tk_axis_set(x, op->res[i], v);
        }
    }
    region(x, test);
    region(x, body);
}

static void if_op(tk_axis *x, const tk_op *op) {
    region(x, op->reg[0]);
    region(x, op->reg[1]);
    for (uint32_t i = 0; i < op->nres; i++) {
        if (follows(x, op->res[i])) {
            tk_axis_fire(x, TK_AXIS_BRANCHES, true);
            tk_axis_set(x, op->res[i],
                        tk_axis_join(tk_axis_of(x, op->reg[0]->last->opnd[i]),
                                     tk_axis_of(x, op->reg[1]->last->opnd[i])));
        }
    }
}

static void nothing_known(tk_axis *x, tk_vid v) {
    if (follows(x, v)) {
        tk_axis_set(x, v, tk_axis_top(type_of(x, v)));
    }
}

// Regions that combine elements get any.
static void combining(tk_axis *x, const tk_op *op) {
    for (uint32_t r = 0; r < op->nreg; r++) {
        for (uint32_t i = 0; i < op->reg[r]->args.n; i++) {
            nothing_known(x, op->reg[r]->args.at[i]);
        }
        region(x, op->reg[r]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        nothing_known(x, op->res[i]);
    }
}

static void pure(tk_axis *x, const tk_op *op) {
    if (op->code == TK_OP_CAST || op->code == TK_OP_BITCAST) {
        if (follows(x, op->res[0])) {
            tk_axis_cast(x, op);
        }
    } else if (op->code == TK_OP_DIM) {
        size_op(x, op);
    } else if (op->code == TK_OP_PROGRAM_ID || op->code == TK_OP_NUM_PROGRAMS) {
        program_op(x, op);
    } else {
        tk_axis_shape(x, op);
    }
}

static void one(tk_axis *x, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (info->elementwise) {
        if (follows(x, op->res[0])) {
            tk_axis_elementwise(x, op);
        }
    } else if (op->code == TK_OP_FOR) {
        for_op(x, op);
    } else if (op->code == TK_OP_WHILE) {
        while_op(x, op);
    } else if (op->code == TK_OP_IF) {
        if_op(x, op);
    } else if (op->code == TK_OP_PARTITION) {
        region(x, op->reg[0]);
        region(x, op->reg[1]);
    } else if (op->code == TK_OP_PROGRAMS) {
        region(x, op->reg[0]);
    } else if (info->effect == TK_FX_PURE && op->nreg == 0) {
        pure(x, op);
    } else {
        combining(x, op);
    }
}

static void region(tk_axis *x, const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        one(x, op);
    }
}

static void settle_rounds(tk_axis *x) {
    do {
        x->changed = false;
        region(x, x->func->body);
        x->round++;
    } while (x->changed);
}

tk_axis *tk_axis_make(tk_arena *arena, const tk_func *f, const tk_tensor_facts *facts) {
    tk_axis *x = TK_NEW(arena, tk_axis);
    x->arena = arena;
    x->func = f;
    x->facts = facts;
    x->at = TK_NEW_ARRAY(arena, tk_axis_value *, f->value.n);
    for (uint32_t i = 0; i < f->params.n; i++) {
        nothing_known(x, f->params.at[i]);
    }
    if (f->grid) {
        region(x, f->grid);
    }
    settle_rounds(x);
    if (x->round > 1) { // there is a loop that carries something
        x->narrowing = true;
        region(x, f->body);
        x->narrowing = false;
        settle_rounds(x);
    }
    return x;
}

// ---- Questions

bool tk_axis_below(const tk_axis *x, const tk_axis_value *v, uint32_t param, uint32_t axis,
                   int64_t n) {
    tk_axis_value size = tk_axis_size(x, param, axis);
    int64_t end;
    if (v->ranged && !__builtin_add_overflow(v->hi, n, &end) && end <= size.lo) {
        return true;
    }
    unsigned grain = tk_axis_min(tk_axis_min(tk_axis_every(v), tk_axis_every(&size)), 40);
    const tk_size_ref first = tk_func_size(x->func, param, axis);
    for (unsigned i = 0; i < v->nbound; i++) {
        const tk_axis_bound *b = &v->bound[i];
        if (b->param != first.param || b->axis != first.axis) {
            continue;
        }
        // Both are multiples of the grain, and so is what is left between them.
        int64_t unit = (int64_t)1 << grain, left = b->add;
        left = b->mul == 1 && left % unit != 0 ? left + unit - ((left % unit + unit) % unit) : left;
        if (left >= n && (b->mul == 1 || (v->ranged && v->lo >= 0))) {
            return true;
        }
    }
    return false;
}
