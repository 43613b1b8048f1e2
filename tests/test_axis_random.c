// SPDX-License-Identifier: Apache-2.0
// Axis analysis against the executor: random integer programs (every op that has a rule, every
// type, values at the ends of the types, loops, branches) store every value that they make, and
// every claim is checked on what is stored. Together they must fire every rule.
#include "axis_gen.h"
#include "ir/exec.h"
#include "lower/axis.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Running

enum { ARGS = 1 + AXIS_TENSORS + AXIS_TYPES + AXIS_VALUES, IN = 128, SEEDS = 1600 };

typedef struct ground {
    tk_guard guard;
    tk_arena arena;
    tk_sources sources;
    tk_diags diags;
    tk_module *m;
    const tk_func *f;
    const tk_axis *axis;
    tk_exec_tensor tensor[ARGS];
    tk_const scalar[ARGS];
    unsigned char *out[2][AXIS_VALUES]; // what each value was, over two different fillings
} ground;

static void tensor(ground *w, int k, void *data, unsigned rank, const int64_t *dim) {
    int64_t n = 1;
    w->tensor[k].data = data;
    for (unsigned d = rank; d-- > 0;) {
        w->tensor[k].dim[d] = dim[d];
        w->tensor[k].stride[d] = n;
        n *= dim[d];
    }
}

static void inputs(axis_gen *g, ground *w) {
    int k = 1;
    for (int i = 0; i < AXIS_TENSORS; i++) {
        static const int64_t often[] = {0, 1, 16, 32, 40};
        int64_t n = i == 3 ? 24 : axis_pick(g, 2) ? often[axis_pick(g, 5)] : axis_pick(g, 41);
        tensor(w, k++, NULL, 1, &n);
    }
    for (unsigned i = 0; i < AXIS_TYPES; i++) {
        size_t size = tk_dtype_size(axis_types[i]);
        unsigned char *data = tk_alloc(&w->arena, IN * size);
        for (size_t e = 0; e < IN; e++) {
            static const uint64_t ends[] = {
                0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, 0x7fffffff, 0x80000000, 64};
            uint64_t x = axis_pick(g, 2) ? ends[axis_pick(g, 8)] >> 8 * axis_pick(g, 3)
                                         : axis_next(g) >> axis_pick(g, 64);
            x = axis_types[i] == TK_BOOL ? x & 1 : x;
            memcpy(data + e * size, &x, size); // little-endian, as all hosts are
        }
        int64_t n = IN;
        tensor(w, k++, data, 1, &n);
    }
}

static size_t bytes_of(const axis_val *v) {
    return AXIS_SLOTS * (size_t)(axis_shapes[v->shape].dim[0] * axis_shapes[v->shape].dim[1]) *
           tk_dtype_size(v->t);
}

static void outputs(const axis_gen *g, ground *w, int filling) {
    for (int i = 0; i < g->n; i++) {
        size_t n = bytes_of(&g->v[i]);
        int64_t dim[3] = {AXIS_SLOTS, axis_shapes[g->v[i].shape].dim[0],
                          axis_shapes[g->v[i].shape].dim[1]};
        w->out[filling][i] = tk_alloc(&w->arena, n);
        memset(w->out[filling][i], filling ? 0x55 : 0xaa, n);
        tensor(w, 1 + AXIS_TENSORS + AXIS_TYPES + i, w->out[filling][i],
               1 + axis_shapes[g->v[i].shape].rank, dim);
    }
}

static void run_programs(axis_gen *g, ground *w, const tk_plan *plan) {
    tk_exec_env env = {.narg = (uint32_t)(1 + AXIS_TENSORS + AXIS_TYPES + g->n),
                       .tensor = w->tensor,
                       .scalar = w->scalar};
    char *memory = tk_alloc(&w->arena, tk_plan_frame_size(plan) + 64);
    tk_frame *frame = tk_frame_make(plan, memory + (64 - (uintptr_t)memory % 64) % 64);
    w->scalar[0] = tk_const_i64(TK_I32, 0);
    env.ngrid = 2;
    tk_exec_grid(plan, frame, &env, env.grid);
    for (int64_t run = 0; run < AXIS_RUNS && env.grid[0] > 0 && env.grid[1] > 0; run++) {
        int64_t program[TK_MAX_GRID] = {run ? env.grid[0] - 1 : 0,
                                        run == 1 ? env.grid[1] - 1 : env.grid[1] / 2};
        tk_exec_fault fault;
        w->scalar[0] = tk_const_i64(TK_I32, run);
        cr_assert(tk_exec_program(plan, frame, &env, program, &fault) == TK_EXEC_OK);
    }
}

// ---- Checking

typedef struct claim {
    const axis_gen *g;
    const ground *w;
    int v;
    const tk_axis_value *a;
    bool bad;
} claim;

static uint64_t raw(const claim *c, size_t e) {
    uint64_t x = 0;
    size_t size = tk_dtype_size(c->g->v[c->v].t);
    memcpy(&x, c->w->out[0][c->v] + e * size, size);
    return x;
}

static int64_t number(const claim *c, size_t e) {
    tk_dtype t = c->g->v[c->v].t;
    uint64_t x = raw(c, e);
    unsigned bits = 8 * (unsigned)tk_dtype_size(t);
    return tk_dtype_is_signed(t) && bits < 64 && x >> (bits - 1) ? (int64_t)(x | UINT64_MAX << bits)
                                                                 : (int64_t)x;
}

static void wrong(claim *c, const char *what, size_t e) {
    tk_buf b;
    tk_buf_init(&b, (tk_arena *)(uintptr_t)&c->w->arena);
    tk_axis_print(&b, c->a);
    cr_log_error("%%v%d element %zu is %lld: %s of %s", c->v, e, (long long)number(c, e), what,
                 tk_buf_text(&b));
    c->bad = true;
}

static bool divides(unsigned log, int64_t x) {
    return x == 0 || (log < TK_AXIS_ZERO && (x & (((int64_t)1 << log) - 1)) == 0);
}

// The element and the one before it along an axis, which stands at coordinate k.
static void along(claim *c, size_t e, size_t before, int64_t k, tk_axis_dim d, bool huge) {
    int64_t x = number(c, e), y = number(c, before);
    if (k % ((int64_t)1 << d.contig) == 0) {
        if (!divides(d.div, x)) {
            wrong(c, "div", e);
        }
    } else if (huge ? (uint64_t)x != (uint64_t)y + 1 || x == 0 : y == INT64_MAX || x != y + 1) {
        wrong(c, "contig", e);
    }
    if (k % ((int64_t)1 << d.same) != 0 && x != y) {
        wrong(c, "same", e);
    }
}

static void element(claim *c, size_t first, int64_t i, int64_t j) {
    const axis_val *v = &c->g->v[c->v];
    int64_t n = axis_shapes[v->shape].dim[1];
    bool flat = axis_shapes[v->shape].rank < 2;
    size_t e = first + (size_t)(i * n + j);
    int64_t x = number(c, e);
    bool huge = v->t == TK_U64;
    along(c, e, i ? e - (size_t)n : e, i, c->a->dim[0], huge);
    if (!flat) {
        along(c, e, j ? e - 1 : e, j, c->a->dim[1], huge);
    }
    if (c->a->ranged && (x < c->a->lo || x > c->a->hi || (huge && x < 0))) {
        wrong(c, "range", e);
    }
    for (unsigned k = 0; k < c->a->nbound; k++) {
        const tk_axis_bound *b = &c->a->bound[k];
        int64_t sum, size = c->w->tensor[b->param].dim[b->axis];
        bool over =
            __builtin_mul_overflow(x, b->mul, &sum) || __builtin_add_overflow(sum, b->add, &sum);
        if (over ? x > 0 : sum > size) {
            wrong(c, "bound", e);
        }
    }
}

static tk_vid value_named(const tk_func *f, int v) {
    char name[16];
    snprintf(name, sizeof name, "v%d", v);
    for (tk_vid i = 1; i < f->value.n; i++) {
        if (f->value.at[i].name && strcmp(f->value.at[i].name, name) == 0) {
            return i;
        }
    }
    return 0;
}

static bool check_value(const axis_gen *g, const ground *w, int v) {
    tk_vid id = value_named(w->f, v);
    claim c = {g, w, v, id ? tk_axis_of(w->axis, id) : NULL, false};
    const int64_t *dim = axis_shapes[g->v[v].shape].dim;
    size_t n = (size_t)(dim[0] * dim[1]), size = n * tk_dtype_size(g->v[v].t);
    cr_assert(c.a != NULL, "%%v%d has no claims", v);
    for (size_t s = 0; s < AXIS_SLOTS && !c.bad; s++) {
        bool written = memcmp(w->out[0][v] + s * size, w->out[1][v] + s * size, size) == 0;
        for (int64_t i = 0; written && i < dim[0] && !c.bad; i++) {
            for (int64_t j = 0; j < dim[1] && !c.bad; j++) {
                element(&c, s * n, i, j);
            }
        }
    }
    return !c.bad;
}

static void open_program(ground *w, const char *text) {
    const char *why = NULL;
    tk_sources_init(&w->sources, &w->arena);
    tk_diags_init(&w->diags, &w->arena);
    uint32_t id = tk_sources_add(&w->sources, "test.ir", text, strlen(text));
    w->m = tk_ir_parse(&w->arena, &w->sources, id, &w->diags);
    if (!w->m) {
        tk_buf b;
        tk_buf_init(&b, &w->arena);
        tk_diags_print(&b, &w->sources, &w->diags, false);
        cr_assert_fail("%s\n%s", tk_buf_text(&b), text);
    }
    cr_assert(tk_ir_verify(&w->arena, w->m, &why), "%s\n%s", why, text);
    w->f = w->m->funcs.at[0];
    w->axis = tk_axis_make(&w->arena, w->f, NULL);
}

static bool one_program(uint64_t seed, uint64_t *fired) {
    static axis_gen g;
    static ground w;
    memset(&w, 0, sizeof w);
    tk_arena_init(&w.arena, NULL, NULL);
    const char *text = axis_program(&g, &w.arena, seed, 24);
    open_program(&w, text);
    for (unsigned r = 0; r < TK_AXIS_RULE_COUNT; r++) {
        fired[r] += w.axis->fired[r];
    }
    tk_plan *plan = tk_plan_make(&w.arena, w.m, &w.diags, (size_t)1 << 24);
    cr_assert(plan != NULL);
    bool good = true;
    for (int set = 0; set < 2 && good; set++) {
        inputs(&g, &w);
        for (int filling = 0; filling < 2; filling++) {
            outputs(&g, &w, filling);
            run_programs(&g, &w, plan);
        }
        for (int v = 0; v < g.n && good; v++) {
            good = check_value(&g, &w, v);
        }
    }
    if (!good) {
        cr_log_error("seed %llu\n%s", (unsigned long long)seed, text);
    }
    tk_arena_release(&w.arena);
    return good;
}

Test(axis_random, every_claim_holds) {
    uint64_t fired[TK_AXIS_RULE_COUNT] = {0};
    const char *first = getenv("AXIS_SEED"); // one program alone
    uint64_t from = first ? strtoull(first, NULL, 10) : 1, to = first ? from : SEEDS;
    for (uint64_t seed = from; seed <= to; seed++) {
        cr_assert(one_program(seed, fired));
    }
    for (unsigned r = 0; r < TK_AXIS_RULE_COUNT && !first; r++) {
        cr_expect(fired[r] > 0, "rule %s never fired", tk_axis_rule_name((tk_axis_rule)r));
    }
}
