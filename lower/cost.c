// SPDX-License-Identifier: Apache-2.0
// The model of cost.h, and its figures.
#include "lower/cost.h"

// What no data sheet says. The shares and cycles are an H200's, fitted to the products measured in
// bench/NOTES.md; CACHE is the width of the path, SHARED more than its 128 bytes: what copies write
// is not all in the way of what the unit reads.
static const struct {
    double sustained;          // of the data sheet's clock, under the load of matrix units
    double memory;             // of the data sheet's bandwidth
    double launch;             // seconds between launches in a row
    double shared, cache;      // bytes a cycle
    double begin, end, out;    // cycles: the first tile, the last store; bytes stored a cycle
    double end_copied, copied; // the last two where stores go by tensor copies
    double together;           // cycles of an iteration in which warps fetch and multiply
    double request;            // cycles of a warp's load that is not ahead, with what follows
    double lifted;             // of one by which a tile is fetched through registers
    double of_warps; // of the matrix unit's speed, by instructions of single warps on sm_90
} figure = {.sustained = 0.83,
            .memory = 0.9,
            .launch = 1.2e-6,
            .shared = 150,
            .cache = 64,
            .begin = 1000,
            .end = 500,
            .out = 32,
            .end_copied = 1600,
            .copied = 128,
            .together = 100,
            .request = 4.2,
            .lifted = 16.5,
            .of_warps = 0.62};

double tk_matrix_cycles(const tk_target *t, double products, bool warpgroups) {
    return products / (t->matrix * (t->wgmma && !warpgroups ? figure.of_warps : 1));
}

static double greater(double a, double b) { return a > b ? a : b; }

static double whole(double x) {
    const double n = (double)(uint64_t)x;
    return n < x ? n + 1 : n;
}

// Of `main` cycles of loops and `rest` beside them, on the multiprocessor that has most to do.
static const char *bound_of(const tk_prediction *p, double main, double rest) {
    const double most = greater(p->matrix, greater(p->shared, p->cache));
    return rest > main         ? "the first tile and the stores"
           : p->threads > most ? "what threads load and compute"
           : p->lifted > most  ? "warps that fetch through registers"
           : p->matrix >= most ? "the matrix units"
           : p->shared >= most ? "shared memory"
                               : "reads from the second-level cache";
}

tk_prediction tk_predict(const tk_gpu *gpu, const tk_target *t, const tk_demand *d,
                         const tk_launch *l) {
    const double mps = gpu->multiprocessors, clock = gpu->matrix / (2 * mps * t->matrix);
    const double lanes = gpu->flops / (2 * mps * clock);
    tk_prediction p = {.matrix = d->matrix,
                       .shared = (d->read + d->written) / figure.shared,
                       .cache = d->fetched / figure.cache,
                       .lifted = d->lifted * figure.lifted,
                       .threads = d->requests * figure.request + d->flops / lanes,
                       .begin = figure.begin,
                       .end = l->copied_out ? figure.end_copied + d->stored / figure.copied
                                            : figure.end + d->stored / figure.out};
    p.main = greater(greater(p.matrix, p.lifted), greater(p.shared, p.cache)) + p.threads +
             (l->apart ? 0 : d->tiles * figure.together);
    const double at_once = mps * l->blocks, full = (double)(uint64_t)(l->programs / at_once);
    const double rest = whole((l->programs - full * at_once) / mps);
    const double loops = (full * l->blocks + rest) * p.main;
    p.waves = whole(l->programs / at_once);
    double beside = p.waves * (p.begin + p.end);
    if (l->persistent && l->apart && p.waves > 1) { // the next tiles come while results are stored
        beside -= (p.waves - 1) * p.begin;
    }
    const double cycles = loops + beside;
    const double by_memory = l->least_bytes / (gpu->bandwidth * figure.memory);
    const double by_cycles = cycles / (clock * figure.sustained);
    p.seconds = figure.launch + greater(by_memory, by_cycles);
    p.bound = by_memory > by_cycles ? "memory" : bound_of(&p, loops, beside);
    return p;
}
