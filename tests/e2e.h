// SPDX-License-Identifier: Apache-2.0
// End to end in one call, for tests: the text of a kernel, its arguments, and what it did to them.
//
//     float x[4] = {1, 2, 3, 4};
//     e2e_arg arg[] = {e2e_f32("x", x, 1, 4)};
//     e2e_run r = {.source = "kernel k(x: inout f32[N]) { ... }", .arg = arg, .narg = 1};
//     cr_assert(e2e(&r), "%s", r.text);
//
// Single-threaded, programs in order, no imports. Header only, so that what is not used is not
// linked.
#ifndef TK_TESTS_E2E_H
#define TK_TESTS_E2E_H

#include "ir/exec.h"
#include "ir/pass.h"
#include "lang/check.h"
#include "parser/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct e2e_arg {
    const char *name;
    bool is_scalar;
    tk_const scalar; // cast to the parameter's type
    tk_dtype dtype;  // tensor: contiguous
    uint32_t rank;
    int64_t dim[TK_MAX_TENSOR_RANK];
    void *data;
} e2e_arg;

typedef struct e2e_run_ {
    const char *source;
    const char *kernel; // NULL: the first
    const e2e_arg *arg;
    uint32_t narg;
    const char *const *define; // "NAME=VALUE", NULL at the end; or NULL
    bool debug;
    bool inline_only; // no pass but the one that the executor needs
    bool check_only;  // up to the IR, nothing runs
    // Results
    tk_exec_fault fault;                   // where a program stopped
    uint32_t loops, ifs, calls, functions; // of the kernel's IR as built; functions of the module
    char text[8192];                       // diagnostics, the fault, or the internal error
    char printed[4096];                    // lines of print
} e2e_run;

static inline e2e_arg e2e_tensor(const char *name, tk_dtype t, void *data, uint32_t rank,
                                 const int64_t *dim) {
    e2e_arg a = {.name = name, .dtype = t, .rank = rank, .data = data};
    for (uint32_t i = 0; i < rank; i++) {
        a.dim[i] = dim[i];
    }
    return a;
}

#define E2E_DIMS(...)                                                                              \
    (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define e2e_f32(name, data, ...) e2e_tensor((name), TK_F32, (data), E2E_DIMS(__VA_ARGS__))
#define e2e_i32(name, data, ...) e2e_tensor((name), TK_I32, (data), E2E_DIMS(__VA_ARGS__))

static inline e2e_arg e2e_int(const char *name, int64_t x) {
    return (e2e_arg){.name = name, .is_scalar = true, .scalar = tk_const_i64(TK_I64, x)};
}

static inline e2e_arg e2e_float(const char *name, double x) {
    return (e2e_arg){.name = name, .is_scalar = true, .scalar = tk_const_f64(TK_F64, x)};
}

// ---- Inside
typedef struct e2e_state {
    e2e_run *r;
    tk_arena *arena;
    tk_sources sources;
    tk_names names;
    tk_diags diags;
    tk_unit unit;
} e2e_state;

static inline void e2e_say(e2e_run *r, const char *text) {
    size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n, "%s", text);
}

static inline void e2e_print(void *user, const char *line) {
    e2e_run *r = user;
    size_t n = strlen(r->printed);
    snprintf(r->printed + n, sizeof r->printed - n, "%s\n", line);
}

static inline bool e2e_fine(e2e_state *s) {
    if (s->diags.errors == 0) {
        return true;
    }
    tk_buf b;
    tk_buf_init(&b, s->arena);
    tk_diags_print(&b, &s->sources, &s->diags, false);
    e2e_say(s->r, tk_buf_text(&b));
    return false;
}

static inline bool e2e_load(e2e_state *s) {
    tk_sources_init(&s->sources, s->arena);
    tk_names_init(&s->names, s->arena);
    tk_diags_init(&s->diags, s->arena);
    uint32_t file = tk_sources_add(&s->sources, "test.tk", s->r->source, strlen(s->r->source));
    tk_unit_file f = {0};
    f.ast = tk_parse(s->arena, &s->names, &s->sources, file, &s->diags);
    if (!e2e_fine(s)) {
        return false;
    }
    s->unit.sources = &s->sources;
    s->unit.names = &s->names;
    tk_vec_push(s->arena, &s->unit.files, f);
    tk_check_unit(s->arena, &s->unit, &s->diags);
    return e2e_fine(s);
}

static inline const e2e_arg *e2e_find(const e2e_run *r, const char *name) {
    for (uint32_t i = 0; i < r->narg; i++) {
        if (strcmp(r->arg[i].name, name) == 0) {
            return &r->arg[i];
        }
    }
    return NULL;
}

static inline tk_kernel_info *e2e_kernel(e2e_state *s) {
    tk_kernel_info **list;
    uint32_t n;
    tk_unit_kernels(s->arena, &s->unit, &list, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!s->r->kernel || strcmp(list[i]->name, s->r->kernel) == 0) {
            return list[i];
        }
    }
    e2e_say(s->r, "no such kernel");
    return NULL;
}

static inline bool e2e_defines(e2e_state *s, tk_bind_in *in) {
    TK_VEC(tk_named_expr) list = {0};
    for (const char *const *d = s->r->define; d && *d; d++) {
        const char *eq = strchr(*d, '=');
        uint32_t file = tk_sources_add(&s->sources, *d, eq + 1, strlen(eq + 1));
        tk_named_expr e = {0};
        e.name = tk_intern(&s->names, *d, (size_t)(eq - *d));
        e.value = tk_parse_expr(s->arena, &s->names, &s->sources, file, &s->diags);
        tk_vec_push(s->arena, &list, e);
    }
    in->ncarg = list.n;
    in->carg = list.at;
    return e2e_fine(s);
}

static inline tk_bound *e2e_bind(e2e_state *s, const tk_kernel_info *info) {
    tk_arg_known *known = TK_NEW_ARRAY(s->arena, tk_arg_known, info->nparam);
    for (uint32_t i = 0; i < info->nparam; i++) {
        const e2e_arg *a = e2e_find(s->r, info->param[i].name);
        known[i].given = a != NULL;
        if (a && !a->is_scalar) {
            known[i].has_dtype = true;
            known[i].dtype = a->dtype;
            known[i].has_shape = true;
            known[i].rank = a->rank;
            memcpy(known[i].dim, a->dim, sizeof a->dim);
        }
    }
    tk_bind_in in = {.arg = known};
    if (!e2e_defines(s, &in)) {
        return NULL;
    }
    tk_bound *b = tk_bind(s->arena, &s->unit, info, &in, &s->diags);
    return e2e_fine(s) ? b : NULL;
}

static inline void e2e_count(void *user, tk_op *op) {
    e2e_run *r = user;
    r->loops += op->code == TK_OP_FOR || op->code == TK_OP_WHILE;
    r->ifs += op->code == TK_OP_IF;
    r->calls += op->code == TK_OP_CALL;
}

static inline bool e2e_verify(e2e_state *s, const tk_module *m, const char *when) {
    const char *why = NULL;
    if (tk_ir_verify(s->arena, m, &why)) {
        return true;
    }
    e2e_say(s->r, when);
    e2e_say(s->r, why);
    tk_buf b;
    tk_buf_init(&b, s->arena);
    tk_ir_print(&b, m, false);
    e2e_say(s->r, "\n");
    e2e_say(s->r, tk_buf_text(&b));
    return false;
}

static inline tk_module *e2e_module(e2e_state *s, const tk_bound *bound) {
    tk_program *p = tk_instantiate(s->arena, &s->unit, bound, &s->diags);
    if (!e2e_fine(s) || !p) {
        return NULL;
    }
    tk_module *m = tk_build_module(s->arena, &s->sources, p, s->r->debug);
    s->r->functions = m->funcs.n;
    tk_func_walk(m->funcs.at[m->funcs.n - 1], e2e_count, s->r);
    if (!e2e_verify(s, m, "as built: ")) {
        return NULL;
    }
    tk_pipeline_opts o = {.debug = s->r->debug, .only = s->r->inline_only ? "inline" : NULL};
    if (!tk_pipeline_run(m, NULL, &s->diags, &o)) {
        e2e_fine(s);
        return NULL;
    }
    return e2e_verify(s, m, "after the passes: ") ? m : NULL;
}

static inline void e2e_argument(const e2e_arg *a, const tk_type *type, tk_exec_tensor *t,
                                tk_const *scalar) {
    if (a->is_scalar) {
        *scalar = tk_cast(a->scalar, type->dtype);
        return;
    }
    t->data = a->data;
    int64_t stride = 1;
    for (uint32_t i = a->rank; i-- > 0;) {
        t->dim[i] = a->dim[i];
        t->stride[i] = stride;
        stride *= a->dim[i];
    }
}

static inline bool e2e_programs(e2e_state *s, const tk_plan *plan, tk_frame *frame,
                                tk_exec_env *env) {
    int64_t at[TK_MAX_GRID] = {0};
    env->ngrid = tk_plan_grid_axes(plan);
    tk_exec_grid(plan, frame, env, env->grid);
    int64_t n = 1;
    for (uint32_t i = 0; i < env->ngrid; i++) {
        n *= env->grid[i] > 0 ? env->grid[i] : 0;
    }
    for (int64_t k = 0; k < n; k++) {
        if (tk_exec_program(plan, frame, env, at, &s->r->fault) != TK_EXEC_OK) {
            e2e_say(s->r, "fault: ");
            e2e_say(s->r, s->r->fault.text);
            return false;
        }
        for (uint32_t i = 0; i < env->ngrid && ++at[i] == env->grid[i]; i++) {
            at[i] = 0;
        }
    }
    return true;
}

static inline bool e2e_execute(e2e_state *s, const tk_kernel_info *info, const tk_bound *bound,
                               const tk_module *m) {
    tk_plan *plan = tk_plan_make(s->arena, m, &s->diags, (size_t)1 << 28);
    if (!e2e_fine(s) || !plan) {
        return false;
    }
    tk_exec_tensor *tensor = TK_NEW_ARRAY(s->arena, tk_exec_tensor, info->nparam);
    tk_const *scalar = TK_NEW_ARRAY(s->arena, tk_const, info->nparam);
    tk_exec_env env = {.tensor = tensor, .scalar = scalar, .print = e2e_print, .user = s->r};
    for (uint32_t i = 0; i < info->nparam; i++) {
        const e2e_arg *a = e2e_find(s->r, info->param[i].name);
        if (a) {
            e2e_argument(a, bound->param[i], &tensor[env.narg], &scalar[env.narg]);
            env.narg++;
        }
    }
    char *memory = tk_alloc(s->arena, tk_plan_frame_size(plan) + 64);
    memory += 64 - (uintptr_t)memory % 64;
    return e2e_programs(s, plan, tk_frame_make(plan, memory), &env);
}

static inline bool e2e_steps(e2e_state *s) {
    if (!e2e_load(s)) {
        return false;
    }
    tk_kernel_info *info = e2e_kernel(s);
    tk_bound *bound = info ? e2e_bind(s, info) : NULL;
    tk_module *m = bound ? e2e_module(s, bound) : NULL;
    return m && (s->r->check_only || e2e_execute(s, info, bound, m));
}

// True where everything went well; else r->text says what did not.
static inline bool e2e(e2e_run *r) {
    tk_guard guard = {0};
    tk_arena arena;
    tk_arena_init(&arena, NULL, &guard);
    r->text[0] = '\0';
    r->printed[0] = '\0';
    r->loops = r->ifs = r->calls = 0;
    volatile bool ok = false;
    if (setjmp(guard.jump) == 0) {
        e2e_state *s = TK_NEW(&arena, e2e_state);
        s->r = r;
        s->arena = &arena;
        ok = e2e_steps(s);
    } else {
        e2e_say(r, guard.text);
    }
    tk_arena_release(&arena);
    return ok;
}

#endif
