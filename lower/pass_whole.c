// SPDX-License-Identifier: Apache-2.0
// Pass whole: masks of tiles are not computed where they hold for all of the tile.
//
// in:    laid-out level
// out:   the same level; a `select` by a mask of comparisons of indices is an `if`, by a scalar
// that
//        says that all of them hold, of the tile that is chosen then, or else of the mask and the
//        select
// keeps: every value, bit for bit
// needs: layout (what stands in the branch moves nothing between threads); behind it dce, which
//        takes away the masks that nothing uses any more
// when not: no matrix unit multiplies: such programs wait for memory, not for masks; a thread has
//           few elements; the mask is used otherwise too; an index is no sum of numbers and
//           places in the tile, or no i32
//
// Most tiles of a loop are far from the edges that masks are made for: the end of a row, the
// diagonal of a causal mask. An index of a tile has a least and a greatest value, sums of scalars
// as the index is one of scalars and places. A comparison holds for all elements if it does for
// these, as integers; so each becomes `sum < 0`, and so does that no index wrapped. Where the
// loop's index stands in it once, the rest is one number outside of the loop, and all such together
// are one comparison of 32 bits in it.
#include "lower/axis.h"
#include "lower/lower.h"
#include "lower/make.h"

#include "ir/layout.h"
#include "ir/pass_util.h"

enum { MOST_TERMS = 8, MOST_TESTS = 16, DEEP = 24, LEAST_REGS_LOG = 3, MOST_FACTOR = 1 << 20 };

// add + the sum of factor * term, of scalars of i32, as an integer.
typedef struct form {
    unsigned n;
    tk_vid term[MOST_TERMS];
    int64_t factor[MOST_TERMS];
    int64_t add;
} form;

typedef struct range {
    form lo, hi;
} range;

typedef struct whole {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    tk_vmap map;
    uint32_t *uses, *chosen; // of each value; as what a select chooses by
    uint32_t values;         // when these were counted
    form test[MOST_TESTS];   // each has to be below 0
    tk_vid also[MOST_TESTS]; // scalars that have to be true
    unsigned tests, alsos;
    bool fits;
} whole;

// ---- Forms --------------------------------------------------------------------------------------

static void term(whole *s, form *to, tk_vid v, int64_t factor) {
    unsigned i = 0;
    while (i < to->n && to->term[i] != v) {
        i++;
    }
    if (i == MOST_TERMS) {
        s->fits = false;
        return;
    }
    to->factor[i] = i < to->n ? to->factor[i] + factor : factor;
    to->term[i] = v;
    to->n += i == to->n;
    s->fits = s->fits && to->factor[i] <= MOST_FACTOR && to->factor[i] >= -MOST_FACTOR;
    if (to->factor[i] == 0) {
        to->n--;
        to->term[i] = to->term[to->n];
        to->factor[i] = to->factor[to->n];
    }
}

// a + factor * b
static form plus(whole *s, form a, const form *b, int64_t factor) {
    for (unsigned i = 0; i < b->n; i++) {
        term(s, &a, b->term[i], factor * b->factor[i]);
    }
    a.add += factor * b->add;
    s->fits = s->fits && a.add < (int64_t)1 << 40 && a.add > -((int64_t)1 << 40);
    return a;
}

// The greatest value that the form can have.
static int64_t greatest(const whole *s, const form *a) {
    int64_t sum = a->add;
    for (unsigned i = 0; i < a->n; i++) {
        const tk_axis_value *v = tk_axis_of(s->x, a->term[i]);
        const int64_t lo = v && v->ranged ? v->lo : INT32_MIN;
        const int64_t hi = v && v->ranged ? v->hi : INT32_MAX;
        sum += a->factor[i] * (a->factor[i] > 0 ? hi : lo);
    }
    return sum;
}

static void demand(whole *s, const form *below_zero) {
    if (!s->fits || greatest(s, below_zero) < 0) {
        return;
    }
    s->fits = s->tests < MOST_TESTS;
    if (s->fits) {
        s->test[s->tests++] = *below_zero;
    }
}

// The index is what its range says if none of it wraps.
static void demand_inside(whole *s, tk_vid v, const range *r) {
    const tk_axis_value *known = tk_axis_of(s->x, v);
    if (known && known->ranged && (known->lo > INT32_MIN || known->hi < INT32_MAX)) {
        return;
    }
    const form most = {.add = -(int64_t)INT32_MAX - 1}, least = {.add = (int64_t)INT32_MIN - 1};
    const form high = plus(s, most, &r->hi, 1), low = plus(s, least, &r->lo, -1);
    demand(s, &high);
    demand(s, &low);
}

// ---- Indices and masks --------------------------------------------------------------------------

static bool only_moves(const tk_op *op) {
    return op->code == TK_OP_BROADCAST || op->code == TK_OP_RESHAPE || op->code == TK_OP_PERMUTE;
}

static range range_of(whole *s, tk_vid v, unsigned depth);

static range range_of_two(whole *s, const tk_op *op, unsigned depth) {
    const range a = range_of(s, op->opnd[0], depth + 1), b = range_of(s, op->opnd[1], depth + 1);
    const bool sum = op->code == TK_OP_ADD;
    const range r = {plus(s, a.lo, sum ? &b.lo : &b.hi, sum ? 1 : -1),
                     plus(s, a.hi, sum ? &b.hi : &b.lo, sum ? 1 : -1)};
    demand_inside(s, op->res[0], &r);
    return r;
}

// Of an index, scalar or tile. What it is no sum of does not fit.
static range range_of(whole *s, tk_vid v, unsigned depth) {
    range r = {{0}, {0}};
    const tk_type *t = tk_value_type(s->f, v);
    const tk_op *d = tk_value_def(s->f, v);
    const tk_const *c = tk_value_const(s->f, v);
    s->fits = s->fits && t->dtype == TK_I32 && depth < DEEP;
    if (!s->fits) {
        return r;
    }
    if (c) {
        r.lo.add = r.hi.add = tk_const_as_i64(*c);
    } else if (t->rank == 0) {
        term(s, &r.lo, v, 1);
        r.hi = r.lo;
    } else if (d && d->code == TK_OP_IOTA) {
        r.hi.add = t->dim[0] - 1;
    } else if (d && only_moves(d)) {
        return range_of(s, d->opnd[0], depth + 1);
    } else if (d && (d->code == TK_OP_ADD || d->code == TK_OP_SUB)) {
        return range_of_two(s, d, depth);
    } else {
        s->fits = false;
    }
    return r;
}

// Demands a < b, or a <= b.
static void demand_order(whole *s, tk_vid a, tk_vid b, bool or_equal) {
    const range x = range_of(s, a, 0), y = range_of(s, b, 0);
    form less = plus(s, x.hi, &y.lo, -1);
    less.add -= or_equal;
    demand(s, &less);
}

// Demands that all of a mask holds.
static void demand_all(whole *s, tk_vid v, unsigned depth) {
    const tk_const *c = tk_value_const(s->f, v);
    const tk_op *d = tk_value_def(s->f, v);
    s->fits = s->fits && depth < DEEP;
    if (!s->fits || (c && c->bits)) {
        return;
    }
    if (tk_value_type(s->f, v)->rank == 0) {
        s->fits = s->alsos < MOST_TESTS;
        if (s->fits) {
            s->also[s->alsos++] = v;
        }
    } else if (d && only_moves(d)) {
        demand_all(s, d->opnd[0], depth + 1);
    } else if (d && d->code == TK_OP_AND) {
        demand_all(s, d->opnd[0], depth + 1);
        demand_all(s, d->opnd[1], depth + 1);
    } else if (d && (d->code == TK_OP_LT || d->code == TK_OP_LE)) {
        demand_order(s, d->opnd[0], d->opnd[1], d->code == TK_OP_LE);
    } else if (d && (d->code == TK_OP_GT || d->code == TK_OP_GE)) {
        demand_order(s, d->opnd[1], d->opnd[0], d->code == TK_OP_GE);
    } else {
        s->fits = false;
    }
}

// ---- The scalar that says so --------------------------------------------------------------------

typedef struct tester {
    whole *s;
    tk_maker make;
    tk_op *at, *loop; // the select; the loop around it, or NULL
    tk_vid all;       // 0: nothing is to be tested
} tester;

static bool varies(const tester *t, tk_vid v) {
    const tk_region *r = tk_value_region(t->s->f, v);
    while (r && t->loop && r->owner != t->loop) {
        r = r->owner ? r->owner->in : NULL;
    }
    return r && t->loop;
}

static void add_test(tester *t, tk_vid v) {
    t->all = t->all ? tk_maker_two(&t->make, t->at, TK_OP_AND, t->all, v) : v;
}

static tk_vid number(const tester *t, tk_op *before, int64_t x) {
    return tk_maker_number(&t->make, before, TK_I64, x);
}

// factor * the form, but for the term `without`, of 64 bits.
static tk_vid value_of(const tester *t, tk_op *before, const form *a, int64_t factor,
                       tk_vid without) {
    const tk_type *wide = tk_maker_scalar(&t->make, TK_I64);
    tk_vid sum = number(t, before, factor * a->add);
    for (unsigned i = 0; i < a->n; i++) {
        if (a->term[i] != without) {
            tk_vid v = tk_maker_op(&t->make, before, TK_OP_CAST, 1, &a->term[i], wide);
            const int64_t by = factor * a->factor[i];
            if (by != 1 && by != -1) {
                v = tk_maker_two(&t->make, before, TK_OP_MUL, v, number(t, before, by));
            }
            sum = tk_maker_two(&t->make, before, by == -1 ? TK_OP_SUB : TK_OP_ADD, sum, v);
        }
    }
    return sum;
}

static tk_vid to_i32(const tester *t, tk_op *before, tk_vid v) {
    v = tk_maker_two(&t->make, before, TK_OP_MAX, v, number(t, before, INT32_MIN));
    v = tk_maker_two(&t->make, before, TK_OP_MIN, v, number(t, before, INT32_MAX));
    return tk_maker_op(&t->make, before, TK_OP_CAST, 1, &v, tk_maker_scalar(&t->make, TK_I32));
}

// The term that alone changes in the loop, as it is or taken away; 0: there is none such.
static tk_vid term_alone(const tester *t, const form *a, int64_t *factor) {
    tk_vid v = 0;
    for (unsigned i = 0; i < a->n; i++) {
        if (varies(t, a->term[i])) {
            if (v || (a->factor[i] != 1 && a->factor[i] != -1)) {
                return 0;
            }
            v = a->term[i];
            *factor = a->factor[i];
        }
    }
    return v;
}

static bool is_fixed(const tester *t, const form *a) {
    for (unsigned i = 0; i < a->n; i++) {
        if (varies(t, a->term[i])) {
            return false;
        }
    }
    return true;
}

// All tests from number i on that have the same term alone: v < least, or v > greatest.
static void test_together(tester *t, bool *done, unsigned i) {
    int64_t factor = 1, other = 1;
    const tk_vid v = term_alone(t, &t->s->test[i], &factor);
    tk_vid bound = 0;
    for (unsigned k = i; k < t->s->tests; k++) {
        const form *a = &t->s->test[k];
        if (!done[k] && term_alone(t, a, &other) == v && other == factor) {
            done[k] = true;
            const tk_vid b = value_of(t, t->loop, a, -factor, v);
            bound = !bound ? b
                           : tk_maker_two(&t->make, t->loop, factor > 0 ? TK_OP_MIN : TK_OP_MAX,
                                          bound, b);
        }
    }
    bound = to_i32(t, t->loop, bound);
    add_test(
        t, tk_maker_two(&t->make, t->at, TK_OP_LT, factor > 0 ? v : bound, factor > 0 ? bound : v));
}

// The scalar; 0: the mask always holds.
static tk_vid test_of(tester *t) {
    bool done[MOST_TESTS] = {false};
    for (unsigned i = 0; i < t->s->tests; i++) {
        const form *a = &t->s->test[i];
        int64_t factor;
        if (done[i]) {
            continue;
        }
        if (t->loop && term_alone(t, a, &factor)) {
            test_together(t, done, i);
            continue;
        }
        tk_op *before = t->loop && is_fixed(t, a) ? t->loop : t->at;
        add_test(t, tk_maker_two(&t->make, before, TK_OP_LT, value_of(t, before, a, 1, 0),
                                 number(t, before, 0)));
    }
    for (unsigned i = 0; i < t->s->alsos; i++) {
        add_test(t, t->s->also[i]);
    }
    return t->all;
}

// ---- The branch ---------------------------------------------------------------------------------

// v of the tile that chooses, made again at the end of `to`.
static tk_vid again(whole *s, tk_vmap *made, tk_region *to, const tk_op *at, tk_vid v) {
    const tk_op *d = tk_value_def(s->f, v);
    const tk_vid known = tk_vmap_get(made, v);
    if (known != v || !d || d->in != at->in || tk_value_type(s->f, v)->rank == 0) {
        return known;
    }
    tk_vid *opnd = TK_NEW_ARRAY(s->c->scratch, tk_vid, d->nopnd + 1);
    for (uint32_t i = 0; i < d->nopnd; i++) {
        opnd[i] = again(s, made, to, at, d->opnd[i]);
    }
    const tk_type *type = tk_value_type(s->f, v);
    tk_op *op = tk_op_new(s->f, d->code, d->loc, d->nopnd, opnd, 1, &type, 0);
    op->at = d->at;
    op->fast = d->fast;
    tk_value_lay(s->f, op->res[0], tk_value_layout(s->f, v));
    tk_op_append(to, op);
    tk_vmap_set(made, v, op->res[0]);
    return op->res[0];
}

static void yield(whole *s, tk_region *r, tk_loc loc, tk_vid v) {
    tk_op_append(r, tk_op_new(s->f, TK_OP_YIELD, loc, 1, &v, 0, NULL, 0));
}

static void branch(whole *s, tk_op *op, tk_vid all) {
    const tk_vid res = op->res[0];
    const tk_type *type = tk_value_type(s->f, res);
    tk_op *made = tk_op_new(s->f, TK_OP_IF, op->loc, 1, &all, 1, &type, 2);
    tk_value_lay(s->f, made->res[0], tk_value_layout(s->f, res));
    s->f->value.at[made->res[0]].name = s->f->value.at[res].name;
    made->reg[0] = tk_region_new(s->f, made);
    made->reg[1] = tk_region_new(s->f, made);
    yield(s, made->reg[0], op->loc, op->opnd[1]);
    tk_vmap copies = {.arena = s->c->scratch};
    op->opnd[0] = again(s, &copies, made->reg[1], op, op->opnd[0]);
    tk_op_insert_before(op, made);
    tk_op_unlink(op);
    tk_op_append(made->reg[1], op);
    yield(s, made->reg[1], op->loc, res);
    tk_vmap_set(&s->map, res, made->res[0]);
}

static bool worth_it(const whole *s, const tk_op *op) {
    if (op->code != TK_OP_SELECT || tk_value_type(s->f, op->res[0])->rank == 0) {
        return false;
    }
    const tk_layout *l = tk_value_layout(s->f, op->res[0]);
    const tk_vid mask = op->opnd[0];
    return l && l->regs >= LEAST_REGS_LOG && mask < s->values && s->uses[mask] == s->chosen[mask];
}

static void see(whole *s, tk_op *op) {
    if (!worth_it(s, op)) {
        return;
    }
    s->tests = s->alsos = 0;
    s->fits = true;
    demand_all(s, op->opnd[0], 0);
    if (!s->fits) {
        return;
    }
    tester t = {.s = s, .make = {s->f, s->c->m->arena, op->loc}, .at = op};
    for (tk_op *o = op->in->owner; o && !t.loop; o = o->in ? o->in->owner : NULL) {
        t.loop = o->code == TK_OP_FOR || o->code == TK_OP_WHILE ? o : NULL;
    }
    const tk_vid all = test_of(&t);
    if (!all) {
        tk_vmap_set(&s->map, op->res[0], op->opnd[1]);
        tk_op_unlink(op);
        return;
    }
    branch(s, op, all);
    tk_module *m = s->c->m;
    tk_note_add(&m->notes, "whole", "whole", tk_loc_span(m, op->loc), TK_NOTE_DONE,
                "the mask is computed only for tiles of which it does not hold throughout");
}

// ---- The walk -----------------------------------------------------------------------------------

static void count(void *user, tk_op *op) {
    whole *s = user;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        s->uses[op->opnd[i]]++;
        s->chosen[op->opnd[i]] += op->code == TK_OP_SELECT && i == 0;
    }
}

static void find_unit(void *user, tk_op *op) {
    bool *any = user;
    *any = *any || (op->code == TK_OP_DOT && op->at.unit != TK_UNIT_FMA);
}

static void walk(whole *s, tk_region *r) {
    for (tk_op *op = r->first, *next; op; op = next) {
        next = op->next;
        tk_vmap_operands(&s->map, op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            walk(s, op->reg[i]);
        }
        see(s, op);
    }
}

void tk_pass_whole(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        whole s = {.c = c, .f = f, .map = {.arena = c->scratch}};
        bool unit = false;
        tk_func_walk(f, find_unit, &unit);
        if (!unit) {
            continue;
        }
        s.x = tk_axis_make(c->scratch, f, c->facts);
        s.values = f->value.n;
        s.uses = TK_NEW_ARRAY(c->scratch, uint32_t, f->value.n);
        s.chosen = TK_NEW_ARRAY(c->scratch, uint32_t, f->value.n);
        tk_func_walk(f, count, &s);
        walk(&s, f->body);
    }
}
