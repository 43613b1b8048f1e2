// SPDX-License-Identifier: Apache-2.0
// Makes ops on parts of tiles. See chunk.h.
#include "lower/chunk.h"
#include "lower/views.h"

#include <string.h>

// ---- Single ops ---------------------------------------------------------------------------------

static void place(tk_chunker *s, tk_op *op) {
    if (s->before) {
        tk_op_insert_before(s->before, op);
    } else {
        tk_op_append(s->in, op);
    }
}

tk_op *tk_chunk_op(tk_chunker *s, tk_opcode code, uint32_t nopnd, const tk_vid *opnd, uint32_t nres,
                   const tk_type *const *res) {
    tk_op *op = tk_op_new(s->f, code, s->loc, nopnd, opnd, nres, res, 0);
    place(s, op);
    return op;
}

tk_vid tk_chunk_unary(tk_chunker *s, tk_opcode code, tk_vid x, const tk_type *t) {
    return tk_chunk_op(s, code, 1, &x, 1, &t)->res[0];
}

// Of two values of one type; comparisons give bool.
tk_vid tk_chunk_binary(tk_chunker *s, tk_opcode code, tk_vid x, tk_vid y) {
    const tk_type *t = tk_chunk_type(s, x);
    tk_dtype r = tk_numop_result(tk_op_info(code)->num, t->dtype);
    t = r == t->dtype ? t : tk_type_with_dtype(s->c->m->arena, t, r);
    return tk_chunk_op(s, code, 2, (tk_vid[]){x, y}, 1, &t)->res[0];
}

tk_vid tk_chunk_const(tk_chunker *s, const tk_type *t, tk_const value) {
    tk_op *op = tk_chunk_op(s, TK_OP_CONST, 0, NULL, 1, &t);
    op->at.value = value;
    return op->res[0];
}

tk_vid tk_chunk_i32(tk_chunker *s, int64_t value) {
    return tk_chunk_const(s, tk_type_scalar(s->c->m->arena, TK_I32), tk_const_i64(TK_I32, value));
}

tk_vid tk_chunk_spread(tk_chunker *s, tk_vid x, const tk_type *t) {
    return tk_type_eq(tk_chunk_type(s, x), t) ? x : tk_chunk_unary(s, TK_OP_BROADCAST, x, t);
}

tk_vid tk_chunk_scaled(tk_chunker *s, tk_vid number, int64_t by) {
    return by == 1 ? number : tk_chunk_binary(s, TK_OP_MUL, number, tk_chunk_i32(s, by));
}

tk_vid tk_chunk_insert(tk_chunker *s, tk_vid tile, tk_vid x, const tk_part *p) {
    const tk_type *t = tk_chunk_type(s, tile);
    tk_vid opnd[2 + TK_MAX_RANK] = {tile, x};
    for (unsigned i = 0; i < p->rank; i++) {
        opnd[2 + i] = p->number[i] ? p->number[i] : tk_chunk_i32(s, 0);
    }
    return tk_chunk_op(s, TK_OP_INSERT, 2 + p->rank, opnd, 1, &t)->res[0];
}

static tk_vid extract(tk_chunker *s, tk_vid tile, const tk_part *p) {
    const tk_type *t = tk_part_type(s, tk_chunk_type(s, tile), p);
    tk_vid opnd[1 + TK_MAX_RANK] = {tile};
    for (unsigned i = 0; i < p->rank; i++) {
        opnd[1 + i] = p->number[i] ? p->number[i] : tk_chunk_i32(s, 0);
    }
    return tk_chunk_op(s, TK_OP_EXTRACT, 1 + p->rank, opnd, 1, &t)->res[0];
}

// ---- An op on parts -----------------------------------------------------------------------------

static tk_vid cast(tk_chunker *s, tk_vid x, tk_dtype t) {
    const tk_type *from = tk_chunk_type(s, x);
    return from->dtype == t
               ? x
               : tk_chunk_unary(s, TK_OP_CAST, x, tk_type_with_dtype(s->c->m->arena, from, t));
}

// start + number * piece, in a type in which what was outside the tensor stays outside.
static tk_vid moved(tk_chunker *s, tk_vid start, tk_vid number, int64_t piece) {
    enum { FAR = 62 };
    tk_dtype t = tk_chunk_type(s, start)->dtype;
    if (t == TK_U64) {
        tk_const far = tk_const_i64(TK_U64, (int64_t)1 << FAR);
        start =
            tk_chunk_binary(s, TK_OP_MIN, start, tk_chunk_const(s, tk_chunk_type(s, start), far));
    }
    t = t == TK_U32 || t == TK_U64 || t == TK_I64 ? TK_I64 : TK_I32;
    tk_vid by = cast(s, tk_chunk_scaled(s, number, piece), t);
    return tk_chunk_binary(s, TK_OP_ADD, cast(s, start, t), by);
}

// A view's ranges are cut with its tile.
static void cut_ranges(tk_chunker *s, const tk_op *op, const tk_part *p, tk_vid *opnd,
                       tk_attrs *at) {
    tk_view_axes v = tk_view_axes_of(s->f, op);
    for (uint32_t d = 0; d < v.n; d++) {
        unsigned axis = v.first[d];
        if (at->index[d] > 0 && p->count[axis] > 1) {
            at->index[d] /= p->count[axis];
            opnd[1 + d] = moved(s, opnd[1 + d], p->number[axis], at->index[d]);
        }
    }
}

static bool is_view(const tk_op *op) {
    return op->code == TK_OP_LOAD || op->code == TK_OP_STORE || op->code == TK_OP_ATOMIC_RMW ||
           op->code == TK_OP_ATOMIC_CAS;
}

tk_op *tk_chunk_again(tk_chunker *s, const tk_op *op, const tk_part *p, const tk_vid *opnd) {
    const tk_type **type = TK_NEW_ARRAY(s->a, const tk_type *, op->nres + 1);
    tk_vid *x = TK_NEW_ARRAY(s->a, tk_vid, op->nopnd + 1);
    tk_attrs at = op->at;
    at.unit = TK_UNIT_FMA; // decided anew: the part may be too small for the whole's
    if (op->nopnd) {
        memcpy(x, opnd, op->nopnd * sizeof *x);
    }
    if (is_view(op)) {
        cut_ranges(s, op, p, x, &at);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        type[i] = tk_part_type(s, tk_chunk_type(s, op->res[i]), p);
    }
    tk_loc loc = s->loc;
    s->loc = op->loc;
    tk_op *made = tk_chunk_op(s, op->code, op->nopnd, x, op->nres, type);
    s->loc = loc;
    at.part = at.part || op->code == TK_OP_ASSERT || op->code == TK_OP_ASSUME;
    made->at = at;
    made->fast = op->fast;
    return made;
}

static tk_vid part_of_iota(tk_chunker *s, tk_op *made, const tk_part *p) {
    const tk_type *t = tk_chunk_type(s, made->res[0]);
    if (!p->number[0]) {
        return made->res[0];
    }
    tk_vid first = tk_chunk_spread(s, tk_chunk_scaled(s, p->number[0], t->dim[0]), t);
    return tk_chunk_binary(s, TK_OP_ADD, made->res[0], first);
}

// A part of a slice is a part of what it is a slice of.
static bool is_renaming(const tk_op *op, const tk_part *p) {
    return op->code == TK_OP_SLICE && p->count[op->at.axis] > 1;
}

// A concatenation along what is cut: a part of the first or of the second.
static tk_vid one_of(tk_chunker *s, const tk_op *op, const tk_part *p, const tk_vid *opnd) {
    const tk_type *t = tk_chunk_type(s, opnd[0]);
    const int axis = op->at.axis;
    int64_t of_first = tk_chunk_type(s, op->opnd[0])->dim[axis] / t->dim[axis];
    tk_vid first = tk_chunk_binary(s, TK_OP_LT, p->number[axis], tk_chunk_i32(s, of_first));
    first = tk_chunk_spread(s, first, tk_type_with_dtype(s->c->m->arena, t, TK_BOOL));
    return tk_chunk_op(s, TK_OP_SELECT, 3, (tk_vid[]){first, opnd[0], opnd[1]}, 1, &t)->res[0];
}

// ---- A value's part, with all that it is made of ------------------------------------------------

typedef struct todo {
    TK_VEC(tk_part_node *) list;
} todo;

// Makes the node, or notes what must be made before it.
static void make(tk_chunker *s, tk_part_node *x, todo *t) {
    const tk_op *op = x->op;
    tk_vid *opnd = TK_NEW_ARRAY(s->a, tk_vid, op->nopnd + 1);
    bool ready = true;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (tk_part_is_whole(&x->in[i])) {
            opnd[i] = op->opnd[i];
            continue;
        }
        tk_part_node *y = tk_part_node_of(s, op->opnd[i], &x->in[i]);
        if (y->value) {
            opnd[i] = y->value;
        } else {
            tk_vec_push(s->a, &t->list, y);
            ready = false;
        }
    }
    if (!ready) {
        return;
    }
    if (is_renaming(op, &x->part)) {
        x->value = opnd[0];
        return;
    }
    if (op->code == TK_OP_CONCAT && x->part.count[op->at.axis] > 1) {
        x->value = one_of(s, op, &x->part, opnd);
        return;
    }
    tk_op *made = tk_chunk_again(s, op, &x->part, opnd);
    x->value = op->code == TK_OP_IOTA ? part_of_iota(s, made, &x->part)
                                      : made->res[s->f->value.at[x->v].index];
}

// Where parts come from, or which parts the node is made of.
static void begin(tk_chunker *s, tk_part_node *x) {
    if (tk_chunk_kept(s, x->v)) {
        x->value = extract(s, x->v, &x->part);
    } else if (s->kept[x->v] && tk_part_is_piece(s, tk_chunk_type(s, x->v), &x->part, true)) {
        x->value = extract(s, s->kept[x->v], &x->part);
    } else {
        TK_CHECK(s->a, x->op != NULL);
        x->in = TK_NEW_ARRAY(s->a, tk_part, x->op->nopnd + 1);
        TK_CHECK(s->a, tk_part_operands(s, x->op, &x->part, x->in));
    }
}

tk_vid tk_chunk_value(tk_chunker *s, tk_vid v, const tk_part *p) {
    if (tk_part_is_whole(p)) {
        return v;
    }
    tk_part_node *root = tk_part_node_of(s, v, p);
    todo t = {0};
    tk_vec_push(s->a, &t.list, root);
    while (t.list.n) {
        tk_part_node *x = t.list.at[t.list.n - 1];
        if (x->value) {
            t.list.n--;
        } else if (x->in) {
            make(s, x, &t);
        } else {
            begin(s, x);
        }
    }
    return root->value;
}
