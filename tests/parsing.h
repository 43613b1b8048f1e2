// SPDX-License-Identifier: Apache-2.0
// For tests: one arena with all that a parse needs, and texts in and out of it.
#ifndef TK_TESTS_PARSING_H
#define TK_TESTS_PARSING_H

#include "lang/ast.h"
#include "parser/parse.h"

typedef struct {
    tk_guard guard;
    tk_arena arena;
    tk_names names;
    tk_sources sources;
    tk_diags diags;
    uint32_t source; // the last text added
} parsing;

// The test fails where the arena fails.
void parsing_begin(parsing *p);
void parsing_end(parsing *p);
void parsing_clear(parsing *p); // forgets the diagnostics

tk_file *parse_bytes(parsing *p, const char *text, size_t size);
tk_file *parse_text(parsing *p, const char *text);
const char *tree_of(parsing *p, const char *text);     // tk_ast_print of it
const char *messages_of(parsing *p, const char *text); // what is wrong with it, without colours
const char *first_id(const parsing *p);                // of the first diagnostic, or ""
// The canonical layout, or NULL; *size of it where size is not NULL.
const char *layout_of(parsing *p, const char *text, size_t size, size_t *out_size);

// The texts of tests/kernels/*.tk, which parse and are laid out canonically.
enum { GOOD_KERNELS = 10 };
extern const char *const good_kernels[GOOD_KERNELS];
const char *read_kernel(parsing *p, unsigned i, size_t *size);

// Begin and end of each token of a text.
typedef struct {
    uint32_t begin, end;
} token_range;
uint32_t token_ranges(parsing *p, const char *text, size_t size, token_range **out);
// Whether two texts have the same tokens and comments in the same order.
bool same_tokens(parsing *p, const char *a, size_t na, const char *b, size_t nb);

#endif
