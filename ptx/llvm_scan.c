// SPDX-License-Identifier: Apache-2.0
// scan and scan_fn. Where tk_scan_of finds a place in a line to be bits of registers, lanes and
// warps, as llvm_scan_plain.c does it. Here: any layout, with doubling distance in scratch, in two
// buffers that take turns. Step k combines each element with the one 2^k before it in its line
// (reverse: after it), the earlier one on the left. An exclusive scan is the inclusive one moved by
// one place: the kinds then put their identity into the free place; scan_fn combines its initial
// value with the first element before it starts.
#include "ptx/llvm_scan.h"
#include "ptx/llvm_across.h"

typedef struct scan {
    tk_emit *e;
    tk_emit_scan of; // of two buffers each, one after the other
    tk_emit_lines lines;
    uint32_t n; // elements
} scan;

// ---- Combining ----------------------------------------------------------------------------------

void tk_emit_scan_combine(tk_emit *e, const tk_emit_scan *s, const LLVMValueRef *arg,
                          LLVMValueRef *out) {
    if (s->op->code == TK_OP_SCAN_FN) {
        tk_emit_combine(e, s->op->reg[0], arg, out);
        return;
    }
    out[0] = tk_emit_elem(e, tk_emit_kind_op(e, s->op->at.kind), s->t[0], s->op->fast, arg);
}

LLVMValueRef tk_emit_scan_first(tk_emit *e, const tk_emit_scan *s) {
    const tk_numop num = tk_emit_kind_op(e, s->op->at.kind);
    const tk_dtype t = s->t[0];
    return tk_emit_const(e, num == TK_NUM_MIN   ? tk_const_greatest(t)
                            : num == TK_NUM_MAX ? tk_const_least(t)
                                                : tk_const_i64(t, num == TK_NUM_MUL ? 1 : 0));
}

LLVMValueRef tk_emit_scan_identity(tk_emit *e, const tk_emit_scan *s) {
    const bool float_sum = s->op->at.kind == TK_K_SUM && tk_dtype_is_float(s->t[0]);
    return float_sum ? tk_emit_const(e, tk_const_f64(s->t[0], -0.0)) : tk_emit_scan_first(e, s);
}

static void fetch_all(const scan *s, LLVMValueRef element, LLVMValueRef *x) {
    for (uint32_t k = 0; k < s->of.m; k++) {
        x[k] = tk_emit_fetch(s->e, s->of.op, s->of.base[k], s->of.t[k], element);
    }
}

static void put_all(const scan *s, LLVMValueRef element, LLVMValueRef *x) {
    for (uint32_t k = 0; k < s->of.m; k++) {
        tk_emit_put(s->e, s->of.op, s->of.base[k], s->of.t[k], element, x[k]);
    }
}

// ---- Steps --------------------------------------------------------------------------------------

// Element `at` of the buffer that is written; the one read starts at element `from`.
static void one(const scan *s, LLVMValueRef at, LLVMValueRef from, LLVMValueRef to,
                LLVMValueRef distance) {
    tk_emit *e = s->e;
    LLVMValueRef *arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * s->of.m);
    LLVMValueRef *out = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->of.m);
    const bool reverse = s->of.op->at.reverse;
    LLVMValueRef place = tk_emit_line_place(e, &s->lines, at);
    LLVMValueRef other = reverse ? tk_ll_add(e, place, distance) : tk_ll_sub(e, place, distance);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, other, tk_emit_i32(e, s->lines.len));
    LLVMValueRef partner = tk_ll_add(e, from, tk_emit_line_move(e, &s->lines, at, other));
    LLVMValueRef here = tk_ll_add(e, from, at), there = tk_ll_add(e, to, at);
    tk_emit_cond c = tk_emit_if(e, in);
    fetch_all(s, reverse ? here : partner, arg);
    fetch_all(s, reverse ? partner : here, arg + s->of.m);
    tk_emit_scan_combine(e, &s->of, arg, out);
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
    LLVMValueRef *arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * s->of.m);
    LLVMValueRef *out = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->of.m);
    const bool reverse = s->of.op->at.reverse;
    LLVMValueRef first = tk_emit_i32(e, reverse ? s->lines.len - 1 : 0);
    tk_emit_work w = tk_emit_work_begin(e, s->lines.count);
    LLVMValueRef at = tk_emit_line_at(e, &s->lines, w.i, first);
    fetch_all(s, at, reverse ? arg : arg + s->of.m);
    for (uint32_t k = 0; k < s->of.m; k++) {
        arg[reverse ? s->of.m + k : k] = tk_emit_get(e, s->of.op->opnd[s->of.m + k])[0];
    }
    tk_emit_scan_combine(e, &s->of, arg, out);
    put_all(s, at, out);
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
}

// ---- Results ------------------------------------------------------------------------------------

// What stands in the first place of an exclusive scan.
static LLVMValueRef first_value(const scan *s, uint32_t k) {
    return s->of.op->code == TK_OP_SCAN_FN ? tk_emit_get(s->e, s->of.op->opnd[s->of.m + k])[0]
                                           : tk_emit_scan_first(s->e, &s->of);
}

// Of an exclusive scan.
static LLVMValueRef moved_result(const scan *s, uint32_t k, LLVMValueRef at) {
    tk_emit *e = s->e;
    LLVMValueRef from = tk_emit_i32(e, s->lines.log & 1 ? s->n : 0);
    LLVMValueRef place = tk_emit_line_place(e, &s->lines, at), step = tk_emit_i32(e, 1);
    LLVMValueRef other =
        s->of.op->at.reverse ? tk_ll_add(e, place, step) : tk_ll_sub(e, place, step);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, other, tk_emit_i32(e, s->lines.len));
    other = tk_ll_sel(e, in, other, place);
    LLVMValueRef source = tk_ll_add(e, from, tk_emit_line_move(e, &s->lines, at, other));
    LLVMValueRef x = tk_emit_fetch(e, s->of.op, s->of.base[k], s->of.t[k], source);
    return tk_ll_sel(e, in, x, first_value(s, k));
}

static void by_scratch(tk_emit *e, const tk_emit_scan *of) {
    const tk_op *op = of->op;
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    const scan s = {.e = e,
                    .of = *of,
                    .lines = tk_emit_lines_of(x, op->at.axis),
                    .n = (uint32_t)tk_type_elems(x)};
    for (uint32_t k = 0; k < of->m; k++) {
        tk_emit_spill(e, op, of->base[k], op->opnd[k]);
    }
    tk_emit_barrier(e);
    if (op->code == TK_OP_SCAN_FN && op->at.exclusive) {
        start_lines(&s);
    }
    steps(&s);
    for (uint32_t k = 0; k < of->m; k++) {
        const tk_layout *l = tk_emit_layout(e, op->res[k]);
        LLVMValueRef *out = tk_emit_new(e, op->res[k]);
        if (!op->at.exclusive) {
            const uint64_t half = (uint64_t)s.n * tk_dtype_size(of->t[k]);
            tk_emit_fetch_values(e, op, of->base[k] + (s.lines.log & 1 ? half : 0), l, of->t[k],
                                 out);
            continue;
        }
        for (uint32_t r = 0; r < 1U << l->regs; r++) {
            out[r] = moved_result(&s, k, tk_emit_element(e, l, r));
        }
    }
}

void tk_emit_scan_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_SCAN_FN && !tk_emit_combine_ok(e, op)) {
        return;
    }
    tk_emit_scan s = {.op = op, .m = op->nres, .base = tk_emit_scratch(e, op).part};
    s.t = TK_NEW_ARRAY(e->arena, tk_dtype, s.m);
    for (uint32_t k = 0; k < s.m; k++) {
        s.t[k] = tk_value_type(e->f, op->opnd[k])->dtype;
    }
    const tk_scan how = tk_scan_of(e->f, op);
    if (how.plain) {
        tk_emit_scan_plain(e, &s, &how);
    } else {
        by_scratch(e, &s);
    }
}
