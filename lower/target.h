// SPDX-License-Identifier: Apache-2.0
// The GPUs that tkc compiles for: what each has. The only place that knows; LLVM is asked for
// nothing that is not here, as an unknown name would end the process or pass silently.
#ifndef TK_LOWER_TARGET_H
#define TK_LOWER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tk_target {
    const char *name;                         // "sm_90a"
    unsigned cc;                              // 90
    const char *ptx;                          // least PTX feature that has the target: "+ptx80"
    unsigned shared_max;                      // bytes of shared memory a block may have
    unsigned threads_max;                     // a block
    unsigned threads_at_once, blocks_at_once; // a multiprocessor
    bool bf16_arith;                          // native add/mul on bf16
} tk_target;

const tk_target *tk_target_find(const char *name); // NULL
const char *tk_target_name(unsigned i);            // NULL past the end
// The best target for a device of compute capability major.minor; NULL below 8.0.
const tk_target *tk_target_for(unsigned major, unsigned minor);

#endif
