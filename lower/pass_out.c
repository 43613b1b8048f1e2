// SPDX-License-Identifier: Apache-2.0
// Pass out: tiles are stored by tensor copies where threads would first have to exchange them.
//
// in:    laid-out level; what the caller promises of the tensors
// out:   the same level; a store by tensor copies has `how` tensor and takes its tile in the layout
//        in which it was made (ir/out.h): the `convert` before it goes
// keeps: every value, bit for bit
// needs: layout; a target; dce behind it
// when not: the target has no tensor copies or no map can be made; there is a mask; the tile is
//           small; order between the copies and other accesses matters; threads store 16 bytes at
//           once as it is; writing the tile as tensor copies take it would have more bank conflicts
//           than exchanging it
//
// What a matrix unit leaves in registers is 4 or 8 bytes side by side, which make narrow stores. An
// exchange through shared memory makes them wide: written, waited for, read, stored. By tensor
// copies they are written and waited for; nobody reads, tests bounds or computes addresses, and
// the threads go on.
#include "lower/box.h"
#include "lower/lower.h"
#include "lower/out.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include "ir/pass_util.h"

enum { WIDE = 16 }; // bytes of a vector

typedef struct sender {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    unsigned log_warps;
    TK_VEC(const tk_layout *) products; // layouts in which matrix units leave what they make
} sender;

static void note(const sender *s, const tk_op *op, const char *why) {
    const char *name = s->f->value.at[op->opnd[0]].name;
    tk_note_add(&s->c->m->notes, "out", "copied-out", tk_loc_span(s->c->m, op->loc),
                why ? TK_NOTE_MISSED : TK_NOTE_DONE, "'%s' is %sstored by tensor copies%s%s",
                name ? name : "?", why ? "not " : "", why ? ": " : ", from shared memory",
                why ? why : "");
}

static void see_product(void *user, tk_op *op) {
    sender *s = user;
    if (op->code == TK_OP_DOT && op->at.unit != TK_UNIT_FMA) {
        const tk_layout *l = tk_value_layout(s->f, op->res[0]);
        tk_vec_push(s->c->scratch, &s->products, l);
    }
}

static bool same_bases(const tk_layout *a, const tk_layout *b) {
    const int64_t n = (int64_t)1 << tk_layout_bits(a), k = (int64_t)1 << tk_layout_bits(b);
    const tk_layout x = tk_layout_reshape(a, 1, &n), y = tk_layout_reshape(b, 1, &k);
    return n == k && tk_layout_eq(&x, &y);
}

// Whether a matrix unit leaves a tile like that, or with its last two axes exchanged.
static bool is_fragment(const sender *s, const tk_layout *l) {
    bool found = false;
    for (uint32_t i = 0; i < s->products.n && !found; i++) {
        const tk_layout *p = s->products.at[i];
        uint8_t perm[TK_MAX_RANK];
        for (unsigned d = 0; d < p->rank; d++) {
            perm[d] = (uint8_t)d;
        }
        perm[p->rank - 1] = (uint8_t)(p->rank - 2);
        perm[p->rank - 2] = (uint8_t)(p->rank - 1);
        const tk_layout turned = tk_layout_permute(p, perm);
        found = same_bases(p, l) || same_bases(&turned, l);
    }
    return found;
}

// The exchange before a store, if there is one.
static const tk_op *exchange_of(const sender *s, const tk_op *op, tk_moving *m) {
    const tk_op *d = tk_value_def(s->f, tk_view_value(s->f, op));
    return d && d->code == TK_OP_CONVERT && !tk_value_layout(s->f, d->opnd[0])->shared &&
                   tk_moving_of(s->f, d, m) && m->work == TK_WORK_SHARED
               ? d
               : NULL;
}

static bool is_narrow(const sender *s, const tk_op *op) {
    const tk_layout *l = tk_value_layout(s->f, tk_view_value(s->f, op));
    const tk_view_plan p = tk_view_plan_of(s->x, op, l);
    return is_fragment(s, l) && p.vec * tk_dtype_size(tk_view_type(s->f, op)->dtype) < WIDE;
}

// Whether threads exchange the tile first, or store what a matrix unit made in narrow pieces.
static bool concerns(const sender *s, const tk_op *op) {
    tk_moving m;
    const tk_type *t = op->code == TK_OP_STORE ? tk_view_type(s->f, op) : NULL;
    return t && t->rank > 0 && !op->at.staged && (exchange_of(s, op, &m) || is_narrow(s, op));
}

// Writing it may have more bank conflicts than exchanging it. Where blocks run several programs it
// goes this way all the same: an exchange would have no room beside the next program's tiles.
static const char *why_not(const sender *s, const tk_op *op) {
    const tk_pass_ctx *c = s->c;
    const char *why = tk_out_why_not(s->x, c->target, s->f, op, s->log_warps);
    tk_moving m;
    const tk_op *d = why || c->m->attrs.persistent ? NULL : exchange_of(s, op, &m);
    if (d) {
        const tk_out_plan p = tk_out_plan_in(s->f, op, tk_value_layout(s->f, d->opnd[0]), 1, 1);
        why = (double)tk_out_written(&p).units > m.cost
                  ? "it would be written with more bank conflicts than it is exchanged"
                  : NULL;
    }
    return why;
}

static void judge(void *user, tk_op *op) {
    sender *s = user;
    tk_moving m;
    if (!concerns(s, op)) {
        return;
    }
    const char *why = why_not(s, op);
    if (!why) {
        const tk_op *d = exchange_of(s, op, &m);
        op->opnd[op->nopnd - 1] = d ? d->opnd[0] : op->opnd[op->nopnd - 1];
        op->at.how = TK_HOW_TENSOR;
        op->at.pieces = op->at.slots = 1;
    }
    note(s, op, why);
}

void tk_pass_out(tk_pass_ctx *c) {
    for (uint32_t i = 0; c->target && c->target->bulk && i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (f->is_kernel) {
            sender s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
            s.log_warps = tk_log_warps(f);
            tk_func_walk(f, see_product, &s);
            tk_func_walk(f, judge, &s);
        }
    }
}
