// SPDX-License-Identifier: Apache-2.0
// Text to syntax tree, and the canonical layout of text (`tkc fmt`).
#ifndef TK_PARSER_PARSE_H
#define TK_PARSER_PARSE_H

#include "lang/ast.h"
#include "lang/diag.h"

// Parses source file `source` of `sources`. Never NULL: after syntax errors (reported in `diags`)
// the items that parsed are there. Parsing resumes at the next statement or item, so several errors
// are found in one run. Any bytes are accepted as input. Uses no state outside its arguments.
tk_file *tk_parse(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                  tk_diags *diags);

// Parses a single expression (the value of -D name=EXPR: 128, f32, causal, fn(x: f32) -> f32 { ...
// }). NULL after errors.
tk_expr *tk_parse_expr(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                       tk_diags *diags);

// Canonical layout: idempotent, keeps every comment and every token, changes white space and line
// breaks only. False (and diagnostics) where the text does not parse; then nothing is written to
// `out`.
bool tk_format_source(tk_arena *arena, tk_names *names, const tk_sources *sources, uint32_t source,
                      tk_diags *diags, tk_buf *out);

#endif
