// SPDX-License-Identifier: Apache-2.0
// The table of devices, how one is opened by name, and its memory.
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

// In the order in which "auto" tries them; cpu is always there.
static const device_table *const devices[] = {&device_cuda, &device_cpu, &device_sim};
enum { NDEVICES = sizeof devices / sizeof *devices };

const char *tkc_device_list(size_t i) { return i < NDEVICES ? devices[i]->name : NULL; }

const char *tkc_device_name(const tkc_device *device) { return device ? device->name : NULL; }

// ---- Opening

typedef struct device_open {
    tkc_device *device;
    unsigned ordinal;
    const char *name;
} device_open;

// NAME, or NAME:NUMBER of a numbered device. NULL: no such.
static const device_table *find(const char *name, unsigned *ordinal) {
    size_t n = strcspn(name, ":");
    *ordinal = 0;
    for (size_t i = 0; i < NDEVICES; i++) {
        const device_table *t = devices[i];
        if (strlen(t->name) != n || memcmp(t->name, name, n) != 0) {
            continue;
        }
        if (!name[n]) {
            return t;
        }
        size_t digits = strspn(name + n + 1, "0123456789");
        if (!t->numbered || digits == 0 || digits > 4 || name[n + 1 + digits]) {
            return NULL;
        }
        for (size_t k = 0; k < digits; k++) {
            *ordinal = *ordinal * 10 + (unsigned)(name[n + 1 + k] - '0');
        }
        return t;
    }
    return NULL;
}

static void unknown_device(tk_work *w, void *arg) {
    const device_open *o = arg;
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    for (size_t i = 0; i < NDEVICES; i++) {
        tk_buf_fmt(&b, ", %s", devices[i]->name);
    }
    work_fail(w, TKC_ERROR_DEVICE, "unknown-device",
              "there is no device '%s'; this build has: auto%s", o->name, tk_buf_text(&b));
    tk_help(&w->diags, w->diags.list.at[w->diags.list.n - 1], (tk_span){0},
            "which of several stands behind a colon: cuda:1, sim:80");
}

static void open_one(tk_work *w, void *arg) {
    const device_open *o = arg;
    o->device->table->open(w, o->device, o->ordinal);
}

static tkc_status try_open(tkc_context *context, const device_table *t, unsigned ordinal,
                           tkc_device **device, tkc_report **report) {
    tk_work w;
    work_init(&w, &context->config);
    tkc_device *d = mem_alloc(&context->config, sizeof *d);
    if (!d) {
        return work_end(&w, TKC_ERROR_MEMORY, report);
    }
    d->context = context;
    d->table = t;
    if (ordinal) {
        snprintf(d->name, sizeof d->name, "%s:%u", t->name, ordinal);
    } else {
        snprintf(d->name, sizeof d->name, "%s", t->name);
    }
    device_open o = {d, ordinal, NULL};
    tkc_status s = work_end(&w, work_run(&w, open_one, &o), report);
    if (s != TKC_OK) {
        mem_free(&context->config, d);
        return s;
    }
    *device = d;
    return TKC_OK;
}

tkc_status tkc_device_open(tkc_context *context, const char *name, tkc_device **device,
                           tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!context || !name || !device) {
        return TKC_ERROR_ARGUMENT;
    }
    *device = NULL;
    if (strcmp(name, "auto") == 0) {
        for (size_t i = 0; devices[i] != &device_cpu; i++) {
            tkc_status s = devices[i]->by_name ? TKC_ERROR_DEVICE
                                               : try_open(context, devices[i], 0, device, NULL);
            if (s != TKC_ERROR_DEVICE) {
                return s;
            }
        }
        return try_open(context, &device_cpu, 0, device, report);
    }
    device_open o = {NULL, 0, name};
    const device_table *t = find(name, &o.ordinal);
    if (!t) {
        tk_work w;
        work_init(&w, &context->config);
        return work_end(&w, work_run(&w, unknown_device, &o), report);
    }
    return try_open(context, t, o.ordinal, device, report);
}

void tkc_device_close(tkc_device *device) {
    if (device) {
        device->table->close(device);
        mem_free(&device->context->config, device);
    }
}

// ---- Memory

typedef struct memory_call {
    tkc_device *device;
    void *to;
    const void *from;
    size_t bytes;
    tkc_direction direction;
    void *stream;
} memory_call;

static tkc_status run_memory(memory_call *c, void (*body)(tk_work *w, void *arg),
                             tkc_report **report) {
    tk_work w;
    work_init(&w, &c->device->context->config);
    return work_end(&w, work_run(&w, body, c), report);
}

static void do_alloc(tk_work *w, void *arg) {
    memory_call *c = arg;
    c->device->table->alloc(w, c->device, c->bytes, &c->to);
}

static void do_free(tk_work *w, void *arg) {
    memory_call *c = arg;
    c->device->table->release(w, c->device, c->to);
}

static void do_copy(tk_work *w, void *arg) {
    memory_call *c = arg;
    c->device->table->copy(w, c->device, c->to, c->from, c->bytes, c->direction);
}

static void do_copy_on_stream(tk_work *w, void *arg) {
    memory_call *c = arg;
    const device_table *t = c->device->table;
    if (t->copy_on_stream) {
        t->copy_on_stream(w, c->device, c->to, c->from, c->bytes, c->stream);
    } else {
        t->copy(w, c->device, c->to, c->from, c->bytes, TKC_WITHIN_DEVICE);
    }
}

static void do_synchronize(tk_work *w, void *arg) {
    memory_call *c = arg;
    c->device->table->synchronize(w, c->device);
}

tkc_status tkc_device_alloc(tkc_device *device, size_t bytes, void **p, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device || !p) {
        return TKC_ERROR_ARGUMENT;
    }
    *p = NULL;
    memory_call c = {.device = device, .bytes = bytes};
    tkc_status s = bytes ? run_memory(&c, do_alloc, report) : TKC_OK;
    *p = s == TKC_OK ? c.to : NULL;
    return s;
}

tkc_status tkc_device_free(tkc_device *device, void *p) {
    if (!device) {
        return TKC_ERROR_ARGUMENT;
    }
    memory_call c = {.device = device, .to = p};
    return p ? run_memory(&c, do_free, NULL) : TKC_OK;
}

tkc_status tkc_device_copy(tkc_device *device, void *to, const void *from, size_t bytes,
                           tkc_direction direction, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device || (bytes && (!to || !from)) || (unsigned)direction > TKC_WITHIN_DEVICE) {
        return TKC_ERROR_ARGUMENT;
    }
    memory_call c = {device, to, from, bytes, direction, NULL};
    return bytes ? run_memory(&c, do_copy, report) : TKC_OK;
}

tkc_status tkc_device_copy_async(tkc_device *device, void *to, const void *from, size_t bytes,
                                 void *stream, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device || (bytes && (!to || !from))) {
        return TKC_ERROR_ARGUMENT;
    }
    memory_call c = {device, to, from, bytes, TKC_WITHIN_DEVICE, stream};
    return bytes ? run_memory(&c, do_copy_on_stream, report) : TKC_OK;
}

tkc_status tkc_device_synchronize(tkc_device *device, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device) {
        return TKC_ERROR_ARGUMENT;
    }
    memory_call c = {.device = device};
    return run_memory(&c, do_synchronize, report);
}
