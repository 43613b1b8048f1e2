// SPDX-License-Identifier: Apache-2.0
// The layout of a shape, which its loads, stores and ops across threads have: see pass_layout.c.
#ifndef TK_LOWER_SHAPES_H
#define TK_LOWER_SHAPES_H

#include "ir/layout.h"
#include "lower/lower.h"

typedef struct tk_shape_rule {
    struct tk_shape_rule *next;
    const tk_type *type;
    int64_t votes[TK_MAX_RANK]; // elements accessed contiguously along each axis
    unsigned bytes;             // of the narrowest type accessed directly; 0: none
    unsigned common;            // the same of what all programs read
    unsigned stored[2];         // of the widest type stored directly, outside of loops and in them
    bool looped;                // something of it is accessed in a loop
    unsigned staged;            // of that whose rows go through shared memory; 0: none
    bool apart;                 // rows that are not aligned are accessed element by element
    const tk_type *part;        // the smallest part that is inserted or extracted; NULL: none
    const tk_type *from;        // what is reshaped to it; NULL: nothing
    const tk_layout *layout;    // once asked for
    const tk_layout *product;   // of products by a matrix unit; NULL: there are none
} tk_shape_rule;

typedef struct tk_shapes {
    tk_pass_ctx *c;
    tk_func *f;
    tk_arena *a; // the module's: layouts stay
    unsigned log_warps;
    tk_shape_rule *rules;
} tk_shapes;

tk_shape_rule *tk_shape_rule_of(tk_shapes *s, const tk_type *t);
// Sees what the function's ops access, and how.
void tk_shape_votes(tk_shapes *s);
const tk_layout *tk_shape_layout(tk_shapes *s, const tk_type *t);
// The layout of a tile of type t whose parts are in layout l.
const tk_layout *tk_shape_grown(tk_shapes *s, const tk_layout *l, const tk_type *t);

#endif
