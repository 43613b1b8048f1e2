// SPDX-License-Identifier: Apache-2.0
// --expect: an output against a .npy file.
#ifndef TKC_TOOLS_EXPECT_H
#define TKC_TOOLS_EXPECT_H

#include "npy.h"

typedef struct expectation {
    const char *name; // of the output
    const char *path;
    double rtol, atol; // negative: by the output's type
    npy file;
} expectation;

// Reads the file. False after a message.
bool expect_read(tool *t, expectation *e);
// Prints the greatest errors; a message and CODE_REFUSED where they are too great or shapes differ.
void expect_compare(tool *t, expectation *e, const tkc_tensor *x);

#endif
