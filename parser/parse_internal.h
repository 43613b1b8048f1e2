// SPDX-License-Identifier: Apache-2.0
// Inside the parser: tokens, the state of one parse, and the builders that the grammar's actions
// call.
//
// A parse has three steps. The lexer (lex.l) turns the whole text into an array of tokens, comments
// apart. A pass over the array (tokens.c) turns words that are keywords only in some places
// (`step`, `where`) into keywords there and supplies the '}' of blocks that are never closed. The
// grammar (parse.y) then takes the array's tokens; after an error the array is where the place to
// go on is looked for (recover.c). The formatter (format*.c) works on the same array, with the
// roles that the grammar gave to tokens.
#ifndef TK_PARSER_PARSE_INTERNAL_H
#define TK_PARSER_PARSE_INTERNAL_H

#include "lang/ast.h"
#include "parser/parse.h"

// What a token is where its kind alone does not say it. The grammar's actions set it.
typedef enum {
    TK_ROLE_NONE,
    TK_ROLE_UNARY,  // - ! ~ before an operand
    TK_ROLE_ANGLE,  // < > round compile-time parameters
    TK_ROLE_SET,    // { } of an attribute's set
    TK_ROLE_LAMBDA, // { } of an anonymous function
    TK_ROLE_BODY,   // { } of a function or kernel
    TK_ROLE_BLOCK   // { } of a statement
} tk_role;

typedef struct tk_token {
    int kind; // TOK_...
    uint32_t begin, end;
    uint8_t role;  // tk_role
    uint8_t shift; // INT: 10 for KB, 20 for MB
    bool bad;      // the lexer complained about it or right before it
    bool made;     // a '}' that the text lacks
    union {
        uint64_t value;   // INT
        double f;         // FLOAT
        const char *name; // NAME, and words that could be one
        tk_binop op;      // OP_ASSIGN
        struct {
            const char *text;
            uint32_t size;
        } string;
    } u;
} tk_token;

typedef struct tk_comment {
    uint32_t begin, end;
    uint32_t next; // index of the token that follows
} tk_comment;

typedef struct tk_parser {
    tk_arena *arena;
    tk_names *names;
    const tk_source *source;
    uint32_t file;
    tk_diags *diags;
    TK_VEC(tk_token) tokens; // the last one is END
    TK_VEC(tk_comment) comments;
    bool bad_before; // lexer: the next token follows something that is none
    int start;       // the token that selects the grammar's start; 0 once it was handed out
    uint32_t next;   // the next token to hand out
    uint32_t now;    // the one handed out last
    uint32_t depth;  // open blocks
    bool fatal;      // stop: nothing more is reported or read
    bool resync;     // an error was found at token `now`: find the place to go on
    bool missing;    // ... which is right before that token, for only a ';' was missing
    uint32_t synced; // where the last resync ended
    tk_file *tree;
    tk_expr *expr; // of tk_parse_expr
} tk_parser;

enum {
    TK_KIND_COMMENT = -1, // what the scanner returns besides tokens
    TK_KIND_SKIP = -2,    // it complained and there is no token
};

// ---- lex.l
void tk_scan_all(tk_parser *p, void (*each)(tk_parser *p, tk_token *t));

// ---- literal.c
int tk_scan_number(tk_parser *p, tk_token *t, const char *s, size_t n);
int tk_scan_string(tk_parser *p, tk_token *t, const char *s, size_t n);
void tk_scan_comment(tk_parser *p, uint32_t begin, const char *s, size_t n, bool closed);
int tk_scan_stray(tk_parser *p, tk_token *t, const char *s, size_t n, bool named);
int tk_scan_operator(tk_parser *p, tk_token *t, const char *s);

// ---- tokens.c
void tk_tokenize(tk_parser *p);
tk_span tk_token_span(const tk_parser *p, const tk_token *t);
bool tk_ends_operand(int kind); // an operator or a closer may follow, an operand may not
bool tk_starts_item(const tk_parser *p, uint32_t i); // by words that stand nowhere else
uint32_t tk_line_of(const tk_parser *p, uint32_t offset);

// ---- recover.c
tk_token *tk_next_token(tk_parser *p);
void tk_syntax_error(tk_parser *p, const char *const *expected, uint32_t n);
void tk_too_deep(tk_parser *p, tk_span at);

// ---- format.c

// Writes
// the tokens and comments of a text without errors in canonical layout.
void tk_layout(tk_parser *p, tk_buf *out);

// ---- build.c

// Every
// node that the parser makes carries its height, which is limited.
typedef struct {
    TK_VEC(tk_expr *) v;
    uint32_t height;
} tk_exprs;
typedef struct {
    TK_VEC(tk_arg) v;
    uint32_t height;
} tk_args;
typedef struct {
    TK_VEC(tk_index) v;
    uint32_t height;
} tk_entries;
typedef struct {
    TK_VEC(tk_ident) v;
} tk_idents;
typedef struct {
    TK_VEC(tk_ast_type *) v;
    uint32_t height;
} tk_types;
typedef struct {
    TK_VEC(tk_stmt *) v;
    uint32_t height;
} tk_stmts;
typedef struct {
    TK_VEC(tk_param) v;
    uint32_t height;
} tk_params;
typedef struct {
    TK_VEC(tk_cparam) v;
} tk_cparams;
typedef struct {
    TK_VEC(tk_grid_axis) v;
    tk_span span;
} tk_axes;
typedef struct {
    TK_VEC(tk_attr) v;
} tk_attrs;
typedef struct {
    TK_VEC(tk_attr_arg) v;
} tk_attr_args;
typedef struct {
    tk_expr *step, *pipeline, *unroll;
} tk_hints;
typedef struct {
    tk_stmt *first, *last;
    uint32_t n;
} tk_ifs;
// What follows a kernel's parameters.
typedef struct {
    tk_axes *grid;
    tk_block *body;
    bool alias;
    tk_ident other;
    tk_args *args;
    tk_span span;
} tk_kernel_rest;

// dst and src are TK_VECs of the same element.
#define TK_VEC_MOVE(dst, src) ((dst).at = (src).at, (dst).n = (src).n, (dst).room = (src).room)

tk_span tk_join(tk_span a, tk_span b);
tk_ident tk_ident_of(const tk_parser *p, const tk_token *t);
tk_expr *tk_e_new(tk_parser *p, tk_ekind kind, tk_span span);
tk_expr *tk_e_int(tk_parser *p, const tk_token *t);
tk_expr *tk_e_float(tk_parser *p, tk_span span, double f);
tk_expr *tk_e_bool(tk_parser *p, tk_span span, bool b);
tk_expr *tk_e_string(tk_parser *p, const tk_token *t);
tk_expr *tk_e_name(tk_parser *p, const tk_token *t);
tk_expr *tk_e_unary(tk_parser *p, tk_span span, tk_unop op, tk_expr *x);
tk_expr *tk_e_binary(tk_parser *p, tk_span span, tk_binop op, tk_span op_span, tk_expr *x,
                     tk_expr *y);
void tk_e_chain_error(tk_parser *p, const tk_expr *chain, const tk_expr *y, tk_span op_span);
tk_expr *tk_e_choice(tk_parser *p, tk_span span, tk_span mark, tk_expr *c, tk_expr *a, tk_expr *b);
tk_expr *tk_e_call(tk_parser *p, tk_span span, tk_expr *callee, tk_args *args);
tk_expr *tk_e_index(tk_parser *p, tk_span span, tk_expr *base, tk_entries *entries, tk_expr *other);
tk_expr *tk_e_list(tk_parser *p, tk_ekind kind, tk_span span, tk_exprs *list);
tk_expr *tk_e_lambda(tk_parser *p, tk_span span, tk_span head, tk_params *params,
                     tk_ast_type *result, tk_block *body);

tk_exprs *tk_exprs_add(tk_parser *p, tk_exprs *l, tk_expr *e);
tk_args *tk_args_add(tk_parser *p, tk_args *l, const tk_token *name, tk_expr *e);
tk_entries *tk_entries_add(tk_parser *p, tk_entries *l, const tk_index *entry);
tk_index *tk_entry(tk_parser *p, tk_ikind kind, tk_span span, tk_expr *at, tk_expr *count,
                   tk_expr *where);
tk_idents *tk_idents_add(tk_parser *p, tk_idents *l, const tk_token *name);
tk_types *tk_types_add(tk_parser *p, tk_types *l, tk_ast_type *t);
tk_params *tk_params_add(tk_parser *p, tk_params *l, tk_span span, const tk_token *name,
                         tk_ast_type *type, tk_expr *init);
tk_cparams *tk_cparams_add(tk_parser *p, tk_cparams *l, tk_span span, const tk_token *name,
                           tk_ast_type *kind, tk_expr *init);
tk_axes *tk_axes_add(tk_parser *p, tk_axes *l, const tk_token *name, tk_expr *count);

tk_ast_type *tk_t_name(tk_parser *p, tk_span span, unsigned access, const tk_token *name,
                       tk_exprs *dims);
tk_ast_type *tk_t_fn(tk_parser *p, tk_span span, tk_types *args, tk_ast_type *result);
tk_ast_type *tk_t_tuple(tk_parser *p, tk_span span, tk_types *list);

// ---- build_stmt.c
tk_block *tk_block_new(tk_parser *p, tk_span span, tk_stmts *list, tk_token *open, tk_token *close);
void tk_block_role(tk_block *b, tk_role role);
tk_stmts *tk_stmts_add(tk_parser *p, tk_stmts *l, tk_stmt *s); // s NULL: nothing
tk_stmt *tk_s_bind(tk_parser *p, tk_span span, tk_skind kind, tk_idents *names, tk_ast_type *type,
                   tk_expr *value);
tk_stmt *tk_s_assign(tk_parser *p, tk_span span, tk_expr *target, const tk_token *op,
                     tk_expr *value);
tk_stmt *tk_s_expr(tk_parser *p, tk_span span, tk_expr *e);
tk_ifs *tk_ifs_add(tk_parser *p, tk_ifs *l, tk_span span, tk_expr *cond, tk_block *then);
tk_stmt *tk_s_if(tk_parser *p, tk_ifs *l, tk_block *other);
tk_hints *tk_hints_add(tk_parser *p, tk_hints *h, const tk_token *word, tk_expr *e);
tk_stmt *tk_s_for(tk_parser *p, tk_span span, const tk_token *var, tk_expr *from, tk_expr *to,
                  tk_hints *hints, tk_block *body);
tk_stmt *tk_s_while(tk_parser *p, tk_span span, tk_expr *cond, tk_hints *hints, tk_block *body);
tk_stmt *tk_s_word(tk_parser *p, tk_span span, tk_skind kind);
tk_stmt *tk_s_return(tk_parser *p, tk_span span, tk_expr *e);
tk_stmt *tk_s_block(tk_parser *p, tk_block *b);
void tk_empty_statement(tk_parser *p, tk_span at);

tk_attr_args *tk_attr_args_add(tk_parser *p, tk_attr_args *l, tk_span span, const tk_token *name,
                               tk_expr *value, tk_exprs *set);
tk_attr_args *tk_attr_args_expr(tk_parser *p, tk_attr_args *l, tk_expr *e);
tk_attrs *tk_attrs_add(tk_parser *p, tk_attrs *l, tk_span span, const tk_token *name,
                       tk_attr_args *args, tk_idents *keys);
void tk_item_import(tk_parser *p, tk_span span, const tk_token *path);
void tk_item_const(tk_parser *p, tk_span span, const tk_token *name, tk_ast_type *type,
                   tk_expr *value);
void tk_item_fn(tk_parser *p, tk_attrs *attrs, tk_span head, const tk_token *name,
                tk_cparams *cparams, tk_params *params, tk_ast_type *result, tk_block *body);
void tk_item_kernel(tk_parser *p, tk_attrs *attrs, tk_span head, const tk_token *name,
                    tk_cparams *cparams, tk_params *params, tk_kernel_rest *rest);
tk_kernel_rest *tk_rest_body(tk_parser *p, tk_span span, tk_axes *grid, tk_block *body);
tk_kernel_rest *tk_rest_alias(tk_parser *p, tk_span span, const tk_token *other, tk_args *args);

#endif
