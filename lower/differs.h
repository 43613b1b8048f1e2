// SPDX-License-Identifier: Apache-2.0
// Along which axes of the grid a number differs: where it does not, all programs along that axis
// compute the same.
#ifndef TK_LOWER_DIFFERS_H
#define TK_LOWER_DIFFERS_H

#include "ir/ir.h"

#define TK_DIFFERS_ALL UINT32_MAX

// Axes as bits: 1 << a for axis a. Made of constants, sizes, parameters, numbers of the program and
// of programs and the indices of loops whose bounds are such: by the axes that it is made of. All
// for all else: what is read from memory, what a loop carries, the results of an if.
uint32_t tk_differs_along(const tk_func *f, tk_vid v);

// The same of whether, and how often, an op is reached in its program.
uint32_t tk_reached_along(const tk_func *f, const tk_op *op);

#endif
