// SPDX-License-Identifier: Apache-2.0
// The table of devices and how one is opened by name.
#include "runtime/internal.h"

#include <string.h>

// In the order in which "auto" tries them.
static const device_table *const devices[] = {&device_cpu};
enum { NDEVICES = sizeof devices / sizeof *devices };

const char *tkc_device_list(size_t i) { return i < NDEVICES ? devices[i]->name : NULL; }

const char *tkc_device_name(const tkc_device *device) {
    return device ? device->table->name : NULL;
}

static const device_table *find(const char *name) {
    for (size_t i = 0; i < NDEVICES; i++) {
        bool any = strcmp(name, "auto") == 0;
        if ((any || strcmp(name, devices[i]->name) == 0) && devices[i]->available()) {
            return devices[i];
        }
    }
    return NULL;
}

static void unknown_device(tk_work *w, void *arg) {
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    for (size_t i = 0; i < NDEVICES; i++) {
        tk_buf_fmt(&b, ", %s", devices[i]->name);
    }
    work_fail(w, TKC_ERROR_DEVICE, "unknown-device",
              "this build has no device '%s'; it has: auto%s", (const char *)arg, tk_buf_text(&b));
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
    const device_table *t = find(name);
    if (!t) {
        tk_work w;
        work_init(&w, &context->config);
        char *copy = (char *)(uintptr_t)name;
        return work_end(&w, work_run(&w, unknown_device, copy), report);
    }
    tkc_device *d = mem_alloc(&context->config, sizeof *d);
    if (!d) {
        return TKC_ERROR_MEMORY;
    }
    d->context = context;
    d->table = t;
    *device = d;
    return TKC_OK;
}

void tkc_device_close(tkc_device *device) {
    if (device) {
        mem_free(&device->context->config, device);
    }
}
