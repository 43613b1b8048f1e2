// SPDX-License-Identifier: Apache-2.0
// vprintf: arguments lie one behind another, each at a multiple of its size, floats as f64.
#include "sim/machine.h"

enum { MOST_PRINTED = 1 << 20, MOST_STRING = 1 << 14, MOST_WIDE = 1000 };

const char *tk_sim_string_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                             uint64_t address) {
    tk_buf b;
    tk_buf_init(&b, w->grid->arena);
    for (uint32_t k = 0; k < MOST_STRING; k++) {
        const unsigned char *p =
            tk_sim_at(w, i, lane, TK_SIM_GENERIC, address + k, 1, TK_SIM_READ, NULL);
        if (!p) {
            return NULL;
        }
        if (*p == 0) {
            break;
        }
        tk_buf_add(&b, (const char *)p, 1);
    }
    return tk_buf_text(&b);
}

typedef struct printing {
    tk_sim_warp *w;
    const tk_sim_inst *i;
    uint32_t lane, count;
    uint64_t at; // of the next argument
    bool ok;
} printing;

static uint64_t next_argument(printing *p, uint32_t bytes) {
    uint64_t x = 0;
    p->at = (p->at + bytes - 1) / bytes * bytes;
    const unsigned char *from =
        p->ok ? tk_sim_at(p->w, p->i, p->lane, TK_SIM_GENERIC, p->at, bytes, TK_SIM_READ, NULL)
              : NULL;
    p->ok = from != NULL;
    if (from) {
        memcpy(&x, from, bytes);
        p->count++;
    }
    p->at += bytes;
    return x;
}

// What stands between % and the conversion, for the C library.
typedef struct conversion {
    char flags[8];
    int width, precision; // -1: not said
    unsigned longs;       // l: 1, ll: 2; h: 0
    char kind;
} conversion;

// A number, or the argument that * stands for, which may be less than 0.
static int64_t read_count(printing *p, const char **s) {
    int64_t n = 0;
    if (**s == '*') {
        ++*s;
        return (int32_t)(uint32_t)next_argument(p, 4);
    }
    for (; **s >= '0' && **s <= '9'; ++*s) {
        n = n <= MOST_WIDE ? n * 10 + (**s - '0') : n;
    }
    return n;
}

static int bounded(int64_t n) { return n > MOST_WIDE ? MOST_WIDE : (int)n; }

static const char *read_conversion(printing *p, const char *s, conversion *c) {
    size_t n = 0;
    *c = (conversion){.width = -1, .precision = -1};
    for (; *s && strchr("-+ #0", *s); s++) {
        if (n < sizeof c->flags - 2 && !strchr(c->flags, *s)) {
            c->flags[n++] = *s;
        }
    }
    if (*s == '*' || (*s >= '0' && *s <= '9')) {
        const int64_t width = read_count(p, &s);
        if (width < 0) { // at the left
            c->flags[n] = '-';
        }
        c->width = bounded(width < 0 ? -width : width);
    }
    if (*s == '.') {
        s++;
        const int64_t precision = read_count(p, &s);
        c->precision = precision < 0 ? -1 : bounded(precision); // -1: as if none were there
    }
    for (; *s && strchr("hlzjt", *s); s++) {
        c->longs += *s == 'h' ? 0u : *s == 'l' ? 1u : 2u;
    }
    c->kind = *s;
    return *s ? s + 1 : s;
}

static const char *spec_of(printing *p, const conversion *c, const char *longs) {
    tk_buf b;
    tk_buf_init(&b, p->w->grid->arena);
    tk_buf_fmt(&b, "%%%s", c->flags);
    if (c->width >= 0) {
        tk_buf_fmt(&b, "%d", c->width);
    }
    if (c->precision >= 0) {
        tk_buf_fmt(&b, ".%d", c->precision);
    }
    tk_buf_fmt(&b, "%s%c", longs, c->kind == 'p' ? 'x' : c->kind);
    return tk_buf_text(&b);
}

// Also 0, which would end a text.
static void put_character(const conversion *c, char x, tk_buf *out) {
    const int pad = c->width > 1 ? c->width - 1 : 0;
    const bool left = strchr(c->flags, '-') != NULL;
    tk_buf_fmt(out, "%*s", left ? 0 : pad, "");
    tk_buf_add(out, &x, 1);
    tk_buf_fmt(out, "%*s", left ? pad : 0, "");
}

static void convert(printing *p, const conversion *c, tk_buf *out) {
    bool is_signed = c->kind == 'd' || c->kind == 'i';
    if (is_signed || (c->kind && strchr("uxXop", c->kind))) {
        uint32_t bytes = c->longs || c->kind == 'p' ? 8 : 4;
        uint64_t x = next_argument(p, bytes);
        x = is_signed && bytes == 4 ? (uint64_t)(int64_t)(int32_t)(uint32_t)x : x;
        tk_buf_str(out, c->kind == 'p' ? "0x" : "");
        tk_buf_fmt(out, spec_of(p, c, "ll"), (unsigned long long)x);
    } else if (c->kind && strchr("fFeEgGaA", c->kind)) {
        uint64_t bits = next_argument(p, 8);
        double x;
        memcpy(&x, &bits, sizeof x);
        tk_buf_fmt(out, spec_of(p, c, ""), x);
    } else if (c->kind == 'c') {
        put_character(c, (char)(unsigned char)next_argument(p, 4), out);
    } else if (c->kind == 's') {
        uint64_t at = next_argument(p, 8);
        const char *text = p->ok ? tk_sim_string_at(p->w, p->i, p->lane, at) : NULL;
        p->ok = text != NULL;
        if (text) {
            tk_buf_fmt(out, spec_of(p, c, ""), text);
        }
    } else {
        tk_buf_str(out, "%");
        tk_buf_add(out, &c->kind, c->kind && c->kind != '%');
    }
}

bool tk_sim_print(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t format,
                  uint64_t arguments, uint32_t *count) {
    printing p = {w, i, lane, 0, arguments, true};
    const char *s = tk_sim_string_at(w, i, lane, format);
    tk_buf out;
    tk_buf_init(&out, w->grid->arena);
    while (s && *s && p.ok) {
        size_t n = strcspn(s, "%");
        tk_buf_fmt(&out, "%.*s", (int)n, s);
        s += n;
        if (*s) {
            conversion c;
            s = read_conversion(&p, s + 1, &c);
            convert(&p, &c, &out);
        }
    }
    if (s && p.ok && w->grid->printed.n + out.n <= MOST_PRINTED) {
        tk_buf_add(&w->grid->printed, tk_buf_text(&out), out.n);
    }
    *count = p.count;
    w->grid->changes++;
    return s && p.ok;
}
