// SPDX-License-Identifier: Apache-2.0
// fold: replaces what is known at compile time, and what an identity makes simpler.
//
// in:    any level
// out:   no exact op on constants alone (scalars and uniform tiles), no if on a constant, no loop
//        known to run never, no identity of fold_identity.c
// keeps: all values bit for bit, the sign of zeros and the payload of NaNs included; effects and
//        their order
// needs: nothing
// when not: functions with an error bound (they may differ between targets); float identities that
//           are not exact for every operand (x * 1, x + 0)
#include "ir/fold_internal.h"

#include "ir/exec.h"

// ---- Constants ----------------------------------------------------------------------------------

void tk_fold_to_const(tk_fold *p, tk_op *op, tk_const value) {
    (void)p;
    op->code = TK_OP_CONST;
    op->nopnd = 0;
    op->fast = 0;
    op->at = (tk_attrs){.value = value, .axis = TK_AXIS_ALL, .shared = -1};
}

void tk_fold_to_value(tk_fold *p, tk_op *op, tk_vid v) {
    if (tk_value_same_layout(p->f, op->res[0], v)) {
        tk_vmap_set(&p->map, op->res[0], v);
        tk_op_unlink(op);
        return;
    }
    op->code = TK_OP_CONVERT;
    op->nopnd = 1;
    op->opnd[0] = v;
    op->fast = 0;
    op->at = (tk_attrs){.axis = TK_AXIS_ALL, .shared = -1};
}

// An exact op whose operands are all constants.
static bool constant(tk_fold *p, tk_op *op) {
    enum { MOST = 3 };
    tk_const value[MOST], result;
    const tk_opinfo *info = tk_op_info(op->code);
    if (!tk_op_is_pure(op) || op->nres != 1 || op->nopnd == 0 || op->nopnd > MOST ||
        (info->elementwise && !info->exact)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_const *c = tk_value_const(p->f, op->opnd[i]);
        if (!c) {
            return false;
        }
        value[i] = *c;
    }
    if (!tk_exec_fold(p->f, op, value, &result)) {
        return false;
    }
    tk_fold_to_const(p, op, result);
    return true;
}

// ---- Control ------------------------------------------------------------------------------------

// Puts the ops of a region, but for its end, before `at`; they were visited.
static void splice(tk_region *r, tk_op *at) {
    tk_op *next;
    for (tk_op *op = r->first; op != r->last; op = next) {
        next = op->next;
        tk_op_unlink(op);
        tk_op_insert_before(at, op);
    }
}

static bool branch(tk_fold *p, tk_op *op) {
    const tk_const *cond = tk_value_const(p->f, op->opnd[0]);
    if (!cond) {
        return false;
    }
    tk_region *r = op->reg[cond->bits ? 0 : 1];
    tk_fold_region(p, r);
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_vmap_set(&p->map, op->res[i], r->last->opnd[i]);
    }
    splice(r, op);
    tk_op_unlink(op);
    return true;
}

// Whether a for is known to run never.
static bool runs_never(const tk_fold *p, const tk_op *op) {
    const tk_const *from = tk_value_const(p->f, op->opnd[0]);
    const tk_const *to = tk_value_const(p->f, op->opnd[1]);
    const tk_const *step = tk_value_const(p->f, op->opnd[2]);
    if (op->opnd[0] == op->opnd[1] || (step && tk_const_is_zero(*step)) ||
        (from && to && tk_const_same(*from, *to))) {
        return true;
    }
    if (!from || !to || !step) {
        return false;
    }
    tk_const zero = {step->dtype, 0};
    bool down = tk_num_binary(TK_NUM_LT, step->dtype, *step, zero).bits != 0;
    return tk_num_binary(down ? TK_NUM_LE : TK_NUM_GE, from->dtype, *from, *to).bits != 0;
}

static bool loop(tk_fold *p, tk_op *op) {
    if (!runs_never(p, op)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_vmap_set(&p->map, op->res[i], op->opnd[3 + i]);
    }
    tk_note_loop_dropped(p->c, "fold", op, "it never runs");
    tk_op_unlink(op);
    return true;
}

// A while whose condition is the constant false: the condition's region runs once.
static bool loop_while(tk_fold *p, tk_op *op) {
    tk_region *r = op->reg[0];
    const tk_const *cond = tk_value_const(p->f, r->last->opnd[0]);
    if (!cond || cond->bits) {
        return false;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_vmap_set(&p->map, op->res[i], op->opnd[i]);
        tk_vmap_set(&p->map, r->args.at[i], op->opnd[i]);
    }
    tk_fold_region(p, r); // its ops use the arguments
    splice(r, op);
    tk_op_unlink(op);
    return true;
}

// ---- Tensors and debugging ----------------------------------------------------------------------

static void drop_operand(tk_op *op, uint32_t i) {
    for (op->nopnd--; i < op->nopnd; i++) {
        op->opnd[i] = op->opnd[i + 1];
    }
}

static bool dim(tk_fold *p, tk_op *op) {
    const tk_type *t = tk_value_type(p->f, op->opnd[0]);
    int64_t n = t->dim[op->at.axis];
    if (n == TK_DIM_DYN) {
        return false;
    }
    tk_fold_to_const(p, op, tk_const_i64(TK_I32, n));
    return true;
}

// A mask that holds everywhere goes; an `else` that is the zero read without it as well; what a
// mask that holds nowhere lets through is known.
static bool masked(tk_fold *p, tk_op *op) {
    bool is_load = op->code == TK_OP_LOAD;
    uint32_t at = op->nopnd - 1 - (is_load && op->at.other);
    const tk_const *mask = op->at.masked ? tk_value_const(p->f, op->opnd[at]) : NULL;
    if (mask && !mask->bits) {
        if (is_load && op->at.other) {
            tk_fold_to_value(p, op, op->opnd[op->nopnd - 1]);
        } else if (op->code == TK_OP_STORE) {
            tk_op_unlink(op);
        } else if (is_load) {
            tk_fold_to_const(p, op, (tk_const){tk_value_type(p->f, op->res[0])->dtype, 0});
        } else {
            return false; // an atomic orders memory even so
        }
        return true;
    }
    if (mask) {
        op->at.masked = false;
        drop_operand(op, at);
    }
    const tk_const *other =
        is_load && op->at.other ? tk_value_const(p->f, op->opnd[op->nopnd - 1]) : NULL;
    if (other && other->bits == 0) {
        op->at.other = false;
        op->nopnd--;
    }
    return false;
}

static bool debug(tk_fold *p, tk_op *op) {
    const tk_const *cond = tk_value_const(p->f, op->opnd[0]);
    if (!cond || !cond->bits) {
        return false;
    }
    tk_op_unlink(op);
    return true;
}

// ---- The walk -----------------------------------------------------------------------------------

// Before the op's regions are visited; whether it is done with.
static bool whole(tk_fold *p, tk_op *op) {
    switch (op->code) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
#include "ir/ops.def"
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
    case TK_OP_PERMUTE:
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_EMPTY:
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
    case TK_OP_GATHER:
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_CONVERT:
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
    case TK_OP_PHILOX:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
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
    case TK_OP_YIELD:
    case TK_OP_RETURN:
    case TK_OP_WHILE:
    case TK_OP_COUNT:
        break;
    case TK_OP_DIM:
        return dim(p, op);
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        return masked(p, op);
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        return debug(p, op);
    case TK_OP_IF:
        return branch(p, op);
    case TK_OP_FOR:
        return loop(p, op);
    }
    return constant(p, op) || tk_fold_identity(p, op);
}

void tk_fold_region(tk_fold *p, tk_region *r) {
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        tk_vmap_operands(&p->map, op);
        if (whole(p, op)) {
            continue;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            tk_fold_region(p, op->reg[i]);
        }
        if (op->code == TK_OP_WHILE) {
            (void)loop_while(p, op);
        }
    }
}

void tk_pass_fold(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_fold p = {.c = c, .f = c->m->funcs.at[i], .map = {.arena = c->scratch}};
        if (p.f->grid) {
            tk_fold_region(&p, p.f->grid);
        }
        tk_fold_region(&p, p.f->body);
    }
}
