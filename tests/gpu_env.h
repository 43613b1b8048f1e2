// SPDX-License-Identifier: Apache-2.0
// A program with a kernel on the fake GPU (tests/fake_cuda.c), and a back end that makes no code
// but describes a kernel's parameters as the real one does.
#ifndef GPU_ENV_H
#define GPU_ENV_H

#include "runtime/internal.h"
#include "tests/fake_cuda.h"

typedef struct gpu_env {
    fake_cuda_state *fake;
    tkc_config *config; // the fake driver and back end are set; tests may set more
    tkc_context *context;
    tkc_program *program;
    tkc_kernel *kernel;
    tkc_device *device;
    tkc_report *report; // of the last call through it
} gpu_env;

// What the fake back end does; one a process.
typedef struct fake_backend {
    atomic_int compiled;      // times that it ran
    uint32_t shared;          // of the images that it makes
    bool refuse;              // with a diagnostic
    bool cubin;               // makes one
    const char *note;         // that it makes; NULL: "made"
    tk_load_demand demand;    // of the images that it makes
    bool unassembled;         // says that the assembler could not be run
    tk_tensor_facts facts[8]; // of the last kernel's parameters
    char arch[16];
    uint32_t packed; // programs of a block; 0: one
    uint32_t maps;   // makes tensor maps of so many of the first tensors that promise them
} fake_backend;
extern fake_backend the_backend;
tk_image *fake_ptx_compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags);

gpu_env gpu_config(const char *driver); // up to the config
void gpu_program(gpu_env *e, const char *text);
gpu_env gpu_open(const char *driver, const char *text); // all of it, on device "cuda"
void gpu_close(gpu_env *e);
void gpu_no_leaks(const fake_cuda_state *f);
void gpu_clear_log(fake_cuda_state *f);

tkc_arg gpu_tensor(void *data, tkc_dtype t, uint32_t rank, const int64_t *dim);
// The text of the last report.
const char *gpu_said(gpu_env *e);
tkc_status gpu_launch(gpu_env *e, const tkc_arg *args, size_t n, void *stream);

#endif
