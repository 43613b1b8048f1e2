// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead of time: tkc_ahead.
#include "runtime/ahead.h"

#include <string.h>

// ---- Making

typedef struct create_call {
    tkc_ahead *ahead;
    const tkc_ahead_options *options;
} create_call;

static void take_targets(tk_work *w, void *arg) {
    const create_call *c = arg;
    tkc_ahead *h = c->ahead;
    for (size_t i = 0; i < c->options->narch; i++) {
        const char *name = c->options->arch[i];
        if (!target_known(w, name)) {
            return;
        }
        const tk_target *t = tk_target_find(name);
        size_t at = h->ntarget;
        for (size_t k = 0; k < h->ntarget; k++) {
            if (h->target[k] == t) {
                work_fail(w, TKC_ERROR_ARGUMENT, "target-twice", "target '%s' is named twice",
                          name);
                return;
            }
        }
        // The best first: the greatest, and of two the one for it alone.
        while (at > 0 && (h->target[at - 1]->cc < t->cc ||
                          (h->target[at - 1]->cc == t->cc &&
                           strlen(t->name) > strlen(h->target[at - 1]->name)))) {
            h->target[at] = h->target[at - 1];
            at--;
        }
        h->target[at] = t;
        h->ntarget++;
    }
}

tkc_status tkc_ahead_create(tkc_context *context, const tkc_ahead_options *options,
                            tkc_ahead **ahead, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !options || options->size < sizeof *options || !ahead || !options->narch ||
        !options->arch || options->narch > TKC_AHEAD_MAX_ARCH) {
        return TKC_ERROR_ARGUMENT;
    }
    for (size_t i = 0; i < options->narch; i++) {
        if (!options->arch[i]) {
            return TKC_ERROR_ARGUMENT;
        }
    }
    *ahead = NULL;
    const tkc_config *c = &context->config;
    tkc_ahead *h = mem_alloc(c, sizeof *h);
    const tk_target **target = mem_alloc(c, options->narch * sizeof(*target));
    if (!h || !target) {
        mem_free(c, h);
        mem_free(c, target);
        return TKC_ERROR_MEMORY;
    }
    *h = (tkc_ahead){.context = context, .target = target, .promised = FACTS_PROMISED(options)};
    h->end = &h->first;
    tk_work w;
    work_init(&w, c);
    create_call call = {h, options};
    tkc_status s = work_end(&w, work_run(&w, take_targets, &call), report);
    if (s != TKC_OK) {
        tkc_ahead_destroy(h);
        return s;
    }
    *ahead = h;
    return s;
}

static void drop_kernel(const tkc_config *c, ahead_kernel *k) {
    tkc_text_free(&k->name);
    tkc_text_free(&k->bundle);
    tkc_text_free(&k->declaration);
    mem_free(c, k);
}

void tkc_ahead_destroy(tkc_ahead *ahead) {
    if (!ahead) {
        return;
    }
    const tkc_config *c = &ahead->context->config;
    for (ahead_kernel *k = ahead->first, *next; k; k = next) {
        next = k->next;
        drop_kernel(c, k);
    }
    mem_free(c, ahead->target);
    mem_free(c, ahead);
}

// ---- Adding

static void keep(tk_work *w, const char *at, size_t size, tkc_text *out) {
    if (!text_copy(w->config, at, size, out)) {
        tk_fail_memory(&w->guard);
    }
}

static void add(tk_work *w, void *arg) {
    ahead_add *a = arg;
    if (!gpu_backend(w->config)) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu-backend", "this build has no GPU code generator");
        return;
    }
    if (w->config->debug) {
        work_fail(w, TKC_ERROR_ARGUMENT, "debug-ahead",
                  "code compiled ahead is not for debugging: asserts and prints need tkc_launch");
        return;
    }
    if (!ahead_check_names(w, a)) {
        return;
    }
    a->unit = unit_view(w, a->kernel);
    a->bound = bind_args(w, a->kernel, a->unit, a->args, a->nargs, a->sizes, a->nsizes, false);
    tk_buf bundle, declaration;
    tk_buf_init(&bundle, &w->arena);
    tk_buf_init(&declaration, &w->arena);
    if (!a->bound || !ahead_bundle(w, a, &bundle)) {
        TK_CHECK(&w->arena, w->diags.errors);
        return;
    }
    ahead_declare(a, &declaration);
    keep(w, a->name, strlen(a->name), &a->out->name);
    keep(w, bundle.at, bundle.n, &a->out->bundle);
    keep(w, tk_buf_text(&declaration), declaration.n, &a->out->declaration);
}

tkc_status tkc_ahead_add(tkc_ahead *ahead, const char *name, tkc_kernel *kernel,
                         const tkc_arg *args, size_t nargs, const tkc_size *sizes, size_t nsizes,
                         tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!ahead || !kernel || (!args && nargs) || (!sizes && nsizes) || nargs == SIZE_MAX ||
        kernel->program->context != ahead->context) {
        return TKC_ERROR_ARGUMENT;
    }
    const tkc_config *c = &ahead->context->config;
    ahead_kernel *k = mem_alloc(c, sizeof *k);
    if (!k) {
        return TKC_ERROR_MEMORY;
    }
    tk_work w;
    work_init(&w, c);
    w.said = &kernel->program->said;
    w.sources = &kernel->sources;
    ahead_add a = {.ahead = ahead,
                   .name = name ? name : kernel->info->name,
                   .kernel = kernel,
                   .args = args,
                   .nargs = nargs,
                   .sizes = sizes,
                   .nsizes = nsizes,
                   .out = k};
    tkc_status s = work_end(&w, work_run(&w, add, &a), report);
    if (s != TKC_OK) {
        drop_kernel(c, k);
        return s;
    }
    *ahead->end = k;
    ahead->end = &k->next;
    return s;
}

// ---- Writing

typedef struct write_call {
    const tkc_ahead *ahead;
    tkc_ahead_form form;
    const char *name;
    tkc_text *out;
} write_call;

static void write_form(tk_work *w, void *arg) {
    const write_call *c = arg;
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    switch (c->form) {
    case TKC_AHEAD_OBJECT:
        if (!ahead_object(c->ahead, &b)) {
            work_fail(w, TKC_ERROR_DEVICE, "no-object-format",
                      "tkc writes no object files for this machine; write C");
            return;
        }
        break;
    case TKC_AHEAD_C:
        ahead_source(c->ahead, &b);
        break;
    case TKC_AHEAD_HEADER:
        ahead_header(c->ahead, c->name, &b);
        break;
    }
    keep(w, b.at, b.n, c->out);
}

tkc_status tkc_ahead_write(const tkc_ahead *ahead, tkc_ahead_form form, const char *name,
                           tkc_text *out, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!ahead || !ahead->first || (unsigned)form > TKC_AHEAD_HEADER || !out ||
        (form == TKC_AHEAD_HEADER && !name)) {
        return TKC_ERROR_ARGUMENT;
    }
    *out = (tkc_text){NULL, 0};
    tk_work w;
    work_init(&w, &ahead->context->config);
    write_call c = {ahead, form, name, out};
    return work_end(&w, work_run(&w, write_form, &c), report);
}
