// SPDX-License-Identifier: Apache-2.0
// Between the files that count accesses (count.h): an access of a tensor in one program.
#ifndef TK_LOWER_COUNT_INTERNAL_H
#define TK_LOWER_COUNT_INTERNAL_H

#include "lower/count.h"
#include "lower/views.h"

typedef struct tk_counted {
    tk_sample *s;
    const tk_axis *x;
    const tk_op *op;
    const tk_view_plan *p;
    const tk_target *target;
    const tk_layout *l;
    tk_view_axes axes;
    uint32_t bytes; // of an element
    uint32_t param, rank;
    uint64_t stride[TK_MAX_TENSOR_RANK]; // bytes
    int64_t size[TK_MAX_TENSOR_RANK];    // -1: not known
    int64_t start[TK_MAX_TENSOR_RANK];   // but of tiles of indices
    tk_vid mask;
    uint32_t lane_part[32];            // of an element's number; the rest is the same in all lanes
    uint32_t lane_copies, warp_copies; // only a thread without these bits owns its elements
    bool all;                          // but all that hold one access it
    tk_view_count out;
} tk_counted;

static inline uint32_t tk_counted_coord(const tk_layout *l, uint32_t e, unsigned axis) {
    return e >> tk_layout_shift(l, axis) & ((1U << l->log_dim[axis]) - 1);
}
// Whether the access's mask lets element e pass; where that is not known it does.
bool tk_counted_passes(tk_counted *v, uint32_t e);

void tk_count_staged(tk_counted *v); // count_stage.c

#endif
