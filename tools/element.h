// SPDX-License-Identifier: Apache-2.0
// Elements of tensors of any type and strides, one by one in row-major order.
#ifndef TKC_TOOLS_ELEMENT_H
#define TKC_TOOLS_ELEMENT_H

#include "tool.h"

// Holds each value of each type exactly where long double has 64 bits.
typedef long double wide;

typedef struct cursor {
    const tkc_tensor *x;
    size_t count, at;
    int64_t index[TKC_MAX_RANK];
    int64_t offset; // in elements
} cursor;

cursor cursor_make(const tkc_tensor *x);
void cursor_next(cursor *c); // at == count is the end
wide cursor_value(const cursor *c);

// "[3, 4]", "" for rank 0
const char *index_text(tool *t, uint32_t rank, const int64_t *index);
// "f32[3, 4]"
const char *shape_text(tool *t, const tkc_tensor *x);
// As short as tells it from its neighbours of the same type.
enum { VALUE_ROOM = 64 };
const char *value_text(char room[VALUE_ROOM], tkc_dtype dtype, wide v);

#endif
