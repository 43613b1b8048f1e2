// SPDX-License-Identifier: Apache-2.0
// What ops that work across threads have in common (llvm_across.c): a limit on registers, places in
// scratch memory, work shared by all threads, and lines along an axis.
#ifndef TK_PTX_LLVM_ACROSS_H
#define TK_PTX_LLVM_ACROSS_H

#include "ptx/llvm_build.h"

// Refuses an op with a tile of more registers a thread than code is made for.
bool tk_emit_fits(tk_emit *e, const tk_op *op);

void tk_emit_put(tk_emit *e, const tk_op *op, uint64_t base, tk_dtype t, LLVMValueRef element,
                 LLVMValueRef x);

// Each i of 0 .. n-1 in some thread: the code between begin and end is for one i.
typedef struct tk_emit_work {
    tk_emit_loop loop;
    tk_emit_cond cond;
    LLVMValueRef i;
} tk_emit_work;
tk_emit_work tk_emit_work_begin(tk_emit *e, uint32_t n);
void tk_emit_work_end(tk_emit *e, tk_emit_work *w);

// A loop of n iterations that carries values: x of them, which become those of the loop.
typedef struct tk_emit_carried {
    tk_emit_loop loop;
    uint32_t n;
    LLVMValueRef *phi;
} tk_emit_carried;
tk_emit_carried tk_emit_carry_begin(tk_emit *e, uint32_t times, uint32_t n, LLVMValueRef *x);
void tk_emit_carry_end(tk_emit *e, tk_emit_carried *c, LLVMValueRef *x, bool unroll);

// Lines along an axis of a row-major tile of powers of two: the elements' numbers have the place in
// the line in bits shift .. shift + log - 1. TK_AXIS_ALL: one line of all elements.
typedef struct tk_emit_lines {
    unsigned shift, log;
    uint32_t count, len; // lines, elements of each
} tk_emit_lines;
tk_emit_lines tk_emit_lines_of(const tk_type *t, int axis);
// Element i of line q; the place of an element in its line; the element with another place.
LLVMValueRef tk_emit_line_at(tk_emit *e, const tk_emit_lines *s, LLVMValueRef q, LLVMValueRef i);
LLVMValueRef tk_emit_line_place(tk_emit *e, const tk_emit_lines *s, LLVMValueRef element);
LLVMValueRef tk_emit_line_move(tk_emit *e, const tk_emit_lines *s, LLVMValueRef element,
                               LLVMValueRef i);

// Row-major number of the element with these coordinates in a tile of type t.
LLVMValueRef tk_emit_flat(tk_emit *e, const tk_type *t, const LLVMValueRef *coord);

// The element-wise operation of a reduction or scan.
tk_numop tk_emit_kind_op(const tk_emit *e, tk_kindattr kind);

// Whether a combine region works on scalars alone and writes no memory, so that threads may run it
// apart. Refuses the op otherwise.
bool tk_emit_combine_ok(tk_emit *e, const tk_op *op);

#endif
