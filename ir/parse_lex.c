// SPDX-License-Identifier: Apache-2.0
// Tokens of the text form. Lines count: an op ends with its line, so a token knows whether it is
// the first of one.
#include "ir/parse_internal.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || c == '.';
}

tk_span tk_irp_span(const tk_irparse *p, uint32_t begin, uint32_t end) {
    return (tk_span){p->source, begin, end};
}

static char peek(const tk_irparse *p) { return p->at < p->size ? p->text[p->at] : '\0'; }

// Blanks and comments; whether a line ended.
static bool skip_blank(tk_irparse *p) {
    bool line = p->at == 0;
    while (p->at < p->size) {
        char c = p->text[p->at];
        if (c == '/' && p->at + 1 < p->size && p->text[p->at + 1] == '/') {
            while (p->at < p->size && p->text[p->at] != '\n') {
                p->at++;
            }
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            line = line || c == '\n';
            p->at++;
        } else {
            break;
        }
    }
    return line;
}

static void set(tk_irparse *p, tk_itkind kind, uint32_t from) {
    p->tok.kind = kind;
    p->tok.text = tk_intern(&p->names, p->text + from, p->at - from);
}

static void bad(tk_irparse *p, const char *what) {
    p->tok.kind = TK_IT_BAD;
    p->tok.text = "";
    tk_error(p->diags, tk_irp_span(p, p->tok.begin, p->at), "ir-syntax", "%s", what);
}

static int hex(char c) {
    if (is_digit(c)) {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The character behind a backslash; false where it is none that there is.
static bool escape(tk_irparse *p, char *out) {
    char c = peek(p);
    p->at += p->at < p->size;
    if (c == 'n' || c == 't') {
        *out = c == 'n' ? '\n' : '\t';
        return true;
    }
    if (c == '"' || c == '\\') {
        *out = c;
        return true;
    }
    if (c != 'x' || p->size - p->at < 2) {
        return false;
    }
    int high = hex(p->text[p->at]), low = hex(p->text[p->at + 1]);
    p->at += 2;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
        return false;
    }
    *out = (char)(unsigned char)(high * 16 + low);
    return true;
}

static void string(tk_irparse *p) {
    tk_buf b;
    tk_buf_init(&b, p->a);
    p->at++;
    while (p->at < p->size && p->text[p->at] != '"' && p->text[p->at] != '\n') {
        char c = p->text[p->at++];
        if (c == '\\' && !escape(p, &c)) {
            bad(p, "an escape that is none of \\n \\t \\\" \\\\ \\xNN");
            return;
        }
        if (c == '\0') {
            bad(p, "a zero byte in a string");
            return;
        }
        tk_buf_add(&b, &c, 1);
    }
    if (peek(p) != '"') {
        bad(p, "a string that does not end on its line");
        return;
    }
    p->at++;
    p->tok.kind = TK_IT_STRING;
    p->tok.text = tk_intern(&p->names, tk_buf_text(&b), b.n);
}

static void number(tk_irparse *p) {
    uint32_t from = p->at;
    bool is_hex = peek(p) == '0' && p->at + 1 < p->size && p->text[p->at + 1] == 'x';
    while (is_word(peek(p)) || ((peek(p) == '-' || peek(p) == '+') && !is_hex &&
                                p->text[p->at - 1] == 'e' && p->at > from)) {
        p->at++;
    }
    set(p, TK_IT_NUMBER, from);
}

void tk_irp_next(tk_irparse *p) {
    p->before = p->tok.end;
    p->tok.first = skip_blank(p);
    p->tok.begin = p->at;
    p->tok.text = "";
    char c = peek(p);
    if (p->at >= p->size) {
        p->tok.kind = TK_IT_END;
        p->tok.first = true;
    } else if (is_digit(c)) {
        number(p);
    } else if (is_word(c) || c == '%') {
        uint32_t from = p->at + (c == '%');
        p->at++;
        while (is_word(peek(p))) {
            p->at++;
        }
        set(p, c == '%' ? TK_IT_VALUE : TK_IT_WORD, from);
    } else if (c == '"') {
        string(p);
    } else if (c != '\0' && strchr("@(){}[],:=?+-#", c)) {
        uint32_t from = p->at++;
        if ((c == '+' && peek(p) == ':') || (c == '-' && peek(p) == '>')) {
            p->at++;
        }
        set(p, TK_IT_PUNCT, from);
    } else {
        p->at++;
        bad(p, "a character that no text of the IR has");
    }
    p->tok.end = p->at;
}

bool tk_irp_is(const tk_irparse *p, const char *s) {
    return (p->tok.kind == TK_IT_PUNCT || p->tok.kind == TK_IT_WORD) && strcmp(p->tok.text, s) == 0;
}

bool tk_irp_accept(tk_irparse *p, const char *s) {
    bool is = tk_irp_is(p, s);
    if (is) {
        tk_irp_next(p);
    }
    return is;
}

bool tk_irp_unexpected(tk_irparse *p, const char *wanted) {
    if (p->tok.kind == TK_IT_BAD) {
        return false;
    }
    tk_span at = tk_irp_span(p, p->tok.begin, p->tok.end);
    if (p->tok.kind == TK_IT_END) {
        tk_error(p->diags, at, "ir-syntax", "unexpected end, expected %s", wanted);
    } else {
        int n = p->tok.end - p->tok.begin > 40 ? 40 : (int)(p->tok.end - p->tok.begin);
        tk_error(p->diags, at, "ir-syntax", "unexpected '%.*s', expected %s", n,
                 p->text + p->tok.begin, wanted);
    }
    return false;
}

bool tk_irp_expect(tk_irparse *p, const char *s) {
    return tk_irp_accept(p, s) || tk_irp_unexpected(p, tk_format(p->a, "'%s'", s));
}

bool tk_irp_u64(tk_irparse *p, uint64_t *out) {
    const char *s = p->tok.text;
    uint64_t x = 0;
    bool is_hex = s[0] == '0' && s[1] == 'x';
    uint64_t base = is_hex ? 16 : 10;
    s += is_hex ? 2 : 0;
    if (p->tok.kind != TK_IT_NUMBER || *s == '\0') {
        return tk_irp_unexpected(p, "an integer");
    }
    for (; *s; s++) {
        int d = hex(*s);
        if (d < 0 || (uint64_t)d >= base || x > (UINT64_MAX - (uint64_t)d) / base) {
            return tk_irp_unexpected(p, "an integer of 64 bits");
        }
        x = x * base + (uint64_t)d;
    }
    tk_irp_next(p);
    *out = x;
    return true;
}

bool tk_irp_int(tk_irparse *p, int64_t *out) {
    bool negative = tk_irp_accept(p, "-");
    tk_itoken at = p->tok;
    uint64_t x;
    if (!tk_irp_u64(p, &x)) {
        return false;
    }
    if (x > (uint64_t)INT64_MAX) {
        tk_error(p->diags, tk_irp_span(p, at.begin, at.end), "ir-syntax",
                 "an integer of 64 bits with its sign cannot hold this");
        return false;
    }
    *out = negative ? -(int64_t)x : (int64_t)x;
    return true;
}

void tk_irp_skip_line(tk_irparse *p) {
    uint32_t open = 0;
    while (p->tok.kind != TK_IT_END) {
        if (tk_irp_is(p, "{")) {
            open++;
        } else if (tk_irp_is(p, "}")) {
            if (open == 0) {
                return;
            }
            open--;
        }
        tk_irp_next(p);
        if (p->tok.first && open == 0) {
            return;
        }
    }
}
