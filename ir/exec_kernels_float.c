// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels of the floats.
#include "ir/exec_internal.h"
#include "lang/num_inline.h"

#define KERNEL_ID    F8E4M3
#define KERNEL_TYPE  uint8_t
#define KERNEL_ROW   KERNEL_N
#define KERNEL_ENTRY KERNEL_EN
#include "ir/exec_kernels.def"
#define KERNEL_ID    F8E5M2
#define KERNEL_TYPE  uint8_t
#define KERNEL_ROW   KERNEL_N
#define KERNEL_ENTRY KERNEL_EN
#include "ir/exec_kernels.def"
#define KERNEL_ID    F16
#define KERNEL_TYPE  uint16_t
#define KERNEL_ROW   KERNEL_N
#define KERNEL_ENTRY KERNEL_EN
#include "ir/exec_kernels.def"
#define KERNEL_ID    BF16
#define KERNEL_TYPE  uint16_t
#define KERNEL_ROW   KERNEL_N
#define KERNEL_ENTRY KERNEL_EN
#include "ir/exec_kernels.def"
#define KERNEL_ID    F32
#define KERNEL_TYPE  float
#define KERNEL_ROW   KERNEL_W
#define KERNEL_ENTRY KERNEL_EW
#include "ir/exec_kernels.def"
#define KERNEL_ID    F64
#define KERNEL_TYPE  double
#define KERNEL_ROW   KERNEL_W
#define KERNEL_ENTRY KERNEL_EW
#include "ir/exec_kernels.def"

tk_kernel tk_float_kernel(tk_numop op, tk_dtype t) {
    switch (t) {
    case TK_F8E4M3:
        return table_F8E4M3[op];
    case TK_F8E5M2:
        return table_F8E5M2[op];
    case TK_F16:
        return table_F16[op];
    case TK_BF16:
        return table_BF16[op];
    case TK_F32:
        return table_F32[op];
    case TK_F64:
        return table_F64[op];
    case TK_BOOL:
    case TK_I8:
    case TK_I16:
    case TK_I32:
    case TK_I64:
    case TK_U8:
    case TK_U16:
    case TK_U32:
    case TK_U64:
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return NULL;
}
