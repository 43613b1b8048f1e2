// SPDX-License-Identifier: Apache-2.0
// Pass ring: loads of loops run ahead, into rings in shared memory.
//
// in:    tile level, calls inlined, extents powers of two; what the caller promises of the tensors
// out:   loads of a `for` are fetched n - 1 iterations ahead and taken where they stood (ring.h)
// keeps: every value, bit for bit
// needs: pad, chunk: it counts the bytes of tiles as they will be; licm, dce
// when not: nothing asks for it and no matrix unit takes the tile. What is asked for by `pipeline`
//           and cannot be is an error: loops that do not rise by a constant; tensors that may be
//           written; places that depend on what the loop computes; loads in branches; more shared
//           memory than there is. By rule and by `@stages` also: masks, other values outside than
//           0.
//
// What a mask leaves out, and what is outside the tensor where another value than 0 stands for it,
// is fetched like the rest and replaced when the tile is taken.
//
// By rule: what a matrix unit takes from a ring, and what tensor copies can bring of what it does
// not (by `convert` the threads then read it there, and write it where the unit does).
//
// `@stages(n)` says how many slots the rings of loops without `pipeline` have; of a loop from which
// no matrix unit has its operands, all loads that can run ahead then do. It is an error where there
// is no room for so many, and where no loop has a load that can run ahead.
#include "lower/box.h"
#include "lower/out.h"
#include "lower/ring_job.h"

#include "ir/matrix.h"
#include "ir/pass_util.h"
#include "ir/scratch.h"

// ---- Which loads --------------------------------------------------------------------------------

// Whether v can be computed for another iteration: from the index and what is outside.
static bool can_move(const tk_ring_job *j, tk_vid v, unsigned depth) {
    enum { DEEP = 32 };
    const tk_func *f = j->s->f;
    const tk_region *body = j->loop->reg[0];
    const tk_op *d = tk_value_def(f, v);
    if (!tk_ring_in_loop(j, d)) {
        return tk_value_region(f, v) != body || v == body->args.at[0];
    }
    if (!tk_op_is_pure(d) || depth > DEEP) {
        return false;
    }
    for (uint32_t i = 0; i < d->nopnd; i++) {
        if (!can_move(j, d->opnd[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static const char *view_why_not(const tk_ring_job *j, const tk_op *op) {
    const tk_func *f = j->s->f;
    const tk_type *tensor = tk_value_type(f, op->opnd[0]);
    if (tensor->access != TK_IN) {
        return "the tensor may be written";
    }
    if (!j->asked &&
        (op->at.masked || op->at.other)) { // a matrix unit could not take it as it lies
        return op->at.masked ? "it has a mask" : "it has another value outside than 0";
    }
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (op->at.index[d] == -1) {
            return "it is indexed by a tile";
        }
        if (!can_move(j, op->opnd[1 + d], 0)) {
            return "its place depends on what the loop computes";
        }
    }
    return NULL;
}

static const char *why_not(const tk_ring_job *j, const tk_op *op) {
    const char *why = view_why_not(j, op);
    if (why) {
        return why;
    }
    return tk_ring_yields(j, op->res[0]) && !j->asked ? "the next iteration uses it" : NULL;
}

// What was asked for cannot be.
static void refuse(const tk_ring_job *j, const tk_op *op, const char *why) {
    tk_pass_ctx *c = j->s->c;
    tk_gpu_refuse(c->diags, c->m, c->target, op,
                  tk_format(c->diags->arena, "'pipeline(%lld)' cannot be kept: %s",
                            (long long)j->slots, why));
}

// A reason why a loop does not keep `@stages`, which others may.
static void excuse(tk_ring_job *j, const tk_op *at, const char *why) {
    tk_ringer *s = j->s;
    if (j->staged && !s->why) {
        s->why = why;
        s->why_at = at;
    }
}

static void note_missed(const tk_ring_job *j, const tk_op *load, const char *why) {
    tk_module *m = j->s->c->m;
    tk_note_add(&m->notes, "ring", "ahead", tk_loc_span(m, load->loc), TK_NOTE_MISSED,
                "'%s' is not loaded ahead: %s", tk_ring_name(j, load), why);
}

// Whether a matrix unit takes v, which lies as l says, from there, as it is or permuted.
static bool feeds_unit(const tk_ring_job *j, tk_vid v, const tk_layout *l, bool rounded) {
    const tk_func *f = j->s->f;
    for (const tk_op *op = j->loop->reg[0]->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nopnd; i++) {
            if (op->opnd[i] != v) {
                continue;
            }
            if (op->code == TK_OP_DOT && !tk_unit_why_not(f, op, i, l, rounded)) {
                return true;
            }
            if (op->code == TK_OP_PERMUTE) {
                const tk_layout turned = tk_layout_permute(l, op->at.perm);
                return feeds_unit(j, op->res[0], &turned, rounded);
            }
        }
    }
    return false;
}

// Why the unit of a product does not take v from there, as it is or permuted; NULL: none works on
// it.
static const char *unit_why_not(const tk_ring_job *j, tk_vid v, const tk_layout *l, bool rounded) {
    const tk_func *f = j->s->f;
    const char *why = NULL;
    for (const tk_op *op = j->loop->reg[0]->first; op && !why; op = op->next) {
        for (uint32_t i = 0; i < op->nopnd && !why; i++) {
            if (op->opnd[i] == v && op->code == TK_OP_DOT && op->at.unit != TK_UNIT_FMA && i < 2) {
                why = tk_unit_why_not(f, op, i, l, rounded);
            } else if (op->opnd[i] == v && op->code == TK_OP_PERMUTE) {
                const tk_layout turned = tk_layout_permute(l, op->at.perm);
                why = unit_why_not(j, op->res[0], &turned, rounded);
            }
        }
    }
    return why;
}

// A load that is asked for, or by rule one of an operand of a matrix unit. *through: why the unit
// does not take it from the ring, so that all threads write it again where it does.
static bool concerns(const tk_ring_job *j, const tk_op *op, const char **through) {
    if (op->code != TK_OP_LOAD || tk_value_type(j->s->f, op->res[0])->rank == 0) {
        return false;
    }
    const tk_layout l = tk_ring_layout_of(j->s->f, op);
    const bool rounded = tk_ring_rounds_load(j, op);
    if (j->every || feeds_unit(j, op->res[0], &l, rounded)) {
        return true;
    }
    *through = unit_why_not(j, op->res[0], &l, rounded);
    return *through != NULL;
}

// What is asked for stands in a branch or a loop of its own.
static void deeper(tk_ring_job *j, const tk_op *owner, const char *why) {
    const bool parts = owner->code == TK_OP_FOR && tk_is_of_parts(owner);
    why = why                       ? why
          : owner->code == TK_OP_IF ? "it stands in a branch that may not be taken"
          : parts ? "it is used with a tile so large that it is worked on in parts; "
                    "choose a smaller tile"
                  : NULL;
    for (uint32_t i = 0; i < owner->nreg && why; i++) {
        for (const tk_op *op = owner->reg[i]->first; op; op = op->next) {
            const char *through = NULL;
            if (op->code == TK_OP_LOAD && concerns(j, op, &through)) {
                j->found = true;
                refuse(j, op, why);
            }
            deeper(j, op, why);
        }
    }
}

static void collect(tk_ring_job *j) {
    for (tk_op *op = j->loop->reg[0]->first; op; op = op->next) {
        const char *through = NULL;
        if (!concerns(j, op, &through)) {
            if (j->asked) {
                deeper(j, op, NULL);
            }
            continue;
        }
        j->found = j->found || !through;
        const char *why = why_not(j, op);
        why = !why && j->loads.n == TK_RING_LOADS ? "there are too many loads" : why;
        const tk_ringer *s = j->s;
        why = why ? why : tk_place_why_not(s->x, op);
        const char *slower = tk_boxes_why_not(s->x, s->c->target, op, s->log_warps);
        const char *place = why || !slower ? NULL : tk_fetch_why_not(s->x, op, s->log_warps);
        if (through && (why || slower)) {
            note_missed(j, op, through);
        } else if (why && j->asked) {
            refuse(j, op, why);
        } else if (why) {
            note_missed(j, op, why);
            excuse(j, op, why);
        } else {
            j->how[j->loads.n] = place ? TK_HOW_REGISTERS : slower ? TK_HOW_ASYNC : TK_HOW_TENSOR;
            j->slower[j->loads.n] = slower;
            j->through[j->loads.n] = through;
            j->place[j->loads.n] = place;
            tk_vec_push(j->s->c->scratch, &j->loads, op);
        }
    }
}

// ---- Which loops --------------------------------------------------------------------------------

// The largest number of the index's type; 0: a type that no loop has.
static int64_t greatest(tk_dtype t) {
    const unsigned bits = tk_dtype_bits(t) - (tk_dtype_is_signed(t) ? 1 : 0);
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

static const char *loop_why_not(tk_ring_job *j) {
    const tk_func *f = j->s->f;
    const tk_op *op = j->loop;
    const tk_const *step = tk_value_const(f, op->opnd[2]);
    j->index = tk_value_type(f, op->opnd[0])->dtype;
    j->step = step ? tk_const_as_i64(*step) : 0;
    if (j->step <= 0) {
        return "it does not rise by a constant";
    }
    if (j->step > greatest(j->index) / j->slots) {
        return "its step is too large";
    }
    if (!j->asked && tk_has_loop(op->reg[0])) {
        return "it has a loop in it";
    }
    return op->at.reverse ? "it runs from its last iteration to its first" : NULL;
}

// Bytes of all rings with one slot each.
static uint64_t slot_bytes(const tk_ring_job *j) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_type *t = tk_value_type(j->s->f, j->loads.at[i]->res[0]);
        bytes += tk_ring_slot_bytes(t);
    }
    return bytes;
}

// Bytes of the tiles that are written once more where a matrix unit reads them.
static uint64_t through_bytes(const tk_ring_job *j) {
    uint64_t bytes = j->dropped;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_type *t = tk_value_type(j->s->f, j->loads.at[i]->res[0]);
        bytes += j->through[i] ? tk_ring_slot_bytes(t) : 0;
    }
    return bytes;
}

// Bytes of the tiles from outside of the loop that its products read in rings of one slot.
static uint64_t staying_bytes(const tk_ring_job *j) {
    uint64_t bytes = 0;
    for (const tk_op *op = j->s->f->body->first; op; op = op->next) {
        if (op->code == TK_OP_TAKE && tk_op_uses_any(j->loop, op->res, 1)) {
            bytes += tk_ring_slot_bytes(tk_value_type(j->s->f, op->res[0]));
        }
    }
    return bytes;
}

// The barriers of all slots stand before the rings, in a part of their own.
static bool enough_memory(const tk_ring_job *j) {
    return (uint64_t)j->slots * slot_bytes(j) + through_bytes(j) + staying_bytes(j) +
               TK_PLACED_ALIGN <=
           j->s->c->target->shared_max;
}

typedef struct stored {
    const tk_ringer *s;
    const tk_func *f;
    uint64_t bytes; // of the largest tile
} stored;

// What goes out by tensor copies goes in as many pieces as there is room for.
static void find_stored(void *user, tk_op *op) {
    stored *s = user;
    const tk_ringer *r = s->s;
    if (op->code == TK_OP_STORE && tk_out_why_not(r->x, r->c->target, s->f, op, r->log_warps)) {
        const tk_type *t = tk_value_type(s->f, op->opnd[op->nopnd - (op->at.masked ? 2 : 1)]);
        const uint64_t bytes = (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
        s->bytes = bytes > s->bytes ? bytes : s->bytes;
    }
}

// Of `pipeline(n)`, with how many iterations there would be room for.
static const char *too_many(const tk_ring_job *j) {
    const uint64_t all = j->s->c->target->shared_max, one = slot_bytes(j);
    const uint64_t beside = through_bytes(j) + staying_bytes(j) + TK_PLACED_ALIGN;
    const uint64_t room = one && beside < all ? (all - beside) / one : 0;
    return tk_format(j->s->c->diags->arena,
                     "its tiles are too many for shared memory: those of an iteration are %llu "
                     "bytes, and %llu are there, enough for %llu%s",
                     (unsigned long long)one, (unsigned long long)all, (unsigned long long)room,
                     room > 1 ? "" : "; choose smaller tiles");
}

// What says how many stages there are.
static const char *stages_text(const tk_pass_ctx *c) {
    const tk_kernel_attrs *at = &c->m->attrs;
    return at->stages_tuned
               ? tk_format(c->diags->arena, "tune(stages in {%lld, ...})", (long long)at->stages)
               : tk_format(c->diags->arena, "stages(%lld)", (long long)at->stages);
}

// `@stages` of a loop that has loads.
static bool enough_for_stages(const tk_ring_job *j) {
    tk_pass_ctx *c = j->s->c;
    if (!j->staged || enough_memory(j)) {
        return true;
    }
    tk_diag *d = tk_gpu_refuse_attr(
        c->diags, c->target, c->m->attrs.stages_span, stages_text(c),
        tk_format(c->diags->arena,
                  "the tiles of an iteration are %llu bytes, and there are %u of shared memory",
                  (unsigned long long)slot_bytes(j), c->target->shared_max));
    tk_note(c->diags, d, tk_loc_span(c->m, j->loop->loc), "this loop loads them");
    return false;
}

// The load that v is, as it is or permuted; NULL: it is something else.
static const tk_op *load_of(const tk_ring_job *j, tk_vid v) {
    const tk_op *d = tk_value_def(j->s->f, v);
    while (d && d->code == TK_OP_PERMUTE) {
        d = tk_value_def(j->s->f, d->opnd[0]);
    }
    for (uint32_t i = 0; i < j->loads.n; i++) {
        if (j->loads.at[i] == d && !j->through[i]) {
            return d;
        }
    }
    return NULL;
}

// Whether the loop makes nothing but products of tiles that are loaded ahead: no op in it needs
// shared memory of its own.
static bool products_alone(const tk_ring_job *j) {
    for (const tk_op *op = j->loop->reg[0]->first; op; op = op->next) {
        const bool tile = op->nres > 0 && tk_value_type(j->s->f, op->res[0])->rank > 0;
        const bool dot =
            op->code == TK_OP_DOT && load_of(j, op->opnd[0]) && load_of(j, op->opnd[1]);
        if (op->nreg > 0 || (tile && !dot && !load_of(j, op->res[0]))) {
            return false;
        }
    }
    return true;
}

// Where nobody says how many: as many as there is room for beside what other ops of the program may
// need, which is not known yet, if it needs any. Where the next program's tiles may be on their
// way, what is stored needs room of its own. 0: too few.
static int64_t slots_by_rule(const tk_ring_job *j) {
    enum { MOST = 4 };
    const uint64_t bytes = slot_bytes(j), all = j->s->c->target->shared_max;
    stored s = {.s = j->s, .f = j->s->f, .bytes = TK_OUT_KEPT};
    if (j->s->c->m->attrs.persistent) {
        tk_func_walk(j->s->f, find_stored, &s);
    }
    const uint64_t kept = s.bytes + through_bytes(j) + staying_bytes(j);
    uint64_t n = bytes && kept < all ? (all - kept) / bytes : 0;
    if (bytes && n < 2 && !j->s->c->m->attrs.persistent && products_alone(j)) {
        n = (all - TK_PLACED_ALIGN) / bytes;
    }
    return n < 2 ? 0 : n > MOST ? MOST : (int64_t)n;
}

// ---- The pass -----------------------------------------------------------------------------------

// Those whose tiles are written once more where a unit reads them are not loaded ahead, but in
// their iterations. True: there were any.
static bool drop_through(tk_ring_job *j) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        if (j->through[i]) {
            j->dropped += tk_ring_slot_bytes(tk_value_type(j->s->f, j->loads.at[i]->res[0]));
            note_missed(j, j->loads.at[i],
                        tk_format(j->s->c->m->arena,
                                  "there is no room for its tiles and for the one that is written "
                                  "where the matrix unit reads it: %s",
                                  j->through[i]));
            continue;
        }
        j->loads.at[n] = j->loads.at[i];
        j->how[n] = j->how[i];
        j->slower[n] = j->slower[i];
        j->place[n] = j->place[i];
        j->through[n++] = NULL;
    }
    const bool any = n < j->loads.n;
    j->loads.n = n;
    return any;
}

static const char *loads_of(tk_ring_job *j) {
    j->every = j->asked;
    collect(j);
    if (j->staged && !j->found && !j->loads.n) {
        j->every = true;
        collect(j);
    }
    if (j->staged) {
        if (!enough_memory(j)) {
            (void)drop_through(j);
        }
        return NULL;
    }
    if (!j->asked) {
        j->slots = slots_by_rule(j);
        if (j->slots < 2 && drop_through(j)) {
            j->slots = slots_by_rule(j);
        }
        return NULL;
    }
    return !j->found ? "the loop loads no tiles" : !enough_memory(j) ? too_many(j) : NULL;
}

// By rule streams do not run ahead. A block waits for its tiles while others of its multiprocessor
// read theirs, and what all of them have on its way is what counts; the room of a ring takes from
// that, and from the first cache.
static void note_streams(const tk_ring_job *j) {
    tk_module *m = j->s->c->m;
    const tk_op *op = j->loop->reg[0]->first;
    while (op && (op->code != TK_OP_LOAD || tk_value_type(j->s->f, op->res[0])->rank == 0)) {
        op = op->next;
    }
    if (op && !tk_is_of_parts(j->loop) && !tk_multiplies(j->loop->reg[0])) {
        tk_note_add(&m->notes, "ring", "ahead", tk_loc_span(m, j->loop->loc), TK_NOTE_INFO,
                    "the loop's tiles are not loaded ahead, by rule: no matrix unit waits for "
                    "them, and other blocks read meanwhile; 'pipeline(n)' loads them ahead");
    }
}

static void judge(tk_ringer *s, tk_op *loop) {
    tk_ring_job j = {.s = s,
                     .make = {s->f, s->c->m->arena, loop->loc},
                     .loop = loop,
                     .slots = loop->at.pipeline,
                     .asked = loop->at.pipeline > 1};
    const int64_t stages = s->c->m->attrs.stages;
    j.staged = !loop->at.pipeline && stages > 1 && !tk_has_loop(loop->reg[loop->nreg - 1]);
    if (loop->at.pipeline == 1 || (stages == 1 && !j.asked) ||
        (!j.asked && !j.staged && loop->code == TK_OP_WHILE)) {
        return;
    }
    j.slots = j.asked ? j.slots : j.staged ? stages : 2;
    const char *why = loop->code == TK_OP_WHILE
                          ? "how often the loop runs is not known when it begins"
                          : loop_why_not(&j);
    why = why ? why : loads_of(&j);
    if (why && j.asked) {
        refuse(&j, loop, why);
    } else if (!why && j.loads.n && j.slots > 1 && enough_for_stages(&j) &&
               s->c->diags->errors == 0) {
        tk_ring_make(&j);
        s->staged = s->staged || j.staged;
    } else if (j.staged && why) {
        excuse(&j, loop, why);
    } else if (!j.asked && !j.staged) {
        note_streams(&j);
    }
}

// `@stages` is kept by a loop, or an error.
static void judge_stages(const tk_ringer *s) {
    tk_pass_ctx *c = s->c;
    const tk_kernel_attrs *at = &c->m->attrs;
    if (at->stages <= 1 || s->staged || c->diags->errors > 0) {
        return;
    }
    tk_diag *d = tk_gpu_refuse_attr(
        c->diags, c->target, at->stages_span, stages_text(c),
        s->why ? s->why : "there is no loop without 'pipeline' that loads tiles");
    if (s->why) {
        tk_note(c->diags, d, tk_loc_span(c->m, s->why_at->loc), "here");
    }
}

static void find_loop(void *user, tk_op *op) {
    tk_ringer *s = user;
    if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        tk_vec_push(s->c->scratch, &s->loops, op);
    }
}

void tk_pass_ring(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (!f->is_kernel) {
            continue;
        }
        tk_ringer s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
        s.log_warps = tk_log_warps(f);
        tk_func_walk(f, find_loop, &s);
        for (uint32_t k = 0; k < s.loops.n; k++) {
            judge(&s, s.loops.at[k]);
        }
        judge_stages(&s);
    }
}
