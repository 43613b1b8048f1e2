// SPDX-License-Identifier: Apache-2.0
//
// Rings: ring, fetch, take, release, partition. A ring is counters in front of its slots. A tile is
// there as soon as it is fetched, and the slot is spoiled when it is released, so that whoever
// reads it later has a wrong value.
//
// The two sides of a partition run at the same time, and the one that fetches as far ahead as its
// rings have room. Here the side that takes runs, and each of its takes runs the other side from
// its beginning as far as the fetch that brings the tile: nothing that it computes depends on this.
#include "ir/exec_internal.h"

#include <string.h>

typedef struct counters {
    uint64_t fetched, taken, released;
    uint64_t wanted, passed; // of a partition: see run_fetch
} counters;

enum { HEAD = 64, SPOILED = 0xa5 };

typedef struct ring_step {
    tk_step h;
    size_t ring; // its counters
    uint64_t slots;
    size_t bytes, tile;    // of a tile; the place that it comes from or goes to
    tk_steps load;         // fetch
    bool apart;            // fetch: on a partition's other side
    const tk_steps *other; // take: that side; NULL: none
} ring_step;

static counters *counters_of(const ring_step *s, const tk_run *r) {
    return (counters *)(void *)(r->base + s->ring);
}

static unsigned char *slot_of(const ring_step *s, const tk_run *r, uint64_t n) {
    return r->base + s->ring + HEAD + (size_t)(n % s->slots) * s->bytes;
}

static tk_exec_code run_ring(const tk_step *h, tk_run *r) {
    *counters_of((const ring_step *)h, r) = (counters){.fetched = 0};
    return TK_EXEC_OK;
}

// On the other side of a partition only the fetch of the tile that is wanted does anything.
static tk_exec_code run_fetch(const tk_step *h, tk_run *r) {
    const ring_step *s = (const ring_step *)h;
    counters *c = counters_of(s, r);
    if (s->apart && (c->wanted == 0 || ++c->passed != c->wanted)) {
        return TK_EXEC_OK;
    }
    if (c->fetched - c->released == s->slots) {
        return tk_run_fault(h, r, TK_EXEC_STUCK);
    }
    const tk_exec_code code = tk_run_steps(&s->load, r);
    if (code != TK_EXEC_OK) {
        return code;
    }
    memcpy(slot_of(s, r, c->fetched++), r->base + s->tile, s->bytes);
    return s->apart ? TK_EXEC_FOUND : TK_EXEC_OK;
}

static tk_exec_code run_take(const tk_step *h, tk_run *r) {
    const ring_step *s = (const ring_step *)h;
    counters *c = counters_of(s, r);
    if (s->other) {
        c->wanted = c->taken + 1;
        c->passed = 0;
        const tk_exec_code code = tk_run_steps(s->other, r);
        c->wanted = 0;
        if (code != TK_EXEC_FOUND && code != TK_EXEC_OK) {
            return code;
        }
    }
    if (c->taken == c->fetched) {
        return tk_run_fault(h, r, TK_EXEC_STUCK);
    }
    memcpy(r->base + s->tile, slot_of(s, r, c->taken++), s->bytes);
    return TK_EXEC_OK;
}

static tk_exec_code run_release(const tk_step *h, tk_run *r) {
    const ring_step *s = (const ring_step *)h;
    counters *c = counters_of(s, r);
    if (c->released == c->taken) {
        return tk_run_fault(h, r, TK_EXEC_STUCK);
    }
    memset(slot_of(s, r, c->released++), SPOILED, s->bytes);
    return TK_EXEC_OK;
}

static ring_step *step_of(tk_planner *p, tk_vid ring,
                          tk_exec_code (*run)(const tk_step *, tk_run *)) {
    const tk_type *t = tk_plan_type(p, ring);
    ring_step *s = tk_plan_step(p, sizeof *s, run);
    s->ring = p->val[ring].place.off;
    s->slots = (uint64_t)tk_value_def(p->func, ring)->at.slots;
    s->bytes = (size_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
    return s;
}

void tk_exec_emit_ring(tk_planner *p) {
    const tk_vid v = p->op->res[0];
    tk_pval *x = &p->val[v];
    const size_t bytes = (size_t)tk_place_elems(&x->place) * x->place.size;
    x->has = 1;
    x->place.off = tk_plan_own(p, HEAD + bytes * (size_t)p->op->at.slots);
    (void)step_of(p, v, run_ring);
}

void tk_exec_emit_fetch(tk_planner *p) {
    if (p->op->at.how == TK_HOW_BEGIN) {
        return;
    }
    const tk_vid ring = p->op->opnd[p->op->nopnd - 1];
    const tk_type *t = tk_plan_type(p, ring);
    tk_place x = tk_place_of(t->dtype, t->rank, t->dim);
    const size_t bytes = (size_t)tk_place_elems(&x) * x.size;
    // The other side of a partition runs while this one has values there.
    x.off = p->apart ? tk_plan_own(p, bytes) : tk_plan_temp(p, bytes);
    ring_step *s = step_of(p, ring, run_fetch);
    s->tile = x.off;
    s->apart = p->apart;
    tk_steps *out = p->out;
    p->out = &s->load;
    tk_exec_emit_load_to(p, x);
    p->out = out;
}

void tk_exec_emit_take(tk_planner *p) {
    ring_step *s = step_of(p, p->op->opnd[0], run_take);
    s->tile = tk_plan_place(p, p->op->res[0]).off;
    s->other = p->other;
}

void tk_exec_emit_release(tk_planner *p) { (void)step_of(p, p->op->opnd[0], run_release); }

void tk_exec_emit_partition(tk_planner *p) {
    const tk_op *op = p->op;
    tk_steps *other = TK_NEW(p->arena, tk_steps), *out = p->out;
    p->out = other;
    p->apart = true;
    tk_plan_region(p, op->reg[0]);
    p->apart = false;
    p->out = out;
    p->other = other;
    tk_plan_region(p, op->reg[1]);
    p->other = NULL;
}
