// SPDX-License-Identifier: Apache-2.0
// Inside the checker: what its files share. Nobody outside lang/check*.c includes this.
//
// The checker walks the syntax tree once for each instance, computing for every expression a
// tk_value, and building the checked tree as it goes. In general checking (compile-time parameters
// unbound) the same walk is done and the tree is thrown away: values then have dependent types
// (TK_DTYPE_DEP, TK_DIM_DEP) or dependent constants (dep). A rule that meets something dependent
// accepts whatever could be right, and gives a result that depends.
//
// An error gives a value of kind TK_V_ERROR; rules that get one return one silently, so each fault
// is reported once.
#ifndef TK_LANG_CHECK_INTERNAL_H
#define TK_LANG_CHECK_INTERNAL_H

#include "lang/check.h"

typedef enum {
    TK_V_ERROR,
    TK_V_VALUE,  // scalar or tile; perhaps a compile-time constant
    TK_V_VIEW,   // an indexed tensor, not read yet
    TK_V_TENSOR, // a whole tensor: may be indexed, or passed to a function
    TK_V_TYPE,   // f32, T: an argument
    TK_V_FN,     // a function as a compile-time value
    TK_V_LIST,   // [BM, BN]
    TK_V_TUPLE,  // (a, b), or the results of a call
    TK_V_VOID,   // call of a function without result
    TK_V_NAME,   // a bare identifier that is no variable: precision = tf32, order = relaxed
} tk_vkind;

// A compile-time number. Untyped constants are folded in i64 or f64; `big` marks an integer literal
// above 2^63-1, which only a u64 can hold.
typedef struct tk_number {
    bool is_float;
    bool is_bool;
    bool big;
    int64_t i; // also bool; for `big` the bits of the u64
    double f;
} tk_number;

struct tk_fnval; // a function with the environment in which its body is resolved

typedef struct tk_value {
    tk_vkind kind;
    tk_span span;
    const tk_type
        *type;     // VALUE (untyped: i32, f32, bool: the type it takes alone), VIEW, TENSOR, TUPLE
    bool varying;  // VALUE, VIEW: depends on an element of the lifted call (see lang/tree.h)
    bool is_const; // VALUE: known at compile time (scalar)
    bool untyped;  // is_const: takes the type of the other operand
    bool
        dep; // is_const, but its value depends on an unbound parameter; or a TYPE/FN/LIST that does
    tk_number num; // is_const and not dep
    tk_x *x; // VALUE, VOID, TUPLE from a call: the checked expression; NULL for untyped constants
             // until tk_materialize
    tk_view *view;             // VIEW
    const tk_expr *other;      // VIEW: its `else`, checked when it is read
    tk_var *var;               // TENSOR; VALUE that is a plain variable
    tk_dtype dtype;            // TYPE
    const struct tk_fnval *fn; // FN
    const char *name;          // NAME
    uint32_t n;                // LIST, TUPLE
    struct tk_value *item;
} tk_value;

typedef struct tk_checker
    tk_checker; // one walk of one unit; defined in check_core.h by the core's owner
tk_arena *tk_checker_arena(tk_checker *c);
tk_diags *tk_checker_diags(tk_checker *c);
bool tk_checker_general(const tk_checker *c); // parameters unbound
bool tk_checker_lifted(
    const tk_checker *c); // inside a lifted instance (a combine of reduce or scan too)
// In a branch that only some bindings of the compile-time parameters take (general checking).
bool tk_checker_conditional(const tk_checker *c);
// The number of grid axes of the kernel being checked (0 without `grid`); -1 where it is not known:
// a function in general checking.
int tk_checker_grid(const tk_checker *c);

// ---- Errors. All add the notes "called from here" for the calls that led to the place.
tk_value tk_err(tk_checker *c, tk_span at, const char *id, const char *fmt, ...) TK_PRINTF(4, 5);
// Like tk_err, but gives the diagnostic so that notes and helps can be added.
tk_diag *tk_err_diag(tk_checker *c, tk_span at, const char *id, const char *fmt, ...)
    TK_PRINTF(4, 5);
tk_diag *tk_warn_diag(tk_checker *c, tk_span at, const char *id, const char *fmt, ...)
    TK_PRINTF(4, 5);
tk_value tk_error_value(tk_span at);
// The source text of a span on one line, or NULL where it is long or spans lines.
const char *tk_source_text(tk_checker *c, tk_span at);

// ---- Values
tk_value tk_make_value(tk_checker *c, tk_x *x);             // a run-time value
tk_value tk_make_int(tk_checker *c, tk_span at, int64_t i); // an untyped constant
tk_value tk_type_value(tk_span at, tk_dtype t);
tk_value tk_make_bits(tk_checker *c, tk_span at, tk_dtype t); // likewise, of an element
tk_value tk_make_const(tk_checker *c, tk_span at,
                       tk_const k);                       // a typed constant, with its CONST node
tk_value tk_make_bool(tk_checker *c, tk_span at, bool b); // bool constant
tk_value
tk_make_dep(tk_checker *c, tk_span at,
            const tk_type *type); // run-time value of a (perhaps dependent) type, general checking
// New tree nodes.
tk_x *tk_x_new(tk_checker *c, tk_xkind kind, tk_span at, const tk_type *type, uint32_t narg);
tk_x *tk_x_elem(tk_checker *c, tk_span at, tk_numop op, const tk_type *type, tk_x *a, tk_x *b,
                tk_x *d);
tk_x *tk_x_cast(tk_checker *c, tk_span at, tk_dtype to, tk_x *x); // no node where it has that type

// Checks an expression. Reading a view happens here only through tk_read.
tk_value tk_check_expr(tk_checker *c, const tk_expr *e);
// A value to compute with: reads a view (a LOAD; an `out` tensor is an error), unwraps nothing
// else; anything that is no scalar or tile is an error that says what was found ("'x' is a tensor:
// index it").
tk_value tk_read(tk_checker *c, tk_value v);
tk_value tk_check_value(tk_checker *c, const tk_expr *e); // tk_read(tk_check_expr(e))
// The node of a scalar or tile value; an untyped constant takes its default type (i32, f32).
tk_x *tk_materialize(tk_checker *c, tk_value v);
// Converts implicitly to an element type: untyped constants by LANGUAGE.md section 3 (errors where
// the type cannot hold them), integer widening; everything else that differs is an error whose help
// shows the cast. `what` names the place: "operand", "argument 'x'".
tk_value tk_coerce(tk_checker *c, tk_value v, tk_dtype to, const char *what);
// The common element type of operands (untyped constants follow the others; ints widen), each
// coerced to it. False after an error (already reported). op_text names the operation in messages.
bool tk_unify(tk_checker *c, tk_span at, const char *op_text, uint32_t n, tk_value *v);
// The common shape of n scalar or tile values as the type with element type `d`; NULL after an
// error that prints both shapes.
const tk_type *tk_common_shape(tk_checker *c, tk_span at, const char *op_text, uint32_t n,
                               const tk_value *v, tk_dtype d);
// Element-wise operation: checks classes of numops.def (with the help to cast where a narrow float
// is not taken), unifies, broadcasts, folds constants where EXACT (untyped ones in i64/f64), and
// builds the ELEM. `text` names the operation as the user wrote it ("+", "exp").
tk_value tk_elem(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                 const tk_value *v);
tk_value tk_cast_value(tk_checker *c, tk_span at, tk_dtype to, tk_value v); // explicit cast
// A shape argument: [a, b, ..] of compile-time integers, rank 1..5, each >= 1, elements <=
// TK_MAX_TILE_ELEMS. False after an error. A dependent extent is TK_DIM_DEP. A single integer is
// accepted as a shape of rank 1 nowhere: `shape` is a list.
bool tk_shape_arg(tk_checker *c, const tk_expr *e, unsigned *rank, int64_t *dim);
// Compile-time integer; *dep tells that it depends (then *out is 0). what: "axis", "extent". False
// after an error.
bool tk_const_int(tk_checker *c, tk_value v, const char *what, int64_t *out, bool *dep);
// (The name tk_const_bool is the numerics'.)
bool tk_const_truth(tk_checker *c, tk_value v, const char *what, bool *out, bool *dep);
// Resolves and instantiates a function value for a combine of reduce/scan: it gets 2m scalars of
// the given element types and must give m values of the same types. NULL after an error, or in
// general checking when something depends.
struct tk_inst *tk_combine_instance(tk_checker *c, tk_span at, tk_value f, uint32_t m,
                                    const tk_dtype *types);

// ---- Built-in calls (check_builtin*.c)

// Finds a built-in by name;
// TK_BI_COUNT and *elem = TK_NUM_COUNT where there is none. A row TK_BUILTIN_ELEM gives *elem.
tk_builtin tk_find_builtin(const char *name, tk_numop *elem);
// All names of built-ins, for "did you mean".
const char *const *tk_builtin_names(size_t *n);
// Checks a call of a built-in: argument names and count by its signature, then its rule.
tk_value tk_check_builtin(tk_checker *c, const tk_expr *call, tk_builtin id, tk_numop elem);
// Whether the language takes an attribute of that name where a compile-time parameter is "given":
// see core.
tk_value tk_check_given(tk_checker *c, const tk_expr *call); // core: given(x)

#endif
