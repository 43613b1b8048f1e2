// SPDX-License-Identifier: Apache-2.0
// The canonical layout: logical lines (a statement, the head of a block, an attribute), each at the
// indentation of its block. Tokens and comments are those of the text; only white space between
// them is new, so the layout of a layout is the same text.
#include "parser/format_internal.h"

#include "parser/parse.tab.h"

static bool is_comment(const tk_layout_state *w, uint32_t i) {
    return w->pieces.at[i].kind == TK_KIND_COMMENT;
}

static bool opens_block(const tk_piece *x) {
    return x->kind == TOK_LBRACE && (x->role == TK_ROLE_BLOCK || x->role == TK_ROLE_BODY);
}

// The piece after an attribute that starts at i.
static uint32_t attribute_end(const tk_layout_state *w, uint32_t i, uint32_t to) {
    while (i < to && w->pieces.at[i].kind != TOK_NAME) {
        i++;
    }
    uint32_t next = i + 1;
    while (next < to && is_comment(w, next)) {
        next++;
    }
    bool list = next < to && w->pieces.at[next].kind == TOK_LPAREN;
    return list ? w->pieces.at[next].match + 1 : i + 1;
}

// The piece after the logical line that starts at i: after its ';' or the '{' of its block. A '}'
// is a line of its own, unless `else` follows.
static uint32_t line_end(const tk_layout_state *w, uint32_t i, uint32_t to) {
    uint32_t first = i;
    while (first < to && is_comment(w, first)) {
        first++;
    }
    if (first == to) {
        return to;
    }
    if (w->pieces.at[first].kind == TOK_AT) {
        return attribute_end(w, first, to);
    }
    if (w->pieces.at[first].kind == TOK_RBRACE) {
        uint32_t next = first + 1;
        bool apart = false; // a comment between '}' and `else` breaks the line
        while (next < to && is_comment(w, next)) {
            apart = apart || w->pieces.at[next].width >= TK_NO_FIT;
            next++;
        }
        if (apart || next == to || w->pieces.at[next].kind != TOK_ELSE) {
            return first + 1;
        }
        i = next;
    }
    while (i < to) {
        const tk_piece *x = &w->pieces.at[i];
        if (x->kind == TOK_SEMI || opens_block(x)) {
            return i + 1;
        }
        i = tk_is_opener(x) ? x->match + 1 : i + 1;
    }
    return to;
}

static uint32_t grid_of(const tk_layout_state *w, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        if (w->pieces.at[i].kind == TOK_GRID) {
            return i;
        }
        if (tk_is_opener(&w->pieces.at[i]) && w->pieces.at[i].match < to) {
            i = w->pieces.at[i].match;
        }
    }
    return to;
}

static void write_part(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    uint32_t width = tk_flat_width(w, from, to);
    if (width < TK_NO_FIT && indent + width <= TK_LINE_WIDTH) {
        tk_write_flat(w, from, to, indent);
    } else {
        tk_write_broken(w, from, to, indent);
    }
}

// A head of several lines has its '{' on a line of its own.
static void write_head(tk_layout_state *w, uint32_t from, uint32_t open, uint32_t indent) {
    uint32_t before = w->lines;
    uint32_t grid = grid_of(w, from, open);
    write_part(w, from, grid, indent);
    if (grid < open) {
        tk_new_line(w, indent + TK_INDENT);
        write_part(w, grid, open, indent + TK_INDENT);
    }
    if (w->lines != before || w->must_break) {
        tk_new_line(w, indent);
    }
    tk_write_flat(w, open, open + 1, indent);
}

static void write_line(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    uint32_t last = to - 1;
    bool block = opens_block(&w->pieces.at[last]);
    uint32_t width = tk_flat_width(w, from, block ? last : to) + (block ? 2 : 0);
    uint32_t grid = block ? grid_of(w, from, last) : to;
    bool broken = grid < last && w->pieces.at[grid].own_line; // as it was written
    if (!broken && width < TK_NO_FIT && indent + width <= TK_LINE_WIDTH) {
        tk_write_flat(w, from, to, indent);
    } else if (block && last > from) { // the '{' of a bare block is its whole line
        write_head(w, from, last, indent);
    } else {
        tk_write_broken(w, from, to, indent);
    }
}

// A function whose block stands on the line of its head.
static bool write_whole(tk_layout_state *w, uint32_t from, uint32_t open, uint32_t indent) {
    uint32_t end = w->pieces.at[open].match + 1;
    uint32_t width = tk_flat_width(w, from, end);
    if (width >= TK_NO_FIT || indent + width > TK_LINE_WIDTH) {
        return false;
    }
    tk_write_flat(w, from, end, indent);
    return true;
}

static uint32_t write_trailing(tk_layout_state *w, uint32_t i, uint32_t to, uint32_t indent) {
    while (i < to && is_comment(w, i) && !w->pieces.at[i].own_line) {
        tk_write_flat(w, i, i + 1, indent);
        i++;
    }
    return i;
}

// A comment that has its line to itself; one with code behind it belongs to that.
static bool stands_alone(const tk_layout_state *w, uint32_t i, uint32_t to) {
    return is_comment(w, i) &&
           (w->pieces.at[i].line_comment || i + 1 == to || w->pieces.at[i + 1].own_line);
}

void tk_write_statements(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    for (uint32_t i = from; i < to;) {
        tk_new_line(w, indent);
        if (i > from && w->pieces.at[i].blank_before && w->pieces.at[i].kind != TOK_RBRACE) {
            tk_buf_str(w->out, "\n");
        }
        if (stands_alone(w, i, to)) {
            tk_write_flat(w, i, i + 1, indent);
            i++;
            continue;
        }
        uint32_t end = line_end(w, i, to);
        const tk_piece *x = &w->pieces.at[end - 1];
        if (!opens_block(x)) {
            write_line(w, i, end, indent);
            i = write_trailing(w, end, to, indent);
            continue;
        }
        if (write_whole(w, i, end - 1, indent)) {
            i = write_trailing(w, x->match + 1, to, indent);
            continue;
        }
        write_line(w, i, end, indent);
        uint32_t body = write_trailing(w, end, x->match, indent);
        tk_write_statements(w, body, x->match, indent + TK_INDENT);
        i = x->match;
    }
}

void tk_layout(tk_parser *p, tk_buf *out) {
    tk_layout_state w = {.p = p, .out = out, .line_start = true, .last = UINT32_MAX};
    tk_make_pieces(&w);
    tk_write_statements(&w, 0, w.pieces.n, 0);
    tk_new_line(&w, 0);
}
