// SPDX-License-Identifier: Apache-2.0
//
// scan: running sums, products, minima and maxima, in the operand's type, one element after the
// other along the axis (from the end with `reverse`); all lines across the axis at once.
#include "ir/exec_internal.h"

#include <string.h>

typedef struct scan_step {
    tk_step h;
    tk_kernel op;
    tk_split3 shape;
    bool reverse, exclusive;
    tk_const identity;
    uint32_t size;
    size_t in, out;
    size_t acc; // one row, where exclusive
} scan_step;

// Row i of the result from row i - 1 (or i + 1). The earlier element is the left operand.
static void step_row(const scan_step *s, size_t n, void *out, const void *before, const void *x) {
    if (s->reverse) {
        s->op(n, out, x, before, NULL);
    } else {
        s->op(n, out, before, x, NULL);
    }
}

static void scan_block(const scan_step *s, const unsigned char *x, unsigned char *out,
                       unsigned char *acc) {
    const size_t n = (size_t)s->shape.inner, row = n * s->size;
    const int64_t len = s->shape.len;
    const unsigned char *before = NULL;
    if (s->exclusive) {
        unsigned char bits[sizeof(uint64_t)];
        tk_const_store(s->identity, bits);
        tk_splat(acc, bits, n, s->size);
    }
    for (int64_t i = 0; i < len; i++) {
        const size_t at = (size_t)(s->reverse ? len - 1 - i : i) * row;
        if (!s->exclusive && before) {
            step_row(s, n, out + at, before, x + at);
        } else if (!s->exclusive) {
            memcpy(out + at, x + at, row);
        } else {
            memcpy(out + at, acc, row);
            if (i == 0) {
                memcpy(acc, x + at, row);
            } else {
                step_row(s, n, acc, acc, x + at);
            }
        }
        before = out + at;
    }
}

static tk_exec_code run_scan(const tk_step *h, tk_run *r) {
    const scan_step *s = (const scan_step *)h;
    const size_t block = (size_t)(s->shape.len * s->shape.inner) * s->size;
    for (int64_t o = 0; o < s->shape.outer; o++) {
        scan_block(s, r->base + s->in + (size_t)o * block, r->base + s->out + (size_t)o * block,
                   r->base + s->acc);
    }
    return TK_EXEC_OK;
}

static tk_numop operation(const tk_planner *p) {
    switch (p->op->at.kind) {
    case TK_K_SUM:
        return TK_NUM_ADD;
    case TK_K_PROD:
        return TK_NUM_MUL;
    case TK_K_MIN:
        return TK_NUM_MIN;
    case TK_K_MAX:
        return TK_NUM_MAX;
    case TK_K_ANY:
    case TK_K_ALL:
    case TK_K_XOR:
    case TK_K_ADD:
    case TK_K_AND:
    case TK_K_OR:
    case TK_K_XCHG:
        break;
    }
    TK_ICE(p->arena, "scan of kind %d", (int)p->op->at.kind);
}

static tk_const identity(tk_numop op, tk_dtype t) {
    return op == TK_NUM_MIN   ? tk_const_greatest(t)
           : op == TK_NUM_MAX ? tk_const_least(t)
                              : tk_const_i64(t, op == TK_NUM_MUL ? 1 : 0);
}

void tk_exec_emit_scan(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place x = tk_plan_dense(p, tk_plan_place(p, op->opnd[0]));
    const tk_numop num = operation(p);
    scan_step *s = tk_plan_step(p, sizeof *s, run_scan);
    s->op = tk_elem_kernel(num, x.dtype);
    s->identity = identity(num, x.dtype);
    s->shape = tk_place_split(&x, op->at.axis);
    s->reverse = op->at.reverse;
    s->exclusive = op->at.exclusive;
    s->size = x.size;
    s->in = x.off;
    s->out = tk_plan_place(p, op->res[0]).off;
    s->acc = tk_plan_temp(p, (size_t)s->shape.inner * x.size);
}
