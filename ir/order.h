// SPDX-License-Identifier: Apache-2.0
// What ops do to memory that other threads of the program see, and which of it must stay in order.
//
// A use is a read or a write of bytes of shared memory, or of a tensor. An op has first uses,
// before the first barrier inside it, and last uses, after the last one. Every op that uses shared
// memory writes it, waits and reads it (ir/scratch.h), so it has a barrier inside, which orders all
// that came before it against all that comes behind, whatever tensor or byte it was. What happens
// between two barriers inside is ordered by these.
//
// At the staged level a barrier stands on each way from a use to a conflicting one. The pass
// barrier puts them there; the verifier checks, in another way, that none is missing.
//
// A ring's slots are kept in order by barriers of their own; to other ops a `release` is a read of
// the ring's bytes.
//
// What is read behind a store by tensor copies is in nobody's way (ir/out.h): it has no last uses.
//
// Tensors that are only read have no uses: what is written shares memory with no other tensor (the
// run time refuses such a launch). Elements of one tensor may share memory (a stride may be 0), so
// which elements are used does not matter.
#ifndef TK_IR_ORDER_H
#define TK_IR_ORDER_H

#include "ir/ir.h"

typedef enum {
    TK_USE_SHARED,  // bytes from .. to - 1 of the program's shared memory
    TK_USE_TENSOR,  // elements of one tensor
    TK_USE_TENSORS, // all that may be written: an atomic that asks for an order of its own
} tk_use_kind;

typedef struct tk_use {
    tk_use_kind kind;
    bool writes; // perhaps it reads as well; else it only reads
    tk_vid tensor;
    int64_t from, to;
} tk_use;

typedef struct tk_uses {
    bool waits; // it has a barrier inside
    uint32_t nfirst, nlast;
    tk_use *first; // all there are where it has none
    tk_use *last;  // nothing where it has none
} tk_uses;

// The uses of an op, with those of the function of a reduction or scan, without those in the
// regions of if, for and while. Its shared memory is where attribute `shared` says; before it has
// one, it has the use all the same, of bytes that are nobody else's.
tk_uses tk_uses_of(tk_arena *a, const tk_func *f, const tk_op *op);

// Whether the two must stay in their order.
bool tk_uses_conflict(const tk_use *x, const tk_use *y);

#endif
