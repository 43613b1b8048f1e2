// SPDX-License-Identifier: Apache-2.0
// Operations of the threads of a warp on each other's registers: they happen when all the threads
// that the member mask names have come to the instruction: the same one with the same suffixes and
// the same mask, but not the same place in the code. Each thread has its operands from where it
// stands.
#include "sim/exec.h"

// ---- Meeting

static const tk_sim_inst *inst_of(const tk_sim_warp *w, uint32_t lane) {
    return &w->code[w->pc[lane]];
}

// The member mask is the last operand of all of these.
static uint32_t members_of(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane) {
    return (uint32_t)tk_sim_get(w, &i->arg[i->narg - 1])[lane];
}

uint32_t tk_sim_members(const tk_sim_warp *w, uint32_t lane) {
    const tk_sim_inst *i = inst_of(w, lane);
    bool meets = w->waiting >> lane & 1 && w->wait[lane] == TK_SIM_WAIT_WARP && i->meets;
    return meets ? members_of(w, i, lane) : 0;
}

// Those of `lanes` that give the same members at the same instruction.
static uint32_t alike(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                      uint32_t members) {
    uint32_t same = 0;
    TK_SIM_EACH(l, lanes) {
        const tk_sim_inst *at = inst_of(w, l);
        bool is = at == i || strcmp(at->name, i->name) == 0;
        same |= (uint32_t)(is && members_of(w, at, l) == members) << l;
    }
    return same;
}

// True once all members of the first lane's group are there: *got. Lanes of other groups have their
// turn afterwards. False: *flow is what to answer.
static bool meet(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t *got,
                 tk_sim_flow *flow) {
    TK_SIM_EACH(l, mask) { w->pc[l] = tk_sim_index(w, i); }
    const uint32_t members = members_of(w, i, (uint32_t)__builtin_ctz(mask));
    const uint32_t own = alike(w, i, mask, members);
    if (own & ~members) {
        const uint32_t l = (uint32_t)__builtin_ctz(own & ~members);
        *flow = tk_sim_fail(w, i, l, "membership",
                            "lane %u executes '%s' but is not in its member mask 0x%x", l, i->name,
                            members);
        return false;
    }
    uint32_t others = 0;
    TK_SIM_EACH(l, w->waiting & members) {
        others |= (uint32_t)(w->wait[l] == TK_SIM_WAIT_WARP && inst_of(w, l)->meets) << l;
    }
    if (!tk_sim_gather_with(w, i, own, alike(w, i, others, members), members, got)) {
        *flow = TK_SIM_WAIT;
        return false;
    }
    TK_SIM_EACH(l, *got) {
        w->met_at[l] = w->pc[l];
        w->met_with[l] = members;
    }
    w->joined = *got;
    *flow = TK_SIM_JOINED;
    return true;
}

bool tk_sim_members_agree(tk_sim_warp *w, uint32_t lane, uint32_t other) {
    const uint32_t members = tk_sim_members(w, lane);
    const bool waits = tk_sim_members(w, other) != 0;
    const uint32_t at = waits ? w->pc[other] : w->met_at[other];
    const uint32_t with = waits ? tk_sim_members(w, other) : w->met_with[other];
    if (!(members >> other & 1) || at != w->pc[lane] || with == members) {
        return true;
    }
    tk_sim_fail(w, inst_of(w, lane), lane, "membership",
                "the member masks of one '%s' differ: 0x%x and, of lane %u, 0x%x",
                inst_of(w, lane)->name, members, other, with);
    return false;
}

// Of `left`, the lanes at one instruction are taken out: it, and they.
static const tk_sim_inst *next_place(const tk_sim_warp *w, uint32_t *left, uint32_t *lanes) {
    const uint32_t pc = w->pc[__builtin_ctz(*left)];
    *lanes = 0;
    TK_SIM_EACH(l, *left) { *lanes |= (uint32_t)(w->pc[l] == pc) << l; }
    *left &= ~*lanes;
    return &w->code[pc];
}

// The lanes' values of operand n of the shape.
static void values(const tk_sim_warp *w, uint32_t got, unsigned n, uint64_t *out) {
    for (uint32_t left = got, lanes; left;) {
        const tk_sim_inst *i = next_place(w, &left, &lanes);
        const uint64_t *from = tk_sim_get(w, tk_sim_operand(i, n));
        TK_SIM_EACH(l, lanes) { out[l] = from[l]; }
    }
}

static uint32_t predicates(const tk_sim_warp *w, uint32_t got, unsigned n) {
    uint32_t bits = 0;
    for (uint32_t left = got, lanes; left;) {
        const tk_sim_inst *i = next_place(w, &left, &lanes);
        bits |= tk_sim_get_pred(w, tk_sim_operand(i, n)) & lanes;
    }
    return bits;
}

// To operand 0: a register and, where one is named, the predicate behind it.
static void give(tk_sim_warp *w, uint32_t got, const uint64_t *x, uint32_t pred) {
    for (uint32_t left = got, lanes; left;) {
        const tk_sim_inst *i = next_place(w, &left, &lanes);
        TK_SIM_EACH(l, lanes) { tk_sim_put(w, &i->arg[0])[l] = x[l]; }
        if (tk_sim_count_of(i, 0) == 2) {
            tk_sim_put_pred(w, &i->arg[1], pred, lanes);
        }
    }
}

static void give_all(tk_sim_warp *w, uint32_t got, uint64_t x, uint32_t pred) {
    uint64_t all[TK_SIM_LANES];
    for (unsigned l = 0; l < TK_SIM_LANES; l++) {
        all[l] = x;
    }
    give(w, got, all, pred);
}

// ---- shfl

static bool source_lane(const tk_sim_inst *i, uint32_t lane, uint32_t b, uint32_t c,
                        uint32_t *from) {
    uint32_t clamp = c & 31, segment = c >> 8 & 31;
    uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int64_t at;
    bool inside;
    b &= 31;
    if (tk_sim_has(i, TK_SIM_MOD_UP)) {
        at = (int64_t)lane - b;
        inside = at >= (int64_t)most; // `most` is the least here: the clamp of .up
    } else if (tk_sim_has(i, TK_SIM_MOD_DOWN)) {
        at = (int64_t)lane + b;
        inside = at <= (int64_t)most;
    } else if (tk_sim_has(i, TK_SIM_MOD_BFLY)) {
        at = (int64_t)(lane ^ b);
        inside = at <= (int64_t)most;
    } else {
        at = (int64_t)(least | (b & ~segment));
        inside = at <= (int64_t)most;
    }
    *from = inside ? (uint32_t)at & 31 : lane;
    return inside;
}

static tk_sim_flow run_shfl(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got, valid = 0;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    uint64_t a[TK_SIM_LANES], b[TK_SIM_LANES], c[TK_SIM_LANES], result[TK_SIM_LANES];
    values(w, got, 1, a);
    values(w, got, 2, b);
    values(w, got, 3, c);
    TK_SIM_EACH(l, got) {
        uint32_t from;
        bool inside = source_lane(i, l, (uint32_t)b[l], (uint32_t)c[l], &from);
        if (!(got >> from & 1)) {
            return tk_sim_fail(w, inst_of(w, l), l, "shuffle-source",
                               "lane %u reads lane %u, which does not take part (0x%x)", l, from,
                               got);
        }
        valid |= (uint32_t)inside << l;
        result[l] = a[from];
    }
    give(w, got, result, valid);
    return flow;
}
TK_SIM_BIND_ONE(shfl, run_shfl)

// ---- vote, match

static tk_sim_flow run_vote(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    uint32_t yes = predicates(w, got, 1);
    bool is = tk_sim_has(i, TK_SIM_MOD_ALL)   ? yes == got
              : tk_sim_has(i, TK_SIM_MOD_ANY) ? yes != 0
                                              : yes == got || yes == 0;
    for (uint32_t left = got, lanes; left;) {
        const tk_sim_inst *at = next_place(w, &left, &lanes);
        tk_sim_put_pred(w, &at->arg[0], is ? ~0u : 0, lanes);
    }
    return flow;
}
TK_SIM_BIND_ONE(vote, run_vote)

static tk_sim_flow run_ballot(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    give_all(w, got, predicates(w, got, 1), 0);
    return flow;
}
TK_SIM_BIND_ONE(ballot, run_ballot)

static uint32_t equals(const uint64_t *x, uint32_t got, uint32_t lane) {
    uint32_t same = 0;
    TK_SIM_EACH(k, got) { same |= (uint32_t)(x[k] == x[lane]) << k; }
    return same;
}

static tk_sim_flow run_match(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    uint64_t x[TK_SIM_LANES], d[TK_SIM_LANES];
    values(w, got, 1, x);
    bool all = tk_sim_has(i, TK_SIM_MOD_ALL);
    bool one = equals(x, got, (uint32_t)__builtin_ctz(got)) == got;
    TK_SIM_EACH(l, got) { d[l] = all ? (one ? got : 0) : equals(x, got, l); }
    give(w, got, d, one ? ~0u : 0);
    return flow;
}
TK_SIM_BIND_ONE(match_any, run_match)
TK_SIM_BIND_ONE(match_all, run_match)

// ---- redux, activemask, elect

static uint32_t folded(const tk_sim_inst *i, uint32_t x, uint32_t y) {
    bool less = i->type[0] == TK_SIM_S32 ? (int32_t)y < (int32_t)x : y < x;
    return tk_sim_has(i, TK_SIM_MOD_ADD)   ? x + y
           : tk_sim_has(i, TK_SIM_MOD_MIN) ? (less ? y : x)
           : tk_sim_has(i, TK_SIM_MOD_MAX) ? (less ? x : y)
           : tk_sim_has(i, TK_SIM_MOD_AND) ? (x & y)
           : tk_sim_has(i, TK_SIM_MOD_OR)  ? (x | y)
                                           : (x ^ y);
}

static tk_sim_flow run_redux(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    uint64_t a[TK_SIM_LANES];
    values(w, got, 1, a);
    uint32_t first = (uint32_t)__builtin_ctz(got), sum = (uint32_t)a[first];
    TK_SIM_EACH(l, got & ~(1u << first)) { sum = folded(i, sum, (uint32_t)a[l]); }
    give_all(w, got, sum, 0);
    return flow;
}
TK_SIM_BIND_ONE(redux, run_redux)

static tk_sim_flow run_activemask(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) { tk_sim_put(w, &i->arg[0])[l] = mask; }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(activemask, run_activemask)

// The lowest member leads.
static tk_sim_flow run_elect(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    uint32_t leader = (uint32_t)__builtin_ctz(got);
    give_all(w, got, leader, 1u << leader);
    return flow;
}
tk_sim_exec *tk_sim_bind_elect(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 0) == 2 ? run_elect : NULL;
}

// ---- bar.warp.sync: the one of these that orders memory

static tk_sim_flow run_bar_warp(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &got, &flow)) {
        return flow;
    }
    tk_sim_shadow_warp(w, got);
    return flow;
}
TK_SIM_BIND_ONE(bar_warp, run_bar_warp)
