// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random
// numbers: as easy as 1, 2, 3", 2011).
#ifndef TK_LANG_PHILOX_H
#define TK_LANG_PHILOX_H

#include <stdint.h>

typedef struct tk_philox4 {
    uint32_t w[4];
} tk_philox4;

// Ten rounds on the counter c; the key moves on by its Weyl constants between rounds.
static inline tk_philox4 tk_philox(uint32_t key0, uint32_t key1, tk_philox4 c) {
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xd2511f53U * c.w[0];
        const uint64_t p1 = (uint64_t)0xcd9e8d57U * c.w[2];
        const tk_philox4 next = {{(uint32_t)(p1 >> 32) ^ c.w[1] ^ key0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c.w[3] ^ key1, (uint32_t)p0}};
        c = next;
        key0 += 0x9e3779b9U;
        key1 += 0xbb67ae85U;
    }
    return c;
}

// philox(seed, offset): key (seed low, high), counter (offset low, high, 0, 0). Seeds and offsets
// of 32 bits are zero-extended if unsigned and sign-extended if signed.
static inline tk_philox4 tk_philox_at(uint64_t seed, uint64_t offset) {
    const tk_philox4 c = {{(uint32_t)offset, (uint32_t)(offset >> 32), 0, 0}};
    return tk_philox((uint32_t)seed, (uint32_t)(seed >> 32), c);
}

#endif
