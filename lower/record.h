// SPDX-License-Identifier: Apache-2.0
// Notes of a lowered kernel: what each access, each op across threads, each loop and the whole came
// to. Made once all passes of lower/ have run; nothing follows from them but reports and demands
// (ptx/require.h).
//
// What is counted is for one program, over all iterations where their number is known
// (lower/count.h): in the first program, for tensors of `size`; the mean of all programs of what
// does not run equally often in them.
//
//   access       a load, store or atomic: how many elements at once, what is in the way of more,
//                which bounds are tested; layout; requests and sectors
//   holding      what a load leaves in shared memory for another loop, or takes
//   move         elements moved between threads: how, and what the other way would have cost
//   reduction, scan, across    other work across threads
//   barrier      where all threads wait, but inside an op
//   product      a dot
//   loop         how often, how many stages
//   largest-tile the op whose tile takes most registers of a thread
//   work         operations on floats of the whole program
//   traffic      for each tensor: how many bytes all programs move, and how many there are
//   launch       programs
//   demand       of products on tensor cores: cycles and bytes of a program (lower/cost.h)
#ifndef TK_LOWER_RECORD_H
#define TK_LOWER_RECORD_H

#include "lower/axis.h"
#include "lower/target.h"

typedef struct tk_record_opts {
    const int64_t *size;           // TK_MAX_TENSOR_RANK a parameter, -1: not known; NULL: none is
    const tk_const *const *scalar; // of each parameter, NULL: not known; NULL: none is
    const tk_target *target;       // what is compiled for
    bool counts;                   // requests, sectors, wavefronts are counted: takes time
} tk_record_opts;

void tk_record_kernel(tk_arena *scratch, tk_func *f, const tk_axis *x, const tk_record_opts *o);

// "a thread: 8 along axis 1 (8 in a row), 2 along axis 0; lanes: 32 along axis 1; warps: 4 along
// axis 0".
void tk_layout_words(tk_buf *out, const tk_layout *l);

#endif
