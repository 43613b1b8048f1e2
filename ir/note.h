// SPDX-License-Identifier: Apache-2.0
// Notes: what the compiler decided, as data.
//
// Every pass that decides something that costs time, or that drops, keeps or refuses something that
// was asked for, records a note. `tkc explain`, @require, JSON output and tests read the same
// records. A note is: an id (stable, kebab-case: "inlined", "hoisted", "attribute-unused"), the
// place, a verdict, a reason in words, named numbers, and named words ("layout": "8 elements a
// thread").
#ifndef TK_IR_NOTE_H
#define TK_IR_NOTE_H

#include "lang/base.h"
#include "lang/diag.h"

typedef enum {
    TK_NOTE_DONE,   // applied
    TK_NOTE_MISSED, // wanted, not possible: the reason says why
    TK_NOTE_INFO,   // a fact
    TK_NOTE_FAILED, // demanded by @require, and not so
} tk_verdict;

typedef struct tk_note_number {
    const char *name;
    double value;
} tk_note_number;

typedef struct tk_note_word {
    const char *name, *text;
} tk_note_word;

typedef struct tk_note_rec {
    const char *id;
    const char *pass;
    tk_span span;
    uint32_t loc; // in the module's locations, for the calls that led there; 0: unknown
    tk_verdict verdict;
    const char *reason;
    TK_VEC(tk_note_number) numbers;
    TK_VEC(tk_note_word) words;
} tk_note_rec;

typedef struct tk_notes {
    tk_arena *arena;
    TK_VEC(tk_note_rec *) list;
} tk_notes;

tk_note_rec *tk_note_add(tk_notes *n, const char *pass, const char *id, tk_span span,
                         tk_verdict verdict, const char *fmt, ...) TK_PRINTF(6, 7);
void tk_note_number_add(tk_notes *n, tk_note_rec *r, const char *name, double value);
void tk_note_word_add(tk_notes *n, tk_note_rec *r, const char *name, const char *text);
const double *tk_note_number_of(const tk_note_rec *r, const char *name); // NULL: it has none
const char *tk_verdict_text(tk_verdict v); // "done", "missed", "info", "failed"
void tk_notes_print(tk_buf *out, const tk_sources *s, const tk_notes *n);

#endif
