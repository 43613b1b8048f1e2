// SPDX-License-Identifier: Apache-2.0
// See tensor_map.h.
#include "runtime/tensor_map.h"

#include <string.h>

enum { // the driver's numbers
    MAP_U8 = 0,
    MAP_U16 = 1,
    MAP_U32 = 2,
    MAP_S32 = 3,
    MAP_U64 = 4,
    MAP_S64 = 5,
    MAP_F16 = 6,
    MAP_F32 = 7,
    MAP_F64 = 8,
    MAP_BF16 = 9,
    MAP_TF32 = 11,
    MAP_L2_128B = 2, // what a copy reads is fetched into the second cache in such pieces
};

// Other copies change no bits, so that what the driver has no type for goes as integers.
static unsigned type_of(tk_dtype t) {
    switch (t) {
    case TK_BOOL:
    case TK_I8:
    case TK_U8:
    case TK_F8E4M3:
    case TK_F8E5M2:
        return MAP_U8;
    case TK_I16:
    case TK_U16:
        return MAP_U16;
    case TK_I32:
        return MAP_S32;
    case TK_U32:
        return MAP_U32;
    case TK_I64:
        return MAP_S64;
    case TK_U64:
        return MAP_U64;
    case TK_F16:
        return MAP_F16;
    case TK_BF16:
        return MAP_BF16;
    case TK_F32:
        return MAP_F32;
    case TK_F64:
        return MAP_F64;
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return MAP_U8;
}

// Of 32, 64 and 128 bytes: 1, 2 and 3.
static unsigned swizzle_of(uint32_t span) {
    return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0;
}

tensor_map tensor_map_of(const tkc_tensor *t, const tk_map_spec *s) {
    const uint64_t size = tk_dtype_size(s->dtype);
    tensor_map m = {.type = s->tf32 ? MAP_TF32 : type_of(s->dtype),
                    .rank = s->rank,
                    .address = (uint64_t)(uintptr_t)t->data,
                    .swizzle = swizzle_of(s->span),
                    .l2 = MAP_L2_128B};
    for (uint32_t d = 0; d < s->rank; d++) {
        const uint32_t axis = s->rank - 1 - d;
        m.dim[d] = (uint64_t)t->dim[axis];
        m.box[d] = s->box[d];
        m.step[d] = 1;
        if (d > 0) { // where there is one element its stride says nothing
            m.stride[d - 1] = t->dim[axis] > 1 ? (uint64_t)t->stride[axis] * size : 16;
        }
    }
    return m;
}

cu_result tensor_map_encode(const cuda_driver *d, const tkc_tensor *t, const tk_map_spec *s,
                            void *map) {
    const tensor_map m = tensor_map_of(t, s);
    return d->map_encode(map, (int)m.type, m.rank, (void *)(uintptr_t)m.address, m.dim, m.stride,
                         m.box, m.step, 0, (int)m.swizzle, (int)m.l2, 0);
}
