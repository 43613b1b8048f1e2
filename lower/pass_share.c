// SPDX-License-Identifier: Apache-2.0
// Pass share: gives each op that works through shared memory its place in it.
//
// in:    laid-out level
// out:   the same level; attribute `shared` where an op needs shared memory (ir/scratch.h), and the
//        module's `shared`, the bytes of a program
// keeps: everything else
// needs: layout; a target, for its limits
// when not: an op that needs more than the target has is refused, with both numbers
//
// An op has its bytes only while it runs, so all may have the same ones. But where an op writes
// what another thread may still be reading for the op before it, a barrier must stand between;
// where their bytes are apart, the barrier inside the second op orders both. So pairs that meet
// (see pending.h) go apart as long as the total costs nothing: as long as a multiprocessor holds as
// many programs as it would with the least total, which is that of the largest op. Larger ops are
// placed first, each at the lowest place that has the fewest of those it meets.
//
// A ring has its bytes until it is last used, and no op there may have any of them. What comes
// behind may. Rings, and what runs while one is in use, are placed before all others.
//
// A store by tensor copies has its bytes until the kernel ends: what may run behind it may have
// none of them. It takes as many as the largest other op or ring, or KEPT; a larger tile goes in
// pieces.
//
// What a load holds for another loop is its alone for the whole kernel, and comes behind all
// others.
#include "lower/lower.h"
#include "lower/pending.h"

#include "ir/out.h"
#include "ir/scratch.h"
#include "lower/out.h"

#include <stdlib.h>

typedef struct area {
    tk_op *op;
    int64_t bytes, at;
    int64_t align;
    bool placed;
    uint32_t order;
    bool holds; // tiles for another loop: nothing else may be there (ir/hold.h)
    TK_VEC(struct area *) meets;
    TK_VEC(struct area *) apart; // must be, as one is a ring that lives while the other runs
} area;

typedef struct share {
    tk_pass_ctx *c;
    tk_func *f;
    TK_VEC(area *) all;
    area **slot; // by the op's address
    uint32_t room;
} share;

// ---- The areas ----------------------------------------------------------------------------------

static uint32_t hash(const share *s, const tk_op *op) {
    return (uint32_t)((uintptr_t)op / 16 * 2654435761u) & (s->room - 1);
}

static area *area_of(const share *s, const tk_op *op) {
    uint32_t i = hash(s, op);
    while (s->slot[i] && s->slot[i]->op != op) {
        i = (i + 1) & (s->room - 1);
    }
    return s->slot[i];
}

static void collect(void *user, tk_op *op) {
    share *s = user;
    const tk_scratch scratch = tk_scratch_of(s->c->scratch, s->f, op);
    op->at.shared = -1;
    if (scratch.bytes > 0) {
        TK_CHECK(s->c->m->arena, (tk_op_attrs(op->code) & TK_A_SHARED) != 0);
        area *x = TK_NEW(s->c->scratch, area);
        x->op = op;
        x->bytes = (int64_t)scratch.bytes;
        x->align = scratch.align;
        x->order = s->all.n;
        x->holds = op->at.hold > 0;
        tk_vec_push(s->c->scratch, &s->all, x);
    }
}

static void index_areas(share *s) {
    s->room = 16;
    while (s->room < 2 * s->all.n) {
        s->room *= 2;
    }
    s->slot = TK_NEW_ARRAY(s->c->scratch, area *, s->room);
    for (uint32_t k = 0; k < s->all.n; k++) {
        uint32_t i = hash(s, s->all.at[k]->op);
        while (s->slot[i]) {
            i = (i + 1) & (s->room - 1);
        }
        s->slot[i] = s->all.at[k];
    }
}

static void add_meeting(share *s, area *x, area *y) {
    for (uint32_t i = 0; i < x->meets.n; i++) {
        if (x->meets.at[i] == y) {
            return;
        }
    }
    tk_vec_push(s->c->scratch, &x->meets, y);
}

static void meet(void *user, tk_op *then, tk_op *now) {
    share *s = user;
    area *x = area_of(s, then), *y = area_of(s, now);
    if (x && y && x != y) { // itself in the next iteration: no place helps
        add_meeting(s, x, y);
        add_meeting(s, y, x);
    }
}

// ---- Notes --------------------------------------------------------------------------------------

static void note_total(share *s) {
    tk_module *m = s->c->m;
    tk_note_rec *r =
        tk_note_add(&m->notes, "share", "shared-memory", m->locs.at[s->f->loc].span, TK_NOTE_INFO,
                    "a program has shared memory for %u op%s", s->all.n, s->all.n == 1 ? "" : "s");
    tk_note_number_add(&m->notes, r, "bytes", (double)m->shared);
    tk_note_number_add(&m->notes, r, "largest", (double)s->all.at[0]->bytes);
}

// ---- Places -------------------------------------------------------------------------------------

// The greatest total at which a multiprocessor holds as many programs as it does at `least`.
static int64_t budget(const tk_target *t, int64_t least, int64_t warps) {
    enum {
        KEPT = 1024, // bytes of shared memory that the hardware keeps for each program
        PROGRAMS = 32,
        WARPS = 64, // of a multiprocessor, at most
    };
    const int64_t all = (int64_t)t->shared_max + KEPT;
    int64_t programs = WARPS / (warps > 0 ? warps : 1), fit = all / (least + KEPT);
    programs = programs > PROGRAMS ? PROGRAMS : programs;
    programs = fit < programs ? fit : programs;
    return all / (programs > 0 ? programs : 1) / TK_SCRATCH_ALIGN * TK_SCRATCH_ALIGN - KEPT;
}

// ---- Rings --------------------------------------------------------------------------------------

typedef struct lives {
    share *s;
    area *of; // a ring, a store by tensor copies
} lives;

static void add_apart(share *s, area *x, area *y) {
    for (uint32_t i = 0; i < x->apart.n; i++) {
        if (x->apart.at[i] == y) {
            return;
        }
    }
    tk_vec_push(s->c->scratch, &x->apart, y);
}

static void keep_apart(void *user, tk_op *op) {
    lives *l = user;
    area *x = area_of(l->s, op);
    if (x && x != l->of) {
        add_apart(l->s, l->of, x);
        add_apart(l->s, x, l->of);
    }
}

// Bytes of the rings' barriers, which are not among the program's.
static int64_t rings(share *s) {
    int64_t barriers = 0;
    for (uint32_t i = 0; i < s->all.n; i++) {
        tk_op *op = s->all.at[i]->op;
        if (op->code != TK_OP_RING) {
            continue;
        }
        lives l = {s, s->all.at[i]};
        const tk_op *last = tk_ring_last(op);
        barriers += op->at.slots * TK_RING_BARRIER_BYTES;
        for (tk_op *x = op; x != last;) {
            x = x->next;
            tk_op_walk(x, keep_apart, &l);
        }
    }
    // What a program has of its own begins behind them.
    return (barriers + TK_PLACED_ALIGN - 1) / TK_PLACED_ALIGN * TK_PLACED_ALIGN;
}

// ---- Stores by tensor copies --------------------------------------------------------------------

// Bytes that it may have: as many as other ops take anyway, and no more than those leave that must
// be apart from it.
static int64_t room_for(const share *s, const area *x, int64_t barriers) {
    int64_t rings = 0, most = TK_OUT_KEPT, beside = barriers, other = 0, stores = 1;
    for (uint32_t i = 0; i < s->all.n; i++) {
        const area *y = s->all.at[i];
        const bool ring = y->op->code == TK_OP_RING;
        rings += ring ? y->bytes : 0;
        most = !ring && !tk_is_copied_out(y->op) && y->bytes > most ? y->bytes : most;
    }
    for (uint32_t i = 0; i < x->apart.n; i++) {
        const area *y = x->apart.at[i];
        const bool ring = y->op->code == TK_OP_RING, store = tk_is_copied_out(y->op);
        beside += ring ? y->bytes : 0;
        stores += store;
        other = !ring && !store && y->bytes > other ? y->bytes : other;
    }
    const int64_t left = (int64_t)s->c->target->shared_max - beside - other;
    const int64_t least = rings > most ? rings : most;
    return (beside > barriers || left < least ? left : least) / stores;
}

static void stores(share *s, int64_t barriers) {
    for (uint32_t i = 0; i < s->all.n; i++) {
        lives l = {s, s->all.at[i]};
        if (tk_is_copied_out(l.of->op)) {
            tk_walk_behind(l.of->op, keep_apart, &l);
        }
    }
    for (uint32_t i = 0; i < s->all.n; i++) {
        area *x = s->all.at[i];
        while (tk_is_copied_out(x->op) && x->bytes > room_for(s, x, barriers) &&
               tk_out_cut(s->f, x->op)) {
            x->bytes = (int64_t)tk_scratch_bytes(s->f, x->op);
        }
    }
}

// Whether one that must be apart lies there.
static bool taken(const area *x, int64_t at) {
    for (uint32_t i = 0; i < x->apart.n; i++) {
        const area *y = x->apart.at[i];
        if (y->placed && y->at < at + x->bytes && at < y->at + y->bytes) {
            return true;
        }
    }
    return false;
}

static int64_t aligned(const area *x, int64_t at) {
    return (at + x->align - 1) / x->align * x->align;
}

// The lowest place that is not taken.
static int64_t lowest(const area *x) {
    int64_t at = INT64_MAX;
    at = taken(x, 0) ? at : 0;
    for (uint32_t i = 0; i < x->apart.n && at > 0; i++) {
        const area *y = x->apart.at[i];
        const int64_t behind = aligned(x, y->at + y->bytes);
        at = y->placed && behind < at && !taken(x, behind) ? behind : at;
    }
    return at;
}

// How many of those it meets lie there.
static uint32_t on_top(const area *x, int64_t at) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->meets.n; i++) {
        const area *y = x->meets.at[i];
        n += y->placed && y->at < at + x->bytes && at < y->at + y->bytes;
    }
    return n;
}

// At the lowest place or behind one that it meets.
static void place(area *x, int64_t most) {
    x->at = lowest(x);
    uint32_t least = on_top(x, x->at);
    for (uint32_t i = 0; i < x->meets.n; i++) {
        const area *y = x->meets.at[i];
        const int64_t at = aligned(x, y->at + y->bytes);
        if (!y->placed || at + x->bytes > most || taken(x, at)) {
            continue;
        }
        const uint32_t n = on_top(x, at);
        if (n < least || (n == least && at < x->at)) {
            least = n;
            x->at = at;
        }
    }
    x->placed = true;
}

static int larger_first(const void *x, const void *y) {
    const area *a = *(area *const *)x, *b = *(area *const *)y;
    if (a->holds != b->holds) {
        return a->holds ? 1 : -1;
    }
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : a->order > b->order ? 1 : -1;
}

static int64_t all_held(const share *s) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->all.n; i++) {
        bytes += s->all.at[i]->holds ? s->all.at[i]->bytes : 0;
    }
    return bytes;
}

static bool fits(share *s, const area *x, int64_t bytes, const tk_target *t) {
    if (bytes <= (int64_t)t->shared_max) {
        return true;
    }
    tk_gpu_refuse(s->c->diags, s->c->m, t, x->op,
                  tk_format(s->c->diags->arena,
                            "it needs %lld bytes of shared memory, of which %s has %u for a "
                            "program: use a smaller tile",
                            (long long)bytes, t->name, t->shared_max));
    return false;
}

static void give_places(share *s, int64_t most) {
    tk_module *m = s->f->module;
    for (uint32_t i = 0; i < s->all.n; i++) {
        area *x = s->all.at[i];
        if (x->holds) {
            x->at = aligned(x, m->shared);
        } else if (!x->placed) {
            place(x, most);
        }
        x->op->at.shared = x->at;
        m->shared = x->at + x->bytes > m->shared ? x->at + x->bytes : m->shared;
    }
}

static void function(share *s, const tk_target *t) {
    for (tk_op *op = s->f->body->first; op; op = op->next) {
        tk_op_walk(op, collect, s);
    }
    if (s->all.n == 0) {
        return;
    }
    index_areas(s);
    const tk_pending_opts o = {.meet = meet, .user = s};
    (void)tk_barriers_needed(s->c->scratch, s->f, &o);
    const int64_t barriers = rings(s);
    stores(s, barriers);
    qsort(s->all.at, s->all.n, sizeof(area *), larger_first);
    const int64_t held = all_held(s);
    int64_t least = 0;
    for (uint32_t i = 0; i < s->all.n; i++) {
        area *x = s->all.at[i];
        if (x->apart.n > 0) {
            place(x, 0);
        }
        const int64_t own = x->holds ? 0 : x->apart.n ? x->at + x->bytes + barriers : x->bytes;
        least = x->holds || x->bytes + x->at < least ? least : x->at + x->bytes;
        if (!fits(s, x, own + held, t)) {
            return;
        }
    }
    give_places(s, budget(t, least + held, s->f->module->attrs.warps) - held);
    note_total(s);
}

void tk_pass_share(tk_pass_ctx *c) {
    TK_CHECK(c->m->arena, c->target != NULL);
    c->m->shared = 0;
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        share s = {.c = c, .f = c->m->funcs.at[i]};
        function(&s, c->target);
    }
}
