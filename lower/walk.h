// SPDX-License-Identifier: Apache-2.0
// How accesses in a loop move from iteration to iteration, as far as arithmetic on the loop's index
// says it. Of loops that carry whole numbers up: from a constant that is not negative, by a
// constant above 0, an i32.
#ifndef TK_LOWER_WALK_H
#define TK_LOWER_WALK_H

#include "ir/ir.h"
#include "lower/facts.h"

// by * (the loop's index) + base + something from lo to hi. Arithmetic wraps; what two iterations
// of one run of the loop differ by does not: base is the same for both, and the rest is bounded.
typedef struct tk_affine {
    bool known;
    int64_t by;
    tk_vid base; // from outside of the loop; 0: none
    int64_t lo, hi;
} tk_affine;

tk_affine tk_affine_of(const tk_func *f, const tk_op *loop, tk_vid v);

bool tk_is_inside(const tk_func *f, const tk_op *loop, tk_vid v); // made in the loop's body

// The dimension of an access's tensor along which it moves on, by numbers that grow with the loop's
// index, while those of the other dimensions stay as they are; -1: it does not.
int tk_walked(const tk_func *f, const tk_op *loop, const tk_op *access);

// The last loop in front of this one, in the same region, that reads a tensor along the same lines
// as a load of this loop does, which `load` receives; NULL: none. Nothing in the function writes
// the tensor.
const tk_op *tk_read_before(const tk_func *f, const tk_op *loop, const tk_op **load);

// Whether two loads of tiles, each in the body of its loop, read the same elements, and give the
// same for what is outside, wherever the indices of the loops are the same; these rise from the
// same constant by the same. Nothing in the function writes the tensor.
bool tk_reads_same(const tk_func *f, const tk_op *x, const tk_op *y);

// What the index of a loop is at first, and what it grows by; false: the loop is of another kind.
bool tk_loop_rises(const tk_func *f, const tk_op *loop, int64_t *from, int64_t *step);

// Whether what any two iterations store are different elements, and none loads what another stores:
// then they may run in any order. The elements' places are different ones where the last stride of
// each tensor that is stored to is not 0. If not so, *why says what is in the way.
bool tk_iterations_independent(const tk_func *f, const tk_op *loop, const char **why);

// Whether a barrier has nothing to keep in order: it stands in a loop of independent iterations,
// whose threads share nothing but what it stores to, which nothing else reads or writes. `facts`:
// one a parameter, NULL: none.
bool tk_barrier_is_idle(const tk_func *f, const tk_op *barrier, const tk_tensor_facts *facts);

bool tk_may_not_run(const tk_op *op); // it is in a branch of an `if`

// Whether some loop of the function, in no branch of an `if`, reads what a loop before it read.
bool tk_reads_twice(const tk_func *f);

#endif
