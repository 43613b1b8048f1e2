// SPDX-License-Identifier: Apache-2.0
// Pass persist: a block runs several programs, one after the other.
//
// in:    laid-out level
// out:   rings are made first; all else of the kernel is in one `programs`; the module is
//        `persistent`
// keeps: every value of each program
// needs: ring (rings that go on from one program to the next are made once); out, which says how
//        tiles are stored; before share and barrier, which keep the memory of one program and the
//        next in order
// when not: the kernel has no `@persistent`, and it is none in which warps of their own will bring
//           tiles for products while others store by tensor copies; programs multiply more or fewer
//           tiles than others, so that some block would be the last by far; there is no room for
//           what is stored beside the rings. Rows that go through shared memory wait there once
//           and for all: a note says so where it is asked for, and no error, as the tensors of
//           the launch are why.
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
    uint32_t by_tensor, products, dots, stores;
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
    s->dots += op->code == TK_OP_DOT;
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

// Why it does not pay, where nobody asks for it. NULL: it does.
static const char *rule_why_not(survey *s) {
    return s->c->debug     ? "asserts and prints are kept"
           : !s->by_tensor ? "no tile is fetched by tensor copies"
           : !s->stores    ? "no tile is stored by tensor copies"
           : s->others     ? "threads fetch or store a tile"
           : s->staged     ? "rows go through shared memory"
           : s->holds      ? "tiles stay in shared memory for a loop that reads them again"
           : s->uneven     ? "programs fetch more or fewer tiles than others"
           : !fits(s)      ? "there is no room beside its rings for what is stored"
                           : NULL;
}

// The target of the same GPUs that has what is wanted here. NULL: none, or it is this one.
static const tk_target *target_with(const tk_target *t) {
    const tk_target *best = tk_target_for(t->cc / 10, t->cc % 10);
    return best && best->wgmma && !t->wgmma ? best : NULL;
}

static void note(const survey *s, tk_verdict verdict, const char *text, const char *why) {
    tk_module *m = s->c->m;
    tk_note_add(&m->notes, "persist", "persistent", tk_loc_span(m, s->f->loc), verdict, "%s%s",
                text, why);
}

static const char one_program[] = "a block runs one program: ";

// Where nobody asks for it: whether it is done. Of programs without products nothing is said.
static bool by_rule(survey *s) {
    const tk_target *t = s->c->target;
    const char *why = NULL;
    if (t && t->wgmma && s->products) {
        why = rule_why_not(s);
        if (!why) {
            return true;
        }
    } else if (t && s->dots && target_with(t)) {
        why = tk_format(s->c->m->arena, "%s has no wgmma, for which it pays; --arch %s has it",
                        t->name, target_with(t)->name);
    }
    if (why) {
        note(s, TK_NOTE_MISSED, one_program, why);
    }
    return false;
}

static void function(tk_pass_ctx *c, tk_func *f) {
    survey s = {.c = c, .f = f};
    tk_func_walk(f, look, &s);
    if (!c->m->attrs.persistent && !by_rule(&s)) {
        return;
    }
    if (s.staged) {
        c->m->attrs.persistent = false;
        note(&s, TK_NOTE_MISSED, one_program,
             "rows that are not aligned to 16 bytes go through shared memory");
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
    note(&s, TK_NOTE_DONE,
         "a block runs one program after the other: as many blocks as run at once", "");
}

void tk_pass_persist(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        if (c->m->funcs.at[i]->is_kernel) {
            function(c, c->m->funcs.at[i]);
        }
    }
}
