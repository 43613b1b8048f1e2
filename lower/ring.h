// SPDX-License-Identifier: Apache-2.0
// Rings: which loads of a loop run ahead, and how their tiles get into shared memory.
//
// The pass ring (pass_ring.c) makes of
//     for k = from to to step s { x = load t[.. k ..]; .. x .. }
// with n slots
//     r = ring slots=n
//     for q = 0 to n - 1 { if from + q s is an index of the loop { fetch t[.. from + q s ..], r } }
//     for k = from to to step s {
//         if k + (n - 1) s is an index of the loop { fetch t[.. k + (n - 1) s ..], r }
//         x = take r; .. x ..; release r
//     }
// so that n tiles are on their way or in use at any time. What is fetched in an iteration goes into
// the slot that the iteration before it released.
//
// A tile lies in its slot as tk_layout_placed has it, with the tensor's last dimension contiguous.
// Who brings it there: with `how` async each thread its vectors of the layout that tk_fetch_layout
// gives, by cp.async; with tensor one thread, by tensor copies of a box each; with registers each
// thread its *chunks*, the 16 bytes of a row (or all of a shorter one) that such a vector is. It
// reads the aligned 16 bytes that a chunk begins in, and those that it ends in, wherever in them it
// begins, shifts them to their place and stores them. Nothing outside the tensor's first and last
// byte is read. Where elements do not stand side by side it reads them one by one.
//
// What a thread has in registers it must wait for, so that this is two ops, a `begin` where the
// fetch stands above and the fetch itself where the iteration ends:
//     for k = from to to step s {
//         if k + (n - 1) s is an index of the loop { fetch t[.. k + (n - 1) s ..], r how=begin }
//         x = take r; .. x ..; release r
//         if k + (n - 1) s is an index of the loop { fetch t[.. k + (n - 1) s ..], r how=registers
//         }
//     }
// Warps of their own (pass_specialize.c) do without the first.
#ifndef TK_LOWER_RING_H
#define TK_LOWER_RING_H

#include "ir/layout.h"
#include "lower/axis.h"

enum { TK_FETCH_BYTES = 16, TK_FETCH_LEAST = 4 }; // of one copy by a thread: at most, at least

// The layout of a ring's tiles in shared memory, from the fetches that fill it.
tk_layout tk_ring_layout(const tk_func *f, const tk_op *ring);

// Of a view (a load, a fetch): the layout whose vectors the threads copy.
tk_layout tk_fetch_layout(const tk_func *f, const tk_op *op, unsigned log_warps);

// Of a fetch of that function, in its arena.
const tk_layout *tk_fetch_threads(const tk_axis *x, const tk_op *op);
// The warps that bring it: those beside the program's where they do so by registers.
unsigned tk_fetch_warps(const tk_func *f, const tk_op *op);
// Of these those that bring some of it, by registers: a small tile is not for all.
unsigned tk_fetch_bringers(const tk_func *f, const tk_op *op);

// Elements of a chunk: as many as a thread stores at once.
unsigned tk_fetch_chunk(const tk_func *f, const tk_op *op);
// Whether all chunks of a warp that stand at one register begin at the same place in 16 bytes.
bool tk_fetch_alike(const tk_layout *l, unsigned size);
// Whether chunks are made of 16 aligned bytes read at once; else of elements read one by one.
bool tk_fetch_in_pieces(const tk_axis *x, const tk_op *op);

// Whether a fetch through registers is one stream with that before it where the tiles are whole:
// then what is stored of one makes room for what is loaded of the other. Warps beside the program's
// bring both, each thread some of them, in pieces that begin alike in a warp.
bool tk_fetch_joins(const tk_axis *x, const tk_op *op);

// Registers of a thread that sums of wgmma take at most: those of one product.
unsigned tk_sum_registers(const tk_func *f);

// Whether op brings a tile of the ring: a fetch that is no `begin`. The last that does; NULL: none.
bool tk_fetches(const tk_op *op, tk_vid ring);
const tk_op *tk_ring_fetch(const tk_func *f, tk_vid ring);
// As what a load, or another access, is there.
tk_like tk_loaded_like(const tk_func *f, const tk_op *op);

// Why threads cannot copy the view by themselves; NULL: they can. `op` is the load.
const char *tk_fetch_why_not(const tk_axis *x, const tk_op *op, unsigned log_warps);

// The same whatever the tensor is: what is in the way in the program itself.
const char *tk_place_why_not(const tk_axis *x, const tk_op *op);

// A loop over parts of a tile (pass chunk) stands for one op, and has it in it.
bool tk_is_of_parts(const tk_op *loop);
bool tk_has_loop(const tk_region *r);
bool tk_multiplies(const tk_region *r); // matrices

// What the load gives, of the tile that was taken where it stands: what its mask leaves out, and
// what is outside where it has another value, is replaced. `copy`: the tile is gone when it is
// used.
tk_vid tk_ring_value(const tk_axis *x, tk_arena *arena, tk_op *load, tk_vid tile, bool copy);

// Puts each release right behind the last op that uses its tile in shared memory: once there are
// layouts, most ops use what was read of it.
void tk_ring_release_early(tk_func *f);

// Whether the op takes operand i from shared memory, where it lies as l says.
bool tk_takes_shared(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l);

// Whether tensor copies would round what the load gives, f32, to tf32: only products of that
// precision use it, as it is or permuted.
bool tk_ring_rounds(const tk_func *f, const tk_op *load);

// How v lies in shared memory, where it is a tile of a ring, as it is or permuted, or read
// from there. False: it is
// none.
bool tk_ring_lies(const tk_func *f, tk_vid v, tk_layout *out);

// How the tile of a load would lie in a ring.
tk_layout tk_ring_layout_of(const tk_func *f, const tk_op *load);

// Of a ring: whether the next op is another one, whose barrier behind its making serves both.
bool tk_ring_shares_barrier(const tk_op *ring);

#endif
