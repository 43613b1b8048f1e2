// SPDX-License-Identifier: Apache-2.0
// For the tests of the executor: runs a kernel written as IR text on arrays.
#ifndef TK_TESTS_TEST_EXEC_RUN_H
#define TK_TESTS_TEST_EXEC_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/exec.h"

enum { XRUN_ARGS = 8, XRUN_LINES = 16 };

typedef struct xrun {
    tk_guard guard;
    tk_arena arena;
    tk_sources sources;
    tk_diags diags;
    tk_module *module;
    tk_plan *plan;
    tk_frame *frame;
    void *memory;
    tk_exec_env env;
    tk_exec_tensor tensor[XRUN_ARGS];
    tk_const scalar[XRUN_ARGS];
    tk_exec_fault fault;
    int lines;
    char *line[XRUN_LINES];
} xrun;

static inline void xrun_print(void *user, const char *line) {
    xrun *x = user;
    if (x->lines < XRUN_LINES) {
        const size_t n = strlen(line) + 1;
        x->line[x->lines] = tk_alloc(&x->arena, n);
        memcpy(x->line[x->lines++], line, n);
    }
}

// Parses, verifies and plans; prints what is wrong and gives false where that fails.
static inline bool xrun_open_limit(xrun *x, const char *text, size_t limit) {
    memset(x, 0, sizeof *x);
    tk_arena_init(&x->arena, NULL, &x->guard);
    if (setjmp(x->guard.jump) != 0) {
        (void)fprintf(stderr, "failed: %s\n", x->guard.text);
        return false;
    }
    tk_sources_init(&x->sources, &x->arena);
    tk_diags_init(&x->diags, &x->arena);
    const uint32_t source = tk_sources_add(&x->sources, "test.ir", text, strlen(text));
    x->module = tk_ir_parse(&x->arena, &x->sources, source, &x->diags);
    const char *why = NULL;
    if (x->module && !tk_ir_verify(&x->arena, x->module, &why)) {
        (void)fprintf(stderr, "not valid: %s\n%s\n", why, text);
        return false;
    }
    x->plan = x->module ? tk_plan_make(&x->arena, x->module, &x->diags, limit) : NULL;
    if (!x->plan) {
        tk_buf b;
        tk_buf_init(&b, &x->arena);
        tk_diags_print(&b, &x->sources, &x->diags, false);
        (void)fprintf(stderr, "%s%s\n", tk_buf_text(&b), limit == SIZE_MAX ? text : "");
        return false;
    }
    const size_t size = (tk_plan_frame_size(x->plan) + 63) / 64 * 64;
    x->memory = aligned_alloc(64, size);
    memset(x->memory, 0xa5, size);
    x->frame = tk_frame_make(x->plan, x->memory);
    x->env.tensor = x->tensor;
    x->env.scalar = x->scalar;
    x->env.print = xrun_print;
    x->env.user = x;
    return true;
}

static inline bool xrun_open(xrun *x, const char *text) {
    return xrun_open_limit(x, text, SIZE_MAX);
}

static inline void xrun_close(xrun *x) {
    free(x->memory);
    tk_arena_release(&x->arena);
}

// strides NULL: row-major
static inline void xrun_tensor(xrun *x, uint32_t i, void *data, uint32_t rank, const int64_t *dim,
                               const int64_t *stride) {
    int64_t step = 1;
    x->tensor[i] = (tk_exec_tensor){.data = data};
    for (uint32_t d = rank; d-- > 0;) {
        x->tensor[i].dim[d] = dim[d];
        x->tensor[i].stride[d] = stride ? stride[d] : step;
        step *= dim[d];
    }
    x->env.narg = i >= x->env.narg ? i + 1 : x->env.narg;
}

static inline void xrun_vector(xrun *x, uint32_t i, void *data, int64_t n) {
    xrun_tensor(x, i, data, 1, &n, NULL);
}

static inline void xrun_scalar(xrun *x, uint32_t i, tk_const c) {
    x->scalar[i] = c;
    x->env.narg = i >= x->env.narg ? i + 1 : x->env.narg;
}

// All programs of the grid in turn, to the first fault.
static inline tk_exec_code xrun_go(xrun *x) {
    int64_t count[TK_MAX_GRID] = {1, 1, 1, 1, 1};
    int64_t at[TK_MAX_GRID] = {0};
    x->env.ngrid = tk_plan_grid_axes(x->plan);
    if (x->env.ngrid > 0) {
        tk_exec_grid(x->plan, x->frame, &x->env, count);
    }
    memcpy(x->env.grid, count, sizeof count);
    int64_t n = 1;
    for (uint32_t i = 0; i < x->env.ngrid; i++) {
        n *= count[i] > 0 ? count[i] : 0;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k;
        for (uint32_t i = 0; i < x->env.ngrid; i++) {
            at[i] = rest % count[i];
            rest /= count[i];
        }
        const tk_exec_code code = tk_exec_program(x->plan, x->frame, &x->env, at, &x->fault);
        if (code != TK_EXEC_OK) {
            return code;
        }
    }
    return TK_EXEC_OK;
}

// A kernel text from a format; the caller frees it.
static inline char *xrun_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline char *xrun_text(const char *fmt, ...) {
    char *text = malloc(16384);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, 16384, fmt, args);
    va_end(args);
    return text;
}

#endif
