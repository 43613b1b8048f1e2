// SPDX-License-Identifier: Apache-2.0
// Numbers that passes make: each is an op put before another one.
#ifndef TK_LOWER_MAKE_H
#define TK_LOWER_MAKE_H

#include "ir/ir.h"

typedef struct tk_maker {
    tk_func *f;
    tk_arena *arena; // of types
    tk_loc loc;      // of what is made
} tk_maker;

// Its only result, of type t.
tk_vid tk_maker_op(const tk_maker *m, tk_op *before, tk_opcode code, uint32_t n, const tk_vid *opnd,
                   const tk_type *t);
const tk_type *tk_maker_scalar(const tk_maker *m, tk_dtype t);
tk_vid tk_maker_number(const tk_maker *m, tk_op *before, tk_dtype t, int64_t x);
// Of two of one type; lt gives a bool.
tk_vid tk_maker_two(const tk_maker *m, tk_op *before, tk_opcode code, tk_vid a, tk_vid b);
// The unsigned type of as many bits.
tk_dtype tk_unsigned_of(tk_dtype t);

#endif
