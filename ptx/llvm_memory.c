// SPDX-License-Identifier: Apache-2.0
// Loads and stores of views.
//
// A vector of registers (lower/view_plan.h) that is all inside and aligned is moved at once; the
// others of the same thread are not held up by one that is not: its elements are moved one by one,
// each tested, and not at all where it begins beyond the end. What is known to hold is not tested,
// and code for what cannot happen is not made.
#include "ir/out.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

// Memory elements of a vector, or the one element.
static LLVMTypeRef group_type(tk_emit *e, const tk_emit_view *v, uint32_t n) {
    LLVMTypeRef t = tk_emit_mem_type(e, v->dtype);
    return n > 1 ? LLVMVectorType(t, n) : t;
}

// The word whose pieces these elements are, the lowest first, as a cast makes them (llvm_cast.c).
static LLVMValueRef word_of(tk_emit *e, const LLVMValueRef *x, uint32_t n) {
    LLVMValueRef word = LLVMIsATruncInst(x[0]) ? LLVMGetOperand(x[0], 0) : NULL;
    bool ok = word && LLVMTypeOf(word) == tk_ll_int(e, 32);
    for (uint32_t i = 1; ok && i < n; i++) {
        LLVMValueRef s = LLVMIsATruncInst(x[i]) ? LLVMGetOperand(x[i], 0) : NULL;
        ok = s && LLVMIsAInstruction(s) && LLVMGetInstructionOpcode(s) == LLVMLShr &&
             LLVMGetOperand(s, 0) == word && LLVMGetOperand(s, 1) == tk_ll_k(word, i * 32 / n);
    }
    return ok ? word : NULL;
}

// The elements as words, where all words are there. NULL: they are not.
static LLVMValueRef words_of(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *x, uint32_t n) {
    const uint32_t in_word = 4 / (uint32_t)tk_dtype_size(v->dtype);
    if (in_word < 2 || n % in_word || (in_word == 2 && tk_dtype_is_float(v->dtype))) {
        return NULL;
    }
    LLVMValueRef all = LLVMGetUndef(LLVMVectorType(tk_ll_int(e, 32), n / in_word));
    for (uint32_t i = 0; i < n / in_word; i++) {
        LLVMValueRef word = word_of(e, &x[i * in_word], in_word);
        if (!word) {
            return NULL;
        }
        all = LLVMBuildInsertElement(e->b, all, word, tk_emit_i32(e, i), "");
    }
    return tk_ll_bits(e, all, group_type(e, v, n));
}

static LLVMValueRef gather(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *x, uint32_t n) {
    if (n == 1) {
        return tk_emit_to_mem(e, v->dtype, x[0]);
    }
    LLVMValueRef words = words_of(e, v, x, n);
    if (words) {
        return words;
    }
    LLVMValueRef all = LLVMGetUndef(group_type(e, v, n));
    for (uint32_t i = 0; i < n; i++) {
        all = LLVMBuildInsertElement(e->b, all, tk_emit_to_mem(e, v->dtype, x[i]),
                                     tk_emit_i32(e, i), "");
    }
    return all;
}

// A vector as it is moved. Elements of 16 bits are halves of words, so that a cast of one finds the
// word (llvm_cast.c).
static LLVMTypeRef moved_type(tk_emit *e, const tk_emit_view *v, uint32_t n) {
    LLVMTypeRef word = tk_ll_int(e, 32);
    return n == 1 || tk_dtype_size(v->dtype) != 2 ? group_type(e, v, n)
           : n == 2                               ? word
                                                  : LLVMVectorType(word, n / 2);
}

static LLVMValueRef as_moved(tk_emit *e, const tk_emit_view *v, LLVMValueRef all, uint32_t n) {
    return tk_ll_bits(e, all, moved_type(e, v, n));
}

static LLVMValueRef element_in(tk_emit *e, const tk_emit_view *v, LLVMValueRef all, uint32_t i,
                               uint32_t n) {
    if (tk_dtype_size(v->dtype) != 2) {
        return LLVMBuildExtractElement(e->b, all, tk_emit_i32(e, i), "");
    }
    LLVMValueRef w = n > 2 ? LLVMBuildExtractElement(e->b, all, tk_emit_i32(e, i / 2), "") : all;
    w = tk_ll_resize(e, i % 2 ? tk_ll_shr(e, w, 16) : w, 16, false);
    return tk_ll_bits(e, w, tk_emit_mem_type(e, v->dtype));
}

static void scatter(tk_emit *e, const tk_emit_view *v, LLVMValueRef all, LLVMValueRef *out,
                    uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef x = n > 1 ? element_in(e, v, all, i, n) : all;
        out[i] = tk_emit_from_mem(e, v->dtype, x);
    }
}

static LLVMValueRef masked(const LLVMValueRef *mask, uint32_t r) { return mask ? mask[r] : NULL; }

// Whether n registers of a mask are known to be `value`, as those of a tile's padding are.
static bool known(const LLVMValueRef *mask, uint32_t r, uint32_t n, bool value) {
    for (uint32_t i = r; i < r + n; i++) {
        if (!LLVMIsAConstantInt(mask[i]) || LLVMConstIntGetZExtValue(mask[i]) != value) {
            return false;
        }
    }
    return true;
}

// What must hold for a vector to be moved at once.
static LLVMValueRef at_once(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                            uint32_t r) {
    uint32_t n = v->plan.vec;
    LLVMValueRef ok = tk_emit_view_inside(e, v, r, n, masked(mask, r));
    ok = tk_emit_and(e, ok, tk_emit_view_aligned(e, v, r));
    for (uint32_t i = 1; mask && !v->plan.mask_in_step && i < n; i++) {
        ok = tk_emit_and(e, ok, mask[r + i]);
    }
    return ok;
}

// Whether a vector that is not moved at once may have elements that are moved all the same.
static bool may_be_cut(const tk_emit_view *v, bool has_mask) {
    bool mask_cuts = has_mask && !v->plan.mask_in_step;
    uint32_t last = v->rank - 1;
    bool end_cuts = !v->plan.whole && (v->plan.low[last] || v->plan.high[last]);
    return v->plan.vec > 1 && (mask_cuts || end_cuts || !v->plan.aligned);
}

// Element i of a vector, whose elements stand one behind the other.
static tk_emit_place element_of(const tk_emit_view *v, tk_emit_place p, uint32_t i) {
    return (tk_emit_place){p.at, p.bytes + (int64_t)(i * tk_dtype_size(v->dtype))};
}

// ---- Load

static LLVMValueRef read(tk_emit *e, const tk_emit_view *v, LLVMValueRef cond, tk_emit_place p,
                         uint32_t n, LLVMValueRef outside) {
    return tk_emit_guarded_read(e, cond, p, moved_type(e, v, n),
                                (unsigned)(n * tk_dtype_size(v->dtype)), outside);
}

// The elements of a vector that is cut, one by one.
static LLVMValueRef load_cut(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                             uint32_t r, tk_emit_place p, LLVMValueRef outside) {
    const uint32_t n = v->plan.vec;
    LLVMValueRef whole = as_moved(e, v, outside, n);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    tk_emit_cond c = tk_emit_if(e, tk_emit_view_begun(e, v, r));
    LLVMValueRef all = outside;
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef k = tk_emit_i32(e, i);
        LLVMValueRef in = tk_emit_view_inside(e, v, r + i, 1, masked(mask, r + i));
        LLVMValueRef x =
            read(e, v, in, element_of(v, p, i), 1, LLVMBuildExtractElement(e->b, outside, k, ""));
        all = LLVMBuildInsertElement(e->b, all, x, k, "");
    }
    all = as_moved(e, v, all, n);
    LLVMBasicBlockRef after = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    if (!c.end) { // always
        return all;
    }
    LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(all), "");
    LLVMAddIncoming(phi, &all, &after, 1);
    LLVMAddIncoming(phi, &whole, &before, 1);
    return phi;
}

static LLVMValueRef load_group(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                               const LLVMValueRef *other, uint32_t r) {
    uint32_t n = v->plan.vec;
    LLVMValueRef outside = other ? gather(e, v, other + r, n) : LLVMConstNull(group_type(e, v, n));
    tk_emit_place p = tk_emit_view_place(e, v, r); // before any branch: parts are shared
    if (!may_be_cut(v, mask != NULL)) {
        return read(e, v, at_once(e, v, mask, r), p, n, as_moved(e, v, outside, n));
    }
    tk_emit_cond c = tk_emit_if(e, at_once(e, v, mask, r));
    LLVMValueRef x[2] = {read(e, v, NULL, p, n, NULL), NULL};
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(e->b), NULL};
    tk_emit_else(e, &c);
    x[1] = load_cut(e, v, mask, r, p, outside);
    from[1] = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(x[0]), "");
    LLVMAddIncoming(phi, x, from, 2);
    return phi;
}

static LLVMValueRef load_known(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                               const LLVMValueRef *other, uint32_t r) {
    const uint32_t n = v->plan.vec;
    if (mask && known(mask, r, n, false)) {
        return as_moved(e, v,
                        other ? gather(e, v, other + r, n) : LLVMConstNull(group_type(e, v, n)), n);
    }
    return load_group(e, v, mask && known(mask, r, n, true) ? NULL : mask, other, r);
}

enum { SEVERAL = 8 }; // vectors that are tested together

// How many registers from r on are tested together first, as vectors among them may be cut: where
// all are inside, as nearly everywhere, nothing else is tested. 0: that cannot be.
static uint32_t together(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask, uint32_t r,
                         LLVMValueRef *all) {
    const uint32_t regs = v->l ? 1U << v->l->regs : 1, some = SEVERAL * v->plan.vec;
    uint32_t n = regs - r < some ? regs - r : some;
    while (mask && n && !known(mask, r, n, true)) {
        n /= 2; // what is left over may be where rows end
    }
    const bool worth = n > v->plan.vec && v->plan.aligned && may_be_cut(v, false);
    *all = worth ? tk_emit_view_all_inside(e, v, r, n) : NULL;
    return *all ? n : 0;
}

static void load_several(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *other, uint32_t r,
                         uint32_t n, LLVMValueRef all, LLVMValueRef *out) {
    const uint32_t vec = v->plan.vec;
    LLVMValueRef x[SEVERAL][2];
    LLVMBasicBlockRef from[2];
    tk_emit_place p[SEVERAL];
    for (uint32_t i = 0; i < n / vec; i++) {
        p[i] = tk_emit_view_place(e, v, r + i * vec); // before any branch: parts are shared
    }
    tk_emit_cond c = tk_emit_if(e, all);
    for (uint32_t i = 0; i < n / vec; i++) {
        x[i][0] = read(e, v, NULL, p[i], vec, NULL);
    }
    from[0] = LLVMGetInsertBlock(e->b);
    tk_emit_else(e, &c);
    for (uint32_t i = 0; i < n / vec; i++) {
        x[i][1] = load_group(e, v, NULL, other, r + i * vec);
    }
    from[1] = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    for (uint32_t i = 0; i < n / vec; i++) {
        LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(x[i][0]), "");
        LLVMAddIncoming(phi, x[i], from, 2);
        x[i][0] = phi;
    }
    for (uint32_t i = 0; i < n / vec; i++) {
        scatter(e, v, x[i][0], out + r + i * vec, vec);
    }
}

// A scalar of a tensor that is written somewhere is read by one thread for all, so that all see the
// same.
static void load_scalar(tk_emit *e, const tk_op *op, const tk_emit_view *v,
                        const LLVMValueRef *mask, const LLVMValueRef *other, LLVMValueRef *out) {
    if (tk_emit_scratch(e, op).work == TK_WORK_THREAD) {
        scatter(e, v, load_group(e, v, mask, other, 0), out, 1);
        return;
    }
    tk_emit_cond c = tk_emit_if(e, tk_emit_view_owner(e, v));
    scatter(e, v, load_group(e, v, mask, other, 0), out, 1);
    LLVMBuildStore(e->b, tk_emit_to_mem(e, v->dtype, out[0]), tk_emit_shared_at(e, op, 0, NULL));
    tk_emit_end(e, &c);
    tk_emit_barrier(e);
    out[0] = tk_emit_fetch(e, op, 0, v->dtype, tk_emit_i32(e, 0));
}

static void read_tile(tk_emit *e, const tk_op *op, LLVMValueRef *out) {
    const tk_type *t = tk_view_type(e->f, op);
    uint32_t next = 1 + tk_value_type(e->f, op->opnd[0])->rank;
    const LLVMValueRef *mask = op->at.masked ? tk_emit_get(e, op->opnd[next++]) : NULL;
    const LLVMValueRef *other = op->at.other ? tk_emit_get(e, op->opnd[next]) : NULL;
    tk_emit_view v = tk_emit_view_make(e, op, t, tk_emit_layout(e, op->res[0]));
    if (!v.l) {
        load_scalar(e, op, &v, mask, other, out);
        return;
    }
    for (uint32_t r = 0, n; r < 1U << v.l->regs; r += n) {
        LLVMValueRef all;
        n = together(e, &v, mask, r, &all);
        if (n) {
            load_several(e, &v, other, r, n, all, out);
        } else {
            n = v.plan.vec;
            scatter(e, &v, load_known(e, &v, mask, other, r), out + r, n);
        }
    }
}

static void load(tk_emit *e, const tk_op *op) {
    if (op->at.held) {
        tk_emit_held(e, op, read_tile);
        return;
    }
    read_tile(e, op, tk_emit_new(e, op->res[0]));
    if (op->at.hold) {
        tk_emit_hold(e, op);
    }
}

// ---- Store

static void write(tk_emit *e, const tk_emit_view *v, LLVMValueRef cond, tk_emit_place p,
                  const LLVMValueRef *x, uint32_t n) {
    tk_emit_guarded_write(e, cond, p, gather(e, v, x, n), (unsigned)(n * tk_dtype_size(v->dtype)));
}

static void store_cut(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                      const LLVMValueRef *x, uint32_t r, tk_emit_place p) {
    tk_emit_cond begun = tk_emit_if(e, tk_emit_view_begun(e, v, r));
    for (uint32_t i = 0; i < v->plan.vec; i++) {
        LLVMValueRef in = tk_emit_view_inside(e, v, r + i, 1, masked(mask, r + i));
        write(e, v, in, element_of(v, p, i), x + r + i, 1);
    }
    tk_emit_end(e, &begun);
}

static void store_group(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                        const LLVMValueRef *x, uint32_t r) {
    tk_emit_place p = tk_emit_view_place(e, v, r); // before any branch: parts are shared
    LLVMValueRef whole = at_once(e, v, mask, r);
    if (!may_be_cut(v, mask != NULL)) {
        write(e, v, whole, p, x + r, v->plan.vec);
        return;
    }
    tk_emit_cond c = tk_emit_if(e, whole);
    write(e, v, NULL, p, x + r, v->plan.vec);
    tk_emit_else(e, &c);
    store_cut(e, v, mask, x, r, p);
    tk_emit_end(e, &c);
}

static void store_known(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *mask,
                        const LLVMValueRef *x, uint32_t r) {
    const uint32_t n = v->plan.vec;
    if (!mask || !known(mask, r, n, false)) {
        store_group(e, v, mask && known(mask, r, n, true) ? NULL : mask, x, r);
    }
}

static void store_several(tk_emit *e, const tk_emit_view *v, const LLVMValueRef *x, uint32_t r,
                          uint32_t n, LLVMValueRef all) {
    tk_emit_place p[SEVERAL];
    const uint32_t vec = v->plan.vec;
    for (uint32_t i = 0; i < n / vec; i++) {
        p[i] = tk_emit_view_place(e, v, r + i * vec);
    }
    tk_emit_cond c = tk_emit_if(e, all);
    for (uint32_t i = 0; i < n / vec; i++) {
        write(e, v, NULL, p[i], x + r + i * vec, vec);
    }
    tk_emit_else(e, &c);
    for (uint32_t i = 0; i < n; i += vec) {
        store_group(e, v, NULL, x, r + i);
    }
    tk_emit_end(e, &c);
}

static void store(tk_emit *e, const tk_op *op) {
    const tk_type *t = tk_view_type(e->f, op);
    uint32_t at = 1 + tk_value_type(e->f, op->opnd[0])->rank;
    const LLVMValueRef *x = tk_emit_get(e, op->opnd[at]);
    const LLVMValueRef *mask = op->at.masked ? tk_emit_get(e, op->opnd[at + 1]) : NULL;
    tk_emit_view v = tk_emit_view_make(e, op, t, tk_emit_layout(e, op->opnd[at]));
    tk_emit_cond own = tk_emit_if(e, tk_emit_view_owner(e, &v));
    for (uint32_t r = 0, n; r < (v.l ? 1U << v.l->regs : 1U); r += n) {
        LLVMValueRef all;
        n = together(e, &v, mask, r, &all);
        if (n) {
            store_several(e, &v, x, r, n, all);
        } else {
            n = v.plan.vec;
            store_known(e, &v, mask, x, r);
        }
    }
    tk_emit_end(e, &own);
}

void tk_emit_memory_op(tk_emit *e, tk_op *op) {
    if (op->at.staged) {
        if (op->code == TK_OP_LOAD) {
            tk_emit_staged_load(e, op);
        } else {
            tk_emit_staged_store(e, op);
        }
    } else if (op->code == TK_OP_LOAD) {
        load(e, op);
    } else if (tk_is_copied_out(op)) {
        tk_emit_store_tensor(e, op);
    } else {
        store(e, op);
    }
}
