// SPDX-License-Identifier: Apache-2.0
// Which unit of a GPU multiplies a dot's matrices, by rule; and how warps share the result.
#ifndef TK_LOWER_UNITS_H
#define TK_LOWER_UNITS_H

#include "ir/matrix.h"
#include "lower/target.h"

typedef struct tk_dot_unit_choice {
    tk_dot_unit unit;
    const char *why; // not a faster one that the target has; NULL: there is none
} tk_dot_unit_choice;
// For a program of `warps` warps; 0: as many as the unit wants. Target NULL: none has a unit.
tk_dot_unit_choice tk_dot_unit_of(const tk_target *target, const tk_func *f, const tk_op *op,
                                  int64_t warps);

// Whether a product's rows are reduced, or multiplied again, so that warps should have whole ones.
bool tk_products_in_rows(const tk_func *f);
// Warps for the products of a function by matrix units; 0: it has none. Each warp has rows of its
// own where they are to be whole.
unsigned tk_warps_of_products(const tk_func *f);

// Whether an instruction needs a later PTX than the target's first: "+ptx84"; else NULL.
const char *tk_ptx_of_products(const tk_func *f);

#endif
