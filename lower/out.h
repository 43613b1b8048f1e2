// SPDX-License-Identifier: Apache-2.0
// Stores by tensor copies (ir/out.h): whether a store can be one, and how warps write its tile to
// shared memory.
//
// The tile lies there as tk_layout_placed has it. A warp writes 8 x 8 matrices of 16-bit elements
// where its registers and lanes hold them as matrix units do (stmatrix), four, two or one at once:
// the rows of each are 16 bytes somewhere, and lane i gives the place of row i mod 8 of matrix
// i / 8. Else each thread writes vectors of what its registers have side by side.
#ifndef TK_LOWER_OUT_H
#define TK_LOWER_OUT_H

#include "ir/move.h"
#include "ir/out.h"
#include "lower/box.h"
#include "lower/count.h"

enum { TK_OUT_MATRIX_ROWS = 8, TK_OUT_ROW_BYTES = 16 };

// Bytes of shared memory that stores may have where others have little.
enum { TK_OUT_KEPT = 32 << 10 };

typedef struct tk_out_plan {
    tk_boxes boxes;
    tk_layout shared;        // of the tile
    tk_layout places;        // of the threads, into its places
    unsigned size;           // bytes of an element
    uint32_t pieces, slots;  // ir/out.h
    uint32_t elems;          // of a piece
    bool matrices;           // else vectors: `run`
    bool turned;             // rows of matrices are what lanes hold 8 of (stmatrix.trans)
    unsigned pair;           // register bit whose two elements share a register of 32 bits
    unsigned log_n, more[2]; // 1 << log_n matrices at once, told apart by these register bits
    uint32_t row[3];         // places of the rows of a matrix, by the bits of their number
    tk_run run;
} tk_out_plan;

// Why a store is not one by tensor copies, whatever the layout of its tile; NULL: it may be.
const char *tk_out_why_not(const tk_axis *x, const tk_target *t, const tk_func *f, const tk_op *op,
                           unsigned log_warps);

// Of a store as it is; of one whose threads have the tile in layout l.
tk_out_plan tk_out_plan_of(const tk_func *f, const tk_op *op);
tk_out_plan tk_out_plan_in(const tk_func *f, const tk_op *op, const tk_layout *l, uint32_t pieces,
                           uint32_t slots);

// Register bits that tell apart what is written together; the others walk what a thread writes one
// after the other.
uint32_t tk_out_together(const tk_out_plan *p);

// Of the element that register r and a thread hold: the place in the memory of the op. The thread's
// part, and r's, which are exclusive-ored.
uint32_t tk_out_lane_place(const tk_out_plan *p, uint32_t lane, uint32_t warp);
uint32_t tk_out_register_place(const tk_out_plan *p, uint32_t r, uint32_t piece);
// The piece that register r belongs to, in every thread.
uint32_t tk_out_piece_of(const tk_out_plan *p, uint32_t r);

// How a warp writes the tile to shared memory.
tk_requests tk_out_written(const tk_out_plan *p);
// Barriers in the op.
uint32_t tk_out_barriers(const tk_op *op);

// The next way to go in more pieces, with less memory. False: there is none.
bool tk_out_cut(const tk_func *f, tk_op *op);

#endif
