// SPDX-License-Identifier: Apache-2.0
// cse: computes equal expressions once.
//
// in:    any level
// out:   of pure ops (and loads) with the same operands, attributes, fast flags and layouts the
//        later ones are replaced by the first where it is visible
// keeps: all values bit for bit, effects and their order; the place of the first
// needs: nothing
// when not: ops with regions; loads across a region's boundary or anything that may write a tensor
//           (any tensor: a program's tensors are not compared)
#include "ir/pass_util.h"

#include <string.h>

typedef struct entry {
    tk_op *op;
    uint32_t epoch; // of memory; 0 for pure ops
    uint32_t hash;
    struct entry *next; // in its slot
} entry;

typedef struct cse {
    tk_pass_ctx *c;
    tk_func *f;
    tk_vmap map;
    entry **slot;
    uint32_t room;         // power of two
    TK_VEC(entry *) scope; // those visible, in order; a region's are taken out at its end
    uint32_t epoch, epochs;
} cse;

// ---- Equality -----------------------------------------------------------------------------------

static uint32_t mix(uint32_t h, uint64_t x) {
    for (int i = 0; i < 8; i++) {
        h = (h ^ (uint32_t)(x >> 8 * i & 0xff)) * 16777619u;
    }
    return h;
}

static uint32_t hash_type(uint32_t h, const tk_type *t) {
    h = mix(h, (uint64_t)t->dtype << 8 | t->rank);
    for (unsigned i = 0; i < t->rank; i++) {
        h = mix(h, (uint64_t)t->dim[i]);
    }
    return h;
}

static uint32_t hash_op(const cse *s, const tk_op *op, uint32_t epoch) {
    uint32_t h = mix(2166136261u, (uint64_t)op->code << 32 | epoch);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        h = mix(h, op->opnd[i]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        h = hash_type(h, tk_value_type(s->f, op->res[i]));
    }
    tk_attr_bits has = tk_op_attrs(op->code);
    h = mix(h, has & TK_A_VALUE ? op->at.value.bits : 0);
    h = mix(h, has & TK_A_AXIS ? (uint64_t)op->at.axis : 0);
    return mix(h, has & TK_A_KIND ? (uint64_t)op->at.kind : 0);
}

static bool same_attrs(const tk_op *x, const tk_op *y) {
    const tk_attrs *a = &x->at, *b = &y->at;
    tk_attr_bits has = tk_op_attrs(x->code);
    return (!(has & TK_A_VALUE) || tk_const_same(a->value, b->value)) &&
           (!(has & TK_A_AXIS) || a->axis == b->axis) &&
           (!(has & TK_A_START) || a->start == b->start) &&
           (!(has & TK_A_PERM) || memcmp(a->perm, b->perm, sizeof a->perm) == 0) &&
           (!(has & TK_A_KIND) || a->kind == b->kind) &&
           (!(has & TK_A_REVERSE) || a->reverse == b->reverse) &&
           (!(has & TK_A_EXCLUSIVE) || a->exclusive == b->exclusive) &&
           (!(has & TK_A_DESCENDING) || a->descending == b->descending) &&
           (!(has & TK_A_MASKED) || a->masked == b->masked) &&
           (!(has & TK_A_OTHER) || a->other == b->other) &&
           (!(has & TK_A_STAGED) || a->staged == b->staged) &&
           (!(has & TK_A_HOLD) || (a->hold == b->hold && a->held == b->held)) &&
           (!(has & TK_A_PRECISION) || a->precision == b->precision) &&
           (!(has & TK_A_UNIT) || a->unit == b->unit) &&
           (!(has & TK_A_OPEN) || a->open == b->open) &&
           (!(has & TK_A_INDEX) || memcmp(a->index, b->index, sizeof a->index) == 0);
}

static bool same(const cse *s, const tk_op *x, const tk_op *y) {
    if (x->code != y->code || x->fast != y->fast || x->nopnd != y->nopnd || x->nres != y->nres ||
        !same_attrs(x, y)) {
        return false;
    }
    for (uint32_t i = 0; i < x->nopnd; i++) {
        if (x->opnd[i] != y->opnd[i]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < x->nres; i++) {
        if (!tk_type_eq(tk_value_type(s->f, x->res[i]), tk_value_type(s->f, y->res[i])) ||
            !tk_value_same_layout(s->f, x->res[i], y->res[i])) {
            return false;
        }
    }
    return true;
}

// ---- The table ----------------------------------------------------------------------------------

static void grow(cse *s) {
    s->room = s->room ? s->room * 2 : 256;
    TK_CHECK(s->c->scratch, s->room != 0);
    s->slot = TK_NEW_ARRAY(s->c->scratch, entry *, s->room);
    for (uint32_t i = 0; i < s->scope.n; i++) { // oldest first, so that the newest is in front
        entry *e = s->scope.at[i];
        e->next = s->slot[e->hash & (s->room - 1)];
        s->slot[e->hash & (s->room - 1)] = e;
    }
}

static void add(cse *s, tk_op *op, uint32_t epoch, uint32_t hash) {
    if (s->scope.n >= s->room) {
        grow(s);
    }
    entry *e = TK_NEW(s->c->scratch, entry);
    *e = (entry){op, epoch, hash, s->slot[hash & (s->room - 1)]};
    s->slot[hash & (s->room - 1)] = e;
    tk_vec_push(s->c->scratch, &s->scope, e);
}

static void end_scope(cse *s, uint32_t n) {
    while (s->scope.n > n) {
        entry *e = s->scope.at[--s->scope.n];
        s->slot[e->hash & (s->room - 1)] = e->next; // the newest is in front
    }
}

// ---- The walk -----------------------------------------------------------------------------------

// Whether op went: an equal one stands for it.
static bool replaced(cse *s, tk_op *op, uint32_t epoch) {
    uint32_t hash = hash_op(s, op, epoch);
    for (entry *e = s->room ? s->slot[hash & (s->room - 1)] : NULL; e; e = e->next) {
        if (e->hash == hash && e->epoch == epoch && same(s, e->op, op)) {
            for (uint32_t i = 0; i < op->nres; i++) {
                tk_vmap_set(&s->map, op->res[i], e->op->res[i]);
            }
            tk_op_unlink(op);
            return true;
        }
    }
    add(s, op, epoch, hash);
    return false;
}

// Whether the region may write.
static bool region(cse *s, tk_region *r) {
    uint32_t visible = s->scope.n;
    bool writes = false;
    s->epoch = ++s->epochs;
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        tk_vmap_operands(&s->map, op);
        uint32_t before = s->epoch;
        bool inner = false;
        for (uint32_t i = 0; i < op->nreg; i++) {
            inner = region(s, op->reg[i]) || inner;
        }
        if (!op->nreg) {
            inner = (tk_op_effects(op) & TK_HAS_WRITE) != 0;
        }
        s->epoch = inner ? ++s->epochs : before;
        writes = writes || inner;
        if (tk_op_is_pure(op)) {
            (void)replaced(s, op, 0);
        } else if (op->code == TK_OP_LOAD) {
            (void)replaced(s, op, s->epoch);
        }
    }
    end_scope(s, visible);
    return writes;
}

void tk_pass_cse(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        cse s = {.c = c, .f = c->m->funcs.at[i], .map = {.arena = c->scratch}};
        if (s.f->grid) {
            (void)region(&s, s.f->grid);
        }
        (void)region(&s, s.f->body);
    }
}
