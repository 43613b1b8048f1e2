// SPDX-License-Identifier: Apache-2.0
// assert, assume and print.
#include "ir/exec_internal.h"
#include "ir/show.h"

#include <stdio.h>
#include <string.h>

// ---- assert, assume -----------------------------------------------------------------------------

typedef struct assert_step {
    tk_step h;
    tk_exec_code code;
    int64_t n;
    uint32_t rank; // of the condition; 0: a scalar
    int64_t dim[TK_MAX_RANK];
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
        const unsigned char *fails = memchr(x, 0, m);
        if (fails) {
            r->fault->rank = s->rank;
            tk_index_of(start + (fails - x), s->rank, s->dim, r->fault->index);
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
    const tk_type *t = tk_value_type(p->func, p->op->opnd[0]);
    s->rank = p->op->at.part ? 0 : t->rank; // not that of the lanes inside a region
    memcpy(s->dim, x.dim, sizeof s->dim);
    s->in = tk_stream_of(x);
    s->text = p->op->at.text;
}

// ---- print --------------------------------------------------------------------------------------

typedef struct print_step {
    tk_step h;
    const char *text;
    uint32_t n;
    tk_show_value *value;
    size_t *at;        // of each value, in the frame
    size_t line, room; // in the frame
} print_step;

static tk_exec_code run_print(const tk_step *h, tk_run *r) {
    const print_step *s = (const print_step *)h;
    if (!r->env->print) {
        return TK_EXEC_OK;
    }
    char *line = (char *)r->base + s->line;
    tk_show l = tk_show_begin(line, s->room, s->text, r->env->ngrid, r->program);
    for (uint32_t i = 0; i < s->n; i++) {
        tk_show_next(&l, &s->value[i], r->base + s->at[i]);
    }
    tk_show_end(&l);
    r->env->print(r->env->user, line);
    return TK_EXEC_OK;
}

void tk_exec_emit_print(tk_planner *p) {
    const tk_op *op = p->op;
    print_step *s = tk_plan_step(p, sizeof *s, run_print);
    s->text = op->at.text ? op->at.text : "";
    s->n = op->nopnd;
    s->value = TK_NEW_ARRAY(p->arena, tk_show_value, op->nopnd);
    s->at = TK_NEW_ARRAY(p->arena, size_t, op->nopnd);
    s->room = tk_show_room(s->text);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_place x = tk_plan_place(p, op->opnd[i]);
        tk_show_value *v = &s->value[i];
        v->dtype = x.dtype;
        v->rank = x.rank;
        memcpy(v->dim, x.dim, sizeof v->dim);
        tk_print_extents(p->func, op, i, v->dim);
        memcpy(v->stride, x.stride, sizeof v->stride);
        s->at[i] = x.off;
        s->room += tk_show_value_room(v);
    }
    s->line = tk_plan_temp(p, s->room);
}
