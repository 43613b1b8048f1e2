// SPDX-License-Identifier: Apache-2.0
// The checker's own state: scopes, functions as values, frames of the walk, item tables, kernel
// definitions. Included by lang/check_*.c of the core only.
//
// Names. A scope is a list of bindings; a chain of scopes ends in a file's scope (up == NULL),
// behind which stand the file's items, those of the files that it imports, the element types and
// the built-in functions. A binding holds the value that the name stands for: a constant, a type, a
// function, a variable's node. Names are compared as text, since a -D value may come from another
// table of names.
//
// Frames. One function that is being walked, for one set of compile-time arguments. The root frame
// (fn == NULL) evaluates constants and bindings.
#ifndef TK_LANG_CHECK_CORE_H
#define TK_LANG_CHECK_CORE_H

#include "lang/check_internal.h"

enum {
    TK_MAX_CALLS = 200,       // nesting of functions
    TK_MAX_INSTANCES = 20000, // of one program
    TK_MAX_WALK = 1200,       // nesting of expressions and statements over all frames
};

typedef struct tk_binding {
    const char *name;
    tk_span span;
    tk_value value;
    bool far; // of another function's text: may be hidden
    struct tk_binding *next;
} tk_binding;

typedef struct tk_scope {
    struct tk_scope *up; // NULL: the scope of a file
    uint32_t file;
    tk_binding *list; // newest first
} tk_scope;

// ---- Functions as values --------------------------------------------------------------------
typedef struct tk_sig {
    uint32_t n;
    const tk_type **arg;
    const tk_type *result; // VOID, VALUE or TUPLE
} tk_sig;

typedef enum {
    TK_FV_CODE,    // an item or an anonymous function
    TK_FV_SAME,    // gives its first argument
    TK_FV_ALWAYS,  // gives true
    TK_FV_BUILTIN, // an element-wise built-in
    TK_FV_DEP,     // an unbound function parameter: only its signature is known
} tk_fv_kind;

struct tk_fnval {
    tk_fv_kind kind;
    const char *name;     // as shown
    const tk_fn *fn;      // CODE
    tk_scope *env;        // CODE: where its body's names are looked up
    const tk_inst *owner; // CODE: of an anonymous function, the instance that it stands in
    tk_builtin builtin;   // BUILTIN
    tk_numop elem;
    const tk_sig *sig; // once it is the value of a function parameter
};
typedef struct tk_fnval tk_fnval;

// ---- Frames ---------------------------------------------------------------------------------
typedef struct tk_frame {
    struct tk_frame *up;
    tk_span call; // where it was called
    const tk_fn *fn;
    const char *name; // as shown
    const char *key;
    tk_inst *inst;
    bool general;
    const tk_type *result;
    tk_xblock *block; // where statements go
    unsigned loops;
    unsigned varying_ifs;    // element-dependent ifs around
    unsigned conditional;    // branches around that only some bindings take
    TK_VEC(tk_span) varying; // declarations of variables that turned out to vary
    bool breaks;             // the innermost loop has a break
    bool ends_by_constant;   // control left in the branch that a constant chose
    bool again;              // one did after it was used: the body is walked again
} tk_frame;

typedef struct tk_inst_slot {
    const char *key; // NULL: free
    tk_inst *inst;
} tk_inst_slot;

struct tk_checker {
    tk_arena *arena;
    tk_diags *diags;
    const tk_unit *unit;
    struct tk_scope_table *table;
    tk_frame root;
    tk_frame *frame;
    tk_scope *scope;
    tk_inst *kernel;     // whose parameters anonymous functions may use
    uint32_t ngrid;      // axes of the kernel's grid
    const tk_fn *later;  // while a default is evaluated: whose compile-time parameters ...
    uint32_t later_from; // ... from this one on are not bound yet
    tk_inst_slot *slot;
    uint32_t slots, insts;
    uint32_t calls, walk;
    bool failed;                  // an error was found, reported now or before
    bool too_deep;                // said once
    bool compound;                // the operation is that of an assignment, as +=
    TK_VEC(const tk_var *) maybe; // in general checking: optional parameters, perhaps given
};

void tk_checker_init(tk_checker *c, tk_arena *arena, const tk_unit *unit, tk_diags *diags,
                     bool general);

// ---- Items ----------------------------------------------------------------------------------
typedef struct tk_entry {
    const char *name;
    const tk_item *item;
    uint32_t file;
    int state;      // CONST: 0 not evaluated, 1 in work, 2 done
    tk_value value; // CONST
} tk_entry;

typedef struct tk_file_table {
    tk_scope scope;
    TK_VEC(tk_entry *) own;
    TK_VEC(tk_entry *) visible; // own, then those of direct imports
    tk_entry **slot;            // the same, hashed by name
    uint32_t slots;             // a power of two, or 0
} tk_file_table;

struct tk_scope_table {
    uint32_t n;
    tk_file_table *file;
};

uint32_t tk_hash(const char *s);
tk_entry *tk_find_entry(const tk_checker *c, uint32_t file, const char *name);
tk_value tk_entry_const(tk_checker *c, tk_entry *e, tk_span at);
bool tk_same_name(const char *a, const char *b);

// ---- Scopes ---------------------------------------------------------------------------------
tk_scope *tk_scope_push(tk_checker *c);              // a new inner scope, made current
tk_scope *tk_scope_new(tk_checker *c, tk_scope *up); // not made current
tk_scope *tk_scope_snapshot(tk_checker *c, const tk_scope *s);
tk_binding *tk_scope_find(const tk_scope *s, const char *name); // in the chain, without items
// Binds a name in scope s; an error where it is bound already, here or outside.
bool tk_bind_name(tk_checker *c, tk_scope *s, tk_ident id, tk_value v);
void tk_bind_quietly(tk_checker *c, tk_scope *s, tk_ident id, tk_value v);
void tk_unknown_name(tk_checker *c, tk_span at, const char *name, const char *what);
bool tk_in_gaps(const tk_checker *c, tk_span at); // within an item some of which did not parse
bool tk_name_is_free(tk_checker *c, tk_ident id); // no word of the language; reported

// ---- Texts ----------------------------------------------------------------------------------

// The source text of a span on one line, or NULL where it is long or spans lines.
const char *tk_source_text(tk_checker *c, tk_span at);
tk_span tk_span_join(tk_span a, tk_span b);
const char *tk_number_text(tk_checker *c, tk_number n);
const char *tk_value_what(tk_checker *c, tk_value v); // "a tensor", "a type"
const char *tk_ast_type_text(tk_checker *c, const tk_ast_type *t);
const char *tk_expr_text(tk_checker *c, const tk_expr *e);
void tk_call_notes(tk_checker *c, tk_diag *d);

// ---- Values ---------------------------------------------------------------------------------
tk_value tk_check_known(tk_checker *c, const tk_expr *e); // tk_check_expr; unknown names reported
tk_value tk_check_name(tk_checker *c, tk_span at, const char *name);
tk_value tk_var_value(tk_checker *c, tk_span at, tk_var *var);
tk_value tk_dim_value(tk_checker *c, tk_span at, tk_var *tensor, uint32_t axis);
tk_value tk_make_number(tk_checker *c, tk_span at, tk_number n, bool dep); // untyped
tk_value tk_dep_const(tk_checker *c, tk_span at, tk_dtype t, bool untyped);
tk_value tk_fn_value(tk_span at, const tk_fnval *fv);
tk_const tk_number_const(tk_number n); // as i64, u64, f64 or bool
tk_number tk_const_number(tk_const k);
tk_value tk_fold_untyped(tk_checker *c, tk_span at, tk_numop op, const char *text, uint32_t n,
                         const tk_value *v);
tk_value tk_binary_value(tk_checker *c, tk_span at, tk_binop op, tk_value x, tk_value y);
const char *tk_cast_help(tk_checker *c, tk_span whole, tk_span part, const char *type);
bool tk_is_known_const(tk_value v); // a compile-time number whose value is known
// A shape's extents, each checked; tk_shape_ok: not too many elements.
bool tk_shape_list(tk_checker *c, tk_span at, uint32_t n, tk_expr *const *e, unsigned *rank,
                   int64_t *dim);
bool tk_shape_ok(tk_checker *c, tk_span at, unsigned rank, const int64_t *dim);
tk_var *tk_var_new(tk_checker *c, tk_var_kind kind, tk_ident id, const tk_type *type);
const tk_type *tk_scalar(tk_checker *c, tk_dtype t);

// ---- Types ----------------------------------------------------------------------------------
tk_dtype tk_resolve_dtype(tk_checker *c, tk_ident name); // TK_DTYPE_COUNT after an error
// A scalar or tile type as written, names looked up in c->scope. NULL after an error.
const tk_type *tk_resolve_type(tk_checker *c, const tk_ast_type *t);
// A function's result type: VOID, VALUE or TUPLE; NULL after an error.
const tk_type *tk_resolve_result(tk_checker *c, const tk_ast_type *t);
const tk_sig *tk_resolve_sig(tk_checker *c, const tk_ast_type *t);
// A tensor parameter's type; binds fresh dimension names in c->scope to `var`'s dimensions.
// `actual` (or NULL) has the sizes that the caller knows.
const tk_type *tk_resolve_tensor(tk_checker *c, const tk_ast_type *t, tk_var *var,
                                 const tk_type *actual);
// How a value of type `got` fits a place of type `want`, dependent parts accepted.
bool tk_shape_fits(const tk_type *want, const tk_type *got);
bool tk_dtype_fits(tk_dtype want, tk_dtype got);
// Converts v to type `want` implicitly (element type) with exactly its shape. An error value after
// an error.
tk_value tk_fit(tk_checker *c, tk_value v, const tk_type *want, const char *what);

// ---- Compile-time parameters ----------------------------------------------------------------
typedef enum { TK_CK_TYPE, TK_CK_INT, TK_CK_BOOL, TK_CK_FLOAT, TK_CK_FN, TK_CK_BAD } tk_ckind;
tk_ckind tk_cparam_kind(tk_checker *c, const tk_cparam *p, bool report);
// Makes `v` the value of parameter p: kind checked, function types resolved in c->scope and
// checked. An error value after an error.
tk_value tk_cparam_value(tk_checker *c, const tk_cparam *p, tk_value v);
tk_value tk_cparam_dep(tk_checker *c, const tk_cparam *p); // unbound
bool tk_cval_dep(tk_value v);
void tk_cval_text(tk_checker *c, tk_buf *b, tk_value v); // for keys and notes
bool tk_cval_eq(tk_value a, tk_value b);

// ---- Calls ----------------------------------------------------------------------------------
tk_value tk_check_call(tk_checker *c, const tk_expr *e);
// A call of function value fv, arguments as they are written.
tk_value tk_call_written(tk_checker *c, const tk_expr *e, const tk_fnval *fv);
// Checks a function value against a signature and returns it with that signature; NULL after an
// error.
const tk_fnval *tk_fn_with_sig(tk_checker *c, tk_span at, const tk_fnval *fv, const tk_sig *sig);
bool tk_is_maybe_given(const tk_checker *c, const tk_var *v);
tk_value tk_lambda_value(tk_checker *c, const tk_expr *e);
// A function item or lambda with every parameter unbound.
void tk_check_fn_general(tk_checker *c, const tk_fnval *fv);
// Notes that the current instance uses a kernel parameter.
void tk_add_capture(tk_checker *c, tk_var *var);

// One call on its way to an instance.
typedef struct tk_call {
    const tk_fnval *fv;
    const tk_fn *fn;
    tk_span at;
    tk_value *arg; // per parameter
    bool *has;
    tk_value *cval; // per compile-time parameter
    bool *chas;
    const char **from;    // per compile-time parameter: the parameter that it was inferred from
    const tk_type **type; // per parameter, resolved
    bool combine;         // for reduce or scan
    bool lifted, dep;
    unsigned lift_rank;
    int64_t lift[TK_MAX_RANK];
    const tk_type *result; // as declared
} tk_call;
void tk_call_init(tk_checker *c, tk_call *k, const tk_fnval *fv, tk_span at);
bool tk_call_infer(tk_checker *c, tk_call *k);          // compile-time parameters
bool tk_call_convert(tk_checker *c, tk_call *k);        // arguments, lifting, result
bool tk_call_recurses(tk_checker *c, const tk_call *k); // the function calls itself; reported
tk_inst *tk_call_instance(tk_checker *c, tk_call *k);
// A built-in, `same` or `always` with a signature of known scalars as code.
const tk_fnval *tk_fn_as_code(tk_checker *c, tk_span at, const tk_fnval *fv);
tk_scope *tk_call_scope(tk_checker *c, const tk_call *k);

// ---- Indexing, statements -------------------------------------------------------------------
tk_value tk_check_index(tk_checker *c, const tk_expr *e);
// True where control can reach the end of the block.
bool tk_check_block(tk_checker *c, const tk_block *b, bool own_scope);
void tk_check_simple(tk_checker *c, const tk_stmt *s); // let, var, assignment, call
void tk_check_return(tk_checker *c, const tk_stmt *s);
tk_xs *tk_emit(tk_checker *c, tk_xs_kind kind, tk_span at);
// Walks the body of the frame's function, again where a variable turned out to vary.
void tk_walk_body(tk_checker *c, tk_scope *params);
bool tk_walk_enter(tk_checker *c, tk_span at);
void tk_walk_leave(tk_checker *c);
bool tk_check_too_deep(tk_checker *c, tk_span at, const char *fmt_what);

// ---- Attributes -----------------------------------------------------------------------------
unsigned tk_fn_fast(tk_checker *c, const tk_fn *fn, unsigned outer); // @fastmath of a function
void tk_check_fn_attrs(tk_checker *c, const tk_fn *fn);
struct tk_kernel_def;
void tk_check_kernel_attrs(tk_checker *c, const struct tk_kernel_def *def, tk_kernel_attrs *out);
unsigned tk_kernel_fast(tk_checker *c, const struct tk_kernel_def *def);
// The first member of the @tune set of a name, or NULL.
const tk_expr *tk_tune_first(const struct tk_kernel_def *def, const char *name);

// ---- Kernels --------------------------------------------------------------------------------
typedef struct tk_alias {
    const tk_item *item;
    uint32_t file;
} tk_alias;

typedef struct tk_dim_use {
    tk_ident name;
    uint32_t param, axis;
} tk_dim_use;

typedef struct tk_fixed {
    const tk_expr *value; // NULL: open
    uint32_t alias;       // index into alias
    tk_span span;
} tk_fixed;

typedef struct tk_kernel_def {
    const char *name;
    const tk_item *item;
    const tk_fn *fn;        // with the body
    uint32_t file;          // of fn
    TK_VEC(tk_alias) alias; // from the name to the kernel: outermost first
    TK_VEC(const tk_param *) param;
    TK_VEC(uint32_t) param_file;
    TK_VEC(tk_dim_use) dim; // run-time dimensions, first use
    tk_fixed *fixed;        // per compile-time parameter
} tk_kernel_def;

// NULL after errors (reported where diags are wanted).
tk_kernel_def *tk_kernel_define(tk_checker *c, const tk_entry *e, bool report);

// A kernel's scopes with its compile-time parameters set to cval (one each, dependent where
// unbound): makes the kernel instance, its parameters' variables and the scopes of anonymous
// functions.
typedef struct tk_kenv {
    tk_inst *inst;
    tk_scope *scope;  // of the kernel's own body
    tk_scope **alias; // per alias: what its arguments see
    tk_value *cval;
    tk_frame frame; // made current by tk_kernel_env, left by tk_kernel_leave
    bool ok;
} tk_kenv;
// `given`: per parameter, NULL: in general (optional ones may or may not be).
// `expr`: per compile-time parameter, NULL or where a function value is to be evaluated again.
typedef struct tk_bound_fn {
    const tk_expr *expr;
    int where; // -2: not a function; -1: the root file; 0..: an alias; nalias: the kernel's scope
} tk_bound_fn;
void tk_kernel_env(tk_checker *c, const tk_kernel_def *def, tk_value *cval, const tk_bound_fn *fn,
                   const bool *given, tk_kenv *out);
void tk_kernel_leave(tk_checker *c, tk_kenv *env);
// The value of compile-time parameter j from e, which stands in `file`; dim: per run-time
// dimension, negative where unknown, or NULL.
tk_value tk_kernel_eval(tk_checker *c, const tk_kernel_def *def, uint32_t j, const tk_expr *e,
                        uint32_t file, const tk_value *cval, const int64_t *dim);
// Walks grid and body into out (or nowhere, in general).
void tk_kernel_walk(tk_checker *c, const tk_kernel_def *def, tk_kenv *env, tk_program *out);
void tk_check_kernel_general(tk_checker *c, const tk_kernel_def *def);

// How a compile-time parameter gets a value that it has not.
void tk_help_no_value(tk_checker *c, tk_diag *d, const tk_kernel_info *info, uint32_t j);

struct tk_bind_env {
    const tk_kernel_def *def;
    tk_value *cval;
    tk_bound_fn *fn;
    bool *given;
};

#endif
