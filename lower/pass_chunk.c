// SPDX-License-Identifier: Apache-2.0
// Pass chunk: makes work on tiles that are too large for registers loops over parts of them.
//
// in:    tile level, calls inlined
// out:   no op works on a tile of more than 64 elements a thread where it can work on parts; large
//        tiles that are handed on are kept in each thread's memory (`empty`, `insert`, `extract`)
// keeps: every value, bit for bit, but for the order of float sums and products
// needs: inline; the module's warps
// when not: extents that are no powers of two; ops that need all of a tile at once (sort, topk,
//           reduce_fn, scan_fn) and what they are made of; products of at most 256 elements a
//           thread, carried tiles of at most three quarters of its registers
//
// Each sink (chunk.h) becomes a loop, which makes what it needs of its operands anew, part by part.
// Sinks that do not wait for each other share one. So a row whose maximum is needed before its sum
// is read twice, through the caches, rather than held in registers that there are not. What cannot
// be made again is kept instead, in local memory: what was read from a tensor that is also written,
// results of atomics, scans along what is cut, tiles that loops carry; and what is dearer to make.
//
// A tile is cut along its first axis of more than one element, if that will do, so that parts are
// rows; what is still too large is cut again in the next round, within the loop of the first.
#include "lower/chunk.h"
#include "lower/lower.h"

enum { LANES = 32, LEFT_ALONE = 64, PER_THREAD = 16, MOST_ROUNDS = 16 };

typedef struct survey {
    const tk_func *f;
    int64_t largest;
    bool odd; // an extent that is no power of two
} survey;

static void look(void *user, tk_op *op) {
    survey *v = user;
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_type *t = tk_value_type(v->f, op->res[i]);
        unsigned axis;
        if (tk_type_is_tile(t)) {
            int64_t n = tk_type_elems(t);
            v->largest = n > v->largest ? n : v->largest;
            v->odd = v->odd || !tk_layout_fits(t, &axis);
        }
    }
}

static void use_kept(tk_chunker *s, tk_vid *v, tk_vid as) {
    if (*v < s->n && s->kept[*v] && tk_chunk_kept(s, as)) {
        *v = s->kept[*v];
    }
}

// Control flow hands kept tiles on where it can.
static void hand_on_kept(void *user, tk_op *op) {
    tk_chunker *s = user;
    const uint32_t bounds = op->code == TK_OP_FOR ? 3 : 0;
    if (op->code != TK_OP_FOR && op->code != TK_OP_WHILE && op->code != TK_OP_IF) {
        return;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        if (op->code != TK_OP_IF) {
            use_kept(s, &op->opnd[bounds + i], op->res[i]);
        }
        for (uint32_t r = op->code == TK_OP_WHILE ? 1 : 0; r < op->nreg; r++) {
            use_kept(s, &op->reg[r]->last->opnd[i], op->res[i]);
        }
    }
}

static void rename_op(void *user, tk_op *op) { tk_vmap_operands(user, op); }

static void loop_note(tk_chunker *s, const tk_sink_group *g) {
    tk_module *m = s->c->m;
    const tk_sink *k = g->sink.at[0];
    bool cut = k->count > 1;
    tk_note_rec *r = tk_note_add(&m->notes, "chunk", cut ? "in-parts" : "kept",
                                 tk_loc_span(m, k->op->loc), cut ? TK_NOTE_DONE : TK_NOTE_MISSED,
                                 cut ? "large tiles are worked on in parts, in a loop for this '%s'"
                                     : "the tile of this '%s' is kept in the threads' memory",
                                 tk_op_info(k->op->code)->name);
    if (cut) {
        tk_note_number_add(&m->notes, r, "parts", (double)k->count);
        tk_note_number_add(&m->notes, r, "ops in the loop", (double)g->sink.n);
    }
}

// Once more where something is to be kept that the first plan makes several times.
static void plan(tk_chunker *s) {
    uint8_t *wanted = TK_NEW_ARRAY(s->a, uint8_t, s->n);
    tk_chunk_plan(s);
    tk_chunk_group(s);
    if (tk_chunk_dear(s, wanted)) {
        s->need = wanted;
        tk_chunk_plan(s);
        tk_chunk_group(s);
    }
}

// Whether anything was done.
static bool one_round(tk_chunker *s) {
    s->n = s->f->value.n;
    s->pos = TK_NEW_ARRAY(s->a, uint32_t, s->n);
    s->need = TK_NEW_ARRAY(s->a, uint8_t, s->n);
    s->kept = TK_NEW_ARRAY(s->a, tk_vid, s->n);
    s->node = TK_NEW_ARRAY(s->a, tk_part_node *, s->n);
    s->stamp = TK_NEW_ARRAY(s->a, uint32_t, s->n);
    s->epoch = 0;
    s->map = (tk_vmap){.arena = s->a};
    s->done.n = 0;
    plan(s);
    for (uint32_t i = 0; i < s->groups.n; i++) {
        loop_note(s, s->groups.at[i]);
        tk_chunk_emit(s, s->groups.at[i]);
    }
    for (uint32_t i = 0; i < s->done.n; i++) {
        tk_op_unlink(s->done.at[i]);
    }
    tk_func_walk(s->f, hand_on_kept, s);
    tk_func_walk(s->f, rename_op, &s->map);
    return s->sinks.n > 0;
}

static void function(tk_pass_ctx *c, tk_func *f) {
    tk_module *m = c->m;
    if (m->attrs.warps <= 0) { // while its tiles are what they are
        m->attrs.warps = tk_default_warps(f);
    }
    const int64_t threads = m->attrs.warps * LANES;
    const int64_t most = m->thread_elems > 0 ? m->thread_elems : LEFT_ALONE;
    tk_chunker s = {.c = c, .f = f, .a = c->scratch};
    s.most = most * threads;
    s.whole = most * (TK_THREAD_ELEMS / LEFT_ALONE) * threads;
    s.handed_on = tk_handed_on_by(m->attrs.warps);
    if (m->thread_elems > 0) {
        s.handed_on = (tk_handed_on){s.whole, s.whole};
    }
    s.want = most * PER_THREAD >= LEFT_ALONE ? most * PER_THREAD / LEFT_ALONE * threads : threads;
    survey v = {.f = f};
    tk_func_walk(f, look, &v);
    bool more = !v.odd && v.largest > s.most;
    for (int i = 0; more && i < MOST_ROUNDS; i++) {
        more = one_round(&s);
    }
}

void tk_pass_chunk(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        function(c, c->m->funcs.at[i]);
    }
}
