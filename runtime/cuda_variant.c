// SPDX-License-Identifier: Apache-2.0
// Variants of a kernel on GPUs: compiled for compile-time parameters, promises about the tensors
// and a target, then loaded into each device that launches them.
//
// Promises are exact for the arguments at hand, up to a number of variants of one set of
// compile-time parameters; after that the variant that promises nothing serves the rest.
#include "runtime/cuda_driver.h"

#include <stdio.h>
#include <string.h>

// Frames of grid regions hold a few scalars.
#define MAX_GRID_FRAME ((size_t)1 << 20)
enum { MAX_SPECIALISED = 16 };

// ---- Facts and keys

tk_tensor_facts facts_of_use(const tk_target *t, tk_tensor_facts f) {
    return t->bulk ? f : f & ~(tk_tensor_facts)TK_FACT_MAP;
}

tk_tensor_facts *gpu_facts(tk_work *w, const launch *l, bool maps) {
    const tk_tensor_facts use = ~(maps ? 0 : (tk_tensor_facts)TK_FACT_MAP);
    tk_tensor_facts *f = TK_NEW_ARRAY(&w->arena, tk_tensor_facts, l->narg + 1);
    for (uint32_t i = 0; i < l->narg; i++) {
        f[i] = l->is_tensor[i] ? tensor_facts(&l->tensor[i]) & use : 0;
    }
    return f;
}

bool gpu_facts_hold(const gpu_variant *v, const tk_tensor_facts *now) {
    bool hold = true;
    for (uint32_t i = 0; i < v->nfact; i++) {
        hold = hold && (now[i] & v->fact[i]) == v->fact[i];
    }
    return hold;
}

const char *gpu_base_key(tk_work *w, const tk_target *t, const char *key) {
    return tk_format(&w->arena, "%s|%s|%s", key, t->name, w->config->debug ? "debug" : "");
}

// The variant with exactly these facts; *n: how many there are of this base.
static gpu_variant *find_exact(tkc_kernel *k, const char *base, const tk_tensor_facts *f,
                               unsigned *n) {
    gpu_variant *found = NULL;
    *n = 0;
    pthread_mutex_lock(&k->list_lock);
    for (gpu_variant *v = k->gpu_variants; v; v = v->next) {
        if (strcmp(v->base, base) == 0) {
            ++*n;
            bool same = memcmp(v->fact, f, v->nfact * sizeof *f) == 0;
            found = same ? v : found;
        }
    }
    pthread_mutex_unlock(&k->list_lock);
    return found;
}

// What was asked for; `fact` becomes what the variant is compiled with.
typedef struct wanted {
    cuda_device *device; // NULL: the simulator
    const tk_target *target;
    const launch *l;
    const char *base;
    tk_tensor_facts *fact;
    gpu_variant *v;
    gpu_loaded *loaded;
} wanted;

static gpu_variant *find(wanted *q) {
    unsigned n;
    tkc_kernel *k = q->l->kernel;
    gpu_variant *v = find_exact(k, q->base, q->fact, &n);
    if (!v && n >= MAX_SPECIALISED) {
        memset(q->fact, 0, q->l->narg * sizeof *q->fact);
        v = find_exact(k, q->base, q->fact, &n);
    }
    return v;
}

static gpu_loaded *find_loaded(tkc_context *c, gpu_variant *v, const cuda_device *d) {
    pthread_mutex_lock(&c->gpu_lock);
    gpu_loaded *x = v->loaded;
    while (x && x->device != d) {
        x = x->next_of_variant;
    }
    pthread_mutex_unlock(&c->gpu_lock);
    return x;
}

// ---- Compiling

// A module whose kernel has only its grid region: what is run on the host.
static tk_module *grid_module(tk_work *w, tk_arena *arena, const launch *l) {
    tk_module *m = compile_module(w, arena, l->unit, l->bound, NULL);
    for (uint32_t i = 0; m && i < m->funcs.n; i++) {
        tk_func *f = m->funcs.at[i];
        while (f->is_kernel && f->body->first != f->body->last) {
            tk_op_unlink(f->body->first);
        }
    }
    return m;
}

// What the simulator does not know is our own fault, but one that must not end the process.
static bool read_for_simulator(tk_work *w, gpu_variant *v) {
    tk_sim_note error;
    v->simulated = tk_sim_read(&v->arena, v->image->ptx, v->image->ptx_size, &error);
    if (!v->simulated) {
        work_fail(w, TKC_ERROR_DEVICE, "simulator",
                  "the simulator cannot read line %u of the PTX: %s", error.at.ptx_line,
                  tk_strdup(&w->arena, error.text));
    }
    return v->simulated != NULL;
}

static bool fill(tk_work *w, void *arg) {
    wanted *q = arg;
    gpu_variant *v = q->v;
    tkc_kernel *k = q->l->kernel;
    v->base = tk_strdup(&v->arena, q->base);
    v->nfact = q->l->narg;
    v->fact = TK_NEW_ARRAY(&v->arena, tk_tensor_facts, v->nfact + 1);
    memcpy(v->fact, q->fact, v->nfact * sizeof *v->fact);
    tk_module *m = compile_module(w, &w->arena, q->l->unit, q->l->bound, NULL);
    v->module = m ? grid_module(w, &v->arena, q->l) : NULL;
    if (!v->module) {
        return false;
    }
    v->module->sources = &k->sources;
    v->grid = tk_plan_make(&v->arena, v->module, &w->diags, MAX_GRID_FRAME);
    if (!v->grid) {
        return false;
    }
    tk_ptx_opts o;
    memset(&o, 0, sizeof o);
    o.arch = q->target->name;
    o.no_cubin = !q->device;
    o.judge = q->device ? TK_JUDGE_LOADER : TK_JUDGE_NOBODY;
    o.facts = v->fact;
    o.debug = w->config->debug;
    v->image = gpu_compile(w, &v->arena, m, v->nfact, &o, &v->notes);
    if (!v->image || w->diags.errors) {
        return false;
    }
    return q->device || read_for_simulator(w, v);
}

static gpu_variant *make(tk_work *w, wanted *q) {
    tkc_kernel *k = q->l->kernel;
    gpu_variant *v = mem_alloc(w->config, sizeof *v);
    if (!v) {
        tk_fail_memory(&w->guard);
    }
    tk_arena_init(&v->arena, &w->config->from, &w->guard);
    q->v = v;
    bool failed;
    if (!work_try(w, fill, q, &failed)) {
        tk_arena_release(&v->arena);
        mem_free(w->config, v);
        q->v = NULL;
        if (failed) {
            work_fail_again(w);
        }
        return NULL;
    }
    v->arena.guard = NULL;
    pthread_mutex_lock(&k->list_lock);
    v->next = k->gpu_variants;
    k->gpu_variants = v;
    pthread_mutex_unlock(&k->list_lock);
    return v;
}

// ---- Loading

static cu_result load_function(const cuda_device *d, const tk_image *i, gpu_loaded *x,
                               unsigned *need, size_t debug_bytes) {
    int registers = 0, local = 0;
    cu_result r = cuda_load_function(d->driver, x->module, i->kernel, i->shared, i->cluster,
                                     d->shared_default, d->shared_most, &x->function, need);
    r = r || !debug_bytes ? r : d->driver->memory_alloc(&x->debug, debug_bytes);
    // What stands between records is copied to the host with them.
    r = r || !debug_bytes ? r : d->driver->memory_set(x->debug, 0, debug_bytes);
    r = r ? r : d->driver->function_attribute(&registers, CU_FUNCTION_REGISTERS, x->function);
    r = r ? r : d->driver->function_attribute(&local, CU_FUNCTION_LOCAL, x->function);
    r = r || !i->persistent ? r
                            : cuda_resident(d->driver, x->function, i->threads, i->shared,
                                            i->cluster, &x->resident);
    x->registers = (unsigned)registers;
    x->local_bytes = (unsigned)local;
    return r;
}

// With the device's context current.
static void drop(gpu_loaded *x) {
    const cuda_driver *f = x->device->driver;
    f->module_unload(x->module);
    if (x->debug) {
        f->memory_free(x->debug);
    }
}

static void report_load(tk_work *w, const wanted *q, cu_result r, cuda_load_log *log, bool module) {
    const tk_kernel_info *info = q->l->kernel->info;
    tk_span none = {0, 0, 0};
    tk_diag *d = cuda_fail(w, q->device->driver, r, info->item->span,
                           "kernel '%s' (%s) cannot be %s on %s", info->name, q->v->image->arch,
                           module ? "loaded" : "made ready", q->device->label);
    char *text[] = {log->error, log->info};
    for (size_t t = 0; t < 2; t++) {
        for (char *save = NULL, *line = strtok_r(text[t], "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            tk_note(&w->diags, d, none, "%s", line);
        }
    }
}

static void name_loaded(gpu_loaded *x, const tkc_kernel *k) {
    x->span = k->info->item->span;
    snprintf(x->name, sizeof x->name, "%s", k->info->name);
    const tk_source *s = tk_source_of(&k->sources, x->span.file);
    if (s) {
        uint32_t line, column;
        tk_line_col(s, x->span.begin, &line, &column);
        snprintf(x->place, sizeof x->place, "%.120s:%u", s->name, line);
    }
}

// What @require asks of the machine code, by the driver's numbers where no assembler was at hand.
// NULL: all of it holds; else the demand, and in *at where it stands.
static const char *lost_demand(tk_work *w, const tk_load_demand *d, const gpu_loaded *x,
                               unsigned shared, tk_span *at) {
    if (d->no_spills && x->local_bytes > 0) {
        *at = d->no_spills_at;
        return tk_format(&w->arena, "no_spills)' does not hold: a thread has %u bytes in memory",
                         x->local_bytes);
    }
    if (d->max_registers && x->registers > d->max_registers) {
        *at = d->max_registers_at;
        return tk_format(&w->arena, "max_registers(%u))' does not hold: a thread takes %u",
                         d->max_registers, x->registers);
    }
    if (d->max_shared && shared > d->max_shared) {
        *at = d->max_shared_at;
        return tk_format(&w->arena, "max_shared(%u))' does not hold: a block takes %u bytes",
                         d->max_shared, shared);
    }
    return NULL;
}

static void unload(cuda_device *d, gpu_loaded *x) {
    cuda_scope scope;
    if (cuda_enter(d, &scope) == 0) {
        drop(x);
        cuda_leave(d, &scope);
    }
}

// False after an error, with the module gone.
static bool demands_hold(tk_work *w, const wanted *q, gpu_loaded *x, unsigned shared) {
    const tk_load_demand *d = &q->v->image->demand;
    tk_span at = {0, 0, 0};
    const char *lost = lost_demand(w, d, x, shared, &at);
    if (lost) {
        unload(q->device, x);
        tk_error(&w->diags, at, "require-failed", "'@require(%s, on %s", lost, q->device->label);
    }
    return !lost;
}

static gpu_loaded *load(tk_work *w, wanted *q) {
    cuda_device *d = q->device;
    const tk_image *i = q->v->image;
    cuda_load_log *log = TK_NEW(&w->arena, cuda_load_log);
    gpu_loaded *x = mem_alloc(w->config, sizeof *x);
    if (!x) {
        tk_fail_memory(&w->guard);
    }
    name_loaded(x, q->l->kernel);
    x->device = d;
    x->variant = q->v;
    cuda_scope scope;
    unsigned need = 0;
    bool loaded = false;
    cu_result r = cuda_enter(d, &scope);
    if (r == 0) {
        r = cuda_load_module(d->driver, i->cubin, i->ptx, log, &x->module);
        loaded = r == 0;
        r = r ? r : load_function(d, i, x, &need, gpu_debug_bytes(w->config, i));
        if (loaded && (r != 0 || need > d->shared_most)) {
            drop(x);
        }
        cuda_leave(d, &scope);
    }
    const bool fits = r == 0 && need <= d->shared_most;
    if (fits && demands_hold(w, q, x, need)) {
        pthread_mutex_init(&x->debug_lock, NULL);
        return x;
    }
    mem_free(w->config, x);
    if (fits) {
        return NULL;
    }
    if (r != 0) {
        report_load(w, q, r, log, !loaded);
    } else {
        work_fail(w, TKC_ERROR_DEVICE, "shared-memory",
                  "kernel '%s' needs %u bytes of shared memory a block; %s has %u",
                  q->l->kernel->info->name, need, d->label, d->shared_most);
    }
    return NULL;
}

static void link_loaded(tkc_context *c, gpu_loaded *x) {
    pthread_mutex_lock(&c->gpu_lock);
    x->next_of_variant = x->variant->loaded;
    x->variant->loaded = x;
    x->next_of_device = x->device->loaded;
    x->device->loaded = x;
    pthread_mutex_unlock(&c->gpu_lock);
}

// With the kernel's compile lock.
static bool make_ready(tk_work *w, void *arg) {
    wanted *q = arg;
    tkc_context *c = q->l->kernel->program->context;
    q->v = find(q);
    if (!q->v) {
        q->v = make(w, q);
    }
    if (!q->device) {
        return q->v != NULL;
    }
    q->loaded = q->v ? find_loaded(c, q->v, q->device) : NULL;
    if (q->v && !q->loaded) {
        q->loaded = load(w, q);
        if (q->loaded) {
            link_loaded(c, q->loaded);
        }
    }
    return q->loaded != NULL;
}

static void make_ready_alone(tk_work *w, wanted *q) {
    tkc_kernel *k = q->l->kernel;
    bool failed;
    pthread_mutex_lock(&k->compile_lock);
    work_try(w, make_ready, q, &failed);
    pthread_mutex_unlock(&k->compile_lock);
    if (failed) {
        work_fail_again(w);
    }
}

gpu_loaded *gpu_ready(tk_work *w, cuda_device *d, const launch *l) {
    wanted q = {.device = d, .target = d->target, .l = l};
    q.base = gpu_base_key(w, d->target, l->bound->key);
    q.fact = gpu_facts(w, l, d->target->bulk && d->driver->map_encode);
    q.v = find(&q);
    q.loaded = q.v ? find_loaded(l->kernel->program->context, q.v, d) : NULL;
    if (!q.loaded) {
        make_ready_alone(w, &q);
    }
    return q.loaded;
}

const gpu_variant *gpu_simulated(tk_work *w, const tk_target *t, const launch *l) {
    wanted q = {.target = t, .l = l};
    q.base = tk_format(&w->arena, "%s|sim", gpu_base_key(w, t, l->bound->key));
    q.fact = gpu_facts(w, l, t->bulk);
    q.v = find(&q);
    if (!q.v) {
        make_ready_alone(w, &q);
    }
    return q.v;
}

// ---- Ends

// With the gpu lock.
void gpu_unload(const tkc_config *c, gpu_loaded *x) {
    cuda_device *d = x->device;
    cuda_scope scope;
    if (!cuda_forked(d->driver) && cuda_enter(d, &scope) == 0) {
        drop(x);
        cuda_leave(d, &scope);
    }
    pthread_mutex_destroy(&x->debug_lock);
    gpu_loaded **at = &x->variant->loaded;
    while (*at != x) {
        at = &(*at)->next_of_variant;
    }
    *at = x->next_of_variant;
    at = &d->loaded;
    while (*at != x) {
        at = &(*at)->next_of_device;
    }
    *at = x->next_of_device;
    gpu_loaded *last = x;
    atomic_compare_exchange_strong(&d->last, &last, NULL);
    mem_free(c, x);
}

void gpu_variants_destroy(tkc_kernel *k) {
    tkc_context *c = k->program->context;
    for (gpu_variant *v = k->gpu_variants, *next; v; v = next) {
        next = v->next;
        pthread_mutex_lock(&c->gpu_lock);
        while (v->loaded) {
            gpu_unload(&c->config, v->loaded);
        }
        pthread_mutex_unlock(&c->gpu_lock);
        tk_arena_release(&v->arena);
        mem_free(&c->config, v);
    }
    k->gpu_variants = NULL;
}

// ---- Reflection

const char *gpu_notes(const gpu_variant *v) { return v->notes; }

void describe_facts(tk_buf *b, tk_tensor_facts f) {
    static const char *const text[] = {
#define TK_FACT(ID, TEXT) TEXT,
        TK_FACTS(TK_FACT)
#undef TK_FACT
    };
    bool any = false;
    for (unsigned i = 0; i < TK_FACT_COUNT; i++) {
        if (f >> i & 1) {
            tk_buf_fmt(b, "%s%s", any ? ", " : "", text[i]);
            any = true;
        }
    }
    if (!any) {
        tk_buf_str(b, "any");
    }
}

void gpu_describe(tk_buf *b, const gpu_variant *v) {
    const tk_func *f = NULL;
    for (uint32_t i = 0; i < v->module->funcs.n; i++) {
        f = v->module->funcs.at[i]->is_kernel ? v->module->funcs.at[i] : f;
    }
    tk_buf_fmt(b, "%s %s: %.*s", v->simulated ? "sim" : "cuda", v->image->arch,
               (int)strcspn(v->base, "|"), v->base);
    for (uint32_t i = 0; f && i < v->nfact; i++) {
        const tk_irvalue *p = &f->value.at[f->params.at[i]];
        if (p->type->kind == TK_T_TENSOR) {
            tk_buf_fmt(b, "; %s: ", p->name ? p->name : "?");
            describe_facts(b, v->fact[i]);
        }
    }
}

const gpu_variant *gpu_variant_at(const tkc_kernel *k, size_t i) {
    const gpu_variant *v = k->gpu_variants;
    while (v && i-- > 0) {
        v = v->next;
    }
    return v;
}

size_t gpu_variant_count(const tkc_kernel *k) {
    size_t n = 0;
    for (const gpu_variant *v = k->gpu_variants; v; v = v->next) {
        n++;
    }
    return n;
}
