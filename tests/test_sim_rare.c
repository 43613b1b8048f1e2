// SPDX-License-Identifier: Apache-2.0
// Instructions of the simulator that compilers seldom emit.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

static uint64_t one(const char *inst, char type, uint64_t a, uint64_t b, uint64_t c) {
    sim_env *e = sim_open();
    uint64_t x = sim_one(e, inst, type, type, a, b, c);
    sim_close(e);
    return x;
}

Test(sim_rare, carries) {
    // 64 x 64 bits to 128 by parts of 32, as a compiler would.
    const uint64_t samples[] = {0, 1, 0xffffffff, 0x100000000, 0x8000000000000001, ~UINT64_C(0)};
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned j = 0; j < 6; j++) {
            unsigned __int128 want = (unsigned __int128)samples[i] * samples[j];
            uint64_t high =
                one("mov.b64 {%r0, %r1}, %a; mov.b64 {%r2, %r3}, %b;\n"
                    "mul.lo.u32 %r4, %r0, %r2; mul.hi.u32 %r5, %r0, %r2;\n"
                    "mad.lo.cc.u32 %r5, %r0, %r3, %r5; madc.hi.u32 %r6, %r0, %r3, 0;\n"
                    "mad.lo.cc.u32 %r5, %r1, %r2, %r5; madc.hi.cc.u32 %r6, %r1, %r2, %r6;\n"
                    "addc.u32 %r7, 0, 0; mad.lo.cc.u32 %r6, %r1, %r3, %r6;\n"
                    "madc.hi.u32 %r7, %r1, %r3, %r7; mov.b64 %x, {%r6, %r7};",
                    'd', samples[i], samples[j], 0);
            cr_expect_eq(high, (uint64_t)(want >> 64), "%llx, %llx", (unsigned long long)samples[i],
                         (unsigned long long)samples[j]);
        }
    }
    cr_expect_eq(one("mad.hi.cc.s32 %x, %a, %b, %c;", 'r', 0xffffffff, 5, 10), 9); // -1 + 10
    cr_expect_eq(one("mad.hi.cc.s64 %x, %a, %b, %c;", 'd', ~UINT64_C(0), 5, 10), 9);
}

Test(sim_rare, bits) {
    cr_expect_eq(one("lop3.or.b32 %x|%p9, %a, %b, %c, 0x96, %p1; selp.b32 %x, %x, 77, %p9;", 'r',
                     0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa),
                 0x96969696);
    cr_expect_eq(one("setp.eq.b32 %p1, %a, %a; lop3.and.b32 %x|%p9, %a, %b, %c, 0x80, %p1;\n"
                     "selp.b32 %x, 1, 2, %p9;",
                     'r', 1, 2, 4),
                 2);
    cr_expect_eq(one("cvt.pack.sat.u8.s32.b32 %x, %a, %b, %c;", 'r', 300, 0xfffffff0, 0xabcd1234),
                 0x1234ff00);
    cr_expect_eq(one("cvt.pack.sat.s8.s32.b32 %x, %a, %b, %c;", 'r', 300, 0xfffffff0, 5),
                 0x00057ff0);
    cr_expect_eq(one("mov.b32 %x, WARP_SZ; add.u32 %x, %x, %a;", 'r', 1, 0, 0), 33);
}

Test(sim_rare, hints) {
    sim_env *e = sim_open();
    cr_assert(sim_run(e, 32,
                      "createpolicy.fractional.L2::evict_first.b64 %d1, 1.0;\n"
                      "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d2, 0.5;\n"
                      "createpolicy.cvt.L2.b64 %d3, 0x12;\n"
                      "createpolicy.range.global.L2::evict_last.b64 %d4, [%base], 128, 256;\n"
                      "ld.global.L1::evict_last.L2::cache_hint.b64 %d5, [%at], %d1;\n"
                      "ldu.global.u64 %d6, [%at]; add.u64 %d5, %d5, 7; add.u64 %d5, %d5, %d6;\n"
                      "applypriority.global.L2::evict_normal [%base], 128; pmevent.mask 5;\n"
                      "fence.acquire.sync_restrict::shared::cluster.cluster;\n"
                      "ld.mmio.relaxed.sys.global.u64 %d6, [%at]; add.u64 %d5, %d5, %d6;\n"
                      "st.global.L2::cache_hint.b64 [%at], %d5, %d2;"),
              "%s", sim_fault(e));
    cr_expect_eq(e->word[3], 7);
    sim_close(e);
}

// Every element is atomic by itself; the old values come back.
Test(sim_rare, vector_atomics) {
    sim_env *e = sim_open();
    cr_assert(sim_run(e, 64,
                      "mov.f32 %f0, 1.0; mov.f32 %f1, 2.0; mov.f32 %f2, 0.5; mov.f32 %f3, 0.0;\n"
                      "red.relaxed.gpu.global.add.v4.f32 [%base], {%f0, %f1, %f2, %f3};\n"
                      "red.global.v2.f32.add [%base+16], {%f1, %f0};\n"
                      "mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x40004000;\n"
                      "red.global.add.noftz.v4.f16x2 [%base+32], {%r1, %r2, %r1, %r2};\n"
                      "mov.b16 %h1, 0x3f80; mov.b16 %h2, 0x4000;\n"
                      "red.global.v2.bf16.max.noftz [%base+48], {%h1, %h2};\n"
                      "atom.global.add.v2.f32 {%f4, %f5}, [%base+64], {%f0, %f1};\n"
                      "cvt.rzi.u32.f32 %r3, %f4; mad.wide.u32 %d1, %r3, 4, %base;\n"
                      "st.global.b32 [%d1+128], %f5;"),
              "%s", sim_fault(e));
    const float *f = (const float *)(const void *)e->word;
    cr_expect(f[0] == 64 && f[1] == 128 && f[2] == 32 && f[3] == 0);
    cr_expect(f[4] == 128 && f[5] == 64 && f[16] == 64 && f[17] == 128);
    cr_expect_eq(e->word[4], UINT64_C(0x5800580054005400)); // 64, 64, 128, 128
    cr_expect_eq(e->word[6], UINT64_C(0x40003f80));
    for (unsigned k = 0; k < 64; k++) {
        cr_expect_eq(f[32 + k], (float)(2 * k), "%u: %g", k, (double)f[32 + k]);
    }
    sim_close(e);
}

Test(sim_rare, refused) {
    static const char *const bad[] = {
        "red.global.add.v8.f32 [%d1], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};",
        "red.global.min.v2.f32 [%d1], {%f0, %f1};",
        "red.global.add.v2.f16x2 [%d1], {%r0, %r1};",
        ("mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r2}, "
         "{%r0, %r1, %r2, %r3};"),
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [%d1];",
        "discard.global.L2 [%d1], 128;",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        sim_env *e = sim_open();
        cr_expect(!sim_read(e, sim_body(e, "", bad[k])), "read: %s", bad[k]);
        const char *name = tk_format(&e->arena, "'%.*s'", (int)strcspn(bad[k], " "), bad[k]);
        cr_expect(strstr(e->error.text, name) != NULL, "%s", e->error.text);
        sim_close(e);
    }
}

// Lists of one, sums of an address and a number, the lower bits of special registers, numbers of
// more bits than count.
Test(sim_rare, odd_operands) {
    cr_expect_eq(one("mov.b64 {%d9}, %a; mov.b64 %x, {%d9};", 'd', 0x123456789abcdef0, 0, 0),
                 0x123456789abcdef0);
    cr_expect_eq(
        one("mov.b32 {%r9}, 7; mov.b32 %x, {0f3f800000}; add.u32 %x, %x, %r9;", 'r', 0, 0, 0),
        0x3f800007);
    cr_expect_eq(one("mov.b64 %x, {1.5};", 'd', 0, 0, 0), 0x3ff8000000000000);
    cr_expect_eq(
        one(".local .b8 q[16]; mov.b32 %r9, q+8; sub.s32 %r9, %r9, q+4; add.u32 %x, %r9, %a;", 'r',
            1, 0, 0),
        5);
    cr_expect_eq(one("mov.b32 %x|_, %a; bar.sync 4294967296;", 'r', 9, 0, 0), 9);
    cr_expect_eq(one("cvt.u32.u8 %r8, %clock64; mov.u64 %d8, %clock64; cvt.u32.u16 %r9, %nsmid;\n"
                     "setp.lt.u32 %p1, %r8, 256; selp.b32 %x, %r9, 0, %p1;",
                     'r', 0, 0, 0),
                 132);
    cr_expect_eq(one("isspacep.global %p1, %a; isspacep.shared %p2, %b; not.pred %p2, %p2;\n"
                     "and.pred %p1, %p1, %p2; selp.b32 %x, 3, 4, %p1;",
                     'r', 4096, 1024, 0),
                 3);
    cr_expect_eq(one("cvta.param.u64 %d8, k_param_0; isspacep.param::entry %p1, %d8;\n"
                     "selp.b64 %x, 3, 4, %p1;",
                     'd', 0, 0, 0),
                 3);
}

// ---- Shared memory that is the system's

#define RESERVED                                                                                   \
    "mov.u32 %r1, %reserved_smem_offset_1; mad.lo.u32 %r2, %t, 4, %r1;\n"                          \
    "mov.u32 %r3, %reserved_smem_offset_cap; mov.u32 %r4, %reserved_smem_offset_begin;\n"          \
    "mov.u32 %r5, %reserved_smem_offset_end; mov.u32 %r6, %reserved_smem_offset_0;\n"

Test(sim_rare, reserved_shared_memory) {
    static const struct {
        const char *text, *id;
    } rows[] = {
        // What is for libraries is theirs: nobody has to write it first.
        {RESERVED "ld.shared.b32 %r9, [%r1+284]; atom.shared.and.b32 %r9, [%r1], 1;\n", NULL},
        {RESERVED "st.shared.b32 [%r2], %t; bar.sync 0; ld.shared.b32 %r9, [%r1+12];\n"
                  "st.global.b64 [%at], %d1;",
         NULL},
        {RESERVED "cvt.u64.u32 %d1, %r2; cvta.shared.u64 %d1, %d1; st.b32 [%d1], %t;\n"
                  "ld.b32 %r9, [%d1];",
         NULL},
        {RESERVED "st.shared.b32 [%r2], %t; ld.shared.b32 %r9, [%r1+12];", "race"},
        {RESERVED "st.shared.b32 [%r1], %t;", "race"},
        {RESERVED "st.shared.b32 [%r1+-4], %t;", "out-of-bounds"},
        {RESERVED "st.shared.b32 [%r4], %t;", "out-of-bounds"},
        {RESERVED "st.shared.b32 [%r5], %t;", "out-of-bounds"}, // there is no shared memory
        // Where nobody asks for it, it is not there.
        {"mov.u32 %r1, 1000; ld.shared.b32 %r9, [%r1];", "out-of-bounds"},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            sim_env *e = sim_open();
            e->launch.seed = seed;
            bool ok = sim_run(e, 32, rows[k].text);
            cr_expect(rows[k].id ? !ok && strcmp(e->result.fault.id, rows[k].id) == 0 : ok,
                      "row %u: %s", k, sim_fault(e));
            cr_expect(!rows[k].id || strcmp(rows[k].id, "race") ||
                          strstr(sim_fault(e), "shared memory at 0x2e"),
                      "%s", sim_fault(e));
            sim_close(e);
        }
    }
    // Two blocks have one each; shared memory of the kernel lies beside it.
    sim_env *e = sim_open();
    e->launch.shared = 1000;
    cr_expect(sim_run_shared(e, 32, ".extern .shared .b32 sm[];",
                             RESERVED "mov.u32 %r9, sm; mad.lo.u32 %r9, %t, 4, %r9;\n"
                                      "st.shared.b32 [%r9], 5; st.shared.b32 [%r2], %t;\n"
                                      "ld.shared.b32 %r8, [%r9]; ld.shared.b32 %r7, [%r2];\n"
                                      "add.u32 %r8, %r8, %r7; st.global.b32 [%at], %r8;"),
              "%s", sim_fault(e));
    cr_expect_eq((uint32_t)e->word[31], 36);
    sim_close(e);
}

// ---- Faults of no instruction

Test(sim_rare, faults_without_an_instruction_have_a_place) {
    for (unsigned k = 0; k < 3; k++) {
        sim_env *e = sim_open();
        const char *body = sim_body(e, "", "\n.loc 1 7 3\nL: add.u32 %r1, %r1, 1; bra L;");
        const char *ptx = tk_format(&e->arena, "%s.file 1 \"k.tk\"\n", body);
        cr_assert(sim_read(e, ptx), "%s", e->error.text);
        tk_sim_launch l = {.entry = k == 2 ? "other" : "k",
                           .grid = {1, 1, 1},
                           .block = {k == 1 ? 2048 : 32, 1, 1},
                           .params = &e->address,
                           .param_bytes = sizeof e->address,
                           .limit = 1000};
        tk_sim_run(&e->arena, e->program, &l, &e->result);
        const tk_sim_fault *f = &e->result.fault;
        cr_assert(!e->result.ok);
        cr_expect_str_eq(f->id, k ? "launch" : "limit");
        unsigned line = 1;
        for (const char *s = ptx; k < 2 && s < strstr(ptx, ".entry"); s++) {
            line += *s == '\n';
        }
        cr_expect_eq(f->at.ptx_line, line, "%s", sim_fault(e));
        cr_expect(k == 2 || (f->at.file && f->at.line == 7), "%s", sim_fault(e));
        sim_close(e);
    }
}
