// SPDX-License-Identifier: Apache-2.0
// From the checked program to the IR: the module and its functions. See build_internal.h.
#include "ir/build_internal.h"

// ---- Notes
static void unused(tk_bmod *b, tk_span at, const char *what, int64_t n) {
    tk_note_rec *r = tk_note_add(&b->m->notes, "build", "attribute-unused", at, TK_NOTE_INFO,
                                 "'%s' is kept for back ends that use it", what);
    if (n >= 0) {
        tk_note_number_add(&b->m->notes, r, what, (double)n);
    }
}

static void note_loops(tk_bmod *b, const tk_xblock *block) {
    for (uint32_t i = 0; block && i < block->list.n; i++) {
        const tk_xs *s = block->list.at[i];
        if (s->unroll) {
            unused(b, s->span, "unroll", s->unroll);
        }
        note_loops(b, s->body);
        note_loops(b, s->other);
    }
}

static void note_tune(tk_bmod *b) {
    const tk_kernel_attrs *at = &b->p->attrs;
    if (!at->tuned.n) {
        return;
    }
    tk_note_rec *r = tk_note_add(
        &b->m->notes, "build", "attribute-unused", at->tune_span, TK_NOTE_INFO,
        "'tune' is kept for tuners that try its values; taken is what is said elsewhere, else the "
        "first of a set");
    for (uint32_t i = 0; i < at->tuned.n; i++) {
        tk_note_number_add(&b->m->notes, r, at->tuned.at[i], (double)at->tuned_value.at[i]);
    }
}

// What is asked for and nothing uses yet.
static void note_attributes(tk_bmod *b) {
    note_tune(b);
    for (uint32_t i = 0; i < b->p->insts.n; i++) {
        note_loops(b, b->p->insts.at[i]->body);
    }
}

// ---- Functions
static void add_param(tk_bfn *f, const tk_var *v) {
    if (!tk_build_is_passed(v)) {
        return;
    }
    tk_bslot *s = tk_build_slot(f, v);
    s->cur = tk_func_param(f->fn, s->type, v->name);
    s->bound = true;
}

// Sizes at run time that have one name.
static void same_sizes(tk_bfn *f, const tk_var *v) {
    for (uint32_t d = 0; v->size && tk_build_is_passed(v) && d < v->type->rank; d++) {
        const tk_var *of = v->size[d].var;
        if (!of || !tk_build_is_passed(of) || v->type->dim[d] >= 0) {
            continue;
        }
        const tk_irvalue *value = f->fn->value.at;
        const uint32_t param = value[tk_build_slot(f, v)->cur].index,
                       is = value[tk_build_slot(f, of)->cur].index;
        const tk_same_size s = {{param, d}, tk_func_size(f->fn, is, v->size[d].axis)};
        tk_vec_push(f->arena, &f->fn->sizes, s);
    }
}

static void build_grid(tk_bfn *f) {
    const tk_program *p = f->b->p;
    if (p->ngrid == 0) {
        return;
    }
    TK_CHECK(f->arena, p->ngrid <= TK_MAX_GRID);
    f->fn->grid = tk_region_new(f->fn, NULL);
    f->at = f->fn->grid;
    tk_vid count[TK_MAX_GRID];
    for (uint32_t i = 0; i < p->ngrid; i++) {
        count[i] = tk_build_x(f, p->grid[i]);
    }
    tk_build_yield(f, p->grid[0]->span, p->ngrid, count);
    f->at = f->fn->body;
    for (uint32_t i = 0; i < p->ngrid; i++) {
        const tk_var *v = p->grid_var[i];
        tk_op *op = tk_build_emit1(f, v->span, TK_OP_PROGRAM_ID, 0, NULL, v->type);
        op->at.axis = (int)i;
        tk_build_assign(f, v->span, v, op->res[0]);
    }
}

// Result slots, and the flags of early exits.
static void begin_results(tk_bfn *f) {
    const tk_inst *inst = f->inst;
    f->ret = TK_NEW_ARRAY(f->arena, tk_bslot, inst->nresult);
    for (uint32_t i = 0; i < inst->nresult; i++) {
        const tk_type *t =
            tk_build_lift(f, inst->result[i], inst->lifted && inst->result[i]->rank == 0);
        f->ret[i] = (tk_bslot){.type = t, .name = "result", .bound = true};
        tk_vec_push(f->arena, &f->fn->results, t);
    }
    const tk_type *b = tk_type_scalar(f->arena, TK_BOOL);
    f->level = TK_NEW(f->arena, tk_blevel);
    f->level->skip = (tk_bslot){.type = b, .name = "returned"};
    f->returned = (tk_bslot){
        .type = tk_build_lift(f, b, inst->lifted), .name = "returned", .bound = inst->lifted};
}

static tk_func *build_function(tk_bmod *b, const tk_inst *inst, const char *name, bool masked) {
    tk_bfn f = {.b = b, .arena = b->arena, .inst = inst};
    tk_span span = {0};
    if (inst->fn) {
        span = inst->fn->span;
    }
    f.fn = tk_func_new(b->m, name, inst->is_kernel);
    f.fn->loc = tk_loc_new(b->m, span, 0);
    f.at = f.fn->body;
    for (uint32_t i = 0; i < inst->params.n; i++) {
        add_param(&f, inst->params.at[i]);
    }
    for (uint32_t i = 0; i < inst->params.n && inst->is_kernel; i++) {
        same_sizes(&f, inst->params.at[i]);
    }
    for (uint32_t i = 0; i < inst->captures.n; i++) {
        add_param(&f, inst->captures.at[i]);
    }
    begin_results(&f);
    tk_bmask active = {0};
    if (masked) {
        active.cond = tk_func_param(f.fn, f.returned.type, "active");
        f.mask = &active;
    }
    if (inst->is_kernel) {
        build_grid(&f);
    }
    tk_build_seq(&f, tk_build_seq_of(inst->body, NULL));
    tk_vid *v = TK_NEW_ARRAY(f.arena, tk_vid, inst->nresult);
    for (uint32_t i = 0; i < inst->nresult; i++) {
        v[i] = tk_build_read(&f, span, &f.ret[i]);
    }
    tk_build_emit(&f, span, TK_OP_RETURN, inst->nresult, v, 0, NULL, 0);
    return f.fn;
}

tk_module *tk_build_module(tk_arena *arena, const tk_sources *sources, const tk_program *p,
                           bool debug) {
    tk_bmod b = {.arena = arena, .p = p, .debug = debug};
    b.m = tk_module_new(arena, sources);
    b.m->attrs = p->attrs;
    tk_build_scan(&b);
    note_attributes(&b);
    for (uint32_t i = 0; i < p->insts.n; i++) {
        const tk_inst *inst = p->insts.at[i];
        tk_binst *in = tk_bmap_get(&b.insts, inst);
        if (in->masked) {
            in->func_masked =
                build_function(&b, inst, tk_format(arena, "%s.masked", inst->name), true);
        }
        if (in->plain || !in->masked) {
            in->func = build_function(&b, inst, inst->name, false);
        }
    }
    return b.m;
}
