// SPDX-License-Identifier: Apache-2.0
// The syntax tree: what the parser makes of one file, const afterwards.
//
// Nodes live in the compile's arena and carry the span of their text. Names are interned
// (tk_intern), so equal names are equal pointers. The tree holds what was written: no types, no
// name resolution, no constant folding; that is the checker's. A file with syntax errors still
// gives a tree of the items that parsed. Lists are growable arrays; binary and postfix chains lean
// left. The parser limits how deep brackets nest (TK_MAX_NESTING) and how high the tree is from an
// item to its last leaf (TK_MAX_HEIGHT: chains of operators and of else-ifs count too), so that
// recursion over the tree is safe.
#ifndef TK_LANG_AST_H
#define TK_LANG_AST_H

#include "lang/base.h"
#include "lang/diag.h"

enum { TK_MAX_NESTING = 256, TK_MAX_HEIGHT = 500 };

typedef struct tk_ident {
    const char *name; // interned
    tk_span span;
} tk_ident;

// ---- Types as written
typedef enum {
    TK_AT_NAME, // f32, T, f32[BM, 1], in T[M, N]
    TK_AT_FN,   // fn(f32, i32) -> f32
    TK_AT_TUPLE // (f32, i32): only as a result type
} tk_ast_tkind;

typedef struct tk_ast_type {
    tk_ast_tkind kind;
    tk_span span;
    tk_ident name;  // NAME: the element type
    uint8_t access; // NAME: 0, or tk_access (1 in, 2 out, 3 inout): a tensor
    bool has_dims;  // NAME: brackets were written
    TK_VEC(struct tk_expr *) dims;
    TK_VEC(struct tk_ast_type *) args; // FN: argument types; TUPLE: elements
    struct tk_ast_type *result;        // FN; NULL for none
} tk_ast_type;

// ---- Expressions
typedef enum {
    TK_E_INT,   // integer literal
    TK_E_FLOAT, // float literal, and inf and nan
    TK_E_BOOL,
    TK_E_STRING,  // only as an argument of assert, print, static_assert
    TK_E_NEWAXIS, // only in an index
    TK_E_NAME,
    TK_E_UNARY,
    TK_E_BINARY,
    TK_E_CALL,
    TK_E_INDEX,  // base[entries] else other
    TK_E_LIST,   // [BM, BN]: shapes and axes
    TK_E_TUPLE,  // (a, b): arguments of reduce and scan, results of a function
    TK_E_LAMBDA, // fn(q: i32) -> bool { ... }
} tk_ekind;

typedef enum {
    TK_U_NEG, // -
    TK_U_NOT, // !
    TK_U_BNOT // ~
} tk_unop;

// In order of the precedence table of LANGUAGE.md section 4.
typedef enum {
    TK_B_MUL,
    TK_B_DIV,
    TK_B_REM,
    TK_B_ADD,
    TK_B_SUB,
    TK_B_SHL,
    TK_B_SHR,
    TK_B_LT,
    TK_B_LE,
    TK_B_GT,
    TK_B_GE,
    TK_B_EQ,
    TK_B_NE,
    TK_B_AND,
    TK_B_XOR,
    TK_B_OR,
    TK_B_LAND,
    TK_B_LOR,
} tk_binop;

typedef struct tk_arg {
    tk_ident name; // name.name NULL: by position
    struct tk_expr *value;
} tk_arg;

typedef enum {
    TK_I_EXPR,  // e: a scalar index, an integer tile, or newaxis
    TK_I_RANGE, // e +: n
    TK_I_ALL,   // : (of a tile)
} tk_ikind;

typedef struct tk_index {
    tk_ikind kind;
    tk_span span;
    struct tk_expr *at;    // EXPR, RANGE
    struct tk_expr *count; // RANGE
    struct tk_expr *where; // mask, or NULL
} tk_index;

typedef struct tk_expr {
    tk_ekind kind;
    tk_span span;
    union {
        struct {
            uint64_t value;
            uint8_t shift; // 0; 10 for KB, 20 for MB: sizes, only as attribute arguments
        } i;
        double f;
        bool b;
        struct {
            const char *text; // escapes \n \t \" \\ resolved
            size_t size;
        } string;
        const char *name;
        struct {
            tk_unop op;
            struct tk_expr *x;
        } unary;
        struct {
            tk_binop op;
            tk_span op_span;
            struct tk_expr *x, *y;
        } binary;
        struct {
            struct tk_expr *callee; // a NAME, else the checker complains
            TK_VEC(tk_arg) args;
        } call;
        struct {
            struct tk_expr *base;
            TK_VEC(tk_index) entries;
            struct tk_expr *other; // else, or NULL
        } index;
        TK_VEC(struct tk_expr *) list; // LIST, TUPLE
        struct tk_fn *lambda;
    } u;
} tk_expr;

// ---- Statements
typedef enum {
    TK_S_LET,
    TK_S_VAR,
    TK_S_ASSIGN,
    TK_S_EXPR,
    TK_S_IF,
    TK_S_FOR,
    TK_S_WHILE,
    TK_S_BREAK,
    TK_S_CONTINUE,
    TK_S_RETURN,
    TK_S_BLOCK, // { ... } standing alone: a scope
} tk_skind;

typedef struct tk_block {
    tk_span span;
    TK_VEC(struct tk_stmt *) list;
} tk_block;

typedef struct tk_stmt {
    tk_skind kind;
    tk_span span;
    union {
        struct {                    // LET, VAR
            TK_VEC(tk_ident) names; // more than one: let (a, b) = ...
            tk_ast_type *type;      // or NULL
            tk_expr *value;
        } bind;
        struct {             // ASSIGN
            tk_expr *target; // NAME or INDEX
            bool compound;   // x op= e
            tk_binop op;
            tk_span op_span;
            tk_expr *value;
        } assign;
        tk_expr *expr; // EXPR
        struct {
            tk_expr *cond;
            tk_block *then;
            struct tk_stmt *other; // NULL, an IF, or a BLOCK
        } cond;
        struct {
            tk_ident var;
            tk_expr *from, *to, *step;  // step NULL: 1
            tk_expr *pipeline, *unroll; // NULL: not written
            tk_block *body;
        } loop;
        struct {
            tk_expr *cond;
            tk_expr *pipeline, *unroll; // NULL: not written
            tk_block *body;
        } loop_while;
        TK_VEC(tk_expr *) results; // RETURN: 0 or more ("return (a, b);" is two)
        tk_block *block;
    } u;
} tk_stmt;

// ---- Items

// Attributes are kept generally and checked by name in the checker:
//   @warps(8)  @persistent  @require(no_spills, max_registers(168))  @tune(BM in {64, 128}, warps
//   in {4, 8}; key M, N)
typedef struct tk_attr_arg {
    tk_span span;
    tk_ident name;          // no_spills, max_registers, BM, producers; NULL name for a bare value
    tk_expr *value;         // @warps(8): 8; producers = 1: 1; else NULL
    bool is_set;            // BM in {64, 128}
    TK_VEC(tk_expr *) list; // the set's members, or max_registers' arguments
} tk_attr_arg;

typedef struct tk_attr {
    tk_span span;
    tk_ident name;
    TK_VEC(tk_attr_arg) args;
    TK_VEC(tk_ident) keys; // after "; key"
} tk_attr;

// A compile-time parameter: BM: int = 128, T: type, score: fn(f32) -> f32 = same.
typedef struct tk_cparam {
    tk_ident name;
    tk_ast_type *kind; // NAME type|int|bool|float, or FN
    tk_expr *init;     // or NULL
    tk_span span;
} tk_cparam;

typedef struct tk_param {
    tk_ident name;
    tk_ast_type *type;
    tk_expr *init; // "= none" is the NAME none
    tk_span span;
} tk_param;

typedef struct tk_grid_axis {
    tk_ident name;
    tk_expr *count;
} tk_grid_axis;

// A function, a lambda or a kernel with a body.
typedef struct tk_fn {
    tk_span span;  // the head: from `fn` or `kernel` to before the body
    tk_ident name; // NULL name for a lambda
    bool is_kernel;
    TK_VEC(tk_attr) attrs;
    TK_VEC(tk_cparam) cparams;
    TK_VEC(tk_param) params;
    tk_ast_type *result;       // fn: or NULL
    TK_VEC(tk_grid_axis) grid; // kernel
    bool has_grid;
    tk_block *body;
} tk_fn;

typedef enum {
    TK_ITEM_IMPORT,
    TK_ITEM_CONST,
    TK_ITEM_FN,
    TK_ITEM_KERNEL,
    TK_ITEM_ALIAS
} tk_item_kind;

typedef struct tk_item {
    tk_item_kind kind;
    tk_span span;
    tk_ident name; // IMPORT: the path as written, without quotes
    bool gaps;     // statements are left out that did not parse
    bool broken;   // a syntax error left something else in the tree than what was meant
    union {
        struct {
            tk_ast_type *type; // or NULL: untyped
            tk_expr *value;
        } konst;
        tk_fn *fn; // FN, KERNEL
        struct {   // kernel NAME(params) = OTHER(args);
            TK_VEC(tk_attr) attrs;
            TK_VEC(tk_param) params; // added after the other's own
            tk_ident other;
            TK_VEC(tk_arg) args; // all by name
        } alias;
    } u;
} tk_item;

typedef struct tk_file {
    uint32_t source; // index into tk_sources
    TK_VEC(tk_item *) items;
    TK_VEC(const char *) lost; // names of items that are broken or not in the tree
} tk_file;

// Text of the tree with spans left out, for `tkc --emit=ast` and for tests; one node a line,
// indented.
void tk_ast_print(tk_buf *out, const tk_file *file);
const char *tk_binop_text(tk_binop op); // "+"
const char *tk_unop_text(tk_unop op);

#endif
