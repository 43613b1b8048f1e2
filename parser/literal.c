// SPDX-License-Identifier: Apache-2.0
// What the lexer cannot say by a pattern: values of literals, and located complaints about
// malformed ones. A malformed literal still gives a token, so that one fault is one error.
#include "lang/utf8.h"
#include "parser/parse_internal.h"

#include "parser/parse.tab.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tk_span span_at(const tk_parser *p, uint32_t begin, size_t n) {
    return (tk_span){p->file, begin, begin + (uint32_t)n};
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word(char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int digit_of(char c) {
    return is_digit(c)              ? c - '0'
           : (c >= 'a' && c <= 'f') ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : 99;
}

// ---- Numbers ----------------------------------------------------------------------------------

// Digits of a base with '_' only between two of them. Returns where they end.
static size_t digits(const char *s, size_t i, size_t n, int base, bool *misplaced) {
    size_t begin = i;
    while (i < n && (digit_of(s[i]) < base || s[i] == '_')) {
        if (s[i] == '_' && (i == begin || i + 1 == n || digit_of(s[i + 1]) >= base)) {
            *misplaced = true;
        }
        i++;
    }
    return i;
}

// False where the digits make more than 64 bits.
static bool value_of(const char *s, size_t i, size_t end, int base, uint64_t *out) {
    uint64_t v = 0;
    for (; i < end; i++) {
        if (s[i] == '_') {
            continue;
        }
        uint64_t d = (uint64_t)digit_of(s[i]);
        if (v > (UINT64_MAX - d) / (uint64_t)base) {
            return false;
        }
        v = v * (uint64_t)base + d;
    }
    *out = v;
    return true;
}

// The nearest double, whatever the process' locale says about the decimal point.
static double float_of(tk_parser *p, const char *s, size_t n) {
    char *text = tk_alloc(p->arena, n + 1);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '_') {
            text[m++] = s[i];
        }
    }
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) {
        tk_fail_memory(p->arena->guard);
    }
    locale_t before = uselocale(c);
    double f = strtod(text, NULL);
    (void)uselocale(before);
    freelocale(c);
    return f;
}

static void bad_suffix(tk_parser *p, tk_token *t, const char *s, size_t i, size_t n,
                       const char *what) {
    tk_diag *d = tk_error(p->diags, span_at(p, t->begin + (uint32_t)i, n - i), "bad-number",
                          "'%.*s' cannot follow %s", (int)(n - i < 40 ? n - i : 40), s + i, what);
    if (n - i == 1 && strchr("fFhHuUlL", s[i])) {
        tk_help(p->diags, d, (tk_span){0},
                "a literal has no suffix; write a cast such as '%s(%.*s)'",
                strchr("uUlL", s[i]) ? "i64" : "f32", (int)(i < 40 ? i : 40), s);
    }
}

static int scan_float(tk_parser *p, tk_token *t, const char *s, size_t n) {
    bool misplaced = false;
    size_t i = digits(s, 0, n, 10, &misplaced);
    if (i < n && s[i] == '.') {
        i++;
        size_t from = i;
        i = digits(s, i, n, 10, &misplaced);
        if (i == from) {
            tk_diag *d = tk_error(p->diags, span_at(p, t->begin, n), "bad-number",
                                  "a float has digits on both sides of its point");
            tk_help(p->diags, d, (tk_span){0}, "write '%.*s0'", (int)(i < 40 ? i : 40), s);
            t->u.f = float_of(p, s, n);
            return TOK_FLOAT;
        }
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        size_t from = i + 1;
        from += from < n && (s[from] == '+' || s[from] == '-');
        size_t end = digits(s, from, n, 10, &misplaced);
        if (end == from) {
            (void)tk_error(p->diags, span_at(p, t->begin + (uint32_t)i, n - i), "bad-number",
                           "the exponent has no digits");
            return TOK_FLOAT;
        }
        i = end;
    }
    if (i < n) {
        bad_suffix(p, t, s, i, n, "a float");
    } else if (misplaced) {
        (void)tk_error(p->diags, span_at(p, t->begin, n), "bad-number",
                       "'_' stands only between two digits");
    }
    t->u.f = float_of(p, s, i);
    if (isinf(t->u.f)) {
        tk_diag *d = tk_error(p->diags, span_at(p, t->begin, n), "number-too-large",
                              "this float is greater than f64 can hold");
        tk_help(p->diags, d, (tk_span){0}, "infinity is written 'inf'");
    }
    return TOK_FLOAT;
}

static int scan_based(tk_parser *p, tk_token *t, const char *s, size_t n, int base) {
    bool misplaced = false;
    const char *name = base == 16 ? "hexadecimal" : "binary";
    size_t end = digits(s, 2, n, base, &misplaced);
    if (end < n) {
        tk_error(p->diags, span_at(p, t->begin + (uint32_t)end, n - end), "bad-number",
                 "'%c' is no %s digit", s[end], name);
    } else if (end == 2) {
        (void)tk_error(p->diags, span_at(p, t->begin, n), "bad-number", "'%.2s' has no digits", s);
    } else if (misplaced) {
        (void)tk_error(p->diags, span_at(p, t->begin, n), "bad-number",
                       "'_' stands only between two digits");
    } else if (!value_of(s, 2, end, base, &t->u.value)) {
        (void)tk_error(p->diags, span_at(p, t->begin, n), "number-too-large",
                       "this integer does not fit 64 bits");
    }
    return TOK_INT;
}

static int scan_decimal(tk_parser *p, tk_token *t, const char *s, size_t n) {
    bool misplaced = false;
    size_t end = digits(s, 0, n, 10, &misplaced);
    if (n - end == 2 && (memcmp(s + end, "KB", 2) == 0 || memcmp(s + end, "MB", 2) == 0)) {
        t->shift = s[end] == 'K' ? 10 : 20;
    } else if (end < n) {
        bad_suffix(p, t, s, end, n, "a number");
    }
    if (misplaced) {
        (void)tk_error(p->diags, span_at(p, t->begin, n), "bad-number",
                       "'_' stands only between two digits");
    }
    uint64_t v = 0;
    if (!value_of(s, 0, end, 10, &v) || v > UINT64_MAX >> t->shift) {
        tk_diag *d = tk_error(p->diags, span_at(p, t->begin, n), "number-too-large",
                              "this integer does not fit 64 bits");
        tk_help(p->diags, d, (tk_span){0}, "the greatest is 18446744073709551615");
        v = 0;
    }
    t->u.value = v;
    return TOK_INT;
}

int tk_scan_number(tk_parser *p, tk_token *t, const char *s, size_t n) {
    uint32_t errors = p->diags->errors;
    int kind = TOK_INT;
    bool prefixed = n > 1 && s[0] == '0' && strchr("xXbB", s[1]);
    size_t i = 0;
    while (i < n && (is_digit(s[i]) || s[i] == '_')) {
        i++;
    }
    bool exponent = i < n && (s[i] == 'e' || s[i] == 'E');
    if (s[0] == '.') {
        tk_diag *d = tk_error(p->diags, span_at(p, t->begin, n), "bad-number",
                              "a float has digits on both sides of its point");
        tk_help(p->diags, d, (tk_span){0}, "write '0%.*s'", (int)(n < 40 ? n : 40), s);
        kind = TOK_FLOAT;
    } else if (prefixed && !memchr(s, '.', n)) {
        kind = scan_based(p, t, s, n, s[1] == 'x' || s[1] == 'X' ? 16 : 2);
    } else if (memchr(s, '.', n) || exponent) {
        kind = scan_float(p, t, s, n);
    } else {
        kind = scan_decimal(p, t, s, n);
    }
    t->bad = p->diags->errors != errors;
    return kind;
}

// ---- Strings and comments ---------------------------------------------------------------------

// The first byte that a string or comment may not hold, or n.
static size_t first_bad_byte(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        unsigned size = tk_utf8_at(s + i, n - i, NULL);
        if (size == 0 || s[i] == '\0') {
            return i;
        }
        i += size;
    }
    return n;
}

static bool complain_bytes(tk_parser *p, uint32_t begin, const char *s, size_t n,
                           const char *where) {
    size_t i = first_bad_byte(s, n);
    if (i == n) {
        return false;
    }
    tk_span at = span_at(p, begin + (uint32_t)i, 1);
    if (s[i] == '\0') {
        (void)tk_error(p->diags, at, "stray-byte", "a zero byte in %s", where);
    } else {
        (void)tk_error(p->diags, at, "stray-byte", "byte 0x%02X in %s is not UTF-8",
                       (unsigned char)s[i], where);
    }
    return true;
}

void tk_scan_comment(tk_parser *p, uint32_t begin, const char *s, size_t n, bool closed) {
    if (!closed) {
        (void)tk_error(p->diags, span_at(p, begin, 2), "unterminated-comment",
                       "this comment is never closed by '*/'");
        p->bad_before = true;
    }
    (void)complain_bytes(p, begin, s, n, "a comment");
}

// One escape at s[i], the character after the backslash. 0 where there is no such escape.
static char escape_of(char c) {
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '"':
    case '\\':
        return c;
    default:
        return '\0';
    }
}

int tk_scan_string(tk_parser *p, tk_token *t, const char *s, size_t n) {
    uint32_t errors = p->diags->errors;
    char *text = tk_alloc(p->arena, n + 1);
    uint32_t m = 0;
    size_t i = 1;
    while (i < n && s[i] != '"') {
        if (s[i] != '\\') {
            text[m++] = s[i++];
            continue;
        }
        char c = i + 1 < n ? escape_of(s[i + 1]) : '\0';
        if (c) {
            text[m++] = c;
        } else if (i + 1 < n && (unsigned char)s[i + 1] >= 0x20) {
            tk_diag *d = tk_error(p->diags, span_at(p, t->begin + (uint32_t)i, 2), "bad-escape",
                                  "there is no such escape in a string");
            tk_help(p->diags, d, (tk_span){0}, "the escapes are \\n \\t \\\" and \\\\");
        }
        i += 2;
    }
    if (i >= n) {
        size_t shown = n;
        while (shown > 1 && s[shown - 1] == '\r') {
            shown--;
        }
        tk_diag *d = tk_error(p->diags, span_at(p, t->begin, shown), "unterminated-string",
                              "this string is not closed on its line");
        tk_help(p->diags, d, (tk_span){0}, "a line break in a string is written \\n");
    } else {
        (void)complain_bytes(p, t->begin, s, n, "a string");
    }
    t->u.string.text = text;
    t->u.string.size = m;
    t->bad = p->diags->errors != errors;
    return TOK_STRING;
}

// ---- What is no token -------------------------------------------------------------------------

// A run of bytes that start no token, or a name with letters that names do not have: one error,
// which shows the first such character.
int tk_scan_stray(tk_parser *p, tk_token *t, const char *s, size_t n, bool named) {
    size_t i = 0;
    while (named && i < n && is_word(s[i])) {
        i++;
    }
    uint32_t c = 0;
    unsigned size = tk_utf8_at(s + i, n - i, &c);
    if (c == 0xFEFF && t->begin == 0 && size == n) {
        return TK_KIND_SKIP; // a byte order mark
    }
    tk_span at =
        named ? span_at(p, t->begin + (uint32_t)i, size ? size : 1) : span_at(p, t->begin, n);
    tk_diag *d;
    if (size && tk_utf8_printable(s + i, n - i)) {
        d = tk_error(p->diags, at, "stray-byte",
                     named ? "'%.*s' cannot be part of a name" : "'%.*s' is no token", (int)size,
                     s + i);
        if (c > 0x7F) {
            tk_help(p->diags, d, (tk_span){0},
                    "only comments and strings hold characters other than ASCII");
        }
    } else if (s[i] == '\0') {
        d = tk_error(p->diags, at, "stray-byte", "a zero byte is no token");
    } else {
        d = tk_error(p->diags, at, "stray-byte", "byte 0x%02X is no token", (unsigned char)s[i]);
    }
    if (size == 1 && (c == '#' || c == '\'')) {
        tk_help(p->diags, d, (tk_span){0},
                c == '#' ? "a comment starts with //" : "a string stands in double quotes");
    }
    if (!named) {
        p->bad_before = true;
        return TK_KIND_SKIP;
    }
    t->u.name = tk_intern(p->names, s, n);
    t->bad = true;
    return TOK_NAME;
}

// Operators of other languages: the error says what to write, and the token is what was meant.
int tk_scan_operator(tk_parser *p, tk_token *t, const char *s) {
    static const struct {
        const char *text;
        int kind;
        tk_binop op;
        const char *help;
    } known[] = {
        {"&&=", TOK_OPASSIGN, TK_B_AND, "write 'x = x && y'"},
        {"||=", TOK_OPASSIGN, TK_B_OR, "write 'x = x || y'"},
        {"**=", TOK_OPASSIGN, TK_B_MUL, "write 'x = pow(x, y)'"},
        {"**", TOK_STAR, TK_B_MUL, "write 'pow(x, y)'"},
        {"===", TOK_EQ, TK_B_EQ, "write '=='"},
        {"!==", TOK_NE, TK_B_NE, "write '!='"},
        {"=>", TOK_GE, TK_B_GE, "'greater or equal' is '>='"},
        {"<>", TOK_NE, TK_B_NE, "write '!='"},
        {":=", TOK_ASSIGN, TK_B_EQ,
         "a new name is bound by 'let x = ...', a variable changed by '='"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(s, known[i].text) == 0) {
            tk_diag *d = tk_error(p->diags, tk_token_span(p, t), "unknown-operator",
                                  "there is no operator '%s'", s);
            tk_help(p->diags, d, (tk_span){0}, "%s", known[i].help);
            t->u.op = known[i].op;
            t->bad = true;
            return known[i].kind;
        }
    }
    TK_ICE(p->arena, "the lexer found an operator that literal.c does not know");
}
