// SPDX-License-Identifier: Apache-2.0
// The pass pad: reduce_fn and scan_fn. A function of the user's has no identity: each element
// carries along whether it is real, and what is combined with padding stays as it is. See pad.h.
#include "lower/pad.h"

// A function that is only element-wise may be computed on padding, where its result is not used.
// Others run on real elements alone: they may have asserts, and loops that do not end.
static bool is_plain(const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        const bool pure = tk_op_info(op->code)->effect == TK_FX_PURE && op->nreg == 0;
        if (!pure && op->code != TK_OP_IF && op->code != TK_OP_YIELD) {
            return false;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (!is_plain(op->reg[i])) {
                return false;
            }
        }
    }
    return true;
}

typedef struct combine {
    tk_pad *p;
    tk_op *op;
    tk_region *r;
    uint32_t m;         // values that are combined, without the flag
    tk_vid early, late; // whether the earlier and the later element is real
    bool plain;
    bool behind; // padding stands only behind the real elements
} combine;

// The region takes a flag behind the m earlier and one behind the m later values.
static void add_arguments(combine *s) {
    const uint32_t m = s->m;
    const tk_type *flag = tk_type_scalar(s->p->c->scratch, TK_BOOL);
    s->early = tk_region_arg(s->r, flag, NULL);
    s->late = tk_region_arg(s->r, flag, NULL);
    tk_vid *at = s->r->args.at;
    for (uint32_t i = 2 * m; i > m; i--) {
        at[i] = at[i - 1];
    }
    at[m] = s->early;
    for (uint32_t i = 0; i < s->r->args.n; i++) {
        s->p->f->value.at[at[i]].index = i;
    }
}

// Where both are real what the function gives; elsewhere the real one.
static void choose(const combine *s, tk_vid *out) {
    const tk_vid *early = s->r->args.at, *late = early + s->m + 1;
    for (uint32_t k = 0; k < s->m; k++) {
        tk_vid x = s->r->last->opnd[k];
        x = s->behind ? x : tk_pad_select(s->p, s->early, x, late[k]);
        out[k] = tk_pad_select(s->p, s->late, x, early[k]);
    }
}

static tk_op *add_yield(const combine *s, tk_region *r, const tk_vid *v) {
    tk_op *made = tk_op_new(s->p->f, TK_OP_YIELD, s->p->loc, s->m, v, 0, NULL, 0);
    tk_op_append(r, made);
    return made;
}

// The same, by a branch that holds the whole function.
static void branch(const combine *s, tk_vid *out) {
    tk_pad *p = s->p;
    const tk_vid *early = s->r->args.at, *late = early + s->m + 1;
    const tk_type **type = TK_NEW_ARRAY(p->c->scratch, const tk_type *, s->m);
    for (uint32_t k = 0; k < s->m; k++) {
        type[k] = tk_value_type(p->f, early[k]);
    }
    tk_op *made = tk_op_new(p->f, TK_OP_IF, p->loc, 1, &s->late, s->m, type, 2);
    made->reg[0] = tk_region_new(p->f, made);
    made->reg[1] = tk_region_new(p->f, made);
    while (s->r->first != s->r->last) {
        tk_op *op = s->r->first;
        tk_op_unlink(op);
        tk_op_append(made->reg[0], op);
    }
    add_yield(s, made->reg[0], s->r->last->opnd);
    made->opnd[0] = tk_pad_op2(p, TK_OP_AND, s->early, s->late);
    tk_op_insert_before(s->r->last, made);
    p->before = add_yield(s, made->reg[1], early);
    for (uint32_t k = 0; k < s->m; k++) {
        p->before->opnd[k] = tk_pad_select(p, s->late, late[k], early[k]);
        out[k] = made->res[k];
    }
    p->before = s->r->last;
}

static void change_region(combine *s) {
    tk_pad *p = s->p;
    tk_op *end = s->r->last;
    tk_vid *out = TK_NEW_ARRAY(p->f->module->arena, tk_vid, s->m + 1);
    add_arguments(s);
    p->before = end;
    if (s->plain) {
        choose(s, out);
    } else {
        branch(s, out);
    }
    out[s->m] = s->behind ? s->early : tk_pad_op2(p, TK_OP_OR, s->early, s->late);
    end->opnd = out;
    end->nopnd = s->m + 1;
}

// ---- The op -------------------------------------------------------------------------------------

// The operands with the flags behind the tiles and, where there are initial values, behind these.
static tk_vid *operands(const combine *s, tk_vid flags) {
    tk_pad *p = s->p;
    const tk_op *op = s->op;
    const uint32_t m = s->m;
    tk_vid *v = TK_NEW_ARRAY(p->c->scratch, tk_vid, op->nopnd + 2);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        v[i + (i >= m)] = op->opnd[i];
    }
    v[m] = flags;
    if (op->nopnd > m) {
        v[2 * m + 1] = tk_pad_const(p, tk_type_scalar(p->c->scratch, TK_BOOL), tk_const_bool(true));
    }
    return v;
}

static void change_op(combine *s, unsigned axes) {
    tk_pad *p = s->p;
    tk_op *op = s->op;
    const tk_vid flags = tk_pad_valid(p, tk_pad_real(p, op->opnd[0]), axes);
    const tk_vid *v = operands(s, flags);
    const tk_type **type = TK_NEW_ARRAY(p->c->scratch, const tk_type *, s->m + 1);
    for (uint32_t k = 0; k < s->m; k++) {
        type[k] = tk_value_type(p->f, op->res[k]);
    }
    type[s->m] = tk_type_with_dtype(p->c->scratch, type[0], TK_BOOL);
    tk_op *made = tk_op_new(p->f, op->code, op->loc, op->nopnd + 1 + (op->nopnd > s->m), v,
                            s->m + 1, type, 1);
    made->at = op->at;
    made->fast = op->fast;
    made->reg[0] = s->r;
    s->r->owner = made;
    tk_op_insert_before(op, made);
    for (uint32_t k = 0; k < s->m; k++) {
        p->f->value.at[made->res[k]].name = p->f->value.at[op->res[k]].name;
        tk_pad_replace(p, op->res[k], made->res[k]);
    }
    tk_op_unlink(op);
    change_region(s);
}

// Regions within each other, at most: those around the op and those in its function.
static unsigned depth_of(const tk_region *r) {
    unsigned most = 0;
    for (const tk_op *op = r->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nreg; i++) {
            const unsigned d = depth_of(op->reg[i]);
            most = d > most ? d : most;
        }
    }
    return most + 1;
}

static bool has_room(tk_pad *p, const tk_op *op) {
    unsigned depth = depth_of(op->reg[0]);
    for (const tk_region *r = op->in; r; r = r->owner ? r->owner->in : NULL) {
        depth++;
    }
    if (depth < TK_MAX_REGION_DEPTH) {
        return true;
    }
    tk_error(
        p->c->diags, p->c->m->locs.at[op->loc].span, "too-large",
        "'%s' is too large to be compiled for a GPU: the function that combines elements has, with "
        "what keeps padding from it, more than %d blocks within each other",
        p->f->name, TK_MAX_REGION_DEPTH);
    return false;
}

// Padding stands in front of real elements or between them where all axes are reduced, and where
// the initial value of a scan from the end is the last element.
void tk_pad_combine(tk_pad *p, tk_op *op) {
    const bool all = op->at.axis == TK_AXIS_ALL && tk_value_type(p->f, op->opnd[0])->rank > 1;
    combine s = {.p = p, .op = op, .r = op->reg[0], .m = op->nres};
    s.plain = is_plain(s.r);
    s.behind = !all && !(op->at.reverse && op->at.exclusive);
    const bool forward = op->code == TK_OP_SCAN_FN && !op->at.reverse;
    const unsigned axes = s.plain ? tk_pad_axes(op) : (unsigned)TK_PAD_ALL;
    if (tk_pad_is(p, op->opnd[0], axes) && !(s.plain && forward) && (s.plain || has_room(p, op))) {
        change_op(&s, axes);
    }
}
