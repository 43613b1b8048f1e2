// SPDX-License-Identifier: Apache-2.0
// pack: lets programs that are too small to fill a block share one.
//
// in:    tile level, calls inlined
// out:   a program is what `packed` programs next to each other along grid axis 0 were; the grid is
//        that much smaller
// keeps: what each program reads, computes and writes, but for the order of float sums and products
// needs: nothing
// when not: the author says how many warps run a program, or asks for clusters; what a program
//           reads is large enough for a block, or what programs do cannot be done together:
//           control flow that differs between them, atomics, products of matrices, a store that
//           does not depend on the program, loops whose tiles are to be loaded ahead, as rings are
//           no one's but a program's; a debug compile, whose reports name programs
//
// A block starts in a fixed time, in which a GPU could have read 2 KB. So programs that read less
// are put together until they read 4 KB (bench/NOTES.md). Each value that differs between them gets
// an axis of programs (pack.h), and all else follows: the loads of neighbours join where they
// touch, since a layout knows the axis as any other. How much a program with a loop reads is not
// known: such programs fill the lanes of a warp and no more, lest too few blocks are left.

#include "lower/pack.h"
#include "lower/pad.h"
#include "lower/views.h"

#include <string.h>

enum { ENOUGH = 2048, WANTED = 4096, MOST_ELEMENTS = 2048, LANES = 32 };

// ---- What varies --------------------------------------------------------------------------------

static void mark(tk_packer *p, tk_vid v, bool varies) {
    if (varies && !tk_pack_varies(p, v)) {
        tk_pack_set_varies(p, v);
        p->changed = true;
    }
}

static void mark_region(tk_packer *p, tk_region *r);

// What a loop carries varies where it does at first or from one iteration to the next.
static void mark_carried(tk_packer *p, tk_op *op, uint32_t skip_operands, uint32_t skip_args) {
    const tk_region *last = op->reg[op->nreg - 1];
    for (uint32_t k = 0; k < op->nres; k++) {
        const bool varies = tk_pack_varies(p, op->opnd[skip_operands + k]) ||
                            tk_pack_varies(p, last->last->opnd[k]) || tk_pack_varies(p, op->res[k]);
        mark(p, op->res[k], varies);
        for (uint32_t i = 0; i < op->nreg; i++) {
            mark(p, op->reg[i]->args.at[skip_args + k], varies);
        }
    }
}

static bool any_operand(const tk_packer *p, const tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (tk_pack_varies(p, op->opnd[i])) {
            return true;
        }
    }
    return false;
}

static void mark_op(tk_packer *p, tk_op *op) {
    if (op->code == TK_OP_IF || op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
        for (uint32_t i = 0; i < op->nreg; i++) {
            mark_region(p, op->reg[i]);
        }
    }
    switch ((int)op->code) {
    case TK_OP_IF:
        for (uint32_t k = 0; k < op->nres; k++) {
            mark(p, op->res[k],
                 tk_pack_varies(p, op->reg[0]->last->opnd[k]) ||
                     tk_pack_varies(p, op->reg[1]->last->opnd[k]));
        }
        return;
    case TK_OP_FOR:
        mark_carried(p, op, 3, 1);
        return;
    case TK_OP_WHILE:
        mark_carried(p, op, 0, 0);
        return;
    }
    const bool varies = (op->code == TK_OP_PROGRAM_ID && op->at.axis == 0) || any_operand(p, op);
    for (uint32_t i = 0; i < op->nres; i++) {
        mark(p, op->res[i], varies);
    }
}

static void mark_region(tk_packer *p, tk_region *r) {
    for (tk_op *op = r->first; op; op = op->next) {
        mark_op(p, op);
    }
}

// ---- Whether it can be done ---------------------------------------------------------------------

static void refuse(tk_packer *p, const tk_op *op, const char *why) {
    if (!p->why) {
        p->why = why;
        p->where = op->loc;
    }
}

static void judge(void *user, tk_op *op) {
    tk_packer *p = user;
    const tk_region *owner = op->in;
    if (owner == p->f->grid) {
        if (op->nreg) {
            refuse(p, op, "the size of the grid is computed by control flow");
        }
        return;
    }
    const tk_op *in = owner->owner;
    if (in && in->code != TK_OP_IF && in->code != TK_OP_FOR && in->code != TK_OP_WHILE) {
        if (any_operand(p, op)) { // of a function that combines elements
            refuse(p, op, "a function that combines elements takes what differs between programs");
        }
        return;
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_type *t = tk_value_type(p->f, op->res[i]);
        if (tk_pack_varies(p, op->res[i]) && t->rank + 1 > TK_MAX_RANK) {
            refuse(p, op, "a tile has as many axes as there may be");
        }
    }
    if (op->code == TK_OP_STORE && tk_view_type(p->f, op)->rank + 1 > TK_MAX_RANK) {
        refuse(p, op, "a tile has as many axes as there may be");
    }
    if (op->code == TK_OP_ATOMIC_RMW || op->code == TK_OP_ATOMIC_CAS) {
        refuse(p, op, "it has atomics");
    } else if (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) {
        refuse(p, op, "it multiplies matrices");
    } else if (op->code == TK_OP_CALL) {
        refuse(p, op, "it has calls");
    } else if (any_operand(p, op)) {
        const char *why = tk_pack_refusal(p, op);
        if (why) {
            refuse(p, op, why);
        }
    }
    if (op->code == TK_OP_WHILE && tk_pack_varies(p, op->reg[0]->last->opnd[0])) {
        refuse(p, op, "how often a loop runs differs between programs");
    }
}

static int64_t largest_tile(const tk_func *f) {
    int64_t most = 1;
    for (uint32_t v = 1; v < f->value.n; v++) {
        const tk_type *t = f->value.at[v].type;
        int64_t n = 1;
        for (unsigned i = 0; t && t->kind == TK_T_VALUE && i < t->rank; i++) {
            n *= tk_pad_extent(t->dim[i]);
        }
        most = n > most ? n : most;
    }
    return most;
}

typedef struct traits {
    bool loops, ahead; // has loops; loads ahead
} traits;

static void find_traits(void *user, tk_op *op) {
    traits *t = user;
    t->loops = t->loops || op->code == TK_OP_FOR || op->code == TK_OP_WHILE;
    t->ahead = t->ahead || op->at.pipeline > 1;
}

// How many programs share a block: 1 where one is enough for it.
static int64_t programs(const tk_pass_ctx *c, const tk_func *f) {
    const uint64_t bytes = tk_streamed_bytes(c->scratch, f);
    const int64_t elements = largest_tile(f);
    traits t = {0};
    tk_func_walk((tk_func *)(uintptr_t)f, find_traits, &t);
    const int64_t most = (t.loops ? LANES : MOST_ELEMENTS) / elements;
    int64_t n = 1;
    while (!t.ahead && bytes && bytes < ENOUGH && 2 * (uint64_t)n * bytes <= WANTED + WANTED / 8 &&
           2 * n <= most) {
        n *= 2;
    }
    return n;
}

// ---- Doing it -----------------------------------------------------------------------------------

static tk_vid number(tk_packer *p, int64_t x) {
    tk_vid v = tk_pack_make(p, TK_OP_CONST, tk_type_scalar(p->c->m->arena, TK_I32), 0, NULL);
    tk_value_def(p->f, v)->at.value = tk_const_i64(TK_I32, x);
    return v;
}

static tk_vid both(tk_packer *p, tk_opcode code, tk_vid x, tk_vid y) {
    const tk_type *t = tk_value_type(p->f, x);
    t = code == TK_OP_LT ? tk_type_with_dtype(p->c->m->arena, t, TK_BOOL) : t;
    return tk_pack_make(p, code, t, 2, (tk_vid[]){x, y});
}

// How many programs there were along axis 0, in the body.
static tk_vid count_again(tk_packer *p) {
    tk_vmap made = {.arena = p->c->scratch};
    for (const tk_op *op = p->f->grid->first; op != p->f->grid->last; op = op->next) {
        const tk_type *types[1] = {tk_value_type(p->f, op->res[0])};
        tk_op *again = tk_op_new(p->f, op->code, op->loc, op->nopnd, op->opnd, 1, types, 0);
        again->at = op->at;
        again->fast = op->fast;
        tk_vmap_operands(&made, again);
        tk_op_insert_before(p->before, again);
        tk_vmap_set(&made, op->res[0], again->res[0]);
    }
    return tk_vmap_get(&made, p->f->grid->last->opnd[0]);
}

static void enter(tk_packer *p) {
    tk_arena *a = p->c->m->arena;
    const tk_type *i32 = tk_type_scalar(a, TK_I32), *line = tk_type_tile(a, TK_I32, 1, &p->n);
    p->before = p->f->body->first;
    p->loc = p->f->loc;
    p->count = count_again(p);
    tk_vid block = tk_pack_make(p, TK_OP_PROGRAM_ID, i32, 0, NULL);
    tk_value_def(p->f, block)->at.axis = 0;
    tk_vid first = both(p, TK_OP_MUL, block, number(p, p->n));
    tk_vid iota = tk_pack_make(p, TK_OP_IOTA, line, 0, NULL);
    p->program = both(p, TK_OP_ADD, tk_pack_spread(p, first, 1, &p->n), iota);
    p->exists = both(p, TK_OP_LT, p->program, tk_pack_spread(p, p->count, 1, &p->n));
    tk_op *end = p->f->grid->last;
    p->before = end;
    end->opnd[0] = both(p, TK_OP_CDIV, end->opnd[0], number(p, p->n));
}

static void do_ops(tk_packer *p, tk_op *first);

static void retype(tk_packer *p, tk_vid v) {
    if (tk_pack_varies(p, v)) {
        tk_irvalue *x = &p->f->value.at[v];
        x->type = tk_pack_type(p, x->type);
    }
}

// What goes from one region to another has the axis where any of what meets has it.
static void hand_on(tk_packer *p, tk_op *op, uint32_t skip, const tk_vid *to, uint32_t n) {
    p->before = op;
    p->loc = op->loc;
    for (uint32_t k = 0; k < n; k++) {
        if (tk_pack_varies(p, to[k])) {
            op->opnd[skip + k] = tk_pack_get(p, op->opnd[skip + k]);
        }
    }
}

static void do_control(tk_packer *p, tk_op *op) {
    const uint32_t skip = op->code == TK_OP_FOR ? 3 : 0;
    if (op->code != TK_OP_IF) {
        hand_on(p, op, skip, op->res, op->nres);
    }
    for (uint32_t k = 0; k < op->nres; k++) {
        retype(p, op->res[k]);
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        tk_region *r = op->reg[i];
        for (uint32_t k = 0; k < r->args.n; k++) {
            retype(p, r->args.at[k]);
        }
        do_ops(p, r->first);
        if (op->code != TK_OP_WHILE || i == 1) { // not the condition
            hand_on(p, r->last, 0, op->res, op->nres);
        }
    }
}

static void do_op(tk_packer *p, tk_op *op) {
    tk_vmap_operands(&p->map, op);
    p->before = op;
    p->loc = op->loc;
    switch ((int)op->code) {
    case TK_OP_IF:
    case TK_OP_FOR:
    case TK_OP_WHILE:
        do_control(p, op);
        return;
    case TK_OP_YIELD:
    case TK_OP_RETURN:
        return;
    case TK_OP_PROGRAM_ID:
        if (op->at.axis == 0) {
            tk_pack_replace(p, op->res[0], p->program);
        }
        return;
    case TK_OP_NUM_PROGRAMS:
        if (op->at.axis == 0) {
            tk_vmap_set(&p->map, op->res[0], p->count);
        }
        return;
    }
    if (any_operand(p, op)) {
        tk_pack_op(p, op);
    }
}

static void do_ops(tk_packer *p, tk_op *first) {
    for (tk_op *op = first, *next; op; op = next) {
        next = op->next;
        do_op(p, op);
    }
}

static void note(tk_packer *p, bool done) {
    tk_notes *notes = &p->c->m->notes;
    const tk_span at = tk_loc_span(p->c->m, done ? p->f->loc : p->where);
    tk_note_rec *r =
        done ? tk_note_add(notes, "pack", "packed", at, TK_NOTE_DONE,
                           "'%s': programs next to each other share a block", p->f->name)
             : tk_note_add(notes, "pack", "packed", at, TK_NOTE_MISSED,
                           "'%s': a program reads too little for a block, and none can share one "
                           "with others: %s",
                           p->f->name, p->why);
    tk_note_number_add(notes, r, "programs", (double)p->n);
}

static void pack(tk_pass_ctx *c, tk_func *f) {
    tk_packer p = {.c = c, .f = f, .n = programs(c, f)};
    if (p.n == 1) {
        return;
    }
    p.map.arena = c->scratch;
    do {
        p.changed = false;
        mark_region(&p, f->body);
    } while (p.changed);
    tk_func_walk(f, judge, &p);
    if (!p.why) {
        tk_op *first = f->body->first;
        enter(&p);
        do_ops(&p, first);
        c->m->packed = p.n;
    }
    note(&p, !p.why);
}

void tk_pass_pack(tk_pass_ctx *c) {
    if (c->debug || c->m->attrs.warps || c->m->attrs.cluster > 1 || c->m->packed) {
        return;
    }
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (f->is_kernel && f->grid && f->grid->last->nopnd > 0) {
            pack(c, f);
        }
    }
}
