// SPDX-License-Identifier: Apache-2.0
// The text form of the syntax tree: one node a line, indented by two, in the order of the source.
#include "lang/ast.h"

#include <math.h>

typedef struct {
    tk_buf *out;
    int depth;
} printer;

static void expr(printer *w, const tk_expr *e);
static void block(printer *w, const tk_block *b);
static void function(printer *w, const tk_fn *f);

const char *tk_binop_text(tk_binop op) {
    static const char *const text[] = {"*", "/",  "%",  "+",  "-", "<<", ">>", "<",  "<=",
                                       ">", ">=", "==", "!=", "&", "^",  "|",  "&&", "||"};
    return (unsigned)op < sizeof text / sizeof *text ? text[op] : "?";
}

const char *tk_unop_text(tk_unop op) {
    switch (op) {
    case TK_U_NEG:
        return "-";
    case TK_U_NOT:
        return "!";
    case TK_U_BNOT:
        return "~";
    }
    return "?";
}

// ---- Lines ------------------------------------------------------------------------------------

static void start(printer *w, const char *word) {
    for (int i = 0; i < w->depth; i++) {
        tk_buf_str(w->out, "  ");
    }
    tk_buf_str(w->out, word);
}

static void line(printer *w, const char *word) {
    start(w, word);
    tk_buf_str(w->out, "\n");
}

static void named(printer *w, const char *word, const char *name) {
    start(w, word);
    tk_buf_fmt(w->out, " %s\n", name ? name : "-");
}

// A child under a line that says what it is to its parent.
static void child(printer *w, const char *word, const tk_expr *e) {
    if (e) {
        line(w, word);
        w->depth++;
        expr(w, e);
        w->depth--;
    }
}

static void quoted(printer *w, const char *s, size_t n) {
    tk_buf_str(w->out, "\"");
    for (size_t i = 0; i < n; i++) {
        switch (s[i]) {
        case '\n':
            tk_buf_str(w->out, "\\n");
            break;
        case '\t':
            tk_buf_str(w->out, "\\t");
            break;
        case '"':
        case '\\':
            tk_buf_fmt(w->out, "\\%c", s[i]);
            break;
        default:
            tk_buf_add(w->out, s + i, 1);
        }
    }
    tk_buf_str(w->out, "\"");
}

// In hexadecimal: exact, and the same in every locale but for the point, which is set right.
static void number(printer *w, double f) {
    size_t at = w->out->n;
    if (isnan(f)) {
        tk_buf_str(w->out, "nan");
    } else if (isinf(f)) {
        tk_buf_str(w->out, f < 0 ? "-inf" : "inf");
    } else {
        tk_buf_fmt(w->out, "%a", f);
    }
    for (; at < w->out->n; at++) {
        if (w->out->at[at] == ',') {
            w->out->at[at] = '.';
        }
    }
}

// ---- Types ------------------------------------------------------------------------------------

static void type(printer *w, const tk_ast_type *t) {
    static const char *const access[] = {"type", "type in", "type out", "type inout"};
    switch (t->kind) {
    case TK_AT_NAME:
        named(w, access[t->access & 3], t->name.name);
        break;
    case TK_AT_FN:
        line(w, "type fn");
        break;
    case TK_AT_TUPLE:
        line(w, "type tuple");
        break;
    }
    w->depth++;
    for (uint32_t i = 0; i < t->dims.n; i++) {
        expr(w, t->dims.at[i]);
    }
    for (uint32_t i = 0; i < t->args.n; i++) {
        type(w, t->args.at[i]);
    }
    if (t->result) {
        line(w, "result");
        w->depth++;
        type(w, t->result);
        w->depth--;
    }
    w->depth--;
}

// ---- Expressions ------------------------------------------------------------------------------

static void arg(printer *w, const tk_arg *a) {
    if (a->name.name) {
        named(w, "arg", a->name.name);
        w->depth++;
        expr(w, a->value);
        w->depth--;
    } else {
        expr(w, a->value);
    }
}

static void entry(printer *w, const tk_index *x) {
    switch (x->kind) {
    case TK_I_ALL:
        line(w, "all");
        break;
    case TK_I_EXPR:
        line(w, "at");
        break;
    case TK_I_RANGE:
        line(w, "range");
        break;
    }
    w->depth++;
    if (x->at) {
        expr(w, x->at);
    }
    if (x->count) {
        expr(w, x->count);
    }
    child(w, "where", x->where);
    w->depth--;
}

// A node that is one line; false for one with children.
static bool leaf(printer *w, const tk_expr *e) {
    switch (e->kind) {
    case TK_E_INT:
        start(w, "int");
        tk_buf_fmt(w->out, " %llu%s\n", (unsigned long long)e->u.i.value,
                   e->u.i.shift == 10   ? "KB"
                   : e->u.i.shift == 20 ? "MB"
                                        : "");
        return true;
    case TK_E_FLOAT:
        start(w, "float ");
        number(w, e->u.f);
        tk_buf_str(w->out, "\n");
        return true;
    case TK_E_BOOL:
        line(w, e->u.b ? "bool true" : "bool false");
        return true;
    case TK_E_STRING:
        start(w, "string ");
        quoted(w, e->u.string.text, e->u.string.size);
        tk_buf_str(w->out, "\n");
        return true;
    case TK_E_NEWAXIS:
        line(w, "newaxis");
        return true;
    case TK_E_NAME:
        named(w, "name", e->u.name);
        return true;
    case TK_E_UNARY:
        named(w, "unary", tk_unop_text(e->u.unary.op));
        return false;
    case TK_E_BINARY:
        named(w, "binary", tk_binop_text(e->u.binary.op));
        return false;
    case TK_E_CALL:
        line(w, "call");
        return false;
    case TK_E_INDEX:
        line(w, "index");
        return false;
    case TK_E_LIST:
        line(w, "list");
        return false;
    case TK_E_TUPLE:
        line(w, "tuple");
        return false;
    case TK_E_LAMBDA:
        line(w, "lambda");
        return false;
    }
    return true;
}

static void children(printer *w, const tk_expr *e) {
    switch (e->kind) {
    case TK_E_UNARY:
        expr(w, e->u.unary.x);
        return;
    case TK_E_BINARY:
        expr(w, e->u.binary.x);
        expr(w, e->u.binary.y);
        return;
    case TK_E_CALL:
        expr(w, e->u.call.callee);
        for (uint32_t i = 0; i < e->u.call.args.n; i++) {
            arg(w, &e->u.call.args.at[i]);
        }
        return;
    case TK_E_INDEX:
        expr(w, e->u.index.base);
        for (uint32_t i = 0; i < e->u.index.entries.n; i++) {
            entry(w, &e->u.index.entries.at[i]);
        }
        child(w, "else", e->u.index.other);
        return;
    case TK_E_LIST:
    case TK_E_TUPLE:
        for (uint32_t i = 0; i < e->u.list.n; i++) {
            expr(w, e->u.list.at[i]);
        }
        return;
    case TK_E_LAMBDA:
        function(w, e->u.lambda);
        return;
    case TK_E_INT:
    case TK_E_FLOAT:
    case TK_E_BOOL:
    case TK_E_STRING:
    case TK_E_NEWAXIS:
    case TK_E_NAME:
        return;
    }
}

static void expr(printer *w, const tk_expr *e) {
    if (!leaf(w, e)) {
        w->depth++;
        children(w, e);
        w->depth--;
    }
}

// ---- Statements -------------------------------------------------------------------------------

static void bind(printer *w, const tk_stmt *s) {
    start(w, s->kind == TK_S_LET ? "let" : "var");
    for (uint32_t i = 0; i < s->u.bind.names.n; i++) {
        tk_buf_fmt(w->out, " %s", s->u.bind.names.at[i].name);
    }
    tk_buf_str(w->out, "\n");
    w->depth++;
    if (s->u.bind.type) {
        type(w, s->u.bind.type);
    }
    expr(w, s->u.bind.value);
    w->depth--;
}

static void stmt(printer *w, const tk_stmt *s);

static void branches(printer *w, const tk_stmt *s) {
    line(w, "if");
    w->depth++;
    expr(w, s->u.cond.cond);
    block(w, s->u.cond.then);
    if (s->u.cond.other) {
        line(w, "else");
        w->depth++;
        stmt(w, s->u.cond.other);
        w->depth--;
    }
    w->depth--;
}

static void loop(printer *w, const tk_stmt *s) {
    named(w, "for", s->u.loop.var.name);
    w->depth++;
    expr(w, s->u.loop.from);
    expr(w, s->u.loop.to);
    child(w, "step", s->u.loop.step);
    child(w, "pipeline", s->u.loop.pipeline);
    child(w, "unroll", s->u.loop.unroll);
    block(w, s->u.loop.body);
    w->depth--;
}

static void stmt(printer *w, const tk_stmt *s) {
    switch (s->kind) {
    case TK_S_LET:
    case TK_S_VAR:
        bind(w, s);
        return;
    case TK_S_ASSIGN:
        start(w, "assign");
        tk_buf_fmt(w->out, " %s=\n", s->u.assign.compound ? tk_binop_text(s->u.assign.op) : "");
        w->depth++;
        expr(w, s->u.assign.target);
        expr(w, s->u.assign.value);
        w->depth--;
        return;
    case TK_S_EXPR:
        child(w, "do", s->u.expr);
        return;
    case TK_S_IF:
        branches(w, s);
        return;
    case TK_S_FOR:
        loop(w, s);
        return;
    case TK_S_WHILE:
        line(w, "while");
        w->depth++;
        expr(w, s->u.loop_while.cond);
        child(w, "pipeline", s->u.loop_while.pipeline);
        child(w, "unroll", s->u.loop_while.unroll);
        block(w, s->u.loop_while.body);
        w->depth--;
        return;
    case TK_S_BREAK:
        line(w, "break");
        return;
    case TK_S_CONTINUE:
        line(w, "continue");
        return;
    case TK_S_RETURN:
        line(w, "return");
        w->depth++;
        for (uint32_t i = 0; i < s->u.results.n; i++) {
            expr(w, s->u.results.at[i]);
        }
        w->depth--;
        return;
    case TK_S_BLOCK:
        block(w, s->u.block);
        return;
    }
}

static void block(printer *w, const tk_block *b) {
    line(w, "block");
    w->depth++;
    for (uint32_t i = 0; i < b->list.n; i++) {
        stmt(w, b->list.at[i]);
    }
    w->depth--;
}

// ---- Items ------------------------------------------------------------------------------------

static void attribute(printer *w, const tk_attr *a) {
    named(w, "attribute", a->name.name);
    w->depth++;
    for (uint32_t i = 0; i < a->args.n; i++) {
        const tk_attr_arg *x = &a->args.at[i];
        named(w, x->is_set ? "set" : "arg", x->name.name);
        w->depth++;
        if (x->value) {
            expr(w, x->value);
        }
        for (uint32_t j = 0; j < x->list.n; j++) {
            expr(w, x->list.at[j]);
        }
        w->depth--;
    }
    for (uint32_t i = 0; i < a->keys.n; i++) {
        named(w, "key", a->keys.at[i].name);
    }
    w->depth--;
}

static void param(printer *w, const char *word, const tk_ident *name, const tk_ast_type *t,
                  const tk_expr *init) {
    named(w, word, name->name);
    w->depth++;
    type(w, t);
    child(w, "default", init);
    w->depth--;
}

static void function(printer *w, const tk_fn *f) {
    for (uint32_t i = 0; i < f->attrs.n; i++) {
        attribute(w, &f->attrs.at[i]);
    }
    for (uint32_t i = 0; i < f->cparams.n; i++) {
        const tk_cparam *c = &f->cparams.at[i];
        param(w, "cparam", &c->name, c->kind, c->init);
    }
    for (uint32_t i = 0; i < f->params.n; i++) {
        const tk_param *x = &f->params.at[i];
        param(w, "param", &x->name, x->type, x->init);
    }
    if (f->result) {
        line(w, "result");
        w->depth++;
        type(w, f->result);
        w->depth--;
    }
    for (uint32_t i = 0; i < f->grid.n; i++) {
        named(w, "grid", f->grid.at[i].name.name);
        w->depth++;
        expr(w, f->grid.at[i].count);
        w->depth--;
    }
    block(w, f->body);
}

static void alias(printer *w, const tk_item *item) {
    named(w, "alias", item->name.name);
    w->depth++;
    for (uint32_t i = 0; i < item->u.alias.attrs.n; i++) {
        attribute(w, &item->u.alias.attrs.at[i]);
    }
    for (uint32_t i = 0; i < item->u.alias.params.n; i++) {
        const tk_param *x = &item->u.alias.params.at[i];
        param(w, "param", &x->name, x->type, x->init);
    }
    named(w, "of", item->u.alias.other.name);
    for (uint32_t i = 0; i < item->u.alias.args.n; i++) {
        arg(w, &item->u.alias.args.at[i]);
    }
    w->depth--;
}

void tk_ast_print(tk_buf *out, const tk_file *file) {
    printer w = {out, 0};
    for (uint32_t i = 0; i < file->items.n; i++) {
        const tk_item *item = file->items.at[i];
        switch (item->kind) {
        case TK_ITEM_IMPORT:
            named(&w, "import", item->name.name);
            break;
        case TK_ITEM_CONST:
            named(&w, "const", item->name.name);
            w.depth++;
            if (item->u.konst.type) {
                type(&w, item->u.konst.type);
            }
            expr(&w, item->u.konst.value);
            w.depth--;
            break;
        case TK_ITEM_FN:
        case TK_ITEM_KERNEL:
            named(&w, item->kind == TK_ITEM_FN ? "fn" : "kernel", item->name.name);
            w.depth++;
            function(&w, item->u.fn);
            w.depth--;
            break;
        case TK_ITEM_ALIAS:
            alias(&w, item);
            break;
        }
    }
}
