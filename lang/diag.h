// SPDX-License-Identifier: Apache-2.0
// Sources, spans and diagnostics.
//
// A span is a byte range of one source file; line and column are computed only when a message is
// shown. A diagnostic is a value: severity, identifier, place, text, notes (other places involved,
// in order) and helps (what to write). They collect in a tk_diags; nothing is printed. Every text
// is UTF-8, one line, no trailing full stop, names and source text in 'quotes'.
#ifndef TK_LANG_DIAG_H
#define TK_LANG_DIAG_H

#include "lang/base.h"

// file 0 means "no place" (a launch error, say).
typedef struct tk_span {
    uint32_t file; // index into tk_sources, from 1
    uint32_t begin;
    uint32_t end; // one past the last byte
} tk_span;

typedef struct tk_source {
    const char *name; // as shown: a path, "std/softmax.tk", or what the caller named the string
    const char *text; // 0-terminated copy; may hold NULs before its end
    uint32_t size;
    uint32_t *line; // byte offset of each line's start
    uint32_t lines;
} tk_source;

typedef struct tk_sources {
    tk_arena *arena;
    TK_VEC(tk_source) files; // files.at[file - 1]
} tk_sources;

void tk_sources_init(tk_sources *s, tk_arena *a);
// Copies name and text. size must be below 2^31.
uint32_t tk_sources_add(tk_sources *s, const char *name, const char *text, size_t size);
const tk_source *tk_source_of(const tk_sources *s, uint32_t file); // NULL for file 0 or unknown
// 1-based line and column of a byte offset; the column counts bytes, as compilers do.
void tk_line_col(const tk_source *s, uint32_t offset, uint32_t *line, uint32_t *col);

typedef enum { TK_ERROR, TK_WARNING } tk_severity;

typedef struct tk_diag_part {
    tk_span span; // may be none
    const char *text;
} tk_diag_part;

typedef struct tk_diag {
    tk_severity severity;
    const char *id; // stable, kebab-case: "unknown-name", "type-mismatch"
    tk_span span;
    const char *text;
    TK_VEC(tk_diag_part) notes;
    TK_VEC(tk_diag_part) helps; // text is what to write; span may be none
} tk_diag;

typedef struct tk_diags {
    tk_arena *arena;
    TK_VEC(tk_diag *) list;
    uint32_t errors;
    uint32_t warnings;
    uint32_t limit; // errors kept; later ones are only counted. 0 = 100
    bool werror;    // warnings become errors as they are added
} tk_diags;

void tk_diags_init(tk_diags *d, tk_arena *a);
// Adds one; the same id at the same span with the same text is added once (a template that is
// instantiated twice reports once). The result is never NULL and may be given notes and helps.
tk_diag *tk_error(tk_diags *d, tk_span at, const char *id, const char *fmt, ...) TK_PRINTF(4, 5);
tk_diag *tk_warning(tk_diags *d, tk_span at, const char *id, const char *fmt, ...) TK_PRINTF(4, 5);
void tk_note(tk_diags *d, tk_diag *to, tk_span at, const char *fmt, ...) TK_PRINTF(4, 5);
void tk_help(tk_diags *d, tk_diag *to, tk_span at, const char *fmt, ...) TK_PRINTF(4, 5);

// The text form of LANGUAGE.md section 9: file:line:col: error: text [id], the line, the caret and
// tildes under the span, notes and helps likewise. Tabs are kept in the caret line; a very long
// line is cut around the caret; bytes that are no UTF-8 or control characters are shown as \xNN.
// colour adds ANSI colours.
void tk_diag_print(tk_buf *out, const tk_sources *s, const tk_diag *d, bool colour);
void tk_diags_print(tk_buf *out, const tk_sources *s, const tk_diags *d, bool colour);

#endif
