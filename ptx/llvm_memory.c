// SPDX-License-Identifier: Apache-2.0
// Loads and stores of views.
//
// The index of an element is computed in 64 bits; it is inside where it is below the size as an
// unsigned number, so negative ones are outside. A start of type u64 at or above 2^63 is brought to
// the least i64, from which no range comes back inside.
//
// Where the last dimension is a range whose elements stand in consecutive registers and is promised
// to have stride 1 and aligned rows, there are two ways: vectors of up to 16 bytes where a thread
// finds all its elements inside and aligned, else element by element. Both are exact; which one is
// taken is decided when the kernel runs.
#include "lower/views.h"
#include "ptx/llvm_internal.h"

// ---- Views

static LLVMValueRef index64(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    LLVMTypeRef i64 = LLVMInt64TypeInContext(e->ctx);
    if (tk_dtype_is_signed(t)) {
        return LLVMBuildSExt(e->b, x, i64, "");
    }
    if (t != TK_U64) {
        return LLVMBuildZExt(e->b, x, i64, "");
    }
    LLVMValueRef far = LLVMBuildICmp(e->b, LLVMIntSLT, x, tk_emit_i64(e, 0), "");
    return LLVMBuildSelect(e->b, far, tk_emit_i64(e, INT64_MIN), x, "");
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

tk_emit_view tk_emit_view_make(tk_emit *e, const tk_op *op, const tk_type *result,
                               const tk_layout *l) {
    tk_view_axes axes = tk_view_axes_of(e->f, op);
    tk_emit_view v = {.op = op,
                      .l = l,
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
            v.start[d] = index64(e, t, tk_emit_get(e, at)[0]);
            v.axis[d] = op->at.index[d] > 0 ? axes.first[d] : -1;
        }
    }
    return v;
}

static LLVMValueRef index_of(tk_emit *e, const tk_emit_view *v, uint32_t r, uint32_t d) {
    if (v->reg_of[d]) {
        tk_dtype t = tk_value_type(e->f, v->at[d])->dtype;
        return index64(e, t, tk_emit_get(e, v->at[d])[v->reg_of[d][r]]);
    }
    if (v->axis[d] < 0) {
        return v->start[d];
    }
    LLVMValueRef c = tk_emit_coord(e, v->l, r, (unsigned)v->axis[d]);
    return LLVMBuildAdd(e->b, v->start[d],
                        LLVMBuildZExt(e->b, c, LLVMInt64TypeInContext(e->ctx), ""), "");
}

LLVMValueRef tk_emit_view_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, LLVMValueRef mask) {
    LLVMValueRef in = mask;
    const tk_tensor_args *t = &e->tensor[v->param];
    for (uint32_t d = 0; d < v->rank; d++) {
        LLVMValueRef n = LLVMBuildZExt(e->b, t->dim[d], LLVMInt64TypeInContext(e->ctx), "");
        LLVMValueRef ok = LLVMBuildICmp(e->b, LLVMIntULT, index_of(e, v, r, d), n, "");
        in = in ? LLVMBuildAnd(e->b, in, ok, "") : ok;
    }
    return in;
}

LLVMValueRef tk_emit_view_address(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    const tk_tensor_args *t = &e->tensor[v->param];
    LLVMValueRef at = tk_emit_i64(e, 0);
    for (uint32_t d = 0; d < v->rank; d++) {
        at = LLVMBuildAdd(e->b, at, LLVMBuildMul(e->b, index_of(e, v, r, d), t->stride[d], ""), "");
    }
    return LLVMBuildGEP2(e->b, tk_emit_mem_type(e, v->dtype), t->base, &at, 1, "");
}

LLVMValueRef tk_emit_view_owner(tk_emit *e, const tk_emit_view *v) {
    if (v->l) {
        return tk_emit_owner(e, v->l);
    }
    return LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, tk_emit_i32(e, 0), "");
}

// Registers of one vector: a power of two, 1 where there is no vector to be had.
static uint32_t vector_of(const tk_emit *e, const tk_emit_view *v) {
    const tk_tensor_args *t = &e->tensor[v->param];
    uint32_t last = v->rank - 1;
    if (!v->l || v->axis[last] < 0 || !t->facts.unit_last || !t->facts.aligned16) {
        return 1;
    }
    uint32_t n = 1U << tk_layout_vector(v->l, (unsigned)v->axis[last]);
    uint32_t most = 16U / (uint32_t)tk_dtype_size(v->dtype);
    return n < most ? n : most;
}

static LLVMValueRef mask_of(tk_emit *e, const LLVMValueRef *mask, uint32_t r) {
    (void)e;
    return mask ? mask[r] : NULL;
}

// i1: every element of this thread is inside, and each vector of `vec` registers is aligned.
static LLVMValueRef all_fast(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                             uint32_t vec) {
    LLVMTypeRef i64 = LLVMInt64TypeInContext(e->ctx);
    LLVMValueRef ok = NULL;
    uint64_t bytes = vec * tk_dtype_size(v->dtype);
    for (uint32_t r = 0; r < 1U << v->l->regs; r++) {
        // Inside a vector only the last index varies and grows, so its ends tell for all.
        bool end = r % vec == 0 || r % vec == vec - 1;
        LLVMValueRef in =
            end ? tk_emit_view_inside(e, v, r, mask_of(e, mask, r)) : mask_of(e, mask, r);
        ok = ok && in ? LLVMBuildAnd(e->b, ok, in, "") : in ? in : ok;
        if (r % vec == 0 && vec > 1) {
            LLVMValueRef p = LLVMBuildPtrToInt(e->b, tk_emit_view_address(e, v, r), i64, "");
            LLVMValueRef low = LLVMBuildAnd(e->b, p, tk_emit_i64(e, (int64_t)bytes - 1), "");
            LLVMValueRef al = LLVMBuildICmp(e->b, LLVMIntEQ, low, tk_emit_i64(e, 0), "");
            ok = LLVMBuildAnd(e->b, ok, al, "");
        }
    }
    return ok;
}

// ---- Load

static LLVMValueRef load_one(tk_emit *e, const tk_emit_view *v, uint32_t r) {
    LLVMValueRef x =
        LLVMBuildLoad2(e->b, tk_emit_mem_type(e, v->dtype), tk_emit_view_address(e, v, r), "");
    LLVMSetAlignment(x, (unsigned)tk_dtype_size(v->dtype));
    return tk_emit_from_mem(e, v->dtype, x);
}

// Element by element, each guarded.
static void load_guarded(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                         const LLVMValueRef *other, LLVMValueRef *out, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef outside = other ? other[r] : LLVMConstNull(tk_emit_type(e, v->dtype));
        LLVMValueRef in = tk_emit_view_inside(e, v, r, mask_of(e, mask, r));
        LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
        tk_emit_cond c = tk_emit_if(e, in);
        LLVMValueRef x = load_one(e, v, r);
        LLVMBasicBlockRef loaded = LLVMGetInsertBlock(e->b);
        tk_emit_end(e, &c);
        LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(x), "");
        LLVMAddIncoming(phi, &x, &loaded, 1);
        LLVMAddIncoming(phi, &outside, &before, 1);
        out[r] = phi;
    }
}

static void load_vectors(tk_emit *e, const tk_emit_view *v, uint32_t vec, LLVMValueRef *out) {
    LLVMTypeRef t = LLVMVectorType(tk_emit_mem_type(e, v->dtype), vec);
    for (uint32_t r = 0; r < 1U << v->l->regs; r += vec) {
        LLVMValueRef x = LLVMBuildLoad2(e->b, t, tk_emit_view_address(e, v, r), "");
        LLVMSetAlignment(x, (unsigned)(vec * tk_dtype_size(v->dtype)));
        for (uint32_t i = 0; i < vec; i++) {
            out[r + i] = tk_emit_from_mem(e, v->dtype,
                                          LLVMBuildExtractElement(e->b, x, tk_emit_i32(e, i), ""));
        }
    }
}

static void load_tile(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                      const LLVMValueRef *other, LLVMValueRef *out) {
    uint32_t n = 1U << v->l->regs, vec = vector_of(e, v);
    if (vec == 1) {
        load_guarded(e, v, mask, other, out, n);
        return;
    }
    LLVMValueRef *fast = TK_NEW_ARRAY(e->arena, LLVMValueRef, n),
                 *slow = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    tk_emit_cond c = tk_emit_if(e, all_fast(e, v, mask, vec));
    load_vectors(e, v, vec, fast);
    LLVMBasicBlockRef from_fast = LLVMGetInsertBlock(e->b);
    tk_emit_else(e, &c);
    load_guarded(e, v, mask, other, slow, n);
    LLVMBasicBlockRef from_slow = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    for (uint32_t r = 0; r < n; r++) {
        out[r] = LLVMBuildPhi(e->b, LLVMTypeOf(fast[r]), "");
        LLVMAddIncoming(out[r], &fast[r], &from_fast, 1);
        LLVMAddIncoming(out[r], &slow[r], &from_slow, 1);
    }
}

// A scalar of a tensor that is written somewhere is read by one thread for all, so that all see the
// same.
static void load_scalar(tk_emit *e, const tk_op *op, const tk_emit_view *v,
                        const LLVMValueRef *mask, const LLVMValueRef *other, LLVMValueRef *out) {
    if (tk_emit_scratch(e, op).work == TK_WORK_THREAD) {
        load_guarded(e, v, mask, other, out, 1);
        return;
    }
    tk_emit_cond c = tk_emit_if(e, tk_emit_view_owner(e, v));
    load_guarded(e, v, mask, other, out, 1);
    LLVMBuildStore(e->b, tk_emit_to_mem(e, v->dtype, out[0]), tk_emit_shared_at(e, op, 0, NULL));
    tk_emit_end(e, &c);
    tk_emit_barrier(e);
    out[0] = tk_emit_fetch(e, op, 0, v->dtype, tk_emit_i32(e, 0));
}

static void load(tk_emit *e, const tk_op *op) {
    const tk_type *t = tk_view_type(e->f, op);
    uint32_t next = 1 + tk_value_type(e->f, op->opnd[0])->rank;
    const LLVMValueRef *mask = op->at.masked ? tk_emit_get(e, op->opnd[next++]) : NULL;
    const LLVMValueRef *other = op->at.other ? tk_emit_get(e, op->opnd[next]) : NULL;
    tk_emit_view v = tk_emit_view_make(e, op, t, tk_emit_layout(e, op->res[0]));
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    if (v.l) {
        load_tile(e, &v, mask, other, out);
    } else {
        load_scalar(e, op, &v, mask, other, out);
    }
}

// ---- Store

static void store_guarded(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                          const LLVMValueRef *x, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        tk_emit_cond c = tk_emit_if(e, tk_emit_view_inside(e, v, r, mask_of(e, mask, r)));
        LLVMValueRef s =
            LLVMBuildStore(e->b, tk_emit_to_mem(e, v->dtype, x[r]), tk_emit_view_address(e, v, r));
        LLVMSetAlignment(s, (unsigned)tk_dtype_size(v->dtype));
        tk_emit_end(e, &c);
    }
}

static void store_vectors(tk_emit *e, const tk_emit_view *v, uint32_t vec, const LLVMValueRef *x) {
    LLVMTypeRef t = LLVMVectorType(tk_emit_mem_type(e, v->dtype), vec);
    for (uint32_t r = 0; r < 1U << v->l->regs; r += vec) {
        LLVMValueRef all = LLVMGetUndef(t);
        for (uint32_t i = 0; i < vec; i++) {
            all = LLVMBuildInsertElement(e->b, all, tk_emit_to_mem(e, v->dtype, x[r + i]),
                                         tk_emit_i32(e, i), "");
        }
        LLVMValueRef s = LLVMBuildStore(e->b, all, tk_emit_view_address(e, v, r));
        LLVMSetAlignment(s, (unsigned)(vec * tk_dtype_size(v->dtype)));
    }
}

static void store(tk_emit *e, const tk_op *op) {
    const tk_type *t = tk_view_type(e->f, op);
    uint32_t at = 1 + tk_value_type(e->f, op->opnd[0])->rank;
    const LLVMValueRef *x = tk_emit_get(e, op->opnd[at]);
    const LLVMValueRef *mask = op->at.masked ? tk_emit_get(e, op->opnd[at + 1]) : NULL;
    tk_emit_view v = tk_emit_view_make(e, op, t, tk_emit_layout(e, op->opnd[at]));
    uint32_t vec = vector_of(e, &v);
    tk_emit_cond own = tk_emit_if(e, tk_emit_view_owner(e, &v));
    if (vec == 1) {
        store_guarded(e, &v, mask, x, v.l ? 1U << v.l->regs : 1);
    } else {
        tk_emit_cond c = tk_emit_if(e, all_fast(e, &v, mask, vec));
        store_vectors(e, &v, vec, x);
        tk_emit_else(e, &c);
        store_guarded(e, &v, mask, x, 1U << v.l->regs);
        tk_emit_end(e, &c);
    }
    tk_emit_end(e, &own);
}

void tk_emit_memory_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_LOAD) {
        load(e, op);
    } else {
        store(e, op);
    }
}
