// SPDX-License-Identifier: Apache-2.0
// Layouts made, changed and compared, and questions about them answered by elimination over bits.
// See layout.h.
#include "ir/layout.h"

#include <string.h>

enum { MAX_ELEM_BITS = 24, COLUMNS = TK_MAX_REG_BITS + TK_LANE_BITS + TK_MAX_WARP_BITS };

// ---- Shapes and values --------------------------------------------------------------------------

static bool is_power(int64_t n) { return n >= 1 && (n & (n - 1)) == 0; }

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while (k < 62 && ((int64_t)1 << k) < n) {
        k++;
    }
    return k;
}

unsigned tk_layout_bits(const tk_layout *l) {
    unsigned n = 0;
    for (unsigned i = 0; i < l->rank; i++) {
        n += l->log_dim[i];
    }
    return n;
}

unsigned tk_layout_shift(const tk_layout *l, unsigned axis) {
    unsigned n = 0;
    for (unsigned i = axis + 1; i < l->rank; i++) {
        n += l->log_dim[i];
    }
    return n;
}

static uint32_t sum_of(const uint32_t *basis, unsigned n, uint32_t index) {
    uint32_t e = 0;
    for (unsigned i = 0; i < n; i++) {
        if (index >> i & 1) {
            e ^= basis[i];
        }
    }
    return e;
}

uint32_t tk_layout_eval(const tk_layout *l, uint32_t reg, uint32_t lane, uint32_t warp) {
    return sum_of(l->reg, l->regs, reg) ^ sum_of(l->lane, TK_LANE_BITS, lane) ^
           sum_of(l->warp, l->warps, warp);
}

static bool same(const uint32_t *a, const uint32_t *b, unsigned n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

static bool same_shape(const tk_layout *a, const tk_layout *b) {
    return a->rank == b->rank && memcmp(a->log_dim, b->log_dim, a->rank) == 0;
}

static bool same_threads(const tk_layout *a, const tk_layout *b) {
    return a->warps == b->warps && same(a->lane, b->lane, TK_LANE_BITS) &&
           same(a->warp, b->warp, a->warps);
}

bool tk_layout_eq(const tk_layout *a, const tk_layout *b) {
    return same_shape(a, b) && a->shared == b->shared && a->regs == b->regs &&
           same(a->reg, b->reg, a->regs) && same_threads(a, b);
}

bool tk_layout_fits(const tk_type *t, unsigned *bad_axis) {
    for (unsigned i = 0; i < t->rank; i++) {
        if (!is_power(t->dim[i])) {
            if (bad_axis) {
                *bad_axis = i;
            }
            return false;
        }
    }
    return true;
}

// ---- Elimination --------------------------------------------------------------------------------

// A space spanned by columns, as vectors with distinct leading bits. `from` says of which columns
// a vector is the sum, so that a sum can be solved for. Columns that depend on earlier ones are
// left out: solutions use the earliest columns that will do, and are linear in what is solved for.
typedef struct space {
    unsigned n;
    uint32_t vector[COLUMNS];
    uint32_t from[COLUMNS];
} space;

static uint32_t reduce(const space *s, uint32_t v, uint32_t *from) {
    for (unsigned i = 0; i < s->n; i++) {
        // no later vector has the leading bit of an earlier one, so one pass does it
        if ((v ^ s->vector[i]) < v) {
            v ^= s->vector[i];
            *from ^= s->from[i];
        }
    }
    return v;
}

// Vectors stay in falling order: each then meets only what those before it left.
static bool add(space *s, uint32_t v, uint32_t column) {
    uint32_t from = column;
    v = reduce(s, v, &from);
    if (v == 0) {
        return false;
    }
    unsigned i = s->n++;
    for (; i > 0 && s->vector[i - 1] < v; i--) {
        s->vector[i] = s->vector[i - 1];
        s->from[i] = s->from[i - 1];
    }
    s->vector[i] = v;
    s->from[i] = from;
    return true;
}

static void add_all(space *s, const uint32_t *v, unsigned n, unsigned first_column) {
    for (unsigned i = 0; i < n; i++) {
        (void)add(s, v[i], 1u << (first_column + i));
    }
}

static void add_regs(space *s, const tk_layout *l) { add_all(s, l->reg, l->regs, 0); }

static void add_lanes(space *s, const tk_layout *l) {
    add_all(s, l->lane, TK_LANE_BITS, TK_MAX_REG_BITS);
}

static void add_warps(space *s, const tk_layout *l) {
    add_all(s, l->warp, l->warps, TK_MAX_REG_BITS + TK_LANE_BITS);
}

// ---- Validity -----------------------------------------------------------------------------------

static bool within(const uint32_t *v, unsigned n, uint32_t end) {
    for (unsigned i = 0; i < n; i++) {
        if (v[i] >= end) {
            return false;
        }
    }
    return true;
}

static const char *fault(const tk_layout *l) {
    unsigned bits = 0;
    if (l->rank == 0 || l->rank > TK_MAX_RANK) {
        return "a rank that no tile has";
    }
    for (unsigned i = 0; i < l->rank; i++) {
        bits += l->log_dim[i];
    }
    if (bits > MAX_ELEM_BITS) {
        return "more elements than a tile has";
    }
    if (l->regs > TK_MAX_REG_BITS || l->warps > TK_MAX_WARP_BITS) {
        return "too many register or warp bits";
    }
    if (l->shared && (l->warps > 0 || !within(l->lane, TK_LANE_BITS, 1))) {
        return "threads of a tile in shared memory";
    }
    uint32_t end = 1u << bits;
    if (!within(l->reg, l->regs, end) || !within(l->lane, TK_LANE_BITS, end) ||
        !within(l->warp, l->warps, end)) {
        return "a basis outside the tile";
    }
    space s = {0};
    add_regs(&s, l);
    if (s.n != l->regs) {
        return "a thread holds an element twice";
    }
    add_lanes(&s, l);
    add_warps(&s, l);
    return s.n == bits ? NULL : "an element is nowhere";
}

bool tk_layout_ok(const tk_layout *l, const char **why) {
    const char *text = fault(l);
    if (text && why) {
        *why = text;
    }
    return !text;
}

// ---- Making and changing ------------------------------------------------------------------------

// The bits of elements with the axes of `order`, from low to high, into bit[MAX_ELEM_BITS].
static unsigned ordered_bits(tk_layout *l, const int64_t *dim, const uint8_t *order,
                             uint32_t *bit) {
    unsigned n = 0;
    for (unsigned i = 0; i < l->rank; i++) {
        l->log_dim[i] = (uint8_t)log_of(dim[i]);
    }
    for (unsigned i = 0; i < l->rank; i++) {
        unsigned shift = tk_layout_shift(l, order[i]);
        for (unsigned k = 0; k < l->log_dim[order[i]] && n < MAX_ELEM_BITS; k++) {
            bit[n++] = 1u << (shift + k);
        }
    }
    return n;
}

tk_layout tk_layout_blocked(unsigned rank, const int64_t *dim, const uint8_t *order, unsigned vec,
                            unsigned warps) {
    tk_layout l = {.rank = (uint8_t)rank, .warps = (uint8_t)warps};
    uint32_t bit[MAX_ELEM_BITS];
    const unsigned n = ordered_bits(&l, dim, order, bit);
    unsigned lanes = 0, warp = 0;
    for (unsigned i = 0; i < n; i++) {
        if (i < vec && l.regs < TK_MAX_REG_BITS) {
            l.reg[l.regs++] = bit[i];
        } else if (lanes < TK_LANE_BITS) {
            l.lane[lanes++] = bit[i];
        } else if (warp < warps) {
            l.warp[warp++] = bit[i];
        } else {
            l.reg[l.regs++] = bit[i];
        }
    }
    return l;
}

tk_layout tk_layout_rows(unsigned rank, const int64_t *dim, const uint8_t *order, unsigned vec,
                         unsigned warps) {
    tk_layout l = {.rank = (uint8_t)rank, .warps = (uint8_t)warps};
    uint32_t bit[MAX_ELEM_BITS];
    const unsigned n = ordered_bits(&l, dim, order, bit), low = vec + TK_LANE_BITS;
    const unsigned rest = n > low ? n - low : 0, top = warps < rest ? warps : rest;
    for (unsigned i = 0; i < n; i++) {
        if (i >= vec && i < low) {
            l.lane[i - vec] = bit[i];
        } else if (i >= n - top) {
            l.warp[i - (n - top)] = bit[i];
        } else {
            l.reg[l.regs++] = bit[i];
        }
    }
    return l;
}

bool tk_layout_apart(const tk_layout *l) {
    uint32_t threads = 0, registers = 0;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        threads |= l->lane[i];
    }
    for (unsigned i = 0; i < l->warps; i++) {
        threads |= l->warp[i];
    }
    for (unsigned i = 0; i < l->regs; i++) {
        registers |= l->reg[i];
    }
    return (threads & registers) == 0;
}

const tk_layout *tk_layout_new(tk_arena *a, tk_layout l) {
    tk_layout *own = TK_NEW(a, tk_layout);
    *own = l;
    return own;
}

tk_layout tk_layout_reshape(const tk_layout *l, unsigned rank, const int64_t *dim) {
    tk_layout r = *l;
    memset(r.log_dim, 0, sizeof r.log_dim);
    r.rank = (uint8_t)rank;
    for (unsigned i = 0; i < rank; i++) {
        r.log_dim[i] = (uint8_t)log_of(dim[i]);
    }
    return r;
}

// What an op does to the number of an element, as what it does to each bit of it.
static void map_all(uint32_t *basis, unsigned n, const uint32_t *image) {
    for (unsigned i = 0; i < n; i++) {
        basis[i] = sum_of(image, MAX_ELEM_BITS, basis[i]);
    }
}

static void map(tk_layout *l, const uint32_t *image) {
    map_all(l->reg, l->regs, image);
    map_all(l->lane, TK_LANE_BITS, image);
    map_all(l->warp, l->warps, image);
    space s = {0};
    unsigned kept = 0;
    for (unsigned i = 0; i < l->regs; i++) {
        if (add(&s, l->reg[i], 0)) {
            l->reg[kept++] = l->reg[i];
        }
    }
    memset(l->reg + kept, 0, (l->regs - kept) * sizeof *l->reg);
    l->regs = (uint8_t)kept;
}

tk_layout tk_layout_permute(const tk_layout *l, const uint8_t *perm) {
    tk_layout r = *l;
    uint32_t image[MAX_ELEM_BITS] = {0};
    for (unsigned i = 0; i < l->rank; i++) {
        r.log_dim[i] = l->log_dim[perm[i]];
    }
    for (unsigned i = 0; i < l->rank; i++) {
        unsigned from = tk_layout_shift(l, perm[i]), to = tk_layout_shift(&r, i);
        for (unsigned k = 0; k < r.log_dim[i]; k++) {
            image[from + k] = 1u << (to + k);
        }
    }
    map(&r, image);
    return r;
}

tk_layout tk_layout_slice(const tk_layout *l, unsigned axis) {
    tk_layout r = *l;
    uint32_t image[MAX_ELEM_BITS] = {0};
    unsigned first = tk_layout_shift(l, axis), bits = tk_layout_bits(l);
    unsigned gone = l->log_dim[axis];
    for (unsigned i = 0; i < bits; i++) {
        image[i] = i < first ? 1u << i : i < first + gone ? 0 : 1u << (i - gone);
    }
    r.log_dim[axis] = 0;
    map(&r, image);
    return r;
}

tk_layout tk_layout_stretched(const tk_layout *l, unsigned rank, const int64_t *dim) {
    tk_layout r = *l;
    for (unsigned i = 0; i < l->rank; i++) {
        bool in_front = i + rank < l->rank;
        if (in_front || log_of(dim[i + rank - l->rank]) != l->log_dim[i]) {
            r = tk_layout_slice(&r, i);
        }
    }
    return tk_layout_reshape(&r, rank, dim);
}

tk_layout tk_layout_grow(const tk_layout *l, const unsigned *log) {
    tk_layout r = *l;
    uint32_t image[MAX_ELEM_BITS] = {0};
    for (unsigned i = 0; i < l->rank; i++) {
        r.log_dim[i] = (uint8_t)(l->log_dim[i] + log[i]);
    }
    for (unsigned i = 0; i < l->rank; i++) {
        unsigned from = tk_layout_shift(l, i), to = tk_layout_shift(&r, i);
        for (unsigned k = 0; k < l->log_dim[i]; k++) {
            image[from + k] = 1u << (to + k);
        }
    }
    map(&r, image);
    for (unsigned i = l->rank; i-- > 0;) {
        for (unsigned k = 0; k < log[i] && r.regs < TK_MAX_REG_BITS; k++) {
            r.reg[r.regs++] = 1u << (tk_layout_shift(&r, i) + l->log_dim[i] + k);
        }
    }
    return r;
}

// ---- Questions ----------------------------------------------------------------------------------

static uint32_t copies(space *s, const uint32_t *v, unsigned n) {
    uint32_t mask = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!add(s, v[i], 0)) {
            mask |= 1u << i;
        }
    }
    return mask;
}

void tk_layout_copies(const tk_layout *l, uint32_t *lane_mask, uint32_t *warp_mask) {
    space s = {0};
    add_regs(&s, l);
    *lane_mask = copies(&s, l->lane, TK_LANE_BITS);
    *warp_mask = copies(&s, l->warp, l->warps);
}

unsigned tk_layout_vector(const tk_layout *l, unsigned axis) {
    unsigned shift = tk_layout_shift(l, axis), n = 0;
    while (n < l->regs && n < l->log_dim[axis] && l->reg[n] == 1u << (shift + n)) {
        n++;
    }
    return n;
}

bool tk_layout_find(const tk_layout *l, uint32_t e, uint32_t lane, bool any_lane, uint32_t warp,
                    bool any_warp, tk_place_bits *out) {
    space s = {0};
    uint32_t from = 0;
    add_regs(&s, l);
    if (any_lane) {
        add_lanes(&s, l);
    }
    if (any_warp) {
        add_warps(&s, l);
    }
    e ^= tk_layout_eval(l, 0, any_lane ? 0 : lane, any_warp ? 0 : warp);
    if (reduce(&s, e, &from) != 0) {
        return false;
    }
    out->reg = from & ((1u << TK_MAX_REG_BITS) - 1);
    out->lane = any_lane ? from >> TK_MAX_REG_BITS & ((1u << TK_LANE_BITS) - 1) : lane;
    out->warp = any_warp ? from >> (TK_MAX_REG_BITS + TK_LANE_BITS) : warp;
    return true;
}

static bool parts_of(space *on_axis, uint32_t axis, const uint32_t *basis, unsigned n,
                     uint32_t *mask) {
    *mask = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t on = basis[i] & axis;
        if (on && (on != basis[i] || !add(on_axis, on, 0))) {
            return false;
        }
        *mask |= on ? 1U << i : 0;
    }
    return true;
}

bool tk_layout_parts(const tk_layout *l, uint32_t axis, uint32_t *lanes, uint32_t *warps) {
    space on_axis = {0};
    uint32_t regs;
    *lanes = *warps = 0;
    return parts_of(&on_axis, axis, l->reg, l->regs, &regs) &&
           parts_of(&on_axis, axis, l->lane, TK_LANE_BITS, lanes) &&
           parts_of(&on_axis, axis, l->warp, l->warps, warps);
}

// ---- Text ---------------------------------------------------------------------------------------

static void bases(tk_buf *out, const char *name, const uint32_t *v, unsigned n) {
    tk_buf_fmt(out, " %s", name);
    for (unsigned i = 0; i < n; i++) {
        tk_buf_fmt(out, " %u", v[i]);
    }
}

void tk_layout_print(tk_buf *out, const tk_layout *l) {
    tk_buf_str(out, "[");
    for (unsigned i = 0; i < l->rank; i++) {
        tk_buf_fmt(out, i ? ", %lld" : "%lld", (long long)1 << l->log_dim[i]);
    }
    tk_buf_str(out, "]");
    bases(out, l->shared ? "shared" : "reg", l->reg, l->regs);
    if (l->shared) {
        return;
    }
    bases(out, "lane", l->lane, TK_LANE_BITS);
    bases(out, "warp", l->warp, l->warps);
}

uint32_t tk_layout_thread_bits(const tk_layout *l) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        bits |= l->lane[i];
    }
    for (unsigned i = 0; i < l->warps; i++) {
        bits |= l->warp[i];
    }
    return bits;
}
