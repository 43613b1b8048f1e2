// SPDX-License-Identifier: Apache-2.0
// Parts of tiles, and which parts of an op's operands make a part of its results. See chunk.h.
#include "lower/chunk.h"
#include "lower/views.h"

#include <string.h>

const tk_type *tk_chunk_type(const tk_chunker *s, tk_vid v) { return tk_value_type(s->f, v); }

bool tk_chunk_is_tile(const tk_chunker *s, tk_vid v) {
    return tk_type_is_tile(tk_chunk_type(s, v));
}

int64_t tk_chunk_elems(const tk_chunker *s, tk_vid v) {
    return tk_chunk_is_tile(s, v) ? tk_type_elems(tk_chunk_type(s, v)) : 0;
}

tk_part tk_part_whole(const tk_type *t) {
    tk_part p = {.rank = t->kind == TK_T_VALUE ? t->rank : 0};
    for (unsigned i = 0; i < p.rank; i++) {
        p.count[i] = 1;
    }
    return p;
}

tk_part tk_part_along(const tk_type *t, unsigned axis, int64_t count, tk_vid number) {
    tk_part p = tk_part_whole(t);
    p.count[axis] = count;
    p.number[axis] = count > 1 ? number : 0;
    return p;
}

bool tk_part_is_whole(const tk_part *p) {
    for (unsigned i = 0; i < p->rank; i++) {
        if (p->count[i] > 1) {
            return false;
        }
    }
    return true;
}

bool tk_part_same(const tk_part *a, const tk_part *b) {
    for (unsigned i = 0; i < a->rank; i++) {
        if (a->count[i] != b->count[i] || a->number[i] != b->number[i]) {
            return false;
        }
    }
    return a->rank == b->rank;
}

const tk_type *tk_part_type(const tk_chunker *s, const tk_type *t, const tk_part *p) {
    int64_t dim[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < t->rank; i++) {
        dim[i] = t->dim[i] / p->count[i];
    }
    return tk_type_with_shape(s->c->m->arena, t, t->rank, dim);
}

bool tk_chunk_cut(const tk_chunker *s, const tk_type *t, int axis, unsigned *cut, int64_t *count) {
    unsigned at = 0;
    while (axis < 0 && at + 1 < t->rank && t->dim[at] == 1) {
        at++;
    }
    at = axis < 0 ? at : (unsigned)axis;
    int64_t n = 1, elems = tk_type_elems(t);
    while (n < t->dim[at] && elems / n > s->want) {
        n *= 2;
    }
    *cut = at;
    *count = n;
    return n > 1;
}

// ---- Operands -----------------------------------------------------------------------------------

// Of a tile of type t that is stretched to one that p is a part of.
static tk_part stretched(const tk_part *p, const tk_type *t) {
    tk_part q = tk_part_whole(t);
    for (unsigned i = 0; i < q.rank; i++) {
        unsigned at = i + p->rank - q.rank;
        if (t->dim[i] > 1) {
            q.count[i] = p->count[at];
            q.number[i] = p->number[at];
        }
    }
    return q;
}

// Axes begin .. end-1 of a shape, which a reshape keeps together.
typedef struct group {
    unsigned begin, end;
} group;

// The number of a part among all pieces of the group's row-major order, which it must be one of:
// axes are cut to single elements before the next is cut.
static bool pieces(tk_chunker *s, const tk_part *p, const int64_t *dim, group g, int64_t *count,
                   tk_vid *number) {
    bool cut = false; // into pieces of several elements: no later axis may be
    *count = 1;
    *number = 0;
    for (unsigned i = g.begin; i < g.end; i++) {
        if (dim[i] == 1) {
            continue;
        }
        if (cut && p->count[i] > 1) {
            return false;
        }
        cut = cut || p->count[i] < dim[i];
        if (p->count[i] > 1 && !s->dry) {
            tk_vid high = *number ? tk_chunk_scaled(s, *number, p->count[i]) : 0;
            *number = high ? tk_chunk_binary(s, TK_OP_ADD, high, p->number[i]) : p->number[i];
        }
        *count *= p->count[i];
    }
    return true;
}

// The same number as a part of other axes.
static bool distribute(tk_chunker *s, const int64_t *dim, group g, int64_t count, tk_vid number,
                       tk_part *out) {
    int64_t rest = count;
    for (unsigned i = g.begin; i < g.end && rest > 1; i++) {
        int64_t n = dim[i] < rest ? dim[i] : rest;
        if (rest % n != 0 || dim[i] % n != 0) {
            return false;
        }
        out->count[i] = n;
        if (n > 1 && !s->dry) {
            int64_t low = rest / n;
            tk_vid x =
                low > 1 ? tk_chunk_binary(s, TK_OP_DIV, number, tk_chunk_i32(s, low)) : number;
            out->number[i] =
                rest < count ? tk_chunk_binary(s, TK_OP_REM, x, tk_chunk_i32(s, n)) : x;
        }
        rest /= n;
    }
    return rest == 1;
}

static bool reshaped(tk_chunker *s, const tk_type *to, const tk_type *from, const tk_part *p,
                     tk_part *in) {
    group r = {0, 0}, x = {0, 0};
    *in = tk_part_whole(from);
    while (r.end < to->rank || x.end < from->rank) {
        int64_t nr = 1, nx = 1, count;
        tk_vid number;
        r.begin = r.end;
        x.begin = x.end;
        do {
            if (r.end < to->rank && (nr <= nx || x.end == from->rank)) {
                nr *= to->dim[r.end++];
            } else {
                nx *= from->dim[x.end++];
            }
        } while (nr != nx);
        if (!pieces(s, p, to->dim, r, &count, &number) ||
            !distribute(s, from->dim, x, count, number, in)) {
            return false;
        }
    }
    return true;
}

// Tiles among the indices, the value, mask and the rest of a view.
static bool view(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    tk_view_axes v = tk_view_axes_of(s->f, op);
    for (uint32_t i = 1; i < op->nopnd; i++) {
        const tk_type *t = tk_chunk_type(s, op->opnd[i]);
        if (!tk_type_is_tile(t)) {
            in[i] = tk_part_whole(t);
        } else if (i > v.n) {
            in[i] = *p;
        } else {
            tk_part axes = {.rank = v.count[i - 1]};
            memcpy(axes.count, p->count + v.first[i - 1], axes.rank * sizeof *axes.count);
            memcpy(axes.number, p->number + v.first[i - 1], axes.rank * sizeof *axes.number);
            in[i] = stretched(&axes, t);
        }
    }
    return true;
}

// Of the operand of a slice along what is cut: the pieces must be pieces of it too.
static bool sliced(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    const tk_type *from = tk_chunk_type(s, op->opnd[0]), *to = tk_chunk_type(s, op->res[0]);
    const int axis = op->at.axis;
    in[0] = *p;
    if (p->count[axis] == 1) {
        return true;
    }
    int64_t piece = to->dim[axis] / p->count[axis];
    if (op->at.start % piece != 0 || from->dim[axis] % piece != 0) {
        return false;
    }
    in[0].count[axis] = from->dim[axis] / piece;
    if (!s->dry) {
        in[0].number[axis] =
            tk_chunk_binary(s, TK_OP_ADD, p->number[axis], tk_chunk_i32(s, op->at.start / piece));
    }
    return true;
}

static void flipped(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    const int axis = op->at.axis;
    in[0] = *p;
    if (p->count[axis] > 1 && !s->dry) {
        in[0].number[axis] =
            tk_chunk_binary(s, TK_OP_SUB, tk_chunk_i32(s, p->count[axis] - 1), p->number[axis]);
    }
}

// Rows of a and columns of b, of rank 2, or 3 with a batch axis.
static bool product(const tk_part *p, uint32_t nopnd, uint32_t b, tk_part *in) {
    const unsigned m = p->rank - 2, n = p->rank - 1;
    for (uint32_t i = 0; i < nopnd; i++) { // scales go with what they scale
        in[i] = *p;
        if (i < 2 * b) {
            unsigned inner = i < b ? n : m;
            in[i].count[inner] = 1;
            in[i].number[inner] = 0;
        }
    }
    return true;
}

// Along what is cut a part is one of the first operand's or one of the second's: which, the code
// finds out; the numbers here stay in range (chunk_make.c).
static bool joined(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    const int axis = op->at.axis;
    const int64_t piece = tk_chunk_type(s, op->res[0])->dim[axis] / p->count[axis];
    for (uint32_t i = 0; i < 2; i++) {
        const tk_type *from = tk_chunk_type(s, op->opnd[i]);
        in[i] = *p;
        if (p->count[axis] == 1) {
            continue;
        }
        if (from->dim[axis] % piece != 0) {
            return false;
        }
        in[i].count[axis] = from->dim[axis] / piece;
        in[i].number[axis] = 0;
        if (in[i].count[axis] > 1 && !s->dry) {
            int64_t before = i ? tk_chunk_type(s, op->opnd[0])->dim[axis] / piece : 0;
            tk_vid n = tk_chunk_binary(s, TK_OP_SUB, p->number[axis], tk_chunk_i32(s, before));
            n = tk_chunk_binary(s, TK_OP_MAX, n, tk_chunk_i32(s, 0));
            in[i].number[axis] =
                tk_chunk_binary(s, TK_OP_MIN, n, tk_chunk_i32(s, in[i].count[axis] - 1));
        }
    }
    return true;
}

static bool gathered(const tk_op *op, const tk_part *p, tk_part *in) {
    in[0] = in[1] = *p;
    in[0].count[op->at.axis] = 1;
    in[0].number[op->at.axis] = 0;
    return true;
}

// The same part of every operand, where the op does not work along what is cut.
static bool alike(const tk_op *op, const tk_part *p, tk_part *in, int axis) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        in[i] = *p;
    }
    return axis == TK_AXIS_ALL || p->count[axis] == 1;
}

static bool elementwise(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        in[i] = tk_chunk_is_tile(s, op->opnd[i]) ? *p : (tk_part){0};
    }
    return true;
}

// Parts of a part of a kept tile; its numbers are scalars.
static void extracted(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    const tk_type *from = tk_chunk_type(s, op->opnd[0]), *to = tk_chunk_type(s, op->res[0]);
    in[0] = *p;
    for (unsigned i = 0; i < p->rank; i++) {
        int64_t outer = from->dim[i] / to->dim[i];
        in[i + 1] = (tk_part){0};
        in[0].count[i] = outer * p->count[i];
        if (in[0].count[i] > 1 && !s->dry) {
            tk_vid high = outer > 1 ? tk_chunk_scaled(s, op->opnd[1 + i], p->count[i]) : 0;
            tk_vid low = p->number[i];
            in[0].number[i] =
                high && low ? tk_chunk_binary(s, TK_OP_ADD, high, low) : (high ? high : low);
        }
    }
}

static bool listed(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    if (tk_op_info(op->code)->elementwise) {
        return elementwise(s, op, p, in);
    }
    switch ((int)op->code) { // all else has no parts
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_PHILOX:
        return elementwise(s, op, p, in);
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
        return true;
    case TK_OP_BROADCAST:
        in[0] = stretched(p, tk_chunk_type(s, op->opnd[0]));
        return true;
    case TK_OP_RESHAPE:
        return reshaped(s, tk_chunk_type(s, op->res[0]), tk_chunk_type(s, op->opnd[0]), p, &in[0]);
    case TK_OP_PERMUTE:
        in[0] = *p;
        for (unsigned i = 0; i < p->rank; i++) {
            in[0].count[op->at.perm[i]] = p->count[i];
            in[0].number[op->at.perm[i]] = p->number[i];
        }
        return true;
    case TK_OP_LOAD:
    case TK_OP_STORE:
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        return view(s, op, p, in);
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        return elementwise(s, op, p, in);
    case TK_OP_SLICE:
        return sliced(s, op, p, in);
    case TK_OP_FLIP:
        flipped(s, op, p, in);
        return true;
    case TK_OP_INTERLEAVE:
        in[0] = in[1] = *p;
        return p->count[p->rank - 1] <= tk_chunk_type(s, op->opnd[0])->dim[p->rank - 1];
    case TK_OP_DEINTERLEAVE:
        in[0] = *p;
        return true;
    case TK_OP_CONCAT:
        return joined(s, op, p, in);
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_SCAN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
        return alike(op, p, in, op->at.axis);
    case TK_OP_GATHER:
        return gathered(op, p, in);
    case TK_OP_DOT:
        return product(p, op->nopnd, 1, in);
    case TK_OP_DOT_SCALED:
        return product(p, op->nopnd, 2, in);
    case TK_OP_EXTRACT:
        extracted(s, op, p, in);
        return true;
    }
    return false;
}

bool tk_part_operands(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in) {
    if (!listed(s, op, p, in)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_type *t = tk_chunk_type(s, op->opnd[i]);
        for (unsigned k = 0; k < in[i].rank; k++) {
            if (t->dim[k] % in[i].count[k] != 0) {
                return false;
            }
        }
    }
    return true;
}

tk_part_node *tk_part_node_of(tk_chunker *s, tk_vid v, const tk_part *p) {
    if (s->stamp[v] != s->epoch) {
        s->stamp[v] = s->epoch;
        s->node[v] = NULL;
    }
    for (tk_part_node *x = s->node[v]; x; x = x->next) {
        if (tk_part_same(&x->part, p)) {
            return x;
        }
    }
    tk_part_node *x = TK_NEW(s->a, tk_part_node);
    *x = (tk_part_node){.next = s->node[v], .v = v, .op = tk_value_def(s->f, v), .part = *p};
    s->node[v] = x;
    return x;
}
