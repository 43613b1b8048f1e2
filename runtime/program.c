// SPDX-License-Identifier: Apache-2.0
// Programs: made from a string or a file, checked, const.
#include "runtime/internal.h"

#include <string.h>

typedef struct program_make {
    tkc_context *context;
    const char *name;
    const char *text; // NULL: read the file `name`
    size_t size;
    tkc_program *program;
} program_make;

static void fetch_text(tk_work *w, program_make *m) {
    if (m->text) {
        return;
    }
    const struct tk_embedded *e = stdlib_find(m->name);
    if (e) {
        m->text = e->text;
        m->size = e->size;
        return;
    }
    const char *why;
    m->text = read_file(&w->arena, m->name, &m->size, &why);
    if (!m->text) {
        work_fail(w, TKC_ERROR_IO, "cannot-read", "cannot read '%s': %s", m->name, why);
        stdlib_suggest(w, w->diags.list.at[w->diags.list.n - 1], m->name);
    }
}

// Warnings outlive the call, without their notes: enough to know them again.
static void keep_warnings(tk_work *w, tkc_program *p) {
    tk_diags_init(&p->said, &p->arena);
    for (uint32_t i = 0; i < w->diags.list.n; i++) {
        const tk_diag *d = w->diags.list.at[i];
        if (d->severity == TK_WARNING) {
            tk_warning(&p->said, d->span, tk_strdup(&p->arena, d->id), "%s", d->text);
        }
    }
}

static void make_program(tk_work *w, void *arg) {
    program_make *m = arg;
    tkc_program *p = m->program;
    work_guard_arena(w, &p->arena);
    fetch_text(w, m);
    if (!m->text) {
        return;
    }
    load_unit(w, p, m->name, m->text, m->size);
    if (!w->diags.errors) {
        tk_unit_kernels(&p->arena, &p->unit, &p->kernel, &p->nkernel);
        keep_warnings(w, p);
    }
}

static tkc_status program_create(program_make *m, tkc_program **program, tkc_report **report) {
    const tkc_config *c = &m->context->config;
    tk_work w;
    work_init(&w, c);
    m->program = mem_alloc(c, sizeof *m->program);
    if (!m->program) {
        return work_end(&w, TKC_ERROR_MEMORY, report);
    }
    m->program->context = m->context;
    tk_arena_init(&m->program->arena, &c->from, &w.guard);
    tkc_status s = work_run(&w, make_program, m);
    m->program->arena.guard = NULL;
    if (s == TKC_ERROR_MEMORY || s == TKC_ERROR_INTERNAL) {
        w.sources = NULL;
    }
    s = work_end(&w, s, report);
    if (s != TKC_OK) {
        tkc_program_destroy(m->program);
        return s;
    }
    *program = m->program;
    return s;
}

tkc_status tkc_program_from_string(tkc_context *context, const char *name, const char *text,
                                   size_t size, tkc_program **program, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !name || !program || (!text && size)) {
        return TKC_ERROR_ARGUMENT;
    }
    *program = NULL;
    program_make m = {context, name, text ? text : "", size, NULL};
    return program_create(&m, program, report);
}

tkc_status tkc_program_from_file(tkc_context *context, const char *path, tkc_program **program,
                                 tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !path || !program) {
        return TKC_ERROR_ARGUMENT;
    }
    *program = NULL;
    program_make m = {context, path, NULL, 0, NULL};
    return program_create(&m, program, report);
}

void tkc_program_destroy(tkc_program *program) {
    if (program) {
        const tkc_config *c = &program->context->config;
        tk_arena_release(&program->arena);
        mem_free(c, program);
    }
}

size_t tkc_program_kernel_count(const tkc_program *program) {
    return program ? program->nkernel : 0;
}

const char *tkc_program_kernel_name(const tkc_program *program, size_t i) {
    return program && i < program->nkernel ? program->kernel[i]->name : NULL;
}

const char *tkc_program_file(const tkc_program *program, size_t i) {
    for (uint32_t k = 0; program && k < program->sources.files.n; k++) {
        const char *name = program->sources.files.at[k].name;
        if (!stdlib_find(name) && i-- == 0) {
            return name;
        }
    }
    return NULL;
}
