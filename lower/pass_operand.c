// SPDX-License-Identifier: Apache-2.0
// Pass operand: a tile that products of a loop read, and that is loaded before it, stays in shared
// memory as the unit reads it there.
//
// in:    tile level, calls inlined, extents powers of two, units decided
// out:   such a load is a fetch into a ring of one slot and a take, with a release behind the loop
// keeps: every value, bit for bit
// needs: pad, chunk, units; licm, which leaves nothing in the loop that need not be there
// when not: the unit is not wgmma: others read registers, and keep the tile there; something else
//           uses it as well; no tensor copies can bring it, whose place is known from the program's
//           number alone; there would be no room for two iterations' tiles beside it
//
// Else the left operand would come from registers: a quarter of a thread's for 128 columns of 16
// bits, and as many more for copies, which ptxas needs made in each iteration (ptx/llvm_wgmma.c).
#include "lower/box.h"
#include "lower/lower.h"
#include "lower/make.h"
#include "lower/ring.h"
#include "lower/units.h"

#include "ir/pass_util.h"

#include <string.h>

typedef TK_VEC(tk_op *) op_list;

typedef struct stayer {
    tk_pass_ctx *c;
    tk_func *f;
    const tk_axis *x;
    unsigned log_warps;
    uint64_t bytes; // of the rings that were made
    op_list loads;
} stayer;

// ---- Whether ------------------------------------------------------------------------------------

typedef struct readers {
    const stayer *s;
    tk_vid v;
    const tk_layout *l; // how it lies
    const tk_op *loop;  // around the products that read it; NULL: none yet
    bool fits;
} readers;

static const tk_op *loop_around(const tk_op *op) {
    const tk_op *o = op->in->owner;
    while (o && o->code != TK_OP_FOR && o->code != TK_OP_WHILE) {
        o = o->in ? o->in->owner : NULL;
    }
    return o;
}

// Products of a loop by wgmma alone use it, as it is or permuted.
static void read_by(void *user, tk_op *op) {
    readers *r = user;
    const stayer *s = r->s;
    for (uint32_t i = 0; i < op->nopnd && r->fits; i++) {
        if (op->opnd[i] != r->v) {
            continue;
        }
        if (op->code == TK_OP_PERMUTE) {
            const tk_layout turned = tk_layout_permute(r->l, op->at.perm);
            readers of = {s, op->res[0], &turned, r->loop, true};
            tk_func_walk(s->f, read_by, &of);
            r->fits = of.fits;
            r->loop = of.loop;
            continue;
        }
        const tk_op *loop = loop_around(op);
        r->fits = op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA && i < 2 && loop &&
                  tk_takes_shared(s->f, op, i, r->l);
        r->loop = loop ? loop : r->loop;
    }
}

// Whether v is a number made of numbers, without memory.
static bool is_plain(const tk_func *f, tk_vid v, unsigned depth) {
    enum { DEEP = 32 };
    const tk_op *d = tk_value_def(f, v);
    if (!d) {
        return tk_value_region(f, v) == NULL;
    }
    bool plain = tk_op_is_pure(d) && depth < DEEP;
    for (uint32_t i = 0; i < d->nopnd && plain; i++) {
        const tk_type *t = tk_value_type(f, d->opnd[i]);
        plain = t->kind != TK_T_VALUE || (t->rank == 0 && is_plain(f, d->opnd[i], depth + 1));
    }
    return plain;
}

static bool can_be_fetched(const stayer *s, const tk_op *load) {
    const tk_type *tensor = tk_value_type(s->f, load->opnd[0]);
    bool can = tensor->access == TK_IN && !load->at.masked && !load->at.other;
    for (uint32_t d = 0; d < tensor->rank && can; d++) {
        can = load->at.index[d] != -1 && is_plain(s->f, load->opnd[1 + d], 0);
    }
    return can && !tk_boxes_why_not(s->x, s->c->target, load, s->log_warps);
}

static uint64_t bytes_of(const stayer *s, const tk_op *load) {
    const tk_type *t = tk_value_type(s->f, load->res[0]);
    return (uint64_t)tk_type_elems(t) * tk_dtype_size(t->dtype);
}

// Room for it, for as many iterations' tiles as the loop asks for, or two, and for other ops.
static bool has_room(const stayer *s, const tk_op *load, const tk_op *loop) {
    enum { KEPT = 32 << 10 };
    const int64_t stages = loop->at.pipeline ? loop->at.pipeline : s->c->m->attrs.stages;
    uint64_t bytes = 0;
    for (const tk_op *op = loop->reg[loop->nreg - 1]->first; op; op = op->next) {
        bytes += op->code == TK_OP_LOAD ? bytes_of(s, op) : 0;
    }
    return bytes * (uint64_t)(stages > 2 ? stages : 2) + s->bytes + bytes_of(s, load) + KEPT <=
           s->c->target->shared_max;
}

static bool stays(const stayer *s, const tk_op *load) {
    if (tk_value_type(s->f, load->res[0])->rank == 0 || !can_be_fetched(s, load)) {
        return false;
    }
    const tk_layout l = tk_ring_layout_of(s->f, load);
    readers r = {s, load->res[0], &l, NULL, true};
    tk_func_walk(s->f, read_by, &r);
    return r.fits && r.loop && has_room(s, load, r.loop);
}

// ---- Making -------------------------------------------------------------------------------------

static void rename_in(void *user, tk_op *op) { tk_vmap_operands(user, op); }

static void stay(stayer *s, tk_op *load) {
    tk_func *f = s->f;
    const tk_maker make = {f, s->c->m->arena, load->loc};
    const tk_type *type = tk_value_type(f, load->res[0]);
    const tk_vid ring = tk_maker_op(&make, f->body->first, TK_OP_RING, 0, NULL, type);
    tk_value_def(f, ring)->at.slots = 1;
    tk_value_def(f, ring)->at.like = tk_loaded_like(f, load);
    f->value.at[ring].name = f->value.at[load->opnd[0]].name;
    const uint32_t n = 1U + tk_value_type(f, load->opnd[0])->rank;
    tk_vid *opnd = TK_NEW_ARRAY(s->c->scratch, tk_vid, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        opnd[i] = load->opnd[i];
    }
    opnd[n] = ring;
    tk_op *fetch = tk_op_new(f, TK_OP_FETCH, load->loc, n + 1, opnd, 0, NULL, 0);
    memcpy(fetch->at.index, load->at.index, sizeof fetch->at.index);
    fetch->at.how = TK_HOW_TENSOR;
    tk_op_insert_before(load, fetch);
    const tk_vid v = tk_maker_op(&make, load, TK_OP_TAKE, 1, &ring, type);
    f->value.at[v].name = f->value.at[load->res[0]].name;
    tk_vmap map = {.arena = s->c->scratch};
    TK_VEC(tk_vid) tile = {0};
    tk_vmap_set(&map, load->res[0], v);
    tk_vec_push(s->c->scratch, &tile, v);
    tk_op *last = load;
    for (tk_op *op = load->next; op; op = op->next) {
        tk_op_walk(op, rename_in, &map);
        if (tk_op_uses_any(op, tile.at, tile.n)) {
            last = op;
            if (op->code == TK_OP_PERMUTE) {
                tk_vec_push(s->c->scratch, &tile, op->res[0]);
            }
        }
    }
    tk_op_insert_before(last->next, tk_op_new(f, TK_OP_RELEASE, load->loc, 1, &ring, 0, NULL, 0));
    tk_op_unlink(load);
    s->bytes += bytes_of(s, load);
    const char *name = f->value.at[load->opnd[0]].name;
    tk_module *m = s->c->m;
    tk_note_add(
        &m->notes, "operand", "operand", tk_loc_span(m, load->loc), TK_NOTE_DONE,
        "'%s' stays in shared memory, where products of a loop read it; by tensor copies of "
        "one thread",
        name ? name : "?");
}

// ---- The pass -----------------------------------------------------------------------------------

static void function(stayer *s) {
    for (tk_op *op = s->f->body->first; op; op = op->next) { // its ring stands in the body, too
        if (op->code == TK_OP_LOAD) {
            tk_vec_push(s->c->scratch, &s->loads, op);
        }
    }
    for (uint32_t i = 0; i < s->loads.n; i++) {
        if (stays(s, s->loads.at[i])) {
            stay(s, s->loads.at[i]);
        }
    }
}

void tk_pass_operand(tk_pass_ctx *c) {
    for (uint32_t i = 0; i < c->m->funcs.n && c->target && c->target->wgmma; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (!f->is_kernel || c->m->attrs.stages == 1) {
            continue;
        }
        stayer s = {.c = c, .f = f, .x = tk_axis_make(c->scratch, f, c->facts)};
        s.log_warps = tk_log_warps(f);
        function(&s);
    }
}
