// SPDX-License-Identifier: Apache-2.0
//
// The executor's entry points: frames, the grid, one program.
#include "ir/exec_internal.h"

#include <string.h>

struct tk_frame {
    unsigned char base[1];
};

tk_frame *tk_frame_make(const tk_plan *p, void *memory) {
    tk_frame *f = memory;
    unsigned char *base = memory;
    for (uint32_t i = 0; i < p->init.n; i++) {
        tk_const_store(p->init.at[i].value, base + p->init.at[i].off);
    }
    int32_t *iota = (int32_t *)(void *)(base + p->iota);
    for (int64_t i = 0; i < p->niota; i++) {
        iota[i] = (int32_t)i;
    }
    return f;
}

tk_exec_code tk_run_steps(const tk_steps *list, tk_run *r) {
    for (uint32_t i = 0; i < list->n; i++) {
        const tk_exec_code code = list->at[i]->run(list->at[i], r);
        if (code != TK_EXEC_OK) {
            return code;
        }
    }
    return TK_EXEC_OK;
}

tk_exec_code tk_run_fault(const tk_step *s, tk_run *r, tk_exec_code code) {
    r->fault->code = code;
    r->fault->loc = s->loc;
    memcpy(r->fault->program, r->program, sizeof r->program);
    return code;
}

static void store_scalars(tk_run *r) {
    const tk_func *f = r->plan->func;
    for (uint32_t i = 0; i < f->params.n; i++) {
        if (f->value.at[f->params.at[i]].type->kind == TK_T_VALUE) {
            tk_const_store(r->env->scalar[i], r->base + r->plan->slot[i]);
        }
    }
}

void tk_exec_grid(const tk_plan *p, tk_frame *f, const tk_exec_env *env,
                  int64_t counts[TK_MAX_GRID]) {
    tk_exec_fault unused = {0};
    tk_run r = {.plan = p, .base = f->base, .env = env, .fault = &unused};
    store_scalars(&r);
    (void)tk_run_steps(&p->grid, &r);
    for (uint32_t i = 0; i < p->counts.n; i++) {
        const tk_place *x = &p->counts.at[i];
        counts[i] = tk_const_as_i64(tk_const_load(x->dtype, r.base + x->off));
    }
}

tk_exec_code tk_exec_program(const tk_plan *p, tk_frame *f, const tk_exec_env *env,
                             const int64_t program[TK_MAX_GRID], tk_exec_fault *fault) {
    tk_run r = {.plan = p, .base = f->base, .env = env, .fault = fault};
    for (uint32_t i = env->ngrid; i-- > 0;) {
        r.program[i] = program[i];
        r.number = r.number * (uint64_t)env->grid[i] + (uint64_t)program[i];
    }
    if (tk_run_stopped(&r)) {
        const tk_step none = {NULL, 0};
        return tk_run_fault(&none, &r, TK_EXEC_STOPPED);
    }
    store_scalars(&r);
    return tk_run_steps(&p->body, &r);
}
