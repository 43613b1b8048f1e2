// SPDX-License-Identifier: Apache-2.0
// A GPU and its memory for programs that have no CUDA run time.
#include "runtime/rt.h"

#include <string.h>

// In the current context.
static tkc_status enter(cuda_driver *d, tkc_error *error) {
    char why[256];
    memset(d, 0, sizeof *d);
    return cuda_open_driver(NULL, d, why, sizeof why)
               ? TKC_OK
               : rt_fail(error, TKC_ERROR_DEVICE, "no-gpu", "%s", why);
}

static tkc_status result(tkc_error *error, const cuda_driver *d, cu_result r, const char *what) {
    return r == 0 ? TKC_OK : rt_fail_driver(error, d, r, "%s", what);
}

tkc_status tkc_rt_use_device(unsigned i, tkc_error *error) {
    cuda_driver d;
    tkc_status s = enter(&d, error);
    if (s != TKC_OK) {
        return s;
    }
    if (i >= (unsigned)d.devices) {
        return rt_fail(error, TKC_ERROR_DEVICE, "no-gpu", "there is no GPU %u: this machine has %d",
                       i, d.devices);
    }
    cu_device device = 0;
    cu_context context = NULL;
    cu_result r = d.device_get(&device, (int)i);
    r = r ? r : d.primary_retain(&context, device);
    r = r ? r : d.context_set(context);
    return result(error, &d, r, "the GPU cannot be used");
}

tkc_status tkc_rt_alloc(size_t bytes, void **p, tkc_error *error) {
    cuda_driver d;
    cu_address at = 0;
    if (!p) {
        return TKC_ERROR_ARGUMENT;
    }
    *p = NULL;
    tkc_status s = bytes ? enter(&d, error) : TKC_OK;
    if (s != TKC_OK || !bytes) {
        return s;
    }
    s = result(error, &d, d.memory_alloc(&at, bytes), "memory of the GPU cannot be had");
    *p = s == TKC_OK ? (void *)(uintptr_t)at : NULL;
    return s;
}

tkc_status tkc_rt_free(void *p, tkc_error *error) {
    cuda_driver d;
    tkc_status s = p ? enter(&d, error) : TKC_OK;
    return s != TKC_OK || !p ? s
                             : result(error, &d, d.memory_free((cu_address)(uintptr_t)p),
                                      "memory of the GPU cannot be freed");
}

tkc_status tkc_rt_copy(void *to, const void *from, size_t bytes, tkc_direction direction,
                       tkc_error *error) {
    cuda_driver d;
    cu_address ato = (cu_address)(uintptr_t)to, afrom = (cu_address)(uintptr_t)from;
    if ((unsigned)direction > TKC_WITHIN_DEVICE || (bytes && (!to || !from))) {
        return TKC_ERROR_ARGUMENT;
    }
    tkc_status s = bytes ? enter(&d, error) : TKC_OK;
    if (s != TKC_OK || !bytes) {
        return s;
    }
    cu_result r = d.context_synchronize();
    if (r == 0) {
        r = direction == TKC_TO_DEVICE     ? d.copy_in(ato, from, bytes)
            : direction == TKC_FROM_DEVICE ? d.copy_out(to, afrom, bytes)
                                           : d.copy_within(ato, afrom, bytes);
    }
    if (r == 0 && direction != TKC_FROM_DEVICE) {
        r = d.context_synchronize(); // the driver may return before the bytes are there
    }
    return result(error, &d, r, "a copy, or work before it, failed");
}

tkc_status tkc_rt_synchronize(tkc_error *error) {
    cuda_driver d;
    tkc_status s = enter(&d, error);
    return s == TKC_OK ? result(error, &d, d.context_synchronize(), "work of the GPU failed") : s;
}
