// SPDX-License-Identifier: Apache-2.0
// Tensor copies of a tile: one instruction of one thread brings a box of a tensor into shared
// memory, by a tensor map (map.h). A tile that lies there as tk_layout_placed has it is one box or
// several, one after the other: all rows of a panel, or as many as a box has, and where there is
// one panel, what the axes outside count. Rows that stand alone are one piece each. What is outside
// the tensor is zero, as it is for loads.
#ifndef TK_LOWER_BOX_H
#define TK_LOWER_BOX_H

#include "lower/axis.h"
#include "lower/map.h"
#include "lower/target.h"

typedef struct tk_boxes {
    tk_map_spec map;
    uint32_t n;                   // boxes of the tile
    uint32_t elems;               // of a box: box i lies at element i * elems of the tile's place
    int axis[TK_MAX_TENSOR_RANK]; // of the tile along each dimension of the tensor; -1: none
} tk_boxes;

// The boxes of a view (a load, a fetch, a store) by the types alone. NULL, or why there are none.
// Where the programs of a cluster fill a ring together, there are as many for each of them.
const char *tk_boxes_of(const tk_func *f, const tk_op *op, tk_boxes *out);

// Why the view is not brought by tensor copies for a target; NULL: it may be.
const char *tk_boxes_why_not(const tk_axis *x, const tk_target *t, const tk_op *op,
                             unsigned log_warps);

// The maps of a function's fetches and stores, each once, in their order.
void tk_maps_of(tk_arena *arena, const tk_func *f, tk_map_list *out);
uint32_t tk_map_find(const tk_map_list *list, const tk_map_spec *s); // its place; list->n: none

#endif
