// SPDX-License-Identifier: Apache-2.0
// Tiles that go to a tensor by tensor copies.
//
// A store with `how` tensor writes its tile to shared memory, as tk_layout_placed has it, waits for
// all threads, and one thread begins copies from there, which go on by themselves. The tile goes in
// `pieces`, of which `slots` are there at once: what a piece is written over has been read before,
// and the op waits for that itself. When the op ends its memory is still being read, until the
// kernel ends. So it is nobody else's in anything that may run behind the op; what came before is
// kept apart by barriers, as any other use.
//
// The copies go by another way than loads and stores. So nothing else of the program accesses the
// tensor but such stores, each of which waits for those of the tensor before it, and no atomic
// operation hands on to other programs what was stored before it.
#ifndef TK_IR_OUT_H
#define TK_IR_OUT_H

#include "ir/ir.h"

bool tk_is_copied_out(const tk_op *op);
// Calls `visit` for each op that may run behind this one, itself not; for some more than once.
void tk_walk_behind(const tk_op *op, void (*visit)(void *user, tk_op *op), void *user);
bool tk_op_in_loop(const tk_op *op);
// Whether another store of its tensor, or the op itself, may have run before.
bool tk_out_again(const tk_func *f, const tk_op *op);
// Why order between the op's copies and others matters; NULL: it does not. `may_be` says of a store
// whether it is, or may be, one by tensor copies.
const char *tk_out_in_order(const tk_func *f, const tk_op *op,
                            bool (*may_be)(void *user, const tk_op *op), void *user);

#endif
