// SPDX-License-Identifier: Apache-2.0
// UTF-8 decoding for messages and the lexer's complaints. See utf8.h.
#include "lang/utf8.h"

unsigned tk_utf8_at(const char *s, size_t n, uint32_t *out) {
    if (n == 0) {
        return 0;
    }
    uint32_t first = (unsigned char)s[0];
    unsigned size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (size == 0 || first > 0xF4 || size > n) {
        return 0;
    }
    uint32_t c = size == 1 ? first : first & (0xFFu >> (size + 1));
    for (unsigned i = 1; i < size; i++) {
        uint32_t next = (unsigned char)s[i];
        if ((next & 0xC0u) != 0x80u) {
            return 0;
        }
        c = c << 6 | (next & 0x3Fu);
    }
    if ((size == 3 && c < 0x800) || (size == 4 && (c < 0x10000 || c > 0x10FFFF)) ||
        (c >= 0xD800 && c <= 0xDFFF)) {
        return 0;
    }
    if (out) {
        *out = c;
    }
    return size;
}

unsigned tk_utf8_printable(const char *s, size_t n) {
    uint32_t c = 0;
    unsigned size = tk_utf8_at(s, n, &c);
    if (size == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200E && c <= 0x200F) ||
        (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF) {
        return 0;
    }
    return size;
}
