// SPDX-License-Identifier: Apache-2.0
// assert, assume and print in debug compiles: what they leave behind (ptx/debug.h); elsewhere they
// make nothing.
//
// A claim that fails ends its program. All threads of the block learn of it by a barrier, so that
// all leave together; nothing traps, and the GPU's context stays usable.
#include "ir/show.h"
#include "lower/view_plan.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

#include <string.h>

static uint32_t site_of(const tk_emit *e, const tk_op *op) {
    uint32_t i = 0;
    while (i < e->sites.op.n && e->sites.op.at[i] != op) {
        i++;
    }
    TK_CHECK(e->arena, i < e->sites.op.n);
    return i;
}

static LLVMValueRef debug_at(tk_emit *e, size_t offset) {
    LLVMValueRef at = tk_emit_i64(e, (int64_t)offset);
    return LLVMBuildInBoundsGEP2(e->b, tk_ll_int(e, 8), e->debug, &at, 1, "");
}

static LLVMValueRef change(tk_emit *e, LLVMAtomicRMWBinOp how, size_t offset, LLVMValueRef x) {
    return LLVMBuildAtomicRMW(e->b, how, debug_at(e, offset), x, LLVMAtomicOrderingMonotonic, 0);
}

static LLVMValueRef is_first_thread(tk_emit *e) { return tk_ll_is(e, e->tid, 0); }

// i1, the same in all threads: x holds in some thread.
static LLVMValueRef any_thread(tk_emit *e, LLVMValueRef x) {
    LLVMValueRef arg[2] = {tk_emit_i32(e, 0), x};
    return tk_emit_intrinsic(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", tk_ll_int(e, 1), 2,
                             arg);
}

// Ends what tk_emit_if began, whose condition is the same in all threads, and the program with it.
static void leave(tk_emit *e, const tk_emit_cond *c) {
    LLVMBuildRetVoid(e->b);
    LLVMPositionBuilderAtEnd(e->b, c->end);
}

// ---- assert, assume

static void record_fault(tk_emit *e, uint32_t site, LLVMValueRef element) {
    LLVMValueRef word = tk_ll_resize(e, e->number, 64, false);
    word = tk_ll_shl(e, word, TK_DEBUG_SITE_BITS);
    word = tk_ll_or(e, word, tk_ll_k(word, site));
    word = tk_ll_shl(e, word, TK_DEBUG_ELEMENT_BITS);
    word = tk_ll_or(e, word, tk_ll_resize(e, element, 64, false));
    (void)change(e, LLVMAtomicRMWBinOpUMin, offsetof(tk_debug_head, fault), word);
}

static void check_scalar(tk_emit *e, uint32_t site, LLVMValueRef holds) {
    tk_emit_cond failed = tk_emit_if(e, LLVMBuildNot(e->b, holds, ""));
    tk_emit_cond one = tk_emit_if(e, is_first_thread(e));
    record_fault(e, site, tk_emit_i32(e, 0));
    tk_emit_end(e, &one);
    leave(e, &failed);
}

static void check_tile(tk_emit *e, uint32_t site, const tk_layout *l, const LLVMValueRef *x) {
    const uint32_t n = 1U << l->regs;
    LLVMValueRef all = x[0];
    for (uint32_t r = 1; r < n; r++) {
        all = tk_ll_and(e, all, x[r]);
    }
    LLVMValueRef fails = LLVMBuildNot(e->b, all, "");
    tk_emit_cond failed = tk_emit_if(e, any_thread(e, fails));
    tk_emit_cond here = tk_emit_if(e, fails);
    LLVMValueRef least = tk_emit_i32(e, (1 << TK_DEBUG_ELEMENT_BITS) - 1);
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef at = tk_emit_element(e, l, r);
        LLVMValueRef less = tk_ll_icmp(e, LLVMIntULT, at, least);
        less = tk_ll_and(e, less, LLVMBuildNot(e->b, x[r], ""));
        least = tk_ll_sel(e, less, at, least);
    }
    record_fault(e, site, least);
    tk_emit_end(e, &here);
    leave(e, &failed);
}

static void claim(tk_emit *e, const tk_op *op) {
    const uint32_t site = site_of(e, op);
    const tk_layout *l = tk_emit_layout(e, op->opnd[0]);
    if (site >> TK_DEBUG_SITE_BITS) {
        tk_emit_refuse(e, op, "a debug compile holds at most %d asserts, assumes and prints",
                       1 << TK_DEBUG_SITE_BITS);
        return;
    }
    if (l) {
        check_tile(e, site, l, tk_emit_get(e, op->opnd[0]));
    } else {
        check_scalar(e, site, tk_emit_get(e, op->opnd[0])[0]);
    }
}

// Whether something in it is read that another program may write.
static bool reads_others(const tk_emit *e, const tk_op *op) {
    if (tk_op_is_access(op) && op->code != TK_OP_STORE &&
        tk_value_type(e->f, op->opnd[0])->access != TK_IN) {
        return true;
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *o = op->reg[i]->first; o; o = o->next) {
            if (reads_others(e, o)) {
                return true;
            }
        }
    }
    return false;
}

void tk_emit_debug_poll(tk_emit *e, const tk_op *loop) {
    if (!e->debug || !e->sites.claims || tk_op_in_combine(loop) || !reads_others(e, loop)) {
        return;
    }
    LLVMTypeRef i64 = tk_ll_int(e, 64);
    LLVMValueRef fault = LLVMBuildLoad2(e->b, i64, debug_at(e, offsetof(tk_debug_head, fault)), "");
    LLVMSetAlignment(fault, 8);
    LLVMSetOrdering(fault, LLVMAtomicOrderingMonotonic);
    LLVMValueRef none = LLVMConstAllOnes(i64);
    tk_emit_cond c = tk_emit_if(e, any_thread(e, tk_ll_icmp(e, LLVMIntNE, fault, none)));
    leave(e, &c);
}

// ---- print

// The first thread takes the record's bytes and writes its head; all learn where it stands, or that
// there was no room: all ones.
static LLVMValueRef take_record(tk_emit *e, const tk_op *op, uint32_t site, uint32_t bytes) {
    const uint64_t shared = tk_emit_scratch(e, op).part[0];
    tk_emit_cond one = tk_emit_if(e, is_first_thread(e));
    LLVMTypeRef i64 = tk_ll_int(e, 64);
    LLVMValueRef size = tk_emit_i64(e, bytes);
    LLVMValueRef at = change(e, LLVMAtomicRMWBinOpAdd, offsetof(tk_debug_head, used), size);
    LLVMValueRef room = LLVMBuildLoad2(e->b, i64, debug_at(e, offsetof(tk_debug_head, room)), "");
    LLVMSetAlignment(room, 8);
    LLVMValueRef fits = tk_ll_icmp(e, LLVMIntULE, tk_ll_add(e, at, size), room);
    LLVMValueRef where = tk_ll_sel(e, fits, at, LLVMConstAllOnes(i64));
    LLVMSetAlignment(LLVMBuildStore(e->b, where, tk_emit_shared_at(e, op, shared, NULL)), 8);
    tk_emit_cond lost = tk_emit_if(e, LLVMBuildNot(e->b, fits, ""));
    (void)change(e, LLVMAtomicRMWBinOpUMin, offsetof(tk_debug_head, end), at);
    (void)change(e, LLVMAtomicRMWBinOpAdd, offsetof(tk_debug_head, lost), tk_emit_i64(e, 1));
    tk_emit_else(e, &lost);
    LLVMValueRef head = tk_ll_shl(e, tk_ll_resize(e, e->number, 64, false), 32);
    head = tk_ll_or(e, head, tk_emit_i64(e, site));
    LLVMValueRef to = LLVMBuildAdd(e->b, at, tk_emit_i64(e, sizeof(tk_debug_head)), "");
    to = LLVMBuildInBoundsGEP2(e->b, tk_ll_int(e, 8), e->debug, &to, 1, "");
    LLVMSetAlignment(LLVMBuildStore(e->b, head, to), 8);
    tk_emit_end(e, &lost);
    tk_emit_end(e, &one);
    tk_emit_barrier(e);
    return tk_emit_fetch(e, op, shared, TK_U64, tk_emit_i32(e, 0));
}

// The number of an element among those that are shown, and whether it is; NULL: always.
static LLVMValueRef shown(tk_emit *e, const tk_debug_value *v, const tk_layout *l, uint32_t r,
                          LLVMValueRef *is_shown) {
    LLVMValueRef number = tk_emit_i32(e, 0);
    *is_shown = NULL; // yet
    for (uint32_t a = 0; a < v->rank; a++) {
        LLVMValueRef at = tk_emit_coord(e, l, r, a);
        const int64_t extent = tk_show_extent(v->rank, v->dim, a);
        if (v->dim[a] < (int64_t)1 << l->log_dim[a]) { // padding is not shown
            LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, at, tk_ll_k(at, (uint64_t)v->dim[a]));
            *is_shown = *is_shown ? tk_ll_and(e, *is_shown, in) : in;
        }
        if (tk_show_is_cut(v->rank, v->dim, a)) {
            LLVMValueRef first = tk_ll_icmp(e, LLVMIntULT, at, tk_ll_k(at, TK_SHOW_EDGE));
            LLVMValueRef back = tk_emit_i32(e, v->dim[a] - TK_SHOW_EDGE);
            LLVMValueRef in = tk_ll_or(e, first, tk_ll_icmp(e, LLVMIntUGE, at, back));
            *is_shown = *is_shown ? tk_ll_and(e, *is_shown, in) : in;
            LLVMValueRef moved = tk_ll_sub(e, at, tk_emit_i32(e, v->dim[a] - extent));
            at = tk_ll_sel(e, first, at, moved);
        }
        number = tk_ll_add(e, tk_ll_mul(e, number, tk_emit_i32(e, extent)), at);
    }
    return number;
}

static void write_value(tk_emit *e, const tk_debug_value *v, tk_vid x, LLVMValueRef record) {
    const tk_layout *l = tk_emit_layout(e, x);
    const LLVMValueRef *reg = tk_emit_get(e, x);
    LLVMTypeRef type = tk_emit_mem_type(e, v->dtype);
    const int64_t before = (int64_t)sizeof(tk_debug_head) + v->offset;
    LLVMValueRef from = LLVMBuildAdd(e->b, record, tk_emit_i64(e, before), "");
    from = LLVMBuildInBoundsGEP2(e->b, tk_ll_int(e, 8), e->debug, &from, 1, "");
    tk_emit_cond own = tk_emit_if(e, l ? tk_emit_owner(e, l) : is_first_thread(e));
    for (uint32_t r = 0; r < tk_emit_regs(e, x); r++) {
        LLVMValueRef is_shown = NULL;
        LLVMValueRef number = l ? shown(e, v, l, r, &is_shown) : tk_emit_i32(e, 0);
        tk_emit_cond c = tk_emit_if(e, is_shown);
        LLVMValueRef to = LLVMBuildInBoundsGEP2(e->b, type, from, &number, 1, "");
        LLVMValueRef store = LLVMBuildStore(e->b, tk_emit_to_mem(e, v->dtype, reg[r]), to);
        LLVMSetAlignment(store, (unsigned)tk_dtype_size(v->dtype));
        tk_emit_end(e, &c);
    }
    tk_emit_end(e, &own);
}

static void print(tk_emit *e, const tk_op *op) {
    const uint32_t number = site_of(e, op);
    const tk_debug_site *site = &e->sites.list.at[number];
    LLVMValueRef record = take_record(e, op, number, site->bytes);
    LLVMValueRef none = LLVMConstAllOnes(tk_ll_int(e, 64));
    tk_emit_cond fits = tk_emit_if(e, tk_ll_icmp(e, LLVMIntNE, record, none));
    for (uint32_t i = 0; i < op->nopnd; i++) {
        write_value(e, &site->value[i], op->opnd[i], record);
    }
    tk_emit_end(e, &fits);
}

// Such functions are emitted several times.
static void warn_once(tk_emit *e, const tk_op *op) {
    static const char id[] = "unchecked-on-gpu";
    const tk_span at = e->m->locs.at[op->loc].span;
    for (uint32_t i = 0; i < e->diags->list.n; i++) {
        const tk_diag *d = e->diags->list.at[i];
        if (strcmp(d->id, id) == 0 && memcmp(&d->span, &at, sizeof at) == 0) {
            return;
        }
    }
    tk_warning(e->diags, at, id,
               "%s in a function that combines elements does nothing on a GPU; device cpu runs it",
               tk_op_info(op->code)->name);
}

void tk_emit_debug_op(tk_emit *e, tk_op *op) {
    if (!e->opts->debug) {
        return;
    }
    if (tk_op_in_combine(op)) {
        warn_once(e, op);
        return;
    }
    if (op->code == TK_OP_PRINT) {
        print(e, op);
    } else {
        claim(e, op);
    }
}
