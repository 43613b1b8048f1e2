// SPDX-License-Identifier: Apache-2.0
// Between the two ways to scan: llvm_scan.c and llvm_scan_plain.c.
#ifndef TK_PTX_LLVM_SCAN_H
#define TK_PTX_LLVM_SCAN_H

#include "ir/scratch.h"
#include "ptx/llvm_emit.h"

typedef struct tk_emit_scan {
    const tk_op *op;
    uint32_t m;           // tiles that are scanned together
    tk_dtype *t;          // of each
    const uint64_t *base; // its part of scratch
} tk_emit_scan;

// Arguments are m earlier and m later scalars.
void tk_emit_scan_combine(tk_emit *e, const tk_emit_scan *s, const LLVMValueRef *arg,
                          LLVMValueRef *out);
// Of a kind: what stands in the first place of an exclusive scan; what combined with x is x bit for
// bit.
LLVMValueRef tk_emit_scan_first(tk_emit *e, const tk_emit_scan *s);
LLVMValueRef tk_emit_scan_identity(tk_emit *e, const tk_emit_scan *s);

void tk_emit_scan_plain(tk_emit *e, const tk_emit_scan *s, const tk_scan *how);

#endif
