// SPDX-License-Identifier: Apache-2.0
// Calls of functions and their ends.
//
// A function's registers are slots of the warp; a call has memory of its own behind its caller's,
// where its parameters and results lie too. Where functions may call themselves, the registers of
// the calling one are put aside, thread by thread, until the call has returned.
#include "sim/exec.h"

typedef struct frame {
    const tk_sim_inst *call;
    uint32_t base; // of the call's memory in its thread's
} frame;

struct tk_sim_calls { // of a thread
    uint32_t depth;
    frame at[TK_SIM_CALL_DEPTH];
    TK_VEC(uint64_t) aside;
};

void tk_sim_calls_make(tk_sim_warp *w) {
    w->calls = TK_NEW_ARRAY(w->grid->arena, struct tk_sim_calls, TK_SIM_LANES);
}

void tk_sim_calls_begin(tk_sim_warp *w) {
    for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
        w->calls[l].depth = w->calls[l].aside.n = 0;
    }
}

uint64_t tk_sim_calls_state(const tk_sim_warp *w) {
    uint64_t h = 0;
    TK_SIM_EACH(l, w->alive) {
        const struct tk_sim_calls *c = &w->calls[l];
        for (uint32_t k = 0; k < c->depth; k++) {
            h = (h ^ tk_sim_index(w, c->at[k].call)) * UINT64_C(0x9E3779B97F4A7C15);
        }
        h = (h ^ c->depth) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return h;
}

static uint32_t return_of(const tk_sim_warp *w, uint32_t lane) {
    const struct tk_sim_calls *c = &w->calls[lane];
    return tk_sim_index(w, c->at[c->depth - 1].call) + 1;
}

uint32_t tk_sim_calls_together(const tk_sim_warp *w, uint32_t lanes, uint32_t *to) {
    uint32_t first = TK_SIM_LANES, same = 0;
    TK_SIM_EACH(l, w->calls ? lanes : 0) {
        if (w->calls[l].depth) {
            first = first < l ? first : l;
            *to = return_of(w, first);
            same |= (uint32_t)(return_of(w, l) == *to) << l;
        }
    }
    return same;
}

static unsigned char *memory_of(const tk_sim_warp *w, uint32_t lane) {
    return w->block->local + (size_t)tk_sim_thread(w, lane) * w->grid->local_stride;
}

// ---- Registers put aside: those of the function that calls

static const tk_sim_entry *caller_of(const tk_sim_warp *w, uint32_t lane) {
    const struct tk_sim_calls *c = &w->calls[lane];
    return c->depth ? c->at[c->depth - 1].call->call->body : w->grid->entry;
}

static bool aside(const tk_sim_warp *w, uint32_t lane) {
    return w->grid->program->recursive && w->calls[lane].depth > 0;
}

static void put_aside(tk_sim_warp *w, uint32_t lane) {
    const tk_sim_entry *e = caller_of(w, lane);
    struct tk_sim_calls *c = &w->calls[lane];
    for (uint32_t k = 0; k < e->nreg; k++) {
        tk_vec_push(w->grid->arena, &c->aside, w->reg[e->reg0 + k][lane]);
    }
    for (uint32_t k = 0; k < e->npred; k++) {
        tk_vec_push(w->grid->arena, &c->aside, (uint64_t)(w->pred[e->pred0 + k] >> lane & 1));
    }
}

static void take_back(tk_sim_warp *w, uint32_t lane) {
    const tk_sim_entry *e = caller_of(w, lane);
    struct tk_sim_calls *c = &w->calls[lane];
    c->aside.n -= e->nreg + e->npred;
    const uint64_t *from = c->aside.at + c->aside.n;
    for (uint32_t k = 0; k < e->nreg; k++) {
        w->reg[e->reg0 + k][lane] = from[k];
    }
    for (uint32_t k = 0; k < e->npred; k++) {
        uint32_t bit = 1u << lane, *p = &w->pred[e->pred0 + k];
        *p = from[e->nreg + k] ? *p | bit : *p & ~bit;
    }
}

// ---- Values

static uint64_t low_bytes(uint64_t x, uint32_t bytes) {
    return bytes < 8 ? x & ((UINT64_C(1) << 8 * bytes) - 1) : x;
}

// Where a .param variable of the caller lies.
static unsigned char *variable(const tk_sim_warp *w, uint32_t lane, const tk_sim_arg *a) {
    return memory_of(w, lane) + (w->reg[a->slot][lane] - TK_SIM_LOCAL_BASE);
}

static uint64_t argument(const tk_sim_warp *w, uint32_t lane, const tk_sim_arg *a,
                         const tk_sim_formal *f) {
    uint64_t x = 0;
    if (a->kind == TK_SIM_ARG_ADDRESS) {
        memcpy(&x, variable(w, lane, a), f->bytes < 8 ? f->bytes : 8);
        return x;
    }
    return low_bytes(w->reg[a->slot][lane], f->bytes);
}

static void give_result(tk_sim_warp *w, uint32_t lane, const tk_sim_arg *a, const void *from,
                        uint32_t bytes) {
    if (a->kind == TK_SIM_ARG_ADDRESS) {
        memcpy(variable(w, lane, a), from, bytes);
    } else {
        w->reg[a->slot][lane] = 0;
        memcpy(&w->reg[a->slot][lane], from, bytes);
    }
}

// ---- Functions of the module

static bool enter(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane) {
    struct tk_sim_calls *c = &w->calls[lane];
    const tk_sim_function *f = i->call;
    const tk_sim_arg *a = tk_sim_operand(i, 1);
    uint32_t below = c->depth ? c->at[c->depth - 1].base : 0;
    uint64_t base = ((uint64_t)below + caller_of(w, lane)->local_bytes + TK_SIM_FRAME_ALIGN - 1) /
                    TK_SIM_FRAME_ALIGN * TK_SIM_FRAME_ALIGN;
    if (c->depth == TK_SIM_CALL_DEPTH || base + f->body->local_bytes > w->grid->local_bytes) {
        tk_sim_fail(w, i, lane, "call-depth",
                    "calls '%s' as number %u of calls in calls; %d may be", f->name, c->depth + 1,
                    TK_SIM_CALL_DEPTH);
        return false;
    }
    uint64_t value[TK_SIM_MAX_FORMALS];
    for (uint32_t k = 0; k < f->formals.n; k++) {
        const tk_sim_formal *x = &f->formals.at[k];
        if (a[k].kind == TK_SIM_ARG_ADDRESS) {
            memcpy(memory_of(w, lane) + base + x->offset, variable(w, lane, &a[k]), x->bytes);
        } else {
            value[k] = argument(w, lane, &a[k], x);
        }
    }
    if (aside(w, lane)) {
        put_aside(w, lane);
    }
    for (uint32_t k = 0; k < f->formals.n; k++) {
        const tk_sim_formal *x = &f->formals.at[k];
        if (x->is_register) {
            w->reg[x->slot][lane] = value[k];
        } else if (a[k].kind != TK_SIM_ARG_ADDRESS) {
            memcpy(memory_of(w, lane) + base + x->offset, &value[k], x->bytes);
        }
    }
    c->at[c->depth++] = (frame){i, (uint32_t)base};
    tk_sim_fill_frame(w, f->body, lane, (uint32_t)base);
    return true;
}

// What a call had in memory and registers is of no use after it, and differs from seed to seed.
static void forget(tk_sim_warp *w, uint32_t lane, const frame *top) {
    const tk_sim_entry *body = top->call->call->body;
    const int garbage = (int)((w->grid->launch->seed * 151 + 85) & 0xff);
    const uint64_t bits = (uint64_t)garbage * UINT64_C(0x0101010101010101);
    memset(memory_of(w, lane) + top->base, garbage, body->local_bytes);
    if (caller_of(w, lane) == body) {
        return; // it goes on with these registers
    }
    for (uint32_t k = 0; k < body->own.n; k++) {
        w->reg[body->own.at[k]][lane] = bits;
    }
    for (uint32_t k = 0; k < body->own_pred.n; k++) {
        uint32_t bit = 1u << lane, *p = &w->pred[body->own_pred.at[k]];
        *p = garbage & 1 ? *p | bit : *p & ~bit;
    }
}

static void leave(tk_sim_warp *w, uint32_t lane) {
    struct tk_sim_calls *c = &w->calls[lane];
    frame top = c->at[--c->depth];
    const tk_sim_function *f = top.call->call;
    uint64_t value[TK_SIM_MAX_FORMALS];
    for (uint32_t k = 0; k < f->results.n; k++) {
        const tk_sim_formal *x = &f->results.at[k];
        value[k] = x->is_register ? w->reg[x->slot][lane] : 0;
    }
    if (aside(w, lane)) {
        take_back(w, lane);
    }
    for (uint32_t k = 0; k < f->results.n; k++) {
        const tk_sim_formal *x = &f->results.at[k];
        const void *from = memory_of(w, lane) + top.base + x->offset;
        const tk_sim_arg *to = tk_sim_operand(top.call, 0) + k;
        if (to->kind != TK_SIM_ARG_SINK) {
            give_result(w, lane, to, x->is_register ? &value[k] : from, x->bytes);
        }
    }
    forget(w, lane, &top);
    w->pc[lane] = tk_sim_index(w, top.call) + 1;
}

// ---- Functions of the system

static bool call_builtin(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane) {
    const tk_sim_function *f = i->call;
    const tk_sim_arg *a = tk_sim_operand(i, 1);
    uint64_t x[TK_SIM_MAX_FORMALS];
    for (uint32_t k = 0; k < f->formals.n; k++) {
        x[k] = argument(w, lane, &a[k], &f->formals.at[k]);
    }
    if (f->builtin == TK_SIM_BUILTIN_VPRINTF) {
        uint32_t count;
        if (!tk_sim_print(w, i, lane, x[0], x[1], &count)) {
            return false;
        }
        if (tk_sim_operand(i, 0)->kind != TK_SIM_ARG_SINK) {
            give_result(w, lane, tk_sim_operand(i, 0), &count, sizeof count);
        }
        return true;
    }
    const char *message = tk_sim_string_at(w, i, lane, x[0]);
    const char *file = message ? tk_sim_string_at(w, i, lane, x[1]) : NULL;
    const char *in = file ? tk_sim_string_at(w, i, lane, x[3]) : NULL;
    if (in) {
        tk_sim_fail(w, i, lane, "assert", "%s:%u: %s: '%s' does not hold", file, (uint32_t)x[2], in,
                    message);
    }
    return false;
}

// ---- The instructions

tk_sim_flow tk_sim_exec_call(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        if (i->call->body ? !enter(w, i, l) : !call_builtin(w, i, l)) {
            return TK_SIM_FAULT;
        }
    }
    if (!i->call->body) {
        return TK_SIM_NEXT;
    }
    w->target = i->call->body->first;
    return TK_SIM_BRANCH;
}

// In an entry it ends the thread.
static tk_sim_flow run_ret(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    if (!w->calls || w->calls[__builtin_ctz(mask)].depth == 0) {
        return tk_sim_exit(w, i, mask);
    }
    TK_SIM_EACH(l, mask) { leave(w, l); }
    return TK_SIM_GO;
}
TK_SIM_BIND_ONE(ret, run_ret)
