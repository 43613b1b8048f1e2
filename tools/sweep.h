// SPDX-License-Identifier: Apache-2.0
// --sizes: values of sizes by name, and the points that they make: each combination of them.
//
//     M=16384,N=1024:65536:x2      N from 1024, each twice the one before, up to 65536
//     N=64:512:+64                 in steps of 64
//     N=781,1024,4096              one by one
#ifndef TKC_TOOLS_SWEEP_H
#define TKC_TOOLS_SWEEP_H

#include "tool.h"

enum { SWEEP_AXES = 8, SWEEP_POINTS = 1000 };

typedef struct sweep_axis {
    const char *name;
    int64_t *value;
    size_t n;
} sweep_axis;

typedef struct sweep {
    sweep_axis axis[SWEEP_AXES];
    size_t naxis;
    size_t npoint; // the last axis varies fastest; 1 where there is no axis
} sweep;

// text NULL: no sizes. False after an error of usage.
bool sweep_parse(tool *t, const char *text, sweep *out);
// One more axis, before the others, of these values; text NULL: none.
bool sweep_add_first(tool *t, sweep *s, const char *name, const char *text);
int64_t sweep_value(const sweep *s, size_t point, size_t axis);
// The axis of a name; naxis: none.
size_t sweep_find(const sweep *s, const char *name, size_t n);
// The text with names of sizes, between its brackets, as numbers.
const char *sweep_replace(tool *t, const sweep *s, size_t point, const char *text);

#endif
