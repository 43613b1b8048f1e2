// SPDX-License-Identifier: Apache-2.0
// What several passes need: values that stand for others, effects of an op with its regions,
// constants.
#ifndef TK_IR_PASS_UTIL_H
#define TK_IR_PASS_UTIL_H

#include "ir/pass.h"

// Values replaced by others, applied to the operands of what is visited later: definitions come
// before uses, so one walk in order replaces everywhere.
typedef struct tk_vmap {
    tk_arena *arena;
    tk_vid *to; // 0: stays
    uint32_t n;
} tk_vmap;
void tk_vmap_set(tk_vmap *m, tk_vid old, tk_vid with);
tk_vid tk_vmap_get(const tk_vmap *m, tk_vid v);
void tk_vmap_operands(const tk_vmap *m, tk_op *op);

enum { TK_HAS_READ = 1, TK_HAS_WRITE = 2, TK_HAS_DEBUG = 4, TK_HAS_WHILE = 8 };
unsigned
tk_op_effects(const tk_op *op); // its own and those of the ops in its regions; a call has all

const tk_const *tk_value_const(const tk_func *f,
                               tk_vid v); // of a const op, scalar or tile; else NULL
tk_span tk_loc_span(const tk_module *m, tk_loc loc);
const tk_region *tk_value_region(const tk_func *f,
                                 tk_vid v); // where it is defined; NULL for parameters
bool tk_op_is_pure(
    const tk_op *op); // and has no regions: its results depend on operands and attributes alone
// Whether the op, or one in its regions, has one of these values as an operand.
bool tk_op_uses_any(const tk_op *op, const tk_vid *v, uint32_t n);
// Whether its region runs again and again: a loop, or `programs`.
bool tk_op_repeats(const tk_op *op);
// A loop that carries an attribute is dropped: a note says so.
void tk_note_loop_dropped(tk_pass_ctx *c, const char *pass, const tk_op *op, const char *why);

#endif
