// SPDX-License-Identifier: Apache-2.0
// The pass pad: ops that move elements about. Where moving the padded elements moves the real ones
// to their places the op stays; elsewhere elements are fetched by gather. See pad.h.
#include "lower/pad.h"

static const tk_type *type_of(const tk_pad *p, tk_vid v) { return tk_value_type(p->f, v); }

// x gathered along the axis by a tile of one axis.
static tk_vid fetch(tk_pad *p, tk_vid x, int axis, tk_vid line) {
    const tk_type *t = type_of(p, x);
    int64_t dim[TK_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        dim[i] = i == axis ? type_of(p, line)->dim[0] : t->dim[i];
    }
    const tk_type *to = tk_type_tile(p->c->scratch, t->dtype, t->rank, dim);
    const tk_vid index = tk_pad_along(p, line, to, axis);
    const tk_vid v = tk_pad_op(p, TK_OP_GATHER, to, 2, (tk_vid[]){x, index});
    tk_value_def(p->f, v)->at.axis = axis;
    return v;
}

static void replace_by(tk_pad *p, tk_op *op, tk_vid with) {
    tk_pad_replace(p, op->res[0], with);
    tk_op_unlink(op);
}

// ---- reshape ------------------------------------------------------------------------------------

// A shape without its extents of 1.
typedef struct shape {
    unsigned n;
    int64_t dim[TK_MAX_RANK];
} shape;

static shape shape_of(const tk_type *t) {
    shape s = {0};
    for (unsigned i = 0; i < t->rank; i++) {
        if (t->dim[i] != 1) {
            s.dim[s.n++] = t->dim[i];
        }
    }
    return s;
}

// Axes at .. at + n - 1 of a shape.
static shape part_of(const shape *s, unsigned at, unsigned n) {
    shape r = {.n = n};
    for (unsigned i = 0; i < n; i++) {
        r.dim[i] = s->dim[at + i];
    }
    return r;
}

static int64_t padded_elems(const shape *s) {
    int64_t n = 1;
    for (unsigned i = 0; i < s->n; i++) {
        n *= tk_pad_extent(s->dim[i]);
    }
    return n;
}

// Whether padding only the outermost axis pads it all: then padded elements, too, are in row-major
// order.
static bool is_linear(const shape *s) {
    for (unsigned i = 1; i < s->n; i++) {
        if (tk_pad_extent(s->dim[i]) != s->dim[i]) {
            return false;
        }
    }
    return true;
}

// The fewest first axes of a and of b, from axes *i and *j on, that have as many elements.
static void next_group(const shape *a, unsigned *i, const shape *b, unsigned *j) {
    int64_t na = a->dim[(*i)++], nb = b->dim[(*j)++];
    while (na != nb) {
        if (na < nb) {
            na *= a->dim[(*i)++];
        } else {
            nb *= b->dim[(*j)++];
        }
    }
}

// Shapes of as many elements fall into groups of axes that have as many elements each. Between the
// linear groups in front and those at the end may be others.
typedef struct regroup {
    shape from, to; // the axes in between; none: the padded tile may be reshaped
    int64_t outer, inner;
} regroup;

static regroup regroup_of(const shape *a, const shape *b) {
    unsigned i = 0, j = 0, first[2] = {0, 0}, last[2] = {0, 0};
    bool any = false;
    while (i < a->n) {
        const unsigned i0 = i, j0 = j;
        next_group(a, &i, b, &j);
        const shape x = part_of(a, i0, i - i0), y = part_of(b, j0, j - j0);
        if (is_linear(&x) && is_linear(&y)) {
            continue;
        }
        if (!any) {
            first[0] = i0;
            first[1] = j0;
        }
        any = true;
        last[0] = i;
        last[1] = j;
    }
    const shape front = part_of(a, 0, first[0]), end = part_of(a, last[0], a->n - last[0]);
    return (regroup){.from = part_of(a, first[0], last[0] - first[0]),
                     .to = part_of(b, first[1], last[1] - first[1]),
                     .outer = padded_elems(&front),
                     .inner = padded_elems(&end)};
}

static void reshape(tk_pad *p, tk_op *op) {
    const shape a = shape_of(tk_pad_real(p, op->opnd[0]));
    const shape b = shape_of(tk_pad_real(p, op->res[0]));
    const regroup g = regroup_of(&a, &b);
    if (g.from.n == 0) {
        return;
    }
    const tk_vid to = tk_pad_iota(p, padded_elems(&g.to));
    const tk_vid real = tk_pad_to_real(p, to, g.to.n, g.to.dim);
    const tk_vid from = tk_pad_from_real(p, real, g.from.n, g.from.dim);
    const int64_t dim[3] = {g.outer, padded_elems(&g.from), g.inner};
    const bool flat = g.outer == 1 && g.inner == 1;
    const tk_vid x = tk_pad_reshape(p, op->opnd[0], flat ? 1 : 3, flat ? &dim[1] : dim);
    const tk_vid y = fetch(p, x, flat ? 0 : 1, from);
    const tk_type *t = type_of(p, op->res[0]);
    replace_by(p, op, tk_pad_reshape(p, y, t->rank, t->dim));
}

// ---- Along one axis -----------------------------------------------------------------------------

static void concat(tk_pad *p, tk_op *op) {
    const int axis = op->at.axis;
    const tk_vid x = op->opnd[0], y = op->opnd[1];
    const int64_t first = tk_pad_real(p, x)->dim[axis];
    const int64_t n = type_of(p, x)->dim[axis], all = type_of(p, op->res[0])->dim[axis];
    if (first == n && n + type_of(p, y)->dim[axis] == all) {
        return;
    }
    const tk_vid at = tk_pad_iota(p, all);
    const tk_vid from_x = n == all ? x : fetch(p, x, axis, at);
    const tk_vid from_y = fetch(p, y, axis, tk_pad_op2c(p, TK_OP_SUB, at, first));
    const tk_vid is_x = tk_pad_compare(p, TK_OP_LT, at, first);
    const tk_vid cond = tk_pad_along(p, is_x, type_of(p, op->res[0]), axis);
    replace_by(p, op, tk_pad_select(p, cond, from_x, from_y));
}

static void flip(tk_pad *p, tk_op *op) {
    const int axis = op->at.axis;
    const int64_t n = tk_pad_real(p, op->opnd[0])->dim[axis];
    const int64_t all = type_of(p, op->opnd[0])->dim[axis];
    if (n != all) {
        const tk_vid from = tk_pad_op2(p, TK_OP_SUB,
                                       tk_pad_const(p, tk_type_tile(p->c->scratch, TK_I32, 1, &all),
                                                    tk_const_i64(TK_I32, n - 1)),
                                       tk_pad_iota(p, all));
        replace_by(p, op, fetch(p, op->opnd[0], axis, from));
    }
}

static void slice(tk_pad *p, tk_op *op) {
    const int axis = op->at.axis;
    const int64_t all = type_of(p, op->opnd[0])->dim[axis], n = type_of(p, op->res[0])->dim[axis];
    if (op->at.start + n > all) {
        const tk_vid from = tk_pad_op2c(p, TK_OP_ADD, tk_pad_iota(p, n), op->at.start);
        replace_by(p, op, fetch(p, op->opnd[0], axis, from));
    }
}

// What lies between the real and the padded extent is outside.
static void gather(tk_pad *p, tk_op *op) {
    const int64_t n = tk_pad_real(p, op->opnd[0])->dim[op->at.axis];
    const tk_type *index = type_of(p, op->opnd[1]);
    if (!tk_pad_is(p, op->opnd[0], tk_pad_axes(op)) ||
        !tk_num_holds_int(index->dtype, false, (uint64_t)n)) {
        return;
    }
    const tk_vid inside = tk_pad_compare(p, TK_OP_LT, op->opnd[1], n);
    p->before = op->next;
    const tk_vid zero =
        tk_pad_const(p, type_of(p, op->res[0]), (tk_const){type_of(p, op->res[0])->dtype, 0});
    tk_pad_replace(p, op->res[0], tk_pad_select(p, inside, op->res[0], zero));
}

void tk_pad_move(tk_pad *p, tk_op *op) {
    switch ((int)op->code) { // those that pass_pad.c sends here
    case TK_OP_RESHAPE:
        reshape(p, op);
        break;
    case TK_OP_CONCAT:
        concat(p, op);
        break;
    case TK_OP_FLIP:
        flip(p, op);
        break;
    case TK_OP_SLICE:
        slice(p, op);
        break;
    case TK_OP_GATHER:
        gather(p, op);
        break;
    }
}
