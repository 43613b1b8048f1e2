// SPDX-License-Identifier: Apache-2.0
//
// Scalar numerics on constants: picks the inline function for the operation and the types, and
// answers questions about operations and constants. All values come from num_inline.h.
#include "lang/num.h"

#include <string.h>

#include "lang/num_inline.h"

// --- the operations as data ---

enum { TAKES__ = 0, TAKES_Y = 1, TAKES_S = 1 };
enum { RESULT_SAME, RESULT_BOOL, RESULT_I32 };
enum { RULE_BOUND, RULE_EXACT };

typedef struct numop_row {
    const char *name;
    unsigned char arity;
    unsigned char takes_bool, takes_int, takes_wide, takes_narrow;
    unsigned char result;
    unsigned char rule;
} numop_row;

static const numop_row numop_rows[TK_NUM_COUNT] = {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE)                                        \
    [TK_NUM_##ID] = {#NAME,     ARITY,     TAKES_##B,       TAKES_##I,                             \
                     TAKES_##W, TAKES_##N, RESULT_##RESULT, RULE_##RULE},
#include "lang/numops.def"
};

static numop_row row_of(tk_numop op) {
    static const numop_row none = {"?", 0, 0, 0, 0, 0, RESULT_SAME, RULE_BOUND};
    return (unsigned)op < (unsigned)TK_NUM_COUNT ? numop_rows[op] : none;
}

const char *tk_numop_name(tk_numop op) { return row_of(op).name; }

unsigned tk_numop_arity(tk_numop op) { return row_of(op).arity; }

bool tk_numop_is_exact(tk_numop op) { return row_of(op).rule == RULE_EXACT; }

bool tk_numop_takes(tk_numop op, tk_dtype t) {
    const numop_row r = row_of(op);
    switch (tk_dtype_class(t)) {
    case TK_CLASS_NONE:
        return false;
    case TK_CLASS_BOOL:
        return r.takes_bool != 0;
    case TK_CLASS_SINT:
    case TK_CLASS_UINT:
        return r.takes_int != 0;
    case TK_CLASS_FLOAT:
        return (tk_dtype_is_narrow_float(t) ? r.takes_narrow : r.takes_wide) != 0;
    }
    return false;
}

tk_dtype tk_numop_result(tk_numop op, tk_dtype t) {
    const unsigned char result = row_of(op).result;
    return result == RESULT_BOOL ? TK_BOOL : result == RESULT_I32 ? TK_I32 : t;
}

bool tk_numop_from_name(const char *name, size_t n, tk_numop *out) {
    for (unsigned i = 0; i < TK_NUM_COUNT; i++) {
        if (strlen(numop_rows[i].name) == n && memcmp(numop_rows[i].name, name, n) == 0) {
            *out = (tk_numop)i;
            return true;
        }
    }
    return false;
}

// --- evaluation ---
// EVAL_<class> picks the column of its class, which says whether there is a function to call.

#define EVAL_PASTE(A, B)                        EVAL_PASTED(A, B)
#define EVAL_PASTED(A, B)                       A##B
#define EVAL_B(NAME, ARITY, B, I, W, N, RESULT) EVAL_CASE_##B(NAME, ARITY, RESULT)
#define EVAL_I(NAME, ARITY, B, I, W, N, RESULT) EVAL_CASE_##I(NAME, ARITY, RESULT)
#define EVAL_W(NAME, ARITY, B, I, W, N, RESULT) EVAL_CASE_##W(NAME, ARITY, RESULT)
#define EVAL_N(NAME, ARITY, B, I, W, N, RESULT) EVAL_CASE_##N(NAME, ARITY, RESULT)
#define EVAL_CASE__(NAME, ARITY, RESULT)        break;
#define EVAL_CASE_Y(NAME, ARITY, RESULT)                                                           \
    return EVAL_PUT_##RESULT(TK_FN_PASTE(NAME, EVAL_SUFFIX)(EVAL_ARGS_##ARITY));
#define EVAL_CASE_S(NAME, ARITY, RESULT)                                                           \
    return EVAL_PUT_##RESULT(TK_FN_PASTE(NAME, EVAL_SUFFIX)(a != 0, EVAL_GET(b), EVAL_GET(c)));
#define EVAL_GET(X)      TK_FN_PASTE(get, EVAL_SUFFIX)(X)
#define EVAL_ARGS_1      EVAL_GET(a)
#define EVAL_ARGS_2      EVAL_GET(a), EVAL_GET(b)
#define EVAL_ARGS_3      EVAL_GET(a), EVAL_GET(b), EVAL_GET(c)
#define EVAL_ARGS_SEL    a != 0, EVAL_GET(b), EVAL_GET(c)
#define EVAL_PUT_SAME(X) TK_FN_PASTE(put, EVAL_SUFFIX)(X)
#define EVAL_PUT_BOOL(X) ((X) ? 1 : 0)
#define EVAL_PUT_I32(X)  tk_put_i32(X)

#define EVAL_SUFFIX b1
#define EVAL_ROW    EVAL_B
#include "lang/num_eval.h"
#define EVAL_SUFFIX i8
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX i16
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX i32
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX i64
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX u8
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX u16
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX u32
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX u64
#define EVAL_ROW    EVAL_I
#include "lang/num_eval.h"
#define EVAL_SUFFIX f8e4m3
#define EVAL_ROW    EVAL_N
#include "lang/num_eval.h"
#define EVAL_SUFFIX f8e5m2
#define EVAL_ROW    EVAL_N
#include "lang/num_eval.h"
#define EVAL_SUFFIX f16
#define EVAL_ROW    EVAL_N
#include "lang/num_eval.h"
#define EVAL_SUFFIX bf16
#define EVAL_ROW    EVAL_N
#include "lang/num_eval.h"
#define EVAL_SUFFIX f32
#define EVAL_ROW    EVAL_W
#include "lang/num_eval.h"
#define EVAL_SUFFIX f64
#define EVAL_ROW    EVAL_W
#include "lang/num_eval.h"

static tk_const eval(tk_numop op, tk_dtype t, uint64_t a, uint64_t b, uint64_t c) {
    tk_const r = {tk_numop_result(op, t), 0};
    switch (t) {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    case TK_##ID:                                                                                  \
        r.bits = EVAL_PASTE(eval_, TK_SUFFIX_##ID)(op, a, b, c);                                   \
        break;
#include "lang/dtypes.def"
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return r;
}

tk_const tk_num_unary(tk_numop op, tk_dtype t, tk_const a) { return eval(op, t, a.bits, 0, 0); }

tk_const tk_num_binary(tk_numop op, tk_dtype t, tk_const a, tk_const b) {
    return eval(op, t, a.bits, b.bits, 0);
}

tk_const tk_num_ternary(tk_numop op, tk_dtype t, tk_const a, tk_const b, tk_const c) {
    return eval(op, t, a.bits, b.bits, c.bits);
}

tk_const tk_num_eval(tk_numop op, tk_dtype t, const tk_const *args) {
    const unsigned n = tk_numop_arity(op);
    return eval(op, t, n > 0 ? args[0].bits : 0, n > 1 ? args[1].bits : 0,
                n > 2 ? args[2].bits : 0);
}

tk_const tk_num_select(bool cond, tk_const a, tk_const b) { return cond ? a : b; }

// --- casts ---
// cast_SUFFIX: from one type to any. As many as there are types, each a switch over the targets.

#define CAST_TO(FROM, ID)                                                                          \
    case TK_##ID:                                                                                  \
        r.bits = TK_FN(put, ID)(TK_CAST(FROM, ID)(TK_FN(get, FROM)(x)));                           \
        break;

#define CAST_BEGIN(FROM)                                                                           \
    static tk_const EVAL_PASTE(cast_, TK_SUFFIX_##FROM)(uint64_t x, tk_dtype to) {                 \
        tk_const r = {to, 0};                                                                      \
        switch (to) {
#define CAST_END                                                                                   \
    case TK_DTYPE_COUNT:                                                                           \
    case TK_DTYPE_DEP:                                                                             \
        break;                                                                                     \
        }                                                                                          \
        return r;                                                                                  \
        }

CAST_BEGIN(BOOL)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(BOOL, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(I8)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(I8, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(I16)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(I16, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(I32)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(I32, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(I64)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(I64, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(U8)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(U8, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(U16)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(U16, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(U32)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(U32, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(U64)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(U64, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(F8E4M3)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(F8E4M3, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(F8E5M2)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(F8E5M2, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(F16)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(F16, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(BF16)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(BF16, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(F32)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(F32, ID)
#include "lang/dtypes.def"
CAST_END
CAST_BEGIN(F64)
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) CAST_TO(F64, ID)
#include "lang/dtypes.def"
CAST_END

tk_const tk_cast(tk_const x, tk_dtype to) {
    switch (x.dtype) {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    case TK_##ID:                                                                                  \
        return EVAL_PASTE(cast_, TK_SUFFIX_##ID)(x.bits, to);
#include "lang/dtypes.def"
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return (tk_const){to, 0};
}

// --- making and reading constants ---

tk_const tk_const_bool(bool x) { return (tk_const){TK_BOOL, x ? 1 : 0}; }

tk_const tk_const_i64(tk_dtype t, int64_t x) { return tk_cast((tk_const){TK_I64, (uint64_t)x}, t); }

tk_const tk_const_u64(tk_dtype t, uint64_t x) { return tk_cast((tk_const){TK_U64, x}, t); }

tk_const tk_const_f64(tk_dtype t, double x) {
    return tk_cast((tk_const){TK_F64, tk_f64_bits(x)}, t);
}

int64_t tk_const_as_i64(tk_const x) { return tk_get_i64(tk_cast(x, TK_I64).bits); }

double tk_const_as_f64(tk_const x) { return tk_f64_of_bits(tk_cast(x, TK_F64).bits); }

bool tk_const_is_nan(tk_const x) { return tk_num_unary(TK_NUM_ISNAN, x.dtype, x).bits != 0; }

bool tk_const_is_inf(tk_const x) { return tk_num_unary(TK_NUM_ISINF, x.dtype, x).bits != 0; }

bool tk_const_is_zero(tk_const x) { return tk_cast(x, TK_BOOL).bits == 0; }

bool tk_const_same(tk_const a, tk_const b) { return a.dtype == b.dtype && a.bits == b.bits; }

// The pattern of the greatest value, and for the least: all values of an order that has them.
static uint64_t greatest_bits(tk_dtype t) {
    switch (t) {
    case TK_BOOL:
        return 1;
    case TK_I8:
    case TK_I16:
    case TK_I32:
    case TK_I64:
        return UINT64_MAX >> (65 - tk_dtype_bits(t));
    case TK_U8:
    case TK_U16:
    case TK_U32:
    case TK_U64:
        return UINT64_MAX >> (64 - tk_dtype_bits(t));
    case TK_F8E4M3:
        return 0x7e; // 448
    case TK_F8E5M2:
        return 0x7c;
    case TK_F16:
        return 0x7c00;
    case TK_BF16:
        return 0x7f80;
    case TK_F32:
        return 0x7f800000;
    case TK_F64:
        return 0x7ff0000000000000;
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return 0;
}

tk_const tk_const_greatest(tk_dtype t) { return (tk_const){t, greatest_bits(t)}; }

// The sign bit alone for a signed integer, the sign bit added for a float.
tk_const tk_const_least(tk_dtype t) {
    tk_const r = {t, 0};
    if (tk_dtype_is_signed(t) || tk_dtype_is_float(t)) {
        r.bits = (uint64_t)1 << (tk_dtype_bits(t) - 1);
    }
    if (tk_dtype_is_float(t)) {
        r.bits |= greatest_bits(t);
    }
    return r;
}

static bool float_holds_int(tk_dtype t, uint64_t magnitude) {
    const tk_const exact = {TK_U64, magnitude};
    const tk_const rounded = tk_cast(exact, t);
    if (tk_const_is_inf(rounded)) {
        return false;
    }
    // 2^64 comes back saturated, as the greatest u64, which no float holds.
    return magnitude != UINT64_MAX && tk_cast(rounded, TK_U64).bits == magnitude;
}

bool tk_num_holds_int(tk_dtype t, bool negative, uint64_t magnitude) {
    switch (tk_dtype_class(t)) {
    case TK_CLASS_NONE:
    case TK_CLASS_BOOL:
        return false;
    case TK_CLASS_SINT:
        return magnitude <= greatest_bits(t) + (negative ? 1 : 0);
    case TK_CLASS_UINT:
        return magnitude <= greatest_bits(t) && (!negative || magnitude == 0);
    case TK_CLASS_FLOAT:
        return float_holds_int(t, magnitude);
    }
    return false;
}

// --- elements in memory ---

#define MEMORY_CASE(ID, CTYPE, DO)                                                                 \
    case TK_##ID: {                                                                                \
        CTYPE v;                                                                                   \
        DO;                                                                                        \
        break;                                                                                     \
    }

tk_const tk_const_load(tk_dtype t, const void *p) {
    tk_const r = {t, 0};
    switch (t) {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    MEMORY_CASE(ID, CTYPE, (memcpy(&v, p, sizeof v), r.bits = TK_FN(put, ID)(v)))
#include "lang/dtypes.def"
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return r;
}

void tk_const_store(tk_const x, void *p) {
    switch (x.dtype) {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    MEMORY_CASE(ID, CTYPE, (v = TK_FN(get, ID)(x.bits), memcpy(p, &v, sizeof v)))
#include "lang/dtypes.def"
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
}
