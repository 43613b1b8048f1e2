// SPDX-License-Identifier: Apache-2.0
// How tiles lie in shared memory. See layout.h.
#include "ir/layout.h"

enum { UNIT_BYTES = 16, SWIZZLE_BITS = 3 };

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while (k < 62 && ((int64_t)1 << k) < n) {
        k++;
    }
    return k;
}

// The axes from the contiguous one on.
static void order_of(unsigned rank, unsigned fast, unsigned *order) {
    unsigned n = 0;
    order[n++] = fast;
    for (unsigned i = rank; i-- > 0;) {
        if (i != fast) {
            order[n++] = i;
        }
    }
}

static void push(tk_layout *l, uint32_t basis) {
    if (l->regs < TK_MAX_REG_BITS) {
        l->reg[l->regs++] = basis;
    }
}

tk_layout tk_layout_placed(unsigned rank, const int64_t *dim, unsigned fast, unsigned bytes) {
    tk_layout l = {.rank = (uint8_t)rank, .shared = true};
    unsigned order[TK_MAX_RANK] = {0};
    order_of(rank, fast, order);
    for (unsigned i = 0; i < rank; i++) {
        l.log_dim[i] = (uint8_t)log_of(dim[i]);
    }
    const unsigned column = tk_layout_shift(&l, fast), most = log_of(TK_SPAN_BYTES / bytes);
    const unsigned all = l.log_dim[fast], in_span = all < most ? all : most;
    const unsigned unit = log_of(UNIT_BYTES / bytes), units = in_span > unit ? in_span - unit : 0;
    for (unsigned i = 0; i < in_span; i++) {
        push(&l, 1U << (column + i));
    }
    const unsigned rows = rank > 1 ? order[1] : 0;
    for (unsigned i = 0; rank > 1 && i < l.log_dim[rows]; i++) {
        const unsigned first = SWIZZLE_BITS - units;
        const bool swizzled = i >= first && i < SWIZZLE_BITS;
        push(&l, 1U << (tk_layout_shift(&l, rows) + i) |
                     (swizzled ? 1U << (column + unit + i - first) : 0));
    }
    for (unsigned i = in_span; i < all; i++) {
        push(&l, 1U << (column + i));
    }
    for (unsigned k = 2; k < rank; k++) {
        for (unsigned i = 0; i < l.log_dim[order[k]]; i++) {
            push(&l, 1U << (tk_layout_shift(&l, order[k]) + i));
        }
    }
    return l;
}

bool tk_layout_is_placed(const tk_layout *l, unsigned bytes, tk_placed *out) {
    int64_t dim[TK_MAX_RANK] = {0};
    for (unsigned i = 0; i < l->rank; i++) {
        dim[i] = (int64_t)1 << l->log_dim[i];
    }
    for (unsigned fast = l->rank; l->shared && fast-- > 0;) {
        const tk_layout x = tk_layout_placed(l->rank, dim, fast, bytes);
        if (!tk_layout_eq(l, &x)) {
            continue;
        }
        unsigned order[TK_MAX_RANK] = {0};
        order_of(l->rank, fast, order);
        const uint32_t row = (uint32_t)dim[fast] * bytes;
        *out = (tk_placed){.fast = fast, .rows = l->rank > 1 ? (int)order[1] : -1};
        out->span = row < TK_SPAN_BYTES ? row : TK_SPAN_BYTES;
        out->panels = row / out->span;
        out->panel_rows = l->rank > 1 ? (uint32_t)dim[order[1]] : 1;
        out->outer = 1U << (tk_layout_bits(l) - log_of(dim[fast]) - log_of(out->panel_rows));
        return true;
    }
    return false;
}

uint32_t tk_layout_place(const tk_layout *l, uint32_t e) {
    tk_place_bits at = {0, 0, 0};
    (void)tk_layout_find(l, e, 0, false, 0, false, &at);
    return at.reg;
}

tk_layout tk_layout_places(const tk_layout *threads, const tk_layout *shared) {
    const int64_t n = (int64_t)1 << tk_layout_bits(shared);
    tk_layout l = tk_layout_reshape(threads, 1, &n);
    for (unsigned i = 0; i < l.regs; i++) {
        l.reg[i] = tk_layout_place(shared, l.reg[i]);
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        l.lane[i] = tk_layout_place(shared, l.lane[i]);
    }
    for (unsigned i = 0; i < l.warps; i++) {
        l.warp[i] = tk_layout_place(shared, l.warp[i]);
    }
    return l;
}
