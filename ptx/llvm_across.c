// SPDX-License-Identifier: Apache-2.0
// What ops that work across threads have in common; see llvm_across.h.
#include "ptx/llvm_across.h"
#include "lower/lower.h"
#include "ptx/llvm_internal.h"

static bool fits(tk_emit *e, const tk_op *op, tk_vid v) {
    bool hands_on = op->nreg > 0 || op->code == TK_OP_EMPTY || op->code == TK_OP_INSERT ||
                    op->code == TK_OP_EXTRACT;
    if (tk_value_type(e->f, v)->kind != TK_T_VALUE || tk_emit_regs(e, v) <= TK_THREAD_ELEMS ||
        (hands_on && tk_emit_is_kept(e, v))) {
        return true;
    }
    tk_emit_refuse(e, op,
                   "a tile %s in %u warps takes %u registers of each thread, and %d is the most: "
                   "use more warps or a smaller tile",
                   tk_type_text(e->arena, tk_value_type(e->f, v)), e->warps, tk_emit_regs(e, v),
                   TK_THREAD_ELEMS);
    return false;
}

bool tk_emit_fits(tk_emit *e, const tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (!fits(e, op, op->opnd[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!fits(e, op, op->res[i])) {
            return false;
        }
    }
    return true;
}

// ---- Scratch ------------------------------------------------------------------------------------

void tk_emit_put(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t, LLVMValueRef element,
                 LLVMValueRef x) {
    LLVMValueRef offset = tk_ll_mul(e, element, tk_emit_i32(e, (int64_t)tk_dtype_size(t)));
    LLVMValueRef at = tk_emit_shared_at(e, op, base, offset);
    LLVMSetAlignment(LLVMBuildStore(e->b, tk_emit_to_mem(e, t, x), at), (unsigned)tk_dtype_size(t));
}

tk_emit_work tk_emit_work_begin(tk_emit *e, uint32_t n) {
    const uint32_t threads = 32 * e->warps;
    tk_emit_work w;
    w.loop = tk_emit_for(e, tk_emit_i32(e, (n + threads - 1) / threads));
    w.i = tk_ll_add(e, tk_ll_mul(e, w.loop.i, tk_emit_i32(e, threads)), e->tid);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, w.i, tk_emit_i32(e, n));
    w.cond = tk_emit_if(e, n % threads == 0 ? NULL : in);
    return w;
}

void tk_emit_work_end(tk_emit *e, tk_emit_work *w) {
    tk_emit_end(e, &w->cond);
    tk_emit_for_end(e, &w->loop);
}

// ---- Loops that carry values --------------------------------------------------------------------

tk_emit_carried tk_emit_carry_begin(tk_emit *e, uint32_t times, uint32_t n, LLVMValueRef *x) {
    tk_emit_carried c = {.n = n};
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    c.phi = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    c.loop = tk_emit_for(e, tk_emit_i32(e, times));
    tk_emit_before(e, LLVMGetFirstInstruction(c.loop.head));
    for (uint32_t r = 0; r < n; r++) {
        c.phi[r] = LLVMBuildPhi(e->b, LLVMTypeOf(x[r]), "");
        LLVMAddIncoming(c.phi[r], &x[r], &before, 1);
        x[r] = c.phi[r];
    }
    LLVMPositionBuilderAtEnd(e->b, c.loop.body);
    return c;
}

void tk_emit_carry_end(tk_emit *e, tk_emit_carried *c, LLVMValueRef *x, bool unroll) {
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->b);
    for (uint32_t r = 0; r < c->n; r++) {
        LLVMAddIncoming(c->phi[r], &x[r], &last, 1);
        x[r] = c->phi[r];
    }
    if (unroll) {
        tk_emit_for_end(e, &c->loop);
    } else {
        tk_emit_for_end_short(e, &c->loop);
    }
}

// ---- Lines --------------------------------------------------------------------------------------

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while (((int64_t)1 << k) < n) {
        k++;
    }
    return k;
}

tk_emit_lines tk_emit_lines_of(const tk_type *t, int axis) {
    tk_emit_lines s = {0, 0, 1, 1};
    const int64_t n = tk_type_elems(t);
    if (axis < 0) {
        s.log = log_of(n);
    } else {
        for (unsigned i = (unsigned)axis + 1; i < t->rank; i++) {
            s.shift += log_of(t->dim[i]);
        }
        s.log = log_of(t->dim[axis]);
    }
    s.len = 1U << s.log;
    s.count = (uint32_t)(n >> s.log);
    return s;
}

LLVMValueRef tk_emit_line_at(tk_emit *e, const tk_emit_lines *s, LLVMValueRef q, LLVMValueRef i) {
    LLVMValueRef low = tk_ll_mask(e, q, (1U << s->shift) - 1);
    LLVMValueRef high = tk_ll_shl(e, tk_ll_shr(e, q, s->shift), s->shift + s->log);
    return tk_ll_or(e, tk_ll_or(e, high, low), tk_ll_shl(e, i, s->shift));
}

LLVMValueRef tk_emit_line_place(tk_emit *e, const tk_emit_lines *s, LLVMValueRef element) {
    return tk_ll_mask(e, tk_ll_shr(e, element, s->shift), s->len - 1);
}

LLVMValueRef tk_emit_line_move(tk_emit *e, const tk_emit_lines *s, LLVMValueRef element,
                               LLVMValueRef i) {
    const uint32_t in_line = (s->len - 1) << s->shift;
    return tk_ll_or(e, tk_ll_mask(e, element, (uint32_t)~in_line), tk_ll_shl(e, i, s->shift));
}

LLVMValueRef tk_emit_flat(tk_emit *e, const tk_type *t, const LLVMValueRef *coord) {
    LLVMValueRef n = tk_emit_i32(e, 0);
    for (unsigned i = 0; i < t->rank; i++) {
        n = tk_ll_add(e, tk_ll_shl(e, n, log_of(t->dim[i])), coord[i]);
    }
    return n;
}

// ---- Combining ----------------------------------------------------------------------------------

tk_numop tk_emit_kind_op(const tk_emit *e, tk_kindattr kind) {
    switch (kind) {
    case TK_K_SUM:
    case TK_K_ADD:
        return TK_NUM_ADD;
    case TK_K_PROD:
        return TK_NUM_MUL;
    case TK_K_MIN:
        return TK_NUM_MIN;
    case TK_K_MAX:
        return TK_NUM_MAX;
    case TK_K_ANY:
    case TK_K_OR:
        return TK_NUM_OR;
    case TK_K_ALL:
    case TK_K_AND:
        return TK_NUM_AND;
    case TK_K_XOR:
        return TK_NUM_XOR;
    case TK_K_XCHG:
        break;
    }
    TK_ICE(e->arena, "no operation combines for kind %d", (int)kind);
}

// What is wrong with a region whose ops threads run apart; NULL: nothing. What it reads of memory
// was put in order before the op: within it there may be no barrier.
static const char *fault_of(tk_emit *e, const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        const tk_effect effect = tk_op_info(op->code)->effect;
        if (effect == TK_FX_WRITE || effect == TK_FX_ATOMIC) {
            return "its function writes memory";
        }
        for (uint32_t i = 0; i < op->nres; i++) {
            if (tk_value_type(e->f, op->res[i])->rank > 0) {
                return "its function works with tiles: use scalars in it";
            }
        }
        for (uint32_t i = 0; i < op->nopnd; i++) { // a tile from outside
            if (tk_type_is_tile(tk_value_type(e->f, op->opnd[i]))) {
                return "its function works with tiles: use scalars in it";
            }
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            const char *why = fault_of(e, op->reg[i]);
            if (why) {
                return why;
            }
        }
    }
    return NULL;
}

bool tk_emit_combine_ok(tk_emit *e, const tk_op *op) {
    const char *why = fault_of(e, op->reg[0]);
    if (why) {
        tk_emit_refuse(e, op, "%s", why);
    }
    return !why;
}
