// SPDX-License-Identifier: Apache-2.0
//
// Template, included by num.c once for each element type: the function eval_SUFFIX, which runs one
// operation on patterns of that type. Before including, define
//     EVAL_SUFFIX       the type's suffix, as in num_inline.h
//     EVAL_ROW          the row of its class: EVAL_B, EVAL_I, EVAL_W or EVAL_N
// Both are undefined again at the end. It has no include guard on purpose.

#define EVAL_NAME_OF(SUFFIX) EVAL_PASTE(eval_, SUFFIX)

static uint64_t EVAL_NAME_OF(EVAL_SUFFIX)(tk_numop op, uint64_t a, uint64_t b, uint64_t c) {
    (void)b;
    (void)c;
    switch (op) {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE)                                        \
    case TK_NUM_##ID:                                                                              \
        EVAL_ROW(NAME, ARITY, B, I, W, N, RESULT)
#include "lang/numops.def"
    case TK_NUM_COUNT:
        break;
    }
    return 0;
}

#undef EVAL_NAME_OF
#undef EVAL_SUFFIX
#undef EVAL_ROW
