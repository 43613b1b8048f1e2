// SPDX-License-Identifier: Apache-2.0
// What the builder must know before it builds: how statements end, which variables they assign,
// which instances have effects and how they are called.
#include "ir/build_internal.h"

// ---- The map
struct tk_bmap_entry {
    const void *key;
    void *value;
};

static uint32_t hash(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key >> 4;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

static struct tk_bmap_entry *find(const tk_bmap *map, const void *key) {
    for (uint32_t i = hash(key);; i++) {
        struct tk_bmap_entry *e = &map->entry[i & (map->room - 1)];
        if (!e->key || e->key == key) {
            return e;
        }
    }
}

void **tk_bmap_at(tk_arena *a, tk_bmap *map, const void *key) {
    if (2 * (map->n + 1) > map->room) {
        tk_bmap bigger = {.n = map->n, .room = map->room ? 2 * map->room : 32};
        bigger.entry = TK_NEW_ARRAY(a, struct tk_bmap_entry, bigger.room);
        for (uint32_t i = 0; i < map->room; i++) {
            if (map->entry[i].key) {
                *find(&bigger, map->entry[i].key) = map->entry[i];
            }
        }
        *map = bigger;
    }
    struct tk_bmap_entry *e = find(map, key);
    if (!e->key) {
        e->key = key;
        map->n++;
    }
    return &e->value;
}

void *tk_bmap_get(const tk_bmap *map, const void *key) {
    return map->room ? find(map, key)->value : NULL;
}

// ---- Ends
bool tk_build_varying_if(const tk_xs *s) { return s->kind == TK_XS_IF && s->value->varying; }

unsigned tk_build_block_ends(const tk_xblock *block) {
    unsigned all = 0;
    for (uint32_t i = 0; block && i < block->list.n; i++) {
        unsigned e = tk_build_ends(block->list.at[i]);
        all |= e & ~(unsigned)TK_BE_FALLS;
        if (!(e & TK_BE_FALLS)) {
            return all;
        }
    }
    return all | TK_BE_FALLS;
}

// A return under a varying condition leaves only for some elements, which the mask sees to: the
// statement goes on unless both sides return.
static unsigned if_ends(const tk_xs *s) {
    unsigned then = tk_build_block_ends(s->body);
    unsigned other = tk_build_block_ends(s->other);
    if (tk_build_varying_if(s)) {
        return (then | other) & TK_BE_FALLS ? TK_BE_FALLS : TK_BE_RETURN;
    }
    return then | other;
}

unsigned tk_build_ends(const tk_xs *s) {
    switch (s->kind) {
    case TK_XS_LET:
    case TK_XS_ASSIGN:
    case TK_XS_STORE:
    case TK_XS_EXPR:
        return TK_BE_FALLS;
    case TK_XS_IF:
        return if_ends(s);
    case TK_XS_FOR:
    case TK_XS_WHILE:
        return (tk_build_block_ends(s->body) & TK_BE_RETURN) | TK_BE_FALLS;
    case TK_XS_BREAK:
        return TK_BE_BREAK;
    case TK_XS_CONTINUE:
        return TK_BE_CONTINUE;
    case TK_XS_RETURN:
        return TK_BE_RETURN;
    case TK_XS_BLOCK:
        return tk_build_block_ends(s->body);
    }
    return TK_BE_FALLS;
}

// ---- Assigned slots
static void add(tk_bfn *f, tk_bcarry *c, tk_bslot *s) {
    if (s && s->bound && s->mark != f->marks) {
        s->mark = f->marks;
        tk_vec_push(f->arena, &c->slot, s);
    }
}

static void collect_flags(tk_bfn *f, tk_bcarry *c) {
    for (tk_blevel *l = f->level; l; l = l->up) {
        add(f, c, &l->skip);
        add(f, c, &l->stop);
    }
}

// Under a varying condition a return sets no flags, only the mask.
static void collect_return(tk_bfn *f, tk_bcarry *c, bool varying) {
    if (varying) {
        add(f, c, &f->returned);
    } else {
        collect_flags(f, c);
    }
    for (uint32_t i = 0; i < f->inst->nresult; i++) {
        add(f, c, &f->ret[i]);
    }
}

static void collect_block(tk_bfn *f, tk_bcarry *c, const tk_xblock *block, uint32_t loops,
                          bool varying);

static void collect(tk_bfn *f, tk_bcarry *c, const tk_xs *s, uint32_t loops, bool varying) {
    switch (s->kind) {
    case TK_XS_LET: // bound where it was declared ahead (tk_build_seq: statements after very many
                    // exits)
    case TK_XS_ASSIGN:
        for (uint32_t i = 0; i < s->nvar; i++) {
            add(f, c, tk_bmap_get(&f->vars, s->var[i]));
        }
        break;
    case TK_XS_STORE:
    case TK_XS_EXPR:
        break;
    case TK_XS_IF:
        if (!varying && tk_build_varying_if(s)) {
            varying = true;
            if (!(tk_build_ends(s) & TK_BE_FALLS)) { // all elements return
                collect_flags(f, c);
            }
        }
        collect_block(f, c, s->body, loops, varying);
        collect_block(f, c, s->other, loops, varying);
        break;
    case TK_XS_FOR:
    case TK_XS_WHILE:
        collect_block(f, c, s->body, loops + 1, varying);
        break;
    case TK_XS_BREAK:
        if (loops == 0) {
            add(f, c, &f->level->stop);
            add(f, c, &f->level->skip);
        }
        break;
    case TK_XS_CONTINUE:
        if (loops == 0) {
            add(f, c, &f->level->skip);
        }
        break;
    case TK_XS_RETURN:
        collect_return(f, c, varying);
        break;
    case TK_XS_BLOCK:
        collect_block(f, c, s->body, loops, varying);
        break;
    }
}

static void collect_block(tk_bfn *f, tk_bcarry *c, const tk_xblock *block, uint32_t loops,
                          bool varying) {
    for (uint32_t i = 0; block && i < block->list.n; i++) {
        collect(f, c, block->list.at[i], loops, varying);
    }
}

void tk_build_collect(tk_bfn *f, tk_bcarry *c, const tk_bseq *s) {
    for (; s; s = s->next) {
        for (uint32_t i = 0; i < s->n; i++) {
            collect(f, c, s->at[i], 0, f->varying_depth > 0);
        }
    }
}

// ---- Effects and calls
typedef struct scan {
    tk_bmod *b;
    tk_binst *in;
} scan;

static void scan_x(scan *s, const tk_x *x);

static void scan_view(scan *s, const tk_view *view) {
    for (uint32_t i = 0; i < view->n; i++) {
        scan_x(s, view->entry[i].at);
        scan_x(s, view->entry[i].mask);
    }
}

static void scan_builtin(scan *s, const tk_x *x) {
    tk_builtin id = x->u.builtin.id;
    if (id == TK_BI_ASSUME || id == TK_BI_PRINT || (id == TK_BI_ASSERT && s->b->debug)) {
        s->in->effects = true;
    }
    if (x->u.builtin.attr.fn) {
        tk_binst *fn = tk_bmap_get(&s->b->insts, x->u.builtin.attr.fn);
        TK_CHECK(s->b->arena, fn != NULL);
        fn->plain = true;
    }
}

static void scan_call(scan *s, const tk_x *x) {
    tk_binst *callee = tk_bmap_get(&s->b->insts, x->u.call.inst);
    TK_CHECK(s->b->arena, callee != NULL); // callees come first
    s->in->effects = s->in->effects || callee->effects;
    if (callee->effects && callee->inst->lifted && s->in->inst->lifted) {
        callee->masked = true;
    } else {
        callee->plain = true;
    }
}

static void scan_x(scan *s, const tk_x *x) {
    if (!x) {
        return;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        scan_x(s, x->arg[i]);
    }
    switch (x->kind) {
    case TK_X_CONST:
    case TK_X_VAR:
    case TK_X_DIM:
    case TK_X_ELEM:
    case TK_X_CAST:
    case TK_X_LOGIC:
        break;
    case TK_X_BUILTIN:
        scan_builtin(s, x);
        break;
    case TK_X_CALL:
        scan_call(s, x);
        break;
    case TK_X_LOAD:
        scan_view(s, x->u.load.view);
        scan_x(s, x->u.load.other);
        break;
    case TK_X_ATOMIC:
        scan_view(s, x->u.atomic.view);
        s->in->effects = true;
        break;
    }
}

static void scan_block(scan *s, const tk_xblock *block) {
    for (uint32_t i = 0; block && i < block->list.n; i++) {
        const tk_xs *st = block->list.at[i];
        scan_x(s, st->value);
        scan_x(s, st->from);
        scan_x(s, st->to);
        scan_x(s, st->step);
        for (uint32_t k = 0; k < st->nresult; k++) {
            scan_x(s, st->result[k]);
        }
        if (st->view) {
            scan_view(s, st->view);
            s->in->effects = true;
        }
        scan_block(s, st->body);
        scan_block(s, st->other);
    }
}

void tk_build_scan(tk_bmod *b) {
    for (uint32_t i = 0; i < b->p->insts.n; i++) {
        const tk_inst *inst = b->p->insts.at[i];
        scan s = {b, TK_NEW(b->arena, tk_binst)};
        s.in->inst = inst;
        *tk_bmap_at(b->arena, &b->insts, inst) = s.in;
        scan_block(&s, inst->body);
    }
}
