// SPDX-License-Identifier: Apache-2.0
// Pass ranges: views that are written by tiles of indices and masks become ranges.
//
// in:    tile level, calls inlined
// out:   loads, stores and atomics whose tiles of indices count up have ranges in their place; what
//        their masks say of the bounds of the tensor alone is gone
// keeps: every value, bit for bit
// needs: cse: equal numbers are one value
// when not: an index that does not count up by one along an axis of its own, or is no i32 or i64
//
// x[t where t < N] with t = s + iota(n) is x[s +: n]: what a range has outside of the tensor is
// read as the mask would have it. Indices wrap where ranges do not, but a size is below 2^31, so
// that what wrapped is outside as well. A mask goes where it holds for each element that is inside.
#include "lower/axis.h"
#include "lower/lower.h"
#include "lower/sum.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include "ir/pass_util.h"

#include <string.h>

enum { NEAR = 1 << 20 };

typedef struct ranger {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    tk_vmap map;
} ranger;

static uint32_t values_of(const tk_op *op) {
    return op->code == TK_OP_LOAD ? 0 : op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
}

static uint32_t rank_of(const ranger *s, const tk_op *op) {
    return tk_value_type(s->f, op->opnd[0])->rank;
}

static tk_vid make(ranger *s, tk_op *before, tk_opcode code, uint32_t n, const tk_vid *opnd,
                   const tk_type *t) {
    tk_op *op = tk_op_new(s->f, code, before->loc, n, opnd, 1, &t, 0);
    tk_op_insert_before(before, op);
    return op->res[0];
}

// ---- Tiles of indices ---------------------------------------------------------------------------

// The view by ranges.
typedef struct view {
    unsigned n;                // axes
    unsigned was[TK_MAX_RANK]; // which axis of the view each was
    int64_t dim[TK_MAX_RANK];
    tk_sum index[TK_MAX_TENSOR_RANK];
} view;

// Of dimension d; false: its tile does not count up.
static bool entry(const ranger *s, const tk_op *op, const tk_view_axes *axes, uint32_t d, view *w) {
    const int64_t kind = op->at.index[d];
    if (kind == 0) {
        return true;
    }
    unsigned axis = axes->first[d];
    int64_t extent = kind;
    if (kind < 0) {
        const tk_type *t = tk_value_type(s->f, op->opnd[1 + d]);
        w->index[d] = tk_sum_of(s->f, op->opnd[1 + d]);
        if (!w->index[d].known || w->index[d].count < 0) {
            return false;
        }
        extent = w->index[d].extent;
        axis += axes->count[d] - t->rank + (unsigned)w->index[d].axis;
    }
    if (kind < 0 && w->index[d].axis < 0) {
        return true; // one number
    }
    if (w->n == TK_MAX_RANK) {
        return false;
    }
    w->was[w->n] = axis;
    w->dim[w->n++] = extent;
    return true;
}

// Whether each axis of the view is that of one entry.
static bool covers(const tk_type *t, const view *w) {
    bool seen[TK_MAX_RANK] = {false};
    for (unsigned i = 0; i < w->n; i++) {
        if (w->was[i] >= t->rank || seen[w->was[i]] || t->dim[w->was[i]] != w->dim[i]) {
            return false;
        }
        seen[w->was[i]] = true;
    }
    for (unsigned a = 0; a < t->rank; a++) {
        if (!seen[a] && t->dim[a] != 1) {
            return false;
        }
    }
    return true;
}

static bool view_of(const ranger *s, const tk_op *op, view *w) {
    const tk_view_axes axes = tk_view_axes_of(s->f, op);
    bool tiles = false;
    memset(w, 0, sizeof *w);
    for (uint32_t d = 0; d < axes.n; d++) {
        tiles = tiles || op->at.index[d] < 0;
        if (!entry(s, op, &axes, d, w)) {
            return false;
        }
    }
    return tiles && covers(tk_view_type(s->f, op), w);
}

static tk_vid value_of(ranger *s, tk_op *before, const tk_sum *x) {
    const tk_type *t = tk_type_scalar(s->c->m->arena, x->dtype);
    tk_vid v = 0;
    for (int sign = 1; sign >= -1; sign -= 2) { // what is taken away comes last
        for (uint32_t i = 0; i < x->n; i++) {
            if (x->sign[i] != sign) {
                continue;
            }
            if (!v && sign < 0) {
                v = make(s, before, TK_OP_CONST, 0, NULL, t);
                tk_value_def(s->f, v)->at.value = tk_const_i64(x->dtype, 0);
            }
            v = !v ? x->term[i]
                   : make(s, before, sign > 0 ? TK_OP_ADD : TK_OP_SUB, 2, (tk_vid[]){v, x->term[i]},
                          t);
        }
    }
    if (v && !x->add) {
        return v;
    }
    const tk_vid c = make(s, before, TK_OP_CONST, 0, NULL, t);
    tk_value_def(s->f, c)->at.value = tk_const_i64(x->dtype, x->add);
    return v ? make(s, before, TK_OP_ADD, 2, (tk_vid[]){v, c}, t) : c;
}

// The axes of the view by ranges in the order in which the program has them: perm[i] is which.
static bool order_of(const view *w, uint8_t *perm) {
    bool sorted = true;
    for (unsigned i = 0; i < w->n; i++) {
        unsigned before = 0;
        for (unsigned k = 0; k < w->n; k++) {
            before += w->was[k] < w->was[i];
        }
        perm[before] = (uint8_t)i;
        sorted = sorted && before == i;
    }
    return sorted;
}

static tk_vid reshape(ranger *s, tk_op *before, tk_vid v, unsigned rank, const int64_t *dim) {
    const tk_type *t = tk_value_type(s->f, v);
    const tk_type *to = rank ? tk_type_tile(s->c->m->arena, t->dtype, rank, dim)
                             : tk_type_scalar(s->c->m->arena, t->dtype);
    return tk_type_eq(t, to) ? v : make(s, before, TK_OP_RESHAPE, 1, &v, to);
}

static tk_vid permute(ranger *s, tk_op *before, tk_vid v, const uint8_t *perm) {
    const tk_type *t = tk_value_type(s->f, v);
    int64_t dim[TK_MAX_RANK];
    for (unsigned i = 0; i < t->rank; i++) {
        dim[i] = t->dim[perm[i]];
    }
    v = make(s, before, TK_OP_PERMUTE, 1, &v, tk_type_tile(s->c->m->arena, t->dtype, t->rank, dim));
    memcpy(tk_value_def(s->f, v)->at.perm, perm, t->rank);
    return v;
}

// A tile of the view's old shape in its new one.
static tk_vid into(ranger *s, tk_op *op, const view *w, tk_vid v) {
    uint8_t perm[TK_MAX_RANK], back[TK_MAX_RANK];
    int64_t dim[TK_MAX_RANK];
    const bool sorted = order_of(w, perm);
    for (unsigned i = 0; i < w->n; i++) {
        dim[i] = w->dim[perm[i]];
        back[perm[i]] = (uint8_t)i;
    }
    v = reshape(s, op, v, w->n, dim);
    return sorted ? v : permute(s, op, v, back);
}

// The result in the shape that it had: what is made of it stands behind the op.
static void out_of(ranger *s, tk_op *op, const view *w) {
    const tk_vid old = op->res[0];
    const tk_type *t = tk_value_type(s->f, old);
    uint8_t perm[TK_MAX_RANK];
    tk_op *next = op->next;
    const tk_type *type = w->n ? tk_type_tile(s->c->m->arena, t->dtype, w->n, w->dim)
                               : tk_type_scalar(s->c->m->arena, t->dtype);
    tk_op *as = tk_op_new(s->f, op->code, op->loc, op->nopnd, op->opnd, 1, &type, 0);
    as->at = op->at;
    as->fast = op->fast;
    tk_op_insert_before(op, as);
    s->f->value.at[as->res[0]].name = s->f->value.at[old].name;
    tk_vid v = as->res[0];
    v = order_of(w, perm) ? v : permute(s, next, v, perm);
    tk_vmap_set(&s->map, old, reshape(s, next, v, t->rank, t->dim));
    tk_op_unlink(op);
}

static void to_ranges(ranger *s, tk_op *op, const view *w) {
    const uint32_t rank = rank_of(s, op);
    for (uint32_t i = 1 + rank; i < op->nopnd; i++) {
        op->opnd[i] = into(s, op, w, op->opnd[i]);
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (op->at.index[d] < 0) {
            op->opnd[1 + d] = value_of(s, op, &w->index[d]);
            op->at.index[d] = w->index[d].axis < 0 ? 0 : w->index[d].extent;
        }
    }
}

// ---- Masks --------------------------------------------------------------------------------------

typedef struct asked {
    const ranger *s;
    const tk_op *op; // the access
    tk_view_axes axes;
} asked;

// Whether a `dim` is the tensor's size along d in each launch.
static bool same_size(const tk_func *f, const tk_op *dim, tk_vid tensor, uint32_t d) {
    const tk_size_ref a = tk_func_size(f, f->value.at[dim->opnd[0]].index, (uint32_t)dim->at.axis),
                      b = tk_func_size(f, f->value.at[tensor].index, d);
    return a.param == b.param && a.axis == b.axis;
}

// A size of the tensor, as the sum has it: a number, or a term that is one.
static tk_sum size_in(const asked *q, uint32_t d, const tk_sum *in) {
    const tk_func *f = q->s->f;
    const int64_t n = tk_value_type(f, q->op->opnd[0])->dim[d];
    tk_sum size = {.known = n != TK_DIM_DYN, .dtype = in->dtype, .add = n, .axis = -1, .extent = 1};
    for (uint32_t i = 0; i < in->n && !size.known; i++) {
        const tk_op *of = tk_value_def(f, in->term[i]);
        if (of && of->code == TK_OP_DIM && same_size(f, of, q->op->opnd[0], d)) {
            size = (tk_sum){.known = true, .dtype = in->dtype, .n = 1, .axis = -1, .extent = 1};
            size.term[0] = in->term[i];
            size.sign[0] = 1;
        }
    }
    return size;
}

static tk_sum index_of(const asked *q, uint32_t d) {
    tk_sum s = tk_sum_of(q->s->f, q->op->opnd[1 + d]);
    const int64_t kind = q->op->at.index[d];
    s.known = s.known && kind >= 0;
    if (kind > 1) {
        s.axis = q->axes.first[d];
        s.count = 1;
        s.extent = kind;
    }
    return s;
}

// A number of few bits, whose addition to an index inside, or taken from a size, wraps nowhere.
static bool near(int64_t x, int64_t most) { return x <= most && x >= -NEAR; }

// Terms that are taken away from a size are no less than 0, so that they, which together are at
// most an index inside, wrap nowhere.
static bool counts_up(const ranger *s, const tk_sum *index) {
    for (uint32_t i = 0; i < index->n; i++) {
        const tk_axis_value *v = tk_axis_of(s->x, index->term[i]);
        if (index->sign[i] < 0 || !v || !v->ranged || v->lo < 0) {
            return false;
        }
    }
    return index->add >= 0 && near(index->add, NEAR);
}

// Whether a - b is at most `most` for each element that is inside along dimension d.
static bool holds_along(const asked *q, uint32_t d, const tk_sum *a, const tk_sum *b,
                        int64_t most) {
    const tk_sum index = index_of(q, d), size = size_in(q, d, b);
    const tk_sum from_index = tk_sum_less(*a, index), from_size = tk_sum_less(*b, size);
    if (tk_sum_is_number(&from_index) && tk_sum_is_number(&from_size)) { // index < size
        return near(from_index.add, 1) && near(from_size.add, 0) &&
               from_index.add - from_size.add <= most + 1;
    }
    const tk_sum above = tk_sum_less(*b, index);
    if (tk_sum_is_number(a) && tk_sum_is_number(&above)) { // 0 <= index
        return near(above.add, 1) && near(a->add, NEAR) && a->add - above.add <= most;
    }
    const tk_sum by = tk_sum_less(tk_sum_less(*a, *b), tk_sum_less(index, size));
    return a->n == 0 && b->axis < 0 && tk_sum_is_number(&by) && near(a->add, NEAR) &&
           near(from_size.add, 0) && counts_up(q->s, &index) && by.add <= most + 1;
}

static bool compared(const asked *q, const tk_op *op, const int *map) {
    tk_sum a = tk_sum_of(q->s->f, op->opnd[0]), b = tk_sum_of(q->s->f, op->opnd[1]);
    const bool turned = op->code == TK_OP_GT || op->code == TK_OP_GE;
    const bool strict = op->code == TK_OP_LT || op->code == TK_OP_GT;
    if (!strict && op->code != TK_OP_LE && op->code != TK_OP_GE) {
        return false;
    }
    a.axis = a.axis >= 0 ? map[a.axis] : -1;
    b.axis = b.axis >= 0 ? map[b.axis] : -1;
    for (uint32_t d = 0; d < q->axes.n && a.known && b.known; d++) {
        if (holds_along(q, d, turned ? &b : &a, turned ? &a : &b, strict ? -1 : 0)) {
            return true;
        }
    }
    return false;
}

// What is left of a mask whose axes are those of the view by `map`; 0: nothing.
static tk_vid left_of(asked *q, tk_op *before, tk_vid v, const int *map, unsigned depth) {
    enum { DEEP = 16 };
    ranger *s = (ranger *)(uintptr_t)q->s;
    tk_op *op = tk_value_def(s->f, v);
    if (!op || depth > DEEP) {
        return v;
    }
    if (op->code == TK_OP_AND) {
        const tk_vid x = left_of(q, before, op->opnd[0], map, depth + 1);
        const tk_vid y = left_of(q, before, op->opnd[1], map, depth + 1);
        if (!x || !y) {
            return x ? x : y;
        }
        const bool same = x == op->opnd[0] && y == op->opnd[1];
        return same ? v : make(s, before, TK_OP_AND, 2, (tk_vid[]){x, y}, tk_value_type(s->f, v));
    }
    if (op->code == TK_OP_BROADCAST || op->code == TK_OP_RESHAPE || op->code == TK_OP_PERMUTE) {
        int inner[TK_MAX_RANK];
        const tk_type *t = tk_value_type(s->f, op->opnd[0]);
        for (int i = 0; i < t->rank; i++) {
            const int to = t->dim[i] > 1 ? tk_axis_in_result(s->f, op, i) : -1;
            inner[i] = to >= 0 ? map[to] : -2 - i; // no axis of the view
        }
        const tk_vid x = left_of(q, before, op->opnd[0], inner, depth + 1);
        if (!x || x == op->opnd[0]) {
            return x ? v : 0;
        }
        const tk_vid again = make(s, before, op->code, 1, &x, tk_value_type(s->f, v));
        tk_value_def(s->f, again)->at = op->at;
        return again;
    }
    const tk_const *c = tk_value_const(s->f, v);
    return (c && c->bits) || compared(q, op, map) ? 0 : v;
}

static void unmask(ranger *s, tk_op *op) {
    const uint32_t at = 1 + rank_of(s, op) + values_of(op);
    asked q = {s, op, tk_view_axes_of(s->f, op)};
    int map[TK_MAX_RANK] = {0, 1, 2, 3, 4};
    const tk_vid mask = op->opnd[at], left = left_of(&q, op, mask, map, 0);
    if (left == mask) {
        return;
    }
    op->opnd[at] = left;
    if (!left) {
        op->at.masked = false;
        op->nopnd--;
        memmove(&op->opnd[at], &op->opnd[at + 1], (op->nopnd - at) * sizeof *op->opnd);
    }
    const char *name = s->f->value.at[op->opnd[0]].name;
    tk_note_add(&s->c->m->notes, "ranges", "mask", tk_loc_span(s->c->m, op->loc), TK_NOTE_DONE,
                "%sthe mask of '%s' says no more than its bounds", left ? "a part of " : "",
                name ? name : "?");
}

// ---- The walk -----------------------------------------------------------------------------------

static void walk(ranger *s, tk_region *r) {
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        tk_vmap_operands(&s->map, op);
        if (tk_op_is_access(op)) {
            view w;
            const bool ranges = view_of(s, op, &w);
            if (ranges) {
                to_ranges(s, op, &w);
            }
            if (op->at.masked) {
                unmask(s, op);
            }
            if (ranges && op->nres) {
                out_of(s, op, &w);
            }
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            walk(s, op->reg[i]);
        }
    }
}

void tk_pass_ranges(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        ranger s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
        s.map.arena = c->scratch;
        walk(&s, f->body);
    }
}
