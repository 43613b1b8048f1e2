// SPDX-License-Identifier: Apache-2.0
// ARRAY on the command line: FILE.npy, or randn(4,5), rand(4,5), randint(lo,hi,4,5), zeros(4,5),
// ones(4,5), full(v,4,5), iota(4,5), each with `:type` behind it or not.
#ifndef TKC_TOOLS_ARRAY_H
#define TKC_TOOLS_ARRAY_H

#include "npy.h"
#include "number.h"

typedef enum array_kind {
    ARRAY_FILE,
    ARRAY_RANDN,
    ARRAY_RAND,
    ARRAY_RANDINT,
    ARRAY_ZEROS,
    ARRAY_ONES,
    ARRAY_FULL,
    ARRAY_IOTA,
} array_kind;

typedef struct array {
    const char *name; // of the parameter
    const char *text; // as written, without the type
    array_kind kind;
    integer low, high; // randint
    bool is_integer;   // full: `low` holds the value, else `real` does
    double real;
    bool has_dtype;   // tensor.dtype is what the array is to have: written, or the file's
    bool some_f8;     // a file of f8, of which kind is not known yet
    tkc_dtype stored; // the file's
    size_t count;
    tkc_tensor tensor; // data NULL before array_make
} array;

// Parses; of a file reads the header, and with `data` the elements. False after a message.
bool array_parse(tool *t, const char *name, const char *text, bool data, array *out);
// Gives the array the element type (if it has none yet); messages where it cannot have it.
bool array_set_dtype(tool *t, array *a, tkc_dtype dtype);
// Makes the elements of an array with a type. The random streams of different names are independent
// of each other.
bool array_make(tool *t, array *a, uint64_t seed);

// ---- Kinds of element types
bool dtype_is_float(tkc_dtype t);
int dtype_digits(tkc_dtype t);            // bits of a float's significand
bool dtype_holds(tkc_dtype t, integer v); // exactly

#endif
