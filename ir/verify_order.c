// SPDX-License-Identifier: Apache-2.0
// The verifier's rule for the staged level: conflicting uses of memory (ir/order.h) have a barrier
// between them on every way through the function.
//
// The function is laid out as a graph: a point for each op, and one behind each if, for and while.
// For each different use that ops leave pending, all points are found to which a way leads from
// there without a barrier. One of them with a conflicting first use is a fault. Each point is
// visited once a use, whatever ways there are, so the search ends; and it sees each barrier-free
// way, because such a way is made of edges that it follows. From one of a block's programs to the
// next, tensors need no order: programs have none among themselves.
#include "ir/order.h"
#include "ir/verify_internal.h"

enum { NOWHERE = UINT32_MAX };

typedef struct point {
    const tk_op *op; // NULL: behind a control op
    tk_uses uses;
    uint32_t next[2];  // NOWHERE: none
    bool ends_program; // next[0] leads to the begin of the block's next program
} point;

typedef struct graph {
    tk_verifier *v;
    TK_VEC(point) at;
    TK_VEC(tk_use) use; // different ones
    uint32_t *from;     // by point: the source that a search came from
    uint32_t *stack;
} graph;

// ---- The graph ----------------------------------------------------------------------------------

static void add_region(graph *g, const tk_region *r, uint32_t *last);

static uint32_t add_point(graph *g, const tk_op *op) {
    point p = {.op = op, .next = {NOWHERE, NOWHERE}};
    if (op) {
        p.uses = tk_uses_of(g->v->a, g->v->f, op);
    }
    tk_vec_push(g->v->a, &g->at, p);
    return g->at.n - 1;
}

static void edge(graph *g, uint32_t from, uint32_t to) {
    point *p = &g->at.at[from];
    p->next[p->next[0] != NOWHERE] = to;
}

// The regions of a control op at point i, and the point behind.
static void add_control(graph *g, const tk_op *op, uint32_t i) {
    uint32_t begin[2] = {0, 0}, last[2] = {0, 0};
    for (uint32_t k = 0; k < op->nreg; k++) {
        begin[k] = g->at.n;
        add_region(g, op->reg[k], &last[k]);
    }
    const uint32_t behind = add_point(g, NULL);
    if (op->code == TK_OP_PARTITION) { // region 0 is run by others, and uses rings alone
        edge(g, i, begin[1]);
        edge(g, last[1], behind);
        return;
    }
    edge(g, i, begin[0]);
    switch ((int)op->code) { // those that have control flow in them
    case TK_OP_PROGRAMS:
        g->at.at[last[0]].ends_program = true;
        edge(g, last[0], begin[0]);
        edge(g, last[0], behind);
        return;
    case TK_OP_IF:
        edge(g, i, begin[1]);
        edge(g, last[0], behind);
        edge(g, last[1], behind);
        return;
    case TK_OP_FOR:
        edge(g, i, behind);
        edge(g, last[0], begin[0]);
        edge(g, last[0], behind);
        return;
    case TK_OP_WHILE:
        edge(g, last[0], begin[1]);
        edge(g, last[0], behind);
        edge(g, last[1], begin[0]);
        return;
    }
}

// The points of a region, one leading to the next; the last is its terminator.
static void add_region(graph *g, const tk_region *r, uint32_t *last) {
    for (const tk_op *op = r->first; op; op = op->next) {
        const uint32_t i = add_point(g, op);
        *last = i;
        if (op->code == TK_OP_IF || op->code == TK_OP_FOR || op->code == TK_OP_WHILE ||
            op->code == TK_OP_PARTITION || op->code == TK_OP_PROGRAMS) {
            add_control(g, op, i);
            *last = g->at.n - 1;
        }
        if (op->next) {
            edge(g, *last, g->at.n);
        }
    }
}

// ---- Searches -----------------------------------------------------------------------------------

static bool same_use(const tk_use *x, const tk_use *y) {
    return x->kind == y->kind && x->writes == y->writes && x->tensor == y->tensor &&
           x->from == y->from && x->to == y->to;
}

static bool leaves(const point *p, const tk_use *u) {
    const tk_use *list = p->uses.waits ? p->uses.last : p->uses.first;
    const uint32_t n = p->uses.waits ? p->uses.nlast : p->uses.nfirst;
    for (uint32_t i = 0; i < n; i++) {
        if (same_use(&list[i], u)) {
            return true;
        }
    }
    return false;
}

static void different_uses(graph *g) {
    for (uint32_t i = 0; i < g->at.n; i++) {
        const tk_uses *s = &g->at.at[i].uses;
        for (uint32_t k = 0; k < (s->waits ? s->nlast : s->nfirst); k++) {
            const tk_use *u = s->waits ? &s->last[k] : &s->first[k];
            bool known = false;
            for (uint32_t j = 0; j < g->use.n && !known; j++) {
                known = same_use(&g->use.at[j], u);
            }
            if (!known) {
                tk_vec_push(g->v->a, &g->use, *u);
            }
        }
    }
}

static bool fault(graph *g, const tk_use *u, const tk_op *first, const tk_op *op) {
    g->v->op = op;
    return tk_vbad(g->v,
                   "no barrier between it and '%s', which %s %s that it needs after or before it",
                   tk_op_info(first->code)->name, u->writes ? "writes" : "reads",
                   u->kind == TK_USE_SHARED ? "shared memory" : "a tensor");
}

// Whether point `i` may come behind use u of the point `source` with no barrier between.
static bool meets(graph *g, const tk_use *u, uint32_t source, uint32_t i) {
    const point *p = &g->at.at[i];
    for (uint32_t k = 0; k < p->uses.nfirst; k++) {
        if (tk_uses_conflict(u, &p->uses.first[k])) {
            return fault(g, u, g->at.at[source].op, p->op);
        }
    }
    return true;
}

static void reach(graph *g, const tk_use *u, uint32_t from, uint32_t *n) {
    const point *p = &g->at.at[from];
    const bool only_shared = p->ends_program && u->kind != TK_USE_SHARED;
    for (int k = only_shared; k < 2 && p->next[k] != NOWHERE; k++) {
        if (g->from[p->next[k]] == NOWHERE) {
            g->from[p->next[k]] = g->from[from];
            g->stack[(*n)++] = p->next[k];
        }
    }
}

static bool search(graph *g, const tk_use *u) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->at.n; i++) {
        g->from[i] = NOWHERE;
    }
    for (uint32_t i = 0; i < g->at.n; i++) {
        if (leaves(&g->at.at[i], u)) {
            const uint32_t before = g->from[i];
            g->from[i] = i;
            reach(g, u, i, &n);
            g->from[i] = before; // a way may lead back to it
        }
    }
    while (n > 0) {
        const uint32_t i = g->stack[--n];
        if (!meets(g, u, g->from[i], i)) {
            return false;
        }
        if (!g->at.at[i].uses.waits) {
            reach(g, u, i, &n);
        }
    }
    return true;
}

bool tk_verify_order(tk_verifier *v) {
    graph g = {.v = v};
    uint32_t last;
    add_region(&g, v->f->body, &last);
    different_uses(&g);
    g.from = TK_NEW_ARRAY(v->a, uint32_t, g.at.n);
    g.stack = TK_NEW_ARRAY(v->a, uint32_t, g.at.n);
    for (uint32_t i = 0; i < g.use.n; i++) {
        if (!search(&g, &g.use.at[i])) {
            return false;
        }
    }
    v->op = NULL;
    return true;
}
