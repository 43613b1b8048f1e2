// SPDX-License-Identifier: Apache-2.0
// The running machine: grid, blocks, warps, and what executors call.
//
// Blocks. The blocks of a cluster run at the same time and can reach each other's shared memory,
// which lies in one piece: an offset is from the begin of the cluster's. A block without a cluster
// is the only one of its own. Some clusters are resident at a time (one where the seed is 0); the
// schedule (schedule.c) picks a cluster, a warp of it, and runs the warp for some instructions.
//
// Warps. Each of the 32 threads has its own pc. What runs is the group of runnable threads that
// stand at the smallest pc; those that took different ways wait for each other where these come
// together (reconverge.c). A thread that must wait for others stays at its instruction with its bit
// set in `waiting`; whoever completes the meeting moves all of them on.
//
// Order. Two accesses of one byte of shared memory are ordered if a chain of synchronisations leads
// from one to the other: order.c keeps the clocks, shadow.c finds what is not ordered.
#ifndef TK_SIM_MACHINE_H
#define TK_SIM_MACHINE_H

#include "sim/program.h"

#include <string.h>

enum {
    TK_SIM_LANES = 32,
    TK_SIM_MAX_WARPS = 32,
    TK_SIM_MAX_THREADS = 1024,
    TK_SIM_BARRIERS = 16,
    TK_SIM_SMS = 132,         // what %nsmid says; blocks take turns
    TK_SIM_SM_THREADS = 2048, // what one of them has for its blocks
    TK_SIM_SM_BLOCKS = 32,
};

typedef enum tk_sim_wait {
    TK_SIM_WAIT_NONE,
    TK_SIM_WAIT_WARP,      // for other threads of the warp, at the same instruction
    TK_SIM_WAIT_BARRIER,   // for barrier `number` of the block
    TK_SIM_WAIT_CLUSTER,   // for the cluster's barrier
    TK_SIM_WAIT_REGISTERS, // for registers, by setmaxnreg.inc: executed again when there are more
    TK_SIM_WAIT_ASYNC      // for asynchronous work: executed again when something has changed
} tk_sim_wait;

// What a thread has done so far.
typedef struct tk_sim_moment {
    uint64_t epoch; // 0: there is none
    uint32_t thread, clock;
} tk_sim_moment;

// Threads that have parted, and where those of them that have not ended meet again.
typedef struct tk_sim_meeting {
    uint32_t at, lanes;
} tk_sim_meeting;

typedef struct tk_sim_warp {
    struct tk_sim_block *block;
    struct tk_sim_cluster *cluster;
    struct tk_sim_grid *grid;
    const tk_sim_inst *code;
    uint64_t (*reg)[TK_SIM_LANES]; // [slot]
    uint32_t *pred;                // [slot]
    uint32_t index, number;        // in the block; in the cluster
    uint32_t alive;                // threads that have not ended
    uint32_t waiting;              // of these, those that wait
    uint32_t came, phase; // arrived at the cluster's barrier, and in which of its phases, by parity
    uint32_t pc[TK_SIM_LANES];
    uint8_t wait[TK_SIM_LANES];                            // tk_sim_wait
    uint8_t wait_number[TK_SIM_LANES];                     // of the barrier
    uint32_t met_at[TK_SIM_LANES], met_with[TK_SIM_LANES]; // the last meeting by a member mask
    uint32_t target;                                       // set by an executor that answers BRANCH
    uint32_t joined;                                       // set by an executor that answers JOINED
    uint32_t carry;                                        // of add.cc and the like, a bit a lane
    bool yields;                                           // the warp gives way to others
    uint8_t begins;             // tk_sim_begin: a copy, that will do what is checked now
    bool at_barrier;            // what it accesses is an mbarrier
    bool gives_up;              // a wait for an mbarrier has taken its time
    struct tk_sim_calls *calls; // [lane], of exec_call.c; NULL: the module has no functions
    uint32_t registers;         // a thread of it may use: setmaxnreg
    uint32_t resizes;           // how often it has executed that
    tk_sim_moment resized[2];   // when it did so last, and before; by parity
    struct tk_sim_wgmma *wgmma; // wgmma.h; NULL: the module has none
    // reconverge.c: the meetings to come; who waits at one, since when, and for how many
    // instructions of the warp.
    tk_sim_meeting meeting[TK_SIM_LANES];
    uint32_t meetings, parked;
    uint64_t parked_at, parked_for;
    uint64_t steps, ran_at[TK_SIM_LANES]; // instructions; at which a thread ran last, or could not
    uint32_t lost_patience;               // how often they were let go as they had waited for long
    // The branch back of a polling loop that threads took last, in which state, after how many
    // changes, how often; those that sleep, and since how many changes, for only one ends their
    // loop.
    uint32_t spun_to, spun_at, spun_lanes, asleep;
    uint64_t spun_state, spun_changes, asleep_changes;
    bool spun_known;  // the state
    uint32_t napping; // threads that sleep until the grid's clock is nap_end
    uint64_t nap_end;
    uint32_t turns, last; // taken by the running group while others could run; where it stood
    // What progress.c knows: its state after so many changes of the grid, the threads that have run
    // since and the wait for an mbarrier among what they did (its index + 1), how often it was
    // compared and the instructions since, and that it came again.
    uint64_t mark, marked, unseen;
    uint32_t ran, polled, looks, most_looks;
    bool quiet;
} tk_sim_warp;

typedef struct tk_sim_barrier {
    uint32_t expected; // threads, in whole warps; 0: nobody has arrived
    uint32_t arrived;
    uint32_t came[TK_SIM_MAX_WARPS]; // threads of a warp that has not arrived as a whole
    bool counted;                    // a number of threads was given
} tk_sim_barrier;

typedef struct tk_sim_mbarrier { // in shared memory, at `offset`
    uint32_t offset, by;         // by: the thread of the cluster that initialised it
    uint32_t expected;           // arrivals of a phase
    uint32_t left;               // of this phase
    uint32_t phase;              // its number
    int64_t bytes;               // that are expected still
    uint32_t inits;              // so far, in this place
    bool valid;
    tk_sim_moment fenced; // by fence.mbarrier_init: whoever comes after it may tell copies of it
} tk_sim_mbarrier;

typedef struct tk_sim_block {
    struct tk_sim_grid *grid;
    struct tk_sim_cluster *cluster;
    uint64_t number;
    uint32_t at[3];       // ctaid
    uint32_t rank, in[3]; // in the cluster
    uint32_t nwarp, threads;
    tk_sim_warp *warp;     // [nwarp]
    unsigned char *shared; // address TK_SIM_SHARED_BASE is its begin
    unsigned char *local;  // [threads][local_bytes]
    tk_sim_barrier barrier[TK_SIM_BARRIERS];
    uint32_t spare; // registers that setmaxnreg.dec has given back, in sets of one warp
    struct tk_sim_warpgroup *warpgroup; // wgmma.h; NULL: the module has no such instructions
    uint32_t live;                      // warps with a thread that has not ended
    bool running;
} tk_sim_block;

typedef struct tk_sim_cluster {
    struct tk_sim_grid *grid;
    tk_sim_block *block;          // [nblock]
    uint32_t nblock, nwarp, live; // live: blocks that have not ended
    uint32_t stride;              // from one block's shared memory to the next one's
    unsigned char *shared;        // [nblock * stride]
    struct tk_sim_shadow *shadow;
    struct tk_sim_async *async;
    struct tk_sim_bulks *bulk;
    TK_VEC(tk_sim_mbarrier) mbarrier;
    uint32_t missing; // threads that its barrier waits for
    uint32_t phase;   // of its barrier
    uint32_t turn;    // the warp that runs next where the seed is 0
    bool running;
} tk_sim_cluster;

typedef struct tk_sim_grid {
    tk_arena *arena;
    const tk_sim_program *program;
    const tk_sim_entry *entry;
    const tk_sim_launch *launch;
    tk_sim_result *result;
    tk_sim_count *count; // [instruction]
    uint64_t clock;      // instructions of warps so far
    uint64_t random;     // state of the schedule
    uint32_t shared_bytes, local_bytes, local_stride;
    uint32_t reserved; // offset in a block of what lies below its shared memory; 0: it is not used
    tk_buf printed;
    unsigned char *params;
    uint32_t extent[3], cluster[3]; // blocks of the grid and of a cluster
    bool explicit_cluster;
    uint64_t clusters, started;   // of the grid
    uint32_t nresident, room;     // how many there may be
    uint32_t turn;                // the cluster that runs next where the seed is 0
    uint32_t naps;                // one of how many times that threads could nap they do; 0: never
    uint32_t able;                // a cluster that could go on when it was looked at
    tk_sim_cluster *resident;     // [room]
    uint64_t changes, seen, idle; // progress.c: all; when `idle` was 0; instructions since
    uint32_t quiet, judged;       // warps that are quiet since; how many to wait for
    const tk_sim_cluster *stuck;  // of which a deadlock is reported
    uint32_t unjudged;            // times that there were fewer
    unsigned char *module_global, *module_const;
    tk_sim_region *region; // sorted by address
    size_t nregion, last_region;
    TK_VEC(struct tk_sim_tensor *) tensors; // maps that were used, decoded
    struct tk_sim_maps *maps;               // those that were used or changed (maps.c)
} tk_sim_grid;

// ---- What executors use

// For each lane of a mask: TK_SIM_EACH(l, mask) { ... }
#define TK_SIM_EACH(l, mask)                                                                       \
    for (uint32_t l##_left = (mask), l = 0;                                                        \
         l##_left && (l = (uint32_t)__builtin_ctz(l##_left), true); l##_left &= l##_left - 1)

static inline const uint64_t *tk_sim_get(const tk_sim_warp *w, const tk_sim_arg *a) {
    return w->reg[a->slot];
}
static inline uint64_t *tk_sim_put(tk_sim_warp *w, const tk_sim_arg *a) { return w->reg[a->slot]; }
static inline uint32_t tk_sim_get_pred(const tk_sim_warp *w, const tk_sim_arg *a) {
    return a->negated ? ~w->pred[a->slot] : w->pred[a->slot];
}
static inline void tk_sim_put_pred(tk_sim_warp *w, const tk_sim_arg *a, uint32_t bits,
                                   uint32_t mask) {
    w->pred[a->slot] = (w->pred[a->slot] & ~mask) | (bits & mask);
}
static inline uint32_t tk_sim_index(const tk_sim_warp *w, const tk_sim_inst *i) {
    (void)w;
    return (uint32_t)(i - w->code);
}
static inline uint32_t tk_sim_thread(const tk_sim_warp *w, uint32_t lane) {
    return w->index * TK_SIM_LANES + lane;
}
// The thread's number in the cluster, where each block has whole warps.
static inline uint32_t tk_sim_member(const tk_sim_warp *w, uint32_t lane) {
    return w->number * TK_SIM_LANES + lane;
}
static inline tk_sim_warp *tk_sim_warp_of(const tk_sim_cluster *c, uint32_t number) {
    const tk_sim_block *b = &c->block[number / c->block->nwarp];
    return &b->warp[number % b->nwarp];
}
static inline tk_sim_block *tk_sim_block_at(const tk_sim_cluster *c, uint32_t offset) {
    return &c->block[offset / c->stride];
}

// Records the run's fault and answers TK_SIM_FAULT. `lane` did it.
tk_sim_flow tk_sim_fail(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const char *id,
                        const char *fmt, ...) TK_PRINTF(5, 6);
// Adds to the recorded fault. i NULL: no place.
void tk_sim_fail_note(tk_sim_grid *g, const tk_sim_inst *i, const char *fmt, ...) TK_PRINTF(3, 4);
// "shared memory at 0x410", "thread 3": with the block, where it is one of several of a cluster.
const char *tk_sim_shared_text(const tk_sim_cluster *c, uint32_t offset);
const char *tk_sim_member_text(const tk_sim_cluster *c, uint32_t member);

// For an instruction that `members` of the warp must execute together: true once they all have
// arrived (those that have ended are not waited for); *got is then who takes part, and the executor
// answers JOINED. False: it answers TK_SIM_WAIT.
bool tk_sim_gather(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t members,
                   uint32_t *got);
// The same where `others` are those of the waiting threads that count as arrived.
bool tk_sim_gather_with(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t others,
                        uint32_t members, uint32_t *got);
// The members that a lane waits for at an instruction with a member mask; 0: at none. False after a
// fault: it waits there for another one, which came with another mask.
uint32_t tk_sim_members(const tk_sim_warp *w, uint32_t lane);
bool tk_sim_members_agree(tk_sim_warp *w, uint32_t lane, uint32_t other);
// The same for instructions of whole warps; *flow is what to answer, JOINED where it is true.
bool tk_sim_whole_warp(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, tk_sim_flow *flow);
// Copies take effect late: a policy of the seed. Whether they are due: nothing has changed for a
// while, all who can go on spin; always where they are not late.
bool tk_sim_late(const tk_sim_grid *g);
bool tk_sim_due(tk_sim_grid *g);
// One bulk copy takes effect, as a change; false: there is none.
bool tk_sim_step(tk_sim_cluster *c);
// Makes lanes that wait for WAIT_ASYNC of all warps run again.
void tk_sim_wake(tk_sim_cluster *c);
uint64_t tk_sim_random(tk_sim_grid *g, uint64_t below); // 0 where the seed is 0

// ---- Memory (memory.c)

typedef enum tk_sim_access { TK_SIM_READ, TK_SIM_WRITE, TK_SIM_ATOMIC } tk_sim_access;

// Where the bytes of one thread's access lie, after all checks; NULL after a fault. Checks order
// and initialisation of shared memory as well; `value` is what a write writes, or NULL.
unsigned char *tk_sim_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_space space,
                         uint64_t address, uint32_t bytes, tk_sim_access access, const void *value);
// The same for a piece of global memory of any size and alignment.
unsigned char *tk_sim_global_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                uint64_t address, uint32_t bytes, tk_sim_access access);
// The address of a variable of the module.
uint64_t tk_sim_variable_address(const tk_sim_grid *g, uint32_t index, bool generic);
// Counts a request of a warp: the addresses of the lanes of the mask.
void tk_sim_count_request(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, tk_sim_space space,
                          const uint64_t *address, uint32_t bytes);
// The space that an address belongs to, and the address in it.
tk_sim_space tk_sim_resolve(tk_sim_space space, uint64_t *address);

// The space that an instruction's suffixes and its address name.
tk_sim_space tk_sim_space_of(const tk_sim_inst *i, const tk_sim_arg *address);
void tk_sim_addresses(const tk_sim_warp *w, const tk_sim_arg *a, uint32_t mask, uint64_t *out);
// In a register of 32 bits, the address is a sum of 32 bits.
static inline uint64_t tk_sim_address(const tk_sim_warp *w, const tk_sim_arg *a, uint32_t lane) {
    uint64_t sum = tk_sim_get(w, a)[lane] + (uint64_t)(int64_t)a->offset;
    return a->bytes == 4 ? (uint32_t)sum : sum;
}

// ---- Order of accesses of shared memory (shadow.c, order.c, flags.c)

// Points: of the blocks' barriers, of the cluster's barrier, two for each mbarrier.
static inline uint32_t tk_sim_point_of_barrier(const tk_sim_block *b, uint32_t number) {
    return b->rank * TK_SIM_BARRIERS + number;
}
static inline uint32_t tk_sim_point_of_cluster(const tk_sim_cluster *c, uint32_t phase) {
    return c->nblock * TK_SIM_BARRIERS + (phase & 1);
}
static inline uint32_t tk_sim_point_of_mbarrier(const tk_sim_cluster *c, uint32_t index,
                                                uint32_t phase) {
    return c->nblock * TK_SIM_BARRIERS + 2 + 2 * index + (phase & 1);
}

// bytes: of a cluster; reserved: of the grid.
struct tk_sim_shadow *tk_sim_shadow_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp,
                                         uint32_t nblock, uint32_t reserved);
void tk_sim_shadow_begin(struct tk_sim_shadow *s); // of a cluster
// False after a fault. Where w->begins says so, a copy begins that will do this access: it is
// checked, and tk_sim_shadow_copy, or a wait, says when it is done.
bool tk_sim_shadow_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                          uint32_t bytes, tk_sim_access access, bool same_value);
// All threads of the cluster have met.
void tk_sim_shadow_all(struct tk_sim_shadow *s);
// A read of the async proxy that a warp will have done when it has waited for it: whether it comes
// after what was written, seen from one lane (false after a fault); then, for several reads at
// once, that the warp has waited; and the reads, so that who writes there must come after one of
// the warp's threads.
bool tk_sim_shadow_look(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                        uint32_t bytes);
void tk_sim_shadow_together(const tk_sim_warp *w);
void tk_sim_shadow_read_whole(tk_sim_warp *w, const tk_sim_inst *i, uint32_t offset,
                              uint32_t bytes);
// The block ends: false after a fault, where an access by another one is not ordered before it.
bool tk_sim_shadow_end(tk_sim_block *b);
// Whether the lane knows, by something that threads of the block did, that it has started.
bool tk_sim_shadow_started(const tk_sim_warp *w, uint32_t lane, const tk_sim_block *of);

// Threads meet: what each did before is before what each does later (order.c). Release: the
// threads' past is added to `point`; acquire: the point's past is added to the threads'. A meeting
// is both.
void tk_sim_shadow_release(const tk_sim_warp *w, uint32_t lanes, uint32_t point);
void tk_sim_shadow_acquire(const tk_sim_warp *w, uint32_t lanes, uint32_t point);
void tk_sim_shadow_clear(struct tk_sim_shadow *s, uint32_t point);
// A relaxed arrival releases what was before the last fence; what a relaxed wait finds, the next
// fence acquires.
void tk_sim_shadow_release_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point);
void tk_sim_shadow_acquire_relaxed(const tk_sim_warp *w, uint32_t lanes, uint32_t point);
void tk_sim_shadow_warp(const tk_sim_warp *w, uint32_t lanes); // bar.warp.sync
// own_memory: of the block's own memory alone (.shared::cta).
void tk_sim_shadow_proxy_fence(const tk_sim_warp *w, uint32_t lanes, bool own_memory);
tk_sim_moment tk_sim_shadow_now(const tk_sim_warp *w, uint32_t lane);
// block: in whose memory it was done; UINT32_MAX: elsewhere.
bool tk_sim_shadow_after(const tk_sim_warp *w, uint32_t lane, tk_sim_moment m, uint32_t block);
// The same of a warp as a whole, and whether the warp comes after that: who knows it of one of the
// threads knows it of all, and is as good as the others of its warp.
tk_sim_moment tk_sim_shadow_warp_now(const tk_sim_warp *w);
bool tk_sim_shadow_warp_after(const tk_sim_warp *w, tk_sim_moment m);
// Whether a copy of the async proxy that the lane begins finds what threads wrote there behind a
// fence.
bool tk_sim_shadow_behind_fence(const tk_sim_warp *w, uint32_t lane, uint32_t offset);
// A strong access of the bytes at `p`, where that is shared memory (flags.c): a release hands over
// the thread's past to whoever acquires from these bytes later. A fence makes of relaxed ones
// before it acquires, of those after it releases.
void tk_sim_shadow_flag(const tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                        const unsigned char *p, uint32_t bytes, tk_sim_access access);
// shared: it acquires of shared memory alone; own_memory: it releases what was done in that of the
// block.
void tk_sim_shadow_fence_acquire(const tk_sim_warp *w, uint32_t lanes, bool shared);
void tk_sim_shadow_fence_release(const tk_sim_warp *w, uint32_t lanes, bool own_memory);
// fence.mbarrier_init: of all that the lane did, relaxed accesses after it release this init of an
// mbarrier. Whether the lane knows of it by such a fence.
void tk_sim_shadow_fence_init(const tk_sim_warp *w, uint32_t lane, uint32_t mbarrier,
                              uint32_t init);
bool tk_sim_shadow_knows_init(const tk_sim_warp *w, uint32_t lane, uint32_t mbarrier,
                              uint32_t init);
// The lane's past is kept, to be released later, once.
uint32_t tk_sim_shadow_keep(const tk_sim_warp *w, uint32_t lane);
void tk_sim_shadow_release_kept(tk_sim_cluster *c, uint32_t kept, uint32_t point);

typedef enum tk_sim_begin {
    TK_SIM_BEGINS_NOTHING,
    TK_SIM_BEGINS_COPY, // in the proxy of threads
    TK_SIM_BEGINS_PROXY // in the async proxy
} tk_sim_begin;
// Copies that are done: those of an agent up to this clock. One agent does the bulk copies that
// tell an mbarrier (its index in the cluster), another one each thread's cp.async.
typedef struct tk_sim_done {
    uint32_t agent, clock;
} tk_sim_done;
tk_sim_done tk_sim_shadow_bulk(const tk_sim_cluster *c, uint32_t mbarrier);
tk_sim_done tk_sim_shadow_copies(const tk_sim_warp *w, uint32_t lane, uint64_t serial);
// A copy has accessed these bytes. Whoever acquires from a point that has been told so knows of it;
// a thread may know of it otherwise.
void tk_sim_shadow_copy(const tk_sim_warp *w, const tk_sim_inst *i, tk_sim_done by, uint32_t offset,
                        uint32_t bytes, tk_sim_access access, tk_sim_begin proxy);
void tk_sim_shadow_told(const tk_sim_warp *w, uint32_t lane, tk_sim_done by, uint32_t point);
bool tk_sim_shadow_knows_copy(const tk_sim_warp *w, uint32_t lane, tk_sim_done by);
void tk_sim_shadow_know_copy(const tk_sim_warp *w, uint32_t lane, tk_sim_done by);

// ---- Asynchronous copies (async.c)

struct tk_sim_async *tk_sim_async_make(tk_arena *arena, uint32_t bytes, uint32_t nwarp);
// In flight: shared memory that a copy writes, reads (several may), or adds to (several may; also
// atomic accesses). inst NULL: no more.
typedef enum tk_sim_flight_kind {
    TK_SIM_FLIGHT_WRITES,
    TK_SIM_FLIGHT_READS,
    TK_SIM_FLIGHT_ADDS
} tk_sim_flight_kind;
void tk_sim_async_mark(tk_sim_cluster *c, uint32_t offset, uint32_t bytes, const tk_sim_inst *inst,
                       tk_sim_flight_kind kind);
void tk_sim_async_begin(struct tk_sim_async *a); // of a cluster
// An mbarrier lies at the offset, or not any more: only its instructions may touch it.
void tk_sim_async_barrier(tk_sim_cluster *c, uint32_t offset, bool there);
// Whether it is a copy that tells the mbarrier at the offset when it is done.
bool tk_sim_async_tells(const tk_sim_cluster *c, const tk_sim_inst *i, uint32_t offset);
// False after a fault: these bytes of shared memory are being written, or are an mbarrier's.
bool tk_sim_async_access(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                         uint32_t bytes, tk_sim_access access);
// Begins a copy of `bytes` (4, 8, 16) to shared memory; behind the first `given` of them are zeros.
// Both places have been checked.
void tk_sim_async_copy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                       uint32_t bytes, const unsigned char *from, uint32_t given);
void tk_sim_async_commit(tk_sim_warp *w, uint32_t lanes);
// Ends the lanes' copies but for their `most` last groups; all: also those of no group. False after
// a fault.
bool tk_sim_async_wait(tk_sim_warp *w, uint32_t lanes, uint32_t most, bool all);
// An mbarrier will be told of the lane's copies so far: the number of the last one. The lane's
// copies up to this one are done.
uint64_t tk_sim_async_announce(const tk_sim_warp *w, uint32_t lane);
void tk_sim_async_finish(tk_sim_warp *w, uint32_t lane, uint64_t serial);

// ---- Barriers in shared memory (mbarrier.c)

bool tk_sim_mbarrier_init(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint32_t offset,
                          uint32_t count);
// Where the operand's barrier lies in shared memory, after all checks; UINT32_MAX after a fault.
uint32_t tk_sim_mbarrier_offset(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                tk_sim_space space, uint64_t address, tk_sim_access access);
tk_sim_mbarrier *tk_sim_mbarrier_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                    uint32_t offset); // NULL after a fault
// More bytes are expected; less than 0: have come. False after a fault.
bool tk_sim_mbarrier_bytes(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                           int64_t more);
// The bytes of a copy have come.
bool tk_sim_mbarrier_copied(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                            uint32_t bytes);
bool tk_sim_mbarrier_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m,
                            uint32_t count, bool drop);
// An arrival once copies of the thread are done, with what it had kept when it asked for that.
bool tk_sim_mbarrier_arrive_kept(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                 tk_sim_mbarrier *m, uint64_t serial, uint32_t kept);
// One more arrival is expected in this phase. False after a fault.
bool tk_sim_mbarrier_more(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_mbarrier *m);
// The barrier at which the lane waits by this instruction; NULL: there is none.
const tk_sim_mbarrier *tk_sim_mbarrier_of_wait(const tk_sim_warp *w, const tk_sim_inst *i,
                                               uint32_t lane);
// The lanes have seen that the phase before the present one is complete.
void tk_sim_mbarrier_waited(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                            const tk_sim_mbarrier *m);
// fence.mbarrier_init; and whether a copy that the lane begins may tell the barrier: such a fence,
// or one between the proxies, lies between its init and that.
void tk_sim_mbarrier_fence(tk_sim_warp *w, uint32_t lanes);
bool tk_sim_mbarrier_fenced(const tk_sim_warp *w, uint32_t lane, const tk_sim_mbarrier *m);
// Whether such a fence says to the lane that the barrier at the offset is initialised.
bool tk_sim_mbarrier_told(const tk_sim_warp *w, uint32_t lane, uint32_t offset);

// ---- Bulk copies (bulk.c)

typedef enum tk_sim_bulk_kind {
    TK_SIM_BULK_LOAD,  // from global to shared memory; tells an mbarrier
    TK_SIM_BULK_STORE, // from shared to global memory; of a group
    TK_SIM_BULK_MOVE,  // from shared memory to that of a block of the cluster; tells an mbarrier
    TK_SIM_BULK_VALUE, // from registers to shared memory; tells an mbarrier
    TK_SIM_BULK_ARRIVE // arrives at an mbarrier once cp.async of its thread are done
} tk_sim_bulk_kind;

typedef struct tk_sim_bulk {
    const tk_sim_inst *inst;
    tk_sim_warp *warp;
    uint32_t lane;
    tk_sim_bulk_kind kind;
    uint32_t offset, bytes; // in shared memory: of the destination, STORE: of the source
    uint32_t from;          // MOVE: the source
    unsigned char *global;  // where there is no tensor
    const struct tk_sim_tensor *tensor;
    uint64_t map;            // its address, where it lies in global memory that can be written
    int32_t at[5];           // coordinates in the tensor
    uint32_t barrier;        // the mbarrier's offset
    uint32_t group;          // STORE: of its thread
    bool reduces;            // adds to what is there, or the like
    tk_sim_type type;        // of the elements, where it reduces
    unsigned char value[16]; // VALUE
    uint64_t serial;         // ARRIVE: the last of the thread's copies that count
    uint32_t kept;           // ARRIVE: the thread's past
} tk_sim_bulk;
struct tk_sim_bulks *tk_sim_bulk_make(tk_arena *arena, uint32_t nwarp);
void tk_sim_bulk_begin(struct tk_sim_bulks *b); // of a cluster
void tk_sim_bulk_issue(tk_sim_bulk x);
// As what its accesses of shared memory are checked when it begins.
static inline tk_sim_begin tk_sim_bulk_proxy(const tk_sim_bulk *x) {
    return x->kind == TK_SIM_BULK_VALUE ? TK_SIM_BEGINS_COPY : TK_SIM_BEGINS_PROXY;
}
bool tk_sim_bulk_step(tk_sim_cluster *c); // one copy takes effect; false: there is none
void tk_sim_bulk_commit(tk_sim_warp *w, uint32_t lanes);
// Whether a wait for all but the thread's `most` last groups lasts: copies are late, and one of
// these is not done.
bool tk_sim_bulk_lasts(const tk_sim_warp *w, uint32_t lane, uint32_t most);
// For all but the thread's `most` last groups; `reads`: only until they have read. False after a
// fault.
bool tk_sim_bulk_wait(tk_sim_warp *w, uint32_t lane, uint32_t most, bool reads);
// A copy that reads the tensor map at this address of global memory and is not done, or not waited
// for; NULL: there is none.
const tk_sim_inst *tk_sim_bulk_map_user(const tk_sim_grid *g, uint64_t address);
bool tk_sim_bulk_end(tk_sim_block *b); // all its threads have ended; false after a fault

// The pieces of shared memory of a copy that begins at `from`: where the one lies that begins with
// the copy's byte k, and of how many bytes it is.
uint32_t tk_sim_bulk_piece(const tk_sim_bulk *x, uint32_t from, uint32_t k, uint32_t *n);

// What executors of copies share (exec_bulk.c). Checks all pieces of the copy in shared memory at
// the address, in steps of `unit` bytes, and gives its offset; UINT32_MAX after a fault.
uint32_t tk_sim_bulk_place(const tk_sim_bulk *x, tk_sim_space space, uint64_t address,
                           uint32_t unit, tk_sim_access access);
// The same for what a copy reads in the block's own memory, which it must see.
uint32_t tk_sim_bulk_source(const tk_sim_bulk *x, uint64_t address);
// Finds the mbarrier that a copy to x->offset tells. fenced: asynchronous copies must know it.
bool tk_sim_bulk_barrier(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_space space,
                         uint64_t address, bool fenced, tk_sim_bulk *x);
// A load to shared memory: its places in the block, or in each block of the mask, and their
// mbarriers; then it is issued. mask 0: no multicast.
bool tk_sim_bulk_load(tk_sim_bulk *x, uint64_t to, uint64_t barrier, bool multicast, uint32_t mask);
// x + y, and so on, as the instruction says, in global memory or in shared; and whether it exists.
typedef enum tk_sim_adder { // who adds floats: they differ in subnormals and NaN
    TK_SIM_ADDER_THREAD,    // in shared memory
    TK_SIM_ADDER_ATOM,      // atomics in global memory
    TK_SIM_ADDER_COPY       // bulk copies
} tk_sim_adder;
uint64_t tk_sim_combine(const tk_sim_inst *i, tk_sim_type t, uint64_t old, uint64_t x,
                        tk_sim_adder by);
bool tk_sim_combines(const tk_sim_inst *i, tk_sim_type t, bool global);

// ---- Tensor maps in global memory (maps.c); false: after a fault

// The lanes, together, change a map as a whole; released: with the release fence in it.
bool tk_sim_maps_changed(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint64_t address,
                         bool released);
// A store to global memory, which has just been checked; it may be to a map. value: what it will
// write, or NULL. The lane has waited for its copies to global memory.
bool tk_sim_maps_stored(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address,
                        uint32_t bytes, const void *value);
void tk_sim_maps_waited(const tk_sim_warp *w, uint32_t lane);
// The lane has waited for the reads of a store that uses the map; a load has told the mbarrier, who
// waits there acquires from the point.
void tk_sim_maps_read(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address);
void tk_sim_maps_loaded(const tk_sim_cluster *c, const tk_sim_inst *i, uint64_t address,
                        uint32_t mbarrier, uint32_t point);
// fence.proxy.tensormap; and whether the lane may use the map.
void tk_sim_maps_release(const tk_sim_warp *w, uint32_t lanes);
void tk_sim_maps_acquired(const tk_sim_warp *w, uint32_t lane, uint64_t address);
bool tk_sim_maps_used(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address);

// ---- Clusters (cluster.c)

tk_sim_flow tk_sim_cluster_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                                  bool releases);
// Of these lanes, those that need not wait any more go on; false after a fault.
bool tk_sim_cluster_passed(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint32_t *passed);
void tk_sim_cluster_left(tk_sim_warp *w, uint32_t lanes); // these threads have ended

// ---- The parts

void tk_sim_run_grid(tk_sim_grid *g);                         // schedule.c
void tk_sim_start_cluster(tk_sim_grid *g, tk_sim_cluster *c); // launch.c
bool tk_sim_grow(tk_sim_grid *g); // more clusters become resident; false: there are no more
// ---- Threads that part meet again (reconverge.c)
// These threads of the warp part at the instruction; those that are gone stand elsewhere already.
void tk_sim_part(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint32_t gone);
void tk_sim_rejoin(tk_sim_warp *w);        // who have come to a meeting wait there, or go on
void tk_sim_let_go(tk_sim_warp *w);        // whoever waits at one goes on
bool tk_sim_overdue(const tk_sim_warp *w); // those who wait at one must go on
// Of these lanes those that return to where the first of them does; none: it runs in no call.
uint32_t tk_sim_calls_together(const tk_sim_warp *w, uint32_t lanes, uint32_t *to);
// ---- Whether anything happens (progress.c)
// The threads branch back in a polling loop: whether they sleep, until anything changes, as all is
// as it was one time around before.
bool tk_sim_spins(tk_sim_warp *w, uint32_t at, uint32_t lanes);
void tk_sim_wake_up(tk_sim_warp *w);       // those who sleep run again, if something has changed
bool tk_sim_suspect(const tk_sim_grid *g); // nothing has changed for long
// The warp has run for so many instructions. False after a fault: nothing will change any more.
bool tk_sim_progress(tk_sim_warp *w, uint64_t instructions);
// No warp of the cluster can go on: waits with a time limit end. False after a fault: there are
// none, or nothing will change any more.
bool tk_sim_time_out(tk_sim_cluster *c);
// For an instruction of a barrier: the threads that execute it together, once they all have come;
// false: *flow is the answer.
bool tk_sim_barrier_together(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t *got,
                             tk_sim_flow *flow);
tk_sim_flow tk_sim_barrier_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                                  uint32_t number, uint32_t expected, bool wait);
bool tk_sim_barriers_left(tk_sim_warp *w);   // threads have ended; false after a fault
void tk_sim_fill_registers(tk_sim_block *b); // specials and immediates, before a block runs
void tk_sim_fill_frame(tk_sim_warp *w, const tk_sim_entry *body, uint32_t lane, uint32_t base);
void tk_sim_calls_make(tk_sim_warp *w);
void tk_sim_calls_begin(tk_sim_warp *w);
uint64_t tk_sim_calls_state(const tk_sim_warp *w); // differs where the calls do
// vprintf: prints for the lane what the format at one address makes of the arguments at the other;
// false after a fault. *count: how many there were.
bool tk_sim_print(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t format,
                  uint64_t arguments, uint32_t *count);
const char *tk_sim_string_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                             uint64_t address); // NULL after a fault
void tk_sim_fill_clocks(tk_sim_warp *w);        // those that change as time goes on
void tk_sim_memory_begin(tk_sim_grid *g);       // regions and variables of the module
void tk_sim_report_stuck(tk_sim_cluster *c);    // deadlock, divergent barrier

#endif
