// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for layouts: above the level tile each tile has one, of its shape and sound;
// and the layouts of an op's values agree where elements stay where they are. What no rule names
// may be in any layout.
#include "ir/matrix.h"
#include "ir/scratch.h"
#include "ir/verify_internal.h"

static bool is_tile(const tk_type *t) { return t->kind == TK_T_VALUE && t->rank > 0; }

static bool has_shape(const tk_layout *l, const tk_type *t) {
    bool same = l->rank == t->rank;
    for (unsigned i = 0; same && i < t->rank; i++) {
        same = (int64_t)1 << l->log_dim[i] == t->dim[i];
    }
    return same;
}

bool tk_verify_layout(tk_verifier *v, const tk_irvalue *x) {
    const char *why = NULL;
    const tk_layout *l = x->layout;
    if (v->m->level == TK_LEVEL_TILE || !is_tile(x->type)) {
        return tk_vneed(v, !l, "a layout of %s, which has none at this level",
                        tk_type_text(v->a, x->type));
    }
    return tk_vneed(v, l, "%s has no layout", tk_type_text(v->a, x->type)) &&
           tk_vneed(v, tk_layout_ok(l, &why), "the layout of %s: %s", tk_type_text(v->a, x->type),
                    why) &&
           tk_vneed(v, has_shape(l, x->type), "the layout of %s is of another shape",
                    tk_type_text(v->a, x->type));
}

// ---- Values of an op ----------------------------------------------------------------------------

static const tk_layout *of(const tk_verifier *v, tk_vid id) { return v->f->value.at[id].layout; }
static const tk_layout *opnd(const tk_verifier *v, uint32_t i) { return of(v, v->op->opnd[i]); }
static const tk_layout *res(const tk_verifier *v, uint32_t i) { return of(v, v->op->res[i]); }

static bool equal(tk_verifier *v, const tk_layout *x, const tk_layout *y, const char *what) {
    if (x && y && tk_layout_eq(x, y)) {
        return true;
    }
    tk_buf b;
    tk_buf_init(&b, v->a);
    tk_buf_str(&b, what);
    tk_buf_str(&b, " must be in layout ");
    tk_layout_print(&b, y);
    if (x) {
        tk_buf_str(&b, ", not ");
        tk_layout_print(&b, x);
    }
    return tk_vbad(v, "%s", tk_buf_text(&b));
}

// Operands (from the first that is a tile on) and results are all in one layout.
static bool all_equal(tk_verifier *v, bool results) {
    const tk_layout *first = NULL;
    for (uint32_t i = 0; i < v->op->nopnd; i++) {
        const tk_layout *l = opnd(v, i);
        if (l && first && !equal(v, l, first, "an operand")) {
            return false;
        }
        first = first ? first : l;
    }
    for (uint32_t i = 0; first && results && i < v->op->nres; i++) {
        if (!equal(v, res(v, i), first, "a result")) {
            return false;
        }
    }
    return true;
}

// The operands of a broadcast have the result's elements in the same threads.
static bool broadcast(tk_verifier *v) {
    const tk_type *x = tk_vopnd(v, 0);
    if (!is_tile(x)) {
        return true;
    }
    tk_layout want = tk_layout_stretched(res(v, 0), x->rank, x->dim);
    return equal(v, opnd(v, 0), &want, "the operand");
}

static bool reshape(tk_verifier *v) {
    const tk_type *r = tk_vres(v, 0);
    if (!is_tile(tk_vopnd(v, 0)) || !is_tile(r)) {
        return true;
    }
    tk_layout want = tk_layout_reshape(opnd(v, 0), r->rank, r->dim);
    return equal(v, res(v, 0), &want, "the result");
}

static bool permute(tk_verifier *v) {
    tk_layout want = tk_layout_permute(opnd(v, 0), v->op->at.perm);
    return equal(v, res(v, 0), &want, "the result");
}

static bool reduce(tk_verifier *v) {
    if (!all_equal(v, false)) {
        return false;
    }
    for (uint32_t i = 0; v->op->at.axis != TK_AXIS_ALL && i < v->op->nres; i++) {
        tk_layout want = tk_layout_slice(opnd(v, 0), (unsigned)v->op->at.axis);
        if (!equal(v, res(v, i), &want, "a result")) {
            return false;
        }
    }
    return true;
}

// The part has the tile's layout but for the highest registers.
static bool part(tk_verifier *v, const tk_layout *tile, const tk_layout *x) {
    unsigned log[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < x->rank; i++) {
        log[i] = (unsigned)(tile->log_dim[i] - x->log_dim[i]);
    }
    tk_layout want = tk_layout_grow(x, log);
    return equal(v, tile, &want, "the tile");
}

// ---- Control ------------------------------------------------------------------------------------

// What stands in for result i of the op, here the n values of a list from `skip` on.
static bool carried(tk_verifier *v, const tk_vid *list, uint32_t skip, const char *what) {
    for (uint32_t i = 0; i < v->op->nres; i++) {
        const tk_layout *want = res(v, i);
        if (want && !equal(v, of(v, list[skip + i]), want, what)) {
            return false;
        }
    }
    return true;
}

static bool branch(tk_verifier *v) {
    return carried(v, v->op->reg[0]->last->opnd, 0, "a value given back") &&
           carried(v, v->op->reg[1]->last->opnd, 0, "a value given back");
}

static bool loop(tk_verifier *v, uint32_t bounds, uint32_t index) {
    const tk_op *op = v->op;
    for (uint32_t i = 0; i < op->nreg; i++) {
        if (!carried(v, op->reg[i]->args.at, index, "an argument of the region")) {
            return false;
        }
    }
    return carried(v, op->opnd, bounds, "an initial value") &&
           carried(v, op->reg[op->nreg - 1]->last->opnd, 0, "a value given back");
}

// ---- The op -------------------------------------------------------------------------------------

// Shared memory is given out at the end of the level laid.
static bool shared(tk_verifier *v) {
    const int64_t at = v->op->at.shared;
    if (!(tk_op_attrs(v->op->code) & TK_A_SHARED)) {
        return true;
    }
    const bool laid = v->m->level != TK_LEVEL_TILE && !v->in_grid;
    const int64_t bytes = laid ? (int64_t)tk_scratch_bytes(v->f, v->op) : 0;
    if (at == -1) {
        return tk_vneed(v, v->m->level != TK_LEVEL_STAGED || bytes == 0,
                        "%lld bytes of shared memory are needed, and none are given",
                        (long long)bytes);
    }
    return tk_vneed(v, bytes > 0, "shared memory where none is needed") &&
           tk_vneed(v, at >= 0 && at % tk_scratch_align(v->op) == 0, "shared memory at %lld",
                    (long long)at) &&
           tk_vneed(v, at <= v->m->shared && bytes <= v->m->shared - at,
                    "%lld bytes of shared memory at %lld, and the program has %lld",
                    (long long)bytes, (long long)at, (long long)v->m->shared);
}

static bool product(tk_verifier *v) {
    tk_matrix m;
    unsigned columns;
    const tk_dot_unit unit = v->op->at.unit;
    if (v->op->code != TK_OP_DOT || unit == TK_UNIT_FMA) {
        return true;
    }
    return tk_vneed(v,
                    tk_matrix_of(v->f, v->op, unit, &m, NULL) &&
                        tk_matrix_layout_ok(&m, res(v, 0), &columns),
                    "the result is not in a layout of its unit") &&
           tk_vneed(v,
                    !tk_matrix_is_spread(res(v, 0)) ||
                        tk_matrix_plan_of(v->f, v->op).a.where == TK_OPERAND_REGISTERS,
                    "the result is in a layout for a left operand from registers") &&
           (v->op->nopnd < 3 || equal(v, opnd(v, 2), res(v, 0), "the accumulator"));
}

static bool rule(tk_verifier *v) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (v->op->code) {
#include "ir/ops.def"
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_PHILOX:
    case TK_OP_WAIT:
        return all_equal(v, true);
    case TK_OP_BROADCAST:
        return broadcast(v);
    case TK_OP_RESHAPE:
        return reshape(v);
    case TK_OP_PERMUTE:
        return permute(v);
    case TK_OP_INSERT:
        return equal(v, opnd(v, 0), res(v, 0), "the operand") && part(v, res(v, 0), opnd(v, 1));
    case TK_OP_EXTRACT:
        return part(v, opnd(v, 0), res(v, 0));
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
        return reduce(v);
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        return product(v);
    case TK_OP_IF:
        return branch(v);
    case TK_OP_FOR:
        return loop(v, 3, 1);
    case TK_OP_WHILE:
        return loop(v, 0, 0);
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_GATHER:
    case TK_OP_CONVERT:
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
    case TK_OP_DIM:
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
    case TK_OP_PRINT:
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_RING:
    case TK_OP_FETCH:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
    case TK_OP_BARRIER:
    case TK_OP_CALL:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
    case TK_OP_COUNT:
        break;
    }
    return true;
}

bool tk_verify_layouts(tk_verifier *v) {
    return (v->m->level == TK_LEVEL_TILE || rule(v)) && shared(v);
}
