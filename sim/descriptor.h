// SPDX-License-Identifier: Apache-2.0
// Matrix descriptors of wgmma: how a matrix lies in shared memory.
//
// A descriptor has, in units of 16 bytes: bits 0 to 13 the address, 16 to 29 the leading and 32 to
// 45 the stride byte offset; bits 49 to 51 the base offset, bits 62 and 63 the swizzle: none, 128,
// 64 or 32 bytes.
//
// A matrix is K-major (what follows in memory is the next k) or, with 16-bit elements, MN-major. It
// is made of pieces of 16 bytes that lie together. A line is a row of M or N (K-major) or a k
// (MN-major). Eight lines, each as wide as the swizzle (16 bytes without one), lie one behind
// another: an atom. Where the swizzle is S bytes wide, line l, piece p has the address
//     K-major   start + l / 8 * stride + l % 8 * S + 16 p
//     MN-major  start + l / 8 * stride + p / (S / 16) * leading + l % 8 * S + p % (S / 16) * 16
// in which bits 4 and up are changed by exclusive or with bits 7 and up, as many as there are
// pieces in S (S / 16 of them: 3, 2, 1 bits); counted from the base offset on. Without a swizzle:
//     K-major   start + l / 8 * stride + p * leading + l % 8 * 16
//     MN-major  start + p * stride + l / 8 * leading + l % 8 * 16
#ifndef TK_SIM_DESCRIPTOR_H
#define TK_SIM_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tk_sim_tile {
    uint32_t start, leading, stride; // bytes
    uint32_t width;                  // of the swizzle: 16 (none), 32, 64, 128
    uint32_t base;                   // offset: lines of 128 bytes
    bool by_k;                       // MN-major: lines are k
} tk_sim_tile;

tk_sim_tile tk_sim_tile_of(uint64_t descriptor, bool mn_major);
// The shared address of 16 bytes.
uint32_t tk_sim_tile_piece(const tk_sim_tile *t, uint32_t line, uint32_t piece);

#endif
