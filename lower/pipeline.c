// SPDX-License-Identifier: Apache-2.0
// The passes between the tile pipeline of ir/pipeline.c and the code for a GPU, in order.
#include "lower/lower.h"

#include <string.h>

// PASS(name, what it takes, what it does, why it stands here)
#define PIPELINE(PASS)                                                                             \
    PASS(ranges, TK_TAKES_TILE, "makes ranges of tiles of indices that count up",                  \
         "first: what follows knows more of ranges")                                               \
    PASS(pack, TK_TAKES_TILE, "lets small programs share a block",                                 \
         "early: what follows sees tiles with an axis of programs as any others")                  \
    PASS(pad, TK_TAKES_TILE, "makes the extents of tiles powers of two",                           \
         "before the others, which may count on it and make the masks that it makes once")         \
    PASS(units, TK_TAKES_TILE, "decides what multiplies matrices",                                 \
         "before chunk, which leaves to registers what matrix units make")                         \
    PASS(chunk, TK_TAKES_TILE, "makes work on large tiles loops over parts of them",               \
         "before expand: what functions are made of then stands in the loops")                     \
    PASS(expand, TK_TAKES_TILE, "makes math functions sequences of exact ops",                     \
         "before layouts: what it adds is element-wise")                                           \
    PASS(contract, TK_TAKES_TILE, "rounds products and sums once where the source permits it",     \
         "behind expand, whose sequences permit nothing; before products are shared by cse")       \
    PASS(fold, TK_TAKES_NOT_GIVEN, "replaces what is known at compile time",                       \
         "constants in what expand made")                                                          \
    PASS(cse, TK_TAKES_NOT_GIVEN, "computes equal expressions once",                               \
         "expand repeats range reductions")                                                        \
    PASS(licm, TK_TAKES_NOT_GIVEN, "moves out of loops what is the same in each iteration",        \
         "constants of expand's polynomials")                                                      \
    PASS(dce, TK_TAKES_NOT_GIVEN, "removes what nothing uses",                                     \
         "before layouts, so that nothing dead is converted")                                      \
    PASS(reverse, TK_TAKES_TILE, "runs loops that read again what was read before the other way",  \
         "behind chunk, which makes such loops, and cse, by which equal indices are one value")    \
    PASS(order, TK_TAKES_TILE, "lets programs that read the same tiles run at the same time",      \
         "behind chunk, which makes the tiles as they will be; before ring, which takes loads")    \
    PASS(turn, TK_TAKES_TILE, "makes products the other way round where that suits the unit",      \
         "before operand and ring, which see where operands are read")                             \
    PASS(operand, TK_TAKES_TILE,                                                                   \
         "leaves what a loop's products read from outside in shared memory",                       \
         "before ring, which shares out the room that is left")                                    \
    PASS(ring, TK_TAKES_TILE, "loads tiles of loops ahead, into rings in shared memory",           \
         "behind chunk, which makes the loops as they will be; before layouts: it makes ops")      \
    PASS(stage, TK_TAKES_TILE, "moves rows that are not aligned through shared memory",            \
         "before layouts, which then need not suit the tensor")                                    \
    PASS(units, TK_TAKES_TILE, "decides what multiplies matrices",                                 \
         "behind chunk: parts may be too small for a unit")                                        \
    PASS(layout, TK_TAKES_TILE, "gives each tile a layout", "last at the tile level")              \
    PASS(out, TK_TAKES_LAID, "lets tensor copies store what threads would exchange first",         \
         "when it is known what is exchanged; before dce, which removes the exchange")             \
    PASS(whole, TK_TAKES_LAID, "leaves out masks where they hold for all of a tile",               \
         "when nothing moves between threads any more; before dce, which removes those masks")     \
    PASS(dce, TK_TAKES_NOT_GIVEN, "removes what nothing uses",                                     \
         "what was made anew in another layout leaves something behind")                           \
    PASS(hold, TK_TAKES_LAID, "lets tiles that a loop reads again stay in shared memory",          \
         "when it is known in which layouts they are; before share, which finds the room")         \
    PASS(persist, TK_TAKES_LAID, "lets a block run several programs",                              \
         "when rings are made; before what is in order must be kept so between programs")          \
    PASS(share, TK_TAKES_LAID, "gives ops their shared memory",                                    \
         "when it is known what moves, and how")                                                   \
    PASS(barrier, TK_TAKES_LAID, "puts barriers between uses of memory that conflict",             \
         "when it is known which bytes each op uses")                                              \
    PASS(specialize, TK_TAKES_STAGED, "gives warps of their own to what fetches tiles",            \
         "it takes apart what is in order")                                                        \
    PASS(flight, TK_TAKES_STAGED, "begins the next iteration while a product is made",             \
         "behind specialize: where others fetch, a slot may be released later")                    \
    PASS(cluster, TK_TAKES_STAGED, "lets the programs of a cluster read once what all fetch",      \
         "behind specialize: what fetches stands alone")

#define DECLARE(NAME, TAKES, WHAT, WHY) void tk_pass_##NAME(tk_pass_ctx *c);
#define ROW(NAME, TAKES, WHAT, WHY)     {#NAME, tk_pass_##NAME, WHAT, WHY, TAKES},
PIPELINE(DECLARE)
static const tk_pass table[] = {PIPELINE(ROW)};

const tk_pass *tk_lower_passes(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}

const tk_target *tk_lower_target(void) { return tk_target_find(tk_target_name(0)); }

bool tk_lower(tk_module *m, const tk_target *target, const tk_tensor_facts *facts,
              const tk_allocator *from, tk_diags *diags, const char *after, bool debug) {
    tk_pipeline_opts p;
    memset(&p, 0, sizeof p);
    p.table = tk_lower_passes(&p.rows);
    p.after = after;
    p.debug = debug;
    p.target = target;
    p.facts = facts;
    return tk_pipeline_run(m, from, diags, &p);
}
