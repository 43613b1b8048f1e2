// SPDX-License-Identifier: Apache-2.0
// The elements of an ARRAY.
//
// Random numbers are Philox 4x32-10: key = the seed, counter = (index low, index high, a hash of
// the parameter's name), so that arrays differ whatever their order. Everything else uses + - * /
// and sqrt alone, so that all machines make the same bits.
#include "array.h"

#include <math.h>
#include <string.h>

typedef struct stream {
    uint32_t key[2];
    uint32_t name[2];
} stream;

static stream stream_of(const char *name, uint64_t seed) {
    uint64_t h = UINT64_C(14695981039346656037); // FNV-1a
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        h = (h ^ *p) * UINT64_C(1099511628211);
    }
    return (stream){{(uint32_t)seed, (uint32_t)(seed >> 32)}, {(uint32_t)h, (uint32_t)(h >> 32)}};
}

// Words 2i and 2i + 1 of 64 bits.
static void draw(const stream *s, uint64_t i, uint64_t out[2]) {
    uint32_t c[4] = {(uint32_t)i, (uint32_t)(i >> 32), s->name[0], s->name[1]};
    uint32_t k0 = s->key[0], k1 = s->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)c[0] * 0xD2511F53u, q = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = (uint64_t)c[1] << 32 | c[0];
    out[1] = (uint64_t)c[3] << 32 | c[2];
}

// The natural logarithm of x in (0, 1].
static double log_of(double x) {
    int e;
    double m = frexp(x, &e); // [0.5, 1)
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    // log m = 2 artanh z, |z| < 0.1716
    double z = (m - 1) / (m + 1), z2 = z * z, sum = 0;
    for (int n = 23; n >= 1; n -= 2) {
        sum = sum * z2 + 1.0 / n;
    }
    return 2 * z * sum + e * 0.69314718055994531;
}

// Cosine and sine of 2 pi u, u in [0, 1).
static void turn(double u, double *cosine, double *sine) {
    int quarter = (int)(4 * u + 0.5);                                 // the nearest
    double x = (u - 0.25 * quarter) * 6.2831853071795865, x2 = x * x; // |x| <= pi / 4
    double c = 0, s = 0;
    for (int n = 16; n >= 2; n -= 2) {
        c = (1 + c) * -x2 / (n * (n - 1));
        s = (1 + s) * -x2 / (n * (n + 1));
    }
    c += 1;
    s = x * (1 + s);
    double cs[4] = {c, -s, -c, s}, sn[4] = {s, c, -s, -c};
    *cosine = cs[quarter & 3];
    *sine = sn[quarter & 3];
}

enum { CHUNK = 4096 }; // even

static void normal(const stream *s, size_t from, size_t n, double *out) {
    for (size_t i = 0; i < n; i += 2) {
        uint64_t w[2];
        draw(s, (from + i) / 2, w);
        double u1 = (double)((w[0] >> 11) + 1) * 0x1p-53, u2 = (double)(w[1] >> 11) * 0x1p-53;
        double radius = sqrt(-2 * log_of(u1)), c, d;
        turn(u2, &c, &d);
        out[i] = radius * c;
        out[i + 1] = radius * d; // CHUNK is even: there is room
    }
}

// In [0, 1) after the rounding to `digits` bits, too.
static void uniform(const stream *s, int digits, size_t from, size_t n, double *out) {
    for (size_t i = 0; i < n; i += 2) {
        uint64_t w[2];
        draw(s, (from + i) / 2, w);
        out[i] = ldexp((double)(w[0] >> (64 - digits)), -digits);
        out[i + 1] = ldexp((double)(w[1] >> (64 - digits)), -digits);
    }
}

// low + floor(w range / 2^64)
static void integers(const stream *s, int64_t low, int64_t high, size_t from, size_t n,
                     int64_t *out) {
    uint64_t range = (uint64_t)high - (uint64_t)low;
    for (size_t i = 0; i < n; i++) {
        uint64_t w[2];
        draw(s, (from + i) / 2, w);
        uint64_t v = w[(from + i) % 2], a = range >> 32, b = range & UINT32_MAX, c = v >> 32,
                 d = v & UINT32_MAX;
        uint64_t cross = (b * d >> 32) + (uint64_t)(uint32_t)(a * d) + b * c;
        uint64_t top = a * c + (a * d >> 32) + (cross >> 32);
        uint64_t sum = (uint64_t)low + top;
        out[i] = sum > INT64_MAX ? -(int64_t)(UINT64_MAX - sum) - 1 : (int64_t)sum;
    }
}

static tkc_dtype fill_chunk(const array *a, const stream *s, size_t from, size_t n, double *real,
                            int64_t *whole) {
    int64_t low = 0, high = 0;
    switch (a->kind) {
    case ARRAY_RANDN:
        normal(s, from, n, real);
        return TKC_F64;
    case ARRAY_RAND:
        uniform(s, dtype_digits(a->tensor.dtype), from, n, real);
        return TKC_F64;
    case ARRAY_RANDINT:
        integer_i64(a->low, &low);
        integer_i64(a->high, &high);
        integers(s, low, high, from, n, whole);
        return TKC_I64;
    case ARRAY_IOTA:
        for (size_t i = 0; i < n; i++) {
            whole[i] = (int64_t)(from + i);
        }
        return TKC_I64;
    case ARRAY_FULL:
        for (size_t i = 0; i < n; i++) {
            real[i] = a->is_integer ? integer_real(a->low) : a->real;
            // The bits of u64 as well.
            whole[i] = a->low.magnitude > INT64_MAX ? -(int64_t)(UINT64_MAX - a->low.magnitude) - 1
                                                    : (int64_t)a->low.magnitude;
            whole[i] = a->low.negative ? -1 - (int64_t)(a->low.magnitude - 1) : whole[i];
        }
        return dtype_is_float(a->tensor.dtype) ? TKC_F64 : TKC_I64;
    case ARRAY_ZEROS:
    case ARRAY_ONES:
    case ARRAY_FILE:
        for (size_t i = 0; i < n; i++) {
            whole[i] = a->kind == ARRAY_ONES;
        }
        return TKC_I64;
    }
    return TKC_I64;
}

static bool convert(tool *t, const array *a, void *to, tkc_dtype from, const void *data, size_t n) {
    tkc_status s = tkc_convert(a->tensor.dtype, to, from, data, n);
    if (s != TKC_OK) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "making '%s': %s", a->text, tkc_status_text(s));
    }
    return s == TKC_OK;
}

bool array_make(tool *t, array *a, uint64_t seed) {
    size_t elem = tkc_dtype_size(a->tensor.dtype), count, bytes;
    const void *old = a->tensor.data;
    if (a->kind == ARRAY_FILE && a->stored == a->tensor.dtype) {
        return true;
    }
    if (!tensor_size(a->tensor.rank, a->tensor.dim, elem, &count, &bytes)) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "'%s' is too large", a->text);
        return false;
    }
    a->tensor.data = tool_array(t, bytes, tool_format(t, "'%s'", a->text));
    if (!a->tensor.data) {
        return false;
    }
    if (a->kind == ARRAY_FILE) {
        return count == 0 || convert(t, a, a->tensor.data, a->stored, old, count);
    }
    stream s = stream_of(a->name, seed);
    double real[CHUNK];
    int64_t whole[CHUNK];
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = count - from < CHUNK ? count - from : CHUNK;
        tkc_dtype made = fill_chunk(a, &s, from, n, real, whole);
        const void *data = made == TKC_F64 ? (const void *)real : (const void *)whole;
        if (!convert(t, a, (char *)a->tensor.data + from * elem, made, data, n)) {
            return false;
        }
    }
    return true;
}
