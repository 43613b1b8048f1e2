// SPDX-License-Identifier: Apache-2.0
// Where threads of a warp that part at a branch meet again: at its immediate post-dominator, the
// first instruction that all ways from there to the end go through.
//
// It is found on the basic blocks of a body by the iterative algorithm of Cooper, Harvey and
// Kennedy ("A simple, fast dominance algorithm") on the edges turned around. Ways that end the
// thread by a guarded exit, or in a trap, do not count: nobody waits for those who end. Where
// nothing but such exits ends a loop, they count after all.
#include "sim/read.h"

#include <string.h>

enum { NONE = UINT32_MAX };

typedef struct edge {
    uint32_t from, to;
} edge;

typedef struct graph {
    tk_arena *arena;
    tk_sim_inst *code; // of the body
    uint32_t first, n; // its place in the program; instructions
    bool function;
    uint32_t nblock;   // the end of the body is block number nblock
    uint32_t *begin;   // [nblock + 1]: of a block, in the body
    uint32_t *block;   // [n]: of an instruction
    bool *leaves;      // [nblock]: it has a guarded exit as its last
    TK_VEC(edge) edge; // in the order of `from`
    uint32_t *out;     // [nblock + 2]: the first edge from a block
    uint32_t *in;      // [nblock + 2]: the first place in `back` of a block
    uint32_t *back;    // edges, in the order of `to`
    uint32_t *order;   // [nblock + 1]: blocks in postorder from the end, backwards
    uint32_t *number;  // [nblock + 1]: the place of a block in it; NONE: no way to the end
    uint32_t *next;    // [nblock + 1]: the immediate post-dominator
    uint32_t nnode;    // in `order`
} graph;

static bool is(const tk_sim_inst *i, const char *name) {
    const size_t n = strlen(name);
    return strncmp(i->name, name, n) == 0 && (i->name[n] == '\0' || i->name[n] == '.');
}

static bool returns(const graph *g, const tk_sim_inst *i) { return g->function && is(i, "ret"); }

static bool ends_thread(const graph *g, const tk_sim_inst *i) {
    return is(i, "exit") || (!g->function && is(i, "ret"));
}

static bool jumps(const tk_sim_inst *i) { return is(i, "bra") || is(i, "brx"); }

static bool ends_block(const tk_sim_inst *i) {
    return jumps(i) || is(i, "exit") || is(i, "ret") || is(i, "trap");
}

// ---- Blocks and edges

static void find_blocks(graph *g) {
    bool *leads = TK_NEW_ARRAY(g->arena, bool, g->n + 2);
    leads[0] = true;
    for (uint32_t k = 0; k < g->n; k++) {
        const tk_sim_inst *i = &g->code[k];
        leads[k + 1] = leads[k + 1] || ends_block(i);
        for (uint32_t a = 0; jumps(i) && a < i->narg; a++) {
            if (i->arg[a].kind == TK_SIM_ARG_LABEL) {
                leads[i->arg[a].slot - g->first] = true;
            }
        }
    }
    g->block = TK_NEW_ARRAY(g->arena, uint32_t, g->n + 1);
    g->begin = TK_NEW_ARRAY(g->arena, uint32_t, g->n + 1);
    for (uint32_t k = 0; k < g->n; k++) {
        if (leads[k]) {
            g->begin[g->nblock++] = k;
        }
        g->block[k] = g->nblock - 1;
    }
    g->begin[g->nblock] = g->n;
}

static tk_sim_inst *last_of(const graph *g, uint32_t block) {
    return &g->code[g->begin[block + 1] - 1];
}

// What runs past the end of the body is a fault, and no way.
static void connect(graph *g, uint32_t from, uint32_t to_inst) {
    if (to_inst < g->n) {
        tk_vec_push(g->arena, &g->edge, ((edge){from, g->block[to_inst]}));
    }
}

static void find_edges(graph *g) {
    g->out = TK_NEW_ARRAY(g->arena, uint32_t, g->nblock + 2);
    g->leaves = TK_NEW_ARRAY(g->arena, bool, g->nblock + 1);
    for (uint32_t b = 0; b < g->nblock; b++) {
        const tk_sim_inst *i = last_of(g, b);
        g->out[b] = g->edge.n;
        for (uint32_t a = 0; jumps(i) && a < i->narg; a++) {
            if (i->arg[a].kind == TK_SIM_ARG_LABEL) {
                connect(g, b, i->arg[a].slot - g->first);
            }
        }
        if (i->guard || !ends_block(i)) {
            connect(g, b, g->begin[b + 1]);
        }
        g->leaves[b] = i->guard && ends_thread(g, i);
        if (returns(g, i) || (!i->guard && ends_thread(g, i))) {
            tk_vec_push(g->arena, &g->edge, ((edge){b, g->nblock}));
        }
    }
    g->out[g->nblock] = g->out[g->nblock + 1] = g->edge.n;
}

static void turn_around(graph *g) {
    g->in = TK_NEW_ARRAY(g->arena, uint32_t, g->nblock + 3);
    g->back = TK_NEW_ARRAY(g->arena, uint32_t, g->edge.n + 1);
    for (uint32_t e = 0; e < g->edge.n; e++) {
        g->in[g->edge.at[e].to + 2]++;
    }
    for (uint32_t b = 0; b <= g->nblock; b++) {
        g->in[b + 2] += g->in[b + 1];
    }
    for (uint32_t e = 0; e < g->edge.n; e++) {
        g->back[g->in[g->edge.at[e].to + 1]++] = e;
    }
}

// ---- Post-dominators

// Numbers what comes before a block, then the block itself.
static void walk(graph *g, uint32_t root, uint32_t *stack, uint32_t *at, bool *seen) {
    uint32_t depth = 0;
    seen[root] = true;
    at[root] = g->in[root];
    stack[depth++] = root;
    while (depth > 0) {
        const uint32_t b = stack[depth - 1];
        if (at[b] == g->in[b + 1]) {
            g->number[b] = g->nnode;
            g->order[g->nnode++] = b;
            depth--;
            continue;
        }
        const uint32_t from = g->edge.at[g->back[at[b]++]].from;
        if (!seen[from]) {
            seen[from] = true;
            at[from] = g->in[from];
            stack[depth++] = from;
        }
    }
}

// The end gets the greatest number.
static void number_blocks(graph *g) {
    const uint32_t n = g->nblock + 1;
    uint32_t *stack = TK_NEW_ARRAY(g->arena, uint32_t, n),
             *at = TK_NEW_ARRAY(g->arena, uint32_t, n);
    bool *seen = TK_NEW_ARRAY(g->arena, bool, n);
    g->order = TK_NEW_ARRAY(g->arena, uint32_t, n);
    g->number = TK_NEW_ARRAY(g->arena, uint32_t, n);
    memset(g->number, 0xff, n * sizeof *g->number);
    walk(g, g->nblock, stack, at, seen);
    g->nnode--;
    for (uint32_t b = g->nblock; b-- > 0;) {
        const bool leaves = g->leaves[b] && !seen[b];
        g->leaves[b] = leaves;
        if (leaves) {
            walk(g, b, stack, at, seen);
        }
    }
    g->number[g->nblock] = g->nnode;
    g->order[g->nnode++] = g->nblock;
}

static uint32_t common(const graph *g, uint32_t x, uint32_t y) {
    while (x != y) {
        while (g->number[x] < g->number[y]) {
            x = g->next[x];
        }
        while (g->number[y] < g->number[x]) {
            y = g->next[y];
        }
    }
    return x;
}

static bool improve(graph *g, uint32_t b) {
    uint32_t best = g->leaves[b] ? g->nblock : NONE;
    for (uint32_t e = g->out[b]; e < g->out[b + 1]; e++) {
        const uint32_t to = g->edge.at[e].to;
        if (g->next[to] != NONE) {
            best = best == NONE ? to : common(g, best, to);
        }
    }
    const bool better = best != g->next[b];
    g->next[b] = best;
    return better;
}

static void find_post_dominators(graph *g) {
    g->next = TK_NEW_ARRAY(g->arena, uint32_t, g->nblock + 1);
    memset(g->next, 0xff, (g->nblock + 1) * sizeof *g->next);
    g->next[g->nblock] = g->nblock;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = g->nnode - 1; k-- > 0;) {
            again = improve(g, g->order[k]) || again;
        }
    }
}

// ---- Instructions

static void mark(graph *g) {
    for (uint32_t b = 0; b < g->nblock; b++) {
        tk_sim_inst *i = last_of(g, b);
        const uint32_t to = g->next[b];
        const bool parts = (jumps(i) && (i->guard || is(i, "brx"))) || (i->guard && returns(g, i));
        if (!parts || to == NONE) {
            continue;
        }
        if (to < g->nblock) {
            i->rejoins = g->first + g->begin[to] + 1;
            g->code[g->begin[to]].joins = true;
        } else {
            i->rejoins = g->function ? TK_SIM_REJOINS_CALLER : 0;
        }
    }
    for (uint32_t k = 0; k < g->n; k++) {
        tk_sim_inst *i = &g->code[k];
        if (i->call && i->call->body) {
            i->rejoins = i->guard ? g->first + k + 2 : 0;
            g->code[k + 1].joins = true; // the instruction behind the last one is there as well
        }
    }
}

void tk_sim_reconverge(tk_sim_reader *r, const tk_sim_entry *e, bool function) {
    graph g = {.arena = r->arena,
               .code = r->program->code.at + e->first,
               .first = e->first,
               .n = e->ninst,
               .function = function};
    if (g.n == 0) {
        return;
    }
    find_blocks(&g);
    find_edges(&g);
    turn_around(&g);
    number_blocks(&g);
    find_post_dominators(&g);
    mark(&g);
}
