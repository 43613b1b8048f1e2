// SPDX-License-Identifier: Apache-2.0
// A dot by a matrix unit: its operands. See ir/matrix.h for where these come from.
//
// What is staged goes to scratch memory as ldmatrix and wgmma read it, block by block along K,
// between barriers. wgmma reads by another way than threads write: fence.proxy.async joins them.
// With precision = tf32 operands are rounded on their way.
#include "ptx/llvm_matrix.h"
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"

#include "ir/move.h"

// ---- What the units share -----------------------------------------------------------------------

static unsigned log_of(uint32_t n) { return (unsigned)__builtin_ctz(n); }

// Rows and batches stand above the columns.
uint32_t tk_emit_in_a(const tk_emit_matrix *s, uint32_t e) {
    const unsigned columns = s->l->log_dim[s->l->rank - 1U];
    return e >> columns << log_of(s->p.block);
}

uint32_t tk_emit_in_b(const tk_emit_matrix *s, uint32_t e) {
    const unsigned columns = s->l->log_dim[s->l->rank - 1U], rows = s->l->log_dim[s->l->rank - 2U];
    return (e & ((1U << columns) - 1)) | e >> (columns + rows) << (columns + log_of(s->p.block));
}

LLVMValueRef tk_emit_bases(tk_emit *e, LLVMValueRef index, const uint32_t *base, unsigned n,
                           LLVMValueRef sum) {
    for (unsigned i = 0; i < n; i++) {
        if (base[i]) {
            LLVMValueRef bit = tk_ll_mask(e, tk_ll_shr(e, index, i), 1);
            LLVMValueRef part = tk_ll_mul(e, bit, tk_ll_k(bit, base[i]));
            sum = sum ? tk_ll_xor(e, sum, part) : part;
        }
    }
    return sum;
}

LLVMValueRef tk_emit_packed(const tk_emit_matrix *s, uint32_t first, unsigned n) {
    tk_emit *e = s->e;
    const tk_layout *l = s->a.x->l;
    LLVMTypeRef one = tk_emit_type(e, s->a.x->type);
    LLVMValueRef all = LLVMGetUndef(LLVMVectorType(one, n)), x = NULL;
    for (uint32_t i = 0; i < n; i++) {
        tk_place_bits at = {0, 0, 0};
        const bool found = tk_layout_find(l, first + i, 0, false, 0, false, &at);
        TK_CHECK(e->arena, found);
        x = s->a.reg[at.reg];
        all = LLVMBuildInsertElement(e->b, all, x, tk_emit_i32(e, i), "");
    }
    return n == 1 ? x : tk_ll_bits(e, all, tk_ll_int(e, 32));
}

// ---- Staging ------------------------------------------------------------------------------------

// The register bits of `from` spread over those that are set in `mask`.
static uint32_t spread(uint32_t from, uint32_t mask) {
    uint32_t r = 0;
    for (unsigned i = 0; mask; i++, mask &= mask - 1) {
        r |= (from >> i & 1) ? mask & -mask : 0;
    }
    return r;
}

static LLVMValueRef *rounded(const tk_emit_matrix *s, const tk_operand *x) {
    tk_emit *e = s->e;
    LLVMValueRef *v = tk_emit_get(e, x->v);
    if (x->type != TK_F32 || s->p.m.precision != TK_PREC_TF32 || x->rounded) {
        return v;
    }
    const uint32_t n = tk_emit_regs(e, x->v);
    LLVMValueRef *r = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    for (uint32_t i = 0; i < n; i++) {
        r[i] = tk_ll_bits(e, tk_emit_tf32(e, v[i]), LLVMTypeOf(v[i]));
    }
    return r;
}

// This thread's elements of block number `block`; NULL: there is one.
static void stage(const tk_emit_matrix *s, const tk_emit_operand *to, uint64_t base,
                  LLVMValueRef block) {
    tk_emit *e = s->e;
    const tk_operand *x = to->x;
    uint32_t among;
    const tk_layout t = tk_operand_targets(x, s->p.block, &among);
    const uint32_t all = (1U << x->l->regs) - 1, n = 1U << t.regs;
    LLVMValueRef *v = rounded(s, x), *part = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, x->l));
    for (uint32_t h = 0; h < 1U << (x->l->regs - t.regs); h++) {
        const uint32_t high = spread(h, among);
        for (uint32_t i = 0; i < n; i++) {
            part[i] = v[high | spread(i, all & ~among)];
        }
        LLVMValueRef its =
            tk_ll_shr(e, tk_emit_coord(e, x->l, high, x->k_axis), log_of(s->p.block));
        tk_emit_cond c = tk_emit_if(e, block ? tk_ll_icmp(e, LLVMIntEQ, its, block) : NULL);
        const tk_side side = {t,
                              tk_operand_in_block(x, s->p.block, tk_layout_eval(x->l, high, 0, 0))};
        tk_emit_put_side(e, s->op, base, &side, x->type, part);
        tk_emit_end(e, &c);
    }
    tk_emit_end(e, &own);
}

static void multiply(tk_emit_matrix *s) {
    if (s->p.m.unit == TK_UNIT_WGMMA) {
        tk_emit_wgmma(s);
    } else {
        tk_emit_mma(s);
    }
}

static bool is_staged(const tk_emit_operand *x) { return x->x->where == TK_OPERAND_STAGED; }

static void stage_both(const tk_emit_matrix *s, const tk_scratch *scratch, LLVMValueRef block) {
    tk_emit *e = s->e;
    if (is_staged(&s->a)) {
        stage(s, &s->a, scratch->part[0], block);
    }
    if (is_staged(&s->b)) {
        stage(s, &s->b, scratch->part[1], block);
    }
    if (!is_staged(&s->a) && !is_staged(&s->b)) {
        return;
    }
    if (s->p.m.unit == TK_UNIT_WGMMA) {
        tk_emit_intrinsic(e, "llvm.nvvm.fence.proxy.async.shared_cta",
                          LLVMVoidTypeInContext(e->ctx), 0, NULL);
    }
    tk_emit_barrier(e);
}

// A block is written when all have read the one before it.
static void all_blocks(tk_emit_matrix *s, const tk_scratch *scratch) {
    tk_emit *e = s->e;
    const uint32_t blocks = (1U << s->p.m.log_k) / s->p.block;
    if (blocks == 1) {
        stage_both(s, scratch, NULL);
        multiply(s);
        return;
    }
    s->zero = false;
    tk_emit_carried c = tk_emit_carry_begin(e, blocks, s->regs, s->acc);
    tk_emit_cond again = tk_emit_if(e, LLVMBuildNot(e->b, tk_ll_is(e, c.loop.i, 0), ""));
    tk_emit_barrier(e);
    tk_emit_end(e, &again);
    stage_both(s, scratch, c.loop.i);
    multiply(s);
    tk_emit_carry_end(e, &c, s->acc, false);
}

// ---- The op -------------------------------------------------------------------------------------

static tk_emit_operand operand_of(tk_emit *e, const tk_operand *x, int64_t at) {
    tk_emit_operand r = {.x = x, .base = tk_emit_i32(e, at)};
    if (x->where == TK_OPERAND_REGISTERS) {
        r.reg = tk_emit_get(e, x->v);
    } else if (x->where == TK_OPERAND_SHARED) { // an address; counted from the program's part on
        LLVMValueRef first = LLVMBuildPtrToInt(e->b, e->shared, tk_ll_int(e, 32), "");
        r.base = tk_ll_sub(e, tk_emit_get(e, x->v)[0], first);
    }
    return r;
}

static bool is_zero(LLVMValueRef x) { return LLVMIsNull(x); }

void tk_emit_matrix_op(tk_emit *e, tk_op *op) {
    tk_emit_matrix s = {.e = e, .op = op, .l = tk_emit_layout(e, op->res[0])};
    const tk_product d = tk_product_of(e->f, op);
    const tk_scratch scratch = tk_emit_scratch(e, op);
    const int64_t a = op->at.shared + (scratch.part ? (int64_t)scratch.part[0] : 0),
                  b = op->at.shared + (scratch.part ? (int64_t)scratch.part[1] : 0);
    s.p = tk_matrix_plan_of(e->f, op);
    s.a = operand_of(e, &s.p.a, a);
    s.b = operand_of(e, &s.p.b, b);
    s.regs = 1U << s.l->regs;
    s.acc = TK_NEW_ARRAY(e->arena, LLVMValueRef, s.regs);
    LLVMValueRef *from = d.acc ? tk_emit_get(e, op->opnd[d.acc]) : NULL;
    s.zero = true;
    for (uint32_t r = 0; r < s.regs; r++) {
        s.acc[r] = from ? from[r] : LLVMConstNull(tk_emit_type(e, d.type));
        s.zero = s.zero && is_zero(s.acc[r]);
    }
    all_blocks(&s, &scratch);
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < s.regs; r++) {
        out[r] = s.acc[r];
    }
}
