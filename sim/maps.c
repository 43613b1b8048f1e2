// SPDX-License-Identifier: Apache-2.0
// Tensor maps in global memory that a kernel changes: in which order threads change them, and
// copies read them.
//
// Sources. A thread that changes a map, a thread that waits for stores that have read one, and an
// mbarrier that says that loads have, each is a source of that map, with a clock that counts how
// often. What a thread knows of sources is a part of its past (order.h), as what it knows of
// copies' agents: how far it knows the clock, and how far that lies behind a fence.proxy.tensormap
// with .release. Unlike all else there it also goes from cluster to cluster, by strong accesses of
// global memory.
//
// Rules. A change must come after all reads and changes so far; but plain stores need not come
// after each other, they write a part each. Who uses a map must come after its changes and their
// release, and after an acquire of it that its own thread or another one of its block has executed
// since. A copy reads its map until it is done, or until its thread has waited for its reads.
#include "sim/order.h"
#include "sim/tensor.h"

typedef struct source {
    uint64_t owner;
    uint32_t number, clock;
    bool live;  // else there is a later change that came after it
    bool whole; // of a change: of all the map
    bool async; // of a change: by a copy; its thread knows of it once it has waited
    const tk_sim_inst *by;
} source;

typedef TK_VEC(source) sources;

typedef struct map {
    uint64_t address;
    uint32_t version; // counts changes
    sources changes, reads;
} map;

// By threads of a warp.
typedef struct acquired {
    uint64_t address, block;
    uint32_t version, warp, lanes;
    tk_sim_moment at[TK_SIM_LANES];
} acquired;

// What lies at a word of global memory.
typedef struct left {
    uintptr_t at; // the address / 4
    tk_sim_sources known;
} left;

enum { BUCKETS = 256 };

struct tk_sim_maps {
    TK_VEC(map) map;
    TK_VEC(acquired) acquired;
    uint32_t sources;
    TK_VEC(left) left[BUCKETS];
    tk_sim_sources over; // see handed_over
};

// ---- What is known of sources

void tk_sim_sources_join(tk_arena *arena, tk_sim_sources *to, const tk_sim_sources *from) {
    uint32_t k = 0;
    for (uint32_t j = 0; j < from->n; j++) {
        const tk_sim_source_known x = from->at[j];
        while (k < to->n && to->at[k].number < x.number) {
            k++;
        }
        if (k == to->n || to->at[k].number != x.number) {
            tk_vec_push(arena, to, x);
            memmove(&to->at[k + 1], &to->at[k], (to->n - 1 - k) * sizeof *to->at);
            to->at[k] = x;
            continue;
        }
        tk_sim_source_known *t = &to->at[k];
        t->known = t->known < x.known ? x.known : t->known;
        t->released = t->released < x.released ? x.released : t->released;
    }
}

static tk_sim_source_known find_known(const tk_sim_sources *s, uint32_t number) {
    uint32_t first = 0, end = s->n;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (s->at[middle].number < number) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < s->n && s->at[first].number == number ? s->at[first]
                                                         : (tk_sim_source_known){number, 0, 0};
}

// What one of the lanes knows, at the most.
static tk_sim_source_known look(const tk_sim_warp *w, uint32_t lanes, uint32_t number) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    tk_sim_source_known best = find_known(&s->base_source, number);
    TK_SIM_EACH(l, lanes) {
        const tk_sim_past *row = tk_sim_order_row(s, tk_sim_member(w, l));
        tk_sim_source_known x = find_known(&row->source, number);
        best.known = best.known < x.known ? x.known : best.known;
        best.released = best.released < x.released ? x.released : best.released;
    }
    return best;
}

static void know(const tk_sim_warp *w, uint32_t lanes, const source *s, bool released) {
    struct tk_sim_shadow *shadow = w->cluster->shadow;
    tk_sim_source_known x = {s->number, s->clock, released ? s->clock : 0};
    const tk_sim_sources one = {.at = &x, .n = 1};
    shadow->clocked = true;
    TK_SIM_EACH(l, lanes) {
        tk_sim_past *row = tk_sim_order_own_row(shadow, tk_sim_member(w, l));
        tk_sim_sources_join(shadow->arena, &row->source, &one);
    }
}

void tk_sim_maps_release(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    if (!w->grid->maps) {
        return;
    }
    TK_SIM_EACH(l, lanes) {
        tk_sim_past *row = tk_sim_order_own_row(s, tk_sim_member(w, l));
        tk_sim_sources_join(s->arena, &row->source, &s->base_source);
        for (uint32_t k = 0; k < row->source.n; k++) {
            row->source.at[k].released = row->source.at[k].known;
        }
    }
}

// ---- From cluster to cluster

static left *find_left(struct tk_sim_maps *m, tk_arena *arena, uintptr_t at, bool make) {
    uint32_t bucket = (uint32_t)(at * UINT64_C(0x9E3779B97F4A7C15) >> 32) % BUCKETS;
    for (uint32_t k = 0; k < m->left[bucket].n; k++) {
        if (m->left[bucket].at[k].at == at) {
            return &m->left[bucket].at[k];
        }
    }
    if (!make) {
        return NULL;
    }
    tk_vec_push(arena, &m->left[bucket], ((left){.at = at}));
    return &m->left[bucket].at[m->left[bucket].n - 1];
}

// What the thread hands over by a strong access that writes; until this is called again.
static const tk_sim_sources *handed_over(const tk_sim_warp *w, uint32_t lane, bool releases) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    tk_sim_sources *all = &w->grid->maps->over;
    all->n = 0;
    const tk_sim_sources *own =
        releases ? &tk_sim_order_row(s, thread)->source : tk_sim_flags_fenced_sources(s, thread);
    if (own) {
        tk_sim_sources_join(w->grid->arena, all, own);
        tk_sim_sources_join(w->grid->arena, all, &s->base_source);
    }
    return all;
}

void tk_sim_maps_flag(const tk_sim_warp *w, uint32_t lane, const unsigned char *p, uint32_t bytes,
                      tk_sim_access access, bool acquires, bool releases) {
    struct tk_sim_maps *m = w->grid->maps;
    struct tk_sim_shadow *s = w->cluster->shadow;
    const uintptr_t first = (uintptr_t)p / 4, end = ((uintptr_t)p + bytes + 3) / 4;
    for (uintptr_t at = first; access != TK_SIM_WRITE && at < end; at++) {
        const left *x = find_left(m, w->grid->arena, at, false);
        if (x && x->known.n) {
            s->clocked = true;
            tk_sim_sources_join(s->arena,
                                acquires ? &tk_sim_order_own_row(s, tk_sim_member(w, lane))->source
                                         : tk_sim_flags_seen_sources(s, tk_sim_member(w, lane)),
                                &x->known);
        }
    }
    if (access == TK_SIM_READ) {
        return;
    }
    const tk_sim_sources *over = handed_over(w, lane, releases);
    for (uintptr_t at = first; at < end; at++) {
        left *x = find_left(m, w->grid->arena, at, over->n > 0);
        if (x) {
            x->known.n = access == TK_SIM_WRITE && bytes >= 4 ? 0 : x->known.n;
            tk_sim_sources_join(w->grid->arena, &x->known, over);
        }
    }
}

// ---- Maps and their sources

static map *find_map(const tk_sim_grid *g, uint64_t address) {
    for (uint32_t k = 0; g->maps && k < g->maps->map.n; k++) {
        if (g->maps->map.at[k].address == address) {
            return &g->maps->map.at[k];
        }
    }
    return NULL;
}

static map *make_map(tk_sim_grid *g, uint64_t address) {
    g->maps = g->maps ? g->maps : TK_NEW(g->arena, struct tk_sim_maps);
    map *m = find_map(g, address);
    if (!m) {
        tk_vec_push(g->arena, &g->maps->map, ((map){.address = address}));
        m = &g->maps->map.at[g->maps->map.n - 1];
    }
    return m;
}

static uint64_t owner_of(const tk_sim_warp *w, uint32_t lane) {
    return w->block->number * TK_SIM_MAX_THREADS + tk_sim_thread(w, lane);
}

// Once more; a source is made where there is none.
static source *count(tk_sim_grid *g, sources *all, uint64_t owner, const tk_sim_inst *by) {
    source *s = NULL;
    for (uint32_t k = all->n; k > 0 && !s; k--) { // those of clusters that run are the last ones
        s = all->at[k - 1].owner == owner ? &all->at[k - 1] : NULL;
    }
    if (!s) {
        tk_vec_push(g->arena, all, ((source){.owner = owner, .number = g->maps->sources++}));
        s = &all->at[all->n - 1];
    }
    s->clock++;
    s->live = true;
    s->by = by;
    return s;
}

static void end_all(sources *all) {
    for (uint32_t k = 0; k < all->n; k++) {
        all->at[k].live = false;
    }
}

// ---- Changes

static bool race(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const tk_sim_inst *other,
                 const char *text, const char *note) {
    tk_sim_fail(w, i, lane, "race", text, other->name);
    tk_sim_fail_note(w->grid, other, "%s", note);
    return false;
}

// Whether the change comes after what was done with the map.
static bool comes_last(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, const map *m,
                       bool whole) {
    const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
    const tk_sim_inst *user = tk_sim_bulk_map_user(w->grid, m->address);
    if (user) {
        return race(w, i, lane, user,
                    "changes a tensor map that '%s' uses; nobody has waited for that",
                    "it is issued here");
    }
    for (uint32_t k = 0; k < m->reads.n; k++) {
        const source *s = &m->reads.at[k];
        if (s->live && look(w, lanes, s->number).known < s->clock) {
            return race(w, i, lane, s->by,
                        "changes a tensor map that '%s' used; nothing orders this behind the wait "
                        "for that",
                        "it is issued here");
        }
    }
    for (uint32_t k = 0; k < m->changes.n; k++) {
        const source *s = &m->changes.at[k];
        bool counts = s->live && (whole || s->whole) && s->owner != owner_of(w, lane);
        if (counts && look(w, lanes, s->number).known < s->clock) {
            return race(w, i, lane, s->by,
                        "changes a tensor map that another thread changes by '%s', and nothing "
                        "orders the two",
                        "it is changed here");
        }
    }
    return true;
}

static bool change(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint64_t address,
                   source what, bool released) {
    map *m = make_map(w->grid, address);
    if (!comes_last(w, i, lanes, m, what.whole)) {
        return false;
    }
    if (what.whole) {
        end_all(&m->changes);
        end_all(&m->reads);
    }
    source *s = count(w->grid, &m->changes, owner_of(w, (uint32_t)__builtin_ctz(lanes)), i);
    s->whole = what.whole;
    s->async = what.async;
    m->version++;
    if (!what.async) {
        know(w, lanes, s, released);
    }
    return true;
}

bool tk_sim_maps_changed(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint64_t address,
                         bool released) {
    return change(w, i, lanes, address, (source){.whole = true}, released);
}

// Whether a map is at the place, or will be when these bytes are written.
static bool is_map(uint64_t place, uint64_t address, uint32_t bytes, const void *value) {
    unsigned char begin[TK_SIM_MAP_BEGIN];
    memcpy(begin, (const void *)(uintptr_t)place, sizeof begin);
    for (uint32_t k = 0; value && k < sizeof begin; k++) {
        uint64_t at = place + k - address; // too great where it lies before
        begin[k] = at < bytes ? ((const unsigned char *)value)[at] : begin[k];
    }
    return tk_sim_tensor_begins(begin);
}

bool tk_sim_maps_stored(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address,
                        uint32_t bytes, const void *value) {
    const tk_sim_grid *g = w->grid;
    if (!g->program->tensors || g->nregion == 0 || strncmp(i->name, "tensormap.", 10) == 0) {
        return true; // what changes a map as a whole says so itself
    }
    const tk_sim_region *r = &g->region[g->last_region]; // where this store has been checked
    const uint64_t from = address > TK_SIM_MAP_BYTES ? address - TK_SIM_MAP_BYTES + 1 : 0;
    const bool async = i->klass == TK_SIM_CLASS_ASYNC;
    for (uint64_t place = (from + TK_SIM_MAP_ALIGN - 1) / TK_SIM_MAP_ALIGN * TK_SIM_MAP_ALIGN;
         place < address + bytes; place += TK_SIM_MAP_ALIGN) {
        bool inside = place >= r->begin && place - r->begin <= r->size &&
                      r->size - (place - r->begin) >= TK_SIM_MAP_BYTES;
        if (inside && is_map(place, address, bytes, value) &&
            !change(w, i, 1u << lane, place, (source){.async = async}, false)) {
            return false;
        }
    }
    return true;
}

// ---- Reads

void tk_sim_maps_read(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address) {
    know(w, 1u << lane, count(w->grid, &make_map(w->grid, address)->reads, owner_of(w, lane), i),
         false);
}

void tk_sim_maps_loaded(const tk_sim_cluster *c, const tk_sim_inst *i, uint64_t address,
                        uint32_t mbarrier, uint32_t point) {
    struct tk_sim_shadow *s = c->shadow;
    const uint64_t owner = UINT64_C(1) << 63 | c->block[0].number << 24 | mbarrier;
    const source *x = count(c->grid, &make_map(c->grid, address)->reads, owner, i);
    tk_sim_source_known one = {x->number, x->clock, 0};
    s->clocked = true;
    tk_sim_sources_join(s->arena, &tk_sim_order_point(s, point)->source,
                        &(tk_sim_sources){.at = &one, .n = 1});
}

void tk_sim_maps_waited(const tk_sim_warp *w, uint32_t lane) {
    const struct tk_sim_maps *m = w->grid->maps;
    for (uint32_t k = 0; m && k < m->map.n; k++) {
        for (uint32_t j = 0; j < m->map.at[k].changes.n; j++) {
            const source *s = &m->map.at[k].changes.at[j];
            if (s->live && s->async && s->owner == owner_of(w, lane)) {
                know(w, 1u << lane, s, false);
            }
        }
    }
}

// ---- Acquires and uses

static acquired *find_acquired(const tk_sim_warp *w, uint64_t address) {
    const struct tk_sim_maps *m = w->grid->maps;
    for (uint32_t k = 0; k < m->acquired.n; k++) {
        acquired *a = &m->acquired.at[k];
        if (a->address == address && a->block == w->block->number && a->warp == w->index) {
            return a;
        }
    }
    return NULL;
}

// Whether the lane knows of all changes, or of all and that they are released. *first: one that it
// does not know.
static bool knows_changes(const tk_sim_warp *w, uint32_t lane, const map *m, bool released,
                          const source **first) {
    for (uint32_t k = 0; k < m->changes.n; k++) {
        const source *s = &m->changes.at[k];
        tk_sim_source_known x = look(w, 1u << lane, s->number);
        if (s->live && (released ? x.released : x.known) < s->clock) {
            *first = s;
            return false;
        }
    }
    return true;
}

void tk_sim_maps_acquired(const tk_sim_warp *w, uint32_t lane, uint64_t address) {
    const map *m = find_map(w->grid, address);
    const source *first = NULL;
    if (!m || !knows_changes(w, lane, m, true, &first)) {
        return;
    }
    acquired *a = find_acquired(w, address);
    if (!a) {
        acquired fresh = {.address = address, .block = w->block->number, .warp = w->index};
        tk_vec_push(w->grid->arena, &w->grid->maps->acquired, fresh);
        a = &w->grid->maps->acquired.at[w->grid->maps->acquired.n - 1];
    }
    a->lanes = a->version == m->version ? a->lanes : 0;
    a->version = m->version;
    if (!(a->lanes >> lane & 1)) { // else the first time is as good
        a->lanes |= 1u << lane;
        a->at[lane] = tk_sim_shadow_now(w, lane);
    }
}

// Whether the lane comes after an acquire of this version by a thread of its block. *other: a warp
// of the block has one.
static bool comes_after(const tk_sim_warp *w, uint32_t lane, const map *c, bool *other) {
    const struct tk_sim_maps *m = w->grid->maps;
    bool after = false;
    for (uint32_t k = 0; k < m->acquired.n && !after; k++) {
        const acquired *a = &m->acquired.at[k];
        if (a->address == c->address && a->block == w->block->number && a->version == c->version) {
            *other = true;
            TK_SIM_EACH(l, a->lanes) {
                after = after || tk_sim_shadow_after(w, lane, a->at[l], UINT32_MAX);
            }
        }
    }
    return after;
}

bool tk_sim_maps_used(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address) {
    const map *m = find_map(w->grid, address);
    const source *first = NULL;
    bool other = false;
    if (!m || m->version == 0) {
        return true;
    }
    if (!knows_changes(w, lane, m, false, &first)) {
        return race(w, i, lane, first->by,
                    "uses a tensor map that is changed by '%s', and nothing orders the two",
                    "it is changed here");
    }
    if (comes_after(w, lane, m, &other)) {
        return true;
    }
    bool released = knows_changes(w, lane, m, true, &first);
    tk_sim_fail(w, i, lane, "proxy",
                other      ? "uses a tensor map that was changed; another thread executed "
                             "fence.proxy.tensormap with .acquire, and nothing orders that before this"
                : released ? "uses a tensor map that was changed; there is no "
                             "fence.proxy.tensormap with .acquire between"
                           : "uses a tensor map that was changed; there is no "
                             "fence.proxy.tensormap with .release between, by who has changed it "
                             "or comes after that");
    for (uint32_t k = 0; !first && k < m->changes.n; k++) {
        first = m->changes.at[k].live ? &m->changes.at[k] : NULL;
    }
    tk_sim_fail_note(w->grid, first->by, "it was changed here");
    return false;
}
