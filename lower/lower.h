// SPDX-License-Identifier: Apache-2.0
// The passes of lower/: from tiles to what a GPU executes. Each is a file of its own, as in
// ir/pass.h.
#ifndef TK_LOWER_LOWER_H
#define TK_LOWER_LOWER_H

#include "ir/pass.h"

const tk_pass *tk_lower_passes(size_t *n); // in order: what follows the passes of ir/pipeline.c

void tk_pass_pad(tk_pass_ctx *c);    // extents become powers of two
void tk_pass_expand(tk_pass_ctx *c); // functions with an error bound, and float %, by sequences

// Whether expand leaves the op alone: it has none of what is expanded, or TK_FAST_APPROX permits
// the hardware's approximate instruction and there is one (f32: exp exp2 log log2 sin cos tanh
// rsqrt).
bool tk_expand_keeps(const tk_func *f, const tk_op *op);

// Tiles get layouts (pass_layout.c). The module's attrs.warps, where not 0, says how many warps run
// a program.
void tk_pass_layout(tk_pass_ctx *c);

// Warps for a function whose author wrote none: about 16 elements of its largest tile a thread, 1
// to 16 warps.
unsigned tk_default_warps(const tk_func *f);

// Bytes that a program reads and no other does (stream.c). 0 where that is not what it waits for:
// it multiplies matrices.
uint64_t tk_streamed_bytes(tk_arena *scratch, const tk_func *f);

#endif
