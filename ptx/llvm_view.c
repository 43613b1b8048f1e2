// SPDX-License-Identifier: Apache-2.0
// Views of tensors: where elements are, and which are inside.
//
// Sizes are below 2^31, so bounds are tested in 32 bits. The start of a range is brought into an
// i32, which changes nothing that is inside: what lies beyond the greatest i32 becomes that one,
// from which no range comes back inside, and what lies below the least becomes that one. An index
// is then the start plus a coordinate below 2^24; as an unsigned number it is below the size where
// it is inside and nowhere else, negative or beyond the greatest i32 or not. Where the start is
// known not to be negative, the room above it is computed once and each register compares a
// constant with it.
//
// What is never negative nor at or above a size, lower/view_plan.c says; that is not tested at all.
//
// An offset is counted in elements. Where the run time promises that none is as far as 2^31 - 2^25
// from the base it is computed in 32 bits: what stands between the offset of a thread and that of
// its registers is a constant below 2^24, and only offsets of elements inside are used.
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

LLVMValueRef tk_emit_and(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return a && b ? LLVMBuildAnd(e->b, a, b, "") : a ? a : b;
}

// ---- Indices

static LLVMValueRef intrinsic2(tk_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef arg[2] = {a, b};
    return tk_emit_intrinsic(e, name, LLVMTypeOf(a), 2, arg);
}

// As an i32: see the head of this file.
static LLVMValueRef index32(tk_emit *e, tk_dtype t, bool fits, LLVMValueRef x) {
    bool is_signed = tk_dtype_is_signed(t);
    unsigned bits = tk_dtype_bits(t);
    if (!fits && bits == 64) {
        if (is_signed) {
            x = intrinsic2(e, "llvm.smax.i64", x, tk_emit_i64(e, INT32_MIN));
            x = intrinsic2(e, "llvm.smin.i64", x, tk_emit_i64(e, INT32_MAX));
        } else {
            x = intrinsic2(e, "llvm.umin.i64", x, tk_emit_i64(e, INT32_MAX));
        }
    } else if (!fits && t == TK_U32) {
        x = intrinsic2(e, "llvm.umin.i32", x, tk_emit_i32(e, INT32_MAX));
    }
    return tk_ll_resize(e, x, 32, is_signed);
}

static uint32_t *index_registers(tk_emit *e, const tk_op *op, const tk_view_axes *v,
                                 const tk_layout *l, uint32_t d) {
    const tk_type *t = tk_value_type(e->f, op->opnd[1 + d]);
    const tk_layout *of = tk_emit_layout(e, op->opnd[1 + d]);
    uint32_t n = 1U << l->regs, *reg = TK_NEW_ARRAY(e->arena, uint32_t, n);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t el = tk_layout_eval(l, r, 0, 0), at = 0, to = 0;
        for (unsigned k = t->rank;
             k-- > 0;) { // coordinates of the index tile, aligned right in its axes
            unsigned axis = (unsigned)(v->first[d] + v->count[d] - t->rank) + k;
            if (t->dim[k] > 1) {
                at |= (el >> tk_layout_shift(l, axis) & ((1U << l->log_dim[axis]) - 1)) << to;
                to += l->log_dim[axis];
            }
        }
        reg[r] = tk_layout_register(of, at);
        TK_CHECK(e->arena, reg[r] != UINT32_MAX);
    }
    return reg;
}

static LLVMValueRef room_above(tk_emit *e, const tk_emit_view *v, uint32_t d) {
    LLVMValueRef room = tk_ll_sub(e, e->tensor[v->param].dim[d], v->start[d]);
    return intrinsic2(e, "llvm.smax.i32", room, tk_emit_i32(e, 0));
}

tk_emit_view tk_emit_view_make(tk_emit *e, const tk_op *op, const tk_type *result,
                               const tk_layout *l) {
    tk_view_axes axes = tk_view_axes_of(e->f, op);
    tk_emit_view v = {.op = op,
                      .l = l,
                      .plan = tk_view_plan_of(e->axis, op, l),
                      .param = tk_emit_param_of(e, op->opnd[0]),
                      .dtype = result->dtype,
                      .rank = axes.n};
    for (uint32_t d = 0; d < v.rank; d++) {
        tk_vid at = op->opnd[1 + d];
        tk_dtype t = tk_value_type(e->f, at)->dtype;
        v.axis[d] = -1;
        if (op->at.index[d] == -1) {
            v.at[d] = at;
            v.reg_of[d] = index_registers(e, op, &axes, l, d);
        } else {
            v.start[d] = index32(e, t, v.plan.fits32[d], tk_emit_get(e, at)[0]);
            v.axis[d] = op->at.index[d] > 0 ? axes.first[d] : -1;
        }
        if (v.axis[d] >= 0 && !v.plan.low[d] && v.plan.high[d]) {
            v.room[d] = room_above(e, &v, d);
        }
    }
    return v;
}

static LLVMValueRef tile_index(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t d) {
    return tk_emit_get(e, v->at[d])[v->reg_of[d][r]];
}

// The index of register r as an i32; right for what is inside.
static LLVMValueRef index_of(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t d) {
    if (v->reg_of[d]) {
        tk_dtype t = tk_value_type(e->f, v->at[d])->dtype;
        return tk_ll_resize(e, tile_index(e, v, r, d), 32, tk_dtype_is_signed(t));
    }
    if (v->axis[d] < 0) {
        return v->start[d];
    }
    tk_emit_coord_parts p = tk_emit_coord_of(e, v->l, r, (unsigned)v->axis[d]);
    if (!p.disjoint) {
        return tk_ll_add(e, v->start[d], tk_emit_coord(e, v->l, r, (unsigned)v->axis[d]));
    }
    // The thread's part first: it is the same for all registers.
    LLVMValueRef thread = tk_ll_add(e, v->start[d], p.thread);
    return p.constant ? tk_ll_add(e, thread, tk_emit_i32(e, p.constant)) : thread;
}

// ---- Bounds

static LLVMValueRef below(tk_emit *e, LLVMValueRef x, LLVMValueRef size) {
    return tk_ll_icmp(e, LLVMIntULT, x, size);
}

// One number against the size, in the width of the number where that is greater.
static LLVMValueRef number_inside(tk_emit *e, const tk_emit_view *v, uint32_t d, tk_dtype t,
                                  LLVMValueRef x) {
    LLVMValueRef size = e->tensor[v->param].dim[d];
    bool wide = tk_dtype_bits(t) == 64 && !v->plan.fits32[d];
    return below(e, tk_ll_resize(e, x, wide ? 64 : 32, tk_dtype_is_signed(t)),
                 wide ? tk_ll_resize(e, size, 64, false) : size);
}

// Of a tile index n elements that count up: the first and, where that does not tell, the last.
static LLVMValueRef tile_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t n,
                                uint32_t d) {
    tk_dtype t = tk_value_type(e->f, v->at[d])->dtype;
    LLVMValueRef first = number_inside(e, v, d, t, tile_index(e, v, r, d));
    if (n == 1 || v->reg_of[d][r] == v->reg_of[d][r + n - 1]) {
        return first;
    }
    LLVMValueRef last = number_inside(e, v, d, t, tile_index(e, v, r + n - 1, d));
    return LLVMBuildAnd(e->b, first, last, "");
}

// The constant of register r plus `more` is below the room that the thread leaves.
static LLVMValueRef in_room(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t more,
                            uint32_t d) {
    unsigned axis = (unsigned)v->axis[d];
    tk_emit_coord_parts p = tk_emit_coord_of(e, v->l, r, axis);
    if (!p.disjoint) {
        LLVMValueRef at = tk_ll_add(e, tk_emit_coord(e, v->l, r, axis), tk_emit_i32(e, more));
        return tk_ll_icmp(e, LLVMIntSLT, at, v->room[d]);
    }
    LLVMValueRef left = tk_ll_sub(e, v->room[d], p.thread);
    return tk_ll_icmp(e, LLVMIntSGT, left, tk_emit_i32(e, (int64_t)p.constant + more));
}

// n elements of a range, all or (n == 1) one.
static LLVMValueRef range_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t n,
                                 uint32_t d) {
    if (v->room[d]) {
        return in_room(e, v, r, n - 1, d);
    }
    LLVMValueRef at = index_of(e, v, r, d), size = e->tensor[v->param].dim[d];
    if (!v->plan.high[d]) {
        return tk_ll_icmp(e, LLVMIntSGE, at, tk_emit_i32(e, 0));
    }
    if (n > 1) { // at most the size, so not below 0 where the vector does not fit at all
        size = tk_ll_sub(e, size, tk_emit_i32(e, (int64_t)n - 1));
        size = intrinsic2(e, "llvm.smax.i32", size, tk_emit_i32(e, 0));
    }
    return below(e, at, size);
}

LLVMValueRef tk_emit_view_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t n,
                                 LLVMValueRef mask) {
    LLVMValueRef in = mask;
    for (uint32_t d = 0; d < v->rank; d++) {
        if (!v->plan.low[d] && !v->plan.high[d]) {
            continue;
        }
        // Only the last dimension's index differs inside a vector.
        bool last = d + 1 == v->rank;
        uint32_t all = last && !(v->plan.whole && v->plan.aligned) ? n : 1;
        if (v->reg_of[d]) {
            in = tk_emit_and(e, in, tile_inside(e, v, r, all, d));
        } else if (v->axis[d] >= 0) {
            in = tk_emit_and(e, in, range_inside(e, v, r, all, d));
        } else {
            in = tk_emit_and(e, in, below(e, v->start[d], e->tensor[v->param].dim[d]));
        }
    }
    return in;
}

LLVMValueRef tk_emit_view_row_inside(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    LLVMValueRef in = NULL;
    for (uint32_t d = 0; d + 1 < v->rank; d++) {
        if (v->plan.low[d] || v->plan.high[d]) {
            in = tk_emit_and(e, in,
                             v->axis[d] >= 0 ? range_inside(e, v, r, 1, d)
                                             : below(e, v->start[d], e->tensor[v->param].dim[d]));
        }
    }
    return in;
}

// Of registers that differ along the axis in constants alone the one that is furthest; UINT32_MAX:
// they differ in more.
static uint32_t furthest(tk_emit *e, const tk_emit_view *v, uint32_t d, uint32_t from, uint32_t n) {
    uint32_t at = from, most = 0;
    for (uint32_t r = from; r < from + n; r++) {
        tk_emit_coord_parts p = tk_emit_coord_of(e, v->l, r, (unsigned)v->axis[d]);
        if (!p.disjoint) {
            return UINT32_MAX;
        }
        if (p.constant > most) {
            most = p.constant;
            at = r;
        }
    }
    return at;
}

static bool one_index(const tk_emit_view *v, uint32_t d, uint32_t from, uint32_t n) {
    for (uint32_t r = from; r < from + n; r++) {
        if (v->reg_of[d][r] != v->reg_of[d][from]) {
            return false;
        }
    }
    return true;
}

LLVMValueRef tk_emit_view_all_inside(tk_emit *e, const tk_emit_view *v, uint32_t from, uint32_t n) {
    uint32_t last[TK_MAX_TENSOR_RANK] = {0};
    for (uint32_t d = 0; d < v->rank; d++) {
        if (!v->plan.low[d] && !v->plan.high[d]) {
            continue;
        }
        if (v->reg_of[d] && !one_index(v, d, from, n)) {
            return NULL;
        }
        if (v->axis[d] >= 0) {
            last[d] = v->room[d] ? furthest(e, v, d, from, n) : UINT32_MAX;
            if (last[d] == UINT32_MAX) {
                return NULL;
            }
        }
    }
    LLVMValueRef in = NULL;
    for (uint32_t d = 0; d < v->rank; d++) {
        if (!v->plan.low[d] && !v->plan.high[d]) {
            continue;
        }
        LLVMValueRef here = v->reg_of[d]      ? tile_inside(e, v, from, 1, d)
                            : v->axis[d] >= 0 ? in_room(e, v, last[d], 0, d)
                                              : below(e, v->start[d], e->tensor[v->param].dim[d]);
        in = tk_emit_and(e, in, here);
    }
    return in;
}

LLVMValueRef tk_emit_view_begun(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    return v->rank && v->room[v->rank - 1] ? in_room(e, v, r, 0, v->rank - 1) : NULL;
}

LLVMValueRef tk_emit_view_aligned(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    if (v->plan.aligned) {
        return NULL;
    }
    uint32_t d = v->rank - 1;
    LLVMValueRef at = v->reg_of[d] ? tile_index(e, v, r, d) : v->start[d];
    return tk_ll_is(e, tk_ll_mask(e, at, v->plan.vec - 1), 0);
}

// ---- Addresses

static LLVMValueRef offset_type(tk_emit *e, const tk_emit_view *v, LLVMValueRef x) {
    return tk_ll_resize(e, x, e->tensor[v->param].facts & TK_FACT_NEAR ? 32 : 64, true);
}

tk_emit_place tk_emit_view_place(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    const tk_tensor_args *t = &e->tensor[v->param];
    LLVMTypeRef type = tk_emit_mem_type(e, v->dtype);
    LLVMValueRef at = NULL;
    int64_t constant = 0; // elements
    for (uint32_t d = 0; d < v->rank; d++) {
        LLVMValueRef index = index_of(e, v, r, d);
        bool unit = d + 1 == v->rank && (t->facts & TK_FACT_UNIT);
        if (unit && v->axis[d] >= 0) { // the register's part is a constant of the instruction
            tk_emit_coord_parts p = tk_emit_coord_of(e, v->l, r, (unsigned)v->axis[d]);
            index = p.disjoint ? tk_ll_add(e, v->start[d], p.thread) : index;
            constant = p.disjoint ? p.constant : 0;
        }
        index = offset_type(e, v, index);
        index = unit ? index : tk_ll_mul(e, index, offset_type(e, v, t->stride[d]));
        at = at ? tk_ll_add(e, at, index) : index;
    }
    if (!at) {
        return (tk_emit_place){t->base, 0};
    }
    at = tk_ll_resize(e, at, 64, true);
    LLVMValueRef p = LLVMBuildGEP2(e->b, type, t->base, &at, 1, "");
    return (tk_emit_place){p, constant * (int64_t)tk_dtype_size(v->dtype)};
}

LLVMValueRef tk_emit_place_ptr(tk_emit *e, tk_emit_place p) {
    LLVMValueRef k = tk_emit_i64(e, p.bytes);
    return p.bytes ? LLVMBuildGEP2(e->b, tk_ll_int(e, 8), p.at, &k, 1, "") : p.at;
}

LLVMValueRef tk_emit_view_owner(tk_emit *e, const tk_emit_view *v) {
    if (v->l) {
        return tk_emit_owner(e, v->l);
    }
    return LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, tk_emit_i32(e, 0), "");
}
