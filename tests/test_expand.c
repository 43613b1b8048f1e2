// SPDX-License-Identifier: Apache-2.0
// The expand pass: each function's sequence on the executor against the C library in a wider type,
// within the bounds of docs/math.md; the remainder bit for bit; what is left alone.
#include <criterion/criterion.h>
#include <float.h>

#include "ir_env.h"
#include "math_ref.h"

enum { TILE = 1024, RANDOM = 1 << 20, RANDOM_WIDE = 1 << 18 };

static uint64_t state = 0x9e3779b97f4a7c15U;

static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// ---- Arguments ----------------------------------------------------------------------------------

static double of_bits(bool wide, uint64_t u) { // a pattern of the type
    if (wide) {
        double x;
        memcpy(&x, &u, sizeof x);
        return x;
    }
    const uint32_t v = (uint32_t)u;
    float x;
    memcpy(&x, &v, sizeof x);
    return (double)x;
}

// Ends and edges, both signs and both neighbours of each.
static size_t special(bool wide, double *out) {
    static const double base[] = {
        0,
        0x1p-149,
        0x1p-126,
        0x1p-1074,
        0x1p-1022,
        0x1p-60,
        0x1p-25,
        0x1p-13,
        0.25,
        0.5,
        0.75,
        1,
        1.5,
        2,
        2.5,
        3,
        4,
        6,
        10,
        20,
        31,
        63,
        64,
        126,
        127,
        128,
        149,
        150,
        255,
        1023,
        1024,
        1074,
        1075,
        0x1p23,
        0x1p24,
        0x1p31,
        0x1p52,
        0x1p53,
        0x1p63,
        0x1p127,
        0x1p1023,
        17,
        18,
        37,
        38,
        87.336544,
        88.722839,
        89.415985,
        103.278929,
        103.972076,
        709.782712893384,
        710.4758600739439,
        708.3964185322641,
        744.4400719213812,
        745.1332191019411,
        0.7853981633974483,
        1.5707963267948966,
        3.141592653589793,
        3 * 0.7853981633974483,
        2 * 3.141592653589793,
        1e5 * 3.141592653589793,
        1e9 * 1.5707963267948966,
        0.7071067811865476,
        1.4142135623730951,
        0.6931471805599453,
        2.718281828459045,
        0.34657359,
        1.0397208,
        1e30,
        1e38,
        1e300,
        FLT_MAX,
        DBL_MAX,
        0x1.921fb6p+22,
        0x1.6ac5b262ca1ffp+849, // next to a multiple of pi/2
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
        const double x = wide ? base[i] : (double)(float)base[i];
        const double up = wide ? nextafter(x, INFINITY) : (double)nextafterf((float)x, INFINITY);
        const double down = wide ? nextafter(x, 0) : (double)nextafterf((float)x, 0);
        const double all[] = {x, -x, up, -up, down, -down};
        memcpy(out + n, all, sizeof all);
        n += 6;
    }
    out[n++] = NAN;
    out[n++] = -NAN;
    return n;
}
enum { MOST_SPECIAL = 1024 };

// Any pattern, or one of moderate size.
static double draw(bool wide) {
    const uint64_t r = random_bits();
    if (r & 1) {
        return of_bits(wide, random_bits());
    }
    const double x = ldexp((double)(int64_t)random_bits(), -63 + (int)(r >> 8 & 15) - 8);
    return wide ? x : (double)(float)x;
}

// ---- Running ------------------------------------------------------------------------------------

typedef struct kernel {
    xrun x;
    bool wide;
    float a32[TILE], b32[TILE], y32[TILE];
    double a[TILE], b[TILE], y[TILE];
} kernel;

static kernel *kernel_open(const char *name, int arity, bool wide) {
    kernel *k = calloc(1, sizeof *k);
    k->wide = wide;
    cr_assert(math_open(&k->x, name, arity, wide ? "f64" : "f32", TILE, true));
    xrun_vector(&k->x, 0, wide ? (void *)k->a : (void *)k->a32, TILE);
    xrun_vector(&k->x, 1, wide ? (void *)k->b : (void *)k->b32, TILE);
    xrun_vector(&k->x, 2, wide ? (void *)k->y : (void *)k->y32, TILE);
    return k;
}

static void kernel_close(kernel *k) {
    xrun_close(&k->x);
    free(k);
}

static void kernel_run(kernel *k) { // a, b to y
    for (int i = 0; i < TILE && !k->wide; i++) {
        k->a32[i] = (float)k->a[i];
        k->b32[i] = (float)k->b[i];
    }
    cr_assert(xrun_go(&k->x) == TK_EXEC_OK);
    for (int i = 0; i < TILE && !k->wide; i++) {
        k->y[i] = (double)k->y32[i];
    }
}

static void check_tile(kernel *k, const math_fn *f, int n) {
    kernel_run(k);
    const double bound = k->wide ? f->bound_f64 : f->bound_f32;
    for (int i = 0; i < n; i++) {
        const long double ref = math_ref(f, k->wide, (long double)k->a[i], (long double)k->b[i]);
        const double e = math_ulps(k->wide, k->y[i], ref);
        cr_assert(e <= bound, "%s %s(%a, %a) = %a, not %La: %g ulp", k->wide ? "f64" : "f32",
                  f->name, k->a[i], k->b[i], k->y[i], ref, e);
    }
}

static void check_special(const math_fn *f, bool wide) {
    static double value[MOST_SPECIAL];
    const size_t n = special(wide, value), total = f->arity > 1 ? n * n : n;
    cr_assert(n <= MOST_SPECIAL);
    kernel *k = kernel_open(f->name, f->arity, wide);
    for (size_t at = 0; at < total; at += TILE) {
        const size_t m = total - at < TILE ? total - at : TILE;
        for (size_t i = 0; i < m; i++) {
            k->a[i] = value[(at + i) % n];
            k->b[i] = value[(at + i) / n];
        }
        check_tile(k, f, (int)m);
    }
    kernel_close(k);
}

static void check_random(const math_fn *f, bool wide) {
    kernel *k = kernel_open(f->name, f->arity, wide);
    for (int at = 0; at < (wide ? RANDOM_WIDE : RANDOM); at += TILE) {
        for (int i = 0; i < TILE; i++) {
            k->a[i] = draw(wide);
            k->b[i] = draw(wide);
        }
        check_tile(k, f, TILE);
    }
    kernel_close(k);
}

// A row of numops.def with an error bound is in the reference table, and so in every test below.
Test(expand, every_bounded_op_has_a_reference) {
    for (int op = 0; op < TK_NUM_COUNT; op++) {
        const char *name = tk_numop_name((tk_numop)op);
        bool found = tk_numop_is_exact((tk_numop)op);
        for (int i = 0; i < MATH_FNS && !found; i++) {
            found = strcmp(math_fns[i].name, name) == 0;
        }
        cr_assert(found, "'%s' has no row in math_fns (tests/math_ref.h)", name);
    }
}

Test(expand, special_values) {
    for (int i = 0; i < MATH_FNS; i++) {
        check_special(&math_fns[i], false);
        check_special(&math_fns[i], true);
    }
}

Test(expand, random_patterns_f32) {
    for (int i = 0; i < MATH_FNS; i++) {
        check_random(&math_fns[i], false);
    }
}

Test(expand, random_patterns_f64) {
    for (int i = 0; i < MATH_FNS && LDBL_MANT_DIG >= 64; i++) {
        check_random(&math_fns[i], true);
    }
}

// Powers of integers and of two that the type holds come out exact.
Test(expand, exact_results) {
    for (int wide = 0; wide < 2; wide++) {
        const int top = wide ? 1023 : 127, least = wide ? -1074 : -149;
        kernel *exp2_of = kernel_open("exp2", 1, wide), *log2_of = kernel_open("log2", 1, wide);
        kernel *pow_of = kernel_open("pow", 2, wide);
        for (int from = least; from <= top; from += TILE) {
            for (int i = 0; i < TILE; i++) {
                const int n = from + i < top ? from + i : top;
                exp2_of->a[i] = pow_of->b[i] = n;
                pow_of->a[i] = -2;
                log2_of->a[i] = ldexp(1, n);
            }
            kernel_run(exp2_of);
            kernel_run(log2_of);
            kernel_run(pow_of);
            for (int i = 0; i < TILE; i++) {
                const int n = (int)exp2_of->a[i];
                cr_assert(exp2_of->y[i] == ldexp(1, n), "2^%d", n);
                cr_assert(log2_of->y[i] == n, "log2 2^%d", n);
                cr_assert(pow_of->y[i] == ldexp(n & 1 ? -1 : 1, n), "(-2)^%d", n);
            }
        }
        kernel_close(exp2_of);
        kernel_close(log2_of);
        kernel_close(pow_of);
    }
}

// The passes of ir/ change no bit of a sequence, and find what there is to find in it.
static void check_optimised(const char *name, int arity, bool wide) {
    static double before[TILE];
    kernel *k = kernel_open(name, arity, wide);
    for (int i = 0; i < TILE; i++) {
        k->a[i] = draw(wide);
        k->b[i] = draw(wide);
    }
    kernel_run(k);
    memcpy(before, k->y, sizeof before);
    const tk_pipeline_opts o = {0};
    cr_assert(tk_pipeline_run(k->x.module, NULL, &k->x.diags, &o));
    cr_assert(math_plan_again(&k->x));
    kernel_run(k);
    for (int i = 0; i < TILE; i++) {
        cr_assert(memcmp(&before[i], &k->y[i], sizeof before[i]) == 0 ||
                      (isnan(before[i]) && isnan(k->y[i])),
                  "%s(%a, %a): %a, then %a", name, k->a[i], k->b[i], before[i], k->y[i]);
    }
    kernel_close(k);
}

Test(expand, other_passes_change_no_bit) {
    for (int wide = 0; wide < 2; wide++) {
        for (int i = 0; i < MATH_FNS; i++) {
            check_optimised(math_fns[i].name, math_fns[i].arity, wide);
        }
        check_optimised("rem", 2, wide);
    }
}

// Steps far wider than the error: the results may not fall.
static void check_rises(const char *name, double from, double to, bool wide) {
    enum { STEPS = 64 * TILE };
    kernel *k = kernel_open(name, 1, wide);
    double last = -INFINITY;
    for (int at = 0; at < STEPS; at += TILE) {
        for (int i = 0; i < TILE; i++) {
            k->a[i] = from + (to - from) * (at + i) / STEPS;
        }
        kernel_run(k);
        for (int i = 0; i < TILE; i++) {
            const double slack = fabs(k->y[i]) * (wide ? 0x1p-51 : 0x1p-22);
            cr_assert(k->y[i] >= last - slack, "%s falls at %a: %a, %a", name, k->a[i], last,
                      k->y[i]);
            last = k->y[i] > last ? k->y[i] : last;
        }
    }
    kernel_close(k);
}

Test(expand, rising) {
    for (int wide = 0; wide < 2; wide++) {
        check_rises("exp", -30, 80, wide);
        check_rises("expm1", -30, 80, wide);
        check_rises("exp2", -100, 100, wide);
        check_rises("log", 0.001, 100, wide);
        check_rises("log2", 0.001, 100, wide);
        check_rises("log1p", -0.999, 100, wide);
        check_rises("sinh", -80, 80, wide);
        check_rises("tanh", -12, 12, wide);
        check_rises("sigmoid", -90, 90, wide);
        check_rises("erf", -7, 7, wide);
        check_rises("atan", -100, 100, wide);
        check_rises("asin", -1, 1, wide);
    }
}

// ---- The remainder ------------------------------------------------------------------------------

static bool same_float(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void check_rem_tile(kernel *k) {
    kernel_run(k);
    for (int i = 0; i < TILE; i++) {
        const double want =
            k->wide ? fmod(k->a[i], k->b[i]) : (double)fmodf((float)k->a[i], (float)k->b[i]);
        cr_assert(same_float(k->y[i], want), "%s %a %% %a = %a, not %a", k->wide ? "f64" : "f32",
                  k->a[i], k->b[i], k->y[i], want);
    }
}

Test(expand, rem_is_exact) {
    static double value[MOST_SPECIAL];
    for (int wide = 0; wide < 2; wide++) {
        kernel *k = kernel_open("rem", 2, wide);
        const size_t n = special(wide, value);
        for (size_t at = 0; at < n * n; at += TILE) {
            for (size_t i = 0; i < TILE; i++) {
                k->a[i] = value[(at + i) % n];
                k->b[i] = value[(at + i) / n % n];
            }
            check_rem_tile(k);
        }
        for (int at = 0; at < (wide ? 64 : 512); at++) {
            for (int i = 0; i < TILE; i++) {
                k->a[i] = draw(wide);
                k->b[i] = i & 1 ? draw(wide) : k->a[i] / (double)(random_bits() >> 40);
                k->b[i] = wide ? k->b[i] : (double)(float)k->b[i];
            }
            check_rem_tile(k);
        }
        kernel_close(k);
    }
}

static void check_rem_narrow(tk_dtype t) {
    static _Alignas(8) unsigned char a[TILE * 2], b[TILE * 2], y[TILE * 2];
    const size_t size = tk_dtype_size(t);
    xrun x;
    cr_assert(math_open(&x, "rem", 2, tk_dtype_name(t), TILE, true));
    xrun_vector(&x, 0, a, TILE);
    xrun_vector(&x, 1, b, TILE);
    xrun_vector(&x, 2, y, TILE);
    for (int round = 0; round < 64; round++) {
        for (size_t i = 0; i < TILE * size; i++) {
            a[i] = (unsigned char)(random_bits() >> 20);
            b[i] = (unsigned char)(random_bits() >> 20);
        }
        cr_assert(xrun_go(&x) == TK_EXEC_OK);
        for (size_t i = 0; i < TILE; i++) {
            const tk_const p = tk_const_load(t, a + i * size), q = tk_const_load(t, b + i * size);
            const tk_const want = tk_num_binary(TK_NUM_REM, t, p, q);
            const tk_const got = tk_const_load(t, y + i * size);
            cr_assert(tk_const_same(want, got) || (tk_const_is_nan(want) && tk_const_is_nan(got)),
                      "%s %llx %% %llx", tk_dtype_name(t), (unsigned long long)p.bits,
                      (unsigned long long)q.bits);
        }
    }
    xrun_close(&x);
}

Test(expand, rem_of_narrow_floats) {
    check_rem_narrow(TK_F16);
    check_rem_narrow(TK_BF16);
    check_rem_narrow(TK_F8E4M3);
    check_rem_narrow(TK_F8E5M2);
}

// ---- Places -------------------------------------------------------------------------------------

static void expand_module(ir_env *e, tk_module *m) {
    tk_pass_ctx c = {m, &e->arena, &e->diags, false, NULL, NULL};
    tk_pass_expand(&c);
    const char *why = ir_why(e, m);
    cr_assert(why == NULL, "%s\n%s", why ? why : "", ir_text(e, m));
}

// Scalars, regions, results of one in another, in a loop: nothing of it is left.
Test(expand, everywhere) {
    ir_env *e = ir_open();
    tk_module *m =
        ir_good(e, "module tile\n\nkernel @k(%x: in f32[?], %y: out f32[?]) {\n"
                   "%z = const 0 : i32\n%n = const 3 : i32\n%one = const 1 : i32\n"
                   "%s = load %x[%z] : f32\n%t = load %x[%z +: 8] : f32[8]\n"
                   "%a = exp %s : f32\n%b = pow %a, %s : f32\n%c = rem %b, %a : f32\n"
                   "%d = for %i = %z to %n step %one carry (%v = %t) : f32[8] {\n"
                   "%e = sin %v : f32[8]\n%f = rem %e, %t : f32[8]\nyield %f\n}\n"
                   "%g = reduce_fn %d axis=0 : f32[1] (%p: f32, %q: f32) {\n"
                   "%h = rem %p, %q : f32\n%j = tanh %h : f32\nyield %j\n}\n"
                   "%k = reshape %g : f32\n%l = add %k, %c : f32\nstore %y[%z] = %l\nreturn\n}\n");
    expand_module(e, m);
    static const tk_opcode gone[] = {TK_OP_EXP, TK_OP_POW, TK_OP_SIN, TK_OP_TANH};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        cr_assert(ir_count(m, gone[i]) == 0);
    }
    const tk_note_rec *r = ir_note(m, "expanded");
    cr_assert(r != NULL && strcmp(r->pass, "expand") == 0 && r->numbers.n == 2);
    cr_assert(tk_plan_make(&e->arena, m, &e->diags, SIZE_MAX) != NULL);
    ir_close(e);
}

static void permit(void *user, tk_op *op) {
    if (tk_op_info(op->code)->elementwise) {
        op->fast |= *(const uint8_t *)user;
    }
}

// What hardware approximates stays where that is permitted, with its permission.
Test(expand, approximations_stay) {
    uint8_t fast = TK_FAST_APPROX;
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\n\nfunc @f(%x: f32[4], %w: f64[4]) -> f32[4], f64[4] {\n"
                              "%a = exp %x : f32[4]\n%b = sin %a : f32[4]\n%c = erf %b : f32[4]\n"
                              "%d = sigmoid %c : f32[4]\n%e = exp %w : f64[4]\n"
                              "return %d, %e\n}\n");
    tk_func_walk(m->funcs.at[0], permit, &fast);
    expand_module(e, m);
    cr_assert(ir_count(m, TK_OP_EXP) == 2); // the first, and that of sigmoid
    cr_assert(ir_count(m, TK_OP_SIN) == 1);
    cr_assert(ir_count(m, TK_OP_ERF) == 0);
    cr_assert(ir_count(m, TK_OP_SIGMOID) == 0);
    for (const tk_op *op = m->funcs.at[0]->body->first; op; op = op->next) {
        cr_assert(tk_expand_keeps(m->funcs.at[0], op));
        cr_assert(op->code != TK_OP_FMA || op->fast == 0);
        cr_assert(op->code != TK_OP_EXP || op->fast == TK_FAST_APPROX);
    }
    ir_close(e);
}
