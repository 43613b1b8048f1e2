// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include "runtime/internal.h"

#include "lang/num.h"

static bool known(tkc_dtype t) { return (unsigned)t < TK_DTYPE_COUNT; }

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
