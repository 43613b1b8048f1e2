// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels of bool and the integers.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

#define KERNEL_ID    BOOL
#define KERNEL_TYPE  uint8_t
#define KERNEL_ROW   KERNEL_B
#define KERNEL_ENTRY KERNEL_EB
#include "ir/exec_kernels.def"
#define KERNEL_ID    I8
#define KERNEL_TYPE  int8_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    I16
#define KERNEL_TYPE  int16_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    I32
#define KERNEL_TYPE  int32_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    I64
#define KERNEL_TYPE  int64_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    U8
#define KERNEL_TYPE  uint8_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    U16
#define KERNEL_TYPE  uint16_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    U32
#define KERNEL_TYPE  uint32_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"
#define KERNEL_ID    U64
#define KERNEL_TYPE  uint64_t
#define KERNEL_ROW   KERNEL_I
#define KERNEL_ENTRY KERNEL_EI
#include "ir/exec_kernels.def"

tk_kernel tk_elem_kernel(tk_numop op, tk_dtype t) {
    switch (t) {
    case TK_BOOL:
        return table_BOOL[op];
    case TK_I8:
        return table_I8[op];
    case TK_I16:
        return table_I16[op];
    case TK_I32:
        return table_I32[op];
    case TK_I64:
        return table_I64[op];
    case TK_U8:
        return table_U8[op];
    case TK_U16:
        return table_U16[op];
    case TK_U32:
        return table_U32[op];
    case TK_U64:
        return table_U64[op];
    case TK_F8E4M3:
    case TK_F8E5M2:
    case TK_F16:
    case TK_BF16:
    case TK_F32:
    case TK_F64:
        return tk_float_kernel(op, t);
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return NULL;
}
