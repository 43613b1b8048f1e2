// SPDX-License-Identifier: Apache-2.0
// See inflate.h.
#include "tests/inflate.h"

#include <string.h>

enum { BITS = 15, SYMBOLS = 288, DISTANCES = 30 };

typedef struct stream {
    tk_arena *arena;
    const unsigned char *in, *end;
    uint32_t bits, nbits;
    bool bad;
    unsigned char *out;
    size_t n, room;
} stream;

// A prefix code: how many words there are of each length, and the symbols in the words' order.
typedef struct code {
    uint16_t count[BITS + 1], symbol[SYMBOLS];
} code;

static uint32_t take(stream *s, unsigned n) {
    while (s->nbits < n) {
        s->bad = s->bad || s->in == s->end;
        s->bits |= (s->bad ? 0u : (uint32_t)*s->in++) << s->nbits;
        s->nbits += 8;
    }
    uint32_t x = s->bits & ((1u << n) - 1);
    s->bits >>= n;
    s->nbits -= n;
    return x;
}

static void put(stream *s, unsigned char x) {
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 1 << 16;
        unsigned char *to = tk_alloc(s->arena, room);
        if (s->n) {
            memcpy(to, s->out, s->n);
        }
        s->out = to;
        s->room = room;
    }
    s->out[s->n++] = x;
}

static void make_code(code *c, const uint8_t *length, unsigned n) {
    uint16_t at[BITS + 2] = {0};
    memset(c, 0, sizeof *c);
    for (unsigned k = 0; k < n; k++) {
        c->count[length[k]]++;
    }
    c->count[0] = 0;
    for (unsigned k = 1; k <= BITS; k++) {
        at[k + 1] = (uint16_t)(at[k] + c->count[k]);
    }
    for (unsigned k = 0; k < n; k++) {
        if (length[k]) {
            c->symbol[at[length[k]]++] = (uint16_t)k;
        }
    }
}

static unsigned symbol(stream *s, const code *c) {
    unsigned word = 0, first = 0, index = 0; // first: of the words of this length
    for (unsigned k = 1; k <= BITS; k++) {
        word |= take(s, 1);
        if (word - first < c->count[k]) {
            return c->symbol[index + word - first];
        }
        index += c->count[k];
        first = (first + c->count[k]) << 1;
        word <<= 1;
    }
    s->bad = true;
    return 0;
}

static void copy(stream *s, unsigned length, unsigned distance) {
    s->bad = s->bad || distance > s->n;
    for (unsigned k = 0; k < length && !s->bad; k++) {
        put(s, s->out[s->n - distance]);
    }
}

static void compressed(stream *s, const code *symbols, const code *distances) {
    while (!s->bad) {
        unsigned x = symbol(s, symbols);
        if (x < 256) {
            put(s, (unsigned char)x);
        } else if (x == 256) {
            return;
        } else if (x > 285) {
            s->bad = true;
        } else {
            unsigned k = x - 257, extra = k < 8 || k == 28 ? 0 : k / 4 - 1;
            unsigned length = k == 28 ? 258 : k < 8 ? k + 3 : ((4 + k % 4) << extra) + 3;
            length += take(s, extra);
            unsigned d = symbol(s, distances), more = d < 4 ? 0 : d / 2 - 1;
            s->bad = s->bad || d >= DISTANCES;
            unsigned far = d < 4 ? d + 1 : ((2 + d % 2) << more) + 1;
            copy(s, length, far + take(s, more));
        }
    }
}

static void fixed_codes(code *symbols, code *distances) {
    uint8_t length[SYMBOLS];
    for (unsigned k = 0; k < SYMBOLS; k++) {
        length[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
    }
    make_code(symbols, length, SYMBOLS);
    memset(length, 5, DISTANCES);
    make_code(distances, length, DISTANCES);
}

static void read_codes(stream *s, code *symbols, code *distances) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned n = take(s, 5) + 257, nd = take(s, 5) + 1, nl = take(s, 4) + 4;
    uint8_t length[SYMBOLS + 32 + 138] = {0};
    for (unsigned k = 0; k < nl; k++) {
        length[order[k]] = (uint8_t)take(s, 3);
    }
    code lengths;
    make_code(&lengths, length, 19);
    memset(length, 0, sizeof length);
    for (unsigned k = 0; k < n + nd && !s->bad;) {
        unsigned x = symbol(s, &lengths), times = 1;
        uint8_t value = (uint8_t)x;
        if (x >= 16) {
            value = x == 16 && k ? length[k - 1] : 0;
            times = x == 16 ? 3 + take(s, 2) : x == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
        }
        for (; times > 0; times--) {
            length[k++] = value;
        }
    }
    s->bad = s->bad || n > SYMBOLS || nd > DISTANCES;
    make_code(symbols, length, n < SYMBOLS ? n : SYMBOLS);
    make_code(distances, length + n, nd);
}

static void stored(stream *s) {
    s->bits = s->nbits = 0;
    uint32_t n = take(s, 16);
    s->bad = s->bad || take(s, 16) != (~n & 0xffff);
    for (; n > 0 && !s->bad; n--) {
        put(s, (unsigned char)take(s, 8));
    }
}

static uint32_t checksum(const stream *s) {
    uint32_t a = 1, b = 0;
    for (size_t k = 0; k < s->n; k++) {
        a = (a + s->out[k]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

const unsigned char *inflate(tk_arena *arena, const unsigned char *in, size_t n, size_t *size) {
    stream s = {.arena = arena, .in = in + 2, .end = in + n};
    if (n < 6 || (in[0] & 15) != 8 || (in[0] * 256 + in[1]) % 31 || in[1] & 32) {
        return NULL;
    }
    for (bool last = false; !last && !s.bad;) {
        code symbols, distances;
        last = take(&s, 1);
        unsigned kind = take(&s, 2);
        s.bad = s.bad || kind == 3;
        if (kind == 0) {
            stored(&s);
            continue;
        }
        if (kind == 1) {
            fixed_codes(&symbols, &distances);
        } else {
            read_codes(&s, &symbols, &distances);
        }
        compressed(&s, &symbols, &distances);
    }
    s.bits = s.nbits = 0;
    uint32_t sum = 0;
    for (unsigned k = 0; k < 4; k++) {
        sum = sum << 8 | take(&s, 8);
    }
    *size = s.n;
    return s.bad || sum != checksum(&s) ? NULL : s.out;
}
