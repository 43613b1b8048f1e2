// SPDX-License-Identifier: Apache-2.0
// See shapes.h.
#include "lower/shapes.h"
#include "ir/out.h"
#include "lower/ring.h"
#include "lower/stage.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include <string.h>

static const tk_type *type_of(const tk_shapes *s, tk_vid v) { return tk_value_type(s->f, v); }

static bool is_tile(const tk_shapes *s, tk_vid v) {
    const tk_type *t = type_of(s, v);
    return t->kind == TK_T_VALUE && t->rank > 0;
}

static bool same_shape(const tk_type *a, const tk_type *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

tk_shape_rule *tk_shape_rule_of(tk_shapes *s, const tk_type *t) {
    for (tk_shape_rule *r = s->rules; r; r = r->next) {
        if (same_shape(r->type, t)) {
            return r;
        }
    }
    tk_shape_rule *r = TK_NEW(s->c->scratch, tk_shape_rule);
    r->type = t;
    r->next = s->rules;
    s->rules = r;
    return r;
}

// Whether no thread can move several elements at once: lanes are then better side by side.
static bool in_elements(const tk_shapes *s, const tk_op *op) {
    const uint32_t param = s->f->value.at[op->opnd[0]].index;
    return s->c->facts && tk_stage_useful(s->c->facts[param]);
}

static void vote(tk_shapes *s, const tk_op *op, tk_like like) {
    const tk_type *t = tk_view_type(s->f, op);
    if (t->rank == 0) {
        return;
    }
    tk_view_axes v = tk_view_axes_of(s->f, op);
    tk_shape_rule *r = tk_shape_rule_of(s, t);
    unsigned bytes = (unsigned)tk_dtype_size(t->dtype);
    uint32_t last = v.n - 1; // the tensor's last dimension is the contiguous one
    if (op->at.index[last] != 0) {
        r->votes[v.first[last] + v.count[last] - 1] += tk_type_elems(t);
    }
    if (like == TK_LIKE_LOAD && in_elements(s, op)) {
        r->apart = true;
        return;
    }
    const bool loops = tk_op_in_loop(op);
    r->looped = r->looped || loops;
    if (like == TK_LIKE_LOAD && op->code == TK_OP_STORE && bytes > r->stored[loops]) {
        r->stored[loops] = bytes;
    }
    unsigned *of = like == TK_LIKE_STAGED   ? &r->staged
                   : like == TK_LIKE_COMMON ? &r->common
                                            : &r->bytes;
    *of = *of == 0 || bytes < *of ? bytes : *of;
}

// A tile that is kept is laid out by its parts.
static void vote_part(tk_shapes *s, const tk_type *tile, const tk_type *part) {
    tk_shape_rule *r = tk_shape_rule_of(s, tile);
    int64_t least = tk_type_elems(r->part ? r->part : tile);
    r->part = tk_type_elems(part) < least ? part : r->part;
}

// The tile and the part of an insert or extract.
static bool parts_of(const tk_shapes *s, const tk_op *op, const tk_type **tile,
                     const tk_type **part) {
    if (op->code != TK_OP_INSERT && op->code != TK_OP_EXTRACT) {
        return false;
    }
    *tile = type_of(s, op->opnd[0]);
    *part = type_of(s, op->code == TK_OP_INSERT ? op->opnd[1] : op->res[0]);
    return true;
}

// A part that is larger than others of its tile is laid out by those, so that it is made of them.
static void vote_large_part(void *user, tk_op *op) {
    tk_shapes *s = user;
    const tk_type *tile, *part;
    if (!parts_of(s, op, &tile, &part)) {
        return;
    }
    const tk_type *least = tk_shape_rule_of(s, tile)->part;
    bool divides = least && !same_shape(part, tile);
    for (unsigned i = 0; divides && i < tile->rank; i++) {
        divides = least->dim[i] <= part->dim[i];
    }
    if (divides) {
        vote_part(s, part, least);
    }
}

static void vote_op(void *user, tk_op *op) {
    tk_shapes *s = user;
    const tk_type *tile, *part;
    if (parts_of(s, op, &tile, &part)) {
        vote_part(s, tile, part);
    }
    if (op->code == TK_OP_RESHAPE && is_tile(s, op->opnd[0]) && is_tile(s, op->res[0])) {
        tk_shape_rule *r = tk_shape_rule_of(s, type_of(s, op->res[0]));
        r->from = r->from ? r->from : type_of(s, op->opnd[0]);
    }
    if (tk_op_is_access(op)) {
        vote(s, op, tk_loaded_like(s->f, op));
    }
    const tk_op *fetch = op->code == TK_OP_RING ? tk_ring_fetch(s->f, op->res[0]) : NULL;
    if (fetch) { // of which there are several: the load that it stands for votes once
        vote(s, fetch, op->at.like);
    }
}

static unsigned log2_of(int64_t n) {
    unsigned k = 0;
    while ((int64_t)1 << k < n) {
        k++;
    }
    return k;
}

// The layout of a tile of type t whose parts are in layout l.
const tk_layout *tk_shape_grown(tk_shapes *s, const tk_layout *l, const tk_type *t) {
    unsigned log[TK_MAX_RANK];
    for (unsigned i = 0; i < t->rank; i++) {
        log[i] = log2_of(t->dim[i]) - l->log_dim[i];
    }
    return tk_layout_new(s->a, tk_layout_grow(l, log));
}

// Elements of rows in shared memory, of which a thread takes those of a word, which is in a bank of
// its own.
static const tk_layout *rows_layout(tk_shapes *s, const tk_shape_rule *r, const uint8_t *order) {
    enum { WORD = 4 };
    const tk_type *t = r->type;
    unsigned vec = r->staged < WORD ? log2_of(WORD / r->staged) : 0;
    const unsigned bits = log2_of(tk_type_elems(t)), threads = TK_LANE_BITS + s->log_warps;
    const unsigned extent = log2_of(t->dim[order[0]]), spare = bits > threads ? bits - threads : 0;
    vec = vec > extent ? extent : vec;
    vec = vec > spare ? spare : vec;
    return tk_layout_new(s->a, tk_layout_rows(t->rank, t->dim, order, vec, s->log_warps));
}

// The layout of a shape: see the head of this file.
const tk_layout *tk_shape_layout(tk_shapes *s, const tk_type *t) {
    tk_shape_rule *r = tk_shape_rule_of(s, t);
    if (r->layout) {
        return r->layout;
    }
    if (r->part) {
        r->layout = tk_shape_grown(s, tk_shape_layout(s, r->part), t);
        return r->layout;
    }
    if (r->bytes == 0 && !r->apart && r->from && tk_shape_rule_of(s, r->from)->bytes > 0) {
        const tk_layout *l = tk_shape_layout(s, r->from);
        r->layout = tk_layout_new(s->a, tk_layout_reshape(l, t->rank, t->dim));
        return r->layout;
    }
    uint8_t order[TK_MAX_RANK];
    unsigned fast = t->rank - 1u, n = 0;
    for (unsigned i = 0; i < t->rank; i++) {
        fast = r->votes[i] > r->votes[fast] ? i : fast;
    }
    order[n++] = (uint8_t)fast;
    for (unsigned i = t->rank; i-- > 0;) {
        if (i != fast) {
            order[n++] = (uint8_t)i;
        }
    }
    unsigned total = log2_of(tk_type_elems(t)), threads = TK_LANE_BITS + s->log_warps;
    if (r->staged && !r->bytes) {
        r->layout = rows_layout(s, r, order);
        return r->layout;
    }
    const unsigned bytes = !r->common || (r->bytes && r->bytes < r->common) ? r->bytes : r->common;
    // Lanes store side by side: a sector that two instructions write is written twice. What is
    // stored once does not decide how a loop reads.
    const unsigned stored = r->stored[r->looped], widest = stored > bytes ? stored : bytes;
    unsigned vec = !bytes && r->apart ? 0 : log2_of(16 / (widest ? widest : 4));
    unsigned extent = log2_of(t->dim[fast]);
    vec = vec > extent ? extent : vec;
    unsigned spare = total > threads ? total - threads : 0;
    vec = vec > spare ? spare : vec;
    r->layout = tk_layout_new(s->a, tk_layout_blocked(t->rank, t->dim, order, vec, s->log_warps));
    return r->layout;
}

void tk_shape_votes(tk_shapes *s) {
    tk_func_walk(s->f, vote_op, s);
    tk_func_walk(s->f, vote_large_part, s);
}
