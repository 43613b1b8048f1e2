// SPDX-License-Identifier: Apache-2.0
// Which loads and stores go through shared memory, and why others do not; what the verifier says of
// the attribute; the barriers that these accesses need; the layout of their tiles.
#include "ir/layout.h"
#include "ir_env.h"
#include "lower/lower.h"
#include "lower/stage.h"
#include "lower/views.h"

#include <criterion/criterion.h>
#include <string.h>

enum { UNIT = TK_FACT_UNIT | TK_FACT_NEAR, ALIGNED = UNIT | TK_FACT_ALIGNED };

// ---- The pass -----------------------------------------------------------------------------------

// Kernel of x: in f16[?, ?, ?], y: inout f16[?, ?], t: in i32[?], n: i32. %i is below y's rows, %j
// what nothing is known of, %z 0; %c counts to 16, %d is it from some row on.
static const char *kernel(ir_env *e, const char *body) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(
        &b,
        "module tile warps=4\n\nkernel @k(%%x: in f16[?, ?, ?], %%y: inout f16[?, ?], %%t: "
        "in i32[?], %%n: i32) {\n  grid {\n    %%all = dim %%y axis=0 : i32\n    yield %%all\n"
        "  }\n  %%i = program_id axis=0 : i32\n  %%z = const 0 : i32\n"
        "  %%four = const 4 : i32\n  %%j = load %%t[%%i] : i32\n  %%c = iota : i32[16]\n"
        "  %%near = const 65535 : i32\n  %%low = and %%i, %%near : i32\n"
        "  %%e = broadcast %%low : i32[16]\n  %%d = add %%c, %%e : i32[16]\n"
        "  %%rows = dim %%y axis=0 : i32\n  %%r = broadcast %%rows : i32[16]\n"
        "%s  return\n}\n",
        body);
    return tk_buf_text(&b);
}

static const tk_op *last_access(const tk_module *m) {
    const tk_op *found = NULL;
    for (const tk_op *op = m->funcs.at[0]->body->first; op; op = op->next) {
        found = op->code == TK_OP_LOAD || op->code == TK_OP_STORE ? op : found;
    }
    return found;
}

static const tk_note_rec *last_note(const tk_module *m) {
    const tk_note_rec *found = NULL;
    for (size_t i = 0; i < m->notes.list.n; i++) {
        found = strcmp(m->notes.list.at[i]->id, "staged") == 0 ? m->notes.list.at[i] : found;
    }
    return found;
}

static tk_module *staged(ir_env *e, const char *body, tk_tensor_facts facts) {
    tk_module *m = ir_good(e, kernel(e, body));
    const tk_tensor_facts all[4] = {facts, facts, 0, 0};
    tk_pass_ctx c = {m, &e->arena, &e->diags, false, tk_target_find("sm_80"), all};
    tk_pass_stage(&c);
    const char *why = ir_why(e, m);
    cr_assert(!why, "%s\n%s", why, ir_text(e, m));
    return m;
}

// The last access of the body has so many rows; 0: it is not staged, for the reason `why` (NULL:
// nothing is said of it).
static void expect(const char *body, tk_tensor_facts facts, int64_t rows, const char *why) {
    ir_env *e = ir_open();
    const tk_module *m = staged(e, body, facts);
    const tk_note_rec *note = last_note(m);
    cr_expect_eq(last_access(m)->at.staged, rows, "%s%s", body, note ? note->reason : "");
    if (rows == 0 && !why) {
        cr_expect(!note, "%s%s", body, note->reason);
    } else {
        cr_assert(note, "%s", body);
        cr_expect_eq(note->verdict, rows ? TK_NOTE_DONE : TK_NOTE_MISSED, "%s", body);
        cr_expect(strstr(note->reason, rows ? "go through shared memory" : why), "%s  %s\n  %s",
                  body, note->reason, why);
    }
    ir_close(e);
}

#define TILE   "  %v = const 1.0 : f16[16, 256]\n"
#define MASKED TILE "  store %y[tile %d, %z +: 256] = %v mask %m\n"
#define ACROSS "  %k = reshape %l : bool[16, 1]\n  %m = broadcast %k : bool[16, 256]\n"

Test(stage, rows) {
    expect("  %v = load %y[%i, %z +: 256] : f16[256]\n", UNIT, 1, NULL);
    expect("  %v = load %y[%i, %four +: 64] : f16[64]\n", UNIT, 1, NULL);
    expect("  %v = load %y[%i +: 16, %z +: 256] : f16[16, 256]\n", UNIT, 16, NULL);
    expect("  %v = load %y[tile %d, %z +: 256] : f16[16, 256]\n", UNIT, 16, NULL);
    expect("  %w = reshape %d : i32[16, 1]\n"
           "  %v = load %y[tile %w, %z +: 256] : f16[16, 1, 256]\n",
           UNIT, 16, NULL);
    expect("  %v = load %x[%i, %i +: 16, %z +: 256] : f16[16, 256]\n", UNIT, 16, NULL);
    expect("  %v = load %x[%i +: 16, %i, %z +: 256] : f16[16, 256]\n", UNIT, 16, NULL);
    expect(TILE "  store %y[%i +: 16, %z +: 256] = %v\n", UNIT, 16, NULL);
    expect("  %m = const true : bool[256]\n"
           "  %v = load %y[%i, %z +: 256] mask %m : f16[256]\n",
           UNIT, 1, NULL);
}

Test(stage, masks_of_stores) {
    expect("  %l = lt %d, %r : bool[16]\n" ACROSS MASKED, UNIT, 16, NULL);
    expect("  %a = reshape %d : i32[16, 1]\n  %b = reshape %r : i32[16, 1]\n"
           "  %l = lt %a, %b : bool[16, 1]\n  %m = broadcast %l : bool[16, 256]\n" MASKED,
           UNIT, 16, NULL);
    expect("  %a = lt %d, %r : bool[16]\n  %f = broadcast %four : i32[16]\n"
           "  %b = lt %c, %f : bool[16]\n  %l = and %a, %b : bool[16]\n" ACROSS MASKED,
           UNIT, 16, NULL);
    const char *why = "its mask is no bound of its rows, nor of its columns by a constant";
    expect("  %l = ge %d, %r : bool[16]\n" ACROSS MASKED, UNIT, 0, why);
    expect("  %l = lt %r, %d : bool[16]\n" ACROSS MASKED, UNIT, 0, why);
    expect("  %l = lt %d, %d : bool[16]\n" ACROSS MASKED, UNIT, 0, why);
    expect("  %l = lt %d, %r : bool[16]\n  %a = lt %c, %d : bool[16]\n"
           "  %b = or %l, %a : bool[16]\n  %k = reshape %b : bool[16, 1]\n"
           "  %m = broadcast %k : bool[16, 256]\n" MASKED,
           UNIT, 0, why);
    // Columns below a constant, as those of a tile's padding.
    expect("  %g = iota : i32[256]\n  %f = broadcast %four : i32[256]\n"
           "  %l = lt %g, %f : bool[256]\n  %m = broadcast %l : bool[16, 256]\n" MASKED,
           UNIT, 16, NULL);
    expect("  %g = iota : i32[256]\n  %f = broadcast %four : i32[256]\n"
           "  %a = lt %g, %f : bool[256]\n  %b = broadcast %a : bool[16, 256]\n"
           "  %l = lt %d, %r : bool[16]\n  %k = reshape %l : bool[16, 1]\n"
           "  %q = broadcast %k : bool[16, 256]\n  %m = and %q, %b : bool[16, 256]\n" MASKED,
           UNIT, 16, NULL);
    expect("  %g = iota : i32[256]\n  %f = broadcast %i : i32[256]\n"
           "  %l = lt %g, %f : bool[256]\n  %m = broadcast %l : bool[16, 256]\n" MASKED,
           UNIT, 0, why);
    expect("  %g = iota : i32[256]\n  %f = broadcast %four : i32[256]\n"
           "  %l = lt %f, %g : bool[256]\n  %m = broadcast %l : bool[16, 256]\n" MASKED,
           UNIT, 0, why);
    expect("  %m = const true : bool[256]\n  %v = const 1.0 : f16[256]\n"
           "  store %y[%i, %z +: 256] = %v mask %m\n",
           UNIT, 0, why);
    expect("  %q = broadcast %n : i32[16]\n  %l = lt %d, %q : bool[16]\n" ACROSS MASKED, UNIT, 0,
           why); // n may be negative
}

Test(stage, what_is_not) {
    const char *row = "  %v = load %y[%i, %z +: 256] : f16[256]\n";
    expect(row, 0, 0, NULL); // nothing is known of the stride
    expect(row, ALIGNED, 0, NULL);
    expect("  %v = load %y[%i, %z] : f16\n", UNIT, 0, NULL);
    expect("  %v = load %x[%z, %z, %z +: 256] : f16[256]\n", UNIT, 0, NULL); // all read the same
    expect("  %v = load %y[%z, %z +: 256] : f16[256]\n", UNIT, 1, NULL);     // what may be written
    expect("  %v = load %y[%i, %z +: 32] : f16[32]\n", UNIT, 0, "they are short");
    expect("  %v = load %y[%i +: 512, %z +: 128] : f16[512, 128]\n", UNIT, 0,
           "their tile takes too much of it");
    expect("  %v = load %y[%j, %z +: 256] : f16[256]\n", UNIT, 0, "an index may be negative");
    expect("  %v = load %y[%i, %j +: 256] : f16[256]\n", UNIT, 0,
           "its place in the row may be negative");
    expect("  %v = load %y[%i, tile %d] : f16[16]\n", UNIT, 0,
           "the last dimension's index is no range");
    expect("  %v = load %y[%i +: 16, %z] : f16[16]\n", UNIT, 0,
           "the last dimension's index is no range");
    expect("  %v = load %y[tile %r, %z +: 256] : f16[16, 256]\n", UNIT, 0,
           "its rows are not known to follow one another");
    expect("  %v = load %x[%i +: 4, %i +: 4, %z +: 256] : f16[4, 4, 256]\n", UNIT, 0,
           "its rows are not in a line");
    expect("  %w = reshape %d : i32[4, 4]\n"
           "  %v = load %y[tile %w, %z +: 256] : f16[4, 4, 256]\n",
           UNIT, 0, "its rows are not in a line");
    expect("  %p = const 0.0 : f32[16, 16]\n  %a = const 1.0 : f16[16, 16]\n"
           "  %q = dot %a, %a, %p : f32[16, 16]\n"
           "  %v = load %y[%i, %z +: 256] : f16[256]\n",
           UNIT, 0, "the program multiplies matrices");
}

// ---- Bulk copies --------------------------------------------------------------------------------

static void bulk(const char *target, const char *body, bool want) {
    ir_env *e = ir_open();
    const tk_module *m = staged(e, body, UNIT);
    const tk_op *op = last_access(m);
    cr_expect_neq(op->at.staged, 0, "%s", body);
    cr_expect_eq(tk_stage_is_bulk(tk_target_find(target), op), want, "%s: %s", target, body);
    ir_close(e);
}

Test(stage, bulk_copies) {
    const char *read = "  %v = load %x[%i, %z, %z +: 256] : f16[256]\n";
    bulk("sm_90a", read, true);
    bulk("sm_80", read, false);
    bulk("sm_90a", "  %v = load %y[%i, %z +: 256] : f16[256]\n", true);
    bulk("sm_90a",
         "  %w = const 1.0 : f16[64]\n  store %y[%i, %four +: 64] = %w\n"
         "  %v = load %y[%i, %z +: 256] : f16[256]\n",
         false); // of what the program has written
    bulk("sm_90a", "  %v = const 1.0 : f16[256]\n  store %y[%i, %z +: 256] = %v\n",
         false); // an inout tensor
}

// ---- The attribute ------------------------------------------------------------------------------

static void refuses(const char *access, const char *why) {
    ir_env *e = ir_open();
    ir_refuses(kernel(e, access), why);
    ir_close(e);
}

Test(stage, verifier) {
    refuses("  %v = load %y[%i, %z +: 256] staged=3 : f16[256]\n", "3 rows in a tile of 256");
    refuses("  %v = load %y[%i, %z +: 256] staged=512 : f16[256]\n", "512 rows in a tile of 256");
    refuses("  %v = load %y[%i, %z +: 256] staged=-1 : f16[256]\n", "-1 rows in a tile of 256");
    refuses("  %v = load %y[%i, %z] staged=1 : f16\n", "a staged scalar");
}

// Barriers of a program at the staged level.
static unsigned barriers(const char *body) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, kernel(e, body));
    cr_assert(tk_lower(m, tk_target_find("sm_80"), NULL, NULL, &e->diags, NULL, false), "%s",
              ir_diags(e));
    const char *why = ir_why(e, m);
    cr_assert(!why, "%s\n%s", why, ir_text(e, m));
    const unsigned n = ir_count(m, TK_OP_BARRIER);
    ir_close(e);
    return n;
}

#define READ(name) "  %" name " = load %y[%i, %z +: 256] staged=1 : f16[256]\n"
#define WRITE(x)   "  store %y[%i, %z +: 256] = %" x " staged=1\n"

Test(stage, order) {
    cr_expect_eq(barriers(READ("v")), 0);
    cr_expect_eq(barriers(READ("v") WRITE("v")), 0); // the load waits for all, the store too
    cr_expect_eq(barriers(READ("v") WRITE("v") READ("w") WRITE("w")), 1);
    cr_expect_eq(barriers(READ("v") WRITE("v") "  %w = load %y[%i, %four +: 256] : f16[256]\n"
                                               "  store %y[%i, %z +: 256] = %w\n"),
                 2);
}

// ---- Layouts and groups -------------------------------------------------------------------------

static void layout(unsigned rank, int64_t a, int64_t b, unsigned warps) {
    const int64_t dim[2] = {a, b};
    const uint8_t order[2] = {(uint8_t)(rank - 1), 0};
    const char *why;
    for (unsigned vec = 0; vec < 4; vec++) {
        const tk_layout l = tk_layout_rows(rank, dim, order, vec, warps);
        cr_expect(tk_layout_ok(&l, &why), "%lldx%lld, %u warps: %s", (long long)a, (long long)b,
                  1U << warps, why);
        const tk_stage_plan p = {
            .axis = rank - 1, .rows = rank == 2 ? a : 1, .limit = rank == 2 ? b : a};
        uint32_t seen = 0;
        for (uint32_t r = 0; r < 1U << l.regs; r += TK_STAGE_GROUP) {
            const tk_stage_group g = tk_stage_group_of(&p, &l, r);
            for (uint32_t i = 0; i < g.n; i++) {
                cr_expect_leq(g.column[i], g.last);
            }
            seen += g.n;
        }
        cr_expect_eq(seen, 1U << l.regs);
    }
}

Test(stage, layouts) {
    for (unsigned warps = 0; warps <= 5; warps++) {
        layout(1, 64, 1, warps);
        layout(1, 4096, 1, warps);
        layout(1, 16, 1, warps);
        layout(2, 16, 256, warps);
        layout(2, 8, 1024, warps);
        layout(2, 64, 64, warps);
        layout(2, 1, 128, warps);
        layout(2, 2, 2, warps);
    }
}
