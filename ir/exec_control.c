// SPDX-License-Identifier: Apache-2.0
//
// if, for, while and yield.
//
// What a loop carries lives in the storage of its body's arguments. A value that is yielded is made
// there at once where the argument is not needed any more (`onto`), and copied there at the yield
// otherwise.
#include "ir/exec_internal.h"

#include <string.h>

// ---- yield --------------------------------------------------------------------------------------

static bool carries(const tk_planner *p, tk_vid storage, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (tk_plan_storage(p, p->carry[i]) == storage) {
            return true;
        }
    }
    return false;
}

// All yielded values are read before any is written: those that lie in what is written go through
// temporaries.
void tk_exec_emit_yield(tk_planner *p) {
    const tk_op *op = p->op;
    if (!p->carry) {
        return;
    }
    tk_place *src = TK_NEW_ARRAY(p->arena, tk_place, op->nopnd);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_place dst = tk_plan_place(p, p->carry[i]);
        const tk_vid from = tk_plan_storage(p, op->opnd[i]);
        src[i] = tk_plan_place(p, op->opnd[i]);
        const bool there = src[i].off == dst.off && tk_place_is_dense(&src[i]);
        if (!there && carries(p, from, op->nopnd)) {
            tk_place tmp = tk_place_of(dst.dtype, dst.rank, dst.dim);
            tmp.off = tk_plan_temp(p, (size_t)tk_place_elems(&tmp) * tmp.size);
            tk_plan_copy(p, tmp, src[i]);
            src[i] = tmp;
        }
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_place dst = tk_plan_place(p, p->carry[i]);
        if (src[i].off != dst.off || !tk_place_is_dense(&src[i])) {
            tk_plan_copy(p, dst, src[i]);
        }
    }
}

// Plans a region whose yield goes to carry[].
static void plan_carrying(tk_planner *p, const tk_region *region, const tk_vid *carry,
                          tk_steps *into) {
    const tk_vid *outer = p->carry;
    tk_steps *out = p->out;
    p->carry = carry;
    p->out = into;
    tk_plan_region(p, region);
    p->carry = outer;
    p->out = out;
}

// ---- if -----------------------------------------------------------------------------------------

typedef struct if_step {
    tk_step h;
    size_t cond;
    tk_steps list[2];
} if_step;

static tk_exec_code run_if(const tk_step *h, tk_run *r) {
    const if_step *s = (const if_step *)h;
    return tk_run_steps(&s->list[r->base[s->cond] ? 0 : 1], r);
}

// A value made in the region itself can be made in the result's storage.
static void put_onto_result(tk_planner *p, tk_vid y, tk_vid result) {
    tk_pval *x = &p->val[y];
    if (x->root == y && x->depth == p->depth + 1 && !x->fixed && !x->onto) {
        x->onto = result;
        x->fixed = 1;
    }
}

void tk_exec_emit_if(tk_planner *p) {
    const tk_op *op = p->op;
    if_step *s = tk_plan_step(p, sizeof *s, run_if);
    s->cond = tk_plan_place(p, op->opnd[0]).off;
    for (uint32_t k = 0; k < 2; k++) {
        const tk_op *yield = op->reg[k]->last;
        for (uint32_t i = 0; i < op->nres; i++) {
            put_onto_result(p, yield->opnd[i], op->res[i]);
        }
        plan_carrying(p, op->reg[k], op->res, &s->list[k]);
    }
}

// ---- Loops --------------------------------------------------------------------------------------

// Whether op may write its result where it reads `arg`.
static bool reads_in_place(const tk_planner *p, const tk_op *op, tk_vid arg) {
    const bool elementwise = tk_op_info(op->code)->elementwise || op->code == TK_OP_CAST;
    if (!elementwise && op->code != TK_OP_DOT && op->code != TK_OP_INSERT) {
        return false;
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_pval *x = &p->val[op->opnd[i]];
        const bool same = x->delta == 0 && tk_place_is_dense(&x->place) &&
                          x->place.size == p->val[arg].place.size;
        bool wrong = (op->code == TK_OP_DOT && i != 2) || (op->code == TK_OP_INSERT && i != 0);
        if (x->root == arg && (!same || wrong)) {
            return false;
        }
    }
    return true;
}

// The inner loop that gives y takes arg as the initial value in the same place, and nothing else
// uses arg.
static bool hands_through(const tk_planner *p, const tk_op *loop, tk_vid y, tk_vid arg) {
    const uint32_t which = p->func->value.at[y].index;
    const uint32_t operand = which + (loop->code == TK_OP_FOR ? 3 : 0);
    return p->val[arg].uses == 1 && loop->opnd[operand] == arg;
}

// y, the next value of arg, is made in arg's storage where that is right.
static void put_onto_arg(tk_planner *p, tk_vid y, tk_vid arg) {
    const tk_op *def = p->func->value.at[y].def;
    tk_pval *x = &p->val[p->val[y].root];
    const tk_pval *a = &p->val[arg];
    if (!def || p->val[y].delta != 0 || x->depth != p->depth + 1 || x->onto) {
        return;
    }
    const bool loop = def->code == TK_OP_FOR || def->code == TK_OP_WHILE;
    const bool own = p->val[y].root == y && !x->fixed;
    if (!own && !loop) {
        return;
    }
    const uint32_t made = p->val[y].made;
    const bool free =
        a->inner < made ||
        (a->inner == made && (loop ? hands_through(p, def, y, arg) : reads_in_place(p, def, arg)));
    if (free) {
        x->onto = arg;
        x->fixed = 1;
    }
}

// Storage for the carried values, their first values there, and what can be made in place.
static void enter_loop(tk_planner *p, const tk_vid *initial, const tk_vid *arg,
                       const tk_region *body) {
    const tk_op *op = p->op;
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_plan_store(p, arg[i]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        const tk_place dst = tk_plan_place(p, arg[i]);
        const tk_place src = tk_plan_place(p, initial[i]);
        if (src.off != dst.off || !tk_place_is_dense(&src)) {
            tk_plan_copy(p, dst, src);
        }
        put_onto_arg(p, body->last->opnd[i], arg[i]);
    }
}

typedef struct for_step {
    tk_step h;
    tk_place from, to, step, index;
    tk_steps body;
} for_step;

static uint64_t load_integer(const tk_place *x, const tk_run *r) {
    const tk_const c = tk_const_load(x->dtype, r->base + x->off);
    return tk_cast(c, TK_I64).bits;
}

// How often, without overflow: differences are taken modulo 2^64, where they fit.
static uint64_t trip_count(tk_dtype t, uint64_t from, uint64_t to, uint64_t step) {
    const bool is_signed = tk_dtype_is_signed(t);
    const bool down = is_signed && (int64_t)step < 0;
    const bool up_to = is_signed ? (int64_t)from < (int64_t)to : from < to;
    const bool down_to = (int64_t)from > (int64_t)to;
    if (step == 0 || !(down ? down_to : up_to)) {
        return 0;
    }
    return down ? (from - to - 1) / (0 - step) + 1 : (to - from - 1) / step + 1;
}

static tk_exec_code run_for(const tk_step *h, tk_run *r) {
    const for_step *s = (const for_step *)h;
    const tk_dtype t = s->index.dtype;
    const uint64_t step = load_integer(&s->step, r);
    uint64_t at = load_integer(&s->from, r);
    uint64_t left = trip_count(t, at, load_integer(&s->to, r), step);
    for (; left > 0; left--, at += step) {
        if (tk_run_stopped(r)) {
            return tk_run_fault(h, r, TK_EXEC_STOPPED);
        }
        tk_const_store(tk_cast((tk_const){TK_I64, at}, t), r->base + s->index.off);
        const tk_exec_code code = tk_run_steps(&s->body, r);
        if (code != TK_EXEC_OK) {
            return code;
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_for(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_region *body = op->reg[0];
    const tk_vid *arg = body->args.at + 1;
    tk_plan_store(p, body->args.at[0]);
    enter_loop(p, op->opnd + 3, arg, body);
    for_step *s = tk_plan_step(p, sizeof *s, run_for);
    s->from = tk_plan_place(p, op->opnd[0]);
    s->to = tk_plan_place(p, op->opnd[1]);
    s->step = tk_plan_place(p, op->opnd[2]);
    s->index = tk_plan_place(p, body->args.at[0]);
    plan_carrying(p, body, arg, &s->body);
}

typedef struct while_step {
    tk_step h;
    size_t cond;
    tk_steps test, body;
} while_step;

static tk_exec_code run_while(const tk_step *h, tk_run *r) {
    const while_step *s = (const while_step *)h;
    for (;;) {
        if (tk_run_stopped(r)) {
            return tk_run_fault(h, r, TK_EXEC_STOPPED);
        }
        tk_exec_code code = tk_run_steps(&s->test, r);
        if (code != TK_EXEC_OK || !r->base[s->cond]) {
            return code;
        }
        code = tk_run_steps(&s->body, r);
        if (code != TK_EXEC_OK) {
            return code;
        }
    }
}

void tk_exec_emit_while(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_vid *arg = op->reg[0]->args.at;
    enter_loop(p, op->opnd, arg, op->reg[1]);
    while_step *s = tk_plan_step(p, sizeof *s, run_while);
    plan_carrying(p, op->reg[0], NULL, &s->test);
    s->cond = tk_plan_place(p, op->reg[0]->last->opnd[0]).off;
    plan_carrying(p, op->reg[1], arg, &s->body);
}
