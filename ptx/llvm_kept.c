// SPDX-License-Identifier: Apache-2.0
// Kept tiles: tiles too large for registers, each thread's part of which is in its own memory, in
// the order of its registers. The parts that `insert` and `extract` name are runs of registers, so
// no thread reads what another wrote.
//
// A kept tile is a value: an insert gives another tile. It writes where the old tile is when
// nothing else uses that one; else it copies. So do loops with what they carry.
#include "lower/lower.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

enum { ALIGN = 16 };

bool tk_emit_is_kept(const tk_emit *e, tk_vid v) {
    const tk_handed_on most = tk_handed_on_by(e->warps);
    return tk_tile_kept(e->f, v, &most);
}

// ---- Memory -------------------------------------------------------------------------------------

static LLVMTypeRef type_of(const tk_emit *e, tk_vid v) {
    return tk_emit_mem_type(e, tk_value_type(e->f, v)->dtype);
}

static LLVMValueRef at(const tk_emit *e, tk_vid v, LLVMValueRef place, LLVMValueRef index) {
    return LLVMBuildInBoundsGEP2(e->b, type_of(e, v), place, &index, 1, "");
}

static void write(tk_emit *e, tk_vid v, LLVMValueRef place, LLVMValueRef first, LLVMValueRef *x,
                  uint32_t n) {
    const tk_dtype t = tk_value_type(e->f, v)->dtype;
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef i = tk_ll_add(e, first, tk_emit_i32(e, r));
        LLVMValueRef s = LLVMBuildStore(e->b, tk_emit_to_mem(e, t, x[r]), at(e, v, place, i));
        LLVMSetAlignment(s, (unsigned)tk_dtype_size(t));
    }
}

static void read(const tk_emit *e, tk_vid v, LLVMValueRef place, LLVMValueRef first,
                 LLVMValueRef *x, uint32_t n) {
    const tk_dtype t = tk_value_type(e->f, v)->dtype;
    tk_emit *b = (tk_emit *)(uintptr_t)e; // the builder's place is all that changes
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef i = tk_ll_add(b, first, tk_emit_i32(e, r));
        LLVMValueRef l = LLVMBuildLoad2(e->b, type_of(e, v), at(e, v, place, i), "");
        LLVMSetAlignment(l, (unsigned)tk_dtype_size(t));
        x[r] = tk_emit_from_mem(b, t, l);
    }
}

static LLVMValueRef room(tk_emit *e, tk_vid v) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    tk_emit_before(e, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    LLVMTypeRef t = LLVMArrayType2(type_of(e, v), tk_emit_regs(e, v));
    LLVMValueRef place = LLVMBuildAlloca(e->b, t, "kept");
    LLVMSetAlignment(place, ALIGN);
    LLVMPositionBuilderAtEnd(e->b, here);
    return place;
}

void tk_emit_kept_room(tk_emit *e, tk_vid v) { e->kept[v] = room(e, v); }

static void copy(tk_emit *e, tk_vid like, LLVMValueRef to, LLVMValueRef from) {
    uint64_t bytes = tk_dtype_size(tk_value_type(e->f, like)->dtype) * tk_emit_regs(e, like);
    LLVMBuildMemCpy(e->b, to, ALIGN, from, ALIGN, tk_emit_i64(e, (int64_t)bytes));
}

static bool is_empty(const tk_emit *e, tk_vid v) {
    const tk_op *d = tk_value_def(e->f, v);
    return d && d->code == TK_OP_EMPTY;
}

// Puts v, of whatever form, to a kept tile's place.
static void put(tk_emit *e, tk_vid v, LLVMValueRef place) {
    if (is_empty(e, v) || e->kept[v] == place) {
        return;
    }
    if (e->kept[v]) {
        copy(e, v, place, e->kept[v]);
    } else {
        write(e, v, place, tk_emit_i32(e, 0), tk_emit_get(e, v), tk_emit_regs(e, v));
    }
}

LLVMValueRef *tk_emit_kept_load(const tk_emit *e, tk_vid v) {
    uint32_t n = tk_emit_regs(e, v);
    LLVMValueRef *x = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    if (e->kept[v]) {
        read(e, v, e->kept[v], tk_emit_i32(e, 0), x, n);
        return x;
    }
    TK_CHECK(e->arena, is_empty(e, v));
    LLVMTypeRef t = tk_emit_type(e, tk_value_type(e->f, v)->dtype);
    for (uint32_t r = 0; r < n; r++) {
        x[r] = LLVMGetUndef(t);
    }
    return x;
}

// Whether the one op that uses v, in region r, may write in its place. What a while loop's
// condition sees is used by its body too.
static bool may_take(const tk_emit *e, tk_vid v, const tk_region *r) {
    const tk_irvalue *x = &e->f->value.at[v];
    const tk_op *owner = x->region ? x->region->owner : NULL;
    bool shown = owner && owner->code == TK_OP_WHILE && x->region == owner->reg[0];
    return e->kept[v] && e->uses[v] == 1 && !shown && (x->def ? x->def->in : x->region) == r;
}

// ---- What control flow hands on -----------------------------------------------------------------

void tk_emit_kept_enter(tk_emit *e, const tk_op *loop, tk_vid arg, tk_vid init) {
    if (!tk_emit_is_kept(e, arg)) {
        return;
    }
    if (may_take(e, init, loop->in)) {
        e->kept[arg] = e->kept[init];
    } else {
        tk_emit_kept_room(e, arg);
        put(e, init, e->kept[arg]);
    }
}

// Values may change places with one another, so what is to be overwritten is copied first.
void tk_emit_kept_yield(tk_emit *e, uint32_t n, const tk_vid *from, const tk_vid *to) {
    LLVMValueRef *source = TK_NEW_ARRAY(e->arena, LLVMValueRef, n + 1);
    for (uint32_t k = 0; k < n; k++) {
        source[k] = e->kept[from[k]];
        for (uint32_t j = 0; j < n && source[k] && tk_emit_is_kept(e, to[k]); j++) {
            if (j != k && e->kept[to[j]] == source[k]) {
                source[k] = room(e, from[k]);
                copy(e, from[k], source[k], e->kept[from[k]]);
                break;
            }
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!tk_emit_is_kept(e, to[k]) || e->kept[to[k]] == source[k]) {
            continue;
        }
        if (source[k]) {
            copy(e, from[k], e->kept[to[k]], source[k]);
        } else {
            put(e, from[k], e->kept[to[k]]);
        }
    }
}

// ---- Parts --------------------------------------------------------------------------------------

// The first register of the part whose numbers along the axes are opnd[0], opnd[1] ..
static LLVMValueRef first_of(tk_emit *e, const tk_vid *opnd, tk_vid tile, tk_vid part) {
    const tk_layout *t = tk_emit_layout(e, tile), *p = tk_emit_layout(e, part);
    LLVMValueRef n = tk_emit_i32(e, 0);
    for (unsigned i = 0; i < t->rank; i++) {
        unsigned log = (unsigned)(t->log_dim[i] - p->log_dim[i]);
        LLVMValueRef x = tk_ll_mask(e, tk_emit_get(e, opnd[i])[0], (1U << log) - 1);
        n = log ? tk_ll_add(e, tk_ll_shl(e, n, log), x) : n;
    }
    return tk_ll_shl(e, n, p->regs);
}

static void insert(tk_emit *e, const tk_op *op) {
    tk_vid tile = op->opnd[0], part = op->opnd[1], r = op->res[0];
    if (may_take(e, tile, op->in)) {
        e->kept[r] = e->kept[tile];
    } else {
        tk_emit_kept_room(e, r);
        put(e, tile, e->kept[r]);
    }
    write(e, part, e->kept[r], first_of(e, op->opnd + 2, tile, part), tk_emit_get(e, part),
          tk_emit_regs(e, part));
}

static void extract(tk_emit *e, const tk_op *op) {
    tk_vid tile = op->opnd[0], part = op->res[0];
    LLVMValueRef place = e->kept[tile];
    if (!place) { // in registers, or empty
        place = room(e, tile);
        put(e, tile, place);
    }
    read(e, part, place, first_of(e, op->opnd + 1, tile, part), tk_emit_new(e, part),
         tk_emit_regs(e, part));
}

void tk_emit_kept_op(tk_emit *e, tk_op *op) {
    switch ((int)op->code) { // those that llvm_kernel.c sends here; `empty` is nothing
    case TK_OP_INSERT:
        insert(e, op);
        break;
    case TK_OP_EXTRACT:
        extract(e, op);
        break;
    }
}
