// SPDX-License-Identifier: Apache-2.0
// Inside the checking of built-in calls: what check_builtin*.c share.
//
// A call is first matched against the signature of its row in builtins.def (check_builtin.c):
// afterwards arg[i] is the expression given for parameter i, or NULL for an optional one that is
// not given. Then the rule of the row runs; a rule reads its arguments with the functions below,
// each of which reports what is wrong and tells so, and gives the value of the call.
//
// A rule reads all of its arguments before it gives up, so that independent faults are all
// reported.
#ifndef TK_LANG_CHECK_BUILTIN_H
#define TK_LANG_CHECK_BUILTIN_H

#include "lang/check_internal.h"

#include <string.h>

// How a built-in is typed: the column RULE of builtins.def. X(RULE, FUNCTION, MATCH, PLACE)
//   FUNCTION  the rule is tk_rule_FUNCTION
//   MATCH     SIG: the arguments are matched with the signature before it runs; OWN: by the rule
//   PLACE     ANY: may stand in a function that is applied element by element; TILE: it takes or
//             makes whole tiles
// clang-format off
#define TK_RULES(X)                              \
    /* check_builtin_make.c */                   \
    X(ZEROS,         zeros,         SIG, TILE)   \
    X(FULL,          full,          SIG, TILE)   \
    X(IOTA,          iota,          SIG, TILE)   \
    X(RESHAPE,       reshape,       SIG, TILE)   \
    X(PERMUTE,       permute,       SIG, TILE)   \
    X(TRANSPOSE,     transpose,     SIG, TILE)   \
    X(BROADCAST,     broadcast,     SIG, TILE)   \
    /* check_builtin_shape.c */                  \
    X(CONCAT,        concat,        SIG, TILE)   \
    X(SPLIT,         split,         SIG, TILE)   \
    X(INTERLEAVE,    interleave,    SIG, TILE)   \
    X(DEINTERLEAVE,  deinterleave,  SIG, TILE)   \
    X(FLIP,          flip,          SIG, TILE)   \
    X(SLICE,         slice,         SIG, TILE)   \
    X(GATHER,        gather,        SIG, TILE)   \
    /* check_builtin_elem.c */                   \
    X(WHERE,         where,         SIG, ANY)    \
    X(MINMAX,        minmax,        OWN, ANY)    \
    X(FMINMAX,       fold,          OWN, ANY)    \
    X(CLAMP,         clamp,         SIG, ANY)    \
    X(BITCAST,       bitcast,       SIG, ANY)    \
    X(ELEM,          elem,          SIG, ANY)    \
    /* check_builtin_reduce.c */                 \
    X(REDUCE,        reduce,        SIG, TILE)   \
    X(ARGREDUCE,     argreduce,     SIG, TILE)   \
    X(SCAN,          scan,          SIG, TILE)   \
    X(SORT,          sort,          SIG, TILE)   \
    X(TOPK,          topk,          SIG, TILE)   \
    X(HISTOGRAM,     histogram,     SIG, TILE)   \
    /* check_builtin_combine.c */                \
    X(REDUCE_FN,     reduce_fn,     SIG, TILE)   \
    X(SCAN_FN,       scan_fn,       SIG, TILE)   \
    /* check_builtin_dot.c */                    \
    X(DOT,           dot,           SIG, TILE)   \
    X(DOT_SCALED,    dot_scaled,    SIG, TILE)   \
    /* check_builtin_atomic.c */                 \
    X(ATOMIC,        atomic,        SIG, ANY)    \
    /* check_builtin_misc.c */                   \
    X(PHILOX,        philox,        SIG, ANY)    \
    X(RAND,          rand,          SIG, ANY)    \
    X(PROGRAM,       program,       SIG, ANY)    \
    X(BITWIDTH,      bitwidth,      SIG, ANY)    \
    X(DOT_TYPE,      dot_type,      SIG, ANY)    \
    X(GIVEN,         given,         OWN, ANY)    \
    X(ASSERT,        assert,        SIG, ANY)    \
    X(STATIC_ASSERT, static_assert, SIG, ANY)    \
    X(ASSUME,        assert,        SIG, ANY)    \
    X(PRINT,         print,         OWN, TILE)
// clang-format on

typedef enum {
#define TK_RULE_ENUM(RULE, FUNCTION, MATCH, PLACE) TK_RULE_##RULE,
    TK_RULES(TK_RULE_ENUM)
#undef TK_RULE_ENUM
} tk_rule;

enum { TK_BI_MAX_PARAMS = 8 };

typedef struct tk_bparam {
    const char *name;
    bool by_name;  // written "name = default": optional, and only by name
    bool optional; // may be left out
} tk_bparam;

typedef struct tk_bcall {
    tk_checker *c;
    const tk_expr *call;
    tk_builtin id; // TK_BI_COUNT for TK_RULE_ELEM
    tk_numop elem; // TK_RULE_ELEM
    tk_rule rule;
    const char *name; // of the built-in
    const char *signature;
    uint32_t n; // parameters
    tk_bparam param[TK_BI_MAX_PARAMS];
    const tk_expr *arg[TK_BI_MAX_PARAMS];
} tk_bcall;

// ---- Arguments (check_builtin_args.c)

// Matches the call's arguments
// with the parameters of `signature`. False after an error.
bool tk_bi_match(tk_bcall *b, const char *signature);
// The diagnostic with the signature as its help.
void tk_bi_help_signature(tk_bcall *b, tk_diag *d);
// Adds "help: text".
void tk_bi_help(tk_bcall *b, tk_diag *d, const char *fmt, ...) TK_PRINTF(3, 4);
// How messages name an argument: what is written, in quotes, where that is short, else "argument
// 'PARAMETER'".
const char *tk_bi_arg_text(tk_bcall *b, uint32_t i);
const char *tk_bi_type_text(tk_bcall *b, tk_value v);
// What stands in a help for an argument: what is written, or the parameter's name.
const char *tk_bi_arg_source(tk_bcall *b, uint32_t i);

// Scalar or tile; an untyped constant stays one. False after an error.
bool tk_bi_value(tk_bcall *b, uint32_t i, tk_value *out);
// The same with an untyped constant turned into its default type.
bool tk_bi_typed(tk_bcall *b, uint32_t i, tk_value *out);
// A tile of rank 1 or more; verb: "reduces", "sorts".
bool tk_bi_tile(tk_bcall *b, uint32_t i, const char *verb, tk_value *out);
bool tk_bi_tile_value(tk_bcall *b, uint32_t i, tk_span at, const char *verb, tk_value *v);
// A compile-time integer from lo to hi; where it depends, *out is lo.
bool tk_bi_int(tk_bcall *b, uint32_t i, int64_t lo, int64_t hi, int64_t *out, bool *dep);
// An axis of a tile of that rank, negative ones from the end; where it depends, *axis is 0.
bool tk_bi_axis(tk_bcall *b, uint32_t i, unsigned rank, int *axis, bool *dep);
bool tk_bi_axis_of(tk_bcall *b, const tk_expr *e, unsigned rank, int *axis, bool *dep);
// The axis of a reduction (parameter 1) and the shape that it leaves; a scalar without one.
bool tk_bi_reduced(tk_bcall *b, const tk_type *t, int *axis, unsigned *rank, int64_t *dim);
// The axis of a scan: needed where the tile has more than one.
bool tk_bi_scan_axis(tk_bcall *b, uint32_t i, const tk_type *t, int *axis);
// A compile-time bool; false where not given.
bool tk_bi_flag(tk_bcall *b, uint32_t i, bool *out, bool *dep);
// One of n words; 0 where not given.
bool tk_bi_choice(tk_bcall *b, uint32_t i, uint32_t n, const char *const *words, uint32_t *out);
bool tk_bi_type(tk_bcall *b, uint32_t i, tk_dtype *out);
// A string literal.
bool tk_bi_string(tk_bcall *b, uint32_t i, const char **out);
// bool, scalar or tile; with a help "x != 0" for integers.
bool tk_bi_cond(tk_bcall *b, uint32_t i, tk_value *out);

// Whether two extents may be equal.
bool tk_bi_dim_eq(int64_t x, int64_t y);
// Whether two shapes may be equal.
bool tk_bi_shape_eq(const tk_type *x, const tk_type *y);
// Scalar for rank 0, else tile.
const tk_type *tk_bi_make_type(tk_bcall *b, tk_dtype t, unsigned rank, const int64_t *dim);
// False after an error that names the greatest number of elements of a tile.
bool tk_bi_fits(tk_bcall *b, unsigned rank, const int64_t *dim);
// Every extent depends.
void tk_bi_dims_dep(unsigned rank, int64_t *dim);

// ---- Results (check_builtin_args.c)
tk_value tk_bi_error(const tk_bcall *b);
// A BUILTIN node with room for n operands; axis is TK_AXIS_ALL.
tk_x *tk_bi_node(tk_bcall *b, const tk_type *type, uint32_t n);
void tk_bi_operand(tk_bcall *b, tk_x *x, uint32_t i, tk_value v);
// The value of a node, whatever its type's kind.
tk_value tk_bi_result(tk_bcall *b, tk_x *x);
// A node with one or two operands, type and value at once.
tk_value tk_bi_unary(tk_bcall *b, const tk_type *type, tk_value v);
tk_value tk_bi_binary(tk_bcall *b, const tk_type *type, tk_value v, tk_value w);
const tk_type *tk_bi_pair(tk_bcall *b, const tk_type *x, const tk_type *y);

// ---- Rules
#define TK_RULE_PROTOTYPE(RULE, FUNCTION, MATCH, PLACE) tk_value tk_rule_##FUNCTION(tk_bcall *b);
TK_RULES(TK_RULE_PROTOTYPE)
#undef TK_RULE_PROTOTYPE

#endif
