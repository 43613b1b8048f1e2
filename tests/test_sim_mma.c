// SPDX-License-Identifier: Apache-2.0
// The simulator's matrix instructions against sums in the language's arithmetic: exact where all
// is integers, within the bound of a sum in f32 where it is not.
#include "lang/num.h"
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { M = 16, N = 8, MOST = 32, REGS = 12 };

typedef struct form {
    const char *name; // shape and types of the mnemonic
    tk_dtype a, b, d;
    unsigned k;
    bool tf32;
} form;

static const form forms[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", TK_F16, TK_F16, TK_F32, 16, false},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", TK_BF16, TK_BF16, TK_F32, 16, false},
    {"m16n8k16.row.col.f16.f16.f16.f16", TK_F16, TK_F16, TK_F16, 16, false},
    {"m16n8k8.row.col.f32.f16.f16.f32", TK_F16, TK_F16, TK_F32, 8, false},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", TK_BF16, TK_BF16, TK_F32, 8, false},
    {"m16n8k8.row.col.f16.f16.f16.f16", TK_F16, TK_F16, TK_F16, 8, false},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", TK_F32, TK_F32, TK_F32, 8, true},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", TK_F32, TK_F32, TK_F32, 4, true},
    {"m16n8k32.row.col.s32.s8.s8.s32", TK_I8, TK_I8, TK_I32, 32, false},
    {"m16n8k32.row.col.s32.u8.s8.s32", TK_U8, TK_I8, TK_I32, 32, false},
    {"m16n8k32.row.col.satfinite.s32.s8.u8.s32", TK_I8, TK_U8, TK_I32, 32, false},
    {"m16n8k16.row.col.s32.u8.u8.s32", TK_U8, TK_U8, TK_I32, 16, false},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", TK_F8E4M3, TK_F8E4M3, TK_F32, 32, false},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", TK_F8E4M3, TK_F8E5M2, TK_F32, 32, false},
    {"m16n8k32.row.col.f32.e5m2.e4m3.f32", TK_F8E5M2, TK_F8E4M3, TK_F32, 32, false},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", TK_F8E5M2, TK_F8E5M2, TK_F32, 32, false},
    {"m16n8k32.row.col.f16.e4m3.e5m2.f16", TK_F8E4M3, TK_F8E5M2, TK_F16, 32, false},
    {"m16n8k16.row.col.f32.e5m2.e4m3.f32", TK_F8E5M2, TK_F8E4M3, TK_F32, 16, false},
    {"m16n8k16.row.col.f16.e4m3.e4m3.f16", TK_F8E4M3, TK_F8E4M3, TK_F16, 16, false},
};

typedef struct problem {
    tk_const a[M][MOST], b[MOST][N], c[M][N], d[M][N];
} problem;

static uint64_t state;
static uint64_t next(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

// A value of the type: a small integer, or anything between -2 and 2.
static tk_const value(tk_dtype t, bool exact) {
    bool is_unsigned = t == TK_U8;
    int64_t small = (int64_t)(next() % 9) - (is_unsigned ? 0 : 4);
    double x = exact || t == TK_I8 || t == TK_U8 || t == TK_I32 ? (double)small
                                                                : (double)next() * 0x1p-29 - 2;
    return tk_const_f64(t, x);
}

static void make(problem *p, const form *f, bool exact) {
    for (unsigned m = 0; m < M; m++) {
        for (unsigned k = 0; k < f->k; k++) {
            p->a[m][k] = value(f->a, exact);
        }
        for (unsigned n = 0; n < N; n++) {
            p->c[m][n] = value(f->d, exact);
        }
    }
    for (unsigned k = 0; k < f->k; k++) {
        for (unsigned n = 0; n < N; n++) {
            p->b[k][n] = value(f->b, exact);
        }
    }
}

static unsigned bits_of(tk_dtype t) { return 8 * (unsigned)tk_dtype_size(t); }

// The registers of one lane: A, B, C, as the fragments' tables have them.
static void pack(const problem *p, const form *f, unsigned lane, uint32_t *reg) {
    unsigned e = 32 / bits_of(f->a), g = lane / 4, q = lane % 4, nb = f->k / (4 * e);
    memset(reg, 0, REGS * sizeof *reg);
    for (unsigned x = 0; x < e; x++) {
        for (unsigned r = 0; r < 2 * nb; r++) {
            unsigned k = e * q + x + 4 * e * (r >> 1);
            reg[r] |= (uint32_t)p->a[g + 8 * (r & 1)][k].bits << x * bits_of(f->a);
        }
        for (unsigned r = 0; r < nb; r++) {
            reg[4 + r] |= (uint32_t)p->b[e * q + x + 4 * e * r][g].bits << x * bits_of(f->b);
        }
    }
    for (unsigned x = 0; x < 4; x++) {
        uint32_t c = (uint32_t)p->c[g + 8 * (x >> 1)][2 * q + (x & 1)].bits;
        if (f->d == TK_F16) {
            reg[8 + (x >> 1)] |= c << 16 * (x & 1);
        } else {
            reg[8 + x] = c;
        }
    }
}

static void unpack(problem *p, const form *f, unsigned lane, const uint32_t *reg) {
    unsigned g = lane / 4, q = lane % 4;
    for (unsigned x = 0; x < 4; x++) {
        uint32_t d = f->d == TK_F16 ? reg[x >> 1] >> 16 * (x & 1) & 0xffff : reg[x];
        p->d[g + 8 * (x >> 1)][2 * q + (x & 1)] = (tk_const){f->d, d};
    }
}

static void run(problem *p, const form *f) {
    static const char *const list[] = {"", "{%r10}", "{%r10, %r11}", "",
                                       "{%r10, %r11, %r12, %r13}"};
    static const char *const b_list[] = {"", "{%r14}", "{%r14, %r15}"};
    sim_env *e = sim_open();
    uint32_t *word = (uint32_t *)(void *)e->word;
    for (unsigned l = 0; l < 32; l++) {
        pack(p, f, l, &word[l * 16]);
    }
    unsigned nb = f->k * bits_of(f->a) / 128;
    bool half = f->d == TK_F16;
    const char *text =
        tk_format(&e->arena, "%s%s %s, %s, %s, %s;\n%s",
                  "mad.wide.u32 %d1, %t, 64, %base; mov.b32 %r2, 0; mov.b32 %r3, 0;\n"
                  "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1];\n"
                  "ld.global.v4.b32 {%r14, %r15, %r16, %r17}, [%d1+16];\n"
                  "ld.global.v4.b32 {%r18, %r19, %r20, %r21}, [%d1+32];\n"
                  "mma.sync.aligned.",
                  f->name, half ? "{%r0, %r1}" : "{%r0, %r1, %r2, %r3}", list[2 * nb], b_list[nb],
                  half ? "{%r18, %r19}" : "{%r18, %r19, %r20, %r21}",
                  "st.global.v4.b32 [%d1+8192], {%r0, %r1, %r2, %r3};");
    cr_assert(sim_run(e, 32, text), "%s: %s", f->name, sim_fault(e));
    for (unsigned l = 0; l < 32; l++) {
        unpack(p, f, l, &word[2048 + l * 16]);
    }
    sim_close(e);
}

static double as_operand(const form *f, tk_const x) {
    return f->tf32 ? tk_const_as_f64((tk_const){TK_F32, x.bits & ~UINT64_C(0x1fff)})
                   : tk_const_as_f64(x);
}

static void check(const form *f, bool exact) {
    problem p;
    make(&p, f, exact);
    run(&p, f);
    bool integer = f->d == TK_I32;
    double unit = f->d == TK_F16 ? 0x1p-10 : (double)FLT_EPSILON;
    for (unsigned m = 0; m < M; m++) {
        for (unsigned n = 0; n < N; n++) {
            double sum = tk_const_as_f64(p.c[m][n]), size = fabs(sum);
            for (unsigned k = 0; k < f->k; k++) {
                double x = as_operand(f, p.a[m][k]) * as_operand(f, p.b[k][n]);
                sum += x;
                size += fabs(x);
            }
            double got = tk_const_as_f64(p.d[m][n]);
            double bound = exact || integer ? 0 : unit * size * 2;
            cr_assert(fabs(got - sum) <= bound, "%s at %u, %u: %.9g, not %.9g", f->name, m, n, got,
                      sum);
        }
    }
}

Test(sim_mma, all_forms) {
    state = 1;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        for (unsigned round = 0; round < 4; round++) {
            check(&forms[k], round % 2 == 0);
        }
    }
}

// One element of D where A is a row of x and B a column of y.
static uint32_t element(const char *type, const uint32_t *a, const uint32_t *b, uint32_t c) {
    sim_env *e = sim_open();
    uint32_t *word = (uint32_t *)(void *)e->word;
    for (unsigned l = 0; l < 32; l++) {
        memcpy(&word[l * 4], &(uint32_t[4]){a[l % 4], b[l % 4], c, 0}, 16);
    }
    const char *text = tk_format(&e->arena, "%s%s %s",
                                 "mad.wide.u32 %d1, %t, 16, %base; mov.b32 %r5, 0;\n"
                                 "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1];\n"
                                 "mma.sync.aligned.m16n8k8.row.col.f32.",
                                 type,
                                 "{%r6, %r7, %r8, %r9}, {%r1, %r5}, {%r2}, {%r3, %r3, %r3, %r3};\n"
                                 "st.global.b32 [%d1], %r6;");
    cr_assert(sim_run(e, 32, text), "%s", sim_fault(e));
    uint32_t d = word[0];
    sim_close(e);
    return d;
}

// Sums are cut toward zero; what is small beside the greatest term is lost. Infinities and NaN.
Test(sim_mma, rounding) {
    static const uint32_t zero[4] = {0}, one[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    static const uint32_t tiny[4] = {0x33003300, 0x33003300, 0x33003300, 0x33003300}; // 2^-25
    static const uint32_t great[4] = {0x7f7f7f7f, 0, 0, 0}, infinite[4] = {0x7f80ff80, 0, 0, 0};
    static const uint32_t least[4] = {1, 0, 0, 0}; // 2^-133
#define BF16 "bf16.bf16.f32"
    cr_expect_eq(element(BF16, zero, one, 0x3f800001), 0x3f800001);
    cr_expect_eq(element(BF16, tiny, one, 0x3f800000), 0x3f800002);         // 8 of 2^-25
    cr_expect_eq(element(BF16, tiny, one, 0xbf800000), 0xbf7ffffc);         // exact: nearer to 0
    cr_expect_eq(element(BF16, great, great, 0), 0x7f800000);               // overflow
    cr_expect_eq(element(BF16, infinite, one, 0) & 0x7fffffff, 0x7fffffff); // inf - inf
    cr_expect_eq(element(BF16, infinite, infinite, 0), 0x7f800000);
    cr_expect_eq(element(BF16, least, one, 0), 0x00010000); // subnormals are kept
    cr_expect_eq(element(BF16, zero, one, 0x80000000), 0);
}

// Elements find their registers: row and column by lane, and the register's number.
static void check_f64(const char *shape, unsigned rows, unsigned depth, const char *operands) {
    double a[16][16], b[16][8], c[16][8];
    sim_env *e = sim_open();
    double *x = (double *)(void *)e->word; // a lane has 8 of A, 4 of B, 4 of C
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned k = 0; k < depth; k++) {
            a[row][k] = (double)(row * 16 + k + 1) / 3;
            x[(row % 8 * 4 + k % 4) * 16 + row / 8 + k / 4 * 2] = a[row][k];
        }
        for (unsigned col = 0; col < 8; col++) {
            c[row][col] = 7 - (double)(row * col);
            x[(row % 8 * 4 + col / 2) * 16 + 12 + row / 8 * 2 + col % 2] = c[row][col];
        }
    }
    for (unsigned k = 0; k < depth; k++) {
        for (unsigned col = 0; col < 8; col++) {
            b[k][col] = (double)(k * 8 + col) - 0.1;
            x[(col * 4 + k % 4) * 16 + 8 + k / 4] = b[k][col];
        }
    }
    const char *text = tk_format(
        &e->arena, "%s%s.row.col.f64.f64.f64.f64 %s;\n%s",
        "mad.wide.u32 %d1, %t, 128, %base;\n"
        "ld.global.v2.b64 {%d10, %d11}, [%d1]; ld.global.v2.b64 {%d12, %d13}, [%d1+16];\n"
        "ld.global.v2.b64 {%d14, %d15}, [%d1+32]; ld.global.v2.b64 {%d16, %d17}, [%d1+48];\n"
        "ld.global.v2.b64 {%d20, %d21}, [%d1+64]; ld.global.v2.b64 {%d22, %d23}, [%d1+80];\n"
        "ld.global.v2.b64 {%d30, %d31}, [%d1+96]; ld.global.v2.b64 {%d32, %d33}, [%d1+112];\n"
        "mma.sync.aligned.",
        shape, operands,
        "st.global.v2.b64 [%d1+96], {%d30, %d31}; st.global.v2.b64 [%d1+112], {%d32, %d33};");
    cr_assert(sim_run(e, 32, text), "%s: %s", shape, sim_fault(e));
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned col = 0; col < 8; col++) {
            double want = c[row][col];
            for (unsigned k = 0; k < depth; k++) {
                want = fma(a[row][k], b[k][col], want);
            }
            cr_expect_eq(x[(row % 8 * 4 + col / 2) * 16 + 12 + row / 8 * 2 + col % 2], want,
                         "%s: %u, %u", shape, row, col);
        }
    }
    sim_close(e);
}

Test(sim_mma, f64) {
#define SUM "{%d30, %d31, %d32, %d33}"
    check_f64("m8n8k4", 8, 4, "{%d30, %d31}, {%d10}, {%d20}, {%d30, %d31}");
    check_f64("m16n8k4", 16, 4, SUM ", {%d10, %d11}, {%d20}, " SUM);
    check_f64("m16n8k8", 16, 8, SUM ", {%d10, %d11, %d12, %d13}, {%d20, %d21}, " SUM);
    check_f64("m16n8k16", 16, 16,
              SUM ", {%d10, %d11, %d12, %d13, %d14, %d15, %d16, %d17}, {%d20, %d21, %d22, "
                  "%d23}, " SUM);
}

Test(sim_mma, bytes_of_8_rows) {
    sim_env *e = sim_open();
    for (unsigned l = 0; l < 32; l++) {
        for (unsigned b = 0; b < 4; b++) { // A: row l / 4, B: column l / 4; k = 4 (l % 4) + b
            e->word[l] |= (uint64_t)(uint8_t)(l * 7 + b * 5) << (8 * b);
            e->word[l] |= (uint64_t)(uint8_t)(l * 3 - b * 11) << (8 * b + 32);
        }
    }
    cr_assert(sim_run(e, 32,
                      "ld.global.v2.b32 {%r1, %r2}, [%at]; mov.b32 %r3, 100;\n"
                      "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%r4, %r5}, {%r1}, {%r2}, "
                      "{%r3, %r3};\nst.global.v2.b32 [%at+4096], {%r4, %r5};"),
              "%s", sim_fault(e));
    const int32_t *d = (const int32_t *)(const void *)&e->word[512];
    for (unsigned row = 0; row < 8; row++) {
        for (unsigned col = 0; col < 8; col++) {
            int32_t want = 100;
            for (unsigned k = 0; k < 16; k++) {
                uint64_t x = e->word[row * 4 + k / 4], y = e->word[col * 4 + k / 4];
                want += (int32_t)(x >> (8 * (k % 4)) & 0xff) *
                        (int8_t)(uint8_t)(y >> (8 * (k % 4) + 32));
            }
            cr_expect_eq(d[(row * 4 + col / 2) * 2 + col % 2], want, "%u, %u", row, col);
        }
    }
    sim_close(e);
}

// A and B as they lie in memory, row by row, through ldmatrix: the fragments fit each other.
Test(sim_mma, with_ldmatrix) {
    sim_env *e = sim_open();
    uint16_t *h = (uint16_t *)(void *)e->word;
    int want[M][N] = {{0}}, a[M][16], b[16][N];
    for (unsigned k = 0; k < 384; k++) { // A: 16 x 16, then B: 16 x 8
        int x = (int)(k * 37 % 11) - 5;
        h[k] = (uint16_t)tk_const_i64(TK_F16, x).bits;
        *(k < 256 ? &a[k / 16][k % 16] : &b[(k - 256) / 8][k % 8]) = x;
    }
    for (unsigned k = 0; k < 16 * M * N; k++) {
        want[k / 128][k / 16 % 8] += a[k / 128][k % 16] * b[k % 16][k / 16 % 8];
    }
    cr_assert(
        sim_run_shared(
            e, 32, ".shared .align 16 .b8 tile[768];",
            "mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1; mad.wide.u32 %d1, %t, 16, %base;\n"
            "cp.async.cg.shared.global [%r2], [%d1], 16;\n"
            "setp.lt.u32 %p1, %t, 16;\n"
            "@%p1 cp.async.cg.shared.global [%r2+512], [%d1+512], 16;\n"
            "cp.async.wait_all; bar.warp.sync -1;\n"
            "and.b32 %r3, %t, 15; shr.u32 %r4, %t, 4; shl.b32 %r4, %r4, 4;\n"
            "mad.lo.u32 %r5, %r3, 32, %r4; add.u32 %r5, %r5, %r1;\n"
            "mad.lo.u32 %r6, %r3, 16, %r1;\n"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r5];\n"
            "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r6+512];\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r20, %r21, %r22, %r23},\n"
            "{%r10, %r11, %r12, %r13}, {%r14, %r15}, {0f00000000, 0f00000000, 0f00000000, "
            "0f00000000};\n"
            "add.s64 %d1, %d1, 1024; st.global.v4.b32 [%d1], {%r20, %r21, %r22, %r23};"),
        "%s", sim_fault(e));
    const float *d = (const float *)(const void *)&e->word[128];
    for (unsigned l = 0; l < 32; l++) {
        for (unsigned r = 0; r < 4; r++) {
            cr_expect_eq(d[4 * l + r], (float)want[l / 4 + 8 * (r / 2)][l % 4 * 2 + r % 2],
                         "lane %u, register %u: %g", l, r, (double)d[4 * l + r]);
        }
    }
    sim_close(e);
}

Test(sim_mma, refused) {
    static const char *const bad[] = {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, "
        "%r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
        "{%r8}, "
        "{%r0, %r1, %r2, %r3};",
    };
    for (unsigned k = 0; k < 2; k++) {
        sim_env *e = sim_open();
        cr_expect(!sim_read(e, sim_body(e, "", bad[k])));
        cr_expect(strstr(e->error.text, "suffixes do not go together") != NULL, "%s",
                  e->error.text);
        sim_close(e);
    }
}
