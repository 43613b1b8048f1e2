// SPDX-License-Identifier: Apache-2.0
// The pass pad: loads, stores and atomics. A mask keeps them off the padding, whose elements may
// lie within the tensor. See pad.h.
#include "lower/pad.h"

static uint32_t values_of(const tk_op *op) {
    return op->code == TK_OP_LOAD ? 0 : op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
}

static void insert_operand(tk_pad *p, tk_op *op, uint32_t at, tk_vid v) {
    tk_vid *opnd = TK_NEW_ARRAY(p->f->module->arena, tk_vid, op->nopnd + 1);
    for (uint32_t i = 0; i <= op->nopnd; i++) {
        opnd[i] = i == at ? v : op->opnd[i - (i > at)];
    }
    op->opnd = opnd;
    op->nopnd++;
}

void tk_pad_access(tk_pad *p, tk_op *op) {
    const uint32_t rank = tk_value_type(p->f, op->opnd[0])->rank;
    for (uint32_t d = 0; d < rank; d++) {
        op->at.index[d] = op->at.index[d] > 0 ? tk_pad_extent(op->at.index[d]) : op->at.index[d];
    }
    const tk_vid view = op->nres ? op->res[0] : op->opnd[1 + rank];
    const tk_vid valid = tk_pad_valid(p, tk_pad_real(p, view), TK_PAD_ALL);
    const uint32_t mask = 1 + rank + values_of(op);
    if (valid && op->at.masked) {
        op->opnd[mask] = tk_pad_op2(p, TK_OP_AND, op->opnd[mask], valid);
    } else if (valid) {
        insert_operand(p, op, mask, valid);
        op->at.masked = true;
    }
}
