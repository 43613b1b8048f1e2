// SPDX-License-Identifier: Apache-2.0
// Which sinks share a loop, so that what several of them need is read and made once; and what is
// kept because making it in several loops costs more. See chunk.h.
#include "lower/chunk.h"

// ---- Groups -------------------------------------------------------------------------------------

enum { MOST_SINKS = 8, MOST_BACK = 4, MOST_BETWEEN = 4000 };

static bool is_in(uint32_t n, const tk_vid *list, tk_vid v) {
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == v) {
            return true;
        }
    }
    return false;
}

// The tensor that a sink writes; 0: none.
static tk_vid written(const tk_sink *k) { return k->op->code == TK_OP_STORE ? k->op->opnd[0] : 0; }

static bool may_share(const tk_sink *k) {
    switch (k->kind) {
    case TK_SINK_REDUCE:
    case TK_SINK_ARG:
    case TK_SINK_HISTOGRAM:
    case TK_SINK_GATHER:
        return true;
    case TK_SINK_EFFECT:
        return k->op->code == TK_OP_STORE;
    case TK_SINK_DOT:
    case TK_SINK_KEEP:
    case TK_SINK_SCAN:
    case TK_SINK_INSERT:
        break;
    }
    return false;
}

// Neither writes what the other reads or writes: their parts may take turns.
static bool are_apart(const tk_sink *a, const tk_sink *b) {
    tk_vid wa = written(a), wb = written(b);
    return (!wa || (wa != wb && !is_in(b->reads.n, b->reads.at, wa))) &&
           (!wb || !is_in(a->reads.n, a->reads.at, wb));
}

static bool is_member(const tk_sink_group *g, const tk_op *op) {
    for (uint32_t i = 0; i < g->sink.n; i++) {
        if (g->sink.at[i]->op == op) {
            return true;
        }
    }
    return false;
}

static bool writes(const tk_sink_group *g, const tk_sink *k, tk_vid tensor) {
    bool any = written(k) == tensor;
    for (uint32_t i = 0; i < g->sink.n; i++) {
        any = any || written(g->sink.at[i]) == tensor;
    }
    return any;
}

static bool reads(const tk_sink_group *g, const tk_sink *k, tk_vid tensor) {
    bool any = is_in(k->reads.n, k->reads.at, tensor);
    for (uint32_t i = 0; i < g->sink.n; i++) {
        any = any || is_in(g->sink.at[i]->reads.n, g->sink.at[i]->reads.at, tensor);
    }
    return any;
}

// Whether what stands between the group's place and the sink can stand on either side of them.
static bool is_quiet(const tk_chunker *s, const tk_sink_group *g, const tk_sink *k) {
    for (uint32_t i = g->pos + 1; i < k->pos; i++) {
        const tk_op *op = s->op[i];
        const tk_effect e = tk_op_info(op->code)->effect;
        bool quiet = e == TK_FX_PURE || tk_op_is_terminator(op) || is_member(g, op);
        if (e == TK_FX_READ || e == TK_FX_WRITE) {
            quiet = quiet ||
                    (!writes(g, k, op->opnd[0]) && (e == TK_FX_READ || !reads(g, k, op->opnd[0])));
        }
        if (!quiet) {
            return false;
        }
    }
    return true;
}

// Whether all that the sink needs is there already where the group stands.
static bool can_move_up(const tk_chunker *s, const tk_sink_group *g, const tk_sink *k) {
    for (uint32_t i = 0; i < k->whole.n; i++) {
        const tk_vid v = k->whole.at[i];
        const tk_op *d = tk_value_def(s->f, v);
        if (d && s->pos[v] >= g->pos) {
            return false;
        }
    }
    for (uint32_t i = 0; i < k->keep.n; i++) {
        if (s->pos[k->keep.at[i]] >= g->pos) {
            return false;
        }
    }
    return true;
}

static bool is_result(const tk_sink_group *g, tk_vid v) {
    for (uint32_t i = 0; i < g->sink.n; i++) {
        const tk_op *op = g->sink.at[i]->op;
        if (is_in(op->nres, op->res, v)) {
            return true;
        }
    }
    return false;
}

// Whether nothing up to the sink uses what the group makes.
static bool can_move_down(const tk_chunker *s, const tk_sink_group *g, const tk_sink *k) {
    for (uint32_t i = g->pos + 1; i <= k->pos; i++) {
        const tk_op *op = s->op[i];
        for (uint32_t j = 0; j < op->nopnd; j++) {
            if (is_result(g, op->opnd[j])) {
                return false;
            }
        }
    }
    return true;
}

static void move_down(tk_chunker *s, tk_sink_group *g, const tk_sink *k) {
    g->at = k->op;
    g->pos = k->pos;
    for (uint32_t i = 0; i < g->sink.n; i++) {
        const tk_op *op = g->sink.at[i]->op;
        for (uint32_t r = 0; r < op->nres; r++) {
            s->pos[op->res[r]] = k->pos;
        }
    }
}

static bool joins(tk_chunker *s, tk_sink_group *g, tk_sink *k) {
    if (g->behind || g->in != k->op->in || g->sink.n == MOST_SINKS ||
        g->sink.at[0]->count != k->count || k->pos - g->pos > MOST_BETWEEN ||
        !may_share(g->sink.at[0]) || !may_share(k)) {
        return false;
    }
    for (uint32_t i = 0; i < g->sink.n; i++) {
        if (!are_apart(g->sink.at[i], k)) {
            return false;
        }
    }
    if (!is_quiet(s, g, k)) {
        return false;
    }
    if (!can_move_up(s, g, k)) {
        if (!can_move_down(s, g, k)) {
            return false;
        }
        move_down(s, g, k);
    }
    tk_vec_push(s->a, &g->sink, k);
    return true;
}

// Groups in the order of their places: those in front of an op before those behind it.
static void sort_groups(tk_chunker *s) {
    for (uint32_t i = 1; i < s->groups.n; i++) {
        tk_sink_group *g = s->groups.at[i];
        uint32_t j = i;
        while (j > 0 &&
               (s->groups.at[j - 1]->pos > g->pos || (s->groups.at[j - 1]->pos == g->pos &&
                                                      s->groups.at[j - 1]->behind && !g->behind))) {
            s->groups.at[j] = s->groups.at[j - 1];
            j--;
        }
        s->groups.at[j] = g;
    }
}

void tk_chunk_group(tk_chunker *s) {
    s->groups.n = 0;
    for (uint32_t i = s->sinks.n; i-- > 0;) {
        tk_sink *k = s->sinks.at[i];
        bool joined = false;
        for (uint32_t j = 0; j < MOST_BACK && j < s->groups.n && !joined; j++) {
            joined = joins(s, s->groups.at[s->groups.n - 1 - j], k);
        }
        if (!joined) {
            tk_sink_group *g = TK_NEW(s->a, tk_sink_group);
            *g = (tk_sink_group){.in = k->op->in, .at = k->op, .pos = k->pos};
            g->behind = k->kind == TK_SINK_KEEP || k->kind == TK_SINK_SCAN;
            tk_vec_push(s->a, &g->sink, k);
            tk_vec_push(s->a, &s->groups, g);
        }
    }
    sort_groups(s);
}

// ---- What is too dear to make again -------------------------------------------------------------

// Instructions for an element: from here on a store to the thread's memory and a load from it cost
// less, with the way to the caches that they take.
enum { DEAR = 40 };

static unsigned own_cost(const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (info->elementwise) {
        bool divides = op->code == TK_OP_DIV || op->code == TK_OP_REM || op->code == TK_OP_CDIV;
        bool long_one = op->code == TK_OP_POW || op->code == TK_OP_ERF || op->code == TK_OP_ATAN2;
        return long_one ? 40 : !info->exact ? 10 : divides ? 10 : 1;
    }
    switch ((int)op->code) { // others cost nothing, or one instruction
    case TK_OP_CONST:
    case TK_OP_IOTA:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
        return 0;
    case TK_OP_LOAD:
    case TK_OP_EXTRACT:
        return 4;
    case TK_OP_PHILOX:
        return 60;
    case TK_OP_GATHER:
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_SCAN:
        return 20;
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED:
        return 1000;
    }
    return 1;
}

typedef struct dearness {
    unsigned *cost;      // of a value, with all that it is made of
    uint32_t *loops;     // that make it
    uint32_t *last_loop; // the last of them
    uint32_t *users;     // of these that are made
    tk_vid *user;        // the last one's result
} dearness;

static void count_loops(const tk_chunker *s, dearness *d) {
    for (uint32_t g = 0; g < s->groups.n; g++) {
        for (uint32_t i = 0; i < s->groups.at[g]->sink.n; i++) {
            const tk_sink *k = s->groups.at[g]->sink.at[i];
            for (uint32_t j = 0; j < k->made.n; j++) {
                const tk_vid v = k->made.at[j];
                d->loops[v] += d->last_loop[v] != g + 1;
                d->last_loop[v] = g + 1;
            }
        }
    }
}

static void add_costs(const tk_chunker *s, dearness *d, const tk_op *op) {
    unsigned cost = own_cost(op);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_vid x = op->opnd[i];
        unsigned of = tk_chunk_is_tile(s, x) ? d->cost[x] : 0;
        cost += of < 10000 ? of : 10000;
    }
    for (uint32_t r = 0; r < op->nres; r++) {
        d->cost[op->res[r]] = cost < 10000 ? cost : 10000;
    }
}

static void count_users(dearness *d, const tk_op *op) {
    for (uint32_t i = 0; op->nres && d->loops[op->res[0]] && i < op->nopnd; i++) {
        d->users[op->opnd[i]]++;
        d->user[op->opnd[i]] = op->res[0];
    }
}

bool tk_chunk_dear(tk_chunker *s, uint8_t *wanted) {
    dearness d = {TK_NEW_ARRAY(s->a, unsigned, s->n), TK_NEW_ARRAY(s->a, uint32_t, s->n),
                  TK_NEW_ARRAY(s->a, uint32_t, s->n), TK_NEW_ARRAY(s->a, uint32_t, s->n),
                  TK_NEW_ARRAY(s->a, tk_vid, s->n)};
    bool any = false;
    count_loops(s, &d);
    for (uint32_t i = 0; i < s->nop; i++) {
        count_users(&d, s->op[i]);
    }
    for (uint32_t i = 0; i < s->nop; i++) {
        const tk_op *op = s->op[i];
        add_costs(s, &d, op);
        for (uint32_t r = 0; r < op->nres; r++) {
            const tk_vid v = op->res[r];
            bool handed_on = d.users[v] == 1 && d.loops[d.user[v]] == d.loops[v];
            if (d.loops[v] > 1 && d.cost[v] >= DEAR && !handed_on && !(s->need[v] & TK_NEED_KEPT)) {
                wanted[v] |= TK_NEED_KEPT;
                d.cost[v] = own_cost(&(tk_op){.code = TK_OP_EXTRACT});
                any = true;
            }
        }
    }
    return any;
}
