// SPDX-License-Identifier: Apache-2.0
// The grammar. Actions only call builders (build.c, build_stmt.c); what to say about an error and where to go on
// after it is in recover.c. Lists are left-recursive. A comma may end a list that is in brackets.

%require "3.8"
%define api.pure full
%define api.prefix {tkp_}
%define api.token.prefix {TOK_}
%define api.location.type {tk_span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {tk_parser *p}

%code requires {
#include "parser/parse_internal.h"
}

%code {
#include <math.h>

// A symbol that matches nothing stands at the end of the one before it.
#define YYLLOC_DEFAULT(out, rhs, n)                                                            \
    do {                                                                                       \
        uint32_t begin_ = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;                 \
        uint32_t end_ = (n) ? YYRHSLOC(rhs, n).end : begin_;                                   \
        (out) = (tk_span){p->file, begin_, end_};                                              \
    } while (0)

// The stacks are in the frame and do not grow: nothing is on the heap when memory runs out and the parse
// is left by longjmp. What does not fit is nested too deeply.
#define YYINITDEPTH 3000
#define YYMAXDEPTH 3000
#define YYMALLOC(n) ((void)(n), (void *)0)
#define YYFREE(block) ((void)(block))

static int tkp_lex(TKP_STYPE *value, tk_span *at, tk_parser *p);
static void tkp_error(const tk_span *at, tk_parser *p, const char *text);
}

%union {
    tk_token *tok;
    tk_expr *expr;
    tk_exprs *exprs;
    tk_args *args;
    tk_entries *entries;
    tk_index *entry;
    tk_idents *idents;
    tk_ast_type *type;
    tk_types *types;
    tk_params *params;
    tk_cparams *cparams;
    tk_axes *axes;
    tk_block *block;
    tk_stmt *stmt;
    tk_stmts *stmts;
    tk_ifs *ifs;
    tk_hints *hints;
    tk_attrs *attrs;
    tk_attr_args *attr_args;
    tk_kernel_rest *rest;
}

%token END 0 "the end of the text"
%token START_FILE "the start of a file" START_EXPR "the start of an expression" SYNC "a place to go on"
%token <tok>
    NAME "a name" INT "an integer" FLOAT "a float" STRING "a string"
    TRUE "true" FALSE "false" INF "inf" NAN "nan" NEWAXIS "newaxis"
    KERNEL "kernel" FN "fn" LET "let" VAR "var" IF "if" ELSE "else" FOR "for" IN "in" WHILE "while"
    BREAK "break" CONTINUE "continue" RETURN "return" CONST "const" IMPORT "import"
    OUT "out" INOUT "inout" STEP "step" WHERE "where" GRID "grid" PIPELINE "pipeline"
    UNROLL "unroll" KEY "key"
    LBRACE "{" RBRACE "}" LPAREN "(" RPAREN ")" LBRACKET "[" RBRACKET "]"
    COMMA "," SEMI ";" COLON ":" AT "@" DOT "." DOTDOT ".." QUESTION "?" ARROW "->" PLUSCOLON "+:"
    ASSIGN "=" OPASSIGN "an assignment"
    PLUS "+" MINUS "-" STAR "*" SLASH "/" PERCENT "%" AMP "&" PIPE "|" CARET "^" BANG "!" TILDE "~"
    SHL "<<" SHR ">>" LT "<" LE "<=" GT ">" GE ">=" EQ "==" NE "!=" ANDAND "&&" OROR "||"
    PLUSPLUS "++" MINUSMINUS "--"

%type <expr> expr lor land bor bxor band eq eq_chain rel rel_chain shift add mul unary postfix
    primary param_init
%type <exprs> exprs
%type <args> args arg_list
%type <entries> entries
%type <entry> entry
%type <idents> names keys
%type <type> type type_opt result
%type <types> types types_opt
%type <params> params param_list
%type <cparams> cparams cparam_list
%type <axes> grid axes
%type <block> block
%type <stmt> stmt
%type <stmts> stmts
%type <ifs> ifs
%type <hints> hints
%type <attrs> attrs
%type <attr_args> attr_args
%type <rest> kernel_rest alias
%type <tok> eq_op rel_op head_fn head_kernel

%%

start
    : START_FILE items
    | START_EXPR expr  { p->expr = $expr; }
    ;

// ---- Items ------------------------------------------------------------------------------------

items
    : %empty
    | items item
    ;

item
    : "import" STRING ";"                       { tk_item_import(p, @$, $STRING); }
    | "const" NAME type_opt "=" expr ";"        { tk_item_const(p, @$, $NAME, $type_opt, $expr); }
    | attrs head_fn NAME cparams "(" params ")" result block
        { tk_item_fn(p, $attrs, (tk_span){p->file, @head_fn.begin, @result.end}, $NAME, $cparams, $params,
                     $result, $block); }
    | attrs head_kernel NAME cparams "(" params ")" kernel_rest
        { tk_item_kernel(p, $attrs, (tk_span){p->file, @head_kernel.begin, @7.end}, $NAME, $cparams,
                         $params, $kernel_rest); }
    | attrs head_kernel NAME cparams alias
        { tk_item_kernel(p, $attrs, (tk_span){p->file, @head_kernel.begin, @cparams.end}, $NAME,
                         $cparams, NULL, $alias); }
    | ";"                                       { tk_empty_statement(p, @$); }
    | error SYNC                                { yyerrok; }
    ;

head_fn
    : "fn"
    ;

head_kernel
    : "kernel"
    ;

kernel_rest
    : grid block                                { $$ = tk_rest_body(p, @$, $grid, $block); }
    | alias
    ;

alias
    : "=" NAME "(" args ")" ";"                 { $$ = tk_rest_alias(p, @$, $NAME, $args); }
    ;

grid
    : %empty                                    { $$ = NULL; }
    | "grid" "(" axes comma ")"                 { $$ = $axes; $$->span = @$; }
    ;

axes
    : NAME "in" expr                            { $$ = tk_axes_add(p, NULL, $NAME, $expr); }
    | axes "," NAME "in" expr                   { $$ = tk_axes_add(p, $1, $NAME, $expr); }
    ;

comma
    : %empty
    | ","
    ;

// ---- Attributes -------------------------------------------------------------------------------

attrs
    : %empty                                    { $$ = NULL; }
    | attrs "@" NAME                            { $$ = tk_attrs_add(p, $1, tk_join(@2, @$), $NAME, NULL, NULL); }
    | attrs "@" NAME "(" ")"                    { $$ = tk_attrs_add(p, $1, tk_join(@2, @$), $NAME, NULL, NULL); }
    | attrs "@" NAME "(" attr_args comma keys ")"
        { $$ = tk_attrs_add(p, $1, tk_join(@2, @$), $NAME, $attr_args, $keys); }
    ;

attr_args
    : expr                                      { $$ = tk_attr_args_expr(p, NULL, $1); }
    | NAME "=" expr                             { $$ = tk_attr_args_add(p, NULL, @$, $NAME, $expr, NULL); }
    | NAME "in" "{" exprs comma "}"
        { $3->role = $6->role = TK_ROLE_SET;
          $$ = tk_attr_args_add(p, NULL, @$, $NAME, NULL, $exprs); }
    | attr_args "," expr                        { $$ = tk_attr_args_expr(p, $1, $3); }
    | attr_args "," NAME "=" expr
        { $$ = tk_attr_args_add(p, $1, tk_join(@3, @$), $NAME, $expr, NULL); }
    | attr_args "," NAME "in" "{" exprs comma "}"
        { $5->role = $8->role = TK_ROLE_SET;
          $$ = tk_attr_args_add(p, $1, tk_join(@3, @$), $NAME, NULL, $exprs); }
    ;

keys
    : %empty                                    { $$ = NULL; }
    | ";" "key" names comma                     { $$ = $names; }
    ;

names
    : NAME                                      { $$ = tk_idents_add(p, NULL, $1); }
    | names "," NAME                            { $$ = tk_idents_add(p, $1, $3); }
    ;

// ---- Parameters and types ---------------------------------------------------------------------

// A default of a compile-time parameter ends at '>', so a comparison in it stands in parentheses.
cparams
    : %empty                                    { $$ = NULL; }
    | "<" cparam_list comma ">"
        { $1->role = $4->role = TK_ROLE_ANGLE; $$ = $cparam_list; }
    ;

cparam_list
    : NAME ":" type                             { $$ = tk_cparams_add(p, NULL, @$, $NAME, $type, NULL); }
    | NAME ":" type "=" shift                   { $$ = tk_cparams_add(p, NULL, @$, $NAME, $type, $shift); }
    | cparam_list "," NAME ":" type
        { $$ = tk_cparams_add(p, $1, tk_join(@3, @$), $NAME, $type, NULL); }
    | cparam_list "," NAME ":" type "=" shift
        { $$ = tk_cparams_add(p, $1, tk_join(@3, @$), $NAME, $type, $shift); }
    ;

params
    : %empty                                    { $$ = NULL; }
    | param_list comma
    ;

param_list
    : NAME ":" type param_init                  { $$ = tk_params_add(p, NULL, @$, $NAME, $type, $4); }
    | param_list "," NAME ":" type param_init
        { $$ = tk_params_add(p, $1, tk_join(@3, @$), $NAME, $type, $6); }
    ;

param_init
    : %empty                                    { $$ = NULL; }
    | "=" expr                                  { $$ = $expr; }
    ;

type_opt
    : %empty                                    { $$ = NULL; }
    | ":" type                                  { $$ = $type; }
    ;

type
    : NAME                                      { $$ = tk_t_name(p, @$, 0, $NAME, NULL); }
    | NAME "[" exprs comma "]"                  { $$ = tk_t_name(p, @$, 0, $NAME, $exprs); }
    | "in" NAME "[" exprs comma "]"             { $$ = tk_t_name(p, @$, 1, $NAME, $exprs); }
    | "out" NAME "[" exprs comma "]"            { $$ = tk_t_name(p, @$, 2, $NAME, $exprs); }
    | "inout" NAME "[" exprs comma "]"          { $$ = tk_t_name(p, @$, 3, $NAME, $exprs); }
    | "fn" "(" types_opt ")" result             { $$ = tk_t_fn(p, @$, $types_opt, $result); }
    ;

result
    : %empty                                    { $$ = NULL; }
    | "->" type                                 { $$ = $type; }
    | "->" "(" type "," types comma ")"
        { tk_types *all = tk_types_add(p, NULL, $type);
          for (uint32_t i = 0; i < $types->v.n; i++) {
              all = tk_types_add(p, all, $types->v.at[i]);
          }
          $$ = tk_t_tuple(p, tk_join(@2, @7), all); }
    ;

types_opt
    : %empty                                    { $$ = NULL; }
    | types comma
    ;

types
    : type                                      { $$ = tk_types_add(p, NULL, $1); }
    | types "," type                            { $$ = tk_types_add(p, $1, $3); }
    ;

// ---- Statements -------------------------------------------------------------------------------

block
    : "{" { p->depth++; } stmts "}"             { p->depth--; $$ = tk_block_new(p, @$, $stmts, $1, $4); }
    ;

stmts
    : %empty                                    { $$ = NULL; }
    | stmts stmt                                { $$ = tk_stmts_add(p, $1, $2); }
    ;

stmt
    : "let" NAME type_opt "=" expr ";"
        { $$ = tk_s_bind(p, @$, TK_S_LET, tk_idents_add(p, NULL, $NAME), $type_opt, $expr); }
    | "let" "(" names comma ")" "=" expr ";"    { $$ = tk_s_bind(p, @$, TK_S_LET, $names, NULL, $expr); }
    | "var" NAME type_opt "=" expr ";"
        { $$ = tk_s_bind(p, @$, TK_S_VAR, tk_idents_add(p, NULL, $NAME), $type_opt, $expr); }
    | expr ";"                                  { $$ = tk_s_expr(p, @$, $expr); }
    | expr "=" expr ";"                         { $$ = tk_s_assign(p, @$, $1, $2, $3); }
    | expr OPASSIGN expr ";"                    { $$ = tk_s_assign(p, @$, $1, $2, $3); }
    | ifs                                       { $$ = tk_s_if(p, $ifs, NULL); }
    | ifs "else" block                          { $$ = tk_s_if(p, $ifs, $block); }
    | "for" NAME "in" expr ".." expr hints block
        { $$ = tk_s_for(p, @$, $NAME, $4, $6, $hints, $block); }
    | "while" expr hints block                  { $$ = tk_s_while(p, @$, $expr, $hints, $block); }
    | "break" ";"                               { $$ = tk_s_word(p, @$, TK_S_BREAK); }
    | "continue" ";"                            { $$ = tk_s_word(p, @$, TK_S_CONTINUE); }
    | "return" ";"                              { $$ = tk_s_return(p, @$, NULL); }
    | "return" expr ";"                         { $$ = tk_s_return(p, @$, $expr); }
    | block                                     { $$ = tk_s_block(p, $block); }
    | ";"                                       { tk_empty_statement(p, @$); $$ = NULL; }
    | error SYNC                                { yyerrok; $$ = NULL; }
    ;

ifs
    : "if" expr block                           { $$ = tk_ifs_add(p, NULL, @$, $expr, $block); }
    | ifs "else" "if" expr block                { $$ = tk_ifs_add(p, $1, tk_join(@3, @$), $expr, $block); }
    ;

hints
    : %empty                                    { $$ = NULL; }
    | hints "step" expr                         { $$ = tk_hints_add(p, $1, $2, $expr); }
    | hints "pipeline" "(" expr ")"             { $$ = tk_hints_add(p, $1, $2, $expr); }
    | hints "unroll" "(" expr ")"               { $$ = tk_hints_add(p, $1, $2, $expr); }
    ;

// ---- Expressions ------------------------------------------------------------------------------

expr
    : lor
    | lor "?" expr ":" expr                     { $$ = tk_e_choice(p, @$, @2, $1, $3, $5); }
    ;

lor
    : land
    | lor "||" land                             { $$ = tk_e_binary(p, @$, TK_B_LOR, @2, $1, $3); }
    ;

land
    : bor
    | land "&&" bor                             { $$ = tk_e_binary(p, @$, TK_B_LAND, @2, $1, $3); }
    ;

bor
    : bxor
    | bor "|" bxor                              { $$ = tk_e_binary(p, @$, TK_B_OR, @2, $1, $3); }
    ;

bxor
    : band
    | bxor "^" band                             { $$ = tk_e_binary(p, @$, TK_B_XOR, @2, $1, $3); }
    ;

band
    : eq
    | band "&" eq                               { $$ = tk_e_binary(p, @$, TK_B_AND, @2, $1, $3); }
    ;

eq
    : rel
    | eq_chain
    ;

eq_chain
    : rel eq_op rel                             { $$ = tk_e_binary(p, @$, (tk_binop)$2->u.op, @2, $1, $3); }
    | eq_chain eq_op rel                        { tk_e_chain_error(p, $1, $3, @2); $$ = $1; }
    ;

eq_op
    : "=="                                      { $$ = $1; $$->u.op = TK_B_EQ; }
    | "!="                                      { $$ = $1; $$->u.op = TK_B_NE; }
    ;

rel
    : shift
    | rel_chain
    ;

rel_chain
    : shift rel_op shift                        { $$ = tk_e_binary(p, @$, (tk_binop)$2->u.op, @2, $1, $3); }
    | rel_chain rel_op shift                    { tk_e_chain_error(p, $1, $3, @2); $$ = $1; }
    ;

rel_op
    : "<"                                       { $$ = $1; $$->u.op = TK_B_LT; }
    | "<="                                      { $$ = $1; $$->u.op = TK_B_LE; }
    | ">"                                       { $$ = $1; $$->u.op = TK_B_GT; }
    | ">="                                      { $$ = $1; $$->u.op = TK_B_GE; }
    ;

shift
    : add
    | shift "<<" add                            { $$ = tk_e_binary(p, @$, TK_B_SHL, @2, $1, $3); }
    | shift ">>" add                            { $$ = tk_e_binary(p, @$, TK_B_SHR, @2, $1, $3); }
    ;

add
    : mul
    | add "+" mul                               { $$ = tk_e_binary(p, @$, TK_B_ADD, @2, $1, $3); }
    | add "-" mul                               { $$ = tk_e_binary(p, @$, TK_B_SUB, @2, $1, $3); }
    ;

mul
    : unary
    | mul "*" unary                             { $$ = tk_e_binary(p, @$, TK_B_MUL, @2, $1, $3); }
    | mul "/" unary                             { $$ = tk_e_binary(p, @$, TK_B_DIV, @2, $1, $3); }
    | mul "%" unary                             { $$ = tk_e_binary(p, @$, TK_B_REM, @2, $1, $3); }
    ;

unary
    : postfix
    | "-" unary             { $1->role = TK_ROLE_UNARY; $$ = tk_e_unary(p, @$, TK_U_NEG, $2); }
    | "!" unary             { $1->role = TK_ROLE_UNARY; $$ = tk_e_unary(p, @$, TK_U_NOT, $2); }
    | "~" unary             { $1->role = TK_ROLE_UNARY; $$ = tk_e_unary(p, @$, TK_U_BNOT, $2); }
    | postfix "[" entries comma "]" "else" unary
        { $$ = tk_e_index(p, @$, $1, $entries, $7); }
    ;

postfix
    : primary
    | postfix "(" args ")"                      { $$ = tk_e_call(p, @$, $1, $args); }
    | postfix "[" entries comma "]"             { $$ = tk_e_index(p, @$, $1, $entries, NULL); }
    ;

primary
    : INT                                       { $$ = tk_e_int(p, $1); }
    | FLOAT                                     { $$ = tk_e_float(p, @$, $1->u.f); }
    | STRING                                    { $$ = tk_e_string(p, $1); }
    | "true"                                    { $$ = tk_e_bool(p, @$, true); }
    | "false"                                   { $$ = tk_e_bool(p, @$, false); }
    | "inf"                                     { $$ = tk_e_float(p, @$, (double)INFINITY); }
    | "nan"                                     { $$ = tk_e_float(p, @$, (double)NAN); }
    | "newaxis"                                 { $$ = tk_e_new(p, TK_E_NEWAXIS, @$); }
    | NAME                                      { $$ = tk_e_name(p, $1); }
    | "(" expr ")"                              { $$ = $expr; }
    | "(" expr "," exprs comma ")"
        { tk_exprs *all = tk_exprs_add(p, NULL, $expr);
          for (uint32_t i = 0; i < $exprs->v.n; i++) {
              all = tk_exprs_add(p, all, $exprs->v.at[i]);
          }
          $$ = tk_e_list(p, TK_E_TUPLE, @$, all); }
    | "[" exprs comma "]"                       { $$ = tk_e_list(p, TK_E_LIST, @$, $exprs); }
    | "fn" "(" params ")" result block
        { $$ = tk_e_lambda(p, @$, tk_join(@1, @result), $params, $result, $block); }
    ;

exprs
    : expr                                      { $$ = tk_exprs_add(p, NULL, $1); }
    | exprs "," expr                            { $$ = tk_exprs_add(p, $1, $3); }
    ;

args
    : %empty                                    { $$ = NULL; }
    | arg_list comma
    ;

arg_list
    : expr                                      { $$ = tk_args_add(p, NULL, NULL, $1); }
    | NAME "=" expr                             { $$ = tk_args_add(p, NULL, $1, $3); }
    | arg_list "," expr                         { $$ = tk_args_add(p, $1, NULL, $3); }
    | arg_list "," NAME "=" expr                { $$ = tk_args_add(p, $1, $3, $5); }
    ;

entries
    : entry                                     { $$ = tk_entries_add(p, NULL, $1); }
    | entries "," entry                         { $$ = tk_entries_add(p, $1, $3); }
    ;

entry
    : ":"                                       { $$ = tk_entry(p, TK_I_ALL, @$, NULL, NULL, NULL); }
    | expr                                      { $$ = tk_entry(p, TK_I_EXPR, @$, $1, NULL, NULL); }
    | expr "where" expr                         { $$ = tk_entry(p, TK_I_EXPR, @$, $1, NULL, $3); }
    | expr "+:" expr                            { $$ = tk_entry(p, TK_I_RANGE, @$, $1, $3, NULL); }
    | expr "+:" expr "where" expr               { $$ = tk_entry(p, TK_I_RANGE, @$, $1, $3, $5); }
    ;

%%

static int tkp_lex(TKP_STYPE *value, tk_span *at, tk_parser *p) {
    tk_token *t = tk_next_token(p);
    value->tok = t;
    *at = tk_token_span(p, t);
    return t->kind;
}

// Called for "memory exhausted" only: the stack is full.
static void tkp_error(const tk_span *at, tk_parser *p, const char *text) {
    (void)text;
    tk_too_deep(p, *at);
}

static int yyreport_syntax_error(const yypcontext_t *context, tk_parser *p) {
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    if (n < 0) {
        tk_too_deep(p, *yypcontext_location(context));
        return 0;
    }
    for (int i = 0; i < n; i++) {
        names[i] = yysymbol_name(kinds[i]);
    }
    tk_syntax_error(p, names, (uint32_t)n);
    return 0;
}
