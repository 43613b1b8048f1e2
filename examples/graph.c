// SPDX-License-Identifier: Apache-2.0
// A kernel on the caller's own stream, and the same launch captured in a CUDA graph: y = a x + y.
// On a machine without a GPU the kernel runs on the CPU, without streams.
//     cc graph.c -ltkc && ./a.out
// The few driver functions are looked up at run time, so that this builds where no CUDA toolkit is;
// a program that has one includes cuda.h and calls them by name.
#include "tkc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char source[] = "kernel axpy<BN: int = 256>(x: in f32[N], y: inout f32[N], a: f32)\n"
                             "    grid (i in cdiv(N, BN))\n"
                             "{\n"
                             "    y[i * BN +: BN] = a * x[i * BN +: BN] + y[i * BN +: BN];\n"
                             "}\n";

enum { N = 100000, REPLAYS = 10 };

// A CUDA driver function, called with up to four arguments; they all return 0 for success.
typedef int (*driver_fn)(void *, void *, void *, void *);
static void *cuda;
static bool call(const char *name, void *a, void *b, void *c, void *d) {
    driver_fn f = NULL;
    *(void **)&f = dlsym(cuda, name);
    return f && f(a, b, c, d) == 0;
}

// Launches once on a stream of our own, then captures a launch and replays it.
static bool on_stream(tkc_prepared *launch) {
    void *stream = NULL, *graph = NULL, *exec = NULL, *context = NULL;
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    bool ok =
        cuda &&
        call("cuDevicePrimaryCtxRetain", &context, NULL, NULL, NULL) && // of device 0, as tkc does
        call("cuCtxSetCurrent", context, NULL, NULL, NULL) &&
        call("cuStreamCreate", &stream, (void *)1 /* non-blocking */, NULL, NULL) &&
        tkc_prepared_launch(launch, stream, NULL) == TKC_OK &&
        call("cuStreamBeginCapture_v2", stream, NULL, NULL, NULL) &&
        tkc_prepared_launch(launch, stream, NULL) == TKC_OK && // recorded, not run
        call("cuStreamEndCapture", stream, &graph, NULL, NULL) &&
        call("cuGraphInstantiateWithFlags", &exec, graph, NULL, NULL);
    for (int i = 0; i < REPLAYS && ok; i++) {
        ok = call("cuGraphLaunch", exec, stream, NULL, NULL);
    }
    return ok && call("cuStreamSynchronize", stream, NULL, NULL, NULL);
}

int main(void) {
    tkc_context *context = NULL;
    tkc_program *program = NULL;
    tkc_kernel *kernel = NULL;
    tkc_device *device = NULL;
    tkc_prepared *launch = NULL;
    void *x = NULL, *y = NULL;
    static float host[N], out[N];
    for (int i = 0; i < N; i++) {
        host[i] = (float)(i % 1000);
    }
    int64_t dim[] = {N};
    tkc_status s = tkc_context_create(NULL, &context);
    s = s ? s : tkc_program_from_string(context, "axpy.tk", source, strlen(source), &program, NULL);
    s = s ? s : tkc_kernel_create(program, "axpy", NULL, 0, &kernel, NULL);
    s = s ? s : tkc_device_open(context, "auto", &device, NULL);
    s = s ? s : tkc_device_alloc(device, sizeof host, &x, NULL);
    s = s ? s : tkc_device_alloc(device, sizeof host, &y, NULL);
    s = s ? s : tkc_device_copy(device, x, host, sizeof host, TKC_TO_DEVICE, NULL);
    s = s ? s : tkc_device_copy(device, y, out, sizeof out, TKC_TO_DEVICE, NULL); // zeros
    tkc_arg args[] = {{.kind = TKC_ARG_TENSOR, .tensor = tkc_tensor_make(x, TKC_F32, 1, dim)},
                      {.kind = TKC_ARG_TENSOR, .tensor = tkc_tensor_make(y, TKC_F32, 1, dim)},
                      {.kind = TKC_ARG_FLOAT, .f = 2}};
    s = s ? s
          : tkc_prepared_create(kernel, device, args, 3, &launch, NULL); // compiles and loads here
    bool gpu = s == TKC_OK && strncmp(tkc_device_name(device), "cuda", 4) == 0, ok = s == TKC_OK;
    if (gpu) {
        ok = on_stream(launch);
    }
    for (int i = 0; i < 1 + REPLAYS && ok && !gpu; i++) {
        ok = tkc_prepared_launch(launch, NULL, NULL) == TKC_OK;
    }
    ok = ok && tkc_device_copy(device, out, y, sizeof out, TKC_FROM_DEVICE, NULL) == TKC_OK;
    for (int i = 0; i < N && ok; i++) {
        ok = out[i] == (float)(2 * (1 + REPLAYS)) * host[i];
    }
    printf("axpy, once and %d times more on %s: %s\n", REPLAYS,
           s ? "no device" : tkc_device_name(device), ok ? "right" : "wrong");
    tkc_prepared_destroy(launch);
    if (device) {
        tkc_device_free(device, x);
        tkc_device_free(device, y);
    }
    tkc_device_close(device);
    tkc_kernel_destroy(kernel);
    tkc_program_destroy(program);
    tkc_context_destroy(context);
    return ok ? 0 : 1;
}
