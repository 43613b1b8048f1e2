// SPDX-License-Identifier: Apache-2.0
// Strong accesses and fences: what one thread hands over to another by bytes of shared memory, and
// pasts that are kept for something that happens later.
//
// A release leaves the thread's past at the bytes that it writes, of whatever width; an acquire
// takes what lies at the bytes that it reads. A store takes away what lies at its bytes and nothing
// else; an atomic access, which goes on with what it found, adds to it.
#include "sim/order.h"

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

void tk_sim_flags_forget(struct tk_sim_shadow *s) {
    for (uint32_t k = 0; k < s->flags.n; k++) {
        tk_sim_past *r = &s->flags.at[k].past;
        r->valid = r->proxies = r->all_proxied = false;
    }
}

void tk_sim_flags_begin(struct tk_sim_shadow *s) {
    if (s->flag_of) {
        memset(s->flag_of, 0, (size_t)s->nword * 4 * sizeof *s->flag_of);
    }
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
        s->fenced = TK_NEW_ARRAY(s->arena, tk_sim_past, s->threads);
    }
}

void tk_sim_flags_seen(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes,
                       const tk_sim_past *past) {
    make_fences(s);
    TK_SIM_EACH(l, lanes) { tk_sim_order_join(s, &s->seen[warp * TK_SIM_LANES + l], past); }
}

void tk_sim_shadow_fence(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    make_fences(s);
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = tk_sim_member(w, l);
        tk_sim_past *seen = &s->seen[thread];
        if (seen->valid || seen->agent.n) {
            tk_sim_order_join(s, tk_sim_order_own_row(s, thread), seen);
            tk_sim_order_clear(seen);
        }
        tk_sim_order_gather(s, w->number, 1u << l, &s->fenced[thread]);
    }
    tk_sim_order_tick(s, w->number, lanes);
}

// ---- Strong accesses

// What lies at the bytes is added to a row.
static void join_bytes(struct tk_sim_shadow *s, uint32_t offset, uint32_t bytes, tk_sim_past *to) {
    uint32_t last = 0;
    for (uint32_t k = offset; k < offset + bytes; k++) {
        uint32_t flag = s->flag_of[k];
        if (flag && flag != last) {
            tk_sim_order_join(s, to, past_of(s, flag));
        }
        last = flag;
    }
}

// Whether something lies at the bytes; *blocks: those that are known to run, then.
static bool found(struct tk_sim_shadow *s, uint32_t offset, uint32_t bytes, uint32_t *blocks) {
    bool any = false;
    for (uint32_t k = offset; k < offset + bytes; k++) {
        any = any || s->flag_of[k];
        *blocks |= s->flag_of[k] ? past_of(s, s->flag_of[k])->started : 0;
    }
    return any;
}

// The flag that these bytes have, and no others; 0: there is none.
static uint32_t flag_alone(const struct tk_sim_shadow *s, uint32_t offset, uint32_t bytes) {
    uint32_t flag = s->flag_of[offset];
    for (uint32_t k = offset; k < offset + bytes; k++) {
        if (s->flag_of[k] != flag) {
            return 0;
        }
    }
    return flag && s->flags.at[flag - 1].uses == bytes ? flag : 0;
}

// The bytes have this flag from now on; 0: none.
static void put_flag(struct tk_sim_shadow *s, uint32_t offset, uint32_t bytes, uint32_t flag) {
    for (uint32_t k = offset; k < offset + bytes; k++) {
        uint32_t old = s->flag_of[k];
        s->flag_of[k] = flag;
        if (flag) {
            s->flags.at[flag - 1].uses++;
        }
        if (old && --s->flags.at[old - 1].uses == 0) {
            give(s, old);
        }
    }
}

// An acquire, or what the next fence makes one.
static void acquire(struct tk_sim_shadow *s, uint32_t thread, uint32_t offset, uint32_t bytes,
                    bool acquires) {
    if (!found(s, offset, bytes, &s->started[thread])) {
        return;
    }
    if (acquires) {
        join_bytes(s, offset, bytes, tk_sim_order_own_row(s, thread));
    } else {
        make_fences(s);
        join_bytes(s, offset, bytes, &s->seen[thread]);
    }
}

static void write_flag(const tk_sim_warp *w, uint32_t lane, uint32_t offset, uint32_t bytes,
                       bool adds, bool releases) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane), flag = flag_alone(s, offset, bytes);
    bool again = flag != 0;
    flag = again ? flag : take(s);
    if (!again && adds) {
        join_bytes(s, offset, bytes, past_of(s, flag));
    } else if (!adds) {
        tk_sim_order_clear(past_of(s, flag));
    }
    tk_sim_past *to = past_of(s, flag);
    if (releases) {
        tk_sim_order_gather(s, w->number, 1u << lane, to);
        tk_sim_order_tick(s, w->number, 1u << lane);
    } else if (s->fenced) {
        tk_sim_order_join(s, to, &s->fenced[thread]);
    }
    to->started |= s->nblock > 1 ? s->started[thread] : 0;
    bool something = to->valid || to->agent.n || to->started;
    if (!again || !something) {
        put_flag(s, offset, bytes, something ? flag : 0);
    }
    if (!again && !something) {
        give(s, flag);
    }
}

void tk_sim_shadow_flag(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                        const unsigned char *p, uint32_t bytes, tk_sim_access access) {
    const tk_sim_cluster *c = w->cluster;
    struct tk_sim_shadow *s = c->shadow;
    if (p < c->shared || p >= c->shared + (size_t)c->stride * c->nblock) {
        return;
    }
    uint32_t offset = (uint32_t)(p - c->shared);
    bool both = tk_sim_has(i, TK_SIM_MOD_ACQ_REL);
    bool releases = access != TK_SIM_READ && (both || tk_sim_has(i, TK_SIM_MOD_RELEASE));
    if (!s->flag_of) {
        if (access == TK_SIM_READ || !(releases || s->fenced || s->nblock > 1)) {
            return;
        }
        s->flag_of = TK_NEW_ARRAY(s->arena, uint32_t, (size_t)s->nword * 4);
    }
    if (access != TK_SIM_WRITE) {
        acquire(s, tk_sim_member(w, lane), offset, bytes,
                both || tk_sim_has(i, TK_SIM_MOD_ACQUIRE));
    }
    if (access != TK_SIM_READ) {
        write_flag(w, lane, offset, bytes, access == TK_SIM_ATOMIC, releases);
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
