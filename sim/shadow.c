// SPDX-License-Identifier: Apache-2.0
// Which accesses of shared memory are ordered, and reads of what nobody wrote.
//
// Each byte keeps its last write and two reads since; each is a record of who, where in the code,
// and when. Words that are only accessed whole share one cell; the first narrower access splits
// them. Of more than two readers that nothing orders, the first and the last are kept.
//
// When. A meeting of all threads (of a block that is alone in its cluster) begins a new epoch: what
// is of an earlier one is ordered before everything that follows. Within an epoch each thread has a
// clock, which goes on whenever the thread hands over its past (release), and a row: how far it
// knows the clock of each other thread. An access is ordered before a thread's next one if the
// thread knows its clock. The threads of a warp share a row until they synchronise one by one.
// Threads and offsets are those of the cluster.
//
// What a warp as a whole has waited for (the reads of a wgmma) is handed over by any of its
// threads: their clocks are made equal, and who knows one of them knows of the read.
#include "sim/machine.h"

// AGENTS: numbers behind those of the threads, as which copies access memory that tell an mbarrier:
// whoever has waited there knows of them, and nobody else, the thread that issued them included.
enum { CELL = 3, EPOCHS = 0xffff, CLOCKS = 0x3fff, AGENTS = TK_SIM_LANES };

typedef struct record {
    uint32_t epoch : 16; // 0: none
    uint32_t clock : 14;
    uint32_t whole : 1; // by the warp whose first thread this is
    uint32_t thread : 15;
    uint32_t atomic : 1;
    uint32_t inst : 17;
} record;

typedef struct cell {
    record write, read[CELL - 1];
} cell;

typedef struct row {
    uint16_t *known; // [threads]; NULL: not made yet
    bool valid;      // in this epoch; else nothing is known
} row;

struct tk_sim_shadow {
    tk_arena *arena;
    uint32_t nword, threads, points;
    uint32_t epoch, first; // now; of this cluster
    cell *word;            // [nword]
    bool *split;           // [nword]
    cell *byte;            // [nword * 4]; NULL until a word is split
    uint16_t *clock;       // [threads]
    bool clocked;          // a clock is not 1
    bool crossed;          // a thread has reached another block's memory
    row *lane;             // [threads]
    row *warp;             // [threads / 32]
    row *point;            // [points]
    // Words by which threads tell each other something; NULL until there is one.
    uint32_t *flag_of; // [nword]: index into flags + 1
    TK_VEC(row) flags; // what was released there
    row *seen;         // [threads]: what relaxed accesses have found; acquired by the next fence
    row *fenced;       // [threads]: the past at the last fence; released by relaxed accesses
};

struct tk_sim_shadow *tk_sim_shadow_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp,
                                         uint32_t nblock) {
    struct tk_sim_shadow *s = TK_NEW(arena, struct tk_sim_shadow);
    s->arena = arena;
    s->nword = (bytes + 3) / 4;
    s->threads = nwarp * TK_SIM_LANES + AGENTS;
    s->points = nblock * (TK_SIM_BARRIERS + 2 * TK_SIM_MBARRIERS) + 2;
    s->word = TK_NEW_ARRAY(arena, cell, s->nword + 1);
    s->split = TK_NEW_ARRAY(arena, bool, s->nword + 1);
    s->clock = TK_NEW_ARRAY(arena, uint16_t, s->threads);
    s->lane = TK_NEW_ARRAY(arena, row, s->threads);
    s->warp = TK_NEW_ARRAY(arena, row, nwarp + 1);
    s->point = TK_NEW_ARRAY(arena, row, s->points);
    return s;
}

static void forget_rows(struct tk_sim_shadow *s) {
    if (!s->clocked) {
        return;
    }
    s->clocked = false;
    for (uint32_t t = 0; t < s->threads; t++) {
        s->clock[t] = 1;
        s->lane[t].valid = false;
    }
    for (uint32_t k = 0; k < s->threads / TK_SIM_LANES; k++) {
        s->warp[k].valid = false;
    }
    for (uint32_t k = 0; k < s->points; k++) {
        s->point[k].valid = false;
    }
    for (uint32_t k = 0; k < s->flags.n; k++) {
        s->flags.at[k].valid = false;
    }
    for (uint32_t t = 0; s->seen && t < s->threads; t++) {
        s->seen[t].valid = s->fenced[t].valid = false;
    }
}

void tk_sim_shadow_all(struct tk_sim_shadow *s) {
    if (s->epoch == EPOCHS) { // the records' epochs wrap: those of this cluster become the oldest
        for (size_t k = 0; k < s->nword * (size_t)(s->byte ? 5 : 1); k++) {
            cell *c = k < s->nword ? &s->word[k] : &s->byte[k - s->nword];
            bool written = c->write.epoch >= s->first;
            memset(c->read, 0, sizeof c->read);
            c->write.epoch = written;
        }
        s->first = s->epoch = 1;
    }
    s->epoch++;
    forget_rows(s);
}

void tk_sim_shadow_begin(struct tk_sim_shadow *s) {
    s->clocked = true;
    tk_sim_shadow_all(s);
    s->first = s->epoch;
    s->crossed = false;
    memset(s->split, 0, s->nword * sizeof *s->split);
}

// ---- Rows

static void make_valid(struct tk_sim_shadow *s, row *r) {
    if (!r->known) {
        r->known = TK_NEW_ARRAY(s->arena, uint16_t, s->threads);
    } else if (!r->valid) {
        memset(r->known, 0, s->threads * sizeof *r->known);
    }
    r->valid = true;
    s->clocked = true;
}

static void join(const struct tk_sim_shadow *s, row *to, const row *from) {
    if (from->valid) {
        for (uint32_t t = 0; t < s->threads; t++) {
            to->known[t] = to->known[t] < from->known[t] ? from->known[t] : to->known[t];
        }
    }
}

static const row *row_of(const struct tk_sim_shadow *s, uint32_t thread) {
    return s->lane[thread].valid ? &s->lane[thread] : &s->warp[thread / TK_SIM_LANES];
}

static bool lanes_apart(const struct tk_sim_shadow *s, uint32_t warp) {
    bool apart = false;
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        apart = apart || s->lane[warp * TK_SIM_LANES + l].valid;
    }
    return apart;
}

// The row that is the thread's alone.
static row *own_row(struct tk_sim_shadow *s, uint32_t thread) {
    row *r = &s->lane[thread];
    if (!r->valid) {
        make_valid(s, r);
        join(s, r, &s->warp[thread / TK_SIM_LANES]);
    }
    return r;
}

// The clocks of these lanes go on; where one cannot, everything so far counts as ordered.
static void tick(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes) {
    s->clocked = true;
    TK_SIM_EACH(l, lanes) {
        if (s->clock[warp * TK_SIM_LANES + l]++ == CLOCKS) {
            tk_sim_shadow_all(s);
            return;
        }
    }
}

// The past of these lanes, added to a row.
static void gather_past(const struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes, row *to) {
    join(s, to, &s->warp[warp]);
    TK_SIM_EACH(l, lanes) {
        uint32_t t = warp * TK_SIM_LANES + l;
        join(s, to, &s->lane[t]);
        to->known[t] = to->known[t] < s->clock[t] ? s->clock[t] : to->known[t];
    }
}

void tk_sim_shadow_release(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    if (lanes) {
        make_valid(s, &s->point[point]);
        gather_past(s, w->number, lanes, &s->point[point]);
        tick(s, w->number, lanes);
    }
}

void tk_sim_shadow_acquire(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number;
    if (!lanes || !s->point[point].valid) {
        return;
    }
    if (lanes == ~0u && !lanes_apart(s, warp)) {
        make_valid(s, &s->warp[warp]);
        join(s, &s->warp[warp], &s->point[point]);
        return;
    }
    TK_SIM_EACH(l, lanes) { join(s, own_row(s, warp * TK_SIM_LANES + l), &s->point[point]); }
}

void tk_sim_shadow_clear(struct tk_sim_shadow *s, uint32_t point) { s->point[point].valid = false; }

void tk_sim_shadow_warp(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t warp = w->number;
    if (lanes == ~0u) {
        make_valid(s, &s->warp[warp]);
        gather_past(s, warp, lanes, &s->warp[warp]);
        for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
            s->lane[warp * TK_SIM_LANES + l].valid = false;
        }
    } else {
        row *first = own_row(s, warp * TK_SIM_LANES + (uint32_t)__builtin_ctz(lanes));
        gather_past(s, warp, lanes, first);
        TK_SIM_EACH(l, lanes) { join(s, own_row(s, warp * TK_SIM_LANES + l), first); }
    }
    tick(s, warp, lanes);
}

// ---- Strong accesses

static void make_flags(struct tk_sim_shadow *s) {
    if (!s->flag_of) {
        s->flag_of = TK_NEW_ARRAY(s->arena, uint32_t, s->nword + 1);
        s->seen = TK_NEW_ARRAY(s->arena, row, s->threads);
        s->fenced = TK_NEW_ARRAY(s->arena, row, s->threads);
    }
}

static row *flag_at(struct tk_sim_shadow *s, uint32_t word) {
    make_flags(s);
    if (!s->flag_of[word]) {
        tk_vec_push(s->arena, &s->flags, ((row){NULL, false}));
        s->flag_of[word] = s->flags.n;
    }
    return &s->flags.at[s->flag_of[word] - 1];
}

void tk_sim_shadow_flag(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                        const unsigned char *p, tk_sim_access access) {
    const tk_sim_cluster *c = w->cluster;
    struct tk_sim_shadow *s = c->shadow;
    if (p < c->shared || p >= c->shared + (size_t)c->stride * c->nblock) {
        return;
    }
    uint32_t thread = tk_sim_member(w, lane);
    row *f = flag_at(s, (uint32_t)(p - c->shared) / 4);
    bool both = tk_sim_has(i, TK_SIM_MOD_ACQ_REL);
    if (access != TK_SIM_WRITE && f->valid) {
        row *to = both || tk_sim_has(i, TK_SIM_MOD_ACQUIRE) ? own_row(s, thread) : &s->seen[thread];
        make_valid(s, to);
        join(s, to, f);
    }
    if (access == TK_SIM_WRITE) { // what was released there before cannot be found any more
        f->valid = false;
    }
    if (access != TK_SIM_READ && (both || tk_sim_has(i, TK_SIM_MOD_RELEASE))) {
        make_valid(s, f);
        gather_past(s, w->number, 1u << lane, f);
        tick(s, w->number, 1u << lane);
    } else if (access != TK_SIM_READ && s->fenced[thread].valid) {
        make_valid(s, f);
        join(s, f, &s->fenced[thread]);
    }
}

void tk_sim_shadow_fence(const tk_sim_warp *w, uint32_t lanes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    make_flags(s);
    TK_SIM_EACH(l, lanes) {
        uint32_t thread = tk_sim_member(w, l);
        if (s->seen[thread].valid) {
            join(s, own_row(s, thread), &s->seen[thread]);
            s->seen[thread].valid = false;
        }
        make_valid(s, &s->fenced[thread]);
        gather_past(s, w->number, 1u << l, &s->fenced[thread]);
    }
    tick(s, w->number, lanes);
}

void tk_sim_shadow_release_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    TK_SIM_EACH(l, lanes) {
        if (s->fenced && s->fenced[tk_sim_member(w, l)].valid) {
            make_valid(s, &s->point[point]);
            join(s, &s->point[point], &s->fenced[tk_sim_member(w, l)]);
        }
    }
}

void tk_sim_shadow_acquire_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    make_flags(s);
    TK_SIM_EACH(l, s->point[point].valid ? lanes : 0) {
        make_valid(s, &s->seen[tk_sim_member(w, l)]);
        join(s, &s->seen[tk_sim_member(w, l)], &s->point[point]);
    }
}

// ---- Cells

static bool exists(const struct tk_sim_shadow *s, record r) { return r.epoch >= s->first; }

static bool ordered(const struct tk_sim_shadow *s, record r, uint32_t thread) {
    bool own = r.whole ? r.thread / TK_SIM_LANES == thread / TK_SIM_LANES : r.thread == thread;
    if (r.epoch < s->epoch || own) {
        return true;
    }
    const row *k = row_of(s, thread);
    bool known = k->valid && k->known[r.thread] >= r.clock;
    for (uint32_t l = 1; k->valid && r.whole && !known && l < TK_SIM_LANES; l++) {
        known = k->known[r.thread + l] >= r.clock;
    }
    return known;
}

typedef struct finding {
    const char *what; // NULL: nothing
    record other;
} finding;

static const record no_record;

// What a read must come after.
static finding look(const struct tk_sim_shadow *s, const cell *c, record me) {
    if (!exists(s, c->write)) {
        return (finding){"reads", no_record};
    }
    if (!ordered(s, c->write, me.thread) && !(c->write.atomic && me.atomic)) {
        return (finding){"wrote", c->write};
    }
    return (finding){NULL, me};
}

static finding check_read(const struct tk_sim_shadow *s, cell *c, record me) {
    finding f = look(s, c, me);
    if (!f.what) {
        bool first = !exists(s, c->read[0]) || ordered(s, c->read[0], me.thread);
        c->read[first ? 0 : 1] = me;
    }
    return f;
}

static finding check_write(const struct tk_sim_shadow *s, cell *c, record me, bool same) {
    bool written = exists(s, c->write);
    same = same && written;
    if (written && !same && !ordered(s, c->write, me.thread) && !(c->write.atomic && me.atomic)) {
        return (finding){"wrote", c->write};
    }
    for (unsigned k = 0; k < CELL - 1; k++) {
        record r = c->read[k];
        if (!same && exists(s, r) && !ordered(s, r, me.thread) && !(r.atomic && me.atomic)) {
            return (finding){"read", r};
        }
    }
    c->write = me;
    memset(c->read, 0, sizeof c->read);
    return (finding){NULL, me};
}

static finding check_cell(const struct tk_sim_shadow *s, cell *c, record me, tk_sim_access access,
                          bool same) {
    if (access == TK_SIM_READ) {
        return check_read(s, c, me);
    }
    if (access == TK_SIM_ATOMIC && !exists(s, c->write)) {
        return (finding){"reads", no_record};
    }
    return check_write(s, c, me, same && access == TK_SIM_WRITE);
}

static cell *bytes_of(struct tk_sim_shadow *s, uint32_t word) {
    if (!s->byte) {
        s->byte = TK_NEW_ARRAY(s->arena, cell, (size_t)s->nword * 4 + 4);
    }
    cell *b = &s->byte[(size_t)word * 4];
    if (!s->split[word]) {
        for (unsigned k = 0; k < 4; k++) {
            b[k] = s->word[word];
        }
        s->split[word] = true;
    }
    return b;
}

static void report(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                   tk_sim_access access, const finding *f) {
    const char *does = access == TK_SIM_READ    ? "reads"
                       : access == TK_SIM_WRITE ? "writes"
                                                : "updates";
    const char *what = tk_sim_shared_text(w->cluster, offset);
    if (f->other.epoch == 0) {
        tk_sim_fail(w, i, lane, "uninitialised", "%s %s, which nobody has written", does, what);
        return;
    }
    const char *who = tk_sim_member_text(w->cluster, f->other.thread);
    tk_sim_fail(w, i, lane, "race", "%s %s, which %s %s, and nothing orders the two", does, what,
                who, f->what);
    tk_sim_fail_note(w->grid, &w->code[f->other.inst], "%s %s it here", who, f->what);
}

static record record_of(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t thread) {
    const struct tk_sim_shadow *s = w->cluster->shadow;
    return (record){.epoch = s->epoch & 0xffff,
                    .clock = s->clock[thread] & 0x3fffu,
                    .thread = thread & 0x7fff,
                    .inst = tk_sim_index(w, i) & 0x1ffff};
}

bool tk_sim_shadow_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                          uint32_t bytes, tk_sim_access access, bool same_value) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint32_t thread = tk_sim_member(w, lane);
    record me = record_of(w, i, thread);
    me.atomic = access == TK_SIM_ATOMIC || i->strong;
    s->crossed = s->crossed || tk_sim_block_at(w->cluster, offset) != w->block;
    for (uint32_t at = offset, end = offset + bytes; at < end;) {
        uint32_t word = at / 4;
        bool whole = at % 4 == 0 && end - at >= 4 && !s->split[word];
        cell *c = whole ? &s->word[word] : &bytes_of(s, word)[at % 4];
        finding f = check_cell(s, c, me, access, same_value);
        if (f.what) {
            report(w, i, lane, at, access, &f);
            return false;
        }
        at += whole ? 4 : 1;
    }
    return true;
}

// ---- Copies that tell an mbarrier

static uint32_t agent_of(const struct tk_sim_shadow *s, uint32_t mbarrier) {
    return s->threads - AGENTS + mbarrier % AGENTS;
}

void tk_sim_shadow_copy(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t mbarrier,
                        uint32_t offset, uint32_t bytes, bool writes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, agent_of(s, mbarrier));
    for (uint32_t at = offset; at < offset + bytes; at++) {
        bool split = s->split[at / 4];
        cell *c = split ? &bytes_of(s, at / 4)[at % 4] : &s->word[at / 4];
        if (writes) {
            c->write = me;
            memset(c->read, 0, sizeof c->read);
        } else {
            c->read[exists(s, c->read[0])] = me;
        }
        at += split ? 0 : 3 - at % 4;
    }
}

void tk_sim_shadow_told(tk_sim_cluster *c, uint32_t mbarrier, uint32_t point) {
    struct tk_sim_shadow *s = c->shadow;
    uint32_t agent = agent_of(s, mbarrier);
    make_valid(s, &s->point[point]);
    s->point[point].known[agent] = s->clock[agent];
    tick(s, agent / TK_SIM_LANES, 1u << agent % TK_SIM_LANES);
}

// ---- Reads by a warp as a whole

bool tk_sim_shadow_look(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                        uint32_t bytes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, tk_sim_member(w, lane));
    for (uint32_t at = offset; at < offset + bytes; at++) {
        const cell *c = s->split[at / 4] ? &bytes_of(s, at / 4)[at % 4] : &s->word[at / 4];
        finding f = look(s, c, me);
        if (f.what) {
            report(w, i, lane, at, TK_SIM_READ, &f);
            return false;
        }
        at += s->split[at / 4] ? 0 : 3 - at % 4;
    }
    return true;
}

void tk_sim_shadow_together(const tk_sim_warp *w) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    uint16_t *clock = &s->clock[w->number * TK_SIM_LANES], most = 0;
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        most = clock[l] > most ? clock[l] : most;
    }
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        s->clocked = s->clocked || clock[l] != most;
        clock[l] = most;
    }
}

void tk_sim_shadow_read_whole(tk_sim_warp *w, const tk_sim_inst *i, uint32_t offset,
                              uint32_t bytes) {
    struct tk_sim_shadow *s = w->cluster->shadow;
    record me = record_of(w, i, tk_sim_member(w, 0));
    me.whole = 1;
    for (uint32_t at = offset; at < offset + bytes; at++) {
        cell *c = s->split[at / 4] ? &bytes_of(s, at / 4)[at % 4] : &s->word[at / 4];
        bool first = !exists(s, c->read[0]) || ordered(s, c->read[0], me.thread);
        c->read[first ? 0 : 1] = me;
        at += s->split[at / 4] ? 0 : 3 - at % 4;
    }
}

// ---- The end of a block

// Whether the record is of a thread of another block, and no thread of this one knows that it is
// done.
static bool outlives(const struct tk_sim_shadow *s, const tk_sim_block *b, const row *past,
                     record r) {
    bool agent = r.thread >= s->threads - AGENTS;
    bool other = exists(s, r) && !agent && (uint32_t)r.thread / TK_SIM_LANES / b->nwarp != b->rank;
    return other && r.epoch == s->epoch && past->known[r.thread] < r.clock;
}

static const record *find_outliving(const struct tk_sim_shadow *s, const tk_sim_block *b,
                                    const row *past, const cell *c) {
    for (unsigned k = 0; k < CELL - 1; k++) {
        if (outlives(s, b, past, c->read[k])) {
            return &c->read[k];
        }
    }
    return outlives(s, b, past, c->write) ? &c->write : NULL;
}

bool tk_sim_shadow_end(tk_sim_block *b) {
    struct tk_sim_shadow *s = b->cluster->shadow;
    if (!s->crossed) {
        return true;
    }
    row past = {NULL, false};
    make_valid(s, &past);
    for (uint32_t k = 0; k < b->nwarp; k++) {
        gather_past(s, b->warp[k].number, ~0u, &past);
    }
    uint32_t first = b->rank * (b->cluster->stride / 4), n = (b->grid->shared_bytes + 3) / 4;
    for (uint32_t word = first; word < first + n; word++) {
        for (unsigned k = 0; k < (s->split[word] ? 4u : 1u); k++) {
            const cell *c = s->split[word] ? &s->byte[(size_t)word * 4 + k] : &s->word[word];
            const record *r = find_outliving(s, b, &past, c);
            if (r) {
                tk_sim_warp *w = tk_sim_warp_of(b->cluster, r->thread / TK_SIM_LANES);
                tk_sim_fail(w, &w->code[r->inst], r->thread % TK_SIM_LANES, "ended",
                            "accesses %s, and nothing orders this before the end of that block",
                            tk_sim_shared_text(b->cluster, word * 4));
                return false;
            }
        }
    }
    return true;
}
