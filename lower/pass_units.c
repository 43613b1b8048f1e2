// SPDX-License-Identifier: Apache-2.0
// Pass units: decides what multiplies the matrices of each dot.
//
// in:    tile level
// out:   attribute `unit` of each dot (units.h); the module's warps, where its author wrote none
//        and a matrix unit is used
// keeps: every value within the bounds of docs/language.md; integers exactly
// needs: pad, for extents; a target, else each thread multiplies for itself
// when not: what no unit of the target multiplies (units.c says which and why)
//
// It runs twice: before chunk, which leaves to registers what units make, and behind it, as parts
// of products may be too small for a unit.
#include "lower/lower.h"
#include "lower/units.h"

typedef struct units {
    const tk_pass_ctx *c;
    const tk_func *f;
    int64_t warps;
} units;

static void decide(void *user, tk_op *op) {
    const units *s = user;
    if (op->code == TK_OP_DOT) {
        op->at.unit = tk_dot_unit_of(s->c->target, s->f, op, s->warps).unit;
    }
}

void tk_pass_units(tk_pass_ctx *c) {
    tk_module *m = c->m;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        units s = {c, m->funcs.at[i], m->attrs.warps > 0 ? m->attrs.warps : 0};
        tk_func_walk(m->funcs.at[i], decide, &s);
        const unsigned warps = s.warps ? 0 : tk_warps_of_products(s.f);
        if (warps) {
            m->attrs.warps = warps;
        }
    }
}
