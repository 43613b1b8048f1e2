// SPDX-License-Identifier: Apache-2.0
// A kernel from a string, launched from C: y = a x + y.
//     cc embed.c -ltkc && ./a.out
#include "tkc.h"

#include <stdio.h>
#include <string.h>

static const char source[] = "kernel axpy<BN: int = 256>(x: in f32[N], y: inout f32[N], a: f32)\n"
                             "    grid (i in cdiv(N, BN))\n"
                             "{\n"
                             "    y[i * BN +: BN] = a * x[i * BN +: BN] + y[i * BN +: BN];\n"
                             "}\n";

enum { N = 1000 };

// Prints what a call found; true if it went well.
static bool fine(tkc_status status, tkc_report **report) {
    fputs(tkc_report_text(*report, false), stderr);
    tkc_report_destroy(*report);
    *report = NULL;
    return status == TKC_OK;
}

int main(void) {
    tkc_context *context = NULL;
    tkc_program *program = NULL;
    tkc_kernel *kernel = NULL;
    tkc_device *device = NULL;
    tkc_report *report = NULL;
    static float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    int64_t dim[] = {N};
    tkc_arg args[] = {
        {.kind = TKC_ARG_TENSOR, .tensor = tkc_tensor_make(x, TKC_F32, 1, dim)},
        {.kind = TKC_ARG_TENSOR, .tensor = tkc_tensor_make(y, TKC_F32, 1, dim)},
        {.kind = TKC_ARG_FLOAT, .f = 2},
    };
    bool ok =
        tkc_context_create(NULL, &context) == TKC_OK &&
        fine(tkc_program_from_string(context, "axpy.tk", source, strlen(source), &program, &report),
             &report) &&
        fine(tkc_kernel_create(program, "axpy", NULL, 0, &kernel, &report), &report) &&
        fine(tkc_device_open(context, "cpu", &device, &report), &report) &&
        fine(tkc_launch(kernel, device, args, 3, NULL, &report), &report);
    for (int i = 0; i < N && ok; i++) {
        ok = y[i] == 2 * (float)i + 1;
    }
    if (ok) {
        printf("axpy on %s: y[%d] = %g\n", tkc_device_name(device), N - 1, (double)y[N - 1]);
    }
    tkc_device_close(device);
    tkc_kernel_destroy(kernel);
    tkc_program_destroy(program);
    tkc_context_destroy(context);
    return ok ? 0 : 1;
}
