// SPDX-License-Identifier: Apache-2.0
// Casts of one element between all pairs of types, with the values of lang/num_convert.h. Floats of
// 16 bits are LLVM's types; those of 8 bits are codes, widened by way of f16 and narrowed from f32:
// by instructions where there are some (sm_90 on), else in integers. What f32 cannot hold goes
// through an f32 rounded to odd, so that the second rounding sees a tie only where there is one. A
// NaN stays one, with whatever payload the hardware gives.
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"

#include <string.h>

static LLVMTypeRef type_f32(const tk_emit *e) { return LLVMFloatTypeInContext(e->ctx); }
static LLVMTypeRef type_f64(const tk_emit *e) { return LLVMDoubleTypeInContext(e->ctx); }

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

// ---- Floats of 8 bits ---------------------------------------------------------------------------

// Of a pair of codes the lower one.
static LLVMValueRef e4m3_by_instruction(tk_emit *e, LLVMValueRef pair) {
    LLVMTypeRef halves = LLVMVectorType(LLVMHalfTypeInContext(e->ctx), 2);
    LLVMValueRef x = tk_emit_intrinsic(e, "llvm.nvvm.e4m3x2.to.f16x2.rn", halves, 1, &pair);
    x = tk_ll_resize(e, tk_ll_bits(e, x, tk_ll_int(e, 32)), 16, false);
    return LLVMBuildFPExt(e->b, tk_ll_bits(e, x, LLVMHalfTypeInContext(e->ctx)), type_f32(e), "");
}

// The bits of an f8e4m3 put at the place of f16's are the value times 2^-8, subnormals included.
static LLVMValueRef e4m3_to_f32(tk_emit *e, LLVMValueRef code) {
    LLVMValueRef wide = tk_ll_resize(e, code, 16, false);
    if (tk_emit_has_f8(e)) {
        return e4m3_by_instruction(e, wide);
    }
    LLVMValueRef m = tk_ll_mask(e, wide, 0x7f);
    LLVMValueRef sign = tk_ll_shl(e, tk_ll_mask(e, wide, 0x80), 8);
    LLVMValueRef half = tk_ll_or(e, tk_ll_shl(e, m, 7), sign);
    half = tk_ll_sel(e, tk_ll_is(e, m, 0x7f), tk_ll_or(e, sign, tk_ll_k(sign, 0x7e00)), half);
    LLVMValueRef x = tk_ll_bits(e, half, LLVMHalfTypeInContext(e->ctx));
    x = LLVMBuildFPExt(e->b, x, type_f32(e), "");
    return LLVMBuildFMul(e->b, x, LLVMConstReal(type_f32(e), 256.0), "");
}

// An f8e5m2 is the upper half of an f16.
static LLVMValueRef e5m2_to_f32(tk_emit *e, LLVMValueRef code) {
    LLVMValueRef half = tk_ll_shl(e, tk_ll_resize(e, code, 16, false), 8);
    LLVMValueRef x = tk_ll_bits(e, half, LLVMHalfTypeInContext(e->ctx));
    return LLVMBuildFPExt(e->b, x, type_f32(e), "");
}

// tk_narrow_f32 of lang/num_convert.h, which explains it.
static LLVMValueRef f32_to_f8(tk_emit *e, LLVMValueRef x, unsigned man, unsigned bias,
                              unsigned limit) {
    const unsigned drop = 23 - man;
    LLVMValueRef u = tk_ll_bits(e, x, tk_ll_int(e, 32));
    LLVMValueRef a = tk_ll_mask(e, u, 0x7fffffff);
    LLVMValueRef magic = tk_ll_k(u, (uint64_t)(151 - bias - man) << 23);
    LLVMValueRef half = tk_ll_mask(e, tk_ll_shr(e, a, drop), 1);
    half = tk_ll_add(e, half, tk_ll_k(u, (1U << (drop - 1)) - 1));
    LLVMValueRef normal = tk_ll_add(e, a, half);
    normal = tk_ll_sub(e, normal, tk_ll_k(u, (uint64_t)(127 - bias) << 23));
    normal = tk_ll_shr(e, normal, drop);
    LLVMValueRef sum =
        LLVMBuildFAdd(e->b, tk_ll_bits(e, a, type_f32(e)), tk_ll_bits(e, magic, type_f32(e)), "");
    LLVMValueRef subnormal = tk_ll_sub(e, tk_ll_bits(e, sum, tk_ll_int(e, 32)), magic);
    LLVMValueRef small = tk_ll_icmp(e, LLVMIntULT, a, tk_ll_k(u, (uint64_t)(128 - bias) << 23));
    LLVMValueRef r = tk_ll_sel(e, small, subnormal, normal), top = tk_ll_k(u, limit);
    r = tk_ll_sel(e, tk_ll_icmp(e, LLVMIntUGT, r, top), top, r);
    r = tk_ll_or(e, r, tk_ll_mask(e, tk_ll_shr(e, u, 24), 0x80));
    LLVMValueRef nan = tk_ll_icmp(e, LLVMIntUGT, a, tk_ll_k(u, 0x7f800000));
    return tk_ll_resize(e, tk_ll_sel(e, nan, tk_ll_k(u, 0x7f), r), 8, false);
}

// ---- Between floats -----------------------------------------------------------------------------

static LLVMValueRef to_f32(tk_emit *e, tk_dtype from, LLVMValueRef x) {
    return from == TK_F8E4M3   ? e4m3_to_f32(e, x)
           : from == TK_F8E5M2 ? e5m2_to_f32(e, x)
           : from == TK_F32    ? x
                               : LLVMBuildFPExt(e->b, x, type_f32(e), "");
}

// Too great ones become the greatest finite one, and a NaN 0x7f.
static LLVMValueRef f8_pair(tk_emit *e, tk_dtype to, LLVMValueRef low, LLVMValueRef high) {
    LLVMValueRef pair[2] = {high, low};
    const char *name = to == TK_F8E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
    return tk_emit_intrinsic(e, name, tk_ll_int(e, 16), 2, pair);
}

static LLVMValueRef f8_by_instruction(tk_emit *e, tk_dtype to, LLVMValueRef x) {
    return tk_ll_resize(e, f8_pair(e, to, x, LLVMConstReal(type_f32(e), 0)), 8, false);
}

static LLVMValueRef f32_to_narrow(tk_emit *e, tk_dtype to, LLVMValueRef x) {
    if (is_f8(to) && tk_emit_has_f8(e)) {
        return f8_by_instruction(e, to, x);
    }
    return to == TK_F8E4M3   ? f32_to_f8(e, x, 3, 7, 0x7e)
           : to == TK_F8E5M2 ? f32_to_f8(e, x, 2, 15, 0x7b)
                             : LLVMBuildFPTrunc(e->b, x, tk_emit_type(e, to), "");
}

// Of the two f32 around x the one whose last bit is 1. An overflow becomes the greatest finite one.
static LLVMValueRef f64_to_odd(tk_emit *e, LLVMValueRef x) {
    LLVMValueRef r = LLVMBuildFPTrunc(e->b, x, type_f32(e), "");
    LLVMValueRef back = LLVMBuildFPExt(e->b, r, type_f64(e), "");
    LLVMValueRef u = tk_ll_bits(e, r, tk_ll_int(e, 32));
    LLVMValueRef magnitude = tk_ll_mask(e, tk_ll_bits(e, x, tk_ll_int(e, 64)), INT64_MAX);
    LLVMValueRef rounded = tk_ll_mask(e, tk_ll_bits(e, back, tk_ll_int(e, 64)), INT64_MAX);
    LLVMValueRef up = tk_ll_icmp(e, LLVMIntUGT, rounded, magnitude);
    LLVMValueRef inexact = LLVMBuildFCmp(e->b, LLVMRealONE, back, x, "");
    LLVMValueRef even = tk_ll_is(e, tk_ll_mask(e, u, 1), 0);
    LLVMValueRef step = tk_ll_sel(e, up, tk_ll_k(u, UINT32_MAX), tk_ll_k(u, 1));
    u = tk_ll_sel(e, tk_ll_and(e, inexact, even), tk_ll_add(e, u, step), u);
    return tk_ll_bits(e, u, type_f32(e));
}

static LLVMValueRef float_to_float(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x) {
    if (from == TK_F64) {
        return to == TK_F32 ? LLVMBuildFPTrunc(e->b, x, type_f32(e), "")
                            : f32_to_narrow(e, to, f64_to_odd(e, x));
    }
    LLVMValueRef f = to_f32(e, from, x);
    return to == TK_F32   ? f
           : to == TK_F64 ? LLVMBuildFPExt(e->b, f, type_f64(e), "")
                          : f32_to_narrow(e, to, f);
}

// ---- Float to integer and bool ------------------------------------------------------------------

static LLVMValueRef saturating(tk_emit *e, LLVMValueRef x, bool is_f64, unsigned bits,
                               bool is_signed) {
    const char *name = tk_format(e->arena, "llvm.fpto%si.sat.i%u.%s", is_signed ? "s" : "u", bits,
                                 is_f64 ? "f64" : "f32");
    return tk_emit_intrinsic(e, name, tk_ll_int(e, bits), 1, &x);
}

// What a rounding has been computed of, and how the conversion is to round it instead.
static const char *rounding(LLVMValueRef *x) {
    static const struct {
        const char *name, *mode;
    } made[] = {{"llvm.roundeven.f32", "rn"},
                {"llvm.floor.f32", "rm"},
                {"llvm.ceil.f32", "rp"},
                {"llvm.trunc.f32", "rz"}};
    for (size_t i = 0; LLVMIsACallInst(*x) && i < sizeof made / sizeof made[0]; i++) {
        size_t n = 0;
        const char *name = LLVMGetValueName2(LLVMGetCalledValue(*x), &n);
        if (n == strlen(made[i].name) && memcmp(name, made[i].name, n) == 0) {
            *x = LLVMGetOperand(*x, 0);
            return made[i].mode;
        }
    }
    return "rz";
}

// By one instruction, which keeps to the range and makes 0 of a NaN where neither type has 64 bits.
static LLVMValueRef f32_to_32(tk_emit *e, LLVMValueRef x, bool is_signed) {
    const char *mode = rounding(&x);
    const char *name = tk_format(e->arena, "llvm.nvvm.f2%s.%s", is_signed ? "i" : "ui", mode);
    return tk_emit_intrinsic(e, name, tk_ll_int(e, 32), 1, &x);
}

// Below 32 bits: to i32, and then into the range.
static LLVMValueRef float_to_int(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x) {
    const unsigned bits = tk_dtype_bits(to);
    const bool is_signed = tk_dtype_is_signed(to), is_f64 = from == TK_F64;
    LLVMValueRef f = is_f64 ? x : to_f32(e, from, x);
    if (bits >= 32) {
        return bits == 32 && !is_f64 ? f32_to_32(e, f, is_signed)
                                     : saturating(e, f, is_f64, bits, is_signed);
    }
    LLVMValueRef r = is_f64 ? saturating(e, f, true, 32, true) : f32_to_32(e, f, true);
    int64_t most = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
    LLVMValueRef hi = tk_emit_i32(e, most), lo = tk_emit_i32(e, is_signed ? -most - 1 : 0);
    r = tk_ll_sel(e, tk_ll_icmp(e, LLVMIntSLT, r, lo), lo, r);
    r = tk_ll_sel(e, tk_ll_icmp(e, LLVMIntSGT, r, hi), hi, r);
    return tk_ll_resize(e, r, bits, is_signed);
}

// Into one word's bytes or halves: of integers the range and the place are one instruction's for
// two elements, of floats of 8 bits one rounds two.
uint32_t tk_emit_cast_together(const tk_emit *e, tk_dtype from, tk_dtype to) {
    const bool is_int = !tk_dtype_is_float(to) && to != TK_BOOL && tk_dtype_bits(to) < 32;
    const bool made = is_int || (is_f8(to) && tk_emit_has_f8(e));
    return made && tk_dtype_is_float(from) && from != TK_F64 ? 32 / tk_dtype_bits(to) : 1;
}

// Puts the two elements in front of what the word has.
static LLVMValueRef two_integers(tk_emit *e, tk_dtype to, LLVMValueRef low, LLVMValueRef high,
                                 LLVMValueRef word) {
    const bool bytes = tk_dtype_bits(to) == 8;
    const char *type = tk_dtype_is_signed(to) ? "s" : "u";
    const char *text =
        bytes ? "cvt.pack.sat.%s8.s32.b32 $0, $1, $2, $3;" : "cvt.pack.sat.%s16.s32 $0, $1, $2;";
    LLVMValueRef arg[3] = {f32_to_32(e, high, true), f32_to_32(e, low, true), word};
    return tk_emit_pure_asm(e, tk_ll_int(e, 32), tk_format(e->arena, text, type),
                            bytes ? "=r,r,r,r" : "=r,r,r", bytes ? 3 : 2, arg);
}

static LLVMValueRef two_f8(tk_emit *e, tk_dtype to, LLVMValueRef low, LLVMValueRef high,
                           LLVMValueRef word) {
    LLVMValueRef pair = tk_ll_resize(e, f8_pair(e, to, low, high), 32, false);
    return tk_ll_or(e, tk_ll_shl(e, word, 16), pair);
}

void tk_emit_cast_word(tk_emit *e, tk_dtype from, tk_dtype to, const LLVMValueRef *x,
                       LLVMValueRef *out) {
    const unsigned bits = tk_dtype_bits(to), n = 32 / bits;
    LLVMValueRef word = tk_emit_i32(e, 0);
    for (unsigned i = n; i > 0; i -= 2) {
        LLVMValueRef low = to_f32(e, from, x[i - 2]), high = to_f32(e, from, x[i - 1]);
        word = is_f8(to) ? two_f8(e, to, low, high, word) : two_integers(e, to, low, high, word);
    }
    for (unsigned i = 0; i < n; i++) {
        out[i] = tk_ll_resize(e, i ? tk_ll_shr(e, word, i * bits) : word, bits, false);
    }
}

static LLVMValueRef to_bool(tk_emit *e, tk_dtype from, LLVMValueRef x) {
    if (is_f8(from)) {
        return LLVMBuildNot(e->b, tk_ll_is(e, tk_ll_mask(e, x, 0x7f), 0), "");
    }
    return tk_dtype_is_float(from)
               ? LLVMBuildFCmp(e->b, LLVMRealUNE, x, LLVMConstNull(LLVMTypeOf(x)), "")
               : tk_ll_icmp(e, LLVMIntNE, x, tk_ll_k(x, 0));
}

// ---- Integer to float ---------------------------------------------------------------------------

static LLVMValueRef int_to(tk_emit *e, LLVMValueRef x, bool is_signed, LLVMTypeRef t) {
    return is_signed ? LLVMBuildSIToFP(e->b, x, t, "") : LLVMBuildUIToFP(e->b, x, t, "");
}

// A 64-bit integer as f64, with the bits that f64 cannot hold gathered into its last one.
static LLVMValueRef wide_to_f64_odd(tk_emit *e, LLVMValueRef x, bool is_signed) {
    LLVMValueRef negative = tk_ll_icmp(e, LLVMIntSLT, x, tk_ll_k(x, 0)), m = x;
    if (is_signed) {
        m = tk_ll_sel(e, negative, LLVMBuildNeg(e->b, x, ""), x);
    }
    LLVMValueRef low = tk_ll_mask(e, m, 0x7ff);
    LLVMValueRef sticky = tk_ll_sel(e, tk_ll_is(e, low, 0), tk_ll_k(m, 0), tk_ll_k(m, 0x800));
    LLVMValueRef odd = tk_ll_or(e, tk_ll_mask(e, m, ~(uint64_t)0x7ff), sticky);
    m = tk_ll_sel(e, tk_ll_is(e, tk_ll_shr(e, m, 53), 0), m, odd);
    LLVMValueRef f = LLVMBuildUIToFP(e->b, m, type_f64(e), "");
    return is_signed ? tk_ll_sel(e, negative, LLVMBuildFNeg(e->b, f, ""), f) : f;
}

static LLVMValueRef int_to_float(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x) {
    const bool is_signed = tk_dtype_is_signed(from);
    const unsigned bits = from == TK_BOOL ? 1 : tk_dtype_bits(from);
    if (!tk_dtype_is_narrow_float(to)) {
        return int_to(e, x, is_signed, tk_emit_type(e, to));
    }
    if (bits <= 16) {
        return f32_to_narrow(e, to, int_to(e, x, is_signed, type_f32(e)));
    }
    LLVMValueRef wide =
        bits == 32 ? int_to(e, x, is_signed, type_f64(e)) : wide_to_f64_odd(e, x, is_signed);
    return f32_to_narrow(e, to, f64_to_odd(e, wide));
}

// ---- All ----------------------------------------------------------------------------------------

LLVMValueRef tk_emit_cast_elem(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x) {
    if (from == to) {
        return x;
    }
    if (to == TK_BOOL) {
        return to_bool(e, from, x);
    }
    if (tk_dtype_is_float(from)) {
        return tk_dtype_is_float(to) ? float_to_float(e, from, to, x)
                                     : float_to_int(e, from, to, x);
    }
    return tk_dtype_is_float(to) ? int_to_float(e, from, to, x)
                                 : tk_ll_resize(e, x, tk_dtype_bits(to), tk_dtype_is_signed(from));
}

// A bf16 is the upper half of an f32. In integers, so that one which is half of a word that was
// read takes one operation, as a shift or a mask of that. A fence keeps the result a float
// (llvm_guarded.c).
static LLVMValueRef bf16_to_f32(tk_emit *e, LLVMValueRef x) {
    LLVMValueRef code = tk_ll_bits(e, x, tk_ll_int(e, 16));
    LLVMValueRef f = tk_ll_bits(e, tk_ll_shl(e, tk_ll_resize(e, code, 32, false), 16), type_f32(e));
    return LLVMIsConstant(f)
               ? f
               : tk_emit_intrinsic(e, "llvm.arithmetic.fence.f32", type_f32(e), 1, &f);
}

LLVMValueRef tk_emit_cast_asked(tk_emit *e, tk_dtype from, tk_dtype to, LLVMValueRef x) {
    return from == TK_BF16 && to == TK_F32 ? bf16_to_f32(e, x) : tk_emit_cast_elem(e, from, to, x);
}

// Without cvt.rn.tf32, which is of sm_90 and as many instructions.
LLVMValueRef tk_emit_tf32(tk_emit *e, LLVMValueRef x) {
    LLVMValueRef u = tk_ll_bits(e, x, tk_ll_int(e, 32)), inf = tk_ll_k(u, 0x7f800000);
    LLVMValueRef finite = tk_ll_icmp(e, LLVMIntNE, tk_ll_and(e, u, inf), inf);
    LLVMValueRef odd = tk_ll_mask(e, tk_ll_shr(e, u, 13), 1);
    LLVMValueRef even = tk_ll_add(e, tk_ll_add(e, u, tk_ll_k(u, 0xfff)), odd);
    return tk_ll_sel(e, finite, tk_ll_mask(e, even, 0xffffe000), u);
}
