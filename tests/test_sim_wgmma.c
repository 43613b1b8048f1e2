// SPDX-License-Identifier: Apache-2.0
// The simulator's wgmma: all types, shapes and layouts against sums in the language's arithmetic.
//
// The model is written from the memory's side: it walks the bytes of a tile in the order in which
// they lie and says which element is there; the swizzles are tables. Elements find their registers
// by row and column, not rows by registers.
#include "lang/num.h"
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    M = 64,
    MAX_N = 256,
    MAX_K = 32,
    THREADS = 128,
    IMAGE = 160 << 10, // of shared memory, copied to it at the start
    REGISTERS = IMAGE, // then, for each thread, 128 of the accumulator and 4 of A
    PER_THREAD = 132 * 4,
    BYTES = IMAGE + THREADS * PER_THREAD
};

typedef struct form {
    const char *d, *a, *b;
    tk_dtype td, ta, tb;
    bool tf32;
} form;

static const form forms[] = {
    {"f32", "f16", "f16", TK_F32, TK_F16, TK_F16, false},
    {"f16", "f16", "f16", TK_F16, TK_F16, TK_F16, false},
    {"f32", "bf16", "bf16", TK_F32, TK_BF16, TK_BF16, false},
    {"f32", "tf32", "tf32", TK_F32, TK_F32, TK_F32, true},
    {"f32", "e4m3", "e4m3", TK_F32, TK_F8E4M3, TK_F8E4M3, false},
    {"f32", "e4m3", "e5m2", TK_F32, TK_F8E4M3, TK_F8E5M2, false},
    {"f32", "e5m2", "e4m3", TK_F32, TK_F8E5M2, TK_F8E4M3, false},
    {"f16", "e5m2", "e5m2", TK_F16, TK_F8E5M2, TK_F8E5M2, false},
    {"s32", "s8", "s8", TK_I32, TK_I8, TK_I8, false},
    {"s32", "s8", "u8", TK_I32, TK_I8, TK_U8, false},
    {"s32", "u8", "s8", TK_I32, TK_U8, TK_I8, false},
    {"s32", "u8", "u8", TK_I32, TK_U8, TK_U8, false},
};
enum { FORMS = sizeof forms / sizeof *forms };

typedef struct tile {
    uint32_t begin; // offset in the image
    uint32_t leading, stride, base, step;
    unsigned swizzle; // as in the descriptor
    bool mn_major;
} tile;

typedef struct problem {
    const form *f;
    unsigned n, k;
    bool registers, adds, literal, minus_a, minus_b, exact;
    tile a, b;
    tk_const x[M][MAX_K], y[MAX_N][MAX_K], c[M][MAX_N];
    unsigned char bytes[BYTES];
} problem;

static uint64_t state;
static uint64_t next(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

static unsigned size_of(tk_dtype t) { return (unsigned)tk_dtype_size(t); }

static tk_const value(tk_dtype t, bool exact) {
    int64_t small = (int64_t)(next() % 9) - (t == TK_U8 ? 0 : 4);
    bool whole = exact || t == TK_I8 || t == TK_U8 || t == TK_I32;
    return tk_const_f64(t, whole ? (double)small : (double)next() * 0x1p-29 - 2);
}

// ---- Tiles in memory

static unsigned width_of(const tile *t) {
    static const unsigned width[] = {16, 128, 64, 32};
    return width[t->swizzle];
}

// By which number the pieces of a line of an atom are exchanged.
static unsigned exchange(unsigned width, unsigned line) {
    static const unsigned char of_128[] = {0, 1, 2, 3, 4, 5, 6, 7},
                               of_64[] = {0, 0, 1, 1, 2, 2, 3, 3},
                               of_32[] = {0, 0, 0, 0, 1, 1, 1, 1};
    return width == 128 ? of_128[line] : width == 64 ? of_64[line] : width == 32 ? of_32[line] : 0;
}

typedef tk_const row_of[MAX_K];

static void put(unsigned char *at, const row_of *m, unsigned row, unsigned rows, unsigned k) {
    if (row < rows) {
        tk_const_store(m[row][k], at);
    }
}

// One atom: 8 lines of pieces; which rows and k it holds, by its number along both.
static void fill_atom(problem *p, const tile *t, const row_of *m, unsigned rows, unsigned e,
                      unsigned along_mn, unsigned along_k) {
    unsigned width = width_of(t), pieces = width / 16, per = 16 / e;
    uint32_t at = t->begin;
    if (width == 16) {
        at += t->mn_major ? along_mn * t->stride + along_k * t->leading
                          : along_mn * t->stride + along_k * t->leading;
    } else {
        at += t->mn_major ? along_mn * t->leading + along_k * t->stride : along_mn * t->stride;
    }
    for (unsigned line = 0; line < 8; line++) {
        for (unsigned place = 0; place < pieces; place++, at += 16) {
            unsigned piece = place ^ exchange(width, line);
            for (unsigned x = 0; x < per; x++) {
                unsigned char *to = p->bytes + at + x * e;
                if (t->mn_major) {
                    put(to, m, (along_mn * pieces + piece) * per + x, rows, along_k * 8 + line);
                } else if (width == 16) {
                    put(to, m, along_mn * 8 + line, rows, along_k * per + x);
                } else if (piece / 2 == t->step) { // the others are of other steps along K
                    put(to, m, along_mn * 8 + line, rows, piece % 2 * per + x);
                }
            }
        }
    }
}

static uint64_t descriptor(const tile *t) {
    uint64_t start = (uint64_t)(1024 + t->begin + (t->mn_major ? 0 : t->step * 32)) >> 4;
    return start | (uint64_t)(t->leading >> 4) << 16 | (uint64_t)(t->stride >> 4) << 32 |
           (uint64_t)t->base << 49 | (uint64_t)t->swizzle << 62;
}

// Lays the matrix out from `begin` on; gives where it ends.
static uint32_t lay_out(problem *p, tile *t, const row_of *m, unsigned rows, tk_dtype type,
                        uint32_t begin) {
    unsigned e = size_of(type), width, along_mn, along_k;
    t->swizzle = (unsigned)(next() % 4);
    t->mn_major = e == 2 && next() % 2;
    width = width_of(t);
    along_mn = t->mn_major ? (rows + width / e - 1) / (width / e) : rows / 8;
    along_k = t->mn_major || width == 16 ? 2 : 1;
    uint32_t atom = 8 * width, pad = next() % 2 ? atom : 0;
    bool k_first = next() % 2;
    uint32_t inner = atom, outer = (k_first ? along_k : along_mn) * atom + pad;
    uint32_t mn_stride = k_first ? outer : inner, k_stride = k_first ? inner : outer;
    bool swap = width > 16 && t->mn_major;
    t->stride = swap ? k_stride : mn_stride;
    t->leading = swap ? mn_stride : k_stride;
    t->step = t->mn_major || width == 16 ? 0 : (unsigned)(next() % (width / 32));
    t->base = width == 16 ? 0 : (unsigned)(next() % 2 * (next() % (width / 16)));
    t->begin = begin + t->base * 128;
    for (unsigned x = 0; x < along_mn; x++) {
        for (unsigned y = 0; y < along_k; y++) {
            fill_atom(p, t, m, rows, e, x, y);
        }
    }
    uint32_t end = t->begin + along_mn * along_k * atom + 2 * (along_mn + along_k) * pad + 1024;
    return end / 1024 * 1024;
}

// ---- Registers

static unsigned char *register_of(problem *p, unsigned row, unsigned in_row, unsigned number) {
    unsigned thread = row / 16 * 32 + row % 8 * 4 + in_row;
    return p->bytes + REGISTERS + thread * PER_THREAD + number * 4;
}

static unsigned char *element_of_d(problem *p, unsigned row, unsigned col) {
    unsigned pair = col / 8 * 2 + row % 16 / 8;
    return p->f->td == TK_F16 ? register_of(p, row, col % 8 / 2, pair) + col % 2 * 2
                              : register_of(p, row, col % 8 / 2, 2 * pair + col % 2);
}

static void fill_registers(problem *p) {
    unsigned e = 4 / size_of(p->f->ta);
    for (unsigned row = 0; row < M; row++) {
        for (unsigned k = 0; k < p->k; k++) {
            unsigned number = k / (4 * e) * 2 + row % 16 / 8;
            tk_const_store(p->x[row][k], register_of(p, row, k % (4 * e) / e, 128 + number) +
                                             k % e * size_of(p->f->ta));
        }
        for (unsigned col = 0; col < p->n; col++) {
            tk_const_store(p->c[row][col], element_of_d(p, row, col));
        }
    }
}

// ---- The kernel

static const char *list(sim_env *e, const char *name, unsigned n) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    for (unsigned k = 0; k < n; k++) {
        tk_buf_fmt(&b, "%s%s%u", k ? ", " : "{", name, k);
    }
    tk_buf_fmt(&b, "}");
    return tk_buf_text(&b);
}

static const char *tail(sim_env *e, const problem *p) {
    const form *f = p->f;
    const char *scale = p->literal ? (p->adds ? "1" : "0") : "%p1";
    if (f->td == TK_I32) {
        return scale;
    }
    const char *signs =
        tk_format(&e->arena, "%s, %d, %d", scale, p->minus_a ? -1 : 1, p->minus_b ? -1 : 1);
    if (size_of(f->ta) != 2) {
        return signs;
    }
    return p->registers ? tk_format(&e->arena, "%s, %d", signs, p->b.mn_major)
                        : tk_format(&e->arena, "%s, %d, %d", signs, p->a.mn_major, p->b.mn_major);
}

static const char *kernel(sim_env *e, const problem *p) {
    unsigned n = p->f->td == TK_F16 ? p->n / 4 : p->n / 2;
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(
        &b,
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 q) {\n"
        ".reg .pred %%p<4>; .reg .b32 %%r<16>, %%d<128>, %%a<4>; .reg .b64 %%x<8>;\n"
        ".shared .align 1024 .b8 image[%d];\n"
        "ld.param.b64 %%x0, [q]; mov.b32 %%r0, %%tid.x; mad.wide.u32 %%x1, %%r0, 16, %%x0;\n"
        "mov.b32 %%r1, image; mad.lo.u32 %%r1, %%r0, 16, %%r1; mov.b32 %%r2, 0;\n"
        "COPY: ld.global.v4.b32 {%%r4, %%r5, %%r6, %%r7}, [%%x1];\n"
        "st.shared.v4.b32 [%%r1], {%%r4, %%r5, %%r6, %%r7};\n"
        "add.s64 %%x1, %%x1, 2048; add.u32 %%r1, %%r1, 2048; add.u32 %%r2, %%r2, 1;\n"
        "setp.lt.u32 %%p2, %%r2, %d; @%%p2 bra COPY;\n"
        "fence.proxy.async.shared::cta; bar.sync 0;\n"
        "mad.wide.u32 %%x2, %%r0, %d, %%x0; add.s64 %%x2, %%x2, %d;\n",
        IMAGE, IMAGE / 2048, PER_THREAD, REGISTERS);
    for (unsigned k = 0; k < n; k++) {
        tk_buf_fmt(&b, "ld.global.b32 %%d%u, [%%x2+%u];\n", k, 4 * k);
    }
    for (unsigned k = 0; k < 4; k++) {
        tk_buf_fmt(&b, "ld.global.b32 %%a%u, [%%x2+%u];\n", k, 512 + 4 * k);
    }
    tk_buf_fmt(&b, "mov.b64 %%x3, 0x%llx; mov.b64 %%x4, 0x%llx; setp.eq.u32 %%p1, %d, 1;\n",
               (unsigned long long)descriptor(&p->a), (unsigned long long)descriptor(&p->b),
               p->adds);
    tk_buf_fmt(&b,
               "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s %s, %s, "
               "%%x4, %s;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
               p->n, p->k, p->f->d, p->f->a, p->f->b, list(e, "%d", n),
               p->registers ? list(e, "%a", 4) : "%x3", tail(e, p));
    for (unsigned k = 0; k < n; k++) {
        tk_buf_fmt(&b, "st.global.b32 [%%x2+%u], %%d%u;\n", 4 * k, k);
    }
    tk_buf_fmt(&b, "ret;\n}\n");
    return tk_buf_text(&b);
}

// ---- One problem

static void run(problem *p, uint64_t seed) {
    sim_env *e = sim_open();
    uint64_t address = (uint64_t)(uintptr_t)p->bytes;
    tk_sim_region region = {address, BYTES, false, "bytes"};
    cr_assert(sim_read(e, kernel(e, p)), "line %u: %s", e->error.at.ptx_line, e->error.text);
    tk_sim_launch l = {.entry = "k",
                       .grid = {1, 1, 1},
                       .block = {THREADS, 1, 1},
                       .params = &address,
                       .param_bytes = sizeof address,
                       .region = &region,
                       .nregion = 1,
                       .seed = seed};
    tk_sim_run(&e->arena, e->program, &l, &e->result);
    cr_assert(e->result.ok, "%s", sim_fault(e));
    sim_close(e);
}

static double operand(const form *f, tk_const x) {
    return tk_const_as_f64(f->tf32 ? (tk_const){TK_F32, x.bits & ~UINT64_C(0x1fff)} : x);
}

static void check(problem *p) {
    const form *f = p->f;
    // Of f8, each of up to 33 terms is cut 13 bits below the greatest, and the sum too.
    double unit = f->a[0] == 'e' ? 12 * 0x1p-13 : f->td == TK_F16 ? 0x1p-10 : (double)FLT_EPSILON;
    double sign = p->minus_a != p->minus_b ? -1 : 1;
    for (unsigned row = 0; row < M; row++) {
        for (unsigned col = 0; col < p->n; col++) {
            double sum = p->adds ? tk_const_as_f64(p->c[row][col]) : 0, size = fabs(sum);
            for (unsigned k = 0; k < p->k; k++) {
                double x = sign * operand(f, p->x[row][k]) * operand(f, p->y[col][k]);
                sum += x;
                size += fabs(x);
            }
            double got = tk_const_as_f64(tk_const_load(f->td, element_of_d(p, row, col)));
            double bound = p->exact || f->td == TK_I32 ? 0 : unit * size * 3;
            cr_assert(fabs(got - sum) <= bound,
                      "%s.%s.%s n %u at %u, %u: %.9g, not %.9g (swizzles %u, %u; mn %d, %d)", f->d,
                      f->a, f->b, p->n, row, col, got, sum, p->a.swizzle, p->b.swizzle,
                      p->a.mn_major, p->b.mn_major);
        }
    }
}

static void make(problem *p, const form *f, unsigned n) {
    p->f = f;
    p->n = n;
    p->k = 32 / size_of(f->ta);
    p->registers = next() % 3 == 0;
    p->adds = next() % 3 != 0;
    p->literal = next() % 2;
    p->exact = next() % 2;
    p->minus_a = f->td != TK_I32 && next() % 4 == 0;
    p->minus_b = f->td != TK_I32 && next() % 4 == 0;
    for (unsigned k = 0; k < p->k; k++) {
        for (unsigned row = 0; row < M; row++) {
            p->x[row][k] = value(f->ta, p->exact);
        }
        for (unsigned col = 0; col < n; col++) {
            p->y[col][k] = value(f->tb, p->exact);
        }
    }
    for (unsigned row = 0; row < M; row++) {
        for (unsigned col = 0; col < n; col++) {
            p->c[row][col] = value(f->td, p->exact);
        }
    }
    memset(p->bytes, 0x7f, sizeof p->bytes); // NaN, or great
    uint32_t end = lay_out(p, &p->a, p->x, M, f->ta, 0);
    end = lay_out(p, &p->b, p->y, n, f->tb, end);
    cr_assert(end <= IMAGE, "%u", end);
    fill_registers(p);
}

static void all_shapes(unsigned first, unsigned last) {
    problem *p = malloc(sizeof *p);
    cr_assert(p != NULL);
    state = first + 1;
    for (unsigned k = first; k < last; k++) {
        for (unsigned n = 8; n <= MAX_N; n += 8) {
            if (forms[k].td == TK_I32 && n > 24 && n % 16) {
                continue;
            }
            make(p, &forms[k], n);
            run(p, next() % 3);
            check(p);
        }
    }
    free(p);
}

Test(sim_wgmma, shapes_of_halves) { all_shapes(0, 3); }
Test(sim_wgmma, shapes_of_tf32_and_f8) { all_shapes(3, 8); }
Test(sim_wgmma, shapes_of_integers) { all_shapes(8, FORMS); }

// Every layout of 16-bit operands, both ways, for a few widths.
Test(sim_wgmma, layouts) {
    problem *p = malloc(sizeof *p);
    cr_assert(p != NULL);
    bool seen[4][2][4][2] = {{{{false}}}};
    unsigned missing = 4 * 2 * 4 * 2;
    state = 99;
    for (unsigned k = 0; missing && k < 2000; k++) {
        make(p, &forms[0], 8 + k % 3 * 56);
        bool *s = &seen[p->a.swizzle][p->a.mn_major][p->b.swizzle][p->b.mn_major];
        if (*s || p->registers) {
            continue;
        }
        *s = true;
        missing--;
        run(p, k % 2);
        check(p);
    }
    cr_expect_eq(missing, 0);
    free(p);
}
