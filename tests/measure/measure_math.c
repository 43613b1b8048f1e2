// SPDX-License-Identifier: Apache-2.0
// Measures the greatest errors of the expanded mathematical functions; not a test.
//     measure_math f32 NAME STEP     every STEP-th pattern of the argument (1: all 2^32)
//     measure_math f64 NAME COUNT    COUNT arguments at random, of the ranges below
// For functions of two arguments STEP of f32 is a COUNT too. NAME may be "all".
#include "../math_ref.h"

enum { TILE = 4096 };

static uint64_t state = 0x9e3779b97f4a7c15U;

static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

typedef struct worst {
    double ulps, x, y, got;
    long double ref;
    uint64_t wrong; // special values that differ
} worst;

static double of_f32_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

// Patterns, exponents near 0, multiples of pi/2 and their neighbours, the surroundings of 1.
static double draw(bool wide) {
    const uint64_t r = random_bits(), s = random_bits();
    const double unit = (double)(s >> 11) * 0x1p-53 * 2 - 1;
    double x;
    switch (r % 6) {
    case 0:
    case 1:
        memcpy(&x, &s, sizeof x);
        return wide ? x : of_f32_bits((uint32_t)s);
    case 2:
        return ldexp(unit, (int)(r >> 8 & 15) - 5);
    case 3:
        return ldexp(unit, (int)(r >> 8 & 63) - 50);
    case 4:
        return 1 + ldexp(unit, -(int)(r >> 8 & 31));
    default:
        x = rint(ldexp(unit, (int)(r >> 8 & 31))) * 1.5707963267948966;
        return x + ldexp(x, wide ? -52 : -23) * (double)((int)(r >> 16 & 7) - 3);
    }
}

static void compare(const math_fn *f, bool wide, worst *w, double x, double y, double got) {
    const long double ref = math_ref(f, wide, (long double)x, (long double)y);
    const double e = math_ulps(wide, got, ref);
    w->wrong += e > 1e20;
    if (e > w->ulps) {
        *w = (worst){e, x, y, got, ref, w->wrong};
    }
}

static void run(const math_fn *f, bool wide, uint64_t n) {
    static xrun k;
    static float a32[TILE], b32[TILE], y32[TILE];
    static double a64[TILE], b64[TILE], y64[TILE];
    if (!math_open(&k, f->name, f->arity, wide ? "f64" : "f32", TILE, true)) {
        exit(1);
    }
    xrun_vector(&k, 0, wide ? (void *)a64 : (void *)a32, TILE);
    xrun_vector(&k, 1, wide ? (void *)b64 : (void *)b32, TILE);
    xrun_vector(&k, 2, wide ? (void *)y64 : (void *)y32, TILE);
    worst w = {0};
    const bool every = !wide && f->arity == 1;
    const uint64_t total = every ? (((uint64_t)1 << 32) + n - 1) / n : n;
    for (uint64_t at = 0; at < total; at += TILE) {
        for (uint64_t i = 0; i < TILE; i++) {
            a64[i] = every ? of_f32_bits((uint32_t)((at + i) * n)) : draw(wide);
            b64[i] = f->arity > 1 ? draw(wide) : 0;
            a32[i] = (float)a64[i];
            b32[i] = (float)b64[i];
        }
        (void)xrun_go(&k);
        for (int i = 0; i < TILE; i++) {
            if (wide) {
                compare(f, true, &w, a64[i], b64[i], y64[i]);
            } else {
                compare(f, false, &w, (double)a32[i], (double)b32[i], (double)y32[i]);
            }
        }
    }
    (void)printf("%-8s %s %11llu arguments: %.3f ulp at %a", f->name, wide ? "f64" : "f32",
                 (unsigned long long)total, w.ulps, w.x);
    if (f->arity > 1) {
        (void)printf(", %a", w.y);
    }
    (void)printf(": %a, not %La; %llu wrong\n", w.got, w.ref, (unsigned long long)w.wrong);
    (void)fflush(stdout);
    xrun_close(&k);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        (void)fprintf(stderr, "usage: measure_math f32|f64 NAME|all STEP|COUNT\n");
        return 2;
    }
    for (int i = 0; i < MATH_FNS; i++) {
        if (strcmp(argv[2], "all") == 0 || strcmp(argv[2], math_fns[i].name) == 0) {
            run(&math_fns[i], strcmp(argv[1], "f64") == 0, strtoull(argv[3], NULL, 10));
        }
    }
    return 0;
}
