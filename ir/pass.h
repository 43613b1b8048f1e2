// SPDX-License-Identifier: Apache-2.0
// Passes and the pipeline.
//
// A pass is one file with one entry point, void tk_pass_NAME(tk_pass_ctx *), declared by its row in
// the table of ir/pipeline.c. Its head comment says what it does in one sentence, then in: out:
// keeps: needs:, and when it does not apply. The driver runs the rows in order, verifies after
// each, measures its time, and dumps where asked.
#ifndef TK_IR_PASS_H
#define TK_IR_PASS_H

#include "ir/ir.h"

typedef struct tk_pass_ctx {
    tk_module *m;
    tk_arena *scratch; // released after the pass
    tk_diags *diags; // a pass may refuse the program (a limit passed, a demand that cannot be kept)
    bool debug;
    const struct tk_target
        *target;           // lower/target.h: what is compiled for; NULL: nothing in particular
    const unsigned *facts; // lower/facts.h: what is promised of each parameter; NULL: nothing
} tk_pass_ctx;

// Which modules a pass takes. Once shared memory is given out, what changes ops would change what
// they need of it, and which of them wait for other threads.
typedef enum {
    TK_TAKES_TILE,      // of level tile
    TK_TAKES_NOT_GIVEN, // of levels tile and laid, before shared memory is given out
    TK_TAKES_LAID,      // of level laid, before or after
    TK_TAKES_STAGED,    // of level staged
} tk_takes;

typedef struct tk_pass {
    const char *name;
    void (*run)(tk_pass_ctx *c);
    const char *what; // one sentence
    const char *why;  // the reason for its place
    tk_takes takes;
} tk_pass;

const tk_pass *tk_passes(size_t *n);                                                 // in order
const tk_pass *tk_pass_find(const char *name);                                       // NULL
const tk_pass *tk_pass_find_in(const tk_pass *table, size_t rows, const char *name); // NULL

typedef struct tk_pipeline_opts {
    const tk_pass *table; // other passes than the tile pipeline's: a back end's
    size_t rows;
    const char *after; // stop after this pass (NULL: all); "build" = before the first
    const char *only;  // run this one alone (--run=PASS)
    bool debug;
    const struct tk_target *target; // for the passes that need one
    const unsigned *facts;          // one a parameter of the kernel; NULL: none
    // Called after each pass with its name and seconds; may be NULL.
    void (*done)(void *user, const tk_pass *p, const tk_module *m, double seconds);
    void *user;
} tk_pipeline_opts;

// False after diagnostics: those of the passes, or that a pass does not apply to the module. A
// verifier failure is an internal error naming the pass.
bool tk_pipeline_run(tk_module *m, const tk_allocator *from, tk_diags *diags,
                     const tk_pipeline_opts *o);

#endif
