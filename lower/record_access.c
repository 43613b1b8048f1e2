// SPDX-License-Identifier: Apache-2.0
// Notes of accesses of tensors: what each moves, by itself or through shared memory. See record.h.
#include "ir/hold.h"
#include "ir/move.h"
#include "ir/pass_util.h"
#include "lower/count.h"
#include "lower/out.h"
#include "lower/record_internal.h"
#include "lower/ring.h"
#include "lower/stage.h"
#include "lower/views.h"

#include <string.h>

enum { SECTOR = 32 };

typedef struct requests {
    double requests, units, least;
} requests;

typedef struct amount {
    double moved, async, barriers;
    requests of, shared;
} amount;

static requests plus_requests(requests a, double times, const tk_requests *b) {
    return (requests){a.requests + times * (double)b->requests, a.units + times * (double)b->units,
                      a.least + times * (double)b->least};
}

static amount plus(amount a, double times, const tk_view_count *b) {
    return (amount){.moved = a.moved + times * (double)b->bytes,
                    .async = a.async + times * (double)b->async,
                    .barriers = a.barriers + times * b->barriers,
                    .of = plus_requests(a.of, times, &b->of),
                    .shared = plus_requests(a.shared, times, &b->shared)};
}

// What is all inside of the tensor, and begins at the same place in a sector, is as it was before.
static tk_view_count counted(tk_recorder *r, const tk_op *op, const tk_view_plan *p) {
    uint64_t at;
    const bool alike = tk_count_alike(&r->sample, r->x, op, p, &at);
    if (alike && r->counted.op == op && r->counted.at == at % SECTOR) {
        return r->counted.count;
    }
    const tk_view_count c = tk_count_view(&r->sample, r->x, op, p, r->o->target);
    if (alike) {
        r->counted.op = op;
        r->counted.at = at % SECTOR;
        r->counted.count = c;
    }
    return c;
}

// After how many steps of `at`, a number that the sample goes by, rows begin at the same place in a
// sector again.
static int64_t period(tk_recorder *r, const tk_op *op, const tk_view_plan *p, int64_t *at) {
    uint64_t here, next;
    const bool known = tk_count_begin(&r->sample, r->x, op, p, &here);
    ++*at;
    const bool both = tk_count_begin(&r->sample, r->x, op, p, &next) && known;
    --*at;
    const uint64_t step = both ? (next - here) % SECTOR : 0;
    return step == 0 ? 1 : SECTOR / (int64_t)(step & -step);
}

// Of the numbers of iterations or programs from `from` to `to` - 1, those that are not at the edges
// of the tensor are alike but for their place in a sector. The others, of which only so many are
// looked for at each end, are counted one by one.
enum { MOST_AT_AN_EDGE = 64, FEW = 16, MOST_IN_FRONT = 2048 };
typedef struct middle {
    int64_t from, to;
} middle;

// Whether nothing is moved there.
static bool is_outside(tk_recorder *r, const tk_op *op, const tk_view_plan *p, int64_t *at,
                       int64_t number) {
    *at = number;
    const tk_view_count c = counted(r, op, p);
    return !c.unknown && c.bytes == 0;
}

// Of numbers the middle one of which is not inside: those from some number on at which all is
// behind the tensor's end, if they are so and not too many are in front of them. Otherwise all are
// at an edge, and alike.
static middle outside_of(tk_recorder *r, const tk_op *op, const tk_view_plan *p, int64_t *at,
                         int64_t from, int64_t to) {
    int64_t low = from, high = from + (to - from) / 2;
    if (!is_outside(r, op, p, at, high) || !is_outside(r, op, p, at, to - 1)) {
        return (middle){from, to};
    }
    while (low < high) {
        const int64_t half = low + (high - low) / 2;
        if (is_outside(r, op, p, at, half)) {
            high = half;
        } else {
            low = half + 1;
        }
    }
    return low - from <= MOST_IN_FRONT ? (middle){low, to} : (middle){from, to};
}

static middle middle_of(tk_recorder *r, const tk_op *op, const tk_view_plan *p, int64_t *at,
                        int64_t from, int64_t to) {
    middle m = {from, to};
    *at = from + (to - from) / 2;
    if (to - from > FEW && !tk_count_inside(&r->sample, r->x, op, p, at)) {
        return outside_of(r, op, p, at, from, to);
    }
    for (*at = from; m.from < to && m.from - from < MOST_AT_AN_EDGE; *at = ++m.from) {
        if (tk_count_inside(&r->sample, r->x, op, p, at)) {
            break;
        }
    }
    for (*at = to - 1; m.to > m.from && to - m.to < MOST_AT_AN_EDGE; *at = --m.to - 1) {
        if (tk_count_inside(&r->sample, r->x, op, p, at)) {
            break;
        }
    }
    return m;
}

// How many numbers each that is counted stands for, from *at on.
static double alike(const middle *m, int64_t at, int64_t step) {
    return at < m->from || at >= m->to ? 1 : (double)((m->to - 1 - at) / step + 1);
}

// The next number to count.
static int64_t after(const middle *m, int64_t at, int64_t step) {
    return at + 1 == m->from + step && at + 1 < m->to ? m->to : at + 1;
}

static uint32_t most(const tk_recorder *r) { return tk_record_most(r, r->axes, TK_RECORD_VIEWS); }

// Adds `times` executions, of all iterations of the loops from number `level` on: of each loop the
// first and the last are counted, those at the edges of the tensor, and of those between the ones
// that begin at different places in a sector; of one in whose iterations others run more or less
// often, all. Those that are not known are as `first`.
static void add_iterations(tk_recorder *r, const tk_op *op, const tk_view_plan *p, uint32_t level,
                           double times, const tk_view_count *first, amount *to) {
    if (level == r->sample.nin) {
        const tk_view_count c = counted(r, op, p);
        *to = plus(*to, times, c.unknown ? first : &c);
        return;
    }
    const int64_t n = tk_sample_trips(&r->sample, r->loop[level].op);
    int64_t *at = &r->sample.in[level].number;
    for (int64_t i = 0; i < n && r->loop[level].steers;) {
        const tk_record_piece x = tk_record_piece_at(n, most(r), i);
        *at = x.at;
        add_iterations(r, op, p, level + 1, times * (double)x.n, first, to);
        i += x.n;
    }
    middle m = {1, n - 1};
    int64_t step = 1;
    if (n > 3 && r->sample.nin == 1) {
        m = middle_of(r, op, p, at, 1, n - 1);
        *at = m.from;
        step = period(r, op, p, at);
    }
    for (*at = 0; *at < n && !r->loop[level].steers; *at = after(&m, *at, step)) {
        add_iterations(r, op, p, level + 1, times * alike(&m, *at, step), first, to);
    }
    *at = 0;
}

// Adds `programs` as this one, over all executions. Those that take their tile from shared memory
// access no tensor, and of those that leave it there the first is as the others. What the first is.
static tk_view_count add_program(tk_recorder *r, const tk_op *op, const tk_view_plan *p,
                                 double programs, amount *to) {
    const tk_view_count first = counted(r, op, p);
    const double here = tk_record_here(r), all = here >= 0 ? here : 1;
    const double times = all - (op->at.held ? tk_record_held(r, op) : 0);
    if (op->at.held || r->times < 0 || r->nloop > TK_SAMPLE_LOOPS) {
        *to = plus(*to, programs * (all > 1 && times > 0 ? times - 1 : times), &first);
        if (all > 1 && times > 0) {
            r->sample.last = true;
            const tk_view_count last = counted(r, op, p);
            r->sample.last = false;
            *to = plus(*to, programs, &last);
        }
        return first;
    }
    for (uint32_t i = 0; i < r->nloop; i++) {
        r->sample.in[i] = (tk_sample_iteration){r->loop[i].op, 0};
    }
    r->sample.nin = r->nloop;
    add_iterations(r, op, p, 0, programs, &first, to);
    r->sample.nin = 0;
    return first;
}

// Of all programs: along each axis of the grid those before the last that are at no edge of the
// tensor, in the first and in the last iteration, are as the first of them whose rows begin at the
// same place in a sector. Where not all run it equally often, each is counted.
static void add_all(tk_recorder *r, const tk_op *op, const tk_view_plan *p, uint32_t axes,
                    double programs, amount *to) {
    if (axes == 0) {
        (void)add_program(r, op, p, programs, to);
        return;
    }
    const uint32_t axis = axes - 1;
    int64_t *at = &r->sample.program[axis];
    const int64_t n = tk_sample_programs_along(&r->sample, axis);
    if (r->axes >> axis & 1) {
        for (int64_t i = 0; i < n;) {
            const tk_record_piece x = tk_record_piece_at(n, most(r), i);
            *at = x.at;
            add_all(r, op, p, axis, programs * (double)x.n, to);
            i += x.n;
        }
        *at = 0;
        return;
    }
    middle m = middle_of(r, op, p, at, 0, n - 1);
    r->sample.last = true;
    m = middle_of(r, op, p, at, m.from, m.to);
    r->sample.last = false;
    *at = m.from;
    const int64_t step = period(r, op, p, at);
    for (*at = 0; *at < n; *at = after(&m, *at, step)) {
        add_all(r, op, p, axis, programs * alike(&m, *at, step), to);
    }
    *at = 0;
}

static amount part_of(const amount *all, double of) {
    return (amount){
        .moved = all->moved / of,
        .async = all->async / of,
        .barriers = all->barriers / of,
        .of = {all->of.requests / of, all->of.units / of, all->of.least / of},
        .shared = {all->shared.requests / of, all->shared.units / of, all->shared.least / of}};
}

static void add_requests(const tk_recorder *r, tk_note_rec *n, const char *units,
                         const requests *one) {
    tk_record_number(r, n, "requests", one->requests);
    tk_record_number(r, n, units, one->units);
    tk_record_number(r, n, tk_format(r->f->module->notes.arena, "least %s", units), one->least);
}

static void add_by_all(const tk_recorder *r, tk_note_rec *n, const char *units,
                       const requests *all) {
    if (r->programs >= 0 && !r->branch) {
        tk_record_number(r, n, "requests by all", all->requests);
        tk_record_number(r, n, tk_format(r->f->module->notes.arena, "%s by all", units),
                         all->units);
    }
}

static const char *into_ring(tk_how how) {
    return how == TK_HOW_TENSOR  ? "'fetch': into the ring, by tensor copies that one thread begins"
           : how == TK_HOW_ASYNC ? "'fetch': into the ring, by copies that each thread begins"
                                 : "'fetch': into the ring, by loads and stores of each thread";
}

// What a staged access does with shared memory.
static void record_staging(tk_recorder *r, const tk_op *op, const amount *one, const amount *all) {
    const bool ring = op->code == TK_OP_FETCH;
    const char *how =
        !ring && tk_stage_is_bulk(r->o->target, op) ? "by bulk copies" : "16 bytes at once";
    const char *rows = tk_format(r->f->module->notes.arena,
                                 "'%s': rows as they lie in the tensor, %s and their ends element "
                                 "by element",
                                 tk_op_info(op->code)->name, how);
    const char *out =
        "'store': by all threads into shared memory, from there by tensor copies that "
        "one thread begins";
    tk_note_rec *n = tk_record_note(r, op, "staging", TK_NOTE_INFO,
                                    tk_is_copied_out(op) ? out
                                    : ring               ? into_ring(op->at.how)
                                                         : rows);
    tk_record_memory(r, op, n);
    if (r->o->counts) {
        tk_record_times(r, n);
        tk_record_number(r, n, "asynchronous", one->async);
        tk_record_number(r, n, "barriers", one->barriers);
        add_requests(r, n, "wavefronts", &one->shared);
        tk_record_number(r, n, "conflicts", one->shared.units - one->shared.least);
        add_by_all(r, n, "wavefronts", &all->shared);
    }
    if (r->o->counts && r->programs >= 0 && !r->branch) {
        tk_record_number(r, n, "conflicts by all", all->shared.units - all->shared.least);
        tk_record_number(r, n, "asynchronous by all", all->async);
        tk_record_number(r, n, "barriers by all", all->barriers);
    }
}

static void count_access(tk_recorder *r, const tk_op *op, const tk_view_plan *p, tk_note_rec *n,
                         amount *one, amount *all) {
    tk_notes *notes = &r->f->module->notes;
    const tk_view_count first = add_program(r, op, p, 1, one);
    *all = *one;
    if (r->programs >= 0) {
        *all = (amount){.moved = 0};
        add_all(r, op, p, r->f->grid ? r->f->grid->last->nopnd : 0, 1, all);
    }
    if (r->axes && r->programs > 0) {
        *one = part_of(all, r->programs);
    }
    tk_record_number(r, n, "moved", one->moved);
    if (!r->branch) {
        tk_record_moved(r, op, p->param, one->moved, all->moved);
    }
    if (first.unknown) {
        tk_note_word_add(notes, n, "sectors",
                         tk_format(notes->arena, "not known: %s", first.unknown));
        return;
    }
    add_requests(r, n, "sectors", &one->of);
    if (first.of.requests) {
        tk_record_number(r, n, "sectors a request",
                         (double)first.of.units / (double)first.of.requests);
    }
    add_by_all(r, n, "sectors", &all->of);
    if (first.assumed) {
        tk_note_word_add(notes, n, "assumed", first.assumed);
    }
}

void tk_record_access(tk_recorder *r, const tk_op *op) {
    const tk_vid v = tk_view_value(r->f, op);
    const tk_layout *l =
        op->code == TK_OP_FETCH ? tk_fetch_threads(r->x, op) : tk_value_layout(r->f, v);
    const tk_view_plan p = tk_view_plan_of(r->x, op, l);
    tk_note_rec *n = tk_view_note(&r->f->module->notes, r->x, op, &p);
    amount one = {.moved = 0}, all = one;
    const tk_recorder was = *r;
    n->loc = op->loc;
    tk_record_layout(r, n, "layout", v);
    if (op->at.held) {
        tk_record_also(r, tk_holder_of(r->f, op)->in->owner);
    }
    if (r->o->counts) {
        r->sampled = r->sampled || tk_record_samples(r, TK_RECORD_VIEWS);
        tk_record_times(r, n);
        count_access(r, op, &p, n, &one, &all);
        if (op->code == TK_OP_LOAD) {
            tk_record_demand_of_load(r, one.of.requests, one.moved);
        } else if (op->at.how == TK_HOW_REGISTERS) {
            tk_record_demand_of_fetch(r, one.of.requests);
        }
    }
    if (op->at.staged || op->code == TK_OP_FETCH || tk_is_copied_out(op)) {
        record_staging(r, op, &one, &all);
    }
    if (op->at.hold || op->at.held) {
        tk_record_hold(r, op);
    }
    tk_record_leave(r, &was);
}

void tk_record_ring(const tk_recorder *r, const tk_op *op) {
    tk_note_rec *n =
        tk_record_note(r, op, "ring", TK_NOTE_INFO, "tiles on their way, in shared memory");
    tk_record_number(r, n, "slots", (double)op->at.slots);
    (void)tk_record_memory(r, op, n);
    tk_record_number(r, n, "barriers", tk_ring_shares_barrier(op) ? 0 : 1);
}

// The loop that an op stands in; NULL: none.
static const tk_op *loop_of(const tk_op *op) {
    do {
        op = op->in->owner;
    } while (op && op->code != TK_OP_FOR);
    return op;
}

// A tile is fetched for each that is taken: that of this iteration is read as the fetch in the loop
// reads one `slots` - 1 iterations later, and one that no loop fetches where it is taken.
void tk_record_taken(tk_recorder *r, const tk_op *op) {
    const tk_op *fetch = tk_ring_fetch(r->f, op->opnd[0]), *loop = fetch ? loop_of(fetch) : NULL;
    int64_t step = 0;
    if (!fetch) {
        return;
    }
    if (loop && tk_sample_int(&r->sample, loop->opnd[2], 0, &step)) {
        r->sample.ahead = loop;
        r->sample.by = step * (tk_value_def(r->f, op->opnd[0])->at.slots - 1);
    }
    struct tk_record_loop was[TK_SAMPLE_LOOPS];
    memcpy(was, r->loop, sizeof was);
    for (uint32_t i = r->nloop < TK_SAMPLE_LOOPS ? r->nloop : 0; i-- > 0 && loop;) {
        r->loop[i].op = loop; // of other warps, where those fetch
        loop = loop_of(loop);
    }
    tk_record_access(r, fetch);
    memcpy(r->loop, was, sizeof was);
    r->sample.ahead = NULL;
}
