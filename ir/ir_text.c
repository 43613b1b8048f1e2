// SPDX-License-Identifier: Apache-2.0
// Words of the text form and constants as text. See ir_text.h.
#include "ir/ir_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS(...)                                                                                 \
    {                                                                                              \
        (const char *const[]){__VA_ARGS__},                                                        \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)                            \
    }

const tk_words tk_words_kind =
    WORDS("sum", "prod", "min", "max", "any", "all", "xor", "add", "and", "or", "xchg");
const tk_words tk_words_order = WORDS("relaxed", "acquire", "release", "acq_rel");
const tk_words tk_words_scope = WORDS("device", "block", "system");
const tk_words tk_words_precision = WORDS("ieee", "tf32", "tf32x3");
const tk_words tk_words_how = WORDS("async", "tensor", "registers", "begin");
const tk_words tk_words_like = WORDS("load", "common", "staged");
const tk_words tk_words_unit = WORDS("fma", "mma", "wgmma");
const tk_words tk_words_fast = WORDS("contract", "approx", "ftz");

const char *tk_word(const tk_words *w, uint32_t i) { return i < w->n ? w->word[i] : "?"; }

bool tk_word_find(const tk_words *w, const char *s, uint32_t *i) {
    for (uint32_t k = 0; k < w->n; k++) {
        if (strcmp(w->word[k], s) == 0) {
            *i = k;
            return true;
        }
    }
    return false;
}

const char *tk_level_name(tk_level level) {
    switch (level) {
    case TK_LEVEL_TILE:
        return "tile";
    case TK_LEVEL_LAID:
        return "laid";
    case TK_LEVEL_STAGED:
        return "staged";
    }
    return "?";
}

bool tk_level_from_name(const char *s, tk_level *out) {
    static const tk_level all[] = {TK_LEVEL_TILE, TK_LEVEL_LAID, TK_LEVEL_STAGED};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(tk_level_name(all[i]), s) == 0) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool tk_text_is_ident(const char *s) {
    if (!is_alpha(*s)) {
        return false;
    }
    while (is_alpha(*s) || is_digit(*s)) {
        s++;
    }
    return *s == '\0';
}

void tk_text_string(tk_buf *out, const char *s) {
    tk_buf_str(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            tk_buf_fmt(out, "\\%c", c);
        } else if (c == '\n' || c == '\t') {
            tk_buf_str(out, c == '\n' ? "\\n" : "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            tk_buf_fmt(out, "\\x%02x", c);
        } else {
            tk_buf_add(out, s, 1);
        }
    }
    tk_buf_str(out, "\"");
}

void tk_text_name(tk_buf *out, const char *s) {
    const char *p = s;
    if (is_alpha(*p)) {
        while (is_alpha(*p) || is_digit(*p) || *p == '.') {
            p++;
        }
        if (*p == '\0') {
            tk_buf_str(out, s);
            return;
        }
    }
    tk_text_string(out, s);
}

// ---- Constants ----------------------------------------------------------------------------------

enum { NUMBER_MAX = 64 }; // longest number written

// printf and strtod use the radix character of the caller's locale; our text always has a point.
static void radix_out(char *s) {
    char *to = s;
    bool done = false;
    for (const char *p = s; *p; p++) {
        if (is_digit(*p) || is_alpha(*p) || *p == '-' || *p == '+') {
            *to++ = *p;
            done = false;
        } else if (!done) { // the radix may be of several bytes
            *to++ = '.';
            done = true;
        }
    }
    *to = '\0';
}

static double read_double(const char *s) {
    char probe[16], text[NUMBER_MAX + 16];
    (void)snprintf(probe, sizeof probe, "%.1f", 0.5); // "0", the radix, "5"
    size_t n = 0;
    for (const char *p = s; *p && n < NUMBER_MAX; p++) {
        if (*p == '.') {
            for (const char *q = probe + 1; *q && *q != '5' && n < sizeof text - 2; q++) {
                text[n++] = *q;
            }
        } else {
            text[n++] = *p;
        }
    }
    text[n] = '\0';
    return strtod(text, NULL);
}

// digits [. digits] [e [sign] digits], or inf, nan
static bool is_float_text(const char *s) {
    if (strcmp(s, "inf") == 0 || strcmp(s, "nan") == 0) {
        return true;
    }
    if (!is_digit(*s) || strlen(s) > NUMBER_MAX) {
        return false;
    }
    while (is_digit(*s)) {
        s++;
    }
    if (*s == '.') {
        s++;
        while (is_digit(*s)) {
            s++;
        }
    }
    if (*s == 'e') {
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        if (!is_digit(*s)) {
            return false;
        }
        while (is_digit(*s)) {
            s++;
        }
    }
    return *s == '\0';
}

static bool read_magnitude(const char *s, uint64_t *out) {
    uint64_t x = 0;
    if (!is_digit(*s)) {
        return false;
    }
    for (; is_digit(*s); s++) {
        uint64_t d = (uint64_t)(*s - '0');
        if (x > (UINT64_MAX - d) / 10) {
            return false;
        }
        x = x * 10 + d;
    }
    *out = x;
    return *s == '\0';
}

bool tk_text_number(const char *s, bool negative, tk_dtype t, tk_const *out) {
    if (tk_dtype_is_float(t)) {
        if (!is_float_text(s)) {
            return false;
        }
        double x = read_double(s);
        *out = tk_const_f64(t, negative ? -x : x);
        return true;
    }
    uint64_t u;
    if (!tk_dtype_is_int(t) || !read_magnitude(s, &u) || !tk_num_holds_int(t, negative, u)) {
        return false;
    }
    *out = tk_const_u64(t, negative ? 0 - u : u);
    return true;
}

static bool reads_back(const char *s, tk_const c) {
    bool negative = *s == '-';
    tk_const back;
    return tk_text_number(s + negative, negative, c.dtype, &back) && tk_const_same(back, c);
}

// The shortest of 1 to 17 digits that reads back as the same bits; "" where none does (most NaNs).
static void float_text(tk_const c, char text[NUMBER_MAX]) {
    double x = tk_const_as_f64(c);
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, NUMBER_MAX - 3, "%.*g", digits, x);
        radix_out(text);
        if (reads_back(text, c)) {
            if (!strpbrk(text, ".en")) {
                strcat(text, ".0");
            }
            return;
        }
    }
    text[0] = '\0';
}

void tk_text_const(tk_buf *out, tk_const c) {
    char text[NUMBER_MAX] = "";
    if (c.dtype == TK_BOOL && c.bits <= 1) {
        tk_buf_str(out, c.bits ? "true" : "false");
    } else if (tk_dtype_is_float(c.dtype)) {
        float_text(c, text);
    } else if (tk_dtype_is_signed(c.dtype)) {
        (void)snprintf(text, sizeof text, "%lld", (long long)tk_const_as_i64(c));
    } else if (tk_dtype_is_int(c.dtype)) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)c.bits);
    }
    if (text[0] && reads_back(text, c)) {
        tk_buf_str(out, text);
    } else if (!(c.dtype == TK_BOOL && c.bits <= 1)) {
        tk_buf_fmt(out, "bits(0x%llx)", (unsigned long long)c.bits);
    }
}
