// SPDX-License-Identifier: Apache-2.0
//
// load and store, a row at a time; dim.
#include "ir/exec_internal.h"

#include <string.h>

typedef uint8_t word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

// What a row needs: n elements; memory at mem[j * ms] bytes, or at mem + offs[j * os] elements
// where offs is given; the frame at frame[j * fs] bytes; keep[j * ks] where it is given.
typedef struct span {
    size_t n;
    unsigned char *mem;
    int64_t ms;
    const int64_t *offs;
    int64_t os;
    unsigned char *frame;
    int64_t fs;
    const unsigned char *keep;
    int64_t ks;
} span;

#define MOVES(WORD)                                                                                \
    static void load_some_##WORD(const span *s) {                                                  \
        for (size_t j = 0; j < s->n; j++) {                                                        \
            const int64_t i = (int64_t)j;                                                          \
            if (s->keep[i * s->ks]) {                                                              \
                *(WORD *)(void *)(s->frame + i * s->fs) =                                          \
                    *(const WORD *)(const void *)(s->mem + i * s->ms);                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void store_some_##WORD(const span *s) {                                                 \
        for (size_t j = 0; j < s->n; j++) {                                                        \
            const int64_t i = (int64_t)j;                                                          \
            if (s->keep[i * s->ks]) {                                                              \
                *(WORD *)(void *)(s->mem + i * s->ms) =                                            \
                    *(const WORD *)(const void *)(s->frame + i * s->fs);                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void gather_##WORD(const span *s) {                                                     \
        for (size_t j = 0; j < s->n; j++) {                                                        \
            const int64_t i = (int64_t)j, o = s->offs[i * s->os];                                  \
            if (o != TK_OUTSIDE && (!s->keep || s->keep[i * s->ks])) {                             \
                *(WORD *)(void *)(s->frame + i * s->fs) =                                          \
                    *(const WORD *)(const void *)(s->mem + o * (int64_t)sizeof(WORD));             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void scatter_##WORD(const span *s) {                                                    \
        for (size_t j = 0; j < s->n; j++) {                                                        \
            const int64_t i = (int64_t)j, o = s->offs[i * s->os];                                  \
            if (o != TK_OUTSIDE && (!s->keep || s->keep[i * s->ks])) {                             \
                *(WORD *)(void *)(s->mem + o * (int64_t)sizeof(WORD)) =                            \
                    *(const WORD *)(const void *)(s->frame + i * s->fs);                           \
            }                                                                                      \
        }                                                                                          \
    }
MOVES(word1)
MOVES(word2)
MOVES(word4)
MOVES(word8)

typedef void (*move)(const span *s);
#define PICK(NAME, SIZE)                                                                           \
    ((SIZE) == 1   ? NAME##_word1                                                                  \
     : (SIZE) == 2 ? NAME##_word2                                                                  \
     : (SIZE) == 4 ? NAME##_word4                                                                  \
                   : NAME##_word8)

typedef struct mem_step {
    tk_step h;
    tk_mem m;
    tk_dtype dtype;
    tk_place value; // load: the result; store: what is stored
    tk_place other; // load
    bool has_other;
    move some, scattered;
} mem_step;

// The part of the row that is inside the tensor, from element lo; false where there is none.
static bool row_span(const mem_step *s, const tk_run *r, const tk_reach *a, const tk_row *row,
                     span *x) {
    const tk_mem *m = &s->m;
    const uint32_t last = m->rank - 1;
    const int64_t lo = a->lo[last], hi = a->hi[last];
    if (!row->inside || lo >= hi) {
        return false;
    }
    const int64_t size = m->size;
    const uint64_t off = row->off + (uint64_t)lo * a->stride[last];
    x->n = (size_t)(hi - lo);
    // With a tile index the row's own offset may be any part of an address: the sum is what counts.
    x->ms = (int64_t)(a->stride[last] * (uint64_t)size);
    x->mem = (unsigned char *)((uintptr_t)a->t->data + (uintptr_t)(off * (uint64_t)size));
    x->fs = s->value.stride[last];
    x->frame = (unsigned char *)(uintptr_t)tk_row_of(&s->value, row, r->base) + lo * x->fs;
    if (m->from[last] == -1) {
        x->os = m->point[last];
        x->offs = a->offs + row->point + lo * x->os;
    }
    if (m->masked) {
        x->ks = m->mask.stride[last];
        x->keep = tk_row_of(&m->mask, row, r->base) + lo * x->ks;
    }
    return true;
}

// Elements from .. to - 1 of a loaded row get `other`.
static void fill_other(const mem_step *s, const tk_run *r, const tk_row *row, int64_t from,
                       int64_t to) {
    const uint32_t last = s->m.rank - 1;
    const uint32_t size = s->m.size;
    unsigned char *d = r->base + s->value.off + (row->first + from) * size;
    if (from >= to) {
        return;
    }
    if (!s->has_other) {
        memset(d, 0, (size_t)(to - from) * size);
        return;
    }
    const int64_t os = s->other.stride[last];
    const unsigned char *o = tk_row_of(&s->other, row, r->base) + from * os;
    tk_copy_run(d, size, o, os, (size_t)(to - from), size);
}

static void load_row(const mem_step *s, const tk_run *r, const tk_reach *a, const tk_row *row) {
    const int64_t n = s->m.dim[s->m.rank - 1];
    const int64_t lo = a->lo[s->m.rank - 1];
    span x = {0};
    if (!row_span(s, r, a, row, &x)) {
        fill_other(s, r, row, 0, n);
    } else if (x.offs || x.keep) {
        fill_other(s, r, row, 0, n);
        (x.offs ? s->scattered : s->some)(&x);
    } else {
        fill_other(s, r, row, 0, lo);
        tk_copy_run(x.frame, x.fs, x.mem, x.ms, x.n, s->m.size);
        fill_other(s, r, row, lo + (int64_t)x.n, n);
    }
    if (s->dtype == TK_BOOL) {
        unsigned char *d = r->base + s->value.off + row->first;
        for (int64_t i = 0; i < n; i++) {
            d[i] = d[i] != 0;
        }
    }
}

static tk_exec_code run_load(const tk_step *h, tk_run *r) {
    const mem_step *s = (const mem_step *)h;
    tk_reach a;
    tk_row row;
    tk_reach_begin(&s->m, r, &a);
    if (a.t->shadow && tk_check_access(h, &s->m, &a, r, TK_TOUCH_READ) != TK_EXEC_OK) {
        return TK_EXEC_RACE;
    }
    for (bool more = tk_row_first(&s->m, &a, &row); more; more = tk_row_next(&s->m, &a, &row)) {
        load_row(s, r, &a, &row);
    }
    return TK_EXEC_OK;
}

static tk_exec_code run_store(const tk_step *h, tk_run *r) {
    const mem_step *s = (const mem_step *)h;
    tk_reach a;
    tk_row row;
    tk_reach_begin(&s->m, r, &a);
    if (a.t->shadow && tk_check_access(h, &s->m, &a, r, TK_TOUCH_WRITE) != TK_EXEC_OK) {
        return TK_EXEC_RACE;
    }
    for (bool more = tk_row_first(&s->m, &a, &row); more; more = tk_row_next(&s->m, &a, &row)) {
        span x = {0};
        if (!row_span(s, r, &a, &row, &x)) {
            continue;
        }
        if (x.offs || x.keep) {
            (x.offs ? s->scattered : s->some)(&x);
        } else {
            tk_copy_run(x.mem, x.ms, x.frame, x.fs, x.n, s->m.size);
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_load(tk_planner *p) { tk_exec_emit_load_to(p, tk_plan_place(p, p->op->res[0])); }

void tk_exec_emit_load_to(tk_planner *p, tk_place out) {
    const tk_op *op = p->op;
    mem_step plan = {.dtype = out.dtype};
    uint32_t next = tk_mem_plan(p, &plan.m);
    plan.m.masked = op->at.masked;
    if (op->at.masked) {
        plan.m.mask = tk_mem_place(&plan.m, tk_plan_place(p, op->opnd[next++]));
    }
    plan.has_other = op->at.other;
    if (op->at.other) {
        plan.other = tk_mem_place(&plan.m, tk_plan_place(p, op->opnd[next++]));
    }
    plan.value = tk_mem_place(&plan.m, out);
    plan.some = PICK(load_some, plan.m.size);
    plan.scattered = PICK(gather, plan.m.size);
    mem_step *s = tk_plan_step(p, sizeof *s, run_load);
    plan.h = s->h;
    *s = plan;
}

void tk_exec_emit_store(tk_planner *p) {
    const tk_op *op = p->op;
    mem_step plan = {.dtype = tk_plan_type(p, op->opnd[0])->dtype};
    uint32_t next = tk_mem_plan(p, &plan.m);
    plan.value = tk_mem_place(&plan.m, tk_plan_place(p, op->opnd[next++]));
    plan.m.masked = op->at.masked;
    if (op->at.masked) {
        plan.m.mask = tk_mem_place(&plan.m, tk_plan_place(p, op->opnd[next++]));
    }
    plan.some = PICK(store_some, plan.m.size);
    plan.scattered = PICK(scatter, plan.m.size);
    mem_step *s = tk_plan_step(p, sizeof *s, run_store);
    plan.h = s->h;
    *s = plan;
}

// ---- dim ----------------------------------------------------------------------------------------

typedef struct dim_step {
    tk_step h;
    size_t out;
    uint32_t param, axis;
} dim_step;

static tk_exec_code run_dim(const tk_step *h, tk_run *r) {
    const dim_step *s = (const dim_step *)h;
    const int32_t n = (int32_t)r->env->tensor[s->param].dim[s->axis];
    memcpy(r->base + s->out, &n, sizeof n);
    return TK_EXEC_OK;
}

void tk_exec_emit_dim(tk_planner *p) {
    dim_step *s = tk_plan_step(p, sizeof *s, run_dim);
    s->out = tk_plan_place(p, p->op->res[0]).off;
    s->param = tk_plan_param(p, p->op->opnd[0]);
    s->axis = (uint32_t)p->op->at.axis;
}
