// SPDX-License-Identifier: Apache-2.0
// Fetches by tensor copies (lower/box.h): the first warp waits for the slot; one thread of it says
// how many bytes are to come, and begins a copy for each box. All threads count the slots. Blocks
// of a cluster that fill a ring together begin a part of the copies each, which bring their boxes
// to all blocks; each expects the whole tile.
#include "ptx/llvm_ring.h"

#include "lower/box.h"
#include "lower/ring.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

// Where a box begins in the tensor: coordinates from the innermost dimension on. It is box `i` of
// the tile for the first of the blocks that fill the ring together, and the next ones' follow.
static void corner(tk_emit *e, const tk_boxes *b, const tk_emit_view *v, const tk_layout *l,
                   uint32_t i, const tk_emit_ring *r, LLVMValueRef *out) {
    const uint32_t el = tk_layout_eval(l, i * b->elems, 0, 0);
    for (uint32_t d = 0; d < v->rank; d++) {
        out[v->rank - 1 - d] = v->start[d];
        if (b->axis[d] < 0) {
            continue;
        }
        const unsigned axis = (unsigned)b->axis[d], shift = tk_layout_shift(l, axis);
        const uint32_t mask = (1U << l->log_dim[axis]) - 1;
        LLVMValueRef at = tk_emit_i32(e, el >> shift & mask);
        for (uint32_t k = 0; 1U << k < r->cluster; k++) {
            const uint32_t step = tk_layout_eval(l, b->elems << k, 0, 0) >> shift & mask;
            LLVMValueRef bit = tk_ll_and(e, tk_ll_shr(e, r->rank, k), tk_emit_i32(e, 1));
            at = step ? tk_ll_xor(e, at, tk_ll_mul(e, bit, tk_emit_i32(e, step))) : at;
        }
        out[v->rank - 1 - d] = tk_ll_add(e, v->start[d], at);
    }
}

void tk_emit_fetch_tensor(tk_emit *e, const tk_op *op, const tk_emit_ring *r) {
    const tk_type *t = tk_view_type(e->f, op);
    const uint32_t size = (uint32_t)tk_dtype_size(t->dtype);
    const tk_layout *l = tk_emit_layout(e, r->v);
    tk_boxes b;
    const char *why = tk_boxes_of(e->f, op, &b);
    TK_CHECK(e->arena, !why);
    const tk_layout *threads =
        tk_layout_new(e->arena, tk_fetch_layout(e->f, op, (unsigned)__builtin_ctz(e->warps)));
    const tk_emit_view v = tk_emit_view_make(e, op, t, threads);
    const uint32_t map = tk_map_find(&e->maps, &b.map);
    TK_CHECK(e->arena, map < e->maps.n);
    const bool alone = e->side == TK_SIDE_PRODUCER; // no other warp runs this
    tk_emit_cond first = tk_emit_if(e, alone ? NULL : tk_ll_is(e, e->warp, 0));
    tk_emit_ring_wait(e, tk_emit_ring_barrier(e, r->empty, &r->fetch), &r->fetch, 1);
    LLVMValueRef full = tk_emit_ring_barrier(e, r->full, &r->fetch);
    LLVMValueRef slot = tk_emit_ring_slot(e, r, &r->fetch);
    LLVMValueRef one = tk_emit_elected(e);
    tk_emit_mbarrier_arrive_expect_by(e, one, full, (uint64_t)b.n * b.elems * size);
    if (r->cluster > 1) {
        slot = tk_ll_add(e, slot, tk_ll_mul(e, r->rank, tk_emit_i32(e, b.elems * size)));
    }
    for (uint32_t i = 0; i < b.n; i += r->cluster) {
        LLVMValueRef at[TK_MAP_RANK];
        corner(e, &b, &v, l, i, r, at);
        tk_emit_tensor_read_by(e, one, tk_ll_add(e, slot, tk_emit_i32(e, i * b.elems * size)),
                               e->map[map], b.map.rank, at, full, r->cluster);
    }
    tk_emit_end(e, &first);
}
