// SPDX-License-Identifier: Apache-2.0
// What loads leave in shared memory for other loops, and take from there (ir/hold.h).
#include "ir/hold.h"
#include "ir/pass_util.h"
#include "lower/count.h"
#include "lower/record_internal.h"

enum { LANES = 32, MOST_BYTES = 16 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Of the iterations of its loop.
static double held_in_loop(tk_recorder *r, const tk_op *op) {
    const tk_op *holder = op->at.held ? tk_holder_of(r->f, op) : op;
    const int64_t trips = tk_sample_trips(&r->sample, op->in->owner),
                  of = tk_sample_trips(&r->sample, holder->in->owner);
    return trips <= 0 || of < 0 ? 0 : (double)least(holder->at.hold, least(trips, of));
}

double tk_record_held(tk_recorder *r, const tk_op *op) {
    if ((!op->at.hold && !op->at.held) || r->times < 0) {
        return 0;
    }
    const double n = tk_record_sum(r, held_in_loop, op);
    return n > 0 ? n : 0;
}

// The requests of one execution: pieces of 16 bytes, those of a warp's lanes side by side.
static tk_requests requests_of(const tk_recorder *r, const tk_op *op) {
    const tk_layout *l = tk_value_layout(r->f, op->res[0]);
    const uint64_t all = tk_dtype_size(tk_value_type(r->f, op->res[0])->dtype) << l->regs;
    const uint32_t piece = all < MOST_BYTES ? (uint32_t)all : MOST_BYTES;
    uint64_t at[LANES];
    for (uint32_t i = 0; i < LANES; i++) {
        at[i] = i * piece;
    }
    tk_requests one = {0, 0, 0};
    tk_count_wavefronts(&one, UINT32_MAX, at, piece, op->at.held > 0);
    const uint64_t n = all / piece * (uint64_t)r->f->module->attrs.warps;
    return (tk_requests){n * one.requests, n * one.units, n * one.least};
}

void tk_record_hold(tk_recorder *r, const tk_op *op) {
    tk_module *m = r->f->module;
    tk_notes *notes = &m->notes;
    const tk_op *holder = op->at.held ? tk_holder_of(r->f, op) : op;
    tk_note_rec *n =
        tk_note_add(notes, "record", "holding", tk_loc_span(m, op->loc), TK_NOTE_INFO,
                    op->at.held ? "'load' takes what each thread left there, 16 bytes at once"
                                : "'load' leaves its tiles for another loop, each thread its "
                                  "own elements, 16 bytes at once");
    n->loc = op->loc;
    tk_note_number_add(notes, n, "offset", (double)holder->at.shared);
    tk_note_number_add(notes, n, "shared",
                       (double)holder->at.hold * (double)tk_held_bytes(r->f, holder));
    tk_note_number_add(notes, n, "iterations", (double)holder->at.hold);
    if (!r->o->counts) {
        return;
    }
    tk_record_branch(r, n);
    const double mean = r->times < 0 ? 0 : tk_record_mean(r, held_in_loop, op);
    const double times = mean > 0 ? mean : 0;
    const tk_requests one = requests_of(r, op);
    tk_note_number_add(notes, n, "times", times);
    tk_note_number_add(notes, n, "requests", times * (double)one.requests);
    tk_note_number_add(notes, n, "wavefronts", times * (double)one.units);
    tk_note_number_add(notes, n, "least wavefronts", times * (double)one.least);
    tk_note_number_add(notes, n, "conflicts", times * (double)(one.units - one.least));
}
