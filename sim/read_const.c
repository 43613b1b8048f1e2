// SPDX-License-Identifier: Apache-2.0
// Numbers and constant expressions of PTX: integers are of 64 bits, with or without a sign, floats
// are f64. What an operator gives is as PTX's table of constant expressions says. Floats written as
// bits (0f, 0d) stand alone.
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

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
        x->is_unsigned = true;
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

static tk_sim_number read_literal(tk_sim_reader *r) {
    tk_sim_number x = {0};
    if (tk_sim_accept(r, "WARP_SZ")) {
        x.bits = 32;
        return x;
    }
    if (r->token.kind != TK_SIM_TOKEN_NUMBER || !read_number_text(r->token.at, r->token.n, &x)) {
        tk_sim_refuse(r, "expected a number, not %s", tk_sim_token_text(r));
    }
    x.is_unsigned = x.is_unsigned || (!x.is_float && x.bits >> 63);
    tk_sim_next(r);
    return x;
}

uint64_t tk_sim_read_integer(tk_sim_reader *r, uint64_t most, const char *what) {
    uint32_t line = r->token.line;
    bool minus = tk_sim_accept(r, "-");
    tk_sim_number x = read_literal(r);
    if (x.is_float || minus || x.bits > most) {
        tk_sim_refuse_at(r, line, "%s must be an integer from 0 to %llu", what,
                         (unsigned long long)most);
    }
    return x.bits;
}

// ---- Operators

static double value_of(tk_sim_number x) {
    double d;
    memcpy(&d, &x.bits, sizeof d);
    return d;
}

static tk_sim_number from_double(double d) {
    tk_sim_number x = {.is_float = true};
    memcpy(&x.bits, &d, sizeof d);
    return x;
}

static tk_sim_number integer(uint64_t bits, bool is_unsigned) {
    return (tk_sim_number){.bits = bits, .is_unsigned = is_unsigned};
}

static void need_integer(tk_sim_reader *r, tk_sim_number x, const char *op) {
    if (x.is_float) {
        tk_sim_refuse(r, "'%s' in a constant expression takes integers", op);
    }
}

static tk_sim_number unary(tk_sim_reader *r, const char *op, tk_sim_number x) {
    if (x.pattern) {
        tk_sim_refuse(r, "'%s' before a float that is written as its bits", op);
    }
    if (*op == '-') {
        return x.is_float ? from_double(-value_of(x)) : integer(0 - x.bits, x.is_unsigned);
    }
    if (*op == '+') {
        return x;
    }
    need_integer(r, x, op);
    return *op == '!' ? integer(x.bits == 0, false) : integer(~x.bits, true);
}

typedef enum operation {
    OR_ELSE,
    AND_ALSO,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQ,
    NE,
    LE,
    GE,
    SHL,
    SHR,
    LT,
    GT,
    ADD,
    SUB,
    MUL,
    DIV,
    REM,
    OPERATIONS
} operation;

static const struct {
    const char *text; // the longer ones first
    int level;        // what binds closer has more
} operators[OPERATIONS] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                           {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"<", 7},
                           {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

// The operator that stands here, of one character or two without a space between; OPERATIONS: none.
static operation operator_here(const tk_sim_reader *r) {
    const tk_sim_token *t = &r->token;
    bool may = t->kind == TK_SIM_TOKEN_PUNCT || (t->kind == TK_SIM_TOKEN_WORD && t->n == 1);
    char first = may ? *t->at : 0, second = r->at < r->end ? *r->at : 0;
    for (unsigned two = 2; first && two > 0; two--) {
        for (unsigned k = 0; k < OPERATIONS; k++) {
            const char *s = operators[k].text;
            if (strlen(s) == two && s[0] == first && (two == 1 || s[1] == second)) {
                return (operation)k;
            }
        }
    }
    return OPERATIONS;
}

static tk_sim_number of_floats(tk_sim_reader *r, operation op, double x, double y) {
    switch (op) {
    case ADD:
        return from_double(x + y);
    case SUB:
        return from_double(x - y);
    case MUL:
        return from_double(x * y);
    case DIV:
        return from_double(x / y);
    case EQ:
        return integer(x == y, false);
    case NE:
        return integer(x != y, false);
    case LT:
        return integer(x < y, false);
    case LE:
        return integer(x <= y, false);
    case GT:
        return integer(x > y, false);
    case GE:
        return integer(x >= y, false);
    case OR_ELSE:
    case AND_ALSO:
    case BIT_OR:
    case BIT_XOR:
    case BIT_AND:
    case SHL:
    case SHR:
    case REM:
    case OPERATIONS:
        break;
    }
    tk_sim_refuse(r, "'%s' in a constant expression takes integers", operators[op].text);
}

static bool less(uint64_t x, uint64_t y, bool is_unsigned) {
    return is_unsigned ? x < y : (int64_t)x < (int64_t)y;
}

static uint64_t divide(uint64_t x, uint64_t y, bool is_unsigned) {
    bool minus_x = !is_unsigned && x >> 63, minus_y = !is_unsigned && y >> 63;
    uint64_t q = (minus_x ? 0 - x : x) / (minus_y ? 0 - y : y);
    return minus_x != minus_y ? 0 - q : q;
}

// More places than there are: nothing of it is left.
static uint64_t shift(tk_sim_number x, uint64_t by, bool left) {
    uint64_t sign = !left && !x.is_unsigned && x.bits >> 63 ? ~UINT64_C(0) : 0;
    return by > 63 ? sign : left ? x.bits << by : by ? x.bits >> by | sign << (64 - by) : x.bits;
}

static tk_sim_number of_integers(tk_sim_reader *r, operation op, tk_sim_number a, tk_sim_number b) {
    const uint64_t x = a.bits, y = b.bits;
    const bool u = a.is_unsigned || b.is_unsigned; // the usual conversions
    if ((op == DIV || op == REM) && y == 0) {
        tk_sim_refuse(r, "a constant expression divides by zero");
    }
    switch (op) {
    case OR_ELSE:
        return integer(x || y, false);
    case AND_ALSO:
        return integer(x && y, false);
    case BIT_OR:
        return integer(x | y, true);
    case BIT_XOR:
        return integer(x ^ y, true);
    case BIT_AND:
        return integer(x & y, true);
    case EQ:
        return integer(x == y, false);
    case NE:
        return integer(x != y, false);
    case LT:
        return integer(less(x, y, u), false);
    case LE:
        return integer(!less(y, x, u), false);
    case GT:
        return integer(less(y, x, u), false);
    case GE:
        return integer(!less(x, y, u), false);
    case SHL:
    case SHR:
        return integer(shift(a, y, op == SHL), a.is_unsigned);
    case ADD:
        return integer(x + y, u);
    case SUB:
        return integer(x - y, u);
    case MUL:
        return integer(x * y, u);
    case DIV:
        return integer(divide(x, y, u), u);
    case REM: // of numbers without a sign
        return integer(x % y, false);
    case OPERATIONS:
        break;
    }
    return a;
}

static tk_sim_number binary(tk_sim_reader *r, operation op, tk_sim_number a, tk_sim_number b) {
    if (a.pattern || b.pattern || a.is_float != b.is_float) {
        tk_sim_refuse(r, "'%s' of numbers that do not go together", operators[op].text);
    }
    return a.is_float ? of_floats(r, op, value_of(a), value_of(b)) : of_integers(r, op, a, b);
}

// ---- Expressions

static tk_sim_number expression(tk_sim_reader *r, unsigned depth);

static tk_sim_number operand(tk_sim_reader *r, unsigned depth) {
    static const char *const signs[] = {"-", "+", "~", "!"};
    if (depth == TK_SIM_MAX_DEPTH) {
        tk_sim_refuse(r, "a constant expression deeper than %d", TK_SIM_MAX_DEPTH);
    }
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        if (tk_sim_accept(r, signs[k])) {
            return unary(r, signs[k], operand(r, depth + 1));
        }
    }
    if (!tk_sim_accept(r, "(")) {
        return read_literal(r);
    }
    const bool is_unsigned = tk_sim_is(r, ".u64");
    if (is_unsigned || tk_sim_is(r, ".s64")) { // a cast
        tk_sim_next(r);
        tk_sim_expect(r, ")");
        tk_sim_number x = operand(r, depth + 1);
        need_integer(r, x, is_unsigned ? "(.u64)" : "(.s64)");
        return integer(x.bits, is_unsigned);
    }
    tk_sim_number x = expression(r, depth + 1);
    tk_sim_expect(r, ")");
    return x;
}

// Goes on behind `x` with operators that bind at least as closely as `level`.
static tk_sim_number climb(tk_sim_reader *r, tk_sim_number x, int level, unsigned depth) {
    for (operation op = operator_here(r); op != OPERATIONS && operators[op].level >= level;
         op = operator_here(r)) {
        tk_sim_next(r);
        if (operators[op].text[1]) {
            tk_sim_next(r);
        }
        tk_sim_number y = climb(r, operand(r, depth), operators[op].level + 1, depth);
        x = binary(r, op, x, y);
    }
    return x;
}

static tk_sim_number choose(tk_sim_reader *r, tk_sim_number x, unsigned depth) {
    if (!tk_sim_accept(r, "?")) {
        return x;
    }
    need_integer(r, x, "?");
    tk_sim_number a = expression(r, depth + 1);
    tk_sim_expect(r, ":");
    tk_sim_number b = expression(r, depth + 1);
    need_integer(r, a, "?");
    need_integer(r, b, "?");
    return integer(x.bits ? a.bits : b.bits, a.is_unsigned || b.is_unsigned);
}

static tk_sim_number expression(tk_sim_reader *r, unsigned depth) {
    return choose(r, climb(r, operand(r, depth), 1, depth), depth);
}

bool tk_sim_constant_begins(const tk_sim_reader *r) {
    return r->token.kind == TK_SIM_TOKEN_NUMBER || tk_sim_is(r, "WARP_SZ") ||
           (r->token.kind == TK_SIM_TOKEN_PUNCT && memchr("-+~!(", *r->token.at, 5) != NULL);
}

tk_sim_number tk_sim_read_constant(tk_sim_reader *r) { return expression(r, 0); }

tk_sim_number tk_sim_read_constant_not(tk_sim_reader *r) {
    tk_sim_number x = unary(r, "!", operand(r, 1));
    return choose(r, climb(r, x, 1, 0), 0);
}

// ---- As operands

bool tk_sim_number_bits(const tk_sim_number *x, tk_sim_type type, uint64_t *out) {
    const bool is_float = tk_sim_types[type].kind == 'f', b = tk_sim_types[type].kind == 'b';
    const unsigned bits = tk_sim_types[type].bits;
    const bool fits = x->pattern == 4 ? bits == 32 : bits == 64;
    if (type == TK_SIM_U16X2 || type == TK_SIM_S16X2) {
        return false;
    }
    if (is_float ? !x->is_float || (type != TK_SIM_F32 && type != TK_SIM_F64)
                 : x->is_float && !(b && fits)) {
        return false;
    }
    *out = bits < 64 ? x->bits & ((UINT64_C(1) << bits) - 1) : x->bits;
    if (is_float && bits == 32 && x->pattern != 4) {
        float f = (float)value_of(*x);
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        *out = u;
    } else if (is_float && bits == 64 && x->pattern == 4) {
        uint32_t u = (uint32_t)x->bits;
        float f;
        memcpy(&f, &u, sizeof f);
        *out = from_double((double)f).bits;
    }
    return true;
}
