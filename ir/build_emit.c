// SPDX-License-Identifier: Apache-2.0
// The builder's ops: making them in place, stretching, masks, slots and carried values.
#include "ir/build_internal.h"

// ---- Types
const tk_type *tk_build_typeof(const tk_bfn *f, tk_vid v) { return tk_value_type(f->fn, v); }

const tk_type *tk_build_lift(const tk_bfn *f, const tk_type *type, bool varying) {
    if (!varying || !f->inst->lifted || f->inst->lift_rank == 0 || type->kind != TK_T_VALUE) {
        return type;
    }
    TK_CHECK(f->arena, type->rank == 0);
    return tk_type_with_shape(f->arena, type, f->inst->lift_rank, f->inst->lift);
}

const tk_type *tk_build_shaped(tk_bfn *f, const tk_type *like, tk_dtype dtype) {
    return like->dtype == dtype ? like : tk_type_with_dtype(f->arena, like, dtype);
}

static bool same_shape(const tk_type *a, const tk_type *b) {
    if (a->rank != b->rank) {
        return false;
    }
    for (unsigned i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i]) {
            return false;
        }
    }
    return true;
}

// ---- Ops

// What
// `fast` permits concerns arithmetic on floats.
static bool is_float_op(const tk_bfn *f, const tk_op *op) {
    bool arithmetic = tk_op_info(op->code)->elementwise || op->code == TK_OP_REDUCE ||
                      op->code == TK_OP_SCAN || op->code == TK_OP_DOT ||
                      op->code == TK_OP_DOT_SCALED;
    return arithmetic && (tk_dtype_is_float(tk_build_typeof(f, op->res[0])->dtype) ||
                          tk_dtype_is_float(tk_build_typeof(f, op->opnd[op->nopnd - 1])->dtype));
}

tk_op *tk_build_emit(tk_bfn *f, tk_span at, tk_opcode code, uint32_t nopnd, const tk_vid *opnd,
                     uint32_t nres, const tk_type *const *res, uint32_t nreg) {
    for (uint32_t i = 0; i < nopnd; i++) {
        if (opnd[i] == 0) {
            TK_ICE(f->arena, "%s without operand %u in '%s'", tk_op_info(code)->name, i,
                   f->fn->name);
        }
    }
    tk_loc loc = tk_loc_new(f->b->m, at, 0);
    tk_op *op = tk_op_new(f->fn, code, loc, nopnd, opnd, nres, res, nreg);
    if (f->inst->fast && is_float_op(f, op)) {
        op->fast = (uint8_t)f->inst->fast;
    }
    for (uint32_t i = 0; i < nreg; i++) {
        op->reg[i] = tk_region_new(f->fn, op);
    }
    tk_op_append(f->at, op);
    return op;
}

tk_op *tk_build_emit1(tk_bfn *f, tk_span at, tk_opcode code, uint32_t nopnd, const tk_vid *opnd,
                      const tk_type *res) {
    return tk_build_emit(f, at, code, nopnd, opnd, 1, &res, 0);
}

tk_vid tk_build_op(tk_bfn *f, tk_span at, tk_opcode code, const tk_type *res, uint32_t nopnd,
                   const tk_vid *opnd) {
    return tk_build_emit1(f, at, code, nopnd, opnd, res)->res[0];
}

tk_vid tk_build_const(tk_bfn *f, tk_span at, const tk_type *type, tk_const value) {
    TK_CHECK(f->arena, value.dtype == type->dtype);
    tk_op *op = tk_build_emit1(f, at, TK_OP_CONST, 0, NULL, type);
    op->at.value = value;
    return op->res[0];
}

tk_vid tk_build_cast(tk_bfn *f, tk_span at, tk_vid v, tk_dtype to) {
    const tk_type *t = tk_build_typeof(f, v);
    return t->dtype == to ? v : TK_BUILD_OPS(f, at, TK_OP_CAST, tk_build_shaped(f, t, to), v);
}

tk_vid tk_build_stretch(tk_bfn *f, tk_span at, tk_vid v, const tk_type *like) {
    const tk_type *t = tk_build_typeof(f, v);
    if (same_shape(t, like)) {
        return v;
    }
    return TK_BUILD_OPS(f, at, TK_OP_BROADCAST, tk_build_shaped(f, like, t->dtype), v);
}

void tk_build_yield(tk_bfn *f, tk_span at, uint32_t n, const tk_vid *v) {
    tk_build_emit(f, at, TK_OP_YIELD, n, v, 0, NULL, 0);
}

void tk_build_name(tk_bfn *f, tk_vid v, const char *name) {
    tk_irvalue *value = &f->fn->value.at[v];
    if (name && !value->name) {
        value->name = tk_strdup(f->arena, name);
    }
}

// ---- Truth and masks
tk_vid tk_build_bool(tk_bfn *f, tk_span at, tk_opcode code, tk_vid a, tk_vid b) {
    if (!a || !b) {
        return a ? a : b;
    }
    return TK_BUILD_OPS(f, at, code, tk_build_typeof(f, a), a, b);
}

tk_vid tk_build_not(tk_bfn *f, tk_span at, tk_vid a) {
    return TK_BUILD_OPS(f, at, TK_OP_NOT, tk_build_typeof(f, a), a);
}

tk_vid tk_build_any(tk_bfn *f, tk_span at, tk_vid mask) {
    if (tk_build_typeof(f, mask)->rank == 0) {
        return mask;
    }
    tk_op *op = tk_build_emit1(f, at, TK_OP_REDUCE, 1, &mask, tk_type_scalar(f->arena, TK_BOOL));
    op->at.kind = TK_K_ANY;
    return op->res[0];
}

tk_vid tk_build_active(tk_bfn *f, tk_span at) {
    tk_vid all = 0;
    for (const tk_bmask *m = f->mask; m; m = m->up) {
        tk_vid c = m->negated ? tk_build_not(f, at, m->cond) : m->cond;
        all = tk_build_bool(f, at, TK_OP_AND, c, all);
    }
    if (f->returned.bound && f->returned.cur) {
        all = tk_build_bool(f, at, TK_OP_AND, all, tk_build_not(f, at, f->returned.cur));
    }
    return all;
}

// ---- Slots
tk_bslot *tk_build_slot(tk_bfn *f, const tk_var *v) {
    void **place = tk_bmap_at(f->arena, &f->vars, v);
    if (!*place) {
        tk_bslot *s = TK_NEW(f->arena, tk_bslot);
        s->name = v->name;
        s->type = tk_build_lift(f, v->type, v->varying);
        *place = s;
    }
    return *place;
}

tk_vid tk_build_read(tk_bfn *f, tk_span at, const tk_bslot *s) {
    if (s->cur) {
        return s->cur;
    }
    if (!s->bound) {
        TK_ICE(f->arena, "'%s' is read before it is set in '%s'", s->name, f->fn->name);
    }
    tk_const zero = {s->type->dtype, 0};
    return tk_build_const(f, at, s->type, zero);
}

void tk_build_carry_begin(tk_bfn *f, tk_span at, tk_bcarry *c, bool read) {
    c->old = TK_NEW_ARRAY(f->arena, tk_vid, c->slot.n);
    for (uint32_t i = 0; i < c->slot.n; i++) {
        c->old[i] = read ? tk_build_read(f, at, c->slot.at[i]) : c->slot.at[i]->cur;
    }
}

const tk_type **tk_build_carry_types(tk_bfn *f, const tk_bcarry *c) {
    const tk_type **types = TK_NEW_ARRAY(f->arena, const tk_type *, c->slot.n);
    for (uint32_t i = 0; i < c->slot.n; i++) {
        types[i] = c->slot.at[i]->type;
    }
    return types;
}

void tk_build_carry_yield(tk_bfn *f, tk_span at, const tk_bcarry *c) {
    tk_vid *v = TK_NEW_ARRAY(f->arena, tk_vid, c->slot.n);
    for (uint32_t i = 0; i < c->slot.n; i++) {
        v[i] = tk_build_read(f, at, c->slot.at[i]);
    }
    tk_build_yield(f, at, c->slot.n, v);
}

void tk_build_carry_restore(const tk_bcarry *c) {
    for (uint32_t i = 0; i < c->slot.n; i++) {
        c->slot.at[i]->cur = c->old[i];
    }
}

void tk_build_carry_args(const tk_bcarry *c, tk_region *r) {
    for (uint32_t i = 0; i < c->slot.n; i++) {
        tk_bslot *s = c->slot.at[i];
        s->cur = tk_region_arg(r, s->type, s->name);
    }
}

void tk_build_carry_results(tk_bfn *f, const tk_bcarry *c, const tk_op *op) {
    for (uint32_t i = 0; i < c->slot.n; i++) {
        tk_bslot *s = c->slot.at[i];
        s->cur = op->res[i];
        tk_build_name(f, s->cur, s->name);
    }
}
