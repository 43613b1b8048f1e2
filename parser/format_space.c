// SPDX-License-Identifier: Apache-2.0
// The formatter's pieces: what they are, how wide, and where a space stands between two of them.
#include "parser/format_internal.h"

#include "parser/parse.tab.h"

// ---- Pieces -----------------------------------------------------------------------------------

static uint32_t columns(const char *s, uint32_t n) {
    uint32_t width = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            return TK_NO_FIT;
        }
        width += ((unsigned char)s[i] & 0xC0u) != 0x80u;
    }
    return width;
}

static void add_piece(tk_layout_state *w, tk_piece x) {
    const char *text = w->p->source->text;
    uint32_t before = w->pieces.n ? w->pieces.at[w->pieces.n - 1].end : 0;
    uint32_t breaks = 0;
    for (uint32_t i = before; i < x.begin; i++) {
        breaks += text[i] == '\n';
    }
    x.own_line = breaks > 0 || before == 0;
    x.blank_before = breaks > 1;
    x.match = w->pieces.n;
    if (x.kind == TK_KIND_COMMENT) {
        x.line_comment = text[x.begin + 1] == '/';
        const char *end = text + x.end;
        while (x.line_comment && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
            end--;
        }
        x.end = (uint32_t)(end - text);
    }
    x.width = x.line_comment ? TK_NO_FIT : columns(text + x.begin, x.end - x.begin);
    if (x.kind == TK_KIND_COMMENT && x.own_line) {
        x.width = TK_NO_FIT;
    }
    tk_vec_push(w->p->arena, &w->pieces, x);
}

bool tk_is_opener(const tk_piece *x) {
    return x->kind == TOK_LPAREN || x->kind == TOK_LBRACKET || x->kind == TOK_LBRACE ||
           (x->kind == TOK_LT && x->role == TK_ROLE_ANGLE);
}

static bool is_closer(const tk_piece *x) {
    return x->kind == TOK_RPAREN || x->kind == TOK_RBRACKET || x->kind == TOK_RBRACE ||
           (x->kind == TOK_GT && x->role == TK_ROLE_ANGLE);
}

void tk_make_pieces(tk_layout_state *w) {
    const tk_parser *p = w->p;
    uint32_t comment = 0;
    TK_VEC(uint32_t) open = {0};
    for (uint32_t i = 0; i < p->tokens.n; i++) {
        for (; comment < p->comments.n && p->comments.at[comment].next == i; comment++) {
            const tk_comment *c = &p->comments.at[comment];
            add_piece(w, (tk_piece){.kind = TK_KIND_COMMENT, .begin = c->begin, .end = c->end});
        }
        const tk_token *t = &p->tokens.at[i];
        if (t->kind == 0) {
            break;
        }
        add_piece(w,
                  (tk_piece){.kind = t->kind, .begin = t->begin, .end = t->end, .role = t->role});
        uint32_t n = w->pieces.n - 1;
        tk_piece *x = &w->pieces.at[n];
        if (tk_is_opener(x)) {
            tk_vec_push(p->arena, &open, n);
        } else if (is_closer(x)) {
            TK_CHECK(p->arena, open.n > 0);
            x->match = open.at[--open.n];
            w->pieces.at[x->match].match = n;
        }
    }
}

// ---- Spaces -----------------------------------------------------------------------------------

static bool is_block_brace(const tk_piece *x) {
    return (x->kind == TOK_LBRACE || x->kind == TOK_RBRACE) && x->role != TK_ROLE_SET;
}

static bool takes_call(const tk_piece *x) {
    return tk_ends_operand(x->kind) || x->kind == TOK_FN || x->kind == TOK_PIPELINE ||
           x->kind == TOK_UNROLL || (x->kind == TOK_GT && x->role == TK_ROLE_ANGLE) ||
           (x->kind == TOK_RBRACE && x->role == TK_ROLE_LAMBDA);
}

bool tk_space_between(const tk_layout_state *w, uint32_t before, uint32_t after) {
    const tk_piece *a = &w->pieces.at[before], *b = &w->pieces.at[after];
    if (b->kind == TOK_COMMA || b->kind == TOK_SEMI || b->kind == TOK_RPAREN ||
        b->kind == TOK_RBRACKET) {
        return false;
    }
    if (a->kind == TOK_LPAREN || a->kind == TOK_LBRACKET || a->kind == TOK_AT ||
        a->role == TK_ROLE_UNARY) {
        return a->role == TK_ROLE_UNARY && b->kind == TK_KIND_COMMENT;
    }
    if (a->role == TK_ROLE_ANGLE && a->kind == TOK_LT) {
        return false;
    }
    if (b->role == TK_ROLE_ANGLE) {
        return false;
    }
    if ((a->kind == TOK_LBRACE || b->kind == TOK_RBRACE) &&
        (a->role == TK_ROLE_SET || b->role == TK_ROLE_SET)) {
        return a->kind != TOK_LBRACE && b->kind != TOK_RBRACE;
    }
    if (is_block_brace(b)) {
        return true;
    }
    if (b->kind == TOK_COLON) {
        return a->kind == TOK_COMMA;
    }
    if (b->kind == TOK_LPAREN || b->kind == TOK_LBRACKET) {
        return !takes_call(a);
    }
    return true;
}

uint32_t tk_flat_width(const tk_layout_state *w, uint32_t from, uint32_t to) {
    uint32_t width = 0;
    for (uint32_t i = from; i < to && width < TK_NO_FIT; i++) {
        const tk_piece *x = &w->pieces.at[i];
        width += x->width + (i > from && tk_space_between(w, i - 1, i));
        bool block = x->kind == TOK_LBRACE && is_block_brace(x);
        if (block && !tk_one_line_block(w, i)) {
            return TK_NO_FIT;
        }
    }
    return width < TK_NO_FIT ? width : TK_NO_FIT;
}

// Whether the block of a function may stand on one line: it is empty, or one simple statement and
// written so.
bool tk_one_line_block(const tk_layout_state *w, uint32_t open) {
    const tk_piece *x = &w->pieces.at[open];
    if (x->role != TK_ROLE_BODY && x->role != TK_ROLE_LAMBDA) {
        return false;
    }
    if (x->match == open + 1) {
        return true;
    }
    uint32_t statements = 0;
    for (uint32_t i = open + 1; i <= x->match; i++) {
        const tk_piece *y = &w->pieces.at[i];
        if (y->own_line || y->kind == TK_KIND_COMMENT ||
            (y->kind == TOK_LBRACE && y->role == TK_ROLE_BLOCK)) {
            return false;
        }
        statements += y->kind == TOK_SEMI;
    }
    return statements == 1;
}

bool tk_is_binary(const tk_piece *x) {
    switch (x->kind) {
    case TOK_LT:
    case TOK_GT:
        return x->role != TK_ROLE_ANGLE;
    case TOK_MINUS:
        return x->role != TK_ROLE_UNARY;
    case TOK_STAR:
    case TOK_SLASH:
    case TOK_PERCENT:
    case TOK_PLUS:
    case TOK_SHL:
    case TOK_SHR:
    case TOK_LE:
    case TOK_GE:
    case TOK_EQ:
    case TOK_NE:
    case TOK_AMP:
    case TOK_PIPE:
    case TOK_CARET:
    case TOK_ANDAND:
    case TOK_OROR:
    case TOK_PLUSCOLON:
    case TOK_DOTDOT:
    case TOK_ELSE:
    case TOK_STEP:
    case TOK_WHERE:
    case TOK_PIPELINE:
    case TOK_UNROLL:
        return true;
    default:
        return false;
    }
}
