// SPDX-License-Identifier: Apache-2.0
// What accesses of memory cost, by enumeration of the addresses of each warp.
//
// Global memory: a request of a warp touches sectors of 32 bytes. Shared memory: a request takes
// wavefronts, each of which serves 32 banks of 4 bytes; lanes with 8 bytes go in two halves, with
// 16 in four quarters, of which two go as one where lanes read in pairs; one word read by several
// lanes is read once. `least` is what the same bytes
// would take if they stood side by side, so wavefronts beyond it are bank conflicts.
//
// Everything here is for notes and for demands on the code; no code follows from it.
#ifndef TK_LOWER_COUNT_H
#define TK_LOWER_COUNT_H

#include "lower/sample.h"
#include "lower/target.h"
#include "lower/view_plan.h"

// Of one execution of an op by a program.
typedef struct tk_requests {
    uint64_t requests;
    uint64_t units; // sectors, or wavefronts
    uint64_t least;
} tk_requests;

// The addresses of the lanes in `mask`, each with `bytes`.
void tk_count_sectors(tk_requests *to, uint32_t mask, const uint64_t *at, uint32_t bytes);
void tk_count_wavefronts(tk_requests *to, uint32_t mask, const uint64_t *at, uint32_t bytes,
                         bool load);

// An access of a tensor, in one program (lower/sample.h). Where a size is not known everything is
// inside, and rows are far apart and begin at a sector.
typedef struct tk_view_count {
    const char *unknown; // why sectors are not known; NULL: they are
    const char *assumed; // what was taken for granted; NULL: nothing
    uint64_t bytes;      // that are inside the tensor
    tk_requests of;      // where known
    // Of what goes through shared memory (lower/stage.h): requests of that; bytes that are copied
    // asynchronously, of which bulk copies are no requests; barriers in it.
    tk_requests shared;
    uint64_t async;
    uint32_t barriers;
} tk_view_count;
tk_view_count tk_count_view(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                            const tk_target *target);
// Whether what it counts is the same for all that are inside of the tensor and begin at the same
// place in a sector, and this is such a one: then where it begins, in bytes.
bool tk_count_alike(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                    uint64_t *at);
// Where its first element is, from the beginning of its tensor, in bytes. False: not known.
bool tk_count_begin(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                    uint64_t *at);

// Whether all of its tile is inside of the tensor, along those dimensions in which the tile with
// the next `number` of the sample lies elsewhere; of a fetch through registers also the 16 bytes
// around it, and all tiles of its stream. What is not known is.
bool tk_count_inside(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                     int64_t *number);

// How an op works across threads, if it is not staged.
typedef struct tk_across_count {
    bool known;        // whether the following are; bytes and place of its memory always are
    uint32_t barriers; // inside it
    uint32_t shuffles; // of each warp
    tk_requests read, written; // of shared memory
} tk_across_count;
tk_across_count tk_count_across(tk_arena *scratch, const tk_func *f, const tk_op *op,
                                unsigned warps);

#endif
