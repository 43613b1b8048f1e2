// SPDX-License-Identifier: Apache-2.0
// Which loads and stores go through shared memory, and what of the tensor they move there.
//
// A *staged* access moves rows: runs of elements of the tensor's last dimension. All threads of the
// program copy them together, 16 aligned bytes at once and what is left at both ends element by
// element, wherever a row begins; rows that touch in memory are copied as one. Each thread then
// takes its elements of the copy, or has put them there before. Only elements inside the tensor are
// touched.
//
// Where row r lies in shared memory: `skew` + r * `pitch` bytes from the start of what the op has,
// with `skew` the place of the first row in its 16 bytes of global memory, and `pitch` as many
// bytes as a row has, rounded up so that each row has the place in 16 bytes that it has in global
// memory. So 16 aligned bytes here are 16 aligned bytes there, and rows that touch there touch
// here.
//
// Rows are copied in runs: each row a run of one warp, or all rows together a run of all threads
// where they touch. A run is 16 aligned bytes after 16 aligned bytes, or these by one bulk copy,
// and at both ends elements. Each thread takes or puts its elements in groups. ptx/llvm_stage.c
// makes code of this, lower/count_stage.c counts it.
//
// What makes an access worth it: the last stride is 1 and rows do not begin at multiples of 16
// bytes, so that no thread can move several elements at once. An access that is staged or not gives
// the same values.
#ifndef TK_LOWER_STAGE_H
#define TK_LOWER_STAGE_H

#include "ir/layout.h"
#include "lower/axis.h"
#include "lower/target.h"

enum { TK_STAGE_BOUNDS = 4, TK_STAGE_PIECE = 16, TK_STAGE_GROUP = 8 };

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
    int64_t limit;        // elements of a row from here on are never moved: `extent`, or what a
                          // mask says
    bool bounded;         // the mask is a bound of rows and columns, and is in here
    uint32_t nbound;      // the rows that it leaves
    tk_stage_bound bound[TK_STAGE_BOUNDS];
} tk_stage_plan;

// Of a load or store, from what is known of its indices. Needs no layouts.
tk_stage_plan tk_stage_plan_of(const tk_axis *x, const tk_op *op);

// Why a load or store does not go through shared memory, by its plan; NULL: it does, unless the
// program multiplies matrices.
const char *tk_stage_why_not(const tk_axis *x, const tk_target *t, const tk_op *op,
                             const tk_stage_plan *p);
// Whether it is one that could: of rows that are not aligned, which other programs do not read too.
bool tk_stage_concerns(const tk_axis *x, const tk_op *op);

// Whether a staged access moves its rows by bulk copies: the target has them; the op runs at most
// once in a program, as the barrier that counts what comes in is made for one phase; and
// nothing of the program reads what a bulk copy writes, or writes what one reads or writes: these
// go by different ways, and would have to wait for each other.
bool tk_stage_is_bulk(const tk_target *t, const tk_op *op);

// Whether rows of a tensor of which this is known do not begin at multiples of 16 bytes.
bool tk_stage_useful(tk_tensor_facts f);

// Elements that a thread moves together between shared memory and registers from .. from + n - 1.
// Where they are in one row, and the last is inside, all are, and none need be tested.
typedef struct tk_stage_group {
    uint32_t from, n;
    uint32_t live;                   // those that may be inside, as bits
    bool in_row;                     // they are in one row and differ in the registers' parts alone
    uint32_t last;                   // the greatest column of these
    uint32_t column[TK_STAGE_GROUP]; // the register's part, to which the thread's is added; 0 where
                                     // it is no sum (tk_layout_apart)
} tk_stage_group;
tk_stage_group tk_stage_group_of(const tk_stage_plan *p, const tk_layout *l, uint32_t from);

#endif
