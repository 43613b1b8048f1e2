// SPDX-License-Identifier: Apache-2.0
// Types of the checked program and of the IR.
//
// A type is a small immutable value in an arena, compared by structure with tk_type_eq. Scalars are
// tiles of rank 0. Extents of a tile are compile-time constants; extents of a tensor are constants
// or TK_DIM_DYN. While a generic body is checked without its compile-time parameters bound, an
// element type may be TK_DTYPE_DEP and an extent TK_DIM_DEP: "depends on a parameter, accept what
// could be right". No such type reaches the IR.
#ifndef TK_LANG_TYPE_H
#define TK_LANG_TYPE_H

#include "lang/base.h"
#include "lang/dtype.h"

enum {
    TK_MAX_RANK = 5,        // of a tile
    TK_MAX_TENSOR_RANK = 8, // of a tensor
    TK_MAX_GRID = 5,        // axes of a grid
};
#define TK_MAX_TILE_ELEMS                                                                          \
    ((int64_t)1 << 24)           // more elements in one tile is an error that names the limit
#define TK_DIM_DYN ((int64_t)-1) // a run-time size
#define TK_DIM_DEP ((int64_t)-2) // depends on an unbound compile-time parameter

typedef enum {
    TK_T_VOID,   // no value: calls of functions without result
    TK_T_VALUE,  // scalar (rank 0) or tile
    TK_T_TENSOR, // parameters only
    TK_T_TUPLE,  // several results; never stored in a variable
    TK_T_ERROR,  // an error was reported already: accept silently
} tk_tkind;

typedef enum { TK_IN = 1, TK_OUT = 2, TK_INOUT = 3 } tk_access;

typedef struct tk_type {
    tk_tkind kind;
    tk_dtype dtype;
    tk_access access; // tensor
    uint8_t rank;
    int64_t dim[TK_MAX_TENSOR_RANK];
    uint32_t n; // tuple
    const struct tk_type *const *elem;
} tk_type;

const tk_type *tk_type_scalar(tk_arena *a, tk_dtype t);
const tk_type *tk_type_tile(tk_arena *a, tk_dtype t, unsigned rank, const int64_t *dim);
const tk_type *tk_type_tensor(tk_arena *a, tk_dtype t, tk_access acc, unsigned rank,
                              const int64_t *dim);
const tk_type *tk_type_tuple(tk_arena *a, uint32_t n, const tk_type *const *elem);
const tk_type *tk_type_void(void);
const tk_type *tk_type_error(void);
// The same shape with another element type.
const tk_type *tk_type_with_dtype(tk_arena *a, const tk_type *t, tk_dtype d);
const tk_type *tk_type_with_shape(tk_arena *a, const tk_type *t, unsigned rank, const int64_t *dim);

bool tk_type_eq(const tk_type *a,
                const tk_type *b); // TK_DTYPE_DEP and TK_DIM_DEP equal only themselves
bool tk_type_is_scalar(const tk_type *t);
bool tk_type_is_tile(const tk_type *t);
bool tk_type_is_dep(const tk_type *t);   // element type or any extent depends
int64_t tk_type_elems(const tk_type *t); // of a tile with known extents; 1 for a scalar

// NumPy's rule: aligned at the right, 1 stretches; a dependent extent yields to a known one
// above 1. False where the shapes do not go together. `rank` and `dim` (TK_MAX_RANK) receive the
// result.
bool tk_broadcast(const tk_type *a, const tk_type *b, unsigned *rank, int64_t *dim);

// As written in the language: "f32[64, 128]", "in f16[?, 64]", "(f32, i32)", "?" for what depends.
void tk_type_print(tk_buf *out, const tk_type *t);
const char *tk_type_text(tk_arena *a, const tk_type *t);
const char *tk_shape_text(tk_arena *a, unsigned rank, const int64_t *dim); // "[64, 128]"

#endif
