// SPDX-License-Identifier: Apache-2.0
//
// Scalar numerics against a slow reference, on all codes of the narrow floats, all their midpoints,
// and all pairs of the 8-bit types. The reference knows a format only by the values of its codes:
// it decodes with ldexp and rounds by searching among neighbouring codes, comparing exactly.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "lang/num.h"
#include "lang/num_inline.h"

// --- exact numbers: sign * m * 2^e ---

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

typedef struct exact {
    int sign; // -1, 0, 1
    u128 m;
    int e;
} exact;

static exact exact_of(double x) {
    int e = 0;
    const double f = frexp(fabs(x), &e);
    return (exact){x == 0 ? 0 : x < 0 ? -1 : 1, (u128)ldexp(f, 53), e - 53};
}

static exact exact_mul(exact a, exact b) { return (exact){a.sign * b.sign, a.m * b.m, a.e + b.e}; }

static int bit_length(u128 m) {
    const uint64_t high = (uint64_t)(m >> 64), low = (uint64_t)m;
    return high != 0 ? 128 - __builtin_clzll(high) : low != 0 ? 64 - __builtin_clzll(low) : 0;
}

static exact trim(exact a) {
    const uint64_t high = (uint64_t)(a.m >> 64), low = (uint64_t)a.m;
    const int n = low != 0 ? __builtin_ctzll(low) : high != 0 ? 64 + __builtin_ctzll(high) : 0;
    return (exact){a.sign, a.m >> n, a.e + n};
}

// Operands of at most 53 significant bits. Where one lies more than 66 places under the other only
// its sign matters to the roundings made here, so it is replaced by a small unit of that sign.
static exact exact_add(exact a, exact b) {
    a = trim(a);
    b = trim(b);
    if (a.sign == 0 || b.sign == 0) {
        return a.sign == 0 ? b : a;
    }
    if (a.e < b.e) {
        const exact t = a;
        a = b;
        b = t;
    }
    if (a.e - b.e > 66) {
        if (bit_length(b.m) + b.e > a.e - 2) { // b is the greater all the same
            cr_assert_fail("exact_add: out of range");
        }
        b = (exact){b.sign, 1, a.e - 66};
    }
    const i128 x = (i128)(a.m << (a.e - b.e)) * a.sign, y = (i128)b.m * b.sign;
    const i128 s = x + y;
    return (exact){s == 0 ? 0 : s < 0 ? -1 : 1, (u128)(s < 0 ? -s : s), b.e};
}

// Magnitudes only.
static int exact_cmp(exact a, exact b) {
    if (a.sign == 0 || b.sign == 0) {
        return (a.sign != 0) - (b.sign != 0);
    }
    a = trim(a);
    b = trim(b);
    const int top_a = bit_length(a.m) + a.e, top_b = bit_length(b.m) + b.e;
    if (top_a != top_b) {
        return top_a < top_b ? -1 : 1;
    }
    if (a.e > b.e) {
        a.m <<= a.e - b.e;
    } else {
        b.m <<= b.e - a.e;
    }
    return a.m < b.m ? -1 : a.m > b.m;
}

// --- formats ---

typedef struct format {
    tk_dtype t;
    unsigned width, man, bias;
    unsigned greatest; // code of the greatest finite magnitude
    unsigned over;     // code that stands for what is too great
    unsigned codes;    // magnitudes: 2^(width - 1)
} format;

enum { FORMATS = 4 };
static const format formats[FORMATS] = {
    {TK_F8E4M3, 8, 3, 7, 0x7e, 0x7e, 0x80},
    {TK_F8E5M2, 8, 2, 15, 0x7b, 0x7b, 0x80},
    {TK_F16, 16, 10, 15, 0x7bff, 0x7c00, 0x8000},
    {TK_BF16, 16, 7, 127, 0x7f7f, 0x7f80, 0x8000},
};

// The value of a magnitude as if the exponent had no special code.
static double magnitude(const format *f, unsigned code) {
    const unsigned e = code >> f->man, m = code & ((1U << f->man) - 1);
    const int bias = (int)f->bias, man = (int)f->man;
    return e == 0 ? ldexp(m, 1 - bias - man)
                  : ldexp(m + (double)(1U << f->man), (int)e - bias - man);
}

static bool code_is_nan(const format *f, unsigned code) {
    const unsigned m = code & (f->codes - 1);
    return m > f->greatest && !(m == f->greatest + 1 && f->t != TK_F8E4M3);
}

static bool code_is_inf(const format *f, unsigned code) {
    return (code & (f->codes - 1)) == f->greatest + 1 && f->t != TK_F8E4M3;
}

static double decode(const format *f, unsigned code) {
    const double m = code_is_nan(f, code)   ? (double)NAN
                     : code_is_inf(f, code) ? (double)INFINITY
                                            : magnitude(f, code & (f->codes - 1));
    return code & f->codes ? -m : m;
}

// Nearest code by binary search; a tie goes to the even one.
static unsigned nearest(const format *f, exact x) {
    unsigned lo = 0, hi = f->greatest + 1;
    while (hi - lo > 1) {
        const unsigned mid = (lo + hi) / 2;
        if (exact_cmp(exact_of(magnitude(f, mid)), x) <= 0) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    const double half = magnitude(f, lo) / 2 + magnitude(f, lo + 1) / 2;
    const int c = exact_cmp(x, exact_of(half));
    const unsigned r = lo + (c > 0 || (c == 0 && lo % 2 == 1) ? 1 : 0);
    return (r > f->greatest ? f->over : r) | (x.sign < 0 ? f->codes : 0);
}

// For zero, infinity and NaN as well.
static unsigned reference(const format *f, double x) {
    if (x != x) {
        return UINT32_MAX; // any NaN code
    }
    const unsigned sign = signbit(x) ? f->codes : 0;
    return isinf(x) ? f->over | sign : x == 0 ? sign : nearest(f, exact_of(x));
}

static unsigned narrow(const format *f, double x) { return (unsigned)tk_const_f64(f->t, x).bits; }

static unsigned narrow_f32(const format *f, float x) {
    return (unsigned)tk_cast((tk_const){TK_F32, tk_f32_bits(x)}, f->t).bits;
}

static bool agrees(const format *f, unsigned got, unsigned want) {
    return want == UINT32_MAX ? code_is_nan(f, got) : got == want;
}

// Counts what is wrong and keeps the first: one assertion a test, not a million.
typedef struct tally {
    unsigned bad;
    uint64_t first[3];
    unsigned got, want;
} tally;

static void note(tally *t, bool good, uint64_t a, uint64_t b, unsigned got, unsigned want) {
    if (!good && t->bad++ == 0) {
        t->first[0] = a;
        t->first[1] = b;
        t->got = got;
        t->want = want;
    }
}

static void conclude(const tally *t, const char *what) {
    cr_assert_eq(t->bad, 0U, "%s: %u wrong, first %" PRIx64 " %" PRIx64 ": got %x, expected %x",
                 what, t->bad, t->first[0], t->first[1], t->got, t->want);
}

static uint64_t random_bits(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dU;
}

// --- conversions ---

// A038: widening is exact, to f32 and to f64, and narrowing again is the identity.
Test(exhaustive, widen_and_back) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned code = 0; code < 2 * f->codes; code++) {
            const tk_const x = {f->t, code};
            const double want = decode(f, code), d = tk_const_as_f64(x);
            const tk_const s = tk_cast(x, TK_F32);
            const double ds = (double)tk_f32_of_bits((uint32_t)s.bits);
            const bool nan = want != want;
            note(&t, nan ? d != d : tk_f64_bits(d) == tk_f64_bits(want), code, 0, 0, 0);
            note(&t, nan ? ds != ds : tk_f64_bits(ds) == tk_f64_bits(want), code, 1, 0, 0);
            note(&t, tk_const_is_nan(x) == nan && tk_const_is_inf(x) == (isinf(want) != 0), code, 2,
                 0, 0);
            const unsigned same = nan           ? UINT32_MAX
                                  : isinf(want) ? f->over | (code & f->codes)
                                                : code;
            note(&t, agrees(f, (unsigned)tk_cast(s, f->t).bits, same), code, 3, 0, same);
            note(&t, agrees(f, narrow(f, d), same), code, 4, narrow(f, d), same);
            note(&t, tk_cast(x, f->t).bits == code, code, 5, 0, code);
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

static void check_narrow_f32(const format *f, tally *t, float x) {
    const unsigned got = narrow_f32(f, x), want = reference(f, (double)x);
    note(t, agrees(f, got, want), tk_f32_bits(x), 32, got, want);
    const unsigned from_f64 = narrow(f, (double)x);
    note(t, agrees(f, from_f64, want), tk_f32_bits(x), 64, from_f64, want);
}

// At every code, every midpoint to the next (past the greatest too) and the floats on both sides.
Test(exhaustive, narrow_f32_at_midpoints) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned code = 0; code <= f->greatest; code++) {
            const double value = magnitude(f, code), next = magnitude(f, code + 1);
            const float points[2] = {(float)value, (float)(value / 2 + next / 2)};
            for (int k = 0; k < 2; k++) {
                const float x = points[k];
                const float around[3] = {x, nextafterf(x, INFINITY), nextafterf(x, -INFINITY)};
                for (int j = 0; j < 3; j++) {
                    check_narrow_f32(f, &t, around[j]);
                    check_narrow_f32(f, &t, -around[j]);
                }
            }
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// The points next to the midpoints in f64, which f32 would round to the midpoints.
Test(exhaustive, narrow_f64_rounds_once) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned code = 0; code <= f->greatest; code++) {
            const double mid = magnitude(f, code) / 2 + magnitude(f, code + 1) / 2;
            const double around[3] = {mid, nextafter(mid, (double)INFINITY), nextafter(mid, 0)};
            for (int j = 0; j < 3; j++) {
                const unsigned got = narrow(f, around[j]), want = reference(f, around[j]);
                note(&t, got == want, tk_f64_bits(around[j]), code, got, want);
                const unsigned minus = narrow(f, -around[j]);
                note(&t, minus == (want | f->codes), tk_f64_bits(-around[j]), code, minus, want);
            }
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// Patterns from the whole range, infinities and NaNs among them.
Test(exhaustive, narrow_random) {
    uint64_t state = 1;
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned bits = 0; bits < 0xffff0000U; bits += 39119) {
            check_narrow_f32(f, &t, tk_f32_of_bits(bits));
        }
        for (int k = 0; k < 50000; k++) {
            const double x = tk_f64_of_bits(random_bits(&state));
            note(&t, agrees(f, narrow(f, x), reference(f, x)), tk_f64_bits(x), 64, 0, 0);
        }
        const double edges[] = {
            0.0, -0.0, 5e-324, 1.7e308, (double)INFINITY, -(double)INFINITY, (double)NAN};
        for (size_t k = 0; k < sizeof edges / sizeof edges[0]; k++) {
            check_narrow_f32(f, &t, (float)edges[k]);
            note(&t, agrees(f, narrow(f, edges[k]), reference(f, edges[k])), k, 64, 0, 0);
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

Test(exhaustive, narrow_is_monotone) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        unsigned before = 0;
        tally t = {0};
        for (uint32_t bits = 0; bits <= 0x7f800000U; bits += 4093) {
            const unsigned code = narrow_f32(f, tk_f32_of_bits(bits));
            note(&t, code >= before, bits, 0, code, before);
            before = code;
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// 64-bit integers to every narrow float and to f32: powers of two, and midpoints and their
// neighbours made by adding the last bits to short numbers.
Test(exhaustive, integer_to_float_rounds_once) {
    static const format f32 = {TK_F32, 32, 23, 127, 0x7f7fffff, 0x7f800000, 0x80000000};
    uint64_t state = 3;
    for (int i = 0; i <= FORMATS; i++) {
        const format *f = i < FORMATS ? &formats[i] : &f32;
        tally t = {0};
        for (int k = 0; k < 60000; k++) {
            const unsigned length = 1 + (unsigned)(random_bits(&state) % 64);
            const unsigned keep = (unsigned)(random_bits(&state) % (f->man + 3)) + 1;
            uint64_t x = random_bits(&state) | (uint64_t)1 << 63;
            x = (x & ~(keep < 64 ? UINT64_MAX >> keep : 0)) >> (64 - length);
            x += random_bits(&state) % 3 - 1;
            const exact e = {x != 0, x, 0};
            const unsigned want = x == 0 ? 0 : nearest(f, e);
            const unsigned got = (unsigned)tk_const_u64(f->t, x).bits;
            note(&t, got == want, x, 0, got, want);
            const int64_t s = (int64_t)x;
            const exact es = {(s > 0) - (s < 0), s < 0 ? 0 - x : x, 0};
            const unsigned want_s = s == 0 ? 0 : nearest(f, es);
            const unsigned got_s = (unsigned)tk_const_i64(f->t, s).bits;
            note(&t, got_s == want_s, x, 1, got_s, want_s);
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// Every code to every integer type: clamped to the range by comparing, truncated by the library.
Test(exhaustive, float_to_integer) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned code = 0; code < 2 * f->codes; code++) {
            const double x = decode(f, code);
            for (tk_dtype d = TK_I8; d <= TK_U64; d = (tk_dtype)(d + 1)) {
                const tk_const lo = tk_const_least(d), hi = tk_const_greatest(d);
                // The bounds of the 64-bit types round to powers of two; no narrow float lies
                // between.
                const uint64_t want =
                    x != x                     ? 0
                    : x >= tk_const_as_f64(hi) ? hi.bits
                    : x <= tk_const_as_f64(lo) ? lo.bits
                    : d == TK_U64              ? (uint64_t)x
                                  : (uint64_t)(int64_t)x & (UINT64_MAX >> (64 - tk_dtype_bits(d)));
                note(&t, tk_cast((tk_const){f->t, code}, d).bits == want, code, d, 0, 0);
            }
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// --- arithmetic ---

// The exact result rounded by f64 first: its 53 bits are more than twice a narrow float's, so the
// second rounding gives what one would.
static double in_f64(tk_numop op, double a, double b) {
    return op == TK_NUM_ADD   ? a + b
           : op == TK_NUM_SUB ? a - b
           : op == TK_NUM_MUL ? a * b
           : op == TK_NUM_DIV ? a / b
                              : fmod(a, b);
}

static const tk_numop arithmetic[] = {TK_NUM_ADD, TK_NUM_SUB, TK_NUM_MUL, TK_NUM_DIV, TK_NUM_REM};

static void check_arithmetic(const format *f, tally *t, unsigned a, unsigned b) {
    for (int k = 0; k < 5; k++) {
        const tk_numop op = arithmetic[k];
        const tk_const x = {f->t, a}, y = {f->t, b};
        const unsigned got = (unsigned)tk_num_binary(op, f->t, x, y).bits;
        const unsigned want = reference(f, in_f64(op, decode(f, a), decode(f, b)));
        note(t, agrees(f, got, want), (uint64_t)a << 32 | b, op, got, want);
    }
}

Test(exhaustive, f8_arithmetic) {
    for (int i = 0; i < 2; i++) {
        tally t = {0};
        for (unsigned ab = 0; ab < 65536; ab++) {
            check_arithmetic(&formats[i], &t, ab >> 8, ab & 255);
        }
        conclude(&t, tk_dtype_name(formats[i].t));
    }
}

// bf16 has the exponents of f32, where a subnormal quotient or product is rounded by f32 first; the
// language says so, and the reference here does not, so those are left out.
Test(exhaustive, f16_and_bf16_arithmetic) {
    uint64_t state = 5;
    for (int i = 2; i < FORMATS; i++) {
        tally t = {0};
        for (int k = 0; k < 60000; k++) {
            const uint64_t r = random_bits(&state);
            unsigned a = r & 0xffff, b = r >> 16 & 0xffff;
            if (formats[i].t == TK_BF16) {
                a = (a & 0x9fff) | 0x2000; // exponents 64 to 127
                b = (b & 0x9fff) | 0x2000;
            }
            check_arithmetic(&formats[i], &t, a, b);
        }
        conclude(&t, tk_dtype_name(formats[i].t));
    }
}

Test(exhaustive, choice_and_sign) {
    tally t = {0};
    for (int i = 0; i < 2; i++) {
        const format *f = &formats[i];
        for (unsigned ab = 0; ab < 65536; ab++) {
            const unsigned a = ab >> 8, b = ab & 255;
            const double x = decode(f, a), y = decode(f, b);
            const tk_const ca = {f->t, a}, cb = {f->t, b};
            // Order with the zeros told apart.
            const bool less = x < y || (x == y && signbit(x) > signbit(y));
            const bool nan = x != x || y != y;
            const unsigned least = nan ? UINT32_MAX : less ? a : b;
            const unsigned most = nan ? UINT32_MAX : less ? b : a;
            const unsigned number = x != x && y != y ? UINT32_MAX : x != x ? b : a;
            note(&t, agrees(f, (unsigned)tk_num_binary(TK_NUM_MIN, f->t, ca, cb).bits, least), ab,
                 0, 0, least);
            note(&t, agrees(f, (unsigned)tk_num_binary(TK_NUM_MAX, f->t, ca, cb).bits, most), ab, 1,
                 0, most);
            const unsigned fmin = (unsigned)tk_num_binary(TK_NUM_FMIN, f->t, ca, cb).bits;
            const unsigned fmax = (unsigned)tk_num_binary(TK_NUM_FMAX, f->t, ca, cb).bits;
            note(&t, agrees(f, fmin, nan ? number : least), ab, 2, fmin, least);
            note(&t, agrees(f, fmax, nan ? number : most), ab, 3, fmax, most);
            note(&t, tk_num_binary(TK_NUM_LT, f->t, ca, cb).bits == (x < y), ab, 4, 0, 0);
            note(&t, tk_num_binary(TK_NUM_EQ, f->t, ca, cb).bits == (x == y), ab, 5, 0, 0);
        }
    }
    conclude(&t, "choice");
}

Test(exhaustive, round_to_integer) {
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (unsigned code = 0; code < 2 * f->codes; code++) {
            const double x = decode(f, code);
            const double want[4] = {floor(x), ceil(x), nearbyint(x), trunc(x)};
            static const tk_numop ops[4] = {TK_NUM_FLOOR, TK_NUM_CEIL, TK_NUM_ROUND, TK_NUM_TRUNC};
            for (int k = 0; k < 4; k++) {
                const unsigned got =
                    (unsigned)tk_num_unary(ops[k], f->t, (tk_const){f->t, code}).bits;
                const unsigned r = isfinite(x) ? reference(f, want[k]) : code;
                note(&t, got == r, code, (uint64_t)k, got, r);
            }
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// --- fma ---

static void check_fma(const format *f, tally *t, unsigned a, unsigned b, unsigned c) {
    const double x = decode(f, a), y = decode(f, b), z = decode(f, c);
    unsigned want;
    if (isfinite(x) && isfinite(y) && isfinite(z) && x * y != 0 && z != 0 && x * y != -z) {
        // Either term may be the great one; a gap too wide for exact_add leaves only its sign.
        exact p = trim(exact_mul(exact_of(x), exact_of(y))), q = trim(exact_of(z));
        const int top_p = bit_length(p.m) + p.e, top_q = bit_length(q.m) + q.e;
        if (top_p > top_q + 60) {
            q = (exact){q.sign, 1, top_p - 62};
        } else if (top_q > top_p + 60) {
            p = (exact){p.sign, 1, top_q - 62};
        }
        want = nearest(f, exact_add(p, q));
    } else {
        want = reference(f, x * y + z); // exact in f64, or special
    }
    const tk_const k[3] = {{f->t, a}, {f->t, b}, {f->t, c}};
    const unsigned got = (unsigned)tk_num_ternary(TK_NUM_FMA, f->t, k[0], k[1], k[2]).bits;
    note(t, agrees(f, got, want), (uint64_t)a << 32 | b, c, got, want);
}

// All three operands at random, special values among them.
Test(exhaustive, fma_narrow_random) {
    uint64_t state = 7;
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (int k = 0; k < 60000; k++) {
            const uint64_t r = random_bits(&state);
            const unsigned mask = 2 * f->codes - 1;
            check_fma(f, &t, (unsigned)r & mask, (unsigned)(r >> 16) & mask,
                      (unsigned)(r >> 32) & mask);
        }
        conclude(&t, tk_dtype_name(f->t));
    }
}

// Cases where rounding to f32 or f64 first goes wrong: the great term lies on a midpoint of the
// type, or so near that the other term decides. The product is made the midpoint by an odd factor
// of one bit more than the type holds; the addend is the least of either sign, or near the gap.
Test(exhaustive, fma_double_rounding) {
    uint64_t state = 9;
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        tally t = {0};
        for (int k = 0; k < 30000; k++) {
            const uint64_t r = random_bits(&state);
            const unsigned a = ((unsigned)r & (f->codes - 1)) % f->greatest;
            // b: a power of two, or that times 1.5, so that short products abound
            const unsigned b = ((unsigned)(r >> 16) % (f->greatest >> f->man) << f->man) |
                               (r >> 63 ? 1U << (f->man - 1) : 0);
            const unsigned sign = (r >> 62 & 1) != 0 ? f->codes : 0;
            const unsigned small = 1 + (unsigned)(r >> 40) % 4;
            check_fma(f, &t, a, b, small | sign);
            // The sum of a midpoint-sized product and a code near it.
            const double half = decode(f, a) * decode(f, b);
            const unsigned near = isfinite(half) ? nearest(f, exact_of(half == 0 ? 1 : half)) : 1;
            check_fma(f, &t, a, b, near | sign);
            check_fma(f, &t, small, b, a | sign);
            check_fma(f, &t, small, small, a | sign);
        }
        conclude(&t, tk_dtype_name(f->t));
    }
    // (1 + 2^-10)(1 + 2^-1) needs 11 bits below 1.5; with the least addend it is just over the tie.
    const tk_const a = tk_const_f64(TK_F16, 1 + 0x1p-10), b = tk_const_f64(TK_F16, 1.5);
    for (unsigned sign = 0; sign < 2; sign++) {
        const tk_const tiny = {TK_F16, sign << 15 | 1};
        const tk_const r = tk_num_ternary(TK_NUM_FMA, TK_F16, a, b, tiny);
        cr_expect_eq(r.bits, sign ? 0x3e01U : 0x3e02U);
    }
}

// f32: the inline form against the library's, with exponents that make the terms meet.
Test(exhaustive, fma_f32_as_the_library) {
    uint64_t state = 11;
    tally t = {0};
    for (int k = 0; k < 400000; k++) {
        const uint64_t r = random_bits(&state), s = random_bits(&state);
        uint32_t a = (uint32_t)r, b = (uint32_t)(r >> 32), c = (uint32_t)s;
        if (k % 4 != 0) {
            const uint32_t ea = 96 + (uint32_t)(s >> 32) % 64, eb = 96 + (uint32_t)(s >> 40) % 64;
            const uint32_t ec = ea + eb - 127 + (uint32_t)(s >> 48) % 80 - 40;
            a = (a & 0x807fffffU) | ea << 23;
            b = (b & 0x807fffffU) | eb << 23;
            c = (c & 0x807fffffU) | (ec & 0xff) << 23;
        }
        if (k % 8 == 1) { // short factors: ties and cancellation
            a &= 0xfffff000U;
            b &= 0xfffff000U;
            c &= 0xfff00000U;
        }
        if (k % 16 == 2) { // results among the subnormals
            a = (a & 0x807fffffU) | 30U << 23;
            b = (b & 0x807fffffU) | 75U << 23;
            c &= 0x80ffffffU;
        }
        if (k % 16 == 3) { // a tie, or next to one, and an addend that f64 would lose
            a = (a & 0x807fffffU) | 127U << 23 | 1;
            b = (b & 0x80400000U) | 127U << 23;
            c = (c & 0x807fffffU) | (40 + (c >> 23) % 40) << 23;
        }
        const float x = tk_f32_of_bits(a), y = tk_f32_of_bits(b), z = tk_f32_of_bits(c);
        const float want = fmaf(x, y, z), got = tk_fma_f32(x, y, z);
        note(&t, want != want ? got != got : tk_f32_bits(got) == tk_f32_bits(want),
             (uint64_t)a << 32 | b, c, tk_f32_bits(got), tk_f32_bits(want));
    }
    conclude(&t, "f32");
}

// --- 8-bit integers: all pairs against wide arithmetic ---

static int floor_div(int a, int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int wide_result(tk_numop op, int a, int b, bool is_signed) {
    const int count = b < 0 || b > 7 ? 8 : b;
    switch ((int)op) {
    case TK_NUM_ADD:
        return a + b;
    case TK_NUM_SUB:
        return a - b;
    case TK_NUM_MUL:
        return a * b;
    case TK_NUM_DIV:
        return b == 0 ? 0 : a / b;
    case TK_NUM_REM:
        return b == 0 ? a : a % b;
    case TK_NUM_CDIV:
        return b == 0 ? 0 : -floor_div(-a, b);
    case TK_NUM_MULHI:
        return floor_div(a * b, 256);
    case TK_NUM_SHL:
        return a * (1 << count);
    case TK_NUM_SHR:
        return count == 8 && !is_signed ? 0 : floor_div(a, 1 << count);
    case TK_NUM_MIN:
        return a < b ? a : b;
    case TK_NUM_MAX:
        return a < b ? b : a;
    default:
        cr_assert_fail("no such operation");
    }
    return 0;
}

Test(exhaustive, i8_and_u8) {
    static const tk_numop ops[] = {TK_NUM_ADD, TK_NUM_SUB,  TK_NUM_MUL,   TK_NUM_DIV,
                                   TK_NUM_REM, TK_NUM_CDIV, TK_NUM_MULHI, TK_NUM_SHL,
                                   TK_NUM_SHR, TK_NUM_MIN,  TK_NUM_MAX};
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const tk_dtype d = is_signed ? TK_I8 : TK_U8;
        tally t = {0};
        for (unsigned ab = 0; ab < 65536; ab++) {
            const tk_const x = {d, ab >> 8}, y = {d, ab & 255};
            const int a = (int)tk_const_as_i64(x), b = (int)tk_const_as_i64(y);
            for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
                const unsigned got = (unsigned)tk_num_binary(ops[k], d, x, y).bits;
                const unsigned want = (unsigned)wide_result(ops[k], a, b, is_signed) & 255;
                note(&t, got == want, ab, ops[k], got, want);
            }
        }
        conclude(&t, tk_dtype_name(d));
    }
}

// mulhi and cdiv of 64 bits against 128-bit arithmetic.
Test(exhaustive, wide_integers) {
    uint64_t state = 13;
    tally t = {0};
    for (int k = 0; k < 100000; k++) {
        const uint64_t a = random_bits(&state) >> (random_bits(&state) & 63);
        const uint64_t b = random_bits(&state) >> (random_bits(&state) & 63);
        const int64_t sa = k & 1 ? (int64_t)a : (int64_t)(0 - a);
        const int64_t sb = k & 2 ? (int64_t)b : (int64_t)(0 - b);
        const u128 product = (u128)a * b;
        const i128 signed_product = (i128)sa * sb;
        note(&t, tk_mulhi_u64(a, b) == (uint64_t)(product >> 64), a, b, 0, 0);
        note(&t, tk_mulhi_i64(sa, sb) == (int64_t)(signed_product >> 64), a, b, 1, 0);
        const i128 q = sb == 0 ? 0 : (i128)sa / sb, r = sb == 0 ? 0 : (i128)sa % sb;
        const i128 up = q + (r != 0 && (sa < 0) == (sb < 0));
        note(&t, tk_cdiv_i64(sa, sb) == (int64_t)(uint64_t)up, a, b, 2, 0);
        note(&t, tk_cdiv_u64(a, b) == (b == 0 ? 0 : (uint64_t)(((u128)a + b - 1) / b)), a, b, 3, 0);
    }
    conclude(&t, "64 bits");
}
