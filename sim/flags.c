// SPDX-License-Identifier: Apache-2.0
// Strong accesses and fences: what one thread hands over to another by bytes of memory, shared or
// global, and pasts that are kept for something that happens later.
//
// A release leaves the thread's past at the bytes that it writes, of whatever width; an acquire
// takes what lies at the bytes that it reads. A store takes away what lies at its bytes and nothing
// else; an atomic access, which goes on with what it found, adds to it. What lies at a byte is a
// flag; bytes may share one.
#include "sim/order.h"

enum { MOST_BYTES = 64 }; // of an access

static uint32_t take(struct tk_sim_shadow *s) {
    if (s->free.n == 0) {
        tk_vec_push(s->arena, &s->flags, (tk_sim_flag){0});
        return s->flags.n;
    }
    return s->free.at[--s->free.n];
}

static void give(struct tk_sim_shadow *s, uint32_t flag) {
    tk_sim_order_clear(&s->flags.at[flag - 1].past);
    tk_vec_push(s->arena, &s->free, flag);
}

static tk_sim_past *past_of(struct tk_sim_shadow *s, uint32_t flag) {
    return &s->flags.at[flag - 1].past;
}

// One use of a flag becomes one of another, or of none.
static void replace(struct tk_sim_shadow *s, uint32_t *use, uint32_t flag) {
    uint32_t old = *use;
    *use = flag;
    if (flag) {
        s->flags.at[flag - 1].uses++;
    }
    if (old && --s->flags.at[old - 1].uses == 0) {
        give(s, old);
    }
}

// ---- Words that have flags

static tk_sim_flag_word *place_of(tk_sim_flag_word *words, uint32_t room, uintptr_t at) {
    uint64_t hash = (uint64_t)at * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t k = (uint32_t)(hash >> 32) & (room - 1);
    while (words[k].at && words[k].at != at) {
        k = (k + 1) & (room - 1);
    }
    return &words[k];
}

static void make_room(struct tk_sim_shadow *s, uint32_t more) {
    if (2 * (s->flag_words + more) <= s->flag_room) {
        return;
    }
    uint32_t room = s->flag_room ? 2 * s->flag_room : 256;
    tk_sim_flag_word *words = TK_NEW_ARRAY(s->arena, tk_sim_flag_word, room);
    for (uint32_t k = 0; k < s->flag_room; k++) {
        if (s->flag_word[k].at) {
            *place_of(words, room, s->flag_word[k].at) = s->flag_word[k];
        }
    }
    s->flag_word = words;
    s->flag_room = room;
}

// The uses of the bytes; NULL where a word has none, unless they are made.
static bool uses_of(struct tk_sim_shadow *s, const unsigned char *p, uint32_t bytes, bool make,
                    uint32_t **use) {
    bool any = false;
    if (make) {
        make_room(s, MOST_BYTES / 4 + 1);
    }
    for (uint32_t k = 0; k < bytes && k < MOST_BYTES; k++) {
        uintptr_t at = (uintptr_t)(p + k);
        tk_sim_flag_word *w = s->flag_room ? place_of(s->flag_word, s->flag_room, at / 4) : NULL;
        if (w && !w->at && make) {
            w->at = at / 4;
            s->flag_words++;
        }
        use[k] = w && w->at ? &w->flag[at % 4] : NULL;
        any = any || (use[k] && *use[k]);
    }
    return any;
}

static void forget_words(struct tk_sim_shadow *s) {
    for (uint32_t k = 0; s->flag_words && k < s->flag_room; k++) {
        for (unsigned byte = 0; byte < 4; byte++) {
            replace(s, &s->flag_word[k].flag[byte], 0);
        }
        s->flag_word[k].at = 0;
    }
    s->flag_words = 0;
}

void tk_sim_flags_forget(struct tk_sim_shadow *s) {
    forget_words(s);
    for (uint32_t t = 0; s->fenced && t < s->threads; t++) {
        replace(s, &s->fenced[t], 0);
    }
    for (uint32_t k = 0; k < s->flags.n; k++) { // those that are kept
        tk_sim_order_forget(&s->flags.at[k].past);
    }
}

void tk_sim_flags_begin(struct tk_sim_shadow *s) {
    s->free.n = 0;
    for (uint32_t k = 0; k < s->flags.n; k++) {
        s->flags.at[k].uses = 0;
        give(s, k + 1);
    }
}

// ---- Fences

static void make_fences(struct tk_sim_shadow *s) {
    if (!s->seen) {
        s->seen = TK_NEW_ARRAY(s->arena, tk_sim_past, s->threads);
        s->fenced = TK_NEW_ARRAY(s->arena, uint32_t, s->threads);
    }
}

void tk_sim_flags_seen(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes,
                       const tk_sim_past *past) {
    make_fences(s);
    TK_SIM_EACH(l, lanes) { tk_sim_order_join(s, &s->seen[warp * TK_SIM_LANES + l], past); }
}

void tk_sim_flags_fenced(struct tk_sim_shadow *s, uint32_t thread, tk_sim_past *to) {
    if (s->fenced && s->fenced[thread]) {
        tk_sim_order_join(s, to, past_of(s, s->fenced[thread]));
    }
}

const tk_sim_sources *tk_sim_flags_fenced_sources(const struct tk_sim_shadow *s, uint32_t thread) {
    return s->fenced && s->fenced[thread] ? &s->flags.at[s->fenced[thread] - 1].past.source : NULL;
}

tk_sim_sources *tk_sim_flags_seen_sources(struct tk_sim_shadow *s, uint32_t thread) {
    make_fences(s);
    return &s->seen[thread].source;
}

void tk_sim_shadow_fence_acquire(const tk_sim_warp *w, uint32_t lanes, bool shared) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    make_fences(s);
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = tk_sim_member(w, l);
        tk_sim_past *seen = &s->seen[thread];
        tk_sim_sources maps = seen->source; // they lie in global memory
        seen->source.n = shared ? 0 : maps.n;
        if (!tk_sim_order_empty(seen)) {
            tk_sim_order_join(s, tk_sim_order_own_row(s, thread), seen);
            tk_sim_order_clear(seen);
        }
        seen->source.n = shared ? maps.n : 0;
    }
}

void tk_sim_shadow_fence_release(const tk_sim_warp *w, uint32_t lanes, bool own_memory) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    make_fences(s);
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = tk_sim_member(w, l), flag = take(s);
        if (own_memory) {
            tk_sim_flags_fenced(s, thread, past_of(s, flag)); // more may lie behind another one
            tk_sim_order_gather_own(w, l, past_of(s, flag));
        } else {
            tk_sim_order_gather(s, w->number, 1u << l, past_of(s, flag));
        }
        replace(s, &s->fenced[thread], flag);
    }
    tk_sim_order_tick(s, w->number, lanes);
}

void tk_sim_shadow_fence_init(const tk_sim_warp *w, uint32_t lane, uint32_t mbarrier,
                              uint32_t init) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    make_fences(s);
    uint32_t flag = take(s);
    tk_sim_flags_fenced(s, thread, past_of(s, flag)); // what the fence before released, still is
    tk_sim_order_init(s, past_of(s, flag), mbarrier, init);
    replace(s, &s->fenced[thread], flag);
}

// ---- Strong accesses

// What lies at the bytes is added to a row.
static void join_bytes(struct tk_sim_shadow *s, uint32_t *const *use, uint32_t bytes,
                       tk_sim_past *to) {
    uint32_t last = 0;
    for (uint32_t k = 0; k < bytes; k++) {
        uint32_t flag = use[k] ? *use[k] : 0;
        if (flag && flag != last && past_of(s, flag) != to) {
            tk_sim_order_join(s, to, past_of(s, flag));
        }
        last = flag;
    }
}

// An acquire, or what the next fence makes one.
static void acquire(struct tk_sim_shadow *s, uint32_t thread, uint32_t *const *use, uint32_t bytes,
                    bool acquires) {
    for (uint32_t k = 0; k < bytes; k++) {
        s->started[thread] |= use[k] && *use[k] ? past_of(s, *use[k])->started : 0;
    }
    make_fences(s);
    join_bytes(s, use, bytes, acquires ? tk_sim_order_own_row(s, thread) : &s->seen[thread]);
}

// The flag that these bytes have, and nothing else; 0: there is none.
static uint32_t flag_alone(const struct tk_sim_shadow *s, uint32_t *const *use, uint32_t bytes) {
    uint32_t flag = *use[0];
    for (uint32_t k = 0; k < bytes; k++) {
        if (*use[k] != flag) {
            return 0;
        }
    }
    return flag && s->flags.at[flag - 1].uses == bytes ? flag : 0;
}

// What a store leaves there, where nothing lies any more, or an update adds.
static void leave(const tk_sim_warp *w, uint32_t lane, uint32_t **use, uint32_t bytes, bool adds,
                  bool releases, bool starts) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane), fenced = s->fenced ? s->fenced[thread] : 0;
    uint32_t flag = flag_alone(s, use, bytes), same = fenced;
    for (uint32_t k = 0; adds && k < bytes; k++) {
        same = *use[k] == 0 || *use[k] == fenced ? same : 0;
    }
    if (same && !releases && !(starts && (s->started[thread] & ~past_of(s, fenced)->started))) {
        flag = fenced; // it is all that there will be
    } else {
        flag = flag ? flag : take(s);
        if (adds) {
            join_bytes(s, use, bytes, past_of(s, flag));
        }
        if (releases) {
            tk_sim_order_gather(s, w->number, 1u << lane, past_of(s, flag));
            tk_sim_order_tick(s, w->number, 1u << lane);
        } else {
            tk_sim_flags_fenced(s, thread, past_of(s, flag));
        }
        past_of(s, flag)->started |= starts ? s->started[thread] : 0;
    }
    for (uint32_t k = 0; k < bytes; k++) {
        replace(s, use[k], flag);
    }
}

// A store takes away what lies there, also for threads of other clusters, where it is global
// memory.
static void take_away(const tk_sim_warp *w, const unsigned char *p, uint32_t bytes, bool shared) {
    uint32_t *use[MOST_BYTES];
    for (uint32_t k = 0; k < w->grid->nresident; k++) {
        tk_sim_cluster *c = &w->grid->resident[k];
        bool there = c == w->cluster || (!shared && c->running);
        if (there && c->shadow->flag_words && uses_of(c->shadow, p, bytes, false, use)) {
            for (uint32_t byte = 0; byte < bytes; byte++) {
                if (use[byte]) {
                    replace(c->shadow, use[byte], 0);
                }
            }
        }
    }
}

void tk_sim_shadow_flag(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                        const unsigned char *p, uint32_t bytes, tk_sim_access access) {
    const tk_sim_cluster *c = w->cluster;
    struct tk_sim_shadow *s = c->shadow;
    bool both = tk_sim_has(i, TK_SIM_MOD_ACQ_REL);
    bool releases = access != TK_SIM_READ && (both || tk_sim_has(i, TK_SIM_MOD_RELEASE));
    bool shared = p >= c->shared && p < c->shared + (size_t)c->stride * c->nblock;
    bool starts = shared && s->nblock > 1; // also what is relaxed says that the block runs
    bool leaves = access != TK_SIM_READ &&
                  (releases || starts || (s->fenced && s->fenced[tk_sim_member(w, lane)]));
    bool acquires = both || tk_sim_has(i, TK_SIM_MOD_ACQUIRE);
    uint32_t *use[MOST_BYTES];
    if (w->grid->maps && !shared) {
        tk_sim_maps_flag(w, lane, p, bytes, access, acquires, releases);
    }
    if (access == TK_SIM_WRITE) {
        take_away(w, p, bytes, shared);
    }
    if (!leaves && s->flag_words == 0) {
        return;
    }
    if (uses_of(s, p, bytes, leaves, use) && access != TK_SIM_WRITE) {
        acquire(s, tk_sim_member(w, lane), use, bytes, acquires);
    }
    if (leaves) {
        leave(w, lane, use, bytes, access == TK_SIM_ATOMIC, releases, starts);
    }
}

// ---- Pasts that are kept

uint32_t tk_sim_shadow_keep(const tk_sim_warp *w, uint32_t lane) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t flag = take(s);
    tk_sim_order_gather(s, w->number, 1u << lane, past_of(s, flag));
    tk_sim_order_tick(s, w->number, 1u << lane);
    return flag;
}

void tk_sim_shadow_release_kept(tk_sim_cluster *c, uint32_t kept, uint32_t point) {
    struct tk_sim_shadow *s = c->shadow;
    tk_sim_order_join(s, tk_sim_order_point(s, point), past_of(s, kept));
    give(s, kept);
}
