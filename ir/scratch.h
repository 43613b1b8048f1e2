// SPDX-License-Identifier: Apache-2.0
// How ops work across threads: from types, attributes and layouts alone.
//
// Below the tile level an op is done by all threads of a program together. Where its result needs
// elements that another thread holds, they go by shuffles within a warp or through shared memory:
// tk_scratch_of says which, how many bytes of shared memory the op has for itself while it runs,
// and where its parts of them start. This is the one place that knows. The share pass grants by it,
// the verifier checks by it, and the code generator uses what it says and nothing else.
#ifndef TK_IR_SCRATCH_H
#define TK_IR_SCRATCH_H

#include "ir/ir.h"

enum { TK_SCRATCH_ALIGN = 16 }; // of an op's bytes and of each part of them

typedef enum {
    TK_WORK_THREAD, // each thread by itself, or on values that all threads have
    TK_WORK_LANES,  // shuffles within a warp
    TK_WORK_SHARED, // through shared memory, with barriers inside
} tk_work;

// An op's parts of its shared memory, in order:
//   print                 where its record stands
//   ring                  the slots, from its place in the program on until `tk_ring_last`
//   convert, flip, slice, concat, interleave, deinterleave    the larger side (ir/move.h)
//   atomics, load         the tile
//   load, hold            what each thread keeps, until the kernel ends (ir/hold.h)
//   store, how=tensor     the pieces of the tile that are there at once (ir/out.h)
//   load, store, staged   the rows, each from the place in 16 bytes that it has in the tensor
//   gather                x; the indices, where their layout is not the result's
//   reduce, arg_reduce    plain (see below): the warps' values; their indices. Else the tile
//   reduce_fn             plain (see below): the warps' values, operand by operand. Else each
//   operand scan, scan_fn         plain (see below): the totals of each thread, operand by operand.
//   Else each
//                         operand twice
//   sort, topk            the values, their keys, their places
//   histogram             the bins
//   dot, dot_scaled       a block of a, of b, the scales of a, of b; before, from 0 on, the
//                         accumulator, where its layout is not the result's
//   dot by a matrix unit    a block of a, of b, where these are not there already (ir/matrix.h)
typedef struct tk_scratch {
    tk_work work;
    uint64_t bytes; // 0 but for TK_WORK_SHARED
    uint32_t align; // of where they start: a multiple of TK_SCRATCH_ALIGN
    uint32_t nparts;
    uint64_t *part; // where each starts
    uint32_t block; // dot: elements along K that are there at once
} tk_scratch;

// `a` receives the list of parts.
tk_scratch tk_scratch_of(tk_arena *a, const tk_func *f, const tk_op *op);
// The bytes alone; what the place of the first is a multiple of.
uint64_t tk_scratch_bytes(const tk_func *f, const tk_op *op);
uint32_t tk_scratch_align(const tk_op *op);

// Bytes from slot to slot of a ring of tiles of type t.
uint64_t tk_ring_slot_bytes(const tk_type *t);
// The last op of the kernel's body that uses a ring, itself or in its regions. Until there no other
// op may have the ring's memory.
const tk_op *tk_ring_last(const tk_op *ring);
enum { TK_RING_BARRIER_BYTES = 16 }; // of a slot, beside its ring's memory

// reduce and arg_reduce. Plain: in each thread, then by shuffles between the lanes of `lanes`, then
// through shared memory between the warps of `warps`. That needs bases that lie either on the axis
// or across it; other layouts go through shared memory as a whole.
typedef struct tk_reduction {
    bool plain;
    uint32_t lanes, warps; // bits of a lane's and a warp's number that tell parts of a line apart
    tk_layout out;         // of the result; without an axis, of the one element
} tk_reduction;
tk_reduction tk_reduction_of(const tk_func *f, const tk_op *op);

// scan and scan_fn. Plain: each bit of an element's place in its line, from the lowest, is one of a
// register's, lane's or warp's number, those of warps next to one another, and no other bit of
// these moves along the line. All tiles are in one layout. Else through shared memory as a whole.
typedef enum { TK_SCAN_REG, TK_SCAN_LANE, TK_SCAN_WARP } tk_scan_kind;
typedef struct tk_scan_bit {
    tk_scan_kind kind;
    uint8_t i; // of the number
} tk_scan_bit;
typedef struct tk_scan {
    bool plain;
    unsigned log; // bits of the place
    tk_scan_bit bit[TK_MAX_REG_BITS + TK_LANE_BITS + TK_MAX_WARP_BITS];
    uint32_t totals; // that a thread has for other warps, of each operand; 0: none
} tk_scan;
tk_scan tk_scan_of(const tk_func *f, const tk_op *op);

// Of a staged load or store (lower/stage.h) of a tile of type t and so many rows.
uint64_t tk_staged_bytes(const tk_type *t, int64_t rows);

// reduce_fn. Plain: as of a scan, with no lane's bit above one of a warp, those of warps in their
// order, and few elements in each thread. What is combined first stands next to each other in the
// line, so that the function needs to be associative and no more.
typedef struct tk_fold {
    bool plain;
    unsigned log; // bits of the place
    tk_scan_bit bit[TK_MAX_REG_BITS + TK_LANE_BITS + TK_MAX_WARP_BITS];
    uint32_t warps;  // bits of a warp's number
    uint32_t values; // of a line that a thread has when warps exchange theirs
    tk_layout out;   // of the result; without an axis, of the one element
} tk_fold;
tk_fold tk_fold_of(const tk_func *f, const tk_op *op);

// The unsigned type of the keys that elements of type t are sorted by.
tk_dtype tk_sort_key(tk_dtype t);

// Whether the op is in the function of a reduction or scan, which threads run apart: no op there
// works across threads.
bool tk_op_in_combine(const tk_op *op);

// A product's operands: the place of each in the op's, 0 where there is none; a is the first.
typedef struct tk_product {
    uint32_t b, a_scale, b_scale, acc;
    tk_dtype type;    // of the sums
    int64_t k, batch; // extents
    int64_t rows, columns;
} tk_product;
tk_product tk_product_of(const tk_func *f, const tk_op *op);

#endif
