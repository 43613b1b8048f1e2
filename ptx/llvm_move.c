// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: convert, concat, interleave, deinterleave, flip, slice, gather.
//
// A conversion is a renaming of registers or shuffles where the layouts allow it. Everything else
// goes through scratch: the operands are written row-major, and each thread fetches for each of its
// result's registers the element that belongs there.
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"

// ---- Convert ------------------------------------------------------------------------------------

static void rename_regs(tk_emit *e, const tk_layout *a, const tk_layout *b, LLVMValueRef *x,
                        LLVMValueRef *out) {
    for (uint32_t r = 0; r < 1U << b->regs; r++) {
        tk_place_bits p;
        TK_CHECK(e->arena, tk_layout_find(a, tk_layout_eval(b, r, 0, 0), 0, false, 0, false, &p));
        out[r] = x[p.reg];
    }
}

static LLVMValueRef spread(tk_emit *e, LLVMValueRef index, const uint32_t *basis, unsigned n,
                           LLVMValueRef sum) {
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef bit = tk_ll_mask(e, tk_ll_shr(e, index, i), 1);
        sum = tk_ll_xor(e, sum, tk_ll_mul(e, bit, tk_emit_i32(e, basis[i])));
    }
    return sum;
}

static LLVMValueRef shuffle_i32(tk_emit *e, LLVMValueRef x, LLVMValueRef lane) {
    LLVMValueRef arg[4] = {tk_emit_i32(e, -1), x, lane, tk_emit_i32(e, 31)};
    return tk_emit_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", tk_ll_int(e, 32), 4, arg);
}

static LLVMValueRef shuffle_from(tk_emit *e, tk_dtype t, LLVMValueRef x, LLVMValueRef lane) {
    const unsigned bits = t == TK_BOOL ? 1 : tk_dtype_bits(t);
    LLVMValueRef u = tk_ll_bits(e, x, tk_ll_int(e, bits));
    if (bits < 64) {
        u = shuffle_i32(e, tk_ll_resize(e, u, 32, false), lane);
        return tk_ll_bits(e, tk_ll_resize(e, u, bits, false), LLVMTypeOf(x));
    }
    LLVMValueRef lo = shuffle_i32(e, tk_ll_resize(e, u, 32, false), lane);
    LLVMValueRef hi = shuffle_i32(e, tk_ll_resize(e, tk_ll_shr(e, u, 32), 32, false), lane);
    u = tk_ll_shl(e, tk_ll_resize(e, hi, 64, false), 32);
    return tk_ll_bits(e, tk_ll_or(e, u, tk_ll_resize(e, lo, 64, false)), LLVMTypeOf(x));
}

static void shuffle_regs(tk_emit *e, const tk_layout *a, const tk_layout *b, tk_dtype t,
                         LLVMValueRef *x, LLVMValueRef *out) {
    tk_shuffle s;
    TK_CHECK(e->arena, tk_layout_shuffle(a, b, &s));
    bool own = true;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        own = own && s.lane[i] == 1U << i;
    }
    for (unsigned i = 0; i < b->warps; i++) {
        own = own && s.warp[i] == 0;
    }
    LLVMValueRef lane = spread(e, e->lane, s.lane, TK_LANE_BITS, tk_emit_i32(e, 0));
    lane = spread(e, e->warp, s.warp, b->warps, lane);
    for (uint32_t r = 0; r < 1U << b->regs; r++) {
        uint32_t reg = 0, move = 0;
        for (unsigned i = 0; i < b->regs; i++) {
            reg ^= r >> i & 1 ? s.reg[i] : 0;
            move ^= r >> i & 1 ? s.reg_lane[i] : 0;
        }
        out[r] = own && !move ? x[reg]
                 : own        ? tk_emit_shuffle_xor(e, x[reg], move)
                       : shuffle_from(e, t, x[reg], tk_ll_xor(e, lane, tk_emit_i32(e, move)));
    }
}

static void convert(tk_emit *e, tk_op *op) {
    const tk_layout *a = tk_emit_layout(e, op->opnd[0]), *b = tk_emit_layout(e, op->res[0]);
    const tk_type *t = tk_value_type(e->f, op->res[0]);
    LLVMValueRef *x = tk_emit_get(e, op->opnd[0]), *out = tk_emit_new(e, op->res[0]);
    switch (tk_emit_scratch(e, op).work) {
    case TK_WORK_THREAD:
        rename_regs(e, a, b, x, out);
        return;
    case TK_WORK_LANES:
        shuffle_regs(e, a, b, t->dtype, x, out);
        return;
    case TK_WORK_SHARED:
        tk_emit_exchange(e, op, a, b, t->dtype, x, out);
        return;
    }
}

// ---- Elements by their coordinates --------------------------------------------------------------

static void spill_all(tk_emit *e, tk_op *op) {
    const tk_scratch s = tk_emit_scratch(e, op);
    for (uint32_t i = 0; i < s.nparts; i++) {
        tk_emit_spill(e, op, s.part[i], op->opnd[i]);
    }
    tk_emit_barrier(e);
}

static void coords_of(tk_emit *e, const tk_layout *l, uint32_t r, LLVMValueRef *c) {
    for (unsigned d = 0; d < l->rank; d++) {
        c[d] = tk_emit_coord(e, l, r, d);
    }
}

// The element of scratch that belongs at coordinates c of result i; c may be changed.
static LLVMValueRef source(tk_emit *e, const tk_op *op, uint32_t i, LLVMValueRef *c) {
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    const unsigned last = x->rank - 1U;
    if (op->code == TK_OP_INTERLEAVE) {
        LLVMValueRef odd = tk_ll_mask(e, c[last], 1);
        c[last] = tk_ll_shr(e, c[last], 1);
        LLVMValueRef second = tk_ll_mul(e, odd, tk_emit_i32(e, tk_type_elems(x)));
        return tk_ll_add(e, tk_emit_flat(e, x, c), second);
    }
    if (op->code == TK_OP_DEINTERLEAVE) {
        c[last] = tk_ll_add(e, tk_ll_shl(e, c[last], 1), tk_emit_i32(e, i));
        return tk_emit_flat(e, x, c);
    }
    const int d = op->at.axis;
    LLVMValueRef extent = tk_emit_i32(e, x->dim[d]);
    if (op->code == TK_OP_FLIP) {
        c[d] = tk_ll_sub(e, tk_emit_i32(e, x->dim[d] - 1), c[d]);
        return tk_emit_flat(e, x, c);
    }
    if (op->code == TK_OP_SLICE) {
        c[d] = tk_ll_add(e, c[d], tk_emit_i32(e, op->at.start));
        return tk_emit_flat(e, x, c);
    }
    TK_CHECK(e->arena, op->code == TK_OP_CONCAT);
    LLVMValueRef in_y = tk_ll_icmp(e, LLVMIntUGE, c[d], extent), at = c[d];
    LLVMValueRef from_x = tk_emit_flat(e, x, c);
    c[d] = tk_ll_sub(e, at, extent);
    LLVMValueRef from_y = tk_emit_flat(e, tk_value_type(e->f, op->opnd[1]), c);
    from_y = tk_ll_add(e, from_y, tk_emit_i32(e, tk_type_elems(x)));
    return tk_ll_sel(e, in_y, from_y, from_x);
}

static void remap(tk_emit *e, tk_op *op) {
    spill_all(e, op);
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_layout *l = tk_emit_layout(e, op->res[i]);
        const tk_dtype t = tk_value_type(e->f, op->res[i])->dtype;
        LLVMValueRef *out = tk_emit_new(e, op->res[i]);
        for (uint32_t r = 0; r < 1U << l->regs; r++) {
            LLVMValueRef c[TK_MAX_RANK];
            coords_of(e, l, r, c);
            out[r] = tk_emit_fetch(e, op, 0, t, source(e, op, i, c));
        }
    }
}

// ---- Gather -------------------------------------------------------------------------------------

static void gather(tk_emit *e, tk_op *op) {
    const tk_type *x = tk_value_type(e->f, op->opnd[0]), *it = tk_value_type(e->f, op->opnd[1]);
    const tk_layout *l = tk_emit_layout(e, op->res[0]);
    const int d = op->at.axis;
    const tk_scratch s = tk_emit_scratch(e, op);
    const bool here = s.nparts == 1;
    const uint64_t base = s.part[0], at_index = here ? 0 : s.part[1];
    LLVMValueRef *index = tk_emit_get(e, op->opnd[1]), *out = tk_emit_new(e, op->res[0]);
    tk_emit_spill(e, op, base, op->opnd[0]);
    if (!here) {
        tk_emit_spill(e, op, at_index, op->opnd[1]);
    }
    tk_emit_barrier(e);
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        LLVMValueRef c[TK_MAX_RANK];
        LLVMValueRef i =
            here ? index[r] : tk_emit_fetch(e, op, at_index, it->dtype, tk_emit_element(e, l, r));
        coords_of(e, l, r, c);
        i = tk_ll_resize(e, i, 64, tk_dtype_is_signed(it->dtype));
        LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, i, tk_emit_i64(e, x->dim[d]));
        c[d] = tk_ll_sel(e, in, tk_ll_resize(e, i, 32, false), tk_emit_i32(e, 0));
        LLVMValueRef v = tk_emit_fetch(e, op, base, x->dtype, tk_emit_flat(e, x, c));
        out[r] = tk_ll_sel(e, in, v, LLVMConstNull(LLVMTypeOf(v)));
    }
}

void tk_emit_move_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_CONVERT) {
        convert(e, op);
    } else if (op->code == TK_OP_GATHER) {
        gather(e, op);
    } else {
        remap(e, op);
    }
}
