// SPDX-License-Identifier: Apache-2.0
// What the parts of the shadow share: order.c (clocks, what each thread knows), flags.c (strong
// accesses), shadow.c (the cells of memory).
//
// When. A meeting of all threads (of a block that is alone in its cluster) begins a new epoch: what
// a thread did in an earlier one is ordered before everything that follows. Within an epoch each
// thread has a clock, which goes on whenever the thread hands over its past (release), and a row:
// how far it knows the clock of each other thread. An access is ordered before a thread's next one
// if the thread knows its clock. The threads of a warp share a row until they synchronise one by
// one, and those that do so together share one again. Threads and offsets are those of the cluster.
//
// Agents. Copies that tell an mbarrier access memory as an agent with a clock of its own: one for
// each mbarrier that bulk copies tell, one for the cp.async of each thread. Whoever has waited
// there knows of them, and nobody else, the thread that issued them included. No meeting ends what
// has not been waited for, so that agents' clocks go through all epochs.
//
// Proxies. A copy of the async proxy must come after what threads have written, with a
// fence.proxy.async between, by whomever: on the way from the one to the other. So a row also has
// how far the clocks of the others lie behind such a fence. One with .shared::cta is of the memory
// of its thread's own block alone. What a thread did in its own block's memory is kept apart from
// what it did elsewhere: the latter for each pair of a warp and a block that it reaches.
#ifndef TK_SIM_ORDER_H
#define TK_SIM_ORDER_H

#include "sim/machine.h"

typedef struct tk_sim_agent {
    uint32_t known, proxied;
} tk_sim_agent;

typedef TK_VEC(tk_sim_agent) tk_sim_agents; // those beyond the end: 0

// How far the clock of a source of a tensor map is known, and how far that lies behind a release.
typedef struct tk_sim_source_known {
    uint32_t number, known, released;
} tk_sim_source_known;

typedef TK_VEC(tk_sim_source_known) tk_sim_sources; // by number; those that are not there: 0

typedef TK_VEC(uint32_t) tk_sim_clocks; // those beyond the end: 0

// A warp that has written to the memory of another block than its own.
typedef struct tk_sim_reach {
    uint32_t warp, block;
} tk_sim_reach;

typedef struct tk_sim_past {
    uint32_t *known;      // [threads], maybe of several pasts; NULL: not made yet
    uint32_t *proxied;    // [threads], likewise: of what they did in their own block's memory, what
                          // lies behind a fence; NULL: not made yet
    uint32_t **within;    // [block][threads]: how far it knows what they did in this block's
                          // memory, where that is further; NULL, each: not made yet
    tk_sim_clocks beyond; // [reach][lane]: likewise, of what they did in that of another block
    tk_sim_agents agent;  // counts beside what `valid` says
    tk_sim_sources source; // likewise
    tk_sim_clocks init;    // [mbarrier]: of which inits it knows by a fence.mbarrier_init alone
    bool valid;            // `known` is of this epoch; else nothing is known
    bool proxies;          // `proxied` is, likewise
    uint32_t parts;        // blocks for which `within` is, likewise; `valid` is where there are any
    uint32_t all_proxied;  // blocks in whose memory all of earlier epochs lies behind a fence
    uint32_t started;      // blocks, by rank; of rows of threads: see tk_sim_shadow
} tk_sim_past;

typedef struct tk_sim_flag {
    tk_sim_past past;
    uint32_t uses; // bytes that have it, threads of which it is the last fence
} tk_sim_flag;

typedef struct tk_sim_flag_word {
    uintptr_t at; // of memory, the address / 4; 0: the place is free
    uint32_t flag[4];
} tk_sim_flag_word;

struct tk_sim_shadow {
    tk_arena *arena;
    uint32_t nword, nwarp, threads, nblock;
    uint32_t stride;       // from one block's memory to the next one's
    uint32_t reserved;     // from there on in a block's memory all is written; 0: nothing is
    uint64_t epoch, first; // now; of this cluster
    // Memory: shadow.c.
    struct tk_sim_cell *word; // [nword]
    bool *split;              // [nword]
    struct tk_sim_cell *byte; // [nword * 4]; NULL until a word is split
    bool crossed;             // a thread has reached another block's memory
    // Order: order.c.
    uint32_t *clock;          // [threads]
    bool clocked;             // a clock is not 1, or a row is valid
    tk_sim_past *lane;        // [threads]
    TK_VEC(uint32_t *) spare; // rows that nobody has
    tk_sim_past *warp;        // [nwarp]
    TK_VEC(tk_sim_past) point;
    TK_VEC(uint32_t) bulk; // [mbarrier]: the clock of agent 2 * mbarrier
    uint32_t *copier;      // [threads]: agent of its copies, an odd number; 0: it has none
    uint32_t copiers;
    tk_sim_agents base;         // what all know of the agents since the last meeting
    tk_sim_sources base_source; // likewise of sources
    uint32_t *started;          // [threads]: blocks that it knows to run, by rank
    // Proxies.
    uint32_t *reach; // [warp][block]: the index of the pair + 1; 0: it has none
    TK_VEC(tk_sim_reach) reaches;
    tk_sim_clocks home;      // [agent]: the block in whose memory it writes
    uint32_t *proxied;       // [threads]: the clock at its last fence in this epoch; 0: none
    uint32_t *proxied_far;   // [threads]: likewise, of fences that are of all blocks' memory
    uint32_t proxies;        // blocks for whose memory there is a fence in this epoch
    uint64_t *last_proxied;  // [block]: the last epoch with one that is over; 0: none
    uint32_t *proxied_there; // [threads]: how far clocks of that epoch (of the thread's own block)
                             // were behind a fence at its end; what was before that epoch is
    tk_sim_clocks beyond_there; // [reach][lane]: likewise, of the epoch of that block
    // Words by which threads tell each other something, and pasts that are kept for later: flags.c.
    // A flag is an index into `flags` + 1; 0: none.
    tk_sim_flag_word *flag_word; // [flag_room], a hash table; flag_room is 0 or a power of 2
    uint32_t flag_room, flag_words;
    TK_VEC(tk_sim_flag) flags;
    TK_VEC(uint32_t) free; // flags
    tk_sim_past *seen; // [threads]: what relaxed accesses have found; acquired by the next fence
    uint32_t *fenced;  // [threads]: the flag of its last fence; released by relaxed accesses
    tk_sim_past all;   // of which a fence releases a part
};

// ---- order.c

void tk_sim_order_begin(struct tk_sim_shadow *s); // of a cluster
void tk_sim_order_clear(tk_sim_past *r);          // nothing is known
bool tk_sim_order_empty(const tk_sim_past *r);    // nothing is
void tk_sim_order_forget(tk_sim_past *r);         // nothing of threads is
void tk_sim_order_join(struct tk_sim_shadow *s, tk_sim_past *to, const tk_sim_past *from);
// What the thread knows; and the same as a row that is the thread's alone.
const tk_sim_past *tk_sim_order_row(const struct tk_sim_shadow *s, uint32_t thread);
tk_sim_past *tk_sim_order_own_row(struct tk_sim_shadow *s, uint32_t thread);
// The past of these lanes is added to a row; their clocks go on.
void tk_sim_order_gather(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes, tk_sim_past *to);
// Of the lane's past, what was done in the memory of its own block.
void tk_sim_order_gather_own(const tk_sim_warp *w, uint32_t lane, tk_sim_past *to);
void tk_sim_order_tick(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes);
tk_sim_past *tk_sim_order_point(struct tk_sim_shadow *s, uint32_t point);
// The row knows of an mbarrier's init with this number.
void tk_sim_order_init(struct tk_sim_shadow *s, tk_sim_past *to, uint32_t mbarrier, uint32_t init);
// The warp has written to the memory of a block that is not its own.
void tk_sim_order_reach(struct tk_sim_shadow *s, uint32_t warp, uint32_t block);
static inline uint32_t tk_sim_order_block(const struct tk_sim_shadow *s, uint32_t warp) {
    return warp / (s->nwarp / s->nblock);
}
// How far the clock of a thread is behind a fence for a block's memory: as a row knows, and by its
// own fences; at the end of the last epoch with a fence for that memory.
uint32_t tk_sim_order_fenced(const struct tk_sim_shadow *s, const tk_sim_past *r, uint32_t thread,
                             uint32_t block);
uint32_t tk_sim_order_own_fence(const struct tk_sim_shadow *s, uint32_t thread, uint32_t block);
uint32_t tk_sim_order_fenced_there(const struct tk_sim_shadow *s, uint32_t thread, uint32_t block);
// How far a row knows what the threads did in a block's memory, beside `known`; NULL: no further.
static inline const uint32_t *tk_sim_order_within(const tk_sim_past *r, uint32_t block) {
    return block < 32 && r->parts >> block & 1 ? r->within[block] : NULL;
}
static inline tk_sim_agent tk_sim_order_agent(const tk_sim_agents *a, uint32_t agent) {
    return agent < a->n ? a->at[agent] : (tk_sim_agent){0, 0};
}

// ---- flags.c

void tk_sim_flags_begin(struct tk_sim_shadow *s);  // of a cluster
void tk_sim_flags_forget(struct tk_sim_shadow *s); // a new epoch begins
// What relaxed accesses of these lanes have found: the next fence acquires it.
void tk_sim_flags_seen(struct tk_sim_shadow *s, uint32_t warp, uint32_t lanes,
                       const tk_sim_past *past);
// What was before the thread's last fence, added to a row.
void tk_sim_flags_fenced(struct tk_sim_shadow *s, uint32_t thread, tk_sim_past *to);
// The same of sources alone: before the last fence (NULL: there is none), and found.
const tk_sim_sources *tk_sim_flags_fenced_sources(const struct tk_sim_shadow *s, uint32_t thread);
tk_sim_sources *tk_sim_flags_seen_sources(struct tk_sim_shadow *s, uint32_t thread);

// ---- maps.c

void tk_sim_sources_join(tk_arena *arena, tk_sim_sources *to, const tk_sim_sources *from);
// A strong access of global memory: the sources that are handed over by it, and found.
void tk_sim_maps_flag(const tk_sim_warp *w, uint32_t lane, const unsigned char *p, uint32_t bytes,
                      tk_sim_access access, bool acquires, bool releases);

#endif
