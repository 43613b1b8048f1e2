// SPDX-License-Identifier: Apache-2.0
// Whole numbers as sums. See sum.h.
#include "lower/sum.h"

#include "ir/pass_util.h"

enum { DEEP = 24 };
static const int64_t FAR = INT64_C(1) << 31;

static tk_sum unknown(void) { return (tk_sum){.axis = -1, .extent = 1}; }

static tk_sum number(tk_dtype t, int64_t x) {
    return x < FAR && x >= -FAR
               ? (tk_sum){.known = true, .dtype = t, .add = x, .axis = -1, .extent = 1}
               : unknown();
}

bool tk_sum_is_number(const tk_sum *s) { return s->known && s->n == 0 && s->axis < 0; }

// ---- Sums of sums -------------------------------------------------------------------------------

static void add_term(tk_sum *s, tk_vid v, int sign) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->term[i] == v && s->sign[i] == -sign) {
            s->n--;
            s->term[i] = s->term[s->n];
            s->sign[i] = s->sign[s->n];
            return;
        }
    }
    s->known = s->known && s->n < TK_SUM_TERMS;
    if (s->known) {
        s->sign[s->n] = (int8_t)sign;
        s->term[s->n++] = v;
    }
}

static void add_axis(tk_sum *s, const tk_sum *y, int sign) {
    if (y->axis < 0) {
        return;
    }
    if (s->axis < 0) {
        s->axis = y->axis;
        s->count = sign * y->count;
        s->extent = y->extent;
    } else if (s->axis == y->axis && s->count == -sign * y->count) {
        s->axis = -1;
        s->count = 0;
        s->extent = 1;
    } else {
        s->known = false;
    }
}

static tk_sum plus(tk_sum x, const tk_sum *y, int sign) {
    if (!x.known || !y->known || x.dtype != y->dtype) {
        return unknown();
    }
    const tk_sum n = number(x.dtype, x.add + sign * y->add);
    x.known = n.known;
    x.add = n.add;
    add_axis(&x, y, sign);
    for (uint32_t i = 0; i < y->n; i++) {
        add_term(&x, y->term[i], sign * y->sign[i]);
    }
    return x.known ? x : unknown();
}

tk_sum tk_sum_less(tk_sum x, tk_sum y) { return plus(x, &y, -1); }

// ---- Axes ---------------------------------------------------------------------------------------

// Axes of one element go and come; the others stay in their order.
static int reshaped(const tk_type *from, const tk_type *to, int axis) {
    int found = -1;
    uint32_t i = 0;
    for (uint32_t k = 0; k < to->rank; k++) {
        if (to->dim[k] == 1) {
            continue;
        }
        while (i < from->rank && from->dim[i] == 1) {
            i++;
        }
        if (i == from->rank || from->dim[i] != to->dim[k]) {
            return -1;
        }
        found = (int)i == axis ? (int)k : found;
        i++;
    }
    return found;
}

int tk_axis_in_result(const tk_func *f, const tk_op *op, int axis) {
    const tk_type *from = tk_value_type(f, op->opnd[0]), *to = tk_value_type(f, op->res[0]);
    if (op->code == TK_OP_BROADCAST) {
        return axis + to->rank - from->rank;
    }
    if (op->code == TK_OP_PERMUTE) {
        for (int i = 0; i < to->rank; i++) {
            if (op->at.perm[i] == axis) {
                return i;
            }
        }
    }
    return op->code == TK_OP_RESHAPE ? reshaped(from, to, axis) : -1;
}

// ---- Values -------------------------------------------------------------------------------------

static tk_sum follow(const tk_func *f, tk_vid v, unsigned depth);

static tk_sum counting(const tk_func *f, const tk_op *op) {
    tk_sum s = number(TK_I32, 0);
    const int64_t n = tk_value_type(f, op->res[0])->dim[0];
    if (n > 1) {
        s.axis = 0;
        s.count = 1;
        s.extent = n;
    }
    return s;
}

static tk_sum shaped(const tk_func *f, const tk_op *op, unsigned depth) {
    tk_sum s = follow(f, op->opnd[0], depth);
    if (s.known && s.axis >= 0) {
        s.axis = tk_axis_in_result(f, op, s.axis);
        s.known = s.axis >= 0;
    }
    return s.known ? s : unknown();
}

static tk_sum made(const tk_func *f, const tk_op *op, unsigned depth) {
    if (op->code == TK_OP_ADD || op->code == TK_OP_SUB) {
        const tk_sum y = follow(f, op->opnd[1], depth);
        return plus(follow(f, op->opnd[0], depth), &y, op->code == TK_OP_ADD ? 1 : -1);
    }
    if (op->code == TK_OP_IOTA) {
        return counting(f, op);
    }
    const bool shape =
        op->code == TK_OP_BROADCAST || op->code == TK_OP_RESHAPE || op->code == TK_OP_PERMUTE;
    return shape ? shaped(f, op, depth) : unknown();
}

static tk_sum follow(const tk_func *f, tk_vid v, unsigned depth) {
    const tk_type *t = tk_value_type(f, v);
    const tk_const *c = tk_value_const(f, v);
    const tk_op *op = tk_value_def(f, v);
    if (t->kind != TK_T_VALUE || (t->dtype != TK_I32 && t->dtype != TK_I64) || depth > DEEP) {
        return unknown();
    }
    if (c) {
        return number(t->dtype, tk_const_as_i64(*c));
    }
    tk_sum s = op ? made(f, op, depth + 1) : unknown();
    if (!s.known && t->rank == 0) {
        s = number(t->dtype, 0);
        add_term(&s, v, 1);
    }
    return s;
}

tk_sum tk_sum_of(const tk_func *f, tk_vid v) { return follow(f, v, 0); }
