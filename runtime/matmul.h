// SPDX-License-Identifier: Apache-2.0
// tkc_matmul between its parts: a product that is checked, and who computes it.
//
// matmul.c checks what is given and brings it into this form, the same for every device: one step
// from matrix to matrix, each matrix by rows or by columns. matmul_host.c computes it,
// cuda_matmul.c hands it to cuBLASLt.
#ifndef TKC_RUNTIME_MATMUL_H
#define TKC_RUNTIME_MATMUL_H

#include "runtime/internal.h"

typedef struct matmul_matrix {
    char *data; // NULL: there is none
    tk_dtype dtype;
    bool by_rows;        // its last stride is 1, else its last but one
    int64_t lead;        // the other stride
    int64_t batch;       // stride from matrix to matrix
    int64_t row, column; // strides by axis
} matmul_matrix;

struct matmul {
    int64_t m, n, k, batch; // none is 0
    matmul_matrix a, b, c, d;
    matmul_matrix bias; // [N]: `column` and `batch` count
    double alpha, beta;
    tkc_activation activation;
    bool tf32;
    const float *scale_a, *scale_b, *scale_d;
    void *stream;
};

// The type that products are summed in, which is that of alpha and beta.
tk_dtype matmul_sum_type(const matmul *m);

void matmul_host(tk_work *w, tkc_device *device, const matmul *m);
void cuda_matmul(tk_work *w, tkc_device *device, const matmul *m);

#endif
