// SPDX-License-Identifier: Apache-2.0
// Device "sim" through the library, with a back end that gives hand-written PTX: how a launch gets
// there, how a fault comes back with its place in the source, seeds and counters.
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char source[] = "kernel k(x: in f32[N], y: out f32[N])\n"
                             "    grid (i in 2)\n"
                             "{\n"
                             "    let a = x[0 +: 32];\n"
                             "    y[0 +: 32] = a;\n"
                             "}\n";

// Parameters: x, its size and stride; y, likewise; the grid's count.
#define PTX(BODY)                                                                                  \
    ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n"       \
    ".visible .entry k(.param .u64 x, .param .u32 xn, .param .u64 xs, .param .u64 y,\n"            \
    " .param .u32 yn, .param .u64 ys, .param .u32 g)\n.reqntid 64\n{\n"                            \
    ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n.loc 1 4 13\n"                           \
    "ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; mov.u32 %r1, %tid.x;\n"                         \
    "mad.wide.u32 %d3, %r1, 4, %d1; mad.wide.u32 %d4, %r1, 4, %d2;\n" BODY                         \
    "ret;\n}\n.file 1 \"./k.tk\"\n"

static const char *the_ptx;

static tk_image *compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags) {
    cr_expect(o->no_cubin, "the simulator needs no machine code");
    tk_image *i = fake_ptx_compile(arena, m, o, diags);
    i->ptx = the_ptx;
    i->ptx_size = strlen(the_ptx);
    i->threads = 64;
    return i;
}

typedef struct sim {
    gpu_env e;
    _Alignas(64) float x[64], y[64];
    char plain[4096], json[8192];
} sim;

static sim *open_sim(const char *ptx) {
    static sim s;
    memset(&s, 0, sizeof s);
    the_ptx = ptx;
    s.e.config = tkc_config_create();
    s.e.config->gpu_compile = compile;
    gpu_program(&s.e, source);
    cr_assert_eq(tkc_device_open(s.e.context, "sim", &s.e.device, &s.e.report), TKC_OK);
    for (int k = 0; k < 64; k++) {
        s.x[k] = (float)k;
    }
    return &s;
}

static void keep(void *user, const char *plain, const char *json) {
    sim *s = user;
    snprintf(s->plain, sizeof s->plain, "%s", plain);
    snprintf(s->json, sizeof s->json, "%s", json);
}

static tkc_status run(sim *s, uint64_t seed) {
    int64_t n = 64;
    tkc_arg arg[2] = {gpu_tensor(s->x, TKC_F32, 1, &n), gpu_tensor(s->y, TKC_F32, 1, &n)};
    tkc_launch_options o = {.size = sizeof o, .seed = seed, .counters = keep, .counters_user = s};
    return tkc_launch(s->e.kernel, s->e.device, arg, 2, &o, &s->e.report);
}

static void close_sim(sim *s) {
    tkc_report_destroy(s->e.report);
    tkc_device_close(s->e.device);
    tkc_kernel_destroy(s->e.kernel);
    tkc_program_destroy(s->e.program);
    tkc_context_destroy(s->e.context);
    tkc_config_destroy(s->e.config);
}

Test(sim_device, runs_and_counts) {
    sim *s = open_sim(PTX("ld.global.f32 %r2, [%d3];\n.loc 1 5 5\nadd.f32 %r2, %r2, 0f3F800000;\n"
                          "st.global.f32 [%d4], %r2;\n"));
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(s->y, 0, sizeof s->y);
        cr_assert_eq(run(s, seed), TKC_OK, "%s", gpu_said(&s->e));
        for (int k = 0; k < 64; k++) {
            cr_assert_eq(s->y[k], (float)k + 1);
        }
    }
    cr_expect(strstr(s->plain, "\nk.tk:4") && strstr(s->plain, "memory"), "%s", s->plain);
    // Two blocks of two warps, 32 floats a request: 4 sectors each.
    cr_expect(strstr(s->json, "\"line\": 5, \"warps\": 12, \"threads\": 384, "
                              "\"global_requests\": 4, \"global_sectors\": 16"),
              "%s", s->json);
    close_sim(s);
}

// The launch makes the simulator's own maps. From element 48 of 64 on there are 16, then zeros.
Test(sim_device, maps) {
    static const char ptx[] =
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".shared .align 1024 .b8 tile[128]; .shared .align 8 .b8 bar[8];\n"
        ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 x, .param .u32 xn,\n"
        " .param .u64 xs, .param .u64 y, .param .u32 yn, .param .u64 ys, .param .u32 g)\n"
        ".reqntid 64\n{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
        "ld.param.u64 %d2, [y]; mov.b64 %d5, map; cvta.param.u64 %d5, %d5;\n"
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, bar;\n"
        "@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;\n"
        "bar.sync 0; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n"
        "@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r2], [%d5, {48}], [%r3];\n"
        "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;\n"
        "setp.lt.u32 %p3, %r1, 32; mad.lo.u32 %r4, %r1, 4, %r2;\n"
        "mad.wide.u32 %d4, %r1, 4, %d2; @%p3 ld.shared.b32 %r5, [%r4];\n"
        "@%p3 st.global.b32 [%d4], %r5; ret;\n}\n";
    the_backend.maps = 1;
    sim *s = open_sim(ptx);
    memset(s->y, 0xff, sizeof s->y);
    cr_assert_eq(run(s, 0), TKC_OK, "%s", gpu_said(&s->e));
    for (int k = 0; k < 32; k++) {
        cr_expect_eq(s->y[k], k < 16 ? (float)k + 48 : 0.0f, "%d: %g", k, (double)s->y[k]);
    }
    close_sim(s);
}

// As on every device: arguments may be replaced, and a refused one changes nothing.
Test(sim_device, prepared) {
    sim *s = open_sim(PTX("ld.global.f32 %r2, [%d3];\nst.global.f32 [%d4], %r2;\n"));
    int64_t n = 64;
    float z[64] = {0};
    tkc_arg arg[2] = {gpu_tensor(s->x, TKC_F32, 1, &n), gpu_tensor(s->y, TKC_F32, 1, &n)};
    tkc_prepared *p = NULL;
    cr_assert_eq(tkc_prepared_create(s->e.kernel, s->e.device, arg, 2, &p, &s->e.report), TKC_OK);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(s->y[63], 63);
    tkc_arg to = gpu_tensor(z, TKC_F32, 1, &n), bad = gpu_tensor(s->x, TKC_F32, 1, &n);
    cr_expect_eq(tkc_prepared_set(p, 1, &to, NULL), TKC_OK);
    cr_expect_eq(tkc_prepared_set(p, 1, &bad, NULL), TKC_ERROR_LAUNCH);
    cr_expect_eq(tkc_prepared_launch(p, NULL, NULL), TKC_OK);
    cr_expect_eq(z[63], 63);
    tkc_prepared_destroy(p);
    close_sim(s);
}

// y's elements stand between those of x.
Test(sim_device, tensors_between_each_other) {
    sim *s = open_sim(PTX("mad.wide.u32 %d3, %r1, 8, %d1; mad.wide.u32 %d4, %r1, 8, %d2;\n"
                          "ld.global.f32 %r2, [%d3];\nst.global.f32 [%d4], %r2;\n"));
    float z[128];
    int64_t n = 64;
    tkc_arg arg[2] = {gpu_tensor(z, TKC_F32, 1, &n), gpu_tensor(z + 1, TKC_F32, 1, &n)};
    arg[0].tensor.stride[0] = arg[1].tensor.stride[0] = 2;
    for (int k = 0; k < 128; k++) {
        z[k] = (float)k;
    }
    cr_expect_eq(tkc_launch(s->e.kernel, s->e.device, arg, 2, NULL, &s->e.report), TKC_OK, "%s",
                 s->e.report ? gpu_said(&s->e) : "");
    cr_expect_eq(z[127], 126);
    close_sim(s);
}

static void fails(const char *ptx, const char *const *words) {
    sim *s = open_sim(ptx);
    cr_expect_eq(run(s, 0), TKC_ERROR_CHECK);
    const char *said = gpu_said(&s->e);
    for (; *words; words++) {
        cr_expect(strstr(said, *words), "no '%s' in: %s", *words, said);
    }
    close_sim(s);
}
#define FAILS(ptx, ...) fails(ptx, (const char *const[]){__VA_ARGS__, NULL})

Test(sim_device, faults_have_places) {
    FAILS(PTX(".loc 1 5 5\nst.global.f32 [%d4+256], %r2;\n"),
          "k.tk:5:5: error: thread 0 of block 0", "byte 256 of tensor 'y', which has 256",
          "of the PTX", "[out-of-bounds]");
    FAILS(PTX("st.global.f32 [%d3], %r2;\n"), "k.tk:4:13", "tensor 'x', which is an input",
          "[read-only]");
    FAILS(PTX("setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;\n.loc 1 5 5\nbar.sync 1;\n"),
          "k.tk:4:13: error:", "[divergent-barrier]", "k.tk:5:5: note: 24 threads of warp 0");
}

Test(sim_device, what_it_refuses) {
    sim *s = open_sim(PTX("frob.b32 %r1, %r2;\n"));
    cr_expect_eq(run(s, 0), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&s->e), "unknown instruction 'frob.b32'"), "%s", gpu_said(&s->e));
    tkc_device *d;
    tkc_report_destroy(s->e.report);
    cr_expect_eq(tkc_device_open(s->e.context, "sim:77", &d, &s->e.report), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&s->e), "sim:80, sim:86, sim:89 and sim:90"), "%s", gpu_said(&s->e));
    tkc_report_destroy(s->e.report);
    s->e.report = NULL;
    cr_expect_eq(tkc_device_open(s->e.context, "sim:80", &d, NULL), TKC_OK);
    cr_expect_str_eq(tkc_device_name(d), "sim:80");
    tkc_device_close(d);
    close_sim(s);
}

// A launch that would never end is stopped by the caller.
Test(sim_device, stops) {
    sim *s = open_sim(PTX("L: bra L;\n"));
    int64_t n = 64;
    tkc_arg arg[2] = {gpu_tensor(s->x, TKC_F32, 1, &n), gpu_tensor(s->y, TKC_F32, 1, &n)};
    volatile int stop = 1;
    tkc_launch_options o = {.size = sizeof o, .stop = &stop};
    cr_expect_eq(tkc_launch(s->e.kernel, s->e.device, arg, 2, &o, &s->e.report), TKC_ERROR_CHECK);
    cr_expect(strstr(gpu_said(&s->e), "[stopped]") && strstr(gpu_said(&s->e), "k.tk:4:13"), "%s",
              gpu_said(&s->e));
    close_sim(s);
}
