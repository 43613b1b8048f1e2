// SPDX-License-Identifier: Apache-2.0
//
// tk_exec_fold: one op on constants, for the fold pass. Operands and result are scalars or tiles
// all of whose elements are equal; one constant stands for each.
#include "ir/exec_internal.h"

// Ops that move elements about: of equal elements, nothing changes.
static bool moves(tk_opcode code) {
    return code == TK_OP_BROADCAST || code == TK_OP_RESHAPE || code == TK_OP_PERMUTE ||
           code == TK_OP_FLIP || code == TK_OP_SLICE || code == TK_OP_DEINTERLEAVE ||
           code == TK_OP_SORT || code == TK_OP_CONVERT;
}

// Reductions that give the element itself.
static bool keeps(const tk_op *op) {
    const tk_kindattr k = op->at.kind;
    return op->code == TK_OP_REDUCE &&
           (k == TK_K_MIN || k == TK_K_MAX || k == TK_K_ANY || k == TK_K_ALL);
}

bool tk_exec_fold(const tk_func *f, const tk_op *op, const tk_const *operands, tk_const *result) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (op->nres == 0 || tk_value_type(f, op->res[0])->kind != TK_T_VALUE) {
        return false;
    }
    const tk_dtype to = tk_value_type(f, op->res[0])->dtype;
    if (info->elementwise) {
        if (!info->exact) {
            return false;
        }
        *result = tk_num_eval(info->num, operands[op->nopnd - 1].dtype, operands);
        return true;
    }
    if (op->code == TK_OP_CONST) {
        *result = op->at.value;
        return true;
    }
    if (op->code == TK_OP_CAST) {
        *result = tk_cast(operands[0], to);
        return true;
    }
    if (op->code == TK_OP_BITCAST || moves(op->code) || keeps(op)) {
        *result = (tk_const){to, operands[0].bits};
        return true;
    }
    if ((op->code == TK_OP_CONCAT || op->code == TK_OP_INTERLEAVE) &&
        tk_const_same(operands[0], operands[1])) {
        *result = operands[0];
        return true;
    }
    return false;
}
