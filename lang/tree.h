// SPDX-License-Identifier: Apache-2.0
// The checked program: what the checker makes of one kernel with all compile-time parameters bound.
//
// A tk_program is a list of instances, callees before callers, the kernel last. An instance is one
// function for one set of compile-time arguments and argument types; it is monomorphic: every
// expression has a known type, every conversion is an explicit CAST, compile-time ifs are gone,
// function parameters are resolved. The tree is const once made.
//
// Element-wise functions ("lifting"). A function written on scalars and called with tiles is
// checked on scalars; its instance then has lifted = true and the common shape of the call (lift).
// Inside it an expression or variable is `varying` when it depends on an element: its type here is
// the scalar type, and stands for a tile of the lift shape. Whatever is not varying is a plain
// scalar, the same for all elements. The combine functions of reduce and scan are instances with
// lifted = true and rank 0: their body then has no element-dependent control flow left after the
// choice is made. An IF whose condition is varying has no loops, break or continue inside;
// `return`, assignments, stores, atomics and asserts inside it take effect only for the elements
// that get there.
//
// Values of tiles broadcast: operands of ELEM, the value of a STORE, `else` and masks may have a
// smaller shape than the result (NumPy's rule); the builder stretches them.
//
// Captures. An anonymous function given to a kernel specialisation may use the kernel's parameters.
// An instance lists in `captures` the kernel parameters that it or its callees use; they are passed
// along at every call.
#ifndef TK_LANG_TREE_H
#define TK_LANG_TREE_H

#include "lang/ast.h"
#include "lang/num.h"
#include "lang/type.h"

typedef enum {
#define TK_BUILTIN(ID, NAME, RULE, SIGNATURE, DOC) TK_BI_##ID,
#define TK_BUILTIN_ELEM(ID, SIGNATURE, DOC)
#include "lang/builtins.def"
    TK_BI_COUNT
} tk_builtin;

typedef enum {
    TK_VAR_LOCAL, // let, var, results of a call
    TK_VAR_LOOP,  // the variable of a for; immutable
    TK_VAR_PARAM, // parameter of the instance: scalar, tile or tensor
    TK_VAR_GRID,  // a name of the grid: i32, the program's place along that axis
} tk_var_kind;

typedef struct tk_var {
    const char *name;
    tk_span span;
    tk_var_kind kind;
    const tk_type *type;
    bool is_mutable;             // declared with var
    bool varying;                // see above
    bool is_given;               // PARAM of a kernel: false for an optional one that is not given
    uint32_t index;              // PARAM: position; GRID: axis
    const struct tk_inst *owner; // PARAM: whose parameter
    struct tk_var_size *size;    // PARAM, a tensor: one a dimension; NULL: all are its own
} tk_var;

// A dimension whose name is that of an earlier one, maybe of the same tensor: both have one size.
typedef struct tk_var_size {
    const tk_var *var; // NULL: its own
    uint32_t axis;
} tk_var_size;

// ---- Expressions
typedef enum { TK_ORDER_RELAXED, TK_ORDER_ACQUIRE, TK_ORDER_RELEASE, TK_ORDER_ACQ_REL } tk_order;
typedef enum { TK_SCOPE_DEVICE, TK_SCOPE_BLOCK, TK_SCOPE_SYSTEM } tk_memscope;
typedef enum { TK_PREC_IEEE, TK_PREC_TF32, TK_PREC_TF32X3 } tk_precision;

typedef enum {
    TK_XI_SCALAR, // an integer scalar (or a varying one in a lifted function: then a gather index)
    TK_XI_RANGE,  // at +: count
    TK_XI_TILE,   // an integer tile
} tk_xindex_kind;

typedef struct tk_xindex {
    tk_xindex_kind kind;
    struct tk_x *at;   // any integer type, not cast: a u64 above 2^63 is simply outside
    int64_t count;     // RANGE
    struct tk_x *mask; // bool, broadcasts to the entry's shape; or NULL
} tk_xindex;

// tensor[entries]: one entry per dimension. Result shape: RANGE gives its count in place; a single
// TILE index keeps its place with the tile's shape put there; two or more tile indices broadcast
// together and their common shape comes first; SCALAR drops the dimension. `type` is the value read
// (scalar or tile). In a lifted function varying SCALAR entries are the only ones that depend on
// the element, no RANGE or TILE stands beside them, and the result is a varying scalar.
typedef struct tk_view {
    tk_var *tensor;
    tk_span span;
    const tk_type *type;
    bool varying;
    uint32_t n;
    tk_xindex *entry;
} tk_view;

typedef enum {
    TK_X_CONST, // scalar constant
    TK_X_VAR,
    TK_X_DIM,   // size of a tensor parameter's dimension: i32
    TK_X_ELEM,  // element-wise op of lang/numops.def
    TK_X_CAST,  // to type->dtype
    TK_X_LOGIC, // && or || of scalars that are not varying: short-circuit
    TK_X_BUILTIN,
    TK_X_CALL,
    TK_X_LOAD,
    TK_X_ATOMIC,
} tk_xkind;

// Results of X_BUILTIN: one value; or a tuple (SPLIT, DEINTERLEAVE, TOPK, PHILOX, REDUCE and SCAN
// of several operands). Operands by built-in, in this order in `arg` (m = number of tiles reduced
// together):
//   ZEROS, IOTA: none   FULL: value (scalar)   RESHAPE PERMUTE TRANSPOSE BROADCAST SPLIT
//   DEINTERLEAVE FLIP SLICE: x CONCAT, INTERLEAVE: x, y   GATHER: x, index   BITCAST: x
//   SUM..ARGMIN, MIN/MAX as reductions, CUMSUM..CUMMIN: x REDUCE: x1..xm   SCAN: x1..xm, then
//   init1..initm where exclusive   SORT TOPK HISTOGRAM: x DOT: a, b [, acc]   DOT_SCALED: a, sa, b,
//   sb [, acc]   PHILOX RAND RANDN: seed (scalar), offset PROGRAM_ID NUM_PROGRAMS: none   ASSERT
//   ASSUME: cond   PRINT: values (WHERE, FMIN, FMAX, CLAMP, MIN/MAX of several operands become
//   ELEM; GIVEN and STATIC_ASSERT are gone)
// sum and prod of narrow types: `x` is already cast to the type computed in (f32 for narrow floats,
// i32/u32 for narrow integers and bool) and, for floats, the whole is wrapped in a CAST back.
// Likewise CUMSUM and CUMPROD.
typedef struct tk_xattr {
    int axis; // >= 0; TK_AXIS_ALL: all elements, result a scalar
    bool reverse, exclusive, descending;
    int64_t n;                 // IOTA n, SLICE n, TOPK k, HISTOGRAM bins, PROGRAM_ID axis
    int64_t start;             // SLICE
    uint8_t perm[TK_MAX_RANK]; // PERMUTE
    tk_precision precision;
    tk_order order;
    tk_memscope scope;
    struct tk_inst *fn; // REDUCE, SCAN: takes 2m scalars, gives m
    const char *text;   // ASSERT, PRINT; NULL for an assert without text
} tk_xattr;
#define TK_AXIS_ALL (-1)

typedef struct tk_x {
    tk_xkind kind;
    tk_span span;
    const tk_type *type; // VALUE, TUPLE or VOID
    bool varying;
    uint32_t n; // operands in arg
    struct tk_x **arg;
    union {
        tk_const konst; // CONST
        tk_var *var;    // VAR
        struct {
            tk_var *tensor;
            uint32_t axis;
        } dim;
        tk_numop elem; // ELEM: arity operands; for SELECT c, a, b
        bool is_or;    // LOGIC
        struct {
            tk_builtin id;
            tk_xattr attr;
        } builtin;
        struct { // CALL: arg holds the arguments that are values (scalars and tiles); tensors are
                 // in `tensor`
            struct tk_inst *inst;
            tk_var *
                *tensor; // one per parameter of inst: the tensor passed, or NULL where arg is used
        } call;
        struct {
            tk_view *view;
            struct tk_x *other; // else, or NULL
        } load;
        struct { // ATOMIC: arg[0] value, or expected and value for CAS
            tk_builtin id;
            tk_view *view;
            tk_order order;
            tk_memscope scope;
        } atomic;
    } u;
} tk_x;

// ---- Statements
typedef enum {
    TK_XS_LET, // binds var[0..nvar) to the value, or to the parts of a tuple; also declares a `var`
    TK_XS_ASSIGN, // var[0] = value
    TK_XS_STORE,  // view = value
    TK_XS_EXPR,   // for its effect
    TK_XS_IF,
    TK_XS_FOR,
    TK_XS_WHILE,
    TK_XS_BREAK,
    TK_XS_CONTINUE,
    TK_XS_RETURN,
    TK_XS_BLOCK,
} tk_xs_kind;

typedef struct tk_xblock {
    TK_VEC(struct tk_xs *) list;
} tk_xblock;

typedef struct tk_xs {
    tk_xs_kind kind;
    tk_span span;
    uint32_t nvar;
    tk_var **var;             // LET, ASSIGN; FOR: var[0] is the loop variable
    tk_x *value;              // LET, ASSIGN, STORE, EXPR; IF, WHILE: the condition (bool)
    tk_view *view;            // STORE
    tk_x *from, *to, *step;   // FOR: all of the loop variable's type (i32, i64, u32 or u64)
    int64_t pipeline, unroll; // FOR, WHILE: 0 = not written
    tk_xblock *body;          // FOR, WHILE, BLOCK; IF: then
    tk_xblock *other;         // IF: else, or NULL
    uint32_t nresult;
    tk_x **result; // RETURN
} tk_xs;

// ---- Instances and the program
enum { TK_FAST_CONTRACT = 1, TK_FAST_APPROX = 2, TK_FAST_FTZ = 4 };

typedef struct tk_inst {
    const char *name; // unique in the program: "gelu", "gelu.1"
    const tk_fn *fn;
    bool is_kernel;
    bool lifted;
    uint8_t lift_rank;
    int64_t lift[TK_MAX_RANK];
    unsigned fast; // TK_FAST_* of its own attribute, or its caller's where it has none
    TK_VEC(tk_var *) params;
    TK_VEC(tk_var *) captures; // kernel parameters used, passed after params at every call
    uint32_t nresult;
    const tk_type **result; // types as declared (scalar where lifted)
    tk_xblock *body;
} tk_inst;

// Attributes of a kernel after checking; 0 or false where not written.
typedef struct tk_kernel_attrs {
    int64_t warps, stages, cluster;
    bool persistent;
    int64_t producers, consumers;
    // Where they are written.
    bool stages_tuned; // `stages` is the first number of a set of @tune
    tk_span warps_span, stages_span, cluster_span, specialize_span, tune_span;
    TK_VEC(const char *) tuned;   // what @tune has a set of, and
    TK_VEC(int64_t) tuned_value;  // of a kernel with bound parameters, what is taken
    TK_VEC(const char *) require; // "tensor_cores", "max_registers"
    TK_VEC(int64_t) require_arg;  // its number, or -1
    TK_VEC(tk_span) require_span;
} tk_kernel_attrs;

typedef struct tk_program {
    TK_VEC(tk_inst *) insts; // callees first; the kernel is the last
    tk_inst *kernel;
    uint32_t ngrid;
    tk_x **grid; // i32 scalars over DIM, CONST, scalar parameters and ELEM; empty: one program
    tk_var **grid_var;
    tk_kernel_attrs attrs;
    const char *key; // "T=f32,BN=1024": the compile-time parameters bound, and which optional ones
                     // are given
} tk_program;

const char *tk_builtin_name(tk_builtin b);
const char *tk_builtin_signature(tk_builtin b);

// Calls f(user, x) for x and everything below it, operands first.
void tk_x_walk(tk_x *x, void (*f)(void *user, tk_x *x), void *user);

#endif
