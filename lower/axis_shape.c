// SPDX-License-Identifier: Apache-2.0
// Axis analysis: ops that move elements, and those that work across them.
#include "lower/axis_internal.h"

#include <string.h>

typedef tk_axis_dim dim;

typedef struct shape {
    tk_axis *x;
    const tk_op *op;
    const tk_type *type, *from; // of the result and of the first operand
    const tk_axis_value *a;     // the first operand
    tk_axis_value out;          // begins with its range and bounds
} shape;

static void fire(const shape *s, tk_axis_rule r) { tk_axis_fire(s->x, r, true); }

static unsigned axis_of(const shape *s) { return (unsigned)s->op->at.axis; }

static int64_t extent(const tk_type *t, unsigned d) { return t->rank ? t->dim[d] : 1; }

// ---- Broadcast, reshape, permute

static void broadcast(shape *s) {
    unsigned every = tk_axis_every(s->a), lead = s->type->rank - s->from->rank;
    for (unsigned d = 0; d < s->out.rank; d++) {
        bool kept = s->from->rank > 0 && d >= lead && s->from->dim[d - lead] == s->type->dim[d];
        s->out.dim[d] = kept ? s->a->dim[d - lead]
                             : (dim){0, (uint8_t)tk_axis_full(s->type->dim[d]), (uint8_t)every};
    }
    fire(s, TK_AXIS_BROADCAST);
}

// The axes whose extent is not 1, in order.
static unsigned proper(const tk_type *t, uint8_t *axis) {
    unsigned n = 0;
    for (unsigned d = 0; d < t->rank; d++) {
        if (t->dim[d] != 1) {
            axis[n++] = (uint8_t)d;
        }
    }
    return n;
}

static bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Row-major runs of equal elements: through an axis that is one value into the one before it.
static unsigned equal_run(const shape *s) {
    unsigned run = 0;
    for (unsigned d = s->from->rank; d-- > 0;) {
        run += s->a->dim[d].same;
        if (!is_power(s->from->dim[d]) || s->a->dim[d].same < tk_axis_full(s->from->dim[d])) {
            break;
        }
    }
    return run;
}

static void reshape_rows(shape *s, unsigned last) {
    unsigned every = tk_axis_every(s->a), run = equal_run(s);
    dim rows = s->a->dim[last];
    for (unsigned d = s->out.rank; d-- > 0;) {
        unsigned full = tk_axis_full(extent(s->type, d));
        s->out.dim[d] = (dim){0, (uint8_t)tk_axis_min(run, full), (uint8_t)every};
        run = run > full && is_power(extent(s->type, d)) ? run - full : 0;
    }
    // The last axis with more than one element holds the runs that count up.
    for (unsigned d = s->out.rank; d-- > 0;) {
        if (extent(s->type, d) != 1) {
            unsigned g = tk_axis_min(rows.contig, tk_axis_full(s->type->dim[d]));
            rows = tk_axis_rebase(rows, g);
            s->out.dim[d].contig = rows.contig;
            s->out.dim[d].div = (uint8_t)tk_axis_max(rows.div, g ? 0 : every);
            break;
        }
    }
    fire(s, TK_AXIS_RESHAPE_ROWS);
}

static void reshape(shape *s) {
    uint8_t p[TK_MAX_RANK], q[TK_MAX_RANK];
    unsigned n = proper(s->from, p), m = proper(s->type, q), every = tk_axis_every(s->a);
    bool same = n == m;
    for (unsigned i = 0; same && i < n; i++) {
        same = s->from->dim[p[i]] == s->type->dim[q[i]];
    }
    if (!same) {
        reshape_rows(s, p[n - 1]);
        return;
    }
    for (unsigned d = 0; d < s->out.rank; d++) {
        s->out.dim[d] = (dim){0, 0, (uint8_t)every};
    }
    for (unsigned i = 0; i < n; i++) {
        s->out.dim[q[i]] = s->a->dim[p[i]];
    }
    fire(s, TK_AXIS_RESHAPE_ONES);
}

static void permute(shape *s) {
    for (unsigned d = 0; d < s->out.rank; d++) {
        s->out.dim[d] = s->a->dim[s->op->at.perm[d]];
    }
    fire(s, TK_AXIS_PERMUTE);
}

// ---- Parts along one axis

static void keep_dims(shape *s) { memcpy(s->out.dim, s->a->dim, sizeof s->out.dim); }

static void flip(shape *s) {
    keep_dims(s);
    dim *d = &s->out.dim[axis_of(s)];
    *d = (dim){0, d->same, (uint8_t)tk_axis_each(*d)};
    fire(s, TK_AXIS_FLIP);
}

static void slice(shape *s) {
    keep_dims(s);
    dim *d = &s->out.dim[axis_of(s)];
    unsigned at = tk_axis_trailing(s->op->at.start);
    *d = tk_axis_rebase(*d, tk_axis_min(d->contig, at));
    d->same = (uint8_t)tk_axis_min(d->same, at);
    fire(s, TK_AXIS_SLICE);
}

static void concat(shape *s) {
    const tk_axis_value *b = tk_axis_of(s->x, s->op->opnd[1]);
    unsigned i = axis_of(s), seam = tk_axis_trailing(s->from->dim[i]);
    s->out = tk_axis_join(s->a, b);
    dim *d = &s->out.dim[i];
    *d = tk_axis_rebase(*d, tk_axis_min(d->contig, seam));
    d->same = (uint8_t)tk_axis_min(d->same, seam);
    fire(s, TK_AXIS_CONCAT);
}

static void interleave(shape *s) {
    const tk_axis_value *b = tk_axis_of(s->x, s->op->opnd[1]);
    s->out = tk_axis_join(s->a, b);
    unsigned last = s->type->rank - 1u;
    unsigned each = tk_axis_min(tk_axis_each(s->a->dim[last]), tk_axis_each(b->dim[last]));
    s->out.dim[last] = (dim){0, 0, (uint8_t)each};
    fire(s, TK_AXIS_INTERLEAVE);
}

static void deinterleave(shape *s) {
    keep_dims(s);
    dim *d = &s->out.dim[s->type->rank - 1u];
    *d = (dim){0, (uint8_t)(d->same ? d->same - 1 : 0), (uint8_t)tk_axis_each(*d)};
    fire(s, TK_AXIS_DEINTERLEAVE);
}

// Elements of x, or 0.
static void gather(shape *s) {
    tk_axis_value v = tk_axis_top(s->type);
    unsigned every = tk_axis_every(s->a);
    if (s->a->ranged) {
        v.ranged = true;
        v.lo = s->a->lo < 0 ? s->a->lo : 0;
        v.hi = s->a->hi > 0 ? s->a->hi : 0;
    }
    for (unsigned d = 0; d < v.rank; d++) {
        v.dim[d].div = (uint8_t)every;
    }
    s->out = v;
    fire(s, TK_AXIS_GATHER);
}

// ---- Across elements

static void whole_range(shape *s) {
    tk_axis_range r = tk_axis_type_range(s->type->dtype);
    s->out.ranged = r.ranged;
    s->out.lo = r.lo;
    s->out.hi = r.hi;
    s->out.nbound = 0;
}

static void sum_range(shape *s, int64_t n) {
    int64_t lo, hi;
    const tk_axis_range all = tk_axis_type_range(s->type->dtype);
    bool over = !s->a->ranged || __builtin_mul_overflow(s->a->lo, n, &lo) ||
                __builtin_mul_overflow(s->a->hi, n, &hi);
    whole_range(s);
    if (!over && all.ranged && lo >= all.lo && hi <= all.hi) {
        s->out.lo = lo;
        s->out.hi = hi;
    }
}

// Along the other axes equal elements give equal results. What is picked keeps range and bounds.
static void reduce(shape *s) {
    int axis = s->op->at.axis;
    tk_kindattr kind = s->op->at.kind;
    bool picks = kind == TK_K_MIN || kind == TK_K_MAX, sums = kind == TK_K_SUM || kind == TK_K_XOR;
    unsigned every = tk_axis_every(s->a);
    for (unsigned d = 0; d < s->out.rank; d++) {
        bool over = axis < 0 || (unsigned)axis == d;
        s->out.dim[d] =
            (dim){0, over ? 0 : s->a->dim[d].same, (uint8_t)(picks || sums ? every : 0)};
    }
    if (kind == TK_K_SUM) {
        sum_range(s, axis < 0 ? tk_type_elems(s->from) : s->from->dim[axis]);
    } else if (!picks) {
        whole_range(s);
    }
    fire(s, TK_AXIS_REDUCE);
}

// The same elements in another order.
static void sorted(shape *s) {
    unsigned every = tk_axis_every(s->a);
    for (unsigned d = 0; d < s->out.rank; d++) {
        s->out.dim[d] = (dim){0, 0, (uint8_t)every};
    }
    fire(s, TK_AXIS_SORT);
}

static void up_to(shape *s, int64_t most) {
    s->out = tk_axis_top(s->type);
    s->out.lo = 0;
    s->out.hi = most < s->out.hi ? most : s->out.hi;
    fire(s, TK_AXIS_INDICES);
}

static void arg_reduce(shape *s) {
    int axis = s->op->at.axis;
    up_to(s, (axis < 0 ? tk_type_elems(s->from) : s->from->dim[axis]) - 1);
}

// ---- All

static void moved(shape *s) {
    static void (*const rule[TK_OP_COUNT])(shape *) = {
        [TK_OP_BROADCAST] = broadcast,
        [TK_OP_RESHAPE] = reshape,
        [TK_OP_PERMUTE] = permute,
        [TK_OP_CONCAT] = concat,
        [TK_OP_INTERLEAVE] = interleave,
        [TK_OP_DEINTERLEAVE] = deinterleave,
        [TK_OP_FLIP] = flip,
        [TK_OP_SLICE] = slice,
        [TK_OP_GATHER] = gather,
        [TK_OP_CONVERT] = keep_dims,
        [TK_OP_REDUCE] = reduce,
        [TK_OP_SORT] = sorted,
        [TK_OP_TOPK] = sorted,
    };
    if (rule[s->op->code]) {
        rule[s->op->code](s);
    } else { // nothing is known of the others
        s->out = tk_axis_top(s->type);
    }
}

static void constant(shape *s) {
    s->out = tk_axis_const(s->type, s->op->at.value);
    fire(s, TK_AXIS_CONSTANT);
}

static void iota(shape *s) {
    unsigned full = tk_axis_full(s->type->dim[0]);
    s->out.lo = 0;
    s->out.hi = s->type->dim[0] - 1;
    s->out.dim[0] = (dim){(uint8_t)full, 0, (uint8_t)(full ? TK_AXIS_ZERO : 0)};
    if (s->type->dim[0] != (int64_t)1 << full) { // groups begin at multiples of their size
        s->out.dim[0].div = (uint8_t)full;
    }
    fire(s, TK_AXIS_IOTA);
}

static void result(tk_axis *x, const tk_op *op, uint32_t i) {
    shape s = {.x = x, .op = op, .type = tk_value_type(x->func, op->res[i])};
    if (!tk_axis_follows(s.type)) {
        return;
    }
    s.out = tk_axis_top(s.type);
    s.from = op->nopnd ? tk_value_type(x->func, op->opnd[0]) : NULL;
    s.a = op->nopnd && s.from->kind == TK_T_VALUE ? tk_axis_of(x, op->opnd[0]) : NULL;
    if (op->code == TK_OP_CONST) {
        constant(&s);
    } else if (op->code == TK_OP_IOTA) {
        iota(&s);
    } else if (op->code == TK_OP_ARG_REDUCE) {
        arg_reduce(&s);
    } else if (op->code == TK_OP_TOPK && i == 1) {
        up_to(&s, s.from->dim[op->at.axis] - 1);
    } else if (op->code == TK_OP_HISTOGRAM) {
        up_to(&s, tk_type_elems(s.from));
    } else if (s.a) {
        s.out = *s.a;
        s.out.rank = (uint8_t)(s.type->rank ? s.type->rank : 1);
        memset(s.out.dim, 0, sizeof s.out.dim);
        moved(&s);
    }
    tk_axis_settle(x, &s.out, s.type, false);
    tk_axis_set(x, op->res[i], s.out);
}

void tk_axis_shape(tk_axis *x, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        result(x, op, i);
    }
}
