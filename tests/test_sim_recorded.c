// SPDX-License-Identifier: Apache-2.0
// What a GPU did with the probes of tests/probes, the simulator does: bit for bit. TKC_RECORDED
// names another folder than tests/data.
#include "sim/program.h"
#include "tests/recorded.h"

#include <criterion/criterion.h>
#include <math.h>
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

static bool reproduced(const recorded *r, uint64_t seed) {
    tk_arena arena;
    tk_arena_init(&arena, NULL, NULL);
    recorded_result got = recorded_run(&arena, r, seed);
    if (!got.out) {
        cr_log_error("%s: %s\n    %.*s", r->name, got.why, SHOWN(r->inst));
    }
    bool good = got.out && same(r, got.out);
    tk_arena_release(&arena);
    return good;
}

static void check(const char *name) {
    tk_arena arena;
    tk_arena_init(&arena, NULL, NULL);
    const recorded_file *f = recorded_read(&arena, data_path(&arena, name));
    uint32_t failed = 0;
    for (uint32_t k = 0; k < f->probes.n; k++) {
        const recorded *r = &f->probes.at[k];
        failed += !reproduced(r, 0) || !reproduced(r, 3);
    }
    cr_expect_eq(failed, 0, "%s: %u of %u probes", name, failed, f->probes.n);
    tk_arena_release(&arena);
}

Test(sim_recorded, instructions) { check("instructions.rec.z"); }
Test(sim_recorded, threads) { check("threads.rec.z"); }
Test(sim_recorded, matrix) { check("matrix.rec.z"); }
Test(sim_recorded, kernels) { check("kernels.rec.z"); }

// ---- Counters

typedef enum counted {
    LOAD_REQUESTS,
    LOAD_SECTORS,
    STORE_REQUESTS,
    STORE_SECTORS,
    SHARED_LOADS,
    SHARED_STORES,
    LOAD_WAVEFRONTS,
    STORE_WAVEFRONTS,
    CONFLICTS,
    SHUFFLES,
    GLOBAL_LOADS,
    GLOBAL_STORES,
    SPECIAL,
    ADDS,
    MULTIPLICATIONS,
    FUSED,
    COUNTED
} counted;

static const char *const metrics[COUNTED] = {
    [LOAD_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    [LOAD_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    [STORE_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    [STORE_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    [SHARED_LOADS] = "smsp__inst_executed_op_shared_ld.sum",
    [SHARED_STORES] = "smsp__inst_executed_op_shared_st.sum",
    [LOAD_WAVEFRONTS] = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    [STORE_WAVEFRONTS] = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    [CONFLICTS] = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    [SHUFFLES] = "smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum",
    [GLOBAL_LOADS] = "smsp__sass_inst_executed_op_global_ld.sum",
    [GLOBAL_STORES] = "smsp__sass_inst_executed_op_global_st.sum",
    [SPECIAL] = "smsp__inst_executed_pipe_xu.sum",
    [ADDS] = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    [MULTIPLICATIONS] = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    [FUSED] = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
};

// What the machine executes for one instruction where the counted kernels have no slow path:
// CUDA 13's ptxas. rcp: MUFU.RCP and a step of Newton's; div: MUFU.RCP, FCHK and five FFMA; of
// integers I2F, MUFU.RCP and F2I. The unit for special functions has FCHK and conversions too.
typedef struct machine {
    const char *name;
    unsigned special, adds, multiplications, fused;
} machine;

static const machine machines[] = {
    {"add.rn.f32", 0, 1, 0, 0},       {"sub.rn.f32", 0, 1, 0, 0},
    {"mul.rn.f32", 0, 0, 1, 0},       {"fma.rn.f32", 0, 0, 0, 1},
    {"rcp.rn.f32", 1, 1, 0, 2},       {"div.rn.f32", 2, 0, 0, 5},
    {"div.u32", 3, 0, 0, 0},          {"ex2.approx.ftz.f32", 1, 0, 0, 0},
    {"rsqrt.approx.f32", 1, 0, 0, 0},
};

static void count_one(const tk_sim_inst *i, const tk_sim_count *c, uint64_t *n) {
    bool load = strncmp(i->name, "ld.", 3) == 0, store = strncmp(i->name, "st.", 3) == 0;
    n[LOAD_REQUESTS] += load ? c->global_requests : 0;
    n[LOAD_SECTORS] += load ? c->global_sectors : 0;
    n[STORE_REQUESTS] += store ? c->global_requests : 0;
    n[STORE_SECTORS] += store ? c->global_sectors : 0;
    n[SHARED_LOADS] += load ? c->shared_requests : 0;
    n[SHARED_STORES] += store ? c->shared_requests : 0;
    n[LOAD_WAVEFRONTS] += load ? c->shared_wavefronts : 0;
    n[STORE_WAVEFRONTS] += store ? c->shared_wavefronts : 0;
    n[CONFLICTS] += c->shared_conflicts;
    n[SHUFFLES] += i->klass == TK_SIM_CLASS_WARP ? c->threads : 0;
    n[GLOBAL_LOADS] += load ? c->global_requests : 0;
    n[GLOBAL_STORES] += store ? c->global_requests : 0;
    for (size_t k = 0; k < sizeof machines / sizeof machines[0]; k++) {
        const machine *m = &machines[k];
        if (strcmp(i->name, m->name) == 0) {
            n[SPECIAL] += m->special * c->warps;
            n[ADDS] += m->adds * c->threads;
            n[MULTIPLICATIONS] += m->multiplications * c->threads;
            n[FUSED] += m->fused * c->threads;
        }
    }
}

// The line that begins with these words, behind them.
static const char *line_of(const char *lines, const char *words) {
    size_t n = strlen(words);
    for (const char *at = lines; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, words, n) == 0 && at[n] == ':') {
            return at + n + 1;
        }
    }
    return NULL;
}

static size_t word(const char **at) {
    *at += strspn(*at, " ");
    return strcspn(*at, " \n");
}

// Compares a probe's counters with its line. How many there were. The scan's `add`, `selp` are one
// add under a predicate for ptxas, so fewer threads of the machine add.
static unsigned compare(const recorded *r, const char *lines, const uint64_t *n) {
    const char *name = line_of(lines, "metrics"), *value = line_of(lines, r->name);
    unsigned found = 0;
    cr_assert(name != NULL, "counters.txt");
    for (size_t length; value && (length = word(&name)) > 0; name += length) {
        size_t digits = word(&value);
        for (unsigned k = 0; k < COUNTED && *value != '-'; k++) {
            if (strlen(metrics[k]) == length && strncmp(name, metrics[k], length) == 0) {
                double x = strtod(value, NULL);
                found++;
                bool folded = k == ADDS && strcmp(r->name, "kernel scan") == 0;
                cr_expect(fabs((double)n[k] - x) <= (folded ? 0.11 : 0.02) * x,
                          "%s: %s is %llu, not %.0f", r->name, metrics[k], (unsigned long long)n[k],
                          x);
            }
        }
        value += digits;
    }
    return found;
}

static unsigned check_counters(const char *name) {
    tk_arena arena;
    tk_arena_init(&arena, NULL, NULL);
    const recorded_file *f = recorded_read(&arena, data_path(&arena, name));
    const char *lines = recorded_text(&arena, data_path(&arena, "counters.txt"));
    unsigned found = 0;
    for (uint32_t k = 0; k < f->probes.n; k++) {
        const recorded *r = &f->probes.at[k];
        recorded_result got = recorded_run(&arena, r, 0);
        uint64_t n[COUNTED] = {0};
        cr_assert(got.out != NULL, "%s: %s", r->name, got.why);
        for (uint32_t i = 0; i < got.run.ncount; i++) {
            count_one(&got.program->code.at[i], &got.run.count[i], n);
        }
        found += compare(r, lines, n);
    }
    tk_arena_release(&arena);
    return found;
}

// Nsight Compute's counters of five kernels, and of one pattern of access at a time.
Test(sim_recorded, counters) {
    cr_expect_eq(check_counters("kernels.rec.z"), 5 * COUNTED);
    cr_expect_gt(check_counters("accesses.rec.z"), 300u);
}
