// SPDX-License-Identifier: Apache-2.0
// Pass barrier: puts barriers where threads must wait for each other between ops.
//
// in:    laid-out level, with shared memory given out
// out:   staged level: a barrier on each way from a use of memory to a conflicting one
// keeps: every value, bit for bit
// needs: share
// when not: nothing conflicts
//
// Which uses conflict, ir/order.h says; where a barrier must stand and why that is enough,
// lower/pending.h. Barriers between the steps of one op are part of the op.
#include "lower/lower.h"
#include "lower/pending.h"

#include "ir/scratch.h"

typedef struct asker {
    tk_pass_ctx *c;
    const tk_func *f;
} asker;

static void check_given(void *user, tk_op *op) {
    asker *s = user;
    if (s->c->diags->errors == 0 && op->at.shared < 0 && tk_scratch_bytes(s->f, op) > 0) {
        tk_error(s->c->diags, s->c->m->locs.at[op->loc].span, "pass-needs",
                 "pass 'barrier' takes a module whose shared memory is given out, and '%s' needs "
                 "some: run 'share' first",
                 tk_op_info(op->code)->name);
    }
}

static bool all_given(tk_pass_ctx *c, tk_func *f) {
    asker s = {c, f};
    for (tk_op *op = f->body->first; op; op = op->next) {
        tk_op_walk(op, check_given, &s);
    }
    return c->diags->errors == 0;
}

void tk_pass_barrier(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (!all_given(c, f)) {
            return;
        }
        const tk_op_list at = tk_barriers_needed(c->scratch, f, NULL);
        for (uint32_t k = 0; k < at.list.n; k++) {
            tk_op *op = at.list.at[k];
            tk_op_insert_before(op, tk_op_new(f, TK_OP_BARRIER, op->loc, 0, NULL, 0, NULL, 0));
        }
    }
    c->m->level = TK_LEVEL_STAGED;
}
