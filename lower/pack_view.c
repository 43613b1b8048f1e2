// SPDX-License-Identifier: Apache-2.0
// Loads and stores of all programs of a block. See pack.h.
//
// A view that programs differ in by plain indices alone gets a tile of indices for each of these.
// The axis of programs then stands where the view's rule puts it: first, or behind the ranges
// before the one index. Any other view is written by tiles of indices alone, whose common shape has
// the axis first.
#include "lower/pack.h"
#include "lower/views.h"

#include <string.h>

typedef struct view {
    tk_packer *p;
    tk_op *op;
    const tk_type *type; // of the view, packed
    uint32_t rank;       // of the tensor
    unsigned at;         // where the view has the axis of programs
} view;

// ---- Tiles of indices ---------------------------------------------------------------------------

static tk_vid cast(tk_packer *p, tk_vid v, tk_dtype t) {
    const tk_type *from = tk_value_type(p->f, v);
    const tk_type *to = tk_type_with_dtype(p->c->m->arena, from, t);
    return from->dtype == t ? v : tk_pack_make(p, TK_OP_CAST, to, 1, &v);
}

// v in the packed view's rank: its axes from `first` of the program's on, the axis of programs
// before all where it has that, and ones elsewhere.
static tk_vid placed(const view *w, tk_vid v, unsigned first) {
    const tk_type *t = tk_value_type(w->p->f, v);
    const bool varies = tk_pack_varies(w->p, v);
    int64_t dim[TK_MAX_RANK];
    for (unsigned i = 0; i < w->type->rank; i++) {
        dim[i] = i == 0 && varies ? w->p->n : 1;
    }
    const unsigned from = varies ? 1 : 0;
    for (unsigned i = from; i < t->rank; i++) {
        dim[1 + first + i - from] = t->dim[i];
    }
    tk_vid r = tk_pack_reshape(w->p, v, w->type->rank, dim);
    if (varies) {
        tk_pack_set_varies(w->p, r);
    }
    return r;
}

// start + 0, 1, ... in a type in which what was outside the tensor stays outside.
static tk_vid range(const view *w, tk_vid start, int64_t n, unsigned axis) {
    enum { FAR = 62 };
    tk_packer *p = w->p;
    tk_arena *a = p->c->m->arena;
    const tk_type *t = tk_value_type(p->f, start);
    if (t->dtype == TK_U64) {
        tk_vid far = tk_pack_make(p, TK_OP_CONST, t, 0, NULL);
        tk_value_def(p->f, far)->at.value = tk_const_i64(TK_U64, (int64_t)1 << FAR);
        const bool varies = tk_pack_varies(p, start);
        start = tk_pack_make(p, TK_OP_MIN, t, 2, (tk_vid[]){start, far});
        if (varies) {
            tk_pack_set_varies(p, start);
        }
    }
    const bool wide = t->dtype == TK_U32 || t->dtype == TK_U64 || t->dtype == TK_I64;
    const tk_dtype to = wide ? TK_I64 : TK_I32;
    const bool varies = tk_pack_varies(p, start);
    start = cast(p, start, to);
    if (varies) {
        tk_pack_set_varies(p, start);
    }
    tk_vid steps = tk_pack_make(p, TK_OP_IOTA, tk_type_tile(a, TK_I32, 1, &n), 0, NULL);
    steps = placed(w, cast(p, steps, to), axis);
    start = varies ? placed(w, start, 0) : start;
    int64_t dim[TK_MAX_RANK];
    for (unsigned i = 0; i < w->type->rank; i++) {
        dim[i] = i == 0 && varies ? p->n : i == axis + 1 ? n : 1;
    }
    const tk_vid x[2] = {tk_pack_spread(p, start, w->type->rank, dim),
                         tk_pack_spread(p, steps, w->type->rank, dim)};
    return tk_pack_make(p, TK_OP_ADD, tk_value_type(p->f, x[0]), 2, x);
}

static unsigned own_rank(const view *w, uint32_t d) { // of a tile of indices, as a program has it
    const tk_vid v = w->op->opnd[1 + d];
    return tk_value_type(w->p->f, v)->rank - (tk_pack_varies(w->p, v) ? 1U : 0U);
}

// As tk_view_axes_of, of the view that a program has.
static void own_axes(const view *w, unsigned *first, unsigned *common) {
    unsigned tiles = 0, at;
    *common = 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->op->at.index[d] < 0) {
            const unsigned r = own_rank(w, d);
            tiles++;
            *common = r > *common ? r : *common;
        }
    }
    at = tiles > 1 ? *common : 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        const int64_t kind = w->op->at.index[d];
        first[d] = kind < 0 && tiles > 1 ? 0 : at;
        at += kind > 0 ? 1 : kind < 0 && tiles == 1 ? *common : 0;
    }
}

// All entries but plain indices that do not vary as tiles.
static void to_tiles(view *w) {
    tk_packer *p = w->p;
    tk_op *op = w->op;
    unsigned first[TK_MAX_TENSOR_RANK], common;
    own_axes(w, first, &common);
    uint32_t tiles = 0, last = 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        const int64_t kind = op->at.index[d];
        tk_vid *v = &op->opnd[1 + d];
        if (kind == 0 && !tk_pack_varies(p, *v)) {
            continue;
        }
        // A tile's axes are aligned right in those that it may have.
        *v = kind > 0 ? range(w, *v, kind, first[d])
                      : placed(w, *v, kind == 0 ? 0 : first[d] + common - own_rank(w, d));
        tiles++;
        last = d;
    }
    for (uint32_t d = 0; d < w->rank; d++) {
        const tk_type *t = tk_value_type(p->f, op->opnd[1 + d]);
        op->at.index[d] = t->rank ? -1 : 0;
    }
    if (tiles == 1) { // there is no other to give it the common shape
        tk_vid *v = &op->opnd[1 + last];
        *v = tk_pack_spread(p, *v, w->type->rank, w->type->dim);
    }
    w->at = 0;
}

// Plain indices that vary as lines of them, ranges as they are.
static void to_lines(view *w) {
    uint32_t lines = 0;
    unsigned ranges = 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->op->at.index[d] > 0) {
            ranges++;
        } else if (tk_pack_varies(w->p, w->op->opnd[1 + d])) {
            w->op->at.index[d] = -1;
            w->at = ranges;
            lines++;
        }
    }
    w->at = lines > 1 ? 0 : w->at; // the common shape of several comes first
}

static bool plain(const view *w) {
    for (uint32_t d = 0; d < w->rank; d++) {
        const int64_t kind = w->op->at.index[d];
        if (kind < 0 || (kind > 0 && tk_pack_varies(w->p, w->op->opnd[1 + d]))) {
            return false;
        }
    }
    return true;
}

// ---- Values -------------------------------------------------------------------------------------

// A packed value with its first axis where the view has it.
static tk_vid to_view(const view *w, tk_vid v) {
    const tk_type *t = tk_value_type(w->p->f, v);
    if (w->at == 0) {
        return v;
    }
    int64_t dim[TK_MAX_RANK];
    uint8_t perm[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < t->rank && i < TK_MAX_RANK; i++) {
        perm[i] = (uint8_t)(i < w->at ? i + 1 : i == w->at ? 0 : i);
        dim[i] = t->dim[perm[i]];
    }
    v = tk_pack_make(w->p, TK_OP_PERMUTE, tk_type_tile(w->p->c->m->arena, t->dtype, t->rank, dim),
                     1, &v);
    memcpy(tk_value_def(w->p->f, v)->at.perm, perm, sizeof perm);
    return v;
}

static void load_result(view *w) {
    tk_packer *p = w->p;
    tk_op *op = w->op;
    const tk_type *t = w->type;
    int64_t dim[TK_MAX_RANK];
    uint8_t perm[TK_MAX_RANK] = {(uint8_t)w->at};
    for (unsigned i = 0; i < t->rank && i < TK_MAX_RANK; i++) {
        dim[i] = t->dim[i < w->at ? i + 1 : i == w->at ? 0 : i];
        perm[i] = (uint8_t)(i == 0 ? w->at : i <= w->at ? i - 1 : i);
    }
    tk_vid old = op->res[0];
    p->f->value.at[old].type = tk_type_tile(p->c->m->arena, t->dtype, t->rank, dim);
    if (w->at) {
        p->before = op->next;
        tk_vid front = tk_pack_make(p, TK_OP_PERMUTE, t, 1, &old);
        memcpy(tk_value_def(p->f, front)->at.perm, perm, sizeof perm);
        tk_pack_replace(p, old, front);
    }
}

// Programs that there are none of store nothing.
static tk_vid store_mask(const view *w, tk_vid mask) {
    tk_packer *p = w->p;
    int64_t dim[TK_MAX_RANK] = {p->n};
    for (unsigned i = 1; i < w->type->rank; i++) {
        dim[i] = 1;
    }
    tk_vid exists = tk_pack_reshape(p, p->exists, w->type->rank, dim);
    exists = tk_pack_spread(p, exists, w->type->rank, w->type->dim);
    const tk_type *t = tk_value_type(p->f, exists);
    return mask ? tk_pack_make(p, TK_OP_AND, t, 2, (tk_vid[]){mask, exists}) : exists;
}

static void store_operands(view *w) {
    tk_packer *p = w->p;
    tk_op *op = w->op;
    const uint32_t value = 1 + w->rank;
    tk_vid mask = op->at.masked ? tk_pack_get(p, op->opnd[value + 1]) : 0;
    tk_vid *opnd = TK_NEW_ARRAY(p->c->m->arena, tk_vid, value + 2);
    memcpy(opnd, op->opnd, value * sizeof *opnd);
    opnd[value] = to_view(w, tk_pack_get(p, op->opnd[value]));
    opnd[value + 1] = to_view(w, store_mask(w, mask));
    op->opnd = opnd;
    op->nopnd = value + 2;
    op->at.masked = true;
}

void tk_pack_view(tk_packer *p, tk_op *op) {
    view w = {.p = p,
              .op = op,
              .type = tk_view_type(p->f, op),
              .rank = tk_value_type(p->f, op->opnd[0])->rank};
    const bool has_axis = op->code == TK_OP_STORE && tk_pack_varies(p, op->opnd[1 + w.rank]);
    w.type = has_axis ? w.type : tk_pack_type(p, w.type);
    if (plain(&w)) {
        to_lines(&w);
    } else {
        to_tiles(&w);
    }
    if (op->code == TK_OP_STORE) {
        store_operands(&w);
        return;
    }
    for (uint32_t i = 1 + w.rank; i < op->nopnd; i++) { // mask and other
        op->opnd[i] = to_view(&w, tk_pack_get(p, op->opnd[i]));
    }
    load_result(&w);
}
