// SPDX-License-Identifier: Apache-2.0
// What the files of the pass ring share. See pass_ring.c.
#ifndef TK_LOWER_RING_JOB_H
#define TK_LOWER_RING_JOB_H

#include "ir/pass_util.h"
#include "lower/lower.h"
#include "lower/make.h"
#include "lower/ring.h"

enum { TK_RING_LOADS = 16 }; // of a loop, at most

typedef TK_VEC(tk_op *) tk_ring_ops;

typedef struct tk_ringer {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    unsigned log_warps;
    tk_ring_ops loops;
    bool staged;         // `@stages` was kept by a loop
    const char *why;     // the first reason why it is not
    const tk_op *why_at; // where
} tk_ringer;

// One loop.
typedef struct tk_ring_job {
    tk_maker make;
    tk_ringer *s;
    tk_op *loop;
    tk_ring_ops loads;
    tk_vid ring[TK_RING_LOADS]; // of each
    tk_how how[TK_RING_LOADS];
    const char *slower[TK_RING_LOADS];  // why not by tensor copies
    const char *through[TK_RING_LOADS]; // why a matrix unit does not take it there; NULL: no matter
    uint64_t dropped; // bytes of the tiles of those that are not loaded ahead after all
    const char *place[TK_RING_LOADS]; // why not by copies of threads either; NULL: so, or better
    int64_t slots, step;
    tk_dtype index; // its type
    bool asked;     // by `pipeline`
    bool staged;    // by `@stages`
    bool every;     // load of a tile is wanted, not only what a matrix unit takes
    bool found;     // a load of a tile
} tk_ring_job;

// An op of the loop's body itself; whether the next iteration uses v, or v permuted, which is the
// same tile in shared memory; whether tensor copies bring the tile, and round it as its products
// do.
bool tk_ring_in_loop(const tk_ring_job *j, const tk_op *op);
bool tk_ring_yields(const tk_ring_job *j, tk_vid v);
bool tk_ring_rounds_load(const tk_ring_job *j, const tk_op *load);
const char *tk_ring_name(const tk_ring_job *j, const tk_op *load);

// ring_make.c: the loop with its loads run ahead, with as many slots as the job says.
void tk_ring_make(tk_ring_job *j);

#endif
