// SPDX-License-Identifier: Apache-2.0
// What the files of the pass pack share. See pass_pack.c.
//
// A value *varies* where it may differ between the programs of a block. Packed, it has an axis in
// front of its own with an element for each of them: a scalar becomes a tile [n], a tile [a, b] a
// tile [n, a, b]. What does not vary stays as it is, and is repeated where it meets what does.
#ifndef TK_LOWER_PACK_H
#define TK_LOWER_PACK_H

#include "ir/pass_util.h"
#include "lower/lower.h"

typedef struct tk_packer {
    tk_pass_ctx *c;
    tk_func *f;
    int64_t n;           // programs of a block
    TK_VEC(bool) varies; // by value
    bool changed;
    const char *why; // it cannot be done; NULL: it can
    tk_loc where;
    tk_vmap map;            // values that others stand for
    tk_vid program, exists; // i32[n]: their places along axis 0; bool[n]: which are programs
    tk_vid count;           // i32: of the grid's programs along axis 0
    tk_op *before;          // where ops are put
    tk_loc loc;
} tk_packer;

static inline bool tk_pack_varies(const tk_packer *p, tk_vid v) {
    return v < p->varies.n && p->varies.at[v];
}
void tk_pack_set_varies(tk_packer *p, tk_vid v);
// `with` stands for v from here on, and varies.
void tk_pack_replace(tk_packer *p, tk_vid v, tk_vid with);

// Why an op with an operand that varies cannot be packed; NULL: it can. Regions are not looked at.
const char *tk_pack_refusal(const tk_packer *p, const tk_op *op);
// Makes op work for all programs of the block. One of its operands varies; it has no regions but a
// combining function.
void tk_pack_op(tk_packer *p, tk_op *op);
// A value with an axis of programs, whether it varies or not; its type.
tk_vid tk_pack_get(tk_packer *p, tk_vid v);
const tk_type *tk_pack_type(const tk_packer *p, const tk_type *t);
tk_vid tk_pack_make(tk_packer *p, tk_opcode code, const tk_type *t, uint32_t n, const tk_vid *opnd);
tk_vid tk_pack_reshape(tk_packer *p, tk_vid v, unsigned rank, const int64_t *dim);
tk_vid tk_pack_spread(tk_packer *p, tk_vid v, unsigned rank, const int64_t *dim);
// Loads and stores (pack_view.c).
void tk_pack_view(tk_packer *p, tk_op *op);

#endif
