// SPDX-License-Identifier: Apache-2.0
// Elements of tensors of any type and strides, and their text.
#include "element.h"
#include "array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cursor cursor_make(const tkc_tensor *x) {
    cursor c = {.x = x};
    size_t bytes;
    tensor_size(x->rank, x->dim, 1, &c.count, &bytes);
    return c;
}

void cursor_next(cursor *c) {
    c->at++;
    for (uint32_t d = c->x->rank; d-- > 0;) {
        c->offset += c->x->stride[d];
        if (++c->index[d] < c->x->dim[d]) {
            return;
        }
        c->offset -= c->x->stride[d] * c->x->dim[d];
        c->index[d] = 0;
    }
}

wide cursor_value(const cursor *c) {
    size_t elem = tkc_dtype_size(c->x->dtype);
    const void *p = (const char *)c->x->data + c->offset * (int64_t)elem;
    double d = 0;
    if (dtype_is_float(c->x->dtype)) {
        tkc_convert(TKC_F64, &d, c->x->dtype, p, 1);
        return d;
    }
    if (c->x->dtype == TKC_U64) {
        uint64_t u;
        memcpy(&u, p, sizeof u);
        return (wide)u;
    }
    int64_t i = 0;
    tkc_convert(TKC_I64, &i, c->x->dtype, p, 1);
    return (wide)i;
}

const char *index_text(tool *t, uint32_t rank, const int64_t *index) {
    char s[TKC_MAX_RANK * 24 + 4] = "";
    for (uint32_t d = 0; d < rank; d++) {
        size_t n = strlen(s);
        snprintf(s + n, sizeof s - n, "%s%lld", d ? ", " : "[", (long long)index[d]);
    }
    return tool_format(t, "%s%s", s, rank ? "]" : "");
}

const char *shape_text(tool *t, const tkc_tensor *x) {
    return tool_format(t, "%s%s", tkc_dtype_name(x->dtype), index_text(t, x->rank, x->dim));
}

static bool same_as(tkc_dtype dtype, double v, const char *text) {
    double read = strtod(text, NULL);
    unsigned char a[8] = {0}, b[8] = {0};
    tkc_convert(dtype, a, TKC_F64, &v, 1);
    tkc_convert(dtype, b, TKC_F64, &read, 1);
    return memcmp(a, b, sizeof a) == 0;
}

const char *value_text(char room[VALUE_ROOM], tkc_dtype dtype, wide v) {
    if (dtype == TKC_BOOL) {
        return v != 0 ? "true" : "false";
    }
    if (!dtype_is_float(dtype)) {
        snprintf(room, VALUE_ROOM, "%.0Lf", v);
        return room;
    }
    if (isnan(v) || isinf(v)) {
        return isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
    }
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(room, VALUE_ROOM, "%.*g", digits, (double)v);
        if (same_as(dtype, (double)v, room)) {
            break;
        }
    }
    if (fabsl(v) >= 10 && fabsl(v) < 1e7L && strchr(room, 'e')) { // 448, not 4.5e+02
        snprintf(room, VALUE_ROOM, "%.0Lf", v);
    }
    return room;
}
