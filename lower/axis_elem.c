// SPDX-License-Identifier: Apache-2.0
// Axis analysis: element-wise ops and casts.
//
// The rules along one axis take a group of 1 << g elements in which one operand counts up from a
// multiple of 1 << g and the other is one value for all. Where that value is a multiple of 1 << g
// too, the group lies on one side of it: quotients and comparisons are the same for the group, and
// remainders count up with it. Division rounds towards zero, so that these rules need operands that
// are not negative.
#include "lower/axis_internal.h"

typedef tk_axis_dim dim;

typedef struct elem {
    tk_axis *x;
    const tk_op *op;
    tk_numop num;
    tk_dtype t;          // of the operands
    const tk_type *type; // of the result
    tk_axis_range range;
    const tk_axis_value *v[3];
    tk_axis_value out;
} elem;

static void fire(const elem *e, tk_axis_rule r, bool made) { tk_axis_fire(e->x, r, made); }

// The size of groups in which p counts up from a multiple of it, and q is one multiple of it.
static unsigned beside(dim p, dim q) {
    unsigned g = tk_axis_min(tk_axis_min(p.contig, p.div), q.same);
    return tk_axis_min(g, tk_axis_each(q));
}

static dim apart(dim p, dim q) { // nothing but equal elements for equal operands
    return (dim){0, (uint8_t)tk_axis_min(p.same, q.same), 0};
}

// Exponents of a product: what is a multiple of 2^64 is 0.
static unsigned sum_of(unsigned a, unsigned b) {
    bool zero = a == TK_AXIS_ZERO || b == TK_AXIS_ZERO || a + b >= 64;
    return zero ? TK_AXIS_ZERO : tk_axis_min(a + b, TK_AXIS_ZERO - 1);
}

// ---- Along one axis

static dim along_add(const elem *e, dim p, dim q, bool minus) {
    unsigned g = tk_axis_min(p.contig, q.same), h = minus ? 0 : tk_axis_min(q.contig, p.same);
    dim r = apart(p, q);
    if (g == 0 && h == 0) {
        r.div = (uint8_t)tk_axis_min(tk_axis_each(p), tk_axis_each(q));
        fire(e, TK_AXIS_ADD_DIV, r.div > 0);
        return r;
    }
    dim up = g >= h ? tk_axis_rebase(p, g) : tk_axis_rebase(q, h);
    r.contig = (uint8_t)(g >= h ? g : h);
    r.div = (uint8_t)tk_axis_min(up.div, tk_axis_each(g >= h ? q : p));
    fire(e, minus ? TK_AXIS_SUB_CONTIG : TK_AXIS_ADD_CONTIG, true);
    return r;
}

static dim along_mul(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    r.div = (uint8_t)sum_of(tk_axis_each(p), tk_axis_each(q));
    fire(e, TK_AXIS_MUL_DIV, r.div > 0);
    return r;
}

// The exponent where the divisor is a known power of two; -1.
static int known_power(const tk_axis_value *v) {
    int64_t k;
    return tk_axis_constant(v, &k) && k > 0 && (k & (k - 1)) == 0 ? (int)tk_axis_trailing(k) : -1;
}

static dim along_div(const elem *e, dim p, dim q, bool up) {
    dim r = apart(p, q);
    int s = known_power(e->v[1]);
    if (s >= 0 && tk_axis_each(p) >= (unsigned)s) {
        unsigned each = tk_axis_each(p);
        r.div = (uint8_t)(each == TK_AXIS_ZERO ? each : each - (unsigned)s);
        fire(e, up ? TK_AXIS_CDIV_EXACT : TK_AXIS_DIV_EXACT, r.div > 0);
    }
    unsigned g = up || !tk_axis_not_negative(e->v[0], e->t) ? 0 : beside(p, q);
    fire(e, TK_AXIS_DIV_SAME, g > r.same);
    r.same = (uint8_t)tk_axis_max(r.same, g);
    return r;
}

static dim along_rem(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    unsigned g = tk_axis_not_negative(e->v[0], e->t) ? beside(p, q) : 0;
    if (g == 0) {
        r.div = (uint8_t)tk_axis_min(tk_axis_each(p), tk_axis_each(q));
        fire(e, TK_AXIS_REM_DIV, r.div > 0);
        return r;
    }
    r.contig = (uint8_t)g;
    r.div = (uint8_t)tk_axis_min(tk_axis_rebase(p, g).div, tk_axis_each(q));
    fire(e, TK_AXIS_REM_CONTIG, true);
    return r;
}

static dim along_extreme(dim p, dim q) {
    dim r = apart(p, q);
    r.div = (uint8_t)tk_axis_min(tk_axis_each(p), tk_axis_each(q));
    return r;
}

// p counts up; the low bits of the one value q are `ones` ones.
static dim masked_up(const elem *e, dim p, dim q, unsigned ones) {
    dim r = apart(p, q);
    unsigned zeros = tk_axis_each(q);
    unsigned up = tk_axis_min(tk_axis_min(p.contig, p.div), tk_axis_min(ones, q.same));
    unsigned flat = beside(p, q);
    if (up > 0) {
        r.contig = (uint8_t)up;
        r.div = (uint8_t)tk_axis_max(tk_axis_rebase(p, up).div, zeros);
        fire(e, TK_AXIS_AND_CONTIG, true);
    } else {
        r.div = (uint8_t)tk_axis_max(tk_axis_each(p), zeros);
        fire(e, TK_AXIS_AND_DIV, r.div > 0);
    }
    fire(e, TK_AXIS_AND_SAME, flat > r.same);
    r.same = (uint8_t)tk_axis_max(r.same, flat);
    return r;
}

static unsigned trailing_ones(const tk_axis_value *v) {
    int64_t k;
    return tk_axis_constant(v, &k) ? tk_axis_trailing((int64_t) ~(uint64_t)k) : 0;
}

static dim along_and(const elem *e, dim p, dim q) {
    return q.same >= p.same ? masked_up(e, p, q, trailing_ones(e->v[1]))
                            : masked_up(e, q, p, trailing_ones(e->v[0]));
}

// Or, exclusive or: bits are added where the other value has zeros.
static dim along_or(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    unsigned g = beside(p, q), h = beside(q, p);
    if (g == 0 && h == 0) {
        r.div = (uint8_t)tk_axis_min(tk_axis_each(p), tk_axis_each(q));
        return r;
    }
    r.contig = (uint8_t)tk_axis_max(g, h);
    r.div = (uint8_t)(g >= h ? tk_axis_min(tk_axis_rebase(p, g).div, tk_axis_each(q))
                             : tk_axis_min(tk_axis_rebase(q, h).div, tk_axis_each(p)));
    fire(e, TK_AXIS_OR_CONTIG, true);
    return r;
}

static dim along_shl(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    int64_t n;
    bool known = tk_axis_constant(e->v[1], &n) && n >= 0 && n < TK_AXIS_ZERO;
    r.div = (uint8_t)sum_of(tk_axis_each(p), known ? (unsigned)n : 0);
    fire(e, TK_AXIS_SHL_DIV, r.div > 0);
    return r;
}

// Shifts round down, of negative numbers too. A count beyond the width leaves nothing but signs.
static dim along_shr(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    int64_t n;
    if (!tk_axis_constant(e->v[1], &n) || n < 0 || n >= (int64_t)tk_dtype_bits(e->t)) {
        return r;
    }
    unsigned g = tk_axis_min(tk_axis_min(p.contig, p.div), (unsigned)n), each = tk_axis_each(p);
    fire(e, TK_AXIS_SHR_SAME, g > r.same);
    r.same = (uint8_t)tk_axis_max(r.same, g);
    r.div = (uint8_t)(each == TK_AXIS_ZERO ? each : each > n ? each - (unsigned)n : 0);
    fire(e, TK_AXIS_SHR_DIV, r.div > 0);
    return r;
}

// A multiple of the group's size is not inside it: x < it and x >= it are the same for the group.
static dim along_compare(const elem *e, dim p, dim q) {
    dim r = apart(p, q);
    bool left = e->num == TK_NUM_LT || e->num == TK_NUM_GE; // the left one may count up
    bool right = e->num == TK_NUM_LE || e->num == TK_NUM_GT;
    unsigned g = left ? beside(p, q) : right ? beside(q, p) : 0;
    fire(e, TK_AXIS_COMPARE_SAME, g > r.same);
    r.same = (uint8_t)tk_axis_max(r.same, g);
    return r;
}

static dim along_select(const elem *e, dim c, dim p, dim q) {
    unsigned g = tk_axis_min(c.same, tk_axis_min(p.contig, q.contig));
    dim a = tk_axis_rebase(p, g), b = tk_axis_rebase(q, g);
    fire(e, TK_AXIS_SELECT_CONTIG, g > 0);
    return (dim){(uint8_t)g, (uint8_t)tk_axis_min(c.same, tk_axis_min(p.same, q.same)),
                 (uint8_t)tk_axis_min(a.div, b.div)};
}

// The same for equal operands; `div` of each element where the operation keeps it.
static dim along_unary(const elem *e, dim p) {
    dim r = {0, p.same, 0};
    if (e->num == TK_NUM_NEG || e->num == TK_NUM_ABS) {
        r.div = (uint8_t)tk_axis_each(p);
        fire(e, TK_AXIS_NEG_DIV, r.div > 0);
    }
    return r;
}

static dim along(const elem *e, unsigned d) {
    dim p = e->v[0]->dim[d], q = e->v[1] ? e->v[1]->dim[d] : p, s = e->v[2] ? e->v[2]->dim[d] : p;
    switch ((int)e->num) { // the rest: equal for equal operands
    case TK_NUM_ADD:
        return along_add(e, p, q, false);
    case TK_NUM_SUB:
        return along_add(e, p, q, true);
    case TK_NUM_MUL:
        return along_mul(e, p, q);
    case TK_NUM_DIV:
        return along_div(e, p, q, false);
    case TK_NUM_CDIV:
        return along_div(e, p, q, true);
    case TK_NUM_REM:
        return along_rem(e, p, q);
    case TK_NUM_MIN:
    case TK_NUM_MAX:
    case TK_NUM_FMIN:
    case TK_NUM_FMAX:
        return along_extreme(p, q);
    case TK_NUM_AND:
        return along_and(e, p, q);
    case TK_NUM_OR:
    case TK_NUM_XOR:
        return along_or(e, p, q);
    case TK_NUM_SHL:
        return along_shl(e, p, q);
    case TK_NUM_SHR:
        return along_shr(e, p, q);
    case TK_NUM_LT:
    case TK_NUM_LE:
    case TK_NUM_GT:
    case TK_NUM_GE:
        return along_compare(e, p, q);
    case TK_NUM_CLAMP:
        return along_extreme(along_extreme(p, q), s);
    case TK_NUM_SELECT:
        return along_select(e, p, q, s);
    }
    return tk_numop_arity(e->num) == 1 ? along_unary(e, p) : apart(p, q);
}

// ---- Bounds by sizes: only of what does not wrap

static void bound_add(elem *e) {
    const tk_axis_value *a = e->v[0], *b = e->v[1];
    bool minus = e->num == TK_NUM_SUB, made = false;
    if (b->ranged) {
        made = tk_axis_shift_bounds(&e->out, a, 1, minus ? b->lo : b->hi == INT64_MIN ? 0 : -b->hi);
    }
    if (!minus && a->ranged && a->hi != INT64_MIN) {
        made = tk_axis_shift_bounds(&e->out, b, 1, -a->hi) || made;
    }
    fire(e, minus ? TK_AXIS_SUB_BOUND : TK_AXIS_ADD_BOUND, made);
}

static void bound_mul(elem *e) {
    for (unsigned s = 0; s < 2; s++) {
        int64_t k;
        const tk_axis_value *a = e->v[s];
        bool known = tk_axis_constant(e->v[1 - s], &k) && k >= 1;
        for (unsigned i = 0; known && i < a->nbound; i++) {
            tk_axis_bound b = a->bound[i];
            if (b.mul % k == 0) {
                b.mul /= k;
                tk_axis_add_bound(&e->out, b);
                fire(e, TK_AXIS_MUL_BOUND, true);
            }
        }
    }
}

// x = floor(a / k): k * x <= a; rounded up: k * x <= a + k - 1.
static void bound_quotient(elem *e, int64_t k, bool up, tk_axis_rule rule) {
    if (k >= 1) {
        fire(e, rule, tk_axis_shift_bounds(&e->out, e->v[0], k, up ? 1 - k : 0));
    }
}

static void bound_div(elem *e) {
    int64_t k;
    if (!tk_axis_constant(e->v[1], &k)) {
        return;
    }
    if (e->num == TK_NUM_CDIV) {
        bound_quotient(e, k, true, TK_AXIS_CDIV_BOUND);
    } else if (e->num == TK_NUM_SHR) {
        bool fits = k >= 0 && k < 40 && k < (int64_t)tk_dtype_bits(e->t);
        bound_quotient(e, fits ? (int64_t)1 << k : 0, false, TK_AXIS_SHR_BOUND);
    } else if (tk_axis_not_negative(e->v[0], e->t)) {
        bound_quotient(e, k, false, TK_AXIS_DIV_BOUND);
    }
}

// x <= a where a is not negative; for a remainder also x <= b - 1.
static void bound_part(elem *e) {
    bool rem = e->num == TK_NUM_REM;
    bool made = tk_axis_not_negative(e->v[0], e->t) && e->v[0]->nbound;
    if (made) {
        tk_axis_copy_bounds(&e->out, e->v[0]);
    }
    if (rem && e->v[1]->ranged && e->v[1]->lo >= 1) {
        made = tk_axis_shift_bounds(&e->out, e->v[1], 1, 1) || made;
    } else if (!rem && tk_axis_not_negative(e->v[1], e->t)) {
        tk_axis_copy_bounds(&e->out, e->v[1]);
        made = made || e->v[1]->nbound;
    }
    fire(e, rem ? TK_AXIS_REM_BOUND : TK_AXIS_AND_BOUND, made);
}

static void bound_extreme(elem *e, const tk_axis_value *a, const tk_axis_value *b, bool least) {
    if (least) {
        tk_axis_copy_bounds(&e->out, a);
        tk_axis_copy_bounds(&e->out, b);
    } else {
        tk_axis_meet_bounds(&e->out, a, b);
    }
    fire(e, least ? TK_AXIS_MIN_BOUND : TK_AXIS_MAX_BOUND, e->out.nbound > 0);
}

static void bounds(elem *e) {
    switch ((int)e->num) { // nothing of the rest
    case TK_NUM_ADD:
    case TK_NUM_SUB:
        bound_add(e);
        break;
    case TK_NUM_MUL:
        bound_mul(e);
        break;
    case TK_NUM_DIV:
    case TK_NUM_CDIV:
    case TK_NUM_SHR:
        bound_div(e);
        break;
    case TK_NUM_REM:
    case TK_NUM_AND:
        bound_part(e);
        break;
    case TK_NUM_MIN:
    case TK_NUM_FMIN:
        bound_extreme(e, e->v[0], e->v[1], true);
        break;
    case TK_NUM_MAX:
    case TK_NUM_FMAX:
        bound_extreme(e, e->v[0], e->v[1], false);
        break;
    case TK_NUM_CLAMP: // below the upper limit, whatever the others are
        tk_axis_copy_bounds(&e->out, e->v[2]);
        break;
    case TK_NUM_SELECT:
        tk_axis_meet_bounds(&e->out, e->v[1], e->v[2]);
        break;
    }
}

// ---- What the ranges decide

// The operand that the result is, for every element; NULL.
static const tk_axis_value *decided(const elem *e) {
    const tk_axis_value *a = e->v[0], *b = e->v[1];
    int64_t k;
    bool least = e->num == TK_NUM_MIN || e->num == TK_NUM_FMIN;
    bool greatest = e->num == TK_NUM_MAX || e->num == TK_NUM_FMAX;
    if (e->num == TK_NUM_SELECT) {
        return tk_axis_constant(a, &k) ? e->v[k ? 1 : 2] : NULL;
    }
    if (e->num == TK_NUM_ABS) {
        return tk_axis_not_negative(a, e->t) ? a : NULL;
    }
    if (!least && !greatest) {
        return NULL;
    }
    if (!a->ranged || !b->ranged || (a->hi > b->lo && b->hi > a->lo)) {
        return NULL;
    }
    return (a->hi <= b->lo) == least ? a : b;
}

static void note_rules(const elem *e) {
    int64_t k;
    bool compares = e->type->dtype == TK_BOOL && e->t != TK_BOOL;
    fire(e, TK_AXIS_COMPARE_KNOWN, compares && tk_axis_constant(&e->out, &k));
    fire(e, TK_AXIS_CLAMP, e->num == TK_NUM_CLAMP);
    fire(e, TK_AXIS_MULHI, e->num == TK_NUM_MULHI && !e->range.wraps);
    fire(e, TK_AXIS_COUNT_BITS, e->num == TK_NUM_POPCOUNT || e->num == TK_NUM_CLZ);
    fire(e, TK_AXIS_NEXT_POW2, e->num == TK_NUM_NEXT_POW2);
}

static void note_decided(const elem *e) {
    tk_axis_rule r = e->num == TK_NUM_SELECT ? TK_AXIS_SELECT_KNOWN
                     : e->num == TK_NUM_ABS  ? TK_AXIS_ABS_KEEPS
                                             : TK_AXIS_MIN_MAX_KNOWN;
    fire(e, r, true);
}

void tk_axis_elementwise(tk_axis *x, const tk_op *op) {
    const tk_func *f = x->func;
    elem e = {.x = x, .op = op, .num = tk_op_info(op->code)->num};
    e.type = tk_value_type(f, op->res[0]);
    e.t = tk_value_type(f, op->opnd[op->nopnd - 1])->dtype;
    for (uint32_t i = 0; i < op->nopnd && i < 3; i++) {
        e.v[i] = tk_axis_of(x, op->opnd[i]);
        if (!e.v[i]) { // a float
            tk_axis_set(x, op->res[0], tk_axis_top(e.type));
            return;
        }
    }
    const tk_axis_value *same = decided(&e);
    if (same) {
        note_decided(&e);
        tk_axis_set(x, op->res[0], *same);
        return;
    }
    e.out = tk_axis_top(e.type);
    e.range = tk_axis_op_range(e.num, e.t, e.v);
    e.out.ranged = e.range.ranged;
    e.out.lo = e.range.lo;
    e.out.hi = e.range.hi;
    for (unsigned d = 0; d < e.out.rank; d++) {
        e.out.dim[d] = along(&e, d);
    }
    if (!e.range.wraps) {
        bounds(&e);
    }
    tk_axis_settle(x, &e.out, e.type, e.range.wraps);
    note_rules(&e);
    tk_axis_set(x, op->res[0], e.out);
}

// ---- Casts

void tk_axis_cast(tk_axis *x, const tk_op *op) {
    const tk_type *to = tk_value_type(x->func, op->res[0]);
    const tk_axis_value *a = tk_axis_of(x, op->opnd[0]);
    tk_axis_value v = tk_axis_top(to);
    const tk_type *from = tk_value_type(x->func, op->opnd[0]);
    bool is_bits = op->code == TK_OP_BITCAST && (from->dtype == TK_BOOL) != (to->dtype == TK_BOOL);
    if (!a || is_bits) {
        tk_axis_set(x, op->res[0], v);
        return;
    }
    tk_axis_range r = tk_axis_cast_range(a, to->dtype);
    v.ranged = r.ranged;
    v.lo = r.lo;
    v.hi = r.hi;
    bool to_bool = to->dtype == TK_BOOL && from->dtype != TK_BOOL;
    for (unsigned d = 0; d < v.rank; d++) {
        v.dim[d] = to_bool ? (dim){0, a->dim[d].same, 0} : a->dim[d];
    }
    if (!r.wraps && !to_bool) {
        tk_axis_copy_bounds(&v, a);
    }
    tk_axis_fire(x,
                 to_bool   ? TK_AXIS_CAST_BOOL
                 : r.wraps ? TK_AXIS_CAST_CUTS
                           : TK_AXIS_CAST_KEEPS,
                 true);
    tk_axis_settle(x, &v, to, r.wraps);
    tk_axis_set(x, op->res[0], v);
}
