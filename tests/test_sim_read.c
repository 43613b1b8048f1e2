// SPDX-License-Identifier: Apache-2.0
// The simulator's reader: what it takes, and that it says what it does not know and where.
#include "sim/read.h"
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"

static void refused(const char *ptx, uint32_t line, const char *words) {
    sim_env *e = sim_open();
    cr_assert(!sim_read(e, ptx), "read: %s", ptx);
    cr_expect(e->error.at.ptx_line == line && strstr(e->error.text, words), "%u: %s, not %u: %s",
              e->error.at.ptx_line, e->error.text, line, words);
    sim_close(e);
}

static void refused_statement(const char *statement, const char *words) {
    sim_env *e = sim_open();
    const char *ptx = sim_body(e, "", statement);
    cr_assert(!sim_read(e, ptx), "read: %s", statement);
    cr_expect(e->error.at.ptx_line == 11 && strstr(e->error.text, words), "%u: %s",
              e->error.at.ptx_line, e->error.text);
    sim_close(e);
}

Test(sim_read, instructions_that_are_not_known) {
    refused_statement("frob.b32 %r1, %r2;", "unknown instruction 'frob.b32'");
    refused_statement("add.q32 %r1, %r2, %r3;", "unknown form of an instruction: 'add.q32'");
    refused_statement("add.s32.foo %r1, %r2, %r3;", "'add.s32.foo'");
    refused_statement("add.s32 %r1, %r2;", "an operand is missing");
    refused_statement("add.s32 %r1, %r2, %r3, %r4;", "more operands");
    refused_statement("add.s32 %r1, %d2, %r3;", "'%d2' has 64 bits; 32 are needed");
    refused_statement("add.s32 %r1, %nothing, 1;", "nothing is named '%nothing'");
    refused_statement("add.s32 %r64, %r1, 1;", "nothing is named '%r64'");
    refused_statement("add.s32 5, %r1, 1;", "no destination");
    refused_statement("add.s32 %r1, %p1, 1;", "a predicate stands here");
    refused_statement("selp.b32 %r1, %r1, %r2, %r3;", "a predicate is needed");
    refused_statement("ld.global.b32 %r1, %d1;", "an address in brackets");
    refused_statement("ld.global.v2.b32 {%r1}, [%d1];", "operand 0 is a list of 1; 2 are needed");
    refused_statement("st.global.v4.b32 [%d1], {%r1, %r2, %r3};",
                      "operand 1 is a list of 3; 4 are needed");
    refused_statement("ld.global.b32 {%r1, %r2}, [%d1];", "a list needs a word");
    refused_statement("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3];",
                      "operand 0 is a list of 2; 4 are needed");
    refused_statement("setp.ltu.s32 %p1, %r1, %r2;", "unknown form");
    refused_statement("cvt.f32.f64 %f1, %d1;", "do not go together");
    refused_statement("bra NOWHERE;", "no label 'NOWHERE'");
    refused_statement("@%r1 add.s32 %r1, %r2, %r3;", "'%r1' is no predicate");
    refused_statement("mov.f32 %f1, 0d3ff0000000000000000;", "expected a number");
    refused_statement(".frob 5;", "unknown directive '.frob'");
    refused_statement("call.uni helper, (%r1);", "'helper' is no function");
}

Test(sim_read, modules_that_are_not_known) {
    refused(".target sm_90a\n", 2, "without .version");
    refused(".version 8.0\n.target sm_90a\n.address_size 32", 3, "addresses of 32 bits");
    refused(HEAD ".global .b8 x[99999999999];", 4, "an integer from 0");
    refused(HEAD ".global .b8 x[16000000][16000000];", 4, "larger than");
    refused(HEAD ".global .b8 x[2] = {1, 2, 3};", 4, "more values than room");
    refused(HEAD ".shared .b8 x[4] = {1};", 4, "no initial values");
    refused(HEAD ".global .b8 x[4];\n.global .b8 x[4];", 5, "declared twice");
    refused(HEAD ".entry k() { ", 4, "the end");
    refused(HEAD ".entry k() { ret; }\n/* no end\n\n", 5, "a comment without an end");
    refused(HEAD ".entry k() { ret; } /*/", 4, "a comment without an end");
    refused(HEAD ".entry k() { .reg .b128 %q; }", 4, "not supported by the simulator");
    refused(HEAD ".entry k() { .reg .bf16 %q; }", 4, "registers of type");
    refused(HEAD ".entry k() { ; }", 4, "expected an instruction");
    refused(HEAD ".entry k(.param .u32 a,) { ret; }", 4, "expected '.param'");
    refused(HEAD ".shared .b8 x[0];", 4, "has no size");
    refused(HEAD ".global .f32 x = 1;", 4, "does not fit the type");
    refused(HEAD ".global .u32 x[3] = {1, 2,};", 4, "expected a variable");
    refused(HEAD ".global .u64 x = x-4;", 4, "expected ';'");
    refused(HEAD ".target sm_80", 4, "unknown directive");
    refused(HEAD ".func f(.reg .u64 a) { ret; }\n.global .b8 g[4];\n"
                 ".entry k() { call f, (g); ret; }",
            6, "mov gives the address");
    refused(HEAD ".extern .global .b8 x[4];", 4, "of another module");
    refused(HEAD ".file 1 \"a", 4, "a string without an end");
}

// What PTX has, and the simulator does not.
Test(sim_read, what_is_not_supported) {
    static const char *const line[] = {
        "vadd.s32.s32.s32 %r1, %r2, %r3;",
        "vset4.s32.s32.eq %r1, %r2, %r3, %r4;",
        "tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%d1, {%r5}];",
        "ld.global.b128 %d1, [%d2];",
        "fma.rn.oob.f16 %h1, %h2, %h3, %h4;",
        "wmma.load.a.sync.aligned.m16n16k16.global.row.f16 {%r1}, [%d1];",
        "multimem.red.global.add.f32 [%d1], %r1;",
        "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32 {%r1}, {%r5}, {%r7}, {%r1};",
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%d1, {%r1, %r2, %r3}], {%h1};"};
    for (size_t k = 0; k < sizeof line / sizeof *line; k++) {
        refused_statement(line[k], "is not supported by the simulator");
    }
}

// What is no sentence of PTX.
Test(sim_read, statements_that_are_none) {
    refused_statement("ld.global.b32 %r1, [%d1-4];", "behind '%d1' stands '+'");
    refused_statement("mov.u64 %d1, buffer-4;", "behind 'buffer' stands '+'");
    refused_statement("ld.global.b32 %r1, [%d1],;", "expected an operand, not ';'");
    refused_statement("mov.b64 %d1, {%r1, %r2,};", "expected an operand, not '}'");
    refused_statement("add.u32 %r1, %r2, %r3+1;", "in addresses only");
    refused_statement("ld.global.b32 %r1, [%d1+4294967296];", "has 32 bits");
    refused_statement("ld.global.b32 %r1, [%d1+1.0];", "an integer");
    refused_statement("mov.f32 %f1, -0f3f800000;", "written as its bits");
    refused_statement("mov.f32 %f1, 1.0+2;", "do not go together");
    refused_statement("mov.f32 %f1, 1.0 ? 1.0 : 2.0;", "takes integers");
    refused_statement("mov.u32 %r1, ~1.0;", "takes integers");
    refused_statement("mov.u32 %r1, 1.0 << 2.0;", "takes integers");
    refused_statement("mov.u32 %r1, 1/0;", "divides by zero");
    refused_statement("mov.u32 %r1, 1%0;", "expected ';'");
    refused_statement("mov.u32 %r1, (1;", "expected ')'");
    refused_statement("mov.u32 %r1, 1 ? 2;", "expected ':'");
    refused_statement("call (%r1), _, (1);", "is no function");
    sim_env *e = sim_open();
    char deep[4096] = "mov.u32 %r1, ";
    memset(deep + strlen(deep), '(', 2000);
    cr_expect(!sim_read(e, sim_body(e, "", deep)) && strstr(e->error.text, "deeper than"), "%s",
              e->error.text);
    sim_close(e);
}

// What constant expressions are, by PTX's table: 64 bits, with a sign unless an operator takes it.
Test(sim_read, constant_expressions) {
    static const struct {
        const char *text;
        uint64_t is;
    } known[] = {{"(1<<3)+2", 10},
                 {"1+2*3", 7},
                 {"(1+2)*3", 9},
                 {"10-2-3", 5},
                 {"-7/2", (uint64_t)-3},
                 {"-7/2U", UINT64_C(0x7ffffffffffffffc)},
                 {"-1 % 10", 5}, // of 2^64 - 1
                 {"-8>>1", (uint64_t)-4},
                 {"(.u64)-8>>60", 15},
                 {"1<<64", 0},
                 {"-1>>100", UINT64_MAX},
                 {"-1<1", 1},
                 {"-1<1U", 0},
                 {"-1<0x8000000000000000", 0},
                 {"2<=2", 1},
                 {"3>=4", 0},
                 {"5>4", 1},
                 {"1|2&3^1", 3},
                 {"6==6!=0", 1},
                 {"!5", 0},
                 {"!0+1", 2},
                 {"~0", UINT64_MAX},
                 {"(~0)>>63", 1},
                 {"1&&0||2", 1},
                 {"0?1:2?3:4", 3},
                 {"WARP_SZ*2-1", 63},
                 {"- -1", 1},
                 {"+1", 1},
                 {"017+0b101+0x1F", 51},
                 {"1.5<2.5", 1},
                 {"0x7fffffffffffffff+1", UINT64_C(0x8000000000000000)},
                 {"(-0x7fffffffffffffff-1)/-1", UINT64_C(0x8000000000000000)}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        sim_env *e = sim_open();
        cr_assert(sim_run(e, 1,
                          tk_format(&e->arena, "mov.s64 %%d1, %s; st.global.b64 [%%base], %%d1;",
                                    known[k].text)));
        cr_expect_eq(e->word[0], known[k].is, "%s: %llx", known[k].text,
                     (unsigned long long)e->word[0]);
        sim_close(e);
    }
    sim_env *e = sim_open();
    cr_assert(
        sim_run_shared(e, 1,
                       ".global .align 8 .u64 x = 5*5;\n.global .f32 y = 1.0/.5;\n"
                       ".global .align 8 .u64 z = x+(1<<3);\n",
                       "ld.global.u64 %d1, [x+2*4-(1<<3)]; st.global.b64 [%base], %d1;\n"
                       "ld.global.b32 %r1, [y]; st.global.b32 [%base+8], %r1;\n"
                       "mov.u64 %d2, x; ld.global.u64 %d3, [z]; sub.u64 %d3, %d3, %d2;\n"
                       "st.global.b64 [%base+4*4], %d3; st.global.f32 [%base+24], 3.0*.5;\n"));
    cr_expect_eq(e->word[0], 25);
    cr_expect_eq((uint32_t)e->word[1], 0x40000000);
    cr_expect_eq(e->word[2], 8);
    cr_expect_eq((uint32_t)e->word[3], 0x3fc00000);
    sim_close(e);
}

Test(sim_read, what_a_module_says) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, HEAD
                       "// a comment\n.extern .shared .align 1024 .b8 dyn[];\n"
                       ".shared .align 4 .b8 fixed[12];\n"
                       ".visible .entry one(.param .align 64 .b8 map[128],\n"
                       " .param .u64 .ptr .global .align 16 p, .param .u8 small, .param .f32 x)\n"
                       ".maxntid 128, 1, 1\n.minnctapersm 2\n{\n"
                       ".reg .b32 %r<3>;\n$L__a:\n.loc 1 31 7\n add.s32 %r1, %r1, 1;\n"
                       ".loc 1 32 9, function_name $L__info, inlined_at 1 31 7\n"
                       " .pragma \"nounroll\";\n add.s32 %r1, %r1, 2;\n ret;\n}\n"
                       ".section .debug_info { .b8 1 .b64 $L__a }\n.file 1 \"./a.tk\"\n"),
              "%u: %s", e->error.at.ptx_line, e->error.text);
    const tk_sim_entry *k = e->program->entries.at[0];
    cr_assert_eq(k->params.n, 4);
    cr_expect_eq(k->params.at[1].offset, 128);
    cr_expect_eq(k->params.at[2].offset, 136);
    cr_expect_eq(k->params.at[3].offset, 140);
    cr_expect_eq(k->param_bytes, 144);
    cr_expect_eq(k->maxntid[0], 128);
    cr_expect_eq(e->program->variables.at[0].offset % 1024, 0);
    tk_sim_place at = tk_sim_place_of(e->program, &e->program->code.at[k->first + 1]);
    cr_expect_str_eq(at.file, "./a.tk");
    cr_expect(at.line == 32 && at.column == 9);
    sim_close(e);
}

// Every pattern of the lists has only words that the lists of words have: each of its forms with
// all that may be missing, and with none of it, is matched by its row.
Test(sim_read, patterns_are_made_of_known_words) {
    size_t n;
    const tk_sim_row *row = tk_sim_rows(&n);
    for (size_t k = 0; k < n; k++) {
        for (unsigned pick = 0; pick < 64; pick++) {
            char name[512] = "";
            for (const char *p = row[k].pattern; *p;) {
                bool optional = *p == '?';
                p += optional;
                size_t part = strcspn(p, "."), words = 1, at = 0;
                for (size_t c = 0; c < part; c++) {
                    words += p[c] == '|';
                }
                for (size_t skip = pick % words; skip > 0; at++) {
                    skip -= p[at] == '|';
                }
                size_t len = strcspn(p + at, "|.");
                if (!optional || pick % 2) {
                    strcat(name, *name ? "." : "");
                    strncat(name, p + at, len);
                }
                p += part;
                p += *p == '.';
            }
            tk_sim_inst i;
            memset(&i, 0, sizeof i);
            char *number = strchr(name, '#');
            if (number) {
                *number = '8';
            }
            bool ok = tk_sim_match(&row[k], name, &i);
            cr_assert(ok, "%s: %s", row[k].pattern, name);
        }
    }
}

// Whatever is cut off or changed: an answer, and no crash.
Test(sim_read, cut_and_changed) {
    sim_env *e = sim_open();
    const char *good = sim_body(
        e, ".shared .align 4 .b8 t[64];\n.global .align 8 .u64 v[2] = {generic(t)+4, 5};\n",
        "{ .reg .pred P; L: setp.lt.and.f32 P|%p2, %f1, 0f3F800000, !%p1;\n"
        "ld.global.v4.b32 {%r1, _, %r3, %r4}, [%at+16]; @!P bra L; }\n"
        "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1; st.shared.b32 [t+4], -5; // x\n"
        "atom.global.add.noftz.f16x2 %r1, [%base], %r2;");
    size_t n = strlen(good);
    cr_assert(sim_read(e, good), "%u: %s", e->error.at.ptx_line, e->error.text);
    for (size_t k = 0; k < n; k++) {
        tk_arena a;
        tk_arena_init(&a, NULL, NULL);
        tk_sim_note error;
        char *text = tk_strndup(&a, good, n);
        tk_sim_program *p = tk_sim_read(&a, text, k, &error);
        cr_expect(p || error.text);
        text[k] = "{};,.%|[x0\""[k % 12];
        p = tk_sim_read(&a, text, n, &error);
        cr_expect(p || error.text);
        tk_arena_release(&a);
    }
    sim_close(e);
}
