// SPDX-License-Identifier: Apache-2.0
// Products by wgmma: four warps together, 64 rows at once.
//
// All instructions of a block of K are one piece of assembly, from wgmma.fence to the wait, with
// the accumulators going in and coming out: nothing can come between. A sum that starts from zero
// goes in as nothing. Only what is `open` is not waited for there: its registers are no one's until
// a piece of their own, of op wait, has them going in and coming out. Descriptors are one for each
// operand, to which the piece adds distances.
//
// f8: sums inside wgmma keep few bits, so that after 128 products they are added to the accumulator
// as f32.
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_matrix.h"

#include <string.h>

enum { UNIT = 16, FIELD = 0x3fff, COLUMN_LOG = 3, LOW = 2, A_REGS = 4 };
enum { MOST_F8_LOG = 7 }; // columns of an instruction

typedef struct wgmma {
    tk_emit_matrix *s;
    unsigned low;   // bits of a result's register that are one instruction's
    uint32_t rows;  // instructions of one step: parts of the result
    uint32_t first; // of those in the piece at hand
    uint32_t step;  // elements of K
    LLVMValueRef desc[2];
    tk_buf text;
    tk_buf constraints;
    uint32_t narg;
    LLVMValueRef *arg;
    LLVMTypeRef *type;
    LLVMValueRef nothing; // 0, not known to be so; NULL: A need not be copied
} wgmma;

// ---- Descriptors --------------------------------------------------------------------------------

static const tk_emit_operand *operand(const wgmma *w, bool is_a) {
    return is_a ? &w->s->a : &w->s->b;
}

// The bytes of a row of a panel.
static uint32_t span_of(const tk_operand *x) {
    const unsigned fast = x->k_major ? x->k_axis : x->row_axis;
    const uint32_t row = x->bytes << x->place.log_dim[fast];
    return row < TK_SPAN_BYTES ? row : TK_SPAN_BYTES;
}

// All but the address.
static uint64_t form_of(const tk_operand *x) {
    const uint32_t span = span_of(x), atom = 8 * span;
    const uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    // Between parts of 64 elements along rows; without a swizzle between eights of K.
    uint64_t leading = 1, stride = atom / UNIT;
    if (!x->k_major) {
        leading = (swizzle ? (uint64_t)span << x->place.log_dim[x->k_axis] : atom) / UNIT;
    }
    return swizzle << 62 | stride << 32 | leading << 16;
}

static uint32_t byte_of(const tk_operand *x, uint32_t number) {
    return tk_layout_place(&x->place, number) * x->bytes;
}

static LLVMValueRef descriptor(const wgmma *w, bool is_a) {
    tk_emit *e = w->s->e;
    const tk_emit_operand *o = operand(w, is_a);
    const tk_layout *l = w->s->l;
    uint32_t warp[TK_MAX_WARP_BITS] = {0};
    LLVMTypeRef i32 = tk_ll_int(e, 32);
    for (unsigned i = TK_WGMMA_WARPS_LOG; i < l->warps; i++) {
        const uint32_t at = is_a ? tk_emit_in_a(w->s, l->warp[i]) : tk_emit_in_b(w->s, l->warp[i]);
        warp[i - TK_WGMMA_WARPS_LOG] = byte_of(o->x, at);
    }
    LLVMValueRef group = tk_ll_shr(e, e->same_warp ? e->same_warp : e->warp, TK_WGMMA_WARPS_LOG);
    LLVMValueRef at = LLVMBuildPtrToInt(e->b, e->shared, i32, "");
    LLVMValueRef part =
        tk_emit_bases(e, group, warp, l->warps - (unsigned)TK_WGMMA_WARPS_LOG, NULL);
    at = tk_ll_add(e, at, o->base);
    at = part ? tk_ll_add(e, at, part) : at;
    at = tk_ll_resize(e, tk_ll_mask(e, tk_ll_shr(e, at, 4), FIELD), 64, false);
    return tk_ll_or(e, at, tk_ll_k(at, form_of(o->x)));
}

// ---- Arguments of the piece of assembly ---------------------------------------------------------

static uint32_t add_argument(wgmma *w, LLVMValueRef x, const char *constraint) {
    tk_buf_fmt(&w->constraints, "%s%s", w->constraints.n ? "," : "", constraint);
    w->arg[w->narg] = x;
    w->type[w->narg] = LLVMTypeOf(x);
    return w->narg++;
}

static const char *type_name(tk_dtype t) {
    switch ((int)t) { // that wgmma multiplies
    case TK_F16:
        return "f16";
    case TK_BF16:
        return "bf16";
    case TK_F32:
        return "tf32";
    case TK_F8E4M3:
        return "e4m3";
    case TK_F8E5M2:
        return "e5m2";
    case TK_I8:
        return "s8";
    }
    return "u8";
}

static uint32_t regs_of(const wgmma *w) { return 1U << w->low; } // of an instruction

// ---- Instructions -------------------------------------------------------------------------------

static void accumulator(wgmma *w, uint32_t row) {
    tk_buf_str(&w->text, "{");
    for (uint32_t r = 0; r < regs_of(w); r++) {
        tk_buf_fmt(&w->text, "%s$%u", r ? ", " : "", (row - w->first) * regs_of(w) + r);
    }
    tk_buf_str(&w->text, "}, ");
}

static void tail(wgmma *w, bool adds, bool in_registers) {
    const tk_matrix *t = &w->s->p.m;
    tk_buf_fmt(&w->text, "%u", adds);
    if (t->sum != TK_I32) {
        tk_buf_str(&w->text, ", 1, 1");
    }
    if (t->any_major && !in_registers) {
        tk_buf_fmt(&w->text, ", %u", !w->s->a.x->k_major);
    }
    if (t->any_major) {
        tk_buf_fmt(&w->text, ", %u", !w->s->b.x->k_major);
    }
    tk_buf_str(&w->text, ";\n");
}

// The element of the result that is the first of part `row`.
static uint32_t first_of(const wgmma *w, uint32_t row) {
    return tk_layout_eval(w->s->l, row << w->low, 0, 0);
}

// A's registers for part `row` at element k: names of arguments that were added before.
static void a_registers(wgmma *w, uint32_t first) {
    tk_buf_str(&w->text, "{");
    for (uint32_t i = 0; i < A_REGS; i++) {
        tk_buf_fmt(&w->text, "%s$%u", i ? ", " : "", first + i);
    }
    tk_buf_str(&w->text, "}, ");
}

// `a`, `b`: numbers of arguments.
static void instruction(wgmma *w, uint32_t row, uint32_t k, bool adds, uint32_t a, uint32_t b) {
    const tk_emit_matrix *s = w->s;
    const tk_matrix *t = &s->p.m;
    const bool in_registers = s->a.x->where == TK_OPERAND_REGISTERS;
    const uint32_t e = first_of(w, row);
    const uint32_t k_of_b = k << tk_layout_shift(&s->b.x->place, s->b.x->k_axis);
    if (!in_registers) {
        tk_buf_fmt(&w->text, "add.s64 da, $%u, %u;\n", a,
                   byte_of(s->a.x, tk_emit_in_a(s, e) | k) / UNIT);
    }
    tk_buf_fmt(&w->text, "add.s64 db, $%u, %u;\n", b,
               byte_of(s->b.x, tk_emit_in_b(s, e) | k_of_b) / UNIT);
    tk_buf_fmt(&w->text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ",
               1U << (w->low - LOW + COLUMN_LOG), 1U << t->k, t->sum == TK_I32 ? "s32" : "f32",
               type_name(t->a), type_name(t->b));
    accumulator(w, row);
    if (in_registers) {
        a_registers(w, a);
    } else {
        tk_buf_str(&w->text, "da, ");
    }
    tk_buf_str(&w->text, "db, ");
    tail(w, adds, in_registers);
}

// The four registers of A at element k of part `row`.
static uint32_t add_a(wgmma *w, uint32_t row, uint32_t k) {
    const tk_emit_matrix *s = w->s;
    const tk_matrix *t = &s->p.m;
    tk_emit *e = s->e;
    const unsigned columns = s->l->log_dim[s->l->rank - 1U];
    const uint32_t n = (first_of(w, row) >> columns << t->log_k) | k;
    const uint32_t eight = 8U << t->log_k, upper = 4U << t->pack, first = w->narg;
    for (uint32_t r = 0; r < A_REGS; r++) {
        const uint32_t at = n ^ (r & 1 ? eight : 0) ^ (r & 2 ? upper : 0);
        LLVMValueRef x = tk_emit_packed(s, at, 1U << t->pack);
        x = t->a == TK_F32 && !s->a.x->rounded ? tk_emit_tf32(e, x) : x;
        x = tk_ll_bits(e, x, tk_ll_int(e, 32));
        (void)add_argument(w, w->nothing ? tk_ll_or(e, x, w->nothing) : x, "r");
    }
    return first;
}

// ---- A piece of assembly ------------------------------------------------------------------------

static void call(const wgmma *w, LLVMTypeRef type, uint32_t n, LLVMValueRef *out) {
    tk_emit *e = w->s->e;
    tk_buf text = w->text, constraints = w->constraints;
    const char *t = tk_buf_text(&text), *c = tk_buf_text(&constraints);
    LLVMValueRef f =
        LLVMGetInlineAsm(type, t, strlen(t), c, strlen(c), 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef r = LLVMBuildCall2(e->b, type, f, w->arg, w->narg, "");
    for (uint32_t i = 0; i < n; i++) {
        out[i] = LLVMBuildExtractValue(e->b, r, i, "");
    }
}

// Adds the products of K from `from` to `to` to the registers of `rows` parts from w->first on.
// `fresh`: to nothing.
static void piece(wgmma *w, uint32_t rows, uint32_t from, uint32_t to, bool fresh,
                  LLVMValueRef *acc) {
    tk_emit_matrix *s = w->s;
    tk_emit *e = s->e;
    const bool in_registers = s->a.x->where == TK_OPERAND_REGISTERS;
    const char *out = s->p.m.sum == TK_I32 ? "=r" : "=f";
    const uint32_t n = rows * regs_of(w), steps = (to - from) / w->step;
    tk_buf_init(&w->text, e->arena);
    tk_buf_init(&w->constraints, e->arena);
    w->narg = 0;
    w->arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, 2 * n + A_REGS * steps * rows + 2);
    w->type = TK_NEW_ARRAY(e->arena, LLVMTypeRef, 2 * n + A_REGS * steps * rows + 2);
    for (uint32_t r = 0; r < n; r++) {
        tk_buf_fmt(&w->constraints, "%s%s", r ? "," : "", out);
    }
    for (uint32_t r = 0; r < n && !fresh; r++) {
        (void)add_argument(w, acc[r], tk_format(e->arena, "%u", r));
    }
    const uint32_t b = n + add_argument(w, w->desc[1], "l");
    const uint32_t a = in_registers ? 0 : n + add_argument(w, w->desc[0], "l");
    tk_buf_str(&w->text, "{\n.reg .b64 da, db;\nwgmma.fence.sync.aligned;\n");
    for (uint32_t k = from; k < to; k += w->step) {
        for (uint32_t row = w->first; row < w->first + rows; row++) {
            const uint32_t its = in_registers ? n + add_a(w, row, k) : a;
            instruction(w, row, k, !fresh || k > from, its, b);
        }
    }
    tk_buf_fmt(&w->text, "wgmma.commit_group.sync.aligned;\n%s}",
               s->op->at.open ? "" : "wgmma.wait_group.sync.aligned 0;\n");
    tk_buf_str(&w->constraints, ",~{memory}");
    LLVMTypeRef *all = TK_NEW_ARRAY(e->arena, LLVMTypeRef, n);
    for (uint32_t r = 0; r < n; r++) {
        all[r] = LLVMTypeOf(acc[r]);
    }
    LLVMTypeRef type =
        LLVMFunctionType(LLVMStructTypeInContext(e->ctx, all, n, 0), w->type, w->narg, 0);
    call(w, type, n, acc);
}

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

// Sums of 128 products each, added as f32: of one part of the result after the other, as there are
// two of each register.
static void in_intervals(wgmma *w) {
    tk_emit_matrix *s = w->s;
    tk_emit *e = s->e;
    const uint32_t all = s->p.block, each = 1U << TK_MATRIX_F8_INTERVAL_LOG;
    LLVMValueRef *sum = TK_NEW_ARRAY(e->arena, LLVMValueRef, regs_of(w));
    for (uint32_t k = 0; k < all; k += each) {
        for (w->first = 0; w->first < w->rows; w->first++) {
            LLVMValueRef *acc = s->acc + w->first * regs_of(w);
            memcpy(sum, acc, regs_of(w) * sizeof *sum);
            piece(w, 1, k, k + each < all ? k + each : all, true, sum);
            for (uint32_t r = 0; r < regs_of(w); r++) {
                const bool only = k == 0 && s->zero;
                acc[r] = only ? sum[r] : LLVMBuildFAdd(e->b, acc[r], sum[r], "");
            }
        }
    }
}

// ptxas (of CUDA 13.0) takes the registers of A for its own behind the instruction that reads them,
// also where they are needed once more: in the next iteration, or by another product. So such are
// copied for each instruction, in a way that it cannot undo: by or with a 0 that it does not know
// to be one and that is made anew each time, of the place of B's tile.
static LLVMValueRef nothing(tk_emit_matrix *s) {
    tk_emit *e = s->e;
    const tk_vid v = s->op->opnd[0];
    const tk_op *def = tk_value_def(e->f, v);
    if (s->a.x->where != TK_OPERAND_REGISTERS || (def && def->in == s->op->in && e->uses[v] == 1)) {
        return NULL;
    }
    return tk_emit_asm(e, tk_ll_int(e, 32), "shr.u32 $0, $1, 31;", "=r,r", 1, &s->b.base);
}

void tk_emit_wgmma(tk_emit_matrix *s) {
    wgmma w = {.s = s, .nothing = nothing(s)};
    const bool f8 = is_f8(s->p.m.a);
    const unsigned most = f8 ? MOST_F8_LOG : (unsigned)TK_WGMMA_MOST_N_LOG;
    const unsigned columns = s->p.columns < most ? s->p.columns : most;
    w.low = LOW + columns - COLUMN_LOG;
    w.rows = s->regs >> w.low;
    w.step = 1U << s->p.m.k;
    w.desc[1] = descriptor(&w, false);
    w.desc[0] = s->a.x->where == TK_OPERAND_REGISTERS ? NULL : descriptor(&w, true);
    if (f8) {
        in_intervals(&w);
    } else {
        piece(&w, w.rows, 0, s->p.block, s->zero, s->acc);
    }
}

// The registers go in and come out, so that nothing uses them before.
void tk_emit_wait_op(tk_emit *e, tk_op *op) {
    tk_emit_matrix s = {.e = e, .op = op};
    wgmma w = {.s = &s};
    const uint32_t n = tk_emit_regs(e, op->res[0]);
    LLVMValueRef *in = tk_emit_get(e, op->opnd[0]);
    tk_buf_init(&w.text, e->arena);
    tk_buf_init(&w.constraints, e->arena);
    w.arg = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    w.type = TK_NEW_ARRAY(e->arena, LLVMTypeRef, n);
    const bool whole = tk_value_type(e->f, op->res[0])->dtype == TK_I32;
    for (uint32_t r = 0; r < n; r++) {
        tk_buf_fmt(&w.constraints, "%s%s", r ? "," : "", whole ? "=r" : "=f");
    }
    for (uint32_t r = 0; r < n; r++) {
        (void)add_argument(&w, in[r], tk_format(e->arena, "%u", r));
    }
    tk_buf_str(&w.text, "wgmma.wait_group.sync.aligned 0;");
    tk_buf_str(&w.constraints, ",~{memory}");
    LLVMTypeRef type =
        LLVMFunctionType(LLVMStructTypeInContext(e->ctx, w.type, n, 0), w.type, n, 0);
    call(&w, type, n, tk_emit_new(e, op->res[0]));
}
