// SPDX-License-Identifier: Apache-2.0
// expand: replaces the functions that have an error bound, and the remainder of floats, by
// sequences of exact ops and, in f32, of the GPU's instructions for 2^x, 1/x and 1/sqrt x.
//
// in:    tile level
// out:   no op for which tk_expand_keeps is false
// keeps: values within the bounds of docs/math.md; the remainder bit for bit. From here on bits are
//        the same on every target but for what those instructions give
// needs: fold, cse and dce after it: sequences have parts in common, and parts that are not used
// when not: an op that may be approximate (TK_FAST_APPROX) and for which the hardware has an
//           approximate instruction. The sequences' exact ops carry no permission: contracted or
//           flushed they would lose their bounds.
#include "lower/lower.h"

#include "ir/pass_util.h"
#include "lower/math.h"

typedef struct tally { // of one kind of op
    tk_loc loc;        // the first
    unsigned places, ops;
} tally;

typedef struct expand {
    tk_pass_ctx *c;
    tk_func *f;
    tk_vmap map;
    tally *of; // by opcode
} expand;

static tk_dtype float_type(const tk_func *f, const tk_op *op) {
    return tk_value_type(f, op->opnd[0])->dtype;
}

static bool has_instruction(const tk_func *f, const tk_op *op) {
    switch ((int)op->code) { // of many
    case TK_OP_EXP:
    case TK_OP_EXP2:
    case TK_OP_LOG:
    case TK_OP_LOG2:
    case TK_OP_SIN:
    case TK_OP_COS:
    case TK_OP_TANH:
    case TK_OP_RSQRT:
        return float_type(f, op) == TK_F32;
    }
    return false;
}

bool tk_expand_keeps(const tk_func *f, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (!info->elementwise) {
        return true;
    }
    if (info->exact) {
        return op->code != TK_OP_REM || !tk_dtype_is_float(float_type(f, op));
    }
    return (op->fast & TK_FAST_APPROX) && has_instruction(f, op);
}

// ---- By approximate ops -------------------------------------------------------------------------

static tk_vid fast_op(tk_math *m, const tk_op *like, tk_opcode code, uint32_t n, const tk_vid *x) {
    const tk_vid v = tk_math_op(m, code, m->t, n, x);
    tk_value_def(m->f, v)->fast = like->fast;
    return v;
}

// Where approximations are permitted, what they make cheap: sigmoid in f32. 0: none.
static tk_vid approximate(tk_math *m, const tk_op *op) {
    if (!(op->fast & TK_FAST_APPROX) || op->code != TK_OP_SIGMOID || m->t != TK_F32) {
        return 0;
    }
    const tk_vid minus = fast_op(m, op, TK_OP_NEG, 1, op->opnd);
    const tk_vid e = fast_op(m, op, TK_OP_EXP, 1, &minus);
    const tk_vid x[] = {e, tk_math_const_of(m, tk_const_f64(m->t, 1))};
    const tk_vid below = fast_op(m, op, TK_OP_ADD, 2, x);
    return fast_op(m, op, TK_OP_RCP, 1, &below);
}

// ---- By sequences -------------------------------------------------------------------------------

typedef tk_vid unary(tk_math *m, tk_vid x);

static unary *unary_of(tk_opcode code) {
    switch ((int)code) { // of many
#define TK_EXPAND_ROW(ID, NAME)                                                                    \
    case TK_OP_##ID:                                                                               \
        return tk_math_##NAME;
        TK_EXPAND_ROW(EXP, exp)
        TK_EXPAND_ROW(EXP2, exp2)
        TK_EXPAND_ROW(EXPM1, expm1)
        TK_EXPAND_ROW(LOG, log)
        TK_EXPAND_ROW(LOG2, log2)
        TK_EXPAND_ROW(LOG1P, log1p)
        TK_EXPAND_ROW(RSQRT, rsqrt)
        TK_EXPAND_ROW(SIN, sin)
        TK_EXPAND_ROW(COS, cos)
        TK_EXPAND_ROW(TAN, tan)
        TK_EXPAND_ROW(ASIN, asin)
        TK_EXPAND_ROW(ACOS, acos)
        TK_EXPAND_ROW(ATAN, atan)
        TK_EXPAND_ROW(SINH, sinh)
        TK_EXPAND_ROW(COSH, cosh)
        TK_EXPAND_ROW(TANH, tanh)
        TK_EXPAND_ROW(ERF, erf)
        TK_EXPAND_ROW(SIGMOID, sigmoid)
#undef TK_EXPAND_ROW
    }
    return NULL;
}

static tk_vid by_sequence(tk_math *m, const tk_op *op) {
    unary *one = unary_of(op->code);
    if (one) {
        return one(m, op->opnd[0]);
    }
    if (op->code == TK_OP_ATAN2) {
        return tk_math_atan2(m, op->opnd[0], op->opnd[1]);
    }
    if (op->code == TK_OP_POW) {
        return tk_math_pow(m, op->opnd[0], op->opnd[1]);
    }
    TK_CHECK(m->scratch, op->code == TK_OP_REM);
    const tk_dtype t = float_type(m->f, op);
    const tk_vid x = tk_math_cast(m, op->opnd[0], m->t), y = tk_math_cast(m, op->opnd[1], m->t);
    return tk_math_cast(m, tk_math_rem(m, x, y), t);
}

static void expand_op(expand *p, tk_op *op) {
    tk_math m;
    const tk_dtype t = float_type(p->f, op) == TK_F64 ? TK_F64 : TK_F32; // narrower ones by f32
    tk_math_open(&m, p->f, p->c->scratch, op, t);
    const tk_vid fast = approximate(&m, op);
    tk_vmap_set(&p->map, op->res[0], fast ? fast : by_sequence(&m, op));
    tally *of = &p->of[op->code];
    of->loc = of->places ? of->loc : op->loc;
    of->places++;
    of->ops = m.ops > of->ops ? m.ops : of->ops;
    tk_op_unlink(op);
}

static void region(expand *p, tk_region *r) {
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next;
        tk_vmap_operands(&p->map, op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            region(p, op->reg[i]);
        }
        if (!tk_expand_keeps(p->f, op)) {
            expand_op(p, op);
        }
    }
}

static void note(tk_pass_ctx *c, const tally *of) {
    for (int i = 0; i < TK_OP_COUNT; i++) {
        if (of[i].places == 0) {
            continue;
        }
        tk_note_rec *r = tk_note_add(
            &c->m->notes, "expand", "expanded", tk_loc_span(c->m, of[i].loc), TK_NOTE_INFO,
            "'%s' is computed by a sequence of other operations", tk_op_info((tk_opcode)i)->name);
        tk_note_number_add(&c->m->notes, r, "places", of[i].places);
        tk_note_number_add(&c->m->notes, r, "ops", of[i].ops);
    }
}

void tk_pass_expand(tk_pass_ctx *c) {
    tally *of = TK_NEW_ARRAY(c->scratch, tally, TK_OP_COUNT);
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        expand p = {.c = c, .f = c->m->funcs.at[i], .map = {.arena = c->scratch}, .of = of};
        if (p.f->grid) {
            region(&p, p.f->grid);
        }
        region(&p, p.f->body);
    }
    note(c, of);
}
