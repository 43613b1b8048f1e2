// SPDX-License-Identifier: Apache-2.0
// What ops do to memory that other threads see. See order.h.
#include "ir/order.h"
#include "ir/out.h"
#include "ir/scratch.h"

typedef struct collector {
    tk_arena *a;
    const tk_func *f;
    TK_VEC(tk_use) first;
} collector;

static tk_uses staged_store(tk_arena *a, tk_use shared, tk_use tensor) {
    tk_use *u = TK_NEW_ARRAY(a, tk_use, 3);
    u[0] = u[1] = shared;
    u[0].writes = true;
    u[1].writes = false;
    u[2] = tensor; // once all that is written is there
    return (tk_uses){.waits = true, .nfirst = 1, .first = u, .nlast = 2, .last = u + 1};
}

static void use_tensor(collector *c, const tk_op *op, bool writes) {
    if (tk_value_type(c->f, op->opnd[0])->access == TK_IN) {
        return;
    }
    tk_use u = {.kind = TK_USE_TENSOR, .writes = writes, .tensor = op->opnd[0]};
    tk_vec_push(c->a, &c->first, u);
}

static void use_memory(collector *c, const tk_op *op) {
    switch (tk_op_info(op->code)->effect) {
    case TK_FX_READ:
        use_tensor(c, op, false);
        return;
    case TK_FX_WRITE:
        use_tensor(c, op, true);
        return;
    case TK_FX_ATOMIC:
        if (op->code != TK_OP_BARRIER && op->at.order == TK_ORDER_RELAXED) {
            use_tensor(c, op, true);
        } else if (op->code != TK_OP_BARRIER) {
            tk_use u = {.kind = TK_USE_TENSORS, .writes = true};
            tk_vec_push(c->a, &c->first, u);
        }
        return;
    case TK_FX_RING: // it has slots of its own and what keeps them in order
    case TK_FX_PURE:
    case TK_FX_CONTROL:
    case TK_FX_DEBUG:
    case TK_FX_CALL:
        return;
    }
}

// What the function of a reduction reads.
static void use_in_combine(collector *c, const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        use_memory(c, op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            use_in_combine(c, op->reg[i]);
        }
    }
}

static tk_use *list(tk_arena *a, tk_use u) {
    tk_use *l = TK_NEW(a, tk_use);
    *l = u;
    return l;
}

// What is released was read from the ring's memory.
static tk_uses release(tk_arena *a, const tk_func *f, const tk_op *op) {
    const tk_op *ring = tk_value_def(f, op->opnd[0]);
    tk_use u = {.kind = TK_USE_SHARED, .from = ring->at.shared};
    u.to = u.from < 0 ? u.from : u.from + (int64_t)tk_scratch_bytes(f, ring);
    return (tk_uses){.nfirst = 1, .first = list(a, u)};
}

tk_uses tk_uses_of(tk_arena *a, const tk_func *f, const tk_op *op) {
    collector c = {.a = a, .f = f};
    if (op->code == TK_OP_RELEASE) {
        return release(a, f, op);
    }
    use_memory(&c, op);
    for (uint32_t i = 0; i < op->nreg && tk_op_info(op->code)->effect == TK_FX_PURE; i++) {
        use_in_combine(&c, op->reg[i]);
    }
    // What a load holds is in nobody else's way (ir/verify_hold.c).
    const uint64_t bytes = op->at.hold ? 0 : tk_scratch_bytes(f, op);
    if (bytes == 0) {
        return (tk_uses){
            .waits = op->code == TK_OP_BARRIER, .nfirst = c.first.n, .first = c.first.at};
    }
    const int64_t at = op->at.shared;
    tk_use u = {.kind = TK_USE_SHARED, .writes = true, .from = at};
    u.to = at < 0 ? at : at + (int64_t)bytes;
    if (tk_is_copied_out(op)) {
        return (tk_uses){.waits = true, .nfirst = 1, .first = list(a, u)};
    }
    if (op->code == TK_OP_STORE) {
        return staged_store(a, u, c.first.at[0]);
    }
    tk_vec_push(a, &c.first, u);
    u.writes = false;
    return (tk_uses){
        .waits = true, .nfirst = c.first.n, .first = c.first.at, .nlast = 1, .last = list(a, u)};
}

bool tk_uses_conflict(const tk_use *x, const tk_use *y) {
    if (!x->writes && !y->writes) {
        return false;
    }
    if (x->kind == TK_USE_SHARED || y->kind == TK_USE_SHARED) {
        return x->kind == y->kind && x->from < y->to && y->from < x->to;
    }
    return x->kind == TK_USE_TENSORS || y->kind == TK_USE_TENSORS || x->tensor == y->tensor;
}
