// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for what shared memory holds between loops (hold.h): a load takes what one
// before it left, of the same tensor, type and layout, in loops that count by the same numbers; and
// nothing else is put where something is held.
#include "ir/hold.h"
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "ir/verify_internal.h"

typedef struct loads {
    tk_verifier *v;
    TK_VEC(const tk_op *) hold, held, other; // other: ops with shared memory
} loads;

static void collect(void *user, tk_op *op) {
    loads *s = user;
    if (op->code == TK_OP_LOAD && op->at.hold) {
        tk_vec_push(s->v->a, &s->hold, op);
    } else if (op->code == TK_OP_LOAD && op->at.held) {
        tk_vec_push(s->v->a, &s->held, op);
    } else if (op->at.shared >= 0 && tk_scratch_bytes(s->v->f, op) > 0) {
        tk_vec_push(s->v->a, &s->other, op);
    }
}

// Whether x has run when y begins.
static bool stands_before(const tk_op *x, const tk_op *y) {
    for (; y; y = y->in->owner) {
        for (const tk_op *op = y->prev; op; op = op->prev) {
            if (op == x) {
                return true;
            }
        }
    }
    return false;
}

static bool same_number(const tk_func *f, tk_vid x, tk_vid y) {
    const tk_const *a = tk_value_const(f, x), *b = tk_value_const(f, y);
    return x == y || (a && b && tk_const_same(*a, *b));
}

static bool pair(tk_verifier *v, const tk_op *op) {
    const tk_op *from = tk_holder_of(v->f, op), *loop = op->in->owner;
    v->op = op;
    if (!tk_vneed(v, from, "no load holds what it takes")) {
        return false;
    }
    const tk_op *earlier = from->in->owner;
    const tk_layout *l = tk_value_layout(v->f, op->res[0]),
                    *of = tk_value_layout(v->f, from->res[0]);
    return tk_vneed(v, stands_before(earlier, loop),
                    "what it takes is not left by a loop in front of its own") &&
           tk_vneed(v,
                    same_number(v->f, loop->opnd[0], earlier->opnd[0]) &&
                        same_number(v->f, loop->opnd[2], earlier->opnd[2]),
                    "the loop of what it takes counts by other numbers") &&
           tk_vneed(v,
                    op->opnd[0] == from->opnd[0] &&
                        tk_type_eq(tk_vres(v, 0), tk_value_type(v->f, from->res[0])),
                    "what it takes is another tile") &&
           tk_vneed(v, l && of && tk_layout_eq(l, of), "what it takes is in another layout");
}

// Whether two ops have bytes in common.
static bool meet(const tk_func *f, const tk_op *x, const tk_op *y) {
    return x->at.shared < y->at.shared + (int64_t)tk_scratch_bytes(f, y) &&
           y->at.shared < x->at.shared + (int64_t)tk_scratch_bytes(f, x);
}

static bool alone(loads *s, uint32_t i) {
    const tk_op *op = s->hold.at[i];
    bool meets = false;
    for (uint32_t k = 0; k < s->other.n; k++) {
        meets = meets || meet(s->v->f, op, s->other.at[k]);
    }
    for (uint32_t k = 0; k < i; k++) {
        meets = meets || meet(s->v->f, op, s->hold.at[k]);
    }
    s->v->op = op;
    return tk_vneed(s->v, op->at.shared < 0 || !meets,
                    "something else is put where it holds tiles");
}

bool tk_verify_hold(tk_verifier *v) {
    loads s = {.v = v};
    tk_func_walk((tk_func *)(uintptr_t)v->f, collect, &s);
    for (uint32_t i = 0; i < s.held.n; i++) {
        if (!pair(v, s.held.at[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < s.hold.n; i++) {
        if (!alone(&s, i)) {
            return false;
        }
    }
    v->op = NULL;
    return true;
}
