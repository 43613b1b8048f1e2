// SPDX-License-Identifier: Apache-2.0
// Notes: recorded and printed. See note.h.
#include "ir/note.h"

#include <string.h>

tk_note_rec *tk_note_add(tk_notes *n, const char *pass, const char *id, tk_span span,
                         tk_verdict verdict, const char *fmt, ...) {
    tk_note_rec *r = TK_NEW(n->arena, tk_note_rec);
    va_list args;
    va_start(args, fmt);
    r->reason = tk_vformat(n->arena, fmt, args);
    va_end(args);
    r->id = id;
    r->pass = pass;
    r->span = span;
    r->verdict = verdict;
    tk_vec_push(n->arena, &n->list, r);
    return r;
}

void tk_note_number_add(tk_notes *n, tk_note_rec *r, const char *name, double value) {
    tk_note_number x = {name, value};
    tk_vec_push(n->arena, &r->numbers, x);
}

void tk_note_word_add(tk_notes *n, tk_note_rec *r, const char *name, const char *text) {
    tk_note_word x = {name, text};
    tk_vec_push(n->arena, &r->words, x);
}

const double *tk_note_number_of(const tk_note_rec *r, const char *name) {
    for (uint32_t i = 0; i < r->numbers.n; i++) {
        if (strcmp(r->numbers.at[i].name, name) == 0) {
            return &r->numbers.at[i].value;
        }
    }
    return NULL;
}

const char *tk_verdict_text(tk_verdict v) {
    switch (v) {
    case TK_NOTE_DONE:
        return "done";
    case TK_NOTE_MISSED:
        return "missed";
    case TK_NOTE_INFO:
        return "info";
    case TK_NOTE_FAILED:
        return "failed";
    }
    return "?";
}

// One line each: "file:line:col: done: reason (ops 12, bytes 64; layout: 8 a thread) [inlined]".
void tk_notes_print(tk_buf *out, const tk_sources *s, const tk_notes *n) {
    for (uint32_t i = 0; i < n->list.n; i++) {
        const tk_note_rec *r = n->list.at[i];
        const tk_source *file = s ? tk_source_of(s, r->span.file) : NULL;
        if (file) {
            uint32_t line, col;
            tk_line_col(file, r->span.begin, &line, &col);
            tk_buf_fmt(out, "%s:%u:%u: ", file->name, line, col);
        }
        tk_buf_fmt(out, "%s: %s", tk_verdict_text(r->verdict), r->reason);
        for (uint32_t k = 0; k < r->numbers.n; k++) {
            tk_buf_fmt(out, "%s%s %.10g", k ? ", " : " (", r->numbers.at[k].name,
                       r->numbers.at[k].value);
        }
        for (uint32_t k = 0; k < r->words.n; k++) {
            tk_buf_fmt(out, "%s%s: %s", k || r->numbers.n ? "; " : " (", r->words.at[k].name,
                       r->words.at[k].text);
        }
        tk_buf_fmt(out, "%s [%s]\n", r->numbers.n || r->words.n ? ")" : "", r->id);
    }
}
