// SPDX-License-Identifier: Apache-2.0
//
// Checking of built-in calls: the type that a call gives, the nodes that it becomes, and what is
// refused. Each row is the body of one kernel, parsed, checked in general and instantiated.
#include <criterion/criterion.h>
#include <string.h>

#include "lang/check.h"
#include "parser/parse.h"

static const char prelude[] = "fn add(a: f32, b: f32) -> f32 { return a + b; }\n"
                              "fn top(x: f32, i: i32, y: f32, j: i32) -> (f32, i32) {\n"
                              "    return (where(x < y, y, x), where(x < y, j, i));\n"
                              "}\n"
                              "fn whole(x: f32) -> f32 { return x + f32(sum(iota(4))); }\n"
                              "fn noise(x: f32, i: i32) -> f32 { return x + rand(7, i); }\n"
                              "fn seeded(x: f32, i: i32) -> f32 { return x + rand(i, 7); }\n"
                              "fn soft(x: f32) -> f32 { assume(x == x); return max(x, 0.0) + "
                              "min(clamp(x, -1.0, 1.0), 0.5); }\n";
static const char head[] =
    "kernel t(x: in f32[1024], h: in f16[1024], i: in i32[1024], c: inout i32[1024],\n"
    "         a: inout f16[1024], q: inout f32[64, 64], y: out f32[1024], s: f32, n: i32)\n"
    "    grid (g in 4, k in 2)\n{\n";

typedef struct fixture {
    tk_arena arena;
    tk_guard guard;
    tk_sources sources;
    tk_names names;
    tk_diags diags;
    tk_unit unit;
    tk_program *program;
} fixture;

static void argument(tk_arg_known *k, tk_dtype t, uint32_t rank, int64_t m, int64_t n) {
    *k = (tk_arg_known){
        .given = true, .has_dtype = true, .dtype = t, .has_shape = true, .rank = rank};
    k->dim[0] = m;
    k->dim[1] = n;
}

static void instantiate(fixture *f) {
    tk_arg_known arg[9];
    argument(&arg[0], TK_F32, 1, 1024, 0);
    argument(&arg[1], TK_F16, 1, 1024, 0);
    argument(&arg[2], TK_I32, 1, 1024, 0);
    argument(&arg[3], TK_I32, 1, 1024, 0);
    argument(&arg[4], TK_F16, 1, 1024, 0);
    argument(&arg[5], TK_F32, 2, 64, 64);
    argument(&arg[6], TK_F32, 1, 1024, 0);
    argument(&arg[7], TK_F32, 0, 0, 0);
    argument(&arg[8], TK_I32, 0, 0, 0);
    tk_bind_in in = {.arg = arg};
    const tk_kernel_info *info = tk_unit_kernel(&f->arena, &f->unit, "t");
    cr_assert_not_null(info);
    tk_bound *bound = tk_bind(&f->arena, &f->unit, info, &in, &f->diags);
    if (bound) {
        f->program = tk_instantiate(&f->arena, &f->unit, bound, &f->diags);
    }
}

// Checks prelude + head + body + "}", or the text alone where it is a whole file.
static void check(fixture *f, const char *body, bool whole_file) {
    memset(f, 0, sizeof *f);
    if (setjmp(f->guard.jump) != 0) {
        cr_assert_fail("%s", f->guard.text);
    }
    tk_arena_init(&f->arena, NULL, &f->guard);
    tk_sources_init(&f->sources, &f->arena);
    tk_names_init(&f->names, &f->arena);
    tk_diags_init(&f->diags, &f->arena);
    const char *text = whole_file ? tk_format(&f->arena, "%s%s", prelude, body)
                                  : tk_format(&f->arena, "%s%s%s\n}\n", prelude, head, body);
    uint32_t source = tk_sources_add(&f->sources, "t.tk", text, strlen(text));
    f->unit.sources = &f->sources;
    f->unit.names = &f->names;
    tk_unit_file file = {0};
    file.ast = tk_parse(&f->arena, &f->names, &f->sources, source, &f->diags);
    tk_vec_push(&f->arena, &f->unit.files, file);
    if (f->diags.errors == 0) {
        tk_check_unit(&f->arena, &f->unit, &f->diags);
    }
    if (f->diags.errors == 0 && !whole_file) {
        instantiate(f);
    }
}

static const char *messages(fixture *f) {
    tk_buf out;
    tk_buf_init(&out, &f->arena);
    tk_diags_print(&out, &f->sources, &f->diags, false);
    return tk_buf_text(&out);
}

// The statement that binds `r` in the kernel.
static tk_xs *binding(fixture *f) {
    tk_xblock *body = f->program->kernel->body;
    for (uint32_t i = 0; i < body->list.n; i++) {
        tk_xs *s = body->list.at[i];
        if (s->kind == TK_XS_LET && s->nvar && strcmp(s->var[0]->name, "r") == 0) {
            return s;
        }
    }
    return NULL;
}

typedef struct good_row {
    const char *body;
    const char *type; // of r; of all results where it is a tuple
} good_row;

static void expect_types(const good_row *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fixture f;
        check(&f, row[i].body, false);
        cr_expect(f.program != NULL && f.diags.errors == 0, "%s\n%s", row[i].body, messages(&f));
        tk_xs *s = f.program ? binding(&f) : NULL;
        const char *type = s ? tk_type_text(&f.arena, s->value->type) : "nothing";
        cr_expect(strcmp(type, row[i].type) == 0, "%s: is %s, not %s", row[i].body, type,
                  row[i].type);
        tk_arena_release(&f.arena);
    }
}

typedef struct bad_row {
    const char *body;
    const char *id;
    const char *text; // occurs in the message, its notes and helps
} bad_row;

static void expect_errors(const bad_row *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fixture f;
        check(&f, row[i].body, false);
        const char *text = messages(&f);
        cr_expect(f.diags.errors == 1, "%s: %u errors\n%s", row[i].body, f.diags.errors, text);
        if (f.diags.list.n) {
            const char *id = f.diags.list.at[0]->id;
            cr_expect(strcmp(id, row[i].id) == 0, "%s: %s, not %s\n%s", row[i].body, id, row[i].id,
                      text);
            cr_expect(strstr(text, row[i].text) != NULL, "%s: no '%s' in\n%s", row[i].body,
                      row[i].text, text);
        }
        tk_arena_release(&f.arena);
    }
}

#define TYPES(...)                                                                                 \
    static const good_row rows[] = {__VA_ARGS__};                                                  \
    expect_types(rows, sizeof rows / sizeof rows[0])
#define ERRORS(...)                                                                                \
    static const bad_row rows[] = {__VA_ARGS__};                                                   \
    expect_errors(rows, sizeof rows / sizeof rows[0])

#define TILE  "let z = zeros([4, 8], f32); "
#define INTS  "let z = full([4, 8], 1); "
#define HALF  "let z = zeros([4, 8], f16); "
#define BOOLS "let z = zeros([4, 8], bool); "

// clang-format off
Test(builtin_types, make) {
    TYPES({"let r = zeros([4, 8], f16);", "f16[4, 8]"},
          {"let r = zeros(T = f16, shape = [4]);", "f16[4]"},
          {"let r = full([2, 1], 3);", "i32[2, 1]"},
          {"let r = full([2, 1], 3.0);", "f32[2, 1]"},
          {"let r = full([2], true);", "bool[2]"},
          {"let r = full([2], s);", "f32[2]"},
          {"let r = full([2], x[n]);", "f32[2]"},
          {"let r = iota(5);", "i32[5]"},
          {"let r = iota(next_pow2(5) + cdiv(7, 2));", "i32[12]"},
          {TILE "let r = reshape(z, [2, 2, 8]);", "f32[2, 2, 8]"},
          {"let r = reshape(x[0 +: 16], [4, 4]);", "f32[4, 4]"},
          {TILE "let r = permute(z, [-1, 0]);", "f32[8, 4]"},
          {TILE "let r = transpose(z);", "f32[8, 4]"},
          {"let r = transpose(zeros([2, 3, 4], i8));", "i8[2, 4, 3]"},
          {TILE "let r = broadcast(z[:, newaxis, :], [4, 5, 8]);", "f32[4, 5, 8]"},
          {"let r = broadcast(1.5, [2, 2]);", "f32[2, 2]"});
}

Test(builtin_types, shape) {
    TYPES({TILE "let r = concat(z, zeros([4, 3], f32), 1);", "f32[4, 11]"},
          {TILE "let r = concat(z, z, axis = -2);", "f32[8, 8]"},
          {"let r = concat(iota(3), i64(iota(2)), 0);", "i64[5]"},
          {TILE "let (r, w) = split(z, 1);", "(f32[4, 4], f32[4, 4])"},
          {TILE "let r = interleave(z, z);", "f32[4, 16]"},
          {TILE "let (r, w) = deinterleave(z);", "(f32[4, 4], f32[4, 4])"},
          {TILE "let r = flip(z, 0);", "f32[4, 8]"},
          {TILE "let r = slice(z, 1, 5, 3);", "f32[4, 3]"},
          {TILE "let r = slice(z, n = 2, start = 0, axis = 0);", "f32[2, 8]"},
          {TILE "let r = gather(z, full([4, 3], 1), 1);", "f32[4, 3]"},
          {HALF "let r = gather(z, u64(full([1, 8], 1)), axis = 0);", "f16[1, 8]"});
}

Test(builtin_types, elem) {
    TYPES({TILE "let r = where(z > 0.0, z, 0);", "f32[4, 8]"},
          {"let r = where(n == 1, 1, 2);", "i32"},
          {TILE "let r = min(z, 1.0, s);", "f32[4, 8]"},
          {TILE "let r = fmax(z, 1.0);", "f32[4, 8]"},
          {HALF "let r = clamp(z, 0.0, 1.0);", "f16[4, 8]"},
          {TILE "let r = bitcast(z, u32);", "u32[4, 8]"},
          {"var r = bitcast(1.0, i32);", "i32"},
          {TILE "let r = exp(z);", "f32[4, 8]"},
          {TILE "let r = pow(x = z, y = 2.0);", "f32[4, 8]"},
          {TILE "let r = isnan(z);", "bool[4, 8]"},
          {"let r = popcount(u8(iota(4)));", "i32[4]"},
          {TILE "let r = soft(z);", "f32[4, 8]"});
}

Test(builtin_types, reduce) {
    TYPES({TILE "let r = sum(z);", "f32"},
          {TILE "let r = sum(z, axis = 1);", "f32[4, 1]"},
          {TILE "let r = max(z, axis = -2);", "f32[1, 8]"},
          {TILE "let r = min(z);", "f32"},
          {HALF "let r = sum(z);", "f16"},
          {HALF "let r = max(z);", "f16"},
          {BOOLS "let r = sum(z, axis = 0);", "i32[1, 8]"},
          {BOOLS "let r = any(z);", "bool"},
          {BOOLS "let r = xor(z);", "bool"},
          {"let r = sum(i8(iota(4)));", "i32"},
          {"let r = prod(u16(iota(4)));", "u32"},
          {"let r = xor(u16(iota(4)));", "u16"},
          {"let r = sum(i64(iota(4)));", "i64"},
          {TILE "let r = argmax(z, axis = 1);", "i32[4, 1]"},
          {HALF "let r = argmin(z);", "i32"},
          {TILE "let r = reduce(z, axis = 1, add);", "f32[4, 1]"},
          {TILE "let r = reduce(z, f = add);", "f32"},
          {TILE "let (r, w) = reduce((z, full([4, 8], 1)), top, axis = 0);", "(f32[1, 8], i32[1, 8])"});
}

Test(builtin_types, scan_sort) {
    TYPES({TILE "let r = cumsum(z, axis = 1);", "f32[4, 8]"},
          {"let r = cumsum(iota(4));", "i32[4]"},
          {HALF "let r = cumprod(z, axis = 0, reverse = true, exclusive = true);", "f16[4, 8]"},
          {"let r = cumsum(u8(iota(4)));", "u32[4]"},
          {"let r = cummax(u8(iota(4)));", "u8[4]"},
          {TILE "let r = scan(z, axis = 1, add);", "f32[4, 8]"},
          {TILE "let r = scan(z, axis = 1, add, exclusive = true, init = 0);", "f32[4, 8]"},
          {TILE "let (r, w) = scan((z, full([4, 8], 1)), top, axis = 0, exclusive = true, init = (-inf, 0));",
           "(f32[4, 8], i32[4, 8])"},
          {HALF "let r = sort(z, 1);", "f16[4, 8]"},
          {TILE "let r = sort(z, axis = 0, descending = true);", "f32[4, 8]"},
          {TILE "let (r, w) = topk(z, 3, 1);", "(f32[4, 3], i32[4, 3])"},
          {INTS "let r = histogram(z, 16);", "i32[16]"});
}

Test(builtin_types, dot) {
    TYPES({"let r = dot(zeros([16, 32], f16), zeros([32, 8], f16));", "f32[16, 8]"},
          {"let r = dot(q[0 +: 16, 0 +: 8], q[0 +: 8, 0 +: 4], zeros([16, 4], f32), precision = tf32x3);",
           "f32[16, 4]"},
          {"let r = dot(zeros([2, 16, 32], i8), zeros([2, 32, 8], i8));", "i32[2, 16, 8]"},
          {"let r = dot(zeros([4, 4], f8e4m3), zeros([4, 4], f8e5m2));", "f32[4, 4]"},
          {"let r = dot(zeros([4, 4], f64), zeros([4, 4], f64));", "f64[4, 4]"},
          {"let r = dot_scaled(zeros([4, 64], f8e4m3), zeros([4, 2], u8), zeros([64, 8], f8e5m2), zeros([2, 8], u8));",
           "f32[4, 8]"});
}

Test(builtin_types, atomic_misc) {
    TYPES({"let r = atomic_add(c[n], 1);", "i32"},
          {"let r = atomic_max(c[0 +: 8], iota(8), order = acq_rel, scope = system);", "i32[8]"},
          {"let r = atomic_add(a[iota(4)], 1);", "f16[4]"},
          {"let r = atomic_cas(c[n], 0, 1);", "i32"},
          {"let (r, u, v, w) = philox(1, iota(8));", "(u32[8], u32[8], u32[8], u32[8])"},
          {"let r = rand(n, u64(iota(8)));", "f32[8]"},
          {"let r = randn(-1, 0);", "f32"},
          {TILE "let r = noise(z, 3);", "f32[4, 8]"},
          {"let r = program_id(1);", "i32"},
          {"assert(n > 0, \"positive\"); assert(iota(4) < 4); assume(n < 100);"
           "static_assert(cdiv(7, 2) == 4, \"rounds up\"); print(\"n = {}, x = {}\", n, x[0 +: 4]); let r = num_programs(axis = 0);",
           "i32"});
}

Test(builtin_errors, arguments) {
    ERRORS({"let r = zeros([4]);", "missing-argument", "zeros(shape, T)"},
           {"let r = zeros([4], f32, 1);", "surplus-argument", "takes 2 arguments"},
           {TILE "let r = sum(z, 1);", "surplus-argument", "'axis' is given by name"},
           {TILE "let r = sum(z, axes = 1);", "unknown-argument", "did you mean 'axis'?"},
           {TILE "let r = sort(z, 1, axis = 1);", "repeated-argument", "given twice"},
           {TILE "let r = sum(z, axis = 2);", "bad-axis", "rank 2"},
           {TILE "let r = sum(z, axis = -3);", "bad-axis", "rank 2"},
           {TILE "let r = sum(z, axis = n);", "not-constant", "axis"},
           {"let r = zeros([4], 1.0);", "type-mismatch", "element type"},
           {"let r = sum(s);", "not-a-tile", "'sum' reduces a tile; 's' is a scalar"},
           {"let r = min(s);", "not-a-tile", "min(a, b)"},
           {TILE "let r = min(z, z, axis = 1);", "surplus-argument", "element-wise"},
           {TILE "let r = fmin(z);", "missing-argument", "two operands"});
}

Test(builtin_errors, shapes) {
    ERRORS({TILE "let r = reshape(z, [3, 8]);", "shape-mismatch", "[4, 8] has 32, [3, 8] has 24"},
           {TILE "let r = permute(z, [0, 0]);", "bad-axis", "twice"},
           {TILE "let r = permute(z, [0]);", "bad-axis", "rank 2"},
           {"let r = transpose(iota(4));", "shape-mismatch", "exchanges two axes"},
           {TILE "let r = broadcast(z, [4, 9]);", "shape-mismatch", "[4, 8] does not broadcast to [4, 9]"},
           {"let r = iota(0);", "out-of-range", "from 1 to"},
           {TILE "let r = full([4], z);", "not-a-scalar", "scalar"},
           {TILE "let r = concat(z, zeros([5, 8], f32), 1);", "shape-mismatch", "[4, 8] and [5, 8]"},
           {"let (r, w) = split(iota(3), 0);", "shape-mismatch", "even"},
           {"let (r, w) = deinterleave(zeros([4, 3], f32));", "shape-mismatch", "even"},
           {TILE "let r = slice(z, 1, 6, 3);", "out-of-range", "axis 1"},
           {TILE "let r = gather(z, full([3, 3], 1), 1);", "shape-mismatch", "[4, 8] and [3, 3]"},
           {TILE "let r = gather(z, z, 1);", "type-mismatch", "integer tile"},
           {"let z = zeros([4096, 4096], i8); let r = concat(z, z, 0);", "tile-too-large", "16777216"});
}

Test(builtin_errors, values) {
    ERRORS({"let r = where(n, 1, 2);", "type-mismatch", "n != 0"},
           {TILE "let r = bitcast(z, f16);", "type-mismatch", "f32 has 32 bits, f16 has 16"},
           {BOOLS "let r = bitcast(z, u8);", "type-mismatch", "u8(z)"},
           {INTS "let r = any(z);", "type-mismatch", "any(z != 0)"},
           {BOOLS "let r = max(z);", "type-mismatch", "any(z)"},
           {TILE "let r = xor(z);", "type-mismatch", "integers and bool"},
           {BOOLS "let r = sort(z, 0);", "type-mismatch", "i32(z)"},
           {TILE "let (r, w) = topk(z, 9, 1);", "out-of-range", "from 1 to 8"},
           {TILE "let r = histogram(z, 4);", "type-mismatch", "integers"},
           {INTS "let r = histogram(z, 0);", "out-of-range", "bins"},
           {"let r = cumsum(zeros([2, 2], f32));", "missing-argument", "needs an axis"},
           {TILE "let r = scan(z, axis = 0, add, exclusive = true);", "missing-argument", "init = .."},
           {TILE "let r = scan(z, axis = 0, add, init = 0.0);", "surplus-argument", "exclusive = true"},
           {TILE "let r = reduce(z, 3);", "type-mismatch", "must be a function"},
           {TILE "let (r, w) = reduce((z, iota(4)), top);", "shape-mismatch", "equal shapes"});
}

Test(builtin_errors, dot) {
    ERRORS({"let r = dot(zeros([4, 8], f16), zeros([4, 8], f16));", "shape-mismatch", "[4, 8] and [4, 8]"},
           {"let r = dot(zeros([4, 8], f16), zeros([8, 8], bf16));", "type-mismatch", "one element type"},
           {"let r = dot(zeros([4, 8], i32), zeros([8, 8], i32));", "type-mismatch", "i8 or u8"},
           {"let r = dot(zeros([4, 8], f16), zeros([8, 8], f16), zeros([4, 8], f16));", "type-mismatch",
            "zeros([4, 8], f32)"},
           {"let r = dot(zeros([4, 8], f32), zeros([8, 8], f32), zeros([4, 4], f32));", "shape-mismatch", "'acc'"},
           {"let r = dot(zeros([4, 8], f32), zeros([8, 8], f32), precision = tf23);", "unknown-choice",
            "did you mean 'tf32'?"},
           {"let r = dot(zeros([4, 8], f16), zeros([8, 8], f16), precision = tf32);", "type-mismatch", "operands of f32"},
           {"let r = dot(iota(4), iota(4));", "type-mismatch", "i8 or u8"},
           {"let r = dot(zeros([2, 4, 8], f32), zeros([3, 8, 4], f32));", "shape-mismatch", "batch"},
           {"let r = dot_scaled(zeros([4, 48], f8e4m3), zeros([4, 1], u8), zeros([48, 8], f8e4m3), zeros([1, 8], u8));",
            "shape-mismatch", "multiple of 32"},
           {"let r = dot_scaled(zeros([4, 64], f8e4m3), zeros([4, 1], u8), zeros([64, 8], f8e4m3), zeros([2, 8], u8));",
            "shape-mismatch", "u8[4, 2]"});
}

Test(builtin_errors, effects) {
    ERRORS({"atomic_add(y[n], 1.0);", "access", "inout"},
           {"atomic_add(x[n], 1.0);", "access", "'in' tensor"},
           {"atomic_add(n, 1);", "not-a-view", "indexed tensor"},
           {"atomic_add(c, 1);", "not-a-view", "c[..]"},
           {"atomic_and(q[n, n], 1.0);", "type-mismatch", "i32, u32, i64 and u64"},
           {"atomic_xchg(a[n], 1.0);", "type-mismatch", "i32, u32, i64, u64, f32 and f64"},
           {"atomic_add(c[0 +: 8], iota(4));", "shape-mismatch", "[4] does not broadcast to [8]"},
           {"atomic_add(c[n] else 1, 1);", "else-not-allowed", "gives 0"},
           {"atomic_add(c[n], 1, order = relaxd);", "unknown-choice", "did you mean 'relaxed'?"},
           {"let r = rand(iota(4), 1);", "not-a-scalar", "seed"},
           {"let r = rand(s, 1);", "type-mismatch", "32 or 64 bits"},
           {"let r = program_id(2);", "out-of-range", "from 0 to 1"},
           {"static_assert(1 == 2, \"one is not two\");", "static-assert", "one is not two"},
           {"static_assert(n == 2, \"n\");", "not-constant", "static_assert"},
           {"assert(n, \"n\");", "type-mismatch", "n != 0"},
           {"print(\"{} {}\", n);", "argument-count", "2 '{}'"},
           {"print(n);", "type-mismatch", "string literal"},
           {TILE "let r = whole(z);", "whole-tile-built-in", "'whole' is called from here"},
           {TILE "let r = seeded(z, full([4, 8], 1));", "not-a-scalar", "one scalar for all elements"});
}
// clang-format on

// Rules that meet what depends must accept it.
Test(builtin_dependent, accepted) {
    static const char text[] =
        "kernel g<T: type, N: int = 8, A: int = 0, E: bool = true>(x: in T[M], c: inout T[M])\n{\n"
        "    let v = x[0 +: N];\n"
        "    let w = reshape(v, [N, 1]);\n"
        "    let m = broadcast(w, [N, 16]);\n"
        "    let a = sum(m, axis = A);\n"
        "    let b = permute(m, [A, 1 - A]);\n"
        "    let (p, q) = split(m, 0);\n"
        "    let d = dot(m, transpose(m), precision = tf32);\n"
        "    let e = concat(m, zeros([16, 16], T), A);\n"
        "    let (k, l) = topk(m, N, 1);\n"
        "    let f = cumsum(v, exclusive = E);\n"
        "    let h = slice(m, 1, N, 2);\n"
        "    let i = gather(m, full([N, 16], N), A);\n"
        "    let j = bitcast(v, u32);\n"
        "    let o = iota(N) + histogram(i32(v), N);\n"
        "    let r = rand(1, v);\n"
        "    let s = any(v);\n"
        "    if N == 3 { static_assert(N != 3, \"not three\"); }\n"
        "    static_assert(N > 2, \"more\");\n"
        "    atomic_and(c[0], x[1]);\n"
        "}\n";
    fixture f;
    check(&f, text, true);
    cr_expect(f.diags.errors == 0, "%s", messages(&f));
    tk_arena_release(&f.arena);
}

// A sum of a narrow float is computed in f32 and rounded once; one of bool counts in i32.
Test(builtin_nodes, narrow_sums) {
    fixture f;
    check(&f, HALF "let r = sum(z, axis = 1);", false);
    cr_assert_not_null(f.program, "%s", messages(&f));
    const tk_x *x = binding(&f)->value;
    cr_assert_eq(x->kind, TK_X_CAST);
    cr_expect_eq(x->type->dtype, TK_F16);
    x = x->arg[0];
    cr_assert_eq(x->kind, TK_X_BUILTIN);
    cr_expect_eq(x->u.builtin.id, TK_BI_SUM);
    cr_expect_eq(x->u.builtin.attr.axis, 1);
    cr_expect_eq(x->type->dtype, TK_F32);
    cr_expect_eq(x->arg[0]->kind, TK_X_CAST);
    cr_expect_eq(x->arg[0]->type->dtype, TK_F32);
    tk_arena_release(&f.arena);

    check(&f, BOOLS "let r = cumsum(z, axis = -1, reverse = true);", false);
    cr_assert_not_null(f.program, "%s", messages(&f));
    x = binding(&f)->value;
    cr_assert_eq(x->kind, TK_X_BUILTIN);
    cr_expect_eq(x->u.builtin.attr.axis, 1);
    cr_expect(x->u.builtin.attr.reverse);
    cr_expect_eq(x->arg[0]->type->dtype, TK_I32);
    tk_arena_release(&f.arena);
}

Test(builtin_nodes, operands) {
    fixture f;
    check(&f,
          TILE "let (r, w) = scan((z, full([4, 8], 1)), top, axis = 0, exclusive = true, "
               "init = (-inf, 0));",
          false);
    cr_assert_not_null(f.program, "%s", messages(&f));
    const tk_x *x = binding(&f)->value;
    cr_assert_eq(x->n, 4);
    cr_expect_eq(x->arg[2]->type->dtype, TK_F32);
    cr_expect_eq(x->arg[3]->type->dtype, TK_I32);
    cr_expect_not_null(x->u.builtin.attr.fn);
    cr_expect(x->u.builtin.attr.exclusive);
    tk_arena_release(&f.arena);

    check(&f, "let r = atomic_cas(c[n], 0, 1, order = release, scope = block);", false);
    cr_assert_not_null(f.program, "%s", messages(&f));
    x = binding(&f)->value;
    cr_assert_eq(x->kind, TK_X_ATOMIC);
    cr_expect_eq(x->n, 2);
    cr_expect_eq(x->u.atomic.id, TK_BI_ATOMIC_CAS);
    cr_expect_eq(x->u.atomic.order, TK_ORDER_RELEASE);
    cr_expect_eq(x->u.atomic.scope, TK_SCOPE_BLOCK);
    tk_arena_release(&f.arena);
}

// A bitcast of a constant is one.
Test(builtin_nodes, folding) {
    fixture f;
    check(&f, "var r = bitcast(1.0, u32);", false);
    cr_assert_not_null(f.program, "%s", messages(&f));
    const tk_x *x = binding(&f)->value;
    cr_assert_eq(x->kind, TK_X_CONST);
    cr_expect_eq(x->u.konst.bits, 0x3f800000);
    tk_arena_release(&f.arena);
}
