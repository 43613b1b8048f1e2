// SPDX-License-Identifier: Apache-2.0
// The passes between the tile pipeline of ir/pipeline.c and the code for a GPU, in order.
#include "lower/lower.h"

// PASS(name, what it does, why it stands here)
#define PIPELINE(PASS)                                                                             \
    PASS(pad, "makes the extents of tiles powers of two",                                          \
         "first: all others may count on it, and masks are made once by those that follow")        \
    PASS(expand, "makes math functions sequences of exact ops",                                    \
         "before layouts: what it adds is element-wise")                                           \
    PASS(fold, "replaces what is known at compile time", "constants in what expand made")          \
    PASS(cse, "computes equal expressions once", "expand repeats range reductions")                \
    PASS(licm, "moves out of loops what is the same in each iteration",                            \
         "constants of expand's polynomials")                                                      \
    PASS(dce, "removes what nothing uses", "before layouts, so that nothing dead is converted")    \
    PASS(layout, "gives each tile a layout", "last at the tile level")

#define DECLARE(NAME, WHAT, WHY) void tk_pass_##NAME(tk_pass_ctx *c);
#define ROW(NAME, WHAT, WHY)     {#NAME, tk_pass_##NAME, WHAT, WHY},
PIPELINE(DECLARE)
static const tk_pass table[] = {PIPELINE(ROW)};

const tk_pass *tk_lower_passes(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}
