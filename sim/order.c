// SPDX-License-Identifier: Apache-2.0
// Clocks of threads and copies, and what each thread knows of them: meetings, releases, acquires.
//
// What a warp as a whole has waited for (the reads of a wgmma) is handed over by any of its
// threads: their clocks are made equal, and who knows one of them knows of the read.
#include "sim/order.h"

// ---- Rows

void tk_sim_order_forget(tk_sim_past *r) {
    r->valid = r->proxies = false;
    r->all_proxied = r->parts = 0;
    r->beyond.n = r->init.n = 0;
}

void tk_sim_order_clear(tk_sim_past *r) {
    tk_sim_order_forget(r);
    r->agent.n = r->source.n = 0;
    r->started = 0;
}

bool tk_sim_order_empty(const tk_sim_past *r) {
    return !r->valid && !r->agent.n && !r->source.n && !r->init.n;
}

// Rows of clocks that are equal are one: a row says in front of it how many have it, and is copied
// before one of several writes to it.
enum { FRONT = 4 };

static uint32_t *new_row(struct tk_sim_shadow *s) {
    uint32_t *row = s->spare.n ? s->spare.at[--s->spare.n]
                               : TK_NEW_ARRAY(s->arena, uint32_t, s->threads + FRONT) + FRONT;
    row[-1] = 1;
    return row;
}

static void leave_row(struct tk_sim_shadow *s, uint32_t *row) {
    if (row && --row[-1] == 0) {
        tk_vec_push(s->arena, &s->spare, row);
    }
}

// To be written to; kept: with what it says.
static void own(struct tk_sim_shadow *s, uint32_t **row, bool kept) {
    uint32_t *old = *row;
    const size_t bytes = s->threads * sizeof *old;
    if (!old || old[-1] > 1) {
        *row = new_row(s);
        if (kept) {
            memcpy(*row, old, bytes);
        }
        leave_row(s, old);
    }
    if (!kept) {
        memset(*row, 0, bytes);
    }
}

static void share(struct tk_sim_shadow *s, uint32_t **row, uint32_t *with) {
    with[-1]++;
    leave_row(s, *row);
    *row = with;
}

static void make_valid(struct tk_sim_shadow *s, tk_sim_past *r) {
    own(s, &r->known, r->valid);
    r->valid = true;
    s->clocked = true;
}

static void make_proxies(struct tk_sim_shadow *s, tk_sim_past *r) {
    own(s, &r->proxied, r->proxies);
    r->proxies = true;
    s->clocked = true;
}

static uint32_t *part_of(struct tk_sim_shadow *s, tk_sim_past *r, uint32_t block) {
    if (!r->within) {
        r->within = TK_NEW_ARRAY(s->arena, uint32_t *, s->nblock);
    }
    if (!r->within[block]) {
        r->within[block] = TK_NEW_ARRAY(s->arena, uint32_t, s->threads);
    } else if (!(r->parts >> block & 1)) {
        memset(r->within[block], 0, s->threads * sizeof *r->within[block]);
    }
    if (!r->valid) {
        make_valid(s, r);
    }
    r->parts |= 1u << block;
    return r->within[block];
}

static void most_of(uint32_t *to, const uint32_t *from, uint32_t n) {
    for (uint32_t t = 0; t < n; t++) {
        to[t] = to[t] < from[t] ? from[t] : to[t];
    }
}

static uint32_t *clock_at(struct tk_sim_shadow *s, tk_sim_clocks *c, uint32_t k) {
    while (c->n <= k) {
        tk_vec_push(s->arena, c, 0);
    }
    s->clocked = true;
    return &c->at[k];
}

static void join_inits(struct tk_sim_shadow *s, tk_sim_clocks *to, const tk_sim_clocks *from) {
    for (uint32_t k = from->n; k-- > 0;) {
        uint32_t *init = clock_at(s, to, k);
        *init = *init < from->at[k] ? from->at[k] : *init;
    }
}

// The clocks of a pair of a warp and a block, of which there are 32.
static uint32_t *clocks_of(struct tk_sim_shadow *s, tk_sim_clocks *c, uint32_t reach) {
    while (c->n < (reach + 1) * TK_SIM_LANES) {
        tk_vec_push(s->arena, c, 0);
    }
    return &c->at[(size_t)reach * TK_SIM_LANES];
}

static void join_clocks(struct tk_sim_shadow *s, tk_sim_clocks *to, const tk_sim_clocks *from) {
    for (uint32_t k = 0; k < from->n / TK_SIM_LANES; k++) {
        most_of(clocks_of(s, to, k), &from->at[(size_t)k * TK_SIM_LANES], TK_SIM_LANES);
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

// All but the clocks of threads.
static void join_others(struct tk_sim_shadow *s, tk_sim_past *to, const tk_sim_past *from) {
    TK_SIM_EACH(b, from->parts) { most_of(part_of(s, to, b), from->within[b], s->threads); }
    join_clocks(s, &to->beyond, &from->beyond);
    join_inits(s, &to->init, &from->init);
    to->all_proxied |= from->all_proxied;
    to->started |= from->started;
    join_agents(s, &to->agent, &from->agent);
    tk_sim_sources_join(s->arena, &to->source, &from->source);
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
    join_others(s, to, from);
}

// The same where `from` has all that `to` has: clocks of threads are then of both.
static void take_over(struct tk_sim_shadow *s, tk_sim_past *to, const tk_sim_past *from) {
    if (from->valid) {
        share(s, &to->known, from->known);
        to->valid = s->clocked = true;
    }
    if (from->proxies) {
        share(s, &to->proxied, from->proxied);
        to->proxies = s->clocked = true;
    }
    join_others(s, to, from);
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
        take_over(s, r, &s->warp[thread / TK_SIM_LANES]);
        if (!r->valid) {
            make_valid(s, r);
        }
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

// The thread's fences of this epoch, added to a row.
static void gather_fences(struct tk_sim_shadow *s, uint32_t thread, tk_sim_past *to) {
    uint32_t own = s->proxied[thread], far = s->proxied_far[thread];
    uint32_t warp = thread / TK_SIM_LANES;
    if (own) {
        make_proxies(s, to);
        to->all_proxied |= far ? ~0u : 1u << tk_sim_order_block(s, warp);
        to->proxied[thread] = to->proxied[thread] < own ? own : to->proxied[thread];
    }
    for (uint32_t b = 0; far && b < s->nblock; b++) {
        uint32_t reach = s->reach[warp * s->nblock + b];
        if (reach) {
            uint32_t *clock = &clocks_of(s, &to->beyond, reach - 1)[thread % TK_SIM_LANES];
            *clock = *clock < far ? far : *clock;
        }
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
        gather_fences(s, t, to);
        to->started |= s->started[t];
    }
}

// Of a past, what lies behind fences in the memory of a block.
static void join_proxies_of(struct tk_sim_shadow *s, tk_sim_past *to, const tk_sim_past *from,
                            uint32_t block) {
    uint32_t n = s->threads / s->nblock;
    to->all_proxied |= from->all_proxied & 1u << block;
    if (from->proxies) {
        make_proxies(s, to);
        most_of(to->proxied + block * n, from->proxied + block * n, n);
    }
    for (uint32_t k = 0; k < from->beyond.n / TK_SIM_LANES; k++) {
        if (s->reaches.at[k].block == block) {
            most_of(clocks_of(s, &to->beyond, k), &from->beyond.at[(size_t)k * TK_SIM_LANES],
                    TK_SIM_LANES);
        }
    }
}

void tk_sim_order_gather_own(const tk_sim_warp *w, uint32_t lane, tk_sim_past *to) {
    const tk_sim_cluster *c = w->cluster;
    struct tk_sim_shadow *s = c->shadow;
    tk_sim_past *from = &s->all;
    uint32_t block = w->block->rank;
    tk_sim_order_clear(from);
    tk_sim_order_gather(s, w->number, 1u << lane, from);
    most_of(part_of(s, to, block), from->known, s->threads);
    const uint32_t *more = tk_sim_order_within(from, block);
    if (more) {
        most_of(to->within[block], more, s->threads);
    }
    join_proxies_of(s, to, from, block);
    for (uint32_t k = 0; k < from->agent.n; k++) {
        if (s->home.at[k] != block) {
            from->agent.at[k] = (tk_sim_agent){0, 0};
        }
    }
    join_agents(s, &to->agent, &from->agent);
    for (uint32_t k = 0; k < from->init.n; k++) {
        if (tk_sim_block_at(c, c->mbarrier.at[k].offset)->rank == block) {
            tk_sim_order_init(s, to, k, from->init.at[k]);
        }
    }
    to->started |= from->started;
}

tk_sim_past *tk_sim_order_point(struct tk_sim_shadow *s, uint32_t point) {
    while (s->point.n <= point) {
        tk_vec_push(s->arena, &s->point, (tk_sim_past){0});
    }
    return &s->point.at[point];
}

// ---- Meetings of all

// By the threads' own fences in the epoch that ends, for the memory of the blocks that have some.
static void settle_fences(struct tk_sim_shadow *s) {
    uint32_t n = s->threads / s->nblock;
    for (uint32_t b = 0; b < s->nblock; b++) {
        if (s->proxies >> b & 1) {
            s->last_proxied[b] = s->epoch;
            memcpy(s->proxied_there + b * n, s->proxied + b * n, n * sizeof *s->proxied);
        }
    }
    for (uint32_t k = 0; k < s->reaches.n; k++) {
        tk_sim_reach r = s->reaches.at[k];
        if (s->proxies >> r.block & 1) {
            memcpy(clocks_of(s, &s->beyond_there, k), &s->proxied_far[r.warp * TK_SIM_LANES],
                   TK_SIM_LANES * sizeof *s->proxied_far);
        }
    }
}

// What any thread knows at the end of the epoch, all know from now on.
static void settle(struct tk_sim_shadow *s) {
    if (s->proxies) {
        settle_fences(s);
    }
    for (uint32_t t = 0; t < s->threads + s->nwarp; t++) {
        const tk_sim_past *r = t < s->threads ? &s->lane[t] : &s->warp[t - s->threads];
        if (t < s->threads && !r->valid) {
            continue;
        }
        join_agents(s, &s->base, &r->agent);
        tk_sim_sources_join(s->arena, &s->base_source, &r->source);
        if (s->proxies && r->proxies) {
            most_of(s->proxied_there, r->proxied, s->threads);
        }
        join_clocks(s, &s->beyond_there, &r->beyond);
    }
}

static void forget_rows(struct tk_sim_shadow *s) {
    s->clocked = false;
    s->proxies = 0;
    for (uint32_t t = 0; t < s->threads; t++) {
        s->clock[t] = 1;
        s->proxied[t] = s->proxied_far[t] = 0;
        tk_sim_order_clear(&s->lane[t]);
    }
    for (uint32_t k = 0; k < s->nwarp; k++) {
        tk_sim_order_clear(&s->warp[k]);
    }
    for (uint32_t k = 0; k < s->point.n; k++) {
        tk_sim_order_forget(&s->point.at[k]);
    }
    for (uint32_t t = 0; s->seen && t < s->threads; t++) {
        tk_sim_order_forget(&s->seen[t]);
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
    memset(s->last_proxied, 0, s->nblock * sizeof *s->last_proxied);
    memset(s->reach, 0, (size_t)s->nwarp * s->nblock * sizeof *s->reach);
    s->reaches.n = s->beyond_there.n = s->home.n = 0;
    s->base.n = s->base_source.n = s->bulk.n = s->copiers = 0;
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
    if (!lanes || (tk_sim_order_empty(p) && !p->started)) {
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
                take_over(s, r, first);
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

void tk_sim_order_reach(struct tk_sim_shadow *s, uint32_t warp, uint32_t block) {
    uint32_t *reach = &s->reach[warp * s->nblock + block];
    if (!*reach) {
        tk_vec_push(s->arena, &s->reaches, ((tk_sim_reach){warp, block}));
        *reach = s->reaches.n;
    }
}

static uint32_t beyond(const struct tk_sim_shadow *s, const tk_sim_clocks *c, uint32_t thread,
                       uint32_t block) {
    uint32_t reach = s->reach[thread / TK_SIM_LANES * s->nblock + block];
    return reach && reach * TK_SIM_LANES <= c->n
               ? c->at[(size_t)(reach - 1) * TK_SIM_LANES + thread % TK_SIM_LANES]
               : 0;
}

static bool is_of(const struct tk_sim_shadow *s, uint32_t thread, uint32_t block) {
    return tk_sim_order_block(s, thread / TK_SIM_LANES) == block;
}

uint32_t tk_sim_order_fenced(const struct tk_sim_shadow *s, const tk_sim_past *r, uint32_t thread,
                             uint32_t block) {
    return !is_of(s, thread, block) ? beyond(s, &r->beyond, thread, block)
           : r->proxies             ? r->proxied[thread]
                                    : 0;
}

uint32_t tk_sim_order_own_fence(const struct tk_sim_shadow *s, uint32_t thread, uint32_t block) {
    return (is_of(s, thread, block) ? s->proxied : s->proxied_far)[thread];
}

uint32_t tk_sim_order_fenced_there(const struct tk_sim_shadow *s, uint32_t thread, uint32_t block) {
    return is_of(s, thread, block) ? s->proxied_there[thread]
                                   : beyond(s, &s->beyond_there, thread, block);
}

// What the row knows lies behind a fence, in the memory of these blocks.
static void fence_row(struct tk_sim_shadow *s, tk_sim_past *r, uint32_t blocks) {
    uint32_t n = s->threads / s->nblock;
    r->all_proxied |= blocks;
    if (r->valid) {
        make_proxies(s, r);
    }
    for (uint32_t b = 0; r->valid && b < s->nblock; b++) {
        if (blocks >> b & 1) {
            const uint32_t *more = tk_sim_order_within(r, b);
            most_of(r->proxied + b * n, r->known + b * n, n);
            most_of(r->proxied + b * n, more ? more + b * n : NULL, more ? n : 0);
        }
    }
    for (uint32_t k = 0; r->valid && k < s->reaches.n; k++) {
        tk_sim_reach to = s->reaches.at[k];
        if (blocks >> to.block & 1) {
            const uint32_t *more = tk_sim_order_within(r, to.block);
            size_t first = (size_t)to.warp * TK_SIM_LANES;
            uint32_t *clocks = clocks_of(s, &r->beyond, k);
            most_of(clocks, r->known + first, TK_SIM_LANES);
            most_of(clocks, more ? more + first : NULL, more ? TK_SIM_LANES : 0);
        }
    }
    join_agents(s, &r->agent, &s->base);
    for (uint32_t k = 0; k < r->agent.n && k < s->home.n; k++) {
        if (blocks >> s->home.at[k] & 1) {
            r->agent.at[k].proxied = r->agent.at[k].known;
        }
    }
}

void tk_sim_shadow_proxy_fence(const tk_sim_warp *w, uint32_t lanes, bool own_memory) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number, blocks = own_memory ? 1u << w->block->rank : ~0u;
    if (lanes == ~0u && !lanes_apart(s, warp)) {
        fence_row(s, &s->warp[warp], blocks);
    } else {
        TK_SIM_EACH(l, lanes) {
            fence_row(s, tk_sim_order_own_row(s, warp * TK_SIM_LANES + l), blocks);
        }
    }
    s->proxies |= blocks;
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = warp * TK_SIM_LANES + l;
        s->proxied[thread] = s->clock[thread];
        s->proxied_far[thread] = own_memory ? s->proxied_far[thread] : s->clock[thread];
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

bool tk_sim_shadow_after(const tk_sim_warp *w, uint32_t lane, tk_sim_moment m, uint32_t block) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    const tk_sim_past *r = tk_sim_order_row(s, thread);
    const uint32_t *more = tk_sim_order_within(r, block);
    bool known = m.epoch < s->epoch || m.thread == thread ||
                 (r->valid && r->known[m.thread] >= m.clock) || (more && more[m.thread] >= m.clock);
    return m.epoch && known;
}

tk_sim_moment tk_sim_shadow_warp_now(const tk_sim_warp *w) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t first = tk_sim_member(w, 0);
    tk_sim_shadow_together(w);
    return (tk_sim_moment){s->epoch, first, s->clock[first]};
}

bool tk_sim_shadow_warp_after(const tk_sim_warp *w, tk_sim_moment m) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    bool known = m.epoch && m.epoch < s->epoch;
    for (uint32_t l = 0; m.epoch && l < TK_SIM_LANES && !known; l++) {
        const tk_sim_past *r = tk_sim_order_row(s, tk_sim_member(w, l));
        for (uint32_t k = 0; r->valid && k < TK_SIM_LANES; k++) {
            known = known || r->known[m.thread + k] >= m.clock;
        }
    }
    return known;
}

void tk_sim_order_init(struct tk_sim_shadow *s, tk_sim_past *to, uint32_t mbarrier, uint32_t init) {
    uint32_t *known = clock_at(s, &to->init, mbarrier);
    *known = *known < init ? init : *known;
}

bool tk_sim_shadow_knows_init(const tk_sim_warp *w, uint32_t lane, uint32_t mbarrier,
                              uint32_t init) {
    const tk_sim_past *r = tk_sim_order_row(w->cluster->shadow, tk_sim_member(w, lane));
    return mbarrier < r->init.n && r->init.at[mbarrier] >= init;
}

// ---- Copies that tell an mbarrier

// An agent writes next to its mbarrier, or in the memory of its thread's block.
static void set_home(struct tk_sim_shadow *s, uint32_t agent, uint32_t block) {
    while (s->home.n <= agent) {
        tk_vec_push(s->arena, &s->home, 0);
    }
    s->home.at[agent] = block;
}

tk_sim_done tk_sim_shadow_bulk(const tk_sim_cluster *c, uint32_t mbarrier) {
    struct tk_sim_shadow *s = c->shadow;
    while (s->bulk.n <= mbarrier) {
        tk_vec_push(s->arena, &s->bulk, 1);
    }
    set_home(s, 2 * mbarrier, tk_sim_block_at(c, c->mbarrier.at[mbarrier].offset)->rank);
    return (tk_sim_done){2 * mbarrier, s->bulk.at[mbarrier]};
}

tk_sim_done tk_sim_shadow_copies(const tk_sim_warp *w, uint32_t lane, uint64_t serial) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t *copier = &s->copier[tk_sim_member(w, lane)];
    *copier = *copier ? *copier : 2 * s->copiers++ + 1;
    set_home(s, *copier, w->block->rank);
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
