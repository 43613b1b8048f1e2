// SPDX-License-Identifier: Apache-2.0
// Between the files of the recorder of notes (record.h).
#ifndef TK_LOWER_RECORD_INTERNAL_H
#define TK_LOWER_RECORD_INTERNAL_H

#include "ir/matrix.h"
#include "lower/cost.h"
#include "lower/count.h"
#include "lower/record.h"
#include "lower/sample.h"

typedef struct tk_moved { // of a tensor
    double read, written; // by one program
    double read_by_all, written_by_all;
    bool unknown; // how often
} tk_moved;

typedef struct tk_recorder {
    tk_arena *scratch;
    tk_func *f;
    const tk_axis *x;
    const tk_record_opts *o;
    tk_sample sample;
    double times;  // of the ops at hand in a program, the mean of all; -1: not known
    uint32_t axes; // of the grid, as bits, along which they do not run equally often
    bool nested;   // nor in each iteration of some loop; of many programs and iterations
    bool sampled;  // some are looked at
    struct tk_record_loop {
        const tk_op *op;
        bool steers, differs; // loops in it do not run equally often in each of its iterations
        int64_t longest;      // if it steers: its iterations, at most
    } loop[TK_SAMPLE_LOOPS];  // the loops that they are in, the outermost first
    uint32_t nloop;           // of which the first TK_SAMPLE_LOOPS are here
    struct {
        const tk_op *op; // an access that was counted where it was all inside; NULL: none
        uint64_t at;     // its place in a sector
        tk_view_count count;
    } counted;
    const char *branch; // when the ops at hand run; NULL: always. Else they are in no sum
    tk_moved *moved;
    double programs;                 // of the launch; -1: not known
    double flops, flops64, products; // products: those of matrices, among flops or flops64
    double matrix, as_f16; // by tensor cores, but for f64; as many of f16 as take the same time
    bool flops_unknown;
    tk_demand demand; // of what is done on tensor cores
    bool demand_unknown;
    const tk_op *largest; // makes the tile with most registers of a thread
    uint64_t largest_words;
} tk_recorder;

// record.c: a note of an op; a number of it; a value's layout in words; the op's memory, and its
// bytes; how often it runs. Says that it is in a branch that may not run.
tk_note_rec *tk_record_note(const tk_recorder *r, const tk_op *op, const char *id,
                            tk_verdict verdict, const char *text);
void tk_record_number(const tk_recorder *r, tk_note_rec *n, const char *name, double value);
void tk_record_layout(const tk_recorder *r, tk_note_rec *n, const char *name, tk_vid v);
uint64_t tk_record_memory(const tk_recorder *r, const tk_op *op, tk_note_rec *n);
void tk_record_times(const tk_recorder *r, tk_note_rec *n);
void tk_record_branch(const tk_recorder *r, tk_note_rec *n);

// record_access.c
void tk_record_access(tk_recorder *r, const tk_op *op);
void tk_record_ring(const tk_recorder *r, const tk_op *op);
void tk_record_taken(tk_recorder *r, const tk_op *op); // of a take: the access of its fetch

// record_times.c
// Numbers that are looked at: all, or as many as `most` of them, each for those about it.
typedef struct tk_record_piece {
    int64_t at, n; // the next piece begins n further
} tk_record_piece;
tk_record_piece tk_record_piece_at(int64_t n, uint32_t most, int64_t from);
// Along each of these axes and each loop that steers others, if so many are looked at in all.
uint32_t tk_record_most(const tk_recorder *r, uint32_t axes, uint32_t budget);
// Whether those are not all. So many accesses are counted.
bool tk_record_samples(tk_recorder *r, uint32_t budget);
enum { TK_RECORD_VIEWS = 64 };

// Goes into the loop or branch, which runs so often each time in the first program. How often it
// does in all, as the mean; -1: not known.
double tk_record_enter(tk_recorder *r, const tk_op *op, double trips);
void tk_record_leave(tk_recorder *r, const tk_recorder *was);
// How often the ops at hand run in the program that the sample is of; -1: not known.
double tk_record_here(tk_recorder *r);
// A number of the innermost loop at hand, summed over the iterations of the others, in the program
// that the sample is of; the mean of all programs. The loop that it hangs on besides.
typedef double tk_record_leaf(tk_recorder *r, const tk_op *op);
double tk_record_sum(tk_recorder *r, tk_record_leaf *leaf, const tk_op *op);
double tk_record_mean(tk_recorder *r, tk_record_leaf *leaf, const tk_op *op);
void tk_record_also(tk_recorder *r, const tk_op *loop);

// record_hold.c
// Executions of a load, in the program that the sample is of, that leave their tile in shared
// memory, or take it from there.
double tk_record_held(tk_recorder *r, const tk_op *op);
void tk_record_hold(tk_recorder *r, const tk_op *op);

// record_work.c
void tk_record_moved(tk_recorder *r, const tk_op *op, uint32_t param, double bytes, double by_all);
void tk_record_work(tk_recorder *r, const tk_op *op);
void tk_record_whole(tk_recorder *r); // the notes of the kernel
// Products of f16 that take the time of one of these on tensor cores; 0: it is not done there.
double tk_record_as_f16(const tk_recorder *r, const tk_op *op);

// record_demand.c: of a product on tensor cores, a tile that was fetched, a load that is not ahead
void tk_record_demand(tk_recorder *r, const tk_op *op, const tk_matrix_plan *p);
void tk_record_demand_of_take(tk_recorder *r, const tk_op *op);
void tk_record_demand_of_load(tk_recorder *r, double requests, double bytes);
void tk_record_demand_of_fetch(tk_recorder *r, double requests); // through registers
void tk_record_demand_note(tk_recorder *r);

#endif
