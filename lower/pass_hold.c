// SPDX-License-Identifier: Apache-2.0
// Pass hold: tiles that a loop reads again stay in shared memory.
//
// in:    laid-out level
// out:   the same level; a load in a loop has `hold`, the first iterations whose tiles stay in
//        shared memory, and a load of a loop behind it, which reads the same tiles, has `held`
//        (ir/hold.h)
// keeps: all values bit for bit
// needs: layout; cse (equal indices are one value); a target, for its limits
// when not: debug compiles; the tiles have different layouts; loops that do not rise from a
//           constant by a constant; the program multiplies matrices or has rings, which need the
//           room
//
// A row that is read twice comes from memory once and from the caches once. What each thread keeps
// for itself needs neither, nor a barrier: it puts its elements where only it takes them from. As
// many iterations as there is room for do so, of a multiprocessor that holds programs of 1024
// threads together, as tk_default_warps and the bound on registers make them: two of 512 threads,
// one of which loads while the other works or stores; and no more than @require(max_shared)
// permits. The other iterations are read again, the last one first (pass reverse).
#include "ir/hold.h"
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/lower.h"
#include "lower/target.h"
#include "lower/walk.h"

#include <string.h>

enum { LANES = 32, THREADS_AT_ONCE = 1024, KEPT_FOR_EACH = 1024 };

typedef struct taker {
    tk_op *load;
    uint32_t from; // of the holders
} taker;

typedef struct holder {
    tk_op *load;
    uint64_t bytes; // of an iteration
    int64_t most;   // iterations that there are
} holder;

typedef struct hold {
    tk_pass_ctx *c;
    tk_func *f;
    TK_VEC(holder) hold;
    TK_VEC(taker) take;
    uint64_t other, all; // bytes of the op that has most shared memory, of all together
    bool dot;
} hold;

// ---- Pairs --------------------------------------------------------------------------------------

static bool may_be_held(const tk_func *f, const tk_op *op) {
    return op->code == TK_OP_LOAD && !op->at.staged && tk_value_layout(f, op->res[0]);
}

static int64_t iterations(const tk_func *f, const tk_op *loop) {
    int64_t from = 0, step = 1;
    const tk_const *to = tk_value_const(f, loop->opnd[1]);
    if (!tk_loop_rises(f, loop, &from, &step) || !to) {
        return TK_MOST_HELD;
    }
    const int64_t way = tk_const_as_i64(*to) - from, n = way > 0 ? (way + step - 1) / step : 0;
    return n < TK_MOST_HELD ? n : TK_MOST_HELD;
}

// The number of the load's holder, which it becomes if it is none.
static uint32_t holder_of(hold *s, tk_op *load) {
    for (uint32_t i = 0; i < s->take.n; i++) {
        if (s->take.at[i].load == load) {
            return s->take.at[i].from;
        }
    }
    for (uint32_t i = 0; i < s->hold.n; i++) {
        if (s->hold.at[i].load == load) {
            return i;
        }
    }
    const holder h = {load, tk_held_bytes(s->f, load), iterations(s->f, load->in->owner)};
    tk_vec_push(s->c->scratch, &s->hold, h);
    return s->hold.n - 1;
}

static bool same_layout(const tk_func *f, const tk_op *x, const tk_op *y) {
    return tk_layout_eq(tk_value_layout(f, x->res[0]), tk_value_layout(f, y->res[0]));
}

// A load in the body of `loop` that reads the same in the same layout; *why: there is one in
// another.
static tk_op *load_of(const hold *s, const tk_op *loop, const tk_op *load, const char **why) {
    for (tk_op *op = loop->reg[0]->first; op; op = op->next) {
        if (may_be_held(s->f, op) && tk_reads_same(s->f, op, load)) {
            if (same_layout(s->f, op, load)) {
                return op;
            }
            *why = "they are in different layouts";
        }
    }
    return NULL;
}

// The same of the nearest loop that has run when the load's own begins, in each program: what a
// branch needs that is hardly ever taken is not worth the room.
static tk_op *earlier_load(const hold *s, const tk_op *load, const char **why) {
    tk_op *found = NULL;
    *why = NULL;
    for (const tk_op *at = load->in->owner; at && !found; at = at->in->owner) {
        for (const tk_op *loop = at->prev; loop && !found; loop = loop->prev) {
            const bool runs = loop->code == TK_OP_FOR && !tk_may_not_run(loop);
            found = runs ? load_of(s, loop, load, why) : NULL;
        }
    }
    return found;
}

static tk_note_rec *note(const hold *s, const tk_op *load, const char *why) {
    const char *name = s->f->value.at[load->opnd[0]].name;
    return tk_note_add(&s->c->m->notes, "hold", "held", tk_loc_span(s->c->m, load->loc),
                       why ? TK_NOTE_MISSED : TK_NOTE_DONE,
                       "tiles of '%s' that are read again %s%s", name ? name : "?",
                       why ? "do not stay in shared memory: "
                           : "stay in shared memory, each thread's own elements",
                       why ? why : "");
}

static void pair(void *user, tk_op *op) {
    hold *s = user;
    const tk_op *loop = op->in ? op->in->owner : NULL;
    const char *why;
    op->at.hold = op->at.held = 0;
    s->dot =
        s->dot || op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED || op->code == TK_OP_RING;
    const uint64_t bytes = tk_scratch_bytes(s->f, op);
    s->other = bytes > s->other ? bytes : s->other;
    s->all += bytes;
    if (!loop || loop->code != TK_OP_FOR || !may_be_held(s->f, op)) {
        return;
    }
    tk_op *earlier = earlier_load(s, op, &why);
    if (earlier) {
        const taker t = {op, holder_of(s, earlier)};
        tk_vec_push(s->c->scratch, &s->take, t);
    } else if (why) {
        note(s, op, why);
    }
}

// ---- Room ---------------------------------------------------------------------------------------

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t room(const hold *s) {
    const tk_kernel_attrs *at = &s->f->module->attrs;
    const int64_t threads = LANES * at->warps;
    const int64_t programs = THREADS_AT_ONCE > threads ? THREADS_AT_ONCE / threads : 1;
    int64_t each = ((int64_t)s->c->target->shared_max + KEPT_FOR_EACH) / programs - KEPT_FOR_EACH -
                   (int64_t)s->other;
    for (uint32_t i = 0; i < at->require.n && i < at->require_arg.n; i++) {
        if (strcmp(at->require.at[i], "max_shared") == 0) {
            each = least(each, at->require_arg.at[i] - (int64_t)s->all);
        }
    }
    return each;
}

// An iteration more of each in turn, as long as it fits.
static void grant(hold *s) {
    int64_t left = room(s);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < s->hold.n; i++) {
            const holder *h = &s->hold.at[i];
            if (h->load->at.hold < h->most && (int64_t)h->bytes <= left) {
                h->load->at.hold++;
                left -= (int64_t)h->bytes;
                more = true;
            }
        }
    }
}

typedef struct place {
    const tk_op *of;
    int64_t n; // its number among the loads that hold
    bool past;
} place;

static void count(void *user, tk_op *op) {
    place *p = user;
    p->n += !p->past && op->code == TK_OP_LOAD && op->at.hold > 0;
    p->past = p->past || op == p->of;
}

static void take(const hold *s, const taker *t) {
    place p = {.of = s->hold.at[t->from].load};
    if (p.of->at.hold == 0) {
        note(s, t->load, "there is no room for one");
        return;
    }
    tk_func_walk(s->f, count, &p);
    t->load->at.held = p.n;
    tk_note_number_add(&s->c->m->notes, note(s, t->load, NULL), "iterations",
                       (double)p.of->at.hold);
}

void tk_pass_hold(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n && !c->debug; i++) {
        hold s = {.c = c, .f = c->m->funcs.at[i]};
        tk_func_walk(s.f, pair, &s);
        if (!s.dot) {
            grant(&s);
            for (uint32_t k = 0; k < s.take.n; k++) {
                take(&s, &s.take.at[k]);
            }
        }
    }
}
