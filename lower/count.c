// SPDX-License-Identifier: Apache-2.0
// Sectors and wavefronts of a warp's request. See count.h.
#include "lower/count.h"

enum { LANES = 32, SECTOR = 32, BANKS = 32, WORD = 4, MOST_BYTES = 16 };

static bool add_new(uint64_t *set, unsigned *n, uint64_t x) {
    for (unsigned k = *n; k-- > 0;) {
        if (set[k] == x) {
            return false;
        }
    }
    set[(*n)++] = x;
    return true;
}

void tk_count_sectors(tk_requests *to, uint32_t mask, const uint64_t *at, uint32_t bytes) {
    uint64_t sector[2 * LANES], place[LANES];
    unsigned n = 0, places = 0;
    if (mask == 0) {
        return;
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (mask >> lane & 1) {
            add_new(sector, &n, at[lane] / SECTOR);
            add_new(sector, &n, (at[lane] + bytes - 1) / SECTOR);
            add_new(place, &places, at[lane]);
        }
    }
    to->requests++;
    to->units += n;
    to->least += (places * bytes + SECTOR - 1) / SECTOR;
}

// The most different words of one bank; *words: of all banks.
static unsigned passes(uint32_t mask, const uint64_t *at, uint32_t bytes, unsigned *words) {
    uint64_t word[LANES * MOST_BYTES / WORD];
    unsigned of_bank[BANKS] = {0}, most = 0;
    *words = 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (uint32_t k = 0; (mask >> lane & 1) && k < bytes; k += WORD) {
            const uint64_t x = (at[lane] + k) / WORD;
            if (add_new(word, words, x)) {
                const unsigned count = ++of_bank[x % BANKS];
                most = count > most ? count : most;
            }
        }
    }
    return most;
}

// Each lane reads what the lane `apart` reads.
static bool in_pairs(uint32_t mask, const uint64_t *at, unsigned apart) {
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned other = lane ^ apart;
        if ((mask >> lane & 1) && (mask >> other & 1) && at[lane] != at[other]) {
            return false;
        }
    }
    return true;
}

void tk_count_wavefronts(tk_requests *to, uint32_t mask, const uint64_t *at, uint32_t bytes,
                         bool load) {
    unsigned groups = bytes <= WORD ? 1 : bytes <= 2 * WORD ? 2 : 4;
    if (mask == 0) {
        return;
    }
    if (groups > 1 && load && (in_pairs(mask, at, 1) || in_pairs(mask, at, 2))) {
        groups /= 2;
    }
    const unsigned lanes = LANES / groups;
    for (unsigned k = 0; k < groups; k++) {
        const uint32_t all = (uint32_t)((UINT64_C(1) << lanes) - 1);
        unsigned words;
        const unsigned n = passes(mask & all << k * lanes, at, bytes, &words);
        to->units += n;
        to->least += (words + BANKS - 1) / BANKS;
    }
    to->requests++;
}
