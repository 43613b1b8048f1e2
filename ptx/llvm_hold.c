// SPDX-License-Identifier: Apache-2.0
// Tiles that shared memory holds from one loop to another (ir/hold.h).
//
// A thread's registers stand there 16 bytes by 16 bytes, those of all threads side by side, so that
// neither side has bank conflicts, whatever the layout. Each thread takes what it left itself:
// nothing is waited for.
#include "ir/hold.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

enum { MOST_BYTES = 16 };

typedef struct room {
    const tk_op *holder;
    tk_dtype dtype;
    uint32_t regs, per; // registers of the tile, of a piece
    uint32_t piece;     // bytes
    LLVMValueRef at;    // of the thread's first piece, from where the holder's memory starts
    LLVMValueRef there; // i1: this iteration is held
} room;

// The number that the index of the loop stays below while tiles are held.
static LLVMValueRef end_of(tk_emit *e, const tk_op *holder, LLVMTypeRef type) {
    const tk_op *loop = holder->in->owner;
    LLVMValueRef from = tk_emit_get(e, loop->opnd[0])[0], step = tk_emit_get(e, loop->opnd[2])[0];
    // From and step are constants, of which the sum may be past what the index can reach.
    const int64_t end =
        LLVMConstIntGetSExtValue(from) + holder->at.hold * LLVMConstIntGetSExtValue(step);
    return LLVMConstInt(type, (unsigned long long)(end < INT32_MAX ? end : INT32_MAX), 1);
}

static room room_of(tk_emit *e, const tk_op *op, const tk_op *holder) {
    const tk_op *loop = op->in->owner;
    room r = {.holder = holder, .dtype = tk_value_type(e->f, op->res[0])->dtype};
    const uint32_t size = (uint32_t)tk_dtype_size(r.dtype);
    r.regs = 1U << tk_emit_layout(e, op->res[0])->regs;
    r.per = size * r.regs < MOST_BYTES ? r.regs : MOST_BYTES / size;
    r.piece = r.per * size;
    LLVMValueRef index = tk_emit_get(e, loop->reg[0]->args.at[0])[0];
    LLVMValueRef from = tk_emit_get(e, loop->opnd[0])[0], step = tk_emit_get(e, loop->opnd[2])[0];
    LLVMValueRef number = LLVMBuildUDiv(e->b, tk_ll_sub(e, index, from), step, "");
    const tk_scratch s = tk_emit_scratch(e, holder);
    const int64_t each = (int64_t)s.bytes / holder->at.hold;
    r.at = tk_ll_add(e, tk_ll_mul(e, number, tk_emit_i32(e, each)),
                     tk_ll_mul(e, e->tid, tk_emit_i32(e, r.piece)));
    r.there = LLVMBuildICmp(e->b, LLVMIntSLT, index, end_of(e, holder, LLVMTypeOf(index)), "");
    return r;
}

static LLVMTypeRef piece_type(tk_emit *e, const room *r) {
    LLVMTypeRef t = tk_emit_mem_type(e, r->dtype);
    return r->per > 1 ? LLVMVectorType(t, r->per) : t;
}

static LLVMValueRef piece_at(tk_emit *e, const room *r, uint32_t reg) {
    const uint64_t threads = e->warps * 32;
    return tk_emit_shared_at(e, r->holder, reg / r->per * threads * r->piece, r->at);
}

static LLVMValueRef gather(tk_emit *e, const room *r, const LLVMValueRef *x) {
    LLVMValueRef all = LLVMGetUndef(piece_type(e, r));
    for (uint32_t i = 0; i < r->per; i++) {
        LLVMValueRef one = tk_emit_to_mem(e, r->dtype, x[i]);
        all = r->per > 1 ? LLVMBuildInsertElement(e->b, all, one, tk_emit_i32(e, i), "") : one;
    }
    return all;
}

static void scatter(tk_emit *e, const room *r, LLVMValueRef all, LLVMValueRef *out) {
    for (uint32_t i = 0; i < r->per; i++) {
        LLVMValueRef one =
            r->per > 1 ? LLVMBuildExtractElement(e->b, all, tk_emit_i32(e, i), "") : all;
        out[i] = tk_emit_from_mem(e, r->dtype, one);
    }
}

void tk_emit_hold(tk_emit *e, const tk_op *op) {
    const room r = room_of(e, op, op);
    const LLVMValueRef *x = tk_emit_get(e, op->res[0]);
    tk_emit_cond c = tk_emit_if(e, r.there);
    for (uint32_t k = 0; k < r.regs; k += r.per) {
        LLVMValueRef st = LLVMBuildStore(e->b, gather(e, &r, x + k), piece_at(e, &r, k));
        LLVMSetAlignment(st, r.piece);
    }
    tk_emit_end(e, &c);
}

// Where the holder's loop has been, its end is what it runs to, of which this loop may not know.
static LLVMValueRef is_there(tk_emit *e, const tk_op *op, const room *r) {
    const tk_op *loop = op->in->owner, *earlier = r->holder->in->owner;
    LLVMValueRef index = tk_emit_get(e, loop->reg[0]->args.at[0])[0];
    LLVMValueRef ran =
        LLVMBuildICmp(e->b, LLVMIntSLT, index, tk_emit_get(e, earlier->opnd[1])[0], "");
    return loop->opnd[1] == earlier->opnd[1] ? r->there : tk_emit_and(e, r->there, ran);
}

void tk_emit_held(tk_emit *e, const tk_op *op, tk_emit_reader *read) {
    const room r = room_of(e, op, tk_holder_of(e->f, op));
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    LLVMValueRef *x = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * (size_t)r.regs);
    LLVMBasicBlockRef from[2];
    tk_emit_cond c = tk_emit_if(e, is_there(e, op, &r));
    for (uint32_t k = 0; k < r.regs; k += r.per) {
        x[2 * k] = LLVMBuildLoad2(e->b, piece_type(e, &r), piece_at(e, &r, k), "");
        LLVMSetAlignment(x[2 * k], r.piece);
    }
    from[0] = LLVMGetInsertBlock(e->b);
    tk_emit_else(e, &c);
    read(e, op, out);
    for (uint32_t k = 0; k < r.regs; k += r.per) {
        x[2 * k + 1] = gather(e, &r, out + k);
    }
    from[1] = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    for (uint32_t k = 0; k < r.regs; k += r.per) {
        LLVMValueRef phi = LLVMBuildPhi(e->b, piece_type(e, &r), "");
        LLVMAddIncoming(phi, x + 2 * k, from, 2);
        x[2 * k] = phi;
    }
    for (uint32_t k = 0; k < r.regs; k += r.per) {
        scatter(e, &r, x[2 * k], out + k);
    }
}
