// SPDX-License-Identifier: Apache-2.0
// What the caller of a compiled kernel promises of each tensor. Code compiled with a promise must
// only run where it holds; a promise never changes what is computed.
#ifndef TK_LOWER_FACTS_H
#define TK_LOWER_FACTS_H

#include <stdbool.h>

typedef struct tk_tensor_facts {
    bool unit_last; // the last dimension's stride is 1
    bool aligned16; // the address and all other strides (in bytes) are multiples of 16
} tk_tensor_facts;

#endif
