// SPDX-License-Identifier: Apache-2.0
//
// The casts between all pairs of element types, tk_cast_S_T. Part of num_inline.h, which explains
// the names. For each source type the list of types is gone through once; the class of the target
// chooses the macro, and VIA is the type with conversions in num_convert.h that the source goes
// through without loss.
#ifndef TK_LANG_NUM_CAST_H
#define TK_LANG_NUM_CAST_H

#include "lang/dtype.h"
#include "lang/num_convert.h"

#define TK_TO(VIA, ID)            TK_TO_PASTE(VIA, TK_SUFFIX_##ID)
#define TK_TO_PASTE(VIA, SUFFIX)  TK_TO_PASTED(VIA, SUFFIX)
#define TK_TO_PASTED(VIA, SUFFIX) tk_##VIA##_to_##SUFFIX

// From bool and integers; S the source's enumerator, SC its C type, D and DC the target's.
#define TK_CAST_INT_BOOL(S, SC, VIA, D, DC)                                                        \
    static inline DC TK_CAST(S, D)(SC x) { return (DC)(x != 0); }
#define TK_CAST_INT_SINT(S, SC, VIA, D, DC)                                                        \
    static inline DC TK_CAST(S, D)(SC x) { return (DC)x; }
#define TK_CAST_INT_UINT(S, SC, VIA, D, DC) TK_CAST_INT_SINT(S, SC, VIA, D, DC)
#define TK_CAST_INT_FLOAT(S, SC, VIA, D, DC)                                                       \
    static inline DC TK_CAST(S, D)(SC x) { return TK_TO(VIA, D)(x); }

// From floats. A cast to the same type must not touch the code: rounding it anew would lose the
// infinity of f8e5m2.
#define TK_CAST_FLOAT_BOOL(S, SC, VIA, D, DC)                                                      \
    static inline DC TK_CAST(S, D)(SC x) { return (DC)(TK_TO_FLOAT(S, VIA)(x) != 0); }
#define TK_CAST_FLOAT_SINT(S, SC, VIA, D, DC)                                                      \
    static inline DC TK_CAST(S, D)(SC x) { return TK_TO(f64, D)((double)TK_TO_FLOAT(S, VIA)(x)); }
#define TK_CAST_FLOAT_UINT(S, SC, VIA, D, DC) TK_CAST_FLOAT_SINT(S, SC, VIA, D, DC)
#define TK_CAST_FLOAT_FLOAT(S, SC, VIA, D, DC)                                                     \
    static inline DC TK_CAST(S, D)(SC x) {                                                         \
        const bool same = (int)TK_##S == (int)TK_##D;                                              \
        return same ? (DC)x : TK_TO(VIA, D)(TK_TO_FLOAT(S, VIA)(x));                               \
    }
#define TK_TO_FLOAT(S, VIA) TK_TO_PASTE(TK_SUFFIX_##S, VIA)

#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(BOOL, uint8_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(I8, int8_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(I16, int16_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(I32, int32_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(I64, int64_t, i64, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(U8, uint8_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(U16, uint16_t, i32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(U32, uint32_t, u32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_INT_##CLASS(U64, uint64_t, u64, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    TK_CAST_FLOAT_##CLASS(F8E4M3, uint8_t, f32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    TK_CAST_FLOAT_##CLASS(F8E5M2, uint8_t, f32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_FLOAT_##CLASS(F16, uint16_t, f32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_FLOAT_##CLASS(BF16, uint16_t, f32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_FLOAT_##CLASS(F32, float, f32, ID, CTYPE)
#include "lang/dtypes.def"
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_CAST_FLOAT_##CLASS(F64, double, f64, ID, CTYPE)
#include "lang/dtypes.def"

#undef TK_CAST_INT_BOOL
#undef TK_CAST_INT_SINT
#undef TK_CAST_INT_UINT
#undef TK_CAST_INT_FLOAT
#undef TK_CAST_FLOAT_BOOL
#undef TK_CAST_FLOAT_SINT
#undef TK_CAST_FLOAT_UINT
#undef TK_CAST_FLOAT_FLOAT
#undef TK_TO_FLOAT
#undef TK_TO
#undef TK_TO_PASTE
#undef TK_TO_PASTED

#endif
