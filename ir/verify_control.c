// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for control: a region's arguments and what it yields, against its owner.
#include "ir/verify_internal.h"

static const tk_type *type_at(const tk_verifier *v, tk_vid id) { return v->f->value.at[id].type; }

static bool is_scalar(const tk_type *t, tk_dtype d) {
    return t->kind == TK_T_VALUE && t->rank == 0 && t->dtype == d;
}

static bool is_return(const tk_op *op) { return op->code == TK_OP_RETURN; }

// The values of a terminator against a list of types.
static bool ends_with(tk_verifier *v, const tk_op *end, uint32_t n, const tk_type *const *type) {
    if (!tk_vneed(v, end->nopnd == n, "%u values where %u are wanted", end->nopnd, n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!tk_vsame(v, type_at(v, end->opnd[i]), type[i], "a value given back")) {
            return false;
        }
    }
    return true;
}

// A region of an op: its end is a yield of these types.
static bool yields(tk_verifier *v, const tk_region *r, uint32_t n, const tk_type *const *type) {
    return tk_vneed(v, !is_return(r->last), "return inside an op") &&
           ends_with(v, r->last, n, type);
}

static bool arguments(tk_verifier *v, const tk_region *r, uint32_t skip, uint32_t n,
                      const tk_type *const *type) {
    if (!tk_vneed(v, r->args.n == skip + n, "a region with %u arguments", r->args.n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!tk_vsame(v, type_at(v, r->args.at[skip + i]), type[i], "an argument of the region")) {
            return false;
        }
    }
    return true;
}

static const tk_type **result_types(tk_verifier *v) {
    const tk_type **t = TK_NEW_ARRAY(v->a, const tk_type *, v->op->nres);
    for (uint32_t i = 0; i < v->op->nres; i++) {
        t[i] = tk_vres(v, i);
    }
    return t;
}

static bool branch(tk_verifier *v) {
    const tk_type **t = result_types(v);
    if (!tk_vneed(v, is_scalar(tk_vopnd(v, 0), TK_BOOL), "the condition is a scalar bool")) {
        return false;
    }
    for (uint32_t i = 0; i < v->op->nreg; i++) {
        if (!arguments(v, v->op->reg[i], 0, 0, NULL) || !yields(v, v->op->reg[i], v->op->nres, t)) {
            return false;
        }
    }
    return true;
}

// The initial values, from operand `skip` on, against the results.
static bool initial(tk_verifier *v, uint32_t skip, const tk_type *const *t) {
    if (!tk_vneed(v, v->op->nopnd == skip + v->op->nres, "%u operands for %u results", v->op->nopnd,
                  v->op->nres)) {
        return false;
    }
    for (uint32_t i = 0; i < v->op->nres; i++) {
        if (!tk_vsame(v, tk_vopnd(v, skip + i), t[i], "an initial value")) {
            return false;
        }
    }
    return true;
}

static bool loop(tk_verifier *v) {
    const tk_op *op = v->op;
    const tk_type **t = result_types(v);
    const tk_region *r = op->reg[0];
    if (!initial(v, 3, t) || !arguments(v, r, 1, op->nres, t)) {
        return false;
    }
    const tk_type *index = type_at(v, r->args.at[0]);
    bool fits =
        index->rank == 0 && tk_dtype_is_int(index->dtype) && tk_dtype_bits(index->dtype) >= 32;
    if (!tk_vneed(v, fits, "the index is an integer of 32 or 64 bits")) {
        return false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (!tk_vsame(v, tk_vopnd(v, i), index, "a bound or step")) {
            return false;
        }
    }
    return tk_vneed(v, op->at.pipeline >= 0 && op->at.unroll >= 0, "pipeline or unroll below 0") &&
           tk_vneed(v, !op->at.reverse || op->nres == 0, "a loop that carries runs forwards") &&
           yields(v, r, op->nres, t);
}

static bool loop_while(tk_verifier *v) {
    const tk_op *op = v->op;
    const tk_type **t = result_types(v);
    if (!initial(v, 0, t) || !arguments(v, op->reg[0], 0, op->nres, t) ||
        !arguments(v, op->reg[1], 0, op->nres, t)) {
        return false;
    }
    const tk_type *cond = tk_type_scalar(v->a, TK_BOOL);
    return tk_vneed(v, op->at.pipeline >= 0 && op->at.unroll >= 0, "pipeline or unroll below 0") &&
           yields(v, op->reg[0], 1, &cond) && yields(v, op->reg[1], op->nres, t);
}

bool tk_verify_combine(tk_verifier *v) {
    uint32_t m = v->op->nres;
    const tk_type **t = TK_NEW_ARRAY(v->a, const tk_type *, 2 * (size_t)m);
    for (uint32_t i = 0; i < m; i++) {
        t[i] = t[m + i] = tk_type_scalar(v->a, tk_vopnd(v, i)->dtype);
    }
    return arguments(v, v->op->reg[0], 0, 2 * m, t) && yields(v, v->op->reg[0], m, t);
}

// yield and return: what ends a grid or a body is checked here, the rest by the owner.
static bool end(tk_verifier *v) {
    const tk_op *op = v->op;
    const tk_region *r = op->in;
    if (r->owner) {
        return true;
    }
    if (r == v->f->body) {
        return tk_vneed(v, is_return(op), "a body ends in return") &&
               ends_with(v, op, v->f->results.n, v->f->results.at);
    }
    if (!tk_vneed(v, !is_return(op), "a grid ends in yield") ||
        !tk_vneed(v, op->nopnd >= 1 && op->nopnd <= TK_MAX_GRID, "a grid of %u axes", op->nopnd)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (!tk_vneed(v, is_scalar(tk_vopnd(v, i), TK_I32), "axis %u of the grid is no i32", i)) {
            return false;
        }
    }
    return true;
}

bool tk_verify_control(tk_verifier *v) {
    switch ((int)v->op->code) { // those that verify_op.c sends here
    case TK_OP_IF:
        return branch(v);
    case TK_OP_FOR:
        return loop(v);
    case TK_OP_WHILE:
        return loop_while(v);
    case TK_OP_YIELD:
    case TK_OP_RETURN:
        return end(v);
    }
    return tk_vbad(v, "unknown");
}
