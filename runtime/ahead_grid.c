// SPDX-License-Identifier: Apache-2.0
// The grid of a kernel as steps that the run time takes at each launch (runtime/bundle.h). Both
// sides of an `if` are computed and one is chosen: nothing in a grid has an effect or fails.
#include "runtime/ahead.h"

typedef struct builder {
    tk_work *w;
    const tk_module *m;
    const tk_func *f;
    ahead_grid *g;
    uint32_t *step_of; // [values]: 1 + the step
    bool ok;
} builder;

static void refuse(builder *b, const tk_op *op, const char *what) {
    if (b->ok) {
        tk_error(&b->w->diags, b->m->locs.at[op->loc].span, "grid-ahead",
                 "%s in a grid: code compiled ahead computes it of sizes, scalars and exact "
                 "arithmetic, without loops",
                 what);
    }
    b->ok = false;
}

static uint32_t push(builder *b, tk_bundle_step s) {
    tk_vec_push(&b->w->arena, &b->g->step, s);
    return b->g->step.n; // 1 + its number
}

static tk_dtype dtype_of(const builder *b, tk_vid v) { return tk_value_type(b->f, v)->dtype; }

static uint32_t param_index(const builder *b, tk_vid v) {
    for (uint32_t i = 0; i < b->f->params.n; i++) {
        if (b->f->params.at[i] == v) {
            return i;
        }
    }
    return UINT32_MAX;
}

// The step that has a value; parameters get theirs when they are first used.
static uint32_t step_of(builder *b, tk_vid v) {
    if (!b->step_of[v]) {
        uint32_t p = param_index(b, v);
        TK_CHECK(&b->w->arena, p != UINT32_MAX);
        tk_bundle_step s = {.code = TK_STEP_SCALAR, .dtype = dtype_of(b, v), .at = {p, 0, 0}};
        b->step_of[v] = push(b, s);
    }
    return b->step_of[v] - 1;
}

static void region(builder *b, const tk_region *r);

static void choose(builder *b, const tk_op *op) {
    uint32_t condition = step_of(b, op->opnd[0]);
    region(b, op->reg[0]);
    region(b, op->reg[1]);
    for (uint32_t i = 0; i < op->nres && b->ok; i++) {
        tk_dtype t = dtype_of(b, op->res[i]);
        tk_bundle_step s = {.code = TK_STEP_NUM,
                            .dtype = t,
                            .of = t,
                            .at = {condition, step_of(b, op->reg[0]->last->opnd[i]),
                                   step_of(b, op->reg[1]->last->opnd[i])},
                            .bits = TK_NUM_SELECT};
        b->step_of[op->res[i]] = push(b, s);
    }
}

static void elementwise(builder *b, const tk_op *op, const tk_opinfo *info) {
    tk_bundle_step s = {.code = TK_STEP_NUM,
                        .dtype = dtype_of(b, op->res[0]),
                        .of = dtype_of(b, op->opnd[op->nopnd - 1]),
                        .bits = info->num};
    if (!info->exact) {
        refuse(b, op, tk_format(&b->w->arena, "'%s'", info->name));
        return;
    }
    for (uint32_t k = 0; k < op->nopnd; k++) {
        s.at[k] = step_of(b, op->opnd[k]);
    }
    b->step_of[op->res[0]] = push(b, s);
}

static void one(builder *b, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    tk_bundle_step s = {.code = TK_STEP_CONST};
    if (info->elementwise) {
        elementwise(b, op, info);
    } else if (op->code == TK_OP_IF) {
        choose(b, op);
    } else if (op->code == TK_OP_CONST) {
        s.dtype = dtype_of(b, op->res[0]);
        s.bits = op->at.value.bits;
        b->step_of[op->res[0]] = push(b, s);
    } else if (op->code == TK_OP_DIM) {
        s.code = TK_STEP_SIZE;
        s.dtype = dtype_of(b, op->res[0]);
        s.at[0] = param_index(b, op->opnd[0]);
        s.at[1] = (uint32_t)op->at.axis;
        b->step_of[op->res[0]] = push(b, s);
    } else if (op->code == TK_OP_CAST) {
        s.code = TK_STEP_CAST;
        s.dtype = dtype_of(b, op->res[0]);
        s.at[0] = step_of(b, op->opnd[0]);
        b->step_of[op->res[0]] = push(b, s);
    } else {
        refuse(b, op, tk_format(&b->w->arena, "'%s'", info->name));
    }
}

static void region(builder *b, const tk_region *r) {
    for (const tk_op *op = r->first; op && b->ok; op = op->next) {
        for (uint32_t i = 0; i < op->nres; i++) {
            const tk_type *t = tk_value_type(b->f, op->res[i]);
            if (t->kind != TK_T_VALUE || t->rank != 0) {
                refuse(b, op, "a tile");
                return;
            }
        }
        if (!tk_op_is_terminator(op)) {
            one(b, op);
        }
    }
}

bool ahead_grid_make(tk_work *w, const tk_module *m, ahead_grid *g) {
    builder b = {.w = w, .m = m, .g = g, .ok = true};
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        b.f = m->funcs.at[i]->is_kernel ? m->funcs.at[i] : b.f;
    }
    if (!b.f->grid) {
        return true;
    }
    b.step_of = TK_NEW_ARRAY(&w->arena, uint32_t, b.f->value.n + 1);
    region(&b, b.f->grid);
    const tk_op *yield = b.f->grid->last;
    for (uint32_t i = 0; i < yield->nopnd && b.ok; i++) {
        uint32_t step = step_of(&b, yield->opnd[i]);
        tk_vec_push(&w->arena, &g->count, step);
    }
    if (b.ok && g->step.n > TK_BUNDLE_STEPS) {
        refuse(&b, yield, tk_format(&w->arena, "%u operations", g->step.n));
    }
    return b.ok;
}
