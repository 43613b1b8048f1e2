// SPDX-License-Identifier: Apache-2.0
// Heights of nodes, for the builders only. A NULL node has height 0.
#ifndef TK_PARSER_BUILD_H
#define TK_PARSER_BUILD_H

#include "parser/parse_internal.h"

uint32_t tk_higher(uint32_t a, uint32_t b);
uint32_t tk_e_height(const tk_expr *e);
uint32_t tk_t_height(const tk_ast_type *t);
uint32_t tk_block_height(const tk_block *b);
// The height of a node over children of height `below`; too much of it ends the parse with an
// error.
uint32_t tk_height_over(tk_parser *p, tk_span at, uint32_t below);

#endif
