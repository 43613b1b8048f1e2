// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for rings, and for tiles that lie in shared memory.
//
// A ring stands in a kernel's body, outside of loops, so that it is made once. What is taken from
// it is used before the next release in the same region, and handed on by nothing. That no more is
// fetched than there is room for, and no more taken than was fetched, the executor checks.
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "ir/verify_internal.h"

enum { MOST_SLOTS = 64 };

static bool is_ring(tk_verifier *v, tk_vid id) {
    const tk_op *def = tk_value_def(v->f, id);
    return tk_vneed(v, def && def->code == TK_OP_RING, "the operand is no ring");
}

// Nothing behind the next release uses what was taken, nor does the end of its region.
static bool take(tk_verifier *v) {
    const tk_op *op = v->op;
    TK_VEC(tk_vid) tile = {0};
    bool released = false;
    tk_vec_push(v->a, &tile, op->res[0]);
    for (const tk_op *x = op->next; x; x = x->next) {
        const bool uses = tk_op_uses_any(x, tile.at, tile.n);
        const bool ends = x->code == TK_OP_YIELD || x->code == TK_OP_RETURN;
        if (!tk_vneed(v, !uses || (!released && !ends), "its tile is used %s",
                      released ? "after it is released" : "outside of its region")) {
            return false;
        }
        if (uses && x->code == TK_OP_PERMUTE) {
            tk_vec_push(v->a, &tile, x->res[0]);
        }
        released = released || (x->code == TK_OP_RELEASE && x->opnd[0] == op->opnd[0]);
    }
    return true;
}

// A fetch has the ring for its last operand.
static bool is_room(const tk_func *f, const tk_op *op, uint32_t i) {
    const tk_op *def = tk_value_def(f, op->opnd[i]);
    return !def || def->code != TK_OP_RING || op->code == TK_OP_TAKE || op->code == TK_OP_RELEASE ||
           (op->code == TK_OP_FETCH && i == op->nopnd - 1);
}

// Whether the op, or one in its regions, has some of the bytes from .. to - 1.
static bool has_bytes(const tk_verifier *v, const tk_op *op, int64_t from, int64_t to) {
    const int64_t at = op->at.shared;
    if ((tk_op_attrs(op->code) & TK_A_SHARED) && at >= 0 && at < to &&
        from < at + (int64_t)tk_scratch_bytes(v->f, op)) {
        return true;
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            if (has_bytes(v, x, from, to)) {
                return true;
            }
        }
    }
    return false;
}

static bool ring_alone(tk_verifier *v) {
    const tk_op *op = v->op, *last = tk_ring_last(op);
    const int64_t from = op->at.shared;
    if (v->m->level != TK_LEVEL_STAGED || op == last) {
        return true;
    }
    const int64_t to = from + (int64_t)tk_scratch_bytes(v->f, op);
    const tk_op *first = op->next;
    if (last->code == TK_OP_PARTITION) {
        first = last->reg[1]->first;
        for (const tk_op *x = first; x; x = x->next) {
            last = tk_op_uses_any(x, op->res, 1) ? x : last;
        }
    }
    for (const tk_op *x = first; x; x = x == last ? NULL : x->next) {
        if (!tk_vneed(v, !has_bytes(v, x, from, to), "'%s' has shared memory of it",
                      tk_op_info(x->code)->name)) {
            return false;
        }
    }
    return true;
}

// One side of a partition: the first fetches and computes numbers alone, the second does not fetch.
static bool side(tk_verifier *v, const tk_region *r, bool fetches) {
    for (const tk_op *op = r->first; op; op = op->next) {
        const tk_effect effect = tk_op_info(op->code)->effect;
        bool ok = op->code != TK_OP_RING && op->code != TK_OP_PARTITION;
        if (fetches) {
            ok = ok && (effect == TK_FX_PURE || effect == TK_FX_CONTROL || op->code == TK_OP_FETCH);
            for (uint32_t i = 0; i < op->nres; i++) {
                ok = ok && v->f->value.at[op->res[i]].type->rank == 0;
            }
        } else {
            ok = ok && op->code != TK_OP_FETCH;
        }
        if (!tk_vneed(v, ok, "'%s' on the side that %s", tk_op_info(op->code)->name,
                      fetches ? "fetches" : "takes")) {
            return false;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (!side(v, op->reg[i], fetches)) {
                return false;
            }
        }
    }
    return true;
}

static void find_loads(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || (op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS);
}

// What comes through registers is dealt out to a power of two.
static bool partition(tk_verifier *v) {
    enum { MOST_WARPS = 28 };
    const tk_op *op = v->op;
    for (uint32_t i = 0; i < 2; i++) {
        if (!tk_vneed(v, op->reg[i]->args.n == 0 && op->reg[i]->last->nopnd == 0,
                      "a side takes or gives values") ||
            !side(v, op->reg[i], i == 0)) {
            return false;
        }
    }
    bool loads = false;
    tk_op_walk((tk_op *)(uintptr_t)op, find_loads, &loads); // changes nothing
    const int64_t n = op->at.producers;
    return tk_vneed(v, op->in == v->f->body, "not in the kernel's body") &&
           tk_vneed(v, n > 0 && n <= MOST_WARPS && !(loads && (n & (n - 1))), "%lld producers",
                    (long long)n);
}

// Everything but rings stands in it, so that each program does all of its work there.
static bool programs(tk_verifier *v) {
    const tk_op *op = v->op;
    const tk_region *in = op->in;
    const bool side = in->owner && in->owner->code == TK_OP_PARTITION;
    bool alone = in == v->f->body || side;
    for (const tk_op *x = in->first; x && alone; x = x->next) {
        alone = x == op || x->code == TK_OP_RING || tk_op_is_terminator(x);
    }
    return tk_vneed(v, op->reg[0]->args.n == 0 && op->reg[0]->last->nopnd == 0,
                    "its region takes or gives values") &&
           tk_vneed(v, alone, "it has company other than rings in a kernel's body");
}

// Filled by as many programs as a cluster of the module has, by warps of their own.
static bool of_cluster(tk_verifier *v) {
    const int64_t n = v->op->at.cluster;
    const tk_op *part = v->op;
    while (part && part->code != TK_OP_PARTITION) {
        part = part->next;
    }
    return n == 0 || (tk_vneed(v, n > 1 && (n & (n - 1)) == 0 && n == v->m->attrs.cluster,
                               "a cluster of %lld", (long long)n) &&
                      tk_vneed(v, part != NULL, "a cluster fills it, and there is no partition"));
}

bool tk_verify_ring(tk_verifier *v) {
    const tk_op *op = v->op;
    if (op->code == TK_OP_PROGRAMS) {
        return programs(v);
    }
    if (op->code == TK_OP_PARTITION) {
        return partition(v);
    }
    if (op->code == TK_OP_RING) {
        return tk_vneed(v, op->in == v->f->body, "not in the kernel's body") &&
               tk_vneed(v, op->at.slots > 0 && op->at.slots <= MOST_SLOTS, "%lld slots",
                        (long long)op->at.slots) &&
               tk_vneed(v, tk_vres(v, 0)->rank > 0, "room for scalars") &&
               tk_vneed(v,
                        op->at.precision == TK_PREC_IEEE ||
                            (op->at.precision == TK_PREC_TF32 && tk_vres(v, 0)->dtype == TK_F32),
                        "this precision is for f32") &&
               ring_alone(v) && of_cluster(v);
    }
    return is_ring(v, op->opnd[0]) &&
           (op->code == TK_OP_RELEASE ||
            (tk_vsame(v, tk_vres(v, 0), tk_vopnd(v, 0), "the result") && take(v)));
}

// ---- In shared memory ---------------------------------------------------------------------------

static bool lies_there(const tk_verifier *v, tk_vid id) {
    const tk_layout *l = v->f->value.at[id].layout;
    return l && l->shared;
}

static bool may_be_there(const tk_op *op, uint32_t i) {
    switch ((int)op->code) { // all others work on registers
    case TK_OP_FETCH:
        return i == op->nopnd - 1;
    case TK_OP_DOT:
        return i < 2;
    case TK_OP_TAKE:
    case TK_OP_RELEASE:
    case TK_OP_PERMUTE:
    case TK_OP_CONVERT:
        return true;
    }
    return false;
}

static bool result_fits(tk_verifier *v) {
    const tk_op *op = v->op;
    const bool ring = op->code == TK_OP_RING || op->code == TK_OP_TAKE;
    for (uint32_t i = 0; i < op->nres; i++) {
        const bool there = lies_there(v, op->res[i]);
        if (!tk_vneed(v, !ring || v->m->level == TK_LEVEL_TILE || there,
                      "its tile is not in shared memory") ||
            !tk_vneed(v, ring || !there || op->code == TK_OP_PERMUTE,
                      "it makes no tile in shared memory")) {
            return false;
        }
    }
    return op->code != TK_OP_TAKE || v->m->level == TK_LEVEL_TILE ||
           tk_vneed(v, tk_value_same_layout(v->f, op->res[0], op->opnd[0]),
                    "its tile lies otherwise than in the ring");
}

bool tk_verify_in_shared(tk_verifier *v) {
    const tk_op *op = v->op;
    for (uint32_t i = 0; i < op->nopnd; i++) {
        if (!tk_vneed(v, is_room(v->f, op, i), "operand %u is a ring", i) ||
            !tk_vneed(v, !lies_there(v, op->opnd[i]) || may_be_there(op, i),
                      "operand %u is in shared memory", i)) {
            return false;
        }
    }
    return result_fits(v);
}
