// SPDX-License-Identifier: Apache-2.0
// Short forms of jansson's for what is written as JSON: what fails is out of memory.
#ifndef TK_RUNTIME_JSON_H
#define TK_RUNTIME_JSON_H

#include "runtime/internal.h"

#include <jansson.h>

// JSON strings are UTF-8; source text quoted in a message may not be: other bytes are escaped.
json_t *json_text(tk_arena *a, const char *s);
void json_set(json_t *o, const char *key, json_t *value, bool *ok); // takes the value
// file, line, column, end_line, end_column; nothing where there is no place.
void json_place(tk_arena *a, json_t *o, const tk_sources *s, tk_span at, bool *ok);
// Its text in the arena, and the value released. NULL: out of memory.
const char *json_dumped(tk_arena *a, json_t *value, bool ok);

#endif
