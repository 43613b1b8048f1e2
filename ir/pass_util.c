// SPDX-License-Identifier: Apache-2.0
// Helpers of the passes. See pass_util.h.
#include "ir/pass_util.h"

#include <string.h>

void tk_vmap_set(tk_vmap *m, tk_vid old, tk_vid with) {
    if (old >= m->n) {
        uint32_t n = m->n ? m->n : 64;
        while (n <= old) {
            TK_CHECK(m->arena, n < UINT32_MAX / 2);
            n *= 2;
        }
        tk_vid *to = TK_NEW_ARRAY(m->arena, tk_vid, n);
        if (m->n) {
            memcpy(to, m->to, m->n * sizeof *to);
        }
        m->to = to;
        m->n = n;
    }
    m->to[old] = with;
}

// `with` was looked up when it was set, so one step is enough.
tk_vid tk_vmap_get(const tk_vmap *m, tk_vid v) { return v < m->n && m->to[v] ? m->to[v] : v; }

void tk_vmap_operands(const tk_vmap *m, tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        op->opnd[i] = tk_vmap_get(m, op->opnd[i]);
    }
}

unsigned tk_op_effects(const tk_op *op) {
    unsigned has = 0;
    switch (tk_op_info(op->code)->effect) {
    case TK_FX_PURE:
        break;
    case TK_FX_READ:
        has = TK_HAS_READ;
        break;
    case TK_FX_WRITE:
        has = TK_HAS_WRITE;
        break;
    case TK_FX_RING:
    case TK_FX_ATOMIC:
        has = TK_HAS_READ | TK_HAS_WRITE;
        break;
    case TK_FX_CONTROL:
        has = op->code == TK_OP_WHILE ? TK_HAS_WHILE : 0;
        break;
    case TK_FX_DEBUG:
        has = TK_HAS_DEBUG;
        break;
    case TK_FX_CALL:
        has = TK_HAS_READ | TK_HAS_WRITE | TK_HAS_DEBUG | TK_HAS_WHILE;
        break;
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            has |= tk_op_effects(x);
        }
    }
    return has;
}

const tk_const *tk_value_const(const tk_func *f, tk_vid v) {
    const tk_op *def = tk_value_def(f, v);
    return def && def->code == TK_OP_CONST ? &def->at.value : NULL;
}

tk_span tk_loc_span(const tk_module *m, tk_loc loc) { return m->locs.at[loc].span; }

const tk_region *tk_value_region(const tk_func *f, tk_vid v) {
    const tk_irvalue *x = &f->value.at[v];
    return x->def ? x->def->in : x->region;
}

bool tk_op_is_pure(const tk_op *op) {
    return tk_op_info(op->code)->effect == TK_FX_PURE && op->nreg == 0;
}

void tk_note_loop_dropped(tk_pass_ctx *c, const char *pass, const tk_op *op, const char *why) {
    if (op->code != TK_OP_FOR || (op->at.pipeline == 0 && op->at.unroll == 0)) {
        return;
    }
    tk_note_add(&c->m->notes, pass, "loop-dropped", tk_loc_span(c->m, op->loc), TK_NOTE_INFO,
                "the loop is gone, and its %s with it: %s", op->at.pipeline ? "pipeline" : "unroll",
                why);
}

bool tk_op_repeats(const tk_op *op) {
    return op->code == TK_OP_FOR || op->code == TK_OP_WHILE || op->code == TK_OP_PROGRAMS;
}

bool tk_op_uses_any(const tk_op *op, const tk_vid *v, uint32_t n) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (op->opnd[i] == v[k]) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            if (tk_op_uses_any(x, v, n)) {
                return true;
            }
        }
    }
    return false;
}
