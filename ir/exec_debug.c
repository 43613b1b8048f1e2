// SPDX-License-Identifier: Apache-2.0
//
// assert, assume and print.
//
// A printed line is "[3, 0] text": the program's place in the grid, where there is one, then the
// text with a value for each {}. Numbers have as few digits as tell them apart from their
// neighbours in their type. Tiles are nested lists; of a tile of more than SHOW_ALL elements, axes
// longer than 2 * EDGE show their first and last EDGE entries.
#include "ir/exec_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOW_ALL = 256, EDGE = 3, NUMBER = 32 };

// ---- assert, assume -----------------------------------------------------------------------------

typedef struct assert_step {
    tk_step h;
    tk_exec_code code;
    int64_t n;
    tk_stream in;
    const char *text;
} assert_step;

static tk_exec_code run_assert(const tk_step *h, tk_run *r) {
    const assert_step *s = (const assert_step *)h;
    unsigned char tmp[TK_BLOCK];
    const int64_t n = s->in.kind == TK_STREAM_UNIFORM ? 1 : s->n;
    for (int64_t start = 0; start < n; start += TK_BLOCK) {
        const size_t m = n - start < TK_BLOCK ? (size_t)(n - start) : TK_BLOCK;
        const unsigned char *x = tk_stream_read(&s->in, r->base, start, m, tmp);
        if (memchr(x, 0, m)) {
            (void)snprintf(r->fault->text, sizeof r->fault->text, "%s", s->text ? s->text : "");
            return tk_run_fault(h, r, s->code);
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_assert(tk_planner *p) {
    const tk_place x = tk_plan_place(p, p->op->opnd[0]);
    assert_step *s = tk_plan_step(p, sizeof *s, run_assert);
    s->code = p->op->code == TK_OP_ASSERT ? TK_EXEC_ASSERT : TK_EXEC_ASSUME;
    s->n = tk_place_elems(&x);
    s->in = tk_stream_of(x);
    s->text = p->op->at.text;
}

// ---- print --------------------------------------------------------------------------------------

typedef struct print_step {
    tk_step h;
    const char *text;
    uint32_t n;
    tk_place *value;
    size_t line, room; // in the frame
} print_step;

// A line that is cut off rather than overrun; its room is computed so that it never is.
typedef struct line {
    char *at;
    size_t n, room;
} line;

static void put(line *l, const char *s, size_t n) {
    const size_t left = l->room - l->n;
    n = n < left ? n : left;
    memcpy(l->at + l->n, s, n);
    l->n += n;
}

static void put_text(line *l, const char *s) { put(l, s, strlen(s)); }

static void put_float(line *l, tk_const c) {
    char digits[NUMBER];
    const double x = tk_const_as_f64(c);
    if (isnan(x) || isinf(x)) {
        put_text(l, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (tk_const_same(tk_const_f64(c.dtype, strtod(digits, NULL)), c)) {
            break;
        }
    }
    for (char *d = digits; *d; d++) { // the host may have chosen another decimal point
        *d = strchr("0123456789+-e", *d) ? *d : '.';
    }
    put_text(l, digits);
}

static void put_number(line *l, tk_const c) {
    char digits[NUMBER];
    switch (tk_dtype_class(c.dtype)) {
    case TK_CLASS_BOOL:
        put_text(l, c.bits ? "true" : "false");
        return;
    case TK_CLASS_SINT:
        (void)snprintf(digits, sizeof digits, "%lld", (long long)tk_const_as_i64(c));
        break;
    case TK_CLASS_UINT:
        (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)c.bits);
        break;
    case TK_CLASS_FLOAT:
        put_float(l, c);
        return;
    case TK_CLASS_NONE:
        return;
    }
    put_text(l, digits);
}

static bool is_cut(const tk_place *x, uint32_t axis) {
    return tk_place_elems(x) > SHOW_ALL && x->dim[axis] > 2 * EDGE;
}

static void put_tile(line *l, const tk_place *x, const unsigned char *at, uint32_t axis) {
    if (axis == x->rank) {
        put_number(l, tk_const_load(x->dtype, at));
        return;
    }
    put_text(l, "[");
    for (int64_t i = 0; i < x->dim[axis]; i++) {
        if (is_cut(x, axis) && i == EDGE) {
            put_text(l, ", ...");
            i = x->dim[axis] - EDGE;
        }
        put_text(l, i > 0 ? ", " : "");
        put_tile(l, x, at + i * x->stride[axis], axis + 1);
    }
    put_text(l, "]");
}

static void put_place(line *l, const tk_run *r) {
    for (uint32_t i = 0; i < r->env->ngrid; i++) {
        char digits[NUMBER];
        (void)snprintf(digits, sizeof digits, "%s%lld", i ? ", " : "[", (long long)r->program[i]);
        put_text(l, digits);
    }
    put_text(l, r->env->ngrid ? "] " : "");
}

static tk_exec_code run_print(const tk_step *h, tk_run *r) {
    const print_step *s = (const print_step *)h;
    line l = {(char *)r->base + s->line, 0, s->room - 1};
    uint32_t k = 0;
    if (!r->env->print) {
        return TK_EXEC_OK;
    }
    put_place(&l, r);
    for (const char *t = s->text; *t; t++) {
        if (t[0] == '{' && t[1] == '}' && k < s->n) {
            put_tile(&l, &s->value[k], r->base + s->value[k].off, 0);
            k++;
            t++;
        } else {
            put(&l, t, 1);
        }
    }
    for (; k < s->n; k++) { // values that the text has no place for
        put_text(&l, " ");
        put_tile(&l, &s->value[k], r->base + s->value[k].off, 0);
    }
    l.at[l.n] = '\0';
    r->env->print(r->env->user, l.at);
    return TK_EXEC_OK;
}

// As many bytes as a value can take.
static size_t room_for(const tk_place *x) {
    size_t n = NUMBER;
    for (uint32_t i = x->rank; i-- > 0;) {
        const size_t shown = is_cut(x, i) ? 2 * EDGE : (size_t)x->dim[i];
        n = shown * (n + 2) + 8;
    }
    return n + 1;
}

// The place of operand i, no more of it than is shown; k extents are those of operands before it.
static tk_place shown_place(tk_planner *p, uint32_t i, uint32_t *k) {
    const tk_attrs *at = &p->op->at;
    tk_place x = tk_plan_place(p, p->op->opnd[i]);
    for (uint32_t d = 0; d < x.rank && at->nshown; d++) {
        x.dim[d] = at->shown[(*k)++];
    }
    return x;
}

void tk_exec_emit_print(tk_planner *p) {
    const tk_op *op = p->op;
    print_step *s = tk_plan_step(p, sizeof *s, run_print);
    s->text = op->at.text ? op->at.text : "";
    s->n = op->nopnd;
    s->value = TK_NEW_ARRAY(p->arena, tk_place, op->nopnd);
    s->room = strlen(s->text) + (TK_MAX_GRID + 1) * (size_t)NUMBER;
    for (uint32_t i = 0, k = 0; i < op->nopnd; i++) {
        s->value[i] = shown_place(p, i, &k);
        s->room += room_for(&s->value[i]);
    }
    s->line = tk_plan_temp(p, s->room);
}
