// SPDX-License-Identifier: Apache-2.0
// Pass cluster: what all programs of a cluster fetch alike is read once.
//
// in:    staged level
// out:   under `@cluster(n)` such rings have `cluster=n`: each of the n programs brings a part of
//        each tile into the shared memory of all
// keeps: every value, bit for bit
// needs: specialize, whose warps can wait for the other programs; order, which puts programs of a
//        cluster next to each other along axis 0
// when not: a tile, or whether it is fetched, differs along axis 0; it has no n equal parts. The
//           launch is one of clusters all the same: a note says that nothing is shared.
//
// A block's warps say to the producers of all blocks when they are done with a slot, so that who
// writes there knows that it is free everywhere (ptx/llvm_ring.c).
#include "lower/box.h"
#include "lower/differs.h"
#include "lower/lower.h"

#include "ir/pass_util.h"

typedef struct rings {
    tk_pass_ctx *c;
    tk_func *f;
    tk_op *ring; // being looked at
    const char *why;
    bool fetched;
} rings;

static void look(void *user, tk_op *op) {
    rings *s = user;
    if (op->code != TK_OP_FETCH || op->opnd[op->nopnd - 1] != s->ring->res[0]) {
        return;
    }
    uint32_t axes = tk_reached_along(s->f, op);
    const bool always = !(axes & 1);
    for (uint32_t i = 1; i + 1 < op->nopnd; i++) {
        axes |= tk_differs_along(s->f, op->opnd[i]);
    }
    tk_boxes b;
    s->fetched = true;
    s->why = s->why                        ? s->why
             : !always                     ? "when it is fetched differs along axis 0 of the grid"
             : axes & 1                    ? "it differs along axis 0 of the grid"
             : op->at.how != TK_HOW_TENSOR ? "it is not brought by tensor copies"
                                           : tk_boxes_of(s->f, op, &b);
}

static void note(rings *s, tk_loc loc, const char *why) {
    tk_module *m = s->c->m;
    tk_note_rec *n = tk_note_add(
        &m->notes, "cluster", "cluster", tk_loc_span(m, loc), why ? TK_NOTE_MISSED : TK_NOTE_DONE,
        why ? "the programs of a cluster do not share it: %s"
            : "each program of a cluster brings a part of the tile to all%s",
        why ? why : "");
    tk_note_number_add(&m->notes, n, "cluster", (double)m->attrs.cluster);
}

static bool power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

static void function(tk_pass_ctx *c, tk_func *f) {
    rings s = {.c = c, .f = f};
    bool parted = false, any = false;
    for (tk_op *op = f->body->first; op; op = op->next) {
        parted = parted || op->code == TK_OP_PARTITION;
    }
    for (tk_op *op = f->body->first; op; op = op->next) {
        if (op->code != TK_OP_RING) {
            continue;
        }
        s.ring = op;
        s.fetched = false;
        s.why = !parted                              ? "no warps of their own fetch"
                : !power_of_two(c->m->attrs.cluster) ? "they are not a power of two"
                                                     : NULL;
        op->at.cluster = c->m->attrs.cluster; // for the boxes
        tk_func_walk(f, look, &s);
        op->at.cluster = s.why || !s.fetched ? 0 : op->at.cluster;
        any = any || s.fetched;
        if (s.fetched) {
            note(&s, op->loc, s.why);
        }
    }
    if (!any) {
        tk_note_add(&c->m->notes, "cluster", "cluster", tk_loc_span(c->m, f->loc), TK_NOTE_MISSED,
                    "the programs of a cluster share nothing: no tile is fetched");
    }
}

void tk_pass_cluster(tk_pass_ctx *c) {
    if (c->m->attrs.cluster < 2) {
        return;
    }
    for (uint32_t i = 0; i < c->m->funcs.n; i++) {
        tk_func *f = c->m->funcs.at[i];
        if (f->is_kernel && c->target && !c->target->clusters) {
            tk_diag *d = tk_gpu_refuse_attr(c->diags, c->target, c->m->attrs.cluster_span,
                                            "cluster", "it has no clusters of blocks");
            tk_help(c->diags, d, (tk_span){0}, "GPUs have them from compute capability 9.0 on");
        } else if (f->is_kernel) {
            function(c, f);
        }
    }
}
