// SPDX-License-Identifier: Apache-2.0
//
// The second walk of planning: gives storage to values and makes the steps of every op.
//
// Storage is handed out from a list of holes and returned after the op that needs it last (found by
// exec_live.c). Constants, scalars and the table of iota keep theirs: what a frame is made with
// must outlive a program.
#include "ir/exec_internal.h"

#include <string.h>

enum { ALIGN = 64 };

// ---- Storage ------------------------------------------------------------------------------------

static size_t round_up(size_t n) { return (n + (ALIGN - 1)) & ~(size_t)(ALIGN - 1); }

size_t tk_plan_own(tk_planner *p, size_t bytes) {
    const size_t off = p->top;
    p->top += round_up(bytes);
    if (p->top > p->limit && !p->too_large) {
        p->too_large = p->op;
    }
    return off;
}

static size_t take(tk_planner *p, size_t bytes) {
    const size_t need = round_up(bytes > 0 ? bytes : 1);
    tk_hole *best = NULL;
    for (uint32_t i = 0; i < p->hole.n; i++) {
        tk_hole *h = &p->hole.at[i];
        if (h->size >= need && (!best || h->size < best->size)) {
            best = h;
        }
    }
    if (!best) {
        return tk_plan_own(p, need);
    }
    const size_t off = best->off;
    best->off += need;
    best->size -= need;
    return off;
}

static void give(tk_planner *p, size_t off, size_t bytes) {
    const size_t size = round_up(bytes > 0 ? bytes : 1);
    tk_hole *empty = NULL;
    tk_hole *into = NULL;
    for (uint32_t i = 0; i < p->hole.n && !into; i++) {
        tk_hole *h = &p->hole.at[i];
        if (h->size == 0) {
            empty = h;
        } else if (h->off + h->size == off) {
            h->size += size;
            into = h;
        } else if (off + size == h->off) {
            h->off = off;
            h->size += size;
            into = h;
        }
    }
    if (!into) {
        const tk_hole h = {off, size};
        if (empty) {
            *empty = h;
        } else {
            tk_vec_push(p->arena, &p->hole, h);
        }
        return;
    }
    // It may have closed the gap to another hole.
    for (uint32_t i = 0; i < p->hole.n; i++) {
        tk_hole *h = &p->hole.at[i];
        if (h != into && h->size > 0 && h->off + h->size == into->off) {
            h->size += into->size;
            into->size = 0;
            into = h;
        } else if (h != into && h->size > 0 && into->off + into->size == h->off) {
            into->size += h->size;
            h->size = 0;
        }
    }
}

static size_t take_slot(tk_planner *p) {
    enum { SLOTS = 32 };
    if (p->slots == p->slot_end) {
        p->slots = tk_plan_own(p, SLOTS * sizeof(uint64_t));
        p->slot_end = p->slots + SLOTS * sizeof(uint64_t);
    }
    const size_t off = p->slots;
    p->slots += sizeof(uint64_t);
    return off;
}

size_t tk_plan_temp(tk_planner *p, size_t bytes) {
    const tk_hole t = {take(p, bytes), bytes};
    tk_vec_push(p->arena, &p->temp, t);
    return t.off;
}

tk_place tk_plan_dense(tk_planner *p, tk_place x) {
    if (tk_place_is_dense(&x)) {
        return x;
    }
    tk_place r = tk_place_of(x.dtype, x.rank, x.dim);
    r.off = tk_plan_temp(p, (size_t)tk_place_elems(&x) * x.size);
    tk_plan_copy(p, r, x);
    return r;
}

// ---- Values -------------------------------------------------------------------------------------

tk_place tk_plan_place(const tk_planner *p, tk_vid v) {
    tk_place x = p->val[v].place;
    x.off = (size_t)((int64_t)p->val[p->val[v].root].place.off + p->val[v].delta);
    return x;
}

tk_vid tk_plan_storage(const tk_planner *p, tk_vid v) {
    v = p->val[v].root;
    while (p->val[v].onto) {
        v = p->val[v].onto;
    }
    return v;
}

uint32_t tk_plan_param(const tk_planner *p, tk_vid v) { return p->func->value.at[v].index; }

static bool may_overwrite(const tk_op *op) {
    return tk_op_info(op->code)->elementwise || op->code == TK_OP_CAST;
}

// An operand that ends at this element-wise op and whose storage its result can take over; or 0.
static tk_vid operand_to_take(const tk_planner *p, const tk_pval *result) {
    const tk_op *op = p->op;
    tk_vid found = 0;
    for (uint32_t i = 0; i < op->nopnd && may_overwrite(op) && !found; i++) {
        const tk_pval *v = &p->val[op->opnd[i]];
        const tk_pval *r = &p->val[v->root];
        if (r->has && r->bytes > 0 && !r->fixed && !r->onto && !r->taken &&
            r->last == p->number + 1 && r->depth == p->depth &&
            v->place.size == result->place.size && r->lane == result->lane &&
            r->bytes == result->place.size * (size_t)tk_place_elems(&result->place)) {
            found = v->root;
        }
    }
    // Every operand there must be read in the order in which the result is written.
    for (uint32_t i = 0; i < op->nopnd && found; i++) {
        const tk_pval *v = &p->val[op->opnd[i]];
        if (v->root == found && (v->delta != 0 || !tk_place_is_dense(&v->place))) {
            return 0;
        }
    }
    return found;
}

void tk_plan_store(tk_planner *p, tk_vid v) {
    tk_pval *x = &p->val[v];
    if (x->root != v || x->has) {
        return;
    }
    x->has = 1;
    const size_t bytes = (size_t)tk_place_elems(&x->place) * x->place.size;
    if (x->onto) {
        x->place.off = p->val[x->onto].place.off;
        return;
    }
    if (x->place.rank == 0) {
        x->place.off = take_slot(p);
        return;
    }
    x->bytes = bytes;
    const tk_vid from = operand_to_take(p, x);
    if (from) {
        p->val[from].taken = 1;
        x->place.off = p->val[from].place.off;
        return;
    }
    x->place.off = take(p, bytes);
}

void *tk_plan_step(tk_planner *p, size_t size, tk_exec_code (*run)(const tk_step *, tk_run *)) {
    tk_step *s = tk_alloc(p->arena, size);
    s->run = run;
    s->loc = p->op ? p->op->loc : 0;
    tk_vec_push(p->arena, p->out, s);
    return s;
}

// ---- Ops ----------------------------------------------------------------------------------------

static void emit_const(tk_planner *p) {
    const tk_init init = {take_slot(p), p->op->at.value};
    tk_pval *x = &p->val[p->op->res[0]];
    x->has = 1;
    x->place.off = init.off;
    tk_vec_push(p->arena, &p->plan->init, init);
}

static void emit_iota(tk_planner *p) {
    tk_pval *x = &p->val[p->op->res[0]];
    x->has = 1;
    x->place.off = p->plan->iota;
}

static void emit_control(tk_planner *p, const tk_op *op) {
    if (op->code == TK_OP_IF) {
        tk_exec_emit_if(p);
    } else if (op->code == TK_OP_FOR) {
        tk_exec_emit_for(p);
    } else {
        tk_exec_emit_while(p);
    }
}

#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:

// clang-format off
static void emit_op(tk_planner *p, const tk_op *op) {
    switch (op->code) {
#include "ir/ops.def"
        tk_exec_emit_elem(p); return;
    case TK_OP_CONST: emit_const(p); return;
    case TK_OP_IOTA: emit_iota(p); return;
    case TK_OP_RESHAPE: tk_exec_emit_reshape(p); return;
    case TK_OP_CONCAT: tk_exec_emit_concat(p); return;
    case TK_OP_INTERLEAVE: tk_exec_emit_interleave(p); return;
    case TK_OP_EMPTY: tk_exec_emit_empty(p); return;
    case TK_OP_INSERT: tk_exec_emit_insert(p); return;
    case TK_OP_EXTRACT: tk_exec_emit_extract(p); return;
    case TK_OP_GATHER: tk_exec_emit_gather(p); return;
    case TK_OP_CAST: tk_exec_emit_cast(p); return;
    case TK_OP_BITCAST: tk_exec_emit_bitcast(p); return;
    case TK_OP_REDUCE: tk_exec_emit_reduce(p); return;
    case TK_OP_ARG_REDUCE: tk_exec_emit_arg_reduce(p); return;
    case TK_OP_REDUCE_FN: tk_exec_emit_reduce_fn(p); return;
    case TK_OP_SCAN: tk_exec_emit_scan(p); return;
    case TK_OP_SCAN_FN: tk_exec_emit_scan_fn(p); return;
    case TK_OP_SORT: tk_exec_emit_sort(p); return;
    case TK_OP_TOPK: tk_exec_emit_topk(p); return;
    case TK_OP_HISTOGRAM: tk_exec_emit_histogram(p); return;
    case TK_OP_DOT: tk_exec_emit_dot(p); return;
    case TK_OP_DOT_SCALED: tk_exec_emit_dot_scaled(p); return;
    case TK_OP_PHILOX: tk_exec_emit_philox(p); return;
    case TK_OP_DIM: tk_exec_emit_dim(p); return;
    case TK_OP_LOAD: tk_exec_emit_load(p); return;
    case TK_OP_STORE: tk_exec_emit_store(p); return;
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS: tk_exec_emit_atomic(p); return;
    case TK_OP_RING: tk_exec_emit_ring(p); return;
    case TK_OP_FETCH: tk_exec_emit_fetch(p); return;
    case TK_OP_TAKE: tk_exec_emit_take(p); return;
    case TK_OP_RELEASE: tk_exec_emit_release(p); return;
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS: tk_exec_emit_program(p); return;
    case TK_OP_ASSERT:
    case TK_OP_ASSUME: tk_exec_emit_assert(p); return;
    case TK_OP_PRINT: tk_exec_emit_print(p); return;
    case TK_OP_PARTITION: tk_exec_emit_partition(p); return;
    case TK_OP_PROGRAMS: tk_plan_region(p, op->reg[0]); return; // for this one
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE: emit_control(p, op); return;
    case TK_OP_BROADCAST:
    case TK_OP_PERMUTE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_WAIT:
    case TK_OP_CONVERT: return; // aliases
    case TK_OP_YIELD: tk_exec_emit_yield(p); return;
    case TK_OP_BARRIER:
    case TK_OP_RETURN: return;
    case TK_OP_CALL:
    case TK_OP_COUNT: break;
    }
    TK_ICE(p->arena, "op '%s' in a plan", tk_op_info(op->code)->name);
}
// clang-format on

static void end_op(tk_planner *p, uint32_t mark) {
    while (p->temp.n > mark) {
        p->temp.n--;
        give(p, p->temp.at[p->temp.n].off, p->temp.at[p->temp.n].size);
    }
    p->number++;
    for (tk_vid v = p->ending[p->number]; v; v = p->val[v].next) {
        const tk_pval *x = &p->val[v];
        if (x->has && !x->taken && !x->onto && x->bytes > 0) {
            give(p, x->place.off, x->bytes);
        }
    }
}

static void plan_op(tk_planner *p, const tk_op *op) {
    const tk_op *before = p->op;
    const uint32_t mark = p->temp.n;
    p->op = op;
    const bool stores = op->code != TK_OP_CONST && op->code != TK_OP_IOTA && op->code != TK_OP_RING;
    for (uint32_t i = 0; i < op->nres && stores; i++) {
        tk_plan_store(p, op->res[i]);
    }
    emit_op(p, op);
    end_op(p, mark);
    p->op = before;
}

void tk_plan_region(tk_planner *p, const tk_region *region) {
    p->depth++;
    for (const tk_op *op = region->first; op; op = op->next) {
        plan_op(p, op);
    }
    p->depth--;
}

// ---- The plan -----------------------------------------------------------------------------------

static void list_endings(tk_planner *p, uint32_t ops) {
    p->ending = TK_NEW_ARRAY(p->arena, tk_vid, ops + 1);
    for (tk_vid v = 1; v < p->func->value.n; v++) {
        tk_pval *x = &p->val[v];
        if (x->root == v) {
            x->next = p->ending[x->last];
            p->ending[x->last] = v;
        }
    }
}

static void find_iota(void *user, tk_op *op) {
    tk_planner *p = user;
    if (op->code == TK_OP_IOTA) {
        const int64_t n = tk_plan_type(p, op->res[0])->dim[0];
        p->plan->niota = n > p->plan->niota ? n : p->plan->niota;
        if (!p->op || n == p->plan->niota) {
            p->op = op; // the one to name should it be too large
        }
    }
}

static void plan_kernel(tk_planner *p) {
    tk_plan *plan = p->plan;
    const tk_func *f = p->func;
    p->val = TK_NEW_ARRAY(p->arena, tk_pval, f->value.n);
    list_endings(p, tk_plan_live(p));
    tk_func_walk((tk_func *)(uintptr_t)f, find_iota, p); // changes nothing
    if (plan->niota > 0) {
        plan->iota = tk_plan_own(p, (size_t)plan->niota * sizeof(int32_t));
    }
    p->op = NULL;
    plan->slot = TK_NEW_ARRAY(p->arena, size_t, f->params.n);
    for (uint32_t i = 0; i < f->params.n; i++) {
        tk_plan_store(p, f->params.at[i]);
        plan->slot[i] = p->val[f->params.at[i]].place.off;
    }
    if (f->grid) {
        p->out = &plan->grid;
        tk_plan_region(p, f->grid);
        for (uint32_t i = 0; i < f->grid->last->nopnd; i++) {
            tk_vec_push(p->arena, &plan->counts, tk_plan_place(p, f->grid->last->opnd[i]));
        }
    }
    p->out = &plan->body;
    tk_plan_region(p, f->body);
    plan->frame = round_up(p->top + 1);
}

static const tk_func *find_kernel(const tk_module *m) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->is_kernel) {
            return m->funcs.at[i];
        }
    }
    return NULL;
}

tk_plan *tk_plan_make(tk_arena *arena, const tk_module *m, tk_diags *diags, size_t max_frame) {
    tk_planner p = {.arena = arena, .diags = diags, .limit = max_frame};
    p.func = find_kernel(m);
    TK_CHECK(arena, p.func != NULL);
    p.plan = TK_NEW(arena, tk_plan);
    p.plan->module = m;
    p.plan->func = p.func;
    plan_kernel(&p);
    if (p.plan->frame > max_frame) {
        const tk_op *op = p.too_large;
        const tk_span none = {0, 0, 0};
        const tk_span at = m->locs.at[op ? op->loc : p.func->loc].span;
        (void)tk_error(
            diags, op ? at : none, "frame-too-large",
            "the tiles of kernel '%s' need %zu bytes a program on the CPU, more than the "
            "limit of %zu; '%s' is the operation that passes it",
            p.func->name, p.plan->frame, max_frame, op ? tk_op_info(op->code)->name : "kernel");
        return NULL;
    }
    return p.plan;
}

size_t tk_plan_frame_size(const tk_plan *p) { return p->frame; }

uint32_t tk_plan_grid_axes(const tk_plan *p) { return p->counts.n; }
