// SPDX-License-Identifier: Apache-2.0
// The kernel function: parameters, the program's place in the grid, and the walk over ops.
#include "ptx/llvm_kernel.h"
#include "lower/box.h"
#include "lower/lower.h"
#include "lower/walk.h"
#include "ptx/llvm_across.h"
#include "ptx/llvm_internal.h"
#include "ptx/llvm_ring.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

enum { PTX_KERNEL = 71 }; // LLVM's calling convention of kernels

// ---- Parameters: the order of ptx/image.h

typedef struct signature {
    uint32_t n;
    LLVMTypeRef *type;
    tk_param_slot *slot;
    uint32_t bytes;
} signature;

static void add(signature *s, tk_slot_kind kind, uint32_t param, uint32_t axis, LLVMTypeRef type,
                uint32_t size) {
    s->bytes = (s->bytes + size - 1) / size * size;
    s->slot[s->n] = (tk_param_slot){kind, param, axis, s->bytes, size};
    s->type[s->n++] = type;
    s->bytes += size;
}

static signature signature_of(tk_emit *e, uint32_t ngrid) {
    const tk_func *f = e->f;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->ctx), i64 = LLVMInt64TypeInContext(e->ctx);
    uint32_t room = f->params.n * (1 + 2 * TK_MAX_TENSOR_RANK) + ngrid + e->maps.n + 2;
    signature s = {0, TK_NEW_ARRAY(e->arena, LLVMTypeRef, room),
                   TK_NEW_ARRAY(e->arena, tk_param_slot, room), 0};
    for (uint32_t k = 0; k < e->maps.n; k++) {
        add(&s, TK_SLOT_MAP, k, 0, LLVMPointerTypeInContext(e->ctx, 0), TK_MAP_BYTES);
    }
    for (uint32_t i = 0; i < f->params.n; i++) {
        const tk_type *t = tk_value_type(f, f->params.at[i]);
        if (t->kind != TK_T_TENSOR) {
            add(&s, TK_SLOT_SCALAR, i, 0, tk_emit_mem_type(e, t->dtype),
                (uint32_t)tk_dtype_size(t->dtype));
            continue;
        }
        add(&s, TK_SLOT_ADDRESS, i, 0, LLVMPointerTypeInContext(e->ctx, 1), 8);
        for (uint32_t d = 0; d < t->rank; d++) {
            add(&s, TK_SLOT_SIZE, i, d, i32, 4);
        }
        for (uint32_t d = 0; d < t->rank; d++) {
            add(&s, TK_SLOT_STRIDE, i, d, i64, 8);
        }
    }
    for (uint32_t a = 0; a < ngrid; a++) {
        add(&s, TK_SLOT_GRID, a, 0, i32, 4);
    }
    if (e->sites.list.n) {
        add(&s, TK_SLOT_DEBUG, 0, 0, LLVMPointerTypeInContext(e->ctx, 1), 8);
    }
    return s;
}

// What the parameter at a slot is inside the kernel.
static void take(tk_emit *e, const tk_param_slot *p, LLVMValueRef x) {
    bool of_tensor = p->kind != TK_SLOT_GRID && p->kind != TK_SLOT_DEBUG && p->kind != TK_SLOT_MAP;
    tk_tensor_args *t = of_tensor ? &e->tensor[p->param] : NULL;
    switch (p->kind) {
    case TK_SLOT_ADDRESS:
        t->base = x;
        break;
    case TK_SLOT_SIZE: {
        int64_t n = tk_value_type(e->f, e->f->params.at[p->param])->dim[p->axis];
        t->dim[p->axis] = n >= 0 ? tk_emit_i32(e, n) : x;
        break;
    }
    case TK_SLOT_STRIDE: {
        bool last = p->axis + 1 == tk_value_type(e->f, e->f->params.at[p->param])->rank;
        t->stride[p->axis] = last && (t->facts & TK_FACT_UNIT) ? tk_emit_i64(e, 1) : x;
        break;
    }
    case TK_SLOT_SCALAR: {
        tk_vid v = e->f->params.at[p->param];
        tk_emit_new(e, v)[0] = tk_emit_from_mem(e, tk_value_type(e->f, v)->dtype, x);
        break;
    }
    case TK_SLOT_GRID:
        e->grid[p->param] = x;
        break;
    case TK_SLOT_DEBUG:
        e->debug = x;
        break;
    case TK_SLOT_MAP:
        e->map[p->param] = x;
        break;
    }
}

static LLVMValueRef special(tk_emit *e, const char *name) {
    return tk_emit_intrinsic(e, name, LLVMInt32TypeInContext(e->ctx), 0, NULL);
}

// A size is from 0 to 2^31 - 1.
static void size_range(tk_emit *e, uint32_t i) {
    const uint64_t from = 0, to = (uint64_t)INT32_MAX + 1;
    LLVMAttributeRef a = LLVMCreateConstantRangeAttribute(
        e->ctx, LLVMGetEnumAttributeKindForName("range", 5), 32, &from, &to);
    LLVMAddAttributeAtIndex(e->fn, i + 1, a);
}

// By value, and never copied from where the launch put it.
static void map_parameter(tk_emit *e, uint32_t i) {
    static const char constant[] = "nvvm.grid_constant";
    LLVMTypeRef bytes = LLVMArrayType2(LLVMInt8TypeInContext(e->ctx), TK_MAP_BYTES);
    LLVMAttributeRef a[] = {
        LLVMCreateTypeAttribute(e->ctx, LLVMGetEnumAttributeKindForName("byval", 5), bytes),
        LLVMCreateEnumAttribute(e->ctx, LLVMGetEnumAttributeKindForName("align", 5), TK_MAP_ALIGN),
        LLVMCreateStringAttribute(e->ctx, constant, sizeof constant - 1, "", 0)};
    for (size_t k = 0; k < sizeof a / sizeof *a; k++) {
        LLVMAddAttributeAtIndex(e->fn, i + 1, a[k]);
    }
}

static void thread_numbers(tk_emit *e) {
    e->tid = special(e, "llvm.nvvm.read.ptx.sreg.tid.x");
    e->lane = LLVMBuildAnd(e->b, e->tid, tk_emit_i32(e, 31), "lane");
    e->warp = LLVMBuildLShr(e->b, e->tid, tk_emit_i32(e, 5), "warp");
}

static void attribute(tk_emit *e, const char *key, const char *value) {
    LLVMAttributeRef a = LLVMCreateStringAttribute(e->ctx, key, (unsigned)strlen(key), value,
                                                   (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

static uint32_t cluster_of(const tk_emit *e) {
    return e->m->attrs.cluster > 1 ? (uint32_t)e->m->attrs.cluster : 1;
}

static void find_staged(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || op->at.staged;
}

// Blocks that a multiprocessor holds at once, which bounds the registers of a thread. A kernel that
// streams lives from the loads of many blocks, a matrix product from its accumulators in registers.
// A block whose rows go through shared memory reads, works and writes one after the other, so that
// more are wanted for something to be on its way at any time. An assembler that is at hand goes
// from `blocks` as near to `wanted` as it can (ptx/budget.c); for the driver's `blocks` must do.
// More than are wanted are never asked for: a thread that reads much has the registers for it. What
// is read twice, the second time from the caches, stays there if few programs share them: as many
// as make 1024 threads.
static void blocks_at_once(tk_emit *e, tk_image *image) {
    enum { STREAMING_THREADS = 768 }; // 85 registers each
    enum { BYTES_AT_ONCE = 64 << 10, BYTES_STAGED = 96 << 10, THREADS_OF_FEW = 1024 };
    bool staged = false;
    tk_func_walk((tk_func *)(uintptr_t)e->f, find_staged, &staged);
    const uint64_t bytes = tk_streamed_bytes(e->arena, e->f);
    const uint64_t at_once = staged ? BYTES_STAGED : BYTES_AT_ONCE;
    const uint32_t threads = e->warps * 32, blocks = STREAMING_THREADS / threads;
    const uint32_t wanted = bytes ? (uint32_t)((at_once + bytes - 1) / bytes) : 0;
    const uint32_t few = THREADS_OF_FEW / threads;
    image->wanted = wanted > few && tk_reads_twice(e->f) ? few : wanted;
    image->blocks = bytes && blocks ? blocks : 1;
    image->blocks = wanted && wanted < image->blocks ? wanted : image->blocks;
}

static void make_function(tk_emit *e, const signature *s, const tk_image *image) {
    LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(e->ctx), s->type, s->n, 0);
    e->fn = LLVMAddFunction(e->mod, image->kernel, ft);
    LLVMSetFunctionCallConv(e->fn, PTX_KERNEL);
    attribute(e, "nvvm.reqntid", tk_format(e->arena, "%u", (e->warps + e->producers) * 32));
    if (cluster_of(e) > 1) {
        attribute(e, "nvvm.cluster_dim", tk_format(e->arena, "%u,1,1", cluster_of(e)));
    }
    attribute(e, "nvvm.minctasm", tk_format(e->arena, "%u", image->blocks));
    LLVMTypeRef bytes = LLVMArrayType2(LLVMInt8TypeInContext(e->ctx), 0);
    e->shared = LLVMAddGlobalInAddressSpace(e->mod, bytes, "tk_shared", 3);
    LLVMSetLinkage(e->shared, LLVMExternalLinkage);
    LLVMSetAlignment(e->shared, 1024);
}

// ---- Ops

void tk_emit_region(tk_emit *e, const tk_region *r) {
    for (tk_op *op = r->first; op && !e->refused; op = op->next) {
        if (!tk_op_is_terminator(op)) {
            tk_emit_op(e, op);
        }
    }
}

typedef void emitter(tk_emit *e, tk_op *op);

static void barrier(tk_emit *e, tk_op *op) {
    if (!tk_barrier_is_idle(e->f, op, e->opts->facts)) {
        tk_emit_barrier(e);
    }
}

// Every op of the list: a new one does not build before it is taught here.
static emitter *emitter_of(tk_opcode code) {
    switch (code) {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
#include "ir/ops.def"
    case TK_OP_CAST:
    case TK_OP_BITCAST:
        return tk_emit_elementwise_op;
    case TK_OP_PHILOX:
        return tk_emit_philox_op;
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
    case TK_OP_PERMUTE:
    case TK_OP_DIM:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
        return tk_emit_simple_op;
    case TK_OP_EMPTY:
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
        return tk_emit_kept_op;
    case TK_OP_CONVERT:
    case TK_OP_CONCAT:
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_FLIP:
    case TK_OP_SLICE:
    case TK_OP_GATHER:
        return tk_emit_move_op;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
        return tk_emit_reduce_op;
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
        return tk_emit_scan_op;
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
        return tk_emit_sort_op;
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        return tk_emit_dot_op;
    case TK_OP_LOAD:
    case TK_OP_STORE:
        return tk_emit_memory_op;
    case TK_OP_ATOMIC_RMW:
    case TK_OP_ATOMIC_CAS:
        return tk_emit_atomic_op;
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
    case TK_OP_PRINT:
        return tk_emit_debug_op;
    case TK_OP_PARTITION:
    case TK_OP_RING:
    case TK_OP_FETCH:
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
        return tk_emit_ring_op;
    case TK_OP_WAIT:
        return tk_emit_wait_op;
    case TK_OP_BARRIER:
        return barrier;
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE:
        return tk_emit_control_op;
    case TK_OP_PROGRAMS:
        return tk_emit_programs_op;
    case TK_OP_CALL:   // inlined
    case TK_OP_YIELD:  // the owner's
    case TK_OP_RETURN: // the kernel's
    case TK_OP_COUNT:
        break;
    }
    return NULL;
}

void tk_emit_op(tk_emit *e, tk_op *op) {
    if (!tk_emit_fits(e, op)) {
        return;
    }
    emitter *emit = emitter_of(op->code);
    TK_CHECK(e->arena, emit != NULL);
    tk_lines_at(e, op->loc);
    emit(e, op);
}

// ---- The whole

static void tensors(tk_emit *e) {
    e->tensor = TK_NEW_ARRAY(e->arena, tk_tensor_args, e->f->params.n + 1);
    for (uint32_t i = 0; i < e->f->params.n; i++) {
        e->tensor[i].facts = e->opts->facts ? e->opts->facts[i] : 0;
    }
}

static void count_uses(void *user, tk_op *op) {
    tk_emit *e = user;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        e->uses[op->opnd[i]]++;
    }
}

static uint32_t rounded_up(uint64_t n, uint64_t by) { return (uint32_t)((n + by - 1) / by * by); }

// Bytes of barriers, in front of the dynamic shared memory: what an assembler will say.
static uint32_t static_shared(const tk_emit *e) {
    enum { SHARED = 3 };
    const LLVMTargetDataRef layout = LLVMGetModuleDataLayout(e->mod);
    uint32_t bytes = 0;
    for (LLVMValueRef g = LLVMGetFirstGlobal(e->mod); g; g = LLVMGetNextGlobal(g)) {
        const LLVMTypeRef t = LLVMGlobalGetValueType(g);
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == SHARED && g != e->shared) {
            bytes = rounded_up(bytes, LLVMGetAlignment(g));
            bytes += (uint32_t)LLVMABISizeOfType(layout, t);
        }
    }
    return e->m->shared > 0 ? rounded_up(bytes, LLVMGetAlignment(e->shared)) : bytes;
}

void tk_emit_kernel(tk_emit *e, tk_image *image) {
    const tk_func *f = e->f;
    uint32_t ngrid = f->grid ? f->grid->last->nopnd : 0;
    e->value = TK_NEW_ARRAY(e->arena, LLVMValueRef *, f->value.n);
    e->kept = TK_NEW_ARRAY(e->arena, LLVMValueRef, f->value.n);
    e->uses = TK_NEW_ARRAY(e->arena, uint32_t, f->value.n);
    tk_func_walk((tk_func *)(uintptr_t)f, count_uses, e);
    e->program = TK_NEW_ARRAY(e->arena, LLVMValueRef, ngrid + 1);
    e->grid = TK_NEW_ARRAY(e->arena, LLVMValueRef, ngrid + 1);
    tensors(e);
    if (e->opts->debug) {
        e->sites = tk_debug_sites_of(e->arena, f);
    }
    tk_maps_of(e->arena, f, &e->maps);
    e->map = TK_NEW_ARRAY(e->arena, LLVMValueRef, e->maps.n + 1);
    for (const tk_op *op = f->body->first; op; op = op->next) {
        e->producers = op->code == TK_OP_PARTITION ? (unsigned)op->at.producers : e->producers;
    }
    signature s = signature_of(e, ngrid);
    blocks_at_once(e, image);
    make_function(e, &s, image);
    tk_lines_begin(e);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "entry");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "body");
    LLVMPositionBuilderAtEnd(e->b, entry);
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.slot[i].kind == TK_SLOT_SIZE) {
            size_range(e, i);
        } else if (s.slot[i].kind == TK_SLOT_MAP) {
            map_parameter(e, i);
        }
        take(e, &s.slot[i], LLVMGetParam(e->fn, i));
    }
    thread_numbers(e);
    e->ngrid = ngrid;
    tk_emit_program(e, special(e, "llvm.nvvm.read.ptx.sreg.ctaid.x"));
    LLVMBuildBr(e->b, body);
    LLVMPositionBuilderAtEnd(e->b, body);
    tk_emit_region(e, f->body);
    tk_lines_at(e, f->loc);
    tk_emit_stores_end(e);
    if (tk_emit_rings_shared(f)) {
        tk_emit_cluster_barrier(e);
    }
    LLVMBuildRetVoid(e->b);
    tk_lines_end(e);
    image->ngrid = ngrid;
    image->nslot = s.n;
    image->slot = s.slot;
    image->param_bytes = s.bytes;
    image->nmap = e->maps.n;
    image->map = e->maps.at;
    image->threads = (e->warps + e->producers) * 32;
    image->shared = (uint32_t)e->m->shared;
    image->report.shared_static = static_shared(e);
    image->persistent = e->m->attrs.persistent;
    image->cluster = cluster_of(e);
    image->packed = e->m->packed ? (uint32_t)e->m->packed : 1;
    image->ndebug = e->sites.list.n;
    image->debug = e->sites.list.at;
}
