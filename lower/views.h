// SPDX-License-Identifier: Apache-2.0
// How the layouts of operands follow from the layout of a result: broadcasting, and the views of
// loads, stores and atomics.
#ifndef TK_LOWER_VIEWS_H
#define TK_LOWER_VIEWS_H

#include "ir/ir.h"
#include "ir/layout.h"

// The layout that a tile of shape `dim` must have to be stretched to a tile of layout l without
// moving: l with the stretched axes' bits dropped.
tk_layout tk_layout_project(const tk_layout *l, unsigned rank, const int64_t *dim);

// Where the entries of a view lie in its result: per dimension of the tensor the first axis of the
// result that the entry makes, and how many (0 for a scalar; 1 for a range; the rank of the common
// shape for tiles).
typedef struct tk_view_axes {
    uint32_t n; // dimensions of the tensor
    uint8_t first[TK_MAX_TENSOR_RANK];
    uint8_t count[TK_MAX_TENSOR_RANK];
    unsigned rank; // of the result
} tk_view_axes;
tk_view_axes tk_view_axes_of(const tk_func *f, const tk_op *op);

// A view's tile: a load's or atomic's result, a store's value; and its type.
tk_vid tk_view_value(const tk_func *f, const tk_op *op);
const tk_type *tk_view_type(const tk_func *f, const tk_op *op);

// The layout that the tile index of dimension `d` must have for a view of layout l.
tk_layout tk_view_index_layout(const tk_func *f, const tk_op *op, const tk_view_axes *v,
                               const tk_layout *l, uint32_t d);

// The register of a tile of layout `of` that holds, in every thread, the element with register part
// `e` (from a layout that it is a projection of). Registers of `of` are searched; UINT32_MAX where
// there is none.
uint32_t tk_layout_register(const tk_layout *of, uint32_t e);
// The element of a projected tile (rank, dim) under element e of layout l.
uint32_t tk_layout_project_element(const tk_layout *l, unsigned rank, const int64_t *dim,
                                   uint32_t e);

#endif
