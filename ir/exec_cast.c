// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the casts between all pairs of element types.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

#include <string.h>

#define CAST_NAME(FROM, TO) cast_##FROM##_##TO
#define CAST_KERNEL(FROM, FC, TO, TC)                                                              \
    static void CAST_NAME(FROM, TO)(size_t n, void *out, const void *a, const void *b,             \
                                    const void *c) {                                               \
        TC *o = out;                                                                               \
        const FC *x = a;                                                                           \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        TK_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            o[i] = TK_CAST(FROM, TO)(x[i]);                                                        \
        }                                                                                          \
    }

#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(BOOL, uint8_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(I8, int8_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(I16, int16_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(I32, int32_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(I64, int64_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(U8, uint8_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(U16, uint16_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(U32, uint32_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(U64, uint64_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(F8E4M3, uint8_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(F8E5M2, uint8_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(F16, uint16_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(BF16, uint16_t, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(F32, float, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_KERNEL(F64, double, ID, CTYPE)
#include "lang/dtypes.def"

static const tk_kernel table[TK_DTYPE_COUNT][TK_DTYPE_COUNT] = {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_BOOL][TK_##ID] = CAST_NAME(BOOL, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_I8][TK_##ID] = CAST_NAME(I8, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_I16][TK_##ID] = CAST_NAME(I16, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_I32][TK_##ID] = CAST_NAME(I32, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_I64][TK_##ID] = CAST_NAME(I64, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_U8][TK_##ID] = CAST_NAME(U8, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_U16][TK_##ID] = CAST_NAME(U16, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_U32][TK_##ID] = CAST_NAME(U32, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_U64][TK_##ID] = CAST_NAME(U64, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_F8E4M3][TK_##ID] = CAST_NAME(F8E4M3, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_F8E5M2][TK_##ID] = CAST_NAME(F8E5M2, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_F16][TK_##ID] = CAST_NAME(F16, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_BF16][TK_##ID] = CAST_NAME(BF16, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_F32][TK_##ID] = CAST_NAME(F32, ID),
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) [TK_F64][TK_##ID] = CAST_NAME(F64, ID),
#include "lang/dtypes.def"
};

tk_kernel tk_cast_kernel(tk_dtype from, tk_dtype to) { return table[from][to]; }

#define BITS_KERNEL(SIZE)                                                                          \
    static void bits_##SIZE(size_t n, void *out, const void *a, const void *b, const void *c) {    \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        memmove(out, a, n *SIZE);                                                                  \
    }
BITS_KERNEL(1)
BITS_KERNEL(2)
BITS_KERNEL(4)
BITS_KERNEL(8)

tk_kernel tk_bits_kernel(size_t size) {
    return size == 1 ? bits_1 : size == 2 ? bits_2 : size == 4 ? bits_4 : bits_8;
}
