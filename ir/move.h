// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements, as linear maps over bits: convert, flip, concat, interleave,
// deinterleave, and slice from a multiple of its extent.
//
// Extents are powers of two, so such an op gives each element of a result one of an operand whose
// number is linear in the bits of its own, but for a constant that is exclusive-ored. The elements
// of all operands and results are numbered in one space: that of the larger side. An operand or
// result is then a side: a layout into the space, which it need not fill, and the constant. concat
// and interleave have two sources, told apart by one bit; deinterleave two destinations.
//
// What each destination's place needs is found by solving for it in the source: the same register
// of the same thread in all threads (a renaming), a place within the warp (shuffles), or any place
// (shared memory). Of the last two the cheaper is taken, in wavefronts of the unit that does both.
#ifndef TK_IR_MOVE_H
#define TK_IR_MOVE_H

#include "ir/scratch.h"

typedef struct tk_side {
    tk_layout l; // of rank 1, into the space
    uint32_t at;
} tk_side;

// A move within warps. For register r of thread t (its lane and warp) of a destination:
//     the source's lane is        lane(t) ^ reg_lane(r) ^ at_lane
//     which gives its register    reg(r) ^ at_reg ^ give(its own lane and the warp)
//     and what comes belongs to   register r ^ swap(t)
// where each function is linear and given by what each bit contributes. Where registers and lanes
// mix, a thread has elements for others in registers that depend on the lane: give and swap select
// them before and after, so that each shuffle takes one register of each thread.
typedef struct tk_lane_move {
    uint32_t reg[TK_MAX_REG_BITS], reg_lane[TK_MAX_REG_BITS];
    uint32_t at_reg, at_lane;
    uint32_t lane[TK_LANE_BITS], warp_lane[TK_MAX_WARP_BITS];
    uint32_t give[TK_LANE_BITS], warp_give[TK_MAX_WARP_BITS];
    uint32_t swap[TK_LANE_BITS];
    bool own; // lane(t) is t's lane: where reg_lane(r) ^ at_lane is 0 nothing is shuffled
} tk_lane_move;

typedef struct tk_moving {
    unsigned bits; // of the space
    tk_dtype dtype;
    unsigned nsrc, ndst;
    tk_side src[2], dst[2]; // by operand, by result
    // All sources as one, where their layouts are equal: the registers of the second behind those
    // of the first.
    bool joined;
    tk_side all;
    tk_work work;
    tk_lane_move lanes[2]; // THREAD, LANES: by result
    double cost, other; // in wavefronts; of shared memory, where lanes were taken, and the reverse;
                        // 0: no other way
} tk_moving;

// False where the op is none of these.
bool tk_moving_of(const tk_func *f, const tk_op *op, tk_moving *out);
// From layout a to layout b of the same shape. What lies in shared memory is read from there by
// each thread; nothing else is said of that.
tk_moving tk_moving_between(const tk_layout *a, const tk_layout *b, tk_dtype t);

// What the functions of a lane move give.
uint32_t tk_lane_move_sum(const uint32_t *basis, unsigned n, uint32_t index);

// ---- Through shared memory ----------------------------------------------------------------------

// The space lies there in order, with a swizzle: the bits of a number above a vector of 16 bytes
// are exclusive-ored with three higher ones, so that lanes that are far apart meet different banks.
// Which three is chosen by counting the wavefronts of each side: the map is linear, so all accesses
// of a side conflict alike.
typedef struct tk_swizzle {
    unsigned from, to; // bits [from, from + 3) go into [to, to + 3); from 0: none
} tk_swizzle;
enum { TK_SWIZZLE_BITS = 3, TK_VECTOR_BYTES = 16 };
uint32_t tk_swizzle_apply(tk_swizzle s, uint32_t number);

// Registers of a side that are moved together: register bit bit[i] walks 1 << i in memory.
typedef struct tk_run {
    unsigned n;
    unsigned bit[4];
    uint32_t mask; // of these bits
} tk_run;
tk_run tk_run_of(const tk_layout *l, tk_dtype t);
// Its register bits for place i of the run.
uint32_t tk_run_registers(const tk_run *run, uint32_t i);

tk_swizzle tk_swizzle_of(const tk_moving *m, double *wavefronts);

#endif
