// SPDX-License-Identifier: Apache-2.0
// --expect: an output against a .npy file; and the comparison of two tensors.
#ifndef TKC_TOOLS_EXPECT_H
#define TKC_TOOLS_EXPECT_H

#include "element.h"
#include "npy.h"
#include "program.h"

typedef struct expectation {
    const char *name; // of the output
    const char *path;
    double rtol, atol; // negative: by the output's type
    npy file;
} expectation;

// Of a command that has these options: stands in its settings behind `common`.
enum { EXPECT_MOST = 64 };
typedef struct expect_settings {
    expectation at[EXPECT_MOST];
    size_t n;
    bool has_rtol, has_atol; // before any --expect
    double rtol, atol;
} expect_settings;

bool expect_take(tool *t, void *settings, const char *value);
bool expect_take_rtol(tool *t, void *settings, const char *value);
bool expect_take_atol(tool *t, void *settings, const char *value);
#define EXPECT_OPTIONS                                                                             \
    {"--expect",  NULL,                                                                            \
     OPTION_CALL, "NAME=FILE.npy",                                                                 \
     0,           "compare an output: print the greatest errors, fail where they are too great",   \
     expect_take},                                                                                 \
        {"--rtol",                                                                                 \
         NULL,                                                                                     \
         OPTION_CALL,                                                                              \
         "R",                                                                                      \
         0,                                                                                        \
         "relative tolerance of the --expect before it, or else of all",                           \
         expect_take_rtol},                                                                        \
    {                                                                                              \
        "--atol", NULL, OPTION_CALL, "A", 0, "absolute tolerance, likewise; |x - e| <= A + R |e|", \
            expect_take_atol                                                                       \
    }

bool expect_read(tool *t, expect_settings *s); // the files; false after a message
// Whether each names an output, and none twice.
bool expect_check(tool *t, const expect_settings *s, const arguments *a);
expectation *expect_find(expect_settings *s, const char *name); // NULL: none
// Whether the file has the shape of x; false after a message.
bool expect_fits(tool *t, expectation *e, const tkc_tensor *x);
// Prints the greatest errors; a message and CODE_REFUSED where they are too great or shapes differ.
void expect_compare(tool *t, expectation *e, const tkc_tensor *x);

typedef struct worst_place {
    wide error;
    bool found;
    wide got, expected;
    int64_t index[TKC_MAX_RANK];
} worst_place;
typedef struct comparison {
    double rtol, atol;
    size_t count, bad, nans; // elements; those out of tolerance; those of x that are NaN
    worst_place absolute, relative;
} comparison;
// Tensors of one shape. Tolerances below 0: by x's type.
comparison tensor_compare(const tkc_tensor *x, const tkc_tensor *y, double rtol, double atol);

#endif
