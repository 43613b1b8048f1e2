// SPDX-License-Identifier: Apache-2.0
// Modules, functions, regions, ops and values: made, linked, found and walked. See ir.h.
#include "ir/ir.h"

#include <string.h>

// ---- Modules and functions ----------------------------------------------------------------------

tk_module *tk_module_new(tk_arena *arena, const tk_sources *sources) {
    tk_module *m = TK_NEW(arena, tk_module);
    m->arena = arena;
    m->sources = sources;
    m->level = TK_LEVEL_TILE;
    m->notes.arena = arena;
    tk_location unknown = {{0, 0, 0}, 0};
    tk_vec_push(arena, &m->locs, unknown);
    return m;
}

// The module's own copy of a type: the caller's may be gone before the module is.
static const tk_type *type_own(tk_arena *a, const tk_type *type) {
    if (type->kind != TK_T_VALUE && type->kind != TK_T_TENSOR) {
        return type;
    }
    tk_type *own = TK_NEW(a, tk_type);
    *own = *type;
    return own;
}

static tk_vid value_new(tk_func *f, const tk_type *type, const char *name) {
    tk_arena *a = f->module->arena;
    tk_irvalue v = {.type = type_own(a, type), .name = name ? tk_strdup(a, name) : NULL};
    tk_vec_push(a, &f->value, v);
    return f->value.n - 1;
}

tk_func *tk_func_new(tk_module *m, const char *name, bool is_kernel) {
    tk_func *f = TK_NEW(m->arena, tk_func);
    f->module = m;
    f->name = tk_strdup(m->arena, name);
    f->is_kernel = is_kernel;
    (void)value_new(f, tk_type_void(), NULL); // value 0 is none
    f->body = tk_region_new(f, NULL);
    tk_vec_push(m->arena, &m->funcs, f);
    return f;
}

tk_vid tk_func_param(tk_func *f, const tk_type *type, const char *name) {
    tk_vid v = value_new(f, type, name);
    f->value.at[v].index = f->params.n;
    tk_vec_push(f->module->arena, &f->params, v);
    return v;
}

tk_size_ref tk_func_size(const tk_func *f, uint32_t param, uint32_t axis) {
    for (uint32_t i = 0; i < f->sizes.n; i++) {
        const tk_same_size *s = &f->sizes.at[i];
        if (s->of.param == param && s->of.axis == axis) {
            return s->is;
        }
    }
    return (tk_size_ref){param, axis};
}

tk_region *tk_region_new(tk_func *f, tk_op *owner) {
    tk_region *r = TK_NEW(f->module->arena, tk_region);
    r->func = f;
    r->owner = owner;
    return r;
}

tk_vid tk_region_arg(tk_region *r, const tk_type *type, const char *name) {
    tk_vid v = value_new(r->func, type, name);
    r->func->value.at[v].region = r;
    r->func->value.at[v].index = r->args.n;
    tk_vec_push(r->func->module->arena, &r->args, v);
    return v;
}

tk_loc tk_loc_new(tk_module *m, tk_span span, tk_loc from) {
    if (m->locs.n > 1) { // neighbours often share one
        tk_location last = m->locs.at[m->locs.n - 1];
        if (last.from == from && last.span.file == span.file && last.span.begin == span.begin &&
            last.span.end == span.end) {
            return m->locs.n - 1;
        }
    }
    tk_location l = {span, from};
    tk_vec_push(m->arena, &m->locs, l);
    return m->locs.n - 1;
}

tk_func *tk_module_find(const tk_module *m, const char *name) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (strcmp(m->funcs.at[i]->name, name) == 0) {
            return m->funcs.at[i];
        }
    }
    return NULL;
}

// ---- Ops ----------------------------------------------------------------------------------------

tk_op *tk_op_new(tk_func *f, tk_opcode code, tk_loc loc, uint32_t nopnd, const tk_vid *opnd,
                 uint32_t nres, const tk_type *const *res, uint32_t nreg) {
    tk_arena *a = f->module->arena;
    tk_op *op = TK_NEW(a, tk_op);
    op->code = code;
    op->loc = loc;
    op->nopnd = nopnd;
    op->nres = nres;
    op->nreg = nreg;
    op->opnd = TK_NEW_ARRAY(a, tk_vid, nopnd);
    op->res = TK_NEW_ARRAY(a, tk_vid, nres);
    op->reg = TK_NEW_ARRAY(a, tk_region *, nreg);
    op->at.axis = TK_AXIS_ALL;
    op->at.shared = -1;
    for (uint32_t i = 0; i < nopnd; i++) {
        op->opnd[i] = opnd[i];
    }
    for (uint32_t i = 0; i < nres; i++) {
        tk_vid v = value_new(f, res[i], NULL);
        f->value.at[v].def = op;
        f->value.at[v].index = i;
        op->res[i] = v;
    }
    return op;
}

void tk_op_append(tk_region *r, tk_op *op) {
    op->in = r;
    op->prev = r->last;
    op->next = NULL;
    if (r->last) {
        r->last->next = op;
    } else {
        r->first = op;
    }
    r->last = op;
}

void tk_op_insert_before(tk_op *at, tk_op *op) {
    tk_region *r = at->in;
    op->in = r;
    op->prev = at->prev;
    op->next = at;
    if (at->prev) {
        at->prev->next = op;
    } else {
        r->first = op;
    }
    at->prev = op;
}

void tk_op_unlink(tk_op *op) {
    tk_region *r = op->in;
    if (op->prev) {
        op->prev->next = op->next;
    } else {
        r->first = op->next;
    }
    if (op->next) {
        op->next->prev = op->prev;
    } else {
        r->last = op->prev;
    }
    op->prev = NULL;
    op->next = NULL;
    op->in = NULL;
}

const tk_type *tk_value_type(const tk_func *f, tk_vid v) { return f->value.at[v].type; }

const tk_layout *tk_value_layout(const tk_func *f, tk_vid v) { return f->value.at[v].layout; }

void tk_value_lay(tk_func *f, tk_vid v, const tk_layout *l) { f->value.at[v].layout = l; }

bool tk_value_same_layout(const tk_func *f, tk_vid x, tk_vid y) {
    const tk_layout *a = tk_value_layout(f, x), *b = tk_value_layout(f, y);
    return a == b || (a && b && tk_layout_eq(a, b));
}

tk_op *tk_value_def(const tk_func *f, tk_vid v) { return f->value.at[v].def; }

bool tk_op_is_terminator(const tk_op *op) {
    return op->code == TK_OP_YIELD || op->code == TK_OP_RETURN;
}

void tk_print_extents(const tk_func *f, const tk_op *op, uint32_t i, int64_t dim[TK_MAX_RANK]) {
    uint32_t before = 0;
    for (uint32_t k = 0; k < i; k++) {
        before += tk_value_type(f, op->opnd[k])->rank;
    }
    const tk_type *t = tk_value_type(f, op->opnd[i]);
    for (uint32_t d = 0; d < t->rank; d++) {
        dim[d] = op->at.nshown ? op->at.shown[before + d] : t->dim[d];
    }
}

// ---- Walks --------------------------------------------------------------------------------------

// The function called may unlink the op that it is given.
static void region_walk(tk_region *r, void (*f)(void *user, tk_op *op), void *user) {
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        tk_op_walk(op, f, user);
    }
}

void tk_op_walk(tk_op *op, void (*f)(void *user, tk_op *op), void *user) {
    f(user, op);
    for (uint32_t i = 0; i < op->nreg; i++) {
        region_walk(op->reg[i], f, user);
    }
}

void tk_func_walk(tk_func *fn, void (*f)(void *user, tk_op *op), void *user) {
    if (fn->grid) {
        region_walk(fn->grid, f, user);
    }
    region_walk(fn->body, f, user);
}
