// SPDX-License-Identifier: Apache-2.0
// dce: removes what nothing uses: ops, carried values of loops and results of if, functions.
//
// in:    any level
// out:   each op has an effect or a result that something with an effect depends on
// keeps: effects, their order and their values; while loops (they may not end); asserts, assumes,
//        prints
// needs: nothing
// when not: functions are removed only where a kernel says what is reached
#include "ir/pass_util.h"

#include <string.h>

typedef struct dce {
    tk_pass_ctx *c;
    tk_func *f;
    uint8_t *live; // by value
    TK_VEC(tk_vid) work;
} dce;

static void mark(dce *d, tk_vid v) {
    if (v && !d->live[v]) {
        d->live[v] = 1;
        tk_vec_push(d->c->scratch, &d->work, v);
    }
}

static void mark_all(dce *d, uint32_t n, const tk_vid *v) {
    for (uint32_t i = 0; i < n; i++) {
        mark(d, v[i]);
    }
}

// Operands in front of the initial values, and arguments in front of the carried ones.
static uint32_t bounds(const tk_op *op) { return op->code == TK_OP_FOR ? 3 : 0; }
static uint32_t first_arg(const tk_op *op) { return op->code == TK_OP_FOR ? 1 : 0; }
static bool is_loop(const tk_op *op) { return op->code == TK_OP_FOR || op->code == TK_OP_WHILE; }
// The region that yields the results.
static const tk_region *result_region(const tk_op *op) {
    return op->reg[op->code == TK_OP_WHILE ? 1 : 0];
}

// ---- Marking ------------------------------------------------------------------------------------

// What an op needs that stays: for control ops all but what belongs to single results.
static void mark_op(dce *d, const tk_op *op) {
    if (is_loop(op)) {
        mark_all(d, bounds(op), op->opnd);
        if (op->code == TK_OP_WHILE) {
            mark_all(d, op->reg[0]->last->nopnd, op->reg[0]->last->opnd);
        }
        return;
    }
    mark_all(d, op->nopnd, op->opnd);
    if (op->code == TK_OP_REDUCE_FN || op->code == TK_OP_SCAN_FN) {
        mark_all(d, op->reg[0]->last->nopnd, op->reg[0]->last->opnd);
    }
}

// A carried value of a loop: its start, its next, and the result stand and fall together.
static void mark_carried(dce *d, const tk_op *op, uint32_t i) {
    mark(d, op->res[i]);
    mark(d, op->opnd[bounds(op) + i]);
    mark(d, result_region(op)->last->opnd[i]);
    for (uint32_t r = 0; r < op->nreg; r++) {
        mark(d, op->reg[r]->args.at[first_arg(op) + i]);
    }
}

static void follow(dce *d, tk_vid v) {
    const tk_irvalue *x = &d->f->value.at[v];
    const tk_op *op = x->def ? x->def : x->region ? x->region->owner : NULL;
    if (!op) {
        return;
    }
    mark_op(d, op);
    if (is_loop(op)) {
        if (x->def || x->index >= first_arg(op)) {
            mark_carried(d, op, x->def ? x->index : x->index - first_arg(op));
        }
    } else if (op->code == TK_OP_IF) {
        for (uint32_t r = 0; r < op->nreg; r++) {
            mark(d, op->reg[r]->last->opnd[x->index]);
        }
    }
}

static bool has_effect(const tk_op *op) {
    switch (tk_op_info(op->code)->effect) {
    case TK_FX_PURE:
    case TK_FX_READ:
        return false;
    case TK_FX_CONTROL:
        return op->code == TK_OP_WHILE;
    case TK_FX_WRITE:
    case TK_FX_ATOMIC:
    case TK_FX_RING:
    case TK_FX_DEBUG:
    case TK_FX_CALL:
        break;
    }
    return true;
}

// Marks what the ops with effects need; whether there are any.
static bool roots(dce *d, const tk_region *r) {
    bool any = false;
    for (const tk_op *op = r->first; op; op = op->next) {
        bool effect = has_effect(op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            effect = roots(d, op->reg[i]) || effect;
        }
        if (effect) {
            mark_op(d, op);
        }
        any = any || effect;
    }
    return any;
}

// ---- Sweeping -----------------------------------------------------------------------------------

// Leaves out list[skip + i] for each i whose keep[i] is 0; what stays gets its new index.
static uint32_t compact(dce *d, tk_vid *list, uint32_t n, uint32_t skip, const uint8_t *keep,
                        bool defines) {
    uint32_t to = skip;
    for (uint32_t i = skip; i < n; i++) {
        if (keep[i - skip]) {
            if (defines) {
                d->f->value.at[list[i]].index = to;
            }
            list[to++] = list[i];
        }
    }
    return to;
}

// Results that nothing uses go from an if, for or while, with what belongs to them.
static void drop_results(dce *d, tk_op *op) {
    uint8_t *keep = TK_NEW_ARRAY(d->c->scratch, uint8_t, op->nres);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < op->nres; i++) {
        keep[i] = d->live[op->res[i]];
        kept += keep[i];
    }
    if (kept == op->nres) {
        return;
    }
    for (uint32_t r = 0; r < op->nreg; r++) {
        tk_region *reg = op->reg[r];
        if (op->code == TK_OP_IF || reg == result_region(op)) {
            reg->last->nopnd = compact(d, reg->last->opnd, op->nres, 0, keep, false);
        }
        if (is_loop(op)) {
            reg->args.n = compact(d, reg->args.at, reg->args.n, first_arg(op), keep, true);
        }
    }
    if (is_loop(op)) {
        op->nopnd = compact(d, op->opnd, op->nopnd, bounds(op), keep, false);
    }
    op->nres = compact(d, op->res, op->nres, 0, keep, true);
}

static bool is_used(const dce *d, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (d->live[op->res[i]]) {
            return true;
        }
    }
    return false;
}

// Whether something with an effect is left in the region.
static bool sweep(dce *d, tk_region *r) {
    bool any = false;
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        if (tk_op_is_terminator(op)) {
            continue;
        }
        bool effect = has_effect(op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            effect = sweep(d, op->reg[i]) || effect;
        }
        any = any || effect;
        if (!effect && !is_used(d, op)) {
            tk_note_loop_dropped(d->c, "dce", op, "nothing uses its results");
            tk_op_unlink(op);
        } else if (op->code == TK_OP_IF || is_loop(op)) {
            drop_results(d, op);
        }
    }
    return any;
}

static void function(tk_pass_ctx *c, tk_func *f) {
    dce d = {.c = c, .f = f, .live = TK_NEW_ARRAY(c->scratch, uint8_t, f->value.n)};
    tk_region *part[] = {f->grid, f->body};
    for (int i = 0; i < 2; i++) {
        if (part[i]) {
            (void)roots(&d, part[i]);
            mark_all(&d, part[i]->last->nopnd, part[i]->last->opnd);
        }
    }
    while (d.work.n) {
        follow(&d, d.work.at[--d.work.n]);
    }
    for (int i = 0; i < 2; i++) {
        if (part[i]) {
            (void)sweep(&d, part[i]);
        }
    }
}

// ---- Functions ----------------------------------------------------------------------------------

typedef struct reach {
    tk_module *m;
    uint8_t *reached;
} reach;

static void reach_call(void *user, tk_op *op) {
    reach *r = user;
    for (uint32_t i = 0; op->code == TK_OP_CALL && i < r->m->funcs.n; i++) {
        r->reached[i] = r->reached[i] || strcmp(r->m->funcs.at[i]->name, op->at.callee) == 0;
    }
}

static void drop_functions(tk_pass_ctx *c) {
    tk_module *m = c->m;
    reach r = {m, TK_NEW_ARRAY(c->scratch, uint8_t, m->funcs.n)};
    bool has_kernel = false;
    for (uint32_t i = m->funcs.n; i > 0; i--) { // callers are behind their callees
        tk_func *f = m->funcs.at[i - 1];
        has_kernel = has_kernel || f->is_kernel;
        r.reached[i - 1] = r.reached[i - 1] || f->is_kernel;
        if (r.reached[i - 1]) {
            tk_func_walk(f, reach_call, &r);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; has_kernel && i < m->funcs.n; i++) {
        if (r.reached[i]) {
            m->funcs.at[kept++] = m->funcs.at[i];
        }
    }
    m->funcs.n = has_kernel ? kept : m->funcs.n;
}

void tk_pass_dce(tk_pass_ctx *c) {
    drop_functions(c);
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        function(c, c->m->funcs.at[i]);
    }
}
