// SPDX-License-Identifier: Apache-2.0
// The passes of lower/: from tiles to what a GPU executes. Each is a file of its own, as in
// ir/pass.h.
#ifndef TK_LOWER_LOWER_H
#define TK_LOWER_LOWER_H

#include "ir/pass.h"
#include "lower/facts.h"
#include "lower/target.h"

const tk_pass *tk_lower_passes(size_t *n); // in order: what follows the passes of ir/pipeline.c

// The target of passes that were asked for without one: the oldest.
const tk_target *tk_lower_target(void);

// Runs them, as far as `after` (NULL: all, to the staged level). `facts`, of each parameter of the
// kernel, may be NULL. False after diagnostics.
bool tk_lower(tk_module *m, const tk_target *target, const tk_tensor_facts *facts,
              const tk_allocator *from, tk_diags *diags, const char *after, bool debug);

void tk_pass_ranges(tk_pass_ctx *c);   // tiles of indices that count up become ranges
void tk_pass_pack(tk_pass_ctx *c);     // small programs share a block
void tk_pass_pad(tk_pass_ctx *c);      // extents become powers of two
void tk_pass_expand(tk_pass_ctx *c);   // functions with an error bound, and float %, by sequences
void tk_pass_contract(tk_pass_ctx *c); // a * b + c is rounded once where that is permitted

// Whether expand leaves the op alone: it has none of what is expanded, or TK_FAST_APPROX permits
// the hardware's approximate instruction and there is one (f32: exp exp2 log log2 sin cos tanh
// rsqrt).
bool tk_expand_keeps(const tk_func *f, const tk_op *op);

// Large tiles are worked on in loops over their parts (pass_chunk.c). The module's attrs.warps as
// in layout; its thread_elems, where not 0, says how many elements of a tile a thread may have.
void tk_pass_chunk(tk_pass_ctx *c);

enum { TK_THREAD_ELEMS = 256 }; // most elements of a tile that a thread has in registers

// Most elements of a tile that control flow hands on in registers: three quarters of a thread's
// share of them, and what a product is added to, which is worth all of them.
typedef struct tk_handed_on {
    int64_t tile, product;
} tk_handed_on;
tk_handed_on tk_handed_on_by(int64_t warps);

// Whether v is a tile that each thread keeps in memory, not in registers: one made of parts
// (`empty`, `insert`), or a larger one than these that control flow hands on.
bool tk_tile_kept(const tk_func *f, tk_vid v, const tk_handed_on *most);

void tk_pass_reverse(tk_pass_ctx *c); // loops that read again run the other way

void tk_pass_out(tk_pass_ctx *c); // tiles are stored by tensor copies (pass_out.c, out.h)

void tk_pass_units(tk_pass_ctx *c); // what multiplies matrices (pass_units.c, units.h)

// Tiles get layouts (pass_layout.c). The module's attrs.warps says how many warps run a program;
// where it is 0 it becomes the default.
void tk_pass_layout(tk_pass_ctx *c);

// Masks of tiles are not computed where they hold for all of the tile (pass_whole.c).
void tk_pass_whole(tk_pass_ctx *c);

// Loads and stores of rows that are not aligned go through shared memory (pass_stage.c, stage.h).
void tk_pass_stage(tk_pass_ctx *c);

// Programs that read the same tiles run at the same time (pass_order.c).
void tk_pass_order(tk_pass_ctx *c);

// Products are made the other way round where that suits the unit (pass_turn.c).
void tk_pass_turn(tk_pass_ctx *c);
// Tiles from outside a loop that its products read stay in shared memory (pass_operand.c).
void tk_pass_operand(tk_pass_ctx *c);

// Loads of loops run ahead, through rings in shared memory (pass_ring.c, ring.h).
void tk_pass_ring(tk_pass_ctx *c);

// Warps of their own fetch the tiles of rings (pass_specialize.c).
void tk_pass_specialize(tk_pass_ctx *c);

// Products that the next iteration alone needs are waited for there (pass_flight.c).
void tk_pass_flight(tk_pass_ctx *c);

// A block runs several programs, one after the other (pass_persist.c).
void tk_pass_persist(tk_pass_ctx *c);

// Programs of a cluster share what all of them fetch (pass_cluster.c).
void tk_pass_cluster(tk_pass_ctx *c);

// Shared memory and barriers (pass_share.c, pass_barrier.c).
void tk_pass_share(tk_pass_ctx *c);
void tk_pass_barrier(tk_pass_ctx *c);

// An error at an op: why it cannot be compiled for the target, and the calls that led there.
void tk_gpu_refuse(tk_diags *diags, const tk_module *m, const tk_target *t, const tk_op *op,
                   const char *why);

// The same of an attribute, at its place: "'@stages(9)' cannot be kept for sm_80: why".
tk_diag *tk_gpu_refuse_attr(tk_diags *diags, const tk_target *t, tk_span at, const char *attr,
                            const char *why);

// Warps for a function whose author wrote none: by the elements of its largest tile, 1 to 16
// (warps.c).
unsigned tk_default_warps(const tk_func *f);
// Of the warps that are said or, where none are, of those: the exponent.
unsigned tk_log_warps(const tk_func *f);

// Whether it loads what all programs read, as weights, and none writes: that comes from the caches.
bool tk_is_common_load(const tk_func *f, const tk_op *op);

// Bytes that a program reads and no other does (stream.c). 0 where that is not what it waits for:
// it multiplies matrices.
uint64_t tk_streamed_bytes(tk_arena *scratch, const tk_func *f);

#endif
