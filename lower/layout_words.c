// SPDX-License-Identifier: Apache-2.0
// A layout in words. See record.h.
#include "lower/record.h"

// Which axis a basis moves along: its number, -1 none, -2 several.
static int axis_of(const tk_layout *l, uint32_t basis) {
    int found = -1;
    for (unsigned d = 0; d < l->rank; d++) {
        const uint32_t bits = ((1U << l->log_dim[d]) - 1) << tk_layout_shift(l, d);
        if (basis & bits) {
            found = found == -1 ? (int)d : -2;
        }
    }
    return found;
}

static unsigned count(const tk_layout *l, const uint32_t *basis, unsigned n, int axis) {
    unsigned found = 0;
    for (unsigned i = 0; i < n; i++) {
        found += axis_of(l, basis[i]) == axis;
    }
    return found;
}

// " 8 along axis 1, 2 along axis 0", the last axis first.
static void spread(tk_buf *b, const tk_layout *l, const uint32_t *basis, unsigned n,
                   bool registers) {
    const char *comma = " ";
    for (unsigned d = l->rank; d-- > 0;) {
        const unsigned k = count(l, basis, n, (int)d), row = tk_layout_vector(l, d);
        if (k > 0) {
            tk_buf_fmt(b, "%s%u", comma, 1U << k);
            if (l->rank > 1) {
                tk_buf_fmt(b, " along axis %u", d);
            }
            if (registers && row > 0 && d + 1 == l->rank) {
                tk_buf_fmt(b, " (%u in a row)", 1U << row);
            }
            comma = ", ";
        }
    }
    const unsigned several = count(l, basis, n, -2), none = count(l, basis, n, -1);
    if (several) {
        tk_buf_fmt(b, "%s%u along several axes", comma, 1U << several);
        comma = ", ";
    }
    if (none) {
        tk_buf_fmt(b, "%s%u with copies", comma, 1U << none);
        comma = ", ";
    }
    if (*comma == ' ') {
        tk_buf_str(b, " 1");
    }
}

void tk_layout_words(tk_buf *out, const tk_layout *l) {
    if (l->shared) {
        tk_buf_str(out, "in shared memory");
        return;
    }
    tk_buf_str(out, "elements a thread:");
    spread(out, l, l->reg, l->regs, true);
    tk_buf_str(out, "; lanes:");
    spread(out, l, l->lane, TK_LANE_BITS, false);
    if (l->warps) {
        tk_buf_str(out, "; warps:");
        spread(out, l, l->warp, l->warps, false);
    }
}
