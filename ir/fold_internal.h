// SPDX-License-Identifier: Apache-2.0
// Internal to the fold pass: what pass_fold.c and fold_identity.c share.
#ifndef TK_IR_FOLD_INTERNAL_H
#define TK_IR_FOLD_INTERNAL_H

#include "ir/pass_util.h"

typedef struct tk_fold {
    tk_pass_ctx *c;
    tk_func *f;
    tk_vmap map; // results of ops that are gone
} tk_fold;

void tk_fold_region(tk_fold *p, tk_region *r);
void tk_fold_to_const(tk_fold *p, tk_op *op, tk_const value); // op of one result becomes a const
// v stands for its result and op is gone; where it is in another layout, op becomes a convert of
// it.
void tk_fold_to_value(tk_fold *p, tk_op *op, tk_vid v);
// Whether op is gone or became a const; it may also have been given simpler operands.
bool tk_fold_identity(tk_fold *p, tk_op *op);

#endif
