// SPDX-License-Identifier: Apache-2.0
// Tiles that go to a tensor by tensor copies. See out.h.
#include "ir/out.h"
#include "ir/pass_util.h"

bool tk_is_copied_out(const tk_op *op) {
    return op->code == TK_OP_STORE && op->at.how == TK_HOW_TENSOR;
}

typedef struct visitor {
    const tk_op *op;
    void (*visit)(void *user, tk_op *op);
    void *user;
} visitor;

static void all_but_one(void *user, tk_op *op) {
    const visitor *v = user;
    if (op != v->op) {
        v->visit(v->user, op);
    }
}

void tk_walk_behind(const tk_op *op, void (*visit)(void *user, tk_op *op), void *user) {
    visitor v = {op, visit, user};
    for (const tk_op *x = op; x; x = x->in->owner) {
        if (tk_op_repeats(x)) { // the next iteration
            tk_op_walk((tk_op *)(uintptr_t)x, all_but_one, &v);
        }
        for (tk_op *y = x->next; y; y = y->next) {
            tk_op_walk(y, visit, user);
        }
    }
}

bool tk_op_in_loop(const tk_op *op) {
    const tk_op *x = op->in->owner;
    while (x && !tk_op_repeats(x)) {
        x = x->in->owner;
    }
    return x != NULL;
}

typedef struct search {
    const tk_op *op;
    bool (*may_be)(void *user, const tk_op *op);
    void *user;
    uint32_t others; // stores of the tensor by tensor copies
    const char *why;
} search;

static bool is_atomic(const tk_op *op) {
    return op->code == TK_OP_ATOMIC_RMW || op->code == TK_OP_ATOMIC_CAS;
}

static void look(void *user, tk_op *op) {
    search *s = user;
    const bool copied = s->may_be ? s->may_be(s->user, op) : tk_is_copied_out(op);
    if (is_atomic(op) && op->at.order != TK_ORDER_RELAXED) {
        s->why = "an atomic operation hands on what was stored before it";
    }
    const bool accesses = op->code == TK_OP_LOAD || op->code == TK_OP_STORE ||
                          op->code == TK_OP_FETCH || is_atomic(op);
    if (op != s->op && accesses && op->opnd[0] == s->op->opnd[0]) {
        s->others += copied;
        s->why = copied ? s->why : "the program accesses the tensor in other ways";
    }
}

bool tk_out_again(const tk_func *f, const tk_op *op) {
    search s = {.op = op};
    tk_func_walk((tk_func *)(uintptr_t)f, look, &s); // changes nothing
    return s.others > 0 || tk_op_in_loop(op);
}

const char *tk_out_in_order(const tk_func *f, const tk_op *op,
                            bool (*may_be)(void *user, const tk_op *op), void *user) {
    search s = {.op = op, .may_be = may_be, .user = user};
    tk_func_walk((tk_func *)(uintptr_t)f, look, &s); // changes nothing
    return s.why;
}
