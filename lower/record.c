// SPDX-License-Identifier: Apache-2.0
// Notes of a lowered kernel. See record.h.
#include "lower/record.h"

#include "ir/hold.h"
#include "ir/move.h"
#include "ir/pass_util.h"
#include "lower/count.h"
#include "lower/out.h"
#include "lower/record_internal.h"
#include "lower/ring.h"
#include "lower/stage.h"
#include "lower/units.h"
#include "lower/views.h"
#include "lower/walk.h"

#include <string.h>

enum { SECTOR = 32 };

static tk_note_rec *note(const tk_recorder *r, const tk_op *op, const char *id, tk_verdict verdict,
                         const char *text) {
    tk_module *m = r->f->module;
    tk_note_rec *n =
        tk_note_add(&m->notes, "record", id, tk_loc_span(m, op->loc), verdict, "%s", text);
    n->loc = op->loc;
    return n;
}

static void number(const tk_recorder *r, tk_note_rec *n, const char *name, double value) {
    tk_note_number_add(&r->f->module->notes, n, name, value);
}

static const char *layout_text(const tk_recorder *r, const tk_layout *l) {
    tk_buf b;
    tk_buf_init(&b, r->f->module->notes.arena);
    tk_layout_words(&b, l);
    return tk_buf_text(&b);
}

static void layout_word(const tk_recorder *r, tk_note_rec *n, const char *name, tk_vid v) {
    const tk_layout *l = tk_value_layout(r->f, v);
    if (l) {
        tk_note_word_add(&r->f->module->notes, n, name, layout_text(r, l));
    }
}

void tk_record_branch(const tk_recorder *r, tk_note_rec *n) {
    if (r->branch) {
        tk_note_word_add(&r->f->module->notes, n, "runs", r->branch);
    }
}

// Says that a number of the first program is none of all.
static void means(const tk_recorder *r, tk_note_rec *n) {
    if (r->axes || r->sampled) {
        tk_note_word_add(&r->f->module->notes, n, "counted",
                         r->axes && r->sampled ? "the mean of programs, of which some are looked at"
                         : r->axes             ? "the mean of all programs"
                                               : "of iterations some");
    }
}

static void times(const tk_recorder *r, tk_note_rec *n) {
    tk_record_branch(r, n);
    means(r, n);
    if (r->times >= 0) {
        number(r, n, "times", r->times);
    } else {
        tk_note_word_add(&r->f->module->notes, n, "times", "not known: the counts are of one");
    }
}

// ---- Across threads: counts ---------------------------------------------------------------------

// The memory that it has while it runs: its bytes.
static uint64_t record_memory(const tk_recorder *r, const tk_op *op, tk_note_rec *n) {
    const uint64_t bytes = tk_scratch_bytes(r->f, op);
    if (bytes) {
        number(r, n, "offset", (double)op->at.shared);
        number(r, n, "shared", (double)bytes);
    }
    return bytes;
}

static void count_across(const tk_recorder *r, const tk_op *op, tk_note_rec *n) {
    tk_arena *scratch = r->scratch;
    const uint64_t bytes = record_memory(r, op, n);
    if (!r->o->counts) {
        return;
    }
    const tk_across_count c =
        tk_count_across(scratch, r->f, op, (unsigned)r->f->module->attrs.warps);
    const double by = r->times >= 0 ? r->times : 1;
    times(r, n);
    if (!c.known) {
        tk_note_word_add(&r->f->module->notes, n, "wavefronts", "not counted");
        return;
    }
    const uint64_t units = c.read.units + c.written.units, least = c.read.least + c.written.least;
    number(r, n, "shuffles", c.shuffles * by);
    number(r, n, "barriers", c.barriers * by);
    if (bytes || c.read.requests) {
        number(r, n, "requests", (double)(c.read.requests + c.written.requests) * by);
        number(r, n, "wavefronts", (double)units * by);
        number(r, n, "least wavefronts", (double)least * by);
        number(r, n, "conflicts", (double)(units - least) * by);
    }
}

// ---- Accesses -----------------------------------------------------------------------------------

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

static tk_view_count counted(tk_recorder *r, const tk_op *op, const tk_view_plan *p) {
    return tk_count_view(&r->sample, r->x, op, p, r->o->target);
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
enum { MOST_AT_AN_EDGE = 64, FEW = 16 };
typedef struct middle {
    int64_t from, to;
} middle;

static middle middle_of(tk_recorder *r, const tk_op *op, const tk_view_plan *p, int64_t *at,
                        int64_t from, int64_t to) {
    middle m = {from, to};
    *at = from + (to - from) / 2;
    if (to - from > FEW && !tk_count_inside(&r->sample, r->x, op, p, at)) {
        return m; // all are at an edge, and alike
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
    number(r, n, "requests", one->requests);
    number(r, n, units, one->units);
    number(r, n, tk_format(r->f->module->notes.arena, "least %s", units), one->least);
}

static void add_by_all(const tk_recorder *r, tk_note_rec *n, const char *units,
                       const requests *all) {
    if (r->programs >= 0 && !r->branch) {
        number(r, n, "requests by all", all->requests);
        number(r, n, tk_format(r->f->module->notes.arena, "%s by all", units), all->units);
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
    tk_note_rec *n = note(r, op, "staging", TK_NOTE_INFO,
                          tk_is_copied_out(op) ? out
                          : ring               ? into_ring(op->at.how)
                                               : rows);
    record_memory(r, op, n);
    if (r->o->counts) {
        times(r, n);
        number(r, n, "asynchronous", one->async);
        number(r, n, "barriers", one->barriers);
        add_requests(r, n, "wavefronts", &one->shared);
        number(r, n, "conflicts", one->shared.units - one->shared.least);
        add_by_all(r, n, "wavefronts", &all->shared);
    }
    if (r->o->counts && r->programs >= 0 && !r->branch) {
        number(r, n, "conflicts by all", all->shared.units - all->shared.least);
        number(r, n, "asynchronous by all", all->async);
        number(r, n, "barriers by all", all->barriers);
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
    number(r, n, "moved", one->moved);
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
        number(r, n, "sectors a request", (double)first.of.units / (double)first.of.requests);
    }
    add_by_all(r, n, "sectors", &all->of);
    if (first.assumed) {
        tk_note_word_add(notes, n, "assumed", first.assumed);
    }
}

static void record_access(tk_recorder *r, const tk_op *op) {
    const tk_vid v = tk_view_value(r->f, op);
    const tk_layout *l =
        op->code == TK_OP_FETCH ? tk_fetch_threads(r->x, op) : tk_value_layout(r->f, v);
    const tk_view_plan p = tk_view_plan_of(r->x, op, l);
    tk_note_rec *n = tk_view_note(&r->f->module->notes, r->x, op, &p);
    amount one = {.moved = 0}, all = one;
    const tk_recorder was = *r;
    n->loc = op->loc;
    layout_word(r, n, "layout", v);
    if (op->at.held) {
        tk_record_also(r, tk_holder_of(r->f, op)->in->owner);
    }
    if (r->o->counts) {
        r->sampled = r->sampled || tk_record_samples(r, TK_RECORD_VIEWS);
        times(r, n);
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

static void record_ring(const tk_recorder *r, const tk_op *op) {
    tk_note_rec *n = note(r, op, "ring", TK_NOTE_INFO, "tiles on their way, in shared memory");
    number(r, n, "slots", (double)op->at.slots);
    (void)record_memory(r, op, n);
    number(r, n, "barriers", tk_ring_shares_barrier(op) ? 0 : 1);
}

// The loop that an op stands in; NULL: none.
static const tk_op *loop_of(const tk_op *op) {
    do {
        op = op->in->owner;
    } while (op && op->code != TK_OP_FOR);
    return op;
}

// A tile is fetched for each that is taken: that of this iteration is read as the fetch in the loop
// reads one `slots` - 1 iterations later.
static void record_taken(tk_recorder *r, const tk_op *op) {
    const tk_op *fetch = tk_ring_fetch(r->f, op->opnd[0]), *loop = fetch ? loop_of(fetch) : NULL;
    int64_t step = 0;
    if (loop && tk_sample_int(&r->sample, loop->opnd[2], 0, &step)) {
        r->sample.ahead = loop;
        r->sample.by = step * (tk_value_def(r->f, op->opnd[0])->at.slots - 1);
        struct tk_record_loop was[TK_SAMPLE_LOOPS];
        memcpy(was, r->loop, sizeof was);
        for (uint32_t i = r->nloop < TK_SAMPLE_LOOPS ? r->nloop : 0; i-- > 0 && loop;) {
            r->loop[i].op = loop; // of other warps, where those fetch
            loop = loop_of(loop);
        }
        record_access(r, fetch);
        memcpy(r->loop, was, sizeof was);
        r->sample.ahead = NULL;
    }
}

// ---- Across threads -----------------------------------------------------------------------------

static const char *how_reduced(const tk_recorder *r, const tk_op *op) {
    const tk_reduction how = tk_reduction_of(r->f, op);
    const tk_layout *l = tk_value_layout(r->f, op->opnd[0]);
    tk_buf b;
    tk_buf_init(&b, r->f->module->notes.arena);
    if (!how.plain) {
        return "through shared memory as a whole, as the layout is none in which threads hold "
               "parts of lines";
    }
    tk_buf_fmt(&b, "%u elements in each thread", 1U << (l->regs - how.out.regs));
    if (how.lanes) {
        tk_buf_fmt(&b, ", then %u lanes by shuffles", 1U << __builtin_popcount(how.lanes));
    }
    if (how.warps) {
        tk_buf_fmt(&b, ", then %u warps through shared memory",
                   1U << __builtin_popcount(how.warps));
    }
    return tk_buf_text(&b);
}

// A line's places are bits of registers, lanes and warps.
static const char *how_by_bits(const tk_recorder *r, bool plain, const tk_scan_bit *bit,
                               unsigned log) {
    unsigned of[3] = {0, 0, 0};
    if (!plain) {
        return "through shared memory as a whole, as the layout is none in which a line's places "
               "are bits of registers, lanes and warps";
    }
    for (unsigned k = 0; k < log; k++) {
        of[bit[k].kind]++;
    }
    tk_buf b;
    tk_buf_init(&b, r->f->module->notes.arena);
    tk_buf_fmt(&b, "%u elements in each thread", 1U << of[TK_SCAN_REG]);
    if (of[TK_SCAN_LANE]) {
        tk_buf_fmt(&b, ", %u lanes by shuffles", 1U << of[TK_SCAN_LANE]);
    }
    if (of[TK_SCAN_WARP]) {
        tk_buf_fmt(&b, ", %u warps through shared memory", 1U << of[TK_SCAN_WARP]);
    }
    return tk_buf_text(&b);
}

static const char *how_scanned(const tk_recorder *r, const tk_op *op) {
    const tk_scan s = tk_scan_of(r->f, op);
    return how_by_bits(r, s.plain, s.bit, s.log);
}

static const char *how_folded(const tk_recorder *r, const tk_op *op) {
    const tk_fold s = tk_fold_of(r->f, op);
    return how_by_bits(r, s.plain, s.bit, s.log);
}

static const char *how_moved(const tk_moving *m) {
    switch (m->work) {
    case TK_WORK_THREAD:
        return "is a renaming of registers";
    case TK_WORK_LANES:
        return "goes by shuffles";
    case TK_WORK_SHARED:
        return "goes through shared memory";
    }
    return "";
}

static void record_move(tk_recorder *r, const tk_op *op, const tk_moving *m) {
    tk_notes *notes = &r->f->module->notes;
    const char *name = tk_op_info(op->code)->name;
    const char *type = tk_type_text(notes->arena, tk_value_type(r->f, op->res[0]));
    const tk_layout *from = tk_value_layout(r->f, op->opnd[0]);
    tk_note_rec *n = note(r, op, "move", TK_NOTE_INFO,
                          tk_format(notes->arena, "'%s' to %s %s", name, type,
                                    from->shared ? "reads it from shared memory" : how_moved(m)));
    if (m->work != TK_WORK_THREAD) {
        number(r, n, "cost", m->cost);
    }
    if (m->other > 0) {
        number(r, n, m->work == TK_WORK_LANES ? "by shared memory" : "by shuffles", m->other);
    }
    layout_word(r, n, "from", op->opnd[0]);
    layout_word(r, n, "to", op->res[0]);
    count_across(r, op, n);
}

static void record_across(tk_recorder *r, const tk_op *op) {
    tk_arena *a = r->f->module->notes.arena;
    const char *name = tk_op_info(op->code)->name, *id = "across", *how = "through shared memory";
    if (op->code == TK_OP_REDUCE || op->code == TK_OP_ARG_REDUCE) {
        id = "reduction";
        how = how_reduced(r, op);
    } else if (op->code == TK_OP_REDUCE_FN) {
        id = "reduction";
        how = how_folded(r, op);
    } else if (op->code == TK_OP_SCAN || op->code == TK_OP_SCAN_FN) {
        id = "scan";
        how = how_scanned(r, op);
    } else if (tk_op_is_access(op)) {
        how = "one thread hands to all what it got";
    }
    tk_note_rec *n = note(r, op, id, TK_NOTE_INFO, tk_format(a, "'%s': %s", name, how));
    if (op->nopnd && !tk_op_is_access(op)) {
        layout_word(r, n, "layout", op->opnd[0]);
    }
    count_across(r, op, n);
}

// ---- Products

static const char *operand_words(const tk_recorder *r, const tk_matrix_plan *p,
                                 const tk_operand *x) {
    const char *major = x->k_major ? "K" : x == &p->a ? "M" : "N";
    switch (x->where) {
    case TK_OPERAND_REGISTERS:
        return "from registers";
    case TK_OPERAND_SHARED:
        return tk_format(r->f->module->notes.arena, "in shared memory, contiguous along %s", major);
    case TK_OPERAND_STAGED:
        break;
    }
    const bool turned = tk_layout_vector(x->l, x->row_axis) > tk_layout_vector(x->l, x->k_axis);
    return tk_format(r->f->module->notes.arena, "%s to shared memory, contiguous along %s",
                     x->k_major && turned ? "turned on its way" : "written", major);
}

static const char *unit_words(const tk_recorder *r, const tk_op *op, const char *why) {
    tk_arena *a = r->f->module->notes.arena;
    const char *t = tk_dtype_name(tk_value_type(r->f, op->opnd[0])->dtype);
    const char *as = op->at.precision == TK_PREC_IEEE   ? ""
                     : op->at.precision == TK_PREC_TF32 ? " as tf32"
                                                        : " as tf32x3";
    switch (op->at.unit) {
    case TK_UNIT_WGMMA:
        return tk_format(a, "%s%s by wgmma, four warps together", t, as);
    case TK_UNIT_MMA:
        return tk_format(a, "%s%s by mma.sync%s%s", t, as, why ? ", not wgmma: " : "",
                         why ? why : "");
    case TK_UNIT_FMA:
        break;
    }
    return tk_format(a, "by multiplications and additions of each thread: %s", why);
}

// A part of a tile may be smaller than any that is written in the source.
static const char *why_in_parts(const tk_recorder *r, const tk_op *op, const char *why) {
    const tk_op *in = op->in->owner;
    if (!in || in->code != TK_OP_FOR || !tk_is_of_parts(in)) {
        return why;
    }
    return tk_format(r->f->module->notes.arena,
                     "its tile is so large that it is worked on in parts, of which %s; choose a "
                     "smaller tile",
                     why);
}

// A slower unit than the target has is always noted as missed.
static void record_product(tk_recorder *r, const tk_op *op) {
    tk_module *m = r->f->module;
    const bool is_dot = op->code == TK_OP_DOT, fma = !is_dot || op->at.unit == TK_UNIT_FMA;
    tk_dot_unit_choice c = tk_dot_unit_of(r->o->target, r->f, op, m->attrs.warps);
    c.why = c.why ? why_in_parts(r, op, c.why) : NULL;
    const tk_verdict verdict = fma || c.why ? TK_NOTE_MISSED : TK_NOTE_DONE;
    tk_note_rec *n = note(r, op, "product", verdict,
                          tk_format(m->notes.arena, "'%s': %s", tk_op_info(op->code)->name,
                                    unit_words(r, op, c.why)));
    tk_note_word_add(&m->notes, n, "unit",
                     fma                          ? "fma"
                     : op->at.unit == TK_UNIT_MMA ? "mma"
                                                  : "wgmma");
    if (!fma) {
        const tk_matrix_plan p = tk_matrix_plan_of(r->f, op);
        tk_note_word_add(&m->notes, n, "a", operand_words(r, &p, &p.a));
        tk_note_word_add(&m->notes, n, "b", operand_words(r, &p, &p.b));
        tk_record_demand(r, op, &p);
    }
    layout_word(r, n, "layout", op->res[0]);
    count_across(r, op, n);
}

static bool is_combining(const tk_op *op) {
    return op->code == TK_OP_REDUCE || op->code == TK_OP_ARG_REDUCE || op->code == TK_OP_SCAN ||
           op->code == TK_OP_SCAN_FN || op->code == TK_OP_REDUCE_FN;
}

// ---- Control ------------------------------------------------------------------------------------

static double trips_of(tk_recorder *r, const tk_op *op) {
    return op->code == TK_OP_FOR || op->code == TK_OP_WHILE
               ? (double)tk_sample_trips(&r->sample, op)
               : 1;
}

// The loop that fills a ring at first.
static bool fetches(const tk_op *loop) {
    const tk_op *x = loop->reg[0]->first;
    while (x && x->code != TK_OP_IF) {
        x = x->next;
    }
    return x && x->reg[0]->first && x->reg[0]->last->prev &&
           x->reg[0]->last->prev->code == TK_OP_FETCH;
}

static void iterations(const tk_recorder *r, tk_note_rec *n, double trips) {
    if (trips >= 0) {
        number(r, n, "iterations", trips);
        means(r, n);
    }
}

// Said of the loop that has just been entered.
static void record_loop(const tk_recorder *r, const tk_op *op, double trips) {
    tk_vid ring = 0;
    for (const tk_op *x = op->reg[op->nreg - 1]->first; x; x = x->next) {
        ring = x->code == TK_OP_TAKE ? x->opnd[0] : ring;
    }
    if (!ring && op->code == TK_OP_FOR && fetches(op)) {
        return;
    }
    if (ring) {
        tk_note_rec *n = note(r, op, "loop", TK_NOTE_DONE,
                              "the loop's tiles are on their way before the iterations that use "
                              "them");
        number(r, n, "stages", (double)tk_value_def(r->f, ring)->at.slots);
        iterations(r, n, trips);
        return;
    }
    const bool asked = op->at.pipeline > 1;
    tk_note_rec *n =
        note(r, op, "loop", asked ? TK_NOTE_MISSED : TK_NOTE_INFO,
             asked ? "the loop reads each iteration's tiles in it, not ahead as 'pipeline' asks"
                   : "the loop reads each iteration's tiles in it");
    number(r, n, "stages", 1);
    if (asked) {
        number(r, n, "pipeline", (double)op->at.pipeline);
    }
    iterations(r, n, trips);
}

// Registers of 32 bits that a thread has of the op's largest result.
static void see_largest(tk_recorder *r, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_layout *l = tk_value_layout(r->f, op->res[i]);
        l = l && !l->shared ? l : NULL;
        const unsigned bits = l ? tk_dtype_bits(tk_value_type(r->f, op->res[i])->dtype) : 0;
        const uint64_t words = l ? (((uint64_t)bits << l->regs) + 31) / 32 : 0;
        if (words > r->largest_words) {
            r->largest_words = words;
            r->largest = op;
        }
    }
}

static void record_largest(const tk_recorder *r) {
    if (r->largest) {
        tk_arena *a = r->f->module->notes.arena;
        const tk_type *t = tk_value_type(r->f, r->largest->res[0]);
        tk_note_rec *n =
            note(r, r->largest, "largest-tile", TK_NOTE_INFO,
                 tk_format(a, "%s is the first of the largest tiles", tk_type_text(a, t)));
        number(r, n, "registers", (double)r->largest_words);
        layout_word(r, n, "layout", r->largest->res[0]);
    }
}

static void record_region(tk_recorder *r, const tk_region *region);

// When region i of an `if` runs. It is known where the first program and the last take the same
// side, in the first iterations and in the last.
static const char *branch_of(tk_recorder *r, const tk_op *op, uint32_t i) {
    const uint32_t axes = r->f->grid ? r->f->grid->last->nopnd : 0;
    bool known = true, same = true;
    tk_const x = {.bits = 0}, first = x;
    for (unsigned k = 0; k < 4 && known; k++) {
        for (uint32_t a = 0; a < axes; a++) {
            const int64_t n = tk_sample_programs_along(&r->sample, a);
            r->sample.program[a] = k & 1 && n > 0 ? n - 1 : 0;
        }
        r->sample.last = k & 2;
        known = tk_sample_value(&r->sample, op->opnd[0], 0, &x);
        first = k ? first : x;
        same = same && x.bits == first.bits;
    }
    r->sample.last = false;
    memset(r->sample.program, 0, sizeof r->sample.program);
    return !known                      ? "where data or a size that is not known asks for it"
           : !same                     ? "in some programs or iterations"
           : (first.bits ? 0 : 1) == i ? NULL
                                       : "not for these sizes";
}

// What a loop or a branch has in it.
static void record_inside(tk_recorder *r, const tk_op *op) {
    const tk_recorder was = *r;
    const double each = tk_record_enter(r, op, trips_of(r, op));
    if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        record_loop(r, op, each);
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        const char *outer = r->branch;
        r->branch = outer || op->code != TK_OP_IF ? outer : branch_of(r, op, i);
        record_region(r, op->reg[i]);
        r->branch = outer;
    }
    tk_record_leave(r, &was);
}

static void record_op(tk_recorder *r, const tk_op *op) {
    const bool combine = op->code == TK_OP_REDUCE_FN || op->code == TK_OP_SCAN_FN;
    tk_moving m;
    see_largest(r, op);
    if (tk_op_is_access(op)) {
        record_access(r, op);
    } else if (op->code == TK_OP_TAKE) {
        record_taken(r, op);
        tk_record_demand_of_take(r, op);
    }
    if (tk_moving_of(r->f, op, &m)) {
        record_move(r, op, &m);
    } else if (op->code == TK_OP_RING) {
        record_ring(r, op);
    } else if (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) {
        record_product(r, op);
    } else if (is_combining(op) || (tk_scratch_bytes(r->f, op) && !op->at.staged && !op->at.hold &&
                                    !tk_is_copied_out(op))) {
        record_across(r, op);
    }
    if (op->code == TK_OP_BARRIER && !tk_barrier_is_idle(r->f, op, r->x->facts)) {
        tk_note_rec *n = note(r, op, "barrier", TK_NOTE_INFO,
                              "all threads wait, so that memory is used in order");
        tk_record_branch(r, n);
        number(r, n, "barriers", r->times >= 0 ? r->times : 1);
    }
    tk_record_work(r, op);
    if (op->nreg && !combine) {
        record_inside(r, op);
    }
}

static void record_region(tk_recorder *r, const tk_region *region) {
    for (const tk_op *op = region->first; op; op = op->next) {
        record_op(r, op);
    }
}

void tk_record_kernel(tk_arena *scratch, tk_func *f, const tk_axis *x, const tk_record_opts *o) {
    tk_recorder r = {.scratch = scratch, .f = f, .x = x, .o = o, .times = 1};
    r.sample = (tk_sample){.f = f, .size = o->size, .scalar = o->scalar};
    r.moved = TK_NEW_ARRAY(scratch, tk_moved, f->params.n + 1);
    r.programs = (double)tk_sample_programs(&r.sample);
    record_region(&r, f->body);
    record_largest(&r);
    if (o->counts) {
        tk_record_whole(&r);
    }
}
