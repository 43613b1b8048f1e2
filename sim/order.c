// SPDX-License-Identifier: Apache-2.0
// Clocks of threads and copies, and what each thread knows of them: meetings, releases, acquires.
//
// What a warp as a whole has waited for (the reads of a wgmma) is handed over by any of its
// threads: their clocks are made equal, and who knows one of them knows of the read.
#include "sim/order.h"

// ---- Rows

void tk_sim_order_clear(tk_sim_past *r) {
    r->valid = r->proxies = r->all_proxied = false;
    r->agent.n = 0;
    r->started = 0;
}

// Threads are forgotten, agents are not.
static void forget_threads(tk_sim_past *r) { r->valid = r->proxies = r->all_proxied = false; }

static void make_valid(struct tk_sim_shadow *s, tk_sim_past *r) {
    if (!r->known) {
        r->known = TK_NEW_ARRAY(s->arena, uint32_t, s->threads);
    } else if (!r->valid) {
        memset(r->known, 0, s->threads * sizeof *r->known);
    }
    r->valid = true;
    s->clocked = true;
}

static void make_proxies(struct tk_sim_shadow *s, tk_sim_past *r) {
    if (!r->proxied) {
        r->proxied = TK_NEW_ARRAY(s->arena, uint32_t, s->threads);
    } else if (!r->proxies) {
        memset(r->proxied, 0, s->threads * sizeof *r->proxied);
    }
    r->proxies = true;
    s->clocked = true;
}

static void most_of(uint32_t *to, const uint32_t *from, uint32_t n) {
    for (uint32_t t = 0; t < n; t++) {
        to[t] = to[t] < from[t] ? from[t] : to[t];
    }
}

static void join_agents(struct tk_sim_shadow *s, tk_sim_agents *to, const tk_sim_agents *from) {
    while (to->n < from->n) {
        tk_vec_push(s->arena, to, ((tk_sim_agent){0, 0}));
    }
    for (uint32_t k = 0; k < from->n; k++) {
        tk_sim_agent *a = &to->at[k], b = from->at[k];
        a->known = a->known < b.known ? b.known : a->known;
        a->proxied = a->proxied < b.proxied ? b.proxied : a->proxied;
    }
}

void tk_sim_order_join(struct tk_sim_shadow *s, tk_sim_past *to, const tk_sim_past *from) {
    if (from->valid) {
        make_valid(s, to);
        most_of(to->known, from->known, s->threads);
    }
    if (from->proxies) {
        make_proxies(s, to);
        most_of(to->proxied, from->proxied, s->threads);
    }
    to->all_proxied = to->all_proxied || from->all_proxied;
    to->started |= from->started;
    join_agents(s, &to->agent, &from->agent);
}

const tk_sim_past *tk_sim_order_row(const struct tk_sim_shadow *s, uint32_t thread) {
    return s->lane[thread].valid ? &s->lane[thread] : &s->warp[thread / TK_SIM_LANES];
}

static bool lanes_apart(const struct tk_sim_shadow *s, uint32_t warp) {
    bool apart = false;
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        apart = apart || s->lane[warp * TK_SIM_LANES + l].valid;
    }
    return apart;
}

tk_sim_past *tk_sim_order_own_row(struct tk_sim_shadow *s, uint32_t thread) {
    tk_sim_past *r = &s->lane[thread];
    if (!r->valid) {
        tk_sim_order_clear(r);
        make_valid(s, r);
        tk_sim_order_join(s, r, &s->warp[thread / TK_SIM_LANES]);
    }
    return r;
}

void tk_sim_order_tick(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes) {
    s->clocked = true;
    TK_SIM_EACH(l, lanes) {
        uint32_t *clock = &s->clock[warp * TK_SIM_LANES + l];
        *clock += *clock < UINT32_MAX;
    }
}

void tk_sim_order_gather(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes, tk_sim_past *to) {
    make_valid(s, to);
    if (to != &s->warp[warp]) {
        tk_sim_order_join(s, to, &s->warp[warp]);
    }
    TK_SIM_EACH(l, lanes) {
        uint32_t t = warp * TK_SIM_LANES + l;
        if (s->lane[t].valid && to != &s->lane[t]) {
            tk_sim_order_join(s, to, &s->lane[t]);
        }
        to->known[t] = to->known[t] < s->clock[t] ? s->clock[t] : to->known[t];
        if (s->proxied[t]) {
            make_proxies(s, to);
            to->all_proxied = true;
            to->proxied[t] = to->proxied[t] < s->proxied[t] ? s->proxied[t] : to->proxied[t];
        }
        to->started |= s->started[t];
    }
}

tk_sim_past *tk_sim_order_point(struct tk_sim_shadow *s, uint32_t point) {
    while (s->point.n <= point) {
        tk_vec_push(s->arena, &s->point, (tk_sim_past){0});
    }
    return &s->point.at[point];
}

// ---- Meetings of all

// What any thread knows at the end of the epoch, all know from now on.
static void settle(struct tk_sim_shadow *s) {
    if (s->proxies) {
        s->last_proxied = s->epoch;
        memcpy(s->proxied_there, s->proxied, s->threads * sizeof *s->proxied);
    }
    for (uint32_t t = 0; t < s->threads + s->nwarp; t++) {
        const tk_sim_past *r = t < s->threads ? &s->lane[t] : &s->warp[t - s->threads];
        if (t < s->threads && !r->valid) {
            continue;
        }
        join_agents(s, &s->base, &r->agent);
        if (s->proxies && r->proxies) {
            most_of(s->proxied_there, r->proxied, s->threads);
        }
    }
}

static void forget_rows(struct tk_sim_shadow *s) {
    s->clocked = s->proxies = false;
    for (uint32_t t = 0; t < s->threads; t++) {
        s->clock[t] = 1;
        s->proxied[t] = 0;
        tk_sim_order_clear(&s->lane[t]);
    }
    for (uint32_t k = 0; k < s->nwarp; k++) {
        tk_sim_order_clear(&s->warp[k]);
    }
    for (uint32_t k = 0; k < s->point.n; k++) {
        forget_threads(&s->point.at[k]);
    }
    for (uint32_t t = 0; s->seen && t < s->threads; t++) {
        forget_threads(&s->seen[t]);
    }
    tk_sim_flags_forget(s);
}

void tk_sim_shadow_all(struct tk_sim_shadow *s) {
    if (s->clocked) {
        settle(s);
        forget_rows(s);
    }
    s->epoch++;
}

void tk_sim_order_begin(struct tk_sim_shadow *s) {
    s->clocked = true;
    tk_sim_shadow_all(s);
    s->first = s->epoch;
    s->crossed = false;
    s->last_proxied = 0;
    s->base.n = s->bulk.n = s->copiers = 0;
    memset(s->copier, 0, s->threads * sizeof *s->copier);
    for (uint32_t t = 0; t < s->threads; t++) {
        s->started[t] = 1u << t / (s->threads / s->nblock);
    }
    for (uint32_t k = 0; k < s->point.n; k++) {
        tk_sim_order_clear(&s->point.at[k]);
    }
    for (uint32_t t = 0; s->seen && t < s->threads; t++) {
        tk_sim_order_clear(&s->seen[t]);
    }
    tk_sim_flags_begin(s);
}

// ---- Points

static void see_started(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes, uint32_t blocks) {
    TK_SIM_EACH(l, lanes) { s->started[warp * TK_SIM_LANES + l] |= blocks; }
}

void tk_sim_shadow_release(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    if (lanes) {
        tk_sim_order_gather(s, w->number, lanes, tk_sim_order_point(s, point));
        tk_sim_order_tick(s, w->number, lanes);
    }
}

void tk_sim_shadow_acquire(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number;
    const tk_sim_past *p = tk_sim_order_point(s, point);
    if (!lanes || !(p->valid || p->agent.n || p->started)) {
        return;
    }
    see_started(s, warp, lanes, p->started);
    if (lanes == ~0u && !lanes_apart(s, warp)) {
        tk_sim_order_join(s, &s->warp[warp], p);
        return;
    }
    TK_SIM_EACH(l, lanes) {
        tk_sim_order_join(s, tk_sim_order_own_row(s, warp * TK_SIM_LANES + l), p);
    }
}

void tk_sim_shadow_clear(struct tk_sim_shadow *s, uint32_t point) {
    tk_sim_order_clear(tk_sim_order_point(s, point));
}

void tk_sim_shadow_warp(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number, blocks = 0;
    TK_SIM_EACH(l, lanes) { blocks |= s->started[warp * TK_SIM_LANES + l]; }
    see_started(s, warp, lanes, blocks);
    if (lanes == ~0u) {
        tk_sim_order_gather(s, warp, lanes, &s->warp[warp]);
        for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
            tk_sim_order_clear(&s->lane[warp * TK_SIM_LANES + l]);
        }
    } else {
        tk_sim_past *first =
            tk_sim_order_own_row(s, warp * TK_SIM_LANES + (uint32_t)__builtin_ctz(lanes));
        tk_sim_order_gather(s, warp, lanes, first);
        TK_SIM_EACH(l, lanes) {
            tk_sim_past *r = tk_sim_order_own_row(s, warp * TK_SIM_LANES + l);
            if (r != first) {
                tk_sim_order_join(s, r, first);
            }
        }
    }
    tk_sim_order_tick(s, warp, lanes);
}

void tk_sim_shadow_release_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    tk_sim_past *p = tk_sim_order_point(s, point);
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = tk_sim_member(w, l);
        p->started |= s->started[thread];
        tk_sim_flags_fenced(s, thread, p);
    }
}

void tk_sim_shadow_acquire_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    const tk_sim_past *p = tk_sim_order_point(s, point);
    see_started(s, w->number, lanes, p->started);
    tk_sim_flags_seen(s, w->number, lanes, p);
}

void tk_sim_shadow_together(const tk_sim_warp *w) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t *clock = &s->clock[w->number * TK_SIM_LANES], most = 0;
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        most = clock[l] > most ? clock[l] : most;
    }
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        s->clocked = s->clocked || clock[l] != most;
        clock[l] = most;
    }
}

bool tk_sim_shadow_started(const tk_sim_warp *w, uint32_t lane, const tk_sim_block *of) {
    return w->cluster->shadow->started[tk_sim_member(w, lane)] >> of->rank & 1;
}

// ---- The fence between proxies

// What the row knows lies behind a fence.
static void fence_row(struct tk_sim_shadow *s, tk_sim_past *r) {
    r->all_proxied = true;
    if (r->valid) {
        make_proxies(s, r);
        memcpy(r->proxied, r->known, s->threads * sizeof *r->proxied);
    }
    join_agents(s, &r->agent, &s->base);
    for (uint32_t k = 0; k < r->agent.n; k++) {
        r->agent.at[k].proxied = r->agent.at[k].known;
    }
}

void tk_sim_shadow_proxy_fence(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number;
    if (lanes == ~0u && !lanes_apart(s, warp)) {
        fence_row(s, &s->warp[warp]);
    } else {
        TK_SIM_EACH(l, lanes) { fence_row(s, tk_sim_order_own_row(s, warp * TK_SIM_LANES + l)); }
    }
    s->proxies = true;
    TK_SIM_EACH(l, lanes) {
        s->proxied[warp * TK_SIM_LANES + l] = s->clock[warp * TK_SIM_LANES + l];
    }
    tk_sim_order_tick(s, warp, lanes);
}

tk_sim_moment tk_sim_shadow_now(const tk_sim_warp *w, uint32_t lane) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    tk_sim_moment m = {s->epoch, thread, s->clock[thread]};
    tk_sim_order_tick(s, w->number, 1u << lane);
    return m;
}

bool tk_sim_shadow_after(const tk_sim_warp *w, uint32_t lane, tk_sim_moment m) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    const tk_sim_past *r = tk_sim_order_row(s, thread);
    bool known = m.epoch < s->epoch || m.thread == thread;
    return m.epoch && (known || (r->valid && r->known[m.thread] >= m.clock));
}

// ---- Copies that tell an mbarrier

tk_sim_done tk_sim_shadow_bulk(const tk_sim_cluster *c, uint32_t mbarrier) {
    struct tk_sim_shadow *s = c->shadow;
    while (s->bulk.n <= mbarrier) {
        tk_vec_push(s->arena, &s->bulk, 1);
    }
    return (tk_sim_done){2 * mbarrier, s->bulk.at[mbarrier]};
}

tk_sim_done tk_sim_shadow_copies(const tk_sim_warp *w, uint32_t lane, uint64_t serial) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t *copier = &s->copier[tk_sim_member(w, lane)];
    *copier = *copier ? *copier : 2 * s->copiers++ + 1;
    return (tk_sim_done){*copier, serial > UINT32_MAX ? UINT32_MAX : (uint32_t)serial};
}

static void know(struct tk_sim_shadow *s, tk_sim_past *p, tk_sim_done by) {
    while (p->agent.n <= by.agent) {
        tk_vec_push(s->arena, &p->agent, ((tk_sim_agent){0, 0}));
    }
    uint32_t *known = &p->agent.at[by.agent].known;
    *known = *known < by.clock ? by.clock : *known;
    s->clocked = true;
}

void tk_sim_shadow_told(const tk_sim_warp *w, uint32_t lane, tk_sim_done by, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    tk_sim_past *p = tk_sim_order_point(s, point);
    know(s, p, by);
    p->started |= s->started[tk_sim_member(w, lane)];
    if (by.agent % 2 == 0) {
        s->bulk.at[by.agent / 2]++;
    }
}

bool tk_sim_shadow_knows_copy(const tk_sim_warp *w, uint32_t lane, tk_sim_done by) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    const tk_sim_past *r = tk_sim_order_row(s, tk_sim_member(w, lane));
    return tk_sim_order_agent(&s->base, by.agent).known >= by.clock ||
           tk_sim_order_agent(&r->agent, by.agent).known >= by.clock;
}

void tk_sim_shadow_know_copy(const tk_sim_warp *w, uint32_t lane, tk_sim_done by) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    if (!tk_sim_shadow_knows_copy(w, lane, by)) {
        know(s, tk_sim_order_own_row(s, tk_sim_member(w, lane)), by);
    }
}
