// SPDX-License-Identifier: Apache-2.0
// Pass specialize: warps of their own bring the tiles of rings, the others work on them.
//
// in:    staged level
// out:   where tensor copies or loads through registers fill all rings: behind the rings a
//        `partition`, in whose first region are the fetches with the control flow and the numbers
//        that they need, in whose second all else
// keeps: every value, bit for bit
// needs: barrier
// when not: the target has no tensor copies; nothing multiplies by warpgroups, which are what waits
//           else; a tile is fetched by copies of all threads; what is fetched depends on what the
//           program computes. Where `@specialize` asks for it, multiplying does not matter, and
//           what is in the way is an error, but for what the caller promises of its tensors, and
//           what is kept for debugging
//
// Tensor copies need one thread. What comes through registers needs threads that have much on its
// way and shift it: eight warps, or four where the sums of a product take so many registers that
// the launch has no room for more threads. These have their registers from those that multiply.
//
// What is fetched depends on indices alone, so both sides can run the same loops, each at its pace:
// rings keep them together. Numbers that both need are computed by both.
#include "lower/lower.h"
#include "lower/ring.h"
#include "lower/units.h"

#include "ir/pass_util.h"
#include "ir/scratch.h"

enum { GROUP = 4 }; // warps: registers are handed over by fours

typedef struct specializer {
    tk_pass_ctx *c;
    tk_func *f;
    tk_vmap map; // from values of one side to those of the other
    tk_op *last; // ring of the body
    uint32_t fetches, by_tensor, by_registers, rings, products;
    int64_t producers;   // warps
    bool asked, excused; // by `@specialize`; it need not be kept
    const char *why, *help;
    const tk_op *by_all; // the first fetch that is neither by tensor copies nor through registers
} specializer;

// ---- Whether ------------------------------------------------------------------------------------

static void survey(void *user, tk_op *op) {
    specializer *s = user;
    if (op->code == TK_OP_FETCH && op->at.how != TK_HOW_BEGIN) {
        s->fetches++;
        s->by_tensor += op->at.how == TK_HOW_TENSOR;
        s->by_registers += op->at.how == TK_HOW_REGISTERS;
        s->by_all = s->by_all || op->at.how != TK_HOW_ASYNC ? s->by_all : op;
    }
    s->products += op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA;
    s->rings += op->code == TK_OP_RING;
    s->last = op->code == TK_OP_RING ? op : s->last;
}

typedef struct memory {
    const tk_func *f;
    bool used;
} memory;

static void find_memory(void *user, tk_op *op) {
    memory *m = user;
    m->used = m->used || op->code == TK_OP_BARRIER || op->code == TK_OP_FETCH ||
              (op->code != TK_OP_RING && tk_scratch_bytes(m->f, op) > 0);
}

// What stands before the last ring is run by all warps: it may not make them wait.
static bool waits_before(const specializer *s) {
    memory m = {s->f, false};
    for (tk_op *op = s->f->body->first; op != s->last; op = op->next) {
        tk_op_walk(op, find_memory, &m);
    }
    return m.used;
}

// Whether the tensors of the launch are why tiles are not fetched by tensor copies: with all that
// can be promised of them they would be.
static bool by_promises(const specializer *s) {
    bool all = true;
    for (uint32_t i = 0; i < s->f->params.n && s->c->facts; i++) {
        const bool tensor = tk_value_type(s->f, s->f->params.at[i])->kind == TK_T_TENSOR;
        all = all && (!tensor || (s->c->facts[i] & TK_FACT_MAP));
    }
    return s->c->target->bulk && (!s->c->facts || !all);
}

// As many as leave each thread of the launch the registers of a product, before any are handed
// over: the assembler refuses it otherwise.
static int64_t producers_by_rule(const specializer *s) {
    enum { REGISTERS = 64 << 10, BESIDE = 48 }; // beside the sums
    const int64_t threads = 32 * (s->c->m->attrs.warps + 2 * GROUP);
    const bool room = threads <= s->c->target->threads_max &&
                      tk_sum_registers(s->f) + BESIDE <= REGISTERS / threads;
    return s->by_registers && room ? 2 * GROUP : GROUP;
}

static const char *why_not(specializer *s) {
    const int64_t warps = s->c->m->attrs.warps;
    if (!s->last || !s->c->target->bulk || s->by_tensor + s->by_registers < s->fetches) {
        s->excused = by_promises(s);
        s->help = !s->last ? "'@stages(n)', n from 2 on, loads the tiles of loops ahead, and "
                             "'pipeline(n)' those of the loop that it stands at"
                  : s->c->target->bulk ? NULL
                                       : "GPUs have tensor copies from compute capability 9.0 on";
        return !s->last             ? "no tile is loaded ahead"
               : s->c->target->bulk ? "a tile is fetched by copies of all threads"
                                    : "a tile is not fetched by tensor copies";
    }
    if (s->fetches == 0) {
        return "no tile is fetched";
    }
    if (warps % GROUP != 0) {
        return "its warps are not some fours";
    }
    if ((warps + s->producers) * 32 > s->c->target->threads_max) {
        return "its warps and those that fetch are more than a block has";
    }
    if (s->by_registers && (s->producers & (s->producers - 1)) != 0) {
        s->excused = by_promises(s);
        return "tiles come through registers, which takes one, two or four groups that fetch";
    }
    if (!s->by_registers && s->rings < s->producers / GROUP) {
        return "it has fewer rings of tiles than groups that fetch";
    }
    if (s->c->debug) {
        s->excused = true;
        return "asserts and prints are kept";
    }
    return waits_before(s) ? "all warps wait before its rings are made" : NULL;
}

// ---- The side that fetches ----------------------------------------------------------------------

static bool has_fetch(const tk_op *op) {
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            if ((x->code == TK_OP_FETCH && x->at.how != TK_HOW_BEGIN) || has_fetch(x)) {
                return true;
            }
        }
    }
    return false;
}

// The operands on the other side; false: one of them is not computed there. What stands before the
// partition is both sides'.
static bool mapped(specializer *s, const tk_op *op, uint32_t n, tk_vid *out) {
    for (uint32_t i = 0; i < n; i++) {
        const tk_vid v = op->opnd[i];
        out[i] = tk_vmap_get(&s->map, v);
        const tk_op *def = tk_value_def(s->f, v);
        const tk_region *r = tk_value_region(s->f, v);
        bool common = !def && !r;
        for (const tk_op *x = s->last; x && !common; x = x->prev) {
            common = x == def;
        }
        if (out[i] == v && !common) {
            return false;
        }
    }
    return true;
}

static bool is_number(const specializer *s, const tk_op *op) {
    for (uint32_t i = 0; i < op->nres; i++) {
        if (tk_value_type(s->f, op->res[i])->rank > 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        const tk_type *t = tk_value_type(s->f, op->opnd[i]);
        if (t->kind == TK_T_VALUE && t->rank > 0) {
            return false;
        }
    }
    return op->nres > 0 && tk_op_is_pure(op);
}

static void clone_region(specializer *s, const tk_region *from, tk_region *to);

static tk_op *copy_of(specializer *s, const tk_op *op, uint32_t nopnd, const tk_vid *opnd,
                      uint32_t nres) {
    const tk_type **type = TK_NEW_ARRAY(s->c->scratch, const tk_type *, nres);
    for (uint32_t i = 0; i < nres; i++) {
        type[i] = tk_value_type(s->f, op->res[i]);
    }
    tk_op *x = tk_op_new(s->f, op->code, op->loc, nopnd, opnd, nres, type, op->nreg);
    x->at = op->at;
    x->fast = op->fast;
    for (uint32_t i = 0; i < nres; i++) {
        tk_vmap_set(&s->map, op->res[i], x->res[i]);
    }
    return x;
}

// A loop or branch with fetches in it, without what it carries.
static void clone_control(specializer *s, const tk_op *op, tk_vid *opnd, tk_region *to) {
    const bool programs = op->code == TK_OP_PROGRAMS;
    const uint32_t bounds = op->code == TK_OP_FOR ? 3 : programs ? 0 : 1;
    if ((op->code != TK_OP_FOR && op->code != TK_OP_IF && !programs) ||
        !mapped(s, op, bounds, opnd)) {
        s->why = "when a tile is fetched depends on what the program computes";
        return;
    }
    tk_op *x = copy_of(s, op, bounds, opnd, 0);
    for (uint32_t i = 0; i < op->nreg; i++) {
        x->reg[i] = tk_region_new(s->f, x);
        if (op->code == TK_OP_FOR) {
            const tk_vid index = op->reg[0]->args.at[0];
            tk_vmap_set(
                &s->map, index,
                tk_region_arg(x->reg[0], tk_value_type(s->f, index), s->f->value.at[index].name));
        }
        clone_region(s, op->reg[i], x->reg[i]);
    }
    tk_op_append(to, x);
}

static void clone_op(specializer *s, const tk_op *op, tk_region *to) {
    tk_vid *opnd = TK_NEW_ARRAY(s->c->scratch, tk_vid, op->nopnd + 3);
    if (has_fetch(op)) {
        clone_control(s, op, opnd, to);
    } else if (op->code == TK_OP_FETCH && op->at.how != TK_HOW_BEGIN) {
        if (!mapped(s, op, op->nopnd, opnd)) {
            s->why = "what is fetched depends on what the program computes";
            return;
        }
        tk_op_append(to, copy_of(s, op, op->nopnd, opnd, 0));
    } else if (is_number(s, op) && mapped(s, op, op->nopnd, opnd)) {
        tk_op_append(to, copy_of(s, op, op->nopnd, opnd, op->nres));
    }
}

static void clone_region(specializer *s, const tk_region *from, tk_region *to) {
    for (const tk_op *op = from->first; op && !s->why; op = op->next) {
        if (!tk_op_is_terminator(op)) {
            clone_op(s, op, to);
        }
    }
    tk_op_append(to, tk_op_new(s->f, TK_OP_YIELD, s->f->loc, 0, NULL, 0, NULL, 0));
}

// ---- The side that works ------------------------------------------------------------------------

// Whether there is nothing but numbers in the op's regions, and it gives none.
static bool is_idle(const specializer *s, const tk_op *op) {
    bool idle = op->nres == 0 && (op->code == TK_OP_FOR || op->code == TK_OP_IF);
    for (uint32_t i = 0; i < op->nreg && idle; i++) {
        for (const tk_op *x = op->reg[i]->first; x && idle; x = x->next) {
            idle = tk_op_is_terminator(x) || is_number(s, x);
        }
    }
    return idle;
}

static void drop_fetches(specializer *s, tk_region *r) {
    for (tk_op *op = r->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->nreg; i++) {
            drop_fetches(s, op->reg[i]);
        }
        if (op->code == TK_OP_FETCH || is_idle(s, op)) {
            tk_op_unlink(op);
        }
    }
}

static void note(specializer *s, const char *why) {
    tk_module *m = s->c->m;
    if (why && s->asked && !s->excused) {
        tk_diag *d = tk_gpu_refuse_attr(s->c->diags, s->c->target, m->attrs.specialize_span,
                                        "specialize", why);
        if (s->by_all && s->last) {
            tk_note(s->c->diags, d, tk_loc_span(m, s->by_all->loc), "it is loaded here");
        }
        if (s->help) {
            tk_help(s->c->diags, d, (tk_span){0}, "%s", s->help);
        }
        return;
    }
    tk_note_rec *n =
        tk_note_add(&m->notes, "specialize", "specialized", tk_loc_span(m, s->f->loc),
                    why ? TK_NOTE_MISSED : TK_NOTE_DONE, "warps of their own %s%s",
                    why ? "do not fetch the tiles: " : "fetch the tiles", why ? why : "");
    if (!why) {
        tk_note_number_add(&m->notes, n, "producers", (double)s->producers);
        tk_note_number_add(&m->notes, n, "consumers", (double)m->attrs.warps);
    }
}

static void function(tk_pass_ctx *c, tk_func *f) {
    const tk_kernel_attrs *at = &c->m->attrs;
    specializer s = {.c = c, .f = f, .map = {.arena = c->scratch}};
    s.asked = at->producers || at->consumers;
    tk_func_walk(f, survey, &s);
    s.producers = at->producers ? GROUP * at->producers : producers_by_rule(&s);
    if (!s.asked && (!s.last || !s.products || !c->target->wgmma)) {
        return;
    }
    const char *why = why_not(&s);
    if (why) {
        note(&s, why);
        return;
    }
    tk_op *part = tk_op_new(f, TK_OP_PARTITION, f->loc, 0, NULL, 0, NULL, 2);
    part->at.producers = s.producers;
    part->reg[0] = tk_region_new(f, part);
    part->reg[1] = tk_region_new(f, part);
    for (const tk_op *op = s.last->next; op && !s.why; op = op->next) {
        if (!tk_op_is_terminator(op)) {
            clone_op(&s, op, part->reg[0]);
        }
    }
    if (s.why) {
        note(&s, s.why);
        return;
    }
    tk_op_append(part->reg[0], tk_op_new(f, TK_OP_YIELD, f->loc, 0, NULL, 0, NULL, 0));
    for (tk_op *op = s.last->next, *next; !tk_op_is_terminator(op); op = next) {
        next = op->next;
        tk_op_unlink(op);
        tk_op_append(part->reg[1], op);
    }
    tk_op_append(part->reg[1], tk_op_new(f, TK_OP_YIELD, f->loc, 0, NULL, 0, NULL, 0));
    drop_fetches(&s, part->reg[1]);
    tk_op_insert_before(f->body->last, part);
    note(&s, NULL);
}

void tk_pass_specialize(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        if (c->m->funcs.at[i]->is_kernel) {
            function(c, c->m->funcs.at[i]);
        }
    }
}
