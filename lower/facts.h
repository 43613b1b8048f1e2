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
#define TK_FACTS(TK_FACT)                                                                          \
    TK_FACT(UNIT, "last stride 1")                                                                 \
    TK_FACT(ALIGNED, "aligned to 16 bytes")                                                        \
    TK_FACT(WHOLE, "rows of whole 16 bytes")                                                       \
    TK_FACT(NEAR, "offsets of 32 bits")

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

#endif
