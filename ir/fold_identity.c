// SPDX-License-Identifier: Apache-2.0
// Identities of the fold pass: each exact for every operand, bit for bit. Of float arithmetic that
// leaves neg(neg x) and abs(abs x), which only touch the sign bit: x * 1 and x / 1 may make a NaN
// quiet, x + 0 changes -0, x - x is NaN for an infinity.
#include "ir/fold_internal.h"

static tk_op *def_if(const tk_fold *p, tk_vid v, tk_opcode code) {
    tk_op *def = tk_value_def(p->f, v);
    return def && def->code == code ? def : NULL;
}

static bool same_type(const tk_fold *p, tk_vid x, tk_vid y) {
    return tk_type_eq(tk_value_type(p->f, x), tk_value_type(p->f, y));
}

static bool to_value(tk_fold *p, tk_op *op, tk_vid v) {
    tk_fold_to_value(p, op, v);
    return true;
}

static bool to_const(tk_fold *p, tk_op *op, uint64_t bits) {
    tk_fold_to_const(p, op, (tk_const){tk_value_type(p->f, op->res[0])->dtype, bits});
    return true;
}

// ---- Integers and bool --------------------------------------------------------------------------

static uint64_t ones(tk_dtype t) {
    if (t == TK_BOOL) {
        return 1;
    }
    unsigned bits = tk_dtype_bits(t);
    return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

// x op x
static bool with_itself(tk_fold *p, tk_op *op) {
    switch ((int)op->code) { // the few that have such an identity
    case TK_OP_SUB:
    case TK_OP_XOR:
    case TK_OP_NE:
    case TK_OP_LT:
    case TK_OP_GT:
        return to_const(p, op, 0);
    case TK_OP_EQ:
    case TK_OP_LE:
    case TK_OP_GE:
        return to_const(p, op, 1);
    case TK_OP_AND:
    case TK_OP_OR:
    case TK_OP_MIN:
    case TK_OP_MAX:
    case TK_OP_FMIN:
    case TK_OP_FMAX:
        return to_value(p, op, op->opnd[0]);
    }
    return false;
}

// x op c
static bool with_right(tk_fold *p, tk_op *op, tk_const c) {
    tk_vid x = op->opnd[0];
    bool zero = c.bits == 0, one = c.bits == 1 && c.dtype != TK_BOOL;
    bool all = c.bits == ones(c.dtype);
    switch ((int)op->code) {
    case TK_OP_ADD:
    case TK_OP_SUB:
    case TK_OP_SHL:
    case TK_OP_SHR:
        return zero && to_value(p, op, x);
    case TK_OP_XOR:
        return zero && to_value(p, op, x);
    case TK_OP_OR:
        return zero ? to_value(p, op, x) : all && to_const(p, op, c.bits);
    case TK_OP_AND:
        return zero ? to_const(p, op, 0) : all && to_value(p, op, x);
    case TK_OP_MUL:
        return zero ? to_const(p, op, 0) : one && to_value(p, op, x);
    case TK_OP_DIV:
    case TK_OP_CDIV: // by 0: 0
        return zero ? to_const(p, op, 0) : one && to_value(p, op, x);
    case TK_OP_REM: // by 0: x
        return zero ? to_value(p, op, x) : one && to_const(p, op, 0);
    case TK_OP_EQ: // x == true
        return c.dtype == TK_BOOL && c.bits && to_value(p, op, x);
    case TK_OP_NE: // x != false
        return c.dtype == TK_BOOL && zero && to_value(p, op, x);
    }
    return false;
}

// c op x
static bool with_left(tk_fold *p, tk_op *op, tk_const c) {
    tk_vid x = op->opnd[1];
    bool zero = c.bits == 0, one = c.bits == 1 && c.dtype != TK_BOOL;
    bool all = c.bits == ones(c.dtype);
    switch ((int)op->code) {
    case TK_OP_ADD:
    case TK_OP_XOR:
        return zero && to_value(p, op, x);
    case TK_OP_OR:
        return zero ? to_value(p, op, x) : all && to_const(p, op, c.bits);
    case TK_OP_AND:
        return zero ? to_const(p, op, 0) : all && to_value(p, op, x);
    case TK_OP_MUL:
        return zero ? to_const(p, op, 0) : one && to_value(p, op, x);
    case TK_OP_DIV:
    case TK_OP_CDIV:
    case TK_OP_REM:
    case TK_OP_SHL:
    case TK_OP_SHR:
        return zero && to_const(p, op, 0);
    }
    return false;
}

static bool binary(tk_fold *p, tk_op *op) {
    tk_dtype t = tk_value_type(p->f, op->opnd[0])->dtype;
    if (!tk_dtype_is_int(t) && t != TK_BOOL) {
        return false;
    }
    if (op->opnd[0] == op->opnd[1]) {
        return with_itself(p, op);
    }
    const tk_const *left = tk_value_const(p->f, op->opnd[0]);
    const tk_const *right = tk_value_const(p->f, op->opnd[1]);
    return (right && with_right(p, op, *right)) || (left && with_left(p, op, *left));
}

static bool unary(tk_fold *p, tk_op *op) {
    tk_op *inner = def_if(p, op->opnd[0], op->code);
    if (!inner) {
        return false;
    }
    switch ((int)op->code) {
    case TK_OP_NEG:
    case TK_OP_NOT:
    case TK_OP_BNOT:
        return to_value(p, op, inner->opnd[0]);
    case TK_OP_ABS:
    case TK_OP_FLOOR:
    case TK_OP_CEIL:
    case TK_OP_TRUNC:
    case TK_OP_ROUND:
        return to_value(p, op, op->opnd[0]);
    }
    return false;
}

static bool select(tk_fold *p, tk_op *op) {
    const tk_const *cond = tk_value_const(p->f, op->opnd[0]);
    if (cond) {
        return to_value(p, op, op->opnd[cond->bits ? 1 : 2]);
    }
    return op->opnd[1] == op->opnd[2] && to_value(p, op, op->opnd[1]);
}

// ---- Shapes and types ---------------------------------------------------------------------------

// Of the same op below only the source counts; to the same type nothing is left.
static bool stretch(tk_fold *p, tk_op *op) {
    tk_op *inner = def_if(p, op->opnd[0], op->code);
    if (inner) {
        op->opnd[0] = inner->opnd[0];
    }
    return same_type(p, op->opnd[0], op->res[0]) && to_value(p, op, op->opnd[0]);
}

// Of a chain only the source counts; to the same layout nothing is left.
static bool convert(tk_fold *p, tk_op *op) {
    tk_op *inner = def_if(p, op->opnd[0], TK_OP_CONVERT);
    if (inner) {
        op->opnd[0] = inner->opnd[0];
    }
    return tk_value_same_layout(p->f, op->opnd[0], op->res[0]) && to_value(p, op, op->opnd[0]);
}

static bool permute(tk_fold *p, tk_op *op) {
    unsigned rank = tk_value_type(p->f, op->res[0])->rank;
    tk_op *inner = def_if(p, op->opnd[0], TK_OP_PERMUTE);
    if (inner) {
        for (unsigned i = 0; i < rank; i++) {
            op->at.perm[i] = inner->at.perm[op->at.perm[i]];
        }
        op->opnd[0] = inner->opnd[0];
    }
    for (unsigned i = 0; i < rank; i++) {
        if (op->at.perm[i] != i) {
            return false;
        }
    }
    return to_value(p, op, op->opnd[0]);
}

static bool flip(tk_fold *p, tk_op *op) {
    tk_op *inner = def_if(p, op->opnd[0], TK_OP_FLIP);
    if (inner && inner->at.axis == op->at.axis) {
        return to_value(p, op, inner->opnd[0]);
    }
    return tk_value_type(p->f, op->res[0])->dim[op->at.axis] == 1 && to_value(p, op, op->opnd[0]);
}

// T to W to V over integers: the bits of V come from x alone where W keeps all of x, or at least as
// many bits as V has.
static bool cast(tk_fold *p, tk_op *op) {
    if (same_type(p, op->opnd[0], op->res[0])) {
        return to_value(p, op, op->opnd[0]);
    }
    tk_op *inner = def_if(p, op->opnd[0], TK_OP_CAST);
    if (!inner) {
        return false;
    }
    tk_dtype t = tk_value_type(p->f, inner->opnd[0])->dtype;
    tk_dtype w = tk_value_type(p->f, op->opnd[0])->dtype;
    tk_dtype to = tk_value_type(p->f, op->res[0])->dtype;
    bool keeps = tk_dtype_widens(t, w) || (t == TK_BOOL && tk_dtype_is_int(w));
    bool ints = (tk_dtype_is_int(t) || t == TK_BOOL) && tk_dtype_is_int(w) && tk_dtype_is_int(to);
    bool back = t == TK_BOOL && tk_dtype_is_int(w) && to == TK_BOOL;
    if (!back && !(ints && (keeps || tk_dtype_bits(to) <= tk_dtype_bits(w)))) {
        return false;
    }
    op->opnd[0] = inner->opnd[0];
    return same_type(p, op->opnd[0], op->res[0]) && to_value(p, op, op->opnd[0]);
}

static bool slice(tk_fold *p, tk_op *op) {
    return same_type(p, op->opnd[0], op->res[0]) && to_value(p, op, op->opnd[0]);
}

static bool element_wise(tk_fold *p, tk_op *op) {
    if (op->code == TK_OP_SELECT) {
        return select(p, op);
    }
    return op->nopnd == 1 ? unary(p, op) : op->nopnd == 2 && binary(p, op);
}

bool tk_fold_identity(tk_fold *p, tk_op *op) {
    if (tk_op_info(op->code)->elementwise) {
        return element_wise(p, op);
    }
    switch ((int)op->code) { // the few that have an identity
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
        return stretch(p, op);
    case TK_OP_PERMUTE:
        return permute(p, op);
    case TK_OP_FLIP:
        return flip(p, op);
    case TK_OP_SLICE:
        return slice(p, op);
    case TK_OP_CAST:
        return cast(p, op);
    case TK_OP_BITCAST:
        return stretch(p, op);
    case TK_OP_CONVERT:
        return convert(p, op);
    }
    return false;
}
