// SPDX-License-Identifier: Apache-2.0
// The driver of a context, the current context, and errors of the driver as diagnostics.
#include "runtime/cuda_driver.h"

#include <dlfcn.h>

const cuda_driver *cuda_driver_get(tkc_context *context, char *why, size_t room) {
    const tkc_config *c = &context->config;
    pthread_mutex_lock(&context->gpu_lock);
    cuda_driver *d = context->gpu_driver;
    if (!d) {
        d = mem_alloc(c, sizeof *d);
        if (!d) {
            why[0] = 0;
        } else if (!cuda_open_driver(c->gpu_driver, d, why, room)) {
            mem_free(c, d);
            d = NULL;
        }
        context->gpu_driver = d;
    }
    pthread_mutex_unlock(&context->gpu_lock);
    return d;
}

void cuda_driver_destroy(tkc_context *context) {
    if (context->gpu_driver) {
        dlclose(context->gpu_driver->library);
        mem_free(&context->config, context->gpu_driver);
    }
}

// ---- The current context

cu_result cuda_enter(const cuda_device *d, cuda_scope *s) {
    cu_context current = NULL;
    s->pushed = false;
    cu_result r = d->driver->context_current(&current);
    if (r == 0 && current != d->context) {
        r = d->driver->context_push(d->context);
        s->pushed = r == 0;
    }
    return r;
}

void cuda_leave(const cuda_device *d, cuda_scope *s) {
    cu_context dropped;
    if (s->pushed) {
        d->driver->context_pop(&dropped);
    }
}

// ---- Errors

tk_diag *cuda_fail(tk_work *w, const cuda_driver *d, cu_result r, tk_span at, const char *fmt,
                   ...) {
    va_list args;
    va_start(args, fmt);
    const char *what = tk_vformat(&w->arena, fmt, args);
    va_end(args);
    const char *text, *name = cuda_result_text(d, r, &text);
    tk_diag *diag = tk_error(&w->diags, at, "gpu-driver", "%s: %s (%s)", what, name, text);
    if (cuda_advice(r)) {
        tk_span none = {0, 0, 0};
        tk_help(&w->diags, diag, none, "%s", cuda_advice(r));
    }
    if (w->status == TKC_OK) {
        w->status = TKC_ERROR_DEVICE;
    }
    return diag;
}

void cuda_fail_forked(tk_work *w) {
    work_fail(w, TKC_ERROR_DEVICE, "forked",
              "this process was forked after the GPU driver was initialised, and cannot use it: "
              "open GPU devices in the child, not before the fork");
}
