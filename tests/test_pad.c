// SPDX-License-Identifier: Apache-2.0
// The pass pad: kernels on tiles whose extents are no powers of two compute the same bits before
// and after it, whatever stands in the padding, and every tile's extents are powers of two then.
#include "test_pad.h"

// ---- Shapes and types ---------------------------------------------------------------------------

static const shape shapes[] = {
    {1, {3}},       {1, {5}},        {1, {16}},      {1, {781}},        {2, {3, 5}},
    {2, {5, 48}},   {2, {1, 7}},     {2, {12, 1}},   {2, {4, 6}},       {3, {2, 3, 4}},
    {3, {3, 7, 5}}, {3, {6, 1, 96}}, {4, {3, 2, 5}}, {4, {3, 2, 5, 3}}, {5, {3, 1, 2, 5, 3}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const tk_dtype types[] = {TK_BOOL,   TK_I8,     TK_I16,  TK_I32, TK_I64,
                                 TK_U8,     TK_U16,    TK_U32,  TK_U64, TK_F16,
                                 TK_F8E4M3, TK_F8E5M2, TK_BF16, TK_F32, TK_F64};
enum { TYPES = sizeof types / sizeof types[0] };

static shape with(shape s, int axis, int64_t n) {
    s.dim[axis] = n;
    return s;
}

static shape shape_at(unsigned i) {
    shape s = shapes[i];
    for (unsigned d = 0; d < s.rank; d++) {
        s.dim[d] = s.dim[d] ? s.dim[d] : 1;
    }
    return s;
}

// f(shape, axis, type) for all that the op takes.
static void each(bool takes_bool, void (*f)(shape s, int axis, tk_dtype t)) {
    for (unsigned i = 0; i < SHAPES; i++) {
        const shape s = shape_at(i);
        for (int axis = 0; axis < (int)s.rank; axis++) {
            for (unsigned t = takes_bool ? 0 : 1; t < TYPES; t++) {
                f(s, axis, types[t]);
            }
        }
    }
}

// ---- Reductions ---------------------------------------------------------------------------------

static void reduce_case(const char *op, const char *kind, shape s, int axis, tk_dtype t,
                        tk_dtype to, values v) {
    const shape none = {0};
    begin();
    const char *x = input(t, s, v);
    const shape r = axis < 0 ? none : with(s, axis, 1);
    say("  %%r = %s %s %s%s : %s\n", op, kind, x, axis < 0 ? "" : text(" axis=%d", axis),
        type(to, r));
    output("%r", to, r);
    (void)compare(text("%s %s %s axis %d", op, kind, type(t, s), axis));
}

static void reduce_kinds(shape s, int axis, tk_dtype t) {
    static const char *const logic[] = {"any", "all", "xor"};
    for (unsigned i = 0; i < 3 && t == TK_BOOL; i++) {
        reduce_case("reduce", logic[i], s, axis, t, t, ANY);
    }
    if (t == TK_BOOL) {
        return;
    }
    reduce_case("reduce", "min", s, axis, t, t, ANY);
    reduce_case("reduce", "max", s, axis, t, t, ANY);
    reduce_case("arg_reduce", "min", s, axis, t, TK_I32, ANY);
    reduce_case("arg_reduce", "max", s, axis, t, TK_I32, ANY);
    reduce_case("arg_reduce", "max", s, axis, t, TK_I32, SMALL);
    if (tk_dtype_is_int(t)) {
        reduce_case("reduce", "xor", s, axis, t, t, ANY);
    }
    if (tk_dtype_bits(t) >= 32) {
        reduce_case("reduce", "sum", s, axis, t, t, SMALL);
        reduce_case("reduce", "sum", s, axis, t, t, ZEROS);
        reduce_case("reduce", "prod", s, axis, t, t, SIGNS);
    }
}

static void reduce_one(shape s, int axis, tk_dtype t) {
    reduce_kinds(s, axis, t);
    if (axis == 0) {
        reduce_kinds(s, TK_AXIS_ALL, t);
    }
}

Test(pad, reductions) { each(true, reduce_one); }

// All elements are what the padding gets, or a NaN.
Test(pad, arg_reductions_never_choose_padding) {
    static const char *const kind[] = {"min", "max"};
    const shape s = {2, {3, 5}}, none = {0};
    for (unsigned i = 0; i < 2 * TYPES; i++) {
        const tk_dtype t = types[i / 2];
        const tk_const c = i % 2 ? tk_const_least(t) : tk_const_greatest(t);
        if (t == TK_BOOL) {
            continue;
        }
        begin();
        say("  %%c = const bits(0x%llx) : %s\n", (unsigned long long)c.bits, type(t, s));
        say("  %%r = arg_reduce %s %%c : i32\n", kind[i % 2]);
        output("%r", TK_I32, none);
        say("  %%q = arg_reduce %s %%c axis=1 : i32[3, 1]\n", kind[i % 2]);
        output("%q", TK_I32, with(s, 1, 1));
        (void)compare("arg_reduce of the worst values");
    }
}

// ---- Scans, sorting -----------------------------------------------------------------------------

static void scan_one(shape s, int axis, tk_dtype t) {
    static const char *const kind[] = {"min", "max", "sum", "prod"};
    static const char *const how[] = {"", " reverse", " exclusive", " reverse exclusive"};
    for (unsigned i = 0; i < 4 * (tk_dtype_bits(t) >= 32 ? 4U : 2U); i++) {
        const values v[] = {ANY, SMALL, ZEROS};
        begin();
        const char *x = input(t, s, v[next() % 3]);
        say("  %%r = scan %s %s axis=%d%s : %s\n", kind[i / 4], x, axis, how[i % 4], type(t, s));
        output("%r", t, s);
        (void)compare(text("scan %s%s of %s", kind[i / 4], how[i % 4], type(t, s)));
    }
}

Test(pad, scans) { each(false, scan_one); }

static void sort_one(shape s, int axis, tk_dtype t) {
    for (unsigned i = 0; i < 5; i++) {
        const int64_t n = s.dim[axis], few[] = {1, n, (n + 1) / 2};
        begin();
        const char *x = input(t, s, next() % 2 ? ANY : SMALL);
        const shape r = i < 2 ? s : with(s, axis, few[i - 2]);
        if (i < 2) {
            say("  %%r = sort %s axis=%d%s : %s\n", x, axis, i ? " descending" : "", type(t, s));
        } else {
            say("  %%r, %%i = topk %s axis=%d : %s, %s\n", x, axis, type(t, r), type(TK_I32, r));
            output("%i", TK_I32, r);
        }
        output("%r", t, r);
        (void)compare(text("sort or topk of %s", type(t, s)));
    }
}

Test(pad, sorting) { each(false, sort_one); }

static void histogram_one(shape s, int axis, tk_dtype t) {
    static const int64_t bins[] = {1, 3, 8, 256, 300};
    for (unsigned i = 0; i < 5 && axis == 0 && tk_dtype_is_int(t); i++) {
        const shape r = {1, {bins[i]}};
        begin();
        const char *x = input(t, s, next() % 2 ? ANY : SMALL);
        say("  %%r = histogram %s : %s\n", x, type(TK_I32, r));
        output("%r", TK_I32, r);
        (void)compare(text("histogram of %s", type(t, s)));
    }
}

Test(pad, histograms) { each(false, histogram_one); }

// ---- Functions of one's own ---------------------------------------------------------------------

// Associative, not commutative. Padding is random, so that what is not kept out shows.
static const char *const combine[] = {
    "    %e = mul %c, %a : T\n    %f = mul %c, %b : T\n    %g = add %f, %d : T\n    yield %e, %g\n",
    // with an assert that fails on padding alone, and a loop that ends on real elements alone
    "    %n = const -4 : T\n    %h = gt %a, %n : bool\n    assert %h text=\"a\"\n"
    "    %i = gt %c, %n : bool\n    assert %i text=\"c\"\n"
    "    %one = const 1 : T\n"
    "    %w = while carry (%u = %a) : T {\n      %p = le %u, %n : bool\n      yield %p\n    } do "
    "(%s) {\n"
    "      yield %s\n    }\n"
    "    %e = add %w, %c : T\n    %l = const 3 : T\n    %m = min %e, %l : T\n"
    "    %k = max %m, %n : T\n    %o = max %k, %a : T\n    yield %o, %d\n",
};

static void say_region(tk_dtype t, const char *body) {
    const char *name = tk_dtype_name(t);
    say(" (%%a: %s, %%b: %s, %%c: %s, %%d: %s) {\n", name, name, name, name);
    for (const char *at = body; *at; at++) {
        if (*at == 'T' && at[-1] == ' ') {
            say("%s", name);
        } else {
            say("%c", *at);
        }
    }
    say("  }\n");
}

// Padding is -100 where the assert would fail on it.
static const char *input_fn(tk_dtype t, shape s, unsigned body) {
    if (body == 0) {
        return input(t, s, ANY);
    }
    const unsigned at = add_tensor("in", t, s, SMALL);
    say("  %%o%u = const -100 : %s\n", at, type(t, s));
    say("  %%v%u = load %%x%u[%s] else %%o%u : %s\n", k.names, at, ranges(s), at, type(t, s));
    return text("%%v%u", k.names++);
}

static void reduce_fn_case(shape s, int axis, tk_dtype t, unsigned body) {
    const shape none = {0};
    const shape r = axis < 0 ? none : with(s, axis, 1);
    begin();
    const char *x = input_fn(t, s, body), *y = input_fn(t, s, body);
    say("  %%r, %%q = reduce_fn %s, %s%s : %s, %s", x, y, axis < 0 ? "" : text(" axis=%d", axis),
        type(t, r), type(t, r));
    say_region(t, combine[body]);
    output("%r", t, r);
    output("%q", t, r);
    (void)compare(text("reduce_fn of %s, axis %d", type(t, s), axis));
}

static void scan_fn_case(shape s, int axis, tk_dtype t, unsigned body) {
    static const char *const how[] = {"", " reverse", " exclusive", " reverse exclusive"};
    for (unsigned i = 0; i < 4; i++) {
        begin();
        const char *x = input_fn(t, s, body), *y = input_fn(t, s, body);
        say("  %%i0 = const 2 : %s\n  %%i1 = const 1 : %s\n", tk_dtype_name(t), tk_dtype_name(t));
        say("  %%r, %%q = scan_fn %s, %s%s axis=%d%s : %s, %s", x, y, i < 2 ? "" : ", %i0, %i1",
            axis, how[i], type(t, s), type(t, s));
        say_region(t, combine[body]);
        output("%r", t, s);
        output("%q", t, s);
        (void)compare(text("scan_fn%s of %s", how[i], type(t, s)));
    }
}

static void fn_one(shape s, int axis, tk_dtype t) {
    if (!tk_dtype_is_int(t)) {
        return;
    }
    for (unsigned body = 0; body < (tk_dtype_is_signed(t) ? 2U : 1U); body++) {
        reduce_fn_case(s, axis, t, body);
        scan_fn_case(s, axis, t, body);
        if (axis == 0) {
            reduce_fn_case(s, TK_AXIS_ALL, t, body);
        }
    }
}

Test(pad, functions_of_ones_own) { each(false, fn_one); }

// ---- Moving elements ----------------------------------------------------------------------------

static void move_one(shape s, int axis, tk_dtype t) {
    const int64_t n = s.dim[axis];
    const int last = (int)s.rank - 1;
    if ((next() >> 20) % 3 && t != TK_I32) { // moves know no types: not all of them each time
        return;
    }
    begin();
    const char *x = input(t, s, ANY), *y = input(t, with(s, axis, n / 2 + 1), ANY);
    say("  %%f = flip %s axis=%d : %s\n", x, axis, type(t, s));
    output("%f", t, s);
    say("  %%g = concat %s, %%f axis=%d : %s\n", x, axis, type(t, with(s, axis, 2 * n)));
    output("%g", t, with(s, axis, 2 * n));
    const shape r = with(s, axis, n + n / 2 + 1);
    say("  %%c = concat %s, %s axis=%d : %s\n", x, y, axis, type(t, r));
    output("%c", t, r);
    (void)compare("flip, concat");
    begin();
    x = input(t, s, ANY);
    const int64_t start = n / 3, some = n - start - (n > 4);
    say("  %%s = slice %s axis=%d start=%lld : %s\n", x, axis, (long long)start,
        type(t, with(s, axis, some)));
    output("%s", t, with(s, axis, some));
    const shape twice = with(s, last, 2 * s.dim[last]);
    y = input(t, s, ANY);
    say("  %%i = interleave %s, %s : %s\n", x, y, type(t, twice));
    say("  %%d, %%e = deinterleave %%i : %s, %s\n", type(t, s), type(t, s));
    output("%i", t, twice);
    output("%e", t, s);
    (void)compare("slice, interleave, deinterleave");
}

Test(pad, moves) { each(true, move_one); }

static void gather_one(shape s, int axis, tk_dtype t) {
    if (!tk_dtype_is_int(t)) {
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        const shape r = with(s, axis, i == 0 ? s.dim[axis] : i == 1 ? 3 : 8);
        begin();
        const char *x = input(TK_I32, s, ANY), *at = input(t, r, i % 2 ? SMALL : ANY);
        say("  %%r = gather %s, %s axis=%d : %s\n", x, at, axis, type(TK_I32, r));
        output("%r", TK_I32, r);
        (void)compare(text("gather by %s", type(t, r)));
    }
}

Test(pad, gathers) { each(false, gather_one); }

Test(pad, reshapes) {
    static const shape same[][6] = {{{1, {60}},
                                     {2, {3, 20}},
                                     {3, {3, 4, 5}},
                                     {4, {5, 2, 2, 3}},
                                     {2, {12, 5}},
                                     {5, {1, 6, 1, 2, 5}}},
                                    {{1, {768}},
                                     {2, {3, 256}},
                                     {2, {256, 3}},
                                     {3, {16, 3, 16}},
                                     {3, {3, 16, 16}},
                                     {2, {48, 16}}},
                                    {{2, {8, 15}},
                                     {3, {8, 3, 5}},
                                     {3, {2, 4, 15}},
                                     {4, {8, 1, 5, 3}},
                                     {1, {120}},
                                     {2, {40, 3}}},
                                    {{3, {6, 5, 4}},
                                     {3, {6, 20, 1}},
                                     {4, {6, 5, 2, 2}},
                                     {2, {30, 4}},
                                     {3, {2, 15, 4}},
                                     {4, {2, 3, 5, 4}}}};
    for (unsigned g = 0; g < 4; g++) {
        for (unsigned i = 0; i < 36; i++) {
            const shape from = same[g][i / 6], to = same[g][i % 6];
            begin();
            say("  %%r = reshape %s : %s\n", input(TK_I16, from, ANY), type(TK_I16, to));
            output("%r", TK_I16, to);
            (void)compare(text("reshape %s to %s", type(TK_I16, from), type(TK_I16, to)));
        }
    }
}

static void stretch_one(shape s, int axis, tk_dtype t) {
    const shape one = with(s, axis, 1);
    shape turned = s;
    const char *perm = "";
    for (unsigned i = 0; i < s.rank; i++) { // from the axis on, all around
        const unsigned from = ((unsigned)axis + i) % s.rank;
        turned.dim[i] = s.dim[from];
        perm = text("%s%s%u", perm, i ? ", " : "", from);
    }
    begin();
    say("  %%b = broadcast %s : %s\n", input(t, one, ANY), type(t, s));
    output("%b", t, s);
    say("  %%p = permute %%b perm=[%s] : %s\n", perm, type(t, turned));
    output("%p", t, turned);
    (void)compare("broadcast, permute");
}

Test(pad, broadcasts_and_permutations) { each(true, stretch_one); }

// ---- Products -----------------------------------------------------------------------------------

static void dot_case(tk_dtype t, tk_dtype to, unsigned batch, const int64_t *mnk, bool acc,
                     values v) {
    const unsigned b = batch ? 1 : 0;
    shape x = {2 + b, {batch, batch}}, y = x, r = x;
    x.dim[b] = r.dim[b] = mnk[0];
    y.dim[b + 1] = r.dim[b + 1] = mnk[1];
    x.dim[b + 1] = y.dim[b] = mnk[2];
    begin();
    const char *p = input(t, x, v), *q = input(t, y, v), *a = acc ? input(to, r, ZEROS) : NULL;
    say("  %%r = dot %s, %s%s : %s\n", p, q, a ? text(", %s", a) : "", type(to, r));
    output("%r", to, r);
    (void)compare(text("dot of %s and %s", type(t, x), type(t, y)));
}

Test(pad, products) {
    static const tk_dtype in[] = {TK_F16, TK_BF16, TK_F8E4M3, TK_F8E5M2,
                                  TK_F32, TK_F64,  TK_I8,     TK_U8};
    static const values v[] = {ANY, SMALL, ZEROS};
    static const int64_t mnk[][3] = {{3, 5, 7}, {16, 12, 16}, {5, 16, 48}, {1, 3, 5}, {8, 8, 6}};
    for (unsigned i = 0; i < 8; i++) {
        const tk_dtype to = in[i] == TK_F64 ? TK_F64 : tk_dtype_is_float(in[i]) ? TK_F32 : TK_I32;
        for (unsigned j = 0; j < 5; j++) {
            for (unsigned c = 0; c < 6; c++) {
                dot_case(in[i], to, c % 3 == 2 ? 3 : 0, mnk[j], c % 2, v[c / 2]);
            }
        }
    }
}

Test(pad, scaled_products) {
    const shape a = {2, {3, 96}}, sa = {2, {3, 3}}, b = {2, {96, 5}}, sb = {2, {3, 5}},
                r = {2, {3, 5}};
    static const tk_dtype t[] = {TK_F8E4M3, TK_F8E5M2, TK_F16, TK_BF16};
    for (unsigned i = 0; i < 32; i++) {
        begin();
        const char *x = input(t[i % 4], a, i < 16 ? SMALL : ANY),
                   *p = input(TK_U8, sa, i % 2 ? ANY : SMALL);
        const char *y = input(t[i / 4 % 4], b, i < 8 ? SMALL : ANY), *q = input(TK_U8, sb, SMALL);
        say("  %%r = dot_scaled %s, %s, %s, %s : f32[3, 5]\n", x, p, y, q);
        output("%r", TK_F32, r);
        (void)compare("dot_scaled");
    }
}

// ---- Memory -------------------------------------------------------------------------------------

// A mask, an index tile, a start beyond the end, and what is stored into the middle of a tensor.
Test(pad, loads_and_stores) {
    for (unsigned i = 0; i < 4 * TYPES; i++) {
        const tk_dtype t = types[i % TYPES];
        const shape s = {2, {5, 6}}, line = {1, {6}};
        begin();
        const unsigned x = add_tensor("inout", t, (shape){2, {9, 11}}, ANY);
        const char *m = input(TK_BOOL, s, ANY), *o = input(t, s, ANY),
                   *j = input(TK_I8, line, SMALL);
        say("  %%n = const %d : i32\n", (int)(i % 4) * 4 - 3);
        say("  %%l = load %%x%u[%%n +: 5, tile %s] mask %s else %s : %s\n", x, j, m, o, type(t, s));
        say("  %%w = flip %%l axis=1 : %s\n", type(t, s));
        say("  %%q = load %%x%u[%%z +: 3, %%n +: 7] : %s\n", x, type(t, (shape){2, {3, 7}}));
        output("%q", t, (shape){2, {3, 7}});
        say("  store %%x%u[%%z +: 5, %%n +: 6] = %%w mask %s\n", x, m);
        (void)compare("loads and stores");
    }
}

Test(pad, index_tiles_together) {
    const shape a = {2, {3, 1}}, b = {2, {1, 5}}, r = {3, {3, 5, 6}};
    begin();
    const unsigned x = add_tensor("inout", TK_I32, (shape){3, {4, 4, 6}}, ANY);
    const char *p = input(TK_U16, a, SMALL), *q = input(TK_I32, b, SMALL);
    say("  %%l = load %%x%u[tile %s, tile %s, %%z +: 6] : %s\n", x, p, q, type(TK_I32, r));
    output("%l", TK_I32, r);
    say("  %%c = const 7 : i32[3, 5, 6]\n  store %%x%u[tile %s, tile %s, %%z +: 6] = %%c\n", x, p,
        q);
    (void)compare("two index tiles");
}

// Every program's padding would change the neighbours' elements.
Test(pad, atomics) {
    const shape s = {2, {3, 5}};
    begin();
    const unsigned x = add_tensor("inout", TK_I32, (shape){2, {8, 8}}, SMALL);
    const char *v = input(TK_I32, s, SMALL), *m = input(TK_BOOL, s, ANY),
               *j = input(TK_I32, (shape){1, {5}}, SMALL);
    say("  %%a = atomic_rmw add %%x%u[%%z +: 3, %%z +: 5], %s : i32[3, 5]\n", x, v);
    say("  %%b = atomic_rmw max %%x%u[%%z +: 3, %%z +: 5], %s mask %s : i32[3, 5]\n", x, v, m);
    say("  %%c = atomic_cas %%x%u[%%z +: 3, %%z +: 5], %s, %%a : i32[3, 5]\n", x, v);
    say("  %%d = reduce max %%c axis=0 : i32[1, 5]\n  %%e = reshape %%d : i32[5]\n");
    say("  %%f = atomic_rmw add %%x%u[%%z, tile %s], %%e : i32[5]\n", x, j);
    output("%b", TK_I32, s);
    output("%c", TK_I32, s);
    (void)compare("atomics");
}

// ---- Control, debugging, the rest ---------------------------------------------------------------

Test(pad, control) {
    const shape s = {2, {3, 5}};
    begin();
    const char *x = input(TK_F32, s, SMALL), *y = input(TK_F32, s, SMALL);
    say("  %%one = const 1 : i32\n  %%n = const 3 : i32\n");
    say("  %%c = lt %%one, %%n : bool\n");
    say("  %%r = for %%k = %%z to %%n step %%one carry (%%a = %s) : f32[3, 5] {\n", x);
    say("    %%b = flip %%a axis=1 : f32[3, 5]\n    %%d = add %%b, %s : f32[3, 5]\n    yield %%d\n "
        " }\n",
        y);
    say("  %%q = if %%c : f32[3, 5] {\n    yield %%r\n  } else {\n    yield %s\n  }\n", x);
    say("  %%w = while carry (%%e = %%q) : f32[3, 5] {\n    %%m = reduce max %%e : f32\n");
    say("    %%t = const 100 : f32\n    %%g = lt %%m, %%t : bool\n    yield %%g\n  } do (%%h) {\n");
    say("    %%i = const 50 : f32[3, 5]\n    %%j = add %%h, %%i : f32[3, 5]\n    yield %%j\n  }\n");
    output("%w", TK_F32, s);
    (void)compare("control");
}

Test(pad, asserts_hold_of_real_elements) {
    for (unsigned i = 0; i < 4; i++) {
        begin();
        const unsigned x = add_tensor("in", TK_I32, (shape){2, {3, 5}}, SMALL);
        say("  %%o = const -100 : i32[3, 5]\n  %%v = load %%x%u[%%z +: 3, %%z +: 5] else %%o : "
            "i32[3, 5]\n",
            x);
        say("  %%b = const %d : i32[3, 5]\n  %%c = gt %%v, %%b : bool[3, 5]\n", i % 2 ? -2 : -50);
        say("  %s %%c text=\"small\"\n", i < 2 ? "assert" : "assume");
        const outcome r = compare("assert");
        cr_assert((r.code != TK_EXEC_OK) == (i % 2));
    }
}

Test(pad, print_shows_real_elements) {
    begin();
    const char *x = input(TK_I32, (shape){2, {3, 5}}, SMALL),
               *y = input(TK_BOOL, (shape){1, {4}}, ANY);
    say("  print %s, %%z, %s text=\"x {} z {} y {}\"\n", x, y);
    say("  print %s\n", y);
    const outcome r = compare("print");
    cr_assert(strstr(r.said, "x [[") && strstr(r.said, "z 0"));
}

// Element-wise ops on anything: nothing traps, nothing leaks.
static void elementwise_one(shape s, int axis, tk_dtype t) {
    if (axis > 0) {
        return;
    }
    begin();
    const char *x = input(t, s, ANY), *y = input(t, s, ANY);
    const char *op[] = {"div", "rem", "min", "mul", "shl"};
    for (unsigned i = 0; i < (tk_dtype_is_int(t) ? 5U : 4U); i++) {
        say("  %%r%u = %s %s, %s : %s\n", i, op[i], x, i ? text("%%r%u", i - 1) : y, type(t, s));
    }
    say("  %%c = cast %%r3 : %s\n  %%b = bitcast %%r3 : %s\n", type(TK_I16, s), type(t, s));
    say("  %%m = eq %%r1, %s : %s\n  %%s = select %%m, %%b, %%r2 : %s\n", x, type(TK_BOOL, s),
        type(t, s));
    output("%c", TK_I16, s);
    output("%s", t, s);
    (void)compare("element-wise");
}

Test(pad, element_wise) { each(false, elementwise_one); }

Test(pad, philox_and_iota) {
    const shape s = {1, {7}};
    begin();
    say("  %%s = const 99 : u64\n  %%i = iota : i32[7]\n");
    say("  %%a, %%b, %%c, %%d = philox %%s, %%i : u32[7], u32[7], u32[7], u32[7]\n");
    output("%a", TK_U32, s);
    output("%d", TK_U32, s);
    output("%i", TK_I32, s);
    (void)compare("philox");
}

// ---- Notes and limits ---------------------------------------------------------------------------

static tk_module *run_pad(ir_env *e, const char *module) {
    tk_module *m = ir_good(e, module);
    tk_pipeline_opts o = {.only = "pad"};
    o.table = tk_lower_passes(&o.rows);
    return tk_pipeline_run(m, NULL, &e->diags, &o) ? m : NULL;
}

Test(pad, a_note_where_much_is_padding) {
    ir_env *e = ir_open();
    tk_module *m =
        run_pad(e, "module tile\n\nkernel @k() {\n  %a = iota : i32[5]\n  %b = iota : i32[5]\n"
                   "  %c = const 1.0 : f32[6]\n  return\n}\n");
    cr_assert(m && m->notes.list.n == 1);
    const tk_note_rec *r = ir_note(m, "padded");
    cr_assert_str_eq(r->reason, "tiles of shape [5] are computed as [8]");
    cr_assert(r->numbers.n == 1 && r->numbers.at[0].value == 37);
    ir_close(e);
}

Test(pad, nothing_to_do_changes_nothing) {
    ir_env *e = ir_open();
    const char *module = "module tile\n\nkernel @k(%x: inout f32[?, ?]) {\n  %0 = const 0 : i32\n"
                         "  %1 = load %x[%0 +: 4, %0] : f32[4]\n  %2 = flip %1 axis=0 : f32[4]\n"
                         "  store %x[%0 +: 4, %0] = %2\n  return\n}\n";
    tk_module *m = run_pad(e, module);
    cr_assert_str_eq(ir_text(e, m), ir_text(e, ir_good(e, module)));
    ir_close(e);
}

Test(pad, too_large_a_tile_is_refused) {
    ir_env *e = ir_open();
    cr_assert(!run_pad(
        e, "module tile\n\nkernel @k() {\n  %a = const 1.0 : f32[3, 5, 1048577]\n  return\n}\n"));
    cr_assert(strstr(ir_diags(e), "[3, 5, 1048577]") && strstr(ir_diags(e), "[4, 8, 2097152]"),
              "%s", ir_diags(e));
    ir_close(e);
}

// A function with asserts goes into a branch: one region more than there may be.
Test(pad, too_deep_a_function_is_refused) {
    static char module[64 * 1024];
    enum { AROUND = 2 }; // the kernel's body and the function
    for (int deep = TK_MAX_REGION_DEPTH - AROUND - 1; deep <= TK_MAX_REGION_DEPTH - AROUND;
         deep++) {
        ir_env *e = ir_open();
        size_t n = (size_t)snprintf(module, sizeof module,
                                    "module tile\n\nkernel @k(%%t: bool) {\n  %%a = iota : i32[3]\n"
                                    "  %%r = reduce_fn %%a axis=0 : i32[1] (%%x: i32, %%y: i32) {\n"
                                    "assert %%t\n");
        for (int i = 0; i < deep; i++) {
            n += (size_t)snprintf(module + n, sizeof module - n, "if %%t {\n");
        }
        for (int i = 0; i < deep; i++) {
            n += (size_t)snprintf(module + n, sizeof module - n, "yield\n} else {\nyield\n}\n");
        }
        (void)snprintf(module + n, sizeof module - n, "yield %%x\n}\nreturn\n}\n");
        const bool fits = deep < TK_MAX_REGION_DEPTH - AROUND;
        cr_assert((run_pad(e, module) != NULL) == fits, "%d", deep);
        cr_assert(fits || strstr(ir_diags(e), "blocks within each other"), "%s", ir_diags(e));
        ir_close(e);
    }
}

// Functions change with their callers.
Test(pad, functions) {
    ir_env *e = ir_open();
    tk_module *m =
        run_pad(e, "module tile\n\nfunc @f(%a: f32[3], %b: f32) -> f32[3] {\n"
                   "  %r = broadcast %b : f32[3]\n  %s = add %a, %r : f32[3]\n  return %s\n}\n\n"
                   "func @g(%b: f32) -> f32[3] {\n  %a = const 1.0 : f32[3]\n"
                   "  %r = call @f(%a, %b) : f32[3]\n  return %r\n}\n");
    cr_assert(m && strstr(ir_text(e, m), "func @f(%a: f32[4], %b: f32) -> f32[4]") &&
              !strstr(ir_text(e, m), "[3]"));
    ir_close(e);
}
