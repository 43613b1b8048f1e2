// SPDX-License-Identifier: Apache-2.0
// Pass turn: products are made the other way round where wgmma then reads more of their operands
// where tensor copies put them.
//
// in:    tile level, calls inlined, extents powers of two, units decided
// out:   in place of a b, summed up by a loop, the loop sums up (b^T a^T), and its result is
//        permuted
// keeps: every value, bit for bit: an element's products and their order stay the same
// needs: pad, chunk, units
// when not: the unit is not wgmma; it reads the right operand where it lies, or could not read the
//           left one there either; operands are not loaded in the loop; the sum is used in it, or
//           is no sum of one product; elements of 1 byte, which do not come from registers if they
//           are not contiguous along K; rows of the result are to be whole in a warp
//
// Of elements of 4 bytes wgmma reads in shared memory only what is contiguous along K. The left
// operand may come from registers, however it lies; the right one is then written again by all
// threads, who wait for each other. So what is not contiguous along K should stand left.
#include "lower/box.h"
#include "lower/lower.h"
#include "lower/make.h"
#include "lower/ring.h"
#include "lower/units.h"

#include "ir/pass_util.h"

#include <string.h>

typedef struct turner {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    unsigned log_warps;
    tk_op *dot;
} turner;

// ---- Whether ------------------------------------------------------------------------------------

// The load of operand i in the loop, and how the operand would lie in shared memory; NULL: none.
static const tk_op *loaded(const turner *s, uint32_t i, tk_layout *l) {
    const tk_op *d = tk_value_def(s->f, s->dot->opnd[i]);
    const bool turned = d && d->code == TK_OP_PERMUTE;
    const tk_op *load = turned ? tk_value_def(s->f, d->opnd[0]) : d;
    if (!load || load->code != TK_OP_LOAD || load->in != s->dot->in || load->at.masked ||
        load->at.other || tk_boxes_why_not(s->x, s->c->target, load, s->log_warps)) {
        return NULL;
    }
    *l = tk_ring_layout_of(s->f, load);
    *l = turned ? tk_layout_permute(l, d->at.perm) : *l;
    return load;
}

static void count_use(void *user, tk_op *op) {
    tk_vid *v = user; // the value, and how often it is used
    for (uint32_t i = 0; i < op->nopnd; i++) {
        v[1] += op->opnd[i] == v[0];
    }
}

static bool is_used_once(const turner *s, tk_vid v) {
    tk_vid of[2] = {v, 0};
    tk_func_walk(s->f, count_use, of);
    return of[1] == 1;
}

// What the loop carries the sum as. False: it does something else with it.
static bool carries(const turner *s, uint32_t *number) {
    const tk_op *loop = s->dot->in->owner;
    if (!loop || loop->code != TK_OP_FOR || s->dot->nopnd != 3) {
        return false;
    }
    const tk_op *end = s->dot->in->last;
    for (uint32_t i = 0; i < end->nopnd; i++) {
        if (end->opnd[i] == s->dot->res[0]) {
            *number = i;
            const tk_vid before = s->dot->in->args.at[1 + i];
            return before == s->dot->opnd[2] && is_used_once(s, before) &&
                   is_used_once(s, s->dot->res[0]);
        }
    }
    return false;
}

// Contiguous along K, of 4 bytes an element; `is_left`: the axis K is the last.
static bool along_k(const tk_layout *l, bool is_left) {
    enum { BYTES = 4 };
    tk_placed p;
    return tk_layout_is_placed(l, BYTES, &p) && p.fast == (is_left ? 1U : 0U);
}

static bool would_gain(const turner *s) {
    enum { BYTES = 4 };
    const tk_type *a = tk_value_type(s->f, s->dot->opnd[0]);
    tk_layout l[2];
    if (s->dot->at.unit != TK_UNIT_WGMMA || a->rank != 2 || tk_dtype_size(a->dtype) != BYTES) {
        return false;
    }
    const tk_op *left = loaded(s, 0, &l[0]), *right = loaded(s, 1, &l[1]);
    return left && right && tk_ring_rounds(s->f, left) && along_k(&l[0], true) &&
           !along_k(&l[1], false);
}

// ---- Making -------------------------------------------------------------------------------------

static const tk_type *turned_type(const turner *s, const tk_type *t) {
    const int64_t dim[2] = {t->dim[1], t->dim[0]};
    return tk_type_tile(s->c->m->arena, t->dtype, 2, dim);
}

// v with its axes exchanged; of what is that already, what it was made of.
static tk_vid turned(const turner *s, tk_op *before, tk_vid v) {
    const tk_maker make = {s->f, s->c->m->arena, s->dot->loc};
    tk_op *d = tk_value_def(s->f, v);
    const tk_type *t = turned_type(s, tk_value_type(s->f, v));
    if (d && d->code == TK_OP_PERMUTE) {
        const tk_vid of = d->opnd[0];
        if (is_used_once(s, v)) {
            tk_op_unlink(d);
        }
        return of;
    }
    if (d && d->code == TK_OP_CONST) {
        const tk_vid k = tk_maker_op(&make, before, TK_OP_CONST, 0, NULL, t);
        tk_value_def(s->f, k)->at = d->at;
        return k;
    }
    const tk_vid p = tk_maker_op(&make, before, TK_OP_PERMUTE, 1, &v, t);
    tk_op *op = tk_value_def(s->f, p);
    op->at.perm[0] = 1;
    op->at.perm[1] = 0;
    return p;
}

static void rename_in(void *user, tk_op *op) { tk_vmap_operands(user, op); }

// The product and the sum, in place of what they were.
static void turn(turner *s, uint32_t number) {
    tk_func *f = s->f;
    tk_op *dot = s->dot, *loop = dot->in->owner, *after = loop->next;
    const tk_type *t = turned_type(s, tk_value_type(f, dot->res[0]));
    const tk_vid result = loop->res[number];
    const tk_vid left = turned(s, dot, dot->opnd[1]), right = turned(s, dot, dot->opnd[0]);
    dot->opnd[0] = left;
    dot->opnd[1] = right;
    enum { BOUNDS = 3 };
    loop->opnd[BOUNDS + number] = turned(s, loop, loop->opnd[BOUNDS + number]);
    f->value.at[dot->in->args.at[1 + number]].type = t;
    f->value.at[dot->res[0]].type = t;
    f->value.at[result].type = t;
    tk_vmap map = {.arena = s->c->scratch};
    tk_vmap_set(&map, result, turned(s, after, result));
    for (tk_op *op = after; op; op = op->next) { // a loop's results are its region's
        tk_op_walk(op, rename_in, &map);
    }
    tk_note_add(&s->c->m->notes, "turn", "turned", tk_loc_span(s->c->m, dot->loc), TK_NOTE_DONE,
                "made as the transpose of b^T a^T: wgmma reads a where tensor copies put it, and "
                "b, which is not contiguous along K, comes from registers");
}

// Whether the product is one of wgmma when its rows are the columns.
static bool may_be_turned(const turner *s) {
    enum { ROWS = 64, COLUMNS = 8 };
    const tk_type *t = tk_value_type(s->f, s->dot->res[0]);
    return t->dim[1] >= ROWS && t->dim[0] >= COLUMNS;
}

static void find(void *user, tk_op *op) {
    turner *s = user;
    uint32_t number;
    s->dot = op;
    if (op->code == TK_OP_DOT && would_gain(s) && may_be_turned(s) && carries(s, &number)) {
        turn(s, number);
    }
}

void tk_pass_turn(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n && c->target && c->target->wgmma; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (!f->is_kernel || c->m->attrs.stages == 1 || tk_products_in_rows(f)) {
            continue;
        }
        turner s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
        s.log_warps = tk_log_warps(f);
        tk_func_walk(f, find, &s);
    }
}
