// SPDX-License-Identifier: Apache-2.0
// The verifier's rules for tiles that go out by tensor copies (out.h): nothing that may run behind
// has the memory that they are read from, and nothing else accesses the tensor.
#include "ir/out.h"
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "ir/verify_internal.h"

typedef struct behind {
    const tk_verifier *v;
    const tk_op *op;
    bool meets;
} behind;

static void meet(void *user, tk_op *op) {
    behind *b = user;
    const int64_t at = b->op->at.shared, from = op->at.shared;
    const bool has = (tk_op_attrs(op->code) & TK_A_SHARED) && at >= 0 && from >= 0;
    b->meets = b->meets || (has && at < from + (int64_t)tk_scratch_bytes(b->v->f, op) &&
                            from < at + (int64_t)tk_scratch_bytes(b->v->f, b->op));
}

typedef struct stores {
    tk_verifier *v;
    bool ok;
} stores;

static void check(void *user, tk_op *op) {
    stores *s = user;
    if (!s->ok || !tk_is_copied_out(op)) {
        return;
    }
    behind b = {s->v, op, false};
    const char *why = tk_out_in_order(s->v->f, op, NULL, NULL);
    tk_walk_behind(op, meet, &b);
    s->v->op = op;
    s->ok = tk_vneed(s->v, !why, "%s", why) &&
            tk_vneed(s->v, !b.meets, "something behind has shared memory of it");
}

bool tk_verify_out(tk_verifier *v) {
    stores s = {v, true};
    tk_func_walk((tk_func *)(uintptr_t)v->f, check, &s);
    v->op = s.ok ? NULL : v->op;
    return s.ok;
}

static bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

bool tk_verify_copied_out(tk_verifier *v, const tk_type *view) {
    const tk_op *op = v->op;
    const int64_t pieces = op->at.pieces, slots = op->at.slots;
    if (op->code != TK_OP_STORE || op->at.how != TK_HOW_TENSOR) {
        return op->code != TK_OP_STORE ||
               tk_vneed(v, pieces == 0 && slots == 0, "pieces of what is not copied");
    }
    return tk_vneed(v, v->m->level != TK_LEVEL_TILE, "a tile is copied at level tile") &&
           tk_vneed(v, view->rank > 0 && !op->at.masked && !op->at.staged,
                    "only a tile without a mask is copied") &&
           tk_vneed(v, power_of_two(pieces) && tk_type_elems(view) % pieces == 0, "%lld pieces",
                    (long long)pieces) &&
           tk_vneed(v, power_of_two(slots) && slots <= pieces, "%lld slots", (long long)slots);
}
