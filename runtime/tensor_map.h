// SPDX-License-Identifier: Apache-2.0
// Tensor maps of a launch: from what a kernel needs (lower/map.h) and a tensor that has
// TK_FACT_MAP. Needs no context and no memory: libtkc and libtkcrt share it.
#ifndef TKC_RUNTIME_TENSOR_MAP_H
#define TKC_RUNTIME_TENSOR_MAP_H

#include "lower/map.h"
#include "runtime/cuda_abi.h"
#include "runtime/tkc.h"

// The arguments of cuTensorMapEncodeTiled, in its numbers; dimensions count from the innermost on.
typedef struct tensor_map {
    unsigned type, rank;
    uint64_t address;
    uint64_t dim[TK_MAP_RANK];        // elements
    uint64_t stride[TK_MAP_RANK - 1]; // bytes, from dimension 1 on
    uint32_t box[TK_MAP_RANK], step[TK_MAP_RANK];
    unsigned swizzle, l2;
} tensor_map;

enum { TK_MOST_SLOTS = 4096 }; // parameters of a kernel: the driver takes so many bytes of them

tensor_map tensor_map_of(const tkc_tensor *t, const tk_map_spec *s);
// The driver's map, of TK_MAP_BYTES at a multiple of TK_MAP_ALIGN. With a context current.
cu_result tensor_map_encode(const cuda_driver *d, const tkc_tensor *t, const tk_map_spec *s,
                            void *map);

#endif
