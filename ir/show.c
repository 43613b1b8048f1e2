// SPDX-License-Identifier: Apache-2.0
// See show.h.
#include "ir/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 32 };

static void put(tk_show *s, const char *text, size_t n) {
    const size_t left = s->room - s->n;
    n = n < left ? n : left;
    memcpy(s->at + s->n, text, n);
    s->n += n;
}

static void put_text(tk_show *s, const char *text) { put(s, text, strlen(text)); }

// ---- Numbers

static void put_float(tk_show *s, tk_const c) {
    char digits[NUMBER];
    const double x = tk_const_as_f64(c);
    if (isnan(x) || isinf(x)) {
        put_text(s, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (tk_const_same(tk_const_f64(c.dtype, strtod(digits, NULL)), c)) {
            break;
        }
    }
    if (fabs(x) < 1e7 && strstr(digits, "e+")) { // 448, not 4.5e+02
        (void)snprintf(digits, sizeof digits, "%.0f", x);
    }
    for (char *d = digits; *d; d++) { // the host may have chosen another decimal point
        *d = strchr("0123456789+-e", *d) ? *d : '.';
    }
    put_text(s, digits);
}

static void put_number(tk_show *s, tk_const c) {
    char digits[NUMBER];
    switch (tk_dtype_class(c.dtype)) {
    case TK_CLASS_BOOL:
        put_text(s, c.bits ? "true" : "false");
        return;
    case TK_CLASS_SINT:
        (void)snprintf(digits, sizeof digits, "%lld", (long long)tk_const_as_i64(c));
        break;
    case TK_CLASS_UINT:
        (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)c.bits);
        break;
    case TK_CLASS_FLOAT:
        put_float(s, c);
        return;
    case TK_CLASS_NONE:
        return;
    }
    put_text(s, digits);
}

// ---- Tiles

bool tk_show_is_cut(uint32_t rank, const int64_t *dim, uint32_t axis) {
    int64_t elems = 1;
    for (uint32_t i = 0; i < rank; i++) {
        elems *= dim[i];
    }
    return elems > TK_SHOW_ALL && dim[axis] > 2 * TK_SHOW_EDGE;
}

int64_t tk_show_extent(uint32_t rank, const int64_t *dim, uint32_t axis) {
    return tk_show_is_cut(rank, dim, axis) ? 2 * TK_SHOW_EDGE : dim[axis];
}

static void put_tile(tk_show *s, const tk_show_value *v, const unsigned char *at, uint32_t axis) {
    if (axis == v->rank) {
        put_number(s, tk_const_load(v->dtype, at));
        return;
    }
    const int64_t shown = tk_show_extent(v->rank, v->dim, axis), hidden = v->dim[axis] - shown;
    put_text(s, "[");
    for (int64_t i = 0; i < shown; i++) {
        const bool behind = hidden > 0 && i >= TK_SHOW_EDGE;
        put_text(s, hidden > 0 && i == TK_SHOW_EDGE ? ", ..." : "");
        put_text(s, i > 0 ? ", " : "");
        put_tile(s, v, at + (behind && !v->packed ? i + hidden : i) * v->stride[axis], axis + 1);
    }
    put_text(s, "]");
}

// ---- Lines

size_t tk_show_room(const char *text) { return strlen(text) + (TK_MAX_GRID + 1) * (size_t)NUMBER; }

size_t tk_show_value_room(const tk_show_value *v) {
    size_t n = NUMBER;
    for (uint32_t i = v->rank; i-- > 0;) {
        n = (size_t)tk_show_extent(v->rank, v->dim, i) * (n + 2) + 8;
    }
    return n + 1;
}

tk_show tk_show_begin(char *at, size_t room, const char *text, uint32_t ngrid,
                      const int64_t *program) {
    tk_show s = {at, 0, room - 1, text};
    for (uint32_t i = 0; i < ngrid; i++) {
        char digits[NUMBER];
        (void)snprintf(digits, sizeof digits, "%s%lld", i ? ", " : "[", (long long)program[i]);
        put_text(&s, digits);
    }
    put_text(&s, ngrid ? "] " : "");
    return s;
}

void tk_show_next(tk_show *s, const tk_show_value *v, const unsigned char *memory) {
    const char *hole = strstr(s->text, "{}");
    if (hole) {
        put(s, s->text, (size_t)(hole - s->text));
        s->text = hole + 2;
    } else {
        put_text(s, s->text);
        put_text(s, " ");
        s->text = "";
    }
    put_tile(s, v, memory, 0);
}

void tk_show_end(tk_show *s) {
    put_text(s, s->text);
    s->at[s->n] = '\0';
}
