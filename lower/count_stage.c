// SPDX-License-Identifier: Apache-2.0
// What a staged access does with global and shared memory, as the code of ptx/llvm_stage.c does it
// (stage.h): the same rows, runs and groups, as numbers. See count.h.
#include "lower/count_internal.h"
#include "lower/stage.h"

enum { LANES = 32 };

typedef struct stage {
    tk_counted *v;
    tk_stage_plan plan;
    uint32_t warps;
    bool load, bulk;
    int64_t inside, rows;       // elements of a row, and rows, that are inside
    uint64_t first, step, base; // of rows in global memory; of the op's bytes in shared memory
    uint32_t skew, pitch;
} stage;

// ---- Where things are ---------------------------------------------------------------------------

static int64_t within(int64_t x, int64_t n) { return x < 0 ? 0 : x > n ? n : x; }

// The index of the first row, or the one index, in dimension d; where it is not known, the first
// inside.
static int64_t first_in(stage *s, uint32_t d) {
    tk_counted *v = s->v;
    int64_t i;
    if (v->op->at.index[d] != -1) {
        return v->start[d];
    }
    if (!tk_sample_int(v->s, v->op->opnd[1 + d], 0, &i)) {
        v->size[d] = -1;
        return 0;
    }
    return i;
}

static void count_rows(stage *s) {
    tk_counted *v = s->v;
    int64_t n = s->plan.rows;
    for (uint32_t d = 0; d + 1 < v->rank; d++) {
        const int64_t at = first_in(s, d), room = v->size[d] - at;
        if (v->size[d] >= 0) {
            n = (int)d != s->plan.row ? (room > 0 ? n : 0) : room < n ? room : n;
        }
        s->first += (uint64_t)at * v->stride[d];
        s->step = (int)d == s->plan.row ? v->stride[d] : s->step;
    }
    for (uint32_t i = 0; i < s->plan.nbound; i++) {
        int64_t x, y;
        if (tk_sample_int(v->s, s->plan.bound[i].x, 0, &x) &&
            tk_sample_int(v->s, s->plan.bound[i].y, 0, &y)) {
            n = y - x < n ? y - x : n;
        }
    }
    s->rows = within(n, s->plan.rows);
}

static stage stage_of(tk_counted *v) {
    stage s = {.v = v, .plan = tk_stage_plan_of(v->x, v->op), .load = v->op->code == TK_OP_LOAD};
    s.bulk = tk_stage_is_bulk(v->target, v->op);
    const uint32_t last = v->rank - 1;
    s.warps = (uint32_t)v->s->f->module->attrs.warps;
    s.base = v->op->at.shared > 0 ? (uint64_t)v->op->at.shared : 0;
    s.inside =
        v->size[last] < 0 ? s.plan.limit : within(v->size[last] - v->start[last], s.plan.limit);
    s.first = (uint64_t)v->start[last] * v->bytes;
    count_rows(&s);
    const uint64_t bytes = (uint64_t)s.inside * v->bytes;
    s.skew = (uint32_t)(s.first % TK_STAGE_PIECE);
    s.pitch = (uint32_t)(bytes + (s.step - bytes) % TK_STAGE_PIECE);
    v->out.bytes = (uint64_t)s.rows * bytes;
    return s;
}

// ---- Runs ---------------------------------------------------------------------------------------

// A warp's request on both sides: lane k has `bytes` at global[k] and shared[k].
static void both(stage *s, uint32_t mask, const uint64_t *global, const uint64_t *shared,
                 uint32_t bytes) {
    tk_count_sectors(&s->v->out.of, mask, global, bytes);
    tk_count_wavefronts(&s->v->out.shared, mask, shared, bytes, !s->load);
}

typedef struct run {
    uint64_t global, shared, head, pieces, tail;
} run;

static run run_of(const stage *s, uint64_t i, uint64_t bytes) {
    const uint64_t at = s->skew + i * s->pitch;
    run r = {.global = s->first + i * s->step, .shared = s->base + at};
    r.head = (TK_STAGE_PIECE - at % TK_STAGE_PIECE) % TK_STAGE_PIECE;
    r.head = r.head < bytes ? r.head : bytes;
    r.pieces = (bytes - r.head) / TK_STAGE_PIECE;
    r.tail = (bytes - r.head) % TK_STAGE_PIECE;
    return r;
}

// By a warp whose first lane is member `from` of the run's team.
static void count_run(stage *s, const run *r, uint32_t from, uint32_t team) {
    const uint32_t size = s->v->bytes;
    uint64_t global[LANES], shared[LANES];
    uint32_t mask = 0;
    if (from == 0 && (s->bulk || s->load)) {
        s->v->out.async += r->pieces * TK_STAGE_PIECE;
    }
    for (uint64_t i = from; i < r->pieces && !s->bulk; i += team) {
        mask = 0;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint64_t at = r->head + (i + lane) * TK_STAGE_PIECE;
            mask |= (uint32_t)(i + lane < r->pieces) << lane;
            global[lane] = r->global + at;
            shared[lane] = r->shared + at;
        }
        both(s, mask, global, shared, TK_STAGE_PIECE);
    }
    mask = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint64_t mine = (uint64_t)(from + lane) * size;
        const uint64_t at = mine < r->head ? mine : mine + r->pieces * TK_STAGE_PIECE;
        mask |= (uint32_t)(mine < r->head + r->tail) << lane;
        global[lane] = r->global + at;
        shared[lane] = r->shared + at;
    }
    both(s, mask, global, shared, size);
}

static void count_copy(stage *s) {
    const uint64_t bytes = (uint64_t)s->inside * s->v->bytes;
    const uint64_t together = (uint64_t)s->rows * bytes;
    const bool touch = s->step == bytes || s->rows <= 1;
    const uint32_t teams = s->bulk ? 1 : s->warps; // that a run of all rows has
    // Of a load by bulk copies: before it, and, if some elements come one by one, after it.
    const bool whole = touch && s->skew == 0 && together % TK_STAGE_PIECE == 0;
    s->v->out.barriers = s->load && s->bulk && !whole ? 2 : 1;
    for (uint32_t w = 0; w < teams && touch && s->rows > 0; w++) {
        const run r = run_of(s, 0, together);
        count_run(s, &r, w * LANES, teams * LANES);
    }
    for (uint64_t i = 0; i < (uint64_t)s->rows && !touch; i++) {
        const run r = run_of(s, i, bytes);
        count_run(s, &r, 0, LANES);
    }
}

// ---- Elements -----------------------------------------------------------------------------------

typedef struct spots { // of a warp's group, by register and lane
    uint64_t at[TK_STAGE_GROUP][LANES];
    uint32_t in[TK_STAGE_GROUP]; // lanes
    uint32_t at_once;            // lanes that move all without a test
} spots;

static spots spots_of(stage *s, const tk_stage_group *g, uint32_t warp) {
    const tk_counted *v = s->v;
    const bool test = !g->in_row || (s->load && v->mask && !s->plan.bounded);
    spots x = {.at_once = 0};
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const bool acts = s->load || (!(lane & v->lane_copies) && !(warp & v->warp_copies));
        bool all = acts && !test;
        for (uint32_t i = 0; i < g->n; i++) {
            const uint32_t e = tk_layout_eval(v->l, g->from + i, lane, warp);
            const uint32_t column = tk_counted_coord(v->l, e, s->plan.axis);
            const uint32_t row = s->plan.rows > 1 ? tk_counted_coord(v->l, e, s->plan.row_axis) : 0;
            const bool in = row < s->rows && column < s->inside;
            x.at[i][lane] =
                s->base + s->skew + (uint64_t)row * s->pitch + (uint64_t)column * v->bytes;
            x.in[i] |= (uint32_t)(acts && in && (!s->load || tk_counted_passes(s->v, e))) << lane;
            all = all && (in || !(g->live >> i & 1));
        }
        x.at_once |= (uint32_t)all << lane;
    }
    return x;
}

static void count_elements(stage *s) {
    tk_counted *v = s->v;
    for (uint32_t w = 0; w < s->warps; w++) {
        for (uint32_t r = 0; r < 1U << v->l->regs; r += TK_STAGE_GROUP) {
            const tk_stage_group g = tk_stage_group_of(&s->plan, v->l, r);
            const spots x = spots_of(s, &g, w);
            for (uint32_t i = 0; i < g.n; i++) {
                const uint32_t at_once = g.live >> i & 1 ? x.at_once : 0;
                tk_count_wavefronts(&v->out.shared, at_once, x.at[i], v->bytes, s->load);
                tk_count_wavefronts(&v->out.shared, x.in[i] & ~x.at_once, x.at[i], v->bytes,
                                    s->load);
            }
        }
    }
}

void tk_count_staged(tk_counted *v) {
    stage s = stage_of(v);
    count_copy(&s);
    count_elements(&s);
}
