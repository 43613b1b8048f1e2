// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies in flight: which bytes of shared memory they write, and when they are done.
//
// A copy may take effect at any moment from its issue to the end of the wait for it. Bytes that it
// writes may be touched by nobody in between, the thread that issued it included: such an access is
// a race, whatever the moment. So only the moment at which the source is read makes a difference:
// at the issue or at the wait, at random; seed 0: at the wait. A copy that nobody waits for stays
// in flight to the end of its cluster.
#include "sim/machine.h"

typedef struct copy {
    const tk_sim_inst *inst;
    const unsigned char *from; // the source, where it is read late; else NULL
    uint32_t offset;           // of the destination in shared memory
    uint32_t group;            // of its thread
    uint64_t serial;           // of the cluster
    uint8_t lane, bytes, given;
    unsigned char value[16];
} copy;

typedef TK_VEC(copy) copies;

struct tk_sim_async {
    tk_arena *arena;
    uint32_t nword;
    uint32_t flying;            // words that copies in flight write or read, or of mbarriers
    const tk_sim_inst **writer; // [nword]: what writes a word; NULL: nothing in flight does
    const tk_sim_inst **reader; // [nword]: what reads it, the last one of these
    uint32_t *readers;          // [nword]: how many do
    bool *barrier;              // [nword]: of an mbarrier
    uint64_t serial;            // of the last copy
    uint64_t now, *written;     // [nword]: when a thread last wrote it; 0: fenced or not at all
    uint16_t *author;           // [nword]: which one
    uint64_t *fence;            // [threads]: when it last executed fence.proxy.async
    copies *of_warp;
    uint32_t *group; // [threads] groups that were committed
    uint32_t nwarp;
};

struct tk_sim_async *tk_sim_async_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp) {
    struct tk_sim_async *a = TK_NEW(arena, struct tk_sim_async);
    a->arena = arena;
    a->nword = (bytes + 3) / 4;
    a->nwarp = nwarp;
    a->writer = TK_NEW_ARRAY(arena, const tk_sim_inst *, a->nword + 1);
    a->reader = TK_NEW_ARRAY(arena, const tk_sim_inst *, a->nword + 1);
    a->readers = TK_NEW_ARRAY(arena, uint32_t, a->nword + 1);
    a->barrier = TK_NEW_ARRAY(arena, bool, a->nword + 1);
    a->written = TK_NEW_ARRAY(arena, uint64_t, a->nword + 1);
    a->author = TK_NEW_ARRAY(arena, uint16_t, a->nword + 1);
    a->fence = TK_NEW_ARRAY(arena, uint64_t, (size_t)nwarp * TK_SIM_LANES);
    a->of_warp = TK_NEW_ARRAY(arena, copies, nwarp);
    a->group = TK_NEW_ARRAY(arena, uint32_t, (size_t)nwarp * TK_SIM_LANES);
    return a;
}

void tk_sim_async_begin(struct tk_sim_async *a) {
    memset(a->writer, 0, a->nword * sizeof *a->writer);
    memset(a->reader, 0, a->nword * sizeof *a->reader);
    memset(a->readers, 0, a->nword * sizeof *a->readers);
    memset(a->barrier, 0, a->nword * sizeof *a->barrier);
    memset(a->written, 0, a->nword * sizeof *a->written);
    memset(a->fence, 0, (size_t)a->nwarp * TK_SIM_LANES * sizeof *a->fence);
    memset(a->group, 0, (size_t)a->nwarp * TK_SIM_LANES * sizeof *a->group);
    for (uint32_t k = 0; k < a->nwarp; k++) {
        a->of_warp[k].n = 0;
    }
    a->flying = 0;
}

static void note_write(struct tk_sim_async *a, uint32_t offset, uint32_t bytes, uint32_t thread) {
    a->now++;
    for (uint32_t k = offset / 4; k <= (offset + bytes - 1) / 4; k++) {
        a->written[k] = a->now;
        a->author[k] = (uint16_t)thread;
    }
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
    struct tk_sim_async *a = w->cluster->async;
    uint32_t first = offset / 4, last = (offset + bytes - 1) / 4;
    for (uint32_t k = first; a->flying && k <= last; k++) {
        if (a->writer[k]) {
            return collide(w, i, lane, k, access, a->writer[k], "writes");
        }
        if (a->reader[k] && access != TK_SIM_READ) {
            return collide(w, i, lane, k, access, a->reader[k], "reads");
        }
        if (a->barrier[k] && !w->at_barrier) {
            tk_sim_fail(w, i, lane, "mbarrier", "'%s' at %s, where an mbarrier is", i->name,
                        tk_sim_shared_text(w->cluster, k * 4));
            return false;
        }
    }
    if (access != TK_SIM_READ) {
        note_write(a, offset, bytes, tk_sim_member(w, lane));
    }
    return true;
}

void tk_sim_async_mark(tk_sim_cluster *c, uint32_t offset, uint32_t bytes, const tk_sim_inst *inst,
                       bool writes) {
    struct tk_sim_async *a = c->async;
    const tk_sim_inst **map = writes ? a->writer : a->reader;
    for (uint32_t k = offset / 4; k < (offset + bytes) / 4; k++) {
        if (!writes) {
            a->readers[k] += inst ? 1u : UINT32_MAX;
            if (!inst && a->readers[k]) {
                continue;
            }
        }
        a->flying += (map[k] == NULL && inst) ? 1u : 0;
        a->flying -= (map[k] && !inst) ? 1u : 0;
        map[k] = inst;
        a->written[k] = writes ? 0 : a->written[k];
    }
}

void tk_sim_async_barrier(tk_sim_cluster *c, uint32_t offset, bool there) {
    struct tk_sim_async *a = c->async;
    for (uint32_t k = offset / 4; k < offset / 4 + 2; k++) {
        a->flying += there && !a->barrier[k] ? 1u : 0;
        a->flying -= !there && a->barrier[k] ? 1u : 0;
        a->barrier[k] = there;
    }
}

void tk_sim_async_fence(tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_async *a = w->cluster->async;
    a->now++;
    TK_SIM_EACH(l, lanes) { a->fence[tk_sim_member(w, l)] = a->now; }
}

bool tk_sim_async_fenced(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                         uint32_t bytes) {
    const struct tk_sim_async *a = w->cluster->async;
    for (uint32_t k = offset / 4; k < (offset + bytes) / 4; k++) {
        uint64_t when = a->written[k];
        if (when > a->fence[a->author[k]] && when > a->fence[tk_sim_member(w, lane)]) {
            tk_sim_fail(w, i, lane, "proxy",
                        "'%s' reads %s, which %s wrote; there is no fence.proxy.async between",
                        i->name, tk_sim_shared_text(w->cluster, k * 4),
                        tk_sim_member_text(w->cluster, a->author[k]));
            return false;
        }
    }
    return true;
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
    if (given == 0 || tk_sim_random(w->grid, 2) == 1) {
        memcpy(c.value, from, given);
        c.from = NULL;
    }
    tk_sim_async_mark(w->cluster, offset, bytes, i, true);
    w->grid->count[tk_sim_index(w, i)].async_bytes += given;
    tk_vec_push(a->arena, &a->of_warp[w->number], c);
}

// False after a fault.
static bool finish(tk_sim_warp *w, copy *c) {
    if (c->from) {
        memcpy(c->value, c->from, c->given);
    }
    tk_sim_async_mark(w->cluster, c->offset, c->bytes, NULL, true);
    note_write(w->cluster->async, c->offset, c->bytes, tk_sim_member(w, c->lane));
    memcpy(w->cluster->shared + c->offset, c->value, c->bytes);
    return tk_sim_shadow_access(w, c->inst, c->lane, c->offset, c->bytes, TK_SIM_WRITE, false);
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

static bool end_copies(tk_sim_warp *w, uint32_t lanes, uint32_t most, bool all, uint64_t serial) {
    copies *list = &w->cluster->async->of_warp[w->number];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < list->n; k++) {
        copy *c = &list->at[k];
        if (!ends(w, c, lanes, most, all, serial)) {
            list->at[kept++] = *c;
        } else if (!finish(w, c)) {
            return false;
        }
    }
    list->n = kept;
    return true;
}

bool tk_sim_async_wait(tk_sim_warp *w, uint32_t lanes, uint32_t most, bool all) {
    return end_copies(w, lanes, most, all, UINT64_MAX);
}

uint64_t tk_sim_async_serial(const tk_sim_warp *w) { return w->cluster->async->serial; }

bool tk_sim_async_finish(tk_sim_warp *w, uint32_t lane, uint64_t serial) {
    return end_copies(w, 1u << lane, 0, true, serial);
}
