// SPDX-License-Identifier: Apache-2.0
// Pass stage: loads and stores of rows that are not aligned go through shared memory.
//
// in:    tile level, calls inlined; what the caller promises of the tensors
// out:   attribute `staged` at the loads and stores that do (stage.h)
// keeps: every value, bit for bit
// needs: pad, chunk: it counts the bytes of tiles as they will be
// when not: rows are aligned, or nothing is known of them; rows are short, or too much for shared
//           memory; all programs read the same, which comes from the caches; what they are is not
//           known before the kernel runs; the program multiplies matrices, whose operands go
//           through shared memory anyway
#include "lower/lower.h"
#include "lower/stage.h"
#include "lower/target.h"

#include "ir/pass_util.h"

typedef struct stager {
    tk_pass_ctx *c;
    const tk_axis *x;
    bool dot;
} stager;

static void note(const stager *s, const tk_op *op, const char *why) {
    const tk_func *f = s->x->func;
    const char *name = f->value.at[op->opnd[0]].name;
    tk_note_add(&s->c->m->notes, "stage", "staged", tk_loc_span(s->c->m, op->loc),
                why ? TK_NOTE_MISSED : TK_NOTE_DONE,
                "rows of '%s', which are not aligned to 16 bytes, %s%s", name ? name : "?",
                why ? "do not go through shared memory: " : "go through shared memory",
                why ? why : "");
}

static void judge(void *user, tk_op *op) {
    const stager *s = user;
    if (!tk_stage_concerns(s->x, op)) {
        return;
    }
    const tk_stage_plan p = tk_stage_plan_of(s->x, op);
    const char *why = tk_stage_why_not(s->x, s->c->target, op, &p);
    why = !why && s->dot ? "the program multiplies matrices" : why;
    op->at.staged = why ? 0 : p.rows;
    note(s, op, why);
}

static void find_dot(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED;
}

void tk_pass_stage(tk_pass_ctx *c) {
    for (uint32_t i = 0; c->facts && i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (f->is_kernel) {
            stager s = {.c = c, .x = tk_axis_make(c->scratch, f, c->facts)};
            tk_func_walk(f, find_dot, &s.dot);
            tk_func_walk(f, judge, &s);
        }
    }
}
