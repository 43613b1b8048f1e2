// SPDX-License-Identifier: Apache-2.0
// Stores by tensor copies. See out.h.
#include "lower/out.h"

#include "lower/views.h"

enum { LANES = 32, HALF = 2 /* bytes */, ROW_BITS = 3, SMALL = 4096 /* bytes of a tile */ };

// ---- Matrices -----------------------------------------------------------------------------------

// Bits of a place within 16 bytes.
static uint32_t in_row(const tk_out_plan *p) { return TK_OUT_ROW_BYTES / p->size - 1; }

// The register bit at place `at`; regs: there is none.
static unsigned register_at(const tk_layout *l, uint32_t at) {
    unsigned i = 0;
    while (i < l->regs && l->reg[i] != at) {
        i++;
    }
    return i;
}

// Whether all bases but those of the matrix's own rows and columns leave the 16 bytes alone.
static bool others_are_rows(const tk_out_plan *p) {
    uint32_t all = 0;
    for (unsigned i = 0; i < p->places.regs; i++) {
        all |= i == p->pair ? 0 : p->places.reg[i];
    }
    for (unsigned i = 0; i < p->places.warps; i++) {
        all |= p->places.warp[i];
    }
    return (all & in_row(p)) == 0;
}

// Lane bits `from` .. hold the places 1 << first .. of 16 bytes.
static bool lanes_in_row(const tk_out_plan *p, unsigned from, unsigned n, unsigned first) {
    bool yes = true;
    for (unsigned i = 0; i < n; i++) {
        yes = yes && p->places.lane[from + i] == 1U << (first + i);
    }
    return yes;
}

static bool is_row(const tk_out_plan *p, uint32_t place) {
    return place != 0 && (place & in_row(p)) == 0;
}

// As matrix units have it: two elements side by side in registers, four lanes in a row.
static bool plain(tk_out_plan *p) {
    const tk_layout *l = &p->places;
    p->pair = register_at(l, 1);
    for (unsigned i = 0; i < ROW_BITS; i++) {
        p->row[i] = l->lane[2 + i];
    }
    return p->pair < l->regs && lanes_in_row(p, 0, 2, 1);
}

// Eight lanes in a row; a register's two elements and four lanes are in rows of their own.
static bool turned(tk_out_plan *p) {
    const tk_layout *l = &p->places;
    for (p->pair = 0; p->pair < l->regs && !is_row(p, l->reg[p->pair]);) {
        p->pair++;
    }
    p->turned = p->pair < l->regs && lanes_in_row(p, 2, ROW_BITS, 0);
    p->row[0] = p->turned ? l->reg[p->pair] : 0;
    p->row[1] = l->lane[0];
    p->row[2] = l->lane[1];
    return p->turned;
}

// Bits of the number of a piece in a place.
static uint32_t piece_bits(const tk_out_plan *p) { return (p->pieces - 1) * p->elems; }

static void find_matrices(tk_out_plan *p) {
    const tk_layout *l = &p->places;
    p->matrices = p->size == HALF && (plain(p) || turned(p)) && others_are_rows(p);
    for (unsigned i = 0; i < ROW_BITS; i++) {
        p->matrices = p->matrices && is_row(p, p->row[i]);
    }
    for (unsigned i = 0; p->matrices && i < l->regs && p->log_n < 2; i++) {
        if (i != p->pair && !(l->reg[i] & piece_bits(p))) {
            p->more[p->log_n++] = i;
        }
    }
}

// ---- The plan -----------------------------------------------------------------------------------

static unsigned fast_axis(const tk_func *f, const tk_op *op) {
    const tk_view_axes v = tk_view_axes_of(f, op);
    return v.first[v.n - 1];
}

tk_out_plan tk_out_plan_in(const tk_func *f, const tk_op *op, const tk_layout *l, uint32_t pieces,
                           uint32_t slots) {
    const tk_type *t = tk_view_type(f, op);
    tk_out_plan p = {.size = (unsigned)tk_dtype_size(t->dtype)};
    const char *why = tk_boxes_of(f, op, &p.boxes);
    TK_CHECK(f->module->arena, !why);
    p.shared = tk_layout_placed(t->rank, t->dim, fast_axis(f, op), p.size);
    p.places = tk_layout_places(l, &p.shared);
    p.pieces = pieces;
    p.slots = slots;
    p.elems = (uint32_t)tk_type_elems(t) / p.pieces;
    find_matrices(&p);
    p.run = tk_run_of(&p.places, t->dtype);
    return p;
}

tk_out_plan tk_out_plan_of(const tk_func *f, const tk_op *op) {
    return tk_out_plan_in(f, op, tk_value_layout(f, tk_view_value(f, op)), (uint32_t)op->at.pieces,
                          (uint32_t)op->at.slots);
}

uint32_t tk_out_together(const tk_out_plan *p) {
    if (!p->matrices) {
        return p->run.mask;
    }
    uint32_t mask = 1U << p->pair;
    for (unsigned i = 0; i < p->log_n; i++) {
        mask |= 1U << p->more[i];
    }
    return mask;
}

static uint32_t sum(const uint32_t *basis, unsigned n, uint32_t index) {
    uint32_t x = 0;
    for (unsigned i = 0; i < n; i++) {
        x ^= index >> i & 1 ? basis[i] : 0;
    }
    return x;
}

uint32_t tk_out_lane_place(const tk_out_plan *p, uint32_t lane, uint32_t warp) {
    if (!p->matrices) {
        return tk_layout_eval(&p->places, 0, lane, warp);
    }
    uint32_t x = sum(p->row, ROW_BITS, lane) ^ sum(p->places.warp, p->places.warps, warp);
    for (unsigned i = 0; i < p->log_n; i++) {
        x ^= lane >> (ROW_BITS + i) & 1 ? p->places.reg[p->more[i]] : 0;
    }
    return x;
}

uint32_t tk_out_register_place(const tk_out_plan *p, uint32_t r, uint32_t piece) {
    const uint32_t x = tk_layout_eval(&p->places, r, 0, 0) & ~piece_bits(p);
    return x + piece % p->slots * p->elems;
}

uint32_t tk_out_piece_of(const tk_out_plan *p, uint32_t r) {
    return (tk_layout_eval(&p->places, r, 0, 0) & piece_bits(p)) / p->elems;
}

// ---- Whether ------------------------------------------------------------------------------------

typedef struct context {
    const tk_axis *x;
    const tk_target *t;
    const tk_func *f;
    unsigned log_warps;
} context;

// By itself, whatever else the program does.
static const char *alone_why_not(const context *s, const tk_op *op) {
    const tk_type *t = tk_view_type(s->f, op);
    if (op->at.masked) {
        return "it has a mask";
    }
    if (tk_type_elems(t) * (int64_t)tk_dtype_size(t->dtype) < SMALL) {
        return "it is small";
    }
    const char *why = tk_boxes_why_not(s->x, s->t, op, s->log_warps);
    const uint32_t param = s->f->value.at[op->opnd[0]].index;
    if (!why && !(s->x->facts && (s->x->facts[param] & TK_FACT_WHOLE))) {
        why = "its rows are not known to be multiples of 16 bytes, of which a copy writes all";
    }
    return why;
}

static bool may_be(void *user, const tk_op *op) {
    return op->code == TK_OP_STORE &&
           (tk_is_copied_out(op) || !alone_why_not((const context *)user, op));
}

const char *tk_out_why_not(const tk_axis *x, const tk_target *t, const tk_func *f, const tk_op *op,
                           unsigned log_warps) {
    context s = {x, t, f, log_warps};
    const char *why = alone_why_not(&s, op);
    return why ? why : tk_out_in_order(f, op, may_be, &s);
}

// ---- What it costs ------------------------------------------------------------------------------

// The map is linear, so that all accesses conflict alike.
tk_requests tk_out_written(const tk_out_plan *p) {
    const uint32_t bytes = p->matrices ? (uint32_t)TK_OUT_ROW_BYTES : p->size << p->run.n;
    const unsigned lanes = p->matrices ? (unsigned)TK_OUT_MATRIX_ROWS << p->log_n : LANES;
    tk_requests one = {0, 0, 0};
    uint64_t at[LANES] = {0};
    for (unsigned i = 0; i < lanes; i++) {
        at[i] = (uint64_t)tk_out_lane_place(p, i, 0) * p->size;
    }
    tk_count_wavefronts(&one, lanes == LANES ? UINT32_MAX : (1U << lanes) - 1, at, bytes, false);
    const int together = __builtin_popcount(tk_out_together(p));
    const unsigned more = p->places.regs - (unsigned)together;
    return (tk_requests){one.requests << more, one.units << more, one.least << more};
}

uint32_t tk_out_barriers(const tk_op *op) {
    return (uint32_t)(op->at.pieces + (op->at.pieces - op->at.slots) + tk_op_in_loop(op));
}

// ---- Pieces -------------------------------------------------------------------------------------

// Whether no thread has different pieces for what registers say.
static bool by_registers(const tk_out_plan *p) {
    return (tk_layout_thread_bits(&p->places) & piece_bits(p)) == 0;
}

// Pieces are boxes, or several of them. Where there can be two in half the memory, one is written
// while the other is read.
bool tk_out_cut(const tk_func *f, tk_op *op) {
    const tk_attrs was = op->at;
    const int64_t parts = was.pieces / was.slots; // of the memory that all of it takes
    for (int64_t slots = 2; slots > 0; slots--) {
        op->at.slots = slots;
        op->at.pieces = 2 * parts * slots;
        if (op->at.pieces <= tk_type_elems(tk_view_type(f, op))) {
            const tk_out_plan p = tk_out_plan_of(f, op);
            if (p.pieces <= p.boxes.n && by_registers(&p)) {
                return true;
            }
        }
    }
    op->at = was;
    return false;
}
