// SPDX-License-Identifier: Apache-2.0
// Looking inside: syntax tree, IR after a pass, notes, IR text in and out, formatting.
#include "lower/lower.h"
#include "runtime/internal.h"

#include <string.h>

typedef struct dump_call {
    tkc_program *program;
    tkc_kernel *kernel;
    const tkc_arg *args;
    size_t nargs;
    const tkc_size *sizes;
    size_t nsizes;
    const char *name, *text; // IR or source given as text
    size_t size;
    const char *pass;
    bool locs, notes;
    tkc_text *out;
} dump_call;

static void give(tk_work *w, dump_call *d, tk_buf *b) {
    const char *text = tk_buf_text(b);
    if (!text_copy(w->config, text, strlen(text), d->out)) {
        tk_fail_memory(&w->guard);
    }
}

static tkc_status run(const tkc_context *context, void (*body)(tk_work *w, void *arg), dump_call *d,
                      tkc_report **report) {
    tk_work w;
    d->out->at = NULL;
    d->out->size = 0;
    work_init(&w, &context->config);
    w.said = d->kernel ? &d->kernel->program->said : NULL;
    tkc_status s = work_run(&w, body, d);
    if (s != TKC_OK) {
        tkc_text_free(d->out);
    }
    return work_end(&w, s, report);
}

static void dump_ast(tk_work *w, void *arg) {
    dump_call *d = arg;
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    tk_ast_print(&b, d->program->unit.files.at[0].ast);
    give(w, d, &b);
}

tkc_status tkc_program_dump_ast(tkc_program *program, tkc_text *out) {
    if (!program || !out) {
        return TKC_ERROR_ARGUMENT;
    }
    dump_call d = {.program = program, .out = out};
    return run(program->context, dump_ast, &d, NULL);
}

// Pass i of the tile pipeline and then of those on the way to a GPU; NULL past the end.
static const tk_pass *pass_at(size_t i) {
    size_t n, more;
    const tk_pass *p = tk_passes(&n), *below = tk_lower_passes(&more);
    return i < n ? &p[i] : i - n < more ? &below[i - n] : NULL;
}

static bool known_pass(tk_work *w, const char *pass, bool build_too) {
    if (!pass || (build_too && strcmp(pass, "build") == 0)) {
        return true;
    }
    TK_VEC(const char *) name = {0};
    for (size_t i = 0; pass_at(i); i++) {
        if (strcmp(pass_at(i)->name, pass) == 0) {
            return true;
        }
        tk_vec_push(&w->arena, &name, pass_at(i)->name);
    }
    tk_span none = {0, 0, 0};
    tk_diag *d = tk_error(&w->diags, none, "unknown-pass", "there is no pass '%s'", pass);
    const char *near = tk_nearest(&w->arena, pass, name.at, name.n);
    if (near) {
        tk_help(&w->diags, d, none, "did you mean '%s'?", near);
    }
    return false;
}

static void dump_kernel(tk_work *w, void *arg) {
    dump_call *d = arg;
    tk_unit *unit = unit_view(w, d->kernel);
    if (!known_pass(w, d->pass, true)) {
        return;
    }
    tk_bound *b = bind_args(w, d->kernel, unit, d->args, d->nargs, d->sizes, d->nsizes, false);
    tk_module *m = b ? compile_module(w, &w->arena, unit, b, d->pass) : NULL;
    if (!m) {
        return;
    }
    tk_buf out;
    tk_buf_init(&out, &w->arena);
    if (d->notes) {
        tk_notes_print(&out, unit->sources, &m->notes);
    } else {
        tk_ir_print(&out, m, d->locs);
    }
    give(w, d, &out);
}

static tkc_status dump_kernel_call(dump_call *d, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!d->kernel || (!d->args && d->nargs) || (!d->sizes && d->nsizes) || !d->out ||
        d->nargs == SIZE_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    return run(d->kernel->program->context, dump_kernel, d, report);
}

tkc_status tkc_kernel_dump_ir(tkc_kernel *kernel, const tkc_arg *args, size_t nargs,
                              const tkc_size *sizes, size_t nsizes, const char *pass, bool locs,
                              tkc_text *out, tkc_report **report) {
    dump_call d = {.kernel = kernel,
                   .args = args,
                   .nargs = nargs,
                   .sizes = sizes,
                   .nsizes = nsizes,
                   .pass = pass,
                   .locs = locs,
                   .out = out};
    return dump_kernel_call(&d, report);
}

tkc_status tkc_kernel_dump_notes(tkc_kernel *kernel, const tkc_arg *args, size_t nargs,
                                 const tkc_size *sizes, size_t nsizes, tkc_text *out,
                                 tkc_report **report) {
    dump_call d = {.kernel = kernel,
                   .args = args,
                   .nargs = nargs,
                   .sizes = sizes,
                   .nsizes = nsizes,
                   .notes = true,
                   .out = out};
    return dump_kernel_call(&d, report);
}

// The passes on the way to a GPU take what those before them leave.
static bool only_kernel(tk_work *w, const tk_module *m, const char *pass) {
    const tk_func *f = m->funcs.n == 1 ? m->funcs.at[0] : NULL;
    if (f && f->is_kernel) {
        return true;
    }
    tk_span where = {0, 0, 0};
    tk_error(&w->diags, f && f->loc < m->locs.n ? m->locs.at[f->loc].span : where, "pass-needs",
             "pass '%s' takes a module with a kernel and no other function", pass);
    return false;
}

static bool run_pass(tk_work *w, tk_module *m, const char *pass) {
    tk_pipeline_opts o;
    memset(&o, 0, sizeof o);
    o.only = pass;
    o.debug = w->config->debug;
    if (!tk_pass_find(pass)) {
        if (!only_kernel(w, m, pass)) {
            return false;
        }
        o.table = tk_lower_passes(&o.rows);
        o.target = tk_lower_target();
    }
    return tk_pipeline_run(m, &w->config->from, &w->diags, &o);
}

static void run_ir(tk_work *w, void *arg) {
    dump_call *d = arg;
    tk_sources *sources = TK_NEW(&w->arena, tk_sources);
    tk_sources_init(sources, &w->arena);
    w->sources = sources;
    if (!known_pass(w, d->pass, false)) {
        return;
    }
    uint32_t source = tk_sources_add(sources, d->name, d->text, d->size);
    tk_module *m = tk_ir_parse(&w->arena, sources, source, &w->diags);
    const char *why = NULL;
    if (!m) {
        return;
    }
    tk_span where;
    if (!tk_ir_verify_at(&w->arena, m, &why, &where)) {
        tk_error(&w->diags, where, "ir-invalid", "%s", why);
        return;
    }
    if (d->pass && !run_pass(w, m, d->pass)) {
        return;
    }
    tk_buf out;
    tk_buf_init(&out, &w->arena);
    tk_ir_print(&out, m, d->locs);
    give(w, d, &out);
}

tkc_status tkc_ir_run(tkc_context *context, const char *name, const char *text, size_t size,
                      const char *pass, bool locs, tkc_text *out, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !name || (!text && size) || !out || size >= INT32_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    dump_call d = {.name = name,
                   .text = text ? text : "",
                   .size = size,
                   .pass = pass,
                   .locs = locs,
                   .out = out};
    return run(context, run_ir, &d, report);
}

bool tkc_pass_info(size_t i, const char **name, const char **what) {
    const tk_pass *p = pass_at(i);
    if (!p || !name || !what) {
        return false;
    }
    *name = p->name;
    *what = p->what;
    return true;
}

static void format(tk_work *w, void *arg) {
    dump_call *d = arg;
    tk_sources *sources = TK_NEW(&w->arena, tk_sources);
    tk_names *names = TK_NEW(&w->arena, tk_names);
    tk_sources_init(sources, &w->arena);
    tk_names_init(names, &w->arena);
    w->sources = sources;
    uint32_t source = tk_sources_add(sources, d->name, d->text, d->size);
    tk_buf out;
    tk_buf_init(&out, &w->arena);
    if (tk_format_source(&w->arena, names, sources, source, &w->diags, &out)) {
        give(w, d, &out);
    }
}

tkc_status tkc_format(tkc_context *context, const char *name, const char *text, size_t size,
                      tkc_text *out, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !name || (!text && size) || !out || size >= INT32_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    dump_call d = {.name = name, .text = text ? text : "", .size = size, .out = out};
    return run(context, format, &d, report);
}
