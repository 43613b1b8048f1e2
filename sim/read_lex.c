// SPDX-License-Identifier: Apache-2.0
// Tokens of PTX.
//
// A word takes its suffixes along: "ld.global.v4.b32" and "%tid.x" are one token each, so that the
// tables can be matched against mnemonics as they are written.
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

void tk_sim_refuse_at(tk_sim_reader *r, uint32_t line, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    r->error->text = tk_vformat(r->arena, fmt, args);
    va_end(args);
    r->error->at = (tk_sim_place){.ptx_line = line};
    longjmp(r->jump, 1);
}

void tk_sim_refuse(tk_sim_reader *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    r->error->text = tk_vformat(r->arena, fmt, args);
    va_end(args);
    r->error->at = (tk_sim_place){.ptx_line = r->token.line};
    longjmp(r->jump, 1);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

static void skip_space(tk_sim_reader *r) {
    while (r->at < r->end) {
        const char *p = r->at;
        bool more = p + 1 < r->end;
        if (*p == '\n') {
            r->line++;
            r->at++;
        } else if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f' || *p == '\v') {
            r->at++;
        } else if (more && p[0] == '/' && p[1] == '/') {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else if (more && p[0] == '/' && p[1] == '*') {
            r->at += 2;
            while (r->at < r->end && !(r->at + 1 < r->end && r->at[0] == '*' && r->at[1] == '/')) {
                r->line += *r->at == '\n';
                r->at++;
            }
            r->at += r->at < r->end ? 2 : 0;
        } else {
            return;
        }
    }
}

static const char *word_end(const tk_sim_reader *r) {
    const char *p = r->at;
    while (p < r->end) {
        if (is_word_start(*p) || is_digit(*p)) {
            p++;
        } else if (r->end - p > 2 && p[0] == ':' && p[1] == ':' &&
                   (is_word_start(p[2]) || is_digit(p[2]))) { // shared::cta, L2::128B
            p += 2;
        } else {
            break;
        }
    }
    return p;
}

static const char *number_end(const tk_sim_reader *r) {
    const char *p = r->at;
    bool decimal = true;
    while (p < r->end) {
        if (is_digit(*p) || *p == '.') {
            p++;
        } else if (is_word_start(*p) && *p != '$' && *p != '%') {
            bool exponent = decimal && (*p == 'e' || *p == 'E') && p + 1 < r->end &&
                            (p[1] == '-' || p[1] == '+');
            decimal = decimal && (*p == 'e' || *p == 'E');
            p += exponent ? 2 : 1;
        } else {
            break;
        }
    }
    return p;
}

void tk_sim_next(tk_sim_reader *r) {
    skip_space(r);
    tk_sim_token *t = &r->token;
    t->at = r->at;
    t->line = r->line;
    if (r->at == r->end) {
        t->kind = TK_SIM_TOKEN_END;
    } else if (is_word_start(*r->at)) {
        t->kind = TK_SIM_TOKEN_WORD;
        r->at = word_end(r);
    } else if (is_digit(*r->at)) {
        t->kind = TK_SIM_TOKEN_NUMBER;
        r->at = number_end(r);
    } else if (*r->at == '"') {
        t->kind = TK_SIM_TOKEN_STRING;
        t->at = ++r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\n') {
            r->at++;
        }
        if (r->at == r->end || *r->at != '"') {
            tk_sim_refuse(r, "a string without an end");
        }
        t->n = (uint32_t)(r->at++ - t->at);
        return;
    } else {
        t->kind = TK_SIM_TOKEN_PUNCT;
        r->at++;
    }
    t->n = (uint32_t)(r->at - t->at);
}

bool tk_sim_is(const tk_sim_reader *r, const char *text) {
    const tk_sim_token *t = &r->token;
    return (t->kind == TK_SIM_TOKEN_WORD || t->kind == TK_SIM_TOKEN_PUNCT) &&
           strlen(text) == t->n && memcmp(text, t->at, t->n) == 0;
}

bool tk_sim_accept(tk_sim_reader *r, const char *text) {
    bool is = tk_sim_is(r, text);
    if (is) {
        tk_sim_next(r);
    }
    return is;
}

// What stands here, printable and not too long.
const char *tk_sim_token_text(tk_sim_reader *r) {
    if (r->token.kind == TK_SIM_TOKEN_END) {
        return "the end";
    }
    char *s = tk_strndup(r->arena, r->token.at, r->token.n < 60 ? r->token.n : 60);
    for (char *p = s; *p; p++) {
        *p = *p < ' ' || *p > '~' ? '?' : *p;
    }
    return tk_format(r->arena, "'%s'", s);
}

void tk_sim_expect(tk_sim_reader *r, const char *text) {
    if (!tk_sim_accept(r, text)) {
        tk_sim_refuse(r, "expected '%s', not %s", text, tk_sim_token_text(r));
    }
}

const char *tk_sim_word(tk_sim_reader *r, const char *what) {
    if (r->token.kind != TK_SIM_TOKEN_WORD) {
        tk_sim_refuse(r, "expected %s, not %s", what, tk_sim_token_text(r));
    }
    const char *name = tk_intern(&r->names, r->token.at, r->token.n);
    tk_sim_next(r);
    return name;
}

// ---- Numbers

static bool read_base(const char *s, size_t n, unsigned base, uint64_t *out) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        unsigned d = is_digit(c)            ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                            : 99;
        if (d >= base || x > (UINT64_MAX - d) / base) {
            return false;
        }
        x = x * base + d;
    }
    *out = x;
    return n > 0;
}

static bool read_decimal_float(const char *s, size_t n, uint64_t *out) {
    char text[64];
    if (n >= sizeof text) {
        return false;
    }
    memcpy(text, s, n);
    text[n] = 0;
    char *end;
    double x = strtod(text, &end);
    memcpy(out, &x, sizeof x);
    return end == text + n;
}

static bool read_number_text(const char *s, size_t n, tk_sim_number *x) {
    bool zero = n > 2 && s[0] == '0';
    char kind = zero ? s[1] : 0;
    if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
        x->is_float = true;
        x->pattern = kind == 'f' || kind == 'F' ? 4 : 8;
        return n == 2 + 2 * (size_t)x->pattern && read_base(s + 2, n - 2, 16, &x->bits);
    }
    if (n > 1 && s[n - 1] == 'U') {
        n--;
    }
    if (kind == 'x' || kind == 'X') {
        return read_base(s + 2, n - 2, 16, &x->bits);
    }
    if (kind == 'b' || kind == 'B') {
        return read_base(s + 2, n - 2, 2, &x->bits);
    }
    if (memchr(s, '.', n) || memchr(s, 'e', n) || memchr(s, 'E', n)) {
        x->is_float = true;
        return read_decimal_float(s, n, &x->bits);
    }
    return read_base(s, n, n > 1 && s[0] == '0' ? 8 : 10, &x->bits);
}

tk_sim_number tk_sim_read_number(tk_sim_reader *r) {
    tk_sim_number x = {0};
    bool minus = tk_sim_accept(r, "-");
    if (!minus) {
        tk_sim_accept(r, "+");
    }
    if (r->token.kind != TK_SIM_TOKEN_NUMBER || !read_number_text(r->token.at, r->token.n, &x)) {
        tk_sim_refuse(r, "expected a number, not %s", tk_sim_token_text(r));
    }
    if (minus) {
        x.negative = true;
        x.bits = !x.is_float      ? 0 - x.bits
                 : x.pattern == 4 ? x.bits ^ UINT64_C(0x80000000)
                                  : x.bits ^ UINT64_C(0x8000000000000000);
    }
    tk_sim_next(r);
    return x;
}

uint64_t tk_sim_read_integer(tk_sim_reader *r, uint64_t most, const char *what) {
    uint32_t line = r->token.line;
    tk_sim_number x = tk_sim_read_number(r);
    if (x.is_float || x.negative || x.bits > most) {
        tk_sim_refuse_at(r, line, "%s must be an integer from 0 to %llu", what,
                         (unsigned long long)most);
    }
    return x.bits;
}
