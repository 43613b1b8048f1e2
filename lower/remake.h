// SPDX-License-Identifier: Apache-2.0
// Values that are made anew in another layout rather than moved there: those that a few cheap ops
// make of constants, iotas and scalars, as the masks of a tile's edges, of what all programs
// read, as weights, and of loads of an element or two a thread; of tiles of rings where of their
// loads.
#ifndef TK_LOWER_REMAKE_H
#define TK_LOWER_REMAKE_H

#include "ir/ir.h"

// Has no layout of its own: a constant, an iota, an empty tile, a scalar that is repeated.
bool tk_is_free(const tk_func *f, tk_vid v);

// Whether tk_remake can, were tiles of rings loaded: so that layouts are the same with rings.
bool tk_can_remake(const tk_func *f, tk_vid v, const tk_layout *l);
// The tile v made in layout l by ops before `at`; 0 where more than a few would be needed. v's own
// ops stay. Layouts are kept in the module's arena. Tiles of rings are read there again.
tk_vid tk_remake(tk_func *f, tk_op *at, tk_vid v, const tk_layout *l);

#endif
