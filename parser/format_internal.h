// SPDX-License-Identifier: Apache-2.0
// Inside the formatter: pieces (tokens and comments in one array) and the line that is being
// written.
#ifndef TK_PARSER_FORMAT_INTERNAL_H
#define TK_PARSER_FORMAT_INTERNAL_H

#include "parser/parse_internal.h"

enum { TK_LINE_WIDTH = 100, TK_INDENT = 4 };
#define TK_NO_FIT ((uint32_t)1 << 30) // the width of what cannot stand on one line

typedef struct tk_piece {
    int kind; // TOK_..., or TK_KIND_COMMENT
    uint32_t begin, end;
    uint32_t match;    // of a bracket: the other one; else its own index
    uint32_t width;    // columns, TK_NO_FIT for what has a line break in it or after it
    uint8_t role;      // tk_role
    bool line_comment; // the line ends after it
    bool own_line;     // nothing stands before it on its source line
    bool blank_before; // an empty source line stands before it
} tk_piece;

typedef struct tk_layout_state {
    tk_parser *p;
    tk_buf *out;
    TK_VEC(tk_piece) pieces;
    uint32_t column; // of the next character; at a line's start its indentation is not yet written
    uint32_t indent; // of the current line
    bool line_start; // nothing is on the current line
    bool must_break; // a line comment was written
    uint32_t last;   // the piece written before; UINT32_MAX at a line's start
    uint32_t lines;  // line breaks written
} tk_layout_state;

// ---- format_space.c
void tk_make_pieces(tk_layout_state *w);
bool tk_space_between(const tk_layout_state *w, uint32_t before, uint32_t after);
uint32_t tk_flat_width(const tk_layout_state *w, uint32_t from,
                       uint32_t to); // of the pieces [from, to)
bool tk_is_opener(const tk_piece *x);
bool tk_is_binary(const tk_piece *x);
bool tk_one_line_block(const tk_layout_state *w, uint32_t open);

// ---- format_line.c
void tk_new_line(tk_layout_state *w, uint32_t indent);
void tk_write_flat(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent);
void tk_write_broken(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent);

// ---- format.c
void tk_write_statements(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent);

#endif
