// SPDX-License-Identifier: Apache-2.0
// Pass layout: gives each tile a layout, and moves tiles between layouts where ops need it.
//
// in:    tile level, calls inlined, extents powers of two
// out:   laid-out level: each tile value has a layout; convert ops where one is needed in another
// keeps: every value, bit for bit
// needs: inline
// when not: a tile extent that is no power of two (the pass pad leaves none) is refused
//
// Each shape has one blocked layout, of which the fastest axis is the one along which loads and
// stores of that shape are contiguous, and 16 bytes of the narrowest type so accessed stand in one
// thread, but no more than 16 of any that is stored. A shape that is not accessed, but that another
// which is becomes by reshaping, has the layout that reshaping gives. Loads, stores, atomics and
// ops that work across threads use it. Element-wise ops take the layout of their first operand that
// has one of its own, and that could not be made anew in that of another, which could not; a
// reduction's result is the slice of its operand's layout, so that it meets its operand again by
// broadcasting without moving. Constants, iotas and broadcasts of scalars have no layout of their
// own: they are made anew in any layout, and so is, instead of being moved between threads, what a
// few cheap ops make of them. A loop carries a value in the layout of its initial value, or, where
// that has none of its own, in the one that the body gives it.
//
// What a matrix unit makes has the unit's layout (ir/matrix.h), and so has what is computed of it
// element by element, and what a loop adds it to, until a store or another op wants it otherwise.
// What is read of a ring has the layout that it would have, were it loaded there: sums of floats
// are rounded as with one stage.
#include "lower/lower.h"
#include "lower/remake.h"
#include "lower/ring.h"
#include "lower/shapes.h"
#include "lower/units.h"
#include "lower/views.h"

#include "ir/move.h"

#include <string.h>

typedef struct assign {
    tk_pass_ctx *c;
    tk_func *f;
    tk_arena *a; // the module's: layouts stay
    tk_shapes shapes;
    unsigned log_warps;
    bool rows;           // tk_products_in_rows
    TK_VEC(tk_vid) read; // by value that lies in shared memory: what was read of it; 0: nothing
    bool refused;
} assign;

static const tk_type *type_of(const assign *s, tk_vid v) { return tk_value_type(s->f, v); }

static bool is_tile(const assign *s, tk_vid v) {
    const tk_type *t = type_of(s, v);
    return t->kind == TK_T_VALUE && t->rank > 0;
}

static const tk_layout *keep(const assign *s, tk_layout l) { return tk_layout_new(s->a, l); }

// ---- Products by matrix units

// The layout of what a matrix unit makes; NULL: it makes nothing of op.
static const tk_layout *product_layout(const assign *s, const tk_op *op) {
    tk_matrix m;
    tk_layout left;
    if (op->code != TK_OP_DOT || op->at.unit == TK_UNIT_FMA ||
        !tk_matrix_of(s->f, op, op->at.unit, &m, NULL)) {
        return NULL;
    }
    tk_layout l = tk_matrix_layout(&m, type_of(s, op->res[0]), s->log_warps, s->rows);
    if (tk_ring_lies(s->f, op->opnd[0], &left)) {
        tk_matrix_spread(&m, &left, &l);
    }
    return keep(s, l);
}

static void see_product(void *user, tk_op *op) {
    assign *s = user;
    const tk_layout *l = product_layout(s, op);
    if (l) {
        tk_shape_rule_of(&s->shapes, type_of(s, op->res[0]))->product = l;
    }
}

// Whether l is the layout of products of this shape.
static bool is_of_product(assign *s, const tk_type *t, const tk_layout *l) {
    const tk_layout *p = l && t->rank > 1 ? tk_shape_rule_of(&s->shapes, t)->product : NULL;
    return p && tk_layout_eq(p, l);
}

// ---- Layouts of values

static const tk_layout *layout_of(const assign *s, tk_vid v) { return s->f->value.at[v].layout; }

static void give(assign *s, tk_vid v, const tk_layout *l) {
    if (is_tile(s, v)) {
        s->f->value.at[v].layout = l;
    }
}

static bool is_free(const assign *s, tk_vid v) { return tk_is_free(s->f, v); }

static tk_vid in_layout(assign *s, tk_op *at, tk_vid v, const tk_layout *l);

// The broadcast d made again, in layout l.
static tk_vid stretched_in(assign *s, tk_op *at, const tk_op *d, const tk_layout *l) {
    const tk_type *to = type_of(s, d->res[0]), *from = type_of(s, d->opnd[0]);
    const tk_layout *need = keep(s, tk_layout_project(l, from->rank, from->dim));
    const tk_op *moved = tk_value_def(s->f, d->opnd[0]);
    const bool again =
        moved && moved->code == TK_OP_CONVERT && !layout_of(s, moved->opnd[0])->shared;
    tk_vid x = again ? moved->opnd[0] : d->opnd[0];
    x = in_layout(s, at, x, need);
    tk_op *op = tk_op_new(s->f, TK_OP_BROADCAST, d->loc, 1, &x, 1, &to, 0);
    give(s, op->res[0], l);
    tk_op_insert_before(at, op);
    return op->res[0];
}

// The value v in layout l, for use before op `at`: itself, made anew, or converted.
static tk_vid in_layout(assign *s, tk_op *at, tk_vid v, const tk_layout *l) {
    if (!is_tile(s, v) || tk_layout_eq(layout_of(s, v), l)) {
        return v;
    }
    const tk_moving how = tk_moving_between(layout_of(s, v), l, type_of(s, v)->dtype);
    const bool stays = how.work == TK_WORK_THREAD;
    const tk_vid made = stays && !is_free(s, v) ? 0 : tk_remake(s->f, at, v, l);
    if (made) {
        return made;
    }
    const tk_type *t = type_of(s, v);
    const tk_op *d = tk_value_def(s->f, v);
    if (!stays && d && d->code == TK_OP_BROADCAST) { // what is stretched is less
        return stretched_in(s, at, d, l);
    }
    tk_op *op = tk_op_new(s->f, TK_OP_CONVERT, at->loc, 1, &v, 1, &t, 0);
    give(s, op->res[0], l);
    tk_op_insert_before(at, op);
    return op->res[0];
}

static void operand_in(assign *s, tk_op *op, uint32_t i, const tk_layout *l) {
    op->opnd[i] = in_layout(s, op, op->opnd[i], l);
}

static void region(assign *s, tk_region *r);

// The layout of an element-wise op: of a product; else of its first operand that has one of its
// own; but of a later one, in whose layout the first can be made anew, where that one cannot in the
// first's.
static const tk_layout *elementwise_layout(assign *s, const tk_op *op) {
    const tk_layout *l = NULL;
    tk_vid first = 0;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_vid v = op->opnd[i];
        if (is_of_product(s, type_of(s, v), layout_of(s, v))) {
            return layout_of(s, v);
        }
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_vid v = op->opnd[i];
        if (!is_tile(s, v) || is_free(s, v)) {
            continue;
        }
        if (!l) {
            l = layout_of(s, v);
            first = v;
        } else if (!tk_layout_eq(layout_of(s, v), l) && !tk_can_remake(s->f, v, l)) {
            return tk_can_remake(s->f, first, layout_of(s, v)) ? layout_of(s, v) : l;
        }
    }
    return l ? l : tk_shape_layout(&s->shapes, type_of(s, op->res[0]));
}

// All results and the tile operands of an element-wise op in one layout.
static void elementwise(assign *s, tk_op *op) {
    if (!is_tile(s, op->res[0])) {
        return;
    }
    const tk_layout *l = elementwise_layout(s, op);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        operand_in(s, op, i, l);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        give(s, op->res[i], l);
    }
}

static void broadcast(assign *s, tk_op *op) {
    const tk_type *to = type_of(s, op->res[0]), *from = type_of(s, op->opnd[0]);
    const tk_layout *l = tk_shape_layout(&s->shapes, to),
                    *product = tk_shape_rule_of(&s->shapes, to)->product;
    if (is_tile(s, op->opnd[0]) && product) { // of a product's rows: it stays where they are
        const tk_layout need = tk_layout_project(product, from->rank, from->dim);
        l = tk_layout_eq(&need, layout_of(s, op->opnd[0])) ? product : l;
    }
    give(s, op->res[0], l);
    if (is_tile(s, op->opnd[0])) {
        operand_in(s, op, 0, keep(s, tk_layout_project(l, from->rank, from->dim)));
    }
}

static void reshape(assign *s, tk_op *op) {
    const tk_type *to = type_of(s, op->res[0]);
    if (!is_tile(s, op->res[0]) || !is_tile(s, op->opnd[0])) { // one element: every thread has it
        const tk_type *tile = is_tile(s, op->res[0]) ? to : type_of(s, op->opnd[0]);
        if (tile->rank == 0) {
            return;
        }
        if (is_tile(s, op->res[0])) {
            give(s, op->res[0], tk_shape_layout(&s->shapes, to));
        }
        return;
    }
    give(s, op->res[0], keep(s, tk_layout_reshape(layout_of(s, op->opnd[0]), to->rank, to->dim)));
}

// The layout of a view. What a matrix unit made is stored as it is where that fills sectors of 32
// bytes: lanes have 8 elements side by side along either axis; and where moving it would take much
// shared memory.
static const tk_layout *stored_in(assign *s, const tk_op *op, const tk_type *t) {
    enum { WORD = 4, MUCH = 64 << 10 };
    const tk_layout *l = op->code == TK_OP_STORE ? layout_of(s, tk_view_value(s->f, op)) : NULL;
    const int64_t bytes = (int64_t)tk_dtype_size(t->dtype);
    const bool stays = bytes >= WORD || tk_type_elems(t) * bytes > MUCH;
    return stays && !op->at.staged && is_of_product(s, t, l) ? l : tk_shape_layout(&s->shapes, t);
}

static void view(assign *s, tk_op *op) {
    const tk_type *t = tk_view_type(s->f, op);
    if (t->rank == 0) {
        return;
    }
    const tk_layout *l = stored_in(s, op, t);
    tk_view_axes v = tk_view_axes_of(s->f, op);
    for (uint32_t i = 1; i < op->nopnd; i++) {
        bool index = i <= v.n;
        if (!index) {
            operand_in(s, op, i, l); // the value, the mask, what stands outside
        } else if (op->at.index[i - 1] == -1) {
            operand_in(s, op, i, keep(s, tk_view_index_layout(s->f, op, &v, l, i - 1)));
        }
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        give(s, op->res[i], l);
    }
}

static bool is_scan(const tk_op *op) { return op->code == TK_OP_SCAN || op->code == TK_OP_SCAN_FN; }

// The layout in which an op across threads makes a result.
static const tk_layout *made_in(assign *s, const tk_op *op, uint32_t i) {
    const tk_layout *l = product_layout(s, op);
    return l ? l : tk_shape_layout(&s->shapes, type_of(s, op->res[i]));
}

// What is the same in all iterations of the loop around a product goes to the registers that the
// unit reads it from, once, where it takes few and does not lie where the unit reads it.
static void left_operand(assign *s, tk_op *op) {
    enum { FEW = 128 }; // bytes of each thread
    tk_matrix m;
    tk_op *d = op->nopnd ? tk_value_def(s->f, op->opnd[0]) : NULL;
    if (op->code != TK_OP_DOT || op->at.unit == TK_UNIT_FMA || !d || d->in == op->in ||
        layout_of(s, op->opnd[0])->shared || !tk_matrix_of(s->f, op, op->at.unit, &m, NULL)) {
        return;
    }
    const tk_layout l = tk_matrix_a_layout(&m, layout_of(s, op->res[0]));
    if (tk_dtype_size(type_of(s, op->opnd[0])->dtype) << l.regs <= FEW) {
        op->opnd[0] = in_layout(s, d->next, op->opnd[0], keep(s, l));
    }
}

// Ops across threads: operands as they are, but for scans, which do most in the threads where their
// tiles are in one layout; results in the layout of their shape.
static void across(assign *s, tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (is_tile(s, op->res[i])) {
            give(s, op->res[i], made_in(s, op, i));
        }
    }
    left_operand(s, op);
    if (op->code == TK_OP_GATHER) {
        operand_in(s, op, 1, layout_of(s, op->res[0]));
    }
    for (uint32_t i = 0; is_scan(op) && i < op->nres; i++) {
        operand_in(s, op, i, layout_of(s, op->res[0]));
    }
    if ((op->code == TK_OP_DOT && op->nopnd == 3) ||
        (op->code == TK_OP_DOT_SCALED && op->nopnd == 5)) {
        operand_in(s, op, op->nopnd - 1, layout_of(s, op->res[0]));
    }
}

// ---- Control

static void yield_in(assign *s, tk_region *r, const tk_vid *like, uint32_t n) {
    tk_op *y = r->last;
    for (uint32_t i = 0; !s->refused && i < n; i++) {
        if (is_tile(s, y->opnd[i])) {
            operand_in(s, y, i, layout_of(s, like[i]));
        }
    }
}

static void branch(assign *s, tk_op *op) {
    region(s, op->reg[0]);
    region(s, op->reg[1]);
    for (uint32_t i = 0; !s->refused && i < op->nres; i++) {
        tk_vid a = op->reg[0]->last->opnd[i], b = op->reg[1]->last->opnd[i];
        give(s, op->res[i], is_tile(s, a) ? layout_of(s, is_free(s, a) ? b : a) : NULL);
    }
    yield_in(s, op->reg[0], op->res, op->nres);
    yield_in(s, op->reg[1], op->res, op->nres);
}

static const tk_layout *body_wish(assign *s, const tk_region *r, tk_vid arg, tk_vid yielded,
                                  unsigned depth);

static const tk_layout *wish_of(assign *s, const tk_region *r, tk_vid arg, tk_vid v, const tk_op *d,
                                unsigned depth) {
    if (d->code == TK_OP_REDUCE && d->at.axis >= 0) {
        const tk_layout *l = body_wish(s, r, arg, d->opnd[0], depth + 1);
        l = l ? l : tk_shape_layout(&s->shapes, type_of(s, d->opnd[0]));
        return keep(s, tk_layout_slice(l, (unsigned)d->at.axis));
    }
    if (tk_op_info(d->code)->elementwise || d->code == TK_OP_CAST || d->code == TK_OP_BITCAST) {
        const tk_layout *first = NULL;
        for (uint32_t i = 0; i < d->nopnd; i++) {
            const tk_layout *l =
                is_tile(s, d->opnd[i]) ? body_wish(s, r, arg, d->opnd[i], depth + 1) : NULL;
            if (is_of_product(s, type_of(s, d->opnd[i]), l)) {
                return l;
            }
            first = first ? first : l;
        }
        return first;
    }
    if (d->code == TK_OP_DOT) {
        return made_in(s, d, 0);
    }
    if (d->code == TK_OP_FOR) { // what its body gives
        uint32_t i = 0;
        while (d->res[i] != v) {
            i++;
        }
        const tk_layout *l =
            body_wish(s, d->reg[0], d->reg[0]->args.at[1 + i], d->reg[0]->last->opnd[i], depth + 1);
        return l ? l : tk_shape_layout(&s->shapes, type_of(s, v));
    }
    // An op with several results gives each its own shape.
    return is_free(s, v) || d->code == TK_OP_CONVERT ? NULL
                                                     : tk_shape_layout(&s->shapes, type_of(s, v));
}

// The layout in which the body makes the next value of `arg`, followed through element-wise ops;
// NULL: any.
static const tk_layout *body_wish(assign *s, const tk_region *r, tk_vid arg, tk_vid v,
                                  unsigned depth) {
    const tk_op *d = tk_value_def(s->f, v);
    if (v == arg || !d || depth > 24) {
        return NULL;
    }
    if (d->in != r) { // from outside: it has its layout already
        return is_free(s, v) ? NULL : layout_of(s, v);
    }
    return wish_of(s, r, arg, v, d, depth);
}

static void carry(assign *s, tk_op *op, uint32_t first_init, tk_region *body, uint32_t first_arg) {
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_vid init = op->opnd[first_init + i], arg = body->args.at[first_arg + i];
        if (!is_tile(s, init)) {
            continue;
        }
        const tk_layout *l = body_wish(s, body, arg, body->last->opnd[i], 0);
        l = is_free(s, init) || is_of_product(s, type_of(s, arg), l) ? l : layout_of(s, init);
        l = l ? l : tk_shape_layout(&s->shapes, type_of(s, init));
        operand_in(s, op, first_init + i, l);
        give(s, arg, l);
        give(s, op->res[i], l);
    }
}

static void loop(assign *s, tk_op *op) {
    carry(s, op, 3, op->reg[0], 1);
    region(s, op->reg[0]);
    yield_in(s, op->reg[0], op->res, op->nres);
}

static void loop_while(assign *s, tk_op *op) {
    carry(s, op, 0, op->reg[1], 0);
    for (uint32_t i = 0; i < op->nres; i++) {
        give(s, op->reg[0]->args.at[i], layout_of(s, op->res[i]));
    }
    region(s, op->reg[0]);
    region(s, op->reg[1]);
    yield_in(s, op->reg[1], op->res, op->nres);
}

// ---- Ops

static void refuse(assign *s, const tk_op *op, const char *id, const char *why) {
    const tk_module *m = s->f->module;
    tk_span at = op->loc < m->locs.n ? m->locs.at[op->loc].span : (tk_span){0, 0, 0};
    tk_error(s->c->diags, at, id, "%s", why);
    s->refused = true;
}

static bool extents_fit(assign *s, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_type *t = type_of(s, op->res[i]);
        unsigned axis;
        if (t->kind == TK_T_VALUE && t->rank > 0 && !tk_layout_fits(t, &axis)) {
            refuse(s, op, "extent",
                   tk_format(s->c->scratch,
                             "a tile of extent %lld has no layout: extents must be powers of two, "
                             "as the pass pad makes them",
                             (long long)t->dim[axis]));
            return false;
        }
    }
    return true;
}

// Each result is its operand with the axis reduced; several operands are reduced in one layout.
static void reduction(assign *s, tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        operand_in(s, op, i, layout_of(s, op->opnd[0]));
        if (is_tile(s, op->res[i])) {
            give(s, op->res[i],
                 keep(s, tk_layout_slice(layout_of(s, op->opnd[i]), (unsigned)op->at.axis)));
        }
    }
}

static void made_here(assign *s, tk_op *op) {
    if (is_tile(s, op->res[0])) {
        give(s, op->res[0], tk_shape_layout(&s->shapes, type_of(s, op->res[0])));
    }
}

// The layout of a part of a tile in its shape's layout; NULL, and refused: parts of this shape are
// no parts of those that the tile is kept in.
static const tk_layout *part_layout(assign *s, const tk_op *op, const tk_type *tile,
                                    const tk_type *part) {
    const tk_layout *l = tk_shape_layout(&s->shapes, part);
    if (tk_layout_eq(tk_shape_grown(&s->shapes, l, tile), tk_shape_layout(&s->shapes, tile))) {
        return l;
    }
    refuse(s, op, "parts",
           tk_format(s->c->scratch,
                     "a tile %s is worked on in parts of several shapes, which cannot be compiled "
                     "for a GPU yet: use a smaller tile",
                     tk_type_text(s->c->scratch, tile)));
    return NULL;
}

static void insert(assign *s, tk_op *op) {
    const tk_type *tile = type_of(s, op->opnd[0]);
    const tk_layout *l = part_layout(s, op, tile, type_of(s, op->opnd[1]));
    if (l) {
        operand_in(s, op, 0, tk_shape_layout(&s->shapes, tile));
        operand_in(s, op, 1, l);
        give(s, op->res[0], tk_shape_layout(&s->shapes, tile));
    }
}

static void extract(assign *s, tk_op *op) {
    const tk_type *tile = type_of(s, op->opnd[0]);
    const tk_layout *l = part_layout(s, op, tile, type_of(s, op->res[0]));
    if (l) {
        operand_in(s, op, 0, tk_shape_layout(&s->shapes, tile));
        give(s, op->res[0], l);
    }
}

// The layout in which the tile v of a ring would be, were it loaded.
static const tk_layout *loaded_in(assign *s, tk_vid v) {
    const tk_op *d = tk_value_def(s->f, v);
    return d->code == TK_OP_PERMUTE
               ? keep(s, tk_layout_permute(loaded_in(s, d->opnd[0]), d->at.perm))
               : tk_shape_layout(&s->shapes, type_of(s, v));
}

// The tile v, which lies in shared memory, in registers: read where it begins to be there, once.
static tk_vid out_of_shared(assign *s, tk_vid v, const tk_layout *l) {
    while (s->read.n <= v) {
        tk_vec_push(s->c->scratch, &s->read, 0);
    }
    if (!s->read.at[v]) {
        tk_op *def = s->f->value.at[v].def;
        const tk_type *t = type_of(s, v);
        tk_op *op = tk_op_new(s->f, TK_OP_CONVERT, def->loc, 1, &v, 1, &t, 0);
        give(s, op->res[0], l ? l : loaded_in(s, v));
        tk_op_insert_before(def->next, op);
        s->read.at[v] = op->res[0];
    }
    return s->read.at[v];
}

// Operands that lie in shared memory where the op works on registers.
static void read_shared(assign *s, tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_layout *l = is_tile(s, op->opnd[i]) ? layout_of(s, op->opnd[i]) : NULL;
        if (l && l->shared && !tk_takes_shared(s->f, op, i, l)) {
            const tk_layout *result = op->code == TK_OP_DOT ? made_in(s, op, 0) : NULL;
            tk_layout way;
            const bool known = tk_unit_way(s->f, op, i, l, result, &way);
            op->opnd[i] = out_of_shared(s, op->opnd[i], known ? keep(s, way) : NULL);
        }
    }
}

// Every op of the list: a new one does not build before it is taught here.
static void one(assign *s, tk_op *op) {
    if (!extents_fit(s, op)) {
        return;
    }
    read_shared(s, op);
    switch (op->code) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
#include "ir/ops.def"
    case TK_OP_CAST:
    case TK_OP_BITCAST:
        elementwise(s, op);
        return;
    case TK_OP_PHILOX:
        if (is_tile(s, op->opnd[1])) {
            elementwise(s, op);
        }
        return;
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
        made_here(s, op);
        return;
    case TK_OP_INSERT:
        insert(s, op);
        return;
    case TK_OP_EXTRACT:
        extract(s, op);
        return;
    case TK_OP_BROADCAST:
        broadcast(s, op);
        return;
    case TK_OP_RESHAPE:
        reshape(s, op);
        return;
    case TK_OP_PERMUTE:
        give(s, op->res[0], keep(s, tk_layout_permute(layout_of(s, op->opnd[0]), op->at.perm)));
        return;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
        reduction(s, op);
        return;
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_GATHER:
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        across(s, op);
        return;
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        view(s, op);
        return;
    case TK_OP_RING:
        give(s, op->res[0], keep(s, tk_ring_layout(s->f, op)));
        return;
    case TK_OP_TAKE:
        give(s, op->res[0], layout_of(s, op->opnd[0]));
        return;
    case TK_OP_IF:
        branch(s, op);
        return;
    case TK_OP_FOR:
        loop(s, op);
        return;
    case TK_OP_WHILE:
        loop_while(s, op);
        return;
    case TK_OP_DIM: // of scalars
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
    case TK_OP_ASSERT: // reads its operands wherever they are, as the next two
    case TK_OP_ASSUME:
    case TK_OP_PRINT:
    case TK_OP_CONVERT: // made here
    case TK_OP_FETCH:   // by all threads, of no tile but its ring's
    case TK_OP_RELEASE:
    case TK_OP_YIELD: // its owner's
    case TK_OP_RETURN:
    case TK_OP_WAIT: // of a later level
    case TK_OP_BARRIER:
    case TK_OP_PARTITION:
    case TK_OP_PROGRAMS:
    case TK_OP_CALL: // none is left
    case TK_OP_COUNT:
        return;
    }
}

static void region(assign *s, tk_region *r) {
    for (tk_op *op = r->first, *next; op && !s->refused; op = next) {
        next = op->next;
        one(s, op);
    }
}

void tk_pass_layout(tk_pass_ctx *c) {
    tk_module *m = c->m;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        assign s = {.c = c, .f = m->funcs.at[i], .a = m->arena};
        if (m->attrs.warps <= 0) {
            m->attrs.warps = tk_default_warps(s.f);
        }
        s.log_warps = tk_log_warps(s.f);
        s.shapes = (tk_shapes){.c = c, .f = s.f, .a = m->arena, .log_warps = s.log_warps};
        s.rows = tk_products_in_rows(s.f);
        tk_func_walk(s.f, see_product, &s);
        tk_shape_votes(&s.shapes);
        region(&s, s.f->body);
        tk_ring_release_early(s.f);
    }
    m->level = TK_LEVEL_LAID;
}
