// SPDX-License-Identifier: Apache-2.0
// Softmax of scaled rows on GPU 0, by kernels that were compiled when this program was built. It
// needs the NVIDIA driver to run, and nothing of tkc.
#include "rows.h"

#include <math.h>
#include <stdio.h>

enum { M = 64, N = 300 };

static float x[M][N], y[M][N], factor[M];

// The greatest difference from the same computed here.
static double check(void) {
    double worst = 0;
    for (int i = 0; i < M; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) {
            sum += exp(0.5 * factor[i] * x[i][j]);
        }
        for (int j = 0; j < N; j++) {
            worst = fmax(worst, fabs(exp(0.5 * factor[i] * x[i][j]) / sum - y[i][j]));
        }
    }
    return worst;
}

int main(void) {
    tkc_error error;
    void *dx = NULL, *df = NULL, *dy = NULL;
    for (int i = 0; i < M; i++) {
        factor[i] = (float)(i % 5);
        for (int j = 0; j < N; j++) {
            x[i][j] = (float)((i * 7 + j * 13) % 17) / 8 - 1;
        }
    }
    if (tkc_rt_use_device(0, &error) != TKC_OK) {
        printf("no GPU: %s\n", error.text);
        return 77;
    }
    tkc_status s = tkc_rt_alloc(sizeof x, &dx, &error);
    s = s ? s : tkc_rt_alloc(sizeof factor, &df, &error);
    s = s ? s : tkc_rt_alloc(sizeof y, &dy, &error);
    s = s ? s : tkc_rt_copy(dx, x, sizeof x, TKC_TO_DEVICE, &error);
    s = s ? s : tkc_rt_copy(df, factor, sizeof factor, TKC_TO_DEVICE, &error);
    const int64_t dim[2] = {M, N};
    tkc_tensor tx = tkc_tensor_make(dx, TKC_F32, 2, dim);
    tkc_tensor tf = tkc_tensor_make(df, TKC_F32, 1, dim);
    tkc_tensor ty = tkc_tensor_make(dy, TKC_F32, 2, dim);
    s = s ? s : scale(&tx, &tf, &ty, 0.5f, NULL, &error);
    s = s ? s : softmax_f32(&ty, &tx, NULL, &error);
    s = s ? s : tkc_rt_copy(y, dx, sizeof y, TKC_FROM_DEVICE, &error);
    if (s != TKC_OK) {
        printf("%s (%s): %s\n", tkc_status_text(s), error.id, error.text);
        return 1;
    }
    printf("softmax of %d rows of %d: greatest difference %.2g\n", M, N, check());
    if (softmax_f32(&ty, &ty, NULL, &error) == TKC_OK) {
        return 1;
    }
    printf("refused: %s\n", error.text);
    scale_unload();
    softmax_f32_unload();
    tkc_rt_free(dx, NULL);
    tkc_rt_free(df, NULL);
    tkc_rt_free(dy, NULL);
    return check() < 1e-6 ? 0 : 1;
}
