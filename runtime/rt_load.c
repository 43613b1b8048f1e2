// SPDX-License-Identifier: Apache-2.0
// What a kernel compiled ahead has loaded: a list of contexts, each with the code of the variants.
//
// Readers take no lock: the list grows at its head, and a variant's function is stored after all
// that belongs to it. What is loaded stays until rt_unload.
#include "runtime/rt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(rt_state) <= sizeof(tkc_rt_state),
               "the state of an object file is too small");

// ---- Errors

static void fill(tkc_error *e, tkc_status status, const char *id, const char *fmt, va_list args) {
    if (e) {
        memset(e, 0, sizeof *e);
        e->status = status;
        snprintf(e->id, sizeof e->id, "%s", id);
        vsnprintf(e->text, sizeof e->text, fmt, args);
    }
}

tkc_status rt_fail(tkc_error *error, tkc_status status, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fill(error, status, id, fmt, args);
    va_end(args);
    return status;
}

tkc_status rt_fail_driver(tkc_error *error, const cuda_driver *d, cu_result r, const char *fmt,
                          ...) {
    va_list args;
    va_start(args, fmt);
    fill(error, TKC_ERROR_DEVICE, "gpu-driver", fmt, args);
    va_end(args);
    if (error) {
        const char *text, *name = cuda_result_text(d, r, &text), *help = cuda_advice(r);
        size_t n = strlen(error->text);
        error->driver = r;
        snprintf(error->text + n, sizeof error->text - n, ": %s (%s)%s%s", name, text,
                 help ? "; " : "", help ? help : "");
    }
    return TKC_ERROR_DEVICE;
}

const tk_bundle *rt_bundle(const void *kernel, tkc_error *error) {
    const tk_bundle *b = kernel;
    if (!b || memcmp(b->magic, TK_BUNDLE_MAGIC, sizeof b->magic) != 0) {
        rt_fail(error, TKC_ERROR_ARGUMENT, "no-kernel", "this is no kernel compiled ahead");
        return NULL;
    }
    if (b->version != (uint32_t)TK_BUNDLE_VERSION) {
        rt_fail(error, TKC_ERROR_ARGUMENT, "kernel-version",
                "kernel '%s' was compiled by another version of tkc than this run time's",
                (const char *)tk_bundle_at(b, b->name));
        return NULL;
    }
    return b;
}

// ---- The driver

// With the lock.
static tkc_status open_driver(rt_state *s, tkc_error *error) {
    char why[256];
    if (atomic_load_explicit(&s->driver, memory_order_relaxed)) {
        return TKC_OK;
    }
    cuda_driver *d = calloc(1, sizeof *d);
    if (!d) {
        return rt_fail(error, TKC_ERROR_MEMORY, "memory", "out of memory");
    }
    if (!cuda_open_driver(NULL, d, why, sizeof why)) {
        free(d);
        return rt_fail(error, TKC_ERROR_DEVICE, "no-gpu", "%s", why);
    }
    atomic_store_explicit(&s->driver, d, memory_order_release);
    return TKC_OK;
}

static tkc_status driver_of(rt_state *s, const cuda_driver **d, tkc_error *error) {
    tkc_status status = TKC_OK;
    *d = atomic_load_explicit(&s->driver, memory_order_acquire);
    if (!*d) {
        pthread_mutex_lock(&s->lock);
        status = open_driver(s, error);
        *d = atomic_load_explicit(&s->driver, memory_order_relaxed);
        pthread_mutex_unlock(&s->lock);
    }
    return status;
}

// ---- The context

tkc_status rt_enter(rt_state *s, void *stream, rt_scope *scope, tkc_error *error) {
    memset(scope, 0, sizeof *scope);
    const cuda_driver *d;
    tkc_status status = driver_of(s, &d, error);
    if (status != TKC_OK) {
        return status;
    }
    scope->driver = d;
    cu_result r = d->context_current(&scope->context);
    if (r == 0 && !scope->context && stream) {
        r = d->stream_context(stream, &scope->context);
        r = r ? r : d->context_push(scope->context);
        scope->pushed = r == 0;
    }
    if (r != 0) {
        return rt_fail_driver(error, d, r, "there is no context to work in");
    }
    return scope->context
               ? TKC_OK
               : rt_fail(error, TKC_ERROR_DEVICE, "no-context",
                         "no CUDA context is current for this thread: choose a GPU first, by "
                         "cudaSetDevice, cuCtxSetCurrent or tkc_rt_use_device");
}

void rt_leave(rt_scope *scope) {
    cu_context dropped;
    if (scope->pushed) {
        scope->driver->context_pop(&dropped);
    }
}

static cu_result context_id(const rt_scope *c, unsigned long long *id) {
    *id = 0;
    return c->driver->context_id ? c->driver->context_id(c->context, id) : 0;
}

static rt_loaded *find(rt_state *s, cu_context context, unsigned long long id) {
    rt_loaded *x = atomic_load_explicit(&s->loaded, memory_order_acquire);
    while (x && (x->context != context || x->id != id)) {
        x = x->next;
    }
    return x;
}

// With the lock and the context current.
static tkc_status add_context(const tk_bundle *b, rt_state *s, const rt_scope *c,
                              unsigned long long id, rt_loaded **out, tkc_error *error) {
    const cuda_driver *d = c->driver;
    int device = 0, major = 0, minor = 0, usual = 0, most = 0;
    rt_loaded *x = calloc(1, sizeof *x + b->nvariant * sizeof *x->code);
    if (!x) {
        return rt_fail(error, TKC_ERROR_MEMORY, "memory", "out of memory");
    }
    cu_result r = d->context_device(&device);
    r = r ? r : d->device_name(x->label, (int)sizeof x->label - 1, device);
    r = r ? r : d->device_attribute(&major, CU_DEVICE_MAJOR, device);
    r = r ? r : d->device_attribute(&minor, CU_DEVICE_MINOR, device);
    r = r ? r : d->device_attribute(&usual, CU_DEVICE_SHARED_DEFAULT, device);
    r = r ? r : d->device_attribute(&most, CU_DEVICE_SHARED_OPTIN, device);
    if (r != 0) {
        free(x);
        return rt_fail_driver(error, d, r, "the GPU cannot be asked what it is");
    }
    x->context = c->context;
    x->id = id;
    x->cc = (unsigned)(major * 10 + minor);
    x->shared_default = (unsigned)usual;
    x->shared_most = (unsigned)(most > usual ? most : usual);
    x->next = atomic_load_explicit(&s->loaded, memory_order_relaxed);
    atomic_store_explicit(&s->loaded, x, memory_order_release);
    *out = x;
    return TKC_OK;
}

// ---- Code

// Machine code runs on later minor versions of its compute capability's major one, PTX on all
// later ones; what is for one compute capability alone runs on that alone.
static bool runs_on(const tk_bundle_image *i, unsigned cc, bool ptx) {
    if (i->exact) {
        return i->cc == cc && (ptx ? i->ptx : i->cubin);
    }
    return ptx ? i->ptx && i->cc <= cc : i->cubin && i->cc <= cc && i->cc / 10 == cc / 10;
}

static void say_log(tkc_error *error, const cuda_load_log *log) {
    const char *text = log->error[0] ? log->error : log->info;
    if (error && text[0]) {
        size_t n = strlen(error->text);
        snprintf(error->text + n, sizeof error->text - n, "\n%s", text);
    }
}

static tkc_status load(const tk_bundle *b, const rt_scope *c, rt_loaded *x, rt_code *code,
                       const tk_bundle_image *i, bool use_cubin, tkc_error *error) {
    const cuda_driver *d = c->driver;
    const char *name = tk_bundle_at(b, b->name);
    cuda_load_log *log = malloc(sizeof *log);
    if (!log) {
        return rt_fail(error, TKC_ERROR_MEMORY, "memory", "out of memory");
    }
    unsigned need = 0;
    cu_function function = NULL;
    cu_module module = NULL;
    memset(log, 0, sizeof *log);
    cu_result r = cuda_load_module(
        d, use_cubin ? tk_bundle_at(b, i->cubin) : NULL,
        i->ptx && runs_on(i, x->cc, true) ? tk_bundle_at(b, i->ptx) : NULL, log, &module);
    bool loaded = r == 0;
    r = r ? r
          : cuda_load_function(d, module, tk_bundle_at(b, i->kernel), i->shared, i->cluster,
                               x->shared_default, x->shared_most, &function, &need);
    r = r || !i->persistent
            ? r
            : cuda_resident(d, function, i->threads, i->shared, i->cluster, &code->resident);
    tkc_status status = TKC_OK;
    if (r != 0) {
        status = rt_fail_driver(error, d, r, "kernel '%s' (%s) cannot be loaded on %s", name,
                                (const char *)tk_bundle_at(b, i->arch), x->label);
        say_log(error, log);
    } else if (need > x->shared_most) {
        status = rt_fail(error, TKC_ERROR_DEVICE, "shared-memory",
                         "kernel '%s' needs %u bytes of shared memory a block; %s has %u", name,
                         need, x->label, x->shared_most);
    }
    if (status != TKC_OK && loaded) {
        d->module_unload(module);
    }
    if (status == TKC_OK) {
        code->module = module;
        code->image = i;
        atomic_store_explicit(&code->function, function, memory_order_release);
    }
    free(log);
    return status;
}

// The best image: of the greatest target that the GPU runs, machine code before PTX. They are in
// the order from the best down.
static tkc_status load_best(const tk_bundle *b, const rt_scope *c, rt_loaded *x, uint32_t variant,
                            tkc_error *error) {
    const tk_bundle_image *i = tk_bundle_at(b, b->image);
    for (int ptx = 0; ptx < 2; ptx++) {
        for (uint32_t k = 0; k < b->nimage; k++) {
            if (i[k].variant == variant && runs_on(&i[k], x->cc, ptx)) {
                return load(b, c, x, &x->code[variant], &i[k], !ptx, error);
            }
        }
    }
    char list[160] = "";
    for (uint32_t k = 0; k < b->nimage; k++) {
        size_t n = strlen(list);
        if (i[k].variant == variant) {
            snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                     (const char *)tk_bundle_at(b, i[k].arch));
        }
    }
    return rt_fail(error, TKC_ERROR_DEVICE, "no-code",
                   "kernel '%s' has no code for %s (compute capability %u.%u): it was compiled for "
                   "%s",
                   (const char *)tk_bundle_at(b, b->name), x->label, x->cc / 10, x->cc % 10, list);
}

tkc_status rt_code_get(const tk_bundle *b, rt_state *s, const rt_scope *scope, uint32_t variant,
                       const rt_code **code, tkc_error *error) {
    unsigned long long id;
    cu_result r = context_id(scope, &id);
    if (r != 0) {
        return rt_fail_driver(error, scope->driver, r, "the context cannot be used");
    }
    rt_loaded *x = find(s, scope->context, id);
    if (!x || !atomic_load_explicit(&x->code[variant].function, memory_order_acquire)) {
        tkc_status status = TKC_OK;
        pthread_mutex_lock(&s->lock);
        x = find(s, scope->context, id);
        if (!x) {
            status = add_context(b, s, scope, id, &x, error);
        }
        if (status == TKC_OK && !atomic_load(&x->code[variant].function)) {
            status = load_best(b, scope, x, variant, error);
        }
        pthread_mutex_unlock(&s->lock);
        if (status != TKC_OK) {
            return status;
        }
    }
    *code = &x->code[variant];
    return TKC_OK;
}

// ---- Ends

// A context that is gone has taken its modules with it.
static bool is_there(const cuda_driver *d, const rt_loaded *x) {
    unsigned long long id = 0;
    return !d->context_id || (d->context_id(x->context, &id) == 0 && id == x->id);
}

void tkc_rt_unload(const void *kernel, tkc_rt_state *state) {
    const tk_bundle *b = rt_bundle(kernel, NULL);
    rt_state *s = (rt_state *)(void *)state;
    if (!b || !s) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    cuda_driver *d = atomic_exchange(&s->driver, NULL);
    rt_loaded *x = atomic_exchange(&s->loaded, NULL);
    while (x) {
        rt_loaded *next = x->next;
        cu_context dropped;
        if (!cuda_forked(d) && is_there(d, x) && d->context_push(x->context) == 0) {
            for (uint32_t v = 0; v < b->nvariant; v++) {
                if (atomic_load(&x->code[v].function)) {
                    d->module_unload(x->code[v].module);
                }
            }
            d->context_pop(&dropped);
        }
        free(x);
        x = next;
    }
    free(d);
    pthread_mutex_unlock(&s->lock);
}
