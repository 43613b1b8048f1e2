// SPDX-License-Identifier: Apache-2.0
// Operations of the threads of a warp on each other's registers: they happen when all the threads
// that the member mask names have come to the instruction.
#include "sim/exec.h"

// The member mask, which must be the same in all lanes that execute this together and have their
// own bit. False after *flow is what to answer.
static bool meet(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, const tk_sim_arg *members,
                 uint32_t *got, tk_sim_flow *flow) {
    const uint64_t *m = tk_sim_get(w, members);
    const uint32_t first = (uint32_t)m[__builtin_ctz(mask)];
    uint32_t own = 0; // lanes of other groups have their turn afterwards
    TK_SIM_EACH(l, mask) { own |= (uint32_t)((uint32_t)m[l] == first) << l; }
    TK_SIM_EACH(l, own) {
        if (!(first >> l & 1)) {
            *flow = tk_sim_fail(w, i, l, "membership",
                                "lane %u executes '%s' but is not in its member mask 0x%x", l,
                                i->name, first);
            return false;
        }
    }
    if (mask & first & ~own) { // claimed by one that names others
        const uint32_t l = (uint32_t)__builtin_ctz(mask & first & ~own);
        *flow =
            tk_sim_fail(w, i, l, "membership", "the member masks of one '%s' differ: 0x%x and 0x%x",
                        i->name, first, (uint32_t)m[l]);
        return false;
    }
    if (!tk_sim_gather(w, i, own, first, got)) {
        *flow = TK_SIM_WAIT;
        return false;
    }
    TK_SIM_EACH(l, *got) {
        if ((uint32_t)m[l] != first) {
            *flow = tk_sim_fail(w, i, l, "membership",
                                "the member masks of one '%s' differ: 0x%x and 0x%x", i->name,
                                first, (uint32_t)m[l]);
            return false;
        }
    }
    w->joined = *got;
    *flow = TK_SIM_JOINED;
    return true;
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
    const tk_sim_arg *a = tk_sim_operand(i, 1), *b = tk_sim_operand(i, 2),
                     *c = tk_sim_operand(i, 3);
    uint32_t got, valid = 0;
    tk_sim_flow flow;
    if (!meet(w, i, mask, tk_sim_operand(i, 4), &got, &flow)) {
        return flow;
    }
    uint64_t value[TK_SIM_LANES];
    memcpy(value, tk_sim_get(w, a), sizeof value);
    uint64_t result[TK_SIM_LANES];
    TK_SIM_EACH(l, got) {
        uint32_t from;
        bool inside =
            source_lane(i, l, (uint32_t)tk_sim_get(w, b)[l], (uint32_t)tk_sim_get(w, c)[l], &from);
        if (!(got >> from & 1)) {
            return tk_sim_fail(w, i, l, "shuffle-source",
                               "lane %u reads lane %u, which does not take part (0x%x)", l, from,
                               got);
        }
        valid |= (uint32_t)inside << l;
        result[l] = value[from];
    }
    TK_SIM_EACH(l, got) { tk_sim_put(w, &i->arg[0])[l] = result[l]; }
    if (tk_sim_count_of(i, 0) == 2) {
        tk_sim_put_pred(w, &i->arg[1], valid, got);
    }
    return flow;
}
TK_SIM_BIND_ONE(shfl, run_shfl)

// ---- vote, match

static tk_sim_flow run_vote(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &i->arg[2], &got, &flow)) {
        return flow;
    }
    uint32_t yes = tk_sim_get_pred(w, &i->arg[1]) & got;
    bool is = tk_sim_has(i, TK_SIM_MOD_ALL)   ? yes == got
              : tk_sim_has(i, TK_SIM_MOD_ANY) ? yes != 0
                                              : yes == got || yes == 0;
    tk_sim_put_pred(w, &i->arg[0], is ? ~0u : 0, got);
    return flow;
}
TK_SIM_BIND_ONE(vote, run_vote)

static tk_sim_flow run_ballot(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &i->arg[2], &got, &flow)) {
        return flow;
    }
    uint32_t yes = tk_sim_get_pred(w, &i->arg[1]) & got;
    TK_SIM_EACH(l, got) { tk_sim_put(w, &i->arg[0])[l] = yes; }
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
    if (!meet(w, i, mask, tk_sim_operand(i, 2), &got, &flow)) {
        return flow;
    }
    uint64_t x[TK_SIM_LANES];
    memcpy(x, tk_sim_get(w, tk_sim_operand(i, 1)), sizeof x);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    bool all = tk_sim_has(i, TK_SIM_MOD_ALL);
    bool one = equals(x, got, (uint32_t)__builtin_ctz(got)) == got;
    TK_SIM_EACH(l, got) { d[l] = all ? (one ? got : 0) : equals(x, got, l); }
    if (tk_sim_count_of(i, 0) == 2) {
        tk_sim_put_pred(w, &i->arg[1], one ? ~0u : 0, got);
    }
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
    if (!meet(w, i, mask, &i->arg[2], &got, &flow)) {
        return flow;
    }
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint32_t first = (uint32_t)__builtin_ctz(got), sum = (uint32_t)a[first];
    TK_SIM_EACH(l, got & ~(1u << first)) { sum = folded(i, sum, (uint32_t)a[l]); }
    TK_SIM_EACH(l, got) { tk_sim_put(w, &i->arg[0])[l] = sum; }
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
    if (!meet(w, i, mask, tk_sim_operand(i, 1), &got, &flow)) {
        return flow;
    }
    uint32_t leader = (uint32_t)__builtin_ctz(got);
    TK_SIM_EACH(l, got) { tk_sim_put(w, &i->arg[0])[l] = leader; }
    tk_sim_put_pred(w, &i->arg[1], 1u << leader, got);
    return flow;
}
tk_sim_exec *tk_sim_bind_elect(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 0) == 2 ? run_elect : NULL;
}

// ---- bar.warp.sync: the one of these that orders memory

static tk_sim_flow run_bar_warp(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t got;
    tk_sim_flow flow;
    if (!meet(w, i, mask, &i->arg[0], &got, &flow)) {
        return flow;
    }
    tk_sim_shadow_warp(w, got);
    return flow;
}
TK_SIM_BIND_ONE(bar_warp, run_bar_warp)
