// SPDX-License-Identifier: Apache-2.0
// Between the kernel's emission and the compile around it.
#ifndef TK_PTX_LLVM_KERNEL_H
#define TK_PTX_LLVM_KERNEL_H

#include "ptx/llvm_emit.h"

// Emits e->f into e->mod under image->kernel's name and fills in how it is launched.
void tk_emit_kernel(tk_emit *e, tk_image *image);

// Places in the source, for profilers (llvm_lines.c). begin: after e->fn is made; at: what is
// emitted from here on belongs to `loc`; end: before the module is verified; release: on every way
// out.
void tk_lines_begin(tk_emit *e);
void tk_lines_at(tk_emit *e, tk_loc loc);
void tk_lines_end(tk_emit *e);
void tk_lines_release(tk_emit *e);

#endif
