// SPDX-License-Identifier: Apache-2.0
// How often the ops at hand run, where loops do not run equally often in all programs, or in all
// iterations of the loops that they stand in. See record.h.
#include "ir/pass_util.h"
#include "lower/differs.h"
#include "lower/record_internal.h"

#include <string.h>

enum { DEEP = 64 };

// ---- Numbers that are looked at -----------------------------------------------------------------

tk_record_piece tk_record_piece_at(int64_t n, uint32_t most, int64_t from) {
    const int64_t size = n <= most ? 1 : (n + most - 1) / most;
    const int64_t left = n - from, all = left < size ? left : size;
    const int64_t up = from / size % 2; // of two in the middle in turn the lower and the upper one
    return (tk_record_piece){.at = from + (all - 1 + up) / 2, .n = all};
}

// Of each axis and each loop of `levels`, so that `budget` combinations are looked at in all.
static uint32_t share(uint32_t levels, uint32_t budget) {
    uint32_t n = budget;
    for (uint64_t all = 0; levels > 1; n--) {
        all = 1;
        for (uint32_t i = 0; i < levels && all <= budget; i++) {
            all *= n;
        }
        if (all <= budget || n <= 2) {
            break;
        }
    }
    return n;
}

uint32_t tk_record_most(const tk_recorder *r, uint32_t axes, uint32_t budget) {
    uint32_t levels = (uint32_t)__builtin_popcount(axes);
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS; i++) {
        levels += r->loop[i].steers;
    }
    return share(levels, budget);
}

bool tk_record_samples(tk_recorder *r, uint32_t budget) {
    const uint32_t most = tk_record_most(r, r->axes, budget);
    bool some = false;
    for (uint32_t a = 0; r->axes >> a; a++) {
        some = some || (r->axes >> a & 1 && tk_sample_programs_along(&r->sample, a) > most);
    }
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS; i++) {
        some = some || (r->loop[i].steers && r->loop[i].longest > most);
    }
    return some;
}

// ---- Of one program -----------------------------------------------------------------------------

typedef struct nest {
    tk_recorder *r;
    tk_record_leaf *leaf;
    const tk_op *op;
    uint32_t end;  // loops are summed over up to this one
    uint32_t most; // numbers that are looked at along an axis or a loop
    uint32_t axes; // that are summed over
    uint32_t vary; // those along which it is not the same
} nest;

static double sum_of(nest *s, uint32_t level) {
    tk_recorder *r = s->r;
    if (level == s->end) {
        return s->leaf ? s->leaf(r, s->op) : 1;
    }
    const int64_t n = tk_sample_trips(&r->sample, r->loop[level].op);
    int64_t *at = &r->sample.in[level].number;
    double sum = 0, first = 0;
    if (n <= 0 || !r->loop[level].steers) {
        const double each = n > 0 ? sum_of(s, level + 1) : 0;
        return n < 0 || each < 0 ? -1 : (double)n * each;
    }
    r->sampled = r->sampled || n > s->most;
    r->loop[level].longest = n > r->loop[level].longest ? n : r->loop[level].longest;
    for (int64_t i = 0; i < n && sum >= 0;) {
        const tk_record_piece p = tk_record_piece_at(n, s->most, i);
        *at = p.at;
        const double each = sum_of(s, level + 1);
        first = i ? first : each;
        r->loop[level].differs = r->loop[level].differs || first < each || first > each;
        sum = each < 0 ? -1 : sum + (double)p.n * each;
        i += p.n;
    }
    *at = 0;
    return sum;
}

// In the program that the sample is of.
static double here(nest *s) {
    tk_recorder *r = s->r;
    if (r->nloop > TK_SAMPLE_LOOPS) {
        return -1;
    }
    for (uint32_t i = 0; i < r->nloop; i++) {
        r->sample.in[i] = (tk_sample_iteration){r->loop[i].op, 0};
    }
    r->sample.nin = r->nloop;
    const double n = sum_of(s, 0);
    r->sample.nin = 0;
    return n;
}

enum { BUDGET = 16384 };

double tk_record_here(tk_recorder *r) {
    nest s = {.r = r, .end = r->nloop, .most = tk_record_most(r, 0, BUDGET)};
    return r->times < 0 ? -1 : r->axes || r->nested ? here(&s) : r->times;
}

double tk_record_sum(tk_recorder *r, tk_record_leaf *leaf, const tk_op *op) {
    nest s = {.r = r, .leaf = leaf, .op = op, .most = tk_record_most(r, 0, BUDGET)};
    s.end = r->nloop ? r->nloop - 1 : 0;
    return here(&s);
}

// ---- Of all programs ----------------------------------------------------------------------------

// The mean along the first `axis` axes.
static double mean_along(nest *s, uint32_t axis) {
    tk_recorder *r = s->r;
    while (axis && !(s->axes >> (axis - 1) & 1)) {
        axis--;
    }
    if (axis == 0) {
        return here(s);
    }
    const int64_t n = tk_sample_programs_along(&r->sample, --axis);
    int64_t *at = &r->sample.program[axis];
    double sum = 0, first = 0;
    r->sampled = r->sampled || n > s->most;
    for (int64_t i = 0; i < n && sum >= 0;) {
        const tk_record_piece p = tk_record_piece_at(n, s->most, i);
        *at = p.at;
        const double each = mean_along(s, axis);
        first = i ? first : each;
        s->vary |= (uint32_t)(first < each || first > each) << axis;
        sum = each < 0 ? -1 : sum + (double)p.n * each;
        i += p.n;
    }
    *at = 0;
    return n > 0 && sum > 0 ? sum / (double)n : sum;
}

// Where it is not known how many programs there are: the number of all, if they seem to be alike.
static double alike(nest *s) {
    static const int64_t number[] = {0, 1, 2, 3, 5, 1 << 10, 1 << 20};
    tk_recorder *r = s->r;
    double first = 0;
    for (uint32_t i = 0; i < sizeof number / sizeof *number && first >= 0; i++) {
        for (uint32_t a = 0; a < TK_MAX_GRID; a++) {
            r->sample.program[a] = s->axes >> a & 1 ? number[i] : 0;
        }
        const double n = here(s);
        first = i ? first : n;
        first = n < first || n > first ? -1 : first;
    }
    memset(r->sample.program, 0, sizeof r->sample.program);
    return first;
}

static double mean(nest *s) {
    tk_recorder *r = s->r;
    s->most = tk_record_most(r, s->axes, BUDGET);
    return s->axes == 0      ? here(s)
           : r->programs < 0 ? alike(s)
           : r->programs > 0 ? mean_along(s, r->f->grid->last->nopnd)
                             : here(s);
}

// Of all loops at hand but the innermost.
double tk_record_mean(tk_recorder *r, tk_record_leaf *leaf, const tk_op *op) {
    nest s = {.r = r, .leaf = leaf, .op = op, .axes = r->axes};
    s.end = r->nloop ? r->nloop - 1 : 0;
    return mean(&s);
}

// ---- Loops --------------------------------------------------------------------------------------

// The loops at hand whose index a number is made of, as bits.
static uint32_t loops_of(const tk_recorder *r, tk_vid v, unsigned depth) {
    const tk_op *d = tk_value_def(r->f, v);
    const tk_region *in = tk_value_region(r->f, v);
    const tk_op *from = d ? d : in ? in->owner : NULL;
    uint32_t loops = 0;
    if (!from || depth > DEEP) {
        return 0;
    }
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS && !d; i++) {
        loops |= (uint32_t)(r->loop[i].op == from) << i;
    }
    for (uint32_t i = 0; i < (d ? d->nopnd : 3); i++) {
        loops |= i < from->nopnd ? loops_of(r, from->opnd[i], depth + 1) : 0;
    }
    return loops;
}

// Marks what the number of its iterations hangs on. False: on something that is not the same each
// time, and not followed.
static bool see_bounds(tk_recorder *r, const tk_op *loop, uint32_t *axes) {
    uint32_t of = 0, loops = 0;
    for (uint32_t i = 0; i < 3; i++) {
        of |= tk_differs_along(r->f, loop->opnd[i]);
        loops |= loops_of(r, loop->opnd[i], 0);
    }
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS; i++) {
        r->loop[i].steers = r->loop[i].steers || loops >> i & 1;
    }
    *axes |= of;
    return of != TK_DIFFERS_ALL;
}

static void see_nested(tk_recorder *r) {
    r->nested = false;
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS; i++) {
        r->nested = r->nested || r->loop[i].steers;
    }
}

void tk_record_also(tk_recorder *r, const tk_op *loop) {
    uint32_t axes = r->axes;
    const bool known = loop->code == TK_OP_FOR && see_bounds(r, loop, &axes);
    r->axes = known ? axes : r->axes;
    r->times = known ? r->times : -1;
    see_nested(r);
}

void tk_record_leave(tk_recorder *r, const tk_recorder *was) {
    memcpy(r->loop, was->loop, sizeof r->loop);
    r->nloop = was->nloop;
    r->axes = was->axes;
    r->nested = was->nested;
    r->sampled = was->sampled;
    r->times = was->times;
}

// What is in the loop that has just been entered runs so often, or it is looked for.
static double found(tk_recorder *r, double plain, uint32_t axes) {
    if (axes == 0 && !r->nested) {
        return plain;
    }
    nest s = {.r = r, .end = r->nloop, .axes = axes};
    const double n = mean(&s);
    r->axes |= s.vary;
    return n;
}

double tk_record_enter(tk_recorder *r, const tk_op *op, double trips) {
    const double before = r->times, plain = before < 0 || trips < 0 ? -1 : before * trips;
    uint32_t axes = 0;
    r->times = plain;
    if (op->code != TK_OP_FOR) {
        return trips;
    }
    const bool known = see_bounds(r, op, &axes);
    if (r->nloop < TK_SAMPLE_LOOPS) {
        r->loop[r->nloop] = (struct tk_record_loop){.op = op};
    }
    r->nloop++;
    see_nested(r);
    double each = known && axes == 0 && !r->nested ? trips : -1;
    if (before >= 0) {
        r->times = known ? found(r, plain, axes | r->axes) : -1;
        each = r->times < 0 ? -1 : before > 0 ? r->times / before : trips;
    }
    for (uint32_t i = 0; i < r->nloop && i < TK_SAMPLE_LOOPS; i++) {
        r->loop[i].steers = r->loop[i].differs;
    }
    see_nested(r);
    return each;
}
