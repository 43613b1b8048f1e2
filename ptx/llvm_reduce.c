// SPDX-License-Identifier: Apache-2.0
// reduce, arg_reduce, reduce_fn.
//
// reduce and arg_reduce: each thread combines the registers of a line as a tree, then lanes that
// hold other parts of it exchange theirs by shuffles, then warps through scratch, where all threads
// combine the warps' parts in the same order. That needs bases that lie either on the axis or
// across it, and copies of lanes and warps with a basis of zero; other layouts go through scratch
// as a whole, line by line. Both ways every copy of a result has the same bits.
//
// reduce_fn: as a tree of neighbours: step k combines elements 2 s i and 2 s i + s of a line, s =
// 2^k, so that earlier elements stay on the left. Plain ones (ir/scratch.h) bit by bit of an
// element's place: registers of a thread, then lanes by shuffles, warps through scratch with one
// barrier, where all threads combine the same. Others in scratch.
#include "ptx/llvm_across.h"

#include <string.h>

enum { MOST_PARTS = 2 }; // a value, and its index

typedef struct reducer {
    tk_emit *e;
    const tk_op *op;
    const tk_layout *l;   // of the operand
    const tk_layout *out; // of the result; of one element where all are reduced
    tk_emit_lines lines;
    tk_reduction how;
    tk_dtype t;
    tk_numop num; // reduce
    bool arg;     // arg_reduce: pairs of value and index
    unsigned parts;
    tk_dtype type[MOST_PARTS];
} reducer;

// ---- Combining two ------------------------------------------------------------------------------

// Whether pair b comes before a: a NaN is best of all, and of equals the lower index. Of floats b
// is better where it is not worse, or a NaN, and a is none: two comparisons.
static LLVMValueRef comes_before(const reducer *s, const LLVMValueRef *a, const LLVMValueRef *b) {
    tk_emit *e = s->e;
    const bool most = s->op->at.kind == TK_K_MAX;
    LLVMValueRef lower = tk_ll_icmp(e, LLVMIntSLT, b[1], a[1]);
    if (!tk_dtype_is_float(s->t)) {
        LLVMValueRef pair[2] = {b[0], a[0]};
        LLVMValueRef better = tk_emit_elem(e, most ? TK_NUM_GT : TK_NUM_LT, s->t, 0, pair);
        LLVMValueRef equal = tk_emit_elem(e, TK_NUM_EQ, s->t, 0, pair);
        return tk_ll_or(e, better, tk_ll_and(e, equal, lower));
    }
    const tk_dtype wide = s->t == TK_F64 ? TK_F64 : TK_F32;
    LLVMValueRef x = tk_emit_cast_elem(e, s->t, wide, a[0]);
    LLVMValueRef y = tk_emit_cast_elem(e, s->t, wide, b[0]);
    LLVMValueRef number = LLVMBuildFCmp(e->b, LLVMRealORD, x, x, "");
    LLVMValueRef better = LLVMBuildFCmp(e->b, most ? LLVMRealUGT : LLVMRealULT, y, x, "");
    better = tk_ll_and(e, better, number);
    LLVMValueRef other = LLVMBuildFCmp(e->b, LLVMRealUNO, y, y, "");
    LLVMValueRef nans = tk_ll_and(e, other, LLVMBuildNot(e->b, number, ""));
    LLVMValueRef equal = tk_ll_or(e, LLVMBuildFCmp(e->b, LLVMRealOEQ, y, x, ""), nans);
    return tk_ll_or(e, better, tk_ll_and(e, equal, lower));
}

// a becomes a combined with b.
static void combine(const reducer *s, LLVMValueRef *a, const LLVMValueRef *b) {
    if (s->arg) {
        LLVMValueRef take = comes_before(s, a, b);
        for (unsigned k = 0; k < s->parts; k++) {
            a[k] = tk_ll_sel(s->e, take, b[k], a[k]);
        }
        return;
    }
    LLVMValueRef pair[2] = {a[0], b[0]};
    a[0] = tk_emit_elem(s->e, s->num, s->t, s->op->fast, pair);
}

// ---- In a thread --------------------------------------------------------------------------------

// The number that an element's line has in the result.
static uint32_t line_number(const tk_emit_lines *s, uint32_t element) {
    const uint32_t low = element & ((1U << s->shift) - 1);
    const unsigned above = s->shift + s->log;
    return low | (element >> above << s->shift);
}

// x[r][k] is part k of register r. Combines the registers of each line as a tree; line j's parts
// end up in out[j].
static void in_thread(const reducer *s, LLVMValueRef (*x)[MOST_PARTS],
                      LLVMValueRef (*out)[MOST_PARTS]) {
    const uint32_t n = 1U << s->l->regs, lines = 1U << s->out->regs;
    uint32_t *list = TK_NEW_ARRAY(s->e->arena, uint32_t, n),
             *to = TK_NEW_ARRAY(s->e->arena, uint32_t, n);
    for (uint32_t r = 0; r < n; r++) {
        tk_place_bits p;
        const uint32_t e = line_number(&s->lines, tk_layout_eval(s->l, r, 0, 0));
        TK_CHECK(s->e->arena, tk_layout_find(s->out, e, 0, false, 0, false, &p));
        to[r] = p.reg;
    }
    for (uint32_t j = 0; j < lines; j++) {
        uint32_t m = 0;
        for (uint32_t r = 0; r < n; r++) {
            if (to[r] == j) {
                list[m++] = r;
            }
        }
        for (uint32_t step = 1; step < m; step *= 2) {
            for (uint32_t i = 0; i + step < m; i += 2 * step) {
                combine(s, x[list[i]], x[list[i + step]]);
            }
        }
        for (unsigned k = 0; k < s->parts; k++) {
            out[j][k] = x[list[0]][k];
        }
    }
}

// ---- Across threads -----------------------------------------------------------------------------

static void across_lanes(const reducer *s, uint32_t lanes, LLVMValueRef (*x)[MOST_PARTS]) {
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        for (uint32_t j = 0; lanes >> i & 1 && j < 1U << s->out->regs; j++) {
            LLVMValueRef other[MOST_PARTS] = {NULL, NULL};
            for (unsigned k = 0; k < s->parts; k++) {
                other[k] = tk_emit_shuffle_xor(s->e, x[j][k], 1U << i);
            }
            combine(s, x[j], other);
        }
    }
}

// The bits of the mask in `warp`, moved together.
static LLVMValueRef gathered_bits(tk_emit *e, LLVMValueRef warp, uint32_t mask) {
    LLVMValueRef sum = tk_emit_i32(e, 0);
    unsigned n = 0;
    for (unsigned i = 0; i < TK_MAX_WARP_BITS; i++) {
        if (mask >> i & 1) {
            LLVMValueRef bit = tk_ll_mask(e, tk_ll_shr(e, warp, i), 1);
            sum = tk_ll_or(e, sum, tk_ll_shl(e, bit, n++));
        }
    }
    return sum;
}

static LLVMValueRef all_zero(tk_emit *e, LLVMValueRef x, uint32_t mask) {
    return mask ? tk_ll_is(e, tk_ll_mask(e, x, mask), 0) : NULL;
}

// What the warps wrote: [warp][register]. Where they wrote one element each, these stand side by
// side.
static LLVMValueRef *warps_parts(const reducer *s, uint64_t base, tk_dtype t, uint32_t count) {
    tk_emit *e = s->e;
    const uint32_t n = 1U << tk_layout_bits(s->out), regs = 1U << s->out->regs;
    LLVMValueRef *v = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)count * regs);
    if (n == 1) {
        tk_emit_fetch_row(e, s->op, base, t, count, v);
    }
    for (uint32_t w = 0; w < count && n > 1; w++) {
        LLVMValueRef from = tk_emit_i32(e, (int64_t)w * n);
        tk_emit_take_values(e, s->op, base, from, s->out, t, v + (size_t)w * regs);
    }
    return v;
}

// Each warp writes its parts, one copy of each; then every thread combines all.
static void across_warps(const reducer *s, uint32_t warps, LLVMValueRef (*x)[MOST_PARTS]) {
    tk_emit *e = s->e;
    const uint32_t n = 1U << tk_layout_bits(s->out), regs = 1U << s->out->regs;
    const uint32_t count = 1U << __builtin_popcount(warps);
    uint32_t lane_copies, warp_copies;
    const tk_scratch scratch = tk_emit_scratch(e, s->op);
    const uint64_t *base = scratch.part;
    tk_layout_copies(s->out, &lane_copies, &warp_copies);
    LLVMValueRef first = tk_ll_mul(e, gathered_bits(e, e->warp, warps), tk_emit_i32(e, n));
    tk_emit_cond lane = tk_emit_if(e, all_zero(e, e->lane, lane_copies));
    tk_emit_cond warp = tk_emit_if(e, all_zero(e, e->warp, warp_copies & ~warps));
    LLVMValueRef *part = TK_NEW_ARRAY(e->arena, LLVMValueRef, regs);
    for (unsigned k = 0; k < s->parts; k++) {
        for (uint32_t j = 0; j < regs; j++) {
            part[j] = x[j][k];
        }
        tk_emit_put_values(e, s->op, base[k], first, s->out, s->type[k], part);
    }
    tk_emit_end(e, &warp);
    tk_emit_end(e, &lane);
    tk_emit_barrier(e);
    LLVMValueRef *of[MOST_PARTS];
    for (unsigned k = 0; k < s->parts; k++) {
        of[k] = warps_parts(s, base[k], s->type[k], count);
    }
    for (uint32_t j = 0; j < regs; j++) {
        for (uint32_t w = 0; w < count; w++) {
            LLVMValueRef v[MOST_PARTS] = {NULL, NULL};
            for (unsigned k = 0; k < s->parts; k++) {
                v[k] = of[k][w * regs + j];
                x[j][k] = w ? x[j][k] : v[k];
            }
            if (w) {
                combine(s, x[j], v);
            }
        }
    }
}

// ---- Any layout ---------------------------------------------------------------------------------

// All elements to scratch; then every thread goes along the lines of its results.
static void by_scratch(const reducer *s, LLVMValueRef *x, LLVMValueRef (*out)[MOST_PARTS]) {
    tk_emit *e = s->e;
    const tk_emit_lines *lines = &s->lines;
    (void)tk_emit_scratch(e, s->op);
    tk_emit_spill_values(e, s->op, 0, s->l, s->t, x);
    tk_emit_barrier(e);
    for (uint32_t j = 0; j < 1U << s->out->regs; j++) {
        LLVMValueRef q = tk_emit_element(e, s->out, j), zero = tk_emit_i32(e, 0), phi[MOST_PARTS];
        LLVMValueRef start = tk_emit_line_at(e, lines, q, zero);
        LLVMValueRef first[MOST_PARTS] = {tk_emit_fetch(e, s->op, 0, s->t, start), zero};
        LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
        tk_emit_loop loop = tk_emit_for(e, tk_emit_i32(e, lines->len - 1));
        tk_emit_before(e, LLVMGetFirstInstruction(loop.head));
        for (unsigned k = 0; k < s->parts; k++) {
            phi[k] = LLVMBuildPhi(e->b, LLVMTypeOf(first[k]), "");
            LLVMAddIncoming(phi[k], &first[k], &before, 1);
            out[j][k] = phi[k];
        }
        LLVMPositionBuilderAtEnd(e->b, loop.body);
        LLVMValueRef i = tk_ll_add(e, loop.i, tk_emit_i32(e, 1));
        LLVMValueRef at = tk_emit_line_at(e, lines, q, i);
        LLVMValueRef v[MOST_PARTS] = {tk_emit_fetch(e, s->op, 0, s->t, at), i};
        LLVMValueRef next[MOST_PARTS] = {phi[0], s->parts > 1 ? phi[1] : NULL};
        combine(s, next, v);
        LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
        for (unsigned k = 0; k < s->parts; k++) {
            LLVMAddIncoming(phi[k], &next[k], &last, 1);
        }
        tk_emit_for_end(e, &loop);
    }
}

// ---- reduce and arg_reduce ----------------------------------------------------------------------

static reducer reducer_of(tk_emit *e, const tk_op *op) {
    const tk_type *t = tk_value_type(e->f, op->opnd[0]);
    const tk_layout *l = tk_emit_layout(e, op->opnd[0]);
    reducer s = {.e = e, .op = op, .l = l, .how = tk_reduction_of(e->f, op), .t = t->dtype};
    s.out = tk_layout_new(e->arena, s.how.out);
    s.lines = tk_emit_lines_of(t, op->at.axis);
    s.arg = op->code == TK_OP_ARG_REDUCE;
    s.parts = s.arg ? 2 : 1;
    s.num = s.arg ? TK_NUM_MIN : tk_emit_kind_op(e, op->at.kind);
    s.type[0] = t->dtype;
    s.type[1] = TK_I32;
    return s;
}

static void reduce(tk_emit *e, tk_op *op) {
    const reducer s = reducer_of(e, op);
    const uint32_t n = 1U << s.l->regs, lines = 1U << s.out->regs;
    LLVMValueRef *x = tk_emit_get(e, op->opnd[0]), *out = tk_emit_new(e, op->res[0]);
    LLVMValueRef(*each)[MOST_PARTS] = tk_alloc_array(e->arena, n, sizeof *each);
    LLVMValueRef(*all)[MOST_PARTS] = tk_alloc_array(e->arena, lines, sizeof *all);
    if (s.how.plain) {
        for (uint32_t r = 0; r < n; r++) {
            each[r][0] = x[r];
            each[r][1] = s.arg ? tk_emit_line_place(e, &s.lines, tk_emit_element(e, s.l, r)) : NULL;
        }
        in_thread(&s, each, all);
        across_lanes(&s, s.how.lanes, all);
        if (s.how.warps) {
            across_warps(&s, s.how.warps, all);
        }
    } else {
        by_scratch(&s, x, all);
    }
    for (uint32_t j = 0; j < lines; j++) {
        out[j] = all[j][s.parts - 1];
    }
}

// ---- reduce_fn ----------------------------------------------------------------------------------

typedef struct fn {
    const tk_op *op;
    uint32_t m;
    tk_dtype *t;
    const uint64_t *base;
    tk_emit_lines lines;
} fn;

// Combines two elements of scratch and puts the result in the place of the first.
static void combine_at(tk_emit *e, const fn *s, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef *arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * s->m);
    LLVMValueRef *out = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->m);
    for (uint32_t k = 0; k < s->m; k++) {
        arg[k] = tk_emit_fetch(e, s->op, s->base[k], s->t[k], a);
        arg[s->m + k] = tk_emit_fetch(e, s->op, s->base[k], s->t[k], b);
    }
    tk_emit_combine(e, s->op->reg[0], arg, out);
    for (uint32_t k = 0; k < s->m; k++) {
        tk_emit_put(e, s->op, s->base[k], s->t[k], a, out[k]);
    }
}

static LLVMValueRef shifted(tk_emit *e, LLVMValueRef x, LLVMValueRef by) {
    return LLVMBuildShl(e->b, x, by, "");
}

// Work i of step k: the line changes fastest, then the pair. The pairs of a line become fewer, so
// the last steps keep few threads busy.
static void tree(tk_emit *e, const fn *s) {
    const unsigned log_lines = (unsigned)__builtin_ctz(s->lines.count);
    LLVMValueRef one = tk_emit_i32(e, 1);
    tk_emit_loop step = tk_emit_for(e, tk_emit_i32(e, s->lines.log));
    const uint32_t most = s->lines.count * (s->lines.len / 2);
    tk_emit_work w = tk_emit_work_begin(e, most);
    LLVMValueRef q = tk_ll_mask(e, w.i, s->lines.count - 1);
    LLVMValueRef pair = tk_ll_shr(e, w.i, log_lines);
    LLVMValueRef i = shifted(e, pair, tk_ll_add(e, step.i, one));
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, i, tk_emit_i32(e, s->lines.len));
    tk_emit_cond c = tk_emit_if(e, in);
    LLVMValueRef later = tk_ll_or(e, i, shifted(e, one, step.i));
    combine_at(e, s, tk_emit_line_at(e, &s->lines, q, i), tk_emit_line_at(e, &s->lines, q, later));
    tk_emit_end(e, &c);
    tk_emit_work_end(e, &w);
    tk_emit_barrier(e);
    tk_emit_for_end(e, &step);
}

static void fn_results(tk_emit *e, const fn *s) {
    for (uint32_t k = 0; k < s->m; k++) {
        const tk_layout *l = tk_emit_layout(e, s->op->res[k]);
        LLVMValueRef *out = tk_emit_new(e, s->op->res[k]), zero = tk_emit_i32(e, 0);
        for (uint32_t r = 0; r < tk_emit_regs(e, s->op->res[k]); r++) {
            LLVMValueRef q = l ? tk_emit_element(e, l, r) : zero;
            LLVMValueRef at = tk_emit_line_at(e, &s->lines, q, zero);
            out[r] = tk_emit_fetch(e, s->op, s->base[k], s->t[k], at);
        }
    }
}

// ---- reduce_fn, plain ---------------------------------------------------------------------------

// What a thread has of its lines: n values of each, in the line's order. Operand k of value i of
// line j is at[(j * most + i) * m + k].
typedef struct fold {
    tk_emit *e;
    const fn *fn;
    tk_fold how;
    const tk_layout *out;
    uint32_t lines, most, n;
    LLVMValueRef *at;
} fold;

static LLVMValueRef *value_at(const fold *s, uint32_t line, uint32_t i) {
    return s->at + ((size_t)line * s->most + i) * s->fn->m;
}

// a becomes a, the earlier, combined with b.
static void fold_two(const fold *s, LLVMValueRef *a, const LLVMValueRef *b) {
    const uint32_t m = s->fn->m;
    LLVMValueRef *arg = TK_NEW_ARRAY(s->e->arena, LLVMValueRef, 2 * m);
    memcpy(arg, a, m * sizeof *arg);
    memcpy(arg + m, b, m * sizeof *arg);
    tk_emit_combine(s->e, s->fn->op->reg[0], arg, a);
}

// Neighbours among n values, which become half as many.
static void fold_pairs(const fold *s, LLVMValueRef *at, uint32_t n) {
    const uint32_t m = s->fn->m;
    for (uint32_t i = 0; i < n / 2; i++) {
        memmove(at + (size_t)i * m, at + (size_t)2 * i * m, m * sizeof *at);
        fold_two(s, at + (size_t)i * m, at + (size_t)(2 * i + 1) * m);
    }
}

static void fold_lanes(const fold *s, unsigned lane) {
    tk_emit *e = s->e;
    const uint32_t m = s->fn->m;
    LLVMValueRef later = tk_ll_is(e, tk_ll_mask(e, tk_ll_shr(e, e->lane, lane), 1), 1);
    LLVMValueRef *other = TK_NEW_ARRAY(e->arena, LLVMValueRef, m);
    for (uint32_t j = 0; j < s->lines; j++) {
        for (uint32_t i = 0; i < s->n; i++) {
            LLVMValueRef *x = value_at(s, j, i);
            for (uint32_t k = 0; k < m; k++) {
                LLVMValueRef mine = x[k], its = tk_emit_shuffle_xor(e, mine, 1U << lane);
                x[k] = tk_ll_sel(e, later, its, mine);
                other[k] = tk_ll_sel(e, later, mine, its);
            }
            fold_two(s, x, other);
        }
    }
}

// Where value i of the warps stands, operand k.
static uint64_t warps_base(const fold *s, uint32_t i, uint32_t k) {
    const uint64_t n = (uint64_t)1
                       << (tk_layout_bits(s->out) + (unsigned)__builtin_popcount(s->how.warps));
    return s->fn->base[k] + i * n * tk_dtype_size(s->fn->t[k]);
}

static void give_to_warps(const fold *s) {
    tk_emit *e = s->e;
    uint32_t lane_copies, warp_copies;
    tk_layout_copies(s->out, &lane_copies, &warp_copies);
    LLVMValueRef first = tk_ll_mul(e, gathered_bits(e, e->warp, s->how.warps),
                                   tk_emit_i32(e, (int64_t)1 << tk_layout_bits(s->out)));
    tk_emit_cond lane = tk_emit_if(e, all_zero(e, e->lane, lane_copies));
    tk_emit_cond warp = tk_emit_if(e, all_zero(e, e->warp, warp_copies & ~s->how.warps));
    LLVMValueRef *part = TK_NEW_ARRAY(e->arena, LLVMValueRef, s->lines);
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t k = 0; k < s->fn->m; k++) {
            for (uint32_t j = 0; j < s->lines; j++) {
                part[j] = value_at(s, j, i)[k];
            }
            tk_emit_put_values(e, s->fn->op, warps_base(s, i, k), first, s->out, s->fn->t[k], part);
        }
    }
    tk_emit_end(e, &warp);
    tk_emit_end(e, &lane);
}

static void fold_warps(const fold *s) {
    tk_emit *e = s->e;
    const uint32_t m = s->fn->m, count = 1U << __builtin_popcount(s->how.warps);
    const uint32_t one = 1U << tk_layout_bits(s->out);
    LLVMValueRef *all = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)s->lines * count * m);
    LLVMValueRef *got = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)count * s->lines);
    give_to_warps(s);
    tk_emit_barrier(e);
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t k = 0; k < m; k++) {
            const uint64_t base = warps_base(s, i, k);
            if (one == 1) { // side by side
                tk_emit_fetch_row(e, s->fn->op, base, s->fn->t[k], count, got);
            }
            for (uint32_t w = 0; w < count && one > 1; w++) {
                tk_emit_take_values(e, s->fn->op, base, tk_emit_i32(e, (int64_t)w * one), s->out,
                                    s->fn->t[k], got + (size_t)w * s->lines);
            }
            for (uint32_t w = 0; w < count; w++) {
                for (uint32_t j = 0; j < s->lines; j++) {
                    all[((size_t)j * count + w) * m + k] = got[(size_t)w * s->lines + j];
                }
            }
        }
        for (uint32_t j = 0; j < s->lines; j++) {
            LLVMValueRef *line = all + (size_t)j * count * m;
            for (uint32_t n = count; n > 1; n /= 2) {
                fold_pairs(s, line, n);
            }
            memcpy(value_at(s, j, i), line, m * sizeof *line);
        }
    }
}

// The registers of each line, in its order.
static void enter_fold(fold *s, const tk_layout *l) {
    const uint32_t regs = 1U << l->regs, m = s->fn->m;
    uint32_t *place = TK_NEW_ARRAY(s->e->arena, uint32_t, regs);
    uint32_t *used = TK_NEW_ARRAY(s->e->arena, uint32_t, s->lines);
    for (uint32_t r = 0; r < regs; r++) {
        const uint32_t element = tk_layout_eval(l, r, 0, 0);
        const tk_emit_lines *lines = &s->fn->lines;
        const uint32_t at = element >> lines->shift & (lines->len - 1);
        tk_place_bits p;
        TK_CHECK(s->e->arena,
                 tk_layout_find(s->out, line_number(lines, element), 0, false, 0, false, &p));
        uint32_t i = used[p.reg]++;
        for (; i > 0 && place[p.reg * s->most + i - 1] > at; i--) {
            place[p.reg * s->most + i] = place[p.reg * s->most + i - 1];
            memcpy(value_at(s, p.reg, i), value_at(s, p.reg, i - 1), m * sizeof *s->at);
        }
        place[p.reg * s->most + i] = at;
        for (uint32_t k = 0; k < m; k++) {
            value_at(s, p.reg, i)[k] = tk_emit_get(s->e, s->fn->op->opnd[k])[r];
        }
    }
}

static void fold_bits(fold *s) {
    for (unsigned b = 0; b < s->how.log; b++) {
        switch (s->how.bit[b].kind) {
        case TK_SCAN_REG:
            for (uint32_t j = 0; j < s->lines; j++) {
                fold_pairs(s, value_at(s, j, 0), s->n);
            }
            s->n /= 2;
            break;
        case TK_SCAN_LANE:
            fold_lanes(s, s->how.bit[b].i);
            break;
        case TK_SCAN_WARP:
            if (s->how.bit[b - (b ? 1 : 0)].kind != TK_SCAN_WARP || b == 0) { // the first
                fold_warps(s);
            }
            break;
        }
    }
}

static void reduce_fn_plain(tk_emit *e, const fn *of, const tk_fold *how) {
    const tk_layout *l = tk_emit_layout(e, of->op->opnd[0]);
    fold s = {.e = e, .fn = of, .how = *how, .out = tk_layout_new(e->arena, how->out)};
    s.lines = 1U << s.out->regs;
    s.n = s.most = 1U << (l->regs - s.out->regs);
    s.at = TK_NEW_ARRAY(e->arena, LLVMValueRef, (size_t)s.lines * s.most * of->m);
    enter_fold(&s, l);
    fold_bits(&s);
    for (uint32_t k = 0; k < of->m; k++) {
        LLVMValueRef *out = tk_emit_new(e, of->op->res[k]);
        for (uint32_t j = 0; j < s.lines; j++) {
            out[j] = value_at(&s, j, 0)[k];
        }
    }
}

static void reduce_fn(tk_emit *e, tk_op *op) {
    const tk_type *x = tk_value_type(e->f, op->opnd[0]);
    const tk_fold how = tk_fold_of(e->f, op);
    fn s = {.op = op, .m = op->nres, .lines = tk_emit_lines_of(x, op->at.axis)};
    s.t = TK_NEW_ARRAY(e->arena, tk_dtype, s.m);
    s.base = tk_emit_scratch(e, op).part;
    for (uint32_t k = 0; k < s.m; k++) {
        s.t[k] = tk_value_type(e->f, op->opnd[k])->dtype;
    }
    if (how.plain) {
        reduce_fn_plain(e, &s, &how);
        return;
    }
    for (uint32_t k = 0; k < s.m; k++) {
        tk_emit_spill(e, op, s.base[k], op->opnd[k]);
    }
    tk_emit_barrier(e);
    if (s.lines.log > 0) {
        tree(e, &s);
    }
    fn_results(e, &s);
}

void tk_emit_reduce_op(tk_emit *e, tk_op *op) {
    if (op->code == TK_OP_REDUCE_FN) {
        if (tk_emit_combine_ok(e, op)) {
            reduce_fn(e, op);
        }
    } else {
        reduce(e, op);
    }
}
