// SPDX-License-Identifier: Apache-2.0
// The laid-out level: kernels whose tiles are given layouts, with converts where ops need them,
// verify, keep their text, compute the same bits and come through the passes; and what the verifier
// refuses.
#include "ir_env.h"
#include "lower/lower.h"
#include "test_exec_run.h"

#include <criterion/criterion.h>

// ---- Layouts for a whole module -----------------------------------------------------------------

// Shapes take turns between two orders of axes, so that many values need a convert.
typedef struct layer {
    tk_func *f;
    uint32_t turn;
} layer;

static const tk_type *type_of(const layer *s, tk_vid v) { return tk_value_type(s->f, v); }

static bool is_tile(const layer *s, tk_vid v) {
    return type_of(s, v)->kind == TK_T_VALUE && type_of(s, v)->rank > 0;
}

static void lay(layer *s, tk_vid v, tk_layout l) {
    if (is_tile(s, v)) {
        tk_value_lay(s->f, v, tk_layout_new(s->f->module->arena, l));
    }
}

static tk_layout blocked(layer *s, tk_vid v) {
    const tk_type *t = type_of(s, v);
    uint8_t order[TK_MAX_RANK];
    unsigned turn = s->turn++ % 2;
    for (unsigned i = 0; i < t->rank; i++) {
        order[i] = (uint8_t)(turn ? i : t->rank - 1 - i);
    }
    return tk_layout_blocked(t->rank, t->dim, order, turn, 2);
}

static void lay_blocked(layer *s, tk_vid v) {
    if (is_tile(s, v)) {
        lay(s, v, blocked(s, v));
    }
}

// Operand i of op in layout l: through a convert where it is in another.
static void operand_in(layer *s, tk_op *op, uint32_t i, const tk_layout *l) {
    tk_vid v = op->opnd[i];
    if (!is_tile(s, v) || tk_layout_eq(tk_value_layout(s->f, v), l)) {
        return;
    }
    const tk_type *t = type_of(s, v);
    tk_op *made = tk_op_new(s->f, TK_OP_CONVERT, op->loc, 1, &v, 1, &t, 0);
    lay(s, made->res[0], *l);
    tk_op_insert_before(op, made);
    op->opnd[i] = made->res[0];
}

static void all_in(layer *s, tk_op *op, tk_layout l) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        operand_in(s, op, i, &l);
    }
}

static void lay_region(layer *s, tk_region *r);

static void yields(layer *s, const tk_op *op, const tk_region *r) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (is_tile(s, op->res[i])) {
            operand_in(s, r->last, i, tk_value_layout(s->f, op->res[i]));
        }
    }
}

static void lay_loop(layer *s, tk_op *op, uint32_t bounds, uint32_t index) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!is_tile(s, op->res[i])) {
            continue;
        }
        tk_layout l = *tk_value_layout(s->f, op->res[i]);
        operand_in(s, op, bounds + i, &l);
        for (uint32_t k = 0; k < op->nreg; k++) {
            lay(s, op->reg[k]->args.at[index + i], l);
        }
    }
    for (uint32_t k = 0; k < op->nreg; k++) {
        lay_region(s, op->reg[k]);
    }
    yields(s, op, op->reg[op->nreg - 1]);
}

static void lay_control(layer *s, tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        lay_blocked(s, op->res[i]);
    }
    if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        lay_loop(s, op, op->code == TK_OP_FOR ? 3 : 0, op->code == TK_OP_FOR);
        return;
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        lay_region(s, op->reg[i]);
        yields(s, op, op->reg[i]);
    }
}

// Those of one layout, but for reductions: their operands are, their results follow.
static void lay_together(layer *s, tk_op *op, tk_vid like) {
    tk_layout l = blocked(s, like);
    bool reduces = !tk_op_info(op->code)->elementwise && (tk_op_attrs(op->code) & TK_A_AXIS);
    all_in(s, op, l);
    for (uint32_t i = 0; i < op->nres; i++) {
        if (is_tile(s, op->res[i])) {
            lay(s, op->res[i], reduces ? tk_layout_slice(&l, (unsigned)op->at.axis) : l);
        }
    }
}

static void lay_broadcast(layer *s, tk_op *op) {
    const tk_type *t = type_of(s, op->opnd[0]);
    lay_blocked(s, op->res[0]);
    if (t->rank > 0) {
        tk_layout l = tk_layout_stretched(tk_value_layout(s->f, op->res[0]), t->rank, t->dim);
        operand_in(s, op, 0, &l);
    }
}

static void lay_op(layer *s, tk_op *op) {
    tk_vid x = op->nopnd ? op->opnd[op->nopnd - 1] : 0, r = op->nres ? op->res[0] : 0;
    const tk_layout *l = x ? tk_value_layout(s->f, x) : NULL;
    bool together = tk_op_info(op->code)->elementwise || op->code == TK_OP_CAST ||
                    op->code == TK_OP_BITCAST || op->code == TK_OP_PHILOX ||
                    op->code == TK_OP_REDUCE || op->code == TK_OP_ARG_REDUCE ||
                    op->code == TK_OP_REDUCE_FN;
    if (op->code == TK_OP_IF || op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        lay_control(s, op);
        return;
    }
    if (together && l) {
        lay_together(s, op, x);
    } else if (op->code == TK_OP_BROADCAST) {
        lay_broadcast(s, op);
    } else if (op->code == TK_OP_RESHAPE && l && is_tile(s, r)) {
        lay(s, r, tk_layout_reshape(l, type_of(s, r)->rank, type_of(s, r)->dim));
    } else if (op->code == TK_OP_PERMUTE) {
        lay(s, r, tk_layout_permute(l, op->at.perm));
    } else {
        for (uint32_t i = 0; i < op->nres; i++) {
            lay_blocked(s, op->res[i]);
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        lay_region(s, op->reg[i]);
    }
}

static void lay_region(layer *s, tk_region *r) {
    for (tk_op *op = r->first; op; op = op->next) {
        lay_op(s, op);
    }
}

static void lay_module(tk_module *m) {
    m->level = TK_LEVEL_LAID;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        layer s = {m->funcs.at[i], 0};
        for (uint32_t k = 0; k < s.f->params.n; k++) {
            lay_blocked(&s, s.f->params.at[k]);
        }
        lay_region(&s, s.f->body);
    }
}

// ---- Kernels ------------------------------------------------------------------------------------

// %x: 16 x 32 floats, %i: 32 integers; %y: 16 x 32 floats out.
#define KERNEL(body)                                                                               \
    "module tile\n\nkernel @k(%x: in f32[?, ?], %i: inout i32[?], %y: out f32[?, ?]) {\n"          \
    "  %z = const 0 : i32\n  %a = load %x[%z +: 16, %z +: 32] : f32[16, 32]\n"                     \
    "  %b = load %i[%z +: 32] : i32[32]\n" body                                                    \
    "  store %y[%z +: 16, %z +: 32] = %r\n  return\n}\n"

static const char *const kernels[] = {
    // softmax of rows
    KERNEL("  %m = reduce max %a axis=1 : f32[16, 1]\n  %n = broadcast %m : f32[16, 32]\n"
           "  %d = sub %a, %n : f32[16, 32]\n  %e = exp %d : f32[16, 32]\n"
           "  %s = reduce sum %e axis=1 : f32[16, 1]\n  %t = broadcast %s : f32[16, 32]\n"
           "  %r = div %e, %t : f32[16, 32]\n"),
    // products, both ways
    KERNEL("  %t = permute %a perm=[1, 0] : f32[32, 16]\n  %p = dot %a, %t : f32[16, 16]\n"
           "  %acc = mul %a, %a : f32[16, 32]\n  %r = dot %p, %a, %acc : f32[16, 32]\n"),
    // shapes
    KERNEL("  %u = reshape %a : f32[2, 8, 32]\n  %v = permute %u perm=[1, 2, 0] : f32[8, 32, 2]\n"
           "  %w = flip %v axis=1 : f32[8, 32, 2]\n  %c = reshape %w : f32[16, 32]\n"
           "  %e, %o = deinterleave %c : f32[16, 16], f32[16, 16]\n"
           "  %f = interleave %o, %e : f32[16, 32]\n  %g = slice %f axis=1 start=8 : f32[16, 16]\n"
           "  %h = concat %e, %g axis=1 : f32[16, 32]\n  %r = add %h, %c : f32[16, 32]\n"),
    // across elements
    KERNEL("  %s = scan sum %a axis=1 reverse : f32[16, 32]\n"
           "  %o = sort %a axis=0 descending : f32[16, 32]\n"
           "  %k, %j = topk %b axis=0 : i32[32], i32[32]\n  %h = histogram %b : i32[32]\n"
           "  %q = gather %b, %j axis=0 : i32[32]\n  %l = add %q, %h : i32[32]\n"
           "  %n = cast %l : f32[32]\n  %v = broadcast %n : f32[16, 32]\n"
           "  %g = add %s, %o : f32[16, 32]\n  %r = mul %g, %v : f32[16, 32]\n"),
    // functions of reductions and scans; one without axis
    KERNEL("  %w = mul %a, %a : f32[16, 32]\n"
           "  %m, %n = reduce_fn %a, %w axis=0 : f32[1, 32], f32[1, 32] (%p: f32, %q: f32, %u: "
           "f32, %v: f32) {\n    %g = gt %q, %v : bool\n    %h = select %g, %p, %u : f32\n"
           "    %l = max %q, %v : f32\n    yield %h, %l\n  }\n"
           "  %s = scan_fn %a axis=1 : f32[16, 32] (%c: f32, %d: f32) {\n"
           "    %f = max %c, %d : f32\n    yield %f\n  }\n"
           "  %t = reduce sum %a : f32\n  %o = broadcast %t : f32[16, 32]\n"
           "  %m1 = broadcast %m : f32[16, 32]\n  %n1 = broadcast %n : f32[16, 32]\n"
           "  %e = add %m1, %s : f32[16, 32]\n  %j = add %o, %n1 : f32[16, 32]\n"
           "  %r = sub %e, %j : f32[16, 32]\n"),
    // control; what a loop carries, and its invariants
    KERNEL(
        "  %n = const 3 : i32\n  %one = const 1 : i32\n  %h = const 0.5 : f32[16, 32]\n"
        "  %q, %ia = for %k = %z to %n step %one carry (%c = %a, %v = %b) : f32[16, 32], i32[32] "
        "{\n    %e = exp %h : f32[16, 32]\n    %d = mul %c, %e : f32[16, 32]\n"
        "    %w = add %v, %v : i32[32]\n    %g = lt %k, %one : bool\n"
        "    %o = if %g : f32[16, 32] {\n      %p = neg %d : f32[16, 32]\n      yield %p\n"
        "    } else {\n      yield %c\n    }\n    yield %o, %w\n  }\n"
        "  %t = while carry (%u = %q) : f32[16, 32] {\n    %m = reduce max %u : f32\n"
        "    %l = const 100.0 : f32\n    %f = lt %m, %l : bool\n    yield %f\n  } do (%u2) {\n"
        "    %s = add %u2, %u2 : f32[16, 32]\n    %j = const 1.0 : f32[16, 32]\n"
        "    %u3 = add %s, %j : f32[16, 32]\n    yield %u3\n  }\n"
        "  %y1 = cast %ia : f32[32]\n  %y2 = broadcast %y1 : f32[16, 32]\n"
        "  %r = add %t, %y2 : f32[16, 32]\n"),
    // memory and numbers from nowhere
    KERNEL("  %g = iota : i32[32]\n  %c = atomic_rmw add %i[tile %g], %b : i32[32]\n"
           "  %d = load %i[tile %g] : i32[32]\n  %e = const 2 : i32[32]\n"
           "  %m = lt %g, %e : bool[32]\n  %s = const 7 : u64\n"
           "  %p, %p1, %p2, %p3 = philox %s, %g : u32[32], u32[32], u32[32], u32[32]\n"
           "  %u = select %m, %c, %d : i32[32]\n  %v = bitcast %p1 : i32[32]\n"
           "  %w = xor %u, %v : i32[32]\n  %h = cast %w : f32[32]\n"
           "  %f = broadcast %h : f32[16, 32]\n  %j = load %x[%z +: 16, tile %g] : f32[16, 32]\n"
           "  %k = arg_reduce max %a axis=0 : i32[1, 32]\n  %l = cast %k : f32[1, 32]\n"
           "  %n = broadcast %l : f32[16, 32]\n  %o = mul %n, %j : f32[16, 32]\n"
           "  %r = add %f, %o : f32[16, 32]\n"),
};

enum { ROWS = 16, COLS = 32, KERNELS = sizeof kernels / sizeof kernels[0] };

static void run(const char *text, float *y) {
    static xrun x;
    static float a[ROWS * COLS];
    static int32_t b[COLS];
    const int64_t dim[] = {ROWS, COLS};
    for (int i = 0; i < ROWS * COLS; i++) {
        a[i] = (float)(i * 37 % 101 - 50) / 16;
        b[i % COLS] = i * 11 % COLS;
        y[i] = 0;
    }
    cr_assert(xrun_open(&x, text));
    xrun_tensor(&x, 0, a, 2, dim, NULL);
    xrun_vector(&x, 1, b, COLS);
    xrun_tensor(&x, 2, y, 2, dim, NULL);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    xrun_close(&x);
}

static void stage(ir_env *e, tk_module *m) {
    tk_pass_ctx c = {m, &e->arena, &e->diags, false, tk_target_find("sm_80"), NULL};
    tk_pass_share(&c);
    const char *why = ir_why(e, m);
    cr_assert(!why, "%s\n%s", why ? why : "", ir_text(e, m));
    tk_pass_barrier(&c);
}

static const char *laid_text(ir_env *e, const char *text, tk_level level) {
    tk_module *m = ir_good(e, text);
    lay_module(m);
    if (level == TK_LEVEL_STAGED) {
        stage(e, m);
    }
    const char *why = ir_why(e, m);
    cr_assert(!why, "%s\n%s", why ? why : "", ir_text(e, m));
    cr_assert(ir_count(m, TK_OP_CONVERT) > 0, "%s", ir_text(e, m));
    return ir_text(e, m);
}

Test(laid, kernels_verify_keep_their_text_and_their_bits) {
    static float want[ROWS * COLS], got[ROWS * COLS];
    ir_env *e = ir_open();
    for (int i = 0; i < KERNELS; i++) {
        run(kernels[i], want);
        for (tk_level level = TK_LEVEL_LAID; level <= TK_LEVEL_STAGED; level *= 2) {
            const char *text = laid_text(e, kernels[i], level);
            cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
            run(text, got);
            cr_assert(memcmp(want, got, sizeof want) == 0, "kernel %d", i);
        }
    }
    ir_close(e);
}

Test(laid, passes_keep_layouts_right_and_the_bits) {
    static const char *const pass[] = {"fold", "cse", "dce", "licm", "fold", NULL};
    static float want[ROWS * COLS], got[ROWS * COLS];
    ir_env *e = ir_open();
    for (int i = 0; i < KERNELS; i++) {
        run(kernels[i], want);
        tk_module *m = ir_good(e, laid_text(e, kernels[i], TK_LEVEL_LAID));
        for (size_t k = 0; k < sizeof pass / sizeof pass[0]; k++) {
            cr_assert(ir_run(e, pass[k], m));
            const char *why = ir_why(e, m);
            cr_assert(!why, "kernel %d after %s: %s", i, pass[k], why ? why : "");
            run(ir_text(e, m), got);
            cr_assert(memcmp(want, got, sizeof want) == 0, "kernel %d after %s", i, pass[k]);
        }
    }
    ir_close(e);
}

// ---- Passes -------------------------------------------------------------------------------------

#define A "layout #0 = [64] reg 1 lane 2 4 8 16 32 warp\n"
#define B "layout #1 = [64] reg 32 lane 1 2 4 8 16 warp\n"
#define K(ops)                                                                                     \
    "module laid\n" A B "\nkernel @k(%x: f32[64] #0, %y: f32[64] #1) {\n" ops "  return\n}\n"

Test(laid, fold_drops_converts_to_the_same_layout_and_chains) {
    ir_env *e = ir_open();
    cr_assert_str_eq(ir_after(e, "fold",
                              K("  %2 = convert %x : f32[64] #1\n  %3 = convert %2 : f32[64] #0\n"
                                "  %4 = convert %3 : f32[64] #1\n  print %3, %4\n")),
                     K("  %2 = convert %x : f32[64] #1\n  %3 = convert %x : f32[64] #1\n"
                       "  print %x, %3\n"));
    cr_assert_str_eq(ir_after(e, "fold",
                              K("  %2 = const 2.0 : f32[64] #0\n  %3 = convert %2 : f32[64] #1\n"
                                "  print %3\n")),
                     K("  %2 = const 2.0 : f32[64] #0\n  %3 = const 2.0 : f32[64] #1\n"
                       "  print %3\n"));
    // an identity that gives a value in another layout
    cr_assert_str_eq(ir_after(e, "fold", K("  %2 = slice %x axis=0 : f32[64] #1\n  print %2\n")),
                     K("  %2 = convert %x : f32[64] #1\n  print %2\n"));
    ir_close(e);
}

Test(laid, cse_tells_layouts_apart) {
    ir_env *e = ir_open();
    cr_assert_str_eq(
        ir_after(e, "cse",
                 K("  %2 = iota : i32[64] #0\n  %3 = iota : i32[64] #1\n  %4 = iota : i32[64] #0\n"
                   "  %5 = convert %x : f32[64] #1\n  %6 = convert %x : f32[64] #1\n"
                   "  print %2, %3, %4, %5, %6\n")),
        K("  %2 = iota : i32[64] #0\n  %3 = iota : i32[64] #1\n  %4 = convert %x : f32[64] #1\n"
          "  print %2, %3, %2, %4, %4\n"));
    ir_close(e);
}

Test(laid, barriers_stay_where_they_are) {
    ir_env *e = ir_open();
    tk_module *m =
        ir_parse(e, "module staged shared=16\n\nkernel @k(%x: in f32[?], %n: i32, %o: i32) {\n"
                    "  %3 = load %x[%n] : f32\n  barrier\n  barrier\n"
                    "  %4 = load %x[%n] : f32\n  for %k = %n to %o step %o {\n"
                    "    barrier\n    yield\n  }\n  print %3, %4 shared=0\n  return\n}\n");
    cr_assert(m && !ir_why(e, m));
    const char *before = ir_text(e, m);
    tk_pass_ctx c = {m, &e->arena, &e->diags, false, NULL, NULL};
    tk_pass_barrier(&c);
    cr_assert_str_eq(ir_text(e, m), before);
    ir_close(e);
}

// ---- What the verifier refuses ------------------------------------------------------------------

Test(laid, values_without_their_layouts_are_refused) {
    ir_refuses("module laid\nkernel @k(%x: f32[2]) {\n  return\n}\n", "f32[2] has no layout");
    ir_refuses("module tile\n" A "kernel @k(%x: f32[64] #0) {\n  return\n}\n",
               "a layout of f32[64]");
    ir_refuses("module laid\n" A "kernel @k(%x: f32 #0) {\n  return\n}\n", "a layout of f32");
    ir_refuses("module laid\n" A "kernel @k(%x: in f32[64] #0) {\n  return\n}\n",
               "a layout of in f32");
    ir_refuses("module laid\n" A "kernel @k(%x: f32[2, 32] #0) {\n  return\n}\n", "another shape");
    ir_refuses("module laid\nlayout #0 = [64] reg 1 lane 2 4 8 16 0 warp\n"
               "kernel @k(%x: f32[64] #0) {\n  return\n}\n",
               "an element is nowhere");
    ir_refuses("module laid\nkernel @k(%x: f32) {\n  %1 = iota : i32[4]\n  return\n}\n",
               "i32[4] has no layout");
}

Test(laid, ops_whose_layouts_do_not_agree_are_refused) {
    ir_refuses(K("  %2 = add %x, %y : f32[64] #0\n"),
               "an operand must be in layout [64] reg 1 lane");
    ir_refuses(K("  %2 = neg %x : f32[64] #1\n"), "a result must be in layout [64] reg 1 lane");
    ir_refuses(K("  %2 = cast %x : f16[64] #1\n"), "a result must be");
    ir_refuses(K("  %2 = reduce sum %x axis=0 : f32[1] #0\n"), "another shape");
    ir_refuses(
        "module laid\n" A "layout #1 = [1] reg lane 0 0 0 0 0 warp 0\n"
        "kernel @k(%x: f32[64] #0) {\n  %1 = reduce sum %x axis=0 : f32[1] #1\n  return\n}\n",
        "a result must be in layout [1] reg lane 0 0 0 0 0 warp, not [1]");
    ir_refuses("module laid\n" A "layout #1 = [64, 1] reg 32 lane 1 2 4 8 16 warp\n"
               "kernel @k(%x: f32[64] #0) {\n  %1 = reshape %x : f32[64, 1] #1\n  return\n}\n",
               "the result must be");
    ir_refuses("module laid\n" A "layout #1 = [2, 64] reg 32 64 lane 1 2 4 8 16 warp\n"
               "kernel @k(%x: f32[64] #0) {\n  %1 = broadcast %x : f32[2, 64] #1\n  return\n}\n",
               "the operand must be in layout [64] reg 32 lane");
    ir_refuses("module laid\nlayout #0 = [8, 8] reg 1 lane 2 4 8 16 32 warp\n"
               "kernel @k(%x: f32[8, 8] #0) {\n  %1 = permute %x perm=[1, 0] : f32[8, 8] #0\n"
               "  return\n}\n",
               "the result must be in layout [8, 8] reg 8 lane 16 32 1 2 4 warp");
    ir_refuses(K("  %2 = convert %x : f16[64] #1\n"), "the result must be f32[64]");
    ir_refuses(K("  barrier\n"), "not legal at level laid");
    ir_refuses("module tile\nkernel @k(%x: f32[2]) {\n  %1 = convert %x : f32[2]\n  return\n}\n",
               "not legal at level tile");
}

#define C "  %c = const true : bool\n  %n = const 1 : i32\n"

Test(laid, what_control_carries_stays_in_its_layout) {
    ir_refuses(K(C "  %2 = if %c : f32[64] #0 {\n    yield %x\n  } else {\n    yield %y\n  }\n"),
               "a value given back must be in layout [64] reg 1");
    ir_refuses(K(C "  %2 = for %k = %n to %n step %n carry (%a = %x) : f32[64] #0 {\n    yield %y\n"
                   "  }\n"),
               "a value given back must be in layout [64] reg 1");
    ir_refuses(K(C "  %2 = for %k = %n to %n step %n carry (%a = %x) : f32[64] #1 {\n    yield %y\n"
                   "  }\n"),
               "an argument of the region must be in layout [64] reg 32");
    ir_refuses(K(C "  %2 = while carry (%a = %x) : f32[64] #0 {\n    yield %c\n  } do (%b) {\n"
                   "    yield %y\n  }\n"),
               "a value given back must be in layout [64] reg 1");
}
