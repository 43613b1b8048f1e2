// SPDX-License-Identifier: Apache-2.0
// What the module's .target has and does not have; what entries say of their blocks.
#include "tests/sim_env.h"
#include "tests/sim_ptxas.h"

#include <criterion/criterion.h>
#include <string.h>

static const char head[] = ".version 8.7\n.target sm_90a\n.address_size 64\n"
                           ".global .align 128 .b8 gv[4096];\n.visible .entry k() {\n"
                           ".reg .pred %p<16>; .reg .b16 %h<32>;\n.reg .b32 %r<64>; .reg .b64 "
                           "%d<64>;\n";
static const char tail[] = "ret;\n}\n";

// The head for another target.
static const char *head_of(tk_arena *a, const char *target) {
    const char *at = strstr(head, "sm_90a");
    return tk_format(a, "%.*s%s%s", (int)(at - head), head, target, at + 6);
}

static bool takes(tk_arena *a, const char *target, const char *line, tk_sim_note *error) {
    const char *ptx = tk_format(a, "%s%s\n%s", head_of(a, target), line, tail);
    return tk_sim_read(a, ptx, strlen(ptx), error) != NULL;
}

// What only later architectures have is refused for earlier ones, by name.
static const char *const targets[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"};
enum { TARGETS = sizeof targets / sizeof *targets };
static const struct {
    const char *line;
    const char *first; // of the targets
} forms[] = {
    {"add.u32 %r1, %r2, %r3;", "sm_75"},
    {"fma.rn.f16 %h1, %h2, %h3, %h4;", "sm_75"},
    {"atom.global.add.noftz.f16 %h1, [gv], %h2;", "sm_75"},
    {"ld.acquire.gpu.global.b32 %r1, [gv];", "sm_75"},
    {"fma.rn.bf16 %h1, %h2, %h3, %h4;", "sm_80"},
    {"fma.rn.relu.f16 %h1, %h2, %h3, %h4;", "sm_80"},
    {"min.bf16 %h1, %h2, %h3;", "sm_80"},
    {"max.f16x2 %r1, %r2, %r3;", "sm_80"},
    {"min.NaN.f32 %r1, %r2, %r3;", "sm_80"},
    {"cvt.rn.bf16.f32 %h1, %r1;", "sm_80"},
    {"cvt.rn.f16x2.f32 %r1, %r2, %r3;", "sm_80"},
    {"cvt.rna.tf32.f32 %r1, %r2;", "sm_80"},
    {"ld.global.L2::cache_hint.b32 %r1, [gv], %d1;", "sm_80"},
    {"prefetch.global.L2::evict_last [%d1];", "sm_80"},
    {"createpolicy.cvt.L2.b64 %d1, 5;", "sm_80"},
    {"applypriority.global.L2::evict_normal [%d1], 128;", "sm_80"},
    {"redux.sync.add.u32 %r1, %r2, %r3;", "sm_80"},
    {"cp.async.wait_all;", "sm_80"},
    {"mbarrier.init.shared.b64 [%r1], 1;", "sm_80"},
    {"mbarrier.arrive.noComplete.shared.b64 %d1, [%r1], 2;", "sm_80"},
    {"min.xorsign.abs.f32 %r1, %r2, %r3;", "sm_86"},
    {"cvt.rn.satfinite.e4m3x2.f32 %h1, %r1, %r2;", "sm_89"},
    {"cvt.rn.f16x2.e5m2x2 %r1, %h1;", "sm_89"},
    {"add.bf16 %h1, %h2, %h3;", "sm_90"},
    {"setp.eq.bf16 %p1, %h1, %h2;", "sm_90"},
    {"cvt.rn.bf16.s32 %h1, %r1;", "sm_90"},
    {"cvt.f64.bf16 %d1, %h2;", "sm_90"},
    {"cvt.rz.relu.tf32.f32 %r1, %r2;", "sm_90"},
    {"atom.global.add.noftz.bf16 %h1, [gv], %h2;", "sm_90"},
    {"ld.acquire.cluster.global.b32 %r1, [gv];", "sm_90"},
    {"tanh.approx.bf16 %h1, %h2;", "sm_90"},
    {"min.u16x2 %r1, %r2, %r3;", "sm_90"},
    {"max.relu.s32 %r1, %r2, %r3;", "sm_90"},
    {"mbarrier.arrive.shared.b64 %d1, [%r1], 2;", "sm_90"},
    {"prefetch.tensormap [%d1];", "sm_90"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", "sm_90"},
    {"cp.async.bulk.commit_group;", "sm_90"},
    {"barrier.cluster.arrive;", "sm_90"},
    {"fence.proxy.tensormap::generic.release.gpu;", "sm_90"},
    {"tensormap.replace.tile.rank.global.b1024.b32 [%d1], 1;", "sm_90a"},
    {"wgmma.fence.sync.aligned;", "sm_90a"},
    {"setmaxnreg.inc.sync.aligned.u32 64;", "sm_90a"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_75"},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r0}, {%r0, %r1};",
     "sm_75"},
    {"mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%r0, %r1}, {%r0}, {%r0}, {%r0, %r1};",
     "sm_75"},
    {"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {%r0, %r1}, {%r0}, {%r0}, {%r0, "
     "%r1};",
     "sm_75"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, {%r0, "
     "%r1}, {%r0, %r1};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, "
     "{%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_80"},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d0}, {%d0}, {%d0, %d1};",
     "sm_80"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, {%r0, %r1}, {%r0}, {%r0, "
     "%r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, {%r0, "
     "%r1}, {%r0, %r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e5m2.f16 {%r0, %r1}, {%r0, %r1}, {%r0}, {%r0, "
     "%r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, {%r0, "
     "%r1}, {%r0, %r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
     "{%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
     "%r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e5m2.f16 {%r0, %r1}, {%r0, %r1}, {%r0}, {%r0, "
     "%r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16 {%r0, %r1}, {%r0, %r1, %r2, %r3}, {%r0, "
     "%r1}, {%r0, %r1};",
     "sm_89"},
    {"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d0, %d1}, {%d0}, "
     "{%d0, %d1, %d2, %d3};",
     "sm_90"},
    {"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3}, "
     "{%d0, %d1}, {%d0, %d1, %d2, %d3};",
     "sm_90"},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3, "
     "%d4, %d5, %d6, %d7}, {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3};",
     "sm_90"},
};
enum { FORMS = sizeof forms / sizeof *forms };

Test(sim_targets, instructions) {
    tk_arena a;
    tk_sim_note error;
    tk_arena_init(&a, NULL, NULL);
    for (unsigned t = 0; t < TARGETS; t++) {
        const char *line[FORMS];
        bool refuses[FORMS] = {false};
        for (size_t k = 0; k < FORMS; k++) {
            unsigned first = 0;
            while (strcmp(targets[first], forms[k].first) != 0) {
                first++;
            }
            line[k] = forms[k].line;
            bool ok = takes(&a, targets[t], line[k], &error);
            cr_expect_eq(ok, t >= first, "%s: %s", targets[t], line[k]);
            cr_expect(ok || strstr(error.text, "needs .target"), "%s", error.text);
        }
        bool asked =
            sim_ptxas_refuses(targets[t], head_of(&a, targets[t]), line, FORMS, tail, refuses);
        for (size_t k = 0; k < FORMS && asked; k++) {
            cr_expect_eq(takes(&a, targets[t], line[k], &error), !refuses[k], "%s: %s", targets[t],
                         line[k]);
        }
    }
    tk_arena_release(&a);
}

// Names of targets, and what may stand beside them.
Test(sim_targets, names) {
    static const struct {
        const char *name;
        bool known;
    } rows[] = {{"sm_75", true},         {"sm_86", true},
                {"sm_87", true},         {"sm_90a", true},
                {"sm_100f", true},       {"sm_103a", true},
                {"sm_121", true},        {"sm_80, texmode_independent", true},
                {"sm_80, debug", true},  {"sm_9", false},
                {"sm_9000", false},      {"sm_900", false},
                {"sm_91", false},        {"sm_85", false},
                {"sm_80a", false},       {"sm_89f", false},
                {"sm_90f", false},       {"sm_90aa", false},
                {"sm_", false},          {"sm_4294967386", false}, // 2^32 + 90
                {"sm90", false},         {"debug", false},
                {"sm_80, sm_91", false}, {"sm_80, texmode", false}};
    tk_arena a;
    tk_arena_init(&a, NULL, NULL);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tk_sim_note error;
        bool ok = takes(&a, rows[k].name, "ret;", &error);
        cr_expect_eq(ok, rows[k].known, "%s: %s", rows[k].name, ok ? "taken" : error.text);
        cr_expect(ok || (strstr(error.text, ".target") && error.at.ptx_line == 2), "%s",
                  error.text);
    }
    tk_arena_release(&a);
}

// Special registers in all sizes, on old and new targets.
Test(sim_targets, special_registers) {
    static const char *const name[] = {
#define TK_SIM_SPECIAL(ID, NAME, BYTES, SM) NAME,
#include "sim/specials.def"
        "%reserved_smem_offset_2", "%tid.w", "%clusterid.w"};
    static const char *const form[] = {"mov.b16 %h1",        "mov.u32 %r1",
                                       "mov.b32 %r1",        "mov.b64 %d1",
                                       "mov.pred %p1",       "mov.f32 %r1",
                                       "add.u32 %r1, 1",     "cvt.u32.u8 %r1",
                                       "cvt.u64.u16 %d1",    "cvt.u32.u32 %r1",
                                       "cvt.s64.s32 %d1",    "cvt.u32.u64 %r1",
                                       "cvt.rn.f32.u32 %r1", "cvt.pack.sat.u16.s32 %r1, %r2"};
    static const char *const target[] = {"sm_75", "sm_80", "sm_90a"};
    enum { NAMES = sizeof name / sizeof *name, WAYS = sizeof form / sizeof *form };
    tk_arena a;
    tk_arena_init(&a, NULL, NULL);
    for (unsigned t = 0; t < 3; t++) {
        const char *line[NAMES * WAYS];
        bool refuses[NAMES * WAYS] = {false};
        for (size_t k = 0; k < NAMES * WAYS; k++) {
            line[k] = tk_format(&a, "%s, %s;", form[k % WAYS], name[k / WAYS]);
        }
        bool asked =
            sim_ptxas_refuses(target[t], head_of(&a, target[t]), line, NAMES * WAYS, tail, refuses);
        for (size_t k = 0; k < NAMES * WAYS && asked; k++) {
            tk_sim_note error;
            bool ok = takes(&a, target[t], line[k], &error);
            cr_expect(ok != refuses[k], "%s: %s%s", target[t], line[k],
                      ok ? " is taken" : error.text);
        }
    }
    tk_sim_note error;
    cr_expect(!takes(&a, "sm_80", "mov.u32 %r1, %clusterid.x;", &error) &&
              strstr(error.text, "needs .target sm_90"));
    cr_expect(!takes(&a, "sm_75", "mov.u32 %r1, %reserved_smem_offset_1;", &error));
    cr_expect(takes(&a, "sm_80", "mov.u32 %r1, %reserved_smem_offset_1;", &error));
    tk_arena_release(&a);
}

// ---- Entries

static void entry(const char *bounds, const char *says) {
    tk_arena a;
    tk_sim_note error;
    tk_arena_init(&a, NULL, NULL);
    const char *ptx =
        tk_format(&a, "%s%s\n{ ret; }\n",
                  ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n", bounds);
    bool ok = tk_sim_read(&a, ptx, strlen(ptx), &error) != NULL;
    cr_expect(ok ? !says : says && strstr(error.text, says), "%s: %s", bounds,
              ok ? "taken" : error.text);
    tk_arena_release(&a);
}

Test(sim_targets, entries) {
    entry(".maxntid 32, 2 .minnctapersm 2", NULL);
    entry(".reqntid 64 .reqnctapercluster 2 .maxnreg 64", NULL);
    entry(".reqntid 0", "must be greater than 0");
    entry(".reqntid 32, 0, 1", "must be greater than 0");
    entry(".maxntid 0", "must be greater than 0");
    entry(".minnctapersm 0", "must be greater than 0");
    entry(".maxnreg 0", "must be greater than 0");
    entry(".reqntid 64 .maxntid 64", "exclude each other");
    entry(".maxclusterrank 8 .reqnctapercluster 2", "exclude each other");
    entry(".blocksareclusters", "needs .reqntid");
    entry(".maxnctapersm 2", ".maxnctapersm");
    entry("{ ret; }\n.entry k()", "'k' is declared twice");
    entry("{ ret; }\n.func k()", "'k'");
    entry("{ ret; }\n.global .b8 k[4];\n.entry o()", "'k' is declared twice");
}
