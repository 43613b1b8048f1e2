// SPDX-License-Identifier: Apache-2.0
// Random kernels of loops, branches and tiles longer than a block, run by the executor and by a few
// lines here: storage that is shared, taken over or reused must never show.
#include <criterion/criterion.h>

#include "test_exec_run.h"

enum {
    W = 600,
    H = W / 2,
    MOST_VALUES = 400,
    MOST_NODES = 400,
    CARRIED = 3,
    LAST = 3,
    TEXT = 60000
};

typedef enum { ADD, SUB, MUL, FLIP, SWAP, SPREAD, HALF, FOR, IF } kind;

// A value's number is its name; the arguments and results of loops have numbers too.
typedef struct node {
    kind kind;
    int res[CARRIED], arg[CARRIED], opnd[CARRIED], nres;
    int trips;         // FOR; IF: the condition
    int body[2], n[2]; // nodes of the regions
    int yield[2][CARRIED];
} node;

typedef struct gen {
    uint32_t seed;
    int values, nodes;
    node node[MOST_NODES];
    int scope[MOST_VALUES], nscope; // values that are visible
    int32_t now[MOST_VALUES][W];
    char text[TEXT];
    size_t at;
} gen;

static unsigned pick(gen *g, unsigned n) {
    g->seed = g->seed * 1664525U + 1013904223U;
    return (g->seed >> 8) % n;
}

// One of the visible values, the later ones more often.
static int any(gen *g) {
    const unsigned n = (unsigned)g->nscope, late = n < 4 ? n : 4;
    return g->scope[pick(g, 2) ? n - 1 - pick(g, late) : pick(g, n)];
}

static void say(gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(gen *g, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    g->at += (size_t)vsnprintf(g->text + g->at, TEXT - g->at, fmt, args);
    va_end(args);
}

static void simple(gen *g, node *x) {
    static const char *const name[] = {"add", "sub", "mul"};
    const int v = x->res[0], a = x->opnd[0], b = x->opnd[1];
    switch (x->kind) {
    case ADD:
    case SUB:
    case MUL:
        say(g, "%%v%d = %s %%v%d, %%v%d : i32[600]\n", v, name[x->kind], a, b);
        break;
    case FLIP:
        say(g, "%%v%d = flip %%v%d axis=0 : i32[600]\n", v, a);
        break;
    case SWAP: // [2, 300] transposed
        say(g,
            "%%m%d = reshape %%v%d : i32[2, 300]\n%%p%d = permute %%m%d perm=[1, 0] : i32[300, 2]\n"
            "%%v%d = reshape %%p%d : i32[600]\n",
            v, a, v, v, v, v);
        break;
    case SPREAD: // the first element everywhere
        say(g, "%%m%d = slice %%v%d axis=0 start=1 : i32[1]\n%%v%d = broadcast %%m%d : i32[600]\n",
            v, a, v, v);
        break;
    case HALF:
        say(g,
            "%%m%d, %%p%d = deinterleave %%v%d : i32[300], i32[300]\n"
            "%%v%d = concat %%p%d, %%m%d axis=0 : i32[600]\n",
            v, v, a, v, v, v);
        break;
    case FOR:
    case IF:
        break;
    }
}

static void region(gen *g, node *x, int which, int depth);

static void list(gen *g, const int *v, int n) {
    for (int i = 0; i < n; i++) {
        say(g, "%s%%v%d", i ? ", " : "", v[i]);
    }
}

static void types(gen *g, int n) {
    for (int i = 0; i < n; i++) {
        say(g, i ? ", i32[600]" : " : i32[600]");
    }
}

static void carry(gen *g, const node *x) {
    say(g, " carry (");
    for (int i = 0; i < x->nres; i++) {
        say(g, "%s%%v%d = %%v%d", i ? ", " : "", x->arg[i], x->opnd[i]);
    }
    say(g, ")");
    types(g, x->nres);
}

static void structured(gen *g, node *x, int depth) {
    list(g, x->res, x->nres);
    if (x->kind == FOR) {
        say(g, " = for %%i%d = %%c0 to %%c%d step %%c1", x->res[0], x->trips);
        carry(g, x);
        say(g, " ");
        region(g, x, 0, depth);
    } else {
        say(g, " = if %%b%d", x->trips & 1);
        types(g, x->nres);
        say(g, " ");
        region(g, x, 0, depth);
        say(g, " else ");
        region(g, x, 1, depth);
    }
    say(g, "\n");
}

static void one_node(gen *g, int depth) {
    node *x = &g->node[g->nodes++];
    const bool deep = depth < 3 && g->nodes < MOST_NODES - 60 && g->values < MOST_VALUES - 60;
    x->kind = (kind)(pick(g, 10) < 7 || !deep ? pick(g, FOR) : pick(g, 2) ? FOR : IF);
    x->nres = x->kind < FOR ? 1 : 1 + (int)pick(g, CARRIED);
    x->trips = (int)pick(g, 4);
    for (int i = 0; i < CARRIED; i++) {
        x->opnd[i] = any(g);
    }
    if (x->kind < FOR) {
        x->res[0] = g->values++;
        simple(g, x);
    } else {
        for (int i = 0; i < x->nres; i++) {
            x->res[i] = g->values++;
            x->arg[i] = g->values++;
        }
        structured(g, x, depth);
    }
    for (int i = 0; i < x->nres; i++) {
        g->scope[g->nscope++] = x->res[i];
    }
}

static void nodes(gen *g, int n, int depth) {
    for (int i = 0; i < n && g->nodes < MOST_NODES - 50 && g->values < MOST_VALUES - 50; i++) {
        one_node(g, depth);
    }
}

static void region(gen *g, node *x, int which, int depth) {
    const int outer = g->nscope;
    say(g, "{\n");
    for (int i = 0; i < x->nres && x->kind == FOR; i++) {
        g->scope[g->nscope++] = x->arg[i];
    }
    x->body[which] = g->nodes;
    nodes(g, 1 + (int)pick(g, 4), depth + 1);
    x->n[which] = g->nodes;
    say(g, "yield ");
    for (int i = 0; i < x->nres; i++) {
        x->yield[which][i] = any(g);
        say(g, "%s%%v%d", i ? ", " : "", x->yield[which][i]);
    }
    say(g, "\n}");
    g->nscope = outer;
}

// ---- Running it here ----------------------------------------------------------------------------

static void run_nodes(gen *g, int from, int to);

static void copy_all(gen *g, const int *to, const int *from, int n) {
    int32_t tmp[CARRIED][W];
    for (int i = 0; i < n; i++) {
        memcpy(tmp[i], g->now[from[i]], sizeof tmp[i]);
    }
    for (int i = 0; i < n; i++) {
        memcpy(g->now[to[i]], tmp[i], sizeof tmp[i]);
    }
}

// Which element of its operand element i of a rearranged tile is.
static int from(kind k, int i) {
    switch (k) {
    case FLIP:
        return W - 1 - i;
    case SWAP:
        return i % 2 * H + i / 2;
    case SPREAD:
        return 1;
    case HALF:
        return i < H ? 2 * i + 1 : 2 * (i - H);
    case ADD:
    case SUB:
    case MUL:
    case FOR:
    case IF:
        break;
    }
    return i;
}

static void run_simple(gen *g, const node *x) {
    int32_t r[W];
    for (int i = 0; i < W; i++) {
        const uint32_t a = (uint32_t)g->now[x->opnd[0]][from(x->kind, i)];
        const uint32_t b = (uint32_t)g->now[x->opnd[1]][i];
        r[i] = (int32_t)(x->kind == ADD   ? a + b
                         : x->kind == SUB ? a - b
                         : x->kind == MUL ? a * b
                                          : a);
    }
    memcpy(g->now[x->res[0]], r, sizeof r);
}

// Runs node k and gives the number of the node after it and all that are inside it.
static int run_node(gen *g, int k) {
    const node *x = &g->node[k];
    if (x->kind < FOR) {
        run_simple(g, x);
        return k + 1;
    }
    if (x->kind == IF) {
        const int which = x->trips & 1 ? 0 : 1;
        run_nodes(g, x->body[which], x->n[which]);
        copy_all(g, x->res, x->yield[which], x->nres);
        return x->n[1];
    }
    copy_all(g, x->arg, x->opnd, x->nres);
    for (int i = 0; i < x->trips; i++) {
        run_nodes(g, x->body[0], x->n[0]);
        copy_all(g, x->arg, x->yield[0], x->nres);
    }
    copy_all(g, x->res, x->arg, x->nres);
    return x->n[0];
}

static void run_nodes(gen *g, int from, int to) {
    for (int k = from; k < to;) {
        k = run_node(g, k);
    }
}

Test(exec_random, storage) {
    static gen g;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        static xrun x;
        static int32_t in[W], out[MOST_VALUES * W];
        memset(&g, 0, sizeof g);
        for (int i = 0; i < W; i++) {
            in[i] = i * i - 17;
        }
        g.seed = seed * 2654435761U;
        say(&g,
            "module tile\n\nkernel @k(%%x: in i32[?], %%y: out i32[?, ?]) {\n%%c0 = const 0 : i32\n"
            "%%c1 = const 1 : i32\n%%c2 = const 2 : i32\n%%c3 = const 3 : i32\n"
            "%%b0 = const false : bool\n%%b1 = const true : bool\n"
            "%%v0 = load %%x[%%c0 +: 600] : i32[600]\n%%v1 = const 7 : i32[600]\n");
        g.values = g.nscope = 2;
        g.scope[1] = 1;
        nodes(&g, 20, 0);
        for (int i = g.nscope - LAST; i < g.nscope; i++) { // what came before ends earlier
            say(&g, "%%r%d = const %d : i32\nstore %%y[%%r%d, %%c0 +: 600] = %%v%d\n", i, i, i,
                g.scope[i]);
        }
        say(&g, "return\n}\n");
        cr_assert(g.at < TEXT - 1);
        cr_assert(xrun_open(&x, g.text), "seed %u", seed);
        const int64_t dim[2] = {g.nscope, W};
        xrun_vector(&x, 0, in, W);
        xrun_tensor(&x, 1, out, 2, dim, NULL);
        cr_assert(xrun_go(&x) == TK_EXEC_OK);
        for (int i = 0; i < W; i++) {
            g.now[0][i] = in[i];
            g.now[1][i] = 7;
        }
        run_nodes(&g, 0, g.nodes);
        for (int i = g.nscope - LAST; i < g.nscope; i++) {
            cr_assert(memcmp(out + i * W, g.now[g.scope[i]], sizeof in) == 0, "seed %u, %%v%d\n%s",
                      seed, g.scope[i], g.text);
        }
        xrun_close(&x);
    }
}
