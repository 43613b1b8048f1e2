// SPDX-License-Identifier: Apache-2.0
//
// The first walk of planning: gives each value its place but for the offset, says which values
// share storage, and finds until when each storage is needed. Ops are numbered as they end, so that
// an op with regions has a greater number than the ops in it.
//
// A use in a nested region counts where the op that holds the region ends: a loop runs its body
// again, so what it needs from outside stays.
#include "ir/exec_internal.h"

#include <string.h>

typedef struct use {
    tk_vid root;
    bool inner; // a loop argument used in the loop's body
} use;

typedef TK_VEC(use) uses;

typedef struct live {
    tk_planner *p;
    TK_VEC(uses) level; // by depth: whose last use is the op that is being walked there
    uint32_t number;
} live;

static void pend(live *l, tk_vid root, bool inner, uint32_t depth) {
    const use u = {root, inner};
    const uses none = {NULL, 0, 0};
    while (l->level.n <= depth) {
        tk_vec_push(l->p->arena, &l->level, none);
    }
    tk_vec_push(l->p->arena, &l->level.at[depth], u);
}

static void use_value(live *l, tk_vid v) {
    tk_planner *p = l->p;
    if (tk_plan_type(p, v)->kind != TK_T_VALUE) {
        return;
    }
    const tk_vid root = p->val[v].root;
    TK_CHECK(p->arena, root != 0);
    tk_pval *x = &p->val[root];
    x->uses++;
    pend(l, root, false, x->depth);
    if (x->arg && p->depth > x->depth) {
        pend(l, root, true, x->depth + 1);
    }
}

// A value with storage of its own that belongs to the region at `depth`.
static tk_pval *own(live *l, tk_vid v, uint32_t depth) {
    tk_planner *p = l->p;
    tk_pval *x = &p->val[v];
    const tk_type *t = tk_plan_type(p, v);
    const int64_t lanes = TK_BLOCK;
    x->root = v;
    x->depth = depth;
    x->lane = p->lane;
    x->place = p->lane ? tk_place_of(t->dtype, 1, &lanes) : tk_place_of(t->dtype, t->rank, t->dim);
    pend(l, v, false, depth);
    return x;
}

static void alias(live *l, tk_vid v, tk_vid of, const tk_place *place, int64_t delta) {
    const tk_pval *x = &l->p->val[of];
    tk_pval *r = &l->p->val[v];
    r->root = x->root;
    r->delta = x->delta + delta;
    r->place = *place;
    r->depth = l->p->depth;
}

static void permuted(const tk_op *op, const tk_place *x, tk_place *r) {
    for (uint32_t i = 0; i < x->rank; i++) {
        r->dim[i] = x->dim[op->at.perm[i]];
        r->stride[i] = x->stride[op->at.perm[i]];
    }
}

// Every second element of the last axis, from the first or the second.
static void deinterleaved(live *l, const tk_op *op) {
    const tk_place x = l->p->val[op->opnd[0]].place;
    const uint32_t last = x.rank - 1;
    tk_place r = x;
    r.dim[last] = x.dim[last] / 2;
    r.stride[last] = 2 * x.stride[last];
    alias(l, op->res[0], op->opnd[0], &r, 0);
    alias(l, op->res[1], op->opnd[0], &r, x.stride[last]);
}

// The results of the ops that only change places. False where the op is none of them.
static bool alias_results(live *l, const tk_op *op) {
    tk_planner *p = l->p;
    const int axis = op->at.axis;
    const tk_type *t = op->nres > 0 ? tk_plan_type(p, op->res[0]) : NULL;
    tk_place r = op->nopnd > 0 ? p->val[op->opnd[0]].place : (tk_place){0};
    const tk_place x = r;
    int64_t delta = 0;
    if (op->code == TK_OP_BROADCAST) {
        r = tk_place_stretch(x, t->rank, t->dim);
    } else if (op->code == TK_OP_PERMUTE) {
        permuted(op, &x, &r);
    } else if (op->code == TK_OP_SLICE) {
        r.dim[axis] = t->dim[axis];
        delta = op->at.start * x.stride[axis];
    } else if (op->code == TK_OP_FLIP) {
        r.stride[axis] = -x.stride[axis];
        delta = (x.dim[axis] - 1) * x.stride[axis];
    } else if (op->code == TK_OP_RESHAPE) {
        if (!tk_place_reshape(&r, t->rank, t->dim)) {
            return false;
        }
    } else if (op->code == TK_OP_DEINTERLEAVE) {
        deinterleaved(l, op);
        return true;
    } else if (op->code != TK_OP_CONVERT && op->code != TK_OP_WAIT) {
        return false;
    }
    alias(l, op->res[0], op->opnd[0], &r, delta);
    return true;
}

static void walk_region(live *l, const tk_region *region);

// Arguments of a loop's body are the storage of what the loop carries; results are the same.
static void walk_loop(live *l, const tk_op *op) {
    tk_planner *p = l->p;
    const uint32_t skip = op->code == TK_OP_FOR ? 1 : 0;
    const tk_region *first = op->reg[0];
    for (uint32_t i = 0; i < first->args.n; i++) {
        tk_pval *x = own(l, first->args.at[i], p->depth);
        x->arg = 1;
        x->fixed = 1;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_vid arg = first->args.at[i + skip];
        if (op->code == TK_OP_WHILE) {
            alias(l, op->reg[1]->args.at[i], arg, &p->val[arg].place, 0);
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        walk_region(l, op->reg[i]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_vid arg = first->args.at[i + skip];
        alias(l, op->res[i], arg, &p->val[arg].place, 0);
    }
}

static void walk_combine(live *l, const tk_op *op) {
    tk_planner *p = l->p;
    const bool before = p->lane;
    for (uint32_t i = 0; i < op->nres; i++) {
        (void)own(l, op->res[i], p->depth);
    }
    p->lane = tk_region_has_lanes(op->reg[0]);
    for (uint32_t i = 0; i < op->reg[0]->args.n; i++) {
        own(l, op->reg[0]->args.at[i], p->depth)->fixed = 1;
    }
    walk_region(l, op->reg[0]);
    p->lane = before;
}

static void walk_results(live *l, const tk_op *op) {
    if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        walk_loop(l, op);
        return;
    }
    if (op->code == TK_OP_REDUCE_FN || op->code == TK_OP_SCAN_FN) {
        walk_combine(l, op);
        return;
    }
    if (alias_results(l, op)) {
        return;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_pval *x = own(l, op->res[i], l->p->depth);
        if (op->code == TK_OP_CONST || op->code == TK_OP_IOTA) {
            x->fixed = 1;
            x->lane = 0;
        }
        if (op->code == TK_OP_CONST) {
            const tk_type *t = tk_plan_type(l->p, op->res[i]);
            x->place = tk_place_stretch(tk_place_of(t->dtype, 0, NULL), t->rank, t->dim);
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        walk_region(l, op->reg[i]);
    }
}

static void walk_op(live *l, const tk_op *op) {
    tk_planner *p = l->p;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        use_value(l, op->opnd[i]);
    }
    walk_results(l, op);
    const uint32_t n = ++l->number;
    if (p->depth < l->level.n) {
        uses *u = &l->level.at[p->depth];
        for (uint32_t i = 0; i < u->n; i++) {
            tk_pval *x = &p->val[u->at[i].root];
            *(u->at[i].inner ? &x->inner : &x->last) = n;
        }
        u->n = 0;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        p->val[op->res[i]].made = n;
    }
}

static void walk_region(live *l, const tk_region *region) {
    l->p->depth++;
    for (const tk_op *op = region->first; op; op = op->next) {
        walk_op(l, op);
    }
    l->p->depth--;
}

uint32_t tk_plan_live(tk_planner *p) {
    live l = {.p = p};
    for (uint32_t i = 0; i < p->func->params.n; i++) {
        const tk_vid v = p->func->params.at[i];
        if (tk_plan_type(p, v)->kind == TK_T_VALUE) {
            own(&l, v, 0)->fixed = 1;
        }
    }
    if (p->func->grid) {
        walk_region(&l, p->func->grid);
    }
    walk_region(&l, p->func->body);
    return l.number;
}
