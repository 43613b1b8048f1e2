// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies in flight: which bytes of shared memory they write, and when they are done.
//
// A copy may take effect at any moment from its issue to the end of the wait for it. Bytes that it
// writes may be touched by nobody in between, the thread that issued it included: such an access is
// a race, whatever the moment. So only the moment at which the source is read makes a difference:
// at the issue or at the wait, at random; seed 0 and odd ones: at the wait. A copy that nobody
// waits for stays in flight to the end of its cluster.
#include "sim/machine.h"

typedef struct copy {
    const tk_sim_inst *inst;
    const unsigned char *from; // the source, where it is read late; else NULL
    uint32_t offset;           // of the destination in shared memory
    uint32_t group;            // of its thread
    uint64_t serial;           // of the cluster
    uint8_t lane, bytes, given;
    bool announced; // an mbarrier will be told when it is done
    bool done;      // it has taken effect; its thread need not know so
    unsigned char value[16];
} copy;

typedef TK_VEC(copy) copies;

// What copies in flight do with a word.
typedef struct flight {
    const tk_sim_inst *inst; // the last one of them; NULL: none does
    uint32_t n;
} flight;

struct tk_sim_async {
    tk_arena *arena;
    uint32_t nword;
    uint32_t flying;   // words that copies in flight use, each kind, or of mbarriers
    flight *flight[3]; // [tk_sim_flight_kind][nword]
    bool *barrier;     // [nword]: of an mbarrier
    uint8_t *used;     // [nword]: how many of these four there are
    uint64_t serial;   // of the last copy
    copies *of_warp;
    uint32_t *group; // [threads] groups that were committed
    uint32_t nwarp;
};

struct tk_sim_async *tk_sim_async_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp) {
    struct tk_sim_async *a = TK_NEW(arena, struct tk_sim_async);
    a->arena = arena;
    a->nword = (bytes + 3) / 4;
    a->nwarp = nwarp;
    for (unsigned k = 0; k < 3; k++) {
        a->flight[k] = TK_NEW_ARRAY(arena, flight, a->nword + 1);
    }
    a->barrier = TK_NEW_ARRAY(arena, bool, a->nword + 1);
    a->used = TK_NEW_ARRAY(arena, uint8_t, a->nword + 1);
    a->of_warp = TK_NEW_ARRAY(arena, copies, nwarp);
    a->group = TK_NEW_ARRAY(arena, uint32_t, (size_t)nwarp * TK_SIM_LANES);
    return a;
}

void tk_sim_async_begin(struct tk_sim_async *a) {
    for (unsigned k = 0; k < 3; k++) {
        memset(a->flight[k], 0, a->nword * sizeof *a->flight[k]);
    }
    memset(a->barrier, 0, a->nword * sizeof *a->barrier);
    memset(a->used, 0, a->nword * sizeof *a->used);
    memset(a->group, 0, (size_t)a->nwarp * TK_SIM_LANES * sizeof *a->group);
    for (uint32_t k = 0; k < a->nwarp; k++) {
        a->of_warp[k].n = 0;
    }
    a->flying = 0;
    a->serial = 0;
}

static bool collide(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t word,
                    tk_sim_access access, const tk_sim_inst *other, const char *use) {
    const char *does = access == TK_SIM_READ    ? "reads"
                       : access == TK_SIM_WRITE ? "writes"
                                                : "updates";
    tk_sim_fail(w, i, lane, "race", "%s %s, which '%s' %s asynchronously; nobody has waited for it",
                does, tk_sim_shared_text(w->cluster, word * 4), other->name, use);
    tk_sim_fail_note(w->grid, other, "it is issued here");
    return false;
}

bool tk_sim_async_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                         uint32_t bytes, tk_sim_access access) {
    static const char *const uses[] = {"writes", "reads", "updates"};
    struct tk_sim_async *a = w->cluster->async;
    uint32_t first = offset / 4, last = (offset + bytes - 1) / 4;
    bool hurts[] = {true, access != TK_SIM_READ, access != TK_SIM_ATOMIC && !i->strong};
    for (uint32_t k = first; a->flying && k <= last; k++) {
        if (!a->used[k]) {
            continue;
        }
        for (unsigned kind = 0; kind < 3; kind++) {
            if (hurts[kind] && a->flight[kind][k].n) {
                return collide(w, i, lane, k, access, a->flight[kind][k].inst, uses[kind]);
            }
        }
        if (a->barrier[k] && !w->at_barrier) {
            tk_sim_fail(w, i, lane, "mbarrier", "'%s' at %s, where an mbarrier is", i->name,
                        tk_sim_shared_text(w->cluster, k * 4));
            return false;
        }
    }
    return true;
}

// One of what a word may be used for begins, or ends.
static void use(struct tk_sim_async *a, uint32_t word, bool begins, bool ends) {
    a->flying += begins;
    a->flying -= ends;
    a->used[word] = (uint8_t)(a->used[word] + begins - ends);
}

void tk_sim_async_mark(tk_sim_cluster *c, uint32_t offset, uint32_t bytes, const tk_sim_inst *inst,
                       tk_sim_flight_kind kind) {
    struct tk_sim_async *a = c->async;
    for (uint32_t k = offset / 4; k < (offset + bytes) / 4; k++) {
        flight *f = &a->flight[kind][k];
        f->n += inst ? 1u : UINT32_MAX;
        use(a, k, inst && f->n == 1, !inst && f->n == 0);
        f->inst = inst ? inst : f->inst;
    }
}

void tk_sim_async_barrier(tk_sim_cluster *c, uint32_t offset, bool there) {
    struct tk_sim_async *a = c->async;
    for (uint32_t k = offset / 4; k < offset / 4 + 2; k++) {
        use(a, k, there && !a->barrier[k], !there && a->barrier[k]);
        a->barrier[k] = there;
    }
}

bool tk_sim_async_tells(const tk_sim_cluster *c, const tk_sim_inst *i, uint32_t offset) {
    return i->klass == TK_SIM_CLASS_ASYNC && c->async->barrier[offset / 4];
}

void tk_sim_async_copy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                       uint32_t bytes, const unsigned char *from, uint32_t given) {
    struct tk_sim_async *a = w->cluster->async;
    copy c = {.inst = i,
              .from = from,
              .offset = offset,
              .group = a->group[tk_sim_member(w, lane)],
              .serial = ++a->serial,
              .lane = (uint8_t)lane,
              .bytes = (uint8_t)bytes,
              .given = (uint8_t)given};
    if (given == 0 || (!tk_sim_late(w->grid) && tk_sim_random(w->grid, 2) == 1)) {
        memcpy(c.value, from, given);
        c.from = NULL;
    }
    tk_sim_async_mark(w->cluster, offset, bytes, i, TK_SIM_FLIGHT_WRITES);
    w->grid->count[tk_sim_index(w, i)].async_bytes += given;
    tk_vec_push(a->arena, &a->of_warp[w->number], c);
}

static void take_effect(tk_sim_cluster *cluster, copy *c) {
    if (c->from) {
        memcpy(c->value, c->from, c->given);
    }
    tk_sim_async_mark(cluster, c->offset, c->bytes, NULL, TK_SIM_FLIGHT_WRITES);
    memcpy(cluster->shared + c->offset, c->value, c->bytes);
}

static tk_sim_done done_of(const tk_sim_warp *w, const copy *c) {
    return tk_sim_shadow_copies(w, c->lane, c->serial);
}

static void note_copy(const tk_sim_warp *w, const copy *c) {
    tk_sim_shadow_copy(w, c->inst, done_of(w, c), c->offset, c->bytes, TK_SIM_WRITE,
                       TK_SIM_BEGINS_COPY);
}

// Its thread has waited for it. False after a fault.
static bool finish(tk_sim_warp *w, copy *c) {
    if (!c->done) {
        take_effect(w->cluster, c);
    }
    if (!c->announced) {
        return tk_sim_shadow_access(w, c->inst, c->lane, c->offset, c->bytes, TK_SIM_WRITE, false);
    }
    if (!c->done) {
        note_copy(w, c);
    }
    tk_sim_shadow_know_copy(w, c->lane, done_of(w, c));
    return true;
}

void tk_sim_async_commit(tk_sim_warp *w, uint32_t lanes) {
    TK_SIM_EACH(l, lanes) { w->cluster->async->group[tk_sim_member(w, l)]++; }
}

// Whether a wait of these lanes ends the copy: it is of none of their `most` last groups, and has a
// group or `all` are meant; and it is no later than `serial`.
static bool ends(const tk_sim_warp *w, const copy *c, uint32_t lanes, uint32_t most, bool all,
                 uint64_t serial) {
    uint64_t now = w->cluster->async->group[tk_sim_member(w, c->lane)];
    return (lanes >> c->lane & 1) && c->serial <= serial &&
           (all || (uint64_t)c->group + most < now);
}

bool tk_sim_async_wait(tk_sim_warp *w, uint32_t lanes, uint32_t most, bool all) {
    copies *list = &w->cluster->async->of_warp[w->number];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < list->n; k++) {
        copy *c = &list->at[k];
        if (!ends(w, c, lanes, most, all, UINT64_MAX)) {
            list->at[kept++] = *c;
        } else if (!finish(w, c)) {
            return false;
        }
    }
    list->n = kept;
    return true;
}

uint64_t tk_sim_async_announce(const tk_sim_warp *w, uint32_t lane) {
    copies *list = &w->cluster->async->of_warp[w->number];
    for (uint32_t k = 0; k < list->n; k++) {
        list->at[k].announced = list->at[k].announced || list->at[k].lane == lane;
    }
    return w->cluster->async->serial;
}

// What is done stays until its thread knows so.
void tk_sim_async_finish(tk_sim_warp *w, uint32_t lane, uint64_t serial) {
    copies *list = &w->cluster->async->of_warp[w->number];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < list->n; k++) {
        copy *c = &list->at[k];
        if (!c->done && ends(w, c, 1u << lane, 0, true, serial)) {
            take_effect(w->cluster, c);
            note_copy(w, c);
            c->done = true;
        }
        if (!c->done || !tk_sim_shadow_knows_copy(w, c->lane, done_of(w, c))) {
            list->at[kept++] = *c;
        }
    }
    list->n = kept;
}
