// SPDX-License-Identifier: Apache-2.0
// What runs by itself: bulk copies between global and shared memory or between the blocks of a
// cluster, tensor copies, stores to another block, arrivals that wait for copies. Each takes effect
// at a random moment after its issue; seed 0: when no warp can go on; odd seeds: as late as its
// waits allow, which last until then.
//
// A copy to shared memory ends by telling an mbarrier that its bytes have come. One to global
// memory ends where its thread waits for its group; until then nobody may write what it reads.
// Where the thread waits for its reads alone, what was read is kept, and is in global memory at a
// random moment of its own: at a wait for all of it, or when the block ends, at the latest. A block
// must not end before the copies that use its memory. Copies see what threads have written to
// shared memory only through fence.proxy.async between: by the writer, by the thread that issues
// the copy, or by another one on the way; also where they only overwrite it.
#include "sim/machine.h"
#include "sim/tensor.h"

typedef struct copy {
    tk_sim_bulk at;
    // To global memory:
    bool done;         // it has taken effect: only the wait is missing
    bool read;         // its thread has waited for its reads
    struct kept *kept; // what it read, where it has not taken effect since
} copy;

// Bytes from `from` of shared memory on.
typedef struct kept {
    struct kept *next; // unused ones
    uint32_t room, from;
    unsigned char *bytes;
} kept;

struct tk_sim_bulks {
    tk_arena *arena;
    TK_VEC(copy) copies;
    kept *unused;
    uint32_t threads;
    uint32_t *group; // [threads] groups that were committed
};

struct tk_sim_bulks *tk_sim_bulk_make(tk_arena *arena, uint32_t nwarp) {
    struct tk_sim_bulks *b = TK_NEW(arena, struct tk_sim_bulks);
    b->arena = arena;
    b->threads = nwarp * TK_SIM_LANES;
    b->group = TK_NEW_ARRAY(arena, uint32_t, b->threads);
    return b;
}

static void drop_kept(struct tk_sim_bulks *b, kept *k) {
    if (k) {
        k->next = b->unused;
        b->unused = k;
    }
}

void tk_sim_bulk_begin(struct tk_sim_bulks *b) {
    while (b->copies.n) { // those of a run that ended in a fault
        drop_kept(b, b->copies.at[--b->copies.n].kept);
    }
    memset(b->group, 0, b->threads * sizeof *b->group);
}

uint32_t tk_sim_bulk_piece(const tk_sim_bulk *x, uint32_t from, uint32_t k, uint32_t *n) {
    if (!x->tensor || tk_sim_tensor_whole(x->tensor)) {
        *n = x->bytes - k;
        return from + k;
    }
    *n = 16;
    return tk_sim_tensor_place(x->tensor, from, k);
}

// What it writes or reads is in flight, or not any more.
static void mark(const tk_sim_bulk *x, uint32_t from, tk_sim_flight_kind kind, bool flies) {
    for (uint32_t k = 0, n; k < x->bytes; k += n) {
        uint32_t offset = tk_sim_bulk_piece(x, from, k, &n);
        tk_sim_async_mark(x->warp->cluster, offset, n, flies ? x->inst : NULL, kind);
    }
}

static void mark_all(const tk_sim_bulk *x, bool flies) {
    if (x->kind == TK_SIM_BULK_STORE) {
        mark(x, x->offset, TK_SIM_FLIGHT_READS, flies);
    } else if (x->kind != TK_SIM_BULK_ARRIVE) {
        mark(x, x->offset, x->reduces ? TK_SIM_FLIGHT_ADDS : TK_SIM_FLIGHT_WRITES, flies);
    }
    if (x->kind == TK_SIM_BULK_MOVE) {
        mark(x, x->from, TK_SIM_FLIGHT_READS, flies);
    }
}

// What a store has read, its thread knows of now. False after a fault.
static bool know_read(const tk_sim_bulk *x) {
    for (uint32_t k = 0, n; k < x->bytes; k += n) {
        uint32_t offset = tk_sim_bulk_piece(x, x->offset, k, &n);
        if (!tk_sim_shadow_access(x->warp, x->inst, x->lane, offset, n, TK_SIM_READ, false)) {
            return false;
        }
    }
    return true;
}

void tk_sim_bulk_issue(tk_sim_bulk x) {
    struct tk_sim_bulks *b = x.warp->cluster->bulk;
    x.group = b->group[tk_sim_member(x.warp, x.lane)];
    mark_all(&x, true);
    x.warp->grid->count[tk_sim_index(x.warp, x.inst)].async_bytes += x.bytes;
    copy y = {.at = x};
    tk_vec_push(b->arena, &b->copies, y);
}

static void forget(struct tk_sim_bulks *b, uint32_t k) {
    memmove(&b->copies.at[k], &b->copies.at[k + 1], (b->copies.n - k - 1) * sizeof *b->copies.at);
    b->copies.n--;
}

// ---- Bytes

// Each element of `to` becomes what the instruction makes of it and the one of `from`.
static void reduce(const tk_sim_bulk *x, unsigned char *to, const unsigned char *from, uint32_t n) {
    uint32_t size = tk_sim_types[x->type].bits / 8u;
    for (uint32_t k = 0; k < n; k += size) {
        uint64_t old = 0, y = 0;
        memcpy(&old, to + k, size);
        memcpy(&y, from + k, size);
        old = tk_sim_combine(x->inst, x->type, old, y, TK_SIM_ADDER_COPY);
        memcpy(to + k, &old, size);
    }
}

static void put(const tk_sim_bulk *x, unsigned char *to, const unsigned char *from, uint32_t n) {
    if (x->reduces) {
        reduce(x, to, from, n);
    } else {
        memcpy(to, from, n);
    }
}

// A piece of 16 bytes of a row of the box, `at` bytes from the row's begin, of which the elements
// from `from` up to `to` lie in the tensor. `there`: element `from` in global memory.
typedef struct part {
    uint32_t from, to;
    unsigned char *there;
} part;

static part part_of(const tk_sim_tensor *t, const tk_sim_tensor_row *r, uint32_t at) {
    uint32_t first = at / t->element, end = first + 16 / t->element, last = r->first + r->n;
    uint32_t from = first > r->first ? first : r->first, to = end < last ? end : last;
    part p = {from, to > from ? to : from, NULL};
    p.there = (unsigned char *)(uintptr_t)(r->address + (uint64_t)(from - r->first) * t->element);
    p.from -= first;
    p.to -= first;
    return p;
}

static void load_part(const tk_sim_tensor *t, part p, unsigned char *to) {
    uint32_t n = 16 / t->element;
    if (p.from < p.to) {
        memcpy(to + p.from * t->element, p.there, (p.to - p.from) * t->element);
    }
    for (uint32_t e = 0; e < n; e++) {
        tk_sim_tensor_convert(t, to + e * t->element, e >= p.from && e < p.to);
    }
}

// What lies in the tensor is copied; what does not is filled, or left out.
static void load_tensor(const tk_sim_bulk *x, unsigned char *shared) {
    const tk_sim_tensor *t = x->tensor;
    for (uint32_t k = 0; k < tk_sim_tensor_rows(t); k++) {
        tk_sim_tensor_row r;
        tk_sim_tensor_row_at(t, x->at, k, &r);
        for (uint32_t b = 0; b < t->count[0] * t->element; b += 16) {
            load_part(t, part_of(t, &r, b),
                      shared + tk_sim_tensor_place(t, x->offset, r.offset + b));
        }
    }
}

// Byte o of shared memory is bytes[o - from].
static void store_tensor(const tk_sim_bulk *x, const unsigned char *bytes, uint32_t from) {
    const tk_sim_tensor *t = x->tensor;
    for (uint32_t k = 0; k < tk_sim_tensor_rows(t); k++) {
        tk_sim_tensor_row r;
        tk_sim_tensor_row_at(t, x->at, k, &r);
        for (uint32_t b = 0; b < t->count[0] * t->element; b += 16) {
            part p = part_of(t, &r, b);
            if (p.from < p.to) {
                uint32_t at = tk_sim_tensor_place(t, x->offset, r.offset + b) - from;
                put(x, p.there, bytes + at + p.from * t->element, (p.to - p.from) * t->element);
            }
        }
    }
}

static void store(const copy *c) {
    const tk_sim_bulk *x = &c->at;
    const unsigned char *bytes = c->kept ? c->kept->bytes : x->warp->cluster->shared;
    const uint32_t from = c->kept ? c->kept->from : 0;
    if (x->tensor) {
        store_tensor(x, bytes, from);
    } else {
        put(x, x->global, bytes + x->offset - from, x->bytes);
    }
}

// What a store reads, for it to write later. A swizzle stays within 128 bytes.
static kept *keep(struct tk_sim_bulks *b, const tk_sim_bulk *x) {
    enum { LINE = 128 };
    const uint32_t from = x->offset / LINE * LINE;
    const uint32_t to = (x->offset + x->bytes + LINE - 1) / LINE * LINE;
    const uint32_t all = x->warp->cluster->nblock * x->warp->cluster->stride;
    const uint32_t n = (to < all ? to : all) - from;
    kept *k = b->unused;
    if (k) {
        b->unused = k->next;
    } else {
        k = TK_NEW(b->arena, kept);
    }
    if (k->room < n) {
        k->bytes = TK_NEW_ARRAY(b->arena, unsigned char, n);
        k->room = n;
    }
    k->from = from;
    memcpy(k->bytes, x->warp->cluster->shared + from, n);
    return k;
}

// ---- Taking effect: faults are in the run's result

// What others find of it: an access that whoever waits at the mbarrier knows of.
static void note_copy(const tk_sim_bulk *x, const tk_sim_mbarrier *m, uint32_t from,
                      tk_sim_access access) {
    const tk_sim_cluster *c = x->warp->cluster;
    tk_sim_done by = tk_sim_shadow_bulk(c, (uint32_t)(m - c->mbarrier.at));
    tk_sim_begin proxy = tk_sim_bulk_proxy(x);
    for (uint32_t k = 0, n; k < x->bytes; k += n) {
        uint32_t offset = tk_sim_bulk_piece(x, from, k, &n);
        tk_sim_shadow_copy(x->warp, x->inst, by, offset, n, access, proxy);
    }
}

static void move_bytes(const tk_sim_bulk *x) {
    unsigned char *shared = x->warp->cluster->shared;
    if (x->tensor) {
        load_tensor(x, shared);
        return;
    }
    put(x, shared + x->offset,
        x->kind == TK_SIM_BULK_MOVE    ? shared + x->from
        : x->kind == TK_SIM_BULK_VALUE ? x->value
                                       : x->global,
        x->bytes);
}

// The bytes have come to shared memory.
static void arrive(const tk_sim_bulk *x) {
    tk_sim_warp *w = x->warp;
    tk_sim_mbarrier *m = tk_sim_mbarrier_at(w, x->inst, x->lane, x->barrier);
    if (!m) {
        return;
    }
    mark_all(x, false);
    note_copy(x, m, x->offset, x->reduces ? TK_SIM_ATOMIC : TK_SIM_WRITE);
    if (x->kind == TK_SIM_BULK_MOVE) {
        note_copy(x, m, x->from, TK_SIM_READ);
    }
    move_bytes(x);
    if (x->map) {
        uint32_t index = (uint32_t)(m - w->cluster->mbarrier.at);
        tk_sim_maps_loaded(w->cluster, x->inst, x->map, index,
                           tk_sim_point_of_mbarrier(w->cluster, index, m->phase));
    }
    tk_sim_mbarrier_copied(w, x->inst, x->lane, m, x->bytes);
}

// The thread's copies so far are done.
static void arrive_copies(const tk_sim_bulk *x) {
    tk_sim_warp *w = x->warp;
    tk_sim_mbarrier *m = tk_sim_mbarrier_at(w, x->inst, x->lane, x->barrier);
    if (m) {
        tk_sim_async_finish(w, x->lane, x->serial);
        tk_sim_mbarrier_arrive_kept(w, x->inst, x->lane, m, x->serial, x->kept);
    }
}

static void take_effect(tk_sim_bulk x) {
    switch (x.kind) {
    case TK_SIM_BULK_LOAD:
    case TK_SIM_BULK_MOVE:
    case TK_SIM_BULK_VALUE:
        arrive(&x);
        break;
    case TK_SIM_BULK_ARRIVE:
        arrive_copies(&x);
        break;
    case TK_SIM_BULK_STORE: // see tk_sim_bulk_step
        break;
    }
}

static void step_store(tk_sim_cluster *c, uint32_t at) {
    struct tk_sim_bulks *b = c->bulk;
    copy *y = &b->copies.at[at];
    store(y);
    drop_kept(b, y->kept);
    y->kept = NULL;
    y->done = true;
    if (y->read) {
        forget(b, at);
    }
    if (tk_sim_late(c->grid)) { // its thread may wait for it
        tk_sim_wake(c);
    }
}

// What the other threads of the warp have the same instruction do at the same mbarrier; each thread
// for itself would hold the warp's arrival up for as many waits as it has threads.
static void step_others(struct tk_sim_bulks *b, const tk_sim_bulk *x) {
    for (uint32_t k = 0; k < b->copies.n && !x->warp->grid->result->fault.id;) {
        const tk_sim_bulk y = b->copies.at[k].at;
        if (y.kind == x->kind && y.warp == x->warp && y.inst == x->inst &&
            y.barrier == x->barrier) {
            forget(b, k);
            take_effect(y);
        } else {
            k++;
        }
    }
}

bool tk_sim_bulk_step(tk_sim_cluster *c) {
    struct tk_sim_bulks *b = c->bulk;
    uint32_t n = b->copies.n, from = n ? (uint32_t)tk_sim_random(c->grid, n) : 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = (from + k) % n;
        if (b->copies.at[at].done) {
            continue;
        }
        tk_sim_bulk x = b->copies.at[at].at;
        if (x.kind == TK_SIM_BULK_STORE) {
            step_store(c, at);
        } else {
            forget(b, at);
            take_effect(x);
            if (x.kind == TK_SIM_BULK_ARRIVE && tk_sim_late(c->grid)) {
                step_others(b, &x);
            }
        }
        return true;
    }
    return false;
}

// ---- Groups

void tk_sim_bulk_commit(tk_sim_warp *w, uint32_t lanes) {
    TK_SIM_EACH(l, lanes) { w->cluster->bulk->group[tk_sim_member(w, l)]++; }
}

// Its thread has waited for what it reads. False after a fault.
static bool end_read(struct tk_sim_bulks *b, copy *c, bool writes_later) {
    c->kept = writes_later ? keep(b, &c->at) : NULL;
    c->read = true;
    mark_all(&c->at, false);
    if (c->at.map) {
        tk_sim_maps_read(c->at.warp, c->at.inst, c->at.lane, c->at.map);
    }
    return know_read(&c->at);
}

// Whether a wait of the lane for all but its `most` last groups is for this copy.
static bool is_meant(const copy *c, const tk_sim_warp *w, uint32_t lane, uint32_t most) {
    return c->at.warp == w && c->at.lane == lane && c->at.kind == TK_SIM_BULK_STORE &&
           (uint64_t)c->at.group + most < w->cluster->bulk->group[tk_sim_member(w, lane)];
}

bool tk_sim_bulk_lasts(const tk_sim_warp *w, uint32_t lane, uint32_t most) {
    const struct tk_sim_bulks *b = w->cluster->bulk;
    bool any = false;
    for (uint32_t k = 0; tk_sim_late(w->grid) && k < b->copies.n && !any; k++) {
        any = !b->copies.at[k].done && is_meant(&b->copies.at[k], w, lane, most);
    }
    return any;
}

bool tk_sim_bulk_wait(tk_sim_warp *w, uint32_t lane, uint32_t most, bool reads) {
    struct tk_sim_bulks *b = w->cluster->bulk;
    for (uint32_t k = 0; k < b->copies.n;) {
        copy *c = &b->copies.at[k];
        if (!is_meant(c, w, lane, most)) {
            k++;
            continue;
        }
        if (!c->read && !end_read(b, c, reads && !c->done)) {
            return false;
        }
        if (reads && !c->done) {
            k++;
            continue;
        }
        if (!c->done) {
            store(c);
            drop_kept(b, c->kept);
        }
        forget(b, k);
    }
    if (!reads) {
        tk_sim_maps_waited(w, lane);
    }
    return true;
}

const tk_sim_inst *tk_sim_bulk_map_user(const tk_sim_grid *g, uint64_t address) {
    for (uint32_t k = 0; k < g->nresident; k++) {
        const struct tk_sim_bulks *b = g->resident[k].bulk;
        for (uint32_t j = 0; b && g->resident[k].running && j < b->copies.n; j++) {
            const copy *y = &b->copies.at[j];
            if (!y->read && y->at.tensor && y->at.map == address) {
                return y->at.inst;
            }
        }
    }
    return NULL;
}

// What stores of the block have read and not yet written.
static void write_kept(tk_sim_block *block) {
    struct tk_sim_bulks *b = block->cluster->bulk;
    for (uint32_t k = 0; k < b->copies.n;) {
        if (b->copies.at[k].read && b->copies.at[k].at.warp->block == block) {
            step_store(block->cluster, k);
        } else {
            k++;
        }
    }
}

bool tk_sim_bulk_end(tk_sim_block *block) {
    const tk_sim_cluster *c = block->cluster;
    write_kept(block);
    for (uint32_t k = 0; k < c->bulk->copies.n; k++) {
        const tk_sim_bulk *x = &c->bulk->copies.at[k].at;
        if (c->bulk->copies.at[k].read) {
            continue; // of another block, and it uses its memory no more
        }
        bool here = tk_sim_block_at(c, x->offset) == block;
        bool reads = x->kind == TK_SIM_BULK_STORE
                         ? here
                         : x->kind == TK_SIM_BULK_MOVE && tk_sim_block_at(c, x->from) == block;
        if ((reads || here) && x->kind != TK_SIM_BULK_ARRIVE) {
            tk_sim_fail(x->warp, x->inst, x->lane, "unfinished",
                        "the block ends while this copy %s its shared memory; nobody has waited "
                        "for it",
                        reads ? "reads" : "writes");
            return false;
        }
    }
    return true;
}
