// SPDX-License-Identifier: Apache-2.0
// The debug ops of a kernel, and how their records lie. See debug.h.
#include "ptx/debug.h"

#include "ir/scratch.h"
#include "ir/show.h"

#include <string.h>

typedef struct collect {
    tk_arena *arena;
    const tk_func *f;
    tk_debug_sites s;
} collect;

// The op's place, then those of the calls around it.
static void add_places(collect *c, tk_debug_site *site, tk_loc loc) {
    const tk_module *m = c->f->module;
    uint32_t n = 1;
    for (tk_loc l = loc; l < m->locs.n && m->locs.at[l].from; l = m->locs.at[l].from) {
        n++;
    }
    site->place = TK_NEW_ARRAY(c->arena, tk_span, n);
    for (; site->nplace < n && loc < m->locs.n; loc = m->locs.at[loc].from) {
        site->place[site->nplace++] = m->locs.at[loc].span;
    }
}

static void add_value(collect *c, tk_debug_site *site, const tk_op *op, uint32_t operand) {
    const tk_type *t = tk_value_type(c->f, op->opnd[operand]);
    tk_debug_value *x = &site->value[site->nvalue++];
    uint32_t size = (uint32_t)tk_dtype_size(t->dtype), bytes = size;
    x->dtype = t->dtype;
    x->rank = t->rank;
    tk_print_extents(c->f, op, operand, x->dim);
    for (uint32_t i = 0; i < t->rank; i++) {
        bytes *= (uint32_t)tk_show_extent(t->rank, x->dim, i);
    }
    x->offset = (site->bytes + size - 1) / size * size;
    site->bytes = x->offset + bytes;
}

static void visit(void *user, tk_op *op) {
    collect *c = user;
    bool print = op->code == TK_OP_PRINT, assume = op->code == TK_OP_ASSUME;
    if ((!print && !assume && op->code != TK_OP_ASSERT) || tk_op_in_combine(op)) {
        return;
    }
    tk_debug_site site;
    memset(&site, 0, sizeof site);
    site.kind = print ? TK_DEBUG_PRINT : assume ? TK_DEBUG_ASSUME : TK_DEBUG_ASSERT;
    site.text = tk_strdup(c->arena, op->at.text ? op->at.text : "");
    site.bytes = (uint32_t)sizeof(tk_debug_record);
    site.value = TK_NEW_ARRAY(c->arena, tk_debug_value, op->nopnd + 1);
    for (uint32_t i = 0; i < op->nopnd; i++) {
        add_value(c, &site, op, i);
        site.value[i].rank = op->at.part ? 0 : site.value[i].rank;
    }
    site.bytes =
        (site.bytes + TK_DEBUG_RECORD_ALIGN - 1) / TK_DEBUG_RECORD_ALIGN * TK_DEBUG_RECORD_ALIGN;
    add_places(c, &site, op->loc);
    tk_vec_push(c->arena, &c->s.list, site);
    tk_vec_push(c->arena, &c->s.op, op);
    c->s.claims = c->s.claims || !print;
}

tk_debug_sites tk_debug_sites_of(tk_arena *arena, const tk_func *f) {
    collect c;
    memset(&c, 0, sizeof c);
    c.arena = arena;
    c.f = f;
    tk_func_walk((tk_func *)(uintptr_t)f, visit, &c);
    return c.s;
}
