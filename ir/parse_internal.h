// SPDX-License-Identifier: Apache-2.0
// Internal to the parser of the text form: its state, tokens, and what its files offer each other.
#ifndef TK_IR_PARSE_INTERNAL_H
#define TK_IR_PARSE_INTERNAL_H

#include "ir/ir_text.h"

typedef enum {
    TK_IT_END,
    TK_IT_WORD,   // add, f32, gelu.1
    TK_IT_NUMBER, // 12, 0.5, 1e-9, 0x7f
    TK_IT_VALUE,  // %x, %12, %acc.3: text without the %
    TK_IT_STRING, // text with escapes resolved
    TK_IT_PUNCT,  // one character, or +: and ->
    TK_IT_BAD,    // reported
} tk_itkind;

typedef struct tk_itoken {
    tk_itkind kind;
    bool first;       // of its line: what follows belongs to another op
    const char *text; // interned
    uint32_t begin, end;
} tk_itoken;

typedef struct tk_irparse {
    tk_arena *a;
    tk_sources *sources;
    tk_diags *diags;
    uint32_t source;
    const char *text;
    uint32_t size, at;
    tk_itoken tok;
    uint32_t before; // end of the token before
    tk_names names;
    tk_module *m;
    tk_func *f;
    uint32_t depth;
    // names of the function's values: open addressing by interned pointer
    struct tk_irname {
        const char *name;
        tk_vid value;
    } * slot;
    uint32_t nslot, room;
    TK_VEC(const tk_layout *) layouts; // by number
} tk_irparse;

// ---- parse_lex.c
void tk_irp_next(tk_irparse *p);
bool tk_irp_is(const tk_irparse *p, const char *punct_or_word); // not of strings and values
bool tk_irp_accept(tk_irparse *p, const char *punct_or_word);
bool tk_irp_expect(tk_irparse *p, const char *punct_or_word); // false: reported
tk_span tk_irp_span(const tk_irparse *p, uint32_t begin, uint32_t end);
bool tk_irp_unexpected(tk_irparse *p, const char *wanted); // reports, gives false
bool tk_irp_int(tk_irparse *p, int64_t *out);              // [-] digits
bool tk_irp_u64(tk_irparse *p, uint64_t *out);             // 0x.. or digits
void tk_irp_skip_line(tk_irparse *p); // to what starts a line, past the blocks opened on this one

// ---- parse.c
bool tk_irp_type(tk_irparse *p, const tk_type **out);
bool tk_irp_layout_of(tk_irparse *p, const tk_layout **out); // #0 behind a type, or nothing
bool tk_irp_loc(tk_irparse *p, uint32_t begin, tk_loc *out); // as written, or from begin to here
bool tk_irp_name(tk_irparse *p, const char **out);           // @name
tk_vid tk_irp_lookup(tk_irparse *p, const char *name);       // 0: unknown
void tk_irp_define(tk_irparse *p, const tk_itoken *name, tk_vid v);
const char *tk_irp_hint(tk_irparse *p, const char *name); // "acc" of acc.12; NULL of 12
tk_vid tk_irp_poison(tk_irparse *p); // a value of the error type, for what could not be read
bool tk_irp_region(tk_irparse *p, tk_region *r); // { ops }
bool tk_irp_typed_values(tk_irparse *p,
                         tk_region *r); // (%x: f32, ..): arguments of r, else parameters

// ---- parse_layout.c
bool tk_irp_layout(tk_irparse *p); // a line layout #0 = ..

// ---- parse_op.c
bool tk_irp_op(tk_irparse *p, tk_region *r);

#endif
