// SPDX-License-Identifier: Apache-2.0
// The verifier: for each rule a module that breaks it. Those that the text form can say are text;
// the others are good modules with a part broken.
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                                       \
    "module tile\n"                                                                                \
    "func @callee(%p: f32, %t: inout f32[?, 8]) -> f32 {\n  return %p\n}\n"                        \
    "kernel @k(%x: in f32[?, 8], %y: out f32[?, 8], %z: inout i32[?, ?], %i: i32, %f: f32, %c: "   \
    "bool, "                                                                                       \
    "%v: f32[4, 8], %w: f32[4, 8], %m: bool[4, 8], %n: i32[8], %s: f32[8], %u8: u8[8, 8], "        \
    "%h: f16[8, 4], %big: i64, %d: f64[8, 4], %zf: inout f16[?]) {\n"

static void check(const char *text, const char *want, const char *shown) {
    ir_env *e = ir_open();
    tk_module *m = ir_parse(e, text);
    cr_assert(m != NULL, "%s\n%s", shown, ir_diags(e));
    const char *why = ir_why(e, m);
    cr_assert(why != NULL, "accepted: %s", shown);
    cr_assert(strstr(why, want) != NULL, "%s\n'%s' is not in\n'%s'", shown, want, why);
    cr_assert(strstr(why, "at test.ir:") != NULL || strstr(why, "kernel") ||
              strstr(why, "function"));
    ir_close(e);
}

// A line in the body of a kernel with values of many types.
static void bad(const char *line, const char *want) {
    ir_env *e = ir_open();
    check(tk_format(&e->arena, "%s%s\n  return\n}\n", HEAD, line), want, line);
    ir_close(e);
}

Test(ir_verify, element_wise) {
    bad("%r = add %f : f32", "1 operands");
    bad("add %f, %f", "0 results");
    bad("%r = add %f, %i : f32", "operand 0 is f32 beside i32");
    bad("%r = add %v, %s : f32[4, 8]", "operand 0 is f32[4, 8] beside f32[8]");
    bad("%r = add %c, %c : bool", "does not take bool");
    bad("%r = and %f, %f : f32", "does not take f32");
    bad("%r = exp %h : f16[8, 4]", "does not take f16");
    bad("%r = lt %f, %f : f32", "the result is f32");
    bad("%r = add %f, %f : f32[1]", "the result is f32[1]");
    bad("%r = select %f, %f, %f : f32", "operand 0 is f32");
    bad("%r = select %c, %v, %w : f32[4, 8]", "operand 0 is bool");
    bad("%r = neg %x : f32", "operand 0 is a tensor");
}

Test(ir_verify, making_and_reshaping) {
    bad("%r = iota : i64[8]", "i32[n]");
    bad("%r = iota : i32", "i32[n]");
    bad("%r = broadcast %s : f32[8, 4]", "does not stretch");
    bad("%r = broadcast %v : f32[8]", "does not stretch");
    bad("%r = broadcast %s : i32[8]", "element types differ");
    bad("%r = reshape %v : f32[4, 7]", "numbers of elements differ");
    bad("%r = reshape %v : i32[32]", "element types differ");
    bad("%r = permute %v perm=[0, 0] : f32[4, 4]", "no permutation");
    bad("%r = permute %v perm=[1, 0] : f32[4, 8]", "extent 0");
    bad("%r = permute %v perm=[0] : f32[4]", "ranks differ");
    bad("%r = concat %v, %w axis=2 : f32[4, 16]", "axis 2");
    bad("%r = concat %v, %w : f32[4, 16]", "axis -1");
    bad("%r = concat %v, %w axis=0 : f32[4, 16]", "the shape must be [8, 8]");
    bad("%r = concat %v, %s axis=0 : f32[4, 16]", "ranks differ");
    bad("%r = interleave %v, %s : f32[4, 16]", "the second operand");
    bad("%r = interleave %v, %w : f32[8, 8]", "the shape must be [4, 16]");
    bad("%q = slice %s axis=0 : f32[3]\n%r, %t = deinterleave %q : f32[1], f32[1]", "not even");
    bad("%r, %t = deinterleave %s : f32[4], f32[5]", "the second result");
    bad("%r = flip %v axis=0 : f32[8, 4]", "the result");
    bad("%r = slice %v axis=1 start=5 : f32[4, 4]", "beyond the tile");
    bad("%r = slice %v axis=1 start=-1 : f32[4, 4]", "beyond the tile");
    bad("%r = slice %v axis=1 : f32[3, 4]", "the shape must be [4, 4]");
    bad("%r = empty : f32", "a scalar");
    bad("%r = insert %v : f32[4, 8]", "takes a tile, a part and numbers");
    bad("%r = insert %v, %w, %n, %n : f32[4, 8]", "no i32");
    bad("%r = insert %v, %w, %i : f32[4, 8]", "a number for each axis");
    bad("%r = insert %v, %w, %i, %i : f32[8, 8]", "the result");
    bad("%r = insert %v, %s, %i, %i : f32[4, 8]", "no part");
    bad("%r = extract %v, %i, %i : i32[4, 8]", "no part");
    bad("%r = extract %v, %i, %i : f32[3, 8]", "extent 0 is no multiple");
    bad("%r = extract %v, %i, %i : f32[8, 8]", "extent 0 is no multiple");
    bad("%r = gather %s, %s axis=0 : f32[8]", "no integer");
    bad("%r = gather %v, %n axis=0 : f32[8]", "ranks or types differ");
    bad("%r = gather %s, %n axis=0 : f32[4]", "the shape must be [8]");
    bad("%r = cast %v : f16[8, 4]", "the shape must be [4, 8]");
    bad("%r = bitcast %v : f16[4, 8]", "widths differ");
    bad("%r = bitcast %u8 : bool[8, 8]", "bool is no number");
}

Test(ir_verify, across_elements) {
    bad("%r = reduce add %v axis=0 : f32[1, 8]", "a kind that it does not have");
    bad("%r = reduce any %v axis=0 : f32[1, 8]", "does not take f32");
    bad("%r = reduce sum %h axis=0 : f16[1, 4]", "does not take f16");
    bad("%r = reduce xor %v axis=0 : f32[1, 8]", "does not take f32");
    bad("%r = reduce sum %v axis=0 : f32[8]", "the shape must be [1, 8]");
    bad("%r = reduce sum %v : f32[1, 1]", "the shape must be []");
    bad("%r = reduce sum %f : f32", "reduces a scalar");
    bad("%r = reduce sum %v axis=0 : f64[1, 8]", "another element type");
    bad("%r = arg_reduce sum %v : i32", "a kind that it does not have");
    bad("%r = arg_reduce max %v : i64", "the result is i32");
    bad("%r = scan any %m axis=0 : bool[4, 8]", "a kind that it does not have");
    bad("%r = scan sum %v : f32[4, 8]", "axis -1");
    bad("%r = sort %m axis=0 : bool[4, 8]", "does not take bool");
    bad("%r, %t = topk %s axis=0 : f32[9], i32[9]", "more values than there are");
    bad("%r, %t = topk %s axis=0 : f32[2], i64[2]", "indices are i32");
    bad("%r, %t = topk %s axis=0 : f32[2], i32[3]", "the shape must be [2]");
    bad("%r = histogram %s : i32[4]", "a tile of integers");
    bad("%r = histogram %n : i32[4, 4]", "i32[bins]");
    bad("%r = reduce_fn %s, %n : f32 (%a: f32, %b: f32) {\nyield %a\n}",
        "as many operands as results");
    bad("%r = reduce_fn %s : f32 (%a: f32) {\nyield %a\n}", "1 arguments");
    bad("%r = reduce_fn %s : f32 (%a: f32, %b: i32) {\nyield %a\n}", "an argument of the region");
    bad("%r = reduce_fn %s : f32 (%a: f32, %b: f32) {\nyield %c\n}", "a value given back");
    bad("%r, %t = reduce_fn %s, %v : f32, f32 (%a: f32, %b: f32, %e: f32, %g: f32) {\nyield %a, "
        "%b\n}",
        "another shape");
    bad("%r = reduce_fn %s : f32 (%a: f32, %b: f32) {\nstore %y[%i, %i] = %a\nyield %a\n}",
        "not in the function of a reduction");
    bad("%r = scan_fn %s axis=0 exclusive : f32[8] (%a: f32, %b: f32) {\nyield %a\n}",
        "1 operands");
    bad("%r = scan_fn %s, %i axis=0 exclusive : f32[8] (%a: f32, %b: f32) {\nyield %a\n}",
        "initial value 0");
}

Test(ir_verify, products) {
    bad("%r = dot %v : f32[4, 4]", "1 operands");
    bad("%r = dot %v, %w : f32[4, 8]", "inner extents differ");
    bad("%r = dot %v, %h : f32[4, 4]", "operands of different types");
    bad("%r = dot %s, %s : f32", "operands of rank 2");
    bad("%q = reshape %v : f32[8, 4]\n%r = dot %v, %q : f64[4, 4]", "the result is of f32");
    bad("%q = reshape %v : f32[8, 4]\n%r = dot %v, %q : f32[4, 8]", "the shape must be [4, 4]");
    bad("%q = reshape %v : f32[8, 4]\n%r = dot %v, %q, %q : f32[4, 4]", "acc");
    bad("%q = reshape %h : f16[4, 8]\n%r = dot %q, %h precision=tf32 : f32[4, 4]", "is for f32");
    bad("%q = cast %v : i32[4, 8]\n%r = dot %q, %q : i32[4, 4]", "does not take i32");
    bad("%r = dot_scaled %h, %u8, %h, %u8 : f32[8, 4]", "no multiple of 32");
    bad("%q = const 1.0 : f16[8, 32]\n%r = dot_scaled %q, %n, %q, %n : f32[8, 32]",
        "scales are u8");
}

Test(ir_verify, random_and_programs) {
    bad("%a, %b, %e, %g = philox %f, %n : u32[8], u32[8], u32[8], u32[8]", "the seed");
    bad("%a, %b, %e, %g = philox %big, %s : u32[8], u32[8], u32[8], u32[8]", "the offset");
    bad("%a, %b, %e, %g = philox %big, %n : u32[8], u32[8], u32[8], i32[8]", "not u32");
    bad("%r = program_id axis=5 : i32", "axis 5");
    bad("%r = program_id : i32", "axis -1");
    bad("%r = num_programs axis=0 : i64", "the result is an i32");
    bad("assert %f", "the operand is a bool");
    bad("print %x", "operand 0 is a tensor");
    bad("print %f, %v shown=[4, 9]", "extent 1 that is shown");
    bad("print %v shown=[0, 8]", "extent 0 that is shown");
    bad("print %v, %s shown=[4, 8]", "extent 2 that is shown");
    bad("print %v shown=[4, 8, 1]", "3 extents are shown of 2");
}

Test(ir_verify, tensors) {
    bad("%r = dim %x axis=2 : i32", "axis 2");
    bad("%r = dim %f axis=0 : i32", "the operand is a tensor");
    bad("%r = load %f[%i] : f32", "the first operand is a tensor");
    bad("%r = load %x[%i] : f32", "operands");
    bad("%r = load %y[%i, %i] : f32", "reads an out tensor");
    bad("store %x[%i, %i] = %f", "writes an in tensor");
    bad("%r = load %x[%f, %i] : f32", "index 0 is no integer");
    bad("%r = load %x[%n, %i] : f32[8]", "index 0 is no scalar");
    bad("%r = load %x[tile %i, %i] : f32", "index 0 is no tile");
    bad("%r = load %x[%i, %i +: 8] : f32[4]", "the result must be f32[8]");
    bad("%r = load %x[%i +: 4, %i +: 8] : f32[8, 4]", "the result must be f32[4, 8]");
    bad("%r = load %x[%i +: 4, tile %n] : f32[8, 4]", "the result must be f32[4, 8]");
    bad("%q = iota : i32[3]\n%r = load %x[tile %n, tile %q] : f32[8, 3]", "do not go together");
    bad("%r = load %x[tile %n, tile %n] : f32[8, 8]", "the result must be f32[8]");
    bad("%r = load %x[%i, %i] : f64", "the result must be f32");
    bad("%r = load %x[%i +: 4, %i +: 8] mask %c : f32[4, 8]", "the mask must be bool[4, 8]");
    bad("%r = load %x[%i +: 4, %i +: 8] else %f : f32[4, 8]", "the value of else");
    bad("store %y[%i, %i +: 8] = %f", "the value must be f32[8]");
    bad("%r = load %x[%i +: 4096, %i +: 4097] : f32", "too many elements");
    bad("%r = atomic_rmw add %y[%i, %i], %f : f32", "not inout");
    bad("%r = atomic_rmw sum %z[%i, %i], %i : i32", "does not take i32");
    bad("%q = const 0.0 : f16\n%r = atomic_rmw xchg %zf[%i], %q : f16", "does not take f16");
    bad("%q = const 0.0 : f16\n%r = atomic_cas %zf[%i], %q, %q : f16", "32 or 64 bits");
    bad("%r = atomic_cas %z[%i, %i], %i, %f : i32", "the value must be i32");
}

Test(ir_verify, calls) {
    bad("%r = call @nobody(%f) : f32", "no function before this one");
    bad("call @k()", "no function before this one");
    bad("%r = call @callee(%f) : f32", "has 2 parameters");
    bad("%r = call @callee(%f, %y) : f32", "argument 1 is out f32[?, 8]");
    bad("%r = call @callee(%i, %i) : f32", "argument 0 is i32");
    check("module laid\nfunc @g() {\n  return\n}\nkernel @k() {\n  call @g()\n  return\n}\n",
          "not legal at level laid", "call");
    check("module tile\nkernel @k() {\n  return\n}\nfunc @g() {\n  call @k()\n  return\n}\n",
          "'k' is a kernel", "call of a kernel");
}

Test(ir_verify, control) {
    bad("if %f {\nyield\n} else {\nyield\n}", "the condition is a scalar bool");
    bad("%r = if %c : f32 {\nyield %f\n} else {\nyield\n}", "0 values where 1 are wanted");
    bad("%r = if %c : f32 {\nyield %f\n} else {\nyield %i\n}", "a value given back must be f32");
    bad("if %c {\nreturn\n} else {\nyield\n}", "return inside an op");
    bad("if %c {\n} else {\nyield\n}", "without a terminator");
    bad("if %c {\nyield\nyield\n} else {\nyield\n}", "behind a terminator");
    bad("if %c {\n%q = neg %f : f32\n} else {\nyield\n}", "without a terminator");
    bad("if %c {\n%q = neg %f : f32\nyield\n} else {\nyield\n}\n%r = neg %q : f32",
        "its region has ended");
    bad("for %a = %f to %f step %f {\nyield\n}", "the index is an integer");
    bad("for %a = %i to %big step %i {\nyield\n}", "a bound or step must be i32");
    bad("%r = for %a = %i to %i step %i carry (%b = %f) : i32 {\nyield %i\n}", "an initial value");
    bad("%r = for %a = %i to %i step %i carry (%b = %f) : f32 {\nyield\n}", "0 values where 1");
    bad("for %a = %i to %i step %i pipeline=-1 {\nyield\n}", "below 0");
    bad("while {\nyield\n} do () {\nyield\n}", "0 values where 1");
    bad("while {\nyield %f\n} do () {\nyield\n}", "a value given back must be bool");
    bad("%r = while carry (%a = %f) : f32 {\nyield %c\n} do (%b) {\nyield %c\n}",
        "a value given back must be f32");
    bad("yield", "a body ends in return");
    bad("return", "behind a terminator");
}

Test(ir_verify, functions) {
    check("module tile\nfunc @f() -> f32 {\n  return\n}\n", "0 values where 1", "no result");
    check("module tile\nfunc @f() {\n}\n", "a region without a terminator", "no end");
    check("module tile\nfunc @f() {\n  yield\n}\n", "a body ends in return", "yield");
    check("module tile\nfunc @f() {\n  return\n}\nfunc @f() {\n  return\n}\n", "two functions",
          "twice");
    check("module tile\nkernel @k() -> f32 {\n  %0 = const 0.0 : f32\n  return %0\n}\n",
          "a kernel has no results", "a kernel's result");
    check("module tile\nkernel @k() {\n  return\n}\nkernel @l() {\n  return\n}\n", "2 kernels",
          "kernel");
    check("module tile\nfunc @f(%n: i32) {\n  grid {\n    yield %n\n  }\n  return\n}\n",
          "no kernel", "grid");
    check("module tile\nkernel @k(%n: i64) {\n  grid {\n    yield %n\n  }\n  return\n}\n",
          "axis 0 of the grid is no i32", "grid");
    check("module tile\nkernel @k(%n: i32) {\n  grid {\n    yield %n, %n, %n, %n, %n, %n\n  }\n  "
          "return\n}\n",
          "a grid of 6 axes", "grid");
    check("module tile\nkernel @k(%x: in i32[?]) {\n  grid {\n    %z = const 0 : i32\n"
          "    %n = load %x[%z] : i32\n    yield %n\n  }\n  return\n}\n",
          "not in a grid", "grid");
    check("module tile\nkernel @k() {\n  grid {\n    %n = program_id axis=0 : i32\n    yield %n\n  "
          "}\n"
          "  return\n}\n",
          "not in a grid", "grid");
    static const struct {
        const char *sizes, *why;
    } wrong[] = {{"%y[0] = %x[1]", "none at run time"},
                 {"%y[2] = %x[0]", "none at run time"},
                 {"%y[9] = %x[0]", "none at run time"},
                 {"%n[0] = %x[0]", "none at run time"},
                 {"%x[0] = %y[0]", "an earlier one"},
                 {"%y[0] = %y[0]", "an earlier one"},
                 {"%y[0] = %x[0], %y[1] = %y[0]", "the first that is the same"}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "module tile\nkernel @k(%%x: in f32[?, 8], %%y: out f32[?, ?], %%n: i32) "
                       "sizes(%s) {\n  return\n}\n",
                       wrong[i].sizes);
        check(text, wrong[i].why, wrong[i].sizes);
    }
    check(
        "module tile\nfunc @f(%x: in f32[?], %y: in f32[?]) sizes(%y[0] = %x[0]) {\n  return\n}\n",
        "none at run time", "of a function");
}

// ---- What the text form cannot say --------------------------------------------------------------

typedef struct broken {
    ir_env *e;
    tk_module *m;
    tk_func *f;
    tk_op *neg, *branch, *end;
} broken;

static broken make(void) {
    broken b = {.e = ir_open()};
    b.m = ir_good(b.e, "module tile\nfunc @f(%x: f32, %c: bool) {\n  %1 = neg %x : f32\n"
                       "  if %c {\n    yield\n  } else {\n    yield\n  }\n  return\n}\n");
    b.f = b.m->funcs.at[0];
    b.neg = b.f->body->first;
    b.branch = b.neg->next;
    b.end = b.branch->next;
    return b;
}

static void breaks(broken *b, const char *want) {
    const char *why = ir_why(b->e, b->m);
    cr_assert(why && strstr(why, want), "'%s' is not in '%s'", want, why ? why : "(accepted)");
    ir_close(b->e);
    *b = make();
}

Test(ir_verify, ids_links_and_counts) {
    broken b = make();
    b.neg->opnd[0] = 0, breaks(&b, "operand 0 does not exist");
    b.neg->opnd[0] = 1000, breaks(&b, "operand 0 does not exist");
    b.neg->opnd[0] = b.neg->res[0], breaks(&b, "not defined before it is used");
    b.neg->res[0] = 1000, breaks(&b, "value 1000 does not exist");
    b.neg->res[0] = b.f->params.at[0], breaks(&b, "defined twice");
    b.f->params.at[1] = b.f->params.at[0], breaks(&b, "defined twice");
    b.f->value.at[b.neg->res[0]].def = b.end, breaks(&b, "recorded as defined elsewhere");
    b.f->value.at[b.neg->res[0]].index = 1, breaks(&b, "recorded as defined elsewhere");
    b.f->value.at[b.neg->res[0]].type = NULL, breaks(&b, "neither scalar nor tile");
    b.neg->code = TK_OP_COUNT, breaks(&b, "no op has code");
    b.neg->code = (tk_opcode)-1, breaks(&b, "no op has code");
    b.neg->prev = b.end, breaks(&b, "not linked");
    b.neg->in = b.branch->reg[0], breaks(&b, "not linked");
    b.end->next = b.neg, breaks(&b, "terminator"); // a ring
    b.f->body->last = b.neg, breaks(&b, "without a terminator");
    b.branch->reg[1] = b.branch->reg[0], breaks(&b, "region 1 is also region 0");
    b.f->is_kernel = true, b.f->grid = b.f->body, breaks(&b, "the grid is not its own");
    ir_close(b.e);
}

Test(ir_verify, regions_places_and_types) {
    broken b = make();
    b.branch->reg[0] = NULL, breaks(&b, "region 0 is not its own");
    b.branch->reg[0]->owner = NULL, breaks(&b, "region 0 is not its own");
    b.branch->nreg = 1, breaks(&b, "1 regions");
    b.neg->loc = 1000000, breaks(&b, "a place that does not exist");
    b.neg->fast = 128, breaks(&b, "unknown fast flags");
    b.m->locs.at[1].from = 1, breaks(&b, "leads to a later one");
    b.m->level = (tk_level)0, breaks(&b, "no level");
    b.f->body = NULL, breaks(&b, "the body is not its own");
    b.f->module = NULL, breaks(&b, "not of this module");
    int64_t dim[1] = {TK_MAX_TILE_ELEMS + 1};
    tk_type big = *tk_type_tile(&b.e->arena, TK_F32, 1, dim);
    b.f->value.at[1].type = &big, breaks(&b, "more than 16777216 elements");
    big.dim[0] = 0;
    b.f->value.at[1].type = &big, breaks(&b, "an extent below 1");
    big.rank = 9;
    b.f->value.at[1].type = &big, breaks(&b, "rank 9 of a tile");
    big.dtype = TK_DTYPE_DEP;
    b.f->value.at[1].type = &big, breaks(&b, "no element type");
    big = *tk_type_tensor(&b.e->arena, TK_F32, TK_IN, 1, dim);
    big.access = (tk_access)0;
    b.f->value.at[1].type = &big, breaks(&b, "none of in, out, inout");
    ir_close(b.e);
}

Test(ir_verify, constants_and_their_types) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\nfunc @f() {\n  %1 = const 1 : u8\n  return\n}\n");
    tk_op *op = m->funcs.at[0]->body->first;
    op->at.value.bits = 256;
    cr_assert(strstr(ir_why(e, m), "bits beyond the type"));
    op->at.value = (tk_const){TK_I8, 1};
    cr_assert(strstr(ir_why(e, m), "another type than the result's"));
    m->funcs.at[0]->value.at[op->res[0]].type = tk_type_scalar(&e->arena, TK_BOOL);
    op->at.value = (tk_const){TK_BOOL, 2};
    cr_assert(strstr(ir_why(e, m), "neither 0 nor 1"));
    ir_close(e);
}

Test(ir_verify, attributes_out_of_range) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\nfunc @f(%z: inout i32[?], %i: i32, %v: f32[4, 4]) {\n"
                              "  %1 = atomic_rmw add %z[%i], %i : i32\n"
                              "  %2 = dot %v, %v : f32[4, 4]\n"
                              "  %3 = reduce sum %v : f32\n  return\n}\n");
    tk_op *op = m->funcs.at[0]->body->first;
    tk_attrs good = op->at;
    op->at.order = (tk_order)9;
    cr_assert(strstr(ir_why(e, m), "no order"));
    op->at = good;
    op->at.scope = (tk_memscope)9;
    cr_assert(strstr(ir_why(e, m), "no scope"));
    op->at = good;
    op->at.kind = (tk_kindattr)99;
    cr_assert(strstr(ir_why(e, m), "this kind does not take"));
    op->at = good;
    op->at.index[0] = -2;
    cr_assert(strstr(ir_why(e, m), "index 0 has no kind"));
    op->at = good;
    op->next->at.precision = (tk_precision)9;
    cr_assert(strstr(ir_why(e, m), "no precision"));
    op->next->at.precision = TK_PREC_IEEE;
    op->next->next->at.kind = (tk_kindattr)77;
    cr_assert(strstr(ir_why(e, m), "a kind that it does not have"));
    ir_close(e);
}

Test(ir_verify, gives_the_place) {
    ir_env *e = ir_open();
    const char *text = "module tile\nfunc @f(%x: f32) {\n  %1 = neg %x : f32[1]\n  return\n}\n";
    tk_module *m = ir_parse(e, text);
    const char *why;
    tk_span where;
    cr_assert(!tk_ir_verify_at(&e->arena, m, &why, &where));
    cr_assert_eq(where.begin, (uint32_t)(strstr(text, "%1") - text));
    ir_close(e);
}

Test(ir_verify, too_deep) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\nfunc @f(%c: bool) {\n  return\n}\n");
    tk_func *f = m->funcs.at[0];
    tk_region *r = f->body;
    for (int i = 0; i < 3 * TK_MAX_REGION_DEPTH; i++) {
        tk_op *op = tk_op_new(f, TK_OP_IF, 0, 1, &f->params.at[0], 0, NULL, 2);
        for (int k = 0; k < 2; k++) {
            op->reg[k] = tk_region_new(f, op);
            tk_op_append(op->reg[k], tk_op_new(f, TK_OP_YIELD, 0, 0, NULL, 0, NULL, 0));
        }
        tk_op_insert_before(r->last, op);
        r = op->reg[0];
    }
    cr_assert(strstr(ir_why(e, m), "regions within each other"));
    ir_close(e);
}
