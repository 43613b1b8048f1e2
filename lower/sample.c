// SPDX-License-Identifier: Apache-2.0
// The integers of one program. See sample.h.
#include "lower/sample.h"

enum { STEPS = 4096 };

int64_t tk_sample_size(const tk_sample *s, uint32_t param, uint32_t axis) {
    const tk_type *t = tk_value_type(s->f, s->f->params.at[param]);
    const int64_t known = s->size ? s->size[param * TK_MAX_TENSOR_RANK + axis] : -1;
    return t->dim[axis] >= 0 ? t->dim[axis] : known;
}

static bool find(tk_sample *s, tk_vid v, uint32_t element, tk_const *out);

// ---- Elements -----------------------------------------------------------------------------------

static void coords_of(const tk_type *t, uint32_t element, uint32_t *c) {
    for (unsigned i = t->rank; i-- > 0;) {
        c[i] = element % (uint32_t)t->dim[i];
        element /= (uint32_t)t->dim[i];
    }
}

// Of the operand of a broadcast.
static uint32_t stretched(const tk_type *to, const tk_type *from, uint32_t element) {
    uint32_t c[TK_MAX_RANK] = {0}, e = 0;
    coords_of(to, element, c);
    for (unsigned i = 0; i < from->rank; i++) {
        const uint32_t at = from->dim[i] > 1 ? c[i + to->rank - from->rank] : 0;
        e = e * (uint32_t)from->dim[i] + at;
    }
    return e;
}

static uint32_t permuted(const tk_op *op, const tk_type *to, const tk_type *from,
                         uint32_t element) {
    uint32_t c[TK_MAX_RANK] = {0}, d[TK_MAX_RANK] = {0}, e = 0;
    coords_of(to, element, c);
    for (unsigned i = 0; i < to->rank; i++) {
        d[op->at.perm[i]] = c[i];
    }
    for (unsigned i = 0; i < from->rank; i++) {
        e = e * (uint32_t)from->dim[i] + d[i];
    }
    return e;
}

// ---- Ops ----------------------------------------------------------------------------------------

static bool element_wise(tk_sample *s, const tk_op *op, uint32_t element, tk_const *out) {
    const tk_opinfo *info = tk_op_info(op->code);
    tk_const x[3];
    if (!info->exact || op->nopnd > 3) {
        return false;
    }
    if (op->code == TK_OP_SELECT) {
        return find(s, op->opnd[0], element, &x[0]) &&
               find(s, op->opnd[x[0].bits ? 1 : 2], element, out);
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (!find(s, op->opnd[i], element, &x[i])) {
            return false;
        }
    }
    *out = tk_num_eval(info->num, x[op->nopnd - 1].dtype, x);
    return true;
}

static bool number(tk_const *out, tk_dtype t, int64_t x) {
    *out = tk_const_i64(t, x);
    return x >= 0;
}

static bool of_op(tk_sample *s, const tk_op *op, tk_vid v, uint32_t element, tk_const *out) {
    const tk_type *t = tk_value_type(s->f, v);
    if (tk_op_info(op->code)->elementwise) {
        return element_wise(s, op, element, out);
    }
    const tk_type *from = op->nopnd ? tk_value_type(s->f, op->opnd[0]) : NULL;
    switch ((int)op->code) { // all others: not known
    case TK_OP_CONST:
        *out = op->at.value;
        return true;
    case TK_OP_IOTA:
        return number(out, t->dtype, element);
    case TK_OP_DIM:
        return number(out, t->dtype,
                      tk_sample_size(s, s->f->value.at[op->opnd[0]].index, (uint32_t)op->at.axis));
    case TK_OP_PROGRAM_ID:
        return number(out, t->dtype, s->program[op->at.axis]);
    case TK_OP_NUM_PROGRAMS:
        return s->f->grid && find(s, s->f->grid->last->opnd[op->at.axis], 0, out);
    case TK_OP_CAST:
        if (!find(s, op->opnd[0], element, out)) {
            return false;
        }
        *out = tk_cast(*out, t->dtype);
        return true;
    case TK_OP_CONVERT:
    case TK_OP_RESHAPE:
        return find(s, op->opnd[0], element, out);
    case TK_OP_BROADCAST:
        return find(s, op->opnd[0], stretched(t, from, element), out);
    case TK_OP_PERMUTE:
        return find(s, op->opnd[0], permuted(op, t, from, element), out);
    }
    return false;
}

static bool find_int(tk_sample *s, tk_vid v, int64_t *out) {
    tk_const x;
    const bool known = find(s, v, 0, &x);
    *out = known ? tk_const_as_i64(x) : 0;
    return known;
}

static bool trips_of(tk_sample *s, const tk_op *loop, int64_t *out) {
    const int64_t far = INT32_MAX; // of both: what is between them is a number
    int64_t from, to, step;
    if (loop->code != TK_OP_FOR || !find_int(s, loop->opnd[0], &from) ||
        !find_int(s, loop->opnd[1], &to) || !find_int(s, loop->opnd[2], &step)) {
        return false;
    }
    if (from > far || from < -far || to > far || to < -far || step < -far) {
        return false;
    }
    const int64_t way = step > 0 ? to - from : from - to, by = step > 0 ? step : -step;
    *out = step == 0 || way <= 0 ? 0 : (way - 1) / by + 1;
    return true;
}

// Which iteration of the loop it is.
static bool iteration_of(tk_sample *s, const tk_op *loop, int64_t *out) {
    int64_t trips;
    *out = 0;
    for (uint32_t i = 0; i < s->nin; i++) {
        if (s->in[i].loop == loop) {
            *out = s->in[i].number;
            return true;
        }
    }
    if (s->last) {
        const bool some = trips_of(s, loop, &trips) && trips > 0;
        *out = some ? trips - 1 : 0;
        return some;
    }
    return true;
}

// An argument of a loop's body: its index, or what it carries at first.
static bool of_region(tk_sample *s, const tk_irvalue *x, tk_const *out) {
    const tk_op *loop = x->region->owner;
    int64_t from, step, at;
    if (!loop || loop->code != TK_OP_FOR || x->type->rank > 0 || !iteration_of(s, loop, &at)) {
        return false;
    }
    if (x->index) {
        return at == 0 && !s->last && find(s, loop->opnd[2 + x->index], 0, out);
    }
    const int64_t less = loop == s->ahead ? s->by : 0;
    if (at == 0 && less == 0) {
        return find(s, loop->opnd[0], 0, out);
    }
    if (!find_int(s, loop->opnd[0], &from) || (at && !find_int(s, loop->opnd[2], &step))) {
        return false;
    }
    *out = tk_const_i64(x->type->dtype, from + (at ? at * step : 0) - less);
    return true;
}

static bool of_param(const tk_sample *s, const tk_irvalue *x, tk_const *out) {
    const tk_const *given = s->scalar ? s->scalar[x->index] : NULL;
    if (given) {
        *out = *given;
    }
    return given;
}

static bool find(tk_sample *s, tk_vid v, uint32_t element, tk_const *out) {
    const tk_irvalue *x = &s->f->value.at[v];
    if (x->type->kind != TK_T_VALUE || tk_dtype_is_float(x->type->dtype) || s->steps == 0) {
        return false;
    }
    s->steps--;
    if (x->def) {
        return of_op(s, x->def, v, element, out);
    }
    return x->region && x->region->owner ? of_region(s, x, out) : of_param(s, x, out);
}

bool tk_sample_value(tk_sample *s, tk_vid v, uint32_t element, tk_const *out) {
    s->steps = STEPS;
    return find(s, v, element, out);
}

bool tk_sample_int(tk_sample *s, tk_vid v, uint32_t element, int64_t *out) {
    tk_const x;
    if (!tk_sample_value(s, v, element, &x)) {
        return false;
    }
    *out = tk_const_as_i64(x);
    return true;
}

// ---- Counts -------------------------------------------------------------------------------------

int64_t tk_sample_trips(tk_sample *s, const tk_op *loop) {
    int64_t n;
    s->steps = STEPS;
    return trips_of(s, loop, &n) ? n : -1;
}

int64_t tk_sample_programs_along(tk_sample *s, uint32_t axis) {
    int64_t n;
    return tk_sample_int(s, s->f->grid->last->opnd[axis], 0, &n) && n >= 0 ? n : -1;
}

int64_t tk_sample_programs(tk_sample *s) {
    int64_t all = 1;
    for (uint32_t i = 0; s->f->grid && i < s->f->grid->last->nopnd; i++) {
        const int64_t n = tk_sample_programs_along(s, i);
        if (n < 0 || (n > 0 && all > INT64_MAX / n)) {
            return -1;
        }
        all *= n;
    }
    return all;
}
