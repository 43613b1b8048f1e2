// SPDX-License-Identifier: Apache-2.0
// A loop whose loads run ahead is made. See pass_ring.c, and ring.h for what becomes of it.
#include "lower/box.h"
#include "lower/ring_job.h"
#include "lower/stage.h"

#include <string.h>

bool tk_ring_in_loop(const tk_ring_job *j, const tk_op *op) {
    return op && op->in == j->loop->reg[0];
}

// Whether the next iteration uses v, or v permuted, which is the same tile in shared memory.
bool tk_ring_yields(const tk_ring_job *j, tk_vid v) {
    for (const tk_op *op = j->loop->reg[0]->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nopnd; i++) {
            if (op->opnd[i] == v && (op->code == TK_OP_YIELD || (op->code == TK_OP_PERMUTE &&
                                                                 tk_ring_yields(j, op->res[0])))) {
                return true;
            }
        }
    }
    return false;
}

// Whether tensor copies bring the tile, and round it as its products do.
bool tk_ring_rounds_load(const tk_ring_job *j, const tk_op *load) {
    const tk_ringer *s = j->s;
    return tk_ring_rounds(s->f, load) && !tk_boxes_why_not(s->x, s->c->target, load, s->log_warps);
}

const char *tk_ring_name(const tk_ring_job *j, const tk_op *load) {
    const char *name = j->s->f->value.at[load->opnd[0]].name;
    return name ? name : "?";
}

static void note_done(const tk_ring_job *j, uint32_t i) {
    const tk_op *load = j->loads.at[i];
    const char *slower = j->slower[i], *place = j->place[i];
    tk_module *m = j->s->c->m;
    const bool said = slower && j->s->c->target && j->s->c->target->bulk;
    tk_note_rec *r = tk_note_add(
        &m->notes, "ring", "ahead", tk_loc_span(m, load->loc), TK_NOTE_DONE,
        "'%s' is loaded ahead through shared memory, by %s%s%s%s%s%s", tk_ring_name(j, load),
        place    ? "loads of its threads into registers"
        : slower ? "copies of its threads"
                 : "tensor copies of one thread",
        said ? "; not by tensor copies: " : "", said ? slower : "",
        place ? "; not by copies of threads: " : "", place ? place : "",
        load->at.masked ? "; with what its mask leaves out" : "");
    tk_note_number_add(&m->notes, r, "tiles", (double)j->slots);
}

static tk_vid as_unsigned(tk_ring_job *j, tk_op *before, tk_vid v) {
    const tk_dtype t = tk_value_type(j->s->f, v)->dtype, u = tk_unsigned_of(t);
    return t == u
               ? v
               : tk_maker_op(&j->make, before, TK_OP_BITCAST, 1, &v, tk_maker_scalar(&j->make, u));
}

// Whether `from`, which is below the loop's end, is so by more than `by`: the distance fits an
// unsigned number.
static tk_vid reaches(tk_ring_job *j, tk_op *before, tk_vid from, tk_vid by) {
    const tk_vid room = tk_maker_two(&j->make, before, TK_OP_SUB, j->loop->opnd[1], from);
    const tk_vid most = as_unsigned(j, before, room), least = as_unsigned(j, before, by);
    return tk_maker_two(&j->make, before, TK_OP_LT, least, most);
}

static tk_vid again(tk_ring_job *j, tk_op *before, tk_vmap *map, tk_vid v) {
    const tk_func *f = j->s->f;
    const tk_op *d = tk_value_def(f, v);
    if (tk_vmap_get(map, v) != v || !tk_ring_in_loop(j, d)) {
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

static tk_op *region_of_if(tk_ring_job *j, tk_op *before, tk_vid condition) {
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

static void fetch_one(tk_ring_job *j, tk_op *end, uint32_t i, const tk_vid *opnd, part p) {
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
static void fetch_all(tk_ring_job *j, tk_op *before, tk_vid condition, tk_vid from, tk_vid by,
                      part p) {
    tk_op *end = region_of_if(j, before, condition);
    tk_vmap map = {.arena = j->s->c->scratch};
    tk_vid *opnd[TK_RING_LOADS];
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
static tk_op *place_of_rings(const tk_ring_job *j) {
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
static tk_like loaded_like(const tk_ring_job *j, const tk_op *load) {
    const tk_axis *x = j->s->x;
    if (!tk_stage_concerns(x, load) || tk_multiplies(j->s->f->body)) {
        return tk_loaded_like(j->s->f, load);
    }
    const tk_stage_plan p = tk_stage_plan_of(x, load);
    return tk_stage_why_not(x, j->s->c->target, load, &p) ? TK_LIKE_LOAD : TK_LIKE_STAGED;
}

static void rings(tk_ring_job *j) {
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
        op->at.precision = tk_ring_rounds_load(j, load) ? TK_PREC_TF32 : TK_PREC_IEEE;
        f->value.at[j->ring[i]].name = f->value.at[load->opnd[0]].name;
    }
}

// The first slots - 1 iterations' tiles, before the loop.
static void prologue(tk_ring_job *j) {
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
static void take(tk_ring_job *j, tk_op *load, tk_vid ring) {
    tk_func *f = j->s->f;
    TK_VEC(tk_vid) tile = {0};
    const tk_vid v =
        tk_maker_op(&j->make, load, TK_OP_TAKE, 1, &ring, tk_value_type(f, load->res[0]));
    tk_value_def(f, v)->loc = load->loc;
    f->value.at[v].name = f->value.at[load->res[0]].name;
    const tk_vid loaded =
        tk_ring_value(j->s->x, j->s->c->m->arena, load, v, tk_ring_yields(j, load->res[0]));
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

void tk_ring_make(tk_ring_job *j) {
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
