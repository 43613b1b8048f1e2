// SPDX-License-Identifier: Apache-2.0
// See ir_env.h.
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

ir_env *ir_open(void) {
    ir_env *e = calloc(1, sizeof *e);
    cr_assert(e != NULL);
    tk_arena_init(&e->arena, NULL, NULL); // a failure aborts, which fails the test
    tk_sources_init(&e->sources, &e->arena);
    tk_diags_init(&e->diags, &e->arena);
    return e;
}

void ir_close(ir_env *e) {
    tk_arena_release(&e->arena);
    free(e);
}

tk_module *ir_parse(ir_env *e, const char *text) {
    uint32_t id = tk_sources_add(&e->sources, "test.ir", text, strlen(text));
    return tk_ir_parse(&e->arena, &e->sources, id, &e->diags);
}

tk_module *ir_good(ir_env *e, const char *text) {
    tk_module *m = ir_parse(e, text);
    cr_assert(m != NULL, "%s\n%s", text, ir_diags(e));
    const char *why = ir_why(e, m);
    cr_assert(why == NULL, "%s\n%s", text, why ? why : "");
    return m;
}

static const char *print(ir_env *e, const tk_module *m, bool locs) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_ir_print(&b, m, locs);
    return tk_buf_text(&b);
}

const char *ir_text(ir_env *e, const tk_module *m) { return print(e, m, false); }

const char *ir_text_locs(ir_env *e, const tk_module *m) { return print(e, m, true); }

const char *ir_why(ir_env *e, const tk_module *m) {
    const char *why = NULL;
    bool good = tk_ir_verify(&e->arena, m, &why);
    cr_assert(good == (why == NULL));
    return why;
}

const char *ir_diags(ir_env *e) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_diags_print(&b, &e->sources, &e->diags, false);
    return tk_buf_text(&b);
}

bool ir_run(ir_env *e, const char *pass, tk_module *m) {
    tk_pipeline_opts o = {.only = pass};
    tk_guard guard = {.fail = TK_FAIL_NONE};
    e->arena.guard = &guard;
    if (setjmp(guard.jump) != 0) {
        cr_assert_fail("%s", guard.text);
    }
    bool good = tk_pipeline_run(m, NULL, &e->diags, &o);
    e->arena.guard = NULL;
    return good;
}

const char *ir_after(ir_env *e, const char *pass, const char *text) {
    tk_module *m = ir_good(e, text);
    bool good = ir_run(e, pass, m);
    cr_assert(good, "%s", ir_diags(e));
    return ir_text(e, m);
}

typedef struct counting {
    tk_opcode code;
    unsigned n;
} counting;

static void count_op(void *user, tk_op *op) {
    counting *c = user;
    c->n += op->code == c->code;
}

unsigned ir_count(const tk_module *m, tk_opcode code) {
    counting c = {code, 0};
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        tk_func_walk(m->funcs.at[i], count_op, &c);
    }
    return c.n;
}

const tk_note_rec *ir_note(const tk_module *m, const char *id) {
    for (uint32_t i = 0; i < m->notes.list.n; i++) {
        if (strcmp(m->notes.list.at[i]->id, id) == 0) {
            return m->notes.list.at[i];
        }
    }
    return NULL;
}

const char *ir_elem_sample(ir_env *e, tk_opcode code, tk_dtype t) {
    const tk_opinfo *info = tk_op_info(code);
    const char *type = tk_dtype_name(t);
    bool is_select = info->num == TK_NUM_SELECT;
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(&b, "module tile\n\nfunc @f(%%a: %s[4], %%b: %s[4], %%c: %s[4])",
               is_select ? "bool" : type, type, type);
    const char *result = tk_dtype_name(tk_numop_result(info->num, t));
    tk_buf_fmt(&b, " -> %s[4] {\n  %%3 = %s %%a%s%s : %s[4]\n  return %%3\n}\n", result, info->name,
               info->operands > 1 ? ", %b" : "", info->operands > 2 ? ", %c" : "", result);
    return tk_buf_text(&b);
}

void ir_refuses(const char *text, const char *want) {
    ir_env *e = ir_open();
    tk_module *m = ir_parse(e, text);
    cr_assert(m != NULL, "%s\n%s", text, ir_diags(e));
    const char *why = ir_why(e, m);
    cr_assert(why && strstr(why, want), "%s\n%s\nnot in: %s", text, want, why ? why : "(verifies)");
    ir_close(e);
}
