// SPDX-License-Identifier: Apache-2.0
// What a program reads of its own: bytes of the loads whose place depends on the program's number.
//
// Reading them is what a program that streams waits for, and how many blocks a multiprocessor
// should hold follows from it. What all programs read alike, such as a norm's weights, comes from
// the caches and does not count. A loop's loads count once, and of several loops or branches the
// one that reads most.
#include "lower/lower.h"

typedef struct stream {
    const tk_func *f;
    bool *own; // by value: whether it may differ between programs
    bool changed;
} stream;

static void mark(stream *s, tk_vid v, bool own) {
    if (own && !s->own[v]) {
        s->own[v] = true;
        s->changed = true;
    }
}

static bool any_own(const stream *s, const tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (s->own[op->opnd[i]]) {
            return true;
        }
    }
    return false;
}

// What a region yields and takes is thrown together with all that its op has.
static void find(void *user, tk_op *op) {
    stream *s = user;
    bool own = op->code == TK_OP_PROGRAM_ID || any_own(s, op);
    for (uint32_t i = 0; i < op->nreg; i++) {
        own = own || (op->reg[i]->last && any_own(s, op->reg[i]->last));
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        mark(s, op->res[i], own);
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (uint32_t k = 0; k < op->reg[i]->args.n; k++) {
            mark(s, op->reg[i]->args.at[k], own);
        }
    }
}

static uint64_t bytes_of(const stream *s, const tk_region *r) {
    uint64_t here = 0, most = 0;
    for (const tk_op *op = r->first; op; op = op->next) {
        if (op->code == TK_OP_LOAD && any_own(s, op)) {
            const tk_type *t = tk_value_type(s->f, op->res[0]);
            here += (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            const uint64_t n = bytes_of(s, op->reg[i]);
            most = n > most ? n : most;
        }
    }
    return here + most;
}

static void find_dot(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED;
}

// The same in all programs: made of constants, sizes and numbers of iterations.
static bool is_alike(const tk_func *f, tk_vid v, unsigned depth) {
    enum { DEEP = 8 };
    const tk_irvalue *x = &f->value.at[v];
    const tk_op *loop = x->region ? x->region->owner : NULL;
    if (x->type->kind == TK_T_TENSOR) {
        return x->type->access == TK_IN;
    }
    if (depth > DEEP) {
        return false;
    }
    if (loop) {
        return loop->code == TK_OP_FOR && x->index == 0 && is_alike(f, loop->opnd[0], depth + 1) &&
               is_alike(f, loop->opnd[1], depth + 1) && is_alike(f, loop->opnd[2], depth + 1);
    }
    if (!x->def) {
        return true; // a scalar that is given
    }
    switch ((int)x->def->code) { // of many
    case TK_OP_DIM:
    case TK_OP_CONST:
    case TK_OP_IOTA:
        return true;
    }
    bool alike = tk_op_info(x->def->code)->elementwise || x->def->code == TK_OP_CAST ||
                 x->def->code == TK_OP_BROADCAST;
    for (uint32_t i = 0; alike && i < x->def->nopnd; i++) {
        alike = is_alike(f, x->def->opnd[i], depth + 1);
    }
    return alike;
}

bool tk_is_common_load(const tk_func *f, const tk_op *op) {
    if (op->code != TK_OP_LOAD || op->at.other) {
        return false;
    }
    const uint32_t places = 1 + tk_value_type(f, op->opnd[0])->rank; // with the tensor; then a mask
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const bool is_line = i == 0 || i >= places || tk_value_type(f, op->opnd[i])->rank == 0;
        if (!is_line || !is_alike(f, op->opnd[i], 0)) {
            return false;
        }
    }
    return true;
}

uint64_t tk_streamed_bytes(tk_arena *scratch, const tk_func *f) {
    tk_func *walked = (tk_func *)(uintptr_t)f;
    bool dot = false;
    tk_func_walk(walked, find_dot, &dot);
    stream s = {.f = f, .own = TK_NEW_ARRAY(scratch, bool, f->value.n), .changed = true};
    while (s.changed && !dot) {
        s.changed = false;
        tk_func_walk(walked, find, &s);
    }
    return dot ? 0 : bytes_of(&s, f->body);
}
