// SPDX-License-Identifier: Apache-2.0
// Tiles that a loop reads and shared memory holds for a loop that reads them again.
//
// A load with attribute `hold` n is in a loop; each thread leaves there what it has of the tile, in
// the first n iterations. A load with `held` k is in a loop that begins when that one has run; in
// these iterations it takes what the k-th load with `hold` of the function left, in program order.
// Each thread takes what it left itself, so no barrier stands between. The memory is that load's
// alone, for the whole kernel.
//
// Both loops count by the same numbers, and both loads read the same elements in the same layout
// (lower/pass_hold.c sees to it), so that holding or not changes no value. The executor reads the
// tensor.
#ifndef TK_IR_HOLD_H
#define TK_IR_HOLD_H

#include "ir/ir.h"

enum { TK_MOST_HELD = 1 << 16 }; // iterations

// Of one iteration.
uint64_t tk_held_bytes(const tk_func *f, const tk_op *load);
// The load that left what this one takes; NULL: there is none, or it takes nothing.
const tk_op *tk_holder_of(const tk_func *f, const tk_op *load);

#endif
