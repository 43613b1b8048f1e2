// SPDX-License-Identifier: Apache-2.0
// See descriptor.h.
#include "sim/descriptor.h"

enum { PIECE = 16, ATOM = 8, FIELD = 0x3fff };

tk_sim_tile tk_sim_tile_of(uint64_t descriptor, bool mn_major) {
    static const uint32_t width[] = {PIECE, 128, 64, 32};
    return (tk_sim_tile){.start = (uint32_t)(descriptor & FIELD) * PIECE,
                         .leading = (uint32_t)(descriptor >> 16 & FIELD) * PIECE,
                         .stride = (uint32_t)(descriptor >> 32 & FIELD) * PIECE,
                         .width = width[descriptor >> 62],
                         .base = (uint32_t)(descriptor >> 49 & 7),
                         .by_k = mn_major};
}

uint32_t tk_sim_tile_piece(const tk_sim_tile *t, uint32_t line, uint32_t piece) {
    uint32_t atom = line / ATOM, in = line % ATOM * t->width, across = t->width / PIECE;
    if (across == 1) {
        return t->by_k ? t->start + piece * t->stride + atom * t->leading + in
                       : t->start + piece * t->leading + atom * t->stride + in;
    }
    uint32_t at = t->start + atom * t->stride + in;
    at += t->by_k ? piece / across * t->leading + piece % across * PIECE : piece * PIECE;
    return at ^ (((at >> 7) - t->base) & (across - 1)) * PIECE;
}
