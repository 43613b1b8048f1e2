// SPDX-License-Identifier: Apache-2.0
// Prepared launches: the arguments are kept, and on a GPU their packed parameters. A change of one
// argument goes through all checks again, so it costs as much as a launch's; a launch costs only
// the driver's.
#include "runtime/internal.h"

#include <string.h>

struct tkc_prepared {
    tkc_kernel *kernel;
    tkc_device *device;
    size_t nargs; // all parameters of the kernel
    tkc_arg *args;
    char *key;         // the compile-time parameters
    gpu_packed packed; // where the device packs
    size_t room;       // of the block
};

typedef struct change {
    tkc_prepared *p;
    const tkc_arg *args; // p's, or p's with one replaced
    bool first;
} change;

// The block is the prepared launch's own; what is packed in the work's arena is copied at the end,
// so that a refused change leaves the old one whole.
static bool take_packed(tk_work *w, tkc_prepared *p, gpu_packed *new) {
    if (new->bytes > p->room) {
        unsigned char *block = mem_alloc(w->config, new->bytes);
        if (!block) {
            tk_fail_memory(&w->guard);
        }
        mem_free(w->config, p->packed.block);
        p->packed.block = block;
        p->room = new->bytes;
    }
    unsigned char *block = p->packed.block;
    if (new->bytes) {
        memcpy(block, new->block, new->bytes);
    }
    p->packed = *new;
    p->packed.block = block;
    return true;
}

static bool same_variant(tk_work *w, const tkc_prepared *p, const launch *l) {
    const device_table *t = p->device->table;
    if (strcmp(p->key, l->bound->key) != 0) {
        work_fail(w, TKC_ERROR_LAUNCH, "prepared-parameters",
                  "the argument needs other compile-time parameters (%s) than the launch was "
                  "prepared with (%s)",
                  l->bound->key, p->key);
        return false;
    }
    return !t->pack || t->fits(l, &p->packed);
}

static void keep_key(tk_work *w, tkc_prepared *p, const char *key) {
    size_t bytes = strlen(key) + 1;
    p->key = mem_alloc(w->config, bytes);
    if (!p->key) {
        tk_fail_memory(&w->guard);
    }
    memcpy(p->key, key, bytes);
}

static void apply(tk_work *w, void *arg) {
    change *c = arg;
    tkc_prepared *p = c->p;
    const device_table *t = p->device->table;
    launch l;
    if (!launch_collect(w, p->kernel, c->args, p->nargs, NULL, &l)) {
        return;
    }
    if (c->first) {
        if (!t->ready(p->device, &l)) {
            return;
        }
        keep_key(w, p, l.bound->key);
    } else if (!same_variant(w, p, &l)) {
        return;
    } else {
        l.loaded = p->packed.loaded;
    }
    gpu_packed packed;
    if (t->pack && t->pack(p->device, &l, &w->arena, &packed)) {
        take_packed(w, p, &packed);
    }
}

static tkc_status run_change(change *c, tkc_report **report) {
    tk_work w;
    work_init(&w, &c->p->kernel->program->context->config);
    w.said = &c->p->kernel->program->said;
    return work_end(&w, work_run(&w, apply, c), report);
}

tkc_status tkc_prepared_create(tkc_kernel *kernel, tkc_device *device, const tkc_arg *args,
                               size_t nargs, tkc_prepared **prepared, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!kernel || !device || !prepared || (!args && nargs) ||
        kernel->program->context != device->context || nargs > kernel->info->nparam) {
        return TKC_ERROR_ARGUMENT;
    }
    *prepared = NULL;
    const tkc_config *c = &device->context->config;
    tkc_prepared *p = mem_alloc(c, sizeof *p);
    tkc_arg *copy = mem_alloc(c, (kernel->info->nparam + 1) * sizeof *copy);
    if (!p || !copy) {
        mem_free(c, p);
        mem_free(c, copy);
        return TKC_ERROR_MEMORY;
    }
    if (nargs) {
        memcpy(copy, args, nargs * sizeof *copy);
    }
    p->kernel = kernel;
    p->device = device;
    p->nargs = kernel->info->nparam;
    p->args = copy;
    change first = {p, copy, true};
    tkc_status s = run_change(&first, report);
    if (s != TKC_OK) {
        tkc_prepared_destroy(p);
        return s;
    }
    *prepared = p;
    return TKC_OK;
}

tkc_status tkc_prepared_set(tkc_prepared *prepared, size_t i, const tkc_arg *arg,
                            tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!prepared || !arg || i >= prepared->nargs) {
        return TKC_ERROR_ARGUMENT;
    }
    tkc_arg old = prepared->args[i];
    prepared->args[i] = *arg;
    change c = {prepared, prepared->args, false};
    tkc_status s = run_change(&c, report);
    if (s != TKC_OK) {
        prepared->args[i] = old;
    }
    return s;
}

typedef struct failure {
    tkc_prepared *p;
    int error;
    void *stream;
} failure;

static void run_debug(tk_work *w, void *arg) {
    const failure *f = arg;
    const tkc_prepared *p = f->p;
    p->device->table->run_debug(w, p->device, p->kernel, &p->packed, f->stream);
}

static void report_run(tk_work *w, void *arg) {
    failure *f = arg;
    f->p->device->table->run_failed(w, f->p->device, &f->p->packed, f->error);
}

tkc_status tkc_prepared_launch(tkc_prepared *prepared, void *stream, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!prepared) {
        return TKC_ERROR_ARGUMENT;
    }
    tkc_device *d = prepared->device;
    if (!d->table->run) {
        tkc_launch_options o = {.size = sizeof o, .stream = stream};
        return tkc_launch(prepared->kernel, d, prepared->args, prepared->nargs, &o, report);
    }
    bool debug = prepared->packed.debug;
    failure f = {prepared, 0, stream};
    if (!debug) {
        f.error = d->table->run(d, &prepared->packed, stream);
        if (f.error == 0) {
            return TKC_OK;
        }
    }
    tk_work w;
    work_init(&w, &d->context->config);
    w.sources = &prepared->kernel->sources;
    return work_end(&w, work_run(&w, debug ? run_debug : report_run, &f), report);
}

void tkc_prepared_destroy(tkc_prepared *prepared) {
    if (prepared) {
        const tkc_config *c = &prepared->kernel->program->context->config;
        mem_free(c, prepared->packed.block);
        mem_free(c, prepared->key);
        mem_free(c, prepared->args);
        mem_free(c, prepared);
    }
}
