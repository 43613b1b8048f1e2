// SPDX-License-Identifier: Apache-2.0
// Moves as linear maps. See move.h.
#include "ir/move.h"

#include <string.h>

// ---- Sides --------------------------------------------------------------------------------------

// Numbers with n zero bits put in at bit p.
static uint32_t spread(uint32_t x, unsigned p, unsigned n) {
    const uint32_t low = x & ((1U << p) - 1);
    return low | (x >> p) << (p + n);
}

static tk_side side(const tk_layout *l, unsigned p, unsigned n, uint32_t at) {
    tk_side s = {.l = *l, .at = at};
    for (unsigned i = 0; i < l->regs; i++) {
        s.l.reg[i] = spread(l->reg[i], p, n);
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        s.l.lane[i] = spread(l->lane[i], p, n);
    }
    for (unsigned i = 0; i < l->warps; i++) {
        s.l.warp[i] = spread(l->warp[i], p, n);
    }
    memset(s.l.log_dim, 0, sizeof s.l.log_dim);
    s.l.rank = 1;
    s.l.log_dim[0] = (uint8_t)(tk_layout_bits(l) + n);
    return s;
}

// All sources as one.
static void join(tk_moving *m) {
    m->all = m->src[0];
    m->joined = m->nsrc == 1;
    if (m->nsrc == 2 && tk_layout_eq(&m->src[0].l, &m->src[1].l) &&
        m->src[0].l.regs < TK_MAX_REG_BITS) {
        m->joined = true;
        m->all.l.reg[m->all.l.regs++] = m->src[0].at ^ m->src[1].at;
    }
}

// ---- Within warps -------------------------------------------------------------------------------

uint32_t tk_lane_move_sum(const uint32_t *basis, unsigned n, uint32_t index) {
    uint32_t x = 0;
    for (unsigned i = 0; i < n; i++) {
        x ^= index >> i & 1 ? basis[i] : 0;
    }
    return x;
}

// The place of element e within the warp: in the own thread if it is there.
static bool within(const tk_layout *l, uint32_t e, tk_place_bits *p) {
    return tk_layout_find(l, e, 0, false, 0, false, p) ||
           tk_layout_find(l, e, 0, true, 0, false, p);
}

// Where each bit of a destination's place leads. A bit of the lane leads to the same bit of the
// source's and what is left, which is in the own thread where it can be.
static bool find_places(const tk_layout *a, const tk_side *b, uint32_t from, tk_lane_move *m,
                        uint32_t *g, uint32_t *warp_g) {
    tk_place_bits p;
    for (unsigned i = 0; i < b->l.regs; i++) {
        if (!within(a, b->l.reg[i], &p)) {
            return false;
        }
        m->reg[i] = p.reg;
        m->reg_lane[i] = p.lane;
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        if (tk_layout_find(a, b->l.lane[i] ^ a->lane[i], 0, false, 0, false, &p)) {
            p.lane = 1U << i;
        } else if (!within(a, b->l.lane[i], &p)) {
            return false;
        }
        g[i] = p.reg;
        m->lane[i] = p.lane;
    }
    for (unsigned i = 0; i < b->l.warps; i++) {
        if (!within(a, b->l.warp[i] ^ a->warp[i], &p)) {
            return false;
        }
        warp_g[i] = p.reg;
        m->warp_lane[i] = p.lane;
    }
    if (!within(a, b->at ^ from, &p)) {
        return false;
    }
    m->at_reg = p.reg;
    m->at_lane = p.lane;
    return true;
}

// Independent numbers of few bits, by their leading bits.
typedef struct span {
    uint32_t by_bit[32];
} span;

static bool extend(span *s, uint32_t v) {
    while (v) {
        const unsigned top = 31U - (unsigned)__builtin_clz(v);
        if (!s->by_bit[top]) {
            s->by_bit[top] = v;
            return true;
        }
        v ^= s->by_bit[top];
    }
    return false;
}

// Lets destinations take other registers of theirs (swap), so that the lanes that they read from
// are all different. g becomes what each lane of theirs then reads.
static bool make_different(unsigned regs, tk_lane_move *m, uint32_t *g) {
    span lanes = {{0}};
    uint32_t used = 0;
    bool fixed[TK_LANE_BITS];
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        fixed[i] = extend(&lanes, m->lane[i]);
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        unsigned j = 0;
        while (!fixed[i] && j < regs && ((used >> j & 1) || !extend(&lanes, m->reg_lane[j]))) {
            j++;
        }
        if (!fixed[i] && j == regs) {
            return false;
        }
        if (!fixed[i]) {
            used |= 1U << j;
            m->swap[i] = 1U << j;
            m->lane[i] ^= m->reg_lane[j];
            g[i] ^= m->reg[j];
        }
    }
    return true;
}

// The lane that reads from lane `s` of these, the map being one to one.
static uint32_t reader_of(const tk_lane_move *m, uint32_t s) {
    uint32_t t = 0;
    while (tk_lane_move_sum(m->lane, TK_LANE_BITS, t) != s) {
        t++;
    }
    return t;
}

// What a lane gives, from what its reader needs.
static void set_give(unsigned regs, unsigned warps, tk_lane_move *m, const uint32_t *g,
                     const uint32_t *warp_g) {
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        m->give[i] = tk_lane_move_sum(g, TK_LANE_BITS, reader_of(m, 1U << i));
    }
    for (unsigned i = 0; i < warps; i++) {
        m->warp_give[i] = warp_g[i] ^ tk_lane_move_sum(m->give, TK_LANE_BITS, m->warp_lane[i]);
    }
    for (unsigned i = 0; i < regs; i++) {
        m->reg[i] ^= tk_lane_move_sum(m->give, TK_LANE_BITS, m->reg_lane[i]);
    }
    m->at_reg ^= tk_lane_move_sum(m->give, TK_LANE_BITS, m->at_lane);
}

static bool all_zero(const uint32_t *v, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (v[i]) {
            return false;
        }
    }
    return true;
}

static bool lanes_of(const tk_side *a, const tk_side *b, tk_lane_move *m) {
    uint32_t g[TK_LANE_BITS] = {0}, warp_g[TK_MAX_WARP_BITS] = {0};
    *m = (tk_lane_move){.own = true};
    if (a->l.warps != b->l.warps || !find_places(&a->l, b, a->at, m, g, warp_g)) {
        return false;
    }
    if (!all_zero(g, TK_LANE_BITS) || !all_zero(warp_g, b->l.warps)) {
        if (!make_different(b->l.regs, m, g)) {
            return false;
        }
        set_give(b->l.regs, b->l.warps, m, g, warp_g);
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        m->own = m->own && m->lane[i] == 1U << i;
    }
    m->own = m->own && all_zero(m->warp_lane, b->l.warps);
    return true;
}

// ---- Costs --------------------------------------------------------------------------------------

static unsigned rank_of(const uint32_t *v, unsigned n, const uint32_t *w, unsigned k) {
    span s = {{0}};
    unsigned rank = 0;
    for (unsigned i = 0; i < n + k; i++) {
        rank += extend(&s, i < n ? v[i] : w[i - n]);
    }
    return rank;
}

// Wavefronts of the shuffles, with a quarter for a select.
static double cost_of(const tk_side *b, const tk_lane_move *m, tk_dtype t) {
    const unsigned before = rank_of(m->give, TK_LANE_BITS, m->warp_give, b->l.warps);
    const unsigned behind = rank_of(m->swap, TK_LANE_BITS, NULL, 0);
    const double selects = (1U << before) - 1 + (1U << behind) - 1;
    double shuffles = 0;
    for (uint32_t r = 0; r < 1U << b->l.regs; r++) {
        const bool moves =
            !m->own || (tk_lane_move_sum(m->reg_lane, b->l.regs, r) ^ m->at_lane) != 0;
        shuffles += moves ? (tk_dtype_bits(t) > 32 ? 2 : 1) : 0;
    }
    return shuffles + (double)(1U << b->l.regs) * selects / 4;
}

// ---- How ----------------------------------------------------------------------------------------

static void decide(tk_moving *m) {
    enum { BARRIER = 16 }; // wavefronts in the time of one
    double lanes = 0, shared = 0;
    bool within_warps = m->joined;
    for (unsigned i = 0; within_warps && i < m->ndst; i++) {
        within_warps = lanes_of(&m->all, &m->dst[i], &m->lanes[i]);
        lanes += within_warps ? cost_of(&m->dst[i], &m->lanes[i], m->dtype) : 0;
    }
    if (within_warps && lanes == 0) {
        m->work = TK_WORK_THREAD;
        return;
    }
    (void)tk_swizzle_of(m, &shared);
    shared += BARRIER;
    if (within_warps && lanes <= shared) {
        m->work = TK_WORK_LANES;
        m->cost = lanes;
        m->other = shared;
    } else {
        m->work = TK_WORK_SHARED;
        m->cost = shared;
        m->other = within_warps ? lanes : 0;
    }
}

tk_moving tk_moving_between(const tk_layout *a, const tk_layout *b, tk_dtype t) {
    tk_moving m = {.bits = tk_layout_bits(a), .dtype = t, .nsrc = 1, .ndst = 1};
    if (a->shared) {
        m.work = TK_WORK_THREAD;
        return m;
    }
    m.src[0] = side(a, 0, 0, 0);
    m.dst[0] = side(b, 0, 0, 0);
    join(&m);
    decide(&m);
    return m;
}

// Two sources or destinations: bit p of the larger side says which of the two.
static void pair(tk_side *s, const tk_func *f, const tk_vid *v, unsigned p) {
    for (unsigned i = 0; i < 2; i++) {
        s[i] = side(tk_value_layout(f, v[i]), p, 1, i << p);
    }
}

static bool is_linear(tk_opcode code) {
    return code == TK_OP_CONVERT || code == TK_OP_FLIP || code == TK_OP_SLICE ||
           code == TK_OP_CONCAT || code == TK_OP_INTERLEAVE || code == TK_OP_DEINTERLEAVE;
}

// Where `start` of a slice is no multiple of its extent the op is not linear.
static bool sides(const tk_func *f, const tk_op *op, tk_moving *m) {
    const tk_layout *x = tk_value_layout(f, op->opnd[0]), *r = tk_value_layout(f, op->res[0]);
    const unsigned axis = op->at.axis >= 0 ? (unsigned)op->at.axis : 0;
    const unsigned shift = tk_layout_shift(x, axis), log = x->log_dim[axis];
    m->bits = tk_layout_bits(x);
    m->src[0] = side(x, 0, 0, 0);
    m->dst[0] = side(r, 0, 0, 0);
    switch ((int)op->code) { // those that are linear
    case TK_OP_CONVERT:
        return true;
    case TK_OP_FLIP:
        m->dst[0].at = ((1U << log) - 1) << shift;
        return true;
    case TK_OP_SLICE: {
        const unsigned less = log - r->log_dim[axis];
        if (op->at.start % ((int64_t)1 << r->log_dim[axis]) != 0) {
            return false;
        }
        m->dst[0] = side(r, shift + r->log_dim[axis], less, (uint32_t)op->at.start << shift);
        return true;
    }
    case TK_OP_DEINTERLEAVE:
        m->ndst = 2;
        pair(m->dst, f, op->res, 0);
        return true;
    case TK_OP_INTERLEAVE:
        m->nsrc = 2;
        m->bits++;
        pair(m->src, f, op->opnd, 0);
        return true;
    case TK_OP_CONCAT:
        m->nsrc = 2;
        m->bits++;
        pair(m->src, f, op->opnd, shift + log);
        return true;
    }
    return false;
}

bool tk_moving_of(const tk_func *f, const tk_op *op, tk_moving *out) {
    *out = (tk_moving){.nsrc = 1, .ndst = 1};
    if (!is_linear(op->code)) {
        return false;
    }
    out->dtype = tk_value_type(f, op->res[0])->dtype;
    if (tk_value_layout(f, op->opnd[0])->shared) { // each thread reads what it needs
        out->work = TK_WORK_THREAD;
        return op->code == TK_OP_CONVERT;
    }
    if (!sides(f, op, out)) {
        return false;
    }
    join(out);
    decide(out);
    return true;
}
