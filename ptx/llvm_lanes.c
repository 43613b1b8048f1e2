// SPDX-License-Identifier: Apache-2.0
// Moves within warps (ir/move.h): renaming of registers, and shuffles, with registers selected
// before and after where they mix with lanes.
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"

#include "ir/move.h"

// ---- Shuffles -----------------------------------------------------------------------------------

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

static LLVMValueRef spread(tk_emit *e, LLVMValueRef index, const uint32_t *basis, unsigned n,
                           LLVMValueRef sum) {
    for (unsigned i = 0; i < n; i++) {
        if (basis[i]) {
            LLVMValueRef bit = tk_ll_mask(e, tk_ll_shr(e, index, i), 1);
            sum = tk_ll_xor(e, sum, tk_ll_mul(e, bit, tk_emit_i32(e, basis[i])));
        }
    }
    return sum;
}

// ---- Registers by lane and warp -----------------------------------------------------------------

// A register number that is linear in the bits of the lane and warp, as a sum of independent
// numbers, each with the condition (i1) on which it counts.
typedef struct selector {
    unsigned n;
    uint32_t number[TK_LANE_BITS + TK_MAX_WARP_BITS];
    LLVMValueRef on[TK_LANE_BITS + TK_MAX_WARP_BITS];
    uint32_t vector[32], of[32]; // by leading bit: sums of `number`, and of which
} selector;

// The numbers of the selector that v is the sum of; with v itself as a new one where it is none.
static uint32_t parts_of(selector *s, uint32_t v) {
    const uint32_t whole = v;
    uint32_t of = 0;
    while (v) {
        const unsigned top = 31U - (unsigned)__builtin_clz(v);
        if (!s->vector[top]) {
            s->vector[top] = v;
            s->of[top] = of | 1U << s->n;
            s->number[s->n] = whole;
            return 1U << s->n++;
        }
        v ^= s->vector[top];
        of ^= s->of[top];
    }
    return of;
}

static void add_bits(tk_emit *e, selector *s, LLVMValueRef index, const uint32_t *basis,
                     unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const uint32_t of = parts_of(s, basis[i]);
        for (unsigned k = 0; k < s->n; k++) {
            if (of >> k & 1) {
                LLVMValueRef bit = tk_ll_resize(e, tk_ll_shr(e, index, i), 1, false);
                s->on[k] = s->on[k] ? tk_ll_xor(e, s->on[k], bit) : bit;
            }
        }
    }
}

// Register r and what the first n of the selector's numbers add to it.
static LLVMValueRef selected(tk_emit *e, const selector *s, unsigned n, LLVMValueRef *x,
                             uint32_t r) {
    if (n == 0) {
        return x[r];
    }
    LLVMValueRef off = selected(e, s, n - 1, x, r);
    return tk_ll_sel(e, s->on[n - 1], selected(e, s, n - 1, x, r ^ s->number[n - 1]), off);
}

// ---- The move -----------------------------------------------------------------------------------

void tk_emit_lanes(tk_emit *e, const tk_moving *m, unsigned i, LLVMValueRef *x, LLVMValueRef *out) {
    const tk_lane_move *l = &m->lanes[i];
    const unsigned regs = m->dst[i].l.regs, warps = m->dst[i].l.warps;
    selector before = {0}, behind = {0};
    add_bits(e, &before, e->lane, l->give, TK_LANE_BITS);
    add_bits(e, &before, e->warp, l->warp_give, warps);
    add_bits(e, &behind, e->lane, l->swap, TK_LANE_BITS);
    LLVMValueRef lane = spread(e, e->lane, l->lane, TK_LANE_BITS, tk_emit_i32(e, 0));
    lane = spread(e, e->warp, l->warp_lane, warps, lane);
    LLVMValueRef *got = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)1 << regs);
    for (uint32_t r = 0; r < 1U << regs; r++) {
        const uint32_t from = tk_lane_move_sum(l->reg, regs, r) ^ l->at_reg;
        const uint32_t move = tk_lane_move_sum(l->reg_lane, regs, r) ^ l->at_lane;
        LLVMValueRef v = selected(e, &before, before.n, x, from);
        got[r] = l->own && !move ? v
                 : l->own        ? tk_emit_shuffle_xor(e, v, move)
                          : shuffle_from(e, m->dtype, v, tk_ll_xor(e, lane, tk_emit_i32(e, move)));
    }
    for (uint32_t r = 0; r < 1U << regs; r++) {
        out[r] = selected(e, &behind, behind.n, got, r);
    }
}
