// SPDX-License-Identifier: Apache-2.0
// The simulator's functions: parameters and results, memory of calls, recursion, vprintf,
// __assertfail, and what is refused.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define PRINTF                                                                                     \
    ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"                      \
    ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "     \
    ".param .b64 e);\n"

// Functions, then the statements of entry k: %t its thread, %at its 8 bytes.
static const char *module(sim_env *e, const char *functions, const char *statements) {
    return tk_format(&e->arena,
                     HEAD "%s\n.visible .entry k(.param .u64 k_param_0) {\n"
                          ".reg .pred %%p<8>; .reg .b32 %%r<16>, %%t; .reg .b64 %%d<8>, %%at;\n"
                          "ld.param.b64 %%at, [k_param_0]; mov.b32 %%t, %%tid.x;\n"
                          "mad.wide.u32 %%at, %%t, 8, %%at;\n%s\nret;\n}\n",
                     functions, statements);
}

static void run(sim_env *e, uint32_t threads, uint64_t seed, const char *functions,
                const char *statements) {
    e->launch.seed = seed;
    cr_assert(sim_read(e, module(e, functions, statements)), "line %u: %s", e->error.at.ptx_line,
              e->error.text);
    cr_assert(sim_launch(e, 1, threads), "%s", sim_fault(e));
}

static const char fib[] = ".func (.param .b32 result) fib(.param .b32 n)\n{\n"
                          ".reg .pred %p<2>; .reg .b32 %r<8>;\n"
                          "ld.param.b32 %r1, [n]; setp.gt.s32 %p1, %r1, 1; @%p1 bra MORE;\n"
                          "st.param.b32 [result], %r1; ret;\n"
                          "MORE: add.s32 %r2, %r1, -1; add.s32 %r3, %r1, -2;\n"
                          "{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r2;\n"
                          "call.uni (r0), fib, (p0); ld.param.b32 %r4, [r0]; }\n"
                          "{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r3;\n"
                          "call.uni (r0), fib, (p0); ld.param.b32 %r5, [r0]; }\n"
                          "add.s32 %r6, %r4, %r5; st.param.b32 [result], %r6; ret;\n}\n";

Test(sim_calls, recursion) {
    static const uint64_t want[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_env *e = sim_open();
        run(e, 48, seed, fib,
            "rem.u32 %r1, %t, 12; .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
            "call (b), fib, (a); ld.param.b32 %r2, [b]; cvt.u64.u32 %d1, %r2;\n"
            "st.global.b64 [%at], %d1;");
        for (unsigned t = 0; t < 48; t++) {
            cr_expect_eq(e->word[t], want[t % 12], "thread %u", t);
        }
        sim_close(e);
    }
}

// Registers as parameters and results, immediates, several results, results that nobody wants.
Test(sim_calls, registers) {
    sim_env *e = sim_open();
    run(e, 40, 0,
        ".func (.reg .b32 %q, .reg .b64 %s) both(.reg .b32 %a, .reg .b64 %b) {\n"
        ".reg .b64 %w; mul.lo.u32 %q, %a, 3; cvt.u64.u32 %w, %a; sub.u64 %s, %b, %w; ret;\n}\n"
        ".func (.param .b32 r) twice(.param .b32 x) {\n.reg .b32 %a;\n"
        "ld.param.b32 %a, [x]; add.u32 %a, %a, %a; st.param.b32 [r], %a; ret.uni;\n}\n"
        ".func nothing { ret; }\n",
        "mov.b64 %d1, 1000; mov.b32 %r3, 77; setp.lt.u32 %p1, %t, 7;\n"
        "call nothing; @!%p1 call (%r1, %d2), both, (%t, %d1); @%p1 call (_, %d2), both, (5, "
        "2000);\n"
        "call (%r2), twice, (%r3); cvt.u64.u32 %d3, %r2; add.u64 %d2, %d2, %d3;\n"
        "@%p1 bra END; cvt.u64.u32 %d4, %r1; mad.lo.u64 %d2, %d4, 100000, %d2;\n"
        "END: st.global.b64 [%at], %d2;");
    for (unsigned t = 0; t < 40; t++) {
        uint64_t want = t < 7 ? 1995 + 154 : 1000 - t + 154 + 300000 * (uint64_t)t;
        cr_expect_eq(e->word[t], want, "thread %u: %u", t, (unsigned)e->word[t]);
    }
    sim_close(e);
}

// Arrays as parameters and results; each call has its own memory, also that of its caller by
// address.
Test(sim_calls, memory) {
    static const char functions[] =
        ".func walk(.param .b64 at, .param .b32 depth)\n;\n"
        ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 x[16]) {\n.reg .b64 %a, %b;\n"
        "ld.param.v2.b64 {%a, %b}, [x]; st.param.b64 [r+8], %a; st.param.b64 [r], %b; ret;\n}\n"
        // Adds its depth to the caller's variable and to those of all its own calls.
        ".func walk(.param .b64 at, .param .b32 depth) {\n"
        ".local .align 8 .b8 mine[8]; .reg .b64 %a, %m, %v, %w; .reg .b32 %d, %e; .reg .pred %p;\n"
        "ld.param.b64 %a, [at]; ld.param.b32 %d, [depth];\n"
        "mov.b64 %m, mine; cvta.local.u64 %m, %m; cvt.u64.u32 %w, %d; st.b64 [%m], %w;\n"
        "setp.eq.u32 %p, %d, 0; @%p bra LAST; sub.u32 %e, %d, 1;\n"
        "{ .param .b64 p0; .param .b32 p1; st.param.b64 [p0], %m; st.param.b32 [p1], %e;\n"
        "call walk, (p0, p1); }\n"
        "LAST: ld.b64 %v, [%m]; ld.b64 %w, [%a]; mad.lo.u64 %w, %v, 10, %w; st.b64 [%a], %w; "
        "ret;\n}\n";
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_env *e = sim_open();
        run(e, 33, seed, functions,
            ".local .align 8 .b8 here[8]; mov.b64 %d1, here; st.local.b64 [%d1], 5;\n"
            "cvta.local.u64 %d1, %d1; and.b32 %r1, %t, 3; call walk, (%d1, %r1);\n"
            "ld.b64 %d2, [%d1]; .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16];\n"
            "st.param.b64 [p], %d2; st.param.b64 [p+8], 1000000; call (q), swap, (p);\n"
            "ld.param.b64 %d3, [q]; ld.param.b64 %d4, [q+8]; add.u64 %d3, %d3, %d4;\n"
            "st.global.b64 [%at], %d3;");
        for (unsigned t = 0; t < 33; t++) {
            uint64_t want = 0;
            for (uint64_t d = 0; d <= (t & 3); d++) {
                want = d + 10 * want;
            }
            cr_expect_eq(e->word[t], 1000005 + 10 * want, "thread %u: %u", t, (unsigned)e->word[t]);
        }
        sim_close(e);
    }
}

// Barriers, shuffles and the end of threads in functions.
Test(sim_calls, with_others) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim_env *e = sim_open();
        run(e, 64, seed,
            ".shared .align 4 .b8 cells[256];\n"
            ".func (.reg .b32 %r) other(.reg .b32 %t, .reg .b32 %x) {\n.reg .b32 %a, %b;\n"
            "mov.b32 %a, cells; mad.lo.u32 %b, %t, 4, %a; st.shared.b32 [%b], %x; bar.sync 0;\n"
            "xor.b32 %b, %t, 63; mad.lo.u32 %b, %b, 4, %a; ld.shared.b32 %r, [%b];\n"
            "shfl.sync.bfly.b32 %r, %r, 1, 31, -1; ret;\n}\n"
            ".func end(.reg .b32 %t) {\n.reg .pred %p; setp.ge.u32 %p, %t, 60; @%p exit; ret;\n}\n",
            "mul.lo.u32 %r1, %t, 10; call (%r2), other, (%t, %r1); call end, (%t);\n"
            "cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, 1; st.global.b64 [%at], %d1;");
        for (unsigned t = 0; t < 64; t++) {
            cr_expect_eq(e->word[t], t < 60 ? 10 * (t ^ 63 ^ 1) + 1 : 0, "thread %u", t);
        }
        sim_close(e);
    }
}

// What nobody has written: a function's registers and .local variables in a second call, and what a
// pointer finds that outlives the call. Whatever the first one left there, seeds differ.
Test(sim_calls, left_behind) {
#define GIVES                                                                                      \
    ".func (.reg .b32 %out) f(.reg .b32 %x) { .reg .pred %p, %q; .reg .b32 %y; .reg .b64 %d;\n"
#define WRITES "setp.eq.u32 %p, %x, 0;\n"
#define TWICE  "call (%r2), f, (0); call (%r2), f, (1);\n"
    static const struct {
        const char *functions, *statements;
        bool right;
    } rows[] = {
        {GIVES WRITES "@%p mov.b32 %y, 5; mov.b32 %out, %y; ret; }", TWICE, false},
        {GIVES WRITES "@%p mov.b32 %out, 5; ret; }", TWICE, false},
        {GIVES WRITES "@%p setp.eq.u32 %q, %x, 0; selp.b32 %out, 5, 6, %q; ret; }", TWICE, false},
        {GIVES ".local .b32 a;\n" WRITES "@%p st.local.b32 [a], 5; ld.local.b32 %out, [a]; ret; }",
         TWICE, false},
        {".func (.param .b64 out) g { .local .b32 a; .reg .b64 %d; st.local.b32 [a], 5;\n"
         "mov.b64 %d, a; cvta.local.u64 %d, %d; st.param.b64 [out], %d; ret; }",
         ".param .b64 p; call (p), g; ld.param.b64 %d1, [p]; ld.b32 %r2, [%d1];\n", false},
        // The same where the value is written, and registers of callers, also of the same function.
        {GIVES WRITES "mov.b32 %y, 5; @!%p add.u32 %y, %y, %x; mov.b32 %out, %y; ret; }", TWICE,
         true},
        {GIVES ".local .b32 a; .local .b32 b;\n" WRITES
               "st.local.b32 [a], %x; mov.b32 %y, 7; @%p bra E; sub.u32 %out, %x, 1;\n"
               "call (%out), f, (%out); ld.local.b32 %out, [a]; add.u32 %y, %y, %out;\n"
               "E: setp.eq.u32 %q, %x, 0; @%q bra Z; @%p trap; Z: add.u32 %out, %y, 7; ret; }",
         "mov.b32 %r1, 77; call (%r2), f, (3); add.u32 %r2, %r2, %r1;\n", true},
        {".func (.reg .b32 %out) f(.reg .b32 %x);\n"
         ".func (.reg .b32 %out) h(.reg .b32 %x) { .reg .b32 %z; mov.b32 %z, 4;\n"
         "call (%out), f, (%x); add.u32 %out, %out, %z; ret; }\n" GIVES WRITES
         "mov.b32 %out, 3; mov.b32 %y, 2; @%p ret; sub.u32 %x, %x, 1; call (%out), h, (%x);\n"
         "add.u32 %out, %out, %y; @%p trap; ret; }",
         TWICE, true},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint64_t first = 0;
        bool differs = false;
        for (uint64_t seed = 0; seed < 6; seed++) {
            sim_env *e = sim_open();
            run(e, 40, seed, rows[k].functions,
                tk_format(&e->arena, "%scvt.u64.u32 %%d2, %%r2; st.global.b64 [%%at], %%d2;",
                          rows[k].statements));
            first = seed == 0 ? e->word[33] : first;
            differs = differs || e->word[33] != first;
            sim_close(e);
        }
        cr_expect_eq(!differs, rows[k].right, "row %u", k);
    }
}

static void fault(const char *functions, const char *statements, const char *id,
                  const char *words) {
    sim_env *e = sim_open();
    cr_assert(sim_read(e, module(e, functions, statements)), "%s", e->error.text);
    cr_expect(!sim_launch(e, 1, 1));
    cr_expect(e->result.fault.id && strcmp(e->result.fault.id, id) == 0 &&
                  strstr(sim_fault(e), words),
              "%s, not %s, %s", sim_fault(e), id, words);
    sim_close(e);
}

Test(sim_calls, faults) {
    fault(".func f(.reg .b32 %x) { call f, (%x); ret; }", "call f, (%t);", "call-depth",
          "calls 'f' as number 33");
    fault(".func f { .reg .b32 %x; add.u32 %x, %x, 1; }", "call f;", "no-return", "");
    fault(fib, "ld.local.b32 %r1, [1000000];", "out-of-bounds", "local");
    fault(PRINTF ".global .b8 s[6] = {120, 32, 60, 32, 49, 0};\n.global .b8 f[3] = {97, 46, 0};",
          "mov.b64 %d1, s; cvta.global.u64 %d1, %d1; mov.b64 %d2, f; cvta.global.u64 %d2, %d2;\n"
          "call __assertfail, (%d1, %d2, 12, %d2, 1);",
          "assert", "a.:12: a.: 'x < 1' does not hold");
    fault(PRINTF, "call (%r1), vprintf, (64, 64);", "out-of-bounds", "0x40");
}

// "%d|%5.2f|%s|%c|%llx|%%|%u|%p|%-4d|%*d\n"
#define FORMAT                                                                                     \
    "37, 100, 124, 37, 53, 46, 50, 102, 124, 37, 115, 124, 37, 99, 124, 37, 108, 108, 120, 124, "  \
    "37, 37, 124, 37, 117, 124, 37, 112, 124, 37, 45, 52, 100, 124, 37, 42, 100, 10, 0"
Test(sim_calls, printed) {
    sim_env *e = sim_open();
    run(e, 3, 0, PRINTF ".global .b8 f[64] = {" FORMAT "}; .const .b8 s[3] = {104, 105, 0};\n",
        ".local .align 8 .b8 a[72]; .param .b64 p; .param .b64 q; .param .b32 r;\n"
        "mov.b64 %d1, f; cvta.global.u64 %d1, %d1; mov.b64 %d2, a; cvta.local.u64 %d3, %d2;\n"
        "mov.b64 %d4, s; cvta.const.u64 %d4, %d4; sub.s32 %r1, %t, 1; st.local.b32 [%d2], %r1;\n"
        "st.local.f64 [%d2+8], 0d400C000000000000; st.local.b64 [%d2+16], %d4;\n"
        "st.local.b32 [%d2+24], 65; st.local.b64 [%d2+32], 0x123456789ab;\n"
        "st.local.b32 [%d2+40], -1; st.local.b64 [%d2+48], 4096; st.local.b32 [%d2+56], 7;\n"
        "st.local.b32 [%d2+60], 4; st.local.b32 [%d2+64], 9;\n"
        "st.param.b64 [p], %d1; st.param.b64 [q], %d3; call.uni (r), vprintf, (p, q);\n"
        "ld.param.b32 %r2, [r]; cvt.u64.u32 %d5, %r2; st.global.b64 [%at], %d5;");
#define LINE(N) #N "| 3.50|hi|A|123456789ab|%|4294967295|0x1000|7   |   9\n"
    cr_expect_str_eq(e->result.printed, LINE(-1) LINE(0) LINE(1));
    cr_expect_eq(e->word[0], 10);
    sim_close(e);
}

// "%*d|%.*d|%*c%c%-3c|\n": a width below 0, a precision below 0, characters that are 0 and 200.
#define AWKWARD                                                                                    \
    "37, 42, 100, 124, 37, 46, 42, 100, 124, 37, 42, 99, 37, 99, 37, 45, 51, 99, 124, 10, 0"
Test(sim_calls, printed_awkwardly) {
    static const char want[] = "5   |7|   \0\310x  |\n";
    sim_env *e = sim_open();
    run(e, 1, 0, PRINTF ".global .b8 f[64] = {" AWKWARD "};\n",
        ".local .align 8 .b8 a[40]; .param .b64 p; .param .b64 q; .param .b32 r;\n"
        "mov.b64 %d1, f; cvta.global.u64 %d1, %d1; mov.b64 %d2, a; cvta.local.u64 %d3, %d2;\n"
        "st.local.b32 [%d2], -4; st.local.b32 [%d2+4], 5; st.local.b32 [%d2+8], -3;\n"
        "st.local.b32 [%d2+12], 7; st.local.b32 [%d2+16], 4; st.local.b32 [%d2+20], 0;\n"
        "st.local.b32 [%d2+24], 200; st.local.b32 [%d2+28], 120;\n"
        "st.param.b64 [p], %d1; st.param.b64 [q], %d3; call.uni (r), vprintf, (p, q);\n"
        "ld.param.b32 %r2, [r]; cvt.u64.u32 %d5, %r2; st.global.b64 [%at], %d5;");
    cr_expect_eq(e->result.nprinted, sizeof want - 1);
    cr_expect(memcmp(e->result.printed, want, sizeof want) == 0, "%s", e->result.printed);
    cr_expect_eq(e->word[0], 8);
    sim_close(e);
}

static void refused(const char *functions, const char *statements, uint32_t line,
                    const char *words) {
    sim_env *e = sim_open();
    cr_assert(!sim_read(e, module(e, functions, statements)), "read: %s %s", functions, statements);
    cr_expect(e->error.at.ptx_line == line && strstr(e->error.text, words), "%u: %s",
              e->error.at.ptx_line, e->error.text);
    sim_close(e);
}

Test(sim_calls, refused) {
    refused("", "call f, (%r1);", 9, "'f' is no function");
    refused("", "call %d1, (%r1);", 9, "indirect calls");
    refused(".func f(.reg .b32 %x);", "call f, (%r1);", 9, "function 'f' is not in the module");
    refused(".func f(.reg .b32 %x) { ret; }", "call f;", 9, "1 arguments are needed");
    refused(".func f(.reg .b32 %x) { ret; }", "call (%r1), f, (%r1);", 9, "0 results are needed");
    refused(".func f(.reg .b32 %x) { ret; }", "call f, (%d1);", 9, "'%d1' has 64 bits");
    refused(".func f(.param .b32 x) { ret; }", ".param .b64 a; call f, (a);", 9, "'a' has 8 bytes");
    refused(".func f(.param .b8 x[12]) { ret; }", "call f, (%d1);", 9, ".param variable");
    refused(".func f(.reg .b32 %x) { ret; }", "call f, (%r1), %r2;", 9, "more operands");
    refused(".func f(.reg .b32 %x); .func f(.reg .b64 %x) { ret; }", "", 4, "as something else");
    refused(".func f { ret; } .func f { ret; }", "", 4, "is defined before");
    refused(".func f(.reg .pred %x) { ret; }", "", 4, "not known");
    refused(".func f { ret; } .global .u64 table[1] = {f};", "", 4, "address of a function");
    refused(".func f { ret; } .global .u64 table[2] = {0, generic(f)};", "", 4, "not supported");
    refused(".extern .func malloc(.param .b64 x);", "call malloc, (%d1);", 9, "'malloc'");
}
