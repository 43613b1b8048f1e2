// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies in flight: which bytes of shared memory they write, and when they are done.
//
// A copy may take effect at any moment from its issue to the end of the wait for it. Bytes that it
// writes may be touched by nobody in between, the thread that issued it included: such an access is
// a race, whatever the moment. So only the moment at which the source is read makes a difference:
// at the issue or at the wait, at random; seed 0: at the wait. A copy that nobody waits for stays
// in flight to the end of its block.
#include "sim/machine.h"

typedef struct copy {
    const tk_sim_inst *inst;
    const unsigned char *from; // the source, where it is read late; else NULL
    uint32_t offset;           // of the destination in shared memory
    uint32_t group;            // of its thread
    uint8_t lane, bytes, given;
    unsigned char value[16];
} copy;

typedef TK_VEC(copy) copies;

struct tk_sim_async {
    tk_arena *arena;
    uint32_t nword, flying;
    const tk_sim_inst **writer; // [nword]: what writes a word; NULL: nothing in flight does
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
    a->of_warp = TK_NEW_ARRAY(arena, copies, nwarp);
    a->group = TK_NEW_ARRAY(arena, uint32_t, (size_t)nwarp * TK_SIM_LANES);
    return a;
}

void tk_sim_async_begin(struct tk_sim_async *a) {
    memset(a->writer, 0, a->nword * sizeof *a->writer);
    memset(a->group, 0, (size_t)a->nwarp * TK_SIM_LANES * sizeof *a->group);
    for (uint32_t k = 0; k < a->nwarp; k++) {
        a->of_warp[k].n = 0;
    }
    a->flying = 0;
}

bool tk_sim_async_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                         uint32_t bytes, tk_sim_access access) {
    const struct tk_sim_async *a = w->block->async;
    if (a->flying == 0) {
        return true;
    }
    for (uint32_t k = offset / 4; k <= (offset + bytes - 1) / 4; k++) {
        if (a->writer[k]) {
            tk_sim_fail(w, i, lane, "race",
                        "%s shared memory at 0x%x, which an asynchronous copy writes; nobody has "
                        "waited for it",
                        access == TK_SIM_READ    ? "reads"
                        : access == TK_SIM_WRITE ? "writes"
                                                 : "updates",
                        TK_SIM_SHARED_BASE + k * 4);
            tk_sim_fail_note(w->grid, a->writer[k], "the copy is here");
            return false;
        }
    }
    return true;
}

static void mark(struct tk_sim_async *a, const copy *c, const tk_sim_inst *writer) {
    for (uint32_t k = 0; k < c->bytes / 4u; k++) {
        a->writer[c->offset / 4 + k] = writer;
    }
}

void tk_sim_async_copy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                       uint32_t bytes, const unsigned char *from, uint32_t given) {
    struct tk_sim_async *a = w->block->async;
    copy c = {.inst = i,
              .from = from,
              .offset = offset,
              .group = a->group[tk_sim_thread(w, lane)],
              .lane = (uint8_t)lane,
              .bytes = (uint8_t)bytes,
              .given = (uint8_t)given};
    if (given == 0 || tk_sim_random(w->grid, 2) == 1) {
        memcpy(c.value, from, given);
        c.from = NULL;
    }
    mark(a, &c, i);
    a->flying++;
    w->grid->count[tk_sim_index(w, i)].async_bytes += given;
    tk_vec_push(a->arena, &a->of_warp[w->index], c);
}

// False after a fault.
static bool finish(tk_sim_warp *w, copy *c) {
    struct tk_sim_async *a = w->block->async;
    if (c->from) {
        memcpy(c->value, c->from, c->given);
    }
    mark(a, c, NULL);
    a->flying--;
    memcpy(w->block->shared + c->offset, c->value, c->bytes);
    return tk_sim_shadow_access(w, c->inst, c->lane, c->offset, c->bytes, TK_SIM_WRITE, false);
}

void tk_sim_async_commit(tk_sim_warp *w, uint32_t lanes) {
    TK_SIM_EACH(l, lanes) { w->block->async->group[tk_sim_thread(w, l)]++; }
}

bool tk_sim_async_wait(tk_sim_warp *w, uint32_t lanes, uint32_t most, bool all) {
    struct tk_sim_async *a = w->block->async;
    copies *list = &a->of_warp[w->index];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < list->n; k++) {
        copy *c = &list->at[k];
        uint64_t now = a->group[tk_sim_thread(w, c->lane)];
        bool done = (lanes >> c->lane & 1) && (all || (uint64_t)c->group + most < now);
        if (!done) {
            list->at[kept++] = *c;
        } else if (!finish(w, c)) {
            return false;
        }
    }
    list->n = kept;
    return true;
}
