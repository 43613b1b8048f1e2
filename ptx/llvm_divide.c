// SPDX-License-Identifier: Apache-2.0
// Quotients of f32 whose divisors are few, as where a row is divided by its sum: the divisor's
// reciprocal is computed once, and each quotient is made of it by multiplications, rounded as a
// division rounds.
//
// With y = 1 / c, rounded to nearest, x * y may be wrong by more than a unit in the last place. A
// step of Newton's makes it one of the two floats around x / c, and from such a one the second step
// gives x / c rounded to nearest (P. Markstein, Computation of elementary functions on the IBM RISC
// System/6000 processor, 1990): the remainder is exact there, if nothing overflows or becomes
// subnormal. So divisors are to be positive and between 2^-32 and 2^32, and dividends 0 or between
// 2^-60 and 2^60 in magnitude, or NaN; otherwise a thread divides all of its elements. The signs of
// zeros are right as the remainder is c * q - x, never the other way round.
#include "ptx/llvm_build.h"
#include "ptx/llvm_internal.h"

enum { FEWEST = 4 }; // quotients of one divisor, for which its reciprocal pays

static LLVMTypeRef f32(const tk_emit *e) { return LLVMFloatTypeInContext(e->ctx); }

static LLVMBasicBlockRef block(tk_emit *e) {
    return LLVMAppendBasicBlockInContext(e->ctx, e->fn, "quotients");
}

static LLVMValueRef call(tk_emit *e, const char *name, uint32_t n, LLVMValueRef *arg) {
    return tk_emit_intrinsic(e, name, LLVMTypeOf(arg[0]), n, arg);
}

static LLVMValueRef magnitude(tk_emit *e, LLVMValueRef x) {
    return call(e, "llvm.fabs.f32", 1, &x);
}

static LLVMValueRef fma32(tk_emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMValueRef arg[3] = {a, b, c};
    return call(e, "llvm.fma.f32", 3, arg);
}

static LLVMValueRef step(tk_emit *e, LLVMValueRef x, LLVMValueRef c, LLVMValueRef y,
                         LLVMValueRef q) {
    LLVMValueRef rest = fma32(e, c, q, LLVMBuildFNeg(e->b, x, ""));
    return fma32(e, LLVMBuildFNeg(e->b, rest, ""), y, q);
}

// Whether what the thread divides is where the multiplications are right: the greatest magnitude,
// and the least of those that are not 0, which bits less 1 make the greatest.
static LLVMValueRef in_range(tk_emit *e, uint32_t n, const LLVMValueRef *x) {
    LLVMValueRef most = LLVMConstReal(f32(e), 0), least = LLVMConstAllOnes(tk_ll_int(e, 32));
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef high[2] = {most, magnitude(e, x[i])};
        most = call(e, "llvm.maxnum.f32", 2, high);
        LLVMValueRef u = tk_ll_shl(e, tk_ll_bits(e, x[i], tk_ll_int(e, 32)), 1);
        LLVMValueRef low[2] = {least, tk_ll_sub(e, u, tk_ll_k(u, 1))};
        least = call(e, "llvm.umin.i32", 2, low);
    }
    const uint64_t bits = (uint64_t)(127 - 60) << 24; // 2^-60 without its sign
    LLVMValueRef small = tk_ll_icmp(e, LLVMIntUGE, least, tk_ll_k(least, bits - 1));
    LLVMValueRef top = LLVMConstReal(f32(e), 0x1p60);
    return tk_ll_and(e, small, LLVMBuildFCmp(e->b, LLVMRealOLE, most, top, ""));
}

static LLVMValueRef divisor_in_range(tk_emit *e, LLVMValueRef c) {
    LLVMValueRef low = LLVMConstReal(f32(e), 0x1p-32), high = LLVMConstReal(f32(e), 0x1p32);
    return tk_ll_and(e, LLVMBuildFCmp(e->b, LLVMRealOGE, c, low, ""),
                     LLVMBuildFCmp(e->b, LLVMRealOLE, c, high, ""));
}

typedef struct divisors {
    LLVMValueRef *c, *y;
    uint32_t *of; // the divisor of each register
    uint32_t n;
} divisors;

// Whether they are few enough.
static bool find_divisors(tk_emit *e, uint32_t n, const LLVMValueRef *c, divisors *d) {
    const uint32_t most = n / FEWEST;
    *d = (divisors){TK_NEW_ARRAY(e->arena, LLVMValueRef, most + 1),
                    TK_NEW_ARRAY(e->arena, LLVMValueRef, most + 1),
                    TK_NEW_ARRAY(e->arena, uint32_t, n), 0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < d->n && d->c[k] != c[i]) {
            k++;
        }
        if (k == d->n && d->n == most) {
            return false;
        }
        d->c[k] = c[i];
        d->n += k == d->n;
        d->of[i] = k;
    }
    return true;
}

bool tk_emit_quotients(tk_emit *e, uint32_t n, const LLVMValueRef *x, const LLVMValueRef *c,
                       LLVMValueRef *out) {
    divisors d;
    if (n < FEWEST || !find_divisors(e, n, c, &d)) {
        return false;
    }
    LLVMValueRef ok = in_range(e, n, x), *slow = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    for (uint32_t k = 0; k < d.n; k++) {
        ok = tk_ll_and(e, ok, divisor_in_range(e, d.c[k]));
        d.y[k] = LLVMBuildFDiv(e->b, LLVMConstReal(f32(e), 1), d.c[k], "");
    }
    LLVMBasicBlockRef fast = block(e), other = block(e), end = block(e);
    LLVMBuildCondBr(e->b, ok, fast, other);
    LLVMPositionBuilderAtEnd(e->b, other);
    for (uint32_t i = 0; i < n; i++) {
        slow[i] = LLVMBuildFDiv(e->b, x[i], c[i], "");
    }
    LLVMBuildBr(e->b, end);
    LLVMPositionBuilderAtEnd(e->b, fast);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef y = d.y[d.of[i]], q = LLVMBuildFMul(e->b, x[i], y, "");
        out[i] = step(e, x[i], c[i], y, step(e, x[i], c[i], y, q));
    }
    LLVMBuildBr(e->b, end);
    LLVMPositionBuilderAtEnd(e->b, end);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(e->b, f32(e), "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){out[i], slow[i]}, (LLVMBasicBlockRef[]){fast, other},
                        2);
        out[i] = phi;
    }
    return true;
}
