// SPDX-License-Identifier: Apache-2.0
// What an access of a tensor (load, store, atomic) needs when it runs: which bounds are tested, and
// how many elements one instruction moves.
//
// Decided from the layout of the access, the axis analysis and the facts of the tensor, without any
// code being made, so that notes, tests and the emitter see the same. Everything in doubt is tested
// when the kernel runs; no answer here changes what is computed.
//
// A vector is a group of 1 << k registers that hold consecutive elements of the tensor's last
// dimension, the first of them at a multiple of the group's size in the layout.
#ifndef TK_LOWER_VIEW_PLAN_H
#define TK_LOWER_VIEW_PLAN_H

#include "ir/note.h"
#include "lower/axis.h"

typedef struct tk_view_plan {
    uint32_t param, rank;
    unsigned vec;      // elements of one instruction: a power of two; 1: one by one
    bool aligned;      // each vector's address is a multiple of its size
    bool whole;        // a vector whose first element is inside, and that is aligned, is inside
    bool mask_in_step; // there is a mask, and it is the same for all elements of a vector
    bool mask_cuts;    // there is one that may cut any vector, not one in a row as bounds do
    bool scattered;    // elements of the tile lie beside none of its others
    // Per dimension. `low`, `high`: an index may be below 0, or at or above the size.
    bool low[TK_MAX_TENSOR_RANK], high[TK_MAX_TENSOR_RANK];
    bool fits32[TK_MAX_TENSOR_RANK]; // the index (of a range: its start) is an i32
    const char *narrow;              // why the vector is not wider; NULL: nothing is in its way
} tk_view_plan;

// `l` is the layout of what is read or written; NULL: a scalar.
tk_view_plan tk_view_plan_of(const tk_axis *x, const tk_op *op, const tk_layout *l);

// A note of it: "'x' is read 8 elements at once; ...". It is missed where what is loaded or stored
// moves neither 16 bytes at once nor all that a thread has of it, or only where it is aligned by
// luck or where a mask permits; and where threads move one element each, none beside another.
tk_note_rec *tk_view_note(tk_notes *n, const tk_axis *x, const tk_op *op, const tk_view_plan *a);
bool tk_op_is_access(const tk_op *op); // load, store, atomic_rmw, atomic_cas

#endif
