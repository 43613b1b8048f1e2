// SPDX-License-Identifier: Apache-2.0
// Deletions from what the compiler makes of a kernel: as it is, it runs silently with one result;
// without any one of its barriers, waits, commits, arrivals and fences, the simulator catches it,
// by a fault or by a wrong value, within 20 seeds. Needs the GPU back end.
#ifndef TK_TESTS_SIM_EMITTED_H
#define TK_TESTS_SIM_EMITTED_H

#include "runtime/tkc.h"

enum { SIM_EMITTED_DEFINES = 6, SIM_EMITTED_WORDS = 6 };

typedef struct sim_emitted {
    const char *file, *kernel; // of stdlib/, or the text
    const char *device;        // NULL: "sim"
    tkc_define define[SIM_EMITTED_DEFINES];
    int64_t x[2], w[2], y[2];           // inputs, and the output of f32; w {0}: one input only
    const char *has[SIM_EMITTED_WORDS]; // what must stand in the PTX
    unsigned warps;
    unsigned silent;      // seeds
    unsigned idle;        // of what is deleted, how much nothing needs here
    const char *together; // what is caught when all that begin so are deleted; NULL: not tried
    bool huge;            // the first row's numbers are, and a sum of their squares overflows
    bool halves;          // the inputs are of f16, not of f32
} sim_emitted;

void sim_check_emitted(const sim_emitted *s);

#endif
