// SPDX-License-Identifier: Apache-2.0
// See on_device.h. An array's elements lie without gaps from its first byte on, in whatever order
// its strides say, so it is copied as a block.
#include "on_device.h"

#include <string.h>

static size_t block_size(const tkc_tensor *x) {
    size_t count, bytes;
    return tensor_size(x->rank, x->dim, tkc_dtype_size(x->dtype), &count, &bytes) ? bytes : 0;
}

static bool to_device(tool *t, device_arguments *d, size_t i) {
    const tkc_tensor *x = &d->a->arg[i].tensor;
    size_t bytes = block_size(x);
    tkc_report *report = NULL;
    d->arg[i].tensor.data = NULL;
    tkc_status s = tkc_device_alloc(d->device, bytes, &d->arg[i].tensor.data, &report);
    if (s == TKC_OK) {
        s = tkc_device_copy(d->device, d->arg[i].tensor.data, x->data, bytes, TKC_TO_DEVICE,
                            &report);
    }
    return tool_report(t, s, report);
}

bool device_arguments_make(tool *t, tkc_device *device, const arguments *a, device_arguments *out) {
    *out = (device_arguments){device, a, a->arg, false};
    if (strcmp(tkc_device_name(device), "cpu") == 0) {
        return true;
    }
    out->arg = TOOL_NEW(t, tkc_arg, a->n + 1);
    out->copied = true;
    for (size_t i = 0; i < a->n; i++) {
        out->arg[i] = a->arg[i];
        if (a->arg[i].kind == TKC_ARG_TENSOR) {
            out->arg[i].tensor.data = NULL;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->arg[i].kind == TKC_ARG_TENSOR && !to_device(t, out, i)) {
            return false;
        }
    }
    return true;
}

bool device_arguments_finish(tool *t, device_arguments *d) {
    tkc_report *report = NULL;
    if (!tool_report(t, tkc_device_synchronize(d->device, &report), report)) {
        return false;
    }
    for (size_t i = 0; d->copied && i < d->a->n; i++) {
        const tkc_arg *own = &d->a->arg[i];
        if (own->kind != TKC_ARG_TENSOR || d->a->param[i]->access == TKC_IN) {
            continue;
        }
        report = NULL;
        tkc_status s = tkc_device_copy(d->device, own->tensor.data, d->arg[i].tensor.data,
                                       block_size(&own->tensor), TKC_FROM_DEVICE, &report);
        if (!tool_report(t, s, report)) {
            return false;
        }
    }
    return true;
}

void device_arguments_free(device_arguments *d) {
    for (size_t i = 0; d->copied && i < d->a->n; i++) {
        if (d->arg[i].kind == TKC_ARG_TENSOR) {
            tkc_device_free(d->device, d->arg[i].tensor.data);
        }
    }
}
