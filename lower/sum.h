// SPDX-License-Identifier: Apache-2.0
// Whole numbers as sums: numbers that are the same in a whole tile, and an axis along which the
// tile counts. That is what masks and tile indices of most programs are.
#ifndef TK_LOWER_SUM_H
#define TK_LOWER_SUM_H

#include "ir/ir.h"

enum { TK_SUM_TERMS = 8 };

// add + the terms, each with its sign, + count * (an element's place along `axis`), modulo 2 to the
// bits of `dtype`.
typedef struct tk_sum {
    bool known;
    tk_dtype dtype; // i32, i64
    uint8_t n;
    int8_t sign[TK_SUM_TERMS]; // 1, -1
    tk_vid term[TK_SUM_TERMS]; // scalars
    int64_t add;               // of at most 31 bits
    int axis;                  // -1: none, and count is 0
    int count;                 // 1, -1
    int64_t extent;            // of the axis; 1: none
} tk_sum;

tk_sum tk_sum_of(const tk_func *f, tk_vid v); // a scalar, or a tile: then `axis` is one of its own
tk_sum tk_sum_less(tk_sum x, tk_sum y);       // x - y
bool tk_sum_is_number(const tk_sum *s);       // `add` alone

// Of an op that broadcasts, permutes or reshapes: the axis of its result that is axis `axis` of its
// operand. A reshape puts axes of one element somewhere, or it is -1: not known.
int tk_axis_in_result(const tk_func *f, const tk_op *op, int axis);

#endif
