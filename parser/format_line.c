// SPDX-License-Identifier: Apache-2.0
// Writing one logical line: flat where it fits, else filled, with breaks before binary operators
// and inside brackets, whose contents stand one level deeper and whose closing bracket follows the
// last of them.
#include "parser/format_internal.h"

#include "parser/parse.tab.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

void tk_new_line(tk_layout_state *w, uint32_t indent) {
    if (!w->line_start) {
        tk_buf_str(w->out, "\n");
        w->lines++;
    }
    w->line_start = true;
    w->must_break = false;
    w->indent = indent;
    w->column = indent;
    w->last = UINT32_MAX;
}

// The text of a piece, with line breaks as LF.
static void write_text(tk_layout_state *w, const tk_piece *x) {
    const char *s = w->p->source->text;
    uint32_t from = x->begin;
    for (uint32_t i = x->begin; i < x->end; i++) {
        if (s[i] == '\r' && i + 1 < x->end && s[i + 1] == '\n') {
            tk_buf_add(w->out, s + from, i - from);
            from = i + 1;
        }
    }
    tk_buf_add(w->out, s + from, x->end - from);
    if (x->width < TK_NO_FIT) {
        w->column += x->width;
        return;
    }
    for (uint32_t i = x->begin; i < x->end; i++) {
        w->column = s[i] == '\n' ? 0 : w->column + (((unsigned char)s[i] & 0xC0u) != 0x80u);
    }
}

static void write_piece(tk_layout_state *w, uint32_t i, uint32_t indent) {
    const tk_piece *x = &w->pieces.at[i];
    bool comment = x->kind == TK_KIND_COMMENT;
    if (w->must_break || (comment && x->own_line)) {
        tk_new_line(w, w->line_start ? w->indent : indent);
    }
    if (w->line_start) {
        for (uint32_t k = 0; k < w->indent; k++) {
            tk_buf_add(w->out, " ", 1);
        }
    } else if (w->last != UINT32_MAX && tk_space_between(w, w->last, i)) {
        tk_buf_str(w->out, " ");
        w->column++;
    } else if (x->line_comment) {
        tk_buf_str(w->out, " ");
        w->column++;
    }
    write_text(w, x);
    w->line_start = false;
    w->last = i;
    w->must_break = x->line_comment;
}

void tk_write_flat(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    for (uint32_t i = from; i < to; i++) {
        write_piece(w, i, indent);
    }
}

// The columns of closing brackets, commas and semicolons that follow piece i without a break.
static uint32_t tail_width(const tk_layout_state *w, uint32_t i) {
    uint32_t width = 0;
    for (i++; i < w->pieces.n; i++) {
        const tk_piece *x = &w->pieces.at[i];
        bool closes = x->match < i && x->kind != TOK_RBRACE;
        if (!closes && x->kind != TOK_COMMA && x->kind != TOK_SEMI) {
            break;
        }
        width += x->width;
    }
    return width;
}

static bool fits(const tk_layout_state *w, uint32_t column, uint32_t from, uint32_t to) {
    uint32_t width = tk_flat_width(w, from, to);
    return width < TK_NO_FIT && column + width + tail_width(w, to - 1) <= TK_LINE_WIDTH;
}

static uint32_t column_after_space(const tk_layout_state *w, uint32_t next) {
    return w->column +
           (!w->line_start && w->last != UINT32_MAX && tk_space_between(w, w->last, next));
}

// ---- Inside brackets --------------------------------------------------------------------------

// The end of the item that starts at `from`: after its comma and the comments that stand behind
// that.
static uint32_t item_end(const tk_layout_state *w, uint32_t from, uint32_t to) {
    uint32_t i = from;
    while (i < to) {
        const tk_piece *x = &w->pieces.at[i];
        bool ends = x->kind == TOK_COMMA || x->kind == TOK_SEMI;
        i = tk_is_opener(x) ? x->match + 1 : i + 1;
        if (ends) {
            break;
        }
    }
    while (i < to && w->pieces.at[i].kind == TK_KIND_COMMENT && !w->pieces.at[i].own_line) {
        i++;
    }
    return i;
}

static void write_items(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    tk_new_line(w, indent);
    while (from < to) {
        uint32_t end = item_end(w, from, to);
        bool flat = !w->must_break && fits(w, column_after_space(w, from), from, end);
        if (!flat && !w->line_start) {
            tk_new_line(w, indent);
            flat = fits(w, w->column, from, end);
        }
        if (flat) {
            tk_write_flat(w, from, end, indent);
        } else {
            tk_write_broken(w, from, end, indent);
        }
        from = end;
    }
}

static uint32_t last_item(const tk_layout_state *w, uint32_t from, uint32_t to) {
    uint32_t next = from;
    while ((next = item_end(w, from, to)) < to) {
        from = next;
    }
    return from;
}

// The '{' of an anonymous function that is the last argument, is on several lines in any case, and
// whose head fits on the line where the bracket opens: nothing of the call is broken then. Else
// UINT32_MAX.
static uint32_t hugged(const tk_layout_state *w, uint32_t open, uint32_t indent) {
    const tk_piece *x = &w->pieces.at[open];
    const tk_piece *last = &w->pieces.at[x->match - 1];
    if (x->kind != TOK_LPAREN || last->kind != TOK_RBRACE || last->role != TK_ROLE_LAMBDA) {
        return UINT32_MAX;
    }
    uint32_t brace = last->match;
    uint32_t head = tk_flat_width(w, open, brace);
    if (w->must_break || head >= TK_NO_FIT || w->column + head + 2 > TK_LINE_WIDTH) {
        return UINT32_MAX;
    }
    uint32_t item = last_item(w, open + 1, x->match);
    bool one_line = tk_one_line_block(w, brace) && fits(w, indent + TK_INDENT, item, x->match);
    return one_line ? UINT32_MAX : brace;
}

static void write_group(tk_layout_state *w, uint32_t open, uint32_t indent);

static void write_hugged(tk_layout_state *w, uint32_t open, uint32_t brace, uint32_t indent) {
    tk_write_flat(w, open, brace, indent);
    write_group(w, brace, indent);
    write_piece(w, w->pieces.at[open].match, indent + TK_INDENT);
}

// A bracket that does not fit: its contents one level deeper. The braces of an anonymous function
// hold statements instead.
static void write_group(tk_layout_state *w, uint32_t open, uint32_t indent) {
    const tk_piece *x = &w->pieces.at[open];
    uint32_t brace = hugged(w, open, indent);
    if (brace != UINT32_MAX) {
        write_hugged(w, open, brace, indent);
        return;
    }
    write_piece(w, open, indent);
    if (x->role == TK_ROLE_LAMBDA) {
        uint32_t outer = w->indent;
        uint32_t first = open + 1;
        while (first < x->match && w->pieces.at[first].kind == TK_KIND_COMMENT &&
               !w->pieces.at[first].own_line) {
            write_piece(w, first++, outer);
        }
        tk_write_statements(w, first, x->match, outer + TK_INDENT);
        tk_new_line(w, outer);
    } else if (x->match > open + 1) {
        write_items(w, open + 1, x->match, indent + TK_INDENT);
    }
    write_piece(w, x->match, indent + TK_INDENT);
}

// The pieces after a bracket up to and with the next one that opens: what should stay on its line.
static uint32_t next_opener(const tk_layout_state *w, uint32_t from, uint32_t to) {
    while (from < to && !tk_is_opener(&w->pieces.at[from])) {
        from++;
    }
    return least(from + 1, to);
}

static void write_chunk(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    for (uint32_t i = from; i < to;) {
        const tk_piece *x = &w->pieces.at[i];
        if (!tk_is_opener(x) || x->match >= to) {
            write_piece(w, i++, indent + TK_INDENT);
            continue;
        }
        uint32_t end = next_opener(w, x->match + 1, to);
        uint32_t column = column_after_space(w, i);
        bool flat = tk_flat_width(w, i, x->match + 1) < TK_NO_FIT &&
                    (end == to ? fits(w, column, i, end)
                               : column + tk_flat_width(w, i, end) <= TK_LINE_WIDTH);
        if (end != to && w->pieces.at[end - 1].kind == TOK_LBRACE) {
            flat = fits(w, column, i, x->match + 1);
        }
        if (flat) {
            tk_write_flat(w, i, x->match + 1, indent + TK_INDENT);
        } else {
            write_group(w, i, indent);
        }
        i = x->match + 1;
    }
}

// ---- A whole line -----------------------------------------------------------------------------

static uint32_t chunk_end(const tk_layout_state *w, uint32_t from, uint32_t to) {
    uint32_t i = from;
    do {
        const tk_piece *x = &w->pieces.at[i];
        i = tk_is_opener(x) && x->match < to ? x->match + 1 : i + 1;
    } while (i < to && !tk_is_binary(&w->pieces.at[i]));
    return least(i, to);
}

void tk_write_broken(tk_layout_state *w, uint32_t from, uint32_t to, uint32_t indent) {
    for (uint32_t i = from; i < to;) {
        uint32_t end = chunk_end(w, i, to);
        bool flat = !w->must_break && fits(w, column_after_space(w, i), i, end);
        if (!flat && i > from && !w->line_start &&
            (w->must_break || fits(w, indent + TK_INDENT, i, end))) {
            tk_new_line(w, indent + TK_INDENT);
            flat = fits(w, w->column, i, end);
        }
        if (flat) {
            tk_write_flat(w, i, end, indent + TK_INDENT);
        } else {
            write_chunk(w, i, end, indent);
        }
        i = end;
    }
}
