// SPDX-License-Identifier: Apache-2.0
// Events: points on a stream and the time between them; the device's own, or the host's clock.
#include "runtime/internal.h"

#include <time.h>

struct tkc_event {
    tkc_device *device;
    void *state; // the device's own; NULL: the host's clock
    double at;   // by that, in milliseconds
    bool recorded;
};

typedef struct event_call {
    tkc_event *event, *to;
    void *stream;
    double milliseconds;
} event_call;

static tkc_status run(event_call *c, void (*body)(tk_work *w, void *arg), tkc_report **report) {
    tk_work w;
    work_init(&w, &c->event->device->context->config);
    return work_end(&w, work_run(&w, body, c), report);
}

static double host_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void do_create(tk_work *w, void *arg) {
    const event_call *c = arg;
    tkc_event *e = c->event;
    e->device->table->event_create(w, e->device, &e->state);
}

static void do_record(tk_work *w, void *arg) {
    const event_call *c = arg;
    tkc_event *e = c->event;
    e->device->table->event_record(w, e->device, e->state, c->stream);
}

static void do_elapsed(tk_work *w, void *arg) {
    event_call *c = arg;
    tkc_device *d = c->event->device;
    d->table->event_elapsed(w, d, c->event->state, c->to->state, &c->milliseconds);
}

tkc_status tkc_event_create(tkc_device *device, tkc_event **event, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!device || !event) {
        return TKC_ERROR_ARGUMENT;
    }
    *event = NULL;
    const tkc_config *c = &device->context->config;
    tkc_event *e = mem_alloc(c, sizeof *e);
    if (!e) {
        return TKC_ERROR_MEMORY;
    }
    e->device = device;
    event_call call = {.event = e};
    tkc_status s = device->table->event_create ? run(&call, do_create, report) : TKC_OK;
    if (s != TKC_OK) {
        mem_free(c, e);
        return s;
    }
    *event = e;
    return TKC_OK;
}

tkc_status tkc_event_record(tkc_event *event, void *stream, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!event) {
        return TKC_ERROR_ARGUMENT;
    }
    event_call call = {.event = event, .stream = stream};
    tkc_status s = event->device->table->event_record ? run(&call, do_record, report) : TKC_OK;
    event->at = host_clock();
    event->recorded = event->recorded || s == TKC_OK;
    return s;
}

tkc_status tkc_event_elapsed(tkc_event *from, tkc_event *to, double *milliseconds,
                             tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!from || !to || !milliseconds || from->device != to->device || !from->recorded ||
        !to->recorded) {
        return TKC_ERROR_ARGUMENT;
    }
    event_call call = {.event = from, .to = to, .milliseconds = to->at - from->at};
    tkc_status s = from->device->table->event_elapsed ? run(&call, do_elapsed, report) : TKC_OK;
    if (s == TKC_OK) {
        *milliseconds = call.milliseconds;
    }
    return s;
}

void tkc_event_destroy(tkc_event *event) {
    if (event) {
        if (event->device->table->event_destroy) {
            event->device->table->event_destroy(event->device, event->state);
        }
        mem_free(&event->device->context->config, event);
    }
}
