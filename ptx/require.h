// SPDX-License-Identifier: Apache-2.0
// @require: what an author demands of the code that a GPU gets (docs/language.md).
//
// A demand is judged from the notes of the passes and from what the assembler said, so it has their
// reason and their line. One that does not hold is an error there, with a note at the demand, and
// itself a note with the verdict "failed"; one that holds is a note, too.
//
//   vectorized             each load and store moves 16 bytes at once, or all that a thread has
//   no_spills              the machine code uses no local memory
//   no_bank_conflicts      no access of shared memory takes more wavefronts than its bytes need
//   max_registers(n)       of a thread
//   max_shared(n)          bytes of a block
//   tensor_cores           each dot is multiplied by mma or wgmma
//   async_copy, tma        each load of a tile is made of asynchronous copies, of tensor copies
#ifndef TK_PTX_REQUIRE_H
#define TK_PTX_REQUIRE_H

#include "ptx/image.h"

// Whether a demand is on what only the machine code shows.
bool tk_require_of_machine_code(const tk_module *m);

// Judges all demands; false after errors. What nobody can judge is an error or, where o->judge
// says so, left to image->demand.
bool tk_require(tk_module *m, const tk_func *f, tk_image *image, const tk_ptx_opts *o,
                tk_diags *diags);

#endif
