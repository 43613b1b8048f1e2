// SPDX-License-Identifier: Apache-2.0
// What the caller of a compiled kernel promises of each tensor. Code compiled with a promise must
// only run where it holds; a promise never changes what is computed.
#ifndef TK_LOWER_FACTS_H
#define TK_LOWER_FACTS_H

#include <stdint.h>

// TK_FACT(ID, text): bit TK_FACT_ID of a tensor's facts.
//   UNIT       the last dimension's stride is 1
//   ALIGNED    the address and all other strides (in bytes) are multiples of 16; with UNIT
//   WHOLE      the last dimension's size (in bytes) is a multiple of 16; with ALIGNED
//   NEAR       (size - 1) * |stride| summed over the dimensions is at most TK_NEAR; 0 without
//   elements
//   MAP        a tensor map can be made of it: 1 to TK_MAP_RANK dimensions, none without elements;
//   the strides (in bytes) of those with several, but for the last, above 0 and below
//   TK_MAP_STRIDE; with ALIGNED. Only tensor copies count on it: code that needs no map of a tensor
//   does not
#define TK_FACTS(TK_FACT)                                                                          \
    TK_FACT(UNIT, "last stride 1")                                                                 \
    TK_FACT(ALIGNED, "aligned to 16 bytes")                                                        \
    TK_FACT(WHOLE, "rows of whole 16 bytes")                                                       \
    TK_FACT(NEAR, "offsets of 32 bits")                                                            \
    TK_FACT(MAP, "strides for tensor maps")

enum {
#define TK_FACT(ID, TEXT) TK_FACT_NUMBER_##ID,
    TK_FACTS(TK_FACT)
#undef TK_FACT
        TK_FACT_COUNT
};

typedef enum tk_fact {
#define TK_FACT(ID, TEXT) TK_FACT_##ID = 1 << TK_FACT_NUMBER_##ID,
    TK_FACTS(TK_FACT)
#undef TK_FACT
} tk_fact;

typedef unsigned tk_tensor_facts; // tk_fact bits

// Elements: room for a coordinate of a tile (below 2^24) is left to 2^31.
#define TK_NEAR (INT32_MAX - (INT64_C(1) << 25))

enum { TK_MAP_RANK = 5 };
#define TK_MAP_STRIDE (INT64_C(1) << 40)

#endif
