// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: versions 1.0 to 3.0, C and Fortran order, either byte order. bf16 is '<V2'
// and the f8 types are '|V1', the void types that NumPy writes for ml_dtypes; which of the two f8 a
// file holds it does not say.
#ifndef TKC_TOOLS_NPY_H
#define TKC_TOOLS_NPY_H

#include "tool.h"

typedef struct npy {
    tkc_tensor tensor; // strides as the file has them; data NULL unless read
    size_t count;      // elements
    bool some_f8;      // '|V1': tensor.dtype is f8e4m3 until somebody knows better
} npy;

// `data`: reads the elements too, not only the header. False after a message.
bool npy_read(tool *t, const char *path, bool data, npy *out);
// The elements must be contiguous in either order. False after a message.
bool npy_write(tool *t, const char *path, const tkc_tensor *tensor);

// Elements of a tensor and their bytes; false where that does not fit.
bool tensor_size(uint32_t rank, const int64_t *dim, size_t elem, size_t *count, size_t *bytes);

#endif
