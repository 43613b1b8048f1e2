// SPDX-License-Identifier: Apache-2.0
// Numbers among the operands against what the instruction takes of them: an assembler refuses the
// others, so they are refused before anything runs.
#include "sim/read.h"

#include <string.h>

typedef struct range {
    const char *begin;
    unsigned operand;
    int64_t least, most;
    int32_t unit;
    bool low;
} range;

static const range ranges[] = {
#define TK_SIM_RANGE(BEGIN, OPERAND, LEAST, MOST, UNIT) {BEGIN, OPERAND, LEAST, MOST, UNIT, false},
#define TK_SIM_RANGE_LOW(BEGIN, OPERAND, LEAST, MOST, UNIT)                                        \
    {BEGIN, OPERAND, LEAST, MOST, UNIT, true},
#include "sim/ranges.def"
};

// The number that an operand is; false: it is none.
static bool number_of(const tk_sim_inst *i, const int64_t *numbers, unsigned operand,
                      int64_t *out) {
    const bool is =
        tk_sim_count_of(i, operand) == 1 && tk_sim_operand(i, operand)->kind == TK_SIM_ARG_CONST;
    *out = is ? numbers[i->at[operand]] : 0;
    return is;
}

static bool begins(const tk_sim_inst *i, const char *with) {
    return strncmp(i->name, with, strlen(with)) == 0;
}

static const char *said(tk_arena *a, unsigned operand, int64_t x, const char *needed) {
    return tk_format(a, "operand %u is %lld; %s is needed", operand, (long long)x, needed);
}

static const char *outside(tk_arena *a, const range *g, int64_t x) {
    const char *needed =
        g->least == g->most ? tk_format(a, "%lld", (long long)g->least)
        : g->unit == 1
            ? tk_format(a, "one from %lld to %lld", (long long)g->least, (long long)g->most)
        : g->least == INT64_MIN ? tk_format(a, "a multiple of %d", g->unit)
                                : tk_format(a, "a multiple of %d from %lld to %lld", g->unit,
                                            (long long)g->least, (long long)g->most);
    return said(a, g->operand, x, needed);
}

// What no range says: numbers that depend on others, and those with a gap.
static const char *others(tk_arena *a, const tk_sim_inst *i, const int64_t *numbers) {
    int64_t x, y;
    if (begins(i, "cp.async.c") && number_of(i, numbers, 2, &x)) {
        return x == 12 ? said(a, 2, x, "4, 8 or 16")
               : number_of(i, numbers, 3, &y) && y > x
                   ? said(a, 3, y, "one that is not greater than operand 2")
                   : NULL;
    }
    if (begins(i, "mbarrier.arrive") && !tk_sim_has(i, TK_SIM_MOD_EXPECT_TX) &&
        number_of(i, numbers, 2, &x) && x <= 0) {
        return said(a, 2, x, "one that is greater than 0");
    }
    if (begins(i, "createpolicy.range") && number_of(i, numbers, 2, &x) &&
        number_of(i, numbers, 3, &y) && (uint32_t)x > (uint32_t)y) {
        return said(a, 2, x, "one that is not greater than operand 3");
    }
    for (unsigned k = 4; begins(i, "wgmma.mma_async") && k < 6; k++) {
        if (number_of(i, numbers, k, &x) && x != 1 && x != -1) {
            return said(a, k, x, "1 or -1");
        }
    }
    return NULL;
}

const char *tk_sim_range_problem(tk_arena *arena, const tk_sim_inst *i, const int64_t *numbers) {
    unsigned seen = 0; // operands
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        const range *g = &ranges[k];
        int64_t x;
        if (!begins(i, g->begin) || seen >> g->operand & 1) {
            continue;
        }
        seen |= 1u << g->operand;
        if (!number_of(i, numbers, g->operand, &x)) {
            continue;
        }
        x = g->low ? (int32_t)(uint32_t)x : x;
        if (x < g->least || x > g->most || x % g->unit) {
            return outside(arena, g, x);
        }
    }
    return others(arena, i, numbers);
}
