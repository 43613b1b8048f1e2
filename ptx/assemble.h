// SPDX-License-Identifier: Apache-2.0
// From PTX to machine code, by an assembler that is found when it is needed: `ptxas` as a child
// process, or the library nvJitLink.
//
// $TKC_PTXAS says which: a path of ptxas, "nvJitLink", or nothing at all (set and empty). Without
// it: ptxas on PATH, in $CUDA_HOME/bin and /usr/local/cuda/bin, then nvJitLink.
#ifndef TK_PTX_ASSEMBLE_H
#define TK_PTX_ASSEMBLE_H

#include "ptx/image.h"

enum { TK_ASSEMBLER_ROOM = 512 };

// The assembler's path or name into name[TK_ASSEMBLER_ROOM]. False: none is at hand.
bool tk_assembler_find(char *name);
// What tells it from another assembler, and from itself after an update, into
// text[TK_ASSEMBLER_ROOM]: its name and the place, size and time of its file. "": none is at hand.
void tk_assembler_identity(char *text);

// Fills in image->cubin and image->report. Leaves both alone where no assembler is at hand, where
// it is too old for the code, or where it cannot be run (image->unassembled): the driver assembles
// then.
// PTX that an assembler refuses is an internal error, which names the kernel's place `where`. What
// an assembler writes and is no machine code for the target sets image->garbled.
void tk_assemble(tk_arena *arena, tk_image *image, const char *where);

// tk_assemble, more than once where image->wanted says that more blocks at once are worth it, or
// where registers were spilled (budget.c). Says so in a note at `at`.
void tk_assemble_budgeted(tk_arena *arena, tk_module *m, tk_span at, tk_image *image,
                          const char *where);

// Reads what an assembler said with -v, and counts in the machine code (assemble_read.c).
void tk_assembled_said(tk_image_report *r, const char *log);
// What is wrong with a file that should be machine code of this kernel for image->arch; NULL:
// nothing.
const char *tk_assembled_fault(tk_arena *a, const tk_image *image, const void *cubin, size_t size);
void tk_assembled_count(tk_image_report *r, const char *kernel, const void *cubin, size_t size);
// The report as a note on the kernel.
void tk_assembled_note(tk_module *m, tk_span at, const tk_image *image);
// How many blocks fit a multiprocessor, and what is in the way of more (budget.c).
void tk_occupancy_note(tk_module *m, tk_span at, const tk_image *image);

#endif
