// SPDX-License-Identifier: Apache-2.0
// From the staged IR to LLVM IR: what the emitter's files share. Only files named ptx/llvm_*.c
// include this.
//
// One block of threads runs one program. A scalar of the IR is one LLVM value, the same in all
// threads of the block; a tile is an array of LLVM values, one per register of its layout (1 <<
// layout->regs). Element types: bool is i1, integers iN, f16 half, bf16 bfloat, f8 its code as i8;
// in memory a bool is a byte.
//
// All control flow of the IR is uniform, so every thread reaches every barrier. Work that only some
// threads do (a store by the owner of an element, a lane that holds a copy) is guarded inside one
// op's emission by tk_emit_if / tk_emit_end.
//
// Shared memory. What an op has of it, and where the parts of that are, ir/scratch.h says; where it
// starts, attribute `shared`. When an op's code begins, all threads may write there: the barriers
// of the staged level have seen to it. Between writing and reading the op calls tk_emit_barrier
// itself.
//
// Numerics: no fast-math flag is set (but for approximations that op->fast permits), so LLVM and
// the assembler keep every operation apart; the pass contract has fused what may be.
#ifndef TK_PTX_LLVM_EMIT_H
#define TK_PTX_LLVM_EMIT_H

#include "ir/ir.h"
#include "ir/layout.h"
#include "ir/scratch.h"
#include "lower/axis.h"
#include "lower/target.h"
#include "ptx/debug.h"

#include <llvm-c/Core.h>

typedef struct tk_emit {
    tk_arena *arena;
    tk_diags *diags;
    const tk_module *m;
    const tk_func *f;
    const tk_target *target;
    const tk_ptx_opts *opts;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMValueRef fn;
    LLVMValueRef shared;          // [0 x i8] addrspace(3): the dynamic shared memory
    LLVMValueRef tid, lane, warp; // i32, made at entry
    LLVMValueRef same_warp;       // the warp's number as what its lanes share, or NULL
    unsigned warps;               // that run the program, a power of two
    unsigned producers;           // warps beside these that fetch for it (op partition)
    unsigned producer_registers;  // of a thread of them where they load; 0: not known
    // Whose code is made: the program's, that of one warp beside it or of all of them, of the
    // others.
    enum { TK_SIDE_ALL, TK_SIDE_PRODUCER, TK_SIDE_PRODUCERS, TK_SIDE_CONSUMER } side;
    unsigned group;          // of four warps that fetch: whose code is made
    LLVMValueRef **value;    // per tk_vid: its registers; NULL before its definition
    LLVMValueRef *kept;      // per tk_vid: where a kept tile is (llvm_kept.c); NULL: nowhere
    uint32_t *uses;          // per tk_vid: operands that it is
    const tk_op *granted_to; // the op whose shared memory is in use, and its bytes
    uint64_t granted;
    LLVMValueRef *program; // i32 per grid axis
    LLVMValueRef *grid;    // i32 per grid axis: counts
    LLVMValueRef number;   // i32: of the program
    uint32_t ngrid;
    tk_debug_sites sites;          // of a debug compile
    LLVMValueRef debug;            // ptr addrspace(1): what it leaves behind; NULL: nothing
    struct tk_tensor_args *tensor; // per kernel parameter
    tk_map_list maps;              // tensor maps that ops need
    LLVMValueRef *map;             // ptr to each, among the parameters
    const tk_axis *axis;           // what is known of integers
    struct tk_coord_cache *coords;
    struct tk_emit_ring *rings; // those made so far (llvm_ring.h)
    struct tk_lines *lines;     // NULL: no source is known
    bool refused;               // a diagnostic was given: the result is thrown away
} tk_emit;

// ---- Values
// Registers of a value: 1 for a scalar, and for a tile in shared memory, of which it is the
// address.
uint32_t tk_emit_regs(const tk_emit *e, tk_vid v);
LLVMValueRef *tk_emit_get(const tk_emit *e, tk_vid v);       // its LLVM values
LLVMValueRef *tk_emit_new(tk_emit *e, tk_vid v);             // room for them, to be filled in
const tk_layout *tk_emit_layout(const tk_emit *e, tk_vid v); // NULL for a scalar
LLVMTypeRef
tk_emit_type(const tk_emit *e,
             tk_dtype t); // in registers: i1, iN, half, bfloat, float, double, i8 for f8
LLVMTypeRef tk_emit_mem_type(const tk_emit *e, tk_dtype t); // in memory: i8 for bool, else the same
LLVMValueRef tk_emit_const(const tk_emit *e, tk_const k);
LLVMValueRef tk_emit_i32(const tk_emit *e, int64_t x);
LLVMValueRef tk_emit_i64(const tk_emit *e, int64_t x);
// Memory form and back (bool <-> byte).
LLVMValueRef tk_emit_to_mem(tk_emit *e, tk_dtype t, LLVMValueRef x);
LLVMValueRef tk_emit_from_mem(tk_emit *e, tk_dtype t, LLVMValueRef x);

// ---- Kept tiles (llvm_kept.c): in each thread's own memory, register by register
bool tk_emit_is_kept(const tk_emit *e, tk_vid v);
void tk_emit_kept_op(tk_emit *e, tk_op *op);                 // empty, insert, extract
LLVMValueRef *tk_emit_kept_load(const tk_emit *e, tk_vid v); // all registers
// What a loop carries kept: finds a place for value `arg` of the loop and puts `init` there.
void tk_emit_kept_enter(tk_emit *e, const tk_op *loop, tk_vid arg, tk_vid init);
// At the end of a region: n values, where the places of `to` are kept ones, go there.
void tk_emit_kept_yield(tk_emit *e, uint32_t n, const tk_vid *from, const tk_vid *to);
void tk_emit_kept_room(tk_emit *e, tk_vid v); // a place of its own

// ---- Elements of a layout
// Row-major number of the element in register r of this thread: a thread part (cached) xor a
// constant. i32.
LLVMValueRef tk_emit_element(tk_emit *e, const tk_layout *l, uint32_t r);
// thread xor constant, where the thread's part has no bits but those in `reach`: the others are
// added, so that what differs in them alone is an address and an offset in the instruction.
LLVMValueRef tk_emit_linear(tk_emit *e, LLVMValueRef thread, uint32_t reach, uint32_t constant);
// The coordinate of axis d of it: i32.
LLVMValueRef tk_emit_coord(tk_emit *e, const tk_layout *l, uint32_t r, unsigned d);
// The same in two parts: what the thread adds and what the register adds. Their sum where
// `disjoint`, else their exclusive or.
typedef struct tk_emit_coord_parts {
    LLVMValueRef thread;
    uint32_t constant;
    bool disjoint;
} tk_emit_coord_parts;
tk_emit_coord_parts tk_emit_coord_of(tk_emit *e, const tk_layout *l, uint32_t r, unsigned d);
// i1: this thread owns its elements (it is not a copy); NULL where every thread does.
LLVMValueRef tk_emit_owner(tk_emit *e, const tk_layout *l);

// ---- Control inside one op
// The builder stands before an instruction; what it makes still belongs to the op's place in the
// source.
void tk_emit_before(tk_emit *e, LLVMValueRef instruction);
typedef struct tk_emit_cond {
    LLVMBasicBlockRef then, end, other;
} tk_emit_cond;
tk_emit_cond
tk_emit_if(tk_emit *e,
           LLVMValueRef cond); // builder stands in `then`; cond NULL: always (no blocks are made)
void tk_emit_else(tk_emit *e, tk_emit_cond *c); // builder stands in `other`
void tk_emit_end(tk_emit *e, tk_emit_cond *c);  // builder stands in `end`
// A loop of this op's own: for (i = 0; i < n; i++), n an i32 value; the builder stands in the body,
// *i is its phi.
typedef struct tk_emit_loop {
    LLVMBasicBlockRef head, body, end;
    LLVMValueRef i;
} tk_emit_loop;
tk_emit_loop tk_emit_for(tk_emit *e, LLVMValueRef n);
void tk_emit_for_end(tk_emit *e, tk_emit_loop *l);
// The same of a loop that runs a few times: it is not worth copies of its body.
void tk_emit_for_end_short(tk_emit *e, tk_emit_loop *l);

// ---- Shared memory
void tk_emit_barrier(tk_emit *e);
void tk_emit_warp_sync(tk_emit *e); // all lanes of the warp wait for each other
// The parts of the op's shared memory, which was given to it.
tk_scratch tk_emit_scratch(tk_emit *e, const tk_op *op);
// Pointer (addrspace 3) to byte op->at.shared + offset; offset an i32 value or NULL.
LLVMValueRef tk_emit_shared_at(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef offset);
// The bytes are within those that the op has.
void tk_emit_check_granted(const tk_emit *e, const tk_op *op, uint64_t bytes);
// Writes all elements of tile v (owners only) to scratch from byte `base`, a multiple of 16, on,
// row-major, in memory form. No barriers.
void tk_emit_spill(tk_emit *e, const tk_op *op, uint64_t base, tk_vid v);
void tk_emit_spill_values(tk_emit *e, const tk_op *op, uint64_t base, const tk_layout *l,
                          tk_dtype t, LLVMValueRef *x);
// Reads a tile of layout l that lies there.
void tk_emit_fetch_values(tk_emit *e, const tk_op *op, uint64_t base, const tk_layout *l,
                          tk_dtype t, LLVMValueRef *out);
// The same, `from` elements further on; what is put, by each thread that comes here.
void tk_emit_put_values(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef from,
                        const tk_layout *l, tk_dtype t, LLVMValueRef *x);
void tk_emit_take_values(tk_emit *e, const tk_op *op, uint64_t base, LLVMValueRef from,
                         const tk_layout *l, tk_dtype t, LLVMValueRef *out);
// n elements that stand side by side, to every thread: a power of two.
void tk_emit_fetch_row(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t, uint32_t n,
                       LLVMValueRef *out);
// Reads one element by its row-major number (i32 value).
LLVMValueRef tk_emit_fetch(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t,
                           LLVMValueRef element);

// ---- Intrinsics: declared by name, which must exist
LLVMValueRef tk_emit_intrinsic(tk_emit *e, const char *name, LLVMTypeRef result, uint32_t n,
                               LLVMValueRef *arg);
LLVMValueRef tk_emit_shuffle_xor(tk_emit *e, LLVMValueRef x,
                                 unsigned mask); // any type up to 64 bits

// ---- One element (llvm_elem.c, llvm_cast.c): used by element-wise ops and by reductions, scans
// and sorts
LLVMValueRef tk_emit_elem(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                          const LLVMValueRef *arg);
// out[i] = x[i] / c[i] in f32 (llvm_divide.c). False: divisors are too many for that, nothing is
// made.
bool tk_emit_quotients(tk_emit *e, uint32_t n, const LLVMValueRef *x, const LLVMValueRef *c,
                       LLVMValueRef *out);
// Whether there are instructions for floats of 8 bits, to and from others.
static inline bool tk_emit_has_f8(const tk_emit *e) { return e->target->cc >= 90; }
LLVMValueRef tk_emit_cast_elem(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x);
// f32 rounded to 10 bits of fraction, to nearest, ties to even: the bits, as i32.
LLVMValueRef tk_emit_tf32(tk_emit *e, LLVMValueRef x);
// The same for a cast that the program has, rather than one that an operation in f32 needs: of a
// bf16 that is half of a word it is one operation.
LLVMValueRef tk_emit_cast_asked(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x);
// How many neighbours are cast together, into the pieces of one word that stores find (1: each by
// itself), and the cast of so many.
uint32_t tk_emit_cast_together(const tk_emit *e, tk_dtype from, tk_dtype to);
void tk_emit_cast_word(tk_emit *e, tk_dtype from, tk_dtype to, const LLVMValueRef *x,
                       LLVMValueRef *out);

// ---- Ops: one function a family; each fills the results of op. What cannot be run is refused with
// tk_emit_refuse.
void tk_emit_refuse(tk_emit *e, const tk_op *op, const char *fmt, ...) TK_PRINTF(3, 4);
void tk_emit_op(tk_emit *e, tk_op *op);              // dispatch (llvm_kernel.c)
void tk_emit_region(tk_emit *e, const tk_region *r); // all ops but the terminator
void tk_emit_simple_op(
    tk_emit *e,
    tk_op *op); // llvm_shape.c: const iota broadcast reshape permute dim program_id num_programs
void tk_emit_elementwise_op(tk_emit *e, tk_op *op); // llvm_elem.c: element-wise, cast, bitcast
void tk_emit_philox_op(tk_emit *e, tk_op *op);      // llvm_elem.c
void tk_emit_move_op(
    tk_emit *e, tk_op *op); // llvm_move.c: convert concat interleave deinterleave flip slice gather
void tk_emit_reduce_op(tk_emit *e, tk_op *op);   // llvm_reduce.c: reduce arg_reduce reduce_fn
void tk_emit_scan_op(tk_emit *e, tk_op *op);     // llvm_scan.c: scan scan_fn
void tk_emit_sort_op(tk_emit *e, tk_op *op);     // llvm_sort.c: sort topk histogram
void tk_emit_dot_op(tk_emit *e, tk_op *op);      // llvm_dot.c: dot dot_scaled
void tk_emit_wait_op(tk_emit *e, tk_op *op);     // llvm_wgmma.c: wait
void tk_emit_memory_op(tk_emit *e, tk_op *op);   // llvm_memory.c: load store
void tk_emit_atomic_op(tk_emit *e, tk_op *op);   // llvm_atomic.c
void tk_emit_control_op(tk_emit *e, tk_op *op);  // llvm_control.c: if for while
void tk_emit_programs_op(tk_emit *e, tk_op *op); // llvm_programs.c: programs
// Sets the numbers of the program that runs, from its place in their order.
void tk_emit_program(tk_emit *e, LLVMValueRef at);
void tk_emit_debug_op(tk_emit *e, tk_op *op); // llvm_debug.c: assert assume print
// Inside a loop that may wait for another program: ends this one where a claim has failed.
void tk_emit_debug_poll(tk_emit *e, const tk_op *loop);

// Calls a combine region on scalars: binds its arguments to `arg`, emits it, and gives what it
// yields.
void tk_emit_combine(tk_emit *e, const tk_region *r, const LLVMValueRef *arg, LLVMValueRef *out);

#endif
