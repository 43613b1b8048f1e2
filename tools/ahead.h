// SPDX-License-Identifier: Apache-2.0
// Kernels as functions of C: an object file or C source, a header, a rule of make.
#ifndef TKC_TOOLS_AHEAD_H
#define TKC_TOOLS_AHEAD_H

#include "program.h"

typedef struct ahead_request {
    const kernel_settings *k;
    const char *arch;   // "sm_80,sm_90a"; NULL: the oldest
    const char *output; // NULL: standard output
    bool c;             // C source rather than an object file
    const char *header, *depfile;
    pair_list instance; // none: each kernel of the file, or the one that k names
    bool contiguous, whole_rows, near, unit_stride, mapped;
} ahead_request;

void ahead_build(tool *t, session *lib, const ahead_request *r); // lib has its program

#endif
