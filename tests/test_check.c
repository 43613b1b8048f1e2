// SPDX-License-Identifier: Apache-2.0
// The checker from the inside: reflection, binding, instances. Texts of diagnostics are goldens
// (tests/golden/check).
#include "lang/check.h"
#include "parser/parse.h"
#include "parsing.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    parsing p;
    tk_unit unit;
} fixture;

static void begin(fixture *f, const char *text) {
    memset(f, 0, sizeof *f);
    parsing_begin(&f->p);
    f->unit.sources = &f->p.sources;
    f->unit.names = &f->p.names;
    tk_unit_file file = {.ast = parse_text(&f->p, text)};
    tk_vec_push(&f->p.arena, &f->unit.files, file);
    tk_check_unit(&f->p.arena, &f->unit, &f->p.diags);
}

static void end(fixture *f) { parsing_end(&f->p); }

// "id:line ..." of all diagnostics, in order.
static const char *ids(fixture *f) {
    tk_buf b;
    tk_buf_init(&b, &f->p.arena);
    for (uint32_t i = 0; i < f->p.diags.list.n; i++) {
        const tk_diag *d = f->p.diags.list.at[i];
        const tk_source *s = tk_source_of(&f->p.sources, d->span.file);
        uint32_t line = 0, col;
        if (s) {
            tk_line_col(s, d->span.begin, &line, &col);
        }
        tk_buf_fmt(&b, "%s%s:%u", i ? " " : "", d->id, line);
    }
    return tk_buf_text(&b);
}

static const char *text(fixture *f) {
    tk_buf b;
    tk_buf_init(&b, &f->p.arena);
    tk_diags_print(&b, &f->p.sources, &f->p.diags, false);
    return tk_buf_text(&b);
}

#define EXPECT_IDS(source, want)                                                                   \
    do {                                                                                           \
        fixture f_;                                                                                \
        begin(&f_, source);                                                                        \
        cr_expect_str_eq(ids(&f_), want, "%s", text(&f_));                                         \
        end(&f_);                                                                                  \
    } while (0)

// ---- Binding ----------------------------------------------------------------------------------
typedef struct {
    const char *name, *dtype; // dtype NULL: unknown
    int rank;                 // -1: unknown shape
    int64_t dim[3];
} arg;

// Binds the kernel to the arguments; those that are not named are absent where optional, else of
// unknown type and shape. `defines`: "NAME=VALUE NAME=VALUE".
static const tk_bound *bind(fixture *f, const char *kernel, const arg *args, size_t n,
                            const char *defines) {
    tk_kernel_info *k = tk_unit_kernel(&f->p.arena, &f->unit, kernel);
    cr_assert_not_null(k);
    tk_arg_known known[16] = {0};
    tk_named_expr define[8] = {0};
    tk_bind_in in = {.arg = known, .carg = define};
    for (uint32_t i = 0; i < k->nparam; i++) {
        known[i].given = !k->param[i].optional;
        for (size_t a = 0; a < n; a++) {
            if (strcmp(args[a].name, k->param[i].name) != 0) {
                continue;
            }
            known[i].given = true;
            known[i].has_dtype =
                args[a].dtype &&
                tk_dtype_from_name(args[a].dtype, strlen(args[a].dtype), &known[i].dtype);
            known[i].has_shape = args[a].rank >= 0;
            known[i].rank = args[a].rank >= 0 ? (uint32_t)args[a].rank : 0;
            memcpy(known[i].dim, args[a].dim, sizeof args[a].dim);
        }
    }
    char copy[256];
    strcpy(copy, defines);
    for (char *d = strtok(copy, " "); d; d = strtok(NULL, " ")) {
        char *eq = strchr(d, '=');
        *eq = '\0';
        uint32_t s = tk_sources_add(&f->p.sources, "-D", eq + 1, strlen(eq + 1));
        tk_named_expr *e = &define[in.ncarg++];
        e->name = tk_strdup(&f->p.arena, d);
        e->value = tk_parse_expr(&f->p.arena, &f->p.names, &f->p.sources, s, &f->p.diags);
        cr_assert_not_null(e->value);
        e->span = e->value->span;
    }
    return tk_bind(&f->p.arena, &f->unit, k, &in, &f->p.diags);
}

#define ARGS(...) (arg[]){__VA_ARGS__}, sizeof((arg[]){__VA_ARGS__}) / sizeof(arg)

static const char softmax[] =
    "kernel softmax<T: type, BN: int = next_pow2(N)>(x: in T[M, N], y: out T[M, N])\n"
    "    grid (i in M)\n"
    "{\n"
    "    let row = f32(x[i, 0 +: BN] else -inf);\n"
    "    let e = exp(row - max(row));\n"
    "    y[i, 0 +: BN] = T(e / sum(e));\n"
    "}\n";

Test(check, softmax_is_bound_and_instantiated) {
    fixture f;
    begin(&f, softmax);
    const tk_bound *b = bind(&f, "softmax", ARGS({"x", "f16", 2, {8, 781}}), "");
    cr_assert_not_null(b, "%s", text(&f));
    cr_expect_str_eq(b->key, "T=f16,BN=1024");
    cr_expect_eq(b->dim[0], 8);
    cr_expect_eq(b->dim[1], 781);
    cr_expect_str_eq(tk_type_text(&f.p.arena, b->param[1]), "out f16[8, 781]");
    tk_program *p = tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags);
    cr_assert_not_null(p, "%s", text(&f));
    cr_expect_eq(p->insts.n, 1);
    cr_expect_eq(p->ngrid, 1);
    cr_expect_eq(p->grid[0]->kind, TK_X_DIM);
    cr_expect_eq(p->kernel->body->list.n, 3);
    const tk_xs *store = p->kernel->body->list.at[2];
    cr_expect_eq(store->kind, TK_XS_STORE);
    cr_expect_str_eq(tk_type_text(&f.p.arena, store->value->type), "f16[1024]");
    end(&f);
}

Test(check, binding_says_what_disagrees) {
    static const char source[] = "kernel k<T: type, D: int, BM: int = 64>(a: in T[M, D], b: in "
                                 "T[D, 4], c: out T[M], s: i32)\n"
                                 "{ c[0] = a[0, 0] + b[0, 0]; }\n";
    static const struct {
        arg a, b;
        const char *defines, *want;
    } table[] = {
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 4}}, "", ""},
        {{"a", "f16", 2, {2, 8}}, {"b", "f32", 2, {8, 4}}, "", "argument-conflict:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {7, 4}}, "", "argument-conflict:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 5}}, "", "dimension-mismatch:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 1, {8}}, "", "argument-rank:1"},
        {{"a", "f16", 2, {2, 8}}, {"c", "f16", 1, {3}}, "", "dimension-mismatch:1"},
        {{"a", "f16", 2, {(int64_t)1 << 31, 8}}, {"b", "f16", 2, {8, 4}}, "", "argument-size:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 4}}, "BN=3", "unknown-parameter:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 4}}, "M=3", "unknown-parameter:1"},
        {{"a", "f16", 2, {2, 8}},
         {"b", "f16", 2, {8, 4}},
         "D=9",
         "argument-conflict:1 argument-conflict:1"},
        {{"a", "f16", 2, {2, 8}},
         {"b", "f16", 2, {8, 4}},
         "T=f32",
         "argument-conflict:1 argument-conflict:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 4}}, "BM=1.5", "type-mismatch:1"},
        {{"a", "f16", 2, {2, 8}}, {"b", "f16", 2, {8, 4}}, "BM=3 BM=4", "repeated-argument:1"},
        {{"a", NULL, 2, {2, 8}}, {"b", NULL, 2, {8, 4}}, "", "no-value:1"},
        {{"a", "f16", -1, {0}}, {"b", "f16", 2, {8, 4}}, "", "no-value:1"},
        {{"s", "f32", 0, {0}}, {"a", "f16", 2, {2, 8}}, "", "argument-type:1"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fixture f;
        begin(&f, source);
        const tk_bound *b = bind(&f, "k", ARGS(table[i].a, table[i].b), table[i].defines);
        cr_expect_str_eq(ids(&f), table[i].want, "row %zu: %s", i, text(&f));
        cr_expect_eq(b != NULL, *table[i].want == '\0', "row %zu", i);
        end(&f);
    }
}

Test(check, dimension_text_names_both) {
    fixture f;
    begin(&f, "kernel k(x: in f32[N], y: out f32[N]) { y[0] = x[0]; }");
    cr_expect_null(bind(&f, "k", ARGS({"x", "f32", 1, {780}}, {"y", "f32", 1, {781}}), ""));
    cr_expect_str_eq(f.p.diags.list.at[0]->text, "dimension 'N' is 781 in 'y' but 780 in 'x'");
    end(&f);
}

Test(check, functions_are_given_by_name) {
    static const char source[] =
        "fn causal(q: i32, k: i32) -> bool { return q >= k; }\n"
        "kernel kk<mask: fn(i32, i32) -> bool = always>(y: out i32[N]) grid (i in N)\n"
        "{ y[i] = i32(mask(i, 3)); }\n"
        "kernel c(ids: in i32[L]) = kk(mask = fn(q: i32, k: i32) -> bool { return ids[q] == "
        "ids[k]; "
        "});\n";
    static const struct {
        const char *kernel, *defines, *key, *ids;
        uint32_t insts;
    } table[] = {
        {"kk", "", "mask=always", "", 1},
        {"kk", "mask=causal", "mask=causal", "", 2},
        {"kk", "mask=fn(q:i32,k:i32)->bool{return\tq<k;}", "mask=fn@-D:0", "", 2},
        {"kk", "mask=cusal", NULL, "unknown-name:1", 0},
        {"kk", "mask=3", NULL, "type-mismatch:1", 0},
        {"kk", "mask=same", NULL, "signature-mismatch:1", 0},
        {"c", "mask=causal", NULL, "already-fixed:1", 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fixture f;
        begin(&f, source);
        const tk_bound *b = bind(&f, table[i].kernel, ARGS({"y", "i32", 1, {5}}), table[i].defines);
        cr_expect_str_eq(ids(&f), table[i].ids, "row %zu: %s", i, text(&f));
        cr_assert_eq(b != NULL, table[i].key != NULL, "row %zu: %s", i, text(&f));
        if (b) {
            cr_expect_str_eq(b->key, table[i].key);
            tk_program *p = tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags);
            cr_assert_not_null(p, "%s", text(&f));
            cr_expect_eq(p->insts.n, table[i].insts, "row %zu", i);
        }
        end(&f);
    }
}

Test(check, captures_are_listed) {
    fixture f;
    begin(&f,
          "fn twice<g: fn(i32) -> i32>(x: i32) -> i32 { return g(g(x)); }\n"
          "kernel k<h: fn(i32) -> i32>(y: out i32[N]) grid (i in N) { y[i] = twice(i, f = 3); }\n");
    cr_expect_str_eq(ids(&f), "unknown-argument:2");
    end(&f);
    begin(&f,
          "fn twice<g: fn(i32) -> i32>(x: i32) -> i32 { return g(g(x)); }\n"
          "kernel k<h: fn(i32) -> i32>(y: out i32[N]) grid (i in N) { y[i] = twice(i, g = h); }\n"
          "kernel c(t: in i32[L], s: i32) = k(h = fn(x: i32) -> i32 { return t[x] + s + L; });\n");
    const tk_bound *b = bind(&f, "c", ARGS({"y", "i32", 1, {5}}, {"t", "i32", 1, {6}}), "");
    tk_program *p = b ? tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags) : NULL;
    cr_assert_not_null(p, "%s", text(&f));
    cr_assert_eq(p->insts.n, 3);
    cr_expect_eq(p->insts.at[0]->captures.n, 2);
    cr_expect_eq(p->insts.at[1]->captures.n, 2);
    cr_expect_str_eq(p->insts.at[1]->name, "twice");
    cr_expect_eq(p->kernel->captures.n, 0);
    end(&f);
}

// ---- Instances --------------------------------------------------------------------------------
Test(check, instances_are_shared_by_key) {
    fixture f;
    begin(&f, "fn g<T: type>(x: T) -> T { return x * 2; }\n"
              "fn h<N: int>(x: f32[N]) -> f32[N] { return g(x); }\n"
              "kernel k(x: in f32[M], y: out f32[M]) {\n"
              "    let a = h(x[0 +: 8]) + h(x[8 +: 8]);\n"
              "    let b = h(x[0 +: 16]);\n"
              "    let c = g(iota(8));\n"
              "    y[0] = g(x[0]);\n"
              "}\n");
    const tk_bound *b = bind(&f, "k", ARGS({"x", "f32", 1, {32}}), "");
    tk_program *p = b ? tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags) : NULL;
    cr_assert_not_null(p, "%s", text(&f));
    // g at f32[8], f32[16], i32[8] and f32; h at 8 and 16; the kernel
    cr_expect_eq(p->insts.n, 7);
    cr_expect_str_eq(p->insts.at[0]->name, "g");
    cr_expect(p->insts.at[0]->lifted);
    cr_expect_eq(p->insts.at[0]->lift[0], 8);
    for (uint32_t i = 0; i < p->insts.n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            cr_expect_str_neq(p->insts.at[i]->name, p->insts.at[k]->name);
        }
    }
    end(&f);
}

Test(check, variables_vary_from_their_declaration) {
    fixture f;
    begin(&f, "fn late(x: f32) -> f32 {\n"
              "    var a = 0.0;\n"
              "    var b = 1.0;\n"
              "    for i in 0 .. 3 { b = a; a = x; }\n"
              "    return b;\n"
              "}\n"
              "kernel k(x: in f32[M], y: out f32[M]) { y[0 +: 8] = late(x[0 +: 8]); }\n");
    const tk_bound *b = bind(&f, "k", ARGS({"x", "f32", 1, {32}}), "");
    tk_program *p = b ? tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags) : NULL;
    cr_assert_not_null(p, "%s", text(&f));
    const tk_xblock *body = p->insts.at[0]->body;
    cr_assert_eq(body->list.n, 4);
    cr_expect(body->list.at[0]->var[0]->varying);
    cr_expect(body->list.at[1]->var[0]->varying);
    end(&f);
}

// ---- Reflection -------------------------------------------------------------------------------
Test(check, a_kernel_shows_its_parameters) {
    fixture f;
    begin(&f, "@tune(BM in {32, 64}) kernel k<T: type, BM: int, act: fn(f32) -> f32 = same, S: "
              "float = 0.5>(\n"
              "    x: in T[M, 64], b: in f32[N] = none, y: out T[M, N], s: f32 = 2) grid (i in "
              "cdiv(M, BM), j in N) { }\n"
              "kernel sp(e: in i32[L, M]) = k(BM = 16);\n");
    cr_assert_str_eq(ids(&f), "", "%s", text(&f));
    tk_kernel_info **list;
    uint32_t n;
    tk_unit_kernels(&f.p.arena, &f.unit, &list, &n);
    cr_assert_eq(n, 2);
    const tk_kernel_info *k = list[0], *s = list[1];
    cr_expect_eq(k->nparam, 4);
    cr_expect_str_eq(k->param[0].dim[1], "64");
    cr_expect(k->param[1].optional && !k->param[1].has_default);
    cr_expect(k->param[3].has_default);
    cr_expect(tk_const_same(k->param[3].def, tk_const_f64(TK_F32, 2.0)));
    cr_expect_eq(k->ncparam, 4);
    cr_expect_str_eq(k->cparam[2].kind, "fn(f32) -> f32");
    cr_expect_str_eq(k->cparam[1].value, "32");
    cr_expect(k->cparam[0].from_arguments && !k->cparam[1].from_arguments);
    cr_expect_eq(k->ndim, 2);
    cr_expect_str_eq(k->dim[1], "N");
    cr_expect_str_eq(k->grid_count[0], "cdiv(M, BM)");
    cr_expect_eq(s->nparam, 5);
    cr_expect(s->cparam[1].fixed);
    cr_expect_str_eq(s->cparam[1].value, "16");
    cr_expect_str_eq(s->dim[2], "L");
    cr_expect_null(tk_unit_kernel(&f.p.arena, &f.unit, "nothing"));
    end(&f);
}

// ---- Names of one meaning -----------------------------------------------------------------------
Test(check, a_kernel_and_what_specialises_it_have_names_of_their_own) {
    EXPECT_IDS(
        "kernel k<f: fn(i32) -> i32 = same>(x: in i32[N], y: out i32[N]) { y[0] = f(x[0]); }\n"
        "kernel fine(t: in i32[N]) = k(f = fn(x: i32) -> i32 { return t[x]; });\n"
        "kernel bad(x: in i32[N]) = k();\n"
        "kernel hides(t: in i32[N]) = k(f = fn(t: i32) -> i32 { return t; });\n",
        "name-bound-twice:3 name-bound-twice:4");
}

Test(check, given_leaves_the_rest_unchecked) {
    fixture f;
    begin(&f, "kernel k(x: in f32[N], y: out f32[N], b: in f32[N] = none) {\n"
              "    if !given(b) { y[0] = x[0]; return; }\n"
              "    y[0] = x[0] + b[0];\n"
              "}\n");
    const tk_bound *b = bind(&f, "k", ARGS({"x", "f32", 1, {4}}), "");
    cr_assert_not_null(b, "%s", text(&f));
    cr_expect_str_eq(b->key, "!b");
    cr_expect_not_null(tk_instantiate(&f.p.arena, &f.unit, b, &f.p.diags), "%s", text(&f));
    cr_expect_str_eq(ids(&f), "");
    end(&f);
}

Test(check, general_checking_accepts_what_may_be_right) {
    EXPECT_IDS("fn f<T: type, N: int>(x: T[N], y: f32[N], z: T) -> T[N] {\n"
               "    let a = x + z * 2 + x[:];\n"
               "    let b = y + zeros([N / 2 * 2], f32);\n"
               "    let c = dot(zeros([N, 16], T), zeros([16, N], T));\n"
               "    let d = f32(x) + y + T(1);\n"
               "    if N == 4 { return x + T(y); }\n"
               "    let e = exp(x) + popcount(x);\n"
               "    return T(d);\n"
               "}\n",
               "");
}

Test(check, deep_and_many) {
    EXPECT_IDS("fn f<N: int>(x: f32) -> f32 { return f(x, N = N + 1); }\n"
               "kernel k(y: out f32[M]) { y[0] = f(1.0, N = 1); }\n",
               "recursion:1");
    EXPECT_IDS("fn f<g: fn(f32) -> f32>(x: f32) -> f32 { return f(x, g = g); }\n", "recursion:1");
    EXPECT_IDS("const A = B; const B = C; const C = A + D;", "constant-cycle:1 unknown-name:1");
}
