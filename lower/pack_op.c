// SPDX-License-Identifier: Apache-2.0
// Ops on values with an axis of programs. See pack.h.
#include "lower/pack.h"
#include "lower/view_plan.h"

#include <string.h>

// ---- Values -------------------------------------------------------------------------------------

void tk_pack_set_varies(tk_packer *p, tk_vid v) {
    while (p->varies.n <= v) {
        tk_vec_push(p->c->scratch, &p->varies, false);
    }
    p->varies.at[v] = true;
}

void tk_pack_replace(tk_packer *p, tk_vid v, tk_vid with) {
    tk_vmap_set(&p->map, v, with);
    tk_pack_set_varies(p, with);
}

tk_vid tk_pack_make(tk_packer *p, tk_opcode code, const tk_type *t, uint32_t n,
                    const tk_vid *opnd) {
    tk_op *op = tk_op_new(p->f, code, p->loc, n, opnd, 1, &t, 0);
    tk_op_insert_before(p->before, op);
    return op->res[0];
}

const tk_type *tk_pack_type(const tk_packer *p, const tk_type *t) {
    int64_t dim[TK_MAX_RANK + 1] = {p->n};
    if (t->rank) {
        memcpy(dim + 1, t->dim, t->rank * sizeof *dim);
    }
    return tk_type_tile(p->c->m->arena, t->dtype, t->rank + 1U, dim);
}

static const tk_type *shaped(const tk_packer *p, tk_vid v, unsigned rank, const int64_t *dim) {
    const tk_dtype t = tk_value_type(p->f, v)->dtype;
    return rank ? tk_type_tile(p->c->m->arena, t, rank, dim) : tk_type_scalar(p->c->m->arena, t);
}

tk_vid tk_pack_reshape(tk_packer *p, tk_vid v, unsigned rank, const int64_t *dim) {
    const tk_type *to = shaped(p, v, rank, dim);
    return tk_type_eq(tk_value_type(p->f, v), to) ? v : tk_pack_make(p, TK_OP_RESHAPE, to, 1, &v);
}

tk_vid tk_pack_spread(tk_packer *p, tk_vid v, unsigned rank, const int64_t *dim) {
    const tk_type *to = shaped(p, v, rank, dim);
    return tk_type_eq(tk_value_type(p->f, v), to) ? v : tk_pack_make(p, TK_OP_BROADCAST, to, 1, &v);
}

tk_vid tk_pack_get(tk_packer *p, tk_vid v) {
    if (tk_pack_varies(p, v)) {
        return v;
    }
    const tk_type *t = tk_pack_type(p, tk_value_type(p->f, v));
    return tk_pack_spread(p, v, t->rank, t->dim);
}

// ---- What can be done ---------------------------------------------------------------------------

static const char *stores_apart(const tk_packer *p, const tk_op *op) {
    const uint32_t rank = tk_value_type(p->f, op->opnd[0])->rank;
    for (uint32_t d = 0; d < rank; d++) {
        if (tk_pack_varies(p, op->opnd[1 + d])) {
            return NULL;
        }
    }
    return "what differs between programs is loaded or stored where all do it";
}

const char *tk_pack_refusal(const tk_packer *p, const tk_op *op) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (op->code) {
#include "ir/ops.def"
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
    case TK_OP_PERMUTE:
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_GATHER:
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
    case TK_OP_SCAN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
    case TK_OP_WHILE:
        return NULL;
    case TK_OP_SCAN_FN:
        return op->at.exclusive ? "an exclusive scan begins with what differs between programs"
                                : NULL;
    case TK_OP_PHILOX:
        return tk_pack_varies(p, op->opnd[0]) ? "the seed of random numbers differs" : NULL;
    case TK_OP_LOAD:
    case TK_OP_STORE:
        return stores_apart(p, op);
    case TK_OP_IF:
        return tk_pack_varies(p, op->opnd[0]) ? "which way is taken differs between programs"
                                              : NULL;
    case TK_OP_FOR:
        return tk_pack_varies(p, op->opnd[0]) || tk_pack_varies(p, op->opnd[1]) ||
                       tk_pack_varies(p, op->opnd[2])
                   ? "how often a loop runs differs between programs"
                   : NULL;
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_DIM:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
    case TK_OP_EMPTY:
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
    case TK_OP_CONVERT:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
    case TK_OP_PRINT:
    case TK_OP_RING:
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_FETCH:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
    case TK_OP_WAIT:
    case TK_OP_BARRIER:
    case TK_OP_CALL:
    case TK_OP_COUNT:
        break;
    }
    return tk_format(p->c->scratch, "'%s' of what differs between programs",
                     tk_op_info(op->code)->name);
}

// ---- Ops ----------------------------------------------------------------------------------------

static void lift(tk_packer *p, tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        op->opnd[i] = tk_pack_get(p, op->opnd[i]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_irvalue *x = &p->f->value.at[op->res[i]];
        x->type = tk_pack_type(p, x->type);
    }
}

// Ones between the axis of programs and the operand's own, which the broadcasting rule aligns
// right.
static void broadcast(tk_packer *p, tk_op *op) {
    const tk_type *from = tk_value_type(p->f, op->opnd[0]);
    const tk_type *to = tk_pack_type(p, tk_value_type(p->f, op->res[0]));
    int64_t dim[TK_MAX_RANK];
    const unsigned own = from->rank - 1U;
    for (unsigned i = 0; i < to->rank; i++) {
        dim[i] = i == 0 ? p->n : i < to->rank - own ? 1 : from->dim[1 + i - (to->rank - own)];
    }
    op->opnd[0] = tk_pack_reshape(p, op->opnd[0], to->rank, dim);
    p->f->value.at[op->res[0]].type = to;
}

static void permute(tk_packer *p, tk_op *op) {
    lift(p, op);
    const unsigned rank = tk_value_type(p->f, op->res[0])->rank;
    for (unsigned i = rank - 1; i > 0; i--) {
        op->at.perm[i] = (uint8_t)(op->at.perm[i - 1] + 1);
    }
    op->at.perm[0] = 0;
}

// Over all elements: along the one axis that a program's are made. The results are scalars again.
static void reduce_all(tk_packer *p, tk_op *op) {
    int64_t two[2] = {p->n, tk_type_elems(tk_value_type(p->f, op->opnd[0])) / p->n};
    for (uint32_t i = 0; i < op->nopnd; i++) {
        op->opnd[i] = tk_pack_reshape(p, tk_pack_get(p, op->opnd[i]), 2, two);
    }
    op->at.axis = 1;
    two[1] = 1;
    p->before = op->next;
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_irvalue *x = &p->f->value.at[op->res[i]];
        x->type = shaped(p, op->res[i], 2, two);
        tk_pack_replace(p, op->res[i], tk_pack_reshape(p, op->res[i], 1, two));
    }
}

// Programs that there are none of claim nothing.
static void claim(tk_packer *p, tk_op *op) {
    tk_vid x = op->opnd[0];
    const tk_type *t = tk_value_type(p->f, x);
    int64_t dim[TK_MAX_RANK] = {p->n};
    for (unsigned i = 1; i < t->rank; i++) {
        dim[i] = 1;
    }
    tk_vid exists = tk_pack_reshape(p, p->exists, t->rank, dim);
    exists = tk_pack_spread(p, exists, t->rank, t->dim);
    tk_vid none = tk_pack_make(p, TK_OP_NOT, t, 1, &exists);
    op->opnd[0] = tk_pack_make(p, TK_OP_OR, t, 2, (tk_vid[]){x, none});
    op->at.part = true;
}

// Tiles of the whole block before scalars: a philox's seed and a scan's first values stay.
static void philox(tk_packer *p, tk_op *op) {
    tk_vid seed = op->opnd[0];
    op->opnd[0] = op->opnd[1];
    lift(p, op);
    op->opnd[0] = seed;
}

void tk_pack_op(tk_packer *p, tk_op *op) {
    const bool along = tk_op_attrs(op->code) & TK_A_AXIS;
    switch ((int)op->code) {
    case TK_OP_LOAD:
    case TK_OP_STORE:
        tk_pack_view(p, op);
        return;
    case TK_OP_BROADCAST:
        broadcast(p, op);
        return;
    case TK_OP_PERMUTE:
        permute(p, op);
        return;
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        claim(p, op);
        return;
    case TK_OP_PHILOX:
        philox(p, op);
        return;
    }
    if (along && op->at.axis == TK_AXIS_ALL) {
        reduce_all(p, op);
        return;
    }
    lift(p, op);
    op->at.axis += along ? 1 : 0;
}
