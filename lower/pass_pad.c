// SPDX-License-Identifier: Apache-2.0
// pad: makes the extents of tiles powers of two.
//
// in:    tile level
// out:   each extent of a tile is a power of two: the least that is not below what it was
// keeps: every real element, bit for bit, but for the order of float sums and products; which
//        elements of tensors are read and written; when asserts and assumptions hold
// needs: nothing; functions of one module change together
// when not: a tile would have more than TK_MAX_TILE_ELEMS elements, or a function that combines
//           elements more than TK_MAX_REGION_DEPTH regions within each other: refused
//
// Each value gets its padded type first. What stands in the padding is anything, and an op that
// computes element by element needs no change: nothing traps. The others are changed so that the
// padding is not seen; see pad.h. Values that only count elements (the mask of what is real along
// an axis) are made anew for each op; cse and licm make them one.
#include "lower/pad.h"

#include <string.h>

// ---- Types --------------------------------------------------------------------------------------

static bool fits(const tk_type *t) {
    for (unsigned i = 0; i < t->rank; i++) {
        if (tk_pad_extent(t->dim[i]) != t->dim[i]) {
            return false;
        }
    }
    return true;
}

static bool is_tile(const tk_type *t) { return t->kind == TK_T_VALUE && t->rank > 0; }

static tk_span place(const tk_pad *p, tk_vid v) {
    const tk_op *def = tk_value_def(p->f, v);
    const tk_region *r = p->f->value.at[v].region;
    return tk_loc_span(p->c->m, def ? def->loc : r && r->owner ? r->owner->loc : p->f->loc);
}

static bool small_enough(tk_pad *p, tk_vid v, const tk_type *from, const tk_type *to) {
    if (tk_type_elems(to) <= TK_MAX_TILE_ELEMS) {
        return true;
    }
    tk_error(
        p->c->diags, place(p, v), "extent",
        "a tile of shape %s cannot be compiled for a GPU: with extents that are powers of two, "
        "%s, it has more than %lld elements",
        tk_shape_text(p->c->scratch, from->rank, from->dim),
        tk_shape_text(p->c->scratch, to->rank, to->dim), (long long)TK_MAX_TILE_ELEMS);
    return false;
}

static bool same_shape(const tk_type *a, const tk_type *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

static bool is_noted(const tk_pad *p, const tk_type *t) {
    for (uint32_t i = 0; i < p->noted.n; i++) {
        if (same_shape(p->noted.at[i], t)) {
            return true;
        }
    }
    return false;
}

// Where more than a third of a tile's elements are padding.
static void note(tk_pad *p, tk_vid v, const tk_type *from, const tk_type *to) {
    const int64_t real = tk_type_elems(from), all = tk_type_elems(to);
    if (3 * (all - real) <= all || is_noted(p, from)) {
        return;
    }
    tk_vec_push(p->c->scratch, &p->noted, from);
    tk_notes *n = &p->c->m->notes;
    tk_note_rec *r = tk_note_add(n, "pad", "padded", place(p, v), TK_NOTE_INFO,
                                 "tiles of shape %s are computed as %s",
                                 tk_shape_text(p->c->scratch, from->rank, from->dim),
                                 tk_shape_text(p->c->scratch, to->rank, to->dim));
    tk_note_number_add(n, r, "percent padding", (double)(100 * (all - real) / all));
}

// Gives all values their padded types. False where there is nothing to do, or after an error.
static bool change_types(tk_pad *p) {
    tk_arena *a = p->f->module->arena;
    int64_t most = 0, live = 0; // elements of the largest tile, and before
    bool any = false;
    tk_vec_push(p->c->scratch, &p->real, NULL);
    for (tk_vid v = 1; v < p->f->value.n; v++) {
        const tk_type *t = tk_value_type(p->f, v);
        const bool change = is_tile(t) && !fits(t);
        tk_vec_push(p->c->scratch, &p->real, change ? t : NULL);
        if (!change) {
            continue;
        }
        const tk_type *to = tk_pad_type(a, t);
        if (!small_enough(p, v, t, to)) {
            return false;
        }
        p->f->value.at[v].type = to;
        note(p, v, t, to);
        any = true;
        live = tk_type_elems(to) > most || (tk_type_elems(to) == most && tk_type_elems(t) > live)
                   ? tk_type_elems(t)
                   : live;
        most = tk_type_elems(to) > most ? tk_type_elems(to) : most;
    }
    if (p->f->is_kernel && any) {
        p->f->module->live = live;
    }
    for (uint32_t i = 0; i < p->f->results.n; i++) {
        const tk_type *t = p->f->results.at[i];
        p->f->results.at[i] = is_tile(t) ? tk_pad_type(a, t) : t;
    }
    return any;
}

// ---- Ops ----------------------------------------------------------------------------------------

// What is printed is the real elements.
static void print(tk_pad *p, tk_op *op) {
    tk_arena *a = p->f->module->arena;
    TK_VEC(int64_t) shown = {0};
    bool any = false;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_type *t = tk_pad_real(p, op->opnd[i]);
        any = any || tk_pad_is(p, op->opnd[i], TK_PAD_ALL);
        for (unsigned d = 0; d < t->rank; d++) {
            tk_vec_push(a, &shown, t->dim[d]);
        }
    }
    if (any && op->at.nshown == 0) {
        op->at.shown = shown.at;
        op->at.nshown = shown.n;
    }
}

// Padded parts would stand in other places of a padded tile. The pass that makes parts comes later.
static void parts(tk_pad *p, const tk_op *op) {
    const tk_vid part = op->code == TK_OP_INSERT ? op->opnd[1] : op->res[0];
    if (tk_pad_is(p, op->opnd[0], TK_PAD_ALL) || tk_pad_is(p, part, TK_PAD_ALL)) {
        tk_error(p->c->diags, tk_loc_span(p->c->m, op->loc), "extent",
                 "'%s' of a tile %s: its extents are no powers of two", tk_op_info(op->code)->name,
                 tk_type_text(p->c->scratch, tk_pad_real(p, op->opnd[0])));
    }
}

static void one(tk_pad *p, tk_op *op) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (op->code) {
#include "ir/ops.def"
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
    case TK_OP_BROADCAST:
    case TK_OP_PERMUTE:
    case TK_OP_INTERLEAVE: // the last extent doubles, padded or not
    case TK_OP_DEINTERLEAVE:
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_PHILOX:
    case TK_OP_DIM:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
    case TK_OP_CALL:
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
    case TK_OP_CONVERT: // of levels below
    case TK_OP_RING:
    case TK_OP_FETCH:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
    case TK_OP_WAIT:
    case TK_OP_BARRIER:
        break;
    case TK_OP_RESHAPE:
    case TK_OP_CONCAT:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_GATHER:
        tk_pad_move(p, op);
        break;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_SCAN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        tk_pad_across(p, op);
        break;
    case TK_OP_REDUCE_FN:
    case TK_OP_SCAN_FN:
        tk_pad_combine(p, op);
        break;
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        tk_pad_access(p, op);
        break;
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        op->opnd[0] = tk_pad_fill(p, op->opnd[0], TK_PAD_ALL, tk_const_bool(true));
        break;
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
        parts(p, op);
        break;
    case TK_OP_PRINT:
        print(p, op);
        break;
    case TK_OP_COUNT:
        break;
    }
}

static void region(tk_pad *p, tk_region *r) {
    for (tk_op *op = r->first, *next; op; op = next) {
        next = op->next;
        tk_vmap_operands(&p->map, op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            region(p, op->reg[i]);
        }
        p->before = op;
        p->loc = op->loc;
        one(p, op);
    }
}

void tk_pass_pad(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_pad p = {.c = c, .f = c->m->funcs.at[i], .map = {.arena = c->scratch}};
        if (!change_types(&p)) {
            continue;
        }
        if (p.f->grid) {
            region(&p, p.f->grid);
        }
        region(&p, p.f->body);
    }
}
