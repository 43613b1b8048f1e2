// SPDX-License-Identifier: Apache-2.0
// Tensor maps, decoded: which bytes of global memory a box has, and where they lie in shared
// memory.
#ifndef TK_SIM_TENSOR_H
#define TK_SIM_TENSOR_H

#include "sim/machine.h"

// What a map's 128 bytes hold. Any bytes may be there: tk_sim_tensor_decode checks.
typedef struct tk_sim_map_fields {
    uint64_t magic, address;
    uint64_t stride[TK_SIM_MAP_RANK - 1]; // bytes, of dimensions 1 and up
    uint32_t last[TK_SIM_MAP_RANK];       // extent - 1
    uint16_t box[TK_SIM_MAP_RANK];
    uint8_t step[TK_SIM_MAP_RANK];
    uint8_t type, rank, interleave, swizzle, l2, fill;
} tk_sim_map_fields;

enum {
    TK_SIM_MAP_ALIGN = 64,
    TK_SIM_MAP_BEGIN = 8 // bytes by which maps are known
};
bool tk_sim_tensor_begins(const unsigned char *map);

typedef struct tk_sim_tensor {
    unsigned char raw[TK_SIM_MAP_BYTES]; // what it was decoded from
    uint64_t address;
    uint64_t dim[TK_SIM_MAP_RANK], stride[TK_SIM_MAP_RANK]; // elements; bytes
    uint32_t count[TK_SIM_MAP_RANK], step[TK_SIM_MAP_RANK]; // of the box in shared memory
    uint32_t rank, element;                                 // bytes of an element
    uint64_t bytes;                                         // of the whole box in shared memory
    tk_sim_map_type type;
    uint32_t swizzle; // mask of the bits that are swapped: 0, 1, 3, 7
    bool nan_fill;
} tk_sim_tensor;

// NULL, or what is wrong with the map. *out is of the arena.
const char *tk_sim_tensor_decode(tk_arena *arena, const void *map, tk_sim_tensor *out);

// A row of the box: its elements from `first` on, `n` of them, lie in the tensor, from `address`
// on.
typedef struct tk_sim_tensor_row {
    uint32_t offset; // of its element 0 in the box, in bytes, before swizzling
    uint32_t first, n;
    uint64_t address;
} tk_sim_tensor_row;
uint32_t tk_sim_tensor_rows(const tk_sim_tensor *t);
void tk_sim_tensor_row_at(const tk_sim_tensor *t, const int32_t *at, uint32_t k,
                          tk_sim_tensor_row *out);

// Where a byte of the box lies that begins at `offset` of shared memory. Pieces of 16 bytes stay
// together; tk_sim_tensor_whole: all bytes lie in one piece, though not in their order.
uint32_t tk_sim_tensor_place(const tk_sim_tensor *t, uint32_t offset, uint32_t byte);
bool tk_sim_tensor_whole(const tk_sim_tensor *t);
// What shared memory gets for an element of the tensor, or for one outside.
void tk_sim_tensor_convert(const tk_sim_tensor *t, unsigned char *element, bool inside);
// The type as which elements are reduced: of logic, of numbers.
tk_sim_type tk_sim_tensor_type(const tk_sim_tensor *t, bool logic);

#endif
