// SPDX-License-Identifier: Apache-2.0
//
// Element types: one table made from dtypes.def and the questions answered from it.
#include "lang/dtype.h"

#include <string.h>

typedef struct dtype_row {
    const char *name;
    size_t size;
    tk_dclass cls;
} dtype_row;

static const dtype_row dtype_rows[TK_DTYPE_COUNT] = {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_##ID] = {NAME, SIZE, TK_CLASS_##CLASS},
#include "lang/dtypes.def"
};

#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    _Static_assert(sizeof(CTYPE) == (SIZE), "the C type of " NAME " has another size");
#include "lang/dtypes.def"

static dtype_row row_of(tk_dtype t) {
    static const dtype_row none = {"?", 0, TK_CLASS_NONE};
    return (unsigned)t < (unsigned)TK_DTYPE_COUNT ? dtype_rows[t] : none;
}

const char *tk_dtype_name(tk_dtype t) { return row_of(t).name; }

tk_dclass tk_dtype_class(tk_dtype t) { return row_of(t).cls; }

size_t tk_dtype_size(tk_dtype t) { return row_of(t).size; }

unsigned tk_dtype_bits(tk_dtype t) { return (unsigned)(8 * row_of(t).size); }

bool tk_dtype_is_int(tk_dtype t) {
    tk_dclass c = row_of(t).cls;
    return c == TK_CLASS_SINT || c == TK_CLASS_UINT;
}

bool tk_dtype_is_signed(tk_dtype t) { return row_of(t).cls == TK_CLASS_SINT; }

bool tk_dtype_is_float(tk_dtype t) { return row_of(t).cls == TK_CLASS_FLOAT; }

bool tk_dtype_is_narrow_float(tk_dtype t) {
    dtype_row r = row_of(t);
    return r.cls == TK_CLASS_FLOAT && r.size < 4;
}

bool tk_dtype_from_name(const char *name, size_t n, tk_dtype *out) {
    for (unsigned i = 0; i < TK_DTYPE_COUNT; i++) {
        if (strlen(dtype_rows[i].name) == n && memcmp(dtype_rows[i].name, name, n) == 0) {
            *out = (tk_dtype)i;
            return true;
        }
    }
    return false;
}

bool tk_dtype_widens(tk_dtype from, tk_dtype to) {
    dtype_row f = row_of(from);
    dtype_row t = row_of(to);
    if (!tk_dtype_is_int(from) || !tk_dtype_is_int(to) || f.size >= t.size) {
        return false;
    }
    return f.cls == t.cls || t.cls == TK_CLASS_SINT;
}
