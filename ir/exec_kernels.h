// SPDX-License-Identifier: Apache-2.0
//
// Template: the element-wise kernels of one element type and their table. Before including, define
//     KERNEL_ID    the enumerator of the type without TK_
//     KERNEL_TYPE  its C type
//     KERNEL_ROW   the column of its class in numops.def: KERNEL_B, KERNEL_I, KERNEL_W or KERNEL_N
// Included once for each type. The macros that do not depend on the type are made the first time.

#ifndef KERNEL_MACROS
#define KERNEL_MACROS
#define KERNEL_PASTE(A, B, C)                 KERNEL_PASTED(A, B, C)
#define KERNEL_PASTED(A, B, C)                A##B##_##C
#define KERNEL_NAME(OP)                       KERNEL_PASTE(kernel_, OP, KERNEL_ID)
#define KERNEL_SUFFIX                         KERNEL_SUFFIX_OF(KERNEL_ID)
#define KERNEL_SUFFIX_OF(ID)                  KERNEL_SUFFIX_PASTED(ID)
#define KERNEL_SUFFIX_PASTED(ID)              TK_SUFFIX_##ID
#define KERNEL_FN(OP)                         TK_FN_PASTE(OP, KERNEL_SUFFIX)
#define KERNEL_B(NAME, ARITY, B, I, W, N, R)  KERNEL_MAKE_##B(NAME, ARITY, R)
#define KERNEL_I(NAME, ARITY, B, I, W, N, R)  KERNEL_MAKE_##I(NAME, ARITY, R)
#define KERNEL_W(NAME, ARITY, B, I, W, N, R)  KERNEL_MAKE_##W(NAME, ARITY, R)
#define KERNEL_N(NAME, ARITY, B, I, W, N, R)  KERNEL_MAKE_##N(NAME, ARITY, R)
#define KERNEL_EB(ID, NAME, B, I, W, N)       KERNEL_ENTRY_##B(ID, NAME)
#define KERNEL_EI(ID, NAME, B, I, W, N)       KERNEL_ENTRY_##I(ID, NAME)
#define KERNEL_EW(ID, NAME, B, I, W, N)       KERNEL_ENTRY_##W(ID, NAME)
#define KERNEL_EN(ID, NAME, B, I, W, N)       KERNEL_ENTRY_##N(ID, NAME)
#define KERNEL_ENTRY__(ID, NAME)
#define KERNEL_ENTRY_Y(ID, NAME)              [TK_NUM_##ID] = KERNEL_NAME(NAME),
#define KERNEL_ENTRY_S(ID, NAME)              [TK_NUM_##ID] = KERNEL_NAME(NAME),
#define KERNEL_OUT_SAME                       KERNEL_TYPE
#define KERNEL_OUT_BOOL                       uint8_t
#define KERNEL_OUT_I32                        int32_t
#define KERNEL_CALL_1(NAME)                   KERNEL_FN(NAME)(x[i])
#define KERNEL_CALL_2(NAME)                   KERNEL_FN(NAME)(x[i], y[i])
#define KERNEL_CALL_3(NAME)                   KERNEL_FN(NAME)(x[i], y[i], z[i])
#define KERNEL_MAKE__(NAME, ARITY, R)
#define KERNEL_MAKE_Y(NAME, ARITY, R)                                                              \
    static void KERNEL_NAME(NAME)(size_t n, void *out, const void *a, const void *b,               \
                                  const void *c) {                                                 \
        KERNEL_OUT_##R *o = out;                                                                   \
        const KERNEL_TYPE *x = a, *y = b, *z = c;                                                  \
        (void)y;                                                                                   \
        (void)z;                                                                                   \
        TK_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            o[i] = KERNEL_CALL_##ARITY(NAME);                                                      \
        }                                                                                          \
    }
#define KERNEL_MAKE_S(NAME, ARITY, R)                                                              \
    static void KERNEL_NAME(NAME)(size_t n, void *out, const void *a, const void *b,               \
                                  const void *c) {                                                 \
        KERNEL_TYPE *o = out;                                                                      \
        const uint8_t *x = a;                                                                      \
        const KERNEL_TYPE *y = b, *z = c;                                                          \
        TK_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            o[i] = KERNEL_FN(NAME)(x[i] != 0, y[i], z[i]);                                         \
        }                                                                                          \
    }
#endif

#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE)                                        \
    KERNEL_ROW(NAME, ARITY, B, I, W, N, RESULT)
#include "lang/numops.def"

static const tk_kernel KERNEL_PASTE(table, , KERNEL_ID)[TK_NUM_COUNT] = {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE) KERNEL_ENTRY(ID, NAME, B, I, W, N)
#include "lang/numops.def"
};

#undef KERNEL_ID
#undef KERNEL_TYPE
#undef KERNEL_ROW
#undef KERNEL_ENTRY
