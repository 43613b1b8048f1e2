// SPDX-License-Identifier: Apache-2.0
//
// Every scalar operation and cast as a static inline function on C values, for tight loops. The
// rules are in num.h; this header is how they are computed, and num.c only dispatches to it.
//
// Names. Each element type has a suffix: i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32
// f64, and b1 for bool (whose C type is uint8_t, always 0 or 1). The C type is CTYPE of dtypes.def;
// floats of fewer than 32 bits are passed as their codes.
//   tk_OP_T(a, b...)   operation OP of numops.def on type T: int32_t tk_div_i32(int32_t, int32_t),
//                      float tk_max_f32(float, float), uint16_t tk_add_f16(uint16_t, uint16_t).
//                      Comparisons, isnan and isinf return bool; popcount and clz int32_t; all
//                      others T. They exist for the pairs that numops.def marks with Y or S.
//   tk_cast_S_T(x)     the language's cast from S to T, all 15 x 15 pairs
//   tk_S_to_T(x)       the conversions that the casts are made of (num_convert.h)
//   tk_get_T(bits), tk_put_T(x)   between a tk_const's pattern and the C value
// From the enumerators of the X-macro lists: TK_FN(add, I8) is tk_add_i8, TK_CAST(I8, F32) is
// tk_cast_i8_f32.
//
// num_convert.h conversions; num_cast.h the casts; num_int.h bool and integers; num_float.h floats
#ifndef TK_LANG_NUM_INLINE_H
#define TK_LANG_NUM_INLINE_H

#define TK_SUFFIX_BOOL   b1
#define TK_SUFFIX_I8     i8
#define TK_SUFFIX_I16    i16
#define TK_SUFFIX_I32    i32
#define TK_SUFFIX_I64    i64
#define TK_SUFFIX_U8     u8
#define TK_SUFFIX_U16    u16
#define TK_SUFFIX_U32    u32
#define TK_SUFFIX_U64    u64
#define TK_SUFFIX_F8E4M3 f8e4m3
#define TK_SUFFIX_F8E5M2 f8e5m2
#define TK_SUFFIX_F16    f16
#define TK_SUFFIX_BF16   bf16
#define TK_SUFFIX_F32    f32
#define TK_SUFFIX_F64    f64

#define TK_FN(OP, ID)            TK_FN_PASTE(OP, TK_SUFFIX_##ID)
#define TK_FN_PASTE(OP, SUFFIX)  TK_FN_PASTED(OP, SUFFIX)
#define TK_FN_PASTED(OP, SUFFIX) tk_##OP##_##SUFFIX
#define TK_CAST(FROM, TO)        TK_CAST_PASTE(TK_SUFFIX_##FROM, TK_SUFFIX_##TO)
#define TK_CAST_PASTE(S, T)      TK_CAST_PASTED(S, T)
#define TK_CAST_PASTED(S, T)     tk_cast_##S##_##T

#include "lang/num_convert.h"

#include "lang/num_cast.h"

#include "lang/num_int.h"

#include "lang/num_float.h"

#endif
