// SPDX-License-Identifier: Apache-2.0
// See sim_mutation.h.
#include "tests/sim_mutation.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SILENT = 200, CAUGHT = 20 };

// The text without the n-th marked line (n from 1; 0: whole). NULL: there are fewer. A label before
// what is deleted stays.
static const char *mutant(sim_env *e, const char *text, unsigned n) {
    const char *mark = text, *line = text;
    for (unsigned k = 0; k < n; k++) {
        mark = strstr(k ? mark + 1 : mark, "// x\n");
        if (!mark) {
            return NULL;
        }
    }
    if (n == 0) {
        return text;
    }
    for (line = mark; line > text && line[-1] != '\n'; line--) {
    }
    const char *colon = memchr(line, ':', (size_t)(mark - line));
    line = colon && colon[1] == ' ' ? colon + 1 : line;
    return tk_format(&e->arena, "%.*s\n%s", (int)(line - text), text, mark + 5);
}

static bool silent(const sim_mutation *m, unsigned n, uint64_t seed, const uint64_t *want,
                   uint64_t *got, bool *exists) {
    sim_env *e = sim_open();
    const char *body = mutant(e, m->text, n);
    *exists = body != NULL;
    e->launch.seed = seed;
    e->launch.cluster[0] = m->cluster;
    e->launch.cluster[1] = e->launch.cluster[2] = m->cluster ? 1 : 0;
    if (m->prepare) {
        m->prepare(e);
    }
    bool ok = false;
    if (body) {
        cr_assert(sim_read(e, sim_body(e, "", body)), "line %u: %s", e->error.at.ptx_line,
                  e->error.text);
        ok = sim_launch(e, m->blocks, m->threads);
    }
    if (n == 0) {
        cr_assert(ok, "seed %u: %s", (unsigned)seed, sim_fault(e));
    }
    size_t bytes = (SIM_WORDS - m->first) * sizeof *e->word;
    ok = ok && (!want || memcmp(want + m->first, e->word + m->first, bytes) == 0);
    if (got) {
        memcpy(got, e->word, sizeof e->word);
    }
    sim_close(e);
    return ok;
}

void sim_check_mutations(const sim_mutation *m, unsigned marks) {
    static uint64_t want[SIM_WORDS];
    bool exists;
    cr_assert(silent(m, 0, 0, NULL, want, &exists));
    for (uint64_t seed = 1; seed < SILENT; seed++) {
        cr_assert(silent(m, 0, seed, want, NULL, &exists), "another result under seed %u",
                  (unsigned)seed);
    }
    unsigned n = 1;
    for (;; n++) {
        bool caught = false;
        for (uint64_t seed = 0; seed < CAUGHT && !caught; seed++) {
            caught = !silent(m, n, seed, want, NULL, &exists);
        }
        if (!exists) {
            break;
        }
        cr_expect(caught, "deletion %u is not caught", n);
    }
    cr_expect_eq(n - 1, marks);
}
