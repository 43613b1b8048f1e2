// SPDX-License-Identifier: Apache-2.0
// Pass chunk: kernels on large tiles give the same bits in parts, for several numbers of warps, and
// work on no large tile any more.
#include <criterion/criterion.h>

#include "lower/lower.h"
#include "tests/e2e.h"

enum { N = 4096, LANES = 32 };

typedef struct program {
    const char *name, *body;
    bool whole; // some op is left whole
} program;

// x: i32, f: f32 of small integers, w and y: i32, z: f32, n = 37; a and b: the same as 64 rows.
static const program programs[] = {
    {"element-wise", "y[0 +: 4096] = where(x[0 +: 4096] > 3, x[0 +: 4096] * 2, iota(4096) - n);",
     0},
    {"sum and max",
     "y[0] = sum(x[0 +: 4096]); y[1] = max(x[5 +: 4096] else -9);\n"
     "y[2] = min(x[n +: 4096]); z[0] = sum(f[0 +: 4096]); z[1] = max(f[9 +: 4096]);",
     0},
    {"other kinds",
     "let t = x[0 +: 1024];\n"
     "y[0] = prod(t | 1); y[1] = xor(t); y[2] = i32(any(t == 7));\n"
     "y[3] = i32(all(t < 100));",
     0},
    {"used again",
     "let t = f[0 +: 4096]; let m = max(t); let e = t - m; let s = sum(e);\n"
     "z[0 +: 4096] = where(e < s, e, s);",
     0},
    {"rows", "let t = a[0 +: 64, 0 +: 64]; let m = max(t, axis = 1); b[0 +: 64, 0 +: 64] = t - m;",
     0},
    {"columns",
     "let t = a[0 +: 64, 0 +: 64]; let m = max(t, axis = 0); b[0 +: 64, 0 +: 64] = t - m;", 0},
    {"transposed", "b[0 +: 64, 0 +: 64] = transpose(a[0 +: 64, 0 +: 64]) + a[3 +: 64, 5 +: 64];",
     0},
    {"transposed after reading a line",
     "let t = reshape(x[0 +: 4096], [32, 128]);\n"
     "y[0 +: 4096] = reshape(transpose(t) + reshape(iota(4096), [128, 32]), [4096]);",
     1},
    {"four axes",
     "let t = reshape(x[0 +: 4096], [4, 8, 2, 64]);\n"
     "y[0 +: 4096] = reshape(permute(t, [2, 0, 3, 1]) * 3, [4096]);\n"
     "y[4096 +: 16] = reshape(sum(sum(t, axis = 0), axis = 3), [16]);",
     1},
    {"in place", "let t = w[0 +: 4096]; let m = max(t); w[0 +: 4096] = t - m;", 0},
    {"written between",
     "let t = w[0 +: 4096]; w[3 +: 4096] = x[0 +: 4096];\n"
     "y[0 +: 4096] = t + w[0 +: 4096];",
     0},
    {"shifted in place", "w[0 +: 4096] = w[1 +: 4096];", 0},
    {"backwards in place", "w[4095 - iota(4096)] = w[0 +: 4096];", 0},
    {"a loop carries",
     "var p = x[0 +: 4096]; var q = iota(4096);\n"
     "for k in 0 .. 5 { let c = p; p = q + k; q = c * 2; }\n"
     "y[0 +: 4096] = p; w[0 +: 4096] = q;",
     0},
    {"a loop of none", "var p = x[0 +: 4096]; for k in n .. 5 { p = p + 1; } y[0 +: 4096] = p;", 0},
    {"a loop swaps",
     "var p = x[0 +: 4096]; var q = iota(4096);\n"
     "for k in 0 .. 5 { let c = p; p = q; q = c; }\n"
     "y[0 +: 4096] = p; w[0 +: 4096] = q;",
     0},
    {"while",
     "var p = x[0 +: 4096]; var k = 0; while max(p) < 100 && k < 9 { p = p * 3; k += 1; }\n"
     "y[0 +: 4096] = p; y[4096] = k;",
     0},
    {"if",
     "var p = x[0 +: 4096]; if n > 3 { p = p + n; } else { p = flip(p, 0); }\n"
     "y[0 +: 4096] = p;",
     0},
    {"loops in loops",
     "var p = x[0 +: 4096];\n"
     "for k in 0 .. 3 { for j in 0 .. k { p = p + j; } if k == 1 { p = p - sum(p); } }\n"
     "y[0 +: 4096] = p;",
     0},
    {"scans",
     "y[0 +: 4096] = cumsum(x[0 +: 4096], axis = 0);\n"
     "w[0 +: 4096] = cummax(x[0 +: 4096], axis = 0, reverse = true);",
     0},
    {"exclusive",
     "z[0 +: 4096] = cumsum(f[0 +: 4096], axis = 0, exclusive = true);\n"
     "y[0 +: 4096] = cumsum(x[0 +: 4096], axis = 0, exclusive = true, reverse = true);\n"
     "w[0 +: 4096] = cummin(x[0 +: 4096], axis = 0, exclusive = true);",
     0},
    {"scan of rows and columns",
     "let t = a[0 +: 64, 0 +: 64];\n"
     "b[0 +: 64, 0 +: 64] = cumsum(t, axis = 1) + cumsum(t, axis = 0);",
     0},
    {"argmax",
     "y[0] = argmax(x[0 +: 4096]); y[1] = argmin(x[0 +: 4096]);\n"
     "y[2] = argmax(f[0 +: 4096]); y[3] = argmin(rcp(f[0 +: 4096]) * 0.0);\n"
     "y[4] = argmax(full([4096], f32(-inf)));",
     0},
    {"argmax of rows",
     "y[0 +: 64] = reshape(argmax(a[0 +: 64, 0 +: 64], axis = 1), [64]);\n"
     "y[64 +: 64] = reshape(argmin(a[0 +: 64, 0 +: 64], axis = 0), [64]);",
     0},
    {"long rows",
     "let t = reshape(x[0 +: 4096], [2, 2048]);\n"
     "y[0 +: 4096] = reshape(t - max(t, axis = 1), [4096]);",
     0},
    {"gather",
     "let i = iota(64) * 70 - 9; y[0 +: 64] = gather(x[0 +: 4096], i, axis = 0);\n"
     "b[0 +: 2, 0 +: 64] = gather(a[0 +: 64, 0 +: 64], broadcast(iota(64) - 1, [2, 64]), axis = "
     "0);",
     0},
    {"concat",
     "y[0 +: 4096] = concat(x[0 +: 2048], flip(x[9 +: 2048], 0), 0);\n"
     "w[0 +: 2048] = concat(x[0 +: 1024], concat(x[0 +: 512], x[1 +: 512], 0), 0) + 1;",
     0},
    {"histogram", "y[0 +: 16] = histogram(x[0 +: 4096], 16);", 0},
    {"moves",
     "let t = x[0 +: 4096]; let (p, q) = deinterleave(t);\n"
     "y[0 +: 4096] = flip(interleave(q, p), 0); w[0 +: 2048] = slice(t, 0, 1024, 2048);",
     0},
    {"other axis",
     "let t = a[0 +: 64, 0 +: 64]; b[0 +: 64, 0 +: 64] = sort(t, 1);\n"
     "y[0 +: 4096] = reshape(concat(slice(t, 1, 32, 32), slice(t, 1, 0, 32), 1), [4096]);",
     1},
    {"sort of all", "y[0 +: 4096] = sort(x[0 +: 4096], 0) + 1;", 1},
    {"random", "let u = rand(7, iota(4096)); z[0 +: 4096] = u; z[4095] = sum(floor(u * 4.0));", 0},
    {"masks", "let m = x[0 +: 4096] > 2; y[1 +: 4096 where m] = x[2 +: 4096 where m] else -1;", 0},
    {"indices",
     "y[(iota(4096) * 5) & 4095] = x[4095 - iota(4096)];\n"
     "b[iota(64)[:, newaxis], 63 - iota(64)] = a[63 - iota(64)[:, newaxis], iota(64)];",
     0},
    {"atomics",
     "let o = atomic_add(w[(iota(4096) & 63) * 64 + iota(4096) / 64], x[0 +: 4096]);\n"
     "y[0 +: 4096] = o; w[0 +: 64] = x[0 +: 64];",
     0},
    {"results of atomics",
     "let o = atomic_max(w[0 +: 4096], x[0 +: 4096]);\n"
     "y[0 +: 4096 where o < n] = o * 2; z[0] = f32(sum(o));",
     0},
    {"product",
     "let p = f32(a[0 +: 64, 0 +: 64]);\n"
     "b[0 +: 64, 0 +: 64] = i32(dot(p, transpose(p)));",
     0},
    {"long product",
     "let p = f32(a[0 +: 4, 0 +: 1024]);\n"
     "let r = dot(p, transpose(p), full([4, 4], f32(3)));\n"
     "z[0 +: 16] = reshape(r, [16]);",
     0},
    {"asserts", "let t = x[0 +: 4096]; assert(t > -5000); y[0 +: 4096] = t;", 0},
    {"own functions",
     "let t = x[0 +: 4096];\n"
     "y[0 +: 1] = reduce(t, axis = 0, f = fn(c: i32, d: i32) -> i32 { return max(c, d); });",
     1},
};

typedef struct memory {
    int32_t x[N], w[N], y[2 * N], a[N], b[N];
    float f[N], z[N];
} memory;

static void fill(memory *m) {
    uint32_t seed = 1;
    memset(m, -1, sizeof *m);
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525U + 1013904223U;
        m->x[i] = m->a[i] = (int32_t)(seed >> 24) - 100;
        m->f[i] = (float)((int)(seed >> 12 & 15) - 8);
        m->w[i] = m->b[i] = (int32_t)(seed >> 8 & 0xffff);
    }
}

typedef struct largest {
    const tk_func *f;
    int64_t most; // elements of a tile that is not kept
    int loops, kept;
} largest;

static void look(void *user, tk_op *op) {
    largest *l = user;
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_type *t = tk_value_type(l->f, op->res[i]);
        int64_t n = tk_type_is_tile(t) ? tk_type_elems(t) : 0;
        const tk_handed_on handed_on = {4 * LANES, 4 * LANES};
        bool kept = n && tk_tile_kept(l->f, op->res[i], &handed_on);
        l->most = !kept && n > l->most ? n : l->most;
    }
}

static void count(void *user, tk_op *op) {
    largest *l = user;
    l->loops += op->code == TK_OP_FOR;
    l->kept += op->code == TK_OP_EMPTY;
}

// Runs the kernel; warps > 0: in parts of an element a thread, and what is left is looked at.
static largest run(const program *p, memory *m, int warps) {
    tk_guard guard = {0};
    tk_arena arena;
    tk_arena_init(&arena, NULL, &guard);
    fill(m);
    e2e_arg arg[] = {e2e_i32("x", m->x, N),      e2e_f32("f", m->f, N),     e2e_i32("w", m->w, N),
                     e2e_i32("y", m->y, 2 * N),  e2e_f32("z", m->z, N),     e2e_int("n", 37),
                     e2e_i32("a", m->a, 64, 64), e2e_i32("b", m->b, 64, 64)};
    e2e_run r = {.source = tk_format(&arena,
                                     "kernel test(x: in i32[A], f: in f32[B], w: inout i32[C],\n"
                                     "y: inout i32[D], z: inout f32[E], n: i32, a: in i32[F, F],\n"
                                     "b: inout i32[F, F]) {\n%s\n}\n",
                                     p->body),
                 .arg = arg,
                 .narg = sizeof arg / sizeof *arg,
                 .debug = true};
    largest seen = {0};
    if (setjmp(guard.jump) == 0) {
        e2e_state *s = TK_NEW(&arena, e2e_state);
        s->r = &r;
        s->arena = &arena;
        cr_assert(e2e_load(s), "%s: %s", p->name, r.text);
        tk_kernel_info *info = e2e_kernel(s);
        tk_bound *bound = e2e_bind(s, info);
        cr_assert(bound != NULL, "%s: %s", p->name, r.text);
        tk_module *module = e2e_module(s, bound);
        cr_assert(module != NULL, "%s: %s", p->name, r.text);
        module->attrs.warps = warps;
        module->thread_elems = 1;
        if (warps) {
            cr_assert(tk_lower(module, tk_lower_target(), NULL, NULL, &s->diags, "chunk", true),
                      "%s", p->name);
            tk_pipeline_opts clean = {.only = "dce"};
            cr_assert(tk_pipeline_run(module, NULL, &s->diags, &clean), "%s", p->name);
            seen.f = module->funcs.at[0];
            tk_func_walk(module->funcs.at[0], look, &seen);
            tk_func_walk(module->funcs.at[0], count, &seen);
        }
        cr_assert(e2e_execute(s, info, bound, module), "%s: %s", p->name, r.text);
    } else {
        cr_assert_fail("%s, %d warps: %s", p->name, warps, guard.text);
    }
    tk_arena_release(&arena);
    return seen;
}

Test(chunk, the_same_bits_in_parts) {
    static memory want, got;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        (void)run(&programs[i], &want, 0);
        for (int warps = 1; warps <= 8; warps *= 2) {
            int64_t most = run(&programs[i], &got, warps).most;
            cr_assert_eq(memcmp(&want, &got, sizeof want), 0, "%s, %d warps", programs[i].name,
                         warps);
            // What the pass leaves whole has four times the limit.
            cr_expect(programs[i].whole || most <= (int64_t)4 * LANES * warps,
                      "%s, %d warps: a tile of %lld elements is left", programs[i].name, warps,
                      (long long)most);
        }
    }
}

typedef struct shared_loop {
    const char *body;
    int loops, kept;
} shared_loop;

// What several ops need is read once; what they need of each other's results is not; what is dear
// to make again is kept.
Test(chunk, loops_are_shared) {
    static const shared_loop cases[] = {
        {"let t = x[0 +: 4096]; y[0] = sum(t); y[1] = max(t); y[2] = sum(t * t);", 1, 0},
        {"let t = x[0 +: 4096]; let s = sum(t) / n; let m = max(t) - s; y[0] = s; y[1] = m;", 1, 0},
        {"let t = f[0 +: 4096]; let m = max(t); z[0] = m; z[1] = sum(t - m);", 2, 0},
        {"let t = x[0 +: 4096]; y[0 +: 4096] = t + 1; w[0 +: 4096] = t * 2;", 1, 0},
        {"let t = x[0 +: 4096]; y[0 +: 4096] = t + 1; y[1 +: 4096] = t * 2;", 2, 0},
        {"let t = w[0 +: 4096]; w[0 +: 4096] = t + 1; y[0 +: 4096] = t * 2;", 2, 1},
        {"let t = w[0 +: 4096]; w[0 +: 4096] = t + 1; y[0] = sum(w[0 +: 4096]);", 2, 0},
        {"let t = w[0 +: 4096]; y[0] = sum(t); w[0 +: 4096] = t + 1;", 2, 0},
        {"let t = x[0 +: 4096]; y[argmax(t) +: 4096] = t;", 2, 0},
        {"let t = x[0 +: 4096]; let s = sum(t); w[0] = s; y[0 +: 4096] = t; y[4096] = w[0];", 1, 0},
        {"let t = pow(f[0 +: 4096], 1.5); let m = max(t); z[0 +: 4096] = t - m;", 3, 1},
        {"let t = f[0 +: 4096] + 1.5; let m = max(t); z[0 +: 4096] = t - m;", 2, 0},
    };
    static memory want, got;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p = {"shared", cases[i].body, false};
        (void)run(&p, &want, 0);
        largest l = run(&p, &got, 2);
        cr_expect_eq(memcmp(&want, &got, sizeof want), 0, "%s", p.body);
        cr_expect_eq(l.loops, cases[i].loops, "%s: %d loops", p.body, l.loops);
        cr_expect_eq(l.kept, cases[i].kept, "%s: %d kept", p.body, l.kept);
    }
}
