// SPDX-License-Identifier: Apache-2.0
// For the tests of the pass pad: a kernel written line by line, with random tensors, on the
// executor before and after the pass.
#ifndef TK_TESTS_TEST_PAD_H
#define TK_TESTS_TEST_PAD_H

#include "ir_env.h"
#include "lower/lower.h"
#include "test_exec_run.h"

#include <criterion/criterion.h>
#include <math.h>

enum { TENSORS = 6, ROOM = 1 << 15, BESIDE = 3 };

typedef struct shape {
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
} shape;

typedef struct tensor {
    const char *way;
    tk_dtype t;
    shape s; // some elements more than the tile that is read or written
    size_t bytes;
    unsigned char *first, *before, *after;
} tensor;

static struct {
    char body[ROOM];
    size_t n;
    unsigned names;
    tensor at[TENSORS];
    unsigned tensors;
    uint64_t random;
} k;

typedef enum { ANY, SMALL, ZEROS, SIGNS } values;

static inline uint64_t next(void) {
    k.random ^= k.random << 13;
    k.random ^= k.random >> 7;
    k.random ^= k.random << 17;
    return k.random * 0x2545f4914f6cdd1dU;
}

static inline void say(const char *fmt, ...) TK_PRINTF(1, 2);
static inline void say(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(k.body + k.n, ROOM - k.n, fmt, args);
    va_end(args);
    k.n += (size_t)n;
    cr_assert(k.n < ROOM);
}

static inline void begin(void) {
    const uint64_t random = k.random ? k.random : 0x9e3779b97f4a7c15U;
    memset(&k, 0, sizeof k);
    k.random = random;
    say("  %%z = const 0 : i32\n");
}

// Texts that live through some calls more.
static inline const char *text(const char *fmt, ...) TK_PRINTF(1, 2);
static inline const char *text(const char *fmt, ...) {
    static char room[256][128];
    static unsigned turn;
    char *at = room[turn++ % 256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(at, sizeof room[0], fmt, args);
    va_end(args);
    return at;
}

static inline const char *type(tk_dtype t, shape s) {
    const char *list = tk_dtype_name(t);
    for (unsigned i = 0; i < s.rank; i++) {
        list = text("%s%s%lld", list, i ? ", " : "[", (long long)s.dim[i]);
    }
    return s.rank ? text("%s]", list) : list;
}

static inline tk_const element(tk_dtype t, values v) {
    const uint64_t r = next() >> 8;
    const int64_t small = (int64_t)(r % 7) - 3;
    const tk_const special[] = {tk_const_least(t), tk_const_greatest(t), tk_const_i64(t, 0),
                                tk_const_f64(t, -0.0), tk_const_f64(t, NAN)};
    switch (v) {
    case ANY:
        break;
    case SMALL:
        return tk_const_i64(t, tk_dtype_class(t) == TK_CLASS_UINT ? small + 3 : small);
    case ZEROS:
        return tk_const_f64(t, r % 4 ? -0.0 : 0.0);
    case SIGNS:
        return tk_const_i64(t, r % 2 ? 1 : -1);
    }
    if (r % 5 == 0) {
        return special[(r >> 8) % 5];
    }
    const unsigned bits = tk_dtype_bits(t);
    return t == TK_BOOL ? tk_const_bool(r & 1)
           : r % 5 == 1 ? tk_const_i64(t, small)
           : bits == 64 ? (tk_const){t, next()}
                        : (tk_const){t, next() >> (64 - bits)};
}

static inline unsigned add_tensor(const char *way, tk_dtype t, shape s, values v) {
    tensor *x = &k.at[k.tensors];
    cr_assert(k.tensors < TENSORS);
    *x = (tensor){.way = way, .t = t, .s = s};
    size_t n = 1;
    for (unsigned i = 0; i < s.rank; i++) {
        x->s.dim[i] += BESIDE;
        n *= (size_t)x->s.dim[i];
    }
    x->bytes = n * tk_dtype_size(t);
    x->first = malloc(x->bytes);
    x->before = malloc(x->bytes);
    x->after = malloc(x->bytes);
    for (size_t i = 0; i < n; i++) {
        tk_const_store(element(t, v), x->first + i * tk_dtype_size(t));
    }
    return k.tensors++;
}

static inline const char *ranges(shape s) {
    const char *list = "";
    for (unsigned i = 0; i < s.rank; i++) {
        list = text("%s%s%%z +: %lld", list, i ? ", " : "", (long long)s.dim[i]);
    }
    return list;
}

// A tile that is loaded; what stands in its padding afterwards is random.
static inline const char *input(tk_dtype t, shape s, values v) {
    const unsigned at = add_tensor("in", t, s, v);
    const tk_const other = element(t, ANY);
    const char *name = text("%%v%u", k.names++);
    say("  %%o%u = const bits(0x%llx) : %s\n", at, (unsigned long long)other.bits, type(t, s));
    say("  %s = load %%x%u[%s] else %%o%u : %s\n", name, at, ranges(s), at, type(t, s));
    return name;
}

static inline void output(const char *v, tk_dtype t, shape s) {
    static const shape one = {1, {1}};
    const unsigned at = add_tensor("out", t, s.rank ? s : one, ANY);
    say("  store %%x%u[%s] = %s\n", at, s.rank ? ranges(s) : "%z", v);
}

// ---- Before and after ---------------------------------------------------------------------------

static inline void check_extents(void *user, tk_op *op) {
    (void)user;
    for (uint32_t i = 0; i < op->nres; i++) {
        unsigned axis;
        const tk_type *t = tk_value_type(op->in->func, op->res[i]);
        cr_assert(t->rank == 0 || tk_layout_fits(t, &axis));
    }
}

static inline char *padded(const char *module) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, module);
    tk_pipeline_opts o = {.only = "pad"};
    o.table = tk_lower_passes(&o.rows);
    cr_assert(tk_pipeline_run(m, NULL, &e->diags, &o), "%s\n%s", ir_diags(e), module);
    tk_func_walk(m->funcs.at[0], check_extents, NULL);
    const char *after = ir_text(e, m);
    char *copy = malloc(strlen(after) + 1);
    strcpy(copy, after);
    ir_close(e);
    return copy;
}

typedef struct outcome {
    tk_exec_code code;
    char said[1024]; // fault and lines printed
} outcome;

static inline outcome run(const char *module, bool after) {
    static xrun x;
    outcome r = {.code = TK_EXEC_OK};
    cr_assert(xrun_open(&x, module));
    for (unsigned i = 0; i < k.tensors; i++) {
        unsigned char *data = after ? k.at[i].after : k.at[i].before;
        memcpy(data, k.at[i].first, k.at[i].bytes);
        xrun_tensor(&x, i, data, k.at[i].s.rank, k.at[i].s.dim, NULL);
    }
    r.code = xrun_go(&x);
    size_t n =
        (size_t)snprintf(r.said, sizeof r.said, "%s", r.code == TK_EXEC_OK ? "" : x.fault.text);
    for (int i = 0; i < x.lines; i++) {
        n += (size_t)snprintf(r.said + n, sizeof r.said - n, "\n%s", x.line[i]);
    }
    xrun_close(&x);
    return r;
}

static inline void same_bits(const tensor *x, unsigned number, const char *what,
                             const char *module) {
    const size_t size = tk_dtype_size(x->t);
    for (size_t i = 0; i < x->bytes; i += size) {
        const tk_const a = tk_const_load(x->t, x->before + i),
                       b = tk_const_load(x->t, x->after + i);
        const bool nans = tk_dtype_is_float(x->t) && tk_const_is_nan(a) && tk_const_is_nan(b);
        cr_assert(nans || tk_const_same(a, b),
                  "%s: tensor %u, element %zu: 0x%llx, padded 0x%llx\n%s", what, number, i / size,
                  (unsigned long long)a.bits, (unsigned long long)b.bits, module);
    }
}

static inline outcome compare(const char *what) {
    static char module[2 * ROOM];
    size_t n = (size_t)snprintf(module, sizeof module, "module tile\n\nkernel @k(");
    for (unsigned i = 0; i < k.tensors; i++) {
        const tensor *x = &k.at[i];
        n += (size_t)snprintf(module + n, sizeof module - n, "%s%%x%u: %s %s[?", i ? ", " : "", i,
                              x->way, tk_dtype_name(x->t));
        for (unsigned d = 1; d < x->s.rank; d++) {
            n += (size_t)snprintf(module + n, sizeof module - n, ", ?");
        }
        n += (size_t)snprintf(module + n, sizeof module - n, "]");
    }
    (void)snprintf(module + n, sizeof module - n, ") {\n%s  return\n}\n", k.body);
    const outcome before = run(module, false);
    char *other = padded(module);
    const outcome after = run(other, true);
    cr_assert(before.code == after.code && strcmp(before.said, after.said) == 0,
              "%s: '%s', padded '%s'\n%s", what, before.said, after.said, module);
    for (unsigned i = 0; i < k.tensors; i++) {
        same_bits(&k.at[i], i, what, module);
        free(k.at[i].first);
        free(k.at[i].before);
        free(k.at[i].after);
    }
    free(other);
    return before;
}

#endif
