// SPDX-License-Identifier: Apache-2.0
// How long a launch with products on tensor cores takes, predicted: what a program asks of a
// multiprocessor, each part in cycles, and which of them it waits for.
//
// In the loop with the products the parts are done at the same time where tiles are loaded ahead,
// so the longest counts: the matrix unit; shared memory, which copies write and the unit reads;
// what comes from the second-level cache; what warps bring through registers. What threads load and
// compute for themselves is added.
// Before it the first tile is waited for, behind it the result is stored. Programs run in waves: as
// many at once as the GPU holds. bench/NOTES.md has the predictions beside what was measured.
#ifndef TK_LOWER_COST_H
#define TK_LOWER_COST_H

#include "lower/target.h"

typedef struct tk_demand { // of a program, over all iterations
    double tiles;          // iterations of the loop with the most products
    double matrix;         // cycles of the matrix unit
    double read, written;  // bytes of shared memory
    double fetched;        // bytes that come from the second-level cache
    double requests;       // loads of warps that are not ahead
    double lifted;         // loads of warps that fetch through registers
    double flops;          // that threads compute
    double stored;         // bytes
} tk_demand;

typedef struct tk_launch {
    double programs, blocks; // in all; that a multiprocessor holds at once
    double least_bytes;      // of memory; -1: not known
    bool apart;              // warps of their own fetch the tiles
    bool persistent;         // a block runs several programs
    bool copied_out;         // results are stored by tensor copies
} tk_launch;

typedef struct tk_prediction {
    double seconds;
    double matrix, shared, cache, lifted, threads; // cycles of a program
    double begin, main, end;                       // of a program, one after the other
    double waves;
    const char *bound; // what most of the time goes to
} tk_prediction;

// Cycles of a multiprocessor's matrix units for so many multiplications and additions of f16, by
// instructions of a warp or of four.
double tk_matrix_cycles(const tk_target *t, double products, bool warpgroups);

tk_prediction tk_predict(const tk_gpu *gpu, const tk_target *t, const tk_demand *d,
                         const tk_launch *l);

#endif
