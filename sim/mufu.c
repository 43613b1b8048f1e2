// SPDX-License-Identifier: Apache-2.0
// See mufu.h.
#include "sim/mufu.h"

enum {
    MAN = 23,
    ONE = 1 << MAN,
    BIAS = 127,
    LOW = 17, // bits of t
    INFINITE = 0x7f800000,
    NAN_BITS = 0x7fffffff,
    V = 34 // bits of v after the point, in units of the result's last place
};
#define SIGN UINT32_C(0x80000000)

typedef struct segment {
    int64_t c0;     // in 2^-20
    int32_t c1, c2; // twice
} segment;

enum {
    AT_RCP = 0,
    AT_RSQ = 128,
    AT_SQRT = 256,
    AT_EX2 = 384,
    AT_LG2 = 448,
    AT_SIN = 512,
    AT_TANH = 576
};
static const segment table[] = {
#define TK_SIM_MUFU(FUNCTION, C0, C1, C2) {C0, C1, C2},
#include "sim/mufu_table.def"
};

// The square of 17 bits, without its partial products below 2^19.
static int64_t square(uint32_t x) {
    enum { LEAST = 2 * LOW - 15 };
    int64_t s = 0;
    for (unsigned i = 0; i < LOW; i++) {
        if (!(x >> i & 1)) {
            continue;
        }
        // Of x_i x_j 2^(i + j + 1), j < i, those that are not below.
        unsigned from = i + 1 < LEAST ? LEAST - 1 - i : 0;
        uint32_t below = from < i ? x & ((1u << i) - 1) & ~((1u << from) - 1) : 0;
        s += (int64_t)below << (i + 1);
        s += 2 * i >= LEAST ? INT64_C(1) << 2 * i : 0;
    }
    return s;
}

// v, with V bits after the point.
static int64_t value(const segment *s, uint32_t t) {
    return s->c0 * (1 << (V - 20)) + (int64_t)s->c1 * t * (1 << (V - LOW - 1)) +
           (int64_t)s->c2 * square(t) / 2;
}

// Of 23 bits of a fraction, with 6 bits of an index.
static int64_t indexed(unsigned at, uint32_t fraction) {
    return value(&table[at + (fraction >> LOW)], fraction & ((1u << LOW) - 1));
}

// x 2^exponent, cut; too small is zero, too great infinite.
static uint32_t cut(uint32_t sign, uint64_t x, int exponent) {
    if (x == 0) {
        return sign;
    }
    int top = 63 - __builtin_clzll(x), e = top + exponent;
    uint64_t man = top >= MAN ? x >> (top - MAN) : x << (MAN - top);
    if (e < 1 - BIAS) {
        return sign;
    }
    return e > BIAS ? sign | INFINITE : sign | (((uint32_t)(e + BIAS - 1) << MAN) + (uint32_t)man);
}

typedef struct scaled { // x 2^exponent
    uint64_t x;
    int exponent;
} scaled;

static scaled reciprocal(int e, uint32_t man) {
    int64_t v = value(&table[AT_RCP + (man >> 16)], (man & 0xffff) << 1);
    return (scaled){(uint64_t)v >> V, -24 - e};
}

// Of an even and of an odd exponent.
static scaled root(int e, uint32_t man, bool inverse) {
    unsigned odd = (unsigned)e & 1;
    int half = (e - (int)odd) / 2;
    if (inverse && !odd && man == 0) {
        return (scaled){1, -half};
    }
    int64_t v = indexed((inverse ? AT_RSQ : AT_SQRT) + 64 * odd, man);
    return (scaled){(uint64_t)v >> V, inverse ? -24 - half : half - MAN};
}

// The argument's 23 bits after the point are cut by magnitude; of a negative one the complement is
// taken.
static uint32_t power(uint32_t x) {
    int e = (int)(x >> MAN & 0xff) - BIAS;
    uint32_t man = (x & (ONE - 1)) | ONE;
    if (e >= 8) {
        return x & SIGN ? 0 : INFINITE;
    }
    int64_t a = e >= 0 ? (int64_t)man << e : e > -MAN - 1 ? man >> -e : 0;
    a = !(x & SIGN) ? a : a & (ONE - 1) ? -a - 1 : -a;
    int64_t whole = a >= 0 ? a >> MAN : -((-a - 1) >> MAN) - 1;
    int64_t v = indexed(AT_EX2, (uint32_t)(a - whole * ONE));
    return cut(0, (uint64_t)v >> V, (int)whole - MAN);
}

// A fixed point number with 36 bits after the point; of a negative one the complement is taken.
static uint32_t logarithm(int e, uint32_t man) {
    enum { POINT = 36 };
    if (e == 0 && man == 0) {
        return 0;
    }
    int64_t w = (int64_t)e * (INT64_C(1) << POINT) + (indexed(AT_LG2, man) >> (V + 24 - POINT));
    return cut(w < 0 ? SIGN : 0, (uint64_t)(w < 0 ? ~w : w), -POINT);
}

static uint32_t sine(uint32_t x, bool cosine) {
    int e = (int)(x >> MAN & 0xff) - BIAS - MAN + 25; // of the last bit, in 2^-25 turns
    uint32_t man = (x & (ONE - 1)) | ONE, turns = 1u << 25;
    uint32_t a = e >= 25   ? 0
                 : e >= 0  ? (uint32_t)((uint64_t)man << e) & (turns - 1)
                 : e > -24 ? man >> -e
                           : 0;
    uint32_t sign = cosine ? 0 : x & SIGN;
    a = (a + (cosine ? ONE : 0)) & (turns - 1);
    uint32_t t = a & (ONE - 1);
    sign ^= a >> 24 ? SIGN : 0;
    if (a >> MAN & 1) {
        if (t == 0) {
            return sign | (BIAS << MAN);
        }
        t = ONE - 1 - t;
    }
    return cut(sign, (uint64_t)indexed(AT_SIN, t) >> (V - 16), -40);
}

static uint32_t hyperbolic(uint32_t x) {
    static const uint8_t bits[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3}; // of exponents -8 to 2
    int e = (int)(x >> MAN & 0xff) - BIAS;
    if (e < -8) {
        return x;
    }
    if (e > 2) {
        return (x & SIGN) | BIAS << MAN;
    }
    unsigned at = AT_TANH, b = bits[e + 8];
    for (int k = -8; k < e; k++) {
        at += 1u << bits[k + 8];
    }
    uint32_t man = x & (ONE - 1), rest = man & ((1u << (MAN - b)) - 1);
    int64_t v = value(&table[at + (man >> (MAN - b))], rest >> (MAN - b - LOW));
    return cut(x & SIGN, (uint64_t)v >> (V - 16), -40);
}

// Of zero (a subnormal argument is one), infinity and negative arguments.
static bool special(tk_sim_mufu_function f, uint32_t x, uint32_t *y) {
    uint32_t sign = x & SIGN, magnitude = x & ~SIGN;
    bool zero = magnitude < ONE, infinite = magnitude == INFINITE;
    switch (f) {
    case TK_SIM_MUFU_RCP:
        *y = zero ? sign | INFINITE : sign;
        return zero || infinite;
    case TK_SIM_MUFU_RSQ:
        *y = zero ? sign | INFINITE : sign ? NAN_BITS : 0;
        return zero || infinite || sign;
    case TK_SIM_MUFU_SQRT:
        *y = zero ? sign : sign ? NAN_BITS : INFINITE;
        return zero || infinite || sign;
    case TK_SIM_MUFU_EX2:
        *y = zero ? BIAS << MAN : sign ? 0 : INFINITE;
        return zero || infinite;
    case TK_SIM_MUFU_LG2:
        *y = zero ? SIGN | INFINITE : sign ? NAN_BITS : INFINITE;
        return zero || infinite || sign;
    case TK_SIM_MUFU_SIN:
    case TK_SIM_MUFU_COS:
        *y = infinite ? NAN_BITS : f == TK_SIM_MUFU_COS ? BIAS << MAN : sign;
        return zero || infinite;
    case TK_SIM_MUFU_TANH:
        break;
    }
    return false;
}

uint32_t tk_sim_mufu(tk_sim_mufu_function f, uint32_t x) {
    int e = (int)(x >> MAN & 0xff) - BIAS;
    uint32_t man = x & (ONE - 1), y;
    scaled r;
    if ((x & ~SIGN) > INFINITE) {
        return NAN_BITS;
    }
    if (special(f, x, &y)) {
        return y;
    }
    switch (f) {
    case TK_SIM_MUFU_RCP:
        r = reciprocal(e, man);
        return cut(x & SIGN, r.x, r.exponent);
    case TK_SIM_MUFU_RSQ:
    case TK_SIM_MUFU_SQRT:
        r = root(e, man, f == TK_SIM_MUFU_RSQ);
        return cut(0, r.x, r.exponent);
    case TK_SIM_MUFU_EX2:
        return power(x);
    case TK_SIM_MUFU_LG2:
        return logarithm(e, man);
    case TK_SIM_MUFU_SIN:
    case TK_SIM_MUFU_COS:
        return sine(x, f == TK_SIM_MUFU_COS);
    case TK_SIM_MUFU_TANH:
        break;
    }
    return hyperbolic(x);
}

// ---- The upper words of f64

uint32_t tk_sim_mufu_high(bool root_too, uint32_t x) {
    enum { HIGH = 20, HIGH_BIAS = 1023, HIGH_INFINITE = 0x7ff00000 };
    uint32_t sign = x & SIGN, magnitude = x & ~SIGN;
    bool zero = magnitude < 1u << HIGH;
    if (magnitude > HIGH_INFINITE || (root_too && sign && !zero)) {
        return NAN_BITS;
    }
    if (zero || magnitude == HIGH_INFINITE) {
        return zero ? sign | HIGH_INFINITE : sign;
    }
    int e = (int)(magnitude >> HIGH) - HIGH_BIAS;
    uint32_t man = (x & ((1u << HIGH) - 1)) << (MAN - HIGH);
    scaled r = root_too ? root(e, man, true) : reciprocal(e, man);
    int top = 63 - __builtin_clzll(r.x);
    e = top + r.exponent;
    uint64_t cut_man = top >= HIGH ? r.x >> (top - HIGH) : r.x << (HIGH - top);
    return e < 1 - HIGH_BIAS ? sign
                             : sign | (((uint32_t)(e + HIGH_BIAS - 1) << HIGH) + (uint32_t)cut_man);
}
