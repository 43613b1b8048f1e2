// SPDX-License-Identifier: Apache-2.0
// Building and changing modules by hand: links, replacing, walking, notes.
#include "ir_env.h"

#include <criterion/criterion.h>
#include <string.h>

static tk_op *constant(tk_func *f, int64_t x) {
    const tk_type *t = tk_type_scalar(f->module->arena, TK_I32);
    tk_op *op = tk_op_new(f, TK_OP_CONST, 0, 0, NULL, 1, &t, 0);
    op->at.value = tk_const_i64(TK_I32, x);
    return op;
}

static tk_op *unary(tk_func *f, tk_opcode code, tk_vid x) {
    const tk_type *t = tk_value_type(f, x);
    return tk_op_new(f, code, 0, 1, &x, 1, &t, 0);
}

static void end(tk_region *r, tk_opcode code) {
    tk_op_append(r, tk_op_new(r->func, code, 0, 0, NULL, 0, NULL, 0));
}

Test(ir, a_module_is_built_changed_and_verified) {
    ir_env *e = ir_open();
    tk_module *m = tk_module_new(&e->arena, &e->sources);
    tk_func *f = tk_func_new(m, "f", false);
    cr_assert(f->body && !f->grid && tk_module_find(m, "f") == f && !tk_module_find(m, "g"));
    tk_op *a = constant(f, 1), *b = constant(f, 2);
    tk_op *neg = unary(f, TK_OP_NEG, a->res[0]), *back = unary(f, TK_OP_NEG, neg->res[0]);
    tk_op_append(f->body, a);
    tk_op_append(f->body, back);
    tk_op_insert_before(back, neg);
    tk_op_insert_before(a, b);
    end(f->body, TK_OP_RETURN);
    cr_assert_str_eq(ir_text(e, m),
                     "module tile\n\nfunc @f() {\n  %0 = const 2 : i32\n  %1 = const 1 : i32\n"
                     "  %2 = neg %1 : i32\n  %3 = neg %2 : i32\n  return\n}\n");
    cr_assert(ir_why(e, m) == NULL);
    neg->opnd[0] = b->res[0];
    tk_op_unlink(a); // in the middle
    cr_assert(a->in == NULL && tk_value_def(f, a->res[0]) == a);
    tk_op_unlink(back);
    tk_op_unlink(b); // the first
    tk_op_insert_before(neg, b);
    cr_assert_str_eq(
        ir_text(e, m),
        "module tile\n\nfunc @f() {\n  %0 = const 2 : i32\n  %1 = neg %0 : i32\n  return\n}\n");
    cr_assert(ir_why(e, m) == NULL);
    ir_close(e);
}

Test(ir, places_of_neighbours_are_shared) {
    ir_env *e = ir_open();
    tk_module *m = tk_module_new(&e->arena, NULL);
    tk_loc a = tk_loc_new(m, (tk_span){1, 2, 3}, 0);
    cr_assert(a != 0);
    cr_assert_eq(tk_loc_new(m, (tk_span){1, 2, 3}, 0), a);
    cr_assert_neq(tk_loc_new(m, (tk_span){1, 2, 3}, a), a);
    cr_assert_neq(tk_loc_new(m, (tk_span){1, 2, 4}, 0), a);
    ir_close(e);
}

static void take_out(void *user, tk_op *op) {
    unsigned *n = user;
    ++*n;
    if (op->code == TK_OP_NEG) {
        tk_op_unlink(op);
    }
}

Test(ir, a_walk_goes_outer_first_and_allows_unlinking) {
    ir_env *e = ir_open();
    tk_module *m = ir_good(e, "module tile\nkernel @k(%n: i32, %c: bool) {\n  grid {\n    %0 = neg "
                              "%n : i32\n    yield %n\n  }\n"
                              "  %1 = neg %n : i32\n  if %c {\n    %2 = neg %n : i32\n    yield\n  "
                              "} else {\n    yield\n  }\n"
                              "  return\n}\n");
    unsigned n = 0;
    tk_func_walk(m->funcs.at[0], take_out, &n);
    cr_assert_eq(n, 8);
    cr_assert_eq(ir_count(m, TK_OP_NEG), 0);
    cr_assert(ir_why(e, m) == NULL);
    ir_close(e);
}

Test(ir, notes_are_printed_with_place_verdict_and_numbers) {
    ir_env *e = ir_open();
    uint32_t id = tk_sources_add(&e->sources, "a.tk", "one\ntwo\n", 8);
    tk_notes n = {.arena = &e->arena};
    tk_note_rec *r =
        tk_note_add(&n, "p", "some-id", (tk_span){id, 5, 6}, TK_NOTE_MISSED, "no %s", "room");
    tk_note_number_add(&n, r, "bytes", 12);
    tk_note_number_add(&n, r, "share", 0.5);
    tk_note_add(&n, "p", "other", (tk_span){0, 0, 0}, TK_NOTE_INFO, "%s", "a fact");
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_notes_print(&b, &e->sources, &n);
    cr_assert_str_eq(
        tk_buf_text(&b),
        "a.tk:2:2: missed: no room (bytes 12, share 0.5) [some-id]\ninfo: a fact [other]\n");
    ir_close(e);
}
