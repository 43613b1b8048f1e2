// SPDX-License-Identifier: Apache-2.0
// Element types and tensors of the public interface.
#include "runtime/internal.h"

#include "lang/num.h"

#include <string.h>

// The public enum repeats the list of lang/dtypes.def; this fails to compile where they differ.
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    _Static_assert((int)TKC_##ID == (int)TK_##ID, "tkc_dtype follows lang/dtypes.def");
#include "lang/dtypes.def"

static bool known(tkc_dtype t) { return (unsigned)t < TK_DTYPE_COUNT; }

const char *tkc_dtype_name(tkc_dtype t) { return known(t) ? tk_dtype_name((tk_dtype)t) : NULL; }

size_t tkc_dtype_size(tkc_dtype t) { return known(t) ? tk_dtype_size((tk_dtype)t) : 0; }

bool tkc_dtype_from_name(const char *name, tkc_dtype *out) {
    tk_dtype t;
    if (!name || !out || !tk_dtype_from_name(name, strlen(name), &t)) {
        return false;
    }
    *out = (tkc_dtype)t;
    return true;
}

tkc_status tkc_convert(tkc_dtype to, void *dst, tkc_dtype from, const void *src, size_t n) {
    if (!known(to) || !known(from) || (n && (!dst || !src))) {
        return TKC_ERROR_ARGUMENT;
    }
    size_t out = tkc_dtype_size(to), in = tkc_dtype_size(from);
    for (size_t i = 0; i < n; i++) {
        tk_const x = tk_const_load((tk_dtype)from, (const char *)src + i * in);
        tk_const_store(tk_cast(x, (tk_dtype)to), (char *)dst + i * out);
    }
    return TKC_OK;
}

tkc_tensor tkc_tensor_make(void *data, tkc_dtype dtype, uint32_t rank, const int64_t *dim) {
    tkc_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.dtype = dtype;
    t.rank = rank;
    int64_t stride = 1;
    for (uint32_t i = rank < TKC_MAX_RANK ? rank : TKC_MAX_RANK; i-- > 0;) {
        t.dim[i] = dim[i];
        t.stride[i] = stride;
        // A tensor without elements, or with too many, has no meaningful strides; the launch looks
        // at the sizes.
        int64_t next;
        stride = __builtin_mul_overflow(stride, dim[i] > 0 ? dim[i] : 1, &next) ? 0 : next;
    }
    return t;
}
