// SPDX-License-Identifier: Apache-2.0
// The fake cuBLASLt's other side: what tests set and see. The library that tests/fake_cublas.c
// makes exports cuBLASLt's functions and `fake_cublas_state *fake_cublas(void)`.
#ifndef FAKE_CUBLAS_H
#define FAKE_CUBLAS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fake_cublas_state {
    // Set by tests.
    long fail_at; // the n-th call from now on fails (1 is the next); 0: none
    int fail_code;
    size_t workspace;                // that each algorithm needs
    bool needs_tn;                   // for f8 and i8: A transposed and B not
    void (*on_call)(const char *fn); // may be NULL

    // Seen by tests.
    long calls, choices, products;
    long live;            // handles and descriptors
    char complaint[256];  // what the real one would not take, the first; "": nothing
    void *stream, *space; // of the last product
    bool read_c;
    int compute, epilogue;
} fake_cublas_state;

fake_cublas_state *fake_cublas(void);

#endif
