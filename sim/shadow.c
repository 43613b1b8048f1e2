// SPDX-License-Identifier: Apache-2.0
// Which accesses of shared memory are ordered, and reads of what nobody wrote.
//
// Each byte keeps the accesses that a later one may have to come after: for each warp, which
// threads, at which clock. Words that are only accessed whole share one cell; the first narrower
// access splits them.
//
// Writes. A write that changes the value must come after all accesses before it. One of the value
// that is there already may go on beside other such writes (not updates), and beside reads of that
// value: whatever comes first, the value is the same. A read, or the next change, must come after
// all of them. A write of the same value that does not come after another of these must, as the
// first one, come after what was accessed before that (old records).
//
// Atomic accesses do not race with each other: those that nothing orders stay as loose records,
// which everything that is not atomic must come after.
#include "sim/order.h"

enum { FEW = 2 };

typedef enum state {
    CURRENT, // wrote the present value, or was done since
    LOOSE,   // before the present value was written, but in no order to that
    OLD      // before the present value was written
} state;

typedef struct record {
    uint32_t clock, lanes;
    uint32_t who; // the warp; of a copy: the agent
    union {
        struct {
            uint32_t inst : 17;
            uint32_t state : 2;
            uint32_t agent : 1; // a copy that has told an mbarrier
            uint32_t whole : 1; // by the warp, as one
            uint32_t write : 1; // else a read
            uint32_t atomic : 1;
            uint32_t update : 1; // a write whose value depends on what was there
            uint32_t proxy : 1;  // of the async proxy
            uint32_t first : 1;  // a write that no other of the same value is before
            uint32_t passed : 1; // whoever knows of the present value knows that this is done
        };
        uint32_t bits; // all of these, to compare at once
    };
} record;

typedef struct tk_sim_cell {
    uint64_t epoch; // of the records of threads
    uint64_t
        generic;  // an epoch with a write by `author` that no fence lies behind; 0: there is none
    record *more; // [room]; NULL: they are in `few`
    record few[FEW];
    uint32_t n, room, author;
    bool written;
    bool based; // of the writes of the present value, one is before everything of this epoch
} cell;

struct tk_sim_shadow *tk_sim_shadow_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp,
                                         uint32_t nblock, uint32_t reserved) {
    struct tk_sim_shadow *s = TK_NEW(arena, struct tk_sim_shadow);
    s->arena = arena;
    s->nword = (bytes + 3) / 4;
    s->nwarp = nwarp;
    s->nblock = nblock;
    s->stride = bytes / nblock;
    s->reserved = reserved;
    s->threads = nwarp * TK_SIM_LANES;
    s->word = TK_NEW_ARRAY(arena, cell, s->nword + 1);
    s->split = TK_NEW_ARRAY(arena, bool, s->nword + 1);
    s->clock = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->proxied = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->proxied_far = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->proxied_there = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->last_proxied = TK_NEW_ARRAY(arena, uint64_t, nblock);
    s->reach = TK_NEW_ARRAY(arena, uint32_t, (size_t)nwarp * nblock);
    s->started = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->copier = TK_NEW_ARRAY(arena, uint32_t, s->threads);
    s->lane = TK_NEW_ARRAY(arena, tk_sim_past, s->threads);
    s->warp = TK_NEW_ARRAY(arena, tk_sim_past, nwarp);
    return s;
}

void tk_sim_shadow_begin(struct tk_sim_shadow *s) {
    tk_sim_order_begin(s);
    memset(s->split, 0, s->nword * sizeof *s->split);
}

// ---- Order

// Who looks: a thread and what it knows.
typedef struct viewer {
    const tk_sim_past *row;
    uint32_t thread, block; // block: in whose memory the byte lies
} viewer;

// The block in whose memory a byte lies.
static uint32_t block_of(const struct tk_sim_shadow *s, uint32_t offset) {
    return s->nblock == 1 ? 0 : offset / s->stride;
}

static viewer viewer_of(const struct tk_sim_shadow *s, uint32_t thread, uint32_t offset) {
    return (viewer){tk_sim_order_row(s, thread), thread, block_of(s, offset)};
}

// Of the record's threads, those whose access is not ordered before what the viewer does.
static uint32_t unordered(const struct tk_sim_shadow *s, const record *e, viewer v) {
    if (e->agent) {
        return tk_sim_order_agent(&s->base, e->who).known < e->clock &&
               tk_sim_order_agent(&v.row->agent, e->who).known < e->clock;
    }
    bool own = v.thread / TK_SIM_LANES == e->who;
    uint32_t left = own ? e->lanes & ~(1u << v.thread % TK_SIM_LANES) : e->lanes;
    if (!v.row->valid || left == 0 || (own && e->whole)) {
        return own && e->whole ? 0 : left;
    }
    const uint32_t *known = v.row->known, *more = tk_sim_order_within(v.row, v.block);
    uint32_t first = e->who * TK_SIM_LANES, not = 0;
    TK_SIM_EACH(l, left) {
        bool is = known[first + l] >= e->clock || (more && more[first + l] >= e->clock);
        not |= (uint32_t)!is << l;
    }
    return e->whole && not != e->lanes ? 0 : not ;
}

// Likewise those of a write by threads, in a block's memory, that no fence lies behind on its way
// to the viewer.
static uint32_t unfenced(const struct tk_sim_shadow *s, const record *e, viewer v) {
    if (e->agent) {
        return tk_sim_order_agent(&s->base, e->who).proxied < e->clock &&
               tk_sim_order_agent(&v.row->agent, e->who).proxied < e->clock;
    }
    uint32_t first = e->who * TK_SIM_LANES, not = 0;
    TK_SIM_EACH(l, e->lanes) {
        uint32_t t = first + l;
        bool own = t == v.thread && tk_sim_order_own_fence(s, t, v.block) >= e->clock;
        bool behind = own || tk_sim_order_fenced(s, v.row, t, v.block) >= e->clock;
        not |= (uint32_t)!behind << l;
    }
    return not ;
}

// ---- Records of a cell

static record *records(cell *c) { return c->more ? c->more : c->few; }

// Where the bits differ, of those that are ones in `which`.
static uint32_t differ(const record *a, const record *b, record which) {
    return (a->bits ^ b->bits) & which.bits;
}

static bool alike(const record *a, const record *b) {
    const record which = {.state = 3,
                          .agent = 1,
                          .whole = 1,
                          .write = 1,
                          .atomic = 1,
                          .update = 1,
                          .proxy = 1,
                          .first = 1,
                          .passed = 1};
    return a->who == b->who && a->clock == b->clock && !differ(a, b, which);
}

static void reserve(struct tk_sim_shadow *s, cell *c, uint32_t n) {
    uint32_t room = c->more ? c->room : FEW;
    if (n > room) {
        record *more = TK_NEW_ARRAY(s->arena, record, 2 * (size_t)n);
        memcpy(more, records(c), c->n * sizeof *more);
        c->more = more;
        c->room = 2 * n;
    }
}

static void add(struct tk_sim_shadow *s, cell *c, record me) {
    record *e = records(c);
    for (uint32_t k = 0; k < c->n; k++) {
        if (alike(&e[k], &me)) {
            e[k].lanes |= me.lanes;
            e[k].inst = me.inst;
            return;
        }
    }
    reserve(s, c, c->n + 1);
    records(c)[c->n++] = me;
}

static void copy_cell(struct tk_sim_shadow *s, cell *to, const cell *from) {
    cell old = *to;
    *to = *from;
    to->more = old.more;
    to->room = old.room;
    to->n = 0;
    reserve(s, to, from->n);
    memcpy(records(to), from->more ? from->more : from->few, from->n * sizeof(record));
    to->n = from->n;
}

// A write of the cell's epoch, which is over, that no fence has come to lie behind.
static bool stays_generic(const struct tk_sim_shadow *s, const cell *c, const record *e,
                          uint32_t block) {
    uint64_t last = s->last_proxied[block];
    if (!e->write || e->proxy || e->state == OLD || last > c->epoch) {
        return false;
    }
    bool not = last < c->epoch;
    TK_SIM_EACH(l, e->lanes) {
        not = not || tk_sim_order_fenced_there(s, e->who * TK_SIM_LANES + l, block) < e->clock;
    }
    return not ;
}

// Whether a record is still of use in a later epoch: of a copy that not all know of.
static bool stays(const struct tk_sim_shadow *s, const record *e) {
    tk_sim_agent a = e->agent ? tk_sim_order_agent(&s->base, e->who) : (tk_sim_agent){0, 0};
    bool generic = e->write && !e->proxy && e->state != OLD;
    return e->agent && (a.known < e->clock || (generic && a.proxied < e->clock));
}

// The cell as it is in this epoch.
static void refresh(const struct tk_sim_shadow *s, cell *c, uint32_t offset) {
    if (c->epoch < s->first) {
        c->n = 0;
        c->generic = 0;
        c->written = s->reserved && offset % s->stride >= s->reserved;
        c->based = false;
    }
    record *e = records(c);
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        bool present = e[k].write && e[k].state == CURRENT;
        if (!e[k].agent && stays_generic(s, c, &e[k], block_of(s, offset))) {
            c->generic = c->epoch;
            c->author = e[k].who * TK_SIM_LANES + (uint32_t)__builtin_ctz(e[k].lanes);
        }
        if (stays(s, &e[k])) {
            e[n++] = e[k];
        } else {
            c->based = c->based || present;
        }
    }
    c->n = n;
    c->epoch = s->epoch;
}

static cell *cell_at(struct tk_sim_shadow *s, uint32_t offset) {
    uint32_t word = offset / 4;
    cell *c = s->split[word] ? &s->byte[offset] : &s->word[word];
    if (c->epoch != s->epoch) {
        refresh(s, c, offset);
    }
    return c;
}

static void split(struct tk_sim_shadow *s, uint32_t word) {
    if (!s->byte) {
        s->byte = TK_NEW_ARRAY(s->arena, cell, (size_t)s->nword * 4 + 4);
    }
    for (unsigned k = 0; !s->split[word] && k < 4; k++) {
        copy_cell(s, &s->byte[(size_t)word * 4 + k], &s->word[word]);
    }
    s->split[word] = true;
}

// ---- Checks

typedef struct finding {
    const char *what; // NULL: nothing
    record other;
    uint32_t lane; // of the other one's
} finding;

static const finding nothing;

static finding found(const char *what, const record *e, uint32_t lanes) {
    return (finding){what, *e, (uint32_t)__builtin_ctz(lanes)};
}

// What a read must come after.
static finding check_read(const struct tk_sim_shadow *s, cell *c, record me, viewer v) {
    if (!c->written) {
        return (finding){.what = "reads"};
    }
    const record *e = records(c);
    for (uint32_t k = 0; k < c->n; k++) {
        bool matters = e[k].write && e[k].state != OLD && !(e[k].state == LOOSE && e[k].passed);
        uint32_t not = matters && !(e[k].atomic && me.atomic) ? unordered(s, &e[k], v) : 0;
        if (not ) {
            return found("wrote", &e[k], not );
        }
    }
    return nothing;
}

// What a write must come after. same: it writes the value that is there.
static finding check_write(const struct tk_sim_shadow *s, cell *c, record me, viewer v, bool same) {
    const record *e = records(c);
    bool any = c->based || !same;
    for (uint32_t k = 0; k < c->n && !any; k++) {
        any = e[k].write && e[k].state == CURRENT && !unordered(s, &e[k], v);
    }
    for (uint32_t k = 0; k < c->n; k++) {
        bool matters = e[k].state == LOOSE || (e[k].state == OLD ? !any : !same || e[k].update);
        uint32_t not = matters && !(e[k].atomic && me.atomic) ? unordered(s, &e[k], v) : 0;
        if (not ) {
            return found(e[k].write ? "wrote" : "read", &e[k], not );
        }
    }
    return nothing;
}

// What a copy of the async proxy must find behind a fence.
static finding check_proxy(const struct tk_sim_shadow *s, cell *c, viewer v) {
    if (c->generic && s->last_proxied[v.block] <= c->generic &&
        !(v.row->all_proxied >> v.block & 1) && !tk_sim_order_own_fence(s, v.thread, v.block)) {
        record author = {.who = c->author / TK_SIM_LANES};
        return found("proxy", &author, 1u << c->author % TK_SIM_LANES);
    }
    const record *e = records(c);
    for (uint32_t k = 0; k < c->n; k++) {
        bool generic = e[k].write && !e[k].proxy && e[k].state != OLD;
        uint32_t not = generic ? unfenced(s, &e[k], v) : 0;
        if (not ) {
            return found("proxy", &e[k], not );
        }
    }
    return nothing;
}

static finding check(const struct tk_sim_shadow *s, cell *c, record me, viewer v,
                     tk_sim_access access, bool same) {
    return access == TK_SIM_READ                    ? check_read(s, c, me, v)
           : access == TK_SIM_ATOMIC && !c->written ? (finding){.what = "reads"}
                                                    : check_write(s, c, me, v, same);
}

// ---- What an access leaves

// An earlier access by the thread itself need not be kept beside a later one of the same kind.
static bool repeats(const record *e, record me) {
    const record which = {.agent = 1, .whole = 1, .write = 1, .proxy = 1};
    return e->who == me.who && !differ(e, &me, which) && (e->atomic || !me.atomic) && !e->first;
}

static void put_beside(struct tk_sim_shadow *s, cell *c, record me) {
    record *e = records(c);
    uint32_t gone = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        if (e[k].state == CURRENT && repeats(&e[k], me)) {
            e[k].lanes &= ~me.lanes;
            gone += e[k].lanes == 0;
        }
    }
    if (gone) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < c->n; k++) {
            if (e[k].lanes) {
                e[n++] = e[k];
            }
        }
        c->n = n;
    }
    add(s, c, me);
}

static void put_same(struct tk_sim_shadow *s, cell *c, record me, viewer v) {
    const record *e = records(c);
    bool any = c->based;
    for (uint32_t k = 0; k < c->n; k++) {
        bool present = e[k].write && e[k].state == CURRENT;
        any = any || (present && !unordered(s, &e[k], v));
    }
    me.first = !any;
    put_beside(s, c, me);
}

// The value changes.
static void put_change(struct tk_sim_shadow *s, cell *c, record me) {
    const record *e = records(c);
    uint32_t n = c->n;
    c->n = 0; // there is room for all that stay
    for (uint32_t k = 0; k < n; k++) {
        record r = e[k];
        bool moves = r.state == CURRENT;
        r.first = 0;
        if (!me.atomic) {
            r.state = OLD;
        } else if (r.state != OLD) {
            r.state = LOOSE;
            r.passed = r.passed || (me.agent && !r.atomic);
            r.lanes &= repeats(&r, me) ? ~me.lanes : ~0u;
        }
        bool drops = r.lanes == 0 || (e[k].state == OLD && !me.atomic);
        if (!drops && moves && me.atomic) {
            add(s, c, r);
        } else if (!drops) {
            records(c)[c->n++] = r;
        }
    }
    c->based = false;
    c->generic = 0;
    me.first = 1;
    add(s, c, me);
}

static void put(struct tk_sim_shadow *s, cell *c, record me, viewer v, bool same) {
    if (!me.write) {
        put_beside(s, c, me);
    } else if (same) {
        put_same(s, c, me, v);
    } else {
        put_change(s, c, me);
    }
    c->written = c->written || me.write;
}

// ---- Accesses

static void report(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                   tk_sim_access access, const finding *f) {
    const char *does = access == TK_SIM_READ    ? "reads"
                       : access == TK_SIM_WRITE ? "writes"
                                                : "updates";
    const char *what = tk_sim_shared_text(w->cluster, offset);
    if (strcmp(f->what, "reads") == 0) {
        tk_sim_fail(w, i, lane, "uninitialised", "%s %s, which nobody has written", does, what);
        return;
    }
    const char *who =
        tk_sim_member_text(w->cluster, f->other.agent ? w->cluster->shadow->threads
                                                      : f->other.who * TK_SIM_LANES + f->lane);
    if (strcmp(f->what, "proxy") == 0) {
        tk_sim_fail(w, i, lane, "proxy",
                    "'%s' %s %s, which %s wrote; there is no fence.proxy.async between", i->name,
                    does, what, who);
        return;
    }
    tk_sim_fail(w, i, lane, "race", "%s %s, which %s %s, and nothing orders the two", does, what,
                who, f->what);
    tk_sim_fail_note(w->grid, &w->code[f->other.inst], "%s %s it here", who, f->what);
}

static record record_of(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                        tk_sim_access access, tk_sim_begin proxy) {
    return (record){.clock = w->cluster->shadow->clock[tk_sim_member(w, lane)],
                    .lanes = 1u << lane,
                    .who = w->number,
                    .inst = tk_sim_index(w, i) & 0x1ffff,
                    .write = access != TK_SIM_READ,
                    .atomic = access == TK_SIM_ATOMIC || i->strong,
                    .update = access == TK_SIM_ATOMIC,
                    .proxy = proxy == TK_SIM_BEGINS_PROXY};
}

// How many bytes from `at` on are one cell.
static uint32_t step(const struct tk_sim_shadow *s, uint32_t at) {
    return s->split[at / 4] ? 1 : 4 - at % 4;
}

bool tk_sim_shadow_behind_fence(const tk_sim_warp *w, uint32_t lane, uint32_t offset) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    viewer v = viewer_of(s, tk_sim_member(w, lane), offset);
    return !check_proxy(s, cell_at(s, offset), v).what;
}

// The same for all bytes of an access; false after a fault.
static bool behind_fence(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                         uint32_t bytes, tk_sim_access access) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    for (uint32_t at = offset; at < offset + bytes; at += step(s, at)) {
        viewer v = viewer_of(s, tk_sim_member(w, lane), offset);
        finding f = check_proxy(s, cell_at(s, at), v);
        if (f.what) {
            report(w, i, lane, at, access, &f);
            return false;
        }
    }
    return true;
}

bool tk_sim_shadow_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                          uint32_t bytes, tk_sim_access access, bool same_value) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, lane, access, (tk_sim_begin)w->begins);
    viewer v = viewer_of(s, tk_sim_member(w, lane), offset);
    // Of an mbarrier that is there, what wrote to its bytes last is its init.
    bool after_init =
        w->at_barrier && access == TK_SIM_READ && tk_sim_mbarrier_told(w, lane, offset);
    if (me.clock == UINT32_MAX) {
        tk_sim_fail(w, i, lane, "limit", "a thread synchronises more than %u times",
                    UINT32_MAX - 1);
        return false;
    }
    if (v.block != w->block->rank) {
        s->crossed = true;
        if (access != TK_SIM_READ) {
            tk_sim_order_reach(s, w->number, v.block);
        }
    }
    for (uint32_t at = offset, end = offset + bytes; at < end; at += step(s, at)) {
        if (at % 4 || end - at < 4) {
            split(s, at / 4);
        }
        cell *c = cell_at(s, at);
        bool same = same_value && access == TK_SIM_WRITE && c->written;
        finding f = after_init ? nothing : check(s, c, me, v, access, same);
        if (f.what) {
            report(w, i, lane, at, access, &f);
            return false;
        }
        if (!w->begins) {
            put(s, c, me, v, same);
        }
    }
    return !me.proxy || behind_fence(w, i, lane, offset, bytes, access);
}

void tk_sim_shadow_copy(const tk_sim_warp *w, const tk_sim_inst *i, tk_sim_done by, uint32_t offset,
                        uint32_t bytes, tk_sim_access access, tk_sim_begin proxy) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, 0, access, proxy);
    me.agent = 1;
    me.clock = by.clock;
    me.who = by.agent;
    for (uint32_t at = offset; at < offset + bytes; at += step(s, at)) {
        put(s, cell_at(s, at), me, (viewer){NULL, 0, 0}, false);
    }
}

// ---- Reads by a warp as a whole

bool tk_sim_shadow_look(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                        uint32_t bytes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, lane, TK_SIM_READ, TK_SIM_BEGINS_PROXY);
    viewer v = viewer_of(s, tk_sim_member(w, lane), offset);
    for (uint32_t at = offset; at < offset + bytes; at += step(s, at)) {
        finding f = check(s, cell_at(s, at), me, v, TK_SIM_READ, false);
        if (f.what) {
            report(w, i, lane, at, TK_SIM_READ, &f);
            return false;
        }
    }
    return behind_fence(w, i, lane, offset, bytes, TK_SIM_READ);
}

void tk_sim_shadow_read_whole(tk_sim_warp *w, const tk_sim_inst *i, uint32_t offset,
                              uint32_t bytes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, 0, TK_SIM_READ, TK_SIM_BEGINS_PROXY);
    me.lanes = ~0u;
    me.whole = 1;
    for (uint32_t at = offset; at < offset + bytes; at += step(s, at)) {
        put_beside(s, cell_at(s, at), me);
    }
}

// ---- The end of a block

// Of the record's threads, where they are of another block, those that no thread of this one knows
// to be done. Of a copy that tells an mbarrier, not 0 where none knows that.
static uint32_t outlives(const struct tk_sim_shadow *s, const tk_sim_block *b,
                         const tk_sim_past *past, const record *e) {
    const bool tells = e->agent && e->who % 2 == 0; // agents with odd numbers are of cp.async
    bool other = e->agent ? tells : e->who / b->nwarp != b->rank;
    return other ? unordered(s, e, (viewer){past, UINT32_MAX, b->rank}) : 0;
}

static bool not_waited_for(tk_sim_block *b, const tk_sim_inst *copy, uint32_t at) {
    tk_sim_fail(&b->warp[0], copy, 0, "unfinished",
                "the block ends, and none of its threads has waited for this copy, which uses %s",
                tk_sim_shared_text(b->cluster, at));
    return false;
}

// False after a fault.
static bool end_cell(struct tk_sim_shadow *s, tk_sim_block *b, const tk_sim_past *past,
                     uint32_t at) {
    cell *c = cell_at(s, at);
    const record *e = records(c);
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t lanes = outlives(s, b, past, &e[k]);
        if (lanes && e[k].agent) {
            return not_waited_for(b, &b->warp[0].code[e[k].inst], at);
        }
        if (lanes) {
            tk_sim_warp *w = tk_sim_warp_of(b->cluster, e[k].who);
            if (tk_sim_async_tells(b->cluster, &w->code[e[k].inst], at)) {
                continue; // until it does, the copy is in flight: tk_sim_bulk_end
            }
            tk_sim_fail(w, &w->code[e[k].inst], (uint32_t)__builtin_ctz(lanes), "ended",
                        "accesses %s, and nothing orders this before the end of that block",
                        tk_sim_shared_text(b->cluster, at));
            return false;
        }
    }
    return true;
}

bool tk_sim_shadow_end(tk_sim_block *b) {
    struct tk_sim_shadow *s = b->cluster->shadow;
    if (!s->crossed && !s->bulk.n) {
        return true;
    }
    tk_sim_past past = {0};
    for (uint32_t k = 0; k < b->nwarp; k++) {
        tk_sim_order_gather(s, b->warp[k].number, ~0u, &past);
    }
    uint32_t first = b->rank * b->cluster->stride, end = first + b->cluster->stride;
    for (uint32_t at = first; at < end; at += step(s, at)) {
        if (!end_cell(s, b, &past, at)) {
            return false;
        }
    }
    return true;
}
