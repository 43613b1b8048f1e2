// SPDX-License-Identifier: Apache-2.0
// Random programs of integers, as IR text: each value that they make is stored, at a number that
// says in which run and in which rounds of the loops around it. For test_axis_random.c.
#ifndef TKC_TESTS_AXIS_GEN_H
#define TKC_TESTS_AXIS_GEN_H

#include "lang/base.h"
#include "lang/dtype.h"

enum {
    AXIS_VALUES = 120, // of a program, at most
    AXIS_TENSORS = 4,  // whose sizes are used
    AXIS_RUNS = 3,
    AXIS_OUTER = 8, // rounds of a loop, and of one inside it
    AXIS_INNER = 4,
    AXIS_SLOTS = AXIS_RUNS * AXIS_OUTER * AXIS_INNER,
    AXIS_TEXT = 1 << 16,
    AXIS_TYPES = 9,
};

typedef struct axis_shape {
    unsigned rank;
    int64_t dim[2];
} axis_shape;
extern const axis_shape axis_shapes[];
extern const tk_dtype axis_types[AXIS_TYPES]; // bool and the integers

typedef struct axis_val {
    tk_dtype t;
    int shape;
    bool visible;
} axis_val;

typedef struct axis_gen {
    uint64_t seed;
    int n, depth;
    char slot[3][32]; // the names of the numbers, by depth
    axis_val v[AXIS_VALUES];
    char text[AXIS_TEXT];
    size_t at;
} axis_gen;

int axis_pick(axis_gen *g, int n); // 0 .. n - 1
uint64_t axis_next(axis_gen *g);
// A kernel of about n ops: %slot, %t0.. (sizes), %in_TYPE (128 elements), %outK for value %vK.
const char *axis_program(axis_gen *g, tk_arena *a, uint64_t seed, int n);

#endif
