// SPDX-License-Identifier: Apache-2.0
// Pass order: programs that read the same tiles run at the same time.
//
// in:    tile level
// out:   the same; the module's `group` where it pays
// keeps: everything: which block runs a program is nobody's business
// needs: chunk: it counts the bytes of tiles as they will be
// when not: one grid axis; no loop multiplies tiles of which some are the same for all programs
//           along axis 0 and others for all along axis 1
//
// Programs that run at once take g places along axis 0 and p / g along axis 1. They read g times
// what differs along axis 0 and p / g times what differs along axis 1, which is least where both
// are as much: of a square product of square tiles, where g is the root of p. What they read comes
// from the second-level cache but for the first of them, and the less that is the longer it stays.
#include "lower/differs.h"
#include "lower/lower.h"

#include "ir/pass_util.h"

enum { AT_ONCE = 128 }; // programs: one on each multiprocessor of a large GPU

typedef struct order {
    const tk_func *f;
    uint64_t bytes[2]; // that an iteration reads of what differs along this axis alone
    bool product;
} order;

enum { BOTH = 3 }; // the first two axes

static void one(void *user, tk_op *op) {
    order *o = user;
    if (op->in->owner && op->in->owner->code == TK_OP_FOR) {
        o->product = o->product || op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED;
        if (op->code == TK_OP_LOAD) {
            const tk_type *t = tk_value_type(o->f, op->res[0]);
            unsigned axes = 0;
            for (uint32_t i = 1; i < op->nopnd; i++) {
                axes |= tk_differs_along(o->f, op->opnd[i]) & BOTH;
            }
            const uint64_t bytes = (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
            o->bytes[0] += axes == 1 ? bytes : 0;
            o->bytes[1] += axes == 2 ? bytes : 0;
        }
    }
}

static void function(tk_pass_ctx *c, const tk_func *f) {
    order o = {.f = f};
    if (!f->grid || f->grid->last->nopnd < 2) {
        return;
    }
    tk_func_walk((tk_func *)(uintptr_t)f, one, &o); // changes nothing
    if (!o.product || !o.bytes[0] || !o.bytes[1]) {
        return;
    }
    int64_t group = 1; // the power of two next to the root of AT_ONCE * bytes[1] / bytes[0]
    while (2 * (uint64_t)(group * group) * o.bytes[0] <= AT_ONCE * o.bytes[1]) {
        group *= 2;
    }
    const int64_t cluster = c->m->attrs.cluster > 1 ? c->m->attrs.cluster : 1;
    group = (group + cluster - 1) / cluster * cluster; // a cluster's stand along axis 0
    c->m->group = group;
    tk_note_rec *n =
        tk_note_add(&c->m->notes, "order", "order", tk_loc_span(c->m, f->loc), TK_NOTE_DONE,
                    "programs that read the same tiles run at the same time: %lld "
                    "along axis 0, then the next along axis 1",
                    (long long)group);
    tk_note_number_add(&c->m->notes, n, "group", (double)group);
}

void tk_pass_order(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        if (c->m->funcs.at[i]->is_kernel) {
            function(c, c->m->funcs.at[i]);
        }
    }
}
