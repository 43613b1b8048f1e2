// SPDX-License-Identifier: Apache-2.0
// Finds the NVIDIA driver, initialises it, and says its errors in words.
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"

static const char *result_text(const cuda_driver *d, cu_result r, const char **text) {
    const char *name = NULL;
    *text = NULL;
    if (d->error_name(r, &name) != 0 || !name) {
        name = "unknown CUDA error";
    }
    if (d->error_string(r, text) != 0 || !*text) {
        *text = "no description";
    }
    return name;
}

// ---- Loading

static bool load_symbols(cuda_driver *d, char *why, size_t room) {
#define F(member, symbol, parameters) {#symbol, offsetof(cuda_driver, member)},
    static const struct {
        const char *symbol;
        size_t at;
    } functions[] = {CUDA_FUNCTIONS(F)};
#undef F
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *p = dlsym(d->library, functions[i].symbol);
        if (!p) {
            snprintf(why, room, "the GPU driver is too old: it has no %s", functions[i].symbol);
            return false;
        }
        memcpy((char *)d + functions[i].at, &p, sizeof p);
    }
    void *load = dlsym(d->library, "cuFuncLoad");
    memcpy(&d->function_load, &load, sizeof load);
    return true;
}

static bool initialise(cuda_driver *d, char *why, size_t room) {
    cu_result r = d->init(0);
    if (r == 0) {
        r = d->driver_version(&d->version);
    }
    if (r == 0) {
        r = d->device_count(&d->devices);
    }
    if (r != 0) {
        const char *text, *name = result_text(d, r, &text);
        snprintf(why, room, "the GPU driver does not start: %s (%s)%s", name, text,
                 r == CU_NOT_INITIALIZED ? "; a process that was forked after the driver was "
                                           "initialised cannot use it"
                                         : "");
        return false;
    }
    if (d->devices == 0) {
        snprintf(why, room, "the GPU driver sees no GPU");
        return false;
    }
    return true;
}

static bool open_driver(const tkc_config *c, cuda_driver *d, char *why, size_t room) {
    const char *path = c->gpu_driver ? c->gpu_driver : DRIVER;
    // The driver has threads and exit handlers of its own: it stays where it was once loaded.
    d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library) {
        snprintf(why, room, "this machine has no NVIDIA driver (%s is not found)", path);
        return false;
    }
    d->pid = getpid();
    if (load_symbols(d, why, room) && initialise(d, why, room)) {
        return true;
    }
    dlclose(d->library);
    return false;
}

const cuda_driver *cuda_driver_get(tkc_context *context, char *why, size_t room) {
    const tkc_config *c = &context->config;
    pthread_mutex_lock(&context->gpu_lock);
    cuda_driver *d = context->gpu_driver;
    if (!d) {
        d = mem_alloc(c, sizeof *d);
        if (!d) {
            why[0] = 0;
        } else if (!open_driver(c, d, why, room)) {
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

bool cuda_forked(const cuda_driver *d) { return d->pid != getpid(); }

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

static const char *advice(cu_result r) {
    if (r >= CU_CAPTURE_FIRST && r <= CU_CAPTURE_LAST) {
        return "a stream is being captured: what is launched inside must be made ready before "
               "(tkc_prepare, or one launch with such arguments)";
    }
    switch (r) {
    case CU_OUT_OF_MEMORY:
        return "the GPU has not enough free memory; other processes may hold some of it";
    case CU_NOT_INITIALIZED:
        return "a process that was forked after the driver was initialised cannot use it";
    case CU_UNSUPPORTED_PTX_VERSION:
        return "the driver is older than the code; install a newer driver";
    case CU_JIT_COMPILER_NOT_FOUND:
        return "the driver's own assembler (libnvidia-ptxjitcompiler) is missing";
    case CU_ILLEGAL_ADDRESS:
    case CU_MISALIGNED_ADDRESS:
        return "a kernel touched memory that is not its tensors'; are all data pointers of this "
               "device, and alive? The GPU takes no more work from this process";
    case CU_ILLEGAL_INSTRUCTION:
    case CU_LAUNCH_FAILED:
        return "a kernel ended early; device cpu may tell why. The GPU takes no more work from "
               "this process";
    case CU_LAUNCH_TIMEOUT:
        return "the kernel ran longer than a GPU with a display lets it";
    case CU_LAUNCH_OUT_OF_RESOURCES:
        return "the kernel needs more registers or shared memory than a block has: fewer @warps "
               "or smaller tiles";
    default:
        return NULL;
    }
}

tk_diag *cuda_fail(tk_work *w, const cuda_driver *d, cu_result r, tk_span at, const char *fmt,
                   ...) {
    va_list args;
    va_start(args, fmt);
    const char *what = tk_vformat(&w->arena, fmt, args);
    va_end(args);
    const char *text, *name = result_text(d, r, &text);
    tk_diag *diag = tk_error(&w->diags, at, "gpu-driver", "%s: %s (%s)", what, name, text);
    if (advice(r)) {
        tk_span none = {0, 0, 0};
        tk_help(&w->diags, diag, none, "%s", advice(r));
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
