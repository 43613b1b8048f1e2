// SPDX-License-Identifier: Apache-2.0
// Pass flight: a product that only the next iteration needs is multiplied while that one begins.
//
// in:    staged level
// out:   the last wgmma of a loop whose sum the loop hands on is `open`; the next iteration waits
//        for it behind its first wgmma, which waits for all before it anyway, and releases there
//        the slots that it reads; behind the loop both are done once more
// keeps: every value, bit for bit
// needs: specialize: in the side that computes nothing but a release makes room in a ring, so that
//        it may come an iteration later
// when not: the next iteration needs the sum before another wgmma; an operand is written to shared
//           memory by all threads; f8, whose sums are added up by threads; the left operand comes
//           from registers, and tiles are made in others before it is waited for
//
// As tensor cores do one product after the other, they go from the last of an iteration to the
// first of the next one without a pause. In attention these are P V and Q K.
#include "lower/lower.h"
#include "lower/make.h"

#include "ir/matrix.h"
#include "ir/pass_util.h"

enum { MOST_RELEASES = 2 };

typedef struct flight {
    tk_pass_ctx *c;
    tk_func *f;
    tk_op *loop, *dot, *first; // the last wgmma of the loop; its first
    uint32_t number;           // of what the loop carries
    tk_op *release[MOST_RELEASES];
    unsigned releases;
} flight;

// ---- Whether ------------------------------------------------------------------------------------

static bool is_wgmma(const tk_op *op) {
    return op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA;
}

static bool uses(const tk_op *op, tk_vid v) {
    bool any = false;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        any = any || op->opnd[i] == v;
    }
    for (uint32_t i = 0; i < op->nreg && !any; i++) {
        for (const tk_op *x = op->reg[i]->first; x && !any; x = x->next) {
            any = uses(x, v);
        }
    }
    return any;
}

static bool has_wgmma(const tk_op *op) {
    bool any = is_wgmma(op);
    for (uint32_t i = 0; i < op->nreg && !any; i++) {
        for (const tk_op *x = op->reg[i]->first; x && !any; x = x->next) {
            any = has_wgmma(x);
        }
    }
    return any;
}

// The first and the last wgmma of the body, which has none deeper in.
static bool find_products(flight *s) {
    s->first = s->dot = NULL;
    for (tk_op *op = s->loop->reg[0]->first; op; op = op->next) {
        if (is_wgmma(op)) {
            s->first = s->first ? s->first : op;
            s->dot = op;
        } else if (has_wgmma(op)) {
            return false;
        }
    }
    return s->dot && s->dot != s->first;
}

// The sum is handed on, and nothing else is done with it; nor with what was handed on before the
// first product.
static bool is_handed_on(flight *s) {
    const tk_op *end = s->loop->reg[0]->last;
    const tk_vid v = s->dot->res[0];
    uint32_t n = 0;
    for (uint32_t i = 0; i < end->nopnd; i++) {
        if (end->opnd[i] == v) {
            s->number = i;
            n++;
        }
    }
    for (const tk_op *op = s->dot->next; op && op != end; op = op->next) {
        n += uses(op, v) ? 2 : 0;
    }
    const tk_vid before = s->loop->reg[0]->args.at[1 + s->number];
    for (const tk_op *op = s->loop->reg[0]->first; op && n == 1; op = op->next) {
        n += uses(op, before) ? 1 : 0;
        if (op == s->first) {
            break;
        }
    }
    return n == 1;
}

static bool comes_before(const tk_op *x, const tk_op *y) {
    while (x && x != y) {
        x = x->next;
    }
    return x != NULL;
}

// Operand i stays where it is until the next iteration's first product, and with what it takes to
// release it then.
static bool stays(flight *s, uint32_t i) {
    const tk_op *d = tk_value_def(s->f, s->dot->opnd[i]);
    while (d && d->code == TK_OP_PERMUTE) {
        d = tk_value_def(s->f, d->opnd[0]);
    }
    if (!d || d->code != TK_OP_TAKE || d->in != s->loop->reg[0]) {
        return d && d->code == TK_OP_TAKE;
    }
    const tk_op *ring = tk_value_def(s->f, d->opnd[0]);
    tk_op *release = s->dot->next;
    while (release && (release->code != TK_OP_RELEASE || release->opnd[0] != d->opnd[0])) {
        release = release->next;
    }
    if (!release || ring->at.slots < 2 || !comes_before(s->first, d)) {
        return false;
    }
    if (s->releases == 0 || s->release[0] != release) {
        s->release[s->releases++] = release;
    }
    return true;
}

// ptxas (of CUDA 13.0) takes the registers of the left operand for its own behind the instruction,
// which may not have read them yet. So where it comes from registers no tile may be made in any
// until it is waited for, but by the next iteration's first product.
static bool makes_no_tile(const flight *s) {
    const tk_matrix_plan first = tk_matrix_plan_of(s->f, s->first);
    bool none = first.a.where == TK_OPERAND_SHARED && first.b.where == TK_OPERAND_SHARED;
    for (const tk_op *op = s->loop->reg[0]->first; op && none; op = op->next) {
        op = op == s->first ? s->dot->next : op;
        for (uint32_t i = 0; i < op->nres && none; i++) {
            const tk_type *t = tk_value_type(s->f, op->res[i]);
            none =
                t->kind != TK_T_VALUE || t->rank == 0 || tk_value_layout(s->f, op->res[i])->shared;
        }
    }
    return none;
}

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

static bool may_be_open(flight *s) {
    const tk_const *step = tk_value_const(s->f, s->loop->opnd[2]);
    if (!step || tk_const_as_i64(*step) <= 0 || !find_products(s) || !is_handed_on(s) ||
        is_f8(tk_value_type(s->f, s->dot->opnd[0])->dtype)) {
        return false;
    }
    const tk_matrix_plan p = tk_matrix_plan_of(s->f, s->dot);
    s->releases = 0;
    return p.block == 1U << p.m.log_k && p.b.where == TK_OPERAND_SHARED && stays(s, 1) &&
           ((p.a.where == TK_OPERAND_REGISTERS && makes_no_tile(s)) ||
            (p.a.where == TK_OPERAND_SHARED && stays(s, 0)));
}

// ---- Making -------------------------------------------------------------------------------------

static void rename_in(void *user, tk_op *op) { tk_vmap_operands(user, op); }

static tk_vid wait_before(flight *s, tk_op *before, tk_vid v) {
    const tk_maker make = {s->f, s->c->m->arena, s->dot->loc};
    const tk_vid w = tk_maker_op(&make, before, TK_OP_WAIT, 1, &v, tk_value_type(s->f, v));
    tk_value_lay(s->f, w, tk_value_layout(s->f, v));
    s->f->value.at[w].name = s->f->value.at[v].name;
    return w;
}

// Where from < to.
static void release_before(flight *s, tk_op *before, tk_vid from, tk_vid to) {
    const tk_maker make = {s->f, s->c->m->arena, s->dot->loc};
    if (s->releases == 0) {
        return;
    }
    const tk_vid some = tk_maker_two(&make, before, TK_OP_LT, from, to);
    tk_op *op = tk_op_new(s->f, TK_OP_IF, s->dot->loc, 1, &some, 0, NULL, 2);
    for (uint32_t i = 0; i < 2; i++) {
        op->reg[i] = tk_region_new(s->f, op);
        for (unsigned k = 0; k < s->releases && i == 0; k++) {
            tk_op_append(op->reg[i], tk_op_new(s->f, TK_OP_RELEASE, s->release[k]->loc, 1,
                                               s->release[k]->opnd, 0, NULL, 0));
        }
        tk_op_append(op->reg[i], tk_op_new(s->f, TK_OP_YIELD, s->dot->loc, 0, NULL, 0, NULL, 0));
    }
    tk_op_insert_before(before, op);
}

static void open(flight *s) {
    tk_region *body = s->loop->reg[0];
    const tk_vid handed = body->args.at[1 + s->number], result = s->loop->res[s->number];
    tk_vmap in = {.arena = s->c->scratch}, behind = {.arena = s->c->scratch};
    tk_op *next = s->first->next, *after = s->loop->next;
    tk_vmap_set(&in, handed, wait_before(s, next, handed));
    for (tk_op *op = next; op; op = op->next) {
        tk_op_walk(op, rename_in, &in);
    }
    release_before(s, next, s->loop->opnd[0], body->args.at[0]);
    tk_vmap_set(&behind, result, wait_before(s, after, result));
    for (tk_op *op = after; op; op = op->next) { // a loop's results are its region's
        tk_op_walk(op, rename_in, &behind);
    }
    release_before(s, after, s->loop->opnd[0], s->loop->opnd[1]);
    for (unsigned i = 0; i < s->releases; i++) {
        tk_op_unlink(s->release[i]);
    }
    s->dot->at.open = true;
    tk_module *m = s->c->m;
    tk_note_add(&m->notes, "flight", "flight", tk_loc_span(m, s->dot->loc), TK_NOTE_DONE,
                "the next iteration begins while this product is made");
}

// ---- The walk -----------------------------------------------------------------------------------

static void region(flight *s, tk_region *r) {
    for (tk_op *op = r->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->nreg; i++) {
            region(s, op->reg[i]);
        }
        s->loop = op;
        if (op->code == TK_OP_FOR && may_be_open(s)) {
            open(s);
        }
    }
}

void tk_pass_flight(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        flight s = {.c = c, .f = c->m->funcs.at[i]};
        for (tk_op *op = s.f->body->first; op; op = op->next) {
            if (op->code == TK_OP_PARTITION) {
                region(&s, op->reg[1]);
            }
        }
    }
}
