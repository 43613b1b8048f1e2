// SPDX-License-Identifier: Apache-2.0
// See differs.h.
#include "lower/differs.h"

#include "ir/pass_util.h"

enum { DEEP = 64 }; // numbers made of numbers: further ones are taken to differ

static uint32_t along(const tk_func *f, tk_vid v, unsigned depth) {
    const tk_op *d = tk_value_def(f, v);
    const tk_region *r = tk_value_region(f, v);
    const bool index = r && r->owner && r->owner->code == TK_OP_FOR && r->args.at[0] == v;
    const tk_op *from = index ? r->owner : d;
    uint32_t axes = 0;
    if (!from) {
        return r && r->owner ? TK_DIFFERS_ALL : 0; // carried by a loop; a parameter
    }
    if (from->code == TK_OP_PROGRAM_ID) {
        return 1U << from->at.axis;
    }
    if (depth > DEEP || (!index && (from->nreg > 0 || !tk_op_is_pure(from)))) {
        return TK_DIFFERS_ALL;
    }
    for (uint32_t i = 0; i < (index ? 3 : from->nopnd); i++) {
        axes |= along(f, from->opnd[i], depth + 1);
    }
    return axes;
}

uint32_t tk_differs_along(const tk_func *f, tk_vid v) { return along(f, v, 0); }

uint32_t tk_reached_along(const tk_func *f, const tk_op *op) {
    uint32_t axes = 0;
    for (const tk_op *x = op->in->owner; x; x = x->in->owner) {
        switch ((int)x->code) { // those that have control flow in them
        case TK_OP_FOR:
            for (uint32_t i = 0; i < 3; i++) {
                axes |= tk_differs_along(f, x->opnd[i]);
            }
            break;
        case TK_OP_IF:
            axes |= tk_differs_along(f, x->opnd[0]);
            break;
        case TK_OP_WHILE:
            axes = TK_DIFFERS_ALL;
            break;
        }
    }
    return axes;
}
