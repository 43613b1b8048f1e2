// SPDX-License-Identifier: Apache-2.0
// Loads and stores that go through shared memory row by row. See lower/stage.h.
#include "lower/stage.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

enum { PIECE = TK_STAGE_PIECE, GROUP = TK_STAGE_GROUP };

typedef struct stage {
    tk_emit *e;
    const tk_op *op;
    tk_stage_plan plan;
    tk_emit_view v;
    unsigned size;       // bytes of an element
    LLVMValueRef inside; // i32: elements of a row that are inside the tensor, from the first on
    LLVMValueRef rows;   // i32: rows that are inside, from the first on
    LLVMValueRef bytes;  // i32: of what is inside of a row
    LLVMValueRef first;  // where the first row begins, in global memory
    LLVMValueRef step;   // i64: bytes from row to row there
    LLVMValueRef skew, pitch; // i32
    LLVMValueRef touch;       // i1: the rows touch, or there is one
    LLVMValueRef together;    // i32: bytes of all, where they do
    LLVMValueRef bar;         // of a load by bulk copies; NULL: by others
} stage;

static LLVMValueRef two(tk_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef arg[2] = {a, b};
    return tk_emit_intrinsic(e, name, LLVMTypeOf(a), 2, arg);
}

static LLVMValueRef least(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return two(e, "llvm.smin.i32", a, b);
}

// x, but at least 0 and at most n.
static LLVMValueRef within(tk_emit *e, LLVMValueRef x, int64_t n) {
    return two(e, "llvm.smax.i32", least(e, x, tk_emit_i32(e, n)), tk_emit_i32(e, 0));
}

// ---- Where things are ---------------------------------------------------------------------------

// The index of the first row.
static LLVMValueRef first_row(const stage *s, uint32_t d) {
    tk_emit *e = s->e;
    if (!s->v.reg_of[d]) {
        return s->v.start[d];
    }
    const tk_dtype t = tk_value_type(e->f, s->v.at[d])->dtype;
    LLVMValueRef x = tk_emit_get(e, s->v.at[d])[s->v.reg_of[d][0]];
    x = tk_ll_resize(e, x, 32, tk_dtype_is_signed(t));
    return tk_ll_sub(e, x, tk_emit_coord(e, s->v.l, 0, s->plan.row_axis));
}

// Of a tile along the rows: its first element. Or a scalar.
static LLVMValueRef first_of(const stage *s, tk_vid v) {
    tk_emit *e = s->e;
    const tk_layout *l = tk_emit_layout(e, v);
    const tk_type *t = tk_value_type(e->f, v);
    LLVMValueRef x = tk_emit_get(e, v)[0];
    for (unsigned i = 0; i < t->rank; i++) {
        x = t->dim[i] > 1 ? tk_ll_sub(e, x, tk_emit_coord(e, l, 0, i)) : x;
    }
    return x;
}

static void count_rows(stage *s) {
    tk_emit *e = s->e;
    LLVMValueRef n = tk_emit_i32(e, s->plan.rows);
    for (uint32_t d = 0; d + 1 < s->v.rank; d++) {
        LLVMValueRef size = e->tensor[s->v.param].dim[d];
        if ((int)d == s->plan.row) {
            n = s->v.plan.high[d] ? least(e, n, tk_ll_sub(e, size, first_row(s, d))) : n;
        } else if (s->v.plan.high[d]) {
            LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, s->v.start[d], size);
            n = tk_ll_sel(e, in, n, tk_emit_i32(e, 0));
        }
    }
    for (uint32_t i = 0; i < s->plan.nbound; i++) {
        const tk_stage_bound *b = &s->plan.bound[i];
        const LLVMValueRef y = tk_emit_get(e, b->y)[0];
        n = least(e, n, tk_ll_sub(e, y, first_of(s, b->x)));
    }
    s->rows = within(e, n, s->plan.rows);
}

static void place(stage *s) {
    tk_emit *e = s->e;
    const tk_tensor_args *t = &e->tensor[s->v.param];
    const uint32_t last = s->v.rank - 1;
    LLVMValueRef at = tk_ll_resize(e, s->v.start[last], 64, true);
    s->step = tk_emit_i64(e, 0);
    for (uint32_t d = 0; d < last; d++) {
        LLVMValueRef i = (int)d == s->plan.row ? first_row(s, d) : s->v.start[d];
        at = tk_ll_add(e, at, tk_ll_mul(e, tk_ll_resize(e, i, 64, true), t->stride[d]));
        s->step =
            (int)d == s->plan.row ? tk_ll_mul(e, t->stride[d], tk_emit_i64(e, s->size)) : s->step;
    }
    s->first = LLVMBuildGEP2(e->b, tk_emit_mem_type(e, s->v.dtype), t->base, &at, 1, "");
    LLVMValueRef low = LLVMBuildPtrToInt(e->b, s->first, tk_ll_int(e, 64), "");
    s->skew = tk_ll_mask(e, tk_ll_resize(e, low, 32, false), PIECE - 1);
    LLVMValueRef more = tk_ll_sub(e, tk_ll_resize(e, s->step, 32, false), s->bytes);
    s->pitch = tk_ll_add(e, s->bytes, tk_ll_mask(e, more, PIECE - 1));
    LLVMValueRef one_row = tk_ll_icmp(e, LLVMIntSLE, s->rows, tk_emit_i32(e, 1));
    s->touch = tk_ll_icmp(e, LLVMIntEQ, s->step, tk_ll_resize(e, s->bytes, 64, true));
    s->touch = LLVMBuildOr(e->b, s->touch, one_row, "");
    s->together = tk_ll_mul(e, s->rows, s->bytes);
}

static stage stage_of(tk_emit *e, const tk_op *op) {
    stage s = {.e = e, .op = op, .plan = tk_stage_plan_of(e->axis, op)};
    TK_CHECK(e->arena, !s.plan.why && s.plan.rows == op->at.staged);
    (void)tk_emit_scratch(e, op); // what it has of shared memory is its own from here on
    const tk_type *t = tk_view_type(e->f, op);
    s.v = tk_emit_view_make(e, op, t, tk_emit_layout(e, tk_view_value(e->f, op)));
    s.size = (unsigned)tk_dtype_size(t->dtype);
    const uint32_t last = s.v.rank - 1;
    LLVMValueRef room = tk_ll_sub(e, e->tensor[s.v.param].dim[last], s.v.start[last]);
    s.inside = s.v.plan.high[last] ? within(e, room, s.plan.limit) : tk_emit_i32(e, s.plan.limit);
    s.bytes = tk_ll_mul(e, s.inside, tk_emit_i32(e, s.size));
    count_rows(&s);
    place(&s);
    return s;
}

// ---- Runs ---------------------------------------------------------------------------------------

typedef struct run {
    LLVMValueRef global, shared; // where it begins
    LLVMValueRef head, tail;     // bytes at its ends; multiples of the element's size
    LLVMValueRef pieces;         // of 16 bytes between them
} run;

static LLVMValueRef ahead(tk_emit *e, LLVMValueRef p, LLVMValueRef bytes) {
    return LLVMBuildGEP2(e->b, tk_ll_int(e, 8), p, &bytes, 1, "");
}

static run run_of(const stage *s, LLVMValueRef i, LLVMValueRef bytes) {
    tk_emit *e = s->e;
    LLVMValueRef at = tk_ll_add(e, s->skew, tk_ll_mul(e, i, s->pitch));
    run r = {.shared = tk_emit_shared_at(e, s->op, 0, at)};
    r.global = ahead(e, s->first, tk_ll_mul(e, tk_ll_resize(e, i, 64, true), s->step));
    LLVMValueRef to_piece = tk_ll_mask(e, tk_ll_sub(e, tk_emit_i32(e, PIECE), at), PIECE - 1);
    r.head = least(e, to_piece, bytes);
    LLVMValueRef rest = tk_ll_sub(e, bytes, r.head);
    r.pieces = tk_ll_shr(e, rest, 4);
    r.tail = tk_ll_mask(e, rest, PIECE - 1);
    return r;
}

// How a run is copied: by one thread as a whole, or piece by piece by all of its team; and its
// ends.
typedef struct copier {
    void (*bulk)(const stage *s, LLVMValueRef global, LLVMValueRef shared, LLVMValueRef bytes);
    void (*some)(const stage *s, LLVMValueRef global, LLVMValueRef shared, unsigned bytes);
} copier;

static LLVMValueRef address(tk_emit *e, LLVMValueRef p) {
    return LLVMBuildPtrToInt(e->b, p, tk_ll_int(e, 32), "");
}

static void copy_whole(const stage *s, const run *r, LLVMValueRef member, const copier *copy) {
    tk_emit *e = s->e;
    LLVMValueRef some = tk_ll_icmp(e, LLVMIntSGT, r->pieces, tk_emit_i32(e, 0));
    tk_emit_cond c = tk_emit_if(e, LLVMBuildAnd(e->b, tk_ll_is(e, member, 0), some, ""));
    copy->bulk(s, ahead(e, r->global, r->head), address(e, ahead(e, r->shared, r->head)),
               tk_ll_shl(e, r->pieces, 4));
    tk_emit_end(e, &c);
}

static void copy_pieces(const stage *s, const run *r, LLVMValueRef member, LLVMValueRef log_team,
                        const copier *copy) {
    tk_emit *e = s->e;
    if (copy->bulk) {
        copy_whole(s, r, member, copy);
        return;
    }
    LLVMValueRef team = LLVMBuildShl(e->b, tk_emit_i32(e, 1), log_team, "");
    LLVMValueRef left = tk_ll_sub(e, r->pieces, member); // of these each `team`th is the member's
    left = tk_ll_add(e, left, tk_ll_sub(e, team, tk_emit_i32(e, 1)));
    LLVMValueRef n = LLVMBuildAShr(e->b, left, log_team, "");
    tk_emit_loop loop = tk_emit_for(e, n);
    LLVMValueRef i = tk_ll_add(e, member, LLVMBuildShl(e->b, loop.i, log_team, ""));
    LLVMValueRef at = tk_ll_add(e, r->head, tk_ll_shl(e, i, 4));
    copy->some(s, ahead(e, r->global, at), ahead(e, r->shared, at), PIECE);
    tk_emit_for_end_short(e, &loop);
}

// Each end is shorter than 16 bytes, so there are members enough for both.
static void copy_ends(const stage *s, const run *r, LLVMValueRef member, const copier *copy) {
    tk_emit *e = s->e;
    LLVMValueRef mine = tk_ll_mul(e, member, tk_emit_i32(e, s->size));
    LLVMValueRef in_head = tk_ll_icmp(e, LLVMIntULT, mine, r->head);
    LLVMValueRef any = tk_ll_icmp(e, LLVMIntULT, mine, tk_ll_add(e, r->head, r->tail));
    tk_emit_cond c = tk_emit_if(e, any);
    LLVMValueRef behind = tk_ll_add(e, mine, tk_ll_shl(e, r->pieces, 4));
    LLVMValueRef at = tk_ll_sel(e, in_head, mine, behind);
    copy->some(s, ahead(e, r->global, at), ahead(e, r->shared, at), s->size);
    tk_emit_end(e, &c);
}

// Which runs a thread takes part in: `n` from `first` on, `1 << log_teams` apart, as `member` of a
// team of `1 << log_team`.
typedef struct share {
    LLVMValueRef bytes, n, first, log_teams, member, log_team;
} share;

// Where one thread copies a run, teams are warps: one run is the first warp's, and the others have
// nothing to do.
static share share_of(const stage *s, bool bulk) {
    tk_emit *e = s->e;
    const unsigned log_warps = (unsigned)__builtin_ctz(e->warps);
    LLVMValueRef zero = tk_emit_i32(e, 0), one = tk_emit_i32(e, 1), all = s->touch;
    share x = {.first = e->warp, .member = e->lane};
    x.bytes = tk_ll_sel(e, all, s->together, s->bytes);
    x.n = tk_ll_sel(e, all, least(e, s->rows, one), s->rows);
    x.log_team = tk_emit_i32(e, 5);
    x.log_teams = tk_emit_i32(e, log_warps);
    if (!bulk) {
        x.first = tk_ll_sel(e, all, zero, x.first);
        x.member = tk_ll_sel(e, all, e->tid, x.member);
        x.log_team = tk_ll_sel(e, all, tk_emit_i32(e, 5 + log_warps), x.log_team);
        x.log_teams = tk_ll_sel(e, all, zero, x.log_teams);
    }
    return x;
}

// All rows that are inside, by all threads of the program.
static void copy_rows(const stage *s, const copier *copy) {
    tk_emit *e = s->e;
    const share x = share_of(s, copy->bulk != NULL);
    LLVMValueRef one = tk_emit_i32(e, 1), teams = LLVMBuildShl(e->b, one, x.log_teams, "");
    LLVMValueRef left = tk_ll_add(e, tk_ll_sub(e, x.n, x.first), tk_ll_sub(e, teams, one));
    tk_emit_loop loop = tk_emit_for(e, LLVMBuildAShr(e->b, left, x.log_teams, ""));
    LLVMValueRef i = tk_ll_add(e, x.first, LLVMBuildShl(e->b, loop.i, x.log_teams, ""));
    run r = run_of(s, i, x.bytes);
    copy_pieces(s, &r, x.member, x.log_team, copy);
    copy_ends(s, &r, x.member, copy);
    if (!copy->bulk && s->plan.rows > 1) { // a warp goes on to its next row as one
        tk_emit_warp_sync(e);
    }
    tk_emit_for_end_short(e, &loop);
}

// ---- Elements -----------------------------------------------------------------------------------

// Row `row` of the tile: where it begins in shared memory, as an i32, and how many elements of it
// are inside the tensor.
static void find_row(const stage *s, LLVMValueRef row, LLVMValueRef *at, LLVMValueRef *n) {
    tk_emit *e = s->e;
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntSLT, row, s->rows);
    *n = tk_ll_sel(e, in, s->inside, tk_emit_i32(e, 0));
    LLVMValueRef skew = tk_ll_add(e, s->skew, tk_ll_mul(e, row, s->pitch));
    LLVMValueRef start = tk_emit_shared_at(e, s->op, 0, NULL);
    *at = tk_ll_add(e, LLVMBuildPtrToInt(e->b, start, tk_ll_int(e, 32), ""), skew);
}

// An element of a thread: where it is in shared memory, and where it is inside the tensor.
typedef struct spot {
    tk_emit_place at;
    LLVMValueRef room; // i32: it is inside where `column` is below this
    uint32_t column;   // the part of the register alone
} spot;

static spot spot_of(const stage *s, uint32_t r, uint32_t constant) {
    tk_emit *e = s->e;
    const tk_layout *l = s->v.l;
    LLVMValueRef row = tk_emit_i32(e, 0), at, n;
    row = s->plan.rows > 1 ? tk_emit_coord(e, l, r, s->plan.row_axis) : row;
    find_row(s, row, &at, &n);
    const tk_emit_coord_parts p = tk_emit_coord_of(e, l, r, s->plan.axis);
    LLVMValueRef column = p.disjoint ? p.thread : tk_emit_coord(e, l, r, s->plan.axis);
    spot x = {.room = tk_ll_sub(e, n, column), .column = constant};
    at = tk_ll_add(e, at, tk_ll_mul(e, column, tk_emit_i32(e, s->size)));
    x.at = (tk_emit_place){at, (int64_t)x.column * s->size};
    return x;
}

static LLVMValueRef is_inside(const stage *s, const spot *x, uint32_t column) {
    return tk_ll_icmp(s->e, LLVMIntSGT, x->room, tk_emit_i32(s->e, column));
}

static LLVMValueRef pointer_to(const stage *s, const spot *x) {
    tk_emit *e = s->e;
    LLVMValueRef at = tk_ll_add(e, x->at.at, tk_emit_i32(e, x->at.bytes));
    return LLVMBuildIntToPtr(e->b, at, LLVMTypeOf(e->shared), "");
}

typedef struct group {
    tk_stage_group of;
    spot x[GROUP];
} group;

static group group_of(const stage *s, uint32_t from) {
    group g = {.of = tk_stage_group_of(&s->plan, s->v.l, from)};
    for (uint32_t i = 0; i < g.of.n; i++) {
        g.x[i] = spot_of(s, from + i, g.of.column[i]);
        if (g.of.in_row) {
            g.x[i].room = g.x[0].room;
            g.x[i].at.at = g.x[0].at.at;
        }
    }
    return g;
}

// ---- Load ---------------------------------------------------------------------------------------

static void copy_in(const stage *s, LLVMValueRef global, LLVMValueRef shared, unsigned bytes) {
    tk_emit *e = s->e;
    if (bytes == PIECE) {
        LLVMValueRef arg[2] = {shared, global};
        tk_emit_intrinsic(e, "llvm.nvvm.cp.async.cg.shared.global.16",
                          LLVMVoidTypeInContext(e->ctx), 2, arg);
        return;
    }
    LLVMValueRef x = LLVMBuildLoad2(e->b, tk_emit_mem_type(e, s->v.dtype), global, "");
    LLVMSetAlignment(x, bytes);
    LLVMSetAlignment(LLVMBuildStore(e->b, x, shared), bytes);
}

static void bulk_read(const stage *s, LLVMValueRef global, LLVMValueRef shared,
                      LLVMValueRef bytes) {
    tk_emit_mbarrier_expect(s->e, s->bar, bytes);
    tk_emit_bulk_read(s->e, shared, global, bytes, s->bar);
}

static tk_emit_cond if_leader(tk_emit *e, LLVMValueRef number) {
    return tk_emit_if(e, tk_ll_is(e, number, 0));
}

// The first lane of each warp copies what its warp is to copy, and then arrives. What comes element
// by element, if any, is there once all threads have waited for each other.
static void bulk_in(stage *s) {
    tk_emit *e = s->e;
    const copier by_bulk = {.bulk = bulk_read, .some = copy_in};
    s->bar = tk_emit_mbarrier_new(e);
    tk_emit_cond c = if_leader(e, e->tid);
    tk_emit_mbarrier_init(e, s->bar, e->warps);
    tk_emit_end(e, &c);
    tk_emit_barrier(e);
    c = if_leader(e, e->lane);
    tk_emit_async_fence(e);
    tk_emit_end(e, &c);
    copy_rows(s, &by_bulk);
    c = if_leader(e, e->lane);
    tk_emit_mbarrier_arrive(e, s->bar);
    tk_emit_end(e, &c);
    LLVMValueRef cut = tk_ll_mask(e, tk_ll_or(e, s->skew, s->together), PIECE - 1);
    LLVMValueRef whole = LLVMBuildAnd(e->b, s->touch, tk_ll_is(e, cut, 0), "");
    c = tk_emit_if(e, LLVMBuildNot(e->b, whole, ""));
    tk_emit_barrier(e);
    tk_emit_end(e, &c);
    tk_emit_mbarrier_wait(e, s->bar);
}

typedef struct staged_load {
    const LLVMValueRef *mask, *other; // NULL: none
    LLVMTypeRef type;                 // in memory
    LLVMValueRef *out;
} staged_load;

static bool is_live(const group *g, uint32_t i) { return g->of.live >> i & 1; }

static void take_all(const stage *s, const group *g, const staged_load *l, LLVMValueRef *x) {
    for (uint32_t i = 0; i < g->of.n; i++) {
        if (is_live(g, i)) {
            x[i] = LLVMBuildLoad2(s->e->b, l->type, pointer_to(s, &g->x[i]), "");
            LLVMSetAlignment(x[i], s->size);
        }
    }
}

static LLVMValueRef outside(const stage *s, const staged_load *l, uint32_t r) {
    return l->other ? tk_emit_to_mem(s->e, s->v.dtype, l->other[r]) : LLVMConstNull(l->type);
}

static void take_inside(const stage *s, const group *g, const staged_load *l, LLVMValueRef *x) {
    tk_emit *e = s->e;
    for (uint32_t i = 0; i < g->of.n; i++) {
        const uint32_t r = g->of.from + i;
        LLVMValueRef other = outside(s, l, r);
        if (is_live(g, i)) {
            LLVMValueRef in = is_inside(s, &g->x[i], g->x[i].column);
            in = tk_emit_and(e, in, l->mask ? l->mask[r] : NULL);
            x[i] = tk_emit_guarded_read(e, in, g->x[i].at, l->type, s->size, other);
        }
    }
}

static void take_live(const stage *s, const group *g, const staged_load *l, LLVMValueRef *out) {
    tk_emit *e = s->e;
    LLVMValueRef x[2][GROUP];
    LLVMBasicBlockRef from[2];
    if (l->mask || !g->of.in_row) {
        take_inside(s, g, l, out);
        return;
    }
    tk_emit_cond c = tk_emit_if(e, is_inside(s, &g->x[0], g->of.last));
    take_all(s, g, l, x[0]);
    from[0] = LLVMGetInsertBlock(e->b);
    tk_emit_else(e, &c);
    take_inside(s, g, l, x[1]);
    from[1] = LLVMGetInsertBlock(e->b);
    tk_emit_end(e, &c);
    for (uint32_t i = 0; i < g->of.n; i++) {
        if (is_live(g, i)) {
            LLVMValueRef both[2] = {x[0][i], x[1][i]};
            out[i] = LLVMBuildPhi(e->b, l->type, "");
            LLVMAddIncoming(out[i], both, from, 2);
        }
    }
}

static void take(const stage *s, const group *g, const staged_load *l) {
    tk_emit *e = s->e;
    LLVMValueRef x[GROUP];
    if (g->of.live) {
        take_live(s, g, l, x);
    }
    for (uint32_t i = 0; i < g->of.n; i++) {
        const uint32_t r = g->of.from + i;
        x[i] = is_live(g, i) ? x[i] : outside(s, l, r);
        l->out[r] = tk_emit_from_mem(e, s->v.dtype, x[i]);
    }
}

void tk_emit_staged_load(tk_emit *e, const tk_op *op) {
    stage s = stage_of(e, op);
    uint32_t next = 1 + s.v.rank;
    staged_load l = {.type = tk_emit_mem_type(e, s.v.dtype)};
    l.mask = op->at.masked ? tk_emit_get(e, op->opnd[next++]) : NULL;
    l.mask = s.plan.bounded ? NULL : l.mask;
    l.other = op->at.other ? tk_emit_get(e, op->opnd[next]) : NULL;
    if (tk_stage_is_bulk(e->target, op)) {
        bulk_in(&s);
    } else {
        const copier by_pieces = {.some = copy_in};
        copy_rows(&s, &by_pieces);
        tk_emit_intrinsic(e, "llvm.nvvm.cp.async.wait.all", LLVMVoidTypeInContext(e->ctx), 0, NULL);
        tk_emit_barrier(e);
    }
    l.out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < 1U << s.v.l->regs; r += GROUP) {
        const group g = group_of(&s, r);
        take(&s, &g, &l);
    }
}

// ---- Store --------------------------------------------------------------------------------------

static void copy_out(const stage *s, LLVMValueRef global, LLVMValueRef shared, unsigned bytes) {
    tk_emit *e = s->e;
    LLVMTypeRef type =
        bytes == PIECE ? LLVMVectorType(tk_ll_int(e, 32), 4) : tk_emit_mem_type(e, s->v.dtype);
    LLVMValueRef x = LLVMBuildLoad2(e->b, type, shared, "");
    LLVMSetAlignment(x, bytes);
    LLVMSetAlignment(LLVMBuildStore(e->b, x, global), bytes);
}

static void put(const stage *s, const group *g, const LLVMValueRef *x) {
    tk_emit *e = s->e;
    if (!g->of.live) {
        return;
    }
    tk_emit_cond c = tk_emit_if(e, g->of.in_row ? is_inside(s, &g->x[0], g->of.last)
                                                : LLVMConstInt(tk_ll_int(e, 1), 0, 0));
    for (uint32_t i = 0; i < g->of.n && g->of.in_row; i++) {
        if (is_live(g, i)) {
            LLVMValueRef to = pointer_to(s, &g->x[i]);
            LLVMSetAlignment(LLVMBuildStore(e->b, x[i], to), s->size);
        }
    }
    tk_emit_else(e, &c);
    for (uint32_t i = 0; i < g->of.n; i++) {
        LLVMValueRef in = is_inside(s, &g->x[i], g->x[i].column);
        if (is_live(g, i)) {
            tk_emit_guarded_write(e, in, g->x[i].at, x[i], s->size);
        }
    }
    tk_emit_end(e, &c);
}

static void bulk_write(const stage *s, LLVMValueRef global, LLVMValueRef shared,
                       LLVMValueRef bytes) {
    tk_emit_bulk_write(s->e, global, shared, bytes);
}

void tk_emit_staged_store(tk_emit *e, const tk_op *op) {
    stage s = stage_of(e, op);
    const LLVMValueRef *x = tk_emit_get(e, op->opnd[1 + s.v.rank]);
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, s.v.l));
    for (uint32_t r = 0; r < 1U << s.v.l->regs; r += GROUP) {
        const group g = group_of(&s, r);
        LLVMValueRef word[GROUP];
        for (uint32_t i = 0; i < g.of.n; i++) {
            word[i] = tk_emit_to_mem(e, s.v.dtype, x[r + i]);
        }
        put(&s, &g, word);
    }
    tk_emit_end(e, &own);
    const bool bulk = tk_stage_is_bulk(e->target, op);
    const copier copy = {.bulk = bulk ? bulk_write : NULL, .some = copy_out};
    if (bulk) {
        tk_emit_async_fence(e);
    }
    tk_emit_barrier(e);
    copy_rows(&s, &copy);
    if (bulk) {
        tk_emit_cond c = if_leader(e, e->lane);
        tk_emit_bulk_wait(e);
        tk_emit_end(e, &c);
    }
}
