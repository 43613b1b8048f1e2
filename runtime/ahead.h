// SPDX-License-Identifier: Apache-2.0
// Inside the compiler for kernels ahead of time (tkc_ahead in tkc.h): each kernel that was added
// is a bundle (runtime/bundle.h) and the text of its part of the header; at the end they are
// written as an object file, as C, or as the header.
#ifndef TKC_RUNTIME_AHEAD_H
#define TKC_RUNTIME_AHEAD_H

#include "runtime/bundle.h"
#include "runtime/cuda_driver.h"
#include "runtime/tkc_rt.h"

typedef struct ahead_kernel {
    struct ahead_kernel *next;
    tkc_text name;
    tkc_text bundle;
    tkc_text declaration;
} ahead_kernel;

struct tkc_ahead {
    tkc_context *context;
    const tk_target **target;
    size_t ntarget;
    tk_tensor_facts promised;   // of all tensors; 0: nothing, there are several variants
    ahead_kernel *first, **end; // in the order in which they were added
};

// One kernel while it is added.
typedef struct ahead_add {
    tkc_ahead *ahead;
    const char *name; // of its function
    tkc_kernel *kernel;
    const tkc_arg *args;
    size_t nargs;
    const tkc_size *sizes;
    size_t nsizes;
    const tk_unit *unit;
    const tk_bound *bound;
    ahead_kernel *out;
} ahead_add;

// ahead_name.c: whether the function and its parameters can be declared in C, and its name is not
// another's. False after w's diagnostics.
bool ahead_check_names(tk_work *w, const ahead_add *a);
// ahead_grid.c: the grid as steps; parts[]: of tk_bundle. False after located diagnostics.
typedef struct ahead_grid {
    TK_VEC(tk_bundle_step) step;
    TK_VEC(uint32_t) count;
} ahead_grid;
bool ahead_grid_make(tk_work *w, const tk_module *m, ahead_grid *g);
// ahead_bundle.c: compiles for each target and promise, and writes the bundle.
bool ahead_bundle(tk_work *w, const ahead_add *a, tk_buf *out);
// ahead_text.c
void ahead_declare(const ahead_add *a, tk_buf *out);
void ahead_header(const tkc_ahead *h, const char *name, tk_buf *out);
void ahead_source(const tkc_ahead *h, tk_buf *out);
// ahead_elf.c: an object file for this machine; false where it is not known how.
bool ahead_object(const tkc_ahead *h, tk_buf *out);

#endif
