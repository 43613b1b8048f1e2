// SPDX-License-Identifier: Apache-2.0
// Pass persist: a block runs several programs, one after the other.
//
// in:    laid-out level
// out:   rings are made first; all else of the kernel is in one `programs`
// keeps: every value of each program
// needs: ring (rings that go on from one program to the next are made once); before share and
//        barrier, which keep the memory of one program and the next in order
// when not: the kernel has no `@persistent`. What is asked for and cannot be is an error: rows that
//           go through shared memory wait there once and for all.
//
// As many blocks run as the GPU holds at once. So nobody waits for a block to begin, and warps that
// fetch (pass_specialize.c) bring the next program's tiles while the others still store.
#include "lower/lower.h"

#include "ir/pass_util.h"

static void find_staged(void *user, tk_op *op) {
    const tk_op **found = user;
    *found = *found ? *found : op->at.staged ? op : NULL;
}

static void function(tk_pass_ctx *c, tk_func *f) {
    const tk_op *staged = NULL;
    tk_func_walk(f, find_staged, (void *)&staged);
    if (staged) {
        tk_gpu_refuse(c->diags, c->m, c->target, staged,
                      "'@persistent' cannot be kept: its rows are not aligned and go through "
                      "shared memory");
        return;
    }
    tk_op *all = tk_op_new(f, TK_OP_PROGRAMS, f->loc, 0, NULL, 0, NULL, 1);
    all->reg[0] = tk_region_new(f, all);
    for (tk_op *op = f->body->first, *next; !tk_op_is_terminator(op); op = next) {
        next = op->next;
        if (op->code != TK_OP_RING) {
            tk_op_unlink(op);
            tk_op_append(all->reg[0], op);
        }
    }
    tk_op_append(all->reg[0], tk_op_new(f, TK_OP_YIELD, f->loc, 0, NULL, 0, NULL, 0));
    tk_op_insert_before(f->body->last, all);
    tk_note_add(&c->m->notes, "persist", "persistent", tk_loc_span(c->m, f->loc), TK_NOTE_DONE,
                "a block runs one program after the other: as many blocks as run at once");
}

void tk_pass_persist(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n && c->m->attrs.persistent; i++) {
        if (c->m->funcs.at[i]->is_kernel) {
            function(c, c->m->funcs.at[i]);
        }
    }
}
