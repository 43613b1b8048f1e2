// SPDX-License-Identifier: Apache-2.0
// Notes of a lowered kernel. See record.h.
#include "lower/record.h"

#include "ir/move.h"
#include "ir/pass_util.h"
#include "lower/count.h"
#include "lower/out.h"
#include "lower/record_internal.h"
#include "lower/ring.h"
#include "lower/units.h"
#include "lower/walk.h"

#include <string.h>

tk_note_rec *tk_record_note(const tk_recorder *r, const tk_op *op, const char *id,
                            tk_verdict verdict, const char *text) {
    tk_module *m = r->f->module;
    tk_note_rec *n =
        tk_note_add(&m->notes, "record", id, tk_loc_span(m, op->loc), verdict, "%s", text);
    n->loc = op->loc;
    return n;
}

void tk_record_number(const tk_recorder *r, tk_note_rec *n, const char *name, double value) {
    tk_note_number_add(&r->f->module->notes, n, name, value);
}

static const char *layout_text(const tk_recorder *r, const tk_layout *l) {
    tk_buf b;
    tk_buf_init(&b, r->f->module->notes.arena);
    tk_layout_words(&b, l);
    return tk_buf_text(&b);
}

void tk_record_layout(const tk_recorder *r, tk_note_rec *n, const char *name, tk_vid v) {
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

void tk_record_times(const tk_recorder *r, tk_note_rec *n) {
    tk_record_branch(r, n);
    means(r, n);
    if (r->times >= 0) {
        tk_record_number(r, n, "times", r->times);
    } else {
        tk_note_word_add(&r->f->module->notes, n, "times", "not known: the counts are of one");
    }
}

// ---- Across threads: counts ---------------------------------------------------------------------

// The memory that it has while it runs: its bytes.
uint64_t tk_record_memory(const tk_recorder *r, const tk_op *op, tk_note_rec *n) {
    const uint64_t bytes = tk_scratch_bytes(r->f, op);
    if (bytes) {
        tk_record_number(r, n, "offset", (double)op->at.shared);
        tk_record_number(r, n, "shared", (double)bytes);
    }
    return bytes;
}

static void count_across(const tk_recorder *r, const tk_op *op, tk_note_rec *n) {
    tk_arena *scratch = r->scratch;
    const uint64_t bytes = tk_record_memory(r, op, n);
    if (!r->o->counts) {
        return;
    }
    const tk_across_count c =
        tk_count_across(scratch, r->f, op, (unsigned)r->f->module->attrs.warps);
    const double by = r->times >= 0 ? r->times : 1;
    tk_record_times(r, n);
    if (!c.known) {
        tk_note_word_add(&r->f->module->notes, n, "wavefronts", "not counted");
        return;
    }
    const uint64_t units = c.read.units + c.written.units, least = c.read.least + c.written.least;
    tk_record_number(r, n, "shuffles", c.shuffles * by);
    tk_record_number(r, n, "barriers", c.barriers * by);
    if (bytes || c.read.requests) {
        tk_record_number(r, n, "requests", (double)(c.read.requests + c.written.requests) * by);
        tk_record_number(r, n, "wavefronts", (double)units * by);
        tk_record_number(r, n, "least wavefronts", (double)least * by);
        tk_record_number(r, n, "conflicts", (double)(units - least) * by);
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
    tk_note_rec *n =
        tk_record_note(r, op, "move", TK_NOTE_INFO,
                       tk_format(notes->arena, "'%s' to %s %s", name, type,
                                 from->shared ? "reads it from shared memory" : how_moved(m)));
    if (m->work != TK_WORK_THREAD) {
        tk_record_number(r, n, "cost", m->cost);
    }
    if (m->other > 0) {
        tk_record_number(r, n, m->work == TK_WORK_LANES ? "by shared memory" : "by shuffles",
                         m->other);
    }
    tk_record_layout(r, n, "from", op->opnd[0]);
    tk_record_layout(r, n, "to", op->res[0]);
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
    tk_note_rec *n = tk_record_note(r, op, id, TK_NOTE_INFO, tk_format(a, "'%s': %s", name, how));
    if (op->nopnd && !tk_op_is_access(op)) {
        tk_record_layout(r, n, "layout", op->opnd[0]);
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
        return tk_format(a, "%s%s by mma.sync%s%s%s%s", t, as, why ? ", not " : "",
                         why && r->o->target->unit ? r->o->target->unit : "", why ? ": " : "",
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
    tk_note_rec *n =
        tk_record_note(r, op, "product", verdict,
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
    tk_record_layout(r, n, "layout", op->res[0]);
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
        tk_record_number(r, n, "iterations", trips);
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
        tk_note_rec *n =
            tk_record_note(r, op, "loop", TK_NOTE_DONE,
                           "the loop's tiles are on their way before the iterations that use "
                           "them");
        tk_record_number(r, n, "stages", (double)tk_value_def(r->f, ring)->at.slots);
        iterations(r, n, trips);
        return;
    }
    const bool asked = op->at.pipeline > 1;
    tk_note_rec *n = tk_record_note(
        r, op, "loop", asked ? TK_NOTE_MISSED : TK_NOTE_INFO,
        asked ? "the loop reads each iteration's tiles in it, not ahead as 'pipeline' asks"
              : "the loop reads each iteration's tiles in it");
    tk_record_number(r, n, "stages", 1);
    if (asked) {
        tk_record_number(r, n, "pipeline", (double)op->at.pipeline);
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
        tk_note_rec *n = tk_record_note(
            r, r->largest, "largest-tile", TK_NOTE_INFO,
            tk_format(a, "%s is the first of the largest tiles", tk_type_text(a, t)));
        tk_record_number(r, n, "registers", (double)r->largest_words);
        tk_record_layout(r, n, "layout", r->largest->res[0]);
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
        tk_record_access(r, op);
    } else if (op->code == TK_OP_TAKE) {
        tk_record_taken(r, op);
        tk_record_demand_of_take(r, op);
    }
    if (tk_moving_of(r->f, op, &m)) {
        record_move(r, op, &m);
    } else if (op->code == TK_OP_RING) {
        tk_record_ring(r, op);
    } else if (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) {
        record_product(r, op);
    } else if (is_combining(op) || (tk_scratch_bytes(r->f, op) && !op->at.staged && !op->at.hold &&
                                    !tk_is_copied_out(op))) {
        record_across(r, op);
    }
    if (op->code == TK_OP_BARRIER && !tk_barrier_is_idle(r->f, op, r->x->facts)) {
        tk_note_rec *n = tk_record_note(r, op, "barrier", TK_NOTE_INFO,
                                        "all threads wait, so that memory is used in order");
        tk_record_branch(r, n);
        tk_record_number(r, n, "barriers", r->times >= 0 ? r->times : 1);
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
