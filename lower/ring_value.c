// SPDX-License-Identifier: Apache-2.0
// What a load gives whose tile was fetched. See ring.h.
#include "lower/make.h"
#include "lower/ring.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include "ir/pass_util.h"

typedef struct maker {
    tk_maker make;
    const tk_axis *x;
} maker;

// ---- What stands for elements that are not read -------------------------------------------------

// v, an integer, in a type in which what is outside the tensor stays outside when numbers of its
// elements are added.
static tk_vid as_wide(const maker *j, tk_op *before, tk_vid v) {
    enum { FAR = 62 };
    const tk_dtype t = tk_value_type(j->make.f, v)->dtype;
    const bool wide = t == TK_U32 || t == TK_U64 || t == TK_I64;
    if (t == TK_U64) {
        v = tk_maker_two(&j->make, before, TK_OP_MIN, v,
                         tk_maker_number(&j->make, before, t, (int64_t)1 << FAR));
    }
    const tk_dtype to = wide ? TK_I64 : TK_I32;
    return t == to
               ? v
               : tk_maker_op(&j->make, before, TK_OP_CAST, 1, &v, tk_maker_scalar(&j->make, to));
}

// v along axis `at` of a tile of that shape, or the same everywhere.
static tk_vid spread(const maker *j, tk_op *before, tk_vid v, unsigned at, const tk_type *shape) {
    const tk_type *t = tk_value_type(j->make.f, v);
    int64_t dim[TK_MAX_RANK] = {1, 1, 1, 1, 1};
    tk_arena *a = j->make.arena;
    if (t->rank) {
        dim[at] = t->dim[0];
        v = tk_maker_op(&j->make, before, TK_OP_RESHAPE, 1, &v,
                        tk_type_tile(a, t->dtype, shape->rank, dim));
    }
    return tk_maker_op(&j->make, before, TK_OP_BROADCAST, 1, &v,
                       tk_type_with_dtype(a, shape, t->dtype));
}

// Whether the index of dimension d is inside the tensor: a number, or a tile of a range's extent.
static tk_vid inside_along(const maker *j, tk_op *before, const tk_op *load, uint32_t d, bool low) {
    tk_arena *a = j->make.arena;
    tk_vid at = as_wide(j, before, load->opnd[1 + d]);
    const tk_dtype t = tk_value_type(j->make.f, at)->dtype;
    const int64_t n = load->at.index[d];
    const tk_type *type = tk_maker_scalar(&j->make, t), *is = tk_maker_scalar(&j->make, TK_BOOL);
    tk_vid size =
        tk_maker_op(&j->make, before, TK_OP_DIM, 1, load->opnd, tk_maker_scalar(&j->make, TK_I32));
    tk_value_def(j->make.f, size)->at.axis = (int)d;
    size = t == TK_I32 ? size : tk_maker_op(&j->make, before, TK_OP_CAST, 1, &size, type);
    if (n > 0) {
        tk_vid count =
            tk_maker_op(&j->make, before, TK_OP_IOTA, 0, NULL, tk_type_tile(a, TK_I32, 1, &n));
        type = tk_type_tile(a, t, 1, &n);
        is = tk_type_tile(a, TK_BOOL, 1, &n);
        count = t == TK_I32 ? count : tk_maker_op(&j->make, before, TK_OP_CAST, 1, &count, type);
        at = tk_maker_two(&j->make, before, TK_OP_ADD, spread(j, before, at, 0, type), count);
        size = spread(j, before, size, 0, type);
    }
    if (low) { // below 0 is a large number without a sign
        type = tk_type_with_dtype(a, type, tk_unsigned_of(t));
        at = tk_maker_op(&j->make, before, TK_OP_BITCAST, 1, &at, type);
        size = tk_maker_op(&j->make, before, TK_OP_BITCAST, 1, &size, type);
    }
    return tk_maker_op(&j->make, before, TK_OP_LT, 2, (tk_vid[]){at, size}, is);
}

// The elements of the view that are inside its tensor; 0: all.
static tk_vid inside(const maker *j, tk_op *before, const tk_op *load) {
    const tk_type *shape = tk_value_type(j->make.f, load->res[0]);
    const tk_view_plan p = tk_view_plan_of(j->x, load, NULL);
    const tk_view_axes axes = tk_view_axes_of(j->make.f, load);
    tk_vid all = 0;
    for (uint32_t d = 0; d < p.rank; d++) {
        if (p.low[d] || p.high[d]) {
            tk_vid is = inside_along(j, before, load, d, p.low[d]);
            is = spread(j, before, is, axes.first[d], shape);
            all = all ? tk_maker_op(&j->make, before, TK_OP_AND, 2, (tk_vid[]){all, is},
                                    tk_value_type(j->make.f, is))
                      : is;
        }
    }
    return all;
}

tk_vid tk_ring_value(const tk_axis *x, tk_arena *arena, tk_op *load, tk_vid tile, bool copy) {
    tk_func *f = load->in->func;
    const maker m = {{f, arena, load->loc}, x}, *j = &m;
    const tk_type *t = tk_value_type(j->make.f, tile);
    tk_vid valid = load->at.other ? inside(j, load, load) : 0, other;
    if (load->at.masked) {
        const tk_vid mask = load->opnd[1 + tk_value_type(j->make.f, load->opnd[0])->rank];
        valid = valid ? tk_maker_op(&j->make, load, TK_OP_AND, 2, (tk_vid[]){valid, mask},
                                    tk_value_type(j->make.f, valid))
                      : mask;
    }
    if (!valid && !copy) {
        return tile;
    }
    if (!valid) {
        valid = tk_maker_op(&j->make, load, TK_OP_CONST, 0, NULL,
                            tk_type_with_dtype(j->make.arena, t, TK_BOOL));
        tk_value_def(j->make.f, valid)->at.value = (tk_const){TK_BOOL, 1};
    }
    if (load->at.other) {
        other = load->opnd[load->nopnd - 1];
    } else {
        other = tk_maker_op(&j->make, load, TK_OP_CONST, 0, NULL, t);
        tk_value_def(j->make.f, other)->at.value = (tk_const){t->dtype, 0};
    }
    return tk_maker_op(&j->make, load, TK_OP_SELECT, 3, (tk_vid[]){valid, tile, other}, t);
}
