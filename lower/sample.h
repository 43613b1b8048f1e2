// SPDX-License-Identifier: Apache-2.0
// The integers of one program, the first of the grid if no other is named, in the first (or last,
// or a given) iteration of each loop, for tensors of given sizes.
//
// What a warp's accesses touch depends on addresses, and these on sizes. For notes, and for notes
// alone, they are taken as they would be in one program: what is computed of constants, sizes,
// numbers of programs and places in tiles is known, and scalars that are given are; what comes from
// memory is not.
#ifndef TK_LOWER_SAMPLE_H
#define TK_LOWER_SAMPLE_H

#include "ir/ir.h"

enum { TK_SAMPLE_LOOPS = 8 };

typedef struct tk_sample_iteration {
    const tk_op *loop;
    int64_t number;
} tk_sample_iteration;

typedef struct tk_sample {
    const tk_func *f;
    const int64_t *size;           // TK_MAX_TENSOR_RANK a parameter, -1: unknown; NULL: all are
    const tk_const *const *scalar; // of each parameter, NULL: not known; NULL: none is
    bool last;                     // iterations are the last ones
    tk_sample_iteration in[TK_SAMPLE_LOOPS]; // or these, of some loops
    uint32_t nin;
    const tk_op *ahead; // a loop whose index is taken to be `by` less; NULL: none
    int64_t by;
    int64_t program[TK_MAX_GRID]; // its number along each axis of the grid
    unsigned steps;               // that are left to find one value: what takes more is not known
} tk_sample;

// A tensor's size; -1: unknown.
int64_t tk_sample_size(const tk_sample *s, uint32_t param, uint32_t axis);
// Element number `element` of a tile, 0 of a scalar. False: not known.
bool tk_sample_value(tk_sample *s, tk_vid v, uint32_t element, tk_const *out);
bool tk_sample_int(tk_sample *s, tk_vid v, uint32_t element, int64_t *out);

// How often a loop runs; -1: not known.
int64_t tk_sample_trips(tk_sample *s, const tk_op *loop);
// Programs of the grid; -1: not known.
int64_t tk_sample_programs(tk_sample *s);
// Along an axis of the grid; -1: not known.
int64_t tk_sample_programs_along(tk_sample *s, uint32_t axis);

#endif
