// SPDX-License-Identifier: Apache-2.0
// What a GPU did with the probes of tests/probes, the simulator does: bit for bit. TKC_RECORDED
// names another folder than tests/data.
#include "tests/recorded.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN(b) (int)((b).n < 400 ? (b).n : 400), (const char *)(b).at

static const char *data_path(tk_arena *a, const char *name) {
    const char *folder = getenv("TKC_RECORDED");
    return tk_format(a, "%s/%s", folder ? folder : "tests/data", name);
}

// Prints the first place that differs.
static void tell(const recorded *r, const unsigned char *got, size_t at, size_t wrong) {
    at = at / 4 * 4;
    uint32_t expected = 0, found = 0;
    size_t n = r->out.n - at < 4 ? r->out.n - at : 4;
    memcpy(&expected, r->out.at + at, n);
    memcpy(&found, got + at, n);
    cr_log_error("%s: %zu of %zu bytes differ; at %zu: %08x instead of %08x\n    %.*s", r->name,
                 wrong, r->out.n, at, found, expected, SHOWN(r->inst));
}

static bool same(const recorded *r, const unsigned char *got) {
    size_t wrong = 0, first = 0;
    for (size_t k = r->out.n; r->out.at && k-- > 0;) {
        if (got[k] != r->out.at[k]) {
            wrong++;
            first = k;
        }
    }
    if (wrong) {
        tell(r, got, first, wrong);
    }
    return wrong == 0;
}

static void check(const char *name) {
    tk_arena arena;
    tk_arena_init(&arena, NULL, NULL);
    const recorded_file *f = recorded_read(&arena, data_path(&arena, name));
    uint32_t failed = 0;
    for (uint32_t k = 0; k < f->probes.n; k++) {
        const recorded *r = &f->probes.at[k];
        tk_arena own;
        tk_arena_init(&own, NULL, NULL);
        recorded_result got = recorded_run(&own, r, 0);
        if (!got.out) {
            cr_log_error("%s: %s\n    %.*s", r->name, got.why, SHOWN(r->inst));
        }
        failed += !got.out || !same(r, got.out);
        tk_arena_release(&own);
    }
    cr_expect_eq(failed, 0, "%s: %u of %u probes", name, failed, f->probes.n);
    tk_arena_release(&arena);
}

Test(sim_recorded, instructions) { check("instructions.rec.z"); }
Test(sim_recorded, threads) { check("threads.rec.z"); }
Test(sim_recorded, matrix) { check("matrix.rec.z"); }
Test(sim_recorded, kernels) { check("kernels.rec.z"); }
