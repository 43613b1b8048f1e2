// SPDX-License-Identifier: Apache-2.0
// Rings. See ring.h.
#include "lower/ring.h"

#include "ir/matrix.h"
#include "lower/view_plan.h"
#include "lower/views.h"

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while ((int64_t)1 << k < n) {
        k++;
    }
    return k;
}

// The tile's axis along the tensor's last dimension, or its last one.
static unsigned fast_axis(const tk_func *f, const tk_op *op) {
    const tk_type *t = tk_view_type(f, op);
    const tk_view_axes v = tk_view_axes_of(f, op);
    const uint32_t last = v.n ? v.n - 1 : 0;
    return v.n && op->at.index[last] != 0 ? v.first[last] + v.count[last] - 1U : t->rank - 1U;
}

typedef struct search {
    tk_vid ring;
    const tk_op *fetch;
} search;

static void find(void *user, tk_op *op) {
    search *s = user;
    if (op->code == TK_OP_FETCH && op->opnd[op->nopnd - 1] == s->ring) {
        s->fetch = op;
    }
}

tk_layout tk_ring_layout(const tk_func *f, const tk_op *ring) {
    const tk_type *t = tk_value_type(f, ring->res[0]);
    search s = {ring->res[0], NULL};
    tk_func_walk((tk_func *)(uintptr_t)f, find, &s); // changes nothing
    return s.fetch
               ? tk_ring_layout_of(f, s.fetch)
               : tk_layout_placed(t->rank, t->dim, t->rank - 1U, (unsigned)tk_dtype_size(t->dtype));
}

tk_layout tk_ring_layout_of(const tk_func *f, const tk_op *load) {
    const tk_type *t = tk_view_type(f, load);
    return tk_layout_placed(t->rank, t->dim, fast_axis(f, load), (unsigned)tk_dtype_size(t->dtype));
}

tk_layout tk_fetch_layout(const tk_func *f, const tk_op *op, unsigned log_warps) {
    const tk_type *t = tk_view_type(f, op);
    const unsigned fast = fast_axis(f, op), extent = log_of(t->dim[fast]);
    uint8_t order[TK_MAX_RANK] = {(uint8_t)fast};
    for (unsigned i = t->rank, n = 1; i-- > 0;) {
        if (i != fast) {
            order[n++] = (uint8_t)i;
        }
    }
    const unsigned vec = log_of(TK_FETCH_BYTES / (int64_t)tk_dtype_size(t->dtype));
    return tk_layout_blocked(t->rank, t->dim, order, vec < extent ? vec : extent, log_warps);
}

const tk_layout *tk_fetch_threads(const tk_axis *x, const tk_op *op) {
    const unsigned warps = (unsigned)x->func->module->attrs.warps;
    return tk_layout_new(x->arena, tk_fetch_layout(x->func, op, log_of(warps)));
}

const char *tk_fetch_why_not(const tk_axis *x, const tk_op *op, unsigned log_warps) {
    const tk_func *f = x->func;
    tk_vid opnd[2 + TK_MAX_TENSOR_RANK];
    const uint32_t n = 1U + tk_value_type(f, op->opnd[0])->rank;
    for (uint32_t i = 0; i < n; i++) {
        opnd[i] = op->opnd[i];
    }
    opnd[n] = op->res[0];
    tk_op fetch = *op; // as it would be
    fetch.code = TK_OP_FETCH;
    fetch.opnd = opnd;
    fetch.nopnd = n + 1;
    fetch.at.masked = fetch.at.other = false;
    const tk_layout l = tk_fetch_layout(f, &fetch, log_warps);
    const tk_view_plan p = tk_view_plan_of(x, &fetch, &l);
    if (p.vec * tk_dtype_size(tk_view_type(f, op)->dtype) < TK_FETCH_LEAST) {
        return p.narrow ? p.narrow : "its elements are moved one by one";
    }
    return p.aligned ? NULL : "its place in a row is not known to be a multiple of what is copied";
}

const char *tk_place_why_not(const tk_axis *x, const tk_op *op) {
    const uint32_t rank = tk_value_type(x->func, op->opnd[0])->rank;
    const unsigned size = (unsigned)tk_dtype_size(tk_view_type(x->func, op)->dtype);
    if (size >= TK_FETCH_LEAST || rank == 0) {
        return NULL;
    }
    const int64_t n = op->at.index[rank - 1];
    if (n * size < TK_FETCH_LEAST) {
        return "less than 4 bytes of it lie in a row, and no less is copied ahead";
    }
    const tk_axis_value *at = tk_axis_of(x, op->opnd[rank]);
    const unsigned every = at ? tk_axis_every(at) : 0;
    const bool whole = every >= 2 || size << every >= TK_FETCH_LEAST;
    return whole ? NULL : "where it begins in a row is not known to be a multiple of 4 bytes";
}

bool tk_ring_shares_barrier(const tk_op *ring) {
    return ring->next && ring->next->code == TK_OP_RING;
}

// ---- Loops --------------------------------------------------------------------------------------

bool tk_is_of_parts(const tk_op *loop) {
    for (const tk_op *op = loop->reg[0]->first; op; op = op->next) {
        if (op->loc == loop->loc) {
            return true;
        }
    }
    return false;
}

bool tk_has_loop(const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
            return true;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (tk_has_loop(op->reg[i])) {
                return true;
            }
        }
    }
    return false;
}

bool tk_multiplies(const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        if (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) {
            return true;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (tk_multiplies(op->reg[i])) {
                return true;
            }
        }
    }
    return false;
}

// ---- Releases -----------------------------------------------------------------------------------

static bool uses(const tk_op *op, const tk_vid *v, uint32_t n) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (op->opnd[i] == v[k]) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        for (const tk_op *x = op->reg[i]->first; x; x = x->next) {
            if (uses(x, v, n)) {
                return true;
            }
        }
    }
    return false;
}

static void release_early(void *user, tk_op *op) {
    enum { MOST = 8 }; // shapes of one tile
    tk_func *f = user;
    if (op->code != TK_OP_TAKE) {
        return;
    }
    tk_vid tile[MOST] = {op->res[0]};
    uint32_t n = 1;
    tk_op *last = op, *release = NULL;
    for (tk_op *x = op->next; x && !release; x = x->next) {
        const bool there =
            x->nres == 1 && tk_value_layout(f, x->res[0]) && tk_value_layout(f, x->res[0])->shared;
        const bool use = x->code != TK_OP_RELEASE && uses(x, tile, n);
        last = use ? x : last;
        if (use && there && n == MOST) {
            return;
        }
        if (use && there) {
            tile[n++] = x->res[0];
        }
        release = x->code == TK_OP_RELEASE && x->opnd[0] == op->opnd[0] ? x : NULL;
    }
    if (release && last->next != release) {
        tk_op_unlink(release);
        tk_op_insert_before(last->next, release);
    }
}

void tk_ring_release_early(tk_func *f) { tk_func_walk(f, release_early, f); }

bool tk_takes_shared(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l) {
    return op->code == TK_OP_TAKE || op->code == TK_OP_RELEASE || op->code == TK_OP_FETCH ||
           op->code == TK_OP_PERMUTE || tk_unit_takes(f, op, i, l);
}
