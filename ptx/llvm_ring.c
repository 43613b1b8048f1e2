// SPDX-License-Identifier: Apache-2.0
// Rings: their barriers and slots, copies by threads, and reading what is there.
#include "ptx/llvm_ring.h"

#include "lower/ring.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

#include "ir/move.h"

enum { BARRIER_BYTES = 8, SHARED = 3 };

// ---- Places -------------------------------------------------------------------------------------

tk_emit_ring *tk_emit_ring_of(const tk_emit *e, tk_vid v) {
    tk_emit_ring *r = e->rings;
    while (r && r->v != v) {
        r = r->next;
    }
    TK_CHECK(e->arena, r != NULL);
    return r;
}

static LLVMValueRef get(tk_emit *e, LLVMValueRef place) {
    return LLVMBuildLoad2(e->b, tk_ll_int(e, 32), place, "");
}

static LLVMValueRef place_new(tk_emit *e) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    tk_emit_before(e, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    LLVMValueRef at = LLVMBuildAlloca(e->b, tk_ll_int(e, 32), "ring");
    LLVMPositionBuilderAtEnd(e->b, here);
    LLVMBuildStore(e->b, tk_emit_i32(e, 0), at);
    return at;
}

static tk_ring_place begin(tk_emit *e) { return (tk_ring_place){place_new(e), place_new(e)}; }

LLVMValueRef tk_emit_ring_slot(tk_emit *e, const tk_emit_ring *r, const tk_ring_place *at) {
    return tk_ll_add(e, r->base, tk_ll_mul(e, get(e, at->slot), tk_emit_i32(e, r->bytes)));
}

LLVMValueRef tk_emit_ring_barrier(tk_emit *e, LLVMValueRef first, const tk_ring_place *at) {
    return tk_ll_add(e, first, tk_ll_mul(e, get(e, at->slot), tk_emit_i32(e, BARRIER_BYTES)));
}

void tk_emit_ring_advance(tk_emit *e, const tk_emit_ring *r, const tk_ring_place *at) {
    LLVMValueRef next = tk_ll_add(e, get(e, at->slot), tk_emit_i32(e, 1));
    LLVMValueRef over = tk_ll_is(e, next, r->slots);
    LLVMBuildStore(e->b, tk_ll_sel(e, over, tk_emit_i32(e, 0), next), at->slot);
    LLVMValueRef turn = tk_ll_resize(e, over, 32, false);
    LLVMBuildStore(e->b, tk_ll_xor(e, get(e, at->phase), turn), at->phase);
}

void tk_emit_ring_wait(tk_emit *e, LLVMValueRef barrier, const tk_ring_place *at, unsigned flip) {
    tk_emit_mbarrier_wait_parity(e, barrier, tk_ll_xor(e, get(e, at->phase), tk_emit_i32(e, flip)));
}

// ---- The ring -----------------------------------------------------------------------------------

// Arrivals at a full barrier: of the thread that begins tensor copies, of each warp that stores
// some of a tile, of each thread that copies.
static unsigned arrivals(const tk_emit *e, const tk_op *fetch) {
    switch (fetch ? fetch->at.how : TK_HOW_ASYNC) {
    case TK_HOW_TENSOR:
        return 1;
    case TK_HOW_REGISTERS:
        return tk_fetch_bringers(e->f, fetch);
    case TK_HOW_ASYNC:
    case TK_HOW_BEGIN:
        break;
    }
    return e->warps * 32;
}

// Barriers of all slots, full ones first.
static LLVMValueRef barriers(tk_emit *e, uint32_t slots) {
    LLVMTypeRef type = LLVMArrayType2(tk_ll_int(e, 64), 2ULL * slots);
    LLVMValueRef g = LLVMAddGlobalInAddressSpace(e->mod, type, "tk_ring", SHARED);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetInitializer(g, LLVMGetUndef(type));
    LLVMSetAlignment(g, BARRIER_BYTES);
    return LLVMBuildPtrToInt(e->b, g, tk_ll_int(e, 32), "");
}

bool tk_emit_rings_shared(const tk_func *f) {
    bool shared = false;
    for (const tk_op *op = f->body->first; op; op = op->next) {
        shared = shared || (op->code == TK_OP_RING && op->at.cluster > 1);
    }
    return shared;
}

static LLVMValueRef of_cluster(tk_emit *e, const char *name, LLVMTypeRef result) {
    return tk_emit_intrinsic(e, name, result, 0, NULL);
}

void tk_emit_cluster_barrier(tk_emit *e) {
    of_cluster(e, "llvm.nvvm.barrier.cluster.arrive", LLVMVoidTypeInContext(e->ctx));
    of_cluster(e, "llvm.nvvm.barrier.cluster.wait", LLVMVoidTypeInContext(e->ctx));
}

static void make(tk_emit *e, const tk_op *op) {
    const tk_op *fetch = tk_ring_fetch(e->f, op->res[0]); // all are of one kind
    tk_emit_ring *r = TK_NEW(e->arena, tk_emit_ring);
    r->next = e->rings;
    r->number = r->next ? r->next->number + 1 : 0;
    e->rings = r;
    r->v = op->res[0];
    r->op = op;
    r->slots = (uint32_t)op->at.slots;
    r->cluster = op->at.cluster > 1 ? (uint32_t)op->at.cluster : 1;
    r->rank = r->cluster > 1
                  ? of_cluster(e, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", tk_ll_int(e, 32))
                  : tk_emit_i32(e, 0);
    r->bytes = (uint32_t)tk_ring_slot_bytes(tk_value_type(e->f, r->v));
    (void)tk_emit_scratch(e, op);
    r->base = LLVMBuildPtrToInt(e->b, tk_emit_shared_at(e, op, 0, NULL), tk_ll_int(e, 32), "");
    r->full = barriers(e, r->slots);
    r->empty = tk_ll_add(e, r->full, tk_emit_i32(e, r->slots * BARRIER_BYTES));
    r->fetch = begin(e);
    r->take = begin(e);
    r->release = begin(e);
    tk_emit_new(e, op->res[0])[0] = r->base;
    tk_emit_cond one = tk_emit_if(e, tk_ll_is(e, e->tid, 0));
    for (uint32_t i = 0; i < e->maps.n && !r->next; i++) {
        tk_emit_map_prefetch(e, e->map[i]);
    }
    for (uint32_t i = 0; i < r->slots; i++) {
        LLVMValueRef at = tk_emit_i32(e, i * BARRIER_BYTES);
        tk_emit_mbarrier_init(e, tk_ll_add(e, r->full, at), arrivals(e, fetch));
        tk_emit_mbarrier_init(e, tk_ll_add(e, r->empty, at), e->warps * r->cluster);
    }
    if (r->cluster > 1) {
        of_cluster(e, "llvm.nvvm.fence.mbarrier_init.release.cluster",
                   LLVMVoidTypeInContext(e->ctx));
    }
    tk_emit_end(e, &one);
    // Neither barriers nor what was there before were written by copies.
    if (fetch && fetch->at.how == TK_HOW_TENSOR) {
        tk_emit_async_fence(e);
    }
    if (!tk_ring_shares_barrier(op)) {
        if (tk_emit_rings_shared(e->f)) {
            tk_emit_cluster_barrier(e);
        } else {
            tk_emit_barrier(e);
        }
    }
}

// ---- Copies by threads --------------------------------------------------------------------------

// Bytes of the vector at register r that are inside the tensor; NULL: all, always.
static LLVMValueRef bytes_inside(tk_emit *e, const tk_emit_view *v, uint32_t r, unsigned size) {
    const uint32_t n = v->plan.vec, last = v->rank - 1;
    const bool cut = n > 1 && !v->plan.whole && (v->plan.low[last] || v->plan.high[last]);
    LLVMValueRef in = tk_emit_view_inside(e, v, r, cut ? 1 : n, NULL);
    if (!in) {
        return NULL;
    }
    LLVMValueRef bytes = tk_emit_i32(e, n * size);
    if (cut) {
        LLVMValueRef at = tk_emit_coord(e, v->l, r, (unsigned)v->axis[last]);
        LLVMValueRef room = tk_ll_sub(e, e->tensor[v->param].dim[last], v->start[last]);
        LLVMValueRef arg[2] = {tk_ll_sub(e, room, at), tk_emit_i32(e, n)};
        room = tk_emit_intrinsic(e, "llvm.smin.i32", tk_ll_int(e, 32), 2, arg);
        bytes = tk_ll_mul(e, room, tk_emit_i32(e, size));
    }
    return tk_ll_sel(e, in, bytes, tk_emit_i32(e, 0));
}

static void fetch_async(tk_emit *e, const tk_op *op, const tk_emit_ring *r, LLVMValueRef slot) {
    const tk_type *t = tk_view_type(e->f, op);
    const unsigned size = (unsigned)tk_dtype_size(t->dtype);
    const tk_layout *l =
        tk_layout_new(e->arena, tk_fetch_layout(e->f, op, (unsigned)__builtin_ctz(e->warps)));
    const tk_layout places = tk_layout_places(l, tk_emit_layout(e, r->v));
    tk_emit_view v = tk_emit_view_make(e, op, t, l);
    TK_CHECK(e->arena, v.plan.vec * size >= TK_FETCH_LEAST && v.plan.aligned);
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, l));
    for (uint32_t i = 0; i < 1U << l->regs; i += v.plan.vec) {
        LLVMValueRef from = tk_emit_place_ptr(e, tk_emit_view_place(e, &v, i));
        LLVMValueRef to = tk_ll_mul(e, tk_emit_element(e, &places, i), tk_emit_i32(e, size));
        tk_emit_async_copy(e, tk_ll_add(e, slot, to), from, v.plan.vec * size,
                           bytes_inside(e, &v, i, size));
    }
    tk_emit_end(e, &own);
}

enum { GROUP = 4 }; // warps: registers are handed over by fours

static unsigned groups(const tk_emit *e) { return (e->producers + GROUP - 1) / GROUP; }

// Whether the code at hand is of warps that fill the ring: groups of four share them out.
static bool fills(const tk_emit *e, const tk_emit_ring *r) {
    return e->side != TK_SIDE_PRODUCER || r->number % groups(e) == e->group;
}

static void fetch(tk_emit *e, const tk_op *op) {
    tk_emit_ring *r = tk_emit_ring_of(e, op->opnd[op->nopnd - 1]);
    if (!fills(e, r)) {
        return;
    }
    switch (op->at.how) {
    case TK_HOW_TENSOR:
        tk_emit_fetch_tensor(e, op, r);
        break;
    case TK_HOW_REGISTERS:
        tk_emit_fetch_registers(e, op, r);
        break;
    case TK_HOW_BEGIN:
        tk_emit_fetch_begin(e, op, r);
        return;
    case TK_HOW_ASYNC:
        tk_emit_ring_wait(e, tk_emit_ring_barrier(e, r->empty, &r->fetch), &r->fetch, 1);
        fetch_async(e, op, r, tk_emit_ring_slot(e, r, &r->fetch));
        tk_emit_async_arrive(e, tk_emit_ring_barrier(e, r->full, &r->fetch));
        break;
    }
    tk_emit_ring_advance(e, r, &r->fetch);
}

// ---- Take, read, release ------------------------------------------------------------------------

static void take(tk_emit *e, const tk_op *op) {
    const tk_emit_ring *r = tk_emit_ring_of(e, op->opnd[0]);
    tk_emit_ring_wait(e, tk_emit_ring_barrier(e, r->full, &r->take), &r->take, 0);
    tk_emit_new(e, op->res[0])[0] = tk_emit_ring_slot(e, r, &r->take);
    tk_emit_ring_advance(e, r, &r->take);
}

// One lane arrives for its warp, when all of it are done; where blocks fill the ring together, one
// for each of them.
static void release(tk_emit *e, const tk_op *op) {
    const tk_emit_ring *r = tk_emit_ring_of(e, op->opnd[0]);
    tk_emit_warp_sync(e);
    LLVMValueRef empty = tk_emit_ring_barrier(e, r->empty, &r->release);
    if (r->cluster > 1) {
        LLVMValueRef n = tk_emit_i32(e, r->cluster);
        tk_emit_mbarrier_arrive_at(e, tk_ll_icmp(e, LLVMIntULT, e->lane, n), empty,
                                   tk_ll_and(e, e->lane, tk_emit_i32(e, r->cluster - 1)));
    } else {
        tk_emit_mbarrier_arrive_by(e, tk_ll_is(e, e->lane, 0), empty);
    }
    tk_emit_ring_advance(e, r, &r->release);
}

void tk_emit_read_shared(tk_emit *e, const tk_op *op) {
    const tk_layout *l = tk_emit_layout(e, op->res[0]);
    const tk_layout places = tk_layout_places(l, tk_emit_layout(e, op->opnd[0]));
    const tk_dtype t = tk_value_type(e->f, op->res[0])->dtype;
    const unsigned size = (unsigned)tk_dtype_size(t);
    const tk_run run = tk_run_of(&places, t);
    const uint32_t n = 1U << run.n;
    LLVMTypeRef one = tk_emit_mem_type(e, t), type = n > 1 ? LLVMVectorType(one, n) : one;
    LLVMValueRef base = tk_emit_get(e, op->opnd[0])[0], *out = tk_emit_new(e, op->res[0]);
    for (uint32_t r = 0; r < 1U << l->regs; r++) {
        if (r & run.mask) { // with another
            continue;
        }
        LLVMValueRef at = tk_ll_mul(e, tk_emit_element(e, &places, r), tk_emit_i32(e, size));
        at = LLVMBuildIntToPtr(e->b, tk_ll_add(e, base, at),
                               LLVMPointerTypeInContext(e->ctx, SHARED), "");
        LLVMValueRef v = LLVMBuildLoad2(e->b, type, at, "");
        LLVMSetAlignment(v, size * n);
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef y = n > 1 ? LLVMBuildExtractElement(e->b, v, tk_emit_i32(e, i), "") : v;
            out[r | tk_run_registers(&run, i)] = tk_emit_from_mem(e, t, y);
        }
    }
}

// ---- Partitions ---------------------------------------------------------------------------------

// Registers of a thread: at first all have what the launch gives them, then those that begin copies
// hand over what they do not need to those that multiply; those that load get what is left of what
// these need.
typedef struct shares {
    unsigned launch, producer, consumer; // 0: what there is at first stays
} shares;

static shares shares_of(const tk_emit *e, bool loads) {
    enum { REGISTERS = 64 << 10, MOST = 240, STEP = 8, ENOUGH = 255, FEW = 40, BESIDE = 40 };
    const unsigned warps = e->warps + e->producers, mask = ~(STEP - 1U);
    shares s = {.launch = REGISTERS / (warps * 32) & mask};
    if (!e->target->wgmma || s.launch >= ENOUGH || s.launch <= FEW) {
        return s;
    }
    const unsigned need = tk_sum_registers(e->f) + BESIDE;
    s.consumer = (s.launch * warps - FEW * e->producers) / e->warps & mask;
    s.consumer = loads && need < s.consumer ? (need + STEP - 1) & mask : s.consumer;
    s.consumer = s.consumer < MOST ? s.consumer : MOST;
    s.producer = loads ? (s.launch * warps - s.consumer * e->warps) / e->producers & mask : FEW;
    s.producer = s.producer < MOST ? s.producer : MOST;
    return s;
}

static void hand_over(tk_emit *e, const shares *s, unsigned get) {
    if (get == 0 || get == s->launch) {
        return;
    }
    LLVMValueRef n = tk_emit_i32(e, get);
    tk_emit_intrinsic(e,
                      get < s->launch ? "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"
                                      : "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32",
                      LLVMVoidTypeInContext(e->ctx), 1, &n);
}

static void find_registers(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || (op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS);
}

static bool by_registers(const tk_region *r) {
    bool found = false;
    for (tk_op *op = r->first; op; op = op->next) {
        tk_op_walk(op, find_registers, &found);
    }
    return found;
}

// The warps that fetch are a program of their own: its threads are counted from 0 on.
static void run_by_all(tk_emit *e, const tk_region *r) {
    const tk_emit was = *e;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    tk_emit_before(e, LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(e->fn)));
    e->warp = tk_ll_sub(e, was.warp, tk_emit_i32(e, was.warps));
    e->tid = tk_ll_sub(e, was.tid, tk_emit_i32(e, was.warps * 32));
    LLVMPositionBuilderAtEnd(e->b, here);
    e->warps = was.producers;
    e->coords = NULL;
    tk_emit_region(e, r);
    e->warp = was.warp;
    e->tid = was.tid;
    e->warps = was.warps;
    e->coords = was.coords;
}

static void partition(tk_emit *e, const tk_op *op) {
    const bool all = by_registers(op->reg[0]);
    const shares s = shares_of(e, all);
    // The number of the warp, in a way that shows that it is the same for all its lanes.
    LLVMValueRef arg[4] = {tk_emit_i32(e, -1), e->warp, tk_emit_i32(e, 0), tk_emit_i32(e, 31)};
    LLVMValueRef warp =
        tk_emit_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", tk_ll_int(e, 32), 4, arg);
    tk_emit_cond c = tk_emit_if(e, tk_ll_icmp(e, LLVMIntUGE, warp, tk_emit_i32(e, e->warps)));
    hand_over(e, &s, s.producer);
    e->producer_registers = s.producer ? s.producer : s.launch;
    e->side = all ? TK_SIDE_PRODUCERS : TK_SIDE_PRODUCER;
    if (all) {
        run_by_all(e, op->reg[0]);
    }
    for (e->group = 0; !all && e->group < groups(e); e->group++) {
        tk_emit_cond first = tk_emit_if(e, tk_ll_is(e, warp, e->warps + GROUP * e->group));
        tk_emit_region(e, op->reg[0]);
        tk_emit_end(e, &first);
    }
    tk_emit_else(e, &c);
    e->side = TK_SIDE_CONSUMER;
    e->same_warp = warp;
    hand_over(e, &s, s.consumer);
    tk_emit_region(e, op->reg[1]);
    e->same_warp = NULL;
    e->side = TK_SIDE_ALL;
    tk_emit_end(e, &c);
}

void tk_emit_ring_op(tk_emit *e, tk_op *op) {
    switch ((int)op->code) { // those that llvm_kernel.c sends here
    case TK_OP_PARTITION:
        partition(e, op);
        break;
    case TK_OP_RING:
        make(e, op);
        break;
    case TK_OP_FETCH:
        fetch(e, op);
        break;
    case TK_OP_TAKE:
        take(e, op);
        break;
    case TK_OP_RELEASE:
        release(e, op);
        break;
    }
}
