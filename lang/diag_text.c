// SPDX-License-Identifier: Apache-2.0
// The text form of diagnostics: a head line, the source line, a caret with tildes, notes and helps.
#include "lang/diag.h"
#include "lang/utf8.h"

#include <string.h>

enum { WIDEST = 100, BEFORE = 60 }; // columns of source shown, and those before the caret where cut

static const char bold[] = "\033[1m", plain[] = "\033[0m", red[] = "\033[1;31m",
                  magenta[] = "\033[1;35m", cyan[] = "\033[1;36m", green[] = "\033[1;32m";

// Text with what cannot be shown as \xNN.
static void add_escaped(tk_buf *out, const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        unsigned size = tk_utf8_printable(s + i, n - i);
        if (size || s[i] == '\t') {
            size = size ? size : 1;
            tk_buf_add(out, s + i, size);
            i += size;
        } else {
            tk_buf_fmt(out, "\\x%02X", (unsigned char)s[i]);
            i++;
        }
    }
}

// One character of a source line as it is shown.
typedef struct {
    unsigned bytes;
    unsigned columns;
    bool tab;
} glyph;

static glyph glyph_at(const char *s, size_t n) {
    unsigned size = tk_utf8_printable(s, n);
    if (size) {
        return (glyph){size, 1, false};
    }
    return s[0] == '\t' ? (glyph){1, 1, true} : (glyph){1, 4, false};
}

// The part of a line to show: all, or the columns round the caret.
typedef struct {
    const char *text;
    uint32_t from, to; // bytes of the line
    uint32_t size;
} window;

static window window_of(const char *line, uint32_t size, uint32_t caret) {
    window w = {.text = line, .size = size};
    uint32_t columns = 0;
    for (uint32_t i = 0; i < size && columns <= WIDEST;) {
        glyph g = glyph_at(line + i, size - i);
        columns += g.columns;
        i += g.bytes;
    }
    if (columns <= WIDEST) {
        w.to = size;
        return w;
    }
    // Stepping back over bytes may land inside a character; its first byte is then found forwards.
    uint32_t start = caret > BEFORE ? caret - BEFORE : 0;
    while (start > 0 && start < caret && ((unsigned char)line[start] & 0xC0u) == 0x80u) {
        start++;
    }
    w.from = start;
    uint32_t shown = 0, i = start;
    while (i < size) {
        glyph g = glyph_at(line + i, size - i);
        if (shown + g.columns > WIDEST && i > caret) {
            break;
        }
        shown += g.columns;
        i += g.bytes;
    }
    w.to = i;
    return w;
}

static void add_spaces(tk_buf *out, uint32_t n, char c) {
    for (uint32_t i = 0; i < n; i++) {
        tk_buf_add(out, &c, 1);
    }
}

// The line under the source: blanks up to the caret, then tildes to the end of the span or the
// line.
static void add_caret(tk_buf *out, const window *w, uint32_t begin, uint32_t end) {
    if (w->from) {
        tk_buf_str(out, "   ");
    }
    uint32_t i = w->from;
    while (i < begin && i < w->to) {
        glyph g = glyph_at(w->text + i, w->size - i);
        add_spaces(out, g.columns, g.tab ? '\t' : ' ');
        i += g.bytes;
    }
    tk_buf_str(out, "^");
    if (i >= w->to || i >= end) {
        return;
    }
    glyph g = glyph_at(w->text + i, w->size - i);
    add_spaces(out, g.columns - 1, '~');
    i += g.bytes;
    while (i < end && i < w->to) {
        g = glyph_at(w->text + i, w->size - i);
        add_spaces(out, g.columns, g.tab ? '\t' : '~');
        i += g.bytes;
    }
}

static void add_place(tk_buf *out, const tk_source *f, tk_span at, bool colour) {
    uint32_t line, col;
    tk_line_col(f, at.begin, &line, &col);
    uint32_t begin = f->line[line - 1];
    uint32_t end = line < f->lines ? f->line[line] - 1 : f->size;
    if (end > begin && f->text[end - 1] == '\r') {
        end--;
    }
    uint32_t size = end - begin;
    uint32_t caret = col - 1 < size ? col - 1 : size;
    uint32_t last = at.end > f->size ? f->size : at.end;
    last = last > at.begin ? last - begin : caret;
    window w = window_of(f->text + begin, size, caret);

    size_t before = out->n;
    tk_buf_fmt(out, " %u", line);
    uint32_t gutter = (uint32_t)(out->n - before);
    tk_buf_str(out, " | ");
    tk_buf_str(out, w.from ? "..." : "");
    add_escaped(out, w.text + w.from, w.to - w.from);
    tk_buf_str(out, w.to < w.size ? "...\n" : "\n");
    add_spaces(out, gutter, ' ');
    tk_buf_str(out, " | ");
    tk_buf_str(out, colour ? green : "");
    add_caret(out, &w, caret, last);
    tk_buf_str(out, colour ? plain : "");
    tk_buf_str(out, "\n");
}

static void add_part(tk_buf *out, const tk_sources *s, tk_span at, const char *kind,
                     const char *paint, const char *text, const char *id, bool colour) {
    const tk_source *f = tk_source_of(s, at.file);
    tk_buf_str(out, colour ? bold : "");
    if (f) {
        uint32_t line, col;
        tk_line_col(f, at.begin, &line, &col);
        add_escaped(out, f->name, strlen(f->name));
        tk_buf_fmt(out, ":%u:%u: ", line, col);
    }
    tk_buf_fmt(out, "%s%s: %s%s", colour ? paint : "", kind, colour ? plain : "",
               colour && id ? bold : "");
    add_escaped(out, text, strlen(text));
    tk_buf_str(out, colour ? plain : "");
    if (id) {
        tk_buf_fmt(out, " [%s]", id);
    }
    tk_buf_str(out, "\n");
    if (f) {
        add_place(out, f, at, colour);
    }
}

void tk_diag_print(tk_buf *out, const tk_sources *s, const tk_diag *d, bool colour) {
    bool error = d->severity == TK_ERROR;
    add_part(out, s, d->span, error ? "error" : "warning", error ? red : magenta, d->text, d->id,
             colour);
    for (uint32_t i = 0; i < d->notes.n; i++) {
        const tk_diag_part *p = &d->notes.at[i];
        add_part(out, s, p->span, "note", cyan, p->text, NULL, colour);
    }
    for (uint32_t i = 0; i < d->helps.n; i++) {
        const tk_diag_part *p = &d->helps.at[i];
        add_part(out, s, p->span, "help", green, p->text, NULL, colour);
    }
}

void tk_diags_print(tk_buf *out, const tk_sources *s, const tk_diags *d, bool colour) {
    uint32_t errors = 0, warnings = 0;
    for (uint32_t i = 0; i < d->list.n; i++) {
        tk_diag_print(out, s, d->list.at[i], colour);
        if (d->list.at[i]->severity == TK_ERROR) {
            errors++;
        } else {
            warnings++;
        }
    }
    if (d->errors > errors) {
        tk_buf_fmt(out, "%u more errors are not shown\n", d->errors - errors);
    }
    if (d->warnings > warnings) {
        tk_buf_fmt(out, "%u more warnings are not shown\n", d->warnings - warnings);
    }
}
