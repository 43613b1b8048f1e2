// SPDX-License-Identifier: Apache-2.0
// sort, topk, histogram.
//
// Elements become keys: unsigned integers in the order of the values, the greatest for every NaN;
// the complement where the order falls. Pairs of key and place in the line are sorted in scratch by
// a bitonic network. No two pairs are equal, so the order is that of a stable sort. The values are
// fetched by the sorted places at the end.
#include "ptx/llvm_across.h"

typedef struct sorter {
    tk_emit *e;
    const tk_op *op;
    tk_dtype t, key;
    bool descending;
    tk_emit_lines lines;
    uint64_t values, keys, places; // in scratch
} sorter;

// ---- Keys ---------------------------------------------------------------------------------------

static LLVMValueRef float_key(const sorter *s, LLVMValueRef x) {
    tk_emit *e = s->e;
    const bool wide = s->t == TK_F64;
    LLVMTypeRef bits = tk_ll_int(e, wide ? 64 : 32);
    LLVMValueRef f = tk_emit_cast_elem(e, s->t, wide ? TK_F64 : TK_F32, x);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(f)), u = tk_ll_bits(e, f, bits);
    LLVMValueRef top = tk_ll_k(u, (uint64_t)1 << (wide ? 63 : 31));
    u = tk_ll_sel(e, LLVMBuildFCmp(e->b, LLVMRealOEQ, f, zero, ""), tk_ll_k(u, 0), u);
    LLVMValueRef negative = tk_ll_icmp(e, LLVMIntSLT, u, tk_ll_k(u, 0));
    LLVMValueRef key = tk_ll_sel(e, negative, LLVMBuildNot(e->b, u, ""), tk_ll_or(e, u, top));
    LLVMValueRef nan = LLVMBuildFCmp(e->b, LLVMRealUNO, f, f, "");
    return tk_ll_sel(e, nan, LLVMConstAllOnes(bits), key);
}

static LLVMValueRef key_of(const sorter *s, LLVMValueRef x) {
    tk_emit *e = s->e;
    const unsigned bits = tk_dtype_bits(s->key);
    LLVMValueRef key;
    if (tk_dtype_is_float(s->t)) {
        key = float_key(s, x);
    } else {
        const bool is_signed = tk_dtype_is_signed(s->t);
        key = tk_ll_resize(e, x, bits, is_signed);
        key = is_signed ? tk_ll_xor(e, key, tk_ll_k(key, (uint64_t)1 << (bits - 1))) : key;
    }
    return s->descending ? LLVMBuildNot(e->b, key, "") : key;
}

// ---- The network --------------------------------------------------------------------------------

// Puts the pairs at two places of a line into order: rising where `up`.
static void exchange(const sorter *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef up) {
    tk_emit *e = s->e;
    LLVMValueRef ka = tk_emit_fetch(e, s->op, s->keys, s->key, a);
    LLVMValueRef kb = tk_emit_fetch(e, s->op, s->keys, s->key, b);
    LLVMValueRef ia = tk_emit_fetch(e, s->op, s->places, TK_I32, a);
    LLVMValueRef ib = tk_emit_fetch(e, s->op, s->places, TK_I32, b);
    LLVMValueRef same = tk_ll_icmp(e, LLVMIntEQ, ka, kb);
    LLVMValueRef greater = tk_ll_and(e, same, tk_ll_icmp(e, LLVMIntUGT, ia, ib));
    greater = tk_ll_or(e, greater, tk_ll_icmp(e, LLVMIntUGT, ka, kb));
    tk_emit_cond c = tk_emit_if(e, tk_ll_icmp(e, LLVMIntEQ, greater, up));
    tk_emit_put(e, s->op, s->keys, s->key, a, kb);
    tk_emit_put(e, s->op, s->keys, s->key, b, ka);
    tk_emit_put(e, s->op, s->places, TK_I32, a, ib);
    tk_emit_put(e, s->op, s->places, TK_I32, b, ia);
    tk_emit_end(e, &c);
}

// Work i of the step that compares places 2^log apart in runs of 2^(run + 1).
static void compare_pair(const sorter *s, LLVMValueRef i, LLVMValueRef run, LLVMValueRef log) {
    tk_emit *e = s->e;
    LLVMBuilderRef b = e->b;
    const unsigned half = s->lines.log - 1;
    LLVMValueRef one = tk_emit_i32(e, 1), distance = LLVMBuildShl(b, one, log, "");
    LLVMValueRef q = tk_ll_shr(e, i, half), p = tk_ll_mask(e, i, (1U << half) - 1);
    LLVMValueRef low = tk_ll_and(e, p, tk_ll_sub(e, distance, one));
    LLVMValueRef first = LLVMBuildShl(b, LLVMBuildLShr(b, p, log, ""), tk_ll_add(e, log, one), "");
    first = tk_ll_or(e, first, low);
    LLVMValueRef second = tk_ll_or(e, first, distance);
    LLVMValueRef falls = LLVMBuildLShr(b, first, tk_ll_add(e, run, one), "");
    LLVMValueRef up = tk_ll_is(e, tk_ll_mask(e, falls, 1), 0);
    exchange(s, tk_emit_line_at(e, &s->lines, q, first), tk_emit_line_at(e, &s->lines, q, second),
             up);
}

static void network(const sorter *s) {
    tk_emit *e = s->e;
    LLVMValueRef one = tk_emit_i32(e, 1);
    tk_emit_loop run = tk_emit_for(e, tk_emit_i32(e, s->lines.log));
    tk_emit_loop step = tk_emit_for(e, tk_ll_add(e, run.i, one));
    tk_emit_work w = tk_emit_work_begin(e, s->lines.count * (s->lines.len / 2));
    compare_pair(s, w.i, run.i, tk_ll_sub(e, run.i, step.i));
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
    tk_emit_for_end(e, &step);
    tk_emit_for_end(e, &run);
}

// ---- sort and topk ------------------------------------------------------------------------------

static void spill(const sorter *s) {
    tk_emit *e = s->e;
    const tk_layout *l = tk_emit_layout(e, s->op->opnd[0]);
    const uint32_t n = 1U << l->regs;
    LLVMValueRef *x = tk_emit_get(e, s->op->opnd[0]);
    LLVMValueRef *key = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    LLVMValueRef *place = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    for (uint32_t r = 0; r < n; r++) {
        key[r] = key_of(s, x[r]);
        place[r] = tk_emit_line_place(e, &s->lines, tk_emit_element(e, l, r));
    }
    tk_emit_spill(e, s->op, s->values, s->op->opnd[0]);
    tk_emit_spill_values(e, s->op, s->keys, l, s->key, key);
    tk_emit_spill_values(e, s->op, s->places, l, TK_I32, place);
}

// Result i of sort or topk: fewer elements a line than the operand has, perhaps.
static void results(const sorter *s, uint32_t i) {
    tk_emit *e = s->e;
    const tk_type *x = tk_value_type(e->f, s->op->opnd[0]);
    const tk_layout *l = tk_emit_layout(e, s->op->res[i]);
    LLVMValueRef *out = tk_emit_new(e, s->op->res[i]);
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        LLVMValueRef c[TK_MAX_RANK];
        for (unsigned d = 0; d < x->rank; d++) {
            c[d] = tk_emit_coord(e, l, r, d);
        }
        LLVMValueRef at = tk_emit_flat(e, x, c);
        LLVMValueRef place = tk_emit_fetch(e, s->op, s->places, TK_I32, at);
        LLVMValueRef from = tk_emit_line_move(e, &s->lines, at, place);
        out[r] = i ? place : tk_emit_fetch(e, s->op, s->values, s->t, from);
    }
}

static void sort(tk_emit *e, tk_op *op) {
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    const tk_scratch scratch = tk_emit_scratch(e, op);
    sorter s = {.e = e, .op = op, .t = x->dtype};
    s.key = tk_sort_key(x->dtype);
    s.descending = op->code == TK_OP_TOPK || op->at.descending;
    s.lines = tk_emit_lines_of(x, op->at.axis);
    s.values = scratch.part[0];
    s.keys = scratch.part[1];
    s.places = scratch.part[2];
    spill(&s);
    tk_emit_barrier(e);
    if (s.lines.log > 0) {
        network(&s);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        results(&s, i);
    }
}

// ---- histogram ----------------------------------------------------------------------------------

static void count(tk_emit *e, const tk_op *op, LLVMValueRef x, int64_t bins) {
    const tk_dtype t = tk_value_type(e->f, op->opnd[0])->dtype;
    LLVMValueRef wide = tk_ll_resize(e, x, 64, tk_dtype_is_signed(t));
    tk_emit_cond in = tk_emit_if(e, tk_ll_icmp(e, LLVMIntULT, wide, tk_emit_i64(e, bins)));
    LLVMValueRef offset = tk_ll_shl(e, tk_ll_resize(e, wide, 32, false), 2);
    LLVMBuildAtomicRMW(e->b, LLVMAtomicRMWBinOpAdd, tk_emit_shared_at(e, op, 0, offset),
                       tk_emit_i32(e, 1), LLVMAtomicOrderingMonotonic, 0);
    tk_emit_end(e, &in);
}

static void histogram(tk_emit *e, tk_op *op) {
    const tk_layout *from = tk_emit_layout(e, op->opnd[0]), *l = tk_emit_layout(e, op->res[0]);
    const int64_t bins = tk_value_type(e->f, op->res[0])->dim[0];
    LLVMValueRef *x = tk_emit_get(e, op->opnd[0]), *out = tk_emit_new(e, op->res[0]);
    (void)tk_emit_scratch(e, op);
    tk_emit_work w = tk_emit_work_begin(e, (uint32_t)bins);
    tk_emit_put(e, op, 0, TK_I32, w.i, tk_emit_i32(e, 0));
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, from));
    for (uint32_t r = 0; r < 1U << from->regs; r++) {
        count(e, op, x[r], bins);
    }
    tk_emit_end(e, &own);
    tk_emit_barrier(e);
    tk_emit_fetch_values(e, op, 0, l, TK_I32, out);
}

void tk_emit_sort_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_HISTOGRAM) {
        histogram(e, op);
    } else {
        sort(e, op);
    }
}
