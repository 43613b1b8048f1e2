// SPDX-License-Identifier: Apache-2.0
// Variants: a kernel compiled for one set of compile-time parameters. Found by key, made once, kept
// with the kernel.
#include "lower/lower.h"
#include "runtime/internal.h"

#include <string.h>

// A frame holds all tiles of one program; each thread has one.
#define MAX_FRAME ((size_t)1 << 30)

tk_module *compile_module(tk_work *w, tk_arena *arena, const tk_unit *unit, const tk_bound *b,
                          const char *pass) {
    tk_program *p = tk_instantiate(&w->arena, unit, b, &w->diags);
    if (!p || w->diags.errors) {
        return NULL;
    }
    if (b->info->warps) {
        p->attrs.warps = b->info->warps;
    }
    tk_module *m = tk_build_module(arena, unit->sources, p, w->config->debug);
    tk_pipeline_opts o;
    memset(&o, 0, sizeof o);
    o.debug = w->config->debug;
    const bool below = pass && strcmp(pass, "build") != 0 && !tk_pass_find(pass);
    o.after = below ? NULL : pass;
    bool good = tk_pipeline_run(m, &w->config->from, &w->diags, &o);
    if (good && below) {
        good = tk_lower(m, tk_lower_target(), NULL, &w->config->from, &w->diags, pass, o.debug);
    }
    return good ? m : NULL;
}

static const variant *find(tkc_kernel *k, const char *key) {
    pthread_mutex_lock(&k->list_lock);
    const variant *v = k->variants;
    while (v && strcmp(v->key, key) != 0) {
        v = v->next;
    }
    pthread_mutex_unlock(&k->list_lock);
    return v;
}

typedef struct variant_make {
    tkc_kernel *kernel;
    const tk_unit *unit;
    const tk_bound *bound;
    variant *v;
} variant_make;

// Everything that a variant keeps is in its own arena; the sources are the kernel's.
static bool fill(tk_work *w, void *arg) {
    variant_make *m = arg;
    variant *v = m->v;
    v->key = tk_strdup(&v->arena, m->bound->key);
    v->module = compile_module(w, &v->arena, m->unit, m->bound, NULL);
    if (!v->module) {
        return false;
    }
    v->module->sources = &m->kernel->sources;
    v->plan = tk_plan_make(&v->arena, v->module, &w->diags, MAX_FRAME);
    return v->plan != NULL;
}

// Makes a variant and adds it to the list. The compile lock is held.
static const variant *make(tk_work *w, tkc_kernel *k, const tk_unit *unit, const tk_bound *b,
                           bool *failed) {
    const tkc_config *c = w->config;
    variant *v = mem_alloc(c, sizeof *v);
    if (!v) {
        w->guard.fail = TK_FAIL_MEMORY;
        *failed = true;
        return NULL;
    }
    tk_arena_init(&v->arena, &c->from, &w->guard);
    variant_make m = {k, unit, b, v};
    if (!work_try(w, fill, &m, failed)) {
        tk_arena_release(&v->arena);
        mem_free(c, v);
        return NULL;
    }
    v->arena.guard = NULL;
    pthread_mutex_lock(&k->list_lock);
    v->next = k->variants;
    k->variants = v;
    pthread_mutex_unlock(&k->list_lock);
    return v;
}

const variant *variant_get(tk_work *w, tkc_kernel *k, const tk_unit *unit, const tk_bound *b) {
    const variant *v = find(k, b->key);
    if (v) {
        return v;
    }
    bool failed = false;
    pthread_mutex_lock(&k->compile_lock);
    v = find(k, b->key);
    if (!v) {
        v = make(w, k, unit, b, &failed);
    }
    pthread_mutex_unlock(&k->compile_lock);
    if (failed) {
        work_fail_again(w);
    }
    return v;
}

void variants_destroy(tkc_kernel *k) {
    for (variant *v = k->variants, *next; v; v = next) {
        next = v->next;
        tk_arena_release(&v->arena);
        mem_free(&k->program->context->config, v);
    }
    k->variants = NULL;
    gpu_variants_destroy(k);
}

size_t tkc_kernel_variant_count(const tkc_kernel *kernel) {
    size_t n = 0;
    if (kernel) {
        tkc_kernel *k = (tkc_kernel *)(uintptr_t)kernel;
        pthread_mutex_lock(&k->list_lock);
        for (const variant *v = k->variants; v; v = v->next) {
            n++;
        }
        n += gpu_variant_count(k);
        pthread_mutex_unlock(&k->list_lock);
    }
    return n;
}

// ---- Reflection

typedef struct variant_text {
    tkc_kernel *kernel;
    size_t i;
    tkc_text *out;
    bool notes; // rather than what it is for
    bool found;
} variant_text;

static void describe(tk_buf *b, const variant *v, bool notes) {
    if (notes) {
        tk_notes_print(b, v->module->sources, &v->module->notes);
    } else {
        tk_buf_fmt(b, "cpu: %s", v->key);
    }
}

static void describe_gpu(tk_buf *b, const struct gpu_variant *v, bool notes) {
    if (notes) {
        tk_buf_str(b, gpu_notes(v));
    } else {
        gpu_describe(b, v);
    }
}

// With the list's lock: work_run comes back whatever happens.
static void find_text(tk_work *w, void *arg) {
    variant_text *t = arg;
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    size_t i = t->i;
    const variant *v = t->kernel->variants;
    while (v && i > 0) {
        v = v->next;
        i--;
    }
    const struct gpu_variant *g = v ? NULL : gpu_variant_at(t->kernel, i);
    if (v) {
        describe(&b, v, t->notes);
    } else if (g) {
        describe_gpu(&b, g, t->notes);
    }
    t->found = v || g;
    if (t->found && !text_copy(w->config, tk_buf_text(&b), b.n, t->out)) {
        tk_fail_memory(&w->guard);
    }
}

static tkc_status text_of(tkc_kernel *kernel, size_t i, bool notes, tkc_text *out) {
    if (!kernel || !out) {
        return TKC_ERROR_ARGUMENT;
    }
    *out = (tkc_text){NULL, 0};
    tk_work w;
    work_init(&w, &kernel->program->context->config);
    variant_text t = {kernel, i, out, notes, false};
    pthread_mutex_lock(&kernel->list_lock);
    tkc_status s = work_run(&w, find_text, &t);
    pthread_mutex_unlock(&kernel->list_lock);
    s = work_end(&w, s, NULL);
    return s == TKC_OK && !t.found ? TKC_ERROR_ARGUMENT : s;
}

tkc_status tkc_kernel_variant_text(tkc_kernel *kernel, size_t i, tkc_text *out) {
    return text_of(kernel, i, false, out);
}

tkc_status tkc_kernel_variant_notes(tkc_kernel *kernel, size_t i, tkc_text *out) {
    return text_of(kernel, i, true, out);
}
