// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory: written and read in vectors of up to 16 bytes where registers walk
// consecutive elements. For ops that find elements by their numbers they lie there in row-major
// order; for moves as ir/move.h says.
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

#include "ir/move.h"

typedef struct exchange {
    tk_emit *e;
    const tk_op *op;
    tk_dtype t;
    uint64_t base; // in the op's bytes
    tk_swizzle s;
    LLVMValueRef from; // elements behind it; NULL: none
} exchange;

// The place of the vector that register r of a side begins: linear, so the thread's part is found
// once.
static LLVMValueRef place(const exchange *x, const tk_side *side, uint32_t r, unsigned run) {
    tk_emit *e = x->e;
    LLVMValueRef at = tk_emit_element(e, &side->l, 0);
    const uint32_t reach = tk_layout_thread_bits(&side->l);
    if (x->s.from) {
        LLVMValueRef high = LLVMBuildLShr(e->b, at, tk_emit_i32(e, x->s.from), "");
        high = LLVMBuildAnd(e->b, high, tk_emit_i32(e, (1 << TK_SWIZZLE_BITS) - 1), "");
        at = LLVMBuildXor(e->b, at, LLVMBuildShl(e->b, high, tk_emit_i32(e, x->s.to), ""), "");
    }
    const uint32_t number = (tk_layout_eval(&side->l, r, 0, 0) ^ side->at) >> run << run;
    const uint32_t all =
        reach | (x->s.from ? (reach >> x->s.from & ((1U << TK_SWIZZLE_BITS) - 1)) << x->s.to : 0);
    at = tk_emit_linear(e, at, all, tk_swizzle_apply(x->s, number));
    at = x->from ? tk_ll_add(e, x->from, at) : at;
    LLVMValueRef size = tk_emit_i32(e, (int64_t)tk_dtype_size(x->t));
    return tk_emit_shared_at(e, x->op, x->base, LLVMBuildMul(e->b, at, size, ""));
}

// Register r with element i of its vector.
static uint32_t member(const tk_run *run, const tk_side *side, uint32_t r, uint32_t i) {
    return r | tk_run_registers(run, i ^ (side->at & ((1U << run->n) - 1)));
}

static void write_all(const exchange *x, const tk_side *side, LLVMValueRef *v) {
    tk_emit *e = x->e;
    const tk_run run = tk_run_of(&side->l, x->t);
    const uint32_t n = 1U << run.n;
    LLVMTypeRef type = tk_emit_mem_type(e, x->t);
    for (uint32_t r = 0; r < 1U << side->l.regs; r++) {
        if (r & run.mask) {
            continue;
        }
        LLVMValueRef all = n > 1 ? LLVMGetUndef(LLVMVectorType(type, n)) : NULL;
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef y = tk_emit_to_mem(e, x->t, v[member(&run, side, r, i)]);
            all = n > 1 ? LLVMBuildInsertElement(e->b, all, y, tk_emit_i32(e, i), "") : y;
        }
        LLVMValueRef s = LLVMBuildStore(e->b, all, place(x, side, r, run.n));
        LLVMSetAlignment(s, (unsigned)tk_dtype_size(x->t) * n);
    }
}

static void write_side(const exchange *x, const tk_side *side, LLVMValueRef *v) {
    tk_emit_cond own = tk_emit_if(x->e, tk_emit_owner(x->e, &side->l));
    write_all(x, side, v);
    tk_emit_end(x->e, &own);
}

static void read_side(const exchange *x, const tk_side *side, LLVMValueRef *out) {
    tk_emit *e = x->e;
    const tk_run run = tk_run_of(&side->l, x->t);
    const uint32_t n = 1U << run.n;
    LLVMTypeRef type = tk_emit_mem_type(e, x->t);
    for (uint32_t r = 0; r < 1U << side->l.regs; r++) {
        if (r & run.mask) {
            continue;
        }
        LLVMTypeRef all = n > 1 ? LLVMVectorType(type, n) : type;
        LLVMValueRef v = LLVMBuildLoad2(e->b, all, place(x, side, r, run.n), "");
        LLVMSetAlignment(v, (unsigned)tk_dtype_size(x->t) * n);
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef y = n > 1 ? LLVMBuildExtractElement(e->b, v, tk_emit_i32(e, i), "") : v;
            out[member(&run, side, r, i)] = tk_emit_from_mem(e, x->t, y);
        }
    }
}

void tk_emit_exchange(tk_emit *e, const tk_op *op, const tk_moving *m, LLVMValueRef *const *x,
                      LLVMValueRef *const *out) {
    double cost;
    const exchange s = {e, op, m->dtype, 0, tk_swizzle_of(m, &cost), NULL};
    for (unsigned i = 0; i < (m->joined ? 1 : m->nsrc); i++) {
        write_side(&s, m->joined ? &m->all : &m->src[i], x[i]);
    }
    tk_emit_barrier(e);
    for (unsigned i = 0; i < m->ndst; i++) {
        read_side(&s, &m->dst[i], out[i]);
    }
}

// ---- Row-major ----------------------------------------------------------------------------------

static exchange plain(tk_emit *e, const tk_op *op, uint64_t base, const tk_layout *l, tk_dtype t) {
    tk_emit_check_granted(e, op, base + ((uint64_t)tk_dtype_size(t) << tk_layout_bits(l)));
    return (exchange){e, op, t, base, {0, 0}, NULL};
}

void tk_emit_spill_values(tk_emit *e, const tk_op *op, uint64_t base, const tk_layout *l,
                          tk_dtype t, LLVMValueRef *x) {
    const exchange s = plain(e, op, base, l, t);
    const tk_side side = {*l, 0};
    write_side(&s, &side, x);
}

void tk_emit_spill(tk_emit *e, const tk_op *op, uint64_t base, tk_vid v) {
    tk_emit_spill_values(e, op, base, tk_emit_layout(e, v), tk_value_type(e->f, v)->dtype,
                         tk_emit_get(e, v));
}

void tk_emit_fetch_values(tk_emit *e, const tk_op *op, uint64_t base, const tk_layout *l,
                          tk_dtype t, LLVMValueRef *out) {
    const exchange s = plain(e, op, base, l, t);
    const tk_side side = {*l, 0};
    read_side(&s, &side, out);
}

// ---- One of several tiles behind each other -----------------------------------------------------

void tk_emit_put_values(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef from,
                        const tk_layout *l, tk_dtype t, LLVMValueRef *x) {
    exchange s = plain(e, op, base, l, t);
    const tk_side side = {*l, 0};
    s.from = from;
    write_all(&s, &side, x);
}

void tk_emit_put_side(tk_emit *e, const tk_op *op, uint64_t base, const tk_side *side, tk_dtype t,
                      LLVMValueRef *x) {
    const exchange s = plain(e, op, base, &side->l, t);
    write_all(&s, side, x);
}

void tk_emit_take_values(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef from,
                         const tk_layout *l, tk_dtype t, LLVMValueRef *out) {
    exchange s = plain(e, op, base, l, t);
    const tk_side side = {*l, 0};
    s.from = from;
    read_side(&s, &side, out);
}

void tk_emit_fetch_row(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t, uint32_t n,
                       LLVMValueRef *out) {
    const unsigned size = (unsigned)tk_dtype_size(t);
    uint32_t together = 1;
    while (together < n && together * size < TK_VECTOR_BYTES) {
        together *= 2;
    }
    LLVMTypeRef type = tk_emit_mem_type(e, t);
    tk_emit_check_granted(e, op, base + (uint64_t)n * size);
    for (uint32_t i = 0; i < n; i += together) {
        LLVMTypeRef all = together > 1 ? LLVMVectorType(type, together) : type;
        LLVMValueRef at = tk_emit_shared_at(e, op, base + (uint64_t)i * size, NULL);
        LLVMValueRef v = LLVMBuildLoad2(e->b, all, at, "");
        LLVMSetAlignment(v, size * together);
        for (uint32_t k = 0; k < together; k++) {
            LLVMValueRef y =
                together > 1 ? LLVMBuildExtractElement(e->b, v, tk_emit_i32(e, k), "") : v;
            out[i + k] = tk_emit_from_mem(e, t, y);
        }
    }
}
