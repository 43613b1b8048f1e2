// SPDX-License-Identifier: Apache-2.0
// licm: moves out of a loop the pure ops whose operands do not change in it; inner loops first.
//
// in:    any level
// out:   no pure op directly in the body of a for or while has only operands from outside of it,
//        but for constants, iotas and broadcasts
// keeps: all values bit for bit; effects and their order
// needs: cse (else equal ops move each)
// when not: loads (what they read may change); ops in an if inside the loop (they may not run
//           often); ops with regions. Constants, iotas and broadcasts stay: making them again costs
//           less than holding a tile through the loop; where an op that moves uses one, it gets a
//           copy of its own outside.
// Nothing traps, so that it is right to compute what a loop of no iterations would not have.
#include "ir/pass_util.h"

typedef struct licm {
    tk_pass_ctx *c;
    tk_func *f;
    tk_vmap could; // results of cheap ops that could stand before their loop: not 0
    tk_vmap copy;  // of those that some moved op needed: their copies there
} licm;

static bool is_cheap(const tk_op *op) {
    return op->code == TK_OP_CONST || op->code == TK_OP_IOTA || op->code == TK_OP_BROADCAST;
}

static bool is_inside(const licm *l, const tk_region *r, tk_vid v) {
    return tk_value_region(l->f, v) == r;
}

static bool may_move(const licm *l, const tk_region *r, const tk_op *op) {
    if (!tk_op_is_pure(op)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        tk_vid v = op->opnd[i];
        if (is_inside(l, r, v) && (v >= l->could.n || !l->could.to[v])) {
            return false;
        }
    }
    return true;
}

static void copy_before(licm *l, tk_op *loop, const tk_op *op) {
    const tk_type *type = tk_value_type(l->f, op->res[0]);
    tk_op *made = tk_op_new(l->f, op->code, op->loc, op->nopnd, op->opnd, 1, &type, 0);
    made->at = op->at;
    made->fast = op->fast;
    l->f->value.at[made->res[0]].name = l->f->value.at[op->res[0]].name;
    tk_value_lay(l->f, made->res[0], tk_value_layout(l->f, op->res[0]));
    tk_vmap_operands(&l->copy, made);
    tk_op_insert_before(loop, made);
    tk_vmap_set(&l->copy, op->res[0], made->res[0]);
}

// Copies the cheap op that makes v, after those that it needs itself.
static void need(licm *l, tk_op *loop, const tk_region *r, tk_vid v) {
    TK_VEC(tk_vid) work = {0};
    tk_vec_push(l->c->scratch, &work, v);
    while (work.n) {
        v = work.at[work.n - 1];
        bool ready = !is_inside(l, r, v) || tk_vmap_get(&l->copy, v) != v;
        const tk_op *op = ready ? NULL : tk_value_def(l->f, v);
        uint32_t waits = 0;
        for (uint32_t i = 0; op && i < op->nopnd; i++) {
            tk_vid x = op->opnd[i];
            if (is_inside(l, r, x) && tk_vmap_get(&l->copy, x) == x) {
                tk_vec_push(l->c->scratch, &work, x);
                waits++;
            }
        }
        if (waits == 0) {
            work.n--;
            if (op) {
                copy_before(l, loop, op);
            }
        }
    }
}

static void move_before(licm *l, tk_op *loop, tk_op *op) {
    tk_module *m = l->c->m;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        need(l, loop, op->in, op->opnd[i]);
    }
    tk_vmap_operands(&l->copy, op);
    tk_op_unlink(op);
    tk_op_insert_before(loop, op);
    tk_note_rec *r = tk_note_add(
        &m->notes, "licm", "hoisted", tk_loc_span(m, op->loc), TK_NOTE_DONE,
        "'%s' does not change in the loop and is computed before it", tk_op_info(op->code)->name);
    tk_note_number_add(&m->notes, r, "elements",
                       (double)tk_type_elems(tk_value_type(l->f, op->res[0])));
}

static void one_region(licm *l, tk_op *loop, tk_region *r) {
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        if (!may_move(l, r, op)) {
            continue;
        }
        if (is_cheap(op)) {
            tk_vmap_set(&l->could, op->res[0], op->res[0]);
        } else {
            move_before(l, loop, op);
        }
    }
}

static void region(licm *l, tk_region *r) {
    for (tk_op *op = r->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nreg; i++) {
            region(l, op->reg[i]);
        }
        for (uint32_t i = 0; i < op->nreg && (op->code == TK_OP_FOR || op->code == TK_OP_WHILE);
             i++) {
            one_region(l, op, op->reg[i]);
        }
    }
}

void tk_pass_licm(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        licm l = {.c = c,
                  .f = c->m->funcs.at[i],
                  .copy = {.arena = c->scratch},
                  .could = {.arena = c->scratch}};
        region(&l, l.f->body);
    }
}
