// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: convert, concat, interleave, deinterleave, flip, slice, gather.
//
// All but gather, and slice from some starts, are linear maps (ir/move.h): renamings of registers,
// shuffles, or exchanges through shared memory. The others write their operands to scratch
// row-major, and each thread fetches for each of its result's registers the element that belongs
// there.
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"
#include "ptx/llvm_ring.h"

#include "ir/move.h"

// ---- Linear maps --------------------------------------------------------------------------------

// The registers of all operands, one after the other.
static LLVMValueRef *all_registers(tk_emit *e, const tk_op *op) {
    uint32_t n = 0, to = 0;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        n += tk_emit_regs(e, op->opnd[i]);
    }
    LLVMValueRef *x = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        for (uint32_t r = 0; r < tk_emit_regs(e, op->opnd[i]); r++) {
            x[to++] = tk_emit_get(e, op->opnd[i])[r];
        }
    }
    return x;
}

static void move(tk_emit *e, tk_op *op, const tk_moving *m) {
    LLVMValueRef *x[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
    for (unsigned i = 0; i < m->nsrc; i++) {
        x[i] = tk_emit_get(e, op->opnd[i]);
    }
    if (m->joined) {
        x[0] = all_registers(e, op);
    }
    for (unsigned i = 0; i < m->ndst; i++) {
        out[i] = tk_emit_new(e, op->res[i]);
    }
    if (tk_emit_scratch(e, op).work == TK_WORK_SHARED) {
        tk_emit_exchange(e, op, m, x, out);
        return;
    }
    for (unsigned i = 0; i < m->ndst; i++) {
        tk_emit_lanes(e, m, i, x[0], out[i]);
    }
}

// ---- Elements by their coordinates --------------------------------------------------------------

static void coords_of(tk_emit *e, const tk_layout *l, uint32_t r, LLVMValueRef *c) {
    for (unsigned d = 0; d < l->rank; d++) {
        c[d] = tk_emit_coord(e, l, r, d);
    }
}

// From a start that is no multiple of the extent.
static void slice(tk_emit *e, tk_op *op) {
    const tk_layout *l = tk_emit_layout(e, op->res[0]);
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    const tk_scratch s = tk_emit_scratch(e, op);
    tk_emit_spill(e, op, s.part[0], op->opnd[0]);
    tk_emit_barrier(e);
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        LLVMValueRef c[TK_MAX_RANK];
        coords_of(e, l, r, c);
        c[op->at.axis] = tk_ll_add(e, c[op->at.axis], tk_emit_i32(e, op->at.start));
        out[r] = tk_emit_fetch(e, op, s.part[0], x->dtype, tk_emit_flat(e, x, c));
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
    if (!here) {
        index = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)1 << l->regs);
        tk_emit_fetch_values(e, op, at_index, l, it->dtype, index);
    }
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        LLVMValueRef c[TK_MAX_RANK], i = index[r];
        coords_of(e, l, r, c);
        i = tk_ll_resize(e, i, 64, tk_dtype_is_signed(it->dtype));
        LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, i, tk_emit_i64(e, x->dim[d]));
        c[d] = tk_ll_sel(e, in, tk_ll_resize(e, i, 32, false), tk_emit_i32(e, 0));
        LLVMValueRef v = tk_emit_fetch(e, op, base, x->dtype, tk_emit_flat(e, x, c));
        out[r] = tk_ll_sel(e, in, v, LLVMConstNull(LLVMTypeOf(v)));
    }
}

void tk_emit_move_op(tk_emit *e, tk_op *op) {
    tk_moving m;
    if (tk_emit_layout(e, op->opnd[0])->shared) {
        tk_emit_read_shared(e, op);
    } else if (tk_moving_of(e->f, op, &m)) {
        move(e, op, &m);
    } else if (op->code == TK_OP_GATHER) {
        gather(e, op);
    } else {
        slice(e, op);
    }
}
