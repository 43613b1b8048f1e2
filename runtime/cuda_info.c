// SPDX-License-Identifier: Apache-2.0
// What this build can and what this machine has.
#include "ptx/assemble.h"
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

tkc_status tkc_build_info(tkc_context *context, tkc_build *out) {
    if (!context || !out || out->size < sizeof *out) {
        return TKC_ERROR_ARGUMENT;
    }
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
#ifdef TKC_HAVE_LLVM
    out->llvm = tk_llvm_version();
#endif
    char name[TK_ASSEMBLER_ROOM];
    if (tk_assembler_find(name)) {
        snprintf(out->assembler, sizeof out->assembler, "%.*s", (int)sizeof out->assembler - 1,
                 name);
    }
    const cuda_driver *d = cuda_driver_get(context, out->why, sizeof out->why);
    if (d && cuda_forked(d)) {
        snprintf(out->why, sizeof out->why, "this process was forked after the driver started");
    } else if (d) {
        out->driver = (uint32_t)d->version;
        out->gpus = (uint32_t)d->devices;
        out->why[0] = 0;
    } else if (!out->why[0]) {
        return TKC_ERROR_MEMORY;
    }
    return TKC_OK;
}

tkc_status tkc_gpu_info(tkc_context *context, size_t i, tkc_gpu *out) {
    char why[256];
    if (!context || !out || out->size < sizeof *out) {
        return TKC_ERROR_ARGUMENT;
    }
    const cuda_driver *d = cuda_driver_get(context, why, sizeof why);
    cu_device device;
    int major = 0, minor = 0, shared = 0;
    if (!d || cuda_forked(d) || i >= (size_t)d->devices || d->device_get(&device, (int)i) != 0) {
        return TKC_ERROR_DEVICE;
    }
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    cu_result r = d->device_name(out->name, (int)sizeof out->name - 1, device);
    r = r ? r : d->device_attribute(&major, CU_DEVICE_MAJOR, device);
    r = r ? r : d->device_attribute(&minor, CU_DEVICE_MINOR, device);
    r = r ? r : d->device_attribute(&shared, CU_DEVICE_SHARED_OPTIN, device);
    out->major = (uint32_t)major;
    out->minor = (uint32_t)minor;
    out->shared = (uint32_t)shared;
    // Only here, and not essential: not one of the functions without which a driver is refused.
    cu_result (*total)(size_t *, cu_device);
    void *p = dlsym(d->library, "cuDeviceTotalMem_v2");
    size_t bytes = 0;
    memcpy(&total, &p, sizeof total);
    if (p && total(&bytes, device) == 0) {
        out->memory = bytes;
    }
    int cache = 0;
    if (d->device_attribute(&cache, CU_DEVICE_CACHE, device) == 0 && cache > 0) {
        out->cache = (uint64_t)cache;
    }
    cu_result (*bus)(char *, int, cu_device);
    p = dlsym(d->library, "cuDeviceGetPCIBusId");
    memcpy(&bus, &p, sizeof bus);
    if (!p || bus(out->bus, (int)sizeof out->bus, device) != 0) {
        out->bus[0] = 0;
    }
    const tk_target *t = tk_target_for(out->major, out->minor);
    out->target = t ? t->name : NULL;
    return r == 0 ? TKC_OK : TKC_ERROR_DEVICE;
}
