// SPDX-License-Identifier: Apache-2.0
// Axis analysis: what is known of every integer and bool value of a function before it runs.
//
// A claim holds for each execution of the op that makes the value, in every program of every launch
// that keeps the facts. Four kinds, all about the mathematical value in its type (a u8 255 is 255,
// an i8 with the same bits -1):
//
// - Along each axis of a tile. Coordinates are taken in groups of a power of two that begin at its
//   multiples. `contig`: within a group of 1 << contig each element is the one before it plus one.
//   `same`: within a group of 1 << same all are equal. `div`: the first element of each group of
//   1 << contig is a multiple of 1 << div. All three hold whatever the other coordinates are, and
//   the exponents of group sizes are at most that of the extent. 0 is a multiple of everything
//   (div 63). A scalar is looked at as a tile of one element with one axis.
// - A range: lo <= x <= hi for all elements, where `ranged`; lo == hi is a known constant. Only a
//   u64 that may be above the greatest i64 has no range.
// - Bounds by sizes of tensors: mul * x + add <= the size, in integers that do not wrap.
// - Nothing else: floats are not followed, and a value of no claim is a value of its type's range.
//
// Wrapping. Arithmetic of the language wraps. Where the ranges say that an operation may wrap, its
// result has its type's range and no bounds, and groups shrink to what cannot be torn: a group
// whose first element is a multiple of its size wraps as a whole. Divisibility by powers of two
// survives.
//
// Loops are run until nothing changes: what a loop carries begins as its initial value and is
// joined with what the body yields. From the third round on a range that still grows goes to the
// end of its type; what does not settle in a few more gives up all claims. Then what a body yields
// is taken once without what was assumed before, and checked by further rounds.
#ifndef TK_LOWER_AXIS_H
#define TK_LOWER_AXIS_H

#include "ir/ir.h"
#include "lower/facts.h"

enum { TK_AXIS_BOUNDS = 4, TK_AXIS_ZERO = 63 };

typedef struct tk_axis_dim { // exponents of two
    uint8_t contig, same, div;
} tk_axis_dim;

// mul * x + add <= size of dimension `axis` of parameter `param`, the first that has this size.
typedef struct tk_axis_bound {
    uint32_t param, axis;
    int64_t mul, add; // mul > 0
} tk_axis_bound;

typedef struct tk_axis_value {
    uint8_t rank; // axes: at least 1
    uint8_t nbound;
    bool ranged;
    int64_t lo, hi;
    tk_axis_dim dim[TK_MAX_RANK];
    tk_axis_bound bound[TK_AXIS_BOUNDS];
} tk_axis_value;

// The rules by which claims are made: for tests, which must meet each.
#define TK_AXIS_RULES(R)                                                                           \
    R(CONSTANT)                                                                                    \
    R(IOTA)                                                                                        \
    R(PROGRAM)                                                                                     \
    R(PROGRAM_BOUND)                                                                               \
    R(PROGRAMS)                                                                                    \
    R(SIZE)                                                                                        \
    R(INDEX_UP)                                                                                    \
    R(INDEX_DOWN)                                                                                  \
    R(INDEX_EITHER)                                                                                \
    R(INDEX_BOUND)                                                                                 \
    R(CARRIED)                                                                                     \
    R(WIDENED)                                                                                     \
    R(GIVEN_UP)                                                                                    \
    R(BRANCHES)                                                                                    \
    R(TORN) /* a group made smaller because the operation may wrap */                              \
    R(ADD_CONTIG)                                                                                  \
    R(ADD_DIV)                                                                                     \
    R(ADD_BOUND)                                                                                   \
    R(SUB_CONTIG)                                                                                  \
    R(SUB_BOUND)                                                                                   \
    R(MUL_DIV)                                                                                     \
    R(MUL_BOUND)                                                                                   \
    R(DIV_SAME)                                                                                    \
    R(DIV_EXACT)                                                                                   \
    R(DIV_BOUND)                                                                                   \
    R(CDIV_EXACT)                                                                                  \
    R(CDIV_BOUND)                                                                                  \
    R(REM_CONTIG)                                                                                  \
    R(REM_DIV)                                                                                     \
    R(REM_BOUND)                                                                                   \
    R(MIN_BOUND)                                                                                   \
    R(MAX_BOUND)                                                                                   \
    R(MIN_MAX_KNOWN)                                                                               \
    R(AND_CONTIG)                                                                                  \
    R(AND_SAME)                                                                                    \
    R(AND_DIV)                                                                                     \
    R(AND_BOUND)                                                                                   \
    R(OR_CONTIG)                                                                                   \
    R(SHL_DIV)                                                                                     \
    R(SHR_SAME)                                                                                    \
    R(SHR_DIV)                                                                                     \
    R(SHR_BOUND)                                                                                   \
    R(COMPARE_KNOWN)                                                                               \
    R(COMPARE_SAME)                                                                                \
    R(SELECT_CONTIG)                                                                               \
    R(SELECT_KNOWN)                                                                                \
    R(ABS_KEEPS)                                                                                   \
    R(NEG_DIV)                                                                                     \
    R(CLAMP)                                                                                       \
    R(MULHI)                                                                                       \
    R(COUNT_BITS)                                                                                  \
    R(NEXT_POW2)                                                                                   \
    R(CAST_KEEPS)                                                                                  \
    R(CAST_CUTS)                                                                                   \
    R(CAST_BOOL)                                                                                   \
    R(BROADCAST)                                                                                   \
    R(RESHAPE_ONES)                                                                                \
    R(RESHAPE_ROWS)                                                                                \
    R(PERMUTE)                                                                                     \
    R(FLIP)                                                                                        \
    R(SLICE)                                                                                       \
    R(CONCAT)                                                                                      \
    R(INTERLEAVE)                                                                                  \
    R(DEINTERLEAVE)                                                                                \
    R(GATHER)                                                                                      \
    R(REDUCE)                                                                                      \
    R(SORT)                                                                                        \
    R(INDICES)

typedef enum tk_axis_rule {
#define TK_AXIS_RULE(NAME) TK_AXIS_##NAME,
    TK_AXIS_RULES(TK_AXIS_RULE)
#undef TK_AXIS_RULE
        TK_AXIS_RULE_COUNT
} tk_axis_rule;

typedef struct tk_axis {
    tk_arena *arena;
    const tk_func *func;
    const tk_tensor_facts *facts; // one a parameter; NULL: none
    tk_axis_value **at;           // per tk_vid; NULL: not followed
    unsigned round;
    bool changed, narrowing;
    uint32_t fired[TK_AXIS_RULE_COUNT]; // how often each rule made a claim
} tk_axis;

// Analyses a function without calls. Everything is in `arena`.
tk_axis *tk_axis_make(tk_arena *arena, const tk_func *f, const tk_tensor_facts *facts);
// NULL: not an integer or bool, or never reached.
const tk_axis_value *tk_axis_of(const tk_axis *x, tk_vid v);

// ---- Questions
bool tk_axis_constant(const tk_axis_value *v, int64_t *out);
// Every element is a multiple of 1 << this.
unsigned tk_axis_every(const tk_axis_value *v);
// A size of a tensor, as a value.
tk_axis_value tk_axis_size(const tk_axis *x, uint32_t param, uint32_t axis);
// Every element e of v has e + n <= the size.
bool tk_axis_below(const tk_axis *x, const tk_axis_value *v, uint32_t param, uint32_t axis,
                   int64_t n);

const char *tk_axis_rule_name(tk_axis_rule r);
// "contig 16 same 1 div 8 [0, 127] 64 * x + 1 <= size(0, 1)": for tests and explanations.
void tk_axis_print(tk_buf *out, const tk_axis_value *v);

#endif
