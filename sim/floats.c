// SPDX-License-Identifier: Apache-2.0
// Float formats: bits to value, value to bits.
#include "sim/floats.h"

#include <math.h>

typedef struct format {
    int man, least; // bits of fraction; exponent of the least normal number
    unsigned width;
    uint32_t limit; // code of the greatest finite number
    bool infinity;
    uint64_t nan;
} format;

static format format_of(tk_sim_type t) {
    switch (t) {
    case TK_SIM_F16:
        return (format){10, -14, 16, 0x7bff, true, 0x7fff};
    case TK_SIM_BF16:
        return (format){7, -126, 16, 0x7f7f, true, 0x7fff};
    case TK_SIM_E4M3:
        return (format){3, -6, 8, 0x7e, false, 0x7f};
    case TK_SIM_E5M2:
        return (format){2, -14, 8, 0x7b, true, 0x7f};
    case TK_SIM_TF32:
        return (format){10, -126, 19, 0x3fbff, true, 0x3ffff};
    default:
        return (format){23, -126, 32, 0x7f7fffff, true, 0x7fffffff};
    }
}

tk_sim_round tk_sim_round_of(const tk_sim_inst *i) {
    if (tk_sim_has(i, TK_SIM_MOD_RZ) || tk_sim_has(i, TK_SIM_MOD_RZI)) {
        return TK_SIM_ROUND_ZERO;
    }
    if (tk_sim_has(i, TK_SIM_MOD_RM) || tk_sim_has(i, TK_SIM_MOD_RMI)) {
        return TK_SIM_ROUND_DOWN;
    }
    if (tk_sim_has(i, TK_SIM_MOD_RP) || tk_sim_has(i, TK_SIM_MOD_RPI)) {
        return TK_SIM_ROUND_UP;
    }
    return tk_sim_has(i, TK_SIM_MOD_RNA) ? TK_SIM_ROUND_AWAY : TK_SIM_ROUND_NEAREST;
}

bool tk_sim_is_nan(tk_sim_type t, uint64_t bits) {
    if (t == TK_SIM_F64) {
        return tk_f64_is_nan_bits(bits);
    }
    format f = format_of(t);
    uint64_t magnitude = bits & ((UINT64_C(1) << (f.width - 1)) - 1);
    return magnitude > (uint64_t)f.limit + f.infinity;
}

uint64_t tk_sim_nan(tk_sim_type t) {
    uint64_t nan = t == TK_SIM_F64 ? UINT64_C(0x7ff8000000000000) : format_of(t).nan;
    return t == TK_SIM_TF32 ? nan << 13 : nan;
}

uint64_t tk_sim_f64_nan(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t quiet = UINT64_C(1) << 51;
    return tk_f64_is_nan_bits(c)   ? c | quiet
           : tk_f64_is_nan_bits(b) ? b | quiet
           : tk_f64_is_nan_bits(a) ? a | quiet
                                   : UINT64_C(0xfff8000000000000);
}

uint64_t tk_sim_flush(tk_sim_type t, uint64_t bits) {
    uint64_t exponent = t == TK_SIM_F32 ? 0x7f800000 : t == TK_SIM_F16 ? 0x7c00 : 0;
    uint64_t sign = t == TK_SIM_F32 ? 0x80000000 : 0x8000;
    return exponent && (bits & exponent) == 0 ? bits & sign : bits;
}

double tk_sim_widen(tk_sim_type t, uint64_t bits, bool ftz) {
    bits = ftz ? tk_sim_flush(t, bits) : bits;
    switch (t) {
    case TK_SIM_F16:
        return tk_f16_to_f64((uint16_t)bits);
    case TK_SIM_BF16:
        return tk_bf16_to_f64((uint16_t)bits);
    case TK_SIM_E4M3:
        return tk_f8e4m3_to_f64((uint8_t)bits);
    case TK_SIM_E5M2:
        return tk_f8e5m2_to_f64((uint8_t)bits);
    case TK_SIM_F64:
        return tk_f64_of_bits(bits);
    default:
        return (double)tk_f32_of_bits((uint32_t)bits);
    }
}

static bool round_up(uint64_t rest, uint64_t half, bool odd, bool minus, tk_sim_round mode) {
    switch (mode) {
    case TK_SIM_ROUND_NEAREST:
        return rest > half || (rest == half && odd);
    case TK_SIM_ROUND_AWAY:
        return rest >= half;
    case TK_SIM_ROUND_DOWN:
        return minus && rest > 0;
    case TK_SIM_ROUND_UP:
        return !minus && rest > 0;
    case TK_SIM_ROUND_ZERO:
        break;
    }
    return false;
}

// The code of a magnitude, which may be beyond the greatest number. A subnormal of f64 is below
// half of the least number of any format, and rounds as any of those does.
static uint64_t magnitude_code(const format *f, double x, bool minus, tk_sim_round mode) {
    const uint64_t bits = tk_f64_bits(x), hidden = UINT64_C(1) << 52;
    const int exponent = (int)(bits >> 52) - 1023;
    int unit = (exponent > f->least ? exponent : f->least) - f->man;
    int below = unit - exponent + 52; // bits of x below the unit
    below = below > 60 ? 60 : below;
    uint64_t all = (bits & (hidden - 1)) | hidden, part = UINT64_C(1) << below, m = all >> below;
    m += round_up(all & (part - 1), part / 2, m & 1, minus, mode);
    uint64_t one = UINT64_C(1) << f->man;
    return m < one ? m : ((uint64_t)(unit - (f->least - f->man) + 1) << f->man) + (m - one);
}

uint64_t tk_sim_narrow(tk_sim_type t, double x, tk_sim_round mode, bool finite) {
    if (t == TK_SIM_F64) {
        return x != x ? tk_sim_nan(t) : tk_f64_bits(x);
    }
    if (t == TK_SIM_F32 && mode == TK_SIM_ROUND_NEAREST && !finite) {
        return x != x ? tk_sim_nan(t) : tk_f32_bits((float)x);
    }
    format f = format_of(t);
    bool minus = signbit(x) != 0;
    uint64_t sign = minus ? UINT64_C(1) << (f.width - 1) : 0, code;
    if (x != x) {
        return tk_sim_nan(t);
    }
    if (isinf(x)) {
        code = f.infinity && !finite ? f.limit + 1u : f.limit;
    } else {
        code = x == 0 ? 0 : magnitude_code(&f, fabs(x), minus, mode);
        if (code > f.limit) {
            bool stays = mode == TK_SIM_ROUND_ZERO || (mode == TK_SIM_ROUND_DOWN && !minus) ||
                         (mode == TK_SIM_ROUND_UP && minus);
            code = stays || finite || !f.infinity ? f.limit : f.limit + 1u;
        }
    }
    return t == TK_SIM_TF32 ? (sign | code) << 13 : sign | code;
}

uint64_t tk_sim_saturate(tk_sim_type t, uint64_t bits) {
    double x = tk_sim_widen(t, bits, false);
    return !(x > 0) ? 0 : x > 1 ? tk_sim_narrow(t, 1, TK_SIM_ROUND_NEAREST, false) : bits;
}

double tk_sim_to_odd(double s, double rest) {
    if (rest == 0 || rest != rest || isinf(s)) {
        return s;
    }
    if ((rest < 0) == (s > 0)) { // the exact value is nearer to zero
        s = nextafter(s, 0);
    }
    return tk_f64_of_bits(tk_f64_bits(s) | 1);
}

double tk_sim_arith_odd(tk_sim_arith op, double x, double y, double z) {
    switch (op) {
    case TK_SIM_ARITH_ADD:
        return tk_fma_to_odd(x, 1, y);
    case TK_SIM_ARITH_SUB:
        return tk_fma_to_odd(x, 1, -y);
    case TK_SIM_ARITH_MUL:
        return x * y;
    case TK_SIM_ARITH_FMA:
        return tk_fma_to_odd(x, y, z);
    case TK_SIM_ARITH_DIV: {
        double q = x / y, rest = fma(-q, y, x);
        return tk_sim_to_odd(q, y < 0 ? -rest : rest);
    }
    case TK_SIM_ARITH_SQRT: {
        double q = sqrt(x);
        return tk_sim_to_odd(q, fma(-q, q, x));
    }
    }
    return 0;
}

uint64_t tk_sim_narrow_ftz(tk_sim_type t, double x, tk_sim_round mode, bool ftz) {
    double least = t == TK_SIM_F16 ? 0x1p-14 : 0x1p-126, up = t == TK_SIM_F16 ? 0x1p8 : 0x1p64;
    if (ftz && fabs(x) < least) {
        double rounded = tk_sim_widen(t, tk_sim_narrow(t, x * up, mode, false), false);
        x = fabs(rounded) < least * up ? copysign(0, x) : rounded / up;
    }
    return tk_sim_narrow(t, x, mode, false);
}

uint64_t tk_sim_pick(const tk_sim_inst *i, tk_sim_type t, uint64_t x, uint64_t y, bool max) {
    uint64_t sign = UINT64_C(1) << (tk_sim_types[t].bits - 1), result_sign = 0;
    if (tk_sim_has(i, TK_SIM_MOD_XORSIGN)) {
        result_sign = (x ^ y) & sign;
        x &= ~sign;
        y &= ~sign;
    }
    bool nx = tk_sim_is_nan(t, x), ny = tk_sim_is_nan(t, y);
    if ((nx && ny) || ((nx || ny) && tk_sim_has(i, TK_SIM_MOD_NAN_))) {
        return t == TK_SIM_F64 ? tk_sim_f64_nan(0, x, y) : tk_sim_nan(t);
    }
    if (nx || ny) {
        return (nx ? y : x) | result_sign;
    }
    double a = tk_sim_widen(t, x, false), b = tk_sim_widen(t, y, false);
    bool first = a == b ? ((x & sign) != 0) != max : (a < b) != max;
    return (first ? x : y) | result_sign;
}
