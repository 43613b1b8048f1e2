// SPDX-License-Identifier: Apache-2.0
// Device "cpu": the executor, with the programs of a grid spread over threads; check mode.
//
// Threads live for one launch. Each takes the next block of programs from a shared counter, in the
// order of program numbers (axis 0 fastest). The first fault stops the others; of several the one
// with the lowest program number is reported.
#include "runtime/matmul.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

typedef struct cpu_run {
    const tk_plan *plan;
    tk_exec_env env;
    int64_t total;
    int64_t block; // programs taken at a time
    atomic_int_least64_t next;
    atomic_int stop;
    tkc_context *context;
    pthread_mutex_t lock; // of the fault
    bool faulted;
    int64_t fault_program;
    tk_exec_fault fault;
} cpu_run;

typedef struct cpu_worker {
    cpu_run *run;
    tk_frame *frame;
} cpu_worker;

static void record_fault(cpu_run *r, int64_t number, const tk_exec_fault *f) {
    pthread_mutex_lock(&r->lock);
    if (!r->faulted || number < r->fault_program) {
        r->faulted = true;
        r->fault_program = number;
        r->fault = *f;
    }
    pthread_mutex_unlock(&r->lock);
    atomic_store(&r->stop, 1);
}

static void run_block(cpu_run *r, tk_frame *frame, int64_t from, int64_t to) {
    for (int64_t n = from; n < to && !atomic_load_explicit(&r->stop, memory_order_relaxed); n++) {
        int64_t program[TK_MAX_GRID] = {0};
        program_place((uint64_t)n, r->env.ngrid, r->env.grid, program);
        tk_exec_fault f;
        memset(&f, 0, sizeof f);
        tk_exec_code code = tk_exec_program(r->plan, frame, &r->env, program, &f);
        if (code == TK_EXEC_STOPPED) {
            atomic_store(&r->stop, 1);
            return;
        }
        if (code != TK_EXEC_OK) {
            record_fault(r, n, &f);
            return;
        }
    }
}

static void *worker_main(void *arg) {
    cpu_worker *w = arg;
    cpu_run *r = w->run;
    while (!atomic_load(&r->stop)) {
        int64_t from = atomic_fetch_add(&r->next, r->block);
        if (from >= r->total) {
            break;
        }
        run_block(r, w->frame, from, from + r->block < r->total ? from + r->block : r->total);
    }
    return NULL;
}

unsigned cpu_threads(const tkc_config *c, int64_t items) {
    unsigned want = c->threads;
    if (want == 0) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        want = n > 0 ? (unsigned)n : 1;
    }
    want = want > MAX_THREADS ? MAX_THREADS : want;
    return (int64_t)want > items ? (unsigned)items : want;
}

void cpu_spread(tk_work *w, unsigned n, void *(*body)(void *worker), void *const *worker) {
    pthread_t *thread = TK_NEW_ARRAY(&w->arena, pthread_t, n);
    bool *started = TK_NEW_ARRAY(&w->arena, bool, n);
    // Where the system gives no more threads, those that there are do the work.
    for (unsigned i = 1; i < n; i++) {
        started[i] = pthread_create(&thread[i], NULL, body, worker[i]) == 0;
    }
    body(worker[0]);
    for (unsigned i = 1; i < n; i++) {
        if (started[i]) {
            pthread_join(thread[i], NULL);
        }
    }
}

static void run_threads(tk_work *w, cpu_run *r, const tkc_config *c) {
    unsigned want = cpu_threads(c, r->total);
    r->block = r->total / ((int64_t)want * 8);
    r->block = r->block < 1 ? 1 : r->block > 64 ? 64 : r->block;
    cpu_worker *worker = TK_NEW_ARRAY(&w->arena, cpu_worker, want);
    void **each = TK_NEW_ARRAY(&w->arena, void *, want);
    for (unsigned i = 0; i < want; i++) {
        worker[i].run = r;
        worker[i].frame = tk_frame_make(r->plan, frame_alloc(w, r->plan));
        each[i] = &worker[i];
    }
    cpu_spread(w, want, worker_main, each);
}

static void report_fault(const launch *l, const cpu_run *r) {
    tk_work *w = l->work;
    const tk_exec_fault *f = &r->fault;
    const tk_module *m = l->variant->module;
    const tk_kernel_info *info = l->kernel->info;
    tk_span span = f->loc < m->locs.n ? m->locs.at[f->loc].span : (tk_span){0, 0, 0};
    const char *who = program_text(&w->arena, info, f->program, r->env.ngrid);
    tk_diag *d = NULL;
    if (f->code == TK_EXEC_RACE) {
        uint32_t p = l->param[f->param];
        const char *at = index_text(&w->arena, f->index, info->param[p].rank);
        if (f->other == TK_SHADOW_ATOMIC) {
            d = tk_error(&w->diags, span, "race",
                         "%s and atomics of another touch element [%s] of '%s'", who, at,
                         info->param[p].name);
        } else {
            int64_t program[TK_MAX_GRID] = {0};
            program_place(f->other, r->env.ngrid, r->env.grid, program);
            d = tk_error(&w->diags, span, "race",
                         "%s and %s touch element [%s] of '%s', and one of them writes it", who,
                         program_text(&w->arena, info, program, r->env.ngrid), at,
                         info->param[p].name);
        }
    } else if (f->code == TK_EXEC_STUCK) {
        d = tk_error(&w->diags, span, "internal", "%s waits for a tile that never comes", who);
    } else {
        failed_claim c = {.is_assume = f->code == TK_EXEC_ASSUME,
                          .span = span,
                          .text = f->text,
                          .program = f->program,
                          .ngrid = r->env.ngrid,
                          .rank = f->rank,
                          .index = f->index};
        d = claim_failed(w, info, &c);
    }
    for (tk_loc at = f->loc < m->locs.n ? m->locs.at[f->loc].from : 0; at && at < m->locs.n;
         at = m->locs.at[at].from) {
        tk_note(&w->diags, d, m->locs.at[at].span, "called from here");
    }
    w->status = TKC_ERROR_CHECK;
}

// ---- Check mode
static void make_shadows(const launch *l, tk_exec_tensor *tensor) {
    for (uint32_t i = 0; i < l->narg; i++) {
        int64_t n;
        bool written = l->is_tensor[i] && l->kernel->info->param[l->param[i]].access != TK_IN;
        if (written && tensor_elems(&l->tensor[i], &n) && n > 0) {
            tensor[i].shadow = tk_alloc_array(&l->work->arena, (size_t)n, sizeof(uint64_t));
        }
    }
}

static void unwritten(const launch *l, uint32_t i, const uint64_t *shadow, int64_t n) {
    tk_work *w = l->work;
    const tk_kparam *p = &l->kernel->info->param[l->param[i]];
    int64_t count = 0, first = -1;
    for (int64_t k = 0; k < n; k++) {
        if (!shadow[k]) {
            first = first < 0 ? k : first;
            count++;
        }
    }
    if (!count) {
        return;
    }
    int64_t index[TKC_MAX_RANK] = {0};
    tk_index_of(first, l->tensor[i].rank, l->tensor[i].dim, index);
    tk_error(&w->diags, p->span, "unwritten",
             "%lld of %lld elements of '%s' were not written, the first is [%s]", (long long)count,
             (long long)n, p->name, index_text(&w->arena, index, l->tensor[i].rank));
    w->status = TKC_ERROR_CHECK;
}

static void check_written(const launch *l, const tk_exec_tensor *tensor) {
    for (uint32_t i = 0; i < l->narg; i++) {
        int64_t n;
        bool out = l->is_tensor[i] && l->kernel->info->param[l->param[i]].access == TK_OUT;
        if (out && tensor_elems(&l->tensor[i], &n) && n > 0) {
            unwritten(l, i, tensor[i].shadow, n);
        }
    }
}

// ---- Launch
static tk_exec_tensor *exec_tensors(const launch *l) {
    tk_exec_tensor *t = TK_NEW_ARRAY(&l->work->arena, tk_exec_tensor, l->narg + 1);
    for (uint32_t i = 0; i < l->narg; i++) {
        if (l->is_tensor[i]) {
            t[i].data = l->tensor[i].data;
            memcpy(t[i].dim, l->tensor[i].dim, sizeof t[i].dim);
            memcpy(t[i].stride, l->tensor[i].stride, sizeof t[i].stride);
        }
    }
    return t;
}

static void cpu_launch(tkc_device *device, const launch *l) {
    tk_work *w = l->work;
    cpu_run *r = TK_NEW(&w->arena, cpu_run);
    tk_exec_tensor *tensor = exec_tensors(l);
    r->plan = l->variant->plan;
    r->context = device->context;
    r->env.narg = l->narg;
    r->env.tensor = tensor;
    r->env.scalar = l->scalar;
    r->env.print = print_line;
    r->env.user = device->context;
    r->env.stop = (const volatile int *)&r->stop;
    r->env.user_stop = l->options->stop;
    if (!grid_counts(w, l->kernel->info, l->variant->module, r->plan, &r->env, &r->total)) {
        return;
    }
    if (l->options->check) {
        make_shadows(l, tensor);
    }
    if (r->total > 0) {
        pthread_mutex_init(&r->lock, NULL);
        run_threads(w, r, &device->context->config);
        pthread_mutex_destroy(&r->lock);
    }
    if (r->faulted) {
        report_fault(l, r);
    } else if (atomic_load(&r->stop)) {
        work_fail(w, TKC_ERROR_CHECK, "stopped", "the launch was stopped before its end");
    } else if (l->options->check) {
        check_written(l, tensor);
    }
}

static bool cpu_ready(tkc_device *device, launch *l) {
    (void)device;
    l->variant = variant_get(l->work, l->kernel, l->unit, l->bound);
    return l->variant && !l->work->diags.errors;
}

static bool cpu_open(tk_work *w, tkc_device *d, unsigned ordinal) {
    (void)w, (void)d, (void)ordinal;
    return true;
}

static void cpu_close(tkc_device *d) { (void)d; }

// ---- Memory
static bool cpu_alloc(tk_work *w, tkc_device *d, size_t bytes, void **p) {
    const tk_allocator *from = &d->context->config.from;
    *p = from->alloc ? from->alloc(from->user, bytes) : malloc(bytes);
    if (!*p) {
        work_fail(w, TKC_ERROR_MEMORY, "out-of-memory", "out of memory: %zu bytes", bytes);
    }
    return *p != NULL;
}

static bool cpu_release(tk_work *w, tkc_device *d, void *p) {
    (void)w;
    mem_free(&d->context->config, p);
    return true;
}

static bool cpu_copy(tk_work *w, tkc_device *d, void *to, const void *from, size_t bytes,
                     tkc_direction direction) {
    (void)w, (void)d, (void)direction;
    memmove(to, from, bytes);
    return true;
}

static bool cpu_synchronize(tk_work *w, tkc_device *d) {
    (void)w, (void)d;
    return true;
}

const device_table device_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .ready = cpu_ready,
    .launch = cpu_launch,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .copy = cpu_copy,
    .synchronize = cpu_synchronize,
    .matmul = matmul_host,
};
