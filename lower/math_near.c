// SPDX-License-Identifier: Apache-2.0
// f32 functions by the GPU's instructions for 2^x, 1/x and 1/sqrt x: exp, exp2, sigmoid, tanh, erf,
// rsqrt.
//
// The instructions are ops with TK_FAST_APPROX, each within a few units in the last place. They are
// used where what they lose leaves the function within its bound: 2^r with r near 0 times an exact
// power of two; a reciprocal whose argument is a normal number.
//
// b^x = 2^n 2^r, n an integer and r = x log2 b - n by fma in two parts. The instruction is as good
// at any r, so that n needs not be the nearest integer where that is no exponent of a normal
// number: it stays within -126 and 127, and r takes what is left. A result that is subnormal is
// rounded by the last multiplication.
#include "lower/math_ops.h"

// Adding it makes an integer of a small float, which is then in the lower bits of the pattern; with
// 127 added it is there as an exponent.
#define WHOLE     0x1.8p23
#define LOG2E     0x1.71547652b82fep0
#define TANH_NEAR 0.55 // below it the polynomial, which scripts/fit-poly makes up to here

static tk_vid fast(tk_math *m, tk_opcode code, unsigned flags, tk_vid x) {
    const tk_vid v = tk_math_op(m, code, TK_F32, 1, &x);
    tk_value_def(m->f, v)->fast = (uint8_t)flags;
    return v;
}

tk_vid tk_math_near_rcp(tk_math *m, tk_vid x) {
    return fast(m, TK_OP_RCP, TK_FAST_APPROX | TK_FAST_FTZ, x);
}

static tk_vid ex2(tk_math *m, tk_vid x) {
    return fast(m, TK_OP_EXP2, TK_FAST_APPROX | TK_FAST_FTZ, x);
}

// The argument is scaled to [0, 1] and clamped, by which a NaN becomes 0: on the GPU the clamp is
// part of the fma.
tk_math_power tk_math_power_split(tk_math *m, tk_vid x, double log2_base) {
    enum { LEAST = -126, RANGE = 253 };
    const tk_vid u = mfma(m, x, num(m, log2_base / RANGE), num(m, -(double)LEAST / RANGE));
    const tk_vid in = mfmin(m, mfmax(m, u, num(m, 0)), num(m, 1));
    const tk_vid sum = mfma(m, in, num(m, RANGE), num(m, WHOLE + LEAST + 127));
    return (tk_math_power){sum, sub(m, num(m, WHOLE + 127), sum)};
}

tk_vid tk_math_power_times(tk_math *m, tk_math_power p, tk_vid r) {
    const tk_vid pattern = tk_math_bits(m, p.sum, m->it);
    return mul(m, ex2(m, r), tk_math_bits(m, shl_c(m, pattern, m->man), m->t));
}

// The parts of log2 b have one sign, so that infinities do not meet their opposites.
static tk_vid rest(tk_math *m, tk_math_power p, tk_vid x, tk_poly_id log2_base) {
    const tk_vid first = mfma(m, x, coeff(m, log2_base, 0), p.minus_n);
    return mfma(m, x, coeff(m, log2_base, 1), first);
}

tk_vid tk_math_near_exp(tk_math *m, tk_vid x) {
    const tk_math_power p = tk_math_power_split(m, x, LOG2E);
    return tk_math_power_times(m, p, rest(m, p, x, TK_POLY_LOG2E));
}

// Where the result is subnormal, 2^24 times as much is not.
tk_vid tk_math_near_exp2(tk_math *m, tk_vid x) {
    const tk_vid low = lt(m, x, num(m, -126));
    const tk_vid y = ex2(m, choose(m, low, add_c(m, x, 24), x));
    return choose(m, low, mul_c(m, y, 0x1p-24), y);
}

// With e = e^-|x|: 1 / (1 + e) or e / (1 + e). A step of Newton's makes the reciprocal one that is
// all but rounded: with the instruction's own the error came to 3.98 units on a GPU, of 4 allowed.
tk_vid tk_math_near_sigmoid(tk_math *m, tk_vid x) {
    const tk_vid e = tk_math_near_exp(m, neg(m, mabs(m, x)));
    const tk_vid top = choose(m, lt(m, x, num(m, 0)), e, num(m, 1));
    const tk_vid d = add_c(m, e, 1), r = tk_math_near_rcp(m, d);
    return mul(m, top, mfma(m, mfma(m, neg(m, d), r, num(m, 1)), r, r));
}

// 1 - 2 / (1 + e^(2|x|)); near 0, where that loses digits, a polynomial.
tk_vid tk_math_near_tanh(tk_math *m, tk_vid x) {
    const tk_vid size = mabs(m, x), in = mmin(m, size, num(m, 10));
    const tk_vid sum = mfma(m, in, num(m, 2 * LOG2E), num(m, WHOLE + 127));
    const tk_math_power p = {sum, sub(m, num(m, WHOLE + 127), sum)};
    const tk_vid e = tk_math_power_times(m, p, rest(m, p, in, TK_POLY_TWO_LOG2E));
    const tk_vid far = mfma(m, tk_math_near_rcp(m, add_c(m, e, 1)), num(m, -2), num(m, 1));
    const tk_vid z = mul(m, size, size);
    const tk_vid near = mfma(m, mul(m, size, z), tk_math_poly(m, TK_POLY_TANH, z), size);
    const tk_vid y = choose(m, lt(m, size, num(m, TANH_NEAR)), near, far);
    return tk_math_with_sign(m, y, x);
}

// Below 1 a polynomial, above 1 - 2^(a polynomial for log2 (1 - erf x)).
tk_vid tk_math_near_erf(tk_math *m, tk_vid x) {
    const tk_vid size = mmin(m, mabs(m, x), num(m, 4));
    const tk_vid inner = mfma(m, size, tk_math_poly(m, TK_POLY_ERF, mul(m, size, size)), size);
    const tk_vid outer = sub(m, num(m, 1), ex2(m, tk_math_poly(m, TK_POLY_ERFC_LOG, size)));
    return tk_math_with_sign(m, choose(m, lt(m, size, num(m, 1)), inner, outer), x);
}

tk_vid tk_math_near_rsqrt(tk_math *m, tk_vid x) { return fast(m, TK_OP_RSQRT, TK_FAST_APPROX, x); }
