// SPDX-License-Identifier: Apache-2.0
// The simulator's arithmetic: against the language's scalar operations, and against values worked
// out by hand where the language has no such operation.
#include "lang/num.h"
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef struct row {
    const char *inst;
    tk_numop op;
    tk_dtype type;
    char width; // of the registers
} row;

static const row rows[] = {
    {"add.s32 %x, %a, %b;", TK_NUM_ADD, TK_I32, 'r'},
    {"add.u16 %x, %a, %b;", TK_NUM_ADD, TK_U16, 'h'},
    {"sub.s64 %x, %a, %b;", TK_NUM_SUB, TK_I64, 'd'},
    {"mul.lo.s32 %x, %a, %b;", TK_NUM_MUL, TK_I32, 'r'},
    {"mul.lo.u64 %x, %a, %b;", TK_NUM_MUL, TK_U64, 'd'},
    {"mul.lo.s16 %x, %a, %b;", TK_NUM_MUL, TK_I16, 'h'},
    {"min.s32 %x, %a, %b;", TK_NUM_MIN, TK_I32, 'r'},
    {"max.u32 %x, %a, %b;", TK_NUM_MAX, TK_U32, 'r'},
    {"min.s64 %x, %a, %b;", TK_NUM_MIN, TK_I64, 'd'},
    {"max.s16 %x, %a, %b;", TK_NUM_MAX, TK_I16, 'h'},
    {"and.b32 %x, %a, %b;", TK_NUM_AND, TK_U32, 'r'},
    {"or.b64 %x, %a, %b;", TK_NUM_OR, TK_U64, 'd'},
    {"xor.b16 %x, %a, %b;", TK_NUM_XOR, TK_U16, 'h'},
    {"popc.b32 %x, %a;", TK_NUM_POPCOUNT, TK_U32, 'r'},
    {"clz.b32 %x, %a;", TK_NUM_CLZ, TK_U32, 'r'},
    {"neg.s32 %x, %a;", TK_NUM_NEG, TK_I32, 'r'},
    {"abs.s64 %x, %a;", TK_NUM_ABS, TK_I64, 'd'},
    {"add.rn.f32 %x, %a, %b;", TK_NUM_ADD, TK_F32, 'r'},
    {"sub.rn.f32 %x, %a, %b;", TK_NUM_SUB, TK_F32, 'r'},
    {"mul.rn.f32 %x, %a, %b;", TK_NUM_MUL, TK_F32, 'r'},
    {"div.rn.f32 %x, %a, %b;", TK_NUM_DIV, TK_F32, 'r'},
    {"fma.rn.f32 %x, %a, %b, %c;", TK_NUM_FMA, TK_F32, 'r'},
    {"sqrt.rn.f32 %x, %a;", TK_NUM_SQRT, TK_F32, 'r'},
    {"add.rn.f64 %x, %a, %b;", TK_NUM_ADD, TK_F64, 'd'},
    {"mul.rn.f64 %x, %a, %b;", TK_NUM_MUL, TK_F64, 'd'},
    {"div.rn.f64 %x, %a, %b;", TK_NUM_DIV, TK_F64, 'd'},
    {"fma.rn.f64 %x, %a, %b, %c;", TK_NUM_FMA, TK_F64, 'd'},
    {"add.rn.f16 %x, %a, %b;", TK_NUM_ADD, TK_F16, 'h'},
    {"mul.rn.f16 %x, %a, %b;", TK_NUM_MUL, TK_F16, 'h'},
    {"fma.rn.f16 %x, %a, %b, %c;", TK_NUM_FMA, TK_F16, 'h'},
    {"add.rn.bf16 %x, %a, %b;", TK_NUM_ADD, TK_BF16, 'h'},
    {"fma.rn.bf16 %x, %a, %b, %c;", TK_NUM_FMA, TK_BF16, 'h'},
    {"min.f32 %x, %a, %b;", TK_NUM_FMIN, TK_F32, 'r'},
    {"max.f32 %x, %a, %b;", TK_NUM_FMAX, TK_F32, 'r'},
    {"max.NaN.f32 %x, %a, %b;", TK_NUM_MAX, TK_F32, 'r'},
    {"min.NaN.f16 %x, %a, %b;", TK_NUM_MIN, TK_F16, 'h'},
    {"min.f64 %x, %a, %b;", TK_NUM_FMIN, TK_F64, 'd'},
    {"neg.f32 %x, %a;", TK_NUM_NEG, TK_F32, 'r'},
    {"abs.bf16 %x, %a;", TK_NUM_ABS, TK_BF16, 'h'},
};

// Bits of many kinds: small, large, special, random.
static uint64_t sample(unsigned k, tk_dtype t) {
    unsigned bits = tk_dtype_bits(t);
    uint64_t x = (uint64_t)(k + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 32;
    if (k % 5 == 0) {
        x = tk_const_f64(t, (double)(int)(k % 37) - 18).bits;
    } else if (k % 7 == 0) {
        x = UINT64_C(1) << (k % bits);
    } else if (k % 11 == 0) {
        x = ~UINT64_C(0) >> (k % bits);
    } else if (k % 13 == 0 && tk_dtype_is_float(t)) {
        const double special[] = {0.0, -0.0, INFINITY, -INFINITY, (double)NAN, 1e-40};
        x = tk_const_f64(t, special[k / 13 % 6]).bits;
    }
    return bits < 64 ? x & ((UINT64_C(1) << bits) - 1) : x;
}

// Many threads, each with its own operands.
static void compare_row(const row *r) {
    enum { N = 1024 };
    sim_env *e = sim_open();
    const char *t = r->width == 'h' ? "b16" : r->width == 'd' ? "b64" : "b32";
    tk_dtype result = tk_numop_result(r->op, r->type);
    for (unsigned k = 0; k < N; k++) {
        e->word[k] = sample(k, r->type);
        e->word[N + k] = sample(3 * k + 7, r->type);
        e->word[2 * N + k] = sample(5 * k + 1, r->type);
    }
    cr_assert(
        sim_run(e, N,
                tk_format(&e->arena,
                          ".reg .%s %%a, %%b, %%c, %%x;\n"
                          "ld.global.%s %%a, [%%at]; ld.global.%s %%b, [%%at+8192];\n"
                          "ld.global.%s %%c, [%%at+16384];\n%s\nst.global.%s [%%at+24576], %%x;",
                          t, t, t, t, r->inst, t)),
        "%s: %s", r->inst, sim_fault(e));
    for (unsigned k = 0; k < N; k++) {
        tk_const arg[3] = {
            {r->type, e->word[k]}, {r->type, e->word[N + k]}, {r->type, e->word[2 * N + k]}};
        tk_const want = tk_num_eval(r->op, r->type, arg), got = {result, 0};
        unsigned bits = tk_dtype_bits(result);
        got.bits =
            bits < 64 ? e->word[3 * N + k] & ((UINT64_C(1) << bits) - 1) : e->word[3 * N + k];
        bool same = got.bits == want.bits || (tk_const_is_nan(got) && tk_const_is_nan(want));
        cr_assert(same, "%s of %llx, %llx, %llx: %llx, not %llx", r->inst,
                  (unsigned long long)arg[0].bits, (unsigned long long)arg[1].bits,
                  (unsigned long long)arg[2].bits, (unsigned long long)got.bits,
                  (unsigned long long)want.bits);
    }
    sim_close(e);
}

Test(sim_arith, as_the_language) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        compare_row(&rows[k]);
    }
}

// Conversions as the language casts. cvt.rzi saturates, integers wrap.
Test(sim_arith, conversions_as_the_language) {
    static const struct {
        const char *inst;
        tk_dtype from, to;
        char width_from, width_to;
        bool skip_nan;
    } cvt[] = {
        {"cvt.rzi.s32.f32 %x, %a;", TK_F32, TK_I32, 'r', 'r', false},
        {"cvt.rzi.u32.f32 %x, %a;", TK_F32, TK_U32, 'r', 'r', false},
        {"cvt.rzi.s16.f32 %x, %a;", TK_F32, TK_I16, 'r', 'h', false},
        {"cvt.rzi.s64.f32 %x, %a;", TK_F32, TK_I64, 'r', 'd', true},
        {"cvt.rzi.u64.f64 %x, %a;", TK_F64, TK_U64, 'd', 'd', true},
        {"cvt.rzi.s32.f64 %x, %a;", TK_F64, TK_I32, 'd', 'r', true},
        {"cvt.rn.f32.s32 %x, %a;", TK_I32, TK_F32, 'r', 'r', false},
        {"cvt.rn.f32.u64 %x, %a;", TK_U64, TK_F32, 'd', 'r', false},
        {"cvt.rn.f16.s64 %x, %a;", TK_I64, TK_F16, 'd', 'h', false},
        {"cvt.rn.f64.u64 %x, %a;", TK_U64, TK_F64, 'd', 'd', false},
        {"cvt.rn.f16.f32 %x, %a;", TK_F32, TK_F16, 'r', 'h', false},
        {"cvt.rn.bf16.f32 %x, %a;", TK_F32, TK_BF16, 'r', 'h', false},
        {"cvt.f32.f16 %x, %a;", TK_F16, TK_F32, 'h', 'r', false},
        {"cvt.f32.bf16 %x, %a;", TK_BF16, TK_F32, 'h', 'r', false},
        {"cvt.rn.f32.f64 %x, %a;", TK_F64, TK_F32, 'd', 'r', false},
        {"cvt.f64.f32 %x, %a;", TK_F32, TK_F64, 'r', 'd', false},
        {"cvt.rn.f16.f64 %x, %a;", TK_F64, TK_F16, 'd', 'h', false},
        {"cvt.s64.s32 %x, %a;", TK_I32, TK_I64, 'r', 'd', false},
        {"cvt.u64.u32 %x, %a;", TK_U32, TK_U64, 'r', 'd', false},
        {"cvt.u16.u32 %x, %a;", TK_U32, TK_U16, 'r', 'h', false},
    };
    enum { N = 1024 };
    for (size_t r = 0; r < sizeof cvt / sizeof *cvt; r++) {
        sim_env *e = sim_open();
        const char *in = cvt[r].width_from == 'h'   ? "b16"
                         : cvt[r].width_from == 'd' ? "b64"
                                                    : "b32";
        const char *out = cvt[r].width_to == 'h' ? "b16" : cvt[r].width_to == 'd' ? "b64" : "b32";
        for (unsigned k = 0; k < N; k++) {
            e->word[k] = sample(k, cvt[r].from);
        }
        cr_assert(sim_run(e, N,
                          tk_format(&e->arena,
                                    ".reg .%s %%a; .reg .%s %%x; ld.global.%s %%a, [%%at];\n%s\n"
                                    "st.global.%s [%%at+8192], %%x;",
                                    in, out, in, cvt[r].inst, out)),
                  "%s: %s", cvt[r].inst, sim_fault(e));
        unsigned bits = tk_dtype_bits(cvt[r].to);
        for (unsigned k = 0; k < N; k++) {
            tk_const from = {cvt[r].from, e->word[k]}, want = tk_cast(from, cvt[r].to);
            tk_const got = {cvt[r].to, e->word[N + k]};
            got.bits = bits < 64 ? got.bits & ((UINT64_C(1) << bits) - 1) : got.bits;
            bool same = got.bits == want.bits || (tk_const_is_nan(got) && tk_const_is_nan(want)) ||
                        (cvt[r].skip_nan && tk_const_is_nan(from));
            cr_assert(same, "%s of %llx: %llx, not %llx", cvt[r].inst,
                      (unsigned long long)from.bits, (unsigned long long)got.bits,
                      (unsigned long long)want.bits);
        }
        sim_close(e);
    }
}

// inst, widths of result and sources (h, r, d, p), a, b, c, result
typedef struct exact {
    const char *inst;
    char result, source;
    uint64_t a, b, c, want;
} exact;

static const exact integers[] = {
    {"mul.wide.s32 %x, %a, %b;", 'd', 'r', 0xffffffff, 3, 0, UINT64_C(0xfffffffffffffffd)},
    {"mul.wide.u16 %x, %a, %b;", 'r', 'h', 0xffff, 0xffff, 0, 0xfffe0001},
    {"mul.hi.u32 %x, %a, %b;", 'r', 'r', 0xffffffff, 0xffffffff, 0, 0xfffffffe},
    {"mul.hi.s64 %x, %a, %b;", 'd', 'd', UINT64_MAX, 2, 0, UINT64_MAX},
    {"mul.hi.u64 %x, %a, %b;", 'd', 'd', UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1},
    {"mad.lo.s32 %x, %a, %b, %c;", 'r', 'r', 7, 6, 0xffffffff, 41},
    {"mad.hi.u32 %x, %a, %b, %c;", 'r', 'r', 0x80000000, 4, 5, 7},
    {"sad.s32 %x, %a, %b, %c;", 'r', 'r', 0xfffffffe, 3, 10, 15},
    {"div.s32 %x, %a, %b;", 'r', 'r', 0xfffffff9, 2, 0, 0xfffffffd},
    {"rem.s32 %x, %a, %b;", 'r', 'r', 0xfffffff9, 2, 0, 0xffffffff},
    {"div.u64 %x, %a, %b;", 'd', 'd', UINT64_MAX, 10, 0, UINT64_C(1844674407370955161)},
    {"add.sat.s32 %x, %a, %b;", 'r', 'r', 0x7fffffff, 1, 0, 0x7fffffff},
    {"sub.sat.s32 %x, %a, %b;", 'r', 'r', 0x80000000, 1, 0, 0x80000000},
    {"bfe.u32 %x, %a, 4, 8;", 'r', 'r', 0xabcd1234, 0, 0, 0x23},
    {"bfe.s32 %x, %a, 28, 4;", 'r', 'r', 0xabcd1234, 0, 0, 0xfffffffa},
    {"bfe.s32 %x, %a, 30, 8;", 'r', 'r', 0x80000000, 0, 0, 0xfffffffe},
    {"bfe.u32 %x, %a, 40, 8;", 'r', 'r', 0xffffffff, 0, 0, 0},
    {"bfi.b32 %x, %a, %b, 8, 8;", 'r', 'r', 0xff, 0x12345678, 0, 0x1234ff78},
    {"bfi.b64 %x, %a, %b, 60, 8;", 'd', 'd', 5, 0, 0, UINT64_C(0x5000000000000000)},
    {"bfind.u32 %x, %a;", 'r', 'r', 0x00010000, 0, 0, 16},
    {"bfind.u32 %x, %a;", 'r', 'r', 0, 0, 0, 0xffffffff},
    {"bfind.s32 %x, %a;", 'r', 'r', 0xffffff00, 0, 0, 7},
    {"bfind.shiftamt.u32 %x, %a;", 'r', 'r', 0x00010000, 0, 0, 15},
    {"brev.b32 %x, %a;", 'r', 'r', 0x1, 0, 0, 0x80000000},
    {"popc.b64 %x, %a;", 'r', 'd', UINT64_MAX, 0, 0, 64},
    {"clz.b64 %x, %a;", 'r', 'd', 0, 0, 0, 64},
    {"prmt.b32 %x, %a, %b, %c;", 'r', 'r', 0x33221100, 0x77665544, 0x7421, 0x77442211},
    {"prmt.b32 %x, %a, %b, 0x8888;", 'r', 'r', 0x80, 0, 0, 0xffffffff},
    {"prmt.b32.rc8 %x, %a, %b, 2;", 'r', 'r', 0x33221100, 0, 0, 0x22222222},
    {"lop3.b32 %x, %a, %b, %c, 0x96;", 'r', 'r', 0xf0f0, 0xff00, 0x00ff, 0x0f0f},
    {"lop3.b32 %x, %a, %b, %c, 0xe8;", 'r', 'r', 0xff00, 0xf0f0, 0xcccc, 0xfcc0},
    {"shf.l.wrap.b32 %x, %a, %b, 8;", 'r', 'r', 0x12345678, 0xabcdef01, 0, 0xcdef0112},
    {"shf.r.wrap.b32 %x, %a, %b, 8;", 'r', 'r', 0x12345678, 0xabcdef01, 0, 0x01123456},
    {"shf.r.clamp.b32 %x, %a, %b, 40;", 'r', 'r', 1, 7, 0, 7},
    {"shf.l.clamp.b32 %x, %a, %b, 40;", 'r', 'r', 9, 7, 0, 9},
    {"shl.b32 %x, %a, 32;", 'r', 'r', 1, 0, 0, 0},
    {"shl.b16 %x, %a, 15;", 'h', 'h', 3, 0, 0, 0x8000},
    {"shr.s32 %x, %a, 99;", 'r', 'r', 0x80000000, 0, 0, 0xffffffff},
    {"shr.u64 %x, %a, 63;", 'd', 'd', UINT64_MAX, 0, 0, 1},
    {"shr.s16 %x, %a, 4;", 'h', 'h', 0x8000, 0, 0, 0xf800},
    {"not.b16 %x, %a;", 'h', 'h', 0xff, 0, 0, 0xff00},
    {"cnot.b32 %x, %a;", 'r', 'r', 0, 0, 0, 1},
    {"dp4a.u32.s32 %x, %a, %b, %c;", 'r', 'r', 0x02020202, 0xffffffff, 100, 92},
    {"dp2a.lo.s32.u32 %x, %a, %b, %c;", 'r', 'r', 0xffff0002, 0x0304, 1, 6},
    {"mul24.lo.u32 %x, %a, %b;", 'r', 'r', 0xff000003, 5, 0, 15},
    {"fns.b32 %x, %a, 0, 2;", 'r', 'r', 0x28, 0, 0, 5},
    {"bmsk.clamp.b32 %x, 4, 8;", 'r', 'r', 0, 0, 0, 0xff0},
    {"szext.wrap.s32 %x, %a, 8;", 'r', 'r', 0x1ff, 0, 0, 0xffffffff},
    {"add.cc.u32 %x, %a, %b; addc.u32 %x, %c, 0;", 'r', 'r', 0xffffffff, 1, 4, 5},
    {"sub.cc.u32 %x, %a, %b; subc.u32 %x, %c, 0;", 'r', 'r', 0, 1, 4, 3},
    {"min.s16x2 %x, %a, %b;", 'r', 'r', 0xffff0001, 0x00010002, 0, 0xffff0001},
    {"max.relu.s16x2 %x, %a, %b;", 'r', 'r', 0xffffffff, 0xfffe0003, 0, 0x00000003},
    {"add.u16x2 %x, %a, %b;", 'r', 'r', 0xffffffff, 0x00010001, 0, 0},
    {"abs.s16 %x, %a;", 'h', 'h', 0x8000, 0, 0, 0x8000},
    {"selp.b32 %x, %a, %b, %q;", 'r', 'r', 5, 6, 0, 6},
    {"slct.u32.s32 %x, %a, %b, %c;", 'r', 'r', 5, 6, 0xffffffff, 6},
    {"mov.b32 %x, {%a, %b};", 'r', 'h', 0x1234, 0x5678, 0, 0x56781234},
    {".reg .b32 %u, %v; mov.b64 {%u, %v}, %a; cvt.u64.u32 %x, %v;", 'd', 'd',
     UINT64_C(0xaabbccdd11223344), 0, 0, 0xaabbccdd},
    {"cvt.sat.u8.s32 %x, %a;", 'r', 'r', 0xffffffff, 0, 0, 0},
    {"cvt.sat.s8.s32 %x, %a;", 'r', 'r', 200, 0, 0, 127},
    {"cvt.s32.s8 %x, %a;", 'r', 'r', 0x180, 0, 0, 0xffffff80},
    {"cvt.u32.u8 %x, %a;", 'r', 'r', 0x180, 0, 0, 0x80},
    {"cvt.pack.sat.s16.s32 %x, %a, %b;", 'r', 'r', 0x12345, 0xffffffff, 0, 0x7fffffff},
};

static const exact floats[] = {
    {"add.rz.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x33800001, 0, 0x3f800000},
    {"add.rp.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x00000001, 0, 0x3f800001},
    {"add.rm.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x80000001, 0, 0x3f7fffff},
    {"sub.rm.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x3f800000, 0, 0x80000000},
    {"mul.rz.f32 %x, %a, %b;", 'r', 'r', 0x3f800001, 0x3f800001, 0, 0x3f800002},
    {"mul.rp.f32 %x, %a, %b;", 'r', 'r', 0x3f800001, 0x3f800001, 0, 0x3f800003},
    {"fma.rp.f32 %x, %a, %b, %c;", 'r', 'r', 0x3f800001, 0x3f800001, 0x00000001, 0x3f800003},
    {"div.rz.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x40400000, 0, 0x3eaaaaaa},
    {"div.rp.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x40400000, 0, 0x3eaaaaab},
    {"div.rm.f32 %x, %a, %b;", 'r', 'r', 0xbf800000, 0x40400000, 0, 0xbeaaaaab},
    {"sqrt.rm.f32 %x, %a;", 'r', 'r', 0x40000000, 0, 0, 0x3fb504f3},
    {"sqrt.rp.f32 %x, %a;", 'r', 'r', 0x40000000, 0, 0, 0x3fb504f4},
    {"rcp.rn.f32 %x, %a;", 'r', 'r', 0x40400000, 0, 0, 0x3eaaaaab},
    {"add.ftz.f32 %x, %a, %b;", 'r', 'r', 0x00000001, 0x80000000, 0, 0},
    {"mul.rn.ftz.f32 %x, %a, %b;", 'r', 'r', 0x00800000, 0x3f000000, 0, 0},
    {"add.sat.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x3f800000, 0, 0x3f800000},
    {"mul.sat.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0xbf800000, 0, 0},
    {"fma.rn.sat.f32 %x, %a, %b, %c;", 'r', 'r', 0x7fc00000, 0, 0, 0},
    {"add.rz.f64 %x, %a, %b;", 'd', 'd', UINT64_C(0x3ff0000000000000), UINT64_C(0x8000000000000001),
     0, UINT64_C(0x3fefffffffffffff)},
    {"rcp.rp.f64 %x, %a;", 'd', 'd', UINT64_C(0x4008000000000000), 0, 0,
     UINT64_C(0x3fd5555555555556)},
    {"add.rn.f32 %x, %a, %b;", 'r', 'r', 0x7f800000, 0xff800000, 0, 0x7fffffff},
    {"min.f32 %x, %a, %b;", 'r', 'r', 0x80000000, 0x00000000, 0, 0x80000000},
    {"min.xorsign.abs.f32 %x, %a, %b;", 'r', 'r', 0xc0000000, 0x3f800000, 0, 0xbf800000},
    {"copysign.f32 %x, %a, %b;", 'r', 'r', 0x80000000, 0x3f800000, 0, 0xbf800000},
    {"testp.subnormal.f32 %p9, %a;", 'p', 'r', 1, 0, 0, 1},
    {"testp.notanumber.f64 %p9, %a;", 'p', 'd', UINT64_C(0x7ff0000000000000), 0, 0, 0},
    {"setp.lt.f32 %p9, %a, %b;", 'p', 'r', 0x7fc00000, 0, 0, 0},
    {"setp.ltu.f32 %p9, %a, %b;", 'p', 'r', 0x7fc00000, 0, 0, 1},
    {"setp.ne.f32 %p9, %a, %b;", 'p', 'r', 0x7fc00000, 0, 0, 0},
    {"setp.neu.f32 %p9, %a, %b;", 'p', 'r', 0x7fc00000, 0, 0, 1},
    {"setp.num.f32 %p9, %a, %b;", 'p', 'r', 0x3f800000, 0, 0, 1},
    {"setp.eq.f32 %p9, %a, %b;", 'p', 'r', 0x80000000, 0, 0, 1},
    {"setp.eq.ftz.f32 %p9, %a, %b;", 'p', 'r', 1, 0, 0, 1},
    {"setp.lo.u32 %p9, %a, %b;", 'p', 'r', 1, 0xffffffff, 0, 1},
    {"setp.lt.s32 %p9, %a, %b;", 'p', 'r', 1, 0xffffffff, 0, 0},
    {"setp.gt.and.s32 %p9, %a, %b, %q;", 'p', 'r', 5, 3, 0, 0},
    {"setp.gt.or.s32 %p9, %a, %b, !%q;", 'p', 'r', 1, 3, 0, 1},
    {"setp.lt.xor.u16 %p9|%p8, %a, %b, %q;", 'p', 'h', 1, 3, 1, 0},
    {"set.gt.u32.s32 %x, %a, %b;", 'r', 'r', 5, 3, 0, 0xffffffff},
    {"set.gt.u16.f16 %x, %a, %b;", 'h', 'h', 0x4000, 0x3c00, 0, 0xffff},
    {"set.gt.bf16.f16 %x, %a, %b;", 'h', 'h', 0x4000, 0x3c00, 0, 0x3f80},
    {"set.gt.u32.f16x2 %x, %a, %b;", 'r', 'r', 0x3c004000, 0x3c003c00, 0, 0xffff},
    {"set.ge.s32.bf16x2 %x, %a, %b;", 'r', 'r', 0x3f803f80, 0x40003f80, 0, 0xffff},
    {"set.ge.u32.bf16x2 %x, %a, %b;", 'r', 'r', 0x40003f80, 0x3f804000, 0, 0xffff0000},
    {"set.gt.f16x2.f16x2 %x, %a, %b;", 'r', 'r', 0x3c004000, 0x3c003c00, 0, 0x3c00},
    {"set.gt.f32.s32 %x, %a, %b;", 'r', 'r', 5, 3, 0, 0x3f800000},
    {"add.rn.f16x2 %x, %a, %b;", 'r', 'r', 0x3c004000, 0x3c003c00, 0, 0x40004200},
    {"fma.rn.relu.bf16x2 %x, %a, %b, %c;", 'r', 'r', 0x3f80bf80, 0x40004000, 0, 0x40000000},
    {"max.bf16x2 %x, %a, %b;", 'r', 'r', 0x3f80bf80, 0x40000000, 0, 0x40000000},
    {"cvt.rn.f16x2.f32 %x, %a, %b;", 'r', 'r', 0x3f800000, 0x40000000, 0, 0x3c004000},
    {"cvt.rz.bf16x2.f32 %x, %a, %b;", 'r', 'r', 0x3f80ffff, 0x40000000, 0, 0x3f804000},
    {"cvt.rn.relu.f16.f32 %x, %a;", 'h', 'r', 0xbf800000, 0, 0, 0},
    {"cvt.rn.satfinite.e4m3x2.f32 %x, %a, %b;", 'h', 'r', 0x7f800000, 0x3f800000, 0, 0x7e38},
    {"cvt.rn.satfinite.e5m2x2.f32 %x, %a, %b;", 'h', 'r', 0xff800000, 0x3f800000, 0, 0xfb3c},
    {"cvt.rn.satfinite.e4m3x2.f16x2 %x, %a;", 'h', 'r', 0x3c004000, 0, 0, 0x3840},
    {"cvt.rn.f16x2.e4m3x2 %x, %a;", 'r', 'h', 0x3840, 0, 0, 0x3c004000},
    {"cvt.rna.tf32.f32 %x, %a;", 'r', 'r', 0x3f801000, 0, 0, 0x3f802000},
    {"cvt.rn.tf32.f32 %x, %a;", 'r', 'r', 0x3f801000, 0, 0, 0x3f800000},
    {"cvt.rni.s32.f32 %x, %a;", 'r', 'r', 0x40200000, 0, 0, 2},
    {"cvt.rpi.s32.f32 %x, %a;", 'r', 'r', 0x40200000, 0, 0, 3},
    {"cvt.rmi.s32.f32 %x, %a;", 'r', 'r', 0xc0200000, 0, 0, 0xfffffffd},
    {"cvt.rzi.s32.f32 %x, %a;", 'r', 'r', 0x7f800000, 0, 0, 0x7fffffff},
    {"cvt.rzi.s64.f32 %x, %a;", 'd', 'r', 0x7fc00000, 0, 0, UINT64_C(0x8000000000000000)},
    {"cvt.rzi.s32.f32 %x, %a;", 'r', 'r', 0x7fc00000, 0, 0, 0},
    {"cvt.rni.f32.f32 %x, %a;", 'r', 'r', 0x40200000, 0, 0, 0x40000000},
    {"cvt.sat.f32.f32 %x, %a;", 'r', 'r', 0x40200000, 0, 0, 0x3f800000},
    {"cvt.rz.f16.f32 %x, %a;", 'h', 'r', 0x7f7fffff, 0, 0, 0x7bff},
    {"cvt.rp.f32.s32 %x, %a;", 'r', 'r', 0x01000001, 0, 0, 0x4b800001},
    {"cvt.rz.f64.s64 %x, %a;", 'd', 'd', INT64_MAX, 0, 0, UINT64_C(0x43dfffffffffffff)},
    {"ex2.approx.f32 %x, %a;", 'r', 'r', 0x40400000, 0, 0, 0x41000000},
    {"ex2.approx.ftz.f32 %x, %a;", 'r', 'r', 0xc3000000, 0, 0, 0},
    {"lg2.approx.f32 %x, %a;", 'r', 'r', 0x41000000, 0, 0, 0x40400000},
    {"rsqrt.approx.f32 %x, %a;", 'r', 'r', 0x80000000, 0, 0, 0xff800000},
    {"rcp.approx.f32 %x, %a;", 'r', 'r', 0x40000000, 0, 0, 0x3f000000},
    {"tanh.approx.f32 %x, %a;", 'r', 'r', 0x7f800000, 0, 0, 0x3f800000},
    {"div.full.f32 %x, %a, %b;", 'r', 'r', 0x40400000, 0x40000000, 0, 0x3fc00000},
};

static void check_exact(const exact *x, size_t n) {
    for (size_t k = 0; k < n; k++) {
        sim_env *e = sim_open();
        uint64_t got = sim_one(e, x[k].inst, x[k].result, x[k].source, x[k].a, x[k].b, x[k].c);
        cr_expect_eq(got, x[k].want, "%s of 0x%llx, 0x%llx, 0x%llx: 0x%llx, not 0x%llx", x[k].inst,
                     (unsigned long long)x[k].a, (unsigned long long)x[k].b,
                     (unsigned long long)x[k].c, (unsigned long long)got,
                     (unsigned long long)x[k].want);
        sim_close(e);
    }
}

Test(sim_arith, integers_by_hand) { check_exact(integers, sizeof integers / sizeof *integers); }
Test(sim_arith, floats_by_hand) { check_exact(floats, sizeof floats / sizeof *floats); }
