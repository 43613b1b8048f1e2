// SPDX-License-Identifier: Apache-2.0
// Tokens of PTX.
//
// A word takes its suffixes along: "ld.global.v4.b32" and "%tid.x" are one token each, so that the
// tables can be matched against mnemonics as they are written. A directive does not: ".reg.b32" is
// ".reg .b32". A % begins a word, blank or not.
#include "sim/read.h"

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

static void skip_comment(tk_sim_reader *r) {
    const uint32_t line = r->line;
    for (r->at += 2; r->end - r->at >= 2; r->at++) {
        if (r->at[0] == '*' && r->at[1] == '/') {
            r->at += 2;
            return;
        }
        r->line += *r->at == '\n';
    }
    tk_sim_refuse_at(r, line, "a comment without an end");
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
            skip_comment(r);
        } else {
            return;
        }
    }
}

static const char *word_end(const tk_sim_reader *r) {
    const bool directive = *r->at == '.';
    const char *p = r->at + 1;
    while (p < r->end) {
        if (*p == '%' || (directive && *p == '.')) {
            break;
        }
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

// 5, .5
static bool is_number_start(const tk_sim_reader *r) {
    return is_digit(*r->at) || (*r->at == '.' && r->end - r->at > 1 && is_digit(r->at[1]));
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
    } else if (is_number_start(r)) {
        t->kind = TK_SIM_TOKEN_NUMBER;
        r->at = number_end(r);
    } else if (is_word_start(*r->at)) {
        t->kind = TK_SIM_TOKEN_WORD;
        r->at = word_end(r);
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
