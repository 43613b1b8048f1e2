// SPDX-License-Identifier: Apache-2.0
// The checker: names, types, shapes, compile-time parameters; from syntax trees to a checked
// program.
//
// A unit is a root file and what it imports, each parsed once (loading is the caller's: lang/ reads
// no files). Items are visible in their own file and in files that import it directly.
// tk_check_unit checks everything in general, with compile-time parameters unbound: what is wrong
// whatever they are is reported there. A kernel is then bound (tk_bind) to what is known of its
// arguments and instantiated (tk_instantiate), which finds the rest. Both run the same code;
// general checking works with types and values that "depend" (TK_DTYPE_DEP, TK_DIM_DEP).
//
// Everything is allocated in the arena given; nothing outlives it. No function here is thread-safe
// on one unit except through different arenas after tk_check_unit: a checked unit is const and may
// be bound and instantiated by many threads at once, each with its own arena and diagnostics.
#ifndef TK_LANG_CHECK_H
#define TK_LANG_CHECK_H

#include "lang/tree.h"

typedef struct tk_import {
    tk_span span;  // of the import item
    uint32_t file; // index into tk_unit.files
} tk_import;

typedef struct tk_unit_file {
    const tk_file *ast;
    TK_VEC(tk_import) imports;
    bool open; // an import failed, which was reported: more names may be meant than are seen
} tk_unit_file;

typedef struct tk_unit {
    const tk_sources *sources;
    tk_names *names; // const after tk_check_unit; a thread that interns more uses its own table:
                     // compare by strcmp then
    TK_VEC(tk_unit_file) files;   // files.at[0] is the root
    struct tk_scope_table *items; // made by tk_check_unit
} tk_unit;

// Builds the item tables (clashes of names are errors) and checks every item in general. Returns
// with diagnostics; a unit with errors must not be bound. Files with errors of syntax are checked
// as far as they parsed: what may follow from such an error is not reported.
void tk_check_unit(tk_arena *arena, tk_unit *unit, tk_diags *diags);

// ---- Reflection
typedef struct tk_kparam {
    const char *name;
    bool is_tensor;
    bool optional;     // "= none" or a default value
    tk_access access;  // tensor
    const char *dtype; // as written: "T", "f32"
    uint32_t rank;
    const char **dim; // as written: "M", "64", "D"
    tk_span span;
    bool has_default; // scalar with a default constant
    tk_const def;     // meaningful where its type does not depend on a parameter
} tk_kparam;

typedef struct tk_kcparam {
    const char *name;
    const char *kind; // "type", "int", "bool", "float", "fn(f32) -> f32"
    const char
        *value; // text of the default, or of what a specialisation fixes; NULL: must be bound
    bool fixed; // by a specialisation: may not be set again
    bool from_arguments; // a tensor's or scalar's declared type or dimension determines it
} tk_kcparam;

// A kernel as its user sees it: own or specialised.
typedef struct tk_kernel_info {
    const char *name;
    const tk_item *item;
    const tk_fn *fn; // the kernel with the body at the end of the chain of specialisations
    uint32_t nparam;
    tk_kparam *param; // the kernel's own, then those that specialisations add
    uint32_t ncparam;
    tk_kcparam *cparam;
    uint32_t ndim;
    const char **dim; // run-time dimension names in order of first appearance
    uint32_t ngrid;
    const char **grid; // names; their counts as written:
    const char **grid_count;
    struct tk_kernel_def *def; // the checker's own
    uint32_t warps;            // in place of what the kernel says; 0: what it says
} tk_kernel_info;

// All kernels of the root file (specialisations too), in order.
void tk_unit_kernels(tk_arena *arena, const tk_unit *unit, tk_kernel_info ***list, uint32_t *n);
// One by name: of the root file, or of a file that it imports. NULL where there is none.
tk_kernel_info *tk_unit_kernel(tk_arena *arena, const tk_unit *unit, const char *name);

// ---- Binding

// What
// is known of one argument. Sizes and element type may be unknown (an output still to be
// allocated).
typedef struct tk_arg_known {
    bool given; // false: absent; for an optional parameter "not given"
    bool has_dtype;
    tk_dtype dtype;
    bool has_shape; // tensors
    uint32_t rank;
    int64_t dim[TK_MAX_TENSOR_RANK];
} tk_arg_known;

typedef struct tk_named_expr {
    const char *name;
    const tk_expr *value; // resolved in the root file's scope
    tk_span span;
} tk_named_expr;

typedef struct tk_named_dim {
    const char *name;
    int64_t value;
} tk_named_dim;

typedef struct tk_bind_in {
    const tk_arg_known *arg; // one per info->param
    uint32_t ncarg;
    const tk_named_expr *carg; // -D NAME=VALUE and the like
    uint32_t ndim;
    const tk_named_dim *dim; // sizes given by name (--dim)
    bool partial; // true: dimensions and element types that stay unknown are no error (reflection,
                  // --emit with what there is)
    bool free_dims; // sizes that no compile-time parameter needs may stay unknown
} tk_bind_in;

typedef struct tk_bound {
    const tk_kernel_info *info;
    const char *key;         // see tk_program.key
    int64_t *dim;            // per info->dim: the size, or -1
    const tk_type **param;   // per parameter: the type with sizes filled in where known (TK_DIM_DYN
                             // where not); NULL where not given
    struct tk_bind_env *env; // the checker's own: values of the compile-time parameters
} tk_bound;

// Deduces compile-time parameters and dimensions from the arguments, then from `carg`, `dim` and
// the defaults, in this order of the signature. NULL after errors: disagreement of dimensions,
// wrong element types and ranks, parameters without a value, unknown or already fixed -D names
// (with "did you mean"), sizes of 2^31 or more.
tk_bound *tk_bind(tk_arena *arena, const tk_unit *unit, const tk_kernel_info *info,
                  const tk_bind_in *in, tk_diags *diags);

// The checked program of a bound kernel, or NULL after errors. Errors inside functions carry notes
// for the calls that led there.
tk_program *tk_instantiate(tk_arena *arena, const tk_unit *unit, const tk_bound *bound,
                           tk_diags *diags);

#endif
