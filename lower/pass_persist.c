// SPDX-License-Identifier: Apache-2.0
// Pass persist: a block runs several programs, one after the other.
//
// in:    laid-out level
// out:   rings are made first; all else of the kernel is in one `programs`; the module is
// `persistent` keeps: every value of each program needs: ring (rings that go on from one program to
// the next are made once); out, which says how
//        tiles are stored; before share and barrier, which keep the memory of one program and the
//        next in order
// when not: the kernel has no `@persistent`, and it is none in which warps of their own will bring
//           tiles for products while others store by tensor copies; programs multiply more or fewer
//           tiles than others, so that some block would be the last by far; there is no room for
//           what is stored beside the rings. What is asked for and cannot be is an error: rows that
//           go through shared memory wait there once and for all.
//
// As many blocks run as the GPU holds at once. So nobody waits for a block to begin, and warps that
// fetch (pass_specialize.c) bring the next program's tiles while the others still store.
#include "lower/lower.h"

#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/differs.h"
#include "lower/out.h"
#include "lower/views.h"

typedef struct survey {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_op *staged; // rows that go through shared memory
    uint32_t by_tensor, products, stores;
    bool holds, uneven; // programs differ in how many tiles they fetch
    bool others;        // fetches by threads, stores by threads
    int64_t rings, barriers, scratch, out;
} survey;

static bool stores_tile(const survey *s, const tk_op *op) {
    return op->code == TK_OP_STORE && tk_view_type(s->f, op)->rank > 0;
}

static void look(void *user, tk_op *op) {
    survey *s = user;
    const int64_t bytes = (int64_t)tk_scratch_bytes(s->f, op);
    const bool fetch = op->code == TK_OP_FETCH, tensor = op->at.how == TK_HOW_TENSOR;
    s->staged = s->staged ? s->staged : op->at.staged ? op : NULL;
    s->holds = s->holds || op->at.hold > 0;
    s->products += op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA;
    s->by_tensor += fetch && tensor;
    s->others = s->others || ((fetch || stores_tile(s, op)) && !tensor);
    s->uneven = s->uneven || (fetch && tk_reached_along(s->f, op));
    if (op->code == TK_OP_RING) {
        s->rings += bytes;
        s->barriers += op->at.slots * TK_RING_BARRIER_BYTES;
    } else if (tk_is_copied_out(op)) {
        s->stores++;
    } else {
        s->scratch = bytes > s->scratch ? bytes : s->scratch;
    }
}

// What the store has at least, if it is to take no more than its part.
static void add_store(void *user, tk_op *op) {
    survey *s = user;
    if (tk_is_copied_out(op)) {
        const tk_attrs was = op->at;
        while ((int64_t)tk_scratch_bytes(s->f, op) > TK_OUT_KEPT / s->stores &&
               tk_out_cut(s->f, op)) {
        }
        s->out += (int64_t)tk_scratch_bytes(s->f, op);
        op->at = was;
    }
}

static bool fits(survey *s) {
    tk_func_walk(s->f, add_store, s);
    return s->rings + s->barriers + TK_PLACED_ALIGN + s->scratch + s->out <=
           (int64_t)s->c->target->shared_max;
}

// Whether it pays though nobody asks for it.
static bool by_rule(survey *s) {
    return s->c->target && s->c->target->wgmma && !s->c->debug && s->products > 0 &&
           s->by_tensor > 0 && s->stores > 0 && !s->others && !s->staged && !s->holds &&
           !s->uneven && fits(s);
}

static void function(tk_pass_ctx *c, tk_func *f) {
    survey s = {.c = c, .f = f};
    tk_func_walk(f, look, &s);
    if (!c->m->attrs.persistent && !by_rule(&s)) {
        return;
    }
    if (s.staged) {
        tk_gpu_refuse(c->diags, c->m, c->target, s.staged,
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
    c->m->attrs.persistent = true;
    tk_note_add(&c->m->notes, "persist", "persistent", tk_loc_span(c->m, f->loc), TK_NOTE_DONE,
                "a block runs one program after the other: as many blocks as run at once");
}

void tk_pass_persist(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        if (c->m->funcs.at[i]->is_kernel) {
            function(c, c->m->funcs.at[i]);
        }
    }
}
