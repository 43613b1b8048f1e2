// SPDX-License-Identifier: Apache-2.0
// The emitter's ground: values and types, elements of layouts, control inside one op, shared
// memory, intrinsics.
#include "lower/lower.h"
#include "ptx/llvm_internal.h"

#include <llvm-c/DebugInfo.h>

#include <string.h>

// ---- Values

const tk_layout *tk_emit_layout(const tk_emit *e, tk_vid v) { return e->f->value.at[v].layout; }

uint32_t tk_emit_regs(const tk_emit *e, tk_vid v) {
    const tk_layout *l = tk_emit_layout(e, v);
    return l && !l->shared ? 1U << l->regs : 1;
}

LLVMValueRef *tk_emit_get(const tk_emit *e, tk_vid v) {
    if (!e->value[v] && e->refused) { // the ops after the refused one were left out
        const uint32_t n = tk_emit_regs(e, v);
        LLVMTypeRef t = tk_emit_type(e, tk_value_type(e->f, v)->dtype);
        e->value[v] = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
        for (uint32_t r = 0; r < n; r++) {
            e->value[v][r] = LLVMGetUndef(t);
        }
    }
    if (!e->value[v] && tk_emit_is_kept(e, v)) {
        return tk_emit_kept_load(e, v);
    }
    TK_CHECK(e->arena, e->value[v] != NULL);
    return e->value[v];
}

LLVMValueRef *tk_emit_new(tk_emit *e, tk_vid v) {
    e->value[v] = TK_NEW_ARRAY(e->arena, LLVMValueRef, tk_emit_regs(e, v));
    return e->value[v];
}

LLVMTypeRef tk_emit_type(const tk_emit *e, tk_dtype t) {
    switch (t) {
    case TK_BOOL:
        return LLVMInt1TypeInContext(e->ctx);
    case TK_I8:
    case TK_U8:
    case TK_F8E4M3:
    case TK_F8E5M2:
        return LLVMInt8TypeInContext(e->ctx);
    case TK_I16:
    case TK_U16:
        return LLVMInt16TypeInContext(e->ctx);
    case TK_I32:
    case TK_U32:
        return LLVMInt32TypeInContext(e->ctx);
    case TK_I64:
    case TK_U64:
        return LLVMInt64TypeInContext(e->ctx);
    case TK_F16:
        return LLVMHalfTypeInContext(e->ctx);
    case TK_BF16:
        return LLVMBFloatTypeInContext(e->ctx);
    case TK_F32:
        return LLVMFloatTypeInContext(e->ctx);
    case TK_F64:
        return LLVMDoubleTypeInContext(e->ctx);
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    TK_ICE(e->arena, "a value without an element type");
}

LLVMTypeRef tk_emit_mem_type(const tk_emit *e, tk_dtype t) {
    return t == TK_BOOL ? LLVMInt8TypeInContext(e->ctx) : tk_emit_type(e, t);
}

LLVMValueRef tk_emit_const(const tk_emit *e, tk_const k) {
    LLVMTypeRef bits =
        LLVMIntTypeInContext(e->ctx, k.dtype == TK_BOOL ? 1 : tk_dtype_bits(k.dtype));
    LLVMValueRef x = LLVMConstInt(bits, k.bits, 0);
    bool as_float = tk_dtype_is_float(k.dtype) && k.dtype != TK_F8E4M3 && k.dtype != TK_F8E5M2;
    return as_float ? LLVMConstBitCast(x, tk_emit_type(e, k.dtype)) : x;
}

LLVMValueRef tk_emit_i32(const tk_emit *e, int64_t x) {
    return LLVMConstInt(LLVMInt32TypeInContext(e->ctx), (unsigned long long)x, 1);
}

LLVMValueRef tk_emit_i64(const tk_emit *e, int64_t x) {
    return LLVMConstInt(LLVMInt64TypeInContext(e->ctx), (unsigned long long)x, 1);
}

LLVMValueRef tk_emit_to_mem(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    return t == TK_BOOL ? LLVMBuildZExt(e->b, x, LLVMInt8TypeInContext(e->ctx), "") : x;
}

LLVMValueRef tk_emit_from_mem(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    LLVMValueRef zero = LLVMConstInt(LLVMInt8TypeInContext(e->ctx), 0, 0);
    return t == TK_BOOL ? LLVMBuildICmp(e->b, LLVMIntNE, x, zero, "") : x;
}

// ---- Elements of a layout

struct tk_coord_cache {
    struct tk_coord_cache *next;
    const tk_layout *l;
    LLVMValueRef thread; // the thread's part of the element number
    LLVMValueRef owner;  // or NULL
    uint32_t reach;      // tk_layout_thread_bits
    bool disjoint;       // tk_layout_apart
};

static LLVMValueRef part_of(tk_emit *e, LLVMValueRef index, const uint32_t *base, unsigned n,
                            LLVMValueRef sum) {
    for (unsigned i = 0; i < n; i++) {
        if (!base[i]) {
            continue;
        }
        LLVMValueRef bit = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, index, tk_emit_i32(e, i), ""),
                                        tk_emit_i32(e, 1), "");
        // A basis of one bit is a shift; the general one a product, as the bit is 0 or 1.
        LLVMValueRef part = LLVMBuildMul(e->b, bit, tk_emit_i32(e, base[i]), "");
        sum = sum ? LLVMBuildXor(e->b, sum, part, "") : part;
    }
    return sum;
}

static LLVMValueRef owner_of(tk_emit *e, const tk_layout *l) {
    uint32_t lanes, warps;
    tk_layout_copies(l, &lanes, &warps);
    LLVMValueRef zero = tk_emit_i32(e, 0), own = NULL;
    if (lanes) {
        LLVMValueRef x = LLVMBuildAnd(e->b, e->lane, tk_emit_i32(e, lanes), "");
        own = LLVMBuildICmp(e->b, LLVMIntEQ, x, zero, "");
    }
    if (warps) {
        LLVMValueRef x = LLVMBuildAnd(e->b, e->warp, tk_emit_i32(e, warps), "");
        LLVMValueRef w = LLVMBuildICmp(e->b, LLVMIntEQ, x, zero, "");
        own = own ? LLVMBuildAnd(e->b, own, w, "") : w;
    }
    return own;
}

static const struct tk_coord_cache *coords(tk_emit *e, const tk_layout *l) {
    for (struct tk_coord_cache *c = e->coords; c; c = c->next) {
        if (tk_layout_eq(c->l, l)) {
            return c;
        }
    }
    struct tk_coord_cache *c = TK_NEW(e->arena, struct tk_coord_cache);
    c->l = tk_layout_new(e->arena, *l);
    c->next = e->coords;
    e->coords = c;
    // At the entry, so that it is there wherever it is used.
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    tk_emit_before(e, LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(e->fn)));
    LLVMValueRef sum = part_of(e, e->lane, l->lane, TK_LANE_BITS, NULL);
    sum = part_of(e, e->warp, l->warp, l->warps, sum);
    c->thread = sum ? sum : tk_emit_i32(e, 0);
    c->owner = owner_of(e, l);
    c->reach = tk_layout_thread_bits(l);
    c->disjoint = tk_layout_apart(l);
    LLVMPositionBuilderAtEnd(e->b, here);
    return c;
}

LLVMValueRef tk_emit_linear(tk_emit *e, LLVMValueRef thread, uint32_t reach, uint32_t constant) {
    const uint32_t turned = constant & reach, added = constant & ~reach;
    LLVMValueRef x = turned ? LLVMBuildXor(e->b, thread, tk_emit_i32(e, turned), "") : thread;
    return added ? LLVMBuildNUWAdd(e->b, x, tk_emit_i32(e, added), "") : x;
}

LLVMValueRef tk_emit_element(tk_emit *e, const tk_layout *l, uint32_t r) {
    const struct tk_coord_cache *c = coords(e, l);
    return tk_emit_linear(e, c->thread, c->reach, tk_layout_eval(l, r, 0, 0));
}

tk_emit_coord_parts tk_emit_coord_of(tk_emit *e, const tk_layout *l, uint32_t r, unsigned d) {
    const struct tk_coord_cache *c = coords(e, l);
    unsigned shift = tk_layout_shift(l, d);
    uint32_t mask = (1U << l->log_dim[d]) - 1;
    LLVMValueRef t = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, c->thread, tk_emit_i32(e, shift), ""),
                                  tk_emit_i32(e, mask), "");
    return (tk_emit_coord_parts){t, tk_layout_eval(l, r, 0, 0) >> shift & mask, c->disjoint};
}

LLVMValueRef tk_emit_coord(tk_emit *e, const tk_layout *l, uint32_t r, unsigned d) {
    tk_emit_coord_parts p = tk_emit_coord_of(e, l, r, d);
    return tk_emit_linear(e, p.thread, coords(e, l)->reach >> tk_layout_shift(l, d), p.constant);
}

LLVMValueRef tk_emit_owner(tk_emit *e, const tk_layout *l) { return coords(e, l)->owner; }

void tk_emit_before(tk_emit *e, LLVMValueRef instruction) {
    LLVMMetadataRef at = LLVMGetCurrentDebugLocation2(e->b);
    LLVMPositionBuilderBefore(e->b, instruction); // takes its place in the source, too
    LLVMSetCurrentDebugLocation2(e->b, at);
}

// ---- Control inside one op

static LLVMBasicBlockRef block(tk_emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->ctx, e->fn, name);
}

tk_emit_cond tk_emit_if(tk_emit *e, LLVMValueRef cond) {
    tk_emit_cond c = {NULL, NULL, NULL};
    if (cond) {
        c.then = block(e, "then");
        c.other = c.end = block(e, "end");
        LLVMBuildCondBr(e->b, cond, c.then, c.end);
        LLVMPositionBuilderAtEnd(e->b, c.then);
    }
    return c;
}

void tk_emit_else(tk_emit *e, tk_emit_cond *c) {
    TK_CHECK(e->arena, c->end != NULL);
    LLVMBasicBlockRef join = block(e, "join");
    LLVMBuildBr(e->b, join);
    c->other = c->end; // what was the end of a plain if is the other side
    c->end = join;
    LLVMPositionBuilderAtEnd(e->b, c->other);
}

void tk_emit_end(tk_emit *e, tk_emit_cond *c) {
    if (c->end) {
        LLVMBuildBr(e->b, c->end);
        LLVMPositionBuilderAtEnd(e->b, c->end);
    }
}

tk_emit_loop tk_emit_for(tk_emit *e, LLVMValueRef n) {
    tk_emit_loop l = {block(e, "head"), block(e, "body"), block(e, "done"), NULL};
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    LLVMValueRef zero = tk_emit_i32(e, 0);
    LLVMBuildBr(e->b, l.head);
    LLVMPositionBuilderAtEnd(e->b, l.head);
    l.i = LLVMBuildPhi(e->b, LLVMInt32TypeInContext(e->ctx), "i");
    LLVMAddIncoming(l.i, &zero, &before, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntULT, l.i, n, ""), l.body, l.end);
    LLVMPositionBuilderAtEnd(e->b, l.body);
    return l;
}

static LLVMValueRef end_loop(tk_emit *e, tk_emit_loop *l) {
    LLVMValueRef next = LLVMBuildAdd(e->b, l->i, tk_emit_i32(e, 1), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    LLVMValueRef jump = LLVMBuildBr(e->b, l->head);
    LLVMAddIncoming(l->i, &next, &last, 1);
    LLVMPositionBuilderAtEnd(e->b, l->end);
    return jump;
}

void tk_emit_for_end(tk_emit *e, tk_emit_loop *l) { (void)end_loop(e, l); }

// A loop's name is a node that has itself as its first operand.
void tk_emit_for_end_short(tk_emit *e, tk_emit_loop *l) {
    static const char key[] = "llvm.loop", what[] = "llvm.loop.unroll.disable";
    LLVMMetadataRef disable = LLVMMDStringInContext2(e->ctx, what, sizeof what - 1);
    LLVMMetadataRef self = LLVMTemporaryMDNode(e->ctx, NULL, 0);
    LLVMMetadataRef part[2] = {self, LLVMMDNodeInContext2(e->ctx, &disable, 1)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->ctx, part, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(end_loop(e, l), LLVMGetMDKindIDInContext(e->ctx, key, sizeof key - 1),
                    LLVMMetadataAsValue(e->ctx, node));
}

// ---- Shared memory

void tk_emit_warp_sync(tk_emit *e) {
    LLVMValueRef all = tk_emit_i32(e, -1);
    (void)tk_emit_intrinsic(e, "llvm.nvvm.bar.warp.sync", LLVMVoidTypeInContext(e->ctx), 1, &all);
}

// Those that take wait without those that fetch, at a barrier of their own.
void tk_emit_barrier(tk_emit *e) {
    LLVMValueRef zero = tk_emit_i32(e, 0);
    if (e->side == TK_SIDE_CONSUMER) {
        LLVMValueRef arg[2] = {tk_emit_i32(e, 1), tk_emit_i32(e, e->warps * 32)};
        tk_emit_intrinsic(e, "llvm.nvvm.barrier.cta.sync.aligned.count",
                          LLVMVoidTypeInContext(e->ctx), 2, arg);
        return;
    }
    tk_emit_intrinsic(e, "llvm.nvvm.barrier.cta.sync.aligned.all", LLVMVoidTypeInContext(e->ctx), 1,
                      &zero);
}

tk_scratch tk_emit_scratch(tk_emit *e, const tk_op *op) {
    const tk_scratch s = tk_scratch_of(e->arena, e->f, op);
    const int64_t at = op->at.shared;
    TK_CHECK(e->arena, s.bytes == 0 || (at >= 0 && at + (int64_t)s.bytes <= e->m->shared));
    e->granted_to = op;
    e->granted = s.bytes;
    return s;
}

void tk_emit_check_granted(const tk_emit *e, const tk_op *op, uint64_t bytes) {
    TK_CHECK(e->arena, e->granted_to == op && bytes <= e->granted);
}

LLVMValueRef tk_emit_shared_at(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef offset) {
    tk_emit_check_granted(e, op, base + 1);
    LLVMTypeRef i8 = LLVMInt8TypeInContext(e->ctx);
    LLVMValueRef at = tk_emit_i32(e, op->at.shared + (int64_t)base);
    at = offset ? LLVMBuildAdd(e->b, offset, at, "") : at;
    return LLVMBuildInBoundsGEP2(e->b, i8, e->shared, &at, 1, "");
}

static LLVMValueRef element_at(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t,
                               LLVMValueRef element) {
    LLVMValueRef size = tk_emit_i32(e, (int64_t)tk_dtype_size(t));
    return tk_emit_shared_at(e, op, base, LLVMBuildMul(e->b, element, size, ""));
}

LLVMValueRef tk_emit_fetch(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t,
                           LLVMValueRef element) {
    LLVMValueRef x =
        LLVMBuildLoad2(e->b, tk_emit_mem_type(e, t), element_at(e, op, base, t, element), "");
    LLVMSetAlignment(x, (unsigned)tk_dtype_size(t));
    return tk_emit_from_mem(e, t, x);
}

// ---- Intrinsics

LLVMValueRef tk_emit_intrinsic(tk_emit *e, const char *name, LLVMTypeRef result, uint32_t n,
                               LLVMValueRef *arg) {
    // An unknown name would become a call of nothing.
    TK_CHECK(e->arena, LLVMLookupIntrinsicID(name, strlen(name)) != 0);
    LLVMTypeRef *type = TK_NEW_ARRAY(e->arena, LLVMTypeRef, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        type[i] = LLVMTypeOf(arg[i]);
    }
    LLVMTypeRef ft = LLVMFunctionType(result, type, n, 0);
    LLVMValueRef f = LLVMGetNamedFunction(e->mod, name);
    f = f ? f : LLVMAddFunction(e->mod, name, ft);
    return LLVMBuildCall2(e->b, ft, f, arg, n, "");
}

static LLVMValueRef shuffle_i32(tk_emit *e, LLVMValueRef x, unsigned mask) {
    LLVMValueRef arg[4] = {tk_emit_i32(e, -1), x, tk_emit_i32(e, mask), tk_emit_i32(e, 31)};
    return tk_emit_intrinsic(e, "llvm.nvvm.shfl.sync.bfly.i32", LLVMInt32TypeInContext(e->ctx), 4,
                             arg);
}

LLVMValueRef tk_emit_shuffle_xor(tk_emit *e, LLVMValueRef x, unsigned mask) {
    LLVMTypeRef t = LLVMTypeOf(x), i32 = LLVMInt32TypeInContext(e->ctx),
                i64 = LLVMInt64TypeInContext(e->ctx);
    LLVMTypeKind kind = LLVMGetTypeKind(t);
    unsigned bits = kind == LLVMIntegerTypeKind  ? LLVMGetIntTypeWidth(t)
                    : kind == LLVMDoubleTypeKind ? 64
                    : kind == LLVMFloatTypeKind  ? 32
                                                 : 16;
    LLVMTypeRef as_int = LLVMIntTypeInContext(e->ctx, bits);
    LLVMValueRef v = kind == LLVMIntegerTypeKind ? x : LLVMBuildBitCast(e->b, x, as_int, "");
    if (bits == 64) {
        LLVMValueRef half = tk_emit_i64(e, 32);
        LLVMValueRef lo = shuffle_i32(e, LLVMBuildTrunc(e->b, v, i32, ""), mask);
        LLVMValueRef hi =
            shuffle_i32(e, LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, v, half, ""), i32, ""), mask);
        hi = LLVMBuildShl(e->b, LLVMBuildZExt(e->b, hi, i64, ""), half, "");
        v = LLVMBuildOr(e->b, hi, LLVMBuildZExt(e->b, lo, i64, ""), "");
    } else {
        v = bits < 32 ? LLVMBuildZExt(e->b, v, i32, "") : v;
        v = shuffle_i32(e, v, mask);
        v = bits < 32 ? LLVMBuildTrunc(e->b, v, as_int, "") : v;
    }
    return kind == LLVMIntegerTypeKind ? v : LLVMBuildBitCast(e->b, v, t, "");
}

// ---- Refusals

void tk_emit_refuse(tk_emit *e, const tk_op *op, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *why = tk_vformat(e->arena, fmt, args);
    va_end(args);
    tk_gpu_refuse(e->diags, e->m, e->target, op, why);
    e->refused = true;
}
