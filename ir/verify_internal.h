// SPDX-License-Identifier: Apache-2.0
// Internal to the verifier: its state, and the rules by kind of op.
#ifndef TK_IR_VERIFY_INTERNAL_H
#define TK_IR_VERIFY_INTERNAL_H

#include "ir/ir.h"

typedef struct tk_verifier {
    tk_arena *a; // scratch
    const tk_module *m;
    const tk_func *f;
    const tk_op *op; // NULL: the function itself
    const char **why;
    uint32_t func_index;
    bool in_grid;
    uint32_t depth, combine; // regions around; of these, those of reduce_fn and scan_fn
    uint8_t *state;          // by value: UNSEEN, VISIBLE, PAST
} tk_verifier;

// Records what does not hold, with the function and op in front; gives false.
bool tk_vbad(tk_verifier *v, const char *fmt, ...) TK_PRINTF(2, 3);
// if (!tk_vneed(v, condition, ...)) return false;
#define tk_vneed(v, cond, ...) ((cond) || tk_vbad((v), __VA_ARGS__))

static inline const tk_type *tk_vopnd(const tk_verifier *v, uint32_t i) {
    return v->f->value.at[v->op->opnd[i]].type;
}
static inline const tk_type *tk_vres(const tk_verifier *v, uint32_t i) {
    return v->f->value.at[v->op->res[i]].type;
}
static inline bool tk_same_shape(const tk_type *x, const tk_type *y) {
    for (unsigned i = 0; i < x->rank && i < y->rank; i++) {
        if (x->dim[i] != y->dim[i]) {
            return false;
        }
    }
    return x->rank == y->rank;
}
bool tk_vaxis(tk_verifier *v, const tk_type *t); // attribute axis is one of t's
bool tk_vsame(tk_verifier *v, const tk_type *x, const tk_type *y, const char *what);
bool tk_vshape(tk_verifier *v, const tk_type *x, unsigned rank,
               const int64_t *dim); // x's shape is that

// Operand and result types and attributes; ids, counts and the kinds of operands hold already.
bool tk_verify_op_types(tk_verifier *v); // verify_op.c
bool tk_verify_across(tk_verifier *v);   // verify_across.c: reductions, scans, sorting, products
bool tk_verify_access(tk_verifier *v);   // verify_access.c: dim, load, store, atomics, fetch, call
bool tk_verify_ring(tk_verifier *v);     // verify_ring.c: ring, take, release
bool tk_verify_in_shared(
    tk_verifier *v);                    // verify_ring.c: who takes tiles that lie in shared memory
bool tk_verify_control(tk_verifier *v); // verify_control.c: if, for, while, yield, return
bool tk_verify_layouts(tk_verifier *v); // verify_layout.c: layouts of an op's values, shared
bool tk_verify_layout(tk_verifier *v, const tk_irvalue *x); // verify_layout.c: of one value
bool tk_verify_hold(tk_verifier *v); // verify_hold.c: what shared memory holds between loops
bool tk_verify_out(tk_verifier *v);  // verify_out.c: tiles that go out by tensor copies
bool tk_verify_copied_out(tk_verifier *v, const tk_type *view); // verify_out.c: of one store
bool tk_verify_order(tk_verifier *v);   // verify_order.c: barriers of v->f, at the staged level
bool tk_verify_combine(tk_verifier *v); // verify_control.c: the region of reduce_fn and scan_fn

#endif
