// SPDX-License-Identifier: Apache-2.0
//
// Check mode: who wrote which element. A shadow word is 0 (not written), a program's number + 1
// (written by that program alone), the same with ATOMIC set (changed atomically by that program
// alone), or TK_SHADOW_ATOMIC (changed atomically by several).
//
// Refused: a plain write of what another program wrote or changed, an atomic change of what another
// program wrote, a plain read of what another program wrote. Of changes by atomics any program may
// read: that is how programs hand results over.
#include "ir/exec_internal.h"

#include <string.h>

#define ATOMIC ((uint64_t)1 << 63)

static bool swap(uint64_t *word, uint64_t *old, uint64_t with) {
    return __atomic_compare_exchange_n(word, old, with, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static uint64_t program_of(uint64_t word) {
    return word == TK_SHADOW_ATOMIC ? UINT64_MAX : (word & ~ATOMIC) - 1;
}

bool tk_check_touch(uint64_t *word, uint64_t program, tk_touch touch, uint64_t *other) {
    const uint64_t me = program + 1;
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        const bool atomic = (old & ATOMIC) != 0;
        const bool mine = (old & ~ATOMIC) == me;
        uint64_t with = old;
        *other = program_of(old);
        switch (touch) {
        case TK_TOUCH_READ:
            return old == 0 || mine || atomic;
        case TK_TOUCH_WRITE:
            if (old != 0 && !mine) {
                return false;
            }
            with = me;
            break;
        case TK_TOUCH_ATOMIC:
            if (old != 0 && !mine && !atomic) {
                return false;
            }
            with = old == 0 ? (me | ATOMIC) : mine ? old : TK_SHADOW_ATOMIC;
            break;
        }
        if (with == old || swap(word, &old, with)) {
            return true;
        }
    }
}

typedef struct check {
    const uint64_t *shadow;
    uint64_t program, other;
    uint64_t element;
    tk_touch touch;
} check;

static bool visit(void *user, unsigned char *element, uint64_t *shadow, int64_t number) {
    check *c = user;
    (void)element;
    (void)number;
    c->element = (uint64_t)(shadow - c->shadow);
    return tk_check_touch(shadow, c->program, c->touch, &c->other);
}

tk_exec_code tk_check_access(const tk_step *h, const tk_mem *m, const tk_reach *a, tk_run *r,
                             tk_touch touch) {
    check c = {.shadow = a->t->shadow, .program = r->number, .touch = touch};
    if (tk_reach_each(m, a, r, visit, &c)) {
        return TK_EXEC_OK;
    }
    r->fault->param = m->param;
    r->fault->other = c.other;
    uint64_t e = c.element;
    for (uint32_t d = m->ndim; d-- > 0;) {
        r->fault->index[d] = (int64_t)(e % (uint64_t)a->t->dim[d]);
        e /= (uint64_t)a->t->dim[d];
    }
    return tk_run_fault(h, r, TK_EXEC_RACE);
}
