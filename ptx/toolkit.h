// SPDX-License-Identifier: Apache-2.0
// Libraries of the CUDA toolkit, which need not be there.
#ifndef TK_PTX_TOOLKIT_H
#define TK_PTX_TOOLKIT_H

#include <stddef.h>

// Opens the first of these file names that there is: where the loader finds them, then in
// $CUDA_HOME/lib64 and /usr/local/cuda/lib64. It stays loaded: such a library has threads and exit
// handlers of its own, and opening it takes long. NULL: none is there.
void *tk_toolkit_open(const char *const *names, size_t n);
void *tk_toolkit_open_file(const char *path); // this one

#endif
