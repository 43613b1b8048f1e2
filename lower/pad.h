// SPDX-License-Identifier: Apache-2.0
// What the files of the pass pad share. The pass itself: pass_pad.c.
//
// When an op is visited its operands and results already have their padded types; what they were
// is tk_pad_real. A padded element holds anything. Where an op would let that be seen, its function
// here puts ops before it (or after it, by moving `before`) that prevent it.
#ifndef TK_LOWER_PAD_H
#define TK_LOWER_PAD_H

#include "ir/pass_util.h"
#include "lower/lower.h"

enum { TK_PAD_ALL = (1 << TK_MAX_RANK) - 1 }; // axes as bits

typedef struct tk_pad {
    tk_pass_ctx *c;
    tk_func *f;
    tk_op *before; // ops are made before it
    tk_loc loc;
    tk_vmap map;                   // values that others stand for from here on
    TK_VEC(const tk_type *) real;  // by value: its type before the pass; NULL: as now
    TK_VEC(const tk_type *) noted; // shapes that a note was made of
} tk_pad;

// ---- Types
int64_t tk_pad_extent(int64_t n); // the least power of two that is not below n
const tk_type *tk_pad_type(tk_arena *a, const tk_type *t);
const tk_type *tk_pad_real(const tk_pad *p, tk_vid v);
// Whether the value is padded along one of these axes.
bool tk_pad_is(const tk_pad *p, tk_vid v, unsigned axes);
// The axes of a reduction, scan or sort, as bits.
unsigned tk_pad_axes(const tk_op *op);

// ---- Making ops
tk_vid tk_pad_op(tk_pad *p, tk_opcode code, const tk_type *t, uint32_t n, const tk_vid *opnd);
tk_vid tk_pad_const(tk_pad *p, const tk_type *shape, tk_const c);
tk_vid tk_pad_op2(tk_pad *p, tk_opcode code, tk_vid x, tk_vid y); // of the type of x
tk_vid tk_pad_op2c(tk_pad *p, tk_opcode code, tk_vid x, int64_t c);
tk_vid tk_pad_compare(tk_pad *p, tk_opcode code, tk_vid x, int64_t c);
tk_vid tk_pad_select(tk_pad *p, tk_vid cond, tk_vid x, tk_vid y);
tk_vid tk_pad_iota(tk_pad *p, int64_t n);
tk_vid tk_pad_reshape(tk_pad *p, tk_vid x, unsigned rank, const int64_t *dim);
// A tile of one axis, repeated along all axes of `shape` but `axis`.
tk_vid tk_pad_along(tk_pad *p, tk_vid line, const tk_type *shape, int axis);
// True on the elements of a tile of type `real` that are within it along these axes; 0: all are.
tk_vid tk_pad_valid(tk_pad *p, const tk_type *real, unsigned axes);
// v with c in the padding along these axes.
tk_vid tk_pad_fill(tk_pad *p, tk_vid v, unsigned axes, tk_const c);
// From here on `with` stands for `old`.
void tk_pad_replace(tk_pad *p, tk_vid old, tk_vid with);
// An element's number in row-major order: from that in the padded shape to that in the real one,
// and back. Any numbers, of type i32.
tk_vid tk_pad_to_real(tk_pad *p, tk_vid number, unsigned rank, const int64_t *real);
tk_vid tk_pad_from_real(tk_pad *p, tk_vid number, unsigned rank, const int64_t *real);

// ---- Kinds of ops
void tk_pad_access(tk_pad *p, tk_op *op);  // loads, stores, atomics
void tk_pad_across(tk_pad *p, tk_op *op);  // reductions, scans, sorting, products
void tk_pad_combine(tk_pad *p, tk_op *op); // reduce_fn, scan_fn
void tk_pad_move(tk_pad *p, tk_op *op);    // reshape, concat, flip, slice, gather

#endif
