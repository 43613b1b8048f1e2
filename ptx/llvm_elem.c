// SPDX-License-Identifier: Apache-2.0
// One element of the element-wise operations, with the values of lang/num_int.h and
// lang/num_float.h; the element-wise ops, bitcast and philox on whole tiles.
//
// Floats of 16 bits are computed in f32 and rounded once; where the hardware has the operation in
// the type, LLVM finds that it gives the same. What expands into several operations (the remainder
// of floats, functions with an error bound) was expanded by an earlier pass; what is left of it
// here is the hardware's approximation.
#include "lower/known.h"
#include "ptx/llvm_across.h"

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }
static bool is_wide(tk_dtype t) { return t == TK_F32 || t == TK_F64; }

// "llvm.floor" and f32 make llvm.floor.f32.
static LLVMValueRef generic(tk_emit *e, const char *name, tk_dtype t, LLVMTypeRef result,
                            uint32_t n, LLVMValueRef *arg) {
    const char *suffix = t == TK_F16    ? "f16"
                         : t == TK_BF16 ? "bf16"
                         : t == TK_F32  ? "f32"
                         : t == TK_F64  ? "f64"
                                        : tk_format(e->arena, "i%u", tk_dtype_bits(t));
    return tk_emit_intrinsic(e, tk_format(e->arena, "%s.%s", name, suffix), result, n, arg);
}

// ---- Integers -----------------------------------------------------------------------------------

static LLVMValueRef int_div(tk_emit *e, bool is_signed, LLVMValueRef a, LLVMValueRef b, bool rem) {
    LLVMValueRef zero = tk_ll_k(a, 0), one = tk_ll_k(a, 1), no = tk_ll_is(e, b, 0);
    if (!is_signed) {
        LLVMValueRef d = tk_ll_sel(e, no, one, b);
        return rem ? tk_ll_sel(e, no, a, LLVMBuildURem(e->b, a, d, ""))
                   : tk_ll_sel(e, no, zero, LLVMBuildUDiv(e->b, a, d, ""));
    }
    LLVMValueRef minus = tk_ll_icmp(e, LLVMIntEQ, b, LLVMConstAllOnes(LLVMTypeOf(b)));
    LLVMValueRef d = tk_ll_sel(e, tk_ll_or(e, no, minus), one, b);
    if (rem) {
        return tk_ll_sel(e, no, a, LLVMBuildSRem(e->b, a, d, ""));
    }
    LLVMValueRef q = LLVMBuildSDiv(e->b, a, d, "");
    q = tk_ll_sel(e, minus, LLVMBuildNeg(e->b, a, ""), q);
    return tk_ll_sel(e, no, zero, q);
}

static LLVMValueRef int_cdiv(tk_emit *e, bool is_signed, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef zero = tk_ll_k(a, 0);
    LLVMValueRef q = int_div(e, is_signed, a, b, false), r = int_div(e, is_signed, a, b, true);
    LLVMValueRef up = tk_ll_icmp(e, LLVMIntNE, r, zero);
    up = tk_ll_and(e, up, tk_ll_icmp(e, LLVMIntNE, b, zero));
    if (is_signed) {
        LLVMValueRef signs = tk_ll_xor(e, a, b);
        up = tk_ll_and(e, up, tk_ll_icmp(e, LLVMIntSGE, signs, zero));
    }
    return tk_ll_add(e, q, LLVMBuildZExt(e->b, up, LLVMTypeOf(a), ""));
}

static LLVMValueRef int_shift(tk_emit *e, tk_numop op, tk_dtype t, LLVMValueRef a, LLVMValueRef n) {
    const unsigned bits = tk_dtype_bits(t);
    LLVMValueRef in = tk_ll_icmp(e, LLVMIntULT, n, tk_ll_k(n, bits));
    LLVMValueRef all = tk_ll_k(n, bits - 1), safe = tk_ll_mask(e, n, bits - 1);
    if (op == TK_NUM_SHR && tk_dtype_is_signed(t)) {
        return LLVMBuildAShr(e->b, a, tk_ll_sel(e, in, safe, all), "");
    }
    LLVMValueRef r =
        op == TK_NUM_SHL ? LLVMBuildShl(e->b, a, safe, "") : LLVMBuildLShr(e->b, a, safe, "");
    return tk_ll_sel(e, in, r, tk_ll_k(a, 0));
}

static LLVMValueRef int_mulhi(tk_emit *e, tk_dtype t, LLVMValueRef a, LLVMValueRef b) {
    const unsigned bits = tk_dtype_bits(t);
    const bool is_signed = tk_dtype_is_signed(t);
    LLVMValueRef p = tk_ll_mul(e, tk_ll_resize(e, a, 2 * bits, is_signed),
                               tk_ll_resize(e, b, 2 * bits, is_signed));
    return tk_ll_resize(e, tk_ll_shr(e, p, bits), bits, is_signed);
}

static LLVMValueRef int_clz(tk_emit *e, tk_dtype t, LLVMValueRef a) {
    LLVMValueRef arg[2] = {a, LLVMConstInt(tk_ll_int(e, 1), 0, 0)};
    return generic(e, "llvm.ctlz", t, LLVMTypeOf(a), 2, arg);
}

static LLVMValueRef int_next_pow2(tk_emit *e, tk_dtype t, LLVMValueRef a) {
    const unsigned bits = tk_dtype_bits(t);
    const bool is_signed = tk_dtype_is_signed(t);
    LLVMValueRef one = tk_ll_k(a, 1);
    LLVMValueRef log = tk_ll_sub(e, tk_ll_k(a, bits), int_clz(e, t, tk_ll_sub(e, a, one)));
    LLVMValueRef fits = tk_ll_icmp(e, LLVMIntULT, log, tk_ll_k(a, bits - (is_signed ? 1 : 0)));
    LLVMValueRef p = LLVMBuildShl(e->b, one, tk_ll_mask(e, log, bits - 1), "");
    p = tk_ll_sel(e, fits, p, tk_ll_k(a, 0));
    return tk_ll_sel(e, tk_ll_icmp(e, is_signed ? LLVMIntSLE : LLVMIntULE, a, one), one, p);
}

static LLVMValueRef int_compare(tk_emit *e, tk_numop op, bool is_signed, LLVMValueRef a,
                                LLVMValueRef b) {
    LLVMIntPredicate p = op == TK_NUM_EQ   ? LLVMIntEQ
                         : op == TK_NUM_NE ? LLVMIntNE
                         : op == TK_NUM_LT ? (is_signed ? LLVMIntSLT : LLVMIntULT)
                         : op == TK_NUM_LE ? (is_signed ? LLVMIntSLE : LLVMIntULE)
                         : op == TK_NUM_GT ? (is_signed ? LLVMIntSGT : LLVMIntUGT)
                                           : (is_signed ? LLVMIntSGE : LLVMIntUGE);
    return tk_ll_icmp(e, p, a, b);
}

static LLVMValueRef int_pick(tk_emit *e, bool is_signed, bool least, LLVMValueRef a,
                             LLVMValueRef b) {
    LLVMValueRef first = int_compare(e, least ? TK_NUM_LT : TK_NUM_GT, is_signed, a, b);
    return tk_ll_sel(e, first, a, b);
}

static LLVMValueRef int_abs(tk_emit *e, bool is_signed, LLVMValueRef a) {
    if (!is_signed) {
        return a;
    }
    LLVMValueRef negative = tk_ll_icmp(e, LLVMIntSLT, a, tk_ll_k(a, 0));
    return tk_ll_sel(e, negative, LLVMBuildNeg(e->b, a, ""), a);
}

// ---- Floats: choosing and signs -----------------------------------------------------------------

static LLVMTypeRef code_type(const tk_emit *e, tk_dtype t) {
    return tk_ll_int(e, tk_dtype_bits(t));
}

static LLVMValueRef to_code(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    return is_f8(t) ? x : tk_ll_bits(e, x, code_type(e, t));
}

static LLVMValueRef from_code(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    return is_f8(t) ? x : tk_ll_bits(e, x, tk_emit_type(e, t));
}

// What floats are compared as.
static LLVMValueRef widened(tk_emit *e, tk_dtype t, LLVMValueRef x) {
    return tk_dtype_is_narrow_float(t) ? tk_emit_cast_elem(e, t, TK_F32, x) : x;
}

static LLVMValueRef fcmp(tk_emit *e, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildFCmp(e->b, p, a, b, "");
}

static LLVMValueRef float_compare(tk_emit *e, tk_numop op, tk_dtype t, LLVMValueRef a,
                                  LLVMValueRef b) {
    LLVMRealPredicate p = op == TK_NUM_EQ   ? LLVMRealOEQ
                          : op == TK_NUM_NE ? LLVMRealUNE
                          : op == TK_NUM_LT ? LLVMRealOLT
                          : op == TK_NUM_LE ? LLVMRealOLE
                          : op == TK_NUM_GT ? LLVMRealOGT
                                            : LLVMRealOGE;
    return fcmp(e, p, widened(e, t, a), widened(e, t, b));
}

// By comparison and selection of codes: of equal ones | finds a negative zero and & a positive one.
static LLVMValueRef pick_codes(tk_emit *e, tk_dtype t, bool least, bool nan_wins, LLVMValueRef a,
                               LLVMValueRef b) {
    LLVMValueRef x = widened(e, t, a), y = widened(e, t, b);
    LLVMValueRef ua = to_code(e, t, a), ub = to_code(e, t, b);
    LLVMValueRef r = tk_ll_sel(e, fcmp(e, least ? LLVMRealOLT : LLVMRealOGT, x, y), ua, ub);
    LLVMValueRef both = least ? tk_ll_or(e, ua, ub) : tk_ll_and(e, ua, ub);
    LLVMValueRef nan = nan_wins ? x : y;
    r = tk_ll_sel(e, fcmp(e, LLVMRealOEQ, x, y), both, r);
    return from_code(e, t, tk_ll_sel(e, fcmp(e, LLVMRealUNO, nan, nan), ua, r));
}

static LLVMValueRef float_pick(tk_emit *e, tk_dtype t, bool least, bool nan_wins, LLVMValueRef a,
                               LLVMValueRef b);

// As f16, which has all values of both: an f8e5m2 is its upper half, infinities and NaN included.
static LLVMValueRef pick_halves(tk_emit *e, tk_dtype t, bool least, bool nan_wins, LLVMValueRef a,
                                LLVMValueRef b) {
    LLVMValueRef x = tk_emit_cast_elem(e, t, TK_F16, a), y = tk_emit_cast_elem(e, t, TK_F16, b);
    LLVMValueRef r = float_pick(e, TK_F16, least, nan_wins, x, y);
    return t == TK_F8E4M3 ? tk_emit_cast_elem(e, TK_F16, t, r)
                          : tk_ll_resize(e, tk_ll_shr(e, to_code(e, TK_F16, r), 8), 8, false);
}

// The hardware has them up to f32, and those where a NaN loses in f64.
static LLVMValueRef float_pick(tk_emit *e, tk_dtype t, bool least, bool nan_wins, LLVMValueRef a,
                               LLVMValueRef b) {
    if (t == TK_F8E5M2 || (t == TK_F8E4M3 && tk_emit_has_f8(e))) {
        return pick_halves(e, t, least, nan_wins, a, b);
    }
    if (t == TK_F8E4M3 || (nan_wins && t == TK_F64)) {
        return pick_codes(e, t, least, nan_wins, a, b);
    }
    const char *name = nan_wins ? (least ? "llvm.minimum" : "llvm.maximum")
                                : (least ? "llvm.minimumnum" : "llvm.maximumnum");
    LLVMValueRef arg[2] = {a, b};
    return generic(e, name, t, LLVMTypeOf(a), 2, arg);
}

static LLVMValueRef float_sign(tk_emit *e, tk_numop op, tk_dtype t, LLVMValueRef a) {
    const uint64_t sign = (uint64_t)1 << (tk_dtype_bits(t) - 1);
    LLVMValueRef u = to_code(e, t, a);
    u = op == TK_NUM_NEG ? tk_ll_xor(e, u, tk_ll_k(u, sign)) : tk_ll_mask(e, u, sign - 1);
    return from_code(e, t, u);
}

// isnan and isinf, by the code without its sign; of f32 isnan is one comparison.
static LLVMValueRef float_class(tk_emit *e, tk_numop op, tk_dtype t, LLVMValueRef a) {
    const uint64_t inf = t == TK_F8E4M3   ? 0x7e // none: the greatest code that is no NaN
                         : t == TK_F8E5M2 ? 0x7c
                         : t == TK_F16    ? 0x7c00
                         : t == TK_BF16   ? 0x7f80
                         : t == TK_F32    ? 0x7f800000
                                          : 0x7ff0000000000000;
    if (op == TK_NUM_ISNAN && t == TK_F32) {
        return fcmp(e, LLVMRealUNO, a, a);
    }
    LLVMValueRef u = float_sign(e, TK_NUM_ABS, t, a);
    u = to_code(e, t, u);
    if (op == TK_NUM_ISNAN) {
        return tk_ll_icmp(e, LLVMIntUGT, u, tk_ll_k(u, inf));
    }
    return t == TK_F8E4M3 ? LLVMConstInt(tk_ll_int(e, 1), 0, 0) : tk_ll_is(e, u, inf);
}

// ---- Floats: arithmetic -------------------------------------------------------------------------

// An f32 operation that flushes subnormals, of the operands and of its result.
static LLVMValueRef flushing(tk_emit *e, const char *name, uint32_t n, LLVMValueRef *arg) {
    const char *full = tk_format(e->arena, "llvm.nvvm.%s.rn.ftz.f", name);
    return tk_emit_intrinsic(e, full, LLVMTypeOf(arg[0]), n, arg);
}

static bool flushes(tk_dtype t, unsigned fast) { return t == TK_F32 && fast & TK_FAST_FTZ; }

static LLVMValueRef flushing_arithmetic(tk_emit *e, tk_numop op, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef arg[2] = {a, op == TK_NUM_SUB ? LLVMBuildFNeg(e->b, b, "") : b};
    const char *name = op == TK_NUM_MUL ? "mul" : op == TK_NUM_DIV ? "div" : "add";
    return flushing(e, name, 2, arg);
}

static LLVMValueRef arithmetic(tk_emit *e, tk_numop op, LLVMValueRef a, LLVMValueRef b) {
    return op == TK_NUM_ADD   ? LLVMBuildFAdd(e->b, a, b, "")
           : op == TK_NUM_SUB ? LLVMBuildFSub(e->b, a, b, "")
           : op == TK_NUM_MUL ? LLVMBuildFMul(e->b, a, b, "")
                              : LLVMBuildFDiv(e->b, a, b, "");
}

static LLVMValueRef float_arithmetic(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                                     LLVMValueRef a, LLVMValueRef b) {
    if (flushes(t, fast)) {
        return flushing_arithmetic(e, op, a, b);
    }
    if (is_wide(t)) {
        return arithmetic(e, op, a, b);
    }
    LLVMValueRef r = arithmetic(e, op, widened(e, t, a), widened(e, t, b));
    return tk_emit_cast_elem(e, TK_F32, t, r);
}

static LLVMValueRef float_round(tk_emit *e, const char *name, tk_dtype t, LLVMValueRef a) {
    LLVMValueRef x = widened(e, t, a);
    LLVMValueRef r = generic(e, name, t == TK_F64 ? TK_F64 : TK_F32, LLVMTypeOf(x), 1, &x);
    if (is_wide(t)) {
        return r;
    }
    r = tk_emit_cast_elem(e, TK_F32, t, r);
    if (!is_f8(t)) {
        return r;
    }
    // An f8 would not keep its infinity through the rounding.
    LLVMValueRef u = tk_ll_mask(e, a, 0x7f), limit = tk_ll_k(a, t == TK_F8E4M3 ? 0x7e : 0x7b);
    return tk_ll_sel(e, tk_ll_icmp(e, LLVMIntUGT, u, limit), a, r);
}

// tk_fma_to_odd of lang/num_float.h, which explains it: for f8, whose sums f64 does not hold.
static LLVMValueRef f8_fma(tk_emit *e, tk_dtype t, const LLVMValueRef *arg) {
    LLVMBuilderRef b = e->b;
    LLVMTypeRef i64 = tk_ll_int(e, 64);
    LLVMValueRef x = tk_emit_cast_elem(e, t, TK_F64, arg[0]);
    LLVMValueRef y = tk_emit_cast_elem(e, t, TK_F64, arg[1]);
    LLVMValueRef z = tk_emit_cast_elem(e, t, TK_F64, arg[2]);
    LLVMValueRef p = LLVMBuildFMul(b, x, y, ""), s = LLVMBuildFAdd(b, p, z, "");
    LLVMValueRef v = LLVMBuildFSub(b, s, p, "");
    LLVMValueRef err = LLVMBuildFSub(b, p, LLVMBuildFSub(b, s, v, ""), "");
    err = LLVMBuildFAdd(b, err, LLVMBuildFSub(b, z, v, ""), "");
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(s)), u = tk_ll_bits(e, s, i64);
    LLVMValueRef inexact = fcmp(e, LLVMRealONE, err, zero);
    LLVMValueRef away =
        tk_ll_icmp(e, LLVMIntEQ, fcmp(e, LLVMRealOGT, err, zero), fcmp(e, LLVMRealOGT, s, zero));
    LLVMValueRef step = tk_ll_sel(e, away, tk_ll_k(u, 1), LLVMConstAllOnes(i64));
    inexact = tk_ll_and(e, inexact, tk_ll_is(e, tk_ll_mask(e, u, 1), 0));
    u = tk_ll_sel(e, inexact, tk_ll_add(e, u, step), u);
    return tk_emit_cast_elem(e, TK_F64, t, tk_ll_bits(e, u, LLVMTypeOf(s)));
}

// ---- Floats: approximations ---------------------------------------------------------------------

static LLVMValueRef approx(tk_emit *e, const char *name, const char *ending, unsigned fast,
                           LLVMValueRef x) {
    const char *full = tk_format(e->arena, "llvm.nvvm.%s.approx%s.%s", name,
                                 fast & TK_FAST_FTZ ? ".ftz" : "", ending);
    return tk_emit_intrinsic(e, full, LLVMTypeOf(x), 1, &x);
}

static LLVMValueRef times(tk_emit *e, unsigned fast, LLVMValueRef x, double k) {
    return float_arithmetic(e, TK_NUM_MUL, TK_F32, fast, x, LLVMConstReal(LLVMTypeOf(x), k));
}

static LLVMValueRef afn(LLVMValueRef x) {
    if (LLVMIsAInstruction(x)) {
        LLVMSetFastMathFlags(x, LLVMFastMathApproxFunc);
    }
    return x;
}

// The hardware's approximation of an f32 function; NULL where it has none.
static LLVMValueRef approximation(tk_emit *e, tk_numop op, unsigned fast, LLVMValueRef x) {
    if (op == TK_NUM_EXP || op == TK_NUM_EXP2) {
        return approx(e, "ex2", "f32", fast,
                      op == TK_NUM_EXP ? times(e, fast, x, 0x1.71547652b82fep0) : x);
    }
    if (op == TK_NUM_LOG || op == TK_NUM_LOG2) {
        LLVMValueRef r = approx(e, "lg2", "f", fast, x);
        return op == TK_NUM_LOG ? times(e, fast, r, 0x1.62e42fefa39efp-1) : r;
    }
    if (op == TK_NUM_SIN || op == TK_NUM_COS) {
        return approx(e, op == TK_NUM_SIN ? "sin" : "cos", "f", fast, x);
    }
    if (op == TK_NUM_SQRT || op == TK_NUM_RSQRT) {
        return approx(e, op == TK_NUM_SQRT ? "sqrt" : "rsqrt", "f", fast, x);
    }
    if (op == TK_NUM_TANH) {
        return afn(tk_emit_intrinsic(e, "llvm.tanh.f32", LLVMTypeOf(x), 1, &x));
    }
    if (op == TK_NUM_RCP) {
        if (fast & TK_FAST_FTZ) {
            return approx(e, "rcp", "f", fast, x);
        }
        return afn(LLVMBuildFDiv(e->b, LLVMConstReal(LLVMTypeOf(x), 1.0), x, ""));
    }
    return NULL;
}

static LLVMValueRef bounded(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast, LLVMValueRef x) {
    LLVMValueRef r = fast & TK_FAST_APPROX && t == TK_F32 ? approximation(e, op, fast, x) : NULL;
    if (!r) {
        TK_ICE(e->arena, "%s of %s was not expanded", tk_numop_name(op), tk_dtype_name(t));
    }
    return r;
}

static LLVMValueRef root_or_reciprocal(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                                       LLVMValueRef x) {
    if (fast & TK_FAST_APPROX && t == TK_F32) {
        return bounded(e, op, t, fast, x);
    }
    if (flushes(t, fast)) {
        return flushing(e, op == TK_NUM_SQRT ? "sqrt" : "rcp", 1, &x);
    }
    return op == TK_NUM_SQRT ? generic(e, "llvm.sqrt", t, LLVMTypeOf(x), 1, &x)
                             : LLVMBuildFDiv(e->b, LLVMConstReal(LLVMTypeOf(x), 1.0), x, "");
}

// ---- One element --------------------------------------------------------------------------------

static LLVMValueRef float_elem(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                               const LLVMValueRef *arg);
static LLVMValueRef int_elem(tk_emit *e, tk_numop op, tk_dtype t, const LLVMValueRef *arg);

LLVMValueRef tk_emit_elem(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                          const LLVMValueRef *arg) {
    TK_CHECK(e->arena, tk_numop_takes(op, t));
    if (op == TK_NUM_SELECT) {
        return tk_ll_sel(e, arg[0], arg[1], arg[2]);
    }
    if (op == TK_NUM_CLAMP) {
        LLVMValueRef low[2] = {arg[0], arg[1]}, high[2];
        high[0] = tk_emit_elem(e, TK_NUM_MAX, t, fast, low);
        high[1] = arg[2];
        return tk_emit_elem(e, TK_NUM_MIN, t, fast, high);
    }
    return tk_dtype_is_float(t) ? float_elem(e, op, t, fast, arg) : int_elem(e, op, t, arg);
}

static LLVMValueRef int_elem(tk_emit *e, tk_numop op, tk_dtype t, const LLVMValueRef *arg) {
    const bool is_signed = tk_dtype_is_signed(t);
    LLVMValueRef a = arg[0], b = tk_numop_arity(op) > 1 ? arg[1] : NULL;
    // clang-format off
    switch (op) {
    case TK_NUM_ADD: return tk_ll_add(e, a, b);
    case TK_NUM_SUB: return tk_ll_sub(e, a, b);
    case TK_NUM_MUL: return tk_ll_mul(e, a, b);
    case TK_NUM_DIV: return int_div(e, is_signed, a, b, false);
    case TK_NUM_REM: return int_div(e, is_signed, a, b, true);
    case TK_NUM_MIN: case TK_NUM_FMIN: return int_pick(e, is_signed, true, a, b);
    case TK_NUM_MAX: case TK_NUM_FMAX: return int_pick(e, is_signed, false, a, b);
    case TK_NUM_AND: return tk_ll_and(e, a, b);
    case TK_NUM_OR: return tk_ll_or(e, a, b);
    case TK_NUM_XOR: return tk_ll_xor(e, a, b);
    case TK_NUM_SHL: case TK_NUM_SHR: return int_shift(e, op, t, a, b);
    case TK_NUM_EQ: case TK_NUM_NE: case TK_NUM_LT: case TK_NUM_LE: case TK_NUM_GT: case TK_NUM_GE:
        return int_compare(e, op, is_signed, a, b);
    case TK_NUM_CDIV: return int_cdiv(e, is_signed, a, b);
    case TK_NUM_MULHI: return int_mulhi(e, t, a, b);
    case TK_NUM_NEG: return LLVMBuildNeg(e->b, a, "");
    case TK_NUM_NOT: case TK_NUM_BNOT: return LLVMBuildNot(e->b, a, "");
    case TK_NUM_ABS: return int_abs(e, is_signed, a);
    case TK_NUM_POPCOUNT:
        return tk_ll_resize(e, generic(e, "llvm.ctpop", t, LLVMTypeOf(a), 1, &a), 32, false);
    case TK_NUM_CLZ: return tk_ll_resize(e, int_clz(e, t, a), 32, false);
    case TK_NUM_NEXT_POW2: return int_next_pow2(e, t, a);
    case TK_NUM_FLOOR: case TK_NUM_CEIL: case TK_NUM_ROUND: case TK_NUM_TRUNC: case TK_NUM_SQRT:
    case TK_NUM_RCP: case TK_NUM_ISNAN: case TK_NUM_ISINF: case TK_NUM_FMA: case TK_NUM_CLAMP:
    case TK_NUM_SELECT: case TK_NUM_EXP: case TK_NUM_EXP2: case TK_NUM_EXPM1: case TK_NUM_LOG:
    case TK_NUM_LOG2: case TK_NUM_LOG1P: case TK_NUM_RSQRT: case TK_NUM_SIN: case TK_NUM_COS:
    case TK_NUM_TAN: case TK_NUM_ASIN: case TK_NUM_ACOS: case TK_NUM_ATAN: case TK_NUM_ATAN2:
    case TK_NUM_SINH: case TK_NUM_COSH: case TK_NUM_TANH: case TK_NUM_ERF: case TK_NUM_POW:
    case TK_NUM_SIGMOID: case TK_NUM_COUNT:
        break;
    }
    // clang-format on
    TK_ICE(e->arena, "%s of %s", tk_numop_name(op), tk_dtype_name(t));
}

static LLVMValueRef float_fma(tk_emit *e, tk_dtype t, unsigned fast, const LLVMValueRef *arg) {
    LLVMValueRef x[3] = {arg[0], arg[1], arg[2]};
    if (flushes(t, fast)) {
        return flushing(e, "fma", 3, x);
    }
    return is_f8(t) ? f8_fma(e, t, arg) : generic(e, "llvm.fma", t, LLVMTypeOf(x[0]), 3, x);
}

static LLVMValueRef float_elem(tk_emit *e, tk_numop op, tk_dtype t, unsigned fast,
                               const LLVMValueRef *arg) {
    LLVMValueRef a = arg[0], b = tk_numop_arity(op) > 1 ? arg[1] : NULL;
    // clang-format off
    switch (op) {
    case TK_NUM_ADD: case TK_NUM_SUB: case TK_NUM_MUL: case TK_NUM_DIV:
        return float_arithmetic(e, op, t, fast, a, b);
    case TK_NUM_MIN: return float_pick(e, t, true, true, a, b);
    case TK_NUM_MAX: return float_pick(e, t, false, true, a, b);
    case TK_NUM_FMIN: return float_pick(e, t, true, false, a, b);
    case TK_NUM_FMAX: return float_pick(e, t, false, false, a, b);
    case TK_NUM_EQ: case TK_NUM_NE: case TK_NUM_LT: case TK_NUM_LE: case TK_NUM_GT: case TK_NUM_GE:
        return float_compare(e, op, t, a, b);
    case TK_NUM_NEG: case TK_NUM_ABS: return float_sign(e, op, t, a);
    case TK_NUM_FLOOR: return float_round(e, "llvm.floor", t, a);
    case TK_NUM_CEIL: return float_round(e, "llvm.ceil", t, a);
    case TK_NUM_ROUND: return float_round(e, "llvm.roundeven", t, a);
    case TK_NUM_TRUNC: return float_round(e, "llvm.trunc", t, a);
    case TK_NUM_SQRT: case TK_NUM_RCP: return root_or_reciprocal(e, op, t, fast, a);
    case TK_NUM_ISNAN: case TK_NUM_ISINF: return float_class(e, op, t, a);
    case TK_NUM_FMA: return float_fma(e, t, fast, arg);
    case TK_NUM_EXP: case TK_NUM_EXP2: case TK_NUM_LOG: case TK_NUM_LOG2: case TK_NUM_RSQRT:
    case TK_NUM_SIN: case TK_NUM_COS: case TK_NUM_TANH:
        return bounded(e, op, t, fast, a);
    case TK_NUM_REM: case TK_NUM_AND: case TK_NUM_OR: case TK_NUM_XOR: case TK_NUM_SHL:
    case TK_NUM_SHR: case TK_NUM_CDIV: case TK_NUM_MULHI: case TK_NUM_NOT: case TK_NUM_BNOT:
    case TK_NUM_POPCOUNT: case TK_NUM_CLZ: case TK_NUM_NEXT_POW2: case TK_NUM_CLAMP:
    case TK_NUM_SELECT: case TK_NUM_EXPM1: case TK_NUM_LOG1P: case TK_NUM_TAN: case TK_NUM_ASIN:
    case TK_NUM_ACOS: case TK_NUM_ATAN: case TK_NUM_ATAN2: case TK_NUM_SINH: case TK_NUM_COSH:
    case TK_NUM_ERF: case TK_NUM_POW: case TK_NUM_SIGMOID: case TK_NUM_COUNT:
        break;
    }
    // clang-format on
    TK_ICE(e->arena, "%s of %s was not expanded", tk_numop_name(op), tk_dtype_name(t));
}

// ---- Whole tiles --------------------------------------------------------------------------------

static LLVMValueRef bitcast(tk_emit *e, tk_dtype to, LLVMValueRef x) {
    return tk_ll_bits(e, x, tk_emit_type(e, to));
}

void tk_emit_elementwise_op(tk_emit *e, tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    const uint32_t n = tk_emit_regs(e, op->res[0]);
    const tk_dtype from = tk_value_type(e->f, op->opnd[op->nopnd - 1])->dtype;
    const tk_dtype to = tk_value_type(e->f, op->res[0])->dtype;
    LLVMValueRef *x[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < op->nopnd; i++) {
        TK_CHECK(e->arena, i < 3 && tk_emit_regs(e, op->opnd[i]) == n);
        x[i] = tk_emit_get(e, op->opnd[i]);
    }
    LLVMValueRef *out = tk_emit_new(e, op->res[0]);
    const uint32_t together = op->code == TK_OP_CAST ? tk_emit_cast_together(e, from, to) : 1;
    if (together > 1 && n % together == 0) {
        for (uint32_t r = 0; r < n; r += together) {
            tk_emit_cast_word(e, from, to, &x[0][r], &out[r]);
        }
        return;
    }
    if (info->elementwise && info->num == TK_NUM_DIV && from == TK_F32 &&
        !(op->fast & (TK_FAST_FTZ | TK_FAST_APPROX)) && tk_emit_quotients(e, n, x[0], x[1], out)) {
        return;
    }
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef arg[3] = {NULL, NULL, NULL};
        const tk_known known = tk_known_mask(e->axis, op, r);
        if (known != TK_KNOWN_NOT) {
            out[r] = LLVMConstInt(tk_ll_int(e, 1), known == TK_KNOWN_TRUE, 0);
            continue;
        }
        for (uint32_t i = 0; i < op->nopnd; i++) {
            arg[i] = x[i][r];
        }
        out[r] = info->elementwise        ? tk_emit_elem(e, info->num, from, op->fast, arg)
                 : op->code == TK_OP_CAST ? tk_emit_cast_asked(e, from, to, arg[0])
                                          : bitcast(e, to, arg[0]);
    }
}

// ---- Philox -------------------------------------------------------------------------------------

// lang/philox.h with the four words of the counter and the key's two as values.
static void philox(tk_emit *e, LLVMValueRef *c, LLVMValueRef *key) {
    for (int round = 0; round < 10; round++) {
        LLVMValueRef c0 = tk_ll_resize(e, c[0], 64, false), c2 = tk_ll_resize(e, c[2], 64, false);
        LLVMValueRef p0 = tk_ll_mul(e, c0, tk_ll_k(c0, 0xd2511f53U));
        LLVMValueRef p1 = tk_ll_mul(e, c2, tk_ll_k(c2, 0xcd9e8d57U));
        LLVMValueRef high0 = tk_ll_resize(e, tk_ll_shr(e, p0, 32), 32, false);
        LLVMValueRef high1 = tk_ll_resize(e, tk_ll_shr(e, p1, 32), 32, false);
        c[0] = tk_ll_xor(e, tk_ll_xor(e, high1, c[1]), key[0]);
        c[1] = tk_ll_resize(e, p1, 32, false);
        c[2] = tk_ll_xor(e, tk_ll_xor(e, high0, c[3]), key[1]);
        c[3] = tk_ll_resize(e, p0, 32, false);
        key[0] = tk_ll_add(e, key[0], tk_ll_k(key[0], 0x9e3779b9U));
        key[1] = tk_ll_add(e, key[1], tk_ll_k(key[1], 0xbb67ae85U));
    }
}

static void split_words(tk_emit *e, tk_vid v, LLVMValueRef x, LLVMValueRef *word) {
    LLVMValueRef wide = tk_ll_resize(e, x, 64, tk_dtype_is_signed(tk_value_type(e->f, v)->dtype));
    word[0] = tk_ll_resize(e, wide, 32, false);
    word[1] = tk_ll_resize(e, tk_ll_shr(e, wide, 32), 32, false);
}

void tk_emit_philox_op(tk_emit *e, tk_op *op) {
    const uint32_t n = tk_emit_regs(e, op->res[0]);
    LLVMValueRef *offset = tk_emit_get(e, op->opnd[1]), *out[4];
    LLVMValueRef seed = tk_emit_get(e, op->opnd[0])[0];
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = tk_emit_new(e, op->res[i]);
    }
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef key[2], c[4] = {NULL, NULL, tk_emit_i32(e, 0), tk_emit_i32(e, 0)};
        split_words(e, op->opnd[0], seed, key);
        split_words(e, op->opnd[1], offset[r], c);
        philox(e, c, key);
        for (uint32_t i = 0; i < 4; i++) {
            out[i][r] = c[i];
        }
    }
}
