// SPDX-License-Identifier: Apache-2.0
// Any bytes go through the whole compiler: parsed, checked, and each kernel bound, instantiated,
// built, verified, passed and planned. An internal error or an error without a place is a fault.
// Half of the mutations change tokens rather than bytes, so that many mutants still parse.
#include "tests/whole.h"

#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static whole w;
    if (!w.context && !whole_open(&w)) {
        abort();
    }
    if (!whole_compile(&w, (const char *)data, size)) {
        (void)fprintf(stderr, "%s\n", w.fault);
        abort();
    }
    return 0;
}

enum { TOKENS = 2048, ROOM = 8192 };

typedef struct {
    size_t begin, end;
} range;

static size_t tokens_of(const uint8_t *s, size_t n, range *out) {
    size_t k = 0;
    for (size_t i = 0; i < n && k < TOKENS;) {
        size_t from = i++;
        if (isspace(s[from])) {
            continue;
        }
        while ((isalnum(s[from]) || s[from] == '_') && i < n && (isalnum(s[i]) || s[i] == '_')) {
            i++;
        }
        out[k++] = (range){from, i};
    }
    return k;
}

static const char *const words[] = {
    "0",      "1",    "-1",   "2147483647", "1.5",  "nan",     "inf",  "true",   "i8",   "i64",
    "u32",    "bool", "f16",  "f8e4m3",     "f64",  "x",       "y",    "N",      "T",    "BN",
    "[0]",    "{",    "}",    "(",          ")",    ";",       ",",    "+:",     "else", "where",
    "axis",   "=",    "==",   "&&",         "<<",   "%",       "[1]",  "in",     "out",  "inout",
    "return", "let",  "var",  "break",      "none", "newaxis", "iota", "sum",    "dot",  "reduce",
    "max",    "sort", "scan", "transpose",  "same", "type",    "fn",   "kernel", "..",   ":"};

// s with the token t replaced by `with`.
static size_t replaced(uint8_t *s, size_t n, size_t most, range t, const void *with, size_t size) {
    uint8_t text[ROOM];
    size_t now = n - (t.end - t.begin) + size + 2;
    if (now > most || size > sizeof text) {
        return n;
    }
    memcpy(text, with, size); // may stand in s
    memmove(s + t.begin + size + 2, s + t.end, n - t.end);
    s[t.begin] = ' ';
    memcpy(s + t.begin + 1, text, size);
    s[t.begin + 1 + size] = ' ';
    return now;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    static range t[TOKENS];
    size_t n = seed % 2 ? tokens_of(data, size, t) : 0;
    if (n == 0) {
        return LLVMFuzzerMutate(data, size, most);
    }
    range at = t[seed / 64 % n], other = t[seed / 64 / TOKENS % n];
    const char *word = words[seed / 1024 % (sizeof words / sizeof *words)];
    range before = {at.begin, at.begin};
    switch (seed / 2 % 6) {
    case 0:
        return replaced(data, size, most, at, "", 0);
    case 1:
        return replaced(data, size, most, at, word, strlen(word));
    case 2:
        return replaced(data, size, most, before, word, strlen(word));
    case 3:
        return replaced(data, size, most, before, data + other.begin, other.end - other.begin);
    case 4: { // several tokens from elsewhere
        range last = t[(seed / 64 / TOKENS % n + seed % 37) % n];
        size_t end = last.end > other.begin ? last.end : other.end;
        return replaced(data, size, most, before, data + other.begin, end - other.begin);
    }
    case 5:
        return replaced(data, size, most, at, data + other.begin, other.end - other.begin);
    }
    return size;
}
