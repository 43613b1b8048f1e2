// SPDX-License-Identifier: Apache-2.0
// Pass reverse: loops that read again what was read before run the other way.
//
// in:    tile level
// out:   a `for` that carries nothing, stores nothing that another of its iterations loads or
//        stores, and reads again what an earlier loop of its region read forwards has `reverse`
// keeps: all values bit for bit
// needs: cse (equal indices are one value)
// when not: debug compiles; loops that do not rise from a constant by a constant, or that are to
//           load ahead (`pipeline`)
//
// What a loop read last is still in the caches when the next one begins, what it read first may not
// be. So the next one begins with that: a row that is longer than what the caches keep of it is
// read from memory once and a part, not twice. A third loop runs forwards again.
#include "lower/lower.h"
#include "lower/walk.h"

#include "ir/pass_util.h"

static void judge(void *user, tk_op *op) {
    tk_pass_ctx *c = user;
    const tk_func *f = op->in->func;
    const tk_op *load, *earlier = op->code == TK_OP_FOR ? tk_read_before(f, op, &load) : NULL;
    const char *why;
    if (!earlier || earlier->at.reverse || op->at.pipeline > 1) {
        return;
    }
    op->at.reverse = tk_iterations_independent(f, op, &why);
    tk_note_add(&c->m->notes, "reverse", "reversed", tk_loc_span(c->m, op->loc),
                op->at.reverse ? TK_NOTE_DONE : TK_NOTE_MISSED, "the loop reads '%s' again%s%s",
                f->value.at[load->opnd[0]].name ? f->value.at[load->opnd[0]].name : "a tensor",
                op->at.reverse
                    ? ", from its last iteration to its first: what was read last is in the caches"
                    : " in the same order: ",
                op->at.reverse ? "" : why);
}

void tk_pass_reverse(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n && !c->debug; i++) {
        tk_func_walk(c->m->funcs.at[i], judge, c);
    }
}
