// SPDX-License-Identifier: Apache-2.0
// How accesses in a loop move. See walk.h.
#include "lower/walk.h"

#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/views.h"

enum { DEEP = 24 };                          // ops that an index is followed through
static const int64_t FAR = INT64_C(1) << 31; // i32 numbers this far apart may be equal

// ---- Indices ------------------------------------------------------------------------------------

bool tk_is_inside(const tk_func *f, const tk_op *loop, tk_vid v) {
    const tk_region *r = tk_value_region(f, v);
    while (r && r->owner && r->owner != loop) {
        r = r->owner->in;
    }
    return r && r->owner == loop;
}

static bool constant(const tk_func *f, tk_vid v, int64_t *out) {
    const tk_const *c = tk_value_const(f, v);
    if (!c || c->dtype != TK_I32) {
        return false;
    }
    *out = tk_const_as_i64(*c);
    return true;
}

bool tk_loop_rises(const tk_func *f, const tk_op *loop, int64_t *from, int64_t *step) {
    return loop->code == TK_OP_FOR && constant(f, loop->opnd[0], from) && *from >= 0 &&
           constant(f, loop->opnd[2], step) && *step > 0;
}

static tk_affine unknown(void) { return (tk_affine){.known = false}; }

static tk_affine number(int64_t x) { return (tk_affine){.known = true, .lo = x, .hi = x}; }

static tk_affine plus(tk_affine x, tk_affine y) {
    if (!x.known || !y.known || (x.base && y.base)) {
        return unknown();
    }
    x.by += y.by;
    x.base = x.base ? x.base : y.base;
    x.lo += y.lo;
    x.hi += y.hi;
    const bool small = x.by < FAR && x.by > -FAR && x.lo > -FAR && x.hi < FAR;
    return small ? x : unknown();
}

static tk_affine times(tk_affine x, int64_t n) {
    if (!x.known || (x.base && n != 1) || n >= FAR || n <= -FAR) {
        return unknown();
    }
    const int64_t lo = x.lo * n, hi = x.hi * n; // of 31 bits each
    return plus((tk_affine){.known = true,
                            .by = x.by * n,
                            .base = x.base,
                            .lo = n < 0 ? hi : lo,
                            .hi = n < 0 ? lo : hi},
                number(0));
}

static tk_affine follow(const tk_func *f, const tk_op *loop, tk_vid v, unsigned depth);

// An argument of a region in the loop: its own index, or the index of a loop in it of constant
// bounds.
static tk_affine argument(const tk_func *f, const tk_op *loop, const tk_irvalue *x) {
    const tk_op *of = x->region ? x->region->owner : NULL;
    int64_t from, step, to;
    if (!of || of->code != TK_OP_FOR || x->index > 0) {
        return unknown();
    }
    if (of == loop) {
        return (tk_affine){.known = true, .by = 1};
    }
    if (!tk_loop_rises(f, of, &from, &step) || !constant(f, of->opnd[1], &to) || to <= from) {
        return unknown();
    }
    return (tk_affine){.known = true, .lo = from, .hi = from + (to - from - 1) / step * step};
}

static tk_affine made(const tk_func *f, const tk_op *loop, const tk_op *op, unsigned depth) {
    int64_t n;
    if (op->code != TK_OP_ADD && op->code != TK_OP_SUB && op->code != TK_OP_MUL) {
        return unknown();
    }
    const tk_affine x = follow(f, loop, op->opnd[0], depth),
                    y = follow(f, loop, op->opnd[1], depth);
    if (op->code == TK_OP_ADD) {
        return plus(x, y);
    }
    if (op->code == TK_OP_SUB) {
        return y.base ? unknown() : plus(x, times(y, -1));
    }
    return constant(f, op->opnd[1], &n)   ? times(x, n)
           : constant(f, op->opnd[0], &n) ? times(y, n)
                                          : unknown();
}

static tk_affine follow(const tk_func *f, const tk_op *loop, tk_vid v, unsigned depth) {
    const tk_type *t = tk_value_type(f, v);
    int64_t n;
    if (t->kind != TK_T_VALUE || t->rank > 0 || t->dtype != TK_I32 || depth > DEEP) {
        return unknown();
    }
    if (constant(f, v, &n)) {
        return number(n);
    }
    if (!tk_is_inside(f, loop, v)) {
        return (tk_affine){.known = true, .base = v};
    }
    const tk_irvalue *x = &f->value.at[v];
    return x->def ? made(f, loop, x->def, depth + 1) : argument(f, loop, x);
}

tk_affine tk_affine_of(const tk_func *f, const tk_op *loop, tk_vid v) {
    return follow(f, loop, v, 0);
}

// ---- Accesses -----------------------------------------------------------------------------------

static uint32_t rank_of(const tk_func *f, const tk_op *access) {
    return tk_value_type(f, access->opnd[0])->rank;
}

int tk_walked(const tk_func *f, const tk_op *loop, const tk_op *access) {
    int at = -1;
    for (uint32_t d = 0; d < rank_of(f, access); d++) {
        const tk_vid v = access->opnd[1 + d];
        if (!tk_is_inside(f, loop, v)) {
            continue;
        }
        const tk_affine x = access->at.index[d] < 0 ? unknown() : tk_affine_of(f, loop, v);
        if (!x.known || x.by < 0 || (x.by > 0 && at >= 0)) {
            return -1;
        }
        at = x.by > 0 ? (int)d : at;
    }
    return at;
}

typedef struct seek {
    const tk_func *f;
    const tk_op *loop, *earlier; // that the load is compared with
    const tk_op *load;           // in `loop`; NULL: any, which are then compared in turn
    const tk_op *found;
} seek;

static bool same_number(const tk_func *f, tk_vid x, tk_vid y) {
    int64_t a, b;
    return x == y || (constant(f, x, &a) && constant(f, y, &b) && a == b);
}

static void compare(void *user, tk_op *op) {
    seek *s = user;
    if (op->code != TK_OP_LOAD || s->found || op->opnd[0] != s->load->opnd[0]) {
        return;
    }
    const int along = tk_walked(s->f, s->loop, s->load);
    bool same = along >= 0 && along == tk_walked(s->f, s->earlier, op);
    for (uint32_t d = 0; same && d < rank_of(s->f, op); d++) {
        same = (int)d == along || same_number(s->f, op->opnd[1 + d], s->load->opnd[1 + d]);
    }
    s->found = same ? s->load : NULL;
}

static bool same_index(const tk_func *f, const tk_op *x, const tk_op *y, uint32_t d) {
    const tk_vid i = x->opnd[1 + d], j = y->opnd[1 + d];
    const tk_op *of = x->in->owner, *in = y->in->owner;
    if (x->at.index[d] != y->at.index[d]) {
        return false;
    }
    if (!tk_is_inside(f, of, i) && !tk_is_inside(f, in, j)) {
        return same_number(f, i, j);
    }
    const tk_affine a = tk_affine_of(f, of, i), b = tk_affine_of(f, in, j);
    return a.known && b.known && a.by == b.by && a.base == b.base && a.lo == a.hi && b.lo == b.hi &&
           a.lo == b.lo;
}

static tk_vid outside(const tk_op *load) {
    return load->at.other ? load->opnd[load->nopnd - 1] : 0;
}

static bool same_outside(const tk_func *f, const tk_op *x, const tk_op *y) {
    const tk_vid a = outside(x), b = outside(y);
    const tk_const *c = a ? tk_value_const(f, a) : NULL, *d = b ? tk_value_const(f, b) : NULL;
    return a == b || (c && d && tk_const_same(*c, *d));
}

static bool same_steps(const tk_func *f, const tk_op *x, const tk_op *y) {
    int64_t from[2], step[2];
    return tk_loop_rises(f, x, &from[0], &step[0]) && tk_loop_rises(f, y, &from[1], &step[1]) &&
           from[0] == from[1] && step[0] == step[1];
}

bool tk_reads_same(const tk_func *f, const tk_op *x, const tk_op *y) {
    bool same = x->opnd[0] == y->opnd[0] && tk_value_type(f, x->opnd[0])->access == TK_IN &&
                !x->at.masked && !y->at.masked && same_outside(f, x, y) &&
                tk_type_eq(tk_value_type(f, x->res[0]), tk_value_type(f, y->res[0])) &&
                same_steps(f, x->in->owner, y->in->owner);
    for (uint32_t d = 0; same && d < rank_of(f, x); d++) {
        same = same_index(f, x, y, d);
    }
    return same;
}

static void each_load(void *user, tk_op *op) {
    seek *s = user;
    if (op->code == TK_OP_LOAD && !s->found && tk_value_type(s->f, op->opnd[0])->access == TK_IN) {
        s->load = op;
        tk_op_walk((tk_op *)(uintptr_t)s->earlier, compare, s);
    }
}

const tk_op *tk_read_before(const tk_func *f, const tk_op *loop, const tk_op **load) {
    for (const tk_op *op = loop->prev; op && loop->code == TK_OP_FOR; op = op->prev) {
        if (op->code == TK_OP_FOR) {
            seek s = {.f = f, .loop = loop, .earlier = op};
            tk_op_walk((tk_op *)(uintptr_t)loop, each_load, &s);
            if (s.found) {
                *load = s.found;
                return op;
            }
        }
    }
    return NULL;
}

bool tk_may_not_run(const tk_op *op) {
    while (op && op->code != TK_OP_IF) {
        op = op->in->owner;
    }
    return op;
}

static void find_twice(void *user, tk_op *op) {
    bool *found = user;
    const tk_op *load;
    *found = *found || (op->code == TK_OP_FOR && !tk_may_not_run(op) &&
                        tk_read_before(op->in->func, op, &load));
}

bool tk_reads_twice(const tk_func *f) {
    bool found = false;
    tk_func_walk((tk_func *)(uintptr_t)f, find_twice, &found);
    return found;
}

// ---- Order of iterations ------------------------------------------------------------------------

typedef struct order {
    const tk_func *f;
    const tk_op *loop;
    int64_t step;
    bool short_way; // the index stays so small that multiples of it are no further apart than FAR
    int64_t length; // then: the most that two of its values differ by
    const char *why;
    // Of accesses to one tensor that is stored to: where they lie in an iteration.
    tk_vid tensor;
    tk_affine all;
    bool any;
} order;

// One tensor's access against those seen before it.
static void lies(order *s, const tk_op *op) {
    const uint32_t last = rank_of(s->f, op) - 1;
    if (tk_walked(s->f, s->loop, op) != (int)last) {
        s->why = "what it stores does not move on along the last dimension alone";
        return;
    }
    for (uint32_t d = 0; d < last; d++) {
        if (op->at.index[d] != 0 || tk_is_inside(s->f, s->loop, op->opnd[1 + d])) {
            s->why = "it stores to several rows";
            return;
        }
    }
    tk_affine x = tk_affine_of(s->f, s->loop, op->opnd[1 + last]);
    x.hi += op->at.index[last] > 0 ? op->at.index[last] - 1 : 0;
    if (s->any && (x.by != s->all.by || x.base != s->all.base)) {
        s->why =
            "its accesses to what it stores to are not the same distance apart in all iterations";
        return;
    }
    s->all.lo = s->any && s->all.lo < x.lo ? s->all.lo : x.lo;
    s->all.hi = s->any && s->all.hi > x.hi ? s->all.hi : x.hi;
    s->all.by = x.by;
    s->all.base = x.base;
    s->any = true;
}

static void each_of_tensor(void *user, tk_op *op) {
    order *s = user;
    if ((op->code == TK_OP_LOAD || op->code == TK_OP_STORE) && !s->why &&
        op->opnd[0] == s->tensor) {
        lies(s, op);
    }
}

// Other indices of the same tensor: the first access's say which line it is.
static bool one_line(order *s, const tk_op *x, const tk_op *y) {
    for (uint32_t d = 0; d + 1 < rank_of(s->f, x); d++) {
        if (!same_number(s->f, x->opnd[1 + d], y->opnd[1 + d])) {
            return false;
        }
    }
    return true;
}

typedef struct lines {
    order *s;
    const tk_op *store;
} lines;

static void each_line(void *user, tk_op *op) {
    lines *l = user;
    if ((op->code == TK_OP_LOAD || op->code == TK_OP_STORE) && !l->s->why &&
        op->opnd[0] == l->store->opnd[0] && !one_line(l->s, op, l->store)) {
        l->s->why = "it works on several rows of what it stores to";
    }
}

static void each_store(void *user, tk_op *op) {
    order *s = user;
    if (op->code != TK_OP_STORE || s->why) {
        return;
    }
    s->tensor = op->opnd[0];
    s->any = false;
    tk_op_walk((tk_op *)(uintptr_t)s->loop, each_of_tensor, s);
    lines l = {s, op};
    tk_op_walk((tk_op *)(uintptr_t)s->loop, each_line, &l);
    if (s->why) {
        return;
    }
    const int64_t apart = s->all.by * s->step; // of 31 bits each
    if (s->all.hi - s->all.lo >= apart) {
        s->why = "what it stores may meet what another iteration stores";
    } else if (s->all.by != 1 &&
               (!s->short_way || s->all.by * s->length + (s->all.hi - s->all.lo) >= FAR)) {
        s->why = "its index may become so large that what it stores wraps round";
    }
}

static void look(void *user, tk_op *op) {
    order *s = user;
    if (op == s->loop || op->code == TK_OP_BARRIER || s->why) {
        return;
    }
    switch (tk_op_info(op->code)->effect) {
    case TK_FX_PURE:
    case TK_FX_READ:
    case TK_FX_WRITE:
        return;
    case TK_FX_CONTROL:
        s->why = op->code == TK_OP_WHILE ? "it has a 'while' loop" : NULL;
        return;
    case TK_FX_ATOMIC:
        s->why = "it has atomics";
        return;
    case TK_FX_RING:
        s->why = "what it reads is on its way already";
        return;
    case TK_FX_DEBUG:
        s->why = "it prints or checks";
        return;
    case TK_FX_CALL:
        s->why = "it has calls";
        return;
    }
}

bool tk_iterations_independent(const tk_func *f, const tk_op *loop, const char **why) {
    order s = {.f = f, .loop = loop};
    int64_t from, to;
    if (!tk_loop_rises(f, loop, &from, &s.step)) {
        s.why = "its index does not rise from a constant by a constant";
    } else if (loop->nres) {
        s.why = "it carries values from one iteration to the next";
    } else {
        s.short_way = constant(f, loop->opnd[1], &to);
        s.length = s.short_way && to > from ? to - from : 0;
        tk_op_walk((tk_op *)(uintptr_t)loop, look, &s);
        tk_op_walk((tk_op *)(uintptr_t)loop, each_store, &s);
    }
    *why = s.why;
    return !s.why;
}

// ---- Barriers -----------------------------------------------------------------------------------

typedef struct idle {
    const tk_func *f;
    const tk_tensor_facts *facts;
    tk_vid tensor; // how often it is accessed
    unsigned accesses;
    bool needed;
} idle;

static bool is_access(const tk_op *op) {
    return op->code == TK_OP_LOAD || op->code == TK_OP_STORE || op->code == TK_OP_ATOMIC_RMW ||
           op->code == TK_OP_ATOMIC_CAS;
}

static void count_accesses(void *user, tk_op *op) {
    idle *s = user;
    s->accesses += is_access(op) && op->opnd[0] == s->tensor;
    s->needed = s->needed || op->code == TK_OP_ATOMIC_RMW || op->code == TK_OP_ATOMIC_CAS;
}

static void shares(void *user, tk_op *op) {
    idle *s = user;
    s->needed = s->needed || (tk_scratch_bytes(s->f, op) > 0 && !op->at.hold);
    if (op->code == TK_OP_LOAD) {
        s->needed = s->needed || tk_value_type(s->f, op->opnd[0])->access != TK_IN;
    } else if (op->code == TK_OP_STORE) {
        s->tensor = op->opnd[0];
        s->accesses = 0;
        tk_func_walk((tk_func *)(uintptr_t)s->f, count_accesses, s);
        const uint32_t param = s->f->value.at[s->tensor].index;
        s->needed = s->needed || s->accesses != 1 || !(s->facts[param] & TK_FACT_UNIT);
    }
}

bool tk_barrier_is_idle(const tk_func *f, const tk_op *barrier, const tk_tensor_facts *facts) {
    const tk_op *loop = barrier->in->owner;
    const char *why;
    if (!facts || !loop || loop->in->owner || !tk_iterations_independent(f, loop, &why)) {
        return false;
    }
    idle s = {.f = f, .facts = facts};
    tk_op_walk((tk_op *)(uintptr_t)loop, shares, &s);
    return !s.needed;
}
