// SPDX-License-Identifier: Apache-2.0
// Internal to the text form: the words for enumerated attributes, and constants as text. What the
// printer writes through here the parser reads through here.
#ifndef TK_IR_IR_TEXT_H
#define TK_IR_IR_TEXT_H

#include "ir/ir.h"

// A list of words; the position is the enumerator.
typedef struct tk_words {
    const char *const *word;
    uint32_t n;
} tk_words;
extern const tk_words tk_words_kind, tk_words_order, tk_words_scope, tk_words_precision;
extern const tk_words tk_words_how, tk_words_unit, tk_words_like;
extern const tk_words tk_words_fast;                // word i is bit i
const char *tk_word(const tk_words *w, uint32_t i); // "?" outside
bool tk_word_find(const tk_words *w, const char *s, uint32_t *i);

const char *tk_level_name(tk_level level);
bool tk_level_from_name(const char *s, tk_level *out);

bool tk_text_is_ident(const char *s);            // [A-Za-z_][A-Za-z0-9_]*
void tk_text_string(tk_buf *out, const char *s); // quoted and escaped
void tk_text_name(tk_buf *out, const char *s);   // bare where it may contain dots, else quoted
void tk_text_const(tk_buf *out, tk_const c);     // true, -12, 0.5, inf, bits(0x7fc00001)

// A number as written: digits, point, exponent; no sign. False where it is none or t cannot hold it
// (an integer too large); a float rounds.
bool tk_text_number(const char *s, bool negative, tk_dtype t, tk_const *out);

#endif
