// SPDX-License-Identifier: Apache-2.0
// inline: puts the body of each called function in place of the call.
//
// in:    tile level; functions in the order callees before callers
// out:   no call; functions that were called are gone (of a module with a kernel, all but it)
// keeps: the order of effects; each op's place, followed by those of the calls that led there
// needs: nothing
// when not: a function would pass 200000 ops, or TK_MAX_REGION_DEPTH regions within each other: an
//           error at the call. Recursion cannot be written: a call names a function before its own.
#include "ir/pass_util.h"

#include <string.h>

enum { MOST_OPS = 200000, MOST_OPS_MODULE = 2 * MOST_OPS };

typedef struct callee {
    tk_func *f;
    uint32_t ops, depth; // after its own calls are gone
    bool called;
} callee;

typedef struct inliner {
    tk_pass_ctx *c;
    callee *list; // one a function, in the module's order
    uint32_t n;   // those done
    uint64_t total;
    tk_func *f; // the caller
    tk_vmap map;
    uint32_t ops, depth, most;
    // The place made for a place by the call `stamp`; kept over all calls, since they are many.
    struct place {
        uint32_t stamp;
        tk_loc made;
    } * place;
    uint32_t nplace, stamp;
} inliner;

// A callee's body on its way into the caller.
typedef struct copy {
    inliner *in;
    const tk_func *from;
    tk_vid *value; // by the callee's value
    tk_loc call;
} copy;

// ---- Copying ------------------------------------------------------------------------------------

static struct place *place_of(inliner *in, tk_loc x) {
    if (x >= in->nplace) {
        uint32_t n = in->c->m->locs.n * 2;
        struct place *more = TK_NEW_ARRAY(in->c->scratch, struct place, n);
        if (in->nplace) {
            memcpy(more, in->place, in->nplace * sizeof *more);
        }
        in->place = more;
        in->nplace = n;
    }
    return &in->place[x];
}

// The place x, with the call's place at the end of its chain.
static tk_loc copy_loc(copy *c, tk_loc x) {
    inliner *in = c->in;
    tk_module *m = in->c->m;
    TK_VEC(tk_loc) chain = {0}; // those not made yet
    tk_loc from = c->call;
    for (; x; x = m->locs.at[x].from) {
        struct place *p = place_of(in, x);
        if (p->stamp == in->stamp) {
            from = p->made;
            break;
        }
        tk_vec_push(in->c->scratch, &chain, x);
    }
    for (uint32_t i = chain.n; i > 0; i--) {
        x = chain.at[i - 1];
        from = tk_loc_new(m, m->locs.at[x].span, from);
        *place_of(in, x) = (struct place){in->stamp, from};
    }
    return from;
}

static void copy_name(copy *c, tk_vid old, tk_vid made) {
    c->in->f->value.at[made].name = c->from->value.at[old].name;
    c->value[old] = made;
}

static void copy_region(copy *c, const tk_region *from, tk_region *to);

static tk_op *copy_op(copy *c, const tk_op *op) {
    tk_pass_ctx *p = c->in->c;
    const tk_type **type = TK_NEW_ARRAY(p->scratch, const tk_type *, op->nres);
    tk_vid *opnd = TK_NEW_ARRAY(p->scratch, tk_vid, op->nopnd);
    for (uint32_t i = 0; i < op->nres; i++) {
        type[i] = tk_value_type(c->from, op->res[i]);
    }
    for (uint32_t i = 0; i < op->nopnd; i++) {
        opnd[i] = c->value[op->opnd[i]];
    }
    tk_op *made = tk_op_new(c->in->f, op->code, copy_loc(c, op->loc), op->nopnd, opnd, op->nres,
                            type, op->nreg);
    made->at = op->at;
    made->fast = op->fast;
    for (uint32_t i = 0; i < op->nreg; i++) {
        made->reg[i] = tk_region_new(c->in->f, made);
        copy_region(c, op->reg[i], made->reg[i]);
    }
    for (uint32_t i = 0; i < op->nres; i++) {
        copy_name(c, op->res[i], made->res[i]);
    }
    return made;
}

static void copy_region(copy *c, const tk_region *from, tk_region *to) {
    for (uint32_t i = 0; i < from->args.n; i++) {
        tk_vid old = from->args.at[i];
        copy_name(c, old, tk_region_arg(to, tk_value_type(c->from, old), NULL));
    }
    for (const tk_op *op = from->first; op; op = op->next) {
        tk_op_append(to, copy_op(c, op));
    }
}

// ---- One call -----------------------------------------------------------------------------------

static bool refuse(inliner *in, const tk_op *call, const char *what, unsigned limit) {
    tk_pass_ctx *c = in->c;
    tk_diag *d = tk_error(
        c->diags, tk_loc_span(c->m, call->loc), "too-large",
        "%s '%s' is too large: with this call of '%s' in it, it has more than %u %s",
        in->f->is_kernel ? "kernel" : "function", in->f->name, call->at.callee, limit, what);
    for (tk_loc l = c->m->locs.at[call->loc].from; l; l = c->m->locs.at[l].from) {
        tk_note(c->diags, d, tk_loc_span(c->m, l), "called from here");
    }
    return false;
}

static callee *find(inliner *in, const char *name) {
    for (uint32_t i = 0; i < in->n; i++) {
        if (strcmp(in->list[i].f->name, name) == 0) {
            return &in->list[i];
        }
    }
    TK_ICE(in->c->m->arena, "call of '%s', which is not before its caller", name);
}

static void put_body(inliner *in, tk_op *call, const tk_func *from) {
    tk_pass_ctx *p = in->c;
    copy c = {.in = in, .from = from, .call = call->loc};
    c.value = TK_NEW_ARRAY(p->scratch, tk_vid, from->value.n);
    in->stamp++;
    for (uint32_t i = 0; i < from->params.n; i++) {
        c.value[from->params.at[i]] = call->opnd[i];
    }
    for (const tk_op *op = from->body->first; op->next; op = op->next) {
        tk_op_insert_before(call, copy_op(&c, op));
    }
    const tk_op *ret = from->body->last;
    for (uint32_t i = 0; i < call->nres; i++) {
        tk_vid made = c.value[ret->opnd[i]];
        tk_vmap_set(&in->map, call->res[i], made);
        const char *name = in->f->value.at[call->res[i]].name;
        if (name && tk_value_def(from, ret->opnd[i])) { // the caller's name says more
            in->f->value.at[made].name = name;
        }
    }
    tk_op_unlink(call);
}

static bool one_call(inliner *in, tk_op *call) {
    callee *to = find(in, call->at.callee);
    if (in->ops + to->ops > MOST_OPS) {
        return refuse(in, call, "operations", MOST_OPS);
    }
    if (in->total + to->ops > MOST_OPS_MODULE) {
        return refuse(in, call, "operations with all functions before it", MOST_OPS_MODULE);
    }
    if (in->depth + to->depth > TK_MAX_REGION_DEPTH) {
        return refuse(in, call, "blocks within each other", TK_MAX_REGION_DEPTH);
    }
    to->called = true;
    in->ops += to->ops;
    in->total += to->ops;
    in->most = in->depth + to->depth > in->most ? in->depth + to->depth : in->most;
    tk_note_rec *r =
        tk_note_add(&in->c->m->notes, "inline", "inlined", tk_loc_span(in->c->m, call->loc),
                    TK_NOTE_DONE, "'%s' into '%s'", call->at.callee, in->f->name);
    tk_note_number_add(&in->c->m->notes, r, "operations", to->ops - 1);
    put_body(in, call, to->f);
    return true;
}

// ---- Functions ----------------------------------------------------------------------------------

static bool region(inliner *in, tk_region *r) {
    in->depth++;
    in->most = in->depth > in->most ? in->depth : in->most;
    tk_op *next;
    for (tk_op *op = r->first; op; op = next) {
        next = op->next; // what a call brings in stands before it and has no calls
        in->ops++;
        in->total++;
        tk_vmap_operands(&in->map, op);
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (!region(in, op->reg[i])) {
                return false;
            }
        }
        if (op->code == TK_OP_CALL && !one_call(in, op)) {
            return false;
        }
    }
    in->depth--;
    return true;
}

static void drop_called(tk_module *m, const callee *list) {
    bool has_kernel = false;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        has_kernel = has_kernel || m->funcs.at[i]->is_kernel;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (has_kernel ? m->funcs.at[i]->is_kernel : !list[i].called) {
            m->funcs.at[kept++] = m->funcs.at[i];
        }
    }
    m->funcs.n = kept;
}

void tk_pass_inline(tk_pass_ctx *c) {
    tk_module *m = c->m;
    inliner in = {.c = c, .list = TK_NEW_ARRAY(c->scratch, callee, m->funcs.n)};
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        in.f = m->funcs.at[i];
        in.map = (tk_vmap){.arena = c->scratch};
        in.ops = in.depth = in.most = 0;
        if (!region(&in, in.f->body)) {
            return;
        }
        in.list[i] = (callee){.f = in.f, .ops = in.ops, .depth = in.most};
        in.n = i + 1;
    }
    drop_called(m, in.list);
}
