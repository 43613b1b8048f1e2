// SPDX-License-Identifier: Apache-2.0
// Masks that are known by register, as those of a tile's padding: along an axis the registers of a
// thread lie far apart, so that in most of them all threads are on one side of the bound.
#ifndef TK_LOWER_KNOWN_H
#define TK_LOWER_KNOWN_H

#include "ir/layout.h"
#include "lower/axis.h"

typedef enum tk_known { TK_KNOWN_NOT, TK_KNOWN_FALSE, TK_KNOWN_TRUE } tk_known;

// What register r of the op's result is in all threads. Asked of x < y where x counts up along one
// axis; of all else nothing is known.
tk_known tk_known_mask(const tk_axis *x, const tk_op *op, uint32_t r);

#endif
