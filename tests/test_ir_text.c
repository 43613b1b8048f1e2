// SPDX-License-Identifier: Apache-2.0
// The text form: every op round-trips, constants keep their bits, faults are reported where they
// are.
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

// ---- Every op -----------------------------------------------------------------------------------

#define HEAD                                                                                       \
    "module tile\n\n"                                                                              \
    "func @callee(%p: f32, %t: in f32[?, 8]) -> f32, i32 {\n"                                      \
    "  %2 = const 3 : i32\n"                                                                       \
    "  return %p, %2\n"                                                                            \
    "}\n\n"                                                                                        \
    "kernel @k(%x: in f32[?, 8], %y: out f32[?, 8], %z: inout i32[?, ?], %i: i32, %f: f32, %c: "   \
    "bool, "                                                                                       \
    "%v: f32[4, 8], %w: f32[4, 8], %m: bool[4, 8], %n: i32[8], %s: f32[8], %seed: u64) {\n"
#define TAIL "  return\n}\n"

// As the printer writes them. NULL: element-wise, or part of every module.
static const char *const sample[TK_OP_COUNT] = {
    [TK_OP_CONST] = "  %0 = const -2.5 : f32[4, 8]\n",
    [TK_OP_IOTA] = "  %0 = iota : i32[16]\n",
    [TK_OP_BROADCAST] = "  %0 = broadcast %s : f32[4, 8]\n",
    [TK_OP_RESHAPE] = "  %0 = reshape %v : f32[2, 16]\n",
    [TK_OP_PERMUTE] = "  %0 = permute %v perm=[1, 0] : f32[8, 4]\n",
    [TK_OP_CONCAT] = "  %0 = concat %v, %w axis=1 : f32[4, 16]\n",
    [TK_OP_INTERLEAVE] = "  %0 = interleave %v, %w : f32[4, 16]\n",
    [TK_OP_DEINTERLEAVE] = "  %0, %1 = deinterleave %v : f32[4, 4], f32[4, 4]\n",
    [TK_OP_FLIP] = "  %0 = flip %v axis=0 : f32[4, 8]\n",
    [TK_OP_EMPTY] = "  %0 = empty : f32[4, 8]\n",
    [TK_OP_INSERT] = "  %0 = const 1.0 : f32[2, 8]\n  %1 = insert %v, %0, %i, %i : f32[4, 8]\n",
    [TK_OP_EXTRACT] = "  %0 = extract %v, %i, %i : f32[2, 4]\n",
    [TK_OP_SLICE] = "  %0 = slice %v axis=1 start=2 : f32[4, 3]\n",
    [TK_OP_GATHER] = "  %0 = gather %s, %n axis=0 : f32[8]\n",
    [TK_OP_CAST] = "  %0 = cast %v : f16[4, 8]\n",
    [TK_OP_BITCAST] = "  %0 = bitcast %v : u32[4, 8]\n",
    [TK_OP_REDUCE] = "  %0 = reduce sum %v axis=1 : f32[4, 1]\n",
    [TK_OP_ARG_REDUCE] = "  %0 = arg_reduce max %v : i32\n",
    [TK_OP_REDUCE_FN] = "  %0, %1 = reduce_fn %s, %n axis=0 : f32[1], i32[1] "
                        "(%a: f32, %b: i32, %d: f32, %e: i32) {\n    yield %a, %e\n  }\n",
    [TK_OP_SCAN] = "  %0 = scan prod %v axis=1 reverse exclusive : f32[4, 8]\n",
    [TK_OP_SCAN_FN] = "  %0 = scan_fn %s, %f axis=0 exclusive : f32[8] (%a: f32, %b: f32) {\n"
                      "    %3 = add %a, %b fast=contract+ftz : f32\n    yield %3\n  }\n",
    [TK_OP_SORT] = "  %0 = sort %v axis=1 descending : f32[4, 8]\n",
    [TK_OP_TOPK] = "  %0, %1 = topk %v axis=1 : f32[4, 2], i32[4, 2]\n",
    [TK_OP_HISTOGRAM] = "  %0 = histogram %n : i32[10]\n",
    [TK_OP_DOT] = "  %0 = reshape %w : f32[8, 4]\n"
                  "  %1 = dot %v, %0 precision=tf32x3 : f32[4, 4]\n",
    [TK_OP_DOT_SCALED] = "  %0 = const 1.0 : f8e4m3[16, 32]\n  %1 = const 127 : u8[16, 1]\n"
                         "  %2 = const 1.0 : f8e5m2[32, 8]\n  %3 = const 127 : u8[1, 8]\n"
                         "  %4 = dot_scaled %0, %1, %2, %3 : f32[16, 8]\n",
    [TK_OP_PHILOX] = "  %0, %1, %2, %3 = philox %seed, %n : u32[8], u32[8], u32[8], u32[8]\n",
    [TK_OP_DIM] = "  %0 = dim %x axis=1 : i32\n",
    [TK_OP_LOAD] = "  %0 = load %x[%i +: 4, %i +: 8] mask %m else %w : f32[4, 8]\n"
                   "  %1 = load %x[tile %n, %i +: 2] : f32[8, 2]\n",
    [TK_OP_STORE] = "  store %y[%i, tile %n] = %s\n",
    [TK_OP_ATOMIC_RMW] =
        "  %0 = atomic_rmw add %z[%i, tile %n], %n order=acq_rel scope=system : i32[8]\n",
    [TK_OP_ATOMIC_CAS] = "  %0 = atomic_cas %z[%i, %i], %i, %i mask %c order=acquire : i32\n",
    [TK_OP_RING] = "  %0 = ring slots=3 : f32[4, 8]\n",
    [TK_OP_FETCH] =
        "  %0 = ring slots=3 : f32[4, 8]\n  fetch %x[%i +: 4, %i +: 8], %0 how=tensor\n",
    [TK_OP_TAKE] = "  %0 = ring slots=3 : f32[4, 8]\n  %1 = take %0 : f32[4, 8]\n",
    [TK_OP_RELEASE] = "  %0 = ring slots=3 : f32[4, 8]\n  release %0\n",
    [TK_OP_PROGRAM_ID] = "  %0 = program_id axis=2 : i32\n",
    [TK_OP_NUM_PROGRAMS] = "  %0 = num_programs axis=0 : i32\n",
    [TK_OP_ASSERT] = "  assert %m text=\"a \\\"b\\\"\\n\\x01 \\\\\"\n",
    [TK_OP_ASSUME] = "  assume %c part\n",
    [TK_OP_PRINT] = "  print %v, %i text=\"v {} {}\" shown=[4, 7]\n  print %c\n",
    [TK_OP_CALL] = "  %0, %1 = call @callee(%f, %x) : f32, i32\n",
    [TK_OP_IF] = "  %0 = if %c : f32 {\n    yield %f\n  } else {\n    yield %f\n  }\n"
                 "  if %c {\n    yield\n  } else {\n    yield\n  }\n",
    [TK_OP_FOR] = "  %0 = for %j = %i to %i step %i carry (%a = %f) pipeline=3 unroll=2 : f32 {\n"
                  "    yield %a\n  }\n  for %b = %i to %i step %i {\n    yield\n  }\n",
    [TK_OP_WHILE] =
        "  %0 = while carry (%a = %f) : f32 {\n    yield %c\n  } do (%b) {\n    yield %b\n"
        "  }\n  while {\n    yield %c\n  } do () {\n    yield\n  }\n",
};

// Whole modules, of the ops that are not legal at level tile.
#define STAGED                                                                                     \
    "module staged warps=2 shared=512\n"                                                           \
    "layout #0 = [4, 16] reg lane 2 4 8 16 32 warp 1\n"                                            \
    "layout #1 = [4, 16] reg lane 1 2 4 8 32 warp 16\n"                                            \
    "layout #2 = [4, 1] reg lane 0 0 0 0 2 warp 1\n\n"                                             \
    "kernel @k(%v: f32[4, 16] #0, %n: i32) {\n"
static const char *const staged_sample[TK_OP_COUNT] = {
    [TK_OP_CONVERT] = STAGED "  %2 = convert %v shared=256 : f32[4, 16] #1\n"
                             "  %3 = reduce sum %2 axis=1 : f32[4, 1] #2\n"
                             "  %4 = for %k = %n to %n step %n carry (%a = %2) : f32[4, 16] #1 {\n"
                             "    yield %a\n  }\n  return\n}\n",
    [TK_OP_PARTITION] = "module staged warps=1 shared=2048\n"
                        "layout #0 = [32] shared 1 2 4 8 16\n"
                        "layout #1 = [32] reg lane 1 2 4 8 16 warp\n\n"
                        "kernel @k(%x: in f32[?], %y: out f32[?]) {\n"
                        "  %2 = const 0 : i32\n"
                        "  %3 = ring slots=2 shared=0 : f32[32] #0\n"
                        "  partition producers=4 {\n"
                        "    fetch %x[%2 +: 32], %3\n"
                        "    yield\n"
                        "  } else {\n"
                        "    %4 = take %3 : f32[32] #0\n"
                        "    %5 = convert %4 : f32[32] #1\n"
                        "    release %3\n"
                        "    store %y[%2 +: 32] = %5\n"
                        "    yield\n"
                        "  }\n"
                        "  return\n"
                        "}\n",
    [TK_OP_PROGRAMS] = "module staged warps=1 group=8\n"
                       "layout #0 = [32] reg lane 1 2 4 8 16 warp\n\n"
                       "kernel @k(%x: in f32[?], %y: out f32[?]) {\n"
                       "  programs {\n"
                       "    %2 = program_id axis=0 : i32\n"
                       "    %3 = load %x[%2 +: 32] : f32[32] #0\n"
                       "    store %y[%2 +: 32] = %3\n"
                       "    yield\n"
                       "  }\n"
                       "  return\n"
                       "}\n",
    [TK_OP_WAIT] = STAGED "  %2 = wait %v : f32[4, 16] #0\n"
                          "  %3 = convert %2 shared=0 : f32[4, 16] #1\n"
                          "  %4 = reduce sum %3 axis=1 : f32[4, 1] #2\n"
                          "  return\n}\n",
    [TK_OP_BARRIER] = STAGED "  %2 = convert %v shared=0 : f32[4, 16] #1\n  barrier\n"
                             "  %3 = reduce sum %2 axis=1 : f32[4, 1] #2\n"
                             "  return\n}\n",
};

// The printer numbers values by appearance; samples start at 0 for readability.
static void same_after_a_trip(ir_env *e, const char *text) {
    const tk_module *m = ir_good(e, text);
    const char *first = ir_text(e, m);
    const char *second = ir_text(e, ir_good(e, first));
    cr_assert_str_eq(first, second);
    const char *locs = ir_text_locs(e, m);
    cr_assert_str_eq(locs, ir_text_locs(e, ir_good(e, locs)));
}

Test(ir_text, every_op_has_a_sample_that_round_trips) {
    ir_env *e = ir_open();
    for (int i = 0; i < TK_OP_COUNT; i++) {
        const tk_opinfo *info = tk_op_info((tk_opcode)i);
        if (info->elementwise || i == TK_OP_YIELD || i == TK_OP_RETURN) {
            continue;
        }
        if (!tk_op_legal((tk_opcode)i, TK_LEVEL_TILE)) {
            cr_assert(staged_sample[i] != NULL, "'%s' has no sample here", info->name);
            cr_assert_str_eq(ir_text(e, ir_good(e, staged_sample[i])), staged_sample[i]);
            same_after_a_trip(e, staged_sample[i]);
            cr_assert(ir_count(ir_good(e, staged_sample[i]), (tk_opcode)i) > 0, "%s", info->name);
            continue;
        }
        cr_assert(sample[i] != NULL, "'%s' has no sample here", info->name);
        const char *text = tk_format(&e->arena, "%s%s%s", HEAD, sample[i], TAIL);
        same_after_a_trip(e, text);
        cr_assert(ir_count(ir_good(e, text), (tk_opcode)i) > 0, "%s", info->name);
        // What is written without value numbers is what the printer gives.
        const char *word = strstr(sample[i], tk_format(&e->arena, "%s ", info->name));
        const char *stop = word ? strpbrk(word, "%\n") : NULL;
        if (word) {
            const char *part = tk_strndup(&e->arena, word, (size_t)(stop - word));
            cr_assert(strstr(ir_text(e, ir_good(e, text)), part) != NULL, "%s", part);
        }
    }
    ir_close(e);
}

Test(ir_text, every_element_wise_op_round_trips_for_every_type) {
    ir_env *e = ir_open();
    for (int i = 0; i < TK_OP_COUNT; i++) {
        const tk_opinfo *info = tk_op_info((tk_opcode)i);
        for (int t = 0; info->elementwise && t < TK_DTYPE_COUNT; t++) {
            if (tk_numop_takes(info->num, (tk_dtype)t)) {
                const char *text = ir_elem_sample(e, (tk_opcode)i, (tk_dtype)t);
                cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
            }
        }
    }
    ir_close(e);
}

Test(ir_text, names_of_ops_are_unique_and_found) {
    for (int i = 0; i < TK_OP_COUNT; i++) {
        const char *name = tk_op_info((tk_opcode)i)->name;
        tk_opcode code = TK_OP_COUNT;
        cr_assert(tk_op_from_name(name, strlen(name), &code));
        cr_assert_eq((int)code, i, "%s", name);
        cr_assert(!tk_op_from_name(name, strlen(name) - 1, &code) || (int)code != i);
        cr_assert(tk_op_legal((tk_opcode)i, TK_LEVEL_STAGED) || i == TK_OP_CALL);
    }
}

// ---- Constants ----------------------------------------------------------------------------------

static void keeps_bits(ir_env *e, tk_dtype t, uint64_t bits) {
    tk_module *m = ir_good(e, "module tile\nfunc @f() {\n  %0 = const 0 : i32\n  return\n}\n");
    tk_op *op = m->funcs.at[0]->body->first;
    op->at.value = (tk_const){t, bits};
    m->funcs.at[0]->value.at[op->res[0]].type = tk_type_scalar(&e->arena, t);
    const char *text = ir_text(e, m);
    tk_const back = ir_good(e, text)->funcs.at[0]->body->first->at.value;
    cr_assert(tk_const_same(back, op->at.value), "%s of 0x%llx gives 0x%llx", text,
              (unsigned long long)bits, (unsigned long long)back.bits);
}

Test(ir_text, constants_keep_every_bit) {
    ir_env *e = ir_open();
    for (int t = 0; t < TK_DTYPE_COUNT; t++) {
        unsigned width = tk_dtype_bits((tk_dtype)t);
        uint64_t all = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
        if (t == TK_BOOL) {
            all = 1;
        }
        uint64_t n = all < 256 ? all + 1 : 300;
        for (uint64_t i = 0; i < n; i++) { // all of 8 bits; else the edges and a spread
            uint64_t bits = all < 256 ? i : i * 0x9E3779B97F4A7C15u >> (64 - width);
            keeps_bits(e, (tk_dtype)t, bits & all);
            keeps_bits(e, (tk_dtype)t, all - (i & all));
        }
        keeps_bits(e, (tk_dtype)t, (all >> 1) & all);
        keeps_bits(e, (tk_dtype)t, ((all >> 1) + 1) & all);
    }
    ir_close(e);
}

Test(ir_text, constants_read_well) {
    ir_env *e = ir_open();
    const char *text = "module tile\n\n"
                       "func @f() {\n"
                       "  %0 = const 0.1 : f32\n"
                       "  %1 = const 1.0 : f16[2]\n"
                       "  %2 = const -0.0 : f64\n"
                       "  %3 = const -inf : f32\n"
                       "  %4 = const nan : bf16\n"
                       "  %5 = const bits(0x7fa00001) : f32\n"
                       "  %6 = const 1e-09 : f64\n"
                       "  %7 = const -9223372036854775807 : i64\n"
                       "  %8 = const 18446744073709551615 : u64\n"
                       "  %9 = const true : bool\n"
                       "  return\n}\n";
    cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
    ir_close(e);
}

// ---- Names, attributes, places ------------------------------------------------------------------

Test(ir_text, hints_are_kept_and_made_unique) {
    ir_env *e = ir_open();
    const char *text = "module tile\n\n"
                       "func @gelu.1(%x: f32, %1: f32) -> f32 {\n"
                       "  %y = add %x, %1 : f32\n"
                       "  %y.3 = add %y, %1 : f32\n"
                       "  %x.4 = add %y, %y.3 : f32\n"
                       "  return %x.4\n}\n\n"
                       "func @\"odd \\\"name\\\"\"() {\n  return\n}\n";
    cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
    ir_close(e);
}

Test(ir_text, attributes_of_the_kernel_are_kept) {
    ir_env *e = ir_open();
    const char *text = "module laid warps=8 stages=3 cluster=2 persistent producers=1 consumers=2 "
                       "require=tensor_cores require=max_registers(168)\n\n"
                       "kernel @k(%n: i32) {\n  grid {\n    yield %n\n  }\n  return\n}\n";
    const tk_module *m = ir_good(e, text);
    cr_assert_str_eq(ir_text(e, m), text);
    cr_assert_eq(m->attrs.require_arg.at[0], -1);
    cr_assert_eq(m->attrs.require_arg.at[1], 168);
    same_after_a_trip(e, text);
    ir_close(e);
}

Test(ir_text, attributes_have_places) {
    ir_env *e = ir_open();
    const char *text = "module tile stages=3 @\"a.tk\":3-9 cluster=2 @\"a.tk\":10-14 "
                       "producers=1 consumers=2 @\"a.tk\":20-31\n\n"
                       "func @f() @\"a.tk\":0-5 {\n  return @?\n}\n";
    const tk_module *m = ir_good(e, text);
    cr_assert_str_eq(ir_text_locs(e, m), text);
    cr_assert_eq(m->attrs.stages_span.begin, 3);
    cr_assert_eq(m->attrs.cluster_span.end, 14);
    cr_assert_eq(m->attrs.specialize_span.end, 31);
    const char *bare = "module tile producers=2 stages=3\nfunc @f() {\n  return\n}\n";
    const tk_span at = ir_good(e, bare)->attrs.stages_span;
    cr_assert_eq(at.begin, (uint32_t)(strstr(bare, "stages") - bare));
    ir_close(e);
}

Test(ir_text, places_and_calls_around_them_are_kept) {
    ir_env *e = ir_open();
    const char *text =
        "module tile require=no_spills @\"a.tk\":3-9\n\n"
        "func @f(%x: f32) -> f32 @\"a.tk\":0-5 {\n"
        "  %1 = neg %x : f32 @\"b.tk\":7-9 from @\"a.tk\":1-4 from @\"c \\\"d\\\".tk\":0-1\n"
        "  return %1 @?\n}\n";
    const tk_module *m = ir_good(e, text);
    cr_assert_str_eq(ir_text_locs(e, m), text);
    const tk_op *op = m->funcs.at[0]->body->first;
    cr_assert_eq(op->next->loc, 0);
    tk_location l = m->locs.at[op->loc];
    cr_assert_eq(l.span.begin, 7);
    cr_assert_eq(m->locs.at[l.from].span.end, 4);
    ir_close(e);
}

Test(ir_text, an_op_without_a_place_gets_that_of_its_text) {
    ir_env *e = ir_open();
    const char *text = "module tile\nfunc @f(%x: f32) {\n  %1 = neg %x : f32\n  return\n}\n";
    const tk_module *m = ir_good(e, text);
    tk_span at = m->locs.at[m->funcs.at[0]->body->first->loc].span;
    cr_assert_eq(at.begin, (uint32_t)(strstr(text, "%1") - text));
    cr_assert_eq(at.end, at.begin + strlen("%1 = neg %x : f32"));
    ir_close(e);
}

// The example of docs/ir.md; tests run in the root of the source tree.
Test(ir_text, the_example_of_the_manual_is_as_printed) {
    static char page[1 << 16];
    FILE *f = fopen("docs/ir.md", "rb");
    cr_assert(f != NULL);
    size_t n = fread(page, 1, sizeof page - 1, f);
    fclose(f);
    page[n] = '\0';
    char *text = strstr(page, "```text\nmodule");
    cr_assert(text != NULL);
    text += strlen("```text\n");
    char *end = strstr(text, "```");
    cr_assert(end != NULL);
    *end = '\0';
    ir_env *e = ir_open();
    cr_assert_str_eq(ir_text(e, ir_good(e, text)), text);
    ir_close(e);
}

// ---- Faults -------------------------------------------------------------------------------------

static void fault(const char *text, const char *want) {
    ir_env *e = ir_open();
    cr_assert(ir_parse(e, text) == NULL, "%s", text);
    cr_assert(strstr(ir_diags(e), want) != NULL, "%s\nnot in\n%s", want, ir_diags(e));
    ir_close(e);
}

#define IN_F(line) "module tile\nfunc @f(%x: f32) {\n" line "\n  return\n}\n"

Test(ir_text, faults_are_reported_where_they_are) {
    fault("", "unexpected end, expected 'module'");
    fault("module tiles", "expected 'tile', 'laid' or 'staged'");
    fault("module tile\nfun @f() {\n}\n",
          "test.ir:2:1: error: unexpected 'fun', expected 'func' or 'kernel'");
    fault(IN_F("  %1 = negg %x : f32"), "test.ir:3:8: error: unknown op 'negg'");
    fault(IN_F("  %1 = negg %x : f32"), "did you mean 'neg'?");
    fault(IN_F("  %1 = neg %y : f32"), "unknown value '%y'");
    fault(IN_F("  %x = neg %x : f32"), "'%x' is defined twice");
    fault(IN_F("  %1 = neg %x axis=1 : f32"), "'neg' has no attribute 'axis'");
    fault(IN_F("  %1 = neg %x"), "1 result and 0 types");
    fault(IN_F("  %1 = neg %x : f31"), "expected a type");
    fault(IN_F("  %1 = neg %x : f32[0]"), "an extent is from 1");
    fault(IN_F("  %1 = neg %x : f32[1, 1, 1, 1, 1, 1]"), "at most 5 dimensions");
    fault(IN_F("  %1 = neg %x : f32[16777217]"), "more than 16777216 elements");
    fault(IN_F("  %1 = const 256 : u8"), "no constant of type u8");
    fault(IN_F("  %1 = const 1.5 : i32"), "no constant of type i32");
    fault(IN_F("  %1 = const bits(0x100) : u8"), "bits beyond the type");
    fault(IN_F("  %1 = reduce mean %x : f32"), "a kind: sum prod min");
    fault(IN_F("  %1 = permute %x perm=[0, 1] : f32[4]"), "as many axes as the result has");
    fault(IN_F("  print %x text=\"a"), "a string that does not end on its line");
    fault(IN_F("  %1 = neg %x : f32 %2"), "expected the end of the line");
    fault(IN_F("  %1 = neg ; %x : f32"), "a character that no text of the IR has");
    fault("module tile\nfunc @f() {\n", "unexpected end, expected '}'");
}

#define LAID(line) "module laid\n" line "\nkernel @k(%x: f32[2] #0) {\n  return\n}\n"

Test(ir_text, faults_of_layouts_are_reported_where_they_are) {
    fault(LAID(""), "test.ir:3:22: error: there is no layout of this number");
    fault(LAID("layout #1 = [2] reg lane 1 0 0 0 0 warp"), "2:8: error: layouts are numbered");
    fault(LAID("layout #0 = [3] reg lane 1 0 0 0 0 warp"), "at most 5 extents, powers of two");
    fault(LAID("layout #0 = [16777216, 2] reg lane 1 0 0 0 0 warp"), "and 2^24 elements");
    fault(LAID("layout #0 = [2] reg lane 1 0 0 0 warp"), "5 numbers for its lanes");
    fault(LAID("layout #0 = [2] reg lane 1 0 0 0 0 0 warp"), "at most 5 numbers");
    fault(LAID("layout #0 = [2] reg lane 1 0 0 0 0"), "expected 'warp'");
    fault(LAID("layout #0 = [2] reg lane 1 0 0 0 4294967296 warp"), "of 32 bits");
    fault(LAID("layout #0 = [2] reg lane 1 0 0 0 0 warp f32"), "the end of the line");
}

Test(ir_text, several_faults_are_reported_in_one_run) {
    ir_env *e = ir_open();
    cr_assert(
        !ir_parse(e, IN_F("  %1 = negg %x : f32\n  %2 = add %1, %1 : f32\n  %3 = neg %q : f32\n"
                          "  if %x {\n    %4 = foo\n    yield\n  } els {\n  }\n  %5 = bar")));
    cr_assert_eq(e->diags.errors, 5, "%s", ir_diags(e)); // none on %2
    ir_close(e);
}

Test(ir_text, deep_nesting_is_refused) {
    ir_env *e = ir_open();
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_str(&b, "module tile\nfunc @f(%c: bool) {\n");
    for (int i = 0; i < 5000; i++) {
        tk_buf_str(&b, "if %c {\n");
    }
    cr_assert(!ir_parse(e, tk_buf_text(&b)));
    cr_assert(strstr(ir_diags(e), "fewer regions within each other"), "%s", ir_diags(e));
    ir_close(e);
}

Test(ir_text, one_op_can_be_shown_alone) {
    ir_env *e = ir_open();
    const tk_module *m = ir_good(e, IN_F("  %b = neg %x : f32"));
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_ir_print_op(&b, m->funcs.at[0], m->funcs.at[0]->body->first);
    cr_assert(strstr(tk_buf_text(&b), "= neg %") != NULL, "%s", tk_buf_text(&b));
    ir_close(e);
}
