// SPDX-License-Identifier: Apache-2.0
// Kernels: one of a program by name, with compile-time parameters set by text; reflection.
#include "runtime/internal.h"

#include <string.h>

typedef struct kernel_make {
    tkc_kernel *kernel;
    const char *name;
    const tkc_define *define;
    size_t ndefine;
} kernel_make;

// The program's tables, to be added to in the kernel's arena: the arrays are copied, what they
// point to is shared.
static void copy_tables(tk_arena *a, tk_sources *sources, tk_names *names, const tk_sources *from,
                        const tk_names *from_names) {
    tk_sources_init(sources, a);
    for (uint32_t i = 0; i < from->files.n; i++) {
        tk_vec_push(a, &sources->files, from->files.at[i]);
    }
    *names = *from_names;
    names->arena = a;
    names->slot = TK_NEW_ARRAY(a, const char *, from_names->room);
    if (from_names->room) {
        memcpy(names->slot, from_names->slot, from_names->room * sizeof *names->slot);
    }
}

static tk_unit *unit_with(tk_arena *a, const tk_unit *unit, const tk_sources *sources,
                          tk_names *names) {
    tk_unit *u = TK_NEW(a, tk_unit);
    *u = *unit;
    u->sources = sources;
    u->names = names;
    return u;
}

tk_unit *unit_view(tk_work *w, const tkc_kernel *k) {
    tk_sources *sources = TK_NEW(&w->arena, tk_sources);
    tk_names *names = TK_NEW(&w->arena, tk_names);
    copy_tables(&w->arena, sources, names, &k->sources, &k->names);
    w->sources = sources;
    return unit_with(&w->arena, &k->program->unit, sources, names);
}

static const char *kernel_list(tk_work *w, const tkc_program *p) {
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    for (uint32_t i = 0; i < p->nkernel && i < 10; i++) {
        tk_buf_fmt(&b, "%s%s", i ? ", " : "", p->kernel[i]->name);
    }
    tk_buf_str(&b, p->nkernel > 10 ? ", ..." : "");
    return tk_buf_text(&b);
}

static tk_kernel_info *find_kernel(tk_work *w, kernel_make *m) {
    tkc_kernel *k = m->kernel;
    const tkc_program *p = k->program;
    if (!m->name) {
        if (p->nkernel == 1) {
            return tk_unit_kernel(&k->arena, &p->unit, p->kernel[0]->name);
        }
        if (p->nkernel == 0) {
            work_fail(w, TKC_ERROR_SOURCE, "no-kernel", "the program has no kernel");
        } else {
            tk_span none = {0, 0, 0};
            work_fail(w, TKC_ERROR_SOURCE, "which-kernel",
                      "the program has %u kernels, of which none is named: %s", p->nkernel,
                      kernel_list(w, p));
            tk_help(&w->diags, w->diags.list.at[w->diags.list.n - 1], none,
                    "give it with --kernel NAME");
        }
        return NULL;
    }
    tk_kernel_info *info = tk_unit_kernel(&k->arena, &p->unit, m->name);
    if (!info) {
        const char **name = TK_NEW_ARRAY(&w->arena, const char *, p->nkernel + 1);
        for (uint32_t i = 0; i < p->nkernel; i++) {
            name[i] = p->kernel[i]->name;
        }
        tk_span none = {0, 0, 0};
        tk_diag *d =
            tk_error(&w->diags, none, "unknown-kernel", "the program has no kernel '%s'", m->name);
        const char *near = tk_nearest(&w->arena, m->name, name, p->nkernel);
        if (near) {
            tk_help(&w->diags, d, none, "did you mean '%s'?", near);
        } else if (p->nkernel) {
            tk_help(&w->diags, d, none, "it has: %s", kernel_list(w, p));
        }
    }
    return info;
}

static void parse_defines(tk_work *w, kernel_make *m) {
    tkc_kernel *k = m->kernel;
    k->carg = TK_NEW_ARRAY(&k->arena, tk_named_expr, m->ndefine + 1);
    for (size_t i = 0; i < m->ndefine; i++) {
        const tkc_define *d = &m->define[i];
        if (!d->name || !d->value) {
            work_fail(w, TKC_ERROR_ARGUMENT, "bad-define", "define %zu has no name or no value", i);
            return;
        }
        const char *label = tk_format(&w->arena, "<-D %s>", d->name);
        uint32_t source = tk_sources_add(&k->sources, label, d->value, strlen(d->value));
        tk_named_expr *e = &k->carg[k->ncarg++];
        e->name = tk_intern(&k->names, d->name, strlen(d->name));
        e->span = (tk_span){source, 0, (uint32_t)strlen(d->value)};
        e->value = tk_parse_expr(&k->arena, &k->names, &k->sources, source, &w->diags);
    }
}

// Defines that are wrong whatever the arguments are found by binding with nothing known.
static void try_bind(tk_work *w, tkc_kernel *k) {
    tk_unit *unit = unit_view(w, k);
    bind_args(w, k, unit, NULL, SIZE_MAX, NULL, 0, false);
}

static void fill_params(tkc_kernel *k) {
    k->param = TK_NEW_ARRAY(&k->arena, tkc_param_info, k->info->nparam + 1);
    for (uint32_t i = 0; i < k->info->nparam; i++) {
        const tk_kparam *p = &k->info->param[i];
        k->param[i] = (tkc_param_info){p->name,  p->is_tensor, p->optional, (tkc_access)p->access,
                                       p->dtype, p->rank,      p->dim};
    }
}

static void fill_cparams(tkc_kernel *k) {
    k->cparam = TK_NEW_ARRAY(&k->arena, tkc_cparam_info, k->info->ncparam + 1);
    for (uint32_t i = 0; i < k->info->ncparam; i++) {
        const tk_kcparam *p = &k->info->cparam[i];
        tkc_cparam_info *o = &k->cparam[i];
        *o = (tkc_cparam_info){p->name, p->kind, p->value, p->fixed, p->from_arguments};
        for (uint32_t j = 0; j < k->ncarg; j++) {
            if (strcmp(k->carg[j].name, p->name) == 0) {
                const tk_source *s = tk_source_of(&k->sources, k->carg[j].span.file);
                o->value = s->text;
                o->fixed = true;
            }
        }
    }
}

static void make_kernel(tk_work *w, void *arg) {
    kernel_make *m = arg;
    tkc_kernel *k = m->kernel;
    work_guard_arena(w, &k->arena);
    copy_tables(&k->arena, &k->sources, &k->names, &k->program->sources, &k->program->names);
    w->sources = &k->sources;
    k->info = find_kernel(w, m);
    if (!k->info) {
        return;
    }
    parse_defines(w, m);
    if (!w->diags.errors) {
        try_bind(w, k);
    }
    if (!w->diags.errors) {
        fill_params(k);
        fill_cparams(k);
    }
}

tkc_status tkc_kernel_create(tkc_program *program, const char *name, const tkc_define *defines,
                             size_t ndefines, tkc_kernel **kernel, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!program || !kernel || (!defines && ndefines)) {
        return TKC_ERROR_ARGUMENT;
    }
    *kernel = NULL;
    const tkc_config *c = &program->context->config;
    tk_work w;
    work_init(&w, c);
    w.said = &program->said;
    tkc_kernel *k = mem_alloc(c, sizeof *k);
    if (!k) {
        return work_end(&w, TKC_ERROR_MEMORY, report);
    }
    k->program = program;
    tk_arena_init(&k->arena, &c->from, &w.guard);
    pthread_mutex_init(&k->compile_lock, NULL);
    pthread_mutex_init(&k->list_lock, NULL);
    kernel_make m = {k, name, defines, ndefines};
    tkc_status s = work_run(&w, make_kernel, &m);
    k->arena.guard = NULL;
    s = work_end(&w, s, report);
    if (s != TKC_OK) {
        tkc_kernel_destroy(k);
        return s;
    }
    *kernel = k;
    return s;
}

tkc_status tkc_kernel_set_warps(tkc_kernel *kernel, unsigned warps) {
    if (!kernel || warps > 32 || (warps & (warps - 1)) || tkc_kernel_variant_count(kernel)) {
        return TKC_ERROR_ARGUMENT;
    }
    kernel->info->warps = warps;
    return TKC_OK;
}

void tkc_kernel_destroy(tkc_kernel *kernel) {
    if (!kernel) {
        return;
    }
    const tkc_config *c = &kernel->program->context->config;
    variants_destroy(kernel);
    pthread_mutex_destroy(&kernel->compile_lock);
    pthread_mutex_destroy(&kernel->list_lock);
    tk_arena_release(&kernel->arena);
    mem_free(c, kernel);
}

const char *tkc_kernel_name(const tkc_kernel *kernel) { return kernel ? kernel->info->name : NULL; }

size_t tkc_kernel_param_count(const tkc_kernel *kernel) {
    return kernel ? kernel->info->nparam : 0;
}

const tkc_param_info *tkc_kernel_param(const tkc_kernel *kernel, size_t i) {
    return kernel && i < kernel->info->nparam ? &kernel->param[i] : NULL;
}

size_t tkc_kernel_cparam_count(const tkc_kernel *kernel) {
    return kernel ? kernel->info->ncparam : 0;
}

const tkc_cparam_info *tkc_kernel_cparam(const tkc_kernel *kernel, size_t i) {
    return kernel && i < kernel->info->ncparam ? &kernel->cparam[i] : NULL;
}

size_t tkc_kernel_dim_count(const tkc_kernel *kernel) { return kernel ? kernel->info->ndim : 0; }

const char *tkc_kernel_dim(const tkc_kernel *kernel, size_t i) {
    return kernel && i < kernel->info->ndim ? kernel->info->dim[i] : NULL;
}

size_t tkc_kernel_grid_count(const tkc_kernel *kernel) { return kernel ? kernel->info->ngrid : 0; }

const char *tkc_kernel_grid_name(const tkc_kernel *kernel, size_t i) {
    return kernel && i < kernel->info->ngrid ? kernel->info->grid[i] : NULL;
}

const char *tkc_kernel_grid_size(const tkc_kernel *kernel, size_t i) {
    return kernel && i < kernel->info->ngrid ? kernel->info->grid_count[i] : NULL;
}
