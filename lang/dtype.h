// SPDX-License-Identifier: Apache-2.0
//
// Element types: the enum made from dtypes.def, and what can be asked about one type or a pair.
//
// A tk_dtype is one of the types of the list or TK_DTYPE_DEP, which stands for a type that depends
// on a compile-time parameter that is not bound yet. TK_DTYPE_COUNT is the number of the list's
// types and never a type. Every function below accepts any value of the enum: of a value that is
// not in the list the size and bits are 0 and every question is answered with false.
#ifndef TK_LANG_DTYPE_H
#define TK_LANG_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tk_dtype {
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE) TK_##ID,
#include "lang/dtypes.def"
    TK_DTYPE_COUNT,
    TK_DTYPE_DEP
} tk_dtype;

typedef enum tk_dclass {
    TK_CLASS_NONE, // TK_DTYPE_COUNT and TK_DTYPE_DEP
    TK_CLASS_BOOL,
    TK_CLASS_SINT,
    TK_CLASS_UINT,
    TK_CLASS_FLOAT
} tk_dclass;

// The spelling in the language; "?" for TK_DTYPE_DEP and for what is no type.
const char *tk_dtype_name(tk_dtype t);
tk_dclass tk_dtype_class(tk_dtype t);
size_t tk_dtype_size(tk_dtype t);          // bytes of an element in memory
unsigned tk_dtype_bits(tk_dtype t);        // the width: 8 * size, also for bool
bool tk_dtype_is_int(tk_dtype t);          // signed or unsigned integer; not bool
bool tk_dtype_is_signed(tk_dtype t);       // signed integer; not floats
bool tk_dtype_is_float(tk_dtype t);        // any float
bool tk_dtype_is_narrow_float(tk_dtype t); // a float of fewer than 32 bits

// Finds the type spelled by the n bytes at name; *out is written only where the answer is true.
bool tk_dtype_from_name(const char *name, size_t n, tk_dtype *out);

// Implicit widening: both are integers, they differ, and every value of `from` is one of `to`.
bool tk_dtype_widens(tk_dtype from, tk_dtype to);

#endif
