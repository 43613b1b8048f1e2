// SPDX-License-Identifier: Apache-2.0
//
// Rings: ring, fetch, take, release. A ring is counters in front of its slots. A tile is there as
// soon as it is fetched, and the slot is spoiled when it is released, so that whoever reads it
// later has a wrong value.
#include "ir/exec_internal.h"

#include <string.h>

typedef struct counters {
    uint64_t fetched, taken, released;
} counters;

enum { HEAD = 64, SPOILED = 0xa5 };

typedef struct ring_step {
    tk_step h;
    size_t ring; // its counters
    uint64_t slots;
    size_t bytes, tile; // of a tile; the place that it comes from or goes to
} ring_step;

static counters *counters_of(const ring_step *s, const tk_run *r) {
    return (counters *)(void *)(r->base + s->ring);
}

static unsigned char *slot_of(const ring_step *s, const tk_run *r, uint64_t n) {
    return r->base + s->ring + HEAD + (size_t)(n % s->slots) * s->bytes;
}

static tk_exec_code run_ring(const tk_step *h, tk_run *r) {
    *counters_of((const ring_step *)h, r) = (counters){0, 0, 0};
    return TK_EXEC_OK;
}

static tk_exec_code run_fetch(const tk_step *h, tk_run *r) {
    const ring_step *s = (const ring_step *)h;
    counters *c = counters_of(s, r);
    if (c->fetched - c->released == s->slots) {
        return tk_run_fault(h, r, TK_EXEC_STUCK);
    }
    memcpy(slot_of(s, r, c->fetched++), r->base + s->tile, s->bytes);
    return TK_EXEC_OK;
}

static tk_exec_code run_take(const tk_step *h, tk_run *r) {
    const ring_step *s = (const ring_step *)h;
    counters *c = counters_of(s, r);
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
    const tk_vid ring = p->op->opnd[p->op->nopnd - 1];
    const tk_type *t = tk_plan_type(p, ring);
    tk_place x = tk_place_of(t->dtype, t->rank, t->dim);
    x.off = tk_plan_temp(p, (size_t)tk_place_elems(&x) * x.size);
    tk_exec_emit_load_to(p, x);
    step_of(p, ring, run_fetch)->tile = x.off;
}

void tk_exec_emit_take(tk_planner *p) {
    step_of(p, p->op->opnd[0], run_take)->tile = tk_plan_place(p, p->op->res[0]).off;
}

void tk_exec_emit_release(tk_planner *p) { (void)step_of(p, p->op->opnd[0], run_release); }
