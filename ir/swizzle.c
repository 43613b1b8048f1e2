// SPDX-License-Identifier: Apache-2.0
// Where moves through shared memory put their elements, and what their accesses cost. See move.h.
#include "ir/move.h"

enum { BANKS = 32, BANK_BYTES = 4 };

uint32_t tk_swizzle_apply(tk_swizzle s, uint32_t number) {
    const uint32_t high = number >> s.from & ((1U << TK_SWIZZLE_BITS) - 1);
    return s.from ? number ^ high << s.to : number;
}

// The bits in which bases other than that of register bit i lie.
static uint32_t others(const tk_layout *l, unsigned i) {
    uint32_t bits = 0;
    for (unsigned k = 0; k < l->regs; k++) {
        bits |= k == i ? 0 : l->reg[k];
    }
    for (unsigned k = 0; k < TK_LANE_BITS; k++) {
        bits |= l->lane[k];
    }
    for (unsigned k = 0; k < l->warps; k++) {
        bits |= l->warp[k];
    }
    return bits;
}

tk_run tk_run_of(const tk_layout *l, tk_dtype t) {
    tk_run run = {.n = 0};
    while ((tk_dtype_size(t) << run.n) < TK_VECTOR_BYTES && run.n < 4) {
        unsigned i = 0;
        while (i < l->regs && l->reg[i] != 1U << run.n) {
            i++;
        }
        if (i == l->regs || others(l, i) >> run.n & 1) {
            break;
        }
        run.mask |= 1U << i;
        run.bit[run.n++] = i;
    }
    return run;
}

uint32_t tk_run_registers(const tk_run *run, uint32_t i) {
    uint32_t r = 0;
    for (unsigned j = 0; j < run->n; j++) {
        r |= (i >> j & 1) << run->bit[j];
    }
    return r;
}

// Of one access by a warp, each lane moving 1 << run elements.
static unsigned wavefronts(const tk_layout *l, tk_swizzle s, unsigned run, unsigned size) {
    const unsigned bytes = size << run, words = bytes < BANK_BYTES ? 1 : bytes / BANK_BYTES;
    const unsigned together = BANKS / words; // lanes that one wavefront can serve
    unsigned total = 0;
    for (unsigned first = 0; first < BANKS; first += together) {
        uint32_t seen[BANKS][BANKS];
        unsigned count[BANKS] = {0}, most = 1;
        for (unsigned lane = first; lane < first + together; lane++) {
            const uint32_t word =
                tk_swizzle_apply(s, tk_layout_eval(l, 0, lane, 0)) * size / BANK_BYTES;
            for (unsigned w = 0; w < words; w++) {
                unsigned bank = (word + w) % BANKS, i = 0;
                while (i < count[bank] && seen[bank][i] != word + w) {
                    i++;
                }
                if (i == count[bank]) { // one word read by several lanes is read once
                    seen[bank][count[bank]++] = word + w;
                }
                most = count[bank] > most ? count[bank] : most;
            }
        }
        total += most;
    }
    return total;
}

static unsigned of_side(const tk_layout *l, tk_swizzle s, tk_dtype t) {
    const tk_run run = tk_run_of(l, t);
    return wavefronts(l, s, run.n, (unsigned)tk_dtype_size(t)) << (l->regs - run.n);
}

static unsigned of_all(const tk_moving *m, tk_swizzle s) {
    unsigned total = m->joined ? of_side(&m->all.l, s, m->dtype) : 0;
    for (unsigned i = 0; !m->joined && i < m->nsrc; i++) {
        total += of_side(&m->src[i].l, s, m->dtype);
    }
    for (unsigned i = 0; i < m->ndst; i++) {
        total += of_side(&m->dst[i].l, s, m->dtype);
    }
    return total;
}

tk_swizzle tk_swizzle_of(const tk_moving *m, double *cost) {
    tk_swizzle best = {0, 0};
    unsigned least = of_all(m, best), to = 0;
    while ((tk_dtype_size(m->dtype) << to) < TK_VECTOR_BYTES) {
        to++;
    }
    for (unsigned from = to + TK_SWIZZLE_BITS; from + TK_SWIZZLE_BITS <= m->bits; from++) {
        const tk_swizzle s = {from, to};
        const unsigned c = of_all(m, s);
        if (c < least) {
            least = c;
            best = s;
        }
    }
    *cost = least;
    return best;
}
