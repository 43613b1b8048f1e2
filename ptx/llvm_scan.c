// SPDX-License-Identifier: Apache-2.0
// scan and scan_fn: with doubling distance in scratch, in two buffers that take turns. Step k
// combines each element with the one 2^k before it in its line (reverse: after it), the earlier one
// on the left. An exclusive scan is the inclusive one moved by one place: the kinds then put their
// identity into the free place; scan_fn combines its initial value with the first element before it
// starts.
#include "ptx/llvm_across.h"

typedef struct scan {
    tk_emit *e;
    const tk_op *op;
    uint32_t m;
    tk_dtype *t;
    const uint64_t *base; // of two buffers, one after the other
    tk_emit_lines lines;
    uint32_t n; // elements
} scan;

// ---- Combining ----------------------------------------------------------------------------------

// Arguments are m earlier and m later scalars.
static void combine(const scan *s, const LLVMValueRef *arg, LLVMValueRef *out) {
    if (s->op->code == TK_OP_SCAN_FN) {
        tk_emit_combine(s->e, s->op->reg[0], arg, out);
        return;
    }
    const tk_numop num = tk_emit_kind_op(s->e, s->op->at.kind);
    out[0] = tk_emit_elem(s->e, num, s->t[0], s->op->fast, arg);
}

static void fetch_all(const scan *s, LLVMValueRef element, LLVMValueRef *x) {
    for (uint32_t k = 0; k < s->m; k++) {
        x[k] = tk_emit_fetch(s->e, s->op, s->base[k], s->t[k], element);
    }
}

static void put_all(const scan *s, LLVMValueRef element, LLVMValueRef *x) {
    for (uint32_t k = 0; k < s->m; k++) {
        tk_emit_put(s->e, s->op, s->base[k], s->t[k], element, x[k]);
    }
}

// ---- Steps --------------------------------------------------------------------------------------

// Element `at` of the buffer that is written; the one read starts at element `from`.
static void one(const scan *s, LLVMValueRef at, LLVMValueRef from, LLVMValueRef to,
                LLVMValueRef distance) {
    tk_emit *e = s->e;
    LLVMValueRef *arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * s->m);
    LLVMValueRef *out = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->m);
    const bool reverse = s->op->at.reverse;
    LLVMValueRef place = tk_emit_line_place(e, &s->lines, at);
    LLVMValueRef other = reverse ? tk_ll_add(e, place, distance) : tk_ll_sub(e, place, distance);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, other, tk_emit_i32(e, s->lines.len));
    LLVMValueRef partner = tk_ll_add(e, from, tk_emit_line_move(e, &s->lines, at, other));
    LLVMValueRef here = tk_ll_add(e, from, at), there = tk_ll_add(e, to, at);
    tk_emit_cond c = tk_emit_if(e, in);
    fetch_all(s, reverse ? here : partner, arg);
    fetch_all(s, reverse ? partner : here, arg + s->m);
    combine(s, arg, out);
    put_all(s, there, out);
    tk_emit_else(e, &c);
    fetch_all(s, here, out);
    put_all(s, there, out);
    tk_emit_end(e, &c);
}

static void steps(const scan *s) {
    tk_emit *e = s->e;
    LLVMValueRef n = tk_emit_i32(e, s->n);
    tk_emit_loop step = tk_emit_for(e, tk_emit_i32(e, s->lines.log));
    LLVMValueRef from = tk_ll_mul(e, tk_ll_mask(e, step.i, 1), n), to = tk_ll_sub(e, n, from);
    LLVMValueRef distance = LLVMBuildShl(e->b, tk_emit_i32(e, 1), step.i, "");
    tk_emit_work w = tk_emit_work_begin(e, s->n);
    one(s, w.i, from, to, distance);
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
    tk_emit_for_end(e, &step);
}

// The initial values go before the first element of each line (reverse: behind the last).
static void start_lines(const scan *s) {
    tk_emit *e = s->e;
    LLVMValueRef *arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * s->m);
    LLVMValueRef *out = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->m);
    const bool reverse = s->op->at.reverse;
    LLVMValueRef first = tk_emit_i32(e, reverse ? s->lines.len - 1 : 0);
    tk_emit_work w = tk_emit_work_begin(e, s->lines.count);
    LLVMValueRef at = tk_emit_line_at(e, &s->lines, w.i, first);
    fetch_all(s, at, reverse ? arg : arg + s->m);
    for (uint32_t k = 0; k < s->m; k++) {
        arg[reverse ? s->m + k : k] = tk_emit_get(e, s->op->opnd[s->m + k])[0];
    }
    combine(s, arg, out);
    put_all(s, at, out);
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
}

// ---- Results ------------------------------------------------------------------------------------

// What stands in the first place of an exclusive scan.
static LLVMValueRef first_value(const scan *s, uint32_t k) {
    if (s->op->code == TK_OP_SCAN_FN) {
        return tk_emit_get(s->e, s->op->opnd[s->m + k])[0];
    }
    const tk_numop num = tk_emit_kind_op(s->e, s->op->at.kind);
    const tk_dtype t = s->t[0];
    return tk_emit_const(s->e, num == TK_NUM_MIN   ? tk_const_greatest(t)
                               : num == TK_NUM_MAX ? tk_const_least(t)
                                                   : tk_const_i64(t, num == TK_NUM_MUL ? 1 : 0));
}

// Of an exclusive scan.
static LLVMValueRef moved_result(const scan *s, uint32_t k, LLVMValueRef at) {
    tk_emit *e = s->e;
    LLVMValueRef from = tk_emit_i32(e, s->lines.log & 1 ? s->n : 0);
    LLVMValueRef place = tk_emit_line_place(e, &s->lines, at), step = tk_emit_i32(e, 1);
    LLVMValueRef other = s->op->at.reverse ? tk_ll_add(e, place, step) : tk_ll_sub(e, place, step);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, other, tk_emit_i32(e, s->lines.len));
    other = tk_ll_sel(e, in, other, place);
    LLVMValueRef source = tk_ll_add(e, from, tk_emit_line_move(e, &s->lines, at, other));
    LLVMValueRef x = tk_emit_fetch(e, s->op, s->base[k], s->t[k], source);
    return tk_ll_sel(e, in, x, first_value(s, k));
}

void tk_emit_scan_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_SCAN_FN && !tk_emit_combine_ok(e, op)) {
        return;
    }
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    scan s = {.e = e, .op = op, .m = op->nres, .n = (uint32_t)tk_type_elems(x)};
    s.lines = tk_emit_lines_of(x, op->at.axis);
    s.t = TK_NEW_ARRAY(e->arena, tk_dtype, s.m);
    s.base = tk_emit_scratch(e, op).part;
    for (uint32_t k = 0; k < s.m; k++) {
        s.t[k] = tk_value_type(e->f, op->opnd[k])->dtype;
    }
    for (uint32_t k = 0; k < s.m; k++) {
        tk_emit_spill(e, op, s.base[k], op->opnd[k]);
    }
    tk_emit_barrier(e);
    if (op->code == TK_OP_SCAN_FN && op->at.exclusive) {
        start_lines(&s);
    }
    steps(&s);
    for (uint32_t k = 0; k < s.m; k++) {
        const tk_layout *l = tk_emit_layout(e, op->res[k]);
        LLVMValueRef *out = tk_emit_new(e, op->res[k]);
        if (!op->at.exclusive) {
            const uint64_t half = (uint64_t)s.n * tk_dtype_size(s.t[k]);
            tk_emit_fetch_values(e, op, s.base[k] + (s.lines.log & 1 ? half : 0), l, s.t[k], out);
            continue;
        }
        for (uint32_t r = 0; r < 1U << l->regs; r++) {
            out[r] = moved_result(&s, k, tk_emit_element(e, l, r));
        }
    }
}
