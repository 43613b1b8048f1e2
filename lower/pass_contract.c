// SPDX-License-Identifier: Apache-2.0
// Pass contract: rounds a product and a sum once, where @fastmath(contract) permits it for both.
//
// in:    tile level, calls inlined
// out:   fma in place of add and sub of a product whose every use becomes one
// keeps: every value but for the roundings that are left out
// needs: inline
// when not: no op permits it
//
// A product that is also used otherwise would be computed all the same, so it stays as it is. The
// emitter keeps operations apart: they are fused nowhere but here.
#include "lower/lower.h"

#include <string.h>

enum { NONE = 2 };

typedef struct contract {
    tk_pass_ctx *c;
    tk_func *f;
    uint32_t *uses, *wanted; // per value: how often it is used, and how often it could be fused
    uint32_t done;
    tk_loc first;
} contract;

static bool permits(const tk_op *op) { return op->fast & TK_FAST_CONTRACT; }

static bool is_product(const contract *s, tk_vid v) {
    const tk_op *d = tk_value_def(s->f, v);
    return d && d->code == TK_OP_MUL && permits(d);
}

// The operand of a sum that is fused with it.
static uint32_t product_of(const contract *s, const tk_op *op) {
    const bool sum = (op->code == TK_OP_ADD || op->code == TK_OP_SUB) && permits(op);
    return !sum ? NONE : is_product(s, op->opnd[0]) ? 0 : is_product(s, op->opnd[1]) ? 1 : NONE;
}

static void count(void *user, tk_op *op) {
    contract *s = user;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        s->uses[op->opnd[i]]++;
    }
    const uint32_t i = product_of(s, op);
    if (i != NONE) {
        s->wanted[op->opnd[i]]++;
    }
}

static tk_vid insert(contract *s, tk_op *at, tk_opcode code, uint32_t n, const tk_vid *x) {
    const tk_type *t = tk_value_type(s->f, at->res[0]);
    tk_op *op = tk_op_new(s->f, code, at->loc, n, x, 1, &t, 0);
    op->fast = at->fast;
    tk_op_insert_before(at, op);
    return op->res[0];
}

static void fuse(void *user, tk_op *op) {
    contract *s = user;
    const uint32_t i = product_of(s, op);
    if (i == NONE || s->wanted[op->opnd[i]] != s->uses[op->opnd[i]]) {
        return;
    }
    const tk_op *product = tk_value_def(s->f, op->opnd[i]);
    tk_vid x[3] = {product->opnd[0], product->opnd[1], op->opnd[1 - i]};
    if (op->code == TK_OP_SUB) { // a * b - c, or c - a * b
        const uint32_t turned = i == 0 ? 2 : 0;
        x[turned] = insert(s, op, TK_OP_NEG, 1, &x[turned]);
    }
    const uint8_t fast = op->fast & product->fast;
    s->first = s->done++ == 0 ? op->loc : s->first;
    op->code = TK_OP_FMA; // of the same type, and without attributes either
    op->nopnd = 3;
    op->opnd = TK_NEW_ARRAY(s->f->module->arena, tk_vid, 3);
    memcpy(op->opnd, x, sizeof x);
    op->fast = fast;
}

void tk_pass_contract(tk_pass_ctx *c) {
    tk_module *m = c->m;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        contract s = {.c = c, .f = m->funcs.at[i]};
        s.uses = TK_NEW_ARRAY(c->scratch, uint32_t, s.f->value.n);
        s.wanted = TK_NEW_ARRAY(c->scratch, uint32_t, s.f->value.n);
        tk_func_walk(s.f, count, &s);
        tk_func_walk(s.f, fuse, &s);
        if (s.done) {
            tk_note_rec *n = tk_note_add(&m->notes, "contract", "contracted",
                                         m->locs.at[s.first].span, TK_NOTE_DONE,
                                         "products and sums rounded once, as @fastmath(contract) "
                                         "permits; the first is here");
            tk_note_number_add(&m->notes, n, "operations", s.done);
        }
    }
}
