// SPDX-License-Identifier: Apache-2.0
// What a GPU cannot do, said at the op.
#include "lower/lower.h"

void tk_gpu_refuse(tk_diags *diags, const tk_module *m, const tk_target *t, const tk_op *op,
                   const char *why) {
    const bool known = op->loc < m->locs.n;
    const bool loop = op->code == TK_OP_FOR || op->code == TK_OP_WHILE; // a 'for' may be either
    tk_diag *d =
        tk_error(diags, known ? m->locs.at[op->loc].span : (tk_span){0, 0, 0}, "gpu-refused",
                 "%s cannot be compiled for %s: %s",
                 loop ? "the loop" : tk_format(diags->arena, "'%s'", tk_op_info(op->code)->name),
                 t->name, why);
    for (tk_loc l = known ? m->locs.at[op->loc].from : 0; l && l < m->locs.n;
         l = m->locs.at[l].from) {
        tk_note(diags, d, m->locs.at[l].span, "called from here");
    }
}

tk_diag *tk_gpu_refuse_attr(tk_diags *diags, const tk_target *t, tk_span at, const char *attr,
                            const char *why) {
    return tk_error(diags, at, "gpu-refused", "'@%s' cannot be kept for %s: %s", attr, t->name,
                    why);
}
