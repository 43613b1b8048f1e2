// SPDX-License-Identifier: Apache-2.0
// Which loads and stores go through shared memory, and what of the tensor they move there.
//
// A *staged* access moves rows: runs of elements of the tensor's last dimension. All threads of the
// program copy them together, 16 aligned bytes at once and what is left at both ends element by
// element, wherever a row begins; rows that touch in memory are copied as one. Each thread then
// takes its elements of the copy, or has put them there before. Only elements inside the tensor are
// touched.
//
// What makes an access worth it: the last stride is 1 and rows do not begin at multiples of 16
// bytes, so that no thread can move several elements at once. An access that is staged or not gives
// the same values.
#ifndef TK_LOWER_STAGE_H
#define TK_LOWER_STAGE_H

#include "lower/axis.h"

enum { TK_STAGE_BOUNDS = 4 };

// Rows are written as long as element 0 of x, plus the row's number, is below y.
typedef struct tk_stage_bound {
    tk_vid x, y; // i32 tiles, or a scalar (y)
} tk_stage_bound;

typedef struct tk_stage_plan {
    const char *why;      // it cannot be staged; NULL: it can
    uint32_t param;       // the tensor
    int row;              // its dimension that the rows of the tile walk; -1: there is one row
    unsigned row_axis;    // the tile's axis of rows, where there are several
    unsigned axis;        // the tile's axis along a row
    int64_t rows, extent; // of the tile
    uint32_t nbound;      // a store's mask
    tk_stage_bound bound[TK_STAGE_BOUNDS];
} tk_stage_plan;

// Of a load or store, from what is known of its indices. Needs no layouts.
tk_stage_plan tk_stage_plan_of(const tk_axis *x, const tk_op *op);

// Whether rows of a tensor of which this is known do not begin at multiples of 16 bytes.
bool tk_stage_useful(tk_tensor_facts f);

#endif
