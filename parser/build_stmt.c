// SPDX-License-Identifier: Apache-2.0
// Builders of blocks, statements, attributes and items.
#include "parser/build.h"

#include "parser/parse.tab.h"

#include <string.h>

// A block adds nothing to the height of its statements, so that blocks nest as deep as brackets do.
typedef struct {
    tk_block node;
    uint32_t height;
    tk_token *open, *close;
} block_node;

typedef struct {
    tk_stmt node;
    uint32_t height;
} stmt_node;

uint32_t tk_block_height(const tk_block *b) {
    return b ? ((const block_node *)(const void *)b)->height : 0;
}

static uint32_t stmt_height(const tk_stmt *s) {
    return s ? ((const stmt_node *)(const void *)s)->height : 0;
}

// ---- Statements -------------------------------------------------------------------------------

tk_block *tk_block_new(tk_parser *p, tk_span span, tk_stmts *list, tk_token *open,
                       tk_token *close) {
    block_node *n = TK_NEW(p->arena, block_node);
    n->node.span = span;
    if (list) {
        TK_VEC_MOVE(n->node.list, list->v);
        n->height = list->height;
    }
    n->open = open;
    n->close = close;
    tk_block_role(&n->node, TK_ROLE_BLOCK);
    return &n->node;
}

void tk_block_role(tk_block *b, tk_role role) {
    block_node *n = (block_node *)(void *)b;
    n->open->role = (uint8_t)role;
    n->close->role = (uint8_t)role;
}

tk_stmts *tk_stmts_add(tk_parser *p, tk_stmts *l, tk_stmt *s) {
    l = l ? l : TK_NEW(p->arena, tk_stmts);
    if (s) {
        tk_vec_push(p->arena, &l->v, s);
        l->height = tk_higher(l->height, stmt_height(s));
    }
    return l;
}

static tk_stmt *stmt_new(tk_parser *p, tk_skind kind, tk_span span, uint32_t below) {
    stmt_node *n = TK_NEW(p->arena, stmt_node);
    n->node.kind = kind;
    n->node.span = span;
    n->height = tk_height_over(p, span, below);
    return &n->node;
}

tk_stmt *tk_s_bind(tk_parser *p, tk_span span, tk_skind kind, tk_idents *names, tk_ast_type *type,
                   tk_expr *value) {
    tk_stmt *s = stmt_new(p, kind, span, tk_higher(tk_t_height(type), tk_e_height(value)));
    TK_VEC_MOVE(s->u.bind.names, names->v);
    s->u.bind.type = type;
    s->u.bind.value = value;
    return s;
}

tk_stmt *tk_s_assign(tk_parser *p, tk_span span, tk_expr *target, const tk_token *op,
                     tk_expr *value) {
    if (target->kind != TK_E_NAME && target->kind != TK_E_INDEX) {
        tk_diag *d = tk_error(p->diags, target->span, "bad-target", "this cannot be assigned to");
        tk_help(p->diags, d, (tk_span){0},
                "a variable or a view 'x[...]' stands before '%s'; '==' compares",
                op->kind == TOK_OPASSIGN ? "op=" : "=");
    } else if (target->kind == TK_E_INDEX && target->u.index.other) {
        (void)tk_error(p->diags, target->u.index.other->span, "bad-target",
                       "a view that is written to has no 'else': what is outside is dropped");
    }
    tk_stmt *s = stmt_new(p, TK_S_ASSIGN, span, tk_higher(tk_e_height(target), tk_e_height(value)));
    s->u.assign.target = target;
    s->u.assign.compound = op->kind == TOK_OPASSIGN;
    s->u.assign.op = s->u.assign.compound ? op->u.op : TK_B_MUL;
    s->u.assign.op_span = tk_token_span(p, op);
    s->u.assign.value = value;
    return s;
}

tk_stmt *tk_s_expr(tk_parser *p, tk_span span, tk_expr *e) {
    tk_stmt *s = stmt_new(p, TK_S_EXPR, span, tk_e_height(e));
    s->u.expr = e;
    return s;
}

// A chain of else-ifs is built from its first to its last, and hangs each on the one before.
tk_ifs *tk_ifs_add(tk_parser *p, tk_ifs *l, tk_span span, tk_expr *cond, tk_block *then) {
    tk_stmt *s = stmt_new(p, TK_S_IF, span, tk_higher(tk_e_height(cond), tk_block_height(then)));
    s->u.cond.cond = cond;
    s->u.cond.then = then;
    if (!l) {
        l = TK_NEW(p->arena, tk_ifs);
        l->first = s;
        l->n = 0;
    } else {
        l->last->u.cond.other = s;
    }
    l->last = s;
    l->n++;
    stmt_node *top = (stmt_node *)(void *)l->first;
    top->height = tk_higher(top->height, tk_height_over(p, span, stmt_height(s) + l->n - 2));
    return l;
}

tk_stmt *tk_s_if(tk_parser *p, tk_ifs *l, tk_block *other) {
    if (other) {
        tk_stmt *s = tk_s_block(p, other);
        l->last->u.cond.other = s;
        stmt_node *top = (stmt_node *)(void *)l->first;
        top->height =
            tk_higher(top->height, tk_height_over(p, other->span, stmt_height(s) + l->n - 1));
    }
    uint32_t end = l->last->u.cond.other ? l->last->u.cond.other->span.end : l->last->span.end;
    for (tk_stmt *s = l->first; s; s = s->kind == TK_S_IF ? s->u.cond.other : NULL) {
        s->span.end = end;
    }
    return l->first;
}

tk_hints *tk_hints_add(tk_parser *p, tk_hints *h, const tk_token *word, tk_expr *e) {
    h = h ? h : TK_NEW(p->arena, tk_hints);
    tk_expr **place = word->kind == TOK_STEP       ? &h->step
                      : word->kind == TOK_PIPELINE ? &h->pipeline
                                                   : &h->unroll;
    if (*place) {
        tk_span at = tk_token_span(p, word);
        tk_diag *d = tk_error(p->diags, at, "written-twice", "'%.*s' is written twice",
                              (int)(at.end - at.begin), p->source->text + at.begin);
        tk_note(p->diags, d, (*place)->span, "the first is here");
    }
    *place = e;
    return h;
}

tk_stmt *tk_s_for(tk_parser *p, tk_span span, const tk_token *var, tk_expr *from, tk_expr *to,
                  tk_hints *hints, tk_block *body) {
    tk_hints none = {0};
    hints = hints ? hints : &none;
    uint32_t below = tk_higher(tk_e_height(from), tk_e_height(to));
    below = tk_higher(below, tk_higher(tk_e_height(hints->step), tk_e_height(hints->pipeline)));
    below = tk_higher(below, tk_higher(tk_e_height(hints->unroll), tk_block_height(body)));
    tk_stmt *s = stmt_new(p, TK_S_FOR, span, below);
    s->u.loop.var = tk_ident_of(p, var);
    s->u.loop.from = from;
    s->u.loop.to = to;
    s->u.loop.step = hints->step;
    s->u.loop.pipeline = hints->pipeline;
    s->u.loop.unroll = hints->unroll;
    s->u.loop.body = body;
    return s;
}

tk_stmt *tk_s_while(tk_parser *p, tk_span span, tk_expr *cond, tk_hints *hints, tk_block *body) {
    tk_hints none = {0};
    hints = hints ? hints : &none;
    if (hints->step) {
        (void)tk_error(p->diags, hints->step->span, "misplaced-step", "a 'while' has no step");
    }
    uint32_t below = tk_higher(tk_e_height(cond), tk_block_height(body));
    below = tk_higher(below, tk_higher(tk_e_height(hints->pipeline), tk_e_height(hints->unroll)));
    tk_stmt *s = stmt_new(p, TK_S_WHILE, span, below);
    s->u.loop_while.cond = cond;
    s->u.loop_while.pipeline = hints->pipeline;
    s->u.loop_while.unroll = hints->unroll;
    s->u.loop_while.body = body;
    return s;
}

tk_stmt *tk_s_word(tk_parser *p, tk_span span, tk_skind kind) { return stmt_new(p, kind, span, 0); }

tk_stmt *tk_s_return(tk_parser *p, tk_span span, tk_expr *e) {
    tk_stmt *s = stmt_new(p, TK_S_RETURN, span, tk_e_height(e));
    if (e && e->kind == TK_E_TUPLE) {
        TK_VEC_MOVE(s->u.results, e->u.list);
    } else if (e) {
        tk_vec_push(p->arena, &s->u.results, e);
    }
    return s;
}

tk_stmt *tk_s_block(tk_parser *p, tk_block *b) {
    tk_stmt *s = stmt_new(p, TK_S_BLOCK, b->span, tk_block_height(b));
    s->u.block = b;
    return s;
}

void tk_empty_statement(tk_parser *p, tk_span at) {
    tk_diag *d = tk_error(p->diags, at, "empty-statement", "there is nothing before this ';'");
    tk_help(p->diags, d, (tk_span){0}, "remove the ';'");
}

// ---- Attributes -------------------------------------------------------------------------------

tk_attr_args *tk_attr_args_add(tk_parser *p, tk_attr_args *l, tk_span span, const tk_token *name,
                               tk_expr *value, tk_exprs *set) {
    l = l ? l : TK_NEW(p->arena, tk_attr_args);
    tk_attr_arg arg = {.span = span, .name = tk_ident_of(p, name), .value = value};
    if (set) {
        arg.is_set = true;
        TK_VEC_MOVE(arg.list, set->v);
    }
    tk_vec_push(p->arena, &l->v, arg);
    return l;
}

// A name is a flag, a call of a name is a flag with arguments, all else is a bare value.
tk_attr_args *tk_attr_args_expr(tk_parser *p, tk_attr_args *l, tk_expr *e) {
    l = tk_attr_args_add(p, l, e->span, NULL, NULL, NULL);
    tk_attr_arg *arg = &l->v.at[l->v.n - 1];
    if (e->kind == TK_E_NAME) {
        arg->name = (tk_ident){e->u.name, e->span};
    } else if (e->kind == TK_E_CALL && e->u.call.callee->kind == TK_E_NAME) {
        arg->name = (tk_ident){e->u.call.callee->u.name, e->u.call.callee->span};
        for (uint32_t i = 0; i < e->u.call.args.n; i++) {
            const tk_arg *a = &e->u.call.args.at[i];
            if (a->name.name) {
                (void)tk_error(p->diags, a->name.span, "bad-attribute",
                               "an attribute's arguments have no names here");
            }
            tk_vec_push(p->arena, &arg->list, a->value);
        }
    } else {
        arg->value = e;
    }
    return l;
}

tk_attrs *tk_attrs_add(tk_parser *p, tk_attrs *l, tk_span span, const tk_token *name,
                       tk_attr_args *args, tk_idents *keys) {
    l = l ? l : TK_NEW(p->arena, tk_attrs);
    tk_attr attr = {.span = span, .name = tk_ident_of(p, name)};
    if (args) {
        TK_VEC_MOVE(attr.args, args->v);
    }
    if (keys) {
        TK_VEC_MOVE(attr.keys, keys->v);
    }
    tk_vec_push(p->arena, &l->v, attr);
    return l;
}

// ---- Items ------------------------------------------------------------------------------------

static tk_item *item_new(tk_parser *p, tk_item_kind kind, tk_span span, tk_ident name) {
    tk_item *item = TK_NEW(p->arena, tk_item);
    item->kind = kind;
    item->span = span;
    item->name = name;
    tk_vec_push(p->arena, &p->tree->items, item);
    return item;
}

static tk_span item_span(const tk_attrs *attrs, tk_span head, uint32_t end) {
    return (tk_span){head.file, attrs ? attrs->v.at[0].span.begin : head.begin, end};
}

void tk_item_import(tk_parser *p, tk_span span, const tk_token *path) {
    const char *text = path->u.string.text;
    tk_span at = tk_token_span(p, path);
    if (path->u.string.size == 0) {
        (void)tk_error(p->diags, at, "bad-import", "an import names a file");
    }
    tk_ident name = {tk_intern(p->names, text, path->u.string.size), at};
    (void)item_new(p, TK_ITEM_IMPORT, span, name);
}

void tk_item_const(tk_parser *p, tk_span span, const tk_token *name, tk_ast_type *type,
                   tk_expr *value) {
    tk_item *item = item_new(p, TK_ITEM_CONST, span, tk_ident_of(p, name));
    item->u.konst.type = type;
    item->u.konst.value = value;
}

static tk_fn *fn_new(tk_parser *p, tk_attrs *attrs, tk_span head, const tk_token *name,
                     tk_cparams *cparams, tk_params *params) {
    tk_fn *f = TK_NEW(p->arena, tk_fn);
    f->span = head;
    f->name = tk_ident_of(p, name);
    if (attrs) {
        TK_VEC_MOVE(f->attrs, attrs->v);
    }
    if (cparams) {
        TK_VEC_MOVE(f->cparams, cparams->v);
    }
    if (params) {
        TK_VEC_MOVE(f->params, params->v);
    }
    return f;
}

void tk_item_fn(tk_parser *p, tk_attrs *attrs, tk_span head, const tk_token *name,
                tk_cparams *cparams, tk_params *params, tk_ast_type *result, tk_block *body) {
    tk_span span = item_span(attrs, head, body->span.end);
    tk_item *item = item_new(p, TK_ITEM_FN, span, tk_ident_of(p, name));
    item->u.fn = fn_new(p, attrs, head, name, cparams, params);
    item->u.fn->result = result;
    item->u.fn->body = body;
    tk_block_role(body, TK_ROLE_BODY);
}

tk_kernel_rest *tk_rest_body(tk_parser *p, tk_span span, tk_axes *grid, tk_block *body) {
    tk_kernel_rest *r = TK_NEW(p->arena, tk_kernel_rest);
    r->span = span;
    r->grid = grid;
    r->body = body;
    tk_block_role(body, TK_ROLE_BODY);
    return r;
}

tk_kernel_rest *tk_rest_alias(tk_parser *p, tk_span span, const tk_token *other, tk_args *args) {
    tk_kernel_rest *r = TK_NEW(p->arena, tk_kernel_rest);
    r->span = span;
    r->alias = true;
    r->other = tk_ident_of(p, other);
    r->args = args;
    for (uint32_t i = 0; args && i < args->v.n; i++) {
        if (!args->v.at[i].name.name) {
            tk_diag *d = tk_error(p->diags, args->v.at[i].value->span, "unnamed-argument",
                                  "a specialisation gives its parameters by name");
            tk_help(p->diags, d, (tk_span){0}, "write 'BM = 64'");
        }
    }
    return r;
}

void tk_item_kernel(tk_parser *p, tk_attrs *attrs, tk_span head, const tk_token *name,
                    tk_cparams *cparams, tk_params *params, tk_kernel_rest *rest) {
    tk_span span = item_span(attrs, head, rest->span.end);
    tk_ident id = tk_ident_of(p, name);
    if (!rest->alias) {
        tk_item *item = item_new(p, TK_ITEM_KERNEL, span, id);
        item->u.fn = fn_new(p, attrs, head, name, cparams, params);
        item->u.fn->is_kernel = true;
        if (rest->grid) {
            item->u.fn->has_grid = true;
            item->u.fn->span.end = rest->grid->span.end;
            TK_VEC_MOVE(item->u.fn->grid, rest->grid->v);
        }
        item->u.fn->body = rest->body;
        return;
    }
    if (cparams) {
        tk_diag *d = tk_error(p->diags, cparams->v.at[0].span, "bad-specialisation",
                              "a specialisation has no compile-time parameters of its own");
        tk_help(p->diags, d, (tk_span){0}, "what it does not set stays open");
    }
    tk_item *item = item_new(p, TK_ITEM_ALIAS, span, id);
    if (attrs) {
        TK_VEC_MOVE(item->u.alias.attrs, attrs->v);
    }
    if (params) {
        TK_VEC_MOVE(item->u.alias.params, params->v);
    }
    item->u.alias.other = rest->other;
    if (rest->args) {
        TK_VEC_MOVE(item->u.alias.args, rest->args->v);
    }
}
