// SPDX-License-Identifier: Apache-2.0
// Pending uses by forward data flow over the structured control flow. See pending.h.
//
// The state at a point of the program is the set of uses (ir/order.h) that some way leads from to
// there without a barrier on it. An op's first uses are compared with the state before it; a
// conflict asks for a barrier, and a barrier empties the state. Behind an op that waits inside, the
// state is its last uses alone; behind any other its uses are added. Both sides of an if start from
// the state before it, and the states at their ends are joined. A loop's body starts from the state
// before the loop joined with what the body leaves (`carried`); a loop may run no time at all.
//
// Why that is enough: let a use x be followed by a conflicting use y on some way through the
// program, with no barrier between them. The state after each op contains every use that has
// happened since the last barrier on any way to it: that holds at the start, where it is empty, and
// each rule above keeps it; for loops because sweeps over the function go on until no loop carries
// more than it already did. So x is in the state before y, and a barrier was asked for before y, or
// before a loop that y is in and x is not: then every way from x to y enters the loop, and passes
// it.
//
// Where a barrier goes. Right before y is as late as can be, so that it serves for as much as
// possible of what comes before it, and it is passed only on ways that lead to y. In a loop it
// would be passed in each iteration; where everything that y meets was left from outside the loop,
// it goes before the outermost loop that contains none of it. The state in that loop then holds
// none of what is outside; what is behind the loop is judged in a second round, with the barrier in
// place. At last each barrier is taken out again if nothing conflicts without it.
#include "lower/pending.h"

#include "ir/pass_util.h"

#include <string.h>

typedef struct node {
    tk_op *op;
    tk_uses uses;
    struct node *loop;   // the innermost around it
    unsigned depth;      // loops around it
    uint32_t begin, end; // numbers of the uses that it leaves pending, with those of its regions
    struct body *body[2];
    uint64_t *carried; // a loop: what its body leaves
    bool marked;       // a barrier before it: in this sweep
    bool hoisted;      // a barrier before it, a loop: for good
    bool wanted;       // a loop that is to be hoisted
} node;

typedef struct body {
    TK_VEC(node *) list;
} body;

typedef struct flow {
    tk_arena *a;
    tk_func *f;
    const tk_pending_opts *o;
    TK_VEC(node *) all; // in order
    TK_VEC(const tk_use *) use;
    TK_VEC(tk_op *) user;     // whose use it is
    uint32_t words;           // of a state
    TK_VEC(uint64_t *) saved; // states, by depth
    bool changed;
    bool settled;  // barriers stay as they are
    bool conflict; // there is one all the same
} flow;

// ---- The function as nodes ----------------------------------------------------------------------

static bool is_control(const tk_op *op) { return tk_op_repeats(op) || op->code == TK_OP_IF; }

static body *body_of(flow *s, const tk_region *r, node *loop);

static node *node_of(flow *s, tk_op *op, node *loop) {
    node *n = TK_NEW(s->a, node);
    n->op = op;
    n->loop = loop;
    n->depth = loop ? loop->depth + 1 : 0;
    n->uses = tk_uses_of(s->a, s->f, op);
    n->begin = s->use.n;
    tk_vec_push(s->a, &s->all, n);
    const uint32_t left = n->uses.waits ? n->uses.nlast : n->uses.nfirst;
    for (uint32_t i = 0; i < left; i++) {
        const tk_use *u = n->uses.waits ? &n->uses.last[i] : &n->uses.first[i];
        tk_vec_push(s->a, &s->use, u);
        tk_vec_push(s->a, &s->user, op);
    }
    for (uint32_t i = 0; i < op->nreg && is_control(op); i++) {
        n->body[i] = body_of(s, op->reg[i], tk_op_repeats(op) ? n : loop);
    }
    n->end = s->use.n;
    return n;
}

static body *body_of(flow *s, const tk_region *r, node *loop) {
    body *b = TK_NEW(s->a, body);
    for (tk_op *op = r->first; op; op = op->next) {
        node *n = node_of(s, op, loop);
        tk_vec_push(s->a, &b->list, n);
    }
    return b;
}

// ---- States -------------------------------------------------------------------------------------

static uint64_t *state_new(flow *s) { return TK_NEW_ARRAY(s->a, uint64_t, s->words); }

// A state to keep while the regions at this depth are walked.
static uint64_t *state_at(flow *s, unsigned depth) {
    while (s->saved.n <= depth) {
        uint64_t *new = state_new(s);
        tk_vec_push(s->a, &s->saved, new);
    }
    return s->saved.at[depth];
}

static void copy(const flow *s, uint64_t *to, const uint64_t *from) {
    memcpy(to, from, s->words * sizeof *to);
}
static void clear(const flow *s, uint64_t *x) { memset(x, 0, s->words * sizeof *x); }

// Whether `to` has become more.
static bool join(const flow *s, uint64_t *to, const uint64_t *from) {
    uint64_t more = 0;
    for (uint32_t i = 0; i < s->words; i++) {
        more |= from[i] & ~to[i];
        to[i] |= from[i];
    }
    return more != 0;
}

static void keep_within(const flow *s, uint64_t *x, const node *loop) {
    for (uint32_t i = 0; i < s->words; i++) {
        for (uint64_t left = x[i]; left; left &= left - 1) {
            const uint32_t id = i * 64 + (uint32_t)__builtin_ctzll(left);
            if (id < loop->begin || id >= loop->end) {
                x[i] &= ~(left & -left);
            }
        }
    }
}

static void leave(uint64_t *x, const node *n) {
    for (uint32_t id = n->begin; id < n->end; id++) {
        x[id / 64] |= (uint64_t)1 << id % 64;
    }
}

// ---- Conflicts ----------------------------------------------------------------------------------

// Where a barrier between use `id` and node n goes: before n, or before a loop around it.
static node *place_for(node *n, uint32_t id) {
    node *at = n;
    for (node *l = n->loop; l && (id < l->begin || id >= l->end); l = l->loop) {
        at = l;
    }
    return at;
}

static bool conflicts(const flow *s, const node *n, uint32_t id) {
    for (uint32_t k = 0; k < n->uses.nfirst; k++) {
        if (tk_uses_conflict(s->use.at[id], &n->uses.first[k])) {
            return true;
        }
    }
    return false;
}

// The innermost of the places that the conflicts of n ask for; NULL: there are none. It serves for
// all: what asks for one further out is not in the loops around it either.
static node *place_of(flow *s, const uint64_t *x, node *n) {
    node *at = NULL;
    for (uint32_t i = 0; i < s->words && n->uses.nfirst; i++) {
        for (uint64_t left = x[i]; left; left &= left - 1) {
            const uint32_t id = i * 64 + (uint32_t)__builtin_ctzll(left);
            if (!conflicts(s, n, id)) {
                continue;
            }
            node *here = place_for(n, id);
            at = !at || here->depth > at->depth ? here : at;
        }
    }
    return at;
}

static void meet(flow *s, const uint64_t *x, const node *n) {
    for (uint32_t i = 0; i < s->words; i++) {
        for (uint64_t left = x[i]; left; left &= left - 1) {
            const uint32_t id = i * 64 + (uint32_t)__builtin_ctzll(left);
            if (s->use.at[id]->kind == TK_USE_SHARED) {
                s->o->meet(s->o->user, s->user.at[id], n->op);
            }
        }
    }
}

// ---- Walking ------------------------------------------------------------------------------------

static void walk(flow *s, const body *b, uint64_t *x, unsigned depth);

static void one(flow *s, node *n, uint64_t *x) {
    if (s->settled && n->marked) {
        clear(s, x);
    }
    node *at = place_of(s, x, n);
    if (s->settled) {
        s->conflict |= at != NULL;
    } else if (at == n) {
        n->marked = true;
        clear(s, x);
    } else if (at) {
        at->wanted = true;
        keep_within(s, x, at);
    }
    if (s->o && s->o->meet && n->uses.nlast) {
        meet(s, x, n);
    }
    if (n->uses.waits) {
        clear(s, x);
    }
    leave(x, n);
}

static void branch(flow *s, node *n, uint64_t *x, unsigned depth) {
    uint64_t *before = state_at(s, depth), *first = state_at(s, depth + 1);
    copy(s, before, x);
    walk(s, n->body[0], x, depth + 2);
    copy(s, first, x);
    copy(s, x, before);
    walk(s, n->body[1], x, depth + 2);
    join(s, x, first);
}

// What programs do to tensors has no order among them.
static void forget_tensors(const flow *s, uint64_t *x) {
    for (uint32_t i = 0; i < s->words; i++) {
        for (uint64_t left = x[i]; left; left &= left - 1) {
            if (s->use.at[i * 64 + (uint32_t)__builtin_ctzll(left)]->kind != TK_USE_SHARED) {
                x[i] &= ~(left & -left);
            }
        }
    }
}

static void loop(flow *s, node *n, uint64_t *x, unsigned depth) {
    uint64_t *before = state_at(s, depth);
    copy(s, before, x);
    join(s, x, n->carried);
    walk(s, n->body[0], x, depth + 1);
    if (n->op->code == TK_OP_PROGRAMS) {
        forget_tensors(s, x);
    }
    s->changed |= join(s, n->carried, x);
    join(s, x, before);
}

static void loop_while(flow *s, node *n, uint64_t *x, unsigned depth) {
    uint64_t *behind = state_at(s, depth);
    join(s, x, n->carried);
    walk(s, n->body[0], x, depth + 1);
    copy(s, behind, x);
    walk(s, n->body[1], x, depth + 1);
    s->changed |= join(s, n->carried, x);
    copy(s, x, behind);
}

static void visit(flow *s, node *n, uint64_t *x, unsigned depth) {
    n->wanted = false;
    n->marked &= s->settled;
    if (n->hoisted) {
        clear(s, x);
    }
    switch ((int)n->op->code) {
    case TK_OP_IF:
        branch(s, n, x, depth);
        return;
    case TK_OP_FOR:
    case TK_OP_PROGRAMS:
        loop(s, n, x, depth);
        return;
    case TK_OP_WHILE:
        loop_while(s, n, x, depth);
        return;
    }
    one(s, n, x);
}

static void walk(flow *s, const body *b, uint64_t *x, unsigned depth) {
    for (uint32_t i = 0; i < b->list.n; i++) {
        visit(s, b->list.at[i], x, depth);
    }
}

// Sweeps until no loop carries more.
static void settle(flow *s, const body *b) {
    uint64_t *x = state_at(s, 0);
    for (uint32_t i = 0; i < s->all.n; i++) {
        if (s->all.at[i]->carried) {
            clear(s, s->all.at[i]->carried);
        }
    }
    do {
        s->changed = false;
        clear(s, x);
        walk(s, b, x, 1);
    } while (s->changed && !s->conflict);
}

static bool hoist(flow *s) {
    bool any = false;
    for (uint32_t i = 0; i < s->all.n; i++) {
        node *n = s->all.at[i];
        any |= n->wanted && !n->hoisted;
        n->hoisted |= n->wanted;
    }
    return any;
}

// Takes out each barrier that can be spared now. Each costs a settlement: not in a function of very
// many.
static void spare(flow *s, const body *b) {
    enum { MOST = 1 << 24 };
    uint64_t barriers = 0;
    for (uint32_t i = 0; i < s->all.n; i++) {
        barriers += s->all.at[i]->marked || s->all.at[i]->hoisted;
    }
    s->settled = true;
    for (uint32_t i = 0; i < s->all.n && barriers * s->all.n < MOST; i++) {
        node *n = s->all.at[i];
        bool *flag = n->hoisted ? &n->hoisted : &n->marked;
        if (*flag) {
            *flag = false;
            s->conflict = false;
            settle(s, b);
            *flag = s->conflict;
        }
    }
}

tk_op_list tk_barriers_needed(tk_arena *a, tk_func *f, const tk_pending_opts *o) {
    flow s = {.a = a, .f = f, .o = o};
    const body *b = body_of(&s, f->body, NULL);
    s.words = (s.use.n + 63) / 64;
    for (uint32_t i = 0; i < s.all.n; i++) {
        s.all.at[i]->carried = tk_op_repeats(s.all.at[i]->op) ? state_new(&s) : NULL;
    }
    do {
        settle(&s, b);
    } while (hoist(&s));
    if (!o) {
        spare(&s, b);
    }
    tk_op_list out = {0};
    for (uint32_t i = 0; i < s.all.n; i++) {
        if (s.all.at[i]->marked || s.all.at[i]->hoisted) {
            tk_vec_push(a, &out.list, s.all.at[i]->op);
        }
    }
    return out;
}
