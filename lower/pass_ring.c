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
#include "lower/lower.h"
#include "lower/make.h"
#include "lower/out.h"
#include "lower/ring.h"
#include "lower/stage.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include "ir/matrix.h"
#include "ir/pass_util.h"
#include "ir/scratch.h"

#include <string.h>

typedef TK_VEC(tk_op *) op_list;

typedef struct ringer {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    unsigned log_warps;
    op_list loops;
    bool staged;         // `@stages` was kept by a loop
    const char *why;     // the first reason why it is not
    const tk_op *why_at; // where
} ringer;

// One loop.
typedef struct job {
    tk_maker make;
    ringer *s;
    tk_op *loop;
    op_list loads;
    tk_vid ring[16]; // of each
    tk_how how[16];
    const char *slower[16];  // why not by tensor copies
    const char *through[16]; // why a matrix unit does not take it from there; NULL: no matter
    uint64_t dropped;        // bytes of the tiles of those that are not loaded ahead after all
    const char *place[16];   // why not by copies of threads either; NULL: so, or better
    int64_t slots, step;
    tk_dtype index; // its type
    bool asked;     // by `pipeline`
    bool staged;    // by `@stages`
    bool every;     // load of a tile is wanted, not only what a matrix unit takes
    bool found;     // a load of a tile
} job;
enum { MOST_LOADS = 16 };

// ---- Which loads --------------------------------------------------------------------------------

static bool in_loop(const job *j, const tk_op *op) { return op && op->in == j->loop->reg[0]; }

// Whether v can be computed for another iteration: from the index and what is outside.
static bool can_move(const job *j, tk_vid v, unsigned depth) {
    enum { DEEP = 32 };
    const tk_func *f = j->s->f;
    const tk_region *body = j->loop->reg[0];
    const tk_op *d = tk_value_def(f, v);
    if (!in_loop(j, d)) {
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

static const char *view_why_not(const job *j, const tk_op *op) {
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

// Whether the next iteration uses v, or v permuted, which is the same tile in shared memory.
static bool yields(const job *j, tk_vid v) {
    for (const tk_op *op = j->loop->reg[0]->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nopnd; i++) {
            if (op->opnd[i] == v &&
                (op->code == TK_OP_YIELD || (op->code == TK_OP_PERMUTE && yields(j, op->res[0])))) {
                return true;
            }
        }
    }
    return false;
}

static const char *why_not(const job *j, const tk_op *op) {
    const char *why = view_why_not(j, op);
    if (why) {
        return why;
    }
    return yields(j, op->res[0]) && !j->asked ? "the next iteration uses it" : NULL;
}

// What was asked for cannot be.
static void refuse(const job *j, const tk_op *op, const char *why) {
    tk_pass_ctx *c = j->s->c;
    tk_gpu_refuse(c->diags, c->m, c->target, op,
                  tk_format(c->diags->arena, "'pipeline(%lld)' cannot be kept: %s",
                            (long long)j->slots, why));
}

// A reason why a loop does not keep `@stages`, which others may.
static void excuse(job *j, const tk_op *at, const char *why) {
    ringer *s = j->s;
    if (j->staged && !s->why) {
        s->why = why;
        s->why_at = at;
    }
}

static const char *name_of(const job *j, const tk_op *load) {
    const char *name = j->s->f->value.at[load->opnd[0]].name;
    return name ? name : "?";
}

static void note_missed(const job *j, const tk_op *load, const char *why) {
    tk_module *m = j->s->c->m;
    tk_note_add(&m->notes, "ring", "ahead", tk_loc_span(m, load->loc), TK_NOTE_MISSED,
                "'%s' is not loaded ahead: %s", name_of(j, load), why);
}

static void note_done(const job *j, uint32_t i) {
    const tk_op *load = j->loads.at[i];
    const char *slower = j->slower[i], *place = j->place[i];
    tk_module *m = j->s->c->m;
    const bool said = slower && j->s->c->target && j->s->c->target->bulk;
    tk_note_rec *r =
        tk_note_add(&m->notes, "ring", "ahead", tk_loc_span(m, load->loc), TK_NOTE_DONE,
                    "'%s' is loaded ahead through shared memory, by %s%s%s%s%s%s", name_of(j, load),
                    place    ? "loads of its threads into registers"
                    : slower ? "copies of its threads"
                             : "tensor copies of one thread",
                    said ? "; not by tensor copies: " : "", said ? slower : "",
                    place ? "; not by copies of threads: " : "", place ? place : "",
                    load->at.masked ? "; with what its mask leaves out" : "");
    tk_note_number_add(&m->notes, r, "tiles", (double)j->slots);
}

// Whether a matrix unit takes v, which lies as l says, from there, as it is or permuted.
static bool feeds_unit(const job *j, tk_vid v, const tk_layout *l, bool rounded) {
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
static const char *unit_why_not(const job *j, tk_vid v, const tk_layout *l, bool rounded) {
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

// Whether tensor copies bring the tile, and round it as its products do.
static bool rounds(const job *j, const tk_op *load) {
    const ringer *s = j->s;
    return tk_ring_rounds(s->f, load) && !tk_boxes_why_not(s->x, s->c->target, load, s->log_warps);
}

// A load that is asked for, or by rule one of an operand of a matrix unit. *through: why the unit
// does not take it from the ring, so that all threads write it again where it does.
static bool concerns(const job *j, const tk_op *op, const char **through) {
    if (op->code != TK_OP_LOAD || tk_value_type(j->s->f, op->res[0])->rank == 0) {
        return false;
    }
    const tk_layout l = tk_ring_layout_of(j->s->f, op);
    const bool rounded = rounds(j, op);
    if (j->every || feeds_unit(j, op->res[0], &l, rounded)) {
        return true;
    }
    *through = unit_why_not(j, op->res[0], &l, rounded);
    return *through != NULL;
}

// What is asked for stands in a branch or a loop of its own.
static void deeper(job *j, const tk_op *owner, const char *why) {
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

static void collect(job *j) {
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
        why = !why && j->loads.n == MOST_LOADS ? "there are too many loads" : why;
        const ringer *s = j->s;
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

static const char *loop_why_not(job *j) {
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
static uint64_t slot_bytes(const job *j) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_type *t = tk_value_type(j->s->f, j->loads.at[i]->res[0]);
        bytes += tk_ring_slot_bytes(t);
    }
    return bytes;
}

// Bytes of the tiles that are written once more where a matrix unit reads them.
static uint64_t through_bytes(const job *j) {
    uint64_t bytes = j->dropped;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_type *t = tk_value_type(j->s->f, j->loads.at[i]->res[0]);
        bytes += j->through[i] ? tk_ring_slot_bytes(t) : 0;
    }
    return bytes;
}

// Bytes of the tiles from outside of the loop that its products read in rings of one slot.
static uint64_t staying_bytes(const job *j) {
    uint64_t bytes = 0;
    for (const tk_op *op = j->s->f->body->first; op; op = op->next) {
        if (op->code == TK_OP_TAKE && tk_op_uses_any(j->loop, op->res, 1)) {
            bytes += tk_ring_slot_bytes(tk_value_type(j->s->f, op->res[0]));
        }
    }
    return bytes;
}

// The barriers of all slots stand before the rings, in a part of their own.
static bool enough_memory(const job *j) {
    return (uint64_t)j->slots * slot_bytes(j) + through_bytes(j) + staying_bytes(j) +
               TK_PLACED_ALIGN <=
           j->s->c->target->shared_max;
}

typedef struct stored {
    const ringer *s;
    const tk_func *f;
    uint64_t bytes; // of the largest tile
} stored;

// What goes out by tensor copies goes in as many pieces as there is room for.
static void find_stored(void *user, tk_op *op) {
    stored *s = user;
    const ringer *r = s->s;
    if (op->code == TK_OP_STORE && tk_out_why_not(r->x, r->c->target, s->f, op, r->log_warps)) {
        const tk_type *t = tk_value_type(s->f, op->opnd[op->nopnd - (op->at.masked ? 2 : 1)]);
        const uint64_t bytes = (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
        s->bytes = bytes > s->bytes ? bytes : s->bytes;
    }
}

// Of `pipeline(n)`, with how many iterations there would be room for.
static const char *too_many(const job *j) {
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
static bool enough_for_stages(const job *j) {
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
static const tk_op *load_of(const job *j, tk_vid v) {
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
static bool products_alone(const job *j) {
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
static int64_t slots_by_rule(const job *j) {
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

// ---- Making -------------------------------------------------------------------------------------

static tk_vid as_unsigned(job *j, tk_op *before, tk_vid v) {
    const tk_dtype t = tk_value_type(j->s->f, v)->dtype, u = tk_unsigned_of(t);
    return t == u
               ? v
               : tk_maker_op(&j->make, before, TK_OP_BITCAST, 1, &v, tk_maker_scalar(&j->make, u));
}

// Whether `from`, which is below the loop's end, is so by more than `by`: the distance fits an
// unsigned number.
static tk_vid reaches(job *j, tk_op *before, tk_vid from, tk_vid by) {
    const tk_vid room = tk_maker_two(&j->make, before, TK_OP_SUB, j->loop->opnd[1], from);
    const tk_vid most = as_unsigned(j, before, room), least = as_unsigned(j, before, by);
    return tk_maker_two(&j->make, before, TK_OP_LT, least, most);
}

static tk_vid again(job *j, tk_op *before, tk_vmap *map, tk_vid v) {
    const tk_func *f = j->s->f;
    const tk_op *d = tk_value_def(f, v);
    if (tk_vmap_get(map, v) != v || !in_loop(j, d)) {
        return tk_vmap_get(map, v);
    }
    tk_vid *opnd = TK_NEW_ARRAY(j->s->c->scratch, tk_vid, d->nopnd + 1);
    const tk_type **type = TK_NEW_ARRAY(j->s->c->scratch, const tk_type *, d->nres);
    for (uint32_t i = 0; i < d->nopnd; i++) {
        opnd[i] = again(j, before, map, d->opnd[i]);
    }
    for (uint32_t i = 0; i < d->nres; i++) {
        type[i] = tk_value_type(f, d->res[i]);
    }
    tk_op *op = tk_op_new(j->s->f, d->code, d->loc, d->nopnd, opnd, d->nres, type, 0);
    op->at = d->at;
    op->fast = d->fast;
    tk_op_insert_before(before, op);
    for (uint32_t i = 0; i < d->nres; i++) {
        tk_vmap_set(map, d->res[i], op->res[i]);
    }
    return tk_vmap_get(map, v);
}

static tk_op *region_of_if(job *j, tk_op *before, tk_vid condition) {
    tk_func *f = j->s->f;
    tk_op *op = tk_op_new(f, TK_OP_IF, j->loop->loc, 1, &condition, 0, NULL, 2);
    for (uint32_t i = 0; i < 2; i++) {
        op->reg[i] = tk_region_new(f, op);
        tk_op_append(op->reg[i], tk_op_new(f, TK_OP_YIELD, j->loop->loc, 0, NULL, 0, NULL, 0));
    }
    tk_op_insert_before(before, op);
    return op->reg[0]->last;
}

// Which fetches stand at a place: all; in the loop's beginning and at its end.
typedef enum { WHOLE, BEGINNING, END } part;

static bool stands(tk_how how, part p) { return p != END || how == TK_HOW_REGISTERS; }

static void fetch_one(job *j, tk_op *end, uint32_t i, const tk_vid *opnd, part p) {
    const tk_op *load = j->loads.at[i];
    const uint32_t n = 1U + tk_value_type(j->s->f, load->opnd[0])->rank;
    tk_op *op = tk_op_new(j->s->f, TK_OP_FETCH, load->loc, n + 1, opnd, 0, NULL, 0);
    memcpy(op->at.index, load->at.index, sizeof op->at.index);
    op->at.how = p == BEGINNING && j->how[i] == TK_HOW_REGISTERS ? TK_HOW_BEGIN : j->how[i];
    tk_op_insert_before(end, op);
}

// If the condition holds: the tiles of the iteration of index `from` + `by`. Those that come
// through registers stand together behind the others: they are brought as one stream
// (ptx/llvm_ring_registers.c).
static void fetch_all(job *j, tk_op *before, tk_vid condition, tk_vid from, tk_vid by, part p) {
    tk_op *end = region_of_if(j, before, condition);
    tk_vmap map = {.arena = j->s->c->scratch};
    tk_vid *opnd[MOST_LOADS];
    tk_vmap_set(&map, j->loop->reg[0]->args.at[0],
                tk_maker_two(&j->make, end, TK_OP_ADD, from, by));
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_op *load = j->loads.at[i];
        const uint32_t n = 1U + tk_value_type(j->s->f, load->opnd[0])->rank;
        opnd[i] = TK_NEW_ARRAY(j->s->c->scratch, tk_vid, n + 1);
        opnd[i][0] = load->opnd[0];
        for (uint32_t d = 1; d < n && stands(j->how[i], p); d++) {
            opnd[i][d] = again(j, end, &map, load->opnd[d]);
        }
        opnd[i][n] = j->ring[i];
        if (j->how[i] != TK_HOW_REGISTERS && stands(j->how[i], p)) {
            fetch_one(j, end, i, opnd[i], p);
        }
    }
    for (uint32_t i = 0; i < j->loads.n; i++) {
        if (j->how[i] == TK_HOW_REGISTERS) {
            fetch_one(j, end, i, opnd[i], p);
        }
    }
}

// Where rings are made: before the loop, or at the very beginning, where warps of their own may
// fetch (pass_specialize.c), as no others may wait before that.
static tk_op *place_of_rings(const job *j) {
    tk_op *top = j->loop;
    const tk_kernel_attrs *at = &j->s->c->m->attrs;
    bool apart = j->s->c->target->wgmma || at->producers || at->consumers;
    for (uint32_t i = 0; i < j->loads.n; i++) {
        apart = apart && j->how[i] != TK_HOW_ASYNC;
    }
    while (top->in->owner) {
        top = top->in->owner;
    }
    return apart ? j->s->f->body->first : top;
}

// As what it would be loaded in its iteration: pass_stage.c comes later.
static tk_like loaded_like(const job *j, const tk_op *load) {
    const tk_axis *x = j->s->x;
    if (!tk_stage_concerns(x, load) || tk_multiplies(j->s->f->body)) {
        return tk_loaded_like(j->s->f, load);
    }
    const tk_stage_plan p = tk_stage_plan_of(x, load);
    return tk_stage_why_not(x, j->s->c->target, load, &p) ? TK_LIKE_LOAD : TK_LIKE_STAGED;
}

static void rings(job *j) {
    tk_func *f = j->s->f;
    tk_op *top = place_of_rings(j);
    for (uint32_t i = 0; i < j->loads.n; i++) {
        const tk_op *load = j->loads.at[i];
        j->ring[i] =
            tk_maker_op(&j->make, top, TK_OP_RING, 0, NULL, tk_value_type(f, load->res[0]));
        tk_op *op = tk_value_def(f, j->ring[i]);
        op->loc = load->loc;
        op->at.slots = j->slots;
        op->at.like = loaded_like(j, load);
        op->at.precision = rounds(j, load) ? TK_PREC_TF32 : TK_PREC_IEEE;
        f->value.at[j->ring[i]].name = f->value.at[load->opnd[0]].name;
    }
}

// The first slots - 1 iterations' tiles, before the loop.
static void prologue(job *j) {
    tk_func *f = j->s->f;
    tk_op *at = j->loop;
    const tk_vid bound[3] = {tk_maker_number(&j->make, at, TK_I32, 0),
                             tk_maker_number(&j->make, at, TK_I32, j->slots - 1),
                             tk_maker_number(&j->make, at, TK_I32, 1)};
    const tk_vid some = tk_maker_two(&j->make, at, TK_OP_LT, j->loop->opnd[0], j->loop->opnd[1]);
    tk_op *loop = tk_op_new(f, TK_OP_FOR, at->loc, 3, bound, 0, NULL, 1);
    loop->reg[0] = tk_region_new(f, loop);
    tk_vid q = tk_region_arg(loop->reg[0], tk_maker_scalar(&j->make, TK_I32), NULL);
    tk_op *end = tk_op_new(f, TK_OP_YIELD, at->loc, 0, NULL, 0, NULL, 0);
    tk_op_append(loop->reg[0], end);
    tk_op_insert_before(at, loop);
    if (j->index != TK_I32) {
        q = tk_maker_op(&j->make, end, TK_OP_CAST, 1, &q, tk_maker_scalar(&j->make, j->index));
    }
    const tk_vid by = tk_maker_two(&j->make, end, TK_OP_MUL, q,
                                   tk_maker_number(&j->make, end, j->index, j->step));
    tk_vid condition = reaches(j, end, j->loop->opnd[0], by);
    condition = tk_maker_two(&j->make, end, TK_OP_AND, some, condition);
    fetch_all(j, end, condition, j->loop->opnd[0], by, WHOLE);
}

static void rename_in(void *user, tk_op *op) { tk_vmap_operands(user, op); }

// The tile in place of the load, and its release behind the last op that uses it.
static void take(job *j, tk_op *load, tk_vid ring) {
    tk_func *f = j->s->f;
    TK_VEC(tk_vid) tile = {0};
    const tk_vid v =
        tk_maker_op(&j->make, load, TK_OP_TAKE, 1, &ring, tk_value_type(f, load->res[0]));
    tk_value_def(f, v)->loc = load->loc;
    f->value.at[v].name = f->value.at[load->res[0]].name;
    const tk_vid loaded =
        tk_ring_value(j->s->x, j->s->c->m->arena, load, v, yields(j, load->res[0]));
    tk_vmap map = {.arena = j->s->c->scratch};
    tk_vmap_set(&map, load->res[0], loaded);
    tk_vec_push(j->s->c->scratch, &tile, v);
    tk_op *last = load;
    for (tk_op *op = load->next; op; op = op->next) {
        tk_op_walk(op, rename_in, &map);
        if (tk_op_uses_any(op, tile.at, tile.n)) {
            last = op;
            if (op->code == TK_OP_PERMUTE) {
                tk_vec_push(j->s->c->scratch, &tile, op->res[0]);
            }
        }
    }
    tk_op *op = tk_op_new(f, TK_OP_RELEASE, load->loc, 1, &ring, 0, NULL, 0);
    tk_op_insert_before(last->next, op);
    tk_op_unlink(load);
}

static void apply(job *j) {
    tk_op *first = j->loop->reg[0]->first;
    const tk_vid index = j->loop->reg[0]->args.at[0];
    rings(j);
    prologue(j);
    const tk_vid by = tk_maker_number(&j->make, first, j->index, j->step * (j->slots - 1));
    const tk_vid more = reaches(j, first, index, by);
    bool waits = false;
    fetch_all(j, first, more, index, by, BEGINNING);
    for (uint32_t i = 0; i < j->loads.n; i++) {
        waits = waits || j->how[i] == TK_HOW_REGISTERS;
    }
    if (waits) {
        fetch_all(j, j->loop->reg[0]->last, more, index, by, END);
    }
    for (uint32_t i = 0; i < j->loads.n; i++) {
        take(j, j->loads.at[i], j->ring[i]);
        note_done(j, i);
    }
}

// ---- The pass -----------------------------------------------------------------------------------

// Those whose tiles are written once more where a unit reads them are not loaded ahead, but in
// their iterations. True: there were any.
static bool drop_through(job *j) {
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

static const char *loads_of(job *j) {
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
static void note_streams(const job *j) {
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

static void judge(ringer *s, tk_op *loop) {
    job j = {.s = s,
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
        apply(&j);
        s->staged = s->staged || j.staged;
    } else if (j.staged && why) {
        excuse(&j, loop, why);
    } else if (!j.asked && !j.staged) {
        note_streams(&j);
    }
}

// `@stages` is kept by a loop, or an error.
static void judge_stages(const ringer *s) {
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
    ringer *s = user;
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
        ringer s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
        const int64_t warps = c->m->attrs.warps > 0 ? c->m->attrs.warps : tk_default_warps(f);
        while ((int64_t)1 << s.log_warps < warps) {
            s.log_warps++;
        }
        tk_func_walk(f, find_loop, &s);
        for (uint32_t k = 0; k < s.loops.n; k++) {
            judge(&s, s.loops.at[k]);
        }
        judge_stages(&s);
    }
}
