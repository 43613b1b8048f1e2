// SPDX-License-Identifier: Apache-2.0
// Builders of expressions, types and lists. Each node's height is kept beside it and limited, so
// that recursion over the tree is safe.
#include "parser/parse_internal.h"

#include "parser/build.h"

typedef struct {
    tk_expr node;
    uint32_t height;
} expr_node;

typedef struct {
    tk_ast_type node;
    uint32_t height;
} type_node;

uint32_t tk_e_height(const tk_expr *e) {
    return e ? ((const expr_node *)(const void *)e)->height : 0;
}

uint32_t tk_t_height(const tk_ast_type *t) {
    return t ? ((const type_node *)(const void *)t)->height : 0;
}

uint32_t tk_higher(uint32_t a, uint32_t b) { return a > b ? a : b; }

uint32_t tk_height_over(tk_parser *p, tk_span at, uint32_t below) {
    if (below + 1 > TK_MAX_HEIGHT) {
        tk_too_deep(p, at);
    }
    return below + 1;
}

static void lift(tk_parser *p, tk_expr *e, uint32_t below) {
    ((expr_node *)(void *)e)->height = tk_height_over(p, e->span, below);
}

tk_span tk_join(tk_span a, tk_span b) { return (tk_span){a.file, a.begin, b.end}; }

tk_ident tk_ident_of(const tk_parser *p, const tk_token *t) {
    return t ? (tk_ident){t->u.name, tk_token_span(p, t)} : (tk_ident){NULL, {0, 0, 0}};
}

// ---- Expressions ------------------------------------------------------------------------------

tk_expr *tk_e_new(tk_parser *p, tk_ekind kind, tk_span span) {
    expr_node *n = TK_NEW(p->arena, expr_node);
    n->node.kind = kind;
    n->node.span = span;
    n->height = 1;
    return &n->node;
}

tk_expr *tk_e_int(tk_parser *p, const tk_token *t) {
    tk_expr *e = tk_e_new(p, TK_E_INT, tk_token_span(p, t));
    e->u.i.value = t->u.value;
    e->u.i.shift = t->shift;
    return e;
}

tk_expr *tk_e_float(tk_parser *p, tk_span span, double f) {
    tk_expr *e = tk_e_new(p, TK_E_FLOAT, span);
    e->u.f = f;
    return e;
}

tk_expr *tk_e_bool(tk_parser *p, tk_span span, bool b) {
    tk_expr *e = tk_e_new(p, TK_E_BOOL, span);
    e->u.b = b;
    return e;
}

tk_expr *tk_e_string(tk_parser *p, const tk_token *t) {
    tk_expr *e = tk_e_new(p, TK_E_STRING, tk_token_span(p, t));
    e->u.string.text = t->u.string.text;
    e->u.string.size = t->u.string.size;
    return e;
}

tk_expr *tk_e_name(tk_parser *p, const tk_token *t) {
    tk_expr *e = tk_e_new(p, TK_E_NAME, tk_token_span(p, t));
    e->u.name = t->u.name;
    return e;
}

tk_expr *tk_e_unary(tk_parser *p, tk_span span, tk_unop op, tk_expr *x) {
    tk_expr *e = tk_e_new(p, TK_E_UNARY, span);
    e->u.unary.op = op;
    e->u.unary.x = x;
    lift(p, e, tk_e_height(x));
    return e;
}

tk_expr *tk_e_binary(tk_parser *p, tk_span span, tk_binop op, tk_span op_span, tk_expr *x,
                     tk_expr *y) {
    tk_expr *e = tk_e_new(p, TK_E_BINARY, span);
    e->u.binary.op = op;
    e->u.binary.op_span = op_span;
    e->u.binary.x = x;
    e->u.binary.y = y;
    lift(p, e, tk_higher(tk_e_height(x), tk_e_height(y)));
    return e;
}

static const char *text_of(tk_parser *p, tk_span s) {
    return tk_strndup(p->arena, p->source->text + s.begin, s.end - s.begin);
}

static bool short_enough(tk_parser *p, tk_span s) {
    return s.end - s.begin <= 30 && tk_line_of(p, s.begin) == tk_line_of(p, s.end);
}

// Whether the text of a node is the whole of it: parentheses round it are not in its span.
static bool is_simple(tk_parser *p, const tk_expr *e) {
    return e->kind != TK_E_BINARY && e->kind != TK_E_UNARY && short_enough(p, e->span);
}

void tk_e_chain_error(tk_parser *p, const tk_expr *chain, const tk_expr *y, tk_span op) {
    tk_diag *d = tk_error(p->diags, op, "chained-comparison", "comparisons do not chain");
    if (chain->kind != TK_E_BINARY) {
        return;
    }
    tk_span a = {p->file, chain->span.begin, chain->u.binary.op_span.begin};
    tk_span b = chain->u.binary.y->span;
    if (is_simple(p, chain->u.binary.y) && is_simple(p, y) && short_enough(p, a)) {
        tk_help(p->diags, d, (tk_span){0}, "write '%s%s %s && %s %s %s'", text_of(p, a),
                tk_binop_text(chain->u.binary.op), text_of(p, b), text_of(p, b), text_of(p, op),
                text_of(p, y->span));
    } else {
        tk_help(p->diags, d, (tk_span){0}, "join two comparisons with '&&'");
    }
}

tk_expr *tk_e_choice(tk_parser *p, tk_span span, tk_span mark, tk_expr *c, tk_expr *a, tk_expr *b) {
    tk_diag *d = tk_error(p->diags, mark, "no-conditional", "there is no '?:'");
    if (short_enough(p, c->span) && short_enough(p, a->span) && short_enough(p, b->span)) {
        tk_help(p->diags, d, (tk_span){0}, "write 'where(%s, %s, %s)'", text_of(p, c->span),
                text_of(p, a->span), text_of(p, b->span));
    } else {
        tk_help(p->diags, d, (tk_span){0}, "write 'where(c, a, b)'");
    }
    tk_expr *where = tk_e_new(p, TK_E_NAME, mark);
    where->u.name = tk_intern(p->names, "where", 5);
    tk_args *args = tk_args_add(p, NULL, NULL, c);
    args = tk_args_add(p, args, NULL, a);
    return tk_e_call(p, span, where, tk_args_add(p, args, NULL, b));
}

tk_expr *tk_e_call(tk_parser *p, tk_span span, tk_expr *callee, tk_args *args) {
    tk_expr *e = tk_e_new(p, TK_E_CALL, span);
    e->u.call.callee = callee;
    if (args) {
        TK_VEC_MOVE(e->u.call.args, args->v);
    }
    lift(p, e, tk_higher(tk_e_height(callee), args ? args->height : 0));
    return e;
}

tk_expr *tk_e_index(tk_parser *p, tk_span span, tk_expr *base, tk_entries *entries,
                    tk_expr *other) {
    tk_expr *e = tk_e_new(p, TK_E_INDEX, span);
    e->u.index.base = base;
    TK_VEC_MOVE(e->u.index.entries, entries->v);
    e->u.index.other = other;
    lift(p, e, tk_higher(tk_e_height(base), tk_higher(entries->height, tk_e_height(other))));
    return e;
}

tk_expr *tk_e_list(tk_parser *p, tk_ekind kind, tk_span span, tk_exprs *list) {
    tk_expr *e = tk_e_new(p, kind, span);
    TK_VEC_MOVE(e->u.list, list->v);
    lift(p, e, list->height);
    return e;
}

tk_expr *tk_e_lambda(tk_parser *p, tk_span span, tk_span head, tk_params *params,
                     tk_ast_type *result, tk_block *body) {
    tk_expr *e = tk_e_new(p, TK_E_LAMBDA, span);
    tk_fn *f = TK_NEW(p->arena, tk_fn);
    f->span = head;
    if (params) {
        TK_VEC_MOVE(f->params, params->v);
    }
    f->result = result;
    f->body = body;
    e->u.lambda = f;
    uint32_t below = tk_higher(params ? params->height : 0, tk_t_height(result));
    lift(p, e, tk_higher(below, tk_block_height(body)));
    tk_block_role(body, TK_ROLE_LAMBDA);
    return e;
}

// ---- Lists ------------------------------------------------------------------------------------

tk_exprs *tk_exprs_add(tk_parser *p, tk_exprs *l, tk_expr *e) {
    l = l ? l : TK_NEW(p->arena, tk_exprs);
    tk_vec_push(p->arena, &l->v, e);
    l->height = tk_higher(l->height, tk_e_height(e));
    return l;
}

tk_args *tk_args_add(tk_parser *p, tk_args *l, const tk_token *name, tk_expr *e) {
    l = l ? l : TK_NEW(p->arena, tk_args);
    tk_arg arg = {tk_ident_of(p, name), e};
    tk_vec_push(p->arena, &l->v, arg);
    l->height = tk_higher(l->height, tk_e_height(e));
    return l;
}

tk_index *tk_entry(tk_parser *p, tk_ikind kind, tk_span span, tk_expr *at, tk_expr *count,
                   tk_expr *where) {
    tk_index *entry = TK_NEW(p->arena, tk_index);
    *entry = (tk_index){.kind = kind, .span = span, .at = at, .count = count, .where = where};
    return entry;
}

tk_entries *tk_entries_add(tk_parser *p, tk_entries *l, const tk_index *entry) {
    l = l ? l : TK_NEW(p->arena, tk_entries);
    tk_vec_push(p->arena, &l->v, *entry);
    uint32_t below = tk_higher(tk_e_height(entry->count), tk_e_height(entry->where));
    l->height = tk_higher(l->height, tk_higher(below, tk_e_height(entry->at)));
    return l;
}

tk_idents *tk_idents_add(tk_parser *p, tk_idents *l, const tk_token *name) {
    l = l ? l : TK_NEW(p->arena, tk_idents);
    tk_vec_push(p->arena, &l->v, tk_ident_of(p, name));
    return l;
}

tk_types *tk_types_add(tk_parser *p, tk_types *l, tk_ast_type *t) {
    l = l ? l : TK_NEW(p->arena, tk_types);
    tk_vec_push(p->arena, &l->v, t);
    l->height = tk_higher(l->height, tk_t_height(t));
    return l;
}

tk_params *tk_params_add(tk_parser *p, tk_params *l, tk_span span, const tk_token *name,
                         tk_ast_type *type, tk_expr *init) {
    l = l ? l : TK_NEW(p->arena, tk_params);
    tk_param param = {tk_ident_of(p, name), type, init, span};
    tk_vec_push(p->arena, &l->v, param);
    l->height = tk_higher(l->height, tk_higher(tk_t_height(type), tk_e_height(init)));
    return l;
}

tk_cparams *tk_cparams_add(tk_parser *p, tk_cparams *l, tk_span span, const tk_token *name,
                           tk_ast_type *kind, tk_expr *init) {
    l = l ? l : TK_NEW(p->arena, tk_cparams);
    tk_cparam param = {tk_ident_of(p, name), kind, init, span};
    tk_vec_push(p->arena, &l->v, param);
    return l;
}

tk_axes *tk_axes_add(tk_parser *p, tk_axes *l, const tk_token *name, tk_expr *count) {
    l = l ? l : TK_NEW(p->arena, tk_axes);
    tk_grid_axis axis = {tk_ident_of(p, name), count};
    tk_vec_push(p->arena, &l->v, axis);
    return l;
}

// ---- Types ------------------------------------------------------------------------------------

static tk_ast_type *type_new(tk_parser *p, tk_ast_tkind kind, tk_span span, uint32_t below) {
    type_node *n = TK_NEW(p->arena, type_node);
    n->node.kind = kind;
    n->node.span = span;
    n->height = tk_height_over(p, span, below);
    return &n->node;
}

tk_ast_type *tk_t_name(tk_parser *p, tk_span span, unsigned access, const tk_token *name,
                       tk_exprs *dims) {
    tk_ast_type *t = type_new(p, TK_AT_NAME, span, dims ? dims->height : 0);
    t->name = tk_ident_of(p, name);
    t->access = (uint8_t)access;
    if (dims) {
        t->has_dims = true;
        TK_VEC_MOVE(t->dims, dims->v);
    }
    return t;
}

tk_ast_type *tk_t_fn(tk_parser *p, tk_span span, tk_types *args, tk_ast_type *result) {
    uint32_t below = tk_higher(args ? args->height : 0, tk_t_height(result));
    tk_ast_type *t = type_new(p, TK_AT_FN, span, below);
    if (args) {
        TK_VEC_MOVE(t->args, args->v);
    }
    t->result = result;
    return t;
}

tk_ast_type *tk_t_tuple(tk_parser *p, tk_span span, tk_types *list) {
    tk_ast_type *t = type_new(p, TK_AT_TUPLE, span, list->height);
    TK_VEC_MOVE(t->args, list->v);
    return t;
}
