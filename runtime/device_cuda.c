// SPDX-License-Identifier: Apache-2.0
// Device "cuda": NVIDIA GPUs through the driver.
#include "runtime/cuda_driver.h"
#include "runtime/matmul.h"

#include <string.h>

gpu_compile_fn gpu_backend(const tkc_config *c) {
    if (c->gpu_compile) {
        return c->gpu_compile;
    }
#ifdef TKC_HAVE_LLVM
    return tk_ptx_compile;
#else
    return NULL;
#endif
}

void gpu_context_destroy(tkc_context *context) {
    cuda_matmul_library_close(context);
    cuda_driver_destroy(context);
}

// ---- Opening and closing

static cu_result read_device(cuda_device *d, int ordinal) {
    int major = 0, minor = 0, usual = 0, most = 0;
    const cuda_driver *f = d->driver;
    cu_result r = f->device_get(&d->handle, ordinal);
    r = r ? r : f->device_name(d->label, (int)sizeof d->label - 1, d->handle);
    r = r ? r : f->device_attribute(&major, CU_DEVICE_MAJOR, d->handle);
    r = r ? r : f->device_attribute(&minor, CU_DEVICE_MINOR, d->handle);
    r = r ? r : f->device_attribute(&usual, CU_DEVICE_SHARED_DEFAULT, d->handle);
    r = r ? r : f->device_attribute(&most, CU_DEVICE_SHARED_OPTIN, d->handle);
    d->major = (unsigned)major;
    d->minor = (unsigned)minor;
    d->shared_default = (unsigned)usual;
    d->shared_most = (unsigned)(most > usual ? most : usual);
    return r;
}

static const cuda_driver *driver_for(tk_work *w, tkc_device *device, unsigned ordinal) {
    char why[256];
    if (!gpu_backend(w->config)) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu-backend",
                  "no device '%s': this build has no GPU code generator", device->name);
        return NULL;
    }
    const cuda_driver *driver = cuda_driver_get(device->context, why, sizeof why);
    if (!driver && !why[0]) {
        tk_fail_memory(&w->guard);
    }
    if (!driver) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu", "no device '%s': %s", device->name, why);
        return NULL;
    }
    if (cuda_forked(driver)) {
        cuda_fail_forked(w);
        return NULL;
    }
    if (ordinal >= (unsigned)driver->devices) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu", "no device '%s': this machine has %d GPU%s",
                  device->name, driver->devices, driver->devices == 1 ? "" : "s");
        return NULL;
    }
    return driver;
}

typedef struct opening {
    cuda_device *d;
    const tkc_device *device;
    unsigned ordinal;
} opening;

static bool open_state(tk_work *w, void *arg) {
    const opening *o = arg;
    cuda_device *d = o->d;
    tk_span none = {0, 0, 0};
    cu_result r = read_device(d, (int)o->ordinal);
    if (r == 0) {
        d->target = tk_target_for(d->major, d->minor);
        if (!d->target) {
            work_fail(w, TKC_ERROR_DEVICE, "old-gpu",
                      "device '%s' is an %s of compute capability %u.%u; 8.0 or newer is needed",
                      o->device->name, d->label, d->major, d->minor);
            return false;
        }
        r = d->driver->primary_retain(&d->context, d->handle);
    }
    if (r != 0) {
        cuda_fail(w, d->driver, r, none, "device '%s' cannot be opened", o->device->name);
    }
    return r == 0;
}

static bool cuda_open(tk_work *w, tkc_device *device, unsigned ordinal) {
    const cuda_driver *driver = driver_for(w, device, ordinal);
    if (!driver) {
        return false;
    }
    cuda_device *d = mem_alloc(w->config, sizeof *d);
    if (!d) {
        tk_fail_memory(&w->guard);
    }
    d->driver = driver;
    atomic_init(&d->last, NULL);
    opening o = {d, device, ordinal};
    bool failed;
    if (work_try(w, open_state, &o, &failed)) {
        device->state = d;
        return true;
    }
    mem_free(w->config, d);
    if (failed) {
        work_fail_again(w);
    }
    return false;
}

static void cuda_close(tkc_device *device) {
    cuda_device *d = device->state;
    tkc_context *c = device->context;
    pthread_mutex_lock(&c->gpu_lock);
    while (d->loaded) {
        gpu_unload(&c->config, d->loaded);
    }
    pthread_mutex_unlock(&c->gpu_lock);
    cuda_matmul_close(device);
    if (!cuda_forked(d->driver)) {
        d->driver->primary_release(d->handle);
    }
    mem_free(&c->config, d);
}

// ---- Launches

static bool cuda_ready(tkc_device *device, launch *l) {
    cuda_device *d = device->state;
    tk_work *w = l->work;
    if (l->options && (l->options->check || l->options->stop)) {
        work_fail(w, TKC_ERROR_LAUNCH, l->options->check ? "check-on-gpu" : "stop-on-gpu",
                  "device '%s' has no %s; device cpu has it", device->name,
                  l->options->check ? "check mode" : "way to stop a launch");
        return false;
    }
    if (cuda_forked(d->driver)) {
        cuda_fail_forked(w);
        return false;
    }
    l->loaded = gpu_ready(w, d, l);
    return l->loaded && !w->diags.errors;
}

static void cuda_launch(tkc_device *device, const launch *l) {
    cuda_device *d = device->state;
    gpu_packed p;
    if (!gpu_pack(device, l, &l->work->arena, &p)) {
        return;
    }
    if (p.debug) {
        gpu_run_debug(l->work, device, l->kernel, &p, l->options->stream);
        return;
    }
    cu_result r = gpu_run(d, &p, l->options->stream);
    if (r == 0) {
        atomic_store_explicit(&d->last, p.loaded, memory_order_relaxed);
    } else {
        gpu_run_failed(l->work, d, &p, r);
    }
}

static bool cuda_fits(const launch *l, const gpu_packed *p) {
    tk_work *w = l->work;
    const gpu_variant *v = p->loaded->variant;
    if (!gpu_facts_hold(v, gpu_facts(w, l, true))) {
        work_fail(
            w, TKC_ERROR_LAUNCH, "prepared-layout",
            "the launch was prepared for tensors with a last stride of 1, an alignment of 16 "
            "bytes, rows of whole 16 bytes, offsets of 32 bits or strides for tensor maps, and "
            "this argument lacks one of these");
        return false;
    }
    return true;
}

static int cuda_run(tkc_device *device, const gpu_packed *p, void *stream) {
    cuda_device *d = device->state;
    if (cuda_forked(d->driver)) {
        return CU_NOT_INITIALIZED;
    }
    cu_result r = gpu_run(d, p, stream);
    if (r == 0) {
        atomic_store_explicit(&d->last, p->loaded, memory_order_relaxed);
    }
    return r;
}

static void cuda_run_failed(tk_work *w, tkc_device *device, const gpu_packed *p, int error) {
    cuda_device *d = device->state;
    if (cuda_forked(d->driver)) {
        cuda_fail_forked(w);
    } else {
        gpu_run_failed(w, d, p, error);
    }
}

// ---- Memory

// What an earlier launch did shows here: the message names the kernel that was launched last.
static bool finish(tk_work *w, tkc_device *device, cu_result r, const char *what) {
    cuda_device *d = device->state;
    if (r == 0) {
        return true;
    }
    tk_span none = {0, 0, 0};
    char last[64] = "", place[160] = "";
    pthread_mutex_lock(&device->context->gpu_lock);
    gpu_loaded *x = atomic_load(&d->last);
    if (x) {
        memcpy(last, x->name, sizeof last);
        memcpy(place, x->place, sizeof place);
    }
    pthread_mutex_unlock(&device->context->gpu_lock);
    tk_diag *diag = cuda_fail(w, d->driver, r, none, "%s device '%s' failed", what, device->name);
    if (last[0] && r != CU_OUT_OF_MEMORY) {
        tk_note(&w->diags, diag, none, "the kernel launched last is '%s' (%s)", last, place);
    }
    return false;
}

static bool enter(tk_work *w, tkc_device *device, cuda_scope *s) {
    cuda_device *d = device->state;
    if (cuda_forked(d->driver)) {
        cuda_fail_forked(w);
        return false;
    }
    return finish(w, device, cuda_enter(d, s), "work on");
}

static bool cuda_alloc(tk_work *w, tkc_device *device, size_t bytes, void **p) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_address at = 0;
    cu_result r = d->driver->memory_alloc(&at, bytes);
    cuda_leave(d, &s);
    *p = r == 0 ? (void *)(uintptr_t)at : NULL;
    return r == 0 || finish(w, device, r, tk_format(&w->arena, "allocating %zu bytes on", bytes));
}

static bool cuda_release(tk_work *w, tkc_device *device, void *p) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_result r = d->driver->memory_free((cu_address)(uintptr_t)p);
    cuda_leave(d, &s);
    return finish(w, device, r, "freeing memory on");
}

static bool cuda_copy(tk_work *w, tkc_device *device, void *to, const void *from, size_t bytes,
                      tkc_direction direction) {
    const cuda_device *d = device->state;
    const cuda_driver *f = d->driver;
    cu_address ato = (cu_address)(uintptr_t)to, afrom = (cu_address)(uintptr_t)from;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_result r = f->context_synchronize();
    bool before = r != 0;
    if (r == 0) {
        r = direction == TKC_TO_DEVICE     ? f->copy_in(ato, from, bytes)
            : direction == TKC_FROM_DEVICE ? f->copy_out(to, afrom, bytes)
                                           : f->copy_within(ato, afrom, bytes);
    }
    if (r == 0 && direction != TKC_FROM_DEVICE) {
        r = f->context_synchronize(); // the driver may return before the bytes are there
    }
    cuda_leave(d, &s);
    return finish(w, device, r, before ? "work on" : "a copy on");
}

static bool cuda_synchronize(tk_work *w, tkc_device *device) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_result r = d->driver->context_synchronize();
    cuda_leave(d, &s);
    return finish(w, device, r, "work on");
}

static bool cuda_copy_on_stream(tk_work *w, tkc_device *device, void *to, const void *from,
                                size_t bytes, void *stream) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_result r = d->driver->copy_on_stream((cu_address)(uintptr_t)to, (cu_address)(uintptr_t)from,
                                            bytes, stream);
    cuda_leave(d, &s);
    return finish(w, device, r, "a copy on");
}

// ---- Events

static bool cuda_event_create(tk_work *w, tkc_device *device, void **state) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_event e = NULL;
    cu_result r = d->driver->event_create(&e, 0);
    cuda_leave(d, &s);
    *state = e;
    return finish(w, device, r, "an event on");
}

static bool cuda_event_record(tk_work *w, tkc_device *device, void *state, void *stream) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    cu_result r = d->driver->event_record(state, stream);
    cuda_leave(d, &s);
    return finish(w, device, r, "work on");
}

static bool cuda_event_elapsed(tk_work *w, tkc_device *device, void *from, void *to,
                               double *milliseconds) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!enter(w, device, &s)) {
        return false;
    }
    float found = 0;
    cu_result r = d->driver->event_synchronize(from);
    r = r ? r : d->driver->event_synchronize(to);
    r = r ? r : d->driver->event_elapsed(&found, from, to);
    cuda_leave(d, &s);
    *milliseconds = (double)found;
    return finish(w, device, r, "work on");
}

static void cuda_event_destroy(tkc_device *device, void *state) {
    const cuda_device *d = device->state;
    cuda_scope s;
    if (!cuda_forked(d->driver) && cuda_enter(d, &s) == 0) {
        d->driver->event_destroy(state);
        cuda_leave(d, &s);
    }
}

const device_table device_cuda = {
    .name = "cuda",
    .numbered = true,
    .open = cuda_open,
    .close = cuda_close,
    .ready = cuda_ready,
    .launch = cuda_launch,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .copy = cuda_copy,
    .synchronize = cuda_synchronize,
    .matmul = cuda_matmul,
    .copy_on_stream = cuda_copy_on_stream,
    .event_create = cuda_event_create,
    .event_record = cuda_event_record,
    .event_elapsed = cuda_event_elapsed,
    .event_destroy = cuda_event_destroy,
    .pack = gpu_pack,
    .fits = cuda_fits,
    .run = cuda_run,
    .run_failed = cuda_run_failed,
    .run_debug = gpu_run_debug,
};
