// SPDX-License-Identifier: Apache-2.0
// What may stand where: each operand of an instruction of each kind in turn becomes a number, a
// float, a sum, a list, a predicate and so on. The reader takes what ptxas takes and refuses what
// it refuses, where there is one to ask.
#include "tests/sim_env.h"
#include "tests/sim_ptxas.h"

#include <criterion/criterion.h>
#include <string.h>

static const char head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                           ".global .align 128 .b8 gv[4096];\n.const .align 128 .b8 cv[4096];\n"
                           ".shared .align 128 .b8 sv[4096];\n.visible .entry k(.param .u64 pv) {\n"
                           ".local .align 128 .b8 lv[256];\n.reg .pred %p<16>; .reg .b16 %h<32>;\n"
                           ".reg .b32 %r<64>; .reg .b64 %d<64>;\n";
static const char tail[] = "ret;\n}\n";

static const char *const inst[] = {
    "add.s32 %r1, %r2, %r3;",
    "mad.wide.u16 %r1, %h2, %h3, %r4;",
    "sad.u64 %d1, %d2, %d3, %d4;",
    "bfe.u64 %d1, %d2, %r3, %r4;",
    "bfi.b32 %r1, %r2, %r3, %r4, %r5;",
    "fns.b32 %r1, %r2, %r3, %r4;",
    "bmsk.clamp.b32 %r1, %r2, %r3;",
    "prmt.b32 %r1, %r2, %r3, %r4;",
    "lop3.b32 %r1, %r2, %r3, %r4, 5;",
    "shf.l.wrap.b32 %r1, %r2, %r3, %r4;",
    "popc.b64 %r1, %d2;",
    "dp4a.s32.u32 %r1, %r2, %r3, %r4;",
    "add.f32 %r1, %r2, %r3;",
    "fma.rn.f64 %d1, %d2, %d3, %d4;",
    "add.f16 %h1, %h2, %h3;",
    "and.pred %p1, %p2, %p3;",
    "selp.b32 %r1, %r2, %r3, %p1;",
    "setp.lt.and.s32 %p1, %r2, %r3, %p2;",
    "setp.lt.and.f16 %p1, %h2, %h3, %p2;",
    "set.gt.and.f16.s32 %h1, %r2, %r3, %p1;",
    "set.lt.and.u32.f32 %r1, %r2, %r3, %p1;",
    "cvt.u64.u32 %d1, %r2;",
    "cvt.rna.tf32.f32 %r1, %r2;",
    "mov.b16 %h1, %h2;",
    "mov.b32 %r1, %r2;",
    "mov.b64 %d1, %d2;",
    "mov.u32 %r1, %r2;",
    "mov.f64 %d1, %d2;",
    "cvta.shared.u64 %d1, %d2;",
    "cvta.to.shared.u64 %d1, %d2;",
    "cvta.global.u64 %d1, %d2;",
    "isspacep.const %p1, %d2;",
    "isspacep.param::entry %p1, %d2;",
    "isspacep.shared %p1, %r2;",
    "mapa.shared::cluster.u32 %r1, %r2, %r3;",
    "getctarank.u64 %r1, %d2;",
    "st.global.b32 [gv], %r1;",
    "atom.global.add.u32 %r1, [gv], %r2;",
    "red.shared.max.s32 [sv], %r2;",
    "shfl.sync.bfly.b32 %r1, %r2, %r3, %r4, %r5;",
    "vote.sync.ballot.b32 %r1, %p2, %r3;",
    "match.any.sync.b64 %r1, %d2, %r3;",
    "redux.sync.add.u32 %r1, %r2, %r3;",
    "redux.sync.and.b32 %r1, %r2, %r3;",
    "barrier.cta.sync %r1, %r2;",
    "bar.red.popc.u32 %r1, 0, %p2;",
    "wgmma.wait_group.sync.aligned 0;",
    "cp.async.wait_group 0;",
    "cp.async.bulk.wait_group 0;",
};

// @: what stood there.
static const char *const instead[] = {"0f3f800000", "0d3ff0000000000000",
                                      "1.5",        "5",
                                      "-1",         "0xffffffff",
                                      "4294967296", "sv+4",
                                      "{@}",        "@|_",
                                      "%p1",        "!1",
                                      "sv",         "lv",
                                      "gv",         "cv",
                                      "pv",         "%r1",
                                      "%d1"};
enum { INST = sizeof inst / sizeof *inst, INSTEAD = sizeof instead / sizeof *instead, MOST = 8192 };

// The statement with its n-th operand replaced; NULL: it has fewer, or that is an address.
static const char *replaced(tk_arena *a, const char *line, unsigned n, const char *by) {
    const char *at = strchr(line, ' ') + 1;
    for (; n; n--) {
        const char *next = strstr(at, ", ");
        if (!next) {
            return NULL;
        }
        at = next + 2;
    }
    const int length = (int)strcspn(at, ",;");
    const char *mark = strchr(by, '@');
    const char *operand =
        mark ? tk_format(a, "%.*s%.*s%s", (int)(mark - by), by, length, at, mark + 1) : by;
    return *at == '[' ? NULL
                      : tk_format(a, "%.*s%s%s", (int)(at - line), line, operand, at + length);
}

Test(sim_operands, as_ptxas_has_them) {
    static const char *line[MOST];
    static bool refuses[MOST];
    size_t n = 0;
    tk_arena a;
    tk_arena_init(&a, NULL, NULL);
    for (unsigned k = 0; k < INST * INSTEAD; k++) {
        for (unsigned operand = 0; operand < 5; operand++) {
            const char *x = replaced(&a, inst[k / INSTEAD], operand, instead[k % INSTEAD]);
            cr_assert(n < MOST);
            line[n] = x;
            n += x != NULL;
        }
    }
    if (!sim_ptxas_refuses("sm_90a", head, line, n, tail, refuses)) {
        cr_skip_test("no ptxas, or one before PTX 8.6");
    }
    for (size_t k = 0; k < n; k++) {
        tk_sim_note error;
        const char *ptx = tk_format(&a, "%s%s\n%s", head, line[k], tail);
        bool ok = tk_sim_read(&a, ptx, strlen(ptx), &error) != NULL;
        cr_expect(ok != refuses[k], "%s: %s", ok ? "taken" : "refused", line[k]);
    }
    tk_arena_release(&a);
}
