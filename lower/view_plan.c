// SPDX-License-Identifier: Apache-2.0
// What an access of a tensor needs when it runs. See view_plan.h.
#include "lower/view_plan.h"
#include "lower/box.h"
#include "lower/differs.h"
#include "lower/ring.h"
#include "lower/sum.h"
#include "lower/views.h"

#include "ir/pass_util.h"

#include <string.h>

enum { MOST_BYTES = 16, SHORT_BYTES = 4 };

typedef struct plan {
    const tk_axis *x;
    const tk_func *f;
    const tk_op *op;
    const tk_layout *l;
    tk_view_axes axes;
    uint32_t last;
    unsigned axis;  // of the view, along which the last dimension is walked
    unsigned width; // exponent of the elements of a vector
    tk_view_plan out;
} plan;

bool tk_op_is_access(const tk_op *op) {
    return op->code == TK_OP_LOAD || op->code == TK_OP_STORE || op->code == TK_OP_ATOMIC_RMW ||
           op->code == TK_OP_ATOMIC_CAS;
}

static unsigned log2_of(unsigned n) { return (unsigned)__builtin_ctz(n); }

static const tk_axis_value *index_of(const plan *p, uint32_t d) {
    return tk_axis_of(p->x, p->op->opnd[1 + d]);
}

// ---- Bounds

static void bounds(plan *p, uint32_t d) {
    const tk_axis_value *v = index_of(p, d);
    tk_dtype t = tk_value_type(p->f, p->op->opnd[1 + d])->dtype;
    int64_t kind = p->op->at.index[d];
    p->out.low[d] = tk_dtype_is_signed(t) && v->lo < 0;
    p->out.high[d] = !tk_axis_below(p->x, v, p->out.param, d, kind > 0 ? kind : 1);
    p->out.fits32[d] = v->ranged && v->lo >= INT32_MIN && v->hi <= INT32_MAX;
}

// ---- Vectors

static void narrow(plan *p, unsigned width, const char *why) {
    if (width < p->width) {
        p->width = width;
        p->out.narrow = why;
    }
}

// Registers that walk the axis, with no other part of the layout in the bits that they walk.
static unsigned run_of(const tk_layout *l, unsigned axis) {
    unsigned n = tk_layout_vector(l, axis);
    uint32_t others = 0;
    for (unsigned i = n; i < l->regs; i++) {
        others |= l->reg[i];
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        others |= l->lane[i];
    }
    for (unsigned i = 0; i < l->warps; i++) {
        others |= l->warp[i];
    }
    others >>= tk_layout_shift(l, axis);
    while (n > 0 && (others & ((1U << n) - 1))) {
        n--;
    }
    return n;
}

// The axis of a tile index that is axis `axis` of the view; -1: the index is the same along it.
static int axis_of_index(const plan *p, uint32_t d, unsigned axis) {
    const tk_type *t = tk_value_type(p->f, p->op->opnd[1 + d]);
    int k = (int)axis - (p->axes.first[d] + p->axes.count[d] - t->rank);
    bool ours = axis >= p->axes.first[d] && axis < (unsigned)p->axes.first[d] + p->axes.count[d];
    return ours && k >= 0 && t->dim[k] > 1 ? k : -1;
}

// Of the last dimension: what its indices permit, and whether vectors are aligned.
static void last_dimension(plan *p, unsigned bytes) {
    const tk_axis_value *v = index_of(p, p->last);
    tk_axis_dim d = {0, 0, (uint8_t)tk_axis_every(v)};
    if (p->op->at.index[p->last] == -1) {
        int k = axis_of_index(p, p->last, p->axis);
        d = k >= 0 ? v->dim[k] : (tk_axis_dim){0, 0, 0};
        narrow(p, d.contig, "the indices are not known to count up");
    }
    unsigned div = d.contig > p->width && d.div > p->width ? p->width : d.div;
    const bool some = div > 0 || p->op->code == TK_OP_FETCH; // which tests nothing when it runs
    if (some && div < p->width && (bytes << div) >= SHORT_BYTES) {
        narrow(p, div, "the place in the row is not known to be a multiple of more");
    }
    p->out.aligned = div >= p->width;
}

static void other_dimensions(plan *p) {
    for (uint32_t d = 0; d < p->last; d++) {
        int k = p->op->at.index[d] == -1 ? axis_of_index(p, d, p->axis) : -1;
        if (k >= 0) {
            narrow(p, index_of(p, d)->dim[k].same, "an index of another dimension may vary");
        }
    }
}

// ---- Masks

static bool all_along(const plan *p, tk_vid v, unsigned axis, bool counting) {
    const tk_axis_value *a = tk_axis_of(p->x, v);
    const tk_type *t = tk_value_type(p->f, v);
    const unsigned n = t->rank ? log2_of((unsigned)t->dim[axis]) : 0;
    return t->rank == 0 || (a && (counting ? a->dim[axis].contig : a->dim[axis].same) >= n);
}

// The axis of the operand of an op that changes shapes; -1: the operand is the same along it.
static int axis_in_operand(const plan *p, const tk_op *op, unsigned axis) {
    const tk_type *from = tk_value_type(p->f, op->opnd[0]);
    for (int k = 0; k < from->rank; k++) {
        if (tk_axis_in_result(p->f, op, k) == (int)axis) {
            return k;
        }
    }
    return -1;
}

// Whether m changes at most a few times along the axis: comparisons of what counts up with what is
// the same, and what is made of these.
static bool is_bound(const plan *p, tk_vid m, unsigned axis, unsigned depth) {
    enum { DEEP = 16 };
    const tk_op *op = tk_value_def(p->f, m);
    if (depth > DEEP || all_along(p, m, axis, false)) {
        return depth <= DEEP;
    }
    if (!op) {
        return false;
    }
    if (op->code == TK_OP_AND) {
        return is_bound(p, op->opnd[0], axis, depth + 1) &&
               is_bound(p, op->opnd[1], axis, depth + 1);
    }
    if (op->code == TK_OP_CONVERT) {
        return is_bound(p, op->opnd[0], axis, depth + 1);
    }
    if (op->code == TK_OP_BROADCAST || op->code == TK_OP_RESHAPE || op->code == TK_OP_PERMUTE) {
        const int k = axis_in_operand(p, op, axis);
        return k >= 0 && is_bound(p, op->opnd[0], (unsigned)k, depth + 1);
    }
    const bool orders = op->code == TK_OP_LT || op->code == TK_OP_LE || op->code == TK_OP_GT ||
                        op->code == TK_OP_GE;
    const tk_vid a = orders ? op->opnd[0] : 0, b = orders ? op->opnd[1] : 0;
    return orders && ((all_along(p, a, axis, true) && all_along(p, b, axis, false)) ||
                      (all_along(p, b, axis, true) && all_along(p, a, axis, false)));
}

static void mask(plan *p) {
    uint32_t at = 1 + p->out.rank;
    at += p->op->code == TK_OP_STORE ? 1 : 0;
    const tk_axis_value *m = p->op->at.masked ? tk_axis_of(p->x, p->op->opnd[at]) : NULL;
    p->out.mask_in_step = m && m->dim[p->axis].same >= p->width;
    p->out.mask_cuts = p->op->at.masked && !p->out.mask_in_step && p->width > 0 &&
                       !is_bound(p, p->op->opnd[at], p->axis, 0);
}

static const char *no_vector(const plan *p, tk_tensor_facts facts) {
    bool moves =
        p->op->code == TK_OP_LOAD || p->op->code == TK_OP_STORE || p->op->code == TK_OP_FETCH;
    if (!moves) {
        return "atomics take one element";
    }
    if (p->op->at.index[p->last] == 0) {
        return "the last dimension's index is one number";
    }
    if (!(facts & TK_FACT_UNIT)) {
        return "the last stride is not known to be 1";
    }
    return facts & TK_FACT_ALIGNED ? NULL : "the alignment of the row start is not known";
}

// The axis of the view along which it has one program after the other of those that share the block
// (pass_pack.c); -1: it has none.
static int axis_of_programs(const tk_func *f, const tk_op *op, const tk_view_axes *axes) {
    const int64_t n = f->module->packed;
    int axis = -1;
    for (uint32_t d = 0; d < axes->n && n > 1 && axis < 0; d++) {
        const tk_vid v = op->opnd[1 + d];
        const tk_type *t = tk_value_type(f, v);
        if (op->at.index[d] == -1 && t->rank && t->dim[0] == n && tk_differs_along(f, v) & 1) {
            axis = axes->first[d] + axes->count[d] - t->rank;
        }
    }
    return axis;
}

// Of a tile of several elements; but not of one that has one of each program that shares the block.
static bool is_scattered(const plan *p, tk_tensor_facts facts) {
    const tk_type *t = tk_view_type(p->f, p->op), *of = tk_value_type(p->f, p->op->opnd[0]);
    const int64_t kind = p->op->at.index[p->last];
    const unsigned axis = (unsigned)p->axes.first[p->last] + p->axes.count[p->last] - 1;
    const int programs = axis_of_programs(p->f, p->op, &p->axes);
    bool several = false;
    for (int k = 0; k < t->rank; k++) {
        several = several || (k != programs && t->dim[k] > 1);
    }
    if (!several || of->dim[p->last] == 1) {
        return false;
    }
    if (kind < 0) {
        const int k = axis_of_index(p, p->last, axis);
        return k < 0 || index_of(p, p->last)->dim[k].contig == 0;
    }
    return kind <= 1 || !(facts & TK_FACT_UNIT);
}

static void vectors(plan *p) {
    tk_tensor_facts facts = p->x->facts ? p->x->facts[p->out.param] : 0;
    unsigned bytes = (unsigned)tk_dtype_size(tk_view_type(p->f, p->op)->dtype);
    p->out.narrow = no_vector(p, facts);
    p->out.scattered = is_scattered(p, facts);
    if (p->out.narrow) {
        return;
    }
    p->axis = (unsigned)p->axes.first[p->last] + p->axes.count[p->last] - 1;
    p->width = log2_of(MOST_BYTES / bytes);
    narrow(p, run_of(p->l, p->axis), "a thread has no more elements in a row");
    other_dimensions(p);
    last_dimension(p, bytes);
    mask(p);
    tk_axis_value size = tk_axis_size(p->x, p->out.param, p->last);
    p->out.whole = tk_axis_every(&size) >= p->width;
    p->out.vec = 1U << p->width;
}

tk_view_plan tk_view_plan_of(const tk_axis *x, const tk_op *op, const tk_layout *l) {
    plan p = {.x = x, .f = x->func, .op = op, .l = l};
    p.out = (tk_view_plan){.vec = 1, .aligned = true, .whole = true};
    p.out.param = x->func->value.at[op->opnd[0]].index;
    p.out.rank = tk_value_type(p.f, op->opnd[0])->rank;
    p.axes = tk_view_axes_of(p.f, op);
    p.last = p.out.rank ? p.out.rank - 1 : 0;
    for (uint32_t d = 0; d < p.out.rank; d++) {
        bounds(&p, d);
    }
    if (op->at.staged) {
        p.out.vec = MOST_BYTES / (unsigned)tk_dtype_size(tk_view_type(p.f, op)->dtype);
    } else if (l && p.out.rank) {
        vectors(&p);
    }
    if (p.out.vec == 1) {
        p.out.aligned = p.out.whole = true;
    }
    return p.out;
}

// ---- Notes

static const char *done_to(const tk_func *f, const tk_op *op) {
    const bool ahead =
        op->code == TK_OP_FETCH && tk_value_def(f, op->opnd[op->nopnd - 1])->at.slots > 1;
    return ahead                                               ? "read ahead"
           : op->code == TK_OP_LOAD || op->code == TK_OP_FETCH ? "read"
           : op->code == TK_OP_STORE                           ? "written"
                                                               : "changed";
}

static void say_tests(tk_buf *b, const tk_op *op, const tk_view_plan *a) {
    bool first = true;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->low[d] || a->high[d]) {
            const char *what = op->at.index[d] > 0 ? "range" : "index";
            tk_buf_fmt(b, "%sdimension %u, whose %s may %s", first ? "; tested: " : ", ", d, what,
                       !a->low[d]    ? "pass the size"
                       : !a->high[d] ? "be negative"
                                     : "be outside");
            first = false;
        }
    }
    if (!a->aligned) {
        tk_buf_fmt(b, "%salignment, as the place in the row is not known",
                   first ? "; tested: " : ", ");
    }
    if (a->vec > 1 && op->at.masked && !a->mask_in_step) {
        tk_buf_str(b, a->mask_cuts ? "; the mask may differ inside each vector"
                                   : "; the mask may differ inside a vector");
    }
}

// What decides how many elements of a shape stand in one thread: the widest type stored.
typedef struct stored {
    const tk_func *f;
    const tk_type *shape;
    size_t bytes;
} stored;

static void see_stored(void *user, tk_op *op) {
    stored *s = user;
    if (op->code != TK_OP_STORE) {
        return;
    }
    const tk_type *t = tk_view_type(s->f, op);
    const bool same =
        t->rank == s->shape->rank && memcmp(t->dim, s->shape->dim, t->rank * sizeof *t->dim) == 0;
    const size_t bytes = tk_dtype_size(t->dtype);
    s->bytes = same && bytes > s->bytes ? bytes : s->bytes;
}

// Whether 16 bytes of what is stored in this shape are as many elements.
static bool is_beside_stored(const tk_func *f, const tk_op *op, const tk_view_plan *a) {
    stored s = {f, tk_view_type(f, op), 0};
    tk_func_walk((tk_func *)(uintptr_t)f, see_stored, &s); // changes nothing
    return a->vec > 1 && a->vec * s.bytes == MOST_BYTES;
}

// Elements that a thread has of one program.
static unsigned elements_of_program(const tk_func *f, const tk_op *op, const tk_layout *l) {
    const tk_view_axes axes = tk_view_axes_of(f, op);
    const int programs = axis_of_programs(f, op, &axes);
    unsigned bits = l->regs;
    for (unsigned i = 0; i < l->regs && programs >= 0; i++) {
        const uint32_t along = l->reg[i] >> tk_layout_shift(l, (unsigned)programs);
        bits -= (along & ((1U << l->log_dim[programs]) - 1)) != 0;
    }
    return 1U << bits;
}

// Moves as much at once as it could in any layout, and wherever the row begins.
static bool is_wide(const tk_func *f, const tk_op *op, const tk_view_plan *a) {
    const tk_layout *l = tk_value_layout(f, tk_view_value(f, op));
    const size_t bytes = a->vec * tk_dtype_size(tk_view_type(f, op)->dtype);
    if (op->at.staged || op->code == TK_OP_FETCH) {
        return op->at.staged || bytes == MOST_BYTES;
    }
    const bool atomic = op->code == TK_OP_ATOMIC_RMW || op->code == TK_OP_ATOMIC_CAS;
    if (!l || atomic) {
        return true;
    }
    const bool most = bytes == MOST_BYTES || is_beside_stored(f, op, a) ||
                      (a->vec == elements_of_program(f, op, l) && !a->scattered);
    return a->aligned && !a->mask_cuts && most;
}

static tk_note_rec *boxes_note(tk_notes *n, const tk_func *f, const tk_op *op, tk_buf *b) {
    tk_boxes x;
    if (tk_boxes_of(f, op, &x)) {
        TK_ICE(n->arena, "tensor copies without boxes");
    }
    tk_buf_fmt(b, "by %u tensor cop%s of [", x.n, x.n == 1 ? "y" : "ies");
    for (uint32_t d = x.map.rank; d-- > 0;) {
        tk_buf_fmt(b, "%u%s", x.map.box[d], d ? ", " : "]");
    }
    tk_note_rec *r = tk_note_add(n, "access", "access", tk_loc_span(f->module, op->loc),
                                 TK_NOTE_DONE, "%s", tk_buf_text(b));
    tk_note_number_add(n, r, "bytes", (double)x.elems * (double)tk_dtype_size(x.map.dtype));
    return r;
}

tk_note_rec *tk_view_note(tk_notes *n, const tk_axis *x, const tk_op *op, const tk_view_plan *a) {
    const tk_func *f = x->func;
    const char *name = f->value.at[op->opnd[0]].name;
    const tk_type *t = tk_view_type(f, op);
    tk_buf b;
    tk_buf_init(&b, n->arena);
    tk_buf_fmt(&b, "'%s' is %s ", name ? name : "?", done_to(f, op));
    if (op->at.how == TK_HOW_TENSOR) {
        return boxes_note(n, f, op, &b);
    }
    const bool pieces =
        op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS && tk_fetch_in_pieces(x, op);
    const unsigned at_once = pieces ? tk_fetch_chunk(f, op) : a->vec;
    if (pieces) {
        tk_buf_fmt(&b, "%u elements at once, wherever in 16 bytes they begin", at_once);
    } else if (op->at.staged) {
        tk_buf_fmt(&b, "row by row through shared memory, %u elements at once", a->vec);
    } else if (a->vec > 1) {
        tk_buf_fmt(&b, "%u elements at once", a->vec);
    } else {
        tk_buf_str(&b, t->rank ? "element by element" : "as one element");
    }
    const bool done = pieces || is_wide(f, op, a);
    if (a->narrow && t->rank && !pieces) {
        tk_buf_fmt(&b, ", as %s",
                   done && a->vec > 1 && is_beside_stored(f, op, a)
                       ? "they are 16 bytes of what is stored in this shape"
                       : a->narrow);
    }
    say_tests(&b, op, a);
    tk_note_rec *r = tk_note_add(n, "access", "access", tk_loc_span(f->module, op->loc),
                                 done ? TK_NOTE_DONE : TK_NOTE_MISSED, "%s", tk_buf_text(&b));
    tk_note_number_add(n, r, "bytes", (double)(at_once * tk_dtype_size(t->dtype)));
    return r;
}
