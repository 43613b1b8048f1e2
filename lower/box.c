// SPDX-License-Identifier: Apache-2.0
// See box.h.
#include "lower/box.h"
#include "ir/out.h"
#include "lower/ring.h"
#include "lower/view_plan.h"
#include "lower/views.h"

enum {
    UNIT_BYTES = 16,  // of a row of a box, and of the column where it begins, a multiple
    SWIZZLE_ROWS = 8, // after so many rows the swizzle begins anew
    MOST = 32,        // boxes of a tile
};

static uint32_t least(int64_t a, uint32_t b) { return a < (int64_t)b ? (uint32_t)a : b; }

// How far a box goes along each axis of the tile, in the order in which they lie, as long as what
// it has is in one piece.
static void extend(const tk_type *t, const tk_placed *p, uint32_t *along) {
    bool whole = true;
    if (p->panel_rows == 1) { // panels of one row are not swizzled: the row lies in one piece
        along[p->fast] = least(t->dim[p->fast], TK_MAP_BOX);
        whole = (int64_t)along[p->fast] == t->dim[p->fast];
    } else {
        along[p->rows] = least(t->dim[p->rows], TK_MAP_BOX);
        whole = (int64_t)along[p->rows] == t->dim[p->rows] && p->panels == 1;
    }
    for (uint32_t a = t->rank; a-- > 0 && whole;) {
        if (a != p->fast && (int)a != p->rows) {
            along[a] = least(t->dim[a], TK_MAP_BOX);
            whole = (int64_t)along[a] == t->dim[a];
        }
    }
}

// Parts of the tile that different programs of a cluster bring: 1 where one brings it alone.
static uint32_t parts_of(const tk_func *f, const tk_op *op) {
    const tk_op *ring = op->code == TK_OP_FETCH ? tk_value_def(f, op->opnd[op->nopnd - 1]) : NULL;
    return ring && ring->at.cluster > 1 ? (uint32_t)ring->at.cluster : 1;
}

static bool rounds(const tk_func *f, const tk_op *op) {
    const tk_op *ring = op->code == TK_OP_FETCH ? tk_value_def(f, op->opnd[op->nopnd - 1]) : NULL;
    return ring && ring->at.precision == TK_PREC_TF32;
}

// Makes boxes smaller until each part has as many: along what is outermost in them.
static bool take_apart(const tk_type *t, const tk_placed *p, uint32_t size, uint32_t parts,
                       uint32_t *along) {
    enum { LEAST_BYTES = 128 }; // a box begins at a multiple of it
    for (;;) {
        uint32_t elems = 1, axis = 0;
        for (uint32_t a = 0; a < t->rank; a++) {
            elems *= along[a];
        }
        if (tk_type_elems(t) / elems % parts == 0) {
            return true;
        }
        while (axis < t->rank && (axis == p->fast || (int)axis == p->rows || along[axis] == 1)) {
            axis++;
        }
        uint32_t least_along = 2;
        if (axis == t->rank) {
            axis = p->panel_rows == 1 ? p->fast : (uint32_t)p->rows;
            least_along = p->panel_rows == 1 ? 2 : 2 * SWIZZLE_ROWS;
        }
        if (along[axis] < least_along || elems * size < 2 * LEAST_BYTES) {
            return false;
        }
        along[axis] /= 2;
    }
}

static const char *fits(const tk_type *t, const tk_placed *p, const uint32_t *along,
                        tk_boxes *out) {
    out->elems = 1;
    for (uint32_t a = 0; a < t->rank; a++) {
        out->elems *= along[a];
    }
    out->n = (uint32_t)(tk_type_elems(t) / out->elems);
    if (p->span < UNIT_BYTES) {
        return "its rows have fewer than 16 bytes";
    }
    if (p->panel_rows > 1 && p->panel_rows < SWIZZLE_ROWS && p->panels * p->outer > 1) {
        return "it has 2 or 4 rows at once";
    }
    return out->n <= MOST ? NULL : "it takes too many boxes";
}

const char *tk_boxes_of(const tk_func *f, const tk_op *op, tk_boxes *out) {
    const tk_type *t = tk_view_type(f, op);
    const tk_view_axes v = tk_view_axes_of(f, op);
    if (v.n < 1 || v.n > TK_MAP_RANK) {
        return "the tensor has more than 5 dimensions";
    }
    if (op->at.index[v.n - 1] <= 0) {
        return "its last index is one number";
    }
    const unsigned fast = v.first[v.n - 1], size = (unsigned)tk_dtype_size(t->dtype);
    const tk_layout l = tk_layout_placed(t->rank, t->dim, fast, size);
    tk_placed p;
    uint32_t along[TK_MAX_RANK];
    for (uint32_t a = 0; a < TK_MAX_RANK; a++) {
        along[a] = 1;
    }
    if (!tk_layout_is_placed(&l, size, &p)) {
        return "its tile is too large";
    }
    along[fast] = p.span / size;
    extend(t, &p, along);
    if (!take_apart(t, &p, size, parts_of(f, op), along)) {
        return "it has no equal parts for the programs of a cluster";
    }
    *out = (tk_boxes){.map = {.param = f->value.at[op->opnd[0]].index,
                              .rank = v.n,
                              .dtype = t->dtype,
                              .span = p.span > UNIT_BYTES && p.panel_rows > 1 ? p.span : 0,
                              .tf32 = rounds(f, op)}};
    for (uint32_t d = 0; d < v.n; d++) {
        if (op->at.index[d] < 0) {
            return "it is indexed by a tile";
        }
        out->axis[d] = op->at.index[d] > 0 ? v.first[d] : -1;
        out->map.box[v.n - 1 - d] = out->axis[d] >= 0 ? along[out->axis[d]] : 1;
    }
    return fits(t, &p, along, out);
}

const char *tk_boxes_why_not(const tk_axis *x, const tk_target *t, const tk_op *op,
                             unsigned log_warps) {
    tk_boxes b;
    if (!t || !t->bulk) {
        return "the target has none";
    }
    const char *why = tk_boxes_of(x->func, op, &b);
    if (why) {
        return why;
    }
    const tk_tensor_facts facts = x->facts ? x->facts[b.map.param] : 0;
    if (!(facts & TK_FACT_MAP)) {
        return !(facts & TK_FACT_UNIT)      ? "its last stride is not known to be 1"
               : !(facts & TK_FACT_ALIGNED) ? "its rows are not known to begin at multiples of 16 "
                                              "bytes"
                                            : "no tensor map is promised";
    }
    const tk_layout l = tk_fetch_layout(x->func, op, log_warps);
    const tk_view_plan p = tk_view_plan_of(x, op, &l);
    const bool unit = p.aligned && p.vec * tk_dtype_size(b.map.dtype) == UNIT_BYTES;
    return unit ? NULL : "its place in a row is not known to be a multiple of 16 bytes";
}

// ---- Maps ---------------------------------------------------------------------------------------

static bool same(const tk_map_spec *a, const tk_map_spec *b) {
    bool eq = a->param == b->param && a->rank == b->rank && a->dtype == b->dtype &&
              a->span == b->span && a->tf32 == b->tf32;
    for (uint32_t d = 0; d < a->rank && eq; d++) {
        eq = a->box[d] == b->box[d];
    }
    return eq;
}

uint32_t tk_map_find(const tk_map_list *list, const tk_map_spec *s) {
    uint32_t i = 0;
    while (i < list->n && !same(&list->at[i], s)) {
        i++;
    }
    return i;
}

typedef struct collector {
    tk_arena *arena;
    const tk_func *f;
    tk_map_list *out;
} collector;

static void collect(void *user, tk_op *op) {
    collector *c = user;
    tk_boxes b;
    if ((op->code == TK_OP_FETCH && op->at.how == TK_HOW_TENSOR) || tk_is_copied_out(op)) {
        const char *why = tk_boxes_of(c->f, op, &b);
        TK_CHECK(c->arena, !why);
        if (tk_map_find(c->out, &b.map) == c->out->n) {
            tk_vec_push(c->arena, c->out, b.map);
        }
    }
}

void tk_maps_of(tk_arena *arena, const tk_func *f, tk_map_list *out) {
    collector c = {arena, f, out};
    tk_func_walk((tk_func *)(uintptr_t)f, collect, &c); // changes nothing
}
