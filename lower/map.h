// SPDX-License-Identifier: Apache-2.0
// Tensor maps. A tensor copy takes a box of a tensor that a map describes; the run time makes the
// maps of a launch from its tensors (runtime/tensor_map.h) and passes them as parameters.
#ifndef TK_LOWER_MAP_H
#define TK_LOWER_MAP_H

#include "ir/ir.h"
#include "lower/facts.h"

enum { TK_MAP_BYTES = 128, TK_MAP_ALIGN = 64, TK_MAP_BOX = 256 /* the most along a dimension */ };

typedef struct tk_map_spec {
    uint32_t param;            // of the kernel in the IR: a tensor that has TK_FACT_MAP
    uint32_t rank;             // the tensor's
    tk_dtype dtype;            // its elements'
    uint32_t box[TK_MAP_RANK]; // elements; dimensions count from the innermost on
    uint32_t span; // bytes in shared memory within which 16-byte units change places; 0: none do
    uint32_t tf32; // f32 that is rounded on its way, to nearest, ties to even; 0: no bit changes
} tk_map_spec;

typedef TK_VEC(tk_map_spec) tk_map_list;

#endif
