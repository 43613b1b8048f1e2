// SPDX-License-Identifier: Apache-2.0
//
// Atomics on elements of 2, 4 and 8 bytes: real atomic operations of the machine, since programs
// run on several threads. What the machine has no instruction for is a loop of compare and
// exchange. An order other than relaxed is carried out as sequentially consistent, which is more
// than was asked for; scopes are all of the process. min and max are fmin and fmax: a NaN given is
// not applied, and a NaN in memory gives way.
#include "ir/exec_internal.h"

#include <string.h>

typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

typedef struct atomic_step {
    tk_step h;
    tk_mem m;
    tk_dtype dtype;
    tk_kindattr kind;
    bool is_cas, relaxed;
    tk_place result;          // dense
    tk_place expected, value; // dense
} atomic_step;

typedef struct change {
    const atomic_step *s;
    unsigned char *base;
} change;

// The element's new value.
static uint64_t changed(const atomic_step *s, uint64_t old, uint64_t value) {
    const tk_const a = {s->dtype, old}, b = {s->dtype, value};
    switch (s->kind) {
    case TK_K_ADD:
        return tk_num_binary(TK_NUM_ADD, s->dtype, a, b).bits;
    case TK_K_MIN:
        return tk_dtype_is_float(s->dtype) && tk_const_is_nan(b)
                   ? old
                   : tk_num_binary(TK_NUM_FMIN, s->dtype, a, b).bits;
    case TK_K_MAX:
        return tk_dtype_is_float(s->dtype) && tk_const_is_nan(b)
                   ? old
                   : tk_num_binary(TK_NUM_FMAX, s->dtype, a, b).bits;
    case TK_K_AND:
        return old & value;
    case TK_K_OR:
        return old | value;
    case TK_K_XOR:
        return old ^ value;
    case TK_K_XCHG:
        return value;
    case TK_K_SUM:
    case TK_K_PROD:
    case TK_K_ANY:
    case TK_K_ALL:
        break;
    }
    return old;
}

// One atomic change of an element; gives the old value.
#define CHANGE(WORD)                                                                               \
    static uint64_t change_##WORD(const atomic_step *s, void *element, uint64_t expected,          \
                                  uint64_t value) {                                                \
        WORD *p = element;                                                                         \
        WORD old = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                           \
        for (;;) {                                                                                 \
            if (s->is_cas && old != (WORD)expected) {                                              \
                return old;                                                                        \
            }                                                                                      \
            const WORD with = (WORD)(s->is_cas ? value : changed(s, old, value));                  \
            const bool done =                                                                      \
                s->relaxed ? __atomic_compare_exchange_n(p, &old, with, false, __ATOMIC_RELAXED,   \
                                                         __ATOMIC_RELAXED)                         \
                           : __atomic_compare_exchange_n(p, &old, with, false, __ATOMIC_SEQ_CST,   \
                                                         __ATOMIC_SEQ_CST);                        \
            if (done) {                                                                            \
                return old;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }
CHANGE(word2)
CHANGE(word4)
CHANGE(word8)

static bool visit(void *user, unsigned char *element, uint64_t *shadow, int64_t number) {
    const change *c = user;
    const atomic_step *s = c->s;
    const size_t at = (size_t)number * s->m.size;
    const uint64_t value = tk_const_load(s->dtype, c->base + s->value.off + at).bits;
    const uint64_t expected =
        s->is_cas ? tk_const_load(s->dtype, c->base + s->expected.off + at).bits : 0;
    tk_const old = {s->dtype, 0};
    (void)shadow;
    old.bits = s->m.size == 2   ? change_word2(s, element, expected, value)
               : s->m.size == 4 ? change_word4(s, element, expected, value)
                                : change_word8(s, element, expected, value);
    tk_const_store(old, c->base + s->result.off + at);
    return true;
}

static tk_exec_code run_atomic(const tk_step *h, tk_run *r) {
    const atomic_step *s = (const atomic_step *)h;
    tk_reach a;
    tk_reach_begin(&s->m, r, &a);
    if (a.t->shadow && tk_check_access(h, &s->m, &a, r, TK_TOUCH_ATOMIC) != TK_EXEC_OK) {
        return TK_EXEC_RACE;
    }
    memset(r->base + s->result.off, 0, (size_t)tk_place_elems(&s->result) * s->m.size);
    change c = {s, r->base};
    (void)tk_reach_each(&s->m, &a, r, visit, &c);
    return TK_EXEC_OK;
}

void tk_exec_emit_atomic(tk_planner *p) {
    const tk_op *op = p->op;
    atomic_step plan = {.dtype = tk_plan_type(p, op->opnd[0])->dtype,
                        .kind = op->at.kind,
                        .is_cas = op->code == TK_OP_ATOMIC_CAS,
                        .relaxed = op->at.order == TK_ORDER_RELAXED};
    uint32_t next = tk_mem_plan(p, &plan.m);
    if (plan.is_cas) {
        plan.expected = tk_plan_dense(p, tk_plan_place(p, op->opnd[next++]));
    }
    plan.value = tk_plan_dense(p, tk_plan_place(p, op->opnd[next++]));
    plan.m.masked = op->at.masked;
    if (op->at.masked) {
        plan.m.mask = tk_mem_place(&plan.m, tk_plan_place(p, op->opnd[next]));
    }
    plan.result = tk_plan_place(p, op->res[0]);
    atomic_step *s = tk_plan_step(p, sizeof *s, run_atomic);
    plan.h = s->h;
    *s = plan;
}
