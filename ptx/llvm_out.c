// SPDX-License-Identifier: Apache-2.0
// Stores by tensor copies (lower/out.h): all threads write the tile to shared memory, piece by
// piece; one thread of the first warp begins a copy for each box. That thread alone knows when what
// it began has been read, so that it waits where a piece is written over another one, and all wait
// for it.
#include "ir/out.h"
#include "lower/out.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"
#include "ptx/llvm_matrix.h"

enum { SHARED = 3 };

typedef struct out {
    tk_emit *e;
    const tk_op *op;
    tk_out_plan p;
    tk_dtype t;
    LLVMValueRef *x;
    LLVMValueRef base;   // i32: where the op's memory is
    LLVMValueRef thread; // i32: the thread's part of a place
    uint32_t touched;    // bits of a place that it may have
} out;

// ---- Writing ------------------------------------------------------------------------------------

static void find_thread(out *s) {
    tk_emit *e = s->e;
    const tk_out_plan *p = &s->p;
    uint32_t lane[TK_LANE_BITS], all = 0;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        lane[i] = tk_out_lane_place(p, 1U << i, 0);
        all |= lane[i];
    }
    for (unsigned i = 0; i < p->places.warps; i++) {
        all |= p->places.warp[i];
    }
    LLVMValueRef sum = tk_emit_bases(e, e->lane, lane, TK_LANE_BITS, NULL);
    sum = tk_emit_bases(e, e->warp, p->places.warp, p->places.warps, sum);
    s->thread = sum ? sum : tk_emit_i32(e, 0);
    s->touched = all;
}

// Where what register r begins is written: what the thread's part has no bits of is a constant, of
// the instruction.
static LLVMValueRef place(const out *s, uint32_t r, uint32_t piece, uint32_t *constant) {
    tk_emit *e = s->e;
    const uint32_t at = tk_out_register_place(&s->p, r, piece);
    LLVMValueRef mixed = tk_ll_xor(e, s->thread, tk_emit_i32(e, at & s->touched));
    *constant = (at & ~s->touched) * s->p.size;
    return tk_ll_add(e, s->base, tk_ll_mul(e, mixed, tk_emit_i32(e, s->p.size)));
}

// Two elements as one word.
static LLVMValueRef word(const out *s, uint32_t r) {
    tk_emit *e = s->e;
    LLVMValueRef all = LLVMGetUndef(LLVMVectorType(tk_emit_mem_type(e, s->t), 2));
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef x = tk_emit_to_mem(e, s->t, s->x[r | i << s->p.pair]);
        all = LLVMBuildInsertElement(e->b, all, x, tk_emit_i32(e, i), "");
    }
    return tk_ll_bits(e, all, tk_ll_int(e, 32));
}

static void write_matrices(const out *s, uint32_t r, uint32_t piece) {
    static const char *const words[] = {"$1", "$1, $2", "$1, $2, $3, $4"};
    static const char *const constraints[] = {"r,r,~{memory}", "r,r,r,~{memory}",
                                              "r,r,r,r,r,~{memory}"};
    tk_emit *e = s->e;
    const tk_out_plan *p = &s->p;
    uint32_t constant;
    LLVMValueRef arg[5] = {place(s, r, piece, &constant)};
    for (uint32_t i = 0; i < 1U << p->log_n; i++) {
        const uint32_t more = (i & 1 ? 1U << p->more[0] : 0) | (i & 2 ? 1U << p->more[1] : 0);
        arg[1 + i] = word(s, r | more);
    }
    const char *text =
        tk_format(e->arena, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [$0+%u], {%s};",
                  1U << p->log_n, p->turned ? ".trans" : "", constant, words[p->log_n]);
    (void)tk_emit_asm(e, LLVMVoidTypeInContext(e->ctx), text, constraints[p->log_n],
                      1 + (1U << p->log_n), arg);
}

static void write_vector(const out *s, uint32_t r, uint32_t piece) {
    tk_emit *e = s->e;
    const tk_run *run = &s->p.run;
    const uint32_t n = 1U << run->n;
    LLVMTypeRef type = tk_emit_mem_type(e, s->t);
    LLVMValueRef all = n > 1 ? LLVMGetUndef(LLVMVectorType(type, n)) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef y = tk_emit_to_mem(e, s->t, s->x[r | tk_run_registers(run, i)]);
        all = n > 1 ? LLVMBuildInsertElement(e->b, all, y, tk_emit_i32(e, i), "") : y;
    }
    uint32_t constant;
    LLVMValueRef at = place(s, r, piece, &constant);
    at = tk_ll_add(e, at, tk_emit_i32(e, constant));
    at = LLVMBuildIntToPtr(e->b, at, LLVMPointerTypeInContext(e->ctx, SHARED), "");
    LLVMSetAlignment(LLVMBuildStore(e->b, all, at), s->p.size * n);
}

static void write_piece(const out *s, uint32_t piece) {
    tk_emit *e = s->e;
    const uint32_t together = tk_out_together(&s->p);
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, &s->p.places));
    for (uint32_t r = 0; r < 1U << s->p.places.regs; r++) {
        if ((r & together) || tk_out_piece_of(&s->p, r) != piece) {
            continue;
        }
        if (s->p.matrices) {
            write_matrices(s, r, piece);
        } else {
            write_vector(s, r, piece);
        }
    }
    tk_emit_end(e, &own);
}

// ---- Copying ------------------------------------------------------------------------------------

// Where box i begins in the tensor: coordinates from the innermost dimension on.
static void corner(const out *s, const tk_emit_view *v, uint32_t i, LLVMValueRef *at) {
    tk_emit *e = s->e;
    const tk_boxes *b = &s->p.boxes;
    const uint32_t el = tk_layout_eval(&s->p.shared, i * b->elems, 0, 0);
    for (uint32_t d = 0; d < v->rank; d++) {
        uint32_t more = 0;
        if (b->axis[d] >= 0) {
            const unsigned axis = (unsigned)b->axis[d];
            more =
                el >> tk_layout_shift(&s->p.shared, axis) & ((1U << s->p.shared.log_dim[axis]) - 1);
        }
        at[v->rank - 1 - d] = tk_ll_add(e, v->start[d], tk_emit_i32(e, more));
    }
}

static void copy_piece(const out *s, const tk_emit_view *v, uint32_t piece) {
    tk_emit *e = s->e;
    const tk_boxes *b = &s->p.boxes;
    const uint32_t n = b->n / s->p.pieces, map = tk_map_find(&e->maps, &b->map);
    TK_CHECK(e->arena, map < e->maps.n && n > 0);
    tk_emit_cond first = tk_emit_if(e, tk_ll_is(e, e->warp, 0));
    LLVMValueRef one = tk_emit_elected(e);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef at[TK_MAP_RANK];
        corner(s, v, piece * n + i, at);
        const uint32_t from = (piece % s->p.slots * s->p.elems + i * b->elems) * s->p.size;
        tk_emit_tensor_write_by(e, one, tk_ll_add(e, s->base, tk_emit_i32(e, from)), e->map[map],
                                b->map.rank, at);
    }
    tk_emit_bulk_commit(e);
    tk_emit_end(e, &first);
}

// Before the piece is written: what lay in its place has been read, and what was stored of the
// tensor before has been written. Then all may write.
static void wait_for_place(const out *s, uint32_t piece) {
    tk_emit *e = s->e;
    const bool again = piece == 0 && tk_out_again(e->f, s->op);
    const bool over = piece >= s->p.slots || (piece == 0 && tk_op_in_loop(s->op));
    if (!again && !over) {
        return;
    }
    tk_emit_cond first = tk_emit_if(e, tk_ll_is(e, e->warp, 0));
    if (again) {
        tk_emit_bulk_wait_all(e);
    } else {
        tk_emit_bulk_wait_read(e, s->p.slots - 1);
    }
    tk_emit_end(e, &first);
    if (over) {
        tk_emit_barrier(e);
    }
}

void tk_emit_store_tensor(tk_emit *e, const tk_op *op) {
    const tk_type *t = tk_view_type(e->f, op);
    out s = {.e = e, .op = op, .p = tk_out_plan_of(e->f, op), .t = t->dtype};
    (void)tk_emit_scratch(e, op);
    s.x = tk_emit_get(e, tk_view_value(e->f, op));
    s.base = LLVMBuildPtrToInt(e->b, tk_emit_shared_at(e, op, 0, NULL), tk_ll_int(e, 32), "");
    const tk_emit_view v = tk_emit_view_make(e, op, t, tk_emit_layout(e, tk_view_value(e->f, op)));
    find_thread(&s);
    for (uint32_t piece = 0; piece < s.p.pieces; piece++) {
        wait_for_place(&s, piece);
        write_piece(&s, piece);
        tk_emit_async_fence(e);
        tk_emit_barrier(e);
        copy_piece(&s, &v, piece);
    }
}

static void find_store(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || tk_is_copied_out(op);
}

void tk_emit_stores_end(tk_emit *e) {
    bool found = false;
    tk_func_walk((tk_func *)(uintptr_t)e->f, find_store, &found); // changes nothing
    if (found) {
        tk_emit_cond first = tk_emit_if(e, tk_ll_is(e, e->warp, 0));
        tk_emit_bulk_wait_read(e, 0);
        tk_emit_end(e, &first);
    }
}
