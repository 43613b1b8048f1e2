// SPDX-License-Identifier: Apache-2.0
// Libraries of the CUDA toolkit. See toolkit.h.
#define _GNU_SOURCE // RTLD_NODELETE
#include "ptx/toolkit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_ROOM = 4096, FOLDERS = 3 };

void *tk_toolkit_open_file(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

void *tk_toolkit_open(const char *const *names, size_t n) {
    const char *home = getenv("CUDA_HOME");
    const char *folders[FOLDERS] = {"", home && *home ? home : NULL, "/usr/local/cuda"};
    for (size_t f = 0; f < FOLDERS; f++) {
        for (size_t i = 0; folders[f] && i < n; i++) {
            char path[PATH_ROOM];
            int length =
                snprintf(path, sizeof path, "%s%s%s", folders[f], f ? "/lib64/" : "", names[i]);
            void *h = length > 0 && length < PATH_ROOM ? tk_toolkit_open_file(path) : NULL;
            if (h) {
                return h;
            }
        }
    }
    return NULL;
}
