// SPDX-License-Identifier: Apache-2.0
// Making the ops of the pass pad: arithmetic on coordinates, masks of what is real, and constants
// in the padding. See pad.h.
#include "lower/pad.h"

// ---- Types --------------------------------------------------------------------------------------

int64_t tk_pad_extent(int64_t n) {
    int64_t p = 1;
    while (p < n) {
        p *= 2;
    }
    return p;
}

const tk_type *tk_pad_type(tk_arena *a, const tk_type *t) {
    int64_t dim[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < t->rank; i++) {
        dim[i] = tk_pad_extent(t->dim[i]);
    }
    return tk_type_tile(a, t->dtype, t->rank, dim);
}

const tk_type *tk_pad_real(const tk_pad *p, tk_vid v) {
    return v < p->real.n && p->real.at[v] ? p->real.at[v] : tk_value_type(p->f, v);
}

bool tk_pad_is(const tk_pad *p, tk_vid v, unsigned axes) {
    const tk_type *real = tk_pad_real(p, v), *t = tk_value_type(p->f, v);
    for (unsigned i = 0; i < t->rank; i++) {
        if ((axes >> i & 1) && real->dim[i] != t->dim[i]) {
            return true;
        }
    }
    return false;
}

unsigned tk_pad_axes(const tk_op *op) {
    return op->at.axis == TK_AXIS_ALL ? (unsigned)TK_PAD_ALL : 1U << op->at.axis;
}

void tk_pad_replace(tk_pad *p, tk_vid old, tk_vid with) {
    const tk_type *real = tk_pad_real(p, old);
    tk_vmap_set(&p->map, old, with);
    while (p->real.n <= with) {
        tk_vec_push(p->c->scratch, &p->real, NULL);
    }
    p->real.at[with] = real;
}

// ---- Ops ----------------------------------------------------------------------------------------

tk_vid tk_pad_op(tk_pad *p, tk_opcode code, const tk_type *t, uint32_t n, const tk_vid *opnd) {
    tk_op *op = tk_op_new(p->f, code, p->loc, n, opnd, 1, &t, 0);
    tk_op_insert_before(p->before, op);
    return op->res[0];
}

tk_vid tk_pad_const(tk_pad *p, const tk_type *shape, tk_const c) {
    tk_vid v =
        tk_pad_op(p, TK_OP_CONST, tk_type_with_dtype(p->c->scratch, shape, c.dtype), 0, NULL);
    tk_value_def(p->f, v)->at.value = c;
    return v;
}

tk_vid tk_pad_op2(tk_pad *p, tk_opcode code, tk_vid x, tk_vid y) {
    return tk_pad_op(p, code, tk_value_type(p->f, x), 2, (tk_vid[]){x, y});
}

static tk_vid number_like(tk_pad *p, tk_vid x, int64_t c) {
    const tk_type *t = tk_value_type(p->f, x);
    return tk_pad_const(p, t, tk_const_i64(t->dtype, c));
}

tk_vid tk_pad_op2c(tk_pad *p, tk_opcode code, tk_vid x, int64_t c) {
    return tk_pad_op2(p, code, x, number_like(p, x, c));
}

tk_vid tk_pad_compare(tk_pad *p, tk_opcode code, tk_vid x, int64_t c) {
    const tk_type *t = tk_type_with_dtype(p->c->scratch, tk_value_type(p->f, x), TK_BOOL);
    return tk_pad_op(p, code, t, 2, (tk_vid[]){x, number_like(p, x, c)});
}

tk_vid tk_pad_select(tk_pad *p, tk_vid cond, tk_vid x, tk_vid y) {
    return tk_pad_op(p, TK_OP_SELECT, tk_value_type(p->f, x), 3, (tk_vid[]){cond, x, y});
}

tk_vid tk_pad_iota(tk_pad *p, int64_t n) {
    return tk_pad_op(p, TK_OP_IOTA, tk_type_tile(p->c->scratch, TK_I32, 1, &n), 0, NULL);
}

tk_vid tk_pad_reshape(tk_pad *p, tk_vid x, unsigned rank, const int64_t *dim) {
    const tk_type *from = tk_value_type(p->f, x);
    const tk_type *to = tk_type_tile(p->c->scratch, from->dtype, rank, dim);
    return tk_type_eq(from, to) ? x : tk_pad_op(p, TK_OP_RESHAPE, to, 1, &x);
}

tk_vid tk_pad_along(tk_pad *p, tk_vid line, const tk_type *shape, int axis) {
    const tk_type *t = tk_value_type(p->f, line);
    int64_t dim[TK_MAX_RANK];
    for (int i = 0; i < shape->rank; i++) {
        dim[i] = i == axis ? t->dim[0] : 1;
    }
    tk_vid v = axis == shape->rank - 1 ? line : tk_pad_reshape(p, line, shape->rank, dim);
    const tk_type *to = tk_type_with_dtype(p->c->scratch, shape, t->dtype);
    return tk_type_eq(tk_value_type(p->f, v), to) ? v : tk_pad_op(p, TK_OP_BROADCAST, to, 1, &v);
}

tk_vid tk_pad_valid(tk_pad *p, const tk_type *real, unsigned axes) {
    const tk_type *t = tk_pad_type(p->c->scratch, real);
    tk_vid all = 0;
    for (int i = 0; i < real->rank; i++) {
        if ((axes >> i & 1) && real->dim[i] != t->dim[i]) {
            tk_vid line = tk_pad_compare(p, TK_OP_LT, tk_pad_iota(p, t->dim[i]), real->dim[i]);
            tk_vid one = tk_pad_along(p, line, t, i);
            all = all ? tk_pad_op2(p, TK_OP_AND, all, one) : one;
        }
    }
    return all;
}

// A load has put there what it gives outside.
static bool holds(const tk_pad *p, tk_vid v, tk_const c) {
    const tk_op *d = tk_value_def(p->f, v);
    if (!d || d->code != TK_OP_LOAD) {
        return false;
    }
    const tk_const *other = d->at.other ? tk_value_const(p->f, d->opnd[d->nopnd - 1]) : NULL;
    return d->at.other ? other && tk_const_same(*other, c) : c.bits == 0;
}

tk_vid tk_pad_fill(tk_pad *p, tk_vid v, unsigned axes, tk_const c) {
    if (holds(p, v, c)) {
        return v;
    }
    const tk_vid valid = tk_pad_valid(p, tk_pad_real(p, v), axes);
    return valid ? tk_pad_select(p, valid, v, tk_pad_const(p, tk_value_type(p->f, v), c)) : v;
}

// ---- Numbers of elements ------------------------------------------------------------------------

static unsigned log2_of(int64_t power) {
    unsigned k = 0;
    while (power >> k > 1) {
        k++;
    }
    return k;
}

static tk_vid plus(tk_pad *p, tk_vid sum, tk_vid x) {
    return sum ? tk_pad_op2(p, TK_OP_ADD, sum, x) : x;
}

tk_vid tk_pad_to_real(tk_pad *p, tk_vid number, unsigned rank, const int64_t *real) {
    unsigned shift = 0;
    int64_t step = 1;
    tk_vid sum = 0;
    for (unsigned i = rank; i-- > 0;) {
        const unsigned bits = log2_of(tk_pad_extent(real[i]));
        tk_vid c = shift ? tk_pad_op2c(p, TK_OP_SHR, number, shift) : number;
        c = i ? tk_pad_op2c(p, TK_OP_AND, c, ((int64_t)1 << bits) - 1) : c;
        sum = plus(p, sum, step > 1 ? tk_pad_op2c(p, TK_OP_MUL, c, step) : c);
        shift += bits;
        step *= real[i];
    }
    return sum;
}

tk_vid tk_pad_from_real(tk_pad *p, tk_vid number, unsigned rank, const int64_t *real) {
    unsigned shift = 0;
    tk_vid sum = 0, rest = number;
    for (unsigned i = rank; i-- > 0;) {
        const tk_vid c = i ? tk_pad_op2c(p, TK_OP_REM, rest, real[i]) : rest;
        rest = i ? tk_pad_op2c(p, TK_OP_DIV, rest, real[i]) : rest;
        sum = plus(p, sum, shift ? tk_pad_op2c(p, TK_OP_SHL, c, shift) : c);
        shift += log2_of(tk_pad_extent(real[i]));
    }
    return sum;
}
